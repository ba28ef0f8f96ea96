//! The fast coder: coordinate descent on an active set of atoms, certified.
//!
//! **Problem**: min over z of 1/2 ||x - D z||^2 + sum_k w_k ||z_k||_1 with w_k = beta times an optional weight per filter;
//! z may be restricted to be non-negative. With a mask M the data term is 1/2 ||M (x - D z)||^2: the residual is zero where
//! nothing was observed.
//!
//! At a useful beta only a few of the K P coefficients are non-zero, so the work is on those. The residual
//! r = x - D z is kept as an image, and an active list of atoms (filter, position, value). Two steps alternate:
//!
//! - *outer*: correlate r with all filters everywhere. That gives the duality gap, which decides whether to stop, and the
//!   atoms that violate optimality, |d_k^T r| > w_k. At first the strongest few of each small cell join the list; once the
//!   violations are moderate, all that violate or are about to. Where the processor can, all scans but the last one or two
//!   are made in 8 bits (`coarse.rs`).
//! - *inner*: cyclic coordinate descent over the list, each step one correlation of r with one filter, a soft threshold and
//!   one update of r: tens of nanoseconds. Tiles of the sample in which nothing moves any more are left alone, and distant
//!   bands are swept at the same time (`tiling.rs`, `list.rs`). It stops when its steps are small against the violations still
//!   to be expected.
//!
//! **Cost**: about five full correlations (K P M each), of which one or two in full precision at the speed of a matrix
//! product, and a few dozen sweeps over parts of the list. **Memory**: the sample and its non-zeros; the K P correlations are
//! reduced line by line.
//!
//! **Dense codes.** At a very small beta the non-zeros get as many as the sample has numbers, and descent gets slow. When five
//! rounds in a row made no progress and there are more than 0.8 non-zeros per number, the sample goes to [`Admm`], from the
//! code reached, for circular boundaries without weights, signs or masks and as long as that takes at most 256 MB. The example
//! `dense` measures both coders as beta falls. On a 100 x 100 Fruit image (K = 100, 11 x 11) the time against that of ADMM
//! alone is, by fractions of the largest beta, for a gap of 1 %: 0.17 at 0.01, 0.49 at 0.003, 0.48 at 0.001, 1.2 at 0.0005.

mod bound;
mod coarse;
mod correlate;
mod descend;
mod filters;
mod frame;
mod list;
mod residual;
mod scan;
mod tiling;

use super::certificate::Weight;
use super::{Admm, Coded, Coder, Status, relative};
use crate::Boundary;
use crate::coder::{ActiveSetConfig, CoderConfig};
use crate::metrics::Objective;
use crate::monitor::{Monitor, Round, Silent, check_wanted};
use crate::setting::positive;
use crate::{Atom, Code, Dictionary, Error, Real, Result, Sample};
use bound::Wide;
use coarse::CoarseFilters;
use descend::{Active, Setting};
use filters::Filters;
use frame::Frame;
use list::List;
use rayon::prelude::*;
use scan::{Report, Scan, strongest_of};
use std::sync::OnceLock;
use tiling::Tiling;

/// The list starts with at most this many atoms per position and then grows by at most this factor.
const FIRST: f64 = 0.3;
const GROWTH: f64 = 3.5;
/// It may always grow by so many, however short it is.
const LEAST: usize = 16;
/// Violations below this fraction of the tolerance are left alone: they cannot keep the gap above it.
const IGNORE: f64 = 0.3;
/// Once no correlation exceeds its weight by more than this factor, all atoms that may come to violate optimality join, not
/// only those that do: those within this fraction of the last excess, and at most so far, below their weight.
const NEAR: f64 = 4.0;
const MARGIN: f64 = 0.06;
const WIDEST_MARGIN: f64 = 0.1;
/// With more non-zeros per number of the sample than this, and after so many rounds without progress, the code goes to
/// [`Admm`], if that needs no more memory than this, for at most so many iterations.
const DENSE: f64 = 0.8;
const STUCK: u32 = 5;
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

