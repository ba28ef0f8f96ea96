//! The kernels: sums of products of 8 bits for three filters at a time and as many positions as the registers hold.

use super::{CoarseCanvas, CoarseFilters, CoarseLine, GROUP, QUAD, Ranking, Take};
use crate::coder::active_set::correlate::blocks;
use crate::coder::active_set::field::{of_filter, take_off};
use std::arch::x86_64::{
    __m512, __m512i, _CMP_GT_OQ, _mm256_add_epi16, _mm256_add_epi32, _mm256_dpbusd_avx_epi32, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm512_abs_ps,
    _mm512_castps_si512, _mm512_castsi512_ps, _mm512_cmp_ps_mask, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32,
    _mm512_loadu_si512, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_setzero_ps, _mm512_ternarylogic_epi32,
};

/// Positions per vector, and the most vectors at a time.
const WIDE: usize = 16;
const WIDE_STRETCH: usize = 7;
const NARROW: usize = 8;
const NARROW_STRETCH: usize = 3;
/// The largest factor of a sum.
const STEEPEST: f64 = f32::MAX as f64 / (1_u64 << 32) as f64;

/// All filters on one line, in sums of 32 bits and vectors of 512.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) fn wide512(filters: &CoarseFilters, canvas: &CoarseCanvas, line: &CoarseLine<'_>, to: &mut impl Take) {
    let vectors = line.length / WIDE;
    let stretches = vectors.div_ceil(WIDE_STRETCH);
    for (block, group) in blocks(stretches, WIDE_STRETCH * WIDE, filters.scale.len() / GROUP) {
        for stretch in block {
            let (done, end) = (vectors * stretch / stretches, vectors * (stretch + 1) / stretches);
            let x = done * WIDE;
            match end - done {
                1 => wide_stretch::<1>(filters, canvas, line, group, x, to),
                2 => wide_stretch::<2>(filters, canvas, line, group, x, to),
                3 => wide_stretch::<3>(filters, canvas, line, group, x, to),
                4 => wide_stretch::<4>(filters, canvas, line, group, x, to),
                5 => wide_stretch::<5>(filters, canvas, line, group, x, to),
                6 => wide_stretch::<6>(filters, canvas, line, group, x, to),
                _ => wide_stretch::<WIDE_STRETCH>(filters, canvas, line, group, x, to),
            }
        }
    }
}

/// V vectors of positions from column x on, for one group of filters.
#[target_feature(enable = "avx512f,avx512vnni")]
#[inline]
fn wide_stretch<const V: usize>(
    filters: &CoarseFilters,
    canvas: &CoarseCanvas,
    line: &CoarseLine<'_>,
    group: usize,
    x: usize,
    to: &mut impl Take,
) {
    let mut sums = [[_mm512_set1_epi32(0); V]; GROUP];
    for (f, sums) in sums.iter_mut().enumerate() {
        *sums = [_mm512_set1_epi32(filters.start[group * GROUP + f]); V];
    }
    let quads = filters.quads;
    let taps = &filters.taps[group * filters.per_group..][..filters.per_group];
    for (start, taps) in line.starts.iter().zip(taps.chunks_exact(quads * GROUP)) {
        let row = &canvas.quads[*start as usize + x..][..V * WIDE + (quads - 1) * QUAD];
        for (j, taps) in taps.as_chunks::<GROUP>().0.iter().enumerate() {
            let taps = taps.map(|tap| _mm512_set1_epi32(tap));
            #[expect(clippy::needless_range_loop, reason = "registers, by filter and vector")]
            for v in 0..V {
                // SAFETY: j < quads and v < V, so that the vector ends within the row, whose length was checked.
                #[expect(unsafe_code, reason = "a check per load would take as long as the load")]
                let u = unsafe { _mm512_loadu_si512(row.as_ptr().add(j * QUAD + v * WIDE).cast()) };
                for f in 0..GROUP {
                    sums[f][v] = _mm512_dpbusd_epi32(sums[f][v], u, taps[f]);
                }
            }
        }
    }
    let scale = scales(filters, canvas, group);
    #[expect(clippy::needless_range_loop, reason = "registers, by filter and vector")]
    for v in 0..V {
        let mut of_filters = [_mm512_set1_epi32(0); GROUP];
        for f in 0..GROUP {
            of_filters[f] = sums[f][v];
        }
        pass_vectors_on(line, group * GROUP, x + v * WIDE, &scale, &of_filters, to);
    }
}

/// All filters on one line, in sums of 32 bits and vectors of 256.
#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn wide256(filters: &CoarseFilters, canvas: &CoarseCanvas, line: &CoarseLine<'_>, to: &mut impl Take) {
    let vectors = line.length / NARROW;
    let stretches = vectors.div_ceil(NARROW_STRETCH);
    for (block, group) in blocks(stretches, NARROW_STRETCH * NARROW, filters.scale.len() / GROUP) {
        for stretch in block {
            let (done, end) = (vectors * stretch / stretches, vectors * (stretch + 1) / stretches);
            let x = done * NARROW;
            match end - done {
                1 => wide256_stretch::<1>(filters, canvas, line, group, x, to),
                2 => wide256_stretch::<2>(filters, canvas, line, group, x, to),
                _ => wide256_stretch::<NARROW_STRETCH>(filters, canvas, line, group, x, to),
            }
        }
    }
}

