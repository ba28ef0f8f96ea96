//! TIFF files: one page or many, gray, colour or many bands, in every precision.
//!
//! The crate `tiff` decodes what it can hand over as it is: integers of 8 to 64 bits, which are scaled by their largest
//! value, and floats. What remains (palettes, inks, fewer bits) goes through `image` as other pictures do. A page is
//! found by where its directory lies, so that reading one decodes no other.

use super::image::{allowance, decode, oriented, planes, turned};
use super::mask;
use anyhow::{Context, Result, bail, ensure};
use image::metadata::Orientation;
use image::{ImageFormat, ImageReader};
use ocsc::{Real, Sample, Shape};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult};
use tiff::tags::Tag;

const DAMAGED: &str = "cannot be decoded as an image; it is damaged, or of an unsupported kind";

/// The pages of a file, all of one size.
#[derive(Debug)]
pub(crate) struct Pages {
    path: PathBuf,
    /// Where the directory of each page lies.
    places: Vec<u64>,
    /// Height and width, after orientation.
    size: [usize; 2],
    /// All pages are the slices of one sample.
    volume: bool,
}

/// True if the file holds a TIFF, whatever its name says.
pub(crate) fn is_tiff(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(matches!(&start[..], b"II*\0" | b"MM\0*" | b"II+\0" | b"MM\0+"))
}

