//! The dictionary D: K small filters of one shape, each of Euclidean norm at most 1.

use crate::digest::hex;
use crate::text::counted;
use crate::{Error, Real, Result, Samples, Shape, random, system};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use sha2::{Digest, Sha256};

/// Slack on the unit norm for filters that were rounded on their way through a file.
const NORM_SLACK: f64 = 1e-4;

/// How far from 1 a norm may be that was meant to be 1.
const UNIT_SLACK: f64 = 1e-3;

/// What speaks for filters that are the last axis of an array, as SPORCO has them, (spatial axes..., K), and not the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FiltersLast {
    /// Along the last axis all norms are 1, and along the first they are not. Hardly any array is so by chance.
    Norms,
    /// No norms tell, but read with filters last they have equal sides, and read with filters first there are as many as one side is
    /// long, and the sides differ. That may be meant so.
    Sides,
}

/// Returns what speaks for filters being the last axis of an array that is read as (K, C, spatial axes...), of `rank` spatial axes.
pub fn filters_last(n_filters: usize, shape: Shape, rank: usize, data: &[f64]) -> Option<FiltersLast> {
    let (mut first, mut last) = (vec![0.0; n_filters], vec![0.0; shape.width]);
    for (i, v) in data.iter().enumerate().take(n_filters.saturating_mul(shape.len())) {
        first[i / shape.len()] += v * v;
        last[i % shape.width] += v * v;
    }
    let are_one = |squares: &[f64]| squares.iter().all(|square| (square.sqrt() - 1.0).abs() < UNIT_SLACK);
    let axes = shape.axes(rank);
    let (width, sides) = axes.split_last()?;
    match (are_one(&first), are_one(&last)) {
        (false, true) if n_filters > 1 => Some(FiltersLast::Norms),
        (false, false) => {
            let has_sides = !sides.is_empty() && shape.channels == 1 && sides.iter().all(|side| *side == n_filters);
            (has_sides && *width != n_filters).then_some(FiltersLast::Sides)
        }
        _ => None,
    }
}

/// Holds K filters, an array with axes (filter, channel, depth, height, width).
#[derive(Clone, Debug, PartialEq)]
pub struct Dictionary<T> {
    n_filters: usize,
    shape: Shape,
    rank: usize,
    data: Vec<T>,
}

impl<T: Real> Dictionary<T> {
    /// Checks shape, finiteness and the unit-norm constraint.
    ///
    /// `rank` is the number of spatial axes the user sees: 1 for signals, 2 for images, 3 for volumes.
    pub fn new(n_filters: usize, shape: Shape, rank: usize, data: Vec<T>) -> Result<Self> {
        if n_filters == 0 || shape.is_empty() {
            return Err(Error::invalid(
                "dictionary",
                "at least one filter of at least one value",
                format!("{} of {shape}", counted(n_filters, "filter")),
            ));
        }
        if !(1..=3).contains(&rank) {
            return Err(Error::invalid("dictionary", "1 to 3 spatial axes", rank));
        }
        let len = n_filters.saturating_mul(shape.len());
        if data.len() != len {
            return Err(Error::invalid(
                "dictionary",
                format!("{len} values for {} of {shape}", counted(n_filters, "filter")),
                data.len(),
            ));
        }
        if let Some(v) = data.iter().find(|v| !v.is_finite()) {
            return Err(Error::invalid("dictionary", "finite values", v));
        }
        let mut dictionary = Dictionary { n_filters, shape, rank, data };
        for (k, norm) in dictionary.norms().into_iter().enumerate() {
            if norm > 1.0 + NORM_SLACK {
                return Err(Error::invalid(format!("filter {k}"), "a Euclidean norm of at most 1", norm));
            }
        }
        dictionary.project();
        Ok(dictionary)
    }

    /// Takes filters from elsewhere, in double precision: those of norm above 1 are scaled to 1. Also returns the largest norm.
    pub fn scaled(n_filters: usize, shape: Shape, rank: usize, data: &[f64]) -> Result<(Self, f64)> {
        let mut scaled = Vec::with_capacity(data.len());
        let mut largest = 0.0_f64;
        for filter in data.chunks(shape.len().max(1)) {
            let norm = filter.iter().map(|v| v * v).sum::<f64>().sqrt();
            largest = largest.max(norm);
            scaled.extend(filter.iter().map(|v| T::of(v / norm.max(1.0))));
        }
        Ok((Dictionary::new(n_filters, shape, rank, scaled)?, largest))
    }

