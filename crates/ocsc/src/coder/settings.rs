//! The settings of coders.

use crate::setting::{Check, Effect, HasKind, Kind, Part, settings};
use crate::{Boundary, Error, Result};
use serde::{Deserialize, Serialize};

/// What any coder is made with.
#[derive(Clone, Debug)]
pub(crate) struct CodingConfig {
    pub(crate) beta: f64,
    pub(crate) tol: f64,
    pub(crate) boundary: Boundary,
    pub(crate) coder: CoderConfig,
    pub(crate) active_set: ActiveSetConfig,
}

settings! {
    /// Settings of the ADMM and FISTA coders, see [`Admm`](super::Admm) and [`Fista`](super::Fista).
    pub struct CoderConfig at "/coder" {
        /// The coder's penalty; 50 beta / max|x| by default.
        rho: Option<f64> = None, of(Part::Admm), check(Check::Positive), effect(Effect::Learning);
        /// Balance the coder's residuals by its penalty, instead of keeping it fixed.
        adaptive_rho: bool = true, of(Part::Admm), flag("fixed-rho"), effect(Effect::Learning);
        /// The coder's over-relaxation, from 1 (the paper's) up to 2.
        relaxation: f64 = 1.8, of(Part::Admm), check(Check::Within(1.0, 2.0)), effect(Effect::Learning);
        /// The coder's stopping rule: duality gap (gap), relative ADMM residuals (residuals), or the paper's relative change of Z
        /// (change); methods other than ocsc, here and below.
        stop: StopRule = StopRule::Gap, of(Part::Stopping), effect(Effect::Learning);
        /// The coder's iterations, at most.
        max_iters: usize = 1000, of(Part::Iterations), check(Check::AtLeastOne), value_name("N"), effect(Effect::Learning);
    }
}

settings! {
    /// Settings of the active-set coder, see [`ActiveSet`](super::ActiveSet), which also codes new data, whatever method learned.
    pub struct ActiveSetConfig at "/active_set" {
        /// One weight per filter on its l1 norm; 1 each by default (method ocsc).
        weights: Option<Vec<f64>> = None, of(Part::ActiveSet), check(Check::Positive), not_in_learn(), effect(Effect::Both);
        /// Codes without negative values (method ocsc).
        nonnegative: bool = false, name("non_negative"), flag("nonnegative"), of(Part::ActiveSet), effect(Effect::Both);
        /// Rounds of the active-set coder per sample, at most; the gap says how far its code got.
        max_rounds: usize = 200, check(Check::AtLeastOne), value_name("N"), in_code("max-iters"), effect(Effect::Both);
        /// Seconds per sample, at most; the gap says how far its code got. Codes then depend on the machine.
        time_limit: Option<f64> = None, name("sample_time_limit"), check(Check::Positive), value_name("SECONDS"), not_in_learn(), not_in_python(), in_code("time-limit");
    }
}

impl ActiveSetConfig {
    /// Refuses another number of weights than there are filters.
    pub(crate) fn check_weights(&self, n_filters: usize) -> Result<()> {
        match &self.weights {
            Some(weights) if weights.len() != n_filters => {
                Err(Error::invalid("weights", format!("one for each of {n_filters} filters"), weights.len()))
            }
            _ => Ok(()),
        }
    }
}

/// When a coder stops; the tolerance is [`Config::tol`](crate::Config::tol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StopRule {
    /// The duality gap of the sparse code is at most tol times its objective.
    #[default]
    Gap,
    /// The relative primal and dual residuals of ADMM are at most tol.
    Residuals,
    /// The paper's rule: ||Z - Z_old|| is at most tol ||Z||.
    Change,
}

impl HasKind for StopRule {
    const KIND: Kind = Kind::Choice(&["gap", "residuals", "change"]);
}
