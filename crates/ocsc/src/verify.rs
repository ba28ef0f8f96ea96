//! Objective and duality gap of a code, recomputed from their definitions by code that shares nothing with the coders.
//!
//! **Problem**, for a sample x whose values count W and a code z:
//!
//! ```text
//! P(z) = sum W rho(x - D z) + sum_j p(|z_j|)          z >= 0 where asked for
//! ```
//!
//! with a loss rho and a penalty p of slope b_j = beta w_j at zero (`loss.rs`, `penalty.rs` say their formulas; the plain problem is
//! rho(r) = r^2 / 2 and p = b_j |z_j|).
//!
//! **Certificate.** q = W psi(r), psi = rho', is a dual point once it is multiplied by s = min(1, min b_j / |d_j^T q - mu z_j|):
//!
//! ```text
//! min P >= s x.q - 1/2 s^2 sum q^2 / W - 1/2 s^2 mu ||z||^2
//! ```
//!
//! (mu of an elastic net, else 0; for the modulus without the squares, and q = W clip(r / h) for the best of several h). Only
//! positive correlations count where z >= 0. Where channels are jointly sparse, |z_j| and |d_j^T q| are the Euclidean norms over the
//! channels of a filter at a place. A concave penalty is replaced by the l1 norm of weights p'(|z_j|) that majorises it, and
//! its code is held against those whose non-zeros are at most twice as large, as the coder's gap is.
//!
//! **A second look.** A coder may know a better lower bound than that of its last residual. Where a claim is not borne out,
//! [`Problem::bound`] looks for one in two ways. It multiplies q by a field that is below 1 only around the places where a
//! correlation exceeds its weight, a few times over, before it scales what is left as a whole. And it makes steps of proximal
//! gradient descent from z; if they find a lower objective than the claim allows, it is refuted.
//!
//! All in f64 and by plain loops on a canvas that holds every place that a filter can touch: K times the canvas times the
//! filter's area.

use crate::coder::Weights;
use crate::{Atom, Boundary, Code, Config, Dictionary, Error, Loss, Penalty, Result, Sample, Shape};
use rayon::prelude::*;
use std::collections::HashMap;

/// Steps of a second look, at most.
const STEPS: usize = 100;
/// How often a field is refined, at most, and what it must gain each time, as a fraction of the gap.
const REFINED: usize = 4;
const GAIN: f64 = 0.01;

/// Holds what codes are measured against.
pub struct Problem<'a> {
    dictionary: &'a Dictionary<f64>,
    boundary: Boundary,
    /// beta w_k.
    weights: Vec<f64>,
    /// EPS of the rule by which coefficients weigh 1 / (|D^T W psi(x)| + EPS).
    inverse: Option<f64>,
    penalty: Penalty,
    loss: Loss,
    nonnegative: bool,
    joint: bool,
}

/// The code of a concave penalty is held against codes whose non-zeros are at most this many times its own.
const BOX: f64 = 2.0;

/// Says what a code is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// P(z).
    pub objective: f64,
    /// sum W rho(x - D z).
    pub data_term: f64,
    /// A lower bound on min P.
    pub dual: f64,
    /// ||W^1/2 x||, the scale of rounding errors.
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
    /// The sample's values, and how much they count; only at home.
    values: Vec<f64>,
    counts: Vec<f64>,
    /// What the weights of coefficients are multiplied by, (filter, position); empty for nothing.
    own: Vec<f64>,
}

/// A correlation as far as it may not exceed its weight, and the coefficient there.
struct Strength {
    position: usize,
    value: f64,
    size: f64,
    base: f64,
}

impl<'a> Problem<'a> {
    /// Takes the problem of a model's settings, with a weight beta of the call's choice.
    pub fn new(config: &Config, dictionary: &'a Dictionary<f64>, beta: f64) -> Self {
        let given: &[f64] = match &config.active_set.weights {
            Weights::PerFilter(weights) => weights,
            _ => &[],
        };
        let weights = (0..dictionary.n_filters()).map(|k| beta * given.get(k).copied().unwrap_or(1.0)).collect();
        let inverse = match config.active_set.weights {
            Weights::Inverse(eps) => Some(eps),
            _ => None,
        };
        let (penalty, loss) = (config.active_set.penalty, config.active_set.loss);
        let (nonnegative, joint) = (config.active_set.nonnegative, config.active_set.joint);
        Problem { dictionary, boundary: config.boundary, weights, inverse, penalty, loss, nonnegative, joint }
    }

    /// The places of one channel, where channels are jointly sparse: their slices follow each other.
    fn places(&self, canvas: &Canvas) -> usize {
        let channels = canvas.positions[2 - self.dictionary.rank().min(2)];
        canvas.positions.iter().product::<usize>() / channels
    }

