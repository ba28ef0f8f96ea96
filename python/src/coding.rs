//! Codes, reconstructs and evaluates with given filters.

use crate::array::{Filters, Scalar, array, dictionary};
use crate::error::{Raised, exception};
use crate::host::{Host, work};
use crate::run::preparation;
use crate::source::Source;
use crate::values::config;
use numpy::prelude::*;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use ocsc::coder::{Coded, Status};
use ocsc::learner::{self, coder};
use ocsc::monitor::Silent;
use ocsc::train::{TEST_TOL, code_each};
use ocsc::{Atom, Code, Config, Dictionary, Error, Mixing, Sample, Samples};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Holds what is common to the functions below: settings, and samples that are read when they are wanted.
struct Task {
    config: Config,
    reader: Py<PyAny>,
    length: usize,
}

impl Task {
    /// Returns the settings, and the samples as the library reads them.
    fn source(self, raised: &Arc<Raised>, host: &Host) -> PyResult<(Config, Source)> {
        let prepare = preparation(&self.config)?;
        Ok((self.config, Source::new(self.reader, self.length, Vec::new(), prepare, raised.clone(), host)))
    }
}

/// Codes samples. Returns arrays `filter`, `position` (flat), `value`, and per sample `nonzeros`, `shape` (depth, height, width),
/// `objective`, `gap` and `converged`; and where samples have filters of their own, in a list `mixing`, b (R) and W (K, R) of each.
#[pyfunction]
pub(crate) fn code<'py>(
    py: Python<'py>,
    settings: &Bound<'_, PyDict>,
    filters: &Bound<'_, PyAny>,
    reader: Py<PyAny>,
    length: usize,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let task = Task { config: config(settings)?, reader, length };
    match Filters::new(&task.config, filters)? {
        Filters::F32(d) => work(py, threads, move |host| coded(task, &d, host))?.dict(py),
        Filters::F64(d) => work(py, threads, move |host| coded(task, &d, host))?.dict(py),
    }
}

/// Collects the codes of many samples, one after the other.
struct Codes<T> {
    filter: Vec<i32>,
    position: Vec<i64>,
    value: Vec<T>,
    nonzeros: Vec<i64>,
    shape: Vec<i64>,
    objective: Vec<f64>,
    gap: Vec<f64>,
    beta: Vec<f64>,
    /// ||x||^2 of every sample, after preprocessing.
    energy: Vec<f64>,
    outliers: Vec<i64>,
    converged: Vec<bool>,
    /// How the filters of every sample's own are made of those given, where they have some.
    mixing: Vec<Mixing>,
}

impl<T: Scalar> Codes<T> {
    fn new() -> Self {
        let (filter, position, value, nonzeros) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (shape, objective, gap, converged) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (beta, energy, outliers, mixing) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Codes { filter, position, value, nonzeros, shape, objective, gap, beta, energy, outliers, converged, mixing }
    }

    fn push(&mut self, sample: &Sample<T>, coded: &Coded<T>) {
        for atom in coded.code.atoms() {
            self.filter.push(atom.filter as i32);
            self.position.push(atom.position.into());
            self.value.push(atom.value);
        }
        self.nonzeros.push(coded.code.nonzeros() as i64);
        self.shape.extend(coded.code.shape().map(|n| n as i64));
        self.objective.push(coded.total());
        self.gap.push(coded.relative_gap());
        self.beta.push(coded.beta);
        self.energy.push(sample.energy());
        self.outliers.push(coded.outliers as i64);
        self.converged.push(coded.status == Status::Converged);
        self.mixing.extend(coded.filters.as_ref().map(|own| own.mixing.clone()));
    }

    fn dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        let n = self.nonzeros.len();
        dict.set_item("filter", PyArray1::from_vec(py, self.filter))?;
        dict.set_item("position", PyArray1::from_vec(py, self.position))?;
        dict.set_item("value", PyArray1::from_vec(py, self.value))?;
        dict.set_item("nonzeros", PyArray1::from_vec(py, self.nonzeros))?;
        dict.set_item("shape", PyArray1::from_vec(py, self.shape).reshape([n, 3])?)?;
        dict.set_item("objective", PyArray1::from_vec(py, self.objective))?;
        dict.set_item("gap", PyArray1::from_vec(py, self.gap))?;
        dict.set_item("beta", PyArray1::from_vec(py, self.beta))?;
        dict.set_item("energy", PyArray1::from_vec(py, self.energy))?;
        dict.set_item("outliers", PyArray1::from_vec(py, self.outliers))?;
        dict.set_item("converged", PyArray1::from_vec(py, self.converged))?;
        let mut mixing = Vec::with_capacity(self.mixing.len());
        for own in self.mixing {
            let (r, base) = (own.base().len(), own.base().iter().map(|b| *b as i64));
            let weights = PyArray1::from_slice(py, own.weights()).reshape([own.weights().len() / r, r])?;
            mixing.push((PyArray1::from_iter(py, base), weights));
        }
        dict.set_item("mixing", mixing)?;
        Ok(dict)
    }
}

