//! The quality measures: against scikit-image, against direct sums, and by their properties.

use ocsc::metrics::{Objective, mse, psnr, range, sparsity, ssim};
use ocsc::settings::Boundary;
use ocsc::{Atom, Code, Dictionary, Sample, Shape};
use proptest::prelude::*;

fn sample(shape: Shape, data: Vec<f64>) -> Sample<f64> {
    Sample::new(shape, data).unwrap()
}

/// The pair of test images of the reference values below: `a` is smooth, `b` is a plus a ripple and an offset.
fn pair(channels: usize, height: usize, width: usize) -> (Sample<f64>, Sample<f64>) {
    let shape = Shape { channels, ..Shape::image(height, width) };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for i in 0..shape.len() {
        let (c, y, x) = ((i / (height * width)) as f64, ((i / width) % height) as f64, (i % width) as f64);
        a.push(0.5 + 0.3 * (0.4 * y + 0.05 * x * x + c).sin());
        b.push(a[i] + 0.1 * (1.7 * y - 0.9 * x).cos() + 0.05);
    }
    (sample(shape, a), sample(shape, b))
}

/// Reference values from scikit-image 0.26.0, on the arrays of [`pair`] built with `numpy.mgrid` by the same formulas:
/// `structural_similarity(a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=peak)`, with
/// `channel_axis=-1` for the colour pair, and `peak_signal_noise_ratio(a, b, data_range=peak)`.
#[test]
fn agrees_with_scikit_image() {
    let (a, b) = pair(1, 24, 31);
    for (peak, similarity, decibels) in
        [(1.0, 0.93813528867562, 21.22661727215389), (2.5, 0.9412014865639823, 29.18541744559464)]
    {
        assert!((ssim(&a, &b, peak).unwrap() - similarity).abs() < 1e-12);
        assert!((psnr(&a, &b, peak).unwrap() - decibels).abs() < 1e-12);
    }
    let (a, b) = pair(1, 11, 11);
    assert!((ssim(&a, &b, 1.0).unwrap() - 0.9307307618532399).abs() < 1e-12, "one window");
    let (a, b) = pair(3, 24, 31);
    assert!((ssim(&a, &b, 1.0).unwrap() - 0.9383685698427326).abs() < 1e-12, "three channels");
}

#[test]
fn refuses_what_has_no_answer() {
    let (a, b) = pair(1, 12, 12);
    let (other, _) = pair(1, 12, 13);
    assert!(mse(&a, &other).is_err());
    assert!(psnr(&a, &other, 1.0).is_err());
    assert!(ssim(&a, &other, 1.0).is_err());
    for peak in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(psnr(&a, &b, peak).is_err(), "{peak}");
        assert!(ssim(&a, &b, peak).is_err(), "{peak}");
    }
    for (height, width) in [(10, 40), (40, 10), (1, 1)] {
        let (a, b) = pair(1, height, width);
        let message = ssim(&a, &b, 1.0).unwrap_err().to_string();
        assert!(message.contains("11x11"), "{message}");
    }
    assert!(range::<f64>(&[] as &[Sample<f64>]).is_err());
    assert!(ssim(&a.map(|v| 1e200 * v), &b, 1.0).is_err());
}

#[test]
fn range_spans_all_samples() {
    let line = |values: &[f64]| sample(Shape::image(1, values.len()), values.to_vec());
    let samples = [line(&[0.0, 3.0]), line(&[-2.0]), line(&[1.0, 1.0, 1.0])];
    assert_eq!(range(&samples).unwrap(), 5.0);
    assert_eq!(range(samples).unwrap(), 5.0);
    assert_eq!(range([line(&[4.0])]).unwrap(), 0.0);
}

