//! Reads samples from Python objects: from indexable ones by any thread, from streams by the thread that called.

use crate::array;
use crate::error::Raised;
use crate::host::{Host, pool};
use ocsc::preprocess::Preprocess;
use ocsc::text::counted;
use ocsc::train::Stream;
use ocsc::{Error, Real, Result, Sample, Samples, Shape};
use pyo3::prelude::*;
use rayon::ThreadPool;
use std::sync::Arc;

/// Prepares samples when they are read.
pub(crate) struct Prepare {
    steps: Preprocess,
    /// Readers are no threads of the work's pool, which may be waiting for them, and the global one does not survive a
    /// fork.
    pool: Option<ThreadPool>,
}

impl Prepare {
    /// Prepares samples by these steps.
    pub(crate) fn new(steps: Preprocess) -> PyResult<Self> {
        let pool = if steps.steps().is_empty() { None } else { Some(pool(Some(1))?) };
        Ok(Prepare { steps, pool })
    }

    /// Returns the sample of an item, prepared in f64 up to the end: contrast normalisation divides by small numbers.
    fn sample<T: Real>(&self, item: &Bound<'_, PyAny>) -> PyResult<Result<Sample<T>>> {
        let Some(pool) = &self.pool else { return array::sample(item) };
        let sample = array::sample::<f64>(item)?;
        let prepared = |sample| self.steps.apply(sample).and_then(array::cast);
        Ok(item.py().detach(|| sample.and_then(|sample| pool.install(|| prepared(sample)))))
    }
}

/// Reads samples by number from a Python object `reader`: there are `len`, and `reader(i)` is the item of one, as
/// [`array::sample`] takes it.
pub(crate) struct Source {
    reader: Py<PyAny>,
    len: usize,
    /// The shapes that occur, after preprocessing, as far as they are known, each with the number of the first that has it, in
    /// ascending order.
    shapes: Vec<(usize, Shape)>,
    prepare: Prepare,
    raised: Arc<Raised>,
    host: Host,
}

impl Source {
    pub(crate) fn new(
        reader: Py<PyAny>,
        len: usize,
        shapes: Vec<(usize, Shape)>,
        prepare: Prepare,
        raised: Arc<Raised>,
        host: &Host,
    ) -> Self {
        Source { reader, len, shapes, prepare, raised, host: host.clone() }
    }
}

impl<T: Real> Samples<T> for Source {
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, index: usize) -> Result<Sample<T>> {
        if self.host.is_gone() {
            return Err(interrupted());
        }
        let read = |py: Python<'_>| -> PyResult<Result<Sample<T>>> {
            self.prepare.sample(self.reader.bind(py).call1((index,))?.as_any())
        };
        let sample = Python::try_attach(read).unwrap_or_else(|| Ok(Err(interrupted())));
        sample.unwrap_or_else(|raised| Err(self.raised.keep(raised)))
    }

    fn name(&self, index: usize) -> String {
        format!("X[{index}]")
    }

    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        let place = self.shapes.binary_search_by_key(&index, |(i, _)| *i).ok()?;
        Some(self.shapes[place].1.spatial())
    }
}

/// Draws samples from a Python object `stream`: `stream(n)` are the next n items, or those that are left, and
/// `stream.rewind()` begins again.
pub(crate) struct IteratorStream {
    stream: Arc<Py<PyAny>>,
    prepare: Arc<Prepare>,
    raised: Arc<Raised>,
    host: Host,
}

impl IteratorStream {
    /// Draws from `stream`; exceptions are kept in `raised`.
    pub(crate) fn new(stream: Py<PyAny>, prepare: Prepare, raised: Arc<Raised>, host: &Host) -> Self {
        IteratorStream { stream: Arc::new(stream), prepare: Arc::new(prepare), raised, host: host.clone() }
    }

    /// Draws the next `n` samples, in the thread that called; none if it listens no more.
    fn draw<T: Real>(&self, n: usize) -> Option<PyResult<Result<Vec<Sample<T>>>>> {
        let (stream, prepare) = (self.stream.clone(), self.prepare.clone());
        self.host.ask(move |py| {
            let items = stream.bind(py).call1((n,))?;
            items.try_iter()?.map(|item| prepare.sample(&item?)).collect()
        })
    }
}

impl<T: Real> Stream<T> for IteratorStream {
    fn take(&mut self, n: usize) -> Result<Option<Vec<Sample<T>>>> {
        match self.draw(n) {
            Some(Ok(samples)) => samples.map(Some).map_err(named),
            Some(Err(raised)) => Err(self.raised.keep(raised)),
            None => Ok(None),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        let stream = self.stream.clone();
        let rewound = self.host.ask(move |py| stream.bind(py).call_method0("rewind").map(drop));
        rewound.unwrap_or(Ok(())).map_err(|raised| self.raised.keep(raised))
    }

    fn name(&self, n: usize) -> String {
        format!("X, after {}", counted(n, "sample"))
    }
}

/// Says that a sample of X is at fault.
fn named(error: Error) -> Error {
    match error {
        Error::Invalid { what, expected, found } => Error::Invalid { what: format!("X: {what}"), expected, found },
        other => other,
    }
}

/// Returns the error for readers of a run that nobody waits for.
fn interrupted() -> Error {
    Error::Source("interrupted".to_owned())
}
