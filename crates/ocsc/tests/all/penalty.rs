//! Penalties, losses and weights of the active-set coder, against the plain lasso on an explicit matrix.
//!
//! Every convex problem here is a lasso with a weight for each column, of a matrix that is written down in full: rows are multiplied by
//! the roots of the values' weights, an elastic net has one more row per column, and the Huber function one more column per row.

use crate::active_set::{coder, explicit, problems};
use crate::common::*;
use ocsc::coder::{Coded, Coder, Omp, Status};
use ocsc::settings::{ActiveSetConfig, Boundary, Weights};
use ocsc::{Code, Config, Dictionary, Loss, Online, Penalty, Sample, Shape};
use proptest::prelude::*;
use rand::RngExt;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

/// A lasso with a weight for every column.
struct Lasso {
    matrix: Matrix,
    target: Vec<f64>,
    weights: Vec<f64>,
}

impl Lasso {
    /// The problem of a sample at `beta`, as an explicit matrix.
    fn of(d: &Dictionary<f64>, x: &Sample<f64>, boundary: Boundary, beta: f64, config: &ActiveSetConfig) -> Self {
        let (mut matrix, mut target) = explicit(d, x, boundary);
        let counts = row_weights(d, x, boundary);
        for column in matrix.columns.iter_mut().chain([&mut target]) {
            column.iter_mut().zip(&counts).for_each(|(v, w)| *v *= w.sqrt());
        }
        let per_filter = matrix.columns.len() / d.n_filters();
        let of_filter = |k: usize| match &config.weights {
            Weights::PerFilter(weights) => weights[k],
            _ => 1.0,
        };
        let own = |j: usize| x.coefficient_weights().map_or(1.0, |w| w[j]);
        let mut weights: Vec<f64> =
            (0..matrix.columns.len()).map(|j| beta * of_filter(j / per_filter) * own(j)).collect();
        if let Weights::Inverse(eps) = config.weights {
            let pulls = matrix.transposed(&target);
            weights.iter_mut().zip(pulls).for_each(|(w, c)| *w /= c.abs() + eps);
        }
        let (rows, mu) = (matrix.rows, config.penalty.ridge());
        if mu > 0.0 {
            let n = matrix.columns.len();
            for (j, column) in matrix.columns.iter_mut().enumerate() {
                column.extend((0..n).map(|i| if i == j { mu.sqrt() } else { 0.0 }));
            }
            target.extend(vec![0.0; n]);
        }
        if let Loss::Huber(delta) = config.loss {
            for (row, w) in counts.iter().enumerate() {
                matrix.columns.push((0..target.len()).map(|i| if i == row { w.sqrt() } else { 0.0 }).collect());
                weights.push(w * delta);
            }
        }
        assert!(rows <= target.len());
        matrix.rows = target.len();
        Lasso { matrix, target, weights }
    }

    fn objective(&self, z: &[f64]) -> f64 {
        let r = self.matrix.residual(&self.target, z);
        0.5 * dot(&r, &r)
            + z.iter().zip(&self.weights).map(|(z, w)| if *z == 0.0 { 0.0 } else { w * z.abs() }).sum::<f64>()
    }

    /// The minimum by plain cyclic coordinate descent, proven by the textbook's gap.
    fn minimum(&self) -> f64 {
        let norms: Vec<f64> = self.matrix.columns.iter().map(|c| dot(c, c)).collect();
        let mut z = vec![0.0; norms.len()];
        let mut r = self.target.clone();
        for sweep in 0..200_000 {
            for (j, column) in self.matrix.columns.iter().enumerate() {
                let c = dot(column, &r) + norms[j] * z[j];
                let new = if norms[j] > 0.0 { soft(c, self.weights[j]) / norms[j] } else { 0.0 };
                if new != z[j] {
                    let step = new - z[j];
                    r.iter_mut().zip(column).for_each(|(r, c)| *r -= step * c);
                    z[j] = new;
                }
            }
            let objective = self.objective(&z);
            if sweep % 50 == 49 {
                let pulls = self.matrix.transposed(&r);
                let top = pulls.iter().zip(&self.weights).map(|(c, w)| c.abs() / w).fold(1.0, f64::max);
                let s = 1.0 / top;
                let dual = s * dot(&self.target, &r) - 0.5 * s * s * dot(&r, &r);
                if objective - dual <= 1e-10 * objective {
                    return objective;
                }
            }
        }
        panic!("coordinate descent did not converge");
    }
}

