//! Cyclic coordinate descent over the active atoms, on the residual.
//!
//! One step for the atom (k, p) with value z and energy e = ||d_k||^2 (of the part that counts):
//!
//! ```text
//! c = <d_k at p, r>          new = S_w(c + e z) / e          r <- r - (new - z) d_k at p
//! ```
//!
//! where S_w is the soft threshold at the atom's weight w. An elastic net divides by e + mu instead of e. Where values have weights
//! W, the canvas holds W r, and d_k is multiplied by W when it is added and in e. Steps whose atoms overlap wait for each other's stores, so the
//! order jumps between distant parts of a band and the processor works on several at once.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::coarse::Survivor;
use super::filters::Filters;
use super::frame::{Frame, GROUP, LANES};
use crate::Boundary;
use crate::Real;
use crate::simd::{Kernel, Unit};

/// One atom of the active list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active<T> {
    pub(super) filter: u32,
    /// The flat position is line times positions per line plus column.
    pub(super) line: u32,
    pub(super) column: u32,
    /// Its band, and its tile within the band.
    pub(super) band: u32,
    pub(super) tile: u32,
    pub(super) value: T,
    /// 1 / energy, or 0 for an atom without any.
    pub(super) inverse_energy: T,
    /// Its weight in the l1 norm.
    pub(super) weight: T,
    pub(super) border: bool,
}

/// What a sweep needs to know, apart from what it changes.
pub(super) struct Setting<'a, T> {
    pub(super) frame: &'a Frame,
    pub(super) filters: &'a Filters<T>,
    pub(super) nonnegative: bool,
    /// Whether rows fit into the registers of AVX-512.
    pub(super) wide: bool,
    /// What differs from the plain problem, if anything does.
    pub(super) general: Option<General<'a, T>>,
}

/// What a sweep needs to know of problems other than the lasso.
pub(super) struct General<'a, T> {
    /// The weight of each filter before any reweighting, for the size of steps.
    pub(super) weights: &'a [T],
    /// mu of an elastic net, or 0.
    pub(super) ridge: T,
    /// W on the canvas, if values have weights.
    pub(super) data: Option<&'a [T]>,
}

/// A sweep visits so many distant parts of a band in turn.
const PARTS: usize = 4;

/// One visit of each atom in `order`, parts of it in turn, in a part of the canvas that they do not leave.
pub(super) struct Sweep<'a, T> {
    pub(super) setting: &'a Setting<'a, T>,
    pub(super) atoms: &'a mut [Active<T>],
    pub(super) order: &'a [u32],
    pub(super) canvas: &'a mut [T],
    /// Where the part starts on the whole canvas.
    pub(super) base: usize,
    /// Steps smaller than this, in units of the threshold, are not worth their update of the residual.
    pub(super) negligible: T,
    /// The largest step of each tile's atoms, in the same units; to be raised.
    pub(super) heat: &'a mut [T],
}

