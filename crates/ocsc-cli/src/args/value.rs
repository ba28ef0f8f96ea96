//! Values of options: what is accepted, and what a message says was expected.

use anyhow::{Result, bail, ensure};
use std::str::FromStr;

/// A filter size as typed: one length for every axis, or one per axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Size(Vec<usize>);

impl Size {
    /// The lengths for data with so many spatial axes.
    pub(crate) fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        match self.0[..] {
            [length] => Ok(vec![length; rank]),
            _ if self.0.len() == rank => Ok(self.0.clone()),
            _ => bail!("--size: expected {rank} lengths, as the data have {rank} spatial axes, found {}", self.0.len()),
        }
    }
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let lengths: Result<Vec<usize>, _> = text.split('x').map(usize::from_str).collect();
        let Ok(lengths) = lengths else { bail!("expected lengths such as 11, 11x11 or 5x11x11") };
        ensure!(lengths.len() <= 3 && !lengths.contains(&0), "expected one to three lengths of at least 1");
        Ok(Size(lengths))
    }
}

/// The size of a frame as typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FrameSize {
    pub(crate) height: usize,
    pub(crate) width: usize,
}

impl FromStr for FrameSize {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let lengths = text.split_once('x').map(|(height, width)| (height.parse(), width.parse()));
        match lengths {
            Some((Ok(height), Ok(width))) if height > 0 && width > 0 => Ok(FrameSize { height, width }),
            _ => bail!("expected height x width, e.g. 480x640"),
        }
    }
}

pub(super) fn positive(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => bail!("expected a number above 0"),
    }
}

pub(super) fn relaxation(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if (1.0..2.0).contains(&value) => Ok(value),
        _ => bail!("expected a number from 1 up to, not including, 2"),
    }
}

pub(super) fn forgetting(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 1.0 => Ok(value),
        _ => bail!("expected a number from 1 up"),
    }
}

pub(super) fn hertz(text: &str) -> Result<u32> {
    match text.parse::<u32>() {
        Ok(value) if (1..=10_000_000).contains(&value) => Ok(value),
        _ => bail!("expected a whole number of Hz from 1 to 10000000"),
    }
}

pub(super) fn threads(text: &str) -> Result<usize> {
    match text.parse::<usize>() {
        Ok(value) if (1..=1024).contains(&value) => Ok(value),
        _ => bail!("expected a whole number from 1 to 1024"),
    }
}

pub(super) fn at_least_one(text: &str) -> Result<usize> {
    match text.parse::<usize>() {
        Ok(value) if value > 0 => Ok(value),
        _ => bail!("expected a whole number of at least 1"),
    }
}
