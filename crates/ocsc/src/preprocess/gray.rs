//! Colour to gray.

use crate::{Error, Real, Result, Sample, Shape};

/// The luminance weights that MATLAB's `rgb2gray` computes with: the first row of the inverse of its YIQ matrix, which
/// its documentation rounds to 0.2989, 0.5870, 0.1140. With them the authors' arrays come out to 5e-7, with the rounded
/// ones to 5e-5.
const LUMINANCE: [f64; 3] = [0.298_936_021_293_776, 0.587_043_074_451_121, 0.114_020_904_255_103];

/// Computes gray values g = 0.2989 R + 0.5870 G + 0.1140 B with unrounded weights, and themselves unrounded.
///
/// Three channels become one; a sample of one channel passes unchanged; any other number is refused, since the library
/// cannot know which of two or four channels is an opacity (readers drop it). Values are expected in \[0, 1\] but not
/// forced there: the step is linear. A pixel of a masked sample is observed if all its channels are.
///
/// Colours do not come back: the way back from what follows ends at the gray values.
pub fn gray<T: Real>(sample: &Sample<T>) -> Result<Sample<T>> {
    let shape = sample.shape();
    match shape.channels {
        1 => Ok(sample.clone()),
        3 => {
            let (red, rest) = sample.data().split_at(shape.pixels());
            let (green, blue) = rest.split_at(shape.pixels());
            let [r, g, b] = LUMINANCE;
            let luminance = |((x, y), z): ((&T, &T), &T)| T::of(r * x.f64() + g * y.f64() + b * z.f64());
            let data = red.iter().zip(green).zip(blue).map(luminance).collect();
            let all = |mask: &[bool]| {
                (0..shape.pixels()).map(|i| mask[i..].iter().step_by(shape.pixels()).all(|s| *s)).collect()
            };
            Sample::with_mask(Shape { channels: 1, ..shape }, data, sample.mask().map(all))
        }
        n => Err(Error::invalid("gray", "1 channel (gray) or 3 (red, green, blue)", format!("{n} channels"))),
    }
}
