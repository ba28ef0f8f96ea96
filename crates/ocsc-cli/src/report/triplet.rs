//! Held-out samples beside what their codes give back, for reports, as they were before preprocessing.

use crate::report::Triplet;
use crate::report::picture::{difference, image_gray, is_signal, range_of_difference};
use crate::run::sparsity::percent;
use anyhow::Result;
use ocsc::learner::coder;
use ocsc::metrics::{psnr, ssim};
use ocsc::preprocess::Undo;
use ocsc::train::TEST_TOL;
use ocsc::{Config, Dictionary, Real, Sample};

/// Differences are drawn up to this share of a sample's range.
const CONTRAST: f64 = 0.25;

/// A sample that is held out.
pub(crate) struct HeldOut<T> {
    pub(crate) name: String,
    /// As it is coded.
    pub(crate) sample: Sample<T>,
    /// As it was before, and the way back to that.
    pub(crate) original: (Sample<f64>, Undo),
}

/// Codes each sample as test sets are coded, and draws it, its reconstruction and their difference in the units of the data. The
/// figures are those after preprocessing, as in tables.
pub(crate) fn triplets<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: Vec<HeldOut<T>>,
    peak: f64,
) -> Result<Vec<Triplet>> {
    let mut coder = coder(config, dictionary, TEST_TOL)?;
    let mut triplets = Vec::new();
    for HeldOut { name, sample, original: (original, undo) } in samples {
        let coded = coder.code(&sample, None)?;
        let reconstruction = coded.code.reconstruct(coded.filters_or(dictionary), config.boundary)?;
        let back = undo.apply(reconstruction.clone().cast::<f64>()?)?;
        let (low, high) = original.extremes();
        let scale = CONTRAST * (high - low);
        // Signals and images smaller than its window have none.
        let ssim = ssim(&sample, &reconstruction, peak).map_or(String::new(), |ssim| format!("SSIM {ssim:.3}, "));
        triplets.push(Triplet {
            name,
            original_png: image_gray(&original, low, high).png_bytes()?,
            reconstruction_png: image_gray(&back, low, high).png_bytes()?,
            difference_png: difference(&original, &back, scale)?.png_bytes()?,
            scale: Some(scale).filter(|_| !is_signal(original.shape())),
            caption: format!(
                "after preprocessing: PSNR {:.2} dB (peak {peak:.2}), {ssim}{} non-zeros ({} of the values), gap {:.2}\u{a0}%{}",
                psnr(&sample, &reconstruction, peak)?,
                coded.code.nonzeros(),
                percent(coded.code.nonzeros() as f64 / sample.n_observed().max(1) as f64),
                100.0 * coded.relative_gap(),
                range_of_difference(original.shape(), scale)
            ),
        });
    }
    Ok(triplets)
}
