//! An array cut into samples along its N axis, and signals also into windows.
//!
//! Stands between [`super::array`], which knows bytes, and [`super::Source`], which knows samples. Of an array that lies
//! in a plain file only the sample asked for is read, in whatever order the axes are; a compressed array is held in
//! memory in its own type. Fastest are samples that are one run of bytes, as (N, H, W) in `.npy` and (H, W, N) in `.mat`.

use super::array::{Array, Dtype};
use super::axes::{self, Convention, show_shape};
use super::format::ReadOptions;
use super::window::{Window, Windows};
use anyhow::{Result, bail, ensure};
use ocsc::{Axes, Real, Sample, Shape};

/// A non-empty array with the meaning of its axes.
#[derive(Debug)]
pub(crate) struct Stack {
    array: Array,
    axes: Axes,
    /// The number of signals, images or volumes, and the distance in numbers between them.
    wholes: usize,
    step: usize,
    /// How the width of each is cut into samples.
    windows: Windows,
    /// The shape of each, and the distance between neighbours along (channel, depth, height, width).
    shape: Shape,
    strides: [usize; 4],
}

impl Stack {
    /// Fits `axes`, or those assumed, to the array, and cuts signals of `sfreq` values per second into windows.
    pub(crate) fn new(
        array: Array,
        axes: Option<&Axes>,
        convention: Convention,
        window: Option<Window>,
        sfreq: Option<f64>,
    ) -> Result<Self> {
        let axes = axes::choose(axes, convention, array.shape())?;
        let shown = show_shape(array.shape());
        ensure!(
            array.shape().iter().all(|&len| len > 0),
            "an array of shape {shown} is empty; expected at least one value on every axis"
        );
        let axis = |letter| {
            let place = axes.place(letter).filter(|&a| a < array.shape().len());
            place.map_or((1, 0), |a| (array.shape()[a], array.strides()[a]))
        };
        let (wholes, step) = axis('N');
        let own = ['C', 'D', 'H', 'W'].map(axis);
        let [channels, depth, height, width] = own.map(|(len, _)| len);
        let length = match window {
            None => width,
            Some(_) if axes.rank() > 1 => bail!(
                "--window cuts signals, and this array of shape {shown} was read as {axes}, {}; \
                 signals have no H and D, e.g. --axes W, NW or CW",
                if axes.rank() == 2 { "images" } else { "volumes" }
            ),
            Some(Window::Values(length)) => length,
            Some(Window::Seconds(seconds)) => match sfreq {
                Some(sfreq) => (seconds * sfreq).round() as usize,
                None => bail!(
                    "--window in seconds, but an array has no sampling rate; expected --sfreq with it, or values, e.g. --window 2048"
                ),
            },
        };
        let windows = Windows::new(width, length);
        ensure!(wholes.checked_mul(windows.count()).is_some(), "more windows than can be counted");
        let shape = Shape { channels, depth, height, width };
        Ok(Stack { array, axes, wholes, step, windows, shape, strides: own.map(|(_, stride)| stride) })
    }

    /// Whether it holds truth values, which are no samples.
    pub(crate) fn is_boolean(&self) -> bool {
        self.array.dtype() == Dtype::Bool
    }

    /// The number of samples, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.wholes * self.windows.count()
    }

    /// How many spatial axes each sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        self.axes.rank()
    }

    /// How the array was understood, for messages about samples of a wrong size.
    pub(crate) fn reading(&self) -> String {
        let (shape, axes) = (show_shape(self.array.shape()), &self.axes);
        format!("an array of shape {shape}, read as {axes}; others that would fit: --axes {}", axes::others(axes))
    }

    /// The number of signals, images or volumes before they are cut into windows.
    pub(crate) fn wholes(&self) -> usize {
        self.wholes
    }

    /// The number of the whole that sample `index` was cut from, and where in it the sample begins.
    pub(crate) fn cut(&self, index: usize) -> (usize, usize) {
        let count = self.windows.count();
        (index / count, self.windows.range(index % count).start)
    }

    /// The shape of sample `index`.
    pub(crate) fn shape(&self, index: usize) -> Shape {
        Shape { width: self.windows.range(index % self.windows.count()).len(), ..self.shape }
    }

    /// Sample `index`, its values as they are in the file.
    pub(crate) fn get<T: Real>(&self, index: usize, options: ReadOptions) -> Result<Sample<T>> {
        ensure!(index < self.len(), "sample {index} of {}", self.len());
        let (whole, window) = (index / self.windows.count(), index % self.windows.count());
        let shape = self.shape(index);
        let first = whole * self.step + self.windows.range(window).start * self.strides[3];
        let lens = [shape.channels, shape.depth, shape.height, shape.width];
        options.ensure_room(&format!("samples of {shape}"), 0, shape.len() as u64)?;
        let values = self.array.all_gather(first, &lens, &self.strides, options.limit)?;
        super::mask::sample(shape, values, options.nan_is_missing)
    }
}
