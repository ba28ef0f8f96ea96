//! Takes pictures of a run for the page, from within its observer.

use crate::board::{Board, Phase};
use crate::curve::{Curve, TestPoint, thin};
use crate::draw::{MOST_VALUES, draw_filters, draw_sample};
use crate::frame::{About, Frame, Now, SampleView};
use ocsc::learner::Step;
use ocsc::memory;
use ocsc::train::{Evaluation, Learned, Progress, Snapshot};
use ocsc::{Dictionary, Real};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The least time between two pictures.
const EVERY: Duration = Duration::from_millis(450);
/// The next picture waits for so many times as long as the last one took.
const RARELY: u32 = 100;
/// What filters are used for is a mean over about so many samples.
const REMEMBERED: f64 = 100.0;
/// The rate is that of the last steps of about so many seconds.
const RECENT: f64 = 20.0;
/// While the run is paused, it looks so often whether it may go on.
const LOOK: Duration = Duration::from_millis(50);

/// A sample that is drawn when somebody wants to see it, once.
type Undrawn = Arc<LazyLock<Option<SampleView>, Box<dyn FnOnce() -> Option<SampleView> + Send>>>;

/// Watches a run for the page. Its methods are called by the observer of the run, in its order.
pub struct Camera<'a> {
    board: Arc<Board>,
    about: About,
    name: Option<Box<dyn Fn(usize) -> String + 'a>>,
    train: Curve,
    tests: Vec<TestPoint>,
    now: Now,
    /// Non-zeros of each filter in a sample.
    used: Vec<f64>,
    /// Samples that this is the mean of.
    counted: f64,
    sample: Option<Undrawn>,
    /// Samples and seconds, waiting included, after recent steps.
    recent: VecDeque<(usize, f64)>,
    begun: usize,
    /// When the last picture was taken, and how long that took.
    last: Option<Instant>,
    took: Duration,
    /// Whether the step that goes on is to be taken.
    is_taking: bool,
    /// Whether the end of the run was seen.
    is_over: bool,
}

impl Drop for Camera<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.board.set(|status| (status.phase, status.testing, status.pause) = (Phase::Failed, None, false));
        }
    }
}

impl<'a> Camera<'a> {
    pub(crate) fn new(
        board: Arc<Board>,
        about: About,
        begun: usize,
        total: Option<usize>,
        passes: Option<usize>,
    ) -> Self {
        let now = Now { samples: begun, total, passes, ..Now::default() };
        let camera = Camera {
            board,
            about,
            name: None,
            train: Curve::default(),
            tests: Vec::new(),
            now,
            used: Vec::new(),
            counted: 0.0,
            sample: None,
            recent: VecDeque::new(),
            begun,
            last: None,
            took: Duration::ZERO,
            is_taking: false,
            is_over: false,
        };
        let (about, now) = (camera.about.clone(), camera.now.clone());
        camera.board.put(Box::new(move || Frame { about, now: Some(now), ..Frame::default() }));
        camera
    }

    /// Calls samples by these names.
    pub fn naming(mut self, name: impl Fn(usize) -> String + 'a) -> Self {
        self.name = Some(Box::new(name));
        self
    }

    /// Sees the samples of a step with their codes, before [`Camera::step`].
    pub fn learned<T: Real>(&mut self, learned: &Learned<'_, T>) {
        let began = Instant::now();
        for coded in learned.codes {
            self.used.resize(coded.code.n_filters(), 0.0);
            self.counted = (self.counted + 1.0).min(REMEMBERED);
            self.used.iter_mut().for_each(|used| *used *= 1.0 - 1.0 / self.counted);
            coded.code.atoms().iter().for_each(|atom| self.used[atom.filter as usize] += 1.0 / self.counted);
        }
        self.is_taking = self.is_due();
        if let (true, Some((sample, coded))) = (self.is_taking, learned.samples.last().zip(learned.codes.last()))
            && sample.data().len() <= MOST_VALUES
        {
            let name = self.name.as_ref().zip(learned.numbers.last()).map_or(String::new(), |(name, i)| name(*i));
            let filters = coded.filters_or(learned.learner.dictionary()).clone();
            let (sample, coded, boundary) = (sample.clone(), coded.clone(), learned.learner.config().boundary);
            self.sample = Some(Arc::new(LazyLock::new(Box::new(move || {
                let back = coded.code.reconstruct(&filters, boundary).ok()?;
                let view = draw_sample(name, Some(&sample), &back);
                let (gap, objective) = (Some(coded.relative_gap()), Some(coded.total()));
                Some(SampleView { nonzeros: coded.code.nonzeros(), gap, objective, ..view })
            }))));
        }
        self.took = began.elapsed();
    }

