//! The Tikhonov low-pass split x = low + high: smooth shading apart, details to be coded.
//!
//! Filters of a few pixels cannot represent slow changes of brightness or a drifting baseline sparsely, and nobody needs
//! them to. So the smooth part is taken out first, as is usual with SPORCO (`signal.tikhonov_filter`, whose result this is,
//! continued to one and three axes):
//!
//! ```text
//! low = argmin over l   1/2 || l - x ||^2 + lambda/2 sum_i || G_i l ||^2 ,     high = x - low
//! ```
//!
//! where G_i is the difference of neighbours along axis i. The minimiser solves (I + lambda sum_i G_i^T G_i) l = x, which
//! on a circle is a division at each frequency: l_f = x_f / (1 + lambda sum_i 4 sin^2(pi k_i / n_i)). So that opposite
//! ends do not mix, each axis of more than one value is first continued by [`PADDING`] values on both ends, mirrored
//! with the outermost value repeated.
//!
//! Where only some values were observed, W = 1 there and 0 elsewhere, the smooth part is that of what was observed:
//!
//! ```text
//! low = argmin over l   1/2 || W (l - x) ||^2 + lambda/2 sum_i || G_i l ||^2
//! ```
//!
//! solved by conjugate gradients. It is continued into what was not observed, so that reconstructions are whole.

use super::undo::{Kept, Undo};
use super::window::Border;
use crate::conjugate_gradients::{Until, conjugate_gradients};
use crate::{Fourier, Result, Sample};
use num_complex::Complex;
use std::f64::consts::PI;

/// SPORCO's default. The influence of a value falls by e on every sqrt(lambda) values.
const PADDING: usize = 16;

/// Images of more rows than this are split band by band.
const BAND: usize = 256;
/// A band sees so many times sqrt(lambda) rows beyond its own; what lies further has no influence that f64 could hold.
const REACH: f64 = 40.0;

/// Leaves the high-pass part of each channel.
pub(super) fn apply(sample: Sample<f64>, lambda: f64, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let (shape, mut data, mask) = sample.into_parts();
    let mut kept = Vec::with_capacity(if undo.is_some() { data.len() } else { 0 });
    let mut keep = |low: &[f64]| {
        if undo.is_some() {
            kept.extend_from_slice(low);
        }
    };
    match &mask {
        None => split(shape.spatial(), &mut data, lambda, BAND, &mut keep),
        Some(mask) => {
            for (channel, mask) in data.chunks_mut(shape.pixels()).zip(mask.chunks(shape.pixels())) {
                let low = observed_low(shape.spatial(), channel, mask, lambda);
                channel.iter_mut().zip(&low).for_each(|(x, low)| *x -= low);
                keep(&low);
            }
        }
    }
    if let Some(undo) = undo {
        undo.keep(Kept::Add(kept));
    }
    Sample::with_mask(shape, data, mask)
}

/// Conjugate gradients end when the residual is this fraction of the first, or after so many iterations.
const ENOUGH: f64 = 1e-8;
const ITERATIONS: usize = 1000;

/// The low-pass part of one channel of which `seen` was observed.
fn observed_low(shape: [usize; 3], x: &[f64], seen: &[bool], lambda: f64) -> Vec<f64> {
    let weight = |i: usize| f64::from(u8::from(seen[i]));
    let matrix = |v: &[f64]| -> Vec<f64> {
        let mut out = smoothness(shape, v);
        out.iter_mut().enumerate().for_each(|(i, out)| *out = lambda * *out + weight(i) * v[i]);
        out
    };
    let count = seen.iter().filter(|seen| **seen).count();
    let sum: f64 = x.iter().zip(seen).filter(|(_, seen)| **seen).map(|(v, _)| v).sum();
    let mut low = vec![if count > 0 { sum / count as f64 } else { 0.0 }; x.len()];
    let residual = (0..x.len()).map(|i| weight(i) * (x[i] - low[i])).collect();
    conjugate_gradients(&mut low, residual, Until { accuracy: ENOUGH, iterations: ITERATIONS }, matrix);
    low
}

/// sum_i G_i^T G_i v, with no differences across the ends.
fn smoothness(shape: [usize; 3], v: &[f64]) -> Vec<f64> {
    let [_, height, width] = shape;
    let mut out = vec![0.0; v.len()];
    for (axis, stride) in [height * width, width, 1].into_iter().enumerate() {
        for i in 0..v.len() {
            if i / stride % shape[axis] + 1 < shape[axis] {
                let difference = v[i + stride] - v[i];
                out[i] -= difference;
                out[i + stride] += difference;
            }
        }
    }
    out
}

