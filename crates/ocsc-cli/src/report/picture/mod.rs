//! Pictures made from arrays, as PNG: dictionaries, samples and differences. The commands and `report.rs` use them.
//!
//! An array is cut into panels (one per depth slice, and per channel unless three of them make a colour); an array of
//! height 1 is drawn as a small line plot, any other as pixels. Dictionaries are in `mosaic.rs`, line plots in `plot.rs`.

mod mosaic;
mod plot;
#[cfg(test)]
mod tests;

pub(crate) use mosaic::{dictionary_mosaic, legend, numbered_mosaic};

use anyhow::{Context, Result, ensure};
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::{DynamicImage, Rgba, RgbaImage};
use ocsc::{Real, Sample, Shape};
use plot::plot;
use std::io::Cursor;
use std::path::Path;

/// The widest plot of a 1-D signal.
const MAX_PLOT: usize = 640;
/// Colours of a difference of 0, 1/2 and 1, for positive and negative ones (ColorBrewer's RdBu).
const REDS: [[f64; 3]; 3] = [[247.0, 247.0, 247.0], [239.0, 138.0, 98.0], [178.0, 24.0, 43.0]];
const BLUES: [[f64; 3]; 3] = [[247.0, 247.0, 247.0], [103.0, 169.0, 207.0], [33.0, 102.0, 172.0]];

/// A picture with red, green, blue and opacity. What lies between the tiles of a mosaic is transparent, so that it takes
/// the colour of the page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    pixels: RgbaImage,
}

impl Picture {
    /// A picture of these pixels.
    pub(crate) fn of(pixels: RgbaImage) -> Self {
        Picture { pixels }
    }

    /// The same with sides of at most so many pixels.
    pub(crate) fn at_most(self, side: u32) -> Picture {
        let (width, height) = self.pixels.dimensions();
        if width.max(height) <= side {
            return self;
        }
        let scaled = |n: u32| ((f64::from(n) * f64::from(side) / f64::from(width.max(height))).round() as u32).max(1);
        Picture { pixels: image::imageops::thumbnail(&self.pixels, scaled(width), scaled(height)) }
    }

    /// (width, height) in pixels.
    #[cfg(test)]
    fn size(&self) -> (u32, u32) {
        self.pixels.dimensions()
    }

