//! Runs that are cut short: Ctrl-C, a kill, a time limit, a failure; and that going on gives the same bits.

use crate::common::{Bench, dictionary_bytes, noise};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const RUN: &str = "train.npy --beta 0.1 --passes 12 --seed 4";

/// The dictionary of the run without interruption.
fn whole() -> &'static [u8] {
    static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let bench = Bench::with_data(50);
        bench.learn(&format!("{RUN} --out m.safetensors")).ok();
        dictionary_bytes(&bench.path("m.safetensors"))
    })
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Goes on with the checkpoint and compares; the log must read like that of one run.
fn goes_on(bench: &Bench) {
    let info = bench.run("info m.safetensors").ok();
    assert!(info.stdout.contains("yes: ") && info.stdout.contains("--resume"), "{}", info.stdout);
    assert!(bench.run("info m.safetensors --json").ok().json()["checkpoint"]["samples"].as_u64().unwrap() < 600);
    // A checkpoint is a model.
    bench.run("evaluate m.safetensors test.npy").ok();
    bench.run("learn train.npy --resume m.safetensors --log run.jsonl --threads 2").ok();
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == whole());
    let lines = bench.log("run.jsonl");
    super::log::check(&lines);
    let steps = lines.iter().filter(|l| l["event"] == "step").map(|l| l["step"].as_u64().unwrap());
    assert!(steps.eq(1..=600));
    assert_eq!(lines.iter().filter(|l| l["event"] == "pass").count(), 12);
    bench.run("learn train.npy --resume m.safetensors").refused(1, &["m.safetensors", "a finished model"]);
}

#[test]
fn ctrl_c_and_termination_leave_a_checkpoint() {
    for name in ["INT", "TERM"] {
        let bench = Bench::with_data(50);
        let mut child = bench.spawn(&format!("{RUN} --log run.jsonl --out m.safetensors"));
        bench.wait_for_lines("run.jsonl", 5);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(1), "{name}");
        let stderr = bench.text("spawned.stderr");
        for part in
            ["interrupted after", "m.safetensors is a checkpoint", "ocsc learn train.npy --resume m.safetensors"]
        {
            assert!(stderr.contains(part), "{stderr}");
        }
        assert!(!stderr.contains("panicked"));
        goes_on(&bench);
    }
}

#[test]
fn a_kill_leaves_the_last_checkpoint() {
    let bench = Bench::with_data(50);
    let mut child = bench.spawn(&format!("{RUN} --checkpoint-every 1 --log run.jsonl --out m.safetensors"));
    bench.wait_for_lines("run.jsonl", 8);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None);
    goes_on(&bench);
}

#[test]
fn a_kill_between_checkpoints_repeats_the_lost_steps() {
    let bench = Bench::with_data(50);
    let mut child = bench.spawn(&format!("{RUN} --checkpoint-every 5 --log run.jsonl --out m.safetensors"));
    bench.wait_for_lines("run.jsonl", 9);
    child.kill().unwrap();
    child.wait().unwrap();
    goes_on(&bench);
}

#[test]
fn a_time_limit_is_no_failure() {
    let bench = Bench::with_data(50);
    let ran = bench.learn(&format!("{RUN} --time-limit 0.000001 --log run.jsonl --out m.safetensors")).ok();
    assert!(ran.stdout.contains("time limit"), "{}", ran.stdout);
    assert!(ran.stderr.contains("to go on: ocsc learn train.npy --resume m.safetensors"), "{}", ran.stderr);
    goes_on(&bench);
    bench.learn("train.npy --time-limit 1e300 --limit 1 --out m.safetensors").ok();
}

#[test]
fn other_data_cannot_go_on_in_the_middle_of_a_pass() {
    let bench = Bench::with_data(4);
    bench.learn("train.npy --time-limit 1e-9 --out m.safetensors").ok();
    let before = bench.read("m.safetensors");
    let ran = bench.run("learn test.npy --resume m.safetensors");
    ran.refused(1, &["data set", "expected the 4 samples", "found 2"]);
    assert!(before == bench.read("m.safetensors"));
}

