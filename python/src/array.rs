//! Converts numpy arrays to samples and back. All arrays here have the axes (channel, depth, height, width); the Python half
//! turns those of users.

use crate::error::exception;
use numpy::ndarray::ArrayView4;
use numpy::prelude::*;
use numpy::{Element, PyArray1, PyArray4, PyReadonlyArray1, PyReadonlyArray4};
use ocsc::settings::Dtype;
use ocsc::{Config, Dictionary, Error, FiltersLast, Real, Sample, Shape};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A scalar that both sides know.
pub(crate) trait Scalar: Real + Element {
    /// Returns filters of this scalar.
    fn filters(dictionary: Dictionary<Self>) -> Filters;
}

impl Scalar for f32 {
    fn filters(dictionary: Dictionary<Self>) -> Filters {
        Filters::F32(dictionary)
    }
}

impl Scalar for f64 {
    fn filters(dictionary: Dictionary<Self>) -> Filters {
        Filters::F64(dictionary)
    }
}

/// Filters of either scalar, out of reach of Python.
#[derive(Clone)]
pub(crate) enum Filters {
    F32(Dictionary<f32>),
    F64(Dictionary<f64>),
}

impl Filters {
    /// Returns an array (K, C, axes...) as filters in the precision of the settings.
    pub(crate) fn new(config: &Config, filters: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match config.dtype {
            Dtype::F32 => Filters::F32(dictionary(filters)?),
            Dtype::F64 => Filters::F64(dictionary(filters)?),
        })
    }

    /// Returns the filters as an array (K, C, axes...).
    pub(crate) fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Filters::F32(dictionary) => filters(py, dictionary),
            Filters::F64(dictionary) => filters(py, dictionary),
        }
    }
}

/// How much the values of a sample count.
#[derive(FromPyObject)]
enum Mask<'py> {
    /// Fully where it is true.
    Truths(PyReadonlyArray4<'py, bool>),
    /// From 0 to 1.
    Weights(PyReadonlyArray4<'py, f64>),
}

/// An item: values in f32 or f64; truths or weights of the same shape, or of one channel, or none; and the weights of the code's
/// coefficients, flat, or none.
type Item<'py> = (Bound<'py, PyAny>, Option<Mask<'py>>, Option<PyReadonlyArray1<'py, f64>>);

/// Returns the sample of an [`Item`]. This is the one copy that is made of it.
pub(crate) fn sample<T: Real>(item: &Bound<'_, PyAny>) -> PyResult<ocsc::Result<Sample<T>>> {
    let (values, mask, coefficients): Item<'_> = item.extract()?;
    let (shape, data) = numbers(&values)?;
    let sample = match mask {
        Some(Mask::Truths(mask)) => Sample::masked(shape, data, mask.as_array().iter().copied().collect()),
        Some(Mask::Weights(weights)) => {
            let weights: Vec<T> = weights.as_array().iter().map(|w| T::of(*w)).collect();
            // What does not count may be anything, even NaN.
            let counts = weights.iter().map(|w| *w > T::zero()).collect();
            Sample::masked(shape, data, counts).and_then(|sample| sample.with_weights(weights))
        }
        None => Sample::new(shape, data),
    };
    let sample = sample.and_then(|sample| match coefficients {
        Some(weights) => sample.with_coefficient_weights(weights.as_array().iter().map(|w| T::of(*w)).collect()),
        None => Ok(sample),
    });
    match sample {
        // Numbers that were finite before they were rounded.
        Err(error) => Ok(Err(overflow::<T>(&numbers::<f64>(&values)?.1).unwrap_or(error))),
        sample => Ok(sample),
    }
}

/// Returns the same sample in another scalar.
pub(crate) fn cast<T: Real>(sample: Sample<f64>) -> ocsc::Result<Sample<T>> {
    match overflow::<T>(sample.data()) {
        Some(error) => Err(error),
        None => sample.cast(),
    }
}

/// Returns an error about numbers that are finite, but not in the scalar that they are computed with; none if all are.
fn overflow<T: Real>(values: &[f64]) -> Option<Error> {
    let too_large = values.iter().find(|v| v.is_finite() && !T::of(**v).is_finite())?;
    let expected = format!(
        "values up to {:e} in {}, which overflows (scale the samples, or use dtype='f64')",
        T::LARGEST,
        T::NAME
    );
    Some(Error::invalid("sample", expected, format!("{too_large:e}")))
}

