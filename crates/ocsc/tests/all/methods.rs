//! Every row of the method table: it learns, stays feasible, resumes, refuses what it cannot take, and agrees with others.

use crate::common::*;
use ocsc::checkpoint::{load, save};
use ocsc::learner::{Step, initial, learner};
use ocsc::memory::{Survey, memory};
use ocsc::monitor::Silent;
use ocsc::run::Run;
use ocsc::setting::Part;
use ocsc::settings::{ActiveSetConfig, BatchConfig, BlockDescentConfig, Boundary, Forgetting, Weights};
use ocsc::train::{Observer, Snapshot};
use ocsc::train::{Progress, TrainOptions, evaluate, refuse, train};
use ocsc::{Config, Dictionary, Learner, Method, Online, Real, Result, Sample, Shape};
use std::ops::ControlFlow;
use std::path::Path;

fn config(method: Method, beta: f64) -> Config {
    Config { method, passes: 6, ..small_config(5, &[4, 5], beta) }
}

fn start<T: Real>(config: &Config, channels: usize) -> Box<dyn Learner<T>> {
    learner(config.clone(), initial(config, channels).unwrap()).unwrap()
}

fn learned<T: Real>(config: &Config, samples: &[Sample<T>]) -> Box<dyn Learner<T>> {
    let mut learner = start(config, samples[0].shape().channels);
    train(learner.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
    learner
}

fn objective<T: Real>(config: &Config, d: &Dictionary<T>, samples: &[Sample<T>]) -> f64 {
    evaluate(config, d, &samples, 1e-3, &mut refuse).unwrap().objective
}

fn samples<T: Real>(channels: usize) -> Vec<Sample<T>> {
    made_of(&filters::<f64>(4, colour(channels, [1, 4, 4]), 9), [1, 15, 14], 6, 40)
}

/// Every patch of the samples as a sample of its own, which one filter fills.
fn patches<T: Real>(samples: &[Sample<T>], filter: Shape) -> Vec<Sample<T>> {
    let mut patches = Vec::new();
    for sample in samples {
        let Shape { channels, height, width, .. } = sample.shape();
        for at in 0..(height - filter.height + 1) * (width - filter.width + 1) {
            let (y, x) = (at / (width - filter.width + 1), at % (width - filter.width + 1));
            let value = |c: usize, i: usize, j: usize| sample.data()[(c * height + y + i) * width + x + j];
            let line = |c, i| (0..filter.width).map(move |j| (c, i, j));
            let places = (0..channels).flat_map(|c| (0..filter.height).flat_map(move |i| line(c, i)));
            patches.push(Sample::new(filter, places.map(|(c, i, j)| value(c, i, j)).collect()).unwrap());
        }
    }
    patches
}

/// The objective of Algorithm 1: what it reports of patches that one filter fills, before it learns from them.
fn lasso<T: Real>(config: &Config, d: &Dictionary<T>, patches: &[Sample<T>]) -> f64 {
    let visits: Vec<usize> = (0..patches.len()).collect();
    learner(config.clone(), d.clone()).unwrap().learn(&visits, patches, &Silent).unwrap().objective()
}

/// Well below the start: the objective that a method minimises, which for Algorithm 1 is that of the patches.
fn every_method_descends<T: Real>(channels: usize) {
    let samples = samples::<T>(channels);
    let mut rows = Vec::new();
    for method in Method::ALL {
        let config = config(method, 0.05);
        let (before, learner) = (start::<T>(&config, channels), learned(&config, &samples));
        let of = |d: &Dictionary<T>| match method {
            // With the filters of the model, which samples start from: with their own, any start would do.
            Method::Scsc => objective(&Config { method: Method::Ocsc, ..config.clone() }, d, &samples),
            Method::Osc => lasso(&config, d, &patches(&samples, d.shape())),
            _ => objective(&config, d, &samples),
        };
        rows.push((method, of(learner.dictionary()) / of(before.dictionary())));
        assert!(learner.dictionary().norms().iter().all(|norm| *norm <= 1.0), "{method}");
        assert_eq!(learner.step(), 36, "{method}");
    }
    assert!(rows.iter().all(|(_, ratio)| *ratio < 0.9), "{channels} channels: {rows:?}");
}

#[test]
fn every_method_descends_and_stays_feasible() {
    every_method_descends::<f32>(1);
    every_method_descends::<f64>(1);
    every_method_descends::<f64>(2);
}

/// Saves a checkpoint at one step, and may end the run there.
struct SaveAt<'a> {
    path: &'a Path,
    step: usize,
}

