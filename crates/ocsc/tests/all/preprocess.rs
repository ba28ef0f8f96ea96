//! The preprocessing steps: against the arrays of the paper's authors, and by their properties.

mod steps;
mod undo;

use ndarray::{Array3, Array4, Axis};
use ocsc::preprocess::{Preprocess, Step, edge_taper, gray, local_contrast_normalise};
use ocsc::{Real, Sample, Shape};
use proptest::prelude::*;
use std::path::Path;

/// The images of an (N, H, W, 3) file of bytes as samples in \[0, 1\] with axes (channel, depth, height, width).
fn photos<T: Real>(path: &Path) -> Vec<Sample<T>> {
    let array: Array4<u8> = ndarray_npy::read_npy(path).unwrap();
    let (_, height, width, channels) = array.dim();
    let shape = Shape { channels, ..Shape::image(height, width) };
    let planar = |image: ndarray::ArrayView3<u8>| {
        let data = image.permuted_axes([2, 0, 1]).iter().map(|&v| T::of(f64::from(v) / 255.0)).collect();
        Sample::new(shape, data).unwrap()
    };
    array.axis_iter(Axis(0)).map(planar).collect()
}

/// The images of an (N, H, W) file.
fn images(path: &Path) -> Vec<Sample<f64>> {
    let array: Array3<f64> = ndarray_npy::read_npy(path).unwrap();
    let (_, height, width) = array.dim();
    let image =
        |a: ndarray::ArrayView2<f64>| Sample::new(Shape::image(height, width), a.iter().copied().collect()).unwrap();
    array.axis_iter(Axis(0)).map(image).collect()
}

fn max_difference<T: Real>(a: &Sample<T>, b: &Sample<f64>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.data().iter().zip(b.data()).map(|(a, b)| (a.f64() - b).abs()).fold(0.0, f64::max)
}

/// The largest difference between `found` and `expected` over a whole set.
fn worst<T: Real>(found: Vec<Sample<T>>, expected: Vec<Sample<f64>>) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(&expected).map(|(a, b)| max_difference(a, b)).fold(0.0, f64::max)
}

fn sample(shape: Shape, data: Vec<f64>) -> Sample<f64> {
    Sample::new(shape, data).unwrap()
}

/// The chain agrees to 4.8e-7 in f64; in f32 the rounding of the samples remains.
#[test]
fn chain_reproduces_the_authors_arrays() {
    fn check<T: Real>(data: &Path) {
        let chain = Preprocess::paper();
        let sets = [("fruit/train", 10), ("city/train", 10), ("fruit/test", 4)];
        for (set, count) in sets {
            let found: Vec<_> = photos::<T>(&data.join(format!("{set}_rgb.npy")))
                .into_iter()
                .map(|photo| chain.apply(photo).unwrap())
                .collect();
            assert_eq!(found.len(), count);
            let error = worst(found, images(&data.join(format!("{set}_lcne.npy"))));
            let tolerance = 1e-6 + 8.0 * T::EPSILON;
            assert!(error <= tolerance, "{set} in {}: {error:e}", T::NAME);
        }
    }
    let Some(data) = crate::common::data_dir() else { return };
    check::<f32>(&data);
    check::<f64>(&data);
}

#[test]
fn normalisation_reproduces_the_authors_arrays() {
    let Some(data) = crate::common::data_dir() else { return };
    let found = photos::<f64>(&data.join("fruit/train_rgb.npy"))
        .iter()
        .map(|photo| local_contrast_normalise(&gray(photo).unwrap()).unwrap())
        .collect();
    let error = worst(found, images(&data.join("fruit/train_lcn_no_taper.npy")));
    assert!(error <= 1e-6, "{error:e}");
}

#[test]
fn taper_reproduces_the_authors_arrays() {
    let Some(data) = crate::common::data_dir() else { return };
    let found =
        images(&data.join("fruit/train_lcn_no_taper.npy")).iter().map(|image| edge_taper(image).unwrap()).collect();
    let error = worst(found, images(&data.join("fruit/train_lcne.npy")));
    assert!(error <= 1e-9, "{error:e}");
}

#[test]
fn names_round_trip() {
    for (text, steps) in [
        ("none", vec![]),
        ("gray", vec![Step::Gray]),
        ("gray,taper", vec![Step::Gray, Step::Taper]),
        ("gray,lcn,taper", vec![Step::Gray, Step::Lcn, Step::Taper]),
        ("mean,scale", vec![Step::Mean, Step::Scale(None)]),
        ("scale=255,lowpass=0.3", vec![Step::Scale(Some(255.0)), Step::Lowpass(0.3)]),
        ("whiten=12,scale", vec![Step::Whiten(12), Step::Scale(None)]),
    ] {
        let list: Preprocess = text.parse().unwrap();
        assert_eq!(list.steps(), steps);
        assert_eq!(list.to_string(), text);
        assert_eq!(list, Preprocess::new(steps).unwrap());
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<Preprocess>(&json).unwrap(), list);
    }
    assert_eq!(" gray, lowpass = 2 ".parse::<Preprocess>().unwrap().to_string(), "gray,lowpass=2");
    assert_eq!(Preprocess::default().to_string(), "none");
    // Files say which number a default was.
    assert_eq!("lowpass,whiten".parse::<Preprocess>().unwrap().to_string(), "lowpass=5,whiten=8");
}

