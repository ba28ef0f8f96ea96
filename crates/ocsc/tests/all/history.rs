//! Methods without the whole history: gradient steps, histories of single filters, and base filters.

use crate::common::*;
use ocsc::checkpoint::{from_bytes, to_bytes};
use ocsc::coder::{ActiveSet, Coder, SampleFilters};
use ocsc::learner::{initial, learner};
use ocsc::monitor::Silent;
use ocsc::settings::{ActiveSetConfig, BlockDescentConfig, Boundary, UpdateConfig};
use ocsc::train::{Progress, TrainOptions, evaluate, refuse, train};
use ocsc::update::{Aocdl, BlockDescent, Scsc, Sgd, Update};
use ocsc::{Code, Config, Dictionary, Learner, Method, Real, Sample, Shape};
use std::path::Path;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

/// A sample with some values hidden, and a code for it.
fn pair(boundary: Boundary, filter: Shape, k: usize, masked: bool, seed: u64) -> (Sample<f64>, Code<f64>) {
    let shape = colour(filter.channels, [2, 6, 7]);
    let margin = filter.spatial().map(|n| if boundary == Boundary::Circular { 0 } else { n - 1 });
    let positions = std::array::from_fn(|i| shape.spatial()[i] + margin[i]);
    let x = noise::<f64>(shape, seed);
    let seen = (0..shape.len()).map(|i| !masked || (i * 7) % 5 != 2).collect();
    (Sample::masked(shape, x.data().to_vec(), seen).unwrap(), sparse_code(k, positions, 0.1, seed + 1))
}

/// 1/2 ||x - D z||^2 over what counts, by the reconstruction.
fn data_term(x: &Sample<f64>, z: &Code<f64>, d: &Dictionary<f64>, boundary: Boundary) -> f64 {
    let estimate = z.reconstruct(d, boundary).unwrap();
    let seen = |i: usize| x.mask().is_none_or(|mask| mask[i]);
    let inside = (0..x.data().len()).filter(|i| seen(*i)).map(|i| (x.data()[i] - estimate.data()[i]).powi(2));
    let inside = 0.5 * inside.sum::<f64>();
    if boundary != Boundary::Zero {
        return inside;
    }
    // The outside is data equal to zero: what a larger sample of zeros around this one would see.
    let f = d.shape().spatial();
    let s = x.shape();
    let larger = colour(s.channels, std::array::from_fn(|i| s.spatial()[i] + 2 * (f[i] - 1)));
    let positions: [usize; 3] = std::array::from_fn(|i| larger.spatial()[i] + f[i] - 1);
    let atoms = z.atoms().iter().map(|a| {
        let [_, h, w] = z.shape();
        let at = [a.position as usize / (h * w), a.position as usize / w % h, a.position as usize % w];
        let at: [usize; 3] = std::array::from_fn(|i| at[i] + f[i] - 1);
        ocsc::Atom { position: ((at[0] * positions[1] + at[1]) * positions[2] + at[2]) as u32, ..*a }
    });
    let moved = Code::new(z.n_filters(), positions, atoms.collect()).unwrap();
    let all: f64 = moved.reconstruct(d, boundary).unwrap().data().iter().map(|v| v * v).sum();
    let within: f64 = estimate.data().iter().map(|v| v * v).sum();
    inside + 0.5 * (all - within)
}

