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
        let weight = |k: usize| beta * config.weights.as_ref().map_or(1.0, |w| w.get(k).copied().unwrap_or(1.0));
        let weights: Vec<f64> = (0..dictionary.n_filters()).map(weight).collect();
        Ok(ActiveSet {
            beta,
            tol,
            boundary,
            dictionary: dictionary.clone(),
            filters: Filters::new(dictionary),
            weights: weights.iter().map(|w| T::of(*w)).collect(),
            inverse_weights: weights.iter().map(|w| T::of(1.0 / w)).chain([T::zero(); filters::PAIR]).collect(),
            config,
        })
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
                        line.correlate(frame, &self.filters, &self.inverse_weights, self.config.nonnegative, canvas, number);
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
        let (line, column) = (position as usize / frame.positions[2], position as usize % frame.positions[2]);
        let mut energy = self.filters.energy[filter as usize];
        if border && frame.boundary == Boundary::Free {
            let (first, last) = frame.counted_columns();
            let padded = self.filters.rows(filter as usize).len() / frame.filter_rows();
            let rows = self.filters.rows(filter as usize).chunks_exact(padded).enumerate();
            let counted = rows.filter(|(row, _)| frame.row_counts(line, *row)).flat_map(|(_, taps)| {
                let within = move |j: &usize| (first..last).contains(&(column + j));
                (0..self.filters.width).filter(within).map(|j| taps[j].f64().powi(2))
            });
            energy = counted.sum();
        }
        let inverse_energy = if energy > 0.0 { T::of(1.0 / energy) } else { T::zero() };
        let start = if border { 0 } else { (frame.row(line, 0) + column) as u32 };
        Active { filter, position, value, inverse_energy, start, border }
    }

    /// x - D z on the canvas, summed in `f64`.
    fn residual(&self, frame: &Frame, sample: &Sample<T>, atoms: &[Active<T>], canvas: &mut [T]) -> Vec<f64> {
        let mut exact = vec![0.0; frame.len()];
        frame.fill(|i| sample.data()[i].f64(), &mut exact);
        let padded = self.filters.rows(0).len() / frame.filter_rows();
        for atom in atoms.iter().filter(|a| a.value != T::zero()) {
            let (line, column) = (atom.position as usize / frame.positions[2], atom.position as usize % frame.positions[2]);
            let value = atom.value.f64();
            for (row, taps) in self.filters.rows(atom.filter as usize).chunks_exact(padded).enumerate() {
                if frame.boundary == Boundary::Free && !frame.row_counts(line, row) {
                    continue;
                }
                let start = frame.row(line, row);
                for (j, tap) in taps[..self.filters.width].iter().enumerate() {
                    exact[start + column + j] -= value * tap.f64();
                }
                descend::mend(frame, &mut exact[start..][..frame.stride], column);
            }
        }
        canvas.iter_mut().zip(&exact).for_each(|(c, e)| *c = T::of(*e));
        exact
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
fn enlarge<T: Real>(atoms: &mut Vec<Active<T>>, mut violators: Vec<Violator>, room: usize, activate: impl Fn(u32, u32) -> Active<T>) {
    if violators.len() > room {
        violators.select_nth_unstable_by(room, stronger);
        violators.truncate(room);
    }
    atoms.extend(violators.iter().map(|v| activate(v.filter, v.position)));
    // An atom that was active already comes first among equals, with its value.
    atoms.sort_by_key(|a| (a.position, a.filter, a.value == T::zero()));
    atoms.dedup_by_key(|a| (a.position, a.filter));
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
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        self.dictionary.check_sample_shape(sample.shape())?;
        let frame = Frame::new(sample.shape(), self.dictionary.shape(), self.boundary);
        let mut atoms: Vec<Active<T>> = Vec::new();
        if let Some(code) = start {
            if code.n_filters() != self.filters.n_filters || code.shape() != frame.positions {
                let expected = format!("{} filters on {:?}", self.filters.n_filters, frame.positions);
                let found = format!("{} filters on {:?}", code.n_filters(), code.shape());
                return Err(Error::invalid("the starting code", expected, found));
            }
            atoms.extend(code.atoms().iter().map(|a| self.activate(&frame, a.filter, a.position, a.value)));
        }
        let deltas = frame.deltas();
        let mut canvas = vec![T::zero(); frame.len()];
        let x_x: f64 = sample.data().iter().map(|v| v.f64().powi(2)).sum();
        let (mut status, mut rounds) = (Status::MaxIters, 0);
        let mut best = (f64::INFINITY, 0.0, 0.0);
        let debug = std::env::var("OCSC_DEBUG").is_ok();
        let (mut t_look, mut t_cd, mut t_res) = (0.0, 0.0, 0.0);
        let mut n_sweeps = 0;
        while rounds < self.config.max_rounds {
            rounds += 1;
            let t = std::time::Instant::now();
            let exact = self.residual(&frame, sample, &atoms, &mut canvas);
            t_res += t.elapsed().as_secs_f64();
            let t = std::time::Instant::now();
            let outlook = self.look(&frame, &canvas, 1.0 + self.config.ignore * self.tol);
            t_look += t.elapsed().as_secs_f64();
            // x = r + D z gives x.r = r.r + (D z).r, and (D z).r = sum of values times correlations; by the residual itself:
            let r_r = frame.sum(|i| exact[i] * exact[i]);
            let x_r = { let mut xc = vec![0.0; frame.len()]; frame.fill(|i| sample.data()[i].f64(), &mut xc); frame.sum(|i| xc[i] * exact[i]) };
            let l1: f64 = atoms.iter().map(|a| self.weights[a.filter as usize].f64() * a.value.f64().abs()).sum();
            let primal = 0.5 * r_r + l1;
            let gap = (primal - dual_value(x_r, r_r, outlook.strongest, 1.0)).max(0.0);
            best = (gap, 0.5 * r_r, l1);
            if debug { eprintln!("round {rounds} active {} primal {primal:.3} gap {:.3e} strongest {:.4} violators {} sweeps so far {n_sweeps}", atoms.len(), relative(gap, primal), outlook.strongest, outlook.violators.len()); }
            if relative(gap, primal) <= self.tol || x_x == 0.0 {
                status = Status::Converged;
                break;
            }
            let t = std::time::Instant::now();
            atoms.retain(|a| a.value != T::zero());
            let room = if rounds == 1 && atoms.is_empty() { (FIRST * frame.n_positions() as f64) as usize } else { ((GROWTH - 1.0) * atoms.len() as f64) as usize };
            enlarge(&mut atoms, outlook.violators, room.max(8), |k, p| self.activate(&frame, k, p, T::zero()));
            let setting = Setting { frame: &frame, filters: &self.filters, deltas: &deltas, weights: &self.weights, nonnegative: self.config.nonnegative };
            let order = interleaved(atoms.len());
            let inner_tol = (self.config.inner * (outlook.strongest - 1.0)).max(self.config.inner_floor * self.tol);
            for _ in 0..self.config.max_sweeps {
                n_sweeps += 1;
                if sweep(&setting, &mut atoms, &order, &mut canvas) <= inner_tol { break; }
            }
            t_cd += t.elapsed().as_secs_f64();
        }
        if debug { eprintln!("look {:.2} ms cd {:.2} ms residual {:.2} ms sweeps {n_sweeps}", t_look * 1e3, t_cd * 1e3, t_res * 1e3); }
        let list = atoms.iter().filter(|a| a.value != T::zero()).map(|a| Atom { filter: a.filter, position: a.position, value: a.value });
        let code = Code::new(self.filters.n_filters, frame.positions, list.collect())?;
        let objective = Objective { data_term: best.1, l1: best.2 / self.beta };
        Ok(Coded { code, objective, beta: self.beta, gap: best.0, iterations: rounds, status })
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        self.dictionary.check_sample_shape(sample.shape())?;
        let frame = Frame::new(sample.shape(), self.dictionary.shape(), self.boundary);
        let mut canvas = vec![T::zero(); frame.len()];
        frame.fill(|i| sample.data()[i], &mut canvas);
        Ok(self.look(&frame, &canvas, f64::INFINITY).strongest * self.beta)
    }
}
