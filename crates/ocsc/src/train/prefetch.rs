//! Reading ahead: samples are read and prepared by threads of their own while others learn or code.
//!
//! The order of delivery is that of the visits, whoever reads faster, so results do not depend on the number of readers.
//! The queue is bounded in samples and in numbers, so memory does not grow with the set; a sample larger than the bound
//! is read when the queue is empty. Where no thread can be started, samples are read when they are asked for.

use crate::{Error, Real, Result, Sample, Samples};
use cpu_time::ThreadTime;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads that read, at most. There is one more whenever somebody had to wait, since each holds a sample in the making,
/// which may take several times its memory.
const READERS: usize = 4;
/// A shorter wait is none.
const PATIENCE: Duration = Duration::from_millis(1);
/// The most samples, and the most numbers in them, that wait in the queue.
const SAMPLES: usize = 32;
const NUMBERS: usize = 1 << 20;

/// One visit: the sample's number, and the pass it is drawn for; none for samples that are looked at, not learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) index: usize,
    pub(crate) pass: Option<usize>,
}

/// Visits that are read ahead, to be taken one after the other.
pub(crate) struct Prefetch<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    queue: Mutex<Queue<'a, T>>,
    /// Something was read, taken, or is not wanted any more.
    changed: Condvar,
}

struct Queue<'a, T> {
    /// The visits that no reader has begun yet; none when there are no more.
    visits: Option<Box<dyn Iterator<Item = Visit> + Send + 'a>>,
    /// How many were begun, and how many were taken.
    begun: usize,
    taken: usize,
    /// How many threads there are, and how many of them are at work.
    threads: usize,
    readers: usize,
    ready: BTreeMap<usize, (Visit, Result<Sample<T>>)>,
    /// Numbers in `ready`, and in the last sample that could be read: the guess for those that are being read.
    numbers: usize,
    last: usize,
    /// How long the taker waited, and what the readers used of the processors.
    waited: Duration,
    reading: Duration,
}

impl<T: Real> Queue<'_, T> {
    /// Whether one more sample may be read now.
    fn has_room(&self) -> bool {
        let held = self.begun - self.taken;
        let reading = held - self.ready.len();
        held == 0 || held < SAMPLES && self.numbers + (reading + 1) * self.last <= NUMBERS
    }
}

impl<'a, T: Real> Prefetch<'a, T> {
    /// Reads the visits ahead while `work` takes them; those that it leaves are not read.
    pub(crate) fn run<R>(
        samples: &'a dyn Samples<T>,
        visits: impl Iterator<Item = Visit> + Send + 'a,
        work: impl FnOnce(&Self) -> R,
    ) -> R {
        Self::run_by(READERS, samples, visits, work)
    }

    /// The same by at most so many threads.
    fn run_by<R>(
        readers: usize,
        samples: &'a dyn Samples<T>,
        visits: impl Iterator<Item = Visit> + Send + 'a,
        work: impl FnOnce(&Self) -> R,
    ) -> R {
        let queue = Queue {
            visits: Some(Box::new(visits)),
            begun: 0,
            taken: 0,
            threads: 0,
            readers: 1,
            ready: BTreeMap::new(),
            numbers: 0,
            last: 0,
            waited: Duration::ZERO,
            reading: Duration::ZERO,
        };
        let ahead = Prefetch { samples, queue: Mutex::new(queue), changed: Condvar::new() };
        std::thread::scope(|scope| {
            // Also when the work panics: readers that wait for room would never end.
            let _stop = Stop(&ahead);
            for number in 0..readers {
                let ahead = &ahead;
                // A system that has no more threads to give is no reason to stop.
                if std::thread::Builder::new().spawn_scoped(scope, move || ahead.read(number)).is_err() {
                    break;
                }
                ahead.lock().threads += 1;
            }
            work(&ahead)
        })
    }

    /// The next visit's sample; none after the last one.
    pub(crate) fn next(&self) -> Option<(Visit, Result<Sample<T>>)> {
        let clock = Instant::now();
        let mut queue = self.lock();
        loop {
            let number = queue.taken;
            if let Some((visit, sample)) = queue.ready.remove(&number) {
                let waited = clock.elapsed();
                // Nobody could have read the first one ahead.
                if waited > PATIENCE && queue.taken > 0 {
                    queue.readers = READERS.min(queue.readers + 1);
                }
                queue.numbers -= len(&sample);
                queue.taken += 1;
                queue.waited += waited;
                self.changed.notify_all();
                return Some((visit, sample));
            }
            if queue.visits.is_none() && queue.taken == queue.begun {
                return None;
            }
            queue = if queue.threads == 0 { self.read_one(queue).0 } else { self.wait(queue) };
        }
    }

    /// Whether nobody reads ahead, because no thread could be started.
    pub(crate) fn reads_in_line(&self) -> bool {
        self.lock().threads == 0
    }

    /// How long [`Prefetch::next`] took so far.
    pub(crate) fn waited(&self) -> Duration {
        self.lock().waited
    }

    /// Processor time of the readers for what they have read so far.
    pub(crate) fn reading(&self) -> Duration {
        self.lock().reading
    }

    /// A reader's life.
    fn read(&self, number: usize) {
        let mut queue = self.lock();
        loop {
            while queue.visits.is_some() && !(queue.has_room() && number < queue.readers) {
                queue = self.wait(queue);
            }
            let is_last;
            (queue, is_last) = self.read_one(queue);
            self.changed.notify_all();
            if is_last {
                break;
            }
        }
    }

