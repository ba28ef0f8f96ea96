//! Convolution in the spatial domain, on the non-zeros only. Its Fourier twin is [`crate::Fourier`].
//!
//! D z = sum over the non-zeros (k, p, value) of value times filter k with its first corner at p, wrapping around.

use crate::simd::{Kernel, dispatch};
use crate::{Dictionary, Real, Shape};

/// Rows of filters are padded with zeros to whole blocks of this many numbers, so that they are added block by block.
const BLOCK: usize = 8;

/// The filters with their rows padded to whole blocks: (K, depth x height, padded width).
pub(crate) struct Taps<T> {
    data: Vec<T>,
    per_filter: usize,
    row: usize,
}

impl<T: Real> Taps<T> {
    pub(crate) fn new(dictionary: &Dictionary<T>) -> Self {
        let shape = dictionary.shape();
        let row = shape.width.next_multiple_of(BLOCK);
        let mut data = Vec::with_capacity(dictionary.n_filters() * shape.len() / shape.width * row);
        for taps in dictionary.data().chunks_exact(shape.width) {
            data.extend_from_slice(taps);
            data.resize(data.len() + row - shape.width, T::zero());
        }
        Taps { per_filter: shape.len() / shape.width * row, row, data }
    }

    /// Filter k, (depth x height, padded width).
    pub(crate) fn filter(&self, k: usize) -> &[T] {
        &self.data[k * self.per_filter..][..self.per_filter]
    }
}

/// An image with room for filters that stick out, (depth + d-1, height + h-1, width + padded w), folded at the end.
pub(crate) struct Canvas<T> {
    shape: [usize; 3],
    filter: [usize; 3],
    row: usize,
    data: Vec<T>,
}

impl<T: Real> Canvas<T> {
    pub(crate) fn new(shape: Shape, filter: Shape) -> Self {
        let row = shape.width + filter.width.next_multiple_of(BLOCK);
        let len = (shape.depth + filter.depth - 1) * (shape.height + filter.height - 1) * row;
        Canvas { shape: shape.spatial(), filter: filter.spatial(), row, data: vec![T::zero(); len] }
    }

    pub(crate) fn clear(&mut self) {
        self.data.fill(T::zero());
    }

    /// Adds `value(p)` times the filter at every position p of `support`.
    pub(crate) fn add(&mut self, taps: &Taps<T>, k: usize, support: &[u32], value: impl Fn(usize) -> T) {
        dispatch(Add { canvas: self, taps: taps.filter(k), row: taps.row, support, value });
    }

    /// Adds the canvas to an image (depth, height, width), wrapping around what sticks out.
    pub(crate) fn fold_into(&self, image: &mut [T]) {
        let [d, h, w] = self.shape;
        let height = h + self.filter[1] - 1;
        for (line, values) in self.data.chunks_exact(self.row).enumerate() {
            let (i, j) = (line / height % d, line % height % h);
            let target = &mut image[(i * h + j) * w..][..w];
            for (t, v) in target.iter_mut().zip(&values[..w]) {
                *t += *v;
            }
            // A filter is no wider than the image, so it wraps at most once; its padding is zero.
            for (t, v) in target.iter_mut().zip(&values[w..w + self.filter[2] - 1]) {
                *t += *v;
            }
        }
    }
}

struct Add<'a, T, F> {
    canvas: &'a mut Canvas<T>,
    taps: &'a [T],
    row: usize,
    support: &'a [u32],
    value: F,
}

impl<T: Real, F: Fn(usize) -> T> Kernel for Add<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let [_, h, w] = self.canvas.shape;
        let [_, fh, _] = self.canvas.filter;
        let (row, plane) = (self.canvas.row, (h + fh - 1) * self.canvas.row);
        for &p in self.support {
            let p = p as usize;
            let value = (self.value)(p);
            let corner = (p / (h * w)) * plane + (p / w % h) * row + p % w;
            for (i, taps) in self.taps.chunks_exact(self.row).enumerate() {
                let line = &mut self.canvas.data[corner + (i / fh) * plane + (i % fh) * row..][..self.row];
                for (line, taps) in line.as_chunks_mut::<BLOCK>().0.iter_mut().zip(taps.as_chunks::<BLOCK>().0) {
                    // By value: the compiler cannot know that the two do not overlap.
                    let (taps, mut sums) = (*taps, *line);
                    for i in 0..BLOCK {
                        sums[i] = taps[i].fused::<FMA>(value, sums[i]);
                    }
                    *line = sums;
                }
            }
        }
    }
}
