//! Jointly sparse channels, against proximal gradient descent on an explicit matrix.

use crate::active_set::explicit;
use crate::common::*;
use ocsc::coder::{Coded, Coder, Joint, Status};
use ocsc::settings::{ActiveSetConfig, Boundary, Weights};
use ocsc::verify::Problem;
use ocsc::{Config, Dictionary, Online, Real, Sample, Shape};
use rand::RngExt;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];
const CHANNELS: usize = 3;

/// Images of three channels as slices, or signals as rows; gray filters.
fn problem(rank: usize, seed: u64) -> (Dictionary<f64>, Sample<f64>) {
    let (filter, sample) = match rank {
        1 => (Shape::image(1, 4), Shape::image(CHANNELS, 14)),
        _ => (Shape::image(3, 2), Shape { channels: 1, depth: CHANNELS, height: 5, width: 6 }),
    };
    let random = Dictionary::<f64>::random(3, filter, rank, seed).unwrap();
    (random, noise(sample, seed + 1))
}

/// The group lasso as an explicit matrix.
struct GroupLasso {
    matrix: Matrix,
    target: Vec<f64>,
    weights: Vec<f64>,
    places: usize,
    nonnegative: bool,
}

impl GroupLasso {
    fn new(d: &Dictionary<f64>, x: &Sample<f64>, boundary: Boundary, beta: f64, config: &ActiveSetConfig) -> Self {
        let (matrix, target) = explicit(d, x, boundary);
        let per_filter = matrix.columns.len() / d.n_filters();
        let weight = |k: usize| match &config.weights {
            Weights::PerFilter(weights) => beta * weights[k],
            _ => beta,
        };
        let weights = (0..d.n_filters()).map(weight).collect();
        let (places, nonnegative) = (per_filter / CHANNELS, config.nonnegative);
        GroupLasso { matrix, target, weights, places, nonnegative }
    }

    /// Calls `visit` with the weight and the columns of every group.
    fn groups(&self) -> Vec<(f64, Vec<usize>)> {
        let per_filter = self.places * CHANNELS;
        let group = |k: usize, p: usize| (0..CHANNELS).map(|c| k * per_filter + c * self.places + p).collect();
        (0..self.weights.len()).flat_map(|k| (0..self.places).map(move |p| (self.weights[k], group(k, p)))).collect()
    }

    fn objective(&self, z: &[f64]) -> f64 {
        let r = self.matrix.residual(&self.target, z);
        let norm = |group: &[usize]| group.iter().map(|j| z[*j] * z[*j]).sum::<f64>().sqrt();
        0.5 * dot(&r, &r) + self.groups().iter().map(|(w, group)| w * norm(group)).sum::<f64>()
    }

    /// The largest eigenvalue of A^T A, by power iterations.
    fn curvature(&self) -> f64 {
        let zeros = vec![0.0; self.target.len()];
        let mut v: Vec<f64> = (0..self.matrix.columns.len()).map(|j| 1.0 + 0.1 * (j % 7) as f64).collect();
        let mut value = 0.0;
        for _ in 0..300 {
            let image = self.matrix.residual(&zeros, &v);
            v = self.matrix.transposed(&image);
            value = dot(&v, &v).sqrt();
            v.iter_mut().for_each(|v| *v /= value);
        }
        value
    }

    /// The minimum by accelerated proximal gradient descent.
    fn minimum(&self) -> f64 {
        let n = self.matrix.columns.len();
        let curvature = 1.05 * self.curvature();
        let (mut z, mut y, mut t) = (vec![0.0; n], vec![0.0; n], 1.0_f64);
        let groups = self.groups();
        for _ in 0..6000 {
            let pulls = self.matrix.transposed(&self.matrix.residual(&self.target, &y));
            let mut next: Vec<f64> = y.iter().zip(pulls).map(|(y, c)| y + c / curvature).collect();
            if self.nonnegative {
                next.iter_mut().for_each(|v| *v = v.max(0.0));
            }
            for (weight, group) in &groups {
                let norm = group.iter().map(|j| next[*j] * next[*j]).sum::<f64>().sqrt();
                let shrink = (1.0 - weight / (curvature * norm).max(1e-300)).max(0.0);
                group.iter().for_each(|j| next[*j] *= shrink);
            }
            let after = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
            let momentum = (t - 1.0) / after;
            y = next.iter().zip(&z).map(|(a, b)| a + momentum * (a - b)).collect();
            // Restarted where it overshoots.
            let back: f64 = next.iter().zip(&z).zip(&y).map(|((a, b), y)| (y - a) * (a - b)).sum();
            t = if back < 0.0 { 1.0 } else { after };
            z = next;
        }
        self.objective(&z)
    }
}

