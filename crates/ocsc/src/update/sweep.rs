//! One sweep of [`super::BlockDescent`] over all filters.
//!
//! **Two halves.** Row k of the statistics holds phi_kl for l >= k. Filters from k on have not moved when k is visited, so
//! their part of g_k, row k times these filters, is computed for all k before the sweep. A filter that has moved adds
//! its part to all later gradients: phi_lk * d_k, where phi_lk(tau) = phi_kl(-tau), again from row k. So rows are read
//! once each way, and threads share whole blocks of rows: only the visits to the LANES filters of one block wait for
//! each other.
//!
//! In the code below *taps* are filters of a block side by side, or their gradients, as [`crate::statistics`] keeps them.

use super::rank_one::{Factors, next_topography};
use crate::constraint::Constraint;
use crate::simd::dispatch;
use crate::span::Span;
use crate::statistics::{LANES, Lags, Multiply, MultiplyTwo};
use crate::{Dictionary, Fourier, Real, Scratch};
use num_complex::Complex;
use rayon::prelude::*;

/// Gradient steps per visit of a filter; all but the first cost one pair each.
const STEPS: usize = 2;
/// Filters per task that finds bounds.
const FILTERS: usize = 16;

/// Work memory for sweeps over dictionaries of one shape.
pub(super) struct Sweep<T: Real> {
    /// Where each number of a filter is in taps, and in taps turned around.
    places: Vec<[usize; 2]>,
    /// Taps of all filters, block by block.
    filters: Vec<T>,
    /// For every k, sum over l >= k of phi_kl * d_l as the sweep began, still apart by lanes: K taps.
    pulled: Vec<T>,
    /// For every k, sum over visited l < k of phi_kl * d_l, turned around: taps, block by block.
    pushed: Vec<T>,
    /// The filters of the block being visited and of the block before, each in all lanes, turned around.
    spread: [Vec<T>; 2],
    /// L_k of all filters, zero for those that no code uses, and one work memory per task.
    bounds: Vec<f64>,
    spectra: Vec<Spectrum>,
    filter: Work<T>,
    constraint: Constraint,
}

/// Work memory for one filter.
struct Work<T> {
    gradient: Vec<T>,
    change: Vec<T>,
    /// phi_kk * change, in the filter's lane.
    product: Vec<T>,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Swept {
    /// The sum over k of || d_k - project(d_k - g_k / L_k) ||^2, at the visit of k.
    pub(super) steps: f64,
    /// Filters that no code uses, which stay.
    pub(super) unused: usize,
}

/// Work memory for L_k.
struct Spectrum {
    fourier: Fourier<f64>,
    scratch: Scratch<f64>,
    map: Vec<f64>,
    values: Vec<Complex<f64>>,
}

impl<T: Real> Sweep<T> {
    pub(super) fn new(lags: &Lags<T>, constraint: Constraint) -> Self {
        let (k, shape) = (lags.n_filters(), lags.filter_shape());
        let zeros = |n: usize| vec![T::zero(); n];
        let (taps, blocks) = (lags.window().taps_len(), k.div_ceil(LANES));
        Sweep {
            places: (0..shape.len()).map(|i| lags.window().tap(i)).collect(),
            filters: zeros(blocks * taps),
            pulled: zeros(k * taps),
            pushed: zeros(blocks * taps),
            spread: std::array::from_fn(|_| zeros(LANES * taps)),
            bounds: vec![0.0; k],
            spectra: (0..k.div_ceil(FILTERS)).map(|_| Spectrum::new(shape.spatial())).collect(),
            filter: Work { gradient: zeros(shape.len()), change: zeros(shape.len()), product: zeros(taps) },
            constraint,
        }
    }

    /// Finds L_k for the statistics.
    pub(super) fn set_bounds(&mut self, lags: &Lags<T>) {
        let tasks = self.bounds.par_chunks_mut(FILTERS).zip(&mut self.spectra).enumerate();
        tasks.for_each(|(task, (bounds, spectrum))| {
            for (i, bound) in bounds.iter_mut().enumerate() {
                let k = task * FILTERS + i;
                *bound = if lags.energy(k) > T::zero() { spectrum.bound(lags, k) } else { 0.0 };
            }
        });
    }

