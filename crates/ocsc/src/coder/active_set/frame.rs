//! Where the residual lives: the geometry that makes all boundaries look alike to the loops.
//!
//! The residual is an array of rows (depth, height, channel), each of `stride` numbers. A position (z, y, x) puts the
//! filter's first corner at row (z, y), column x, so an atom is one stretch of columns in each of the filter's rows.
//!
//! - `circular`: rows wrap around; the first columns are kept a second time behind the last, so that a stretch never
//!   wraps.
//! - `zero`: the sample is framed by filter-minus-one zeros on each side, which are data.
//! - `free`: the same frame, but its residual is zero by definition: it does not count.
//!
//! Values that a mask hides are like the frame of `free`: their residual is zero by definition.
//!
//! **Long signals** of one channel are folded: their positions come in lines of [`FOLDED`] or more columns, as those of an image, so that
//! threads share them and a line's numbers stay in the cache. On the canvas these lines follow each other without a gap: the whole is one
//! row, and an atom at the end of a line goes on into the next.

use crate::Boundary;
use crate::{Error, Real, Result, Sample, Shape};
use std::ops::Range;

/// Atoms are handled in blocks of this many columns.
pub(super) const LANES: usize = 16;
/// The blocks of a filter are filled up with zeros to whole groups of this many.
pub(super) const GROUP: usize = 4;
/// Signals with so many times this many positions are folded into lines of at least this many.
const FOLDED: usize = 1024;
const LEAST_LINES: usize = 4;

/// The geometry of one sample shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) boundary: Boundary,
    pub(super) sample: Shape,
    pub(super) filter: Shape,
    /// The code's shape.
    pub(super) code: [usize; 3],
    /// Lines of positions: the code's shape, unless it is folded. Then the last line may be shorter than the others.
    pub(super) positions: [usize; 3],
    /// Rows of the canvas: depth and height, frame included.
    depth: usize,
    height: usize,
    /// Numbers from one row to the next.
    pub(super) stride: usize,
    /// Rows of a filter, its blocks of [`LANES`] columns, and the same filled up to whole groups.
    rows: usize,
    blocks: usize,
    grouped_blocks: usize,
    /// Width of the frame before the sample, on each axis.
    margin: [usize; 3],
    /// Of a part of a sample: the lines and rows that are its own (`strips.rs`).
    core: Option<Core>,
    /// Where each row of a filter on each line starts, (lines, rows); see [`Frame::starts`].
    starts: Vec<u32>,
    /// Where each of its blocks starts, (lines, blocks in whole groups); see [`Frame::block_starts`].
    block_starts: Vec<u32>,
    /// What is to be known of these at a glance, by line.
    extents: Vec<Extent>,
    /// With a mask: which numbers of the canvas count, the columns kept twice included.
    seen: Option<Vec<bool>>,
}

/// What a strip answers for; it sees more than that.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Core {
    /// The lines whose correlations it bounds.
    pub(super) lines: Range<usize>,
    /// The rows of the canvas whose values it counts.
    pub(super) rows: Range<usize>,
}

/// Where the blocks of a filter lie on the canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    /// Where the first and the last of them start.
    pub(super) first: u32,
    pub(super) last: u32,
    /// From one block to the next, if that is the same for all; else 0.
    pub(super) step: u32,
}

impl Extent {
    fn of(blocks: &[u32]) -> Self {
        let (first, last) = blocks.iter().fold((u32::MAX, 0), |(first, last), s| (first.min(*s), last.max(*s)));
        let step = blocks.get(1).map_or(LANES as u32, |second| second.wrapping_sub(blocks[0]));
        let even = blocks.is_sorted() && blocks.windows(2).all(|pair| pair[1] - pair[0] == step);
        Extent { first, last, step: if even { step } else { 0 } }
    }
}

impl Frame {
    /// The geometry of a sample with its mask.
    pub(super) fn of<T: Real>(sample: &Sample<T>, filter: Shape, boundary: Boundary) -> Result<Self> {
        let mut frame = Frame::new(sample.shape(), filter, boundary)?;
        if let Some(mask) = sample.mask() {
            let mut seen = vec![boundary == Boundary::Zero; frame.len()];
            frame.place(mask, &mut seen);
            frame.seen = Some(seen);
        }
        Ok(frame)
    }

