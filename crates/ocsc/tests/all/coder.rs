//! The ADMM coder against a textbook ADMM on the explicit matrix, against the optimum, and by its properties.

use crate::common::*;
use faer::Mat;
use faer::linalg::solvers::{PartialPivLu, Solve};
use ocsc::coder::{ActiveSet, Admm, Coded, Coder, Deconvnet, Fista, Masked, Space, Status};
use ocsc::settings::{ActiveSetConfig, Boundary, CoderConfig, StopRule};
use ocsc::{Dictionary, Real, Sample, Shape};
use proptest::prelude::*;

/// Eq. `fcsc_code` step by step, as in the textbook: z, u and y stored, one dense system factored. The library's
/// starting point: u = 0 and y = clip(D^T x, beta) / rho.
fn textbook(matrix: &Matrix, x: &[f64], beta: f64, rho: f64, relaxation: f64, iterations: usize) -> Vec<f64> {
    let n = matrix.columns.len();
    let normal =
        Mat::from_fn(n, n, |i, j| dot(&matrix.columns[i], &matrix.columns[j]) + if i == j { rho } else { 0.0 });
    let factored = PartialPivLu::new(normal.as_ref());
    let correlation = matrix.transposed(x);
    let mut u = vec![0.0; n];
    let mut y: Vec<f64> = correlation.iter().map(|c| c.clamp(-beta, beta) / rho).collect();
    for _ in 0..iterations {
        let right = Mat::from_fn(n, 1, |i, _| correlation[i] + rho * (u[i] - y[i]));
        let z = factored.solve(&right);
        for i in 0..n {
            let h = relaxation * z[(i, 0)] + (1.0 - relaxation) * u[i];
            u[i] = soft(h + y[i], beta / rho);
            y[i] += h - u[i];
        }
    }
    u
}

fn code<T: Real>(d: &Dictionary<T>, x: &Sample<T>, beta: f64, tol: f64, config: CoderConfig) -> Coded<T> {
    Admm::new(d, beta, tol, config).unwrap().code(x, None).unwrap()
}

fn beta_max<T: Real>(d: &Dictionary<T>, x: &Sample<T>) -> f64 {
    Admm::new(d, 1.0, 1.0, CoderConfig::default()).unwrap().beta_max(x).unwrap()
}

/// Small 1-D, 2-D and 3-D problems of one to three channels: (axes, filter, K, seed).
fn problems() -> impl Strategy<Value = (Shape, Shape, usize, u64)> {
    let sizes = prop_oneof![
        (Just(1_usize), Just(1_usize), 8..40_usize),
        (Just(1_usize), 3..7_usize, 3..7_usize),
        (2..4_usize, 2..4_usize, 2..5_usize),
    ];
    (sizes, 1..4_usize, 1..6_usize, 0..10_000_u64).prop_flat_map(|((d, h, w), channels, k, seed)| {
        let corner = (1..=d, 1..=h, 1..=w.min(7)).prop_map(move |(a, b, c)| colour(channels, [a, b, c]));
        (Just(colour(channels, [d, h, w])), corner, Just(k), Just(seed))
    })
}

