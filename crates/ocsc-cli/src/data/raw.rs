//! Raw frames from a pipe, as `ffmpeg -f rawvideo` writes them: one after the other, nothing in between.
//!
//! A pipe has neither a length nor a second pass, so this is no [`super::Source`]; [`crate::run::pipe`] learns and codes from it.

use super::mask;
use anyhow::{Context, Result};
use ocsc::{Sample, Shape};
use std::io::Read;

/// How a pixel is written, under ffmpeg's name (`-pix_fmt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pixels {
    /// 8 bits
    #[value(alias = "gray8")]
    Gray,
    /// 16 bits, the low byte first
    Gray16le,
    /// 32-bit floats, taken as they are
    #[value(alias = "f32le")]
    Grayf32le,
    /// Red, green and blue in 8 bits each
    Rgb24,
    /// Red, green and blue in 16 bits each, the low byte first
    Rgb48le,
}

impl Pixels {
    /// 1 for gray, 3 for colour.
    fn channels(self) -> usize {
        match self {
            Pixels::Gray | Pixels::Gray16le | Pixels::Grayf32le => 1,
            Pixels::Rgb24 | Pixels::Rgb48le => 3,
        }
    }

    /// Bytes of one number.
    fn size(self) -> usize {
        match self {
            Pixels::Gray | Pixels::Rgb24 => 1,
            Pixels::Gray16le | Pixels::Rgb48le => 2,
            Pixels::Grayf32le => 4,
        }
    }

    /// The value of a number; levels become [0, 1].
    fn value(self, bytes: &[u8]) -> f64 {
        match *bytes {
            [level] => f64::from(level) / 255.0,
            [low, high] => f64::from(u16::from_le_bytes([low, high])) / 65535.0,
            [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
            _ => f64::NAN,
        }
    }
}

/// Frames of one size, read one at a time.
pub(crate) struct Frames<R> {
    input: R,
    pixels: Pixels,
    shape: Shape,
    nan_is_missing: bool,
    /// Bytes of a last frame that ended early.
    pub(crate) left_over: usize,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(input: R, height: usize, width: usize, pixels: Pixels, nan_is_missing: bool) -> Self {
        let shape = Shape { channels: pixels.channels(), depth: 1, height, width };
        Frames { input, pixels, shape, nan_is_missing, left_over: 0 }
    }

    /// The bytes of one frame; saturates.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.len().saturating_mul(self.pixels.size())
    }

    /// The next frame; none at the end, and where the last one ended early.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Sample<f64>>> {
        let mut bytes = Vec::new();
        // Memory grows with what arrives, not with what was announced.
        let wanted = self.bytes();
        let read = self.input.by_ref().take(wanted as u64).read_to_end(&mut bytes);
        if read.context("cannot be read")? < wanted {
            self.left_over = bytes.len();
            return Ok(None);
        }
        let (channels, size) = (self.shape.channels, self.pixels.size());
        let plane = |c: usize| bytes.chunks_exact(size).skip(c).step_by(channels).map(|b| self.pixels.value(b));
        let values = (0..channels).flat_map(plane).collect();
        mask::sample(self.shape, values, self.nan_is_missing).map(Some)
    }
}
