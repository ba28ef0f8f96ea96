//! One run of a learner, in f32 or f64 behind one face, and what is seen of it from outside.

use crate::array::{Filters, Scalar};
use crate::error::Raised;
use crate::host::Host;
use crate::live::{Page, words};
use crate::source::{IteratorStream, Prepare, Source};
use ocsc::checkpoint::{self, Attached, Saved};
use ocsc::coder::Status;
use ocsc::learner::Step;
use ocsc::run::{Init, Run, Started};
use ocsc::settings::RunConfig;
use ocsc::text::{counted, extent};
use ocsc::train::{Learned, Observer, Outcome, Progress, Snapshot, Stream};
use ocsc::{Config, Error, Learner, Method, Result, Samples, Shape, Sparsity};
use ocsc_live::Camera;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is kept of every step: the numbers of [`Record::FIELDS`].
#[derive(Clone, Copy)]
pub(crate) struct Record(pub(crate) [f64; 9]);

impl Record {
    pub(crate) const FIELDS: [&str; 9] =
        ["step", "pass", "samples", "seconds", "objective", "gap", "nonzeros", "dictionary_change", "reseeded"];
    /// The fields that count something.
    const COUNTS: [&str; 4] = ["step", "pass", "samples", "reseeded"];

    fn new<T: Scalar>(progress: &Progress, step: &Step<T>) -> Self {
        Record([
            step.step as f64,
            (progress.pass + 1) as f64,
            progress.samples as f64,
            progress.seconds,
            step.objective(),
            step.gap(),
            step.nonzeros(),
            step.dictionary_change,
            step.update.reseeded as f64,
        ])
    }

    /// Its fields by name, for callbacks.
    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in Self::FIELDS.iter().zip(self.0) {
            match Self::COUNTS.contains(name) {
                true => dict.set_item(name, value as u64)?,
                false => dict.set_item(name, value)?,
            }
        }
        Ok(dict)
    }
}

/// What can be asked of a run at any time, also while it goes on: how it was after its last step.
pub(crate) struct Seen {
    pub(crate) config: Config,
    pub(crate) filters: Filters,
    pub(crate) progress: Progress,
    /// How many samples the set has that was learned from; none of streams.
    pub(crate) samples: Option<usize>,
    pub(crate) history: Vec<Record>,
    pub(crate) missed: Missed,
    /// How sparse the codes of the last pass are.
    pub(crate) sparsity: Sparsity,
}

/// Steps of one call whose codes did not come as close to optimal as was asked.
#[derive(Clone, Copy, Default)]
pub(crate) struct Missed {
    pub(crate) steps: usize,
    /// The worst relative duality gap among them.
    pub(crate) gap: f64,
}

/// Where a run leaves what is seen of it; nothing until there are filters. Nobody holds it for long, and who holds it does
/// not wait for Python.
#[derive(Default)]
pub(crate) struct Board(Mutex<Option<Seen>>);

impl Board {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a run is now.
    fn show<T: Scalar>(&self, learner: &dyn Learner<T>, progress: &Progress) {
        if let Some(seen) = self.lock().as_mut() {
            seen.filters = T::filters(learner.dictionary().clone());
            seen.progress = *progress;
        }
    }
}

/// Refuses samples of different channels, whose shapes after preprocessing are these, each with the number of the first that has
/// it.
pub(crate) fn check_channels(shapes: &[(usize, Shape)]) -> Result<()> {
    let Some((first, Shape { channels, .. })) = shapes.first() else { return Ok(()) };
    match shapes.iter().find(|(_, shape)| shape.channels != *channels) {
        Some((i, shape)) => {
            let expected = format!("{}, as X[{first}] has", counted(*channels, "channel"));
            Err(Error::invalid(format!("X[{i}]"), expected, counted(shape.channels, "channel")))
        }
        None => Ok(()),
    }
}

/// How to make a run.
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) init: Initial,
    pub(crate) beta_ratio: Option<f64>,
}

/// The dictionary to start from; arrays are (K, C, axes...).
pub(crate) enum Initial {
    Random,
    Patches,
    Filters(Py<PyAny>),
}

impl Initial {
    fn init<T: Scalar>(&self) -> PyResult<Init<T>> {
        Ok(match self {
            Initial::Random => Init::Random,
            Initial::Patches => Init::Patches,
            Initial::Filters(array) => {
                Init::Given(Python::attach(|py| crate::array::scaled_dictionary(array.bind(py)))?)
            }
        })
    }
}

/// What one call of `fit` or `partial_fit` brings along.
pub(crate) struct Call {
    pub(crate) options: RunConfig,
    pub(crate) watcher: Option<Py<PyAny>>,
    pub(crate) host: Host,
    pub(crate) raised: Arc<Raised>,
    /// The page that shows the run, if one does.
    pub(crate) page: Option<Arc<Page>>,
}

