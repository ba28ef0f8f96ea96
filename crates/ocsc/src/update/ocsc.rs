//! DictOCSC, the paper's dictionary update (Algorithm 2), on [`Spectral`] statistics.
//!
//! **Problem** (eq. `ocsc_dic`), over the half spectra d(p) of the padded filters:
//!
//! ```text
//! min 1/2P sum_p ( d(p)^H A^p d(p) - 2 Re d(p)^H b^p )   subject to D = V, V_k zero outside the filter, ||V_k|| <= 1
//! ```
//!
//! With several channels d(p) and b^p are one vector for each, the sum runs over them too, and A^p is the same for all:
//! they meet only in the norms.
//!
//! **ADMM** with the scaled dual Theta and the fixed rho of the statistics; one iteration is
//!
//! ```text
//! d(p)  = C^p ( b^p + rho (v(p) - theta(p)) )                 eq. `sub_d_sol`
//! V_k   = project( crop F^-1 (d + theta)_k )                  Proposition `pr:sub_v_sol`
//! theta = theta + d - F V
//! ```
//!
//! V and Theta start where the last update ended ([`crate::config::UpdateConfig::reset`] restores the paper's zeros).
//! The result is V, which is feasible; the paper returns crop F^-1 d, which need not be.
//!
//! **Stored**: e = d + theta, from which theta = e - v once v is renewed, so v - theta = 2 v - e.
//!
//! **Cost** C K^2 P per iteration, for one channel at the speed of memory; memory K^2 P for the statistics, 2 C K P here.

