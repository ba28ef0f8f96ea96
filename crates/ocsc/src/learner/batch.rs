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

use super::{CodeSums, Learner, Step, check_batch, finite_or_old, initial, settled};
use crate::coder::Coder;
use crate::monitor::{Monitor, check_wanted};
use crate::state::State;
use crate::update::{Update, Updated};
use crate::{Atom, Code, Config, Dictionary, Error, Real, Result, Sample, Shape};
use std::collections::BTreeMap;

/// A dictionary that improves with every pass.
pub struct Batch<T: Real> {
    config: Config,
    dictionary: Dictionary<T>,
    coder: Box<dyn Coder<T>>,
    update: Box<dyn Update<T>>,
    /// Samples with their codes, by their numbers in the data set.
    kept: BTreeMap<usize, (Sample<T>, Code<T>)>,
    step: usize,
}

impl<T: Real> Batch<T> {
    /// A learner with a random dictionary for samples of so many channels.
    pub fn new(config: Config, channels: usize) -> Result<Self> {
        let dictionary = initial(&config, channels)?;
        Self::with_dictionary(config, dictionary)
    }

    /// A learner that starts from a given dictionary, which overrides the number and shape of filters in `config`.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>) -> Result<Self> {
        let config = settled(config, &dictionary)?;
        if !config.method.is_batch() {
            return Err(Error::invalid("method", "one that learns in batches", config.method));
        }
        let coder = config.method.coder(&dictionary, &config.learning())?;
        let update = config.method.update(&config.updating())?;
        Ok(Batch { config, dictionary, coder, update, kept: BTreeMap::new(), step: 0 })
    }
}

impl<T: Real> Learner<T> for Batch<T> {
    fn learn(&mut self, visits: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        check_batch(samples)?;
        let mut coded = Vec::with_capacity(samples.len());
        let first = self.kept.values().next().map_or(samples[0].shape(), |(first, _)| first.shape());
        for (index, sample) in visits.iter().zip(samples) {
            check_wanted(monitor)?;
            if sample.shape() != first && !self.config.method.takes_mixed_sizes() {
                let expected = format!("{first}, as the samples before (`{}` takes one size)", self.config.method);
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
        self.step += 1;
        Ok(Step {
            step: self.step,
            totals: CodeSums::of(samples, &coded),
            own_codes: coded,
            dictionary_change: 0.0,
            update: Updated::default(),
        })
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        self.update.forget();
        for (sample, code) in self.kept.values() {
            self.update.absorb(sample, code, &self.dictionary)?;
        }
        let old = self.dictionary.clone();
        let updated = self.update.update(&mut self.dictionary);
        finite_or_old(&mut self.dictionary, &old)?;
        self.coder.set_dictionary(&self.dictionary);
        Ok(Some((self.dictionary.relative_change(&old), updated)))
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
        let (mut shapes, mut lens) = (Vec::new(), Vec::new());
        let (mut values, mut seen, mut atoms) = (Vec::new(), Vec::new(), Vec::new());
        for (sample, code) in self.kept.values() {
            let Shape { channels, depth, height, width } = sample.shape();
            shapes.extend([channels, depth, height, width].map(|n| n as f64));
            lens.push(code.nonzeros() as f64);
            values.extend_from_slice(sample.data());
            let is_seen = |i: usize| sample.mask().is_none_or(|mask| mask[i]);
            seen.extend((0..sample.data().len()).map(|i| if is_seen(i) { T::one() } else { T::zero() }));
            for a in code.atoms() {
                let halves = [a.filter, a.position].map(|n| [n >> 16, n & 0xffff].map(|n| T::of(n.into())));
                atoms.extend(halves.into_iter().flatten().chain([a.value]));
            }
        }
        let visited: Vec<f64> = self.kept.keys().map(|i| *i as f64).collect();
        self.update
            .state()
            .with_numbers("kept", &visited)
            .with_numbers("kept_shapes", &shapes)
            .with_numbers("kept_atoms", &lens)
            .with_owned("kept_samples", values)
            .with_owned("kept_masks", seen)
            .with_owned("kept_codes", atoms)
    }

    fn restore(&mut self, state: &State<'_, T>, step: usize) -> Result<()> {
        self.step = step;
        if state.is_empty() {
            return Ok(());
        }
        let (visited, shapes, lens) =
            (state.counts("kept")?, state.counts("kept_shapes")?, state.counts("kept_atoms")?);
        let mut values = state.array("kept_samples")?;
        let mut seen = state.array("kept_masks")?;
        let mut atoms = state.array("kept_codes")?;
        let damaged = || Error::invalid("saved samples and codes", "as many numbers as their shapes say", "others");
        if shapes.len() != 4 * visited.len() || lens.len() != visited.len() {
            return Err(damaged());
        }
        for ((index, shape), n) in visited.into_iter().zip(shapes.as_chunks::<4>().0).zip(lens) {
            let [channels, depth, height, width] = *shape;
            let shape = Shape { channels, depth, height, width };
            self.dictionary.check_sample_shape(shape)?;
            let data = values.split_off(..shape.len()).ok_or_else(damaged)?;
            let mask = seen.split_off(..shape.len()).ok_or_else(damaged)?;
            if let Some(v) = mask.iter().find(|v| **v != T::zero() && **v != T::one()) {
                return Err(Error::invalid("saved `kept_masks`", "zeros and ones", v));
            }
            let mask = mask.iter().map(|v| *v != T::zero()).collect();
            let sample = Sample::masked(shape, data.to_vec(), mask)?;
            let list = atoms.split_off(..n.saturating_mul(5)).ok_or_else(damaged)?;
            let half = |v: &T| (0.0..65536.0).contains(&v.f64()) && v.f64().fract() == 0.0;
            if let Some(v) = list.chunks_exact(5).flat_map(|a| &a[..4]).find(|v| !half(v)) {
                return Err(Error::invalid("saved `kept_codes`", "whole numbers below 65536", v));
            }
            let number = |high: T, low: T| (high.f64() as u32) << 16 | (low.f64() as u32 & 0xffff);
            let atom = |a: &[T; 5]| Atom { filter: number(a[0], a[1]), position: number(a[2], a[3]), value: a[4] };
            let list = list.as_chunks::<5>().0.iter().map(atom).collect();
            let code = Code::new(self.dictionary.n_filters(), shape.spatial(), list)?;
            self.kept.insert(index, (sample, code));
        }
        self.update.restore(state, &self.dictionary)
    }
}