/// How much every row of [`explicit`] counts.
fn row_weights(d: &Dictionary<f64>, x: &Sample<f64>, boundary: Boundary) -> Vec<f64> {
    let weights: Vec<f64> = x.weights().map_or(vec![1.0; x.data().len()], <[f64]>::to_vec);
    // Shifted, so that the zeros around the sample can be told from weights.
    let shifted = weights.iter().map(|w| w + 10.0).collect();
    let all = vec![true; x.data().len()];
    let sample = Sample::masked(x.shape(), shifted, x.mask().map_or(all, <[bool]>::to_vec)).unwrap();
    let (_, rows) = explicit(d, &sample, boundary);
    rows.into_iter().map(|w| if w < 5.0 { 1.0 } else { w - 10.0 }).collect()
}

/// Noise of which some values count less than others, and some not at all.
fn weighted(shape: Shape, seed: u64) -> Sample<f64> {
    let mut rng = rng(seed + 5);
    let weights =
        (0..shape.len()).map(|_| if rng.random_bool(0.1) { 0.0 } else { rng.random_range(0.05..1.0) }).collect();
    let mut weights: Vec<f64> = weights;
    weights[0] = 0.5;
    noise::<f64>(shape, seed).with_weights(weights).unwrap()
}

fn positions(x: &Sample<f64>, d: &Dictionary<f64>, boundary: Boundary) -> usize {
    let (s, f) = (x.shape().spatial(), d.shape().spatial());
    (0..3).map(|i| if boundary == Boundary::Circular { s[i] } else { s[i] + f[i] - 1 }).product()
}

fn largest(d: &Dictionary<f64>, x: &Sample<f64>, boundary: Boundary, config: &ActiveSetConfig) -> f64 {
    coder(d, 1.0, 1.0, boundary, config).beta_max(x).unwrap()
}

