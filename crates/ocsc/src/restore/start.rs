//! The filters that restoration begins with.
//!
//! The built-in ones of images, 8x8 and gray, were learned from dead leaves ([`crate::dead_leaves`]), those of signals from synthetic
//! signals ([`crate::synthetic_signals`]); `cargo xtask dictionaries` makes both again. For images of several channels they are lifted:
//! most filters with the same weight in all channels (for colour, brightness), and the smoothest ones once more for each difference of
//! channels; learning from the image does the rest. Filters that were learned from coloured dead leaves are no better
//! (docs/restoration.md).

use super::atoms::Atoms;
use super::signal;
use crate::{Dictionary, Error, Result, Shape};

/// Values of -127 to 127, (filter, height, width), the smoothest filters first.
const GRAY: &[u8] = include_bytes!("gray8x8.i8");
/// The side of the built-in filters of images.
const SIDE: usize = 8;
/// The same for signals, (filter, time).
const SIGNAL: &[u8] = include_bytes!("signal96.i8");
/// The length of the built-in filters of signals.
const LENGTH: usize = 96;
/// How many built-in filters are repeated for each difference of channels.
const DIFFERENCES: usize = 40;

/// Returns the filters to begin with for an image of this shape: those given, or the built-in ones.
pub(super) fn start(image: Shape, given: Option<&Dictionary<f32>>) -> Result<Atoms> {
    let channels = image.channels;
    match given {
        None => built_in(image),
        Some(dictionary) => {
            let shape = dictionary.shape();
            let is_line = signal::is_column(image) && shape.height == 1;
            let shape = if is_line { signal::turned(shape) } else { shape };
            match shape.channels {
                n if n == channels => Atoms::new(shape, dictionary.data()),
                1 => lifted(channels, shape, dictionary.data()),
                n => {
                    let expected = format!("filters of {channels} channels, as the image, or of 1");
                    Err(Error::invalid("dictionary", expected, format!("{n} channels")))
                }
            }
        }
    }
}

fn built_in(image: Shape) -> Result<Atoms> {
    let (values, shape) = match signal::is_column(image) {
        true => (SIGNAL, Shape::image(LENGTH, 1)),
        false => (GRAY, Shape::image(SIDE, SIDE)),
    };
    let filters: Vec<f32> = values.iter().map(|v| f32::from(v.cast_signed())).collect();
    match image.channels {
        1 => Atoms::new(shape, &filters),
        channels => lifted(channels, shape, &filters),
    }
}

/// Gray filters for several channels: along the discrete cosine basis over channels, whose first vector is constant.
fn lifted(channels: usize, shape: Shape, gray: &[f32]) -> Result<Atoms> {
    let area = shape.pixels();
    let mut all = Vec::with_capacity(gray.len() * channels * 2);
    for j in 0..channels {
        let weight = |c: usize| (std::f64::consts::PI * j as f64 * (c as f64 + 0.5) / channels as f64).cos() as f32;
        let n = if j == 0 { gray.len() } else { gray.len().min(DIFFERENCES * area) };
        for filter in gray[..n].chunks_exact(area) {
            (0..channels).for_each(|c| all.extend(filter.iter().map(|v| weight(c) * v)));
        }
    }
    Atoms::new(Shape { channels, ..shape }, &all)
}
