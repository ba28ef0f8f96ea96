//! What every learner has, whatever its schedule: settings, a dictionary and the number of steps.

use super::{CodeSums, Step};
use crate::coder::Coded;
use crate::constraint::Constraint;
use crate::span::Span;
use crate::update::Updated;
use crate::{Config, Dictionary, Error, Method, Real, Result};

/// Holds the settings of a learner, its dictionary, and how many times it learned from samples.
pub struct Core<T: Real> {
    pub(super) config: Config,
    pub(super) dictionary: Dictionary<T>,
    pub(super) step: usize,
}

impl<T: Real> Core<T> {
    /// Starts from a dictionary, whose number, shape and scalar of filters override those in the settings; these are checked.
    /// The dictionary becomes feasible, if it is not. With base filters that all samples share, the filters are confined to the span
    /// of as many of them; those that a run made are.
    pub(super) fn new(mut config: Config, mut dictionary: Dictionary<T>) -> Result<Self> {
        config.dtype = T::DTYPE;
        config.n_filters = dictionary.n_filters();
        config.filter_shape = dictionary.shape().axes(dictionary.rank());
        config.validate()?;
        let (n_filters, shape, rank) = (dictionary.n_filters(), dictionary.shape(), dictionary.rank());
        Constraint::new(&config.filters, n_filters, shape, rank)?.begin(&mut dictionary, config.seed)?;
        let base = config.block_descent.base_filters;
        if base > 0 && config.method == Method::Ocsc {
            Span::of(&dictionary, base).confine(&mut dictionary);
        }
        Ok(Core { config, dictionary, step: 0 })
    }

    /// Updates the dictionary; returns its relative change ||D - D_old|| / ||D|| with what the update reports.
    ///
    /// If the update did not leave finite numbers, the dictionary becomes the old one again.
    pub(super) fn update(&mut self, update: impl FnOnce(&mut Dictionary<T>) -> Updated) -> Result<(f64, Updated)> {
        let old = self.dictionary.clone();
        let updated = update(&mut self.dictionary);
        if let Some(v) = self.dictionary.data().iter().find(|v| !v.is_finite()) {
            let expected = "finite numbers (scale the samples, or use f64)";
            let error = Error::invalid("the updated dictionary", expected, v);
            self.dictionary = old;
            return Err(error);
        }
        Ok((self.dictionary.relative_change(&old), updated))
    }

    /// Counts a step, and tells what it did.
    pub(super) fn count_step(
        &mut self,
        own_codes: Vec<Coded<T>>,
        totals: CodeSums,
        (dictionary_change, update): (f64, Updated),
    ) -> Step<T> {
        self.step += 1;
        Step { step: self.step, own_codes, totals, dictionary_change, update }
    }
}
