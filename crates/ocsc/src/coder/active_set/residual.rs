//! The residual from the atoms, and the certificate that it gives.
//!
//! The canvas holds r rounded to T. The dual point is made of this rounded r, and all that is said about it (its products, and
//! its largest correlation, see `bound.rs`) is computed from it in f64; the primal objective comes from the residual before
//! rounding. So no rounding of the descent, the residual or the correlation kernel can falsify the gap.
//!
//! **Weights and losses.** With weights W and a loss of outliers o (`loss.rs`) the data term is, for the best o,
//!
//! ```text
//! sum_i  a_i/2 (r_i - o_i)^2 + W_i c |o_i|          a = W / h
//! ```
//!
//! which is the plain problem for the values sqrt(a) x with one more atom for every value, of weight W c. Its dual point is
//! sqrt(a) (r - o) = q / sqrt(a), where the canvas holds q = a (r - o), at most W c in modulus. Descent works on the majorising
//! squares a min(1, h c / |r|) r^2 / 2, which have the same gradient q.

use super::ActiveSet;
use super::descend::Active;
use super::filters::Filters;
use super::frame::{Frame, LANES};
use super::list::List;
use super::scan::Size;
use super::tiling::Tiling;
use crate::Boundary;
use crate::coder::certificate::Terms;
use crate::simd::{Kernel, dispatch};
use crate::{Loss, Real, Sample};
use rayon::prelude::*;
use std::ops::Range;

/// How much values count, on the canvas.
pub(super) struct DataWeights<T> {
    loss: Loss,
    /// h: 1, or what smooths the modulus.
    pub(super) smoothing: f64,
    /// W: the sample's weights, 1 for the zeros around it that count, 0 elsewhere.
    given: Vec<T>,
    /// The weights of the squares that descent works on.
    pub(super) majorising: Vec<T>,
}

/// What is known of a residual.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rebuilt {
    pub(super) terms: Terms,
    /// How large the numbers of the canvas are.
    pub(super) size: Size,
    /// sum W c |o|: what outliers pay.
    pub(super) outlier_cost: f64,
    /// sum sqrt(a) |o|: the lengths of the outliers' atoms.
    pub(super) outlier_mass: f64,
    /// By how much the modulus exceeds what smooths it.
    pub(super) smoothed: f64,
    /// Values that count less than others.
    pub(super) outliers: usize,
}

impl Rebuilt {
    fn merge(&self, other: &Rebuilt) -> Rebuilt {
        Rebuilt {
            terms: self.terms.merge(&other.terms),
            size: Size { peak: self.size.peak.max(other.size.peak), energy: self.size.energy + other.size.energy },
            outlier_cost: self.outlier_cost + other.outlier_cost,
            outlier_mass: self.outlier_mass + other.outlier_mass,
            smoothed: self.smoothed + other.smoothed,
            outliers: self.outliers + other.outliers,
        }
    }
}

impl<T: Real> DataWeights<T> {
    /// The weights of a sample, if its values do not all count alike.
    pub(super) fn new(frame: &Frame, sample: &Sample<T>, loss: Loss) -> Option<Self> {
        if sample.weights().is_none() && loss == Loss::L2 {
            return None;
        }
        let outside = if frame.boundary == Boundary::Zero { T::one() } else { T::zero() };
        let mut given = vec![outside; frame.len()];
        let seen = |i: usize| sample.mask().is_none_or(|mask| mask[i]);
        let whole = || (0..sample.data().len()).map(|i| if seen(i) { T::one() } else { T::zero() }).collect();
        let weights: Vec<T> = sample.weights().map_or_else(whole, <[T]>::to_vec);
        frame.place(&weights, &mut given);
        let mean = sample.data().iter().map(|v| v.f64().abs()).sum::<f64>() / sample.data().len() as f64;
        let smoothing = match loss {
            Loss::L1 if mean > 0.0 => COARSEST * mean,
            _ => 1.0,
        };
        let majorising = given.clone();
        Some(DataWeights { loss, smoothing, given, majorising })
    }