    /// Draws Gaussian filters of unit norm (Algorithm 3, line 1), the same for a seed on every platform and in `f32` and `f64`
    /// up to rounding.
    pub fn random(n_filters: usize, shape: Shape, rank: usize, seed: u64) -> Result<Self> {
        if n_filters == 0 || shape.is_empty() {
            return Err(Error::invalid(
                "dictionary",
                "at least one filter of at least one value",
                format!("{} of {shape}", counted(n_filters, "filter")),
            ));
        }
        let mut rng = random::stream(seed, random::INITIAL);
        let mut data = Vec::new();
        let numbers = n_filters.saturating_mul(shape.len());
        if data.try_reserve_exact(numbers).is_err() {
            return Err(Error::Memory {
                what: format!("{} of {shape}", counted(n_filters, "filter")),
                needed: (numbers as u64).saturating_mul(size_of::<T>() as u64),
                available: system::available().unwrap_or(0) as u64,
                whose: "the system has free",
                advice: Some("use fewer or smaller filters".to_owned()),
            });
        }
        for _ in 0..n_filters {
            let filter: Vec<f64> = (0..shape.len()).map(|_| StandardNormal.sample(&mut rng)).collect();
            let norm = filter.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            data.extend(filter.iter().map(|v| T::of(v / norm)));
        }
        Dictionary::new(n_filters, shape, rank, data)
    }

    /// Takes patches of the samples at seeded random places, scaled to unit norm; a patch of zeros becomes a Gaussian filter.
    pub fn from_patches(
        n_filters: usize,
        shape: Shape,
        rank: usize,
        samples: &dyn Samples<T>,
        seed: u64,
    ) -> Result<Self> {
        let mut dictionary = Dictionary::random(n_filters, shape, rank, seed)?;
        if samples.is_empty() {
            return Err(Error::invalid("data set", "at least one sample to take patches from", "none"));
        }
        let mut rng = random::stream(seed, random::PATCHES);
        for k in 0..n_filters {
            // Samples that cannot be read or are too small have no patches; if many in a row have none, none has.
            let mut tries = 0;
            let sample = loop {
                let sample = samples.get(rng.random_range(0..samples.len()));
                match sample.and_then(|s| dictionary.check_sample_shape(s.shape()).map(|()| s)) {
                    Ok(sample) => break sample,
                    Err(error) if tries == 100 => return Err(error),
                    Err(_) => tries += 1,
                }
            };
            let (s, data) = (sample.shape(), sample.data());
            let [d0, h0, w0] = std::array::from_fn(|i| rng.random_range(0..=s.spatial()[i] - shape.spatial()[i]));
            let mut patch = Vec::with_capacity(shape.len());
            for row in 0..shape.len() / shape.width {
                let (c, d, h) =
                    (row / (shape.depth * shape.height), row / shape.height % shape.depth, row % shape.height);
                let start = ((c * s.depth + d0 + d) * s.height + h0 + h) * s.width + w0;
                patch.extend(data[start..][..shape.width].iter().map(|v| v.f64()));
            }
            let norm = patch.iter().map(|v| v * v).sum::<f64>().sqrt();
            if norm > 0.0 {
                let filter = &mut dictionary.data[k * shape.len()..][..shape.len()];
                filter.iter_mut().zip(&patch).for_each(|(f, p)| *f = T::of(p / norm));
            }
        }
        dictionary.project();
        Ok(dictionary)
    }

    /// Returns the number of filters.
    pub fn n_filters(&self) -> usize {
        self.n_filters
    }

    /// Returns the shape of one filter (channel, depth, height, width).
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns how many spatial axes the user sees.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns all filters, filter by filter.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Returns filter k, in the order (channel, depth, height, width).
    pub fn filter(&self, k: usize) -> &[T] {
        &self.data[k * self.shape.len()..][..self.shape.len()]
    }

    /// The values, to be changed in place; call [`Dictionary::project`] afterwards.
    pub(crate) fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// Proposition `pr:sub_v_sol`: every filter of norm above 1 is scaled back to norm 1.
    pub(crate) fn project(&mut self) {
        for filter in self.data.chunks_mut(self.shape.len()) {
            project_unit_ball(filter);
        }
    }

    /// Returns the filters in another scalar, of norm at most 1 in that.
    pub fn cast<U: Real>(&self) -> Dictionary<U> {
        let Dictionary { n_filters, shape, rank, .. } = *self;
        let mut cast = Dictionary { n_filters, shape, rank, data: self.data.iter().map(|v| U::of(v.f64())).collect() };
        cast.project();
        cast
    }

    /// Returns the Euclidean norms of the filters.
    pub fn norms(&self) -> Vec<f64> {
        self.data.chunks(self.shape.len()).map(|f| f.iter().map(|v| v.f64() * v.f64()).sum::<f64>().sqrt()).collect()
    }

    /// Returns the SHA-256 of the filters' number, shape and values, as 64 hexadecimal digits: what codes know their dictionary
    /// by. Equal numbers have the same one in f32 and in f64.
    pub fn checksum(&self) -> String {
        let Shape { channels, depth, height, width } = self.shape;
        let mut hash = Sha256::new();
        for n in [self.n_filters, channels, depth, height, width, self.rank] {
            hash.update((n as u64).to_le_bytes());
        }
        self.data.iter().for_each(|v| hash.update(v.f64().to_le_bytes()));
        hex(&hash.finalize())
    }

