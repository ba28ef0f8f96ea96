//! The paper's images, where the shared data are present: `OCSC_DATA`, or `../shared/data` beside the workspace.

use super::*;

fn data(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("OCSC_DATA").map_or(beside, PathBuf::from);
    let path = root.join(name);
    if !path.exists() {
        #[allow(clippy::print_stderr, reason = "a skipped test must be seen to be skipped")]
        {
            eprintln!("skipped: {} is absent; set OCSC_DATA to the shared data", path.display());
        }
        return None;
    }
    Some(path)
}

#[test]
fn the_authors_mat_equals_npy() {
    for name in ["fruit/train_lcne", "fruit/test_lcne", "city/train_lcne"] {
        let (Some(mat), Some(npy)) = (data(&format!("{name}.mat")), data(&format!("{name}.npy"))) else { return };
        let (mat, npy) = (read_all(&mat, "").unwrap(), read_all(&npy, "").unwrap());
        assert!(npy.len() >= 4);
        assert_eq!(mat, npy, "{name}");
    }
}

#[test]
fn photographs_decode_to_the_reference_levels() {
    let (Some(folder), Some(reference)) = (data("fruit/train"), data("fruit/train_rgb.npy")) else { return };
    let source = open(&folder, "").unwrap();
    let reference = open(&reference, "NHWC").unwrap();
    assert_eq!((source.len(), reference.len()), (10, 10));
    // The folder is in natural order, the reference in that of names: 1, 10, 2, ..., 9.
    let mut by_name: Vec<usize> = (0..10).collect();
    by_name.sort_by_key(|&i| source.file_stem(i));
    for (n, &i) in by_name.iter().enumerate() {
        let (ours, levels) = (get(&source, i), get(&reference, n));
        assert_eq!(ours.shape(), shape(3, 1, 100, 100));
        let off: Vec<f64> = ours.data().iter().zip(levels.data()).map(|(a, b)| (a * 255.0 - b).abs()).collect();
        // JPEG decoders round differently: a level or two here and there, more at a few clipped colours.
        let mean = off.iter().sum::<f64>() / off.len() as f64;
        let far = off.iter().filter(|d| **d > 2.5).count() as f64 / off.len() as f64;
        assert!(mean < 0.5 && far < 0.005, "{}: off by {mean} on average, {far} of it far", source.name(i));
    }
}

#[test]
fn signals_video_and_bands() {
    if let Some(path) = data("signals/ecg_360hz.npy") {
        assert_eq!(read_all(&path, "").unwrap()[0].shape(), shape(1, 1, 1, 36000));
    }
    if let Some(path) = data("video/carphone_gray.npy") {
        assert_eq!(read_all(&path, "DHW").unwrap()[0].shape(), shape(1, 48, 144, 176));
    }
    if let Some(path) = data("hyperspectral/samson_16bands.npy") {
        assert_eq!(read_all(&path, "CHW").unwrap()[0].shape(), shape(16, 1, 95, 95));
    }
}

#[test]
fn photos_have_the_size_that_their_header_tells() {
    let Some(folder) = data("flower") else { return };
    let options = SourceOptions { recursive: true, ..options("") };
    let source = Source::open(&[folder], &options).unwrap();
    assert_eq!(source.len(), 40);
    // Those of test come first.
    assert!(source.name(9).ends_with("test/image_07919.jpg") && source.name(10).ends_with("train/image_00590.jpg"));
    for i in (0..source.len()).step_by(5) {
        assert_eq!(source.size(i).unwrap(), get(&source, i).shape().spatial(), "{}", source.name(i));
    }
}
