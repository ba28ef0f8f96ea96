//! When the test set is evaluated, how much of it, and what came of it.

use super::{Evaluation, Progress, Represented, TEST_TOL, TrainOptions, evaluate_by, visiting_order};
use super::{Observer, Snapshot};
use crate::comm::wire::{Reader, put};
use crate::comm::{Comm, Shard};
use crate::learner::{Learner, Step};
use crate::{Real, Result, Samples};
use std::time::Duration;

/// What the samples of a subset are drawn by: runs with other seeds are tested on the same ones.
const SUBSET_SEED: u64 = 0;

/// The test set of a run, and its evaluations.
pub(super) struct TestSet<'a, T: Real> {
    set: Option<&'a dyn Samples<T>>,
    /// What is evaluated until the end; none for the whole set.
    subset: Option<Shard<'a, T>>,
    /// How many samples lie between two evaluations.
    every: Option<usize>,
    grid: Option<Grid>,
    strict: bool,
    /// The last evaluation, and after how many samples it was made.
    last: Option<(usize, Evaluation)>,
    /// The same of the whole set, where until the end a subset is evaluated.
    whole: Option<(usize, Evaluation)>,
}

/// Evaluations at multiples of a learning time.
struct Grid {
    every: f64,
    /// The learning time so far.
    clock: fn(&Progress) -> f64,
    /// The last multiple that was passed before an evaluation.
    passed: f64,
    /// Whether there is another dictionary than at the last evaluation.
    has_changed: bool,
}

impl Grid {
    fn new(every: Duration, clock: fn(&Progress) -> f64, progress: &Progress) -> Self {
        // A clock does not see less.
        let every = every.max(Duration::from_nanos(1)).as_secs_f64();
        let grid = Grid { every, clock, passed: 0.0, has_changed: false };
        Grid { passed: grid.reached(progress), ..grid }
    }

    /// The last multiple that was reached.
    fn reached(&self, progress: &Progress) -> f64 {
        ((self.clock)(progress) / self.every).floor()
    }

    fn is_passed(&self, progress: &Progress) -> bool {
        self.has_changed && self.reached(progress) > self.passed
    }
}

impl<'a, T: Real> TestSet<'a, T> {
    pub(super) fn new(set: Option<&'a dyn Samples<T>>, schedule: &TrainOptions, progress: &Progress) -> Self {
        let subset = set.zip(schedule.test_subset).filter(|(set, n)| *n < set.len()).map(|(set, n)| {
            let mut indices = visiting_order(set.len(), SUBSET_SEED, 0);
            indices.truncate(n.max(1));
            indices.sort_unstable();
            Shard::picked(set, indices)
        });
        let grid = schedule.test_seconds.map(|every| Grid::new(every, schedule.clock(), progress));
        TestSet { set, subset, every: schedule.test_every, grid, strict: schedule.strict, last: None, whole: None }
    }

    /// Returns whether `step`, which led from `before` samples to where the run is, is to be followed by an evaluation. Of a team,
    /// the first member's clock counts.
    pub(super) fn are_due_after_step(
        &mut self,
        step: &Step<T>,
        before: usize,
        now: &Progress,
        comm: &dyn Comm,
    ) -> Result<bool> {
        if self.set.is_none() {
            return Ok(false);
        }
        let has_enough = self.every.is_some_and(|every| now.samples / every.max(1) > before / every.max(1));
        let Some(grid) = &mut self.grid else { return Ok(has_enough) };
        grid.has_changed |= step.dictionary_change > 0.0;
        let is_passed = of_first(comm, grid.is_passed(now))?;
        Ok(has_enough || is_passed)
    }

    /// Is told that the dictionary is another one since the last step.
    pub(super) fn dictionary_changed(&mut self) {
        (self.last, self.whole) = (None, None);
        self.grid.iter_mut().for_each(|grid| grid.has_changed = true);
    }

    /// Returns the evaluation of the whole set after so many samples, if the last one was made then.
    pub(super) fn last_of(&self, samples: usize) -> Option<&Evaluation> {
        let last = if self.subset.is_some() { &self.whole } else { &self.last };
        at(last, samples)
    }

    /// Evaluates after a pass if nothing else says when, and after the last one, unless its last step was followed by an
    /// evaluation: the final model is the one that counts.
    pub(super) fn run_after_pass(
        &mut self,
        learner: &dyn Learner<T>,
        progress: &Progress,
        is_last: bool,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Evaluation>> {
        let by_passes = self.every.is_none() && self.grid.is_none();
        let is_due = (by_passes || is_last) && at(&self.last, progress.samples).is_none();
        let test = if is_due { self.run(learner, progress, None, observer)? } else { None };
        if is_last {
            self.finish(learner, progress, observer)?;
        }
        Ok(test)
    }

    /// Evaluates the whole set with the final model, unless that has been done.
    pub(super) fn finish(
        &mut self,
        learner: &dyn Learner<T>,
        progress: &Progress,
        observer: &mut dyn Observer<T>,
    ) -> Result<()> {
        let Some(set) = self.set.filter(|_| self.last_of(progress.samples).is_none()) else { return Ok(()) };
        let test = self.evaluate(set, learner, progress, None, observer)?;
        let kept = if self.subset.is_some() { &mut self.whole } else { &mut self.last };
        *kept = Some((progress.samples, test));
        Ok(())
    }

    /// Evaluates the test set, or the subset of it, after `step` or after a pass. Fails with [`crate::Error::Stopped`] if the
    /// observer's monitor, or that of another member of the team, wants no more.
    pub(super) fn run(
        &mut self,
        learner: &dyn Learner<T>,
        progress: &Progress,
        step: Option<&Step<T>>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Evaluation>> {
        let Some(set) = self.subset.as_ref().map(|subset| subset as &dyn Samples<T>).or(self.set) else {
            return Ok(None);
        };
        let test = self.evaluate(set, learner, progress, step, observer)?;
        self.last = Some((progress.samples, test.clone()));
        if let Some(grid) = &mut self.grid {
            (grid.passed, grid.has_changed) = (grid.reached(progress), false);
        }
        Ok(Some(test))
    }

    fn evaluate(
        &self,
        set: &dyn Samples<T>,
        learner: &dyn Learner<T>,
        progress: &Progress,
        step: Option<&Step<T>>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Evaluation> {
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
        evaluate_by(&*comm, config, dictionary, set, TEST_TOL, &*monitor, &mut each)
    }
}

/// Returns an evaluation if it was made after so many samples.
fn at(last: &Option<(usize, Evaluation)>, samples: usize) -> Option<&Evaluation> {
    last.as_ref().filter(|(at, _)| *at == samples).map(|(_, test)| test)
}

/// Returns what the first member of a team says.
fn of_first(comm: &dyn Comm, mine: bool) -> Result<bool> {
    if comm.size() == 1 {
        return Ok(mine);
    }
    let mut bytes = Vec::new();
    put(&mut bytes, &[f64::from(u8::from(mine))]);
    let all = comm.all_gather(&bytes, &vec![bytes.len(); comm.size()]);
    Ok(Reader::new(&all).one::<f64>()? > 0.0)
}