#[test]
fn a_failure_in_the_middle_keeps_what_was_learned() {
    let bench = Bench::with_data(50);
    let good = bench.read("train.npy");
    let mut bad = good.clone();
    // A NaN in the last sample; the seed decides when it is met.
    let at = bad.len() - 4;
    bad[at..].copy_from_slice(&f32::NAN.to_le_bytes());
    bench.write("train.npy", &bad);
    let ran = bench.learn(&format!("{RUN} --strict --log run.jsonl --out m.safetensors"));
    ran.refused(1, &["train.npy[49]", "finite", "m.safetensors is a checkpoint"]);
    bench.write("train.npy", &good);
    goes_on(&bench);
    // Numbers that would overflow in the mathematics: no sample is passed over that can be read.
    bad[at..].copy_from_slice(&1e30_f32.to_le_bytes());
    bench.write("train.npy", &bad);
    let ran = bench.learn(&format!("{RUN} --log run.jsonl --out m.safetensors"));
    ran.refused(1, &["train.npy[49]", "values up to 1e12 in f32", "m.safetensors is a checkpoint"]);
    bench.write("train.npy", &good);
    goes_on(&bench);
}

/// Killed at random moments, more than fifty times, and resumed each time.
#[test]
fn kills_at_any_moment_leave_a_loadable_checkpoint() {
    let bench = Bench::with_data(50);
    bench.learn(&format!("{RUN} --out whole.safetensors")).ok();
    let whole = dictionary_bytes(&bench.path("whole.safetensors"));
    let mut next = noise(7);
    let (mut kills, mut finished) = (0, 0);
    let leftovers = || {
        let names = std::fs::read_dir(bench.path("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(".ocsc-")).count()
    };
    while kills < 55 || finished == 0 {
        let resumed = bench.path("m.safetensors").exists();
        let every = if kills % 2 == 0 { "1" } else { "0.00005min" };
        let what =
            if resumed { "train.npy --resume m.safetensors".to_owned() } else { format!("{RUN} --out m.safetensors") };
        let mut child = if resumed {
            bench.spawn_words(&format!("learn {what} --threads 1 --checkpoint-every {every}"))
        } else {
            bench.spawn(&format!("{what} --checkpoint-every {every}"))
        };
        // Up to 60 ms, or to the end once there were enough.
        let patience = Duration::from_micros((30_000.0 * (1.0 + next())) as u64);
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() && (kills >= 55 || start.elapsed() < patience) {
            std::thread::sleep(Duration::from_micros(300));
        }
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "{}", bench.text("spawned.stderr"));
                assert!(dictionary_bytes(&bench.path("m.safetensors")) == whole);
                std::fs::remove_file(bench.path("m.safetensors")).unwrap();
                finished += 1;
                assert_eq!(leftovers(), 0);
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                if bench.path("m.safetensors").exists() {
                    let info = bench.run("info m.safetensors --json").ok().json();
                    assert!(info["checkpoint"]["samples"].as_u64().unwrap() >= 1);
                }
            }
        }
    }
}

#[test]
fn a_finished_run_says_so() {
    let bench = Bench::with_data(2);
    bench.learn("train.npy --checkpoint-every 100 --out m.safetensors").ok();
    let before = bench.read("m.safetensors");
    let ran = bench.run("learn train.npy --resume m.safetensors");
    ran.refused(1, &["m.safetensors", "all 1 passes are made", "--passes 2"]);
    assert!(before == bench.read("m.safetensors"));
    bench.run("learn train.npy --resume m.safetensors --beta 2").refused(2, &["--resume", "--beta"]);
    bench.run("learn train.npy --resume m.safetensors --rho 2").refused(2, &["--resume", "--rho"]);
}
