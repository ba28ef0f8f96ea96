//! ADMM in the frequency domain (eq. `fcsc_code`), the coder of the paper and of the batch methods.
//!
//! **Splitting.** min 1/2 ||x - D z||^2 + beta ||u||_1 subject to z = u, with scaled dual y. One textbook iteration,
//! with over-relaxation a in [1, 2) (a = 1 is the paper's), where S_t is the soft threshold:
//!
//! ```text
//! z = argmin 1/2 ||x - D z||^2 + rho/2 ||z - u + y||^2        one K x K system of rank C per frequency
//! h = a z + (1 - a) u
//! u = S_{beta/rho}(h + y)
//! y = y + h - u
//! ```
//!
//! **What is stored.** With v = u + y the pair is u = S(v), y = v - u: one array of K maps instead of three. With
//! w = u - y, Woodbury's identity at each frequency gives z = w + D^T g, where
//!
//! ```text
//! (D D^T + rho I) g = x - D w            one image; a cached C x C system, for one channel rho + sum_k |d_k|^2
//! ```
//!
//! so the K maps enter only through the image D w = 2 D u - D v. Both parts are cheap: D u is a sum over the non-zeros
//! of u, and D v follows its own recursion, because v <- v + a (u - v + D^T g) implies
//! D v <- D v + a (D u - D v + D D^T g). Per iteration that leaves K inverse transforms (D^T g) and none forward,
//! however many channels. Rounding errors in D v shrink by |1 - a| per iteration.
//!
//! **A certificate for free.** x - D z = rho g, and D^T g is at hand: rho g scaled by beta / max |rho D^T g| is dual
//! feasible, so every iteration yields a lower bound on the minimum. It decides when to look; the best of these points,
//! with its correlations bounded in f64, or else the sparse code's own residual, gives the gap that is returned
//! (`dual.rs`). For dense codes the own point is far better: where the residual proves 90 % it proves 1 %.
//!
//! **Cost** K P (log P + C) + C^2 P per iteration; memory K P for v, K C P for the spectra of the filters and C^2 P for
//! the small systems (`splitting/gram.rs`).
//!
//! Reference: Wohlberg, "Efficient algorithms for convolutional sparse representations", IEEE TIP 25(1), 2016.

use super::splitting::{BALANCE_EVERY, Splitting, balance, default_rho};
use super::stop::Stop;
use super::{Coded, Coder, CoderConfig, Status};
use crate::setting::positive;
use crate::{Code, Dictionary, Real, Result, Sample};

/// Codes samples by ADMM.
pub struct Admm<T: Real> {
    beta: f64,
    tol: f64,
    config: CoderConfig,
    dictionary: Dictionary<T>,
    plan: Option<Splitting<T>>,
}

impl<T: Real> Admm<T> {
    /// Makes a coder for a dictionary; `tol` is that of the stopping rule.
    pub fn new(dictionary: &Dictionary<T>, beta: f64, tol: f64, config: CoderConfig) -> Result<Self> {
        positive("beta", beta)?;
        positive("tol", tol)?;
        config.check_values()?;
        Ok(Admm { beta, tol, config, dictionary: dictionary.clone(), plan: None })
    }
}

impl<T: Real> Coder<T> for Admm<T> {
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
        sample.check_whole()?;
        let plan = Splitting::planned(&mut self.plan, &self.dictionary, sample)?;
        let mut rho = config.rho.unwrap_or_else(|| default_rho(sample, beta));
        let correlation = plan.start(sample, start, beta, rho)?;
        if correlation <= beta && start.is_none_or(|code| code.nonzeros() == 0) {
            let coded = plan.certified(sample, beta, tol, rho, 0, Status::Converged)?;
            // What rounding hid may be beyond beta after all.
            if coded.relative_gap() <= tol {
                return Ok(coded);
            }
        }

        let mut stop = Stop::new(config.stop, tol);
        for iter in 1..=config.max_iters {
            let step = plan.iterate(beta, rho, config.relaxation);
            if stop.is_due(iter, &step) {
                let coded = plan.certified(sample, beta, tol, rho, iter, Status::Converged)?;
                if stop.accepts(iter, &coded) {
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
        sample.check_whole()?;
        let plan = Splitting::planned(&mut self.plan, &self.dictionary, sample)?;
        let x: Vec<f64> = sample.data().iter().map(|v| v.f64()).collect();
        Ok(plan.bound(&x, 0.0))
    }
}
