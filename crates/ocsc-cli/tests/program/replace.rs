//! How files are replaced: links, modes, limits, interrupts; and a log that cannot be written.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use crate::common::{Bench, dictionary_bytes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn links_are_written_through() {
    let bench = Bench::with_model();
    std::fs::create_dir(bench.path("far")).unwrap();
    let links =
        [("m2", "far/m.safetensors"), ("d.png", "far/d.png"), ("run", "far/run.jsonl"), ("r.html", "far/r.html")];
    for (link, target) in links {
        symlink(target, bench.path(link)).unwrap();
    }
    bench.learn("train.npy --beta 0.1 --log run --out m2").ok();
    bench.run("show m2 --out d.png").ok();
    bench.run("report run --out r.html").ok();
    for (link, target) in links {
        assert!(bench.path(link).is_symlink() && bench.path(target).is_file(), "{link}");
    }
    assert!(dictionary_bytes(&bench.path("far/m.safetensors")) == dictionary_bytes(&bench.path("m.safetensors")));
    std::fs::create_dir(bench.path("codes")).unwrap();
    symlink("../far/code.npz", bench.path("codes/test-0000.npz")).unwrap();
    bench.run("code m2 test.npy --out codes").ok();
    assert!(bench.path("codes/test-0000.npz").is_symlink() && bench.path("far/code.npz").is_file());
    symlink("b", bench.path("a")).unwrap();
    symlink("a", bench.path("b")).unwrap();
    bench.learn("train.npy --out a").refused(1, &["--out a", "links"]);
}

#[test]
fn the_mode_of_a_file_stays() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    bench.run("show m.safetensors --out d.png").ok();
    let files = ["m.safetensors", "codes/test-0000.npz", "d.png"].map(|name| bench.path(name));
    for wanted in [0o600, 0o664] {
        files.iter().for_each(|path| set_mode(path, wanted));
        bench.learn("train.npy --beta 0.1 --out m.safetensors").ok();
        bench.run("code m.safetensors test.npy --out codes").ok();
        bench.run("show m.safetensors --out d.png").ok();
        for path in &files {
            assert_eq!(mode(path), wanted, "{}", path.display());
        }
    }
    files.iter().for_each(|path| set_mode(path, 0o444));
    let before = files.each_ref().map(|path| std::fs::read(path).unwrap());
    bench.learn("train.npy --out m.safetensors").refused(1, &["m.safetensors", "read-only", "chmod u+w"]);
    bench.run("code m.safetensors test.npy --out codes").refused(1, &["codes/test-0000.npz", "read-only"]);
    bench.run("show m.safetensors --out d.png").refused(1, &["d.png", "read-only"]);
    assert!(before == files.each_ref().map(|path| std::fs::read(path).unwrap()));
    bench.write("run.jsonl", b"");
    set_mode(&bench.path("run.jsonl"), 0o444);
    bench.learn("train.npy --log run.jsonl --out x").refused(1, &["run.jsonl", "read-only"]);
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_leaves_nothing() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors train.npy --out codes").ok();
    let before = bench.names("");
    // In blocks of 512 bytes: a log line fits, a model does not.
    for (limit, call, file) in [
        (1, "learn train.npy --filters 40 --size 5 --out m.safetensors", "m.safetensors"),
        (0, "learn train.npy --filters 4 --size 5 --out m.safetensors", "m.safetensors"),
        (0, "code m.safetensors train.npy --out codes", "codes/train-0000.npz"),
        (0, "show m.safetensors --out d.png", "d.png"),
    ] {
        let ran = bench.shell(&format!("ulimit -f {limit}; $OCSC {call} --quiet"));
        ran.failed(1, &[file, "File too large"]);
        assert_eq!(bench.names(""), before, "{call}");
    }
    bench.run("info m.safetensors").ok();
    let ran = bench.shell("ulimit -f 0; $OCSC reconstruct m.safetensors codes --out images");
    ran.failed(1, &["images/train-0000.npy", "File too large"]);
    assert!(bench.names("images").is_empty());
    assert_eq!(bench.names("codes").len(), 4);
}

