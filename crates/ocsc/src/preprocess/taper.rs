//! The edge taper: no seam on the circle on which filters wrap around.

use super::window::{Border, RowMeans, gaussian};
use super::{Step, extremes, per_plane};
use crate::{Real, Result, Sample};

/// The pixels at every end that are blended.
pub(super) const BORDER: usize = 11;

/// Tapers the edges as MATLAB's `edgetaper` with an 11 x 11 Gaussian w of sigma 11/3: J = a I + (1 - a) (w * I), w * I
/// circular.
///
/// The weight of the image is a(i, j) = (1 - z_H(i)) (1 - z_W(j)), where z_n is the circular autocorrelation of w's
/// projection on one axis, with period n - 1, scaled to the maximum 1, and its first value repeated as the last. So a
/// is 0 on the frame and 1 beyond the outer 11 pixels, which keep their values bit for bit. The result stays in the
/// range of I. Each channel and each depth slice is an image of its own.
///
/// MATLAB refuses images of at most 22 pixels on an axis. Here the autocorrelation of a shorter axis is wrapped onto
/// its period (`fft` would first truncate w), which is the same formula continued; an axis of length 1 is absent and
/// has no edges: a = 1 along it.
///
/// The taper has no inverse: the frame itself (a = 0) is forgotten. The way back leaves it alone, so that beyond the
/// outer 11 pixels the original comes back, and its border blended as above.
pub fn edge_taper<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    Step::Taper.apply(sample.clone().cast()?, None)?.cast()
}

/// [`edge_taper`] in place.
pub(super) fn apply(sample: Sample<f64>) -> Result<Sample<f64>> {
    per_plane(sample, |_, plane, width| taper_plane(plane, width))
}

/// See [`edge_taper`].
fn taper_plane(plane: &mut [f64], width: usize) {
    let (window, height) = (gaussian(11, 11.0 / 3.0), plane.len() / width);
    let (rows, columns) = (taper_weights(height, &window), taper_weights(width, &window));
    let (low, high) = extremes(plane);
    let mut means = RowMeans::new(height, width, &window, Border::Circular);
    let mut blurred = vec![0.0; width];
    for (y, row_weight) in rows.iter().enumerate() {
        means.row(y, |y, x| plane[y * width + x], &mut blurred);
        for ((value, blurred), weight) in plane[y * width..][..width].iter_mut().zip(&blurred).zip(&columns) {
            let a = row_weight * weight;
            *value = (a * *value + (1.0 - a) * blurred).clamp(low, high);
        }
    }
}

/// 1 - z_n for an axis of `n` pixels: see [`edge_taper`].
fn taper_weights(n: usize, window: &[f64]) -> Vec<f64> {
    if n == 1 {
        return vec![1.0];
    }
    // Summed directly, not with FFTs: the zeros of z are then exact, and so is the untouched interior.
    let period = n - 1;
    let mut z = vec![0.0; period];
    for (i, a) in window.iter().enumerate() {
        for (j, b) in window.iter().enumerate() {
            z[(i as isize - j as isize).rem_euclid(period as isize) as usize] += a * b;
        }
    }
    let (_, max) = extremes(&z);
    (0..n).map(|i| 1.0 - z[i % period] / max).collect()
}
