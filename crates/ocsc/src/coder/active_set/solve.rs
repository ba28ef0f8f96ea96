//! The rounds of the active-set coder for one sample.

use super::ActiveSet;
use super::descend::{Active, General, Setting};
use super::field::{Field, Ridge};
use super::frame::Frame;
use super::list::List;
use super::local::is_large;
use super::residual::{DataWeights, Rebuilt};
use super::scan::{Candidate, Own, Report, Scan, strongest_of};
use super::tiling::Tiling;
use super::worth::Worth;
use crate::coder::support::far_values;
use crate::coder::{Admm, Coded, Coder, CoderConfig, Status, Weights, relative};
use crate::metrics::Objective;
use crate::monitor::{Monitor, Round, check_wanted};
use crate::{Atom, Boundary, Code, Error, Loss, Penalty, Real, Result, Sample};
use rayon::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// The list starts with at most this many atoms per position and then grows by at most this factor.
const FIRST: f64 = 0.3;
const GROWTH: f64 = 2.5;
/// It may always grow by so many, however short it is.
const LEAST: usize = 16;
/// Violations below this fraction of the tolerance are left alone: they cannot keep the gap above it.
const IGNORE: f64 = 0.3;
/// Once no correlation exceeds its weight by more than this factor, all atoms that may come to violate optimality join, not
/// only those that do: those within this fraction of the last excess, and at most so far, below their weight.
const NEAR: f64 = 4.0;
const MARGIN: f64 = 0.06;
const WIDEST_MARGIN: f64 = 0.1;
/// With more non-zeros per number of the sample than this, the code goes to [`Admm`], if that needs no more memory than this, for at most
/// so many iterations: after so many rounds without progress, or at once where correlations of the sample are so many times their weights.
const DENSE: f64 = 0.8;
const STUCK: u32 = 5;
const FAR: f64 = 700.0;
const DENSE_BYTES: usize = 1 << 28;
const HANDED_OVER: usize = 10_000;
/// Descent stops when its largest step is below this fraction of the largest violation, or of the tolerance, or after so
/// many sweeps. Steps and violations are in units of the filter's weight.
const INNER: f64 = 0.1;
const INNER_FLOOR: f64 = 1.0;
const MAX_SWEEPS: usize = 60;
/// A round that does not lower the gap to this fraction is followed by one with half the inner tolerance and twice the
/// sweeps; after so many of them in a row the coder gives up: the precision of the scalar is exhausted.
const PROGRESS: f64 = 0.9;
const PATIENCE: u32 = 8;

/// The same where every round solves another majorising problem: more of them, of moderate accuracy, with so many sweeps each.
const MOVING_PATIENCE: u32 = 300;
const MOST_ACCURATE: u32 = 3;
const MOVING_SWEEPS: usize = 30;
/// Between two scans a concave penalty is majorised anew at most this often, and no more once the weights moved by less than this
/// fraction of the tolerance.
const REWEIGHTS: usize = 6;
const SETTLED: f64 = 0.3;
/// The modulus is smoothed by so much less when what smoothing hides is more than half of the tolerance.
const SHARPER: f64 = 0.25;
/// One sample while it is coded.
pub(super) struct Solve<'a, T: Real> {
    pub(super) coder: &'a ActiveSet<T>,
    pub(super) sample: &'a Sample<T>,
    pub(super) frame: Frame,
    pub(super) tiling: Tiling,
    /// Weights of single coefficients.
    pub(super) field: Option<Field<T>>,
    /// Weights of values.
    pub(super) data: Option<DataWeights<T>>,
    pub(super) list: List<T>,
    /// The residual, where it counts; see `frame.rs`.
    pub(super) canvas: Vec<T>,
    /// Whether there was a code to start from.
    pub(super) started: bool,
}

impl<T: Real> ActiveSet<T> {
    /// Codes one sample; see [`Coder::code`].
    pub(super) fn solve(&self, sample: &Sample<T>, start: Option<&Code<T>>, monitor: &dyn Monitor) -> Result<Coded<T>> {
        check_wanted(monitor)?;
        let start_time = monitor.now();
        self.dictionary.check_sample_shape(sample.shape())?;
        match self.cut(sample) {
            Some(cut) => self.solve_in_strips(sample, start, cut, monitor),
            None => Ok(Solve::new(self, sample, start)?.run(self.tol, monitor, start_time)?.0),
        }
    }