/// A step of sgd is D - eta times the gradient by finite differences, projected, for every boundary, masks and channels.
#[test]
fn a_gradient_step_is_the_textbooks() {
    for (boundary, masked) in BOUNDARIES.into_iter().flat_map(|b| [(b, false), (b, true)]) {
        let d = filters::<f64>(3, colour(2, [2, 3, 2]), 5);
        let pairs: Vec<_> = (0..2).map(|i| pair(boundary, d.shape(), 3, masked, 20 + i)).collect();
        let value = |d: &Dictionary<f64>| pairs.iter().map(|(x, z)| data_term(x, z, d, boundary)).sum::<f64>() / 2.0;
        let shrunk: Vec<f64> = d.data().iter().map(|v| 0.9 * v).collect();
        let make = |data: Vec<f64>| Dictionary::new(3, d.shape(), 3, data).unwrap();
        // The objective is quadratic, so central differences are exact; at 0.9 D they stay within the balls.
        let gradient = |data: &[f64], i: usize| {
            let moved = |h: f64| {
                let mut data = data.to_vec();
                data[i] += h;
                value(&make(data))
            };
            (moved(0.01) - moved(-0.01)) / 0.02
        };
        let mut inside = make(shrunk.clone());
        let mut update = Sgd::new(UpdateConfig { step: Some(0.06), delay: 2.0, ..UpdateConfig::default() }, boundary);
        pairs.iter().for_each(|(x, z)| update.absorb(x, z, &inside).unwrap());
        assert_eq!(update.next_step(), Some(0.02));
        update.update(&mut inside);
        let mut expected: Vec<f64> = (0..shrunk.len()).map(|i| shrunk[i] - 0.02 * gradient(&shrunk, i)).collect();
        for filter in expected.chunks_mut(d.shape().len()) {
            let norm = dot(filter, filter).sqrt().max(1.0);
            filter.iter_mut().for_each(|v| *v /= norm);
        }
        assert!(distance(inside.data(), &expected) < 1e-9, "{boundary:?} {masked}");
        assert_eq!(update.next_step(), Some(0.06 / 4.0));
    }
}

/// Scaling samples and beta scales nothing else: the default step has the unit of the codes.
#[test]
fn the_default_step_follows_the_scale_of_the_data() {
    let d = filters::<f64>(3, [1, 3, 3], 5);
    let (x, z) = pair(Boundary::Circular, d.shape(), 3, false, 7);
    let scaled = |s: f64| {
        let atoms = z.atoms().iter().map(|a| ocsc::Atom { value: s * a.value, ..*a }).collect();
        let (x, z) = (x.map(|v| s * v), Code::new(3, z.shape(), atoms).unwrap());
        let (mut update, mut moved) = (Sgd::new(UpdateConfig::default(), Boundary::Circular), d.clone());
        update.absorb(&x, &z, &d).unwrap();
        update.update(&mut moved);
        moved
    };
    assert_ne!(scaled(1.0), d);
    assert!(distance(scaled(100.0).data(), scaled(1.0).data()) < 1e-10);
}

/// From sample to sample the filters fit all of them better, and the first one as soon as it came.
#[test]
fn a_history_of_single_filters_descends_for_every_boundary_and_mask() {
    for (boundary, masked) in BOUNDARIES.into_iter().flat_map(|b| [(b, false), (b, true)]) {
        let config = BlockDescentConfig { sweeps: 5, forgetting: 1.0.into(), ..BlockDescentConfig::default() };
        let (mut update, mut d) = (Aocdl::new(config, boundary), filters::<f64>(3, colour(2, [2, 3, 2]), 5));
        let pairs: Vec<_> = (0..4).map(|i| pair(boundary, d.shape(), 3, masked, 40 + i)).collect();
        let value = |d: &Dictionary<f64>| pairs.iter().map(|(x, z)| data_term(x, z, d, boundary)).sum::<f64>();
        let before = value(&d);
        for (x, z) in &pairs {
            update.absorb(x, z, &d).unwrap();
            let old = data_term(x, z, &d, boundary);
            update.update(&mut d);
            assert!(d.norms().iter().all(|norm| *norm <= 1.0));
            // The history pulls towards the earlier samples.
            assert!(data_term(x, z, &d, boundary) < old || !std::ptr::eq(x, &pairs[0].0));
        }
        assert!(value(&d) < before, "{boundary:?} {masked}: {} {before}", value(&d));
    }
}

fn active_set(d: &Dictionary<f64>, beta: f64, boundary: Boundary) -> Box<dyn Coder<f64>> {
    Box::new(ActiveSet::new(d, beta, 1e-3, boundary, ActiveSetConfig::default()).unwrap())
}

