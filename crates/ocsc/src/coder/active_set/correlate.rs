//! The full correlation: every filter at every position, a line at a time, reduced on the spot to the two strongest filters
//! of each position, so that the K P numbers are never held.

use super::field::{Field, Pull, Ridge, of_filter, take_off};
use super::filters::{Filters, PAIR};
use super::frame::{Frame, LANES};
use crate::Real;
use crate::simd::{Kernel, dispatch};
use std::ops::Range;

/// Positions per vector, and the most vectors per stretch: with [`PAIR`] filters they fill the registers.
const VECTOR: usize = 8;
const STRETCH: usize = 7;
/// Columns of a line that all filters pass over before the next ones.
const BLOCK: usize = 512;

/// The strongest filters at each position of a line, padded to whole vectors.
pub(super) struct Line<T> {
    /// max_k |c_k| / weight_k, and the k of the maximum, as a number of the same width so that it stays in the same vector.
    pub(super) first: Ranked<T>,
    /// The same among all other filters.
    pub(super) second: Ranked<T>,
    /// Where each row of a filter on this line starts on the canvas.
    rows: Vec<usize>,
}

/// A filter at each position, and its strength.
pub(super) struct Ranked<T> {
    pub(super) strength: Vec<T>,
    pub(super) filter: Vec<T>,
}

impl<T: Real> Line<T> {
    pub(super) fn new(frame: &Frame) -> Self {
        let padded = frame.positions[2].next_multiple_of(LANES);
        let ranked = || Ranked { strength: vec![T::zero(); padded], filter: vec![T::zero(); padded] };
        Line { first: ranked(), second: ranked(), rows: vec![0; frame.filter_rows()] }
    }

    /// Positions, padded to whole vectors.
    pub(super) fn len(&self) -> usize {
        self.first.strength.len()
    }

    /// Goes to a line, where no filter has been seen yet. Strengths up to `floor` are not told apart.
    pub(super) fn begin(&mut self, frame: &Frame, line: usize, floor: T) {
        self.rows.iter_mut().zip(frame.starts(line)).for_each(|(row, start)| *row = *start as usize);
        self.first.strength.fill(floor);
        self.second.strength.fill(floor);
    }

    /// Takes note of filter k's strengths at N positions.
    #[inline(always)]
    pub(super) fn rank<const N: usize>(&mut self, x: usize, k: T, strengths: [T; N]) {
        let Line { first, second, .. } = self;
        let (Some(s1), Some(k1)) = (chunk::<T, N>(&mut first.strength, x), chunk::<T, N>(&mut first.filter, x)) else {
            return;
        };
        let (Some(s2), Some(k2)) = (chunk::<T, N>(&mut second.strength, x), chunk::<T, N>(&mut second.filter, x))
        else {
            return;
        };
        // Loops of one selection each, which become one instruction per vector.
        let (a, ka, b, kb) = (*s1, *k1, *s2, *k2);
        let mut any = false;
        for i in 0..N {
            any |= strengths[i] > b[i];
        }
        if !any {
            return;
        }
        let (mut loser, mut loser_k) = (strengths, [k; N]);
        for i in 0..N {
            s1[i] = if strengths[i] > a[i] { strengths[i] } else { a[i] };
        }
        for i in 0..N {
            k1[i] = if strengths[i] > a[i] { k } else { ka[i] };
        }
        // The loser of the contest for the first place competes for the second.
        for i in 0..N {
            loser[i] = if strengths[i] > a[i] { a[i] } else { strengths[i] };
        }
        for i in 0..N {
            loser_k[i] = if strengths[i] > a[i] { ka[i] } else { k };
        }
        for i in 0..N {
            s2[i] = if loser[i] > b[i] { loser[i] } else { b[i] };
        }
        for i in 0..N {
            k2[i] = if loser[i] > b[i] { loser_k[i] } else { kb[i] };
        }
    }

    /// Correlates the canvas with all filters on one line. Strengths up to `floor` are not told apart.
    pub(super) fn correlate(&mut self, frame: &Frame, with: &With<'_, T>, canvas: &[T], floor: T, line: usize) {
        self.begin(frame, line, floor);
        let pulls = with.pulls(line);
        if with.field.is_some() || !pulls.is_empty() {
            dispatch(Correlate::<_, true> { with, pulls, canvas, number: line, line: self });
        } else {
            dispatch(Correlate::<_, false> { with, pulls, canvas, number: line, line: self });
        }
    }
}

/// What a residual is correlated with, and what its correlations are measured by.
#[derive(Clone, Copy)]
pub(super) struct With<'a, T> {
    pub(super) filters: &'a Filters<T>,
    /// 1 / weight_k for whole pairs; 0 for the zeros that an odd last filter is paired with.
    pub(super) inverse_weights: &'a [T],
    /// Weights of single coefficients, by which those of the filters are multiplied.
    pub(super) field: Option<&'a Field<T>>,
    /// What is taken off the correlations.
    pub(super) ridge: Option<&'a Ridge>,
    /// Whether only positive correlations count.
    pub(super) signed: bool,
}

