//! What is done to an image before it is coded: grayscale, local contrast normalisation, edge taper.
//!
//! These are the three steps by which the paper's authors prepared their images, in this order:
//!
//! - [`gray`]: g = 0.2989 R + 0.5870 G + 0.1140 B, with MATLAB's unrounded weights;
//! - [`local_contrast_normalise`]: (g - local mean) / max(local standard deviation, its median), then zero mean;
//! - [`edge_taper`]: blends the border with a circularly blurred copy, so that the circle on which filters wrap around
//!   has no seam.
//!
//! Every step works on one (height, width) plane at a time, in `f64` whatever the sample's scalar. A [`Preprocess`] is
//! a list of steps that a model records, so that new samples are prepared as the training samples were.

use crate::{Error, Real, Result, Sample, Shape};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use window::{Border, RowMeans, gaussian};

pub(crate) mod window;

/// The luminance weights that MATLAB's `rgb2gray` computes with: the first row of the inverse of its YIQ matrix, which
/// its documentation rounds to 0.2989, 0.5870, 0.1140. With them the authors' arrays come out to 5e-7, with the rounded
/// ones to 5e-5.
const LUMINANCE: [f64; 3] = [0.298_936_021_293_776, 0.587_043_074_451_121, 0.114_020_904_255_103];

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// [`gray`].
    Gray,
    /// [`local_contrast_normalise`].
    Lcn,
    /// [`edge_taper`].
    Taper,
}

impl Step {
    /// Every step, in the order in which they are applied.
    pub const ALL: [Step; 3] = [Step::Gray, Step::Lcn, Step::Taper];

    /// The step's name in options and model files.
    pub fn name(self) -> &'static str {
        match self {
            Step::Gray => "gray",
            Step::Lcn => "lcn",
            Step::Taper => "taper",
        }
    }

    fn apply(self, sample: Sample<f64>) -> Result<Sample<f64>> {
        match self {
            Step::Gray if sample.shape().channels == 1 => Ok(sample),
            Step::Gray => gray(&sample),
            Step::Lcn => per_plane(sample, normalise_plane),
            Step::Taper => per_plane(sample, taper_plane),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A list of steps, written `gray,lcn,taper` or `none`, and `["gray", "lcn", "taper"]` or `[]` in JSON and TOML.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Step>", into = "Vec<Step>")]
pub struct Preprocess(Vec<Step>);

impl Preprocess {
    /// What would be accepted, for messages.
    const EXPECTED: &str = "none, or some of gray, lcn, taper, each at most once and in this order";

    /// Any of the steps, each at most once and in the order of [`Step::ALL`]: gray values after the normalisation
    /// would no longer be normalised, and a normalisation after the taper would undo the taper.
    pub fn new(steps: Vec<Step>) -> Result<Self> {
        let list = Preprocess(steps);
        if list.0.is_sorted_by(|a, b| a < b) {
            Ok(list)
        } else {
            Err(Error::invalid("preprocess", Self::EXPECTED, &list))
        }
    }

    /// All three steps: what the paper's authors did to their images.
    pub fn images() -> Self {
        Preprocess(Step::ALL.to_vec())
    }

    /// The steps, in the order in which they are applied.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Applies the steps one after the other; between them values stay in `f64`. Without steps, returns the sample.
    pub fn apply<T: Real>(&self, sample: Sample<T>) -> Result<Sample<T>> {
        if self.0.is_empty() {
            return Ok(sample);
        }
        // By value: a large sample is worked on in place.
        let mut wide: Sample<f64> = sample.cast()?;
        for step in &self.0 {
            wide = step.apply(wide)?;
        }
        wide.cast()
    }
}

impl TryFrom<Vec<Step>> for Preprocess {
    type Error = Error;
    fn try_from(steps: Vec<Step>) -> Result<Self> {
        Preprocess::new(steps)
    }
}

impl From<Preprocess> for Vec<Step> {
    fn from(preprocess: Preprocess) -> Self {
        preprocess.0
    }
}

impl FromStr for Preprocess {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        if text.trim() == "none" {
            return Ok(Preprocess::default());
        }
        let step = |name: &str| Step::ALL.into_iter().find(|s| s.name() == name.trim());
        let steps: Option<Vec<Step>> = text.split(',').map(step).collect();
        Preprocess::new(steps.ok_or_else(|| Error::invalid("preprocess", Self::EXPECTED, format!("`{text}`")))?)
    }
}

impl fmt::Display for Preprocess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, step) in self.0.iter().enumerate() {
            write!(f, "{}{step}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Gray values g = 0.2989 R + 0.5870 G + 0.1140 B with unrounded weights, and themselves unrounded.
///
/// Three channels become one; a sample of one channel passes unchanged; any other number is refused, since the library
/// cannot know which of two or four channels is an opacity (readers drop it). Values are expected in \[0, 1\] but not
/// forced there: the step is linear.
pub fn gray<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    let shape = sample.shape();
    match shape.channels {
        1 => Ok(sample.clone()),
        3 => {
            let (red, rest) = sample.data().split_at(shape.pixels());
            let (green, blue) = rest.split_at(shape.pixels());
            let [r, g, b] = LUMINANCE;
            let luminance = |((x, y), z): ((&T, &T), &T)| T::of(r * x.f64() + g * y.f64() + b * z.f64());
            let data = red.iter().zip(green).zip(blue).map(luminance).collect();
            Sample::new(Shape { channels: 1, ..shape }, data)
        }
        n => Err(Error::invalid("gray", "1 channel (gray) or 3 (red, green, blue)", format!("{n} channels"))),
    }
}

/// Local contrast normalisation: y = (x - m) / max(s, median s), then y - mean(y).
///
/// m and s are the mean and the standard deviation around each pixel under a 13 x 13 Gaussian of sigma 3 x 1.591, with
/// the image mirrored at its border without repeating the edge pixel: m = w * x, s^2 = w * x^2 - m^2. The median is the
/// lower one (of an even number of values, the smaller of the middle two). Each channel and each depth slice is an
/// image of its own. A line, as an audio recording is, gets the one-dimensional window.
///
/// Two cases that the formula leaves open. Where more than half of the image is flat the median is 0; it is then taken
/// over the non-zero s, as in the widespread MATLAB code that the authors' arrays come from. A constant image becomes
/// zero; there, that code divides rounding errors by `eps`.
pub fn local_contrast_normalise<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    Step::Lcn.apply(sample.clone().cast()?)?.cast()
}

