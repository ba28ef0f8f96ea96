//! Approximate online learning: a history of one filter at a time, K windows of lags instead of K^2.
//!
//! **Problem.** The exact history of samples i < t couples all filters. It is replaced by one in which every sample has been taken
//! apart into components, c_ik * z_ik for filter k, that add up to the sample as well as filters of its own, c_i, can make them:
//!
//! ```text
//! c_i = argmin over C   1/2 || x_i - sum_k C_k * z_ik ||^2,   ||C_k|| <= 1,        from C = D on
//! D_t = argmin over D   1/2 || x_t - sum_k D_k * z_tk ||^2  +  sum_{i<t} w_i sum_k 1/2 || c_ik * z_ik - D_k * z_ik ||^2
//! ```
//!
//! The sample at hand stays exact; the past is K small problems, which depend on the codes through
//!
//! ```text
//! A_k(tau) = sum_i w_i sum_p z_ik(p) z_ik(p + tau),  |tau| < m,        B_k = sum_i w_i (autocorrelation of z_ik) * c_ik
//! ```
//!
//! **A step**: block descent over the filters for D_t, with the residual of the samples at hand as an image (`spatial.rs`); then for
//! each of them the same descent without history for c_t, COMPONENT_SWEEPS times; then A_k and B_k take them in.
//!
//! **Theirs** are the components, the diagonal history and the order of the two problems (Algorithm 2 of the reference). **Ours**: they
//! keep A_k and B_k as spectra of the size of a sample, K P numbers each, and solve both problems by ADMM. On lags the same
//! two need K (2m - 1)^2 + K M numbers whatever the samples' size, so sizes may be mixed; c_i = D plus a few sweeps, not the
//! minimum, since c_i has more unknowns than a sample has values and would explain its noise; the weights w_i are those of
//! [`forgetting`](crate::settings::BlockDescentConfig::forgetting), theirs are all alike; filters are projected on the unit ball and
//! not scaled up to it. A mask leaves values out of the residual; components are whole, which fills what it hides.
//!
//! **Cost** M per non-zero and sweep, and K M^2; memory K (2m - 1)^2 + K M.
//!
//! Reference: Veshki, Vorobyov, "An efficient approximate method for online convolutional dictionary learning", 2023
//! (arXiv:2301.10583).

use super::{Update, Updated};
use crate::Boundary;
use crate::spatial::{AtHand, Autocorrelation, Filters, add_product, check};
use crate::state::State;
use crate::update::BlockDescentConfig;
use crate::{Code, Dictionary, Error, Real, Result, Sample, Shape};

/// Sweeps that take a sample apart.
const COMPONENT_SWEEPS: usize = 3;

/// The update with a history of components.
pub struct Aocdl<T: Real> {
    config: BlockDescentConfig,
    boundary: Boundary,
    /// A and B, (K, 2m - 1 per axis) and (K, C, M).
    gram: Vec<T>,
    cross: Vec<T>,
    updates: usize,
    /// What came since the last update.
    pending: Vec<(Sample<T>, Code<T>)>,
}

impl<T: Real> Aocdl<T> {
    /// Makes an update without history; codes must have been made with the same boundary.
    pub fn new(config: BlockDescentConfig, boundary: Boundary) -> Self {
        Aocdl { config, boundary, gram: Vec::new(), cross: Vec::new(), updates: 0, pending: Vec::new() }
    }

    /// Returns how many numbers the history of this many filters has.
    pub(crate) fn history_len(n_filters: usize, filter: Shape) -> usize {
        let window = filter.spatial().iter().fold(1_usize, |n, m| n.saturating_mul(2 * m - 1));
        n_filters.saturating_mul(window.saturating_add(filter.len()))
    }

    fn scale_history(&mut self) {
        let weight = self.config.forgetting.past(self.updates);
        if self.updates > 1 && weight != 1.0 {
            self.gram.iter_mut().chain(&mut self.cross).for_each(|v| *v = T::of(weight * v.f64()));
        }
    }
}

