//! Restores images.

use crate::array::{array, dictionary, sample};
use crate::error::exception;
use crate::host::work;
use crate::tune::Waited;
use numpy::PyArray4;
use ocsc::Dictionary;
use ocsc::restore::{self, Options};
use pyo3::prelude::*;

/// Returns the standard deviation of the noise in an image.
#[pyfunction]
pub(crate) fn noise_of(item: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(restore::noise_of(&sample::<f32>(item)?.map_err(exception)?))
}

/// Returns an image without noise of this deviation, which is estimated if it is none.
#[pyfunction]
pub(crate) fn denoise<'py>(
    py: Python<'py>,
    item: &Bound<'_, PyAny>,
    sigma: Option<f64>,
    filters: Option<&Bound<'_, PyAny>>,
    learn_here: bool,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray4<f32>>> {
    let image = sample::<f32>(item)?.map_err(exception)?;
    let options = Options { sigma, learn_here, dictionary: given(filters)?, seed };
    let done =
        work(py, threads, move |host| restore::denoise(&image, &options, &Waited(host.clone())).map_err(exception));
    array(py, done?)
}

/// Returns an image with what its mask hides filled in.
#[pyfunction]
pub(crate) fn inpaint<'py>(
    py: Python<'py>,
    item: &Bound<'_, PyAny>,
    filters: Option<&Bound<'_, PyAny>>,
    learn_here: bool,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray4<f32>>> {
    let image = sample::<f32>(item)?.map_err(exception)?;
    let options = Options { learn_here, dictionary: given(filters)?, seed, ..Options::default() };
    let done =
        work(py, threads, move |host| restore::inpaint(&image, &options, &Waited(host.clone())).map_err(exception));
    array(py, done?)
}

/// Returns the filters to begin with, if they are given.
fn given(filters: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Dictionary<f32>>> {
    filters.map(dictionary).transpose()
}
