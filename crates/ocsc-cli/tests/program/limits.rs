//! Machines at their limits: no more threads, a disk that fails. The run goes on with less, or ends with a checkpoint.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use crate::common::{Bench, Ran, dictionary_bytes, pictures};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs `ocsc` where the system gives so many threads more, the first one included: as a user of its own if this is root, whom
/// the system refuses nothing.
fn with_threads(bench: &Bench, threads: usize, words: &str) -> Ran {
    std::fs::set_permissions(bench.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={threads}:{threads}")).arg(env!("CARGO_BIN_EXE_ocsc")).current_dir(bench.path(""));
    command.args(words.split_whitespace());
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0";
    if is_root {
        command.uid(2_000_000 + std::process::id()).gid(65534);
    }
    Ran::new(words.to_owned(), &command.output().unwrap())
}

#[test]
fn a_run_goes_on_with_fewer_threads_or_none() {
    let bench = Bench::with_data(6);
    let settings = "--filters 4 --size 5 --beta 0.1 --test test.npy";
    bench.run(&format!("learn train.npy {settings} --threads 4 --out whole.safetensors")).ok();
    let whole = dictionary_bytes(&bench.path("whole.safetensors"));
    // The signal's thread and one or two to compute with; none at all.
    for (threads, says) in [(1, "goes on without"), (3, "go on")] {
        std::fs::remove_file(bench.path("m.safetensors")).ok();
        let ran = with_threads(&bench, threads, &format!("learn train.npy {settings} --threads 4 --out m.safetensors"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("4 threads") && ran.stderr.contains(says), "{}", ran.stderr);
        assert!(ran.stderr.contains("read one by one"), "{}", ran.stderr);
        assert!(dictionary_bytes(&bench.path("m.safetensors")) == whole);
    }
    let ran = with_threads(&bench, 1, "code m.safetensors train.npy --out codes");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = with_threads(&bench, 1, "evaluate m.safetensors train.npy --json");
    assert_eq!(ran.json()["samples"], 6);
}

/// Runs `ocsc` while a system call on one file fails; none where there is no strace, or it may not trace.
fn failing(bench: &Bench, file: &str, inject: &str, words: &str) -> Option<Ran> {
    let strace = |command: &mut Command| command.current_dir(bench.path("")).output().ok();
    let works = strace(Command::new("strace").args(["-f", "-qq", "-o", "trace", "true"]));
    if !works.is_some_and(|output| output.status.success()) {
        eprintln!("skipped: there is no strace that may trace");
        return None;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "trace", "-e", inject]);
    // As it is named, and as the system knows it.
    let real = std::fs::canonicalize(bench.path(file)).unwrap();
    command.arg("-P").arg(file).arg("-P").arg(real);
    command.arg(env!("CARGO_BIN_EXE_ocsc")).args(words.split_whitespace());
    Some(Ran::new(words.to_owned(), &strace(&mut command).unwrap()))
}

/// The last photo that is visited cannot be read: by the disk's fault, the run ends with a checkpoint and goes on when the disk is
/// well; by the file's, it is passed over.
#[test]
fn a_failing_disk_ends_a_run_with_a_checkpoint() {
    let bench = Bench::new();
    pictures(&bench, "photos", 5, 1);
    let last = ocsc::train::visiting_order(5, 0, 0)[4] + 1;
    let settings = "--filters 4 --size 5 --beta 0.3 --threads 1";
    bench.run(&format!("learn photos {settings} --out whole.safetensors")).ok();
    let file = &*format!("photos/{last}.png");
    let learn =
        |inject: &str| failing(&bench, file, inject, &format!("learn photos {settings} --force --out m.safetensors"));
    let Some(ran) = learn("inject=read:error=EIO") else { return };
    ran.refused(1, &[&format!("{file}: Input/output error"), "stopped after 4 samples", "is a checkpoint"]);
    bench.run("learn photos --resume m.safetensors --threads 1").ok();
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == dictionary_bytes(&bench.path("whole.safetensors")));
    for inject in ["inject=openat:error=EMFILE", "inject=openat:error=ENOMEM"] {
        learn(inject).unwrap().refused(1, &[&format!("{file}: "), "stopped after 4 samples"]);
    }
    learn("inject=openat:error=EACCES").unwrap().passed_over();
    // A failure that passes is no failure.
    learn("inject=read:error=EIO:when=4").unwrap().ok();
    for command in ["evaluate whole.safetensors photos", "code whole.safetensors photos --out codes"] {
        let ran = failing(&bench, file, "inject=read:error=EIO", command).unwrap();
        ran.refused(1, &[&format!("{file}: Input/output error")]);
    }
}
