//! Checksums of models, what codes say of themselves, and codes that do not belong.

use crate::common::npz::{members, rewrite, text};
use crate::common::{Bench, model, picture, pictures, read_floats, unsealed, write_npy};
use ndarray::Array2;

#[test]
fn damaged_models_are_refused_by_every_command() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    let whole = bench.read("m.safetensors");
    // A bit of the last filter's last number: nothing but the checksum can tell.
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    bench.write("bad.safetensors", &bytes);
    for command in [
        "info bad.safetensors",
        "show bad.safetensors --out d.png",
        "evaluate bad.safetensors test.npy",
        "code bad.safetensors test.npy --out other",
        "reconstruct bad.safetensors codes --out back",
        "verify bad.safetensors",
        "verify bad.safetensors test.npy codes",
        "learn train.npy --resume bad.safetensors",
    ] {
        bench.run(command).refused(1, &["bad.safetensors", "checksum", "damaged or changed"]);
    }
    assert!(!bench.path("other").exists() && !bench.path("back").exists());
}

#[test]
fn models_without_a_checksum_are_read_and_it_is_said() {
    let bench = Bench::with_model();
    bench.write("old.safetensors", &unsealed(&bench.read("m.safetensors")));
    for command in ["info MODEL", "evaluate MODEL test.npy", "code MODEL test.npy --out codes", "verify MODEL"] {
        let old = bench.run(&command.replace("MODEL", "old.safetensors")).ok();
        let said = format!("{}{}", old.stderr, old.stdout);
        assert_eq!(said.matches("written before there were any").count(), 1, "{command}: {said}");
        let new = bench.run(&command.replace("MODEL", "m.safetensors")).ok();
        assert!(!new.stderr.contains("checksum"), "{}", new.stderr);
    }
    let known = bench.run("info m.safetensors --json").ok().json();
    assert_eq!(known["checksum"].as_str().unwrap().len(), 64);
    let unknown = bench.run("info old.safetensors --json").ok().json();
    assert!(unknown["checksum"].is_null());
    assert_eq!(unknown["dictionary_checksum"], known["dictionary_checksum"]);
}

#[test]
fn codes_say_what_they_were_made_of_and_with() {
    let bench = Bench::new();
    pictures(&bench, "photos", 2, 1);
    bench.learn("photos --preprocess lowpass=3 --boundary free --beta 0.2 --out m.safetensors").ok();
    bench.run("code m.safetensors photos --out codes --beta 0.3").ok();
    let code = members(&bench.path("codes/2.npz"));
    assert_eq!(text(&code["source"]), "photos/2.png");
    assert_eq!(text(&code["preprocess"]), "lowpass=3");
    assert_eq!(text(&code["boundary"]), "free");
    let info = bench.run("info m.safetensors --json").ok().json();
    assert_eq!(text(&code["model"]), info["dictionary_checksum"].as_str().unwrap());
    assert_eq!(code["masked"].data, [0]);
    let shape: Vec<i64> =
        code["sample_shape"].data.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(shape, [3, 20, 20]);
    assert_eq!(code["beta"].data, 0.3_f64.to_le_bytes());
    // The same call writes the same bytes.
    let first = bench.read("codes/1.npz");
    bench.run("code m.safetensors photos --out again --beta 0.3").ok();
    assert!(members(&bench.path("again/1.npz")) == members(&bench.path("codes/1.npz")));
    assert_eq!(first.len(), bench.read("again/1.npz").len());
    // A sample of many in a file, and a frame of a stream.
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    assert_eq!(text(&members(&bench.path("codes/test-0001.npz"))["source"]), "test.npy[1]");
}

#[test]
fn codes_of_another_model_are_refused() {
    let bench = Bench::with_model();
    bench.learn("train.npy --out other.safetensors --beta 0.1 --seed 5").ok();
    bench.run("code m.safetensors test.npy --out codes").ok();
    let ran = bench.run("reconstruct other.safetensors codes --out back");
    ran.refused(1, &["codes/test-0000.npz", "other.safetensors", "another", "--any-model"]);
    assert!(!bench.path("back").exists());
    let ran = bench.run("reconstruct other.safetensors codes --out back --any-model").ok();
    assert!(ran.stderr.contains("codes/test-0000.npz") && ran.stderr.contains("another"), "{}", ran.stderr);
    // A checkpoint and the model of the same dictionary are the same model.
    bench.learn("train.npy --out c.safetensors --beta 0.1 --checkpoint-every 100").ok();
    assert_eq!(model(&bench.path("c.safetensors")).dictionary, model(&bench.path("m.safetensors")).dictionary);
    bench.run("reconstruct c.safetensors codes --out back").ok();
}

