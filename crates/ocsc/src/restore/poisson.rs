//! Images without the noise of counted photons, whose variance is proportional to the value.
//!
//! With y = g Poisson(x / g), the Anscombe transform 2 sqrt(y / g + 3/8) has noise of variance 1 almost everywhere, which is taken out as
//! Gaussian noise is; its inverse is the one without bias (Makitalo and Foi, "A closed-form approximation of the exact unbiased
//! inverse of the Anscombe variance-stabilizing transformation", 2011).

use super::denoise::gaussian;
use super::{Options, noise};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample};

/// Steps of the estimate of g.
const STEPS: usize = 10;

/// Returns an image without Poisson noise; `photons` make a value of 1, that is 1/g.
pub(super) fn denoise(
    image: &Sample<f32>,
    photons: Option<f64>,
    options: &Options,
    monitor: &dyn Monitor,
) -> Result<Sample<f32>> {
    if let Some(v) = image.data().iter().find(|v| **v < 0.0) {
        return Err(Error::invalid("image with Poisson noise", "no negative values", v));
    }
    let gain = match photons {
        Some(photons) if photons > 0.0 && photons.is_finite() => 1.0 / photons,
        Some(photons) => return Err(Error::invalid("photons of a value of 1", "a number above 0", photons)),
        None => estimate(image),
    };
    if gain == 0.0 {
        return Ok(image.clone());
    }
    let stable = transformed(image, gain);
    let clean = gaussian(&stable, 1.0, options, monitor)?;
    Ok(clean.map(|d| gain * inverse(d)))
}

/// Returns g.
fn estimate(image: &Sample<f32>) -> f64 {
    // Without 3/8, the root has noise of variance g/4.
    let mut gain = 4.0 * noise::estimate(&image.map(f64::sqrt)).powi(2);
    for _ in 0..STEPS {
        if gain > 0.0 {
            gain *= noise::estimate(&transformed(image, gain)).powi(2);
        }
    }
    gain
}

fn transformed(image: &Sample<f32>, gain: f64) -> Sample<f32> {
    image.map(|v| 2.0 * (v / gain + 0.375).sqrt())
}

/// The count whose transform has the mean d.
fn inverse(d: f64) -> f64 {
    // Below the transform of 0, which only errors reach.
    let d = d.max(2.0 * 0.375_f64.sqrt());
    let root = 1.5_f64.sqrt();
    (0.25 * d * d + 0.25 * root / d - 1.375 / (d * d) + 0.625 * root / (d * d * d) - 0.125).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the mean of the transform over a Poisson distribution.
    #[test]
    fn the_inverse_has_no_bias() {
        for mean in [0.5_f64, 2.0, 10.0, 50.0] {
            let (mut probability, mut expected) = ((-mean).exp(), 0.0);
            for count in 0..400 {
                expected += probability * 2.0 * (f64::from(count) + 0.375).sqrt();
                probability *= mean / f64::from(count + 1);
            }
            assert!((inverse(expected) - mean).abs() < 0.02 * mean.max(1.0), "{mean} {}", inverse(expected));
        }
    }
}
