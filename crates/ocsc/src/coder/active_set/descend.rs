//! Cyclic coordinate descent over the active atoms, on the residual.
//!
//! One step for the atom (k, p) with value z and energy e = ||d_k||^2 (of the part that counts):
//!
//! ```text
//! c = <d_k at p, r>          new = S_w(c + e z) / e          r <- r - (new - z) d_k at p
//! ```
//!
//! where S_w is the soft threshold at the filter's weight w. Steps whose atoms overlap wait for each other's stores, so the
//! order jumps between distant parts of the canvas and the processor works on several at once.

use super::filters::Filters;
use super::frame::{Frame, LANES};
use crate::Real;
use crate::config::Boundary;
use crate::simd::{Kernel, dispatch};

/// Dot products run in this many sums at once, to hide the latency of additions.
const SUMS: usize = 4;

/// One atom of the active list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active<T> {
    pub(super) filter: u32,
    pub(super) position: u32,
    pub(super) value: T,
    /// 1 / energy, or 0 for an atom without any.
    pub(super) inverse_energy: T,
    /// Where its first row's first column is on the canvas; not used on the border.
    pub(super) start: u32,
    pub(super) border: bool,
}

/// What a sweep needs to know, apart from what it changes.
pub(super) struct Setting<'a, T> {
    pub(super) frame: &'a Frame,
    pub(super) filters: &'a Filters<T>,
    /// See [`Frame::deltas`].
    pub(super) deltas: &'a [usize],
    /// The weight of each filter in the l1 norm.
    pub(super) weights: &'a [T],
    pub(super) nonnegative: bool,
}

/// One step for every atom, in the order given; returns the largest |new - z| e / w.
pub(super) fn sweep<T: Real>(
    setting: &Setting<'_, T>,
    atoms: &mut [Active<T>],
    order: &[u32],
    canvas: &mut [T],
) -> f64 {
    dispatch(Sweep { setting, atoms, order, canvas }).f64()
}

struct Sweep<'a, T> {
    setting: &'a Setting<'a, T>,
    atoms: &'a mut [Active<T>],
    order: &'a [u32],
    canvas: &'a mut [T],
}

impl<T: Real> Kernel for Sweep<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> T {
        let mut largest = T::zero();
        let blocks = self.setting.filters.width.div_ceil(LANES);
        for &i in self.order {
            let atom = &mut self.atoms[i as usize];
            let k = atom.filter as usize;
            let (taps, weight) = (self.setting.filters.rows(k), self.setting.weights[k]);
            let taps = taps.as_chunks::<LANES>().0;
            let line = atom.position as usize / self.setting.frame.positions[2];
            let column = atom.position as usize % self.setting.frame.positions[2];
            let starts = Starts { setting: self.setting, atom: *atom, line, column };
            let c = dot::<T, FMA>(self.canvas, taps, blocks, &starts);
            if atom.inverse_energy == T::zero() {
                continue;
            }
            let target = atom.inverse_energy.fused::<FMA>(c, atom.value);
            let threshold = weight * atom.inverse_energy;
            let new = if target > threshold {
                target - threshold
            } else if target < -threshold && !self.setting.nonnegative {
                target + threshold
            } else {
                T::zero()
            };
            let change = new - atom.value;
            if change == T::zero() {
                continue;
            }
            atom.value = new;
            add::<T, FMA>(self.canvas, taps, blocks, &starts, -change);
            largest = largest.at_least(change.abs() / threshold);
        }
        largest
    }
}

/// Where the rows of an atom start.
struct Starts<'a, T> {
    setting: &'a Setting<'a, T>,
    atom: Active<T>,
    line: usize,
    column: usize,
}

impl<T: Real> Starts<'_, T> {
    #[inline(always)]
    fn row(&self, row: usize) -> usize {
        if self.atom.border {
            self.setting.frame.row(self.line, row) + self.column
        } else {
            self.atom.start as usize + self.setting.deltas[row]
        }
    }
}

#[inline(always)]
fn dot<T: Real, const FMA: bool>(canvas: &[T], taps: &[[T; LANES]], blocks: usize, starts: &Starts<'_, T>) -> T {
    let mut sums = [[T::zero(); LANES]; SUMS];
    if blocks == 1 {
        let (groups, rest) = taps.as_chunks::<SUMS>();
        for (g, group) in groups.iter().enumerate() {
            for s in 0..SUMS {
                accumulate::<T, FMA>(&mut sums[s], load(canvas, starts.row(g * SUMS + s)), &group[s]);
            }
        }
        for (s, taps) in rest.iter().enumerate() {
            accumulate::<T, FMA>(&mut sums[s], load(canvas, starts.row(groups.len() * SUMS + s)), taps);
        }
    } else {
        for (row, taps) in taps.chunks_exact(blocks).enumerate() {
            for (block, taps) in taps.iter().enumerate() {
                accumulate::<T, FMA>(&mut sums[block % SUMS], load(canvas, starts.row(row) + block * LANES), taps);
            }
        }
    }
    let mut total = sums[0];
    for sum in &sums[1..] {
        for i in 0..LANES {
            total[i] += sum[i];
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            total[i] += total[i + half];
        }
        half /= 2;
    }
    total[0]
}

#[inline(always)]
fn add<T: Real, const FMA: bool>(
    canvas: &mut [T],
    taps: &[[T; LANES]],
    blocks: usize,
    starts: &Starts<'_, T>,
    change: T,
) {
    let frame = starts.setting.frame;
    for (row, taps) in taps.chunks_exact(blocks).enumerate() {
        let start = starts.row(row);
        if starts.atom.border && frame.boundary == Boundary::Free && !frame.row_counts(starts.line, row) {
            continue;
        }
        for (block, taps) in taps.iter().enumerate() {
            let mut columns = load(canvas, start + block * LANES);
            for i in 0..LANES {
                columns[i] = taps[i].fused::<FMA>(change, columns[i]);
            }
            canvas[start + block * LANES..][..LANES].copy_from_slice(&columns);
        }
        if starts.atom.border {
            let line = &mut canvas[start - starts.column..][..frame.stride];
            mend(frame, line, starts.column);
        }
    }
}

/// sum <- sum + columns taps. A function, not a closure: closures are not compiled for the kernel's vector unit.
#[inline(always)]
fn accumulate<T: Real, const FMA: bool>(sum: &mut [T; LANES], columns: [T; LANES], taps: &[T; LANES]) {
    for i in 0..LANES {
        sum[i] = columns[i].fused::<FMA>(taps[i], sum[i]);
    }
}

/// A block of columns by value, so that the compiler knows that stores elsewhere do not change it.
#[inline(always)]
fn load<T: Real>(canvas: &[T], start: usize) -> [T; LANES] {
    let mut block = [T::zero(); LANES];
    block.copy_from_slice(&canvas[start..][..LANES]);
    block
}

/// After an atom was added to a row from `column` on: repeats the columns kept twice, clears those that do not count.
#[inline(never)]
pub(super) fn mend<T: Real>(frame: &Frame, row: &mut [T], column: usize) {
    let end = column + frame.filter.width;
    match frame.boundary {
        Boundary::Circular => frame.repeat_columns(row, column, end),
        Boundary::Free => {
            let (first, last) = frame.counted_columns();
            row[column..end.min(first).max(column)].fill(T::zero());
            row[last.clamp(column, end)..end].fill(T::zero());
        }
        Boundary::Zero => {}
    }
}