    /// The geometry of a shape of which everything is observed.
    pub(super) fn new(sample: Shape, filter: Shape, boundary: Boundary) -> Result<Self> {
        let [s, f] = [sample.spatial(), filter.spatial()];
        let margin = if boundary == Boundary::Circular { [0; 3] } else { f.map(|n| n - 1) };
        let code: [usize; 3] = std::array::from_fn(|i| s[i] + margin[i]);
        let [depth, height, _] = std::array::from_fn(|i| s[i] + 2 * margin[i]);
        Frame::with(sample, filter, boundary, margin, code, [depth, height])
    }

    /// The geometry of a part of an image: `code` positions, whose atoms stay within so many rows. The sample is what lies there, with
    /// so much of the frame of zeros before it.
    pub(super) fn strip(
        sample: Shape,
        filter: Shape,
        boundary: Boundary,
        margin: [usize; 3],
        code: [usize; 3],
        core: Core,
    ) -> Result<Self> {
        let height = code[1] + filter.height - 1;
        Ok(Frame { core: Some(core), ..Frame::with(sample, filter, boundary, margin, code, [1, height])? })
    }

    fn with(
        sample: Shape,
        filter: Shape,
        boundary: Boundary,
        margin: [usize; 3],
        code: [usize; 3],
        [depth, height]: [usize; 2],
    ) -> Result<Self> {
        let rows = filter.depth * filter.height * filter.channels;
        let padded = filter.width.next_multiple_of(LANES);
        let folded = FOLDED.max(2 * padded);
        let positions = match code {
            [1, 1, n] if rows == 1 && n >= LEAST_LINES * folded => [1, n.div_ceil(folded), folded],
            _ => code,
        };
        let lines_per_row = if positions == code { 1 } else { positions[1] };
        let stride = lines_per_row * positions[2].next_multiple_of(LANES) + padded;
        let mut frame = Frame {
            boundary,
            sample,
            filter,
            code,
            positions,
            depth,
            height,
            stride,
            rows,
            blocks: rows * padded / LANES,
            grouped_blocks: (rows * padded / LANES).next_multiple_of(GROUP),
            margin,
            core: None,
            starts: Vec::new(),
            block_starts: Vec::new(),
            extents: Vec::new(),
            seen: None,
        };
        if frame.len() > u32::MAX as usize {
            return Err(Error::invalid("sample", "at most 2^32 numbers with its frame", sample));
        }
        for line in 0..frame.n_lines() {
            let starts: Vec<u32> = (0..rows).map(|row| frame.row(line, row) as u32).collect();
            let blocks = starts.iter().flat_map(|start| (0..padded).step_by(LANES).map(move |at| start + at as u32));
            // A group is filled up with the first block again; the taps there are zero.
            let filled = blocks.chain(std::iter::repeat(starts[0])).take(frame.grouped_blocks);
            let blocks: Vec<u32> = filled.collect();
            frame.extents.push(Extent::of(&blocks[..frame.blocks]));
            frame.starts.extend(starts);
            frame.block_starts.extend(blocks);
        }
        Ok(frame)
    }

    /// Where the rows of a filter on `line` start on the canvas.
    #[inline(always)]
    pub(super) fn starts(&self, line: usize) -> &[u32] {
        &self.starts[line * self.rows..][..self.rows]
    }

    /// Where the blocks of a filter on `line` start on the canvas, row by row, in whole groups of [`GROUP`].
    #[inline(always)]
    pub(super) fn block_starts(&self, line: usize) -> &[u32] {
        &self.block_starts[line * self.grouped_blocks..][..self.grouped_blocks]
    }

    /// Blocks of a filter, without those that fill up a group.
    #[inline(always)]
    pub(super) fn filter_blocks(&self) -> usize {
        self.blocks
    }

    /// Where the blocks of a filter on `line` lie on the canvas, at a glance.
    #[inline(always)]
    pub(super) fn extent(&self, line: usize) -> Extent {
        self.extents[line]
    }

    /// Whether atoms at the border do nothing but wrap around: everything counts.
    #[inline(always)]
    pub(super) fn only_wraps(&self) -> bool {
        self.boundary == Boundary::Circular && self.seen.is_none()
    }

