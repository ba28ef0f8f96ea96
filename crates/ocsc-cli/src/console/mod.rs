//! The person in front of the program: messages, results, errors, progress.

mod progress;

pub(crate) use crate::interrupt::{Interrupted, catch_interrupts, interrupted};
pub(crate) use ocsc::text::{counted, share, size as bytes};
pub(crate) use progress::Progress;

use anyhow::{Context, Result};
use progress::Place;
use std::io::{IsTerminal, Write};

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

    /// Whether a person sits in front of it and is told of things.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal && !self.quiet && self.rank.is_none()
    }

    /// A message for the person; not part of the result.
    pub fn say(&self, message: impl AsRef<str>) {
        if !self.quiet && self.rank.is_none() {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", message.as_ref());
        }
    }

    /// Says why the program failed, even when quiet.
    pub fn error(&self, error: &anyhow::Error) {
        let _ = writeln!(std::io::stderr(), "error: {}", told(error));
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
        let place = Place { terminal: self.is_terminal(), plain: !self.terminal && !self.quiet, rank: self.rank };
        Progress::new(&place, what, total.into(), done)
    }
}

/// What an error says, cause after cause. Many errors say their cause themselves; it is not said again.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_cause_is_told_once() {
        let missing = || std::io::Error::from_raw_os_error(2);
        let reason = missing().to_string();
        let error = anyhow::Error::new(ocsc::Error::io(Path::new("m"), missing()));
        assert_eq!(told(&error), format!("m: {reason}"));
        assert_eq!(told(&error.context("--resume")), format!("--resume: m: {reason}"));
        assert_eq!(told(&anyhow::Error::new(missing()).context("cannot read m")), format!("cannot read m: {reason}"));
        assert_eq!(told(&anyhow::anyhow!("a").context("b").context("c")), "c: b: a");
    }
}
