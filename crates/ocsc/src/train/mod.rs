//! The training loop: the only part that knows time.
//!
//! It visits all samples in a new seeded order in every pass, hands batches to the learner, evaluates a test set now
//! and then, tells an observer, and stops when the passes are done, the time is up, the observer says so, or the
//! paper's rule holds (`stopping.rs`). Samples are read ahead by other threads; one that cannot be read is passed over.
//!
//! The clocks count learning only: reading samples, evaluation and observers are not charged.
//!
//! A learner that is one of a [`Comm`] is given its part of every batch. All members make the same passes and steps, stop
//! together, and count the samples and processors of all; the wall clock is each one's own.

mod clock;
mod evaluate;
mod observer;
mod prefetch;
mod stopping;
mod stream;
mod test_set;

pub use evaluate::{Each, Evaluation, Item, Represented, TEST_TOL, code_each, evaluate, evaluate_by, refuse};
pub use observer::{Observer, Snapshot};
pub use stream::{Stream, train_stream};

use crate::comm::wire::{Reader, put};
use crate::comm::{Comm, split};
use crate::learner::{Learner, Step};
use crate::monitor::{Monitor, check_wanted};
use crate::text::counted;
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples, random};
use clock::Clock;
use evaluate::none_left;
use prefetch::{Prefetch, Visit};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use stopping::StopRule;
use test_set::TestSet;

/// How long to train and how often to look. The number of passes, the batch size and the seed are in [`Config`].
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Stops when the relative changes of Z and D over a pass are both below this (the paper: 1e-3).
    pub stop_tol: Option<f64>,
    /// Stops after this much learning time.
    pub time_limit: Option<Duration>,
    /// Evaluates the test set every so many samples, and at the end; otherwise after every pass.
    pub test_every: Option<usize>,
    /// Stops at a sample that cannot be read or does not fit the filters, instead of passing it over.
    pub strict: bool,
}

/// Where a run is; all that a checkpoint needs besides the learner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Finished passes.
    pub pass: usize,
    /// Samples visited in the current pass.
    pub visited: usize,
    /// Samples in the data set, on which the visiting order depends.
    pub of: usize,
    /// Steps of the learner.
    pub step: usize,
    /// Samples learned from, over all passes.
    pub samples: usize,
    /// Learning time.
    pub seconds: f64,
    /// Learning time, summed over processors.
    pub cpu_seconds: f64,
    /// Time spent waiting for samples to be read.
    #[serde(default)]
    pub waiting_seconds: f64,
    /// Visits to samples that could not be used.
    #[serde(default)]
    pub skipped: usize,
    /// Unused filters that were replaced.
    #[serde(default)]
    pub reseeded: usize,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All passes were made.
    Finished,
    /// The stopping rule held.
    Converged,
    /// The time was up.
    TimeLimit,
    /// The observer said so.
    Stopped,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why.
    pub ended: Ended,
    /// Where.
    pub progress: Progress,
    /// The evaluation of the test set with the final dictionary; none if the run was stopped before it.
    pub test: Option<Evaluation>,
}

