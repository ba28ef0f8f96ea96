//! The fast coder: coordinate descent on an active set of atoms, certified.
//!
//! **Problem**: min over z of 1/2 ||x - D z||^2 + sum_k w_k ||z_k||_1 with w_k = beta times an optional weight per filter;
//! z may be restricted to be non-negative. With a mask M the data term is 1/2 ||M (x - D z)||^2: the residual is zero where
//! nothing was observed. Other problems are solved by the same two steps:
//!
//! - *Weights of single coefficients* are one more product in the outer step (`field.rs`).
//! - *An elastic net* is the lasso with one more value per coefficient (`field.rs`).
//! - *Weights of values, Huber's loss and the modulus* change the residual (`residual.rs`).
//! - *Concave penalties* p are majorised in every round by the l1 norm with the weights w_j = p'(|z_j|) (`../../penalty.rs`). A
//!   coefficient that is zero has p'(0) = beta, so only the atoms on the list have weights of their own, and the outer step is
//!   unchanged. As every round lowers what majorises it, the objective falls from round to round. Where it ends, z is stationary.
//!   The gap is then that of the weighted problem among all codes whose non-zeros are at most twice those of z, since p may be
//!   flat there; it comes with how far the weights moved in the last round.
//!
//! At a useful beta only a few of the K P coefficients are non-zero, so the work is on those. The residual
//! r = x - D z is kept as an image, and an active list of atoms (filter, position, value). Two steps alternate:
//!
//! - *outer*: correlate r with all filters everywhere. That gives the duality gap, which decides whether to stop, and the
//!   atoms that violate optimality, |d_k^T r| > w_k. At first the strongest few of each small cell join the list; once the
//!   violations are moderate, all that violate or are about to. Where the processor can, all scans are made in 8 bits (`coarse`): the
//!   first ones choose atoms by them, the last ones rule out by them what cannot violate optimality, and compute the rest exactly.
//!   Once the gap is near the tolerance, a second dual point is tried, which is scaled only where it must be (`local.rs`).
//! - *inner*: cyclic coordinate descent over the list, each step one correlation of r with one filter, a soft threshold and
//!   one update of r: tens of nanoseconds. Tiles of the sample in which nothing moves any more are left alone, and distant
//!   bands are swept at the same time (`tiling.rs`, `list.rs`). It stops when its steps are small against the violations still
//!   to be expected.
//!
//! **Cost**: about five full correlations (K P M each), in 8 bits where the processor can and else at the speed of a matrix
//! product, and a few dozen sweeps over parts of the list. **Memory**: the sample and its non-zeros; the K P correlations are
//! reduced line by line. Large images are coded in strips (`strips.rs`).
//!
//! **Dense codes.** At a very small beta the non-zeros get as many as the sample has numbers, and descent gets slow. The sample then
//! goes to [`Admm`](super::Admm), from the code reached, for circular boundaries without weights, signs or masks and as long as that takes
//! at most 256 MB: when there are more than 0.8 non-zeros per number and five rounds in a row made no progress, or at once where beta is
//! below 0.0014 of the largest. The example `dense` measures both coders as beta falls. On a 100 x 100 Fruit image (K = 100, 11 x 11) and
//! one thread the time against that of ADMM alone is, by fractions of the largest beta, for a gap of 1 %: 0.19 at 0.01, 0.51 at 0.003,
//! 1.01 at 0.001, 1.06 at 0.0005.

mod bound;
mod coarse;
mod correlate;
mod descend;
mod field;
mod filters;
mod frame;
mod list;
mod local;
mod residual;
mod scan;
mod solve;
mod strips;
mod tiling;
mod worth;

use super::support::{data_term, refit};
use super::{Coded, Coder, Weights};
use crate::Boundary;
use crate::coder::ActiveSetConfig;
use crate::metrics::Objective;
use crate::monitor::{Monitor, Silent};
use crate::setting::positive;
use crate::{Code, Dictionary, Real, Result, Sample};
use bound::Wide;
use coarse::CoarseFilters;
use filters::Filters;
use rayon::prelude::*;
use solve::Solve;
use std::sync::OnceLock;

/// Codes within a budget of non-zeros are found to at least this tolerance.
const FINE: f64 = 1e-3;

/// The active-set coder.
pub struct ActiveSet<T: Real> {
    beta: f64,
    tol: f64,
    boundary: Boundary,
    config: ActiveSetConfig,
    dictionary: Dictionary<T>,
    filters: Filters<T>,
    /// w_k in f64, for what is claimed, and rounded, for descent.
    exact_weights: Vec<f64>,
    weights: Vec<T>,
    inverse_weights: Vec<T>,
    coarse: Option<CoarseFilters>,
    wide: OnceLock<Wide>,
}