/// That a code is as good as it says, that it is optimal, and that its objective is that of the explicit problem.
fn check_convex(
    (d, x, boundary): (&Dictionary<f64>, &Sample<f64>, Boundary),
    beta: f64,
    config: &ActiveSetConfig,
) -> Result<(), TestCaseError> {
    let lasso = Lasso::of(d, x, boundary, beta, config);
    let minimum = lasso.minimum();
    let what = format!("{boundary:?} {config:?}");
    // Every round of a robust loss solves another majorising problem: it gets closer by a factor at a time.
    let finest = if config.loss == Loss::L2 { 1e-7 } else { 1e-5 };
    for tol in [0.1, finest] {
        let coded = coder(d, beta, tol, boundary, config).code(x, None).unwrap();
        prop_assert!(coded.total() - minimum <= coded.gap + 1e-8 * minimum, "{} {} {}", coded.total(), minimum, what);
        prop_assert!(coded.total() >= minimum * (1.0 - 1e-8), "{} {} {what}", coded.total(), minimum);
        if tol < 1e-3 {
            // With most values beyond DELTA the majorising problems are far from Huber's, and rounds may run out.
            let is_done = coded.status == Status::Converged || config.loss != Loss::L2;
            prop_assert!(is_done, "{} gap {}", &what, coded.relative_gap());
            prop_assert!(
                relative(coded.total(), minimum) < if config.loss == Loss::L2 { 1e-6 } else { 1e-4 },
                "{what}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn weights_of_values_and_of_coefficients_are_those_of_the_problem(
        (sample, filter, k, seed) in problems(),
        ratio in 0.1..0.8_f64,
    ) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let plain = ActiveSetConfig::default();
        let mut rng = rng(seed);
        for boundary in BOUNDARIES {
            let x = weighted(sample, seed);
            check_convex((&d, &x, boundary), ratio * largest(&d, &x, boundary, &plain), &plain)?;
            let own: Vec<f64> = (0..k * positions(&x, &d, boundary)).map(|_| rng.random_range(0.2..3.0)).collect();
            let x = noise::<f64>(sample, seed).with_coefficient_weights(own.into()).unwrap();
            check_convex((&d, &x, boundary), ratio * largest(&d, &x, boundary, &plain), &plain)?;
        }
    }

    #[test]
    fn the_elastic_net_is_the_lasso_with_more_rows((sample, filter, k, seed) in problems(), mu in 0.01..2.0_f64) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let config = ActiveSetConfig { penalty: Penalty::Elastic(mu), ..ActiveSetConfig::default() };
        for boundary in BOUNDARIES {
            for x in [noise::<f64>(sample, seed), weighted(sample, seed)] {
                check_convex((&d, &x, boundary), 0.2 * largest(&d, &x, boundary, &config), &config)?;
            }
        }
    }

    #[test]
    fn hubers_loss_is_the_lasso_with_more_columns((sample, filter, k, seed) in problems(), delta in 0.1..1.5_f64) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let config = ActiveSetConfig { loss: Loss::Huber(delta), max_rounds: 2000, ..ActiveSetConfig::default() };
        for boundary in BOUNDARIES {
            for x in [noise::<f64>(sample, seed), weighted(sample, seed)] {
                check_convex((&d, &x, boundary), 0.3 * largest(&d, &x, boundary, &config), &config)?;
            }
        }
    }

    #[test]
    fn the_rule_of_weights_is_the_reciprocal_correlation((sample, filter, k, seed) in problems()) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let x = noise::<f64>(sample, seed);
        let config = ActiveSetConfig { weights: Weights::Inverse(0.1), ..ActiveSetConfig::default() };
        for boundary in BOUNDARIES {
            check_convex((&d, &x, boundary), 0.2 * largest(&d, &x, boundary, &config), &config)?;
        }
    }

    /// At the end no coefficient wants to move: c_j = p'(|z_j|) sign(z_j) where z_j is not zero, and |c_j| <= beta elsewhere.
    #[test]
    fn codes_of_concave_penalties_are_stationary((sample, filter, k, seed) in problems(), ratio in 0.1..0.6_f64) {
        let d = Dictionary::random(k, filter, 3, seed).unwrap();
        let x = noise::<f64>(sample, seed);
        for penalty in [Penalty::LogSum(0.3), Penalty::Mcp(3.0), Penalty::Lq(0.5)] {
            let config = ActiveSetConfig { penalty, max_rounds: 3000, ..ActiveSetConfig::default() };
            for boundary in BOUNDARIES {
                let beta = ratio * largest(&d, &x, boundary, &config);
                let coded = coder(&d, beta, 1e-7, boundary, &config).code(&x, None).unwrap();
                prop_assert_eq!(coded.status, Status::Converged, "{} {:?}", penalty, boundary);
                let (matrix, target) = explicit(&d, &x, boundary);
                let z = coded.code.to_dense().unwrap();
                let r = matrix.residual(&target, &z);
                let pays: f64 = z.iter().map(|z| penalty.value(beta, z.abs())).sum();
                prop_assert!(relative(coded.total(), 0.5 * dot(&r, &r) + pays) < 1e-10);
                for (c, z) in matrix.transposed(&r).iter().zip(&z) {
                    let off = match *z == 0.0 {
                        true => (c.abs() - beta).max(0.0),
                        false => (c - z.signum() * penalty.slope(beta, z.abs())).abs(),
                    };
                    prop_assert!(off < 2e-3 * beta, "{penalty} {boundary:?}: {off:e} of {beta:e}");
                }
            }
        }
    }
}

/// An image of a few filters, and noise.
fn picture(seed: u64) -> (Dictionary<f64>, Sample<f64>) {
    let d = filters::<f64>(6, [1, 5, 5], seed);
    let clean = sparse_code::<f64>(6, [1, 32, 32], 0.01, seed + 1).reconstruct(&d, Boundary::Circular).unwrap();
    let noise: Vec<f64> = normal(clean.data().len(), seed + 2);
    let data = clean.data().iter().zip(noise).map(|(x, n)| x + 0.1 * n).collect();
    (d, Sample::new(clean.shape(), data).unwrap())
}

