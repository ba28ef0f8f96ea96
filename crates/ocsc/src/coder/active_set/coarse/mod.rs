//! The full correlation in integers of 8 bits: two to four times as fast as in single precision.
//!
//! ```text
//! r(p) = l(p) a + e(p),  |l| <= L       d_k(s) = q_k(s) b_k + f_k(s),  |q_k| <= 127
//! c_k(p) = a b_k sum_s q_k(s) l(p + s)  + what rounding hides
//! ```
//!
//! It serves two looks. *Ranking* takes the sums as they are, within about a percent of a weight, to choose atoms while the violations
//! are much larger. *Screening* needs no luck: what rounding hides is at most
//!
//! ```text
//! ||d_k|| ||e||_p + ||f_k|| ||l a||_p     (norms over the window of a filter at p)
//! ```
//!
//! so that only the few correlations that may exceed their weights are computed again in the scalar of the sample. What they
//! prove is exact.
//!
//! | unit | instruction | levels of the residual |
//! |---|---|---|
//! | AVX-512 VNNI, AVX-VNNI | `vpdpbusd`: four products and their sum, to 32 bits | L = 127 |
//! | AVX2 | `vpmaddubsw`: two products and their sum, to 16 bits | L = 63, fewer where a sum could leave 16 bits |

#[cfg(target_arch = "x86_64")]
mod x86;

use super::correlate::Line;
use super::field::{Pull, Ridge};
use super::filters::Filters;
use super::frame::{Frame, LANES};
use crate::Real;
use crate::simd::{Kernel, Unit, dispatch};
use rayon::prelude::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m512;

/// Numbers per lane.
const QUAD: usize = 4;
/// Filters at a time.
const GROUP: usize = 3;
/// Longer filters could overflow sums of 32 bits.
const LONGEST: usize = 1 << 15;
/// The largest sum of 16 bits, about how many products are summed in them, and the norm that the taps of one sum may have: of
/// this product of norms, what is not spent on the filters is left for the residual.
const LARGEST_SUM: f64 = 32_767.0;
const NARROW_TAPS: usize = 66;
const NARROW_NORM: f64 = 160.0;
/// Numbers of the canvas per task.
const CHUNK: usize = 1 << 13;
/// How often the levels may be made coarser to keep sums in 16 bits.
const ATTEMPTS: usize = 4;
/// Filters that can be ranked: strengths keep 10 bits beside the numbers of so many, more than 8 bits can tell.
const MOST_RANKED: usize = 1 << 13;
/// Squares of errors, which are at most a little more than 1/4, are kept in steps of one over this, rounded up.
const SQUARES: f32 = 1_000.0;

/// How the sums are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sums {
    /// AVX-512 VNNI: in 32 bits.
    Wide512,
    /// AVX-VNNI: in 32 bits.
    Wide256,
    /// AVX2: in two halves of 16 bits, modulo 2^16.
    Narrow,
}

impl Sums {
    /// What the processor can do.
    fn present() -> Option<Self> {
        match Unit::present() {
            Unit::Avx512 { vnni: true } => Some(Sums::Wide512),
            Unit::Avx2 { vnni: true } => Some(Sums::Wide256),
            Unit::Avx512 { vnni: false } | Unit::Avx2 { vnni: false } => Some(Sums::Narrow),
            Unit::Portable => None,
        }
    }

    /// The most levels on either side of zero.
    fn levels(self) -> f64 {
        match self {
            Sums::Wide512 | Sums::Wide256 => 127.0,
            Sums::Narrow => 63.0,
        }
    }

    /// What a sum starts from, so that it ends at sum q l: `totals` are the sums of q over the halves of a lane.
    fn start(self, totals: [i32; 2]) -> i32 {
        let [low, high] = totals.map(|total| -i32::from(self.zero()) * total);
        match self {
            Sums::Wide512 | Sums::Wide256 => low + high,
            Sums::Narrow => (low & 0xffff) | (high << 16),
        }
    }