fn widened<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.f64()).collect()
}

impl<T: Real> Update<T> for Aocdl<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        check(sample, code, dictionary, self.boundary)?;
        self.pending.push((sample.clone(), code.clone()));
        Ok(())
    }

    fn forget(&mut self) {
        (self.gram, self.cross, self.updates) = (Vec::new(), Vec::new(), 0);
        self.pending.clear();
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let mut updated = Updated::default();
        let pending = std::mem::take(&mut self.pending);
        let at_hand = pending.iter().map(|(x, z)| AtHand::new(x, z, dictionary, self.boundary));
        // They fit, as absorbing them has shown.
        let Ok(mut at_hand) = at_hand.collect::<Result<Vec<_>>>() else { return updated };
        if at_hand.is_empty() {
            return updated;
        }
        let (shape, window) = (dictionary.shape(), Autocorrelation::len(dictionary.shape()));
        self.gram.resize(dictionary.n_filters() * window, T::zero());
        self.cross.resize(dictionary.data().len(), T::zero());
        self.updates += 1;
        self.scale_history();
        let [taps, gram, mut cross] = [dictionary.data(), &self.gram, &self.cross].map(widened);
        let mut filters = Filters { shape, taps, history: Some((&gram, &cross)), span: None };
        for sweep in 1..=self.config.sweeps {
            let steps = filters.sweep(&mut at_hand);
            let norm = filters.taps.iter().map(|d| d * d).sum::<f64>().max(f64::MIN_POSITIVE);
            let stationarity = (steps / norm).sqrt();
            updated = Updated { iterations: sweep, stationarity: Some(stationarity), ..updated };
            if stationarity <= self.config.tol {
                break;
            }
        }
        let taps = filters.taps;
        dictionary.data_mut().iter_mut().zip(&taps).for_each(|(d, new)| *d = T::of(*new));
        dictionary.project();
        for one in &mut at_hand {
            let mut components = Filters { shape, taps: taps.clone(), history: None, span: None };
            for _ in 0..COMPONENT_SWEEPS {
                components.sweep(std::slice::from_mut(one));
            }
            for (k, filter) in components.taps.chunks_exact(shape.len()).enumerate() {
                let autocorrelation = &one.windows[k * window..][..window];
                add_product(autocorrelation, shape, filter, &mut cross[k * shape.len()..][..shape.len()]);
            }
            self.gram.iter_mut().zip(&one.windows).for_each(|(a, w)| *a += T::of(*w));
        }
        self.cross.iter_mut().zip(cross).for_each(|(b, new)| *b = T::of(new));
        updated
    }

    fn state(&self) -> State<'_> {
        if self.gram.is_empty() {
            return State::default();
        }
        State::default()
            .with("gram", &self.gram[..])
            .with("cross", &self.cross[..])
            .with_counts("updates", [self.updates])
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let window = Autocorrelation::len(dictionary.shape());
        let mut gram = vec![T::zero(); dictionary.n_filters() * window];
        let mut cross = vec![T::zero(); dictionary.data().len()];
        state.copy_array("gram", &mut gram)?;
        state.copy_array("cross", &mut cross)?;
        for (k, lags) in gram.chunks_exact(window).enumerate() {
            // No lag of an autocorrelation exceeds lag 0, in the middle.
            let energy = lags[window / 2].f64();
            if energy < 0.0 {
                return Err(Error::invalid("saved `gram`", format!("no negative energy of filter {k}"), energy));
            }
            if let Some(lag) = lags.iter().find(|lag| lag.f64().abs() > energy * (1.0 + 1e3 * T::EPSILON)) {
                return Err(Error::invalid("saved `gram`", format!("at most {energy} at any lag of filter {k}"), lag));
            }
        }
        let mut updates = [0];
        state.copy_counts("updates", &mut updates)?;
        (self.gram, self.cross, [self.updates]) = (gram, cross, updates);
        self.pending.clear();
        Ok(())
    }
}
