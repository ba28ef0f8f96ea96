//! Data that cannot be used: exit code 1, the file named, what was expected said, nothing on stdout.

use crate::common::{Bench, Ran, picture, pictures, stack, write_npy};
use ndarray::Array3;

/// Learning from this must be refused with these words, and leave no model.
#[track_caller]
fn refuse(bench: &Bench, data: &str, parts: &[&str]) -> Ran {
    let ran = bench.learn(&format!("{data} --beta 0.1 --out none.safetensors")).refused(1, parts);
    assert!(!bench.path("none.safetensors").exists());
    ran
}

#[test]
fn files_and_folders_that_hold_nothing() {
    let bench = Bench::with_model();
    refuse(&bench, "nowhere.npy", &["nowhere.npy", "expected a folder of images"]);
    std::fs::create_dir(bench.path("empty")).unwrap();
    refuse(&bench, "empty", &["empty", "no images", "png"]);
    std::fs::create_dir(bench.path("texts")).unwrap();
    bench.write("texts/a.txt", b"a");
    refuse(&bench, "texts", &["texts", "no images", "png"]);
    bench.write("a.csv", b"1,2");
    refuse(&bench, "a.csv", &["a.csv", ".csv are unknown", "npy"]);
    bench.write("bare", b"1,2");
    refuse(&bench, "bare", &["bare", "without an ending"]);
    bench.write("void.npy", b"");
    refuse(&bench, "void.npy", &["void.npy", "empty"]);
    bench.write("void.png", b"");
    refuse(&bench, "void.png", &["void.png", "empty"]);
    for command in ["evaluate m.safetensors nowhere.npy", "code m.safetensors nowhere.npy --out codes"] {
        bench.run(command).refused(1, &["nowhere.npy", "expected a folder of images"]);
    }
    assert!(!bench.path("codes").exists());
    bench.learn("train.npy --out m.safetensors --test nowhere.npy").refused(1, &["--test", "nowhere.npy"]);
}

#[test]
fn damaged_files() {
    let bench = Bench::new();
    pictures(&bench, "photos", 3, 1);
    let whole = bench.read("photos/2.png");
    bench.write("photos/2.png", &whole[..whole.len() / 2]);
    refuse_any(&bench, "photos --strict", &["photos/2.png", "damaged"]);
    bench.write("photos/2.png", b"plain text");
    refuse(&bench, "photos --strict", &["photos/2.png", "cannot be decoded as an image"]);
    write_npy(&bench.path("a.npy"), &stack(2, 16, 16, 1));
    let whole = bench.read("a.npy");
    bench.write("cut.npy", &whole[..whole.len() - 7]);
    refuse(&bench, "cut.npy", &["cut.npy", "truncated"]);
    bench.write("text.npy", b"1 2 3 4 5 6 7 8 9 10 11 12");
    refuse(&bench, "text.npy", &["text.npy"]);
    bench.write("text.npz", b"1 2 3 4 5 6 7 8 9 10 11 12");
    refuse(&bench, "text.npz", &["text.npz", "not a .npz archive"]);
    bench.write("text.mat", b"1 2 3 4 5 6 7 8 9 10 11 12");
    refuse(&bench, "text.mat", &["text.mat"]);
}

/// Refused, at the door or when the sample's turn comes.
#[track_caller]
fn refuse_any(bench: &Bench, data: &str, parts: &[&str]) {
    bench.learn(&format!("{data} --beta 0.1 --out any.safetensors")).refused(1, parts);
}

#[test]
fn numbers_that_are_none() {
    let bench = Bench::with_model();
    for (name, bad) in [("nan", f32::NAN), ("inf", f32::INFINITY), ("minus", f32::NEG_INFINITY)] {
        let mut images = stack(1, 16, 16, 1);
        images[[0, 3, 5]] = bad;
        let file = format!("{name}.npy");
        write_npy(&bench.path(&file), &images);
        refuse(&bench, &file, &[&file, "expected finite values", "row 3, column 5"]);
        bench.run(&format!("evaluate m.safetensors {file}")).refused(1, &[&file, "finite values", "row 3, column 5"]);
        bench.run(&format!("code m.safetensors {file} --out codes")).refused(1, &[&file, "finite values"]);
    }
    // Beyond f32, though finite in the file.
    write_npy(&bench.path("huge.npy"), &Array3::<f64>::from_elem((1, 16, 16), 1e300));
    refuse(&bench, "huge.npy", &["huge.npy", "finite"]);
    write_npy(&bench.path("zero.npy"), &Array3::<f32>::zeros((0, 16, 16)));
    refuse(&bench, "zero.npy", &["zero.npy", "(0, 16, 16)", "empty"]);
    write_npy(&bench.path("thin.npy"), &Array3::<f32>::zeros((2, 16, 0)));
    refuse(&bench, "thin.npy", &["thin.npy", "(2, 16, 0)", "empty"]);
    write_npy(&bench.path("five.npy"), &ndarray::Array5::<f32>::zeros((1, 1, 1, 8, 8)));
    refuse(&bench, "five.npy", &["five.npy", "--axes"]);
    write_npy(&bench.path("dark.npy"), &Array3::<f32>::zeros((1, 16, 16)));
    let ran = bench.learn("dark.npy --beta-ratio 0.1 --out none.safetensors");
    ran.refused(1, &["dark.npy", "samples of zeros"]);
    // Zeros are dull but no error.
    bench.learn("dark.npy --beta 1 --out dark.safetensors").ok();
    bench.run("evaluate dark.safetensors dark.npy --json").ok().json();
}

#[test]
fn sizes_and_channels_that_do_not_fit() {
    let bench = Bench::with_model();
    pictures(&bench, "photos", 2, 1);
    picture(24, 20, 9).save(bench.path("photos/3.png")).unwrap();
    refuse(
        &bench,
        "photos --method ocsc-paper",
        &["photos/3.png", "photos/1.png", "expected 20x20", "found 20x24", "--method ocsc"],
    );
    bench.learn("photos --out mixed.safetensors").ok();
    pictures(&bench, "colour", 2, 1);
    bench.learn("colour --preprocess none --method ocsc-paper --out colour.safetensors").ok();
    bench.run("evaluate m.safetensors colour").refused(1, &["colour/1.png", "expected 1 channel,", "found 3 channels"]);
    write_npy(&bench.path("small.npy"), &stack(2, 4, 4, 1));
    bench.run("evaluate m.safetensors small.npy").refused(1, &["small.npy[0]", "5x5", "4x4"]);
    bench.run("code m.safetensors small.npy --out codes").refused(1, &["small.npy[0]", "5x5", "4x4"]);
    // The test data are looked at before learning, not after a pass.
    let log = bench.path("run.jsonl");
    refuse(&bench, "train.npy --test small.npy --log run.jsonl", &["--test", "small.npy[0]", "5x5", "4x4"]);
    refuse(&bench, "train.npy --test colour/1.png --log run.jsonl", &["--test", "colour/1.png", "3 channels"]);
    assert!(!log.exists());
    refuse(&bench, "train.npy colour", &["images and arrays", "--preprocess"]);
    bench.learn("train.npy --init small.npy --passes 0 --out small.safetensors").ok();
    write_npy(&bench.path("line.npy"), &ndarray::Array1::<f32>::zeros(5));
    refuse(&bench, "train.npy --init line.npy", &["--init", "line.npy", "(filters, 2 axes)"]);
    refuse(&bench, "train.npy --init nowhere.npy", &["--init", "nowhere.npy"]);
    refuse(&bench, "train.npy --init rnadom", &["--init", "rnadom", "random, patches"]);
}