/// Takes the low-pass part off all channels and hands it over, in order: of large images in bands of so many rows.
fn split(shape: [usize; 3], data: &mut [f64], lambda: f64, band: usize, keep: &mut dyn FnMut(&[f64])) {
    let [depth, height, width] = shape;
    let reach = (REACH * lambda.sqrt()).ceil() as usize;
    let is_banded = depth == 1 && height > band && 2 * reach + PADDING < height;
    let rows = if is_banded { band } else { height };
    // All bands but the last one have one plan.
    let mut plan: Option<(usize, Filter)> = None;
    for channel in data.chunks_mut(depth * height * width) {
        // The rows that bands still have to see as they were: the first ones, and those just above.
        let first = if is_banded { channel[..(reach + PADDING) * width].to_vec() } else { Vec::new() };
        let mut above: Vec<f64> = Vec::new();
        for top in (0..height).step_by(rows) {
            let count = rows.min(height - top);
            let filter = match plan.take() {
                Some((rows, filter)) if rows == count => filter,
                _ if is_banded => Filter::band(shape, count, reach, lambda),
                _ => Filter::new(shape, lambda),
            };
            let low = if is_banded {
                let from = top - above.len() / width;
                let row = |y: usize| match y {
                    _ if (from..top).contains(&y) => &above[(y - from) * width..][..width],
                    _ if y * width < first.len() && y < top => &first[y * width..][..width],
                    _ => &channel[y * width..][..width],
                };
                let rows = band_rows(height, top, count, reach);
                filter.low(count * width, |_, i| row(rows[i]))
            } else {
                let heights = circle(height);
                filter.low(channel.len(), |z, i| &channel[(z * height + heights[i]) * width..][..width])
            };
            if is_banded {
                let next = &channel[top * width..(top + count) * width];
                above.extend_from_slice(next);
                let surplus = above.len().saturating_sub((reach + PADDING) * width);
                above.drain(..surplus);
            }
            let own = &mut channel[depth * top * width..][..low.len()];
            own.iter_mut().zip(&low).for_each(|(x, low)| *x -= low);
            keep(&low);
            plan = Some((count, filter));
        }
    }
}

/// The rows that a band sees, its own first, then those behind it and those before it, on the circle of an axis of `height`.
fn band_rows(height: usize, top: usize, count: usize, reach: usize) -> Vec<usize> {
    let whole = circle(height);
    let n = whole.len() as isize;
    let (top, end, reach) = (top as isize, (top + count) as isize, reach as isize);
    (top..end + reach).chain(top - reach..top).map(|y| whole[y.rem_euclid(n) as usize]).collect()
}

/// A plan for channels of one shape (depth, height, width), or for a band of one.
struct Filter {
    /// What is wanted of it.
    shape: [usize; 3],
    /// On the width, the index that each position of the circle repeats.
    columns: Vec<usize>,
    /// On each axis, lambda |G_f|^2 at each frequency.
    penalties: [Vec<f64>; 3],
    fourier: Fourier<f64>,
    /// On the depth, the index that each position of the circle repeats.
    slices: Vec<usize>,
}

impl Filter {
    fn new(shape: [usize; 3], lambda: f64) -> Self {
        Self::of(shape, shape.map(|n| circle(n).len()), lambda)
    }

    /// Of so many rows of an image.
    fn band([_, _, width]: [usize; 3], count: usize, reach: usize, lambda: f64) -> Self {
        Self::of([1, count, width], [1, count + 2 * reach, circle(width).len()], lambda)
    }

    fn of(shape: [usize; 3], lengths: [usize; 3], lambda: f64) -> Self {
        let penalty = |n: usize| (0..n).map(|k| lambda * 4.0 * (PI * k as f64 / n as f64).sin().powi(2)).collect();
        let (slices, columns) = (circle(shape[0]), circle(shape[2]));
        Filter { shape, columns, penalties: lengths.map(penalty), fourier: Fourier::new(lengths), slices }
    }

    /// The first `len` values of the low-pass part of a channel, whose rows come by their slice and their place on the circle.
    fn low<'x>(&self, len: usize, row: impl Fn(usize, usize) -> &'x [f64]) -> Vec<f64> {
        let rows = self.penalties[1].len();
        let mut padded = Vec::with_capacity(self.fourier.n_pixels());
        for (z, i) in self.slices.iter().flat_map(|z| (0..rows).map(move |i| (z, i))) {
            let row = row(*z, i);
            padded.extend(self.columns.iter().map(|x| row[*x]));
        }
        let mut scratch = self.fourier.scratch();
        let mut spectrum = vec![Complex::default(); self.fourier.n_freqs()];
        self.fourier.forward(&padded, &mut spectrum, &mut scratch);
        drop(padded);
        // The spectrum's axes are (width, height, depth), see `fourier.rs`.
        let [depth, height, width] = &self.penalties;
        let mut values = spectrum.iter_mut();
        for along_width in width {
            for along_height in height {
                for (along_depth, value) in depth.iter().zip(&mut values) {
                    *value /= 1.0 + along_width + along_height + along_depth;
                }
            }
        }
        let mut low = vec![0.0; len];
        self.fourier.inverse_cropped(&mut spectrum, self.shape, &mut low, &mut scratch);
        low
    }
}

