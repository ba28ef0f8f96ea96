//! TIFF files of one page and of many.

use super::allocations::peak_of;
use super::*;
use ::image::{DynamicImage, GrayImage, ImageBuffer, ImageFormat, Luma};
use ::tiff::encoder::{Compression, DeflateLevel, TiffEncoder, TiffValue, colortype as c};
use ::tiff::tags::Tag;
use std::fs::File;

/// Writes pages of 3x2 (or `width` x 2) pixels of one kind, deflated.
fn stack_of<C: c::ColorType>(path: &Path, big: bool, width: u32, pages: &[Vec<C::Inner>])
where
    [C::Inner]: TiffValue,
{
    let pack = Compression::Deflate(DeflateLevel::Balanced);
    let file = File::create(path).unwrap();
    if big {
        let mut encoder = TiffEncoder::new_big(file).unwrap().with_compression(pack);
        pages.iter().for_each(|page| encoder.write_image::<C>(width, 2, page).unwrap());
    } else {
        let mut encoder = TiffEncoder::new(file).unwrap().with_compression(pack);
        pages.iter().for_each(|page| encoder.write_image::<C>(width, 2, page).unwrap());
    }
}

fn one<C: c::ColorType>(page: Vec<C::Inner>) -> Vec<f64>
where
    [C::Inner]: TiffValue,
{
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    stack_of::<C>(&path, false, 1, &[page]);
    let source = open(&path, "").unwrap();
    assert_eq!((source.len(), source.size(0).unwrap()), (1, [1, 2, 1]));
    get(&source, 0).into_data()
}

