//! DictOCSC, the paper's dictionary update (Algorithm 2): the shared ADMM (`admm.rs`) on [`Spectral`] statistics.
//!
//! ```text
//! d(p) = C^p ( b^p + rho (v(p) - theta(p)) )                 eq. `sub_d_sol`, with the fixed rho of the statistics
//! ```
//!
//! V and Theta start where the last update ended ([`crate::settings::UpdateConfig::reset`] restores the paper's zeros).
//! The result is V, which is feasible; the paper returns crop F^-1 d, which need not be.
//!
//! **Cost** C K^2 P per iteration, for one channel at the speed of memory; memory K^2 P for the statistics, 2 C K P for
//! V and Theta.

use super::admm::{Admm, System, mean_power, saved};
use super::{Update, Updated};
use crate::state::State;
use crate::statistics::Spectral;
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Fourier, Real, Result, Sample};
use num_complex::Complex;

/// Updates the dictionary as the paper does.
pub struct OcscPaper<T: Real> {
    config: UpdateConfig,
    /// Everything that depends on the samples' shape.
    plan: Option<Admm<T, Spectral<T>>>,
}

impl<T: Real> OcscPaper<T> {
    /// Makes an update without statistics; they take the shape of the first sample.
    pub fn new(config: UpdateConfig) -> Self {
        OcscPaper { config, plan: None }
    }

    /// Returns the statistics, if there are any yet.
    pub fn statistics(&self) -> Option<&Spectral<T>> {
        self.plan.as_ref().map(|plan| &plan.system)
    }
}

impl<T: Real> System<T> for Spectral<T> {
    fn fourier(&self) -> &Fourier<T> {
        self.fourier()
    }

    fn solve(&mut self, v_f: &[Complex<T>], e_f: &[Complex<T>]) -> f64 {
        self.solve(|i| v_f[i] + v_f[i] - e_f[i]);
        0.0
    }

    fn solution(&self) -> &[T] {
        self.solution()
    }
}

/// Four times the mean of |z(p)|^2. On Fruit a fifth and four times of it serve about as well.
fn default_rho<T: Real>(code: &Code<T>) -> f64 {
    4.0 * mean_power(code)
}

impl<T: Real> Update<T> for OcscPaper<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        // Before a plan is made for it.
        sample.check_whole()?;
        let plan = self.plan.get_or_insert_with(|| {
            let rho = self.config.rho.unwrap_or_else(|| default_rho(code));
            Admm::new(dictionary, Spectral::new(dictionary.n_filters(), sample.shape(), rho))
        });
        plan.system.absorb(sample, code)
    }

    fn forget(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.system.clear();
        }
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        self.plan.as_mut().map_or_else(Updated::default, |plan| plan.run(dictionary, &self.config))
    }

    fn state(&self) -> State<'_> {
        let Some(plan) = &self.plan else { return State::default() };
        let [inverse_gram, cross] = plan.system.arrays();
        let state = State::default().with("inverse_gram", inverse_gram).with("cross", cross);
        plan.save(state, plan.system.shape(), plan.system.rho())
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let (shape, rho) = saved(state, dictionary)?;
        let [inverse_gram, cross] = Spectral::<T>::lens(dictionary.n_filters(), shape);
        state.check_len("inverse_gram", inverse_gram)?;
        state.check_len("cross", cross)?;
        let mut plan = Admm::new(dictionary, Spectral::new(dictionary.n_filters(), shape, rho));
        let [inverse_gram, cross] = plan.system.arrays_mut();
        state.copy_array("inverse_gram", inverse_gram)?;
        state.copy_array("cross", cross)?;
        plan.system.check_possible()?;
        plan.restore(state)?;
        self.plan = Some(plan);
        Ok(())
    }
}