/// V vectors of positions from column x on, for one group of filters.
#[target_feature(enable = "avx2,avxvnni")]
#[inline]
fn wide256_stretch<const V: usize>(
    filters: &CoarseFilters,
    canvas: &CoarseCanvas,
    line: &CoarseLine<'_>,
    group: usize,
    x: usize,
    to: &mut impl Take,
) {
    let mut sums = [[_mm256_setzero_si256(); V]; GROUP];
    for (f, sums) in sums.iter_mut().enumerate() {
        *sums = [_mm256_set1_epi32(filters.start[group * GROUP + f]); V];
    }
    let quads = filters.quads;
    let taps = &filters.taps[group * filters.per_group..][..filters.per_group];
    for (start, taps) in line.starts.iter().zip(taps.chunks_exact(quads * GROUP)) {
        let row = &canvas.quads[*start as usize + x..][..V * NARROW + (quads - 1) * QUAD];
        for (j, taps) in taps.as_chunks::<GROUP>().0.iter().enumerate() {
            #[expect(clippy::needless_range_loop, reason = "registers, by filter and vector")]
            for v in 0..V {
                // SAFETY: j < quads and v < V, so that the vector ends within the row, whose length was checked.
                #[expect(unsafe_code, reason = "a check per load would take as long as the load")]
                let u = unsafe { _mm256_loadu_si256(row.as_ptr().add(j * QUAD + v * NARROW).cast()) };
                for f in 0..GROUP {
                    sums[f][v] = _mm256_dpbusd_avx_epi32(sums[f][v], u, _mm256_set1_epi32(taps[f]));
                }
            }
        }
    }
    let scale = scales(filters, canvas, group);
    for (f, sums) in sums.iter().enumerate() {
        for (v, sums) in sums.iter().enumerate() {
            pass_on::<NARROW>(line, group * GROUP + f, x + v * NARROW, scale[f], bytemuck::cast(*sums), to);
        }
    }
}

/// All filters on one line, in sums of 16 bits.
#[target_feature(enable = "avx2")]
pub(super) fn narrow(filters: &CoarseFilters, canvas: &CoarseCanvas, line: &CoarseLine<'_>, to: &mut impl Take) {
    let vectors = line.length / NARROW;
    let stretches = vectors.div_ceil(NARROW_STRETCH);
    for (block, group) in blocks(stretches, NARROW_STRETCH * NARROW, filters.scale.len() / GROUP) {
        for stretch in block {
            let (done, end) = (vectors * stretch / stretches, vectors * (stretch + 1) / stretches);
            let x = done * NARROW;
            match end - done {
                1 => narrow_stretch::<1>(filters, canvas, line, group, x, to),
                2 => narrow_stretch::<2>(filters, canvas, line, group, x, to),
                _ => narrow_stretch::<NARROW_STRETCH>(filters, canvas, line, group, x, to),
            }
        }
    }
}

/// V vectors of positions from column x on, for one group of filters.
///
/// A lane of 32 bits holds two sums of 16, one of the even pairs of taps and one of the odd ones, over a part of the rows. Either may
/// leave 16 bits on the way, but not in the end: `CoarseCanvas::new` saw to that.
#[target_feature(enable = "avx2")]
#[inline]
fn narrow_stretch<const V: usize>(
    filters: &CoarseFilters,
    canvas: &CoarseCanvas,
    line: &CoarseLine<'_>,
    group: usize,
    x: usize,
    to: &mut impl Take,
) {
    let mut totals = [[_mm256_setzero_si256(); V]; GROUP];
    let (quads, ones) = (filters.quads, _mm256_set1_epi16(1));
    let taps = &filters.taps[group * filters.per_group..][..filters.per_group];
    let parts = line.starts.chunks(filters.rows).zip(taps.chunks(filters.rows * quads * GROUP));
    for ((starts, taps), first) in parts.zip(filters.start.chunks_exact(filters.scale.len())) {
        let mut sums = [[_mm256_setzero_si256(); V]; GROUP];
        for f in 0..GROUP {
            sums[f] = [_mm256_set1_epi32(first[group * GROUP + f]); V];
        }
        for (start, taps) in starts.iter().zip(taps.chunks_exact(quads * GROUP)) {
            let row = &canvas.quads[*start as usize + x..][..V * NARROW + (quads - 1) * QUAD];
            for (j, taps) in taps.as_chunks::<GROUP>().0.iter().enumerate() {
                #[expect(clippy::needless_range_loop, reason = "registers, by filter and vector")]
                for v in 0..V {
                    // SAFETY: j < quads and v < V, so that the vector ends within the row, whose length was checked.
                    #[expect(unsafe_code, reason = "a check per load would take as long as the load")]
                    let u = unsafe { _mm256_loadu_si256(row.as_ptr().add(j * QUAD + v * NARROW).cast()) };
                    for f in 0..GROUP {
                        let products = _mm256_maddubs_epi16(u, _mm256_set1_epi32(taps[f]));
                        sums[f][v] = _mm256_add_epi16(sums[f][v], products);
                    }
                }
            }
        }
        for f in 0..GROUP {
            for v in 0..V {
                totals[f][v] = _mm256_add_epi32(totals[f][v], _mm256_madd_epi16(sums[f][v], ones));
            }
        }
    }
    let scale = scales(filters, canvas, group);
    for (f, totals) in totals.iter().enumerate() {
        for (v, totals) in totals.iter().enumerate() {
            pass_on::<NARROW>(line, group * GROUP + f, x + v * NARROW, scale[f], bytemuck::cast(*totals), to);
        }
    }
}

