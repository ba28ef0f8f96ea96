//! What the thread that learns and the thread that serves share. Neither waits for the other for longer than it takes to move a
//! few pointers.

use crate::frame::Frame;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A picture of the run that is yet to be drawn.
pub(crate) type Shot = Box<dyn FnOnce() -> Frame + Send>;

/// What the stop button does.
pub(crate) type Stop = Box<dyn Fn() + Send + Sync>;

/// What the run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Data are looked at, and the run is put together.
    Preparing,
    Learning,
    Testing,
    Paused,
    /// It was asked to stop, and saves what there is.
    Stopping,
    Ended,
    /// An error ended it.
    Failed,
    /// There is no run, but files of one.
    View,
}

/// What the run does, as it is sent between two frames.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Status {
    pub(crate) phase: Phase,
    /// Test samples that were evaluated, and how many there are.
    pub(crate) testing: Option<(usize, usize)>,
    /// Whether somebody asked for a pause.
    pub(crate) pause: bool,
}

/// Holds what both threads see.
pub(crate) struct Board {
    slot: Mutex<Option<Shot>>,
    status: Mutex<Status>,
    lookers: AtomicUsize,
    is_closing: AtomicBool,
    /// How long the last picture took to draw, in nanoseconds.
    drawing: AtomicU64,
    stop: Option<Stop>,
    #[cfg(feature = "server")]
    bell: tokio::sync::Notify,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    /// Makes a board of a run that can be stopped, or of files.
    pub(crate) fn new(stop: Option<Stop>) -> Self {
        let phase = if stop.is_some() { Phase::Preparing } else { Phase::View };
        Board {
            slot: Mutex::new(None),
            status: Mutex::new(Status { phase, testing: None, pause: false }),
            lookers: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            drawing: AtomicU64::new(0),
            stop,
            #[cfg(feature = "server")]
            bell: tokio::sync::Notify::new(),
        }
    }

    /// Leaves a picture for the server. One that nobody took is dropped.
    pub(crate) fn put(&self, shot: Shot) {
        let old = locked(&self.slot).replace(shot);
        drop(old);
        self.ring();
    }

    /// Changes what the run does.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Status)) {
        change(&mut locked(&self.status));
    }

    /// Returns what the run does.
    pub(crate) fn status(&self) -> Status {
        *locked(&self.status)
    }

    /// Returns whether anybody looks.
    pub(crate) fn is_watched(&self) -> bool {
        self.lookers() > 0
    }

    /// Returns how many look.
    pub(crate) fn lookers(&self) -> usize {
        self.lookers.load(SeqCst)
    }

    /// Returns how long the last picture took to draw.
    pub(crate) fn drawing(&self) -> Duration {
        Duration::from_nanos(self.drawing.load(SeqCst))
    }

    /// Has all clients sent what is left, and let go of.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, SeqCst);
        self.ring();
    }

    fn ring(&self) {
        #[cfg(feature = "server")]
        self.bell.notify_one();
    }
}

/// What the server does with a board.
#[cfg(feature = "server")]
impl Board {
    /// Waits for a picture, for somebody who looks, or for the end.
    pub(crate) async fn wait(&self) {
        self.bell.notified().await;
    }

    /// Takes the picture that is to be drawn.
    pub(crate) fn take(&self) -> Option<Shot> {
        locked(&self.slot).take()
    }

    /// Returns whether there is a picture to be drawn.
    pub(crate) fn has_shot(&self) -> bool {
        locked(&self.slot).is_some()
    }

    pub(crate) fn set_drawing(&self, took: Duration) {
        self.drawing.store(took.as_nanos() as u64, SeqCst);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(SeqCst)
    }

    /// Counts somebody who looks.
    pub(crate) fn join(&self) {
        self.lookers.fetch_add(1, SeqCst);
        self.ring();
    }

    /// Counts somebody who looked.
    pub(crate) fn leave(&self) {
        self.lookers.fetch_sub(1, SeqCst);
    }

    /// Asks the run to stop. Returns whether there is one.
    pub(crate) fn stop(&self) -> bool {
        let Some(stop) = &self.stop else { return false };
        if !matches!(self.status().phase, Phase::Ended | Phase::Failed) {
            self.set(|status| status.phase = Phase::Stopping);
            stop();
        }
        true
    }

    /// Asks the run to wait, or to go on. Returns whether there is one.
    pub(crate) fn pause(&self, pause: bool) -> bool {
        self.set(|status| status.pause = pause && self.stop.is_some());
        self.stop.is_some()
    }
}