impl<T: Real> Observer<T> for SaveAt<'_> {
    fn step(&mut self, run: &Snapshot<'_, T>, _step: &Step<T>) -> Result<ControlFlow<()>> {
        if run.progress.step != self.step {
            return Ok(ControlFlow::Continue(()));
        }
        save(self.path, run.learner, Some(run.progress))?;
        Ok(ControlFlow::Break(()))
    }
}

fn every_method_resumes<T: Real>(channels: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let samples = samples::<T>(channels);
    for method in Method::ALL {
        let config = Config { passes: 3, batch_size: 2, ..config(method, 0.05) };
        let whole = learned(&config, &samples);
        // Within the first pass, at its end, within the last pass, at the end of the run.
        for step in [1, 3, 8, 9] {
            let mut learner = start::<T>(&config, channels);
            let mut observer = SaveAt { path: &path, step };
            let schedule = TrainOptions::default();
            train(learner.as_mut(), &samples, None, &schedule, Progress::default(), &mut observer).unwrap();
            let (mut learner, progress) = load::<T>(&path).unwrap().resume().unwrap();
            assert_eq!(learner.step(), step, "{method}");
            train(learner.as_mut(), &samples, None, &schedule, progress, &mut Silent).unwrap();
            assert_eq!(learner.dictionary(), whole.dictionary(), "{method} from step {step}");
        }
    }
}

#[test]
fn every_method_resumes_bit_for_bit() {
    every_method_resumes::<f32>(1);
    every_method_resumes::<f64>(2);
}

#[test]
fn masked_samples_are_resumed_with_their_masks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let hidden = |x: Sample<f32>| {
        let seen = (0..x.data().len()).map(|i| i % 5 != 2).collect();
        Sample::masked(x.shape(), x.data().to_vec(), seen).unwrap()
    };
    let samples: Vec<_> = samples::<f32>(1).into_iter().map(hidden).collect();
    let config = Config { passes: 2, ..config(Method::Ffcsc, 0.05) };
    let whole = learned(&config, &samples);
    let mut learner = start::<f32>(&config, 1);
    let mut observer = SaveAt { path: &path, step: 4 };
    train(learner.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut observer).unwrap();
    let (mut learner, progress) = load::<f32>(&path).unwrap().resume().unwrap();
    train(learner.as_mut(), &samples, None, &TrainOptions::default(), progress, &mut Silent).unwrap();
    assert_eq!(learner.dictionary(), whole.dictionary());
}

#[test]
fn threads_do_not_change_a_bit_of_any_method() {
    let samples = samples::<f32>(1);
    for method in Method::ALL {
        let config = Config { passes: 2, n_filters: 19, ..config(method, 0.05) };
        let run = || learned(&config, &samples).dictionary().clone();
        assert_eq!(with_threads(1, run), with_threads(2, run), "{method}");
    }
}

#[test]
fn unobserved_values_have_no_influence_on_ffcsc() {
    let samples = samples::<f64>(1);
    let config = config(Method::Ffcsc, 0.05);
    let with = |hidden: f64| -> Vec<Sample<f64>> {
        let masked = |x: &Sample<f64>| {
            let seen: Vec<bool> = (0..x.data().len()).map(|i| (i * 7) % 5 != 2).collect();
            let data = x.data().iter().zip(&seen).map(|(v, seen)| if *seen { *v } else { hidden }).collect();
            Sample::masked(x.shape(), data, seen).unwrap()
        };
        samples.iter().map(masked).collect()
    };
    let (zeros, wild) = (learned(&config, &with(0.0)), learned(&config, &with(1e6)));
    assert_eq!(zeros.dictionary(), wild.dictionary());
    // What is hidden is predicted about as well as if it had been seen, and not as zero.
    let before = objective(&config, start::<f64>(&config, 1).dictionary(), &samples);
    let (all, most) = (learned(&config, &samples), objective(&config, zeros.dictionary(), &samples));
    let all = objective(&config, all.dictionary(), &samples);
    assert!(most < all + 0.5 * (before - all), "{before} {most} {all}");
}

