//! What a file holds, whatever its format: so many samples, of some size, read one at a time.

use super::audio::Recording;
use super::cifar::{self, Batch};
use super::image;
use super::pages::Pages;
use super::stack::Stack;
use anyhow::{Result, bail, ensure};
use ocsc::{Real, Sample};
use std::path::PathBuf;

/// The samples of one file, or of one array of a file.
#[derive(Debug)]
pub(crate) enum Content {
    Image(PathBuf),
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

    /// Depth, height and width of sample `index`; of an image only the header is read.
    pub(crate) fn size(&self, index: usize) -> Result<[usize; 3]> {
        match self {
            Content::Image(path) => image::size(path),
            Content::Pages(pages) => Ok(pages.size()),
            Content::Damaged(_, why) => bail!("{why}"),
            Content::Batch(_) => Ok(cifar::SHAPE.spatial()),
            Content::Recording(recording) => Ok(recording.shape(index).spatial()),
            Content::Array(stack) => Ok(stack.shape(index).spatial()),
        }
    }

    /// Sample `index`, as it is in the file.
    pub(crate) fn get<T: Real>(&self, index: usize, nan_is_missing: bool) -> Result<Sample<T>> {
        ensure!(index < self.len(), "sample {index} of {}", self.len());
        match self {
            Content::Image(path) => image::read(path, nan_is_missing),
            Content::Pages(pages) => pages.get(index, nan_is_missing),
            Content::Damaged(_, why) => bail!("{why}"),
            Content::Batch(batch) => batch.get(index),
            Content::Recording(recording) => recording.get(index, nan_is_missing),
            Content::Array(stack) => stack.get(index, nan_is_missing),
        }
    }
}
