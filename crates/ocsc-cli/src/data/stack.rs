//! An array cut into samples along its N axis.
//!
//! Stands between [`super::array`], which knows bytes, and [`super::Source`], which knows samples. Where each sample
//! is one run of bytes in a plain file (as (N, H, W) is in `.npy`, and (H, W, N) in uncompressed `.mat`), only the
//! sample asked for is read; in other orders, and in compressed files, the array is held in memory in its own type.

use super::array::Array;
use super::axes::{Axes, Convention, show_shape};
use anyhow::{Result, ensure};
use ocsc::{Real, Sample, Shape};

/// A non-empty array with the meaning of its axes.
#[derive(Debug)]
pub(crate) struct Stack {
    array: Array,
    /// The number of samples, and the distance in numbers between them.
    len: usize,
    step: usize,
    /// The shape of one sample, and the distance between neighbours along (channel, depth, height, width).
    shape: Shape,
    strides: [usize; 4],
    /// The length of the shortest run of numbers that holds one sample.
    span: usize,
    rank: usize,
}

impl Stack {
    /// Fits `axes`, or those assumed, to the array.
    pub(crate) fn new(mut array: Array, axes: Option<&Axes>, convention: Convention) -> Result<Self> {
        let axes = Axes::choose(axes, convention, array.shape())?;
        ensure!(
            array.shape().iter().all(|&len| len > 0),
            "an array of shape {} is empty; expected at least one value on every axis",
            show_shape(array.shape())
        );
        let axis = |letter| {
            let place = axes.place(letter).filter(|&a| a < array.shape().len());
            place.map_or((1, 0), |a| (array.shape()[a], array.strides()[a]))
        };
        let (len, step) = axis('N');
        let own = ['C', 'D', 'H', 'W'].map(axis);
        let [channels, depth, height, width] = own.map(|(len, _)| len);
        let span = 1 + own.iter().map(|(len, stride)| (len - 1) * stride).sum::<usize>();
        if array.is_on_disk() && len > 1 && step < span {
            array.load()?;
        }
        let shape = Shape { channels, depth, height, width };
        Ok(Stack { array, len, step, shape, strides: own.map(|(_, stride)| stride), span, rank: axes.rank() })
    }

    /// The number of samples, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many spatial axes each sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Depth, height and width of every sample.
    pub(crate) fn size(&self) -> [usize; 3] {
        self.shape.spatial()
    }

    /// Sample `index`, its values as they are in the file.
    pub(crate) fn get<T: Real>(&self, index: usize) -> Result<Sample<T>> {
        ensure!(index < self.len, "sample {index} of {}", self.len);
        let Shape { channels, depth, height, width } = self.shape;
        let [sc, sd, sh, sw] = self.strides;
        let offset = |i: usize| {
            let (w, h) = (i % width, i / width % height);
            let (d, c) = (i / (width * height) % depth, i / (width * height * depth));
            c * sc + d * sd + h * sh + w * sw
        };
        let count = channels * depth * height * width;
        let values = self.array.gather(index * self.step, self.span, (0..count).map(offset))?;
        let sample = Sample::new(self.shape, values.into_iter().map(T::of).collect())?;
        Ok(sample)
    }
}
