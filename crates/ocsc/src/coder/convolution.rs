//! D and D^T on dense maps, in the spatial or the frequency domain, for the first-order coders.
//!
//! D^T r is K correlations of an image: one inverse transform each, or M products per pixel. D z is a sum over the non-zeros of z,
//! M products each; in the frequency domain it is computed by K forward transforms when that is less.
//!
//! Filters are handled in groups whose sums are added in order, whatever the number of threads.

use super::dual::Exact;
use crate::convolve::{Canvas, Taps};
use crate::fourier::{Fourier, Scratch, conjugate_product};
use crate::simd::{Kernel, dispatch};
use crate::{Dictionary, Real, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Filters are handled in this many groups.
const GROUPS: usize = 16;
/// D z is computed from its non-zeros while non-zeros times filter taps is below this many times K P; see `Admm`.
const SPARSE_LIMIT: usize = 25;
/// This many neighbouring correlations are computed at once.
const LANES: usize = 32;

/// Says where convolutions are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Space {
    /// Pixel by pixel.
    Spatial,
    /// By Fourier transforms.
    Frequency,
}

/// A dictionary as an operator on samples of one shape.
pub(super) struct Convolution<T: Real> {
    pub(super) shape: Shape,
    space: Space,
    dictionary: Dictionary<T>,
    fourier: Fourier<T>,
    /// Spectra of the padded filters, (K, C, n_freqs).
    d_f: Vec<Complex<T>>,
    taps: Taps<T>,
    /// An upper bound on the largest eigenvalue of D^T D.
    pub(super) lipschitz: f64,
    /// Spectra of an image, (C, n_freqs).
    r_f: Vec<Complex<T>>,
    /// An image continued around its border, (C, depth + d-1, height + h-1, padded width).
    wrapped: Wrapped<T>,
    groups: Vec<Group<T>>,
}

/// What one group of filters works with.
struct Group<T: Real> {
    scratch: Scratch<T>,
    q: Vec<T>,
    q_f: Vec<Complex<T>>,
    support: Vec<u32>,
    canvas: Canvas<T>,
    sum_f: Vec<Complex<T>>,
    sums: CorrelationSums,
}

/// CorrelationSums over coefficients that a caller collects, and max |q|.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CorrelationSums {
    pub(super) sums: [f64; 4],
    pub(super) correlation: f64,
}

impl<T: Real> Convolution<T> {
    pub(super) fn new(dictionary: &Dictionary<T>, shape: Shape, space: Space) -> Self {
        let fourier = Fourier::new(shape.spatial());
        let (k, freqs, pixels) = (dictionary.n_filters(), fourier.n_freqs(), fourier.n_pixels());
        let zero = Complex::new(T::zero(), T::zero());
        let group = || Group {
            scratch: fourier.scratch(),
            q: vec![T::zero(); pixels],
            q_f: vec![zero; freqs],
            support: Vec::with_capacity(pixels),
            canvas: Canvas::new(shape, dictionary.shape()),
            sum_f: vec![zero; shape.channels * freqs],
            sums: CorrelationSums::default(),
        };
        let groups = (0..k.div_ceil(k.div_ceil(GROUPS))).map(|_| group()).collect();
        let mut new = Convolution {
            shape,
            space,
            dictionary: dictionary.clone(),
            d_f: vec![zero; k * shape.channels * freqs],
            taps: Taps::new(dictionary),
            lipschitz: 0.0,
            r_f: vec![zero; shape.channels * freqs],
            wrapped: Wrapped::new(shape, dictionary.shape()),
            groups,
            fourier,
        };
        new.set_dictionary(dictionary);
        new
    }

