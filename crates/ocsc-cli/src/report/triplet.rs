//! Held-out samples beside what their codes give back, for reports.

use crate::report::Triplet;
use crate::report::picture::{difference, image_gray};
use crate::run::sparsity::percent;
use anyhow::Result;
use ocsc::learner::coder;
use ocsc::metrics::{psnr, ssim};
use ocsc::train::TEST_TOL;
use ocsc::{Config, Dictionary, Real, Sample};

/// Codes each named sample as test sets are coded, and draws it, its reconstruction and their difference.
pub(crate) fn triplets<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &[(String, Sample<T>)],
    peak: f64,
) -> Result<Vec<Triplet>> {
    let mut coder = coder(config, dictionary, TEST_TOL)?;
    let mut triplets = Vec::new();
    for (name, sample) in samples {
        let coded = coder.code(sample, None)?;
        let reconstruction = coded.code.reconstruct(coded.filters_or(dictionary), config.boundary)?;
        let (low, high) = sample.extremes();
        // Signals and images smaller than its window have none.
        let ssim = ssim(sample, &reconstruction, peak).map_or(String::new(), |ssim| format!("SSIM {ssim:.3}, "));
        triplets.push(Triplet {
            name: name.clone(),
            original_png: image_gray(sample, low, high).png_bytes()?,
            reconstruction_png: image_gray(&reconstruction, low, high).png_bytes()?,
            difference_png: difference(sample, &reconstruction, high.max(-low) / 2.0)?.png_bytes()?,
            caption: format!(
                "PSNR {:.2} dB (peak {peak:.2}), {ssim}{} non-zeros ({} of the values), gap {:.2}\u{a0}%",
                psnr(sample, &reconstruction, peak)?,
                coded.code.nonzeros(),
                percent(coded.code.nonzeros() as f64 / sample.n_observed().max(1) as f64),
                100.0 * coded.relative_gap()
            ),
        });
    }
    Ok(triplets)
}
