//! Teams, made of threads that exchange bytes through shared memory: the same answers as one process alone.

use crate::common::*;
use crate::stop::Enough;
use ocsc::checkpoint::{from_bytes, to_bytes};
use ocsc::comm::{Comm, Shard, Solo, all_gather, all_gather_results, broadcast};
use ocsc::learner::{Distributed, Step, initial};
use ocsc::monitor::{Monitor, Silent};
use ocsc::settings::Boundary;
use ocsc::train::{Ended, Evaluation, Outcome, Progress, TrainOptions, evaluate, evaluate_by, refuse, train};
use ocsc::train::{Observer, Snapshot};
use ocsc::{Config, Dictionary, Error, Learner, Online, Real, Result, Sample, Samples, Shape};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};

/// A member of a team of threads.
struct Thread {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    barrier: Barrier,
    slots: Vec<Mutex<Vec<u8>>>,
}

impl Thread {
    /// Everybody's bytes.
    fn exchange(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        *self.shared.slots[self.rank].lock().unwrap() = mine.to_vec();
        self.shared.barrier.wait();
        let all = self.shared.slots.iter().map(|slot| slot.lock().unwrap().clone()).collect();
        self.shared.barrier.wait();
        all
    }
}

impl Comm for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.slots.len()
    }

    fn all_gather(&self, mine: &[u8], lengths: &[usize]) -> Vec<u8> {
        let all = self.exchange(mine);
        assert!(all.iter().map(Vec::len).eq(lengths.iter().copied()), "lengths as announced");
        all.concat()
    }

    fn broadcast(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.exchange(bytes)[0]);
    }

    fn all_reduce(&self, values: &mut [i64]) {
        let all = self.exchange(bytemuck::cast_slice(values));
        values.fill(0);
        for bytes in all {
            let numbers = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned::<i64>);
            values.iter_mut().zip(numbers).for_each(|(v, n)| *v += n);
        }
    }
}

