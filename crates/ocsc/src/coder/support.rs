//! Least squares on a support: the atoms of a code as the columns of a matrix A, and the values that count.
//!
//! ```text
//! min over z   1/2 || W^1/2 (x - A z) ||^2         sign(z_j) as given, or free
//! ```
//!
//! Free signs: by conjugate gradients on the normal equations A^T W A z = A^T W x, in f64. Signs that are to be kept are bounds, for which
//! conjugate gradients go as far as the signs hold; then a step of projected gradients lets several coefficients become zero at
//! once, and a step along the gradient of the zeros lets those come back whose sign the residual asks for (Dostal and Schoberl,
//! "Minimizing quadratic functions subject to bound constraints with the rate of convergence and finite termination", 2005).

use crate::conjugate_gradients::{Until, conjugate_gradients};
use crate::{Atom, Boundary, Code, Dictionary, Loss, Real, Result, Sample};
use rayon::prelude::*;

/// Iterations of conjugate gradients, at most, and when they stop: the norm of the gradient against that at the start.
const MAX_ITERS: usize = 500;
const ACCURACY: f64 = 1e-12;
/// The same where signs are kept.
const MAX_SIGNED_ITERS: usize = 3000;
const SIGNED_ACCURACY: f64 = 1e-9;
/// Steps of the power method for the largest eigenvalue of A^T W A, and what it may still lack.
const POWERS: usize = 20;
const LACK: f64 = 1.2;
/// From so many atoms on they are shared among threads.
const MANY: usize = 512;

/// The values of a sample that a code can touch, and how much they count.
pub(super) struct Canvas {
    /// Depth, height and width; for boundaries other than circular with what sticks out.
    pub(super) axes: [usize; 3],
    pub(super) positions: [usize; 3],
    pub(super) values: Vec<f64>,
    /// W.
    pub(super) weights: Vec<f64>,
}

impl Canvas {
    /// Takes a sample, with the places around it where filters may stick out.
    pub(super) fn new<T: Real>(sample: &Sample<T>, dictionary: &Dictionary<T>, boundary: Boundary) -> Self {
        let (s, f) = (sample.shape(), dictionary.shape().spatial());
        let margin = if boundary == Boundary::Circular { [0; 3] } else { f.map(|n| n - 1) };
        let axes: [usize; 3] = std::array::from_fn(|i| s.spatial()[i] + 2 * margin[i]);
        let positions = std::array::from_fn(|i| s.spatial()[i] + margin[i]);
        let len = s.channels * axes.iter().product::<usize>();
        let outside = if boundary == Boundary::Zero { 1.0 } else { 0.0 };
        let mut canvas = Canvas { axes, positions, values: vec![0.0; len], weights: vec![outside; len] };
        for (i, x) in sample.data().iter().enumerate() {
            let (c, z, rest) = (i / s.pixels(), i / (s.height * s.width) % s.depth, i % (s.height * s.width));
            let at = [z, rest / s.width, rest % s.width];
            let [z, y, x_at]: [usize; 3] = std::array::from_fn(|a| at[a] + margin[a]);
            let cell = ((c * axes[0] + z) * axes[1] + y) * axes[2] + x_at;
            let seen = sample.mask().is_none_or(|mask| mask[i]);
            canvas.values[cell] = x.f64();
            canvas.weights[cell] = match (seen, sample.weights()) {
                (false, _) => 0.0,
                (true, None) => 1.0,
                (true, Some(weights)) => weights[i].f64(),
            };
        }
        canvas
    }

    /// Calls `visit(cell, tap)` for every tap of a filter at a position; what sticks out of a circle comes in on the other side.
    #[inline(always)]
    pub(super) fn each_tap<T: Real>(
        &self,
        dictionary: &Dictionary<T>,
        filter: usize,
        position: usize,
        mut visit: impl FnMut(usize, f64),
    ) {
        self.each_row(dictionary, filter, position, |first, taps| {
            taps.iter().enumerate().for_each(|(i, tap)| visit(first + i, tap.f64()));
        });
    }

    /// Calls `visit(cell, taps)` for every row of a filter at a position, with the cell of its first tap; for both parts of a row that
    /// is cut at the end of a circle.
    #[inline(always)]
    fn each_row<T: Real>(
        &self,
        dictionary: &Dictionary<T>,
        filter: usize,
        position: usize,
        mut visit: impl FnMut(usize, &[T]),
    ) {
        let ([_, height, width], f) = (self.positions, dictionary.shape());
        let (z, y, x) = (position / (height * width), position / width % height, position % width);
        for (row, taps) in dictionary.filter(filter).chunks_exact(f.width).enumerate() {
            let (c, dz, dy) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
            let line = (c * self.axes[0] + (z + dz) % self.axes[0]) * self.axes[1] + (y + dy) % self.axes[1];
            let line = line * self.axes[2];
            let (before, after) = taps.split_at(f.width.min(self.axes[2] - x));
            visit(line + x, before);
            if !after.is_empty() {
                visit(line, after);
            }
        }
    }
}

