//! The ADMM that the paper's update and those of the batch methods have in common.
//!
//! **Problem** (eq. `fcsc_dic`, `ocsc_dic`), over the half spectra d(p) of the padded filters:
//!
//! ```text
//! min 1/2P sum_p ( d(p)^H A^p d(p) - 2 Re d(p)^H b^p )   subject to D = V, V_k zero outside the filter, ||V_k|| <= 1
//! ```
//!
//! With several channels d(p) and b^p are one vector for each, the sum runs over them too, and A^p is the same for all:
//! they meet only in the norms.
//!
//! **Iteration**, with the scaled dual Theta and a fixed rho:
//!
//! ```text
//! d(p)  = (A^p + rho I)^-1 ( b^p + rho (v(p) - theta(p)) )    eq. `sub_d_sol`: the System, in which the methods differ
//! V_k   = project( crop F^-1 (d + theta)_k )                  Proposition `pr:sub_v_sol`
//! theta = theta + d - F V
//! ```
//!
//! The result is V, which is feasible; the published methods return crop F^-1 d, which need not be.
//!
//! **Stored**: e = d + theta, from which theta = e - v once v is renewed, so v - theta = 2 v - e.
//!
//! **Cost** of an iteration: that of the system, and 2 K C transforms; memory 2 C K P besides the system's.

use super::Updated;
use crate::dictionary::project_unit_ball;
use crate::state::State;
use crate::statistics::at;
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Fourier, Real, Result, Scratch, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Filters per task: as many as share a cache line of a vector in filter order.
const FILTERS: usize = 8;

/// The linear systems of the first step.
pub(super) trait System<T: Real> {
    /// Returns the plan of the samples' shape.
    fn fourier(&self) -> &Fourier<T>;

    /// Solves for d at every frequency and channel; v and e are in map order (K, C, n_freqs), d in filter order, in
    /// [`System::solution`]. Systems that hold several copies of d return their mean there, and the mean squared
    /// distance of the copies from it.
    fn solve(&mut self, v_f: &[Complex<T>], e_f: &[Complex<T>]) -> f64;

    /// Returns what [`System::solve`] found, in filter order: read it with [`at`].
    fn solution(&self) -> &[T];
}

/// The variables of the iteration for samples of one shape, with their system.
pub(super) struct Admm<T: Real, S> {
    pub(super) system: S,
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

impl<T: Real, S: System<T>> Admm<T, S> {
    /// Starts from V = the dictionary and Theta = 0.
    pub(super) fn new(dictionary: &Dictionary<T>, system: S) -> Self {
        let (n_filters, filter, fourier) = (dictionary.n_filters(), dictionary.shape(), system.fourier());
        let zero = Complex::new(T::zero(), T::zero());
        let freqs = fourier.n_freqs();
        let task = || Task {
            scratch: fourier.scratch(),
            spectrum: vec![zero; freqs],
            filter: vec![T::zero(); filter.len()],
            sums: [0.0; 3],
        };
        let tasks = (0..n_filters.div_ceil(FILTERS)).map(|_| task()).collect();
        let spectra = vec![zero; n_filters * filter.channels * freqs];
        let mut new = Admm { v_f: spectra.clone(), e_f: spectra, tasks, system };
        new.set_aux(dictionary);
        new.e_f.copy_from_slice(&new.v_f);
        new
    }

    /// v <- F V.
    fn set_aux(&mut self, dictionary: &Dictionary<T>) {
        let fourier = self.system.fourier();
        let (filter, freqs) = (dictionary.shape(), fourier.n_freqs());
        for (spectrum, taps) in self.v_f.chunks_exact_mut(freqs).zip(dictionary.data().chunks_exact(filter.pixels())) {
            fourier.forward_padded(taps, filter.spatial(), spectrum, &mut self.tasks[0].scratch);
        }
    }

    /// Iterates until the residuals are small or the iterations run out.
    pub(super) fn run(&mut self, dictionary: &mut Dictionary<T>, config: &UpdateConfig) -> Updated {
        if config.reset {
            let zero = Complex::new(T::zero(), T::zero());
            self.v_f.fill(zero);
            self.e_f.fill(zero);
        }
        let mut updated = Updated::default();
        for iter in 1..=config.max_iters {
            let [primal, dual, norm] = self.iterate(dictionary).map(f64::sqrt);
            let norm = norm.max(f64::MIN_POSITIVE);
            updated = Updated { iterations: iter, residuals: Some((primal / norm, dual / norm)), ..updated };
            if primal / norm <= config.tol && dual / norm <= config.tol {
                break;
            }
        }
        updated
    }

    /// Makes one iteration; returns ||D - V||^2, ||V - V_old||^2 and ||V||^2.
    fn iterate(&mut self, dictionary: &mut Dictionary<T>) -> [f64; 3] {
        let (filter, k) = (dictionary.shape(), dictionary.n_filters());
        let spread = self.system.solve(&self.v_f, &self.e_f);
        let (fourier, d) = (self.system.fourier(), self.system.solution());
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
        let start = [spread, 0.0, 0.0];
        self.tasks.iter().fold(start, |[a, b, c], task| [a + task.sums[0], b + task.sums[1], c + task.sums[2]])
    }

    /// Adds what a later [`Admm::restore`] needs.
    pub(super) fn save<'a>(&'a self, state: State<'a>, sample: Shape, rho: f64) -> State<'a> {
        state
            .with::<T>("dual", bytemuck::cast_slice(&self.e_f))
            .with_shapes("sample_shape", [sample])
            .with_owned("rho", vec![rho])
    }

    /// Takes over saved duals; V is the dictionary.
    pub(super) fn restore(&mut self, state: &State<'_>) -> Result<()> {
        state.copy_array::<T>("dual", bytemuck::cast_slice_mut(&mut self.e_f))
    }
}

/// Returns the samples' shape and rho that [`Admm::save`] kept.
pub(super) fn saved<T: Real>(state: &State<'_>, dictionary: &Dictionary<T>) -> Result<(Shape, f64)> {
    let shape = state.shape("sample_shape")?;
    let rho = state.number("rho")?;
    crate::setting::positive("saved `rho`", rho)?;
    dictionary.check_sample_shape(shape)?;
    // Before anything is allocated for a shape that a damaged file made up.
    let freqs = crate::statistics::n_freqs(shape).saturating_mul(2);
    state.check_len("dual", dictionary.n_filters().saturating_mul(shape.channels).saturating_mul(freqs))?;
    Ok((shape, rho))
}

/// ||Z||^2 / K, which is the mean of |z(p)|^2 over filters and frequencies: rho is added to sums of such numbers, so it must
/// have their unit. A quarter where there is nothing.
pub(super) fn mean_power<T: Real>(code: &Code<T>) -> f64 {
    let energy: f64 = code.atoms().iter().map(|a| a.value.f64().powi(2)).sum();
    if energy > 0.0 { energy / code.n_filters() as f64 } else { 0.25 }
}
