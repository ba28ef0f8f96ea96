//! What was observed of an image besides all of it: a blurred one, or a small one.
//!
//! An [`Observation`] is a linear map A of planes (height, width) and its adjoint; [`consistent`] brings a guess in line with what
//! was observed,
//!
//! ```text
//! min over x   1/2 || A x - y ||^2 + weight/2 || x - guess ||^2
//! ```
//!
//! by conjugate gradients.

use crate::conjugate_gradients::{Until, conjugate_gradients};
use crate::monitor::{Monitor, check_wanted};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;

/// A linear map of planes.
pub(super) trait Observation: Sync {
    /// Returns A x.
    fn observe(&self, plane: &[f32]) -> Vec<f32>;

    /// Returns A^T y.
    fn adjoint(&self, observed: &[f32]) -> Vec<f32>;
}

/// Returns the image between a guess and what was observed of each of its channels.
pub(super) fn consistent(
    observation: &dyn Observation,
    observed: &[f32],
    guess: &[f32],
    channels: usize,
    weight: f32,
    monitor: &dyn Monitor,
) -> Result<Vec<f32>> {
    check_wanted(monitor)?;
    let observed = observed.par_chunks_exact(observed.len() / channels);
    let planes = guess.par_chunks_exact(guess.len() / channels).zip(observed);
    let planes: Vec<Vec<f32>> = planes.map(|(guess, y)| plane(observation, y, guess, weight)).collect();
    Ok(planes.concat())
}

const ITERATIONS: usize = 40;
/// Iterations end when the residual is this fraction of the first.
const ENOUGH: f64 = 1e-4;

fn plane(observation: &dyn Observation, observed: &[f32], guess: &[f32], weight: f32) -> Vec<f32> {
    let mut x = guess.to_vec();
    let misses: Vec<f32> = observation.observe(guess).iter().zip(observed).map(|(ax, y)| y - ax).collect();
    let until = Until { accuracy: ENOUGH, iterations: ITERATIONS };
    conjugate_gradients(&mut x, observation.adjoint(&misses), until, |v| {
        let mut image = observation.adjoint(&observation.observe(v));
        image.iter_mut().zip(v).for_each(|(image, v)| *image += weight * v);
        image
    });
    x
}

/// A kernel that images are blurred by: the image is convolved with it, as if its border pixels went on outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    height: usize,
    width: usize,
    values: Vec<f32>,
}

impl Kernel {
    /// Takes values (height, width) of odd sides, which are scaled to sum 1.
    pub fn new(height: usize, width: usize, values: &[f32]) -> Result<Self> {
        let is_odd = height % 2 == 1 && width % 2 == 1;
        if !is_odd || height * width != values.len() {
            return Err(Error::invalid("kernel", "odd sides, so that it has a centre", format!("{height}x{width}")));
        }
        let sum: f64 = values.iter().map(|v| f64::from(*v)).sum();
        if !(sum.is_finite() && sum > 0.0) {
            return Err(Error::invalid("kernel", "finite values with a positive sum", format!("a sum of {sum}")));
        }
        let values = values.iter().map(|v| (f64::from(*v) / sum) as f32).collect();
        Ok(Kernel { height, width, values })
    }

    /// A Gaussian of a standard deviation in pixels, cut off at three of them.
    pub fn gaussian(deviation: f64) -> Result<Self> {
        if !(deviation > 0.0 && deviation <= Self::WIDEST) {
            let expected = format!("a standard deviation above 0 and of at most {} pixels", Self::WIDEST);
            return Err(Error::invalid("kernel", expected, deviation));
        }
        let reach = (3.0 * deviation).ceil() as i32;
        let weight = |d: i32| (-0.5 * (f64::from(d) / deviation).powi(2)).exp();
        let sides = || -reach..=reach;
        let values: Vec<f32> = sides().flat_map(|y| sides().map(move |x| (weight(y) * weight(x)) as f32)).collect();
        let side = 2 * reach as usize + 1;
        Kernel::new(side, side, &values)
    }

    /// The widest Gaussian.
    const WIDEST: f64 = 50.0;

    /// Returns (height, width).
    pub fn size(&self) -> [usize; 2] {
        [self.height, self.width]
    }
}

/// Planes of a size that are blurred.
pub(super) struct Blur<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) size: [usize; 2],
}

