//! Local contrast normalisation: every neighbourhood to mean zero and the same deviation.

use super::undo::{Kept, Undo};
use super::window::{Border, RowMeans, gaussian, local_mean};
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
///
/// Where only some values were observed, means are those of what was: w * (W x) / (w * W) with W = 1 for an observed value and
/// 0 for others (normalised convolution, Knutsson and Westin 1993), and median and mean(y) are over what was observed. Around
/// places without any, m is the mean of all and s the median.
pub fn local_contrast_normalise<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    Step::Lcn.apply(sample.clone().cast()?, None)?.cast()
}

/// [`local_contrast_normalise`] in place.
pub(super) fn apply(sample: Sample<f64>, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    if sample.mask().is_some() {
        return apply_masked(sample, undo);
    }
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

/// The same of a sample of which some values were observed.
fn apply_masked(sample: Sample<f64>, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let (shape, mut data, mask) = sample.into_parts();
    let seen = mask.as_deref().unwrap_or(&[]);
    let (mut factor, mut offset) = (vec![0.0; data.len()], data.clone());
    let area = shape.height * shape.width;
    for first in (0..data.len()).step_by(area) {
        let here = first..first + area;
        let back = Back { factor: &mut factor[here.clone()], offset: &mut offset[here.clone()] };
        normalise_masked_plane(&mut data[here.clone()], &seen[here], shape.width, back);
    }
    if let Some(undo) = undo {
        undo.keep(Kept::Add(offset));
        undo.keep(Kept::Multiply(factor));
    }
    Sample::with_mask(shape, data, mask)
}

fn normalise_masked_plane(plane: &mut [f64], seen: &[bool], width: usize, back: Back<'_>) {
    let observed =
        |values: &[f64]| -> Vec<f64> { values.iter().zip(seen).filter(|(_, seen)| **seen).map(|(v, _)| *v).collect() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (low, high) = extremes(&observed(plane));
    let scale = high / 2.0 - low / 2.0;
    // Also where nothing was observed.
    if scale.is_nan() || scale <= 0.0 {
        back.offset.fill(if scale == 0.0 { low } else { 0.0 });
        return plane.fill(0.0);
    }
    // With their mean taken out, zeros are the best guess of what was not observed.
    let centre = mean(&observed(plane));
    for (value, seen) in plane.iter_mut().zip(seen) {
        *value = if *seen { (*value - centre) / scale } else { 0.0 };
    }
    let window = gaussian(13, 3.0 * 1.591);
    let local = |values: &[f64]| local_mean(values, width, &window, Border::Mirror);
    let weights = local(&seen.iter().map(|seen| f64::from(u8::from(*seen))).collect::<Vec<_>>());
    let divided = |sums: Vec<f64>| -> Vec<f64> {
        sums.iter().zip(&weights).map(|(sum, weight)| if *weight > NOTHING { sum / weight } else { 0.0 }).collect()
    };
    let means = divided(local(plane));
    let squares = divided(local(&plane.iter().map(|v| v * v).collect::<Vec<_>>()));
    let deviation: Vec<f64> = squares.iter().zip(&means).map(|(s, m)| (s - m * m).max(0.0).sqrt()).collect();
    let positive = |values: Vec<f64>| values.into_iter().filter(|s| *s > 0.0).collect::<Vec<f64>>();
    let floor = lower_median(observed(&deviation))
        .filter(|s| *s > 0.0)
        .or_else(|| lower_median(positive(observed(&deviation))));
    let floor = floor.unwrap_or(1.0);
    for (i, value) in plane.iter_mut().enumerate() {
        *value = (*value - means[i]) / deviation[i].max(floor);
    }
    let average = mean(&observed(plane));
    for (i, value) in plane.iter_mut().enumerate() {
        *value = if seen[i] { *value - average } else { 0.0 };
        back.factor[i] = scale * deviation[i].max(floor);
        back.offset[i] = centre + scale * means[i] + average * back.factor[i];
    }
}

/// Weights of observed values below this are rounding errors.
const NOTHING: f64 = 1e-12;

/// The middle value, or the smaller of the middle two; none of no values.
fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn value(i: usize) -> f64 {
        3.0 + (0.21 * i as f64).sin() + 0.5 * (0.037 * (i * i % 1009) as f64).cos()
    }

    #[test]
    fn a_mask_that_hides_nothing_changes_nothing_and_the_way_back_is_whole() {
        let shape = Shape::image(25, 31);
        let x: Vec<f64> = (0..shape.len()).map(value).collect();
        let whole = apply(Sample::new(shape, x.clone()).unwrap(), None).unwrap();
        let masked = apply(Sample::masked(shape, x.clone(), vec![true; shape.len()]).unwrap(), None).unwrap();
        let worst = whole.data().iter().zip(masked.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-9, "{worst}");
        let seen: Vec<bool> = (0..shape.len()).map(|i| i % 3 != 0 && !(100..250).contains(&i)).collect();
        let sample = Sample::masked(shape, x.clone(), seen.clone()).unwrap();
        let mut undo = Undo::new(shape);
        let prepared = apply(sample, Some(&mut undo)).unwrap();
        let back = undo.apply(prepared).unwrap();
        let pairs = back.data().iter().zip(&x).zip(&seen).filter(|(_, seen)| **seen);
        assert!(pairs.map(|((a, b), _)| (a - b).abs()).fold(0.0, f64::max) < 1e-9);
        // What was not observed comes back as the mean around it.
        let zeros = undo.apply(Sample::new(shape, vec![0.0; shape.len()]).unwrap()).unwrap();
        assert!(zeros.data().iter().all(|v| (1.5..4.5).contains(v)));
    }

    #[test]
    fn planes_without_contrast_or_values_become_zero() {
        let shape = Shape { channels: 2, ..Shape::image(4, 5) };
        // Of the first plane nothing was observed, and what was of the second is constant.
        let seen: Vec<bool> = (0..40).map(|i| i >= 20 && i % 2 == 0).collect();
        let mut undo = Undo::new(shape);
        let prepared = apply(Sample::masked(shape, vec![7.0; 40], seen).unwrap(), Some(&mut undo)).unwrap();
        assert!(prepared.data().iter().all(|v| *v == 0.0));
        let back = undo.apply(Sample::new(shape, vec![0.0; 40]).unwrap()).unwrap();
        assert!(back.data()[..20].iter().all(|v| *v == 0.0) && back.data()[20..].iter().all(|v| *v == 7.0));
    }
}
