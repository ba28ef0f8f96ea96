//! The class `Learner`: a run that Python holds on to.
//!
//! Work that was left behind after Ctrl-C still holds the run until its step ends. Who wants to go on with the run, or all of
//! its state, waits for that; what else there is to ask is answered at once, as it was after the last step that ended.

use crate::array::Filters;
use crate::error::{Raised, exception};
use crate::host::{Host, work};
use crate::live::LivePage;
use crate::run::{AnyRun, Board, Call, Initial, Plan, Record, Seen, Session, check_channels, preparation};
use crate::source::{IteratorStream, Source};
use crate::values::{config, named};
use numpy::prelude::*;
use numpy::{PyArray1, PyReadonlyArray1};
use ocsc::settings::{Dtype, RunConfig};
use ocsc::train::Begun;
use ocsc::{Config, Shape, checkpoint};
use pyo3::exceptions::{PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashSet;
use std::ffi::CString;
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
    /// None until there are filters; locked while it learns.
    run: Mutex<Option<Box<dyn AnyRun>>>,
    board: Arc<Board>,
    /// The thread that called has left.
    left: AtomicBool,
}

impl Learner {
    fn new(plan: Plan, run: Option<Box<dyn AnyRun>>, board: Arc<Board>) -> Self {
        Learner(Arc::new(Shared { plan, run: Mutex::new(run), board, left: AtomicBool::new(false) }))
    }

    /// Returns the run, when nobody works on it.
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
                        "the estimator is learning; expected to be asked to go on, for a checkpoint or a pickle after that",
                    ));
                }
            }
        }
    }

    /// Looks at a run that has filters, without waiting for it.
    fn look<R>(&self, look: impl FnOnce(&Seen) -> PyResult<R>) -> PyResult<R> {
        self.0.board.lock().as_ref().map_or_else(|| Err(nothing_yet()), look)
    }

    /// Looks at a run that has filters, when nobody works on it.
    fn wait<R>(&self, py: Python<'_>, look: impl FnOnce(&dyn AnyRun) -> PyResult<R>) -> PyResult<R> {
        self.run(py)?.as_deref().map_or_else(|| Err(nothing_yet()), look)
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
    /// Plans a run with settings by name; `init` is random, patches or filters (K, C, axes...).
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
        Ok(Self::new(Plan { config: config(settings)?, init, beta_ratio }, None, Arc::default()))
    }

    /// Learns from `length` samples that `reader` reads, in as many passes as the settings say. `sizes` are the shapes
    /// (channel, depth, height, width) that occur, if they are known, each with the number of a sample that has it.
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
        sizes: Vec<(usize, [usize; 4])>,
        page: Option<PyRef<'_, LivePage>>,
    ) -> PyResult<()> {
        let page = page.map(|page| page.0.clone());
        let options = RunConfig { stop_tol, time_limit, ..RunConfig::default() };
        self.learn(py, threads, move |Shared { plan, board, .. }, run, host| {
            let raised = Arc::new(Raised::default());
            let shapes = prepared(&plan.config, &sizes);
            check_channels(&shapes).map_err(exception)?;
            let source = Source::new(reader, length, shapes, preparation(&plan.config)?, raised.clone(), host);
            let new: Box<dyn AnyRun> = match plan.config.dtype {
                Dtype::F32 => Box::new(Session::<f32>::start(plan, &source, memory_limit, board, &raised)?),
                Dtype::F64 => Box::new(Session::<f64>::start(plan, &source, memory_limit, board, &raised)?),
            };
            run.insert(new).fit(&source, Call { options, watcher, host: host.clone(), raised, page })
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
        memory_limit: Option<usize>,
        page: Option<PyRef<'_, LivePage>>,
    ) -> PyResult<()> {
        let page = page.map(|page| page.0.clone());
        let options = RunConfig { stop_tol, time_limit, ..RunConfig::default() };
        self.learn(py, threads, move |shared, run, host| {
            let raised = Arc::new(Raised::default());
            let stream = IteratorStream::new(stream, preparation(&shared.plan.config)?, raised.clone(), host);
            let call = Call { options, watcher, host: host.clone(), raised, page };
            match (run.as_mut(), shared.plan.config.dtype) {
                (Some(run), _) => run.stream(passes, stream, call),
                (None, Dtype::F32) => begin::<f32>(shared, run, passes, stream, memory_limit, call),
                (None, Dtype::F64) => begin::<f64>(shared, run, passes, stream, memory_limit, call),
            }
        })
    }

    /// Returns whether there are filters.
    #[getter]
    fn is_started(&self) -> bool {
        self.0.board.lock().is_some()
    }

    /// Returns the filters, (K, C, axes...).
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.look(|seen| seen.filters.array(py))
    }

    /// Returns the settings by name, as they are after the start.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.look(|seen| named(py, &seen.config))
    }

    /// Returns the number of steps made.
    #[getter]
    fn n_steps(&self) -> PyResult<usize> {
        self.look(|seen| Ok(seen.progress.step))
    }

    /// Returns the number of samples learned from.
    #[getter]
    fn n_samples(&self) -> PyResult<usize> {
        self.look(|seen| Ok(seen.progress.samples))
    }

    /// Returns how many steps of the last call had codes that missed the tolerance, and the worst gap among them.
    #[getter]
    fn missed(&self) -> PyResult<(usize, f64)> {
        self.look(|seen| Ok((seen.missed.steps, seen.missed.gap)))
    }

    /// Returns how many codes the last pass had, how many of them are all zeros, their non-zeros, and the values of their samples.
    #[getter]
    fn sparsity(&self) -> PyResult<(usize, usize, usize, usize)> {
        let counts = |s: ocsc::Sparsity| (s.codes, s.empty, s.nonzeros, s.values);
        self.look(|seen| Ok(counts(seen.sparsity)))
    }

    /// Returns one array per field of the records of all steps.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.look(|seen| {
            let columns = PyDict::new(py);
            for (i, name) in Record::FIELDS.iter().enumerate() {
                columns.set_item(name, PyArray1::from_iter(py, seen.history.iter().map(|record| record.0[i])))?;
            }
            Ok(columns)
        })
    }

    /// Goes on with other settings, of those that leave what was learned valid; waits for a run that goes on.
    fn change(&self, py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<()> {
        let config = config(settings)?;
        self.run(py)?.as_deref_mut().map_or_else(|| Err(nothing_yet()), |run| run.change(config).map_err(exception))
    }

    /// Writes a checkpoint, which learning can go on from, and waits for a run that goes on.
    fn save_checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.wait(py, |run| run.save(&path).map_err(exception))
    }

    /// Writes a model file, with these settings instead of those it was learned with.
    fn save(&self, path: PathBuf, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let (learned, filters, samples) =
            self.look(|seen| Ok((seen.config.clone(), seen.filters.clone(), seen.samples)))?;
        let config = settings.map(config).transpose()?.unwrap_or(learned);
        let saved = match &filters {
            Filters::F32(dictionary) => checkpoint::save_model(&path, &config, dictionary, samples),
            Filters::F64(dictionary) => checkpoint::save_model(&path, &config, dictionary, samples),
        };
        saved.map_err(exception)
    }

    /// Returns a checkpoint in memory.
    fn dumps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.wait(py, |run| Ok(PyBytes::new(py, &run.bytes().map_err(exception)?)))
    }
}

