//! The settings of dictionary updates.

use super::Forgetting;
use crate::constraint::FilterConfig;
use crate::setting::{Check, Effect, Part, settings};
use crate::{Boundary, Error, Loss, Result};

/// What any update is made with.
#[derive(Clone, Debug)]
pub(crate) struct UpdatingConfig {
    pub(crate) boundary: Boundary,
    pub(crate) loss: Loss,
    pub(crate) seed: u64,
    pub(crate) update: UpdateConfig,
    pub(crate) block_descent: BlockDescentConfig,
    pub(crate) filters: FilterConfig,
}

settings! {
    /// Settings of the updates that iterate: by ADMM, or by FISTA.
    pub struct UpdateConfig at "/update" {
        /// The update's penalty; 4 ||Z||^2 / K of the first code by default.
        rho: Option<f64> = None, name("update_rho"), of(Part::UpdateAdmm), check(Check::Positive), value_name("RHO"), effect(Effect::Fixed);
        /// The update's iterations, at most.
        max_iters: usize = 50, name("update_iters"), of(Part::UpdateIterations), check(Check::AtLeastOne), value_name("N"), effect(Effect::Learning);
        /// The update's tolerance on its relative residuals.
        tol: f64 = 1e-3, name("update_tol"), of(Part::UpdateTolerance), check(Check::Positive), value_name("TOL"), effect(Effect::Learning);
        /// Start the update's variables from zero at every sample, as the paper prints it.
        reset: bool = false, name("update_reset"), of(Part::UpdateAdmm), effect(Effect::Learning);
        /// The step of update t is this / (step_delay + t) (method sgd); by default it follows from the curvature of the first batch.
        step: Option<f64> = None, name("step_size"), of(Part::Steps), check(Check::Positive), value_name("A"), effect(Effect::Learning);
        /// The step of update t is step_size / (this + t) (method sgd).
        delay: f64 = 5.0, name("step_delay"), of(Part::Steps), check(Check::From(0.0)), value_name("B"), effect(Effect::Learning);
    }
}

impl BlockDescentConfig {
    /// Returns R for this many filters that depend on the sample.
    pub(crate) fn n_base(&self, n_filters: usize) -> usize {
        if self.base_filters > 0 { self.base_filters } else { (n_filters / 10).max(n_filters.min(4)) }
    }

    /// Refuses more base filters than filters.
    pub(crate) fn check_base_filters(&self, n_filters: usize) -> Result<()> {
        if self.base_filters > n_filters {
            let expected = format!("at most the {n_filters} filters that they make");
            return Err(Error::invalid("base_filters", expected, self.base_filters));
        }
        Ok(())
    }
}

settings! {
    /// Settings of the block coordinate descent on lags, see [`BlockDescent`](super::BlockDescent).
    pub struct BlockDescentConfig at "/block_descent" {
        /// The past weighs (1 - 1/t)^this at update t (methods ocsc, scsc, aocdl and osc); 1 is plain averaging; auto is 3 + log2 of the
        /// samples per update. Or constant:WEIGHT, such as constant:0.99 for streams that drift: the past weighs this at every update.
        forgetting: Forgetting = Forgetting::Auto, of(Part::Sweeps), check(Check::From(1.0)), value_name("EXPONENT"), effect(Effect::Learning);
        /// Sweeps of block descent per update, at most (methods ocsc, scsc, aocdl and osc).
        sweeps: usize = 1, of(Part::Sweeps), check(Check::AtLeastOne), value_name("N"), effect(Effect::Learning);
        /// Filters are linear combinations of this many base filters: one set of weights for all samples (method ocsc, where 0 leaves the
        /// filters free), or one for every sample (method scsc, where 0 is a tenth of the filters, at least 4).
        base_filters: usize = 0, of(Part::BaseFilters), value_name("R"), effect(Effect::Fixed);
        /// Try the worst-explained patches in the place of filters that no code uses (methods ocsc and scsc).
        reseed: bool = true, of(Part::Lags), flag("no-reseed"), effect(Effect::Learning);
        /// Every ten updates, move filters so that their energy is in the middle, and try the worst-explained patches in the place
        /// of filters that are shifted copies of others (method ocsc).
        recenter: bool = false, of(Part::Filters), effect(Effect::Learning);
        /// End the sweeps of an update when the relative norm of the projected gradient is at most this (methods ocsc, scsc and aocdl).
        tol: f64 = 1e-4, name("sweep_tol"), of(Part::SweepTolerance), check(Check::Positive), value_name("TOL"), effect(Effect::Learning);
    }
}