    /// The level 0 as an unsigned number.
    fn zero(self) -> u8 {
        match self {
            Sums::Wide512 | Sums::Wide256 => 128,
            Sums::Narrow => 64,
        }
    }
}

/// b_k: as fine as 8 bits allow, and as the norm of narrow sums does.
fn step<T: Real>(sums: Sums, filter: &[&[T]], rows: usize) -> f64 {
    let peak = filter.iter().flat_map(|row| row.iter()).fold(0.0_f64, |m, d| m.max(d.f64().abs()));
    let halves = |rows: &[&[T]]| {
        let mut squares = [0.0; 2];
        let taps = rows.iter().flat_map(|row| row.iter().enumerate());
        taps.for_each(|(j, d)| squares[j % QUAD / 2] += d.f64().powi(2));
        f64::max(squares[0], squares[1]).sqrt()
    };
    let finest = match sums {
        Sums::Wide512 | Sums::Wide256 => peak / 127.0,
        Sums::Narrow => filter.chunks(rows).map(halves).fold(peak / 127.0, |m, norm| m.max(norm / NARROW_NORM)),
    };
    if finest > 0.0 { finest } else { 1.0 }
}

/// The filters in 8 bits.
pub(super) struct CoarseFilters {
    sums: Sums,
    /// Four taps to a lane, (K/3, rows, quads, 3).
    taps: Vec<i32>,
    per_group: usize,
    quads: usize,
    /// b_k / w_k, for whole groups.
    scale: Vec<f64>,
    /// The rows of a filter that are summed at a time, and what each sum starts from, (parts, filters in whole groups): minus the
    /// zero level times sum q_k; of narrow sums, two halves.
    rows: usize,
    start: Vec<i32>,
    /// max ||d_k|| / w_k, max b_k / w_k and max ||f_k|| / w_k.
    longest: f64,
    coarsest: f64,
    lost: f64,
    /// The largest norm of the q_k of one narrow sum.
    narrowest: f64,
}

/// The residual in 8 bits.
pub(super) struct CoarseCanvas {
    /// l(p), ..., l(p+3) to a lane, plus the level of zero.
    quads: Vec<i32>,
    /// a, which single precision may not hold, while a times b_k / w_k is near 1 in any unit of the data.
    step: f64,
}

/// What screening must know of the residual: l(p)^2, and (e(p) / a)^2 in steps of 1 / [`SQUARES`].
pub(super) struct Hidden {
    levels: Vec<u16>,
    errors: Vec<u8>,
}

/// One line for the kernels.
struct CoarseLine<'a> {
    /// Where the rows of a filter start on the canvas.
    starts: &'a [u32],
    /// Positions, padded to whole blocks.
    length: usize,
    pulls: &'a [Pull],
    signed: bool,
}

/// What becomes of the strengths |c_k| / w_k at positions from column x on.
trait Take {
    /// Takes the strengths of filter k at N positions.
    fn take<const N: usize>(&mut self, x: usize, k: usize, strengths: [f32; N]);

    /// Takes the strengths of filters from k on at the positions of a vector.
    ///
    /// # Safety
    ///
    /// The processor must have AVX-512 F.
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "methods of traits are compiled for a vector unit only if they are unsafe")]
    unsafe fn take_vectors<const F: usize>(&mut self, x: usize, k: usize, strengths: &[__m512; F]);
}

/// The two strongest filters at each position of a line. A filter's number stands in the last bits of its strength, so that the larger of
/// two strengths brings it along: no choice is left to be made, and nothing to be mispredicted.
struct Ranking<'a> {
    first: &'a mut [f32],
    second: &'a mut [f32],
    /// The bits of numbers.
    numbers: u32,
}

