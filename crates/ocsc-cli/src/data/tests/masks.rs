//! Masks: files and folders, arrays of every kind, NaN, and what does not fit.

use super::mat::{file, matrix};
use super::*;
use crate::data::{npy, npz};
use ::image::{DynamicImage, GrayImage, Luma, Rgb, RgbImage};

fn masked(data: &Path, mask: &Path, axes: &str) -> Result<Source> {
    Source::open(&[data.to_owned()], &SourceOptions { mask: Some(mask.to_owned()), ..options(axes) })
}

fn truths(source: &Source, index: usize) -> String {
    let sample = get(source, index);
    sample.mask().unwrap().iter().map(|seen| if *seen { '1' } else { '0' }).collect()
}

#[track_caller]
fn refused(opened: Result<Source>, parts: &[&str]) {
    let message = match opened.and_then(|source| Ok(Samples::<f64>::get(&source, 0)?)) {
        Ok(_) => panic!("accepted"),
        Err(e) => format!("{e:#}"),
    };
    assert_contains(&message, parts);
}

#[test]
fn one_mask_for_all_samples_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let data = write(folder.path(), "x.npy", &npy::encode("<f4", &[2, 2, 3], &counting(12)));
    let flags = [1, 0, 1, 1, 1, 0];
    let floats: Vec<u8> = flags.iter().flat_map(|f| (f64::from(*f) * -0.5).to_le_bytes()).collect();
    let mut packed = std::io::Cursor::new(Vec::new());
    npz::write(&mut packed, [Ok(("m", npy::encode("|b1", &[2, 3], &flags)))]).unwrap();
    // Column-major, with a logical variable beside a plain one.
    let logical = matrix(false, "m", 9 | 0x200, &[2, 3], 2, &[1, 1, 0, 1, 1, 0]);
    let plain = matrix(false, "b", 9, &[2, 3], 2, &[1; 6]);
    let levels = GrayImage::from_fn(3, 2, |x, y| Luma([flags[(3 * y + x) as usize] * 7]));
    let mut png = std::io::Cursor::new(Vec::new());
    DynamicImage::from(levels).write_to(&mut png, ::image::ImageFormat::Png).unwrap();
    for (name, bytes) in [
        ("b.npy", npy::encode("|b1", &[2, 3], &flags)),
        ("u.npy", npy::encode("|u1", &[2, 3], &flags)),
        ("f.npy", npy::encode("<f8", &[2, 3], &floats)),
        ("n.npy", npy::encode("|b1", &[1, 2, 3], &flags)),
        ("m.npz", packed.into_inner()),
        ("m.mat", file(false, true, &[plain, logical])),
        ("m.png", png.into_inner()),
    ] {
        let source = masked(&data, &write(folder.path(), name, &bytes), "").unwrap();
        assert!(source.is_masked());
        assert_eq!((truths(&source, 0), truths(&source, 1)), ("101110".into(), "101110".into()), "{name}");
        assert_eq!(get(&source, 1).data(), [6.0, 0.0, 8.0, 9.0, 10.0, 0.0], "{name}");
        assert_eq!(source.size(0).unwrap(), [1, 2, 3]);
    }
}

#[test]
fn arrays_of_masks_pair_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let data = write(folder.path(), "x.npy", &npy::encode("<f4", &[2, 2, 1, 2], &counting(8)));
    let mask = |dims: &[usize], flags: &[u8]| write(folder.path(), "m.npy", &npy::encode("|b1", dims, flags));
    let per_sample = masked(&data, &mask(&[2, 1, 2], &[1, 0, 0, 1]), "NCHW").unwrap();
    assert_eq!((truths(&per_sample, 0), truths(&per_sample, 1)), ("1010".into(), "0101".into()));
    let per_value = masked(&data, &mask(&[2, 2, 1, 2], &[1, 0, 0, 1, 1, 1, 1, 0]), "NCHW").unwrap();
    assert_eq!((truths(&per_value, 0), truths(&per_value, 1)), ("1001".into(), "1110".into()));
    let for_all = masked(&data, &mask(&[1, 2], &[0, 1]), "NCHW").unwrap();
    assert_eq!(truths(&for_all, 1), "0101");
    refused(masked(&data, &mask(&[3, 1, 2], &[1; 6]), "NCHW"), &["--mask", "m.npy", "2 samples", "found 3"]);
    refused(masked(&data, &mask(&[2, 2, 2], &[0, 1, 0, 1, 0, 1, 0, 1]), "NCHW"), &["--mask", "m.npy[0]", "1x2", "2x2"]);
    refused(masked(&data, &mask(&[1, 2], &[0, 0]), "NCHW"), &["x.npy[0]", "--mask", "at least one observed"]);
    refused(masked(&data, &folder.path().join("none.npy"), "NCHW"), &["--mask", "none.npy", "cannot be read"]);
    // Signals and their masks are cut alike.
    let signal = write(folder.path(), "s.npy", &npy::encode("<f4", &[6], &counting(6)));
    let mask = mask(&[6], &[1, 0, 1, 1, 0, 1]);
    let cut = SourceOptions { mask: Some(mask), window: Some("3".parse().unwrap()), ..options("") };
    let source = Source::open(&[signal], &cut).unwrap();
    assert_eq!((truths(&source, 0), truths(&source, 1)), ("101".into(), "101".into()));
}

