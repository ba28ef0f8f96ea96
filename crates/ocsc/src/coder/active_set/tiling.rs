//! The positions of a sample in bands of lines and tiles of columns, so that descent can work on several parts of one
//! sample at once, and leave alone the parts that are done.
//!
//! A band is at least as high as a filter minus one, so an atom reaches from its own band into the next one at most, and
//! bands of even number never touch the same row; nor do those of odd number. A sweep therefore has phases: all even bands,
//! all odd ones, and, where filters wrap around, the last lines, which reach into the first band. Tiling depend on the
//! shapes alone, so the number of threads changes nothing.
//!
//! A signal that is folded into lines (`frame.rs`) has bands of one line, but the last has two, as the last line may be short. Its
//! first and its last band may touch both ends of the canvas, so each has a phase of its own.
//!
//! Tiling are cut along depth if there is any, else along height. Tiles cut a band along the width, each at least as wide as a
//! filter minus one: atoms overlap only with those of the same tile and its eight neighbours.

use super::frame::Frame;
use crate::Boundary;

/// Tiling have at least so many lines, tiles so many columns.
const LEAST: usize = 12;

/// How the positions of one frame are cut.
pub(super) struct Tiling {
    /// The first line of each band, and the number of lines.
    lines: Vec<usize>,
    /// Where the canvas rows of each band start, and the canvas's length.
    starts: Vec<usize>,
    /// Whether the last band wraps around to the first one.
    seam: bool,
    /// Whether filters wrap around from the last lines to the first, and from the last columns to the first.
    wraps: bool,
    circular: bool,
    /// Whether the lines are those of a signal.
    folded: bool,
    pub(super) n_tiles: usize,
    width: usize,
}

impl Tiling {
    pub(super) fn new(frame: &Frame) -> Self {
        let [depth, height, width] = frame.positions;
        let (circular, wraps) = (frame.boundary == Boundary::Circular, frame.lines_wrap());
        // A unit is a slice if there are several, else a line.
        let (units, reach, lines_per_unit) =
            if depth > 1 { (depth, frame.filter.depth - 1, height) } else { (height, frame.filter.height - 1, 1) };
        let folded = frame.is_folded();
        let least = if folded { 1 } else { LEAST.div_ceil(lines_per_unit).max(reach).max(1) };
        let wrapping = if wraps { reach } else { 0 };
        let n = units.saturating_sub(wrapping) / least;
        // With a single band there is nobody to be kept apart from.
        let mut firsts: Vec<usize> = match n {
            0 | 1 => vec![0],
            _ if folded => (0..n - 1).collect(),
            _ => (0..n).map(|band| band * (units - wrapping) / n).collect(),
        };
        let seam = n > 1 && wrapping > 0;
        if seam {
            firsts.push(units - wrapping);
        }
        let lines: Vec<usize> =
            firsts.iter().map(|unit| unit * lines_per_unit).chain([units * lines_per_unit]).collect();
        let start = |line: &usize| frame.row(*line, 0);
        let starts = lines[..lines.len() - 1].iter().map(start).chain([frame.len()]).collect();
        let n_tiles = (width / LEAST.max(frame.filter.width - 1)).max(1);
        Tiling { lines, starts, seam, wraps, circular, folded, n_tiles, width }
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Tiling that may be worked on at the same time, in phases that follow each other.
    pub(super) fn phases(&self) -> Vec<Vec<usize>> {
        let last = self.len() - 1;
        if self.folded {
            return vec![(1..last).step_by(2).collect(), (2..last).step_by(2).collect(), vec![0], vec![last]];
        }
        let inner = self.len() - usize::from(self.seam);
        vec![(0..inner).step_by(2).collect(), (1..inner).step_by(2).collect(), (inner..self.len()).collect()]
    }

    /// The band of a line.
    pub(super) fn band(&self, line: usize) -> usize {
        self.lines.partition_point(|first| *first <= line) - 1
    }

    /// The lines of a band.
    pub(super) fn lines(&self, band: usize) -> std::ops::Range<usize> {
        self.lines[band]..self.lines[band + 1]
    }

    /// The numbers of the canvas that belong to a band's lines.
    pub(super) fn own(&self, band: usize) -> std::ops::Range<usize> {
        self.starts[band]..self.starts[band + 1]
    }

    /// The numbers of the canvas that a band's atoms reach.
    pub(super) fn reach(&self, band: usize) -> std::ops::Range<usize> {
        let is_last = band + 1 == self.len();
        if self.len() == 1 || self.seam && is_last || self.folded && (band == 0 || is_last) {
            return 0..self.starts[self.len()];
        }
        self.starts[band]..self.starts[(band + 2).min(self.len())]
    }

    /// The bands whose atoms reach into the rows of this one, besides itself.
    pub(super) fn before(&self, band: usize) -> Option<usize> {
        if band > 0 { Some(band - 1) } else { self.seam.then(|| self.len() - 1) }
    }

    /// The tile of a column.
    pub(super) fn tile(&self, column: usize) -> usize {
        column * self.n_tiles / self.width
    }

    /// Whether anything holds for the tile at (band, tile) or one of those whose atoms may overlap with its own; `holds` gets their
    /// indices into (tiling, tiles).
    pub(super) fn any_near(&self, band: usize, tile: usize, holds: impl Fn(usize) -> bool) -> bool {
        let (n_bands, n_tiles) = (self.len(), self.n_tiles);
        if self.folded {
            let (slot, last) = (band * n_tiles + tile, (n_bands - 1) * n_tiles..n_bands * n_tiles);
            return match (band + 1 == n_bands, slot) {
                // Both lines of the last band have these tiles.
                (true, _) => (last.start - 1..last.end).any(&holds) || holds(0),
                (_, 0) => holds(0) || holds(1) || self.circular && last.into_iter().any(holds),
                _ => (slot - 1..=slot + 1).any(holds),
            };
        }
        let near = |at: usize, n: usize, wraps: bool| match wraps {
            true => [(at + n - 1) % n, at, (at + 1) % n],
            false => [at.saturating_sub(1), at, (at + 1).min(n - 1)],
        };
        let tiles = near(tile, n_tiles, self.circular);
        near(band, n_bands, self.wraps).into_iter().any(|b| tiles.into_iter().any(|t| holds(b * n_tiles + t)))
    }
}
