//! The fast coder: coordinate descent on an active set of atoms, certified.
//!
//! **Problem**: min over z of 1/2 ||x - D z||^2 + sum_k w_k ||z_k||_1 with w_k = beta times an optional weight per filter;
//! z may be restricted to be non-negative.
//!
//! At a useful beta only a few of the K P coefficients are non-zero, so the work is on those. The residual
//! r = x - D z is kept as an image, and an active list of atoms (filter, position, value). Two steps alternate:
//!
//! - *outer*: correlate r with all filters everywhere. That gives the duality gap, which decides whether to stop, and the
//!   atoms that violate optimality, |d_k^T r| > w_k; the strongest few of each small cell join the list.
//! - *inner*: cyclic coordinate descent over the list, each step one correlation of r with one filter, a soft threshold and
//!   one update of r: tens of nanoseconds. It stops when its steps are small against the violations still to be expected.
//!
//! **Cost**: four to six full correlations (K P M each, at the speed of a matrix product) and a few dozen sweeps over the
//! non-zeros. **Memory**: the sample and its non-zeros; the K P correlations are reduced line by line.

mod correlate;
mod descend;
mod filters;
mod frame;

use super::{Coded, Coder, Status, dual_value, relative};
use crate::config::{ActiveSetConfig, Boundary};
use crate::metrics::Objective;
use crate::{Atom, Code, Dictionary, Error, Real, Result, Sample};
use correlate::Line;
use descend::{Active, Setting, sweep};
use filters::Filters;
use frame::Frame;
use rayon::prelude::*;

/// Violators are chosen from cells of this many lines and columns, so many from each.
const CELL: usize = 3;
const PER_CELL: usize = 3;
/// The list starts with at most this many atoms per position and then grows by at most this factor.
const FIRST: f64 = 0.3;
const GROWTH: f64 = 3.0;
/// It may always grow by so many, however short it is.
const LEAST: usize = 16;
/// Violations below this fraction of the tolerance are left alone: they cannot keep the gap above it.
const IGNORE: f64 = 0.3;
/// Descent stops when its largest step is below this fraction of the largest violation, or of the tolerance, or after so
/// many sweeps. Steps and violations are in units of the filter's weight.
const INNER: f64 = 0.1;
const INNER_FLOOR: f64 = 0.3;
const MAX_SWEEPS: usize = 20;
/// After so many rounds in a row that no atom joined, each with twice the sweeps of the one before, the coder gives up: the
/// precision of the scalar is exhausted.
const PATIENCE: u32 = 8;
/// A sweep visits so many distant parts of the list in turn.
const PARTS: usize = 4;

/// The active-set coder.
pub struct ActiveSet<T: Real> {
    beta: f64,
    tol: f64,
    boundary: Boundary,
    config: ActiveSetConfig,
    dictionary: Dictionary<T>,
    filters: Filters<T>,
    weights: Vec<T>,
    inverse_weights: Vec<T>,
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
        if !(beta.is_finite() && beta > 0.0) {
            return Err(Error::invalid("beta", "a finite number above 0", beta));
        }
        if !(tol.is_finite() && tol > 0.0) {
            return Err(Error::invalid("tol", "a finite number above 0", tol));
        }
        let mut coder = ActiveSet {
            beta,
            tol,
            boundary,
            dictionary: dictionary.clone(),
            filters: Filters::new(dictionary),
            weights: Vec::new(),
            inverse_weights: Vec::new(),
            config,
        };
        coder.set_dictionary(dictionary);
        Ok(coder)
    }
}

/// An atom that violates optimality.
#[derive(Clone, Copy, Debug)]
struct Violator {
    /// |d_k^T r| / w_k.
    strength: f32,
    filter: u32,
    position: u32,
}

/// What an outer step found.
struct Outlook {
    /// max |d_k^T r| / w_k over all filters and positions.
    strongest: f64,
    violators: Vec<Violator>,
}

impl<T: Real> ActiveSet<T> {
    /// Correlates everything; reports violators beyond `threshold`, the strongest [`PER_CELL`] of each cell.
    fn look(&self, frame: &Frame, canvas: &[T], threshold: f64) -> Outlook {
        let [depth, height, width] = frame.positions;
        let bands_per_slice = height.div_ceil(CELL);
        let bands: Vec<(f64, Vec<Violator>)> = (0..depth * bands_per_slice)
            .into_par_iter()
            .map_init(
                || (0..CELL).map(|_| Line::new(frame)).collect::<Vec<_>>(),
                |lines, band| {
                    let (slice, first) = (band / bands_per_slice, band % bands_per_slice * CELL);
                    let count = CELL.min(height - first);
                    let mut strongest = 0.0_f64;
                    for (i, line) in lines[..count].iter_mut().enumerate() {
                        let number = slice * height + first + i;
                        line.correlate(
                            frame,
                            &self.filters,
                            &self.inverse_weights,
                            self.config.nonnegative,
                            canvas,
                            number,
                        );
                        let top = line.strength[..width].iter().fold(T::zero(), |m, s| m.at_least(*s));
                        strongest = strongest.max(top.f64());
                    }
                    let corner = (slice * height + first) * width;
                    (strongest, violators(&lines[..count], width, corner, threshold))
                },
            )
            .collect();
        let strongest = bands.iter().fold(0.0, |m, (s, _)| s.max(m));
        Outlook { strongest, violators: bands.into_iter().flat_map(|(_, v)| v).collect() }
    }