/// The rank of filters as a matrix, by elimination.
fn rank(d: &Dictionary<f64>) -> usize {
    let mut rows: Vec<Vec<f64>> = (0..d.n_filters()).map(|k| d.filter(k).to_vec()).collect();
    let mut rank = 0;
    loop {
        let norm = |row: &Vec<f64>| dot(row, row).sqrt();
        let Some(at) = (0..rows.len()).max_by(|a, b| norm(&rows[*a]).total_cmp(&norm(&rows[*b]))) else { return rank };
        if norm(&rows[at]) < 1e-6 {
            return rank;
        }
        let pivot = rows.remove(at);
        for row in &mut rows {
            let along = dot(row, &pivot) / dot(&pivot, &pivot);
            row.iter_mut().zip(&pivot).for_each(|(r, p)| *r -= along * p);
        }
        rank += 1;
    }
}

/// Filters of the sample's own lie in the span, are feasible, represent it better, and the certificate is that of their code.
#[test]
fn filters_of_the_samples_own_are_better_ones_in_the_span() {
    for boundary in BOUNDARIES {
        let truth = filters::<f64>(4, [1, 4, 4], 9);
        let sample = &made_of::<f64>(&truth, [1, 15, 14], 1, 40)[0];
        let d = filters::<f64>(7, [1, 4, 4], 3);
        let mut coder = SampleFilters::new(active_set(&d, 0.05, boundary), &d, 3, 1e-3, boundary);
        let coded = coder.code(sample, None).unwrap();
        let own = coded.filters_or(&d).clone();
        assert_eq!(rank(&own), 3);
        assert!(own.norms().iter().all(|norm| *norm <= 1.0));
        let again = active_set(&own, 0.05, boundary).code(sample, None).unwrap();
        assert!(coded.total() <= again.total() * (1.0 + 2e-3) && coded.relative_gap() <= 1e-3);
        let estimate = coded.code.reconstruct(&own, boundary).unwrap();
        if boundary != Boundary::Zero {
            let error: f64 = sample.data().iter().zip(estimate.data()).map(|(x, e)| 0.5 * (x - e).powi(2)).sum();
            assert!(relative(error, coded.objective.data_term) < 1e-9);
        }
        // All filters may be used if there are as many base filters.
        let mut free = SampleFilters::new(active_set(&d, 0.05, boundary), &d, 7, 1e-3, boundary);
        let plain = active_set(&d, 0.05, boundary).code(sample, None).unwrap();
        assert!(free.code(sample, None).unwrap().total() < 0.9 * plain.total());
    }
}

/// What base filters see of a sample is all that its filters make: the maps y reconstruct it.
#[test]
fn statistics_of_base_filters_are_those_of_the_sample() {
    let boundary = Boundary::Circular;
    let samples = made_of::<f64>(&filters(4, [1, 4, 4], 9), [1, 15, 14], 3, 40);
    let d = filters::<f64>(6, [1, 4, 4], 3);
    let config = BlockDescentConfig { base_filters: 3, sweeps: 500, tol: 1e-9, ..BlockDescentConfig::default() };
    let mut coder = SampleFilters::new(active_set(&d, 0.05, boundary), &d, 3, 1e-3, boundary);
    let (mut update, mut model) = (Scsc::new(config, boundary, 0), d.clone());
    let mut error = 0.0;
    for sample in &samples {
        let coded = coder.code(sample, None).unwrap();
        error += coded.objective.data_term;
        update.absorb(sample, &coded.code, coded.filters_or(&d)).unwrap();
    }
    let before = update.base().unwrap().clone();
    assert!(relative(update.statistics().unwrap().objective(&before), error) < 1e-6);
    update.update(&mut model);
    let base = update.base().unwrap();
    assert!(update.statistics().unwrap().objective(base) < error);
    assert_eq!(rank(&model), 3);
    assert!(model.norms().iter().all(|norm| (*norm - 1.0).abs() < 1e-12));
}

