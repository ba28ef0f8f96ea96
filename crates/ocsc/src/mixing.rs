//! Filters of a sample's own, written as combinations of a few filters of the dictionary.
//!
//! ```text
//! D_ik = sum_r D_{b(r)} W_i(k, r)
//! ```
//!
//! The filters of a dictionary of rank R are combinations of R of them, b(1) to b(R) (`span.rs`), and so are those of a sample that lie
//! in their span. W_i has K R numbers, where the filters themselves have K M: for R = 10 and M = 121 a twelfth.

use crate::text::counted;
use crate::{Dictionary, Error, Real, Result};

/// Says how filters are combined of filters of a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    base: Vec<usize>,
    weights: Vec<f64>,
}

impl Mixing {
    /// Takes b, the numbers of R filters of a dictionary, and W, (K, R).
    pub fn new(base: Vec<usize>, weights: Vec<f64>) -> Result<Self> {
        if base.is_empty() || weights.is_empty() || !weights.len().is_multiple_of(base.len()) {
            let expected = format!("as many weights for every filter as base filters, {}", base.len());
            return Err(Error::invalid("mixing", expected, weights.len()));
        }
        if let Some(weight) = weights.iter().find(|weight| !weight.is_finite()) {
            return Err(Error::invalid("mixing", "finite weights", weight));
        }
        Ok(Mixing { base, weights })
    }

    /// Returns b.
    pub fn base(&self) -> &[usize] {
        &self.base
    }

    /// Returns W, (K, R).
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns the filters that are combined of a dictionary's, rounded to its scalar and of norm at most 1.
    pub fn filters<T: Real>(&self, dictionary: &Dictionary<T>) -> Result<Dictionary<T>> {
        let (k, len) = (dictionary.n_filters(), dictionary.shape().len());
        if let Some(wrong) = self.base.iter().find(|b| **b >= k) {
            return Err(Error::invalid("base", format!("numbers of filters below {k}"), wrong));
        }
        if self.weights.len() != k * self.base.len() {
            let found = counted(self.weights.len() / self.base.len(), "filter");
            return Err(Error::invalid("mixing", format!("weights of {}", counted(k, "filter")), found));
        }
        let mut filters = dictionary.clone();
        for (filter, weights) in
            filters.data_mut().chunks_exact_mut(len).zip(self.weights.chunks_exact(self.base.len()))
        {
            let mut taps = vec![0.0; len];
            for (b, weight) in self.base.iter().zip(weights) {
                taps.iter_mut().zip(dictionary.filter(*b)).for_each(|(tap, d)| *tap += weight * d.f64());
            }
            filter.iter_mut().zip(taps).for_each(|(f, tap)| *f = T::of(tap));
        }
        filters.project();
        match filters.data().iter().find(|v| !v.is_finite()) {
            Some(v) => Err(Error::invalid("mixing", "weights of finite filters", v)),
            None => Ok(filters),
        }
    }
}
