//! CBPDN's dictionary update: the shared ADMM (`admm.rs`), its systems solved by iterated Sherman-Morrison over the codes.
//!
//! At every frequency A + rho I is rho I plus N matrices of rank 1, y_i y_i^H. Adding them one after the other,
//!
//! ```text
//! M_0 = rho I,     M_i^-1 = M_{i-1}^-1 - g_i g_i^H,     g_i = M_{i-1}^-1 y_i / sqrt(1 + y_i^H M_{i-1}^-1 y_i)
//! (A + rho I)^-1 r = r / rho - sum_i g_i (g_i^H r)
//! ```
//!
//! The published recursion runs at every iteration. Codes and rho are the same in all iterations of an update, so here the
//! g_i are computed once, in the place of the y_i.
//!
//! **Cost** N^2 K P per update and C N K P per iteration; memory N K P.
//!
//! Reference: Wohlberg, "Efficient algorithms for convolutional sparse representations", IEEE TIP 25(1), 2016.

use super::admm::System;
use super::batched::{AllCodes, Batched};
use crate::simd::{Kernel, dispatch};
use crate::statistics::{Codes, TILE, axpy, gather, inner, row_len};
use crate::{Code, Dictionary, Fourier, Real, Result, Sample, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Updates the dictionary as CBPDN does.
pub type Cbpdn<T> = Batched<T, ShermanMorrison<T>>;

/// Holds the systems, with the vectors g_i in place of the codes once they are prepared.
pub struct ShermanMorrison<T: Real> {
    codes: Codes<T>,
    rho: f64,
    /// b^p, right and left sides of the systems, (n_freqs, C, 2, padded K) each.
    cross: Vec<T>,
    right: Vec<T>,
    left: Vec<T>,
}

impl<T: Real> AllCodes<T> for ShermanMorrison<T> {
    fn relative_rho(n: usize) -> f64 {
        n as f64
    }

    fn new(n_filters: usize, shape: Shape) -> Self {
        let codes = Codes::new(n_filters, shape);
        let vectors = vec![T::zero(); codes.fourier().n_freqs() * shape.channels * row_len(n_filters)];
        ShermanMorrison { codes, rho: 1.0, cross: vectors.clone(), right: vectors.clone(), left: vectors }
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
        let (n, row) = (self.codes.len(), row_len(self.codes.n_filters()));
        self.codes.tiles.par_iter_mut().for_each(|rows| dispatch(Factor { rows, n, row, rho: T::of(rho) }));
    }
}

impl<T: Real> System<T> for ShermanMorrison<T> {
    fn fourier(&self) -> &Fourier<T> {
        self.codes.fourier()
    }

    fn solve(&mut self, v_f: &[Complex<T>], e_f: &[Complex<T>]) -> f64 {
        let (k, freqs, channels) =
            (self.codes.n_filters(), self.codes.fourier().n_freqs(), self.codes.shape().channels);
        let (row, rho) = (row_len(k), T::of(self.rho));
        let many = TILE * channels * row;
        let vectors = self.right.par_chunks_mut(many).zip(self.left.par_chunks_mut(many));
        let tiles = self.codes.tiles.par_iter().zip(self.cross.par_chunks(many));
        tiles.zip(vectors).enumerate().for_each(|(tile, ((g, b), (right, left)))| {
            for c in 0..channels {
                let r = |i: usize| (v_f[i] + v_f[i] - e_f[i]).scale(rho);
                gather(&mut right[c * row..], channels * row, k, |filter, i| {
                    r((filter * channels + c) * freqs + tile * TILE + i)
                });
            }
            right.iter_mut().zip(b).for_each(|(r, b)| *r += *b);
            dispatch(Apply { g, right, left, channels, row, rho });
        });
        0.0
    }

    fn solution(&self) -> &[T] {
        &self.left
    }
}

/// y_i -> g_i at all frequencies of a tile.
struct Factor<'a, T> {
    rows: &'a mut [T],
    n: usize,
    row: usize,
    rho: T,
}

impl<T: Real> Kernel for Factor<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let row = self.row;
        let per_sample = self.rows.len() / self.n.max(1);
        let mut y = vec![T::zero(); row];
        for start in (0..self.rows.len()).step_by(row) {
            let (before, rest) = self.rows.split_at_mut(start);
            let g = &mut rest[..row];
            y.copy_from_slice(g);
            g.iter_mut().for_each(|g| *g /= self.rho);
            // The same frequency of the samples before.
            for at in (start % per_sample..start).step_by(per_sample) {
                let earlier = &before[at..][..row];
                let c = inner::<T, FMA>(earlier, &y);
                axpy::<T, FMA>(g, -c, earlier);
            }
            let scale = T::one() / (T::one() + T::zero().at_least(inner::<T, FMA>(&y, g).re)).root();
            g.iter_mut().for_each(|g| *g *= scale);
        }
    }
}

/// left <- right / rho - sum_i g_i (g_i^H right), at all frequencies of a tile.
struct Apply<'a, T> {
    g: &'a [T],
    right: &'a [T],
    left: &'a mut [T],
    channels: usize,
    row: usize,
    rho: T,
}

impl<T: Real> Kernel for Apply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let row = self.row;
        let per_sample = self.right.len() / self.channels;
        let vectors = self.right.chunks_exact(row).zip(self.left.chunks_exact_mut(row));
        for (i, (r, d)) in vectors.enumerate() {
            d.iter_mut().zip(r).for_each(|(d, r)| *d = *r / self.rho);
            for sample in self.g.chunks_exact(per_sample) {
                let g = &sample[i / self.channels * row..][..row];
                let c = inner::<T, FMA>(g, r);
                axpy::<T, FMA>(d, -c, g);
            }
        }
    }
}
