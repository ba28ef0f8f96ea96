//! Charts as pictures, for those who want a PNG: the same axes and colours as the drawing, in the letters of `letters.rs`.

use super::{Chart, Frame, PALETTE, PLOT_HEIGHT, RIGHT, ROW, Style, shortened};
use crate::report::letters::{HEIGHT, WIDTH, dots};
use crate::report::picture::Picture;
use image::{Rgba, RgbaImage, imageops};

/// Pixels per unit of the drawing.
const SCALE: f64 = 2.0;
/// Pictures are drawn this many times larger, and shrunk to soften their edges.
const SUPERSAMPLING: f64 = 2.0;
/// The side of a letter's dot, and how far apart letters are, in units of the drawing.
const DOT: f64 = 1.25;
const ADVANCE: f64 = (WIDTH + 1) as f64 * DOT;
const PAPER: Rgba<u8> = Rgba([255, 255, 255, 255]);
const INK: Rgba<u8> = Rgba([34, 34, 34, 255]);
const MUTED: Rgba<u8> = Rgba([102, 102, 102, 255]);
const GRID: Rgba<u8> = Rgba([226, 226, 226, 255]);

/// A sheet that is drawn on in units of the chart.
struct Sheet(RgbaImage);

impl Sheet {
    fn new(width: f64, height: f64) -> Self {
        let pixels = |length: f64| (length * SCALE * SUPERSAMPLING).round().max(1.0) as u32;
        Sheet(RgbaImage::from_pixel(pixels(width), pixels(height), PAPER))
    }

    /// Inks all that is within `radius` of the line from one point to another.
    fn stroke(&mut self, from: (f64, f64), to: (f64, f64), radius: f64, ink: Rgba<u8>) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let steps = (length * SCALE * SUPERSAMPLING).ceil().max(1.0) as usize;
        for i in 0..=steps {
            let t = i as f64 / steps as f64;
            self.disc((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)), 0.0, radius, ink);
        }
    }

    /// Inks what lies between two distances from a point.
    fn disc(&mut self, (x, y): (f64, f64), inner: f64, outer: f64, ink: Rgba<u8>) {
        let unit = SCALE * SUPERSAMPLING;
        let range = |centre: f64, end: u32| {
            let (from, to) = (((centre - outer) * unit).floor().max(0.0), ((centre + outer) * unit).ceil().max(0.0));
            from as u32..(to as u32 + 1).min(end)
        };
        for row in range(y, self.0.height()) {
            for column in range(x, self.0.width()) {
                let distance = ((f64::from(column) + 0.5) / unit - x).hypot((f64::from(row) + 0.5) / unit - y);
                if (inner..=outer.max(0.5 / unit)).contains(&distance) {
                    self.0.put_pixel(column, row, ink);
                }
            }
        }
    }

    /// Writes a line of text; `anchor` says which part of it is at x: 0 its beginning, 1 its end. Its foot is at y.
    fn text(&mut self, (x, y): (f64, f64), anchor: f64, text: &str, ink: Rgba<u8>) {
        let unit = SCALE * SUPERSAMPLING;
        let left = x - anchor * ADVANCE * text.chars().count() as f64;
        for (i, letter) in text.chars().enumerate() {
            for (column, row) in dots(letter) {
                let corner = (left + i as f64 * ADVANCE + column as f64 * DOT, y - (HEIGHT - row) as f64 * DOT);
                let [from_x, from_y] = [corner.0, corner.1].map(|v| (v * unit).round().max(0.0) as u32);
                let side = (DOT * unit).round() as u32;
                for py in from_y..(from_y + side).min(self.0.height()) {
                    (from_x..(from_x + side).min(self.0.width())).for_each(|px| self.0.put_pixel(px, py, ink));
                }
            }
        }
    }
}

