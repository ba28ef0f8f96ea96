//! The full correlation in 8-bit numbers, on processors that multiply and add four of them per lane in one instruction
//! (AVX-512 VNNI): three to four times as fast as in single precision, and within about a percent of a weight.
//!
//! That is enough to choose atoms, as long as the violations are much larger; whether the code is optimal is always decided
//! by the exact correlation.
//!
//! ```text
//! r(p) = (u(p) - 128) a,  u in 1..=255         d_k(s) = q_k(s) b_k,  |q_k| <= 127
//! c_k(p) = a b_k ( sum_s q_k(s) u(p + s) - 128 sum_s q_k(s) )
//! ```

use super::correlate::Line;
use super::field::{Pull, Ridge, of_filter, take_off};
use super::filters::Filters;
use super::frame::{Frame, LANES};
use crate::Real;
use rayon::prelude::*;

/// Numbers per lane.
const QUAD: usize = 4;
/// Filters at a time, and the most vectors of positions: with the loads they fill the registers.
const GROUP: usize = 3;
const STRETCH: usize = 7;
/// Longer filters could overflow the sums.
const LONGEST: usize = 1 << 15;

/// The filters in 8 bits.
pub(super) struct CoarseFilters {
    /// Four taps to a lane, (K/3, rows, quads, 3).
    taps: Vec<i32>,
    per_group: usize,
    quads: usize,
    /// b_k / w_k and 128 sum q_k, for whole groups.
    scale: Vec<f64>,
    offset: Vec<i32>,
    /// max ||d_k|| / w_k and max b_k / w_k.
    longest: f64,
    coarsest: f64,
}

/// The residual in 8 bits.
pub(super) struct CoarseCanvas {
    /// u(p), u(p+1), u(p+2), u(p+3) to a lane.
    quads: Vec<i32>,
    /// a, which single precision may not hold, while a times b_k / w_k is near 1 in any unit of the data.
    step: f64,
}

impl CoarseFilters {
    /// The filters with their weights, if the processor can make use of them.
    pub(super) fn new<T: Real>(frame_rows: usize, filters: &Filters<T>, weights: &[f64]) -> Option<Self> {
        (vnni() && frame_rows * filters.width <= LONGEST).then(|| Self::quantise(frame_rows, filters, weights))
    }

    fn quantise<T: Real>(n_rows: usize, filters: &Filters<T>, weights: &[f64]) -> Self {
        let (n, width) = (filters.n_filters, filters.width);
        let (groups, quads) = (n.div_ceil(GROUP), width.div_ceil(QUAD));
        let per_group = n_rows * quads * GROUP;
        let mut taps = vec![[0_i8; QUAD]; groups * per_group];
        let (mut scale, mut offset) = (vec![0.0; groups * GROUP], vec![0; groups * GROUP]);
        let (mut longest, mut coarsest) = (0.0_f64, 0.0_f64);
        for k in 0..n {
            let rows = || filters.rows(k).chunks_exact(width.next_multiple_of(LANES)).take(n_rows);
            let peak = rows().flatten().fold(0.0_f64, |m, d| m.max(d.f64().abs()));
            let (step, weight) = (if peak > 0.0 { peak / 127.0 } else { 1.0 }, weights[k]);
            for (row, values) in rows().enumerate() {
                for (j, d) in values[..width].iter().enumerate() {
                    let q = (d.f64() / step).round() as i8;
                    taps[k / GROUP * per_group + (row * quads + j / QUAD) * GROUP + k % GROUP][j % QUAD] = q;
                    offset[k] += 128 * i32::from(q);
                }
            }
            scale[k] = step / weight;
            longest = longest.max(filters.energy[k].sqrt() / weight);
            coarsest = coarsest.max(step / weight);
        }
        let taps = taps.into_iter().map(|quad| i32::from_le_bytes(quad.map(|q| q as u8))).collect();
        CoarseFilters { taps, per_group, quads, scale, offset, longest, coarsest }
    }

    /// Four standard deviations of what rounding does to a correlation, in units of the weights, for a residual with this
    /// largest value and these norms of windows of a filter's size: errors are uniform and independent.
    pub(super) fn blur(&self, peak: f64, window_norm: f64) -> f64 {
        let (residual, filter) = (peak / 127.0 * self.longest, self.coarsest * window_norm);
        4.0 * ((residual * residual + filter * filter) / 12.0).sqrt()
    }

