//! Cyclic coordinate descent over the active atoms, on the residual.
//!
//! One step for the atom (k, p) with value z and energy e = ||d_k||^2 (of the part that counts):
//!
//! ```text
//! c = <d_k at p, r>          new = S_w(c + e z) / e          r <- r - (new - z) d_k at p
//! ```
//!
//! where S_w is the soft threshold at the atom's weight w. An elastic net divides by e + mu instead of e. Where values have weights
//! W, the canvas holds W r, and d_k is multiplied by W when it is added and in e.
//!
//! A step takes some tens of instructions, so the loop around the vectors is kept short: one list of blocks of 16 columns for all shapes of
//! filters, one check of an atom's place, and no branch on values. Steps whose atoms overlap wait for each other's stores, so the order
//! jumps between distant parts of a band and the processor works on several at once.

#[cfg(target_arch = "x86_64")]
mod x86;

use super::coarse::Survivor;
use super::filters::Filters;
use super::frame::{Frame, LANES};
use crate::Boundary;
use crate::Real;
use crate::simd::Kernel;
#[cfg(target_arch = "x86_64")]
use crate::simd::Unit;

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
    /// What differs from the plain problem, if anything does.
    pub(super) general: Option<General<'a, T>>,
}

impl<T> Setting<'_, T> {
    /// W on the canvas, if values have weights.
    #[inline(always)]
    fn data(&self) -> Option<&[T]> {
        self.general.as_ref().and_then(|general| general.data)
    }
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
    /// Steps up to this, in units of the threshold, are not worth their update of the residual.
    pub(super) negligible: T,
    /// The largest step of each tile's atoms, in units of the threshold; to be raised.
    pub(super) heat: &'a mut [T],
}

impl<T: Real> Kernel for Sweep<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        #[cfg(target_arch = "x86_64")]
        if FMA && T::singles(self.canvas).is_some() {
            return x86::sweep(self, is_wide());
        }
        self.visit::<Plain<FMA>>();
    }
}

impl<T: Real> Sweep<'_, T> {
    /// The visits, with the arithmetic of A.
    #[inline(always)]
    fn visit<A: Arithmetic>(self) {
        let Sweep { setting, atoms, order, canvas, base, negligible, heat } = self;
        let (blocks, per_filter) = setting.filters.blocks();
        let part = order.len().div_ceil(PARTS);
        for (i, p) in (0..part).flat_map(|i| (0..PARTS).map(move |p| (i, p))) {
            let Some(atom) = order.get(p * part + i).and_then(|at| atoms.get_mut(*at as usize)) else { continue };
            let taps = &blocks[atom.filter as usize * per_filter..][..per_filter];
            let place = Place::new(setting.frame, atom.line as usize, atom.column as usize, base, atom.border);
            A::step(setting, canvas, taps, &place, |c| {
                let target = A::fused(atom.inverse_energy, c, atom.value);
                let threshold = atom.weight * atom.inverse_energy;
                // The soft threshold without a branch: it would be mispredicted often.
                let (above, below) = (target - threshold, -target - threshold);
                let below = if setting.nonnegative { T::zero() } else { below };
                let new = T::zero().at_least(above) - T::zero().at_least(below);
                let (new, unit) = match &setting.general {
                    None => (new, threshold),
                    Some(general) => {
                        let shrunk = new / (T::one() + general.ridge * atom.inverse_energy);
                        (shrunk, general.weights[atom.filter as usize] * atom.inverse_energy)
                    }
                };
                // An atom without energy stays where it is; its quotient is no number, which `at_least` passes over.
                let change = new - atom.value;
                let heat = &mut heat[atom.tile as usize];
                *heat = heat.at_least(change.abs() / unit);
                if change.abs() <= negligible * unit {
                    return None;
                }
                atom.value = new;
                Some(-change)
            });
        }
    }
}