impl<'a, T> With<'a, T> {
    /// What is taken off the correlations of a line.
    fn pulls(&self, line: usize) -> &'a [Pull] {
        self.ridge.map_or(&[], |ridge| ridge.line(line))
    }
}

/// One line; OWN where coefficients have weights or squares of their own. A kernel of its own for them keeps the sums of the other one
/// in registers.
struct Correlate<'a, T, const OWN: bool> {
    with: &'a With<'a, T>,
    pulls: &'a [Pull],
    canvas: &'a [T],
    number: usize,
    line: &'a mut Line<T>,
}

impl<T: Real, const OWN: bool> Kernel for Correlate<'_, T, OWN> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(mut self) {
        let vectors = self.line.len() / VECTOR;
        let stretches = vectors.div_ceil(STRETCH);
        let filters = self.with.filters;
        for (block, pair) in blocks(stretches, STRETCH * VECTOR, filters.n_pairs()) {
            let taps = filters.pair(pair);
            for stretch in block {
                let (done, end) = (vectors * stretch / stretches, vectors * (stretch + 1) / stretches);
                match end - done {
                    1 => self.stretch::<1, FMA>(pair, taps, done * VECTOR),
                    2 => self.stretch::<2, FMA>(pair, taps, done * VECTOR),
                    3 => self.stretch::<3, FMA>(pair, taps, done * VECTOR),
                    4 => self.stretch::<4, FMA>(pair, taps, done * VECTOR),
                    5 => self.stretch::<5, FMA>(pair, taps, done * VECTOR),
                    6 => self.stretch::<6, FMA>(pair, taps, done * VECTOR),
                    _ => self.stretch::<STRETCH, FMA>(pair, taps, done * VECTOR),
                }
            }
        }
    }
}

impl<T: Real, const OWN: bool> Correlate<'_, T, OWN> {
    /// V vectors of positions from column x on, for one pair of filters.
    #[inline(always)]
    fn stretch<const V: usize, const FMA: bool>(&mut self, pair: usize, taps: &[T], x: usize) {
        let mut products = [[[T::zero(); VECTOR]; V]; PAIR];
        self.products::<V, FMA>(taps, x, &mut products);
        let weights = &self.with.inverse_weights[pair * PAIR..][..PAIR];
        for f in 0..PAIR {
            let (weight, k) = (weights[f], T::of((pair * PAIR + f) as f64));
            if OWN {
                self.weigh(pair * PAIR + f, weight, x, &mut products[f]);
            }
            let scale = if OWN { T::one() } else { weight };
            for (v, products) in products[f].iter().enumerate() {
                let mut strengths = [T::zero(); VECTOR];
                for i in 0..VECTOR {
                    let c = products[i] * scale;
                    strengths[i] = if self.with.signed { c } else { c.abs() };
                }
                self.line.rank(x + v * VECTOR, k, strengths);
            }
        }
    }

    /// Correlations of filter k in units of the weights.
    #[inline(always)]
    fn weigh(&self, k: usize, weight: T, x: usize, products: &mut [[T; VECTOR]]) {
        let products = products.as_flattened_mut();
        products.iter_mut().for_each(|c| *c *= weight);
        if let Some(field) = self.with.field.filter(|_| k < self.with.filters.n_filters) {
            products.iter_mut().zip(field.inverse(k, self.number, x)).for_each(|(c, inverse)| *c *= *inverse);
        }
        take_off(of_filter(self.pulls, k), x, products);
    }

    /// The correlations. The sums are copied out once at the end: they stay in registers only if nobody else sees them.
    #[inline(always)]
    fn products<const V: usize, const FMA: bool>(&self, taps: &[T], x: usize, out: &mut [[[T; VECTOR]; V]; PAIR]) {
        let mut sums = [[[T::zero(); VECTOR]; V]; PAIR];
        let width = self.with.filters.width;
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

/// Pairs each block of stretches of a line, about [`BLOCK`] columns, with all groups of filters: what is read and ranked of a block stays in
/// the cache while the filters pass over it.
#[inline(always)]
pub(super) fn blocks(stretches: usize, columns: usize, groups: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let step = (BLOCK / columns).max(1);
    let block = move |first: usize| first..(first + step).min(stretches);
    (0..stretches).step_by(step).flat_map(move |first| (0..groups).map(move |group| (block(first), group)))
}

/// A vector of an array, to be written.
#[inline(always)]
fn chunk<T, const N: usize>(values: &mut [T], at: usize) -> Option<&mut [T; N]> {
    values[at..].first_chunk_mut::<N>()
}
