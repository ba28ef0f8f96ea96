//! A run, assembled in one place: settings, a start, what it may take, and who learns.
//!
//! ```
//! use ocsc::monitor::Silent;
//! use ocsc::run::Run;
//! use ocsc::{Config, Sample, Shape};
//!
//! let image = |phase: usize| {
//!     let data = (0..256).map(|i| ((phase + i % 16) as f64).sin() + ((phase * i / 16) as f64).cos()).collect();
//!     Sample::<f64>::new(Shape::image(16, 16), data)
//! };
//! let images = [image(1)?, image(2)?, image(3)?].to_vec();
//! let config = Config { n_filters: 4, filter_shape: vec![5, 5], passes: 2, ..Config::default() };
//! let mut run = Run::new(config).beta_ratio(0.1).start(&images)?;
//! let outcome = run.train(&images, None, &mut Silent)?;
//! assert_eq!(outcome.progress.samples, 6);
//! # Ok::<(), ocsc::Error>(())
//! ```
//!
//! [`Run::start`] looks at what is known of the samples before any is read, refuses what does not fit the filters, the method or
//! the memory, makes the initial dictionary, and chooses beta if it is to be a fraction of the largest useful one. With
//! [`Run::comm`] the first process does so, and all of them learn.

use crate::beta::BetaMax;
use crate::checkpoint::{Saved, from_bytes, to_bytes};
use crate::comm::{Comm, broadcast};
use crate::constraint::Constraint;
use crate::learner::{Distributed, Learner, learner};
use crate::memory::Survey;
use crate::real::compiled;
use crate::settings::RunConfig;
use crate::text::counted;
use crate::train::{
    Observer, Outcome, Progress, Stream, TrainOptions, name_samples, train, train_stream, visiting_order,
};
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples, Shape};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The dictionary that a run starts from.
#[derive(Clone, Debug)]
pub enum Init<T> {
    /// Gaussian filters.
    Random,
    /// Patches of the samples.
    Patches,
    /// A given dictionary, which overrides the number and shape of filters in the settings.
    Given(Dictionary<T>),
}

/// A run to be started.
pub struct Run<T: Real> {
    origin: Origin<T>,
    options: RunConfig,
    /// When the test set is evaluated, and what is done about bad samples; the rest is in `options`.
    schedule: TrainOptions,
    team: Option<Team>,
}

/// Where a run begins.
enum Origin<T: Real> {
    New { config: Box<Config>, init: Init<T> },
    Saved(Box<Saved<T>>),
}

/// The processes that learn together.
#[derive(Clone)]
struct Team {
    comm: Arc<dyn Comm>,
    reproducible: bool,
}

impl Team {
    /// Makes this process's part of a learner.
    fn member<T: Real>(&self, config: Config, dictionary: Dictionary<T>) -> Result<Box<dyn Learner<T>>> {
        let member = Distributed::with_dictionary(config, dictionary, self.comm.clone())?;
        Ok(Box::new(member.reproducible(self.reproducible)))
    }
}

/// A run that has a dictionary.
pub struct Started<T: Real> {
    learner: Box<dyn Learner<T>>,
    progress: Progress,
    schedule: TrainOptions,
    beta: Option<ChosenBeta>,
    survey: Option<Survey>,
}

/// How beta was chosen, see [`crate::beta`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChosenBeta {
    /// The fraction.
    pub ratio: f64,
    /// What it is a fraction of.
    pub of: BetaMax,
}

impl ChosenBeta {
    /// Returns the beta.
    pub fn beta(&self) -> f64 {
        self.ratio * self.of.median
    }
}

impl<T: Real> Run<T> {
    /// A new run with these settings, from random filters.
    pub fn new(config: Config) -> Self {
        Run::from(Origin::New { config: Box::new(config), init: Init::Random })
    }

    /// A run that goes on from a model file: with the statistics of a checkpoint, with new ones of a finished model.
    pub fn resume(saved: Saved<T>) -> Self {
        Run::from(Origin::Saved(Box::new(saved)))
    }

    fn from(origin: Origin<T>) -> Self {
        Run { origin, options: RunConfig::default(), schedule: TrainOptions::default(), team: None }
    }

    /// Starts from this dictionary; without effect on a run that goes on.
    pub fn init(mut self, start: Init<T>) -> Self {
        if let Origin::New { init, .. } = &mut self.origin {
            *init = start;
        }
        self
    }

    /// Sets all that belongs to one run: the fraction of the largest beta, when to stop, and the memory it may take.
    pub fn options(self, options: RunConfig) -> Self {
        Run { options, ..self }
    }

