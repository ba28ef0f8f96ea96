//! OCDL2's dictionary update: the history in the frequency domain as a sparse matrix, and FISTA.
//!
//! With the spectra of all filters as one vector d of K P numbers, a sample is Z_i d with Z_i = [Diag(z_i1), ..., Diag(z_iK)]
//! (eq. `ocdl2`), and the history is
//!
//! ```text
//! A = sum_i Z_i^H Z_i   (K P x K P, K non-zeros in every row),        b = sum_i Z_i^H x_i   (K P)
//! min over D   1/2P ( d^H A d - 2 Re d^H b ),   d = F D,    with ||D_k||_2 <= 1                    FISTA (`fista.rs`)
//! ```
//!
//! A is kept in compressed rows (CSR), every number with its column, as published: one and a half times to twice the memory of the
//! same blocks without columns, and twice that again since both triangles are kept, against the packed triangles of
//! [`Spectral`](crate::statistics::Spectral). The half spectrum is enough, and rows are ordered by frequency, so that a
//! product reads neighbouring numbers.
//!
//! **Cost** K^2 P to absorb and per iteration, and 2 K C transforms; memory K^2 P.
//!
//! Reference: Liu, Garcia-Cardona, Wohlberg, Yin, "Online convolutional dictionary learning", ICIP 2017.

use super::fista::{Quadratic, minimise};
use super::{Update, Updated};
use crate::state::State;
use crate::statistics::plausible::norms;
use crate::statistics::{Spectra, n_freqs};
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Error, Real, Result, Sample, Scratch, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Updates the dictionary as OCDL2 does.
pub struct Ocdl2<T: Real> {
    config: UpdateConfig,
    plan: Option<SparseStatistics<T>>,
    lipschitz: T,
}

/// Everything that depends on the samples' shape.
struct SparseStatistics<T: Real> {
    history: SparseGram<T>,
    /// The spectra of b, (K, C, n_freqs).
    cross_f: Vec<Complex<T>>,
}

/// A in compressed rows; row (p, k) has the columns (p, l) for all filters l.
struct SparseGram<T: Real> {
    spectra: Spectra<T>,
    filter: Shape,
    n_filters: usize,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<Complex<T>>,
    /// Spectra in map order, (K, C, n_freqs), and in the matrix's, (C, n_freqs, K).
    maps: Vec<Complex<T>>,
    vector: Vec<Complex<T>>,
    scratch: Vec<Scratch<T>>,
}

impl<T: Real> Ocdl2<T> {
    /// Makes an update without history; it takes the shape of the first sample.
    pub fn new(config: UpdateConfig) -> Self {
        Ocdl2 { config, plan: None, lipschitz: T::zero() }
    }
}

impl<T: Real> SparseGram<T> {
    fn new(dictionary: &Dictionary<T>, shape: Shape) -> Result<Self> {
        let k = dictionary.n_filters();
        let filter = dictionary.shape();
        let spectra = Spectra::new(dictionary.n_filters(), shape);
        let freqs = spectra.fourier.n_freqs();
        if u32::try_from(freqs.saturating_mul(k)).is_err() {
            let found = format!("{k} filters on {shape}");
            return Err(Error::invalid("history", "at most 2^32 rows", found));
        }
        let zero = Complex::new(T::zero(), T::zero());
        Ok(SparseGram {
            filter,
            n_filters: k,
            starts: (0..=freqs * k).map(|row| row * k).collect(),
            columns: (0..freqs * k * k).map(|i| (i / (k * k) * k + i % k) as u32).collect(),
            values: vec![zero; freqs * k * k],
            maps: vec![zero; k * filter.channels * freqs],
            vector: vec![zero; k * filter.channels * freqs],
            scratch: (0..k.min(16)).map(|_| spectra.fourier.scratch()).collect(),
            spectra,
        })
    }

    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, cross_f: &mut [Complex<T>]) -> Result<()> {
        self.spectra.check(sample, code)?;
        self.spectra.transform(sample, code);
        let (k, freqs, channels) = (self.n_filters, self.spectra.fourier.n_freqs(), self.filter.channels);
        let (z_f, x_f) = (&self.spectra.z_f, &self.spectra.x_f);
        self.values.par_chunks_exact_mut(k * k).enumerate().for_each(|(p, block)| {
            let z: Vec<Complex<T>> = (0..k).map(|filter| z_f[filter * freqs + p]).collect();
            for (row, y) in block.chunks_exact_mut(k).zip(&z) {
                row.iter_mut().zip(&z).for_each(|(a, z)| *a += y.conj() * z);
            }
        });
        cross_f.par_chunks_exact_mut(freqs).enumerate().for_each(|(i, b)| {
            let (z, x) = (&z_f[i / channels * freqs..], &x_f[i % channels * freqs..]);
            b.iter_mut().zip(z).zip(x).for_each(|((b, z), x)| *b += x * z.conj());
        });
        Ok(())
    }
}