/// Whether the last iteration computed D u by transforms: the coder's rule at the code it returned.
fn took_transforms<T: Real>(coded: &Coded<T>, d: &Dictionary<T>) -> bool {
    let pixels: usize = coded.code.shape().iter().product();
    coded.code.nonzeros() * d.shape().len() > 25 * d.n_filters() * pixels.next_multiple_of(16)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn iterates_are_the_textbooks(
        (axes, corner, k, seed) in problems(), iterations in 1..25_usize, plain in any::<bool>(),
        ratio in 0.01..0.6_f64, rho in 0.05..5.0_f64,
    ) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let relaxation = if plain { 1.0 } else { 1.8 };
        let coded = code(&d, &x, beta, 1e-300, fixed(rho, relaxation, iterations));
        let matrix = Matrix::new(&d, axes);
        let expected = textbook(&matrix, x.data(), beta, rho, relaxation, iterations);
        let scale = expected.iter().fold(1e-3, |m: f64, v| m.max(v.abs()));
        let found = coded.code.to_dense().unwrap();
        let error = found.iter().zip(&expected).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
        prop_assert!(error < 1e-9 * scale, "{:e}", error / scale);
    }

    #[test]
    fn objective_and_gap_are_those_of_the_code(
        (axes, corner, k, seed) in problems(), iterations in 1..40_usize, ratio in 0.01..1.2_f64,
    ) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let matrix = Matrix::new(&d, axes);
        let top = matrix.transposed(x.data()).iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        prop_assert!(relative(beta_max(&d, &x), top) < 1e-12);
        let beta = ratio * top;
        let config = CoderConfig { max_iters: iterations, ..CoderConfig::default() };
        let coded = code(&d, &x, beta, 1e-6, config);
        let z = coded.code.to_dense().unwrap();
        prop_assert!(relative(coded.total(), matrix.objective(x.data(), &z, beta)) < 1e-12);
        prop_assert!(relative(coded.objective.l1, z.iter().map(|z| z.abs()).sum()) < 1e-12);
        // That of the best dual point: of the residual, if no other is good enough.
        let gap = matrix.gap(x.data(), &z, beta).max(1e-6 * coded.total());
        prop_assert!(coded.gap <= gap + 1e-10 * coded.total(), "{} {}", coded.gap, gap);
        prop_assert!(coded.iterations <= iterations);
        prop_assert!(coded.status == Status::MaxIters || coded.relative_gap() <= 1e-6);
    }

    #[test]
    fn the_gap_bounds_the_true_error((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let minimum = Matrix::new(&d, axes).minimum(x.data(), beta);
        for max_iters in [1, 2, 3, 5, 10, 30, 100] {
            for tol in [0.5, 1e-2] {
                let coded = code(&d, &x, beta, tol, CoderConfig { max_iters, ..CoderConfig::default() });
                prop_assert!(coded.total() >= minimum * (1.0 - 1e-11));
                prop_assert!(coded.total() - coded.gap <= minimum * (1.0 + 1e-10), "{:?}", coded);
            }
        }
    }

    #[test]
    fn every_rule_reaches_the_optimum(
        (axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64, adaptive_rho in any::<bool>(),
    ) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let minimum = Matrix::new(&d, axes).minimum(x.data(), beta);
        let config = CoderConfig { adaptive_rho, max_iters: 1_000_000, ..CoderConfig::default() };
        for (stop, tol, error) in [
            (StopRule::Gap, 1e-7, 1.01e-7), (StopRule::Residuals, 1e-7, 1e-5), (StopRule::Change, 1e-8, 1e-5),
        ] {
            let coded = code(&d, &x, beta, tol, CoderConfig { stop, ..config.clone() });
            prop_assert_eq!(coded.status, Status::Converged);
            prop_assert!(coded.total() - minimum <= error * minimum, "{:?} {} {}", stop, coded.total(), minimum);
        }
    }

    #[test]
    fn both_coders_agree((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let admm = code(&d, &x, beta, 1e-7, CoderConfig { max_iters: 1_000_000, ..CoderConfig::default() });
        let mut fast = ActiveSet::new(&d, beta, 1e-7, Boundary::Circular, ActiveSetConfig::default()).unwrap();
        prop_assert!(relative(fast.beta_max(&x).unwrap(), beta_max(&d, &x)) < 1e-10);
        prop_assert!(relative(admm.total(), fast.code(&x, None).unwrap().total()) < 1e-6);
    }

    #[test]
    fn from_beta_max_up_the_code_is_zero((axes, corner, k, seed) in problems()) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let top = beta_max(&d, &x);
        for factor in [1.0, 1.0 + 1e-9, 1.5, 1e6] {
            let coded = code(&d, &x, factor * top, 1e-6, CoderConfig::default());
            prop_assert_eq!(coded.code.nonzeros(), 0);
            prop_assert_eq!(coded.gap, 0.0);
            prop_assert_eq!(coded.status, Status::Converged);
            prop_assert!(relative(coded.total(), 0.5 * dot(x.data(), x.data())) < 1e-12);
        }
        let coded = code(&d, &x, 0.98 * top, 1e-7, CoderConfig { max_iters: 10_000, ..CoderConfig::default() });
        prop_assert!(coded.code.nonzeros() > 0);
    }

    #[test]
    fn a_solution_is_kept_by_a_warm_start((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let config = CoderConfig { max_iters: 50_000, ..CoderConfig::default() };
        let solution = code(&d, &x, beta, 1e-8, config.clone());
        let again = Admm::new(&d, beta, 1e-5, config).unwrap().code(&x, Some(&solution.code)).unwrap();
        prop_assert!(again.iterations <= 3, "{}", again.iterations);
        prop_assert!(relative(again.total(), solution.total()) < 1.1e-5);
    }

    #[test]
    fn the_unit_of_the_data_does_not_matter((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let config = CoderConfig { max_iters: 60, ..CoderConfig::default() };
        let coded = code(&d, &x, beta, 1e-9, config.clone());
        // Powers of two are exact, so that even the iterations are the same.
        for unit in [2.0_f64.powi(40), 2.0_f64.powi(-40)] {
            let scaled = code(&d, &x.map(|v| unit * v), unit * beta, 1e-9, config.clone());
            prop_assert_eq!(scaled.iterations, coded.iterations);
            let back: Vec<f64> = scaled.code.to_dense().unwrap().iter().map(|z| z / unit).collect();
            let error = back.iter().zip(coded.code.to_dense().unwrap()).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
            prop_assert!(error < 1e-9, "{}", error);
        }
    }

    #[test]
    fn single_precision_agrees((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f32>(k, corner, seed), noise::<f32>(axes, seed + 1));
        let wide = Dictionary::new(k, d.shape(), d.rank(), widen(d.data())).unwrap();
        let wide_x = Sample::new(x.shape(), widen(x.data())).unwrap();
        let beta = ratio * beta_max(&wide, &wide_x);
        let config = CoderConfig { max_iters: 20_000, ..CoderConfig::default() };
        let single = code(&d, &x, beta, 5e-5, config.clone());
        let double = code(&wide, &wide_x, beta, 5e-5, config);
        prop_assert_eq!(single.status, Status::Converged, "{:e}", single.relative_gap());
        prop_assert!(relative(single.total(), double.total()) < 1e-4);
        let matrix = Matrix::new(&d, axes);
        let z = widen(&single.code.to_dense().unwrap());
        prop_assert!(relative(single.total(), matrix.objective(wide_x.data(), &z, beta)) < 1e-6);
        let gap = matrix.gap(wide_x.data(), &z, beta).max(5e-5 * single.total());
        prop_assert!(single.gap <= gap + 1e-5 * single.total(), "{} {}", single.gap, gap);
        prop_assert!(single.total() - single.gap <= double.total(), "{} {}", single.gap, double.total());
    }
}

/// All coders at a tight tolerance.
fn coders(d: &Dictionary<f64>, beta: f64) -> Vec<(&'static str, Box<dyn Coder<f64>>)> {
    let config = CoderConfig { max_iters: 1_000_000, ..CoderConfig::default() };
    let (tol, settings) = (1e-7, ActiveSetConfig::default());
    let fista = |space| Fista::new(d, beta, tol, space, config.clone()).unwrap();
    vec![
        ("active set", Box::new(ActiveSet::new(d, beta, tol, Boundary::Circular, settings).unwrap())),
        ("admm", Box::new(Admm::new(d, beta, tol, config.clone()).unwrap())),
        ("masked", Box::new(Masked::new(d, beta, tol, config.clone()).unwrap())),
        ("spatial fista", Box::new(fista(Space::Spatial))),
        ("frequency fista", Box::new(fista(Space::Frequency))),
        ("deconvnet", Box::new(Deconvnet::new(d, beta, tol, config.clone()).unwrap())),
    ]
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn every_coder_reaches_the_same_objective((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let beta = ratio * beta_max(&d, &x);
        let minimum = Matrix::new(&d, axes).minimum(x.data(), beta);
        for (name, mut coder) in coders(&d, beta) {
            prop_assert!(relative(coder.beta_max(&x).unwrap(), beta_max(&d, &x)) < 1e-10, "{}", name);
            let coded = coder.code(&x, None).unwrap();
            prop_assert_eq!(coded.status, Status::Converged, "{}", name);
            prop_assert!(relative(coded.total(), minimum) < 1e-6, "{}: {} {}", name, coded.total(), minimum);
            prop_assert!(coded.gap <= 1e-7 * coded.total(), "{}: {}", name, coded.gap);
            prop_assert!(coded.total() - coded.gap <= minimum * (1.0 + 1e-11), "{}: {}", name, coded.gap);
            // From its own solution, and from another dictionary's.
            let again = coder.code(&x, Some(&coded.code)).unwrap();
            prop_assert!(relative(again.total(), minimum) < 1e-6, "{} again", name);
            let other = filters::<f64>(k, corner, seed + 2);
            coder.set_dictionary(&other);
            let coded = coder.code(&x, Some(&coded.code)).unwrap();
            let minimum = Matrix::new(&other, axes).minimum(x.data(), beta);
            prop_assert!(relative(coded.total(), minimum) < 1e-6, "{} with other filters", name);
        }
    }

    #[test]
    fn masked_samples_have_one_optimum((axes, corner, k, seed) in problems(), ratio in 0.1..0.9_f64) {
        let (d, x) = (filters::<f64>(k, corner, seed), noise::<f64>(axes, seed + 1));
        let seen: Vec<bool> = (0..axes.len()).map(|i| (i as u64 * 7 + seed) % 3 != 1).collect();
        let x = Sample::masked(axes, x.data().to_vec(), seen).unwrap();
        let config = CoderConfig { max_iters: 1_000_000, ..CoderConfig::default() };
        let mut masked = Masked::new(&d, 1.0, 1.0, config.clone()).unwrap();
        let top = masked.beta_max(&x).unwrap();
        let beta = ratio * top;
        let mut masked = Masked::new(&d, beta, 1e-7, config).unwrap();
        let mut fast = ActiveSet::new(&d, beta, 1e-7, Boundary::Circular, ActiveSetConfig::default()).unwrap();
        prop_assert!(relative(top, fast.beta_max(&x).unwrap()) < 1e-10);
        let (a, b) = (masked.code(&x, None).unwrap(), fast.code(&x, None).unwrap());
        prop_assert_eq!(a.status, Status::Converged);
        prop_assert!(relative(a.total(), b.total()) < 1e-6, "{} {}", a.total(), b.total());
        prop_assert!(a.total() - a.gap <= b.total() * (1.0 + 1e-10));
    }
}

#[test]
fn threads_do_not_change_a_bit_of_any_coder() {
    for channels in [1, 2] {
        let (d, x) = (filters::<f64>(19, colour(channels, [1, 5, 5]), 1), noise(colour(channels, [1, 20, 37]), 2));
        let beta = 0.4 * beta_max(&d, &x);
        let run = || coders(&d, beta).iter_mut().map(|(_, c)| c.code(&x, None).unwrap()).collect::<Vec<_>>();
        let one = with_threads(1, run);
        assert_eq!(one, with_threads(2, run));
    }
}

/// Seven by seven filters and a tiny beta leave so many non-zeros that D u is computed by transforms; the sparse path is
/// taken by all the small filters above.
#[test]
fn transforms_and_non_zeros_give_the_same_iterates() {
    let cases = [([1, 9, 9], [1, 7, 7], 1, 1), ([1, 8, 10], [1, 8, 7], 2, 1), ([4, 5, 6], [4, 4, 5], 1, 2)];
    for (axes, corner, k, channels) in cases {
        let axes = colour(channels, axes);
        let (d, x) = (filters::<f64>(k, colour(channels, corner), 5), noise::<f64>(axes, 6));
        let beta = 1e-4 * beta_max(&d, &x);
        for relaxation in [1.0, 1.8] {
            let mut dense = 0;
            for iterations in [1, 2, 3, 8, 20] {
                let coded = code(&d, &x, beta, 1e-300, fixed(0.3, relaxation, iterations));
                let expected = textbook(&Matrix::new(&d, axes), x.data(), beta, 0.3, relaxation, iterations);
                assert!(distance(&coded.code.to_dense().unwrap(), &expected) < 1e-9);
                dense += usize::from(took_transforms(&coded, &d));
            }
            assert!(dense >= 3, "the test should exercise the transforms: {dense}");
        }
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    for (channels, ratio) in [(1, 0.2), (1, 1e-4), (3, 0.2), (3, 1e-4)] {
        let (d, x) = (filters::<f32>(19, colour(channels, [1, 5, 5]), 1), noise(colour(channels, [1, 20, 23]), 2));
        let top = beta_max(&d, &x);
        let run = || code(&d, &x, ratio * top, 1e-3, CoderConfig { max_iters: 60, ..CoderConfig::default() });
        let one = with_threads(1, run);
        assert_eq!(one, with_threads(2, run));
        assert_eq!(one, with_threads(3, run));
    }
}

/// A small penalty: so many non-zeros that the active set hands the code over, whose channels must survive.
#[test]
fn dense_codes_of_several_channels_are_handed_over() {
    let (d, x) = (filters::<f64>(30, colour(2, [1, 5, 5]), 6), noise::<f64>(colour(2, [1, 20, 20]), 5));
    let mut fast = ActiveSet::new(&d, 0.01, 1e-4, Boundary::Circular, ActiveSetConfig::default()).unwrap();
    let coded = fast.code(&x, None).unwrap();
    assert!(coded.iterations > ActiveSetConfig::default().max_rounds, "{} iterations", coded.iterations);
    assert_eq!(coded.status, Status::Converged);
    let matrix = Matrix::new(&d, x.shape());
    assert!(relative(coded.total(), matrix.objective(x.data(), &coded.code.to_dense().unwrap(), 0.01)) < 1e-12);
    assert!(coded.gap <= 1e-4 * coded.total());
}

#[test]
fn running_out_of_iterations_is_a_status() {
    let (d, x) = (filters::<f64>(4, [1, 5, 5], 1), noise::<f64>([1, 12, 12], 2));
    for stop in [StopRule::Gap, StopRule::Residuals, StopRule::Change] {
        let config = CoderConfig { max_iters: 3, stop, ..CoderConfig::default() };
        let coded = code(&d, &x, 0.1, 1e-12, config);
        assert_eq!((coded.status, coded.iterations), (Status::MaxIters, 3));
        assert!(coded.relative_gap() > 1e-12);
    }
}

#[test]
fn a_zero_sample_has_a_zero_code() {
    let d = filters::<f32>(4, [1, 3, 3], 1);
    let x = noise::<f32>([1, 8, 8], 1).map(|_| 0.0);
    for stop in [StopRule::Gap, StopRule::Residuals, StopRule::Change] {
        let coded = code(&d, &x, 1.0, 1e-3, CoderConfig { stop, ..CoderConfig::default() });
        assert_eq!((coded.code.nonzeros(), coded.gap, coded.total()), (0, 0.0, 0.0));
        assert_eq!((coded.status, coded.relative_gap()), (Status::Converged, 0.0));
    }
}

/// With a small penalty the code is zero for several of the first iterations, where it does not change either: that is
/// not convergence.
#[test]
fn a_code_that_stays_at_zero_for_a_while_is_not_converged() {
    let mut stays = 0;
    for seed in 0..30 {
        let (d, x) = (filters::<f64>(3, [1, 1, 6], seed), noise::<f64>([1, 1, 15], seed + 1));
        let beta = 0.6 * beta_max(&d, &x);
        let is_zero = |n: usize| code(&d, &x, beta, 1e-300, fixed(0.05, 1.8, n)).code.nonzeros() == 0;
        stays += (1..12).filter(|&n| is_zero(n) && is_zero(n + 1)).count();
        let coded = code(&d, &x, beta, 1e-6, fixed(0.05, 1.8, 100_000));
        assert!(coded.status == Status::Converged && coded.code.nonzeros() > 0, "{seed}");
        assert!(coded.relative_gap() < 1e-2, "{seed}: {}", coded.relative_gap());
        // A zero that is right is accepted, wherever the coder starts.
        let mut coder = Admm::new(&d, 2.0 * beta, 1e-3, fixed(1.0, 1.8, 100_000)).unwrap();
        let zero = coder.code(&x, Some(&coded.code)).unwrap();
        assert_eq!((zero.status, zero.code.nonzeros()), (Status::Converged, 0));
    }
    assert!(stays > 0, "the test should meet the case");
}

/// A coder is used for many samples and dictionaries; none may leave a trace.
#[test]
fn nothing_is_remembered_from_earlier_samples() {
    let config = CoderConfig::default();
    let (d, other) = (filters::<f64>(5, [1, 4, 4], 1), filters::<f64>(5, [1, 4, 4], 2));
    let larger = filters::<f64>(7, [1, 5, 3], 3);
    let (x, y) = (noise::<f64>([1, 11, 12], 4), noise::<f64>([1, 9, 14], 5));
    let fresh = |d: &Dictionary<f64>, x: &Sample<f64>| code(d, x, 0.5, 1e-4, config.clone());
    let mut coder = Admm::new(&other, 0.5, 1e-4, config.clone()).unwrap();
    coder.code(&y, None).unwrap();
    coder.code(&x, None).unwrap();
    let (spanning, z) = (filters::<f64>(5, colour(2, [1, 4, 4]), 6), noise::<f64>(colour(2, [1, 11, 12]), 7));
    for (d, x) in [(&d, &x), (&d, &y), (&larger, &y), (&spanning, &z), (&larger, &x), (&d, &x)] {
        coder.set_dictionary(d);
        coder.beta_max(x).unwrap();
        assert_eq!(coder.code(x, None).unwrap(), fresh(d, x));
    }
}

/// Accuracy that single precision does not have must end in a status, with finite numbers.
#[test]
fn single_precision_survives_what_it_cannot_reach() {
    let (d, x) = (filters::<f32>(6, [1, 5, 5], 1), noise::<f32>([1, 16, 16], 2));
    for stop in [StopRule::Gap, StopRule::Residuals, StopRule::Change] {
        let coded = code(&d, &x, 0.3, 1e-14, CoderConfig { stop, max_iters: 3000, ..CoderConfig::default() });
        assert!(coded.relative_gap() < 1e-3, "{stop:?} {}", coded.relative_gap());
        assert!(coded.total().is_finite());
    }
}