    /// The largest a.
    pub(super) fn steepest(&self) -> f64 {
        1.0 / self.smoothing
    }

    /// Whether the weights of the majorising squares change with the residual.
    pub(super) fn is_moving(&self) -> bool {
        self.loss != Loss::L2
    }

    /// canvas <- W psi(x): what the values of a sample pull with when there is no code.
    pub(super) fn fill_influence(&self, frame: &Frame, sample: &Sample<T>, canvas: &mut [T]) {
        frame.fill(sample.data(), canvas);
        for (v, w) in canvas.iter_mut().zip(&self.given) {
            *v = T::of(w.f64() * self.loss.influence(v.f64()));
        }
    }

    /// Whether there is a modulus to be smoothed less.
    pub(super) fn is_smoothed(&self) -> bool {
        self.loss == Loss::L1
    }
}

/// The modulus is first smoothed by this fraction of the mean modulus of the sample.
const COARSEST: f64 = 0.1;

impl<T: Real> ActiveSet<T> {
    /// canvas <- x - D z, summed in f64, band by band; times the weights of the values where they have any, or else times a field.
    /// The dual point of the terms is what is on the canvas.
    #[allow(clippy::too_many_arguments, reason = "what one sample is made of")]
    pub(super) fn rebuild(
        &self,
        frame: &Frame,
        tiling: &Tiling,
        sample: &Sample<T>,
        list: &List<T>,
        whole: &mut [T],
        mut data: Option<&mut DataWeights<T>>,
        field: Option<&[T]>,
    ) -> Rebuilt {
        let mut canvas = &mut *whole;
        let mut weighing = data.as_deref_mut().map(|data| {
            let DataWeights { loss, smoothing, given, majorising } = data;
            Weighing { loss: *loss, smoothing: *smoothing, given, majorising }
        });
        let mut parts = Vec::with_capacity(tiling.len());
        for band in 0..tiling.len() {
            let own = tiling.own(band);
            let (mine, rest) = canvas.split_at_mut(own.len());
            parts.push((mine, weighing.as_mut().map(|weighing| weighing.cut(own.len()))));
            canvas = rest;
        }
        let rebuilt: Vec<Rebuilt> = parts
            .into_par_iter()
            .enumerate()
            .map(|(band, (canvas, mut weighing))| {
                let start = tiling.own(band).start;
                // Atoms at the edges of a part of a row stick out of it.
                let margin = if frame.is_folded() { self.filters.width.next_multiple_of(LANES) } else { 0 };
                let mut framed = vec![0.0; margin + canvas.len() + margin];
                for (i, out) in framed[margin..][..canvas.len()].chunks_mut(frame.stride).enumerate() {
                    frame.copy_source(start + i * frame.stride, sample.data(), out);
                }
                let mut subtract = |band: usize, shift: usize| {
                    let (atoms, start) = (list.band(band), start.wrapping_sub(margin).wrapping_sub(shift));
                    dispatch(Subtract { frame, filters: &self.filters, atoms, start, part: &mut framed });
                };
                tiling.before(band).into_iter().chain([band]).for_each(|near| subtract(near, 0));
                if frame.is_folded() && frame.boundary == Boundary::Circular && band == 0 {
                    // What wraps around the end of the signal.
                    subtract(tiling.len() - 1, frame.sample.width.wrapping_neg());
                }
                let exact = &mut framed[margin..][..canvas.len()];
                let rows = exact.chunks_mut(frame.stride).zip(canvas.chunks_mut(frame.stride));
                let mut rebuilt = Rebuilt::default();
                for (i, (exact, out)) in rows.enumerate() {
                    let at = start + i * frame.stride;
                    let source = frame.source(at / frame.stride, sample.data());
                    let counted = fold_row(frame, at, source.is_some(), exact);
                    let is_own = frame.owns_row(at / frame.stride);
                    let line = Row { frame, source, first: at % frame.stride, exact, counted, is_own };
                    match &mut weighing {
                        None => line.finish(out, field.map(|field| &field[at..]), &mut rebuilt),
                        Some(weighing) => line.finish_weighted(out, weighing.cut(out.len()), &mut rebuilt),
                    }
                }
                rebuilt
            })
            .collect();
        if frame.is_folded() {
            frame.repeat_columns(whole, 0, frame.filter.width - 1);
            if let Some(data) = data {
                frame.repeat_columns(&mut data.majorising, 0, frame.filter.width - 1);
            }
        }
        rebuilt.iter().fold(Rebuilt::default(), |all, part| all.merge(part))
    }