    /// Adopts a dictionary of the planned number and shape of filters.
    pub(super) fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        let freqs = self.fourier.n_freqs();
        let mut scratch: Vec<_> = (0..self.groups.len()).map(|_| self.fourier.scratch()).collect();
        self.fourier.forward_many(dictionary.data(), dictionary.shape().spatial(), &mut self.d_f, &mut scratch);
        // The trace of D D^H at a frequency: for one channel its only eigenvalue.
        let mut trace = vec![0.0; freqs];
        for d in self.d_f.chunks_exact(freqs) {
            trace.iter_mut().zip(d).for_each(|(t, d)| *t += d.norm_sqr().f64());
        }
        // Rounding must not make steps too long.
        self.lipschitz = trace.iter().fold(f64::MIN_POSITIVE, |m, t| m.max(*t)) * (1.0 + 1e-5);
        self.taps = Taps::new(dictionary);
        self.dictionary = dictionary.clone();
    }

    /// Calls `f(k, D_k^T r, block k, sums)` for every filter, where `blocks` has as many numbers for each; the sums of all.
    pub(super) fn correlate(
        &mut self,
        r: &[T],
        blocks: &mut [T],
        f: impl Fn(usize, &[T], &mut [T], &mut [f64; 4]) + Sync,
    ) -> CorrelationSums {
        let groups = self.correlate_by(r, blocks, |k, q, block, sums| {
            let top = q.iter().fold(T::zero(), |m, q| m.at_least(q.abs())).f64();
            // A number that overflowed certifies nothing.
            let finite = q.iter().all(|q| q.is_finite());
            sums.correlation = sums.correlation.max(if finite { top } else { f64::INFINITY });
            f(k, q, block, &mut sums.sums);
        });
        groups.into_iter().fold(CorrelationSums::default(), |a, group| CorrelationSums {
            sums: std::array::from_fn(|i| a.sums[i] + group.sums[i]),
            correlation: a.correlation.max(group.correlation),
        })
    }

    /// Calls `f(k, D_k^T r, block k, sums)` for every filter; the sums of each group of filters.
    fn correlate_by(
        &mut self,
        r: &[T],
        blocks: &mut [T],
        f: impl Fn(usize, &[T], &mut [T], &mut CorrelationSums) + Sync,
    ) -> Vec<CorrelationSums> {
        let k = self.dictionary.n_filters();
        let (per_group, block, spectra) = (k.div_ceil(self.groups.len()), blocks.len() / k, self.r_f.len());
        let (space, fourier, taps, corner) = (self.space, &self.fourier, &self.dictionary, self.dictionary.shape());
        match space {
            Space::Spatial => self.wrapped.set(r),
            Space::Frequency => {
                let scratch = &mut self.groups[0].scratch;
                let images = r.chunks_exact(fourier.n_pixels()).zip(self.r_f.chunks_exact_mut(fourier.n_freqs()));
                images.for_each(|(r, r_f)| fourier.forward(r, r_f, scratch));
            }
        }
        let (r_f, wrapped) = (&self.r_f, &self.wrapped);
        let work = blocks.par_chunks_mut(per_group * block).zip(self.d_f.par_chunks(per_group * spectra));
        self.groups.par_iter_mut().zip(work).enumerate().for_each(|(i, (group, (blocks, d_f)))| {
            group.sums = CorrelationSums::default();
            for (j, (block, d)) in blocks.chunks_exact_mut(block).zip(d_f.chunks_exact(spectra)).enumerate() {
                let k = i * per_group + j;
                match space {
                    Space::Spatial => dispatch(Correlate { wrapped, filter: taps.filter(k), corner, q: &mut group.q }),
                    Space::Frequency => {
                        conjugate_product(&mut group.q_f, d, r_f);
                        fourier.inverse(&mut group.q_f, &mut group.q, &mut group.scratch);
                    }
                }
                f(k, &group.q, block, &mut group.sums);
            }
        });
        self.groups.iter().map(|group| group.sums).collect()
    }

    /// image <- D z, where z_k is the first map of block k.
    pub(super) fn synthesise(&mut self, blocks: &[T], image: &mut [T]) {
        let (k, pixels) = (self.dictionary.n_filters(), self.fourier.n_pixels());
        let (per_group, block, spectra) = (k.div_ceil(self.groups.len()), blocks.len() / k, self.r_f.len());
        let nonzeros = |z: &[T]| z[..pixels].iter().filter(|z| **z != T::zero()).count();
        let total: usize = blocks.par_chunks(block).map(nonzeros).sum();
        let limit = SPARSE_LIMIT.saturating_mul(k * pixels);
        let sparse = self.space == Space::Spatial || total.saturating_mul(self.dictionary.shape().len()) <= limit;
        let (fourier, taps) = (&self.fourier, &self.taps);
        let work = blocks.par_chunks(per_group * block).zip(self.d_f.par_chunks(per_group * spectra));
        self.groups.par_iter_mut().zip(work).enumerate().for_each(|(i, (group, (blocks, d_f)))| {
            group.canvas.clear();
            group.sum_f.fill(Complex::new(T::zero(), T::zero()));
            for (j, (z, d)) in blocks.chunks_exact(block).zip(d_f.chunks_exact(spectra)).enumerate() {
                let z = &z[..pixels];
                if sparse {
                    group.support.clear();
                    group.support.extend((0..pixels as u32).filter(|p| z[*p as usize] != T::zero()));
                    group.canvas.add(taps, i * per_group + j, &group.support, |p| z[p]);
                } else {
                    fourier.forward(z, &mut group.q_f, &mut group.scratch);
                    for (sum, d) in group.sum_f.chunks_exact_mut(group.q_f.len()).zip(d.chunks_exact(group.q_f.len())) {
                        sum.iter_mut().zip(&group.q_f).zip(d).for_each(|((sum, q), d)| *sum += d * q);
                    }
                }
            }
        });
        if sparse {
            image.fill(T::zero());
            self.groups.iter().for_each(|group| group.canvas.fold_into(image));
        } else {
            self.r_f.fill(Complex::new(T::zero(), T::zero()));
            for group in &self.groups {
                self.r_f.iter_mut().zip(&group.sum_f).for_each(|(t, s)| *t += s);
            }
            let images = image.chunks_exact_mut(pixels).zip(self.r_f.chunks_exact_mut(fourier.n_freqs()));
            images.for_each(|(image, r_f)| fourier.inverse(r_f, image, &mut self.groups[0].scratch));
        }
    }

    /// max |D^T r| of an image, as far as T can tell.
    pub(super) fn max_correlation(&mut self, r: &[T]) -> f64 {
        let mut blocks = vec![T::zero(); self.dictionary.n_filters()];
        self.correlate(r, &mut blocks, |_, _, _, _| {}).correlation
    }

    /// An upper bound on max |D^T t| of an image, which no rounding falsifies, or `least` if that is larger.
    pub(super) fn bound(&mut self, t: &[f64], least: f64) -> f64 {
        let dictionary = self.dictionary.clone();
        let exact = Exact::new(&dictionary, self.shape, t);
        let error = match self.space {
            Space::Spatial => exact.spatial_error(),
            Space::Frequency => exact.transform_error(),
        };
        let rounded: Vec<T> = t.iter().map(|t| T::of(*t)).collect();
        let mut blocks = vec![T::zero(); dictionary.n_filters()];
        let tops = self.correlate_by(&rounded, &mut blocks, |k, q, _, sums| {
            sums.correlation = exact.strongest(k, q, error, sums.correlation.max(least));
        });
        tops.into_iter().fold(least, |top, sums| top.max(sums.correlation))
    }
}