impl Pages {
    /// Reads the directory of every page, and nothing else.
    pub(crate) fn open(path: &Path, volume: bool) -> Result<Self> {
        let mut decoder = Decoder::new(BufReader::new(File::open(path)?)).context(DAMAGED)?;
        let (mut places, mut sizes, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        let mut next = decoder.ifd_pointer();
        while let Some(place) = next {
            ensure!(seen.insert(place.0), "the pages form a circle; the file is damaged");
            let directory = decoder.read_directory(place).context(DAMAGED)?;
            next = directory.next();
            let mut tags = decoder.read_directory_tags(&directory);
            let kind = tags.find_tag_unsigned::<u32>(Tag::NewSubfileType).context(DAMAGED)?.unwrap_or(0);
            // Small previews and masks belong to another page.
            if kind & 0b101 != 0 && !(places.is_empty() && next.is_none()) {
                continue;
            }
            let height: u32 = tags.get_tag_unsigned(Tag::ImageLength).context(DAMAGED)?;
            let width: u32 = tags.get_tag_unsigned(Tag::ImageWidth).context(DAMAGED)?;
            let code = tags.find_tag_unsigned::<u8>(Tag::Orientation).ok().flatten();
            places.push(place.0);
            sizes.push(turned(orientation(code), height as usize, width as usize));
        }
        let size = *sizes.first().context("the file holds no pages; expected an image")?;
        if let Some(i) = sizes.iter().position(|other| *other != size) {
            let ([h0, w0], [h, w]) = (size, sizes[i]);
            bail!(
                "expected pages of one size, found {h0}x{w0} on page 0 and {h}x{w} on page {i}; save them as files of \
                 their own"
            );
        }
        Ok(Pages { path: path.to_owned(), places, size, volume })
    }

    /// The number of samples: 1 for a volume, else that of the pages.
    pub(crate) fn len(&self) -> usize {
        if self.volume { 1 } else { self.places.len() }
    }

    /// How many spatial axes each sample has.
    pub(crate) fn rank(&self) -> usize {
        if self.volume { 3 } else { 2 }
    }

    /// Depth, height and width of every sample.
    pub(crate) fn size(&self) -> [usize; 3] {
        let [height, width] = self.size;
        [if self.volume { self.places.len() } else { 1 }, height, width]
    }

    /// Sample `index`: a page, or all of them.
    pub(crate) fn get<T: Real>(&self, index: usize, nan_is_missing: bool) -> Result<Sample<T>> {
        if !self.volume {
            return self.page(index, nan_is_missing);
        }
        let most = allowance(&self.path)?;
        let pixels = self.size().iter().fold(1u64, |product, n| product.saturating_mul(*n as u64));
        ensure!(pixels <= most, "claims {pixels} pixels in {} pages; the file is damaged", self.places.len());
        let slices: Vec<Sample<T>> =
            (0..self.places.len()).map(|i| self.page(i, nan_is_missing)).collect::<Result<_>>()?;
        let first = slices[0].shape();
        if let Some(i) = slices.iter().position(|slice| slice.shape() != first) {
            bail!("expected pages alike, found {first} on page 0 and {} on page {i}", slices[i].shape());
        }
        let shape = Shape { depth: slices.len(), ..first };
        let data = slices_joined(slices.iter().map(|slice| slice.data()), first);
        if slices.iter().all(|slice| slice.mask().is_none()) {
            return Ok(Sample::new(shape, data)?);
        }
        let seen: Vec<Vec<bool>> =
            slices.iter().map(|slice| slice.mask().map_or(vec![true; first.len()], <[bool]>::to_vec)).collect();
        Ok(Sample::masked(shape, data, slices_joined(seen.iter().map(Vec::as_slice), first))?)
    }

    fn page<T: Real>(&self, index: usize, nan_is_missing: bool) -> Result<Sample<T>> {
        let place = *self.places.get(index).with_context(|| format!("page {index} of {}", self.places.len()))?;
        let most = allowance(&self.path)?;
        let mut limits = tiff::decoder::Limits::default();
        limits.decoding_buffer_size = usize::try_from(most).unwrap_or(usize::MAX);
        limits.intermediate_buffer_size = limits.decoding_buffer_size;
        let mut decoder =
            Decoder::new(BufReader::new(Page::open(&self.path, place)?)).context(DAMAGED)?.with_limits(limits);
        let code = decoder.find_tag_unsigned::<u8>(Tag::Orientation).ok().flatten();
        let kind = decoder.colortype().context(DAMAGED)?;
        let (per_pixel, channels): (usize, usize) = match kind {
            ColorType::Gray(_) => (1, 1),
            ColorType::GrayA(_) => (2, 1),
            ColorType::RGB(_) => (3, 3),
            ColorType::RGBA(_) => (4, 3),
            ColorType::Multiband { num_samples, .. } => (num_samples.into(), num_samples.into()),
            _ => (0, 0),
        };
        if channels == 0 || !matches!(kind.bit_depth(), 8 | 16 | 32 | 64) {
            let page = BufReader::new(Page::open(&self.path, place)?);
            return decode(ImageReader::with_format(page, ImageFormat::Tiff), most, nan_is_missing);
        }
        let (width, height) = decoder.dimensions()?;
        let mut numbers = DecodingResult::U8(Vec::new());
        let layout = decoder.read_image_to_buffer(&mut numbers).context(DAMAGED)?;
        // Planes of their own are in our order already.
        let per_pixel = (layout.planes <= 1).then_some(per_pixel);
        let count = channels.saturating_mul(width as usize * height as usize);
        let data = match numbers {
            DecodingResult::U8(v) => spread(&v, per_pixel, channels, count, |v| f64::from(v) / 255.0),
            DecodingResult::U16(v) => spread(&v, per_pixel, channels, count, |v| f64::from(v) / 65535.0),
            DecodingResult::U32(v) => spread(&v, per_pixel, channels, count, |v| f64::from(v) / f64::from(u32::MAX)),
            DecodingResult::U64(v) => spread(&v, per_pixel, channels, count, |v| v as f64 / u64::MAX as f64),
            DecodingResult::I8(v) => spread(&v, per_pixel, channels, count, |v| f64::from(v) / 127.0),
            DecodingResult::I16(v) => spread(&v, per_pixel, channels, count, |v| f64::from(v) / 32767.0),
            DecodingResult::I32(v) => spread(&v, per_pixel, channels, count, |v| f64::from(v) / f64::from(i32::MAX)),
            DecodingResult::I64(v) => spread(&v, per_pixel, channels, count, |v| v as f64 / i64::MAX as f64),
            DecodingResult::F16(v) => spread(&v, per_pixel, channels, count, f64::from),
            DecodingResult::F32(v) => spread(&v, per_pixel, channels, count, f64::from),
            DecodingResult::F64(v) => spread(&v, per_pixel, channels, count, |v| v),
        };
        let shape = Shape { channels, depth: 1, height: height as usize, width: width as usize };
        oriented(mask::sample(shape, data, nan_is_missing)?, orientation(code))
    }
}

/// From slices (channel, height, width) of one shape to (channel, slice, height, width).
fn slices_joined<'a, V: Copy + 'a>(slices: impl Iterator<Item = &'a [V]> + Clone, one: Shape) -> Vec<V> {
    let channel = |c: usize| slices.clone().flat_map(move |slice| &slice[c * one.pixels()..][..one.pixels()]);
    (0..one.channels).flat_map(channel).copied().collect()
}

/// The `count` values of the channels, each a plane: from so many samples per pixel, or, with none, from planes.
fn spread<P: Copy>(
    raw: &[P],
    per_pixel: Option<usize>,
    channels: usize,
    count: usize,
    value: impl Fn(P) -> f64,
) -> Vec<f64> {
    match per_pixel {
        Some(per_pixel) => planes(raw, per_pixel, channels, value),
        None => raw.iter().take(count).map(|v| value(*v)).collect(),
    }
}

fn orientation(code: Option<u8>) -> Orientation {
    code.and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms)
}

/// A file as if the page at one place were its first: the header says where that lies, the rest is as it is.
struct Page {
    file: File,
    header: Vec<u8>,
    at: u64,
}

impl Page {
    fn open(path: &Path, place: u64) -> Result<Self> {
        let mut file = File::open(path)?;
        let mut header = Vec::new();
        file.by_ref().take(16).read_to_end(&mut header)?;
        let big_endian = header.starts_with(b"MM");
        let large = header.get(2..4).is_some_and(|version| version.contains(&43));
        let mut pointer = if large { place.to_le_bytes().to_vec() } else { (place as u32).to_le_bytes().to_vec() };
        if big_endian {
            pointer.reverse();
        }
        header.truncate(if large { 16 } else { 8 });
        let from = header.len().saturating_sub(pointer.len());
        header.splice(from.., pointer);
        Ok(Page { file, header, at: 0 })
    }
}

impl Read for Page {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut start = self.header.get(self.at as usize..).unwrap_or_default();
        let read = if start.is_empty() {
            self.file.seek(SeekFrom::Start(self.at))?;
            self.file.read(buffer)?
        } else {
            start.read(buffer)?
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Page {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = place.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
