//! Projected stochastic gradient steps on the dictionary: no history at all.
//!
//! **Problem**: min over D of the expected 1/2 ||x - sum_k D_k * z_k||^2 with ||D_k||_2 <= 1, where z is the code of x. After the
//! samples of batch t have been coded, one step is made on their mean:
//!
//! ```text
//! g_k(s) = - mean_i sum_p z_ik(p) r_i(p + s),     r_i = x_i - sum_k D_k * z_ik
//! D_k = project( D_k - eta_t g_k ),               eta_t = a / (b + t)
//! ```
//!
//! The published method makes the gradient in the frequency domain, or in space from dense maps. Here r_i is an image and the sums
//! run over the non-zeros (`spatial.rs`); the numbers are the same. A mask leaves values out of r_i, and any boundary and mixed
//! sizes will do, as nothing is kept of a sample.
//!
//! **The step.** a is `step_size`, b is `step_delay`. SPORCO's a = 10, b = 5 suit samples whose codes are of its examples' size:
//! the curvature of the objective grows with the squares of the codes. So by default
//!
//! ```text
//! a = (b + 1) / L,     L = ||Z||^2 / K      over the first batch, the mean over its samples
//! ```
//!
//! ||z_k||^2 is the curvature along one filter whose atoms do not overlap, as those of sparse codes hardly do, so L is that of a mean
//! filter: the first step is about as long as the one that is best for a filter alone. Fruit (K = 100, 11x11, beta = 1, one pass) by a,
//! with b = 5, test objective: 0.01 1253.8, 0.03 1167.4, 0.1 1090.5, 0.3 1050.2, 1 1049.9, 10 1089.5.
//!
//! **Cost** M per non-zero; memory the gradient: as much as the dictionary.
//!
//! Reference: Liu, Garcia-Cardona, Wohlberg, Yin, "First and second order methods for online convolutional dictionary learning",
//! SIAM J. Imaging Sciences 11(2), 2018, Algorithm 1.

use super::{Update, Updated};
use crate::Boundary;
use crate::spatial::Residual;
use crate::state::State;
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Error, Real, Result, Sample};

/// Updates the dictionary by a gradient step.
pub struct Sgd<T: Real> {
    config: UpdateConfig,
    boundary: Boundary,
    /// The sum over the samples absorbed since the last update, (K, C, M), and how many these are.
    gradient: Vec<f64>,
    pending: usize,
    /// The sum of their curvatures, while a is not known.
    curvature: f64,
    /// a, once there was a sample, else zero; and the updates made.
    a: f64,
    updates: usize,
    scalar: std::marker::PhantomData<T>,
}

impl<T: Real> Sgd<T> {
    /// Makes an update; codes must have been made with the same boundary.
    pub fn new(config: UpdateConfig, boundary: Boundary) -> Self {
        let (gradient, a) = (Vec::new(), config.step.unwrap_or(0.0));
        Sgd { config, boundary, gradient, pending: 0, curvature: 0.0, a, updates: 0, scalar: Default::default() }
    }

    /// Returns eta_t of the next update; none before a sample came, if it depends on that.
    pub fn next_step(&self) -> Option<f64> {
        (self.a > 0.0).then(|| self.a / (self.config.delay + (self.updates + 1) as f64))
    }
}

impl<T: Real> Update<T> for Sgd<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        let residual = Residual::new(sample, code, dictionary, self.boundary)?;
        let len = dictionary.shape().len();
        let mut more = vec![0.0; dictionary.data().len()];
        for atoms in residual.used() {
            residual.correlate(atoms, &mut more[atoms[0].filter as usize * len..][..len]);
        }
        if self.a == 0.0 {
            let energy: f64 = code.atoms().iter().map(|a| a.value.f64().powi(2)).sum();
            self.curvature += energy / dictionary.n_filters() as f64;
        }
        self.gradient.resize(more.len(), 0.0);
        self.gradient.iter_mut().zip(more).for_each(|(g, m)| *g -= m);
        self.pending += 1;
        Ok(())
    }

    fn forget(&mut self) {
        (self.pending, self.curvature) = (0, 0.0);
        self.gradient.clear();
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        if self.pending == 0 {
            return Updated::default();
        }
        let count = self.pending as f64;
        if self.a == 0.0 && self.curvature > 0.0 {
            // As a file will hold it.
            self.a = T::of((self.config.delay + 1.0) * count / self.curvature).f64();
        }
        if let Some(eta) = self.next_step() {
            let moves = dictionary.data_mut().iter_mut().zip(&self.gradient);
            moves.for_each(|(d, g)| *d = T::of(d.f64() - eta * g / count));
            dictionary.project();
        }
        self.updates += 1;
        self.forget();
        Updated { iterations: 1, ..Updated::default() }
    }

    fn state(&self) -> State<'_> {
        State::default().with_owned("step_size", vec![T::of(self.a)]).with_counts("updates", [self.updates])
    }

    fn restore(&mut self, state: &State<'_>, _dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let mut updates = [0];
        state.copy_counts("updates", &mut updates)?;
        let mut a = [T::zero()];
        state.copy_array("step_size", &mut a)?;
        let a = a[0].f64();
        if a < 0.0 {
            return Err(Error::invalid("saved `step_size`", "a number from 0 up", a));
        }
        self.a = self.config.step.unwrap_or(a);
        [self.updates] = updates;
        self.forget();
        Ok(())
    }
}
