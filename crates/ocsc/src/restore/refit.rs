//! Weighted least squares on a support: what coefficients a patch has if some of its values are worth more than others.
//!
//! ```text
//! min over m, c   1/2 sum_i w_i (x_i - m_channel(i) - sum_(k in S) c_k d_k,i)^2 + ridge/2 ||c||^2
//! ```
//!
//! The means m belong to the problem: those of a patch with unknown values are unknown too.

use super::atoms::Atoms;
use super::cholesky::{factor, solve};
use crate::dot::dot;

/// Keeps the system regular where few values are known, in shares of a filter's squared norm.
const RIDGE: f32 = 1e-3;

/// The memory of a fit.
#[derive(Default)]
pub(super) struct Fit {
    /// The filters and the constants of the channels, each weighted, (unknown, value).
    weighted: Vec<f32>,
    plain: Vec<f32>,
    system: Vec<f32>,
    unknowns: Vec<f32>,
}

impl Fit {
    /// Writes the fit of `patch` (with its means) to `estimate`; all of (channel, height, width).
    pub(super) fn run(
        &mut self,
        atoms: &Atoms,
        support: &[usize],
        patch: &[f32],
        weights: &[f32],
        estimate: &mut [f32],
    ) {
        let (n, area) = (patch.len(), atoms.shape.pixels());
        let channels = n / area;
        let size = support.len() + channels;
        self.plain.clear();
        for c in 0..channels {
            let level = 1.0 / (area as f32).sqrt();
            self.plain.extend((0..n).map(|i| if i / area == c { level } else { 0.0 }));
        }
        support.iter().for_each(|k| self.plain.extend_from_slice(atoms.filter(*k)));
        self.weighted.clear();
        for row in self.plain.chunks_exact(n) {
            self.weighted.extend(row.iter().zip(weights).map(|(d, w)| d * w));
        }
        self.system.clear();
        self.system.resize(size * size, 0.0);
        self.unknowns.clear();
        for (i, row) in self.weighted.chunks_exact(n).enumerate() {
            for (j, other) in self.plain.chunks_exact(n).take(i + 1).enumerate() {
                self.system[i * size + j] = dot(row, other);
            }
            self.system[i * size + i] += RIDGE;
            self.unknowns.push(dot(row, patch));
        }
        factor(&mut self.system, size);
        solve(&self.system, &mut self.unknowns);
        estimate.fill(0.0);
        for (c, row) in self.unknowns.iter().zip(self.plain.chunks_exact(n)) {
            estimate.iter_mut().zip(row).for_each(|(v, d)| *v += c * d);
        }
    }
}
