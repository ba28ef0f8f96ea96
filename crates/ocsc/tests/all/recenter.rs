//! Filters whose energy is in the middle, and none that is a shifted copy of another.

use crate::common::*;
use ocsc::checkpoint::{load, save};
use ocsc::learner::Step;
use ocsc::preprocess::Preprocess;
use ocsc::run::{Init, Run};
use ocsc::settings::{BlockDescentConfig, Boundary};
use ocsc::train::{Observer, Progress, Snapshot, TrainOptions, train};
use ocsc::{Config, Dictionary, Online, Real, Result, Sample, Shape};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Two patterns of 12 values: a bump that rises and falls, and a burst.
fn patterns() -> Dictionary<f64> {
    let bump = (0..12).map(|i| (-(i as f64 - 5.5).powi(2) / 6.0).exp() * (i as f64 - 4.0));
    let burst = (0..12).map(|i| (-(i as f64 - 5.5).powi(2) / 12.0).exp() * (2.1 * i as f64).sin());
    Dictionary::scaled(2, Shape::image(1, 12), 2, &bump.chain(burst).collect::<Vec<_>>()).unwrap().0
}

/// Signals of 200 values with both patterns in them.
fn signals(n: u64) -> Vec<Sample<f64>> {
    let signal = |i: u64| {
        let clean =
            sparse_code::<f64>(2, [1, 1, 200], 0.02, 400 + i).reconstruct(&patterns(), Boundary::Circular).unwrap();
        let noise: Vec<f64> = normal(200, 900 + i);
        Sample::new(clean.shape(), clean.data().iter().zip(noise).map(|(v, n)| v + 0.01 * n).collect()).unwrap()
    };
    (0..n).map(signal).collect()
}

/// The bump three times in windows of 24, at other places each.
fn copies() -> Dictionary<f64> {
    let mut data = vec![0.0; 3 * 24];
    for (k, at) in [0, 6, 12].into_iter().enumerate() {
        data[k * 24 + at..][..12].copy_from_slice(patterns().filter(0));
    }
    Dictionary::new(3, Shape::image(1, 24), 2, data).unwrap()
}

fn config(recenter: bool) -> Config {
    let block_descent = BlockDescentConfig { recenter, ..BlockDescentConfig::default() };
    Config { beta: 0.1, block_descent, n_filters: 3, filter_shape: vec![1, 24], ..Config::default() }
}

/// The largest normalised cross-correlation over shifts, of either sign, of every two filters; from the definition.
fn similarities<T: Real>(d: &Dictionary<T>) -> Vec<f64> {
    let n = d.shape().width as isize;
    let similarity = |a: &[T], b: &[T]| {
        let product = |tau: isize| {
            let inside = (0..n).filter(|s| (0..n).contains(&(s - tau)));
            inside.map(|s| a[s as usize].f64() * b[(s - tau) as usize].f64()).sum::<f64>().abs()
        };
        let norm = |a: &[T]| a.iter().map(|v| v.f64().powi(2)).sum::<f64>().sqrt();
        (1 - n..n).map(product).fold(0.0, f64::max) / (norm(a) * norm(b)).max(f64::MIN_POSITIVE)
    };
    let k = d.n_filters();
    let pairs = (0..k).flat_map(|a| (0..a).map(move |b| (a, b)));
    pairs.map(|(a, b)| similarity(d.filter(a), d.filter(b))).collect()
}

/// How far from the middle the energy of each filter is.
fn off_middle<T: Real>(d: &Dictionary<T>) -> Vec<f64> {
    let middle = (d.shape().width as f64 - 1.0) / 2.0;
    let center = |filter: &[T]| {
        let energy: f64 = filter.iter().map(|v| v.f64().powi(2)).sum();
        filter.iter().enumerate().map(|(i, v)| i as f64 * v.f64().powi(2)).sum::<f64>() / energy
    };
    (0..d.n_filters()).map(|k| (center(d.filter(k)) - middle).abs()).collect()
}

/// Saves a checkpoint at one step, and counts what was moved and replaced.
#[derive(Default)]
struct Watch {
    save: Option<(usize, PathBuf)>,
    moved: Vec<[usize; 2]>,
}

