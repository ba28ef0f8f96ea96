//! The pictures have the statistics of photographs, and depend on the seed only.

use super::{coloured_dead_leaves, dead_leaves};
use crate::Sample;
use std::f64::consts::TAU;

const SIDE: usize = 64;

fn pictures() -> Vec<Sample<f64>> {
    (0..16).filter_map(|seed| dead_leaves(seed, SIDE, SIDE)).collect()
}

/// |F|^2 along one axis of the 2-D spectrum at frequency `f`, with a Hann window against the jump at the border.
fn power(picture: &Sample<f64>, fy: usize, fx: usize) -> f64 {
    let mean = picture.data().iter().sum::<f64>() / picture.data().len() as f64;
    let window = |i: usize| 0.5 - 0.5 * (TAU * (i as f64 + 0.5) / SIDE as f64).cos();
    let (mut re, mut im) = (0.0, 0.0);
    for (i, v) in picture.data().iter().enumerate() {
        let (y, x) = (i / SIDE, i % SIDE);
        let phase = TAU * ((fy * y + fx * x) % SIDE) as f64 / SIDE as f64;
        let value = (v - mean) * window(y) * window(x);
        re += value * phase.cos();
        im += value * phase.sin();
    }
    re * re + im * im
}

#[test]
fn power_falls_as_in_photographs() {
    let pictures = pictures();
    let (mut n, mut sx, mut sy, mut sxx, mut sxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    // Radial averages over rings, then a straight line through log power against log frequency, by least squares.
    for ring in 3..SIDE / 3 {
        let (mut sum, mut count) = (0.0, 0);
        for step in 0..8 {
            let angle = TAU / 2.0 * f64::from(step) / 8.0;
            let wrap = |v: f64| (v.round() as isize).rem_euclid(SIDE as isize) as usize;
            let (fy, fx) = (wrap(ring as f64 * angle.sin()), wrap(ring as f64 * angle.cos()));
            sum += pictures.iter().map(|p| power(p, fy, fx)).sum::<f64>();
            count += pictures.len();
        }
        let (x, y) = ((ring as f64).ln(), (sum / count as f64).ln());
        (n, sx, sy, sxx, sxy) = (n + 1.0, sx + x, sy + y, sxx + x * x, sxy + x * y);
    }
    let exponent = (n * sxy - sx * sy) / (n * sxx - sx * sx);
    assert!((-2.8..=-1.5).contains(&exponent), "power falls as f^{exponent}");
}

#[test]
fn derivatives_have_heavy_tails() {
    let rows = |p: &Sample<f64>| p.data().chunks(SIDE).map(<[f64]>::to_vec).collect::<Vec<_>>();
    let pictures: Vec<_> = pictures().iter().map(rows).collect();
    let differences: Vec<f64> =
        pictures.iter().flatten().flat_map(|row| row.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>()).collect();
    let moment = |k: i32| differences.iter().map(|d| d.powi(k)).sum::<f64>() / differences.len() as f64;
    let kurtosis = moment(4) / moment(2).powi(2);
    assert!(kurtosis > 6.0, "a kurtosis of {kurtosis}; Gaussian: 3");
}

#[test]
fn the_seed_decides() {
    let bits = |seed| dead_leaves(seed, 20, 31).map(|p| p.data().iter().map(|v| v.to_bits()).collect::<Vec<_>>());
    assert_eq!(bits(5), bits(5));
    assert_ne!(bits(5), bits(6));
}

#[test]
fn values_are_in_range_and_odd_sizes_work() {
    for (height, width) in [(1, 1), (1, 40), (40, 3), (100, 100)] {
        let picture = dead_leaves(1, height, width).unwrap();
        assert_eq!((picture.shape().height, picture.shape().width), (height, width));
        assert!(picture.data().iter().all(|v| (0.0..=1.0).contains(v)));
    }
    assert!(dead_leaves(1, 0, 5).is_none());
    assert!(dead_leaves(1, usize::MAX, 5).is_none());
}

#[test]
fn leaves_in_colour_have_the_brightness_of_gray_ones_and_tints_of_their_own() {
    let (gray, colour) = (dead_leaves(3, 40, 50).unwrap(), coloured_dead_leaves(3, 40, 50).unwrap());
    assert_eq!((colour.shape().channels, colour.shape().pixels()), (3, 2000));
    assert!(colour.data().iter().all(|v| (0.0..=1.0).contains(v)));
    let planes: Vec<&[f64]> = colour.data().chunks_exact(2000).collect();
    let correlation = |a: &[f64], b: &[f64]| {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - mean(a)) * (y - mean(b))).sum::<f64>();
        product(a, b) / (product(a, a) * product(b, b)).sqrt()
    };
    for plane in &planes {
        assert!((0.8..0.999).contains(&correlation(plane, gray.data())));
    }
    assert_ne!(planes[0], planes[2]);
}