#[test]
fn the_objective_with_a_concave_penalty_falls_in_every_round() {
    for seed in 0..3 {
        let (d, x) = picture(seed);
        for penalty in [Penalty::LogSum(0.2), Penalty::Mcp(2.0), Penalty::Lq(0.3)] {
            let mut last = f64::INFINITY;
            for max_rounds in 0..12 {
                let config = ActiveSetConfig { penalty, max_rounds, ..ActiveSetConfig::default() };
                let total = coder(&d, 0.3, 1e-9, Boundary::Circular, &config).code(&x, None).unwrap().total();
                assert!(total <= last * (1.0 + 1e-12), "{penalty}, round {max_rounds}: {total} after {last}");
                last = total;
            }
        }
    }
}

#[test]
fn concave_penalties_need_fewer_atoms_and_shrink_them_less() {
    let (d, x) = picture(4);
    let code = |penalty| {
        let config = ActiveSetConfig { penalty, ..ActiveSetConfig::default() };
        coder(&d, 0.3, 1e-4, Boundary::Circular, &config).code(&x, None).unwrap()
    };
    let l1 = code(Penalty::L1);
    for penalty in [Penalty::LogSum(0.2), Penalty::Mcp(2.0), Penalty::Lq(0.3)] {
        let coded = code(penalty);
        assert!(coded.code.nonzeros() < l1.code.nonzeros(), "{penalty}");
        assert!(coded.objective.data_term < l1.objective.data_term, "{penalty}");
        assert!(coded.moved <= 1e-4 && coded.relative_gap() <= 1e-4, "{penalty}");
    }
}

/// The modulus: the smooth problem bounds it from both sides.
#[test]
fn the_modulus_is_minimised_and_proven() {
    for seed in 0..4 {
        let d = filters::<f64>(2, [1, 3, 3], seed);
        let x = noise::<f64>([1, 7, 8], seed + 9);
        for boundary in BOUNDARIES {
            let config = ActiveSetConfig { loss: Loss::L1, max_rounds: 2000, ..ActiveSetConfig::default() };
            let beta = 0.3 * largest(&d, &x, boundary, &config);
            let coded = coder(&d, beta, 0.02, boundary, &config).code(&x, None).unwrap();
            assert_eq!(coded.status, Status::Converged, "{boundary:?} {}", coded.relative_gap());
            let (matrix, target) = explicit(&d, &x, boundary);
            let z = coded.code.to_dense().unwrap();
            let modulus: f64 = matrix.residual(&target, &z).iter().map(|r| r.abs()).sum();
            let l1: f64 = z.iter().map(|z| z.abs()).sum();
            assert!(relative(coded.total(), modulus + beta * l1) < 1e-10, "{boundary:?}");
            // sum huber_h(r) / h + beta |z|, times h
            let h = 0.01;
            let smooth = ActiveSetConfig { loss: Loss::Huber(h), ..ActiveSetConfig::default() };
            let minimum = Lasso::of(&d, &x, boundary, h * beta, &smooth).minimum() / h;
            assert!(coded.total() >= minimum * (1.0 - 1e-9), "{boundary:?}");
            let least = coded.total() - coded.gap;
            assert!(least <= minimum + 0.5 * h * target.len() as f64, "{boundary:?}: {least} {minimum}");
        }
    }
}

#[test]
fn a_robust_loss_leaves_artefacts_out_and_counts_them() {
    let (d, x) = picture(6);
    let mut data = x.data().to_vec();
    (0..data.len()).step_by(97).for_each(|i| data[i] += 20.0);
    let spoilt = Sample::new(x.shape(), data).unwrap();
    let code = |sample: &Sample<f64>, loss| {
        let config = ActiveSetConfig { loss, ..ActiveSetConfig::default() };
        coder(&d, 0.3, 1e-3, Boundary::Circular, &config).code(sample, None).unwrap()
    };
    let error = |coded: &Coded<f64>| {
        let back = coded.code.reconstruct(&d, Boundary::Circular).unwrap();
        ocsc::metrics::mse(&x, &back).unwrap()
    };
    let (clean, robust, plain) = (code(&x, Loss::L2), code(&spoilt, Loss::Huber(0.3)), code(&spoilt, Loss::L2));
    assert!(error(&robust) < 2.0 * error(&clean), "{} {}", error(&robust), error(&clean));
    assert!(error(&plain) > 5.0 * error(&clean));
    let artefacts = x.data().len().div_ceil(97);
    assert!((artefacts..artefacts + 60).contains(&robust.outliers), "{} of {artefacts}", robust.outliers);
}

