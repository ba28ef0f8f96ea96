//! One preprocessing step: its name, its number, and what it does.

use super::undo::Undo;
use super::{channels, contrast, gray, level, lowpass, taper, whiten};
use crate::{Error, Result, Sample};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names one step, written as its name, or as `name=number`.
///
/// In the formulas x is the sample before the step and y after it. The way back is that of [`super::Undo`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Step {
    /// `gray`: see [`gray`](super::gray()). Colours do not come back.
    Gray,
    /// `mean`: y = x - mean(x), for each channel. The mean is added on the way back.
    Mean,
    /// `scale`: y = x / s with s the standard deviation of the whole sample, all channels together, so that one beta
    /// suits samples of any loudness or contrast; or with a fixed number, `scale=255`. Back: times s.
    ///
    /// A constant sample has no deviation, and stays as it is.
    Scale(Option<f64>),
    /// `lowpass=LAMBDA`, by default 5: y = x - low, for each channel, where
    ///
    /// ```text
    /// low = argmin over l   1/2 || l - x ||^2 + lambda/2 sum_i || G_i l ||^2
    /// ```
    ///
    /// and G_i is the difference of neighbours along the depth, the height or the width: the Tikhonov split that is usual
    /// with SPORCO (`signal.tikhonov_filter`), in one to three dimensions. Ends are continued by 16 mirrored values. Details
    /// finer than about 2 pi sqrt(lambda) values are coded; the smooth rest is added on the way back.
    Lowpass(f64),
    /// `whiten=ORDER`, by default 8, for signals: the error of predicting each value from the ORDER values before it,
    ///
    /// ```text
    /// y_t = x_t - mean - sum_k a_k (x_{t-k} - mean)
    /// ```
    ///
    /// with Burg's coefficients a of each channel, which levels the spectrum. Values near the beginning, which have a
    /// shorter past, are predicted from what they have and scaled to the same deviation. Back: the recursive filter,
    /// which Burg's method makes stable.
    Whiten(usize),
    /// `lcn`: see [`super::local_contrast_normalise`], which gives the way back.
    Lcn,
    /// `taper`: see [`super::edge_taper`]. It has no inverse; on the way back the border stays blended.
    Taper,
    /// `per-channel`, the last step: the channels of an image or a signal become slices of one channel, so that gray filters are
    /// used on every channel by itself, and codes have the channel as their first axis. Back: slices become channels.
    PerChannel,
}

/// The smoothness that SPORCO's examples use.
pub(super) const LAMBDA: f64 = 5.0;
/// Enough for four peaks of the spectrum.
const ORDER: usize = 8;
/// More would be slow and predict noise.
const MAX_ORDER: usize = 256;

impl Step {
    /// Lists the names of all steps.
    pub const NAMES: [&str; 8] = ["gray", "mean", "scale", "lowpass", "whiten", "lcn", "taper", "per-channel"];

