//! Arrays larger than memory in any order of their axes, and signals in windows.

use super::*;
use crate::data::npy;
use crate::data::window::{Window, Windows};
use crate::run::record::peak_rss_bytes;
use proptest::prelude::*;
use std::io::{Seek, SeekFrom, Write};

/// A file that claims an array of `f32` far larger than it takes on disk, with `numbers` at their places.
fn sparse(path: &Path, dims: &[usize], numbers: impl Iterator<Item = (usize, f32)>) {
    let header = npy::encode("<f4", dims, &[]);
    let mut file = std::fs::File::create(path).unwrap();
    file.write_all(&header).unwrap();
    file.set_len((header.len() + 4 * dims.iter().product::<usize>()) as u64).unwrap();
    for (place, number) in numbers {
        file.seek(SeekFrom::Start((header.len() + 4 * place) as u64)).unwrap();
        file.write_all(&number.to_le_bytes()).unwrap();
    }
}

#[test]
fn one_sample_of_thirty_gigabytes_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.npy");
    let (n, h, w) = (3_000_000, 50, 50);
    let last = n - 1;
    let before = peak_rss_bytes().unwrap_or(0);
    // Samples last, one number of each beside the other; samples in the middle; samples first.
    for (axes, dims, strides) in
        [("HWN", [h, w, n], [w * n, n, 1]), ("HNW", [h, n, w], [n * w, 1, w]), ("NHW", [n, h, w], [w, 1, h * w])]
    {
        let [sh, sw, sn] = strides;
        let place = |i: usize| last * sn + i / w * sh + i % w * sw;
        sparse(&path, &dims, (0..h * w).map(|i| (place(i), i as f32)));
        assert!(std::fs::metadata(&path).unwrap().len() > 30_000_000_000);
        let source = open(&path, axes).unwrap();
        assert_eq!((source.len(), source.size(0).unwrap()), (n, [1, h, w]));
        let sample = get(&source, last);
        assert!(sample.data().iter().enumerate().all(|(i, v)| *v == i as f64), "{axes}");
        assert!(get(&source, 0).data().iter().all(|v| *v == 0.0));
    }
    let grown = peak_rss_bytes().unwrap_or(0).saturating_sub(before);
    assert!(grown < 200_000_000, "{grown} bytes more");
}

#[test]
fn a_file_that_shrinks_is_an_error_and_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    for axes in ["NHW", "HWN"] {
        let path = write(folder.path(), "a.npy", &npy::encode("<f4", &[40, 30, 50], &counting(60_000)));
        let source = open(&path, axes).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(1000).unwrap();
        let message = Samples::<f64>::get(&source, source.len() - 1).unwrap_err().to_string();
        assert_contains(&message, &["a.npy[", "shorter since it was opened"]);
    }
}

#[test]
fn signals_are_cut_into_windows() {
    let folder = tempfile::tempdir().unwrap();
    let array =
        |dims: &[usize]| write(folder.path(), "s.npy", &npy::encode("<f4", dims, &counting(dims.iter().product())));
    let cut = |dims: &[usize], axes: &str, window: &str| {
        Source::open(&[array(dims)], &SourceOptions { window: Some(window.parse().unwrap()), ..options(axes) })
    };
    let lengths = |source: &Source| (0..source.len()).map(|i| get(source, i).data().len()).collect::<Vec<_>>();
    assert_eq!(lengths(&cut(&[100], "", "40").unwrap()), [40, 40, 20]);
    assert_eq!(lengths(&cut(&[100], "", "30").unwrap()), [30, 30, 40]);
    assert_eq!(lengths(&cut(&[100], "", "25").unwrap()), [25; 4]);
    assert_eq!(lengths(&cut(&[100], "", "1000").unwrap()), [100]);
    let source = cut(&[2, 3, 100], "NCW", "30").unwrap();
    assert_eq!((source.len(), source.rank(), source.size(5).unwrap()), (6, 1, [1, 1, 40]));
    assert!(source.name(4).ends_with("s.npy[4]"));
    let sample = get(&source, 4);
    assert_eq!(sample.shape(), shape(3, 1, 1, 30));
    let expected: Vec<f64> = (0..3).flat_map(|c| (0..30).map(move |t| f64::from(300 + 100 * c + 30 + t))).collect();
    assert_eq!(sample.data(), expected);
    let message = format!("{:#}", cut(&[1, 100], "", "30").unwrap_err());
    assert_contains(&message, &["s.npy", "--window", "(1, 100)", "read as HW", "--axes W, NW or CW"]);
    let message = format!("{:#}", cut(&[100], "", "5s").unwrap_err());
    assert_contains(&message, &["s.npy", "no sampling rate", "--window 2048"]);
}

#[test]
fn windows_as_typed() {
    assert_eq!("5s".parse::<Window>().unwrap(), Window::Seconds(5.0));
    assert_eq!("0.25 s".parse::<Window>().unwrap(), Window::Seconds(0.25));
    assert_eq!("2048".parse::<Window>().unwrap(), Window::Values(2048));
    for bad in ["", "s", "0", "0s", "-1s", "-1", "infs", "nans", "2.5", "5m"] {
        assert_contains(&bad.parse::<Window>().unwrap_err().to_string(), &["5s", "2048"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_cover_everything_once(total in 1_usize..10_000, length in 1_usize..12_000) {
        let windows = Windows::new(total, length);
        let mut next = 0;
        for i in 0..windows.count() {
            let range = windows.range(i);
            prop_assert_eq!(range.start, next);
            let last = i + 1 == windows.count();
            prop_assert!(range.len() == length || (last && (2 * range.len() >= length || i == 0) && 2 * range.len() < 3 * length));
            next = range.end;
        }
        prop_assert_eq!(next, total);
    }

    /// Against the definition: the number at each place is its place in the file.
    #[test]
    fn any_order_of_axes(lens in prop::array::uniform5(1_usize..5), order in Just([0, 1, 2, 3, 4]).prop_shuffle()) {
        let folder = tempfile::tempdir().unwrap();
        let dims = order.map(|axis| lens[axis]);
        // Wide enough that samples are not one run of bytes.
        let dims = [dims[0], dims[1], dims[2], dims[3], dims[4] * 3000];
        let count = dims.iter().product();
        let axes: String = order.iter().map(|axis| char::from(b"NCDHW"[*axis])).collect();
        let path = write(folder.path(), "a.npy", &npy::encode("<f4", &dims, &counting(count)));
        let source = open(&path, &axes).unwrap();
        let n = source.len() - 1;
        let sample = get(&source, n);
        let Shape { channels, depth, height, width } = sample.shape();
        let mut expected = Vec::with_capacity(channels * depth * height * width);
        for i in 0..sample.data().len() {
            let place = [n, i / (width * height * depth), i / (width * height) % depth, i / width % height, i % width];
            expected.push(order.iter().zip(dims).fold(0, |flat, (axis, len)| flat * len + place[*axis]) as f64);
        }
        prop_assert!(sample.data() == expected, "{axes} {dims:?}");
    }
}
