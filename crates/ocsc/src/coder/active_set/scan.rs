//! One look at all filters at all positions: how far the code is from optimal, and which atoms should join it.
//!
//! The K P correlations are reduced line by line. [`ActiveSet::correlate_exact`] computes them in the scalar of the sample, for
//! what is claimed; [`ActiveSet::correlate_coarse`] in 8 bits, where that is enough to choose atoms.

use super::ActiveSet;
use super::coarse::CoarseCanvas;
use super::correlate::{Line, Ranked, With};
use super::field::{Field, Ridge};
use super::frame::Frame;
use crate::Real;
use rayon::prelude::*;

/// Far from the solution, atoms are chosen from cells of this many lines and columns, so many from each.
const CELL: usize = 3;
const PER_CELL: usize = 3;
/// Correlations in 8 bits will do as long as the violations are this many times what they blur.
const CLEAR: f64 = 2.0;

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

/// What a scan found.
pub(super) struct Scan {
    /// max |d_k^T r| / w_k over all filters and positions.
    pub(super) strongest: f64,
    pub(super) candidates: Vec<Candidate>,
}

impl<T: Real> ActiveSet<T> {
    /// Correlates everything, exactly.
    pub(super) fn correlate_exact(&self, frame: &Frame, canvas: &[T], own: &Own<'_, T>, report: Report) -> Scan {
        let with = With {
            filters: &self.filters,
            inverse_weights: &self.inverse_weights,
            field: own.field,
            ridge: own.ridge,
            signed: self.config.nonnegative,
        };
        scan_lines(frame, report, |line: &mut Line<T>, number| line.correlate(frame, &with, canvas, number))
    }

    /// The same in 8 bits, if the processor can do that and if it can tell violations of the size of `excess` well enough.
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
        let filters = self.coarse.as_ref().filter(|_| own.field.is_none())?;
        let window = frame.filter_rows() * frame.filter.width;
        let norm = (window as f64 * size.energy / frame.sample.len() as f64).sqrt();
        if excess < CLEAR * filters.blur(size.peak, norm) {
            return None;
        }
        let (canvas, signed) = (CoarseCanvas::new(canvas, size.peak), self.config.nonnegative);
        Some(scan_lines(frame, report, |line: &mut Line<f32>, number| {
            filters.correlate(frame, &canvas, own.ridge, signed, line, number);
        }))
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
    let [depth, height, width] = frame.positions;
    let cells_per_slice = height.div_ceil(CELL);
    let rows: Vec<(f64, Vec<Candidate>)> = (0..depth * cells_per_slice)
        .into_par_iter()
        .map_init(
            || (0..CELL).map(|_| Line::new(frame)).collect::<Vec<_>>(),
            |lines, row| {
                let (slice, first) = (row / cells_per_slice, row % cells_per_slice * CELL);
                let count = CELL.min(height - first);
                let mut strongest = 0.0_f64;
                for (i, line) in lines[..count].iter_mut().enumerate() {
                    correlate(line, slice * height + first + i);
                    let top = line.first.strength[..width].iter().fold(S::zero(), |m, s| m.at_least(*s));
                    strongest = strongest.max(top.f64());
                }
                (strongest, candidates(&lines[..count], width, (slice * height + first) * width, report))
            },
        )
        .collect();
    let strongest = rows.iter().fold(0.0, |m, (s, _)| s.max(m));
    Scan { strongest, candidates: rows.into_iter().flat_map(|(_, c)| c).collect() }
}

/// What a report asks for, from up to [`CELL`] lines; `corner` is the first line's first position.
fn candidates<T: Real>(lines: &[Line<T>], width: usize, corner: usize, report: Report) -> Vec<Candidate> {
    let mut found = Vec::new();
    let threshold = match report {
        Report::None => return found,
        Report::PerCell(threshold) | Report::All(threshold) => T::of(threshold),
    };
    let candidate = |ranked: &Ranked<T>, y: usize, x: usize| Candidate {
        strength: ranked.strength[x].f64() as f32,
        filter: ranked.filter[x].f64() as u32,
        position: (corner + y * width + x) as u32,
    };
    for first in (0..width).step_by(CELL) {
        let cell = found.len();
        for (y, line) in lines.iter().enumerate() {
            for x in first..(first + CELL).min(width) {
                for ranked in [&line.first, &line.second] {
                    if ranked.strength[x] > threshold {
                        found.push(candidate(ranked, y, x));
                    }
                }
            }
        }
        if let Report::PerCell(_) = report {
            found[cell..].sort_unstable_by(stronger);
            found.truncate(cell + PER_CELL);
        }
    }
    found
}

/// Strongest first; ties by position, so that the order never depends on anything else.
fn stronger(a: &Candidate, b: &Candidate) -> std::cmp::Ordering {
    b.strength.total_cmp(&a.strength).then(a.position.cmp(&b.position)).then(a.filter.cmp(&b.filter))
}

/// Keeps the `room` strongest candidates.
pub(super) fn strongest_of(mut candidates: Vec<Candidate>, room: usize) -> Vec<Candidate> {
    if candidates.len() > room {
        candidates.select_nth_unstable_by(room, stronger);
        candidates.truncate(room);
    }
    candidates
}