#[test]
fn every_precision_is_kept() {
    let f = f64::from(0.1f32);
    assert_eq!(one::<c::Gray8>(vec![1, 254]), [1.0 / 255.0, 254.0 / 255.0]);
    assert_eq!(one::<c::Gray16>(vec![1, 65534]), [1.0 / 65535.0, 65534.0 / 65535.0]);
    assert_eq!(one::<c::Gray32>(vec![1, u32::MAX]), [1.0 / f64::from(u32::MAX), 1.0]);
    assert_eq!(one::<c::GrayI16>(vec![-32767, 1]), [-1.0, 1.0 / 32767.0]);
    assert_eq!(one::<c::Gray32Float>(vec![0.1, -7.5]), [f, -7.5]);
    assert_eq!(one::<c::Gray64Float>(vec![0.1, -7.5]), [0.1, -7.5]);
    // Pixel after pixel in the file, channel after channel here.
    assert_eq!(one::<c::RGB8>(vec![1, 2, 3, 4, 5, 6]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0].map(|v| v / 255.0));
    assert_eq!(one::<c::RGB16>(vec![1, 2, 3, 4, 5, 6]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0].map(|v| v / 65535.0));
    assert_eq!(one::<c::RGB32Float>(vec![0.1, 2.0, 3.0, 4.0, 5.0, 6.0]), [f, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(one::<c::RGB64Float>(vec![0.1, 2.0, 3.0, 4.0, 5.0, 6.0]), [0.1, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(one::<c::RGBA8>(vec![1, 2, 3, 0, 4, 5, 6, 9]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0].map(|v| v / 255.0));
    assert_eq!(one::<c::RGBA32Float>(vec![0.1, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0, 9.0]), [f, 4.0, 2.0, 5.0, 3.0, 6.0]);
}

#[test]
fn pages_are_samples_or_one_volume() {
    let folder = tempfile::tempdir().unwrap();
    for big in [false, true] {
        let path = folder.path().join("stack.tif");
        let pages: Vec<Vec<u16>> = (0..5).map(|p| (0..6).map(|i| 100 * p + i).collect()).collect();
        stack_of::<c::Gray16>(&path, big, 3, &pages);
        let source = open(&path, "").unwrap();
        assert_eq!((source.len(), source.rank(), source.is_images()), (5, 2, Some(true)));
        assert!(source.name(3).ends_with("stack.tif[3]"));
        assert_eq!(source.file_stem(3), "stack-0003");
        for (p, page) in pages.iter().enumerate() {
            assert_eq!(source.size(p).unwrap(), [1, 2, 3]);
            let expected: Vec<f64> = page.iter().map(|v| f64::from(*v) / 65535.0).collect();
            assert_eq!((get(&source, p).shape(), get(&source, p).data()), (shape(1, 1, 2, 3), &expected[..]));
        }
        let volume = open(&path, "DHW").unwrap();
        assert_eq!((volume.len(), volume.rank(), volume.size(0).unwrap()), (1, 3, [5, 2, 3]));
        let expected: Vec<f64> = pages.concat().iter().map(|v| f64::from(*v) / 65535.0).collect();
        assert_eq!((get(&volume, 0).shape(), get(&volume, 0).data()), (shape(1, 5, 2, 3), &expected[..]));
    }
    let path = folder.path().join("colour.tif");
    stack_of::<c::RGB8>(&path, false, 1, &[vec![1, 2, 3, 4, 5, 6], vec![11, 12, 13, 14, 15, 16]]);
    let volume = get(&open(&path, "DHW").unwrap(), 0);
    assert_eq!(volume.shape(), shape(3, 2, 2, 1));
    let expected = [1.0, 4.0, 11.0, 14.0, 2.0, 5.0, 12.0, 15.0, 3.0, 6.0, 13.0, 16.0].map(|v| v / 255.0);
    assert_eq!(volume.data(), expected);
}

#[test]
fn a_page_is_read_without_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.tif");
    let noise =
        |seed: u32| (0..2000u32).map(|i| (i.wrapping_mul(2_654_435_761 + seed) >> 13) as u8).collect::<Vec<_>>();
    stack_of::<c::Gray8>(&path, false, 1000, &[noise(1), noise(2), noise(3)]);
    let mut bytes = std::fs::read(&path).unwrap();
    // The first page's packed pixels follow the header.
    bytes[8..200].fill(0xff);
    let source = open(&write(folder.path(), "damaged.tif", &bytes), "").unwrap();
    assert_eq!(source.len(), 3);
    let message = Samples::<f64>::get(&source, 0).unwrap_err().to_string();
    assert_contains(&message, &["damaged.tif[0]", "cannot be decoded"]);
    let expected: Vec<f64> = noise(3).iter().map(|v| f64::from(*v) / 255.0).collect();
    assert_eq!(get(&source, 2).data(), expected);
}

#[test]
fn previews_are_passed_over_and_other_sizes_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write_two = |name: &str, kind: u32| {
        let path = folder.path().join(name);
        let mut encoder = TiffEncoder::new(File::create(&path).unwrap()).unwrap();
        encoder.write_image::<c::Gray8>(3, 2, &[1, 2, 3, 4, 5, 6]).unwrap();
        let mut image = encoder.new_image::<c::Gray8>(2, 1).unwrap();
        image.encoder().write_tag(Tag::NewSubfileType, kind).unwrap();
        image.write_data(&[1, 2]).unwrap();
        path
    };
    assert_eq!(open(&write_two("preview.tif", 1), "").unwrap().len(), 1);
    assert_contains(&refusal(&write_two("mixed.tif", 0), ""), &["mixed.tif", "one size", "2x3", "1x2 on page 1"]);
}

#[test]
fn tiffs_are_turned_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turned.tif");
    let mut encoder = TiffEncoder::new(File::create(&path).unwrap()).unwrap();
    let mut image = encoder.new_image::<c::Gray32Float>(3, 2).unwrap();
    image.encoder().write_tag(Tag::Orientation, 6u16).unwrap();
    image.write_data(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    drop(encoder);
    let source = open(&path, "").unwrap();
    assert_eq!(source.size(0).unwrap(), [1, 3, 2]);
    // A quarter clockwise.
    assert_eq!(get(&source, 0).data(), [4.0, 1.0, 5.0, 2.0, 6.0, 3.0]);
    // By its content, where the name says otherwise.
    let renamed = folder.path().join("turned.png");
    std::fs::rename(&path, &renamed).unwrap();
    let renamed = open(&renamed, "").unwrap();
    assert_eq!((renamed.size(0).unwrap(), get(&renamed, 0).data()), ([1, 3, 2], &[4.0, 1.0, 5.0, 2.0, 6.0, 3.0][..]));
}

/// A page of 16x16 gray pixels as one strip: a JPEG of the same size. Returns where the JPEG lies as well.
fn jpeg_in_tiff() -> (Vec<u8>, usize) {
    let gray: GrayImage = ImageBuffer::from_fn(16, 16, |x, y| Luma([(8 * x + 7 * y) as u8]));
    let mut jpeg = std::io::Cursor::new(Vec::new());
    DynamicImage::from(gray).write_to(&mut jpeg, ImageFormat::Jpeg).unwrap();
    let jpeg = jpeg.into_inner();
    // Width, height, bits, compression (7 is JPEG), black is zero, place, samples, rows and bytes of the strip.
    let at = 8 + 2 + 9 * 12 + 4;
    let (at_u32, len) = (at as u32, jpeg.len() as u32);
    let entries = [(256, 16), (257, 16), (258, 8), (259, 7), (262, 1), (273, at_u32), (277, 1), (278, 16), (279, len)];
    let mut bytes = b"II*\0\x08\0\0\0".to_vec();
    bytes.extend((entries.len() as u16).to_le_bytes());
    for (tag, value) in entries {
        // One value of 32 bits.
        bytes.extend([tag, 4_u16].iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend([1, value].iter().flat_map(|n: &u32| n.to_le_bytes()));
    }
    bytes.extend([0; 4]);
    assert_eq!(bytes.len(), at);
    bytes.extend(jpeg);
    (bytes, at)
}

/// The decoder makes room for what a strip's own header claims, whatever the page says.
#[test]
fn a_strip_that_claims_more_than_its_page_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, at) = jpeg_in_tiff();
    let whole = get(&open(&write(folder.path(), "whole.tif", &bytes), "").unwrap(), 0);
    assert_eq!(whole.shape(), shape(1, 1, 16, 16));
    // As saved, but for what JPEG loses.
    let saved = |i: usize| (8 * (i % 16) + 7 * (i / 16)) as f64 / 255.0;
    assert!(whole.data().iter().enumerate().all(|(i, v)| (v - saved(i)).abs() < 0.05));

    // Of a frame's header, height and width follow the marker, the length and the precision.
    let frame = at + bytes[at..].windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    let claim = |height: u16, width: u16| {
        let mut bytes = bytes.clone();
        bytes[frame + 5..][..2].copy_from_slice(&height.to_be_bytes());
        bytes[frame + 7..][..2].copy_from_slice(&width.to_be_bytes());
        write(folder.path(), "claims.tif", &bytes)
    };
    for (height, width) in [(16_000, 16_000), (65, 16), (16, 65)] {
        let path = claim(height, width);
        let (message, peak) = peak_of(|| refusal(&path, ""));
        assert_contains(&message, &["claims.tif", &format!("a part of 16x16 claims {height}x{width}"), "damaged"]);
        assert!(peak < 1 << 20, "{peak} bytes for {height}x{width}");
    }
    // Parts at the edge of a page may be padded.
    assert!(!read_all(&claim(64, 64), "").is_err_and(|e| e.to_string().contains("claims")));
}