    /// The rows of a filter without their padding.
    pub(super) fn rows<'a>(&'a self, frame: &Frame, k: usize) -> impl Iterator<Item = (usize, &'a [T])> + use<'a, T> {
        let (rows, width) = (self.filters.rows(k), self.filters.width);
        let padded = width.next_multiple_of(LANES);
        rows.chunks_exact(padded).take(frame.filter_rows()).map(move |row| &row[..width]).enumerate()
    }
}

/// Subtracts those rows of atoms that lie on a part of the canvas; what wraps around stays behind the last column.
struct Subtract<'a, T> {
    frame: &'a Frame,
    filters: &'a Filters<T>,
    atoms: &'a [Active<T>],
    /// Where the part starts on the canvas, modulo the largest number.
    start: usize,
    part: &'a mut [f64],
}

impl<T: Real> Kernel for Subtract<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let padded = self.filters.width.next_multiple_of(LANES);
        for atom in self.atoms.iter().filter(|atom| atom.value != T::zero()) {
            let (change, column) = (-atom.value.f64(), atom.column as usize);
            let starts = self.frame.starts(atom.line as usize);
            for (start, taps) in starts.iter().zip(self.filters.rows(atom.filter as usize).chunks_exact(padded)) {
                let at = (*start as usize + column).wrapping_sub(self.start);
                if at >= self.part.len() || at + padded > self.part.len() {
                    continue;
                }
                let columns = self.part[at..][..padded].as_chunks_mut::<LANES>().0;
                for (columns, taps) in columns.iter_mut().zip(taps.as_chunks::<LANES>().0) {
                    // By value: the compiler then keeps them in vectors.
                    let (mut sums, taps) = (*columns, taps.map(|tap| tap.f64()));
                    for i in 0..LANES {
                        sums[i] = change.fused::<FMA>(taps[i], sums[i]);
                    }
                    *columns = sums;
                }
            }
        }
    }
}

/// A part of [`DataWeights`], from which pieces are cut.
struct Weighing<'a, T> {
    loss: Loss,
    smoothing: f64,
    given: &'a [T],
    majorising: &'a mut [T],
}

impl<'a, T> Weighing<'a, T> {
    /// Cuts off the next numbers of the canvas.
    fn cut(&mut self, len: usize) -> Weighing<'a, T> {
        let (given, rest) = self.given.split_at(len);
        self.given = rest;
        let (majorising, rest) = std::mem::take(&mut self.majorising).split_at_mut(len);
        self.majorising = rest;
        Weighing { loss: self.loss, smoothing: self.smoothing, given, majorising }
    }
}

