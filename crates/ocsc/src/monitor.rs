//! What looks into work on samples while it goes on, and may end it.

use crate::{Error, Result};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Looks into work on samples that may take long, and may end it. Its methods are called by all threads that work, often, and
/// must be quick.
pub trait Monitor: Send + Sync {
    /// Returns whether to go on. It is asked before every sample and after every round of a coder; a no ends the work with
    /// [`Error::Stopped`], and nothing of the batch is learned.
    fn keep_going(&self) -> bool {
        true
    }

    /// Returns the time on a clock that never goes back, for what may take so long and no longer. Where it counts from does not
    /// matter.
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    /// Is told that a coder has made a round.
    fn round(&self, _round: &Round) {}

    /// Is told that a sample was coded.
    fn coded(&self) {}
}

/// Says how far a coder is with a sample.
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
