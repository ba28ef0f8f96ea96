//! Online learning (Algorithm 3): code a sample, absorb it, update the dictionary, forget the sample.

use super::{CodeSums, Learner, Step, check_batch, finite_or_old, initial, settled};
use crate::coder::Coder;
use crate::monitor::{Monitor, Silent};
use crate::state::State;
use crate::update::{Update, Updated};
use crate::{Config, Dictionary, Error, Real, Result, Sample};

/// A dictionary that improves with every sample.
pub struct Online<T: Real> {
    config: Config,
    dictionary: Dictionary<T>,
    coder: Box<dyn Coder<T>>,
    update: Box<dyn Update<T>>,
    step: usize,
}

impl<T: Real> Online<T> {
    /// A learner with a random dictionary for samples of so many channels (Algorithm 3, line 1).
    pub fn new(config: Config, channels: usize) -> Result<Self> {
        let dictionary = initial(&config, channels)?;
        Self::with_dictionary(config, dictionary)
    }

    /// A learner that starts from a given dictionary, which overrides the number and shape of filters in `config`.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>) -> Result<Self> {
        let config = settled(config, &dictionary)?;
        let coder = config.method.coder(&dictionary, &config.learning())?;
        let update = config.method.update(&config.updating())?;
        if config.method.is_batch() {
            return Err(Error::invalid("method", "one that learns online", config.method));
        }
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
        self.fit(samples, &Silent)
    }

    fn fit(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        check_batch(samples)?;
        let coded = self.coder.code_all(samples, monitor)?;
        for (sample, coded) in samples.iter().zip(&coded) {
            self.update.absorb(sample, &coded.code, &self.dictionary)?;
        }
        let old = self.dictionary.clone();
        let update = self.update.update(&mut self.dictionary);
        finite_or_old(&mut self.dictionary, &old)?;
        self.coder.set_dictionary(&self.dictionary);
        self.step += 1;
        let dictionary_change = self.dictionary.relative_change(&old);
        let totals = CodeSums::of(samples, &coded);
        Ok(Step { step: self.step, totals, own_codes: coded, dictionary_change, update })
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
}

impl<T: Real> Learner<T> for Online<T> {
    fn learn(&mut self, _visits: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        self.fit(samples, monitor)
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        Ok(None)
    }

    fn dictionary(&self) -> &Dictionary<T> {
        &self.dictionary
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn step(&self) -> usize {
        self.step
    }

    fn state(&self) -> State<'_, T> {
        self.update.state()
    }

    fn restore(&mut self, state: &State<'_, T>, step: usize) -> Result<()> {
        self.update.restore(state, &self.dictionary)?;
        self.step = step;
        Ok(())
    }
}
