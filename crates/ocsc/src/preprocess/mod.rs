//! What is done to a sample before it is coded, and the way back.
//!
//! A [`Preprocess`] is a list of [`Step`]s that a model records, so that new samples are prepared as the training samples
//! were. What a step takes out of a sample (its mean, its smooth part) is kept in an [`Undo`] on request, so that
//! reconstructions come back in the original domain.
//!
//! | step | y = | for | back |
//! |---|---|---|---|
//! | `gray` | 0.2989 R + 0.5870 G + 0.1140 B | colour images | to the gray values |
//! | `mean` | x - mean, per channel | anything | yes |
//! | `scale`, `scale=255` | x / standard deviation, or a number | anything | yes |
//! | `lowpass=5` | x - its Tikhonov low-pass part, per channel | anything | yes |
//! | `whiten=8` | the error of linear prediction, per channel | signals | yes |
//! | `lcn` | (x - local mean) / max(local deviation, its median), per plane | images | yes |
//! | `taper` | the border blended with a circularly blurred copy, per plane | images on a circle | the border stays blended |
//! | `per-channel` | x, its channels as slices of one channel | images, signals | yes |
//!
//! `gray,lcn,taper` is how the paper's authors prepared their images. A channel's depth slices are planes of their own.
//! Of masked samples, `gray`, `mean`, `scale`, `lowpass` and `lcn` see the observed values only, and `per-channel` sees none; `whiten` and
//! `taper` refuse them. Everything is computed in `f64` whatever the sample's scalar.

use crate::{Error, Real, Result, Sample, Shape};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

mod channels;
mod contrast;
mod gray;
mod level;
mod lowpass;
mod step;
mod taper;
mod undo;
mod whiten;
pub(crate) mod window;

pub use contrast::local_contrast_normalise;
pub use gray::gray;
pub use step::Step;
pub use taper::edge_taper;
pub use undo::Undo;

/// Holds a list of steps, written `gray,lowpass=5` or `none`, and `["gray", "lowpass=5"]` or `[]` in JSON and TOML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Step>", into = "Vec<Step>")]
pub struct Preprocess(Vec<Step>);

impl Preprocess {
    /// Takes any of the steps, each at most once: `gray` first, since gray values of what was normalised channel by channel are
    /// those of no image; `taper` last, since any other step would put the seam back, but for `per-channel`, which changes no value;
    /// the others in any order.
    pub fn new(steps: Vec<Step>) -> Result<Self> {
        let list = Preprocess(steps.into_iter().map(Step::check).collect::<Result<_>>()?);
        let stage = |step: &Step| match step {
            Step::Gray => 0,
            Step::Taper => 2,
            Step::PerChannel => 3,
            _ => 1,
        };
        let once = |name: &&str| list.0.iter().filter(|step| step.name() == *name).count() <= 1;
        if list.0.is_sorted_by_key(stage) && Step::NAMES.iter().all(once) {
            Ok(list)
        } else {
            Err(Error::invalid("preprocess", expected(), &list))
        }
    }

    /// Returns `gray,lcn,taper`: what the paper's authors did to their images.
    pub fn paper() -> Self {
        Preprocess(vec![Step::Gray, Step::Lcn, Step::Taper])
    }

    /// Returns `lowpass,scale`: colours stay, smooth shading is left out, and one beta suits any contrast.
    pub fn images() -> Self {
        Preprocess(vec![Step::Lowpass(step::LAMBDA), Step::Scale(None)])
    }

    /// Returns the steps, in the order in which they are applied.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Returns whether [`Undo`] leads back to the [`Preprocess::original`]: not if there is a taper.
    pub fn has_inverse(&self) -> bool {
        self.0.iter().all(|step| step.has_inverse())
    }

    /// Returns how many pixels at every end stay blended on the way back: those of a taper.
    pub fn blended_border(&self) -> usize {
        if self.0.contains(&Step::Taper) { taper::BORDER } else { 0 }
    }

    /// Applies the steps one after the other; between them values stay in `f64`. Without steps, returns the sample.
    pub fn apply<T: Real>(&self, sample: Sample<T>) -> Result<Sample<T>> {
        if self.0.is_empty() {
            return Ok(sample);
        }
        let weights = sample.clone_weights();
        // By value: a large sample is worked on in place.
        let mut wide: Sample<f64> = sample.cast()?;
        for step in &self.0 {
            wide = step.apply(wide, None)?;
        }
        wide.cast::<T>()?.with_weights_of(&weights)
    }

    /// Does what [`Preprocess::apply`] does, and returns what brings the result, or a reconstruction of it, back: it takes up
    /// to three times the memory of the sample in `f64`.
    pub fn apply_undoable<T: Real>(&self, sample: Sample<T>) -> Result<(Sample<T>, Undo)> {
        let weights = sample.clone_weights();
        let mut wide: Sample<f64> = self.original(sample.cast()?)?;
        let mut undo = Undo::new(wide.shape());
        for step in &self.0 {
            wide = step.apply(wide, Some(&mut undo))?;
        }
        undo.prepared = wide.shape();
        Ok((wide.cast::<T>()?.with_weights_of(&weights)?, undo))
    }

    /// Returns where the way back ends: the sample itself, or its gray values if the steps make it gray.
    pub fn original<T: Real>(&self, sample: Sample<T>) -> Result<Sample<T>> {
        let to_gray = self.0.contains(&Step::Gray) && sample.shape().channels != 1;
        if to_gray { gray(&sample) } else { Ok(sample) }
    }

    /// Returns whether the channels become slices, so that codes have the channel as their first axis.
    pub fn is_per_channel(&self) -> bool {
        self.0.contains(&Step::PerChannel)
    }

    /// Returns the spatial axes of codes, for filters of so many axes: one more where channels are coded by themselves.
    pub fn code_rank(&self, rank: usize) -> usize {
        rank + usize::from(self.is_per_channel())
    }

    /// Returns the shape of a sample of this shape after the steps.
    pub fn shape(&self, shape: Shape) -> Shape {
        let gray = Shape { channels: if self.0.contains(&Step::Gray) { 1 } else { shape.channels }, ..shape };
        if self.is_per_channel() { channels::apart_shape(gray) } else { gray }
    }

    /// Returns a prepared sample of so many axes, or a reconstruction of one, with its channels where they were before the steps.
    /// Its values stay prepared.
    pub fn with_channels<T: Real>(&self, sample: Sample<T>, rank: usize) -> Sample<T> {
        if self.is_per_channel() { channels::together(sample, rank) } else { sample }
    }

    /// Says what the steps do, in words; `none` if there are none.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|step| step.words()).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    }
}

/// What would be accepted, for messages.
fn expected() -> String {
    let names = Step::NAMES.join(", ");
    format!(
        "none, or steps of {names}, each at most once, gray first and taper last, but for per-channel; numbers as lowpass=5"
    )
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
        Preprocess::new(text.split(',').map(Step::from_str).collect::<Result<_>>()?)
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

/// The smallest and the largest value.
fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
}

/// Runs `step(first, plane, width)` on every (height, width) plane of a sample without mask, `first` the place of its
/// first value in the sample.
fn per_plane(sample: Sample<f64>, mut step: impl FnMut(usize, &mut [f64], usize)) -> Result<Sample<f64>> {
    let shape = sample.shape();
    let mut data = sample.into_data();
    let area = shape.height * shape.width;
    for (i, plane) in data.chunks_mut(area).enumerate() {
        step(i * area, plane, shape.width);
    }
    Sample::new(shape, data)
}

impl crate::setting::HasKind for Preprocess {
    const KIND: crate::setting::Kind = crate::setting::Kind::Text;
}
