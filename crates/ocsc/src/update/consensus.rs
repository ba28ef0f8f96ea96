//! CONSENSUS's dictionary update: every sample has a dictionary of its own, and all must agree.
//!
//! **Problem and splitting**: min sum_i 1/2 ||x_i - sum_k (D_i)_k * Z_ik||^2 subject to D_i = V for all i, V feasible. The shared ADMM
//! (`admm.rs`) with N copies:
//!
//! ```text
//! d_i(p)  = (y_i y_i^H + rho I)^-1 ( x_i y_i + rho (v - theta_i) )     rank 1: one division (matrix inversion lemma)
//! V       = project( crop F^-1 mean_i (d_i + theta_i) )
//! theta_i = theta_i + d_i - F V
//! ```
//!
//! The loop of `admm.rs` sees the mean of the copies, since mean theta = mean (d_i + theta_i) - v.
//!
//! **Cost** C N K P per iteration (the paper counts N K P^2); memory N K P for the codes and C N K P for the copies.
//!
//! Reference: Sorel, Sroubek, "Fast convolutional sparse coding using matrix inversion lemma", Digital Signal Processing 55,
//! 2016.

use super::admm::System;
use super::batched::{AllCodes, Batched};
use crate::simd::{Kernel, dispatch};
use crate::state::State;
use crate::statistics::{Codes, TILE, axpy, gather, inner, row_len};
use crate::{Code, Dictionary, Error, Fourier, Real, Result, Sample, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Updates the dictionary as CONSENSUS does.
pub type Consensus<T> = Batched<T, Copies<T>>;

/// Holds the systems of the N copies.
pub struct Copies<T: Real> {
    codes: Codes<T>,
    rho: f64,
    /// e_i = d_i + theta_i, in tiles (N, frequencies of the tile, C, 2, padded K).
    copies: Vec<Vec<T>>,
    /// V, V - E of the loop, and the mean of the d_i, (n_freqs, C, 2, padded K) each.
    aux: Vec<T>,
    mean: Vec<T>,
}

impl<T: Real> AllCodes<T> for Copies<T> {
    fn relative_rho(_n: usize) -> f64 {
        4.0
    }

    fn new(n_filters: usize, shape: Shape) -> Self {
        let codes = Codes::new(n_filters, shape);
        let vectors = vec![T::zero(); codes.fourier().n_freqs() * shape.channels * row_len(n_filters)];
        Copies { copies: vec![Vec::new(); codes.tiles.len()], codes, rho: 1.0, aux: vectors.clone(), mean: vectors }
    }

    fn shape(&self) -> Shape {
        self.codes.shape()
    }

    fn clear(&mut self) {
        self.codes.clear();
    }

    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>) -> Result<()> {
        sample.check_whole()?;
        self.codes.absorb(sample, code)
    }

    /// Copies of samples that are new start from V, with theta_i = 0.
    fn prepare(&mut self, rho: f64, dictionary: &Dictionary<T>, reset: bool) {
        self.rho = rho;
        let (fourier, shape, filter) = (self.codes.fourier(), self.codes.shape(), dictionary.shape());
        let freqs = fourier.n_freqs();
        let mut v_f = vec![Complex::new(T::zero(), T::zero()); dictionary.n_filters() * filter.channels * freqs];
        fourier.forward_many(dictionary.data(), filter.spatial(), &mut v_f, &mut [fourier.scratch()]);
        let (n, channels) = (self.codes.len(), shape.channels);
        gather_all(&mut self.aux, self.codes.n_filters(), channels, freqs, |i| v_f[i]);
        let many = TILE * channels * row_len(self.codes.n_filters());
        for (copies, v) in self.copies.iter_mut().zip(self.aux.chunks(many)) {
            copies.truncate(n * v.len());
            while copies.len() < n * v.len() {
                copies.extend_from_slice(v);
            }
            if reset {
                copies.fill(T::zero());
            }
        }
    }

    fn save<'a>(&'a self, state: State<'a>) -> State<'a> {
        state.with_owned("copies", self.copies.concat())
    }

    fn restore(&mut self, state: &State<'_>) -> Result<()> {
        let saved = state.array::<T>("copies")?;
        let many = TILE * self.codes.shape().channels * row_len(self.codes.n_filters());
        let n = saved.len() / self.mean.len();
        if saved.len() != n * self.mean.len() {
            let expected = format!("a multiple of {} numbers", self.mean.len());
            return Err(Error::invalid("saved `copies`", expected, saved.len()));
        }
        let mut rest = saved;
        for (copies, v) in self.copies.iter_mut().zip(self.mean.chunks(many)) {
            let (first, others) = rest.split_at(n * v.len());
            (*copies, rest) = (first.to_vec(), others);
        }
        Ok(())
    }
}

