//! The training loop: the only part that knows time.
//!
//! It visits all samples in a new seeded order in every pass, hands batches to the learner, evaluates a test set now
//! and then, tells an observer, and stops when the passes are done, the time is up, the observer says so, or the
//! paper's rule holds: the relative changes of Z and of D are both below a tolerance. Both changes are taken over a whole
//! pass; that of Z is averaged over a few fixed samples, whose sparse codes are kept, so that memory does not grow
//! with the number of samples.
//!
//! The clocks count learning only: reading samples, evaluation and observers are not charged.

use crate::coder::{Coded, Coder};
use crate::learner::coder;
use crate::metrics::psnr;
use crate::observe::{Moment, Observer};
use crate::{Code, Config, Dictionary, Error, Online, Real, Result, Sample, Samples};
use cpu_time::ProcessTime;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The stopping rule follows the codes of so many samples, the first ones of the source.
const FOLLOWED: usize = 16;

/// How long to train and how often to look. The number of passes, the batch size and the seed are in [`Config`].
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// Stops when the relative changes of Z and D over a pass are both below this (the paper: 1e-3).
    pub stop_tol: Option<f64>,
    /// Stops after this much learning time.
    pub time_limit: Option<Duration>,
    /// Evaluates the test set every so many samples; otherwise after every pass.
    pub test_every: Option<usize>,
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
    learner: &mut Online<T>,
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
    let config = learner.config().clone();
    let mut rule = ChangeRule::new(schedule.stop_tol, learner.dictionary());
    let mut last_test = None;
    let mut ended = Ended::Finished;
    'run: while progress.pass < config.passes {
        let order = visiting_order(samples.len(), config.seed, progress.pass);
        while progress.visited < order.len() {
            let visit = &order[progress.visited..][..config.batch_size.min(order.len() - progress.visited)];
            let batch = visit.iter().map(|&i| draw(samples, i, progress.pass)).collect::<Result<Vec<_>>>()?;
            let clock = Clock::start();
            let step = learner.partial_fit_batch(&batch).map_err(|e| name_samples(e, samples, visit))?;
            clock.stop(&mut progress);
            rule.follow(visit, &step.coded);
            progress.step = step.step;
            progress.visited += visit.len();
            let before = progress.samples;
            progress.samples += visit.len();

            let due = |every: usize| progress.samples / every.max(1) > before / every.max(1);
            let tested = match (test, schedule.test_every) {
                (Some(test), Some(every)) if due(every) => {
                    Some(evaluate(&config, learner.dictionary(), test, TEST_TOL)?)
                }
                _ => None,
            };
            let moment = Moment { progress: &progress, learner, test: tested.as_ref() };
            let flow = observer.step(&moment, &step)?;
            last_test = tested.or(last_test);
            if flow == ControlFlow::Break(()) {
                ended = Ended::Stopped;
                break 'run;
            }
            if schedule.time_limit.is_some_and(|limit| progress.seconds >= limit.as_secs_f64()) {
                ended = Ended::TimeLimit;
                break 'run;
            }
        }
        (progress.pass, progress.visited) = (progress.pass + 1, 0);
        let tested = match (test, schedule.test_every) {
            (Some(test), None) => Some(evaluate(&config, learner.dictionary(), test, TEST_TOL)?),
            _ => None,
        };
        let flow = observer.pass(&Moment { progress: &progress, learner, test: tested.as_ref() })?;
        last_test = tested.or(last_test);
        if flow == ControlFlow::Break(()) {
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

/// Test sets are coded to this relative gap.
pub const TEST_TOL: f64 = 0.003;

/// How well a dictionary represents a set of samples: means over samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// How many.
    pub samples: usize,
    /// data_term + beta l1.
    pub objective: f64,
    /// 1/2 ||x - D z||^2.
    pub data_term: f64,
    /// ||z||_1.
    pub l1: f64,
    /// The worst relative duality gap.
    pub gap: f64,
    /// PSNR of the reconstructions, in the domain of the codes (after preprocessing).
    pub psnr: f64,
    /// The peak it was computed with: the range of all samples.
    pub psnr_peak: f64,
    /// Non-zeros per code.
    pub nonzeros: f64,
    /// Wall time of coding all of them.
    pub seconds: f64,
}

/// Codes every sample to a relative gap of `tol` and averages.
pub fn evaluate<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    tol: f64,
) -> Result<Evaluation> {
    evaluate_each(config, dictionary, samples, tol, |_, _| Ok(()))
}

