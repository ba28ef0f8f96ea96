//! Image files: PNG, JPEG, TIFF, BMP, WebP and PNM, decoded one at a time into samples with values in [0, 1].
//!
//! The crate `image` decodes; this file keeps the precision (8-bit, 16-bit and float samples go straight to the scalar
//! type, floats as they are), separates the channels (gray: 1, colour: 3), drops alpha, and turns the picture as the
//! camera was held. The header tells how much memory the pixels will take, before they are decoded. [`super::tiff`] reads
//! TIFF, [`super::jpeg`] tells a JPEG that was cut short. Preprocessing is the library's business.

use super::format::{Header, ReadOptions};
use super::guard::guarded;
use super::tiff::{self, Pages};
use super::{jpeg, mask};
use anyhow::{Context, Result, ensure};
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use ocsc::{Real, Sample, Shape, file};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The part of a file that is read to see what it is; nearly always the header of a JPEG without a preview lies within.
const START: usize = 1 << 13;
/// The part of a JPEG file in which its header is looked for next.
const JPEG_START: u64 = 1 << 18;
const DAMAGED: &str = "cannot be decoded as an image; it is damaged, or of an unsupported kind";

/// The endings by which folders are searched.
pub(crate) const EXTENSIONS: &[&str] =
    &["png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp", "pbm", "pgm", "ppm", "pnm", "pam"];

/// True if the file's name ends like an image's.
pub(crate) fn is_image(path: &Path) -> bool {
    super::has_ending(path, EXTENSIONS)
}

/// A picture, of which the header is read when first asked for, and kept.
#[derive(Debug)]
pub(crate) struct Picture {
    path: PathBuf,
    header: OnceLock<Header>,
}

impl Picture {
    /// Reads nothing yet.
    pub(crate) fn new(path: &Path) -> Self {
        Picture { path: path.to_owned(), header: OnceLock::new() }
    }

    /// Returns the shape as it is seen, from the file's header.
    pub(crate) fn header(&self) -> Result<Header> {
        match self.header.get() {
            Some(header) => Ok(*header),
            None => {
                let header = header(&self.path)?;
                Ok(*self.header.get_or_init(|| header))
            }
        }
    }

    /// Decodes the file by what it holds, whatever its name says.
    ///
    /// Of the formats, only float TIFF can hold NaN.
    pub(crate) fn read<T: Real>(&self, options: ReadOptions) -> Result<Sample<T>> {
        let path = &self.path;
        let len = file::open(path)?.metadata()?.len();
        ensure!(len > 0, "the file is empty; expected an image");
        if tiff::is_tiff(path)? {
            return Pages::open(path)?.get(0, options);
        }
        let reader = reader(path)?;
        if reader.format() == Some(ImageFormat::Jpeg) {
            jpeg::ensure_whole(BufReader::new(file::open(path)?))?;
        }
        decode(reader, len, options)
    }
}

/// Bytes that an image is read from. All are of this one type, since decoders are compiled once for each.
pub(crate) trait Bytes: BufRead + Seek {}

impl<R: BufRead + Seek> Bytes for R {}

/// Returns such bytes.
pub(crate) fn boxed(bytes: impl Bytes + 'static) -> Box<dyn Bytes> {
    Box::new(bytes)
}

/// A reader of any image.
pub(crate) type Reader = ImageReader<Box<dyn Bytes>>;

/// A reader for what the file holds, or else for what its name says.
fn reader(path: &Path) -> Result<Reader> {
    guessed(path, file::open(path)?)
}

/// The same for a file that was opened.
fn guessed(path: &Path, file: File) -> Result<Reader> {
    let mut reader = ImageReader::new(boxed(BufReader::new(file)));
    if let Ok(format) = ImageFormat::from_path(path) {
        reader.set_format(format);
    }
    Ok(reader.with_guessed_format()?)
}

/// What a picture's file tells besides its size.
pub(crate) struct Kind {
    pub(crate) format: ImageFormat,
    pub(crate) color: ColorType,
    /// Its colour profile (ICC).
    pub(crate) profile: Option<Vec<u8>>,
    /// Whether it has notes of the camera (EXIF).
    pub(crate) has_exif: bool,
}

