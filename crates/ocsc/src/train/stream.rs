//! Samples that come one after the other, without number.
//!
//! They are visited in the order of arrival, and none is held longer than its step. A checkpoint goes on with whatever
//! stream comes next.

use crate::text::counted;
use crate::{Error, Real, Result, Sample};

/// Samples that come one after the other.
pub trait Stream<T: Real> {
    /// Returns the next `n` samples, or as many as are left; an empty batch at the end of a pass. `Err` ends the run;
    /// `Ok(None)` stops it.
    fn take(&mut self, n: usize) -> Result<Option<Vec<Sample<T>>>>;

    /// Begins again, for another pass.
    fn rewind(&mut self) -> Result<()> {
        Err(Error::invalid("passes", "1, as the samples can be read once", "more"))
    }

    /// Returns what to call the samples after the first `n` of a run, in messages.
    fn name(&self, n: usize) -> String {
        format!("after {}", counted(n, "sample"))
    }
}

/// A stream of which some samples were taken already, to start from.
pub struct Begun<T, S> {
    first: Option<Vec<Sample<T>>>,
    /// The stream.
    pub rest: S,
}

impl<T: Real, S: Stream<T>> Begun<T, S> {
    /// Takes the next `n` samples of a stream, to look at; they will be given again.
    pub fn new(mut stream: S, n: usize) -> Result<Self> {
        Ok(Begun { first: stream.take(n)?, rest: stream })
    }

    /// Returns the samples that were taken and not given again; none if the stream wants to stop, or has no more.
    pub fn first(&self) -> &[Sample<T>] {
        self.first.as_deref().unwrap_or_default()
    }
}

impl<T: Real, S: Stream<T>> Stream<T> for Begun<T, S> {
    fn take(&mut self, n: usize) -> Result<Option<Vec<Sample<T>>>> {
        match self.first.take() {
            Some(first) if !first.is_empty() => Ok(Some(first)),
            _ => self.rest.take(n),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        self.rest.rewind()
    }

    fn name(&self, n: usize) -> String {
        self.rest.name(n)
    }
}