    /// sum_k w_k sum_p || z_k(., p) ||_2.
    fn joint_norm(&self, canvas: &Canvas, atoms: &[Atom<f64>]) -> f64 {
        let places = self.places(canvas);
        let mut squares: HashMap<(u32, usize), f64> = HashMap::new();
        for a in atoms {
            *squares.entry((a.filter, a.position as usize % places)).or_default() += a.value * a.value;
        }
        let mut norms: Vec<_> = squares.into_iter().collect();
        norms.sort_by_key(|(group, _)| *group);
        norms.into_iter().map(|((k, _), squares)| self.weights[k as usize] * squares.sqrt()).sum()
    }

    /// d_k^T of an image everywhere, for every filter.
    fn maps(&self, canvas: &Canvas, image: &[f64]) -> Vec<Vec<f64>> {
        let lines = self.each_line(canvas, image, |_, _, line| line.to_vec());
        let per_filter = canvas.positions[0] * canvas.positions[1];
        lines.chunks(per_filter).map(|lines| lines.concat()).collect()
    }

    /// || d_k^T q over the channels || / w_k, at least 1.
    fn joint_feasible(&self, canvas: &Canvas, q: &[f64]) -> f64 {
        let places = self.places(canvas);
        let mut strongest = 1.0_f64;
        for (map, weight) in self.maps(canvas, q).iter().zip(&self.weights) {
            for place in 0..places {
                let sizes = map[place..].iter().step_by(places).map(|c| if self.nonnegative { c.max(0.0) } else { *c });
                strongest = strongest.max(sizes.map(|c| c * c).sum::<f64>().sqrt() / weight);
            }
        }
        strongest
    }

    /// [`Problem::step`] where channels are jointly sparse.
    fn joint_step(&self, canvas: &Canvas, atoms: &[Atom<f64>], pulls: &[f64], curvature: f64) -> Vec<Atom<f64>> {
        let places = self.places(canvas);
        let mut maps = self.maps(canvas, pulls);
        maps.iter_mut().flatten().for_each(|c| *c /= curvature);
        atoms.iter().for_each(|a| maps[a.filter as usize][a.position as usize] += a.value);
        let mut next = Vec::new();
        for (k, (map, weight)) in maps.iter_mut().zip(&self.weights).enumerate() {
            if self.nonnegative {
                map.iter_mut().for_each(|v| *v = v.max(0.0));
            }
            let norm = |place: usize| map[place..].iter().step_by(places).map(|v| v * v).sum::<f64>().sqrt();
            let shrink: Vec<f64> = (0..places).map(|p| (1.0 - weight / (curvature * norm(p))).max(0.0)).collect();
            for (position, v) in map.iter().enumerate() {
                let value = shrink[position % places] * v;
                if value != 0.0 && value.is_finite() {
                    next.push(Atom { filter: k as u32, position: position as u32, value });
                }
            }
        }
        next
    }