    /// Visits every filter once; with a span, filters stay in it.
    pub(super) fn run(&mut self, lags: &Lags<T>, dictionary: &mut Dictionary<T>, span: Option<&Span>) -> Swept {
        self.pull(lags, dictionary);
        self.pushed.fill(T::zero());
        let (len, taps) = (dictionary.shape().len(), lags.window().taps_len());
        let [mut now, mut before] = self.spread.each_mut();
        let mut swept = Swept::default();
        for (block, filters) in dictionary.data_mut().chunks_mut(LANES * len).enumerate() {
            let (pushed, later) = self.pushed.split_at_mut((block + 1) * taps);
            let pushed = &mut pushed[block * taps..];
            let mut visits = Visits {
                lags,
                places: &self.places,
                pulled: &self.pulled,
                bounds: &self.bounds,
                pushed,
                spread: now,
                work: &mut self.filter,
                constraint: &self.constraint,
                span,
            };
            if let Some(last) = block.checked_sub(1) {
                // Those of the block before have moved; this block waits for their parts, the later ones can wait. The next one
                // goes with this one, since two together take little longer than one.
                let (next, later) = later.split_at_mut(taps.min(later.len()));
                push(lags, last, before, block, [visits.pushed, next]);
                rayon::join(
                    || swept.add(visits.visit(block, filters)),
                    || push_all(lags, last, before, block + 2, later),
                );
            } else {
                swept.add(visits.visit(block, filters));
            }
            std::mem::swap(&mut now, &mut before);
        }
        swept
    }

    /// pulled <- sum over l >= k of phi_kl * d_l for all k.
    fn pull(&mut self, lags: &Lags<T>, dictionary: &Dictionary<T>) {
        let (window, len) = (lags.window(), lags.window().taps_len());
        for k in 0..dictionary.n_filters() {
            let taps = &mut self.filters[k / LANES * len..][..len];
            dictionary.filter(k).iter().zip(&self.places).for_each(|(d, [at, _])| taps[at + k % LANES] = *d);
        }
        let filters = &self.filters;
        // Two rows at a time; LANES is even, so they begin with the same block.
        self.pulled.par_chunks_mut(2 * len).enumerate().for_each(|(pair, outs)| {
            outs.fill(T::zero());
            let (k, (first, second)) = (2 * pair, outs.split_at_mut(len));
            for (block, taps) in filters.chunks_exact(len).enumerate().skip(k / LANES) {
                let phi = lags.block(k, block);
                if second.is_empty() {
                    dispatch(Multiply { geometry: window, phi, taps, out: first });
                } else {
                    let (phi, out) = ([phi, lags.block(k + 1, block)], [&mut *first, &mut *second]);
                    MultiplyTwo { geometry: window, phi, taps: [taps; 2], out }.run();
                }
            }
        });
    }
}

impl Swept {
    fn add(&mut self, other: Swept) {
        *self = Swept { steps: self.steps + other.steps, unused: self.unused + other.unused };
    }
}

/// Adds the parts of the filters of block `from`, as spread, to the gradients of block `to` and of the next, if there is one.
fn push<T: Real>(lags: &Lags<T>, from: usize, spread: &[T], to: usize, [out, next]: [&mut [T]; 2]) {
    let geometry = lags.window();
    for (lane, taps) in spread.chunks_exact(out.len()).enumerate() {
        let (k, out) = (from * LANES + lane, &mut *out);
        let phi = lags.block(k, to);
        if next.is_empty() {
            dispatch(Multiply { geometry, phi, taps, out });
        } else {
            let (phi, out) = ([phi, lags.block(k, to + 1)], [out, &mut *next]);
            MultiplyTwo { geometry, phi, taps: [taps; 2], out }.run();
        }
    }
}

/// The same for all blocks from `to` on. Every output has its own sums, so tasks change nothing.
fn push_all<T: Real>(lags: &Lags<T>, from: usize, spread: &[T], to: usize, outs: &mut [T]) {
    let len = lags.window().taps_len();
    outs.par_chunks_mut(2 * len).enumerate().for_each(|(i, outs)| {
        push(lags, from, spread, to + 2 * i, outs.split_at_mut(len).into());
    });
}

/// The filters of one block, one after the other.
struct Visits<'a, T> {
    lags: &'a Lags<T>,
    places: &'a [[usize; 2]],
    pulled: &'a [T],
    bounds: &'a [f64],
    /// The block's part of the like-named arrays of [`Sweep`].
    pushed: &'a mut [T],
    spread: &'a mut [T],
    work: &'a mut Work<T>,
    constraint: &'a Constraint,
    span: Option<&'a Span>,
}

