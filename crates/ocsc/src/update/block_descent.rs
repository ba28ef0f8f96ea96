//! Block coordinate descent on [`Lags`]: filter by filter, projected gradient steps on the exact objective.
//!
//! **Problem**, over the weighted statistics phi, psi of all codes so far:
//!
//! ```text
//! min over D   1/2 sum_kl <d_k, phi_kl * d_l> - sum_k <psi_k, d_k>       with ||d_k|| <= 1
//! ```
//!
//! **A sweep** visits k = 1..K in turn, with the newest filters all along:
//!
//! ```text
//! g_k = sum_l phi_kl * d_l - psi_k                             on the filter's support
//! d_k = project( d_k - g_k / L_k ),   g_k += phi_kk * (change of d_k)              twice
//! ```
//!
//! **Stopping rule.** D is stationary (the paper, Section "Convergence") if and only if no d_k - project(d_k - g_k / L_k)
//! differs from zero. A sweep sees all of them, each with the newest filters, before it moves d_k:
//!
//! ```text
//! stationarity = sqrt( sum_k || d_k - project(d_k - g_k / L_k) ||^2 ) / ||D||
//! ```
//!
//! It is reported, and sweeps are repeated until it is at most [`BlockDescentConfig::tol`] or all
//! [`BlockDescentConfig::sweeps`] are made. By default there is one: its codes are out of date before they are fitted.
//!
//! **The step.** d -> phi_kk * d on the support is a symmetric matrix with entries phi_kk(s - s'). On a circle of
//! N >= 2m - 1 points per axis no two of these lags fall together, so the matrix is a diagonal block of the circulant
//! matrix of phi_kk, and its largest eigenvalue is at most the circulant's: L_k = max |.| over the N-point Fourier
//! transform of phi_kk. With it no step increases the objective.
//!
//! **What filters may be** is for [`Constraint`] to say: `project` is that of the unit ball, or on the set that
//! [`FilterConfig`] describes. Filters of rank one are moved factor by factor (`rank_one.rs`), fixed ones not at all.
//!
//! **Forgetting.** Before the samples of update t are absorbed the past is multiplied by (1 - 1/t)^(e - 1), e =
//! [`BlockDescentConfig::forgetting`]: in the mean over updates the past then has the weight (1 - 1/t)^e, and e = 1 is
//! the paper's plain average. It may also be a constant, see [`Forgetting`](super::Forgetting). All samples of a batch weigh
//! the same. Held-out objective in % of that of e = 1, one sweep
//! (`python3 benchmarks/forgetting.py`, which also varies the sweeps: 2 and 5 change it by 0.35 % at most, mostly upwards):
//!
//! | | e = 1 | 1.5 | 2 | 3 | 4 |
//! |---|---|---|---|---|---|
//! | 8 images of Fruit or City, 1 pass | 100 | 99.37 | 99.00 | 98.51 | 98.57 |
//! | the same, 10 passes | 100 | 99.51 | 99.28 | 98.79 | 98.94 |
//! | 1,000 images of CIFAR-10, 1 pass | 100 | 99.57 | 99.22 | 99.05 | 98.92 |
//!
//! **Unused filters** are replaced by the worst-explained patches of the newest samples, see [`reseed`](super::reseed); with
//! [`BlockDescentConfig::recenter`] also shifted copies of others, see [`recenter`].
//!
//! **Cost** K^2 m^4 (per channel, two axes) for a sweep; memory that of the statistics.

use super::reseed::{Patch, Reseed, candidates};
use super::sweep::Sweep;
use super::{Absorbed, Update, Updated, base_filters, recenter};
use crate::Boundary;
use crate::constraint::{Constraint, FilterConfig};
use crate::span::Span;
use crate::state::State;
use crate::statistics::plausible::check_lags;
use crate::statistics::{Addend, Lags};
use crate::update::BlockDescentConfig;
use crate::{Code, Dictionary, Error, Loss, Real, Result, Sample};
use rayon::prelude::*;

/// The update on lags.
pub struct BlockDescent<T: Real> {
    config: BlockDescentConfig,
    filters: FilterConfig,
    boundary: Boundary,
    loss: Loss,
    seed: u64,
    plan: Option<Plan<T>>,
    /// Updates begun, and whether one has samples but was not made yet.
    updates: usize,
    open: bool,
    /// Filters that were due for a new start when the update was begun.
    due: usize,
    unused: usize,
}

