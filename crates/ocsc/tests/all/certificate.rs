//! Certificates against the definition: that they are reached, and that none is too good to be true.

use crate::common::exact::Exact;
use crate::common::*;
use ocsc::coder::{ActiveSet, Admm, Coded, Coder, Deconvnet, Fista, Masked, Space, Status};
use ocsc::settings::{ActiveSetConfig, Boundary, CoderConfig, Weights};
use ocsc::verify::Problem;
use ocsc::{Config, Dictionary, Real, Sample, Shape};
use rand::RngExt;
use rayon::prelude::*;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

/// Random filters a little inside the unit ball, so that no scalar's rounding puts them outside.
fn inner_filters<T: Real>(k: usize, shape: Shape, seed: u64) -> Dictionary<T> {
    let d = Dictionary::<f64>::random(k, shape, 3, seed).unwrap();
    Dictionary::new(k, shape, 3, d.data().iter().map(|v| T::of(0.999 * v)).collect()).unwrap()
}

/// A random small problem: sizes of several tiles, all boundaries, some with masks, weights, signs, channels.
struct Small<T> {
    dictionary: Dictionary<T>,
    sample: Sample<T>,
    boundary: Boundary,
    config: ActiveSetConfig,
    ratio: f64,
}

fn small<T: Real>(seed: u64) -> Small<T> {
    let mut rng = rng(seed);
    let channels = if rng.random_bool(0.3) { rng.random_range(2..4) } else { 1 };
    let (axes, corner) = match seed % 5 {
        0 | 1 => ([1, 1, rng.random_range(6..160)], [1, 1, rng.random_range(1..7)]),
        2 | 3 => {
            ([1, rng.random_range(5..40), rng.random_range(5..40)], [1, rng.random_range(1..5), rng.random_range(1..6)])
        }
        _ => (
            [rng.random_range(2..8), rng.random_range(3..9), rng.random_range(3..20)],
            [rng.random_range(1..3), rng.random_range(1..4), rng.random_range(1..4)],
        ),
    };
    let (shape, filter) = (colour(channels, axes), colour(channels, corner));
    let k = rng.random_range(1..5);
    let data = normal::<T>(shape.len(), seed + 1);
    let sample = if rng.random_bool(0.3) {
        let mut mask: Vec<bool> = (0..shape.len()).map(|_| rng.random_bool(0.7)).collect();
        mask[shape.len() / 2] = true;
        Sample::masked(shape, data, mask).unwrap()
    } else {
        Sample::new(shape, data).unwrap()
    };
    let weights = rng.random_bool(0.2).then(|| (0..k).map(|_| rng.random_range(0.3..3.0)).collect());
    let weights = weights.map_or(Weights::Equal, Weights::PerFilter);
    let config = ActiveSetConfig { weights, nonnegative: rng.random_bool(0.2), ..ActiveSetConfig::default() };
    let ratio = 10.0_f64.powf(rng.random_range(-1.5..-0.05));
    let boundary = BOUNDARIES[rng.random_range(0..3)];
    Small { dictionary: inner_filters(k, filter, seed + 2), sample, boundary, config, ratio }
}

impl<T: Real> Small<T> {
    fn coder(&self, beta: f64, tol: f64) -> ActiveSet<T> {
        ActiveSet::new(&self.dictionary, beta, tol, self.boundary, self.config.clone()).unwrap()
    }

    fn beta(&self) -> f64 {
        self.ratio * self.coder(1.0, 1.0).beta_max(&self.sample).unwrap()
    }

    /// Codes to a tolerance and says what is wrong with that, if anything. The gap must be at least as far as the code is
    /// from a better one, and at most what its own residual proves, up to `loose` times the objective.
    fn complaint(&self, tol: f64, loose: f64) -> Option<String> {
        let beta = self.beta();
        if beta == 0.0 {
            return None;
        }
        let coded = self.coder(beta, tol).code(&self.sample, None).unwrap();
        let exact = Exact::new(&self.dictionary, &self.sample, beta, self.boundary, &self.config);
        let truth = exact.of(&coded.code);
        let d = &self.dictionary;
        let wide = Dictionary::new(d.n_filters(), d.shape(), 3, widen(d.data())).unwrap();
        let mut finer = ActiveSet::new(&wide, beta, 1e-8, self.boundary, self.config.clone()).unwrap();
        let better = exact.of(&finer.code(&self.sample.clone().cast().unwrap(), None).unwrap().code);
        let wrong = [
            (coded.status != Status::Converged || coded.relative_gap() > tol, "not converged"),
            (relative(coded.total(), truth.objective) > 1e-12, "the objective is not the code's"),
            (coded.total() - coded.gap > better.objective, "a gap below the true one"),
            (coded.gap > truth.gap + loose * truth.objective, "a gap above what the residual proves"),
        ];
        let (_, what) = wrong.into_iter().find(|(wrong, _)| *wrong)?;
        let shapes = (self.sample.shape(), self.dictionary.shape());
        Some(format!(
            "{what}: {shapes:?} {:?}, beta ratio {:.4}: gap {:e}, true {:e}, of {:e}",
            self.boundary, self.ratio, coded.gap, truth.gap, truth.objective
        ))
    }
}

