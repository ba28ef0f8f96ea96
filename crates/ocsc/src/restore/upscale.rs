//! Images with more pixels.

use super::invert::Inversion;
use super::observe::{Shrink, consistent, resample, taps, transposed};
use super::{Frame, MOST, Options, signal, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample, Shape};

/// Returns an image (channels, 1, height, width) with `factor` times as many pixels along each side, which gives the one at hand when
/// it is made smaller.
pub fn upscale(image: &Sample<f32>, factor: usize, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    let small = image.shape();
    signal::check_image(small)?;
    if image.mask().is_some() {
        let expected = "observed values only (`inpaint` fills the others in)";
        return Err(Error::invalid("image to upscale", expected, "a mask"));
    }
    if !(2..=Upscaling::MOST).contains(&factor) {
        return Err(Error::invalid("factor", format!("2 to {}", Upscaling::MOST), factor));
    }
    let shape = Shape { height: small.height * factor, width: small.width * factor, ..small };
    Frame::new(shape, start::start(shape, options.dictionary.as_ref())?.shape)?;
    let (low, high) = image.extremes();
    let range = (high - low) as f32;
    let start = enlarged(image, shape, factor);
    if range == 0.0 {
        return Sample::new(shape, start);
    }
    let sigma = options.checked_sigma()?.map_or(Upscaling::SIGMA * range, |sigma| sigma as f32);
    let sigma = sigma.max(Upscaling::SIGMA * range);
    let steps = Upscaling::STEPS.map(|t| t * range);
    let observation = Shrink::new([small.height, small.width], factor);
    let consistent = |guess: Vec<f32>, t: f32| {
        let weight = Upscaling::GUESS * (sigma / t).powi(2);
        consistent(&observation, image.data(), &guess, shape.channels, weight, monitor)
    };
    let (consistent, members) = (&consistent, Upscaling::MEMBERS);
    let inversion = Inversion { consistent, shape, steps: &steps, trust: None, most: MOST, members };
    Sample::new(shape, inversion.run(start, options, monitor)?)
}

/// The settings of [`upscale()`], chosen on Set12 with a factor of 3.
struct Upscaling;

impl Upscaling {
    /// The largest factor.
    const MOST: usize = 4;
    /// The noise that is believed in, as a share of the image's range.
    const SIGMA: f32 = 1.0 / 255.0;
    /// t of every step, as a share of the image's range.
    const STEPS: [f32; 8] = [0.05, 0.04, 0.032, 0.026, 0.02, 0.016, 0.013, 0.01];
    /// How much the guess counts, beside what was observed.
    const GUESS: f32 = 0.1;
    const MEMBERS: usize = 16;
}

/// An image made larger by cubic interpolation.
pub(super) fn enlarged(image: &Sample<f32>, shape: Shape, factor: usize) -> Vec<f32> {
    let small = image.shape();
    let places = |n: usize| (0..n * factor).map(|i| taps(i, n, 1.0 / factor as f64)).collect::<Vec<_>>();
    let (rows, columns) = (places(small.height), places(small.width));
    let mut out = Vec::with_capacity(shape.len());
    for plane in image.data().chunks_exact(small.pixels()) {
        let tall = transposed(&resample(plane, small.width, &rows), small.width);
        out.extend(transposed(&resample(&tall, shape.height, &columns), shape.height));
    }
    out
}
