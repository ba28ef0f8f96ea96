//! Codes whose channels share their support: the l2,1 norm over channels, certified.
//!
//! **Problem**: samples of several channels that are coded by themselves (the step `per-channel`), z_k(c, p) the coefficient of filter
//! k on channel c at place p:
//!
//! ```text
//! min over z   1/2 || W^1/2 (x - D z) ||^2 + sum_k w_k sum_p || z_k(., p) ||_2          z >= 0 where asked for
//! ```
//!
//! An edge that all channels share then pays once, and the channels of a filter at a place are zero together or not at all.
//!
//! **Algorithm**: that of the active set (`active_set/mod.rs`), on groups of C coefficients. Filters of different channels do not
//! overlap, so the curvature of a group is a number L per channel, and a step is, with c = d_k^T W r on the channels of the group,
//!
//! ```text
//! u = z + c / L,      z <- max(0, 1 - w_k / (L ||u||)) u          L = the largest of the channels
//! ```
//!
//! which is exact where the filter lies on values that count alike, and lowers the objective everywhere.
//!
//! **Certificate.** The dual problem asks for || d_k^T W^1/2 t over the channels ||_2 <= w_k. The residual is made feasible by one
//! scale, as in `certificate.rs`; the best bound of all rounds counts. Everything is in f64, of the values as they are returned.
//!
//! **Cost**: a full correlation per round, about ten rounds. **Memory**: the sample, its non-zeros and one map per thread.
//!
//! Yuan and Lin, "Model selection and estimation in regression with grouped variables", 2006.

use super::certificate::{Terms, Weight};
use super::support::Canvas;
use super::{ActiveSetConfig, Coded, Coder, Status, Weights, relative};
use crate::metrics::Objective;
use crate::monitor::{Monitor, Round, Silent, check_wanted};
use crate::setting::positive;
use crate::simd::{Kernel, dispatch};
use crate::{Atom, Boundary, Code, Dictionary, Error, Real, Result, Sample};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// The list starts with at most this many groups per place and then grows by at most this factor, and always by so many.
const FIRST: f64 = 0.2;
const GROWTH: f64 = 3.0;
const LEAST: usize = 16;
/// Violations below this fraction of the tolerance are left alone: they cannot keep the gap above it.
const IGNORE: f64 = 0.1;
/// Descent stops when its largest step is below this fraction of the largest violation, or after so many sweeps.
const INNER: f64 = 0.1;
const MAX_SWEEPS: usize = 100;
/// A round that does not lower the gap to this fraction is followed by one of half the inner tolerance and twice the sweeps; after
/// so many of them in a row the coder gives up.
const PROGRESS: f64 = 0.9;
const PATIENCE: u32 = 8;

/// The coder of jointly sparse channels.
pub struct Joint<T: Real> {
    dictionary: Dictionary<T>,
    beta: f64,
    tol: f64,
    boundary: Boundary,
    config: ActiveSetConfig,
    /// w_k.
    weights: Vec<f64>,
}

impl<T: Real> Joint<T> {
    /// A coder for a dictionary of gray filters; settings as validated by [`crate::Config::validate`].
    pub fn new(
        dictionary: &Dictionary<T>,
        beta: f64,
        tol: f64,
        boundary: Boundary,
        config: ActiveSetConfig,
    ) -> Result<Self> {
        positive("beta", beta)?;
        positive("tol", tol)?;
        let dictionary = dictionary.clone();
        let mut coder = Joint { dictionary, beta, tol, boundary, config, weights: Vec::new() };
        coder.weigh();
        Ok(coder)
    }

    /// Sets the weights of as many filters as there are.
    fn weigh(&mut self) {
        let given: &[f64] = match &self.config.weights {
            Weights::PerFilter(weights) => weights,
            _ => &[],
        };
        let weight = |k: usize| self.beta * given.get(k).copied().unwrap_or(1.0);
        self.weights = (0..self.dictionary.n_filters()).map(weight).collect();
    }