/// The format of a picture, how its pixels are stored, and what is beside them, from its header.
pub(crate) fn kind(path: &Path) -> Result<Kind> {
    guarded(|| {
        let reader = reader(path)?;
        let format = reader.format().context("expected an image, found a file of no known format")?;
        let mut decoder = reader.into_decoder().context(DAMAGED)?;
        // A picture is not lost with what is beside it.
        let profile = decoder.icc_profile().ok().flatten();
        let has_exif = decoder.exif_metadata().is_ok_and(|exif| exif.is_some());
        Ok(Kind { format, color: decoder.color_type(), profile, has_exif })
    })
}

/// What the header of a file tells.
fn header(path: &Path) -> Result<Header> {
    let mut file = file::open(path)?;
    let mut start = Vec::with_capacity(START);
    file.by_ref().take(START as u64).read_to_end(&mut start)?;
    if tiff::starts(&start) {
        return Pages::open(path)?.header(0);
    }
    if image::guess_format(&start).is_ok_and(|format| format == ImageFormat::Jpeg) {
        if let Some(Ok(header)) = jpeg::without_tables(&start).map(jpeg_header) {
            return Ok(header);
        }
        // The decoder reads all that it is given; nearly always the header lies within the first part.
        file.by_ref().take(JPEG_START - START as u64).read_to_end(&mut start)?;
        if let Some(Ok(header)) = jpeg::without_tables(&start).map(jpeg_header) {
            return Ok(header);
        }
        if let Ok(header) = jpeg_header(start) {
            return Ok(header);
        }
    }
    file.rewind()?;
    decoded_header(guessed(path, file)?).context("cannot be decoded as an image; it is damaged")
}

/// What the header of a JPEG tells, from bytes that hold it.
fn jpeg_header(bytes: Vec<u8>) -> Result<Header> {
    decoded_header(ImageReader::with_format(boxed(Cursor::new(bytes)), ImageFormat::Jpeg))
}

/// What the decoder makes of a header, turned as the camera was.
fn decoded_header(reader: Reader) -> Result<Header> {
    let mut decoder = reader.into_decoder()?;
    let ((width, height), kind) = (decoder.dimensions(), decoder.color_type());
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let [height, width] = turned(orientation, height as usize, width as usize);
    Ok(Header { shape: Shape { channels: channels(kind), depth: 1, height, width }, alpha: kind.has_alpha() })
}

/// 1 for gray, 3 for colour.
fn channels(kind: ColorType) -> usize {
    if kind.has_color() { 3 } else { 1 }
}

/// Decodes an image from a file of `len` bytes, if the memory for it is there, and turns it as the camera was.
pub(crate) fn decode<T: Real>(mut reader: Reader, len: u64, options: ReadOptions) -> Result<Sample<T>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(options.limit.bytes());
    reader.limits(limits);
    let mut decoder = reader.into_decoder().context(DAMAGED)?;
    let ((width, height), kind) = (decoder.dimensions(), decoder.color_type());
    let numbers = u64::from(width).saturating_mul(height.into()).saturating_mul(channels(kind) as u64);
    // JPEG: the file, and coefficients of two bytes beside the pixels.
    options.ensure_room(
        &format!("{height}x{width} pixels"),
        3 * decoder.total_bytes().min(u64::MAX / 4) + len,
        numbers,
    )?;
    // A photograph is not lost with a note about it.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let decoded = DynamicImage::from_decoder(decoder).context(DAMAGED)?;
    oriented(sample(decoded, options.nan_is_missing)?, orientation)
}

/// Height and width after an orientation is applied.
pub(crate) fn turned(orientation: Orientation, height: usize, width: usize) -> [usize; 2] {
    match orientation {
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
            [width, height]
        }
        _ => [height, width],
    }
}