fn coded<T: Real>(
    d: &Dictionary<T>,
    x: &Sample<T>,
    boundary: Boundary,
    beta: f64,
    tol: f64,
    config: &ActiveSetConfig,
) -> Coded<T> {
    Joint::new(d, beta, tol, boundary, config.clone()).unwrap().code(x, None).unwrap()
}

/// Checks that a code is optimal, worth what it says, and that its gap is no smaller than the true one.
fn check(d: &Dictionary<f64>, x: &Sample<f64>, boundary: Boundary, config: &ActiveSetConfig) {
    let what = format!("{boundary:?} {config:?} masked {}", x.mask().is_some());
    let largest = Joint::new(d, 1.0, 1.0, boundary, config.clone()).unwrap().beta_max(x).unwrap();
    let beta = 0.2 * largest;
    assert_eq!(coded(d, x, boundary, 1.0001 * largest, 1e-3, config).code.nonzeros(), 0, "{what}");
    let explicit = GroupLasso::new(d, x, boundary, beta, config);
    let minimum = explicit.minimum();
    for tol in [0.1, 1e-7] {
        let coded = coded(d, x, boundary, beta, tol, config);
        assert_eq!(coded.status, Status::Converged, "{what}");
        let z = coded.code.to_dense().unwrap();
        let objective = explicit.objective(&z);
        assert!((objective - coded.total()).abs() <= 1e-10 * objective, "{what}: {objective} {}", coded.total());
        assert!(objective - minimum <= coded.gap + 1e-10 * objective, "{what}: a gap below the true one");
        assert!(objective <= minimum * (1.0 + tol + 1e-9), "{what}: {objective} {minimum}");
        // And by the verifier, which shares nothing with the coder.
        let config = Config {
            boundary,
            active_set: ActiveSetConfig { joint: true, ..config.clone() },
            n_filters: d.n_filters(),
            preprocess: "per-channel".parse().unwrap(),
            ..Config::default()
        };
        let verified = Problem::new(&config, d, beta).verify(x, &coded.code).unwrap();
        assert!((verified.objective - objective).abs() <= 1e-10 * objective, "{what}");
        assert!(verified.gap() <= tol.max(1e-6) * 1.5, "{what}: {}", verified.gap());
        let (bound, lowest) = Problem::new(&config, d, beta).bound(x, &coded.code, coded.relative_gap()).unwrap();
        assert!(bound <= minimum * (1.0 + 1e-9) && lowest >= minimum * (1.0 - 1e-9), "{what}");
    }
}

#[test]
fn codes_are_those_of_the_explicit_group_lasso() {
    for boundary in BOUNDARIES {
        for (rank, seed) in [(1, 3), (2, 8)] {
            let (d, x) = problem(rank, seed);
            let mut rng = rng(seed);
            let seen: Vec<bool> = (0..x.data().len()).map(|_| rng.random_bool(0.8)).collect();
            let masked = Sample::masked(x.shape(), x.data().to_vec(), seen).unwrap();
            let weights = Weights::PerFilter(vec![1.0, 0.6, 1.7]);
            check(&d, &x, boundary, &ActiveSetConfig::default());
            check(&d, &masked, boundary, &ActiveSetConfig { weights, ..ActiveSetConfig::default() });
            check(&d, &x, boundary, &ActiveSetConfig { nonnegative: true, ..ActiveSetConfig::default() });
        }
    }
}

