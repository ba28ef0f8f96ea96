//! Where patches lie in an image, and how estimates of patches become an image again.

use super::signal::is_column;
use crate::{Error, Result, Shape};

/// An image (channel, 1, height, width) and the shape of the patches that are cut out of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) image: Shape,
    pub(super) patch: Shape,
}

impl Frame {
    /// Checks that a patch fits into the image.
    pub(super) fn new(image: Shape, patch: Shape) -> Result<Self> {
        if image.depth != 1 {
            return Err(Error::invalid("image", "a flat image", format!("{image}, which has a depth")));
        }
        if image.channels != patch.channels || patch.depth != 1 {
            return Err(Error::invalid("filters", format!("{} channels, as the image", image.channels), patch));
        }
        if is_column(image) && is_column(patch) && image.height < patch.height {
            let expected = format!("at least {} values, as the filters have", patch.height);
            return Err(Error::invalid("signal", expected, image.height));
        }
        if image.height < patch.height || image.width < patch.width {
            return Err(Error::invalid("image", format!("at least the filters' size {patch}"), image));
        }
        Ok(Frame { image, patch })
    }

    /// Returns the rows (of the image) at which a patch may begin.
    pub(super) fn n_rows(&self) -> usize {
        self.image.height - self.patch.height + 1
    }

    /// Returns the columns at which a patch may begin.
    pub(super) fn n_columns(&self) -> usize {
        self.image.width - self.patch.width + 1
    }

    /// Returns every `stride`-th of the first `n` places, and the last one, so that patches cover the image to its end.
    pub(super) fn lattice(n: usize, stride: usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..n).step_by(stride).collect();
        if places.last() != Some(&(n - 1)) {
            places.push(n - 1);
        }
        places
    }

    /// Returns how many values of a patch lie side by side in the image, and how many such lines a channel has: its rows, or all of it
    /// where it is as wide as the image, as in a signal, which is an image of one column.
    pub(super) fn lines(&self) -> [usize; 2] {
        match self.patch.width == self.image.width {
            true => [self.patch.pixels(), 1],
            false => [self.patch.width, self.patch.height],
        }
    }

    /// Copies the patch that begins at row `y` and column `x` to `patch`, (channel, height, width).
    pub(super) fn cut(&self, image: &[f32], [y, x]: [usize; 2], patch: &mut [f32]) {
        let ([w, h], pixels) = (self.lines(), self.image.pixels());
        for (i, row) in patch.chunks_exact_mut(w).enumerate() {
            row.copy_from_slice(&image[i / h * pixels + (y + i % h) * self.image.width + x..][..w]);
        }
    }

    /// Takes each channel's mean out of a patch, and writes the means to `means`.
    pub(super) fn level(&self, patch: &mut [f32], means: &mut [f32]) {
        let area = self.patch.pixels();
        for (channel, mean) in patch.chunks_exact_mut(area).zip(means) {
            *mean = channel.iter().sum::<f32>() / area as f32;
            channel.iter_mut().for_each(|v| *v -= *mean);
        }
    }
}

/// Sums of estimates over a band of an image's rows, with the sums of their weights.
pub(super) struct Band {
    frame: Frame,
    /// The image's rows from here, and how many.
    first: usize,
    n_rows: usize,
    /// (channel, row, column).
    sums: Vec<f32>,
    /// (row, column): all channels of a patch count the same.
    weights: Vec<f32>,
}

impl Band {
    /// The rows `rows` of the image, of which nothing is known yet.
    pub(super) fn new(frame: Frame, rows: std::ops::Range<usize>) -> Self {
        let n_rows = rows.len();
        let area = n_rows * frame.image.width;
        Band {
            frame,
            first: rows.start,
            n_rows,
            sums: vec![0.0; area * frame.image.channels],
            weights: vec![0.0; area],
        }
    }

    /// Adds the estimate of the patch at row `y` and column `x` of the image.
    pub(super) fn add(&mut self, [y, x]: [usize; 2], patch: &[f32], weight: f32) {
        let (width, [w, h]) = (self.frame.image.width, self.frame.lines());
        let area = self.n_rows * width;
        for (i, row) in patch.chunks_exact(w).enumerate() {
            let at = (y - self.first + i % h) * width + x;
            let sums = &mut self.sums[i / h * area + at..][..w];
            sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += weight * v);
            if i < h {
                self.weights[at..][..w].iter_mut().for_each(|sum| *sum += weight);
            }
        }
    }

    /// Adds what this band knows to a larger one.
    pub(super) fn add_to(&self, all: &mut Band) {
        let width = self.frame.image.width;
        let (area, all_area, from) = (self.n_rows * width, all.n_rows * width, (self.first - all.first) * width);
        let add = |sums: &mut [f32], more: &[f32]| sums.iter_mut().zip(more).for_each(|(sum, v)| *sum += v);
        add(&mut all.weights[from..][..area], &self.weights);
        for c in 0..self.frame.image.channels {
            add(&mut all.sums[c * all_area + from..][..area], &self.sums[c * area..][..area]);
        }
    }

    /// Returns the weighted mean of all estimates at every value.
    pub(super) fn means(self) -> Vec<f32> {
        let Band { mut sums, weights, .. } = self;
        for channel in sums.chunks_exact_mut(weights.len()) {
            channel.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum /= weight);
        }
        sums
    }
}