    /// Sees a step.
    pub fn step<T: Real>(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) {
        let began = Instant::now();
        let now = &mut self.now;
        // A new pass begins with a new worst gap.
        let is_new_pass = now.step == 0 || run.progress.pass != now.pass;
        now.worst_gap = Some(now.worst_gap.filter(|_| !is_new_pass).unwrap_or(0.0).max(step.gap()));
        (now.objective, now.gap, now.nonzeros) = (Some(step.objective()), Some(step.gap()), Some(step.nonzeros()));
        now.share = Some(step.totals.nonzeros / step.totals.values.max(1) as f64);
        now.change = Some(step.dictionary_change);
        self.reach(run.progress);
        self.train.push(run.progress.samples, run.progress.seconds, step.objective(), step.gap());
        self.add_test(run.test, run.progress);
        let phase = if self.board.status().phase == Phase::Stopping { Phase::Stopping } else { Phase::Learning };
        self.board.set(|status| (status.phase, status.testing) = (phase, None));
        if std::mem::take(&mut self.is_taking) {
            self.shoot(run.learner.dictionary(), None);
            self.took += began.elapsed();
        }
    }

    /// Sees the end of a pass.
    pub fn pass<T: Real>(&mut self, run: &Snapshot<'_, T>) {
        self.add_test(run.test, run.progress);
        self.now.pass = run.progress.pass;
        self.shoot(run.learner.dictionary(), None);
    }

    /// Sees how far an evaluation is.
    pub fn testing(&self, done: usize, of: usize) {
        self.board.set(|status| {
            status.testing = Some((done, of));
            if status.phase == Phase::Learning {
                status.phase = Phase::Testing;
            }
        });
    }

    /// Sees the end of the run, which `ended` says in words.
    pub fn end<T: Real>(&mut self, run: &Snapshot<'_, T>, ended: &str) {
        self.is_over = true;
        self.add_test(run.test, run.progress);
        (self.now.pass, self.now.left) = (run.progress.pass, None);
        self.shoot(run.learner.dictionary(), Some(ended.to_owned()));
        self.board.set(|status| (status.phase, status.testing, status.pause) = (Phase::Ended, None, false));
    }

    /// Returns whether somebody asked for a pause.
    pub fn is_pause_wanted(&self) -> bool {
        self.board.status().pause
    }

    /// Waits for as long as the page says, and `goes_on` too.
    pub fn hold(&self, goes_on: impl Fn() -> bool) {
        self.board.set(|status| status.phase = Phase::Paused);
        while self.is_pause_wanted() && goes_on() {
            std::thread::sleep(LOOK);
        }
        self.board.set(|status| {
            if status.phase == Phase::Paused {
                status.phase = Phase::Learning;
            }
        });
    }

    /// Returns whether it is time for a picture: the first, or one that somebody wants to see.
    fn is_due(&self) -> bool {
        let pause = EVERY.max(RARELY * (self.took + self.board.drawing()));
        self.last.is_none_or(|last| self.board.is_watched() && last.elapsed() >= pause)
    }

    /// Counts samples, and how fast they come.
    fn reach(&mut self, progress: &Progress) {
        let (now, recent) = (&mut self.now, &mut self.recent);
        now.samples = progress.samples + progress.skipped;
        (now.pass, now.step, now.seconds, now.skipped) =
            (progress.pass, progress.step, progress.seconds, progress.unusable);
        let seconds = progress.seconds + progress.waiting_seconds;
        if recent.back().is_none_or(|last| seconds - last.1 >= RECENT / 100.0) {
            recent.push_back((now.samples, seconds));
        }
        while recent.len() > 2 && recent.get(1).is_some_and(|second| seconds - second.1 > RECENT) {
            recent.pop_front();
        }
        let since = recent.front().copied().unwrap_or((self.begun, 0.0));
        if now.samples > since.0 && seconds > since.1 {
            let rate = (now.samples - since.0) as f64 / (seconds - since.1);
            now.rate = Some(rate);
            now.left = now.total.map(|total| total.saturating_sub(now.samples) as f64 / rate);
        }
    }

    /// Adds an evaluation, unless it is there: the end of a run repeats the last one.
    fn add_test(&mut self, test: Option<&Evaluation>, progress: &Progress) {
        let Some(test) = test else { return };
        let psnr = Some(test.psnr).filter(|psnr| psnr.is_finite());
        let point = TestPoint(progress.samples as f64, progress.seconds, test.objective, psnr);
        if test.objective.is_finite() && self.tests.last().is_none_or(|last| last.0 != point.0) {
            self.tests.push(point);
            thin(&mut self.tests);
        }
    }

    /// Leaves a picture for the server, which draws it when somebody looks.
    fn shoot<T: Real>(&mut self, dictionary: &Dictionary<T>, ended: Option<String>) {
        let (dictionary, used) = (dictionary.clone(), self.used.clone());
        let (about, mut now, sample) = (self.about.clone(), self.now.clone(), self.sample.clone());
        let (train, test) = (self.train.points(), self.tests.clone());
        self.board.put(Box::new(move || {
            let bytes = |bytes: Option<usize>| bytes.map(|bytes| bytes as u64);
            (now.memory, now.peak_memory) = (bytes(memory::held()), bytes(memory::peak()));
            let filters = Some(draw_filters(&dictionary, &used));
            let samples = sample.iter().filter_map(|sample| Option::clone(sample)).collect();
            Frame { about, now: Some(now), train, test, filters, samples, ended, ..Frame::default() }
        }));
        self.last = Some(Instant::now());
    }
}
