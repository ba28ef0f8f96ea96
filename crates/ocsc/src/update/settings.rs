//! The settings of dictionary updates.

use crate::Boundary;
use crate::setting::{Check, Effect, Part, settings};

/// What any update is made with.
#[derive(Clone, Debug)]
pub(crate) struct UpdatingConfig {
    pub(crate) boundary: Boundary,
    pub(crate) seed: u64,
    pub(crate) update: UpdateConfig,
    pub(crate) block_descent: BlockDescentConfig,
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
    }
}

settings! {
    /// Settings of the block coordinate descent on lags, see [`BlockDescent`](super::BlockDescent).
    pub struct BlockDescentConfig at "/block_descent" {
        /// The past weighs (1 - 1/t)^this at update t (methods ocsc and osc); 1 is plain averaging.
        forgetting: f64 = 3.0, of(Part::Sweeps), check(Check::From(1.0)), value_name("EXPONENT"), effect(Effect::Learning);
        /// Sweeps of block descent per update, at most (methods ocsc and osc).
        sweeps: usize = 1, of(Part::Sweeps), check(Check::AtLeastOne), value_name("N"), effect(Effect::Learning);
        /// Try the worst-explained patches in the place of filters that no code uses (method ocsc).
        reseed: bool = true, of(Part::Lags), flag("no-reseed"), effect(Effect::Learning);
        /// End the sweeps of an update when the relative norm of the projected gradient is at most this (method ocsc).
        tol: f64 = 1e-4, name("sweep_tol"), of(Part::Lags), check(Check::Positive), value_name("TOL"), effect(Effect::Learning);
    }
}
