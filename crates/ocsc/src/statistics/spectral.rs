//! The paper's history matrices {C^p} and {b^p}, one pair per frequency (Proposition `pr:reorder`).
//!
//! With the spectra x_i(p) and z_i(p) (a vector over the K filters) of sample i at frequency p,
//!
//! ```text
//! C^p = ( sum_i conj(z_i) z_i^T + rho I )^-1        Hermitian, K x K
//! b^p =   sum_i x_i conj(z_i)                       K, for every channel of the samples
//! ```
//!
//! so that the dictionary's row at p solves (C^p)^-1 d = b^p + rho (v - theta), see [`crate::update::OcscPaper`]. A code is one
//! for all channels, so they share C^p, which takes the memory and the time.
//!
//! **Sums, not averages.** The paper averages, and its printed recursion for C_t (eq. `C_update`) yields
//! (A_t + (rho P / t) I)^-1 instead of the (A_t + rho P I)^-1 that its dictionary step assumes; from t = 2 on the two
//! together are no longer an ADMM of any problem. With sums and one fixed rho the rank-1 step is the same and exact:
//!
//! ```text
//! C <- C - (C y)(C y)^H / (1 + y^H C y),     y = conj(z)        (Sherman-Morrison)
//! ```
//!
//! **Storage.** Only the half spectrum is kept, and of each Hermitian C^p the lower triangle, real and imaginary parts
//! apart, each row padded to whole blocks: K (K + 1) / 2 complex numbers (plus 7 % at K = 100), half the memory of full
//! matrices and two thirds of the time, since the loops below run at the speed of memory.

