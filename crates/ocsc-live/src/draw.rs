//! Filters and samples as bytes, small enough to be sent twice a second. The page makes pixels and lines of them.

use crate::frame::{Filters, SampleView};
use base64::prelude::{BASE64_STANDARD, Engine};
use ocsc::text::extent;
use ocsc::{Dictionary, Real, Sample, Shape};
use std::ops::Range;

/// Samples of more values are not drawn: their copies would cost the run too much.
pub(crate) const MOST_VALUES: usize = 1 << 23;
/// The most filters that are drawn.
const MOST_FILTERS: usize = 400;
/// The longest side of a filter as drawn, the longest line, and the most slices and lines.
const FILTER_SIDE: usize = 32;
const FILTER_LINE: usize = 160;
const SLICES: usize = 6;
const LINES: usize = 6;
/// The longest side of a sample as drawn, and the longest part of a signal.
const SAMPLE_SIDE: usize = 192;
const SAMPLE_LINE: usize = 2000;
/// Differences are drawn up to this share of a sample's range.
const CONTRAST: f64 = 0.25;

/// Draws filters, or the most used of very many. `used` are the non-zeros of each in a sample, or nothing.
pub fn draw_filters<T: Real>(dictionary: &Dictionary<T>, used: &[f64]) -> Filters {
    let (n, shape) = (dictionary.n_filters(), dictionary.shape());
    let used = if used.len() == n { used } else { &[] };
    let mut number: Vec<usize> = (0..n).collect();
    if n > MOST_FILTERS {
        number.sort_by(|a, b| used.get(*b).unwrap_or(&0.0).total_cmp(used.get(*a).unwrap_or(&0.0)));
        number.truncate(MOST_FILTERS);
        number.sort_unstable();
    }
    let mut drawn = Filters { of: n, size: size(shape), ..Filters::default() };
    let mut bytes = Vec::new();
    for &k in &number {
        let filter: Vec<f64> = dictionary.filter(k).iter().map(|v| v.f64()).collect();
        let count = filter.len().max(1) as f64;
        let mean = filter.iter().sum::<f64>() / count;
        let energy: f64 = filter.iter().map(|v| v * v).sum();
        drawn.variance.push((energy / count - mean * mean).max(0.0));
        drawn.norm.push(energy.sqrt());
        drawn.used.extend(used.get(k));
        let (shape, values) = reduced(&filter, shape);
        drawn.shape = shape;
        let peak = values.iter().fold(0.0, |peak: f64, v| peak.max(v.abs()));
        bytes.extend(values.iter().map(|v| signed(*v, peak)));
    }
    drawn.number = number;
    drawn.values = BASE64_STANDARD.encode(bytes);
    drawn
}

/// Draws a sample, if it is known, its reconstruction and their difference. Of volumes the middle slice is drawn, of long signals
/// the middle part.
pub fn draw_sample<T: Real>(name: String, original: Option<&Sample<T>>, back: &Sample<T>) -> SampleView {
    let shape = back.shape();
    let is_signal = is_line(shape);
    let view = View::of(shape, is_signal);
    let (low, high) = original.unwrap_or(back).extremes();
    let scale = CONTRAST * (high - low);
    let shown = |sample: &Sample<T>| view.values(sample);
    let levels = |values: &[f64]| {
        let bytes: Vec<u8> = values.iter().map(|v| level(*v, low, high)).collect();
        BASE64_STANDARD.encode(bytes)
    };
    let back = shown(back);
    let original = original.filter(|original| original.shape() == shape).map(shown);
    let difference = original.as_ref().map(|original| {
        let per_pixel = view.channels as f64;
        let differences: Vec<f64> = original.iter().zip(&back).map(|(a, b)| a - b).collect();
        let mean = differences.chunks(view.channels).map(|pixel| pixel.iter().sum::<f64>() / per_pixel);
        BASE64_STANDARD.encode(mean.map(|v| signed(v, scale)).collect::<Vec<u8>>())
    });
    SampleView {
        name,
        part: view.words(shape, is_signal),
        is_signal,
        channels: view.channels,
        width: view.width,
        height: view.height,
        low,
        high,
        scale,
        original: original.as_deref().map(levels),
        reconstruction: levels(&back),
        difference,
        ..SampleView::default()
    }
}

/// Which values of a sample are drawn.
struct View {
    /// The part of the columns.
    columns: Range<usize>,
    channels: usize,
    width: usize,
    height: usize,
}

