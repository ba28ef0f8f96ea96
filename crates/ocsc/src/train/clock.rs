//! The clocks of learning.

use super::Progress;
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
    /// Starts; readers have used so much of the processors up to now.
    pub(super) fn start(reading: Duration) -> Self {
        Clock { wall: Instant::now(), cpu: ProcessTime::now(), reading }
    }

    /// Adds to both, and returns the processor time. What was read ahead at the same time is not learning; it is known to
    /// within a sample.
    pub(super) fn stop(self, reading: Duration, progress: &mut Progress) -> f64 {
        let cpu = self.cpu.elapsed().saturating_sub(reading - self.reading).as_secs_f64();
        progress.seconds += self.wall.elapsed().as_secs_f64();
        progress.cpu_seconds += cpu;
        cpu
    }
}
