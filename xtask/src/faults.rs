//! `cargo xtask faults [--short]`: makes system calls of small runs fail, one per run and every one in turn, and looks at what
//! is left.
//!
//! A clean run under `strace` counts the calls that the program makes after it has been loaded. Then, for every call and every
//! error, a run is started in a folder of its own whose N-th call fails (`strace -e inject`). `strace` counts the calls of each
//! thread by itself, so the same N may fail in several threads of a run. A short write cannot be had that way, for an injected
//! result is a lie: nothing would be written. It is had from the kernel, by a limit on the size of files, which cuts the write
//! that crosses it and refuses the next one; the limits go through all sizes that the files of a run have.
//!
//! What must hold after each is in [`scenario`]: files are the old or the new ones, nothing else is in the folder, and a run that
//! goes on ends where one without a fault does. A run may end well in spite of the fault (a call that a signal interrupted is
//! made again, a line for the person in front is lost): then its results must be those of the clean run.

mod scenario;
mod trace;

use crate::{cargo, mpi, say, step};
use anyhow::{Context, Result, ensure};
use scenario::{Ended, Scenario};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to say where there is no `strace`.
const ABSENT: &str =
    "injected faults: no strace here (on Debian: apt-get install strace; as root this command would have done it)";

/// Names the program to test, if not the one that cargo builds.
const PROGRAM: &str = "OCSC_PROGRAM";

/// The calls that fail; those in one line are the same to us.
const CALLS: [&str; 8] =
    ["write", "fsync", "fdatasync", "rename,renameat,renameat2", "openat", "ftruncate", "statx", "mmap"];
const ERRORS: [&str; 4] = ["ENOSPC", "EIO", "ENOMEM", "EINTR"];

/// Limits on the size of files are this many bytes apart.
const SIZE_STEP: u64 = 48;

/// So many characters are shown of what went wrong.
const MOST_WORDS: usize = 600;

/// So many faults of each scenario are enough for the short form.
const SHORT: usize = 12;

/// What goes wrong in a run.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The N-th of these calls of a thread fails; with a file, only its calls count.
    Call { name: &'static str, error: &'static str, nth: usize, file: Option<&'static str> },
    /// No file may be larger than this.
    Size(u64),
}

/// What came of all runs.
#[derive(Default)]
struct Tally {
    injected: usize,
    /// Runs that made fewer calls than the clean one.
    missed: usize,
    failures: usize,
}

/// The long form, or with `--short` some dozens of faults.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let short = match words {
        [] => false,
        [word] if word == "--short" => true,
        _ => anyhow::bail!("usage: cargo xtask faults [--short]"),
    };
    ensure!(is_there(), "{ABSENT}");
    if std::env::var_os(PROGRAM).is_none() {
        step("build", cargo(&["build", "-p", "ocsc-cli"]))?;
    }
    inject(short)
}

/// The short form, as a part of all checks. Says why it could not be run, if so.
pub(crate) fn test() -> Result<Option<&'static str>> {
    if !is_there() {
        return Ok(Some(ABSENT));
    }
    inject(true)?;
    Ok(None)
}