/// The active-set coder.
pub struct ActiveSet<T: Real> {
    beta: f64,
    tol: f64,
    boundary: Boundary,
    config: ActiveSetConfig,
    dictionary: Dictionary<T>,
    filters: Filters<T>,
    /// w_k in f64, for what is claimed, and rounded, for descent.
    exact_weights: Vec<f64>,
    weights: Vec<T>,
    inverse_weights: Vec<T>,
    coarse: Option<CoarseFilters>,
    wide: OnceLock<Wide>,
}

impl<T: Real> ActiveSet<T> {
    /// A coder for a dictionary; settings as validated by [`crate::Config::validate`].
    pub fn new(
        dictionary: &Dictionary<T>,
        beta: f64,
        tol: f64,
        boundary: Boundary,
        config: ActiveSetConfig,
    ) -> Result<Self> {
        positive("beta", beta)?;
        positive("tol", tol)?;
        let mut coder = ActiveSet {
            beta,
            tol,
            boundary,
            dictionary: dictionary.clone(),
            filters: Filters::new(dictionary),
            exact_weights: Vec::new(),
            weights: Vec::new(),
            inverse_weights: Vec::new(),
            coarse: None,
            wide: OnceLock::new(),
            config,
        };
        coder.set_dictionary(dictionary);
        Ok(coder)
    }
}

impl<T: Real> ActiveSet<T> {
    /// An atom for the list.
    fn activate(&self, frame: &Frame, tiling: &Tiling, filter: u32, position: u32, value: T) -> Active<T> {
        let width = frame.positions[2];
        let (line, column) = (position as usize / width, position as usize % width);
        let at_border = frame.is_border(position as usize);
        let hidden = frame.hides(line, column);
        let mut energy = self.filters.energy[filter as usize];
        if hidden || at_border && frame.boundary == Boundary::Free {
            energy = 0.0;
            for (row, taps) in self.rows(frame, filter as usize) {
                let counted = (0..taps.len()).filter(|j| frame.counts(line, row, column + j));
                energy += counted.map(|j| taps[j].f64().powi(2)).sum::<f64>();
            }
        }
        let border = hidden || at_border;
        let inverse_energy = if energy > 0.0 { T::of(1.0 / energy) } else { T::zero() };
        let (band, tile) = (tiling.band(line) as u32, tiling.tile(column) as u32);
        Active { filter, line: line as u32, column: column as u32, band, tile, value, inverse_energy, border }
    }

