//! Simultaneous orthogonal matching pursuit: a group of similar patches, coded with one support.
//!
//! ```text
//! min over S, {c_q}   |S|     with   sum_q || x_q - sum_(i in S) c_qi d_i ||^2  <=  limit
//! ```
//!
//! greedily: the filter with the largest sum of squared correlations with the residuals joins S, and all patches are projected
//! anew on S (Tropp, Gilbert, Strauss, "Algorithms for simultaneous sparse approximation", Signal Processing 86, 2006; a group
//! of one is plain orthogonal matching pursuit). With q_1, q_2, ... the filters of S made orthonormal, only their correlations
//! b_j = D^T q_j with all filters are kept, never q_j itself:
//!
//! ```text
//! L_kj = b_j[new],   L_kk^2 = 1 - sum_j L_kj^2,   b_k = (G[new] - sum_j L_kj b_j) / L_kk
//! t_qk = a_q[new] / L_kk,   a_q <- a_q - t_qk b_k,   error <- error - sum_q t_qk^2
//! ```
//!
//! so that a step costs K per patch and K |S| per group. The coefficients are L^T c_q = t_q.

use super::atoms::Atoms;
use crate::Real;
use crate::simd::{Kernel, dispatch};

/// A new filter of which less than this share (of its squared norm) is left beside the support is passed over.
const LEAST_NEW: f32 = 1e-4;
/// Numbers that are compared at once.
const LANES: usize = 16;

/// The result of a pursuit, and its memory.
#[derive(Default)]
pub(super) struct Work {
    /// The filters chosen, in the order of choice.
    pub(super) support: Vec<usize>,
    /// (patch, place in the support), of rows of `most`.
    pub(super) coefficients: Vec<f32>,
    /// What is left of the squared norm of all patches.
    pub(super) error: f32,
    /// a_q, (patch, filter).
    correlations: Vec<f32>,
    /// The sum of squares of the correlations of each filter.
    scores: Vec<f32>,
    /// b_j, (place in the support, filter).
    basis: Vec<f32>,
    /// L, (place, place).
    factor: Vec<f32>,
    /// t, (patch, place).
    steps: Vec<f32>,
    /// Filters that may not be chosen again.
    barred: Vec<usize>,
}

/// The patches to code.
pub(super) struct Group<'a> {
    pub(super) atoms: &'a Atoms,
    /// (patch, value), without means.
    pub(super) patches: &'a [f32],
    /// The squared norm of all residuals at which to stop.
    pub(super) limit: f32,
    /// The most filters.
    pub(super) most: usize,
}

impl Group<'_> {
    /// Codes the group.
    pub(super) fn code(&self, work: &mut Work) {
        dispatch(Pursuit { group: self, work });
    }

    /// Writes the sum of filters of patch `q` to `estimate`.
    pub(super) fn reconstruct(&self, work: &Work, q: usize, estimate: &mut [f32]) {
        estimate.fill(0.0);
        for (i, k) in work.support.iter().enumerate() {
            let c = work.coefficients[q * self.most + i];
            estimate.iter_mut().zip(self.atoms.filter(*k)).for_each(|(v, d)| *v += c * d);
        }
    }
}

struct Pursuit<'a> {
    group: &'a Group<'a>,
    work: &'a mut Work,
}

impl Kernel for Pursuit<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Pursuit { group, work } = self;
        let (n, k, most) = (group.atoms.shape.len(), group.atoms.len(), group.most);
        let n_patches = group.patches.len() / n;
        work.support.clear();
        work.barred.clear();
        work.error = group.patches.iter().map(|v| v * v).sum();
        if work.error <= group.limit || most == 0 {
            return;
        }
        work.basis.resize(most * k, 0.0);
        work.factor.resize(most * most, 0.0);
        work.steps.resize(n_patches * most, 0.0);
        work.coefficients.resize(n_patches * most, 0.0);
        correlate::<FMA>(group, work);
        loop {
            work.barred.iter().for_each(|j| work.scores[*j] = 0.0);
            let Some(new) = largest(&work.scores) else { break };
            work.barred.push(new);
            let place = work.support.len();
            let mut left = 1.0;
            for j in 0..place {
                let l = work.basis[j * k + new];
                work.factor[place * most + j] = l;
                left -= l * l;
            }
            if left < LEAST_NEW {
                continue;
            }
            let diagonal = left.sqrt();
            work.factor[place * most + place] = diagonal;
            work.support.push(new);
            for q in 0..n_patches {
                let step = work.correlations[q * k + new] / diagonal;
                work.steps[q * most + place] = step;
                work.error -= step * step;
            }
            if work.error <= group.limit || place + 1 == most {
                break;
            }
            extend_basis::<FMA>(group, work, place, diagonal);
            project::<FMA>(work, n_patches, place, most, k);
        }
        solve(work, n_patches, most);
    }
}

