//! What filters may be: projections against slow twins, block descent against slow projected gradient, and feasible
//! dictionaries from the first to the last of a run.

use crate::block_descent::minimum_over;
use crate::common::lags::positions;
use crate::common::*;
use ocsc::checkpoint::{load, save};
use ocsc::constraint::Constraint;
use ocsc::learner::{Step, learner};
use ocsc::run::{Init, Run};
use ocsc::settings::{BlockDescentConfig, Boundary, FilterConfig, Forgetting, Scale, Scales};
use ocsc::train::{Observer, Progress, Snapshot, TrainOptions, train};
use ocsc::update::{BlockDescent, Update};
use ocsc::{Config, Dictionary, Online, Real, Result, Sample, Shape};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Three scales, from one tap up to the whole array.
fn scales(shape: Shape) -> Scales {
    let half = shape.axes(3).iter().map(|n| n / 2 + 1).collect();
    Scales(vec![Scale::Every(1), Scale::Each(half), Scale::Each(shape.axes(3))])
}

/// All constraints that are convex, for filters of this shape.
fn convex(shape: Shape) -> Vec<FilterConfig> {
    let plain = FilterConfig::default();
    let small = Scales(scales(shape).0.split_off(1));
    vec![
        plain.clone(),
        FilterConfig { nonnegative: true, ..plain.clone() },
        FilterConfig { zero_mean: true, ..plain.clone() },
        FilterConfig { scales: scales(shape), ..plain.clone() },
        FilterConfig { scales: scales(shape), nonnegative: true, ..plain.clone() },
        FilterConfig { scales: small, zero_mean: true, ..plain },
    ]
}

/// The constraints with factors, for filters of this shape.
fn factored(shape: Shape) -> Vec<FilterConfig> {
    convex(shape).into_iter().map(|config| FilterConfig { rank1: true, ..config }).collect()
}

/// Whether each number of filter k of `n` may differ from zero, from the definition.
fn support(config: &FilterConfig, k: usize, n: usize, shape: Shape) -> Vec<bool> {
    let Some(scale) = config.scales.0.get(k * config.scales.0.len() / n) else { return vec![true; shape.len()] };
    let axes = shape.spatial();
    let length = |a: usize| match scale {
        Scale::Every(length) => *length,
        Scale::Each(lengths) => lengths[a],
        _ => unreachable!("there is no third kind"),
    };
    let inside = |i: usize| {
        let place = [i / (axes[1] * axes[2]) % axes[0], i / axes[2] % axes[1], i % axes[2]];
        (0..3).all(|a| {
            // Every axis that the user sees; the others have one place.
            let length = length(a).min(axes[a]);
            let before = (axes[a] - length) / 2;
            place[a] >= before && place[a] < before + length
        })
    };
    (0..shape.len()).map(inside).collect()
}

/// A projection on one set.
type Projection<'a> = &'a dyn Fn(&mut Vec<f64>);

/// The projection on the intersection of box, signs, mean and ball by Dykstra's algorithm, which knows each of them alone.
fn dykstra(config: &FilterConfig, support: &[bool], point: &[f64]) -> Vec<f64> {
    let on_box = |v: &mut Vec<f64>| v.iter_mut().zip(support).filter(|(_, s)| !**s).for_each(|(v, _)| *v = 0.0);
    let on_signs = |v: &mut Vec<f64>| v.iter_mut().for_each(|v| *v = v.max(0.0));
    let on_mean = |v: &mut Vec<f64>| {
        let inside: Vec<f64> = v.iter().zip(support).filter(|(_, s)| **s).map(|(v, _)| *v).collect();
        let mean = inside.iter().sum::<f64>() / inside.len() as f64;
        v.iter_mut().zip(support).filter(|(_, s)| **s).for_each(|(v, _)| *v -= mean);
    };
    let on_ball = |v: &mut Vec<f64>| {
        let norm = dot(v, v).sqrt().max(1.0);
        v.iter_mut().for_each(|v| *v /= norm);
    };
    let mut sets: Vec<Projection<'_>> = vec![&on_box];
    if config.nonnegative {
        sets.push(&on_signs);
    }
    if config.zero_mean {
        sets.push(&on_mean);
    }
    sets.push(&on_ball);
    let mut v = point.to_vec();
    let mut corrections = vec![vec![0.0; v.len()]; sets.len()];
    for _ in 0..5000 {
        for (set, correction) in sets.iter().zip(&mut corrections) {
            let before: Vec<f64> = v.iter().zip(&*correction).map(|(v, c)| v + c).collect();
            v.clone_from(&before);
            set(&mut v);
            *correction = before.iter().zip(&v).map(|(b, v)| b - v).collect();
        }
    }
    v
}

