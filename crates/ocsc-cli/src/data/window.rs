//! Long signals cut into windows: the option `--window`, and where the cuts are.
//!
//! All windows have the length asked for but the last, which takes what is left: a rest shorter than half a window goes
//! with the window before it, a longer one stands alone. So nothing is lost, and no sample is too short for the filters
//! that fit half a window.

use anyhow::{Result, bail};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The length of a window as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Window {
    /// `5s`: for recordings, whose rate is known.
    Seconds(f64),
    /// `2048`: values along W.
    Values(usize),
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Window::Seconds(seconds) => write!(f, "{seconds}s"),
            Window::Values(values) => write!(f, "{values}"),
        }
    }
}

impl FromStr for Window {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let seconds = text.strip_suffix('s').map(|seconds| seconds.trim().parse::<f64>());
        match (seconds, text.parse()) {
            (Some(Ok(seconds)), _) if seconds.is_finite() && seconds > 0.0 => Ok(Window::Seconds(seconds)),
            (None, Ok(values)) if values > 0 => Ok(Window::Values(values)),
            _ => bail!("expected seconds such as 5s or 0.5s, or a number of values such as 2048"),
        }
    }
}

/// A signal of `total` values in windows of `length`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    total: usize,
    length: usize,
}

impl Windows {
    /// `length` is taken as at least 1.
    pub(crate) fn new(total: usize, length: usize) -> Self {
        Windows { total, length: length.max(1) }
    }

    /// How many, at least 1.
    pub(crate) fn count(&self) -> usize {
        let rest = self.total % self.length;
        (self.total / self.length + usize::from(rest >= self.length - rest)).max(1)
    }

    /// The values of window `index`.
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        let start = index.saturating_mul(self.length).min(self.total);
        let end = if index + 1 < self.count() { start + self.length } else { self.total };
        start..end
    }
}
