//! OCDL1's dictionary update: spatial history matrices, and FISTA.
//!
//! Convolution commutes, so a sample is Z_i d with the dictionary as one vector d of K M numbers and a matrix Z_i of shifted
//! codes (eq. `odl_de`). The history is, for every channel,
//!
//! ```text
//! A = sum_i Z_i^T Z_i   (K M x K M),        b = sum_i Z_i^T x_i   (K M)
//! min over d   1/2 d^T A d - b^T d       with ||D_k||_2 <= 1                           FISTA (`fista.rs`)
//! ```
//!
//! The published history costs N K^2 P M^2 to update. But A_(ks)(lt) = phi_kl(s - t) depends on the lag s - t alone, so here
//! the lags of a batch are found from its pairs of neighbouring non-zeros ([`Lags`]) and then spread over A, which costs K^2 M^2. (The
//! fast method never spreads them: [`super::BlockDescent`].)
//!
//! **Cost** K^2 M^2 per update and per iteration, at the speed of memory; memory K^2 M^2, whatever P.
//!
//! Reference: Degraux, Kamilov, Boufounos, Liu, "Online convolutional dictionary learning for multimodal imaging", ICIP 2017.

use super::fista::{Quadratic, minimise};
use super::{Update, Updated};
use crate::Boundary;
use crate::dot::dot;
use crate::state::State;
use crate::statistics::Lags;
use crate::statistics::plausible::check_gram;
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Real, Result, Sample, Shape};
use rayon::prelude::*;

/// Updates the dictionary as OCDL1 does.
pub struct Ocdl1<T: Real> {
    config: UpdateConfig,
    plan: Option<SpatialStatistics<T>>,
    lipschitz: T,
}

/// Everything that depends on the filters' shape.
struct SpatialStatistics<T: Real> {
    history: SpatialGram<T>,
    /// b, (K, C, M).
    cross: Vec<T>,
    /// What was absorbed since the last update.
    lags: Lags<T>,
}

/// A, (K M, K M), for filters of this shape.
struct SpatialGram<T> {
    filter: Shape,
    a: Vec<T>,
}

impl<T: Real> Ocdl1<T> {
    /// Makes an update without history.
    pub fn new(config: UpdateConfig) -> Self {
        Ocdl1 { config, plan: None, lipschitz: T::zero() }
    }
}

impl<T: Real> SpatialStatistics<T> {
    fn new(dictionary: &Dictionary<T>) -> Self {
        let (k, filter) = (dictionary.n_filters(), dictionary.shape());
        let side = k * filter.pixels();
        SpatialStatistics {
            history: SpatialGram { filter, a: vec![T::zero(); side * side] },
            cross: vec![T::zero(); k * filter.len()],
            lags: Lags::new(k, filter),
        }
    }

    /// Adds the lags to the history, and forgets them.
    fn spread(&mut self) {
        let (lags, m) = (&self.lags, self.history.filter.pixels());
        let k = lags.n_filters();
        let Shape { height, width, .. } = self.history.filter;
        let place = |s: usize| [s / (height * width), s / width % height, s % width].map(|n| n as isize);
        self.history.a.par_chunks_exact_mut(k * m).enumerate().for_each(|(row, a)| {
            let (filter, s) = (row / m, place(row % m));
            for (l, a) in a.chunks_exact_mut(m).enumerate() {
                for (line, a) in a.chunks_exact_mut(width).enumerate() {
                    let t = place(line * width);
                    lags.add_line(filter, l, std::array::from_fn(|i| s[i] - t[i]), a);
                }
            }
        });
        for (k, cross) in self.cross.chunks_exact_mut(self.history.filter.len()).enumerate() {
            cross.iter_mut().zip(lags.psi(k)).for_each(|(c, psi)| *c += psi);
        }
        self.lags = Lags::new(k, self.history.filter);
    }
}

impl<T: Real> Quadratic<T> for SpatialGram<T> {
    fn multiply(&mut self, d: &[T], out: &mut [T]) {
        let (m, channels) = (self.filter.pixels(), self.filter.channels);
        let side = d.len() / channels;
        // (K, C, M) to (C, K M) and back
        let place = |c: usize, i: usize| (i / m * channels + c) * m + i % m;
        let vectors: Vec<T> = (0..d.len()).map(|i| d[place(i / side, i % side)]).collect();
        let products: Vec<T> = (0..channels)
            .flat_map(|c| {
                let vector = &vectors[c * side..][..side];
                let product = |row: &[T]| dot(row, vector);
                self.a.par_chunks_exact(side).map(product).collect::<Vec<T>>()
            })
            .collect();
        for (i, product) in products.into_iter().enumerate() {
            out[place(i / side, i % side)] = product;
        }
    }
}

impl<T: Real> Update<T> for Ocdl1<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        sample.check_whole()?;
        let plan = self.plan.get_or_insert_with(|| SpatialStatistics::new(dictionary));
        plan.lags.absorb(sample, code, dictionary, Boundary::Circular)
    }

    fn forget(&mut self) {
        (self.plan, self.lipschitz) = (None, T::zero());
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let Some(plan) = &mut self.plan else { return Updated::default() };
        plan.spread();
        minimise(&mut plan.history, &plan.cross, dictionary, &mut self.lipschitz, &self.config, true)
    }

    fn state(&self) -> State<'_> {
        let Some(plan) = &self.plan else { return State::default() };
        State::default()
            .with("history", &plan.history.a)
            .with("cross", &plan.cross)
            .with_owned("lipschitz", vec![self.lipschitz])
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let side = dictionary.n_filters().saturating_mul(dictionary.shape().pixels());
        // Before anything is allocated for a dictionary that a damaged file made up.
        state.check_len("history", side.saturating_mul(side))?;
        let mut plan = SpatialStatistics::new(dictionary);
        state.copy_array("history", &mut plan.history.a)?;
        check_gram("history", side, &plan.history.a)?;
        state.copy_array("cross", &mut plan.cross)?;
        self.lipschitz = state.step_bound()?;
        self.plan = Some(plan);
        Ok(())
    }
}
