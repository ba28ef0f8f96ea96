//! `--resize` against a plain sum over the kernel, and `--crop` against the definition of its places.

use super::source::picture;
use super::*;
use crate::data::Resize;
use crate::data::crop::Crop;
use crate::data::npy;
use std::f64::consts::PI;

fn waves(shape: Shape) -> Sample<f64> {
    let value = |i: usize| (0.37 * (i % shape.width) as f64).sin() + (0.011 * i as f64).cos();
    Sample::new(shape, (0..shape.len()).map(value).collect()).unwrap()
}

/// Weights of the inputs for output `i`: Lanczos with three lobes, as wide as the shrinking asks for.
fn weights(i: usize, from: usize, to: usize) -> Vec<f64> {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) };
    let scale = from as f64 / to as f64;
    let place = |x: usize| (x as f64 + 0.5 - (i as f64 + 0.5) * scale) / scale.max(1.0);
    let kernel = |x: f64| if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 };
    let weights: Vec<f64> = (0..from).map(|x| kernel(place(x))).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

#[test]
fn resizing_equals_the_plain_sum() {
    for (h, w, to_h, to_w) in [(20, 31, 9, 40), (17, 23, 34, 11), (12, 12, 5, 7)] {
        let sample = waves(shape(2, 2, h, w));
        let resized = Resize::Exact(to_h as u32, to_w as u32).apply(sample.clone()).unwrap();
        assert_eq!(resized.shape(), shape(2, 2, to_h, to_w));
        for (plane, found) in sample.data().chunks(h * w).zip(resized.data().chunks(to_h * to_w)) {
            for (i, found) in found.iter().enumerate() {
                let (rows, columns) = (weights(i / to_w, h, to_h), weights(i % to_w, w, to_w));
                let value = |y: usize, x: usize| rows[y] * columns[x] * plane[y * w + x];
                let expected: f64 = (0..h * w).map(|p| value(p / w, p % w)).sum();
                assert!((found - expected).abs() < 2e-6, "{h}x{w} to {to_h}x{to_w}: {found} for {expected}");
            }
        }
    }
}

#[test]
fn the_shortest_side_leads_and_equal_sizes_change_no_bit() {
    let size = |text: &str, size| text.parse::<Resize>().unwrap().size(size).unwrap();
    assert_eq!(size("256", [1, 480, 640]), [1, 256, 341]);
    assert_eq!(size("256", [7, 640, 480]), [7, 341, 256]);
    assert_eq!(size("30x10", [1, 480, 640]), [1, 30, 10]);
    let sample = Sample::new(Shape::image(2, 2), vec![0.1, 0.2, 0.3, 1.0 / 3.0]).unwrap();
    assert_eq!(Resize::Shortest(2).apply(sample.clone()).unwrap(), sample);
    for text in ["0", "", "12x", "0x5", "3x4x5", "-1", "70000", "a"] {
        assert_contains(&text.parse::<Resize>().unwrap_err().to_string(), &["256", "480x640"]);
    }
    let vast = Resize::Shortest(60000).size([1, 10, 1_000_000]).unwrap_err().to_string();
    assert_contains(&vast, &["--resize", "at most"]);
    let masked = Sample::masked(Shape::image(2, 2), vec![0.0; 4], vec![true, false, true, true]).unwrap();
    assert_contains(&Resize::Shortest(4).apply(masked).unwrap_err().to_string(), &["--resize", "mask"]);
}

