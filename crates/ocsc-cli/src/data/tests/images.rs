//! Image files: every format, every precision.

use super::*;
use crate::data::write::write_png;
use ::image::{DynamicImage, GenericImageView, ImageBuffer, Luma, LumaA, Rgb, Rgba};

fn sample_of(image: impl Into<DynamicImage>, name: &str) -> Sample<f64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    image.into().save(&path).unwrap();
    get(&open(&path, "").unwrap(), 0)
}

fn gray8() -> DynamicImage {
    ImageBuffer::from_fn(5, 4, |x, y| Luma([(40 * x + 10 * y) as u8])).into()
}

#[test]
fn gray_has_one_channel_in_every_format() {
    for name in ["a.png", "a.tif", "a.TIFF", "a.pgm", "a.pnm", "a.pam"] {
        let sample = sample_of(gray8(), name);
        assert_eq!(sample.shape(), shape(1, 1, 4, 5), "{name}");
        for (i, v) in sample.data().iter().enumerate() {
            let expected = f64::from(gray8().get_pixel(i as u32 % 5, i as u32 / 5).0[0]) / 255.0;
            assert_eq!(*v, expected, "{name}");
        }
    }
    let jpeg = sample_of(gray8(), "a.jpg");
    assert_eq!(jpeg.shape(), shape(1, 1, 4, 5));
}

#[test]
fn colour_has_three_channels_and_no_alpha() {
    let rgb = ImageBuffer::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8, 200]));
    for name in ["a.png", "a.bmp", "a.tif", "a.webp", "a.ppm"] {
        let sample = sample_of(rgb.clone(), name);
        assert_eq!(sample.shape(), shape(3, 1, 2, 3), "{name}");
        assert_eq!(sample.data()[1], 1.0 / 255.0, "{name}");
        assert_eq!(sample.data()[12..], [200.0 / 255.0; 6], "{name}");
    }
    let rgba: ImageBuffer<Rgba<u8>, _> = ImageBuffer::from_pixel(3, 2, Rgba([51, 0, 0, 7]));
    assert_eq!(sample_of(rgba, "a.png").data()[..12], [[0.2; 6], [0.0; 6]].concat());
    let gray_alpha: ImageBuffer<LumaA<u8>, _> = ImageBuffer::from_pixel(3, 2, LumaA([51, 7]));
    assert_eq!(sample_of(gray_alpha, "a.png").data(), [0.2; 6]);
}

#[test]
fn precision_is_kept() {
    let deep: ImageBuffer<Luma<u16>, _> = ImageBuffer::from_fn(2, 1, |x, _| Luma([x as u16 * 257 + 1]));
    assert_eq!(sample_of(deep.clone(), "a.png").data(), [1.0 / 65535.0, 258.0 / 65535.0]);
    assert_eq!(sample_of(deep, "a.tif").data(), [1.0 / 65535.0, 258.0 / 65535.0]);
    let rgb16: ImageBuffer<Rgb<u16>, _> = ImageBuffer::from_pixel(1, 1, Rgb([1, 2, 65535]));
    assert_eq!(sample_of(rgb16, "a.png").data(), [1.0 / 65535.0, 2.0 / 65535.0, 1.0]);
    let float: ImageBuffer<Rgb<f32>, _> = ImageBuffer::from_pixel(1, 1, Rgb([-0.5, 0.1, 7.0]));
    assert_eq!(sample_of(float, "a.tif").data(), [-0.5, f64::from(0.1f32), 7.0]);
}

