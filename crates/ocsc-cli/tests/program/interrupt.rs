//! Runs that are cut short: Ctrl-C, a kill, a time limit, a failure; and that going on gives the same bits.

use crate::common::{Bench, dictionary_bytes, noise, stack, write_npy};
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
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}");
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

/// `timeout` signals the program and then its group.
#[test]
fn a_signal_that_comes_twice_at_once_counts_once() {
    let bench = Bench::with_data(50);
    let mut child = bench.spawn(&format!("{RUN} --log run.jsonl --out m.safetensors"));
    bench.wait_for_lines("run.jsonl", 5);
    for name in ["INT", "INT", "TERM"] {
        signal(&child, name);
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(bench.text("spawned.stderr").contains("m.safetensors is a checkpoint"));
    goes_on(&bench);
}

/// Before there is anything to save, a signal ends the program at once, but not without a word.
#[test]
fn a_signal_before_the_first_sample_is_answered() {
    for name in ["INT", "TERM"] {
        let bench = Bench::new();
        write_npy(&bench.path("train.npy"), &stack(40, 400, 400, 5));
        let mut child = bench.spawn_words("learn train.npy --test-fraction 0.1 --threads 1 --out m.safetensors");
        // What is said before the first sample is read.
        wait_until("a split", || bench.text("spawned.stderr").contains("held out"));
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}");
        let stderr = bench.text("spawned.stderr");
        let said = "error: interrupted before the first sample: nothing was learned";
        assert_eq!(stderr.matches(said).count(), 1, "{stderr}");
        assert!(!bench.path("m.safetensors").exists());
    }
}

/// Waits until something is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Many more samples than can be evaluated before a signal arrives.
fn many(bench: &Bench, name: &str, n: usize) {
    write_npy(&bench.path(name), &stack(n, 16, 16, 5));
}

/// The checkpoint is written before the evaluation, which ends at once and is made by the resumed run.
#[test]
fn ctrl_c_is_heard_during_an_evaluation() {
    for (name, settings) in [("INT", ""), ("TERM", "--test-every 7")] {
        let bench = Bench::with_data(50);
        many(&bench, "many.npy", 40_000);
        let run = "train.npy --beta 0.1 --seed 4 --test many.npy";
        let mut child = bench.spawn(&format!("{run} {settings} --log run.jsonl --out m.safetensors"));
        wait_until("an evaluation that is shown", || bench.text("spawned.stderr").contains("/40000"));
        assert!(bench.path("m.safetensors").exists(), "a checkpoint is written before");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{}", bench.text("spawned.stderr"));
        let stderr = bench.text("spawned.stderr");
        let (when, hint) = match settings {
            "" => ("interrupted during the evaluation, after 50 samples", "to evaluate the model: ocsc learn"),
            _ => ("interrupted after 7 samples", "to go on: ocsc learn"),
        };
        for part in [when, hint, "m.safetensors is a checkpoint"] {
            assert!(stderr.contains(part), "`{part}` is not in {stderr}");
        }
        let info = bench.run("info m.safetensors --json").ok().json();
        assert_eq!(info["checkpoint"]["samples"], if settings.is_empty() { 50 } else { 7 });
        // The hint is right; with fewer test samples, to be done sooner.
        bench.run("learn train.npy --test test.npy --resume m.safetensors --log run.jsonl --threads 2").ok();
        let lines = bench.log("run.jsonl");
        super::log::check(&lines);
        let steps = lines.iter().filter(|l| l["event"] == "step").map(|l| l["step"].as_u64().unwrap());
        assert!(steps.eq(1..=50));
        assert!(lines.last().unwrap()["test_objective"].is_number());
        bench.learn("train.npy --beta 0.1 --seed 4 --out whole.safetensors").ok();
        assert!(dictionary_bytes(&bench.path("m.safetensors")) == dictionary_bytes(&bench.path("whole.safetensors")));
    }
}