use super::{Update, Updated};
use crate::checkpoint::State;
use crate::config::UpdateConfig;
use crate::dictionary::project_unit_ball;
use crate::statistics::{Spectral, at};
use crate::{Code, Dictionary, Real, Result, Sample, Scratch, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Filters per task: as many as share a cache line of a vector in filter order.
const FILTERS: usize = 8;

/// The paper's update.
pub struct Ocsc<T: Real> {
    config: UpdateConfig,
    plan: Option<Plan<T>>,
}

/// Everything that depends on the samples' shape.
struct Plan<T: Real> {
    statistics: Spectral<T>,
    /// Spectra of V and of D + Theta, (K, C, n_freqs) each.
    v_f: Vec<Complex<T>>,
    e_f: Vec<Complex<T>>,
    tasks: Vec<Task<T>>,
}

/// Work memory of one task.
struct Task<T> {
    scratch: Scratch<T>,
    spectrum: Vec<Complex<T>>,
    filter: Vec<T>,
    /// ||D - V||^2, ||V - V_old||^2 and ||V||^2 of the task's filters.
    sums: [f64; 3],
}

impl<T: Real> Ocsc<T> {
    /// An update without statistics; they take the shape of the first sample.
    pub fn new(config: UpdateConfig) -> Self {
        Ocsc { config, plan: None }
    }

    /// The statistics, if there are any yet.
    pub fn statistics(&self) -> Option<&Spectral<T>> {
        self.plan.as_ref().map(|plan| &plan.statistics)
    }
}

impl<T: Real> Plan<T> {
    fn new(n_filters: usize, filter: Shape, shape: Shape, rho: f64) -> Self {
        let statistics = Spectral::new(n_filters, shape, rho);
        let fourier = statistics.fourier();
        let zero = Complex::new(T::zero(), T::zero());
        let freqs = fourier.n_freqs();
        let task = || Task {
            scratch: fourier.scratch(),
            spectrum: vec![zero; freqs],
            filter: vec![T::zero(); filter.len()],
            sums: [0.0; 3],
        };
        let tasks = (0..n_filters.div_ceil(FILTERS)).map(|_| task()).collect();
        let spectra = vec![zero; n_filters * shape.channels * freqs];
        Plan { v_f: spectra.clone(), e_f: spectra, tasks, statistics }
    }

    /// v <- F V.
    fn set_aux(&mut self, dictionary: &Dictionary<T>) {
        let fourier = self.statistics.fourier();
        let (filter, freqs) = (dictionary.shape(), fourier.n_freqs());
        for (spectrum, taps) in self.v_f.chunks_exact_mut(freqs).zip(dictionary.data().chunks_exact(filter.pixels())) {
            fourier.forward_padded(taps, filter.spatial(), spectrum, &mut self.tasks[0].scratch);
        }
    }

    /// One iteration; returns ||D - V||^2, ||V - V_old||^2 and ||V||^2.
    fn iterate(&mut self, dictionary: &mut Dictionary<T>) -> [f64; 3] {
        let (filter, k) = (dictionary.shape(), dictionary.n_filters());
        let (v_f, e_f) = (&self.v_f, &self.e_f);
        self.statistics.solve(|i| v_f[i] + v_f[i] - e_f[i]);
        let (fourier, d) = (self.statistics.fourier(), self.statistics.solution());
        let (freqs, channels, taps) = (fourier.n_freqs(), filter.channels, filter.pixels());
        let many = FILTERS * channels * freqs;
        let spectra = self.e_f.par_chunks_mut(many).zip(self.v_f.par_chunks_mut(many));
        let filters = dictionary.data_mut().par_chunks_mut(FILTERS * filter.len());
        self.tasks.par_iter_mut().zip(spectra.zip(filters)).enumerate().for_each(|(t, (task, ((e, v), filters)))| {
            task.sums = [0.0; 3];
            let d = |freq: usize, j: usize, channel: usize| at(d, k, freq * channels + channel, t * FILTERS + j);
            // e <- d + theta = d + e - v, for all filters of the task while d's cache lines are at hand
            for (freq, channel) in (0..freqs).flat_map(|freq| (0..channels).map(move |channel| (freq, channel))) {
                for j in 0..filters.len() / filter.len() {
                    let i = (j * channels + channel) * freqs + freq;
                    e[i] = d(freq, j, channel) + e[i] - v[i];
                }
            }
            let maps = e.chunks_exact(channels * freqs).zip(v.chunks_exact_mut(channels * freqs));
            for (j, ((e, v), aux)) in maps.zip(filters.chunks_exact_mut(filter.len())).enumerate() {
                for (e, target) in e.chunks_exact(freqs).zip(task.filter.chunks_exact_mut(taps)) {
                    task.spectrum.copy_from_slice(e);
                    fourier.inverse_cropped(&mut task.spectrum, filter.spatial(), target, &mut task.scratch);
                }
                project_unit_ball(&mut task.filter);
                for (old, new) in aux.iter_mut().zip(&task.filter) {
                    task.sums[1] += (new.f64() - old.f64()).powi(2);
                    task.sums[2] += new.f64().powi(2);
                    *old = *new;
                }
                for (channel, (v, aux)) in v.chunks_exact_mut(freqs).zip(aux.chunks_exact(taps)).enumerate() {
                    fourier.forward_padded(aux, filter.spatial(), v, &mut task.scratch);
                    let difference = |freq: usize| (d(freq, j, channel) - v[freq]).norm_sqr().f64();
                    let sum: f64 = (0..freqs).map(|freq| fourier.weight(freq) as f64 * difference(freq)).sum();
                    task.sums[0] += sum / fourier.n_pixels() as f64;
                }
            }
        });
        self.tasks.iter().fold([0.0; 3], |[a, b, c], task| [a + task.sums[0], b + task.sums[1], c + task.sums[2]])
    }
}

/// Four times ||Z||^2 / K, which is the mean of |z(p)|^2 over filters and frequencies: rho is added to sums of such
/// numbers, so it must have their unit. On Fruit a fifth and four times of it serve about as
/// well.
fn default_rho<T: Real>(code: &Code<T>) -> f64 {
    let energy: f64 = code.atoms().iter().map(|a| a.value.f64().powi(2)).sum();
    if energy > 0.0 { 4.0 * energy / code.n_filters() as f64 } else { 1.0 }
}

impl<T: Real> Update<T> for Ocsc<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        // Before a plan is made for it.
        sample.check_whole()?;
        if self.plan.is_none() {
            let rho = self.config.rho.unwrap_or_else(|| default_rho(code));
            let mut plan = Plan::new(dictionary.n_filters(), dictionary.shape(), sample.shape(), rho);
            plan.set_aux(dictionary);
            // theta = 0
            plan.e_f.copy_from_slice(&plan.v_f);
            self.plan = Some(plan);
        }
        match &mut self.plan {
            Some(plan) => plan.statistics.absorb(sample, code),
            None => Ok(()),
        }
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let mut updated = Updated::default();
        let Some(plan) = &mut self.plan else { return updated };
        if self.config.reset {
            let zero = Complex::new(T::zero(), T::zero());
            plan.v_f.fill(zero);
            plan.e_f.fill(zero);
        }
        for iter in 1..=self.config.max_iters {
            let [primal, dual, norm] = plan.iterate(dictionary).map(f64::sqrt);
            let norm = norm.max(f64::MIN_POSITIVE);
            updated = Updated { iterations: iter, residuals: Some((primal / norm, dual / norm)), ..updated };
            if primal / norm <= self.config.tol && dual / norm <= self.config.tol {
                break;
            }
        }
        updated
    }

    fn state(&self) -> State<'_, T> {
        let Some(plan) = &self.plan else { return State::default() };
        let [inverse_gram, cross] = plan.statistics.arrays();
        let Shape { channels, depth, height, width } = plan.statistics.shape();
        State::default()
            .with_array("inverse_gram", inverse_gram)
            .with_array("cross", cross)
            .with_array("dual", bytemuck::cast_slice(&plan.e_f))
            .with_numbers("sample_shape", &[channels, depth, height, width].map(|n| n as f64))
            .with_numbers("rho", &[plan.statistics.rho()])
    }

    fn restore(&mut self, state: &State<'_, T>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let [channels, depth, height, width] = state.numbers("sample_shape")?.map(|n: f64| n as usize);
        let [rho] = state.numbers("rho")?;
        let shape = Shape { channels, depth, height, width };
        dictionary.check_sample_shape(shape)?;
        // Before anything is allocated for a shape that a damaged file made up.
        let [inverse_gram, cross] = Spectral::<T>::lens(dictionary.n_filters(), shape);
        state.check_len("inverse_gram", inverse_gram)?;
        state.check_len("cross", cross)?;
        let mut plan = Plan::new(dictionary.n_filters(), dictionary.shape(), shape, rho);
        let [inverse_gram, cross] = plan.statistics.arrays_mut();
        state.copy_array("inverse_gram", inverse_gram)?;
        state.copy_array("cross", cross)?;
        state.copy_array("dual", bytemuck::cast_slice_mut(&mut plan.e_f))?;
        plan.set_aux(dictionary);
        self.plan = Some(plan);
        Ok(())
    }
}
