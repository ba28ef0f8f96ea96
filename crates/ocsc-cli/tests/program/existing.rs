//! Results that are there already: unfinished runs, codes and reconstructions of an earlier call.

use crate::common::npz::rewrite;
use crate::common::{Bench, code, picture};

#[test]
fn an_unfinished_checkpoint_is_not_replaced_by_accident() {
    let bench = Bench::with_data(4);
    let call = "train.npy --beta 0.1 --log run.jsonl --out m.safetensors";
    bench.learn(&format!("{call} --time-limit 1e-9")).ok();
    let [model, log] = ["m.safetensors", "run.jsonl"].map(|name| bench.read(name));
    let parts = ["--out m.safetensors", "unfinished", "0 of 1 pass, 1 sample)", "--resume m.safetensors", "--force"];
    bench.learn(call).refused(1, &parts);
    assert!(model == bench.read("m.safetensors") && log == bench.read("run.jsonl"));
    // Nor by a run that goes on from another one.
    bench.learn("train.npy --beta 0.1 --out other --time-limit 1e-9").ok();
    bench.run("learn train.npy --resume other --out m.safetensors").refused(1, &parts);
    assert!(model == bench.read("m.safetensors"));
    bench.learn(&format!("{call} --force")).ok();
    // A finished one is, also one with its state, and so is a file of another kind.
    bench.learn(&format!("{call} --checkpoint-every 1")).ok();
    bench.learn(call).ok();
    bench.write("m.safetensors", b"notes");
    bench.learn(call).ok();
    assert!(bench.run("info m.safetensors").ok().stdout.contains("checkpoint"));
}

#[test]
fn codes_that_are_there_are_kept_or_said_to_be_replaced() {
    let bench = Bench::with_model();
    let call = "code m.safetensors train.npy --out codes";
    let first = bench.run(call).ok();
    assert!(!first.stderr.contains("already"), "{}", first.stderr);
    let whole: Vec<Vec<u8>> = (0..4).map(|i| bench.read(&format!("codes/train-{i:04}.npz"))).collect();
    let again = bench.run(call).ok();
    assert!(again.stderr.contains("4 of 4 codes are in codes already: replaced"), "{}", again.stderr);
    // As an interrupted call leaves them; what is missing in one shows which are coded again.
    std::fs::remove_file(bench.path("codes/train-0001.npz")).unwrap();
    std::fs::remove_file(bench.path("codes/train-0003.npz")).unwrap();
    rewrite(&bench.path("codes/train-0002.npz"), |members| drop(members.remove("energy")));
    let marked = bench.read("codes/train-0002.npz");
    let ran = bench.run(&format!("{call} --skip-existing --json")).ok();
    assert!(ran.stderr.contains("2 of 4 codes are in codes already: not made again"), "{}", ran.stderr);
    assert_eq!(ran.json()["samples"], 2);
    assert!(bench.read("codes/train-0002.npz") == marked);
    for i in [0, 1, 3] {
        assert!(bench.read(&format!("codes/train-{i:04}.npz")) == whole[i], "{i}");
    }
    let done = bench.run(&format!("{call} --skip-existing")).ok();
    assert!(done.stdout.contains("all 4 codes are in codes already"), "{}", done.stdout);
    let frames = [[128_u8; 256], [128; 256], [7; 256]].concat();
    bench.write("frames", &frames);
    let stream = "code m.safetensors - --raw 16x16 --preprocess none --out frames-coded";
    bench.shell(&format!("$OCSC {stream} < frames")).ok();
    std::fs::remove_file(bench.path("frames-coded/frame-000001.npz")).unwrap();
    rewrite(&bench.path("frames-coded/frame-000002.npz"), |members| drop(members.remove("energy")));
    let mark = bench.read("frames-coded/frame-000002.npz");
    let ran = bench.shell(&format!("$OCSC {stream} --skip-existing --json < frames")).ok();
    assert_eq!(ran.json()["samples"], 1);
    assert!(bench.read("frames-coded/frame-000002.npz") == mark);
    let values = |frame: usize| code(&bench.path(&format!("frames-coded/frame-{frame:06}.npz"))).value;
    assert_eq!(values(1), values(0));
}

