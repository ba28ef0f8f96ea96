//! The way back: what was prepared comes back, and so does what differs from it.

use super::{max_difference, sample, samples};
use crate::common::{distance, normal};
use ocsc::preprocess::{Preprocess, gray};
use ocsc::{Sample, Shape};
use proptest::prelude::*;

fn list(steps: &str) -> Preprocess {
    steps.parse().unwrap()
}

/// There and back.
fn returned(steps: &str, x: &Sample<f64>) -> Sample<f64> {
    let (prepared, undo) = list(steps).apply_undoable(x.clone()).unwrap();
    assert_eq!(prepared, list(steps).apply(x.clone()).unwrap());
    undo.apply(prepared).unwrap()
}

const IMAGES: [&str; 9] = [
    "none",
    "mean",
    "scale",
    "scale=255",
    "lowpass",
    "lcn",
    "mean,scale,lowpass=0.5",
    "lowpass=40,lcn,scale",
    "scale,lcn,lowpass,mean",
];

/// Signals that are hard to predict, easy, and too easy.
fn signals() -> Vec<(&'static str, Vec<f64>)> {
    let time = |f: fn(f64) -> f64| (0..3000).map(|t| f(f64::from(t))).collect::<Vec<f64>>();
    let mut walk: Vec<f64> = normal(3000, 1);
    (1..walk.len()).for_each(|t| walk[t] += walk[t - 1]);
    vec![
        ("noise", normal(3000, 2)),
        ("random walk", walk),
        ("sine", time(|t| 5.0 + (0.01 * t).sin())),
        ("two sines", time(|t| (0.01 * t).sin() + 1e-3 * (0.7 * t).cos())),
        ("ramp", time(|t| t)),
        ("parabola", time(|t| t * t)),
        ("impulse", time(|t| if t == 7.0 { 1.0 } else { 0.0 })),
        ("alternating", time(|t| 1.0 - 2.0 * (t % 2.0))),
        ("decay", time(|t| (-0.1 * t).exp())),
    ]
}

#[test]
fn signals_come_back_from_whitening() {
    for (name, x) in signals() {
        for steps in ["whiten=1", "whiten", "whiten=64", "whiten,scale", "lowpass=100,scale,whiten=4", "mean,whiten=3"]
        {
            let line = sample(Shape::image(1, x.len()), x.clone());
            let found = returned(steps, &line);
            assert!(distance(found.data(), &x) < 1e-9, "{name}, {steps}: {:e}", distance(found.data(), &x));
        }
    }
}

/// Rounding to single precision, as coding in it does, costs what it costs.
#[test]
fn errors_come_back_as_errors() {
    for (name, x) in signals() {
        let line = sample(Shape::image(1, x.len()), x.clone());
        let (prepared, undo) = list("whiten").apply_undoable(line).unwrap();
        let rounded: Sample<f64> = prepared.cast::<f32>().unwrap().cast().unwrap();
        let error = distance(undo.apply(rounded).unwrap().data(), &x);
        assert!(error < 1e-4, "{name}: {error:e}");
    }
}

#[test]
fn a_reconstruction_of_another_shape_is_refused() {
    let (_, undo) = list("mean").apply_undoable(sample(Shape::image(2, 3), vec![1.0; 6])).unwrap();
    let message = undo.apply(sample(Shape::image(3, 2), vec![1.0; 6])).unwrap_err().to_string();
    assert!(message.contains("2x3") && message.contains("3x2"), "{message}");
}

#[test]
fn only_a_taper_has_no_inverse() {
    for steps in IMAGES.into_iter().chain(["gray", "whiten"]) {
        assert!(list(steps).has_inverse(), "{steps}");
    }
    assert!(!list("taper").has_inverse() && !Preprocess::paper().has_inverse());
}

