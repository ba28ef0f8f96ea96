//! Vectors over the filters, one per frequency: the order in which per-frequency systems are solved.
//!
//! Transforms leave spectra in map order, (map, frequency); systems want filter order, (frequency, filter). A vector in filter
//! order holds real parts, then imaginary parts, each padded with zeros to whole blocks.

use crate::simd::{Kernel, dispatch};
use crate::{Code, Error, Fourier, Real, Result, Sample, Scratch, Shape};
use num_complex::Complex;
use rayon::prelude::*;

/// Rows of triangles, and vectors over the filters, are padded with zeros to whole blocks of this many numbers.
pub(crate) const BLOCK: usize = 8;
/// Frequencies are gathered from map order to filter order this many at a time.
pub(crate) const TILE: usize = 16;

/// The spectra of one sample and its code at a time.
pub(crate) struct Spectra<T: Real> {
    n_filters: usize,
    shape: Shape,
    pub(crate) fourier: Fourier<T>,
    /// Of the K maps of the code, (K, n_freqs), and of the sample, (C, n_freqs).
    pub(crate) z_f: Vec<Complex<T>>,
    pub(crate) x_f: Vec<Complex<T>>,
    /// For transforms of maps, a part each.
    scratch: Vec<(Scratch<T>, Vec<T>)>,
}

impl<T: Real> Spectra<T> {
    pub(crate) fn new(n_filters: usize, shape: Shape) -> Self {
        let fourier = Fourier::new(shape.spatial());
        let (freqs, pixels, zero) = (fourier.n_freqs(), fourier.n_pixels(), Complex::new(T::zero(), T::zero()));
        let scratch = (0..n_filters.min(BLOCK)).map(|_| (fourier.scratch(), vec![T::zero(); pixels])).collect();
        let (z_f, x_f) = (vec![zero; n_filters * freqs], vec![zero; shape.channels * freqs]);
        Spectra { n_filters, shape, fourier, z_f, x_f, scratch }
    }

    /// The samples' shape.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Checks that a sample with its code can be transformed.
    pub(crate) fn check(&self, sample: &Sample<T>, code: &Code<T>) -> Result<()> {
        if sample.shape() == self.shape && code.shape() == self.shape.spatial() && code.n_filters() == self.n_filters {
            return Ok(());
        }
        let expected = format!("samples of {} with {} filters", self.shape, self.n_filters);
        let found = format!("{} with {} filters", sample.shape(), code.n_filters());
        Err(Error::invalid("spectral statistics", expected, found))
    }

    /// The spectra of the sample and of the code's maps.
    pub(crate) fn transform(&mut self, sample: &Sample<T>, code: &Code<T>) {
        let (fourier, freqs) = (&self.fourier, self.fourier.n_freqs());
        for (x, x_f) in sample.data().chunks_exact(fourier.n_pixels()).zip(self.x_f.chunks_exact_mut(freqs)) {
            fourier.forward(x, x_f, &mut self.scratch[0].0);
        }
        let per = self.n_filters.div_ceil(self.scratch.len());
        let parts = self.z_f.par_chunks_mut(per * freqs).zip(&mut self.scratch).enumerate();
        parts.for_each(|(part, (spectra, (scratch, map)))| {
            for (j, spectrum) in spectra.chunks_exact_mut(freqs).enumerate() {
                let filter = (part * per + j) as u32;
                let first = code.atoms().partition_point(|a| a.filter < filter);
                let atoms = code.atoms()[first..].iter().take_while(|a| a.filter == filter);
                map.fill(T::zero());
                atoms.for_each(|a| map[a.position as usize] = a.value);
                fourier.forward(map, spectrum, scratch);
            }
        });
    }
}

/// Entry `filter` of row `row` = (frequency, channel) of an array in filter order.
pub(crate) fn at<T: Real>(filter_order: &[T], n_filters: usize, row: usize, filter: usize) -> Complex<T> {
    let row = &filter_order[row * row_len(n_filters)..];
    Complex::new(row[filter], row[n_filters.next_multiple_of(BLOCK) + filter])
}

