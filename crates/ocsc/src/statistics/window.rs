//! Windows of lags, eight filters side by side, and their products with filters: the hot loop of the update on lags.
//!
//! A window holds phi(tau) for |tau| < m on each axis, as an array (2 m_d - 1, 2 m_h - 1, 2 m_w - 1). A **block** holds
//! the windows phi_kl of one k and of LANES filters l next to each other, l innermost: whatever the filters' size, a
//! vector register holds one lag of LANES pairs, and no lane is wasted on the ends of short rows. For every lane,
//!
//! ```text
//! out(s) += sum_s' phi(s - s') d(s'),      0 <= s, s' < m
//! ```
//!
//! Filters and outputs are stored alike, as *taps* (channel, depth, height, width, lane). Turned around on all spatial
//! axes, they make the same loop compute sum_s' phi(s' - s) d(s').
//!
//! A row of outputs is made in tiles of at most [`WIDEST`] numbers, which stay in registers: with two taps, a
//! tile takes one number more of the lags than it has outputs. Widths are padded to whole tiles with zeros.

use crate::simd::Kernel;
use crate::{Real, Shape};

/// Filters in a block.
pub(crate) const LANES: usize = 8;
/// The widest tile; with two taps and a lag, its sums fill sixteen registers of eight f32.
pub(crate) const WIDEST: usize = 12;

/// The geometry of blocks and taps for one filter shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Window {
    filter: Shape,
    /// Outputs in a tile.
    tile: usize,
    /// The padded width: whole tiles.
    width: usize,
}

impl Window {
    pub(crate) fn new(filter: Shape) -> Self {
        let tiles = filter.width.div_ceil(WIDEST).max(1);
        let tile = filter.width.div_ceil(tiles).max(1);
        Window { filter, tile, width: tile.saturating_mul(tiles) }
    }

    /// The filters' shape.
    pub(crate) fn filter(&self) -> Shape {
        self.filter
    }

    /// Outputs in a tile.
    pub(crate) fn tile(&self) -> usize {
        self.tile
    }

    /// The padded width: whole tiles.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Lags in a window, with their padding.
    pub(crate) fn lags(&self) -> usize {
        let [d, h, w] = [self.filter.depth, self.filter.height, self.width].map(|n| n.saturating_mul(2).max(1) - 1);
        d.saturating_mul(h).saturating_mul(w)
    }

    /// Numbers in a block.
    pub(crate) fn block_len(&self) -> usize {
        self.lags().saturating_mul(LANES)
    }

    /// The longest lag on each axis.
    pub(crate) fn reach(&self) -> [isize; 3] {
        self.filter.spatial().map(|n| n as isize - 1)
    }

    /// Which of the lags this is.
    pub(crate) fn at(&self, lag: [isize; 3]) -> usize {
        let reach = [self.filter.depth, self.filter.height, self.width].map(|n| n as isize - 1);
        let [z, y, x] = std::array::from_fn(|i| (lag[i] + reach[i]) as usize);
        (z * (2 * self.filter.height - 1) + y) * (2 * self.width - 1) + x
    }

    /// Numbers in the taps of one block.
    pub(crate) fn taps_len(&self) -> usize {
        self.filter.channels * self.filter.depth * self.filter.height * self.width * LANES
    }

    /// Where the number `i` of a filter is in its lane of the taps, and where in taps turned around.
    pub(crate) fn tap(&self, i: usize) -> [usize; 2] {
        let f = self.filter;
        let (channel, row, x) = (i / f.pixels(), i / f.width % (f.depth * f.height), i % f.width);
        let (plane, at) = (f.depth * f.height * self.width, row * self.width + x);
        [at, plane - 1 - at].map(|at| (channel * plane + at) * LANES)
    }

    /// <a, phi * b> for one window, plainly and in f64.
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

/// out += phi * taps for one block.
pub(crate) struct Multiply<'a, T> {
    pub(crate) geometry: &'a Window,
    pub(crate) phi: &'a [T],
    pub(crate) taps: &'a [T],
    pub(crate) out: &'a mut [T],
}

impl<T: Real> Kernel for Multiply<'_, T> {
    type Output = ();
    /// Eight f32 are half of the widest registers, and compiled for those the sums do not stay in registers at all.
    const WIDEST: bool = size_of::<T>() > 4;

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        match self.geometry.tile {
            1 => self.tiles::<FMA, 1>(),
            2 => self.tiles::<FMA, 2>(),
            3 => self.tiles::<FMA, 3>(),
            4 => self.tiles::<FMA, 4>(),
            5 => self.tiles::<FMA, 5>(),
            6 => self.tiles::<FMA, 6>(),
            7 => self.tiles::<FMA, 7>(),
            8 => self.tiles::<FMA, 8>(),
            9 => self.tiles::<FMA, 9>(),
            10 => self.tiles::<FMA, 10>(),
            11 => self.tiles::<FMA, 11>(),
            _ => self.tiles::<FMA, WIDEST>(),
        }
    }
}

