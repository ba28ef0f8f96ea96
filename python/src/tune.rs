//! Chooses beta by predicting hidden values.

use crate::array::{Filters as Given, Scalar, scaled_dictionary};
use crate::error::Raised;
use crate::host::{Host, work};
use crate::run::preparation;
use crate::source::Source;
use crate::values::config;
use ocsc::Config;
use ocsc::monitor::Monitor;
use ocsc::run::Init;
use ocsc::settings::Dtype;
use ocsc::tune::{Filters, Tuned, Tuning};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Ends the work when nobody waits for it.
pub(crate) struct Waited(pub(crate) Host);

impl Monitor for Waited {
    fn keep_going(&self) -> bool {
        !self.0.is_gone()
    }
}

/// What is tuned on.
struct Task {
    config: Config,
    tuning: Tuning,
    /// Filters to learn from, a word or an array; or those of a model.
    start: Py<PyAny>,
    is_model: bool,
    reader: Py<PyAny>,
    length: usize,
}

/// Tries a path of betas, and returns what came of it as JSON. `start` is random, patches or filters (K, C, axes...), which are
/// those of a model if `is_model`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called from one place, by position")]
pub(crate) fn tune(
    py: Python<'_>,
    settings: &Bound<'_, PyDict>,
    start: Py<PyAny>,
    is_model: bool,
    reader: Py<PyAny>,
    length: usize,
    hidden: f64,
    ratios: Option<Vec<f64>>,
    learned_at: Option<f64>,
    relearn: bool,
    samples: Option<usize>,
    threads: Option<usize>,
) -> PyResult<String> {
    let config = config(settings)?;
    let mut tuning = Tuning::default();
    (tuning.hidden, tuning.relearn, tuning.samples, tuning.seed) = (hidden, relearn, samples, config.seed);
    tuning.ratios = ratios.unwrap_or(tuning.ratios);
    tuning.learned_at = learned_at.unwrap_or(tuning.learned_at);
    let task = Task { config, tuning, start, is_model, reader, length };
    let tuned = match task.config.dtype {
        Dtype::F32 => work(py, threads, move |host| tuned::<f32>(task, host))?,
        Dtype::F64 => work(py, threads, move |host| tuned::<f64>(task, host))?,
    };
    serde_json::to_string(&tuned).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn tuned<T: Scalar>(task: Task, host: &Host) -> PyResult<Tuned> {
    let raised = Arc::new(Raised::default());
    let Task { config, tuning, start, is_model, reader, length } = task;
    let filters = Python::attach(|py| {
        Ok::<_, PyErr>(match start.extract::<String>(py).as_deref() {
            Ok("random") => Filters::Learned(Init::Random),
            Ok("patches") => Filters::Learned(Init::Patches),
            Ok(other) => {
                return Err(PyValueError::new_err(format!(
                    "init: expected random, patches or an array, found {other:?}"
                )));
            }
            Err(_) if is_model => Filters::Given(scaled_dictionary::<T>(start.bind(py))?),
            Err(_) => Filters::Learned(Init::Given(scaled_dictionary::<T>(start.bind(py))?)),
        })
    })?;
    let source = Source::new(reader, length, Vec::new(), preparation(&config)?, raised.clone(), host);
    let monitor: Arc<dyn Monitor> = Arc::new(Waited(host.clone()));
    let done = ocsc::tune::tune(&config, filters, &source, &tuning, &monitor, &mut |_| {});
    done.map_err(|error| raised.exception(error))
}

/// Hides a share of the values of all samples, codes the others with the beta of the settings, and returns the error of the
/// hidden ones.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called from one place, by position")]
pub(crate) fn heldout(
    py: Python<'_>,
    settings: &Bound<'_, PyDict>,
    filters: &Bound<'_, PyAny>,
    reader: Py<PyAny>,
    length: usize,
    hidden: f64,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<f64> {
    let config = config(settings)?;
    match Given::new(&config, filters)? {
        Given::F32(d) => work(py, threads, move |host| error(&config, &d, reader, length, hidden, seed, host)),
        Given::F64(d) => work(py, threads, move |host| error(&config, &d, reader, length, hidden, seed, host)),
    }
}

fn error<T: Scalar>(
    config: &Config,
    dictionary: &ocsc::Dictionary<T>,
    reader: Py<PyAny>,
    length: usize,
    hidden: f64,
    seed: u64,
    host: &Host,
) -> PyResult<f64> {
    let raised = Arc::new(Raised::default());
    let source = Source::new(reader, length, Vec::new(), preparation(config)?, raised.clone(), host);
    let monitor: Arc<dyn Monitor> = Arc::new(Waited(host.clone()));
    let done = ocsc::tune::heldout(config, dictionary, &source, hidden, seed, &monitor);
    done.map_err(|error| raised.exception(error))
}

/// Returns the fraction of the largest useful beta that is the default.
#[pyfunction]
pub(crate) fn default_ratio() -> f64 {
    ocsc::beta::DEFAULT_RATIO
}