impl View {
    fn of(shape: Shape, is_signal: bool) -> Self {
        if is_signal {
            let width = shape.width.min(SAMPLE_LINE);
            let start = (shape.width - width) / 2;
            return View { columns: start..start + width, channels: 1, width, height: 1 };
        }
        let longest = shape.height.max(shape.width);
        let fit = |n: usize| if longest > SAMPLE_SIDE { (n * SAMPLE_SIDE / longest).max(1) } else { n };
        let channels = if shape.channels == 3 { 3 } else { 1 };
        View { columns: 0..shape.width, channels, width: fit(shape.width), height: fit(shape.height) }
    }

    /// Returns the values of each pixel, row by row.
    fn values<T: Real>(&self, sample: &Sample<T>) -> Vec<f64> {
        let (shape, data) = (sample.shape(), sample.data());
        let plane = shape.height * shape.width;
        let middle = shape.depth / 2 * plane;
        // The channels that are put together to one value of a pixel.
        let groups: Vec<Range<usize>> = match self.channels {
            3 => (0..3).map(|c| c..c + 1).collect(),
            _ => std::iter::once(0..shape.channels).collect(),
        };
        let mut values = Vec::with_capacity(self.width * self.height * self.channels);
        for y in 0..self.height {
            let rows = span(y, self.height, shape.height);
            for x in 0..self.width {
                let columns = span(x, self.width, self.columns.len());
                let columns = self.columns.start + columns.start..self.columns.start + columns.end;
                for group in &groups {
                    let mut sum = 0.0;
                    for c in group.clone() {
                        let slice = &data[c * shape.depth * plane + middle..][..plane];
                        for row in rows.clone() {
                            let line = &slice[row * shape.width..][..shape.width];
                            sum += line[columns.clone()].iter().map(|v| v.f64()).sum::<f64>();
                        }
                    }
                    values.push(sum / (rows.len() * columns.len() * group.len()).max(1) as f64);
                }
            }
        }
        values
    }

    fn words(&self, shape: Shape, is_signal: bool) -> String {
        let whole = size(shape);
        if is_signal && self.width < shape.width {
            return format!("{whole}, values {} to {}", self.columns.start, self.columns.end - 1);
        }
        if shape.depth > 1 { format!("{whole}, slice {}", shape.depth / 2) } else { whole }
    }
}

/// Returns the part of `from` values that value `i` of `to` stands for; at least one.
fn span(i: usize, to: usize, from: usize) -> Range<usize> {
    let start = i * from / to;
    start..((i + 1) * from / to).max(start + 1).min(from)
}

/// Returns sizes in words: `11x11`, or `11x11 in 3 channels`.
fn size(shape: Shape) -> String {
    let size = extent(&shape.spatial());
    if shape.channels > 1 { format!("{size} in {} channels", shape.channels) } else { size }
}

fn is_line(shape: Shape) -> bool {
    shape.depth == 1 && shape.height == 1
}

/// Returns what is drawn of a filter, (channels, depth, height, width): lines of the strongest channels, or slices in up to three
/// colours.
fn reduced(filter: &[f64], shape: Shape) -> ([usize; 4], Vec<f64>) {
    let pixels = shape.pixels();
    if is_line(shape) {
        let mut lines: Vec<&[f64]> = filter.chunks(shape.width).collect();
        if lines.len() > LINES {
            let energy = |line: &[f64]| line.iter().map(|v| v * v).sum::<f64>();
            lines.sort_by(|a, b| energy(b).total_cmp(&energy(a)));
            lines.truncate(LINES);
        }
        let width = shape.width.min(FILTER_LINE);
        let strongest =
            |values: &[f64]| values.iter().copied().fold(0.0, |m: f64, v| if v.abs() > m.abs() { v } else { m });
        let values = lines.iter().flat_map(|line| (0..width).map(|x| strongest(&line[span(x, width, shape.width)])));
        return ([lines.len(), 1, 1, width], values.collect());
    }
    // As `ocsc show` draws them: of more than three channels the means of three groups, the last of which is red.
    let groups: Vec<Range<usize>> = match shape.channels {
        0..=3 => (0..shape.channels).map(|c| c..c + 1).collect(),
        n => (0..3).rev().map(|g| (g * n).div_ceil(3)..((g + 1) * n).div_ceil(3)).collect(),
    };
    let (depth, height, width) = (shape.depth.min(SLICES), shape.height.min(FILTER_SIDE), shape.width.min(FILTER_SIDE));
    let mut values = Vec::with_capacity(groups.len() * depth * height * width);
    for group in &groups {
        for z in 0..depth {
            let slice = z * shape.depth / depth;
            for y in 0..height {
                for x in 0..width {
                    let (rows, columns) = (span(y, height, shape.height), span(x, width, shape.width));
                    let mut sum = 0.0;
                    for c in group.clone() {
                        for row in rows.clone() {
                            let line = c * pixels + (slice * shape.height + row) * shape.width;
                            sum += filter[line + columns.start..line + columns.end].iter().sum::<f64>();
                        }
                    }
                    values.push(sum / (group.len() * rows.len() * columns.len()).max(1) as f64);
                }
            }
        }
    }
    ([groups.len(), depth, height, width], values)
}

