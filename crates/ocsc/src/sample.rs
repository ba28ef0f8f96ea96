//! Samples: arrays with axes (channel, depth, height, width), and where they come from.
//!
//! An absent axis has length 1: a gray image is (1, 1, H, W), a mono recording (1, 1, 1, T), a colour video
//! (3, frames, H, W). The width is innermost.

use crate::{Error, Real, Result};
use std::fmt;

/// The lengths of the four axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Channels: filters span all of them.
    pub channels: usize,
    /// Slices of a volume or frames of a video.
    pub depth: usize,
    /// Rows.
    pub height: usize,
    /// Columns, or time for 1-D signals; contiguous in memory.
    pub width: usize,
}

impl Shape {
    /// A single-channel image.
    pub fn image(height: usize, width: usize) -> Self {
        Shape { channels: 1, depth: 1, height, width }
    }

    /// From one to three spatial lengths (W), (H, W) or (D, H, W).
    pub fn from_axes(channels: usize, axes: &[usize]) -> Result<Self> {
        let (depth, height, width) = match *axes {
            [w] => (1, 1, w),
            [h, w] => (1, h, w),
            [d, h, w] => (d, h, w),
            _ => return Err(Error::invalid("shape", "one to three spatial axes", format!("{} axes", axes.len()))),
        };
        Ok(Shape { channels, depth, height, width })
    }

    /// (depth, height, width).
    pub fn spatial(&self) -> [usize; 3] {
        [self.depth, self.height, self.width]
    }

    /// The last `rank` spatial lengths: (W), (H, W) or (D, H, W).
    pub fn axes(&self, rank: usize) -> Vec<usize> {
        self.spatial()[3 - rank.clamp(1, 3)..].to_vec()
    }

    /// Positions of one channel: depth x height x width. Saturates, so that absurd shapes hold no array.
    pub fn pixels(&self) -> usize {
        self.depth.saturating_mul(self.height).saturating_mul(self.width)
    }

    /// All numbers. Saturates as [`Shape::pixels`].
    pub fn len(&self) -> usize {
        self.channels.saturating_mul(self.pixels())
    }

    /// True if any axis has length zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Shape {
    /// `100x100`, with depth and channels where they are not 1: `3 channels of 48x144x176`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.channels != 1 {
            write!(f, "{} channels of ", self.channels)?;
        }
        if self.depth != 1 {
            write!(f, "{}x", self.depth)?;
        }
        write!(f, "{}x{}", self.height, self.width)
    }
}

/// One sample x: a finite array of [`Shape`] (channel, depth, height, width), of which parts may be unobserved.
///
/// A mask says which values were observed. Unobserved ones have no influence on anything: they are stored as zeros,
/// whatever was given, and nothing but a mask tells them from observed zeros.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<T> {
    shape: Shape,
    data: Vec<T>,
    mask: Option<Vec<bool>>,
}

impl<T: Real> Sample<T> {
    /// Checks that the shape holds the data, that nothing is empty and that every value is finite.
    pub fn new(shape: Shape, data: Vec<T>) -> Result<Self> {
        Self::with_mask(shape, data, None)
    }

    /// A sample of which only those values were observed where `mask` is true: one truth for every value, or one for
    /// every pixel, which then holds for all channels. Unobserved values may be anything, even NaN. A mask that hides
    /// nothing is none.
    pub fn masked(shape: Shape, data: Vec<T>, mask: Vec<bool>) -> Result<Self> {
        Self::with_mask(shape, data, Some(mask))
    }

    /// [`Sample::new`] or [`Sample::masked`].
    pub(crate) fn with_mask(shape: Shape, mut data: Vec<T>, mask: Option<Vec<bool>>) -> Result<Self> {
        if shape.is_empty() {
            return Err(Error::invalid("sample", "at least one value on every axis", shape));
        }
        if data.len() != shape.len() {
            return Err(Error::invalid("sample", format!("{} values for shape {shape}", shape.len()), data.len()));
        }
        let mask = match mask {
            Some(mask) if mask.len() == shape.len() => Some(mask),
            Some(mask) if mask.len() == shape.pixels() => Some(mask.repeat(shape.channels)),
            Some(mask) => {
                let expected = format!("{} or {} truth values for shape {shape}", shape.pixels(), shape.len());
                return Err(Error::invalid("mask", expected, mask.len()));
            }
            None => None,
        };
        let mask = mask.filter(|mask| mask.contains(&false));
        if let Some(mask) = &mask {
            if !mask.contains(&true) {
                return Err(Error::invalid("mask", "at least one observed value", "none"));
            }
            data.iter_mut().zip(mask).filter(|(_, seen)| !**seen).for_each(|(v, _)| *v = T::zero());
        }
        if let Some(i) = data.iter().position(|v| !v.is_finite()) {
            let (y, x) = ((i / shape.width) % shape.height, i % shape.width);
            return Err(Error::invalid("sample", "finite values", format!("{} at row {y}, column {x}", data[i])));
        }
        Ok(Sample { shape, data, mask })
    }