    /// Makes beta this fraction of the smallest one with all-zero codes.
    pub fn beta_ratio(mut self, ratio: f64) -> Self {
        self.options.beta_ratio = Some(ratio);
        self
    }

    /// Refuses to start if more bytes than this would be needed, instead of more than the system has free.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_limit = Some(bytes);
        self
    }

    /// Evaluates the test set every so many samples, and at the end; otherwise after every pass.
    pub fn test_every(mut self, samples: Option<usize>) -> Self {
        self.schedule.test_every = samples;
        self
    }

    /// Evaluates the test set every so many seconds of learning time, and at the end; see [`TrainOptions::test_seconds`].
    pub fn test_seconds(mut self, seconds: Option<f64>) -> Self {
        // Beyond what a duration holds there is no such time.
        self.schedule.test_seconds = seconds.map(|s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX));
        self
    }

    /// Counts the limit of time and the seconds between evaluations in processor time.
    pub fn processor_time(mut self, processor_time: bool) -> Self {
        self.schedule.processor_time = processor_time;
        self
    }

    /// Evaluates this many samples of the test set, and the whole of it at the end.
    pub fn test_subset(mut self, samples: Option<usize>) -> Self {
        self.schedule.test_subset = samples;
        self
    }

    /// Stops at a sample that cannot be read or does not fit the filters, instead of passing it over.
    pub fn strict(mut self, strict: bool) -> Self {
        self.schedule.strict = strict;
        self
    }

    /// Learns with other processes, and if the run is to be `reproducible`, what one process learns alone.
    pub fn comm(self, comm: Arc<dyn Comm>, reproducible: bool) -> Self {
        Run { team: Some(Team { comm, reproducible }), ..self }
    }

    /// Starts learning from these samples, or from a stream of which these are the first.
    pub fn start(self, samples: &dyn Samples<T>) -> Result<Started<T>> {
        self.start_in_pieces(samples, samples)
    }

    /// Starts learning from pieces of samples. Beta, as a fraction, and patches to start from are those of the whole samples: pieces
    /// may be of any size, and most of them silent.
    pub fn start_in_pieces(self, samples: &dyn Samples<T>, whole: &dyn Samples<T>) -> Result<Started<T>> {
        start(self, samples, whole)
    }

    /// Returns a run that goes on from a model file, before any sample is known.
    pub fn adopt(self) -> Result<Started<T>> {
        self.start(&Vec::new())
    }
}

compiled! {
    /// Starts learning, see [`Run::start_in_pieces`].
    fn start<T>(run: Run<T>, samples: &dyn Samples<T>, whole: &dyn Samples<T>) -> Result<Started<T>> = started;
}

fn started<T: Real>(run: Run<T>, samples: &dyn Samples<T>, whole: &dyn Samples<T>) -> Result<Started<T>> {
    let Run { origin, options, schedule, team } = run;
    let strict = schedule.strict;
    let ready = Ready { samples, whole, options: &options, strict, processes: processes(team.as_ref()) };
    let started = match origin {
        Origin::New { config, init } => ready.begin(*config, init, team.as_ref())?,
        Origin::Saved(saved) => ready.go_on(&saved, team.as_ref())?,
    };
    Ok(Started { schedule: stopping(&options, schedule), ..started })
}

/// Returns how many processes of a team share this machine.
fn processes(team: Option<&Team>) -> usize {
    team.map_or(1, |team| team.comm.neighbours())
}

/// Returns a schedule that also says when to stop.
fn stopping(options: &RunConfig, schedule: TrainOptions) -> TrainOptions {
    // A limit beyond what a duration holds is no limit.
    let time_limit = options.time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
    TrainOptions { stop_tol: options.stop_tol, time_limit, ..schedule }
}

/// The samples of a run that is about to start.
struct Ready<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    /// What the samples are pieces of, or the same.
    whole: &'a dyn Samples<T>,
    options: &'a RunConfig,
    strict: bool,
    processes: usize,
}

