//! TIFF files: one page or many, gray, colour or many bands, in every precision.
//!
//! The crate `tiff` decodes what it can hand over as it is: integers of 8 to 64 bits, which are scaled by their largest
//! value, and floats. What remains (palettes, inks, fewer bits) goes through `image` as other pictures do. A page is
//! found by where its directory lies, so that reading one decodes no other. [`bands`] tells channels from opacities,
//! [`page`] is a file as the decoder is to see it, [`mod@write`] the way out.

mod bands;
mod directory;
mod page;
pub(crate) mod write;

use super::format::{Header, ReadOptions};
use super::image::{Bytes, boxed, decode, oriented, turned};
use super::{jpeg, mask};
use anyhow::{Context, Result, bail, ensure};
use bands::Bands;
use directory::Layout;
use image::metadata::Orientation;
use image::{ImageFormat, ImageReader};
use ocsc::{Axes, Real, Sample, Shape, file};
use page::Page;
use std::collections::HashSet;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tiff::decoder::{Decoder, DecodingResult};
use tiff::tags::Tag;

pub(crate) const DAMAGED: &str = "cannot be decoded as an image; it is damaged, or of an unsupported kind";
/// A directory has at least a count, one entry and the place of the next.
const SMALLEST_DIRECTORY: u64 = 18;

/// The pages of a file, all of one size.
#[derive(Debug)]
pub(crate) struct Pages {
    path: PathBuf,
    entries: Vec<Entry>,
    /// Height and width, after orientation.
    size: [usize; 2],
    meaning: Meaning,
}

/// A page: where its directory lies, and what that says.
#[derive(Debug)]
struct Entry {
    place: u64,
    bands: Bands,
    orientation: Orientation,
}

/// What the pages of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// A sample each.
    Samples,
    /// The slices of one sample.
    Depth,
    /// The channels of one sample.
    Channels,
}

impl Meaning {
    /// Obeys `--axes`: its D, N or C is what pages of so many channels are.
    fn of(axes: Option<&Axes>, pages: usize, channels: usize) -> Result<Self> {
        let Some(axes) = axes else { return Ok(Meaning::Samples) };
        let has = |letter| axes.place(letter).is_some();
        match () {
            () if has('D') => Ok(Meaning::Depth),
            () if has('N') || pages == 1 => Ok(Meaning::Samples),
            () if has('C') && channels == 1 => Ok(Meaning::Channels),
            () if has('C') => bail!(
                "{pages} pages of {channels} channels each, but --axes {axes} has no letter for the pages beside C; \
                 expected N (samples) or D (slices of a volume) as well, e.g. --axes NCHW or CDHW"
            ),
            () => bail!(
                "{pages} pages, but --axes {axes} has no letter for them; expected N (samples), D (slices of a volume) or \
                 C (channels) as well, e.g. --axes NHW, DHW or CHW"
            ),
        }
    }
}

/// True if the file holds a TIFF, whatever its name says.
pub(crate) fn is_tiff(path: &Path) -> Result<bool> {
    let mut start = Vec::new();
    file::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(starts(&start))
}

/// True if a file that starts so is a TIFF.
pub(crate) fn starts(start: &[u8]) -> bool {
    matches!(start.get(..4), Some(b"II*\0" | b"MM\0*" | b"II+\0" | b"MM\0+"))
}

