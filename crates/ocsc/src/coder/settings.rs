//! The settings of coders.

use super::Budget;
use crate::setting::{Check, Effect, HasKind, Kind, Part, settings};
use crate::{Boundary, Error, Loss, Penalty, Result};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What any coder is made with.
#[derive(Clone, Debug)]
pub(crate) struct CodingConfig {
    pub(crate) beta: f64,
    pub(crate) tol: f64,
    pub(crate) boundary: Boundary,
    pub(crate) coder: CoderConfig,
    pub(crate) active_set: ActiveSetConfig,
    /// The rank of filters that depend on the sample.
    pub(crate) n_base: usize,
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
        /// What codes pay: l1, elastic:MU, log-sum:EPS, mcp:GAMMA or lq:Q (method ocsc).
        penalty: Penalty = Penalty::L1, of(Part::ActiveSet), value_name("PENALTY"), in_code("penalty"), effect(Effect::Both);
        /// Weights in the penalty, by which beta is multiplied: one per filter, or the rule inverse:EPS, 1 / (|D^T x| + EPS) for each
        /// coefficient (method ocsc).
        weights: Weights = Weights::Equal, of(Part::ActiveSet), check(Check::Positive), value_name("FILE"), in_code("weights"), effect(Effect::Both);
        /// What differences cost: l2 (half the squares), huber:DELTA or l1, which bound what single values can do (method ocsc).
        loss: Loss = Loss::L2, of(Part::ActiveSet), value_name("LOSS"), in_code("loss"), effect(Effect::Both);
        /// Codes without negative values (method ocsc).
        nonnegative: bool = false, name("non_negative"), flag("nonnegative"), of(Part::ActiveSet), effect(Effect::Both);
        /// Channels that are coded by themselves (per-channel) share their support: what a filter has on the channels of a place pays its
        /// Euclidean norm (method ocsc).
        joint: bool = false, of(Part::ActiveSet), in_code("joint"), effect(Effect::Both);
        /// The coder: active-set, or omp (orthogonal matching pursuit: the strongest atom joins, and all values are fitted anew, until
        /// the budget of error, explained or nonzeros is spent, or no correlation exceeds beta) (method ocsc).
        coder: CoderKind = CoderKind::ActiveSet, of(Part::ActiveSet), in_code("coder"), effect(Effect::Both);
        /// Fit the values of a code to the sample by least squares, signs kept: amplitudes without the bias of the penalty. Codes of
        /// new data only; learning goes by the penalty.
        refit: bool = false, not_in_learn(), in_code("refit"), effect(Effect::Both);
        /// Instead of beta: codes whose differences to the sample have this root mean square (method ocsc).
        error: Option<f64> = None, of(Part::ActiveSet), check(Check::Positive), value_name("SIGMA"), in_code("error"), effect(Effect::Both);
        /// Instead of beta: codes that explain this share of the sample's energy (method ocsc).
        explained: Option<f64> = None, of(Part::ActiveSet), check(Check::Within(0.0, 1.0)), value_name("FRACTION"), in_code("explained"), effect(Effect::Both);
        /// Instead of beta: codes of at most this many non-zeros per sample (method ocsc).
        nonzeros: Option<u64> = None, of(Part::ActiveSet), check(Check::AtLeastOne), value_name("N"), in_code("nonzeros"), effect(Effect::Both);
        /// While learning, codes are this close to optimal; as tol says by default. 0.1 learns nearly as well in less time (methods ocsc,
        /// sgd, aocdl, scsc).
        learn_tol: Option<f64> = None, of(Part::ActiveSet), check(Check::Positive), value_name("TOL"), effect(Effect::Learning);
        /// Rounds of the active-set coder per sample, at most; the gap says how far its code got.
        max_rounds: usize = 200, check(Check::AtLeastOne), value_name("N"), in_code("max-iters"), effect(Effect::Both);
        /// Seconds per sample, at most; the gap says how far its code got. Codes then depend on the machine.
        time_limit: Option<f64> = None, name("sample_time_limit"), check(Check::Positive), value_name("SECONDS"), not_in_learn(), not_in_python(), in_code("time-limit");
    }
}

impl ActiveSetConfig {
    /// Returns the budget that codes are to keep, if there is one.
    pub fn budget(&self) -> Option<Budget> {
        let accuracy = self.error.map(Budget::Error).or(self.explained.map(Budget::Explained));
        accuracy.or(self.nonzeros.map(|n| Budget::Nonzeros(n as usize)))
    }

