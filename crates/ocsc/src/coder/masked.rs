//! ADMM with a split data term: the coder of FFCSC, which leaves unobserved values out.
//!
//! **Problem**: min 1/2 ||M (x - D z)||^2 + beta ||z||_1, where M is 1 on observed values and 0 elsewhere. M and D are diagonal in
//! different domains, so the reconstruction gets a variable of its own.
//!
//! **Splitting**: min 1/2 ||M (x - s)||^2 + beta ||u||_1 subject to D z = s and z = u, with scaled duals t and y, the
//! penalty 1 on the first constraint (the unit of the data term) and rho on the second:
//!
//! ```text
//! z = argmin 1/2 ||s - t - D z||^2 + rho/2 ||z - u + y||^2          the step of `Admm`, for the image s - t
//! s = (M x + h + t) / (M + 1)                                        h = D z, over-relaxed as in `Admm`
//! t = t + h - s;   u, y as in `Admm`
//! ```
//!
//! The system of the z-step depends neither on the sample nor on its mask. And since the penalty is 1, s - t is x wherever a
//! value was observed and h elsewhere, after every iteration: only this image is kept, and without a mask the iterates are
//! those of [`Admm`](super::Admm). D z = (s - t) - rho g is at hand, so an iteration costs 2 C transforms of images more.
//!
//! **The dual point** rho g = (s - t) - D z is that of [`Admm`](super::Admm) on observed values; on others it is cleared, and
//! its correlations are computed anew. Since its value is not at hand there, the newest one is offered at every look.
//!
//! **Start** from a code u: s = D u and t = M (s - x), which is the optimal dual when u is optimal.
//!
//! Reference: Heide, Heidrich, Wetzstein, "Fast and flexible convolutional sparse coding", CVPR 2015.

use super::splitting::{BALANCE_EVERY, Splitting, balance, default_rho};
use super::{Coded, Coder, Status};
use crate::Boundary;
use crate::coder::{CoderConfig, StopRule};
use crate::setting::positive;
use crate::{Code, Dictionary, Real, Result, Sample};

/// How often the certificate is computed, which costs as much as an iteration.
const LOOK_EVERY: usize = 20;

/// Codes samples as FFCSC does.
pub struct Masked<T: Real> {
    beta: f64,
    tol: f64,
    config: CoderConfig,
    dictionary: Dictionary<T>,
    plan: Option<Splitting<T>>,
}

impl<T: Real> Masked<T> {
    /// Makes a coder for a dictionary; `tol` is that of the stopping rule.
    pub fn new(dictionary: &Dictionary<T>, beta: f64, tol: f64, config: CoderConfig) -> Result<Self> {
        positive("beta", beta)?;
        positive("tol", tol)?;
        config.check_values()?;
        Ok(Masked { beta, tol, config, dictionary: dictionary.clone(), plan: None })
    }
}

impl<T: Real> Coder<T> for Masked<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        let sizes = |d: &Dictionary<T>| (d.n_filters(), d.shape());
        if sizes(dictionary) != sizes(&self.dictionary) {
            self.plan = None;
        }
        self.dictionary = dictionary.clone();
        if let Some(plan) = &mut self.plan {
            plan.set_dictionary(dictionary);
        }
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        let (beta, tol, config) = (self.beta, self.tol, &self.config);
        let plan = Splitting::planned(&mut self.plan, &self.dictionary, sample)?;
        let mut rho = config.rho.unwrap_or_else(|| default_rho(sample, beta));
        let zero = Code::zero(self.dictionary.n_filters(), sample.shape().spatial());
        let code = start.unwrap_or(&zero);
        // s - t: x where it was observed, D u elsewhere
        let (x, seen) = (sample.data(), |i: usize| sample.mask().is_none_or(|mask| mask[i]));
        let estimate = code.reconstruct(&self.dictionary, Boundary::Circular)?;
        let mut target = x.to_vec();
        (0..x.len()).filter(|i| !seen(*i)).for_each(|i| target[i] = estimate.data()[i]);
        let correlation = plan.start(&Sample::new(sample.shape(), target.clone())?, Some(code), beta, rho)?;
        if correlation <= beta && code.nonzeros() == 0 {
            let coded = plan.certified(sample, beta, tol, rho, 0, Status::Converged)?;
            // What rounding hid may be beyond beta after all.
            if coded.relative_gap() <= tol {
                return Ok(coded);
            }
        }

        let relaxation = T::of(config.relaxation);
        let mut image = vec![T::zero(); x.len()];
        for iter in 1..=config.max_iters {
            if sample.mask().is_some() {
                plan.forget_offered();
            }
            let step = plan.iterate(beta, rho, config.relaxation);
            if sample.mask().is_some() {
                plan.estimate(rho, &mut image);
                for i in (0..x.len()).filter(|i| !seen(*i)) {
                    target[i] = relaxation * image[i] + (T::one() - relaxation) * target[i];
                }
                plan.set_target(&target);
            }
            let look = match config.stop {
                StopRule::Gap => iter % LOOK_EVERY == 0,
                StopRule::Residuals => step.residuals.iter().all(|residual| *residual <= tol),
                StopRule::Change => step.change <= tol && step.has_moved,
            };
            if look {
                let coded = plan.certified(sample, beta, tol, rho, iter, Status::Converged)?;
                if config.stop != StopRule::Gap || coded.relative_gap() <= tol {
                    return Ok(coded);
                }
            }
            if config.adaptive_rho && iter % BALANCE_EVERY == 0 {
                let balanced = rho * balance(step.residuals);
                plan.rescale_dual(beta, rho, balanced);
                rho = balanced;
            }
        }
        plan.certified(sample, beta, tol, rho, config.max_iters, Status::MaxIters)
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        let plan = Splitting::planned(&mut self.plan, &self.dictionary, sample)?;
        let x: Vec<f64> = sample.data().iter().map(|v| v.f64()).collect();
        Ok(plan.bound(&x, 0.0))
    }
}