#[test]
fn names_are_unique_and_parse() {
    for method in Method::ALL {
        assert_eq!(method.name().parse::<Method>().unwrap(), method);
        assert_eq!(serde_json::to_string(&method).unwrap(), format!("\"{method}\""));
        assert!(!method.description().is_empty());
    }
    let refused = "fcsc2".parse::<Method>().unwrap_err().to_string();
    assert!(refused.contains("ocsc-paper, deconvnet") && refused.contains("found fcsc2"), "{refused}");
}

#[test]
fn settings_that_a_method_would_not_heed_are_refused() {
    let nonnegative = ActiveSetConfig { nonnegative: true, ..ActiveSetConfig::default() };
    let weighted = ActiveSetConfig { weights: Weights::PerFilter(vec![2.0; 5]), ..ActiveSetConfig::default() };
    for method in Method::ALL {
        for (active_set, what) in [(&nonnegative, "non_negative"), (&weighted, "weights")] {
            let plain = config(method, 0.1);
            let config = Config { active_set: active_set.clone(), ..plain.clone() };
            let dictionary = initial::<f64>(&plain, 1).unwrap();
            let refusals = [config.validate().err(), learner(config, dictionary).err()];
            if method.obeys(Part::ActiveSet) {
                assert!(refusals.iter().all(Option::is_none), "{refusals:?}");
                continue;
            }
            for refusal in refusals {
                let refusal = refusal.unwrap_or_else(|| panic!("{method} takes {what}")).to_string();
                assert!(refusal.starts_with(&format!("{what}: expected ")), "{refusal}");
                let why = format!("with the method `{method}`, which does not obey it (ocsc, sgd, aocdl, scsc would)");
                assert!(refusal.contains(&why), "{refusal}");
            }
        }
    }
}

#[test]
fn model_files_with_settings_that_were_not_heeded_still_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let plain = config(Method::Fcsc, 0.1);
    let dictionary = initial::<f64>(&plain, 1).unwrap();
    let active_set = ActiveSetConfig { nonnegative: true, ..ActiveSetConfig::default() };
    ocsc::checkpoint::save_model(&path, &Config { active_set, ..plain }, &dictionary, None).unwrap();
    let saved = load::<f64>(&path).unwrap();
    assert!(saved.config.active_set.nonnegative && saved.config.method == Method::Fcsc);
    // Learning goes on without what it never obeyed.
    let run = Run::resume(saved).adopt().unwrap();
    assert!(!run.learner().config().active_set.nonnegative);
}

#[test]
fn what_a_method_cannot_take_is_refused() {
    let samples = samples::<f64>(1);
    let larger = noise::<f64>([1, 16, 14], 1);
    let masked = Sample::masked(samples[0].shape(), samples[0].data().to_vec(), vec![true; 210]).unwrap();
    assert!(masked.mask().is_none());
    let hidden = (0..210).map(|i| i != 3).collect();
    let masked = Sample::masked(samples[0].shape(), samples[0].data().to_vec(), hidden).unwrap();
    for method in Method::ALL {
        let config = config(method, 0.1);
        for boundary in [Boundary::Circular, Boundary::Zero, Boundary::Free] {
            let config = Config { boundary, ..config.clone() };
            let made = initial::<f64>(&config, 1).and_then(|d| learner(config, d));
            assert_eq!(made.is_ok(), method.takes_boundary(boundary), "{method} {boundary:?}");
        }
        let both = |second: &Sample<f64>| -> Result<()> {
            let mut learner = start::<f64>(&config, 1);
            learner.learn(&[0], &samples[..1], &Silent)?;
            learner.learn(&[1], std::slice::from_ref(second), &Silent)?;
            learner.end_of_pass().map(drop)
        };
        assert!(both(&samples[1]).is_ok(), "{method}");
        assert_eq!(both(&larger).is_ok(), method.takes_mixed_sizes(), "{method}");
        assert_eq!(both(&masked).is_ok(), method.takes_masks(), "{method}");
        assert!(both(&noise::<f64>([1, 3, 14], 1)).is_err(), "{method}: smaller than the filters");
        assert_eq!(Online::<f64>::new(config.clone(), 1).is_ok(), !method.is_batch() && method != Method::Osc);
        for wrong in [
            BatchConfig { code_iters: 0, ..config.batch.clone() },
            BatchConfig { update_iters: 0, ..config.batch.clone() },
        ] {
            assert!(Config { batch: wrong, ..config.clone() }.validate().is_err());
        }
    }
}

