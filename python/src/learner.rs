//! The class `Learner`: a run that Python holds on to.
//!
//! Work that was left behind after Ctrl-C still holds the run until its step ends; whoever asks then waits for it.

use crate::error::{Raised, exception};
use crate::host::{Host, work};
use crate::run::{AnyRun, Call, Initial, Plan, Record, Run, preparation};
use crate::source::{Arriving, Begun, Source};
use crate::values::{config, named};
use numpy::prelude::*;
use numpy::{PyArray1, PyReadonlyArray1};
use ocsc::config::Dtype;
use ocsc::train::Schedule;
use ocsc::{Config, Shape, checkpoint};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How often a wait for work that was left behind looks up.
const PATIENCE: Duration = Duration::from_millis(20);

/// A run, from its settings on.
#[pyclass(frozen, module = "ocsc._native")]
pub(crate) struct Learner(Arc<Shared>);

struct Shared {
    plan: Plan,
    /// None until there are filters.
    run: Mutex<Option<Box<dyn AnyRun>>>,
    /// Whether there are filters, or will be when the work that was left behind is done.
    started: AtomicBool,
    /// The thread that called has left.
    left: AtomicBool,
}

impl Learner {
    fn new(plan: Plan, run: Option<Box<dyn AnyRun>>) -> Self {
        let (started, left) = (AtomicBool::new(run.is_some()), AtomicBool::new(false));
        Learner(Arc::new(Shared { plan, run: Mutex::new(run), started, left }))
    }

    /// The run, when nobody works on it.
    fn run(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Box<dyn AnyRun>>>> {
        loop {
            match self.0.run.try_lock() {
                Ok(run) => return Ok(run),
                Err(TryLockError::Poisoned(run)) => return Ok(run.into_inner()),
                Err(TryLockError::WouldBlock) if self.0.left.load(SeqCst) => {
                    py.detach(|| std::thread::sleep(PATIENCE));
                    py.check_signals()?;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(PyRuntimeError::new_err(
                        "the estimator is learning; expected to be asked after that (a callback gets what it needs)",
                    ));
                }
            }
        }
    }

    /// Looks at a run that has filters.
    fn look<R>(&self, py: Python<'_>, look: impl FnOnce(&dyn AnyRun) -> PyResult<R>) -> PyResult<R> {
        match self.run(py)?.as_deref() {
            Some(run) => look(run),
            None => Err(PyValueError::new_err("nothing was learned yet")),
        }
    }

    /// Does `learn` with the run, as [`work`] does.
    fn learn(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        learn: impl FnOnce(&Shared, &mut Option<Box<dyn AnyRun>>, &Host) -> PyResult<()> + Send + 'static,
    ) -> PyResult<()> {
        drop(self.run(py)?);
        let shared = self.0.clone();
        shared.left.store(false, SeqCst);
        let done = work(py, threads, move |host| {
            let mut run = shared.run.lock().unwrap_or_else(PoisonError::into_inner);
            learn(&shared, &mut run, host)
        });
        self.0.left.store(done.is_err(), SeqCst);
        done
    }
}

#[pymethods]
impl Learner {
    /// Settings by name; `init` is random, patches or filters (K, C, axes...).
    #[new]
    fn create(settings: &Bound<'_, PyDict>, init: &Bound<'_, PyAny>, beta_ratio: Option<f64>) -> PyResult<Self> {
        let init = match init.extract::<String>().as_deref() {
            Ok("random") => Initial::Random,
            Ok("patches") => Initial::Patches,
            Ok(other) => {
                let expected = "random, patches, or an array of shape (K, C, axes...) or (K, axes...)";
                return Err(PyValueError::new_err(format!("init: expected {expected}, found {other:?}")));
            }
            Err(_) => Initial::Filters(init.clone().unbind()),
        };
        Ok(Self::new(Plan { config: config(settings)?, init, beta_ratio }, None))
    }

    /// Learns from `length` samples that `reader` reads, in as many passes as the settings say. `sizes` are the shapes
    /// (channel, depth, height, width) that occur, if they are known.
    #[expect(clippy::too_many_arguments, reason = "called from one place, by position")]
    fn fit(
        &self,
        py: Python<'_>,
        reader: Py<PyAny>,
        length: usize,
        watcher: Option<Py<PyAny>>,
        stop_tol: Option<f64>,
        time_limit: Option<f64>,
        threads: Option<usize>,
        memory_limit: Option<usize>,
        sizes: Vec<[usize; 4]>,
    ) -> PyResult<()> {
        let shape = |[channels, depth, height, width]: [usize; 4]| Shape { channels, depth, height, width };
        let shapes: Vec<Shape> = sizes.into_iter().map(shape).collect();
        let schedule = schedule(stop_tol, time_limit);
        self.learn(py, threads, move |Shared { plan, started, .. }, run, host| {
            let raised = Arc::new(Raised::default());
            let source = Source::new(reader, length, preparation(&plan.config)?, raised.clone(), host);
            let new: Box<dyn AnyRun> = match plan.config.dtype {
                Dtype::F32 => Box::new(Run::<f32>::on_source(plan, &source, &raised)?),
                Dtype::F64 => Box::new(Run::<f64>::on_source(plan, &source, &raised)?),
            };
            new.check(length, &shapes, memory_limit).map_err(exception)?;
            started.store(true, SeqCst);
            run.insert(new).fit(&source, Call { schedule, watcher, host: host.clone(), raised })
        })
    }

