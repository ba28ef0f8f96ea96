//! Recordings: WAV and FLAC files as signals of one or more channels, cut into windows.
//!
//! [`super::wav`] and [`super::flac`] read frames from the middle of a file; this file chooses channels, brings them to the
//! rate asked for ([`super::resample`]) and cuts windows ([`super::window`]). Only the window asked for is read, never the
//! recording, however long.

use super::format::ReadOptions;
use super::resample::Resampler;
use super::window::{Window, Windows};
use super::{flac, has_ending, mask, wav};
use anyhow::{Context, Result, bail, ensure};
use ocsc::{Real, Sample, Shape};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The endings by which folders are searched.
pub(crate) const EXTENSIONS: &[&str] = &["wav", "wave", "flac"];
/// Recordings are cut into windows of this length unless the call says otherwise.
pub(crate) const DEFAULT_WINDOW: Window = Window::Seconds(5.0);

/// True if the file's name ends like a recording's.
pub(crate) fn is_audio(path: &Path) -> bool {
    has_ending(path, EXTENSIONS)
}

/// Which channels of a recording become a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Channel {
    /// One channel, the mean of all.
    #[default]
    Mean,
    /// One of them, counted from 1.
    One(usize),
    /// All, as channels of the sample.
    All,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channel::Mean => f.write_str("mean"),
            Channel::One(number) => write!(f, "{number}"),
            Channel::All => f.write_str("all"),
        }
    }
}

impl FromStr for Channel {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse()) {
            ("mean", _) => Ok(Channel::Mean),
            ("all", _) => Ok(Channel::All),
            (_, Ok(number)) if number > 0 => Ok(Channel::One(number)),
            _ => bail!("expected mean, all, or the number of a channel from 1 up"),
        }
    }
}

/// What a recording's header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) channels: usize,
    /// Frames per second.
    pub(crate) rate: u32,
    /// Values per channel.
    pub(crate) frames: u64,
}

/// A recording, of which windows are read when asked for.
#[derive(Debug)]
pub(crate) struct Recording {
    path: PathBuf,
    is_flac: bool,
    facts: Facts,
    channel: Channel,
    /// To another rate, if one was asked for.
    resampler: Option<Arc<Resampler>>,
    /// Values per second, after resampling.
    rate: u32,
    windows: Windows,
}

impl Recording {
    /// Reads the header.
    pub(crate) fn open(path: &Path, channel: Channel, rate: Option<u32>, window: Option<Window>) -> Result<Self> {
        let is_flac = has_ending(path, &["flac"]);
        let facts = if is_flac { flac::open(path)? } else { wav::open(path)? };
        ensure!(facts.frames > 0, "the recording is empty; expected at least one value");
        ensure!(
            facts.rate > 0 && facts.channels > 0,
            "a recording of {} channels at {} Hz; the file is damaged",
            facts.channels,
            facts.rate
        );
        if let Channel::One(number) = channel {
            ensure!(number <= facts.channels, "--channel {number}, but the recording has {} channels", facts.channels);
        }
        let resampler = rate.filter(|&rate| rate != facts.rate).map(|rate| Resampler::shared(facts.rate, rate));
        let frames = resampler.as_ref().map_or(facts.frames, |resampler| resampler.output_len(facts.frames));
        let rate = rate.unwrap_or(facts.rate);
        let length = match window.unwrap_or(DEFAULT_WINDOW) {
            Window::Values(length) => length,
            Window::Seconds(seconds) => (seconds * f64::from(rate)).round() as usize,
        };
        let windows = Windows::new(usize::try_from(frames)?, length);
        Ok(Recording { path: path.to_owned(), is_flac, facts, channel, resampler, rate, windows })
    }

    /// The number of windows, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.windows.count()
    }

    /// Where window `index` begins.
    pub(crate) fn start(&self, index: usize) -> usize {
        self.windows.range(index).start
    }

    /// Values per second, after resampling.
    pub(crate) fn rate(&self) -> u32 {
        self.rate
    }

    /// The shape of window `index`.
    pub(crate) fn shape(&self, index: usize) -> Shape {
        let channels = if self.channel == Channel::All { self.facts.channels } else { 1 };
        Shape { channels, depth: 1, height: 1, width: self.windows.range(index).len() }
    }

    /// Window `index`, with values in [-1, 1].
    pub(crate) fn get<T: Real>(&self, index: usize, options: ReadOptions) -> Result<Sample<T>> {
        let range = self.windows.range(index);
        let wanted = match &self.resampler {
            Some(resampler) => resampler.needs(&range, self.facts.frames),
            None => range.start as u64..range.end as u64,
        };
        let frames = usize::try_from(wanted.end - wanted.start)?;
        let (shape, n) = (self.shape(index), self.facts.channels);
        let numbers = (frames as u64).saturating_mul(n as u64);
        // What is read, and what is made of it.
        let raw = numbers.saturating_mul(size_of::<f64>() as u64);
        options.ensure_room(&format!("windows of {} values", shape.width), raw, shape.len() as u64)?;
        let interleaved = match self.is_flac {
            true => flac::read(&self.path, &self.facts, wanted.start, frames)?,
            false => wav::read(&self.path, wanted.start, frames)?,
        };
        let whole = interleaved.len() == frames.checked_mul(n).context("more values than can be counted")?;
        ensure!(whole, "the samples end early; the file has changed, or is damaged");
        let wanted_channels = match self.channel {
            Channel::Mean => 0..1,
            Channel::One(number) => number - 1..number,
            Channel::All => 0..n,
        };
        let value = |frame: &[f64], c: usize| match self.channel {
            Channel::Mean => frame.iter().sum::<f64>() / n as f64,
            Channel::One(_) | Channel::All => frame[c],
        };
        // A single channel is there already.
        if n == 1 && self.resampler.is_none() {
            return mask::sample(shape, interleaved, options.nan_is_missing);
        }
        let mut values = Vec::with_capacity(shape.len());
        for c in wanted_channels {
            let plane = interleaved.chunks_exact(n).map(|frame| value(frame, c));
            match &self.resampler {
                Some(resampler) => {
                    let plane: Vec<f64> = plane.collect();
                    values.extend(resampler.resample(&plane, wanted.start, range.clone()));
                }
                None => values.extend(plane),
            }
        }
        mask::sample(shape, values, options.nan_is_missing)
    }
}