impl Blur<'_> {
    /// Visits every row and column shift of the kernel with its value and, for each row, the row that it looks at.
    fn rows(&self, y: usize) -> impl Iterator<Item = (usize, &[f32])> {
        let reach = self.kernel.height / 2;
        let [height, _] = self.size;
        let rows = self.kernel.values.chunks_exact(self.kernel.width).enumerate();
        // A convolution looks back where the kernel goes forward.
        rows.map(move |(i, taps)| ((y + reach).saturating_sub(i).min(height - 1), taps))
    }
}

impl Observation for Blur<'_> {
    fn observe(&self, plane: &[f32]) -> Vec<f32> {
        let [_, width] = self.size;
        let reach = self.kernel.width / 2;
        let mut out = vec![0.0; plane.len()];
        let mut padded = vec![0.0; width + 2 * reach];
        for (y, out) in out.chunks_exact_mut(width).enumerate() {
            for (row, taps) in self.rows(y) {
                let row = &plane[row * width..][..width];
                padded[..reach].fill(row[0]);
                padded[reach..][..width].copy_from_slice(row);
                padded[reach + width..].fill(row[width - 1]);
                for (j, tap) in taps.iter().enumerate().filter(|(_, tap)| **tap != 0.0) {
                    let shifted = &padded[2 * reach - j..][..width];
                    out.iter_mut().zip(shifted).for_each(|(out, v)| *out += tap * v);
                }
            }
        }
        out
    }

    fn adjoint(&self, observed: &[f32]) -> Vec<f32> {
        let [_, width] = self.size;
        let reach = self.kernel.width / 2;
        let mut out = vec![0.0; observed.len()];
        let mut padded = vec![0.0; width + 2 * reach];
        for (y, observed) in observed.chunks_exact(width).enumerate() {
            for (row, taps) in self.rows(y) {
                padded.fill(0.0);
                for (j, tap) in taps.iter().enumerate().filter(|(_, tap)| **tap != 0.0) {
                    let shifted = &mut padded[2 * reach - j..][..width];
                    shifted.iter_mut().zip(observed).for_each(|(sum, v)| *sum += tap * v);
                }
                let out = &mut out[row * width..][..width];
                out.iter_mut().zip(&padded[reach..]).for_each(|(out, v)| *out += v);
                out[0] += padded[..reach].iter().sum::<f32>();
                out[width - 1] += padded[reach + width..].iter().sum::<f32>();
            }
        }
        out
    }
}

/// Planes that are made smaller by a whole factor, by cubic interpolation widened by the factor against aliasing (Keys 1981, as image
/// programs do).
pub(super) struct Shrink {
    small: [usize; 2],
    /// For every small row and column, the large ones it looks at and their weights.
    rows: Vec<(Range<usize>, Vec<f32>)>,
    columns: Vec<(Range<usize>, Vec<f32>)>,
}

impl Shrink {
    /// To (height, width) from `factor` times as many pixels along each side.
    pub(super) fn new(small: [usize; 2], factor: usize) -> Self {
        let taps = |n: usize| (0..n).map(|i| taps(i, n * factor, factor as f64)).collect();
        Shrink { small, rows: taps(small[0]), columns: taps(small[1]) }
    }
}

/// The places among `n` that a value looks at whose own place is `index` on a lattice `scale` times as coarse, with their weights.
pub(super) fn taps(index: usize, n: usize, scale: f64) -> (Range<usize>, Vec<f32>) {
    let wide = scale.max(1.0);
    let centre = (index as f64 + 0.5) * scale;
    let first = (centre - 2.0 * wide).floor().max(0.0) as usize;
    let last = ((centre + 2.0 * wide).ceil() as usize).min(n);
    let weights: Vec<f64> = (first..last).map(|i| cubic((i as f64 + 0.5 - centre) / wide)).collect();
    let sum: f64 = weights.iter().sum();
    (first..last, weights.into_iter().map(|w| (w / sum) as f32).collect())
}