    /// The bytes of a PNG file.
    pub(crate) fn png_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Cursor::new(vec![]);
        let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Best, PngFilter::Adaptive);
        let whole = DynamicImage::from(self.pixels.clone());
        // A third of the size of the same picture in colour.
        let gray = self.pixels.pixels().all(|p| p.0[0] == p.0[1] && p.0[1] == p.0[2]);
        let image = if gray { DynamicImage::from(whole.into_luma_alpha8()) } else { whole };
        image.write_with_encoder(encoder).context("cannot encode the picture as PNG")?;
        Ok(bytes.into_inner())
    }

    /// Writes a PNG file, first under a temporary name beside it, so that a reader never sees half a picture.
    pub(crate) fn save_png(&self, path: &Path) -> Result<()> {
        let bytes = self.png_bytes()?;
        let written = ocsc::replace::write_file(path, bytes);
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A sample with `lo` black and `hi` white: three channels in colour, any other number as their mean.
///
/// Of a volume or video the middle slice is shown; a 1-D signal is a line plot from `lo` to `hi`.
pub(crate) fn image_gray<T: Real>(sample: &Sample<T>, lo: f64, hi: f64) -> Picture {
    let width = if hi > lo { hi - lo } else { f64::MIN_POSITIVE };
    let unit = |v: f64| ((v - lo) / width).clamp(0.0, 1.0) * 2.0 - 1.0;
    let shape = sample.shape();
    if is_signal(shape) {
        let wave: Vec<f64> = mean_of_channels(sample).into_iter().map(unit).collect();
        return Picture { pixels: plot(&wave, wave.len(), MAX_PLOT, MAX_PLOT / 4) };
    }
    let plane = shape.height * shape.width;
    let pixels = if shape.channels == 3 {
        let colour: Vec<f64> = sample.data().iter().map(|v| v.f64()).collect();
        let middle = &panels(&colour, shape)[shape.depth / 2];
        raster(shape, |i| [0, 1, 2].map(|c| gray_level(unit(middle[c * plane + i]))))
    } else {
        let mean = mean_of_channels(sample);
        raster(shape, |i| [gray_level(unit(mean[shape.depth / 2 * plane + i])); 3])
    };
    Picture { pixels }
}

/// `a - b`, in the mean over the channels: white where they agree, red where `a` is larger, blue where it is smaller, full
/// colour at a difference of `scale`. Slices and signals as in [`image_gray`].
pub(crate) fn difference<T: Real>(a: &Sample<T>, b: &Sample<T>, scale: f64) -> Result<Picture> {
    let shape = a.shape();
    ensure!(shape == b.shape(), "cannot compare samples of different sizes: {shape} and {}", b.shape());
    let scale = if scale > 0.0 { scale } else { f64::MIN_POSITIVE };
    let values: Vec<f64> = mean_of_channels(a)
        .into_iter()
        .zip(mean_of_channels(b))
        .map(|(a, b)| ((a - b) / scale).clamp(-1.0, 1.0))
        .collect();
    if is_signal(shape) {
        return Ok(Picture { pixels: plot(&values, values.len(), MAX_PLOT, MAX_PLOT / 4) });
    }
    let middle = shape.depth / 2 * shape.height * shape.width;
    Ok(Picture { pixels: raster(shape, |i| diverging(values[middle + i])) })
}

/// One spatial axis only.
pub(crate) fn is_signal(shape: Shape) -> bool {
    shape.depth == 1 && shape.height == 1
}

/// Says how far the difference of a signal is drawn, which has no colours for a scale.
pub(crate) fn range_of_difference(shape: Shape, scale: f64) -> String {
    if is_signal(shape) { format!("; difference drawn from −{scale:.3} to {scale:.3}") } else { String::new() }
}

/// The planes of an array (channel, depth, height, width) that are shown side by side; a plane of colour is (3, height,
/// width). A signal is one plane, (channel, width).
fn panels(data: &[f64], shape: Shape) -> Vec<Vec<f64>> {
    let plane = shape.height * shape.width;
    if is_signal(shape) {
        return vec![data.to_vec()];
    }
    if shape.channels != 3 {
        return data.chunks(plane).map(<[f64]>::to_vec).collect();
    }
    let slice = |c: usize, z: usize| &data[(c * shape.depth + z) * plane..][..plane];
    (0..shape.depth).map(|z| (0..3).flat_map(|c| slice(c, z)).copied().collect()).collect()
}

fn mean_of_channels<T: Real>(sample: &Sample<T>) -> Vec<f64> {
    let shape = sample.shape();
    let mut mean = vec![0.0; shape.pixels()];
    for channel in sample.data().chunks(shape.pixels()) {
        mean.iter_mut().zip(channel).for_each(|(m, v)| *m += v.f64() / shape.channels as f64);
    }
    mean
}

/// A picture of height x width pixels, from the colour of pixel i in row-major order.
fn raster(shape: Shape, colour: impl Fn(usize) -> [u8; 3]) -> RgbaImage {
    RgbaImage::from_fn(shape.width as u32, shape.height as u32, |x, y| {
        let [r, g, b] = colour(y as usize * shape.width + x as usize);
        Rgba([r, g, b, 255])
    })
}

/// -1 is black, 0 mid-gray, 1 white.
fn gray_level(unit: f64) -> u8 {
    (127.5 + 127.5 * unit).round() as u8
}

/// -1 is blue, 0 white, 1 red.
fn diverging(unit: f64) -> [u8; 3] {
    let stops = if unit < 0.0 { BLUES } else { REDS };
    let t = 2.0 * unit.abs().min(1.0);
    let (i, f) = if t < 1.0 { (0, t) } else { (1, t - 1.0) };
    [0, 1, 2].map(|c| (stops[i][c] + f * (stops[i + 1][c] - stops[i][c])).round() as u8)
}