impl Chart {
    /// Draws the chart as a picture.
    pub(crate) fn to_picture(&self) -> Picture {
        let top = (self.series.len() as f64 + 1.0) * ROW + 10.0;
        let mut sheet = Sheet::new(super::WIDTH, top + PLOT_HEIGHT + 2.0 * ROW + 5.0);
        let inks: Vec<Rgba<u8>> = self.colours().iter().map(|(colour, _)| ink(colour)).collect();
        for (i, (series, ink)) in self.series.iter().zip(&inks).enumerate() {
            let y = (i as f64 + 0.75) * ROW;
            match series.style {
                Style::Mark => sheet.disc((14.0, y - 4.0), 5.0, 7.0, *ink),
                _ => sheet.stroke((4.0, y - 4.0), (24.0, y - 4.0), 1.2, *ink),
            }
            sheet.text((32.0, y), 0.0, &shortened(&series.name), INK);
        }
        sheet.text((2.0, (self.series.len() as f64 + 0.85) * ROW), 0.0, &self.y_label, MUTED);
        if let Some(frame) = self.frame(top) {
            self.draw_axes(&frame, &mut sheet);
            self.series.iter().zip(&inks).for_each(|(series, ink)| self.draw_series(series, &frame, *ink, &mut sheet));
        }
        let size = |pixels: u32| (f64::from(pixels) / SUPERSAMPLING) as u32;
        let (width, height) = (size(sheet.0.width()), size(sheet.0.height()));
        Picture::of(imageops::resize(&sheet.0, width, height, imageops::FilterType::Triangle))
    }

    fn draw_axes(&self, frame: &Frame, sheet: &mut Sheet) {
        let (right, bottom) = (super::WIDTH - RIGHT, frame.top + PLOT_HEIGHT);
        for tick in &frame.y.ticks {
            let y = frame.top + (1.0 - frame.y.position(tick.value)) * PLOT_HEIGHT;
            sheet.stroke((frame.left, y), (right, y), 0.4, GRID);
            sheet.text((frame.left - 7.0, y + 4.5), 1.0, &tick.label, MUTED);
        }
        sheet.stroke((frame.left, bottom), (right, bottom), 0.5, MUTED);
        for tick in &frame.x.ticks {
            let x = frame.left + frame.x.position(tick.value) * (right - frame.left);
            sheet.stroke((x, bottom), (x, bottom + 5.0), 0.5, MUTED);
            sheet.text((x, bottom + ROW), 0.5, &tick.label, MUTED);
        }
        sheet.text(((frame.left + right) / 2.0, bottom + 2.0 * ROW), 0.5, &self.x_label, MUTED);
    }

    fn draw_series(&self, series: &super::Series, frame: &Frame, ink: Rgba<u8>, sheet: &mut Sheet) {
        let mut placed: Vec<_> = self.visible(series).into_iter().map(|point| frame.place(point)).collect();
        if series.style == Style::Mark {
            return placed.into_iter().for_each(|place| sheet.disc(place, 7.0, 9.0, ink));
        }
        for (&(x, _), &(low, high)) in series.points.iter().zip(&series.band) {
            let (bottom, top) = (frame.place((x, low)), frame.place((x, high)));
            sheet.stroke(bottom, top, 0.6, ink);
            for (x, y) in [bottom, top] {
                sheet.stroke((x - 3.0, y), (x + 3.0, y), 0.6, ink);
            }
        }
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        placed.windows(2).for_each(|pair| sheet.stroke(pair[0], pair[1], 0.9, ink));
        if series.style != Style::Line {
            placed.into_iter().for_each(|place| sheet.disc(place, 0.0, 3.2, ink));
        }
    }
}

/// Returns the colour of a series, `var(--series-1, #2563a8)`, as ink.
fn ink(colour: &str) -> Rgba<u8> {
    let hex = PALETTE.iter().find(|hex| colour.contains(*hex)).map_or("222222", |hex| &hex[1..]);
    let part = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap_or(0);
    Rgba([part(0), part(1), part(2), 255])
}
