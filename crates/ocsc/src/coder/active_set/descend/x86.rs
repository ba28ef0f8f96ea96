//! An atom's rows against the canvas, in single precision: 16 columns to one or two registers.
//!
//! The compiler breaks such sums into pieces of two lanes, so they are spelled out. Whether all rows lie on the canvas is checked once for
//! an atom, not for every row.
#![expect(unsafe_code, reason = "vector instructions, and one check for all rows of an atom")]

use super::{GROUP, LANES, Place};
use std::arch::x86_64::{
    __m256, __m512, __mmask16, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_ps,
    _mm256_castpd_ps, _mm256_castps256_ps128, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps,
    _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_castps_pd, _mm512_castps512_ps256,
    _mm512_extractf64x4_pd, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
};

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

/// <d_k, r>.
///
/// # Safety
///
/// The place must lie within the canvas (see [`Place::is_within`]), and the processor must have what V is made of.
#[inline(always)]
unsafe fn dot_of<V: Row>(canvas: &[f32], taps: &[[f32; LANES]], place: &Place<'_>) -> f32 {
    unsafe {
        let origin = canvas.as_ptr().wrapping_add(place.column);
        let mut sums = [V::zero(); GROUP];
        for (taps, starts) in taps.as_chunks::<GROUP>().0.iter().zip(place.starts.as_chunks::<GROUP>().0) {
            for i in 0..GROUP {
                let columns = V::load(origin.wrapping_add(starts[i] as usize));
                sums[i] = columns.fused(V::load(taps[i].as_ptr()), sums[i]);
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).total()
    }
}

/// <d_k, r> for filters of several blocks of columns.
///
/// # Safety
///
/// As for [`dot_of`].
#[inline(always)]
unsafe fn long_dot_of<V: Row>(canvas: &[f32], taps: &[[f32; LANES]], blocks: usize, place: &Place<'_>) -> f32 {
    unsafe {
        let origin = canvas.as_ptr().wrapping_add(place.column);
        let mut sums = [V::zero(); GROUP];
        for (taps, start) in taps.chunks_exact(blocks).zip(&place.starts[..place.rows]) {
            let columns = origin.wrapping_add(*start as usize);
            let (groups, rest) = taps.as_chunks::<GROUP>();
            for (g, taps) in groups.iter().enumerate() {
                for i in 0..GROUP {
                    let columns = V::load(columns.wrapping_add((g * GROUP + i) * LANES));
                    sums[i] = columns.fused(V::load(taps[i].as_ptr()), sums[i]);
                }
            }
            for (i, taps) in rest.iter().enumerate() {
                let columns = V::load(columns.wrapping_add((groups.len() * GROUP + i) * LANES));
                sums[i] = columns.fused(V::load(taps.as_ptr()), sums[i]);
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).total()
    }
}

/// r <- r + change d_k for filters of several blocks of columns.
///
/// # Safety
///
/// As for [`dot_of`].
#[inline(always)]
unsafe fn long_add_of<V: Row>(
    canvas: &mut [f32],
    taps: &[[f32; LANES]],
    blocks: usize,
    place: &Place<'_>,
    change: f32,
) {
    unsafe {
        let (origin, change) = (canvas.as_mut_ptr().wrapping_add(place.column), V::splat(change));
        for (taps, start) in taps.chunks_exact(blocks).zip(&place.starts[..place.rows]) {
            let columns = origin.wrapping_add(*start as usize);
            for (block, taps) in taps.iter().enumerate() {
                let columns = columns.wrapping_add(block * LANES);
                change.fused(V::load(taps.as_ptr()), V::load(columns)).store(columns);
            }
        }
    }
}

/// r <- r + change d_k.
///
/// # Safety
///
/// As for [`dot_of`].
#[inline(always)]
unsafe fn add_of<V: Row>(canvas: &mut [f32], taps: &[[f32; LANES]], place: &Place<'_>, change: f32) {
    unsafe {
        let (origin, change) = (canvas.as_mut_ptr().wrapping_add(place.column), V::splat(change));
        for (taps, start) in taps.iter().zip(&place.starts[..place.rows]) {
            let columns = origin.wrapping_add(*start as usize);
            change.fused(V::load(taps.as_ptr()), V::load(columns)).store(columns);
        }
    }
}

/// <d_k, r> on AVX-512; the place must lie within the canvas.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
pub(super) unsafe fn dot512(canvas: &[f32], taps: &[[f32; LANES]], place: &Place<'_>) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { dot_of::<__m512>(canvas, taps, place) }
}

/// <d_k, r> on AVX2; the place must lie within the canvas.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn dot256(canvas: &[f32], taps: &[[f32; LANES]], place: &Place<'_>) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { dot_of::<[__m256; 2]>(canvas, taps, place) }
}

/// r <- r + change d_k on AVX-512; the place must lie within the canvas.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
pub(super) unsafe fn add512(canvas: &mut [f32], taps: &[[f32; LANES]], place: &Place<'_>, change: f32) {
    // SAFETY: as the caller promises.
    unsafe { add_of::<__m512>(canvas, taps, place, change) }
}

/// r <- r + change d_k on AVX-512, for an atom that wraps around at the last column, or that covers columns that are kept twice; the
/// place must lie within the canvas, and rows are as [`Place::is_within`] wants them.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) unsafe fn add512_wrapped(
    canvas: &mut [f32],
    taps: &[[f32; LANES]],
    place: &Place<'_>,
    change: f32,
    width: usize,
    filter_width: usize,
) {
    // SAFETY: as the caller promises; lanes that are masked out are not touched, the others lie in the same row of the canvas.
    unsafe {
        add_of::<__m512>(canvas, taps, place, change);
        let column = place.column.wrapping_add(place.base);
        // Lanes whose column is kept again after the last one, and lanes beyond the last one.
        let again = (filter_width - 1).saturating_sub(column).min(filter_width);
        let inside = (width - column).min(filter_width);
        let lanes = |from: usize, to: usize| (((1_u32 << to) - 1) & !((1_u32 << from) - 1)) as __mmask16;
        let origin = canvas.as_mut_ptr().wrapping_add(place.column);
        for (shifted, mask) in
            [(origin.wrapping_add(width), lanes(0, again)), (origin.wrapping_sub(width), lanes(inside, filter_width))]
        {
            if mask == 0 {
                continue;
            }
            let change = _mm512_set1_ps(change);
            for (taps, start) in taps.iter().zip(&place.starts[..place.rows]) {
                let columns = shifted.wrapping_add(*start as usize);
                let sum = _mm512_maskz_loadu_ps(mask, columns);
                _mm512_mask_storeu_ps(columns, mask, _mm512_fmadd_ps(change, __m512::load(taps.as_ptr()), sum));
            }
        }
    }
}

