//! Runs that are stopped within a batch or an evaluation: nothing is lost, and going on gives the same bits.

use crate::common::*;
use ocsc::checkpoint::{from_bytes, to_bytes};
use ocsc::coder::{ActiveSet, Coder, Status};
use ocsc::learner::{Step, initial, learner};
use ocsc::monitor::{Monitor, Round, Silent};
use ocsc::settings::{ActiveSetConfig, Boundary};
use ocsc::train::{Ended, Outcome, Progress, Stream, TrainOptions, evaluate, evaluate_by, refuse, train, train_stream};
use ocsc::train::{Observer, Snapshot};
use ocsc::{Config, Error, Learner, Method, Real, Result, Sample, Samples};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Wants no more once so many samples are coded.
#[derive(Default)]
pub(crate) struct Enough {
    pub(crate) after: usize,
    pub(crate) coded: AtomicUsize,
}

impl Monitor for Enough {
    fn keep_going(&self) -> bool {
        self.coded.load(SeqCst) < self.after
    }

    fn coded(&self) {
        self.coded.fetch_add(1, SeqCst);
    }
}

/// Notes what it is told, in order.
struct Notes {
    monitor: Arc<Enough>,
    told: Vec<String>,
}

impl Notes {
    fn stopping_after(samples: usize) -> Self {
        Notes { monitor: Arc::new(Enough { after: samples, ..Enough::default() }), told: Vec::new() }
    }
}

impl<T: Real> Observer<T> for Notes {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.told.push(format!("step {}{}", step.step, if run.test.is_some() { " tested" } else { "" }));
        Ok(ControlFlow::Continue(()))
    }

    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.told.push(format!("pass {}{}", run.progress.pass, if run.test.is_some() { " tested" } else { "" }));
        Ok(ControlFlow::Continue(()))
    }

    fn before_test(&mut self, run: &Snapshot<'_, T>, step: Option<&Step<T>>) -> Result<()> {
        assert_eq!(step.map(|step| step.step), step.map(|_| run.progress.step));
        self.told.push(format!("before test at {}", run.progress.samples));
        Ok(())
    }

    fn testing(&mut self, done: usize, of: usize) {
        self.told.push(format!("testing {done}/{of}"));
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        self.monitor.clone()
    }

    fn end(&mut self, run: &Snapshot<'_, T>, _: &Outcome) -> Result<()> {
        self.told.push(if run.test.is_some() { "end tested".to_owned() } else { "end".to_owned() });
        Ok(())
    }
}

fn setting(method: Method) -> (Config, Vec<Sample<f64>>) {
    let (samples, _) = planted::<f64>(3, 12, 9, 0.05, 21);
    (Config { method, passes: 2, batch_size: 4, ..small_config(4, &[3, 3], 0.1) }, samples)
}

fn started(config: &Config) -> Box<dyn Learner<f64>> {
    learner(config.clone(), initial(config, 1).unwrap()).unwrap()
}

/// The learner and the place where a run was stopped, through a checkpoint.
fn resumed(learner: &dyn Learner<f64>, progress: &Progress) -> (Box<dyn Learner<f64>>, Progress) {
    from_bytes(&to_bytes(learner, Some(progress)).unwrap(), Path::new("stopped")).unwrap().resume().unwrap()
}

