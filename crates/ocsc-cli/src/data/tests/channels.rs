//! Gray and colour in one set, opacities, and bands beyond red, green and blue.

use super::*;
use crate::ranks::Ranks;
use ::image::{GrayImage, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use ::tiff::encoder::{TiffEncoder, colortype};
use ::tiff::tags::ExtraSamples;
use ocsc::preprocess::Preprocess;
use std::fs::File;

fn folder_of(kinds: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (i, kind) in kinds.chars().enumerate() {
        let path = folder.path().join(format!("{i}.png"));
        match kind {
            'g' => GrayImage::from_pixel(4, 3, Luma([51])).save(path).unwrap(),
            'c' => RgbImage::from_pixel(4, 3, Rgb([51, 0, 255])).save(path).unwrap(),
            _ => RgbaImage::from_pixel(4, 3, Rgba([51, 0, 255, 7])).save(path).unwrap(),
        }
    }
    folder
}

fn words(source: &Source, channels: Option<usize>) -> Vec<String> {
    Ranks::alone().channels(source).unwrap().words(channels, &Preprocess::default(), |i| source.file_stem(i))
}

#[test]
fn the_majority_decides_and_gray_is_repeated() {
    for (kinds, majority) in [("ccg", 3), ("ggc", 1), ("gc", 3), ("gggg", 1), ("aag", 3)] {
        let folder = folder_of(kinds);
        let source = open(folder.path(), "").unwrap();
        let counts = Ranks::alone().channels(&source).unwrap();
        assert_eq!(counts.majority(), Some(majority), "{kinds}");
    }
    let folder = folder_of("ccg");
    let source = open(folder.path(), "").unwrap();
    assert_eq!(
        words(&source, Some(3)),
        ["1 of 3 samples is gray, 2 first, and repeated over the 3 channels of the others"]
    );
    let source = source.of_channels(Some(3));
    assert_eq!(get(&source, 2).shape(), shape(3, 1, 3, 4));
    assert_eq!(get(&source, 2).data(), [0.2; 36]);
    // Colours do not become gray by themselves.
    let folder = folder_of("ggc");
    let source = open(folder.path(), "").unwrap();
    assert_contains(
        &words(&source, Some(1))[0],
        &["1 of 3 samples has 3 channels instead of 1, 2 first", "--preprocess gray"],
    );
    let message = Samples::<f64>::get(&source.of_channels(Some(1)), 2).unwrap_err().to_string();
    assert_contains(&message, &["2.png", "expected 1 channel, found 3 channels"]);
}

#[test]
fn an_opacity_is_dropped_with_a_word() {
    let folder = folder_of("caa");
    let source = open(folder.path(), "").unwrap();
    assert_eq!(words(&source, Some(3)), ["2 of 3 samples have an alpha channel (opacity), 1 first: it is dropped"]);
    assert_eq!(get(&source, 1).shape(), shape(3, 1, 3, 4));
}

/// A TIFF of 3x2 pixels with red, green, blue and others.
fn bands(path: &Path, extra: &[ExtraSamples]) {
    let mut encoder = TiffEncoder::new(File::create(path).unwrap()).unwrap();
    let mut image = encoder.new_image::<colortype::RGB8>(3, 2).unwrap();
    if !extra.is_empty() {
        image.extra_samples(extra).unwrap();
    }
    let per_pixel = 3 + extra.len();
    image.write_data(&(0..6 * per_pixel).map(|i| i as u8).collect::<Vec<_>>()).unwrap();
}

#[test]
fn bands_are_channels_and_opacities_are_not() {
    use ExtraSamples::{AssociatedAlpha, UnassociatedAlpha, Unspecified};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    for (extra, kept, alpha) in [
        (&[][..], vec![0, 1, 2], false),
        (&[Unspecified], vec![0, 1, 2, 3], false),
        (&[AssociatedAlpha], vec![0, 1, 2], true),
        (&[UnassociatedAlpha], vec![0, 1, 2], true),
        (&[Unspecified, Unspecified], vec![0, 1, 2, 3, 4], false),
        (&[Unspecified, UnassociatedAlpha], vec![0, 1, 2, 3], true),
    ] {
        bands(&path, extra);
        let source = open(&path, "").unwrap();
        let sample = get(&source, 0);
        let expected = |c: &usize| (0..6).map(|i| (i * (3 + extra.len()) + c) as f64 / 255.0).collect::<Vec<_>>();
        assert_eq!(sample.shape(), shape(kept.len(), 1, 2, 3), "{extra:?}");
        assert_eq!(sample.data(), kept.iter().flat_map(expected).collect::<Vec<_>>(), "{extra:?}");
        let seen = source.seen(0).unwrap();
        assert_eq!((seen.channels, seen.alpha), (kept.len(), alpha), "{extra:?}");
    }
}

#[test]
fn pages_are_what_the_axes_say() {
    let folder = tempfile::tempdir().unwrap();
    let (gray, colour) = (folder.path().join("gray.tif"), folder.path().join("colour.tif"));
    let mut encoder = TiffEncoder::new(File::create(&gray).unwrap()).unwrap();
    (0..4).for_each(|p| encoder.write_image::<colortype::Gray8>(3, 2, &[51 * p; 6]).unwrap());
    let mut encoder = TiffEncoder::new(File::create(&colour).unwrap()).unwrap();
    (0..2).for_each(|_| encoder.write_image::<colortype::RGB8>(3, 2, &[51; 18]).unwrap());
    let read = |path: &Path, axes: &str| read_all(path, axes).unwrap().iter().map(Sample::shape).collect::<Vec<_>>();
    assert_eq!(read(&gray, "NHW"), [shape(1, 1, 2, 3); 4]);
    assert_eq!(read(&gray, "DHW"), [shape(1, 4, 2, 3)]);
    assert_eq!(read(&gray, "CHW"), [shape(4, 1, 2, 3)]);
    let channels = read_all(&gray, "CHW").unwrap();
    assert_eq!(channels[0].data(), [[0.0; 6], [0.2; 6], [0.4; 6], [51.0 * 3.0 / 255.0; 6]].concat());
    assert_eq!(open(&gray, "CHW").unwrap().size(0).unwrap(), [1, 2, 3]);
    assert_eq!(read(&colour, "NCHW"), [shape(3, 1, 2, 3); 2]);
    assert_eq!(read(&colour, "CDHW"), [shape(3, 2, 2, 3)]);
    assert_contains(&refusal(&gray, "HW"), &["gray.tif", "4 pages", "--axes HW", "NHW"]);
    assert_contains(&refusal(&colour, "CHW"), &["colour.tif", "2 pages of 3 channels", "--axes CHW", "NCHW"]);
}

/// The axes of a model are those of new arrays with as many, or of one sample alone.
#[test]
fn recorded_axes_are_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let config = ocsc::Config { axes: Some("NHWC".parse().unwrap()), ..ocsc::Config::default() };
    let of = |name: &str, dims: &[usize]| {
        let bytes = crate::data::npy::encode("<f4", dims, &counting(dims.iter().product()));
        write(folder.path(), name, &bytes)
    };
    let read = |path: &Path, axes: &str| {
        let source = Source::open(&[path.to_owned()], &options(axes).like_learned(&config)).unwrap();
        get(&source, 0).shape()
    };
    let (many, one) = (of("many.npy", &[2, 5, 4, 3]), of("one.npy", &[5, 4, 3]));
    assert_eq!(read(&many, ""), shape(3, 1, 5, 4));
    assert_eq!(read(&one, ""), shape(3, 1, 5, 4));
    // The call's own win.
    assert_eq!(read(&many, "NCHW"), shape(5, 1, 4, 3));
    let message =
        format!("{:#}", Source::open(&[of("two.npy", &[5, 4])], &options("").like_learned(&config)).unwrap_err());
    assert_contains(&message, &["two.npy", "NHWC"]);
}

/// An array of one channel may be anything; only pictures are known to be gray.
#[test]
fn only_pictures_are_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.npy", &crate::data::npy::encode("<f4", &[3, 4], &counting(12)));
    let source = open(&path, "").unwrap().of_channels(Some(3));
    assert_contains(
        &Samples::<f64>::get(&source, 0).unwrap_err().to_string(),
        &["expected 3 channels, found 1 channel"],
    );
    assert_contains(&words(&open(&path, "").unwrap(), Some(3))[0], &["1 of 1 sample has 1 channel instead of 3"]);
}
