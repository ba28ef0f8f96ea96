//! Pictures on disk, written as the picture they were made of: in the same format and depth, with the same colour profile.

use super::image::{Kind, kind};
use crate::console::told;
use ::image::codecs::jpeg::JpegEncoder;
use ::image::codecs::png::PngEncoder;
use ::image::codecs::tiff::TiffEncoder;
use ::image::codecs::webp::WebPEncoder;
use ::image::{DynamicImage, ImageBuffer, ImageEncoder, ImageFormat, Luma, Rgb};
use anyhow::{Context, Result, anyhow, bail};
use ocsc::replace::write_file;
use ocsc::{Sample, Shape};
use std::io::Cursor;
use std::path::Path;

/// The best quality of which files are not absurdly large.
const JPEG_QUALITY: u8 = 95;

/// How a picture is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) format: ImageFormat,
    /// The largest value: 255 or 65535.
    pub(crate) white: u16,
    /// Whether it has an opacity, which is not written.
    pub(crate) has_alpha: bool,
    /// Whether it has notes of the camera (EXIF), which are not written: they tell of the size, and how the camera was held.
    pub(crate) has_exif: bool,
}

impl Style {
    /// Of the picture in a file; what is stored as floats is written with 16 bits.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let kind = kind(path).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))?;
        let Kind { format, color, has_exif, .. } = kind;
        let wide = color.bytes_per_pixel() > color.channel_count() && format != ImageFormat::Jpeg;
        let white = if wide { u16::MAX } else { u8::MAX.into() };
        Ok(Style { format, white, has_alpha: color.has_alpha(), has_exif })
    }

    /// Returns the ending of file names.
    pub(crate) fn ending(self) -> &'static str {
        self.format.extensions_str().first().copied().unwrap_or("png")
    }

    /// Rounds values in [0, 1] to those that the file will hold.
    pub(crate) fn rounded(self, sample: &Sample<f32>) -> Sample<f32> {
        let white = f64::from(self.white);
        sample.map(|v| (v * white).round().clamp(0.0, white) / white)
    }

    /// Writes a picture of values in [0, 1], gray or colour, with the colour profile of the one in the file `like`.
    pub(crate) fn write(self, path: &Path, sample: &Sample<f32>, like: &Path) -> Result<()> {
        let profile = kind(like).ok().and_then(|kind| kind.profile);
        let profile = profile.filter(|profile| fits(profile, sample.shape().channels));
        let written = self.encode(sample, profile).and_then(|bytes| Ok(write_file(path, bytes)?));
        written.map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
    }

    fn encode(self, sample: &Sample<f32>, profile: Option<Vec<u8>>) -> Result<Vec<u8>> {
        let shape = sample.shape();
        let (width, height) = (u32::try_from(shape.width)?, u32::try_from(shape.height)?);
        let white = f32::from(self.white);
        let level = |v: f32| (v * white).round().clamp(0.0, white) as u16;
        let words = interleaved(shape, sample.data(), level);
        let bytes = || words.iter().map(|v| *v as u8).collect::<Vec<u8>>();
        let size = "a picture's values";
        let image: DynamicImage = match (shape.channels, self.white) {
            (1, 255) => ImageBuffer::<Luma<u8>, _>::from_raw(width, height, bytes()).context(size)?.into(),
            (3, 255) => ImageBuffer::<Rgb<u8>, _>::from_raw(width, height, bytes()).context(size)?.into(),
            (1, _) => ImageBuffer::<Luma<u16>, _>::from_raw(width, height, words).context(size)?.into(),
            (3, _) => ImageBuffer::<Rgb<u16>, _>::from_raw(width, height, words).context(size)?.into(),
            _ => bail!("a sample of {shape} is no picture; expected 1 or 3 channels"),
        };
        let mut encoded = Cursor::new(Vec::new());
        match self.format {
            ImageFormat::Jpeg => put(&image, JpegEncoder::new_with_quality(&mut encoded, JPEG_QUALITY), profile)?,
            ImageFormat::Png => put(&image, PngEncoder::new(&mut encoded), profile)?,
            ImageFormat::Tiff => put(&image, TiffEncoder::new(&mut encoded), profile)?,
            ImageFormat::WebP => put(&image, WebPEncoder::new_lossless(&mut encoded), profile)?,
            // These have no place for a profile.
            format => image.write_to(&mut encoded, format)?,
        }
        Ok(encoded.into_inner())
    }
}

/// Encodes a picture, with a colour profile if there is one.
fn put(image: &DynamicImage, mut encoder: impl ImageEncoder, profile: Option<Vec<u8>>) -> Result<()> {
    profile.map_or(Ok(()), |profile| encoder.set_icc_profile(profile))?;
    Ok(image.write_with_encoder(encoder)?)
}

/// Whether a colour profile is of pictures with so many channels, as its header says: not that of the inks of a JPEG in CMYK.
fn fits(profile: &[u8], channels: usize) -> bool {
    let colours: &[u8] = if channels == 1 { b"GRAY" } else { b"RGB " };
    profile.get(16..20) == Some(colours)
}

/// From (channel, pixel) to (pixel, channel).
fn interleaved(shape: Shape, data: &[f32], level: impl Fn(f32) -> u16) -> Vec<u16> {
    let pixels = shape.pixels();
    (0..shape.len()).map(|i| level(data[i % shape.channels * pixels + i / shape.channels])).collect()
}