const SHAPES: [[usize; 4]; 4] = [[1, 1, 1, 9], [1, 1, 5, 4], [2, 1, 3, 5], [3, 2, 3, 4]];

fn shaped([channels, depth, height, width]: [usize; 4]) -> Shape {
    Shape { channels, depth, height, width }
}

#[test]
fn projections_are_the_nearest_feasible_points() {
    for shape in SHAPES.map(shaped) {
        for config in convex(shape) {
            let constraint = Constraint::new(&config, 6, shape, 3).unwrap();
            for (k, strength) in (0..6).flat_map(|k| [0.1, 1.0, 10.0].map(|s| (k, s))) {
                let point: Vec<f64> = normal(shape.len(), 7 + k as u64).iter().map(|v: &f64| strength * v).collect();
                let expected = dykstra(&config, &support(&config, k, 6, shape), &point);
                let mut found = point.clone();
                constraint.project(k, &mut found);
                let error: f64 = found.iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum();
                assert!(error.sqrt() < 1e-6, "{config:?} {shape} {k} {strength}: {error}");
                assert!(constraint.allows(k, &found));
            }
        }
    }
}

/// The first singular pair against faer's decomposition, of rows that were projected before.
#[test]
fn projections_of_rank_one_are_the_first_singular_pair() {
    for shape in SHAPES.map(shaped).into_iter().filter(|shape| shape.channels > 1) {
        for config in factored(shape).into_iter().filter(|config| !config.nonnegative) {
            let constraint = Constraint::new(&config, 6, shape, 3).unwrap();
            for (k, strength) in (0..6).flat_map(|k| [0.1, 10.0].map(|s| (k, s))) {
                let mut found: Vec<f64> =
                    normal(shape.len(), 70 + k as u64).iter().map(|v: &f64| strength * v).collect();
                let inside = support(&config, k, 6, shape);
                let mut rows = found.clone();
                for (row, inside) in rows.chunks_mut(shape.pixels()).zip(inside.chunks(shape.pixels())) {
                    row.iter_mut().zip(inside).filter(|(_, s)| !**s).for_each(|(v, _)| *v = 0.0);
                    let mean = row.iter().sum::<f64>() / inside.iter().filter(|s| **s).count() as f64;
                    let mean = if config.zero_mean { mean } else { 0.0 };
                    row.iter_mut().zip(inside).filter(|(_, s)| **s).for_each(|(v, _)| *v -= mean);
                }
                let matrix = faer::Mat::from_fn(shape.channels, shape.pixels(), |c, i| rows[c * shape.pixels() + i]);
                let svd = matrix.svd().unwrap();
                let value = svd.S()[0].min(1.0);
                let expected = (0..shape.len()).map(|i| {
                    let (c, i) = (i / shape.pixels(), i % shape.pixels());
                    svd.U()[(c, 0)] * value * svd.V()[(i, 0)]
                });
                constraint.project(k, &mut found);
                assert!(distance(&found, &expected.collect::<Vec<_>>()) < 1e-6, "{config:?} {shape} {k}");
            }
        }
    }
}