    /// Checks that a code to start from fits the filters and the positions of a sample.
    pub(super) fn check_start(&self, code: &Code<T>, positions: [usize; 3]) -> Result<()> {
        let n_filters = self.filters.n_filters;
        if code.n_filters() != n_filters || code.shape() != positions {
            let expected = format!("{n_filters} filters on {positions:?}");
            let found = format!("{} filters on {:?}", code.n_filters(), code.shape());
            return Err(Error::invalid("the starting code", expected, found));
        }
        Ok(())
    }
}

impl<'a, T: Real> Solve<'a, T> {
    pub(super) fn new(coder: &'a ActiveSet<T>, sample: &'a Sample<T>, start: Option<&Code<T>>) -> Result<Self> {
        Solve::within(coder, sample, Frame::of(sample, coder.dictionary.shape(), coder.boundary)?, start)
    }

    /// The same with a frame that was made before.
    pub(super) fn within(
        coder: &'a ActiveSet<T>,
        sample: &'a Sample<T>,
        frame: Frame,
        start: Option<&Code<T>>,
    ) -> Result<Self> {
        let tiling = Tiling::new(&frame);
        let canvas = vec![T::zero(); frame.len()];
        let data = DataWeights::new(&frame, sample, coder.config.loss);
        let list = List::new(&tiling, Vec::new());
        let mut solve = Solve { coder, sample, frame, tiling, field: None, data, list, canvas, started: false };
        solve.field = solve.weights_of_coefficients()?;
        let atoms = solve.starting_atoms(start)?;
        solve.started = !atoms.is_empty();
        solve.list = List::new(&solve.tiling, atoms);
        Ok(solve)
    }

    /// The sample's weights of coefficients, or those of a rule.
    fn weights_of_coefficients(&mut self) -> Result<Option<Field<T>>> {
        let n_filters = self.coder.filters.n_filters;
        let rule: Option<Arc<[T]>> = match self.coder.config.weights {
            Weights::Inverse(eps) => {
                self.rebuild();
                let weight = |c: f64| T::of(1.0 / (c.abs() + eps));
                let all: Vec<T> = self.all_correlations().into_iter().map(weight).collect();
                Some(Arc::from(all))
            }
            _ => None,
        };
        let weights = match (rule, self.sample.coefficient_weights()) {
            (Some(rule), Some(given)) if rule.len() == given.len() => {
                Some(rule.iter().zip(given.iter()).map(|(a, b)| *a * *b).collect::<Arc<[T]>>())
            }
            (rule, given) => given.cloned().or(rule),
        };
        weights.map(|weights| Field::new(&self.frame, n_filters, &weights)).transpose()
    }

    /// d_k^T r of all filters at all positions, in f64.
    fn all_correlations(&self) -> Vec<f64> {
        let (frame, width) = (&self.frame, self.frame.positions[2]);
        let mut all = vec![0.0; self.coder.filters.n_filters * frame.n_positions()];
        let filters = all.par_chunks_exact_mut(frame.n_positions()).enumerate();
        filters.flat_map(|(k, out)| out.par_chunks_mut(width).enumerate().map(move |line| (k, line))).for_each(
            |(k, (line, out))| {
                let starts = frame.starts(line);
                for (row, taps) in self.coder.rows(frame, k) {
                    for (j, tap) in taps.iter().enumerate() {
                        let shifted = &self.canvas[starts[row] as usize + j..][..out.len()];
                        out.iter_mut().zip(shifted).for_each(|(o, r)| *o += tap.f64() * r.f64());
                    }
                }
            },
        );
        all
    }

    /// The list to start from.
    fn starting_atoms(&self, start: Option<&Code<T>>) -> Result<Vec<Active<T>>> {
        let Some(code) = start else { return Ok(Vec::new()) };
        self.coder.check_start(code, self.frame.code)?;
        let allowed = |a: &&Atom<T>| {
            let weight = self.base_weight(a.filter as usize, a.position as usize);
            (!self.coder.config.nonnegative || a.value > T::zero()) && weight.is_finite()
        };
        let atoms = code.atoms().iter().filter(allowed);
        Ok(atoms.map(|a| self.activate(a.filter, a.position, a.value)).collect())
    }

