//! Pictures of one set that have different channels.
//!
//! Filters span all channels, so the samples of a set must have the same number of them. That is the number which most samples
//! have, or that of the model. Gray pictures are then repeated over the channels that the set has; others cannot be used.
//! All is told by headers, before anything is decoded.

use super::{Part, Source};
use crate::console::{counted, share};
use anyhow::{Result, ensure};
use ocsc::preprocess::{Preprocess, Step};
use ocsc::{Real, Sample, Shape};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// How many samples there are of each kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChannelCounts {
    /// By the number of channels: how many samples have it, the number of the first of them, and whether all are pictures.
    kinds: BTreeMap<usize, Kind>,
    /// How many have an opacity, and the first of them.
    alpha: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Kind {
    count: usize,
    first: usize,
    pictures: bool,
}

impl ChannelCounts {
    /// Counts one sample.
    pub(crate) fn add(&mut self, index: usize, Seen { channels, alpha, picture }: Seen) {
        let kind = self.kinds.entry(channels).or_insert(Kind { count: 0, first: index, pictures: true });
        kind.count += 1;
        kind.pictures &= picture;
        if alpha {
            self.alpha.get_or_insert((0, index)).0 += 1;
        }
    }

    /// Adds what others counted.
    pub(crate) fn merge(&mut self, other: ChannelCounts) {
        for (channels, theirs) in other.kinds {
            let kind = self.kinds.entry(channels).or_insert(Kind { count: 0, ..theirs });
            kind.count += theirs.count;
            kind.first = kind.first.min(theirs.first);
            kind.pictures &= theirs.pictures;
        }
        if let Some((count, first)) = other.alpha {
            let (all, lowest) = self.alpha.get_or_insert((0, first));
            (*all, *lowest) = (*all + count, first.min(*lowest));
        }
    }

    /// The number of channels that most samples have, the larger one of two that are equally frequent; none if no header
    /// could be read.
    pub(crate) fn majority(&self) -> Option<usize> {
        let most = self.kinds.iter().max_by_key(|(channels, kind)| (kind.count, **channels));
        most.map(|(channels, _)| *channels)
    }

    /// Says what happens to a set that is brought to so many channels, or to none in particular by these steps; to be said before
    /// it is used.
    pub(crate) fn words(
        &self,
        channels: Option<usize>,
        preprocess: &Preprocess,
        name: impl Fn(usize) -> String,
    ) -> Vec<String> {
        let to_gray = preprocess.steps().contains(&Step::Gray);
        let mut lines = Vec::new();
        let total: usize = self.kinds.values().map(|kind| kind.count).sum();
        for (own, Kind { count, first, pictures }) in &self.kinds {
            let these = |verbs| share(*count, total, "sample", verbs);
            let (name, channels_of) = (name(*first), counted(*own, "channel"));
            let Some(wanted) = channels.filter(|wanted| wanted != own) else {
                if to_gray && !matches!(own, 1 | 3) {
                    lines.push(format!(
                        "{} {channels_of}, {name} first, which cannot become gray: name other steps with --preprocess",
                        these(["has", "have"])
                    ));
                }
                continue;
            };
            lines.push(if *own == 1 && *pictures {
                {
                    let these = these(["is", "are"]);
                    format!("{these} gray, {name} first, and repeated over the {wanted} channels of the others")
                }
            } else {
                let advice = match (*own, wanted) {
                    (1 | 3, 1 | 3) => "; --preprocess gray takes all of them",
                    _ => "",
                };
                let these = these(["has", "have"]);
                format!("{these} {channels_of} instead of {wanted}, {name} first, and cannot be used{advice}")
            });
        }
        if let Some((count, first)) = self.alpha {
            lines.push(format!(
                "{} an alpha channel (opacity), {} first: it is dropped",
                share(count, total, "sample", ["has", "have"]),
                name(first)
            ));
        }
        lines
    }
}

/// What the header of a sample tells here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) channels: usize,
    pub(crate) alpha: bool,
    pub(crate) picture: bool,
}

/// Returns the channels that samples must have before these steps, for filters of so many; none if the steps make them gray, or
/// take each channel by itself.
pub(crate) fn before(preprocess: &Preprocess, filters: usize) -> Option<usize> {
    let any = preprocess.steps().contains(&Step::Gray) || preprocess.is_per_channel();
    (!any).then_some(filters)
}

impl Source {
    /// What the header of sample `index` tells; none if it cannot be read, which is found out later.
    pub(crate) fn seen(&self, index: usize) -> Option<Seen> {
        let (part, i) = self.find(index)?;
        let header = part.content.header(i).ok()?;
        Some(Seen { channels: header.shape.channels, alpha: header.alpha, picture: part.content.is_image() })
    }

    /// Reads the headers of these samples, by all threads, so that they are known when they are asked for one after the other. What
    /// cannot be read is found out then.
    pub(crate) fn read_headers(&self, indices: Range<usize>, step: usize) {
        indices.into_par_iter().step_by(step).for_each(|index| {
            self.seen(index);
        });
    }

    /// The bytes of sample `index` in double precision, as its header declares them; 0 if that cannot be read.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn declared(&self, index: usize) -> u64 {
        let header = self.find(index).and_then(|(part, i)| part.content.header(i).ok());
        header.map_or(0, |header| (header.shape.len() as u64).saturating_mul(8))
    }

    /// The same samples, all with so many channels: gray pictures are repeated, others refused when they are read.
    pub(crate) fn of_channels(self, channels: Option<usize>) -> Source {
        Source { channels, ..self }
    }

    /// Brings a sample of a part to the channels that all must have.
    pub(super) fn with_channels<T: Real>(&self, part: &Part, sample: Sample<T>) -> Result<Sample<T>> {
        let shape = sample.shape();
        let Some(wanted) = self.channels.filter(|wanted| *wanted != shape.channels) else { return Ok(sample) };
        let repeat = shape.channels == 1 && part.content.is_image();
        ensure!(
            repeat,
            "sample: expected {}, found {}",
            counted(wanted, "channel"),
            counted(shape.channels, "channel")
        );
        let shape = Shape { channels: wanted, ..shape };
        self.options.ensure_room(&format!("samples of {shape}"), 0, shape.len() as u64)?;
        let (_, data, mask) = sample.into_parts();
        let data = data.repeat(wanted);
        match mask {
            Some(mask) => Ok(Sample::masked(shape, data, mask.repeat(wanted))?),
            None => Ok(Sample::new(shape, data)?),
        }
    }
}
