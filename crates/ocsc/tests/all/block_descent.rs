//! Block coordinate descent on lags against slow projected gradient and against the paper's update.

use crate::common::lags::{direct, positions};
use crate::common::*;
use ocsc::settings::{BlockDescentConfig, Boundary, UpdateConfig};
use ocsc::update::{BlockDescent, OcscPaper, Update};
use ocsc::{Code, Dictionary, Real, Sample, Shape};

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

type Pair<T> = (Sample<T>, Code<T>);

fn settings(sweeps: usize) -> BlockDescentConfig {
    let once = BlockDescentConfig { forgetting: 1.0.into(), tol: 0.0, reseed: false, ..BlockDescentConfig::default() };
    BlockDescentConfig { sweeps, ..once }
}

/// A dictionary and samples with codes.
fn problem<T: Real>(
    k: usize,
    filter: Shape,
    sample: Shape,
    boundary: Boundary,
    strength: f64,
) -> (Dictionary<T>, Vec<Pair<T>>) {
    let d = Dictionary::random(k, filter, 2, 9).unwrap();
    let pair = |i: u64| {
        let x = Sample::new(sample, normal::<T>(sample.len(), i)).unwrap().map(|v| strength * v);
        (x, sparse_code(k, positions(sample, filter, boundary), 0.1, i + 50))
    };
    (d, (0..3).map(pair).collect())
}

fn absorbed<T: Real>(
    config: BlockDescentConfig,
    boundary: Boundary,
    d: &Dictionary<T>,
    pairs: &[Pair<T>],
) -> BlockDescent<T> {
    let mut update = BlockDescent::new(config, boundary, 0);
    pairs.iter().for_each(|(x, z)| update.absorb(x, z, d).unwrap());
    update
}

/// A batch at once against its samples one after the other: the same statistics and, after an update, the same filters, bit for bit.
#[test]
fn a_batch_is_absorbed_like_its_samples_one_by_one() {
    for boundary in BOUNDARIES {
        let (filter, sample) = (Shape::image(3, 4), Shape::image(9, 8));
        // 21 filters: rows and blocks that have no partner.
        let (d, pairs) = problem::<f32>(21, filter, sample, boundary, 1.0);
        let mut one_by_one = absorbed(settings(1), boundary, &d, &pairs);
        let mut at_once = BlockDescent::new(settings(1), boundary, 0);
        let batch: Vec<_> = pairs.iter().map(|(x, z)| (x, z, &d)).collect();
        at_once.absorb_all(&batch).unwrap();
        assert_eq!(at_once.statistics(), one_by_one.statistics(), "{boundary:?}");
        let [mut expected, mut found] = [d.clone(), d];
        one_by_one.update(&mut expected);
        at_once.update(&mut found);
        assert_eq!(found.data(), expected.data(), "{boundary:?}");
    }
}

/// The minimum of the lags' objective over the unit balls.
fn minimum(update: &BlockDescent<f64>, start: &Dictionary<f64>) -> f64 {
    minimum_over(update, start, |_, filter| {
        let norm = dot(filter, filter).sqrt().max(1.0);
        filter.iter_mut().for_each(|v| *v /= norm);
    })
}

/// The minimum of the lags' objective over sets to project each filter on, by projected gradient on all filters at once; the
/// quadratic is probed from values.
pub(crate) fn minimum_over(
    update: &BlockDescent<f64>,
    start: &Dictionary<f64>,
    project: impl Fn(usize, &mut [f64]),
) -> f64 {
    let lags = update.statistics().unwrap();
    let (k, shape) = (start.n_filters(), start.shape());
    let n = start.data().len();
    let value = |d: &[f64]| lags.objective(&Dictionary::new(k, shape, 2, d.to_vec()).unwrap());
    let unit = |i: usize, v: f64| {
        let mut d = vec![0.0; n];
        d[i] += v;
        d
    };
    let zero = value(&vec![0.0; n]);
    let single: Vec<[f64; 2]> = (0..n).map(|i| [0.5, -0.5].map(|v| value(&unit(i, v)) - zero)).collect();
    let linear: Vec<f64> = single.iter().map(|[a, b]| a - b).collect();
    let mut gram = vec![vec![0.0; n]; n];
    for i in 0..n {
        gram[i][i] = 4.0 * (single[i][0] + single[i][1]);
        for j in 0..i {
            let mut d = unit(i, 0.5);
            d[j] += 0.5;
            let mixed = value(&d) - zero - single[i][0] - single[j][0];
            (gram[i][j], gram[j][i]) = (4.0 * mixed, 4.0 * mixed);
        }
    }
    let lipschitz = gram.iter().map(|row| row.iter().map(|v| v.abs()).sum()).fold(1e-9, f64::max);
    let mut d = start.data().to_vec();
    for _ in 0..30_000 {
        let gradient: Vec<f64> = (0..n).map(|i| dot(&gram[i], &d) + linear[i]).collect();
        d.iter_mut().zip(gradient).for_each(|(d, g)| *d -= g / lipschitz);
        d.chunks_mut(shape.len()).enumerate().for_each(|(k, filter)| project(k, filter));
    }
    value(&d)
}