#[test]
fn codes_that_were_made_otherwise_are_not_taken_for_done() {
    let bench = Bench::with_model();
    bench.learn("train.npy --out other.safetensors --beta 0.1 --seed 5").ok();
    bench.write("frames", &[[128_u8; 256], [7; 256]].concat());
    let stream = "- --raw 16x16 --preprocess none --out frames-coded";
    bench.run("code m.safetensors train.npy --out codes").ok();
    bench.shell(&format!("$OCSC code m.safetensors {stream} < frames")).ok();
    let whole: Vec<Vec<u8>> = (0..4).map(|i| bench.read(&format!("codes/train-{i:04}.npz"))).collect();
    std::fs::remove_file(bench.path("codes/train-0003.npz")).unwrap();
    for (call, parts) in [
        ("other.safetensors train.npy", ["codes/train-0000.npz", "a code with dictionary ", "..., found "]),
        ("m.safetensors train.npy --beta 0.2", ["codes/train-0000.npz", "a code with beta 0.2, found 0.1", "anew"]),
        ("m.safetensors train.npy --preprocess mean", ["train-0000.npz", "with preprocess mean, found none", "--out"]),
        ("m.safetensors train.npy --nan-is-missing", ["train-0000.npz", "with mask given, found not given", "--out"]),
    ] {
        let ran = bench.run(&format!("code {call} --out codes --skip-existing"));
        ran.refused(1, &[&["--skip-existing: "], &parts[..]].concat());
    }
    let ran = bench.shell(&format!("$OCSC code other.safetensors {stream} --skip-existing < frames"));
    ran.refused(1, &["--skip-existing: ", "frames-coded/frame-000000.npz", "a code with dictionary "]);
    // What is no code is not taken for one either.
    bench.write("codes/train-0001.npz", b"notes");
    let ran = bench.run("code m.safetensors train.npy --out codes --skip-existing");
    ran.refused(1, &["--skip-existing: ", "codes/train-0001.npz"]);
    assert_eq!(bench.read("codes/train-0001.npz"), b"notes");
    assert!(!bench.path("codes/train-0003.npz").exists() && bench.read("codes/train-0000.npz") == whole[0]);
    // A file that does not say is taken, with a line.
    bench.write("codes/train-0001.npz", &whole[1]);
    rewrite(&bench.path("codes/train-0001.npz"), |members| drop(members.remove("model")));
    let ran = bench.run("code m.safetensors train.npy --out codes --skip-existing --json").ok();
    assert_eq!(ran.json()["samples"], 1);
    assert!(ran.stderr.contains("1 of 4 codes does not say which model made it"), "{}", ran.stderr);
    assert!(bench.read("codes/train-0003.npz") == whole[3]);
}

/// A code that has the name of a sample's code may be that of another sample, or of another piece of it.
#[test]
fn codes_of_other_samples_are_not_taken_for_done() {
    let bench = Bench::with_model();
    for (folder, seed) in [("a", 1), ("b", 2), ("mixed", 3)] {
        std::fs::create_dir(bench.path(folder)).unwrap();
        let photo = image::DynamicImage::from(picture(20, 20, seed)).into_luma8();
        photo.save(bench.path(&format!("{folder}/img.png"))).unwrap();
    }
    let refused = |words: &str, parts: &[&str]| {
        let ran = bench.run(&format!("code m.safetensors {words} --skip-existing"));
        ran.refused(1, &[&["--skip-existing: ", "/img.npz: expected a code with "], parts].concat());
    };
    bench.run("code m.safetensors a --out from-a").ok();
    refused("b --out from-a", &["source b/img.png, found a/img.png", "anew"]);
    // The name goes to the file that comes first.
    bench.run("code m.safetensors mixed --out both").ok();
    picture(20, 20, 4).save(bench.path("mixed/img.jpg")).unwrap();
    refused("mixed/img.jpg --out both", &["source mixed/img.jpg, found mixed/img.png"]);
    bench.run("code m.safetensors a --resize 10 --out small").ok();
    refused("a --out small", &["sample_shape 1x20x20, found 1x10x10"]);
    bench.run("code m.safetensors a --crop 10 --out cropped").ok();
    refused("a --out cropped", &["place 0,0,0, found 0,5,5"]);
    // Another way to the same file is no other file.
    let again = bench.run("code m.safetensors b/../a/./img.png --out from-a --skip-existing").ok();
    assert!(again.stdout.contains("the code is in from-a already"), "{}", again.stdout);
}

#[test]
fn reconstructions_that_are_there_are_kept_or_said_to_be_replaced() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors train.npy --out codes").ok();
    let call = "reconstruct m.safetensors codes --out images";
    let first = bench.run(call).ok();
    assert!(!first.stderr.contains("already"), "{}", first.stderr);
    let whole = bench.read("images/train-0001.npy");
    let again = bench.run(call).ok();
    assert!(again.stderr.contains("4 of 4 reconstructions are in images already: replaced"), "{}", again.stderr);
    for name in ["0000.npy", "0000.png"] {
        bench.write(&format!("images/train-{name}"), b"mark");
    }
    // One of the two files is not enough.
    std::fs::remove_file(bench.path("images/train-0001.png")).unwrap();
    bench.write("images/train-0001.npy", b"mark");
    let ran = bench.run(&format!("{call} --skip-existing")).ok();
    assert!(ran.stderr.contains("in images already: not made again"), "{}", ran.stderr);
    assert_eq!(bench.read("images/train-0000.npy"), b"mark");
    assert!(bench.read("images/train-0001.npy") == whole && bench.path("images/train-0001.png").exists());
}
