//! `cargo xtask test`: the one command that checks everything, here and in continuous integration; and what else developers
//! run.

mod arrows;
mod counts;
mod faults;
mod fuzz;
mod gallery;
mod mpi;
mod new_setting;
mod packages;
mod python;
mod site;

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str =
    "usage: cargo xtask test       format, lint, document and test the whole workspace, and the Python package
       cargo xtask generate   write the files that the declarations of settings make: a type stub, docs/settings.md
       cargo xtask setting    make the two edits of CONTRIBUTING.md for a new setting to a copy, and look for the setting
       cargo xtask arrows     check that the modules of a crate know each other in one direction only
       cargo xtask counts     count the instructions of learning and coding, and compare them with the record; --renew: write it
       cargo xtask wheel      make the Python package's wheel in target/wheels, and try it with the oldest and the newest Python here
       cargo xtask dist       make a tarball of the program in target/dist, with completions, manual pages and checksums
       cargo xtask site       build the site in target/site, run its examples and check its links; --draft: run no example
       cargo xtask faults     make system calls fail, thousands of them, and look at what is left; --short: some dozens
       cargo xtask fuzz [SECONDS] [TARGET...]    damage 50,000 files, then fuzz every reader (or these) for so long each
       cargo xtask dictionaries    learn the filters that restoration starts from, from dead leaves and synthetic signals, and write them
       cargo xtask gallery    learn from the shared data and write docs/gallery.md and its pictures";

#[expect(clippy::print_stderr, reason = "a program for developers")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.first().map(String::as_str) {
        Some("test") => test(),
        Some("generate") => python::generate(),
        Some("setting") => new_setting::test().map(|skipped| skipped.into_iter().for_each(say)),
        Some("arrows") => arrows::run(),
        Some("counts") => counts::run(&words[1..]),
        Some("wheel") => packages::wheel(),
        Some("dist") => packages::dist(),
        Some("site") => site::run(&words[1..]),
        Some("faults") => faults::run(&words[1..]),
        Some("fuzz") => fuzz::run(&words[1..]),
        Some("dictionaries") => {
            step("dictionaries", cargo(&["run", "--release", "-p", "ocsc", "--example", "dictionaries"]))
        }
        Some("gallery") => gallery::run(&words[1..]),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Everything a change must pass, the quick checks first.
fn test() -> Result<()> {
    let mut skipped = Vec::new();
    step("formatting", cargo(&["fmt", "--all", "--check"]))?;
    say("\n== arrows between modules");
    arrows::run()?;
    let everything = everything();
    if !mpi::is_there() {
        skipped.push(mpi::ABSENT);
    }
    let mut clippy = cargo(&["clippy"]);
    step("clippy", clippy.args(&everything).args(["--all-targets", "--", "-D", "warnings"]))?;
    let mut doc = cargo(&["doc", "--no-deps", "--document-private-items"]);
    step("rustdoc", doc.args(&everything).env("RUSTDOCFLAGS", "-D warnings"))?;
    if !data().exists() {
        skipped.push("tests on real data: ../shared/data is absent (set OCSC_DATA to a folder like it)");
    }
    if !has_browser() {
        skipped.push("the live page in a browser: no Chromium here (on Debian: apt-get install chromium)");
    }
    // Clippy has checked the examples and benchmarks; to build them would take as long as the tests.
    let tests = ["--lib", "--bins", "--tests"];
    step("unit and integration tests", cargo(&["test"]).args(&everything).args(tests))?;
    step("examples in comments", cargo(&["test", "--doc"]).args(&everything))?;
    skipped.extend(counts::test()?);
    say("\n== injected faults");
    skipped.extend(faults::test()?);
    skipped.extend(python::test()?);
    skipped.extend(new_setting::test()?);
    say("\nall checks passed");
    for what in skipped {
        say(&format!("skipped: {what}"));
    }
    Ok(())
}

/// What is built and tested, with what is optional: features only add.
fn everything() -> Vec<&'static str> {
    let mut words = vec!["--workspace", "--features", "ocsc/ndarray"];
    if !mpi::is_there() {
        words.extend(["--exclude", "ocsc-mpi"]);
    }
    words
}

/// Whether there is a browser for the tests of the live page.
fn has_browser() -> bool {
    let answers = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().any(answers)
}

/// The real data, beside the workspace unless the environment says otherwise.
fn data() -> std::path::PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    std::env::var_os("OCSC_DATA").map_or(beside, Into::into)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(root());
    command
}

/// The workspace's folder.
fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn step(name: &str, command: impl std::borrow::BorrowMut<Command>) -> Result<()> {
    let mut command = command;
    say(&format!("\n== {name}"));
    let clock = Instant::now();
    let status = command.borrow_mut().status().with_context(|| format!("{name}: cannot be started"))?;
    if !status.success() {
        bail!("{name} failed");
    }
    say(&format!("== {name}: {:.0} s", clock.elapsed().as_secs_f64()));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program for developers")]
fn say(text: &str) {
    println!("{text}");
}
