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
use super::frame::{Frame, GROUP, LANES};
use crate::Real;
use crate::config::Boundary;
use crate::simd::{Kernel, dispatch};

/// Dot products run in this many sums at once, to hide the latency of additions.
const SUMS: usize = GROUP;

/// One atom of the active list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active<T> {
    pub(super) filter: u32,
    /// The flat position is line times positions per line plus column.
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) value: T,
    /// 1 / energy, or 0 for an atom without any.
    pub(super) inverse_energy: T,
    pub(super) border: bool,
}

/// What a sweep needs to know, apart from what it changes.
pub(super) struct Setting<'a, T> {
    pub(super) frame: &'a Frame,
    pub(super) filters: &'a Filters<T>,
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
            let (taps, weight) = (self.setting.filters.rows(k).as_chunks::<LANES>().0, self.setting.weights[k]);
            let starts = self.setting.frame.starts(atom.line as usize);
            let column = atom.column as usize;
            let c = if blocks == 1 {
                dot::<T, FMA>(self.canvas, taps, starts, column)
            } else {
                long_dot::<T, FMA>(self.canvas, taps, blocks, starts, column)
            };
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
            add::<T, FMA>(self.setting.frame, self.canvas, taps, blocks, atom, -change);
            largest = largest.at_least(change.abs() / threshold);
        }
        largest
    }
}

/// <d_k, r> for filters of one block of columns; the rows come in whole groups, the last filled up with zero taps.
#[inline(always)]
fn dot<T: Real, const FMA: bool>(canvas: &[T], taps: &[[T; LANES]], starts: &[u32], column: usize) -> T {
    let mut sums = [[T::zero(); LANES]; SUMS];
    for (taps, starts) in taps.as_chunks::<SUMS>().0.iter().zip(starts.as_chunks::<SUMS>().0) {
        for s in 0..SUMS {
            let columns = load(canvas, starts[s] as usize + column);
            for i in 0..LANES {
                sums[s][i] = columns[i].fused::<FMA>(taps[s][i], sums[s][i]);
            }
        }
    }
    fold(sums)
}

/// The same for wider filters.
#[inline(always)]
fn long_dot<T: Real, const FMA: bool>(
    canvas: &[T],
    taps: &[[T; LANES]],
    blocks: usize,
    starts: &[u32],
    column: usize,
) -> T {
    let mut sums = [[T::zero(); LANES]; SUMS];
    for (taps, start) in taps.chunks_exact(blocks).zip(starts) {
        for (block, taps) in taps.iter().enumerate() {
            let columns = load(canvas, *start as usize + column + block * LANES);
            for i in 0..LANES {
                sums[0][i] = columns[i].fused::<FMA>(taps[i], sums[0][i]);
            }
        }
    }
    fold(sums)
}

/// The sum of all lanes, in one fixed order.
#[inline(always)]
fn fold<T: Real>(sums: [[T; LANES]; SUMS]) -> T {
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

/// r <- r + change d_k.
#[inline(always)]
fn add<T: Real, const FMA: bool>(
    frame: &Frame,
    canvas: &mut [T],
    taps: &[[T; LANES]],
    blocks: usize,
    atom: &Active<T>,
    change: T,
) {
    let (line, column) = (atom.line as usize, atom.column as usize);
    let starts = &frame.starts(line)[..frame.filter_rows()];
    for (row, (taps, start)) in taps.chunks_exact(blocks).zip(starts).enumerate() {
        if atom.border && !frame.row_counts(line, row) {
            continue;
        }
        for (block, taps) in taps.iter().enumerate() {
            let start = *start as usize + column + block * LANES;
            let mut columns = load(canvas, start);
            for i in 0..LANES {
                columns[i] = taps[i].fused::<FMA>(change, columns[i]);
            }
            canvas[start..][..LANES].copy_from_slice(&columns);
        }
        if atom.border {
            mend(frame, &mut canvas[*start as usize..][..frame.stride], column);
        }
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
