//! FFCSC's dictionary update: a split data term, so that masks do not enter the systems, and cached factors.
//!
//! **Splitting**: min sum_i 1/2 ||M_i (x_i - s_i)||^2 subject to sum_k D_k * Z_ik = s_i and D = V, V feasible; scaled duals t_i and
//! Theta, the penalty 1 on the first constraints (the unit of the data term) and rho on the second. The shared ADMM
//! (`admm.rs`), with
//!
//! ```text
//! (sum_i y_i y_i^H + rho I) d = sum_i (s_i - t_i) y_i + rho (v - theta)     at every frequency
//! s_i = (M_i x_i + h_i + t_i) / (M_i + 1),   t_i = t_i + h_i - s_i          h_i = the reconstruction by d
//! ```
//!
//! Since the penalty is 1, s_i - t_i is x_i wherever a value was observed and h_i elsewhere, after every iteration: only this
//! image is kept. It starts with the reconstruction by V.
//!
//! **Cached factorisation.** The matrix is the same in all iterations of an update: its Cholesky factor is computed once, of
//! the smaller side. For N < K that is the N x N matrix of the identity
//! (Y Y^H + rho I)^-1 r = (r - Y (Y^H Y + rho I)^-1 Y^H r) / rho, with the y_i as columns of Y.
//!
//! **Cost** min(N, K)^2 (N + K) P per update; C N K P + C min(N, K)^2 P per iteration, and with masks
//! 2 N C transforms; memory N K P.
//!
//! Reference: Heide, Heidrich, Wetzstein, "Fast and flexible convolutional sparse coding", CVPR 2015.

use super::admm::System;
use super::batched::{AllCodes, Batched};
use super::cholesky::{add_outer, factor, matrix_len, solve};
use crate::simd::{Kernel, dispatch};
use crate::statistics::{Codes, TILE, axpy, gather, inner, row_len};
use crate::{Code, Dictionary, Fourier, Real, Result, Sample, Scratch, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Updates the dictionary as FFCSC does.
pub type Ffcsc<T> = Batched<T, Cached<T>>;

/// Holds the systems with their factors, and the split data.
pub struct Cached<T: Real> {
    codes: Codes<T>,
    rho: f64,
    /// Factors of the smaller side, in tiles, one matrix per frequency.
    factors: Vec<Vec<T>>,
    /// b^p of the split data, and the sides of the systems in turn, (n_freqs, C, 2, padded K) each.
    cross: Vec<T>,
    sides: Vec<T>,
    /// s_i - t_i, (N, C, P), and which of them were not observed.
    targets: Vec<T>,
    hidden: Vec<usize>,
    /// Images (N, C, P) and their spectra (N, C, n_freqs).
    images: Vec<T>,
    images_f: Vec<Complex<T>>,
    scratch: Vec<Scratch<T>>,
}

impl<T: Real> AllCodes<T> for Cached<T> {
    fn relative_rho(n: usize) -> f64 {
        n as f64
    }

    fn new(n_filters: usize, shape: Shape) -> Self {
        let codes = Codes::new(n_filters, shape);
        let vectors = vec![T::zero(); codes.fourier().n_freqs() * shape.channels * row_len(n_filters)];
        Cached {
            rho: 1.0,
            factors: vec![Vec::new(); codes.tiles.len()],
            cross: vectors.clone(),
            sides: vectors,
            targets: Vec::new(),
            hidden: Vec::new(),
            images: Vec::new(),
            images_f: Vec::new(),
            scratch: (0..16).map(|_| codes.fourier().scratch()).collect(),
            codes,
        }
    }

    fn shape(&self) -> Shape {
        self.codes.shape()
    }

    fn clear(&mut self) {
        self.codes.clear();
        self.targets.clear();
        self.hidden.clear();
    }

    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>) -> Result<()> {
        self.codes.absorb(sample, code)?;
        let (first, mask) = (self.targets.len(), sample.mask().into_iter().flatten());
        self.targets.extend_from_slice(sample.data());
        self.hidden.extend(mask.enumerate().filter(|(_, seen)| !**seen).map(|(i, _)| first + i));
        Ok(())
    }

    fn prepare(&mut self, rho: f64, dictionary: &Dictionary<T>, _reset: bool) {
        self.rho = rho;
        self.factor();
        let (fourier, filter) = (self.codes.fourier(), dictionary.shape());
        let zero = Complex::new(T::zero(), T::zero());
        let mut v_f = vec![zero; dictionary.n_filters() * filter.channels * fourier.n_freqs()];
        fourier.forward_many(dictionary.data(), filter.spatial(), &mut v_f, &mut self.scratch);
        self.images.resize(self.targets.len(), T::zero());
        self.images_f.resize(self.codes.x_f.len(), zero);
        self.gather(|i| v_f[i]);
        self.fill();
        self.transform();
    }
}