    /// The weight of a coefficient before any reweighting.
    pub(super) fn base_weight(&self, filter: usize, position: usize) -> f64 {
        self.coder.exact_weights[filter] * self.field.as_ref().map_or(1.0, |field| field.weight(filter, position))
    }

    pub(super) fn position(&self, atom: &Active<T>) -> usize {
        atom.line as usize * self.frame.positions[2] + atom.column as usize
    }

    /// An atom for the list.
    fn activate(&self, filter: u32, position: u32, value: T) -> Active<T> {
        let frame = &self.frame;
        let width = frame.positions[2];
        let (line, column) = (position as usize / width, position as usize % width);
        let at_border = frame.is_border(position as usize);
        let hidden = frame.hides(line, column);
        let mut energy = self.coder.filters.energy[filter as usize];
        if hidden || at_border && frame.boundary == Boundary::Free {
            energy = 0.0;
            for (row, taps) in self.coder.rows(frame, filter as usize) {
                let counted = (0..taps.len()).filter(|j| frame.counts(line, row, column + j));
                energy += counted.map(|j| taps[j].f64().powi(2)).sum::<f64>();
            }
        }
        let border = hidden || at_border;
        let inverse_energy = if energy > 0.0 { T::of(1.0 / energy) } else { T::zero() };
        let (band, tile) = (self.tiling.band(line) as u32, self.tiling.tile(column) as u32);
        let weight = match &self.field {
            None => self.coder.weights[filter as usize],
            Some(_) => T::of(self.base_weight(filter as usize, position as usize)),
        };
        let (line, column) = (line as u32, column as u32);
        let mut atom = Active { filter, line, column, band, tile, value, inverse_energy, weight, border };
        if let Some(data) = &self.data {
            atom.inverse_energy = weighted_energy(self.coder, frame, data, &atom);
        }
        atom
    }

    /// Brings the canvas in line with the list.
    pub(super) fn rebuild(&mut self) -> Rebuilt {
        let Solve { coder, sample, frame, tiling, data, list, canvas, .. } = self;
        coder.rebuild(frame, tiling, sample, list, canvas, data.as_mut(), None)
    }

    /// The same times a field.
    pub(super) fn rebuild_with(&mut self, field: &[T]) -> Rebuilt {
        let Solve { coder, sample, frame, tiling, list, canvas, .. } = self;
        coder.rebuild(frame, tiling, sample, list, canvas, None, Some(field))
    }

