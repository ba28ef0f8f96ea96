//! Mean, scale, low-pass split and whitening against their definitions, and what steps make of masks and constants.

use super::{sample, samples};
use crate::common::{distance, normal};
use ocsc::preprocess::Preprocess;
use ocsc::{Sample, Shape};
use proptest::prelude::*;
use serde_json::Value;
use std::f64::consts::PI;

fn list(steps: &str) -> Preprocess {
    steps.parse().unwrap()
}

fn applied(steps: &str, x: &Sample<f64>) -> Vec<f64> {
    list(steps).apply(x.clone()).unwrap().into_data()
}

fn signal(data: Vec<f64>) -> Sample<f64> {
    sample(Shape::image(1, data.len()), data)
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// The split, by conjugate gradients on the circle that begins with the continuation before the first value.
fn high(x: &[f64], axes: [usize; 3], lambda: f64) -> Vec<f64> {
    let padding = axes.map(|n| if n == 1 { 0 } else { 16 });
    let long = [0, 1, 2].map(|a| axes[a] + 2 * padding[a]);
    let place = |i: usize| [i / (long[1] * long[2]), i / long[2] % long[1], i % long[2]];
    let source = |i: usize| {
        let p = place(i);
        let [z, y, x] = [0, 1, 2].map(|a| {
            let mut at = p[a] as isize - padding[a] as isize;
            while !(0..axes[a] as isize).contains(&at) {
                at = if at < 0 { -1 - at } else { 2 * axes[a] as isize - 1 - at };
            }
            at as usize
        });
        (z * axes[1] + y) * axes[2] + x
    };
    let n: usize = long.iter().product();
    let system = |l: &[f64]| -> Vec<f64> {
        let neighbour = |i: usize, axis: usize, step: usize| {
            let mut p = place(i);
            p[axis] = (p[axis] + step) % long[axis];
            (p[0] * long[1] + p[1]) * long[2] + p[2]
        };
        let second = |i: usize, a: usize| 2.0 * l[i] - l[neighbour(i, a, 1)] - l[neighbour(i, a, long[a] - 1)];
        (0..n).map(|i| l[i] + lambda * (0..3).map(|a| second(i, a)).sum::<f64>()).collect()
    };
    let mut r: Vec<f64> = (0..n).map(|i| x[source(i)]).collect();
    let (mut low, mut p) = (vec![0.0; n], r.clone());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..500 {
        let (before, ap) = (dot(&r, &r), system(&p));
        if before < 1e-28 {
            break;
        }
        let step = before / dot(&p, &ap);
        (0..n).for_each(|i| low[i] += step * p[i]);
        (0..n).for_each(|i| r[i] -= step * ap[i]);
        let ratio = dot(&r, &r) / before;
        (0..n).for_each(|i| p[i] = r[i] + ratio * p[i]);
    }
    let mut high = x.to_vec();
    for i in (0..n).filter(|i| (0..3).all(|a| (padding[a]..padding[a] + axes[a]).contains(&place(*i)[a]))) {
        high[source(i)] -= low[i];
    }
    high
}

/// Burg's method with all its arrays, and e = (root of the powers) (x_t - prediction) from the shorter past.
fn whitened(x: &[f64], order: usize) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|v| v - mean(x)).collect();
    let n = x.len();
    let (mut predictors, mut powers) = (vec![Vec::<f64>::new()], vec![1.0]);
    let (mut f, mut b) = (x.clone(), x.clone());
    for m in 1..=order.min(n - 1) {
        let top: f64 = (m..n).map(|t| 2.0 * f[t] * b[t - 1]).sum();
        let k = top / (m..n).map(|t| f[t].powi(2) + b[t - 1].powi(2)).sum::<f64>();
        let old = predictors[m - 1].clone();
        let mut new: Vec<f64> = (0..m - 1).map(|i| old[i] - k * old[m - 2 - i]).collect();
        new.push(k);
        predictors.push(new);
        powers.push(powers[m - 1] * (1.0 - k * k));
        let (f0, b0) = (f.clone(), b.clone());
        for t in m..n {
            f[t] = f0[t] - k * b0[t - 1];
            b[t] = b0[t - 1] - k * f0[t];
        }
    }
    let p = predictors.len() - 1;
    let error = |t: usize| {
        let m = t.min(p);
        let prediction: f64 = (0..m).map(|i| predictors[m][i] * x[t - 1 - i]).sum();
        (powers[p] / powers[m]).sqrt() * (x[t] - prediction)
    };
    (0..n).map(error).collect()
}