/// What one sample brings to an update: what it adds to the statistics, and patches for filters that are due.
pub(crate) struct Share<'a, T: Real> {
    pub(crate) addend: Addend<'a, T>,
    pub(crate) patches: Vec<Patch>,
}

/// Everything that depends on the filters' shape.
struct Plan<T: Real> {
    lags: Lags<T>,
    sweep: Sweep<T>,
    reseed: Reseed,
    constraint: Constraint,
}

impl<T: Real> Plan<T> {
    fn new(dictionary: &Dictionary<T>, seed: u64, filters: &FilterConfig) -> Self {
        let (n_filters, shape) = (dictionary.n_filters(), dictionary.shape());
        // Whoever made the settings has checked them against the filters.
        let constraint = Constraint::new(filters, n_filters, shape, dictionary.rank());
        let constraint = constraint.unwrap_or_else(|_| Constraint::ball(n_filters, shape));
        let lags = Lags::new(n_filters, shape);
        Plan { sweep: Sweep::new(&lags, constraint.clone()), reseed: Reseed::new(seed, n_filters), lags, constraint }
    }

    /// Returns the filters to be replaced at update `t`.
    fn due(&self, t: usize, config: &BlockDescentConfig, dictionary: &Dictionary<T>) -> Vec<usize> {
        let mut due = match config.reseed {
            true => self.reseed.due(&self.lags, t, config.forgetting, &self.constraint),
            false => Vec::new(),
        };
        if config.recenter && recenter::is_due(t) {
            let energies: Vec<f64> = (0..dictionary.n_filters()).map(|k| self.lags.energy(k).f64()).collect();
            let is_new = |k: usize| t.saturating_sub(self.reseed.seeded()[k]) < recenter::EVERY;
            due.extend(recenter::copies(dictionary, &self.constraint, &energies, is_new));
            due.sort_unstable();
            due.dedup();
        }
        due
    }
}

impl<T: Real> BlockDescent<T> {
    /// An update without statistics; codes must have been made with the same boundary. The seed is for new filters.
    pub fn new(config: BlockDescentConfig, boundary: Boundary, seed: u64) -> Self {
        let (filters, loss) = (FilterConfig::default(), Loss::L2);
        BlockDescent { config, filters, boundary, loss, seed, plan: None, updates: 0, open: false, due: 0, unused: 0 }
    }

    /// The same for codes that were made with this loss.
    pub fn loss(self, loss: Loss) -> Self {
        BlockDescent { loss, ..self }
    }

    /// Says what filters may be, before any sample is absorbed. The dictionaries that are updated must be feasible, and the
    /// settings fit them.
    pub fn constrained(self, filters: FilterConfig) -> Self {
        BlockDescent { filters, ..self }
    }

    /// What lies outside of samples.
    pub(super) fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// Returns the statistics, if there are any yet.
    pub fn statistics(&self) -> Option<&Lags<T>> {
        self.plan.as_ref().map(|plan| &plan.lags)
    }

    /// Begins an update if none is begun: the past is forgotten a little.
    pub(crate) fn open(&mut self, dictionary: &Dictionary<T>) {
        if self.open {
            return;
        }
        let plan = self.plan.get_or_insert_with(|| Plan::new(dictionary, self.seed, &self.filters));
        self.updates += 1;
        self.open = true;
        let past = self.config.forgetting.past(self.updates);
        if self.updates > 1 && past != 1.0 {
            plan.lags.scale(past);
        }
        self.due = plan.due(self.updates, &self.config, dictionary).len();
    }

    /// What a sample brings to the update that is open.
    pub(crate) fn share<'a>(
        &self,
        sample: &Sample<T>,
        code: &'a Code<T>,
        dictionary: &Dictionary<T>,
    ) -> Result<Share<'a, T>> {
        let Some(plan) = &self.plan else { return Err(Error::invalid("update", "one that was begun", "none")) };
        let addend = plan.lags.addend(sample, code, dictionary, self.boundary, self.loss)?;
        Ok(Share { addend, patches: candidates(self.due, sample, code, dictionary, self.boundary)? })
    }

    /// Takes what an open update is given.
    pub(crate) fn take(&mut self, patches: Vec<Patch>, add: impl FnOnce(&mut Lags<T>) -> Result<()>) -> Result<()> {
        let Some(plan) = &mut self.plan else { return Ok(()) };
        plan.reseed.keep(patches);
        add(&mut plan.lags)
    }

    /// Returns how many filters the last update left alone because no code has used them.
    pub fn unused(&self) -> usize {
        self.unused
    }
}