    /// Codes one sample; see [`Coder::code`].
    pub(super) fn solve(&self, sample: &Sample<T>, start: Option<&Code<T>>, monitor: &dyn Monitor) -> Result<Coded<T>> {
        check_wanted(monitor)?;
        let start_time = monitor.now();
        let mut solve = Solve::new(self, sample, start)?;
        let mut round = 0;
        // Rounds in a row without progress, and the best gap so far.
        let mut stale = 0_u32;
        let mut best = f64::INFINITY;
        // The best bound on the minimum that any round has proven.
        let mut lower = 0.0_f64;
        loop {
            solve.rebuild();
            let scan = solve.scan();
            let (terms, weight) = solve.worth();
            let objective = terms.objective(&weight);
            let bound = (scan.strongest * (1.0 + f64::EPSILON * 8.0) + solve.rounding(terms.peak)).max(1.0);
            let own = terms.gap(1.0 / bound, &weight);
            lower = lower.max(terms.lower_bound(own, &weight));
            let gap = own.min(terms.gap_above(lower, &weight));
            let is_over = |limit| monitor.now().saturating_sub(start_time).as_secs_f64() >= limit;
            let out_of_time = self.config.time_limit.is_some_and(is_over);
            let converged = relative(gap, objective) <= self.tol;
            if converged || round == self.config.max_rounds || stale == PATIENCE || out_of_time {
                let status = match (converged, out_of_time) {
                    (true, _) => Status::Converged,
                    (_, true) => Status::TimeLimit,
                    _ => Status::MaxIters,
                };
                return solve.finish(&terms, &weight, gap, round, status);
            }
            round += 1;
            monitor.round(&Round { values: sample.data().len(), round, gap: relative(gap, objective) });
            check_wanted(monitor)?;
            stale = if gap < PROGRESS * best { 0 } else { stale + 1 };
            best = best.min(gap);
            solve.join(scan.candidates);
            let small = (INNER * (scan.strongest - 1.0)).max(IGNORE * self.tol) / f64::from(1 << stale);
            solve.descend(small, MAX_SWEEPS << stale);
        }
    }
}

impl<T: Real> Coder<T> for Joint<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        self.dictionary = dictionary.clone();
        self.weigh();
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        rayon::join(|| self.solve(sample, start, &Silent), || ()).0
    }

    fn code_all(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Vec<Coded<T>>> {
        samples.par_iter().map(|sample| self.solve(sample, None, monitor).inspect(|_| monitor.coded())).collect()
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        Ok(Solve::new(self, sample, None)?.scan().strongest * self.beta)
    }
}

/// The coefficients of one filter at one place on all channels.
struct Group {
    filter: u32,
    /// The position on the first channel; those on the others follow at equal distances.
    place: u32,
    /// The largest curvature of its channels.
    curvature: f64,
    /// (C)
    values: Vec<f64>,
}

/// A group that violates optimality: || d_k^T W r || / w_k, and which it is.
#[derive(Clone, Copy)]
struct Candidate {
    strength: f64,
    filter: u32,
    place: u32,
}

struct Scan {
    strongest: f64,
    candidates: Vec<Candidate>,
}

/// One sample while it is coded.
struct Solve<'a, T: Real> {
    coder: &'a Joint<T>,
    canvas: Canvas,
    channels: usize,
    /// Places of one channel.
    places: usize,
    /// x - D z on the canvas.
    residual: Vec<f64>,
    groups: Vec<Group>,
}

