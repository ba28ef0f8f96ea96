//! The run log.

use crate::common::{Bench, write_npy};
use ndarray::Array3;
use serde_json::Value;

const FIELDS: [&str; 22] = [
    "event",
    "pass",
    "step",
    "samples",
    "seconds",
    "cpu_seconds",
    "objective",
    "gap",
    "nonzeros",
    "dictionary_change",
    "test_objective",
    "test_psnr",
    "psnr_peak",
    "peak_rss_bytes",
    "stationarity",
    "reseeded",
    "waiting_seconds",
    "skipped",
    "unusable",
    "nonzeros_share",
    "test_samples",
    "test_seconds",
];

/// That every line has every field and the counters only grow.
pub(crate) fn check(lines: &[Value]) {
    for line in lines {
        let fields: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(fields.len(), FIELDS.len(), "{line}");
        assert!(FIELDS.iter().all(|name| line.get(name).is_some()), "{line}");
    }
    for name in ["step", "samples", "seconds", "cpu_seconds", "waiting_seconds", "skipped"] {
        let values: Vec<f64> = lines.iter().map(|line| line[name].as_f64().unwrap()).collect();
        assert!(values.is_sorted(), "{name}: {values:?}");
    }
    let last = lines.last().unwrap();
    assert_eq!(last["event"], "end");
    assert!(lines[..lines.len() - 1].iter().all(|line| line["event"] != "end"));
}

fn events(lines: &[Value]) -> Vec<(&str, u64, u64)> {
    let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
    lines.iter().map(|l| (l["event"].as_str().unwrap(), number(l, "pass"), number(l, "samples"))).collect()
}

#[test]
fn steps_passes_and_one_end() {
    let bench = Bench::with_data(3);
    let call = "train.npy --passes 2 --batch 2 --beta 0.1 --test test.npy --log run.jsonl --out m.safetensors";
    bench.learn(call).ok();
    let lines = bench.log("run.jsonl");
    check(&lines);
    let wanted =
        [("step", 1, 2), ("step", 1, 3), ("pass", 1, 3), ("step", 2, 5), ("step", 2, 6), ("pass", 2, 6), ("end", 2, 6)];
    assert_eq!(events(&lines), wanted);
    for line in &lines {
        let tested = line["test_objective"].is_f64();
        assert_eq!(tested, line["event"] != "step", "{line}");
        assert_eq!(tested, line["test_psnr"].is_f64() && line["psnr_peak"].is_f64(), "{line}");
        assert_eq!(line["event"] != "end", line["objective"].is_f64(), "{line}");
        assert!(line["gap"].as_f64().is_none_or(|gap| gap <= 0.01), "{line}");
    }
    let evaluated = bench.run("evaluate m.safetensors test.npy --json").ok().json();
    assert_eq!(lines[6]["test_objective"], evaluated["objective"]);
    assert_eq!(lines[6]["test_psnr"], evaluated["psnr"]);
    // A second run begins a new log.
    bench.learn("train.npy --beta 0.1 --log run.jsonl --out m.safetensors").ok();
    assert_eq!(bench.log("run.jsonl").len(), 5);
}