#[test]
fn folders_pair_by_stem() {
    let folder = tempfile::tempdir().unwrap();
    let (photos, masks) = (folder.path().join("photos"), folder.path().join("masks"));
    std::fs::create_dir_all(&photos).unwrap();
    std::fs::create_dir_all(&masks).unwrap();
    for name in ["cat.jpg", "dog.bmp"] {
        DynamicImage::from(RgbImage::from_pixel(2, 2, Rgb([9, 9, 9]))).save(photos.join(name)).unwrap();
    }
    let draw = |name: &str, dark: u32| {
        let image = RgbImage::from_fn(2, 2, |x, y| Rgb([0, 0, u8::from(2 * y + x != dark)]));
        DynamicImage::from(image).save(masks.join(name)).unwrap();
    };
    draw("dog.png", 3);
    refused(masked(&photos, &masks, ""), &["--mask", "no mask for", "cat.jpg", "cat.png"]);
    draw("cat.png", 0);
    draw("other.png", 0);
    let source = masked(&photos, &masks, "").unwrap();
    assert_eq!((truths(&source, 0), truths(&source, 1)), ("0111".repeat(3), "1110".repeat(3)));
    draw("cat.bmp", 0);
    refused(masked(&photos, &masks, ""), &["--mask", "cat.bmp", "cat.png", "same name"]);
    std::fs::remove_file(masks.join("cat.bmp")).unwrap();
    let array = write(folder.path(), "x.npy", &npy::encode("<f4", &[2, 2, 2], &counting(8)));
    refused(masked(&array, &masks, ""), &["x.npy holds 2 samples", "an array as well"]);
    DynamicImage::from(GrayImage::new(2, 2)).save(masks.join("cat.jpg")).unwrap();
    refused(masked(&photos, &masks, ""), &["cat.jpg", "JPEG", "PNG"]);
    std::fs::remove_file(masks.join("cat.jpg")).unwrap();
    DynamicImage::from(GrayImage::new(3, 2)).save(masks.join("cat.png")).unwrap();
    let source = masked(&photos, &masks, "").unwrap();
    let message = source.size(0).unwrap_err().to_string();
    assert_contains(&message, &["cat.jpg: --mask", "cat.png", "expected 2x2", "found 2x3"]);
    assert!(source.size(1).is_ok());
}

#[test]
fn nan_is_missing_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = [1.0, f32::NAN, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let path = write(folder.path(), "x.npy", &npy::encode("<f4", &[2, 2], &bytes));
    assert_contains(&refusal(&path, ""), &["x.npy", "finite", "row 0, column 1", "--nan-is-missing"]);
    let missing = SourceOptions { nan_is_missing: true, ..options("") };
    let source = Source::open(std::slice::from_ref(&path), &missing).unwrap();
    assert!(source.is_masked());
    assert_eq!((truths(&source, 0), get(&source, 0).into_data()), ("1011".into(), vec![1.0, 0.0, 3.0, 4.0]));
    let mask = write(folder.path(), "m.npy", &npy::encode("|b1", &[2, 2], &[1, 1, 1, 0]));
    let both = SourceOptions { mask: Some(mask), ..missing.clone() };
    assert_eq!(truths(&Source::open(&[path], &both).unwrap(), 0), "1010");

    let tiff = folder.path().join("x.tif");
    let mut encoder = ::tiff::encoder::TiffEncoder::new(std::fs::File::create(&tiff).unwrap()).unwrap();
    encoder.write_image::<::tiff::encoder::colortype::Gray32Float>(2, 1, &[f32::NAN, 0.5]).unwrap();
    drop(encoder);
    assert_contains(&refusal(&tiff, ""), &["x.tif", "--nan-is-missing"]);
    assert_eq!(truths(&Source::open(&[tiff], &missing).unwrap(), 0), "01");
    let bytes: Vec<u8> = [f32::NAN, f32::INFINITY].iter().flat_map(|v| v.to_le_bytes()).collect();
    let infinite = write(folder.path(), "i.npy", &npy::encode("<f4", &[2], &bytes));
    let source = Source::open(&[infinite], &missing).unwrap();
    assert_contains(&Samples::<f64>::get(&source, 0).unwrap_err().to_string(), &["i.npy", "finite", "inf"]);
}