    /// Returns the relative change ||D - other|| / ||D||, as in the paper's stopping rule.
    pub fn relative_change(&self, other: &Self) -> f64 {
        let change: f64 = self.data.iter().zip(&other.data).map(|(a, b)| (a.f64() - b.f64()).powi(2)).sum();
        let norm: f64 = self.data.iter().map(|a| a.f64().powi(2)).sum();
        (change / norm.max(f64::MIN_POSITIVE)).sqrt()
    }

    /// Returns filter numbers in ascending order of variance, as the paper shows dictionaries.
    pub fn by_variance(&self) -> Vec<usize> {
        let variance = |k: usize| {
            let f = self.filter(k);
            let n = f.len() as f64;
            let mean = f.iter().map(|v| v.f64()).sum::<f64>() / n;
            f.iter().map(|v| (v.f64() - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)
        };
        let mut order: Vec<(f64, usize)> = (0..self.n_filters).map(|k| (variance(k), k)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, k)| k).collect()
    }

    /// Checks that samples of this shape can be coded: the same channels, and no axis shorter than the filter's.
    pub fn check_sample_shape(&self, sample: Shape) -> Result<()> {
        if sample.channels != self.shape.channels {
            return Err(Error::invalid(
                "sample",
                format!("{}, as the filters have", counted(self.shape.channels, "channel")),
                counted(sample.channels, "channel"),
            ));
        }
        if sample.spatial().iter().zip(self.shape.spatial()).any(|(&s, f)| s < f) {
            return Err(Error::invalid(
                "sample",
                format!("at least the filter's size {} on every axis", self.shape),
                sample,
            ));
        }
        Ok(())
    }
}

/// Scales a vector of norm above 1 back to norm 1: the Euclidean projection on the unit ball.
pub(crate) fn project_unit_ball<T: Real>(vector: &mut [T]) {
    let norm = vector.iter().map(|v| v.f64() * v.f64()).sum::<f64>().sqrt();
    if norm > 1.0 {
        let mut scale = 1.0 / norm;
        // Rounding to T may leave the norm a hair above 1; shrink until the stored filter is feasible.
        loop {
            let stored = vector.iter().map(|v| T::of(v.f64() * scale).f64().powi(2)).sum::<f64>();
            // Also when it is not a number, since then no scale would do.
            if stored <= 1.0 || stored.is_nan() {
                break;
            }
            scale *= 1.0 - T::EPSILON / 2.0;
        }
        for v in vector {
            *v = T::of(v.f64() * scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Filters (K, axes...) of these norms, and the same with K as the last axis.
    fn both_orders(n_filters: usize, axes: &[usize], norm: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<f64>) {
        let shape = Shape::from_axes(1, axes).unwrap();
        let dictionary = Dictionary::<f64>::random(n_filters, shape, axes.len(), 3).unwrap();
        let n = shape.len();
        let first: Vec<f64> = dictionary.data().iter().enumerate().map(|(i, v)| norm(i / n) * v).collect();
        let last = (0..n * n_filters).map(|i| first[i % n_filters * n + i / n_filters]).collect();
        (first, last)
    }

    /// What speaks for filters last, of an array of these axes.
    fn found(axes: &[usize], data: &[f64]) -> Option<FiltersLast> {
        filters_last(axes[0], Shape::from_axes(1, &axes[1..]).unwrap(), axes.len() - 1, data)
    }

    #[test]
    fn filters_of_norm_one_are_found_on_either_axis() {
        for axes in [&[8, 8][..], &[5, 7], &[16], &[4, 4, 4]] {
            for k in [3, 8, 32] {
                let (first, last) = both_orders(k, axes, |_| 1.0);
                assert_eq!(found(&[&[k][..], axes].concat(), &first), None, "{k} {axes:?}");
                assert_eq!(found(&[axes, &[k]].concat(), &last), Some(FiltersLast::Norms), "{axes:?} {k}");
            }
        }
    }

    #[test]
    fn without_norms_only_sides_tell_and_little() {
        let (first, last) = both_orders(32, &[8, 8], |k| 1.0 + 0.1 * k as f64);
        assert_eq!(found(&[32, 8, 8], &first), None);
        assert_eq!(found(&[8, 8, 32], &last), Some(FiltersLast::Sides));
        // As many as one side is long, either way.
        let (_, last) = both_orders(8, &[8, 8], |k| 1.0 + 0.1 * k as f64);
        assert_eq!(found(&[8, 8, 8], &last), None);
        // Rows and columns of an orthogonal matrix.
        let unit: Vec<f64> = (0..64).map(|i| f64::from(u8::from(i % 9 == 0))).collect();
        assert_eq!(found(&[8, 8], &unit), None);
        assert_eq!(found(&[1, 8, 8], &unit), None, "one filter is not last by its norm");
    }
}
