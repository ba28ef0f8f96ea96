//! The small system that a frequency leaves when the K maps are eliminated (Woodbury).
//!
//! At one frequency, with the C x K matrix of the filters' spectra, D = (d_ck),
//!
//! ```text
//! (D^H D + rho I)^-1 (D^H x + rho w) = w + D^H g,      (G + rho I) g = x - D w,      G = D D^H
//! ```
//!
//! so a system of the K filters becomes one of the C channels: Hermitian, positive definite, and for one channel a
//! division by rho + sum_k |d_k|^2. It is factored as L E L^H with ones on the diagonal of L, once for every rho.
//!
//! **Storage.** One plane of `n_freqs` numbers per entry of the lower triangle, so that every step below is a loop over
//! the frequencies.

use crate::Real;
use crate::simd::{Kernel, dispatch};
use num_complex::Complex;
use rayon::prelude::*;

/// G at every frequency, and its factors at one rho.
pub(super) struct Gram<T> {
    freqs: usize,
    /// The diagonal of G, (C, n_freqs): sum_k |d_ck|^2.
    diagonal: Vec<T>,
    /// G below its diagonal, (C (C - 1) / 2, n_freqs): G_10, G_20, G_21, ...
    below: Vec<Complex<T>>,
    /// E, (C, n_freqs), and L below its diagonal, as `below`.
    pivots: Vec<T>,
    lower: Vec<Complex<T>>,
    /// The rho of the factors, if there are any yet.
    rho: Option<T>,
}

/// Where row c starts below the diagonal, in planes.
fn row(c: usize) -> usize {
    c * c.saturating_sub(1) / 2
}

impl<T: Real> Gram<T> {
    pub(super) fn new(channels: usize, freqs: usize) -> Self {
        let below = vec![Complex::new(T::zero(), T::zero()); row(channels) * freqs];
        let diagonal = vec![T::zero(); channels * freqs];
        Gram { freqs, pivots: diagonal.clone(), diagonal, lower: below.clone(), below, rho: None }
    }

    /// G of filters with spectra `d_f`, (K, C, n_freqs).
    pub(super) fn set(&mut self, d_f: &[Complex<T>]) {
        let (freqs, channels) = (self.freqs, self.diagonal.len() / self.freqs);
        let filters = || d_f.chunks_exact(channels * freqs);
        self.diagonal.par_chunks_mut(freqs).enumerate().for_each(|(c, power)| {
            power.fill(T::zero());
            for d in filters() {
                power.iter_mut().zip(&d[c * freqs..]).for_each(|(power, d)| *power += d.norm_sqr());
            }
        });
        let entries: Vec<(usize, usize)> = (0..channels).flat_map(|c| (0..c).map(move |e| (c, e))).collect();
        self.below.par_chunks_mut(freqs).zip(entries).for_each(|(entry, (c, e))| {
            entry.fill(Complex::new(T::zero(), T::zero()));
            filters().for_each(|d| add_conjugate(entry, &d[e * freqs..], &d[c * freqs..], T::one()));
        });
        self.rho = None;
    }

    /// G + rho I = L E L^H, row by row: with M = L E,
    ///
    /// ```text
    /// M_ce = G_ce - sum_j<e M_cj conj(L_ej),      E_c = rho + G_cc - sum_j<c |M_cj|^2 / E_j
    /// ```
    pub(super) fn factor(&mut self, rho: T) {
        if self.rho == Some(rho) {
            return;
        }
        let freqs = self.freqs;
        self.lower.copy_from_slice(&self.below);
        for (c, diagonal) in self.diagonal.chunks_exact(freqs).enumerate() {
            let (rows, rest) = self.lower.split_at_mut(row(c) * freqs);
            let (pivots, pivot) = self.pivots.split_at_mut(c * freqs);
            let m = &mut rest[..c * freqs];
            for e in 0..c {
                let (before, entry) = m.split_at_mut(e * freqs);
                let l = rows[row(e) * freqs..].chunks_exact(freqs);
                for (l, m) in l.zip(before.chunks_exact(freqs)) {
                    add_conjugate(&mut entry[..freqs], l, m, -T::one());
                }
            }
            pivot.iter_mut().zip(diagonal).for_each(|(pivot, g)| *pivot = rho + *g);
            for (m, e) in m.chunks_exact_mut(freqs).zip(pivots.chunks_exact(freqs)) {
                for ((m, e), pivot) in m.iter_mut().zip(e).zip(&mut *pivot) {
                    // At least rho, as it is without rounding.
                    *pivot = rho.at_least(*pivot - m.norm_sqr() / *e);
                    *m = m.unscale(*e);
                }
            }
        }
        self.rho = Some(rho);
    }

    /// r <- scale (G + rho I)^-1 r, (C, n_freqs), with the rho of the last [`Gram::factor`].
    pub(super) fn solve(&self, r: &mut [Complex<T>], scale: T) {
        let freqs = self.freqs;
        let channels = r.len() / freqs;
        for c in 1..channels {
            let (before, r) = r.split_at_mut(c * freqs);
            for (l, y) in self.lower[row(c) * freqs..].chunks_exact(freqs).zip(before.chunks_exact(freqs)) {
                add(&mut r[..freqs], l, y, -T::one());
            }
        }
        r.iter_mut().zip(&self.pivots).for_each(|(r, pivot)| *r = r.scale(scale / *pivot));
        for c in (0..channels).rev() {
            let (r, after) = r.split_at_mut((c + 1) * freqs);
            for (e, g) in (c + 1..).zip(after.chunks_exact(freqs)) {
                add_conjugate(&mut r[c * freqs..], &self.lower[(row(e) + c) * freqs..], g, -T::one());
            }
        }
    }