/// [`evaluate`], which also hands over every sample's index and reconstruction, in order: for measures of the caller's
/// own, such as the PSNR after [`crate::preprocess::Undo`].
pub fn evaluate_each<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    tol: f64,
    mut each: impl FnMut(usize, Sample<T>) -> Result<()>,
) -> Result<Evaluation> {
    if samples.is_empty() {
        return Err(Error::invalid("test set", "at least one sample", "none"));
    }
    // One sample at a time: two visits instead of holding them all.
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for i in 0..samples.len() {
        for v in read(samples, i)?.data() {
            (low, high) = (low.min(v.f64()), high.max(v.f64()));
        }
    }
    let peak = high - low;
    let mut coder = coder(config, dictionary, tol)?;
    let mut sum = Evaluation {
        samples: samples.len(),
        objective: 0.0,
        data_term: 0.0,
        l1: 0.0,
        gap: 0.0,
        psnr: 0.0,
        psnr_peak: peak,
        nonzeros: 0.0,
        seconds: 0.0,
    };
    let n = samples.len() as f64;
    code_each(coder.as_mut(), dictionary, samples, |i, sample, coded, seconds| {
        sum.seconds += seconds;
        sum.objective += coded.total() / n;
        sum.data_term += coded.objective.data_term / n;
        sum.l1 += coded.objective.l1 / n;
        sum.gap = sum.gap.max(coded.relative_gap());
        sum.nonzeros += coded.code.nonzeros() as f64 / n;
        let peak = if peak > 0.0 { peak } else { 1.0 };
        let reconstruction = coded.code.reconstruct(dictionary, config.boundary)?;
        sum.psnr += psnr(sample, &reconstruction, peak)? / n;
        each(i, reconstruction)
    })?;
    Ok(sum)
}

/// So many samples, or those with so many numbers, are coded at the same time.
const TOGETHER: usize = 16;
const TOGETHER_NUMBERS: usize = 1 << 20;

/// Codes all samples, a few at a time, and calls `each` with index, sample, code, and its share of the wall time of coding,
/// in the order of the samples.
pub fn code_each<T: Real, E: From<Error>>(
    coder: &mut dyn Coder<T>,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    mut each: impl FnMut(usize, &Sample<T>, &Coded<T>, f64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut next = 0;
    while next < samples.len() {
        let (first, mut group, mut numbers) = (next, Vec::new(), 0);
        while next < samples.len() && group.len() < TOGETHER && numbers < TOGETHER_NUMBERS {
            let sample = read(samples, next)?;
            dictionary.check_sample_shape(sample.shape()).map_err(|e| name_samples(e, samples, &[next]))?;
            numbers += sample.data().len();
            group.push(sample);
            next += 1;
        }
        let clock = Instant::now();
        let indices: Vec<usize> = (first..next).collect();
        let coded = coder.code_all(&group).map_err(|e| name_samples(e, samples, &indices))?;
        let share = clock.elapsed().as_secs_f64() / group.len() as f64;
        for ((i, sample), coded) in indices.into_iter().zip(&group).zip(&coded) {
            each(i, sample, coded, share)?;
        }
    }
    Ok(())
}

/// Reads a sample; its errors name it.
fn read<T: Real>(samples: &dyn Samples<T>, index: usize) -> Result<Sample<T>> {
    samples.get(index).map_err(|e| name_samples(e, samples, &[index]))
}

/// Reads a sample for learning; its errors name it.
fn draw<T: Real>(samples: &dyn Samples<T>, index: usize, pass: usize) -> Result<Sample<T>> {
    samples.draw(index, pass).map_err(|e| name_samples(e, samples, &[index]))
}

/// Adds the names of samples to an error about them.
fn name_samples<T: Real>(error: Error, samples: &dyn Samples<T>, indices: &[usize]) -> Error {
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
}

impl Clock {
    fn start() -> Self {
        Clock { wall: Instant::now(), cpu: ProcessTime::now() }
    }

    fn stop(self, progress: &mut Progress) {
        progress.seconds += self.wall.elapsed().as_secs_f64();
        progress.cpu_seconds += self.cpu.elapsed().as_secs_f64();
    }
}

/// The paper's stopping rule, over whole passes.
struct ChangeRule<T: Real> {
    tol: Option<f64>,
    dictionary: Dictionary<T>,
    codes: BTreeMap<usize, Code<T>>,
    /// Relative changes of the followed codes since the last pass.
    changes: Vec<f64>,
}

impl<T: Real> ChangeRule<T> {
    fn new(tol: Option<f64>, dictionary: &Dictionary<T>) -> Self {
        ChangeRule { tol, dictionary: dictionary.clone(), codes: BTreeMap::new(), changes: Vec::new() }
    }

    fn follow(&mut self, visited: &[usize], coded: &[Coded<T>]) {
        if self.tol.is_none() {
            return;
        }
        for (&i, coded) in visited.iter().zip(coded).filter(|(i, _)| **i < FOLLOWED) {
            if let Some(old) = self.codes.insert(i, coded.code.clone()) {
                self.changes.push(coded.code.relative_change(&old));
            }
        }
    }

    /// At the end of a pass: whether both changes are small.
    fn holds(&mut self, dictionary: &Dictionary<T>) -> bool {
        let Some(tol) = self.tol else { return false };
        let changes = std::mem::take(&mut self.changes);
        let z = changes.iter().sum::<f64>() / changes.len() as f64;
        let d = dictionary.relative_change(&self.dictionary);
        self.dictionary = dictionary.clone();
        !changes.is_empty() && z < tol && d < tol
    }
}