impl<'a, T: Real> Solve<'a, T> {
    fn new(coder: &'a Joint<T>, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Self> {
        let dictionary = &coder.dictionary;
        dictionary.check_sample_shape(sample.shape())?;
        if sample.coefficient_weights().is_some() {
            return Err(Error::invalid("weights of coefficients", "none with `joint`", "some"));
        }
        let canvas = Canvas::new(sample, dictionary, coder.boundary);
        let axis = 2 - dictionary.rank().min(2);
        if dictionary.shape().channels != 1 || dictionary.shape().spatial()[axis] != 1 {
            let expected = "filters of one channel, on samples prepared by the step per-channel";
            return Err(Error::invalid("joint", expected, format!("filters of {}", dictionary.shape())));
        }
        let channels = canvas.positions[axis];
        let places = canvas.positions.iter().product::<usize>() / channels;
        let residual = canvas.values.clone();
        let mut solve = Solve { coder, canvas, channels, places, residual, groups: Vec::new() };
        if let Some(code) = start {
            if code.n_filters() != dictionary.n_filters() || code.shape() != solve.canvas.positions {
                let expected = format!("{} filters on {:?}", dictionary.n_filters(), solve.canvas.positions);
                let found = format!("{} filters on {:?}", code.n_filters(), code.shape());
                return Err(Error::invalid("the starting code", expected, found));
            }
            solve.start(code);
        }
        Ok(solve)
    }

    /// Takes the non-zeros of a code.
    fn start(&mut self, code: &Code<T>) {
        let mut index: HashMap<(u32, u32), usize> = HashMap::new();
        for atom in code.atoms() {
            let value = atom.value.f64();
            if self.coder.config.nonnegative && value < 0.0 {
                continue;
            }
            let (channel, place) = (atom.position as usize / self.places, atom.position % self.places as u32);
            let at = *index.entry((atom.filter, place)).or_insert_with(|| {
                self.groups.push(self.group(atom.filter, place));
                self.groups.len() - 1
            });
            self.groups[at].values[channel] = value;
        }
    }

    /// A group of zeros.
    fn group(&self, filter: u32, place: u32) -> Group {
        let energy = |channel: usize| {
            let mut sum = 0.0;
            let position = channel * self.places + place as usize;
            self.canvas.each_tap(&self.coder.dictionary, filter as usize, position, |cell, tap| {
                sum += self.canvas.weights[cell] * tap * tap;
            });
            sum
        };
        let curvature = (0..self.channels).map(energy).fold(0.0, f64::max);
        Group { filter, place, curvature, values: vec![0.0; self.channels] }
    }

