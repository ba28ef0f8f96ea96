//! `--crop`: a piece of every sample, anywhere in learning and the middle in all else.

use anyhow::{Result, bail};
use ocsc::{Real, Sample, Shape};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The largest depth, height and width that are kept; a sample that is shorter on an axis keeps its length there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crop([usize; 3]);

impl Crop {
    /// One length for every axis, or one per axis of data with so many of them.
    pub(crate) fn new(lengths: &[usize], rank: usize) -> Result<Self> {
        match *lengths {
            [length] => Ok(Crop([length; 3])),
            [h, w] if rank == 2 => Ok(Crop([1, h, w])),
            [d, h, w] if rank == 3 => Ok(Crop([d, h, w])),
            _ => {
                bail!("--crop: expected {rank} lengths, as the data have {rank} spatial axes, found {}", lengths.len())
            }
        }
    }

    /// Depth, height and width of what is left of a sample.
    pub(crate) fn size(&self, sample: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| sample[axis].min(self.0[axis]))
    }

    /// Where the middle begins.
    pub(crate) fn before(&self, sample: [usize; 3]) -> [usize; 3] {
        let kept = self.size(sample);
        std::array::from_fn(|axis| (sample[axis] - kept[axis]) / 2)
    }

    /// The middle.
    pub(crate) fn middle<T: Real>(&self, sample: Sample<T>) -> Result<Sample<T>> {
        let full = sample.shape().spatial();
        cut(sample, self.before(full), self.size(full))
    }

    /// How many pieces it takes to cover a sample.
    pub(crate) fn pieces(&self, sample: [usize; 3]) -> usize {
        (0..3).map(|axis| sample[axis].div_ceil(self.0[axis].max(1))).product::<usize>().max(1)
    }

    /// A piece from a place that depends on nothing but the seed, the number of the sample, the pass, and which piece of it.
    pub(crate) fn anywhere<T: Real>(
        &self,
        sample: Sample<T>,
        seed: u64,
        number: usize,
        pass: usize,
        piece: usize,
    ) -> Result<Sample<T>> {
        let [full, kept] = [sample.shape().spatial(), self.size(sample.shape().spatial())];
        let mut key = [0; 32];
        for (bytes, value) in key.chunks_exact_mut(8).zip([seed, number as u64, pass as u64, piece as u64]) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        let mut rng = ChaCha8Rng::from_seed(key);
        // In u64, so that machines of all sizes draw the same.
        let place = |axis: usize| rng.random_range(0..=(full[axis] - kept[axis]) as u64) as usize;
        let start = [0, 1, 2].map(place);
        cut(sample, start, kept)
    }
}

/// The part of `sample` that starts at `start` and has these lengths, within its own.
fn cut<T: Real>(sample: Sample<T>, start: [usize; 3], [depth, height, width]: [usize; 3]) -> Result<Sample<T>> {
    let full = sample.shape();
    if full.spatial() == [depth, height, width] {
        return Ok(sample);
    }
    let shape = Shape { channels: full.channels, depth, height, width };
    let weights = sample.weights().map(|weights| piece(weights, full, start, shape));
    let (_, data, mask) = sample.into_parts();
    let cut = match mask {
        Some(mask) => Sample::masked(shape, piece(&data, full, start, shape), piece(&mask, full, start, shape))?,
        None => Sample::new(shape, piece(&data, full, start, shape))?,
    };
    Ok(match weights {
        Some(weights) => cut.with_weights(weights)?,
        None => cut,
    })
}

fn piece<V: Copy>(data: &[V], full: Shape, [d0, h0, w0]: [usize; 3], shape: Shape) -> Vec<V> {
    let mut kept = Vec::with_capacity(shape.len());
    for c in 0..shape.channels {
        for d in d0..d0 + shape.depth {
            for h in h0..h0 + shape.height {
                let row = ((c * full.depth + d) * full.height + h) * full.width + w0;
                kept.extend_from_slice(&data[row..row + shape.width]);
            }
        }
    }
    kept
}
