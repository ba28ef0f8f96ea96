//! Where results cannot be written: missing folders, full disks, closed pipes.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use crate::common::Bench;

#[test]
fn a_model_that_cannot_be_written_is_refused_before_learning() {
    let bench = Bench::with_data(2);
    let learn = |out: &str| bench.learn(&format!("train.npy --log run.jsonl --out {out}"));
    learn("none/m.safetensors").refused(1, &["none/m.safetensors", "the folder none does not exist"]);
    std::fs::create_dir(bench.path("folder")).unwrap();
    learn("folder").refused(1, &["folder", "expected a file, found a folder"]);
    learn("train.npy/m").refused(1, &["train.npy/m", "cannot be written"]);
    // As root this must not put a file in the place of the device.
    learn("/dev/null").refused(1, &["/dev/null", "a device"]);
    assert!(!bench.path("run.jsonl").exists());
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_learning() {
    let bench = Bench::with_data(2);
    let learn = |words: &str| bench.learn(&format!("train.npy --log run.jsonl --out m.safetensors {words}"));
    learn("--report none/p.html").refused(1, &["--report", "none/p.html", "the folder none does not exist"]);
    learn("--test-fraction 0.5 --write-split none/s.txt").refused(1, &["--write-split", "none/s.txt"]);
    assert!(!bench.path("run.jsonl").exists() && !bench.path("m.safetensors").exists());
}

/// Model and page are two results: that of the model is not hidden by that of the page.
#[test]
fn a_model_and_a_page_that_cannot_be_written_are_both_told() {
    let bench = Bench::with_data(2);
    let learn = "learn train.npy --limit 1 --filters 64 --size 5 --beta 0.1 --threads 1";
    // No file may grow beyond 4 kB; the log of one sample may.
    let limit = "trap '' XFSZ; ulimit -f 4";
    let ran = bench.shell(&format!("{limit}; $OCSC {learn} --out m.safetensors --report p.html"));
    ran.refused(1, &["error: m.safetensors: ", "p.html", "File too large"]);
}

#[test]
fn inputs_are_never_written_over() {
    let bench = Bench::with_data(2);
    let [train, test] = ["train.npy", "test.npy"].map(|name| bench.read(name));
    bench.learn("train.npy --out train.npy").refused(1, &["--out train.npy", "one of the data"]);
    bench.learn("train.npy --out ./train.npy").refused(1, &["--out ./train.npy", "one of the data"]);
    bench.learn("train.npy --test test.npy --out test.npy").refused(1, &["--out test.npy", "one of the data"]);
    bench.learn("train.npy --log train.npy --out m").refused(1, &["--log train.npy", "one of the data"]);
    bench.learn("train.npy --log m --out m").refused(1, &["--log m", "another file"]);
    assert!(train == bench.read("train.npy") && test == bench.read("test.npy") && !bench.path("m").exists());
    bench.run("show m --out d.jpg").refused(1, &["d.jpg", ".png"]);
}

#[test]
fn an_unwritable_folder() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::with_model();
    std::fs::create_dir(bench.path("locked")).unwrap();
    std::fs::set_permissions(bench.path("locked"), std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(bench.path("locked/probe"), b"").is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    bench.learn("train.npy --out locked/m").refused(1, &["locked/m", "permission denied"]);
    bench.run("code m.safetensors test.npy --out locked/codes").refused(1, &["locked/codes", "cannot make"]);
    bench.run("show m.safetensors --out locked/d.png").refused(1, &["locked/d.png", "permission denied"]);
}

#[test]
fn other_results_that_cannot_be_written() {
    let bench = Bench::with_model();
    bench.run("show m.safetensors --out none/d.png").refused(1, &["none/d.png", "does not exist"]);
    bench.run("code m.safetensors test.npy --out test.npy").refused(1, &["test.npy", "cannot make this folder"]);
    bench.learn("train.npy --log none/run.jsonl --out x").refused(1, &["none/run.jsonl", "No such file"]);
    bench.learn("train.npy --log /dev/full --out x").refused(1, &["/dev/full", "No space left"]);
    std::fs::create_dir_all(bench.path("codes/test-0000.npz")).unwrap();
    bench.run("code m.safetensors test.npy --out codes").refused(1, &["codes/test-0000.npz", "found a folder"]);
}

#[test]
fn a_full_or_closed_stdout() {
    let bench = Bench::with_model();
    let commands =
        ["info m.safetensors", "info m.safetensors --json", "evaluate m.safetensors test.npy", "completions bash"];
    for command in commands {
        let full = bench.shell(&format!("$OCSC {command} > /dev/full"));
        full.refused(1, &["stdout", "No space left"]);
        let closed = bench.shell(&format!("$OCSC {command} >&-"));
        assert!(matches!(closed.code, Some(0 | 1)), "{}", closed.stderr);
        // The reader is gone before anything is written.
        let pipe = bench.shell(&format!("(sleep 0.1; $OCSC {command} --quiet) | true"));
        assert_eq!((pipe.code, pipe.stderr.as_str()), (Some(0), ""), "{command}");
    }
    let ran = bench.shell("$OCSC learn train.npy --filters 4 --size 5 --out m2.safetensors 2>/dev/full").ok();
    assert!(ran.stdout.contains("all passes made"));
    bench.shell("$OCSC --help > /dev/full");
}

#[test]
fn a_full_disk_keeps_the_previous_model() {
    let bench = Bench::with_model();
    std::fs::create_dir(bench.path("tiny")).unwrap();
    let mounted = bench.shell("mount -t tmpfs -o size=64k tmpfs tiny");
    if mounted.code != Some(0) {
        eprintln!("skipped: mounting a small file system was refused");
        return;
    }
    let unmount = Unmount(&bench);
    std::fs::copy(bench.path("m.safetensors"), bench.path("tiny/m.safetensors")).unwrap();
    // A checkpoint holds the statistics, far more than 64 kB.
    let call = "train.npy --filters 16 --size 5 --beta 0.1 --checkpoint-every 1 --threads 1 --out tiny/m.safetensors";
    let ran = bench.run(&format!("learn {call}"));
    ran.refused(1, &["tiny/m.safetensors", "No space left"]);
    assert!(bench.read("tiny/m.safetensors") == bench.read("m.safetensors"));
    assert!(bench.names("tiny").iter().eq(["m.safetensors"]));
    bench.write("tiny/filler", &[0; 40_000]);
    let _ = std::fs::write(bench.path("tiny/filler2"), [0; 40_000]);
    let codes = bench.run("code m.safetensors test.npy --out tiny");
    assert_eq!(codes.code, Some(1), "{}", codes.stdout);
    assert!(codes.stderr.contains("tiny/test-000"), "{}", codes.stderr);
    drop(unmount);
}

/// Gives the mount back, also when the test fails.
struct Unmount<'a>(&'a Bench);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        self.0.shell("umount -l tiny");
    }
}
