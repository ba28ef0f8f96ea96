//! The largest correlation of the residual, from above: what the certificate scales the residual by.
//!
//! The kernel's correlations, in T, may be off by the classical bound n eps sum |d| |r|, which for filters of many taps (many
//! channels) in f32 says nothing. So the positions that may hold the largest one are computed again in f64, if all of them were
//! reported; or else, where T is too coarse for the tolerance, everything is.

use super::ActiveSet;
use super::correlate::With;
use super::filters::{self, Filters};
use super::frame::Frame;
use super::scan::{Own, Report, Scan, scan_lines};
use crate::Real;
use rayon::prelude::*;

/// Rounding up to this fraction of the tolerance is put up with.
const HARMLESS: f64 = 0.1;
/// With more contenders than one position in so many, the kernel looks at all of them faster.
const MANY: usize = 16;

/// The filters and one over their weights in f64, whatever the scalar; made when they are needed.
pub(super) struct Wide {
    filters: Filters<f64>,
    inverse_weights: Vec<f64>,
}

impl<T: Real> ActiveSet<T> {
    /// An upper bound on max |d_k^T r| / w_k that no rounding falsifies; below 1 it does not matter.
    pub(super) fn bound(
        &self,
        frame: &Frame,
        canvas: &[T],
        own: &Own<'_, T>,
        scan: &Scan,
        report: Report,
        peak: f64,
    ) -> f64 {
        let off = self.rounding::<T>(frame, own, peak);
        if scan.strongest + off <= 1.0 {
            return scan.strongest + off;
        }
        let exactly = self.rounding::<f64>(frame, own, peak);
        let complete = matches!(report, Report::All(threshold) if threshold <= 1.0 - 2.0 * off);
        if complete {
            let bar = (scan.strongest - 2.0 * off).max(1.0 - 2.0 * off);
            let contenders = scan.candidates.iter().filter(|c| f64::from(c.strength) * (1.0 + 1e-6) >= bar);
            let mut positions: Vec<u32> = contenders.map(|c| c.position).collect();
            positions.dedup();
            if positions.len() <= frame.n_positions() / MANY || T::EPSILON <= f64::EPSILON {
                let strength = |p: &u32| self.exact_strength(frame, canvas, own, *p as usize);
                return positions.par_iter().map(strength).reduce(|| 0.0, f64::max) + exactly;
            }
        }
        if off <= HARMLESS * self.tol || T::EPSILON <= f64::EPSILON {
            return scan.strongest + off;
        }
        self.wide_strongest(frame, canvas, own) + exactly
    }

    /// max |d_k^T r| / w_k by the kernel in f64.
    fn wide_strongest(&self, frame: &Frame, canvas: &[T], own: &Own<'_, T>) -> f64 {
        let Wide { filters, inverse_weights } = self.wide.get_or_init(|| Wide {
            filters: Filters::new(&self.dictionary),
            inverse_weights: self.exact_weights.iter().map(|w| 1.0 / w).chain([0.0; filters::PAIR]).collect(),
        });
        let canvas: Vec<f64> = canvas.iter().map(|r| r.f64()).collect();
        let field = own.field.map(|field| field.wide(frame));
        let (field, signed) = (field.as_ref(), self.config.nonnegative);
        let with = With { filters, inverse_weights, field, ridge: own.ridge, signed };
        scan_lines::<f64>(frame, Report::None, |line, number| line.correlate(frame, &with, &canvas, 0.0, number))
            .strongest
    }

    /// max_k |d_k^T r| / w_k at one position, in f64.
    fn exact_strength(&self, frame: &Frame, canvas: &[T], own: &Own<'_, T>, position: usize) -> f64 {
        let strength = |k: usize| {
            let sum = self.exact_correlation(frame, canvas, k, position);
            let sum = sum - own.ridge.map_or(0.0, |ridge| ridge.pull(k, position));
            let sum = if self.config.nonnegative { sum } else { sum.abs() };
            sum / (self.exact_weights[k] * own.field.map_or(1.0, |field| field.weight(k, position)))
        };
        (0..self.filters.n_filters).map(strength).fold(0.0, f64::max)
    }

    /// d_k^T r at one position, in f64.
    pub(super) fn exact_correlation(&self, frame: &Frame, canvas: &[T], k: usize, position: usize) -> f64 {
        let (line, column) = (position / frame.positions[2], position % frame.positions[2]);
        let starts = frame.starts(line);
        let mut sum = 0.0;
        for (row, taps) in self.rows(frame, k) {
            let columns = &canvas[starts[row] as usize + column..][..taps.len()];
            sum += columns.iter().zip(taps).map(|(c, tap)| c.f64() * tap.f64()).sum::<f64>();
        }
        sum
    }

    /// How far correlations in S may be off, in units of the weights, for a canvas with this largest value: the classical bound
    /// n eps sum |d| |r|; below the smallest normal number errors are absolute. Infinite where the weights are beyond S.
    pub(super) fn rounding<S: Real>(&self, frame: &Frame, own: &Own<'_, T>, peak: f64) -> f64 {
        let taps = (frame.filter_rows() * frame.filter.width) as f64;
        let lightest_own = own.field.map_or(1.0, |field| field.lightest);
        let norms = self.filters.energy.iter().zip(&self.exact_weights);
        let longest = norms.map(|(energy, weight)| energy.sqrt() / weight).fold(0.0, f64::max) / lightest_own;
        let lightest = self.exact_weights.iter().fold(f64::INFINITY, |m, w| w.min(m)) * lightest_own;
        // Weights of single coefficients are one more product, of a rounded reciprocal.
        let steps = taps + if own.field.is_some() { 6.0 } else { 3.0 };
        let off = steps * (S::EPSILON * longest * taps.sqrt() * peak + S::SMALLEST / lightest);
        let off = off + own.ridge.map_or(0.0, |ridge| 4.0 * S::EPSILON * ridge.peak);
        if off.is_finite() && S::of(1.0 / lightest).is_finite() { off } else { f64::INFINITY }
    }
}
