//! Pictures made from arrays, as PNG: dictionaries, samples and differences. The commands and `report.rs` use them.
//!
//! An array is cut into panels (one per depth slice, and per channel unless three of them make a colour); a panel of
//! height 1 is drawn as a small line plot, any other as pixels.

#[cfg(test)]
mod tests;

use anyhow::{Context, Result, ensure};
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::{DynamicImage, Rgba, RgbaImage, imageops};
use ocsc::{Dictionary, Real, Sample, Shape};
use std::io::Cursor;
use std::path::Path;

/// The side a mosaic aims at, in pixels: sharp on dense screens, small as a file.
const MOSAIC_SIDE: usize = 960;
/// Filters are never magnified more than this.
const MAX_SCALE: usize = 16;
/// The widest plot of a 1-D signal.
const MAX_PLOT: usize = 640;
/// Line plots are drawn this many times larger than shown.
const SUPERSAMPLING: usize = 3;
/// Behind a line plot, its zero line, and the line itself.
const PAPER: Rgba<u8> = Rgba([246, 246, 244, 255]);
const RULE: Rgba<u8> = Rgba([205, 205, 200, 255]);
const INK: Rgba<u8> = Rgba([33, 90, 160, 255]);
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
        let written = ocsc::checkpoint::replace_file(path, |file| std::fs::write(file, bytes));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// All filters in ascending order of variance, row by row on a near-square grid, magnified by a whole number.
///
/// Each filter is divided by its own largest magnitude, so that zero is mid-gray (128), -max black and +max white, and a
/// filter that is all zero is plain gray. Filters of three channels are shown in colour, other channels side by side, and
/// so are the depth slices of 3-D filters. Filters of height 1 are line plots.
pub(crate) fn dictionary_mosaic<T: Real>(dictionary: &Dictionary<T>) -> Picture {
    let layout = Layout::plan(dictionary.n_filters(), dictionary.shape());
    let mut pixels = layout.canvas();
    for (i, k) in dictionary.by_variance().into_iter().enumerate() {
        let filter: Vec<f64> = dictionary.filter(k).iter().map(|v| v.f64()).collect();
        let (x, y) = layout.corner(i);
        for (panel, values) in panels(&filter, dictionary.shape()).iter().enumerate() {
            let tile = layout.draw(values, dictionary.shape(), max_abs(&filter));
            imageops::replace(&mut pixels, &tile, (x + panel * layout.panel_pitch()) as i64, y as i64);
        }
    }
    Picture { pixels }
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
        return Picture { pixels: plot(&wave, MAX_PLOT, MAX_PLOT / 4) };
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
        return Ok(Picture { pixels: plot(&values, MAX_PLOT, MAX_PLOT / 4) });
    }
    let middle = shape.depth / 2 * shape.height * shape.width;
    Ok(Picture { pixels: raster(shape, |i| diverging(values[middle + i])) })
}

/// How a mosaic is arranged; lengths in pixels.
struct Layout {
    n: usize,
    columns: usize,
    /// The size of one panel, and how often a pixel is repeated in it.
    panel: (usize, usize),
    scale: usize,
    panels: usize,
    /// Between filters, and between the panels of one.
    gap: usize,
    inner_gap: usize,
}

impl Layout {
    fn plan(n: usize, shape: Shape) -> Layout {
        let signal = is_signal(shape);
        let panels = if shape.channels == 3 && !signal { shape.depth } else { shape.channels * shape.depth };
        // A line plot is twice as wide as high, however long the filter.
        let (height, width) = if signal { (1, 2) } else { (shape.height, shape.width) };
        let columns = columns(n, (panels * width) as f64 / height as f64);
        let unit = MOSAIC_SIDE / (columns * panels * width).max(1);
        let (panel, scale) = if signal {
            let side = unit.clamp(24, 128);
            ((2 * side, side), 1)
        } else {
            // Small filters stay legible even if the mosaic of thousands grows past its aim.
            let scale = unit.clamp(if width.max(height) <= 16 { 2 } else { 1 }, MAX_SCALE);
            ((width * scale, height * scale), scale)
        };
        let inner_gap = if signal { 2 } else { scale.div_ceil(4) };
        // Wide enough that the panels of one filter are seen to belong together.
        let gap = inner_gap.max(2) * if panels > 1 { 4 } else { 2 };
        Layout { n, columns, panel, scale, panels, gap, inner_gap }
    }

    fn panel_pitch(&self) -> usize {
        self.panel.0 + self.inner_gap
    }