/// Whether there is an `strace` that may trace, after installing it where that is allowed.
fn is_there() -> bool {
    let works = || {
        let mut command = Command::new("strace");
        let traced = command.args(["-qq", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
        traced.status().is_ok_and(|status| status.success())
    };
    works() || (mpi::is_root() && mpi::install("strace", &["strace"]) && works())
}

fn inject(short: bool) -> Result<()> {
    let built = crate::python::target().join("debug/ocsc");
    let program = std::env::var_os(PROGRAM).map_or(built, PathBuf::from);
    let program = program.canonicalize().with_context(|| program.display().to_string())?;
    let folder = std::env::temp_dir().join(format!("ocsc-faults-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = inject_in(&folder, &program, short);
    std::fs::remove_dir_all(&folder)?;
    let tally = done?;
    say(&format!(
        "{} faults injected ({} runs ended before theirs), {} failures",
        tally.injected, tally.missed, tally.failures
    ));
    ensure!(tally.failures == 0, "{} of {} faults did harm", tally.failures, tally.injected);
    Ok(())
}

fn inject_in(folder: &Path, program: &Path, short: bool) -> Result<Tally> {
    let scenarios = scenario::all(folder, program)?;
    let mut jobs = Vec::new();
    for scenario in &scenarios {
        let mut faults = faults(scenario, folder, program, short)?;
        if short {
            let apart = faults.len().div_ceil(SHORT).max(1);
            faults = faults.into_iter().step_by(apart).collect();
        }
        say(&format!("{}: {} faults", scenario.name, faults.len()));
        jobs.extend(faults.into_iter().map(|fault| (scenario, fault)));
    }
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let work = |worker: usize| {
        let place = folder.join(format!("worker-{worker}"));
        while let Some((scenario, fault)) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
            let outcome = try_fault(scenario, fault, &place, program);
            let Ok(mut tally) = tally.lock() else { return };
            match outcome {
                Ok(false) => tally.missed += 1,
                Ok(true) => tally.injected += 1,
                Err(error) => {
                    tally.injected += 1;
                    let why: String = format!("{error:#}").chars().take(MOST_WORDS).collect();
                    say(&format!("  {}, {fault:?}: {why}", scenario.name));
                    tally.failures += 1;
                }
            }
            if tally.injected % 500 == 0 {
                say(&format!("  {} of {}, {} failures", tally.injected, jobs.len(), tally.failures));
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|worker| drop(scope.spawn(move || work(worker)))));
    tally.into_inner().map_err(|_| anyhow::anyhow!("a worker ended early"))
}

/// All faults of a scenario, found by a clean run. The short form leaves out those that are no failures of outputs.
fn faults(scenario: &Scenario, folder: &Path, program: &Path, short: bool) -> Result<Vec<Fault>> {
    let place = folder.join("clean");
    scenario.prepare(&place)?;
    let calls = CALLS.join(",");
    let trace = run_traced(&place, program, &scenario.words, &["-e", &format!("trace={calls}")])?;
    ensure!(trace.code == Some(0), "{}: a clean run fails under strace: {}", scenario.name, trace.stderr);
    let calls = trace::Calls::of(&trace.lines, scenario.data);
    let mut faults = Vec::new();
    for name in CALLS.into_iter().filter(|name| !(short && *name == "mmap")) {
        for nth in calls.range(name) {
            faults.extend(ERRORS.map(|error| Fault::Call { name, error, nth, file: None }));
        }
    }
    if !short {
        for nth in 1..=calls.of_data {
            let file = Some(scenario.data);
            faults.extend(ERRORS.map(|error| Fault::Call { name: "openat", error, nth, file }));
        }
    }
    let largest = scenario.largest_output(&place)?;
    faults.extend((0..largest).step_by(SIZE_STEP as usize).map(Fault::Size));
    Ok(faults)
}

/// What a run left.
pub(crate) struct Ran {
    /// None if it was ended by force.
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// The trace.
    lines: String,
}

/// Makes one run with a fault, and checks. False if it ended before its fault.
fn try_fault(scenario: &Scenario, fault: &Fault, place: &Path, program: &Path) -> Result<bool> {
    scenario.prepare(place)?;
    let ran = match fault {
        Fault::Size(limit) => run_limited(place, program, &scenario.words, *limit)?,
        Fault::Call { name, error, nth, file } => {
            let (trace, inject) = (format!("trace={name}"), format!("inject={name}:error={error}:when={nth}"));
            let mut options = vec!["-e", trace.as_str(), "-e", inject.as_str()];
            // As the program names it, who is in the same folder.
            options.extend(file.iter().flat_map(|file| ["-P", file]));
            run_traced(place, program, &scenario.words, &options)?
        }
    };
    if matches!(fault, Fault::Call { .. }) && !ran.lines.contains("(INJECTED)") {
        return Ok(false);
    }
    let is_data = ran.lines.lines().any(|line| line.contains("(INJECTED)") && line.contains(scenario.data));
    let ended = ended(&ran, fault, is_data)?;
    scenario
        .check(place, program, &ended)
        .with_context(|| format!("exit code {:?}: {}", ran.code, ran.stderr.trim()))?;
    Ok(true)
}

/// Checks how the run ended: well, or with exit code 1 and one line that says why, or with 3 if a sample could not be read.
fn ended(ran: &Ran, fault: &Fault, is_data: bool) -> Result<Ended> {
    let stderr = ran.stderr.trim();
    ensure!(!stderr.contains("panicked"), "panicked: {stderr}");
    let is_memory = matches!(fault, Fault::Call { name: "mmap", .. });
    match ran.code {
        Some(0) => Ok(Ended::Well),
        Some(1) => {
            let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
            ensure!(errors == 1, "expected one line that says why, found {errors}: {stderr}");
            Ok(Ended::Refused)
        }
        Some(3) if is_data => Ok(Ended::PassedOver),
        // Rust ends a program that gets no memory by a signal, after a line about it.
        Some(134) if is_memory && stderr.contains("memory allocation of") => Ok(Ended::OutOfMemory),
        other => anyhow::bail!("expected exit code 0 or 1, found {other:?}: {stderr}"),
    }
}

fn run_traced(place: &Path, program: &Path, words: &[String], options: &[&str]) -> Result<Ran> {
    let trace = place.with_extension("trace");
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120", "strace", "-f", "--seccomp-bpf", "-qq", "-o"]).arg(&trace).args(options);
    let ran = finished(command.arg(program).args(words), place)?;
    Ok(Ran { lines: std::fs::read_to_string(&trace).unwrap_or_default(), ..ran })
}

fn run_limited(place: &Path, program: &Path, words: &[String], limit: u64) -> Result<Ran> {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "120", "prlimit", &format!("--fsize={limit}:{limit}")]);
    finished(command.arg(program).args(words), place)
}

/// Runs a command in a folder; its output is kept.
pub(crate) fn finished(command: &mut Command, place: &Path) -> Result<Ran> {
    command.env("RUST_BACKTRACE", "0");
    let output = command.current_dir(place).stdin(Stdio::null()).output().context("cannot be started")?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    // The exit code of `timeout` tells of signals as shells do; without one, `timeout` itself was killed.
    Ok(Ran { code: output.status.code(), stderr, lines: String::new() })
}

/// The files of a folder and those below it, by their names in it.
pub(crate) fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path)?.into_iter().map(|(inner, path)| (format!("{name}/{inner}"), path)));
        } else {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}
