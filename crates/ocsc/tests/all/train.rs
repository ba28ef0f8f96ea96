//! Learning: planted filters are found, runs repeat bit for bit, and every way to end is reached.

use crate::common::*;
use ocsc::learner::Step;
use ocsc::monitor::Silent;
use ocsc::train::{Ended, Outcome, Progress, TrainOptions, evaluate, refuse, train, visiting_order};
use ocsc::train::{Observer, Snapshot};
use ocsc::{Config, Dictionary, Method, Online, Real, Result, Sample, Samples, Shape};
use std::ops::ControlFlow;
use std::time::Duration;

fn learn<T: Real>(config: &Config, samples: &[Sample<T>]) -> Online<T> {
    let mut learner = Online::new(config.clone(), 1).unwrap();
    train(&mut learner, &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
    learner
}

fn objective<T: Real>(config: &Config, dictionary: &Dictionary<T>, samples: &dyn Samples<T>) -> f64 {
    evaluate(config, dictionary, samples, 1e-3, &mut refuse).unwrap().objective
}

/// The largest |cosine| between two filters of side `m` over all shifts of one against the other.
fn likeness(a: &[f64], b: &[f64], m: isize) -> f64 {
    let mut best = 0.0_f64;
    for (dy, dx) in (1 - m..m).flat_map(|dy| (1 - m..m).map(move |dx| (dy, dx))) {
        let mut sum = 0.0;
        for (y, x) in (0..m).flat_map(|y| (0..m).map(move |x| (y, x))) {
            if (0..m).contains(&(y + dy)) && (0..m).contains(&(x + dx)) {
                sum += a[(y * m + x) as usize] * b[((y + dy) * m + x + dx) as usize];
            }
        }
        best = best.max(sum.abs());
    }
    best / (dot(a, a) * dot(b, b)).sqrt()
}

/// From random filters to the planted ones, up to sign, order and shift: one learner, one pass over a stream of new
/// samples. It learns twice as many filters as were planted, since two of too few may settle on sharing a planted one
/// (with four, all were found in one of eight runs).
fn planted_filters_are_found(method: Method, missed: usize) {
    const K: usize = 4;
    let seeds = [11, 12, 13, 14];
    let mut found = 0;
    for seed in seeds {
        let (samples, truth) = planted::<f64>(K, 24, 608, 0.01, seed);
        let (samples, test) = samples.split_at(600);
        let config = Config { method, ..small_config(2 * K, &[5, 5], 0.3) };
        let learner = learn(&config, samples);
        let (reached, best) = (objective(&config, learner.dictionary(), &test), objective(&config, &truth, &test));
        assert!(reached < 1.01 * best, "seed {seed}: {reached}, and {best} with the planted filters");
        let learned = |k: usize| (0..2 * K).map(move |j| (k, j));
        let likeness = |(k, j)| likeness(truth.filter(k), learner.dictionary().filter(j), 5);
        found += (0..K).filter(|&k| learned(k).map(likeness).fold(0.0, f64::max) > 0.98).count();
    }
    assert!(found + missed >= K * seeds.len(), "{found} of {}", K * seeds.len());
}

/// Seed 14 ends with one filter at 0.953, the only one of 32 in eight seeds.
#[test]
fn planted_filters_are_found_by_the_papers_method() {
    planted_filters_are_found(Method::OcscPaper, 1);
}

#[test]
fn planted_filters_are_found_by_the_fast_method() {
    planted_filters_are_found(Method::Ocsc, 0);
}

/// A few samples that take no time.
fn tiny<T: Real>() -> (Config, Vec<Sample<T>>) {
    let (samples, _) = planted::<T>(3, 12, 7, 0.05, 21);
    (Config { passes: 2, batch_size: 2, ..small_config(4, &[3, 3], 0.1) }, samples)
}

#[test]
fn training_lowers_the_objective_of_unseen_samples() {
    let (samples, _) = planted::<f32>(5, 20, 24, 0.05, 31);
    let (seen, unseen) = (&&samples[..16], &&samples[16..]);
    let config = small_config(5, &[5, 5], 0.1);
    let mut learner = Online::<f32>::new(config.clone(), 1).unwrap();
    let before = objective(&config, learner.dictionary(), unseen);
    let mut observer = Recorder::default();
    let schedule = TrainOptions { test_every: Some(4), ..TrainOptions::default() };
    let outcome = train(&mut learner, seen, Some(unseen), &schedule, Progress::default(), &mut observer).unwrap();
    let after = objective(&config, learner.dictionary(), unseen);
    assert!(after < 0.9 * before, "{before} {after}");
    assert!(relative(outcome.test.unwrap().objective, after) < 4e-3);
    assert_eq!(observer.tests.iter().map(|t| t.0).collect::<Vec<_>>(), [4, 8, 12, 16]);
    assert!(learner.dictionary().norms().into_iter().all(|norm| norm <= 1.0));
}

/// Filters that span channels, in larger ones so that they may be found at any shift.
#[test]
fn training_finds_filters_that_span_channels() {
    for (channels, axes, planted, size) in [
        (3, [1, 20, 20], &[3, 3][..], &[5, 5][..]),
        (2, [1, 1, 300], &[5], &[9]),
        (2, [6, 8, 8], &[2, 2, 2], &[3, 3, 3]),
    ] {
        let truth = filters::<f64>(4, Shape::from_axes(channels, planted).unwrap(), 5);
        let samples = made_of::<f64>(&truth, axes, 208, 100);
        let (seen, unseen) = (&&samples[..200], &&samples[200..]);
        let config = small_config(8, size, 0.2);
        let mut learner = Online::<f64>::new(config.clone(), channels).unwrap();
        let before = objective(&config, learner.dictionary(), unseen);
        train(&mut learner, seen, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
        let (after, best) = (objective(&config, learner.dictionary(), unseen), objective(&config, &truth, unseen));
        assert!(after < 1.02 * best, "{axes:?}: from {before} to {after}, and {best} with the planted filters");
    }
}

/// What an observer saw.
#[derive(Default)]
struct Recorder {
    steps: Vec<Progress>,
    objectives: Vec<f64>,
    passes: usize,
    /// Samples learned from and test objective.
    tests: Vec<(usize, f64)>,
    ended: Option<Ended>,
    stop_at: Option<usize>,
    sleep: Duration,
}

impl<T: Real> Observer<T> for Recorder {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        assert_eq!((run.progress.step, run.learner.step()), (step.step, step.step));
        self.steps.push(*run.progress);
        self.objectives.push(step.objective());
        self.tests.extend(run.test.map(|t| (run.progress.samples, t.objective)));
        std::thread::sleep(self.sleep);
        Ok(if self.stop_at == Some(step.step) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.passes += 1;
        assert_eq!((run.progress.pass, run.progress.visited), (self.passes, 0));
        self.tests.extend(run.test.map(|t| (run.progress.samples, t.objective)));
        Ok(ControlFlow::Continue(()))
    }
    fn end(&mut self, _: &Snapshot<'_, T>, outcome: &Outcome) -> Result<()> {
        assert!(self.ended.replace(outcome.ended).is_none(), "once");
        Ok(())
    }
}

fn run<T: Real>(config: &Config, samples: &[Sample<T>], schedule: &TrainOptions, observer: &mut Recorder) -> Outcome {
    let mut learner = Online::<T>::new(config.clone(), 1).unwrap();
    train(&mut learner, &samples, None, schedule, Progress::default(), observer).unwrap()
}

fn train_is_repeated_partial_fit<T: Real>() {
    let (config, samples) = tiny::<T>();
    let trained = learn(&config, &samples);
    let mut by_hand = Online::<T>::new(config.clone(), 1).unwrap();
    for pass in 0..config.passes {
        let order = visiting_order(samples.len(), config.seed, pass);
        for visit in order.chunks(config.batch_size) {
            let batch: Vec<_> = visit.iter().map(|&i| samples[i].clone()).collect();
            by_hand.partial_fit_batch(&batch).unwrap();
        }
    }
    assert_eq!(trained.step(), 8);
    assert_eq!(trained.step(), by_hand.step());
    assert_eq!(trained.dictionary(), by_hand.dictionary());
    assert_ne!(trained.dictionary(), Online::<T>::new(config, 1).unwrap().dictionary());
}

#[test]
fn train_is_repeated_partial_fit_bit_for_bit() {
    train_is_repeated_partial_fit::<f32>();
    train_is_repeated_partial_fit::<f64>();
}

#[test]
fn the_visiting_order_is_a_permutation_of_its_own_for_every_pass_and_seed() {
    for n in [1, 2, 10, 101] {
        let mut order = visiting_order(n, 5, 2);
        assert_eq!(order, visiting_order(n, 5, 2));
        order.sort_unstable();
        assert!(order.into_iter().eq(0..n));
    }
    assert_ne!(visiting_order(50, 5, 0), visiting_order(50, 5, 1));
    assert_ne!(visiting_order(50, 5, 0), visiting_order(50, 6, 0));
}

#[test]
fn threads_do_not_change_a_bit() {
    let (config, samples) = tiny::<f32>();
    let one = with_threads(1, || learn(&config, &samples).dictionary().clone());
    assert_eq!(one, with_threads(2, || learn(&config, &samples).dictionary().clone()));
    let other = Config { seed: 4, ..config };
    assert_ne!(one, learn(&other, &samples).dictionary().clone());
}

#[test]
fn single_precision_learns_the_same() {
    let (config, samples) = tiny::<f64>();
    let config = Config { tol: 1e-4, passes: 1, ..config };
    let (_, single) = tiny::<f32>();
    let (mut a, mut b) = (Recorder::default(), Recorder::default());
    run(&config, &samples, &TrainOptions::default(), &mut a);
    run(&config, &single, &TrainOptions::default(), &mut b);
    assert!(distance(&b.objectives, &a.objectives) < 1e-3, "{:?} {:?}", a.objectives, b.objectives);
}

/// Both samples of a batch reach the statistics: the dictionary is that of two separate absorptions with one update.
#[test]
fn a_batch_is_absorbed_whole() {
    use ocsc::update::{OcscPaper, Update};
    let (config, samples) = tiny::<f64>();
    let mut learner = Online::<f64>::new(config.clone(), 1).unwrap();
    let mut by_hand = learner.dictionary().clone();
    let step = learner.partial_fit_batch(&samples[..2]).unwrap();
    assert_eq!((step.step, step.own_codes.len()), (1, 2));
    let mut update = OcscPaper::new(config.update);
    for (x, coded) in samples.iter().zip(&step.own_codes) {
        update.absorb(x, &coded.code, &by_hand).unwrap();
    }
    update.update(&mut by_hand);
    assert_eq!(learner.dictionary(), &by_hand);
    assert!(step.dictionary_change > 0.0);
    assert!(relative(step.objective(), (step.own_codes[0].total() + step.own_codes[1].total()) / 2.0) < 1e-12);
}

#[test]
fn an_observer_sees_every_step_and_may_end_the_run() {
    let (config, samples) = tiny::<f32>();
    let mut all = Recorder::default();
    let outcome = run(&config, &samples, &TrainOptions::default(), &mut all);
    assert_eq!((outcome.ended, all.ended), (Ended::Finished, Some(Ended::Finished)));
    assert_eq!((outcome.progress.pass, outcome.progress.step, outcome.progress.samples), (2, 8, 14));
    assert_eq!(all.passes, 2);
    let seen: Vec<_> = all.steps.iter().map(|p| (p.pass, p.visited, p.samples)).collect();
    assert_eq!(seen, [(0, 2, 2), (0, 4, 4), (0, 6, 6), (0, 7, 7), (1, 2, 9), (1, 4, 11), (1, 6, 13), (1, 7, 14)]);

    let mut some = Recorder { stop_at: Some(3), ..Recorder::default() };
    let outcome = run(&config, &samples, &TrainOptions::default(), &mut some);
    assert_eq!((outcome.ended, some.ended, outcome.progress.step), (Ended::Stopped, Some(Ended::Stopped), 3));
    assert_eq!(some.objectives, all.objectives[..3]);
}

#[test]
fn no_passes_learn_nothing() {
    let (config, samples) = tiny::<f32>();
    let config = Config { passes: 0, ..config };
    let learner = learn(&config, &samples);
    assert_eq!((learner.step(), learner.dictionary()), (0, Online::<f32>::new(config, 1).unwrap().dictionary()));
}

#[test]
fn the_time_limit_ends_a_run_after_the_step_that_passes_it() {
    let (config, samples) = tiny::<f32>();
    let schedule = TrainOptions { time_limit: Some(Duration::ZERO), ..TrainOptions::default() };
    let outcome = run(&config, &samples, &schedule, &mut Recorder::default());
    assert_eq!((outcome.ended, outcome.progress.step), (Ended::TimeLimit, 1));
}

#[test]
fn the_stopping_rule_ends_a_run() {
    let (config, samples) = tiny::<f64>();
    let config = Config { passes: 1000, ..config };
    let schedule = TrainOptions { stop_tol: Some(0.05), ..TrainOptions::default() };
    let outcome = run(&config, &samples, &schedule, &mut Recorder::default());
    assert_eq!(outcome.ended, Ended::Converged);
    assert!((2..1000).contains(&outcome.progress.pass), "{}", outcome.progress.pass);
    // One pass has nothing to compare its codes with.
    let config = Config { passes: 1, ..config };
    let schedule = TrainOptions { stop_tol: Some(1e9), ..TrainOptions::default() };
    assert_eq!(run(&config, &samples, &schedule, &mut Recorder::default()).ended, Ended::Finished);
}

#[test]
fn observers_are_not_charged() {
    let (config, samples) = tiny::<f32>();
    let config = Config { passes: 1, batch_size: 4, ..config };
    let mut observer = Recorder { sleep: Duration::from_millis(1500), ..Recorder::default() };
    let outcome = run(&config, &samples, &TrainOptions::default(), &mut observer);
    assert_eq!(outcome.progress.step, 2);
    assert!(outcome.progress.seconds < 1.5, "{}", outcome.progress.seconds);
    assert!(outcome.progress.seconds > 0.0);
}

#[test]
fn reading_and_evaluation_are_not_charged() {
    /// Takes half a second to read a sample.
    struct Slow(Vec<Sample<f32>>);
    impl Samples<f32> for Slow {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn get(&self, index: usize) -> Result<Sample<f32>> {
            std::thread::sleep(Duration::from_millis(500));
            Ok(self.0[index].clone())
        }
    }
    let (config, samples) = tiny::<f32>();
    let config = Config { passes: 1, ..config };
    let slow = Slow(samples[..2].to_vec());
    let mut learner = Online::<f32>::new(config, 1).unwrap();
    let outcome =
        train(&mut learner, &slow, Some(&slow), &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
    // Four readings: two to learn, and two to evaluate.
    assert!(outcome.progress.seconds < 1.5, "{}", outcome.progress.seconds);
    assert!(outcome.test.unwrap().seconds < 1.5);
}

/// Samples of which some cannot be read.
struct Damaged {
    whole: Vec<Sample<f64>>,
    bad: Vec<usize>,
}

impl Samples<f64> for Damaged {
    fn len(&self) -> usize {
        self.whole.len()
    }

    fn get(&self, index: usize) -> Result<Sample<f64>> {
        match self.bad.contains(&index) {
            true => Err(ocsc::Error::Source(format!("sample {index} is damaged"))),
            false => Ok(self.whole[index].clone()),
        }
    }
}

/// What cannot be read is left out of its batch, as if the others had come alone, and is told once.
#[test]
fn unreadable_samples_are_passed_over() {
    #[derive(Default)]
    struct Told(Vec<String>);
    impl Observer<f64> for Told {
        fn skipped(&mut self, error: &ocsc::Error) -> Result<()> {
            self.0.push(error.to_string());
            Ok(())
        }
    }
    for batch_size in [1, 3] {
        let config = Config { batch_size, passes: 3, method: Method::Ocsc, ..small_config(4, &[5, 5], 0.3) };
        let mut samples = Damaged { whole: planted::<f64>(4, 16, 14, 0.01, 2).0, bad: vec![3, 8, 9] };
        let mut by_hand = Online::new(config.clone(), 1).unwrap();
        for pass in 0..3 {
            for visit in visiting_order(14, config.seed, pass).chunks(batch_size) {
                let batch: Vec<Sample<f64>> = visit.iter().filter_map(|&i| samples.get(i).ok()).collect();
                if !batch.is_empty() {
                    by_hand.partial_fit_batch(&batch).unwrap();
                }
            }
        }
        let mut learner = Online::new(config.clone(), 1).unwrap();
        let mut told = Told::default();
        let mut schedule = TrainOptions::default();
        let run = train(&mut learner, &samples, Some(&samples), &schedule, Progress::default(), &mut told).unwrap();
        assert_eq!(learner.dictionary(), by_hand.dictionary());
        assert_eq!((run.progress.samples, run.progress.skipped), (3 * 11, 3 * 3));
        assert_eq!(run.progress.unusable, 3);
        let test = run.test.unwrap();
        assert_eq!((test.samples, test.skipped), (11, 3));
        // Once while learning, and once in each of three evaluations.
        told.0.sort();
        let expected = [3, 8, 9].map(|i| vec![format!("sample {i} is damaged"); 4]).concat();
        assert_eq!(told.0, expected);

        schedule.strict = true;
        let strict = train(&mut learner, &samples, None, &schedule, Progress::default(), &mut Silent);
        assert!(strict.unwrap_err().to_string().ends_with("is damaged"));
        samples.bad = (0..14).collect();
        schedule.strict = false;
        let none = train(&mut learner, &samples, None, &schedule, Progress::default(), &mut Silent).unwrap_err();
        assert!(none.to_string().starts_with("none of 14 samples"), "{none}");
    }
}

#[test]
fn an_unusable_sample_counts_once_wherever_the_run_was_resumed() {
    struct Until(usize);
    impl Observer<f64> for Until {
        fn step(&mut self, run: &Snapshot<'_, f64>, _step: &Step<f64>) -> Result<ControlFlow<()>> {
            Ok(if run.progress.step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        }
    }
    let config = Config { passes: 2, method: Method::Ocsc, ..small_config(4, &[5, 5], 0.3) };
    let samples = Damaged { whole: planted::<f64>(4, 16, 6, 0.01, 2).0, bad: vec![1, 4] };
    for stop in 1..=8 {
        let mut learner = Online::new(config.clone(), 1).unwrap();
        let schedule = TrainOptions::default();
        let part = train(&mut learner, &samples, None, &schedule, Progress::default(), &mut Until(stop)).unwrap();
        let whole = train(&mut learner, &samples, None, &schedule, part.progress, &mut Silent).unwrap();
        assert_eq!((whole.progress.skipped, whole.progress.unusable), (4, 2), "stopped after step {stop}");
    }
}

/// Numbers whose squares would overflow are refused before anything is absorbed, so the state stays good.
#[test]
fn numbers_that_would_overflow_leave_the_state_as_it_was() {
    let (mut samples, _) = planted::<f32>(4, 16, 3, 0.01, 2);
    let config = Config { method: Method::Ocsc, ..small_config(4, &[5, 5], 0.3) };
    let fit = |samples: &[Sample<f32>]| {
        let mut learner = Online::new(config.clone(), 1).unwrap();
        let refused = samples.iter().map(|x| learner.partial_fit(x)).filter(Result::is_err).count();
        (learner.dictionary().clone(), refused)
    };
    let (good, none) = fit(&samples);
    assert_eq!(none, 0);
    samples.insert(1, samples[0].map(|v| 1e30 * v));
    assert_eq!(fit(&samples), (good, 1));
}
