//! Images with their gaps filled.
//!
//! A smooth guess is improved (`invert.rs`). The support of a group comes from the guess, the coefficients from the observed values,
//! beside which a guessed one counts [`Inpainting::GUESS`]. Observed values are put back after every step.

use super::frame::Frame;
use super::invert::Inversion;
use super::{Options, fill, signal, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample, random};
use rand::RngExt;

/// Returns an image with what was not observed filled in; observed values are kept.
pub fn inpaint(image: &Sample<f32>, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    signal::check_image(image.shape())?;
    let Some(seen) = seen(image) else {
        return Frame::new(image.shape(), start::start(image.shape(), options.dictionary.as_ref())?.shape)
            .map(|_| image.clone());
    };
    for (c, seen) in seen.chunks_exact(image.shape().pixels()).enumerate() {
        if seen.iter().all(|w| *w == 0.0) {
            return Err(Error::invalid("mask", "at least one observed value in every channel", format!("none in {c}")));
        }
    }
    let guess = fill::fill(image.shape(), image.data(), &seen, monitor)?;
    let miss = miss(image, &seen, options.seed, monitor)?;
    let steps = Inpainting::ERRORS.map(|share| share * miss);
    let trust: Vec<f32> = seen.iter().map(|w| w + (1.0 - w) * Inpainting::GUESS).collect();
    let keep = |mut guess: Vec<f32>, _: f32| {
        let observed = image.data().iter().zip(&seen).map(|(v, w)| (*w > 0.0).then_some(*v));
        guess.iter_mut().zip(observed).for_each(|(guess, observed)| *guess = observed.unwrap_or(*guess));
        Ok(guess)
    };
    let (shape, most, members) = (image.shape(), Inpainting::MOST, Inpainting::MEMBERS);
    let inversion = Inversion { consistent: &keep, shape, steps: &steps, trust: Some(&trust), most, members };
    Sample::new(shape, inversion.run(guess, options, monitor)?)
}

/// Returns 1 for every observed value and 0 for others; none if all were observed.
fn seen(image: &Sample<f32>) -> Option<Vec<f32>> {
    image.mask().map(|mask| mask.iter().map(|seen| f32::from(u8::from(*seen))).collect())
}

/// The settings of [`inpaint()`], chosen on Set12 with half of the values missing.
struct Inpainting;

impl Inpainting {
    /// How much a guessed value counts, beside 1 for an observed one.
    const GUESS: f32 = 0.06;
    /// What residuals may have, as a share of what the smooth guess misses.
    const ERRORS: [f32; 5] = [1.8, 1.12, 0.7, 0.434, 0.27];
    const MOST: usize = 14;
    /// One in so many observed values is hidden to learn what a smooth guess is worth.
    const HIDDEN: usize = 10;
    const MEMBERS: usize = 16;
}

/// The root mean square by which a smooth guess misses observed values that are hidden from it, one in [`Inpainting::HIDDEN`]: the
/// scale of the detail that is to be filled in, whatever the contrast of the image.
fn miss(image: &Sample<f32>, seen: &[f32], seed: u64, monitor: &dyn Monitor) -> Result<f32> {
    let mut rng = random::stream(seed, random::HIDDEN);
    let hidden: Vec<bool> = seen.iter().map(|w| rng.random_range(0..Inpainting::HIDDEN) == 0 && *w > 0.0).collect();
    let left: Vec<f32> = seen.iter().zip(&hidden).map(|(w, hidden)| if *hidden { 0.0 } else { *w }).collect();
    let guess = fill::fill(image.shape(), image.data(), &left, monitor)?;
    let pairs = guess.iter().zip(image.data()).zip(&hidden).filter(|(_, hidden)| **hidden);
    let (sum, n) = pairs.fold((0.0, 0), |(sum, n), ((g, v), _)| (sum + f64::from(g - v).powi(2), n + 1));
    Ok((sum / f64::from(n.max(1))).sqrt() as f32)
}