/// a_q = D^T x_q and the scores.
#[inline(always)]
fn correlate<const FMA: bool>(group: &Group<'_>, work: &mut Work) {
    let (n, k) = (group.atoms.shape.len(), group.atoms.len());
    let n_patches = group.patches.len() / n;
    work.correlations.clear();
    work.correlations.resize(n_patches * k, 0.0);
    work.scores.clear();
    work.scores.resize(k, 0.0);
    for (patch, a) in group.patches.chunks_exact(n).zip(work.correlations.chunks_exact_mut(k)) {
        let (fours, rest) = patch.as_chunks::<4>();
        for (x, rows) in fours.iter().zip(group.atoms.transposed.chunks_exact(4 * k)) {
            let (d0, others) = rows.split_at(k);
            let (d1, others) = others.split_at(k);
            let (d2, d3) = others.split_at(k);
            for ((((a, d0), d1), d2), d3) in a.iter_mut().zip(d0).zip(d1).zip(d2).zip(d3) {
                *a = x[3].fused::<FMA>(*d3, x[2].fused::<FMA>(*d2, x[1].fused::<FMA>(*d1, x[0].fused::<FMA>(*d0, *a))));
            }
        }
        for (x, row) in rest.iter().zip(group.atoms.transposed[fours.len() * 4 * k..].chunks_exact(k)) {
            a.iter_mut().zip(row).for_each(|(a, d)| *a = x.fused::<FMA>(*d, *a));
        }
        work.scores.iter_mut().zip(&*a).for_each(|(score, a)| *score = a.fused::<FMA>(*a, *score));
    }
}

/// b_k = (G_new - sum_j L_kj b_j) / L_kk.
#[inline(always)]
fn extend_basis<const FMA: bool>(group: &Group<'_>, work: &mut Work, place: usize, diagonal: f32) {
    let k = group.atoms.len();
    let new = work.support[place];
    let (known, rest) = work.basis.split_at_mut(place * k);
    let row = &mut rest[..k];
    row.copy_from_slice(&group.atoms.gram[new * k..][..k]);
    for (j, known) in known.chunks_exact(k).enumerate() {
        let l = -work.factor[place * group.most + j];
        row.iter_mut().zip(known).for_each(|(b, known)| *b = l.fused::<FMA>(*known, *b));
    }
    row.iter_mut().for_each(|b| *b /= diagonal);
}

/// a_q <- a_q - t_qk b_k, and the scores anew.
#[inline(always)]
fn project<const FMA: bool>(work: &mut Work, n_patches: usize, place: usize, most: usize, k: usize) {
    let row = &work.basis[place * k..][..k];
    work.scores.fill(0.0);
    for (q, a) in work.correlations.chunks_exact_mut(k).take(n_patches).enumerate() {
        let step = -work.steps[q * most + place];
        for ((a, b), score) in a.iter_mut().zip(row).zip(work.scores.iter_mut()) {
            *a = step.fused::<FMA>(*b, *a);
            *score = a.fused::<FMA>(*a, *score);
        }
    }
}

/// Returns the first place of the largest positive score.
#[inline(always)]
fn largest(scores: &[f32]) -> Option<usize> {
    let (blocks, rest) = scores.as_chunks::<LANES>();
    let mut lanes = [0.0_f32; LANES];
    for block in blocks {
        for i in 0..LANES {
            lanes[i] = if block[i] > lanes[i] { block[i] } else { lanes[i] };
        }
    }
    let most = lanes.iter().chain(rest).fold(0.0_f32, |most, v| if *v > most { *v } else { most });
    if most > 0.0 { scores.iter().position(|score| *score == most) } else { None }
}

