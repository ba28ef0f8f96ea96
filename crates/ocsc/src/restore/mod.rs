//! From bad images to better ones: denoising, inpainting, deblurring, upscaling and demosaicking with sparse codes of patches.
//!
//! # The problem
//!
//! What was observed is y = A x + noise: all of the image x ([`denoise()`]), some of its values ([`inpaint()`], [`demosaic()`]), or a blurred or
//! smaller one ([`deblur()`], [`upscale()`]). Every patch of x on a lattice of positions, together with the patches most like it, is a sum
//! of few filters:
//!
//! ```text
//! min over D, supports S_g, codes c   sum over groups g |S_g|     with  || P_q x - mean - sum_(k in S_g) c_qk d_k ||^2 <= (C sigma)^2 n
//! ```
//!
//! and the image is the average of all estimates of its patches. Codes on a lattice whose stride is the filters' size are the
//! convolutional codes of section "Averaging" of Simon and Elad (NeurIPS 2019); all offsets of the lattice are all patches. The
//! steps, each in its file:
//!
//! | step | file | reference |
//! |---|---|---|
//! | how much noise there is | `noise.rs` | Immerkaer 1996 |
//! | filters to begin with | `start.rs` | learned from dead leaves |
//! | filters that suit this image | `adapt.rs` | Elad and Aharon 2006; Mairal et al. 2010 |
//! | similar patches | `matching.rs` | Mairal et al. 2009 |
//! | one support for all of them | `pursuit.rs` | Tropp, Gilbert, Strauss 2006 |
//! | coefficients from what was observed | `refit.rs` | Mairal, Elad, Sapiro 2008 |
//! | averages | `pass.rs`, `frame.rs` | Simon and Elad 2019 |
//! | a smooth start for what is missing | `fill.rs` | |
//! | by turns: codes, and what was observed | `invert.rs`, `observe.rs` | Venkatakrishnan, Bouman, Wohlberg 2013 |
//! | other noise | `poisson.rs`, `impulse.rs` | Makitalo, Foi 2011 |
//!
//! `benchmarks/restoration.py` measures the results.
//!
//! # Example
//!
//! ```
//! use ocsc::monitor::Silent;
//! use ocsc::restore::{Options, denoise};
//! use ocsc::{Sample, Shape};
//!
//! let noisy = (0..1024).map(|i| if i % 32 < 16 { 0.2 } else { 0.8 } + 0.1 * ((i * i) as f32).sin()).collect();
//! let noisy = Sample::new(Shape::image(32, 32), noisy)?;
//! let clean = denoise(&noisy, &Options { sigma: Some(0.07), ..Options::default() }, &Silent)?;
//! assert_eq!(clean.shape(), noisy.shape());
//! # Ok::<(), ocsc::Error>(())
//! ```

mod adapt;
mod atoms;
mod cholesky;
mod deblur;
mod demosaic;
mod denoise;
mod fill;
mod frame;
mod impulse;
mod inpaint;
mod invert;
mod matching;
mod noise;
mod observe;
mod pass;
mod poisson;
mod pursuit;
mod refit;
mod signal;
mod start;
#[cfg(test)]
mod tests;
mod upscale;

use crate::{Dictionary, Error, Result, Sample, Samples};
use adapt::Adapt;
use atoms::Atoms;
use frame::Frame;

pub use deblur::deblur;
pub use demosaic::{Pattern, demosaic};
pub use denoise::denoise;
pub use inpaint::inpaint;
pub use noise::SigmaDoubt;
pub use observe::Kernel;
pub use upscale::upscale;

/// Patches that are learned from in a round; images of fewer are learned from in full, as often as patches are drawn.
const PATCHES: usize = 20_000;
/// The most filters of a patch.
const MOST: usize = 32;
/// The most filters of a patch where filters are learned for later use; the built-in ones were made with it.
const LEARNED: usize = 16;

