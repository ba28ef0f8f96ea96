//! The paper's dictionary update against a textbook twin of Algorithm 2; all updates against slow projected gradient.

use crate::common::*;
use faer::linalg::solvers::{PartialPivLu, Solve};
use faer::{Mat, c64};
use ocsc::settings::{BlockDescentConfig, Boundary, UpdateConfig};
use ocsc::testing::Fourier;
use ocsc::update::{Aocdl, BlockDescent, Cbpdn, Consensus, Deconvnet, Fcsc, Ffcsc, Ocdl1, Ocdl2, OcscPaper, Update};
use ocsc::{Code, Dictionary, Real, Sample, Shape};
use proptest::prelude::*;

/// Returns settings of an update with this penalty, these iterations at most and this tolerance.
fn settings(rho: f64, max_iters: usize, tol: f64) -> UpdateConfig {
    UpdateConfig { rho: Some(rho), max_iters, tol, ..UpdateConfig::default() }
}

/// A frozen problem: samples with codes, and a dictionary to start from.
struct Problem {
    axes: Shape,
    pairs: Vec<(Sample<f64>, Code<f64>)>,
    start: Dictionary<f64>,
}

impl Problem {
    /// `strength` scales the samples: small ones leave the norm constraint inactive.
    fn new(axes: impl Axes, corner: impl Axes, k: usize, samples: u64, strength: f64, seed: u64) -> Self {
        let axes = axes.shape();
        let pair = |i: u64| {
            let x = noise::<f64>(axes, seed + 10 * i + 1).map(|v| strength * v);
            (x, sparse_code(k, axes.spatial(), 0.25, seed + 10 * i + 2))
        };
        Problem { axes, pairs: (0..samples).map(pair).collect(), start: filters(k, corner, seed) }
    }

    /// The same problem with a third of the values unobserved.
    fn masked(mut self) -> Self {
        for (i, (x, _)) in self.pairs.iter_mut().enumerate() {
            let seen = (0..x.data().len()).map(|p| (p * 7 + i) % 3 != 1).collect();
            *x = Sample::masked(x.shape(), x.data().to_vec(), seen).unwrap();
        }
        self
    }

    /// Column (k, tap) of the linear map from dictionaries to reconstructions: code k shifted by the tap's place, in its
    /// channel; zero where nothing was observed.
    fn shifted_codes(&self) -> Vec<Vec<f64>> {
        let [d, h, w] = self.axes.spatial();
        let Shape { depth: fd, height: fh, width: fw, .. } = self.start.shape();
        let mut columns = Vec::new();
        for k in 0..self.start.n_filters() {
            for tap in 0..self.start.shape().len() {
                let (c, i, j, l) = (tap / (fd * fh * fw), tap / (fh * fw) % fd, tap / fw % fh, tap % fw);
                let mut column = Vec::new();
                for (x, z) in &self.pairs {
                    let mut image = vec![0.0; self.axes.len()];
                    for a in z.atoms().iter().filter(|a| a.filter as usize == k) {
                        let p = a.position as usize;
                        let (pd, ph, pw) = (p / (h * w), p / w % h, p % w);
                        image[((c * d + (pd + i) % d) * h + (ph + j) % h) * w + (pw + l) % w] += a.value;
                    }
                    let seen = |p: usize| x.mask().is_none_or(|mask| mask[p]);
                    column.extend(image.into_iter().enumerate().map(|(p, v)| if seen(p) { v } else { 0.0 }));
                }
                columns.push(column);
            }
        }
        columns
    }

    fn target(&self) -> Vec<f64> {
        self.pairs.iter().flat_map(|(x, _)| x.data().to_vec()).collect()
    }

    /// sum_i 1/2 ||x_i - sum_k D_k * z_ik||^2.
    fn objective(&self, d: &Dictionary<f64>) -> f64 {
        let error = |(x, z): &(Sample<f64>, Code<f64>)| {
            let r = Matrix::new(d, self.axes).residual(x.data(), &z.to_dense().unwrap());
            let seen = |p: usize| x.mask().is_none_or(|mask| mask[p]);
            0.5 * (0..r.len()).filter(|p| seen(*p)).map(|p| r[p] * r[p]).sum::<f64>()
        };
        self.pairs.iter().map(error).sum()
    }