/// The verifier's own certificates, of residuals scaled locally and of its steps: valid, and better than what one scale proves.
#[test]
fn what_verify_shows_of_a_rough_code_is_never_above_the_minimum() {
    let mut better = 0;
    for seed in 0..60 {
        let small = small::<f64>(seed);
        let beta = small.beta();
        if beta == 0.0 {
            continue;
        }
        let rough = small.coder(beta, 0.1).code(&small.sample, None).unwrap();
        let minimum = small.coder(beta, 1e-9).code(&small.sample, None).unwrap().total();
        let n_filters = small.dictionary.n_filters();
        let config =
            Config { boundary: small.boundary, active_set: small.config.clone(), n_filters, ..Config::default() };
        let problem = Problem::new(&config, &small.dictionary, beta);
        let alone = problem.verify(&small.sample, &rough.code).unwrap().dual;
        let (dual, lowest) = problem.bound(&small.sample, &rough.code, 0.0).unwrap();
        assert!(dual <= minimum * (1.0 + 1e-12), "{seed}: {dual} {minimum}");
        assert!(lowest >= minimum * (1.0 - 1e-8), "{seed}: {lowest} {minimum}");
        assert!(dual >= alone, "{seed}: {dual} {alone}");
        better += usize::from(dual > alone);
    }
    assert!(better >= 30, "{better} better");
}

/// A thousand problems, in one precision and the other: tiles that came to rest at a loose tolerance must be found again.
#[test]
fn a_thousand_small_problems_reach_their_tolerance() {
    let complaints: Vec<String> = (0..1000_u64)
        .into_par_iter()
        .filter_map(|seed| {
            // What counting the rounding adds to a gap is far below the tolerance.
            match seed % 2 {
                0 => small::<f64>(1000 * seed + seed % 5).complaint(1e-6, 1e-10).map(|c| format!("{seed} f64 {c}")),
                _ => small::<f32>(1000 * seed + seed % 5).complaint(1e-4, 2e-5).map(|c| format!("{seed} f32 {c}")),
            }
        })
        .collect();
    assert!(
        complaints.is_empty(),
        "{} of 1000:\n{}",
        complaints.len(),
        complaints[..complaints.len().min(10)].join("\n")
    );
}

/// 204 channels of 150 taps: the rounding bound of single precision says nothing there, and the last look is in double.
#[test]
fn many_channels_are_certified_in_single_precision() {
    let shape = |width| Shape { channels: 204, depth: 1, height: 1, width };
    let (d, x) = (inner_filters::<f32>(4, shape(150), 3), noise::<f32>(shape(400), 4));
    for boundary in BOUNDARIES {
        let config = ActiveSetConfig::default();
        let top = ActiveSet::new(&d, 1.0, 1.0, boundary, config.clone()).unwrap().beta_max(&x).unwrap();
        for tol in [1e-2, 1e-4] {
            let mut coder = ActiveSet::new(&d, 0.3 * top, tol, boundary, config.clone()).unwrap();
            let coded = coder.code(&x, None).unwrap();
            assert_eq!(coded.status, Status::Converged, "{boundary:?} {tol}: {:e}", coded.relative_gap());
            let truth = Exact::new(&d, &x, 0.3 * top, boundary, &config).of(&coded.code);
            assert!(coded.gap >= truth.gap - 1e-7 * truth.objective, "{boundary:?}: {:e} {:e}", coded.gap, truth.gap);
        }
    }
}

/// All coders, those that take no masks only where there are none.
fn coders<T: Real>(d: &Dictionary<T>, beta: f64, tol: f64, masked: bool) -> Vec<(&'static str, Box<dyn Coder<T>>)> {
    let config = CoderConfig { max_iters: 150, ..CoderConfig::default() };
    let active = ActiveSet::new(d, beta, tol, Boundary::Circular, ActiveSetConfig::default()).unwrap();
    let mut all: Vec<(&'static str, Box<dyn Coder<T>>)> = vec![
        ("active set", Box::new(active)),
        ("masked", Box::new(Masked::new(d, beta, tol, config.clone()).unwrap())),
    ];
    if !masked {
        let fista = |space| Fista::new(d, beta, tol, space, config.clone()).unwrap();
        all.push(("admm", Box::new(Admm::new(d, beta, tol, config.clone()).unwrap())));
        all.push(("spatial fista", Box::new(fista(Space::Spatial))));
        all.push(("frequency fista", Box::new(fista(Space::Frequency))));
        all.push(("deconvnet", Box::new(Deconvnet::new(d, beta, tol, config.clone()).unwrap())));
    }
    all
}

