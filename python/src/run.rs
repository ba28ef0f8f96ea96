//! One run of a learner, in f32 or f64 behind one face.

use crate::array::{Scalar, filters};
use crate::error::{Raised, exception};
use crate::host::Host;
use crate::source::{Arriving, Begun, Prepare, Source};
use ocsc::checkpoint::{self, Saved};
use ocsc::learner::{Step, learner};
use ocsc::memory::Survey;
use ocsc::observe::{Moment, Observer};
use ocsc::start::{Init, first_usable, start};
use ocsc::train::{Progress, Schedule, Stream, train, train_stream, visiting_order};
use ocsc::{Config, Error, Learner, Result, Sample, Shape};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

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
    /// Refuses samples of these shapes if they do not fit, or if there is no memory for so many.
    fn check(&self, samples: usize, shapes: &[Shape], memory_limit: Option<usize>) -> Result<()>;
    /// Learns from all samples of a source, in passes.
    fn fit(&mut self, source: &Source, call: Call) -> PyResult<()>;
    /// Learns from a stream, in so many passes.
    fn stream(&mut self, passes: usize, stream: Arriving, call: Call) -> PyResult<()>;
    fn config(&self) -> &Config;
    fn progress(&self) -> &Progress;
    fn history(&self) -> &[Record];
    /// The dictionary, (K, C, axes...).
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    /// Writes a model file, or a checkpoint.
    fn save(&self, path: &Path, with_state: bool) -> Result<()>;
    /// A checkpoint in memory.
    fn bytes(&self) -> Result<Vec<u8>>;
}

/// A run that has a dictionary.
pub(crate) struct Run<T: Scalar> {
    learner: Box<dyn Learner<T>>,
    progress: Progress,
    history: Vec<Record>,
}

impl<T: Scalar> Run<T> {
    /// A new run, on a source.
    pub(crate) fn on_source(plan: &Plan, source: &Source, raised: &Raised) -> PyResult<Self> {
        let order = visiting_order(ocsc::Samples::<T>::len(source), plan.config.seed, 0);
        let told = |error| raised.exception(error);
        let (first, sample) = first_usable::<T>(source, &order, true).map_err(told)?;
        let name = ocsc::Samples::<T>::name(source, first);
        let batch = &order[..plan.config.batch_size.min(order.len())];
        Self::start(plan, &sample, &name, source, batch, raised)
    }

    /// A new run, on a stream; also returns what was taken of it.
    pub(crate) fn on_stream(plan: &Plan, stream: &mut Arriving, raised: &Raised) -> PyResult<(Self, Vec<Sample<T>>)> {
        let first = stream.take(plan.config.batch_size).map_err(|error| raised.exception(error))?.unwrap_or_default();
        let Some(sample) = first.first() else {
            return Err(exception(Error::invalid("X", "at least one sample", "none")));
        };
        let all: Vec<usize> = (0..first.len()).collect();
        let run = Self::start(plan, sample, "the first sample", &first, &all, raised)?;
        Ok((run, first))
    }

    fn start(
        plan: &Plan,
        sample: &Sample<T>,
        name: &str,
        samples: &dyn ocsc::Samples<T>,
        batch: &[usize],
        raised: &Raised,
    ) -> PyResult<Self> {
        let (config, shape) = (plan.config.clone(), sample.shape());
        let filter = Shape::from_axes(shape.channels, &config.filter_shape).map_err(exception)?;
        let fits = shape.spatial().iter().zip(filter.spatial()).all(|(s, f)| *s >= f);
        if !fits && !matches!(plan.init, Initial::Filters(_)) {
            let expected = format!("at least the size {filter} of the filters (filter_shape)");
            return Err(exception(Error::invalid(name, expected, shape)));
        }
        let init = plan.init.init()?;
        let started = start(config, init, plan.beta_ratio, shape.channels, samples, batch, true);
        let learner = started.map_err(|error| raised.exception(error))?.learner;
        Ok(Run { learner, progress: Progress::default(), history: Vec::new() })
    }