#[test]
fn many_sweeps_reach_the_minimum() {
    let (filter, sample) = (Shape { channels: 2, ..Shape::image(2, 3) }, Shape { channels: 2, ..Shape::image(7, 8) });
    for boundary in BOUNDARIES {
        for strength in [0.05, 1.0, 20.0] {
            let (mut d, pairs) = problem::<f64>(3, filter, sample, boundary, strength);
            let mut update = absorbed(settings(3000), boundary, &d, &pairs);
            let expected = minimum(&update, &d);
            let updated = update.update(&mut d);
            let found = update.statistics().unwrap().objective(&d);
            assert!(relative(found, expected) < 1e-6, "{boundary:?} {strength} {found} {expected}");
            assert!(updated.stationarity.unwrap() < 1e-6 && updated.residuals.is_none(), "{updated:?}");
            assert!(d.norms().into_iter().all(|norm| norm <= 1.0));
        }
    }
}

/// The first sweep's measure from central differences of the objective and L from its definition, filter by filter, each
/// moved as the update moved it before the next is looked at.
#[test]
fn stationarity_is_the_norm_of_the_projected_gradient() {
    let (filter, sample) = (Shape { channels: 2, ..Shape::image(2, 3) }, Shape { channels: 2, ..Shape::image(7, 8) });
    for boundary in BOUNDARIES {
        for strength in [0.3, 5.0] {
            let (mut d, pairs) = problem::<f64>(11, filter, sample, boundary, strength);
            let mut update = absorbed(settings(1), boundary, &d, &pairs);
            let mut mixed = d.data().to_vec();
            let reported = update.update(&mut d).stationarity.unwrap();
            let lags = update.statistics().unwrap();
            // At a quarter of its size every probe is feasible, and the objective is a quadratic.
            let value = |d: &[f64]| {
                lags.objective(&Dictionary::new(11, filter, 2, d.iter().map(|v| v / 4.0).collect()).unwrap())
            };
            let psi: Vec<f64> = (0..11).flat_map(|k| lags.psi(k)).collect();
            let (n, mut sum) = (filter.len(), 0.0);
            for k in 0..11 {
                let gradient: Vec<f64> = (k * n..(k + 1) * n)
                    .map(|i| {
                        let [mut up, mut down] = [mixed.clone(), mixed.clone()];
                        (up[i], down[i]) = (up[i] + 1.0, down[i] - 1.0);
                        // 16 times the quadratic part, 4 times the linear one
                        16.0 * ((value(&up) - value(&down)) / 2.0 + psi[i] / 4.0) - psi[i]
                    })
                    .collect();
                let bound = circle_bound(|lag| lags.lag(k, k, lag));
                let mut step: Vec<f64> =
                    mixed[k * n..][..n].iter().zip(&gradient).map(|(d, g)| d - g / bound).collect();
                let norm = dot(&step, &step).sqrt().max(1.0);
                step.iter_mut().for_each(|v| *v /= norm);
                sum += step.iter().zip(&mixed[k * n..]).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                mixed[k * n..][..n].copy_from_slice(d.filter(k));
            }
            let expected = (sum / dot(d.data(), d.data())).sqrt();
            assert!(relative(reported, expected) < 1e-9, "{boundary:?} {strength} {reported} {expected}");
        }
    }
}

/// The largest |eigenvalue| of the circulant matrix of phi(tau), |tau| < (2, 3), on 3 x 5 points: from the definition.
fn circle_bound(phi: impl Fn([isize; 3]) -> f64) -> f64 {
    let mut largest = 0.0_f64;
    for (v, u) in (0..3).flat_map(|v| (0..5).map(move |u| (v, u))) {
        let (mut re, mut im) = (0.0, 0.0);
        for (y, x) in (-1..=1).flat_map(|y| (-2..=2).map(move |x| (y, x))) {
            let angle = std::f64::consts::TAU * (v as f64 * y as f64 / 3.0 + u as f64 * x as f64 / 5.0);
            (re, im) = (re + phi([0, y, x]) * angle.cos(), im + phi([0, y, x]) * angle.sin());
        }
        largest = largest.max(re.hypot(im));
    }
    largest
}

