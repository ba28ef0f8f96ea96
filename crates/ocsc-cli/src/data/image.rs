//! Image files: PNG, JPEG, TIFF, BMP, WebP and PNM, decoded one at a time into samples with values in [0, 1].
//!
//! The crate `image` decodes; this file keeps the precision (8-bit, 16-bit and float samples go straight to the scalar
//! type, floats as they are), separates the channels (gray: 1, colour: 3), drops alpha, and turns the picture as the
//! camera was held. [`super::pages`] reads TIFF. Preprocessing is the library's business.

use super::mask;
use super::pages::{self, Pages};
use anyhow::{Context, Result, ensure};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use ocsc::{Real, Sample, Shape};
use std::fs::File;
use std::io::{BufRead, Cursor, Read, Seek};
use std::path::Path;

/// The part of a JPEG file in which its header is looked for first.
const JPEG_START: u64 = 1 << 18;

/// The endings by which folders are searched.
pub(crate) const EXTENSIONS: &[&str] =
    &["png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp", "pbm", "pgm", "ppm", "pnm", "pam"];

/// True if the file's name ends like an image's.
pub(crate) fn is_image(path: &Path) -> bool {
    super::has_ending(path, EXTENSIONS)
}

/// Decodes the file by what it holds, whatever its name says.
///
/// Of the formats, only float TIFF can hold NaN.
pub(crate) fn read<T: Real>(path: &Path, nan_is_missing: bool) -> Result<Sample<T>> {
    ensure!(std::fs::metadata(path)?.len() > 0, "the file is empty; expected an image");
    if pages::is_tiff(path)? {
        return Pages::open(path, false)?.get(0, nan_is_missing);
    }
    decode(ImageReader::open(path)?.with_guessed_format()?, allowance(path)?, nan_is_missing)
}

/// Depth (1), height and width as they are seen, from the file's header.
pub(crate) fn size(path: &Path) -> Result<[usize; 3]> {
    if pages::is_tiff(path)? {
        return Ok(Pages::open(path, false)?.size());
    }
    let whole = ImageReader::open(path)?.with_guessed_format()?;
    if whole.format() == Some(ImageFormat::Jpeg) {
        // The decoder reads all that it is given; nearly always the header lies within the first part.
        let mut start = Vec::new();
        File::open(path)?.take(JPEG_START).read_to_end(&mut start)?;
        if let Ok(size) = header(ImageReader::with_format(Cursor::new(start), ImageFormat::Jpeg)) {
            return Ok(size);
        }
    }
    header(whole).context("cannot be decoded as an image; it is damaged")
}

/// The height and width that a header tells, turned as the camera was.
fn header(reader: ImageReader<impl BufRead + Seek>) -> Result<[usize; 3]> {
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let [height, width] = turned(orientation, height as usize, width as usize);
    Ok([1, height, width])
}

/// The bytes that the pixels of a file may take: a small file may claim billions of them, but true photographs expand by
/// a factor of 30 at the most.
pub(crate) fn allowance(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path)?.len().saturating_mul(32).max(512 << 20))
}

/// Decodes an image whose pixels take no more than so many bytes, and turns it as the camera was.
pub(crate) fn decode<T: Real>(
    mut reader: ImageReader<impl BufRead + Seek>,
    most: u64,
    nan_is_missing: bool,
) -> Result<Sample<T>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(most);
    reader.limits(limits);
    let failed = "cannot be decoded as an image; it is damaged, or of an unsupported kind";
    let mut decoder = reader.into_decoder().context(failed)?;
    let bytes = decoder.total_bytes();
    ensure!(bytes <= most, "{failed}: it claims {bytes} bytes of pixels, more than its length allows");
    // A photograph is not lost with a note about it.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let decoded = DynamicImage::from_decoder(decoder).context(failed)?;
    oriented(sample(decoded, nan_is_missing)?, orientation)
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
    let places: Vec<usize> =
        (0..height * width).map(|i| origin(i / width, i % width)).map(|(y, x)| y * w + x).collect();
    let (shape, data, mask) = sample.into_parts();
    let shape = Shape { height, width, ..shape };
    let data = moved(&data, &places);
    match mask {
        Some(mask) => Ok(Sample::masked(shape, data, moved(&mask, &places))?),
        None => Ok(Sample::new(shape, data)?),
    }
}

/// Planes whose pixels come from these places.
fn moved<V: Copy>(values: &[V], places: &[usize]) -> Vec<V> {
    values.chunks_exact(places.len()).flat_map(|plane| places.iter().map(|place| plane[*place])).collect()
}

/// Separates the channels of a decoded image.
fn sample<T: Real>(decoded: DynamicImage, nan_is_missing: bool) -> Result<Sample<T>> {
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let byte = |v: u8| f64::from(v) / 255.0;
    let word = |v: u16| f64::from(v) / 65535.0;
    let (channels, data) = match decoded {
        DynamicImage::ImageLuma8(i) => (1, planes(&i, 1, 1, byte)),
        DynamicImage::ImageLumaA8(i) => (1, planes(&i, 2, 1, byte)),
        DynamicImage::ImageRgb8(i) => (3, planes(&i, 3, 3, byte)),
        DynamicImage::ImageRgba8(i) => (3, planes(&i, 4, 3, byte)),
        DynamicImage::ImageLuma16(i) => (1, planes(&i, 1, 1, word)),
        DynamicImage::ImageLumaA16(i) => (1, planes(&i, 2, 1, word)),
        DynamicImage::ImageRgb16(i) => (3, planes(&i, 3, 3, word)),
        DynamicImage::ImageRgba16(i) => (3, planes(&i, 4, 3, word)),
        DynamicImage::ImageRgb32F(i) => (3, planes(&i, 3, 3, f64::from)),
        DynamicImage::ImageRgba32F(i) => (3, planes(&i, 4, 3, f64::from)),
        other => (3, planes(&other.into_rgb32f(), 3, 3, f64::from)),
    };
    mask::sample(Shape { channels, depth: 1, height, width }, data, nan_is_missing)
}

/// From (pixel, sample) to (channel, pixel), for the first `channels` of `per_pixel` samples.
pub(crate) fn planes<P: Copy>(raw: &[P], per_pixel: usize, channels: usize, value: impl Fn(P) -> f64) -> Vec<f64> {
    let mut data = Vec::with_capacity(raw.len() / per_pixel * channels);
    for c in 0..channels {
        data.extend(raw.chunks_exact(per_pixel).map(|pixel| value(pixel[c])));
    }
    data
}