impl Ranking<'_> {
    /// Writes the strengths and the filters of a line where they belong.
    fn unpack(line: &mut Line<f32>, numbers: u32) {
        for ranked in [&mut line.first, &mut line.second] {
            for (strength, filter) in ranked.strength.iter_mut().zip(&mut ranked.filter) {
                let bits = strength.to_bits();
                (*strength, *filter) = (f32::from_bits(bits & !numbers), (bits & numbers) as f32);
            }
        }
    }
}

impl Take for Ranking<'_> {
    #[inline(always)]
    fn take<const N: usize>(&mut self, x: usize, k: usize, strengths: [f32; N]) {
        let (first, second) = (self.first[x..].first_chunk_mut::<N>(), self.second[x..].first_chunk_mut::<N>());
        let (Some(first), Some(second)) = (first, second) else { return };
        // Loops of one step each, on copies, which become one instruction per vector.
        let (a, b, mut s, mut loser) = (*first, *second, strengths, strengths);
        for s in &mut s {
            *s = f32::from_bits(s.to_bits() & !self.numbers | k as u32);
        }
        for i in 0..N {
            first[i] = if a[i] > s[i] { a[i] } else { s[i] };
        }
        // The loser of the contest for the first place competes for the second.
        for i in 0..N {
            loser[i] = if a[i] < s[i] { a[i] } else { s[i] };
        }
        for i in 0..N {
            second[i] = if b[i] > loser[i] { b[i] } else { loser[i] };
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "as the trait declares it")]
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn take_vectors<const F: usize>(&mut self, x: usize, k: usize, strengths: &[__m512; F]) {
        x86::rank(self, x, k, strengths);
    }
}

/// Where a correlation may exceed its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Survivor {
    pub(super) column: u32,
    pub(super) filter: u32,
}

/// What is left of a line after screening.
pub(super) struct Survivors {
    /// Strengths up to this one are out.
    cut: f32,
    /// The positions of a line, without those that fill up a vector; of the filters likewise.
    width: usize,
    n_filters: usize,
    pub(super) found: Vec<Survivor>,
    columns: Vec<u32>,
}

impl Take for Survivors {
    #[inline(always)]
    fn take<const N: usize>(&mut self, x: usize, k: usize, strengths: [f32; N]) {
        let mut any = false;
        for s in strengths {
            any |= s > self.cut;
        }
        if any {
            let above = strengths.iter().enumerate().fold(0, |above, (i, s)| above | u32::from(*s > self.cut) << i);
            self.note(x, k, above);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "as the trait declares it")]
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn take_vectors<const F: usize>(&mut self, x: usize, k: usize, strengths: &[__m512; F]) {
        for (f, strengths) in strengths.iter().enumerate() {
            let above = x86::above(*strengths, self.cut);
            if above != 0 {
                self.note(x, k + f, above);
            }
        }
    }
}

impl Survivors {
    pub(super) fn new(frame: &Frame, n_filters: usize) -> Self {
        Survivors { cut: 0.0, width: frame.positions[2], n_filters, found: Vec::new(), columns: Vec::new() }
    }

    /// Notes filter k at those columns from x on whose bits are set.
    #[inline(never)]
    fn note(&mut self, x: usize, k: usize, mut above: u32) {
        while above != 0 {
            let column = x + above.trailing_zeros() as usize;
            if column < self.width && k < self.n_filters {
                self.found.push(Survivor { column: column as u32, filter: k as u32 });
            }
            above &= above - 1;
        }
    }
}

impl CoarseFilters {
    /// The filters with their weights, if the processor can make use of them.
    pub(super) fn new<T: Real>(frame_rows: usize, filters: &Filters<T>, weights: &[f64]) -> Option<Self> {
        let sums = Sums::present().filter(|_| frame_rows * filters.width <= LONGEST)?;
        Some(Self::quantise(sums, frame_rows, filters, weights))
    }