    /// Numbers on the canvas.
    pub(super) fn len(&self) -> usize {
        self.depth * self.height * self.filter.channels * self.stride
    }

    /// Rows of a filter: (depth, height, channel).
    #[inline(always)]
    pub(super) fn filter_rows(&self) -> usize {
        self.rows
    }

    /// The numbers of positions.
    pub(super) fn n_positions(&self) -> usize {
        self.code.iter().product()
    }

    /// Whether the positions of a signal come in several lines.
    pub(super) fn is_folded(&self) -> bool {
        self.positions != self.code
    }

    /// Whether this is a part of a sample.
    pub(super) fn is_strip(&self) -> bool {
        self.core.is_some()
    }

    /// Whether filters wrap around from the last lines to the first.
    pub(super) fn lines_wrap(&self) -> bool {
        self.boundary == Boundary::Circular && !self.is_strip()
    }

    /// The lines whose correlations are of interest.
    pub(super) fn own_lines(&self) -> Range<usize> {
        self.core.as_ref().map_or(0..self.n_lines(), |core| core.lines.clone())
    }

    /// Whether the values of a row of the canvas are counted here.
    pub(super) fn owns_row(&self, row: usize) -> bool {
        self.core.as_ref().is_none_or(|core| core.rows.contains(&(row / self.filter.channels)))
    }

    /// Whether there is but one line of positions, folded or not.
    pub(super) fn is_signal(&self) -> bool {
        self.code[0] * self.code[1] == 1
    }

    /// The positions of a line.
    pub(super) fn columns(&self, line: usize) -> usize {
        self.positions[2].min(self.n_positions() - line * self.positions[2])
    }

    /// Lines of positions: depth x height.
    pub(super) fn n_lines(&self) -> usize {
        self.positions[0] * self.positions[1]
    }

    /// Where row `(channel, dz, dy)` of a filter placed on `line` starts on the canvas.
    #[inline(always)]
    pub(super) fn row(&self, line: usize, row: usize) -> usize {
        if self.is_folded() {
            return line * self.positions[2];
        }
        let (c, dy) = (row % self.filter.channels, row / self.filter.channels % self.filter.height);
        let dz = row / (self.filter.channels * self.filter.height);
        let (mut z, mut y) = (line / self.positions[1] + dz, line % self.positions[1] + dy);
        if z >= self.depth {
            z -= self.depth;
        }
        if y >= self.height {
            y -= self.height;
        }
        ((z * self.height + y) * self.filter.channels + c) * self.stride
    }

    /// Whether an atom here needs more than adding its rows: its columns wrap or are kept twice, or it sticks out freely.
    pub(super) fn is_border(&self, position: usize) -> bool {
        let [_, height, width] = self.code;
        let (s, f, m) = (self.sample.spatial(), self.filter.spatial(), self.margin);
        match self.boundary {
            Boundary::Zero => false,
            // Rows that wrap around start where they end up.
            Boundary::Circular => {
                let column = position % width;
                column + 1 < f[2] || column + f[2] > s[2]
            }
            Boundary::Free => {
                let p = [position / (height * width), position / width % height, position % width];
                (0..3).any(|i| p[i] < m[i] || p[i] + f[i] > m[i] + s[i])
            }
        }
    }

    /// The column of a sample's first number on the canvas.
    pub(super) fn first_column(&self) -> usize {
        self.margin[2]
    }