    /// The lengths of the axes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The values, in the order (channel, depth, height, width); zeros where nothing was observed.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Which values were observed, in the order of the values; none if all were.
    pub fn mask(&self) -> Option<&[bool]> {
        self.mask.as_deref()
    }

    /// The values that were observed.
    pub fn observed(&self) -> impl Iterator<Item = T> + '_ {
        let seen = |i: usize| self.mask.as_ref().is_none_or(|mask| mask[i]);
        self.data.iter().enumerate().filter(move |(i, _)| seen(*i)).map(|(_, v)| *v)
    }

    /// Returns the smallest and the largest value.
    pub fn extremes(&self) -> (f64, f64) {
        let widen = |(low, high): (f64, f64), v: &T| (low.min(v.f64()), high.max(v.f64()));
        self.data.iter().fold((f64::INFINITY, f64::NEG_INFINITY), widen)
    }

    /// How many values were observed.
    pub fn n_observed(&self) -> usize {
        self.mask.as_ref().map_or(self.data.len(), |mask| mask.iter().filter(|seen| **seen).count())
    }

    /// That all values were observed, for the methods whose systems hold whole samples.
    pub(crate) fn check_whole(&self) -> Result<()> {
        match self.mask {
            Some(_) => Err(Error::invalid(
                "masks",
                "the methods `ocsc` or `ffcsc`, which leave unobserved values out",
                "a mask",
            )),
            None => Ok(()),
        }
    }

    /// Gives the values back.
    pub fn into_data(self) -> Vec<T> {
        self.data
    }

    /// Gives shape, values and mask back.
    pub fn into_parts(self) -> (Shape, Vec<T>, Option<Vec<bool>>) {
        (self.shape, self.data, self.mask)
    }

    /// The same sample in another scalar.
    pub fn cast<U: Real>(self) -> Result<Sample<U>> {
        let (shape, data, mask) = self.into_parts();
        Sample::with_mask(shape, data.into_iter().map(|v| U::of(v.f64())).collect(), mask)
    }

    /// Applies `f` to every observed value in `f64`.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Sample<T> {
        let mut data: Vec<T> = self.data.iter().map(|v| T::of(f(v.f64()))).collect();
        for (v, _) in data.iter_mut().zip(self.mask.iter().flatten()).filter(|(_, seen)| !**seen) {
            *v = T::zero();
        }
        Sample { shape: self.shape, data, mask: self.mask.clone() }
    }
}

/// A source of samples that are read when asked for, so that memory does not grow with their number.
pub trait Samples<T: Real>: Sync {
    /// How many samples there are.
    fn len(&self) -> usize;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads sample `index`, which is below [`Samples::len`].
    fn get(&self, index: usize) -> Result<Sample<T>>;

    /// Reads sample `index` for learning, in a pass counted from 0. Sources that cut samples at random do it anew in every
    /// pass here, and always in the same place in [`Samples::get`]; the answer depends on nothing but the two numbers.
    fn draw(&self, index: usize, _pass: usize) -> Result<Sample<T>> {
        self.get(index)
    }

    /// What to call sample `index` in messages and file names.
    fn name(&self, index: usize) -> String {
        format!("sample {index}")
    }

    /// Returns depth, height and width of sample `index`, if they are known without reading it: what does not fit is refused
    /// before the first sample is learned from, and work on samples is divided by their size.
    fn spatial(&self, _index: usize) -> Option<[usize; 3]> {
        None
    }
}

impl<T: Real> Samples<T> for [Sample<T>] {
    fn len(&self) -> usize {
        <[Sample<T>]>::len(self)
    }
    fn get(&self, index: usize) -> Result<Sample<T>> {
        Ok(self[index].clone())
    }
    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        Some(self[index].shape().spatial())
    }
}

/// So that a slice can be a `&dyn Samples`: `&&samples[..]`.
impl<T: Real> Samples<T> for &[Sample<T>] {
    fn len(&self) -> usize {
        <[Sample<T>]>::len(self)
    }
    fn get(&self, index: usize) -> Result<Sample<T>> {
        Ok(self[index].clone())
    }
    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        Some(self[index].shape().spatial())
    }
}

impl<T: Real> Samples<T> for Vec<Sample<T>> {
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn get(&self, index: usize) -> Result<Sample<T>> {
        Ok(self[index].clone())
    }
    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        Some(self[index].shape().spatial())
    }
}
