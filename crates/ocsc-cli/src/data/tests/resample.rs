//! Resampling against what it promises: waves below the transition keep their shape, those above vanish.

use crate::data::resample::Resampler;
use std::f64::consts::TAU;

/// A wave of `hertz` at `from`, resampled to `to`: the largest distance from the wave at `to`, away from the ends.
fn error(from: u32, to: u32, hertz: f64, wanted: f64) -> f64 {
    let resampler = Resampler::new(from, to);
    let n = from as usize / 4;
    let wave: Vec<f64> = (0..n).map(|t| (TAU * hertz * t as f64 / f64::from(from)).sin()).collect();
    let len = resampler.output_len(n as u64) as usize;
    let margin = (200.0 * f64::from(to) / f64::from(from.min(to))) as usize;
    let output = resampler.resample(&wave, 0, 0..len);
    assert_eq!(output.len(), len);
    let expected = |t: usize| wanted * (TAU * hertz * t as f64 / f64::from(to)).sin();
    (margin..len - margin).map(|t| (output[t] - expected(t)).abs()).fold(0.0, f64::max)
}

#[test]
fn waves_keep_their_shape_or_vanish() {
    for (from, to) in [(44_100, 16_000), (16_000, 44_100), (8_000, 8_001), (48_000, 44_100)] {
        let nyquist = f64::from(from.min(to)) / 2.0;
        for part in [0.01, 0.3, 0.6, 0.89] {
            let error = error(from, to, part * nyquist, 1.0);
            assert!(error < 3e-5, "{from} to {to}: {part} of the band is off by {error}");
        }
        if to < from && f64::from(from) / 2.0 > 1.02 * nyquist {
            let alias = error(from, to, 1.02 * nyquist, 0.0);
            assert!(alias < 2e-5, "{from} to {to}: {alias} of what is too high gets through");
        }
    }
}

#[test]
fn a_constant_stays_and_ends_are_zeros() {
    let resampler = Resampler::new(3, 2);
    let output = resampler.resample(&vec![1.0; 3000], 0, 0..2000);
    assert!(output[300..1700].iter().all(|v| (v - 1.0).abs() < 1e-4));
    assert!(output[0] < 0.9, "the signal begins after silence");
    assert_eq!((resampler.output_len(3000), resampler.output_len(1), resampler.output_len(0)), (2000, 1, 0));
    assert_eq!(resampler.needs(&(0..10), 5), 0..5);
}

/// The rows of the fast way against the formula, also where the input was cut.
#[test]
fn rows_give_what_the_formula_does() {
    for (from, to) in [(44_100, 8_000), (8_000, 44_100), (3, 2), (1, 7), (48_000, 44_100)] {
        let resampler = Resampler::new(from, to);
        let wave: Vec<f64> = (0..4_000).map(|t| (0.1 * t as f64 + 1e-5 * (t * t) as f64).sin()).collect();
        let len = resampler.output_len(wave.len() as u64) as usize;
        for range in [0..len, 0..5, len / 3..len / 3 + 40, len - 3..len, len / 2..len / 2] {
            let needed = resampler.needs(&range, wave.len() as u64);
            let input = &wave[needed.start as usize..needed.end as usize];
            let slow = resampler.directly(input, needed.start, range.clone());
            let fast = resampler.resample(input, needed.start, range.clone());
            assert_eq!(fast.len(), range.len());
            let largest = slow.iter().zip(&fast).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(largest < 1e-10, "{from} to {to}, {range:?}: {largest}");
        }
    }
}