impl<T: Real> Kernel for Sweep<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let blocks = self.setting.filters.width.div_ceil(LANES);
        let part = self.order.len().div_ceil(PARTS);
        for i in (0..part).flat_map(|i| (0..PARTS).map(move |p| p * part + i)) {
            let Some(atom) = self.order.get(i).and_then(|at| self.atoms.get_mut(*at as usize)) else { continue };
            let k = atom.filter as usize;
            let (taps, weight) = (self.setting.filters.rows(k).as_chunks::<LANES>().0, atom.weight);
            let place = Place::new(self.setting.frame, atom.line as usize, atom.column as usize, self.base);
            let c = if blocks == 1 {
                dot::<T, FMA>(self.setting.frame, self.canvas, taps, &place, self.setting.wide)
            } else {
                long_dot::<T, FMA>(self.setting.frame, self.canvas, taps, blocks, &place, self.setting.wide)
            };
            if atom.inverse_energy == T::zero() {
                continue;
            }
            let target = atom.inverse_energy.fused::<FMA>(c, atom.value);
            let threshold = weight * atom.inverse_energy;
            // The soft threshold without a branch: it would be mispredicted often.
            let (above, below) = (target - threshold, -target - threshold);
            let below = if self.setting.nonnegative { T::zero() } else { below };
            let new = T::zero().at_least(above) - T::zero().at_least(below);
            let (new, unit) = match &self.setting.general {
                None => (new, threshold),
                Some(general) => {
                    let shrunk = new / (T::one() + general.ridge * atom.inverse_energy);
                    (shrunk, general.weights[k] * atom.inverse_energy)
                }
            };
            let change = new - atom.value;
            let heat = &mut self.heat[atom.tile as usize];
            *heat = heat.at_least(change.abs() / unit);
            // As a product: nothing waits for the quotient.
            if change.abs() <= self.negligible * unit {
                continue;
            }
            atom.value = new;
            match self.setting.general.as_ref().and_then(|general| general.data) {
                None => add::<T, FMA>(self.setting, self.canvas, taps, blocks, atom, &place, -change),
                Some(data) => {
                    let frame = self.setting.frame;
                    add_weighted::<T, FMA>(frame, self.canvas, data, taps, blocks, atom, self.base, -change);
                }
            }
        }
    }
}

/// Where the rows of an atom lie on a part of the canvas.
struct Place<'a> {
    /// Where they start on the whole canvas, in whole groups; and how many there are.
    starts: &'a [u32],
    rows: usize,
    /// The atom's column, less where the part starts: to be added to the starts, modulo the largest number.
    column: usize,
    line: usize,
    base: usize,
}

impl<'a> Place<'a> {
    #[inline(always)]
    fn new(frame: &'a Frame, line: usize, column: usize, base: usize) -> Self {
        Place { starts: frame.starts(line), rows: frame.filter_rows(), column: column.wrapping_sub(base), line, base }
    }

    /// Where a row starts on the part.
    #[inline(always)]
    fn at(&self, start: u32) -> usize {
        (start as usize).wrapping_add(self.column)
    }

    /// Whether the rows of the canvas that an atom of so many blocks touches are all among the `len` numbers of the part.
    #[inline(always)]
    fn is_within(&self, frame: &Frame, len: usize, blocks: usize) -> bool {
        let (first, last) = frame.first_and_last_row(self.line);
        let column = self.column.wrapping_add(self.base);
        first + column >= self.base && last + column + blocks * LANES <= self.base + len
    }
}

/// Single correlations <d_k, r> on one line.
pub(super) struct Rescore<'a, T> {
    pub(super) frame: &'a Frame,
    pub(super) filters: &'a Filters<T>,
    pub(super) canvas: &'a [T],
    pub(super) line: usize,
    pub(super) survivors: &'a [Survivor],
    pub(super) out: &'a mut [T],
}

impl<T: Real> Kernel for Rescore<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let blocks = self.filters.width.div_ceil(LANES);
        let wide = is_wide();
        for (at, out) in self.survivors.iter().zip(self.out) {
            let taps = self.filters.rows(at.filter as usize).as_chunks::<LANES>().0;
            let place = Place::new(self.frame, self.line, at.column as usize, 0);
            *out = if blocks == 1 {
                dot::<T, FMA>(self.frame, self.canvas, taps, &place, wide)
            } else {
                long_dot::<T, FMA>(self.frame, self.canvas, taps, blocks, &place, wide)
            };
        }
    }
}

/// Whether rows fit into the registers of AVX-512.
pub(super) fn is_wide() -> bool {
    matches!(Unit::present(), Unit::Avx512 { .. })
}

