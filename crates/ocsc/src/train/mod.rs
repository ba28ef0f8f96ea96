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
mod feed;
mod observer;
mod prefetch;
mod stopping;
mod stream;
mod test_set;

pub use evaluate::{Each, Evaluation, Item, Represented, TEST_TOL, code_each, evaluate, evaluate_by, refuse};
pub use observer::{Learned, Observer, Snapshot};
pub use stream::{Begun, Stream};

use crate::comm::wire::{Reader, put};
use crate::comm::{Comm, all_gather};
use crate::learner::{Learner, Step};
use crate::monitor::Monitor;
use crate::real::compiled;
use crate::text::counted;
use crate::{Error, Real, Result, Samples, random};
use clock::Clock;
use feed::{Batch, Feed, Next, SetFeed, StreamFeed};
use prefetch::Prefetch;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use stopping::Stopping;
use test_set::TestSet;

/// How long to train and how often to look. The number of passes, the batch size and the seed are in
/// [`Config`](crate::Config).
#[derive(Clone, Debug, Default)]
pub struct TrainOptions {
    /// Stops when the relative changes of Z and D over a pass are both below this (the paper: 1e-3).
    pub stop_tol: Option<f64>,
    /// Stops after this much learning time.
    pub time_limit: Option<Duration>,
    /// Evaluates the test set every so many samples, and at the end; otherwise after every pass.
    pub test_every: Option<usize>,
    /// Evaluates the test set whenever the learning time passes a multiple of this, if the dictionary has changed since, and at
    /// the end: what methods with long and with short passes can be compared by.
    pub test_seconds: Option<Duration>,
    /// Evaluates this many samples of the test set, drawn at random and the same for all runs, and the whole set at the end.
    pub test_subset: Option<usize>,
    /// Counts `time_limit` and `test_seconds` in processor time, so that other work of the machine takes nothing off them.
    pub processor_time: bool,
    /// Stops at a sample that cannot be read or does not fit the filters, instead of passing it over.
    pub strict: bool,
}

impl TrainOptions {
    /// The learning time that limits are compared with.
    fn clock(&self) -> fn(&Progress) -> f64 {
        if self.processor_time { |progress| progress.cpu_seconds } else { |progress| progress.seconds }
    }
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
    /// Visits to samples that could not be used, in all passes.
    #[serde(default)]
    pub skipped: usize,
    /// The samples that could not be used, each counted once, however often it was visited and whatever pieces it was cut to.
    #[serde(default)]
    pub unusable: usize,
    /// Unused filters that were replaced.
    #[serde(default)]
    pub reseeded: usize,
}

/// Says why a run ended.
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
    /// The reason why it ended.
    pub ended: Ended,
    /// Where.
    pub progress: Progress,
    /// The evaluation of the test set with the final dictionary; none if the run was stopped before it.
    pub test: Option<Evaluation>,
}

compiled! {
    /// Trains on a data set until the schedule, the rule or the observer ends it, from `progress` (zero for a new run).
    pub fn train<T>(
        learner: &mut dyn Learner<T>,
        samples: &dyn Samples<T>,
        test: Option<&dyn Samples<T>>,
        schedule: &TrainOptions,
        progress: Progress,
        observer: &mut dyn Observer<T>,
    ) -> Result<Outcome> = train_on_set;
}

fn train_on_set<T: Real>(
    learner: &mut dyn Learner<T>,
    samples: &dyn Samples<T>,
    test: Option<&dyn Samples<T>>,
    schedule: &TrainOptions,
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
    let (config, comm) = (learner.config().clone(), learner.comm());
    Prefetch::run(samples, feed::visits(samples, &config, &comm, progress), |prefetch| {
        if prefetch.reads_in_line() {
            observer.notice("no thread could be started to read samples ahead: they are read one by one");
        }
        let feed = &mut SetFeed::new(samples, prefetch, &config, comm, schedule.strict, progress);
        let tests = TestSet::new(test, schedule, &progress);
        Loop::new(learner, feed, tests, schedule, config.passes, progress).run(observer)
    })
}

compiled! {
    /// Learns from a stream, in `passes` more passes, until it, the schedule or the observer ends. The place in a data set, if
    /// `progress` came from one, is left as it is.
    pub fn train_stream<T>(
        learner: &mut dyn Learner<T>,
        passes: usize,
        stream: &mut dyn Stream<T>,
        test: Option<&dyn Samples<T>>,
        schedule: &TrainOptions,
        progress: Progress,
        observer: &mut dyn Observer<T>,
    ) -> Result<Outcome> = train_on_stream;
}