/// Memory is stated in advance: it grows with the number of samples for the batch methods alone, and never overflows.
#[test]
fn memory_is_that_of_the_papers_table() {
    let (filter, sample) = (Shape::image(11, 11), Shape::image(100, 100));
    for method in Method::ALL {
        let config = Config { method, ..Config::default() };
        let bytes = |n| memory::<f32>(&config, n, sample, filter).total();
        assert_eq!(bytes(1000) > bytes(10), method.is_batch(), "{method}");
        let huge = Shape { channels: 3, depth: usize::MAX, height: 3, width: 3 };
        assert!(memory::<f64>(&config, usize::MAX, huge, filter).total() > 1 << 60 || method == Method::Osc);
    }
    // N K P numbers of four bytes, half spectra of complex ones: 10 x 100 x 10,000.
    let cbpdn = memory::<f32>(&Config { method: Method::Cbpdn, ..Config::default() }, 10, sample, filter);
    assert!((40_000_000..60_000_000).contains(&cbpdn.statistics), "{}", cbpdn.statistics);
}

#[test]
fn batch_methods_take_as_many_samples_as_fit() {
    let survey = Survey { samples: 1, one_size: Some(Shape::image(32, 32)), largest: 1024, processes: 1 };
    let filter = Shape::image(5, 5);
    let of = |method| Config { method, n_filters: 10, ..Config::default() };
    let limit = 100_000_000;
    assert_eq!(survey.most_samples::<f32>(&of(Method::Ocsc), filter, limit), None);
    assert_eq!(survey.most_samples::<f32>(&of(Method::Fcsc), filter, 1), Some(0));
    let most = survey.most_samples::<f32>(&of(Method::Fcsc), filter, limit).unwrap();
    let need = |samples| Survey { samples, ..survey }.needs::<f32>(&of(Method::Fcsc), filter).0;
    assert!(most > 100 && need(most) <= limit && need(most + 1) > limit, "{most}");
}

/// The numbers of the reference scripts: between -1 and 1, without a pattern that filters could learn by heart.
fn wave(n: usize, a: usize, b: usize, c: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * i * a + i * b + c) % 1009) as f64 / 504.5 - 1.0).collect()
}

/// Filters of 4 x 4 scaled back to norm 1 where they are longer.
fn unit(k: usize, values: Vec<f64>) -> Dictionary<f64> {
    let scaled = values.chunks(16).flat_map(|f| {
        let norm = dot(f, f).sqrt().max(1.0);
        f.iter().map(move |v| v / norm)
    });
    Dictionary::new(k, Shape::image(4, 4), 2, scaled.collect()).unwrap()
}

fn scaled(values: Vec<f64>, factor: f64) -> Vec<f64> {
    values.into_iter().map(|v| factor * v).collect()
}