/// MATLAB's `edgetaper` with an 11 x 11 Gaussian w of sigma 11/3: J = a I + (1 - a) (w * I), w * I circular.
///
/// The weight of the image is a(i, j) = (1 - z_H(i)) (1 - z_W(j)), where z_n is the circular autocorrelation of w's
/// projection on one axis, with period n - 1, scaled to the maximum 1, and its first value repeated as the last. So a
/// is 0 on the frame and 1 beyond the outer 11 pixels, which keep their values bit for bit. The result stays in the
/// range of I. Each channel and each depth slice is an image of its own.
///
/// MATLAB refuses images of at most 22 pixels on an axis. Here the autocorrelation of a shorter axis is wrapped onto
/// its period (`fft` would first truncate w), which is the same formula continued; an axis of length 1 is absent and
/// has no edges: a = 1 along it.
pub fn edge_taper<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    Step::Taper.apply(sample.clone().cast()?)?.cast()
}

/// See [`edge_taper`].
fn taper_plane(plane: &mut [f64], width: usize) {
    let (window, height) = (gaussian(11, 11.0 / 3.0), plane.len() / width);
    let (rows, columns) = (taper_weights(height, &window), taper_weights(width, &window));
    let (low, high) = extremes(plane);
    let mut means = RowMeans::new(height, width, &window, Border::Circular);
    let mut blurred = vec![0.0; width];
    for (y, row_weight) in rows.iter().enumerate() {
        means.row(y, |from| &plane[from * width..][..width], &mut blurred);
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

/// See [`local_contrast_normalise`].
fn normalise_plane(plane: &mut [f64], width: usize) {
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
    }
    let average = plane.iter().sum::<f64>() / plane.len() as f64;
    for value in plane {
        *value -= average;
    }
}

/// The middle value, or the smaller of the middle two; none of no values.
fn lower_median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The smallest and the largest value.
fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
}

/// Runs `step(plane, width)` on every (height, width) plane of the sample.
fn per_plane(sample: Sample<f64>, step: impl Fn(&mut [f64], usize)) -> Result<Sample<f64>> {
    let shape = sample.shape();
    let mut data = sample.into_data();
    for plane in data.chunks_mut(shape.height * shape.width) {
        step(plane, shape.width);
    }
    Sample::new(shape, data)
}