impl<T: Real> Observer<T> for Watch {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.moved.push([step.update.reseeded, step.update.recentered]);
        if let Some((_, path)) = self.save.as_ref().filter(|(at, _)| *at == step.step) {
            save(path, run.learner, Some(run.progress))?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn learned(config: Config, samples: &[Sample<f64>], watch: &mut Watch) -> Dictionary<f64> {
    let mut learner = Online::with_dictionary(config, copies()).unwrap();
    train(&mut learner, &samples, None, &TrainOptions::default(), Progress::default(), watch).unwrap();
    learner.dictionary().clone()
}

#[test]
fn copies_become_other_filters_and_energy_comes_to_the_middle() {
    let samples = signals(60);
    let mut watch = Watch::default();
    let without = learned(config(false), &samples, &mut watch);
    assert!(watch.moved.iter().all(|moved| *moved == [0, 0]), "off is off");
    assert!(similarities(&without).iter().any(|s| *s > 0.95), "{:?}", similarities(&without));
    let mut watch = Watch::default();
    let with = learned(config(true), &samples, &mut watch);
    assert_eq!(watch.moved[..14], [[0, 0]; 14], "filters have time to become something");
    assert!(watch.moved[14][0] >= 1 && watch.moved[14][1] >= 1, "{:?}", watch.moved);
    assert!(similarities(&with).iter().all(|s| *s < 0.95), "{:?}", similarities(&with));
    let truth = patterns();
    for k in 0..2 {
        let mut padded = vec![0.0; 24];
        padded[6..18].copy_from_slice(truth.filter(k));
        let all: Vec<f64> = padded.into_iter().chain(with.data().iter().copied()).collect();
        let joined = Dictionary::new(4, Shape::image(1, 24), 2, all).unwrap();
        // Pairs (1, 0), (2, 0), (2, 1), (3, 0): those with the truth.
        let found = similarities(&joined);
        assert!([found[0], found[1], found[3]].iter().any(|s| *s > 0.95), "pattern {k}: {found:?}");
    }
    let used = off_middle(&with);
    assert!(used.iter().filter(|off| **off <= 3.0).count() >= 2, "{used:?}");
}

#[test]
fn a_run_resumed_around_a_move_ends_at_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let samples = signals(30);
    for step in [14, 15, 16, 25] {
        let mut watch = Watch { save: Some((step, path.clone())), ..Watch::default() };
        let whole = learned(config(true), &samples, &mut watch);
        assert!(watch.moved[14] != [0, 0]);
        let (mut resumed, progress) = load::<f64>(&path).unwrap().resume().unwrap();
        train(resumed.as_mut(), &samples, None, &TrainOptions::default(), progress, &mut Watch::default()).unwrap();
        assert_eq!(resumed.dictionary(), &whole, "from step {step}");
    }
}

/// 100 s of a heart, with six filters from patches: without moves several are the same beat, cut at other edges; with them no two
/// are as similar, and all stand in the middle.
#[test]
fn beats_of_a_heart_are_learned_once() {
    let Some(dir) = data_dir() else { return };
    let signal: ndarray::Array1<f32> = ndarray_npy::read_npy(dir.join("signals/ecg_360hz.npy")).unwrap();
    let steps: Preprocess = "lowpass=2000,scale".parse().unwrap();
    let window = |i: usize| {
        let values = signal.iter().skip(3600 * i).take(3600).copied().collect();
        let shape = Shape { channels: 1, depth: 1, height: 1, width: 3600 };
        steps.apply(Sample::new(shape, values).unwrap()).unwrap()
    };
    let windows: Vec<Sample<f32>> = (0..10).map(window).collect();
    let learned = |recenter: bool| {
        let block_descent = BlockDescentConfig { recenter, ..BlockDescentConfig::default() };
        let shape = Config { n_filters: 6, filter_shape: vec![120], boundary: Boundary::Free, ..Config::default() };
        let config = Config { passes: 6, block_descent, ..shape };
        let mut run = Run::new(config).init(Init::Patches).beta_ratio(0.5).start(&windows).unwrap();
        run.train(&windows, None, &mut Watch::default()).unwrap();
        run.learner().dictionary().clone()
    };
    let (without, with) = (learned(false), learned(true));
    let copies = |d: &Dictionary<f32>| similarities(d).iter().filter(|s| **s > 0.89).count();
    assert!(copies(&without) >= 3, "{:?}", similarities(&without));
    assert!(copies(&with) <= 1, "{:?}", similarities(&with));
    assert!(off_middle(&without).iter().any(|off| *off > 30.0), "{:?}", off_middle(&without));
    assert!(off_middle(&with).iter().all(|off| *off < 15.0), "{:?}", off_middle(&with));
}
