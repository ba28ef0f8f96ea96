//! Restores images.

use crate::array::{array, dictionary, sample};
use crate::error::exception;
use crate::host::work;
use crate::tune::Waited;
use numpy::PyArray4;
use ocsc::monitor::Monitor;
use ocsc::restore::{self, Kernel, Noise, Options, SigmaDoubt};
use ocsc::{Error, Sample};
use pyo3::prelude::*;

/// What all functions take: filters to begin with, whether they learn from the image, the seed, threads.
type Common<'py> = (Option<Bound<'py, PyAny>>, bool, u64, Option<usize>);
type Image<'py> = PyResult<Bound<'py, PyArray4<f32>>>;

/// Returns the standard deviation of the noise in an image.
#[pyfunction]
pub(crate) fn noise_of(item: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(restore::noise_of(&sample::<f32>(item)?.map_err(exception)?))
}

/// Returns why a standard deviation of noise can hardly be that of an image: "range" with its smallest and largest value, "above" or
/// "below" with twice the estimate; none if it can.
#[pyfunction]
pub(crate) fn doubt_of_sigma(item: &Bound<'_, PyAny>, sigma: f64) -> PyResult<Option<(&'static str, f64, f64)>> {
    let image = sample::<f32>(item)?.map_err(exception)?;
    Ok(match restore::doubt_of_sigma(&image, sigma) {
        Some(SigmaDoubt::BeyondRange { low, high }) => Some(("range", low, high)),
        Some(SigmaDoubt::FarAbove { estimate }) => Some(("above", estimate, estimate)),
        Some(SigmaDoubt::FarBelow { estimate }) => Some(("below", estimate, estimate)),
        _ => None,
    })
}

/// Returns an image without noise: "gaussian" of a deviation, "poisson" of so many photons for 1, "impulse"; what is none is estimated.
#[pyfunction]
pub(crate) fn denoise<'py>(
    py: Python<'py>,
    item: &Bound<'_, PyAny>,
    noise: &str,
    amount: Option<f64>,
    common: Common<'py>,
) -> Image<'py> {
    let (noise, sigma) = match noise {
        "poisson" => (Noise::Poisson(amount), None),
        "impulse" => (Noise::Impulse, None),
        _ => (Noise::Gaussian, amount),
    };
    restored(py, item, common, move |image, options, monitor| {
        restore::denoise(image, &Options { noise, sigma, ..options }, monitor)
    })
}

/// Returns an image with what its mask hides filled in.
#[pyfunction]
pub(crate) fn inpaint<'py>(py: Python<'py>, item: &Bound<'_, PyAny>, common: Common<'py>) -> Image<'py> {
    restored(py, item, common, |image, options, monitor| restore::inpaint(image, &options, monitor))
}

/// Returns an image without the blur of a kernel (1, 1, h, w), or of a Gaussian of so many pixels.
#[pyfunction]
pub(crate) fn deblur<'py>(
    py: Python<'py>,
    item: &Bound<'_, PyAny>,
    kernel: Option<&Bound<'_, PyAny>>,
    deviation: f64,
    sigma: Option<f64>,
    common: Common<'py>,
) -> Image<'py> {
    let kernel = match kernel {
        None => Kernel::gaussian(deviation),
        Some(item) => sample::<f32>(item)?
            .and_then(|kernel| Kernel::new(kernel.shape().height, kernel.shape().width, kernel.data())),
    };
    let kernel = kernel.map_err(exception)?;
    restored(py, item, common, move |image, options, monitor| {
        restore::deblur(image, &kernel, &Options { sigma, ..options }, monitor)
    })
}

/// Returns a larger image.
#[pyfunction]
pub(crate) fn upscale<'py>(py: Python<'py>, item: &Bound<'_, PyAny>, factor: usize, common: Common<'py>) -> Image<'py> {
    restored(py, item, common, move |image, options, monitor| restore::upscale(image, factor, &options, monitor))
}

/// Returns the colour image of a mosaic.
#[pyfunction]
pub(crate) fn demosaic<'py>(
    py: Python<'py>,
    item: &Bound<'_, PyAny>,
    pattern: &str,
    common: Common<'py>,
) -> Image<'py> {
    let pattern = pattern.parse().map_err(exception)?;
    restored(py, item, common, move |image, options, monitor| restore::demosaic(image, pattern, &options, monitor))
}

/// Restores an image without the interpreter's lock.
fn restored<'py>(
    py: Python<'py>,
    item: &Bound<'_, PyAny>,
    (filters, learn_here, seed, threads): Common<'py>,
    restore: impl FnOnce(&Sample<f32>, Options, &dyn Monitor) -> Result<Sample<f32>, Error> + Send + 'static,
) -> Image<'py> {
    let image = sample::<f32>(item)?.map_err(exception)?;
    let dictionary = filters.as_ref().map(dictionary).transpose()?;
    let options = Options { learn_here, dictionary, seed, ..Options::default() };
    let done = work(py, threads, move |host| restore(&image, options, &Waited(host.clone())).map_err(exception));
    array(py, done?)
}
