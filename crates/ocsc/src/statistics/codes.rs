//! All codes themselves, in the frequency domain: what the batch methods update the dictionary from.
//!
//! With y_i(p) = conj(z_i(p)), a vector over the K filters for every sample i and frequency p, the matrices of the paper are
//!
//! ```text
//! A^p = sum_i y_i y_i^H,      b^p = sum_i x_i y_i         (for every channel)
//! ```
//!
//! and the methods differ in how they solve with A^p + rho I without or with forming it.
//!
//! **Storage.** N K P numbers (half spectra of complex ones), in tiles of a few frequencies, so that threads share them
//! out; within a tile (sample, frequency, filter).

use super::filter_order::{Spectra, TILE, add_scaled, gather, n_freqs, row_len};
use crate::{Code, Fourier, Real, Result, Sample, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Holds the spectra of N codes and of their samples.
pub struct Codes<T: Real> {
    n_filters: usize,
    n: usize,
    spectra: Spectra<T>,
    /// y_i, (N, frequencies of the tile, 2, padded K) in each tile.
    pub(crate) tiles: Vec<Vec<T>>,
    /// Spectra of the samples, (N, C, n_freqs).
    pub(crate) x_f: Vec<Complex<T>>,
}

impl<T: Real> Codes<T> {
    /// Starts without codes, for samples of one shape.
    pub fn new(n_filters: usize, shape: Shape) -> Self {
        let spectra = Spectra::new(n_filters, shape);
        let tiles = vec![Vec::new(); spectra.fourier.n_freqs().div_ceil(TILE)];
        Codes { n_filters, n: 0, spectra, tiles, x_f: Vec::new() }
    }

    /// Returns the bytes that the spectra of `n_samples` samples and their codes take.
    pub fn bytes(n_filters: usize, shape: Shape, n_samples: usize) -> usize {
        let numbers = row_len(n_filters).saturating_add(2 * shape.channels).saturating_mul(n_freqs(shape));
        numbers.saturating_mul(n_samples).saturating_mul(size_of::<T>())
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns the samples' shape.
    pub fn shape(&self) -> Shape {
        self.spectra.shape()
    }

    /// Returns the number of filters.
    pub fn n_filters(&self) -> usize {
        self.n_filters
    }

    pub(crate) fn fourier(&self) -> &Fourier<T> {
        &self.spectra.fourier
    }

    /// Forgets all of them, but keeps the memory.
    pub fn clear(&mut self) {
        self.n = 0;
        self.tiles.iter_mut().for_each(Vec::clear);
        self.x_f.clear();
    }

    /// Adds one sample with its code.
    pub fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>) -> Result<()> {
        self.spectra.check(sample, code)?;
        self.spectra.transform(sample, code);
        let (k, freqs, row) = (self.n_filters, self.fourier().n_freqs(), row_len(self.n_filters));
        let z_f = &self.spectra.z_f;
        self.tiles.par_iter_mut().enumerate().for_each(|(tile, rows)| {
            let (old, first) = (rows.len(), tile * TILE);
            rows.resize(old + TILE.min(freqs - first) * row, T::zero());
            gather(&mut rows[old..], row, k, |filter, i| z_f[filter * freqs + first + i].conj());
        });
        self.x_f.extend_from_slice(&self.spectra.x_f);
        self.n += 1;
        Ok(())
    }

    /// b^p, (n_freqs, C, 2, padded K), for samples with these spectra, (N, C, n_freqs).
    pub(crate) fn cross(&self, x_f: &[Complex<T>], cross: &mut [T]) {
        let (freqs, channels, row) = (self.fourier().n_freqs(), self.shape().channels, row_len(self.n_filters));
        cross.par_chunks_mut(TILE * channels * row).zip(&self.tiles).enumerate().for_each(|(tile, (cross, rows))| {
            cross.fill(T::zero());
            let len = cross.len() / (channels * row);
            for (i, sample) in rows.chunks_exact(len * row).enumerate() {
                for (f, y) in sample.chunks_exact(row).enumerate() {
                    for (c, b) in cross[f * channels * row..].chunks_exact_mut(row).take(channels).enumerate() {
                        add_scaled(b, x_f[(i * channels + c) * freqs + tile * TILE + f], y);
                    }
                }
            }
        });
    }
}
