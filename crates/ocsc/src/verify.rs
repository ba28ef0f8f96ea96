//! Objective and duality gap of a code, recomputed from their definitions by code that shares nothing with the coders.
//!
//! **Problem**, for a sample x that may be observed in part (M) and a code z:
//!
//! ```text
//! P(z) = 1/2 || M (x - D z) ||^2 + beta sum_k w_k ||z_k||_1          z >= 0 where asked for
//! ```
//!
//! **Certificate.** With r = M (x - D z) and s = min(1, min beta w_k / |D_k^T r|), the point s r is feasible for the dual problem,
//! so min P >= s x.r - 1/2 s^2 ||r||^2. Only positive correlations count where z >= 0.
//!
//! **A second look.** A coder may know a better lower bound than that of its last residual. Where a claim is not borne out, a few
//! steps of proximal gradient descent from z look for one ([`Problem::bound`]); if they find a lower objective than the claim
//! allows, it is refuted.
//!
//! All in f64 and by plain loops on a canvas that holds every place that a filter can touch: K times the canvas times the
//! filter's area.

use crate::Boundary;
use crate::{Atom, Code, Config, Dictionary, Error, Result, Sample, Shape};
use rayon::prelude::*;

/// Steps of a second look, at most.
const STEPS: usize = 100;

/// Holds what codes are measured against.
pub struct Problem<'a> {
    dictionary: &'a Dictionary<f64>,
    boundary: Boundary,
    /// beta w_k.
    weights: Vec<f64>,
    nonnegative: bool,
}

/// Says what a code is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// P(z).
    pub objective: f64,
    /// 1/2 || M (x - D z) ||^2.
    pub data_term: f64,
    /// A lower bound on min P.
    pub dual: f64,
    /// ||M x||, the scale of rounding errors.
    pub norm: f64,
}

impl Verified {
    /// Returns the duality gap relative to the objective.
    pub fn gap(&self) -> f64 {
        self.gap_to(self.dual)
    }

    /// Returns the same for another lower bound.
    pub fn gap_to(&self, dual: f64) -> f64 {
        (self.objective - dual).max(0.0) / self.objective.max(f64::MIN_POSITIVE)
    }
}

/// The places that filters can touch, (channel, depth, height, width): the sample with what a filter needs around it.
struct Canvas {
    axes: [usize; 3],
    /// Where filters can be placed.
    positions: [usize; 3],
    /// For every place in a channel, the one that it repeats: itself, unless the sample is a circle.
    home: Vec<usize>,
    /// The sample's values, and whether they count; only at home.
    values: Vec<f64>,
    seen: Vec<bool>,
}

impl<'a> Problem<'a> {
    /// Takes the problem of a model's settings, with a weight beta of the call's choice.
    pub fn new(config: &Config, dictionary: &'a Dictionary<f64>, beta: f64) -> Self {
        let given = config.active_set.weights.as_deref().unwrap_or_default();
        let weights = (0..dictionary.n_filters()).map(|k| beta * given.get(k).copied().unwrap_or(1.0)).collect();
        Problem { dictionary, boundary: config.boundary, weights, nonnegative: config.active_set.nonnegative }
    }

    /// Recomputes what a code is worth.
    pub fn verify(&self, sample: &Sample<f64>, code: &Code<f64>) -> Result<Verified> {
        let canvas = self.canvas(sample, code)?;
        if let Some(atom) = code.atoms().iter().find(|a| self.nonnegative && a.value < 0.0) {
            return Err(Error::invalid("code", "no negative values, as the model says", atom.value));
        }
        let residual = self.residual(&canvas, code.atoms());
        Ok(self.worth(&canvas, code.atoms(), &residual))
    }