    /// The minimum over the unit balls by projected gradient with Nesterov's momentum and restarts, in the spatial
    /// domain; also the norms of the minimiser.
    fn minimum(&self) -> (f64, Vec<f64>) {
        let (columns, x, taps) = (self.shifted_codes(), self.target(), self.start.shape().len());
        let n = columns.len();
        let gram: Vec<Vec<f64>> = columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
        let right: Vec<f64> = columns.iter().map(|a| dot(a, &x)).collect();
        let value = |d: &[f64]| -> f64 {
            (0..n).map(|i| d[i] * (0.5 * dot(&gram[i], d) - right[i])).sum::<f64>() + 0.5 * dot(&x, &x)
        };
        let lipschitz = gram.iter().map(|row| row.iter().map(|v| v.abs()).sum()).fold(1e-9, f64::max);
        let mut d = vec![0.0; n];
        let (mut ahead, mut t, mut best) = (d.clone(), 1.0_f64, value(&d));
        for _ in 0..20_000 {
            let mut next: Vec<f64> =
                (0..n).map(|i| ahead[i] - (dot(&gram[i], &ahead) - right[i]) / lipschitz).collect();
            for filter in next.chunks_mut(taps) {
                let norm = dot(filter, filter).sqrt().max(1.0);
                filter.iter_mut().for_each(|v| *v /= norm);
            }
            let new = value(&next);
            let t_next = if new > best { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt()) };
            let momentum = if new > best { 0.0 } else { (t - 1.0) / t_next };
            ahead = next.iter().zip(&d).map(|(a, b)| a + momentum * (a - b)).collect();
            (d, t, best) = (next, t_next, new);
        }
        (best, d.chunks(taps).map(|f| dot(f, f).sqrt()).collect())
    }

    fn update(&self, config: UpdateConfig) -> Dictionary<f64> {
        self.update_by(&mut OcscPaper::new(config))
    }

    fn update_by(&self, update: &mut dyn Update<f64>) -> Dictionary<f64> {
        for (x, z) in &self.pairs {
            update.absorb(x, z, &self.start).unwrap();
        }
        let mut d = self.start.clone();
        update.update(&mut d);
        assert!(d.norms().into_iter().all(|norm| norm <= 1.0));
        d
    }

    /// Algorithm 2 step by step: D, V and Theta stored, and one dense system per frequency, for `iterations`.
    fn textbook(&self, rho: f64, iterations: usize, reset: bool) -> Vec<f64> {
        let (k, channels, corner) = (self.start.n_filters(), self.axes.channels, self.start.shape().spatial());
        let fourier = Fourier::<f64>::new(self.axes.spatial());
        let (mut scratch, freqs) = (fourier.scratch(), fourier.n_freqs());
        let zero = c64::new(0.0, 0.0);
        let mut gram = vec![Mat::<c64>::zeros(k, k); freqs];
        let mut cross = vec![Mat::<c64>::zeros(k, channels); freqs];
        let spectra = |maps: &[f64], corner: [usize; 3]| -> Vec<Vec<c64>> {
            let spectrum = |map: &[f64]| {
                let mut spectrum = vec![zero; freqs];
                fourier.forward_padded(map, corner, &mut spectrum, &mut fourier.scratch());
                spectrum
            };
            maps.chunks(corner.iter().product()).map(spectrum).collect()
        };
        for (x, z) in &self.pairs {
            let [x_f, z_f] = [x.data(), &z.to_dense().unwrap()].map(|maps| spectra(maps, self.axes.spatial()));
            for p in 0..freqs {
                for i in 0..k {
                    (0..channels).for_each(|c| cross[p][(i, c)] += x_f[c][p] * z_f[i][p].conj());
                    for j in 0..k {
                        gram[p][(i, j)] += z_f[i][p].conj() * z_f[j][p];
                    }
                }
            }
        }
        // spectra of V and Theta: (K, C) of them
        let mut v = if reset { vec![0.0; self.start.data().len()] } else { self.start.data().to_vec() };
        let mut v_f = spectra(&v, corner);
        let mut theta = vec![vec![zero; freqs]; k * channels];
        let mut d = theta.clone();
        for _ in 0..iterations {
            for p in 0..freqs {
                let system = Mat::from_fn(k, k, |i, j| gram[p][(i, j)] + if i == j { rho } else { 0.0 });
                let back = |i: usize, c: usize| v_f[i * channels + c][p] - theta[i * channels + c][p];
                let right = Mat::from_fn(k, channels, |i, c| cross[p][(i, c)] + rho * back(i, c));
                let solution = PartialPivLu::new(system.as_ref()).solve(&right);
                (0..k * channels).for_each(|i| d[i][p] = solution[(i / channels, i % channels)]);
            }
            for (i, map) in v.chunks_mut(corner.iter().product()).enumerate() {
                let mut sum: Vec<c64> = d[i].iter().zip(&theta[i]).map(|(d, t)| d + t).collect();
                fourier.inverse_cropped(&mut sum, corner, map, &mut scratch);
            }
            for filter in v.chunks_mut(self.start.shape().len()) {
                let norm = dot(filter, filter).sqrt().max(1.0);
                filter.iter_mut().for_each(|v| *v /= norm);
            }
            v_f = spectra(&v, corner);
            for i in 0..k * channels {
                for p in 0..freqs {
                    theta[i][p] += d[i][p] - v_f[i][p];
                }
            }
        }
        v
    }
}

