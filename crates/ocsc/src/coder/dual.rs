//! Dual points of the coders on the circle: the best one is kept, whatever made it, and its correlations are bounded.
//!
//! A dual point proves a bound on the minimum, whichever code it is held against. A coder therefore keeps the best point that
//! it has proven of a sample, and when it looks at its code it offers the iteration's own best point, and, if that is not
//! enough, the code's residual.
//!
//! **The largest correlation** of a point must not be underestimated. The coder's own correlations, in its scalar and by
//! whatever transforms, come with a bound on their error ([`Exact::spatial_error`], [`Exact::transform_error`]), and every one
//! that may be the largest is computed again in f64, tap by tap.

use super::certificate::{Terms, Weight};
use super::convolution::{Correlate, Wrapped};
use super::{Coded, Status, relative};
use crate::Boundary;
use crate::metrics::Objective;
use crate::simd::dispatch;
use crate::{Code, Dictionary, Real, Result, Sample, Shape};

/// With more contenders in a map than one in so many, the whole map is computed at once.
const MANY: usize = 8;

/// An image whose correlations with a dictionary on the circle are wanted exactly.
pub(super) struct Exact<'a, T: Real> {
    dictionary: &'a Dictionary<T>,
    shape: Shape,
    image: Wrapped<f64>,
    /// ||t|| and max |t|.
    norm: f64,
    peak: f64,
    /// max_k ||d_k||.
    longest: f64,
    /// How far a correlation in f64 may be off.
    rounding: f64,
}

impl<'a, T: Real> Exact<'a, T> {
    pub(super) fn new(dictionary: &'a Dictionary<T>, shape: Shape, t: &[f64]) -> Self {
        let mut image = Wrapped::new(shape, dictionary.shape());
        image.set(t);
        let peak = t.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
        // Of the image in units of its peak: squares of tiny numbers would vanish, and the bounds with them.
        let unit = if peak > 0.0 { peak } else { 1.0 };
        let norm = unit * t.iter().map(|t| (t / unit).powi(2)).sum::<f64>().sqrt();
        let norm = norm * (1.0 + (t.len() as f64 + 3.0) * f64::EPSILON);
        let longest = dictionary.norms().iter().fold(0.0_f64, |m, n| m.max(*n)) * (1.0 + 1e-10);
        let mut exact = Exact { dictionary, shape, image, norm, peak, longest, rounding: 0.0 };
        exact.rounding = exact.sum_error(f64::EPSILON, f64::MIN_POSITIVE);
        exact
    }

    /// The classical bound on a sum of products: n eps sum |d| |t|; below the smallest normal number errors are absolute.
    fn sum_error(&self, epsilon: f64, smallest: f64) -> f64 {
        let taps = self.dictionary.shape().len() as f64;
        let window = self.norm.min(taps.sqrt() * self.peak);
        (taps + 3.0) * (epsilon * self.longest * window + smallest)
    }

    /// How far correlations that are computed tap by tap in T may be off, for an image rounded to T.
    pub(super) fn spatial_error(&self) -> f64 {
        self.sum_error(T::EPSILON, T::SMALLEST)
    }

    /// How far correlations that are computed by transforms in T may be off, for an image rounded to T.
    ///
    /// A transform of N numbers is off by at most eta = c eps log2 N relative to the norm (Higham, "Accuracy and stability of
    /// numerical algorithms", Theorem 24.2, where c eps is 6.7 rounding units; twice that here, for other radices than 2).
    /// The spectrum of a filter of M taps is at most sqrt(M) ||d||, and off by at most eta sqrt(N) ||d||, so
    ///
    /// ```text
    /// |error| <= ||t|| ||d|| ( eta (2 sqrt(M) + sqrt(N)) + (C + 5) eps sqrt(M) )       to first order in eps
    /// ```
    pub(super) fn transform_error(&self) -> f64 {
        let (n, filter) = (self.shape.pixels() as f64, self.dictionary.shape());
        let (root, steps) = ((filter.pixels() as f64).sqrt(), n.log2() + 2.0);
        let products = (filter.channels as f64 + 5.0) * T::EPSILON * root;
        let relative = 8.0 * T::EPSILON * steps * (2.0 * root + n.sqrt()) + products;
        let underflow = 8.0 * steps * n * n * filter.channels as f64 * root * T::SMALLEST;
        1.1 * (self.norm * self.longest * relative + underflow)
    }