#[test]
fn sweeps_end_at_the_tolerance() {
    let (d, pairs) = problem::<f64>(9, Shape::image(3, 3), Shape::image(9, 9), Boundary::Circular, 1.0);
    let run = |config: BlockDescentConfig| {
        let mut d = d.clone();
        absorbed(config, Boundary::Circular, &d, &pairs).update(&mut d)
    };
    let mut last = f64::INFINITY;
    for tol in [1e-2, 1e-4, 1e-6, 1e-8] {
        let updated = run(BlockDescentConfig { tol, ..settings(5000) });
        let reached = updated.stationarity.unwrap();
        assert!(reached <= tol && reached < last && updated.iterations < 5000, "{updated:?}");
        assert!(run(settings(updated.iterations - 1)).stationarity.unwrap() > tol, "one sweep less was too few");
        last = reached;
    }
    assert_eq!(run(BlockDescentConfig { tol: 1e-8, ..settings(2) }).iterations, 2);
}

#[test]
fn the_papers_update_finds_the_same() {
    let (mut d, pairs) = problem::<f64>(4, Shape::image(3, 4), Shape::image(8, 9), Boundary::Circular, 2.0);
    let mut paper =
        OcscPaper::new(UpdateConfig { rho: Some(5.0), max_iters: 20_000, tol: 1e-11, ..UpdateConfig::default() });
    pairs.iter().for_each(|(x, z)| paper.absorb(x, z, &d).unwrap());
    let mut other = d.clone();
    paper.update(&mut other);
    absorbed(settings(2000), Boundary::Circular, &d, &pairs).update(&mut d);
    let objective = |d: &Dictionary<f64>| pairs.iter().map(|(x, z)| direct(x, z, d, Boundary::Circular)).sum::<f64>();
    assert!(relative(objective(&d), objective(&other)) < 1e-8);
}

/// Also where blocks do not divide the filter, and where samples are short.
#[test]
fn every_sweep_descends() {
    for (filter, sample) in [((5, 5), (12, 13)), ((4, 17), (5, 20)), ((1, 9), (1, 40)), ((11, 11), (11, 30))] {
        for boundary in BOUNDARIES {
            let [filter, sample] = [filter, sample].map(|(h, w)| Shape::image(h, w));
            let (mut d, pairs) = problem::<f64>(5, filter, sample, boundary, 1.0);
            let mut update = absorbed(settings(1), boundary, &d, &pairs);
            let mut last = update.statistics().unwrap().objective(&d);
            for _ in 0..20 {
                update.update(&mut d);
                let now = update.statistics().unwrap().objective(&d);
                assert!(now <= last * (1.0 + 1e-13), "{now} {last}");
                last = now;
            }
        }
    }
}

fn stays_feasible<T: Real>() {
    let (mut d, pairs) = problem::<T>(5, Shape::image(4, 5), Shape::image(12, 9), Boundary::Zero, 30.0);
    let mut update = BlockDescent::new(BlockDescentConfig::default(), Boundary::Zero, 0);
    for (x, z) in pairs.iter().cycle().take(12) {
        update.absorb(x, z, &d).unwrap();
        let before = d.clone();
        assert_eq!(update.update(&mut d).iterations, 1);
        assert!(d.norms().into_iter().all(|norm| norm <= 1.0));
        assert_ne!(d, before);
    }
}

#[test]
fn dictionaries_are_feasible_exactly() {
    stays_feasible::<f32>();
    stays_feasible::<f64>();
}

#[test]
fn unused_filters_are_left_and_counted() {
    let (mut d, pairs) = problem::<f64>(4, Shape::image(3, 3), Shape::image(9, 9), Boundary::Circular, 1.0);
    let mut update = BlockDescent::new(settings(2), Boundary::Circular, 0);
    for (x, z) in &pairs {
        let atoms = z.atoms().iter().copied().filter(|a| a.filter != 2).collect();
        update.absorb(x, &Code::new(4, z.shape(), atoms).unwrap(), &d).unwrap();
    }
    let before = d.clone();
    update.update(&mut d);
    assert_eq!((update.unused(), d.filter(2)), (1, before.filter(2)));
    assert_ne!(d.filter(1), before.filter(1));
}