fn problems() -> impl Strategy<Value = (Shape, Shape, usize, u64)> {
    let sizes = prop_oneof![
        (Just(1_usize), Just(1_usize), 6..24_usize),
        (Just(1_usize), 3..7_usize, 3..7_usize),
        (2..4_usize, 2..4_usize, 2..5_usize),
    ];
    (sizes, 1..4_usize, 1..11_usize, 0..10_000_u64).prop_flat_map(|((d, h, w), channels, k, seed)| {
        let corner = (1..=d.min(2), 1..=h.min(3), 1..=w.min(4)).prop_map(move |(a, b, c)| colour(channels, [a, b, c]));
        (Just(colour(channels, [d, h, w])), corner, Just(k), Just(seed))
    })
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn iterates_are_the_textbooks(
        (axes, corner, k, seed) in problems(), iterations in 1..20_usize, rho in 0.5..30.0_f64, reset in any::<bool>(),
    ) {
        let problem = Problem::new(axes, corner, k, 2, 1.5, seed);
        let config = UpdateConfig { reset, ..settings(rho, iterations, 1e-300) };
        let expected = problem.textbook(rho, iterations, reset);
        prop_assert!(distance(problem.update(config).data(), &expected) < 1e-9);
    }

    #[test]
    fn many_iterations_reach_the_minimum_over_the_unit_balls(
        (axes, corner, k, seed) in problems(), strength in prop_oneof![Just(0.05), Just(1.0), Just(20.0)],
    ) {
        let k = k.min(4);
        let problem = Problem::new(axes, corner, k, 3, strength, seed);
        let (minimum, _) = problem.minimum();
        let start = problem.objective(&problem.start);
        for reset in [false, true] {
            let config = UpdateConfig { reset, ..settings(5.0, 20_000, 1e-11) };
            let found = problem.objective(&problem.update(config));
            prop_assert!((found - minimum).abs() < 1e-6 * minimum.max(1e-6 * start), "{} {}", found, minimum);
        }
    }
}

/// All updates, to be run for long.
fn updates() -> Vec<(&'static str, Box<dyn Update<f64>>)> {
    let config = settings(5.0, 20_000, 1e-11);
    let sweeps = BlockDescentConfig { sweeps: 20_000, tol: 1e-11, reseed: false, ..BlockDescentConfig::default() };
    vec![
        ("aocdl", Box::new(Aocdl::new(sweeps.clone(), Boundary::Circular))),
        ("ocsc", Box::new(BlockDescent::new(sweeps, Boundary::Circular, 0))),
        ("ocsc-paper", Box::new(OcscPaper::new(config.clone()))),
        ("deconvnet", Box::new(Deconvnet::new(config.clone()))),
        ("fcsc", Box::new(Fcsc::new(config.clone()))),
        ("ffcsc", Box::new(Ffcsc::new(config.clone()))),
        ("cbpdn", Box::new(Cbpdn::new(config.clone()))),
        ("consensus", Box::new(Consensus::new(config.clone()))),
        ("ocdl1", Box::new(Ocdl1::new(config.clone()))),
        ("ocdl2", Box::new(Ocdl2::new(config))),
    ]
}

/// More filters than samples and the other way round, one channel and two, the constraint active and not.
#[test]
fn every_update_reaches_the_same_minimum() {
    for (axes, corner, k, n, strength) in [
        (colour(1, [1, 6, 7]), colour(1, [1, 3, 3]), 4, 2, 1.0),
        (colour(1, [1, 1, 20]), colour(1, [1, 1, 5]), 2, 5, 20.0),
        (colour(2, [1, 5, 6]), colour(2, [1, 2, 3]), 3, 3, 0.05),
        (colour(2, [2, 3, 5]), colour(2, [2, 2, 2]), 3, 4, 2.0),
    ] {
        let problem = Problem::new(axes, corner, k, n, strength, 11);
        let (minimum, _) = problem.minimum();
        let start = problem.objective(&problem.start);
        assert!(minimum < 0.999 * start);
        for (name, mut update) in updates() {
            let found = problem.objective(&problem.update_by(update.as_mut()));
            assert!((found - minimum).abs() < 1e-6 * minimum.max(1e-6 * start), "{name}: {found} {minimum}");
            // Forgetting and absorbing the same again changes nothing but where it starts.
            update.forget();
            let again = problem.objective(&problem.update_by(update.as_mut()));
            assert!((again - minimum).abs() < 1e-6 * minimum.max(1e-6 * start), "{name} again: {again} {minimum}");
        }
    }
}

