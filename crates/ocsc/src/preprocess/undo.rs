//! The way back from the prepared domain to the original one.

use super::whiten::{self, Predictors};
use crate::{Error, Real, Result, Sample, Shape};

/// Holds what the steps took out of one sample, made by [`super::Preprocess::apply_undoable`]: it brings the reconstruction of
/// that sample back to the original domain.
///
/// Of two images with the same codes one may be dark and the other bright: what tells them apart was taken out before
/// coding and stands here. Applied to the prepared sample itself, it gives the original to rounding: the gray values if the
/// steps began with `gray`, and with its border blended if they ended with `taper`.
#[derive(Clone, Debug, PartialEq)]
pub struct Undo {
    /// Of the sample before and after the steps.
    shape: Shape,
    pub(super) prepared: Shape,
    /// In the order in which it was taken out.
    kept: Vec<Kept>,
}

/// What undoes an operation. Vectors hold one number for each value of the sample, or for each of as many runs of equal
/// length: one per channel, or one in all.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kept {
    /// y + this.
    Add(Vec<f64>),
    /// y times this.
    Multiply(Vec<f64>),
    /// The recursive filter of each channel's linear prediction.
    Predict(Vec<Predictors>),
}

impl Undo {
    /// For a sample of this shape; nothing was taken out yet.
    pub(super) fn new(shape: Shape) -> Self {
        Undo { shape, prepared: shape, kept: Vec::new() }
    }

    pub(super) fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    /// Brings `reconstruction`, of the prepared sample's shape, back to the original domain.
    pub fn apply<T: Real>(&self, reconstruction: Sample<T>) -> Result<Sample<T>> {
        let (found, mut data, mask) = reconstruction.cast::<f64>()?.into_parts();
        if found != self.prepared {
            return Err(Error::invalid("reconstruction", format!("{} as the original has", self.prepared), found));
        }
        // Slices that were channels lie where they lay.
        let shape = self.shape;
        for kept in self.kept.iter().rev() {
            match kept {
                Kept::Add(numbers) => in_runs(&mut data, numbers, |v, number| *v += number),
                Kept::Multiply(numbers) => in_runs(&mut data, numbers, |v, number| *v *= number),
                Kept::Predict(channels) => {
                    for (channel, predictors) in data.chunks_mut(shape.pixels()).zip(channels) {
                        whiten::synthesise(channel, predictors);
                    }
                }
            }
        }
        Sample::with_mask(shape, data, mask)?.cast()
    }
}

/// Calls `f` with every value and the number of its run.
fn in_runs(data: &mut [f64], numbers: &[f64], f: impl Fn(&mut f64, f64)) {
    let run = data.len() / numbers.len().max(1);
    for (values, number) in data.chunks_mut(run.max(1)).zip(numbers) {
        values.iter_mut().for_each(|v| f(v, *number));
    }
}