    /// Reads the next visit's sample, if there is one more.
    fn read_one<'b>(&'b self, mut queue: MutexGuard<'b, Queue<'a, T>>) -> (MutexGuard<'b, Queue<'a, T>>, bool) {
        let Some(visit) = queue.visits.as_mut().and_then(Iterator::next) else {
            queue.visits = None;
            return (queue, true);
        };
        let place = queue.begun;
        queue.begun += 1;
        drop(queue);
        let clock = ThreadTime::now();
        let sample = self.sample(visit);
        let mut queue = self.lock();
        queue.reading += clock.elapsed();
        queue.numbers += len(&sample);
        queue.last = if sample.is_ok() { len(&sample) } else { queue.last };
        queue.ready.insert(place, (visit, sample));
        (queue, false)
    }

    fn wait<'b>(&self, queue: MutexGuard<'b, Queue<'a, T>>) -> MutexGuard<'b, Queue<'a, T>> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a sample. A source that panics gives an error in its place, instead of a reader that never delivers.
    fn sample(&self, visit: Visit) -> Result<Sample<T>> {
        let read = || match visit.pass {
            Some(pass) => self.samples.draw(visit.index, pass),
            None => self.samples.get(visit.index),
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
            .unwrap_or_else(|_| Err(Error::invalid("sample", "a source that can read it", "one that failed")))
    }

    fn lock(&self) -> MutexGuard<'_, Queue<'a, T>> {
        // Nothing can panic while it is locked and leave it half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of a sample that was read.
fn len<T: Real>(sample: &Result<Sample<T>>) -> usize {
    sample.as_ref().map_or(0, |s| s.data().len())
}

/// Sends the readers home when dropped.
struct Stop<'a, 'b, T: Real>(&'a Prefetch<'b, T>);

impl<T: Real> Drop for Stop<'_, '_, T> {
    fn drop(&mut self) {
        self.0.lock().visits = None;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Samples of one value, their number, read the slower the smaller it is; every seventh cannot be read, every
    /// eleventh makes the source panic.
    struct Slow {
        held: AtomicUsize,
        most: AtomicUsize,
        len: usize,
    }

    impl Samples<f32> for Slow {
        fn len(&self) -> usize {
            40
        }

        fn get(&self, index: usize) -> Result<Sample<f32>> {
            let held = self.held.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(held, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(if index.is_multiple_of(2) { 900 } else { 10 }));
            assert!(!index.is_multiple_of(11), "a source that fails badly");
            if index.is_multiple_of(7) {
                return Err(Error::Source(format!("sample {index} is damaged")));
            }
            Sample::new(Shape::image(1, self.len), vec![index as f32; self.len])
        }

        fn draw(&self, index: usize, pass: usize) -> Result<Sample<f32>> {
            self.get(index + 100 * pass)
        }
    }

    fn slow(len: usize) -> Slow {
        Slow { held: AtomicUsize::new(0), most: AtomicUsize::new(0), len }
    }

    #[test]
    fn delivers_in_order_whoever_is_faster() {
        let visits: Vec<Visit> = (0..40).map(|i| Visit { index: (i * 17 + 3) % 40, pass: Some(1) }).collect();
        for readers in [READERS, 1, 0] {
            delivers_in_order(readers, &visits);
        }
    }

    fn delivers_in_order(readers: usize, visits: &[Visit]) {
        let samples = slow(3);
        let mut in_line = None;
        let got: Vec<(Visit, Result<Sample<f32>>)> =
            Prefetch::run_by(readers, &samples, visits.iter().copied(), |ahead| {
                in_line = Some(ahead.reads_in_line());
                std::iter::from_fn(|| ahead.next()).collect()
            });
        assert_eq!(in_line, Some(readers == 0));
        assert_eq!(got.len(), 40);
        for ((visit, sample), expected) in got.iter().zip(visits) {
            assert_eq!(visit, expected);
            let number = visit.index + 100;
            match sample {
                Ok(sample) => assert_eq!(sample.data(), [number as f32; 3]),
                Err(e) if number.is_multiple_of(11) => assert!(e.to_string().contains("one that failed"), "{e}"),
                Err(e) => assert_eq!(e.to_string(), format!("sample {number} is damaged")),
            }
        }
    }

    #[test]
    fn holds_no_more_than_the_bound() {
        let good = (0..40_usize).filter(|i| !i.is_multiple_of(7) && !i.is_multiple_of(11));
        let visits: Vec<Visit> = good.map(|index| Visit { index, pass: None }).collect();
        // Two samples fill the queue, and one more may be begun before anybody knows how large they are.
        let samples = slow(NUMBERS / 2);
        Prefetch::run(&samples, visits.iter().copied(), |ahead| {
            while ahead.next().is_some() {
                std::thread::sleep(Duration::from_millis(1));
                samples.held.fetch_sub(1, Ordering::SeqCst);
            }
        });
        assert!(samples.most.load(Ordering::SeqCst) <= 3, "{:?}", samples.most);
    }

    #[test]
    fn stops_when_nobody_asks_any_more() {
        let visits: Vec<Visit> = (1..40).map(|index| Visit { index, pass: None }).collect();
        let samples = slow(NUMBERS / 2);
        let first = Prefetch::run(&samples, visits.iter().copied(), |ahead| ahead.next().map(|(visit, _)| visit.index));
        assert_eq!(first, Some(1));
        assert!(samples.held.load(Ordering::SeqCst) < 10, "the rest is not read");
        let panicked =
            std::panic::catch_unwind(|| Prefetch::run(&slow(NUMBERS), visits.iter().copied(), |_| panic!("at work")));
        assert!(panicked.is_err());
    }
}