    /// The weight of a coefficient before any reweighting.
    fn weight(&self, canvas: &Canvas, k: usize, position: usize) -> f64 {
        let own = canvas.own.get(k * canvas.positions.iter().product::<usize>() + position).copied().unwrap_or(1.0);
        self.weights[k] * own
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
        let wanted = first.objective * (1.0 - gap);
        let mut dual = self.local_dual(&canvas, &atoms, &residual, &first, wanted);
        let mut objective = first.objective;
        let mut curvature = 1.0;
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
            dual = dual.max(self.local_dual(&canvas, &atoms, &residual, &worth, wanted));
            objective = objective.min(worth.objective);
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
        let (values, counts, own) = (vec![0.0; s.channels * cells], Vec::new(), Vec::new());
        let mut canvas = Canvas { axes, positions, home: (0..cells).collect(), values, counts, own };
        // Outside of the sample there are zeros, which count with the boundary `zero` alone.
        canvas.counts = vec![if self.boundary == Boundary::Zero { 1.0 } else { 0.0 }; s.channels * cells];
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
                let weight = sample.weights().map_or(1.0, |weights| weights[pixel]);
                canvas.counts[c * cells + cell] = if seen { weight } else { 0.0 };
                canvas.values[c * cells + cell] = if seen { sample.data()[pixel] } else { 0.0 };
            }
        }
        let n_coefficients = self.dictionary.n_filters() * positions.iter().product::<usize>();
        if let Some(own) = sample.coefficient_weights() {
            if own.len() != n_coefficients {
                return Err(Error::invalid("weights of coefficients", n_coefficients, own.len()));
            }
            canvas.own = own.to_vec();
        }
        if let Some(eps) = self.inverse {
            let pulls = self.pulls(&canvas, &self.residual(&canvas, &[]), 0.0);
            let rule =
                self.each_line(&canvas, &pulls, |_, _, line| line.iter().map(|c| 1.0 / (c.abs() + eps)).collect());
            let rule: Vec<f64> = rule.into_iter().flat_map(|line: Vec<f64>| line).collect();
            canvas.own = match canvas.own.is_empty() {
                true => rule,
                false => canvas.own.iter().zip(rule).map(|(own, rule)| own * rule).collect(),
            };
        }
        Ok(canvas)
    }

    /// q = W psi(r), with the modulus smoothed by `h`.
    fn pulls(&self, canvas: &Canvas, residual: &[f64], h: f64) -> Vec<f64> {
        let cells = canvas.cells();
        let psi = |r: f64| match self.loss {
            Loss::L1 if h > 0.0 => (r / h).clamp(-1.0, 1.0),
            loss => loss.influence(r),
        };
        let count = |i: usize| canvas.counts[i / cells * cells + canvas.home[i % cells]];
        residual.iter().enumerate().map(|(i, r)| count(i) * psi(*r)).collect()
    }

    /// x - D z where it counts, repeated on the canvas where the sample is a circle.
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
        let at_home = |i: usize| if canvas.counts[i] > 0.0 { canvas.values[i] - estimate[i] } else { 0.0 };
        (0..estimate.len()).map(|i| at_home(i / cells * cells + canvas.home[i % cells])).collect()
    }

    fn worth(&self, canvas: &Canvas, atoms: &[Atom<f64>], residual: &[f64]) -> Verified {
        let cells = canvas.cells();
        let homes = || (0..residual.len()).filter(|i| canvas.home[i % cells] == i % cells && canvas.counts[*i] > 0.0);
        let norm = homes().map(|i| canvas.counts[i] * canvas.values[i] * canvas.values[i]).sum::<f64>().sqrt();
        let data_term: f64 = homes().map(|i| canvas.counts[i] * self.loss.value(residual[i])).sum();
        let base = |a: &Atom<f64>| self.weight(canvas, a.filter as usize, a.position as usize);
        let squares: f64 = atoms.iter().map(|a| a.value * a.value).sum::<f64>() * self.penalty.ridge();
        let alone = || atoms.iter().map(|a| self.penalty.value(base(a), a.value.abs())).sum();
        let pays: f64 = if self.joint { self.joint_norm(canvas, atoms) } else { alone() };
        let objective = data_term + pays + 0.5 * squares;
        // What majorises a concave penalty pays less than it by a constant.
        let slopes = || atoms.iter().map(|a| self.penalty.slope(base(a), a.value.abs()) * a.value.abs()).sum();
        let weighted: f64 = if self.joint { pays } else { slopes() };
        let largest = residual.iter().fold(0.0_f64, |m, r| m.max(r.abs()));
        let smoothing = if self.loss == Loss::L1 { 0..40 } else { 0..1 };
        let dual = smoothing.map(|i| {
            let q = self.pulls(canvas, residual, largest * 0.6_f64.powi(i));
            let (strongest, held) = match self.joint {
                true => (self.joint_feasible(canvas, &q), Vec::new()),
                false => self.feasible(canvas, atoms, &q),
            };
            let excess: f64 = held.iter().map(|[value, c, w]| BOX * value * (c / strongest - w).max(0.0)).sum();
            self.dual_value(canvas, &q, squares, strongest) - excess
        });
        let dual = dual.fold(0.0, f64::max) + pays - weighted;
        Verified { objective, data_term, dual, norm }
    }

    /// The best lower bound on min P of residuals that are scaled where they must be; it looks no further once that is `wanted`. Only
    /// squares of the residual and convex penalties are scaled so; of other problems it returns what is known.
    fn local_dual(&self, canvas: &Canvas, atoms: &[Atom<f64>], residual: &[f64], known: &Verified, wanted: f64) -> f64 {
        if self.joint || self.loss != Loss::L2 || !self.penalty.is_convex() {
            return known.dual;
        }
        let squares: f64 = atoms.iter().map(|a| a.value * a.value).sum::<f64>() * self.penalty.ridge();
        let mut q = self.pulls(canvas, residual, 0.0);
        let mut best = known.dual;
        for _ in 0..REFINED {
            if best >= wanted {
                break;
            }
            self.shrink_violators(canvas, atoms, &mut q);
            let dual = self.dual_value(canvas, &q, squares, self.feasible(canvas, atoms, &q).0);
            let gained = dual - best;
            best = best.max(dual);
            if gained < GAIN * (known.objective - best) {
                break;
            }
        }
        best
    }

    /// Divides q by v, the most that a correlation at a place exceeds its weight by, on the window of that place; where windows
    /// overlap, by the largest v.
    fn shrink_violators(&self, canvas: &Canvas, atoms: &[Atom<f64>], q: &mut [f64]) {
        let violators = self.strengths(canvas, atoms, q, |line| {
            let excess = |at: Strength| (at.position, at.size / at.base);
            line.map(excess).filter(|(_, v)| *v > 1.0).collect::<Vec<_>>()
        });
        let (f, cells) = (self.dictionary.shape(), canvas.cells());
        let mut divisor = vec![1.0_f64; q.len()];
        for (position, v) in violators.into_iter().flatten() {
            let corner = canvas.corner(position);
            for row in 0..f.channels * f.depth * f.height {
                let window = &mut divisor[corner + canvas.row(f, row)..][..f.width];
                window.iter_mut().for_each(|d| *d = d.max(v));
            }
        }
        let home = |i: usize| i / cells * cells + canvas.home[i % cells];
        for i in 0..divisor.len() {
            divisor[home(i)] = divisor[home(i)].max(divisor[i]);
        }
        for i in 0..q.len() {
            q[i] /= divisor[home(i)];
        }
    }

    /// What a dual point q proves once it is divided by `strongest`, without what codes of concave penalties are held against.
    fn dual_value(&self, canvas: &Canvas, q: &[f64], squares: f64, strongest: f64) -> f64 {
        let cells = canvas.cells();
        let homes = || (0..q.len()).filter(|i| canvas.home[i % cells] == i % cells && canvas.counts[*i] > 0.0);
        let s = 1.0 / strongest;
        let x_q: f64 = homes().map(|i| canvas.values[i] * q[i]).sum();
        let q_q: f64 = homes().map(|i| q[i] * q[i] / canvas.counts[i]).sum();
        let q_q = if self.loss == Loss::L1 { 0.0 } else { q_q };
        s * x_q - 0.5 * s * s * (q_q + squares)
    }

    /// The most that a correlation of q exceeds its weight by, as a factor of at least 1; and for the non-zeros of a concave penalty
    /// their modulus, correlation and weight, which are held against a box instead.
    fn feasible(&self, canvas: &Canvas, atoms: &[Atom<f64>], q: &[f64]) -> (f64, Vec<[f64; 3]>) {
        let is_concave = !self.penalty.is_convex();
        let lines = self.strengths(canvas, atoms, q, |line| {
            let (mut top, mut held) = (1.0_f64, Vec::new());
            for Strength { value, size, base, .. } in line {
                if is_concave && value != 0.0 {
                    held.push([value.abs(), size, self.penalty.slope(base, value.abs())]);
                }
                top = top.max(size / base);
            }
            (top, held)
        });
        let strongest = lines.iter().fold(1.0, |m, (top, _)| top.max(m));
        (strongest, lines.into_iter().flat_map(|(_, held)| held).collect())
    }

    /// What `of` makes of the correlations of q, line by line.
    fn strengths<R: Send>(
        &self,
        canvas: &Canvas,
        atoms: &[Atom<f64>],
        q: &[f64],
        of: impl Fn(&mut dyn Iterator<Item = Strength>) -> R + Sync,
    ) -> Vec<R> {
        let values: HashMap<(usize, usize), f64> =
            atoms.iter().map(|a| ((a.filter as usize, a.position as usize), a.value)).collect();
        let mu = self.penalty.ridge();
        self.each_line(canvas, q, |k, first, line| {
            of(&mut line.iter().enumerate().map(|(x, c)| {
                let (position, value) = (first + x, values.get(&(k, first + x)).copied().unwrap_or(0.0));
                let c = c - mu * value;
                let size = if self.nonnegative { c } else { c.abs() };
                Strength { position, value, size, base: self.weight(canvas, k, position) }
            }))
        })
    }

    /// prox( z + D^T r / L ), the non-zeros only.
    fn step(&self, canvas: &Canvas, atoms: &[Atom<f64>], residual: &[f64], curvature: f64) -> Vec<Atom<f64>> {
        let width = canvas.positions[2];
        let pulls = self.pulls(canvas, residual, 0.0);
        if self.joint {
            return self.joint_step(canvas, atoms, &pulls, curvature);
        }
        let shrink = 1.0 / (1.0 + self.penalty.ridge() / curvature);
        let lines = self.each_line(canvas, &pulls, |k, first, line| {
            let mut values = line.iter().map(|c| c / curvature).collect::<Vec<f64>>();
            let from = atoms.partition_point(|a| (a.filter as usize, a.position as usize) < (k, first));
            let old =
                atoms[from..].iter().take_while(|a| (a.filter as usize, a.position as usize) < (k, first + width));
            old.for_each(|a| values[a.position as usize - first] += a.value);
            let shrunk = values.into_iter().enumerate().filter_map(|(x, v)| {
                let threshold = self.weight(canvas, k, first + x) / curvature;
                let value = shrink * v.signum() * (v.abs() - threshold).max(0.0);
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
