//! Base filters for filters that depend on the sample: lag statistics of R filters instead of K.
//!
//! **Problem**, over R base filters B and a matrix W_i (R x K) for every sample:
//!
//! ```text
//! min over B, {W_i, z_i}   (1/N) sum_i  1/2 || x_i - sum_k D_ik * z_ik ||^2 + beta ||z_i||_1,     D_ik = sum_r B_r W_i(r,k),  ||D_ik|| <= 1
//! ```
//!
//! [`SampleFilters`](crate::coder::SampleFilters) finds D_i and z_i of a sample. What B sees of them are R maps,
//!
//! ```text
//! sum_k D_ik * z_ik = sum_r B_r * y_ir,        y_ir = sum_k W_i(r,k) z_ik
//! ```
//!
//! so [`BlockDescent`] updates B as it updates any R filters, ||B_r|| <= 1, with y_i for codes: the statistics are R^2 (2m - 1)^2 numbers, for
//! R = 10 and K = 100 a hundredth. W_i are the coordinates of D_i in B.
//!
//! **The dictionary** of the model are K filters in the span of B from which the next sample starts, scaled to norm 1: B times
//! the mean of W_i, in which the past weighs (1 - 1/t)^e as in the statistics. It has rank R, so it also tells the span of B.
//!
//! **Where we differ** from the reference: it bounds the columns of W_i, by norms that imply ||D_ik|| <= 1; we bound D_ik itself, which allows
//! more filters. Its history is that of the frequency domain, R^2 P, and it finds W_i and z_i by accelerated proximal gradient
//! steps on dense maps.
//!
//! **Cost** that of the statistics for R times as many non-zeros as positions used; memory R^2 (2m - 1)^2.
//!
//! Reference: Wang, Yao, Kwok, Ni, "Online convolutional sparse coding with sample-dependent dictionary", ICML 2018.

use super::{BlockDescent, Update, Updated};
use crate::Boundary;
use crate::span::{Coordinates, Span};
use crate::state::State;
use crate::statistics::Lags;
use crate::update::BlockDescentConfig;
use crate::{Atom, Code, Dictionary, Error, Real, Result, Sample};

/// The update of base filters.
pub struct Scsc<T: Real> {
    config: BlockDescentConfig,
    descent: BlockDescent<T>,
    /// Everything that depends on the filters' shape.
    plan: Option<Plan<T>>,
    updates: usize,
}

struct Plan<T: Real> {
    /// R filters.
    base: Dictionary<T>,
    /// The mean of W_i, (K, R).
    weights: Vec<T>,
    /// The sum of W_i since the last update, and how many these are.
    sum: Vec<f64>,
    pending: usize,
}

impl<T: Real> Plan<T> {
    /// Starts from an orthonormal basis of the filters' span.
    fn new(dictionary: &Dictionary<T>, n_base: usize) -> Result<Self> {
        let span = Span::of(dictionary, n_base);
        let mut data: Vec<T> = span.basis().flatten().map(|v| T::of(*v)).collect();
        // Filters that span less leave base filters of zeros.
        data.resize(n_base * dictionary.shape().len(), T::zero());
        let base = Dictionary::new(n_base, dictionary.shape(), dictionary.rank(), data)?;
        let n = n_base * dictionary.n_filters();
        Ok(Plan { base, weights: vec![T::zero(); n], sum: vec![0.0; n], pending: 0 })
    }

    /// Writes the filters that the mean weights make, of norm 1; one of zeros stays as it is.
    fn set_filters(&self, dictionary: &mut Dictionary<T>) {
        let len = dictionary.shape().len();
        let weights = self.weights.chunks_exact(self.base.n_filters());
        for (filter, weights) in dictionary.data_mut().chunks_exact_mut(len).zip(weights) {
            let mut taps = vec![0.0; len];
            for (base, weight) in self.base.data().chunks_exact(len).zip(weights) {
                taps.iter_mut().zip(base).for_each(|(t, b)| *t += weight.f64() * b.f64());
            }
            let norm = taps.iter().map(|t| t * t).sum::<f64>().sqrt();
            if norm > 0.0 {
                filter.iter_mut().zip(taps).for_each(|(f, t)| *f = T::of(t / norm));
            }
        }
        dictionary.project();
    }
}