impl<T: Real> Visits<'_, T> {
    fn visit(&mut self, block: usize, filters: &mut [T]) -> Swept {
        let mut swept = Swept::default();
        for (lane, filter) in filters.chunks_exact_mut(self.places.len()).enumerate() {
            let k = block * LANES + lane;
            if self.constraint.is_fixed(k) {
                // Others see it, and it stays.
            } else if self.bounds[k] <= 0.0 {
                swept.unused += 1;
            } else if self.constraint.is_rank_one() {
                swept.steps += self.descend_rank_one(k, filter);
            } else {
                swept.steps += self.descend(k, filter);
            }
            self.set_spread(lane, filter);
            let taps = &self.spread[lane * self.pushed.len()..][..self.pushed.len()];
            let phi = self.lags.block(k, block);
            dispatch(Multiply { geometry: self.lags.window(), phi, taps, out: self.pushed });
        }
        swept
    }

    /// Moves filter k; returns the squared norm of its first step.
    fn descend(&mut self, k: usize, filter: &mut [T]) -> f64 {
        self.set_gradient(k);
        let (bound, mut first) = (self.bounds[k], 0.0);
        for step in 0..STEPS {
            if step > 0 {
                self.move_gradient(k);
            }
            self.confine_gradient();
            let Work { gradient, change, .. } = &mut *self.work;
            change.copy_from_slice(filter);
            filter.iter_mut().zip(gradient).for_each(|(d, g)| *d = T::of(d.f64() - g.f64() / bound));
            self.constraint.project(k, filter);
            change.iter_mut().zip(&*filter).for_each(|(c, d)| *c = *d - *c);
            if step == 0 {
                first = change.iter().map(|c| c.f64().powi(2)).sum();
            }
        }
        first
    }

    /// Takes what lies outside of the span off the gradient.
    fn confine_gradient(&mut self) {
        if let Some(span) = self.span {
            let mut inside: Vec<f64> = self.work.gradient.iter().map(|g| g.f64()).collect();
            span.project(&mut inside);
            self.work.gradient.iter_mut().zip(inside).for_each(|(g, v)| *g = T::of(v));
        }
    }

    /// Moves the waveform and the topography of filter k in turn; returns the squared norm of its first step.
    fn descend_rank_one(&mut self, k: usize, filter: &mut [T]) -> f64 {
        self.set_gradient(k);
        let (before, mut first) = (filter.to_vec(), 0.0);
        let Some(mut factors) = Factors::of(filter, &self.work.gradient, self.bounds[k], self.constraint, k) else {
            return 0.0;
        };
        for step in 0..STEPS {
            factors.step_waveform(&self.work.gradient, self.bounds[k], self.constraint, k);
            self.set_filter(k, filter, &factors);
            let curvature = self.curvature(k, filter);
            if let Some(topography) = next_topography(&factors, &self.work.gradient, curvature, self.constraint) {
                factors.set_topography(topography);
                self.set_filter(k, filter, &factors);
            }
            if step == 0 {
                first = filter.iter().zip(&before).map(|(a, b)| (a.f64() - b.f64()).powi(2)).sum();
            }
        }
        first
    }

    /// Makes the filter the product of its factors, and follows with the gradient.
    fn set_filter(&mut self, k: usize, filter: &mut [T], factors: &Factors) {
        self.work.change.copy_from_slice(filter);
        factors.set(filter);
        self.work.change.iter_mut().zip(&*filter).for_each(|(c, d)| *c = *d - *c);
        self.move_gradient(k);
    }

    /// Returns <d, phi_kk * d>.
    fn curvature(&mut self, k: usize, filter: &[T]) -> f64 {
        self.set_product(k, filter);
        let product = &self.work.product;
        filter.iter().zip(self.places).map(|(d, [_, at])| d.f64() * product[at + k % LANES].f64()).sum()
    }

    /// gradient <- g_k.
    fn set_gradient(&mut self, k: usize) {
        let pulled = &self.pulled[k * self.pushed.len()..];
        let numbers = self.places.iter().zip(self.lags.unweighted_psi(k));
        for (g, ([forward, turned], psi)) in self.work.gradient.iter_mut().zip(numbers) {
            let sum: f64 = pulled[*forward..][..LANES].iter().map(|v| v.f64()).sum();
            *g = T::of(sum + self.pushed[turned + k % LANES].f64() - psi.f64());
        }
    }

    /// gradient <- gradient + phi_kk * change. Turned around or not is the same for the symmetric phi_kk.
    fn move_gradient(&mut self, k: usize) {
        let change = std::mem::take(&mut self.work.change);
        self.set_product(k, &change);
        self.work.change = change;
        let Work { gradient, product, .. } = &mut *self.work;
        for (g, [_, at]) in gradient.iter_mut().zip(self.places) {
            *g += product[at + k % LANES];
        }
    }

    /// product <- phi_kk * values, in the filter's lane and turned around.
    fn set_product(&mut self, k: usize, values: &[T]) {
        self.set_spread(k % LANES, values);
        let product = &mut self.work.product;
        product.fill(T::zero());
        let taps = &self.spread[k % LANES * product.len()..][..product.len()];
        dispatch(Multiply { geometry: self.lags.window(), phi: self.lags.block(k, k / LANES), taps, out: product });
    }

    fn set_spread(&mut self, lane: usize, filter: &[T]) {
        let spread = &mut self.spread[lane * self.pushed.len()..][..self.pushed.len()];
        filter.iter().zip(self.places).for_each(|(d, [_, at])| spread[*at..][..LANES].fill(*d));
    }
}