impl<T: Real> Multiply<'_, T> {
    #[inline(always)]
    fn tiles<const FMA: bool, const B: usize>(self) {
        let Window { filter: f, width, .. } = *self.geometry;
        let (phi, taps) = (self.phi.as_chunks::<LANES>().0, self.taps.as_chunks::<LANES>().0);
        let (stride, lag_rows) = (2 * width - 1, 2 * f.height - 1);
        let mut tiles = self.out.as_chunks_mut::<LANES>().0.as_chunks_mut::<B>().0.iter_mut();
        for (plane, z) in (0..f.channels).flat_map(|c| (0..f.depth).map(move |z| (c * f.depth, z))) {
            for (y, x0) in (0..f.height).flat_map(|y| (0..width).step_by(B).map(move |x0| (y, x0))) {
                let Some(out) = tiles.next() else { return };
                let mut sum = *out;
                for from in 0..f.depth {
                    let taps = &taps[(plane + from) * f.height * width..][..f.height * width];
                    let lags = &phi[(z + f.depth - 1 - from) * lag_rows * stride..][..lag_rows * stride];
                    // Backwards, so that the lags are read forwards.
                    for (row, taps) in taps.chunks_exact(width).enumerate().rev() {
                        let lags = &lags[(y + f.height - 1 - row) * stride..][..stride];
                        for (t, taps) in taps.as_chunks::<B>().0.iter().enumerate() {
                            // lags from (x0 - B t) - (B - 1) to (x0 - B t) + (B - 1)
                            let lags = &lags[x0 + width - (t + 1) * B..][..2 * B - 1];
                            add_tile::<T, FMA, B>(lags, taps, &mut sum);
                        }
                    }
                }
                *out = sum;
            }
        }
    }
}

/// sum_i += sum_j lags(i - j) taps_j in every lane.
#[inline(always)]
fn add_tile<T: Real, const FMA: bool, const B: usize>(
    lags: &[[T; LANES]],
    taps: &[[T; LANES]; B],
    sum: &mut [[T; LANES]; B],
) {
    let mut j = 0;
    while j + 1 < B {
        let (a, b) = (taps[j], taps[j + 1]);
        let lags = &lags[B - 2 - j..][..B + 1];
        let first = lags[0];
        for l in 0..LANES {
            sum[0][l] = first[l].fused::<FMA>(b[l], sum[0][l]);
        }
        for i in 1..B {
            let lag = lags[i];
            for l in 0..LANES {
                sum[i][l] = lag[l].fused::<FMA>(b[l], sum[i][l]);
            }
            for l in 0..LANES {
                sum[i - 1][l] = lag[l].fused::<FMA>(a[l], sum[i - 1][l]);
            }
        }
        let last = lags[B];
        for l in 0..LANES {
            sum[B - 1][l] = last[l].fused::<FMA>(a[l], sum[B - 1][l]);
        }
        j += 2;
    }
    if j < B {
        let tap = taps[j];
        for i in 0..B {
            let lag = lags[B - 1 - j + i];
            for l in 0..LANES {
                sum[i][l] = lag[l].fused::<FMA>(tap[l], sum[i][l]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch;

    /// The kernel, as chosen for this machine and without fused operations, against the definition in every lane, and
    /// turned around; for every tile, several tiles and all axes.
    #[test]
    fn multiply_is_the_plain_sum() {
        let wide = (1..=13).chain([17, 24, 25]).map(|width| Shape { channels: 1, depth: 1, height: 2, width });
        let deep = [
            Shape { channels: 2, depth: 3, height: 2, width: 3 },
            Shape { channels: 3, depth: 1, height: 4, width: 5 },
        ];
        for shape in wide.chain(deep) {
            let window = Window::new(shape);
            let number = |i: usize| (0.7 * (i + 1) as f64).sin();
            let mut phi = vec![0.0; window.block_len()];
            let [rz, ry, rx] = window.reach();
            let lags = (-rz..=rz).flat_map(|z| (-ry..=ry).flat_map(move |y| (-rx..=rx).map(move |x| [z, y, x])));
            lags.for_each(|lag| {
                (0..LANES).for_each(|l| phi[window.at(lag) * LANES + l] = number(7 * window.at(lag) + l));
            });
            let filter = |i: usize, lane: usize| number(1000 + LANES * i + lane);
            let place = |i: usize| {
                [i / (shape.height * shape.width) % shape.depth, i / shape.width % shape.height, i % shape.width]
            };
            let expected = |i: usize, lane: usize, turned: bool| -> f64 {
                let pixels = shape.pixels();
                let term = |j: usize| {
                    let (a, b) = if turned { (j, i) } else { (i, j) };
                    let lag = std::array::from_fn(|n| place(a)[n] as isize - place(b)[n] as isize);
                    phi[window.at(lag) * LANES + lane] * filter(j, lane)
                };
                (i / pixels * pixels..(i / pixels + 1) * pixels).map(term).sum()
            };
            for turned in [false, true] {
                let mut taps = vec![0.0; window.taps_len()];
                let at = |i: usize| window.tap(i)[usize::from(turned)];
                (0..shape.len()).for_each(|i| (0..LANES).for_each(|l| taps[at(i) + l] = filter(i, l)));
                for fused in [true, false] {
                    let mut out = vec![1.0; taps.len()];
                    let multiply = Multiply { geometry: &window, phi: &phi, taps: &taps, out: &mut out };
                    if fused {
                        dispatch(multiply)
                    } else {
                        multiply.run::<false>()
                    }
                    for (i, lane) in (0..shape.len()).flat_map(|i| (0..LANES).map(move |l| (i, l))) {
                        let error = out[at(i) + lane] - 1.0 - expected(i, lane, turned);
                        assert!(error.abs() < 1e-12, "{shape} {turned} {i} {lane}: {error}");
                    }
                }
            }
        }
    }
}