    /// Correlates the canvas with all filters on one line, as [`Line::correlate`] does.
    pub(super) fn correlate(
        &self,
        frame: &Frame,
        canvas: &CoarseCanvas,
        ridge: Option<&Ridge>,
        signed: bool,
        line: &mut Line<f32>,
        number: usize,
    ) {
        line.begin(frame, number);
        let pulls: &[Pull] = ridge.map_or(&[], |ridge| ridge.line(number));
        #[cfg(target_arch = "x86_64")]
        if vnni() {
            // SAFETY: the features that `correlate` enables were detected on this machine.
            #[expect(unsafe_code, reason = "a call of a function for a vector unit that was detected")]
            unsafe {
                x86::correlate(self, canvas, pulls, signed, line)
            };
        }
    }
}

impl CoarseCanvas {
    /// Rounds a canvas whose largest absolute value is `peak`.
    pub(super) fn new<T: Real>(canvas: &[T], peak: f64) -> Self {
        let step = if peak > 0.0 { peak / 127.0 } else { 1.0 };
        // A quotient in f64: one over a subnormal step would overflow.
        let level = |v: &T| ((v.f64() / step) as f32 + 128.5) as i32;
        let mut levels: Vec<u8> = canvas.par_iter().map(|v| level(v).clamp(1, 255) as u8).collect();
        levels.extend([128; QUAD - 1]);
        let quads = levels.par_windows(QUAD).map(|w| i32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
        CoarseCanvas { quads, step }
    }
}

/// Whether the processor has the instruction.
fn vnni() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CoarseCanvas, CoarseFilters, GROUP, LANES, Line, Pull, QUAD, STRETCH, of_filter, take_off};
    use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32, _mm512_set1_epi32};

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn correlate(
        filters: &CoarseFilters,
        canvas: &CoarseCanvas,
        pulls: &[Pull],
        signed: bool,
        line: &mut Line<f32>,
    ) {
        let vectors = line.len() / LANES;
        let stretches = vectors.div_ceil(STRETCH);
        for group in 0..filters.offset.len() / GROUP {
            let mut done = 0;
            for stretch in 0..stretches {
                let end = vectors * (stretch + 1) / stretches;
                let x = done * LANES;
                match end - done {
                    1 => stretch_of::<1>(filters, canvas, pulls, signed, line, group, x),
                    2 => stretch_of::<2>(filters, canvas, pulls, signed, line, group, x),
                    3 => stretch_of::<3>(filters, canvas, pulls, signed, line, group, x),
                    4 => stretch_of::<4>(filters, canvas, pulls, signed, line, group, x),
                    5 => stretch_of::<5>(filters, canvas, pulls, signed, line, group, x),
                    6 => stretch_of::<6>(filters, canvas, pulls, signed, line, group, x),
                    _ => stretch_of::<STRETCH>(filters, canvas, pulls, signed, line, group, x),
                }
                done = end;
            }
        }
    }

    /// V vectors of positions from column x on, for one group of filters.
    #[target_feature(enable = "avx512f,avx512vnni")]
    #[inline]
    fn stretch_of<const V: usize>(
        filters: &CoarseFilters,
        canvas: &CoarseCanvas,
        pulls: &[Pull],
        signed: bool,
        line: &mut Line<f32>,
        group: usize,
        x: usize,
    ) {
        let mut sums = [[_mm512_set1_epi32(0); V]; GROUP];
        let quads = filters.quads;
        let taps = &filters.taps[group * filters.per_group..][..filters.per_group];
        for (start, taps) in line.rows().iter().zip(taps.chunks_exact(quads * GROUP)) {
            let row = &canvas.quads[start + x..][..V * LANES + (quads - 1) * QUAD];
            for (j, taps) in taps.as_chunks::<GROUP>().0.iter().enumerate() {
                let columns = &row[j * QUAD..][..V * LANES];
                for v in 0..V {
                    let mut numbers = [0_i32; LANES];
                    numbers.copy_from_slice(&columns[v * LANES..][..LANES]);
                    let u: __m512i = bytemuck::cast(numbers);
                    for f in 0..GROUP {
                        sums[f][v] = _mm512_dpbusd_epi32(sums[f][v], u, _mm512_set1_epi32(taps[f]));
                    }
                }
            }
        }
        for f in 0..GROUP {
            let k = group * GROUP + f;
            let (scale, offset) = ((filters.scale[k] * canvas.step) as f32, filters.offset[k]);
            let pulls = of_filter(pulls, k);
            for v in 0..V {
                let sums: [i32; LANES] = bytemuck::cast(sums[f][v]);
                let mut strengths = [0.0; LANES];
                for i in 0..LANES {
                    strengths[i] = (sums[i] - offset) as f32 * scale;
                }
                take_off(pulls, x + v * LANES, &mut strengths);
                if !signed {
                    strengths = strengths.map(f32::abs);
                }
                line.rank(x + v * LANES, k as f32, strengths);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::correlate::With;
    use super::*;
    use crate::Boundary;
    use crate::{Dictionary, Shape};

    /// The integers, plainly.
    fn twin(filters: &CoarseFilters, canvas: &CoarseCanvas, frame: &Frame, k: usize, line: usize, x: usize) -> f32 {
        let mut sum = 0;
        for row in 0..frame.filter_rows() {
            for j in 0..filters.quads {
                let at = k / GROUP * filters.per_group + (row * filters.quads + j) * GROUP + k % GROUP;
                let taps = filters.taps[at].to_le_bytes().map(|b| i32::from(b as i8));
                let levels = canvas.quads[frame.starts(line)[row] as usize + x + j * QUAD].to_le_bytes();
                sum += taps.iter().zip(levels).map(|(q, u)| q * i32::from(u)).sum::<i32>();
            }
        }
        ((sum - filters.offset[k]) as f32 * (filters.scale[k] * canvas.step) as f32).abs()
    }

    #[test]
    fn is_its_twin_exactly_and_close_to_the_exact_correlation() {
        for (shape, filter, n) in [
            (Shape::image(13, 37), Shape::image(5, 7), 8),
            (Shape::image(20, 150), Shape::image(11, 11), 10),
            (
                Shape { channels: 2, depth: 3, height: 4, width: 9 },
                Shape { channels: 2, depth: 2, height: 2, width: 3 },
                2,
            ),
        ] {
            for boundary in [Boundary::Circular, Boundary::Zero] {
                let d = Dictionary::<f32>::random(n, filter, 3, 5).unwrap();
                let filters = Filters::new(&d);
                let frame = Frame::new(shape, filter, boundary).unwrap();
                let weights = vec![0.5; n];
                let Some(coarse) = CoarseFilters::new(frame.filter_rows(), &filters, &weights) else {
                    return;
                };
                let x: Vec<f32> = (0..shape.len()).map(|i| ((i * 7919) % 101) as f32 / 50.0 - 1.0).collect();
                let mut canvas = vec![0.0; frame.len()];
                frame.fill(&x, &mut canvas);
                let quantised = CoarseCanvas::new(&canvas, 1.0);
                let (mut line, mut exact) = (Line::new(&frame), Line::new(&frame));
                let inverse: Vec<f32> = vec![2.0; n + 2];
                let blur = coarse.blur(1.0, (filter.len() as f64 / 3.0).sqrt()) as f32;
                for number in 0..frame.n_lines() {
                    coarse.correlate(&frame, &quantised, None, false, &mut line, number);
                    let with =
                        With { filters: &filters, inverse_weights: &inverse, field: None, ridge: None, signed: false };
                    exact.correlate(&frame, &with, &canvas, number);
                    for x in 0..frame.positions[2] {
                        let mut all: Vec<f32> =
                            (0..n).map(|k| twin(&coarse, &quantised, &frame, k, number, x)).collect();
                        all.sort_by(|a, b| b.total_cmp(a));
                        assert_eq!([line.first.strength[x], line.second.strength[x]], [all[0], all[1]]);
                        let first = line.first.filter[x] as usize;
                        assert_eq!(twin(&coarse, &quantised, &frame, first, number, x), all[0]);
                        assert!((line.first.strength[x] - exact.first.strength[x]).abs() < 1.5 * blur);
                    }
                }
            }
        }
    }
}
