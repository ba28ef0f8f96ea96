//! The samples to tune with: a few, spread over the set, and pieces of large ones.

use super::{Tuning, stream};
use crate::beta::spread;
use crate::train::name_samples;
use crate::{Error, Real, Result, Sample, Samples, Shape};
use rand::RngExt;

/// Samples of more positions than twice this are cut to pieces of about this many.
const PIECE: usize = 1 << 14;
/// As many samples are taken as make so many values, unless the call says how many: enough to tell betas apart by a percent.
const VALUES: usize = 1 << 18;
/// At least and at most so many.
const LEAST: usize = 16;
const MOST: usize = 256;
/// A piece is at least so many times as long as a filter.
const FILTERS: usize = 4;
/// The seed's part for the places of pieces, so that hidden values are drawn from another stream.
const PLACES: u64 = 1 << 40;

/// Samples, or pieces of them.
pub(super) struct Pieces<T> {
    pub(super) samples: Vec<Sample<T>>,
    /// Whether any is a piece of a larger one.
    pub(super) are_cut: bool,
}

/// Chooses samples and cuts large ones; those that cannot be read or do not fit are passed over.
pub(super) fn cut<T: Real>(samples: &dyn Samples<T>, filter: Shape, tuning: &Tuning, rank: usize) -> Result<Pieces<T>> {
    let mut pieces = Pieces { samples: Vec::new(), are_cut: false };
    let mut first_error = None;
    let most = tuning.samples.unwrap_or(MOST).min(samples.len());
    let mut wanted = most;
    let mut each = 1;
    for (visit, i) in order(samples.len(), most, tuning.seed).into_iter().enumerate() {
        if pieces.samples.len() >= wanted {
            break;
        }
        let read = samples.get(i).and_then(|sample| fits(&sample, filter).map(|()| sample));
        let sample = match read.map_err(|error| name_samples(error, samples, &[i])) {
            Ok(sample) => sample,
            Err(error) if error.is_system_failure() => return Err(error),
            Err(error) => {
                first_error.get_or_insert(error);
                continue;
            }
        };
        let size = piece(sample.shape(), filter, rank);
        if pieces.samples.is_empty() {
            // What the first is like is taken for what all are like.
            let n = (VALUES / size.len().max(1)).clamp(LEAST, MOST);
            let available = samples.len().min(n);
            let fitting = (sample.shape().pixels() / size.pixels().max(1)).max(1);
            each = n.div_ceil(available.max(1)).min(fitting).max(1);
            wanted = tuning.samples.unwrap_or(n.max(LEAST));
        }
        pieces.are_cut |= size != sample.shape();
        for part in 0..if size == sample.shape() { 1 } else { each } {
            // Of a masked sample, a piece may hold nothing that was observed.
            let piece = taken(&sample, size, tuning.seed, visit * MOST + part).ok();
            pieces.samples.extend(piece.filter(|piece| piece.n_observed() > 1));
        }
    }
    match first_error {
        Some(error) if pieces.samples.is_empty() => Err(error),
        _ if pieces.samples.is_empty() => Err(Error::invalid("data set", "at least one sample", "none")),
        _ => Ok(pieces),
    }
}

/// Returns up to `most` numbers below `len` in an order in which the first few are spread over the set, too.
fn order(len: usize, most: usize, seed: u64) -> Vec<usize> {
    let ascending = spread(len, most, seed);
    let mut step = (ascending.len() as f64 * 0.618) as usize;
    // A step that shares no divisor with the number visits each once.
    while step > 1 && divisor(step, ascending.len()) > 1 {
        step -= 1;
    }
    (0..ascending.len()).map(|i| ascending[i * step.max(1) % ascending.len()]).collect()
}

fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Refuses a sample that the filters do not fit.
fn fits<T: Real>(sample: &Sample<T>, filter: Shape) -> Result<()> {
    let is_large = sample.shape().spatial().iter().zip(filter.spatial()).all(|(s, f)| *s >= f);
    match sample.shape().channels == filter.channels && is_large && sample.n_observed() > 1 {
        true => Ok(()),
        false => Err(Error::invalid("sample", format!("one that filters of {filter} fit"), sample.shape())),
    }
}

/// Returns the size of the pieces of samples of this shape.
fn piece(sample: Shape, filter: Shape, rank: usize) -> Shape {
    if sample.pixels() <= 2 * PIECE {
        return sample;
    }
    let axes = sample.spatial().iter().filter(|n| **n > 1).count().clamp(1, rank.max(1));
    let scale = (PIECE as f64 / sample.pixels() as f64).powf(1.0 / axes as f64);
    let length = |i: usize| {
        let (n, f) = (sample.spatial()[i], filter.spatial()[i]);
        ((n as f64 * scale).ceil() as usize).max(FILTERS * f).min(n)
    };
    Shape { channels: sample.channels, depth: length(0), height: length(1), width: length(2) }
}

/// Cuts a piece out of a sample, with its mask; which, the seed and the piece's number decide.
fn taken<T: Real>(sample: &Sample<T>, size: Shape, seed: u64, number: usize) -> Result<Sample<T>> {
    let whole = sample.shape();
    let mut rng = stream(seed.wrapping_add(PLACES), number);
    let from: [usize; 3] = std::array::from_fn(|i| rng.random_range(0..=whole.spatial()[i] - size.spatial()[i]));
    let mut places = Vec::with_capacity(size.len());
    for row in 0..size.len() / size.width.max(1) {
        let (c, d, h) = (row / (size.depth * size.height), row / size.height % size.depth, row % size.height);
        let start = ((c * whole.depth + from[0] + d) * whole.height + from[1] + h) * whole.width + from[2];
        places.extend(start..start + size.width);
    }
    let data = places.iter().map(|place| sample.data()[*place]).collect();
    let mask = sample.mask().map(|mask| places.iter().map(|place| mask[*place]).collect());
    Sample::with_mask(size, data, mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_samples_are_cut_and_small_ones_are_not() {
        let filter = Shape::image(11, 11);
        assert_eq!(piece(Shape::image(100, 100), filter, 2), Shape::image(100, 100));
        let cut = piece(Shape::image(500, 400), filter, 2);
        assert!(cut.pixels() >= PIECE && cut.pixels() < PIECE + 1000, "{cut}");
        let signal = Shape { channels: 3, depth: 1, height: 1, width: 200_000 };
        let cut = piece(signal, Shape { channels: 3, depth: 1, height: 1, width: 128 }, 1);
        assert_eq!((cut.channels, cut.width), (3, PIECE));
    }

    #[test]
    fn pieces_are_where_they_were() {
        let data: Vec<f64> = (0..40_000).map(f64::from).collect();
        let sample = Sample::new(Shape::image(200, 200), data).unwrap();
        let piece = taken(&sample, Shape::image(20, 30), 0, 0).unwrap();
        let first = piece.data()[0];
        for (i, value) in piece.data().iter().enumerate() {
            assert_eq!(*value, first + (i / 30 * 200 + i % 30) as f64);
        }
        let set = vec![sample];
        let few = cut(&set, Shape::image(5, 5), &Tuning::default(), 2).unwrap();
        assert!(few.are_cut && few.samples.len() == 2);
    }

    #[test]
    fn an_order_visits_each_once() {
        for len in [1, 2, 3, 10, 24, 64] {
            let mut all = order(len, 64, 3);
            all.sort_unstable();
            assert_eq!(all, (0..len).collect::<Vec<_>>());
        }
    }
}