    fn quantise<T: Real>(sums: Sums, n_rows: usize, filters: &Filters<T>, weights: &[f64]) -> Self {
        let (n, width) = (filters.n_filters, filters.width);
        let (groups, quads) = (n.div_ceil(GROUP), width.div_ceil(QUAD));
        let per_group = n_rows * quads * GROUP;
        let rows = match sums {
            Sums::Wide512 | Sums::Wide256 => n_rows,
            Sums::Narrow => (NARROW_TAPS / width).clamp(1, n_rows),
        };
        let mut taps = vec![[0_i8; QUAD]; groups * per_group];
        let (mut scale, mut start) = (vec![0.0; groups * GROUP], vec![0; n_rows.div_ceil(rows) * groups * GROUP]);
        let (mut longest, mut coarsest, mut lost, mut narrowest) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        for k in 0..n {
            let filter = filters.rows(k).chunks_exact(width.next_multiple_of(LANES)).take(n_rows);
            let filter: Vec<&[T]> = filter.map(|row| &row[..width]).collect();
            let (step, weight) = (step(sums, &filter, rows), weights[k]);
            let mut error = 0.0;
            for (part, part_rows) in filter.chunks(rows).enumerate() {
                // Of the two halves of a lane: sum q, and sum q^2.
                let (mut totals, mut squares) = ([0_i32; 2], [0.0_f64; 2]);
                for (row, values) in part_rows.iter().enumerate() {
                    for (j, d) in values.iter().enumerate() {
                        let q = (d.f64() / step).round() as i8;
                        let lane = ((part * rows + row) * quads + j / QUAD) * GROUP + k % GROUP;
                        taps[k / GROUP * per_group + lane][j % QUAD] = q;
                        totals[j % QUAD / 2] += i32::from(q);
                        squares[j % QUAD / 2] += f64::from(q).powi(2);
                        error += (d.f64() - f64::from(q) * step).powi(2);
                    }
                }
                start[part * groups * GROUP + k] = sums.start(totals);
                narrowest = narrowest.max(squares[0].max(squares[1]).sqrt());
            }
            scale[k] = step / weight;
            longest = longest.max(filters.energy[k].sqrt() / weight);
            coarsest = coarsest.max(step / weight);
            lost = lost.max(error.sqrt() / weight);
        }
        let taps = taps.into_iter().map(|quad| i32::from_le_bytes(quad.map(|q| q as u8))).collect();
        CoarseFilters { sums, taps, per_group, quads, scale, rows, start, longest, coarsest, lost, narrowest }
    }

    /// Four standard deviations of what rounding does to a correlation, in units of the weights, for residuals whose windows of a
    /// filter's size have this norm: errors are uniform and independent.
    pub(super) fn blur(&self, canvas: &CoarseCanvas, window_norm: f64) -> f64 {
        let (residual, filter) = (canvas.step * self.longest, self.coarsest * window_norm);
        4.0 * ((residual * residual + filter * filter) / 12.0).sqrt()
    }

    /// The correlations of a line, to choose atoms by, as [`Line::correlate`] makes them.
    pub(super) fn rank(&self, look: &Look<'_>, number: usize, line: &mut Line<f32>) {
        line.begin(look.frame, number, look.least as f32);
        let numbers = self.numbers();
        let (first, second) = (&mut line.first.strength[..], &mut line.second.strength[..]);
        self.correlate(look, number, &mut Ranking { first, second, numbers });
        Ranking::unpack(line, numbers);
    }

    /// Whether there are few enough filters to rank them.
    pub(super) fn can_rank(&self) -> bool {
        self.scale.len() <= MOST_RANKED
    }

    /// The bits that the numbers of filters take.
    fn numbers(&self) -> u32 {
        (self.scale.len() as u32).next_power_of_two() - 1
    }

