//! Image files: PNG, JPEG, TIFF, BMP, WebP and PNM, decoded one at a time into samples with values in [0, 1].
//!
//! The crate `image` decodes; this file keeps the precision (8-bit, 16-bit and float samples go straight to the scalar
//! type, floats as they are), separates the channels (gray: 1, colour: 3) and drops alpha. What a camera noted about
//! orientation is not applied. Preprocessing is the library's business.

use super::mask;
use anyhow::{Context, Result, ensure};
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use ocsc::{Real, Sample, Shape};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult};

/// The endings by which folders are searched.
pub(crate) const EXTENSIONS: &[&str] =
    &["png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp", "pbm", "pgm", "ppm", "pnm", "pam"];

/// True if the file's name ends like an image's.
pub(crate) fn is_image(path: &Path) -> bool {
    super::has_ending(path, EXTENSIONS)
}

/// Decodes the file by what it holds, whatever its name says.
///
/// Of the formats, only float TIFF can hold NaN.
pub(crate) fn read<T: Real>(path: &Path, nan_is_missing: bool) -> Result<Sample<T>> {
    let len = std::fs::metadata(path)?.len();
    ensure!(len > 0, "the file is empty; expected an image");
    let mut reader = ImageReader::open(path)?.with_guessed_format()?;
    // A small file may claim billions of pixels; true photographs expand by a factor of 30 at the most.
    let mut limits = Limits::default();
    let most = len.saturating_mul(32).max(512 << 20);
    limits.max_alloc = Some(most);
    reader.limits(limits);
    let tiff = reader.format() == Some(ImageFormat::Tiff);
    if let Some(sample) = if tiff { gray_tiff(path, most, nan_is_missing)? } else { None } {
        return Ok(sample);
    }
    let decoded = reader.decode().context("cannot be decoded as an image; it is damaged, or of an unsupported kind")?;
    sample(decoded, nan_is_missing)
}

/// Depth (1), height and width, from the file's header.
pub(crate) fn size(path: &Path) -> Result<[usize; 3]> {
    let reader = ImageReader::open(path)?.with_guessed_format()?;
    let (width, height) = reader.into_dimensions().context("cannot be decoded as an image; it is damaged")?;
    Ok([1, height as usize, width as usize])
}

/// Separates the channels of a decoded image.
fn sample<T: Real>(decoded: DynamicImage, nan_is_missing: bool) -> Result<Sample<T>> {
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let byte = |v: u8| f64::from(v) / 255.0;
    let word = |v: u16| f64::from(v) / 65535.0;
    let (channels, data) = match decoded {
        DynamicImage::ImageLuma8(i) => (1, planes(&i, 1, 1, byte)),
        DynamicImage::ImageLumaA8(i) => (1, planes(&i, 2, 1, byte)),
        DynamicImage::ImageRgb8(i) => (3, planes(&i, 3, 3, byte)),
        DynamicImage::ImageRgba8(i) => (3, planes(&i, 4, 3, byte)),
        DynamicImage::ImageLuma16(i) => (1, planes(&i, 1, 1, word)),
        DynamicImage::ImageLumaA16(i) => (1, planes(&i, 2, 1, word)),
        DynamicImage::ImageRgb16(i) => (3, planes(&i, 3, 3, word)),
        DynamicImage::ImageRgba16(i) => (3, planes(&i, 4, 3, word)),
        DynamicImage::ImageRgb32F(i) => (3, planes(&i, 3, 3, f64::from)),
        DynamicImage::ImageRgba32F(i) => (3, planes(&i, 4, 3, f64::from)),
        other => (3, planes(&other.into_rgb32f(), 3, 3, f64::from)),
    };
    mask::sample(Shape { channels, depth: 1, height, width }, data, nan_is_missing)
}

/// From (pixel, sample) to (channel, pixel), for the first `channels` of `per_pixel` samples.
fn planes<P: Copy>(raw: &[P], per_pixel: usize, channels: usize, value: impl Fn(P) -> f64) -> Vec<f64> {
    let mut data = Vec::with_capacity(raw.len() / per_pixel * channels);
    for c in 0..channels {
        data.extend(raw.chunks_exact(per_pixel).map(|pixel| value(pixel[c])));
    }
    data
}

/// A TIFF of 32- or 64-bit gray values, as microscopes write and `image` refuses; none for all others.
fn gray_tiff<T: Real>(path: &Path, most: u64, nan_is_missing: bool) -> Result<Option<Sample<T>>> {
    let mut limits = tiff::decoder::Limits::default();
    limits.decoding_buffer_size = usize::try_from(most).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new(BufReader::new(File::open(path)?))?.with_limits(limits);
    if !matches!(decoder.colortype()?, ColorType::Gray(32 | 64)) {
        return Ok(None);
    }
    let (width, height) = decoder.dimensions()?;
    let shape = Shape::image(height as usize, width as usize);
    let data = match decoder.read_image().context("cannot be decoded as an image; it is damaged")? {
        DecodingResult::F32(v) => planes(&v, 1, 1, f64::from),
        DecodingResult::F64(v) => planes(&v, 1, 1, |v| v),
        DecodingResult::U32(v) => planes(&v, 1, 1, |v| f64::from(v) / f64::from(u32::MAX)),
        _ => return Ok(None),
    };
    mask::sample(shape, data, nan_is_missing).map(Some)
}