/// Returns the shapes of samples after preprocessing.
fn prepared(config: &Config, sizes: &[(usize, [usize; 4])]) -> Vec<(usize, Shape)> {
    let after = |&(i, [channels, depth, height, width]): &(usize, [usize; 4])| {
        (i, config.preprocess.shape(Shape { channels, depth, height, width }))
    };
    let mut seen = HashSet::new();
    let mut shapes: Vec<_> = sizes.iter().map(after).filter(|(_, shape)| seen.insert(*shape)).collect();
    shapes.sort_by_key(|(i, _)| *i);
    shapes
}

/// Returns the exception for a run without filters.
fn nothing_yet() -> PyErr {
    PyValueError::new_err("nothing was learned yet")
}

/// Takes the first batch, starts, and goes on.
fn begin<T: crate::array::Scalar>(
    shared: &Shared,
    run: &mut Option<Box<dyn AnyRun>>,
    passes: usize,
    stream: IteratorStream,
    memory_limit: Option<usize>,
    call: Call,
) -> PyResult<()> {
    let batch = shared.plan.config.batch_size;
    let mut stream = Begun::<T, _>::new(stream, batch).map_err(|error| call.raised.exception(error))?;
    if stream.first().is_empty() {
        return Err(exception(ocsc::Error::invalid("X", "at least one sample", "none")));
    }
    let mut new = Session::<T>::start(&shared.plan, &stream.first(), memory_limit, &shared.board, &call.raised)?;
    let learned = new.stream_from(passes, &mut stream, &call);
    // Also after an error: what was learned up to there is kept.
    *run = Some(Box::new(new));
    learned
}

/// Reads a model file.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Learner> {
    let bytes = std::fs::read(&path).map_err(|e| exception(ocsc::Error::io(&path, e)))?;
    restored(py, &bytes, &path, Vec::new())
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
    restored(history.py(), bytes, Path::new("pickle"), records)
}

fn restored(py: Python<'_>, bytes: &[u8], path: &Path, history: Vec<Record>) -> PyResult<Learner> {
    let single = checkpoint::from_bytes::<f32>(bytes, path).map_err(exception)?;
    if single.checksum.is_none() {
        let path = path.display();
        let text =
            format!("{path}: no checksum (written before there were any, or elsewhere): damage would go unnoticed");
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(text)?, 1)?;
    }
    let config: Config = single.config.clone();
    let board = Arc::<Board>::default();
    let run: Box<dyn AnyRun> = match config.dtype {
        Dtype::F32 => Box::new(Session::from_saved(single, history, board.clone()).map_err(exception)?),
        Dtype::F64 => {
            let double = checkpoint::from_bytes::<f64>(bytes, path).map_err(exception)?;
            Box::new(Session::from_saved(double, history, board.clone()).map_err(exception)?)
        }
    };
    Ok(Learner::new(Plan { config, init: Initial::Random, beta_ratio: None }, Some(run), board))
}