fn train_on_stream<T: Real>(
    learner: &mut dyn Learner<T>,
    passes: usize,
    stream: &mut dyn Stream<T>,
    test: Option<&dyn Samples<T>>,
    schedule: &TrainOptions,
    progress: Progress,
    observer: &mut dyn Observer<T>,
) -> Result<Outcome> {
    // Nobody could say later which sample of a test set was left out.
    let tests = TestSet::new(test, &TrainOptions { strict: true, ..schedule.clone() }, &progress);
    let feed = &mut StreamFeed::new(stream, learner.config().batch_size);
    Loop::new(learner, feed, tests, schedule, progress.pass + passes, progress).run(observer)
}

/// The training loop.
struct Loop<'a, T: Real> {
    learner: &'a mut dyn Learner<T>,
    feed: &'a mut dyn Feed<T>,
    tests: TestSet<'a, T>,
    schedule: &'a TrainOptions,
    /// The run is finished when this pass is reached.
    passes: usize,
    comm: Arc<dyn Comm>,
    rule: Stopping<T>,
    progress: Progress,
    /// The names of the unusable samples that were counted since the run was begun or resumed.
    unusable: BTreeSet<String>,
    /// How long the run had waited for samples before it was resumed.
    waited: f64,
}

/// A step, and what it took of this member's processors.
struct Made<T> {
    step: Step<T>,
    cpu: f64,
}

/// What became of a step.
enum Stepped {
    /// The pass goes on.
    On,
    /// The pass is over.
    EndOfPass,
    /// The run is.
    Ended(Ended),
}

/// What a member wants after a step: that the run is stopped, or that its time is over.
struct Wish {
    stop: bool,
    late: bool,
    /// What the step took of this member's processors.
    cpu: f64,
}

impl Wish {
    /// Returns what anybody wants. The others' processor time goes into the progress, which has it a step late.
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

impl<'a, T: Real> Loop<'a, T> {
    fn new(
        learner: &'a mut dyn Learner<T>,
        feed: &'a mut dyn Feed<T>,
        tests: TestSet<'a, T>,
        schedule: &'a TrainOptions,
        passes: usize,
        progress: Progress,
    ) -> Self {
        let rule = Stopping::new(schedule.stop_tol, learner.dictionary());
        let (comm, waited) = (learner.comm(), progress.waiting_seconds);
        let unusable = BTreeSet::new();
        Loop { learner, feed, tests, schedule, passes, comm, rule, progress, unusable, waited }
    }

    /// Trains to the end.
    fn run(mut self, observer: &mut dyn Observer<T>) -> Result<Outcome> {
        let mut ended = self.passes(observer)?;
        let is_early = matches!(ended, Ended::Converged | Ended::TimeLimit);
        if is_early {
            ended = match self.tests.finish(self.learner, &self.progress, observer) {
                Err(Error::Stopped) => Ended::Stopped,
                tested => tested.map(|()| ended)?,
            };
        }
        let test = self.tests.last_of(self.progress.samples).cloned();
        let outcome = Outcome { ended, progress: self.progress, test };
        let last = Snapshot { progress: &outcome.progress, learner: self.learner, test: outcome.test.as_ref() };
        observer.end(&last, &outcome)?;
        Ok(outcome)
    }

    fn passes(&mut self, observer: &mut dyn Observer<T>) -> Result<Ended> {
        while self.progress.pass < self.passes {
            let (began, is_whole) = (self.progress.samples, self.progress.visited == 0);
            self.feed.begin_pass(&self.progress)?;
            loop {
                match self.step(observer)? {
                    Stepped::On => {}
                    Stepped::EndOfPass => break,
                    Stepped::Ended(ended) => return Ok(ended),
                }
            }
            if is_whole && self.progress.samples == began {
                self.feed.refuse_empty_pass()?;
            }
            if let Some(ended) = self.end_of_pass(observer)? {
                return Ok(ended);
            }
        }
        Ok(Ended::Finished)
    }