    /// The row of the sample that lies on a row of the canvas, if any does.
    pub(super) fn source<'a, T>(&self, row: usize, sample: &'a [T]) -> Option<&'a [T]> {
        let (s, channels) = (self.sample, self.filter.channels);
        let (c, y, z) = (row % channels, row / channels % self.height, row / (channels * self.height));
        let (y, z) = (y.checked_sub(self.margin[1])?, z.checked_sub(self.margin[0])?);
        (y < s.height && z < s.depth).then(|| &sample[((c * s.depth + z) * s.height + y) * s.width..][..s.width])
    }

    /// Copies what lies of a sample on a part of one row of the canvas that starts at `at`.
    pub(super) fn copy_source<T: Real>(&self, at: usize, sample: &[T], out: &mut [f64]) {
        if let Some(x) = self.source(at / self.stride, sample) {
            let column = at % self.stride;
            let (before, skipped) =
                (self.first_column().saturating_sub(column), column.saturating_sub(self.first_column()));
            out.iter_mut().skip(before).zip(x.iter().skip(skipped)).for_each(|(o, x)| *o = x.f64());
        }
    }

    /// The canvas of a sample: its values, framed by zeros.
    pub(super) fn fill<T: Real>(&self, sample: &[T], canvas: &mut [T]) {
        canvas.fill(T::zero());
        self.place(sample, canvas);
    }

    /// Writes something that has the sample's shape where the sample lies.
    pub(super) fn place<V: Copy>(&self, values: &[V], canvas: &mut [V]) {
        for (row, out) in canvas.chunks_exact_mut(self.stride).enumerate() {
            if let Some(x) = self.source(row, values) {
                out[self.first_column()..][..x.len()].copy_from_slice(x);
            }
            self.repeat_columns(out, 0, self.filter.width - 1);
        }
    }

    /// After columns [from, to) of a row changed: brings the columns that are kept twice in line.
    #[inline(always)]
    pub(super) fn repeat_columns<T: Copy>(&self, row: &mut [T], from: usize, to: usize) {
        if self.boundary == Boundary::Circular {
            let (width, again) = (self.sample.width, self.filter.width - 1);
            if to > width {
                row.copy_within(width.max(from)..to, width.max(from) - width);
            }
            if from < again {
                row.copy_within(from..to.min(again), from + width);
            }
        }
    }

    /// Gives columns that are kept twice the smaller of their two numbers.
    pub(super) fn agree<T: Real>(&self, canvas: &mut [T]) {
        if self.boundary != Boundary::Circular {
            return;
        }
        let (width, again) = (self.sample.width, self.filter.width - 1);
        for row in canvas.chunks_exact_mut(self.stride) {
            for j in 0..again {
                let smaller = if row[j] < row[width + j] { row[j] } else { row[width + j] };
                (row[j], row[width + j]) = (smaller, smaller);
            }
        }
    }

    /// Whether there is a mask.
    pub(super) fn is_masked(&self) -> bool {
        self.seen.is_some()
    }

    /// Whether a mask hides anything that an atom at this position covers.
    pub(super) fn hides(&self, line: usize, column: usize) -> bool {
        let covered = |start: &u32| *start as usize + column..*start as usize + column + self.filter.width;
        let rows = self.starts(line);
        self.seen.as_ref().is_some_and(|seen| rows.iter().any(|start| seen[covered(start)].contains(&false)))
    }

    /// Whether a number that row `row` of an atom on `line` covers counts.
    pub(super) fn counts(&self, line: usize, row: usize, column: usize) -> bool {
        match &self.seen {
            Some(seen) => seen[self.starts(line)[row] as usize + column],
            None if self.boundary == Boundary::Free => {
                let (first, last) = self.counted_columns();
                let column = (self.starts(line)[row] as usize + column) % self.stride;
                self.row_counts(line, row) && (first..last).contains(&column)
            }
            None => true,
        }
    }

    /// Clears what a mask hides of the numbers of the canvas from `start` on.
    pub(super) fn hide<T: Real>(&self, start: usize, values: &mut [T]) {
        for (v, _) in values.iter_mut().zip(self.seen.iter().flat_map(|s| &s[start..])).filter(|(_, seen)| !**seen) {
            *v = T::zero();
        }
    }

    /// The columns [first, last) of the sample on the canvas.
    pub(super) fn counted_columns(&self) -> (usize, usize) {
        (self.margin[2], self.margin[2] + self.sample.width)
    }

    /// Whether row `row` of an atom on `line` lies on pixels that count.
    pub(super) fn row_counts(&self, line: usize, row: usize) -> bool {
        if self.boundary != Boundary::Free || self.is_folded() {
            return true;
        }
        let dy = row / self.filter.channels % self.filter.height;
        let dz = row / (self.filter.channels * self.filter.height);
        let (z, y) = (line / self.positions[1] + dz, line % self.positions[1] + dy);
        let within = |p: usize, margin: usize, length: usize| p >= margin && p < margin + length;
        within(z, self.margin[0], self.sample.depth) && within(y, self.margin[1], self.sample.height)
    }
}
