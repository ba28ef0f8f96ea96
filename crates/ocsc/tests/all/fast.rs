//! The default method from end to end: it descends, takes any sizes, channels and boundaries, and resumes bit for bit.

use crate::common::*;
use ocsc::checkpoint::{load, save};
use ocsc::learner::Step;
use ocsc::monitor::Silent;
use ocsc::settings::Boundary;
use ocsc::train::{Observer, Snapshot};
use ocsc::train::{Progress, TrainOptions, evaluate, refuse, train};
use ocsc::{Config, Dictionary, Method, Online, Real, Result, Sample, Shape};
use std::ops::ControlFlow;
use std::path::PathBuf;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

fn config(boundary: Boundary) -> Config {
    Config { method: Method::Ocsc, boundary, passes: 2, batch_size: 2, ..small_config(4, &[3, 3], 0.1) }
}

fn learned<T: Real>(config: &Config, samples: &[Sample<T>], channels: usize) -> Online<T> {
    let mut learner = Online::new(config.clone(), channels).unwrap();
    train(&mut learner, &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
    learner
}

#[test]
fn lowers_the_objective_of_unseen_samples() {
    let (samples, _) = planted::<f32>(5, 20, 24, 0.05, 31);
    for boundary in BOUNDARIES {
        let config = Config { n_filters: 6, filter_shape: vec![5, 5], passes: 3, ..config(boundary) };
        let (seen, unseen) = (samples[..16].to_vec(), samples[16..].to_vec());
        let start = Online::<f32>::new(config.clone(), 1).unwrap();
        let before = evaluate(&config, start.dictionary(), &unseen, 1e-3, &mut refuse).unwrap();
        let after = evaluate(&config, learned(&config, &seen, 1).dictionary(), &unseen, 1e-3, &mut refuse).unwrap();
        assert!(after.objective < 0.8 * before.objective, "{boundary:?}: {} {}", before.objective, after.objective);
        assert!(after.psnr > before.psnr);
    }
}

#[test]
fn takes_mixed_sizes_and_channels() {
    for boundary in BOUNDARIES {
        let sample = |h: usize, w: usize, seed| {
            let shape = Shape { channels: 3, ..Shape::image(h, w) };
            Sample::<f64>::new(shape, normal(shape.len(), seed)).unwrap()
        };
        let samples = vec![sample(9, 14, 0), sample(6, 6, 1), sample(17, 5, 2)];
        let learner = learned(&config(boundary), &samples, 3);
        assert!(learner.dictionary().norms().iter().all(|norm| *norm <= 1.0));
        let start = Dictionary::<f64>::random(4, learner.dictionary().shape(), 2, 3).unwrap();
        assert!(learner.dictionary().relative_change(&start) > 0.01);
    }
}

#[test]
fn threads_change_nothing_and_single_precision_follows_double() {
    for boundary in BOUNDARIES {
        let run = |n| {
            with_threads(n, || {
                learned(&config(boundary), &planted::<f32>(3, 14, 7, 0.05, 21).0, 1).dictionary().clone()
            })
        };
        assert_eq!(run(1), run(2));
        let single = run(1);
        let double = learned(&config(boundary), &planted::<f64>(3, 14, 7, 0.05, 21).0, 1).dictionary().clone();
        assert!(distance(&widen(single.data()), &widen(double.data())) < 1e-2);
    }
}

/// Saves a checkpoint at one step and goes on.
struct SaveAt {
    step: usize,
    path: PathBuf,
}

impl<T: Real> Observer<T> for SaveAt {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        if step.step == self.step {
            save(&self.path, run.learner, Some(run.progress))?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn a_resumed_run_ends_at_the_same_bytes() {
    fn check<T: Real>(boundary: Boundary) {
        let folder = tempfile::tempdir().unwrap();
        let (samples, _) = planted::<T>(3, 12, 7, 0.05, 21);
        for step in [1, 3, 5] {
            let path = folder.path().join("checkpoint.safetensors");
            let mut whole = Online::new(config(boundary), 1).unwrap();
            let mut observer = SaveAt { step, path: path.clone() };
            train(&mut whole, &samples, None, &TrainOptions::default(), Progress::default(), &mut observer).unwrap();
            let (mut resumed, progress) = load::<T>(&path).unwrap().resume().unwrap();
            train(resumed.as_mut(), &samples, None, &TrainOptions::default(), progress, &mut Silent).unwrap();
            assert_eq!(resumed.dictionary(), whole.dictionary());
        }
    }
    for boundary in BOUNDARIES {
        check::<f32>(boundary);
        check::<f64>(boundary);
    }
}