    /// The largest |d_k^T t|, rounded up, or `least` if that is larger; `q` are the correlations within `error`.
    pub(super) fn strongest(&self, k: usize, q: &[T], error: f64, least: f64) -> f64 {
        // What is no number may be anything.
        let contends = |q: &T, best: f64| {
            let most = q.f64().abs() + error;
            most.is_nan() || most > best
        };
        let above = |c: f64, best: f64| if c.is_nan() { f64::INFINITY } else { best.max(c.abs() + self.rounding) };
        let top = q.iter().enumerate().fold(0, |top, (p, v)| if v.abs() > q[top].abs() { p } else { top });
        let mut best = least;
        if contends(&q[top], best) {
            // The strongest first: it spares most of the others.
            best = above(self.correlation(k, top), best);
        }
        if q.iter().filter(|q| contends(q, best)).count() > q.len() / MANY {
            let filter: Vec<f64> = self.dictionary.filter(k).iter().map(|d| d.f64()).collect();
            let mut map = vec![0.0; q.len()];
            let corner = self.dictionary.shape();
            dispatch(Correlate { wrapped: &self.image, filter: &filter, corner, q: &mut map });
            return map.into_iter().fold(best, |best, c| above(c, best));
        }
        for (p, q) in q.iter().enumerate() {
            if contends(q, best) {
                best = above(self.correlation(k, p), best);
            }
        }
        best
    }

    /// d_k^T t at one position, in f64.
    fn correlation(&self, k: usize, position: usize) -> f64 {
        let (s, f) = (self.shape, self.dictionary.shape());
        let (z, y, x) = (position / (s.height * s.width), position / s.width % s.height, position % s.width);
        let mut sum = 0.0;
        for (row, taps) in self.dictionary.filter(k).chunks_exact(f.width).enumerate() {
            let (c, i, j) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
            let values = &self.image.row(c, z + i, y + j)[x..][..f.width];
            sum += values.iter().zip(taps).map(|(v, tap)| v * tap.f64()).sum::<f64>();
        }
        sum
    }
}

/// The best dual point proven of a sample: an image (C, P), and the scale that makes it feasible.
#[derive(Default)]
pub(super) struct Proven(Option<(Vec<f64>, f64)>);

/// A code to be certified, and why its coder stopped.
pub(super) struct Claim<'a, T> {
    pub(super) sample: &'a Sample<T>,
    pub(super) dictionary: &'a Dictionary<T>,
    pub(super) code: Code<T>,
    pub(super) beta: f64,
    /// A gap of at most this fraction of the objective is good enough.
    pub(super) tol: f64,
    pub(super) iterations: usize,
    pub(super) status: Status,
}

impl Proven {
    /// Forgets the point, before another sample.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Certifies a code: by the best point so far, by the `offered` one, by the code's residual, until one is good enough.
    /// `bound(t, least)` is an upper bound on max |D^T t|, or `least` if that is larger.
    pub(super) fn certify<T: Real>(
        &mut self,
        claim: Claim<'_, T>,
        offered: Option<Vec<f64>>,
        mut bound: impl FnMut(&[f64], f64) -> f64,
    ) -> Result<Coded<T>> {
        let Claim { sample, dictionary, code, beta, tol, iterations, status } = claim;
        let (_, estimate, _) = code.reconstruct_f64(dictionary, Boundary::Circular)?;
        let residual = observed(sample, sample.data().iter().zip(&estimate).map(|(x, e)| x.f64() - e).collect());
        let seen = |i: usize| sample.mask().is_none_or(|mask| mask[i]);
        let l1 = code.l1();
        let weight = Weight {
            penalty: beta * l1,
            mass: l1 * dictionary.norms().iter().fold(0.0_f64, |m, n| m.max(*n)),
            nonzeros: code.nonzeros(),
            taps: dictionary.shape().len(),
        };
        let terms = |t: &[f64]| {
            let mut terms = Terms::default();
            for i in (0..t.len()).filter(|i| seen(*i)) {
                terms.add(sample.data()[i].f64(), estimate[i], residual[i], t[i]);
            }
            terms
        };
        let own = terms(&residual);
        let total = own.objective(&weight);
        let mut gap = self.0.as_ref().map_or(total, |(t, s)| terms(t).gap(*s, &weight));
        let offered = offered.filter(|t| t.iter().all(|v| v.is_finite())).map(|t| observed(sample, t));
        for t in offered.into_iter().chain([residual.clone()]) {
            if relative(gap, total) <= tol {
                break;
            }
            let bound = bound(&t, beta);
            // Rounded down: an infinite bound gives zero.
            let s = if bound > beta { beta / bound * (1.0 - f64::EPSILON) } else { 1.0 };
            let proven = terms(&t).gap(s, &weight);
            if proven < gap {
                gap = proven;
                self.0 = Some((t, s));
            }
        }
        let objective = Objective { data_term: 0.5 * own.r_r, l1 };
        let (filters, penalty) = (None, beta * l1);
        Ok(Coded { code, filters, objective, penalty, beta, gap, moved: 0.0, outliers: 0, iterations, status })
    }
}