/// A kill, which nobody hears: the step that was evaluated is in the checkpoint and in the log, once.
#[test]
fn a_kill_during_an_evaluation_loses_no_step() {
    let bench = Bench::with_data(50);
    many(&bench, "many.npy", 40_000);
    let run = "train.npy --beta 0.1 --seed 4 --test many.npy --test-every 20";
    let mut child = bench.spawn(&format!("{run} --log run.jsonl --out m.safetensors"));
    wait_until("a checkpoint", || bench.path("m.safetensors").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    bench.run("learn train.npy --test test.npy --test-every 20 --resume m.safetensors --log run.jsonl").ok();
    let lines = bench.log("run.jsonl");
    let steps: Vec<_> = lines.iter().filter(|l| l["event"] == "step").collect();
    assert!(steps.iter().map(|l| l["step"].as_u64().unwrap()).eq(1..=50));
    assert!(steps[39]["test_objective"].is_number() && steps[38]["test_objective"].is_null());
}

/// Nothing of the batch is learned, and the run goes on bit for bit.
#[test]
fn ctrl_c_is_heard_within_a_large_batch() {
    let bench = Bench::new();
    many(&bench, "train.npy", 1_000);
    let run = "train.npy --batch 1000 --tol 0.001 --beta 0.1 --seed 4";
    let mut child = bench.spawn(&format!("{run} --out m.safetensors"));
    wait_until("a batch in the middle", || bench.text("spawned.stderr").contains("of the batch coded"));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130), "{}", bench.text("spawned.stderr"));
    let stderr = bench.text("spawned.stderr");
    assert!(stderr.contains("interrupted after 0 samples; m.safetensors is a checkpoint"), "{stderr}");
    assert_eq!(bench.run("info m.safetensors --json").ok().json()["checkpoint"]["visited"], 0);
    bench.run("learn train.npy --resume m.safetensors --threads 2").ok();
    bench.learn(&format!("{run} --out whole.safetensors")).ok();
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == dictionary_bytes(&bench.path("whole.safetensors")));
}

#[test]
fn ctrl_c_is_heard_by_every_command_that_takes_long() {
    let bench = Bench::with_model();
    many(&bench, "many.npy", 40_000);
    for (command, said, told) in [
        ("evaluate m.safetensors many.npy", "evaluating ", "nothing was written"),
        ("code m.safetensors many.npy --out codes", "coding ", "their codes are kept"),
        ("reconstruct m.safetensors codes --out back", "reconstructing ", "--skip-existing goes on"),
    ] {
        if command.starts_with("reconstruct") {
            // As many as were coded before the signal, and more.
            let first = std::fs::read_dir(bench.path("codes")).unwrap().next().unwrap().unwrap().path();
            let code = std::fs::read(first).unwrap();
            (0..20_000).for_each(|i| bench.write(&format!("codes/more-{i}.npz"), &code));
        }
        let mut child = bench.spawn_words(&format!("{command} --threads 1"));
        wait_until(said, || bench.text("spawned.stderr").contains(said));
        signal(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130), "{command}");
        let stderr = bench.text("spawned.stderr");
        assert!(stderr.contains("error: interrupted after ") && stderr.contains(told), "{stderr}");
    }
}