impl Pages {
    /// Reads the directory of every page, and nothing else. Each is a sample.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut file = file::open(path)?;
        let len = file.metadata()?.len();
        let layout = Layout::read(&mut file)?;
        layout.check(&mut file, layout.first, len)?;
        let mut decoder = Decoder::new(boxed(BufReader::new(file::open(path)?))).context(DAMAGED)?;
        let (mut entries, mut sizes, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        let mut next = decoder.ifd_pointer();
        while let Some(place) = next {
            ensure!(seen.insert(place.0), "the pages form a circle; the file is damaged");
            ensure!(seen.len() as u64 <= len / SMALLEST_DIRECTORY, "more pages than the file can hold; it is damaged");
            layout.check(&mut file, place.0, len)?;
            let directory = decoder.read_directory(place).context(DAMAGED)?;
            next = directory.next();
            let mut tags = decoder.read_directory_tags(&directory);
            let kind = tags.find_tag_unsigned::<u32>(Tag::NewSubfileType).context(DAMAGED)?.unwrap_or(0);
            // Small previews and masks belong to another page.
            if kind & 0b101 != 0 && !(entries.is_empty() && next.is_none()) {
                continue;
            }
            let height: u32 = tags.get_tag_unsigned(Tag::ImageLength).context(DAMAGED)?;
            let width: u32 = tags.get_tag_unsigned(Tag::ImageWidth).context(DAMAGED)?;
            let code = tags.find_tag_unsigned::<u8>(Tag::Orientation).ok().flatten();
            let orientation = code.and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms);
            sizes.push(turned(orientation, height as usize, width as usize));
            entries.push(Entry { place: place.0, bands: Bands::read(&mut tags)?, orientation });
        }
        let size = *sizes.first().context("the file holds no pages; expected an image")?;
        if let Some(i) = sizes.iter().position(|other| *other != size) {
            let ([h0, w0], [h, w]) = (size, sizes[i]);
            bail!(
                "expected pages of one size, found {h0}x{w0} on page 0 and {h}x{w} on page {i}; save them as files of \
                 their own"
            );
        }
        Ok(Pages { path: path.to_owned(), entries, size, meaning: Meaning::Samples })
    }

    /// Takes the pages for what `axes` says they are.
    pub(crate) fn with_axes(self, axes: Option<&Axes>) -> Result<Self> {
        let channels = self.entries.iter().map(|entry| entry.bands.channels()).max().unwrap_or(1);
        Ok(Pages { meaning: Meaning::of(axes, self.entries.len(), channels)?, ..self })
    }

    /// The number of samples: that of the pages, unless they make one together.
    pub(crate) fn len(&self) -> usize {
        if self.meaning == Meaning::Samples { self.entries.len() } else { 1 }
    }

    /// How many spatial axes each sample has.
    pub(crate) fn rank(&self) -> usize {
        if self.meaning == Meaning::Depth { 3 } else { 2 }
    }

    /// What the directories tell of sample `index`.
    pub(crate) fn header(&self, index: usize) -> Result<Header> {
        let first = &self.entry(index)?.bands;
        let ([height, width], pages) = (self.size, self.entries.len());
        let (channels, depth) = match self.meaning {
            Meaning::Samples => (first.channels(), 1),
            Meaning::Depth => (first.channels(), pages),
            Meaning::Channels => (pages, 1),
        };
        let alpha = match self.meaning {
            Meaning::Samples => first.alpha,
            Meaning::Depth | Meaning::Channels => self.entries.iter().any(|entry| entry.bands.alpha),
        };
        Ok(Header { shape: Shape { channels, depth, height, width }, alpha })
    }

    /// Sample `index`: a page, or all of them.
    pub(crate) fn get<T: Real>(&self, index: usize, options: ReadOptions) -> Result<Sample<T>> {
        if self.meaning == Meaning::Samples {
            return self.page(index, options);
        }
        let shape = self.header(0)?.shape;
        options.ensure_room(&format!("{} pages of {}", self.entries.len(), shape), 0, shape.len() as u64)?;
        let first = Shape { depth: 1, channels: self.entry(0)?.bands.channels(), ..shape };
        let mut data = vec![T::zero(); shape.len()];
        let mut seen: Option<Vec<bool>> = None;
        for i in 0..self.entries.len() {
            let page: Sample<T> = self.page(i, options)?;
            if page.shape() != first {
                bail!("expected pages alike, found {first} on page 0 and {} on page {i}", page.shape());
            }
            // Of a volume, a page is a slice of every channel; of channels, it is one.
            let starts = |c: usize| (c * self.entries.len() + i) * first.pixels();
            if let Some(mask) = page.mask() {
                let seen = seen.get_or_insert_with(|| vec![true; shape.len()]);
                put(mask, seen, first.pixels(), starts);
            }
            put(page.data(), &mut data, first.pixels(), starts);
        }
        match seen {
            Some(seen) => Ok(Sample::masked(shape, data, seen)?),
            None => Ok(Sample::new(shape, data)?),
        }
    }

    fn entry(&self, index: usize) -> Result<&Entry> {
        self.entries.get(index).with_context(|| format!("page {index} of {}", self.entries.len()))
    }

    fn page<T: Real>(&self, index: usize, options: ReadOptions) -> Result<Sample<T>> {
        let Entry { place, bands, orientation } = self.entry(index)?;
        let page = || Page::open(&self.path, *place, bands).map(|page| boxed(BufReader::new(page)));
        let mut limits = tiff::decoder::Limits::default();
        limits.decoding_buffer_size = usize::try_from(options.limit.bytes()).unwrap_or(usize::MAX);
        limits.intermediate_buffer_size = limits.decoding_buffer_size;
        let mut decoder = Decoder::new(page()?).context(DAMAGED)?.with_limits(limits);
        let (width, height) = decoder.dimensions().context(DAMAGED)?;
        let pixels = u64::from(width) * u64::from(height);
        let kind = decoder.colortype().context(DAMAGED)?;
        let raw = pixels.saturating_mul(bands.samples() as u64 * u64::from(kind.bit_depth().div_ceil(8)));
        let numbers = pixels.saturating_mul(bands.channels() as u64);
        options.ensure_room(&format!("{height}x{width} pixels"), raw, numbers)?;
        if bands.is_jpeg {
            self.check_parts(&mut decoder)?;
        }
        let Some(kept) = bands.kept.as_ref().filter(|_| matches!(kind.bit_depth(), 8 | 16 | 32 | 64)) else {
            let len = std::fs::metadata(&self.path)?.len();
            return decode(ImageReader::with_format(page()?, ImageFormat::Tiff), len, options);
        };
        let mut numbers = DecodingResult::U8(Vec::new());
        let layout = decoder.read_image_to_buffer(&mut numbers).context(DAMAGED)?;
        let spread = Spread { kept, per_pixel: kind.num_samples().into(), planar: layout.planes > 1, pixels };
        let data = match numbers {
            DecodingResult::U8(v) => spread.values(&v, |v| f64::from(v) / 255.0),
            DecodingResult::U16(v) => spread.values(&v, |v| f64::from(v) / 65535.0),
            DecodingResult::U32(v) => spread.values(&v, |v| f64::from(v) / f64::from(u32::MAX)),
            DecodingResult::U64(v) => spread.values(&v, |v| v as f64 / u64::MAX as f64),
            DecodingResult::I8(v) => spread.values(&v, |v| f64::from(v) / 127.0),
            DecodingResult::I16(v) => spread.values(&v, |v| f64::from(v) / 32767.0),
            DecodingResult::I32(v) => spread.values(&v, |v| f64::from(v) / f64::from(i32::MAX)),
            DecodingResult::I64(v) => spread.values(&v, |v| v as f64 / i64::MAX as f64),
            DecodingResult::F16(v) => spread.values(&v, f64::from),
            DecodingResult::F32(v) => spread.values(&v, f64::from),
            DecodingResult::F64(v) => spread.values(&v, |v| v),
        }?;
        let shape = Shape { channels: kept.len(), depth: 1, height: height as usize, width: width as usize };
        oriented(mask::sample(shape, data, options.nan_is_missing)?, *orientation)
    }

    /// Checks that JPEG images within a page are no larger than the parts of it that they stand for: the decoder would make
    /// room for them.
    fn check_parts(&self, decoder: &mut Decoder<Box<dyn Bytes>>) -> Result<()> {
        let (width, height) = decoder.chunk_dimensions();
        let most = [height, width].map(|n| (n as usize).next_multiple_of(64));
        let mut file = file::open(&self.path)?;
        for tag in [Tag::StripOffsets, Tag::TileOffsets] {
            for place in decoder.find_tag_unsigned_vec::<u64>(tag).context(DAMAGED)?.unwrap_or_default() {
                file.seek(SeekFrom::Start(place))?;
                if let Some([h, w]) = jpeg::size(BufReader::new(&file))? {
                    ensure!(h <= most[0] && w <= most[1], "a part of {height}x{width} claims {h}x{w}; {DAMAGED}");
                }
            }
        }
        Ok(())
    }
}

