//! The space that a few base filters span, and the filters in it.
//!
//! Filters d_k = sum_r B_r W(r,k) of R base filters are those that lie in the span of B. An orthonormal basis Q of the span is all that
//! a projection needs; W follows from B and d_k. So filters of rank R know their base filters: any R of them that are
//! independent span the same space.

use crate::{Dictionary, Real};

/// What a filter must have outside of the span of others to be independent of them, relative to the longest, for each scalar.
fn least<T: Real>() -> f64 {
    1e3 * T::EPSILON
}

/// An orthonormal basis of R filters, or of fewer if they are dependent, in f64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    len: usize,
    basis: Vec<f64>,
    /// The filters of the dictionary that span it.
    chosen: Vec<usize>,
}

impl Span {
    /// Returns the span of `n` filters of a dictionary, each the one that is furthest from the span of those before.
    pub(crate) fn of<T: Real>(dictionary: &Dictionary<T>, n: usize) -> Self {
        let len = dictionary.shape().len();
        let mut span = Span { len, basis: Vec::with_capacity(n * len), chosen: Vec::new() };
        let mut rest: Vec<f64> = dictionary.data().iter().map(|d| d.f64()).collect();
        let longest = rest.chunks_exact(len).map(norm).fold(0.0, f64::max);
        for _ in 0..n.min(len) {
            let far = rest.chunks_exact(len).enumerate().max_by(|a, b| norm(a.1).total_cmp(&norm(b.1)));
            let Some((at, _)) = far.filter(|(_, far)| norm(far) > least::<T>() * longest) else { break };
            let mut next = rest[at * len..][..len].to_vec();
            // Twice is enough for orthogonality to round-off.
            for _ in 0..2 {
                span.remove(&mut next);
                let scale = 1.0 / norm(&next);
                next.iter_mut().for_each(|v| *v *= scale);
            }
            for filter in rest.chunks_exact_mut(len) {
                let along = dot(filter, &next);
                filter.iter_mut().zip(&next).for_each(|(f, q)| *f -= along * q);
            }
            span.basis.extend(next);
            span.chosen.push(at);
        }
        span
    }

    /// Returns the orthonormal filters.
    pub(crate) fn basis(&self) -> impl Iterator<Item = &[f64]> {
        self.basis.chunks_exact(self.len)
    }

    /// Returns the numbers of the filters that span it: independent ones of the dictionary.
    pub(crate) fn chosen(&self) -> &[usize] {
        &self.chosen
    }

    /// Projects a filter on the span.
    pub(crate) fn project(&self, filter: &mut [f64]) {
        let mut rest = filter.to_vec();
        self.remove(&mut rest);
        filter.iter_mut().zip(rest).for_each(|(f, r)| *f -= r);
    }

    /// Moves the filters of a dictionary that are not in the span into it, and scales those to norm 1. Those in it, up to rounding,
    /// keep their bits.
    pub(crate) fn confine<T: Real>(&self, dictionary: &mut Dictionary<T>) {
        for filter in dictionary.data_mut().chunks_exact_mut(self.len) {
            let mut inside: Vec<f64> = filter.iter().map(|f| f.f64()).collect();
            let (before, mut rest) = (norm(&inside), inside.clone());
            self.remove(&mut rest);
            if norm(&rest) <= least::<T>() * before {
                continue;
            }
            self.project(&mut inside);
            let scale = 1.0 / norm(&inside).max(f64::MIN_POSITIVE);
            filter.iter_mut().zip(inside).for_each(|(f, new)| *f = T::of(scale * new));
        }
        dictionary.project();
    }

    /// Removes what a vector has in the span.
    fn remove(&self, vector: &mut [f64]) {
        for q in self.basis() {
            let along = dot(vector, q);
            vector.iter_mut().zip(q).for_each(|(v, q)| *v -= along * q);
        }
    }
}

/// Solves min ||sum_r B_r w_r - d|| for many d: base filters as an orthonormal basis times an upper triangle.
pub(crate) struct Coordinates {
    len: usize,
    basis: Vec<f64>,
    /// (R, R), B_r = sum_{q <= r} Q_q triangle(q, r); a dependent base filter has a zero on the diagonal.
    triangle: Vec<f64>,
}

impl Coordinates {
    /// Takes base filters, each of this many values.
    pub(crate) fn new<T: Real>(len: usize, base: &[&[T]]) -> Self {
        let n = base.len();
        let (mut basis, mut triangle) = (Vec::with_capacity(n * len), vec![0.0; n * n]);
        for r in 0..n {
            let mut next: Vec<f64> = base[r].iter().map(|b| b.f64()).collect();
            let before = norm(&next);
            for _ in 0..2 {
                for (q, known) in basis.chunks_exact(len).enumerate() {
                    let along = dot(&next, known);
                    triangle[q * n + r] += along;
                    next.iter_mut().zip(known).for_each(|(v, q)| *v -= along * q);
                }
            }
            let left = norm(&next);
            if left > least::<T>() * before && left > 0.0 {
                triangle[r * n + r] = left;
                next.iter_mut().for_each(|v| *v /= left);
            } else {
                next.fill(0.0);
            }
            basis.extend(next);
        }
        Coordinates { len, basis, triangle }
    }

    /// Returns w.
    pub(crate) fn of<T: Real>(&self, filter: &[T]) -> Vec<f64> {
        let d: Vec<f64> = filter.iter().map(|f| f.f64()).collect();
        let mut w: Vec<f64> = self.basis.chunks_exact(self.len).map(|q| dot(&d, q)).collect();
        let n = w.len();
        for r in (0..n).rev() {
            let above: f64 = (r + 1..n).map(|s| self.triangle[r * n + s] * w[s]).sum();
            let diagonal = self.triangle[r * n + r];
            w[r] = if diagonal > 0.0 { (w[r] - above) / diagonal } else { 0.0 };
        }
        w
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}