/// Where SPORCO's batch learners end from the same filters on the same samples (`reference/dictionaries.py`).
///
/// It alternates single iterations with fixed penalties, we make a few of each and start duals anew: the problem is not convex, so
/// the two may end in different places, and their objectives are compared to 3 %.
#[test]
fn batch_methods_end_where_sporco_does() {
    let reference: serde_json::Value = serde_json::from_str(include_str!("../reference/dictionaries.json")).unwrap();
    let number = |name: &str| reference[name].as_f64().unwrap();
    let (truth, start) = (unit(4, scaled(wave(64, 7, 3, 1), 3.0)), unit(4, scaled(wave(64, 11, 5, 77), 5.0)));
    let sample = |i: usize| {
        let mut image = vec![0.0; 256];
        for j in 0..12 {
            let (k, y, x) = ((i + j) % 4, (7 * j + 3 * i) % 16, (5 * j * j + i) % 16);
            let value = if (i + j) % 2 == 1 { 1.0 } else { -1.5 };
            for (t, tap) in truth.filter(k).iter().enumerate() {
                image[(y + t / 4) % 16 * 16 + (x + t % 4) % 16] += value * tap;
            }
        }
        Sample::new(Shape::image(16, 16), image).unwrap()
    };
    let samples: Vec<Sample<f64>> = (0..5).map(sample).collect();
    for method in [Method::Cbpdn, Method::Consensus, Method::Fcsc, Method::Ffcsc] {
        let config = Config { method, passes: 120, beta: number("beta"), ..Config::default() };
        let mut learner = learner(config.clone(), start.clone()).unwrap();
        assert!(relative(objective(&config, &start, &samples), number("start")) < 2e-3);
        train(learner.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
        let found = objective(&config, learner.dictionary(), &samples);
        let expected = number(if method == Method::Consensus { "consensus" } else { "cbpdn" });
        assert!(relative(found, expected) < 0.03, "{method}: {found}, SPORCO {expected}");
    }
}

/// What scikit-learn makes of the same patches from the same atoms (`reference/patches.py`): after one step on all of them the
/// same atoms; after ten passes the objective of Algorithm 1 in numpy for each exponent of forgetting, and with the default
/// exponent, which comes nearest to the weights of scikit-learn, its own within 1 %.
#[test]
fn osc_agrees_with_scikit_learn() {
    let reference: serde_json::Value = serde_json::from_str(include_str!("../reference/patches.json")).unwrap();
    let number = |name: &str| reference[name].as_f64().unwrap();
    let (truth, start) = (unit(6, scaled(wave(96, 7, 3, 1), 3.0)), unit(6, scaled(wave(96, 11, 5, 77), 5.0)));
    let patch = |i: usize| {
        let (a, b) = (truth.filter(i % 6), truth.filter((i * i + 1) % 6));
        let value = |t: usize| (1.0 + (i % 3) as f64) * a[t] - (1.0 + (i % 2) as f64) * b[t];
        Sample::new(Shape::image(4, 4), (0..16).map(value).collect()).unwrap()
    };
    let patches: Vec<Sample<f64>> = (0..120).map(patch).collect();
    let config = Config { method: Method::Osc, beta: number("beta"), tol: 1e-10, ..Config::default() };
    let visits: Vec<usize> = (0..120).collect();
    let lasso = |d: &Dictionary<f64>| lasso(&config, d, &patches);
    assert!(relative(lasso(&start), number("start")) < 1e-4);

    let mut once = learner(config.clone(), start.clone()).unwrap();
    once.learn(&visits, &patches, &Silent).unwrap();
    let expected: Vec<f64> = reference["one_step"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert!(distance(once.dictionary().data(), &expected) < 1e-3);
    assert!(relative(lasso(once.dictionary()), number("one_step_objective")) < 1e-3);

    let many_steps = |forgetting: Forgetting| {
        let block_descent = BlockDescentConfig { forgetting, ..BlockDescentConfig::default() };
        let mut many = learner(Config { block_descent, ..config.clone() }, start.clone()).unwrap();
        for first in (0..1200).step_by(12).map(|i| i % 120) {
            many.learn(&visits[first..first + 12], &patches[first..first + 12], &Silent).unwrap();
        }
        lasso(many.dictionary())
    };
    for (exponent, expected) in reference["many_steps_by_exponent"].as_object().unwrap() {
        let (found, expected) = (many_steps(exponent.parse::<Forgetting>().unwrap()), expected.as_f64().unwrap());
        assert!(relative(found, expected) < 1e-5, "exponent {exponent}: {found}, expected {expected}");
    }
    let found = many_steps(BlockDescentConfig::default().forgetting);
    assert!(relative(found, number("many_steps_objective")) < 0.01, "{found}");
}