    /// Learns from the next batch, evaluates if that is due, and tells the observer.
    fn step(&mut self, observer: &mut dyn Observer<T>) -> Result<Stepped> {
        let before = self.progress;
        let monitor = observer.monitor();
        let next = self.feed.next(before.samples, self.learner.dictionary(), &*monitor, observer);
        self.progress.waiting_seconds = self.waited + self.feed.waited().as_secs_f64();
        let made = match next.map_err(|error| self.learner.give_up(error)) {
            Ok(Next::Batch(batch)) => self.learn(batch, &*monitor, observer),
            Ok(Next::EndOfPass { tell }) => return self.close(tell).map(|()| Stepped::EndOfPass),
            Ok(Next::Stop) => return Ok(Stepped::Ended(Ended::Stopped)),
            Err(error) => Err(error),
        };
        let made = match made {
            Err(Error::Stopped) => {
                // Nothing of the batch was learned.
                self.progress = before;
                return Ok(Stepped::Ended(Ended::Stopped));
            }
            made => made?,
        };
        let Some(Made { step, cpu }) = made else { return Ok(Stepped::On) };
        let mut test = None;
        let mut stop = false;
        if self.tests.are_due_after_step(&step, before.samples, &self.progress, &*self.comm)? {
            match self.tests.run(self.learner, &self.progress, Some(&step), observer) {
                Err(Error::Stopped) => stop = true,
                tested => test = tested?,
            }
        }
        let now = Snapshot { progress: &self.progress, learner: self.learner, test: test.as_ref() };
        stop |= observer.step(&now, &step)?.is_break();
        let clock = self.schedule.clock()(&self.progress);
        let late = self.schedule.time_limit.is_some_and(|limit| clock >= limit.as_secs_f64());
        let wish = Wish { stop, late, cpu }.of_all(&*self.comm, &mut self.progress)?;
        Ok(match (wish.stop, wish.late) {
            (true, _) => Stepped::Ended(Ended::Stopped),
            (false, true) => Stepped::Ended(Ended::TimeLimit),
            (false, false) => Stepped::On,
        })
    }

    /// Learns from a batch; none if no sample of it could be used.
    fn learn(
        &mut self,
        batch: Batch<T>,
        monitor: &dyn Monitor,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Made<T>>> {
        self.progress.visited += batch.visits;
        let clock = Clock::start(self.feed.reading());
        let step = if self.comm.size() > 1 || !batch.samples.is_empty() {
            let step = self.learner.learn(&batch.ids, &batch.samples, monitor);
            Some(step.map_err(|error| self.feed.name(error, &batch.numbers, self.progress.samples))?)
        } else {
            None
        };
        let ended_pass = if batch.ends_pass { self.learner.end_of_pass()? } else { None };
        let cpu = clock.stop(self.feed.reading(), &mut self.progress);
        let learned = step.as_ref().map_or(0, |step| step.totals.count);
        if batch.visits > learned {
            self.progress.skipped += batch.visits - learned;
            self.count_unusable(&batch.unusable);
        }
        let Some(mut step) = step.filter(|_| learned > 0) else { return Ok(None) };
        if let Some((change, update)) = ended_pass {
            (step.dictionary_change, step.update) = (change, update);
        }
        self.rule.follow(&*self.comm, &batch.numbers, &step.own_codes)?;
        let (samples, numbers, codes) = (&batch.samples, &batch.numbers, &step.own_codes);
        observer.learned(&Learned { samples, numbers, codes, learner: self.learner });
        self.progress.step = step.step;
        self.progress.samples += learned;
        self.progress.reseeded += step.update.reseeded;
        Ok(Some(Made { step, cpu }))
    }

    /// Counts the samples of these names that any member found to be unusable and none has counted.
    fn count_unusable(&mut self, names: &[String]) {
        // No name of a file has a zero in it.
        for names in all_gather(&*self.comm, names.join("\0").as_bytes()) {
            for name in String::from_utf8_lossy(&names).split('\0').filter(|name| !name.is_empty()) {
                self.progress.unusable += usize::from(self.unusable.insert(name.to_owned()));
            }
        }
    }

    /// Tells the learner of the end of a pass that its last batch did not end.
    fn close(&mut self, tell: bool) -> Result<()> {
        if tell {
            let clock = Clock::start(self.feed.reading());
            if self.learner.end_of_pass()?.is_some() {
                self.tests.dictionary_changed();
            }
            clock.stop(self.feed.reading(), &mut self.progress);
        }
        Ok(())
    }

    /// Evaluates if that is due, closes the pass and tells the observer.
    ///
    /// If the evaluation is stopped the pass stays open, so that a resumed run makes it again.
    fn end_of_pass(&mut self, observer: &mut dyn Observer<T>) -> Result<Option<Ended>> {
        let is_last = self.progress.pass + 1 == self.passes;
        let test = match self.tests.run_after_pass(self.learner, &self.progress, is_last, observer) {
            Err(Error::Stopped) => return Ok(Some(Ended::Stopped)),
            tested => tested?,
        };
        self.progress.pass += 1;
        self.feed.close_pass(&mut self.progress);
        let now = Snapshot { progress: &self.progress, learner: self.learner, test: test.as_ref() };
        let flow = observer.pass(&now)?;
        let wish = Wish { stop: flow.is_break(), late: false, cpu: 0.0 };
        if wish.of_all(&*self.comm, &mut self.progress)?.stop {
            return Ok(Some(Ended::Stopped));
        }
        Ok(self.rule.holds(self.learner.dictionary()).then_some(Ended::Converged))
    }
}

/// Returns the order of visits in one pass: a permutation that depends on the seed and the pass alone, so that a resumed run
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