/// How the blocks of an atom are multiplied with the canvas and added to it.
trait Arithmetic {
    /// <d_k, r>; the blocks come in whole groups, the last filled up with zero taps.
    fn dot<T: Real>(canvas: &[T], taps: &[[T; LANES]], place: &Place<'_>) -> T;

    /// r <- r + change(<d_k, r>) d_k, unless there is no change.
    fn step<T: Real>(
        setting: &Setting<'_, T>,
        canvas: &mut [T],
        taps: &[[T; LANES]],
        place: &Place<'_>,
        change: impl FnOnce(T) -> Option<T>,
    );

    /// a b + c.
    fn fused<T: Real>(a: T, b: T, c: T) -> T;
}

/// The arithmetic of loops that the compiler may turn into vectors.
struct Plain<const FMA: bool>;

impl<const FMA: bool> Arithmetic for Plain<FMA> {
    #[inline(always)]
    fn dot<T: Real>(canvas: &[T], taps: &[[T; LANES]], place: &Place<'_>) -> T {
        let mut sum = [T::zero(); LANES];
        for (taps, start) in taps.iter().zip(place.starts()) {
            sum = multiply_add::<T, FMA>(load(canvas, place.at(*start)), taps, sum);
        }
        fold(sum)
    }

    #[inline(always)]
    fn step<T: Real>(
        setting: &Setting<'_, T>,
        canvas: &mut [T],
        taps: &[[T; LANES]],
        place: &Place<'_>,
        change: impl FnOnce(T) -> Option<T>,
    ) {
        if let Some(change) = change(Self::dot(canvas, taps, place)) {
            add::<T, FMA>(setting, canvas, taps, place, change);
        }
    }

    #[inline(always)]
    fn fused<T: Real>(a: T, b: T, c: T) -> T {
        a.fused::<FMA>(b, c)
    }
}

/// Where the blocks of an atom lie on a part of the canvas.
struct Place<'a> {
    frame: &'a Frame,
    line: usize,
    /// Where the part starts on the whole canvas.
    base: usize,
    /// The atom's column, less where the part starts: to be added to where blocks start, modulo the largest number.
    column: usize,
    border: bool,
}

impl<'a> Place<'a> {
    #[inline(always)]
    fn new(frame: &'a Frame, line: usize, column: usize, base: usize, border: bool) -> Self {
        Place { frame, line, base, column: column.wrapping_sub(base), border }
    }

    /// Where the blocks start on the whole canvas, in whole groups.
    #[inline(always)]
    fn starts(&self) -> &'a [u32] {
        self.frame.block_starts(self.line)
    }

    /// Where a block starts on the part.
    #[inline(always)]
    fn at(&self, start: u32) -> usize {
        (start as usize).wrapping_add(self.column)
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
        #[cfg(target_arch = "x86_64")]
        if FMA && T::singles(self.canvas).is_some() {
            return x86::rescore(self, is_wide());
        }
        self.correlate::<Plain<FMA>>();
    }
}

impl<T: Real> Rescore<'_, T> {
    /// The correlations, with the arithmetic of A.
    #[inline(always)]
    fn correlate<A: Arithmetic>(self) {
        for (at, out) in self.survivors.iter().zip(self.out) {
            let taps = self.filters.rows(at.filter as usize).as_chunks::<LANES>().0;
            let place = Place::new(self.frame, self.line, at.column as usize, 0, false);
            *out = A::dot(self.canvas, taps, &place);
        }
    }
}

/// Whether rows fit into the registers of AVX-512.
#[cfg(target_arch = "x86_64")]
fn is_wide() -> bool {
    matches!(Unit::present(), Unit::Avx512 { .. })
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

/// r <- r + change d_k, row by row; where values have weights W, W r <- W r + change W d_k.
#[inline(always)]
fn add<T: Real, const FMA: bool>(
    setting: &Setting<'_, T>,
    canvas: &mut [T],
    taps: &[[T; LANES]],
    place: &Place<'_>,
    change: T,
) {
    let (frame, data) = (setting.frame, setting.data());
    let per_row = frame.filter_blocks() / frame.filter_rows();
    for (row, (taps, start)) in taps.chunks_exact(per_row).zip(frame.starts(place.line)).enumerate() {
        if place.border && data.is_none() && !frame.row_counts(place.line, row) {
            continue;
        }
        for (block, taps) in taps.iter().enumerate() {
            let at = place.at(*start) + block * LANES;
            // Where nothing counts W is zero.
            let taps = data.map_or(*taps, |data| {
                let mut weighted = load(data, at + place.base);
                weighted.iter_mut().zip(taps).for_each(|(w, tap)| *w *= *tap);
                weighted
            });
            let columns = multiply_add::<T, FMA>([change; LANES], &taps, load(canvas, at));
            canvas[at..][..LANES].copy_from_slice(&columns);
        }
        if place.border {
            let at = place.at(*start) + place.base;
            if data.is_some() { repeat(frame, canvas, place.base, at) } else { mend(frame, canvas, place.base, at) }
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