/// With one set of weights for all samples: the rank holds, the objective falls to that of the best filters of this rank nearby, and
/// with as many base filters as filters it is that of free filters.
#[test]
fn shared_base_filters_keep_the_rank_and_minimise() {
    let (k, axes) = (6, [1, 7, 8]);
    let pairs: Vec<_> =
        (0..3).map(|i| (noise::<f64>(axes, 10 + i), sparse_code::<f64>(k, axes, 0.2, 20 + i))).collect();
    let run = |base_filters: usize| {
        let config = BlockDescentConfig {
            base_filters,
            sweeps: 3000,
            tol: 1e-9,
            reseed: false,
            ..BlockDescentConfig::default()
        };
        let mut d = learner(
            Config { n_filters: k, block_descent: config.clone(), ..Config::default() },
            filters(k, [1, 3, 3], 5),
        )
        .unwrap()
        .dictionary()
        .clone();
        let mut update = BlockDescent::new(config, Boundary::Circular, 0);
        pairs.iter().for_each(|(x, z)| update.absorb(x, z, &d).unwrap());
        let before = update.statistics().unwrap().objective(&d);
        update.update(&mut d);
        assert!(d.norms().iter().all(|norm| *norm <= 1.0));
        (before, update.statistics().unwrap().objective(&d), rank(&d))
    };
    let (_, free, _) = run(0);
    let mut last = f64::INFINITY;
    for base_filters in [1, 2, 4, 6] {
        let (before, after, rank) = run(base_filters);
        assert_eq!(rank, base_filters);
        assert!(
            after < before && after < last * (1.0 + 1e-6) && after > free * (1.0 - 1e-6),
            "{base_filters}: {after} {last}"
        );
        last = after;
    }
    assert!(relative(last, free) < 1e-3, "{last} {free}");
}

fn learned<T: Real>(config: &Config, samples: &[Sample<T>]) -> Box<dyn Learner<T>> {
    let mut learner = learner(config.clone(), initial(config, 1).unwrap()).unwrap();
    train(learner.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
    learner
}

fn base_filters_resume<T: Real>() {
    let samples: Vec<Sample<T>> = made_of(&filters::<f64>(4, [1, 4, 4], 9), [1, 15, 14], 6, 40);
    for method in [Method::Ocsc, Method::Scsc] {
        let block_descent = BlockDescentConfig { base_filters: 3, ..BlockDescentConfig::default() };
        let config = Config { method, block_descent, passes: 2, ..small_config(8, &[4, 4], 0.05) };
        let whole = learned(&config, &samples);
        assert_eq!(with_threads(1, || learned(&config, &samples).dictionary().clone()), *whole.dictionary());
        let half = learned(&Config { passes: 1, ..config.clone() }, &samples);
        let progress = Progress { pass: 1, step: 6, samples: 6, ..Progress::default() };
        let bytes = to_bytes(half.as_ref(), Some(&progress)).unwrap();
        let (mut rest, _) = from_bytes::<T>(&bytes, Path::new("half")).unwrap().resume().unwrap();
        assert_eq!(rest.dictionary(), half.dictionary(), "{method}");
        assert_eq!(rest.state(), half.state(), "{method}");
        rest.learn(&[0], &samples[..1], &Silent).unwrap();
        let mut more = half;
        more.learn(&[0], &samples[..1], &Silent).unwrap();
        assert_eq!(rest.dictionary(), more.dictionary(), "{method}");
        let start = learner(config.clone(), initial::<T>(&config, 1).unwrap()).unwrap();
        let before = evaluate(&config, start.dictionary(), &samples, 1e-3, &mut refuse).unwrap();
        let after = evaluate(&config, whole.dictionary(), &samples, 1e-3, &mut refuse).unwrap();
        assert!(after.objective < before.objective, "{method}: {} {}", before.objective, after.objective);
    }
}

#[test]
fn runs_with_base_filters_resume_bit_for_bit() {
    base_filters_resume::<f32>();
    base_filters_resume::<f64>();
}

#[test]
fn more_base_filters_than_filters_are_refused() {
    let block_descent = BlockDescentConfig { base_filters: 9, ..BlockDescentConfig::default() };
    let config = Config { method: Method::Ocsc, block_descent, ..small_config(8, &[4, 4], 0.05) };
    let refusal = config.validate().unwrap_err().to_string();
    assert_eq!(refusal, "base_filters: expected at most the 8 filters that they make, found 9");
    let refusal = Config { method: Method::Fcsc, ..config }.validate().unwrap_err().to_string();
    assert!(refusal.contains("base_filters"), "{refusal}");
}