/// The image as it was meant to be seen.
pub(crate) fn oriented<T: Real>(sample: Sample<T>, orientation: Orientation) -> Result<Sample<T>> {
    if orientation == Orientation::NoTransforms {
        return Ok(sample);
    }
    let Shape { height: h, width: w, .. } = sample.shape();
    // The row and column that the pixel at row y, column x of the result comes from.
    let origin = |y: usize, x: usize| match orientation {
        Orientation::NoTransforms => (y, x),
        Orientation::FlipHorizontal => (y, w - 1 - x),
        Orientation::Rotate180 => (h - 1 - y, w - 1 - x),
        Orientation::FlipVertical => (h - 1 - y, x),
        Orientation::Rotate90FlipH => (x, y),
        Orientation::Rotate90 => (h - 1 - x, y),
        Orientation::Rotate270FlipH => (h - 1 - x, w - 1 - y),
        Orientation::Rotate270 => (x, w - 1 - y),
    };
    let [height, width] = turned(orientation, h, w);
    let (shape, data, mask) = sample.into_parts();
    let shape = Shape { height, width, ..shape };
    let data = moved(&data, shape, origin);
    match mask {
        Some(mask) => Ok(Sample::masked(shape, data, moved(&mask, shape, origin))?),
        None => Ok(Sample::new(shape, data)?),
    }
}

/// Planes of this shape, whose pixels come from the rows and columns that `origin` names.
fn moved<V: Copy>(values: &[V], shape: Shape, origin: impl Fn(usize, usize) -> (usize, usize)) -> Vec<V> {
    let mut moved = Vec::with_capacity(values.len());
    // A quarter turn exchanges height and width, so a row of the source is found from a corner.
    let width = origin(0, 0).1.max(origin(shape.height - 1, shape.width - 1).1) + 1;
    for plane in values.chunks_exact(shape.height * shape.width) {
        for y in 0..shape.height {
            moved.extend((0..shape.width).map(|x| origin(y, x)).map(|(row, column)| plane[row * width + column]));
        }
    }
    moved
}

/// Separates the channels of a decoded image.
fn sample<T: Real>(decoded: DynamicImage, nan_is_missing: bool) -> Result<Sample<T>> {
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let byte = |v: u8| f64::from(v) / 255.0;
    let word = |v: u16| f64::from(v) / 65535.0;
    let (channels, data): (usize, Vec<T>) = match decoded {
        DynamicImage::ImageLuma8(i) => (1, planes(i.into_raw(), 1, 1, byte)),
        DynamicImage::ImageLumaA8(i) => (1, planes(i.into_raw(), 2, 1, byte)),
        DynamicImage::ImageRgb8(i) => (3, planes(i.into_raw(), 3, 3, byte)),
        DynamicImage::ImageRgba8(i) => (3, planes(i.into_raw(), 4, 3, byte)),
        DynamicImage::ImageLuma16(i) => (1, planes(i.into_raw(), 1, 1, word)),
        DynamicImage::ImageLumaA16(i) => (1, planes(i.into_raw(), 2, 1, word)),
        DynamicImage::ImageRgb16(i) => (3, planes(i.into_raw(), 3, 3, word)),
        DynamicImage::ImageRgba16(i) => (3, planes(i.into_raw(), 4, 3, word)),
        DynamicImage::ImageRgb32F(i) => (3, planes(i.into_raw(), 3, 3, f64::from)),
        DynamicImage::ImageRgba32F(i) => (3, planes(i.into_raw(), 4, 3, f64::from)),
        other => (3, planes(other.into_rgb32f().into_raw(), 3, 3, f64::from)),
    };
    mask::sample(Shape { channels, depth: 1, height, width }, data, nan_is_missing)
}

/// Pixels that are converted at a time.
const CHUNK: usize = 1 << 18;

/// From (pixel, sample) to (channel, pixel), for the first `channels` of `per_pixel` samples. Of a large image, the pixels that are
/// converted are given back to the system, so that both arrays never take memory at the same time.
pub(crate) fn planes<P: Copy, T: Real>(
    mut raw: Vec<P>,
    per_pixel: usize,
    channels: usize,
    value: impl Fn(P) -> f64,
) -> Vec<T> {
    let n = raw.len() / per_pixel;
    // Zeros take no memory before they are written over.
    let mut data = vec![T::zero(); n * channels];
    let mut end = n;
    while end > 0 {
        let first = end.saturating_sub(CHUNK);
        for c in 0..channels {
            let pixels = raw[first * per_pixel..].chunks_exact(per_pixel);
            data[c * n + first..c * n + end].iter_mut().zip(pixels).for_each(|(v, pixel)| *v = T::of(value(pixel[c])));
        }
        raw.truncate(first * per_pixel);
        raw.shrink_to_fit();
        end = first;
    }
    data
}
