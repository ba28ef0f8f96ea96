//! Images without their blur.

use super::invert::Inversion;
use super::observe::{Blur, Kernel, consistent};
use super::{Frame, MOST, Options, noise, signal, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample};

/// Returns an image (channels, 1, height, width) that gives the one at hand when it is blurred by `kernel`.
pub fn deblur(image: &Sample<f32>, kernel: &Kernel, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    let shape = image.shape();
    signal::check_image(shape)?;
    if image.mask().is_some() {
        return Err(Error::invalid(
            "image to deblur",
            "observed values only (`inpaint` fills the others in)",
            "a mask",
        ));
    }
    let [height, width] = kernel.size();
    if height > shape.height || width > shape.width {
        return Err(Error::invalid(
            "kernel",
            format!("at most the size of the image, {shape}"),
            format!("{height}x{width}"),
        ));
    }
    Frame::new(shape, start::start(shape, options.dictionary.as_ref())?.shape)?;
    let sigma = options.checked_sigma()?.unwrap_or_else(|| noise::estimate(image)) as f32;
    let (low, high) = image.extremes();
    let range = (high - low) as f32;
    if range == 0.0 {
        return Ok(image.clone());
    }
    let sigma = sigma.max(Deblurring::LEAST * range);
    let steps = Deblurring::steps(range, sigma);
    let observation = Blur { kernel, size: [shape.height, shape.width] };
    let consistent = |guess: Vec<f32>, t: f32| {
        let weight = Deblurring::GUESS * (sigma / t).powi(2);
        consistent(&observation, image.data(), &guess, shape.channels, weight, monitor)
    };
    let (consistent, members) = (&consistent, Deblurring::MEMBERS);
    let inversion = Inversion { consistent, shape, steps: &steps, trust: None, most: MOST, members };
    Sample::new(shape, inversion.run(image.data().to_vec(), options, monitor)?)
}

/// The settings of [`deblur()`], chosen on Set12 with a Gaussian blur of 1.6 pixels and noise of 2 levels in 255.
struct Deblurring;

impl Deblurring {
    /// The least noise that is believed in, as a share of the image's range.
    const LEAST: f32 = 0.5 / 255.0;
    /// The first t as a share of the image's range; the last one in sigmas.
    const FIRST: f32 = 0.1;
    const LAST: f32 = 1.0;
    const STEPS: usize = 8;
    /// How much the guess counts, beside what was observed.
    const GUESS: f32 = 0.15;
    const MEMBERS: usize = 16;

    fn steps(range: f32, sigma: f32) -> Vec<f32> {
        let (first, last) = (Self::FIRST * range, (Self::LAST * sigma).min(Self::FIRST * range));
        (0..Self::STEPS).map(|i| first * (last / first).powf(i as f32 / (Self::STEPS - 1) as f32)).collect()
    }
}
