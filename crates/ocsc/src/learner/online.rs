//! Online learning (Algorithm 3): code a sample, absorb it, update the dictionary, forget the sample.

use super::{CodeSums, Core, Learner, Step, check_batch, initial};
use crate::coder::Coder;
use crate::monitor::{Monitor, Silent};
use crate::state::State;
use crate::update::{Absorbed, Update, Updated};
use crate::{Config, Dictionary, Error, Method, Real, Result, Sample};

/// Learns a dictionary that improves with every sample.
pub struct Online<T: Real> {
    core: Core<T>,
    coder: Box<dyn Coder<T>>,
    update: Box<dyn Update<T>>,
}

impl<T: Real> Online<T> {
    /// Makes a learner with a random dictionary for samples with this number of channels (Algorithm 3, line 1).
    pub fn new(config: Config, channels: usize) -> Result<Self> {
        let dictionary = initial(&config, channels)?;
        Self::with_dictionary(config, dictionary)
    }

    /// Makes a learner that starts from a given dictionary, which overrides the number and shape of filters in `config`.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>) -> Result<Self> {
        let core = Core::new(config, dictionary)?;
        let config = &core.config;
        let coder = config.method.coder(&core.dictionary, &config.learning())?;
        let update = config.method.update(&config.updating())?;
        if config.method.is_batch() {
            return Err(Error::invalid("method", "one that learns online", config.method));
        }
        Ok(Online { core, coder, update })
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
        if self.core.config.method != Method::Ocsc {
            // Their updates know no weights.
            samples.iter().try_for_each(Sample::check_unweighted)?;
        }
        let coded = self.coder.code_all(samples, monitor)?;
        let pairs = samples.iter().zip(&coded);
        let batch: Vec<Absorbed<'_, T>> =
            pairs.map(|(sample, coded)| (sample, &coded.code, coded.filters_or(&self.core.dictionary))).collect();
        self.update.absorb_all(&batch)?;
        let updated = self.core.update(|dictionary| self.update.update(dictionary))?;
        self.coder.set_dictionary(&self.core.dictionary);
        let totals = CodeSums::of(samples, &coded);
        Ok(self.core.count_step(coded, totals, updated))
    }

    /// Returns the current dictionary D_t.
    pub fn dictionary(&self) -> &Dictionary<T> {
        &self.core.dictionary
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Returns t, the number of updates so far.
    pub fn step(&self) -> usize {
        self.core.step
    }
}

impl<T: Real> Learner<T> for Online<T> {
    fn learn(&mut self, _visits: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        self.fit(samples, monitor)
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        Ok(None)
    }

    fn core(&self) -> &Core<T> {
        &self.core
    }

    fn state(&self) -> State<'_> {
        self.update.state()
    }

    fn restore(&mut self, state: &State<'_>, step: usize) -> Result<()> {
        self.update.restore(state, &self.core.dictionary)?;
        self.core.step = step;
        Ok(())
    }
}
