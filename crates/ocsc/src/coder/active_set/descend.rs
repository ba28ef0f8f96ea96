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

use super::coarse::Survivor;
use super::filters::Filters;
use super::frame::{Frame, GROUP, LANES};
use crate::Boundary;
use crate::Real;
use crate::simd::Kernel;

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

/// What a sweep needs to know of problems other than the lasso.
pub(super) struct General<'a, T> {
    /// The weight of each filter before any reweighting, for the size of steps.
    pub(super) weights: &'a [T],
    /// mu of an elastic net, or 0.
    pub(super) ridge: T,
    /// W on the canvas, if values have weights.
    pub(super) data: Option<&'a [T]>,
}

/// One visit of each atom in `order`, in a part of the canvas that they do not leave.
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
        for &i in self.order {
            let atom = &mut self.atoms[i as usize];
            let k = atom.filter as usize;
            let (taps, weight) = (self.setting.filters.rows(k).as_chunks::<LANES>().0, atom.weight);
            let starts = self.setting.frame.starts(atom.line as usize);
            let column = (atom.column as usize).wrapping_sub(self.base);
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
            let (new, unit) = match &self.setting.general {
                None => (new, threshold),
                Some(general) => {
                    let shrunk = new / (T::one() + general.ridge * atom.inverse_energy);
                    (shrunk, general.weights[k] * atom.inverse_energy)
                }
            };
            let change = new - atom.value;
            let step = change.abs() / unit;
            let heat = &mut self.heat[atom.tile as usize];
            *heat = heat.at_least(step);
            if step <= self.negligible {
                continue;
            }
            atom.value = new;
            match self.setting.general.as_ref().and_then(|general| general.data) {
                None => add::<T, FMA>(self.setting.frame, self.canvas, taps, blocks, atom, self.base, -change),
                Some(data) => {
                    add_weighted::<T, FMA>(
                        self.setting.frame,
                        self.canvas,
                        data,
                        taps,
                        blocks,
                        atom,
                        self.base,
                        -change,
                    );
                }
            }
        }
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
        let starts = self.frame.starts(self.line);
        for (at, out) in self.survivors.iter().zip(self.out) {
            let taps = self.filters.rows(at.filter as usize).as_chunks::<LANES>().0;
            *out = if blocks == 1 {
                dot::<T, FMA>(self.canvas, taps, starts, at.column as usize)
            } else {
                long_dot::<T, FMA>(self.canvas, taps, blocks, starts, at.column as usize)
            };
        }
    }
}

/// <d_k, r> for filters of one block of columns; the rows come in whole groups, the last filled up with zero taps.
#[allow(unsafe_code, reason = "a call of a function for a vector unit that was detected")]
#[inline(always)]
fn dot<T: Real, const FMA: bool>(canvas: &[T], taps: &[[T; LANES]], starts: &[u32], column: usize) -> T {
    #[cfg(target_arch = "x86_64")]
    if let (true, Some(canvas), Some(taps)) = (FMA, T::singles(canvas), T::singles(taps.as_flattened())) {
        // SAFETY: on this architecture FMA says that AVX2 and FMA were detected.
        return unsafe { x86::dot(canvas, taps.as_chunks::<LANES>().0, starts, column) }.map_or(T::zero(), T::single);
    }
    let mut sum = [T::zero(); LANES];
    for (taps, start) in taps.iter().zip(starts) {
        sum = multiply_add::<T, FMA>(load(canvas, (*start as usize).wrapping_add(column)), taps, sum);
    }
    fold(sum)
}

/// The same in single precision, spelled out: the compiler breaks the sums into pieces of two lanes.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{GROUP, LANES};
    use std::arch::x86_64::{
        __m256, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_ps,
        _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_setzero_ps,
    };

    /// Two sums of eight lanes.
    type Sums = (__m256, __m256);

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub(super) fn dot(canvas: &[f32], taps: &[[f32; LANES]], starts: &[u32], column: usize) -> Option<f32> {
        let zero = (_mm256_setzero_ps(), _mm256_setzero_ps());
        let (mut a, mut b, mut c, mut d) = (zero, zero, zero, zero);
        for (taps, starts) in taps.as_chunks::<GROUP>().0.iter().zip(starts.as_chunks::<GROUP>().0) {
            a = row(canvas, starts[0], column, &taps[0], a)?;
            b = row(canvas, starts[1], column, &taps[1], b)?;
            c = row(canvas, starts[2], column, &taps[2], c)?;
            d = row(canvas, starts[3], column, &taps[3], d)?;
        }
        let low = _mm256_add_ps(_mm256_add_ps(a.0, b.0), _mm256_add_ps(c.0, d.0));
        let high = _mm256_add_ps(_mm256_add_ps(a.1, b.1), _mm256_add_ps(c.1, d.1));
        let eight = _mm256_add_ps(low, high);
        let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        Some(_mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))))
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn row(canvas: &[f32], start: u32, column: usize, taps: &[f32; LANES], sums: Sums) -> Option<Sums> {
        let columns = canvas.get((start as usize).wrapping_add(column)..)?.first_chunk::<LANES>()?;
        let [columns, taps]: [[__m256; 2]; 2] = [bytemuck::cast(*columns), bytemuck::cast(*taps)];
        Some((_mm256_fmadd_ps(columns[0], taps[0], sums.0), _mm256_fmadd_ps(columns[1], taps[1], sums.1)))
    }
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
    let mut sum = [T::zero(); LANES];
    for (taps, start) in taps.chunks_exact(blocks).zip(starts) {
        for (block, taps) in taps.iter().enumerate() {
            sum =
                multiply_add::<T, FMA>(load(canvas, (*start as usize).wrapping_add(column) + block * LANES), taps, sum);
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
#[inline(always)]
fn add<T: Real, const FMA: bool>(
    frame: &Frame,
    canvas: &mut [T],
    taps: &[[T; LANES]],
    blocks: usize,
    atom: &Active<T>,
    base: usize,
    change: T,
) {
    let (line, column) = (atom.line as usize, atom.column as usize);
    let starts = &frame.starts(line)[..frame.filter_rows()];
    for (row, (taps, start)) in taps.chunks_exact(blocks).zip(starts).enumerate() {
        if atom.border && !frame.row_counts(line, row) {
            continue;
        }
        for (block, taps) in taps.iter().enumerate() {
            let start = *start as usize - base + column + block * LANES;
            let columns = multiply_add::<T, FMA>([change; LANES], taps, load(canvas, start));
            canvas[start..][..LANES].copy_from_slice(&columns);
        }
        if atom.border {
            mend(frame, &mut canvas[*start as usize - base..][..frame.stride], *start as usize, column);
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
            let row = &mut canvas[*start as usize - base..][..frame.stride];
            frame.repeat_columns(row, column, column + frame.filter.width);
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

/// After an atom was added to the row that starts at `start`, from `column` on: clears the columns that do not count, repeats
/// those kept twice.
#[inline(never)]
pub(super) fn mend<T: Real>(frame: &Frame, row: &mut [T], start: usize, column: usize) {
    let end = column + frame.filter.width;
    frame.hide(start + column, &mut row[column..end]);
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