fn coded<T: Scalar>(task: Task, dictionary: &Dictionary<T>, host: &Host) -> PyResult<Codes<T>> {
    let raised = Arc::new(Raised::default());
    let (config, source) = task.source(&raised, host)?;
    let mut coder = coder(&config, dictionary, config.tol).map_err(exception)?;
    let mut codes = Codes::new();
    let done = code_each(coder.as_mut(), dictionary, &source, &Silent, |_, item| -> ocsc::Result<()> {
        let item = item?;
        codes.push(&item.sample, &item.coded);
        if host.is_gone() { Err(Error::Source("interrupted".to_owned())) } else { Ok(()) }
    });
    done.map_err(|error| raised.exception(error))?;
    Ok(codes)
}

/// Codes samples for every beta, each code starting from that of the beta before. Returns what [`code`] does for every beta.
#[pyfunction]
pub(crate) fn path<'py>(
    py: Python<'py>,
    settings: &Bound<'_, PyDict>,
    filters: &Bound<'_, PyAny>,
    reader: Py<PyAny>,
    length: usize,
    betas: Vec<f64>,
    threads: Option<usize>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let task = Task { config: config(settings)?, reader, length };
    match Filters::new(&task.config, filters)? {
        Filters::F32(d) => dicts(py, work(py, threads, move |host| followed(task, &d, &betas, host))?),
        Filters::F64(d) => dicts(py, work(py, threads, move |host| followed(task, &d, &betas, host))?),
    }
}

fn dicts<T: Scalar>(py: Python<'_>, codes: Vec<Codes<T>>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    codes.into_iter().map(|codes| codes.dict(py)).collect()
}

/// Codes every sample along a path of betas.
fn followed<T: Scalar>(task: Task, dictionary: &Dictionary<T>, betas: &[f64], host: &Host) -> PyResult<Vec<Codes<T>>> {
    let raised = Arc::new(Raised::default());
    let (config, source) = task.source(&raised, host)?;
    let samples: &dyn Samples<T> = &source;
    let mut codes: Vec<Codes<T>> = betas.iter().map(|_| Codes::new()).collect();
    for i in 0..samples.len() {
        let sample = samples.get(i).map_err(|error| raised.exception(error))?;
        let coded =
            learner::path(&config, dictionary, &sample, betas, &Silent).map_err(|error| raised.exception(error))?;
        codes.iter_mut().zip(&coded).for_each(|(codes, coded)| codes.push(&sample, coded));
        if host.is_gone() {
            return Err(raised.exception(Error::Source("interrupted".to_owned())));
        }
    }
    Ok(codes)
}

/// Measures how well filters represent samples, as the program's `evaluate` does. Returns means over samples, by name.
#[pyfunction]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    settings: &Bound<'_, PyDict>,
    filters: &Bound<'_, PyAny>,
    reader: Py<PyAny>,
    length: usize,
    tol: Option<f64>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let task = Task { config: config(settings)?, reader, length };
    let tol = tol.unwrap_or(TEST_TOL);
    let evaluation = match Filters::new(&task.config, filters)? {
        Filters::F32(d) => work(py, threads, move |host| evaluated(task, &d, tol, host))?,
        Filters::F64(d) => work(py, threads, move |host| evaluated(task, &d, tol, host))?,
    };
    let dict = PyDict::new(py);
    dict.set_item("samples", evaluation.samples)?;
    dict.set_item("objective", evaluation.objective)?;
    dict.set_item("data_term", evaluation.data_term)?;
    dict.set_item("l1", evaluation.l1)?;
    dict.set_item("penalty", evaluation.penalty)?;
    dict.set_item("gap", evaluation.gap)?;
    dict.set_item("psnr", evaluation.psnr)?;
    dict.set_item("psnr_peak", evaluation.psnr_peak)?;
    dict.set_item("nonzeros", evaluation.nonzeros)?;
    dict.set_item("nonzeros_share", evaluation.nonzeros_share)?;
    dict.set_item("empty", evaluation.empty)?;
    dict.set_item("seconds", evaluation.seconds)?;
    Ok(dict)
}