impl Spectrum {
    fn new(filter: [usize; 3]) -> Self {
        let grid = filter.map(|n| smooth(2 * n - 1));
        let fourier = Fourier::new(grid);
        let values = vec![Complex::new(0.0, 0.0); fourier.n_freqs()];
        Spectrum { scratch: fourier.scratch(), map: vec![0.0; fourier.n_pixels()], values, fourier }
    }

    /// L for a window of phi_kk. Starting the window at lag 0 or at -(m - 1) changes phases only.
    fn bound<T: Real>(&mut self, lags: &Lags<T>, k: usize) -> f64 {
        let (window, block) = (lags.window(), lags.block(k, k / LANES));
        let [rz, ry, rx] = window.reach();
        let corner = [rz, ry, rx].map(|r| 2 * r as usize + 1);
        let rows = (-rz..=rz).flat_map(|z| (-ry..=ry).map(move |y| (z, y)));
        for ((z, y), out) in rows.zip(self.map.chunks_exact_mut(corner[2])) {
            let row = block[window.at([z, y, -rx]) * LANES + k % LANES..].iter().step_by(LANES);
            out.iter_mut().zip(row).for_each(|(o, v)| *o = v.f64());
        }
        let map = &self.map[..corner.iter().product()];
        self.fourier.forward_padded(map, corner, &mut self.values, &mut self.scratch);
        self.values.iter().map(|v| v.norm_sqr()).fold(0.0, f64::max).sqrt()
    }
}

/// The smallest number from `n` on without prime factors above 5, for the transform's sake.
fn smooth(n: usize) -> usize {
    let reduce = |mut m: usize, p: usize| {
        while m.is_multiple_of(p) {
            m /= p;
        }
        m
    };
    (n..).find(|&m| [2, 3, 5].into_iter().fold(m, reduce) == 1).unwrap_or(n)
}
