//! Values of options: what is accepted, and what a message says was expected.

use anyhow::{Context, Result, bail, ensure};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A size as typed: one length for every axis, or one per axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Size(Vec<usize>);

impl Size {
    /// The size of these lengths, one to three of at least 1.
    pub(crate) fn of(lengths: Vec<usize>) -> Self {
        Size(lengths)
    }

    /// The lengths as typed, one to three.
    pub(crate) fn lengths(&self) -> &[usize] {
        &self.0
    }

    /// The lengths for data with so many spatial axes.
    pub(crate) fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        match self.0[..] {
            [length] => Ok(vec![length; rank]),
            _ if self.0.len() == rank => Ok(self.0.clone()),
            _ => bail!("--size: expected {rank} lengths, as the data have {rank} spatial axes, found {}", self.0.len()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(usize::to_string).collect::<Vec<_>>().join("x"))
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

/// What samples are learned from in, as typed: whole, or pieces of a size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tile {
    Whole,
    Pieces(Size),
}

impl Tile {
    /// The size of pieces; none of whole samples.
    pub(crate) fn size(&self) -> Option<&Size> {
        match self {
            Tile::Whole => None,
            Tile::Pieces(size) => Some(size),
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tile::Whole => f.write_str("whole"),
            Tile::Pieces(size) => size.fmt(f),
        }
    }
}

impl FromStr for Tile {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "whole" {
            return Ok(Tile::Whole);
        }
        Ok(Tile::Pieces(text.parse().context("expected whole, or lengths such as 64, 64x64 or 8x64x64")?))
    }
}

/// Sizes as typed, separated by commas: filters of several scales.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sizes(Vec<Size>);

impl Sizes {
    /// The shape of the array that holds all of them, for data with so many spatial axes: the longest length on each axis.
    pub(crate) fn array(&self, rank: usize) -> Result<Vec<usize>> {
        let mut longest = vec![0; rank];
        for size in &self.0 {
            longest.iter_mut().zip(size.axes(rank)?).for_each(|(longest, length)| *longest = length.max(*longest));
        }
        Ok(longest)
    }

    /// The sizes themselves, if there are several.
    pub(crate) fn scales(&self, rank: usize) -> Result<Option<Vec<Vec<usize>>>> {
        let all = self.0.iter().map(|size| size.axes(rank)).collect::<Result<Vec<_>>>()?;
        Ok(Some(all).filter(|all| all.len() > 1))
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(Size::to_string).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Sizes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(Sizes(text.split(',').map(Size::from_str).collect::<Result<_>>()?))
    }
}

/// How often something is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Every {
    /// After so many samples.
    Samples(usize),
    /// After so much time.
    Time(Duration),
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Every::Samples(samples) => samples.fmt(f),
            Every::Time(time) => write!(f, "{}min", time.as_secs_f64() / 60.0),
        }
    }
}

impl FromStr for Every {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some(minutes) = text.strip_suffix("min") else {
            let samples = at_least_one(text).context("expected a number of samples, 500, or of minutes, 10min")?;
            return Ok(Every::Samples(samples));
        };
        let seconds = 60.0 * positive(minutes.trim_end())?;
        Ok(Every::Time(Duration::try_from_secs_f64(seconds).context("expected fewer minutes")?))
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
        _ => bail!("expected a finite number above 0"),
    }
}

pub(super) fn at_least_zero(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => bail!("expected a finite number from 0 up"),
    }
}

pub(super) fn fraction(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => bail!("expected a number between 0 and 1"),
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

/// 500MB, 32GB, or a plain number of bytes; units are powers of 1000, with an i of 1024.
pub(crate) fn memory(text: &str) -> Result<usize> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024f64.powi(2),
        "gib" => 1024f64.powi(3),
        "tib" => 1024f64.powi(4),
        _ => bail!("expected a size such as 500MB or 32GB"),
    };
    let bytes = unit * positive(number).context("expected a size such as 500MB or 32GB")?;
    Ok(bytes.min(usize::MAX as f64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_memory() {
        for (text, bytes) in
            [("1", 1), ("500MB", 500_000_000), ("1.5 GiB", 3 << 29), ("32gb", 32_000_000_000), ("2kB", 2000)]
        {
            assert_eq!(memory(text).unwrap(), bytes, "{text}");
        }
        for bad in ["", "GB", "-1GB", "1XB", "1e3", "0", "1.2.3MB", "inf", "NaNMB"] {
            assert!(format!("{:#}", memory(bad).unwrap_err()).contains("500MB"), "{bad}");
        }
    }

    #[test]
    fn intervals() {
        assert_eq!("500".parse::<Every>().unwrap(), Every::Samples(500));
        assert_eq!("10min".parse::<Every>().unwrap(), Every::Time(Duration::from_secs(600)));
        assert_eq!("0.5 min".parse::<Every>().unwrap(), Every::Time(Duration::from_secs(30)));
        for text in ["500", "10min", "0.5min"] {
            assert_eq!(text.parse::<Every>().unwrap().to_string(), text);
        }
        for bad in ["", "0", "min", "-3", "0min", "5h", "1e300min"] {
            assert!(bad.parse::<Every>().is_err(), "{bad}");
        }
    }
}