    /// out <- G g / scale, (C, n_freqs).
    pub(super) fn multiply(&self, g: &[Complex<T>], scale: T, out: &mut [Complex<T>]) {
        let freqs = self.freqs;
        out.iter_mut().zip(g).zip(&self.diagonal).for_each(|((out, g), power)| *out = g.scale(*power / scale));
        for c in 0..g.len() / freqs {
            for (e, entry) in self.below[row(c) * freqs..].chunks_exact(freqs).enumerate().take(c) {
                add(&mut out[c * freqs..][..freqs], entry, &g[e * freqs..], T::one() / scale);
                add_conjugate(&mut out[e * freqs..][..freqs], entry, &g[c * freqs..], T::one() / scale);
            }
        }
    }
}

/// out <- out + factor a b, as long as the shortest.
fn add<T: Real>(out: &mut [Complex<T>], a: &[Complex<T>], b: &[Complex<T>], factor: T) {
    dispatch(AddProduct { out, a, b, factor: [factor, factor] });
}

/// out <- out + factor conj(a) b, as long as the shortest.
fn add_conjugate<T: Real>(out: &mut [Complex<T>], a: &[Complex<T>], b: &[Complex<T>], factor: T) {
    dispatch(AddProduct { out, a, b, factor: [factor, -factor] });
}

/// out <- out + (a, its real and imaginary parts scaled) b.
struct AddProduct<'a, T> {
    out: &'a mut [Complex<T>],
    a: &'a [Complex<T>],
    b: &'a [Complex<T>],
    factor: [T; 2],
}

impl<T: Real> Kernel for AddProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for ((out, a), b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            let (re, im) = (self.factor[0] * a.re, self.factor[1] * a.im);
            out.re = re.fused::<FMA>(b.re, (-im).fused::<FMA>(b.im, out.re));
            out.im = re.fused::<FMA>(b.im, im.fused::<FMA>(b.re, out.im));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type C = Complex<f64>;

    /// What solves, multiplied by what was solved, is the right side; and the product is that of the definition.
    #[test]
    fn solves_the_system_of_the_filters() {
        for (channels, filters, freqs, rho) in [(1, 4, 5, 0.3), (2, 7, 3, 1e-3), (3, 2, 4, 0.1), (5, 9, 1, 2.0)] {
            let number = |i: usize| C::new((0.7 * (i + 1) as f64).sin(), (1.9 * (i + 1) as f64).cos());
            let d: Vec<C> = (0..filters * channels * freqs).map(number).collect();
            let r: Vec<C> = (0..channels * freqs).map(|i| number(i + 700)).collect();
            let mut gram = Gram::new(channels, freqs);
            // What another dictionary and another rho left must not matter.
            gram.set(&d.iter().map(|d| d * 3.0).collect::<Vec<_>>());
            gram.factor(rho);
            gram.set(&d);
            gram.factor(9.0);
            gram.factor(rho);
            let (mut g, mut product) = (r.clone(), vec![C::new(7.0, 7.0); r.len()]);
            gram.solve(&mut g, 0.25);
            gram.multiply(&g, 0.25, &mut product);
            for i in 0..r.len() {
                let (c, f) = (i / freqs, i % freqs);
                let d = |k: usize, c: usize| d[(k * channels + c) * freqs + f];
                let entry = |e: usize| (0..filters).map(|k| d(k, c) * d(k, e).conj()).sum::<C>();
                let expected: C = (0..channels).map(|e| entry(e) * g[e * freqs + f] / 0.25).sum();
                assert!((product[i] - expected).norm() < 1e-10, "{channels} channels");
                assert!((product[i] + g[i] / 0.25 * rho - r[i]).norm() < 1e-10, "{channels} channels");
            }
        }
    }

    /// The loop as chosen for this machine and without fused operations.
    #[test]
    fn products_are_the_plain_ones() {
        let number = |i: usize| C::new((0.7 * (i + 1) as f64).sin(), (1.9 * (i + 1) as f64).cos());
        let [a, b, start] = [0, 100, 200].map(|from| (from..from + 19).map(number).collect::<Vec<_>>());
        for conjugate in [false, true] {
            let factor = [-0.7, if conjugate { 0.7 } else { -0.7 }];
            let (mut fast, mut plain) = (start.clone(), start.clone());
            dispatch(AddProduct { out: &mut fast, a: &a, b: &b, factor });
            AddProduct { out: &mut plain, a: &a, b: &b, factor }.run::<false>();
            for i in 0..start.len() {
                let expected = start[i] - 0.7 * if conjugate { a[i].conj() } else { a[i] } * b[i];
                assert!((fast[i] - expected).norm() < 1e-14 && (plain[i] - expected).norm() < 1e-14);
            }
        }
    }
}