    /// An atom for the list.
    fn activate(&self, frame: &Frame, filter: u32, position: u32, value: T) -> Active<T> {
        let border = frame.is_border(position as usize);
        let width = frame.positions[2];
        let (line, column) = (position as usize / width, position as usize % width);
        let mut energy = self.filters.energy[filter as usize];
        if border && frame.boundary == Boundary::Free {
            energy = 0.0;
            let (first, last) = frame.counted_columns();
            for (row, taps) in self.rows(frame, filter as usize).filter(|(row, _)| frame.row_counts(line, *row)) {
                let counted = |j: &usize| (first..last).contains(&(column + j));
                let part: f64 = (0..taps.len()).filter(counted).map(|j| taps[j].f64().powi(2)).sum();
                energy += if row < frame.filter_rows() { part } else { 0.0 };
            }
        }
        let inverse_energy = if energy > 0.0 { T::of(1.0 / energy) } else { T::zero() };
        Active { filter, line: line as u32, column: column as u32, value, inverse_energy, border }
    }

    /// The rows of a filter without their padding.
    fn rows<'a>(&'a self, frame: &Frame, k: usize) -> impl Iterator<Item = (usize, &'a [T])> {
        let (rows, width) = (self.filters.rows(k), self.filters.width);
        let padded = width.next_multiple_of(frame::LANES);
        rows.chunks_exact(padded).take(frame.filter_rows()).map(move |row| &row[..width]).enumerate()
    }

    /// x - D z on the canvas, summed in `f64`, and rounded to `canvas`.
    fn residual(&self, frame: &Frame, sample: &Sample<T>, atoms: &[Active<T>], exact: &mut [f64], canvas: &mut [T]) {
        frame.fill(|i| sample.data()[i].f64(), exact);
        for atom in atoms.iter().filter(|a| a.value != T::zero()) {
            let (line, column, value) = (atom.line as usize, atom.column as usize, atom.value.f64());
            for (row, taps) in self.rows(frame, atom.filter as usize) {
                if !frame.row_counts(line, row) {
                    continue;
                }
                let columns = &mut exact[frame.starts(line)[row] as usize..][..frame.stride];
                for (c, tap) in columns[column..].iter_mut().zip(taps) {
                    *c -= value * tap.f64();
                }
                if atom.border {
                    descend::mend(frame, columns, column);
                }
            }
        }
        canvas.iter_mut().zip(&*exact).for_each(|(c, e)| *c = T::of(*e));
    }
}

/// The strongest violators of each cell of up to [`CELL`] lines; `corner` is the first line's first position.
fn violators<T: Real>(lines: &[Line<T>], width: usize, corner: usize, threshold: f64) -> Vec<Violator> {
    let mut found = Vec::new();
    let threshold = T::of(threshold);
    let mut cell: Vec<Violator> = Vec::with_capacity(CELL * CELL);
    for first in (0..width).step_by(CELL) {
        cell.clear();
        for (y, line) in lines.iter().enumerate() {
            for x in first..(first + CELL).min(width) {
                if line.strength[x] > threshold {
                    cell.push(Violator {
                        strength: line.strength[x].f64() as f32,
                        filter: line.filter[x].f64() as u32,
                        position: (corner + y * width + x) as u32,
                    });
                }
            }
        }
        cell.sort_by(stronger);
        found.extend(cell.iter().take(PER_CELL));
    }
    found
}

/// Strongest first; ties by position, so that the order never depends on anything else.
fn stronger(a: &Violator, b: &Violator) -> std::cmp::Ordering {
    b.strength.total_cmp(&a.strength).then(a.position.cmp(&b.position)).then(a.filter.cmp(&b.filter))
}

/// Adds the strongest violators that are not active yet, and sorts the list by position.
fn enlarge<T: Real>(
    atoms: &mut Vec<Active<T>>,
    mut violators: Vec<Violator>,
    room: usize,
    activate: impl Fn(u32, u32) -> Active<T>,
) {
    if violators.len() > room {
        violators.select_nth_unstable_by(room, stronger);
        violators.truncate(room);
    }
    atoms.extend(violators.iter().map(|v| activate(v.filter, v.position)));
    // An atom that was active already comes first among equals, with its value.
    atoms.sort_by_key(|a| (a.line, a.column, a.filter, a.value == T::zero()));
    atoms.dedup_by_key(|a| (a.line, a.column, a.filter));
}