/// Samples with frozen codes, and a feasible dictionary to start from.
fn frozen(config: &FilterConfig, filter: Shape, strength: f64) -> (Dictionary<f64>, BlockDescent<f64>) {
    let sample = Shape { channels: filter.channels, depth: filter.depth + 1, height: filter.height + 5, width: 9 };
    let sweeps =
        BlockDescentConfig { forgetting: 1.0.into(), tol: 0.0, reseed: false, sweeps: 3000, ..Default::default() };
    let whole = Config { filters: config.clone(), n_filters: 3, filter_shape: filter.axes(3), ..Config::default() };
    let d = Online::<f64>::new(whole, filter.channels).unwrap().dictionary().clone();
    let mut update = BlockDescent::new(sweeps, Boundary::Circular, 0).constrained(config.clone());
    for i in 0..3 {
        let x = noise::<f64>(sample, i).map(|v| strength * v);
        let z = sparse_code(3, positions(sample, filter, Boundary::Circular), 0.1, i + 50);
        update.absorb(&x, &z, &d).unwrap();
    }
    (d, update)
}

#[test]
fn block_descent_reaches_the_minimum_over_every_convex_set() {
    for shape in [[1, 1, 1, 5], [2, 1, 2, 3], [1, 2, 2, 2]].map(shaped) {
        for config in convex(shape) {
            for strength in [0.05, 1.0, 20.0] {
                let (mut d, mut update) = frozen(&config, shape, strength);
                let constraint = Constraint::new(&config, 3, shape, 3).unwrap();
                let expected = minimum_over(&update, &d, |k, filter| constraint.project(k, filter));
                let updated = update.update(&mut d);
                let found = update.statistics().unwrap().objective(&d);
                assert!(relative(found, expected) < 1e-6, "{config:?} {strength}: {found} {expected}");
                assert!(updated.stationarity.unwrap() < 1e-6);
                assert!((0..3).all(|k| constraint.allows(k, d.filter(k))));
            }
        }
    }
}

/// The second singular value relative to the first.
fn second<T: Real>(filter: &[T], shape: Shape) -> f64 {
    let matrix = faer::Mat::from_fn(shape.channels, shape.pixels(), |c, i| filter[c * shape.pixels() + i].f64());
    let svd = matrix.svd().unwrap();
    svd.S()[1] / svd.S()[0].max(f64::MIN_POSITIVE)
}

/// Against projected gradient on all filters from many starts: not above the best of them. Every update descends, and leaves
/// filters of rank one.
#[test]
fn block_descent_of_rank_one_ends_where_the_best_of_many_slow_descents_does() {
    let shape = shaped([3, 1, 2, 3]);
    for config in factored(shape) {
        let (start, mut update) = frozen(&config, shape, 5.0);
        let constraint = Constraint::new(&config, 3, shape, 3).unwrap();
        let project = |k: usize, filter: &mut [f64]| constraint.project(k, filter);
        let best = (0..3)
            .map(|seed| {
                let whole = Config { filters: config.clone(), seed, ..small_config(3, &shape.axes(3), 1.0) };
                let whole = Config { method: ocsc::Method::Ocsc, ..whole };
                minimum_over(&update, Online::<f64>::new(whole, 3).unwrap().dictionary(), project)
            })
            .fold(f64::INFINITY, f64::min);
        let mut ends = Vec::new();
        for seed in 0..8 {
            let whole = Config { filters: config.clone(), seed, ..small_config(3, &shape.axes(3), 1.0) };
            let whole = Config { method: ocsc::Method::Ocsc, ..whole };
            let mut d = Online::<f64>::new(whole, 3).unwrap().dictionary().clone();
            let before = update.statistics().unwrap().objective(&d);
            update.update(&mut d);
            let found = update.statistics().unwrap().objective(&d);
            assert!(found < before, "{config:?} {seed}");
            assert!((0..3).all(|k| second(d.filter(k), shape) < 1e-12 && constraint.allows(k, d.filter(k))));
            ends.push(found);
        }
        let found = ends.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(found <= best * (1.0 + 1e-6), "{config:?}: {ends:?}, {best} by slow descent");
        let mut d = start.clone();
        let mut once = frozen(&config, shape, 5.0).1;
        let mut last = once.statistics().unwrap().objective(&d);
        for _ in 0..3 {
            once.update(&mut d);
            let now = once.statistics().unwrap().objective(&d);
            assert!(now <= last * (1.0 + 1e-12), "{config:?}: {now} {last}");
            last = now;
        }
    }
}

