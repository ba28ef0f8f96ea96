//! Images without their noise.
//!
//! The filters learn from the noisy image. Each patch is coded alone, which tells well enough which patches are alike; then the
//! noisy patches are coded in groups with one support, and all estimates are averaged.

use super::adapt::Adapt;
use super::frame::Frame;
use super::pass::Pass;
use super::{MOST, Noise, Options, PATCHES, adapt, impulse, noise, poisson, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample};

/// Returns an image (channels, 1, height, width) without its noise.
pub fn denoise(image: &Sample<f32>, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    if image.mask().is_some() {
        let expected = "observed values only (`inpaint` fills the others in)";
        return Err(Error::invalid("image to denoise", expected, "a mask"));
    }
    match options.noise {
        Noise::Gaussian => {
            let sigma = options.checked_sigma()?.unwrap_or_else(|| noise::estimate(image));
            gaussian(image, sigma, options, monitor)
        }
        Noise::Poisson(photons) => poisson::denoise(image, photons, options, monitor),
        Noise::Impulse => impulse::denoise(image, options, monitor),
    }
}

/// The same for white Gaussian noise.
pub(super) fn gaussian(
    image: &Sample<f32>,
    sigma: f64,
    options: &Options,
    monitor: &dyn Monitor,
) -> Result<Sample<f32>> {
    let sigma = sigma as f32;
    let mut atoms = start::start(image.shape().channels, options.dictionary.as_ref())?;
    let frame = Frame::new(image.shape(), atoms.shape)?;
    if sigma == 0.0 {
        return Ok(image.clone());
    }
    if options.learn_here {
        let (rounds, error) = (Denoising::ROUNDS, Denoising::ALONE * sigma);
        let adapt = Adapt { error, rounds, most: adapt::MOST, patches: PATCHES, seed: options.seed, first: 0 };
        adapt.run(&mut atoms, &[(frame, image.data())], monitor)?;
    }
    let alone = Pass {
        frame,
        atoms: &atoms,
        image: image.data(),
        guide: image.data(),
        trust: None,
        error: Denoising::ALONE * sigma,
        most: MOST,
        stride: Denoising::STRIDE_ALONE,
        members: 1,
        reach: 0,
    };
    let guide = alone.run(monitor)?;
    let (error, stride) = (Denoising::TOGETHER * sigma, Denoising::STRIDE);
    let (members, reach) = (Denoising::MEMBERS, Denoising::REACH);
    let together = Pass { guide: &guide, error, stride, members, reach, ..alone };
    Sample::new(image.shape(), together.run(monitor)?)
}

/// The settings of [`denoise()`], chosen on Set12 at sigma 25.
struct Denoising;

impl Denoising {
    const ROUNDS: usize = 15;
    /// Residuals of single patches, in sigmas: the noise of few values varies.
    const ALONE: f32 = 1.15;
    /// Residuals of groups, in sigmas.
    const TOGETHER: f32 = 1.01;
    const STRIDE_ALONE: usize = 1;
    const STRIDE: usize = 3;
    const MEMBERS: usize = 16;
    const REACH: usize = 16;
}