/// An image with zeros where nothing was observed.
fn observed<T: Real>(sample: &Sample<T>, mut image: Vec<f64>) -> Vec<f64> {
    let hidden = image.iter_mut().zip(sample.mask().into_iter().flatten()).filter(|(_, seen)| !**seen);
    hidden.for_each(|(v, _)| *v = 0.0);
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coder::convolution::{Convolution, Space};
    use crate::coder::splitting::Splitting;

    /// Numbers without a pattern, between -1 and 1.
    fn numbers(len: usize, seed: usize) -> Vec<f64> {
        (0..len).map(|i| (((i + 31 * seed + 7) * (i + 17) * 7919 % 100_003) as f64 / 50_001.5 - 1.0).sin()).collect()
    }

    /// Filters without a mean, so that an offset of the data is nearly lost on them.
    fn filters<T: Real>(k: usize, shape: Shape) -> Dictionary<T> {
        let taps = numbers(k * shape.len(), 3);
        let centred = taps.chunks(shape.len()).flat_map(|f| {
            let mean = f.iter().sum::<f64>() / f.len() as f64;
            let norm = f.iter().map(|v| (v - mean).powi(2)).sum::<f64>().sqrt();
            f.iter().map(|v| T::of(0.999 * (v - mean) / norm)).collect::<Vec<_>>()
        });
        Dictionary::new(k, shape, 3, centred.collect()).unwrap()
    }

    /// max |D^T t| by the definition.
    fn strongest<T: Real>(d: &Dictionary<T>, shape: Shape, t: &[f64]) -> f64 {
        let (f, s) = (d.shape(), shape);
        let mut top = 0.0_f64;
        for k in 0..d.n_filters() {
            for p in 0..s.pixels() {
                let (z, y, x) = (p / (s.height * s.width), p / s.width % s.height, p % s.width);
                let mut sum = 0.0;
                for (i, tap) in d.filter(k).iter().enumerate() {
                    let (c, dz, dy, dx) =
                        (i / f.pixels(), i / (f.height * f.width) % f.depth, i / f.width % f.height, i % f.width);
                    let row = (c * s.depth + (z + dz) % s.depth) * s.height + (y + dy) % s.height;
                    sum += tap.f64() * t[row * s.width + (x + dx) % s.width];
                }
                top = top.max(sum.abs());
            }
        }
        top
    }

    fn check<T: Real>(shape: Shape, filter: Shape, offset: f64, unit: f64) {
        let d = filters::<T>(8, filter);
        let t: Vec<f64> = numbers(shape.len(), 5).iter().map(|v| unit * (v + offset)).collect();
        let truth = strongest(&d, shape, &t);
        let exact = Exact::new(&d, shape, &t);
        let mut admm = Splitting::new(&d, shape);
        let mut coders = [Space::Spatial, Space::Frequency].map(|space| Convolution::new(&d, shape, space));
        let rounded: Vec<T> = t.iter().map(|v| T::of(*v)).collect();
        let errors = [exact.spatial_error(), exact.transform_error()];
        for (coder, error) in coders.iter_mut().zip(errors) {
            // What T finds is within the bound on its error, by far, and that bound is of some use.
            let off = (coder.max_correlation(&rounded) - truth).abs();
            assert!(off <= 0.5 * error, "{shape}: {off:e} of {error:e} in {}", T::NAME);
        }
        for bound in [admm.bound(&t, 0.0), coders[0].bound(&t, 0.0), coders[1].bound(&t, 0.0)] {
            let allowed = truth * 1e-14 + 1e-13 * unit * (1.0 + offset);
            assert!(bound >= truth && bound <= truth + 100.0 * allowed, "{shape}: {bound} {truth} in {}", T::NAME);
        }
        assert_eq!(admm.bound(&t, 10.0 * truth), 10.0 * truth);
    }

    /// Lengths of all kinds of transforms (primes, too), offsets, units and channels.
    #[test]
    fn the_largest_correlation_is_never_underestimated() {
        let colour = |channels, [depth, height, width]: [usize; 3]| Shape { channels, depth, height, width };
        for (shape, filter) in [
            (Shape::image(16, 17), Shape::image(5, 5)),
            (Shape::image(1, 1009), Shape::image(1, 30)),
            (Shape::image(64, 37), Shape::image(7, 3)),
            (colour(3, [4, 5, 6]), colour(3, [2, 3, 6])),
        ] {
            for (offset, unit) in [(0.0, 1.0), (1e5, 1.0), (0.0, 1e-30), (1e5, 1e6)] {
                check::<f32>(shape, filter, offset, unit);
                check::<f64>(shape, filter, offset, unit);
            }
            check::<f64>(shape, filter, 0.0, 1e-200);
        }
    }

    /// Without a bound on their error, transforms in f32 find less than there is.
    #[test]
    fn single_precision_alone_would_underestimate() {
        let (shape, filter) = (Shape::image(16, 17), Shape::image(5, 5));
        let missed = (0..20).filter(|seed| {
            let d = filters::<f32>(8, filter);
            let t: Vec<f64> = numbers(shape.len(), 5 + seed).iter().map(|v| f64::from((1e5 + v) as f32)).collect();
            let rounded: Vec<f32> = t.iter().map(|v| *v as f32).collect();
            Convolution::new(&d, shape, Space::Frequency).max_correlation(&rounded) < strongest(&d, shape, &t) * 0.999
        });
        assert!(missed.count() > 0);
    }
}
