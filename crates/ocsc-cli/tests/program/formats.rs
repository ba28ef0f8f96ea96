//! Every kind of data that `learn` takes.

use crate::common::{Bench, dictionary_bytes, model, model_shape, picture, pictures, stack, write_npy};
use ndarray::{Axis, s};

#[test]
fn a_folder_of_png_records_its_preprocessing_and_repeats_it() {
    let bench = Bench::new();
    pictures(&bench, "photos", 3, 1);
    pictures(&bench, "held", 2, 50);
    bench.learn("photos --out m.safetensors").ok();
    let saved = model(&bench.path("m.safetensors"));
    assert_eq!(saved.config["preprocess"], serde_json::json!(["lowpass=5", "scale"]));
    let repeated = bench.run("evaluate m.safetensors held --json").ok().json();
    let said = bench.run("evaluate m.safetensors held --json --preprocess lowpass,scale").ok().json();
    assert_eq!(repeated["objective"], said["objective"]);
    let other = bench.run("evaluate m.safetensors held --json --preprocess scale").ok().json();
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
        let mut config = model_config(&bench, "m.safetensors");
        // What the axes mean is recorded where it was said.
        config.as_object_mut().unwrap().remove("axes");
        (dictionary_bytes(&bench.path("m.safetensors")), config)
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
    assert_eq!(crate::common::read_floats(&bench.path("back/signals-0000.npy")).shape(), [64]);
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

#[test]
fn axes_are_recorded_and_repeated() {
    let bench = Bench::new();
    let images =
        ndarray::Array4::<f32>::from_shape_fn((3, 12, 12, 2), |(n, h, w, c)| ((n + 2 * h + 3 * w * c) % 7) as f32);
    write_npy(&bench.path("last.npy"), &images);
    write_npy(&bench.path("one.npy"), &images.index_axis(Axis(0), 1));
    bench.learn("last.npy --axes NHWC --beta 0.5 --out m.safetensors").ok();
    assert_eq!(model_config(&bench, "m.safetensors")["axes"], "NHWC");
    let repeated = bench.run("evaluate m.safetensors last.npy --json").ok();
    assert!(repeated.stderr.contains("axes NHWC, as the model was learned with"), "{}", repeated.stderr);
    let said = bench.run("evaluate m.safetensors last.npy --axes NHWC --json").ok();
    assert_eq!(repeated.json()["objective"], said.json()["objective"]);
    assert!(!said.stderr.contains("axes"), "{}", said.stderr);
    // A single sample has no N.
    bench.run("code m.safetensors one.npy --out codes").ok();
    bench.run("reconstruct m.safetensors codes --original one.npy --out back").ok();
    // The call's own win: (N, 12, 2) images in 12 channels.
    bench.run("evaluate m.safetensors last.npy --axes NCHW").refused(1, &["last.npy[0]", "5x5"]);
    // Without the option, a model is the same file as ever.
    write_npy(&bench.path("plain.npy"), &stack(2, 16, 16, 1));
    bench.learn("plain.npy --beta 0.5 --out n.safetensors").ok();
    assert_eq!(model_config(&bench, "n.safetensors").get("axes"), None);
}

/// The settings in a model file of any number of channels.
fn model_config(bench: &Bench, name: &str) -> serde_json::Value {
    let bytes = bench.read(name);
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    serde_json::from_str(&header.metadata().as_ref().unwrap()["config"]).unwrap()
}

#[test]
fn pages_of_a_tiff_are_what_the_axes_say() {
    let bench = Bench::new();
    let mut encoder = tiff::encoder::TiffEncoder::new(std::fs::File::create(bench.path("stack.tif")).unwrap()).unwrap();
    for page in 0..3_u32 {
        let level = |i: u32| (i * (page + 3) % 251) as u8;
        let pixels: Vec<u8> = (0..256).map(level).collect();
        encoder.write_image::<tiff::encoder::colortype::Gray8>(16, 16, &pixels).unwrap();
    }
    drop(encoder);
    let learned = |axes: &str, size: &str| {
        let options = format!("stack.tif {axes} --size {size} --filters 2 --preprocess none --beta 0.5");
        let ran = bench.run(&format!("learn {options} --json --out m.safetensors")).ok();
        let header = model_shape(&bench.path("m.safetensors"));
        (ran.json()["samples"].as_u64().unwrap(), header)
    };
    assert_eq!(learned("", "5"), (3, vec![2, 1, 5, 5]));
    assert_eq!(learned("--axes NHW", "5"), (3, vec![2, 1, 5, 5]));
    assert_eq!(learned("--axes DHW", "3x5x5"), (1, vec![2, 1, 3, 5, 5]));
    assert_eq!(learned("--axes CHW", "5"), (1, vec![2, 3, 5, 5]));
    bench.learn("stack.tif --axes HW --out n.safetensors").refused(1, &["stack.tif", "3 pages", "--axes HW"]);
}
