//! The full correlation: every filter at every position, a line at a time, reduced on the spot to the strongest filter of
//! each position, so that the K P numbers are never held.

use super::filters::{Filters, PAIR};
use super::frame::Frame;
use crate::Real;
use crate::simd::{Kernel, dispatch};

/// Positions per vector, and the most vectors per stretch: with [`PAIR`] filters they fill the registers.
const VECTOR: usize = 8;
const STRETCH: usize = 7;

/// The strongest filter at each position of a line.
pub(super) struct Line<T> {
    /// max_k |c_k| / weight_k, padded to whole vectors.
    pub(super) strength: Vec<T>,
    /// The k of the maximum, as a number of the same width so that it stays in the same vector.
    pub(super) filter: Vec<T>,
    /// Where each row of a filter on this line starts on the canvas.
    rows: Vec<usize>,
}

impl<T: Real> Line<T> {
    pub(super) fn new(frame: &Frame) -> Self {
        let padded = frame.positions[2].next_multiple_of(VECTOR);
        Line { strength: vec![T::zero(); padded], filter: vec![T::zero(); padded], rows: vec![0; frame.filter_rows()] }
    }

    /// Correlates the canvas with all filters on one line; `inverse_weights` holds 1 / weight_k for whole
    /// pairs (0 for the zeros that an odd last filter is paired with), `signed` keeps positive
    /// correlations only.
    pub(super) fn correlate(
        &mut self,
        frame: &Frame,
        filters: &Filters<T>,
        inverse_weights: &[T],
        signed: bool,
        canvas: &[T],
        line: usize,
    ) {
        self.rows.iter_mut().zip(frame.starts(line)).for_each(|(row, start)| *row = *start as usize);
        self.strength.fill(T::zero());
        dispatch(Correlate { filters, inverse_weights, signed, canvas, line: self });
    }
}

struct Correlate<'a, T> {
    filters: &'a Filters<T>,
    inverse_weights: &'a [T],
    signed: bool,
    canvas: &'a [T],
    line: &'a mut Line<T>,
}

impl<T: Real> Kernel for Correlate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let vectors = self.line.strength.len() / VECTOR;
        let stretches = vectors.div_ceil(STRETCH);
        for (pair, taps) in self.filters.pairs().enumerate() {
            let mut done = 0;
            for stretch in 0..stretches {
                let end = vectors * (stretch + 1) / stretches;
                match end - done {
                    1 => self.stretch::<1, FMA>(pair, taps, done * VECTOR),
                    2 => self.stretch::<2, FMA>(pair, taps, done * VECTOR),
                    3 => self.stretch::<3, FMA>(pair, taps, done * VECTOR),
                    4 => self.stretch::<4, FMA>(pair, taps, done * VECTOR),
                    5 => self.stretch::<5, FMA>(pair, taps, done * VECTOR),
                    6 => self.stretch::<6, FMA>(pair, taps, done * VECTOR),
                    _ => self.stretch::<STRETCH, FMA>(pair, taps, done * VECTOR),
                }
                done = end;
            }
        }
    }
}

impl<T: Real> Correlate<'_, T> {
    /// V vectors of positions from column x on, for one pair of filters.
    #[inline(always)]
    fn stretch<const V: usize, const FMA: bool>(&mut self, pair: usize, taps: &[T], x: usize) {
        let mut products = [[[T::zero(); VECTOR]; V]; PAIR];
        self.products::<V, FMA>(taps, x, &mut products);
        let weights = &self.inverse_weights[pair * PAIR..][..PAIR];
        let strength = self.line.strength[x..][..V * VECTOR].as_chunks_mut::<VECTOR>().0;
        let filter = self.line.filter[x..][..V * VECTOR].as_chunks_mut::<VECTOR>().0;
        for v in 0..V {
            let (mut strongest, mut name) = (strength[v], filter[v]);
            for f in 0..PAIR {
                let (weight, k, products) = (weights[f], T::of((pair * PAIR + f) as f64), products[f][v]);
                for i in 0..VECTOR {
                    let c = products[i] * weight;
                    let c = if self.signed { c } else { c.abs() };
                    let stronger = c > strongest[i];
                    strongest[i] = if stronger { c } else { strongest[i] };
                    name[i] = if stronger { k } else { name[i] };
                }
            }
            (strength[v], filter[v]) = (strongest, name);
        }
    }

    /// The correlations. The sums are copied out once at the end: they stay in registers only if nobody else sees them.
    #[inline(always)]
    fn products<const V: usize, const FMA: bool>(&self, taps: &[T], x: usize, out: &mut [[[T; VECTOR]; V]; PAIR]) {
        let mut sums = [[[T::zero(); VECTOR]; V]; PAIR];
        let width = self.filters.width;
        for (start, taps) in self.line.rows.iter().zip(taps.chunks_exact(width * PAIR)) {
            let row = &self.canvas[start + x..][..V * VECTOR + width - 1];
            for (j, taps) in taps.as_chunks::<PAIR>().0.iter().enumerate() {
                let stretch = &row[j..][..V * VECTOR];
                for v in 0..V {
                    let mut columns = [T::zero(); VECTOR];
                    columns.copy_from_slice(&stretch[v * VECTOR..][..VECTOR]);
                    for f in 0..PAIR {
                        for i in 0..VECTOR {
                            sums[f][v][i] = taps[f].fused::<FMA>(columns[i], sums[f][v][i]);
                        }
                    }
                }
            }
        }
        *out = sums;
    }
}
