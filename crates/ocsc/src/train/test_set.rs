//! When the test set is evaluated, and what came of it.

use super::{Evaluation, Progress, Represented, TEST_TOL, TrainOptions, evaluate_by};
use super::{Observer, Snapshot};
use crate::comm::Shard;
use crate::learner::{Learner, Step};
use crate::{Real, Result, Samples};

/// The test set of a run, and its evaluations.
pub(super) struct TestSet<'a, T: Real> {
    set: Option<&'a dyn Samples<T>>,
    /// How many samples lie between two evaluations; none for one at the end of every pass.
    every: Option<usize>,
    strict: bool,
    /// The last evaluation, and after how many samples it was made.
    last: Option<(usize, Evaluation)>,
}

impl<'a, T: Real> TestSet<'a, T> {
    pub(super) fn new(set: Option<&'a dyn Samples<T>>, schedule: &TrainOptions) -> Self {
        TestSet { set, every: schedule.test_every, strict: schedule.strict, last: None }
    }

    /// Whether the step that led from `before` to `now` samples is to be followed by an evaluation.
    pub(super) fn are_due_after_step(&self, before: usize, now: usize) -> bool {
        let passed = |every: usize| now / every.max(1) > before / every.max(1);
        self.set.is_some() && self.every.is_some_and(passed)
    }

    /// Whether the end of a pass is. The last one always, unless its last step was: the final model is the one that counts.
    pub(super) fn are_due_after_pass(&self, samples: usize, is_last: bool) -> bool {
        self.set.is_some() && (self.every.is_none() || is_last && self.at(samples).is_none())
    }

    /// The evaluation that was made after so many samples, if the last one was.
    pub(super) fn at(&self, samples: usize) -> Option<&Evaluation> {
        self.last.as_ref().filter(|(at, _)| *at == samples).map(|(_, test)| test)
    }

    /// Evaluates the test set, after `step` or after a pass. Fails with [`crate::Error::Stopped`] if the observer's monitor, or
    /// that of another member of the team, wants no more.
    pub(super) fn run(
        &mut self,
        learner: &dyn Learner<T>,
        progress: &Progress,
        step: Option<&Step<T>>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Evaluation>> {
        let Some(set) = self.set else { return Ok(None) };
        observer.before_test(&Snapshot { progress, learner, test: None }, step)?;
        let (comm, monitor, strict) = (learner.comm(), observer.monitor(), self.strict);
        let of = Shard::of(&*comm, set).len();
        let mut done = 0;
        observer.testing(done, of);
        let mut each = |_, item: Result<Represented<'_, T>>| {
            done += 1;
            observer.testing(done, of);
            match item {
                Err(error) if strict => Err(error),
                Err(error) => observer.skipped(&error),
                Ok(_) => Ok(()),
            }
        };
        let (config, dictionary) = (learner.config(), learner.dictionary());
        let test = evaluate_by(&*comm, config, dictionary, set, TEST_TOL, &*monitor, &mut each)?;
        self.last = Some((progress.samples, test.clone()));
        Ok(Some(test))
    }
}