/// r <- r + change d_k on AVX2; the place must lie within the canvas.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn add256(canvas: &mut [f32], taps: &[[f32; LANES]], place: &Place<'_>, change: f32) {
    // SAFETY: as the caller promises.
    unsafe { add_of::<[__m256; 2]>(canvas, taps, place, change) }
}

/// <d_k, r> for filters of several blocks of columns on AVX-512; the place must lie within the canvas.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
pub(super) unsafe fn long_dot512(canvas: &[f32], taps: &[[f32; LANES]], blocks: usize, place: &Place<'_>) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { long_dot_of::<__m512>(canvas, taps, blocks, place) }
}

/// <d_k, r> for filters of several blocks of columns on AVX2; the place must lie within the canvas.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn long_dot256(canvas: &[f32], taps: &[[f32; LANES]], blocks: usize, place: &Place<'_>) -> f32 {
    // SAFETY: as the caller promises.
    unsafe { long_dot_of::<[__m256; 2]>(canvas, taps, blocks, place) }
}

/// r <- r + change d_k for filters of several blocks of columns on AVX-512; the place must lie within the canvas.
#[target_feature(enable = "avx512f,avx2,fma")]
#[inline]
pub(super) unsafe fn long_add512(
    canvas: &mut [f32],
    taps: &[[f32; LANES]],
    blocks: usize,
    place: &Place<'_>,
    change: f32,
) {
    // SAFETY: as the caller promises.
    unsafe { long_add_of::<__m512>(canvas, taps, blocks, place, change) }
}

/// r <- r + change d_k for filters of several blocks of columns on AVX2; the place must lie within the canvas.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn long_add256(
    canvas: &mut [f32],
    taps: &[[f32; LANES]],
    blocks: usize,
    place: &Place<'_>,
    change: f32,
) {
    // SAFETY: as the caller promises.
    unsafe { long_add_of::<[__m256; 2]>(canvas, taps, blocks, place, change) }
}
