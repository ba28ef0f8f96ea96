//! Batch learning: all samples and their codes are kept, and the dictionary is updated once in every pass.
//!
//! ```text
//! repeat   for every sample i:   Z_i = a few iterations of the coder from Z_i, at the same D
//!          D = a few iterations of the update for all (x_i, Z_i), from where the last one ended
//! ```
//!
//! as the batch methods are published (Section "Convolutional Sparse Coding" of the paper). So a batch method differs from an
//! online one in when it forgets (the statistics at every update, samples and codes never) and in when it updates (at the
//! end of a pass).
//!
//! Codes are kept as lists of their non-zeros: the duals that the ADMM coders continue with follow from them
//! (`coder::Admm`, "Starts from"). The N K P numbers of the paper's table are those that the update makes of them.

use super::{CodeSums, Core, Learner, Step, check_batch, initial};
use crate::coder::Coder;
use crate::monitor::{Monitor, check_wanted};
use crate::state::State;
use crate::update::{Update, Updated};
use crate::{Atom, Code, Config, Dictionary, Error, Real, Result, Sample};
use std::collections::BTreeMap;

/// Learns a dictionary that improves with every pass.
pub struct Batch<T: Real> {
    core: Core<T>,
    coder: Box<dyn Coder<T>>,
    update: Box<dyn Update<T>>,
    /// Samples with their codes, by their numbers in the data set.
    kept: BTreeMap<usize, (Sample<T>, Code<T>)>,
}

impl<T: Real> Batch<T> {
    /// Makes a learner with a random dictionary for samples with this number of channels.
    pub fn new(config: Config, channels: usize) -> Result<Self> {
        let dictionary = initial(&config, channels)?;
        Self::with_dictionary(config, dictionary)
    }

    /// Makes a learner that starts from a given dictionary, which overrides the number and shape of filters in `config`.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>) -> Result<Self> {
        let core = Core::new(config, dictionary)?;
        let config = &core.config;
        if !config.method.is_batch() {
            return Err(Error::invalid("method", "one that learns in batches", config.method));
        }
        let coder = config.method.coder(&core.dictionary, &config.learning())?;
        let update = config.method.update(&config.updating())?;
        Ok(Batch { core, coder, update, kept: BTreeMap::new() })
    }
}

impl<T: Real> Learner<T> for Batch<T> {
    fn learn(&mut self, visits: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        check_batch(samples)?;
        samples.iter().try_for_each(Sample::check_unweighted)?;
        let mut coded = Vec::with_capacity(samples.len());
        let first = self.kept.values().next().map_or(samples[0].shape(), |(first, _)| first.shape());
        for (index, sample) in visits.iter().zip(samples) {
            check_wanted(monitor)?;
            if sample.shape() != first && !self.core.config.method.takes_mixed_sizes() {
                let expected = format!("{first}, as the samples before (`{}` takes one size)", self.core.config.method);
                return Err(Error::invalid("sample", expected, sample.shape()));
            }
            let start = self.kept.get(index).filter(|(old, _)| old.shape() == sample.shape());
            let new = self.coder.code(sample, start.map(|(_, code)| code))?;
            monitor.coded();
            coded.push(new);
        }
        // Not before all are coded: a batch that is stopped leaves the others as they were.
        for ((index, sample), new) in visits.iter().zip(samples).zip(&coded) {
            self.kept.insert(*index, (sample.clone(), new.code.clone()));
        }
        let totals = CodeSums::of(samples, &coded);
        Ok(self.core.count_step(coded, totals, (0.0, Updated::default())))
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        self.update.forget();
        for (sample, code) in self.kept.values() {
            self.update.absorb(sample, code, &self.core.dictionary)?;
        }
        let updated = self.core.update(|dictionary| self.update.update(dictionary))?;
        self.coder.set_dictionary(&self.core.dictionary);
        Ok(Some(updated))
    }

    fn core(&self) -> &Core<T> {
        &self.core
    }

    fn state(&self) -> State<'_> {
        let kept = || self.kept.values();
        let seen = |sample: &Sample<T>| match sample.mask() {
            Some(mask) => mask.iter().map(|seen| u8::from(*seen)).collect(),
            None => vec![1; sample.data().len()],
        };
        let atoms = || kept().flat_map(|(_, code)| code.atoms());
        self.update
            .state()
            .with_counts("kept", self.kept.keys().copied())
            .with_shapes("kept_shapes", kept().map(|(sample, _)| sample.shape()))
            .with_counts("kept_atoms", kept().map(|(_, code)| code.nonzeros()))
            .with_owned("kept_samples", kept().flat_map(|(sample, _)| sample.data()).copied().collect::<Vec<T>>())
            .with_owned("kept_masks", kept().flat_map(|(sample, _)| seen(sample)).collect())
            .with_owned("kept_filters", atoms().map(|atom| atom.filter).collect())
            .with_owned("kept_positions", atoms().map(|atom| atom.position).collect())
            .with_owned("kept_values", atoms().map(|atom| atom.value).collect::<Vec<T>>())
    }

    fn restore(&mut self, state: &State<'_>, step: usize) -> Result<()> {
        self.core.step = step;
        if state.is_empty() {
            return Ok(());
        }
        let visited = state.counts("kept")?;
        let shapes = state.shapes("kept_shapes")?;
        let lens = state.counts("kept_atoms")?;
        let mut data = state.array::<T>("kept_samples")?;
        let mut seen = state.array::<u8>("kept_masks")?;
        let mut filters = state.array::<u32>("kept_filters")?;
        let mut positions = state.array::<u32>("kept_positions")?;
        let mut values = state.array::<T>("kept_values")?;
        if let Some(flag) = seen.iter().find(|flag| **flag > 1) {
            return Err(Error::invalid("saved `kept_masks`", "zeros and ones", flag));
        }
        let damaged = || Error::invalid("saved samples and codes", "as many numbers as their shapes say", "others");
        if shapes.len() != visited.len() || lens.len() != visited.len() {
            return Err(damaged());
        }
        for ((index, shape), n) in visited.into_iter().zip(shapes).zip(lens) {
            self.core.dictionary.check_sample_shape(shape)?;
            let data = data.split_off(..shape.len()).ok_or_else(damaged)?.to_vec();
            let mask = seen.split_off(..shape.len()).ok_or_else(damaged)?.iter().map(|flag| *flag > 0).collect();
            let sample = Sample::masked(shape, data, mask)?;
            let filters = filters.split_off(..n).ok_or_else(damaged)?;
            let positions = positions.split_off(..n).ok_or_else(damaged)?;
            let values = values.split_off(..n).ok_or_else(damaged)?;
            let atoms = filters.iter().zip(positions).zip(values);
            let atoms =
                atoms.map(|((filter, position), value)| Atom { filter: *filter, position: *position, value: *value });
            let code = Code::new(self.core.dictionary.n_filters(), shape.spatial(), atoms.collect())?;
            self.kept.insert(index, (sample, code));
        }
        self.update.restore(state, &self.core.dictionary)
    }
}
