//! Every setting of a run, with its default: one plain structure shared by the library, the program and model files.

use crate::preprocess::Preprocess;
use crate::{Axes, Error, Method, Result};
use serde::{Deserialize, Serialize};

/// The settings of learning and coding. `Config::default()` is the paper's experiment: K = 100, 11x11, beta = 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which row of the method table.
    pub method: Method,
    /// K, the number of filters.
    pub n_filters: usize,
    /// The filter's spatial lengths: (W), (H, W) or (D, H, W).
    pub filter_shape: Vec<usize>,
    /// The weight of the l1 norm.
    pub beta: f64,
    /// How many times every sample is visited.
    pub passes: usize,
    /// How many samples are coded between two updates of the dictionary.
    pub batch_size: usize,
    /// The tolerance of the coder's stopping rule; by default the relative duality gap.
    pub tol: f64,
    /// What lies outside a sample.
    pub boundary: Boundary,
    /// Seeds the initial dictionary and the visiting order.
    pub seed: u64,
    /// The scalar that everything is computed in.
    pub dtype: Dtype,
    /// What was done to the samples before learning, and must be done to new ones.
    pub preprocess: Preprocess,
    /// What the axes of the arrays meant that were learned from, and mean in new ones; none if it was assumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axes: Option<Axes>,
    /// The settings of the ADMM coder, which `ocsc-paper` and most batch methods learn with, and of FISTA.
    pub coder: CoderConfig,
    /// The settings of the active-set coder, which codes new data.
    pub active_set: ActiveSetConfig,
    /// The settings of the dictionary updates of all methods but `ocsc` and `osc`.
    pub update: UpdateConfig,
    /// The settings of the dictionary update of `ocsc`; `osc` takes its forgetting and its sweeps.
    pub block_descent: BlockDescentConfig,
    /// The settings of the batch methods.
    pub batch: BatchConfig,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            method: Method::default(),
            n_filters: 100,
            filter_shape: vec![11, 11],
            beta: 1.0,
            passes: 1,
            batch_size: 1,
            tol: 0.01,
            boundary: Boundary::Circular,
            seed: 0,
            dtype: Dtype::F32,
            preprocess: Preprocess::default(),
            axes: None,
            coder: CoderConfig::default(),
            active_set: ActiveSetConfig::default(),
            update: UpdateConfig::default(),
            block_descent: BlockDescentConfig::default(),
            batch: BatchConfig::default(),
        }
    }
}

impl Config {
    /// Refuses what the mathematics cannot take and what the method would not heed, once, at the door.
    pub fn validate(&self) -> Result<()> {
        self.validate_values()?;
        if self.method.takes_signs_and_weights() {
            return Ok(());
        }
        let refused = |what: &str| {
            let expected = format!("the method `{}`, the only one that learns with them", Method::Ocsc);
            Err(Error::invalid(what, expected, format!("`{}`", self.method)))
        };
        match &self.active_set {
            ActiveSetConfig { nonnegative: true, .. } => refused("nonnegative codes"),
            ActiveSetConfig { weights: Some(_), .. } => refused("weights of the filters"),
            _ => Ok(()),
        }
    }

    /// Refuses what the mathematics cannot take. Model files are held against this alone: earlier versions wrote settings that
    /// their method had not heeded, and such a dictionary codes new data as any other.
    pub(crate) fn validate_values(&self) -> Result<()> {
        positive("beta", self.beta)?;
        positive("tol", self.tol)?;
        self.coder.validate()?;
        self.active_set.validate(self.n_filters)?;
        if !self.method.takes_boundary(self.boundary) {
            let expected = format!("circular for the method `{}`", self.method);
            return Err(Error::invalid("boundary", expected, format!("{:?}", self.boundary)));
        }
        self.update.validate()?;
        self.block_descent.validate()?;
        self.batch.validate()?;
        at_least_one("the number of filters", self.n_filters)?;
        at_least_one("the batch size", self.batch_size)?;
        if !(1..=3).contains(&self.filter_shape.len()) || self.filter_shape.contains(&0) {
            return Err(Error::invalid(
                "the filter's size",
                "one to three lengths of at least 1",
                format!("{:?}", self.filter_shape),
            ));
        }
        Ok(())
    }
}

/// Settings of the `admm` coder, see [`crate::coder::Admm`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoderConfig {
    /// The penalty; by default 50 beta / max|x|.
    pub rho: Option<f64>,
    /// Rebalances rho while iterating so that primal and dual residuals fall together.
    pub adaptive_rho: bool,
    /// Over-relaxation in [1, 2); 1 is the paper's plain ADMM.
    pub relaxation: f64,
    /// When to stop.
    pub stop: StopRule,
    /// Iterations after which the coder gives up with [`crate::coder::Status::MaxIters`].
    pub max_iters: usize,
}

impl Default for CoderConfig {
    fn default() -> Self {
        CoderConfig { rho: None, adaptive_rho: true, relaxation: 1.8, stop: StopRule::Gap, max_iters: 1000 }
    }
}

