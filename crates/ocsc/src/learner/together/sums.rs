//! Sums of phi over a team, which may travel while they are made.

use crate::team::Team;
use std::ops::Range;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// After so many sums it is measured again whether parts are to travel while others are made.
const AGAIN: usize = 16;

/// Some filters, and their rows of phi.
pub(super) type Part<'a> = (Range<usize>, &'a mut [i64]);

/// Sums of arrays over the team, part by part. A part may travel while the next one is made. That takes a thread which waits for
/// the network, and MPI waits busily: it pays where the network takes longer than the making, and costs where it does not
/// (docs/scale.md). The sums are the same, so every member decides for itself.
#[derive(Default)]
pub(super) struct Sums {
    count: usize,
    overlap: bool,
}

impl Sums {
    /// Makes the parts of an array, and sums each over the team.
    pub(super) fn run(&mut self, team: &dyn Team, parts: Vec<Part<'_>>, make: impl Fn(Part<'_>)) {
        self.count += 1;
        if self.overlap && !self.count.is_multiple_of(AGAIN) {
            let (made, travelling) = channel::<&mut [i64]>();
            std::thread::scope(|scope| {
                scope.spawn(|| travelling.into_iter().for_each(|rows| team.sum(rows)));
                for (filters, rows) in parts {
                    make((filters, &mut *rows));
                    // The other end takes all of them.
                    let _ = made.send(rows);
                }
                drop(made);
            });
            return;
        }
        let mut parts = parts;
        let clock = Instant::now();
        parts.iter_mut().for_each(|(filters, rows)| make((filters.clone(), &mut **rows)));
        let making = clock.elapsed();
        let mut network = Duration::ZERO;
        for (i, (_, rows)) in parts.into_iter().enumerate() {
            let clock = Instant::now();
            team.sum(rows);
            // The first one also waits for members that are late.
            network += if i > 0 { clock.elapsed() } else { Duration::ZERO };
        }
        self.overlap = network > making;
    }
}
