//! A small valid file of every kind that is read, to be damaged.

use super::mat::{file, matrix};
use super::{audio, counting, flac};
use crate::data::Facts;
use crate::data::codes::write_code;
use crate::data::{npy, npz};
use ::image::{DynamicImage, GrayImage, ImageBuffer, ImageFormat, LumaA, Rgb, RgbImage};
use ::tiff::encoder::{TiffEncoder, colortype};
use ocsc::learner::learner;
use ocsc::monitor::Silent;
use ocsc::train::Progress;
use ocsc::{Atom, Code, Config, Dictionary, Mixing, Sample, Shape, checkpoint};
use std::io::{Cursor, Write};

/// The names and bytes of all specimens.
pub(super) fn specimens() -> Vec<(&'static str, Vec<u8>)> {
    [arrays(), pictures(), recordings(), others()].concat()
}

fn arrays() -> Vec<(&'static str, Vec<u8>)> {
    let array = npy::encode("<f4", &[2, 2, 3], &counting(12));
    let mut packed = Cursor::new(Vec::new());
    npz::write(&mut packed, ["a", "b"].map(|name| Ok((name, array.clone())))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("s.npz");
    let mut writer = ndarray_npy::NpzWriter::new(std::fs::File::create(&stored).unwrap());
    writer.add_array("a", &ndarray::array![[1.0f32, 2.0]]).unwrap();
    writer.finish().unwrap();
    let code_path = folder.path().join("c.npz");
    let code = Code::new(2, [1, 3, 3], vec![Atom { filter: 1, position: 4, value: 0.5f32 }]).unwrap();
    let mixing = Mixing::new(vec![1], vec![0.5, 1.0]).unwrap();
    write_code(&code_path, &code, Some(&mixing), 2, &Facts { gap: Some(0.1), ..Facts::default() }).unwrap();
    let b = |big| matrix(big, "b", 7, &[2, 3, 2], 7, &counting(12));
    let note = matrix(false, "note", 4, &[1, 1], 4, &[65, 0]);
    vec![
        ("a.npy", array),
        ("b.npy", npy::encode("|b1", &[2, 3], &[0, 1, 1, 0, 1, 0])),
        ("packed.npz", packed.into_inner()),
        ("stored.npz", std::fs::read(stored).unwrap()),
        ("code.npz", std::fs::read(code_path).unwrap()),
        ("plain.mat", file(false, false, &[note.clone(), b(false)])),
        ("packed.mat", file(false, true, &[note, b(false)])),
        ("big.mat", file(true, false, &[b(true)])),
        ("a.bin", [&[3][..], &[77; 3072]].concat()),
    ]
}

fn pictures() -> Vec<(&'static str, Vec<u8>)> {
    let gray: GrayImage = ImageBuffer::from_fn(9, 9, |x, y| ::image::Luma([(x * y) as u8]));
    let colour: RgbImage = ImageBuffer::from_fn(19, 17, |x, y| Rgb([(9 * x) as u8, (13 * y) as u8, (x * y) as u8]));
    let deep: ImageBuffer<LumaA<u16>, Vec<u16>> = ImageBuffer::from_fn(7, 5, |x, y| LumaA([(x * y) as u16, 9]));
    let saved = |picture: DynamicImage, format: ImageFormat| {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    vec![
        ("gray.tif", saved(gray.clone().into(), ImageFormat::Tiff)),
        ("pages.tif", pages()),
        ("colour.png", saved(colour.clone().into(), ImageFormat::Png)),
        ("deep.png", saved(deep.into(), ImageFormat::Png)),
        ("palette.png", palette_png(&[0, 0, 0, 255, 9, 9])),
        ("gray.jpg", saved(gray.clone().into(), ImageFormat::Jpeg)),
        ("colour.jpg", saved(colour.clone().into(), ImageFormat::Jpeg)),
        ("colour.webp", saved(colour.clone().into(), ImageFormat::WebP)),
        ("colour.bmp", saved(colour.clone().into(), ImageFormat::Bmp)),
        ("colour.ppm", saved(colour.into(), ImageFormat::Pnm)),
        ("gray.pgm", saved(gray.into(), ImageFormat::Pnm)),
        ("text.pgm", b"P2 3 2 255\n1 2 3 255 5 6\n".to_vec()),
    ]
}

/// Two deflated pages of four bands each.
fn pages() -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let pack = ::tiff::encoder::Compression::Deflate(::tiff::encoder::DeflateLevel::Balanced);
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap().with_compression(pack);
    for page in 0..2 {
        let mut image = encoder.new_image::<colortype::RGB16>(3, 2).unwrap();
        image.extra_samples(&[::tiff::tags::ExtraSamples::Unspecified]).unwrap();
        image.write_data(&(0..24).map(|i| 100 * page + i).collect::<Vec<u16>>()).unwrap();
    }
    bytes.into_inner()
}

fn recordings() -> Vec<(&'static str, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let wave = folder.path().join("a.wav");
    audio::wav(&wave, &audio::waves(2, 90, 16), 16, 8000);
    let flac = |known| flac::encode(&audio::waves(2, 300, 16), 16, 8000, 20, known);
    vec![("a.wav", std::fs::read(wave).unwrap()), ("known.flac", flac(true)), ("piped.flac", flac(false))]
}

/// A checkpoint and a log.
fn others() -> Vec<(&'static str, Vec<u8>)> {
    let config = Config { n_filters: 2, filter_shape: vec![2, 2], beta: 0.1, ..Config::default() };
    let dictionary = Dictionary::<f32>::random(2, Shape::image(2, 2), 2, 0).unwrap();
    let mut learner = learner(config, dictionary).unwrap();
    let sample = Sample::new(Shape::image(4, 4), (0..16).map(|i| i as f32 / 16.0).collect()).unwrap();
    learner.learn(&[0], &[sample], &Silent).unwrap();
    let progress = Progress { step: 1, samples: 1, ..Progress::default() };
    let line = r#"{"event":"step","pass":0,"step":1,"samples":1,"seconds":0.5,"cpu_seconds":0.5,"objective":1.5}"#;
    vec![
        ("a.safetensors", checkpoint::to_bytes(learner.as_ref(), Some(&progress)).unwrap()),
        ("run.jsonl", format!("{line}\n{line}\n").into_bytes()),
    ]
}

/// A PNG of one pixel with a palette of these bytes, which should be red, green and blue of each colour.
pub(super) fn palette_png(palette: &[u8]) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(data);
        [&(data.len() as u32).to_be_bytes()[..], kind, data, &crc.sum().to_be_bytes()].concat()
    };
    let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::none());
    // The row's filter, and the number of its colour.
    pixels.write_all(&[0, 0]).unwrap();
    let header = [0, 0, 0, 1, 0, 0, 0, 1, 8, 3, 0, 0, 0];
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &header),
        chunk(b"PLTE", palette),
        chunk(b"IDAT", &pixels.finish().unwrap()),
        chunk(b"IEND", &[]),
    ]
    .concat()
}
