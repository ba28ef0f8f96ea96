//! Lag statistics against the objective that they stand for.

use crate::common::lags::{direct, positions};
use crate::common::*;
use ocsc::settings::Boundary;
use ocsc::statistics::Lags;
use ocsc::{Code, Dictionary, Sample, Shape};
use proptest::prelude::*;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

type Pair = (Sample<f64>, Code<f64>);

fn pair(sample: Shape, d: &Dictionary<f64>, boundary: Boundary, density: f64, seed: u64) -> Pair {
    let x = Sample::new(sample, normal(sample.len(), seed)).unwrap();
    (x, sparse_code(d.n_filters(), positions(sample, d.shape(), boundary), density, seed + 1))
}

/// (sample, filter): 1-D, 2-D and 3-D, from samples as short as the filter to longer than 2m - 1.
fn shapes() -> impl Strategy<Value = (Shape, Shape)> {
    let sizes = prop_oneof![
        (Just([1_usize, 1]), 1..20_usize, Just([1_usize, 1]), 0..24_usize),
        (Just([1_usize, 1]), 1..4_usize, Just([1_usize, 4]), 0..6_usize),
        (Just([1_usize, 1]), 1..6_usize, Just([1_usize, 1]), 0..9_usize),
        (Just([2_usize, 2]), 1..3_usize, Just([2_usize, 1]), 0..4_usize),
    ];
    (sizes, 1..6_usize, 0..9_usize, 1..4_usize).prop_map(|(([fd, fh], fw, [d, h], more), tall, higher, channels)| {
        let filter = Shape { channels, depth: fd, height: if h > 1 { fh * tall } else { fh }, width: fw };
        let sample =
            Shape { channels, depth: fd + d - 1, height: filter.height + (h - 1) * higher / 3, width: fw + more };
        (sample, filter)
    })
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn the_objective_is_the_direct_one(
        (sample, filter) in shapes(), k in 1..6_usize, density in 0.02..0.5_f64, seed in 0..10_000_u64,
    ) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let other = Dictionary::random(k, filter, 3, seed + 1).unwrap();
        for boundary in BOUNDARIES {
            let mut lags = Lags::new(k, filter);
            let (mut sum, mut sum_other) = (0.0, 0.0);
            for i in 0..3 {
                let (x, z) = pair(sample, &d, boundary, density, seed + 10 * i);
                lags.absorb(&x, &z, &d, boundary).unwrap();
                sum += direct(&x, &z, &d, boundary);
                sum_other += direct(&x, &z, &other, boundary);
            }
            let (found, found_other) = (lags.objective(&d), lags.objective(&other));
            prop_assert!((found - sum).abs() < 1e-10 * sum.max(sum_other), "{boundary:?} {found} {sum}");
            if boundary == Boundary::Free {
                prop_assert!(found_other >= sum_other - 1e-10 * sum_other, "fills majorise");
            } else {
                prop_assert!(relative(found_other, sum_other) < 1e-10, "{boundary:?} {found_other} {sum_other}");
            }
        }
    }
}

/// 2-D in earnest, odd and even, and smaller than 2m - 1.
#[test]
fn images_of_all_sizes() {
    for (h, w, fh, fw) in [(9, 12, 3, 4), (5, 5, 5, 5), (6, 7, 5, 4), (20, 23, 7, 18), (4, 30, 1, 17), (9, 9, 1, 1)] {
        for channels in [1, 3] {
            let filter = Shape { channels, depth: 1, height: fh, width: fw };
            let sample = Shape { channels, depth: 1, height: h, width: w };
            let d = Dictionary::random(4, filter, 2, 3).unwrap();
            for boundary in BOUNDARIES {
                let (x, z) = pair(sample, &d, boundary, 0.1, 5);
                let mut lags = Lags::new(4, filter);
                lags.absorb(&x, &z, &d, boundary).unwrap();
                let expected = direct(&x, &z, &d, boundary);
                assert!(relative(lags.objective(&d), expected) < 1e-10, "{h}x{w} {boundary:?}");
            }
        }
    }
}