/// Returns a value from `low` to `high` as a byte from 0 to 255.
fn level(value: f64, low: f64, high: f64) -> u8 {
    let unit = if high > low { (value - low) / (high - low) } else { 0.5 };
    (255.0 * unit.clamp(0.0, 1.0)).round() as u8
}

/// Returns a value from `-peak` to `peak` as a signed byte from -127 to 127.
fn signed(value: f64, peak: f64) -> u8 {
    let unit = if peak > 0.0 { (value / peak).clamp(-1.0, 1.0) } else { 0.0 };
    ((127.0 * unit).round() as i8) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(channels: usize, depth: usize, height: usize, width: usize) -> Shape {
        Shape { channels, depth, height, width }
    }

    fn bytes(text: &str) -> Vec<u8> {
        BASE64_STANDARD.decode(text).unwrap()
    }

    #[test]
    fn filters_of_all_shapes_are_small() {
        for (shape, rank, drawn) in [
            (shape(1, 1, 11, 11), 2, [1, 1, 11, 11]),
            (shape(3, 1, 7, 5), 2, [3, 1, 7, 5]),
            (shape(8, 1, 7, 5), 2, [3, 1, 7, 5]),
            (shape(1, 20, 64, 40), 3, [1, 6, 32, 32]),
            (shape(1, 1, 1, 512), 1, [1, 1, 1, 160]),
            (shape(200, 1, 1, 30), 1, [6, 1, 1, 30]),
        ] {
            let dictionary = Dictionary::<f32>::random(3, shape, rank, 0).unwrap();
            let filters = draw_filters(&dictionary, &[3.0, 2.0, 1.0]);
            assert_eq!(filters.shape, drawn);
            let values = bytes(&filters.values);
            assert_eq!(values.len(), 3 * drawn.iter().product::<usize>());
            let strongest = values.chunks(values.len() / 3).map(|f| f.iter().map(|v| (*v as i8).abs()).max());
            assert!(strongest.into_iter().all(|peak| peak == Some(127)));
            assert_eq!((filters.used.len(), filters.number.as_slice()), (3, &[0, 1, 2][..]));
            assert!(filters.norm.iter().all(|norm| (norm - 1.0).abs() < 1e-5));
        }
        let many = Dictionary::<f64>::random(1000, shape(1, 1, 3, 3), 2, 0).unwrap();
        let used: Vec<f64> = (0..1000).map(f64::from).collect();
        let filters = draw_filters(&many, &used);
        assert_eq!((filters.of, filters.number.len(), filters.number[0]), (1000, MOST_FILTERS, 600));
    }

    #[test]
    fn samples_are_drawn_with_their_difference() {
        let sample = |shape: Shape, f: fn(usize) -> f64| Sample::new(shape, (0..shape.len()).map(f).collect()).unwrap();
        let s = shape(1, 1, 2, 2);
        let view = draw_sample("a".to_owned(), Some(&sample(s, |i| i as f64)), &sample(s, |_| 3.0));
        assert_eq!(bytes(view.original.as_ref().unwrap()), [0, 85, 170, 255]);
        assert_eq!(bytes(&view.reconstruction), [255; 4]);
        assert_eq!(bytes(view.difference.as_ref().unwrap()), [129, 129, 129, 0], "-3 is beyond the scale of 0.75");
        assert_eq!((view.low, view.high, view.scale, view.part.as_str()), (0.0, 3.0, 0.75, "2x2"));
        let large = draw_sample(String::new(), None, &sample(shape(3, 1, 1000, 400), |i| i as f64));
        assert_eq!((large.width, large.height, large.channels), (76, 192, 3));
        assert!(large.original.is_none() && large.difference.is_none());
        let long = draw_sample(String::new(), None, &sample(shape(2, 1, 1, 10_000), |i| i as f64));
        assert_eq!(
            (long.width, long.is_signal, long.part.as_str()),
            (2000, true, "10000 in 2 channels, values 4000 to 5999")
        );
        let volume = draw_sample(String::new(), None, &sample(shape(1, 5, 3, 4), |i| i as f64));
        assert_eq!(bytes(&volume.reconstruction)[0], level(24.0, 0.0, 59.0), "the middle slice");
    }
}