use super::filter_order::{BLOCK, Spectra, TILE, add_scaled, at, gather, n_freqs, row_len};
use crate::simd::{Kernel, dispatch};
use crate::{Code, Error, Fourier, Real, Result, Sample, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Holds {C^p} and {b^p} for samples of one shape.
pub struct Spectral<T: Real> {
    n_filters: usize,
    rho: f64,
    spectra: Spectra<T>,
    /// {C^p}, (n_freqs, 2, packed triangle).
    inverse_gram: Vec<T>,
    /// {b^p}, (n_freqs, C, 2, padded K).
    cross: Vec<T>,
    /// Right and left sides of the per-frequency systems, in filter order (n_freqs, C, 2, padded K).
    right: Vec<T>,
    left: Vec<T>,
}

impl<T: Real> Spectral<T> {
    /// Starts without samples: C = I / rho, b = 0.
    pub fn new(n_filters: usize, shape: Shape, rho: f64) -> Self {
        let spectra = Spectra::new(n_filters, shape);
        let freqs = spectra.fourier.n_freqs();
        let vectors = vec![T::zero(); freqs * shape.channels * row_len(n_filters)];
        let inverse_gram = vec![T::zero(); freqs * 2 * triangle(n_filters)];
        let (right, left) = (vectors.clone(), vectors.clone());
        let mut new = Spectral { n_filters, rho, spectra, inverse_gram, cross: vectors, right, left };
        new.clear();
        new
    }

    /// Forgets all samples.
    pub(crate) fn clear(&mut self) {
        let diagonal = T::of(1.0 / self.rho);
        self.inverse_gram.fill(T::zero());
        for c in self.inverse_gram.chunks_exact_mut(2 * triangle(self.n_filters)) {
            (0..self.n_filters).for_each(|k| c[triangle(k) + k] = diagonal);
        }
        self.cross.fill(T::zero());
    }

    /// Returns the bytes that {C^p} and {b^p} take, without planning.
    pub fn bytes(n_filters: usize, shape: Shape) -> usize {
        let [inverse_gram, cross] = Self::lens(n_filters, shape);
        inverse_gram.saturating_add(cross).saturating_mul(size_of::<T>())
    }

    /// Numbers in {C^p} and in {b^p}.
    pub(crate) fn lens(n_filters: usize, shape: Shape) -> [usize; 2] {
        let freqs = n_freqs(shape);
        let cross = freqs.saturating_mul(shape.channels).saturating_mul(row_len(n_filters));
        [freqs.saturating_mul(2).saturating_mul(triangle(n_filters)), cross]
    }

    /// The plan shared with the update.
    pub(crate) fn fourier(&self) -> &Fourier<T> {
        &self.spectra.fourier
    }

    /// Returns the sample shape that these statistics are for.
    pub fn shape(&self) -> Shape {
        self.spectra.shape()
    }

    /// Returns the fixed penalty in C.
    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// Returns C^p at frequency `freq` of the half spectrum (see [`Fourier`]), (K, K) row by row: a copy, to look at.
    pub fn inverse_gram(&self, freq: usize) -> Vec<Complex<T>> {
        let (k, tri) = (self.n_filters, triangle(self.n_filters));
        let (re, im) = self.inverse_gram[freq * 2 * tri..][..2 * tri].split_at(tri);
        let lower = |i: usize, j: usize| Complex::new(re[triangle(i) + j], im[triangle(i) + j]);
        let entry = |i: usize, j: usize| if j <= i { lower(i, j) } else { lower(j, i).conj() };
        (0..k * k).map(|i| entry(i / k, i % k)).collect()
    }

    /// Returns b^p at frequency `freq` of the half spectrum, (C, K): a copy, to look at.
    pub fn cross(&self, freq: usize) -> Vec<Complex<T>> {
        let (k, channels) = (self.n_filters, self.shape().channels);
        (0..channels * k).map(|i| at(&self.cross, k, freq * channels + i / k, i % k)).collect()
    }

    /// {C^p} and {b^p} as flat arrays, for checkpoints.
    pub(crate) fn arrays(&self) -> [&[T]; 2] {
        [&self.inverse_gram, &self.cross]
    }

    /// The same, to be restored.
    pub(crate) fn arrays_mut(&mut self) -> [&mut [T]; 2] {
        [&mut self.inverse_gram, &mut self.cross]
    }

    /// Refuses {C^p} that no samples give: C^p is positive definite, and its eigenvalues are at most 1 / rho.
    pub(crate) fn check_possible(&self) -> Result<()> {
        // Rounding of many rank-1 steps is left some room.
        let (most, least) = (1.01 / self.rho, -0.01 / self.rho);
        self.inverse_gram.chunks_exact(2 * triangle(self.n_filters)).try_for_each(|c| {
            let diagonal = (0..self.n_filters).map(|k| c[triangle(k) + k].f64());
            let negative = diagonal.into_iter().find(|v| *v < least);
            match negative.or_else(|| c.iter().map(|v| v.f64()).find(|v| v.abs() > most)) {
                Some(v) => {
                    let expected = format!("positive definite matrices with eigenvalues up to {:e}", 1.0 / self.rho);
                    Err(Error::invalid("saved `inverse_gram`", expected, format!("{v:e}")))
                }
                None => Ok(()),
            }
        })
    }

    /// Adds one sample with its code.
    pub fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>) -> Result<()> {
        sample.check_whole()?;
        self.spectra.check(sample, code)?;
        self.spectra.transform(sample, code);
        let (k, freqs, channels) = (self.n_filters, self.fourier().n_freqs(), self.shape().channels);
        let (tri, row) = (2 * triangle(k), row_len(k));
        let rows = channels * row;
        let (z_f, x_f) = (&self.spectra.z_f, &self.spectra.x_f);
        let work = self.right.par_chunks_mut(TILE * rows).zip(self.left.par_chunks_mut(TILE * rows));
        let tiles = self.inverse_gram.par_chunks_mut(TILE * tri).zip(self.cross.par_chunks_mut(TILE * rows));
        tiles.zip(work).enumerate().for_each(|(tile, ((c, b), (y, w)))| {
            // One vector per frequency will do here.
            let y = &mut y[..c.len() / tri * row];
            gather(y, row, k, |filter, i| z_f[filter * freqs + tile * TILE + i].conj());
            let vectors = y.chunks_exact(row).zip(w.chunks_exact_mut(row));
            let matrices = c.chunks_exact_mut(tri).zip(b.chunks_exact_mut(rows));
            for (i, ((c, b), (y, w))) in matrices.zip(vectors).enumerate() {
                for (channel, b) in b.chunks_exact_mut(row).enumerate() {
                    add_scaled(b, x_f[channel * freqs + tile * TILE + i], y);
                }
                dispatch(Absorb { c, y, w });
            }
        });
        Ok(())
    }

    /// d = C^p (b^p + rho r) at every frequency and for every channel; `r(i)` is in map order (K, C, n_freqs), d in filter
    /// order, in [`Spectral::solution`].
    pub(crate) fn solve(&mut self, r: impl Fn(usize) -> Complex<T> + Sync) {
        let (k, freqs, channels) = (self.n_filters, self.fourier().n_freqs(), self.shape().channels);
        let (tri, row) = (2 * triangle(k), row_len(k));
        let rows = channels * row;
        let rho = T::of(self.rho);
        let work = self.right.par_chunks_mut(TILE * rows).zip(self.left.par_chunks_mut(TILE * rows));
        let tiles = self.inverse_gram.par_chunks(TILE * tri).zip(self.cross.par_chunks(TILE * rows));
        tiles.zip(work).enumerate().for_each(|(tile, ((c, b), (right, left)))| {
            for channel in 0..channels {
                let entry = |filter: usize, i: usize| r((filter * channels + channel) * freqs + tile * TILE + i);
                gather(&mut right[channel * row..], rows, k, |filter, i| entry(filter, i).scale(rho));
            }
            right.iter_mut().zip(b).for_each(|(r, b)| *r += *b);
            let vectors = right.chunks_exact(rows).zip(left.chunks_exact_mut(rows));
            for (c, (r, d)) in c.chunks_exact(tri).zip(vectors) {
                for (r, d) in r.chunks_exact(row).zip(d.chunks_exact_mut(row)) {
                    dispatch(Multiply { c, r, d });
                }
            }
        });
    }

    /// What [`Spectral::solve`] found, in filter order: read it with [`at`].
    pub(crate) fn solution(&self) -> &[T] {
        &self.left
    }
}

