//! One run of a learner, in f32 or f64 behind one face, and what is seen of it from outside.

use crate::array::{Filters, Scalar};
use crate::error::{Raised, exception};
use crate::host::Host;
use crate::source::{Arriving, Begun, Prepare, Source};
use ocsc::checkpoint::{self, Saved};
use ocsc::coder::Status;
use ocsc::learner::{Step, learner};
use ocsc::memory::Survey;
use ocsc::run::{Init, first_usable, start};
use ocsc::train::{Observer, Snapshot};
use ocsc::train::{Outcome, Progress, Schedule, Stream, train, train_stream, visiting_order};
use ocsc::{Config, Error, Learner, Method, Result, Sample, Shape};
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
    /// Those that count something.
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
    pub(crate) history: Vec<Record>,
    pub(crate) missed: Missed,
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

/// What is known of samples before any is read.
pub(crate) struct Outlook {
    /// How many there are.
    pub(crate) samples: usize,
    /// The shapes that occur, after preprocessing, as far as they are known, each with the number of the first that has it.
    pub(crate) shapes: Vec<(usize, Shape)>,
    pub(crate) memory_limit: Option<usize>,
}

impl Outlook {
    /// Refuses samples of different channels.
    fn check_channels(&self) -> Result<()> {
        let Some((first, Shape { channels, .. })) = self.shapes.first() else { return Ok(()) };
        match self.shapes.iter().find(|(_, shape)| shape.channels != *channels) {
            Some((i, shape)) => {
                let expected = format!("{channels} channels, as X[{first}] has");
                Err(Error::invalid(format!("X[{i}]"), expected, format!("{} channels", shape.channels)))
            }
            None => Ok(()),
        }
    }

    /// Refuses samples that are too small for the filters, or of sizes that the method cannot take, or for which there is
    /// no memory.
    fn check<T: Scalar>(&self, config: &Config, filter: Shape) -> Result<()> {
        self.shapes.iter().try_for_each(|(i, shape)| check_size(&format!("X[{i}]"), *shape, filter))?;
        let one_size = self.shapes.first().map(|(_, shape)| *shape).filter(|_| self.shapes.len() == 1);
        if self.shapes.len() > 1 && !config.method.takes_mixed_sizes() {
            let expected = format!("samples of one size for the method `{}` (`ocsc` takes any)", config.method);
            return Err(Error::invalid("X", expected, format!("{} sizes", self.shapes.len())));
        }
        let largest = self.shapes.iter().map(|(_, shape)| shape.len()).max().unwrap_or(0);
        Survey { samples: self.samples, one_size, largest, processes: 1 }.ensure::<T>(config, filter, self.memory_limit)
    }
}

/// Refuses a sample that filters do not fit.
fn check_size(name: &str, sample: Shape, filter: Shape) -> Result<()> {
    if sample.channels != filter.channels {
        let expected = format!("{} channels, as the filters have", filter.channels);
        return Err(Error::invalid(name, expected, format!("{} channels", sample.channels)));
    }
    if sample.spatial().iter().zip(filter.spatial()).any(|(s, f)| *s < f) {
        let expected = format!("at least the size {filter} of the filters (filter_shape)");
        return Err(Error::invalid(name, expected, sample));
    }
    Ok(())
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
    pub(crate) schedule: Schedule,
    pub(crate) watcher: Option<Py<PyAny>>,
    pub(crate) host: Host,
    pub(crate) raised: Arc<Raised>,
}

/// A run in either scalar.
pub(crate) trait AnyRun: Send {
    /// Learns from all samples of a source, in passes.
    fn fit(&mut self, source: &Source, call: Call) -> PyResult<()>;
    /// Learns from a stream, in so many passes.
    fn stream(&mut self, passes: usize, stream: Arriving, call: Call) -> PyResult<()>;
    /// Goes on with other settings, which leave the statistics as they are.
    fn change(&mut self, config: Config) -> Result<()>;
    /// Writes a checkpoint.
    fn save(&self, path: &Path) -> Result<()>;
    /// A checkpoint in memory.
    fn bytes(&self) -> Result<Vec<u8>>;
}