impl CoderConfig {
    pub(crate) fn validate(&self) -> Result<()> {
        self.rho.map_or(Ok(()), |rho| positive("the coder's rho", rho))?;
        at_least_one("the coder's iterations", self.max_iters)?;
        if !(1.0..2.0).contains(&self.relaxation) {
            return Err(Error::invalid("relaxation", "a number from 1 up to, not including, 2", self.relaxation));
        }
        Ok(())
    }
}

/// Settings of the `active_set` coder, see [`crate::coder::ActiveSet`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActiveSetConfig {
    /// One weight per filter on its l1 norm; by default 1 each.
    pub weights: Option<Vec<f64>>,
    /// Codes without negative values.
    pub nonnegative: bool,
    /// Full correlations after which the coder gives up with [`crate::coder::Status::MaxIters`].
    pub max_rounds: usize,
    /// Seconds per sample after which, between two rounds, the coder gives up with [`crate::coder::Status::TimeLimit`].
    pub time_limit: Option<f64>,
}

impl Default for ActiveSetConfig {
    fn default() -> Self {
        ActiveSetConfig { weights: None, nonnegative: false, max_rounds: 200, time_limit: None }
    }
}

impl ActiveSetConfig {
    fn validate(&self, n_filters: usize) -> Result<()> {
        let Some(weights) = &self.weights else { return Ok(()) };
        if weights.len() != n_filters {
            return Err(Error::invalid("weights", format!("one for each of {n_filters} filters"), weights.len()));
        }
        weights.iter().try_for_each(|w| positive("a filter's weight", *w))
    }
}

/// Settings of the dictionary update's ADMM, see [`crate::update`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateConfig {
    /// The penalty, fixed for the whole run; by default 4 ||Z||^2 / K of the first code.
    pub rho: Option<f64>,
    /// Iterations per update (J in Algorithm 2).
    pub max_iters: usize,
    /// Stops an update when primal and dual residuals are below this, relative to the dictionary's norm.
    pub tol: f64,
    /// Starts V and Theta from zero at every update, as Algorithm 2 is printed, instead of where the last one ended.
    pub reset: bool,
}

impl Default for UpdateConfig {
    fn default() -> Self {
        UpdateConfig { rho: None, max_iters: 50, tol: 1e-3, reset: false }
    }
}

impl UpdateConfig {
    fn validate(&self) -> Result<()> {
        self.rho.map_or(Ok(()), |rho| positive("the update's rho", rho))?;
        at_least_one("the update's iterations", self.max_iters)?;
        positive("the update's tol", self.tol)
    }
}

/// Settings of the block coordinate descent on lags, see [`crate::update::BlockDescent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockDescentConfig {
    /// The past has the weight (1 - 1/t)^forgetting at update t; 1 is the paper's plain average.
    pub forgetting: f64,
    /// Sweeps over all filters per update, at most.
    pub sweeps: usize,
    /// Replaces filters that no code uses by the worst-explained patches of the newest samples.
    pub reseed: bool,
    /// Ends an update when the norm of D - project(D - gradient / L) is at most this, relative to ||D||.
    pub tol: f64,
}

impl Default for BlockDescentConfig {
    fn default() -> Self {
        BlockDescentConfig { forgetting: 3.0, sweeps: 1, reseed: true, tol: 1e-4 }
    }
}

impl BlockDescentConfig {
    /// Refuses what the mathematics cannot take.
    pub fn validate(&self) -> Result<()> {
        if !(self.forgetting.is_finite() && self.forgetting >= 1.0) {
            return Err(Error::invalid("forgetting", "a finite number from 1 up", self.forgetting));
        }
        positive("the sweeps' tol", self.tol)?;
        at_least_one("the update's sweeps", self.sweeps)
    }
}

/// How much of a pass of a batch method goes into codes and how much into the dictionary, see [`crate::learner::Batch`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BatchConfig {
    /// Iterations of the coder per sample and pass, at most.
    pub code_iters: usize,
    /// Iterations of the dictionary update per pass, at most.
    pub update_iters: usize,
}

impl Default for BatchConfig {
    fn default() -> Self {
        BatchConfig { code_iters: 10, update_iters: 5 }
    }
}

impl BatchConfig {
    fn validate(&self) -> Result<()> {
        at_least_one("the coder's iterations per pass", self.code_iters)?;
        at_least_one("the update's iterations per pass", self.update_iters)
    }
}

/// When a coder stops; the tolerance is [`Config::tol`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopRule {
    /// The duality gap of the sparse code is at most tol times its objective.
    #[default]
    Gap,
    /// The relative primal and dual residuals of ADMM are at most tol.
    Residuals,
    /// The paper's rule: ||Z - Z_old|| is at most tol ||Z||.
    Change,
}

/// What lies outside a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The sample itself again: filters wrap around, as in the paper.
    #[default]
    Circular,
    /// Zeros, which are data: filters may stick out and are penalised for what they put there.
    Zero,
    /// Nothing: filters may stick out, and what they put there does not count.
    Free,
}

/// The scalar type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// Single precision.
    #[default]
    F32,
    /// Double precision.
    F64,
}

pub(crate) fn positive(what: &str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(Error::invalid(what, "a finite number above 0", value)) }
}

fn at_least_one(what: &str, value: usize) -> Result<()> {
    if value > 0 { Ok(()) } else { Err(Error::invalid(what, "at least 1", value)) }
}