impl<T: Real> ActiveSet<T> {
    /// A coder for a dictionary; settings as validated by [`crate::Config::validate`].
    pub fn new(
        dictionary: &Dictionary<T>,
        beta: f64,
        tol: f64,
        boundary: Boundary,
        config: ActiveSetConfig,
    ) -> Result<Self> {
        positive("beta", beta)?;
        positive("tol", tol)?;
        let mut coder = ActiveSet {
            beta,
            tol,
            boundary,
            dictionary: dictionary.clone(),
            filters: Filters::new(dictionary),
            exact_weights: Vec::new(),
            weights: Vec::new(),
            inverse_weights: Vec::new(),
            coarse: None,
            wide: OnceLock::new(),
            config,
        };
        coder.set_dictionary(dictionary);
        Ok(coder)
    }

    /// Returns beta.
    pub(super) fn beta(&self) -> f64 {
        self.beta
    }

    /// The same coder at another beta, without a budget.
    pub(super) fn clone_at(&self, beta: f64) -> Result<Self> {
        // Codes of a rough tolerance have atoms to spare, which a budget of them would count.
        let tol = if self.config.nonzeros.is_some() { self.tol.min(FINE) } else { self.tol };
        let config = ActiveSetConfig { error: None, explained: None, nonzeros: None, ..self.config.clone() };
        ActiveSet::new(&self.dictionary, beta, tol, self.boundary, config)
    }

    /// Codes one sample within the budget, if there is one, and fits the code's values to the sample, if that is wanted.
    pub(super) fn coded(&self, sample: &Sample<T>, start: Option<&Code<T>>, monitor: &dyn Monitor) -> Result<Coded<T>> {
        match self.config.budget() {
            Some(budget) => self.within(budget, sample, monitor),
            None => {
                let coded = self.solve(sample, start, monitor)?;
                if self.config.refit { self.refitted(sample, coded) } else { Ok(coded) }
            }
        }
    }

    /// Fits the values of a code to the sample, by least squares with the signs kept. What it then is worth as a code of the
    /// problem follows from what was proven before.
    pub(super) fn refitted(&self, sample: &Sample<T>, coded: Coded<T>) -> Result<Coded<T>> {
        let (loss, penalty) = (self.config.loss, self.config.penalty);
        let code = refit(sample, &coded.code, &self.dictionary, self.boundary, loss)?;
        let data_term = data_term(sample, &code, &self.dictionary, self.boundary, loss);
        let solve = Solve::new(self, sample, None)?;
        let (mut pays, mut l1) = (0.0, 0.0);
        for atom in code.atoms() {
            let (value, base) =
                (atom.value.f64().abs(), solve.base_weight(atom.filter as usize, atom.position as usize));
            pays += penalty.value(base, value) + 0.5 * penalty.ridge() * value * value;
            l1 += base * value;
        }
        // Both objectives are sums of f64: the difference is off by a few units of their size.
        let rise = data_term + pays - coded.total();
        let off = 1e-12 * (data_term + pays + coded.total());
        let gap = (coded.gap + if penalty.is_convex() { rise } else { rise.abs() } + off).max(0.0);
        let objective = Objective { data_term, l1: l1 / self.beta };
        Ok(Coded { code, objective, penalty: pays, gap, ..coded })
    }
}

impl<T: Real> Coder<T> for ActiveSet<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        self.dictionary = dictionary.clone();
        self.filters = Filters::new(dictionary);
        // Anew, since the number of filters may have changed; filters beyond the given weights have weight 1.
        let given: &[f64] = match &self.config.weights {
            Weights::PerFilter(weights) => weights,
            _ => &[],
        };
        let weights = (0..dictionary.n_filters()).map(|k| self.beta * given.get(k).copied().unwrap_or(1.0));
        let weights: Vec<f64> = weights.collect();
        self.weights = weights.iter().map(|w| T::of(*w)).collect();
        self.inverse_weights = weights.iter().map(|w| T::of(1.0 / w)).chain([T::zero(); filters::PAIR]).collect();
        self.exact_weights = weights;
        self.wide = OnceLock::new();
        let shape = dictionary.shape();
        self.coarse = CoarseFilters::new(shape.len() / shape.width, &self.filters, &self.exact_weights);
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        // Once into the pool of threads, instead of at every parallel loop.
        rayon::join(|| self.coded(sample, start, &Silent), || ()).0
    }

    fn code_all(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Vec<Coded<T>>> {
        let solve = |sample| self.coded(sample, None, monitor).inspect(|_| monitor.coded());
        samples.par_iter().map(solve).collect()
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        self.dictionary.check_sample_shape(sample.shape())?;
        Ok(Solve::new(self, sample, None)?.largest_beta())
    }
}
