//! Unobserved values: they influence nothing, and the masked problem is the one that is solved.

use crate::active_set::{coder, explicit, problems};
use crate::common::lags::positions;
use crate::common::*;
use ocsc::coder::{Coder, Status};
use ocsc::metrics::{Objective, mse, psnr, range};
use ocsc::settings::{ActiveSetConfig, Boundary};
use ocsc::statistics::Lags;
use ocsc::{Code, Config, Dictionary, Online, Real, Sample, Shape};
use proptest::prelude::*;
use rand::RngExt;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

/// A random mask that hides about this share, and not everything.
fn mask(len: usize, hidden: f64, seed: u64) -> Vec<bool> {
    let mut rng = rng(seed);
    let mut mask: Vec<bool> = (0..len).map(|_| !rng.random_bool(hidden)).collect();
    mask[len / 2] = true;
    mask
}

/// Noise of which about a third is hidden; what was given for the hidden values depends on `lie`.
fn damaged<T: Real>(shape: Shape, seed: u64, lie: f64) -> Sample<T> {
    let mask = mask(shape.len(), 0.3, seed + 7);
    let mut data = normal::<T>(shape.len(), seed);
    data.iter_mut().zip(&mask).filter(|(_, seen)| !**seen).for_each(|(v, _)| *v = T::of(lie));
    Sample::masked(shape, data, mask).unwrap()
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn codes_are_optimal_for_what_was_observed((sample, filter, k, seed) in problems(), ratio in 0.05..0.9_f64) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let x = damaged::<f64>(sample, seed, f64::NAN);
        let config = ActiveSetConfig::default();
        for boundary in BOUNDARIES {
            let (matrix, target) = explicit(&d, &x, boundary);
            let beta_max = coder(&d, 1.0, 1.0, boundary, &config).beta_max(&x).unwrap();
            let expected = matrix.transposed(&target).iter().fold(0.0, |m: f64, c| m.max(c.abs()));
            prop_assert!(relative(beta_max, expected) < 1e-12);
            let beta = ratio * beta_max;
            let coded = coder(&d, beta, 1e-7, boundary, &config).code(&x, None).unwrap();
            prop_assert_eq!(coded.status, Status::Converged);
            let z = coded.code.to_dense().unwrap();
            prop_assert!(relative(coded.total(), matrix.objective(&target, &z, beta)) < 1e-10);
            prop_assert!(coded.gap <= matrix.gap(&target, &z, beta) + 1e-9 * coded.total());
            let minimum = matrix.minimum(&target, beta);
            prop_assert!(coded.total() - minimum <= coded.gap + 1e-9 * minimum, "{boundary:?}");
            prop_assert!(relative(coded.total(), minimum) < 1e-6, "{boundary:?}");
            let again = Objective::of(&x, &coded.code, &d, boundary).unwrap();
            prop_assert!(relative(again.total(beta), coded.total()) < 1e-10);
        }
    }

    /// Where the codes were made, the statistics give the objective of what was observed; elsewhere they lie above it.
    #[test]
    fn statistics_majorise_the_masked_objective((sample, filter, k, seed) in problems()) {
        let d = Dictionary::<f64>::random(k, filter, 3, seed).unwrap();
        let x = damaged::<f64>(sample, seed, 5.0);
        for boundary in BOUNDARIES {
            let z: Code<f64> = sparse_code(k, positions(sample, filter, boundary), 0.2, seed);
            let mut lags = Lags::new(k, filter);
            lags.absorb(&x, &z, &d, boundary).unwrap();
            let masked = |d: &Dictionary<f64>| Objective::of(&x, &z, d, boundary).unwrap().data_term;
            prop_assert!((lags.objective(&d) - masked(&d)).abs() < 1e-10 * (1.0 + masked(&d)), "{boundary:?}");
            let other = Dictionary::random(k, filter, 3, seed + 1).unwrap();
            prop_assert!(lags.objective(&other) >= masked(&other) * (1.0 - 1e-10) - 1e-10);
        }
    }
}

/// Coding and learning to the last bit, in both precisions.
#[test]
fn unobserved_values_have_no_influence() {
    fn check<T: Real>(boundary: Boundary) {
        let learned = |lie: f64| {
            let config = Config { n_filters: 6, filter_shape: vec![5, 4], beta: 0.8, boundary, ..Config::default() };
            let mut learner = Online::<T>::new(config, 2).unwrap();
            let shape = |i: usize| Shape { channels: 2, depth: 1, height: 20 + i, width: 33 - i };
            let gaps: Vec<f64> =
                (0..14).map(|i| learner.partial_fit(&damaged(shape(i % 3), i as u64, lie)).unwrap().gap()).collect();
            (learner.dictionary().clone(), gaps)
        };
        let honest = learned(0.0);
        assert!(honest.1.iter().all(|gap| *gap <= 0.01));
        assert_eq!(honest, learned(1e30));
        assert_eq!(honest, learned(f64::NAN));
    }
    for boundary in BOUNDARIES {
        check::<f32>(boundary);
        check::<f64>(boundary);
    }
}

