//! JPEG files that were cut short, and those that only look so.

use super::*;
use crate::data::jpeg::without_tables;
use ::image::{DynamicImage, ImageBuffer, ImageFormat, Rgb};

fn photo() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let noise = |x: u32, y: u32| (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) as u8;
    let picture = ImageBuffer::from_fn(64, 48, |x, y| Rgb([noise(x, y), noise(y, x), noise(x + y, x)]));
    DynamicImage::from(picture).write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

#[test]
fn a_photo_that_was_cut_short_is_refused_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let whole = photo();
    assert!(read_all(&write(folder.path(), "a.jpg", &whole), "").is_ok());
    for len in (1..whole.len()).step_by(7).chain([whole.len() - 1, whole.len() - 2]) {
        let path = write(folder.path(), "a.jpg", &whole[..len]);
        assert_contains(&refusal(&path, ""), &["a.jpg", "truncated"]);
    }
    // By its content, whatever the name says.
    let path = write(folder.path(), "a.png", &whole[..whole.len() / 2]);
    assert_contains(&refusal(&path, ""), &["a.png", "truncated"]);
}

#[test]
fn what_follows_the_image_or_lies_before_it_is_no_matter() {
    let folder = tempfile::tempdir().unwrap();
    let whole = photo();
    let expected = read_all(&write(folder.path(), "a.jpg", &whole), "").unwrap();
    // A preview within the notes of the camera, with an end of its own.
    let preview = [&[0xff, 0xe2, 0, 12][..], &[0xff, 0xd8, 1, 2, 3, 4, 5, 6, 0xff, 0xd9]].concat();
    let noted = [&whole[..2], &preview, &whole[2..]].concat();
    for bytes in [
        [&whole[..], &whole].concat(),
        [&whole[..], b"appended by an editor"].concat(),
        [&whole[..], &whole[..99]].concat(),
        noted.clone(),
    ] {
        assert_eq!(read_all(&write(folder.path(), "a.jpg", &bytes), "").unwrap(), expected);
    }
    // The preview's end is not the photo's.
    let cut = write(folder.path(), "a.jpg", &noted[..noted.len() - 40]);
    assert_contains(&refusal(&cut, ""), &["truncated"]);
}

/// Whether the decoder takes a header, and what it finds in it; with its tables of Huffman codes, or without.
fn headers(bytes: &[u8]) -> [Option<(u32, u32)>; 2] {
    let size = |bytes: Vec<u8>| {
        let reader = ::image::ImageReader::with_format(std::io::Cursor::new(bytes), ImageFormat::Jpeg);
        reader.into_decoder().ok().map(|decoder| ::image::ImageDecoder::dimensions(&decoder))
    };
    [size(bytes.to_vec()), without_tables(bytes).and_then(size)]
}

#[test]
fn a_header_without_tables_is_taken_as_one_with_them_is() {
    let whole = photo();
    assert_eq!(headers(&whole), [Some((64, 48)); 2]);
    let short = without_tables(&whole).unwrap();
    assert!(short.len() < whole.len() / 2 && !short.windows(2).any(|pair| pair == [0xff, 0xc4]));
    // Damage of any kind anywhere in the header: what the decoder refuses with the tables is not taken without them.
    let end = whole.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap() + 14;
    for at in 0..end {
        for byte in [0, 1, 0x7f, 0xc4, 0xff, whole[at] ^ 1, whole[at] ^ 0x10] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let [with, without] = headers(&damaged);
            assert!(without.is_none() || without == with, "byte {at} as {byte}: {with:?}, but {without:?}");
        }
    }
    // A start that ends within the header tells nothing.
    assert!((0..end - 1).all(|len| without_tables(&whole[..len]).is_none()));
}