/// A run that has a dictionary.
pub(crate) struct Run<T: Scalar> {
    learner: Box<dyn Learner<T>>,
    progress: Progress,
    board: Arc<Board>,
}

impl<T: Scalar> Run<T> {
    /// A new run, on a source.
    pub(crate) fn on_source(
        plan: &Plan,
        source: &Source,
        outlook: &Outlook,
        board: &Arc<Board>,
        raised: &Raised,
    ) -> PyResult<Self> {
        outlook.check_channels().map_err(exception)?;
        let order = visiting_order(ocsc::Samples::<T>::len(source), plan.config.seed, 0);
        let told = |error| raised.exception(error);
        let (first, sample) = first_usable::<T>(source, &order, true).map_err(told)?;
        let name = ocsc::Samples::<T>::name(source, first);
        let batch = &order[..plan.config.batch_size.min(order.len())];
        Self::start(plan, (&sample, &name), outlook, source, batch, board, raised)
    }

    /// A new run, on a stream; also returns what was taken of it.
    pub(crate) fn on_stream(
        plan: &Plan,
        stream: &mut Arriving,
        memory_limit: Option<usize>,
        board: &Arc<Board>,
        raised: &Raised,
    ) -> PyResult<(Self, Vec<Sample<T>>)> {
        let first = stream.take(plan.config.batch_size).map_err(|error| raised.exception(error))?.unwrap_or_default();
        let Some(sample) = first.first() else {
            return Err(exception(Error::invalid("X", "at least one sample", "none")));
        };
        let all: Vec<usize> = (0..first.len()).collect();
        // What more there will be is not known.
        let outlook = Outlook { samples: first.len(), shapes: vec![(0, sample.shape())], memory_limit };
        let run = Self::start(plan, (sample, "the first sample"), &outlook, &first, &all, board, raised)?;
        Ok((run, first))
    }

    fn start(
        plan: &Plan,
        (sample, name): (&Sample<T>, &str),
        outlook: &Outlook,
        samples: &dyn ocsc::Samples<T>,
        batch: &[usize],
        board: &Arc<Board>,
        raised: &Raised,
    ) -> PyResult<Self> {
        let (mut config, channels) = (plan.config.clone(), sample.shape().channels);
        let init = plan.init.init()?;
        let filter = match &init {
            Init::Given(dictionary) => {
                config.n_filters = dictionary.n_filters();
                config.filter_shape = dictionary.shape().axes(dictionary.rank());
                dictionary.shape()
            }
            _ => Shape::from_axes(channels, &config.filter_shape).map_err(exception)?,
        };
        check_size(name, sample.shape(), filter).map_err(exception)?;
        // Before there are filters, since these may be too many.
        outlook.check::<T>(&config, filter).map_err(exception)?;
        let started = start(config, init, plan.beta_ratio, channels, samples, batch, true);
        let learner = started.map_err(|error| raised.exception(error))?.learner;
        Ok(Self::shown(learner, Progress::default(), Vec::new(), board.clone()))
    }

    /// A run that goes on from a model file: with its statistics from a checkpoint, with new ones otherwise.
    pub(crate) fn from_saved(saved: Saved<T>, history: Vec<Record>, board: Arc<Board>) -> Result<Self> {
        let (learner, progress) = match saved.is_checkpoint() {
            true => saved.resume()?,
            false => (learner(saved.config, saved.dictionary)?, Progress::default()),
        };
        Ok(Self::shown(learner, progress, history, board))
    }