/// A run in either scalar.
pub(crate) trait AnyRun: Send {
    /// Learns from all samples of a source, in passes.
    fn fit(&mut self, source: &Source, call: Call) -> PyResult<()>;
    /// Learns from a stream, in so many passes.
    fn stream(&mut self, passes: usize, stream: IteratorStream, call: Call) -> PyResult<()>;
    /// Goes on with other settings, which leave the statistics as they are.
    fn change(&mut self, config: Config) -> Result<()>;
    /// Writes a checkpoint.
    fn save(&self, path: &Path) -> Result<()>;
    /// A checkpoint in memory.
    fn bytes(&self) -> Result<Vec<u8>>;
}

/// A run that has a dictionary, and where it is seen.
pub(crate) struct Session<T: Scalar> {
    run: Started<T>,
    board: Arc<Board>,
}

impl<T: Scalar> Session<T> {
    /// Starts a new run on samples, or on a stream of which these are the first.
    pub(crate) fn start(
        plan: &Plan,
        samples: &dyn Samples<T>,
        memory_limit: Option<usize>,
        board: &Arc<Board>,
        raised: &Raised,
    ) -> PyResult<Self> {
        let options = RunConfig { beta_ratio: plan.beta_ratio, memory_limit, ..RunConfig::default() };
        let run = Run::new(plan.config.clone()).init(plan.init.init()?).options(options).strict(true);
        let started = run.start(samples).map_err(|error| raised.exception(in_words(error)))?;
        Ok(Self::shown(started, None, Vec::new(), board.clone()))
    }

    /// Goes on from a model file: with its statistics from a checkpoint, with new ones otherwise.
    pub(crate) fn from_saved(saved: Saved<T>, history: Vec<Record>, board: Arc<Board>) -> Result<Self> {
        let samples = saved.attached.samples;
        Ok(Self::shown(Run::resume(saved).strict(true).adopt()?, samples, history, board))
    }

    /// Returns a run that is seen on the board from now on.
    fn shown(run: Started<T>, samples: Option<usize>, history: Vec<Record>, board: Arc<Board>) -> Self {
        let learner = run.learner();
        let (config, filters) = (learner.config().clone(), T::filters(learner.dictionary().clone()));
        let progress = run.progress();
        let (missed, sparsity) = (Missed::default(), Sparsity::default());
        *board.lock() = Some(Seen { config, filters, progress, samples, history, missed, sparsity });
        Session { run, board }
    }

    /// Records how many samples the set has that is learned from; none of a stream.
    fn set_samples(&self, samples: Option<usize>) {
        if let Some(seen) = self.board.lock().as_mut() {
            seen.samples = samples;
        }
    }

    /// Returns what checkpoints are to hold besides the learner.
    fn attached(&self) -> Attached {
        Attached { samples: self.board.lock().as_ref().and_then(|seen| seen.samples), ..Attached::default() }
    }

    /// Learns as `train` does with the run; whatever ends it, what was learned up to there is kept.
    fn learn(
        &mut self,
        call: &Call,
        train: impl FnOnce(&mut Started<T>, &mut Watch<'_>) -> Result<Outcome>,
    ) -> PyResult<()> {
        self.run.set_options(&call.options);
        let samples = self.board.lock().as_ref().and_then(|seen| seen.samples);
        let camera = call.page.as_ref().map(|page| {
            let learner = self.run.learner();
            page.camera(learner.config(), learner.dictionary().shape(), self.run.progress().samples, samples)
        });
        let mut watch = Watch::new(call, self.run.progress(), &self.board, camera);
        let ended = train(&mut self.run, &mut watch);
        if ended.is_err() {
            self.run.set_progress(watch.last);
        }
        self.board.show(self.run.learner(), &self.run.progress());
        ended.map(drop).map_err(|error| call.raised.exception(in_words(error)))
    }

    /// Learns from a stream, in so many passes.
    pub(crate) fn stream_from(&mut self, passes: usize, stream: &mut dyn Stream<T>, call: &Call) -> PyResult<()> {
        self.set_samples(None);
        self.learn(call, |run, watch| run.train_stream(passes, stream, None, watch))
    }
}

/// Says in Python's words which sizes of samples do not fit.
fn in_words(error: Error) -> Error {
    match error {
        Error::TooSmall { name, filter, found, .. } => {
            let expected = format!("at least the size {} of the filters (filter_shape)", extent(&filter));
            Error::invalid(name, expected, extent(&found))
        }
        Error::MixedSizes { name, expected, first, found, method } => {
            let any = "`ocsc` takes samples of any sizes";
            let expected = format!("{} as {first} has, for the method `{method}` ({any})", extent(&expected));
            Error::invalid(name, expected, extent(&found))
        }
        other => other,
    }
}

impl<T: Scalar> AnyRun for Session<T> {
    fn fit(&mut self, source: &Source, call: Call) -> PyResult<()> {
        self.run.set_progress(Progress::default());
        self.set_samples(Some(Samples::<T>::len(source)));
        self.learn(&call, |run, watch| run.train(source, None, watch))
    }

