//! Coders: given a dictionary and a sample, find the code.
//!
//! Every coder solves, for one sample x and a fixed dictionary D (eq. `fcsc_code`),
//!
//! ```text
//! min over z   P(z) = 1/2 || x - D z ||^2 + beta ||z||_1,       D z = sum_k D_k * z_k
//! ```
//!
//! and returns z with a **certificate**. For any residual r the point s r is feasible for the dual problem
//! max { x.t - 1/2 ||t||^2 : |D_k^T t| <= beta everywhere } when s = min(1, beta / max |D^T r|), so with r = x - D z
//!
//! ```text
//! gap = P(z) - ( s x.r - 1/2 s^2 ||r||^2 )  >=  P(z) - min P  >=  0 .
//! ```
//!
//! Coders know neither statistics nor updates.

mod active_set;
mod admm;
mod convolution;
mod deconvnet;
mod fista;
mod masked;

pub use active_set::ActiveSet;
pub use admm::Admm;
pub use convolution::Space;
pub use deconvnet::Deconvnet;
pub use fista::Fista;
pub use masked::Masked;

use crate::config::Boundary;
use crate::metrics::Objective;
use crate::{Code, Dictionary, Real, Result, Sample};

/// Codes samples against a dictionary.
pub trait Coder<T: Real>: Send {
    /// Adopts a dictionary: what depends on it alone is computed here, once.
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>);

    /// Codes one sample, from `start` if given.
    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>>;

    /// Codes several samples, from zero. Coders that can do so code them at the same time.
    fn code_all(&mut self, samples: &[Sample<T>]) -> Result<Vec<Coded<T>>> {
        samples.iter().map(|sample| self.code(sample, None)).collect()
    }

    /// The smallest beta with an all-zero code: max |D^T x|.
    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64>;
}

/// A code and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Coded<T> {
    /// The sparse code.
    pub code: Code<T>,
    /// Data term and l1 norm of the code.
    pub objective: Objective,
    /// The weight of the l1 norm that the code was found with.
    pub beta: f64,
    /// The duality gap of the code: its objective is at most this far above the minimum.
    pub gap: f64,
    /// Iterations made.
    pub iterations: usize,
    /// Why the coder stopped.
    pub status: Status,
}

impl<T> Coded<T> {
    /// P(z).
    pub fn total(&self) -> f64 {
        self.objective.total(self.beta)
    }

    /// The gap relative to the objective.
    pub fn relative_gap(&self) -> f64 {
        relative(self.gap, self.total())
    }
}

/// Why a coder stopped. Running out of iterations is a status, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The value of the dual problem at s r, made feasible; `x_r` = x.r, `r_r` = r.r, `correlation` = max |D^T r|.
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

/// A code with its certificate, all recomputed from the code; `max_correlation` is max |D^T r| of an image.
fn certify<T: Real>(
    sample: &Sample<T>,
    code: Code<T>,
    dictionary: &Dictionary<T>,
    beta: f64,
    iterations: usize,
    status: Status,
    max_correlation: impl FnOnce(&[f64]) -> f64,
) -> Result<Coded<T>> {
    let r = residual(sample, &code, dictionary)?;
    let r_r: f64 = r.iter().map(|r| r * r).sum();
    let x_r = sample.data().iter().zip(&r).map(|(x, r)| x.f64() * r).sum();
    let objective = Objective { data_term: 0.5 * r_r, l1: code.l1() };
    let dual = dual_value(x_r, r_r, max_correlation(&r), beta);
    let gap = (objective.total(beta) - dual).max(0.0);
    Ok(Coded { code, objective, beta, gap, iterations, status })
}
