//! Planned real Fourier transforms of 1-D, 2-D and 3-D maps on the half spectrum.
//!
//! A real map (depth D, height H, width W) has a Hermitian spectrum, of which the W/2+1 columns of non-negative
//! horizontal frequency are kept: `n_freqs` = D H (W/2+1) complex numbers. They are stored as (W/2+1, H, D), the order in
//! which the last one-dimensional transform leaves them; per-frequency algebra does not care, and a transposition
//! back is saved each way. Parseval on the half spectrum needs [`Fourier::weight`].
//!
//! Plan once, run many: transforms take a [`Scratch`] and allocate nothing. `_f` marks Fourier-domain arrays.

use crate::Real;
use crate::simd::{Kernel, dispatch};
use num_complex::Complex;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

/// Plans transforms of one map shape.
pub struct Fourier<T: Real> {
    shape: [usize; 3],
    n_columns: usize,
    row_forward: Arc<dyn RealToComplex<T>>,
    row_inverse: Arc<dyn ComplexToReal<T>>,
    /// Forward and inverse transforms along the height and the depth.
    height: [Arc<dyn Fft<T>>; 2],
    depth: [Arc<dyn Fft<T>>; 2],
    scratch_len: usize,
}

/// Holds the work memory of one transform at a time.
pub struct Scratch<T> {
    /// The spectrum before its columns are transformed, rows first (D H, W/2+1).
    rows: Vec<Complex<T>>,
    /// One row (W).
    line: Vec<T>,
    fft: Vec<Complex<T>>,
}

const FORWARD: usize = 0;
const INVERSE: usize = 1;

impl<T: Real> Fourier<T> {
    /// Plans for maps of shape (depth, height, width), each at least 1.
    pub fn new(shape: [usize; 3]) -> Self {
        let [d, h, w] = shape;
        let mut real = RealFftPlanner::new();
        let mut complex = FftPlanner::new();
        let row_forward = real.plan_fft_forward(w);
        let row_inverse = real.plan_fft_inverse(w);
        let mut both = |n| [complex.plan_fft_forward(n), complex.plan_fft_inverse(n)];
        let (height, depth) = (both(h), both(d));
        let scratch_len = [row_forward.get_scratch_len(), row_inverse.get_scratch_len()]
            .into_iter()
            .chain(height.iter().chain(&depth).map(|plan| plan.get_inplace_scratch_len()))
            .max()
            .unwrap_or(0);
        Fourier { shape, n_columns: w / 2 + 1, row_forward, row_inverse, height, depth, scratch_len }
    }

