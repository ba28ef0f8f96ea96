//! Samples: arrays with axes (channel, depth, height, width), and where they come from.
//!
//! An absent axis has length 1: a gray image is (1, 1, H, W), a mono recording (1, 1, 1, T), a colour video
//! (3, frames, H, W). The width is innermost.

use crate::{Error, Real, Result};
use std::fmt;
use std::sync::Arc;

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

    /// Returns the last `rank` spatial lengths: (W), (H, W) or (D, H, W).
    pub fn axes(&self, rank: usize) -> Vec<usize> {
        self.spatial()[3 - rank.clamp(1, 3)..].to_vec()
    }

    /// Positions of one channel: depth x height x width. Saturates, so that absurd shapes hold no array.
    pub fn pixels(&self) -> usize {
        self.depth.saturating_mul(self.height).saturating_mul(self.width)
    }

    /// Returns all numbers. Saturates as [`Shape::pixels`].
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
/// whatever was given, and nothing but a mask tells them from observed zeros. Weights say how much the observed ones count.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<T> {
    shape: Shape,
    data: Vec<T>,
    mask: Option<Vec<bool>>,
    /// W, 0 where nothing was observed; none if every observed value counts fully.
    weights: Option<Vec<T>>,
    /// The weights of the coefficients of its code in the penalty, (filter, depth, height, width).
    coefficient_weights: Option<Arc<[T]>>,
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
        Ok(Sample { shape, data, mask, weights: None, coefficient_weights: None })
    }

    /// The same sample with weights W in [0, 1] in its data term, 1/2 sum W (x - D z)^2: one for every value, or one for every
    /// pixel, which then holds for all channels. Values of weight 0 are unobserved.
    pub fn with_weights(self, weights: Vec<T>) -> Result<Self> {
        let shape = self.shape;
        let weights = match weights.len() {
            n if n == shape.len() => weights,
            n if n == shape.pixels() => weights.repeat(shape.channels),
            n => {
                let expected = format!("{} or {} weights for shape {shape}", shape.pixels(), shape.len());
                return Err(Error::invalid("data weights", expected, n));
            }
        };
        if let Some(w) = weights.iter().find(|w| !(**w >= T::zero() && **w <= T::one())) {
            return Err(Error::invalid("data weights", "numbers from 0 to 1", w));
        }
        let (coefficient_weights, mask) = (self.coefficient_weights, self.mask);
        let seen = |i: usize| weights[i] > T::zero() && mask.as_ref().is_none_or(|mask| mask[i]);
        let both = (0..weights.len()).map(seen).collect();
        let sample = Sample::masked(shape, self.data, both)?;
        let mut weights = weights;
        for (w, _) in weights.iter_mut().zip(sample.mask.iter().flatten()).filter(|(_, seen)| !**seen) {
            *w = T::zero();
        }
        let fractional = weights.iter().any(|w| *w > T::zero() && *w < T::one());
        Ok(Sample { weights: fractional.then_some(weights), coefficient_weights, ..sample })
    }

    /// The same sample with a weight for every coefficient of its code, (filter, depth, height, width), by which beta is
    /// multiplied. Infinite weights keep a coefficient at zero.
    pub fn with_coefficient_weights(self, weights: Arc<[T]>) -> Result<Self> {
        match weights.iter().find(|w| w.f64().is_nan() || w.f64() <= 0.0) {
            Some(w) => Err(Error::invalid("weights of coefficients", "numbers above 0, or inf", w)),
            None => Ok(Sample { coefficient_weights: Some(weights), ..self }),
        }
    }

    /// Returns the lengths of the axes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the values, in the order (channel, depth, height, width); zeros where nothing was observed.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Returns which values were observed, in the order of the values; none if all were.
    pub fn mask(&self) -> Option<&[bool]> {
        self.mask.as_deref()
    }

    /// Returns how much each value counts, from 0 to 1, in the order of the values; none if all that were observed count fully.
    pub fn weights(&self) -> Option<&[T]> {
        self.weights.as_deref()
    }

    /// Returns the weights of its code's coefficients in the penalty, (filter, depth, height, width); none if all are 1.
    pub fn coefficient_weights(&self) -> Option<&Arc<[T]>> {
        self.coefficient_weights.as_ref()
    }

    /// Returns the values that were observed.
    pub fn observed(&self) -> impl Iterator<Item = T> + '_ {
        let seen = |i: usize| self.mask.as_ref().is_none_or(|mask| mask[i]);
        self.data.iter().enumerate().filter(move |(i, _)| seen(*i)).map(|(_, v)| *v)
    }

    /// Returns the smallest and the largest value.
    pub fn extremes(&self) -> (f64, f64) {
        let widen = |(low, high): (f64, f64), v: &T| (low.min(v.f64()), high.max(v.f64()));
        self.data.iter().fold((f64::INFINITY, f64::NEG_INFINITY), widen)
    }

    /// Returns how many values were observed.
    pub fn n_observed(&self) -> usize {
        self.mask.as_ref().map_or(self.data.len(), |mask| mask.iter().filter(|seen| **seen).count())
    }

    /// Returns ||x||^2, the sum of the squares of what was observed.
    pub fn energy(&self) -> f64 {
        self.data.iter().map(|v| v.f64() * v.f64()).sum()
    }

    /// Checks that all values were observed, for the methods whose systems hold whole samples.
    pub(crate) fn check_whole(&self) -> Result<()> {
        self.check_unweighted()?;
        match self.mask {
            Some(_) => Err(Error::invalid(
                "masks",
                "the methods `ocsc` or `ffcsc`, which leave unobserved values out",
                "a mask",
            )),
            None => Ok(()),
        }
    }

    /// Checks that all observed values count fully, for the methods whose systems know no weights.
    pub(crate) fn check_unweighted(&self) -> Result<()> {
        let what = match (&self.weights, &self.coefficient_weights) {
            (None, None) => return Ok(()),
            (Some(_), _) => "data weights",
            _ => "weights of coefficients",
        };
        Err(Error::invalid(what, "the method `ocsc`, which knows weights", "another method"))
    }

    /// Gives the values back.
    pub fn into_data(self) -> Vec<T> {
        self.data
    }

    /// Gives shape, values and mask back.
    pub fn into_parts(self) -> (Shape, Vec<T>, Option<Vec<bool>>) {
        (self.shape, self.data, self.mask)
    }

    /// Returns the same numbers in the same order with other axes, of which there must be as many.
    pub(crate) fn with_shape(self, shape: Shape) -> Self {
        debug_assert_eq!(shape.len(), self.shape.len());
        Sample { shape, ..self }
    }

    /// Returns the same sample in another scalar.
    pub fn cast<U: Real>(self) -> Result<Sample<U>> {
        let weights = self.clone_weights();
        let (shape, data, mask) = self.into_parts();
        let sample = Sample::with_mask(shape, converted(data), mask)?;
        sample.with_weights_of(&weights)
    }

    /// The same sample without weights of coefficients, which belong to codes of other filters.
    pub(crate) fn without_coefficient_weights(self) -> Self {
        Sample { coefficient_weights: None, ..self }
    }

    /// The shape and the weights without the values.
    pub(crate) fn clone_weights(&self) -> Sample<T> {
        let (weights, coefficient_weights) = (self.weights.clone(), self.coefficient_weights.clone());
        Sample { shape: self.shape, data: Vec::new(), mask: None, weights, coefficient_weights }
    }

    /// This sample with the weights of what it was made of. A pixel whose channels were made one counts as its least one did.
    pub(crate) fn with_weights_of<U: Real>(self, source: &Sample<U>) -> Result<Sample<T>> {
        let pixels = self.shape.pixels();
        let least = |w: &[U], i: usize| w[i..].iter().step_by(pixels).map(|w| w.f64()).fold(1.0, f64::min);
        let weights = source.weights.as_deref().map(|w| match self.shape.len() == source.shape.len() {
            true => w.iter().map(|w| T::of(w.f64())).collect(),
            false => (0..pixels).map(|i| T::of(least(w, i))).collect::<Vec<T>>(),
        });
        let convert = |weights: &Arc<[U]>| weights.iter().map(|w| T::of(w.f64())).collect::<Arc<[T]>>();
        let coefficient_weights = source.coefficient_weights.as_ref().map(convert);
        let sample = match weights {
            Some(weights) => self.with_weights(weights)?,
            None => self,
        };
        Ok(Sample { coefficient_weights, ..sample })
    }

    /// Applies `f` to every observed value in `f64`.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Sample<T> {
        let mut data: Vec<T> = self.data.iter().map(|v| T::of(f(v.f64()))).collect();
        for (v, _) in data.iter_mut().zip(self.mask.iter().flatten()).filter(|(_, seen)| !**seen) {
            *v = T::zero();
        }
        Sample { data, ..self.clone() }
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

