//! The clocks of learning.

use super::Progress;
use super::prefetch::Prefetch;
use crate::Real;
use cpu_time::ProcessTime;
use std::time::{Duration, Instant};

/// Wall and processor time of learning.
pub(super) struct Clock {
    wall: Instant,
    cpu: ProcessTime,
    /// What the readers had used of the processors.
    reading: Duration,
}

impl Clock {
    pub(super) fn start<T: Real>(prefetch: &Prefetch<'_, T>) -> Self {
        Clock { wall: Instant::now(), cpu: ProcessTime::now(), reading: prefetch.reading() }
    }

    /// Adds to both, and returns the processor time. What was read ahead at the same time is not learning; it is known to
    /// within a sample.
    pub(super) fn stop<T: Real>(self, prefetch: &Prefetch<'_, T>, progress: &mut Progress) -> f64 {
        let cpu = self.cpu.elapsed().saturating_sub(prefetch.reading() - self.reading).as_secs_f64();
        progress.seconds += self.wall.elapsed().as_secs_f64();
        progress.cpu_seconds += cpu;
        cpu
    }
}
