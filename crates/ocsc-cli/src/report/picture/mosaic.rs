//! A dictionary as one picture: its filters on a near-square grid.

use super::plot::{INKS, plot};
use super::{Picture, gray_level, is_signal, panels, raster};
use crate::report::letters::{HEIGHT, WIDTH, dots};
use image::{Rgba, RgbaImage, imageops};
use ocsc::{Dictionary, Real, Shape};

/// The side a mosaic aims at, in pixels: sharp on dense screens, small as a file.
const MOSAIC_SIDE: usize = 960;
/// Filters are never magnified more than this.
const MAX_SCALE: usize = 16;

/// The side of a digit's dot, and how many dots stand from one digit to the next, and from a number to its filter.
const DOT: usize = 2;
const LETTER: usize = WIDTH + 1;
const BELOW: usize = 2;
/// Digits are legible on black and on white.
const INK: Rgba<u8> = Rgba([128, 128, 128, 255]);

/// All filters in ascending order of variance, row by row on a near-square grid, magnified by a whole number.
///
/// Each filter is divided by the largest magnitude shown, so that zero is mid-gray (128), -max black and +max white, and
/// a filter that is all zero is plain gray. Filters of three channels are shown in colour, those of more in the colours
/// of [`shown`], those of two side by side; the depth slices of 3-D filters stand in a row. Filters of height 1 are
/// line plots, with one line per channel. [`legend`] says so to the user.
pub(crate) fn dictionary_mosaic<T: Real>(dictionary: &Dictionary<T>) -> Picture {
    mosaic(dictionary, Layout::plan(dictionary.n_filters(), dictionary.shape()))
}

/// The same with the number of each filter above it, as `ocsc events` and codes count them, from 0 up.
pub(crate) fn numbered_mosaic<T: Real>(dictionary: &Dictionary<T>) -> Picture {
    mosaic(dictionary, Layout::plan(dictionary.n_filters(), dictionary.shape()).numbered())
}

fn mosaic<T: Real>(dictionary: &Dictionary<T>, layout: Layout) -> Picture {
    let mut pixels = layout.canvas();
    for (i, k) in dictionary.by_variance().into_iter().enumerate() {
        let filter: Vec<f64> = dictionary.filter(k).iter().map(|v| v.f64()).collect();
        let (filter, shape) = shown(filter, dictionary.shape());
        let peak = filter.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let (x, y) = layout.corner(i);
        for (panel, values) in panels(&filter, shape).iter().enumerate() {
            let tile = layout.draw(values, shape, peak);
            imageops::replace(&mut pixels, &tile, (x + panel * layout.panel_pitch()) as i64, y as i64);
        }
        if layout.label > 0 {
            write_number(&mut pixels, k, x, y - layout.label);
        }
    }
    Picture { pixels }
}

/// Writes a number with its corner at this place.
fn write_number(pixels: &mut RgbaImage, number: usize, x: usize, y: usize) {
    for (i, digit) in number.to_string().chars().enumerate() {
        for (column, row) in dots(digit) {
            let at = (x + DOT * (i * LETTER + column), y + DOT * row);
            for (across, down) in (0..DOT * DOT).map(|dot| (dot % DOT, dot / DOT)) {
                if let Some(pixel) = pixels.get_pixel_mut_checked((at.0 + across) as u32, (at.1 + down) as u32) {
                    *pixel = INK;
                }
            }
        }
    }
}

