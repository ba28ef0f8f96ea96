//! The training loop: the only part that knows time.
//!
//! It visits all samples in a new seeded order in every pass, hands batches to the learner, evaluates a test set now
//! and then, tells an observer, and stops when the passes are done, the time is up, the observer says so, or the
//! paper's rule holds (`change.rs`). Samples are read ahead by other threads; one that cannot be read is passed over.
//!
//! The clocks count learning only: reading samples, evaluation and observers are not charged.
//!
//! A learner that is one of a [`Team`] is given its part of every batch. All members make the same passes and steps, stop
//! together, and count the samples and processors of all; the wall clock is each one's own.

mod change;
mod evaluate;
mod stream;

pub use evaluate::{Each, Evaluation, Item, Represented, TEST_TOL, code_each, evaluate, evaluate_by, refuse};
pub use stream::{Stream, train_stream};

use crate::ahead::{Ahead, Visit};
use crate::learner::Learner;
use crate::observe::{Moment, Observer};
use crate::team::wire::{Reader, put};
use crate::team::{Team, split};
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples};
use change::ChangeRule;
use cpu_time::ProcessTime;
use evaluate::none_left;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to train and how often to look. The number of passes, the batch size and the seed are in [`Config`].
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Stops when the relative changes of Z and D over a pass are both below this (the paper: 1e-3).
    pub stop_tol: Option<f64>,
    /// Stops after this much learning time.
    pub time_limit: Option<Duration>,
    /// Evaluates the test set every so many samples; otherwise after every pass.
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
    /// The last evaluation of the test set.
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
        let expected = format!("the {} samples that the run began this pass with", progress.of);
        return Err(Error::invalid("data set", expected, samples.len()));
    }
    progress.of = samples.len();
    let (config, begun, team) = (learner.config().clone(), progress, learner.team());
    let (n, seed, size, members) = (samples.len(), config.seed, config.batch_size, team.clone());
    let visits = (begun.pass..config.passes).flat_map(move |pass| {
        let done = if pass == begun.pass { begun.visited } else { 0 };
        let (order, members) = (visiting_order(n, seed, pass), members.clone());
        let batches = (done..n).step_by(size.max(1));
        let mine = batches.flat_map(move |at| part(&*members, samples, &order[at..n.min(at + size)]));
        mine.map(move |(_, index)| Visit { index, pass: Some(pass) })
    });
    Ahead::run(samples, visits, |ahead| {
        let run = Run { samples, test, schedule, config, team, unusable: BTreeSet::new(), first_bad: None };
        run.passes(ahead, learner, progress, observer)
    })
}

/// The samples of a batch that fall to this member, with their places in it.
fn part<T: Real>(team: &dyn Team, samples: &dyn Samples<T>, batch: &[usize]) -> Vec<(usize, usize)> {
    if team.size() == 1 {
        return batch.iter().copied().enumerate().collect();
    }
    let sizes: Vec<usize> = batch.iter().map(|index| samples.size(*index)).collect();
    split(&sizes, team.size()).swap_remove(team.rank()).into_iter().map(|place| (place, batch[place])).collect()
}

/// What stays the same during a run, and the samples that turned out to be unusable.
struct Run<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    test: Option<&'a dyn Samples<T>>,
    schedule: &'a Schedule,
    config: Config,
    team: Arc<dyn Team>,
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

/// What a member wants after a step: that the run is stopped, or that its time is over.
struct Wish {
    stop: bool,
    late: bool,
    /// What the step took of this member's processors.
    cpu: f64,
}

impl Wish {
    /// What anybody wants. The others' processor time goes into the progress, which has it a step late.
    fn of_all(self, team: &dyn Team, progress: &mut Progress) -> Result<Wish> {
        let mut bytes = Vec::new();
        put(&mut bytes, &[f64::from(u8::from(self.stop)), f64::from(u8::from(self.late)), self.cpu]);
        let all = team.gather(&bytes, &vec![bytes.len(); team.size()]);
        let all: Vec<[f64; 3]> = Reader::new(&all).many(team.size())?;
        progress.cpu_seconds += all.iter().map(|[_, _, cpu]| cpu).sum::<f64>() - self.cpu;
        let any = |which: usize| all.iter().any(|wish| wish[which] > 0.0);
        Ok(Wish { stop: any(0), late: any(1), ..self })
    }
}