/// Solves L^T c_q = t_q for every patch.
#[inline(always)]
fn solve(work: &mut Work, n_patches: usize, most: usize) {
    let size = work.support.len();
    for q in 0..n_patches {
        for i in (0..size).rev() {
            let mut c = work.steps[q * most + i];
            for j in i + 1..size {
                c -= work.factor[j * most + i] * work.coefficients[q * most + j];
            }
            work.coefficients[q * most + i] = c / work.factor[i * most + i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn numbers(n: usize, seed: f32) -> Vec<f32> {
        (0..n).map(|i| ((i as f32 + 1.0) * (seed + 0.37)).sin() * 43758.547).map(|v| v.fract()).collect()
    }

    fn error_of(group: &Group<'_>, work: &Work) -> f32 {
        let n = group.atoms.shape.len();
        let mut estimate = vec![0.0; n];
        let mut sum = 0.0;
        for (q, patch) in group.patches.chunks_exact(n).enumerate() {
            group.reconstruct(work, q, &mut estimate);
            sum += patch.iter().zip(&estimate).map(|(x, e)| (x - e) * (x - e)).sum::<f32>();
        }
        sum
    }

    /// The slow twin: residuals are computed from their definition, the projection by many gradient steps on the support.
    fn slow(group: &Group<'_>) -> (Vec<usize>, f32) {
        let n = group.atoms.shape.len();
        let mut support: Vec<usize> = Vec::new();
        let mut residuals = group.patches.to_vec();
        let error = |residuals: &[f32]| residuals.iter().map(|v| v * v).sum::<f32>();
        while error(&residuals) > group.limit && support.len() < group.most {
            let score = |k: usize| {
                let of = |r: &[f32]| r.iter().zip(group.atoms.filter(k)).map(|(r, d)| r * d).sum::<f32>();
                residuals.chunks_exact(n).map(|r| of(r) * of(r)).sum::<f32>()
            };
            let free = (0..group.atoms.len()).filter(|k| !support.contains(k));
            support.push(free.max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap());
            for residual in residuals.chunks_exact_mut(n) {
                for _ in 0..2000 {
                    for k in &support {
                        let d = group.atoms.filter(*k);
                        let c: f32 = residual.iter().zip(d).map(|(r, d)| r * d).sum();
                        residual.iter_mut().zip(d).for_each(|(r, d)| *r -= c * d);
                    }
                }
            }
        }
        (support, error(&residuals))
    }

    #[test]
    fn a_pursuit_chooses_and_projects_as_its_slow_twin() {
        let shape = Shape::image(5, 5);
        let atoms = Atoms::new(shape, &numbers(40 * 25, 0.61)).unwrap();
        for n_patches in [1, 3] {
            let mut patches = numbers(n_patches * 25, 1.3);
            for patch in patches.chunks_exact_mut(25) {
                let mean = patch.iter().sum::<f32>() / 25.0;
                patch.iter_mut().for_each(|v| *v -= mean);
            }
            let norm: f32 = patches.iter().map(|v| v * v).sum();
            let group = Group { atoms: &atoms, patches: &patches, limit: 0.2 * norm, most: 6 };
            let mut work = Work::default();
            // Twice, so that what is left in the memory has no influence.
            group.code(&mut work);
            group.code(&mut work);
            let (support, error) = slow(&group);
            assert_eq!(work.support, support);
            assert!((work.error - error).abs() < 1e-4 * norm, "{} {error}", work.error);
            assert!((error_of(&group, &work) - error).abs() < 1e-4 * norm);
        }
    }

    #[test]
    fn nothing_is_chosen_for_what_is_small_enough() {
        let atoms = Atoms::new(Shape::image(3, 3), &numbers(90, 0.2)).unwrap();
        let patches = numbers(9, 0.5);
        let mut work = Work::default();
        Group { atoms: &atoms, patches: &patches, limit: 100.0, most: 4 }.code(&mut work);
        assert!(work.support.is_empty());
    }
}