    /// Codes one sample; see [`Coder::code`].
    fn solve(&self, sample: &Sample<T>, start: Option<&Code<T>>, monitor: &dyn Monitor) -> Result<Coded<T>> {
        check_wanted(monitor)?;
        let start_time = monitor.now();
        self.dictionary.check_sample_shape(sample.shape())?;
        let frame = Frame::of(sample, self.dictionary.shape(), self.boundary)?;
        let tiling = Tiling::new(&frame);
        let mut list = List::new(&tiling, self.starting_atoms(&frame, &tiling, start)?);
        let mut canvas = vec![T::zero(); frame.len()];
        let setting = Setting {
            frame: &frame,
            filters: &self.filters,
            weights: &self.weights,
            nonnegative: self.config.nonnegative,
        };
        // The largest correlation of the last round; rounds in a row without progress, and the best gap so far.
        let started = !list.atoms().is_empty();
        let mut strongest = if started { NEAR } else { f64::INFINITY };
        let (mut round, mut stale, mut best) = (0, 0_u32, f64::INFINITY);
        // The best bound on the minimum that any round has proven.
        let mut lower = 0.0_f64;
        loop {
            // Anew from the atoms in every round: the sweeps' rounding errors do not add up.
            let terms = self.rebuild(&frame, &tiling, sample, &list, &mut canvas);
            let report = if strongest <= NEAR {
                // All that may exceed their weight once rounding is taken off, so that the certificate can be exact, unless
                // these are too many: then it is made in f64.
                let rounding = 2.0 * self.rounding::<T>(&frame, &terms);
                let wide = rounding > WIDEST_MARGIN && T::EPSILON > f64::EPSILON;
                let least = (IGNORE * self.tol).max(if wide { 0.0 } else { rounding }).min(WIDEST_MARGIN);
                Report::All(1.0 - (MARGIN * (strongest - 1.0)).clamp(least, WIDEST_MARGIN))
            } else {
                Report::PerCell(1.0 + IGNORE * self.tol)
            };
            let weight = self.weight(list.atoms());
            let primal = terms.objective(&weight);
            let gap_for = |strongest: f64| terms.gap(feasible(strongest), &weight);
            let is_over = |limit| monitor.now().saturating_sub(start_time).as_secs_f64() >= limit;
            let out_of_time = self.config.time_limit.is_some_and(is_over);
            let last = round == self.config.max_rounds || stale == PATIENCE || out_of_time;
            let done = |scan: &Scan| last || relative(gap_for(scan.strongest), primal) <= self.tol;
            // 8 bits serve to choose atoms; what ends the loop is exact.
            let coarse = if last || round == 0 && started {
                None
            } else {
                self.correlate_coarse(&frame, &canvas, report, &terms, strongest - 1.0)
            };
            let coarse = coarse.filter(|scan| !done(scan));
            let is_exact = coarse.is_none();
            let scan = coarse.unwrap_or_else(|| self.correlate_exact(&frame, &canvas, report));
            strongest = scan.strongest;
            if done(&scan) {
                let gap = gap_for(self.bound(&frame, &canvas, &scan, report, &terms));
                let gap = gap.min(terms.gap_above(lower, &weight));
                lower = lower.max(terms.lower_bound(gap, &weight));
                let converged = relative(gap, primal) <= self.tol;
                if last || converged {
                    let status = match (converged, out_of_time) {
                        (true, _) => Status::Converged,
                        (_, true) => Status::TimeLimit,
                        _ => Status::MaxIters,
                    };
                    let objective = Objective { data_term: 0.5 * terms.r_r, l1: weight.penalty / self.beta };
                    let code = listed(&frame, self.filters.n_filters, list.atoms())?;
                    return Ok(Coded { code, objective, beta: self.beta, gap, iterations: round, status });
                }
            }
            if is_exact {
                let gap = gap_for(strongest + self.rounding::<T>(&frame, &terms));
                lower = lower.max(terms.lower_bound(gap, &weight));
            }
            round += 1;
            let gap = gap_for(strongest);
            monitor.round(&Round { values: sample.data().len(), round, gap: relative(gap, primal) });
            check_wanted(monitor)?;
            stale = if gap < PROGRESS * best { 0 } else { stale + 1 };
            best = best.min(gap);
            list.drop_zeros();
            let n = list.atoms().len();
            if sample.mask().is_none() && self.is_dense(&frame, n, stale) {
                let start = listed(&frame, self.filters.n_filters, list.atoms())?;
                let config = CoderConfig { max_iters: HANDED_OVER, ..CoderConfig::default() };
                let coded = Admm::new(&self.dictionary, self.beta, self.tol, config)?.code(sample, Some(&start))?;
                return Ok(Coded { iterations: round + coded.iterations, ..coded });
            }
            let first = (FIRST * frame.n_positions() as f64) as usize;
            let room = if n == 0 { first } else { ((GROWTH - 1.0) * n as f64) as usize };
            let joining = strongest_of(scan.candidates, room.max(LEAST)).into_iter().map(|c| {
                let excess = (f64::from(c.strength) - 1.0).max(0.0);
                (self.activate(&frame, &tiling, c.filter, c.position, T::zero()), T::of(excess))
            });
            list.extend(&tiling, joining);
            let small = (INNER * (strongest - 1.0)).max(INNER_FLOOR * self.tol) / f64::from(1 << stale);
            list.descend(&tiling, &setting, &mut canvas, small, MAX_SWEEPS << stale);
        }
    }

    /// What a code pays, and what its rounding is bounded by.
    fn weight(&self, atoms: &[Active<T>]) -> Weight {
        let (mut penalty, mut mass, mut nonzeros) = (0.0, 0.0, 0);
        for a in atoms.iter().filter(|a| a.value != T::zero()) {
            let value = a.value.f64().abs();
            penalty += self.exact_weights[a.filter as usize] * value;
            mass += value;
            nonzeros += 1;
        }
        let longest = self.filters.energy.iter().fold(0.0_f64, |m, e| m.max(e.sqrt()));
        Weight { penalty, mass: mass * longest, nonzeros, taps: self.dictionary.shape().len() }
    }