/// Beyond the border of 11 pixels the gray image comes back from the paper's chain.
#[test]
fn tapered_images_come_back_inside() {
    let shape = Shape { channels: 3, ..Shape::image(40, 50) };
    let x = sample(shape, normal::<f64>(shape.len(), 4).iter().map(|v| 0.5 + 0.1 * v).collect());
    let (back, original) = (returned("gray,lcn,taper", &x), gray(&x).unwrap());
    let far = |i: usize| (11..29).contains(&(i / 50)) && (11..39).contains(&(i % 50));
    for (i, (a, b)) in back.data().iter().zip(original.data()).enumerate() {
        assert!(!far(i) || (a - b).abs() < 1e-12, "{i}: {a} {b}");
    }
    assert!(max_difference(&back, &original) > 0.01);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_prepared_comes_back(x in samples(), scale in 0.01..1e4f64, offset in -1e3..1e3f64) {
        let x = x.map(|v| scale * v + offset);
        for steps in IMAGES {
            let error = distance(returned(steps, &x).data(), x.data());
            prop_assert!(error < 1e-9, "{steps}: {error:e}");
        }
        for steps in ["gray", "gray,lowpass,scale", "gray,lcn"] {
            let error = distance(returned(steps, &x).data(), gray(&x).unwrap().data());
            prop_assert!(error < 1e-9, "{steps}: {error:e}");
        }
        let flat = x.map(|_| offset);
        for steps in IMAGES {
            prop_assert!(distance(returned(steps, &flat).data(), flat.data()) < 1e-12, "{steps}");
        }
    }

    #[test]
    fn short_signals_come_back(n in 1usize..30, channels in 1usize..3, seed in 0u64..1000) {
        let x = sample(Shape { channels, ..Shape::image(1, n) }, normal(channels * n, seed));
        for steps in ["whiten", "whiten=1", "whiten=256", "mean,whiten,scale", "lowpass,whiten"] {
            let error = distance(returned(steps, &x).data(), x.data());
            prop_assert!(error < 1e-9, "{steps}: {error:e}");
        }
    }

    /// A reconstruction that differs by d in the coded domain differs in the original one by d times what was divided by.
    #[test]
    fn differences_come_back_in_the_original_units(x in samples(), seed in 0u64..1000) {
        let d: Vec<f64> = normal(x.data().len(), seed);
        for (steps, factor) in [("mean", 1.0), ("lowpass,mean", 1.0), ("scale=4,lowpass", 4.0)] {
            let (prepared, undo) = list(steps).apply_undoable(x.clone()).unwrap();
            let moved = prepared.data().iter().zip(&d).map(|(y, d)| y + d).collect();
            let back = undo.apply(sample(x.shape(), moved)).unwrap();
            for ((back, x), d) in back.data().iter().zip(x.data()).zip(&d) {
                prop_assert!((back - x - factor * d).abs() < 1e-12, "{steps}");
            }
        }
    }

    /// Masked values are filled: by what the reconstruction says there, and the mean of what was observed.
    #[test]
    fn masked_samples_come_back_whole(x in samples(), seed in 0u64..1000) {
        prop_assume!(x.data().len() > 1);
        let mut mask: Vec<bool> = normal::<f64>(x.data().len(), seed).iter().map(|v| *v > -1.0).collect();
        mask[0] = true;
        let masked = Sample::masked(x.shape(), x.data().to_vec(), mask).unwrap();
        let (prepared, undo) = list("mean,scale").apply_undoable(masked.clone()).unwrap();
        let back = undo.apply(prepared.clone()).unwrap();
        prop_assert_eq!(back.mask(), masked.mask());
        prop_assert!(max_difference(&back, &masked) < 1e-12);
        let filled = undo.apply(sample(x.shape(), prepared.into_data())).unwrap();
        for (filled, masked) in filled.data().iter().zip(masked.data()).filter(|(_, m)| **m != 0.0) {
            prop_assert!((filled - masked).abs() < 1e-12);
        }
    }

    #[test]
    fn single_precision_comes_back_to_single_precision(x in samples()) {
        let narrow: Sample<f32> = x.clone().cast().unwrap();
        for steps in IMAGES {
            let (prepared, undo) = list(steps).apply_undoable(narrow.clone()).unwrap();
            let back: Sample<f64> = undo.apply(prepared).unwrap().cast().unwrap();
            prop_assert!(max_difference(&back, &x) < 1e-4, "{steps}");
        }
    }
}
