//! Learners: code samples, absorb them, update the dictionary. [`Online`] does so sample by sample, [`Batch`] pass by pass.
//!
//! A learner knows neither time nor files nor where samples come from; [`crate::train`] does.

mod batch;
mod online;

pub use batch::Batch;
pub use online::Online;

use crate::checkpoint::State;
use crate::coder::{Coded, Coder};
use crate::update::Updated;
use crate::{Config, Dictionary, Error, Method, Real, Result, Sample, Shape};

/// Learns a dictionary from samples, by any method.
pub trait Learner<T: Real>: Send {
    /// Learns from samples; `visits` are their numbers in the data set, by which batch methods know them again.
    fn learn(&mut self, visits: &[usize], samples: &[Sample<T>]) -> Result<Step<T>>;

    /// All samples were visited once more. Batch methods update the dictionary now, and return its relative change
    /// ||D - D_old|| / ||D|| with what the update reports.
    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>>;

    /// The current dictionary.
    fn dictionary(&self) -> &Dictionary<T>;

    /// The settings.
    fn config(&self) -> &Config;

    /// t: how many times it learned from samples.
    fn step(&self) -> usize;

    /// All that a later [`Learner::restore`] needs to go on bit for bit.
    fn state(&self) -> State<'_, T>;

    /// Takes over a saved state, after so many steps.
    fn restore(&mut self, state: &State<'_, T>, step: usize) -> Result<()>;
}

/// The learner of the method in `config`, from a given dictionary, which overrides the number and shape of filters there.
pub fn learner<T: Real>(config: Config, dictionary: Dictionary<T>) -> Result<Box<dyn Learner<T>>> {
    Ok(match config.method {
        Method::Osc => T::osc(config, dictionary)?,
        method if method.is_batch() => Box::new(Batch::with_dictionary(config, dictionary)?),
        _ => Box::new(Online::with_dictionary(config, dictionary)?),
    })
}

/// What one step did.
#[derive(Clone, Debug)]
pub struct Step<T> {
    /// t, counting from 1 over the learner's life.
    pub step: usize,
    /// The samples' codes against the dictionary before the update, in their order.
    pub coded: Vec<Coded<T>>,
    /// ||D - D_old|| / ||D||; zero for steps that do not update.
    pub dictionary_change: f64,
    /// What the dictionary update reports.
    pub update: Updated,
}

impl<T: Real> Step<T> {
    /// The mean objective of the samples.
    pub fn objective(&self) -> f64 {
        self.coded.iter().map(Coded::total).sum::<f64>() / self.coded.len().max(1) as f64
    }

    /// The worst relative duality gap of the samples.
    pub fn gap(&self) -> f64 {
        self.coded.iter().map(Coded::relative_gap).fold(0.0, f64::max)
    }

    /// The mean number of non-zeros of the samples.
    pub fn nonzeros(&self) -> f64 {
        self.coded.iter().map(|c| c.code.nonzeros() as f64).sum::<f64>() / self.coded.len().max(1) as f64
    }
}

/// The coder for new data, whatever method learned the dictionary: all solve the same problem, and this is the fastest.
pub fn coder<T: Real>(config: &Config, dictionary: &Dictionary<T>, tol: f64) -> Result<Box<dyn Coder<T>>> {
    T::active_set(config, dictionary, tol)
}

/// The random dictionary that a run starts from.
pub fn initial<T: Real>(config: &Config, channels: usize) -> Result<Dictionary<T>> {
    config.validate()?;
    let shape = Shape::from_axes(channels, &config.filter_shape)?;
    Dictionary::random(config.n_filters, shape, config.filter_shape.len(), config.seed)
}

/// The settings with the number and shape of the dictionary's filters, checked.
pub(crate) fn settled<T: Real>(mut config: Config, dictionary: &Dictionary<T>) -> Result<Config> {
    config.n_filters = dictionary.n_filters();
    config.filter_shape = dictionary.shape().axes(dictionary.rank());
    config.validate()?;
    Ok(config)
}

/// That there are samples, of values whose squares can be summed.
pub(crate) fn check_values<T: Real>(samples: &[Sample<T>]) -> Result<()> {
    if samples.is_empty() {
        return Err(Error::invalid("batch", "at least one sample", "none"));
    }
    for sample in samples {
        if let Some(v) = sample.data().iter().find(|v| v.f64().abs() > T::LARGEST) {
            let expected = format!("values up to {:e} in {} (scale the samples, or use f64)", T::LARGEST, T::NAME);
            return Err(Error::invalid("sample", expected, format!("{v:e}")));
        }
    }
    Ok(())
}

/// That an update left finite numbers; otherwise the dictionary becomes the old one again.
pub(crate) fn finite_or_old<T: Real>(dictionary: &mut Dictionary<T>, old: &Dictionary<T>) -> Result<()> {
    let Some(v) = dictionary.data().iter().find(|v| !v.is_finite()) else { return Ok(()) };
    let error = Error::invalid("the updated dictionary", "finite numbers (scale the samples, or use f64)", v);
    dictionary.clone_from(old);
    Err(error)
}
