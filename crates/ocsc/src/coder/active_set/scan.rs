//! One look at all filters at all positions: how far the code is from optimal, and which atoms should join it.
//!
//! The K P correlations are reduced line by line. [`ActiveSet::correlate_exact`] computes them in the scalar of the sample, for
//! what is claimed: all of them, or those that 8 bits cannot rule out. [`ActiveSet::correlate_coarse`] computes them in 8 bits, where
//! that is enough to choose atoms.

use super::ActiveSet;
use super::coarse::{CoarseCanvas, Hidden, Look, Survivor, Survivors};
use super::correlate::{Line, Ranked, With};
use super::descend::Rescore;
use super::field::{Field, Ridge};
use super::frame::Frame;
use crate::Real;
use crate::simd::dispatch;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Far from the solution, atoms are chosen from cells of this many lines and columns, so many from each.
const CELL: usize = 3;
const PER_CELL: usize = 3;
/// Correlations in 8 bits will do as long as the violations are this many times what they blur.
const CLEAR: f64 = 2.0;
/// Once violations are smaller than this, exact correlations choose better at the same price.
const SMALL: f64 = 0.3;
/// With more than one correlation in so many that cannot be ruled out, it is faster to look at all of them.
const MANY: usize = 8;

/// An atom that violates optimality, or may come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// |d_k^T r| / w_k.
    pub(super) strength: f32,
    pub(super) filter: u32,
    pub(super) position: u32,
}

/// Which atoms a scan reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Report {
    None,
    /// The strongest [`PER_CELL`] of each cell beyond a threshold.
    PerCell(f64),
    /// The two strongest filters of each position, beyond a threshold.
    All(f64),
}

impl Report {
    /// The smallest strength that is reported.
    fn threshold(self) -> f64 {
        match self {
            Report::None => 0.0,
            Report::PerCell(threshold) | Report::All(threshold) => threshold,
        }
    }
}

/// What a scan found.
pub(super) struct Scan {
    /// max |d_k^T r| / w_k over all filters and positions.
    pub(super) strongest: f64,
    /// In the order of lines, columns and filters.
    pub(super) candidates: Vec<Candidate>,
}

impl Size {
    /// Takes note of numbers of a canvas.
    pub(super) fn add<T: Real>(&mut self, numbers: &[T]) {
        for number in numbers {
            self.peak = self.peak.max(number.f64().abs());
            self.energy += number.f64() * number.f64();
        }
    }
}

impl Scan {
    /// Puts together what was found on parts of a sample.
    fn of(parts: Vec<(f64, Vec<Candidate>)>) -> Self {
        let strongest = parts.iter().fold(0.0, |m, (s, _)| s.max(m));
        let mut candidates = Vec::with_capacity(parts.iter().map(|(_, c)| c.len()).sum());
        parts.into_iter().for_each(|(_, c)| candidates.extend_from_slice(&c));
        Scan { strongest, candidates }
    }
}

impl<T: Real> ActiveSet<T> {
    /// Finds all correlations beyond their weights, exactly; `report` says which of them to name. What the largest is matters only
    /// if it is more than 1.
    pub(super) fn correlate_exact(
        &self,
        frame: &Frame,
        canvas: &[T],
        own: &Own<'_, T>,
        report: Report,
        peak: f64,
    ) -> Scan {
        match report {
            Report::All(threshold) => self.correlate_screened(frame, canvas, own, threshold, peak),
            _ => None,
        }
        .unwrap_or_else(|| self.correlate_all(frame, canvas, own, report))
    }

    /// Correlates everything in the scalar of the sample.
    pub(super) fn correlate_all(&self, frame: &Frame, canvas: &[T], own: &Own<'_, T>, report: Report) -> Scan {
        let with = With {
            filters: &self.filters,
            inverse_weights: &self.inverse_weights,
            field: own.field,
            ridge: own.ridge,
            signed: self.config.nonnegative,
        };
        let floor = T::of(report.threshold().min(1.0));
        scan_lines(frame, report, |line: &mut Line<T>, number| line.correlate(frame, &with, canvas, floor, number))
    }

