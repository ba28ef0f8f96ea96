//! What a round of the active-set coder knows of the code at hand: its objective, and what its residual proves of it.

use super::residual::Rebuilt;
use super::solve::Solve;
use crate::Real;
use crate::coder::certificate::{Terms, Weight};
use crate::coder::relative;
use rayon::prelude::*;

/// A concave penalty is certified among codes whose non-zeros are at most so many times those of the code at hand.
const BOX: f64 = 2.0;

/// What a round knows of the code at hand.
pub(super) struct Worth {
    pub(super) rebuilt: Rebuilt,
    /// What the code pays in the weighted problem, outliers included, and what its rounding is bounded by.
    pub(super) weight: Weight,
    /// P(z), with the penalty itself instead of what majorises it.
    pub(super) objective: f64,
    pub(super) penalty: f64,
    pub(super) l1: f64,
    /// mu/2 ||z||^2, which the terms count among the squares.
    pub(super) ridge_cost: f64,
    /// How far the weights moved since the last round, as a share of the objective.
    pub(super) moved: f64,
    /// sqrt(mu) z of an elastic net's atoms.
    squares: Vec<f64>,
    /// Of a concave penalty: modulus, largest possible correlation and weight of every atom.
    held: Vec<[f64; 3]>,
}

impl Worth {
    /// A bound on how far the code is from optimal, if no correlation is more than `strongest` weights.
    pub(super) fn gap(&self, strongest: f64) -> f64 {
        let s = feasible(strongest);
        let excess = |[value, correlation, weight]: &[f64; 3]| BOX * value * (s * correlation - weight).max(0.0);
        let held: f64 = self.held.iter().map(excess).sum();
        self.rebuilt.terms.gap(s, &self.weight) + (held + self.rebuilt.smoothed) * (1.0 + 1e-9)
    }

    /// Adds what an elastic net has besides the sample's values to terms of another dual point.
    pub(super) fn add_ridge(&self, terms: &mut Terms) {
        self.squares.iter().for_each(|estimate| terms.add_square(*estimate));
    }

    pub(super) fn relative_gap(&self, strongest: f64) -> f64 {
        relative(self.gap(strongest), self.objective)
    }
}

/// Sums over atoms, and what each of them gives in the list's order.
#[derive(Default)]
struct Sums {
    pays: f64,
    weighted: f64,
    l1: f64,
    mass: f64,
    nonzeros: usize,
    ridge_cost: f64,
    moved: f64,
    slopes: Vec<f64>,
    squares: Vec<f64>,
    held: Vec<[f64; 3]>,
}

impl Sums {
    /// The sums over these atoms and those that follow.
    fn and(mut self, next: Sums) -> Sums {
        self.pays += next.pays;
        self.weighted += next.weighted;
        self.l1 += next.l1;
        self.mass += next.mass;
        self.nonzeros += next.nonzeros;
        self.ridge_cost += next.ridge_cost;
        self.moved += next.moved;
        self.slopes.extend(next.slopes);
        self.squares.extend(next.squares);
        self.held.extend(next.held);
        self
    }
}

impl<T: Real> Solve<'_, T> {
    /// What the code at hand is worth. The atoms' weights become those of the l1 norm that majorises the penalty there.
    pub(super) fn worth(&mut self, mut rebuilt: Rebuilt) -> Worth {
        let coder = self.coder;
        let root = coder.config.penalty.ridge().sqrt();
        let off = if coder.config.penalty.is_convex() { 0.0 } else { self.correlation_error(&rebuilt) };
        let bands: Vec<Sums> = (0..self.list.n_bands()).into_par_iter().map(|band| self.sums(band, off)).collect();
        let sums = bands.into_iter().fold(Sums::default(), Sums::and);
        let Sums { pays, weighted, l1, mass, nonzeros, ridge_cost, moved, slopes, squares, held } = sums;
        squares.iter().for_each(|square| rebuilt.terms.add_square(*square));
        self.list.reweigh(&self.tiling, &slopes, &coder.weights);
        let longest = coder.filters.energy.iter().fold(0.0_f64, |m, e| m.max(e.sqrt()));
        let steepest = self.data.as_ref().map_or(1.0, |data| data.steepest().max(1.0).sqrt());
        let weight = Weight {
            penalty: weighted + rebuilt.outlier_cost,
            mass: mass * longest.hypot(root) * steepest + rebuilt.outlier_mass,
            nonzeros: nonzeros + rebuilt.outliers,
            taps: coder.dictionary.shape().len(),
        };
        // Squares, outliers and what smoothing hides are the data term; an elastic net's squares are not.
        let data_term = 0.5 * rebuilt.terms.r_r - ridge_cost + rebuilt.outlier_cost + rebuilt.smoothed;
        let objective = data_term + ridge_cost + pays;
        let moved = if objective > 0.0 { moved / objective } else { 0.0 };
        let (penalty, l1) = (pays + ridge_cost, l1 / coder.beta);
        Worth { rebuilt, weight, objective, penalty, l1, ridge_cost, moved, squares, held }
    }

    /// The sums over a band's atoms; correlations may be off by `off`.
    fn sums(&self, band: usize, off: f64) -> Sums {
        let (coder, penalty) = (self.coder, self.coder.config.penalty);
        let (root, is_concave) = (penalty.ridge().sqrt(), !penalty.is_convex());
        let mut sums = Sums::default();
        for atom in self.list.band(band) {
            let value = atom.value.f64().abs();
            let base = if self.field.is_none() {
                coder.exact_weights[atom.filter as usize]
            } else {
                self.base_weight(atom.filter as usize, self.position(atom))
            };
            let slope = penalty.slope(base, value);
            if is_concave {
                sums.slopes.push(slope);
            }
            if value == 0.0 {
                continue;
            }
            sums.pays += penalty.value(base, value);
            sums.weighted += slope * value;
            sums.l1 += base * value;
            sums.mass += value;
            sums.nonzeros += 1;
            if root > 0.0 {
                sums.squares.push(root * atom.value.f64());
                sums.ridge_cost += 0.5 * (root * value).powi(2);
            }
            if is_concave {
                sums.moved += (slope - atom.weight.f64()).abs() * value;
                let position = self.position(atom);
                let c = coder.exact_correlation(&self.frame, &self.canvas, atom.filter as usize, position);
                sums.held.push([value, c.abs() + off, slope]);
            }
        }
        sums
    }

    /// How far an atom's correlation in f64 may be off.
    fn correlation_error(&self, rebuilt: &Rebuilt) -> f64 {
        let taps = self.coder.dictionary.shape().len() as f64;
        let longest = self.coder.filters.energy.iter().fold(0.0_f64, |m, e| m.max(e.sqrt()));
        (taps + 3.0) * (f64::EPSILON * longest * taps.sqrt() * rebuilt.size.peak + f64::MIN_POSITIVE)
    }
}

/// The factor that makes a residual feasible whose largest correlation is so many weights, rounded down.
pub(super) fn feasible(strongest: f64) -> f64 {
    if strongest > 1.0 { (1.0 - f64::EPSILON) / strongest } else { 1.0 }
}