/// How to restore.
#[derive(Clone, Debug)]
pub struct Options {
    /// What noise [`denoise()`] takes out.
    pub noise: Noise,
    /// The standard deviation of Gaussian noise, in the image's units; estimated by [`noise_of`] if absent.
    pub sigma: Option<f64>,
    /// Whether to adapt the filters to the image.
    pub learn_here: bool,
    /// Filters to begin with, of as many channels as the image or of one; the built-in ones if absent.
    pub dictionary: Option<Dictionary<f32>>,
    /// Which patches are learned from.
    pub seed: u64,
}

/// Kinds of noise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Noise {
    /// White, of the same variance everywhere.
    #[default]
    Gaussian,
    /// Of counted photons, so many for a value of 1 (estimated if absent): the variance is proportional to the value.
    Poisson(Option<f64>),
    /// Some values are far off, others are exact: salt and pepper.
    Impulse,
}

impl Default for Options {
    fn default() -> Self {
        Options { noise: Noise::Gaussian, sigma: None, learn_here: true, dictionary: None, seed: 0 }
    }
}

impl Options {
    /// Returns the standard deviation of the noise, if it was given.
    fn checked_sigma(&self) -> Result<Option<f64>> {
        match self.sigma {
            Some(sigma) if !(sigma >= 0.0 && sigma.is_finite()) => {
                Err(Error::invalid("sigma", "a finite number of at least 0", sigma))
            }
            other => Ok(other),
        }
    }
}

/// Returns the standard deviation of white Gaussian noise in an image, by a robust guess: fine texture counts as noise.
pub fn noise_of(image: &Sample<f32>) -> f64 {
    noise::estimate(image)
}

/// Returns why `sigma`, in the image's units, can hardly be the standard deviation of its noise; none if it can, or if it is 0. The
/// functions here take any, so whoever asks people for it may ask this too.
pub fn doubt_of_sigma(image: &Sample<f32>, sigma: f64) -> Option<SigmaDoubt> {
    noise::doubt(image, sigma)
}

/// Learns filters of `side` x `side` values from images without noise, or of `side` values from signals, as the built-in ones were:
/// codes may miss them by `error` (root mean square). The smoothest filters come first.
pub fn learn(
    images: &[Sample<f32>],
    n_filters: usize,
    side: usize,
    error: f64,
    rounds: usize,
) -> Result<Dictionary<f32>> {
    let columns: Option<Vec<Sample<f32>>> = images.iter().map(signal::column).collect();
    let images = columns.as_deref().unwrap_or(images);
    let Some(first) = images.first() else {
        return Err(Error::invalid("images", "at least one", "none"));
    };
    let width = if signal::is_column(first.shape()) { 1 } else { side };
    let shape = crate::Shape { channels: first.shape().channels, depth: 1, height: side, width };
    let drawn = Dictionary::from_patches(n_filters, shape, 2, &images as &dyn Samples<f32>, 0)?;
    let mut atoms = Atoms::new(shape, drawn.data())?;
    let frames = images.iter().map(|image| Ok((Frame::new(image.shape(), shape)?, image.data())));
    let frames = frames.collect::<Result<Vec<_>>>()?;
    let adapt = Adapt { error: error as f32, rounds, most: LEARNED, patches: PATCHES, seed: 0, first: 0 };
    adapt.run(&mut atoms, &frames, &crate::monitor::Silent)?;
    let n = shape.len();
    let mut filters: Vec<&[f32]> = atoms.filters.chunks_exact(n).collect();
    filters.sort_by(|a, b| roughness(a, shape).total_cmp(&roughness(b, shape)));
    Atoms::new(shape, &filters.concat())?.to_dictionary()
}

/// The sum of squared differences of neighbours in a row and in a column.
fn roughness(filter: &[f32], shape: crate::Shape) -> f32 {
    let width = shape.width;
    let across = filter.chunks_exact(width).flat_map(|row| row.windows(2)).map(|pair| (pair[1] - pair[0]).powi(2));
    let plane = |plane: &[f32]| -> f32 {
        (0..plane.len().saturating_sub(width)).map(|i| (plane[i + width] - plane[i]).powi(2)).sum()
    };
    across.sum::<f32>() + filter.chunks_exact(shape.pixels()).map(plane).sum::<f32>()
}
