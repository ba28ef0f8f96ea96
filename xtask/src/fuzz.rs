//! `cargo xtask fuzz [SECONDS] [TARGET...]`: damages files at random and counts them, then lets coverage-guided fuzzers work
//! on every reader for so many seconds each.
//!
//! The fuzzers are those of the folder `fuzz`; they need `cargo install cargo-fuzz` and take the nightly compiler if there is
//! one, else the stable one without sanitizers. What they find lies in `fuzz/artifacts/TARGET`: make a test of it.

use crate::{cargo, root, say, step};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files that are damaged at random.
const MUTATIONS: &str = "50000";
/// How long each fuzzer works unless the call says otherwise.
const SECONDS: u64 = 60;
/// Longer files find nothing that short ones do not.
const MAX_LEN: &str = "8192";

/// Runs it.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let seconds = words.first().and_then(|word| word.parse().ok());
    let wanted = &words[usize::from(seconds.is_some())..];
    let all = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        bail!("expected SECONDS and some of {}, found {unknown}", all.join(", "));
    }
    let mutations = ["test", "-p", "ocsc-cli", "--lib", "damaged_at_random", "--", "--nocapture"];
    step("mutations", cargo(&mutations).env("OCSC_MUTATIONS", MUTATIONS))?;
    let tool = Command::new("cargo-fuzz").arg("--version").stdout(Stdio::null()).status();
    if !tool.is_ok_and(|status| status.success()) {
        bail!("cargo-fuzz is not installed: expected `cargo install cargo-fuzz` before");
    }
    let mut findings = Vec::new();
    for target in all.iter().filter(|name| wanted.is_empty() || wanted.contains(name)) {
        if step(&format!("fuzzing {target}"), fuzzer(target, seconds.unwrap_or(SECONDS))?).is_err() {
            findings.push(target.as_str());
        }
    }
    if findings.is_empty() {
        say("\nno findings");
        return Ok(());
    }
    bail!("findings in fuzz/artifacts: {}; make tests of them", findings.join(", "))
}

/// The fuzzer of one target, which starts from the seeds and from what it found before.
fn fuzzer(target: &str, seconds: u64) -> Result<Command> {
    let folder = |name: &str| root().join("fuzz").join(name).join(target);
    std::fs::create_dir_all(folder("corpus")).context("fuzz/corpus: cannot be made")?;
    let mut command = Command::new("cargo");
    let nightly = Command::new("rustup").args(["run", "nightly", "rustc", "--version"]).output();
    if nightly.is_ok_and(|output| output.status.success()) {
        command.arg("+nightly");
    } else {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command.args(["fuzz", "run", "--sanitizer", "none", target]).args([folder("corpus"), folder("seeds")]);
    command.args(["--", &format!("-max_total_time={seconds}"), &format!("-max_len={MAX_LEN}")]);
    command.args(["-rss_limit_mb=1024", "-timeout=20", "-print_final_stats=1"]).current_dir(root());
    Ok(command)
}

/// The names of all targets, in order.
fn targets() -> Result<Vec<String>> {
    let folder: PathBuf = root().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| Path::new(stem).display().to_string()));
    }
    names.sort();
    Ok(names)
}