impl<T: Real> Ready<'_, T> {
    /// Begins a new run. The first of several processes does it for all.
    fn begin(&self, config: Config, init: Init<T>, team: Option<&Team>) -> Result<Started<T>> {
        let Some(team) = team else { return self.begin_alone(config, init) };
        let bytes = match team.comm.rank() {
            0 => self.begin_for_all(config, init),
            _ => Ok((Vec::new(), None)),
        };
        let beta = bytes.as_ref().ok().and_then(|(_, beta)| *beta);
        let bytes = broadcast(&*team.comm, bytes.map(|(model, _)| model))?;
        let saved = from_bytes::<T>(&bytes, Path::new("start"))?;
        let survey = self.survey(&saved.config, saved.dictionary.shape(), None)?;
        let learner = team.member(saved.config, saved.dictionary)?;
        Ok(Started { learner, progress: Progress::default(), schedule: TrainOptions::default(), beta, survey })
    }

    /// Begins a run that several processes will make, and returns its model file with how beta was chosen.
    fn begin_for_all(&self, config: Config, init: Init<T>) -> Result<(Vec<u8>, Option<ChosenBeta>)> {
        Distributed::<T>::check_method(config.method)?;
        let started = self.begin_alone(config, init)?;
        Ok((to_bytes(started.learner.as_ref(), None)?, started.beta))
    }

    fn begin_alone(&self, mut config: Config, init: Init<T>) -> Result<Started<T>> {
        config.validate()?;
        config.filters.check_start(matches!(init, Init::Given(_)))?;
        let order = visiting_order(self.samples.len(), config.seed, 0);
        let (first, sample) = first_usable(self.samples, &order, self.strict)?;
        let filter = match &init {
            Init::Given(dictionary) => {
                config.n_filters = dictionary.n_filters();
                config.filter_shape = dictionary.shape().axes(dictionary.rank());
                dictionary.shape()
            }
            _ => Shape::from_axes(sample.shape().channels, &config.filter_shape)?,
        };
        if sample.shape().channels != filter.channels {
            let expected = format!("{}, as the filters have", counted(filter.channels, "channel"));
            let found = counted(sample.shape().channels, "channel");
            return Err(Error::invalid(self.samples.name(first), expected, found));
        }
        // Before there are filters, since these may be too many.
        let survey = self.survey(&config, filter, Some((first, sample.shape().spatial())))?;
        let rank = config.filter_shape.len();
        let constraint = Constraint::new(&config.filters, config.n_filters, filter, rank)?;
        let mut dictionary = match init {
            Init::Random => Dictionary::random(config.n_filters, filter, rank, config.seed)?,
            Init::Patches => Dictionary::from_patches(config.n_filters, filter, rank, self.whole, config.seed)?,
            Init::Given(dictionary) => dictionary,
        };
        constraint.begin(&mut dictionary, config.seed)?;
        let beta = self.options.beta_ratio.map(|ratio| self.choose_beta(&config, filter, ratio)).transpose()?;
        config.beta = beta.map_or(config.beta, |beta| beta.beta());
        let learner = learner(config, dictionary)?;
        Ok(Started { learner, progress: Progress::default(), schedule: TrainOptions::default(), beta, survey })
    }

    /// Goes on from a checkpoint, or from a finished model with new statistics.
    fn go_on(&self, saved: &Saved<T>, team: Option<&Team>) -> Result<Started<T>> {
        let make = |config, dictionary| match team {
            Some(team) => team.member(config, dictionary),
            None => learner(config, dictionary),
        };
        let (learner, progress) = match saved.is_checkpoint() {
            true => saved.resume_with(make)?,
            false => (make(saved.config.obeyed(), saved.dictionary.clone())?, Progress::default()),
        };
        let survey = self.survey(learner.config(), learner.dictionary().shape(), None)?;
        Ok(Started { learner, progress, schedule: TrainOptions::default(), beta: None, survey })
    }

    /// Refuses what does not fit the filters, the method or the memory, as far as it is known before samples are read; `read` is
    /// the number and size of one that was.
    fn survey(&self, config: &Config, filter: Shape, read: Option<(usize, [usize; 3])>) -> Result<Option<Survey>> {
        let mut survey = Survey { samples: self.samples.len(), one_size: None, largest: 0, processes: self.processes };
        let mut first: Option<([usize; 3], usize)> = None;
        let mut is_one_size = true;
        let known = (0..self.samples.len()).filter_map(|i| Some((i, self.samples.spatial(i)?)));
        for (i, size) in read.into_iter().chain(known) {
            check_size(self.samples, i, size, filter)?;
            survey.largest = survey.largest.max(filter.channels * size.iter().product::<usize>());
            let (expected, with) = *first.get_or_insert((size, i));
            if size != expected && !config.method.takes_mixed_sizes() {
                let (name, first, method) = (self.samples.name(i), self.samples.name(with), config.method.name());
                return Err(Error::MixedSizes { name, expected, first, found: size, method });
            }
            is_one_size &= size == expected;
        }
        let shaped = |[depth, height, width]: [usize; 3]| Shape { channels: filter.channels, depth, height, width };
        survey.one_size = first.map(|(size, _)| shaped(size)).filter(|_| is_one_size);
        if first.is_none() || config.passes == 0 {
            return Ok(None);
        }
        survey.ensure::<T>(config, filter, self.options.memory_limit)?;
        Ok(Some(survey))
    }

    /// Chooses beta as a fraction of the largest useful one.
    fn choose_beta(&self, config: &Config, filter: Shape, ratio: f64) -> Result<ChosenBeta> {
        crate::setting::positive("beta_ratio", ratio)?;
        let of = BetaMax::of_patches(config, filter, self.whole, self.strict)?;
        let chosen = ChosenBeta { ratio, of };
        // Rounding may leave nothing of the smallest numbers.
        crate::setting::positive("beta_ratio times the median", chosen.beta())?;
        Ok(chosen)
    }
}