    /// Rules out what 8 bits can rule out, and computes the rest in the scalar of the sample; unless the processor cannot do that, or
    /// so much would be left that looking at everything is faster.
    fn correlate_screened(
        &self,
        frame: &Frame,
        canvas: &[T],
        own: &Own<'_, T>,
        threshold: f64,
        peak: f64,
    ) -> Option<Scan> {
        let filters = self.coarse.as_ref().filter(|_| own.field.is_none())?;
        let coarse = CoarseCanvas::new(filters, frame, canvas, peak)?;
        let hidden = Hidden::new(filters, canvas, &coarse);
        let (ridge, signed) = (own.ridge, self.config.nonnegative);
        let look = Look { frame, canvas: &coarse, ridge, signed, least: threshold.min(1.0) };
        let (n_filters, count) = (self.filters.n_filters, AtomicUsize::new(0));
        let most = n_filters * frame.n_positions() / MANY;
        let lines: Vec<(f64, Vec<Candidate>)> = frame
            .own_lines()
            .into_par_iter()
            .map_init(
                || Survivors::new(frame, n_filters),
                |survivors, line| {
                    if count.load(Ordering::Relaxed) > most {
                        return (0.0, Vec::new());
                    }
                    filters.screen(&look, &hidden, line, survivors);
                    count.fetch_add(survivors.found.len(), Ordering::Relaxed);
                    self.rescore(frame, canvas, own, line, &survivors.found, threshold)
                },
            )
            .collect();
        (count.into_inner() <= most).then(|| Scan::of(lines))
    }

    /// Computes the correlations of a line that were not ruled out. Returns the largest, and of each position the two largest beyond
    /// the threshold.
    fn rescore(
        &self,
        frame: &Frame,
        canvas: &[T],
        own: &Own<'_, T>,
        line: usize,
        survivors: &[Survivor],
        threshold: f64,
    ) -> (f64, Vec<Candidate>) {
        let mut strengths = vec![T::zero(); survivors.len()];
        dispatch(Rescore { frame, filters: &self.filters, canvas, line, survivors, out: &mut strengths });
        let (width, bar) = (frame.positions[2], T::of(threshold));
        let mut strongest = T::zero();
        // The two strongest filters of each position so far.
        let mut places = vec![[(bar, u32::MAX); 2]; width];
        for (at, c) in survivors.iter().zip(strengths) {
            let k = at.filter as usize;
            let c = c * self.inverse_weights[k];
            let c = match own.ridge {
                None => c,
                Some(ridge) => c - T::of(ridge.pull(k, line * width + at.column as usize) / self.exact_weights[k]),
            };
            let strength = if self.config.nonnegative { c } else { c.abs() };
            strongest = strongest.at_least(strength);
            let [first, second] = &mut places[at.column as usize];
            if strength > first.0 {
                (*first, *second) = ((strength, at.filter), *first);
            } else if strength > second.0 {
                *second = (strength, at.filter);
            }
        }
        let position = |column: usize| (line * width + column) as u32;
        let in_order = |[a, b]: [(T, u32); 2]| if a.1 < b.1 { [a, b] } else { [b, a] };
        let found = places.iter().enumerate().flat_map(|(column, place)| in_order(*place).map(|(s, k)| (column, s, k)));
        let found = found.filter(|(_, _, filter)| *filter != u32::MAX);
        let candidate = |(column, s, filter): (usize, T, u32)| Candidate {
            strength: s.f64() as f32,
            filter,
            position: position(column),
        };
        (strongest.f64(), found.map(candidate).collect())
    }

    /// The correlations in 8 bits, if the processor can do that and if it can tell violations of the size of `excess` well enough.
    /// Weights of single coefficients are beyond it.
    pub(super) fn correlate_coarse(
        &self,
        frame: &Frame,
        canvas: &[T],
        own: &Own<'_, T>,
        report: Report,
        size: Size,
        excess: f64,
    ) -> Option<Scan> {
        let filters = self.coarse.as_ref().filter(|filters| own.field.is_none() && filters.can_rank())?;
        let window = frame.filter_rows() * frame.filter.width;
        let norm = (window as f64 * size.energy / frame.sample.len() as f64).sqrt();
        let canvas = CoarseCanvas::new(filters, frame, canvas, size.peak)?;
        if excess < (CLEAR * filters.blur(&canvas, norm)).max(SMALL) {
            return None;
        }
        let (ridge, signed, least) = (own.ridge, self.config.nonnegative, report.threshold().min(1.0));
        let look = Look { frame, canvas: &canvas, ridge, signed, least };
        Some(scan_lines(frame, report, |line: &mut Line<f32>, number| filters.rank(&look, number, line)))
    }
}

/// What single coefficients have of their own: weights, and squares that they pay for.
#[derive(Clone, Copy)]
pub(super) struct Own<'a, T> {
    pub(super) field: Option<&'a Field<T>>,
    pub(super) ridge: Option<&'a Ridge>,
}

/// How large the numbers of a canvas are: the largest, and the sum of their squares.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) peak: f64,
    pub(super) energy: f64,
}

