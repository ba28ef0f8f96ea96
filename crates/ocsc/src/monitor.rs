//! What looks into work on samples while it goes on, and may end it.

use crate::{Error, Result};

/// Looks into work on samples that may take long, and may end it. Its methods are called by all threads that work, often, and
/// must be quick.
pub trait Monitor: Send + Sync {
    /// Whether to go on. Asked before every sample and after every round of a coder; a no ends the work with
    /// [`Error::Stopped`], and nothing of the batch is learned.
    fn keep_going(&self) -> bool {
        true
    }

    /// A coder has made a round.
    fn round(&self, _round: &Round) {}

    /// A sample was coded.
    fn coded(&self) {}
}

/// How far a coder is with a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The number of values of the sample.
    pub values: usize,
    /// Rounds made.
    pub round: usize,
    /// The relative duality gap, roughly.
    pub gap: f64,
}

/// Fails with [`Error::Stopped`] if the monitor wants no more.
pub(crate) fn check_wanted(monitor: &dyn Monitor) -> Result<()> {
    if monitor.keep_going() { Ok(()) } else { Err(Error::Stopped) }
}

/// Looks at nothing and ends nothing.
pub struct Silent;

impl Monitor for Silent {}
