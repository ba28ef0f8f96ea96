//! Signals that need no recorder, for tests and for the filters that restoration of signals starts from.
//!
//! A signal is the sum of what recordings are made of:
//! - a course that is smooth in pieces, cubics that meet in jumps or in bends, as trends, steps and baselines are,
//! - oscillations that come and go, of constant or gliding pitch, with overtones, as voices, strings and rhythms of the brain are,
//! - transients: bumps with and without undershoot, as spikes and heartbeats are, and sudden sounds that ring and fade.
//!
//! Lengths and pitches are log-uniform, so that filters of a few dozen values see all of it at their own scale. The same seed
//! gives the same signal.

use crate::{Sample, Shape};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

/// Values, on average, from one oscillation to the next, and from one transient to the next.
const PER_OSCILLATION: usize = 250;
const PER_TRANSIENT: usize = 120;

/// A signal (1, 1, 1, len) of about mean 0 and variance 1; none if it would have no values.
pub fn synthetic_signal(seed: u64, len: usize) -> Option<Sample<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut values = vec![0.0; len];
    add_course(&mut values, &mut rng);
    for _ in 0..len.div_ceil(PER_OSCILLATION) {
        add_oscillation(&mut values, &mut rng);
    }
    for _ in 0..len.div_ceil(PER_TRANSIENT) {
        add_transient(&mut values, &mut rng);
    }
    let mean = values.iter().sum::<f64>() / len.max(1) as f64;
    values.iter_mut().for_each(|v| *v -= mean);
    let deviation = (values.iter().map(|v| v * v).sum::<f64>() / len.max(1) as f64).sqrt();
    values.iter_mut().for_each(|v| *v /= deviation.max(f64::MIN_POSITIVE));
    Sample::new(Shape { channels: 1, depth: 1, height: 1, width: len }, values).ok()
}

/// A number whose logarithm is uniform.
fn log_uniform(rng: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.random::<f64>())
}

/// Adds cubics, one after the other.
fn add_course(values: &mut [f64], rng: &mut ChaCha8Rng) {
    let (mut from, mut level) = (0, 0.0);
    while from < values.len() {
        let length = log_uniform(rng, 20.0, 600.0);
        let to = (from + length as usize).min(values.len());
        if rng.random_bool(0.4) {
            level = rng.random_range(-1.0..1.0);
        }
        let [slope, bend, twist] = [0.8, 0.8, 0.5].map(|most| rng.random_range(-most..most));
        for (i, v) in values[from..to].iter_mut().enumerate() {
            let t = i as f64 / length;
            *v += level + t * (slope + t * (bend + t * twist));
        }
        // Back to the middle, so that the level does not drift away.
        level = 0.8 * (level + slope + bend + twist);
        from = to;
    }
}

/// Adds an oscillation at a random place.
fn add_oscillation(values: &mut [f64], rng: &mut ChaCha8Rng) {
    let length = log_uniform(rng, 60.0, 1500.0);
    let start = rng.random_range(-0.5 * length..values.len() as f64);
    let (pitch, glide) = (log_uniform(rng, 1.0 / 250.0, 0.25), rng.random_range(-0.3..0.3));
    let amplitude = rng.random_range(0.1..0.8);
    let phase = rng.random_range(0.0..TAU);
    let overtones = [0.5, 0.3].map(|most| rng.random_range(0.0..most));
    for (t, v) in within(values, start, length) {
        let envelope = (std::f64::consts::PI * t / length).sin().powi(2).sqrt();
        let turns = TAU * pitch * t * (1.0 + glide * t / length) + phase;
        let wave = turns.sin() + overtones[0] * (2.0 * turns).sin() + overtones[1] * (3.0 * turns).sin();
        *v += amplitude * envelope * wave;
    }
}

/// Adds a bump, or a sound that fades, at a random place.
fn add_transient(values: &mut [f64], rng: &mut ChaCha8Rng) {
    let place = rng.random_range(0.0..values.len().max(1) as f64);
    let amplitude = rng.random_range(0.3..2.0) * if rng.random_bool(0.5) { 1.0 } else { -1.0 };
    if rng.random_bool(0.5) {
        let (width, undershoot) = (log_uniform(rng, 1.0, 25.0), rng.random_range(0.0..1.0));
        for (t, v) in within(values, place - 5.0 * width, 10.0 * width) {
            let u = (t / width - 5.0).powi(2);
            *v += amplitude * (1.0 - undershoot * u) * (-0.5 * u).exp();
        }
    } else {
        let (decay, pitch) = (log_uniform(rng, 4.0, 100.0), log_uniform(rng, 1.0 / 60.0, 0.3));
        let phase = rng.random_range(0.0..TAU);
        for (t, v) in within(values, place, 8.0 * decay) {
            *v += amplitude * (-t / decay).exp() * (TAU * pitch * t + phase).sin();
        }
    }
}

/// The values within a stretch, each with its distance from where that begins.
fn within(values: &mut [f64], start: f64, length: f64) -> impl Iterator<Item = (f64, &mut f64)> {
    // Casts of negative numbers give 0, which is the clipping wanted.
    let from = (start.ceil() as usize).min(values.len());
    let to = ((start + length).ceil() as usize).clamp(from, values.len());
    values[from..to].iter_mut().enumerate().map(move |(i, v)| ((from + i) as f64 - start, v))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_depend_on_the_seed_and_have_jumps_and_calm() {
        let signal = |seed| synthetic_signal(seed, 5000).unwrap();
        assert_eq!(signal(1), signal(1));
        assert_ne!(signal(1), signal(2));
        let values = signal(3).into_data();
        let mean = values.iter().sum::<f64>() / 5000.0;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / 5000.0;
        assert!(mean.abs() < 1e-9 && (variance - 1.0).abs() < 1e-9);
        let differences: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let moment = |k: i32| differences.iter().map(|d| d.powi(k)).sum::<f64>() / 4999.0;
        let kurtosis = moment(4) / moment(2).powi(2);
        assert!(kurtosis > 5.0, "a kurtosis of {kurtosis}; Gaussian: 3");
        assert!(synthetic_signal(0, 0).is_none());
        assert!(synthetic_signal(0, 1).unwrap().data()[0].is_finite());
    }
}
