//! Filters that no code uses are replaced by the worst-explained patches.

use crate::common::lags::{direct, positions};
use crate::common::*;
use ocsc::checkpoint::{load, save};
use ocsc::learner::Step;
use ocsc::settings::{BlockDescentConfig, Boundary};
use ocsc::train::{Observer, Snapshot};
use ocsc::train::{Progress, TrainOptions, evaluate, refuse, train};
use ocsc::update::{BlockDescent, Update};
use ocsc::{Code, Config, Dictionary, Method, Online, Real, Result, Sample, Shape};
use std::ops::ControlFlow;
use std::path::PathBuf;

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

fn config(boundary: Boundary, reseed: bool) -> Config {
    let block_descent = BlockDescentConfig { reseed, ..BlockDescentConfig::default() };
    Config { method: Method::Ocsc, boundary, block_descent, ..small_config(8, &[5, 5], 0.3) }
}

/// Eight filters, of which the last five are zero: their codes are zero for ever.
fn mostly_dead<T: Real>(seed: u64) -> Dictionary<T> {
    let alive = Dictionary::<T>::random(3, Shape::image(5, 5), 2, seed).unwrap();
    let mut data = alive.data().to_vec();
    data.resize(8 * 25, T::zero());
    Dictionary::new(8, Shape::image(5, 5), 2, data).unwrap()
}

/// Counts new filters by step, and saves a checkpoint at one of them.
#[derive(Default)]
struct Watch {
    reseeded: Vec<usize>,
    save: Option<(usize, PathBuf)>,
}

impl<T: Real> Observer<T> for Watch {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.reseeded.push(step.update.reseeded);
        if let Some((_, path)) = self.save.as_ref().filter(|(at, _)| *at == step.step) {
            save(path, run.learner, Some(run.progress))?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn learned<T: Real>(config: &Config, samples: &[Sample<T>], watch: &mut Watch) -> Dictionary<T> {
    let mut learner = Online::with_dictionary(config.clone(), mostly_dead(5)).unwrap();
    train(&mut learner, &samples, None, &TrainOptions::default(), Progress::default(), watch).unwrap();
    learner.dictionary().clone()
}

#[test]
fn dead_filters_come_alive_and_help() {
    for boundary in BOUNDARIES {
        let (samples, _) = planted::<f64>(6, 20, 128, 0.01, 17);
        let (seen, unseen) = (samples[..120].to_vec(), samples[120..].to_vec());
        let run = |reseed: bool| {
            let (config, mut watch) = (config(boundary, reseed), Watch::default());
            let d = learned(&config, &seen, &mut watch);
            let objective = evaluate(&config, &d, &unseen, 1e-4, &mut refuse).unwrap().objective;
            (d, objective, watch.reseeded)
        };
        let (dead, worse, none) = run(false);
        assert!(none.iter().all(|n| *n == 0), "off is off");
        assert!(dead.data()[3 * 25..].iter().all(|v| *v == 0.0));
        let (alive, better, some) = run(true);
        assert!(better < 0.9 * worse, "{boundary:?}: {better} with new filters, {worse} without");
        assert_eq!(some[..9], [0; 9], "filters have ten updates to prove themselves");
        assert_eq!(some[9], 5, "{some:?}");
        assert!(alive.norms().iter().all(|norm| (0.1..=1.0).contains(norm)), "{:?}", alive.norms());
    }
}

#[test]
fn a_run_resumed_around_a_reseeding_ends_at_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let (samples, _) = planted::<f32>(6, 16, 24, 0.01, 17);
    let config = config(Boundary::Free, true);
    for step in [9, 10, 11, 19, 21] {
        let mut watch = Watch { save: Some((step, path.clone())), ..Watch::default() };
        let whole = learned(&config, &samples, &mut watch);
        assert_eq!(watch.reseeded[9], 5);
        let (mut resumed, progress) = load::<f32>(&path).unwrap().resume().unwrap();
        let mut after = Watch::default();
        let outcome = train(resumed.as_mut(), &samples, None, &TrainOptions::default(), progress, &mut after).unwrap();
        assert_eq!(outcome.progress.reseeded, watch.reseeded.iter().sum::<usize>(), "of the whole run");
        assert_eq!((resumed.dictionary(), &after.reseeded[..]), (&whole, &watch.reseeded[step..]));
    }
}

#[test]
fn threads_change_nothing_and_seeds_something() {
    let (samples, _) = planted::<f32>(6, 16, 1, 0.01, 17);
    let run = |n: usize, seed: u64| {
        let config = Config { seed, ..config(Boundary::Circular, true) };
        with_threads(n, || learned(&config, &vec![samples[0].clone(); 10], &mut Watch::default()))
    };
    assert_eq!(run(1, 3), run(2, 3));
    assert_ne!(run(1, 3), run(1, 4));
}

/// Filter 1 has codes, but next to nothing; after its replacement the statistics are those of the other filters' codes.
#[test]
fn the_statistics_forget_the_old_filter() {
    let (filter, sample) = (Shape::image(3, 4), Shape::image(9, 8));
    for boundary in [Boundary::Circular, Boundary::Zero] {
        let mut d = Dictionary::<f64>::random(10, filter, 2, 1).unwrap();
        let settings = BlockDescentConfig { forgetting: 1.0.into(), ..BlockDescentConfig::default() };
        let mut update = BlockDescent::new(settings, boundary, 7);
        let mut kept = Vec::new();
        for i in 0..10 {
            let x = Sample::new(sample, normal(sample.len(), i)).unwrap();
            let z = sparse_code::<f64>(10, positions(sample, filter, boundary), 0.05, i + 50);
            let mut atoms = z.atoms().to_vec();
            atoms.iter_mut().filter(|a| a.filter == 1).for_each(|a| a.value *= 1e-3);
            update.absorb(&x, &Code::new(10, z.shape(), atoms.clone()).unwrap(), &d).unwrap();
            atoms.retain(|a| a.filter != 1);
            kept.push((x, Code::new(10, z.shape(), atoms).unwrap()));
            let updated = update.update(&mut d);
            assert_eq!(updated.reseeded, usize::from(i == 9));
        }
        assert!((d.norms()[1] - 1.0).abs() < 1e-12);
        let expected: f64 = kept.iter().map(|(x, z)| direct(x, z, &d, boundary)).sum();
        let lags = update.statistics().unwrap();
        assert!(relative(lags.objective(&d), expected) < 1e-10);
        assert!((0..10).all(|k| lags.lag(k, 1, [0, 1, -2]) == 0.0) && lags.psi(1).iter().all(|v| *v == 0.0));
        assert_eq!(update.unused(), 1, "until a code uses it");
    }
}
