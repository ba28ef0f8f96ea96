//! Learners: code samples, absorb them, update the dictionary. [`Online`] does so sample by sample, [`Batch`] pass by pass,
//! [`Distributed`] as [`Online`] with others who take a part of the samples.
//!
//! A learner knows neither time nor files nor where samples come from; [`crate::train`] does. ([`Distributed`] asks the monitor
//! how late it is, to choose between two ways to the same sums.)

mod batch;
mod core;
mod distributed;
mod online;
mod osc;

pub use self::core::Core;
pub use batch::Batch;
pub use distributed::Distributed;
pub use online::Online;
pub use osc::Osc;

use crate::coder::{self, Coded, Coder};
use crate::comm::{Comm, Solo};
use crate::method::{Schedule, fastest_coder};
use crate::monitor::Monitor;
use crate::real::compiled;
use crate::state::State;
use crate::update::{Update, Updated};
use crate::{Config, Dictionary, Error, Real, Result, Sample, Shape};
use std::sync::Arc;

/// Learns a dictionary from samples, by any method.
pub trait Learner<T: Real>: Send {
    /// Learns from samples; `visits` are their numbers in the data set, by which batch methods know them again. A member of a
    /// team is given its part of a batch, which may be nothing, and the samples' places in the batch.
    ///
    /// If the monitor ends it, with [`Error::Stopped`], nothing was learned, and a saved state goes on bit for bit. Of a team, all
    /// members end if one does.
    fn learn(&mut self, visits: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>>;

    /// Is told that all samples were visited once more. Batch methods update the dictionary now, and return its relative change
    /// ||D - D_old|| / ||D|| with what the update reports.
    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>>;

    /// Returns what all learners have.
    fn core(&self) -> &Core<T>;

    /// Returns the current dictionary.
    fn dictionary(&self) -> &Dictionary<T> {
        &self.core().dictionary
    }

    /// Returns the settings.
    fn config(&self) -> &Config {
        &self.core().config
    }

    /// Returns t, how many times it learned from samples.
    fn step(&self) -> usize {
        self.core().step
    }

    /// Returns all that a later [`Learner::restore`] needs to go on bit for bit.
    fn state(&self) -> State<'_>;

    /// Takes over a state that was saved after `step` steps.
    fn restore(&mut self, state: &State<'_>, step: usize) -> Result<()>;

    /// Returns those it learns with.
    fn comm(&self) -> Arc<dyn Comm> {
        Arc::new(Solo)
    }

    /// Is called instead of [`Learner::learn`] by one who cannot read its part of a batch: tells the others, and returns what
    /// to say.
    fn give_up(&mut self, error: Error) -> Error {
        error
    }
}

compiled! {
    /// Makes the learner of the method in `config`, from a given dictionary, which overrides the number and shape of filters there.
    pub fn learner<T>(config: Config, dictionary: Dictionary<T>) -> Result<Box<dyn Learner<T>>> = make;
}

fn make<T: Real>(config: Config, dictionary: Dictionary<T>) -> Result<Box<dyn Learner<T>>> {
    Ok(match config.method.schedule() {
        Schedule::Online => Box::new(Online::with_dictionary(config, dictionary)?),
        Schedule::Batch => Box::new(Batch::with_dictionary(config, dictionary)?),
        Schedule::Patches => Box::new(Osc::with_dictionary(config, dictionary)?),
    })
}

/// Tells what one step did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Step<T> {
    /// t, counting from 1 over the learner's life.
    pub step: usize,
    /// The samples' codes against the dictionary before the update, in their order: of a team, those of this member.
    pub own_codes: Vec<Coded<T>>,
    /// Sums over all samples of the step, also over those that others coded.
    pub totals: CodeSums,
    /// ||D - D_old|| / ||D||; zero for steps that do not update.
    pub dictionary_change: f64,
    /// What the dictionary update reports.
    pub update: Updated,
}

/// Holds sums over codes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CodeSums {
    /// How many there are.
    pub count: usize,
    /// The sum of their objectives.
    pub objective: f64,
    /// The worst relative duality gap.
    pub gap: f64,
    /// The sum of their non-zeros.
    pub nonzeros: f64,
    /// The observed values of their samples.
    pub values: usize,
}