    /// A run that is seen on the board from now on.
    fn shown(learner: Box<dyn Learner<T>>, progress: Progress, history: Vec<Record>, board: Arc<Board>) -> Self {
        let (config, filters) = (learner.config().clone(), T::filters(learner.dictionary().clone()));
        *board.lock() = Some(Seen { config, filters, progress, history, missed: Missed::default() });
        Run { learner, progress, board }
    }

    /// Learns as `train` does with the learner, from `begun` on; whatever ends it, what was learned up to there is kept.
    fn learn(
        &mut self,
        call: &Call,
        train: impl FnOnce(&mut dyn Learner<T>, &mut Watch<'_>) -> Result<Outcome>,
    ) -> PyResult<()> {
        let mut watch = Watch::new(call, self.progress, &self.board);
        let ended = train(self.learner.as_mut(), &mut watch);
        self.progress = ended.as_ref().map_or(watch.last, |outcome| outcome.progress);
        self.board.show(self.learner.as_ref(), &self.progress);
        ended.map(drop).map_err(|error| call.raised.exception(error))
    }

    pub(crate) fn stream_from(&mut self, passes: usize, stream: &mut Begun<T>, call: &Call) -> PyResult<()> {
        let begun = self.progress;
        self.learn(call, |learner, watch| train_stream(learner, passes, stream, None, &call.schedule, begun, watch))
    }
}

impl<T: Scalar> AnyRun for Run<T> {
    fn fit(&mut self, source: &Source, call: Call) -> PyResult<()> {
        self.learn(&call, |learner, watch| train(learner, source, None, &call.schedule, Progress::default(), watch))
    }

    fn stream(&mut self, passes: usize, stream: Arriving, call: Call) -> PyResult<()> {
        self.stream_from(passes, &mut Begun::<T> { first: None, rest: stream }, &call)
    }

    fn change(&mut self, config: Config) -> Result<()> {
        let mut changed = learner(config, self.learner.dictionary().clone())?;
        changed.restore(&self.learner.state(), self.learner.step())?;
        if let Some(seen) = self.board.lock().as_mut() {
            seen.config = changed.config().clone();
        }
        self.learner = changed;
        Ok(())
    }

    fn save(&self, path: &Path) -> Result<()> {
        checkpoint::save(path, self.learner.as_ref(), Some(&self.progress))
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        checkpoint::to_bytes(self.learner.as_ref(), Some(&self.progress))
    }
}

/// The observer: shows where the run is, asks the callback, and ends the run when nobody waits for it.
struct Watch<'a> {
    call: &'a Call,
    board: &'a Board,
    /// Where the run was after its last step.
    last: Progress,
    watcher: Option<Arc<Py<PyAny>>>,
}

impl<'a> Watch<'a> {
    fn new(call: &'a Call, begun: Progress, board: &'a Board) -> Self {
        let watcher = call.watcher.as_ref().map(|watcher| Arc::new(Python::attach(|py| watcher.clone_ref(py))));
        if let Some(seen) = board.lock().as_mut() {
            seen.missed = Missed::default();
        }
        Watch { call, board, last: begun, watcher }
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
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.last = *run.progress;
        let record = Record::new(run.progress, step);
        self.board.show(run.learner, run.progress);
        if let Some(seen) = self.board.lock().as_mut() {
            seen.history.push(record);
            // A pass of a batch method makes a few iterations, whatever they reach; osc bounds no gaps.
            let has_tolerance = !seen.config.method.is_batch() && seen.config.method != Method::Osc;
            if has_tolerance && step.own_codes.iter().any(|coded| coded.status != Status::Converged) {
                seen.missed.steps += 1;
                seen.missed.gap = seen.missed.gap.max(step.gap());
            }
        }
        let stop = self.ask(record)? || self.call.host.is_gone();
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.last = *run.progress;
        Ok(ControlFlow::Continue(()))
    }
}

/// For runs that begin: sources are prepared as the plan says.
pub(crate) fn preparation(config: &Config) -> PyResult<Prepare> {
    Prepare::new(config.preprocess.clone())
}
