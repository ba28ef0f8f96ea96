//! Local contrast normalisation: every neighbourhood to mean zero and the same deviation.

use super::undo::{Kept, Undo};
use super::window::{Border, RowMeans, gaussian};
use super::{Step, extremes, per_plane};
use crate::{Real, Result, Sample};

/// Normalises the local contrast: y = (x - m) / max(s, median s), then y - mean(y).
///
/// m and s are the mean and the standard deviation around each pixel under a 13 x 13 Gaussian of sigma 3 x 1.591, with
/// the image mirrored at its border without repeating the edge pixel: m = w * x, s^2 = w * x^2 - m^2. The median is the
/// lower one (of an even number of values, the smaller of the middle two). Each channel and each depth slice is an
/// image of its own. A line, as an audio recording is, gets the one-dimensional window.
///
/// Two cases that the formula leaves open. Where more than half of the image is flat the median is 0; it is then taken
/// over the non-zero s, as in the widespread MATLAB code that the authors' arrays come from. A constant image becomes
/// zero; there, that code divides rounding errors by `eps`.
///
/// The way back, given what was kept of the image, is x = (y + mean(y)) max(s, median s) + m. A plane that became zero
/// comes back as it was, whatever its reconstruction: it has no contrast to which that could be scaled.
pub fn local_contrast_normalise<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    Step::Lcn.apply(sample.clone().cast()?, None)?.cast()
}

/// [`local_contrast_normalise`] in place.
pub(super) fn apply(sample: Sample<f64>, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let Some(undo) = undo else {
        return per_plane(sample, |_, plane, width| normalise_plane(plane, width, None));
    };
    let (mut factor, mut offset) = (vec![0.0; sample.data().len()], vec![0.0; sample.data().len()]);
    let sample = per_plane(sample, |start, plane, width| {
        let here = start..start + plane.len();
        normalise_plane(plane, width, Some(Back { factor: &mut factor[here.clone()], offset: &mut offset[here] }));
    })?;
    undo.keep(Kept::Add(offset));
    undo.keep(Kept::Multiply(factor));
    Ok(sample)
}

/// The way back, x = factor y + offset, of one (height, width) plane; both are zeros at first.
struct Back<'a> {
    factor: &'a mut [f64],
    offset: &'a mut [f64],
}

/// See [`local_contrast_normalise`].
fn normalise_plane(plane: &mut [f64], width: usize, mut back: Option<Back<'_>>) {
    if let Some(back) = &mut back {
        back.offset.copy_from_slice(plane);
    }
    // The result does not depend on the image's offset and scale. With both removed, a constant image is exactly zero,
    // s^2 loses the fewest digits to cancellation, and squares of large values do not overflow.
    let (low, high) = extremes(plane);
    let (centre, scale) = (low / 2.0 + high / 2.0, high / 2.0 - low / 2.0);
    if scale == 0.0 {
        return plane.fill(0.0);
    }
    for value in plane.iter_mut() {
        *value = (*value - centre) / scale;
    }
    let (window, height) = (gaussian(13, 3.0 * 1.591), plane.len() / width);
    let mut mean = vec![0.0; width];
    let mut means = RowMeans::new(height, width, &window, Border::Mirror);
    let mut deviation: Vec<f64> = plane.iter().map(|v| v * v).collect();
    let mut squares = RowMeans::new(height, width, &window, Border::Mirror);
    let mut square = vec![0.0; width];
    for y in 0..height {
        means.row(y, |from| &plane[from * width..][..width], &mut mean);
        squares.row(y, |from| &deviation[from * width..][..width], &mut square);
        for ((s, m), out) in square.iter().zip(&mean).zip(&mut deviation[y * width..][..width]) {
            // Below the rounding error of the two means, the variance is that of a flat neighbourhood: zero.
            let rounding = 4.0 * window.len() as f64 * f64::EPSILON * s;
            let variance = s - m * m;
            *out = if variance > rounding { variance.sqrt() } else { 0.0 };
        }
    }
    let floor = lower_median(deviation.clone())
        .filter(|&s| s > 0.0)
        .or_else(|| lower_median(deviation.iter().copied().filter(|&s| s > 0.0).collect()));
    let Some(floor) = floor else {
        return plane.fill(0.0);
    };
    let mut means = RowMeans::new(height, width, &window, Border::Mirror);
    for (y, deviation) in deviation.chunks(width).enumerate() {
        means.row(y, |from| &plane[from * width..][..width], &mut mean);
        for ((value, m), s) in plane[y * width..][..width].iter_mut().zip(&mean).zip(deviation) {
            *value = (*value - m) / s.max(floor);
        }
        if let Some(back) = &mut back {
            back.offset[y * width..][..width].copy_from_slice(&mean);
        }
    }
    let average = plane.iter().sum::<f64>() / plane.len() as f64;
    for value in plane {
        *value -= average;
    }
    if let Some(Back { factor, offset }) = back {
        for ((factor, offset), s) in factor.iter_mut().zip(offset).zip(&deviation) {
            *factor = scale * s.max(floor);
            *offset = centre + scale * *offset + average * *factor;
        }
    }
}

/// The middle value, or the smaller of the middle two; none of no values.
fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}
