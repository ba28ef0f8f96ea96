//! Model files and codes that are none: exit code 1, the file named, nothing on stdout.

use crate::common::{Bench, picture};

const COMMANDS: [&str; 5] = [
    "info BAD",
    "show BAD --out d.png",
    "evaluate BAD test.npy",
    "code BAD test.npy --out codes",
    "learn train.npy --resume BAD",
];

#[test]
fn files_that_are_no_models() {
    let bench = Bench::with_model();
    picture(8, 8, 1).save(bench.path("a.png")).unwrap();
    bench.write("empty.safetensors", b"");
    let whole = bench.read("m.safetensors");
    bench.write("cut.safetensors", &whole[..whole.len() - 10]);
    bench.write("head.safetensors", &whole[..6]);
    let other = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1], &[0; 4]).unwrap();
    bench.write("other.safetensors", &safetensors::serialize([("w", other)], None).unwrap());
    for bad in ["a.png", "empty.safetensors", "cut.safetensors", "head.safetensors", "other.safetensors", "absent"] {
        for command in COMMANDS {
            bench.run(&command.replace("BAD", bad)).refused(1, &[bad]);
        }
    }
    bench.run("code test.npy test.npy --out codes").refused(1, &["test.npy", "model file", "an array of numpy"]);
    bench.run("info a.png").refused(1, &["a.png", "model file", "expected"]);
    bench.run("info other.safetensors").refused(1, &["other.safetensors", "ocsc/1"]);
    assert!(!bench.path("codes").exists() && !bench.path("d.png").exists());
}

#[test]
fn a_finished_model_cannot_be_resumed() {
    let bench = Bench::with_model();
    let ran = bench.run("learn train.npy --resume m.safetensors --passes 9");
    ran.refused(1, &["m.safetensors", "expected a checkpoint", "a finished model", "--checkpoint-every keeps them"]);
}

#[test]
fn folders_without_usable_codes() {
    let bench = Bench::with_model();
    let reconstruct = |codes: &str| bench.run(&format!("reconstruct m.safetensors {codes} --out back"));
    reconstruct("nowhere").refused(1, &["nowhere", "expected a folder of codes"]);
    reconstruct("test.npy").refused(1, &["test.npy", "expected a folder of codes"]);
    std::fs::create_dir(bench.path("codes")).unwrap();
    reconstruct("codes").refused(1, &["codes", ".npz", "none"]);
    let mut foreign = ndarray_npy::NpzWriter::new(std::fs::File::create(bench.path("codes/a.npz")).unwrap());
    foreign.add_array("weights", &ndarray::array![1.0, 2.0]).unwrap();
    foreign.finish().unwrap();
    reconstruct("codes").refused(1, &["codes/a.npz", "`filter`", "weights"]);
    bench.write("codes/a.npz", b"no archive at all");
    reconstruct("codes").refused(1, &["codes/a.npz", "not a .npz archive"]);
    std::fs::remove_file(bench.path("codes/a.npz")).unwrap();
    // Codes of another model, with more filters.
    bench.run("learn train.npy --filters 6 --size 5 --beta 0.1 --passes 0 --out six.safetensors").ok();
    bench.run("code six.safetensors test.npy --out codes").ok();
    reconstruct("codes").refused(1, &["codes/test-0000.npz", "4", "6"]);
    // Codes of samples smaller than the filters.
    bench.run("learn train.npy --filters 6 --size 16 --beta 0.1 --passes 0 --out wide.safetensors").ok();
    crate::common::write_npy(&bench.path("small.npy"), &crate::common::stack(1, 8, 8, 1));
    bench.run("code six.safetensors small.npy --out small").ok();
    let ran = bench.run("reconstruct wide.safetensors small --out back");
    ran.refused(1, &["small/small.npz", "16x16", "8x8"]);
}