/// One sample of a 5x6 circle, two 2x3 filters, three atoms of which one wraps around both borders.
#[test]
fn objective_and_sparsity_are_the_direct_sums() {
    let (height, width) = (5, 6);
    let x: Vec<f64> = (0..30).map(|i| f64::from(i * i % 11) - 5.0).collect();
    let filters: Vec<f64> = (0..12).map(|i| f64::from(i % 5) / 10.0 - 0.2).collect();
    let dictionary = Dictionary::new(2, Shape::image(2, 3), 2, filters.clone()).unwrap();
    let atoms = [(0, 7, 2.0), (1, 8, -1.5), (1, 29, 0.5)];
    let atom = |&(filter, position, value)| Atom { filter, position, value };
    let code = Code::new(2, [1, height, width], atoms.iter().map(atom).collect()).unwrap();

    let mut residual = x.clone();
    for &(k, p, z) in &atoms {
        for i in 0..6 {
            let (y, x) = ((p as usize / width + i / 3) % height, (p as usize % width + i % 3) % width);
            residual[y * width + x] -= z * filters[6 * k as usize + i];
        }
    }
    let data_term = residual.iter().map(|r| r * r).sum::<f64>() / 2.0;
    let objective =
        Objective::of(&sample(Shape::image(height, width), x), &code, &dictionary, Boundary::Circular).unwrap();
    assert!((objective.data_term - data_term).abs() <= 1e-12 * data_term);
    assert_eq!(objective.l1, 4.0);
    assert!((objective.total(0.5) - (data_term + 2.0)).abs() <= 1e-12 * data_term);

    assert_eq!(sparsity(&code), 3.0 / 60.0);
    assert_eq!(sparsity(&Code::<f64>::zero(0, [0, 0, 0])), 0.0);
    assert!(Objective::of(&sample(Shape::image(6, 5), vec![0.0; 30]), &code, &dictionary, Boundary::Circular).is_err());
}

prop_compose! {
    /// Two images of one shape that SSIM accepts.
    fn pairs()(channels in 1usize..3, depth in 1usize..3, height in 11usize..20, width in 11usize..20)(
        a in prop::collection::vec(-1.0..1.0f64, channels * depth * height * width),
        b in prop::collection::vec(-1.0..1.0f64, channels * depth * height * width),
        shape in Just(Shape { channels, depth, height, width }),
    ) -> (Sample<f64>, Sample<f64>) {
        (sample(shape, a), sample(shape, b))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_samples_are_perfect((a, _) in pairs(), peak in 0.01..300.0f64, offset in -1e9..1e9f64) {
        let a = a.map(|v| v + offset);
        prop_assert_eq!(mse(&a, &a).unwrap(), 0.0);
        prop_assert_eq!(psnr(&a, &a, peak).unwrap(), f64::INFINITY);
        prop_assert_eq!(ssim(&a, &a, peak).unwrap(), 1.0);
    }

    #[test]
    fn psnr_of_a_shift_is_known((a, _) in pairs(), shift in 0.001..10.0f64, peak in 0.01..300.0f64) {
        let found = psnr(&a, &a.map(|v| v + shift), peak).unwrap();
        prop_assert!((found - 20.0 * (peak / shift).log10()).abs() <= 1e-9);
    }

    #[test]
    fn both_are_symmetric_and_know_no_units((a, b) in pairs(), scale in 0.01..100.0f64) {
        prop_assert_eq!(mse(&a, &b).unwrap(), mse(&b, &a).unwrap());
        let similarity = ssim(&a, &b, 2.0).unwrap();
        prop_assert!((-1.0..=1.0).contains(&similarity));
        prop_assert!((ssim(&b, &a, 2.0).unwrap() - similarity).abs() <= 1e-12);
        let (large_a, large_b) = (a.map(|v| scale * v), b.map(|v| scale * v));
        prop_assert!((ssim(&large_a, &large_b, 2.0 * scale).unwrap() - similarity).abs() <= 1e-10);
        prop_assert!((psnr(&large_a, &large_b, 2.0 * scale).unwrap() - psnr(&a, &b, 2.0).unwrap()).abs() <= 1e-9);
    }
}