#[test]
fn colour_codes_are_refused_by_a_gray_model_of_as_many_filters() {
    let bench = Bench::new();
    pictures(&bench, "photos", 2, 1);
    bench.learn("photos --preprocess gray --boundary free --beta 0.3 --out gray.safetensors").ok();
    bench.learn("photos --preprocess none --boundary free --beta 0.3 --out colour.safetensors").ok();
    bench.run("code colour.safetensors photos --out codes").ok();
    let ran = bench.run("reconstruct gray.safetensors codes --out back --any-model");
    ran.refused(1, &["codes/1.npz", "expected a sample of 1 channel,", "found 3"]);
    bench.run("code gray.safetensors photos --out grays").ok();
    bench.run("reconstruct colour.safetensors grays --out back").refused(1, &["grays/1.npz", "3 channels", "found 1"]);
    // Codes from before say nothing; that is said.
    rewrite(&bench.path("codes/1.npz"), |members| {
        for name in ["model", "source", "preprocess", "boundary", "masked", "sample_shape", "sha256"] {
            assert!(members.remove(name).is_some(), "{name}");
        }
    });
    std::fs::remove_file(bench.path("codes/2.npz")).unwrap();
    let ran = bench.run("reconstruct gray.safetensors codes --out back").ok();
    assert!(ran.stderr.contains("1 of 1 code does not say which model"), "{}", ran.stderr);
}

/// With half of the values hidden, the mean of all values is not the mean that coding took out.
#[test]
fn masked_codes_come_back_with_their_mask_alone() {
    let bench = Bench::new();
    pictures(&bench, "photos", 2, 1);
    // The dark half of an image is hidden.
    for i in 1..=2 {
        let mut photo = picture(20, 20, i);
        photo.enumerate_pixels_mut().filter(|(_, y, _)| *y < 10).for_each(|(_, _, p)| p.0 = [0, 0, 0]);
        photo.save(bench.path(&format!("photos/{i}.png"))).unwrap();
    }
    write_npy(&bench.path("mask.npy"), &Array2::from_shape_fn((20, 20), |(y, _)| y >= 10));
    bench.learn("photos --mask mask.npy --preprocess gray,mean --boundary free --beta 0.05 --out m.safetensors").ok();
    bench.run("code m.safetensors photos --mask mask.npy --out codes").ok();
    let ran = bench.run("reconstruct m.safetensors codes --out back --original photos");
    ran.refused(1, &["codes/1.npz", "unobserved", "--mask"]);
    bench.run("reconstruct m.safetensors codes --out back --original photos --mask mask.npy").ok();
    // What was seen comes back as bright as it was.
    let back = read_floats(&bench.path("back/1.npy"));
    let photo = image::open(bench.path("photos/1.png")).unwrap().to_luma8();
    let (mut sum, mut seen) = (0.0, 0.0);
    for (x, y, pixel) in photo.enumerate_pixels().filter(|(_, y, _)| *y >= 10) {
        sum += back[[y as usize, x as usize]];
        seen += f64::from(pixel[0]) / 255.0;
    }
    assert!((sum / seen - 1.0).abs() < 0.1, "{sum} and {seen}");
    // And the other way round.
    bench.run("code m.safetensors photos --out whole").ok();
    let ran = bench.run("reconstruct m.safetensors whole --out b --original photos --mask mask.npy");
    ran.refused(1, &["whole/1.npz", "without a mask"]);
}

#[test]
fn originals_of_one_name_are_paired_by_their_paths() {
    let bench = Bench::new();
    for (folder, seed) in [("dupA", 1), ("dupB", 2), ("dupC", 3)] {
        std::fs::create_dir(bench.path(folder)).unwrap();
        picture(20, 20, seed).save(bench.path(&format!("{folder}/img.png"))).unwrap();
    }
    bench.learn("dupA dupB --preprocess gray,mean --boundary free --beta 0.2 --out m.safetensors").ok();
    bench.run("code m.safetensors dupA dupB --out codes").ok();
    bench.run("reconstruct m.safetensors codes --out same --original dupA dupB").ok();
    bench.run("reconstruct m.safetensors codes --out swapped --original dupB dupA").ok();
    for name in ["img.npy", "img-2.npy"] {
        assert!(bench.read(&format!("same/{name}")) == bench.read(&format!("swapped/{name}")), "{name}");
    }
    assert!(bench.read("same/img.npy") != bench.read("same/img-2.npy"));
    // Moved, the end of the path tells.
    std::fs::create_dir(bench.path("moved")).unwrap();
    bench.shell("mv dupA dupB moved/");
    bench.run("reconstruct m.safetensors codes --out moved-back --original moved/dupB moved/dupA").ok();
    assert!(bench.read("moved-back/img.npy") == bench.read("same/img.npy"));
    // Where nothing tells, nothing is guessed.
    bench.shell("mv moved/dupA moved/x; mv moved/dupB moved/y");
    let ran = bench.run("reconstruct m.safetensors codes --out b --original moved/x moved/y");
    ran.refused(1, &["codes/img", "made of dup", "moved/x/img.png or moved/y/img.png"]);
    for code in ["codes/img.npz", "codes/img-2.npz"] {
        rewrite(&bench.path(code), |members| drop(members.remove("source")));
    }
    let ran = bench.run("reconstruct m.safetensors codes --out b --original moved/x moved/y");
    ran.refused(1, &["codes/img", "found moved/", "does not say which"]);
    assert!(!bench.path("b").exists());
}
