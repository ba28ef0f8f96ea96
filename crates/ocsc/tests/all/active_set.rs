//! The active-set coder on the explicit matrix of every boundary: optimum, certificate, options, threads, precision.

use crate::common::*;
use ocsc::coder::{ActiveSet, Admm, Coded, Coder, Status};
use ocsc::monitor::Silent;
use ocsc::settings::{ActiveSetConfig, Boundary, CoderConfig, Weights};
use ocsc::{Dictionary, Loss, Penalty, Real, Sample, Shape};
use proptest::prelude::*;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

pub(crate) fn coder<T: Real>(
    d: &Dictionary<T>,
    beta: f64,
    tol: f64,
    boundary: Boundary,
    config: &ActiveSetConfig,
) -> ActiveSet<T> {
    ActiveSet::new(d, beta, tol, boundary, config.clone()).unwrap()
}

/// The pixels that count, in the order of a grid that holds every atom, and the atoms as columns over them.
///
/// Written for obviousness: the grid is the sample with filter-minus-one pixels before and behind each axis, pixel by pixel.
pub(crate) fn explicit(d: &Dictionary<f64>, x: &Sample<f64>, boundary: Boundary) -> (Matrix, Vec<f64>) {
    let (f, s) = (d.shape(), x.shape());
    let [fs, ss] = [f.spatial(), s.spatial()];
    let margin = if boundary == Boundary::Circular { [0; 3] } else { fs.map(|n| n - 1) };
    let grid: [usize; 3] = std::array::from_fn(|i| ss[i] + 2 * margin[i]);
    let positions: [usize; 3] = std::array::from_fn(|i| ss[i] + margin[i]);
    let flat = |c: usize, p: [usize; 3]| ((c * grid[0] + p[0]) * grid[1] + p[1]) * grid[2] + p[2];
    let all = |n: [usize; 3]| {
        let axes = (0..n[0]).flat_map(move |a| (0..n[1]).flat_map(move |b| (0..n[2]).map(move |c| [a, b, c])));
        axes.collect::<Vec<_>>()
    };
    let inside = |p: [usize; 3]| (0..3).all(|i| p[i] >= margin[i] && p[i] < margin[i] + ss[i]);
    let mut counts = Vec::new();
    let mut target = Vec::new();
    for c in 0..s.channels {
        for p in all(grid) {
            let within = inside(p);
            let q: [usize; 3] = std::array::from_fn(|i| p[i].wrapping_sub(margin[i]));
            let source = |q: [usize; 3]| ((c * ss[0] + q[0]) * ss[1] + q[1]) * ss[2] + q[2];
            counts.push(if within { x.mask().is_none_or(|m| m[source(q)]) } else { boundary != Boundary::Free });
            target.push(if within { x.data()[source(q)] } else { 0.0 });
        }
    }
    let mut columns = Vec::new();
    for k in 0..d.n_filters() {
        for p in all(positions) {
            let mut column = vec![0.0; counts.len()];
            for c in 0..f.channels {
                for (j, t) in all(fs).into_iter().enumerate() {
                    let q: [usize; 3] = std::array::from_fn(|i| (p[i] + t[i]) % grid[i]);
                    column[flat(c, q)] += d.filter(k)[c * f.pixels() + j];
                }
            }
            columns.push(column);
        }
    }
    let keep =
        |v: Vec<f64>| v.into_iter().zip(&counts).filter(|(_, counts)| **counts).map(|(v, _)| v).collect::<Vec<_>>();
    let target = keep(target);
    (Matrix { columns: columns.into_iter().map(keep).collect(), rows: target.len() }, target)
}

/// Small problems of all kinds: (sample, filter, K, seed).
pub(crate) fn problems() -> impl Strategy<Value = (Shape, Shape, usize, u64)> {
    let sizes = prop_oneof![
        (Just(1_usize), Just(1_usize), 6..40_usize),
        (Just(1_usize), 3..8_usize, 3..8_usize),
        (2..4_usize, 2..4_usize, 2..5_usize),
    ];
    (sizes, 1..3_usize, 1..5_usize, 0..10_000_u64).prop_flat_map(|((d, h, w), channels, k, seed)| {
        let corner = (1..=d, 1..=h.min(4), 1..=w.min(20)).prop_map(move |(a, b, c)| Shape {
            channels,
            depth: a,
            height: b,
            width: c,
        });
        (Just(Shape { channels, depth: d, height: h, width: w }), corner, Just(k), Just(seed))
    })
}