/// Correlates all lines, each by `correlate`, and reports.
pub(super) fn scan_lines<S: Real>(
    frame: &Frame,
    report: Report,
    correlate: impl Fn(&mut Line<S>, usize) + Sync,
) -> Scan {
    let [depth, _, full_width] = frame.positions;
    // The lines of a signal are not near each other.
    let cell = if frame.is_folded() { 1 } else { CELL };
    let own = frame.own_lines();
    let height = own.len() / depth;
    let cells_per_slice = height.div_ceil(cell);
    let rows: Vec<(f64, Vec<Candidate>)> = (0..depth * cells_per_slice)
        .into_par_iter()
        .map_init(
            || (0..cell).map(|_| Line::new(frame)).collect::<Vec<_>>(),
            |lines, row| {
                let (slice, first) = (row / cells_per_slice, row % cells_per_slice * cell);
                let first_line = own.start + slice * height + first;
                let (count, width) = (cell.min(height - first), frame.columns(first_line));
                let mut strongest = 0.0_f64;
                for (i, line) in lines[..count].iter_mut().enumerate() {
                    correlate(line, first_line + i);
                    let top = line.first.strength[..width].iter().fold(S::zero(), |m, s| m.at_least(*s));
                    strongest = strongest.max(top.f64());
                }
                (strongest, candidates(&lines[..count], width, first_line * full_width, report))
            },
        )
        .collect();
    Scan::of(rows)
}

/// What a report asks for, from up to [`CELL`] lines; `corner` is the first line's first position.
fn candidates<T: Real>(lines: &[Line<T>], width: usize, corner: usize, report: Report) -> Vec<Candidate> {
    let threshold = T::of(report.threshold());
    let candidate = |ranked: &Ranked<T>, y: usize, x: usize| Candidate {
        strength: ranked.strength[x].f64() as f32,
        filter: ranked.filter[x].f64() as u32,
        position: (corner + y * width + x) as u32,
    };
    let mut found = Vec::new();
    match report {
        Report::None => {}
        Report::All(_) => {
            for (y, line) in lines.iter().enumerate() {
                for (x, strength) in line.first.strength[..width].iter().enumerate() {
                    if *strength > threshold {
                        let (first, second) = (candidate(&line.first, y, x), candidate(&line.second, y, x));
                        match line.second.strength[x] > threshold {
                            true if second.filter < first.filter => found.extend([second, first]),
                            true => found.extend([first, second]),
                            false => found.push(first),
                        }
                    }
                }
            }
        }
        Report::PerCell(_) => {
            // Those of each line, in order, since cells come in order.
            let mut of_lines: [Vec<Candidate>; CELL] = std::array::from_fn(|_| Vec::new());
            let mut cell = Vec::new();
            for first in (0..width).step_by(CELL) {
                cell.clear();
                for (y, line) in lines.iter().enumerate() {
                    for x in first..(first + CELL).min(width) {
                        if line.first.strength[x] > threshold {
                            keep_strongest(&mut cell, candidate(&line.first, y, x));
                        }
                        if line.second.strength[x] > threshold {
                            keep_strongest(&mut cell, candidate(&line.second, y, x));
                        }
                    }
                }
                cell.sort_unstable_by_key(|c: &Candidate| (c.position, c.filter));
                cell.iter().for_each(|c| of_lines[(c.position as usize - corner) / width].push(*c));
            }
            found = of_lines.concat();
        }
    }
    found
}

/// Adds a candidate to those of a cell, the strongest first, if it is among the [`PER_CELL`] strongest.
fn keep_strongest(cell: &mut Vec<Candidate>, candidate: Candidate) {
    if cell.len() < PER_CELL {
        cell.push(candidate);
    } else if stronger(&candidate, &cell[PER_CELL - 1]).is_lt() {
        cell[PER_CELL - 1] = candidate;
    } else {
        return;
    }
    let mut place = cell.len() - 1;
    while place > 0 && stronger(&cell[place], &cell[place - 1]).is_lt() {
        cell.swap(place, place - 1);
        place -= 1;
    }
}

/// Strongest first; ties by position, so that the order never depends on anything else.
fn stronger(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.strength.total_cmp(&a.strength).then(a.position.cmp(&b.position)).then(a.filter.cmp(&b.filter))
}

/// Keeps the `room` strongest candidates in their order; of equals the first.
pub(super) fn strongest_of(mut candidates: Vec<Candidate>, room: usize) -> Vec<Candidate> {
    if candidates.len() > room {
        let mut strengths: Vec<f32> = candidates.iter().map(|c| c.strength).collect();
        let (_, bar, _) = strengths.select_nth_unstable_by(room, |a, b| b.total_cmp(a));
        let bar = *bar;
        let mut equals = room - candidates.iter().filter(|c| c.strength > bar).count();
        candidates.retain(|c| {
            let is_equal = c.strength == bar && equals > 0;
            equals -= usize::from(is_equal);
            c.strength > bar || is_equal
        });
    }
    candidates
}