/// What the sums of a group of filters are multiplied by: never so much that the product with a sum of 32 bits is infinite, where bits of
/// a filter's number would make it no number at all.
#[inline(always)]
fn scales(filters: &CoarseFilters, canvas: &CoarseCanvas, group: usize) -> [f32; GROUP] {
    let mut scales = [0.0; GROUP];
    for (out, scale) in scales.iter_mut().zip(&filters.scale[group * GROUP..]) {
        *out = (scale * canvas.step).min(STEEPEST) as f32;
    }
    scales
}

/// Hands the sums of filter k at N positions from column x on over as strengths.
#[inline(always)]
fn pass_on<const N: usize>(line: &CoarseLine<'_>, k: usize, x: usize, scale: f32, sums: [i32; N], to: &mut impl Take) {
    let mut strengths = [0.0; N];
    for i in 0..N {
        strengths[i] = sums[i] as f32 * scale;
    }
    if !line.pulls.is_empty() {
        pull(line, k, x, &mut strengths);
    }
    if !line.signed {
        for s in &mut strengths {
            *s = s.abs();
        }
    }
    to.take(x, k, strengths);
}

/// Hands the sums of F filters from k on, at the positions of a vector from column x on, over as strengths.
#[target_feature(enable = "avx512f")]
#[inline]
fn pass_vectors_on<const F: usize>(
    line: &CoarseLine<'_>,
    k: usize,
    x: usize,
    scale: &[f32; F],
    sums: &[__m512i; F],
    to: &mut impl Take,
) {
    let mut strengths = [_mm512_setzero_ps(); F];
    for f in 0..F {
        strengths[f] = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[f]), _mm512_set1_ps(scale[f]));
    }
    if !line.pulls.is_empty() {
        for (f, strengths) in strengths.iter_mut().enumerate() {
            let mut numbers: [f32; WIDE] = bytemuck::cast(*strengths);
            pull(line, k + f, x, &mut numbers);
            *strengths = bytemuck::cast(numbers);
        }
    }
    if !line.signed {
        for strengths in &mut strengths {
            *strengths = _mm512_abs_ps(*strengths);
        }
    }
    // SAFETY: this function is compiled for AVX-512 F as well.
    #[expect(unsafe_code, reason = "a function for a vector unit that is there")]
    unsafe {
        to.take_vectors(x, k, &strengths);
    }
}

/// Which numbers of a vector are above the bar, a bit each.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn above(strengths: __m512, bar: f32) -> u32 {
    u32::from(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(strengths, _mm512_set1_ps(bar)))
}

/// What [`Ranking`] takes, for F filters from k on.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn rank<const F: usize>(ranking: &mut Ranking<'_>, x: usize, k: usize, strengths: &[__m512; F]) {
    let (first, second) = (ranking.first[x..].first_chunk_mut::<WIDE>(), ranking.second[x..].first_chunk_mut::<WIDE>());
    let (Some(first), Some(second)) = (first, second) else { return };
    let (mut best, mut next): (__m512, __m512) = (bytemuck::cast(*first), bytemuck::cast(*second));
    let kept = _mm512_set1_epi32(!ranking.numbers as i32);
    for (f, s) in strengths.iter().enumerate() {
        // (s and kept) or number
        let s = _mm512_ternarylogic_epi32::<0xea>(_mm512_castps_si512(*s), kept, _mm512_set1_epi32((k + f) as i32));
        let s = _mm512_castsi512_ps(s);
        next = _mm512_max_ps(next, _mm512_min_ps(best, s));
        best = _mm512_max_ps(best, s);
    }
    (*first, *second) = (bytemuck::cast(best), bytemuck::cast(next));
}

/// Out of line, so that the loops around it are unrolled.
#[inline(never)]
fn pull(line: &CoarseLine<'_>, k: usize, x: usize, strengths: &mut [f32]) {
    take_off(of_filter(line.pulls, k), x, strengths);
}