/// Data on which single precision and transforms lose digits: offsets, tiny and large units, many channels, holes.
fn hard<T: Real>() -> Vec<(&'static str, Dictionary<T>, Sample<T>, f64)> {
    let zero_mean = |k: usize, shape: Shape, seed: u64| {
        let d = Dictionary::<f64>::random(k, shape, 3, seed).unwrap();
        let centred = d.data().chunks(shape.len()).flat_map(|f| {
            let mean = f.iter().sum::<f64>() / f.len() as f64;
            f.iter().map(move |v| T::of(0.9 * (v - mean)))
        });
        Dictionary::new(k, shape, 3, centred.collect()).unwrap()
    };
    let with = |x: Sample<T>, f: &dyn Fn(f64) -> f64| x.map(f);
    let (image, filter, long) = (Shape::image(16, 17), Shape::image(5, 5), colour(40, [1, 1, 60]));
    let holes = |x: Sample<T>| {
        let mask = (0..x.data().len()).map(|i| i % 7 != 2 && i % 11 != 4).collect();
        Sample::masked(x.shape(), x.data().to_vec(), mask).unwrap()
    };
    let plain = |seed| inner_filters::<T>(8, filter, seed);
    vec![
        ("an offset, filters without mean", zero_mean(8, filter, 9), with(noise(image, 9), &|v| 1e5 + v), 0.05),
        ("an offset", plain(3), with(noise(image, 4), &|v| 1e5 + v), 0.05),
        ("an offset, strongly penalised", plain(3), with(noise(image, 4), &|v| 1e5 + v), 0.9),
        ("tiny", plain(5), with(noise(image, 6), &|v| 1e-15 * v), 0.1),
        ("beyond the exponent of f32", plain(5), with(noise(image, 6), &|v| 1e-38 * v), 0.1),
        ("large", plain(5), with(noise(image, 6), &|v| 1e10 * v), 0.1),
        ("a dense code", plain(7), noise(image, 8), 1e-3),
        ("channels", inner_filters(5, colour(40, [1, 1, 12]), 1), noise(long, 2), 0.2),
        ("holes", plain(1), holes(noise(image, 2)), 0.1),
        ("holes and an offset", zero_mean(8, filter, 9), holes(with(noise(image, 9), &|v| 1e5 + v)), 0.05),
    ]
}

/// The lowest objective that is known, from all coders in double precision.
fn lowest(d: &Dictionary<f64>, x: &Sample<f64>, beta: f64, exact: &Exact) -> f64 {
    let objective = |(_, mut coder): (&str, Box<dyn Coder<f64>>)| {
        coder.code(x, None).map_or(f64::INFINITY, |coded| exact.of(&coded.code).objective)
    };
    coders(d, beta, 1e-9, x.mask().is_some()).into_iter().map(objective).fold(f64::INFINITY, f64::min)
}

fn check_hard<T: Real>() {
    for (name, d, x, ratio) in hard::<T>() {
        let wide_d = Dictionary::new(d.n_filters(), d.shape(), 3, widen(d.data())).unwrap();
        let wide_x = x.clone().cast::<f64>().unwrap();
        let config = ActiveSetConfig::default();
        let top = |beta: f64| Exact::new(&wide_d, &wide_x, beta, Boundary::Circular, &config);
        let x_of = |i: usize| wide_x.data()[i];
        let beta = ratio * top(1.0).strongest(&(0..wide_x.data().len()).map(x_of).collect::<Vec<_>>());
        let exact = top(beta);
        let lowest = lowest(&wide_d, &wide_x, beta, &exact);
        // Before the first step there is one dual point, the sample, and one gap.
        let stopped = ActiveSetConfig { max_rounds: 0, ..ActiveSetConfig::default() };
        let zero = ActiveSet::new(&d, beta, 1e-9, Boundary::Circular, stopped).unwrap().code(&x, None).unwrap();
        let truth = exact.of(&zero.code).gap;
        assert!(zero.gap >= truth * (1.0 - 1e-12), "{name} in {}: {:e}, exactly {truth:e}", T::NAME, zero.gap);
        assert!(zero.gap <= truth * (1.0 + 1e-3), "{name} in {}: {:e}, exactly {truth:e}", T::NAME, zero.gap);
        for tol in [0.3, 1e-2, 1e-5] {
            for (coder, mut c) in coders(&d, beta, tol, x.mask().is_some()) {
                let coded: Coded<T> = c.code(&x, None).unwrap();
                let truth = exact.of(&coded.code);
                let what = format!("{name}, {coder} in {} to {tol}", T::NAME);
                assert!(relative(coded.total(), truth.objective) < 1e-12, "{what}");
                let round_off = 1e-14 * truth.objective;
                assert!(
                    coded.total() - coded.gap <= lowest + round_off,
                    "{what}: {} {lowest}",
                    coded.total() - coded.gap
                );
                assert!(coded.gap >= truth.objective - lowest - round_off, "{what}");
                let rounded = 4.0 * T::EPSILON * truth.objective;
                let gaps = format!("{what}: {:e}, by the residual {:e}", coded.gap, truth.gap);
                // None is worse than the residual's own, if not good enough.
                let worst = (truth.gap + rounded.max(1e-7 * truth.objective)).max(tol * truth.objective);
                assert!(coded.gap <= worst, "{gaps}");
            }
        }
    }
}

