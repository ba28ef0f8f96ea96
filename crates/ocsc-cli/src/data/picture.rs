//! Pictures on disk, written as the picture they were made of: in the same format and depth.

use super::image::kind;
use crate::console::told;
use ::image::codecs::jpeg::JpegEncoder;
use ::image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgb};
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
}

impl Style {
    /// Of the picture in a file; what is stored as floats is written with 16 bits.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let (format, color) = kind(path).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))?;
        let wide = color.bytes_per_pixel() > color.channel_count() && format != ImageFormat::Jpeg;
        Ok(Style { format, white: if wide { u16::MAX } else { u8::MAX.into() } })
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

    /// Writes a picture of values in [0, 1], gray or colour.
    pub(crate) fn write(self, path: &Path, sample: &Sample<f32>) -> Result<()> {
        let written = self.encode(sample).and_then(|bytes| Ok(write_file(path, bytes)?));
        written.map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
    }

    fn encode(self, sample: &Sample<f32>) -> Result<Vec<u8>> {
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
            ImageFormat::Jpeg => image.write_with_encoder(JpegEncoder::new_with_quality(&mut encoded, JPEG_QUALITY))?,
            format => image.write_to(&mut encoded, format)?,
        }
        Ok(encoded.into_inner())
    }
}

/// From (channel, pixel) to (pixel, channel).
fn interleaved(shape: Shape, data: &[f32], level: impl Fn(f32) -> u16) -> Vec<u16> {
    let pixels = shape.pixels();
    (0..shape.len()).map(|i| level(data[i % shape.channels * pixels + i / shape.channels])).collect()
}
