//! Observers see a run and may stop it; they cannot change it.

use crate::learner::{Learner, Step};
use crate::train::{Evaluation, Outcome, Progress};
use crate::{Error, Real, Result};
use std::ops::ControlFlow;

/// Watches a run. Every method does nothing by default; `Break` ends the run after the current step.
pub trait Observer<T: Real> {
    /// After every step; the last one of a pass comes after a batch method's update.
    fn step(&mut self, _run: &Moment<'_, T>, _step: &Step<T>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// After every pass over the samples.
    fn pass(&mut self, _run: &Moment<'_, T>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// A sample cannot be used and is passed over; the error names it. Told once for a sample to learn from.
    fn skipped(&mut self, _error: &Error) -> Result<()> {
        Ok(())
    }

    /// Once, at the end.
    fn end(&mut self, _run: &Moment<'_, T>, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }
}

/// A run at one moment.
pub struct Moment<'a, T: Real> {
    /// Where the run is, and how long it has been learning.
    pub progress: &'a Progress,
    /// The learner, to look at or to save.
    pub learner: &'a dyn Learner<T>,
    /// The test set's evaluation, if it was evaluated just now.
    pub test: Option<&'a Evaluation>,
}

/// An observer that does nothing.
pub struct Silent;

impl<T: Real> Observer<T> for Silent {}
