//! An atom's rows against the canvas, in single precision: 16 columns to one or two registers.
//!
//! The compiler breaks such sums into pieces of two lanes, so they are spelled out. Whether all rows lie on the canvas is checked once for
//! an atom, not for every row.
#![expect(unsafe_code, reason = "vector instructions, and one check for all rows of an atom")]

use super::{Arithmetic, Place, Plain, Rescore, Setting, Sweep};
use crate::Real;
use crate::coder::active_set::frame::{Extent, Frame, GROUP, LANES};
use std::arch::x86_64::{
    __m256, __m512, __mmask16, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_ps,
    _mm256_and_si256, _mm256_castpd_ps, _mm256_castps256_ps128, _mm256_cmpeq_epi32, _mm256_extractf128_ps,
    _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setr_epi32, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_castps_pd, _mm512_castps512_ps256,
    _mm512_extractf64x4_pd, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};
use std::marker::PhantomData;

/// Sixteen numbers in registers.
trait Row: Copy {
    unsafe fn zero() -> Self;
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    /// self times other plus sum.
    unsafe fn fused(self, other: Self, sum: Self) -> Self;
    /// The sum of all numbers.
    unsafe fn total(self) -> f32;
    /// Adds `change` times the taps to those columns whose bit is set; the others are neither read nor written.
    unsafe fn add_some(columns: *mut f32, taps: *const f32, change: f32, mask: u32);
}

impl Row for __m512 {
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { _mm512_add_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn fused(self, other: Self, sum: Self) -> Self {
        unsafe { _mm512_fmadd_ps(self, other, sum) }
    }
    #[inline(always)]
    unsafe fn total(self) -> f32 {
        unsafe {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self)));
            eight(_mm256_add_ps(_mm512_castps512_ps256(self), high))
        }
    }
    #[inline(always)]
    unsafe fn add_some(columns: *mut f32, taps: *const f32, change: f32, mask: u32) {
        unsafe {
            let mask = mask as __mmask16;
            let sum = _mm512_maskz_loadu_ps(mask, columns);
            _mm512_mask_storeu_ps(columns, mask, _mm512_fmadd_ps(_mm512_set1_ps(change), Self::load(taps), sum));
        }
    }
}

impl Row for [__m256; 2] {
    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { [_mm256_setzero_ps(); 2] }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        unsafe { [_mm256_set1_ps(value); 2] }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(LANES / 2))] }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self[0]);
            _mm256_storeu_ps(to.add(LANES / 2), self[1]);
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { [_mm256_add_ps(self[0], other[0]), _mm256_add_ps(self[1], other[1])] }
    }
    #[inline(always)]
    unsafe fn fused(self, other: Self, sum: Self) -> Self {
        unsafe { [_mm256_fmadd_ps(self[0], other[0], sum[0]), _mm256_fmadd_ps(self[1], other[1], sum[1])] }
    }
    #[inline(always)]
    unsafe fn total(self) -> f32 {
        unsafe { eight(_mm256_add_ps(self[0], self[1])) }
    }
    #[inline(always)]
    unsafe fn add_some(columns: *mut f32, taps: *const f32, change: f32, mask: u32) {
        unsafe {
            let (bits, change) = (_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128), _mm256_set1_ps(change));
            for half in 0..2 {
                let set = _mm256_and_si256(_mm256_set1_epi32((mask >> (half * LANES / 2)) as i32), bits);
                let (mask, columns) = (_mm256_cmpeq_epi32(set, bits), columns.wrapping_add(half * LANES / 2));
                let taps = _mm256_loadu_ps(taps.add(half * LANES / 2));
                _mm256_maskstore_ps(columns, mask, _mm256_fmadd_ps(change, taps, _mm256_maskload_ps(columns, mask)));
            }
        }
    }
}

/// r <- r + change d_k, row by row. Out of line: few atoms are at the border.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn add_plainly<T: Real>(setting: &Setting<'_, T>, canvas: &mut [T], taps: &[[T; LANES]], place: &Place<'_>, change: T) {
    super::add::<T, true>(setting, canvas, taps, place, change);
}

/// The sum of eight numbers.
#[inline(always)]
unsafe fn eight(numbers: __m256) -> f32 {
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(numbers), _mm256_extractf128_ps::<1>(numbers));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }
}