    /// Rounds the values as they will be returned, forgets groups of zeros, and computes x - D z anew.
    fn rebuild(&mut self) {
        for group in &mut self.groups {
            group.values.iter_mut().for_each(|v| *v = T::of(*v).f64());
        }
        self.groups.retain(|group| group.values.iter().any(|v| *v != 0.0));
        self.residual.copy_from_slice(&self.canvas.values);
        let Solve { coder, canvas, places, residual, groups, .. } = self;
        for group in groups.iter() {
            for (channel, value) in group.values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let position = channel * *places + group.place as usize;
                canvas.each_tap(&coder.dictionary, group.filter as usize, position, |cell, tap| {
                    residual[cell] -= value * tap;
                });
            }
        }
    }

    /// Correlates W r with all filters everywhere: the largest group in units of its weight, and the strongest of every place.
    fn scan(&self) -> Scan {
        let rows = Rows::new(&self.canvas, &self.residual, self.coder.dictionary.shape().width);
        let nothing = || vec![(0.0_f64, 0_u32); self.places];
        let filters = 0..self.coder.dictionary.n_filters();
        let stronger = |a: (f64, u32), b: (f64, u32)| if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a };
        let one = |mut best: Vec<(f64, u32)>, k: usize| {
            let map =
                rows.correlate(&self.canvas, self.coder.dictionary.filter(k), self.coder.dictionary.shape().height);
            let of_group = |place: usize| {
                let squares = map.iter().skip(place).step_by(self.places).map(|c| {
                    let c = if self.coder.config.nonnegative { c.max(0.0) } else { *c };
                    c * c
                });
                squares.sum::<f64>().sqrt() / self.coder.weights[k]
            };
            for (place, best) in best.iter_mut().enumerate() {
                *best = stronger(*best, (of_group(place), k as u32));
            }
            best
        };
        let both = |mut a: Vec<(f64, u32)>, b: Vec<(f64, u32)>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = stronger(*a, b));
            a
        };
        let best = filters.into_par_iter().fold(nothing, one).reduce(nothing, both);
        let threshold = 1.0 + IGNORE * self.coder.tol;
        let found = best.iter().enumerate().filter(|(_, (strength, _))| *strength > threshold);
        let candidate = |(place, (strength, filter)): (usize, &(f64, u32))| Candidate {
            strength: *strength,
            filter: *filter,
            place: place as u32,
        };
        Scan { strongest: best.iter().fold(0.0, |m, b| b.0.max(m)), candidates: found.map(candidate).collect() }
    }

    /// Sums for the certificate, and what the code pays.
    fn worth(&self) -> (Terms, Weight) {
        let mut terms = Terms::default();
        for ((x, r), w) in self.canvas.values.iter().zip(&self.residual).zip(&self.canvas.weights) {
            if *w > 0.0 {
                let root = w.sqrt();
                terms.add(root * x, root * (x - r), root * r, root * r);
            }
        }
        let norms = self.coder.dictionary.norms();
        let (mut penalty, mut mass, mut nonzeros) = (0.0, 0.0, 0);
        for group in &self.groups {
            let k = group.filter as usize;
            penalty += self.coder.weights[k] * norm(&group.values);
            mass += norms[k] * group.values.iter().map(|v| v.abs()).sum::<f64>();
            nonzeros += group.values.iter().filter(|v| **v != 0.0).count();
        }
        let taps = self.coder.dictionary.shape().len();
        (terms, Weight { penalty, mass, nonzeros: nonzeros * self.channels.max(1), taps })
    }

    /// How far the correlations of a group may be off, in units of the weights: n eps sum |d| |r| for each channel.
    fn rounding(&self, peak: f64) -> f64 {
        let taps = self.coder.dictionary.shape().len() as f64;
        let norms = self.coder.dictionary.norms();
        let longest = norms.iter().zip(&self.coder.weights).map(|(norm, weight)| norm / weight).fold(0.0, f64::max);
        (taps + 4.0) * f64::EPSILON * longest * taps.sqrt() * peak * (self.channels as f64).sqrt()
    }

    /// Lets the strongest candidates join that are not there yet.
    fn join(&mut self, mut candidates: Vec<Candidate>) {
        let there: HashSet<(u32, u32)> = self.groups.iter().map(|g| (g.filter, g.place)).collect();
        candidates.retain(|c| !there.contains(&(c.filter, c.place)));
        candidates.sort_by(|a, b| b.strength.total_cmp(&a.strength).then(a.place.cmp(&b.place)));
        let n = self.groups.len();
        let room = if n == 0 { FIRST * self.places as f64 } else { (GROWTH - 1.0) * n as f64 };
        candidates.truncate((room as usize).max(LEAST));
        let joining: Vec<Group> = candidates.iter().map(|c| self.group(c.filter, c.place)).collect();
        self.groups.extend(joining.into_iter().filter(|group| group.curvature > 0.0));
        self.groups.sort_by_key(|group| (group.place, group.filter));
    }

    /// Sweeps over the groups until steps are small, in units of the weights.
    fn descend(&mut self, small: f64, max_sweeps: usize) {
        for _ in 0..max_sweeps {
            let mut largest = 0.0_f64;
            for i in 0..self.groups.len() {
                largest = largest.max(self.step(i));
            }
            if largest <= small {
                break;
            }
        }
    }

    /// Moves one group to its minimum; returns how far, in units of its weight.
    fn step(&mut self, i: usize) -> f64 {
        let Solve { coder, canvas, places, residual, groups, .. } = self;
        let group = &mut groups[i];
        let (k, weight) = (group.filter as usize, coder.weights[group.filter as usize]);
        let mut target = group.values.clone();
        for (channel, u) in target.iter_mut().enumerate() {
            let mut c = 0.0;
            canvas.each_tap(&coder.dictionary, k, channel * *places + group.place as usize, |cell, tap| {
                c += tap * canvas.weights[cell] * residual[cell];
            });
            *u += c / group.curvature;
            if coder.config.nonnegative {
                *u = u.max(0.0);
            }
        }
        let shrink = (1.0 - weight / (group.curvature * norm(&target)).max(f64::MIN_POSITIVE)).max(0.0);
        let mut moved = 0.0;
        for (channel, (value, u)) in group.values.iter_mut().zip(target).enumerate() {
            let change = shrink * u - *value;
            if change == 0.0 {
                continue;
            }
            *value += change;
            moved += change * change;
            canvas.each_tap(&coder.dictionary, k, channel * *places + group.place as usize, |cell, tap| {
                residual[cell] -= change * tap;
            });
        }
        moved.sqrt() * group.curvature / weight
    }

    fn finish(&self, terms: &Terms, weight: &Weight, gap: f64, iterations: usize, status: Status) -> Result<Coded<T>> {
        let mut atoms = Vec::new();
        for group in &self.groups {
            for (channel, value) in group.values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let position = channel as u32 * self.places as u32 + group.place;
                atoms.push(Atom { filter: group.filter, position, value: T::of(*value) });
            }
        }
        let code = Code::new(self.coder.dictionary.n_filters(), self.canvas.positions, atoms)?;
        let (beta, penalty) = (self.coder.beta, weight.penalty);
        let objective = Objective { data_term: 0.5 * terms.r_r, l1: penalty / beta };
        let (filters, moved, outliers) = (None, 0.0, 0);
        Ok(Coded { code, filters, objective, penalty, beta, gap, moved, outliers, iterations, status })
    }
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// W r, row by row, with the first columns again at the end where the sample is a circle.
struct Rows {
    /// Numbers from one row to the next: the positions and what a filter covers beyond the last.
    stride: usize,
    data: Vec<f64>,
}