fn problem(sample: Shape, filter: Shape, k: usize, seed: u64) -> (Dictionary<f64>, Sample<f64>) {
    let d = Dictionary::random(k, filter, 3, seed).unwrap();
    (d, Sample::new(sample, normal(sample.len(), seed + 1)).unwrap())
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn reaches_the_optimum_and_proves_it((sample, filter, k, seed) in problems(), ratio in 0.05..0.9_f64) {
        let (d, x) = problem(sample, filter, k, seed);
        for boundary in BOUNDARIES {
            let beta = ratio * coder(&d, 1.0, 1.0, boundary, &ActiveSetConfig::default()).beta_max(&x).unwrap();
            let (matrix, target) = explicit(&d, &x, boundary);
            let coded = coder(&d, beta, 1e-7, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap();
            prop_assert_eq!(coded.status, Status::Converged);
            let z = coded.code.to_dense().unwrap();
            prop_assert!(relative(coded.total(), matrix.objective(&target, &z, beta)) < 1e-10);
            // At most what the residual proves: an earlier one may have proven more.
            prop_assert!(coded.gap <= matrix.gap(&target, &z, beta) + 1e-9 * coded.total());
            let minimum = matrix.minimum(&target, beta);
            prop_assert!(coded.total() - minimum <= coded.gap + 1e-9 * minimum, "{boundary:?}");
            prop_assert!(relative(coded.total(), minimum) < 1e-6, "{boundary:?}");
        }
    }

    #[test]
    fn the_gap_bounds_the_error_when_cut_short((sample, filter, k, seed) in problems(), max_rounds in 0..4_usize) {
        let (d, x) = problem(sample, filter, k, seed);
        for boundary in BOUNDARIES {
            let beta = 0.1 * coder(&d, 1.0, 1.0, boundary, &ActiveSetConfig::default()).beta_max(&x).unwrap();
            let (matrix, target) = explicit(&d, &x, boundary);
            let config = ActiveSetConfig { max_rounds, ..ActiveSetConfig::default() };
            let coded = coder(&d, beta, 1e-9, boundary, &config).code(&x, None).unwrap();
            prop_assert!(coded.total() - matrix.minimum(&target, beta) <= coded.gap + 1e-9 * coded.total());
            prop_assert!(coded.gap <= matrix.gap(&target, &coded.code.to_dense().unwrap(), beta) + 1e-9 * coded.total());
        }
    }
}

#[test]
fn beta_max_is_where_codes_become_zero() {
    let (d, x) = problem(Shape::image(9, 10), Shape::image(4, 3), 3, 5);
    for boundary in BOUNDARIES {
        let config = ActiveSetConfig::default();
        let beta_max = coder(&d, 1.0, 1.0, boundary, &config).beta_max(&x).unwrap();
        let (matrix, target) = explicit(&d, &x, boundary);
        let expected = matrix.transposed(&target).iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        assert!(relative(beta_max, expected) < 1e-12);
        let at = |beta: f64| coder(&d, beta, 1e-6, boundary, &config).code(&x, None).unwrap();
        let above = at(beta_max * 1.0001);
        assert_eq!(above.code.nonzeros(), 0);
        assert!(above.gap <= 1e-20 * above.total(), "{:e}", above.gap);
        assert!(at(beta_max * 0.98).code.nonzeros() > 0);
    }
}

/// A weight w on a filter is the same as beta on the filter divided by w, with values times w.
#[test]
fn weights_scale_filters() {
    let (d, x) = problem(Shape::image(12, 11), Shape::image(3, 4), 3, 7);
    let weights = [1.0, 2.0, 4.0];
    let scaled: Vec<f64> = d.data().chunks(12).zip(weights).flat_map(|(f, w)| f.iter().map(move |v| v / w)).collect();
    let scaled = Dictionary::new(3, d.shape(), 2, scaled).unwrap();
    for boundary in BOUNDARIES {
        let config = ActiveSetConfig { weights: Weights::PerFilter(weights.to_vec()), ..ActiveSetConfig::default() };
        let weighted = coder(&d, 0.3, 1e-9, boundary, &config).code(&x, None).unwrap();
        let plain = coder(&scaled, 0.3, 1e-9, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap();
        assert!(relative(weighted.total(), plain.total()) < 1e-7);
        assert!(weighted.relative_gap() <= 1e-9);
    }
}

/// Non-negative codes are at most as good, have no negative value, and every correlation is at most beta.
#[test]
fn nonnegative_codes_satisfy_their_optimality_conditions() {
    let (d, x) = problem(Shape::image(10, 9), Shape::image(3, 3), 4, 11);
    for boundary in BOUNDARIES {
        let config = ActiveSetConfig { nonnegative: true, ..ActiveSetConfig::default() };
        let coded = coder(&d, 0.4, 1e-9, boundary, &config).code(&x, None).unwrap();
        let free = coder(&d, 0.4, 1e-9, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap();
        assert!(coded.total() > free.total() * (1.0 + 1e-6));
        let (matrix, target) = explicit(&d, &x, boundary);
        let z = coded.code.to_dense().unwrap();
        let correlations = matrix.transposed(&matrix.residual(&target, &z));
        for (z, c) in z.iter().zip(correlations) {
            assert!(*z >= 0.0 && c <= 0.4 * (1.0 + 1e-5), "{z} {c}");
            assert!(*z == 0.0 || (c - 0.4).abs() < 1e-3, "{z} {c}");
        }
    }
}

fn image<T: Real>() -> (Dictionary<T>, Sample<T>) {
    (filters(12, [1, 7, 7], 3), noise([1, 40, 37], 4))
}

#[test]
fn agrees_with_admm() {
    let (d, x) = image::<f64>();
    let beta = 0.2 * coder(&d, 1.0, 1.0, Boundary::Circular, &ActiveSetConfig::default()).beta_max(&x).unwrap();
    let ours = coder(&d, beta, 1e-6, Boundary::Circular, &ActiveSetConfig::default()).code(&x, None).unwrap();
    let admm = Admm::new(&d, beta, 1e-6, CoderConfig::default()).unwrap().code(&x, None).unwrap();
    assert!(relative(ours.total(), admm.total()) < 1e-6);
}

#[test]
fn single_precision_agrees_with_double() {
    for boundary in BOUNDARIES {
        let run = |tol| {
            let (d, x) = image::<f64>();
            let (d32, x32) = image::<f32>();
            let config = ActiveSetConfig::default();
            let double = coder(&d, 1.0, tol, boundary, &config).code(&x, None).unwrap();
            let single = coder(&d32, 1.0, tol, boundary, &config).code(&x32, None).unwrap();
            (double.total(), single.total(), single.status)
        };
        let (double, single, status) = run(1e-4);
        assert_eq!(status, Status::Converged);
        assert!(relative(single, double) < 1e-4);
    }
}

#[test]
fn threads_change_nothing() {
    for boundary in BOUNDARIES {
        let run = |n| {
            with_threads(n, || -> Coded<f32> {
                let (d, x) = image::<f32>();
                coder(&d, 0.8, 1e-3, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap()
            })
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn starts_from_a_code() {
    let (d, x) = image::<f64>();
    for boundary in BOUNDARIES {
        let mut coder = coder(&d, 0.8, 1e-6, boundary, &ActiveSetConfig::default());
        let cold = coder.code(&x, None).unwrap();
        let warm = coder.code(&x, Some(&cold.code)).unwrap();
        assert_eq!((warm.iterations, &warm.code), (0, &cold.code));
        let foreign = ocsc::Code::zero(12, [1, 3, 3]);
        assert!(coder.code(&x, Some(&foreign)).is_err());
    }
}

/// From a smaller beta every value is too large and no correlation is: nothing violates, and yet all must move.
#[test]
fn starts_from_a_code_that_is_too_large() {
    let (d, x) = image::<f64>();
    for boundary in BOUNDARIES {
        let coder = |beta: f64| coder(&d, beta, 1e-6, boundary, &ActiveSetConfig::default());
        let larger = coder(0.4).code(&x, None).unwrap();
        let warm = coder(0.8).code(&x, Some(&larger.code)).unwrap();
        assert_eq!(warm.status, Status::Converged, "{boundary:?}: gap {}", warm.relative_gap());
        assert!(relative(warm.total(), coder(0.8).code(&x, None).unwrap().total()) < 1e-6);
    }
}

#[test]
fn takes_over_a_dictionary_with_more_filters() {
    let (d, x) = image::<f64>();
    let few = filters::<f64>(3, [1, 7, 7], 8);
    for boundary in BOUNDARIES {
        let mut changed = coder(&few, 0.8, 1e-6, boundary, &ActiveSetConfig::default());
        changed.set_dictionary(&d);
        let fresh = coder(&d, 0.8, 1e-6, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap();
        assert_eq!(changed.code(&x, None).unwrap(), fresh);
    }
}

/// A small penalty: as many non-zeros as numbers, which is work for ADMM; the answer is the same.
#[test]
fn dense_codes_are_handed_over() {
    let x = noise::<f64>([1, 24, 24], 5);
    let d = filters::<f64>(20, [1, 5, 5], 6);
    let fast = |config: &ActiveSetConfig| coder(&d, 0.01, 1e-4, Boundary::Circular, config).code(&x, None).unwrap();
    let coded = fast(&ActiveSetConfig::default());
    assert_eq!(coded.status, Status::Converged);
    // More iterations than the active set may have rounds: they are ADMM's.
    assert!(coded.iterations > ActiveSetConfig::default().max_rounds, "{}", coded.iterations);
    let admm = Admm::new(&d, 0.01, 1e-4, CoderConfig { max_iters: 10_000, ..CoderConfig::default() });
    let reference = admm.unwrap().code(&x, None).unwrap();
    assert!(relative(coded.total(), reference.total()) < 1e-4);
}

#[test]
fn the_time_limit_ends_coding_with_a_valid_gap() {
    let (d, x) = problem(Shape::image(12, 12), Shape::image(3, 3), 4, 9);
    let (matrix, target) = explicit(&d, &x, Boundary::Circular);
    let config = ActiveSetConfig { time_limit: Some(0.0), ..ActiveSetConfig::default() };
    let coded = coder(&d, 0.1, 1e-6, Boundary::Circular, &config).code(&x, None).unwrap();
    assert_eq!((coded.status, coded.iterations, coded.code.nonzeros()), (Status::TimeLimit, 0, 0));
    assert!(coded.total() - matrix.minimum(&target, 0.1) <= coded.gap);
}

/// Many bands and tiles, more than one of each colour, with and without a seam.
#[test]
fn large_samples_are_solved_in_bands() {
    for boundary in BOUNDARIES {
        for (sample, filter) in
            [([1, 150, 90], [1, 5, 5]), ([70, 7, 40], [3, 2, 5]), ([1, 1, 900], [1, 1, 20]), ([1, 1, 6000], [1, 1, 20])]
        {
            let (d, x) = (filters::<f64>(6, filter, 3), noise::<f64>(sample, 4));
            let code = |threads: usize, tol: f64| {
                let mut coder = coder(&d, 1.5, tol, boundary, &ActiveSetConfig::default());
                with_threads(threads, || coder.code(&x, None).unwrap())
            };
            let one = code(1, 1e-6);
            assert_eq!(one.status, Status::Converged);
            assert_eq!(one, code(3, 1e-6));
            // What is claimed is what the code reconstructs to.
            let r = one.code.reconstruct(&d, boundary).unwrap();
            let data_term: f64 = 0.5 * x.data().iter().zip(r.data()).map(|(x, r)| (x - r).powi(2)).sum::<f64>();
            let outside = boundary == Boundary::Zero;
            assert!(outside || relative(one.objective.data_term, data_term) < 1e-10, "{boundary:?}");
        }
    }
}

/// A long signal is folded into lines, unless it has several channels; a second channel of zeros changes nothing but that.
#[test]
fn long_signals_are_coded_as_with_a_second_channel_of_zeros() {
    let (width, k) = (9, 4);
    let narrow = filters::<f64>(k, [1, 1, width], 5);
    let doubled = |values: &[f64], zeros: f64| [values, &vec![zeros; values.len()]].concat();
    let taps: Vec<f64> = (0..k).flat_map(|i| doubled(narrow.filter(i), 0.0)).collect();
    let wide = Dictionary::new(k, colour(2, [1, 1, width]), 1, taps).unwrap();
    // Whole lines, and a last line that is shorter than a filter.
    for n in [4096, 4 * 1024 + 1030, 5 * 1024 + 3] {
        let plain = noise::<f64>([1, 1, n], n as u64);
        let mask: Vec<bool> = (0..n).map(|i| i % 7 != 0 && !(1020..1027).contains(&i)).collect();
        let weights: Vec<f64> = (0..n).map(|i| f64::from(i as u32 % 11) / 10.0).collect();
        let shape = colour(2, [1, 1, n]);
        let both = Sample::new(shape, doubled(plain.data(), 0.0)).unwrap();
        let masked = |x: &Sample<f64>, mask: Vec<bool>| Sample::masked(x.shape(), x.data().to_vec(), mask).unwrap();
        let samples = [
            (plain.clone(), both.clone()),
            (masked(&plain, mask.clone()), masked(&both, [mask, vec![true; n]].concat())),
            (plain.clone().with_weights(weights.clone()).unwrap(), both.with_weights(doubled(&weights, 1.0)).unwrap()),
        ];
        let plain = ActiveSetConfig::default;
        let configs = [
            plain(),
            ActiveSetConfig { nonnegative: true, ..plain() },
            ActiveSetConfig { penalty: Penalty::Elastic(0.3), ..plain() },
            ActiveSetConfig { loss: Loss::Huber(0.8), max_rounds: 2000, ..plain() },
            ActiveSetConfig { weights: Weights::Inverse(1.0), ..plain() },
        ];
        for boundary in BOUNDARIES {
            for (i, (one, two)) in samples.iter().enumerate() {
                for (j, config) in configs.iter().enumerate() {
                    let tol = 1e-5;
                    let folded = coder(&narrow, 1.2, tol, boundary, config).code(one, None).unwrap();
                    let unfolded = coder(&wide, 1.2, tol, boundary, config).code(two, None).unwrap();
                    let what = format!("{n} {boundary:?} sample {i} config {j}");
                    // Huber's loss with a mask comes to this tolerance slowly, folded or not.
                    assert_eq!(folded.status, unfolded.status, "{what}");
                    assert!(folded.status == Status::Converged || config.loss != Loss::L2, "{what}");
                    // What either proves holds for the other.
                    assert!(folded.total() >= (unfolded.total() - unfolded.gap) * (1.0 - 1e-12), "{what}");
                    assert!(unfolded.total() >= (folded.total() - folded.gap) * (1.0 - 1e-12), "{what}");
                    assert!(relative(folded.total(), unfolded.total()) <= 10.0 * tol, "{what}");
                    assert_eq!(folded.code.shape(), unfolded.code.shape(), "{what}");
                    // It goes on from where it ended.
                    let again = coder(&narrow, 1.2, tol, boundary, config).code(one, Some(&folded.code)).unwrap();
                    assert!(again.iterations <= folded.iterations, "{what}");
                }
            }
        }
    }
}

#[test]
fn several_samples_at_once_are_coded_as_one_by_one() {
    let d = filters::<f32>(6, [1, 5, 5], 3);
    let samples: Vec<_> = (0..5).map(|i| noise::<f32>([1, 20 + i, 30], i as u64)).collect();
    let mut coder = coder(&d, 1.0, 1e-3, Boundary::Free, &ActiveSetConfig::default());
    let together = with_threads(2, || coder.code_all(&samples, &Silent).unwrap());
    for (x, coded) in samples.iter().zip(together) {
        assert_eq!(coder.code(x, None).unwrap(), coded);
    }
}

/// Filters of many taps: what single precision may be off by is large, but the certificate is not.
#[test]
fn many_channels_reach_the_tolerance_in_single_precision() {
    let cube = |height, width| Shape { channels: 16, depth: 1, height, width };
    let d = Dictionary::<f32>::random(12, cube(7, 7), 2, 3).unwrap();
    let x = Sample::new(cube(40, 40), normal(16 * 1600, 4)).unwrap();
    for boundary in BOUNDARIES {
        let mut coder = coder(&d, 1.0, 1e-3, boundary, &ActiveSetConfig::default());
        let coded = coder.code(&x, None).unwrap();
        assert_eq!(coded.status, Status::Converged, "{boundary:?}: gap {:e}", coded.relative_gap());
    }
}

#[test]
fn any_tolerance_will_do() {
    let (d, x) = image::<f32>();
    for tol in [1e-5, 0.1, 0.4, 1.0, 10.0] {
        let coded = coder(&d, 0.4, tol, Boundary::Circular, &ActiveSetConfig::default()).code(&x, None).unwrap();
        assert!(coded.status == Status::Converged || tol < 1e-4, "{tol}");
        assert!(coded.relative_gap() <= tol || tol < 1e-4, "{tol}: {}", coded.relative_gap());
    }
}