    /// Finds all correlations of a line that may exceed `least` weights.
    pub(super) fn screen(&self, look: &Look<'_>, hidden: &Hidden, number: usize, survivors: &mut Survivors) {
        let hides = hidden.most(self, look, number, &mut survivors.columns);
        // Single precision is off by a few parts in 10^7 of what is compared, and of what is taken off.
        let slack = 1e-5 * (1.0 + look.ridge.map_or(0.0, |ridge| ridge.peak));
        survivors.cut = (look.least - hides - slack) as f32;
        survivors.found.clear();
        survivors.width = look.frame.columns(number);
        self.correlate(look, number, survivors);
    }

    fn correlate(&self, look: &Look<'_>, number: usize, to: &mut impl Take) {
        let (frame, canvas) = (look.frame, look.canvas);
        let line = CoarseLine {
            starts: frame.starts(number),
            length: frame.positions[2].next_multiple_of(LANES),
            pulls: look.ridge.map_or(&[], |ridge| ridge.line(number)),
            signed: look.signed,
        };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Sums::present` chose what this machine has.
        #[expect(unsafe_code, reason = "calls of functions for vector units that were detected")]
        unsafe {
            match self.sums {
                Sums::Wide512 => x86::wide512(self, canvas, &line, to),
                Sums::Wide256 => x86::wide256(self, canvas, &line, to),
                Sums::Narrow => x86::narrow(self, canvas, &line, to),
            }
        }
    }
}

/// What a look is made with.
pub(super) struct Look<'a> {
    pub(super) frame: &'a Frame,
    pub(super) canvas: &'a CoarseCanvas,
    pub(super) ridge: Option<&'a Ridge>,
    /// Whether only positive correlations count.
    pub(super) signed: bool,
    /// Correlations up to so many weights are of no interest.
    pub(super) least: f64,
}

impl CoarseCanvas {
    /// Rounds a canvas whose largest absolute value is `peak`, unless sums could overflow.
    pub(super) fn new<T: Real>(filters: &CoarseFilters, frame: &Frame, canvas: &[T], peak: f64) -> Option<Self> {
        let (sums, mut step) = (filters.sums, if peak > 0.0 { peak / filters.sums.levels() } else { 1.0 });
        for _ in 0..ATTEMPTS {
            let mut levels = vec![sums.zero(); canvas.len() + QUAD - 1];
            levels.par_chunks_mut(CHUNK).zip(canvas.par_chunks(CHUNK)).for_each(|(levels, values)| {
                dispatch(Round { values, step, zero: sums.zero(), levels });
            });
            let excess = match sums {
                Sums::Wide512 | Sums::Wide256 => 0.0,
                Sums::Narrow => {
                    filters.narrowest * longest_window(frame, filters.rows, &squares(&levels, sums)) / LARGEST_SUM
                }
            };
            if excess > 1.0 {
                step *= 1.05 * excess;
                continue;
            }
            let mut quads = vec![0; canvas.len()];
            quads.par_chunks_mut(CHUNK).enumerate().for_each(|(i, quads)| {
                let levels = &levels[i * CHUNK..][..quads.len() + QUAD - 1];
                dispatch(Pack { levels, quads });
            });
            return Some(CoarseCanvas { quads, step });
        }
        None
    }
}

impl Hidden {
    /// What rounding this canvas hides.
    pub(super) fn new<T: Real>(filters: &CoarseFilters, canvas: &[T], coarse: &CoarseCanvas) -> Self {
        let (mut levels, mut errors) = (vec![0; canvas.len()], vec![0; canvas.len()]);
        let parts = levels.par_chunks_mut(CHUNK).zip(errors.par_chunks_mut(CHUNK));
        let whole = canvas.par_chunks(CHUNK).zip(coarse.quads.par_chunks(CHUNK));
        parts.zip(whole).for_each(|((levels, errors), (values, quads))| {
            dispatch(Lost { values, quads, step: coarse.step, zero: filters.sums.zero(), levels, errors });
        });
        Hidden { levels, errors }
    }

    /// The most that rounding hides of a correlation on a line, in units of its weight.
    fn most(&self, filters: &CoarseFilters, look: &Look<'_>, line: usize, columns: &mut Vec<u32>) -> f64 {
        let frame = look.frame;
        let starts = frame.starts(line);
        let error = f64::from(dispatch(Windows { frame, map: &self.errors, starts, columns })) / f64::from(SQUARES);
        let norm = f64::from(dispatch(Windows { frame, map: &self.levels, starts, columns }));
        let most = look.canvas.step * (filters.longest * error.sqrt() + filters.lost * norm.sqrt());
        most * (1.0 + 1e-6)
    }
}

/// levels <- l + zero, for the values of a part of the canvas.
struct Round<'a, T> {
    values: &'a [T],
    step: f64,
    zero: u8,
    levels: &'a mut [u8],
}

impl<T: Real> Kernel for Round<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let half = f32::from(self.zero) + 0.5;
        for (level, v) in self.levels.iter_mut().zip(self.values) {
            // A quotient in f64: one over a subnormal step would overflow.
            *level = ((v.f64() / self.step) as f32 + half) as u8;
        }
    }
}

/// Packs four levels to a lane.
struct Pack<'a> {
    levels: &'a [u8],
    quads: &'a mut [i32],
}

impl Kernel for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let n = self.quads.len();
        let [a, b, c, d] = std::array::from_fn(|i| &self.levels[i..][..n]);
        for i in 0..n {
            self.quads[i] = i32::from_le_bytes([a[i], b[i], c[i], d[i]]);
        }
    }
}

/// What rounding a part of the canvas hides, for [`Hidden`].
struct Lost<'a, T> {
    values: &'a [T],
    quads: &'a [i32],
    step: f64,
    zero: u8,
    levels: &'a mut [u16],
    errors: &'a mut [u8],
}

impl<T: Real> Kernel for Lost<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (i, (v, quad)) in self.values.iter().zip(self.quads).enumerate() {
            let level = (quad & 0xff) - i32::from(self.zero);
            let error = (v.f64() / self.step - f64::from(level)) as f32;
            self.levels[i] = (level * level) as u16;
            self.errors[i] = (error * error * SQUARES).ceil() as u8;
        }
    }
}

/// l^2.
fn squares(levels: &[u8], sums: Sums) -> Vec<u16> {
    let zero = i16::from(sums.zero());
    levels.par_iter().map(|u| (i16::from(*u) - zero).unsigned_abs().pow(2)).collect()
}

/// The largest norm of a window of so many rows of a filter.
fn longest_window(frame: &Frame, rows: usize, squares: &[u16]) -> f64 {
    let most = |columns: &mut Vec<u32>, line| {
        let parts = frame.starts(line).chunks(rows);
        parts.map(|starts| dispatch(Windows { frame, map: squares, starts, columns })).max()
    };
    let largest = (0..frame.n_lines()).into_par_iter().map_init(Vec::new, most).max();
    f64::from(largest.flatten().unwrap_or(0)).sqrt()
}

/// The largest sum of `map` over a window of a filter's width in the rows that start at `starts`.
struct Windows<'a, V> {
    frame: &'a Frame,
    map: &'a [V],
    starts: &'a [u32],
    columns: &'a mut Vec<u32>,
}

impl<V: Copy + Into<u32>> Kernel for Windows<'_, V> {
    type Output = u32;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> u32 {
        let (frame, width) = (self.frame, self.frame.filter.width);
        let n = frame.positions[2] + width - 1;
        self.columns.clear();
        self.columns.resize(n, 0);
        for start in self.starts {
            let row = &self.map[*start as usize..][..n];
            self.columns.iter_mut().zip(row).for_each(|(sum, v)| *sum += (*v).into());
        }
        let mut sum: u32 = self.columns[..width - 1].iter().sum();
        let mut largest = 0;
        for x in 0..frame.positions[2] {
            sum += self.columns[x + width - 1];
            largest = sum.max(largest);
            sum -= self.columns[x];
        }
        largest
    }
}

#[cfg(test)]
mod tests;
