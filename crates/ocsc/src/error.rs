//! The one error type: what was wrong, what was expected, what was found.

use crate::text::{extent, size};
use std::path::{Path, PathBuf};

/// Says what can be refused at the door. Not converging is a status, never an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value, shape or sample that the mathematics cannot take.
    #[error("{what}: expected {expected}, found {found}")]
    Invalid {
        /// The parameter, sample or array at fault.
        what: String,
        /// What would have been accepted.
        expected: String,
        /// What came.
        found: String,
    },
    /// The same, in a file.
    #[error("{}: {what}: expected {expected}, found {found}", path.display())]
    File {
        /// The file at fault.
        path: PathBuf,
        /// The part of the file at fault.
        what: String,
        /// What would have been accepted.
        expected: String,
        /// What came.
        found: String,
    },
    /// The operating system refused to read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file at fault.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A sample could not be produced by its source; the message names the file.
    #[error("{0}")]
    Source(String),
    /// A sample is smaller than the filters.
    #[error("{name}: expected at least the filters' size {} on every axis, found {}", extent(filter), extent(found))]
    TooSmall {
        /// What the sample is called.
        name: String,
        /// Its number.
        index: usize,
        /// Depth, height and width of the filters.
        filter: [usize; 3],
        /// Depth, height and width of the sample.
        found: [usize; 3],
    },
    /// Samples differ in size, and the method's statistics hold one.
    #[error(
        "{name}: expected {} as {first} has, found {}: the statistics of `{method}` hold one sample size",
        extent(expected),
        extent(found)
    )]
    MixedSizes {
        /// What the sample is called.
        name: String,
        /// Depth, height and width of the first sample.
        expected: [usize; 3],
        /// What the first sample is called.
        first: String,
        /// Depth, height and width of the sample.
        found: [usize; 3],
        /// The method.
        method: &'static str,
    },
    /// More memory would be needed than there is.
    #[error("{what} need {}, more than the {} that {whose}{}", size(*needed), size(*available), after("; ", advice))]
    Memory {
        /// What needs it.
        what: String,
        /// The bytes that it needs.
        needed: u64,
        /// The bytes that it may take.
        available: u64,
        /// Who says so: `the system has free`.
        whose: &'static str,
        /// What to do, if there is something to be done.
        advice: Option<String>,
    },
    /// A process cannot go on, so those that learn with it cannot either.
    #[error("rank {rank} of {of}: {message}")]
    Rank {
        /// The rank of the process.
        rank: usize,
        /// The number of processes.
        of: usize,
        /// Its reason.
        message: String,
        /// The reason itself, where it is this process that cannot go on.
        cause: Option<Box<Error>>,
    },
    /// A [`Monitor`](crate::monitor::Monitor) wanted no more. What was begun left no trace.
    #[error("stopped")]
    Stopped,
}

/// Returns the text with what goes before it, or nothing.
fn after(before: &str, text: &Option<String>) -> String {
    text.as_ref().map_or_else(String::new, |text| format!("{before}{text}"))
}

/// Holds a result, or the library's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an [`Error::Invalid`].
    pub fn invalid(what: impl ToString, expected: impl ToString, found: impl ToString) -> Self {
        Error::Invalid { what: what.to_string(), expected: expected.to_string(), found: found.to_string() }
    }

    /// Makes an [`Error::File`].
    pub fn file(path: &Path, what: impl ToString, expected: impl ToString, found: impl ToString) -> Self {
        Error::File {
            path: path.to_owned(),
            what: what.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// The same complaint about a part of a file.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Error::Invalid { what, expected, found } => Error::File { path: path.to_owned(), what, expected, found },
            other => other,
        }
    }

    /// Returns whether the machine failed, not the file: a broken disk, no memory, no more files to open. Another attempt, or
    /// the same run on a healthy machine, would have read the file.
    pub fn is_system_failure(&self) -> bool {
        // The numbers of Linux, macOS and the BSDs, which agree: EIO, ENFILE, EMFILE.
        const FAILURES: [i32; 3] = [5, 23, 24];
        use std::io::ErrorKind::{Interrupted, OutOfMemory, StaleNetworkFileHandle, StorageFull, TimedOut};
        let Error::Io { source, .. } = self else { return false };
        let is_known = cfg!(unix) && source.raw_os_error().is_some_and(|code| FAILURES.contains(&code));
        let kinds = [Interrupted, OutOfMemory, StaleNetworkFileHandle, StorageFull, TimedOut];
        is_known || kinds.contains(&source.kind())
    }

    /// The same refusal of memory, with the file that asks for it.
    pub(crate) fn in_path(self, path: &Path) -> Self {
        match self {
            Error::Memory { what, needed, available, whose, advice } => {
                Error::Memory { what: format!("{}: {what}", path.display()), needed, available, whose, advice }
            }
            other => other,
        }
    }

    /// Makes an [`Error::Io`].
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Error::Io { path: path.to_owned(), source }
    }
}