/// Refuses matrices (K, K), one per frequency, of inner products that no spectra have.
fn check_hermitian<T: Real>(k: usize, values: &[Complex<T>]) -> Result<()> {
    values.par_chunks_exact(k * k).try_for_each(|block| {
        let energies: Vec<f64> = (0..k).map(|i| block[i * k + i].re.f64()).collect();
        let norms = norms::<T>("history", &energies)?;
        block
            .iter()
            .enumerate()
            .try_for_each(|(i, v)| norms.check("history", [i / k, i % k], std::iter::once(v.norm_sqr().f64().sqrt())))
    })
}

impl<T: Real> Quadratic<T> for SparseGram<T> {
    fn multiply(&mut self, d: &[T], out: &mut [T]) {
        let (k, channels, corner) = (self.n_filters, self.filter.channels, self.filter.spatial());
        let fourier = &self.spectra.fourier;
        let freqs = fourier.n_freqs();
        fourier.forward_many(d, corner, &mut self.maps, &mut self.scratch);
        let maps = &self.maps;
        self.vector.par_chunks_exact_mut(freqs * k).enumerate().for_each(|(c, vector)| {
            for (i, v) in vector.iter_mut().enumerate() {
                *v = maps[(i % k * channels + c) * freqs + i / k];
            }
        });
        let (vector, values, columns, starts) = (&self.vector, &self.values, &self.columns, &self.starts);
        // Map by map, so that products land where the transforms want them; a frequency's block stays in the cache.
        let rows: Vec<Complex<T>> = (0..freqs)
            .into_par_iter()
            .flat_map_iter(|p| {
                (0..k * channels).map(move |i| {
                    let (row, c) = (p * k + i / channels, i % channels);
                    let entries = values[starts[row]..starts[row + 1]].iter().zip(&columns[starts[row]..]);
                    entries.map(|(a, column)| a * vector[c * freqs * k + *column as usize]).sum()
                })
            })
            .collect();
        self.maps.par_chunks_exact_mut(freqs).enumerate().for_each(|(i, map)| {
            map.iter_mut().enumerate().for_each(|(p, v)| *v = rows[p * k * channels + i]);
        });
        fourier.inverse_many(&mut self.maps, corner, out, &mut self.scratch);
    }
}

impl<T: Real> Update<T> for Ocdl2<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        sample.check_whole()?;
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => {
                let history = SparseGram::new(dictionary, sample.shape())?;
                SparseStatistics { cross_f: vec![Complex::new(T::zero(), T::zero()); history.maps.len()], history }
            }
        };
        let plan = self.plan.insert(plan);
        plan.history.absorb(sample, code, &mut plan.cross_f)
    }

    fn forget(&mut self) {
        (self.plan, self.lipschitz) = (None, T::zero());
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let Some(plan) = &mut self.plan else { return Updated::default() };
        let history = &mut plan.history;
        let mut b = vec![T::zero(); dictionary.data().len()];
        history.maps.copy_from_slice(&plan.cross_f);
        let (fourier, corner) = (&history.spectra.fourier, dictionary.shape().spatial());
        fourier.inverse_many(&mut history.maps, corner, &mut b, &mut history.scratch);
        minimise(history, &b, dictionary, &mut self.lipschitz, &self.config, true)
    }

    fn state(&self) -> State<'_> {
        let Some(plan) = &self.plan else { return State::default() };
        State::default()
            .with::<T>("history", bytemuck::cast_slice(&plan.history.values))
            .with::<T>("cross", bytemuck::cast_slice(&plan.cross_f))
            .with_owned("lipschitz", vec![self.lipschitz])
            .with_shapes("sample_shape", [plan.history.spectra.shape()])
    }

    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let shape = state.shape("sample_shape")?;
        dictionary.check_sample_shape(shape)?;
        // Before anything is allocated for a shape that a damaged file made up.
        let k = dictionary.n_filters();
        state.check_len("history", n_freqs(shape).saturating_mul(k).saturating_mul(k).saturating_mul(2))?;
        let mut history = SparseGram::new(dictionary, shape)?;
        let mut cross_f = history.maps.clone();
        state.copy_array::<T>("history", bytemuck::cast_slice_mut(&mut history.values))?;
        state.copy_array::<T>("cross", bytemuck::cast_slice_mut(&mut cross_f))?;
        self.lipschitz = state.step_bound()?;
        check_hermitian(k, &history.values)?;
        self.plan = Some(SparseStatistics { history, cross_f });
        Ok(())
    }
}
