//! Colour images from the mosaic that a camera's sensor sees: one colour at every pixel.
//!
//! Green comes first, along the direction in which the image changes less (Hamilton and Adams, US patent 5,629,734), then the
//! differences of the other colours to it, which are smooth. Then patches of all three colours are coded in groups (`invert.rs`); their
//! coefficients come from what was observed, which is put back.

use super::invert::Inversion;
use super::{Frame, Options, signal, start};
use crate::monitor::Monitor;
use crate::{Error, Result, Sample, Shape};
use std::fmt;
use std::str::FromStr;

/// The colours of a mosaic's first two pixels in its first two rows, as 0, 1 and 2 for red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern([[usize; 2]; 2]);

impl Pattern {
    /// The patterns, by their names.
    const ALL: [(&'static str, [[usize; 2]; 2]); 4] = [
        ("RGGB", [[0, 1], [1, 2]]),
        ("BGGR", [[2, 1], [1, 0]]),
        ("GRBG", [[1, 0], [2, 1]]),
        ("GBRG", [[1, 2], [0, 1]]),
    ];

    fn colour(self, y: usize, x: usize) -> usize {
        self.0[y % 2][x % 2]
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found
            .map(|(_, colours)| Pattern(*colours))
            .ok_or_else(|| Error::invalid("pattern", Self::ALL.map(|(name, _)| name).join(", "), text))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, colours)| *colours == self.0);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// Returns the colour image (3, 1, height, width) of a mosaic (1, 1, height, width); observed values are kept.
pub fn demosaic(
    mosaic: &Sample<f32>,
    pattern: Pattern,
    options: &Options,
    monitor: &dyn Monitor,
) -> Result<Sample<f32>> {
    let shape = mosaic.shape();
    signal::check_image(shape)?;
    if mosaic.mask().is_some() || shape.channels != 1 {
        let found = if mosaic.mask().is_some() { "a mask".to_owned() } else { shape.to_string() };
        return Err(Error::invalid("mosaic", "one channel, all of it observed", found));
    }
    let colour = Shape { channels: 3, ..shape };
    Frame::new(colour, start::start(colour, options.dictionary.as_ref())?.shape)?;
    let (low, high) = mosaic.extremes();
    let guess = Mosaic { data: mosaic.data(), pattern, shape }.guess();
    if high == low {
        return Sample::new(colour, guess);
    }
    let at = |i: usize| pattern.colour(i / shape.width, i % shape.width) * shape.pixels() + i;
    let mut trust = vec![Demosaicking::GUESS; colour.len()];
    (0..shape.pixels()).for_each(|i| trust[at(i)] = 1.0);
    let keep = |mut guess: Vec<f32>, _: f32| {
        mosaic.data().iter().enumerate().for_each(|(i, v)| guess[at(i)] = *v);
        Ok(guess)
    };
    let steps = [Demosaicking::ERROR * (high - low) as f32];
    let (most, members) = (Demosaicking::MOST, Demosaicking::MEMBERS);
    let inversion = Inversion { consistent: &keep, shape: colour, steps: &steps, trust: Some(&trust), most, members };
    Sample::new(colour, inversion.run(guess, options, monitor)?)
}

/// The settings of [`demosaic()`], chosen on four photos of flowers.
struct Demosaicking;

impl Demosaicking {
    /// How much a guessed value counts, beside 1 for an observed one.
    const GUESS: f32 = 0.02;
    /// What residuals may have, as a share of the image's range. More steps with more error first gain nothing: the guess is good.
    const ERROR: f32 = 0.005;
    const MOST: usize = 40;
    const MEMBERS: usize = 8;
}

/// What a sensor saw.
struct Mosaic<'a> {
    data: &'a [f32],
    pattern: Pattern,
    shape: Shape,
}

impl Mosaic<'_> {
    /// The value at a place, which is mirrored at the border so that its colour stays.
    fn at(&self, y: isize, x: isize) -> f32 {
        self.data[mirrored(y, self.shape.height) * self.shape.width + mirrored(x, self.shape.width)]
    }

    fn guess(&self) -> Vec<f32> {
        let (width, pixels) = (self.shape.width, self.shape.pixels());
        let green: Vec<f32> = (0..pixels).map(|i| self.green(i / width, i % width)).collect();
        let difference = |c: usize| {
            let known = |i: usize| self.pattern.colour(i / width, i % width) == c;
            let values: Vec<f32> = (0..pixels).map(|i| if known(i) { self.data[i] - green[i] } else { 0.0 }).collect();
            let seen: Vec<f32> = (0..pixels).map(|i| f32::from(u8::from(known(i)))).collect();
            let (sums, weights) = (self.bilinear(&values), self.bilinear(&seen));
            let mean = |i: usize| if weights[i] > 0.0 { sums[i] / weights[i] } else { 0.0 };
            (0..pixels).map(|i| green[i] + if known(i) { values[i] } else { mean(i) }).collect::<Vec<f32>>()
        };
        let (red, blue) = (difference(0), difference(2));
        [red, green, blue].concat()
    }

    /// Green at a pixel: along the direction of the smaller gradient, corrected by the second difference of its own colour.
    fn green(&self, y: usize, x: usize) -> f32 {
        let (y, x) = (y as isize, x as isize);
        let own = self.at(y, x);
        if self.pattern.colour(y as usize, x as usize) == 1 {
            return own;
        }
        let along = |dy: isize, dx: isize| {
            let (before, after) = (self.at(y - dy, x - dx), self.at(y + dy, x + dx));
            let bend = 2.0 * own - self.at(y - 2 * dy, x - 2 * dx) - self.at(y + 2 * dy, x + 2 * dx);
            ((before - after).abs() + bend.abs(), 0.5 * (before + after) + 0.25 * bend)
        };
        let (across, down) = (along(0, 1), along(1, 0));
        match across.0.total_cmp(&down.0) {
            std::cmp::Ordering::Less => across.1,
            std::cmp::Ordering::Greater => down.1,
            std::cmp::Ordering::Equal => 0.5 * (across.1 + down.1),
        }
    }

    /// The sum of a plane over 3x3 pixels, weighed 1 2 1 in both directions; nothing outside.
    fn bilinear(&self, plane: &[f32]) -> Vec<f32> {
        let (height, width) = (self.shape.height, self.shape.width);
        let sum = |i: usize| {
            let (y, x) = (i / width, i % width);
            let mut sum = 0.0;
            for v in y.saturating_sub(1)..(y + 2).min(height) {
                for u in x.saturating_sub(1)..(x + 2).min(width) {
                    let weight = if v == y { 2.0 } else { 1.0 } * if u == x { 2.0 } else { 1.0 };
                    sum += weight * plane[v * width + u];
                }
            }
            sum
        };
        (0..plane.len()).map(sum).collect()
    }
}

/// A place among n, mirrored at the first and the last one.
fn mirrored(i: isize, n: usize) -> usize {
    let last = n as isize - 1;
    let i = i.abs();
    (if i > last { (2 * last - i).max(0) } else { i }) as usize
}