/// Update t weighs (1 - 1/t)^(e - 1) on the past, and samples of a batch weigh the same.
#[test]
fn the_past_is_forgotten_as_configured() {
    let (d, pairs) = problem::<f64>(3, Shape::image(3, 3), Shape::image(9, 9), Boundary::Zero, 1.0);
    let mut update = BlockDescent::new(BlockDescentConfig { forgetting: 3.0.into(), ..settings(1) }, Boundary::Zero, 0);
    for batch in [&pairs[..1], &pairs[1..]] {
        batch.iter().for_each(|(x, z)| update.absorb(x, z, &d).unwrap());
        update.update(&mut d.clone());
    }
    let value = |i: usize| direct(&pairs[i].0, &pairs[i].1, &d, Boundary::Zero);
    let expected = 0.25 * value(0) + value(1) + value(2);
    assert!(relative(update.statistics().unwrap().objective(&d), expected) < 1e-12);
}

#[test]
fn threads_do_not_change_a_bit() {
    let (d, pairs) = problem::<f32>(70, Shape::image(5, 4), Shape::image(15, 14), Boundary::Free, 2.0);
    let run = || {
        let mut d = d.clone();
        absorbed(settings(2), Boundary::Free, &d, &pairs).update(&mut d);
        d
    };
    assert_eq!(with_threads(1, run), with_threads(2, run));
    assert_eq!(with_threads(1, run), with_threads(5, run));
}

#[test]
fn a_restored_update_goes_on_bit_for_bit() {
    let (mut d, pairs) = problem::<f32>(5, Shape::image(4, 5), Shape::image(12, 9), Boundary::Zero, 2.0);
    let mut update = absorbed(BlockDescentConfig::default(), Boundary::Zero, &d, &pairs);
    update.update(&mut d);
    let mut again = BlockDescent::new(BlockDescentConfig::default(), Boundary::Zero, 0);
    again.restore(&update.state(), &d).unwrap();
    assert_eq!(again.state(), update.state());
    let mut other = d.clone();
    for (update, d) in [(&mut update, &mut d), (&mut again, &mut other)] {
        pairs.iter().for_each(|(x, z)| update.absorb(x, z, d).unwrap());
        update.update(d);
    }
    assert_eq!(d, other);
    assert_eq!(again.statistics(), update.statistics());
    let wrong = Dictionary::random(4, Shape::image(4, 5), 2, 1).unwrap();
    assert!(again.restore(&update.state(), &wrong).is_err());
}

/// At every update of a run long enough for the common weight of the statistics to be multiplied in.
#[test]
fn a_restored_update_goes_on_bit_for_bit_at_any_weight() {
    let config = BlockDescentConfig { forgetting: 4.0.into(), ..settings(1) };
    let (mut d, pairs) = problem::<f32>(3, Shape::image(3, 4), Shape::image(8, 7), Boundary::Circular, 2.0);
    let mut update = BlockDescent::new(config.clone(), Boundary::Circular, 0);
    for (x, z) in pairs.iter().cycle().take(20) {
        let (mut again, mut other) = (BlockDescent::new(config.clone(), Boundary::Circular, 0), d.clone());
        again.restore(&update.state(), &d).unwrap();
        for (update, d) in [(&mut update, &mut d), (&mut again, &mut other)] {
            update.absorb(x, z, d).unwrap();
            update.update(d);
        }
        assert_eq!((&d, update.statistics()), (&other, again.statistics()));
    }
}

#[test]
fn no_samples_no_update() {
    let mut d = filters::<f32>(3, [1, 3, 3], 1);
    let before = d.clone();
    let mut update = BlockDescent::<f32>::new(BlockDescentConfig::default(), Boundary::Circular, 0);
    assert_eq!(update.update(&mut d).iterations, 0);
    assert_eq!(d, before);
    assert!(update.state().is_empty());
}

#[test]
fn settings_are_checked() {
    assert!(BlockDescentConfig::default().check_values().is_ok());
    assert!(settings(0).check_values().is_err());
    assert!(BlockDescentConfig { tol: -1.0, ..settings(1) }.check_values().is_err());
    assert!(BlockDescentConfig { tol: f64::NAN, ..settings(1) }.check_values().is_err());
    assert!(BlockDescentConfig { forgetting: 0.5.into(), ..settings(1) }.check_values().is_err());
}
