//! The threads to compute with, as many as the system gives.

use crate::console::{Console, counted};
use anyhow::{Context, Result};
use rayon::ThreadBuilder;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};

/// How many threads the call asks for, if it does.
static ASKED: OnceLock<usize> = OnceLock::new();

/// Returns how many threads the call asks for, if it does.
pub(crate) fn asked() -> Option<usize> {
    ASKED.get().copied()
}

/// Makes the pool of threads that everything is computed with: so many, or one for each core. Where the system refuses some, it
/// says so and makes do with the others; without any, the calling thread does all the work.
pub(crate) fn start(wanted: Option<usize>, console: &Console) -> Result<()> {
    if let Some(wanted) = wanted {
        ASKED.get_or_init(|| wanted);
    }
    let wanted = wanted.unwrap_or_else(default_threads);
    // The pool can be built once, and not at all if one thread cannot be started: so they are started before it.
    let (waiting, refused) = started(wanted);
    if let Some(reason) = &refused {
        let got = waiting.len();
        let instead = if got == 0 { "the program goes on without".to_owned() } else { format!("{got} go on") };
        console.say(format!("of {} the system refused some ({reason}): {instead}", counted(wanted, "thread")));
    }
    let builder = rayon::ThreadPoolBuilder::new().num_threads(waiting.len().max(1));
    if waiting.is_empty() {
        return builder.use_current_thread().build_global().context("threads");
    }
    let waiting = Mutex::new(waiting);
    let hand_over = |work: ThreadBuilder| {
        let next = waiting.lock().unwrap_or_else(|e| e.into_inner()).pop();
        let sent = next.is_some_and(|thread| thread.send(work).is_ok());
        if sent { Ok(()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    };
    builder.spawn_handler(hand_over).build_global().context("threads")
}

/// Threads that wait for what to do, up to so many, and why there are not more.
fn started(wanted: usize) -> (Vec<std::sync::mpsc::Sender<ThreadBuilder>>, Option<std::io::Error>) {
    let mut waiting = Vec::new();
    for _ in 0..wanted {
        let (sender, work) = channel();
        match std::thread::Builder::new().spawn(move || run(&work)) {
            Ok(_) => waiting.push(sender),
            Err(error) => return (waiting, Some(error)),
        }
    }
    (waiting, None)
}

fn run(work: &Receiver<ThreadBuilder>) {
    if let Ok(thread) = work.recv() {
        thread.run();
    }
}

/// As rayon has it: what its variable says, or the number of cores.
fn default_threads() -> usize {
    let said = std::env::var("RAYON_NUM_THREADS").ok().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    said.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}