/// The arithmetic of vectors. Only code that is compiled for what V is made of may use it.
struct Vectors<V>(PhantomData<V>);

impl<V: Row> Arithmetic for Vectors<V> {
    #[inline(always)]
    fn dot<T: Real>(canvas: &[T], taps: &[[T; LANES]], place: &Place<'_>) -> T {
        match (T::singles(canvas), T::singles(taps.as_flattened())) {
            (Some(canvas), Some(taps)) => {
                let extent = place.checked(canvas.len());
                // SAFETY: the place was checked, and the processor has what V is made of.
                T::single(unsafe { dot_of::<V>(canvas.as_ptr(), taps.as_chunks().0, place, extent) })
            }
            _ => Plain::<true>::dot(canvas, taps, place),
        }
    }

    #[inline(always)]
    fn step<T: Real>(
        setting: &Setting<'_, T>,
        canvas: &mut [T],
        taps: &[[T; LANES]],
        place: &Place<'_>,
        change: impl FnOnce(T) -> Option<T>,
    ) {
        let whole = taps;
        let (Some(numbers), Some(taps)) = (T::singles_mut(canvas), T::singles(taps.as_flattened())) else {
            return Plain::<true>::step(setting, canvas, taps, place, change);
        };
        let (extent, taps) = (place.checked(numbers.len()), taps.as_chunks().0);
        // SAFETY: the place was checked, and the processor has what V is made of.
        unsafe {
            let origin = numbers.as_mut_ptr();
            let Some(change) = change(T::single(dot_of::<V>(origin, taps, place, extent))) else { return };
            if setting.data().is_none() && (!place.border || wraps_in_blocks(setting.frame)) {
                let change = change.f64() as f32;
                add_of::<V>(origin, taps, place, extent, change);
                if place.border {
                    repeat_of::<V>(origin, taps, place, change);
                }
                return;
            }
            add_plainly(setting, canvas, whole, place, change);
        }
    }

    #[inline(always)]
    fn fused<T: Real>(a: T, b: T, c: T) -> T {
        a.fused::<true>(b, c)
    }
}

impl Place<'_> {
    /// Where the blocks lie on the whole canvas, all of them among the `len` numbers of the part.
    #[inline(always)]
    fn checked(&self, len: usize) -> Extent {
        let (extent, column) = (self.frame.extent(self.line), self.column.wrapping_add(self.base));
        let within =
            extent.first as usize + column >= self.base && extent.last as usize + column + LANES <= self.base + len;
        assert!(within, "an atom lies outside its part of the canvas");
        extent
    }
}