    /// Codes the sample, and returns also where the last look found optimality to be violated.
    pub(super) fn run(
        &mut self,
        tol: f64,
        monitor: &dyn Monitor,
        start_time: Duration,
    ) -> Result<(Coded<T>, Vec<Candidate>)> {
        let coder = self.coder;
        let config = &coder.config;
        let is_moving = !config.penalty.is_convex() || self.data.as_ref().is_some_and(DataWeights::is_moving);
        let (patience, most_accurate) = if is_moving { (MOVING_PATIENCE, MOST_ACCURATE) } else { (PATIENCE, PATIENCE) };
        // The largest correlation of the last round.
        let mut strongest = if self.started { NEAR } else { f64::INFINITY };
        // The largest of the sample itself, in units of its weight; of a code to start from it is not known.
        let mut first = 0.0_f64;
        let mut round = 0;
        // Rounds in a row without progress, and the best gap so far.
        let mut stale = 0_u32;
        let mut best = f64::INFINITY;
        // The best bound on the minimum that any round has proven.
        let mut lower = 0.0_f64;
        loop {
            // Anew from the atoms in every round: the sweeps' rounding errors do not add up.
            let rebuilt = self.rebuild();
            self.renew_atoms();
            let worth = self.worth(rebuilt);
            let ridge = self.ridge();
            let own = Own { field: self.field.as_ref(), ridge: ridge.as_ref() };
            let peak = worth.rebuilt.size.peak;
            let report = self.report(strongest, &own, peak);
            let is_over = |limit| monitor.now().saturating_sub(start_time).as_secs_f64() >= limit;
            let out_of_time = config.time_limit.is_some_and(is_over);
            let last = round == config.max_rounds || stale == patience || out_of_time;
            let done = |scan: &Scan| last || worth.relative_gap(scan.strongest) <= tol && worth.moved <= tol;
            // 8 bits serve to choose atoms; what ends the loop is exact, and so is what follows a round without progress: where the
            // residual is smaller than a level, 8 bits see nothing of it, however small the others' errors are.
            let coarse = if last || stale > 0 || round == 0 && self.started {
                None
            } else {
                let size = worth.rebuilt.size;
                coder.correlate_coarse(&self.frame, &self.canvas, &own, report, size, strongest - 1.0)
            };
            let coarse = coarse.filter(|scan| !done(scan));
            let is_exact = coarse.is_none();
            let scan = coarse.unwrap_or_else(|| coder.correlate_exact(&self.frame, &self.canvas, &own, report, peak));
            strongest = scan.strongest;
            if round == 0 && !self.started {
                first = strongest;
            }
            // Bounds on a problem that moves are worth nothing in the next round.
            let is_fixed = config.penalty.is_convex() && !self.data.as_ref().is_some_and(DataWeights::is_smoothed);
            if done(&scan) {
                let bound = coder.bound(&self.frame, &self.canvas, &own, &scan, report, peak);
                let mut gap = worth.gap(bound);
                if is_fixed {
                    gap = gap.min(worth.rebuilt.terms.gap_above(lower, &worth.weight));
                    lower = lower.max(worth.rebuilt.terms.lower_bound(gap, &worth.weight));
                }
                let converged = relative(gap, worth.objective) <= tol && worth.moved <= tol;
                if last || converged {
                    let status = match (converged, out_of_time) {
                        (true, _) => Status::Converged,
                        (_, true) => Status::TimeLimit,
                        _ => Status::MaxIters,
                    };
                    return Ok((self.finish(&worth, gap, round, status)?, scan.candidates));
                }
            }
            if let Some(gap) = is_large(&self.frame).then(|| self.local_gap(&worth, &own, &scan, report, tol)).flatten()
            {
                if relative(gap, worth.objective) <= tol {
                    return Ok((self.finish(&worth, gap, round, Status::Converged)?, scan.candidates));
                }
                lower = lower.max(worth.rebuilt.terms.lower_bound(gap, &worth.weight));
            }
            if is_exact && is_fixed {
                let gap = worth.gap(strongest + coder.rounding::<T>(&self.frame, &own, peak));
                lower = lower.max(worth.rebuilt.terms.lower_bound(gap, &worth.weight));
            }
            round += 1;
            let gap = worth.gap(strongest);
            monitor.round(&Round { values: self.sample.data().len(), round, gap: relative(gap, worth.objective) });
            check_wanted(monitor)?;
            stale = if gap < PROGRESS * best { 0 } else { stale + 1 };
            best = best.min(gap);
            if self.sharpen(&worth, gap) {
                (stale, best) = (0, f64::INFINITY);
            }
            self.list.drop_zeros();
            if let Some(coded) = self.hand_over(stale >= STUCK || first > FAR)? {
                return Ok((Coded { iterations: round + coded.iterations, ..coded }, Vec::new()));
            }
            self.join(scan);
            // Once the weights of a concave penalty have settled, what is left is a fixed problem.
            let is_settled = !config.penalty.is_convex() && worth.moved <= tol;
            let accurate = stale.min(if is_settled { PATIENCE } else { most_accurate });
            let small = (INNER * (strongest - 1.0)).max(INNER_FLOOR * tol) / f64::from(1 << accurate);
            let max_sweeps = if is_moving { MOVING_SWEEPS } else { MAX_SWEEPS << accurate };
            self.descend(small, max_sweeps);
            if !config.penalty.is_convex() {
                self.settle(small, worth.objective);
            }
        }
    }