/// <d_k, r> for filters of one block of columns; the rows come in whole groups, the last filled up with zero taps.
#[allow(unsafe_code, unused_variables, reason = "a call of a function for a vector unit that was detected")]
#[inline(always)]
fn dot<T: Real, const FMA: bool>(frame: &Frame, canvas: &[T], taps: &[[T; LANES]], place: &Place<'_>, wide: bool) -> T {
    #[cfg(target_arch = "x86_64")]
    if let (true, Some(canvas), Some(taps)) = (FMA, T::singles(canvas), T::singles(taps.as_flattened()))
        && place.is_within(frame, canvas.len(), 1)
    {
        let taps = taps.as_chunks::<LANES>().0;
        // SAFETY: on this architecture FMA says that AVX2 and FMA were detected, `wide` that AVX-512 was; the place was checked.
        return T::single(unsafe {
            if wide { x86::dot512(canvas, taps, place) } else { x86::dot256(canvas, taps, place) }
        });
    }
    let mut sum = [T::zero(); LANES];
    for (taps, start) in taps.iter().zip(place.starts) {
        sum = multiply_add::<T, FMA>(load(canvas, place.at(*start)), taps, sum);
    }
    fold(sum)
}

/// The same for wider filters.
#[allow(unsafe_code, unused_variables, reason = "a call of a function for a vector unit that was detected")]
#[inline(always)]
fn long_dot<T: Real, const FMA: bool>(
    frame: &Frame,
    canvas: &[T],
    taps: &[[T; LANES]],
    blocks: usize,
    place: &Place<'_>,
    wide: bool,
) -> T {
    #[cfg(target_arch = "x86_64")]
    if let (true, Some(canvas), Some(taps)) = (FMA, T::singles(canvas), T::singles(taps.as_flattened()))
        && place.is_within(frame, canvas.len(), blocks)
    {
        let taps = taps.as_chunks::<LANES>().0;
        // SAFETY: as in `dot`.
        return T::single(unsafe {
            if wide {
                x86::long_dot512(canvas, taps, blocks, place)
            } else {
                x86::long_dot256(canvas, taps, blocks, place)
            }
        });
    }
    let mut sum = [T::zero(); LANES];
    for (taps, start) in taps.chunks_exact(blocks).zip(&place.starts[..place.rows]) {
        for (block, taps) in taps.iter().enumerate() {
            sum = multiply_add::<T, FMA>(load(canvas, place.at(*start) + block * LANES), taps, sum);
        }
    }
    fold(sum)
}

/// columns taps + sum.
#[inline(always)]
fn multiply_add<T: Real, const FMA: bool>(columns: [T; LANES], taps: &[T; LANES], sum: [T; LANES]) -> [T; LANES] {
    let mut out = sum;
    for i in 0..LANES {
        out[i] = columns[i].fused::<FMA>(taps[i], sum[i]);
    }
    out
}

/// The sum of all lanes, in one fixed order.
#[inline(always)]
fn fold<T: Real>(lanes: [T; LANES]) -> T {
    let (mut eight, mut four) = ([T::zero(); LANES / 2], [T::zero(); LANES / 4]);
    for i in 0..LANES / 2 {
        eight[i] = lanes[i] + lanes[i + LANES / 2];
    }
    for i in 0..LANES / 4 {
        four[i] = eight[i] + eight[i + LANES / 4];
    }
    (four[0] + four[2]) + (four[1] + four[3])
}