#[test]
fn an_interrupted_reconstruct_leaves_whole_files_and_goes_on() {
    let bench = Bench::with_data(1);
    crate::common::write_npy(&bench.path("large.npy"), &crate::common::stack(60, 96, 96, 5));
    bench.learn("train.npy --beta 0.1 --out m.safetensors").ok();
    bench.run("code m.safetensors large.npy --beta 1 --out codes --tol 0.5").ok();
    let mut child = bench.spawn_words("reconstruct m.safetensors codes --out images");
    let start = Instant::now();
    while !bench.path("images/large-0001.npy").exists() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let code = child.wait().unwrap().code();
    assert!(bench.names("images").iter().all(|name| !name.starts_with('.')));
    let stderr = bench.text("spawned.stderr");
    // A machine may be so fast that it was done before the signal came.
    assert!(code == Some(0) || stderr.contains("--skip-existing goes on from here"), "{code:?}: {stderr}");
    bench.run("reconstruct m.safetensors codes --out images --skip-existing").ok();
    assert_eq!(bench.names("images").len(), 120);
}

#[test]
fn a_step_that_the_log_could_not_take_is_in_it_after_all() {
    // The log is full in the middle of a pass, so that a step is what it cannot take.
    let bench = Bench::with_data(11);
    let call = "train.npy --beta 0.1 --passes 5 --filters 1 --size 2 --threads 1";
    // A log of 8 kB is full after some steps; the model is smaller.
    let ran = bench.shell(&format!("ulimit -f 16; $OCSC learn {call} --log run.jsonl --out m.safetensors"));
    ran.failed(1, &["run.jsonl", "File too large"]);
    let info = bench.run("info m.safetensors --json").ok().json();
    let samples = info["checkpoint"]["samples"].as_u64().unwrap();
    assert!((2..55).contains(&samples), "{samples}");
    let steps = bench.log("run.jsonl").iter().filter(|l| l["event"] == "step").count() as u64;
    assert_eq!(steps, samples - 1, "the last step is not in the log");
    bench.run("learn train.npy --resume m.safetensors --log run.jsonl").ok();
    let lines = bench.log("run.jsonl");
    super::log::check(&lines);
    let steps = lines.iter().filter(|l| l["event"] == "step").map(|l| l["step"].as_u64().unwrap());
    assert!(steps.eq(1..=55));
    bench.run(&format!("learn {call} --out whole.safetensors")).ok();
    let [m, whole] = ["m.safetensors", "whole.safetensors"].map(|name| dictionary_bytes(&bench.path(name)));
    assert!(m == whole);
}

#[test]
fn a_log_that_cannot_be_looked_up_is_not_begun_anew() {
    let bench = Bench::with_data(4);
    if bench.shell("strace -qq -o /dev/null true").code != Some(0) {
        eprintln!("skipped: no strace that may trace (on Debian: apt-get install strace)");
        return;
    }
    bench.learn("train.npy --beta 0.1 --log run.jsonl --out m.safetensors --time-limit 1e-9").ok();
    let [model, log] = ["m.safetensors", "run.jsonl"].map(|name| bench.read(name));
    let step = log.split_inclusive(|b| *b == b'\n').next().unwrap();
    // The N-th look at the log fails, until there are no more.
    for nth in 1.. {
        bench.write("m.safetensors", &model);
        bench.write("run.jsonl", &log);
        let strace = format!("strace -f -qq -o trace -P run.jsonl -e trace=statx -e inject=statx:error=EIO:when={nth}");
        let ran = bench.shell(&format!("{strace} $OCSC learn train.npy --resume m.safetensors --log run.jsonl"));
        if !bench.text("trace").contains("(INJECTED)") {
            assert!(nth > 2, "the log was looked up {nth} times");
            return;
        }
        assert!(bench.read("run.jsonl").starts_with(step), "look {nth}: {}", ran.stderr);
    }
}
