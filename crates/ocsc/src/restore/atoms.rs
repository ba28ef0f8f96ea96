//! The filters that patches are coded with: of unit norm, without a mean in any channel.

use super::signal;
use crate::dot::dot;
use crate::{Dictionary, Error, Result, Shape};

/// Filters of which less than this is left without their means say nothing that the means do not.
const LEAST_NORM: f32 = 1e-3;

/// K filters of n values each, with what a pursuit asks of them.
#[derive(Clone, Debug)]
pub(super) struct Atoms {
    pub(super) shape: Shape,
    /// (filter, value).
    pub(super) filters: Vec<f32>,
    /// (value, filter).
    pub(super) transposed: Vec<f32>,
    /// (filter, filter): inner products.
    pub(super) gram: Vec<f32>,
}

impl Atoms {
    /// Takes the means out of filters (filter, value), scales them to norm 1 and leaves out those that are nothing then.
    pub(super) fn new(shape: Shape, filters: &[f32]) -> Result<Self> {
        let mut kept = Vec::with_capacity(filters.len());
        for filter in filters.chunks_exact(shape.len()) {
            let mut filter = filter.to_vec();
            if normalise(&mut filter, shape.pixels()) {
                kept.extend(filter);
            }
        }
        if kept.is_empty() {
            return Err(Error::invalid("dictionary", "a filter that is not constant", "none"));
        }
        let mut atoms = Atoms { shape, filters: kept, transposed: Vec::new(), gram: Vec::new() };
        atoms.prepare();
        Ok(atoms)
    }

    /// Returns K.
    pub(super) fn len(&self) -> usize {
        self.filters.len() / self.shape.len()
    }

    /// Returns filter `k`.
    pub(super) fn filter(&self, k: usize) -> &[f32] {
        &self.filters[k * self.shape.len()..][..self.shape.len()]
    }

    /// Computes again what depends on the filters.
    pub(super) fn prepare(&mut self) {
        let (n, k) = (self.shape.len(), self.len());
        self.transposed = (0..n * k).map(|i| self.filters[i % k * n + i / k]).collect();
        let mut gram = vec![0.0; k * k];
        for i in 0..k {
            for j in 0..=i {
                let product = dot(self.filter(i), self.filter(j));
                gram[i * k + j] = product;
                gram[j * k + i] = product;
            }
        }
        self.gram = gram;
    }

    /// Returns them as a dictionary, of images or of signals.
    pub(super) fn to_dictionary(&self) -> Result<Dictionary<f32>> {
        let data: Vec<f64> = self.filters.iter().map(|v| f64::from(*v)).collect();
        let (shape, rank) =
            if signal::is_column(self.shape) { (signal::turned(self.shape), 1) } else { (self.shape, 2) };
        Ok(Dictionary::scaled(self.len(), shape, rank, &data)?.0)
    }
}

/// Takes the mean out of each channel of `area` values and scales the filter to norm 1; false if nothing is left of it.
pub(super) fn normalise(filter: &mut [f32], area: usize) -> bool {
    for channel in filter.chunks_exact_mut(area) {
        let mean = channel.iter().sum::<f32>() / area as f32;
        channel.iter_mut().for_each(|v| *v -= mean);
    }
    let norm = filter.iter().map(|v| v * v).sum::<f32>().sqrt();
    if norm.is_nan() || norm < LEAST_NORM {
        return false;
    }
    filter.iter_mut().for_each(|v| *v /= norm);
    true
}
