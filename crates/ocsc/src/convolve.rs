//! Convolution in the spatial domain, on the non-zeros only. Its Fourier twin is [`crate::Fourier`].
//!
//! D z = sum over the non-zeros (k, p, value) of value times filter k with its first corner at p, wrapping around.

use crate::simd::{Kernel, dispatch};
use crate::{Dictionary, Real, Shape};

/// Rows of filters are padded with zeros to whole blocks of this many numbers, so that they are added block by block.
const BLOCK: usize = 8;

/// The filters with their rows padded to whole blocks: (K, channel x depth x height, padded width).
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

    /// Filter k, (channel x depth x height, padded width).
    pub(crate) fn filter(&self, k: usize) -> &[T] {
        &self.data[k * self.per_filter..][..self.per_filter]
    }
}

/// An image with room for filters that stick out, (channel, depth + d-1, height + h-1, width + padded w), folded at the
/// end.
pub(crate) struct Canvas<T> {
    shape: [usize; 3],
    filter: [usize; 3],
    row: usize,
    per_channel: usize,
    data: Vec<T>,
}

impl<T: Real> Canvas<T> {
    pub(crate) fn new(shape: Shape, filter: Shape) -> Self {
        let row = shape.width + filter.width.next_multiple_of(BLOCK);
        let per_channel = (shape.depth + filter.depth - 1) * (shape.height + filter.height - 1) * row;
        let data = vec![T::zero(); shape.channels * per_channel];
        Canvas { shape: shape.spatial(), filter: filter.spatial(), row, per_channel, data }
    }

    pub(crate) fn clear(&mut self) {
        self.data.fill(T::zero());
    }

    /// Adds `value(p)` times the filter at every position p of `support`.
    pub(crate) fn add(&mut self, taps: &Taps<T>, k: usize, support: &[u32], value: impl Fn(usize) -> T) {
        dispatch(Add { canvas: self, taps: taps.filter(k), row: taps.row, support, value });
    }

    /// Adds the canvas to an image (channel, depth, height, width), wrapping around what sticks out.
    pub(crate) fn fold_into(&self, image: &mut [T]) {
        let pixels = self.shape.iter().product();
        for (image, canvas) in image.chunks_exact_mut(pixels).zip(self.data.chunks_exact(self.per_channel)) {
            self.fold_channel(canvas, image);
        }
    }

    fn fold_channel(&self, canvas: &[T], image: &mut [T]) {
        let [d, h, w] = self.shape;
        let height = h + self.filter[1] - 1;
        for (line, values) in canvas.chunks_exact(self.row).enumerate() {
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
        let [fd, fh, _] = self.canvas.filter;
        let (row, plane) = (self.canvas.row, (h + fh - 1) * self.canvas.row);
        let channels = self.canvas.data.chunks_exact_mut(self.canvas.per_channel);
        for (canvas, taps) in channels.zip(self.taps.chunks_exact(fd * fh * self.row)) {
            for &p in self.support {
                let p = p as usize;
                let value = (self.value)(p);
                let corner = (p / (h * w)) * plane + (p / w % h) * row + p % w;
                for (i, taps) in taps.chunks_exact(self.row).enumerate() {
                    let line = &mut canvas[corner + (i / fh) * plane + (i % fh) * row..][..self.row];
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The canvas, folded, against modular indices, for filters up to the image's size and widths around whole blocks.
    #[test]
    fn canvas_is_the_plain_sum() {
        for (channels, axes, corner) in [
            (1, [1, 1, 20], [1, 1, 9]),
            (2, [1, 1, 8], [1, 1, 8]),
            (1, [1, 7, 6], [1, 3, 5]),
            (3, [1, 5, 17], [1, 5, 17]),
            (2, [3, 4, 9], [2, 4, 3]),
            (1, [2, 1, 1], [2, 1, 1]),
        ] {
            let shape = |[depth, height, width]: [usize; 3]| Shape { channels, depth, height, width };
            let dictionary = Dictionary::<f64>::random(3, shape(corner), 3, 1).unwrap();
            let [d, h, w] = axes;
            let support: Vec<u32> = (0..(d * h * w) as u32).filter(|p| p % 3 != 1).collect();
            let value = |p: usize| (1.3 * (p + 1) as f64).sin();
            let mut expected = vec![0.0; channels * d * h * w];
            for k in 0..3 {
                for &p in &support {
                    let p = p as usize;
                    for (t, tap) in dictionary.filter(k).iter().enumerate() {
                        let (i, j, l) = (t / (corner[1] * corner[2]), t / corner[2] % corner[1], t % corner[2]);
                        let (c, i) = (i / corner[0], i % corner[0]);
                        let (i, j, l) = ((p / (h * w) + i) % d, (p / w % h + j) % h, (p % w + l) % w);
                        expected[((c * d + i) * h + j) * w + l] += value(p) * tap;
                    }
                }
            }
            let taps = Taps::new(&dictionary);
            for fused in [true, false] {
                let mut canvas = Canvas::new(shape(axes), shape(corner));
                canvas.data.fill(9.0);
                canvas.clear();
                for k in 0..3 {
                    if fused {
                        canvas.add(&taps, k, &support, value);
                    } else {
                        let (row, taps) = (taps.row, taps.filter(k));
                        Add { canvas: &mut canvas, taps, row, support: &support, value }.run::<false>();
                    }
                }
                let mut image = vec![0.0; channels * d * h * w];
                canvas.fold_into(&mut image);
                assert!(image.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{axes:?} {corner:?}");
            }
        }
    }
}