/// The masked objective is minimised by FFCSC, for both sides of its systems; the others refuse masks.
#[test]
fn masks_are_left_out_by_ffcsc_and_refused_by_the_others() {
    let config = settings(5.0, 20_000, 1e-11);
    for (k, n) in [(3, 2), (2, 4)] {
        let problem = Problem::new(colour(2, [1, 6, 5]), colour(2, [1, 3, 2]), k, n, 2.0, 5).masked();
        let (minimum, _) = problem.minimum();
        let found = problem.objective(&problem.update_by(&mut Ffcsc::new(config.clone())));
        assert!(relative(found, minimum) < 1e-6, "{found} {minimum}");
        let sweeps = BlockDescentConfig { sweeps: 20_000, tol: 1e-11, ..BlockDescentConfig::default() };
        let found = problem.objective(&problem.update_by(&mut Aocdl::new(sweeps, Boundary::Circular)));
        assert!(relative(found, minimum) < 1e-6, "aocdl: {found} {minimum}");
        let (x, z) = &problem.pairs[0];
        for (name, mut update) in updates().into_iter().filter(|(name, _)| !matches!(*name, "ocsc" | "ffcsc" | "aocdl"))
        {
            let refused = update.absorb(x, z, &problem.start).unwrap_err().to_string();
            assert!(refused.contains("found a mask"), "{name}: {refused}");
        }
    }
}

/// The iterates of the systems that solve the same equations are the same, whichever way they are solved.
#[test]
fn fcsc_cbpdn_and_the_textbook_agree_after_every_iteration() {
    for (channels, k, n) in [(1, 5, 3), (2, 9, 2), (1, 3, 6)] {
        let problem = Problem::new(colour(channels, [1, 6, 7]), colour(channels, [1, 3, 3]), k, n, 1.5, 3);
        for (iterations, reset) in [(1, false), (2, true), (13, false)] {
            let config = UpdateConfig { reset, ..settings(4.0, iterations, 1e-300) };
            let expected = problem.textbook(4.0, iterations, reset);
            let direct = problem.update_by(&mut Fcsc::new(config.clone()));
            let iterated = problem.update_by(&mut Cbpdn::new(config));
            assert!(distance(direct.data(), &expected) < 1e-9);
            assert!(distance(iterated.data(), &expected) < 1e-9);
        }
    }
}

/// The two sides of the constraint: weak samples leave all filters inside the ball, strong ones push all to its surface.
#[test]
fn the_constraint_binds_when_it_should() {
    for (strength, active) in [(0.05, false), (20.0, true)] {
        let problem = Problem::new([1, 6, 7], [1, 3, 3], 3, 3, strength, 7);
        let (minimum, norms) = problem.minimum();
        let config = settings(5.0, 20_000, 1e-12);
        let d = problem.update(config);
        assert!(relative(problem.objective(&d), minimum) < 1e-6);
        for (found, expected) in d.norms().into_iter().zip(norms) {
            assert!((found - expected).abs() < 1e-3, "{found} {expected}");
            assert_eq!(found > 1.0 - 1e-12, active);
        }
    }
}

/// Every dictionary on the way is feasible exactly, also in single precision, however few iterations were made.
fn stays_feasible<T: Real>() {
    for seed in 0..20 {
        let axes = [1, 9, 8];
        let mut d = filters::<T>(9, [1, 4, 5], seed);
        let mut update = OcscPaper::new(UpdateConfig { max_iters: 1 + seed as usize % 4, ..UpdateConfig::default() });
        for step in 0..5 {
            let x = noise::<T>(axes, 100 * seed + step).map(|v| 30.0 * v);
            update.absorb(&x, &sparse_code(9, axes, 0.1, 100 * seed + step + 50), &d).unwrap();
            let before = d.clone();
            let updated = update.update(&mut d);
            let (primal, dual) = updated.residuals.unwrap();
            assert!(
                updated.iterations >= 1 && primal.is_finite() && dual.is_finite() && updated.stationarity.is_none()
            );
            assert!(d.norms().into_iter().all(|norm| norm <= 1.0));
            assert_ne!(d, before);
        }
    }
}

#[test]
fn dictionaries_are_feasible_exactly() {
    stays_feasible::<f32>();
    stays_feasible::<f64>();
}

#[test]
fn no_samples_no_update() {
    let mut d = filters::<f32>(3, [1, 3, 3], 1);
    let before = d.clone();
    let mut update = OcscPaper::<f32>::new(UpdateConfig::default());
    assert_eq!(update.update(&mut d).iterations, 0);
    assert_eq!(d, before);
    assert!(update.statistics().is_none());
}

#[test]
fn threads_do_not_change_a_bit() {
    for channels in [1, 3] {
        let problem = Problem::new(colour(channels, [1, 10, 11]), colour(channels, [1, 4, 3]), 19, 3, 2.0, 3);
        let run = || problem.update(UpdateConfig::default());
        assert_eq!(with_threads(1, run), with_threads(2, run));
    }
}
