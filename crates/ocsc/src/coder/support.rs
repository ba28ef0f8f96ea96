//! Least squares on a support: the atoms of a code as the columns of a matrix A, and the values that count.
//!
//! ```text
//! min over z   1/2 || W^1/2 (x - A z) ||^2         sign(z_j) as given, or free
//! ```
//!
//! Solved by conjugate gradients on the normal equations A^T W A z = A^T W x, in f64. Where signs are to be kept, coefficients that would
//! change theirs are left out, all at once as long as that lowers the objective (Portugal, Judice, Vicente 1994) and otherwise the
//! first one on the way (Lawson and Hanson, "Solving least squares problems", 1974); those that were left out come back if the residual
//! asks for their sign.

use crate::conjugate_gradients::{Until, conjugate_gradients};
use crate::{Atom, Boundary, Code, Dictionary, Loss, Real, Result, Sample};

/// Iterations of conjugate gradients, at most, and when they stop: the norm of the gradient against that at the start.
const MAX_ITERS: usize = 500;
const ACCURACY: f64 = 1e-12;
/// The same while it is not yet known which coefficients are in.
const ROUGH: f64 = 1e-5;
/// How often coefficients may be left out or come back.
const MAX_CHANGES: usize = 100;

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
        let ([_, height, width], f) = (self.positions, dictionary.shape());
        let (z, y, x) = (position / (height * width), position / width % height, position % width);
        for (row, taps) in dictionary.filter(filter).chunks_exact(f.width).enumerate() {
            let (c, dz, dy) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
            let line = (c * self.axes[0] + (z + dz) % self.axes[0]) * self.axes[1] + (y + dy) % self.axes[1];
            let line = line * self.axes[2];
            for (dx, tap) in taps.iter().enumerate() {
                let column = if x + dx < self.axes[2] { x + dx } else { (x + dx) % self.axes[2] };
                visit(line + column, tap.f64());
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
            self.canvas.each_tap(self.dictionary, k, p, |cell, tap| image[cell] += value * tap);
        }
    }

    /// A^T W image, for the atoms that are in.
    fn correlate(&self, image: &[f64], is_in: &[bool]) -> Vec<f64> {
        let one = |(atom, is_in): (&Atom<T>, &bool)| {
            let (mut sum, (k, p)) = (0.0, (atom.filter as usize, atom.position as usize));
            if *is_in {
                let weights = &self.canvas.weights;
                self.canvas.each_tap(self.dictionary, k, p, |cell, tap| sum += tap * weights[cell] * image[cell]);
            }
            sum
        };
        self.atoms.iter().zip(is_in).map(one).collect()
    }

    /// x - A z.
    fn residual(&self, z: &[f64]) -> Vec<f64> {
        let mut residual: Vec<f64> = self.canvas.values.clone();
        self.add(&z.iter().map(|v| -v).collect::<Vec<_>>(), &mut residual);
        residual
    }

    /// The minimum over the coefficients that are in, from `start`, whatever the signs.
    fn fit(&self, start: &[f64], is_in: &[bool], accuracy: f64) -> Vec<f64> {
        let mut z = start.to_vec();
        let gradient = self.correlate(&self.residual(&z), is_in);
        conjugate_gradients(&mut z, gradient, Until { accuracy, iterations: MAX_ITERS }, |direction| {
            let mut image = vec![0.0; self.canvas.values.len()];
            self.add(direction, &mut image);
            self.correlate(&image, is_in)
        });
        z
    }

    /// 1/2 || W^1/2 (x - A z) ||^2.
    fn value(&self, z: &[f64]) -> f64 {
        0.5 * self.residual(z).iter().zip(&self.canvas.weights).map(|(r, w)| w * r * r).sum::<f64>()
    }

    /// The minimum in which every coefficient is zero or has the sign of `start`.
    pub(super) fn fit_signed(&self, start: &[f64]) -> Vec<f64> {
        let signs: Vec<f64> = start.iter().map(|v| v.signum()).collect();
        let mut z = start.to_vec();
        let mut is_in: Vec<bool> = start.iter().map(|v| *v != 0.0).collect();
        let mut value = self.value(&z);
        for _ in 0..MAX_CHANGES {
            let mut wanted = self.fit(&z, &is_in, ROUGH);
            let is_wrong = |wanted: &[f64], j: usize| wanted[j] * signs[j] < 0.0;
            if !(0..z.len()).any(|j| is_wrong(&wanted, j)) {
                wanted = self.fit(&wanted, &is_in, ACCURACY);
            }
            let wrong: Vec<usize> = (0..z.len()).filter(|j| is_wrong(&wanted, *j)).collect();
            // All that would change their sign are left out at once, if that is better than before.
            wrong.iter().for_each(|j| wanted[*j] = 0.0);
            let left = self.value(&wanted);
            if wrong.is_empty() || left < value {
                (z, value) = (wanted, left);
                wrong.iter().for_each(|j| is_in[*j] = false);
            } else {
                self.step_towards_fit(&mut z, &mut is_in, &signs);
                value = self.value(&z);
            }
            if !wrong.is_empty() {
                continue;
            }
            let pull = self.correlate(&self.residual(&z), &vec![true; z.len()]);
            let scale = start.iter().fold(0.0_f64, |m, s| m.max(s.abs()));
            let back: Vec<usize> = (0..z.len()).filter(|j| !is_in[*j] && pull[*j] * signs[*j] > 1e-9 * scale).collect();
            if back.is_empty() {
                break;
            }
            back.iter().for_each(|j| is_in[*j] = true);
        }
        z
    }

    /// Goes from z towards the fit as far as all signs hold, and leaves out what became zero.
    fn step_towards_fit(&self, z: &mut [f64], is_in: &mut [bool], signs: &[f64]) {
        let wanted = self.fit(z, is_in, ACCURACY);
        // What just came back is zero, and stops the step where it would leave with the wrong sign.
        let room = |j: usize| match is_in[j] && wanted[j] * signs[j] < 0.0 {
            true => z[j] / (z[j] - wanted[j]),
            false => 1.0,
        };
        let rooms: Vec<f64> = (0..z.len()).map(room).collect();
        let step = rooms.iter().copied().fold(1.0, f64::min);
        for (j, room) in rooms.into_iter().enumerate() {
            z[j] += step * (wanted[j] - z[j]);
            if room < 1.0 && room <= step {
                (z[j], is_in[j]) = (0.0, false);
            }
        }
    }
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
    with_values(code, support.fit(&start, &vec![true; start.len()], ACCURACY))
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
