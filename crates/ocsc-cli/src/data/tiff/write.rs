//! Pages written as one file, in the depth of the pages that they were made of.

use super::super::image::boxed;
use super::DAMAGED;
use super::page::Page;
use super::{Meaning, Pages};
use crate::console::told;
use anyhow::{Context, Result, anyhow, bail, ensure};
use ocsc::replace::write_file;
use ocsc::{Sample, Shape};
use std::io::{BufReader, Cursor, Seek, Write};
use std::path::Path;
use tiff::decoder::Decoder;
use tiff::encoder::TiffEncoder;
use tiff::encoder::colortype::{Gray8, Gray16, Gray32Float, RGB8, RGB16, RGB32Float};
use tiff::tags::Tag;

/// The tag `SampleFormat` of unsigned whole numbers, which is also what a page without the tag has.
const UNSIGNED: u16 = 1;

/// What the numbers of pages are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Whole numbers of 8 bits, for values from 0 to 1.
    Eight,
    /// Whole numbers of 16 bits, for values from 0 to 1.
    Sixteen,
    /// Floats, for values as they are.
    Float,
}

/// Where a sample lies in a file of pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InStack {
    /// The number of its page, or of its first.
    pub(crate) page: usize,
    /// The pages of the file.
    pub(crate) pages: usize,
    /// The samples that they are: each page one, or all together one.
    pub(crate) samples: usize,
    pub(crate) depth: Depth,
    /// Whether every channel is a page.
    pub(crate) by_channel: bool,
}

impl Pages {
    /// Says where sample `index` lies in the file.
    pub(crate) fn in_stack(&self, index: usize) -> Result<InStack> {
        let page = if self.meaning == Meaning::Samples { index } else { 0 };
        let by_channel = self.meaning == Meaning::Channels;
        Ok(InStack { page, pages: self.entries.len(), samples: self.len(), depth: self.depth()?, by_channel })
    }

    /// Returns the depth of the first page; signed numbers and those of more bits are written as floats.
    fn depth(&self) -> Result<Depth> {
        let first = self.entry(0)?;
        let page = boxed(BufReader::new(Page::open(&self.path, first.place, &first.bands)?));
        let mut decoder = Decoder::new(page).context(DAMAGED)?;
        let bits = decoder.colortype().context(DAMAGED)?.bit_depth();
        let formats = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).context(DAMAGED)?.unwrap_or_default();
        let is_unsigned = formats.iter().all(|format| *format == UNSIGNED);
        Ok(match bits {
            0..=8 if is_unsigned => Depth::Eight,
            9..=16 if is_unsigned => Depth::Sixteen,
            _ => Depth::Float,
        })
    }
}

/// Returns the pages of a sample: the slices of a volume, gray or colour, or of an image of other channels one for each.
pub(crate) fn pages(sample: &Sample<f64>, by_channel: bool) -> Result<Vec<Sample<f32>>> {
    let shape = sample.shape();
    let area = shape.height * shape.width;
    let planes: Vec<&[f64]> = sample.data().chunks_exact(area.max(1)).collect();
    let page = |of: Vec<&[f64]>| {
        let one = Shape { channels: of.len(), depth: 1, ..shape };
        Ok(Sample::new(one, of.concat().iter().map(|v| *v as f32).collect())?)
    };
    match (shape.channels, shape.depth) {
        (channels, 1) if by_channel || !matches!(channels, 1 | 3) => {
            planes.iter().map(|plane| page(vec![plane])).collect()
        }
        (1 | 3, depth) => {
            let slice = |d: usize| planes.iter().copied().skip(d).step_by(depth).collect();
            (0..depth).map(|d| page(slice(d))).collect()
        }
        _ => bail!("a sample of {shape} has no pages; expected 1 or 3 channels, or no depth; --format npy holds it"),
    }
}

/// Writes pages of one size as one file.
pub(crate) fn write(path: &Path, pages: &[&Sample<f32>], depth: Depth) -> Result<()> {
    let written = encode(pages, depth).and_then(|bytes| Ok(write_file(path, bytes)?));
    written.map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))
}

fn encode(pages: &[&Sample<f32>], depth: Depth) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes)?;
    let first = pages.first().context("expected at least one page")?.shape();
    for page in pages {
        ensure!(page.shape() == first, "expected pages alike, found {first} and {}", page.shape());
        encode_page(&mut encoder, page, depth)?;
    }
    Ok(bytes.into_inner())
}

fn encode_page<W: Write + Seek>(to: &mut TiffEncoder<W>, page: &Sample<f32>, depth: Depth) -> Result<()> {
    let shape = page.shape();
    let (width, height) = (u32::try_from(shape.width)?, u32::try_from(shape.height)?);
    // From (channel, pixel) to (pixel, channel).
    let pixels = shape.pixels();
    let values = (0..shape.len()).map(|i| page.data()[i % shape.channels * pixels + i / shape.channels]);
    let level = |v: f32, white: f32| (v * white).round().clamp(0.0, white);
    match (depth, shape.channels) {
        (Depth::Eight, n) => {
            let levels: Vec<u8> = values.map(|v| level(v, 255.0) as u8).collect();
            if n == 1 {
                to.write_image::<Gray8>(width, height, &levels)
            } else {
                to.write_image::<RGB8>(width, height, &levels)
            }
        }
        (Depth::Sixteen, n) => {
            let levels: Vec<u16> = values.map(|v| level(v, 65535.0) as u16).collect();
            if n == 1 {
                to.write_image::<Gray16>(width, height, &levels)
            } else {
                to.write_image::<RGB16>(width, height, &levels)
            }
        }
        (Depth::Float, n) => {
            let values: Vec<f32> = values.collect();
            if n == 1 {
                to.write_image::<Gray32Float>(width, height, &values)
            } else {
                to.write_image::<RGB32Float>(width, height, &values)
            }
        }
    }?;
    Ok(())
}
