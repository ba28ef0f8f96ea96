//! Short steps that several threads share, each step waiting for the one before.
//!
//! A phase of a sweep takes tens of microseconds, and to wake a sleeping thread takes as long. So threads of the pool that have nothing
//! else to do are called once for many steps, and stay awake between them. The caller never waits for a thread to come, only for tasks
//! that a thread has begun.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A waiting thread looks so many times before it lets others run.
const SPINS: usize = 500;
/// To let others run takes less than this when there are none.
const SHARED: Duration = Duration::from_micros(50);

/// Where a caller and its helpers meet.
pub(crate) struct Sharing {
    step: Mutex<Step>,
    /// Whether there are tasks that nobody has begun.
    is_open: AtomicBool,
    /// Whether there will be no more steps.
    is_over: AtomicBool,
    /// Tasks of the step at hand that are not finished.
    unfinished: AtomicUsize,
}

/// The step at hand.
struct Step {
    run: Option<&'static (dyn Fn(usize) + Sync)>,
    next: usize,
    count: usize,
    panic: Option<Box<dyn Any + Send>>,
}

/// Sends the helpers home, also when the caller panics.
struct Over<'a>(&'a Sharing);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

impl Sharing {
    /// Does `work`, whose steps up to `most` threads of the pool share.
    pub(crate) fn between<R: Send>(most: usize, work: impl FnOnce(&Sharing) -> R + Send) -> R {
        let sharing = Sharing {
            step: Mutex::new(Step { run: None, next: 0, count: 0, panic: None }),
            is_open: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            unfinished: AtomicUsize::new(0),
        };
        let helpers = most.min(rayon::current_num_threads()).saturating_sub(1);
        let alone = || {
            let _over = Over(&sharing);
            work(&sharing)
        };
        if helpers == 0 { alone() } else { rayon::join(alone, || sharing.call(helpers)).0 }
    }

    /// Runs tasks 0 to count, and returns when all have finished. Which thread runs which must not matter.
    #[allow(
        unsafe_code,
        reason = "helpers were called before the tasks were made, so their types say nothing of how long tasks live"
    )]
    pub(crate) fn for_each(&self, count: usize, run: &(dyn Fn(usize) + Sync)) {
        // SAFETY: no thread holds this reference after `for_each`: every task that was begun is waited for, and then it is taken away.
        let run: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(run) };
        self.unfinished.store(count, Ordering::Release);
        *self.step() = Step { run: Some(run), next: 0, count, panic: None };
        self.is_open.store(count > 1, Ordering::Release);
        while self.run_one() {}
        wait(|| self.unfinished.load(Ordering::Acquire) == 0);
        let panic = {
            let mut step = self.step();
            step.run = None;
            step.panic.take()
        };
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Begins and finishes one task, if there is one that nobody has begun.
    fn run_one(&self) -> bool {
        let (run, task) = {
            let mut step = self.step();
            let Some(run) = step.run.filter(|_| step.next < step.count) else { return false };
            step.next += 1;
            self.is_open.store(step.next < step.count, Ordering::Release);
            (run, step.next - 1)
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(task))) {
            self.step().panic = Some(panic);
        }
        self.unfinished.fetch_sub(1, Ordering::AcqRel);
        true
    }

    /// Calls helpers.
    fn call(&self, helpers: usize) {
        match helpers {
            0 => {}
            1 => self.help(),
            _ => {
                rayon::join(|| self.help(), || self.call(helpers - 1));
            }
        }
    }

    /// Runs tasks until there will be no more.
    fn help(&self) {
        let is_over = || self.is_over.load(Ordering::Acquire);
        while !is_over() {
            wait(|| self.is_open.load(Ordering::Acquire) || is_over());
            while self.run_one() {}
        }
    }

    /// The step at hand; a panic of a task leaves it whole.
    fn step(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits awake.
fn wait(is_so: impl Fn() -> bool) {
    let mut looks = 0;
    while !is_so() {
        looks += 1;
        if looks % SPINS == 0 {
            give_way();
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Lets others run. If one did for long, this thread shares its processor, perhaps with the one that it waits for: a thread that wakes
/// up is given an idle processor, if there is one, while one that stays awake may be left where it is for tens of milliseconds.
fn give_way() {
    let before = Instant::now();
    std::thread::yield_now();
    if before.elapsed() > SHARED {
        std::thread::sleep(Duration::from_micros(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap()
    }

    #[test]
    fn every_task_of_every_step_runs_once_and_steps_wait_for_each_other() {
        let counts: Vec<AtomicUsize> = (0..7).map(|_| AtomicUsize::new(0)).collect();
        pool().install(|| {
            Sharing::between(3, |sharing| {
                for step in 0..500 {
                    sharing.for_each(counts.len(), &|task| {
                        assert_eq!(counts[task].fetch_add(1, Ordering::Relaxed), step);
                    });
                }
            });
        });
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 500));
    }

    #[test]
    fn a_panic_of_a_task_reaches_the_caller_after_all_others_have_finished() {
        let finished = AtomicUsize::new(0);
        let failed = pool().install(|| {
            catch_unwind(AssertUnwindSafe(|| {
                Sharing::between(3, |sharing| {
                    sharing.for_each(20, &|task| {
                        assert!(task != 4, "the fourth");
                        finished.fetch_add(1, Ordering::Relaxed);
                    });
                });
            }))
        });
        assert!(failed.is_err());
        assert_eq!(finished.load(Ordering::Relaxed), 19);
    }

    #[test]
    fn one_thread_does_it_all() {
        let sum = AtomicUsize::new(0);
        Sharing::between(1, |sharing| {
            sharing.for_each(10, &|task| {
                sum.fetch_add(task, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 45);
    }
}