/// What a camera writes to say how it was held: a big-endian directory of one entry.
fn exif(orientation: u8) -> Vec<u8> {
    let mut bytes = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
    bytes.extend([0, orientation, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn pictures_are_turned_as_the_camera_was_held() {
    use ::image::{ImageEncoder, codecs::jpeg::JpegEncoder, codecs::png::PngEncoder, metadata::Orientation};
    let folder = tempfile::tempdir().unwrap();
    let image: ImageBuffer<Rgb<u8>, Vec<u8>> = ImageBuffer::from_fn(24, 16, |x, y| Rgb([9 * x as u8, 9 * y as u8, 77]));
    for code in 1..=8 {
        let mut turned = DynamicImage::from(image.clone());
        turned.apply_orientation(Orientation::from_exif(code).unwrap());
        let (mut png, mut jpeg) = (Vec::new(), Vec::new());
        let mut encoder = PngEncoder::new(&mut png);
        encoder.set_exif_metadata(exif(code)).unwrap();
        encoder.write_image(&image, 24, 16, ::image::ExtendedColorType::Rgb8).unwrap();
        let mut encoder = JpegEncoder::new_with_quality(&mut jpeg, 100);
        encoder.set_exif_metadata(exif(code)).unwrap();
        encoder.write_image(&image, 24, 16, ::image::ExtendedColorType::Rgb8).unwrap();
        let (height, width) = (turned.height() as usize, turned.width() as usize);
        let expected = sample_of(turned, "a.png");
        let png = open(&write(folder.path(), "a.png", &png), "").unwrap();
        assert_eq!(get(&png, 0), expected, "{code}");
        let jpeg = open(&write(folder.path(), "a.jpg", &jpeg), "").unwrap();
        assert!(get(&jpeg, 0).data().iter().zip(expected.data()).all(|(a, b)| (a - b).abs() < 0.03), "{code}");
        for source in [png, jpeg] {
            assert_eq!(source.size(0).unwrap(), [1, height, width], "{code}");
        }
    }
}

#[test]
fn sizes_come_from_headers_even_long_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jpg");
    gray8().save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // Six comments of 64 kB push the size past the part that is looked at first.
    let comment = [&[0xff, 0xfe, 0xff, 0xff][..], &[b'x'; 65533]].concat();
    let long = write(folder.path(), "long.jpg", &[&bytes[..2], &comment.repeat(6), &bytes[2..]].concat());
    assert_eq!(open(&long, "").unwrap().size(0).unwrap(), [1, 4, 5]);
    // The pixels are not looked at.
    let cut = write(folder.path(), "cut.jpg", &bytes[..bytes.len() - 3]);
    assert_eq!(open(&cut, "").unwrap().size(0).unwrap(), [1, 4, 5]);
    let void = open(&write(folder.path(), "void.jpg", &bytes[..30]), "").unwrap();
    assert_contains(&format!("{:#}", void.size(0).unwrap_err()), &["void.jpg", "damaged"]);
}

#[test]
fn content_counts_more_than_the_name() {
    let folder = tempfile::tempdir().unwrap();
    gray8().save(folder.path().join("a.png")).unwrap();
    std::fs::rename(folder.path().join("a.png"), folder.path().join("a.jpg")).unwrap();
    assert_eq!(read_all(&folder.path().join("a.jpg"), "").unwrap()[0].shape(), shape(1, 1, 4, 5));
}

#[test]
fn damaged_images_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = write(folder.path(), "text.png", b"this is no picture");
    assert_contains(&refusal(&text, ""), &["text.png", "cannot be decoded"]);
    assert_contains(&refusal(&write(folder.path(), "void.jpg", b""), ""), &["void.jpg", "empty"]);
    gray8().save(folder.path().join("a.png")).unwrap();
    let whole = std::fs::read(folder.path().join("a.png")).unwrap();
    let half = write(folder.path(), "half.png", &whole[..whole.len() / 2]);
    assert_contains(&refusal(&half, ""), &["half.png", "damaged"]);
    // 65,000 x 65,000 pixels of 6 bytes in a file of some sixty.
    let huge = write(folder.path(), "huge.ppm", b"P6 65000 65000 65535\n0123456789");
    assert_contains(&refusal(&huge, ""), &["huge.ppm"]);
}

#[test]
fn png_maps_lo_to_black_and_hi_to_white() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.png");
    let sample = Sample::new(shape(1, 1, 1, 5), vec![-9.0f32, -1.0, 0.0, 1.0, 9.0]).unwrap();
    write_png(&path, &sample, -1.0, 1.0).unwrap();
    let levels: Vec<f64> = get(&open(&path, "").unwrap(), 0).data().iter().map(|v| v * 255.0).collect();
    assert_eq!(levels, [0.0, 0.0, 128.0, 255.0, 255.0]);
    let colour = Sample::new(shape(3, 1, 1, 2), vec![0.0, 1.0, 0.2, 0.0, 0.0, 0.6]).unwrap();
    write_png(&path, &colour, 0.0, 1.0).unwrap();
    assert_eq!(get(&open(&path, "").unwrap(), 0), colour);
    assert_contains(&write_png(&path, &sample, 1.0, 1.0).unwrap_err().to_string(), &["r.png", "below white"]);
    let five = Sample::new(shape(5, 1, 1, 1), vec![0.0; 5]).unwrap();
    assert_contains(&write_png(&path, &five, 0.0, 1.0).unwrap_err().to_string(), &["r.png", "1 or 3 channels"]);
    let nowhere = write_png(&folder.path().join("none/r.png"), &sample, 0.0, 1.0).unwrap_err();
    assert_contains(&nowhere.to_string(), &["none", "cannot be written"]);
}