    /// Majorises a concave penalty anew at the values that descent reached and descends again, until the weights hardly move: on
    /// the list alone, which costs less than a round.
    fn settle(&mut self, small: f64, objective: f64) {
        for _ in 0..REWEIGHTS {
            let slopes: Vec<f64> = self.list.atoms().map(|atom| self.slope(atom)).collect();
            let moves = self.list.atoms().zip(&slopes);
            let moved: f64 = moves.map(|(a, slope)| (slope - a.weight.f64()).abs() * a.value.f64().abs()).sum();
            if moved <= SETTLED * self.coder.tol * objective {
                break;
            }
            self.list.reweigh(&self.tiling, &slopes, &self.coder.weights);
            self.descend(small, MOVING_SWEEPS);
        }
    }

    /// The slope of the penalty at the value of an atom.
    pub(super) fn slope(&self, atom: &Active<T>) -> f64 {
        let filter = atom.filter as usize;
        let base = match self.field {
            None => self.coder.exact_weights[filter],
            Some(_) => self.base_weight(filter, self.position(atom)),
        };
        self.coder.config.penalty.slope(base, atom.value.f64().abs())
    }

    /// Which atoms to look for, when the last round's largest correlation was `strongest`.
    pub(super) fn report(&self, strongest: f64, own: &Own<'_, T>, peak: f64) -> Report {
        let (coder, tol) = (self.coder, self.coder.tol);
        if strongest > NEAR {
            return Report::PerCell(1.0 + IGNORE * tol);
        }
        // All that may exceed their weight once rounding is taken off, so that the certificate can be exact, unless
        // these are too many: then it is made in f64.
        let rounding = 2.0 * coder.rounding::<T>(&self.frame, own, peak);
        let wide = rounding > WIDEST_MARGIN && T::EPSILON > f64::EPSILON;
        let least = (IGNORE * tol).max(if wide { 0.0 } else { rounding }).min(WIDEST_MARGIN);
        Report::All(1.0 - (MARGIN * (strongest - 1.0)).clamp(least, WIDEST_MARGIN))
    }

    /// Lets the strongest atoms of a scan join the list, as far as it may grow.
    fn join(&mut self, scan: Scan) {
        let n = self.list.len();
        let first = (FIRST * self.frame.n_positions() as f64) as usize;
        let room = if n == 0 { first } else { ((GROWTH - 1.0) * n as f64) as usize };
        let strongest = strongest_of(scan.candidates, room.max(LEAST));
        let mut list = std::mem::take(&mut self.list);
        list.extend(&self.tiling, self.frame.positions[2], &strongest, |c| {
            self.activate(c.filter, c.position, T::zero())
        });
        self.list = list;
    }

    /// Sweeps over the list.
    fn descend(&mut self, small: f64, max_sweeps: usize) {
        let Solve { coder, frame, tiling, data, list, canvas, .. } = self;
        let penalty = coder.config.penalty;
        let ridge = T::of(penalty.ridge());
        let data = data.as_ref().map(|data| &data.majorising[..]);
        let is_plain = penalty == Penalty::L1 && data.is_none();
        let setting = Setting {
            frame,
            filters: &coder.filters,
            nonnegative: coder.config.nonnegative,
            general: (!is_plain).then_some(General { weights: &coder.weights, ridge, data }),
        };
        list.descend(tiling, &setting, canvas, small, max_sweeps);
    }

    /// Brings what depends on the code or on the residual up to date in the atoms: the energy that counts.
    fn renew_atoms(&mut self) {
        let Solve { coder, frame, data, list, .. } = self;
        if let Some(data) = data.as_ref().filter(|data| data.is_moving()) {
            let energy = |atom: &mut Active<T>| atom.inverse_energy = weighted_energy(coder, frame, data, atom);
            list.change(energy);
            list.warm_up();
        }
    }

    /// What an elastic net takes off the correlations.
    pub(super) fn ridge(&self) -> Option<Ridge> {
        let mu = self.coder.config.penalty.ridge();
        let weight = |a: &Active<T>| self.base_weight(a.filter as usize, self.position(a));
        Ridge::new(&self.frame, mu, self.list.atoms(), weight)
    }