    /// From one filter to the next: (to the right, down).
    fn pitch(&self) -> (usize, usize) {
        (self.panels * self.panel_pitch() - self.inner_gap + self.gap, self.panel.1 + self.gap)
    }

    fn corner(&self, i: usize) -> (usize, usize) {
        let (right, down) = self.pitch();
        (i % self.columns * right, i / self.columns * down)
    }

    fn canvas(&self) -> RgbaImage {
        let (right, down) = self.pitch();
        let rows = self.n.div_ceil(self.columns);
        RgbaImage::new((self.columns * right - self.gap) as u32, (rows * down - self.gap) as u32)
    }

    /// One panel of a filter whose largest magnitude is `peak`.
    fn draw(&self, values: &[f64], shape: Shape, peak: f64) -> RgbaImage {
        let unit: Vec<f64> = values.iter().map(|v| if peak > 0.0 { v / peak } else { 0.0 }).collect();
        if is_signal(shape) {
            return plot(&unit, self.panel.0, self.panel.1);
        }
        let plane = shape.height * shape.width;
        let colour = unit.len() == 3 * plane;
        let small = raster(shape, |i| [0, 1, 2].map(|c| gray_level(unit[if colour { c * plane + i } else { i }])));
        let scale = self.scale as u32;
        RgbaImage::from_fn(self.panel.0 as u32, self.panel.1 as u32, |x, y| *small.get_pixel(x / scale, y / scale))
    }
}

/// How many tiles of this aspect (width over height) to put in a row: near-square as a whole, with few empty places.
fn columns(n: usize, aspect: f64) -> usize {
    let cost = |columns: usize| {
        let rows = n.div_ceil(columns);
        let empty = (rows * columns - n) as f64 / n as f64;
        (columns as f64 * aspect / rows as f64).ln().abs() + 0.5 * empty
    };
    // From wide to narrow, since the first of equals is taken and pages are read in rows.
    (1..=n).rev().min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
}

/// One spatial axis only.
fn is_signal(shape: Shape) -> bool {
    shape.depth == 1 && shape.height == 1
}

/// The planes of an array (channel, depth, height, width) that are shown side by side; a plane of colour is (3, height,
/// width).
fn panels(data: &[f64], shape: Shape) -> Vec<Vec<f64>> {
    let plane = shape.height * shape.width;
    if shape.channels != 3 || is_signal(shape) {
        return data.chunks(plane).map(<[f64]>::to_vec).collect();
    }
    let slice = |c: usize, z: usize| &data[(c * shape.depth + z) * plane..][..plane];
    (0..shape.depth).map(|z| (0..3).flat_map(|c| slice(c, z)).copied().collect()).collect()
}

fn max_abs(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, v| m.max(v.abs()))
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

/// A line plot of values from -1 (bottom) to 1 (top), over a rule at zero; drawn large, then shrunk to soften its edges.
fn plot(values: &[f64], width: usize, height: usize) -> RgbaImage {
    let large = sharp_plot(values, width * SUPERSAMPLING, height * SUPERSAMPLING);
    imageops::resize(&large, width as u32, height as u32, imageops::FilterType::Triangle)
}

/// Each column of pixels is inked from the lowest to the highest value near it, so long signals keep their envelope and
/// short ones become connected lines.
fn sharp_plot(values: &[f64], width: usize, height: usize) -> RgbaImage {
    let mut image = RgbaImage::from_pixel(width as u32, height as u32, PAPER);
    let (half, pen) = (height as f64 / 2.0, SUPERSAMPLING - 1);
    let row = |v: f64| (half - v * 0.85 * half).round() as usize;
    for y in row(0.0)..(row(0.0) + SUPERSAMPLING).min(height) {
        (0..width).for_each(|x| image.put_pixel(x as u32, y as u32, RULE));
    }
    let last = values.len().saturating_sub(1) as f64;
    let at = |t: f64| {
        let i = t.floor() as usize;
        let next = values[(i + 1).min(values.len() - 1)];
        values[i] + t.fract() * (next - values[i])
    };
    for x in 0..width {
        let place = |x: usize| x.min(width) as f64 / width as f64 * last;
        let (from, to) = (place(x.saturating_sub(pen)), place(x + 1 + pen));
        let inside = (from.ceil() as usize..=to.floor() as usize).map(|i| values[i]);
        let (lo, hi) = inside.chain([at(from), at(to)]).fold((1.0, -1.0), |(lo, hi), v| (v.min(lo), v.max(hi)));
        for y in row(hi).saturating_sub(pen)..=(row(lo) + pen).min(height - 1) {
            image.put_pixel(x as u32, y as u32, INK);
        }
    }
    image
}
