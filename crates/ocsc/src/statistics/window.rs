//! Windows of lags, and their product with a filter: the hot loop of the update on lags.
//!
//! A window holds phi(tau) for |tau| < m on each axis, as an array (2 m_d - 1, 2 m_h - 1, stride); its rows are padded so
//! that LANES numbers can be read from wherever an output block may need them.
//!
//! ```text
//! out(s) += sum_s' phi(s - s') d(s'),      0 <= s, s' < m
//! ```
//!
//! Outputs are made in blocks of ROWS x LANES, which stay in registers. For one row of lags and one column s'_x the same
//! LANES lags serve all ROWS outputs, each with another tap of the filter's column; filters are framed by ROWS - 1
//! zero rows above and below, so that no output row is a special case.

use crate::simd::Kernel;
use crate::{Real, Shape};

/// Columns of an output block.
pub(crate) const LANES: usize = 16;
/// Rows of an output block.
pub(crate) const ROWS: usize = 4;

/// The geometry of the windows, padded filters and padded outputs of one filter shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    filter: Shape,
    /// Numbers from one row of lags to the next.
    stride: usize,
}

impl Window {
    pub(crate) fn new(filter: Shape) -> Self {
        let stride = filter.width.saturating_sub(1).saturating_add(filter.width.div_ceil(LANES).saturating_mul(LANES));
        Window { filter, stride }
    }

    /// Numbers in a window.
    pub(crate) fn len(&self) -> usize {
        let f = self.filter;
        (2 * f.depth - 1).saturating_mul(2 * f.height - 1).saturating_mul(self.stride)
    }

    /// The longest lag on each axis.
    pub(crate) fn reach(&self) -> [isize; 3] {
        self.filter.spatial().map(|n| n as isize - 1)
    }

    /// Where a lag is.
    pub(crate) fn at(&self, lag: [isize; 3]) -> usize {
        let reach = self.reach();
        let [z, y, x] = std::array::from_fn(|i| (lag[i] + reach[i]) as usize);
        (z * (2 * self.filter.height - 1) + y) * self.stride + x
    }

    /// Numbers in a padded filter, see [`Window::pad`].
    pub(crate) fn padded_len(&self) -> usize {
        let f = self.filter;
        f.channels * f.depth * (f.height + 2 * (ROWS - 1)) * f.width
    }

    /// Frames a filter with zero rows; `flipped` also turns it around on every spatial axis.
    pub(crate) fn pad<T: Real>(&self, filter: &[T], flipped: bool, padded: &mut [T]) {
        let f = self.filter;
        padded.fill(T::zero());
        for (row, taps) in filter.chunks_exact(f.width).enumerate() {
            let (c, z, y) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
            let (z, y) = if flipped { (f.depth - 1 - z, f.height - 1 - y) } else { (z, y) };
            let to = ((c * f.depth + z) * (f.height + 2 * (ROWS - 1)) + y + ROWS - 1) * f.width;
            let out = &mut padded[to..][..f.width];
            out.copy_from_slice(taps);
            if flipped {
                out.reverse();
            }
        }
    }

    /// Numbers in an output: (channel, depth, height, width), the last two in whole blocks.
    pub(crate) fn out_len(&self) -> usize {
        let f = self.filter;
        f.channels * f.depth * f.height.next_multiple_of(ROWS) * f.width.next_multiple_of(LANES)
    }

    /// Where tap (row, x) of a filter is in an output; `flipped` in one turned around. Rows are (channel, depth, height).
    pub(crate) fn out_at(&self, row: usize, x: usize, flipped: bool) -> usize {
        let f = self.filter;
        let (c, z, y) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
        let (z, y, x) = if flipped { (f.depth - 1 - z, f.height - 1 - y, f.width - 1 - x) } else { (z, y, x) };
        ((c * f.depth + z) * f.height.next_multiple_of(ROWS) + y) * f.width.next_multiple_of(LANES) + x
    }

    /// <a, phi * b>, plainly and in f64.
    pub(crate) fn quadratic<T: Real>(&self, window: &[T], a: &[T], b: &[T]) -> f64 {
        let f = self.filter;
        let rows = f.depth * f.height;
        let mut sum = 0.0;
        for (i, a) in a.chunks_exact(f.width).enumerate() {
            let (c, z, y) = (i / rows, (i / f.height % f.depth) as isize, (i % f.height) as isize);
            for (j, b) in b[c * f.pixels()..][..f.pixels()].chunks_exact(f.width).enumerate() {
                let (tz, ty) = (z - (j / f.height) as isize, y - (j % f.height) as isize);
                let line = &window[self.at([tz, ty, 1 - f.width as isize])..];
                for (x, a) in a.iter().enumerate() {
                    let products = b.iter().enumerate().map(|(k, b)| line[x + f.width - 1 - k].f64() * b.f64());
                    sum += a.f64() * products.sum::<f64>();
                }
            }
        }
        sum
    }
}

/// out += phi * d for one pair of filters.
pub(crate) struct Multiply<'a, T> {
    pub(crate) geometry: &'a Window,
    pub(crate) phi: &'a [T],
    /// A padded filter.
    pub(crate) taps: &'a [T],
    pub(crate) out: &'a mut [T],
}

impl<T: Real> Kernel for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Window { filter: f, stride } = *self.geometry;
        let (height, width) = (f.height.next_multiple_of(ROWS), f.width.next_multiple_of(LANES));
        let (tap_rows, lag_rows) = (f.height + 2 * (ROWS - 1), 2 * f.height - 1);
        for plane in 0..f.channels * f.depth {
            let (c, z) = (plane / f.depth, plane % f.depth);
            for y0 in (0..height).step_by(ROWS) {
                for x0 in (0..width).step_by(LANES) {
                    let mut sum = [[T::zero(); LANES]; ROWS];
                    for from in 0..f.depth {
                        let taps = &self.taps[(c * f.depth + from) * tap_rows * f.width..][..tap_rows * f.width];
                        let lags = &self.phi[(z + f.depth - 1 - from) * lag_rows * stride..][..lag_rows * stride];
                        for lag in y0..(y0 + f.height + ROWS - 1).min(lag_rows) {
                            let line = &lags[lag * stride + x0..][..f.width - 1 + LANES];
                            // output row y0 + r takes filter row y0 + r - (lag - (m - 1)), ROWS - 1 rows further down
                            let first = y0 + f.height + ROWS - 2 - lag;
                            let columns = &taps[first * f.width..][..ROWS * f.width];
                            for x in 0..f.width {
                                let Some(v) = line[f.width - 1 - x..].first_chunk::<LANES>() else { break };
                                let v = *v;
                                for r in 0..ROWS {
                                    let tap = columns[r * f.width + x];
                                    for i in 0..LANES {
                                        sum[r][i] = v[i].fused::<FMA>(tap, sum[r][i]);
                                    }
                                }
                            }
                        }
                    }
                    for (r, sum) in sum.into_iter().enumerate() {
                        let Some(out) = self.out[(plane * height + y0 + r) * width + x0..].first_chunk_mut::<LANES>()
                        else {
                            return;
                        };
                        let old = *out;
                        for i in 0..LANES {
                            out[i] = old[i] + sum[i];
                        }
                    }
                }
            }
        }
    }
}
