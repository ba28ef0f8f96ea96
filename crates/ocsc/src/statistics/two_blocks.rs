//! Products of two blocks at once: sixteen lanes of single precision where the machine has them.
//!
//! A block has [`LANES`](super::LANES) = 8 lanes, half of the widest registers. Two blocks side by side fill them, whichever blocks they are, so the
//! statistics stay as they are stored. Every lane has the sums of [`Multiply`] in the same order, so all units that fuse
//! products and sums give the same bits.

use super::{Multiply, Window};
use crate::Real;
use crate::simd::dispatch;

/// Computes out += phi * taps for two blocks.
pub(crate) struct MultiplyTwo<'a, T> {
    pub(crate) geometry: &'a Window,
    pub(crate) phi: [&'a [T]; 2],
    pub(crate) taps: [&'a [T]; 2],
    pub(crate) out: [&'a mut [T]; 2],
}

impl<T: Real> MultiplyTwo<'_, T> {
    pub(crate) fn run(self) {
        #[cfg(target_arch = "x86_64")]
        let Some(rest) = x86::run(self) else { return };
        #[cfg(not(target_arch = "x86_64"))]
        let rest = self;
        let MultiplyTwo { geometry, phi, taps, out } = rest;
        for ((phi, taps), out) in phi.into_iter().zip(taps).zip(out) {
            dispatch(Multiply { geometry, phi, taps, out });
        }
    }
}

/// The compiler keeps sums of sixteen lanes in memory, so they are spelled out.
#[cfg(target_arch = "x86_64")]
mod x86 {
    #![expect(unsafe_code, reason = "vector instructions")]

    use super::MultiplyTwo;
    use crate::Real;
    use crate::simd::Unit;
    use crate::statistics::{LANES, Window};
    use std::arch::x86_64::{
        __m512, _mm256_castpd_ps, _mm256_castps_pd, _mm256_loadu_ps, _mm256_storeu_ps, _mm512_castpd_ps,
        _mm512_castps_pd, _mm512_castps256_ps512, _mm512_castps512_ps256, _mm512_extractf64x4_pd, _mm512_fmadd_ps,
        _mm512_insertf64x4, _mm512_setzero_ps,
    };

    /// One lag, tap or sum of the filters of a block.
    type Lane = [f32; LANES];

    /// Runs it if it can; if not, it is returned.
    pub(super) fn run<T: Real>(two: MultiplyTwo<'_, T>) -> Option<MultiplyTwo<'_, T>> {
        let is_wide = matches!(Unit::present(), Unit::Avx512 { .. });
        if !is_wide || T::singles(two.phi[0]).is_none() {
            return Some(two);
        }
        let lanes = |values| T::singles(values).map_or(&[][..], |values| values.as_chunks::<LANES>().0);
        let (phi, taps) = (two.phi.map(lanes), two.taps.map(lanes));
        let out = two.out.map(|out| T::singles_mut(out).map_or(&mut [][..], |out| out.as_chunks_mut::<LANES>().0));
        let tiles = match two.geometry.tile() {
            1 => tiles::<1>,
            2 => tiles::<2>,
            3 => tiles::<3>,
            4 => tiles::<4>,
            5 => tiles::<5>,
            6 => tiles::<6>,
            7 => tiles::<7>,
            8 => tiles::<8>,
            9 => tiles::<9>,
            10 => tiles::<10>,
            11 => tiles::<11>,
            _ => tiles::<{ crate::statistics::WIDEST }>,
        };
        // SAFETY: the unit was detected on this machine.
        unsafe { tiles(two.geometry, phi, taps, out) };
        None
    }

    /// The loops of `Multiply::tiles`. Closures would not be inlined here, since what calls them is compiled for any machine.
    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
    unsafe fn tiles<const B: usize>(geometry: &Window, phi: [&[Lane]; 2], taps: [&[Lane]; 2], out: [&mut [Lane]; 2]) {
        let (f, width) = (geometry.filter(), geometry.width());
        let (stride, lag_rows, per_row) = (2 * width - 1, 2 * f.height - 1, width / B);
        let taps = [taps[0].as_chunks::<B>().0, taps[1].as_chunks::<B>().0];
        let [low, high] = out;
        let outs = low.as_chunks_mut::<B>().0.iter_mut().zip(high.as_chunks_mut::<B>().0);
        for (n, (low, high)) in outs.enumerate() {
            let (plane, y, x0) = (n / (f.height * per_row), n / per_row % f.height, n % per_row * B);
            let (first_plane, z) = (plane / f.depth * f.depth, plane % f.depth);
            let mut sum = [_mm512_setzero_ps(); B];
            for i in 0..B {
                sum[i] = side_by_side(&low[i], &high[i]);
            }
            for from in 0..f.depth {
                let lag_plane = (z + f.depth - 1 - from) * lag_rows;
                for row in (0..f.height).rev() {
                    let lags = (lag_plane + y + f.height - 1 - row) * stride + x0 + width;
                    let first_tile = ((first_plane + from) * f.height + row) * per_row;
                    for t in 0..per_row {
                        let lags = lags - (t + 1) * B;
                        let lags = [&phi[0][lags..][..2 * B - 1], &phi[1][lags..][..2 * B - 1]];
                        add_tile(lags, [&taps[0][first_tile + t], &taps[1][first_tile + t]], &mut sum);
                    }
                }
            }
            for i in 0..B {
                store(sum[i], &mut low[i], &mut high[i]);
            }
        }
    }

    /// The sums of `add_tile` in `window.rs`, two taps at a time.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
    fn add_tile<const B: usize>(lags: [&[Lane]; 2], taps: [&[Lane; B]; 2], sum: &mut [__m512; B]) {
        let mut j = 0;
        while j + 1 < B {
            let a = side_by_side(&taps[0][j], &taps[1][j]);
            let b = side_by_side(&taps[0][j + 1], &taps[1][j + 1]);
            let (low, high) = (&lags[0][B - 2 - j..][..B + 1], &lags[1][B - 2 - j..][..B + 1]);
            sum[0] = _mm512_fmadd_ps(side_by_side(&low[0], &high[0]), b, sum[0]);
            for i in 1..B {
                let lag = side_by_side(&low[i], &high[i]);
                sum[i] = _mm512_fmadd_ps(lag, b, sum[i]);
                sum[i - 1] = _mm512_fmadd_ps(lag, a, sum[i - 1]);
            }
            sum[B - 1] = _mm512_fmadd_ps(side_by_side(&low[B], &high[B]), a, sum[B - 1]);
            j += 2;
        }
        if j < B {
            let tap = side_by_side(&taps[0][j], &taps[1][j]);
            let (low, high) = (&lags[0][B - 1 - j..][..B], &lags[1][B - 1 - j..][..B]);
            for i in 0..B {
                sum[i] = _mm512_fmadd_ps(side_by_side(&low[i], &high[i]), tap, sum[i]);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
    fn side_by_side(low: &Lane, high: &Lane) -> __m512 {
        // SAFETY: a lane has as many numbers as are loaded.
        let (low, high) = unsafe { (_mm256_loadu_ps(low.as_ptr()), _mm256_loadu_ps(high.as_ptr())) };
        let low = _mm512_castps_pd(_mm512_castps256_ps512(low));
        _mm512_castpd_ps(_mm512_insertf64x4::<1>(low, _mm256_castps_pd(high)))
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
    fn store(both: __m512, low: &mut Lane, high: &mut Lane) {
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(both)));
        // SAFETY: a lane has as many numbers as are stored.
        unsafe {
            _mm256_storeu_ps(low.as_mut_ptr(), _mm512_castps512_ps256(both));
            _mm256_storeu_ps(high.as_mut_ptr(), upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    /// Two blocks at once against one after the other, which `window.rs` compares with the definition; bit for bit, for every
    /// tile, several tiles and all axes.
    #[test]
    fn two_blocks_are_one_and_one() {
        let wide = (1..=13).chain([17, 24, 25]).map(|width| Shape { channels: 1, depth: 1, height: 3, width });
        for shape in wide.chain([Shape { channels: 2, depth: 3, height: 2, width: 5 }]) {
            let window = Window::new(shape);
            let numbers = |n: usize, by: f64| -> Vec<f32> { (1..=n).map(|i| (by * i as f64).sin() as f32).collect() };
            let phi = [0.7, 0.9].map(|by| numbers(window.block_len(), by));
            let taps = [1.1, 1.3].map(|by| numbers(window.taps_len(), by));
            let mut out = [1.7, 1.9].map(|by| numbers(window.taps_len(), by));
            let mut expected = out.clone();
            for ((phi, taps), out) in phi.iter().zip(&taps).zip(&mut expected) {
                dispatch(Multiply { geometry: &window, phi, taps, out });
            }
            let [first, second] = &mut out;
            let two = MultiplyTwo {
                geometry: &window,
                phi: [&phi[0], &phi[1]],
                taps: [&taps[0], &taps[1]],
                out: [first, second],
            };
            two.run();
            assert_eq!(out, expected, "{shape}");
        }
    }
}
