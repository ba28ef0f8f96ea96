//! Images with their gaps filled.
//!
//! From a guess, patches are coded in groups with a tolerance that falls from step to step: where the guess is still poor, only
//! strong structure is believed. The support of a group comes from the guess, the coefficients from the observed values, beside
//! which a guessed one counts [`Inpainting::GUESS`]. Observed values are put back after every step.

use super::adapt::Adapt;
use super::frame::Frame;
use super::pass::Pass;
use super::{Options, fill, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample};

/// Returns an image with what was not observed filled in; observed values are kept.
pub fn inpaint(image: &Sample<f32>, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    let Some(seen) = seen(image) else {
        return Frame::new(image.shape(), start::start(image.shape().channels, options.dictionary.as_ref())?.shape)
            .map(|_| image.clone());
    };
    for (c, seen) in seen.chunks_exact(image.shape().pixels()).enumerate() {
        if seen.iter().all(|w| *w == 0.0) {
            return Err(Error::invalid("mask", "at least one observed value in every channel", format!("none in {c}")));
        }
    }
    let guess = fill::fill(image.shape(), image.data(), &seen, monitor)?;
    improve(image, &seen, guess, options, monitor)
}

/// Returns 1 for every observed value and 0 for others; none if all were observed.
fn seen(image: &Sample<f32>) -> Option<Vec<f32>> {
    image.mask().map(|mask| mask.iter().map(|seen| f32::from(u8::from(*seen))).collect())
}

/// Improves a guess of an image of which some values were `seen`.
fn improve(
    image: &Sample<f32>,
    seen: &[f32],
    mut guess: Vec<f32>,
    options: &Options,
    monitor: &dyn Monitor,
) -> Result<Sample<f32>> {
    let shape = image.shape();
    let mut atoms = start::start(shape.channels, options.dictionary.as_ref())?;
    let frame = Frame::new(shape, atoms.shape)?;
    let trust: Vec<f32> = seen.iter().map(|w| w + (1.0 - w) * Inpainting::GUESS).collect();
    let deviation = deviation(image);
    for (step, share) in Inpainting::ERRORS.into_iter().enumerate() {
        let error = share * deviation;
        if error == 0.0 {
            break;
        }
        if options.learn_here {
            let patches = Inpainting::PATCHES;
            let adapt = Adapt { error, rounds: 1, patches, seed: options.seed, first: step };
            adapt.run(&mut atoms, &[(frame, &guess)], monitor)?;
        }
        let (stride, members, reach) = (Inpainting::STRIDE, Inpainting::MEMBERS, Inpainting::REACH);
        let (coded, trust) = (&guess[..], Some(&trust[..]));
        let pass = Pass {
            frame,
            atoms: &atoms,
            image: coded,
            guide: coded,
            trust,
            error,
            most: Inpainting::MOST,
            stride,
            members,
            reach,
        };
        guess = pass.run(monitor)?;
        let observed = image.data().iter().zip(seen).map(|(v, w)| (*w > 0.0).then_some(*v));
        guess.iter_mut().zip(observed).for_each(|(guess, observed)| *guess = observed.unwrap_or(*guess));
    }
    Sample::new(shape, guess)
}

/// The settings of [`inpaint`], chosen on Set12 with half of the values missing.
struct Inpainting;

impl Inpainting {
    /// How much a guessed value counts, beside 1 for an observed one.
    const GUESS: f32 = 0.06;
    /// What residuals may have, as a share of the standard deviation of the observed values.
    const ERRORS: [f32; 5] = [0.4, 0.249, 0.155, 0.0964, 0.06];
    /// The most filters of a group: more would follow errors of the guess.
    const MOST: usize = 14;
    const PATCHES: usize = 8_000;
    const STRIDE: usize = 4;
    const MEMBERS: usize = 16;
    const REACH: usize = 10;
}

/// The standard deviation of the observed values.
fn deviation(image: &Sample<f32>) -> f32 {
    let n = image.n_observed() as f64;
    let mean = image.observed().map(f64::from).sum::<f64>() / n;
    (image.observed().map(|v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt() as f32
}
