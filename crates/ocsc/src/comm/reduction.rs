//! Reduction of phi over a team, which may travel while they are made.

use super::Comm;
use crate::monitor::Monitor;
use std::ops::Range;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Sums travel in this many parts.
pub(crate) const PARTS: usize = 8;
/// After this many sums it is measured again whether parts are to travel while others are made.
const AGAIN: usize = 16;

/// Some filters, and their rows of phi.
pub(crate) type Rows<'a> = (Range<usize>, &'a mut [i64]);

/// Reduction of arrays over the team, part by part. A part may travel while the next one is made. That takes a thread which waits for
/// the network, and MPI waits busily: it pays where the network takes longer than the making, and costs where it does not
/// (docs/scale.md). The sums are the same, so every member decides for itself.
#[derive(Default)]
pub(crate) struct Reduction {
    count: usize,
    overlap: bool,
}

impl Reduction {
    /// Makes the parts of an array, and sums each over the team; the monitor has the clock.
    pub(crate) fn run(
        &mut self,
        comm: &dyn Comm,
        parts: Vec<Rows<'_>>,
        monitor: &dyn Monitor,
        make: impl Fn(Rows<'_>),
    ) {
        self.count += 1;
        if self.overlap && !self.count.is_multiple_of(AGAIN) {
            let (made, travelling) = channel::<&mut [i64]>();
            // As many sums as there are parts, in their order, by whoever: the other members count on that.
            std::thread::scope(|scope| {
                let travel = move || travelling.into_iter().for_each(|rows| comm.all_reduce(rows));
                let is_started = std::thread::Builder::new().spawn_scoped(scope, travel).is_ok();
                for (filters, rows) in parts {
                    make((filters, &mut *rows));
                    // The other end takes all of them, if there is one.
                    match is_started {
                        true => drop(made.send(rows)),
                        false => comm.all_reduce(rows),
                    }
                }
                drop(made);
            });
            return;
        }
        let mut parts = parts;
        let start = monitor.now();
        parts.iter_mut().for_each(|(filters, rows)| make((filters.clone(), &mut **rows)));
        let making = monitor.now().saturating_sub(start);
        let mut network = Duration::ZERO;
        for (i, (_, rows)) in parts.into_iter().enumerate() {
            let start = monitor.now();
            comm.all_reduce(rows);
            // The first one also waits for members that are late.
            network += if i > 0 { monitor.now().saturating_sub(start) } else { Duration::ZERO };
        }
        self.overlap = network > making;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;
    use std::sync::Mutex;

    /// A team whose other member has the same numbers, and whose network takes so long for each part.
    struct Twins(Duration, Mutex<Vec<i64>>);

    impl Comm for Twins {
        fn rank(&self) -> usize {
            0
        }
        fn size(&self) -> usize {
            2
        }
        fn all_gather(&self, mine: &[u8], _lengths: &[usize]) -> Vec<u8> {
            mine.repeat(2)
        }
        fn broadcast(&self, _bytes: &mut [u8]) {}
        fn all_reduce(&self, values: &mut [i64]) {
            std::thread::sleep(self.0);
            self.1.lock().unwrap().push(values[0]);
            values.iter_mut().for_each(|v| *v *= 2);
        }
    }

    /// Made before or while others travel, the sums and their order are the same; overlapped where the network is slower.
    #[test]
    fn parts_that_travel_while_others_are_made_are_the_same() {
        for (network, making) in [(20, 0), (0, 20)] {
            let comm = Twins(Duration::from_millis(network), Mutex::default());
            let mut reduction = Reduction::default();
            for round in 1..=2 {
                let mut array = [0; 12];
                let parts = array.chunks_mut(3).enumerate().map(|(i, rows)| (i..i + 1, rows)).collect();
                reduction.run(&comm, parts, &Silent, |(filters, rows)| {
                    std::thread::sleep(Duration::from_millis(making));
                    rows.fill(filters.start as i64 + 1);
                });
                assert_eq!(array, [2, 2, 2, 4, 4, 4, 6, 6, 6, 8, 8, 8]);
                assert_eq!(*comm.1.lock().unwrap(), [1, 2, 3, 4].repeat(round));
                assert_eq!(reduction.overlap, network > making);
            }
        }
    }
}
