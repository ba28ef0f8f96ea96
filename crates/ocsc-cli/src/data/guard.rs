//! Decoders of others, which may panic on files that nobody meant for them.
//!
//! Every file is opened, measured and decoded within [`guarded`], so that what a crate did not foresee becomes a message about
//! the file, and a bad sample.

use anyhow::{Result, anyhow};
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// How many guards this thread is within.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Does `work`, and returns a panic within it as an error. Nothing is printed of it.
pub(crate) fn guarded<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    silence_guarded_threads();
    DEPTH.set(DEPTH.get() + 1);
    // What a decoder leaves behind is dropped with it, so nobody sees a half-made state.
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done.unwrap_or_else(|panic| {
        Err(anyhow!("cannot be decoded; it is damaged in a way that the decoder did not foresee ({})", words(&*panic)))
    })
}

/// Lets panics of guarded threads pass without a message; those of all other threads are reported as before.
fn silence_guarded_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if DEPTH.get() == 0 {
                report(panic);
            }
        }));
    });
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}