/// Visits [`PARTS`] distant parts of the list in turn.
fn interleaved(len: usize) -> Vec<u32> {
    let part = len.div_ceil(PARTS).max(1);
    let mut order = Vec::with_capacity(len);
    for i in 0..part {
        order.extend((0..PARTS).map(|p| p * part + i).filter(|i| *i < len).map(|i| i as u32));
    }
    order
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
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        self.dictionary.check_sample_shape(sample.shape())?;
        let frame = Frame::new(sample.shape(), self.dictionary.shape(), self.boundary)?;
        let mut atoms = self.starting_atoms(&frame, start)?;
        let (mut canvas, mut exact) = (vec![T::zero(); frame.len()], vec![0.0; frame.len()]);
        let setting = Setting {
            frame: &frame,
            filters: &self.filters,
            weights: &self.weights,
            nonnegative: self.config.nonnegative,
        };
        // Rounds in a row in which no atom joined: then only more descent helps.
        let (mut round, mut stale) = (0, 0_u32);
        loop {
            // Anew from the atoms in every round: the sweeps' rounding errors do not add up.
            self.residual(&frame, sample, &atoms, &mut exact, &mut canvas);
            let outlook = self.look(&frame, &canvas, 1.0 + IGNORE * self.tol);
            let data_term = 0.5 * frame.sum(|i| exact[i] * exact[i]);
            let weighted: f64 = atoms.iter().map(|a| self.weights[a.filter as usize].f64() * a.value.f64().abs()).sum();
            let primal = data_term + weighted;
            let dual = dual_value(frame.dot(sample.data(), &exact), 2.0 * data_term, outlook.strongest, 1.0);
            let gap = (primal - dual).max(0.0);
            let converged = relative(gap, primal) <= self.tol;
            if converged || round == self.config.max_rounds || stale == PATIENCE {
                let status = if converged { Status::Converged } else { Status::MaxIters };
                let objective = Objective { data_term, l1: weighted / self.beta };
                let code = listed(&frame, self.filters.n_filters, &atoms)?;
                return Ok(Coded { code, objective, beta: self.beta, gap, iterations: round, status });
            }
            round += 1;
            atoms.retain(|a| a.value != T::zero());
            let first = (FIRST * frame.n_positions() as f64) as usize;
            let before = atoms.len();
            let room = if atoms.is_empty() { first } else { ((GROWTH - 1.0) * atoms.len() as f64) as usize };
            enlarge(&mut atoms, outlook.violators, room.max(LEAST), |k, p| self.activate(&frame, k, p, T::zero()));
            stale = if atoms.len() > before { 0 } else { stale + 1 };
            let order = interleaved(atoms.len());
            let small = (INNER * (outlook.strongest - 1.0)).max(INNER_FLOOR * self.tol) / f64::from(1 << stale);
            for _ in 0..MAX_SWEEPS << stale {
                if sweep(&setting, &mut atoms, &order, &mut canvas) <= small {
                    break;
                }
            }
        }
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        self.dictionary.check_sample_shape(sample.shape())?;
        let frame = Frame::new(sample.shape(), self.dictionary.shape(), self.boundary)?;
        let mut canvas = vec![T::zero(); frame.len()];
        frame.fill(|i| sample.data()[i], &mut canvas);
        Ok(self.look(&frame, &canvas, f64::INFINITY).strongest * self.beta)
    }
}

impl<T: Real> ActiveSet<T> {
    /// The list to start from.
    fn starting_atoms(&self, frame: &Frame, start: Option<&Code<T>>) -> Result<Vec<Active<T>>> {
        let Some(code) = start else { return Ok(Vec::new()) };
        if code.n_filters() != self.filters.n_filters || code.shape() != frame.positions {
            let expected = format!("{} filters on {:?}", self.filters.n_filters, frame.positions);
            let found = format!("{} filters on {:?}", code.n_filters(), code.shape());
            return Err(Error::invalid("the starting code", expected, found));
        }
        let allowed = |a: &&Atom<T>| !self.config.nonnegative || a.value > T::zero();
        let atoms = code.atoms().iter().filter(allowed);
        Ok(atoms.map(|a| self.activate(frame, a.filter, a.position, a.value)).collect())
    }
}

/// The non-zeros of the list as a code.
fn listed<T: Real>(frame: &Frame, n_filters: usize, atoms: &[Active<T>]) -> Result<Code<T>> {
    let position = |a: &Active<T>| a.line * frame.positions[2] as u32 + a.column;
    let nonzero = atoms.iter().filter(|a| a.value != T::zero());
    let atoms = nonzero.map(|a| Atom { filter: a.filter, position: position(a), value: a.value });
    Code::new(n_filters, frame.positions, atoms.collect())
}