impl Rows {
    fn new(canvas: &Canvas, residual: &[f64], filter_width: usize) -> Self {
        let stride = canvas.positions[2] + filter_width - 1;
        let width = canvas.axes[2];
        let weighted: Vec<f64> = residual.iter().zip(&canvas.weights).map(|(r, w)| w * r).collect();
        let data = weighted.chunks_exact(width).flat_map(|row| (0..stride).map(|x| row[x % width])).collect();
        Rows { stride, data }
    }

    /// d_k^T W r at all positions, for a filter of one channel and one slice.
    fn correlate<T: Real>(&self, canvas: &Canvas, filter: &[T], filter_height: usize) -> Vec<f64> {
        let mut map = vec![0.0; canvas.positions.iter().product()];
        let [_, height, width] = canvas.positions;
        for (line, out) in map.chunks_exact_mut(width).enumerate() {
            let (slice, y) = (line / height, line % height);
            for (dy, taps) in filter.chunks_exact(filter.len() / filter_height).enumerate() {
                let row = slice * canvas.axes[1] + (y + dy) % canvas.axes[1];
                dispatch(AddRow { out, taps, row: &self.data[row * self.stride..][..self.stride] });
            }
        }
        map
    }
}

/// out(x) += sum_j taps(j) row(x + j).
struct AddRow<'a, T> {
    out: &'a mut [f64],
    taps: &'a [T],
    row: &'a [f64],
}

impl<T: Real> Kernel for AddRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (j, tap) in self.taps.iter().enumerate() {
            let (tap, shifted) = (tap.f64(), &self.row[j..][..self.out.len()]);
            self.out.iter_mut().zip(shifted).for_each(|(o, r)| *o = r.fused::<FMA>(tap, *o));
        }
    }
}