/// Returns the shape and the values of an array (channel, depth, height, width).
pub(crate) fn numbers<T: Real>(values: &Bound<'_, PyAny>) -> PyResult<(Shape, Vec<T>)> {
    if let Ok(values) = values.cast::<PyArray4<f32>>() {
        return Ok(copied(values.readonly().as_array()));
    }
    if let Ok(values) = values.cast::<PyArray4<f64>>() {
        return Ok(copied(values.readonly().as_array()));
    }
    Err(PyTypeError::new_err(format!("samples: expected an array of four axes in f32 or f64, found {values:?}")))
}

fn copied<T: Real, U: Real>(view: ArrayView4<'_, U>) -> (Shape, Vec<T>) {
    let (channels, depth, height, width) = view.dim();
    let shape = Shape { channels, depth, height, width };
    let data = match view.as_slice() {
        Some(values) => values.iter().map(|v| T::of(v.f64())).collect(),
        None => view.iter().map(|v| T::of(v.f64())).collect(),
    };
    (shape, data)
}

/// Returns the values of a sample as an array (channel, depth, height, width).
pub(crate) fn array<'py, T: Scalar>(py: Python<'py>, sample: Sample<T>) -> PyResult<Bound<'py, PyArray4<T>>> {
    let Shape { channels, depth, height, width } = sample.shape();
    PyArray1::from_vec(py, sample.into_data()).reshape([channels, depth, height, width])
}

/// Returns a dictionary of filters (K, C, axes...).
pub(crate) fn dictionary<T: Scalar>(filters: &Bound<'_, PyAny>) -> PyResult<Dictionary<T>> {
    let (n_filters, shape, rank, data) = filter_numbers(filters)?;
    Dictionary::new(n_filters, shape, rank, data).map_err(exception)
}

/// Returns a dictionary of filters (K, C, axes...) of any norm; norms above 1 are scaled to 1.
pub(crate) fn scaled_dictionary<T: Scalar>(filters: &Bound<'_, PyAny>) -> PyResult<Dictionary<T>> {
    let (n_filters, shape, rank, data) = filter_numbers::<f64>(filters)?;
    Ok(Dictionary::scaled(n_filters, shape, rank, &data).map_err(exception)?.0)
}

/// Returns what speaks for filters being the last axis of an array that is read as (K, C, axes...): "norms", "sides" or nothing.
#[pyfunction]
pub(crate) fn filters_last(filters: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let (n_filters, shape, rank, data) = filter_numbers::<f64>(filters)?;
    Ok(match ocsc::filters_last(n_filters, shape, rank, &data) {
        Some(FiltersLast::Norms) => Some("norms"),
        Some(FiltersLast::Sides) => Some("sides"),
        _ => None,
    })
}

/// Returns the number, the shape, the number of spatial axes and the values of filters.
fn filter_numbers<T: Real>(filters: &Bound<'_, PyAny>) -> PyResult<(usize, Shape, usize, Vec<T>)> {
    let axes: Vec<usize> = filters.getattr("shape")?.extract()?;
    let [n_filters, channels, spatial @ ..] = &axes[..] else {
        return Err(PyTypeError::new_err(format!("filters: expected shape (K, C, axes...), found {axes:?}")));
    };
    let shape = Shape::from_axes(*channels, spatial).map_err(exception)?;
    let flat = filters.call_method1("reshape", ((*n_filters, *channels, 1, shape.pixels()),))?;
    Ok((*n_filters, shape, spatial.len(), numbers(&flat)?.1))
}

/// Returns filters as an array (K, C, axes...).
fn filters<'py, T: Scalar>(py: Python<'py>, dictionary: &Dictionary<T>) -> PyResult<Bound<'py, PyAny>> {
    let mut axes = vec![dictionary.n_filters(), dictionary.shape().channels];
    axes.extend(dictionary.shape().axes(dictionary.rank()));
    Ok(PyArray1::from_slice(py, dictionary.data()).reshape(axes)?.into_any())
}
