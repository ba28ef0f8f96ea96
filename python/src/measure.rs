//! Preprocesses samples, and compares them.

use crate::array::{array, numbers, sample};
use crate::error::exception;
use crate::host::work;
use numpy::PyArray4;
use ocsc::preprocess::Preprocess;
use ocsc::{Sample, metrics};
use pyo3::prelude::*;

/// Returns a sample after the steps, in f64.
#[pyfunction]
pub(crate) fn prepare<'py>(
    py: Python<'py>,
    steps: &str,
    item: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyArray4<f64>>> {
    let steps: Preprocess = steps.parse().map_err(exception)?;
    let sample = sample::<f64>(item)?.map_err(exception)?;
    let prepared = work(py, Some(1), move |_| steps.apply(sample).map_err(exception))?;
    array(py, prepared)
}

/// Returns the reconstruction of a prepared sample, brought back to the domain of `original`.
#[pyfunction]
pub(crate) fn undo<'py>(
    py: Python<'py>,
    steps: &str,
    original: &Bound<'_, PyAny>,
    reconstruction: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyArray4<f64>>> {
    let steps: Preprocess = steps.parse().map_err(exception)?;
    let original = sample::<f64>(original)?.map_err(exception)?;
    let (shape, values) = numbers::<f64>(reconstruction)?;
    let back = work(py, Some(1), move |_| {
        let reconstruction = Sample::new(shape, values).map_err(exception)?;
        let (_, undo) = steps.apply_undoable(original).map_err(exception)?;
        undo.apply(reconstruction).map_err(exception)
    })?;
    array(py, back)
}

type Metric = fn(&Sample<f64>, &Sample<f64>) -> ocsc::Result<f64>;

/// Returns the metric of two items.
fn compared(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    metric: impl Fn(&Sample<f64>, &Sample<f64>) -> ocsc::Result<f64>,
) -> PyResult<f64> {
    let (a, b) = (sample::<f64>(a)?.map_err(exception)?, sample::<f64>(b)?.map_err(exception)?);
    metric(&a, &b).map_err(exception)
}

/// Returns the mean squared error over what the reference observed.
#[pyfunction]
pub(crate) fn mse(reference: &Bound<'_, PyAny>, estimate: &Bound<'_, PyAny>) -> PyResult<f64> {
    compared(reference, estimate, metrics::mse as Metric)
}

/// Returns the peak signal-to-noise ratio in decibels.
#[pyfunction]
pub(crate) fn psnr(reference: &Bound<'_, PyAny>, estimate: &Bound<'_, PyAny>, peak: f64) -> PyResult<f64> {
    compared(reference, estimate, |a, b| metrics::psnr(a, b, peak))
}

/// Returns the structural similarity.
#[pyfunction]
pub(crate) fn ssim(reference: &Bound<'_, PyAny>, estimate: &Bound<'_, PyAny>, peak: f64) -> PyResult<f64> {
    compared(reference, estimate, |a, b| metrics::ssim(a, b, peak))
}
