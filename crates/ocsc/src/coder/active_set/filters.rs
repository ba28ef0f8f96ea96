//! The dictionary, laid out for the two loops: padded rows for descent, packed pairs for correlation.

use super::frame::{GROUP, LANES};
use crate::{Dictionary, Real};

/// Filters are correlated this many at a time; more leave no registers for wide stretches of positions.
pub(super) const PAIR: usize = 2;

/// Bytes.
const CACHE_LINE: usize = 64;

/// The filters, with rows in the canvas's order (depth, height, channel).
pub(super) struct Filters<T> {
    pub(super) n_filters: usize,
    pub(super) width: usize,
    /// Rows padded with zeros to whole blocks, and these to whole groups, (K, rows, padded width).
    rows: Vec<T>,
    per_filter: usize,
    /// Where the first filter starts in `rows`, so that no row crosses a cache line.
    first: usize,
    /// Pairs of filters tap by tap, (K/2, rows, width, 2); an odd last filter is paired with zeros.
    packed: Vec<T>,
    per_pair: usize,
    /// ||d_k||^2.
    pub(super) energy: Vec<f64>,
}

impl<T: Real> Filters<T> {
    /// The filters of a dictionary of any scalar.
    pub(super) fn new<S: Real>(dictionary: &Dictionary<S>) -> Self {
        let shape = dictionary.shape();
        let (n_filters, width) = (dictionary.n_filters(), shape.width);
        let (n_rows, padded) = (shape.len() / width, width.next_multiple_of(LANES));
        let per_filter = (n_rows * padded).next_multiple_of(GROUP * LANES);
        let mut rows = vec![T::zero(); n_filters * per_filter + LANES];
        let first = rows.as_ptr().align_offset(CACHE_LINE).min(LANES);
        let mut packed = vec![T::zero(); n_filters.div_ceil(PAIR) * n_rows * width * PAIR];
        let mut energy = vec![0.0; n_filters];
        for k in 0..n_filters {
            for (from, taps) in dictionary.filter(k).chunks_exact(width).enumerate() {
                // from counts (channel, depth, height), row counts (depth, height, channel)
                let planes = shape.depth * shape.height;
                let row = from % planes * shape.channels + from / planes;
                for (j, tap) in taps.iter().enumerate() {
                    let tap = tap.f64();
                    rows[first + k * per_filter + row * padded + j] = T::of(tap);
                    packed[((k / PAIR * n_rows + row) * width + j) * PAIR + k % PAIR] = T::of(tap);
                    energy[k] += tap.powi(2);
                }
            }
        }
        Filters { n_filters, width, rows, per_filter, first, packed, per_pair: n_rows * width * PAIR, energy }
    }

    /// Filter k, (rows, padded width), filled up to whole groups of blocks.
    #[inline(always)]
    pub(super) fn rows(&self, k: usize) -> &[T] {
        &self.rows[self.first + k * self.per_filter..][..self.per_filter]
    }

    /// The blocks of all filters, and how many each has.
    #[inline(always)]
    pub(super) fn blocks(&self) -> (&[[T; LANES]], usize) {
        (self.rows[self.first..].as_chunks::<LANES>().0, self.per_filter / LANES)
    }

    /// The number of pairs.
    #[inline(always)]
    pub(super) fn n_pairs(&self) -> usize {
        self.n_filters.div_ceil(PAIR)
    }

    /// A pair, (rows, width, 2).
    #[inline(always)]
    pub(super) fn pair(&self, pair: usize) -> &[T] {
        &self.packed[pair * self.per_pair..][..self.per_pair]
    }
}