/// Looks at every dictionary of a run, and saves a checkpoint at one step.
struct Watch {
    constraint: Constraint,
    save: (usize, PathBuf),
    reseeded: usize,
}

impl<T: Real> Observer<T> for Watch {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        let d = run.learner.dictionary();
        let (n, shape, config) = (d.n_filters(), d.shape(), &run.learner.config().filters);
        assert!(d.norms().iter().all(|norm| *norm <= 1.0));
        for k in config.fixed..n {
            let filter = d.filter(k);
            assert!(self.constraint.allows(k, filter), "{config:?} filter {k} at step {}", step.step);
            let inside = support(config, k - config.fixed, n - config.fixed, shape);
            assert!(filter.iter().zip(inside).all(|(v, inside)| inside || *v == T::zero()));
            assert!(!config.nonnegative || filter.iter().all(|v| *v >= T::zero()));
            let mean = filter.iter().map(|v| v.f64()).sum::<f64>() / shape.len() as f64;
            assert!(!config.zero_mean || mean.abs() < 1e-6, "{mean}");
            assert!(!config.rank1 || second(filter, shape) < 1e-5);
        }
        self.reseeded += step.update.reseeded;
        if self.save.0 == step.step {
            save(&self.save.1, run.learner, Some(run.progress))?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Samples of two channels, of which the second is the first turned around and weaker.
fn colourful(n: u64) -> Vec<Sample<f32>> {
    let (samples, _) = planted::<f32>(4, 14, n, 0.01, 17);
    let twice = |x: &Sample<f32>| {
        let more = x.data().iter().rev().map(|v| -0.6 * v);
        Sample::new(Shape { channels: 2, ..x.shape() }, x.data().iter().copied().chain(more).collect()).unwrap()
    };
    samples.iter().map(twice).collect()
}

/// Two filters of three are zero and are replaced by patches at update ten.
#[test]
fn every_dictionary_of_a_run_is_feasible_and_runs_resume_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let samples = colourful(24);
    let filter = Shape { channels: 2, ..Shape::image(5, 5) };
    let mut cases = convex(shaped([2, 1, 5, 5]));
    cases.extend(factored(shaped([2, 1, 5, 5])));
    for scale in cases.iter_mut().flat_map(|config| &mut config.scales.0) {
        // Images have two axes.
        if let Scale::Each(lengths) = scale {
            *scale = Scale::Every(lengths[2]);
        }
    }
    for (case, filters) in cases.into_iter().enumerate() {
        let path = folder.path().join(format!("{case}.safetensors"));
        let fixed = FilterConfig { fixed: case % 2, ..filters };
        let block_descent = BlockDescentConfig { recenter: case % 3 == 0, ..BlockDescentConfig::default() };
        let config = Config { beta: 0.3, seed: 3, filters: fixed.clone(), block_descent, ..Config::default() };
        let mut data = Dictionary::<f32>::random(3, filter, 2, 5).unwrap().data().to_vec();
        data.resize(6 * filter.len(), 0.0);
        let start = Dictionary::new(6, filter, 2, data).unwrap();
        for step in [9, 10, 15] {
            let constraint = Constraint::new(&fixed, 6, filter, 2).unwrap();
            let mut watch = Watch { constraint, save: (step, path.clone()), reseeded: 0 };
            let mut whole = learner(config.clone(), start.clone()).unwrap();
            train(whole.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut watch).unwrap();
            assert!(watch.reseeded >= 3, "{fixed:?}: {}", watch.reseeded);
            assert!((0..fixed.fixed).all(|k| whole.dictionary().filter(k) == start.filter(k)));
            let (mut resumed, progress) = load::<f32>(&path).unwrap().resume().unwrap();
            train(resumed.as_mut(), &samples, None, &TrainOptions::default(), progress, &mut watch).unwrap();
            assert_eq!(resumed.dictionary(), whole.dictionary(), "{fixed:?} from step {step}");
        }
    }
}

#[test]
fn fixed_filters_stay_to_the_bit_and_the_others_learn() {
    let (samples, truth) = planted::<f32>(4, 16, 30, 0.01, 17);
    let given = Dictionary::random(6, truth.shape(), 2, 1).unwrap();
    for fixed in [0, 2, 6] {
        let filters = FilterConfig { fixed, nonnegative: fixed == 2, ..FilterConfig::default() };
        let config = Config { beta: 0.2, filters, ..Config::default() };
        let mut run = Run::new(config).init(Init::Given(given.clone())).start(&samples).unwrap();
        run.train(&samples, None, &mut ocsc::monitor::Silent).unwrap();
        let d = run.learner().dictionary();
        for k in 0..6 {
            assert_eq!(d.filter(k) == given.filter(k), k < fixed, "filter {k} with {fixed} fixed");
        }
    }
}

/// Also what the initial filters are: of norm 1, feasible, and for the plain ball what they always were.
#[test]
fn starts_are_feasible_and_of_norm_one() {
    let samples = colourful(3);
    let flat: Vec<Sample<f32>> = vec![Sample::new(samples[0].shape(), vec![1.0; samples[0].data().len()]).unwrap()];
    let filters = |f: &dyn Fn(&mut FilterConfig)| {
        let mut filters = FilterConfig::default();
        f(&mut filters);
        filters
    };
    for filters in [
        filters(&|f| f.nonnegative = true),
        filters(&|f| f.zero_mean = true),
        filters(&|f| f.rank1 = true),
        filters(&|f| (f.rank1, f.zero_mean) = (true, true)),
        filters(&|f| f.scales = Scales(vec![Scale::Every(3), Scale::Each(vec![5, 2])])),
    ] {
        for init in [Init::Random, Init::Patches] {
            for samples in [&samples, &flat] {
                let config =
                    Config { n_filters: 4, filter_shape: vec![5, 5], filters: filters.clone(), ..Config::default() };
                let run = Run::new(config).init(init.clone()).start(samples).unwrap();
                let d = run.learner().dictionary();
                let constraint = Constraint::new(&filters, 4, d.shape(), 2).unwrap();
                assert!((0..4).all(|k| constraint.allows(k, d.filter(k))), "{filters:?}");
                assert!(d.norms().iter().all(|norm| (norm - 1.0).abs() < 1e-6), "{filters:?} {:?}", d.norms());
            }
        }
    }
    let config = Config { n_filters: 4, filter_shape: vec![5, 5], ..Config::default() };
    let run = Run::<f32>::new(config).start(&samples).unwrap();
    assert_eq!(
        run.learner().dictionary(),
        &Dictionary::random(4, Shape { channels: 2, ..Shape::image(5, 5) }, 2, 0).unwrap()
    );
}

#[test]
fn what_filters_cannot_be_is_refused_with_a_sentence() {
    let (samples, _) = planted::<f32>(2, 16, 2, 0.01, 17);
    let refusal = |filters: FilterConfig, given: bool| {
        let config = Config { n_filters: 4, filter_shape: vec![5, 5], filters, ..Config::default() };
        let d = Dictionary::random(4, Shape::image(5, 5), 2, 1).unwrap();
        let init = if given { Init::Given(d) } else { Init::Random };
        Run::new(config).init(init).start(&samples).err().expect("a refusal").to_string()
    };
    let plain = FilterConfig::default;
    let scaled = |scales: &[Scale]| FilterConfig { scales: Scales(scales.to_vec()), ..plain() };
    for (filters, given, expected) in [
        (
            FilterConfig { nonnegative: true, zero_mean: true, ..plain() },
            false,
            "zero_mean: expected filters that may have",
        ),
        (FilterConfig { rank1: true, ..plain() }, false, "rank1: expected samples with several channels"),
        (FilterConfig { fixed: 1, ..plain() }, false, "fixed_filters: expected 0, or a given initial dictionary"),
        (FilterConfig { fixed: 5, ..plain() }, true, "fixed_filters: expected at most the 4 filters, found 5"),
        (scaled(&[Scale::Every(0)]), false, "scales: expected lengths from 1 up to the filter's [5, 5]"),
        (scaled(&[Scale::Every(3), Scale::Every(6)]), false, "found 6"),
        (scaled(&[Scale::Each(vec![3, 3, 3])]), false, "found [3, 3, 3]"),
        (
            scaled(&vec![Scale::Every(3); 5]),
            false,
            "scales: expected at most 4, one for each filter that learns, found 5",
        ),
        (
            FilterConfig { zero_mean: true, ..scaled(&[Scale::Every(1)]) },
            false,
            "zero_mean: expected filters of at least two",
        ),
    ] {
        let message = refusal(filters, given);
        assert!(message.contains(expected), "{message}");
    }
    let paper = Config {
        method: ocsc::Method::OcscPaper,
        filters: FilterConfig { zero_mean: true, ..plain() },
        ..Config::default()
    };
    let message = paper.validate().unwrap_err().to_string();
    assert!(message.contains("zero_mean") && message.contains("does not obey it (ocsc"), "{message}");
}

/// The first half of a stream is made of some filters, the second half of others. By the end the dictionary that forgets at a
/// constant rate explains the second half best, and the one that forgets nothing worst.
#[test]
fn a_constant_forgetting_follows_a_stream_that_drifts() {
    let truths = [1, 2].map(|seed| filters::<f64>(3, [1, 4, 4], seed));
    let stream: Vec<Sample<f64>> =
        truths.iter().zip([100, 900]).flat_map(|(d, seed)| made_of::<f64>(d, [1, 16, 16], 120, seed)).collect();
    let follow = |forgetting: Forgetting| {
        let block_descent = BlockDescentConfig { forgetting, ..BlockDescentConfig::default() };
        let config = Config { beta: 0.05, block_descent, ..Config::default() };
        let mut learner = Online::with_dictionary(config, truths[0].clone()).unwrap();
        let objectives: Vec<f64> = stream.iter().map(|x| learner.partial_fit(x).unwrap().objective()).collect();
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        [mean(&objectives[..120]), mean(&objectives[140..180])]
    };
    let average = follow(Forgetting::Polynomial(1.0));
    let default = follow(Forgetting::Polynomial(3.0));
    let constant = follow(Forgetting::Constant(0.9));
    assert!(relative(constant[0], default[0]) < 0.05, "before the change: {constant:?} {default:?}");
    assert!(constant[1] < 0.9 * default[1] && default[1] < average[1], "{constant:?} {default:?} {average:?}");
}

/// An update that is n updates old weighs w^n.
#[test]
fn a_constant_weighs_as_it_is_defined() {
    let (filter, sample) = (Shape::image(3, 3), Shape::image(9, 9));
    let d = Dictionary::<f64>::random(3, filter, 2, 9).unwrap();
    let weight = 0.8;
    let config = BlockDescentConfig { forgetting: Forgetting::Constant(weight), reseed: false, ..Default::default() };
    let mut update = BlockDescent::new(config, Boundary::Zero, 0);
    let mut expected = 0.0;
    // Long enough for the common weight of the statistics to be multiplied in.
    for i in 0..40 {
        let x = noise::<f64>(sample, i);
        let z = sparse_code(3, positions(sample, filter, Boundary::Zero), 0.1, i + 50);
        update.absorb(&x, &z, &d).unwrap();
        update.update(&mut d.clone());
        expected = weight * expected + crate::common::lags::direct(&x, &z, &d, Boundary::Zero);
    }
    assert!(relative(update.statistics().unwrap().objective(&d), expected) < 1e-10);
    for wrong in ["constant:0", "constant:1", "constant:1.5", "constant:-1", "constant:x"] {
        assert!(wrong.parse::<Forgetting>().is_err(), "{wrong}");
    }
}