fn evaluated<T: Scalar>(
    task: Task,
    dictionary: &Dictionary<T>,
    tol: f64,
    host: &Host,
) -> PyResult<ocsc::train::Evaluation> {
    let raised = Arc::new(Raised::default());
    let (config, source) = task.source(&raised, host)?;
    let mut each = |_: usize, item: ocsc::Result<ocsc::train::Represented<'_, T>>| {
        item?;
        if host.is_gone() { Err(Error::Source("interrupted".to_owned())) } else { Ok(()) }
    };
    ocsc::train::evaluate(&config, dictionary, &source, tol, &mut each).map_err(|error| raised.exception(error))
}

/// Returns the smallest beta with an all-zero code, for each sample.
#[pyfunction]
pub(crate) fn beta_max(
    py: Python<'_>,
    settings: &Bound<'_, PyDict>,
    filters: &Bound<'_, PyAny>,
    reader: Py<PyAny>,
    length: usize,
    threads: Option<usize>,
) -> PyResult<Vec<f64>> {
    let task = Task { config: config(settings)?, reader, length };
    match Filters::new(&task.config, filters)? {
        Filters::F32(d) => work(py, threads, move |host| largest(task, &d, host)),
        Filters::F64(d) => work(py, threads, move |host| largest(task, &d, host)),
    }
}

fn largest<T: Scalar>(task: Task, dictionary: &Dictionary<T>, host: &Host) -> PyResult<Vec<f64>> {
    let raised = Arc::new(Raised::default());
    let (config, source) = task.source(&raised, host)?;
    let mut coder = coder(&config, dictionary, config.tol).map_err(exception)?;
    let samples: &dyn Samples<T> = &source;
    let mut one = |i: usize| {
        let sample = samples.get(i)?;
        dictionary.check_sample_shape(sample.shape())?;
        coder.beta_max(&sample)
    };
    let one = |i: usize| {
        one(i).map_err(|error| match error {
            Error::Invalid { what, expected, found } => {
                Error::Invalid { what: format!("{}: {what}", samples.name(i)), expected, found }
            }
            other => other,
        })
    };
    (0..samples.len()).map(one).collect::<ocsc::Result<_>>().map_err(|error| raised.exception(error))
}

/// Returns the sample (channel, depth, height, width) that a code of shape (depth, height, width) stands for.
#[pyfunction]
pub(crate) fn reconstruct<'py>(
    py: Python<'py>,
    settings: &Bound<'_, PyDict>,
    filters: &Bound<'_, PyAny>,
    shape: [usize; 3],
    filter: PyReadonlyArray1<'_, i64>,
    position: PyReadonlyArray1<'_, i64>,
    value: PyReadonlyArray1<'_, f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let config = config(settings)?;
    let atoms = atoms(&filter, &position, &value)?;
    // In f64, whatever the codes were computed in, as the program does: this is the way out.
    let d = dictionary::<f64>(filters)?;
    let code = Code::new(d.n_filters(), shape, atoms).map_err(exception)?;
    let sample = py.detach(|| code.reconstruct(&d, config.boundary)).map_err(exception)?;
    Ok(array(py, sample)?.into_any())
}

/// Returns the filters that are combined of others as b (R) and W (K, R) say, in the precision of codes.
#[pyfunction]
pub(crate) fn own_filters<'py>(
    py: Python<'py>,
    filters: &Bound<'_, PyAny>,
    base: PyReadonlyArray1<'_, i64>,
    mixing: PyReadonlyArray2<'_, f64>,
    is_single: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let base = base.as_array().iter().map(|b| usize::try_from(*b).unwrap_or(usize::MAX)).collect();
    let mixing = Mixing::new(base, mixing.as_array().iter().copied().collect()).map_err(exception)?;
    match is_single {
        true => Filters::F32(mixing.filters(&dictionary(filters)?).map_err(exception)?).array(py),
        false => Filters::F64(mixing.filters(&dictionary(filters)?).map_err(exception)?).array(py),
    }
}

/// Returns atoms of their filters, flat positions and values.
pub(crate) fn atoms(
    filter: &PyReadonlyArray1<'_, i64>,
    position: &PyReadonlyArray1<'_, i64>,
    value: &PyReadonlyArray1<'_, f64>,
) -> PyResult<Vec<Atom<f64>>> {
    let small = |n: i64| {
        let wrong =
            |_| PyValueError::new_err(format!("code: expected filters and positions from 0 to 2^32, found {n}"));
        u32::try_from(n).map_err(wrong)
    };
    let (filter, position, value) = (filter.as_array(), position.as_array(), value.as_array());
    let mut atoms = Vec::with_capacity(value.len());
    for ((k, p), v) in filter.iter().zip(position).zip(value) {
        atoms.push(Atom { filter: small(*k)?, position: small(*p)?, value: *v });
    }
    Ok(atoms)
}