    /// Returns the best lower bound on min P, and the lowest objective, that descent from a code finds; it ends when the bound
    /// is within `gap` of the code's objective, or the objective falls further below it.
    pub fn bound(&self, sample: &Sample<f64>, code: &Code<f64>, gap: f64) -> Result<(f64, f64)> {
        let canvas = self.canvas(sample, code)?;
        let mut atoms = code.atoms().to_vec();
        let mut residual = self.residual(&canvas, &atoms);
        let first = self.worth(&canvas, &atoms, &residual);
        let mut dual = first.dual;
        let mut objective = first.objective;
        let mut curvature = 1.0;
        let wanted = first.objective * (1.0 - gap);
        for _ in 0..STEPS {
            if dual >= wanted || objective < wanted {
                break;
            }
            let (next, after, worth) = loop {
                let next = self.step(&canvas, &atoms, &residual, curvature);
                let after = self.residual(&canvas, &next);
                let worth = self.worth(&canvas, &next, &after);
                if worth.objective <= objective || curvature > 1e12 {
                    break (next, after, worth);
                }
                curvature *= 2.0;
            };
            curvature *= 0.8;
            (atoms, residual) = (next, after);
            (dual, objective) = (dual.max(worth.dual), objective.min(worth.objective));
        }
        Ok((dual, objective))
    }

    fn canvas(&self, sample: &Sample<f64>, code: &Code<f64>) -> Result<Canvas> {
        let (s, f) = (sample.shape(), self.dictionary.shape());
        self.dictionary.check_sample_shape(s)?;
        let circular = self.boundary == Boundary::Circular;
        let margin = f.spatial().map(|n| n - 1);
        let positions: [usize; 3] = std::array::from_fn(|i| s.spatial()[i] + if circular { 0 } else { margin[i] });
        if code.shape() != positions || code.n_filters() != self.dictionary.n_filters() {
            let expected = format!("{} filters at {positions:?} positions", self.dictionary.n_filters());
            return Err(Error::invalid("code", expected, format!("{} at {:?}", code.n_filters(), code.shape())));
        }
        let axes: [usize; 3] = std::array::from_fn(|i| positions[i] + margin[i]);
        let cells: usize = axes.iter().product();
        let mut canvas = Canvas { axes, positions, home: (0..cells).collect(), values: vec![], seen: vec![] };
        canvas.values = vec![0.0; s.channels * cells];
        // Outside of the sample there are zeros, which count with the boundary `zero` alone.
        canvas.seen = vec![self.boundary == Boundary::Zero; s.channels * cells];
        for cell in 0..cells {
            let at = [cell / (axes[1] * axes[2]), cell / axes[2] % axes[1], cell % axes[2]];
            let inside: Option<[usize; 3]> = if circular {
                let home: [usize; 3] = std::array::from_fn(|i| at[i] % s.spatial()[i]);
                canvas.home[cell] = (home[0] * axes[1] + home[1]) * axes[2] + home[2];
                (home == at).then_some(home)
            } else {
                let fits = (0..3).all(|i| (margin[i]..margin[i] + s.spatial()[i]).contains(&at[i]));
                fits.then(|| std::array::from_fn(|i| at[i] - margin[i]))
            };
            let Some([z, y, x]) = inside else { continue };
            for c in 0..s.channels {
                let pixel = ((c * s.depth + z) * s.height + y) * s.width + x;
                let seen = sample.mask().is_none_or(|mask| mask[pixel]);
                canvas.seen[c * cells + cell] = seen;
                canvas.values[c * cells + cell] = if seen { sample.data()[pixel] } else { 0.0 };
            }
        }
        Ok(canvas)
    }

    /// M (x - D z), repeated on the canvas where the sample is a circle.
    fn residual(&self, canvas: &Canvas, atoms: &[Atom<f64>]) -> Vec<f64> {
        let (f, cells) = (self.dictionary.shape(), canvas.cells());
        let mut estimate = vec![0.0; canvas.values.len()];
        for atom in atoms {
            let corner = canvas.corner(atom.position as usize);
            for (row, taps) in self.dictionary.filter(atom.filter as usize).chunks(f.width).enumerate() {
                let line = &mut estimate[corner + canvas.row(f, row)..][..f.width];
                line.iter_mut().zip(taps).for_each(|(e, tap)| *e += atom.value * tap);
            }
        }
        for (i, home) in (0..estimate.len()).map(|i| (i, i / cells * cells + canvas.home[i % cells])) {
            if home != i {
                estimate[home] += estimate[i];
            }
        }
        let at_home = |i: usize| if canvas.seen[i] { canvas.values[i] - estimate[i] } else { 0.0 };
        (0..estimate.len()).map(|i| at_home(i / cells * cells + canvas.home[i % cells])).collect()
    }

