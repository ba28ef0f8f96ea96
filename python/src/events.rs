//! Events of codes.

use crate::array::dictionary;
use crate::coding::atoms;
use crate::error::exception;
use numpy::prelude::*;
use numpy::{PyArray1, PyReadonlyArray1};
use ocsc::events::{Align, Event, Options, Window, find, stitch};
use ocsc::{Boundary, Code};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Finds the events of one code of shape (depth, height, width), whose sample has this energy. Returns the arrays `filter`,
/// `position` (n, 3), `amplitude` and `energy`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called from one place, with names")]
pub(crate) fn events<'py>(
    py: Python<'py>,
    filters: &Bound<'_, PyAny>,
    boundary: &str,
    shape: [usize; 3],
    filter: PyReadonlyArray1<'_, i64>,
    position: PyReadonlyArray1<'_, i64>,
    value: PyReadonlyArray1<'_, f64>,
    energy: f64,
    threshold: f64,
    min_distance: Option<[usize; 3]>,
    align: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let boundary = match boundary {
        "circular" => Boundary::Circular,
        "zero" => Boundary::Zero,
        "free" => Boundary::Free,
        other => {
            return Err(PyValueError::new_err(format!("boundary: expected circular, zero or free, found {other:?}")));
        }
    };
    let options = Options { threshold, min_distance, align: align.parse::<Align>().map_err(exception)? };
    let d = dictionary::<f64>(filters)?;
    let code = Code::new(d.n_filters(), shape, atoms(&filter, &position, &value)?).map_err(exception)?;
    let found = py.detach(|| find(&code, &d, boundary, energy, &options)).map_err(exception)?;
    dict(py, &found)
}

/// Puts together the events of the windows of one recording: `counts` of them each, from windows of these starts and energies.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called from one place, with names")]
pub(crate) fn stitch_events<'py>(
    py: Python<'py>,
    filter: PyReadonlyArray1<'_, i64>,
    position: PyReadonlyArray1<'_, i64>,
    amplitude: PyReadonlyArray1<'_, f64>,
    energy: PyReadonlyArray1<'_, f64>,
    counts: Vec<usize>,
    starts: Vec<i64>,
    energies: Vec<f64>,
    distance: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (filter, position, amplitude) = (filter.as_array(), position.as_array(), amplitude.as_array());
    let energy = energy.as_array();
    let mut windows = Vec::with_capacity(counts.len());
    let mut taken = 0;
    for ((count, start), of_window) in counts.into_iter().zip(starts).zip(energies) {
        let event = |i: usize| Event {
            filter: filter[i] as u32,
            position: [0, 0, position[i]],
            amplitude: amplitude[i],
            energy: energy[i],
        };
        let events = (taken..taken + count).map(event).collect();
        windows.push(Window { start: [0, 0, start], energy: of_window, events });
        taken += count;
    }
    dict(py, &stitch(&windows, [1, 1, distance]))
}

fn dict<'py>(py: Python<'py>, events: &[Event]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let of = |value: fn(&Event) -> f64| PyArray1::from_iter(py, events.iter().map(value));
    let position: Vec<i64> = events.iter().flat_map(|event| event.position).collect();
    dict.set_item("filter", PyArray1::from_iter(py, events.iter().map(|event| i64::from(event.filter))))?;
    dict.set_item("position", PyArray1::from_vec(py, position).reshape([events.len(), 3])?)?;
    dict.set_item("amplitude", of(|event| event.amplitude))?;
    dict.set_item("energy", of(|event| event.energy))?;
    Ok(dict)
}
