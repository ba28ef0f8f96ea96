//! The processes that `compare` and `reproduce` start: how they end, what their end is taken for, and that none is left.

use crate::common::Bench;
use serde_json::Value;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Long enough to be met at work; short when nobody ends it.
const COMPARE: &str = "compare train.npy --test test.npy --methods ocsc --seeds 1 --pictures 0 --filters 8 --size 5 --beta 0.05 \
                       --passes 1000000 --time-limit 4 --threads 1 --out c";
const CELL: &str = "c/runs/compare/ocsc-seed0.json";

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// The processes that have this parent.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|process| stat(*process).is_some_and(|(_, of)| of == parent)).collect()
}

/// Whether it is there and no mere entry that nobody has waited for.
fn lives(process: u32) -> bool {
    stat(process).is_some_and(|(state, _)| state != 'Z')
}

/// The state and the parent of a process.
fn stat(process: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A comparison whose only run is at work, and the process of that run.
fn at_work(bench: &Bench, compare: &str) -> (Child, u32) {
    let log = bench.path("c/runs/compare/ocsc-seed0.jsonl");
    // That of a run that was cut short.
    let _ = std::fs::remove_file(&log);
    let parent = bench.spawn_words(compare);
    wait_until("no run at work", || std::fs::metadata(&log).is_ok_and(|log| log.len() > 2000));
    let runs = children(parent.id());
    assert_eq!(runs.len(), 1, "{runs:?}");
    (parent, runs[0])
}

#[test]
fn interrupts_are_passed_on_and_leave_no_process() {
    let bench = Bench::with_data(20);
    for name in ["INT", "TERM", "HUP"] {
        let (mut parent, run) = at_work(&bench, COMPARE);
        signal(parent.id(), name);
        assert_eq!(parent.wait().unwrap().code(), Some(130), "{name}");
        assert!(!lives(run), "{name}");
        let stderr = bench.text("spawned.stderr");
        assert!(stderr.contains("the same command goes on from here"), "{stderr}");
        assert!(!bench.path(CELL).exists() && !bench.path("c/report.html").exists(), "{name}");
    }
    // What was cut short is made again, from the beginning.
    bench.run(COMPARE).ok();
    assert!(bench.path(CELL).exists() && bench.path("c/report.html").exists());
    super::log::check(&bench.log("c/runs/compare/ocsc-seed0.jsonl"));
}

#[test]
fn a_run_dies_with_who_started_it() {
    let bench = Bench::with_data(20);
    let (mut parent, run) = at_work(&bench, &COMPARE.replace("--time-limit 4", "--time-limit 600"));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let start = Instant::now();
    while lives(run) && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let went_on = lives(run);
    if went_on {
        signal(run, "KILL");
    }
    assert!(!went_on, "the run goes on without who started it");
    assert!(!bench.path(CELL).exists());
}

#[test]
fn a_run_that_someone_ends_has_failed_and_is_made_again() {
    let bench = Bench::with_data(20);
    for (name, number) in [("KILL", 9), ("ABRT", 6)] {
        let (mut parent, run) = at_work(&bench, COMPARE);
        signal(run, name);
        assert_eq!(parent.wait().unwrap().code(), Some(1), "{name}");
        let stderr = bench.text("spawned.stderr");
        assert!(stderr.contains("1 of 1 run failed") && stderr.contains(&format!("signal: {number}")), "{stderr}");
        assert!(!stderr.contains("out of memory"), "{stderr}");
        assert!(!bench.path(CELL).exists(), "{name} is kept as a result");
    }
    let ran = bench.run(COMPARE).ok();
    assert!(ran.stderr.contains("1 of 1: ocsc, seed 0"), "{}", ran.stderr);
    let cell: Value = serde_json::from_str(&bench.text(CELL)).unwrap();
    assert_eq!(cell["outcome"], "done");
}

#[test]
fn a_run_that_is_refused_the_memory_is_a_result() {
    let bench = Bench::with_data(4);
    let compare = "compare train.npy --test test.npy --methods ocsc-paper --seeds 1 --filters 300 --size 5 --memory-limit 17MB --out c";
    let ran = bench.run(compare).ok();
    assert!(ran.stderr.contains("out of memory"), "{}", ran.stderr);
    let cell: Value = serde_json::from_str(&bench.text("c/runs/compare/ocsc-paper-seed0.json")).unwrap();
    let need = cell["outcome"]["out-of-memory"]["need"].as_u64();
    assert!(need.is_some_and(|need| need > 17_000_000), "{cell}");
    assert!(!bench.path("c/runs/compare/ocsc-paper-seed0.refusal").exists());
    // Words of others that sound like it are not taken for it.
    let named = "many need 9 GB, more than the 8 GB that are free.npy";
    let words = ["compare", named, "--test", "test.npy", "--methods", "ocsc", "--seeds", "1", "--out", "d"];
    bench.run_words(&words).failed(1, &["1 of 1 run failed", "more than the"]);
    assert!(!bench.path("d/runs/compare/ocsc-seed0.json").exists());
}

#[test]
fn all_seeds_are_tested_on_the_same_samples() {
    let bench = Bench::with_data(12);
    let common = "train.npy --test-fraction 0.3 --filters 4 --size 5 --beta 0.1 --threads 1";
    bench.run(&format!("compare {common} --methods ocsc,ocsc-paper --seeds 3 --seed 5 --pictures 0 --out c")).ok();
    // The range of the test set is the peak of its PSNR; a learner that is given the same split tests on the same.
    let peak = |log: &str| bench.log(log).iter().rev().find_map(|line| line["psnr_peak"].as_f64()).unwrap();
    bench.run(&format!("learn {common} --seed 5 --out m --log l.jsonl")).ok();
    for seed in [5, 6, 7] {
        assert_eq!(peak(&format!("c/runs/compare/ocsc-seed{seed}.jsonl")), peak("l.jsonl"), "{seed}");
        assert_eq!(peak(&format!("c/runs/compare/ocsc-paper-seed{seed}.jsonl")), peak("l.jsonl"), "{seed}");
    }
    bench.run(&format!("learn {common} --seed 6 --out m --log l.jsonl")).ok();
    assert!(peak("c/runs/compare/ocsc-seed6.jsonl") != peak("l.jsonl"), "by itself, the seed decides the split");
    let cell: Value = serde_json::from_str(&bench.text("c/runs/compare/ocsc-seed7.json")).unwrap();
    let words: Vec<&str> = cell["words"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(words.windows(2).any(|pair| pair == ["--split-seed", "5"]), "{words:?}");
    assert!(bench.text("c/report.html").contains("--split-seed 5"));
    bench.run("learn train.npy --split-seed 3 --out x").refused(2, &["--test-fraction"]);
}

#[test]
fn nothing_is_bold_without_a_test() {
    let bench = Bench::with_data(4);
    let compare = "compare train.npy --test test.npy --methods ocsc,ocsc-paper --pictures 0 --filters 4 --size 5 --beta 0.1 --threads 1";
    bench.run(&format!("{compare} --seeds 1 --out one")).ok();
    assert!(!bench.text("one/report.html").contains("<td><strong>"));
    bench.run(&format!("{compare} --seeds 2 --out two")).ok();
    assert!(bench.text("two/report.html").contains("<td><strong>"));
}
