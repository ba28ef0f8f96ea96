//! Observers see a run and may stop it; they cannot change it. An [`Observer`] is told of steps and passes, its [`Monitor`] of
//! what goes on within them.

use super::{Evaluation, Outcome, Progress};
use crate::coder::Coded;
use crate::learner::{Learner, Step};
use crate::monitor::{Monitor, Silent};
use crate::{Error, Real, Result, Sample};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Watches a run. Every method does nothing by default; `Break` ends the run after the current step.
pub trait Observer<T: Real> {
    /// After samples were learned from, before an evaluation and [`Observer::step`]: the only moment at which they are seen.
    fn learned(&mut self, _learned: &Learned<'_, T>) {}

    /// After every step; the last one of a pass comes after a batch method's update.
    fn step(&mut self, _run: &Snapshot<'_, T>, _step: &Step<T>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// After every pass over the samples.
    fn pass(&mut self, _run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    /// The test set is evaluated next: a good moment to save the run, as that may take long. `step` is the one just made, which
    /// [`Observer::step`] is told of afterwards; none at the end of a pass or of the run.
    fn before_test(&mut self, _run: &Snapshot<'_, T>, _step: Option<&Step<T>>) -> Result<()> {
        Ok(())
    }

    /// Of the test set, or of a team member's part of it, `done` samples were evaluated.
    fn testing(&mut self, _done: usize, _of: usize) {}

    /// What looks into steps and evaluations, from other threads; by default nobody does.
    fn monitor(&self) -> Arc<dyn Monitor> {
        Arc::new(Silent)
    }

    /// Something that the run could not have as it should be; it goes on without.
    fn notice(&mut self, _message: &str) {}

    /// A sample cannot be used and is passed over; the error names it. Told once for a sample to learn from, also if it
    /// was cut to pieces.
    fn skipped(&mut self, _error: &Error) -> Result<()> {
        Ok(())
    }

    /// Once, at the end.
    fn end(&mut self, _run: &Snapshot<'_, T>, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }
}

/// The samples of a step, with their codes: of a team, those of this member.
#[non_exhaustive]
pub struct Learned<'a, T: Real> {
    /// The samples as they were learned from, after preprocessing.
    pub samples: &'a [Sample<T>],
    /// Their numbers in the data set, or in their pass of a stream.
    pub numbers: &'a [usize],
    /// Their codes against the dictionary before the update.
    pub codes: &'a [Coded<T>],
    /// The learner after the update.
    pub learner: &'a dyn Learner<T>,
}

/// A run at one moment.
pub struct Snapshot<'a, T: Real> {
    /// Where the run is, and how long it has been learning.
    pub progress: &'a Progress,
    /// The learner, to look at or to save.
    pub learner: &'a dyn Learner<T>,
    /// The test set's evaluation, if it was evaluated just now.
    pub test: Option<&'a Evaluation>,
}

impl<T: Real> Observer<T> for Silent {}