/// The figure of the summary, of the `end` line and of the plots is that of the model that was written.
#[test]
fn the_end_of_a_run_is_evaluated() {
    let bench = Bench::with_data(18);
    let settings = "--beta 0.1 --test test.npy --test-every 4 --json";
    let ran = bench.learn(&format!("train.npy {settings} --log run.jsonl --out m.safetensors")).ok();
    let evaluated = bench.run("evaluate m.safetensors test.npy --json").ok().json();
    assert_eq!(ran.json()["test"]["objective"], evaluated["objective"]);
    let lines = bench.log("run.jsonl");
    let tested: Vec<_> = lines.iter().filter(|l| l["test_objective"].is_number()).collect();
    let at: Vec<_> = tested.iter().map(|l| (l["event"].as_str().unwrap(), l["samples"].as_u64().unwrap())).collect();
    assert_eq!(at, [("step", 4), ("step", 8), ("step", 12), ("step", 16), ("pass", 18), ("end", 18)]);
    assert_eq!(tested[5]["test_objective"], evaluated["objective"]);
    // Also where a time limit ended it.
    let ran = bench.learn("train.npy --beta 0.1 --test test.npy --time-limit 1e-9 --out m.safetensors").ok();
    let evaluated = bench.run("evaluate m.safetensors test.npy").ok();
    let objective = evaluated.stdout.lines().find(|l| l.starts_with("objective")).unwrap();
    assert!(ran.stdout.contains(objective.trim_start_matches("objective").trim()), "{}{objective}", ran.stdout);
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
fn a_time_limit_may_count_processor_time() {
    let bench = Bench::with_data(50);
    for (option, clock) in [("", "seconds"), ("--processor-time", "cpu_seconds")] {
        let call = format!("train.npy --beta 0.1 --passes 1000000 --time-limit 0.2 {option} --log run.jsonl");
        bench.learn(&format!("{call} --out m.safetensors --force")).ok();
        let seconds: Vec<f64> = bench
            .log("run.jsonl")
            .iter()
            .filter(|line| line["event"] == "step")
            .map(|line| line[clock].as_f64().unwrap())
            .collect();
        let (last, before) = seconds.split_last().unwrap();
        assert!(*last >= 0.2 && before.iter().all(|s| *s < 0.2), "{option}: {last}, {:?}", before.last());
        std::fs::remove_file(bench.path("run.jsonl")).unwrap();
    }
}

/// The call that is advised does what the interrupted one would have done.
#[test]
fn the_call_to_go_on_has_all_that_no_checkpoint_records() {
    let bench = Bench::with_data(5);
    write_npy(&bench.path("weights.npy"), &ndarray::Array2::<f32>::ones((16, 16)));
    let call = "train.npy --data-weights weights.npy --beta 0.1 --test test.npy --test-every 2 --checkpoint-every 3 --stop-tol 1e-9 \
                --log run.jsonl --report p.html --out m.safetensors";
    let ran = bench.learn(&format!("{call} --time-limit 1e-9")).ok();
    let advice = ran.stderr.lines().find_map(|line| line.strip_prefix("to go on: ocsc ")).unwrap();
    for option in [
        "--data-weights weights.npy",
        "--test test.npy",
        "--test-every 2",
        "--checkpoint-every 3",
        "--stop-tol 0.000000001",
        "--log run.jsonl",
        "--report p.html",
        "--threads 1",
        "--resume m.safetensors",
    ] {
        assert!(advice.contains(option), "`{option}` is not in {advice}");
    }
    bench.run(advice).ok();
    let lines = bench.log("run.jsonl");
    super::log::check(&lines);
    let tested = lines.iter().filter(|l| l["event"] == "step" && l["test_objective"].is_f64());
    assert!(tested.map(|l| l["samples"].as_u64().unwrap()).eq([2, 4]));
    assert!(bench.path("p.html").exists());
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

/// Kills a run at random moments, 55 times or as often as `OCSC_KILLS` says, and resumes it each time.
#[test]
fn kills_at_any_moment_leave_a_loadable_checkpoint() {
    let bench = Bench::with_data(50);
    bench.learn(&format!("{RUN} --out whole.safetensors")).ok();
    let whole = dictionary_bytes(&bench.path("whole.safetensors"));
    let mut next = noise(7);
    let wanted = std::env::var("OCSC_KILLS").map_or(55, |n| n.parse().expect("OCSC_KILLS is a number"));
    let (mut kills, mut finished) = (0, 0);
    let leftovers = || bench.names("").iter().filter(|name| name.contains(".ocsc-")).count();
    while kills < wanted || finished == 0 {
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
        while child.try_wait().unwrap().is_none() && (kills >= wanted || start.elapsed() < patience) {
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
    ran.refused(1, &["m.safetensors", "1 of 1 pass made", "--passes 2"]);
    assert!(before == bench.read("m.safetensors"));
    bench.run("learn train.npy --resume m.safetensors --beta 2").refused(2, &["--resume", "--beta"]);
    bench.run("learn train.npy --resume m.safetensors --rho 2").refused(2, &["--resume", "--rho"]);
}