#[test]
fn merging_adds_and_scaling_scales() {
    let (sample, filter) = (Shape::image(9, 10), Shape::image(4, 3));
    let d = Dictionary::random(3, filter, 2, 1).unwrap();
    let [a, b] = [1, 2].map(|seed| pair(sample, &d, Boundary::Zero, 0.2, seed));
    let absorb = |pairs: &[&Pair]| {
        let mut lags = Lags::new(3, filter);
        pairs.iter().for_each(|(x, z)| lags.absorb(x, z, &d, Boundary::Zero).unwrap());
        lags
    };
    let (mut sum, both) = (absorb(&[&a]), absorb(&[&a, &b]));
    sum.merge(&absorb(&[&b])).unwrap();
    assert!(relative(sum.objective(&d), both.objective(&d)) < 1e-13);
    for (k, l) in [(0, 0), (0, 2), (2, 0), (1, 2)] {
        for lag in [[0, 0, 0], [0, 3, -2], [0, -1, 2]] {
            assert!((sum.lag(k, l, lag) - both.lag(k, l, lag)).abs() < 1e-13);
            assert_eq!(both.lag(k, l, lag), both.lag(l, k, lag.map(|t: isize| -t)));
        }
    }
    sum.scale(0.25);
    assert!(relative(sum.objective(&d), 0.25 * both.objective(&d)) < 1e-13);
    assert!(sum.merge(&Lags::new(4, filter)).is_err());
}

/// The common weight leaves no trace, also across the bounds where it is multiplied in, and in merged statistics.
#[test]
fn scaling_before_every_sample_is_the_weighted_sum() {
    let (sample, filter) = (Shape::image(9, 10), Shape::image(4, 3));
    let d = Dictionary::random(3, filter, 2, 1).unwrap();
    for scale in [0.7, 0.01, 3.0, 1e-30, 1e20, 0.0] {
        let (mut lags, mut expected) = (Lags::new(3, filter), 0.0);
        for i in 0..12 {
            let (x, z) = pair(sample, &d, Boundary::Circular, 0.1, i);
            lags.scale(scale);
            lags.absorb(&x, &z, &d, Boundary::Circular).unwrap();
            expected = scale * expected + direct(&x, &z, &d, Boundary::Circular);
            assert!(relative(lags.objective(&d), expected) < 1e-12, "{scale} {i}");
        }
        let (x, z) = pair(sample, &d, Boundary::Circular, 0.1, 99);
        let (mut both, mut other) = (lags.clone(), Lags::new(3, filter));
        both.absorb(&x, &z, &d, Boundary::Circular).unwrap();
        other.absorb(&x, &z, &d, Boundary::Circular).unwrap();
        lags.merge(&other).unwrap();
        let scale = both.lag(0, 0, [0; 3]);
        for (k, l) in [(0, 0), (0, 2), (1, 0)] {
            assert!((lags.lag(k, l, [0, 1, -2]) - both.lag(k, l, [0, 1, -2])).abs() < 1e-12 * scale);
            assert!(distance(&lags.psi(k), &both.psi(k)) < 1e-12);
        }
    }
}

#[test]
fn other_shapes_are_refused() {
    let d = Dictionary::<f64>::random(3, Shape::image(4, 3), 2, 1).unwrap();
    let mut lags = Lags::new(3, d.shape());
    let (x, z) = pair(Shape::image(9, 10), &d, Boundary::Circular, 0.2, 1);
    assert!(lags.absorb(&x, &z, &d, Boundary::Zero).is_err());
    assert!(lags.absorb(&x, &Code::zero(4, [1, 9, 10]), &d, Boundary::Circular).is_err());
    assert!(Lags::new(3, Shape::image(3, 3)).absorb(&x, &z, &d, Boundary::Circular).is_err());
}