    /// Smooths the modulus less, once that is what keeps the gap above the tolerance.
    fn sharpen(&mut self, worth: &Worth, gap: f64) -> bool {
        let tolerated = 0.5 * self.coder.tol * worth.objective;
        let hides = worth.rebuilt.smoothed;
        match self.data.as_mut().filter(|data| data.is_smoothed()) {
            Some(data) if hides > tolerated && gap - hides < 2.0 * hides => {
                data.smoothing *= SHARPER;
                true
            }
            _ => false,
        }
    }

    /// Hands a dense code to [`Admm`], which must be able to solve the same problem.
    fn hand_over(&self, is_due: bool) -> Result<Option<Coded<T>>> {
        let (coder, frame, config) = (self.coder, &self.frame, &self.coder.config);
        let n = self.list.len();
        let is_same = coder.boundary == Boundary::Circular
            && !frame.is_strip()
            && config.weights == Weights::Equal
            && self.field.is_none()
            && self.data.is_none()
            && config.penalty == Penalty::L1
            && !config.nonnegative
            && !frame.is_masked()
            && config.time_limit.is_none();
        let maps = (1 + frame.sample.channels) * coder.filters.n_filters;
        let bytes = size_of::<T>() * maps * frame.n_positions();
        let density = n as f64 / frame.sample.len() as f64;
        if !(is_same && is_due && density > DENSE && bytes <= DENSE_BYTES) {
            return Ok(None);
        }
        let settings = CoderConfig { max_iters: HANDED_OVER, ..CoderConfig::default() };
        let mut admm = Admm::new(&coder.dictionary, coder.beta, coder.tol, settings)?;
        admm.code(self.sample, Some(&self.code()?)).map(Some)
    }

    /// The non-zeros of the list as a code.
    fn code(&self) -> Result<Code<T>> {
        let nonzero = self.list.atoms().filter(|a| a.value != T::zero());
        let atom = |a: &Active<T>| Atom { filter: a.filter, position: self.position(a) as u32, value: a.value };
        Code::new(self.coder.filters.n_filters, self.frame.code, nonzero.map(atom).collect())
    }

    fn finish(&self, worth: &Worth, gap: f64, iterations: usize, status: Status) -> Result<Coded<T>> {
        let data_term = worth.objective - worth.penalty;
        let data_term = match &self.data {
            // Without cancellation where there is nothing to cancel.
            None => 0.5 * worth.rebuilt.terms.r_r - worth.ridge_cost,
            Some(_) => data_term,
        };
        let code = self.code()?;
        let outliers = match self.coder.config.loss {
            Loss::L1 => far_values(self.sample, &code, &self.coder.dictionary, self.coder.boundary),
            _ => worth.rebuilt.outliers,
        };
        Ok(Coded {
            code,
            filters: None,
            objective: Objective { data_term, l1: worth.l1 },
            penalty: worth.penalty,
            beta: self.coder.beta,
            gap,
            moved: worth.moved,
            outliers,
            iterations,
            status,
        })
    }

    /// The smallest beta with an all-zero code.
    pub(super) fn largest_beta(mut self) -> f64 {
        self.list = List::new(&self.tiling, Vec::new());
        if self.coder.config.loss == Loss::L2 {
            self.rebuild();
        } else if let Some(data) = &self.data {
            data.fill_influence(&self.frame, self.sample, &mut self.canvas);
        }
        let own = Own { field: self.field.as_ref(), ridge: None };
        self.coder.correlate_all(&self.frame, &self.canvas, &own, Report::None).strongest * self.coder.beta
    }
}

/// One over the energy of an atom as far as it counts, or 0.
fn weighted_energy<T: Real>(coder: &ActiveSet<T>, frame: &Frame, data: &DataWeights<T>, atom: &Active<T>) -> T {
    let starts = frame.starts(atom.line as usize);
    let mut energy = 0.0;
    for (row, taps) in coder.rows(frame, atom.filter as usize) {
        let weights = &data.majorising[starts[row] as usize + atom.column as usize..][..taps.len()];
        energy += weights.iter().zip(taps).map(|(w, tap)| w.f64() * tap.f64().powi(2)).sum::<f64>();
    }
    let inverse = 1.0 / energy;
    if energy > 0.0 && inverse.is_finite() { T::of(inverse) } else { T::zero() }
}
