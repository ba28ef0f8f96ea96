//! Coders: given a dictionary and a sample, find the code.
//!
//! Every coder solves, for one sample x and a fixed dictionary D (eq. `fcsc_code`),
//!
//! ```text
//! min over z   P(z) = 1/2 || x - D z ||^2 + beta ||z||_1,       D z = sum_k D_k * z_k
//! ```
//!
//! and returns z with a **certificate**. Every image t has a multiple s t that is feasible for the dual problem
//! max { x.t - 1/2 ||t||^2 : |D_k^T t| <= beta everywhere }, with s = min(1, beta / max |D^T t|), so
//!
//! ```text
//! gap = P(z) - ( s x.t - 1/2 s^2 ||t||^2 )  >=  P(z) - min P  >=  0 .
//! ```
//!
//! The active set takes t = x - D z, of the best round. The other coders take the best image that they met, their own dual iterates
//! included (`dual.rs`). In every coder and in both precisions the objective and the gap are computed in f64 from the code
//! that is returned, the largest correlation is bounded from above with all rounding counted, and what f64 may have rounded
//! away is added to the gap (`certificate.rs`): no gap is smaller than the true one.
//!
//! [`Joint`] solves the problem of channels that share their support, and [`Omp`] looks for few non-zeros greedily and proves nothing.
//!
//! Coders know neither statistics nor updates.

mod active_set;
mod admm;
mod budget;
mod certificate;
mod convolution;
mod deconvnet;
mod dual;
mod fista;
mod joint;
mod masked;
mod omp;
mod prox;
mod sample_filters;
mod settings;
mod splitting;
mod stop;
mod support;

pub use active_set::ActiveSet;
pub use admm::Admm;
pub use budget::Budget;
pub(crate) use budget::path;
pub use convolution::Space;
pub use deconvnet::Deconvnet;
pub use fista::Fista;
pub use joint::Joint;
pub use masked::Masked;
pub use omp::Omp;
pub use sample_filters::{OwnFilters, SampleFilters};
pub(crate) use settings::CodingConfig;
pub use settings::{ActiveSetConfig, CoderConfig, CoderKind, StopRule, Weights};

use crate::Boundary;
use crate::metrics::Objective;
use crate::monitor::{Monitor, check_wanted};
use crate::{Code, Dictionary, Real, Result, Sample};

/// Codes samples against a dictionary.
pub trait Coder<T: Real>: Send {
    /// Adopts a dictionary: what depends on it alone is computed here, once.
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>);

    /// Codes one sample, from `start` if given.
    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>>;

    /// Codes several samples, from zero, while the monitor wants them. Coders that can do so code them at the same time.
    fn code_all(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Vec<Coded<T>>> {
        let code = |sample| {
            check_wanted(monitor)?;
            let coded = self.code(sample, None)?;
            monitor.coded();
            Ok(coded)
        };
        samples.iter().map(code).collect()
    }

    /// Returns the smallest beta with an all-zero code: max |D^T x|.
    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64>;
}

/// Holds a code and what is known about it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coded<T> {
    /// The sparse code.
    pub code: Code<T>,
    /// The sample's own filters that the code belongs to, where these depend on the sample; else those of the dictionary.
    pub filters: Option<OwnFilters<T>>,
    /// Data term and (weighted) l1 norm of the code, or its l2,1 norm where channels are jointly sparse.
    pub objective: Objective,
    /// What the code pays: beta times the l1 norm, or as the penalty says.
    pub penalty: f64,
    /// The weight of the penalty that the code was found with.
    pub beta: f64,
    /// The duality gap of the code: its objective is at most this far above the minimum. With a concave penalty, that of the
    /// weighted problem that majorises it at the code.
    pub gap: f64,
    /// How far the weights of a concave penalty moved in the last round, as a share of the objective; 0 for convex ones.
    pub moved: f64,
    /// How many values a robust loss counts less than the others.
    pub outliers: usize,
    /// Iterations made.
    pub iterations: usize,
    /// The reason why the coder stopped.
    pub status: Status,
}

impl<T> Coded<T> {
    /// Returns the filters that the code belongs to: the sample's own, or those of the dictionary that it was coded with.
    pub fn filters_or<'a>(&'a self, dictionary: &'a Dictionary<T>) -> &'a Dictionary<T> {
        self.filters.as_ref().map_or(dictionary, |own| &own.dictionary)
    }

    /// Returns P(z).
    pub fn total(&self) -> f64 {
        self.objective.data_term + self.penalty
    }

    /// Returns the gap relative to the objective.
    pub fn relative_gap(&self) -> f64 {
        relative(self.gap, self.total())
    }
}

/// Says why a coder stopped. Running out of iterations is a status, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// The stopping rule held.
    Converged,
    /// The iterations ran out; the gap says how far the code may be from optimal.
    MaxIters,
    /// The time was up; the gap says how far the code may be from optimal.
    TimeLimit,
}

/// gap / objective, where a zero objective is optimal.
pub(crate) fn relative(gap: f64, objective: f64) -> f64 {
    if gap <= 0.0 { 0.0 } else { gap / objective.max(f64::MIN_POSITIVE) }
}

/// The value of the dual problem at s r, made feasible; `x_r` = x.r, `r_r` = r.r, `correlation` = max |D^T r|. It decides when
/// to look, and proves nothing: its numbers are rounded.
pub(crate) fn dual_value(x_r: f64, r_r: f64, correlation: f64, beta: f64) -> f64 {
    let s = if correlation > beta { beta / correlation } else { 1.0 };
    s * x_r - 0.5 * s * s * r_r
}

/// x - D z on the circle, summed in `f64`; zero where nothing was observed.
pub(crate) fn residual<T: Real>(sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<Vec<f64>> {
    let (_, estimate, _) = code.reconstruct_f64(dictionary, Boundary::Circular)?;
    let mut r: Vec<f64> = sample.data().iter().zip(estimate).map(|(x, e)| x.f64() - e).collect();
    for (r, _) in r.iter_mut().zip(sample.mask().into_iter().flatten()).filter(|(_, seen)| !**seen) {
        *r = 0.0;
    }
    Ok(r)
}
