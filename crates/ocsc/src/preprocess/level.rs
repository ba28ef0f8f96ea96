//! Mean and scale: the two numbers by which samples differ before their content does.

use super::undo::{Kept, Undo};
use crate::{Result, Sample};

/// y = x - mean(x) for each channel, over the values that were observed.
pub(super) fn subtract_mean(sample: Sample<f64>, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let (shape, mut data, mask) = sample.into_parts();
    let mut means = Vec::with_capacity(shape.channels);
    for (c, channel) in data.chunks_mut(shape.pixels()).enumerate() {
        let seen = |i: usize| mask.as_ref().is_none_or(|mask| mask[c * shape.pixels() + i]);
        let mean = mean(channel.iter().enumerate().filter(|(i, _)| seen(*i)).map(|(_, v)| *v));
        channel.iter_mut().for_each(|v| *v -= mean);
        means.push(mean);
    }
    if let Some(undo) = undo {
        undo.keep(Kept::Add(means));
    }
    Sample::with_mask(shape, data, mask)
}

/// y = x / `by`, or by the standard deviation of all values that were observed, in all channels.
///
/// One number for all channels keeps their proportions, and with them colours. A constant sample is divided by 1.
pub(super) fn divide(sample: Sample<f64>, by: Option<f64>, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let by = by.unwrap_or_else(|| match deviation(&sample) {
        s if s > 0.0 => s,
        _ => 1.0,
    });
    if let Some(undo) = undo {
        undo.keep(Kept::Multiply(vec![by]));
    }
    let (shape, mut data, mask) = sample.into_parts();
    data.iter_mut().for_each(|v| *v /= by);
    Sample::with_mask(shape, data, mask)
}

/// The mean, exact where all values are equal; zero of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut first, mut sum) = (0.0, 0.0, 0.0);
    for value in values {
        first = if count == 0.0 { value } else { first };
        // Differences of values at both ends of the range would overflow; their halves do not.
        sum += value / 2.0 - first / 2.0;
        count += 1.0;
    }
    if count == 0.0 { 0.0 } else { first + 2.0 * (sum / count) }
}

/// sqrt(mean((x - mean x)^2)) over the values that were observed, in units of the range, so that no square overflows.
fn deviation(sample: &Sample<f64>) -> f64 {
    let fold = |(low, high): (f64, f64), v: f64| (low.min(v), high.max(v));
    let (low, high) = sample.observed().fold((f64::INFINITY, f64::NEG_INFINITY), fold);
    let range = high / 2.0 - low / 2.0;
    if range == 0.0 {
        return 0.0;
    }
    let centre = mean(sample.observed());
    range * mean(sample.observed().map(|v| ((v - centre) / range).powi(2))).sqrt()
}