#[test]
fn channels_are_zero_together() {
    let (d, x) = problem(2, 5);
    let coded = coded(&d, &x, Boundary::Free, 0.6, 1e-3, &ActiveSetConfig::default());
    let places = coded.code.shape()[1] * coded.code.shape()[2];
    let mut count = std::collections::HashMap::new();
    for atom in coded.code.atoms() {
        *count.entry((atom.filter, atom.position as usize % places)).or_insert(0) += 1;
    }
    assert!(count.len() > 3 && count.values().all(|n| *n == CHANNELS), "{count:?}");
}

/// One channel is the plain lasso.
#[test]
fn of_one_channel_it_is_the_active_set() {
    let d = Dictionary::<f64>::random(3, Shape::image(3, 3), 2, 1).unwrap();
    let x = noise(Shape::image(9, 8), 2);
    let joint = coded(&d, &x, Boundary::Circular, 0.8, 1e-8, &ActiveSetConfig::default());
    let mut plain = crate::active_set::coder(&d, 0.8, 1e-8, Boundary::Circular, &ActiveSetConfig::default());
    let plain = plain.code(&x, None).unwrap();
    assert!((joint.total() - plain.total()).abs() < 1e-7 * plain.total());
}

#[test]
fn precision_threads_and_starts_change_little() {
    let (d, x) = problem(2, 11);
    let wide = coded(&d, &x, Boundary::Zero, 0.5, 1e-5, &ActiveSetConfig::default());
    let single = Dictionary::new(3, d.shape(), 2, d.data().iter().map(|v| *v as f32).collect()).unwrap();
    let narrow: Coded<f32> =
        coded(&single, &x.clone().cast().unwrap(), Boundary::Zero, 0.5, 1e-5, &ActiveSetConfig::default());
    assert!((narrow.total() - wide.total()).abs() < 1e-4 * wide.total());
    assert!(narrow.relative_gap() <= 1e-5);
    let mut coder = Joint::new(&d, 0.5, 1e-5, Boundary::Zero, ActiveSetConfig::default()).unwrap();
    let again = coder.code(&x, Some(&wide.code)).unwrap();
    assert!(again.iterations == 0 && again.code == wide.code);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = one.install(|| coder.code(&x, None).unwrap());
    assert_eq!(alone, coder.code(&x, None).unwrap());
}

#[test]
fn learning_lowers_the_objective() {
    let config = Config {
        n_filters: 4,
        filter_shape: vec![3, 3],
        beta: 0.3,
        boundary: Boundary::Free,
        preprocess: "per-channel".parse().unwrap(),
        active_set: ActiveSetConfig { joint: true, ..ActiveSetConfig::default() },
        ..Config::default()
    };
    let mut learner = Online::<f64>::new(config.clone(), 1).unwrap();
    let shape = Shape { channels: 1, depth: 3, height: 12, width: 12 };
    // One blob in three colours.
    let blob = |i: usize, seed: u64| {
        let (c, y, x) = (i / 144, (i / 12 % 12) as f64, (i % 12) as f64);
        let bump = |at: f64, to: f64| (-(at - to).powi(2) / 3.0).exp();
        (1.0 + c as f64) * bump(y, 3.0 + seed as f64) * bump(x, 8.0 - seed as f64)
    };
    let samples: Vec<Sample<f64>> =
        (0..4).map(|s| Sample::new(shape, (0..432).map(|i| blob(i, s)).collect()).unwrap()).collect();
    let first: f64 = samples.iter().map(|x| learner.partial_fit(x).unwrap().objective()).sum();
    for _ in 0..5 {
        samples.iter().for_each(|x| drop(learner.partial_fit(x).unwrap()));
    }
    let last: f64 = samples.iter().map(|x| learner.partial_fit(x).unwrap().objective()).sum();
    assert!(last < 0.9 * first, "{first} {last}");
    let wrong = Config { preprocess: "none".parse().unwrap(), ..config };
    let error = wrong.validate().unwrap_err().to_string();
    assert!(error.contains("the step per-channel"), "{error}");
}