/// The circle of an axis of `n` values: the values, their continuation behind the last one, and that before the first.
/// It begins with the values, so that the inverse transform needs to compute no others.
fn circle(n: usize) -> Vec<usize> {
    let padding = if n == 1 { 0 } else { PADDING as isize };
    let end = n as isize + padding;
    (0..end).chain(-padding..0).map(|i| Border::Symmetric.index(i, n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn wave(i: usize) -> f64 {
        (0.13 * i as f64).sin() + 0.4 * (0.9 * i as f64).cos() + 0.01 * i as f64
    }

    /// The definition, dense: (W + lambda L) low = W x by Gaussian elimination.
    fn dense(shape: [usize; 3], x: &[f64], seen: &[bool], lambda: f64) -> Vec<f64> {
        let n = x.len();
        let column = |j: usize| smoothness(shape, &(0..n).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>());
        let columns: Vec<Vec<f64>> = (0..n).map(column).collect();
        let entry = |i: usize, j: usize| lambda * columns[j][i] + f64::from(u8::from(i == j && seen[i]));
        let mut rows: Vec<Vec<f64>> =
            (0..n).map(|i| (0..n).map(|j| entry(i, j)).chain([if seen[i] { x[i] } else { 0.0 }]).collect()).collect();
        for i in 0..n {
            let pivot = rows[i].clone();
            for (_, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
                let factor = row[i] / pivot[i];
                row.iter_mut().zip(&pivot).for_each(|(v, p)| *v -= factor * p);
            }
        }
        (0..n).map(|i| rows[i][n] / rows[i][i]).collect()
    }

    #[test]
    fn the_smooth_part_of_what_was_observed_solves_its_equations() {
        for shape in [[1, 1, 40], [1, 6, 7], [3, 4, 5]] {
            let n = shape.iter().product();
            let x: Vec<f64> = (0..n).map(wave).collect();
            let seen: Vec<bool> = (0..n).map(|i| i % 3 != 1 && !(n / 2..n / 2 + 5).contains(&i)).collect();
            let (found, expected) = (observed_low(shape, &x, &seen, 5.0), dense(shape, &x, &seen, 5.0));
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-6, "{shape:?} {worst}");
        }
    }

    #[test]
    fn bands_are_parts_of_the_whole() {
        for (height, width, band, lambda) in [(150, 13, 40, 2.0), (151, 9, 64, 1.0), (200, 7, 30, 5.0)] {
            let x: Vec<f64> = (0..2 * height * width).map(wave).collect();
            let split = |band: usize| {
                let (mut high, mut low) = (x.clone(), Vec::new());
                super::split([1, height, width], &mut high, lambda, band, &mut |part| low.extend_from_slice(part));
                (high, low)
            };
            let (whole, banded) = (split(usize::MAX), split(band));
            for (a, b) in [(&whole.0, &banded.0), (&whole.1, &banded.1)] {
                let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst < 1e-13 && a.len() == b.len(), "{height} {worst}");
            }
            assert_ne!(whole.1, banded.1, "there were no bands");
        }
    }

    #[test]
    fn a_mask_that_hides_nothing_changes_little_and_hidden_values_nothing() {
        let shape = Shape::image(30, 40);
        let x: Vec<f64> = (0..shape.len()).map(wave).collect();
        let whole = apply(Sample::new(shape, x.clone()).unwrap(), 5.0, None).unwrap();
        let masked = Sample::masked(shape, x.clone(), vec![true; shape.len()]).unwrap();
        let masked = apply(masked, 5.0, None).unwrap();
        let worst = whole.data().iter().zip(masked.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-3, "{worst}");
        let seen: Vec<bool> = (0..shape.len()).map(|i| i % 4 != 0).collect();
        let other: Vec<f64> = x.iter().zip(&seen).map(|(v, seen)| if *seen { *v } else { 1e6 }).collect();
        let [one, two] = [x, other].map(|x| apply(Sample::masked(shape, x, seen.clone()).unwrap(), 5.0, None).unwrap());
        assert_eq!(one, two);
    }
}