/// Where row k starts in a packed triangle, and so the length of a triangle with k rows.
fn triangle(k: usize) -> usize {
    let (blocks, rest) = (k / BLOCK, k % BLOCK);
    (BLOCK * blocks / 2 + rest).saturating_mul(BLOCK.saturating_mul(blocks + 1))
}

/// C <- (C^-1 + y y^H)^-1 by Sherman-Morrison, at one frequency.
struct Absorb<'a, T> {
    c: &'a mut [T],
    y: &'a [T],
    /// Receives C y.
    w: &'a mut [T],
}

impl<T: Real> Kernel for Absorb<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let half = self.y.len() / 2;
        Multiply { c: &*self.c, r: self.y, d: &mut *self.w }.run::<FMA>();
        // 1 + y^H C y, which is real and at least 1 since C is positive definite
        let product: f64 = self.y.iter().zip(&*self.w).map(|(y, w)| y.f64() * w.f64()).sum();
        let scale = T::of(1.0 / (1.0 + product.max(0.0)));
        let (w_re, w_im) = self.w.split_at(half);
        let (c_re, c_im) = self.c.split_at_mut(self.c.len() / 2);
        let (mut start, mut k) = (0, 0_usize);
        while start < c_re.len() {
            let len = (k + 1).next_multiple_of(BLOCK);
            let (re, im) = (&mut c_re[start..][..len], &mut c_im[start..][..len]);
            // C_kj -= w_k conj(w_j) / (1 + y^H C y)
            let (a, b) = (w_re[k] * scale, w_im[k] * scale);
            let blocks = re.as_chunks_mut::<BLOCK>().0.iter_mut().zip(im.as_chunks_mut::<BLOCK>().0);
            let w_blocks = w_re.as_chunks::<BLOCK>().0.iter().zip(w_im.as_chunks::<BLOCK>().0);
            for ((re, im), (w_re, w_im)) in blocks.zip(w_blocks) {
                for i in 0..BLOCK {
                    re[i] = (-a).fused::<FMA>(w_re[i], (-b).fused::<FMA>(w_im[i], re[i]));
                    im[i] = a.fused::<FMA>(w_im[i], (-b).fused::<FMA>(w_re[i], im[i]));
                }
            }
            re[k + 1..].fill(T::zero());
            im[k..].fill(T::zero());
            (start, k) = (start + len, k + 1);
        }
    }
}

/// d <- C r at one frequency, C a packed Hermitian triangle.
struct Multiply<'a, T> {
    c: &'a [T],
    r: &'a [T],
    d: &'a mut [T],
}