impl<T: Real> Started<T> {
    /// Trains on a data set until the schedule, the stopping rule or the observer ends it.
    ///
    /// Whatever ends it, what was learned is kept; after an error [`Started::progress`] is still that of the beginning.
    pub fn train(
        &mut self,
        samples: &dyn Samples<T>,
        test: Option<&dyn Samples<T>>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Outcome> {
        let outcome = train(self.learner.as_mut(), samples, test, &self.schedule, self.progress, observer)?;
        self.progress = outcome.progress;
        Ok(outcome)
    }

    /// Trains on a stream in the same way, in this many passes.
    pub fn train_stream(
        &mut self,
        passes: usize,
        stream: &mut dyn Stream<T>,
        test: Option<&dyn Samples<T>>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Outcome> {
        let (learner, begun) = (self.learner.as_mut(), self.progress);
        let outcome = train_stream(learner, passes, stream, test, &self.schedule, begun, observer)?;
        self.progress = outcome.progress;
        Ok(outcome)
    }

    /// Checks that the samples of a test set can be coded: else the first pass would be lost on the last of them.
    pub fn check_test(&self, test: &dyn Samples<T>) -> Result<()> {
        let filter = self.learner.dictionary().shape();
        for (i, size) in (0..test.len()).filter_map(|i| Some((i, test.spatial(i)?))) {
            check_size(test, i, size, filter)?;
        }
        if self.learner.comm().rank() > 0 {
            return Ok(());
        }
        let all: Vec<usize> = (0..test.len()).collect();
        let (first, sample) = first_usable(test, &all, self.schedule.strict)?;
        let fit = self.learner.dictionary().check_sample_shape(sample.shape());
        fit.map_err(|error| name_samples(error, test, &[first]))
    }

    /// Goes on with other settings, which leave the statistics as they are.
    pub fn change(&mut self, config: Config) -> Result<()> {
        let mut changed = learner(config, self.learner.dictionary().clone())?;
        changed.restore(&self.learner.state(), self.learner.step())?;
        self.learner = changed;
        Ok(())
    }

    /// Sets where the run is, such as the beginning of its first pass.
    pub fn set_progress(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// Sets when the run stops: what belongs to the next call of [`Started::train`].
    pub fn set_options(&mut self, options: &RunConfig) {
        self.schedule = stopping(options, self.schedule.clone());
    }

    /// Returns what learns.
    pub fn learner(&self) -> &dyn Learner<T> {
        self.learner.as_ref()
    }

    /// Returns where the run is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns how beta was chosen, if it was to be a fraction of the largest useful one.
    pub fn beta(&self) -> Option<&ChosenBeta> {
        self.beta.as_ref()
    }

    /// Returns what the samples are like, if that is known before they are read.
    pub fn survey(&self) -> Option<&Survey> {
        self.survey.as_ref()
    }
}

/// Refuses a sample that is smaller than the filters.
fn check_size<T: Real>(samples: &dyn Samples<T>, index: usize, size: [usize; 3], filter: Shape) -> Result<()> {
    if size.iter().zip(filter.spatial()).all(|(s, f)| *s >= f) {
        return Ok(());
    }
    Err(Error::TooSmall { name: samples.name(index), index, filter: filter.spatial(), found: size })
}

/// Returns the first sample in the order of visits that can be read, with its number.
fn first_usable<T: Real>(samples: &dyn Samples<T>, order: &[usize], strict: bool) -> Result<(usize, Sample<T>)> {
    let mut first_error = None;
    for &i in order {
        match samples.get(i).map_err(|error| name_samples(error, samples, &[i])) {
            Ok(sample) => return Ok((i, sample)),
            Err(error) if strict || error.is_system_failure() => return Err(error),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    let Some(why) = first_error else { return Err(Error::invalid("data set", "at least one sample", "none")) };
    Err(Error::Source(format!("none of {} can be read; the first: {why}", counted(order.len(), "sample"))))
}
