//! Ctrl-C and SIGTERM: at once, or, once a command listens, when it has saved what it has.

use ocsc::monitor::Monitor;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The exit code of whatever was interrupted.
pub(crate) const EXIT_CODE: u8 = 130;

/// A signal that comes again so soon is the same wish: `timeout` signals the program and its process group, and a terminal all
/// processes of a job, of which one may pass it on.
const ONCE: Duration = Duration::from_secs(1);

/// How often a program that waits for Ctrl-C looks.
const LOOK: Duration = Duration::from_millis(50);

static LISTENING: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether nothing is left to save.
static WAITING: AtomicBool = AtomicBool::new(false);
/// When the first wish to stop came.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// What to say of a signal that ends the program at once, before a command listens.
static AT_ONCE: Mutex<Option<&'static str>> = Mutex::new(None);

/// The run was interrupted, and left what it had.
#[derive(Debug)]
pub struct Interrupted(pub(crate) String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Makes a signal end the program with exit code 130 from here on, or says why it cannot. To be called once, at the start.
pub fn handle_signals(say: impl FnOnce(&str)) {
    if let Err(error) = ctrlc::set_handler(heard) {
        // Nobody would read what the handler notes. A model file is replaced as a whole, so a sudden end leaves the last one.
        default_signals();
        say(&format!("Ctrl-C will end the program without a checkpoint: it cannot be caught ({error})"));
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "system calls")]
fn default_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: gives signals back to the system, which takes no memory of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn default_signals() {}

/// From here on the first signal only sets a flag, which the command looks at; the second ends the program at once.
pub(crate) fn catch_interrupts() {
    LISTENING.store(true, SeqCst);
}

/// Says from here on of a signal that ends the program at once what was lost.
pub(crate) fn say_at_once(words: &'static str) {
    *AT_ONCE.lock().unwrap_or_else(|e| e.into_inner()) = Some(words);
}

/// A signal came; this is a thread of its own.
fn heard() {
    if !LISTENING.load(SeqCst) {
        if let Some(words) = *AT_ONCE.lock().unwrap_or_else(|e| e.into_inner()) {
            let _ = writeln!(std::io::stderr(), "\nerror: {words}");
        }
        end_now();
    }
    if INTERRUPTED.swap(true, SeqCst) {
        if FIRST.get().is_some_and(|first| first.elapsed() >= ONCE) {
            end_now();
        }
        return;
    }
    let _ = FIRST.set(Instant::now());
    if !WAITING.load(SeqCst) {
        let _ = writeln!(std::io::stderr(), "\ninterrupted: saving what there is (again to stop at once)");
    }
}

/// Does what the first Ctrl-C does, for the button of the live page.
pub(crate) fn stop() {
    if !LISTENING.load(SeqCst) {
        end_now();
    }
    if !INTERRUPTED.swap(true, SeqCst) {
        let _ = FIRST.set(Instant::now());
        let _ =
            writeln!(std::io::stderr(), "\nstopped by the live page: saving what there is (Ctrl-C to stop at once)");
    }
}

/// Waits for Ctrl-C, with nothing left to save.
pub(crate) fn wait_for_it() {
    WAITING.store(true, SeqCst);
    catch_interrupts();
    while !interrupted() {
        std::thread::sleep(LOOK);
    }
}

/// Ends the program without a temporary file left behind.
pub(crate) fn end_now() -> ! {
    ocsc::replace::abandon();
    std::process::exit(EXIT_CODE.into())
}

/// Whether a signal came.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(SeqCst)
}

/// A monitor that ends work when a signal came.
pub(crate) struct UntilInterrupted;

impl Monitor for UntilInterrupted {
    fn keep_going(&self) -> bool {
        !interrupted()
    }
}