impl<T: Real> Kernel for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let half = self.r.len() / 2;
        let (c_re, c_im) = self.c.split_at(self.c.len() / 2);
        let (r_re, r_im) = self.r.split_at(half);
        self.d.fill(T::zero());
        let (d_re, d_im) = self.d.split_at_mut(half);
        let (mut start, mut k) = (0, 0_usize);
        while start < c_re.len() {
            let len = (k + 1).next_multiple_of(BLOCK);
            let c_blocks =
                c_re[start..][..len].as_chunks::<BLOCK>().0.iter().zip(c_im[start..][..len].as_chunks::<BLOCK>().0);
            let r_blocks = r_re.as_chunks::<BLOCK>().0.iter().zip(r_im.as_chunks::<BLOCK>().0);
            let d_blocks = d_re.as_chunks_mut::<BLOCK>().0.iter_mut().zip(d_im.as_chunks_mut::<BLOCK>().0);
            let (a, b) = (r_re[k], r_im[k]);
            let (mut sum_re, mut sum_im) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
            for (((re, im), (r_re, r_im)), (d_re, d_im)) in c_blocks.zip(r_blocks).zip(d_blocks) {
                for i in 0..BLOCK {
                    // the row as it is: d_k += C_kj r_j
                    sum_re[i] = re[i].fused::<FMA>(r_re[i], (-im[i]).fused::<FMA>(r_im[i], sum_re[i]));
                    sum_im[i] = re[i].fused::<FMA>(r_im[i], im[i].fused::<FMA>(r_re[i], sum_im[i]));
                    // and as a column: d_j += conj(C_kj) r_k
                    d_re[i] = re[i].fused::<FMA>(a, im[i].fused::<FMA>(b, d_re[i]));
                    d_im[i] = re[i].fused::<FMA>(b, (-im[i]).fused::<FMA>(a, d_im[i]));
                }
            }
            // The column already added the diagonal; take the row's share of it off.
            let diagonal = c_re[start + k];
            d_re[k] += sum_re.into_iter().sum::<T>() - diagonal * a;
            d_im[k] += sum_im.into_iter().sum::<T>() - diagonal * b;
            (start, k) = (start + len, k + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type C = Complex<f64>;

    /// Packs a Hermitian matrix.
    fn packed(k: usize, full: &[C]) -> Vec<f64> {
        let tri = triangle(k);
        let mut c = vec![0.0; 2 * tri];
        for (i, j) in (0..k).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            c[triangle(i) + j] = full[i * k + j].re;
            c[tri + triangle(i) + j] = full[i * k + j].im;
        }
        c
    }

    fn vector(k: usize, values: &[C]) -> Vec<f64> {
        let mut row = vec![0.0; row_len(k)];
        gather(&mut row, row_len(k), k, |filter, _| values[filter]);
        row
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// The packed kernels, as chosen for this machine and without fused operations, against full matrices.
    #[test]
    fn packed_kernels_are_the_plain_loops() {
        for k in [1, 2, 7, 8, 9, 16, 19] {
            let number = |i: usize| C::new((0.7 * (i + 1) as f64).sin(), (1.9 * (i + 1) as f64).cos());
            let r: Vec<C> = (0..k).map(|i| number(i + 500)).collect();
            // Positive definite: a diagonal and two rank-1 parts.
            let part = |i: usize, j: usize| number(i) * number(j).conj() + number(i + 90) * number(j + 90).conj();
            let full: Vec<C> =
                (0..k * k).map(|e| part(e / k, e % k) + if e / k == e % k { 2.0 } else { 0.0 }).collect();
            let product: Vec<C> = (0..k).map(|i| (0..k).map(|j| full[i * k + j] * r[j]).sum()).collect();
            let scale = 1.0 / (1.0 + r.iter().zip(&product).map(|(r, p)| (r.conj() * p).re).sum::<f64>());
            let reduced: Vec<C> =
                (0..k * k).map(|e| full[e] - product[e / k] * product[e % k].conj() * scale).collect();
            let x = C::new(0.3, -1.2);
            let cross: Vec<C> = r.iter().map(|r| x * r).collect();
            for fused in [true, false] {
                let (mut c, y) = (packed(k, &full), vector(k, &r));
                let (mut b, mut w) = (vec![0.0; row_len(k)], vec![7.0; row_len(k)]);
                add_scaled(&mut b, x, &y);
                let multiply = Multiply { c: &c, r: &y, d: &mut w };
                if fused {
                    dispatch(multiply)
                } else {
                    multiply.run::<false>()
                }
                assert!(close(&w, &vector(k, &product)), "K = {k}");
                let absorb = Absorb { c: &mut c, y: &y, w: &mut w };
                if fused {
                    dispatch(absorb)
                } else {
                    absorb.run::<false>()
                }
                assert!(close(&c, &packed(k, &reduced)) && close(&b, &vector(k, &cross)), "K = {k}");
            }
        }
    }
}
