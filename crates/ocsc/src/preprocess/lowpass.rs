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

use super::undo::{Kept, Undo};
use super::window::Border;
use crate::{Fourier, Result, Sample};
use num_complex::Complex;
use std::f64::consts::PI;

/// SPORCO's default. The influence of a value falls by e on every sqrt(lambda) values.
const PADDING: usize = 16;

/// Leaves the high-pass part of each channel.
pub(super) fn apply(sample: Sample<f64>, lambda: f64, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let (shape, mut data, _) = sample.into_parts();
    let filter = Filter::new(shape.spatial(), lambda);
    let mut kept = Vec::with_capacity(if undo.is_some() { data.len() } else { 0 });
    for channel in data.chunks_mut(shape.pixels()) {
        let low = filter.low(channel);
        channel.iter_mut().zip(&low).for_each(|(x, low)| *x -= low);
        if undo.is_some() {
            kept.extend(low);
        }
    }
    if let Some(undo) = undo {
        undo.keep(Kept::Add(kept));
    }
    Sample::new(shape, data)
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