/// A hidden frame of filter-minus-one zeros around a sample is the free boundary, on the circle and among zeros.
#[test]
fn a_hidden_frame_is_the_free_boundary() {
    let (filter, inner) = (Shape::image(4, 3), Shape::image(9, 12));
    let d = Dictionary::<f64>::random(5, filter, 2, 3).unwrap();
    let x = Sample::new(inner, normal(inner.len(), 4)).unwrap();
    let outer = Shape::image(9 + 2 * 3, 12 + 2 * 2);
    let place = |y: usize, z: usize| (3..12).contains(&y) && (2..14).contains(&z);
    let at = |i: usize| (i / outer.width, i % outer.width);
    let mask: Vec<bool> = (0..outer.len()).map(|i| place(at(i).0, at(i).1)).collect();
    let value = |i: usize| if mask[i] { x.data()[(at(i).0 - 3) * 12 + at(i).1 - 2] } else { 9.0 };
    let framed = Sample::masked(outer, (0..outer.len()).map(value).collect(), mask.clone()).unwrap();
    let config = ActiveSetConfig::default();
    let free = coder(&d, 0.5, 1e-8, Boundary::Free, &config).code(&x, None).unwrap();
    for boundary in [Boundary::Circular, Boundary::Free] {
        let masked = coder(&d, 0.5, 1e-8, boundary, &config).code(&framed, None).unwrap();
        assert!(relative(masked.total(), free.total()) < 1e-7, "{boundary:?}");
    }
}

/// Samples of planted filters with a fifth of the values lost: filters learned from what is left fill holes nearly as well
/// as those learned from whole samples, and better than those that took the losses for zeros.
#[test]
fn learns_from_damaged_samples_and_fills_the_holes() {
    let (whole, _) = planted::<f32>(4, 24, 120, 0.01, 5);
    let damaged = |i: usize, hidden: f64| {
        let x = &whole[i];
        Sample::masked(x.shape(), x.data().to_vec(), mask(x.data().len(), hidden, i as u64)).unwrap()
    };
    let config = Config { n_filters: 8, filter_shape: vec![5, 5], beta: 0.1, tol: 0.003, ..Config::default() };
    let learned = |sample: &dyn Fn(usize) -> Sample<f32>| {
        let mut learner = Online::<f32>::new(config.clone(), 1).unwrap();
        (0..110).for_each(|i| drop(learner.partial_fit(&sample(i)).unwrap()));
        learner.dictionary().clone()
    };
    // On the hidden values of samples that were not learned from, relative to filling with zeros.
    let error = |d: &Dictionary<f32>| {
        let mut coder = coder(d, 0.1, 0.003, config.boundary, &ActiveSetConfig::default());
        let one = |i: usize| {
            let x = damaged(i, 0.33);
            let estimate = coder.code(&x, None).unwrap().code.reconstruct(d, config.boundary).unwrap();
            let hidden: Vec<bool> = x.mask().unwrap().iter().map(|seen| !seen).collect();
            let hidden = Sample::masked(x.shape(), whole[i].data().to_vec(), hidden).unwrap();
            let zero = Sample::new(x.shape(), vec![0.0; x.data().len()]).unwrap();
            mse(&hidden, &estimate).unwrap() / mse(&hidden, &zero).unwrap()
        };
        (110..120).map(one).sum::<f64>() / 10.0
    };
    let masked = error(&learned(&|i| damaged(i, 0.2)));
    let intact = error(&learned(&|i| whole[i].clone()));
    let deceived = error(&learned(&|i| Sample::new(whole[i].shape(), damaged(i, 0.2).data().to_vec()).unwrap()));
    assert!(masked < 0.5 && masked < 1.4 * intact, "masked {masked:.3}, intact {intact:.3}, deceived {deceived:.3}");
    assert!(deceived > 1.1 * masked, "masked {masked:.3}, intact {intact:.3}, deceived {deceived:.3}");
}

#[test]
fn metrics_are_over_observed_values() {
    let shape = Shape { channels: 2, depth: 1, height: 1, width: 2 };
    let x = Sample::masked(shape, vec![1.0, 50.0, 3.0, f64::NAN], vec![true, false]).unwrap();
    assert_eq!(x.data(), [1.0, 0.0, 3.0, 0.0]);
    assert_eq!((x.mask(), x.n_observed()), (Some(&[true, false, true, false][..]), 2));
    assert_eq!(x.observed().collect::<Vec<_>>(), [1.0, 3.0]);
    assert_eq!(range([&x]).unwrap(), 2.0);
    let estimate = Sample::new(shape, vec![2.0, 77.0, 3.0, -5.0]).unwrap();
    assert_eq!(mse(&x, &estimate).unwrap(), 0.5);
    assert!((psnr(&x, &estimate, 2.0).unwrap() - 10.0 * 8f64.log10()).abs() < 1e-12);
    assert_eq!(x.map(|v| v + 1.0).data(), [2.0, 0.0, 4.0, 0.0]);
    assert_eq!(x.clone().cast::<f32>().unwrap().mask(), x.mask());
}

#[test]
fn refuses_masks_that_do_not_fit() {
    let shape = Shape { channels: 3, depth: 1, height: 2, width: 2 };
    let refused = |mask: Vec<bool>| Sample::masked(shape, vec![0.0_f32; 12], mask).unwrap_err().to_string();
    assert_eq!(refused(vec![true; 5]), "mask: expected 4 or 12 truth values for shape 3 channels of 2x2, found 5");
    assert_eq!(refused(vec![false; 4]), "mask: expected at least one observed value, found none");
    assert!(Sample::masked(shape, vec![0.0; 12], vec![true; 4]).unwrap().mask().is_none());
    let nan = Sample::masked(shape, vec![f32::NAN; 12], [vec![true], vec![false; 3]].concat()).unwrap_err().to_string();
    assert!(nan.contains("finite values"), "{nan}");
}