/// What every member of a team of so many does.
fn together<R: Send>(size: usize, work: impl Fn(Arc<dyn Comm>) -> R + Sync) -> Vec<R> {
    let slots = (0..size).map(|_| Mutex::new(Vec::new())).collect();
    let shared = Arc::new(Shared { barrier: Barrier::new(size), slots });
    std::thread::scope(|scope| {
        let member = |rank| {
            let (work, shared) = (&work, shared.clone());
            scope.spawn(move || work(Arc::new(Thread { rank, shared })))
        };
        let threads: Vec<_> = (0..size).map(member).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Samples of different sizes, some with holes, one that cannot be read.
struct Mixed<T>(Vec<Option<Sample<T>>>);

impl<T: Real> Samples<T> for Mixed<T> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Sample<T>> {
        self.0[index].clone().ok_or_else(|| Error::Source(format!("sample {index} is damaged")))
    }

    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        self.0[index].as_ref().map(|sample| sample.shape().spatial())
    }
}

fn mixed<T: Real>(n: usize, bad: &[usize]) -> Mixed<T> {
    let sample = |i: usize| {
        let shape = Shape::image(12 + 5 * (i % 4), 10 + 7 * (i % 3));
        let data: Vec<T> = normal(shape.len(), 100 + i as u64);
        let mask = |i: usize| (0..shape.len()).map(|p| !(p * 7 + i).is_multiple_of(5)).collect();
        if i % 3 == 1 { Sample::masked(shape, data, mask(i)) } else { Sample::new(shape, data) }
    };
    Mixed((0..n).map(|i| (!bad.contains(&i)).then(|| sample(i).unwrap())).collect())
}

fn config(boundary: Boundary, batch_size: usize) -> Config {
    let base = Config { n_filters: 9, filter_shape: vec![4, 4], beta: 1.5, seed: 5, passes: 3, ..Config::default() };
    Config { boundary, batch_size, ..base }
}

/// What a run told: objectives, gaps and non-zeros of all steps, evaluations, samples passed over.
#[derive(Clone, Default)]
struct Diary {
    steps: Vec<(usize, usize, f64, f64, f64)>,
    tests: Vec<Evaluation>,
    skipped: Vec<String>,
    stop_at: Option<usize>,
    monitor: Option<Arc<Enough>>,
}

impl<T: Real> Observer<T> for Diary {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        let progress = run.progress;
        self.steps.push((progress.samples, progress.skipped, step.objective(), step.gap(), step.nonzeros()));
        Ok(if self.stop_at == Some(step.step) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.tests.extend(run.test.map(|test| Evaluation { seconds: 0.0, ..test.clone() }));
        Ok(ControlFlow::Continue(()))
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        match self.monitor.clone() {
            Some(monitor) => monitor,
            None => Arc::new(Silent),
        }
    }

    fn skipped(&mut self, error: &Error) -> Result<()> {
        self.skipped.push(error.to_string());
        Ok(())
    }
}

type Ran<T> = (Result<Outcome>, Dictionary<T>, Diary, Vec<u8>);

/// A run of one process.
fn alone<T: Real>(config: &Config, samples: &dyn Samples<T>, schedule: &TrainOptions) -> Ran<T> {
    let dictionary = initial(config, 1).unwrap();
    let mut learner = Online::<T>::with_dictionary(config.clone(), dictionary).unwrap();
    ran(&mut learner, samples, schedule, Progress::default(), Diary::default())
}

fn ran<T: Real>(
    learner: &mut dyn Learner<T>,
    samples: &dyn Samples<T>,
    schedule: &TrainOptions,
    progress: Progress,
    mut diary: Diary,
) -> Ran<T> {
    let test = mixed::<T>(4, &[]);
    let outcome = train(learner, samples, Some(&test), schedule, progress, &mut diary);
    let saved = outcome.as_ref().map_or(Vec::new(), |o| to_bytes(learner, Some(&timeless(o.progress))).unwrap());
    (outcome, learner.dictionary().clone(), diary, saved)
}

fn timeless(progress: Progress) -> Progress {
    Progress { seconds: 0.0, cpu_seconds: 0.0, waiting_seconds: 0.0, ..progress }
}

/// The same run by a team.
fn by_team<T: Real>(
    size: usize,
    reproducible: bool,
    config: &Config,
    samples: &dyn Samples<T>,
    schedule: &TrainOptions,
) -> Vec<Ran<T>> {
    together(size, |comm| {
        let dictionary = initial(config, 1).unwrap();
        let learner = Distributed::<T>::with_dictionary(config.clone(), dictionary, comm).unwrap();
        ran(&mut learner.reproducible(reproducible), samples, schedule, Progress::default(), Diary::default())
    })
}

/// The heart of it: whatever the boundary, the batch, the number of members, with mixed sizes, masks and a sample that cannot
/// be read, every member ends with the statistics and the dictionary of one process, and has told the same.
#[test]
fn a_reproducible_team_learns_what_one_process_learns_bit_for_bit() {
    let samples = mixed::<f32>(11, &[4]);
    for (boundary, batch) in [(Boundary::Circular, 4), (Boundary::Zero, 3), (Boundary::Free, 11), (Boundary::Zero, 1)] {
        let config = config(boundary, batch);
        let (outcome, dictionary, diary, saved) = alone(&config, &samples, &TrainOptions::default());
        assert_eq!(diary.skipped, ["sample 4 is damaged"]);
        assert_eq!((diary.tests.len(), outcome.unwrap().progress.samples), (3, 30));
        for size in if batch == 4 { &[1, 2, 3, 13][..] } else { &[2, 4] }.iter().copied() {
            let mut skipped = Vec::new();
            for (rank, ran) in by_team(size, true, &config, &samples, &TrainOptions::default()).into_iter().enumerate()
            {
                let here = format!("{boundary:?}, batch {batch}, rank {rank} of {size}");
                assert_eq!(ran.0.unwrap().ended, Ended::Finished, "{here}");
                assert!(ran.1 == dictionary, "{here}");
                assert_eq!((&ran.2.steps, &ran.2.tests), (&diary.steps, &diary.tests), "{here}");
                assert!(ran.3 == saved, "{here}: the checkpoint");
                skipped.extend(ran.2.skipped);
            }
            assert!(!skipped.is_empty() && skipped.iter().all(|s| s == "sample 4 is damaged"), "{skipped:?}");
        }
    }
}

/// Both ways that statistics travel: as codes while their pairs are few, and as sums. What one
/// process learns, to rounding; and not a bit depends on the number of members.
#[test]
fn any_team_learns_the_same() {
    let samples = mixed::<f64>(6, &[]);
    for (beta, filters) in [(2.5, 9), (0.1, 2)] {
        let config = Config { beta, n_filters: filters, passes: 2, ..config(Boundary::Circular, 4) };
        let (_, dictionary, diary, _) = alone(&config, &samples, &TrainOptions::default());
        // Pairs of atoms of the four samples of a batch, of 12x10 to 27x24 pixels, that are closer than 4 in each direction;
        // phi has 8 times 7x7 lags for each block of 8 filters that is not before the row's own.
        let pairs = |positions: f64| diary.steps.iter().map(move |step| 4.0 * step.4 * step.4 / 2.0 * 49.0 / positions);
        let (phi, largest) = ([2.0, 17.0][usize::from(filters == 9)] * 8.0 * 49.0, pairs(120.0).fold(0.0, f64::max));
        let smallest = pairs(648.0).fold(f64::INFINITY, f64::min);
        assert!(if beta > 1.0 { largest < phi / 2.0 } else { smallest > phi / 2.0 }, "{smallest} to {largest}, {phi}");
        let mut first: Option<Ran<f64>> = None;
        for size in [1, 2, 3, 4, 7] {
            for ran in by_team(size, false, &config, &samples, &TrainOptions::default()) {
                let change = ran.1.relative_change(&dictionary);
                assert!(change < 1e-9, "beta {beta}, {size} members: {change:e}");
                assert_eq!(ran.2.steps.len(), diary.steps.len());
                let first = first.get_or_insert_with(|| (Err(none()), ran.1.clone(), ran.2.clone(), ran.3.clone()));
                assert!(ran.1 == first.1 && ran.3 == first.3 && ran.2.steps == first.2.steps, "{size} members");
            }
        }
    }
}

fn none() -> Error {
    Error::Source("none".into())
}

/// Filters that die are replaced by the patches that one process would take.
#[test]
fn a_team_reseeds_as_one_process() {
    let samples = mixed::<f32>(24, &[]);
    // Filters of zeros are used by no code, and due after ten updates.
    let config = Config { beta: 2.0, passes: 2, ..config(Boundary::Circular, 2) };
    let mut start: Dictionary<f32> = initial(&config, 1).unwrap();
    let half = start.data().len() / 2;
    let mut data = start.data().to_vec();
    data[half..].fill(0.0);
    start = Dictionary::new(config.n_filters, start.shape(), 2, data).unwrap();
    let mut learner = Online::with_dictionary(config.clone(), start.clone()).unwrap();
    let one = ran(&mut learner, &samples, &TrainOptions::default(), Progress::default(), Diary::default());
    assert!(one.1.norms().iter().all(|norm| *norm > 0.0), "all filters were replaced");
    let comm = together(3, |comm| {
        let learner = Distributed::with_dictionary(config.clone(), start.clone(), comm).unwrap();
        let diary = Diary::default();
        ran(&mut learner.reproducible(true), &samples, &TrainOptions::default(), Progress::default(), diary)
    });
    comm.iter().for_each(|ran| assert!(ran.1 == one.1));
}

#[test]
fn a_checkpoint_goes_on_with_another_number_of_members() {
    let (samples, config) = (mixed::<f32>(10, &[7]), config(Boundary::Free, 4));
    let (_, dictionary, diary, saved) = alone(&config, &samples, &TrainOptions::default());
    let stopped = together(3, |comm| {
        let learner = Distributed::with_dictionary(config.clone(), initial(&config, 1).unwrap(), comm.clone()).unwrap();
        // Rank 1 alone wants to stop, as after a signal.
        let diary = Diary { stop_at: (comm.rank() == 1).then_some(4), ..Diary::default() };
        ran(&mut learner.reproducible(true), &samples, &TrainOptions::default(), Progress::default(), diary)
    });
    assert!(stopped.iter().all(|ran| ran.0.as_ref().unwrap().ended == Ended::Stopped && ran.2.steps.len() == 4));
    let checkpoint = from_bytes::<f32>(&stopped[0].3, Path::new("checkpoint")).unwrap();
    for size in [1, 2, 4] {
        let finished = together(size, |comm| {
            let make = |config, d| -> Result<Box<dyn Learner<f32>>> {
                Ok(Box::new(Distributed::with_dictionary(config, d, comm.clone())?.reproducible(true)))
            };
            let (mut learner, progress) = checkpoint.resume_with(make).unwrap();
            ran(learner.as_mut(), &samples, &TrainOptions::default(), progress, Diary::default())
        });
        for ran in finished {
            assert!(ran.1 == dictionary && ran.3 == saved, "{size} members");
            assert_eq!(ran.2.steps, diary.steps[4..]);
        }
    }
    // And one process goes on with a team's work.
    let (mut learner, progress) = checkpoint.resume().unwrap();
    let one = ran(learner.as_mut(), &samples, &TrainOptions::default(), progress, Diary::default());
    assert!(one.1 == dictionary);
}

/// The stopping rule follows samples from member to member; time limits and the first one's wish end the run for all.
#[test]
fn a_team_stops_together() {
    let samples = mixed::<f64>(8, &[]);
    let config = Config { passes: 200, ..config(Boundary::Circular, 4) };
    let schedule = TrainOptions { stop_tol: Some(0.02), ..TrainOptions::default() };
    let one = alone(&config, &samples, &schedule);
    let ended = one.0.unwrap();
    assert_eq!(ended.ended, Ended::Converged);
    for ran in by_team(3, true, &config, &samples, &schedule) {
        let outcome = ran.0.unwrap();
        assert_eq!((outcome.ended, outcome.progress.step), (Ended::Converged, ended.progress.step));
    }
    let schedule = TrainOptions { time_limit: Some(std::time::Duration::ZERO), ..TrainOptions::default() };
    for ran in by_team(3, true, &config, &samples, &schedule) {
        let outcome = ran.0.unwrap();
        assert_eq!((outcome.ended, outcome.progress.step), (Ended::TimeLimit, 1));
    }
}

/// One member is stopped, as by a signal, in the middle of a batch, while it reads, or in an evaluation: all stop at the same
/// place, and any number of members goes on to the same bits.
#[test]
fn when_a_member_is_stopped_all_are() {
    let (samples, config) = (mixed::<f32>(10, &[7]), config(Boundary::Free, 5));
    let (_, dictionary, diary, _) = alone(&config, &samples, &TrainOptions::default());
    // Rank 1 codes two or three samples of a batch, and its part of four test samples after each pass.
    let mut furthest = (0, 0);
    for after in [0, 1, 4, 6, 9] {
        let stopped = together(3, |comm| {
            let dictionary = initial(&config, 1).unwrap();
            let learner = Distributed::with_dictionary(config.clone(), dictionary, comm.clone()).unwrap();
            let monitor = (comm.rank() == 1).then(|| Arc::new(Enough { after, ..Enough::default() }));
            let diary = Diary { monitor, ..Diary::default() };
            ran(&mut learner.reproducible(true), &samples, &TrainOptions::default(), Progress::default(), diary)
        });
        let place = |ran: &Ran<f32>| timeless(ran.0.as_ref().unwrap().progress);
        assert!(stopped.iter().all(|ran| ran.0.as_ref().unwrap().ended == Ended::Stopped), "after {after}");
        assert!(stopped.iter().all(|ran| place(ran) == place(&stopped[0])), "after {after}");
        let here = (place(&stopped[0]).pass, place(&stopped[0]).visited);
        assert!(here >= furthest, "after {after}: {here:?} {furthest:?}");
        furthest = here;
        // The one that was stopped had not begun the update, the others had.
        for saved in stopped[..2].iter().map(|ran| &ran.3) {
            let checkpoint = from_bytes::<f32>(saved, Path::new("checkpoint")).unwrap();
            let finished = together(2, |comm| {
                let make = |config, d| -> Result<Box<dyn Learner<f32>>> {
                    Ok(Box::new(Distributed::with_dictionary(config, d, comm.clone())?.reproducible(true)))
                };
                let (mut learner, progress) = checkpoint.resume_with(make).unwrap();
                ran(learner.as_mut(), &samples, &TrainOptions::default(), progress, Diary::default())
            });
            for ran in finished {
                assert!(ran.1 == dictionary, "after {after}");
                assert_eq!(ran.2.steps, diary.steps[place(&stopped[0]).step..], "after {after}");
            }
        }
    }
}

/// Nobody waits for a member that cannot go on, and all say which one and why.
#[test]
fn when_a_member_fails_all_do() {
    let config = config(Boundary::Circular, 6);
    let strict = TrainOptions { strict: true, ..TrainOptions::default() };
    for ran in by_team(3, false, &config, &mixed::<f32>(6, &[5]), &strict) {
        let message = ran.0.unwrap_err().to_string();
        assert!(message.starts_with("rank ") && message.contains(" of 3: sample 5 is damaged"), "{message}");
    }
    // Nothing can be read at all.
    for ran in by_team(2, false, &config, &mixed::<f32>(3, &[0, 1, 2]), &TrainOptions::default()) {
        let message = ran.0.unwrap_err().to_string();
        assert!(message.contains("none of 3 samples could be used"), "{message}");
    }
    // A value whose square overflows is found by the member that codes it.
    let mut samples = mixed::<f32>(6, &[]);
    samples.0[2] = Some(Sample::new(Shape::image(9, 9), vec![1e30; 81]).unwrap());
    for ran in by_team(2, false, &config, &samples, &TrainOptions::default()) {
        let message = ran.0.unwrap_err().to_string();
        assert!(message.contains("rank ") && message.contains("1e30"), "{message}");
    }
    let method = Config { method: ocsc::Method::OcscPaper, ..config };
    let error = Distributed::<f32>::with_dictionary(method.clone(), initial(&method, 1).unwrap(), Arc::new(Solo));
    let message = error.err().unwrap().to_string();
    assert!(message.contains("expected ocsc") && message.contains("found ocsc-paper"), "{message}");
}

#[test]
fn an_evaluation_does_not_depend_on_the_number_of_members() {
    let (config, samples) = (config(Boundary::Zero, 1), mixed::<f32>(9, &[3]));
    let dictionary = initial::<f32>(&config, 1).unwrap();
    let mut pass_over = |_: usize, _: Result<ocsc::train::Represented<'_, f32>>| Ok(());
    let one = evaluate(&config, &dictionary, &samples, 0.01, &mut pass_over).unwrap();
    assert_eq!((one.samples, one.skipped), (8, 1));
    for size in [1, 2, 3, 12] {
        let all = together(size, |comm| {
            let mut seen = Vec::new();
            let mut each = |i: usize, _: Result<ocsc::train::Represented<'_, f32>>| {
                seen.push(i);
                Ok(())
            };
            let evaluation = evaluate_by(&*comm, &config, &dictionary, &samples, 0.01, &Silent, &mut each).unwrap();
            assert_eq!(seen.len(), Shard::<f32>::of(&*comm, &samples).len());
            (evaluation, seen)
        });
        let mut seen: Vec<usize> = all.iter().flat_map(|(_, seen)| seen.clone()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..9).collect::<Vec<_>>());
        for (evaluation, _) in all {
            assert_eq!(Evaluation { seconds: one.seconds, ..evaluation }, one, "{size} members");
        }
    }
    let refused = together(2, |comm| evaluate_by(&*comm, &config, &dictionary, &samples, 0.01, &Silent, &mut refuse));
    for error in refused {
        assert!(error.unwrap_err().to_string().contains("sample 3 is damaged"));
    }
}

#[test]
fn messages_of_any_length() {
    let told = together(3, |comm| {
        let mine = vec![comm.rank() as u8; 2 * comm.rank()];
        let all = all_gather(&*comm, &mine);
        let first = broadcast(&*comm, Ok(if comm.rank() == 0 { b"settings".to_vec() } else { Vec::new() })).unwrap();
        let failed = broadcast(&*comm, Err(Error::Source(format!("rank {} cannot", comm.rank())))).unwrap_err();
        let odd = if comm.rank() == 1 { Err(Error::Source("no disk".into())) } else { Ok(mine) };
        (all, first, failed.to_string(), all_gather_results(&*comm, odd).unwrap_err().to_string())
    });
    for (all, first, failed, odd) in told {
        assert_eq!(all, [vec![], vec![1; 2], vec![2; 4]]);
        assert_eq!(first, b"settings");
        assert_eq!((failed.as_str(), odd.as_str()), ("rank 0 of 3: rank 0 cannot", "rank 1 of 3: no disk"));
    }
}
