//! The step of [`super::BlockDescent`] for filters of rank one: a topography u over channels times a waveform v over space or
//! time.
//!
//! **Problem**, in filter k alone, with B = psi_k - sum_(l != k) phi_kl * d_l, a matrix (channel, position):
//!
//! ```text
//! min over u, v   1/2 <u v^T, phi_kk * u v^T> - <B, u v^T>       with ||u||, ||v|| <= 1
//! ```
//!
//! phi_kk is the same for all channels, so with G = phi_kk * u v^T - B, the gradient of the filter as a whole, and ||u|| = 1,
//!
//! ```text
//! for fixed u:   v = project( v - G^T u / L_k )          the statistics are phi_kk and sum_c u_c B_c
//! for fixed v:   u = project( B v / q ),   q = <v, phi_kk * v>,   B v = q u - G v          the minimum over u, not a step
//! ```
//!
//! Neither increases the objective: the first is a projected gradient step with a bound on the curvature, and in the second the
//! curvature q is that of all directions. Since ||u|| ||v|| alone matters, u keeps norm 1 and v has the norm of the filter.
//!
//! The factors are not kept: they are found again in the filter, which is their product up to rounding. So a checkpoint needs
//! nothing more than the dictionary.

use crate::Real;
use crate::constraint::{Constraint, first_pair, set_product};
use crate::dictionary::project_unit_ball;

/// The factors of a filter: u of norm 1, and v.
pub(super) struct Factors {
    topography: Vec<f64>,
    waveform: Vec<f64>,
}

impl Factors {
    /// Finds the factors of filter k. A filter of zeros has those of its projected gradient step; none if that is zero too.
    pub(super) fn of<T: Real>(
        filter: &[T],
        gradient: &[T],
        bound: f64,
        constraint: &Constraint,
        k: usize,
    ) -> Option<Self> {
        let mut matrix: Vec<f64> = filter.iter().map(|v| v.f64()).collect();
        if matrix.iter().all(|v| *v == 0.0) {
            matrix.iter_mut().zip(gradient).for_each(|(d, g)| *d = -g.f64() / bound);
            constraint.project(k, &mut matrix);
        }
        let (topography, waveform) = first_pair(&matrix, constraint.pixels());
        waveform.iter().any(|v| *v != 0.0).then_some(Factors { topography, waveform })
    }

    /// Writes the product into a filter.
    pub(super) fn set<T: Real>(&self, filter: &mut [T]) {
        set_product(filter, &self.topography, &self.waveform);
        project_unit_ball(filter);
    }

    /// v <- project( v - G^T u / L ).
    pub(super) fn step_waveform<T: Real>(&mut self, gradient: &[T], bound: f64, constraint: &Constraint, k: usize) {
        for (u, channel) in self.topography.iter().zip(gradient.chunks_exact(self.waveform.len())) {
            self.waveform.iter_mut().zip(channel).for_each(|(v, g)| *v -= u * g.f64() / bound);
        }
        constraint.project_waveform(k, &mut self.waveform);
        project_unit_ball(&mut self.waveform);
    }

    /// Takes over another topography, whose norm goes to the waveform.
    pub(super) fn set_topography(&mut self, topography: Vec<f64>) {
        let norm = norm(&topography);
        self.topography = topography.into_iter().map(|u| u / norm).collect();
        self.waveform.iter_mut().for_each(|v| *v *= norm);
        project_unit_ball(&mut self.waveform);
    }
}

/// Returns the best topography for the waveform; none if that is zero, or orthogonal to what is left to explain.
pub(super) fn next_topography<T: Real>(
    factors: &Factors,
    gradient: &[T],
    curvature: f64,
    constraint: &Constraint,
) -> Option<Vec<f64>> {
    if curvature <= 0.0 {
        return None;
    }
    let with_waveform = |channel: &[T]| channel.iter().zip(&factors.waveform).map(|(g, v)| g.f64() * v).sum::<f64>();
    let channels = gradient.chunks_exact(factors.waveform.len());
    let topography = factors.topography.iter().zip(channels);
    let mut topography: Vec<f64> = topography.map(|(u, channel)| u - with_waveform(channel) / curvature).collect();
    constraint.project_topography(&mut topography);
    let norm = norm(&topography);
    (norm > 0.0 && norm.is_finite()).then_some(topography)
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}
