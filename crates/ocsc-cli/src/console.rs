//! The person in front of the program: progress bars on a terminal, plain lines elsewhere, errors, and Ctrl-C.

pub(crate) use ocsc::memory::size as bytes;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::cmp::Ordering;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Without a terminal, progress is printed at most this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// So many messages are shown beside a progress display.
const MOST_NOTES: usize = 20;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Where messages go: stderr, or nowhere.
pub struct Console {
    quiet: bool,
    terminal: bool,
    /// Of a process that works for another one, which does the talking.
    rank: Option<usize>,
}

impl Console {
    /// Of a process that talks, or, if it is to be quiet, only of errors.
    pub fn new(quiet: bool) -> Self {
        Console { quiet, terminal: std::io::stderr().is_terminal(), rank: None }
    }

    /// Of a process that works for another one, and tells no more than what it had to pass over.
    pub fn of_rank(rank: usize, quiet: bool) -> Self {
        Console { quiet, terminal: false, rank: Some(rank) }
    }

    /// A message for the person; not part of the result.
    pub fn say(&self, message: impl AsRef<str>) {
        if !self.quiet && self.rank.is_none() {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", message.as_ref());
        }
    }

    /// Why the program failed; printed even when quiet.
    pub fn error(&self, error: &anyhow::Error) {
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
    }

    /// A result, on stdout.
    pub(crate) fn result(&self, text: impl AsRef<str>) -> Result<()> {
        if self.rank.is_some() {
            return Ok(());
        }
        let mut stdout = std::io::stdout();
        let written = writeln!(stdout, "{}", text.as_ref()).and_then(|()| stdout.flush());
        match written {
            // Whoever read, such as `head`, has enough.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.context("stdout: cannot be written"),
        }
    }

    /// A result of named values, aligned.
    pub(crate) fn table(&self, rows: &[(String, String)]) -> Result<()> {
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        rows.iter().try_for_each(|(name, value)| self.result(format!("{name:width$}  {value}")))
    }

    /// Progress of `total` samples, or of as many as come.
    pub(crate) fn progress(&self, what: &'static str, total: impl Into<Option<usize>>, done: usize) -> Progress {
        let total = total.into();
        let bar = (self.terminal && !self.quiet && self.rank.is_none()).then(|| {
            let (bar, style) = match total {
                Some(total) => {
                    let style = "{prefix} {wide_bar:.cyan/dim} {pos}/{len}  {elapsed} left {eta}  {msg}";
                    (ProgressBar::new(total as u64).with_position(done as u64), style)
                }
                None => {
                    (ProgressBar::no_length().with_position(done as u64), "{prefix} {spinner} {pos}  {elapsed}  {msg}")
                }
            };
            bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(what);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let plain = !self.terminal && !self.quiet;
        Progress { bar, plain, rank: self.rank, what, total, done, last: None, notes: 0 }
    }
}

/// One progress display.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    plain: bool,
    rank: Option<usize>,
    what: &'static str,
    total: Option<usize>,
    done: usize,
    last: Option<Instant>,
    notes: usize,
}

impl Progress {
    /// A message beside the progress. Of a long series only the first are shown: a folder may hold thousands of files that
    /// cannot be read.
    pub(crate) fn note(&mut self, message: &str) {
        self.notes += 1;
        let message = match self.notes.cmp(&(MOST_NOTES + 1)) {
            Ordering::Less => message,
            Ordering::Equal => "... and more; the summary counts them",
            Ordering::Greater => return,
        };
        match &self.bar {
            Some(bar) => bar.println(message),
            None if self.plain => {
                let who = self.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
                let _ = writeln!(std::io::stderr(), "{who}{message}");
            }
            None => {}
        }
    }

    /// So many more samples are done; `message` says how it goes.
    pub(crate) fn advance(&mut self, samples: usize, message: &str) {
        self.reach(self.done + samples, message);
    }

    /// So many samples are done in all.
    pub(crate) fn reach(&mut self, samples: usize, message: &str) {
        self.done = samples;
        if let Some(bar) = &self.bar {
            bar.set_message(message.to_owned());
            bar.set_position(self.done as u64);
        }
        let complete = self.total.is_some_and(|total| self.done >= total);
        if self.plain && self.rank.is_none() && (complete || self.last.is_none_or(|last| last.elapsed() >= LINE_EVERY))
        {
            self.last = Some(Instant::now());
            let of = self.total.map_or(String::new(), |total| format!("/{total}"));
            let _ = writeln!(std::io::stderr(), "{} {}{of}  {message}", self.what, self.done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The run was interrupted, and left what it had.
#[derive(Debug)]
pub struct Interrupted(pub(crate) String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// From here on the first Ctrl-C only sets a flag, the second ends the program at once.
pub(crate) fn catch_interrupts() -> Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, SeqCst) {
            std::process::exit(1);
        }
        let _ = writeln!(std::io::stderr(), "\ninterrupted: finishing the current sample (again to stop at once)");
    })?;
    Ok(())
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(SeqCst)
}