    fn stream(&mut self, passes: usize, mut stream: IteratorStream, call: Call) -> PyResult<()> {
        self.stream_from(passes, &mut stream, &call)
    }

    fn change(&mut self, config: Config) -> Result<()> {
        self.run.change(config)?;
        if let Some(seen) = self.board.lock().as_mut() {
            seen.config = self.run.learner().config().clone();
        }
        Ok(())
    }

    fn save(&self, path: &Path) -> Result<()> {
        checkpoint::save_attaching(path, self.run.learner(), Some(&self.run.progress()), &self.attached())
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        checkpoint::to_bytes_attaching(self.run.learner(), Some(&self.run.progress()), &self.attached())
    }
}

/// The observer: shows where the run is, asks the callback, and ends the run when nobody waits for it.
struct Watch<'a> {
    call: &'a Call,
    board: &'a Board,
    /// Where the run was after its last step.
    last: Progress,
    watcher: Option<Arc<Py<PyAny>>>,
    camera: Option<Camera<'a>>,
}

impl<'a> Watch<'a> {
    fn new(call: &'a Call, begun: Progress, board: &'a Board, camera: Option<Camera<'a>>) -> Self {
        let watcher = call.watcher.as_ref().map(|watcher| Arc::new(Python::attach(|py| watcher.clone_ref(py))));
        if let Some(seen) = board.lock().as_mut() {
            seen.missed = Missed::default();
        }
        Watch { call, board, last: begun, watcher, camera }
    }

    /// Whether the callback wants to stop.
    fn ask(&self, record: Record) -> Result<bool> {
        let Some(watcher) = self.watcher.clone() else { return Ok(false) };
        let asked = self.call.host.ask(move |py| -> PyResult<bool> {
            let answer = watcher.bind(py).call1((record.dict(py)?,))?;
            answer.is_truthy()
        });
        asked.unwrap_or(Ok(true)).map_err(|raised| self.call.raised.keep(raised))
    }
}

impl<T: Scalar> Observer<T> for Watch<'_> {
    fn learned(&mut self, learned: &Learned<'_, T>) {
        if let Some(camera) = &mut self.camera {
            camera.learned(learned);
        }
    }

    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.last = *run.progress;
        let record = Record::new(run.progress, step);
        self.board.show(run.learner, run.progress);
        if let Some(seen) = self.board.lock().as_mut() {
            let is_new_pass = seen.history.last().is_none_or(|last| last.0[1] != record.0[1]);
            seen.history.push(record);
            if is_new_pass {
                seen.sparsity = Sparsity::default();
            }
            let values = step.totals.values / step.totals.count.max(1);
            step.own_codes.iter().for_each(|coded| seen.sparsity.add(coded.code.nonzeros(), values));
            // A pass of a batch method makes a few iterations, whatever they reach; osc bounds no gaps.
            let has_tolerance = !seen.config.method.is_batch() && seen.config.method != Method::Osc;
            if has_tolerance && step.own_codes.iter().any(|coded| coded.status != Status::Converged) {
                seen.missed.steps += 1;
                seen.missed.gap = seen.missed.gap.max(step.gap());
            }
        }
        if let Some(camera) = &mut self.camera {
            camera.step(run, step);
        }
        let is_wanted = || !self.call.host.is_gone() && !self.call.page.as_ref().is_some_and(|page| page.is_stopped());
        if let Some(camera) = self.camera.as_ref().filter(|camera| camera.is_pause_wanted()) {
            camera.hold(is_wanted);
        }
        let stop = self.ask(record)? || !is_wanted();
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn end(&mut self, run: &Snapshot<'_, T>, outcome: &Outcome) -> Result<()> {
        if let Some(camera) = &mut self.camera {
            camera.end(run, words(outcome));
        }
        Ok(())
    }

    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.last = *run.progress;
        if let Some(camera) = &mut self.camera {
            camera.pass(run);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// For runs that begin: sources are prepared as the plan says.
pub(crate) fn preparation(config: &Config) -> PyResult<Prepare> {
    Prepare::new(config.preprocess.clone())
}
