//! What a file holds, whatever its format: so many samples, of some size, read one at a time.

use super::audio::Recording;
use super::cifar::{self, Batch};
use super::image;
use super::stack::Stack;
use anyhow::{Result, ensure};
use ocsc::{Real, Sample};
use std::path::PathBuf;

/// The samples of one file, or of one array of a file.
#[derive(Debug)]
pub(crate) enum Content {
    Image(PathBuf),
    Batch(Batch),
    Recording(Recording),
    Array(Stack),
}

impl Content {
    /// The number of samples, at least 1.
    pub(crate) fn len(&self) -> usize {
        match self {
            Content::Image(_) => 1,
            Content::Batch(batch) => batch.len(),
            Content::Recording(recording) => recording.len(),
            Content::Array(stack) => stack.len(),
        }
    }

    /// True for pictures, which are preprocessed by default.
    pub(crate) fn is_image(&self) -> bool {
        matches!(self, Content::Image(_) | Content::Batch(_))
    }

    /// How many spatial axes each sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Content::Image(_) | Content::Batch(_) => 2,
            Content::Recording(_) => 1,
            Content::Array(stack) => stack.rank(),
        }
    }

    /// Depth, height and width of sample `index`; of an image only the header is read.
    pub(crate) fn size(&self, index: usize) -> Result<[usize; 3]> {
        match self {
            Content::Image(path) => image::size(path),
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
            Content::Batch(batch) => batch.get(index),
            Content::Recording(recording) => recording.get(index, nan_is_missing),
            Content::Array(stack) => stack.get(index, nan_is_missing),
        }
    }
}