    /// Returns the step's name, without its number.
    pub fn name(self) -> &'static str {
        match self {
            Step::Gray => "gray",
            Step::Mean => "mean",
            Step::Scale(_) => "scale",
            Step::Lowpass(_) => "lowpass",
            Step::Whiten(_) => "whiten",
            Step::Lcn => "lcn",
            Step::Taper => "taper",
            Step::PerChannel => "per-channel",
        }
    }

    /// Says what it does, in words.
    pub fn words(self) -> String {
        match self {
            Step::Gray => "gray values".to_owned(),
            Step::Mean => "minus the mean of each channel".to_owned(),
            Step::Scale(None) => "divided by the standard deviation".to_owned(),
            Step::Scale(Some(by)) => format!("divided by {by}"),
            Step::Lowpass(lambda) => format!("minus the Tikhonov low-pass part of lambda {lambda}"),
            Step::Whiten(order) => format!("whitened by linear prediction of order {order}"),
            Step::Lcn => "local contrast normalisation".to_owned(),
            Step::Taper => "edge taper".to_owned(),
            Step::PerChannel => "each channel by itself".to_owned(),
        }
    }

    /// Returns whether the sample before the step comes back from the sample after it and an [`Undo`]. Of `gray` this is said
    /// too: its gray values count as the original.
    pub fn has_inverse(self) -> bool {
        self != Step::Taper
    }

    /// Returns whether the step takes masked samples: it sees observed values only.
    pub fn takes_masks(self) -> bool {
        !matches!(self, Step::Whiten(_) | Step::Taper)
    }

    /// Refuses numbers that the mathematics cannot take.
    pub(super) fn check(self) -> Result<Self> {
        let (expected, found) = match self {
            Step::Scale(Some(number)) | Step::Lowpass(number) if !(number.is_finite() && number > 0.0) => {
                ("a finite number above 0".to_owned(), number.to_string())
            }
            Step::Whiten(order) if !(1..=MAX_ORDER).contains(&order) => {
                (format!("a whole number from 1 to {MAX_ORDER}"), order.to_string())
            }
            _ => return Ok(self),
        };
        Err(Error::invalid(format!("preprocess: {}", self.name()), expected, found))
    }

    /// Applies the step, and tells `undo` what it takes out.
    pub(super) fn apply(self, sample: Sample<f64>, undo: Option<&mut Undo>) -> Result<Sample<f64>> {
        let sample = self.unmasked(sample)?;
        match self {
            Step::Gray if sample.shape().channels == 1 => Ok(sample),
            Step::Gray => gray::gray(&sample),
            Step::Mean => level::subtract_mean(sample, undo),
            Step::Scale(by) => level::divide(sample, by, undo),
            Step::Lowpass(lambda) => lowpass::apply(sample, lambda, undo),
            Step::Whiten(order) => whiten::apply(sample, order, undo),
            Step::Lcn => contrast::apply(sample, undo),
            Step::Taper => taper::apply(sample),
            Step::PerChannel => channels::apart(sample),
        }
    }

    /// Refuses masked samples where zeros in the place of unobserved values would leak into their neighbours.
    fn unmasked(self, sample: Sample<f64>) -> Result<Sample<f64>> {
        if sample.mask().is_none() || self.takes_masks() {
            return Ok(sample);
        }
        let found = format!("a mask by which {} of {} values were observed", sample.n_observed(), sample.data().len());
        let expected = "a sample without a mask (gray, mean, scale, lowpass and lcn take masked ones)";
        Err(Error::invalid(format!("the step `{}`", self.name()), expected, found))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Step::Scale(Some(number)) | Step::Lowpass(number) => write!(f, "={number}"),
            Step::Whiten(order) => write!(f, "={order}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Step {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let (name, number) = match text.split_once('=') {
            Some((name, number)) => (name.trim(), Some(number.trim())),
            None => (text.trim(), None),
        };
        let step = match (name, number) {
            ("gray", None) => Step::Gray,
            ("mean", None) => Step::Mean,
            ("scale", None) => Step::Scale(None),
            ("scale", Some(number)) => Step::Scale(Some(parsed(name, number)?)),
            ("lowpass", None) => Step::Lowpass(LAMBDA),
            ("lowpass", Some(number)) => Step::Lowpass(parsed(name, number)?),
            ("whiten", None) => Step::Whiten(ORDER),
            ("whiten", Some(number)) => Step::Whiten(parsed(name, number)?),
            ("lcn", None) => Step::Lcn,
            ("taper", None) => Step::Taper,
            ("per-channel", None) => Step::PerChannel,
            _ => return Err(Error::invalid("preprocess", super::expected(), format!("`{}`", text.trim()))),
        };
        step.check()
    }
}

/// The number of a step.
fn parsed<N: FromStr>(name: &str, number: &str) -> Result<N> {
    number.parse().map_err(|_| Error::invalid(format!("preprocess: {name}"), "a number", format!("`{number}`")))
}

impl TryFrom<String> for Step {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Step> for String {
    fn from(step: Step) -> Self {
        step.to_string()
    }
}
