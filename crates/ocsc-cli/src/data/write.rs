//! Samples on disk: `.npy` with the exact values, PNG to look at.
//!
//! Every file is written to a temporary sibling and renamed, so that a reader sees the old file or the new one and a
//! run that is cut short leaves no halves.

use super::npy;
use crate::console::told;
use ::image::codecs::png::PngEncoder;
use ::image::{ExtendedColorType, ImageEncoder};
use anyhow::{Result, anyhow, bail, ensure};
use ocsc::replace::write_file;
use ocsc::{Real, Sample};
use std::path::Path;

/// Writes the values as they are, with axes (H, W), or as many spatial axes as `rank` says; several channels come
/// first: (C, H, W).
pub(crate) fn write_npy<T: Real>(path: &Path, sample: &Sample<T>, rank: usize) -> Result<()> {
    let shape = sample.shape();
    let mut axes = shape.axes(rank);
    if shape.channels > 1 {
        axes.insert(0, shape.channels);
    }
    let result = if axes.iter().product::<usize>() == shape.len() {
        let mut data = Vec::with_capacity(size_of_val(sample.data()));
        sample.data().iter().for_each(|v| v.write_le(&mut data));
        let bytes = npy::encode(descr::<T>(), &axes, &data);
        write_file(path, bytes).map_err(anyhow::Error::from)
    } else {
        Err(anyhow!("a sample of {shape} has more than {rank} spatial axes"))
    };
    result.map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

/// Writes an 8-bit gray or colour picture: `lo` and below is black, `hi` and above is white.
pub(crate) fn write_png<T: Real>(path: &Path, sample: &Sample<T>, lo: f64, hi: f64) -> Result<()> {
    let written = encode_png(sample, lo, hi).and_then(|png| Ok(write_file(path, png)?));
    written.map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

fn encode_png<T: Real>(sample: &Sample<T>, lo: f64, hi: f64) -> Result<Vec<u8>> {
    ensure!(lo.is_finite() && hi.is_finite() && lo < hi, "expected black below white, found {lo} and {hi}");
    let shape = sample.shape();
    let color = match (shape.channels, shape.depth) {
        (1, 1) => ExtendedColorType::L8,
        (3, 1) => ExtendedColorType::Rgb8,
        _ => bail!("a sample of {shape} is no picture; expected 1 or 3 channels and no depth"),
    };
    let level = |v: T| ((v.f64() - lo) / (hi - lo) * 255.0).round().clamp(0.0, 255.0) as u8;
    let mut pixels = Vec::with_capacity(shape.len());
    for i in 0..shape.pixels() {
        pixels.extend((0..shape.channels).map(|c| level(sample.data()[c * shape.pixels() + i])));
    }
    let mut png = Vec::new();
    let (width, height) = (u32::try_from(shape.width)?, u32::try_from(shape.height)?);
    PngEncoder::new(&mut png).write_image(&pixels, width, height, color)?;
    Ok(png)
}

/// Numpy's name of the scalar type.
pub(crate) fn descr<T: Real>() -> &'static str {
    if T::NAME == "f32" { "<f4" } else { "<f8" }
}