#[test]
fn tests_every_so_many_samples() {
    let bench = Bench::with_data(5);
    let call = "train.npy --beta 0.1 --test test.npy --test-every 2 --log run.jsonl --out m.safetensors";
    bench.learn(call).ok();
    let lines = bench.log("run.jsonl");
    check(&lines);
    let tested = lines.iter().filter(|l| l["event"] == "step" && l["test_objective"].is_f64());
    assert_eq!(tested.map(|l| l["samples"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 4]);
}

#[test]
fn tests_on_a_grid_of_time() {
    let bench = Bench::with_data(5);
    let tested = |words: &str| {
        let call = format!("train.npy --beta 0.1 --test test.npy {words} --log run.jsonl --out m.safetensors");
        bench.learn(&call).ok();
        let lines = bench.log("run.jsonl");
        let at = |l: &Value| (l["event"].as_str().unwrap().to_owned(), l["samples"].as_u64().unwrap());
        lines.iter().filter(|l| l["test_objective"].is_f64()).map(at).collect::<Vec<_>>()
    };
    let expected = |all: &[(&str, u64)]| all.iter().map(|(event, n)| ((*event).to_owned(), *n)).collect::<Vec<_>>();
    // A grid so fine that every step passes a point of it, and one so coarse that none does.
    let steps = [("step", 1), ("step", 2), ("step", 3), ("step", 4), ("step", 5), ("end", 5)];
    assert_eq!(tested("--test-seconds 1e-9"), expected(&steps));
    assert_eq!(tested("--test-seconds 1e9 --passes 2"), expected(&[("pass", 10), ("end", 10)]));
    // A batch method has another dictionary only at the end of a pass.
    let passes = [("step", 5), ("step", 10), ("end", 10)];
    assert_eq!(tested("--test-seconds 1e-9 --method fcsc --passes 2"), expected(&passes));
}

#[test]
fn a_subset_is_tested_until_the_end_and_all_at_the_end() {
    let bench = Bench::with_data(5);
    let all = bench.learn("train.npy --beta 0.1 --test train.npy --out m.safetensors --json").ok().json();
    for (words, looks) in [("--test-subset 2", 1), ("--test-subset 2 --test-every 2", 3), ("--test-subset 9", 1)] {
        let call = format!("train.npy --beta 0.1 --test train.npy {words} --log run.jsonl --out m.safetensors --json");
        let ended = bench.learn(&call).ok().json();
        assert_eq!(ended["test"]["objective"], all["test"]["objective"], "{words}");
        let lines = bench.log("run.jsonl");
        let tested: Vec<u64> = lines.iter().filter_map(|l| l["test_samples"].as_u64()).collect();
        let subset = if words.contains('9') { 5 } else { 2 };
        assert_eq!(tested, [vec![subset; looks], vec![5]].concat(), "{words}");
    }
    // Whatever the seed, the subset is the same; and a run that ends early has the whole set, too.
    let first = |words: &str| {
        let call = format!("train.npy --beta 0.1 --init patches --test train.npy --test-subset 2 --passes 3 {words}");
        bench.learn(&format!("{call} --log run.jsonl --out m.safetensors --force --time-limit 1e-9")).ok();
        bench.log("run.jsonl").last().unwrap()["test_samples"].as_u64()
    };
    assert_eq!((first("--seed 1"), first("--seed 2")), (Some(5), Some(5)));
}

#[test]
fn a_resumed_log_goes_on_where_the_checkpoint_was() {
    let bench = Bench::with_data(6);
    let call = "train.npy --beta 0.1 --log run.jsonl --out m.safetensors";
    bench.learn(&format!("{call} --time-limit 1e-9")).ok();
    let mut text = bench.text("run.jsonl");
    assert_eq!(events(&bench.log("run.jsonl")), [("step", 1, 1), ("end", 0, 1)]);
    // As a kill leaves it: steps after the checkpoint, and half a line.
    let first = text.lines().next().unwrap().to_owned();
    text.push_str(&first.replace("\"samples\":1", "\"samples\":2"));
    text.push('\n');
    text.push_str(&first[..first.len() / 2]);
    bench.write("run.jsonl", text.as_bytes());
    bench.run("learn train.npy --resume m.safetensors --log run.jsonl").ok();
    let lines = bench.log("run.jsonl");
    check(&lines);
    let steps: Vec<u64> =
        lines.iter().filter(|l| l["event"] == "step").map(|l| l["samples"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3, 4, 5, 6]);
    assert_eq!(lines[0], serde_json::from_str::<Value>(&first).unwrap());
    // The line of the pass is over the whole pass, also without the log.
    bench.learn("train.npy --beta 0.1 --log whole.jsonl --out whole.safetensors").ok();
    let figures = |lines: &[Value]| {
        let pass = lines.iter().find(|line| line["event"] == "pass").unwrap();
        ["objective", "gap", "nonzeros", "nonzeros_share", "reseeded"].map(|name| pass[name].as_f64().unwrap())
    };
    let near = |a: [f64; 5], b: [f64; 5]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs());
    assert!(near(figures(&lines), figures(&bench.log("whole.jsonl"))));
    bench.learn(&format!("{call} --time-limit 1e-9")).ok();
    bench.run("learn train.npy --resume m.safetensors --log other.jsonl").ok();
    assert!(near(figures(&bench.log("other.jsonl")), figures(&bench.log("whole.jsonl"))));
    // Any other bad line is not ours to throw away.
    bench.learn(&format!("{call} --time-limit 1e-9")).ok();
    bench.write("run.jsonl", b"dear diary\n");
    let ran = bench.run("learn train.npy --resume m.safetensors --log run.jsonl");
    ran.refused(1, &["run.jsonl", "one JSON record of a run"]);
    assert_eq!(bench.text("run.jsonl"), "dear diary\n");
}