    /// Learns from a stream, from where it is or, if there are no filters yet, from the beginning.
    #[expect(clippy::too_many_arguments, reason = "called from one place, by position")]
    fn fit_stream(
        &self,
        py: Python<'_>,
        stream: Py<PyAny>,
        passes: usize,
        watcher: Option<Py<PyAny>>,
        stop_tol: Option<f64>,
        time_limit: Option<f64>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let schedule = schedule(stop_tol, time_limit);
        self.learn(py, threads, move |shared, run, host| {
            let raised = Arc::new(Raised::default());
            let stream = Arriving::new(stream, preparation(&shared.plan.config)?, raised.clone(), host);
            let call = Call { schedule, watcher, host: host.clone(), raised };
            match (run.as_mut(), shared.plan.config.dtype) {
                (Some(run), _) => run.stream(passes, stream, call),
                (None, Dtype::F32) => begin::<f32>(shared, run, passes, stream, call),
                (None, Dtype::F64) => begin::<f64>(shared, run, passes, stream, call),
            }
        })
    }

    /// Whether there are filters; does not wait for them.
    #[getter]
    fn is_started(&self) -> bool {
        self.0.started.load(SeqCst)
    }

    /// The filters, (K, C, axes...).
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.look(py, |run| run.filters(py))
    }

    /// The settings by name, as they are after the start.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.look(py, |run| named(py, run.config()))
    }

    /// Steps made.
    #[getter]
    fn n_steps(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |run| Ok(run.progress().step))
    }

    /// Samples learned from.
    #[getter]
    fn n_samples(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |run| Ok(run.progress().samples))
    }

    /// One array per field of the records of all steps.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.look(py, |run| {
            let columns = PyDict::new(py);
            for (i, name) in Record::FIELDS.iter().enumerate() {
                columns.set_item(name, PyArray1::from_iter(py, run.history().iter().map(|record| record.0[i])))?;
            }
            Ok(columns)
        })
    }

    /// Writes a model file; with `checkpoint`, one that learning can go on from.
    fn save(&self, py: Python<'_>, path: PathBuf, checkpoint: bool) -> PyResult<()> {
        self.look(py, |run| run.save(&path, checkpoint).map_err(exception))
    }

    /// A checkpoint in memory.
    fn dumps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.look(py, |run| Ok(PyBytes::new(py, &run.bytes().map_err(exception)?)))
    }
}

/// Takes the first batch, starts, and goes on.
fn begin<T: crate::array::Scalar>(
    shared: &Shared,
    run: &mut Option<Box<dyn AnyRun>>,
    passes: usize,
    mut stream: Arriving,
    call: Call,
) -> PyResult<()> {
    let (mut new, first) = Run::<T>::on_stream(&shared.plan, &mut stream, &call.raised)?;
    shared.started.store(true, SeqCst);
    let learned = new.stream_from(passes, &mut Begun { first: Some(first), rest: stream }, call);
    // Also after an error: what was learned up to there is kept.
    *run = Some(Box::new(new));
    learned
}

fn schedule(stop_tol: Option<f64>, time_limit: Option<f64>) -> Schedule {
    // A limit beyond what a duration holds is no limit.
    let time_limit = time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
    Schedule { stop_tol, time_limit, test_every: None, strict: true }
}

/// Reads a model file.
#[pyfunction]
pub(crate) fn load(path: PathBuf) -> PyResult<Learner> {
    let bytes = std::fs::read(&path).map_err(|e| exception(ocsc::Error::io(&path, e)))?;
    restored(&bytes, &path, Vec::new())
}

/// Reads what [`Learner::dumps`] wrote, with the history of the run.
#[pyfunction]
pub(crate) fn loads(bytes: &[u8], history: &Bound<'_, PyDict>) -> PyResult<Learner> {
    let mut records = Vec::new();
    for (i, name) in Record::FIELDS.iter().enumerate() {
        let column = history.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("history: no {name}")))?;
        let column: PyReadonlyArray1<'_, f64> = column.extract()?;
        records.resize(column.len(), Record([0.0; Record::FIELDS.len()]));
        records.iter_mut().zip(column.as_array()).for_each(|(record, v)| record.0[i] = *v);
    }
    restored(bytes, Path::new("pickle"), records)
}

fn restored(bytes: &[u8], path: &Path, history: Vec<Record>) -> PyResult<Learner> {
    let single = checkpoint::from_bytes::<f32>(bytes, path).map_err(exception)?;
    let config: Config = single.config.clone();
    let run: Box<dyn AnyRun> = match config.dtype {
        Dtype::F32 => Box::new(Run::from_saved(single, history).map_err(exception)?),
        Dtype::F64 => {
            let double = checkpoint::from_bytes::<f64>(bytes, path).map_err(exception)?;
            Box::new(Run::from_saved(double, history).map_err(exception)?)
        }
    };
    Ok(Learner::new(Plan { config, init: Initial::Random, beta_ratio: None }, Some(run)))
}