/// An image with what a filter sees beyond its border.
pub(super) struct Wrapped<T> {
    shape: Shape,
    size: [usize; 3],
    data: Vec<T>,
}

impl<T: Real> Wrapped<T> {
    pub(super) fn new(shape: Shape, filter: Shape) -> Self {
        // Rows that blocks of correlations may be read from without looking at their end.
        let width = shape.width.next_multiple_of(LANES) + filter.width - 1;
        let size = [shape.depth + filter.depth - 1, shape.height + filter.height - 1, width];
        Wrapped { shape, size, data: vec![T::zero(); shape.channels * size.iter().product::<usize>()] }
    }

    /// The row (channel, depth, height), where depth and height may go beyond the border by a filter minus one.
    pub(super) fn row(&self, c: usize, z: usize, y: usize) -> &[T] {
        let [depth, height, width] = self.size;
        &self.data[((c * depth + z) * height + y) * width..][..width]
    }

    pub(super) fn set(&mut self, image: &[T]) {
        let [depth, height, width] = self.size;
        let shape = self.shape;
        for (line, row) in self.data.chunks_exact_mut(width).enumerate() {
            let (c, d, h) = (line / (depth * height), line / height % depth, line % height);
            let from = ((c * shape.depth + d % shape.depth) * shape.height + h % shape.height) * shape.width;
            let source = &image[from..][..shape.width];
            for (x, v) in row.iter_mut().enumerate() {
                *v = source[x % shape.width];
            }
        }
    }
}

/// q(p) <- sum over channels and taps s of d(s) r(p + s), for one filter.
pub(super) struct Correlate<'a, T> {
    pub(super) wrapped: &'a Wrapped<T>,
    pub(super) filter: &'a [T],
    pub(super) corner: Shape,
    pub(super) q: &'a mut [T],
}

impl<T: Real> Kernel for Correlate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let [depth, height, width] = self.wrapped.size;
        let (shape, corner) = (self.wrapped.shape, self.corner);
        for (line, out) in self.q.chunks_exact_mut(shape.width).enumerate() {
            let (d, h) = (line / shape.height, line % shape.height);
            for (block, out) in out.chunks_mut(LANES).enumerate() {
                let mut sums = [T::zero(); LANES];
                for (row, taps) in self.filter.chunks_exact(corner.width).enumerate() {
                    let (c, i, j) =
                        (row / (corner.depth * corner.height), row / corner.height % corner.depth, row % corner.height);
                    let start = ((c * depth + d + i) * height + h + j) * width + block * LANES;
                    let source = &self.wrapped.data[start..][..LANES + corner.width - 1];
                    for (x, tap) in taps.iter().enumerate() {
                        let values: &[T] = &source[x..][..LANES];
                        for l in 0..LANES {
                            sums[l] = tap.fused::<FMA>(values[l], sums[l]);
                        }
                    }
                }
                out.copy_from_slice(&sums[..out.len()]);
            }
        }
    }
}