/// Map order (K, C, n_freqs) to filter order (n_freqs, C, 2, padded K).
fn gather_all<T: Real>(
    out: &mut [T],
    k: usize,
    channels: usize,
    freqs: usize,
    maps: impl Fn(usize) -> Complex<T> + Sync,
) {
    let row = row_len(k);
    out.par_chunks_mut(TILE * channels * row).enumerate().for_each(|(tile, out)| {
        for c in 0..channels {
            gather(&mut out[c * row..], channels * row, k, |filter, i| {
                maps((filter * channels + c) * freqs + tile * TILE + i)
            });
        }
    });
}

impl<T: Real> System<T> for Copies<T> {
    fn fourier(&self) -> &Fourier<T> {
        self.codes.fourier()
    }

    fn solve(&mut self, v_f: &[Complex<T>], e_f: &[Complex<T>]) -> f64 {
        let (k, shape) = (self.codes.n_filters(), self.codes.shape());
        let (freqs, channels, row, rho) = (self.codes.fourier().n_freqs(), shape.channels, row_len(k), T::of(self.rho));
        gather_all(&mut self.aux, k, channels, freqs, |i| v_f[i]);
        gather_all(&mut self.mean, k, channels, freqs, |i| v_f[i] - e_f[i]);
        let many = TILE * channels * row;
        let (codes, x_f) = (&self.codes, &self.codes.x_f);
        let tiles = self.copies.par_iter_mut().zip(&codes.tiles).zip(self.aux.par_chunks(many));
        let spreads: Vec<f64> = tiles
            .zip(self.mean.par_chunks_mut(many))
            .enumerate()
            .map(|(tile, (((copies, rows), v), mean))| {
                let x = |i: usize, c: usize, f: usize| x_f[(i * channels + c) * freqs + tile * TILE + f];
                let weight = |f: usize| codes.fourier().weight(tile * TILE + f) as f64;
                dispatch(Agree { copies, rows, v, mean, channels, row, rho, x, weight })
            })
            .collect();
        spreads.into_iter().sum::<f64>() / (codes.len() * shape.pixels()) as f64
    }

    fn solution(&self) -> &[T] {
        &self.mean
    }
}

/// One iteration of all copies at the frequencies of a tile; `mean` comes as v - e of the loop. Returns the weighted sum of
/// |d_i - mean|^2.
struct Agree<'a, T, X, W> {
    copies: &'a mut [T],
    rows: &'a [T],
    v: &'a [T],
    mean: &'a mut [T],
    channels: usize,
    row: usize,
    rho: T,
    x: X,
    weight: W,
}

impl<T: Real, X: Fn(usize, usize, usize) -> Complex<T>, W: Fn(usize) -> f64> Kernel for Agree<'_, T, X, W> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let (row, channels) = (self.row, self.channels);
        let n = self.copies.len() / self.v.len();
        let mut spread = 0.0;
        let mut d = vec![T::zero(); row];
        let mut mean_d = vec![T::zero(); self.v.len()];
        let share = T::one() / T::of(n as f64);
        for (i, copies) in self.copies.chunks_exact_mut(self.v.len()).enumerate() {
            let rows = &self.rows[i * (self.v.len() / channels)..][..self.v.len() / channels];
            for (f, y) in rows.chunks_exact(row).enumerate() {
                let power = inner::<T, FMA>(y, y).re;
                for c in 0..channels {
                    let at = (f * channels + c) * row;
                    let (e, v) = (&mut copies[at..][..row], &self.v[at..][..row]);
                    // w = v - theta = 2 v - e;  d = w + y (x - y^H w) / (rho + |y|^2);  e <- d + theta = d - w + v
                    e.iter_mut().zip(v).for_each(|(e, v)| *e = *v + *v - *e);
                    let step = ((self.x)(i, c, f) - inner::<T, FMA>(y, e)).unscale(self.rho + power);
                    d.copy_from_slice(e);
                    axpy::<T, FMA>(&mut d, step, y);
                    spread += (self.weight)(f) * d.iter().map(|d| d.f64().powi(2)).sum::<f64>();
                    // The loop adds e - v of its own to what it is given: the mean of the e_i is left.
                    let (mean, mean_d) = (&mut self.mean[at..][..row], &mut mean_d[at..][..row]);
                    for ((((e, v), d), mean), mean_d) in e.iter_mut().zip(v).zip(&d).zip(mean).zip(mean_d) {
                        *e = *d - *e + *v;
                        *mean += *e * share;
                        *mean_d += *d * share;
                    }
                }
            }
        }
        // sum |d_i - mean|^2 = sum |d_i|^2 - N |mean|^2
        for (j, mean) in mean_d.chunks_exact(row).enumerate() {
            let square: f64 = mean.iter().map(|m| m.f64().powi(2)).sum();
            spread -= (self.weight)(j / channels) * n as f64 * square;
        }
        spread.max(0.0)
    }
}