impl<T: Real> Cached<T> {
    /// Whether the systems are solved on the side of the samples.
    fn by_samples(&self) -> bool {
        self.codes.len() < self.codes.n_filters()
    }

    fn factor(&mut self) {
        let (k, n, rho, by_samples) = (self.codes.n_filters(), self.codes.len(), T::of(self.rho), self.by_samples());
        let (row, side) = (row_len(k), if by_samples { n } else { k });
        self.factors.par_iter_mut().zip(&self.codes.tiles).for_each(|(factors, rows)| {
            let len = rows.len() / (n * row);
            factors.clear();
            factors.resize(len * matrix_len(side), T::zero());
            for (f, matrix) in factors.chunks_exact_mut(matrix_len(side)).enumerate() {
                if by_samples {
                    dispatch(Gram { rows, f, len, row, matrix });
                } else {
                    rows.chunks_exact(len * row).for_each(|sample| add_outer(matrix, &sample[f * row..][..row]));
                }
                factor(matrix, side, rho);
            }
        });
    }

    /// sides <- spectra in map order (K, C, n_freqs).
    fn gather(&mut self, maps: impl Fn(usize) -> Complex<T> + Sync) {
        let (k, freqs, channels) =
            (self.codes.n_filters(), self.codes.fourier().n_freqs(), self.codes.shape().channels);
        let row = row_len(k);
        self.sides.par_chunks_mut(TILE * channels * row).enumerate().for_each(|(tile, sides)| {
            for c in 0..channels {
                gather(&mut sides[c * row..], channels * row, k, |filter, i| {
                    maps((filter * channels + c) * freqs + tile * TILE + i)
                });
            }
        });
    }

    /// targets <- the reconstructions by the filters in `sides`, where nothing was observed.
    fn fill(&mut self) {
        if !self.hidden.is_empty() {
            self.reconstruct();
            self.hidden.iter().for_each(|i| self.targets[*i] = self.images[*i]);
        }
    }

    /// cross <- b of the targets.
    fn transform(&mut self) {
        let fourier = self.codes.fourier();
        fourier.forward_many(&self.targets, fourier.shape(), &mut self.images_f, &mut self.scratch);
        self.codes.cross(&self.images_f, &mut self.cross);
    }

    /// images <- the reconstructions by the filters in `sides`: sum_k z_ik d_k = y_i^H d at every frequency.
    fn reconstruct(&mut self) {
        let (freqs, shape, n) = (self.codes.fourier().n_freqs(), self.codes.shape(), self.codes.len());
        let (channels, row) = (shape.channels, row_len(self.codes.n_filters()));
        let zero = Complex::new(T::zero(), T::zero());
        // In tiles (frequency, sample, channel), then to maps.
        let mut products = vec![zero; freqs * n * channels];
        let sides = self.sides.par_chunks(TILE * channels * row).zip(&self.codes.tiles);
        products.par_chunks_mut(TILE * n * channels).zip(sides).for_each(|(products, (d, rows))| {
            dispatch(Products { rows, d, channels, row, products });
        });
        self.images_f.par_chunks_exact_mut(freqs).enumerate().for_each(|(map, image)| {
            image.iter_mut().enumerate().for_each(|(p, v)| *v = products[p * n * channels + map]);
        });
        let fourier = self.codes.fourier();
        fourier.inverse_many(&mut self.images_f, shape.spatial(), &mut self.images, &mut self.scratch);
    }
}

impl<T: Real> System<T> for Cached<T> {
    fn fourier(&self) -> &Fourier<T> {
        self.codes.fourier()
    }

