//! What a file holds, whatever its format: so many samples, of some size, read one at a time.

use super::audio::Recording;
use super::cifar::{self, Batch};
use super::guard::guarded;
use super::image::Picture;
use super::stack::Stack;
use super::tiff::Pages;
use crate::memory::Limit;
use anyhow::{Result, bail, ensure};
use ocsc::{Real, Sample, Shape};

/// How samples are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadOptions {
    /// Take NaN as unobserved.
    pub(crate) nan_is_missing: bool,
    /// What a sample may take while it is read.
    pub(crate) limit: Limit,
}

impl ReadOptions {
    /// Refuses what takes more memory than there is: `raw` bytes as a file's decoder gives them, and so many numbers made of
    /// them, which are held twice while they are put in order.
    pub(crate) fn ensure_room(&self, what: &str, raw: u64, numbers: u64) -> Result<()> {
        Ok(self.limit.ensure(what, raw.saturating_add(numbers.saturating_mul(2 * size_of::<f64>() as u64)))?)
    }
}

/// What a header tells of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its shape as it is read.
    pub(crate) shape: Shape,
    /// Whether it has an opacity, which is dropped.
    pub(crate) alpha: bool,
}

/// The samples of one file, or of one array of a file.
#[derive(Debug)]
pub(crate) enum Content {
    Image(Picture),
    Pages(Pages),
    Batch(Batch),
    Recording(Recording),
    Array(Stack),
    /// A picture (true) or a recording whose header cannot be read, and why. It is one sample, which nobody can read.
    Damaged(bool, String),
}

impl Content {
    /// The number of samples, at least 1.
    pub(crate) fn len(&self) -> usize {
        match self {
            Content::Image(_) | Content::Damaged(..) => 1,
            Content::Pages(pages) => pages.len(),
            Content::Batch(batch) => batch.len(),
            Content::Recording(recording) => recording.len(),
            Content::Array(stack) => stack.len(),
        }
    }

    /// True for pictures, which are preprocessed by default.
    pub(crate) fn is_image(&self) -> bool {
        matches!(self, Content::Image(_) | Content::Pages(_) | Content::Batch(_) | Content::Damaged(true, _))
    }

    /// How many spatial axes each sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Content::Image(_) | Content::Batch(_) | Content::Damaged(true, _) => 2,
            Content::Pages(pages) => pages.rank(),
            Content::Recording(_) | Content::Damaged(false, _) => 1,
            Content::Array(stack) => stack.rank(),
        }
    }

    /// The number of the signal, image or volume that sample `index` was cut from, of how many, and where along W the sample
    /// begins in it.
    pub(crate) fn cut(&self, index: usize) -> (usize, usize, usize) {
        match self {
            Content::Recording(recording) => (0, 1, recording.start(index)),
            Content::Array(stack) => {
                let (whole, start) = stack.cut(index);
                (whole, stack.wholes(), start)
            }
            _ => (index, self.len(), 0),
        }
    }

    /// Values per second along W, where the file says so.
    pub(crate) fn rate(&self) -> Option<u32> {
        match self {
            Content::Recording(recording) => Some(recording.rate()),
            _ => None,
        }
    }

    /// What the header tells of sample `index`; no pixels are decoded.
    pub(crate) fn header(&self, index: usize) -> Result<Header> {
        let opaque = |shape: Shape| Ok(Header { shape, alpha: false });
        guarded(|| match self {
            Content::Image(picture) => picture.header(),
            Content::Pages(pages) => pages.header(index),
            Content::Damaged(_, why) => bail!("{why}"),
            Content::Batch(_) => opaque(cifar::SHAPE),
            Content::Recording(recording) => opaque(recording.shape(index)),
            Content::Array(stack) => opaque(stack.shape(index)),
        })
    }

    /// Sample `index`, as it is in the file.
    pub(crate) fn get<T: Real>(&self, index: usize, options: ReadOptions) -> Result<Sample<T>> {
        ensure!(index < self.len(), "sample {index} of {}", self.len());
        guarded(|| match self {
            Content::Image(picture) => picture.read(options),
            Content::Pages(pages) => pages.get(index, options),
            Content::Damaged(_, why) => bail!("{why}"),
            Content::Batch(batch) => batch.get(index),
            Content::Recording(recording) => recording.get(index, options),
            Content::Array(stack) => stack.get(index, options),
        })
    }
}