/// As they have always been written.
#[test]
fn files_hold_names() {
    assert_eq!(serde_json::to_string(&Preprocess::paper()).unwrap(), r#"["gray","lcn","taper"]"#);
    assert_eq!(serde_json::from_str::<Preprocess>(r#"["gray","lcn","taper"]"#).unwrap(), Preprocess::paper());
    let list: Preprocess = "lowpass,scale=2".parse().unwrap();
    assert_eq!(serde_json::to_string(&list).unwrap(), r#"["lowpass=5","scale=2"]"#);
}

#[test]
fn senseless_lists_are_refused() {
    for text in [
        "",
        "grey",
        "gray,",
        "none,gray",
        "gray,none",
        "lcn,gray",
        "taper,lcn",
        "gray,gray",
        "auto",
        "GRAY",
        "mean,gray",
        "taper,scale",
        "scale,mean,scale=2",
        "gray=1",
        "lcn=13",
        "=5",
    ] {
        let message = text.parse::<Preprocess>().unwrap_err().to_string();
        assert!(Step::NAMES.iter().all(|name| message.contains(name)), "{text}: {message}");
    }
    for text in [
        "scale=0",
        "scale=",
        "scale=inf",
        "scale=x",
        "lowpass=-1",
        "lowpass=NaN",
        "whiten=0",
        "whiten=257",
        "whiten=1.5",
    ] {
        let message = text.parse::<Preprocess>().unwrap_err().to_string();
        let (name, number) = text.split_once('=').unwrap();
        assert!(message.contains(name) && message.contains("number") && message.contains(number), "{text}: {message}");
    }
    for json in [r#"["lcn","gray"]"#, r#"["lcn","lcn"]"#, r#"["Gray"]"#, r#""gray""#, r#"["lowpass=0"]"#, "[5]"] {
        assert!(serde_json::from_str::<Preprocess>(json).is_err(), "{json}");
    }
    for step in [Step::Scale(Some(0.0)), Step::Lowpass(f64::NAN), Step::Whiten(0), Step::Whiten(usize::MAX)] {
        assert!(Preprocess::new(vec![step]).is_err(), "{step:?}");
    }
}

#[test]
fn words_name_every_number() {
    let list: Preprocess = "gray,mean,scale=255,lowpass=7,whiten=9,lcn,taper".parse().unwrap();
    let words = list.words();
    for part in ["gray", "mean", "by 255", "low-pass", "7", "prediction of order 9", "contrast", "taper"] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(Preprocess::default().words(), "none");
}

#[test]
fn gray_takes_one_or_three_channels() {
    let image = |channels| sample(Shape { channels, ..Shape::image(1, 2) }, vec![0.5; 2 * channels]);
    for channels in [2, 4, 5] {
        let message = gray(&image(channels)).unwrap_err().to_string();
        assert!(message.contains(&format!("{channels} channels")), "{message}");
    }
    let colours = sample(Shape { channels: 3, ..Shape::image(1, 2) }, vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.5]);
    let found = gray(&colours).unwrap();
    assert_eq!(found.shape(), Shape::image(1, 2));
    assert!(max_difference(&found, &sample(Shape::image(1, 2), vec![0.2989, 0.5870 + 0.5 * 0.1140])) < 1e-4);
    let white = sample(Shape { channels: 3, ..Shape::image(1, 1) }, vec![1.0; 3]);
    assert!((gray(&white).unwrap().data()[0] - 1.0).abs() < 1e-14);
}

/// A flat image with one corner of texture: the median deviation is zero, the result is still finite and of size 1.
#[test]
fn mostly_flat_images_are_normalised_by_their_texture() {
    let shape = Shape::image(64, 64);
    let texture = |i: usize| if i / 64 < 8 && i % 64 < 8 { f64::from((i * 7 % 5) as u8) / 255.0 } else { 0.3 };
    let found = local_contrast_normalise(&sample(shape, (0..shape.len()).map(texture).collect())).unwrap();
    let far = found.data()[63 * 64 + 63];
    assert!(found.data().iter().all(|v| v.abs() < 20.0));
    assert!(found.data().iter().any(|v| (v - far).abs() > 0.5));
    // The final subtraction of the mean moves the flat part off zero, but all of it by the same amount.
    assert!((found.data()[40 * 64 + 40] - far).abs() < 1e-9);
}

/// Values at the ends of the scalar's range are normalised like any others.
#[test]
fn extreme_values_do_not_overflow() {
    let shape = Shape::image(20, 20);
    let plain: Vec<f64> = (0..shape.len()).map(|i| (i * i % 23) as f64 / 22.0).collect();
    let expected = local_contrast_normalise(&sample(shape, plain.clone())).unwrap();
    for scale in [1e-300, 1e300] {
        let scaled = sample(shape, plain.iter().map(|v| (v - 0.5) * scale).collect());
        let found = local_contrast_normalise(&scaled).unwrap();
        assert!(max_difference(&found, &expected) < 1e-10);
        edge_taper(&scaled).unwrap();
    }
    assert!(local_contrast_normalise(&sample(Shape::image(1, 2), vec![f64::MAX, f64::MIN])).is_ok());
    assert_eq!(local_contrast_normalise(&sample(Shape::image(1, 2), vec![0.0, 5e-324])).unwrap().data(), [0.0, 0.0]);
}

prop_compose! {
    /// Samples of one or three channels, one or two slices, and planes from 1x1 to 40x40.
    fn samples()(
        channels in prop::sample::select(vec![1usize, 3]),
        depth in 1usize..3,
        height in 1usize..40,
        width in 1usize..40,
    )(
        data in prop::collection::vec(0.0..1.0f64, channels * depth * height * width),
        shape in Just(Shape { channels, depth, height, width }),
    ) -> Sample<f64> {
        sample(shape, data)
    }
}

/// The planes of a sample, each as a sample of its own.
fn planes(whole: &Sample<f64>) -> Vec<Sample<f64>> {
    let Shape { height, width, .. } = whole.shape();
    whole.data().chunks(height * width).map(|p| sample(Shape::image(height, width), p.to_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gray_of_gray_is_gray(x in samples()) {
        let once = gray(&x).unwrap();
        prop_assert_eq!(once.shape().channels, 1);
        prop_assert_eq!(gray(&once).unwrap(), once);
    }

    #[test]
    fn constant_images_normalise_to_zero_and_taper_to_themselves(x in samples(), value in -1e3..1e3f64) {
        let x = x.map(|_| value);
        prop_assert!(local_contrast_normalise(&x).unwrap().data().iter().all(|&v| v == 0.0));
        prop_assert_eq!(edge_taper(&x).unwrap(), x);
    }

    #[test]
    fn normalised_planes_have_zero_mean_whatever_offset_and_scale(
        x in samples(), scale in 0.1..100.0f64, offset in -10.0..10.0f64,
    ) {
        let y = local_contrast_normalise(&x).unwrap();
        for plane in planes(&y) {
            prop_assert!(plane.data().iter().sum::<f64>().abs() <= 1e-10 * plane.data().len() as f64);
        }
        let moved = local_contrast_normalise(&x.map(|v| scale * v + offset)).unwrap();
        prop_assert!(max_difference(&moved, &y) <= 1e-7);
    }

    #[test]
    fn planes_are_treated_one_by_one(x in samples()) {
        for step in [local_contrast_normalise::<f64>, edge_taper::<f64>] {
            let whole = step(&x).unwrap();
            let parts: Vec<f64> = planes(&x).iter().flat_map(|p| step(p).unwrap().into_data()).collect();
            prop_assert_eq!(whole.data(), parts);
        }
    }

    #[test]
    fn taper_keeps_the_interior_and_the_range(x in samples()) {
        let y = edge_taper(&x).unwrap();
        let Shape { height, width, .. } = x.shape();
        let inside = |i: usize, n: usize| n == 1 || (11..n.saturating_sub(11)).contains(&i);
        for (before, after) in planes(&x).iter().zip(planes(&y)) {
            let low = before.data().iter().copied().fold(f64::INFINITY, f64::min);
            let high = before.data().iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (i, (b, a)) in before.data().iter().zip(after.data()).enumerate() {
                prop_assert!((low..=high).contains(a));
                if inside(i / width, height) && inside(i % width, width) {
                    prop_assert_eq!(a, b);
                }
            }
        }
    }

    #[test]
    fn single_precision_is_double_precision_rounded(x in samples()) {
        let narrow = Sample::new(x.shape(), x.data().iter().map(|&v| v as f32).collect()).unwrap();
        let wide = Sample::new(x.shape(), narrow.data().iter().map(|&v| f64::from(v)).collect()).unwrap();
        let chain = Preprocess::paper();
        let (narrow, wide) = (chain.apply(narrow).unwrap(), chain.apply(wide).unwrap());
        let rounded: Vec<f32> = wide.data().iter().map(|&v| v as f32).collect();
        prop_assert_eq!(narrow.data(), rounded);
    }
}