#[test]
fn pieces_are_pieces_and_depend_on_three_numbers() {
    let sample = waves(shape(2, 3, 9, 11));
    let crop = Crop::new(&[2, 4, 5], 3).unwrap();
    let places = |seed, number, pass| {
        let piece = crop.anywhere(sample.clone(), seed, number, pass, 0).unwrap();
        assert_eq!(piece.shape(), shape(2, 2, 4, 5));
        let at = |c: usize, d: usize, h: usize, w: usize| sample.data()[((c * 3 + d) * 9 + h) * 11 + w];
        let matching = |&(d0, h0, w0): &(usize, usize, usize)| {
            piece.data().iter().enumerate().all(|(i, v)| {
                let (c, d, h, w) = (i / 40, i / 20 % 2, i / 5 % 4, i % 5);
                *v == at(c, d0 + d, h0 + h, w0 + w)
            })
        };
        let all = (0..=1).flat_map(|d| (0..=5).flat_map(move |h| (0..=6).map(move |w| (d, h, w))));
        all.into_iter().find(matching).expect("not a piece of the sample")
    };
    let first = places(1, 2, 3);
    assert_eq!(first, places(1, 2, 3));
    // All 84 places turn up, about equally often, whichever of the three numbers varies.
    for vary in 0..3 {
        let mut seen = std::collections::HashMap::new();
        for i in 0..2000 {
            let [seed, number, pass] = [0, 1, 2].map(|which| if which == vary { i } else { 5 });
            *seen.entry(places(seed, number as usize, pass as usize)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 84);
        assert!(seen.values().all(|n| (6..60).contains(n)), "{seen:?}");
    }
}

#[test]
fn the_middle_short_axes_and_masks() {
    let counting: Vec<f64> = (0..20).map(f64::from).collect();
    let sample = Sample::new(Shape::image(4, 5), counting.clone()).unwrap();
    let middle = Crop::new(&[2, 3], 2).unwrap().middle(sample.clone()).unwrap();
    assert_eq!(middle.data(), [6.0, 7.0, 8.0, 11.0, 12.0, 13.0]);
    let tall = Crop::new(&[9, 1], 2).unwrap();
    assert_eq!((tall.size([1, 4, 5]), tall.middle(sample).unwrap().data()), ([1, 4, 1], &[2.0, 7.0, 12.0, 17.0][..]));
    let mask: Vec<bool> = (0..20).map(|i| i % 2 == 0).collect();
    let masked = Sample::masked(Shape::image(4, 5), counting, mask).unwrap();
    let middle = Crop::new(&[2, 3], 2).unwrap().middle(masked).unwrap();
    assert_eq!(middle.mask().unwrap(), [true, false, true, false, true, false]);
    assert_contains(&Crop::new(&[2, 3], 3).unwrap_err().to_string(), &["--crop", "expected 3 lengths", "found 2"]);
}

#[test]
fn sources_resize_then_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a.npy", &npy::encode("<f4", &[3, 8, 12], &counting(288)));
    let read = |resize: &str, crop: Option<Vec<usize>>, seed| {
        let resize = (!resize.is_empty()).then(|| resize.parse().unwrap());
        Source::open(std::slice::from_ref(&path), &SourceOptions { resize, crop, seed, ..options("") }).unwrap()
    };
    let plain = read("", None, 0);
    assert_eq!(Samples::<f64>::draw(&plain, 1, 4).unwrap(), get(&plain, 1));
    let cropped = read("16", Some(vec![10]), 7);
    assert_eq!((cropped.size(1).unwrap(), get(&cropped, 1).shape()), ([1, 10, 10], Shape::image(10, 10)));
    assert_eq!(read("16", None, 0).size(2).unwrap(), [1, 16, 24]);
    let drawn = |source: &Source, i, pass| Samples::<f64>::draw(source, i, pass).unwrap();
    assert_eq!(get(&cropped, 1), get(&cropped, 1));
    assert_eq!(drawn(&cropped, 1, 0), drawn(&cropped, 1, 0));
    let passes: Vec<_> = (0..8).map(|pass| drawn(&cropped, 1, pass)).collect();
    assert!(passes.iter().any(|piece| *piece != passes[0]) && passes[0].shape() == Shape::image(10, 10));
    // A sample is cut in the same place whichever others are in use.
    assert_eq!(drawn(&cropped.only(&[2]), 0, 3), drawn(&cropped, 2, 3));

    let signal = write(folder.path(), "s.npy", &npy::encode("<f4", &[8], &counting(8)));
    let options = SourceOptions { resize: Some(Resize::Shortest(4)), ..options("") };
    assert_contains(&Source::open(&[signal], &options).unwrap_err().to_string(), &["s.npy", "--resize", "signals"]);
    picture(folder.path(), "p.png", 80);
    let resized = get(&Source::open(&[folder.path().join("p.png")], &options).unwrap(), 0);
    assert!(resized.data().iter().all(|v| (v - 80.0 / 255.0).abs() < 1e-6) && resized.shape() == Shape::image(4, 4));
}