/// The cubic convolution kernel of Keys, a = -1/2.
fn cubic(x: f64) -> f64 {
    let x = x.abs();
    match x {
        x if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        x if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// Sums rows, or spreads them, by their weights: `out[i] += sum_j w_ij v[j]`.
pub(super) fn resample(v: &[f32], width: usize, rows: &[(Range<usize>, Vec<f32>)]) -> Vec<f32> {
    let mut out = vec![0.0; rows.len() * width];
    for (out, (places, weights)) in out.chunks_exact_mut(width).zip(rows) {
        for (place, weight) in places.clone().zip(weights) {
            out.iter_mut().zip(&v[place * width..]).for_each(|(out, v)| *out += weight * v);
        }
    }
    out
}

fn spread(v: &[f32], width: usize, rows: &[(Range<usize>, Vec<f32>)], n: usize) -> Vec<f32> {
    let mut out = vec![0.0; n * width];
    for (v, (places, weights)) in v.chunks_exact(width).zip(rows) {
        for (place, weight) in places.clone().zip(weights) {
            out[place * width..][..width].iter_mut().zip(v).for_each(|(out, v)| *out += weight * v);
        }
    }
    out
}

/// From (row, column) to (column, row).
pub(super) fn transposed(v: &[f32], width: usize) -> Vec<f32> {
    let height = v.len() / width;
    (0..v.len()).map(|i| v[i % height * width + i / height]).collect()
}

impl Observation for Shrink {
    fn observe(&self, plane: &[f32]) -> Vec<f32> {
        let [height, _] = self.small;
        let low = resample(plane, plane.len() / self.n_rows(), &self.rows);
        let turned = transposed(&low, low.len() / height);
        transposed(&resample(&turned, height, &self.columns), height)
    }

    fn adjoint(&self, observed: &[f32]) -> Vec<f32> {
        let [height, width] = self.small;
        let turned = transposed(observed, width);
        let wide = spread(&turned, height, &self.columns, self.n_columns());
        let low = transposed(&wide, height);
        spread(&low, self.n_columns(), &self.rows, self.n_rows())
    }
}

impl Shrink {
    fn n_rows(&self) -> usize {
        self.rows.last().map_or(0, |(places, _)| places.end)
    }

    fn n_columns(&self) -> usize {
        self.columns.last().map_or(0, |(places, _)| places.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use crate::random;
    use rand_distr::{Distribution, StandardNormal};

    fn drawn(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = random::stream(seed, 0);
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    }

    fn product(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum()
    }

    /// <A x, y> = <x, A^T y>.
    fn check_adjoint(observation: &dyn Observation, n: usize) {
        let x = drawn(n, 1);
        let ax = observation.observe(&x);
        let y = drawn(ax.len(), 2);
        let (one, other) = (product(&ax, &y), product(&x, &observation.adjoint(&y)));
        assert!((one - other).abs() < 1e-4 * one.abs().max(1.0), "{one} {other}");
        // Constants stay.
        assert!(observation.observe(&vec![0.5; n]).iter().all(|v| (v - 0.5).abs() < 1e-5));
    }

    #[test]
    fn adjoints_are_adjoint_and_constants_stay() {
        let lopsided = Kernel::new(3, 5, &drawn(15, 3).iter().map(|v| v.abs()).collect::<Vec<_>>()).unwrap();
        check_adjoint(&Blur { kernel: &lopsided, size: [9, 13] }, 9 * 13);
        check_adjoint(&Blur { kernel: &Kernel::gaussian(2.0).unwrap(), size: [5, 4] }, 20);
        for factor in [2, 3] {
            check_adjoint(&Shrink::new([7, 5], factor), 35 * factor * factor);
        }
    }

    #[test]
    fn a_blur_is_a_convolution() {
        let kernel = Kernel::new(3, 3, &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]).unwrap();
        // One pixel to the right of the centre: everything moves to the right.
        let blurred = Blur { kernel: &kernel, size: [1, 4] }.observe(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(blurred, [1.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn a_consistent_image_solves_the_normal_equations() {
        let shrink = Shrink::new([6, 8], 2);
        let (y, guess, weight) = (drawn(48, 4), drawn(192, 5), 0.1);
        let x = consistent(&shrink, &y, &guess, 1, weight, &Silent).unwrap();
        let misses: Vec<f32> = shrink.observe(&x).iter().zip(&y).map(|(ax, y)| ax - y).collect();
        let gradient = shrink.adjoint(&misses);
        let worst = (0..x.len()).map(|i| (gradient[i] + weight * (x[i] - guess[i])).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-3, "{worst}");
    }

    #[test]
    fn kernels_that_make_no_sense_are_refused() {
        assert!(Kernel::new(2, 3, &[1.0; 6]).unwrap_err().to_string().contains("odd"));
        assert!(Kernel::new(1, 1, &[0.0]).unwrap_err().to_string().contains("positive sum"));
        assert!(
            Kernel::gaussian(f64::NAN).is_err() && Kernel::gaussian(0.0).is_err() && Kernel::gaussian(51.0).is_err()
        );
    }
}