    fn worth(&self, canvas: &Canvas, atoms: &[Atom<f64>], residual: &[f64]) -> Verified {
        let cells = canvas.cells();
        let homes = || (0..residual.len()).filter(|i| canvas.home[i % cells] == i % cells);
        let r_r: f64 = homes().map(|i| residual[i] * residual[i]).sum();
        let x_r: f64 = homes().map(|i| canvas.values[i] * residual[i]).sum();
        let norm = homes().map(|i| canvas.values[i] * canvas.values[i]).sum::<f64>().sqrt();
        let strongest = self.each_line(canvas, residual, |k, _, line| {
            let size = |c: &f64| if self.nonnegative { *c } else { c.abs() };
            line.iter().map(size).fold(0.0, f64::max) / self.weights[k]
        });
        let s = 1.0 / strongest.into_iter().fold(1.0, f64::max);
        let l1: f64 = atoms.iter().map(|a| self.weights[a.filter as usize] * a.value.abs()).sum();
        Verified { objective: 0.5 * r_r + l1, data_term: 0.5 * r_r, dual: s * x_r - 0.5 * s * s * r_r, norm }
    }

    /// prox( z + D^T r / L ), the non-zeros only.
    fn step(&self, canvas: &Canvas, atoms: &[Atom<f64>], residual: &[f64], curvature: f64) -> Vec<Atom<f64>> {
        let width = canvas.positions[2];
        let lines = self.each_line(canvas, residual, |k, first, line| {
            let mut values = line.iter().map(|c| c / curvature).collect::<Vec<f64>>();
            let from = atoms.partition_point(|a| (a.filter as usize, a.position as usize) < (k, first));
            let old =
                atoms[from..].iter().take_while(|a| (a.filter as usize, a.position as usize) < (k, first + width));
            old.for_each(|a| values[a.position as usize - first] += a.value);
            let threshold = self.weights[k] / curvature;
            let shrunk = values.into_iter().enumerate().filter_map(|(x, v)| {
                let value = v.signum() * (v.abs() - threshold).max(0.0);
                let kept = value != 0.0 && !(self.nonnegative && value < 0.0);
                kept.then_some(Atom { filter: k as u32, position: (first + x) as u32, value })
            });
            shrunk.collect::<Vec<_>>()
        });
        lines.into_iter().flatten().collect()
    }

    /// Hands over D_k^T r line by line, with the first position of each, in the order of filters and positions.
    fn each_line<R: Send>(
        &self,
        canvas: &Canvas,
        residual: &[f64],
        visit: impl Fn(usize, usize, &[f64]) -> R + Sync,
    ) -> Vec<R> {
        let (f, width) = (self.dictionary.shape(), canvas.positions[2]);
        let lines = canvas.positions[0] * canvas.positions[1];
        let of_filter = |k: usize| {
            let mut sums = vec![0.0; width];
            let one = |line: usize| {
                sums.fill(0.0);
                let corner = canvas.corner(line * width);
                for (row, taps) in self.dictionary.filter(k).chunks(f.width).enumerate() {
                    for (x, tap) in taps.iter().enumerate() {
                        let shifted = &residual[corner + canvas.row(f, row) + x..][..width];
                        sums.iter_mut().zip(shifted).for_each(|(sum, r)| *sum += tap * r);
                    }
                }
                visit(k, line * width, &sums)
            };
            (0..lines).map(one).collect::<Vec<R>>()
        };
        (0..self.dictionary.n_filters()).into_par_iter().flat_map_iter(of_filter).collect()
    }
}

impl Canvas {
    fn cells(&self) -> usize {
        self.axes.iter().product()
    }

    /// Where the first corner of a filter at a flat position lies.
    fn corner(&self, position: usize) -> usize {
        let [_, height, width] = self.positions;
        let (z, y, x) = (position / (height * width), position / width % height, position % width);
        (z * self.axes[1] + y) * self.axes[2] + x
    }

    /// Where row `row` of a filter, (channel, depth, height), lies from its corner on.
    fn row(&self, f: Shape, row: usize) -> usize {
        let (c, z, y) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
        c * self.cells() + (z * self.axes[1] + y) * self.axes[2]
    }
}
