//! Two processes and one file.

use crate::common::{Bench, SMALL, dictionary_bytes};

const LONG: &str = "train.npy --beta 0.1 --passes 100000 --time-limit 60 --checkpoint-every 1";

fn hidden(bench: &Bench, folder: &str) -> Vec<String> {
    bench.names(folder).into_iter().filter(|name| name.starts_with('.')).collect()
}

#[test]
fn the_second_of_two_runs_is_refused_with_the_first_ones_number() {
    let bench = Bench::with_data(6);
    let mut child = bench.spawn(&format!("{LONG} --log run.jsonl --out m.safetensors"));
    bench.wait_for_lines("run.jsonl", 3);
    let holder = format!("process {}", child.id());
    let small = SMALL.join(" ");
    let calls = [
        format!("learn train.npy --out m.safetensors --force {small}"),
        format!("learn train.npy --out ./m.safetensors --force {small}"),
        "learn train.npy --resume m.safetensors".to_owned(),
    ];
    for call in &calls {
        bench.run(call).refused(1, &["--out", "m.safetensors", "nobody else", &holder]);
    }
    let log = bench.run(&format!("learn train.npy --out n.safetensors --log run.jsonl {small}"));
    log.refused(1, &["--log run.jsonl", "nobody else", &holder]);
    // Another file in the same folder is free.
    bench.learn("train.npy --out other.safetensors").ok();
    // The first goes on as if nothing had been, with its temporary files and its log.
    let lines = bench.log("run.jsonl").len();
    bench.wait_for_lines("run.jsonl", lines + 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let steps =
        bench.log("run.jsonl").into_iter().filter(|l| l["event"] == "step").map(|l| l["step"].as_u64().unwrap());
    assert!(steps.enumerate().all(|(i, step)| step == i as u64 + 1));
    // What the killed one left blocks nobody, and is gone after a run that ends by itself.
    assert!(!hidden(&bench, "").is_empty());
    bench.run("learn train.npy --resume m.safetensors --log run.jsonl --time-limit 1e-9").ok();
    assert_eq!(hidden(&bench, ""), [""; 0]);
}

#[test]
fn a_link_has_the_lock_of_its_file() {
    let bench = Bench::with_data(6);
    std::fs::create_dir(bench.path("far")).unwrap();
    std::os::unix::fs::symlink("far/m.safetensors", bench.path("link")).unwrap();
    let mut child = bench.spawn(&format!("{LONG} --log run.jsonl --out link"));
    bench.wait_for_lines("run.jsonl", 3);
    let holder = format!("process {}", child.id());
    bench.learn("train.npy --out far/m.safetensors --force").refused(1, &["far/m.safetensors", &holder]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn leftovers_of_the_dead_are_removed_and_those_of_the_living_are_not() {
    let bench = Bench::with_model();
    let [dead, live] = [".m.safetensors.ocsc-dead00", ".m.safetensors.ocsc-live00"];
    bench.write(dead, b"half");
    bench.write(live, b"half");
    let held = std::fs::File::open(bench.path(live)).unwrap();
    held.lock().unwrap();
    bench.learn("train.npy --beta 0.1 --out m.safetensors").ok();
    assert_eq!(hidden(&bench, ""), [live]);
    std::fs::create_dir(bench.path("codes")).unwrap();
    bench.write("codes/.test-0000.npz.ocsc-dead00", b"half");
    bench.run("code m.safetensors test.npy --out codes").ok();
    assert_eq!(hidden(&bench, "codes"), [""; 0]);
    drop(held);
}

/// Starts that race for one file: exactly one holds it at any time, and each that gets it learns the same.
#[test]
fn many_starts_at_once_leave_one_whole_model() {
    let bench = Bench::with_data(6);
    bench.learn("train.npy --beta 0.1 --out whole.safetensors").ok();
    let calls = (0..8).map(|_| bench.spawn("train.npy --beta 0.1 --out m.safetensors"));
    let codes: Vec<_> = calls.collect::<Vec<_>>().into_iter().map(|mut child| child.wait().unwrap().code()).collect();
    assert!(codes.contains(&Some(0)) && codes.iter().all(|code| matches!(code, Some(0 | 1))), "{codes:?}");
    let [m, whole] = ["m.safetensors", "whole.safetensors"].map(|name| dictionary_bytes(&bench.path(name)));
    assert!(m == whole);
    assert_eq!(hidden(&bench, ""), [""; 0]);
}
