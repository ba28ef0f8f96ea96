//! Images and signals without their noise.
//!
//! The filters learn from the noisy image. Each patch is coded alone, which tells well enough which patches are alike; then the
//! noisy patches are coded in groups with one support, and all estimates are averaged.

use super::adapt::Adapt;
use super::frame::Frame;
use super::pass::Pass;
use super::{MOST, Noise, Options, PATCHES, adapt, impulse, noise, poisson, signal, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample};

/// Returns an image (channels, 1, height, width), or a signal (channels, 1, 1, length), without its noise.
pub fn denoise(image: &Sample<f32>, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    if let Some(column) = signal::column(image) {
        return denoise(&column, options, monitor).map(signal::row);
    }
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
    let mut atoms = start::start(image.shape(), options.dictionary.as_ref())?;
    let frame = Frame::new(image.shape(), atoms.shape)?;
    if sigma == 0.0 {
        return Ok(image.clone());
    }
    let settings = if signal::is_column(image.shape()) { Denoising::SIGNALS } else { Denoising::IMAGES };
    if options.learn_here {
        let (rounds, error) = (settings.rounds, settings.alone * sigma);
        let adapt =
            Adapt { error, rounds, most: settings.most_learned, patches: PATCHES, seed: options.seed, first: 0 };
        adapt.run(&mut atoms, &[(frame, image.data())], monitor)?;
    }
    let alone = Pass {
        frame,
        atoms: &atoms,
        image: image.data(),
        guide: image.data(),
        trust: None,
        error: settings.alone * sigma,
        most: settings.most,
        // Where noise is weak, patches are more than a few filters and noise.
        keeps_rest: true,
        stride: settings.stride_alone,
        members: 1,
        reach: 0,
    };
    let guide = alone.run(monitor)?;
    let Denoising { stride, members, reach, .. } = settings;
    let together = Pass { guide: &guide, error: settings.together * sigma, stride, members, reach, ..alone };
    Sample::new(image.shape(), together.run(monitor)?)
}

/// The settings of [`denoise()`].
#[derive(Clone, Copy)]
struct Denoising {
    rounds: usize,
    /// The most filters of a patch that is learned from, and of one that is coded.
    most_learned: usize,
    most: usize,
    /// Residuals of single patches, in sigmas: the noise of few values varies.
    alone: f32,
    /// Residuals of groups, in sigmas.
    together: f32,
    stride_alone: usize,
    stride: usize,
    members: usize,
    reach: usize,
}

impl Denoising {
    /// Chosen on Set12 at sigma 25.
    const IMAGES: Self = Denoising {
        rounds: 15,
        most_learned: adapt::MOST,
        most: MOST,
        alone: 1.15,
        together: 1.01,
        stride_alone: 1,
        stride: 3,
        members: 16,
        reach: 16,
    };
    /// Chosen on the first half of an ECG, two notes of a piano and a loop of drums, each with noise at 5, 10 and 20 dB. They reach
    /// further, over several beats or periods.
    const SIGNALS: Self = Denoising {
        rounds: 15,
        most_learned: 48,
        most: 64,
        alone: 1.1,
        together: 1.01,
        stride_alone: 2,
        stride: 4,
        members: 16,
        reach: 1000,
    };
}