/// Against the normal equations of the support, signs kept.
#[test]
fn refitted_values_are_least_squares_on_the_support() {
    for boundary in BOUNDARIES {
        let (d, x) = picture(8);
        let config = ActiveSetConfig { refit: true, ..ActiveSetConfig::default() };
        let plain = coder(&d, 0.4, 1e-3, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap();
        let coded = coder(&d, 0.4, 1e-3, boundary, &config).code(&x, None).unwrap();
        assert!(coded.objective.data_term < plain.objective.data_term);
        let (matrix, target) = explicit(&d, &x, boundary);
        let (z, before) = (coded.code.to_dense().unwrap(), plain.code.to_dense().unwrap());
        let r = matrix.residual(&target, &z);
        assert!(relative(coded.objective.data_term, 0.5 * dot(&r, &r)) < 1e-10);
        for ((c, z), before) in matrix.transposed(&r).iter().zip(&z).zip(&before) {
            match *z == 0.0 {
                // Left out: its sign is not asked for.
                true => assert!(c * before.signum() <= 1e-6 || *before == 0.0, "{boundary:?} {c:e}"),
                false => assert!(c.abs() < 1e-6 && z * before > 0.0, "{boundary:?} {c:e}"),
            }
        }
        // The gap is that of the refitted code, in the problem with the penalty.
        let minimum = plain.total();
        assert!(coded.gap >= coded.total() - minimum - 1e-9 * minimum);
    }
}

#[test]
fn budgets_are_kept_and_hardly_more() {
    let (d, x) = picture(10);
    let code = |config: ActiveSetConfig| coder(&d, 1.0, 1e-4, Boundary::Circular, &config).code(&x, None).unwrap();
    let squares = |coded: &Coded<f64>| 2.0 * coded.objective.data_term;
    let energy: f64 = x.data().iter().map(|v| v * v).sum();
    let n = x.data().len() as f64;

    let coded = code(ActiveSetConfig { error: Some(0.12), ..ActiveSetConfig::default() });
    let error = (squares(&coded) / n).sqrt();
    assert!(error <= 0.12 && error > 0.95 * 0.12, "{error}");
    let coded = code(ActiveSetConfig { explained: Some(0.8), ..ActiveSetConfig::default() });
    let share = 1.0 - squares(&coded) / energy;
    assert!((0.8..0.82).contains(&share), "{share}");
    let coded = code(ActiveSetConfig { nonzeros: Some(25), ..ActiveSetConfig::default() });
    assert!((20..=25).contains(&coded.code.nonzeros()), "{}", coded.code.nonzeros());
    // The code is that of the beta it reports.
    let again = coder(&d, coded.beta, 1e-6, Boundary::Circular, &ActiveSetConfig::default()).code(&x, None).unwrap();
    assert!(relative(coded.total(), again.total()) < 1e-3);
    let config = ActiveSetConfig { error: Some(1e-9), ..ActiveSetConfig::default() };
    let tiny = Sample::new(x.shape(), normal(x.data().len(), 3)).unwrap();
    let two = filters::<f64>(1, [1, 2, 2], 0);
    let refused = coder(&two, 1.0, 1e-2, Boundary::Circular, &config).code(&tiny, None).unwrap_err().to_string();
    assert!(refused.starts_with("error: expected one that these filters reach"), "{refused}");
}

/// Orthogonal matching pursuit on the explicit matrix: the strongest column joins, the normal equations are solved.
fn pursuit(matrix: &Matrix, target: &[f64], n: usize) -> f64 {
    let norms: Vec<f64> = matrix.columns.iter().map(|c| dot(c, c).sqrt()).collect();
    let (mut support, mut r): (Vec<usize>, _) = (Vec::new(), target.to_vec());
    for _ in 0..n {
        let pulls = matrix.transposed(&r);
        let strength = |j: &usize| if norms[*j] > 0.0 { pulls[*j].abs() / norms[*j] } else { 0.0 };
        let free = (0..norms.len()).filter(|j| !support.contains(j));
        support.push(free.max_by(|a, b| strength(a).total_cmp(&strength(b))).unwrap());
        r = target.to_vec();
        for _ in 0..3000 {
            for &j in &support {
                let step = dot(&matrix.columns[j], &r) / (norms[j] * norms[j]);
                r.iter_mut().zip(&matrix.columns[j]).for_each(|(r, c)| *r -= step * c);
            }
        }
    }
    0.5 * dot(&r, &r)
}

#[test]
fn matching_pursuit_fits_as_well_as_its_textbook() {
    for (seed, boundary) in (0..4).flat_map(|seed| BOUNDARIES.map(|boundary| (seed, boundary))) {
        let d = filters::<f64>(3, [1, 3, 4], seed);
        let plain = noise::<f64>([1, 9, 11], seed + 20);
        for x in [plain.clone(), weighted(Shape::image(9, 11), seed)] {
            let config = ActiveSetConfig { nonzeros: Some(12), ..ActiveSetConfig::default() };
            let coded = Omp::new(&d, 1.0, boundary, config).unwrap().code(&x, None).unwrap();
            let (mut matrix, mut target) = explicit(&d, &x, boundary);
            let counts = row_weights(&d, &x, boundary);
            for column in matrix.columns.iter_mut().chain([&mut target]) {
                column.iter_mut().zip(&counts).for_each(|(v, w)| *v *= w.sqrt());
            }
            // Not the atoms: at a corner, those that reach it with one tap are all alike.
            let expected = pursuit(&matrix, &target, 12);
            assert_eq!(coded.code.nonzeros(), 12);
            assert!(relative(coded.objective.data_term, expected) < 1e-6, "{boundary:?} {seed}: {expected}");
            let r = matrix.residual(&target, &coded.code.to_dense().unwrap());
            assert!(relative(coded.objective.data_term, 0.5 * dot(&r, &r)) < 1e-9);
            assert_eq!(coded.gap, coded.total());
        }
    }
}

#[test]
fn matching_pursuit_keeps_its_budgets_and_signs() {
    let (d, x) = picture(12);
    let config = |config: ActiveSetConfig| Omp::new(&d, 0.5, Boundary::Circular, config).unwrap();
    let coded = config(ActiveSetConfig { error: Some(0.15), ..ActiveSetConfig::default() }).code(&x, None).unwrap();
    assert!((2.0 * coded.objective.data_term / x.data().len() as f64).sqrt() <= 0.15 * (1.0 + 1e-6));
    let coded = config(ActiveSetConfig::default()).code(&x, None).unwrap();
    let (matrix, target) = explicit(&d, &x, Boundary::Circular);
    let r = matrix.residual(&target, &coded.code.to_dense().unwrap());
    let norms: Vec<f64> = matrix.columns.iter().map(|c| dot(c, c).sqrt()).collect();
    assert!(matrix.transposed(&r).iter().zip(norms).all(|(c, n)| c.abs() / n <= 0.5 * (1.0 + 1e-3)));
    let coded = config(ActiveSetConfig { nonnegative: true, ..ActiveSetConfig::default() }).code(&x, None).unwrap();
    assert!(coded.code.nonzeros() > 0 && coded.code.atoms().iter().all(|a| a.value > 0.0));
}

/// What the coder reports in f32 is true in f64.
#[test]
fn gaps_in_single_precision_are_true() {
    for seed in 0..6 {
        let (d, x) = picture(20 + seed);
        let single = Dictionary::<f32>::new(6, d.shape(), 2, d.data().iter().map(|v| *v as f32).collect()).unwrap();
        let d = Dictionary::<f64>::new(6, d.shape(), 2, single.data().iter().map(|v| f64::from(*v)).collect()).unwrap();
        let x: Sample<f32> = x.cast().unwrap();
        let weights: Vec<f32> = normal::<f32>(x.data().len(), seed).iter().map(|v| v.abs().min(1.0)).collect();
        for (sample, config) in [
            (x.clone(), ActiveSetConfig { penalty: Penalty::Elastic(0.2), ..ActiveSetConfig::default() }),
            (x.clone(), ActiveSetConfig { loss: Loss::Huber(0.2), ..ActiveSetConfig::default() }),
            (x.clone().with_weights(weights).unwrap(), ActiveSetConfig::default()),
            (x.clone(), ActiveSetConfig { weights: Weights::Inverse(0.1), ..ActiveSetConfig::default() }),
        ] {
            let beta = 0.1 * coder(&single, 1.0, 1.0, Boundary::Circular, &config).beta_max(&sample).unwrap();
            let coded = coder(&single, beta, 1e-3, Boundary::Circular, &config).code(&sample, None).unwrap();
            assert_eq!(coded.status, Status::Converged);
            let wide: Sample<f64> = sample.cast().unwrap();
            let exact = coder(&d, beta, 1e-9, Boundary::Circular, &config).code(&wide, None).unwrap();
            let least = exact.total() - exact.gap;
            assert!(coded.total() - exact.total() <= coded.gap + 1e-6 * least, "{config:?}");
            assert!(coded.total() >= least * (1.0 - 1e-5), "{config:?}");
        }
    }
}

#[test]
fn learning_works_with_every_penalty_loss_and_weight() {
    let (samples, _) = planted::<f64>(5, 24, 8, 0.05, 3);
    let config = |active_set: ActiveSetConfig| Config {
        n_filters: 5,
        filter_shape: vec![5, 5],
        beta: 0.15,
        active_set,
        ..Config::default()
    };
    for active_set in [
        ActiveSetConfig { penalty: Penalty::Elastic(0.1), ..ActiveSetConfig::default() },
        ActiveSetConfig { penalty: Penalty::LogSum(0.3), ..ActiveSetConfig::default() },
        ActiveSetConfig { penalty: Penalty::Mcp(3.0), ..ActiveSetConfig::default() },
        ActiveSetConfig { penalty: Penalty::Lq(0.5), ..ActiveSetConfig::default() },
        ActiveSetConfig { loss: Loss::Huber(0.3), ..ActiveSetConfig::default() },
        ActiveSetConfig { loss: Loss::L1, ..ActiveSetConfig::default() },
        ActiveSetConfig { nonzeros: Some(12), ..ActiveSetConfig::default() },
    ] {
        let mut config = config(active_set);
        let (mut passes, mut less) = (15, 0.9);
        if config.active_set.loss == Loss::L1 {
            // Most of what is left is the modulus of the noise.
            (config.beta, config.tol, passes, less) = (1.0, 0.05, 5, 0.95);
        }
        let mut learner = Online::<f64>::new(config.clone(), 1).unwrap();
        let explained = |learner: &Online<f64>| {
            let mut coder = ocsc::learner::coder(&config, learner.dictionary(), config.tol).unwrap();
            // A budget has another beta for every dictionary: what it leaves unexplained can be compared.
            let worth = |coded: Coded<f64>| match config.active_set.budget() {
                Some(_) => coded.objective.data_term,
                None => coded.total(),
            };
            samples.iter().map(|x| worth(coder.code(x, None).unwrap())).sum::<f64>()
        };
        let before = explained(&learner);
        for _ in 0..passes {
            learner.partial_fit_batch(&samples).unwrap();
        }
        let after = explained(&learner);
        assert!(after < less * before, "{:?}: {before} to {after}", config.active_set);
    }
}

/// The statistics of a sample with weights describe a function that lies above the weighted data term and touches it.
#[test]
fn statistics_of_weighted_values_majorise_their_data_term() {
    let d = filters::<f64>(3, [1, 3, 3], 1);
    let x = weighted(Shape::image(8, 9), 4);
    for boundary in BOUNDARIES {
        let coded = coder(&d, 0.4, 1e-6, boundary, &ActiveSetConfig::default()).code(&x, None).unwrap();
        let mut lags = ocsc::statistics::Lags::new(3, d.shape());
        lags.absorb(&x, &coded.code, &d, boundary).unwrap();
        let counts = row_weights(&d, &x, boundary);
        let data_term = |d: &Dictionary<f64>| {
            let (matrix, target) = explicit(d, &x, boundary);
            let r = matrix.residual(&target, &coded.code.to_dense().unwrap());
            0.5 * r.iter().zip(&counts).map(|(r, w)| w * r * r).sum::<f64>()
        };
        let fill = |d: &Dictionary<f64>| lags.objective(d);
        // What is filled in adds a constant, that of the values that count less.
        let offset = fill(&d) - data_term(&d);
        for seed in 2..8 {
            let other = filters::<f64>(3, [1, 3, 3], seed);
            assert!(fill(&other) - data_term(&other) >= offset - 1e-9, "{boundary:?}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let d = filters::<f64>(2, [1, 3, 3], 0);
    let x = noise::<f64>([1, 6, 6], 0);
    let says = |error: ocsc::Error, words: &str| assert!(error.to_string().contains(words), "{error}");
    says(x.clone().with_weights(vec![1.5; 36]).unwrap_err(), "data weights: expected numbers from 0 to 1, found 1.5");
    says(x.clone().with_weights(vec![0.5; 35]).unwrap_err(), "36");
    says(x.clone().with_weights(vec![f64::NAN; 36]).unwrap_err(), "from 0 to 1");
    let own: std::sync::Arc<[f64]> = vec![1.0; 36].into();
    let wrong = x.clone().with_coefficient_weights(own).unwrap();
    let config = ActiveSetConfig::default();
    says(coder(&d, 1.0, 0.1, Boundary::Circular, &config).code(&wrong, None).unwrap_err(), "2 x 6 x 6 numbers");
    let zeros: std::sync::Arc<[f64]> = vec![0.0; 72].into();
    says(x.clone().with_coefficient_weights(zeros).unwrap_err(), "above 0");
    let two = ActiveSetConfig { error: Some(0.1), nonzeros: Some(3), ..ActiveSetConfig::default() };
    let config = Config { n_filters: 2, filter_shape: vec![3, 3], active_set: two, ..Config::default() };
    says(config.validate().unwrap_err(), "expected one budget");
}

/// Updates that know neither weights nor losses must not be given them in silence.
#[test]
fn other_methods_refuse_weights_and_losses() {
    let x = weighted(Shape::image(8, 9), 4);
    for method in [ocsc::Method::Sgd, ocsc::Method::Aocdl, ocsc::Method::Scsc, ocsc::Method::Ffcsc] {
        let config = Config { method, n_filters: 4, filter_shape: vec![3, 3], ..Config::default() };
        let loss = ActiveSetConfig { loss: Loss::Huber(0.5), ..ActiveSetConfig::default() };
        let error = Config { active_set: loss, ..config.clone() }.validate().unwrap_err().to_string();
        assert!(error.contains("loss: expected"), "{error}");
        let mut learner = ocsc::learner::learner(config, filters::<f64>(4, [1, 3, 3], 0)).unwrap();
        let refused = learner.learn(&[0], std::slice::from_ref(&x), &ocsc::monitor::Silent).unwrap_err().to_string();
        assert!(refused.contains("data weights: expected the method `ocsc`"), "{method}: {refused}");
    }
}

/// An infinite weight keeps a coefficient at zero, so codes can be asked for on a lattice of positions.
#[test]
fn coefficients_of_infinite_weight_stay_zero() {
    let (d, x) = picture(30);
    let is_on = |i: usize| (i / 32).is_multiple_of(3) && i.is_multiple_of(4);
    let weights: Vec<f64> = (0..6 * 32 * 32).map(|i| if is_on(i % 1024) { 1.0 } else { f64::INFINITY }).collect();
    let x = x.with_coefficient_weights(weights.into()).unwrap();
    let coded = coder(&d, 0.1, 1e-6, Boundary::Circular, &ActiveSetConfig::default()).code(&x, None).unwrap();
    assert_eq!(coded.status, Status::Converged);
    assert!(coded.code.nonzeros() > 10 && coded.code.atoms().iter().all(|a| is_on(a.position as usize)));
    let start: Code<f64> = sparse_code(6, [1, 32, 32], 0.05, 1);
    let again = coder(&d, 0.1, 1e-6, Boundary::Circular, &ActiveSetConfig::default()).code(&x, Some(&start)).unwrap();
    assert!(relative(again.total(), coded.total()) < 1e-5);
}