/// The atoms of a code, to be fitted to a sample.
pub(super) struct Support<'a, T: Real> {
    dictionary: &'a Dictionary<T>,
    pub(super) canvas: &'a Canvas,
    pub(super) atoms: &'a [Atom<T>],
}

impl<T: Real> Support<'_, T> {
    /// image <- image + A z.
    fn add(&self, z: &[f64], image: &mut [f64]) {
        for (atom, value) in self.atoms.iter().zip(z).filter(|(_, value)| **value != 0.0) {
            let (k, p) = (atom.filter as usize, atom.position as usize);
            self.canvas.each_row(self.dictionary, k, p, |cell, taps| {
                image[cell..][..taps.len()].iter_mut().zip(taps).for_each(|(v, tap)| *v += value * tap.f64());
            });
        }
    }

    /// A^T W image.
    fn correlate(&self, mut image: Vec<f64>) -> Vec<f64> {
        image.iter_mut().zip(&self.canvas.weights).for_each(|(v, w)| *v *= w);
        let one = |atom: &Atom<T>| {
            let (mut sum, (k, p)) = (0.0, (atom.filter as usize, atom.position as usize));
            self.canvas.each_row(self.dictionary, k, p, |cell, taps| {
                sum += image[cell..][..taps.len()].iter().zip(taps).map(|(v, tap)| v * tap.f64()).sum::<f64>();
            });
            sum
        };
        self.atoms.par_iter().with_min_len(MANY).map(one).collect()
    }

    /// A^T W A z.
    fn gram(&self, z: &[f64]) -> Vec<f64> {
        let mut image = vec![0.0; self.canvas.values.len()];
        self.add(z, &mut image);
        self.correlate(image)
    }

    /// x - A z.
    fn residual(&self, z: &[f64]) -> Vec<f64> {
        let mut residual: Vec<f64> = self.canvas.values.clone();
        self.add(&z.iter().map(|v| -v).collect::<Vec<_>>(), &mut residual);
        residual
    }

    /// The minimum, from `start`, whatever the signs.
    fn fit(&self, start: &[f64]) -> Vec<f64> {
        let mut z = start.to_vec();
        let downhill = self.correlate(self.residual(&z));
        let until = Until { accuracy: ACCURACY, iterations: MAX_ITERS };
        conjugate_gradients(&mut z, downhill, until, |direction| self.gram(direction));
        z
    }

    /// The minimum in which every coefficient is zero or has the sign of `start`.
    fn fit_signed(&self, start: &[f64]) -> Vec<f64> {
        let signs: Vec<f64> = start.iter().map(|v| v.signum()).collect();
        let mut z = start.to_vec();
        let gradient = |z: &[f64]| self.correlate(self.residual(z)).into_iter().map(|v| -v).collect::<Vec<f64>>();
        let mut g = gradient(&z);
        let enough = SIGNED_ACCURACY.powi(2) * dot(&g, &g);
        // The length of steps along the gradient that never go up.
        let length = 1.0 / (LACK * self.largest_eigenvalue());
        let mut direction = split(&z, &g, &signs).0;
        for _ in 0..MAX_SIGNED_ITERS {
            let (free, back) = split(&z, &g, &signs);
            if dot(&free, &free) + dot(&back, &back) <= enough {
                break;
            }
            // A step along the free gradient uses it only as far as signs hold.
            let usable = |j: usize| match free[j] * signs[j] > 0.0 {
                true => free[j].abs().min(z[j].abs() / length) * free[j].abs(),
                false => free[j] * free[j],
            };
            if dot(&back, &back) > (0..z.len()).map(usable).sum::<f64>() {
                let image = self.gram(&back);
                let step = dot(&g, &back) / dot(&back, &image).max(f64::MIN_POSITIVE);
                subtract(&mut z, step, &back);
                subtract(&mut g, step, &image);
                direction = split(&z, &g, &signs).0;
                continue;
            }
            let image = self.gram(&direction);
            let curvature = dot(&direction, &image).max(f64::MIN_POSITIVE);
            let step = dot(&g, &direction) / curvature;
            let blocks = |j: usize| direction[j] * signs[j] > 0.0;
            let room = (0..z.len()).filter(|j| blocks(*j)).map(|j| z[j] / direction[j]).fold(f64::INFINITY, f64::min);
            subtract(&mut z, step.min(room), &direction);
            subtract(&mut g, step.min(room), &image);
            let (free, _) = split(&z, &g, &signs);
            if step <= room {
                let ratio = dot(&free, &image) / curvature;
                direction.iter_mut().zip(&free).for_each(|(d, free)| *d = free - ratio * *d);
            } else {
                subtract(&mut z, length, &free);
                z.iter_mut().zip(&signs).filter(|(z, s)| **z * **s < 0.0).for_each(|(z, _)| *z = 0.0);
                g = gradient(&z);
                direction = split(&z, &g, &signs).0;
            }
        }
        z.iter_mut().zip(&signs).filter(|(z, s)| **z * **s < 0.0).for_each(|(z, _)| *z = 0.0);
        z
    }

    /// About the largest eigenvalue of A^T W A, from below.
    fn largest_eigenvalue(&self) -> f64 {
        // Any start that is orthogonal to no eigenvector.
        let mut v: Vec<f64> = (0..self.atoms.len()).map(|j| 1.0 + ((j * 7919) % 101) as f64 / 101.0).collect();
        let mut largest = 0.0;
        for _ in 0..POWERS {
            let norm = dot(&v, &v).sqrt().max(f64::MIN_POSITIVE);
            v.iter_mut().for_each(|v| *v /= norm);
            let image = self.gram(&v);
            largest = dot(&v, &image);
            v = image;
        }
        if largest > 0.0 { largest } else { 1.0 }
    }
}

