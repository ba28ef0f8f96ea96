//! Every kind of data that `learn` takes.

use crate::common::{Bench, model, picture, pictures, stack, write_npy};
use ndarray::{Axis, s};

#[test]
fn a_folder_of_png_records_its_preprocessing_and_repeats_it() {
    let bench = Bench::new();
    pictures(&bench, "photos", 3, 1);
    pictures(&bench, "held", 2, 50);
    bench.learn("photos --out m.safetensors").ok();
    let saved = model(&bench.path("m.safetensors"));
    assert_eq!(saved.config["preprocess"], serde_json::json!(["gray", "lcn", "taper"]));
    let repeated = bench.run("evaluate m.safetensors held --json").ok().json();
    let said = bench.run("evaluate m.safetensors held --json --preprocess gray,lcn,taper").ok().json();
    assert_eq!(repeated["objective"], said["objective"]);
    let other = bench.run("evaluate m.safetensors held --json --preprocess gray").ok().json();
    assert_ne!(repeated["objective"], other["objective"]);
}

#[test]
fn without_preprocessing_pixels_are_numbers_from_0_to_1() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("gray")).unwrap();
    let mut images = ndarray::Array3::<f64>::zeros((2, 16, 16));
    for (i, mut image) in images.outer_iter_mut().enumerate() {
        let gray = image::imageops::grayscale(&picture(16, 16, i as u64));
        gray.save(bench.path(&format!("gray/{i}.png"))).unwrap();
        image.iter_mut().zip(gray.as_raw()).for_each(|(v, p)| *v = f64::from(*p) / 255.0);
    }
    write_npy(&bench.path("same.npy"), &images);
    bench.learn("gray --preprocess none --out m.safetensors --beta 0.05").ok();
    assert_eq!(model(&bench.path("m.safetensors")).config["preprocess"], serde_json::json!([]));
    let [from_png, from_npy] = ["gray", "same.npy"]
        .map(|data| bench.run(&format!("evaluate m.safetensors {data} --json")).ok().json()["objective"].clone());
    assert_eq!(from_png, from_npy);
}

#[test]
fn jpeg_tiff_bmp_webp_and_png_in_one_folder() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("mixed")).unwrap();
    for (i, ending) in ["jpg", "jpeg", "tiff", "tif", "bmp", "webp", "PNG", "ppm"].iter().enumerate() {
        picture(20, 20, i as u64).save(bench.path(&format!("mixed/{i}.{ending}"))).unwrap();
    }
    // Passed over: a hidden file, a text, a subfolder.
    bench.write("mixed/.hidden.png", b"not one");
    bench.write("mixed/notes.txt", b"not one");
    std::fs::create_dir(bench.path("mixed/sub.png")).unwrap();
    let ran = bench.learn("mixed --out m.safetensors --json").ok();
    assert_eq!(ran.json()["samples"], 8);
}

#[test]
fn npy_npz_and_mat_with_the_same_numbers_give_the_same_model() {
    let bench = Bench::with_data(3);
    let images = stack(3, 16, 16, 1);
    let file = std::fs::File::create(bench.path("train.npz")).unwrap();
    let mut npz = ndarray_npy::NpzWriter::new(file);
    npz.add_array("images", &images).unwrap();
    npz.finish().unwrap();
    let file = std::fs::File::create(bench.path("two.npz")).unwrap();
    let mut npz = ndarray_npy::NpzWriter::new(file);
    npz.add_array("images", &images).unwrap();
    npz.add_array("others", &images.slice(s![..1, .., ..])).unwrap();
    npz.finish().unwrap();
    bench.write("train.mat", &mat(&images));
    write_npy(&bench.path("hwn.npy"), &images.view().permuted_axes([1, 2, 0]).as_standard_layout());
    write_npy(&bench.path("nchw.npy"), &images.view().insert_axis(Axis(1)).as_standard_layout());
    let learned = |words: &str| {
        bench.learn(&format!("{words} --beta 0.1 --out m.safetensors")).ok();
        bench.read("m.safetensors")
    };
    let npy = learned("train.npy");
    for words in ["train.npz", "two.npz:images", "train.mat", "hwn.npy --axes HWN", "nchw.npy --axes NCHW"] {
        assert!(learned(words) == npy, "{words}");
    }
    assert!(learned("two.npz") != npy);
    assert!(learned("train.npy --limit 2") != npy);
    assert_eq!(bench.learn("train.npy two.npz --limit 4 --out m.safetensors --json").ok().json()["samples"], 4);
}

#[test]
fn signals_and_volumes() {
    let bench = Bench::new();
    write_npy(&bench.path("signals.npy"), &stack(3, 1, 64, 3).index_axis_move(Axis(1), 0));
    write_npy(&bench.path("volumes.npy"), &stack(2, 8, 64, 4).into_shape_with_order((2, 8, 8, 8)).unwrap());
    let learn = "--filters 3 --size 3 --beta 0.1 --out m.safetensors";
    bench.run(&format!("learn signals.npy --axes NW {learn}")).ok();
    assert_eq!(bench.run("info m.safetensors --json").ok().json()["filter_shape"], serde_json::json!([3]));
    bench.run("code m.safetensors signals.npy --axes NW --out codes").ok();
    bench.run("reconstruct m.safetensors codes --out back --format npy").ok();
    assert_eq!(crate::common::read_npy::<f64>(&bench.path("back/signals-0000.npy")).shape(), [64]);
    bench.run(&format!("learn volumes.npy --axes NDHW {learn}")).ok();
    assert_eq!(bench.run("info m.safetensors --json").ok().json()["filter_shape"], serde_json::json!([3, 3, 3]));
    bench.run("evaluate m.safetensors volumes.npy --axes NDHW").ok();
    bench.run("show m.safetensors --out d.png").ok();
}

/// A level 5 file with the variable `b`, (H, W, N) in MATLAB's order.
fn mat(images: &ndarray::Array3<f32>) -> Vec<u8> {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let element = |kind: u32, data: &[u8]| -> Vec<u8> {
        let mut bytes = words(&[kind, data.len() as u32]);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let (n, h, w) = images.dim();
    let mut numbers = Vec::new();
    for image in images.outer_iter() {
        image.t().iter().for_each(|v| numbers.extend(v.to_le_bytes()));
    }
    // Class 7 is single, type 7 is single, type 5 is i32, type 1 is i8, type 14 is a matrix.
    let mut body = element(6, &words(&[7, 0]));
    body.extend(element(5, &words(&[h as u32, w as u32, n as u32])));
    body.extend(element(1, b"b"));
    body.extend(element(7, &numbers));
    let mut file = b"MATLAB 5.0 MAT-file, a test".to_vec();
    file.resize(124, b' ');
    file.extend([0, 1, b'I', b'M']);
    file.extend(element(14, &body));
    file
}