/// Arrays written by `tests/reference/lowpass.py`.
#[test]
fn lowpass_is_that_of_sporco() {
    let cases: Value = serde_json::from_str(include_str!("../../reference/lowpass.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let axes: Vec<usize> = case["axes"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        let width = axes[axes.len() - 1];
        let value = |i: usize| ((i * i * 7 + i * 3) % 101) as f64 / 100.0 + (i % width) as f64 / width as f64;
        let x = sample(Shape::from_axes(1, &axes).unwrap(), (0..axes.iter().product()).map(value).collect());
        let found = applied(&format!("lowpass={}", case["lambda"]), &x);
        let low: Vec<f64> = x.data().iter().zip(found).map(|(x, high)| x - high).collect();
        let expected: Vec<f64> = case["low"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert!(distance(&low, &expected) < 1e-14, "{axes:?}: {:e}", distance(&low, &expected));
    }
}

/// A process with known coefficients is whitened to its innovations, and real recordings to flat spectra.
#[test]
fn whitening_finds_the_innovations() {
    let noise: Vec<f64> = normal(20_000, 3);
    let mut x = vec![0.0; noise.len()];
    for t in 2..x.len() {
        x[t] = 1.6 * x[t - 1] - 0.81 * x[t - 2] + noise[t];
    }
    let found = applied("whiten=2", &signal(x.iter().map(|v| 7.0 + v).collect()));
    let error = mean(&found.iter().zip(&noise).skip(2).map(|(a, b)| (a - b).powi(2)).collect::<Vec<_>>());
    assert!(error < 1e-3, "{error}");
}

#[test]
fn recordings_become_white() {
    let Some(data) = crate::common::data_dir() else { return };
    let lfp: ndarray::Array2<f64> = match ndarray_npy::read_npy(data.join("signals/lfp_striatum.npy")) {
        Ok(lfp) => lfp,
        Err(_) => {
            let lfp: ndarray::Array2<f32> = ndarray_npy::read_npy(data.join("signals/lfp_striatum.npy")).unwrap();
            lfp.mapv(f64::from)
        }
    };
    let x: Vec<f64> = lfp.row(0).iter().take(50_000).copied().collect();
    let correlation = |e: &[f64], lag: usize| {
        e.iter().zip(&e[lag..]).map(|(a, b)| a * b).sum::<f64>() / e.iter().map(|v| v * v).sum::<f64>()
    };
    let e = applied("whiten=16", &signal(x.clone()));
    assert!(correlation(&applied("mean", &signal(x)), 1) > 0.9);
    for lag in 1..16 {
        assert!(correlation(&e, lag).abs() < 0.05, "lag {lag}: {}", correlation(&e, lag));
    }
    // The beginning is no louder than the rest.
    let power = |e: &[f64]| mean(&e.iter().map(|v| v * v).collect::<Vec<_>>());
    assert!(power(&e[..16]) < 20.0 * power(&e), "{} {}", power(&e[..16]), power(&e));
}

#[test]
fn whitening_is_for_signals() {
    let message = list("whiten").apply(sample(Shape::image(2, 9), vec![0.5; 18])).unwrap_err().to_string();
    assert!(message.contains("`whiten`") && message.contains("2x9") && message.contains("signals"), "{message}");
    let two = Shape { channels: 2, ..Shape::image(1, 50) };
    let x: Vec<f64> = normal(100, 5);
    let found = applied("whiten=3", &sample(two, x.clone()));
    for c in 0..2 {
        assert_eq!(found[50 * c..][..50], applied("whiten=3", &signal(x[50 * c..][..50].to_vec())));
    }
}

#[test]
fn a_pixel_is_observed_if_all_its_colours_are() {
    let shape = Shape { channels: 3, ..Shape::image(1, 3) };
    let mask = vec![true, true, false, true, false, false, true, true, false];
    let x: Sample<f64> = Sample::masked(shape, vec![0.5; 9], mask).unwrap();
    let found = list("gray").apply(x).unwrap();
    assert_eq!(found.mask(), Some(&[true, false, false][..]));
    assert!((found.data()[0] - 0.5).abs() < 1e-14 && found.data()[1..] == [0.0, 0.0]);
    let hidden = Sample::masked(shape, vec![0.5; 9], vec![true, true, true, false, false, false, true, true, true]);
    let message = list("gray").apply(hidden.unwrap()).unwrap_err().to_string();
    assert!(message.contains("observed"), "{message}");
}

#[test]
fn steps_that_mix_neighbours_refuse_masks() {
    let x = Sample::masked(Shape::image(4, 5), vec![0.5; 20], (0..20).map(|i| i != 7).collect()).unwrap();
    let message = list("taper").apply(x.clone()).unwrap_err().to_string();
    assert!(message.contains("`taper`") && message.contains("19 of 20"), "{message}");
    assert!(list("taper").apply_undoable(x).is_err());
    let x = Sample::masked(Shape::image(1, 4), vec![0.5; 4], vec![true, false, true, true]).unwrap();
    assert!(list("whiten").apply(x.clone()).unwrap_err().to_string().contains("`whiten`"));
    assert!(ocsc::preprocess::edge_taper(&x).is_err());
}

/// Values at both ends of the range are divided by their deviation like any others.
#[test]
fn extreme_values_are_scaled() {
    let plain: Vec<f64> = normal(50, 9);
    let expected = applied("mean,scale", &signal(plain.clone()));
    for scale in [1e-300, 1e300] {
        let found = applied("mean,scale", &signal(plain.iter().map(|v| v * scale).collect()));
        assert!(distance(&found, &expected) < 1e-12);
        let white = applied("whiten,scale", &signal(plain.iter().map(|v| v * scale).collect()));
        assert!(distance(&white, &applied("whiten,scale", &signal(plain.clone()))) < 1e-12);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lowpass_equals_conjugate_gradients(
        axes in prop::sample::select(vec![[1, 1, 1], [1, 1, 2], [1, 1, 40], [1, 7, 1], [1, 9, 12], [4, 3, 5], [3, 1, 6]]),
        lambda in prop::sample::select(vec![0.05, 1.0, 5.0, 60.0]),
        seed in 0u64..1000,
    ) {
        let pixels: usize = axes.iter().product();
        let x: Vec<f64> = normal(2 * pixels, seed);
        let shape = Shape { channels: 2, depth: axes[0], height: axes[1], width: axes[2] };
        let found = applied(&format!("lowpass={lambda}"), &sample(shape, x.clone()));
        for c in 0..2 {
            let expected = high(&x[c * pixels..][..pixels], axes, lambda);
            for (a, b) in found[c * pixels..].iter().zip(&expected) {
                prop_assert!((a - b).abs() < 1e-11, "{a} {b}");
            }
        }
    }

    #[test]
    fn whitening_equals_the_textbook(n in 2usize..200, order in 1usize..12, seed in 0u64..1000) {
        let noise: Vec<f64> = normal(n, seed);
        let x: Vec<f64> = noise.iter().enumerate().map(|(t, v)| v + (0.2 * PI * t as f64).sin() + 3.0).collect();
        prop_assume!(order < n / 2);
        let (found, expected) = (applied(&format!("whiten={order}"), &signal(x.clone())), whitened(&x, order));
        prop_assert!(distance(&found, &expected) < 1e-10, "{}", distance(&found, &expected));
    }

    #[test]
    fn means_and_scales_are_those_of_the_observed_values(x in samples(), seed in 0u64..1000, value in -1e3..1e3f64) {
        let hide: Vec<f64> = normal(x.data().len(), seed);
        let mut mask: Vec<bool> = hide.iter().map(|v| *v > -0.5).collect();
        mask[0] = true;
        let masked = Sample::masked(x.shape(), x.data().iter().map(|v| value + v).collect(), mask.clone()).unwrap();
        let centred = list("mean").apply(masked.clone()).unwrap();
        let scaled = list("scale").apply(masked.clone()).unwrap();
        prop_assert_eq!(centred.mask(), masked.mask());
        let seen = |i: &usize| mask[*i];
        for c in 0..x.shape().channels {
            let here = || (c * x.shape().pixels()..(c + 1) * x.shape().pixels()).filter(seen);
            let values: Vec<f64> = here().map(|i| masked.data()[i]).collect();
            for i in here() {
                prop_assert!((centred.data()[i] - (masked.data()[i] - mean(&values))).abs() < 1e-11);
            }
        }
        let values: Vec<f64> = (0..mask.len()).filter(seen).map(|i| masked.data()[i]).collect();
        let deviation = mean(&values.iter().map(|v| (v - mean(&values)).powi(2)).collect::<Vec<_>>()).sqrt();
        if deviation > 1e-3 {
            for i in (0..mask.len()).filter(seen) {
                prop_assert!((scaled.data()[i] * deviation - masked.data()[i]).abs() < 1e-7);
            }
        }
        for i in (0..mask.len()).filter(|i| !mask[*i]) {
            prop_assert!(centred.data()[i] == 0.0 && scaled.data()[i] == 0.0);
        }
        let fixed = list("scale=4").apply(masked.clone()).unwrap();
        prop_assert_eq!(fixed, masked.map(|v| v / 4.0));
    }

    #[test]
    fn constants_become_zero_and_never_nan(x in samples(), value in -1e3..1e3f64) {
        let flat = x.map(|_| value);
        prop_assert!(applied("mean", &flat).iter().all(|v| *v == 0.0));
        prop_assert!(applied("mean,scale", &flat).iter().all(|v| *v == 0.0));
        prop_assert_eq!(applied("scale", &flat), flat.data());
        prop_assert!(applied("lowpass", &flat).iter().all(|v| v.abs() <= 1e-12 * value.abs()));
        let line = signal(flat.data().to_vec());
        prop_assert!(applied("whiten,scale", &line).iter().all(|v| *v == 0.0));
    }
}