/// What the mosaic shows of filters of this shape, beside their order; none for plain gray filters.
pub(crate) fn legend(shape: Shape) -> Option<String> {
    let Shape { channels, depth, .. } = shape;
    let colours = match channels {
        1 => None,
        _ if is_signal(shape) => {
            let names: Vec<&str> = INKS.iter().map(|(name, _)| *name).take(channels).collect();
            let again = if channels > INKS.len() { ", and again" } else { "" };
            Some(format!("one line per channel: {}{again}", names.join(", ")))
        }
        2 => Some("the two channels side by side".to_owned()),
        3 => Some("the three channels as red, green and blue".to_owned()),
        _ => {
            let group = |group: usize| {
                let members = || (1..=channels).filter(|c| group_of(c - 1, channels) == group);
                match (members().min(), members().max()) {
                    (Some(first), Some(last)) if first < last => format!("{first} to {last}"),
                    (first, _) => first.unwrap_or(0).to_string(),
                }
            };
            let [blue, green, red] = [0, 1, 2].map(group);
            Some(format!("false colours, the means of channels {blue} as blue, {green} as green, {red} as red"))
        }
    };
    let slices = (depth > 1).then(|| format!("{depth} slices from left to right"));
    let parts: Vec<String> = colours.into_iter().chain(slices).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The colour of a channel among more than three: 0 is blue, 1 green, 2 red, in the order of rising wavelength.
fn group_of(channel: usize, channels: usize) -> usize {
    3 * channel / channels
}

/// What is drawn of a filter: signals and up to three channels as they are; of more channels the means of
/// three groups of neighbours, as red, green and blue with the last group red: spectra are recorded from short waves to
/// long ones, and neighbouring bands look alike.
fn shown(filter: Vec<f64>, shape: Shape) -> (Vec<f64>, Shape) {
    if shape.channels <= 3 || is_signal(shape) {
        return (filter, shape);
    }
    let mean = |group: usize| {
        let members = (0..shape.channels).filter(|c| group_of(*c, shape.channels) == group);
        let members: Vec<&[f64]> = members.map(|c| &filter[c * shape.pixels()..][..shape.pixels()]).collect();
        let mean = |i: usize| members.iter().map(|m| m[i]).sum::<f64>() / members.len() as f64;
        (0..shape.pixels()).map(mean).collect::<Vec<_>>()
    };
    ([2, 1, 0].map(mean).concat(), Shape { channels: 3, ..shape })
}

/// How a mosaic is arranged; lengths in pixels.
pub(super) struct Layout {
    n: usize,
    pub(super) columns: usize,
    /// The size of one panel, and how often a pixel is repeated in it.
    pub(super) panel: (usize, usize),
    pub(super) scale: usize,
    panels: usize,
    /// Between filters, and between the panels of one.
    gap: usize,
    inner_gap: usize,
    /// The height of the numbers above filters, and the least width that they take; 0 without.
    label: usize,
    least_width: usize,
}

impl Layout {
    pub(super) fn plan(n: usize, shape: Shape) -> Layout {
        let signal = is_signal(shape);
        let panels = if signal || shape.channels > 2 { shape.depth } else { shape.channels * shape.depth };
        // A line plot is twice as wide as high, however long the filter.
        let (height, width) = if signal { (1, 2) } else { (shape.height, shape.width) };
        // So is the whole of them; pictures together make a square.
        let columns = columns(n, if signal { 1.0 } else { (panels * width) as f64 / height as f64 });
        let unit = MOSAIC_SIDE / (columns * panels * width).max(1);
        let (panel, scale) = if signal {
            let side = unit.clamp(24, 128);
            ((2 * side, side), 1)
        } else {
            // Small filters stay legible even if the mosaic of thousands grows past its aim.
            let scale = unit.clamp(if width.max(height) <= 16 { 2 } else { 1 }, MAX_SCALE);
            ((width * scale, height * scale), scale)
        };
        let inner_gap = if signal { 3 } else { scale.div_ceil(4) };
        // Wide enough that the panels of one filter are seen to belong together.
        let gap = inner_gap.max(2) * if panels > 1 { 4 } else { 2 };
        Layout { n, columns, panel, scale, panels, gap, inner_gap, label: 0, least_width: 0 }
    }

    /// With room for a number above each filter.
    pub(super) fn numbered(self) -> Layout {
        let digits = self.n.saturating_sub(1).to_string().len();
        Layout { label: DOT * (HEIGHT + BELOW), least_width: DOT * digits * LETTER, ..self }
    }

    pub(super) fn panel_pitch(&self) -> usize {
        self.panel.0 + self.inner_gap
    }

    /// From one filter to the next: (to the right, down).
    fn pitch(&self) -> (usize, usize) {
        let width = (self.panels * self.panel_pitch() - self.inner_gap).max(self.least_width);
        (width + self.gap, self.label + self.panel.1 + self.gap)
    }

    pub(super) fn corner(&self, i: usize) -> (usize, usize) {
        let (right, down) = self.pitch();
        (i % self.columns * right, i / self.columns * down + self.label)
    }

    pub(super) fn canvas(&self) -> RgbaImage {
        let (right, down) = self.pitch();
        let rows = self.n.div_ceil(self.columns);
        RgbaImage::new((self.columns * right - self.gap) as u32, (rows * down - self.gap) as u32)
    }

    /// One panel of a filter whose largest magnitude is `peak`.
    fn draw(&self, values: &[f64], shape: Shape, peak: f64) -> RgbaImage {
        let unit: Vec<f64> = values.iter().map(|v| if peak > 0.0 { v / peak } else { 0.0 }).collect();
        if is_signal(shape) {
            return plot(&unit, shape.width, self.panel.0, self.panel.1);
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
