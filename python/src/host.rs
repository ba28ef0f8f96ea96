//! Does long work beside Python.
//!
//! Work runs on a pool of threads made for the call, since a global pool would not survive a fork. The thread that called
//! lets go of the interpreter and waits: it hears Ctrl-C within [`PATIENCE`], and runs errands that only it can do, such as
//! callbacks and drawing from generators, which may belong to their thread.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long the waiting thread sleeps before it looks for signals.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long the current step may still take after Ctrl-C; then it ends in the background.
const GRACE: Duration = Duration::from_millis(400);

/// Something for the calling thread to do.
type Errand = Box<dyn FnOnce(Python<'_>) + Send>;

enum Message<R> {
    Errand(Errand),
    Done(R),
}

/// The calling thread, as the work sees it.
#[derive(Clone)]
pub(crate) struct Host {
    post: Arc<dyn Fn(Errand) -> bool + Send + Sync>,
    stop: Arc<AtomicBool>,
}

impl Host {
    /// Returns whether the work is to end after what it is doing.
    pub(crate) fn is_gone(&self) -> bool {
        self.stop.load(SeqCst)
    }

    /// Has the calling thread do something, and returns what came of it; none if it listens no more.
    pub(crate) fn ask<R: Send + 'static>(&self, errand: impl FnOnce(Python<'_>) -> R + Send + 'static) -> Option<R> {
        let (reply, answer) = channel();
        let posted = (self.post)(Box::new(move |py| drop(reply.send(errand(py)))));
        if posted { answer.recv().ok() } else { None }
    }
}

/// Returns a pool of `threads` threads, or of as many as there are cores.
pub(crate) fn pool(threads: Option<usize>) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).thread_name(|i| format!("ocsc-{i}")).build();
    pool.map_err(|e| PyRuntimeError::new_err(format!("threads: {e}")))
}

/// Does `work` on a pool of threads, and waits for it; Ctrl-C and other signals raise their exceptions.
pub(crate) fn work<R: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&Host) -> PyResult<R> + Send + 'static,
) -> PyResult<R> {
    let (post, mut inbox) = channel::<Message<std::thread::Result<PyResult<R>>>>();
    let finished = post.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let host = Host { post: Arc::new(move |errand| post.send(Message::Errand(errand)).is_ok()), stop: stop.clone() };
    pool(threads)?.spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&host)));
        // Nobody waits for work that was left behind.
        drop(finished.send(Message::Done(done)));
    });
    let done = loop {
        match py.detach(|| receive(&mut inbox, PATIENCE)) {
            Some(Message::Errand(errand)) => errand(py),
            Some(Message::Done(done)) => break done,
            None => {}
        }
        if let Err(interrupt) = py.check_signals() {
            stop.store(true, SeqCst);
            py.detach(|| see_out(&mut inbox));
            return Err(interrupt);
        }
    };
    done.unwrap_or_else(|_| Err(PyRuntimeError::new_err("ocsc failed inside; please report it with the text above")))
}

/// Waits a little for work that was told to end; errands are left undone.
fn see_out<R>(inbox: &mut Receiver<Message<R>>) {
    let end = Instant::now() + GRACE;
    while let Some(Message::Errand(_)) = receive(inbox, end.saturating_duration_since(Instant::now())) {}
}

/// Returns a message, if one comes in time. Takes `&mut`, since a shared inbox could not go to where Python is let go of.
fn receive<M>(inbox: &mut Receiver<M>, patience: Duration) -> Option<M> {
    inbox.recv_timeout(patience).ok()
}