    /// Returns (depth, height, width).
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Returns the number of values in one map.
    pub fn n_pixels(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the number of values in one half spectrum.
    pub fn n_freqs(&self) -> usize {
        self.n_columns * self.shape[0] * self.shape[1]
    }

    /// Returns how often frequency `index` of the half spectrum stands in the full one: 1 or 2.
    pub fn weight(&self, index: usize) -> usize {
        let column = index / (self.shape[0] * self.shape[1]);
        if column == 0 || 2 * column == self.shape[2] { 1 } else { 2 }
    }

    /// Returns the inner product of two real maps, from their half spectra: Parseval.
    pub fn dot(&self, a_f: &[Complex<T>], b_f: &[Complex<T>]) -> f64 {
        let dot = |i: usize| a_f[i].re.f64() * b_f[i].re.f64() + a_f[i].im.f64() * b_f[i].im.f64();
        let sum: f64 = (0..self.n_freqs()).map(|i| self.weight(i) as f64 * dot(i)).sum();
        sum / self.n_pixels() as f64
    }

    /// Makes the work memory of one transform at a time.
    pub fn scratch(&self) -> Scratch<T> {
        let zero = Complex::new(T::zero(), T::zero());
        Scratch {
            rows: vec![zero; self.n_freqs()],
            line: vec![T::zero(); self.shape[2]],
            fft: vec![zero; self.scratch_len],
        }
    }

    /// Computes F, the half spectrum of a map.
    pub fn forward(&self, map: &[T], spectrum: &mut [Complex<T>], scratch: &mut Scratch<T>) {
        self.forward_padded(map, self.shape, spectrum, scratch);
    }

    /// Computes F of a small map (`corner`: its depth, height, width) after padding with zeros to the full shape.
    pub fn forward_padded(&self, map: &[T], corner: [usize; 3], spectrum: &mut [Complex<T>], scratch: &mut Scratch<T>) {
        let [_, h, _] = self.shape;
        let n = self.n_columns;
        if corner[0] * corner[1] < self.shape[0] * h {
            scratch.rows.fill(Complex::new(T::zero(), T::zero()));
        }
        for (row, values) in map.chunks_exact(corner[2]).enumerate() {
            let target = (row / corner[1]) * h + row % corner[1];
            scratch.line[..corner[2]].copy_from_slice(values);
            scratch.line[corner[2]..].fill(T::zero());
            let out = &mut scratch.rows[target * n..][..n];
            // Cannot fail: all lengths come from the plan.
            let _ = self.row_forward.process_with_scratch(&mut scratch.line, out, &mut scratch.fft);
        }
        transpose(&scratch.rows, spectrum, self.shape[0] * h, n);
        self.columns(spectrum, FORWARD, scratch);
    }

    /// Computes F^-1. Destroys the spectrum.
    pub fn inverse(&self, spectrum: &mut [Complex<T>], map: &mut [T], scratch: &mut Scratch<T>) {
        self.inverse_cropped(spectrum, self.shape, map, scratch);
    }

    /// Computes H F^-1, the first (depth, height, width) = `corner` numbers of the inverse transform. Destroys the spectrum.
    pub fn inverse_cropped(
        &self,
        spectrum: &mut [Complex<T>],
        corner: [usize; 3],
        map: &mut [T],
        scratch: &mut Scratch<T>,
    ) {
        self.inverse_unscaled(spectrum, corner, map, scratch);
        let scale = T::of(1.0 / self.n_pixels() as f64);
        map.iter_mut().for_each(|v| *v *= scale);
    }

    /// Computes [`Fourier::inverse_cropped`] times the number of pixels, for callers that put the factor elsewhere.
    pub fn inverse_unscaled(
        &self,
        spectrum: &mut [Complex<T>],
        corner: [usize; 3],
        map: &mut [T],
        scratch: &mut Scratch<T>,
    ) {
        let [d, h, w] = self.shape;
        let n = self.n_columns;
        self.columns(spectrum, INVERSE, scratch);
        transpose(spectrum, &mut scratch.rows, n, d * h);
        for (row, values) in map.chunks_exact_mut(corner[2]).enumerate() {
            let source = (row / corner[1]) * h + row % corner[1];
            let line_f = &mut scratch.rows[source * n..][..n];
            // Real in exact arithmetic; the transform refuses rounding errors there.
            line_f[0].im = T::zero();
            if w % 2 == 0 {
                line_f[n - 1].im = T::zero();
            }
            if corner[2] == w {
                let _ = self.row_inverse.process_with_scratch(line_f, values, &mut scratch.fft);
            } else {
                let _ = self.row_inverse.process_with_scratch(line_f, &mut scratch.line, &mut scratch.fft);
                values.copy_from_slice(&scratch.line[..corner[2]]);
            }
        }
    }

    /// The transforms along height and depth: (W/2+1, D, H) to (W/2+1, H, D), or back.
    fn columns(&self, spectrum: &mut [Complex<T>], direction: usize, scratch: &mut Scratch<T>) {
        let [d, h, _] = self.shape;
        if direction == INVERSE && d > 1 {
            self.depth[direction].process_with_scratch(spectrum, &mut scratch.fft);
            swap_planes(spectrum, h, d, &mut scratch.rows);
        }
        if h > 1 {
            self.height[direction].process_with_scratch(spectrum, &mut scratch.fft);
        }
        if direction == FORWARD && d > 1 {
            swap_planes(spectrum, d, h, &mut scratch.rows);
            self.depth[direction].process_with_scratch(spectrum, &mut scratch.fft);
        }
    }

    /// Computes [`Fourier::forward_padded`] of many maps, with threads over maps: (maps, corner) to (maps, n_freqs).
    pub fn forward_many(&self, maps: &[T], corner: [usize; 3], spectra: &mut [Complex<T>], scratch: &mut [Scratch<T>]) {
        let (len, freqs) = (corner.iter().product::<usize>(), self.n_freqs());
        let part = (maps.len() / len).div_ceil(scratch.len()).max(1);
        spectra.par_chunks_mut(part * freqs).zip(maps.par_chunks(part * len)).zip(scratch.par_iter_mut()).for_each(
            |((spectra, maps), scratch)| {
                for (spectrum, map) in spectra.chunks_exact_mut(freqs).zip(maps.chunks_exact(len)) {
                    self.forward_padded(map, corner, spectrum, scratch);
                }
            },
        );
    }

    /// Computes [`Fourier::inverse_cropped`] of many maps, with threads over maps. Destroys the spectra.
    pub fn inverse_many(
        &self,
        spectra: &mut [Complex<T>],
        corner: [usize; 3],
        maps: &mut [T],
        scratch: &mut [Scratch<T>],
    ) {
        let (len, freqs) = (corner.iter().product::<usize>(), self.n_freqs());
        let part = (maps.len() / len).div_ceil(scratch.len()).max(1);
        spectra.par_chunks_mut(part * freqs).zip(maps.par_chunks_mut(part * len)).zip(scratch.par_iter_mut()).for_each(
            |((spectra, maps), scratch)| {
                for (spectrum, map) in spectra.chunks_exact_mut(freqs).zip(maps.chunks_exact_mut(len)) {
                    self.inverse_cropped(spectrum, corner, map, scratch);
                }
            },
        );
    }
}

/// Copies (rows, columns) to (columns, rows), in blocks that stay in cache lines.
fn transpose<T: Copy>(from: &[T], to: &mut [T], rows: usize, columns: usize) {
    const BLOCK: usize = 8;
    for r0 in (0..rows).step_by(BLOCK) {
        for c0 in (0..columns).step_by(BLOCK) {
            for c in c0..(c0 + BLOCK).min(columns) {
                for r in r0..(r0 + BLOCK).min(rows) {
                    to[c * rows + r] = from[r * columns + c];
                }
            }
        }
    }
}

/// Transposes each (rows, columns) plane of a stack in place.
fn swap_planes<T: Copy>(stack: &mut [T], rows: usize, columns: usize, work: &mut [T]) {
    for plane in stack.chunks_exact_mut(rows * columns) {
        let copy = &mut work[..plane.len()];
        copy.copy_from_slice(plane);
        transpose(copy, plane, rows, columns);
    }
}

/// out <- sum_c conj(a_c) b_c, for as many channels as there are spectra.
pub(crate) fn conjugate_product<T: Real>(out: &mut [Complex<T>], a: &[Complex<T>], b: &[Complex<T>]) {
    dispatch(ConjugateProduct { out, a, b });
}

struct ConjugateProduct<'a, T> {
    out: &'a mut [Complex<T>],
    a: &'a [Complex<T>],
    b: &'a [Complex<T>],
}

impl<T: Real> Kernel for ConjugateProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for ((out, a), b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            out.re = a.re.fused::<FMA>(b.re, a.im * b.im);
            out.im = a.re.fused::<FMA>(b.im, -(a.im * b.re));
        }
        let n = self.out.len();
        for (a, b) in self.a.chunks_exact(n).zip(self.b.chunks_exact(n)).skip(1) {
            for ((out, a), b) in self.out.iter_mut().zip(a).zip(b) {
                out.re = a.re.fused::<FMA>(b.re, a.im.fused::<FMA>(b.im, out.re));
                out.im = a.re.fused::<FMA>(b.im, (-a.im).fused::<FMA>(b.re, out.im));
            }
        }
    }
}