/// The gradient of the coefficients that are not zero, and of those zeros that would come back with their sign.
fn split(z: &[f64], gradient: &[f64], signs: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let is_free = |j: usize| z[j] * signs[j] > 0.0;
    let of = |keep: &dyn Fn(usize) -> bool| (0..z.len()).map(|j| if keep(j) { gradient[j] } else { 0.0 }).collect();
    (of(&is_free), of(&|j| !is_free(j) && gradient[j] * signs[j] < 0.0))
}

/// to <- to - step direction.
fn subtract(to: &mut [f64], step: f64, direction: &[f64]) {
    to.iter_mut().zip(direction).for_each(|(to, d)| *to -= step * d);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The code with the same support, or less, and the same signs that fits the sample best. Values that a robust loss counts less
/// at the code given count as much as there.
pub(super) fn refit<T: Real>(
    sample: &Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
    loss: Loss,
) -> Result<Code<T>> {
    let mut canvas = Canvas::new(sample, dictionary, boundary);
    let start: Vec<f64> = code.atoms().iter().map(|a| a.value.f64()).collect();
    let residual = Support { dictionary, canvas: &canvas, atoms: code.atoms() }.residual(&start);
    let mean = residual.iter().map(|r| r.abs()).sum::<f64>() / residual.len() as f64;
    let unit = if mean > 0.0 { mean } else { 1.0 };
    canvas.weights.iter_mut().zip(residual).for_each(|(w, r)| *w *= loss.weight(r, unit));
    with_values(code, Support { dictionary, canvas: &canvas, atoms: code.atoms() }.fit_signed(&start))
}

/// The code with the same support that fits the sample best.
pub(super) fn project<T: Real>(
    sample: &Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
) -> Result<Code<T>> {
    let canvas = Canvas::new(sample, dictionary, boundary);
    let start: Vec<f64> = code.atoms().iter().map(|a| a.value.f64()).collect();
    let support = Support { dictionary, canvas: &canvas, atoms: code.atoms() };
    with_values(code, support.fit(&start))
}

fn with_values<T: Real>(code: &Code<T>, values: Vec<f64>) -> Result<Code<T>> {
    let atoms = code.atoms().iter().zip(values).map(|(a, v)| Atom { value: T::of(v), ..*a });
    Code::new(code.n_filters(), code.shape(), atoms.filter(|a| a.value != T::zero()).collect())
}

/// How many values lie further from their reconstruction than three standard deviations, estimated by the median: what the modulus,
/// which knows no scale of its own, counts much less than the others.
pub(super) fn far_values<T: Real>(
    sample: &Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
) -> usize {
    let canvas = Canvas::new(sample, dictionary, boundary);
    let values: Vec<f64> = code.atoms().iter().map(|a| a.value.f64()).collect();
    let residual = Support { dictionary, canvas: &canvas, atoms: code.atoms() }.residual(&values);
    let counted = residual.iter().zip(&canvas.weights).filter(|(_, w)| **w > 0.0);
    let mut sizes: Vec<f64> = counted.map(|(r, _)| r.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let far = 3.0 * 1.4826 * sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    sizes.len() - sizes.partition_point(|r| *r <= far)
}

/// The data term of a code, sum W rho(x - D z).
pub(super) fn data_term<T: Real>(
    sample: &Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
    loss: Loss,
) -> f64 {
    let canvas = Canvas::new(sample, dictionary, boundary);
    let values: Vec<f64> = code.atoms().iter().map(|a| a.value.f64()).collect();
    let residual = Support { dictionary, canvas: &canvas, atoms: code.atoms() }.residual(&values);
    residual.iter().zip(&canvas.weights).filter(|(_, w)| **w > 0.0).map(|(r, w)| w * loss.value(*r)).sum()
}