/// Trains until the schedule, the rule or the observer ends it, from `progress` (zero for a new run).
pub fn train<T: Real>(
    learner: &mut dyn Learner<T>,
    samples: &dyn Samples<T>,
    test: Option<&dyn Samples<T>>,
    schedule: &Schedule,
    mut progress: Progress,
    observer: &mut dyn Observer<T>,
) -> Result<Outcome> {
    if samples.is_empty() {
        return Err(Error::invalid("data set", "at least one sample", "none"));
    }
    if progress.visited > 0 && progress.of != samples.len() {
        let expected = format!("the {} that the run began this pass with", counted(progress.of, "sample"));
        return Err(Error::invalid("data set", expected, samples.len()));
    }
    progress.of = samples.len();
    let (config, begun, comm) = (learner.config().clone(), progress, learner.comm());
    let (n, seed, size, members) = (samples.len(), config.seed, config.batch_size, comm.clone());
    let visits = (begun.pass..config.passes).flat_map(move |pass| {
        let done = if pass == begun.pass { begun.visited } else { 0 };
        let (order, members) = (visiting_order(n, seed, pass), members.clone());
        let batches = (done..n).step_by(size.max(1));
        let mine = batches.flat_map(move |at| part(&*members, samples, &order[at..n.min(at + size)]));
        mine.map(move |(_, index)| Visit { index, pass: Some(pass) })
    });
    Prefetch::run(samples, visits, |prefetch| {
        let (tests, rule) = (TestSet::new(test, schedule), StopRule::new(schedule.stop_tol, learner.dictionary()));
        let (waited, unusable) = (progress.waiting_seconds, BTreeSet::new());
        let run = Run { samples, tests, schedule, config, comm, rule, progress, waited, unusable, first_bad: None };
        run.run(prefetch, learner, observer)
    })
}

/// The samples of a batch that fall to this member, with their places in it.
fn part<T: Real>(comm: &dyn Comm, samples: &dyn Samples<T>, batch: &[usize]) -> Vec<(usize, usize)> {
    if comm.size() == 1 {
        return batch.iter().copied().enumerate().collect();
    }
    let sizes: Vec<usize> = batch.iter().map(|index| samples.size(*index)).collect();
    split(&sizes, comm.size()).swap_remove(comm.rank()).into_iter().map(|place| (place, batch[place])).collect()
}

/// A run on a data set.
struct Run<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    tests: TestSet<'a, T>,
    schedule: &'a Schedule,
    config: Config,
    comm: Arc<dyn Comm>,
    rule: StopRule<T>,
    progress: Progress,
    /// How long it had waited for samples before it was resumed.
    waited: f64,
    /// The samples that turned out to be unusable.
    unusable: BTreeSet<usize>,
    /// Why the first of them is.
    first_bad: Option<String>,
}

/// The usable samples of a batch that fall to this member, with their places in it and their numbers.
struct Batch<T> {
    places: Vec<usize>,
    visited: Vec<usize>,
    samples: Vec<Sample<T>>,
}

/// A step, and what it took of this member's processors.
struct Made<T> {
    step: Step<T>,
    cpu: f64,
}

/// What a member wants after a step: that the run is stopped, or that its time is over.
struct Wish {
    stop: bool,
    late: bool,
    /// What the step took of this member's processors.
    cpu: f64,
}

impl Wish {
    /// What anybody wants. The others' processor time goes into the progress, which has it a step late.
    fn of_all(self, comm: &dyn Comm, progress: &mut Progress) -> Result<Wish> {
        let mut bytes = Vec::new();
        put(&mut bytes, &[f64::from(u8::from(self.stop)), f64::from(u8::from(self.late)), self.cpu]);
        let all = comm.all_gather(&bytes, &vec![bytes.len(); comm.size()]);
        let all: Vec<[f64; 3]> = Reader::new(&all).many(comm.size())?;
        progress.cpu_seconds += all.iter().map(|[_, _, cpu]| cpu).sum::<f64>() - self.cpu;
        let any = |which: usize| all.iter().any(|wish| wish[which] > 0.0);
        Ok(Wish { stop: any(0), late: any(1), ..self })
    }
}

