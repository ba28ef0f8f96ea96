//! Online learning (Algorithm 3): code a sample, absorb it, update the dictionary.
//!
//! The learner knows neither time nor files nor where samples come from; [`crate::train`] does.

use crate::checkpoint::State;
use crate::coder::{Coded, Coder};
use crate::update::{Update, Updated};
use crate::{Config, Dictionary, Error, Method, Real, Result, Sample, Shape};

/// A dictionary that improves with every sample.
pub struct Online<T: Real> {
    config: Config,
    dictionary: Dictionary<T>,
    coder: Box<dyn Coder<T>>,
    update: Box<dyn Update<T>>,
    step: usize,
}

/// What one step did.
#[derive(Clone, Debug)]
pub struct Step<T> {
    /// t, counting from 1 over the learner's life.
    pub step: usize,
    /// The samples' codes against the dictionary before the update, in their order.
    pub coded: Vec<Coded<T>>,
    /// ||D - D_old|| / ||D||.
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

impl<T: Real> Online<T> {
    /// A learner with a random dictionary for samples of so many channels (Algorithm 3, line 1).
    pub fn new(config: Config, channels: usize) -> Result<Self> {
        config.validate()?;
        let shape = Shape::from_axes(channels, &config.filter_shape)?;
        let dictionary = Dictionary::random(config.n_filters, shape, config.filter_shape.len(), config.seed)?;
        Self::with_dictionary(config, dictionary)
    }

    /// A learner that starts from a given dictionary, which overrides the number and shape of filters in `config`.
    pub fn with_dictionary(mut config: Config, dictionary: Dictionary<T>) -> Result<Self> {
        config.n_filters = dictionary.n_filters();
        config.filter_shape = dictionary.shape().axes(dictionary.rank());
        config.validate()?;
        let coder = learning_coder(&config, &dictionary)?;
        let update: Box<dyn Update<T>> = match config.method {
            Method::Ocsc => T::block_descent(&config),
            Method::OcscPaper => T::ocsc(&config),
        };
        Ok(Online { config, dictionary, coder, update, step: 0 })
    }

    /// Learns from one sample.
    pub fn partial_fit(&mut self, sample: &Sample<T>) -> Result<Step<T>> {
        self.partial_fit_batch(std::slice::from_ref(sample))
    }

    /// Learns from several samples with one update of the dictionary.
    ///
    /// On an error nothing was learned from samples that were not absorbed yet, and the dictionary is as before.
    pub fn partial_fit_batch(&mut self, samples: &[Sample<T>]) -> Result<Step<T>> {
        if samples.is_empty() {
            return Err(Error::invalid("batch", "at least one sample", "none"));
        }
        for sample in samples {
            if let Some(v) = sample.data().iter().find(|v| v.f64().abs() > T::LARGEST) {
                let expected = format!("values up to {:e} in {} (scale the samples, or use f64)", T::LARGEST, T::NAME);
                return Err(Error::invalid("sample", expected, format!("{v:e}")));
            }
        }
        let coded = self.coder.code_all(samples)?;
        for (sample, coded) in samples.iter().zip(&coded) {
            self.update.absorb(sample, &coded.code, &self.dictionary)?;
        }
        let old = self.dictionary.clone();
        let update = self.update.update(&mut self.dictionary);
        if let Some(v) = self.dictionary.data().iter().find(|v| !v.is_finite()) {
            let message = Error::invalid("the updated dictionary", "finite numbers (scale the samples, or use f64)", v);
            self.dictionary = old;
            return Err(message);
        }
        self.coder.set_dictionary(&self.dictionary);
        self.step += 1;
        let dictionary_change = self.dictionary.relative_change(&old);
        Ok(Step { step: self.step, coded, dictionary_change, update })
    }

    /// The current dictionary D_t.
    pub fn dictionary(&self) -> &Dictionary<T> {
        &self.dictionary
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// t, the number of updates so far.
    pub fn step(&self) -> usize {
        self.step
    }

    pub(crate) fn state(&self) -> State<'_, T> {
        self.update.state()
    }

    pub(crate) fn restore(&mut self, state: &State<'_, T>, step: usize) -> Result<()> {
        self.update.restore(state, &self.dictionary)?;
        self.step = step;
        Ok(())
    }
}

/// The coder for new data, whatever method learned the dictionary: all solve the same problem, and this is the fastest.
pub fn coder<T: Real>(config: &Config, dictionary: &Dictionary<T>, tol: f64) -> Result<Box<dyn Coder<T>>> {
    T::active_set(config, dictionary, tol)
}

/// The coder that belongs to a method.
fn learning_coder<T: Real>(config: &Config, dictionary: &Dictionary<T>) -> Result<Box<dyn Coder<T>>> {
    match config.method {
        Method::Ocsc => coder(config, dictionary, config.tol),
        Method::OcscPaper => T::admm(config, dictionary),
    }
}