impl<T: Real> Run<'_, T> {
    fn passes(
        mut self,
        ahead: &Ahead<'_, T>,
        learner: &mut dyn Learner<T>,
        mut progress: Progress,
        observer: &mut dyn Observer<T>,
    ) -> Result<Outcome> {
        let (schedule, n, waited) = (self.schedule, self.samples.len(), progress.waiting_seconds);
        let mut rule = ChangeRule::new(schedule.stop_tol, learner.dictionary());
        let mut last_test = None;
        let mut ended = Ended::Finished;
        'run: while progress.pass < self.config.passes {
            let (order, began) = (visiting_order(n, self.config.seed, progress.pass), progress.samples);
            let is_whole = progress.visited == 0;
            while progress.visited < n {
                let visits = self.config.batch_size.min(n - progress.visited);
                let mine = part(&*self.team, self.samples, &order[progress.visited..][..visits]);
                let batch = self.batch(ahead, &mine, learner.dictionary(), observer);
                let Batch { places, visited, samples: batch } = batch.map_err(|error| learner.give_up(error))?;
                progress.waiting_seconds = waited + ahead.waited().as_secs_f64();
                progress.visited += visits;
                let clock = Clock::start(ahead);
                let step = match (self.team.size() > 1, batch.is_empty()) {
                    (true, _) => Some(learner.learn(&places, &batch)?),
                    (false, true) => None,
                    (false, false) => {
                        Some(learner.learn(&visited, &batch).map_err(|e| name_samples(e, self.samples, &visited))?)
                    }
                };
                let ended_pass = if progress.visited == n { learner.end_of_pass()? } else { None };
                let cpu = clock.stop(ahead, &mut progress);
                let learned = step.as_ref().map_or(0, |step| step.codes.count);
                progress.skipped += visits - learned;
                let Some(mut step) = step.filter(|_| learned > 0) else { continue };
                if let Some((change, update)) = ended_pass {
                    (step.dictionary_change, step.update) = (change, update);
                }
                rule.follow(&*self.team, &visited, &step.coded)?;
                progress.step = step.step;
                let before = progress.samples;
                progress.samples += learned;

                let due = |every: usize| progress.samples / every.max(1) > before / every.max(1);
                let tested = match schedule.test_every {
                    Some(every) if due(every) => self.test(learner, observer)?,
                    _ => None,
                };
                let moment = Moment { progress: &progress, learner, test: tested.as_ref() };
                let flow = observer.step(&moment, &step)?;
                last_test = tested.or(last_test);
                let late = schedule.time_limit.is_some_and(|limit| progress.seconds >= limit.as_secs_f64());
                let wish = Wish { stop: flow.is_break(), late, cpu }.of_all(&*self.team, &mut progress)?;
                if wish.stop || wish.late {
                    ended = if wish.stop { Ended::Stopped } else { Ended::TimeLimit };
                    break 'run;
                }
            }
            if is_whole && progress.samples == began {
                return Err(none_left(n, self.first_bad.take()));
            }
            (progress.pass, progress.visited) = (progress.pass + 1, 0);
            let tested = if schedule.test_every.is_none() { self.test(learner, observer)? } else { None };
            let flow = observer.pass(&Moment { progress: &progress, learner, test: tested.as_ref() })?;
            last_test = tested.or(last_test);
            let wish = Wish { stop: flow.is_break(), late: false, cpu: 0.0 };
            if wish.of_all(&*self.team, &mut progress)?.stop {
                ended = Ended::Stopped;
                break;
            }
            if rule.holds(learner.dictionary()) {
                ended = Ended::Converged;
                break;
            }
        }
        let outcome = Outcome { ended, progress, test: last_test };
        observer.end(&Moment { progress: &progress, learner, test: outcome.test.as_ref() }, &outcome)?;
        Ok(outcome)
    }

    /// The usable samples of these visits.
    fn batch(
        &mut self,
        ahead: &Ahead<'_, T>,
        visits: &[(usize, usize)],
        dictionary: &Dictionary<T>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Batch<T>> {
        let mut batch = Batch { places: Vec::new(), visited: Vec::new(), samples: Vec::with_capacity(visits.len()) };
        for ((place, _), (Visit { index, .. }, sample)) in visits.iter().zip(std::iter::from_fn(|| ahead.next())) {
            match sample.and_then(|sample| dictionary.check_sample_shape(sample.shape()).map(|()| sample)) {
                Ok(sample) => {
                    batch.places.push(*place);
                    batch.visited.push(index);
                    batch.samples.push(sample);
                }
                Err(error) => {
                    let error = name_samples(error, self.samples, &[index]);
                    if self.schedule.strict {
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

    /// Evaluates the test set, if there is one.
    fn test(&self, learner: &dyn Learner<T>, observer: &mut dyn Observer<T>) -> Result<Option<Evaluation>> {
        let Some(test) = self.test else { return Ok(None) };
        let strict = self.schedule.strict;
        let mut each = |_, item: Result<Represented<'_, T>>| match item {
            Err(error) if strict => Err(error),
            Err(error) => observer.skipped(&error),
            Ok(_) => Ok(()),
        };
        evaluate_by(&*self.team, &self.config, learner.dictionary(), test, TEST_TOL, &mut each).map(Some)
    }
}

/// The order of visits in one pass: a permutation that depends on the seed and the pass alone, so that a resumed run
/// goes on in the same order.
pub fn visiting_order(n_samples: usize, seed: u64, pass: usize) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Stream 0 belongs to the initial dictionary.
    rng.set_stream(1 + pass as u64);
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

/// Wall and processor time of learning.
struct Clock {
    wall: Instant,
    cpu: ProcessTime,
    /// What the readers had used of the processors.
    reading: Duration,
}

impl Clock {
    fn start<T: Real>(ahead: &Ahead<'_, T>) -> Self {
        Clock { wall: Instant::now(), cpu: ProcessTime::now(), reading: ahead.reading() }
    }

    /// Adds to both, and returns the processor time. What was read ahead at the same time is not learning; it is known to
    /// within a sample.
    fn stop<T: Real>(self, ahead: &Ahead<'_, T>, progress: &mut Progress) -> f64 {
        let cpu = self.cpu.elapsed().saturating_sub(ahead.reading() - self.reading).as_secs_f64();
        progress.seconds += self.wall.elapsed().as_secs_f64();
        progress.cpu_seconds += cpu;
        cpu
    }
}