/// Brings a row of x - D z, or the part of one that is at `at` on the canvas, into the canvas's form; returns the columns that count.
fn fold_row(frame: &Frame, at: usize, is_sample: bool, exact: &mut [f64]) -> Range<usize> {
    let (width, again) = (frame.sample.width, frame.filter.width - 1);
    if frame.boundary == Boundary::Circular && !frame.is_folded() {
        for j in 0..again {
            exact[j] += exact[width + j];
        }
        exact.copy_within(..again, width);
    }
    let counted = match frame.boundary {
        Boundary::Circular => 0..width,
        Boundary::Zero => 0..frame.code[2] + again,
        Boundary::Free if is_sample => again..again + width,
        Boundary::Free => 0..0,
    };
    let local = |column: usize| column.saturating_sub(at % frame.stride).min(exact.len());
    let counted = local(counted.start)..local(counted.end);
    if frame.boundary == Boundary::Free {
        exact[..counted.start].fill(0.0);
        exact[counted.end..].fill(0.0);
    }
    frame.hide(at, exact);
    counted
}

/// One row of the residual, or a part of it from column `first` on; `source` is the sample's row that lies there.
struct Row<'a, T> {
    frame: &'a Frame,
    source: Option<&'a [T]>,
    first: usize,
    exact: &'a [f64],
    counted: Range<usize>,
    is_own: bool,
}

impl<T: Real> Row<'_, T> {
    fn value(&self, column: usize) -> f64 {
        let at = (self.first + column).wrapping_sub(self.frame.first_column());
        self.source.and_then(|row| row.get(at)).map_or(0.0, |x| x.f64())
    }

    /// Rounds the row, times a field where there is one, and adds it to the terms.
    fn finish(self, out: &mut [T], field: Option<&[T]>, rebuilt: &mut Rebuilt) {
        let exact = self.exact;
        out.iter_mut().zip(exact).for_each(|(o, e)| *o = T::of(*e));
        if let Some(field) = field {
            out.iter_mut().zip(field).for_each(|(o, s)| *o *= *s);
        }
        if !self.is_own {
            // Others count its values; correlations see them all the same.
            return rebuilt.size.add(out);
        }
        let mut terms = rebuilt.terms;
        let before = terms.t_t;
        for column in self.counted.clone() {
            let x = self.value(column);
            terms.add(x, x - exact[column], exact[column], out[column].f64());
        }
        rebuilt.terms = terms;
        let Size { peak, energy } = rebuilt.size;
        rebuilt.size = Size { peak: terms.peak.max(peak), energy: energy + terms.t_t - before };
    }

    /// The same with weights and outliers.
    fn finish_weighted(self, out: &mut [T], weighing: Weighing<'_, T>, rebuilt: &mut Rebuilt) {
        let Weighing { loss, smoothing: h, given, majorising } = weighing;
        let most = match loss {
            Loss::L2 => f64::INFINITY,
            Loss::Huber(delta) => delta,
            Loss::L1 => 1.0,
        };
        for column in 0..out.len() {
            let (w, r) = (given[column].f64(), self.exact[column]);
            (out[column], majorising[column]) = (T::zero(), T::zero());
            if w == 0.0 {
                continue;
            }
            let (a, rest) = (w / h, r.clamp(-h * most, h * most));
            let outlier = r - rest;
            let mut q = T::of(a * rest);
            while q.f64().abs() > w * most {
                // Rounded away from zero, beyond what an outlier's atom allows.
                q = T::of(q.f64() * (1.0 - T::EPSILON));
            }
            out[column] = q;
            majorising[column] = if outlier == 0.0 { T::of(a) } else { T::of(a * h * most / r.abs()) };
            if !self.counted.contains(&column) {
                continue;
            }
            let (x, root) = (self.value(column), a.sqrt());
            rebuilt.terms.add(root * x, root * (x - rest), root * rest, q.f64() / root);
            rebuilt.size.peak = rebuilt.size.peak.max(q.f64().abs());
            rebuilt.size.energy += q.f64() * q.f64();
            if outlier != 0.0 {
                rebuilt.outlier_cost += w * most * outlier.abs();
                rebuilt.outlier_mass += root * outlier.abs();
                rebuilt.outliers += 1;
            }
            if loss == Loss::L1 {
                rebuilt.smoothed += w * (rest.abs() - 0.5 * rest * rest / h);
            }
        }
    }
}
