//! `--resize`: samples scaled to another height and width, each channel and each depth slice by itself.
//!
//! The crate `fast_image_resize` convolves with a Lanczos kernel of three lobes, widened when shrinking so that nothing
//! aliases. It computes in single precision, so a resized sample has the 24 bits of an `f32`, whatever was read.

use anyhow::{Context, Result, bail, ensure};
use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::F32;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use ocsc::{Real, Sample, Shape};
use std::fmt;
use std::str::FromStr;

/// More pixels than any photograph; beyond it a typing error would take all memory.
const MAX_PIXELS: usize = 1 << 28;

/// What to scale to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resize {
    /// The shorter of height and width gets this length, the other follows.
    Shortest(u32),
    /// Height and width, whatever becomes of the aspect.
    Exact(u32, u32),
}

impl FromStr for Resize {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let lengths: Result<Vec<u16>, _> = text.split('x').map(u16::from_str).collect();
        match lengths.as_deref() {
            Ok(&[short]) if short > 0 => Ok(Resize::Shortest(short.into())),
            Ok(&[h, w]) if h > 0 && w > 0 => Ok(Resize::Exact(h.into(), w.into())),
            _ => bail!("expected the length of the shortest side, such as 256, or HxW, such as 480x640, up to 65535"),
        }
    }
}

impl Resize {
    /// Depth, height and width of a sample after scaling.
    pub(crate) fn size(&self, [depth, height, width]: [usize; 3]) -> Result<[usize; 3]> {
        let (h, w) = match *self {
            Resize::Exact(h, w) => (h as usize, w as usize),
            Resize::Shortest(short) => {
                let scale = f64::from(short) / height.min(width) as f64;
                let scaled = |length: usize| (length as f64 * scale).round() as usize;
                (scaled(height), scaled(width))
            }
        };
        let pixels = depth.saturating_mul(h).saturating_mul(w);
        ensure!(pixels <= MAX_PIXELS, "--resize: expected at most {MAX_PIXELS} pixels, found {depth}x{h}x{w}");
        Ok([depth, h, w])
    }

    /// The sample scaled; unchanged to the last bit where it has the size already.
    pub(crate) fn apply<T: Real>(&self, sample: Sample<T>) -> Result<Sample<T>> {
        let full = sample.shape();
        let [depth, height, width] = self.size(full.spatial())?;
        if full.spatial() == [depth, height, width] {
            return Ok(sample);
        }
        ensure!(sample.mask().is_none(), "--resize: a masked sample cannot be resized; resize data and mask before");
        let length = |n: usize| u32::try_from(n).context("--resize: an axis that is too long");
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
        let mut resizer = Resizer::new();
        let mut scaled = TypedImage::<F32>::new(length(width)?, length(height)?);
        let shape = Shape { channels: full.channels, depth, height, width };
        let mut data = Vec::with_capacity(shape.len());
        for plane in sample.data().chunks_exact(full.height * full.width) {
            let pixels: Vec<F32> = plane.iter().map(|v| F32::new(v.f64() as f32)).collect();
            let plane = TypedImageRef::new(length(full.width)?, length(full.height)?, &pixels)?;
            resizer.resize_typed(&plane, &mut scaled, &options)?;
            data.extend(scaled.pixels().iter().map(|pixel| T::of(pixel.0.into())));
        }
        Ok(Sample::new(shape, data)?)
    }
}

impl fmt::Display for Resize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resize::Shortest(short) => write!(f, "{short}"),
            Resize::Exact(h, w) => write!(f, "{h}x{w}"),
        }
    }
}