    /// A run that goes on from a model file: with its statistics from a checkpoint, with new ones otherwise.
    pub(crate) fn from_saved(saved: Saved<T>, history: Vec<Record>) -> Result<Self> {
        let (learner, progress) = match saved.is_checkpoint() {
            true => saved.resume()?,
            false => (learner(saved.config, saved.dictionary)?, Progress::default()),
        };
        Ok(Run { learner, progress, history })
    }
}

impl<T: Scalar> AnyRun for Run<T> {
    fn check(&self, samples: usize, shapes: &[Shape], memory_limit: Option<usize>) -> Result<()> {
        let (config, filter) = (self.learner.config(), self.learner.dictionary().shape());
        shapes.iter().try_for_each(|shape| self.learner.dictionary().check_sample_shape(*shape))?;
        let one_size = shapes.first().copied().filter(|_| shapes.len() == 1);
        if shapes.len() > 1 && !config.method.takes_mixed_sizes() {
            let expected = format!("samples of one size for the method `{}` (`ocsc` takes any)", config.method);
            return Err(Error::invalid("X", expected, format!("{} sizes", shapes.len())));
        }
        let largest = shapes.iter().map(Shape::len).max().unwrap_or(0);
        Survey { samples, one_size, largest, processes: 1 }.ensure::<T>(config, filter, memory_limit)
    }

    fn fit(&mut self, source: &Source, call: Call) -> PyResult<()> {
        let mut watch = Watch::new(&call, self.progress, &mut self.history);
        let ended = train(self.learner.as_mut(), source, None, &call.schedule, Progress::default(), &mut watch);
        self.progress = watch.last;
        self.progress = ended.map_err(|error| call.raised.exception(error))?.progress;
        Ok(())
    }

    fn stream(&mut self, passes: usize, stream: Arriving, call: Call) -> PyResult<()> {
        self.stream_from(passes, &mut Begun::<T> { first: None, rest: stream }, call)
    }

    fn config(&self) -> &Config {
        self.learner.config()
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn history(&self) -> &[Record] {
        &self.history
    }

    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        filters(py, self.learner.dictionary())
    }

    fn save(&self, path: &Path, with_state: bool) -> Result<()> {
        checkpoint::save(path, self.learner.as_ref(), with_state.then_some(&self.progress))
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        checkpoint::to_bytes(self.learner.as_ref(), Some(&self.progress))
    }
}

impl<T: Scalar> Run<T> {
    pub(crate) fn stream_from(&mut self, passes: usize, stream: &mut Begun<T>, call: Call) -> PyResult<()> {
        let mut watch = Watch::new(&call, self.progress, &mut self.history);
        let ended =
            train_stream(self.learner.as_mut(), passes, stream, None, &call.schedule, self.progress, &mut watch);
        self.progress = watch.last;
        self.progress = ended.map_err(|error| call.raised.exception(error))?.progress;
        Ok(())
    }
}

/// The observer: keeps records, asks the callback, and ends the run when nobody waits for it.
struct Watch<'a> {
    call: &'a Call,
    history: &'a mut Vec<Record>,
    /// Where the run was after its last step.
    last: Progress,
    watcher: Option<Arc<Py<PyAny>>>,
}

impl<'a> Watch<'a> {
    fn new(call: &'a Call, begun: Progress, history: &'a mut Vec<Record>) -> Self {
        let watcher = call.watcher.as_ref().map(|watcher| Arc::new(Python::attach(|py| watcher.clone_ref(py))));
        Watch { call, history, last: begun, watcher }
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
    fn step(&mut self, run: &Moment<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.last = *run.progress;
        let record = Record::new(run.progress, step);
        self.history.push(record);
        let stop = self.ask(record)? || self.call.host.is_gone();
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass(&mut self, run: &Moment<'_, T>) -> Result<ControlFlow<()>> {
        self.last = *run.progress;
        Ok(ControlFlow::Continue(()))
    }
}

/// For runs that begin: sources are prepared as the plan says.
pub(crate) fn preparation(config: &Config) -> PyResult<Prepare> {
    Prepare::new(config.preprocess.clone())
}