/// <d_k, r>.
///
/// # Safety
///
/// The place must have been checked against the canvas, and the processor must have what V is made of.
#[inline(always)]
unsafe fn dot_of<V: Row>(canvas: *const f32, taps: &[[f32; LANES]], place: &Place<'_>, extent: Extent) -> f32 {
    let origin = canvas.wrapping_add(place.column);
    let groups = taps.as_chunks::<GROUP>().0;
    // SAFETY: as the caller promises.
    unsafe {
        let mut sums = [V::zero(); GROUP];
        if extent.step == 0 {
            for (taps, starts) in groups.iter().zip(place.starts().as_chunks::<GROUP>().0) {
                for i in 0..GROUP {
                    let columns = V::load(origin.wrapping_add(starts[i] as usize));
                    sums[i] = columns.fused(V::load(taps[i].as_ptr()), sums[i]);
                }
            }
        } else {
            let (step, mut columns) = (extent.step as usize, origin.wrapping_add(extent.first as usize));
            let (groups, rest) = taps[..place.frame.filter_blocks()].as_chunks::<GROUP>();
            for taps in groups {
                for (i, (sum, taps)) in sums.iter_mut().zip(taps).enumerate() {
                    *sum = V::load(columns.wrapping_add(i * step)).fused(V::load(taps.as_ptr()), *sum);
                }
                columns = columns.wrapping_add(GROUP * step);
            }
            for (i, taps) in rest.iter().enumerate() {
                sums[i] = V::load(columns).fused(V::load(taps.as_ptr()), sums[i]);
                columns = columns.wrapping_add(step);
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).total()
    }
}

/// r <- r + change d_k.
///
/// # Safety
///
/// As for [`dot_of`].
#[inline(always)]
unsafe fn add_of<V: Row>(canvas: *mut f32, taps: &[[f32; LANES]], place: &Place<'_>, extent: Extent, change: f32) {
    let origin = canvas.wrapping_add(place.column);
    let taps = &taps[..place.frame.filter_blocks()];
    // SAFETY: as the caller promises.
    unsafe {
        let change = V::splat(change);
        // No iterator may call this: a function without the vector unit would then hold it.
        let add = |taps: &[f32; LANES], columns: *mut f32| {
            change.fused(V::load(taps.as_ptr()), V::load(columns)).store(columns);
        };
        if extent.step == 0 {
            for (taps, start) in taps.iter().zip(place.starts()) {
                add(taps, origin.wrapping_add(*start as usize));
            }
            return;
        }
        let (step, mut columns) = (extent.step as usize, origin.wrapping_add(extent.first as usize));
        let (groups, rest) = taps.as_chunks::<GROUP>();
        for taps in groups {
            for (i, taps) in taps.iter().enumerate() {
                add(taps, columns.wrapping_add(i * step));
            }
            columns = columns.wrapping_add(GROUP * step);
        }
        for taps in rest {
            add(taps, columns);
            columns = columns.wrapping_add(step);
        }
    }
}

/// After r <- r + change d_k, for an atom of one block per row that wraps around at the last column, or covers columns that are kept
/// twice: the same for the other of the two.
///
/// # Safety
///
/// As for [`dot_of`].
#[inline(always)]
unsafe fn repeat_of<V: Row>(canvas: *mut f32, taps: &[[f32; LANES]], place: &Place<'_>, change: f32) {
    let (width, filter_width) = (place.frame.sample.width, place.frame.filter.width);
    let column = place.column.wrapping_add(place.base);
    // Lanes whose column is kept again after the last one, and lanes beyond the last one.
    let again = (filter_width - 1).saturating_sub(column).min(filter_width);
    let inside = (width - column).min(filter_width);
    let lanes = |from: usize, to: usize| ((1_u32 << to) - 1) & !((1_u32 << from) - 1);
    let origin = canvas.wrapping_add(place.column);
    for (shifted, mask) in
        [(origin.wrapping_add(width), lanes(0, again)), (origin.wrapping_sub(width), lanes(inside, filter_width))]
    {
        if mask == 0 {
            continue;
        }
        for (taps, start) in taps.iter().zip(place.frame.starts(place.line)) {
            // SAFETY: as the caller promises; lanes that are masked out are not touched, the others lie in the same row of the canvas.
            unsafe { V::add_some(shifted.wrapping_add(*start as usize), taps.as_ptr(), change, mask) }
        }
    }
}

/// Whether all that atoms at the border need beyond being added is [`repeat_of`].
#[inline(always)]
fn wraps_in_blocks(frame: &Frame) -> bool {
    frame.filter_blocks() == frame.filter_rows() && frame.only_wraps() && !frame.is_folded()
}

/// The visits of a sweep in vectors, for single precision on a processor with AVX2 and FMA; `is_wide` says that it has AVX-512.
#[inline(always)]
pub(super) fn sweep<T: Real>(sweep: Sweep<'_, T>, is_wide: bool) {
    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
    fn wide<T: Real>(sweep: Sweep<'_, T>) {
        sweep.visit::<Vectors<__m512>>();
    }
    #[target_feature(enable = "avx2,fma")]
    fn narrow<T: Real>(sweep: Sweep<'_, T>) {
        sweep.visit::<Vectors<[__m256; 2]>>();
    }
    // SAFETY: the caller knows what the processor has.
    unsafe { if is_wide { wide(sweep) } else { narrow(sweep) } }
}

/// Single correlations in vectors, likewise.
#[inline(always)]
pub(super) fn rescore<T: Real>(rescore: Rescore<'_, T>, is_wide: bool) {
    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
    fn wide<T: Real>(rescore: Rescore<'_, T>) {
        rescore.correlate::<Vectors<__m512>>();
    }
    #[target_feature(enable = "avx2,fma")]
    fn narrow<T: Real>(rescore: Rescore<'_, T>) {
        rescore.correlate::<Vectors<[__m256; 2]>>();
    }
    // SAFETY: as in `sweep`.
    unsafe { if is_wide { wide(rescore) } else { narrow(rescore) } }
}