/// Fills every `pitch`-th vector of a tile in filter order, (2, padded K) each, from `entry(filter, i)`, i counting the
/// tile's frequencies.
pub(crate) fn gather<T: Real>(
    tile: &mut [T],
    pitch: usize,
    n_filters: usize,
    entry: impl Fn(usize, usize) -> Complex<T>,
) {
    let half = row_len(n_filters) / 2;
    for filter in 0..n_filters {
        for (i, vector) in tile.chunks_mut(pitch).enumerate() {
            let value = entry(filter, i);
            vector[filter] = value.re;
            vector[half + filter] = value.im;
        }
    }
}

/// Numbers in a half spectrum, without planning.
pub(crate) fn n_freqs(shape: Shape) -> usize {
    shape.depth.saturating_mul(shape.height).saturating_mul(shape.width / 2 + 1)
}

/// Numbers in a complex vector over the filters: real parts, then imaginary parts, each padded.
pub(crate) fn row_len(n_filters: usize) -> usize {
    n_filters.div_ceil(BLOCK).saturating_mul(2 * BLOCK)
}

/// b <- b + x y for vectors in filter order.
pub(crate) fn add_scaled<T: Real>(b: &mut [T], x: Complex<T>, y: &[T]) {
    dispatch(AddScaled { b, x, y });
}

struct AddScaled<'a, T> {
    b: &'a mut [T],
    x: Complex<T>,
    y: &'a [T],
}

impl<T: Real> Kernel for AddScaled<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        axpy::<T, FMA>(self.b, self.x, self.y);
    }
}

/// b <- b + x y, inside kernels.
#[inline(always)]
pub(crate) fn axpy<T: Real, const FMA: bool>(b: &mut [T], x: Complex<T>, y: &[T]) {
    let half = y.len() / 2;
    let ((y_re, y_im), (b_re, b_im)) = (y.split_at(half), b.split_at_mut(half));
    let y_blocks = y_re.as_chunks::<BLOCK>().0.iter().zip(y_im.as_chunks::<BLOCK>().0);
    let b_blocks = b_re.as_chunks_mut::<BLOCK>().0.iter_mut().zip(b_im.as_chunks_mut::<BLOCK>().0);
    for ((y_re, y_im), (b_re, b_im)) in y_blocks.zip(b_blocks) {
        for i in 0..BLOCK {
            b_re[i] = x.re.fused::<FMA>(y_re[i], (-x.im).fused::<FMA>(y_im[i], b_re[i]));
            b_im[i] = x.re.fused::<FMA>(y_im[i], x.im.fused::<FMA>(y_re[i], b_im[i]));
        }
    }
}

/// sum conj(a) b, inside kernels.
#[inline(always)]
pub(crate) fn inner<T: Real, const FMA: bool>(a: &[T], b: &[T]) -> Complex<T> {
    let half = a.len() / 2;
    let ((a_re, a_im), (b_re, b_im)) = (a.split_at(half), b.split_at(half));
    let (mut re, mut im) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
    let a_blocks = a_re.as_chunks::<BLOCK>().0.iter().zip(a_im.as_chunks::<BLOCK>().0);
    let b_blocks = b_re.as_chunks::<BLOCK>().0.iter().zip(b_im.as_chunks::<BLOCK>().0);
    for ((a_re, a_im), (b_re, b_im)) in a_blocks.zip(b_blocks) {
        for i in 0..BLOCK {
            re[i] = a_re[i].fused::<FMA>(b_re[i], a_im[i].fused::<FMA>(b_im[i], re[i]));
            im[i] = a_re[i].fused::<FMA>(b_im[i], (-a_im[i]).fused::<FMA>(b_re[i], im[i]));
        }
    }
    Complex::new(re.into_iter().sum(), im.into_iter().sum())
}
