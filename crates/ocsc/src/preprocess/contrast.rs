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
    let window = gaussian(13, 3.0 * 1.591);
    let Some(floor) = typical_deviation(plane, width, &window) else {
        return plane.fill(0.0);
    };
    // The deviations are made once more instead of kept: a plane of a large photo has many.
    let mut local = Local::new(plane.len() / width, width, &window);
    for y in 0..plane.len() / width {
        local.go_to(y, plane);
        let here = y * width..(y + 1) * width;
        for ((value, m), s) in plane[here.clone()].iter_mut().zip(&local.mean).zip(&local.deviation) {
            *value = (*value - m) / s.max(floor);
        }
        if let Some(back) = &mut back {
            back.offset[here.clone()].copy_from_slice(&local.mean);
            back.factor[here].iter_mut().zip(&local.deviation).for_each(|(factor, s)| *factor = scale * s.max(floor));
        }
    }
    let average = plane.iter().sum::<f64>() / plane.len() as f64;
    for value in plane {
        *value -= average;
    }
    if let Some(Back { factor, offset }) = back {
        for (factor, offset) in factor.iter().zip(offset) {
            *offset = centre + scale * *offset + average * *factor;
        }
    }
}

/// Mean and deviation around the pixels of one row.
struct Local<'a> {
    means: RowMeans<'a>,
    squares: RowMeans<'a>,
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// The rounding error of a variance, relative to the mean square.
    rounding: f64,
}

impl<'a> Local<'a> {
    fn new(height: usize, width: usize, window: &'a [f64]) -> Self {
        let means = || RowMeans::new(height, width, window, Border::Mirror);
        let row = || vec![0.0; width];
        let rounding = 4.0 * window.len() as f64 * f64::EPSILON;
        Local { means: means(), squares: means(), mean: row(), deviation: row(), rounding }
    }

    /// Goes to a row; rows come from the first to the last, and those before it may have changed.
    fn go_to(&mut self, y: usize, plane: &[f64]) {
        let width = self.mean.len();
        self.means.row(y, |y, x| plane[y * width + x], &mut self.mean);
        self.squares.row(y, |y, x| plane[y * width + x].powi(2), &mut self.deviation);
        for (s, m) in self.deviation.iter_mut().zip(&self.mean) {
            // Below the rounding error of the two means, the variance is that of a flat neighbourhood: zero.
            let variance = *s - m * m;
            *s = if variance > self.rounding * *s { variance.sqrt() } else { 0.0 };
        }
    }
}

/// The lower median of the deviations around all pixels, or of those that are not zero; none if all are zero.
fn typical_deviation(plane: &[f64], width: usize, window: &[f64]) -> Option<f64> {
    let pass = |take: &mut dyn FnMut(f64)| {
        let mut local = Local::new(plane.len() / width, width, window);
        for y in 0..plane.len() / width {
            local.go_to(y, plane);
            local.deviation.iter().for_each(|s| take(*s));
        }
    };
    let median = ranked((plane.len() - 1) / 2, plane.len(), SMALL, pass);
    if median > 0.0 {
        return Some(median);
    }
    let mut zeros = 0;
    pass(&mut |s| zeros += usize::from(s == 0.0));
    let positive = plane.len().checked_sub(zeros + 1)?;
    Some(ranked(zeros + positive / 2, plane.len(), SMALL, pass))
}

/// The most pixels that a median keeps: of a larger image it keeps those near it.
const SMALL: usize = 1 << 18;
/// Where the bits of a number are cut for counting: exponent and six bits of the mantissa first, which tell values apart that differ by
/// two percent.
const CUTS: [u32; 4] = [46, 30, 15, 0];

/// The value of a rank, from 0, among `n` values that are not negative. `pass` hands them out, the same whenever it is called. No
/// more than `small` of them are kept at a time: before that, those with the same first bits are counted. Bits of numbers that
/// are not negative are in the numbers' order.
fn ranked(mut rank: usize, mut n: usize, small: usize, pass: impl Fn(&mut dyn FnMut(f64))) -> f64 {
    // Bits that the value begins with, as an integer, and how many bits follow.
    let (mut known, mut after) = (0, f64::MANTISSA_DIGITS + 11);
    let begins = |value: f64, known: u64, after: u32| value.to_bits().checked_shr(after).unwrap_or(0) == known;
    for cut in CUTS {
        if n <= small {
            let mut values = Vec::with_capacity(n);
            pass(&mut |value| values.extend(begins(value, known, after).then_some(value)));
            return *values.select_nth_unstable_by(rank, f64::total_cmp).1;
        }
        let width = after - cut;
        let mut counts = vec![0; 1 << width];
        pass(&mut |value| {
            if begins(value, known, after) {
                counts[(value.to_bits() >> cut) as usize & ((1 << width) - 1)] += 1;
            }
        });
        let mut digit = 0;
        while counts[digit] <= rank {
            rank -= counts[digit];
            digit += 1;
        }
        known = known << width | digit as u64;
        (n, after) = (counts[digit], cut);
    }
    f64::from_bits(known)
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
    fn ranks_are_found_whatever_is_kept() {
        // Many that differ in their last bits alone, equal ones, and zeros.
        let values: Vec<f64> =
            (0..999).map(|i| if i % 4 == 0 { 0.0 } else { 1.0 + (i * 7 % 50) as f64 * 1e-9 }).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        for rank in [0, 100, 249, 250, 251, 500, 777, 998] {
            for small in [0, 100, 800, 10_000] {
                let pass = |take: &mut dyn FnMut(f64)| values.iter().for_each(|v| take(*v));
                assert_eq!(ranked(rank, values.len(), small, pass), sorted[rank]);
            }
        }
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