/// Numbers that are converted at a time.
const CHUNK: usize = 1 << 18;

/// The same numbers in another scalar. Of many, those that are converted are given back to the system, so that both arrays
/// never take memory at the same time.
fn converted<T: Real, U: Real>(mut values: Vec<T>) -> Vec<U> {
    if values.len() <= CHUNK {
        return values.into_iter().map(|v| U::of(v.f64())).collect();
    }
    // Zeros take no memory before they are written over.
    let mut out = vec![U::zero(); values.len()];
    while !values.is_empty() {
        let first = values.len().saturating_sub(CHUNK);
        out[first..].iter_mut().zip(&values[first..]).for_each(|(out, v)| *out = U::of(v.f64()));
        values.truncate(first);
        values.shrink_to_fit();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_numbers_are_converted_as_few_are() {
        for n in [0, 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3] {
            let values: Vec<f64> = (0..n).map(|i| (0.1 * i as f64).sin()).collect();
            let narrow: Vec<f32> = converted(values.clone());
            assert!(narrow.len() == n && narrow.iter().zip(&values).all(|(a, b)| *a == *b as f32));
            let wide: Vec<f64> = converted(narrow.clone());
            assert!(wide.len() == n && wide.iter().zip(&narrow).all(|(a, b)| *a == f64::from(*b)));
        }
    }
}