impl<T: Real> Update<T> for BlockDescent<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        self.absorb_all(&[(sample, code, dictionary)])
    }

    fn absorb_all(&mut self, batch: &[Absorbed<'_, T>]) -> Result<()> {
        let Some((_, _, first)) = batch.first() else { return Ok(()) };
        let plan = self.plan.get_or_insert_with(|| Plan::new(first, self.seed, &self.filters));
        // Before the past is touched.
        for (sample, code, dictionary) in batch {
            plan.lags.check(sample, code, dictionary, self.boundary)?;
        }
        self.open(first);
        let shares = batch.par_iter().map(|&(sample, code, dictionary)| self.share(sample, code, dictionary));
        let shares = shares.collect::<Result<Vec<_>>>()?;
        let (addends, patches): (Vec<_>, Vec<_>) =
            shares.into_iter().map(|share| (share.addend, share.patches)).unzip();
        let boundary = self.boundary;
        self.take(patches.into_iter().flatten().collect(), |lags| lags.add_all(&addends, boundary))
    }

    fn forget(&mut self) {
        (self.plan, self.updates, self.open) = (None, 0, false);
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let mut updated = Updated::default();
        let Some(plan) = &mut self.plan else { return updated };
        self.open = false;
        let span = (self.config.base_filters > 0).then(|| Span::of(dictionary, self.config.base_filters));
        let due = plan.due(self.updates, &self.config, dictionary);
        updated.reseeded = plan.reseed.replace(self.updates, &due, &plan.constraint, &mut plan.lags, dictionary);
        if self.config.recenter && recenter::is_due(self.updates) {
            updated.recentered = recenter::center(&mut plan.lags, dictionary, &plan.constraint);
        }
        // Patches are not made of base filters.
        span.iter().for_each(|span| span.confine(dictionary));
        plan.sweep.set_bounds(&plan.lags);
        for sweep in 1..=self.config.sweeps {
            let swept = match self.config.base_filters {
                0 => plan.sweep.run(&plan.lags, dictionary, None),
                n => base_filters::round(n, &plan.lags, &mut plan.sweep, dictionary),
            };
            self.unused = swept.unused;
            let norm = dictionary.data().iter().map(|d| d.f64().powi(2)).sum::<f64>().max(f64::MIN_POSITIVE);
            let stationarity = (swept.steps / norm).sqrt();
            updated = Updated { iterations: sweep, stationarity: Some(stationarity), ..updated };
            if stationarity <= self.config.tol {
                break;
            }
        }
        updated
    }

    fn state(&self) -> State<'_> {
        let Some(plan) = &self.plan else { return State::default() };
        let ([phi, psi], [constant, weight]) = plan.lags.parts();
        State::default()
            .with("phi", phi)
            .with("psi", psi)
            .with_owned("constant", vec![constant])
            .with_owned("weight", vec![weight])
            .with_counts("seeded", plan.reseed.seeded().iter().copied())
            .with_counts("updates", [self.updates, usize::from(self.open)])
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let mut plan = Plan::new(dictionary, self.seed, &self.filters);
        let [phi, psi] = plan.lags.arrays_mut();
        state.copy_array("phi", phi)?;
        state.copy_array("psi", psi)?;
        plan.lags.set_numbers([state.number("constant")?, state.number("weight")?])?;
        check_lags(&plan.lags)?;
        state.copy_counts("seeded", plan.reseed.seeded_mut())?;
        let mut counts = [0; 2];
        state.copy_counts("updates", &mut counts)?;
        let [updates, open] = counts;
        if let Some(seeded) = plan.reseed.seeded().iter().find(|t| **t > updates) {
            return Err(Error::invalid("saved `seeded`", format!("at most the {updates} updates made"), seeded));
        }
        (self.updates, self.open) = (updates, open > 0);
        self.due = if self.open { plan.due(self.updates, &self.config, dictionary).len() } else { 0 };
        self.plan = Some(plan);
        Ok(())
    }
}