    fn solve(&mut self, v_f: &[Complex<T>], e_f: &[Complex<T>]) -> f64 {
        let (k, n, channels) = (self.codes.n_filters(), self.codes.len(), self.codes.shape().channels);
        let (row, rho, by_samples) = (row_len(k), T::of(self.rho), self.by_samples());
        self.gather(|i| (v_f[i] + v_f[i] - e_f[i]).scale(rho));
        let many = TILE * channels * row;
        let tiles = self.factors.par_iter().zip(&self.codes.tiles).zip(self.cross.par_chunks(many));
        tiles.zip(self.sides.par_chunks_mut(many)).for_each(|(((factors, rows), b), sides)| {
            sides.iter_mut().zip(b).for_each(|(r, b)| *r += *b);
            let len = sides.len() / (channels * row);
            if by_samples {
                let mut w = vec![T::zero(); row_len(n)];
                for (f, sides) in sides.chunks_exact_mut(channels * row).enumerate() {
                    let matrix = &factors[f * matrix_len(n)..][..matrix_len(n)];
                    for r in sides.chunks_exact_mut(row) {
                        dispatch(Lemma { rows, f, len, n, matrix, rho, r, w: &mut w });
                    }
                }
            } else {
                for (sides, matrix) in sides.chunks_exact_mut(channels * row).zip(factors.chunks_exact(matrix_len(k))) {
                    sides.chunks_exact_mut(row).for_each(|r| solve(matrix, k, r));
                }
            }
        });
        if !self.hidden.is_empty() {
            self.fill();
            self.transform();
        }
        0.0
    }

    fn solution(&self) -> &[T] {
        &self.sides
    }
}

/// Y^H Y of frequency f, on and below the diagonal.
struct Gram<'a, T> {
    rows: &'a [T],
    f: usize,
    len: usize,
    row: usize,
    matrix: &'a mut [T],
}

impl<T: Real> Kernel for Gram<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let n = self.rows.len() / (self.len * self.row);
        let y = |i: usize| &self.rows[(i * self.len + self.f) * self.row..][..self.row];
        for i in 0..n {
            let out = &mut self.matrix[i * row_len(n)..][..row_len(n)];
            for j in 0..=i {
                let entry = inner::<T, FMA>(y(i), y(j));
                (out[j], out[row_len(n) / 2 + j]) = (entry.re, entry.im);
            }
        }
    }
}

/// r <- (r - Y (Y^H Y + rho I)^-1 Y^H r) / rho at frequency f.
struct Lemma<'a, T> {
    rows: &'a [T],
    f: usize,
    len: usize,
    n: usize,
    matrix: &'a [T],
    rho: T,
    r: &'a mut [T],
    w: &'a mut [T],
}

impl<T: Real> Kernel for Lemma<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (row, half) = (self.r.len(), self.w.len() / 2);
        let y = |i: usize| &self.rows[(i * self.len + self.f) * row..][..row];
        for i in 0..self.n {
            let c = inner::<T, FMA>(y(i), self.r);
            (self.w[i], self.w[half + i]) = (c.re, c.im);
        }
        solve(self.matrix, self.n, self.w);
        for i in 0..self.n {
            axpy::<T, FMA>(self.r, -Complex::new(self.w[i], self.w[half + i]), y(i));
        }
        let scale = T::one() / self.rho;
        self.r.iter_mut().for_each(|r| *r *= scale);
    }
}

/// y_i^H d at the frequencies of a tile, (frequency, N, C).
struct Products<'a, T> {
    rows: &'a [T],
    d: &'a [T],
    channels: usize,
    row: usize,
    products: &'a mut [Complex<T>],
}

impl<T: Real> Kernel for Products<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (row, channels) = (self.row, self.channels);
        let per_sample = self.d.len() / channels;
        let n = self.rows.len() / per_sample;
        for (i, sample) in self.rows.chunks_exact(per_sample).enumerate() {
            for (f, y) in sample.chunks_exact(row).enumerate() {
                for c in 0..channels {
                    let d = &self.d[(f * channels + c) * row..][..row];
                    self.products[(f * n + i) * channels + c] = inner::<T, FMA>(y, d);
                }
            }
        }
    }
}
