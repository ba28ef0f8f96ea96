//! Small line plots of 1-D signals: one line per channel over a rule at zero.

use image::{Rgba, RgbaImage, imageops};

/// Line plots are drawn this many times larger than shown.
const SUPERSAMPLING: usize = 3;
/// How far from the middle to the edge a value of 1 reaches, and what part of the width is left free on either side.
const REACH: f64 = 0.85;
const MARGIN: f64 = 0.025;
/// Behind a line plot, and its zero line.
const PAPER: Rgba<u8> = Rgba([246, 246, 244, 255]);
const RULE: Rgba<u8> = Rgba([205, 205, 200, 255]);
/// The lines, in the order of the channels, and their names; further channels begin again. As in charts.
pub(super) const INKS: [(&str, Rgba<u8>); 6] = [
    ("blue", Rgba([37, 99, 168, 255])),
    ("orange", Rgba([194, 87, 26, 255])),
    ("green", Rgba([47, 125, 79, 255])),
    ("purple", Rgba([139, 74, 168, 255])),
    ("ochre", Rgba([168, 131, 29, 255])),
    ("crimson", Rgba([176, 58, 91, 255])),
];

/// Lines of values from -1 (bottom) to 1 (top), one after the other in `values` and `len` long each; drawn large, then
/// shrunk to soften their edges.
pub(super) fn plot(values: &[f64], len: usize, width: usize, height: usize) -> RgbaImage {
    let mut large = RgbaImage::from_pixel((width * SUPERSAMPLING) as u32, (height * SUPERSAMPLING) as u32, PAPER);
    let zero = row(0.0, large.height());
    for y in zero..(zero + SUPERSAMPLING as u32).min(large.height()) {
        (0..large.width()).for_each(|x| large.put_pixel(x, y, RULE));
    }
    // The first channel last, so that it lies on top.
    for (line, (_, ink)) in values.chunks(len).zip(INKS.iter().cycle()).collect::<Vec<_>>().into_iter().rev() {
        draw(&mut large, line, *ink);
    }
    imageops::resize(&large, width as u32, height as u32, imageops::FilterType::Triangle)
}

/// The pixel row of a value.
fn row(value: f64, height: u32) -> u32 {
    let half = f64::from(height) / 2.0;
    (half - value * REACH * half).round() as u32
}

/// Each column of pixels is inked from the lowest to the highest value near it, so long signals keep their envelope and
/// short ones become connected lines.
fn draw(image: &mut RgbaImage, values: &[f64], ink: Rgba<u8>) {
    let (width, height) = image.dimensions();
    let pen = SUPERSAMPLING as u32 - 1;
    let margin = (MARGIN * f64::from(width)).round() as u32;
    let width = width - 2 * margin;
    let last = values.len().saturating_sub(1) as f64;
    let at = |t: f64| {
        let i = t.floor() as usize;
        let next = values[(i + 1).min(values.len() - 1)];
        values[i] + t.fract() * (next - values[i])
    };
    for x in 0..width {
        let place = |x: u32| f64::from(x.min(width)) / f64::from(width) * last;
        let (from, to) = (place(x.saturating_sub(pen)), place(x + 1 + pen));
        let inside = (from.ceil() as usize..=to.floor() as usize).map(|i| values[i]);
        let (lo, hi) = inside.chain([at(from), at(to)]).fold((1.0, -1.0), |(lo, hi), v| (v.min(lo), v.max(hi)));
        for y in row(hi, height).saturating_sub(pen)..=(row(lo, height) + pen).min(height - 1) {
            image.put_pixel(margin + x, y, ink);
        }
    }
}