#[test]
fn no_gap_is_below_the_true_one_on_hard_data_in_single_precision() {
    check_hard::<f32>();
}

#[test]
fn no_gap_is_below_the_true_one_on_hard_data_in_double_precision() {
    check_hard::<f64>();
}

/// At a tiny beta the residual of a good code proves nothing, and the dual iterate of ADMM proves it.
#[test]
fn the_best_dual_point_is_kept() {
    for seed in 0..4 {
        let (d, x) = (filters::<f64>(3, [1, 4, 5], seed), noise::<f64>([1, 14, 15], seed + 1));
        let matrix = Matrix::new(&d, [1, 14, 15]);
        let beta = 1e-4 * matrix.transposed(x.data()).iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        for (name, mut coder) in [
            ("admm", Box::new(Admm::new(&d, beta, 1e-9, CoderConfig::default()).unwrap()) as Box<dyn Coder<f64>>),
            ("masked", Box::new(Masked::new(&d, beta, 1e-9, CoderConfig::default()).unwrap())),
        ] {
            let coded = coder.code(&x, None).unwrap();
            let by_residual = matrix.gap(x.data(), &coded.code.to_dense().unwrap(), beta) / coded.total();
            assert!(
                coded.relative_gap() < 0.02,
                "{name}: {} where the residual proves {by_residual}",
                coded.relative_gap()
            );
            assert!(by_residual > 0.1, "{name}: the test should meet the case: {by_residual}");
        }
    }
}

/// The unit of the data changes nothing, however small or large: a power of two is exact.
#[test]
fn any_unit_will_do() {
    let (d, x) = (inner_filters::<f64>(6, Shape::image(5, 4), 3), noise::<f64>([1, 40, 45], 4));
    let code = |unit: f64| {
        let settings = ActiveSetConfig::default();
        let mut coder = ActiveSet::new(&d, 0.5 * unit, 1e-4, Boundary::Circular, settings).unwrap();
        coder.code(&x.map(|v| unit * v), None).unwrap()
    };
    let plain = code(1.0);
    for exponent in [-400, -130, -126, -40, 40, 126, 400] {
        let unit = 2.0_f64.powi(exponent);
        let scaled = code(unit);
        assert_eq!((scaled.status, scaled.iterations), (plain.status, plain.iterations), "2^{exponent}");
        assert!((scaled.relative_gap() - plain.relative_gap()).abs() < 1e-12, "2^{exponent}");
        let atoms = scaled.code.atoms().iter().zip(plain.code.atoms());
        assert!(
            atoms.clone().count() == plain.code.nonzeros() && atoms.clone().all(|(a, b)| a.value / unit == b.value)
        );
    }
}

/// A crop of a photo at a tiny beta, which the residual alone certified to 8 % after all iterations.
#[test]
fn a_dense_code_of_a_photo_is_certified() {
    let Some(dir) = data_dir() else { return };
    let images: ndarray::Array3<f64> = ndarray_npy::read_npy(dir.join("fruit/train_lcne.npy")).unwrap();
    let crop = images.slice(ndarray::s![0, 20..56, 30..66]);
    let x = Sample::new(Shape::image(36, 36), crop.iter().map(|v| *v as f32).collect()).unwrap();
    let d = inner_filters::<f32>(100, Shape::image(11, 11), 1);
    let config = CoderConfig { max_iters: 600, ..CoderConfig::default() };
    let coded = Admm::new(&d, 0.001, 0.01, config).unwrap().code(&x, None).unwrap();
    let truth = Exact::new(&d, &x, 0.001, Boundary::Circular, &ActiveSetConfig::default()).of(&coded.code);
    let by_residual = truth.gap / truth.objective;
    let gaps = format!("{} after {}, by the residual {by_residual}", coded.relative_gap(), coded.iterations);
    assert!(coded.relative_gap() <= 0.04 && coded.relative_gap() < 0.5 * by_residual, "{gaps}");
}
