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

/// Leaves the high-pass part of each channel.
pub(super) fn apply(sample: Sample<f64>, lambda: f64, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let (shape, mut data, mask) = sample.into_parts();
    let filter = Filter::new(shape.spatial(), lambda);
    let mut kept = Vec::with_capacity(if undo.is_some() { data.len() } else { 0 });
    for (c, channel) in data.chunks_mut(shape.pixels()).enumerate() {
        let low = match &mask {
            None => filter.low(channel),
            Some(mask) => observed_low(shape.spatial(), channel, &mask[c * shape.pixels()..][..shape.pixels()], lambda),
        };
        channel.iter_mut().zip(&low).for_each(|(x, low)| *x -= low);
        if undo.is_some() {
            kept.extend(low);
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

/// A plan for channels of one shape (depth, height, width).
struct Filter {
    shape: [usize; 3],
    /// On each axis, the index that each position of the circle repeats.
    sources: [Vec<usize>; 3],
    /// On each axis, lambda |G_f|^2 at each frequency.
    penalties: [Vec<f64>; 3],
    fourier: Fourier<f64>,
}

impl Filter {
    fn new(shape: [usize; 3], lambda: f64) -> Self {
        let sources = shape.map(circle);
        let lengths = [0, 1, 2].map(|axis| sources[axis].len());
        let penalty = |n: usize| (0..n).map(|k| lambda * 4.0 * (PI * k as f64 / n as f64).sin().powi(2)).collect();
        Filter { shape, sources, penalties: lengths.map(penalty), fourier: Fourier::new(lengths) }
    }

    /// The low-pass part of one channel.
    fn low(&self, x: &[f64]) -> Vec<f64> {
        let ([depths, heights, widths], [_, h, w]) = (&self.sources, self.shape);
        let mut padded = Vec::with_capacity(self.fourier.n_pixels());
        for (z, y) in depths.iter().flat_map(|z| heights.iter().map(move |y| (z, y))) {
            let row = &x[(z * h + y) * w..][..w];
            padded.extend(widths.iter().map(|x| row[*x]));
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
        let mut low = vec![0.0; x.len()];
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