#[test]
fn replaced_filters_are_reported_unless_switched_off() {
    let bench = Bench::with_data(12);
    // The fourth filter is zero, so no code uses it.
    write_npy(
        &bench.path("d.npy"),
        &Array3::from_shape_fn((4, 5, 5), |(k, y, x)| match k {
            3 => 0.0,
            _ => 0.15 * (1.0 + (5 * y + x) as f32 * (k + 1) as f32).sin(),
        }),
    );
    let call = "train.npy --init d.npy --beta 0.1 --log run.jsonl --out m.safetensors";
    let ran = bench.learn(call).ok();
    assert!(ran.stdout.contains("1 replaced by the worst-explained patches"), "{}", ran.stdout);
    let lines = bench.log("run.jsonl");
    check(&lines);
    let counts: Vec<u64> = lines[..13].iter().map(|line| line["reseeded"].as_u64().unwrap()).collect();
    assert_eq!(counts, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1], "twelve steps and the pass");
    assert!(lines[..12].iter().all(|line| line["stationarity"].as_f64().unwrap() > 0.0));
    let ran = bench.learn(&format!("{call} --no-reseed")).ok();
    assert!(!ran.stdout.contains("replaced"), "{}", ran.stdout);
    assert_eq!(bench.learn(&format!("{call} --no-reseed --json")).ok().json()["reseeded"], 0);
    assert_eq!(bench.learn(&format!("{call} --json")).ok().json()["reseeded"], 1);
    bench.learn(&format!("{call} --time-limit 1e-9")).ok();
    for option in ["--no-reseed", "--sweeps 2", "--sweep-tol 0.1", "--forgetting 1", "--nonnegative"] {
        bench.run(&format!("learn train.npy --resume m.safetensors {option}")).refused(2, &["--resume"]);
    }
}

/// A log of a long run may be larger than the memory, and a file under its name may be none of ours.
#[test]
fn a_log_is_gone_on_with_line_by_line() {
    let bench = Bench::with_data(5);
    bench
        .learn("train.npy --beta 0.1 --limit 5 --checkpoint-every 2 --passes 2 --log run.jsonl --out m.safetensors")
        .ok();
    // A hole that ends nowhere: a terabyte of zeros without a line.
    bench.write("hole.jsonl", b"");
    std::fs::OpenOptions::new().write(true).open(bench.path("hole.jsonl")).unwrap().set_len(1 << 40).unwrap();
    let ran = bench.run("learn train.npy --limit 5 --resume m.safetensors --passes 3 --log hole.jsonl");
    ran.refused(1, &["hole.jsonl", "line 1", "expected one JSON record of a run, found a longer line"]);
    let whole = bench.text("run.jsonl");
    bench.write("run.jsonl", format!("{whole}{{\"event\":\"dance\"}}\n").as_bytes());
    let ran = bench.run("learn train.npy --limit 5 --resume m.safetensors --passes 3 --log run.jsonl");
    ran.refused(1, &["run.jsonl", "line 14", "expected one JSON record of a run", "dance"]);
    // The line that a kill cut short goes, and so does the end of the run that goes on.
    bench.write("run.jsonl", format!("{whole}{{\"event\":\"st").as_bytes());
    bench.run("learn train.npy --limit 5 --resume m.safetensors --passes 3 --log run.jsonl").ok();
    check(&bench.log("run.jsonl"));
    assert_eq!(bench.log("run.jsonl").len(), 3 * (5 + 1) + 1);
}