impl CodeSums {
    /// Sums over the codes of these samples.
    pub fn of<T: Real>(samples: &[Sample<T>], coded: &[Coded<T>]) -> Self {
        let mut sums = CodeSums::default();
        for (sample, c) in samples.iter().zip(coded) {
            sums.add(c.total(), c.relative_gap(), c.code.nonzeros(), sample.n_observed());
        }
        sums
    }

    fn add(&mut self, objective: f64, gap: f64, nonzeros: usize, values: usize) {
        self.count += 1;
        self.objective += objective;
        self.gap = self.gap.max(gap);
        self.nonzeros += nonzeros as f64;
        self.values += values;
    }
}

impl<T: Real> Step<T> {
    /// Returns the mean objective of the samples.
    pub fn objective(&self) -> f64 {
        self.totals.objective / self.totals.count.max(1) as f64
    }

    /// Returns the objective per observed value, which samples of different sizes can be compared by.
    pub fn objective_per_value(&self) -> f64 {
        self.totals.objective / self.totals.values.max(1) as f64
    }

    /// Returns the worst relative duality gap of the samples.
    pub fn gap(&self) -> f64 {
        self.totals.gap
    }

    /// Returns the mean number of non-zeros of the samples.
    pub fn nonzeros(&self) -> f64 {
        self.totals.nonzeros / self.totals.count.max(1) as f64
    }
}

/// Makes the coder for new data, whatever method learned the dictionary: all solve the same problem, and this is the fastest. Filters
/// that depend on the sample are found for new samples too.
pub fn coder<T: Real>(config: &Config, dictionary: &Dictionary<T>, tol: f64) -> Result<Box<dyn Coder<T>>> {
    fastest_coder(config.method, dictionary, &config.coding(tol))
}

/// Makes the coder and the update that the method in `config` learns with, for those who put them together themselves.
pub fn parts<T: Real>(config: &Config, dictionary: &Dictionary<T>) -> Result<Parts<T>> {
    let coder = config.method.coder(dictionary, &config.coding(config.tol))?;
    Ok(Parts { coder, update: config.method.update(&config.updating())? })
}

/// Holds what a method learns with.
pub struct Parts<T: Real> {
    /// Codes samples, to the settings' tol.
    pub coder: Box<dyn Coder<T>>,
    /// Absorbs codes, and updates the dictionary.
    pub update: Box<dyn Update<T>>,
}

/// Codes one sample for every beta, in the order given, each code starting from the one before. From large betas to small ones that
/// costs little more than the smallest alone.
pub fn path<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    sample: &Sample<T>,
    betas: &[f64],
    monitor: &dyn Monitor,
) -> Result<Vec<Coded<T>>> {
    coder::path(dictionary, &config.coding(config.tol), sample, betas, monitor)
}

/// Draws the random dictionary that a run starts from.
pub fn initial<T: Real>(config: &Config, channels: usize) -> Result<Dictionary<T>> {
    config.validate()?;
    config.filters.check_start(false)?;
    let shape = Shape::from_axes(channels, &config.filter_shape)?;
    Dictionary::random(config.n_filters, shape, config.filter_shape.len(), config.seed)
}

/// Checks that the batch is not empty and that the squares of its values can be summed.
pub(crate) fn check_batch<T: Real>(samples: &[Sample<T>]) -> Result<()> {
    if samples.is_empty() {
        return Err(Error::invalid("batch", "at least one sample", "none"));
    }
    check_values(samples)
}

/// Checks that the squares of the values can be summed.
fn check_values<T: Real>(samples: &[Sample<T>]) -> Result<()> {
    for sample in samples {
        if let Some(v) = sample.data().iter().find(|v| v.f64().abs() > T::LARGEST) {
            let advice = if T::LARGEST < f64::LARGEST { "scale the samples, or use f64" } else { "scale the samples" };
            let expected = format!("values up to {:e} in {} ({advice})", T::LARGEST, T::NAME);
            return Err(Error::invalid("sample", expected, format!("{v:e}")));
        }
    }
    Ok(())
}