    /// Refuses what contradicts itself, or does not fit so many filters.
    pub fn check_problem(&self, n_filters: usize) -> Result<()> {
        self.check_weights(n_filters)?;
        let given: Vec<&str> = [
            ("error", self.error.is_some()),
            ("explained", self.explained.is_some()),
            ("nonzeros", self.nonzeros.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
        .collect();
        if given.len() > 1 {
            return Err(Error::invalid(given[1], "one budget", format!("also {}", given[0])));
        }
        if self.coder == CoderKind::Omp {
            let because = "with the coder `omp`, which pays for the number of non-zeros alone";
            self.check_plain("weights", self.weights == Weights::Equal, because)?;
            self.check_plain("joint", !self.joint, because)?;
            self.check_l1(because)?;
        }
        if self.joint {
            let because = "beside joint channels, whose coder knows no other";
            let has_rule = matches!(self.weights, Weights::Inverse(_));
            self.check_plain("weights", !has_rule, because)?;
            self.check_plain("refit", !self.refit, because)?;
            self.check_plain(given.first().copied().unwrap_or_default(), given.is_empty(), because)?;
            self.check_l1(because)?;
        }
        Ok(())
    }

    /// Refuses other penalties than l1 and other losses than l2.
    fn check_l1(&self, because: &str) -> Result<()> {
        self.check_plain("penalty", self.penalty == Penalty::L1, because)?;
        self.check_plain("loss", self.loss == Loss::L2, because)
    }

    /// Refuses another value of a setting than its default.
    fn check_plain(&self, name: &str, is_default: bool, because: &str) -> Result<()> {
        match is_default {
            true => Ok(()),
            false => Err(Error::invalid(name, format!("its default {because}"), "another one")),
        }
    }

    /// Refuses another number of weights than there are filters.
    fn check_weights(&self, n_filters: usize) -> Result<()> {
        match &self.weights {
            Weights::PerFilter(weights) if weights.len() != n_filters => {
                Err(Error::invalid("weights", format!("one for each of {n_filters} filters"), weights.len()))
            }
            _ => Ok(()),
        }
    }
}

/// Names a coder for new data, and for the method `ocsc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CoderKind {
    /// The active set, certified.
    #[default]
    ActiveSet,
    /// Orthogonal matching pursuit.
    Omp,
}

impl HasKind for CoderKind {
    const KIND: Kind = Kind::Choice(&["active-set", "omp"]);
}

/// Says what beta is multiplied by in the penalty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Option<WeightsForm>", into = "Option<WeightsForm>")]
#[non_exhaustive]
pub enum Weights {
    /// By nothing.
    #[default]
    Equal,
    /// By one number per filter.
    PerFilter(Vec<f64>),
    /// By 1 / (|d_k^T x| + EPS) at every position, so that what stands out in the sample pays less.
    Inverse(f64),
}

/// The forms of [`Weights`] in files: numbers, or the words of a rule.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected one number per filter, or inverse:EPS (EPS above 0)")]
enum WeightsForm {
    Numbers(Vec<f64>),
    Rule(String),
}

impl FromStr for Weights {
    type Err = Error;

    /// Reads the words of a rule.
    fn from_str(text: &str) -> Result<Self> {
        let eps = text.strip_prefix("inverse:").and_then(|eps| eps.parse::<f64>().ok());
        match eps.filter(|eps| *eps > 0.0 && eps.is_finite()) {
            Some(eps) => Ok(Weights::Inverse(eps)),
            None => Err(Error::invalid(
                "weights",
                "one number per filter, or inverse:EPS (EPS above 0)",
                format!("`{text}`"),
            )),
        }
    }
}

impl TryFrom<Option<WeightsForm>> for Weights {
    type Error = Error;

    fn try_from(form: Option<WeightsForm>) -> Result<Self> {
        match form {
            None => Ok(Weights::Equal),
            Some(WeightsForm::Numbers(weights)) => Ok(Weights::PerFilter(weights)),
            Some(WeightsForm::Rule(rule)) => rule.parse(),
        }
    }
}

impl From<Weights> for Option<WeightsForm> {
    fn from(weights: Weights) -> Self {
        match weights {
            Weights::Equal => None,
            Weights::PerFilter(weights) => Some(WeightsForm::Numbers(weights)),
            Weights::Inverse(eps) => Some(WeightsForm::Rule(format!("inverse:{eps}"))),
        }
    }
}

impl HasKind for Weights {
    const KIND: Kind = Kind::OptionalNumbers;

    fn numbers(&self) -> &[f64] {
        match self {
            Weights::PerFilter(weights) => weights,
            _ => &[],
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