impl<T: Real> Scsc<T> {
    /// Makes an update without statistics; codes must have been made with the same boundary.
    pub fn new(config: BlockDescentConfig, boundary: Boundary, seed: u64) -> Self {
        // Base filters are free.
        let free = BlockDescentConfig { base_filters: 0, ..config.clone() };
        Scsc { config, descent: BlockDescent::new(free, boundary, seed), plan: None, updates: 0 }
    }

    /// Returns the statistics of the base filters, if there are any yet.
    pub fn statistics(&self) -> Option<&Lags<T>> {
        self.descent.statistics()
    }

    /// Returns the base filters, if there are any yet.
    pub fn base(&self) -> Option<&Dictionary<T>> {
        self.plan.as_ref().map(|plan| &plan.base)
    }
}

/// y: the maps of the base filters for a code and its weights, (K, R).
fn base_code<T: Real>(code: &Code<T>, weights: &[f64], n_base: usize) -> Result<Code<T>> {
    let mut atoms: Vec<&Atom<T>> = code.atoms().iter().collect();
    atoms.sort_by_key(|a| (a.position, a.filter));
    let mut of_base = Vec::with_capacity(atoms.len() * n_base);
    for here in atoms.chunk_by(|a, b| a.position == b.position) {
        for r in 0..n_base {
            let value = here.iter().map(|a| a.value.f64() * weights[a.filter as usize * n_base + r]).sum::<f64>();
            if T::of(value) != T::zero() {
                of_base.push(Atom { filter: r as u32, position: here[0].position, value: T::of(value) });
            }
        }
    }
    Code::new(n_base, code.shape(), of_base)
}

impl<T: Real> Update<T> for Scsc<T> {
    /// `dictionary` are the sample's own filters.
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        let n_base = self.config.n_base(dictionary.n_filters());
        let plan = match &mut self.plan {
            Some(plan) => plan,
            none => none.insert(Plan::new(dictionary, n_base)?),
        };
        crate::spatial::check(sample, code, dictionary, self.descent.boundary())?;
        let len = dictionary.shape().len();
        let coordinates = Coordinates::new(len, &plan.base.data().chunks_exact(len).collect::<Vec<_>>());
        let filters = dictionary.data().chunks_exact(len);
        let weights: Vec<f64> = filters.flat_map(|filter| coordinates.of(filter)).collect();
        let code = base_code(code, &weights, n_base)?;
        self.descent.absorb(sample, &code, &plan.base)?;
        plan.sum.iter_mut().zip(weights).for_each(|(sum, w)| *sum += w);
        plan.pending += 1;
        Ok(())
    }

    fn forget(&mut self) {
        self.descent.forget();
        (self.plan, self.updates) = (None, 0);
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let Some(plan) = &mut self.plan else { return Updated::default() };
        if plan.pending == 0 {
            return Updated::default();
        }
        self.updates += 1;
        let past = self.config.forgetting.past_of_mean(self.updates);
        let new = (1.0 - past) / plan.pending as f64;
        plan.weights.iter_mut().zip(&plan.sum).for_each(|(mean, sum)| *mean = T::of(past * mean.f64() + new * sum));
        plan.sum.fill(0.0);
        plan.pending = 0;
        let updated = self.descent.update(&mut plan.base);
        plan.set_filters(dictionary);
        updated
    }

    fn state(&self) -> State<'_> {
        let Some(plan) = &self.plan else { return State::default() };
        self.descent
            .state()
            .with("base_filters", plan.base.data())
            .with("weights", &plan.weights[..])
            .with_counts("steps", [self.updates])
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let mut plan = Plan::new(dictionary, self.config.n_base(dictionary.n_filters()))?;
        let mut data = plan.base.data().to_vec();
        state.copy_array("base_filters", &mut data)?;
        plan.base = Dictionary::new(plan.base.n_filters(), dictionary.shape(), dictionary.rank(), data)?;
        state.copy_array("weights", &mut plan.weights)?;
        let mut updates = [0];
        state.copy_counts("steps", &mut updates)?;
        if updates == [0] {
            return Err(Error::invalid("saved `steps`", "at least one", 0));
        }
        self.descent.restore(state, &plan.base)?;
        (self.plan, [self.updates]) = (Some(plan), updates);
        Ok(())
    }
}