/// Copies each plane of `pixels` values to the place where it starts.
fn put<V: Copy>(planes: &[V], to: &mut [V], pixels: usize, starts: impl Fn(usize) -> usize) {
    for (c, plane) in planes.chunks_exact(pixels).enumerate() {
        to[starts(c)..][..pixels].copy_from_slice(plane);
    }
}

/// How decoded numbers become planes of the channels that are kept.
struct Spread<'a> {
    kept: &'a [u16],
    per_pixel: usize,
    /// Whether they are planes already.
    planar: bool,
    pixels: u64,
}

impl Spread<'_> {
    fn values<P: Copy>(&self, raw: &[P], value: impl Fn(P) -> f64) -> Result<Vec<f64>> {
        let pixels = usize::try_from(self.pixels)?;
        let per_pixel = if self.planar { 1 } else { self.per_pixel };
        let missing = || format!("{} numbers for {pixels} pixels; {DAMAGED}", raw.len());
        let mut data = Vec::with_capacity(pixels.saturating_mul(self.kept.len()));
        for channel in self.kept.iter().map(|channel| usize::from(*channel)) {
            let first = if self.planar { channel.saturating_mul(pixels) } else { channel };
            let count = pixels.saturating_mul(per_pixel);
            ensure!(self.planar || channel < per_pixel, missing());
            let from = raw.get(first..).with_context(missing)?;
            data.extend(from.iter().step_by(per_pixel).take(count / per_pixel.max(1)).map(|v| value(*v)));
        }
        Ok(data)
    }
}
