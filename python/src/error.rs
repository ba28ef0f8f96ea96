//! Turns the library's errors into Python exceptions, with the library's words.

use ocsc::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use std::sync::{Mutex, PoisonError};

/// Returns a `ValueError`, or the fitting kind of `OSError` or `MemoryError`.
pub(crate) fn exception(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Io { source, .. } => std::io::Error::new(source.kind(), message).into(),
        Error::Memory { .. } => PyMemoryError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// Carries an exception through the library, which knows errors of its own only.
#[derive(Default)]
pub(crate) struct Raised(Mutex<Option<PyErr>>);

impl Raised {
    /// Keeps the exception, if it is the first, and gives the library an error in its place.
    pub(crate) fn keep(&self, raised: PyErr) -> Error {
        let error = Error::Source(raised.to_string());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
        error
    }

    /// Returns the exception behind the library's error.
    pub(crate) fn exception(&self, error: Error) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| exception(error))
    }
}