/// r <- r + change d_k.
#[allow(unsafe_code, reason = "a call of a function for a vector unit that was detected")]
#[inline(always)]
fn add<T: Real, const FMA: bool>(
    setting: &Setting<'_, T>,
    canvas: &mut [T],
    taps: &[[T; LANES]],
    blocks: usize,
    atom: &Active<T>,
    place: &Place<'_>,
    change: T,
) {
    let frame = setting.frame;
    #[cfg(target_arch = "x86_64")]
    if FMA
        && (!atom.border || blocks == 1 && setting.wide && frame.only_wraps() && !frame.is_folded())
        && place.is_within(frame, canvas.len(), blocks)
        && let (Some(canvas), Some(taps)) = (T::singles_mut(canvas), T::singles(taps.as_flattened()))
    {
        let (taps, change) = (taps.as_chunks::<LANES>().0, change.f64() as f32);
        // SAFETY: on this architecture FMA says that AVX2 and FMA were detected, `wide` that AVX-512 was; the place was checked.
        unsafe {
            if blocks > 1 && setting.wide {
                x86::long_add512(canvas, taps, blocks, place, change);
            } else if blocks > 1 {
                x86::long_add256(canvas, taps, blocks, place, change);
            } else if !setting.wide {
                x86::add256(canvas, taps, place, change);
            } else if atom.border {
                x86::add512_wrapped(canvas, taps, place, change, frame.sample.width, frame.filter.width);
            } else {
                x86::add512(canvas, taps, place, change);
            }
        }
        return;
    }
    let (line, column) = (atom.line as usize, atom.column as usize);
    for (row, (taps, start)) in taps.chunks_exact(blocks).zip(&place.starts[..place.rows]).enumerate() {
        if atom.border && !frame.row_counts(line, row) {
            continue;
        }
        for (block, taps) in taps.iter().enumerate() {
            let start = place.at(*start) + block * LANES;
            let columns = multiply_add::<T, FMA>([change; LANES], taps, load(canvas, start));
            canvas[start..][..LANES].copy_from_slice(&columns);
        }
        if atom.border {
            mend(frame, canvas, place.base, *start as usize + column);
        }
    }
}

/// W r <- W r + change W d_k. Where nothing counts W is zero.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the arguments of `add` and the weights")]
fn add_weighted<T: Real, const FMA: bool>(
    frame: &Frame,
    canvas: &mut [T],
    data: &[T],
    taps: &[[T; LANES]],
    blocks: usize,
    atom: &Active<T>,
    base: usize,
    change: T,
) {
    let (line, column) = (atom.line as usize, atom.column as usize);
    let starts = &frame.starts(line)[..frame.filter_rows()];
    for (taps, start) in taps.chunks_exact(blocks).zip(starts) {
        for (block, taps) in taps.iter().enumerate() {
            let at = *start as usize + column + block * LANES;
            let mut weights: [T; LANES] = load(data, at);
            weights.iter_mut().zip(taps).for_each(|(w, tap)| *w *= *tap);
            let columns = multiply_add::<T, FMA>([change; LANES], &weights, load(canvas, at - base));
            canvas[at - base..][..LANES].copy_from_slice(&columns);
        }
        if atom.border {
            repeat(frame, canvas, base, *start as usize + column);
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

/// After a row of an atom was added to a part of the canvas that starts at `base`, from `at` on: clears the columns that do not count,
/// repeats those kept twice.
#[inline(never)]
pub(super) fn mend<T: Real>(frame: &Frame, part: &mut [T], base: usize, at: usize) {
    let (width, column) = (frame.filter.width, at % frame.stride);
    let added = &mut part[at - base..][..width];
    frame.hide(at, added);
    match frame.boundary {
        Boundary::Circular => repeat(frame, part, base, at),
        Boundary::Free => {
            let (first, last) = frame.counted_columns();
            added[..first.saturating_sub(column).min(width)].fill(T::zero());
            added[last.saturating_sub(column).min(width)..].fill(T::zero());
        }
        Boundary::Zero => {}
    }
}

/// Brings the columns that are kept twice in line, after a row of an atom was added from `at` on.
fn repeat<T: Real>(frame: &Frame, part: &mut [T], base: usize, at: usize) {
    let (column, width) = (at % frame.stride, frame.filter.width);
    // Elsewhere nothing is kept twice, and the part need not hold the whole row.
    if column + 1 < width || column + width > frame.sample.width {
        frame.repeat_columns(&mut part[at - column - base..][..frame.stride], column, column + width);
    }
}

#[cfg(test)]
mod tests;