    /// Whether so many non-zeros are better left to [`Admm`], which must be able to solve the same problem.
    fn is_dense(&self, frame: &Frame, nonzeros: usize, stale: u32) -> bool {
        let same = self.boundary == Boundary::Circular && self.config.weights.is_none() && !self.config.nonnegative;
        let maps = (1 + frame.sample.channels) * self.filters.n_filters;
        let bytes = size_of::<T>() * maps * frame.n_positions();
        let density = nonzeros as f64 / frame.sample.len() as f64;
        (stale >= STUCK && density > DENSE)
            && (same && !frame.is_masked())
            && self.config.time_limit.is_none()
            && bytes <= DENSE_BYTES
    }

    /// The list to start from.
    fn starting_atoms(&self, frame: &Frame, tiling: &Tiling, start: Option<&Code<T>>) -> Result<Vec<Active<T>>> {
        let Some(code) = start else { return Ok(Vec::new()) };
        if code.n_filters() != self.filters.n_filters || code.shape() != frame.positions {
            let expected = format!("{} filters on {:?}", self.filters.n_filters, frame.positions);
            let found = format!("{} filters on {:?}", code.n_filters(), code.shape());
            return Err(Error::invalid("the starting code", expected, found));
        }
        let allowed = |a: &&Atom<T>| !self.config.nonnegative || a.value > T::zero();
        let atoms = code.atoms().iter().filter(allowed);
        Ok(atoms.map(|a| self.activate(frame, tiling, a.filter, a.position, a.value)).collect())
    }
}

/// The factor that makes a residual feasible whose largest correlation is so many weights, rounded down.
fn feasible(strongest: f64) -> f64 {
    if strongest > 1.0 { (1.0 - f64::EPSILON) / strongest } else { 1.0 }
}

impl<T: Real> Coder<T> for ActiveSet<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        self.dictionary = dictionary.clone();
        self.filters = Filters::new(dictionary);
        // Anew, since the number of filters may have changed; filters beyond the given weights have weight 1.
        let given = self.config.weights.as_deref().unwrap_or_default();
        let weights = (0..dictionary.n_filters()).map(|k| self.beta * given.get(k).copied().unwrap_or(1.0));
        let weights: Vec<f64> = weights.collect();
        self.weights = weights.iter().map(|w| T::of(*w)).collect();
        self.inverse_weights = weights.iter().map(|w| T::of(1.0 / w)).chain([T::zero(); filters::PAIR]).collect();
        self.exact_weights = weights;
        self.wide = OnceLock::new();
        let shape = dictionary.shape();
        self.coarse = CoarseFilters::new(shape.len() / shape.width, &self.filters, &self.exact_weights);
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        // Once into the pool of threads, instead of at every parallel loop.
        rayon::join(|| self.solve(sample, start, &Silent), || ()).0
    }

    fn code_all(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Vec<Coded<T>>> {
        let solve = |sample| self.solve(sample, None, monitor).inspect(|_| monitor.coded());
        samples.par_iter().map(solve).collect()
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        self.dictionary.check_sample_shape(sample.shape())?;
        let frame = Frame::of(sample, self.dictionary.shape(), self.boundary)?;
        let mut canvas = vec![T::zero(); frame.len()];
        frame.fill(sample.data(), &mut canvas);
        Ok(self.correlate_exact(&frame, &canvas, Report::None).strongest * self.beta)
    }
}

/// The non-zeros of the list as a code.
fn listed<T: Real>(frame: &Frame, n_filters: usize, atoms: &[Active<T>]) -> Result<Code<T>> {
    let position = |a: &Active<T>| a.line * frame.positions[2] as u32 + a.column;
    let nonzero = atoms.iter().filter(|a| a.value != T::zero());
    let atoms = nonzero.map(|a| Atom { filter: a.filter, position: position(a), value: a.value });
    Code::new(n_filters, frame.positions, atoms.collect())
}
