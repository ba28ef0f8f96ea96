//! How much noise an image has, and whether it can have as much as is said.

use crate::Sample;

/// The median of the absolute value of a Gaussian number of variance 1.
const MEDIAN: f32 = 0.674_49;

/// Returns the standard deviation of white Gaussian noise in an image, from the median of its responses to the mask
///
/// ```text
///  1 -2  1
/// -2  4 -2
///  1 -2  1
/// ```
///
/// which smooth areas and straight edges along the axes leave alone (Immerkaer, "Fast noise variance estimation", 1996; the median
/// instead of the mean bears a few edges). Fine texture counts as noise. The mean over channels; 0 for less than 3x3 pixels. Of a signal,
/// to the mask 1 -4 6 -4 1, which leaves cubics alone.
pub(super) fn estimate(image: &Sample<f32>) -> f64 {
    let shape = image.shape();
    if shape.depth == 1 && (shape.height == 1 || shape.width == 1) && shape.pixels() >= LINE.len() {
        return image.data().chunks_exact(shape.pixels()).map(along).sum::<f64>() / shape.channels as f64;
    }
    if shape.height < 3 || shape.width < 3 {
        return 0.0;
    }
    let mut sum = 0.0;
    for plane in image.data().chunks_exact(shape.pixels()) {
        let mut responses = Vec::with_capacity(shape.pixels());
        let rows: Vec<&[f32]> = plane.chunks_exact(shape.width).collect();
        for rows in rows.windows(3) {
            let second = |x: usize| rows[0][x] - 2.0 * rows[1][x] + rows[2][x];
            responses.extend((1..shape.width - 1).map(|x| (second(x - 1) - 2.0 * second(x) + second(x + 1)).abs()));
        }
        let middle = responses.len() / 2;
        let (_, median, _) = responses.select_nth_unstable_by(middle, f32::total_cmp);
        // The mask's norm is 6.
        sum += f64::from(*median / (6.0 * MEDIAN));
    }
    sum / shape.channels as f64
}

/// Says why a standard deviation can hardly be that of the noise in an image. Most often it is on another scale than the values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SigmaDoubt {
    /// It is larger than the whole range of the values.
    BeyondRange {
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// It is far larger than the noise that the image seems to have.
    FarAbove {
        /// The standard deviation of the noise that the image seems to have.
        estimate: f64,
    },
    /// It is far smaller.
    FarBelow {
        /// The standard deviation of the noise that the image seems to have.
        estimate: f64,
    },
}

/// A deviation is doubted that is so many times as large as the estimate, or so many times smaller.
const FAR: f64 = 10.0;
/// An estimate below this share of the range says nothing against more noise: flat areas hide it, as black or white ones where it was
/// clipped do.
const HIDDEN: f64 = 1e-3;
/// Only a deviation below this share of the range is doubted for being small, a level of 255: fine texture counts as noise in the
/// estimate, so that of clean photos may be many times what is right.
const LEVEL: f64 = 1.0 / 255.0;

/// Returns why `sigma` can hardly be the standard deviation of the noise in an image; none if it can, or if it is 0.
pub(super) fn doubt(image: &Sample<f32>, sigma: f64) -> Option<SigmaDoubt> {
    let (low, high) = image.extremes();
    let (range, estimate) = (high - low, estimate(image));
    // Nothing tells how much noise a constant image has.
    if range == 0.0 || sigma == 0.0 {
        return None;
    }
    if sigma > range {
        return Some(SigmaDoubt::BeyondRange { low, high });
    }
    if sigma > FAR * estimate && estimate > HIDDEN * range {
        return Some(SigmaDoubt::FarAbove { estimate });
    }
    let is_below = FAR * sigma < estimate && sigma < LEVEL * range;
    is_below.then_some(SigmaDoubt::FarBelow { estimate })
}

/// A mask for signals.
const LINE: [f32; 5] = [1.0, -4.0, 6.0, -4.0, 1.0];

/// The same of one channel of a signal.
fn along(values: &[f32]) -> f64 {
    let response = |window: &[f32]| window.iter().zip(LINE).map(|(v, m)| v * m).sum::<f32>().abs();
    let mut responses: Vec<f32> = values.windows(LINE.len()).map(response).collect();
    let middle = responses.len() / 2;
    let (_, median, _) = responses.select_nth_unstable_by(middle, f32::total_cmp);
    let norm = LINE.iter().map(|m| m * m).sum::<f32>().sqrt();
    f64::from(*median / (norm * MEDIAN))
}
