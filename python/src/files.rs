//! Replaces files that Python writes, and says how much memory is free.

use crate::error::exception;
use ocsc::Error;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The reasons why a file was not replaced.
enum Failed {
    System(std::io::Error),
    Raised(PyErr),
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Failed::System(error)
    }
}

/// Writes a file as a whole, as the library writes models: `fill` writes to the temporary sibling whose name it is given.
#[pyfunction]
pub(crate) fn replace_file(path: PathBuf, fill: &Bound<'_, PyAny>) -> PyResult<()> {
    let filled =
        ocsc::replace::replace_named(&path, |temporary| fill.call1((temporary,)).map(drop).map_err(Failed::Raised));
    filled.map_err(|failed| match failed {
        Failed::System(error) => exception(Error::io(&path, error)),
        Failed::Raised(raised) => raised,
    })
}

/// Returns the bytes of memory that the system could give, where it says.
#[pyfunction]
pub(crate) fn free_memory() -> Option<usize> {
    ocsc::memory::available()
}
