//! FCSC's dictionary update: the shared ADMM (`admm.rs`), its systems solved directly.
//!
//! At every frequency and in every iteration the K x K matrix is formed, factored (Cholesky) and used once:
//!
//! ```text
//! (sum_i y_i y_i^H + rho I) d = b + rho (v - theta)
//! ```
//!
//! No factor is kept, so that memory is that of the codes, as published; keeping them is FFCSC's improvement.
//!
//! **Cost** N K^2 P + K^3 P / 3 per iteration (the paper counts N K^3 P); memory N K P.
//!
//! Reference: Bristow, Eriksson, Lucey, "Fast convolutional sparse coding", CVPR 2013.

use super::admm::System;
use super::batched::{AllCodes, Batched};
use super::cholesky::{add_outer, factor, matrix_len, solve};
use crate::statistics::{Codes, TILE, gather, row_len};
use crate::{Code, Dictionary, Fourier, Real, Result, Sample, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Updates the dictionary as FCSC does.
pub type Fcsc<T> = Batched<T, Direct<T>>;

/// Holds the systems.
pub struct Direct<T: Real> {
    codes: Codes<T>,
    rho: f64,
    /// b^p, and the sides of the systems in turn, (n_freqs, C, 2, padded K) each.
    cross: Vec<T>,
    sides: Vec<T>,
}

impl<T: Real> AllCodes<T> for Direct<T> {
    fn relative_rho(n: usize) -> f64 {
        n as f64
    }

    fn new(n_filters: usize, shape: Shape) -> Self {
        let codes = Codes::new(n_filters, shape);
        let vectors = vec![T::zero(); codes.fourier().n_freqs() * shape.channels * row_len(n_filters)];
        Direct { codes, rho: 1.0, cross: vectors.clone(), sides: vectors }
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

    fn prepare(&mut self, rho: f64, _dictionary: &Dictionary<T>, _reset: bool) {
        self.rho = rho;
        self.codes.cross(&self.codes.x_f, &mut self.cross);
    }
}

impl<T: Real> System<T> for Direct<T> {
    fn fourier(&self) -> &Fourier<T> {
        self.codes.fourier()
    }

    fn solve(&mut self, v_f: &[Complex<T>], e_f: &[Complex<T>]) -> f64 {
        let (k, freqs, channels) =
            (self.codes.n_filters(), self.codes.fourier().n_freqs(), self.codes.shape().channels);
        let (row, rho) = (row_len(k), T::of(self.rho));
        let many = TILE * channels * row;
        let tiles = self.codes.tiles.par_iter().zip(self.cross.par_chunks(many));
        tiles.zip(self.sides.par_chunks_mut(many)).enumerate().for_each(|(tile, ((rows, b), sides))| {
            for c in 0..channels {
                let r = |i: usize| (v_f[i] + v_f[i] - e_f[i]).scale(rho);
                gather(&mut sides[c * row..], channels * row, k, |filter, i| {
                    r((filter * channels + c) * freqs + tile * TILE + i)
                });
            }
            sides.iter_mut().zip(b).for_each(|(r, b)| *r += *b);
            let per_sample = sides.len() / channels;
            let mut matrix = vec![T::zero(); matrix_len(k)];
            for (f, sides) in sides.chunks_exact_mut(channels * row).enumerate() {
                matrix.fill(T::zero());
                rows.chunks_exact(per_sample).for_each(|sample| add_outer(&mut matrix, &sample[f * row..][..row]));
                factor(&mut matrix, k, rho);
                sides.chunks_exact_mut(row).for_each(|r| solve(&matrix, k, r));
            }
        });
        0.0
    }

    fn solution(&self) -> &[T] {
        &self.sides
    }
}