impl<T: Real> Run<'_, T> {
    /// Trains to the end.
    fn run(
        mut self,
        prefetch: &Prefetch<'_, T>,
        learner: &mut dyn Learner<T>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Outcome> {
        if prefetch.reads_in_line() {
            observer.notice("no thread could be started to read samples prefetch: they are read one by one");
        }
        let mut ended = self.passes(prefetch, learner, observer)?;
        let is_early = matches!(ended, Ended::Converged | Ended::TimeLimit);
        if is_early && self.tests.are_due_after_pass(self.progress.samples, true) {
            ended = match self.tests.run(learner, &self.progress, None, observer) {
                Err(Error::Stopped) => Ended::Stopped,
                test => test.map(|_| ended)?,
            };
        }
        let test = self.tests.at(self.progress.samples).cloned();
        let outcome = Outcome { ended, progress: self.progress, test };
        observer.end(&Snapshot { progress: &outcome.progress, learner, test: outcome.test.as_ref() }, &outcome)?;
        Ok(outcome)
    }

    fn passes(
        &mut self,
        prefetch: &Prefetch<'_, T>,
        learner: &mut dyn Learner<T>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Ended> {
        let n = self.samples.len();
        while self.progress.pass < self.config.passes {
            let (order, began) = (visiting_order(n, self.config.seed, self.progress.pass), self.progress.samples);
            let is_whole = self.progress.visited == 0;
            while self.progress.visited < n {
                if let Some(ended) = self.step(&order, prefetch, learner, observer)? {
                    return Ok(ended);
                }
            }
            if is_whole && self.progress.samples == began {
                return Err(none_left(n, self.first_bad.take()));
            }
            if let Some(ended) = self.end_of_pass(learner, observer)? {
                return Ok(ended);
            }
        }
        Ok(Ended::Finished)
    }

    /// Learns from the next batch, evaluates if that is due, and tells the observer.
    fn step(
        &mut self,
        order: &[usize],
        prefetch: &Prefetch<'_, T>,
        learner: &mut dyn Learner<T>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Ended>> {
        let before = self.progress;
        let made = match self.learn(order, prefetch, learner, observer) {
            Err(Error::Stopped) => {
                // Nothing of the batch was learned.
                self.progress = before;
                return Ok(Some(Ended::Stopped));
            }
            made => made?,
        };
        let Some(Made { step, cpu }) = made else { return Ok(None) };
        let (mut test, mut stop) = (None, false);
        if self.tests.are_due_after_step(before.samples, self.progress.samples) {
            match self.tests.run(learner, &self.progress, Some(&step), observer) {
                Err(Error::Stopped) => stop = true,
                tested => test = tested?,
            }
        }
        let moment = Snapshot { progress: &self.progress, learner, test: test.as_ref() };
        stop |= observer.step(&moment, &step)?.is_break();
        let late = self.schedule.time_limit.is_some_and(|limit| self.progress.seconds >= limit.as_secs_f64());
        let wish = Wish { stop, late, cpu }.of_all(&*self.comm, &mut self.progress)?;
        Ok(if wish.stop { Some(Ended::Stopped) } else { wish.late.then_some(Ended::TimeLimit) })
    }

    /// Learns from the next batch; none if no sample of it could be used.
    fn learn(
        &mut self,
        order: &[usize],
        prefetch: &Prefetch<'_, T>,
        learner: &mut dyn Learner<T>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Made<T>>> {
        let monitor = observer.monitor();
        let visits = self.config.batch_size.min(order.len() - self.progress.visited);
        let mine = part(&*self.comm, self.samples, &order[self.progress.visited..][..visits]);
        let batch = self.batch(prefetch, &mine, learner.dictionary(), &*monitor, observer);
        let Batch { places, visited, samples: batch } = batch.map_err(|error| learner.give_up(error))?;
        self.progress.waiting_seconds = self.waited + prefetch.waited().as_secs_f64();
        self.progress.visited += visits;
        let clock = Clock::start(prefetch);
        let step = match (self.comm.size() > 1, batch.is_empty()) {
            (true, _) => Some(learner.learn(&places, &batch, &*monitor)?),
            (false, true) => None,
            (false, false) => {
                let step = learner.learn(&visited, &batch, &*monitor);
                Some(step.map_err(|e| name_samples(e, self.samples, &visited))?)
            }
        };
        let ended_pass = if self.progress.visited == order.len() { learner.end_of_pass()? } else { None };
        let cpu = clock.stop(prefetch, &mut self.progress);
        let learned = step.as_ref().map_or(0, |step| step.totals.count);
        self.progress.skipped += visits - learned;
        let Some(mut step) = step.filter(|_| learned > 0) else { return Ok(None) };
        if let Some((change, update)) = ended_pass {
            (step.dictionary_change, step.update) = (change, update);
        }
        self.rule.follow(&*self.comm, &visited, &step.own_codes)?;
        self.progress.step = step.step;
        self.progress.samples += learned;
        self.progress.reseeded += step.update.reseeded;
        Ok(Some(Made { step, cpu }))
    }

    /// Evaluates if that is due, closes the pass and tells the observer.
    ///
    /// If the evaluation is stopped the pass stays open, so that a resumed run makes it again.
    fn end_of_pass(&mut self, learner: &dyn Learner<T>, observer: &mut dyn Observer<T>) -> Result<Option<Ended>> {
        let is_last = self.progress.pass + 1 == self.config.passes;
        let mut test = None;
        if self.tests.are_due_after_pass(self.progress.samples, is_last) {
            match self.tests.run(learner, &self.progress, None, observer) {
                Err(Error::Stopped) => return Ok(Some(Ended::Stopped)),
                tested => test = tested?,
            }
        }
        (self.progress.pass, self.progress.visited) = (self.progress.pass + 1, 0);
        let flow = observer.pass(&Snapshot { progress: &self.progress, learner, test: test.as_ref() })?;
        let wish = Wish { stop: flow.is_break(), late: false, cpu: 0.0 };
        if wish.of_all(&*self.comm, &mut self.progress)?.stop {
            return Ok(Some(Ended::Stopped));
        }
        Ok(self.rule.holds(learner.dictionary()).then_some(Ended::Converged))
    }

    /// The usable samples of these visits.
    fn batch(
        &mut self,
        prefetch: &Prefetch<'_, T>,
        visits: &[(usize, usize)],
        dictionary: &Dictionary<T>,
        monitor: &dyn Monitor,
        observer: &mut dyn Observer<T>,
    ) -> Result<Batch<T>> {
        let mut batch = Batch { places: Vec::new(), visited: Vec::new(), samples: Vec::with_capacity(visits.len()) };
        for ((place, _), (Visit { index, .. }, sample)) in visits.iter().zip(std::iter::from_fn(|| prefetch.next())) {
            check_wanted(monitor)?;
            match sample.and_then(|sample| dictionary.check_sample_shape(sample.shape()).map(|()| sample)) {
                Ok(sample) => {
                    batch.places.push(*place);
                    batch.visited.push(index);
                    batch.samples.push(sample);
                }
                Err(error) => {
                    let error = name_samples(error, self.samples, &[index]);
                    if self.schedule.strict || error.is_system_failure() {
                        return Err(error);
                    }
                    self.first_bad.get_or_insert_with(|| error.to_string());
                    if self.unusable.insert(index) {
                        observer.skipped(&error)?;
                    }
                }
            }
        }
        Ok(batch)
    }
}

/// The order of visits in one pass: a permutation that depends on the seed and the pass alone, so that a resumed run
/// goes on in the same order.
pub fn visiting_order(n_samples: usize, seed: u64, pass: usize) -> Vec<usize> {
    let mut rng = random::stream(seed, random::visits(pass));
    let mut order: Vec<usize> = (0..n_samples).collect();
    order.shuffle(&mut rng);
    order
}

/// Adds the names of samples to an error about them.
pub(crate) fn name_samples<T: Real>(error: Error, samples: &dyn Samples<T>, indices: &[usize]) -> Error {
    match error {
        Error::Invalid { what, expected, found } => {
            let names: Vec<String> = indices.iter().map(|&i| samples.name(i)).collect();
            Error::Invalid { what: format!("{}: {what}", names.join(", ")), expected, found }
        }
        other => other,
    }
}