/// Batches of 4, 4 and 1: the sixth sample of the first or of the second pass is in the middle of a batch.
#[test]
fn a_batch_that_is_stopped_is_not_learned_and_the_run_goes_on_bit_for_bit() {
    for method in Method::ALL {
        let (config, samples) = setting(method);
        let mut whole = started(&config);
        train(whole.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
        for (after, learned, step) in [(2, 0, 0), (6, 4, 1), (15, 13, 4)] {
            let (mut learner, mut notes) = (started(&config), Notes::stopping_after(after));
            let schedule = TrainOptions::default();
            let outcome = train(learner.as_mut(), &samples, None, &schedule, Progress::default(), &mut notes).unwrap();
            assert_eq!(outcome.ended, Ended::Stopped, "{method}");
            let progress = outcome.progress;
            assert_eq!((progress.samples, progress.step, learner.step()), (learned, step, step), "{method}");
            assert_eq!(progress.visited, learned % 9, "{method}");
            assert!(notes.monitor.coded.load(SeqCst) < after + 4, "{method}: it stopped within the batch");
            let (mut learner, progress) = resumed(learner.as_ref(), &progress);
            let outcome = train(learner.as_mut(), &samples, None, &schedule, progress, &mut Silent).unwrap();
            assert_eq!((outcome.ended, outcome.progress.samples), (Ended::Finished, 18), "{method}");
            assert_eq!(learner.dictionary(), whole.dictionary(), "{method}, stopped after {after}");
        }
    }
}

/// The pass stays open, so the resumed run makes the evaluation that is missing, and nothing else.
#[test]
fn an_evaluation_that_is_stopped_is_made_after_resuming() {
    let (config, samples) = setting(Method::Ocsc);
    for (test_every, told) in [(None, "pass 2 tested"), (Some(5), "pass 2 tested")] {
        let schedule = TrainOptions { test_every, ..TrainOptions::default() };
        let mut whole = started(&config);
        let mut notes = Notes::stopping_after(usize::MAX);
        let expected = train(whole.as_mut(), &samples, Some(&samples), &schedule, Progress::default(), &mut notes);
        let all = notes.monitor.coded.load(SeqCst);
        // Within the last evaluation.
        let (mut learner, mut notes) = (started(&config), Notes::stopping_after(all - 5));
        let outcome =
            train(learner.as_mut(), &samples, Some(&samples), &schedule, Progress::default(), &mut notes).unwrap();
        assert_eq!((outcome.ended, outcome.test), (Ended::Stopped, None));
        assert_eq!((outcome.progress.pass, outcome.progress.visited), (1, 9));
        assert_eq!(learner.dictionary(), whole.dictionary());
        let (mut learner, progress) = resumed(learner.as_ref(), &outcome.progress);
        let mut notes = Notes::stopping_after(usize::MAX);
        let outcome = train(learner.as_mut(), &samples, Some(&samples), &schedule, progress, &mut notes).unwrap();
        assert_eq!(outcome.ended, Ended::Finished);
        let timeless =
            |test: Option<ocsc::train::Evaluation>| test.map(|t| ocsc::train::Evaluation { seconds: 0.0, ..t });
        assert_eq!(timeless(outcome.test), timeless(expected.unwrap().test));
        assert_eq!(notes.told.iter().filter(|t| t.starts_with("step")).count(), 0, "{:?}", notes.told);
        assert!(notes.told.contains(&told.to_owned()), "{:?}", notes.told);
    }
}

/// Every step is told, also the one whose evaluation was stopped.
#[test]
fn the_observer_may_save_before_an_evaluation_and_hears_how_far_it_is() {
    let (config, samples) = setting(Method::Ocsc);
    let (config, test) = (Config { passes: 1, ..config }, &samples[..2].to_vec());
    let schedule = TrainOptions { test_every: Some(8), ..TrainOptions::default() };
    let (mut learner, mut notes) = (started(&config), Notes::stopping_after(usize::MAX));
    train(learner.as_mut(), &samples, Some(test), &schedule, Progress::default(), &mut notes).unwrap();
    let testing = ["testing 0/2", "testing 1/2", "testing 2/2"];
    let first = ["step 1", "before test at 8"].into_iter().chain(testing).chain(["step 2 tested"]);
    let last = ["step 3", "before test at 9"].into_iter().chain(testing).chain(["pass 1 tested", "end tested"]);
    assert!(notes.told.iter().eq(first.clone().chain(last)), "{:?}", notes.told);

    let (mut learner, mut notes) = (started(&config), Notes::stopping_after(9));
    let outcome = train(learner.as_mut(), &samples, Some(test), &schedule, Progress::default(), &mut notes).unwrap();
    assert_eq!((outcome.ended, outcome.progress.samples), (Ended::Stopped, 8));
    assert_eq!(notes.told[notes.told.len() - 2..], ["step 2", "end"]);
}

/// With `test_every` the last evaluation is not that of an earlier dictionary.
#[test]
fn the_final_model_is_evaluated_however_the_run_ends() {
    let (config, samples) = setting(Method::Ocsc);
    let config = Config { batch_size: 1, ..config };
    let limit = Some(std::time::Duration::ZERO);
    let time_limit = TrainOptions { test_every: Some(5), time_limit: limit, ..TrainOptions::default() };
    let converged = TrainOptions { test_every: Some(7), stop_tol: Some(1e9), ..TrainOptions::default() };
    let all = TrainOptions { test_every: Some(5), ..TrainOptions::default() };
    // A pass whose last step was evaluated is not evaluated again.
    let by_chance = TrainOptions { test_every: Some(9), ..TrainOptions::default() };
    for (schedule, ended, tested_at) in [
        (time_limit, Ended::TimeLimit, vec![1]),
        (converged, Ended::Converged, vec![7, 14, 18]),
        (all, Ended::Finished, vec![5, 10, 15, 18]),
        (by_chance, Ended::Finished, vec![9, 18]),
    ] {
        let config = Config { passes: if ended == Ended::Converged { 3 } else { 2 }, ..config.clone() };
        let (mut learner, mut notes) = (started(&config), Notes::stopping_after(usize::MAX));
        let test = &samples[..1].to_vec();
        let outcome =
            train(learner.as_mut(), &samples, Some(test), &schedule, Progress::default(), &mut notes).unwrap();
        assert_eq!(outcome.ended, ended);
        let at = |told: &String| told.strip_prefix("before test at ").map(|n| n.parse::<usize>().unwrap());
        assert_eq!(notes.told.iter().filter_map(at).collect::<Vec<_>>(), tested_at, "{ended:?}");
        let after = evaluate(&config, learner.dictionary(), test, ocsc::train::TEST_TOL, &mut refuse).unwrap();
        assert_eq!(outcome.test.unwrap().objective, after.objective, "{ended:?}");
        assert_eq!(notes.told.last().unwrap(), "end tested");
    }
}

/// The grid of `test_seconds` is passed by a step that changes the dictionary, and the whole set comes last.
#[test]
fn a_subset_is_evaluated_on_a_grid_of_time_and_the_whole_set_at_the_end() {
    let (config, samples) = setting(Method::Ocsc);
    let config = Config { batch_size: 3, passes: 2, ..config };
    let grid = |seconds| TrainOptions {
        test_seconds: Some(std::time::Duration::from_secs_f64(seconds)),
        test_subset: Some(2),
        ..TrainOptions::default()
    };
    for (seconds, expected) in [(1e-9, vec![3, 6, 9, 12, 15, 18, 18]), (1e9, vec![18, 18])] {
        let (mut learner, mut notes) = (started(&config), Notes::stopping_after(usize::MAX));
        let (test, begun) = (&samples[..4].to_vec(), Progress::default());
        let outcome = train(learner.as_mut(), &samples, Some(test), &grid(seconds), begun, &mut notes).unwrap();
        let at = |told: &String| told.strip_prefix("before test at ").map(|n| n.parse::<usize>().unwrap());
        assert_eq!(notes.told.iter().filter_map(at).collect::<Vec<_>>(), expected, "{seconds}");
        assert_eq!(outcome.test.unwrap().samples, 4);
    }
}

/// Samples that come once more in every pass.
struct Again(Vec<Sample<f64>>, usize);

impl Stream<f64> for Again {
    fn take(&mut self, n: usize) -> Result<Option<Vec<Sample<f64>>>> {
        let from = self.1.min(self.0.len());
        self.1 = (from + n).min(self.0.len());
        Ok(Some(self.0[from..self.1].to_vec()))
    }

    fn rewind(&mut self) -> Result<()> {
        self.1 = 0;
        Ok(())
    }
}

#[test]
fn a_stream_is_evaluated_when_asked_and_at_the_end_and_may_be_stopped() {
    let (config, samples) = setting(Method::Ocsc);
    let test = &samples[..2].to_vec();
    for (test_every, expected) in [(Some(8), vec![8, 17, 18]), (Some(9), vec![9, 18]), (None, vec![9, 18])] {
        let schedule = TrainOptions { test_every, ..TrainOptions::default() };
        let (mut learner, mut notes) = (started(&config), Notes::stopping_after(usize::MAX));
        let mut stream = Again(samples.clone(), 0);
        let begun = Progress::default();
        let outcome = train_stream(learner.as_mut(), 2, &mut stream, Some(test), &schedule, begun, &mut notes).unwrap();
        let at = |told: &String| told.strip_prefix("before test at ").map(|n| n.parse::<usize>().unwrap());
        assert_eq!(notes.told.iter().filter_map(at).collect::<Vec<_>>(), expected, "{test_every:?}");
        assert!(outcome.test.is_some());
    }
    for (after, told) in [(6, ["step 1", "end"]), (9, ["testing 0/2", "end"])] {
        let (mut learner, mut notes) = (started(&config), Notes::stopping_after(after));
        let (mut stream, begun) = (Again(samples.clone(), 0), Progress::default());
        let schedule = TrainOptions::default();
        let outcome = train_stream(learner.as_mut(), 2, &mut stream, Some(test), &schedule, begun, &mut notes).unwrap();
        assert_eq!((outcome.ended, outcome.progress.pass), (Ended::Stopped, 0));
        assert_eq!(notes.told[notes.told.len() - 2..], told, "{:?}", notes.told);
    }
}

/// Counts how often each sample is read.
struct Counted(Vec<Sample<f64>>, Mutex<Vec<usize>>);

impl Samples<f64> for Counted {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Sample<f64>> {
        self.1.lock().unwrap()[index] += 1;
        Ok(self.0[index].clone())
    }
}

/// The peak of the PSNR is the range of all samples, which is not known before the last one is read.
#[test]
fn an_evaluation_reads_every_sample_once() {
    let (config, samples) = setting(Method::Ocsc);
    let dictionary = initial(&config, 1).unwrap();
    let counted = Counted(samples.clone(), Mutex::new(vec![0; samples.len()]));
    let evaluation = evaluate(&config, &dictionary, &counted, 1e-3, &mut refuse).unwrap();
    assert_eq!(*counted.1.lock().unwrap(), vec![1; samples.len()]);
    let peak = ocsc::metrics::range(&samples).unwrap();
    assert_eq!(evaluation.psnr_peak, peak);
    let mut coder =
        ActiveSet::new(&dictionary, config.beta, 1e-3, Boundary::Circular, ActiveSetConfig::default()).unwrap();
    let psnr = |x: &Sample<f64>| {
        let code = coder.code(x, None).unwrap().code;
        ocsc::metrics::psnr(x, &code.reconstruct(&dictionary, config.boundary).unwrap(), peak).unwrap()
    };
    assert_eq!(evaluation.psnr, samples.iter().map(psnr).sum::<f64>() / samples.len() as f64);

    let enough = Enough { after: 4, ..Enough::default() };
    let alone = ocsc::comm::Solo;
    let stopped = evaluate_by(&alone, &config, &dictionary, &samples, 1e-3, &enough, &mut refuse);
    assert!(matches!(stopped, Err(Error::Stopped)));
}

/// A sample takes rounds, of which the monitor hears and which it may end.
#[test]
fn a_coder_tells_its_rounds_and_stops_within_a_sample() {
    struct Rounds(Mutex<Vec<Round>>, usize);
    impl Monitor for Rounds {
        fn keep_going(&self) -> bool {
            self.0.lock().unwrap().len() < self.1
        }
        fn round(&self, round: &Round) {
            self.0.lock().unwrap().push(*round);
        }
    }
    let (config, samples) = setting(Method::Ocsc);
    let dictionary = initial::<f64>(&config, 1).unwrap();
    let mut coder = ocsc::learner::coder(&config, &dictionary, 1e-9).unwrap();
    let rounds = Rounds(Mutex::default(), usize::MAX);
    let coded = coder.code_all(&samples[..1], &rounds).unwrap();
    let told = rounds.0.into_inner().unwrap();
    assert!(told.len() >= 3 && told.len() == coded[0].iterations, "{told:?}");
    assert!(told.iter().map(|r| r.round).eq(1..=told.len()) && told.iter().all(|r| r.values == 144), "{told:?}");
    assert!(told[told.len() - 1].gap < told[0].gap, "{told:?}");
    let rounds = Rounds(Mutex::default(), 2);
    assert!(matches!(coder.code_all(&samples[..1], &rounds), Err(Error::Stopped)));
    assert_eq!(rounds.0.into_inner().unwrap().len(), 2);
}

/// Samples of which one cannot be read, for this reason.
struct Broken(Vec<Sample<f64>>, usize, i32);

impl Samples<f64> for Broken {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Sample<f64>> {
        match index == self.1 {
            true => Err(Error::io(Path::new("disk/7.png"), std::io::Error::from_raw_os_error(self.2))),
            false => Ok(self.0[index].clone()),
        }
    }
}

/// No permission, no file: the sample is passed over. A broken disk, no memory, too many open files: nothing is.
#[cfg(unix)]
#[test]
fn a_failing_machine_ends_a_run_and_a_failing_file_does_not() {
    let (config, samples) = setting(Method::Ocsc);
    let (eperm, enoent, eio, enomem, enfile, emfile) = (1, 2, 5, 12, 23, 24);
    for (reason, is_system) in
        [(eperm, false), (enoent, false), (eio, true), (enomem, true), (enfile, true), (emfile, true)]
    {
        let broken = Broken(samples.clone(), 7, reason);
        let mut learner = started(&config);
        let schedule = TrainOptions::default();
        let ran = train(learner.as_mut(), &broken, None, &schedule, Progress::default(), &mut Silent);
        let tested =
            train(started(&config).as_mut(), &samples, Some(&broken), &schedule, Progress::default(), &mut Silent);
        if is_system {
            for error in [ran.unwrap_err(), tested.unwrap_err()] {
                assert!(error.is_system_failure() && error.to_string().contains("7.png"), "{error}");
            }
        } else {
            assert_eq!((ran.unwrap().progress.skipped, tested.unwrap().test.unwrap().skipped), (2, 1), "{reason}");
        }
    }
}

/// A step's objective per value does not depend on how large the samples are.
#[test]
fn the_objective_per_value_is_over_all_observed_values() {
    let (config, samples) = setting(Method::Ocsc);
    let step = started(&config).learn(&[0, 1], &samples[..2], &Silent).unwrap();
    let total: f64 = step.own_codes.iter().map(|c| c.total()).sum();
    assert!(relative(step.objective_per_value(), total / 288.0) < 1e-12);
    let seen = (0..144).map(|i| i % 2 == 0).collect();
    let half = Sample::masked(samples[0].shape(), samples[0].data().to_vec(), seen).unwrap();
    let step = started(&config).learn(&[0], &[half], &Silent).unwrap();
    assert!(relative(step.objective_per_value(), step.own_codes[0].total() / 72.0) < 1e-12);
}

/// A clock that goes on by a second whenever somebody looks at it.
#[derive(Default)]
struct Ticking(AtomicUsize);

impl Monitor for Ticking {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(1, SeqCst) as u64)
    }
}

#[test]
fn coders_are_told_the_time_by_the_monitor() {
    let d = filters::<f64>(4, [1, 3, 3], 1);
    let x = noise::<f64>([1, 12, 12], 2);
    for (limit, rounds) in [(0.5, 0), (2.0, 1), (2.5, 2)] {
        let config = ActiveSetConfig { time_limit: Some(limit), ..ActiveSetConfig::default() };
        let mut coder = ActiveSet::new(&d, 0.1, 1e-9, Boundary::Circular, config).unwrap();
        let coded = coder.code_all(std::slice::from_ref(&x), &Ticking::default()).unwrap().remove(0);
        assert_eq!((coded.status, coded.iterations), (Status::TimeLimit, rounds), "{limit} s");
        assert!(coded.gap > 0.0 && coded.gap.is_finite());
    }
}
