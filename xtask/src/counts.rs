//! `cargo xtask counts`: how many instructions learning and coding take, against what is on record.
//!
//! Time varies with the machine and with what else it does; instructions hardly do. Valgrind counts them, on an emulated processor
//! with AVX2, whatever the machine has. The program is that of the tests, optimised but with its assertions. What takes over 3 % more
//! than on record fails; `--renew` writes the record. Another compiler makes another program, so then nothing is compared.

use crate::{cargo, everything, root, say, step};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The record.
const RECORD: &str = "benchmarks/counts.json";
/// What may be lost unnoticed.
const MARGIN: f64 = 1.03;
/// What is counted, in order: the second codes with what the first learned.
const JOBS: [(&str, &str); 2] = [
    (
        "learn",
        "learn train.npy --filters 32 --size 9 --beta 0.3 --preprocess none --threads 1 --quiet --out m.safetensors",
    ),
    ("code", "code m.safetensors test.npy --threads 1 --quiet --out codes"),
];
/// The key of the compiler in the record.
const COMPILER: &str = "rustc";

/// Counts and compares, or writes the record.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let renew = match words {
        [] => false,
        [word] if word == "--renew" => true,
        _ => bail!("usage: cargo xtask counts [--renew]"),
    };
    // The tests' program, with the tests' features, so that nothing is built twice.
    step("the program", cargo(&["test", "--no-run"]).args(everything()))?;
    if !renew {
        test()?.into_iter().for_each(say);
        return Ok(());
    }
    let counts: BTreeMap<&str, serde_json::Value> = counted()?.into_iter().map(|(job, n)| (job, n.into())).collect();
    let mut record = counts;
    record.insert(COMPILER, compiler()?.into());
    std::fs::write(root().join(RECORD), serde_json::to_string_pretty(&record)? + "\n").context(RECORD)
}

/// Compares with the record; returns what was skipped.
pub(crate) fn test() -> Result<Option<&'static str>> {
    say("\n== instructions");
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(Some("counts of instructions: valgrind is absent"));
    }
    let text = std::fs::read_to_string(root().join(RECORD)).context(RECORD)?;
    let record: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).context(RECORD)?;
    if record.get(COMPILER).and_then(|c| c.as_str()) != Some(compiler()?.as_str()) {
        return Ok(Some("counts of instructions: benchmarks/counts.json is of another compiler"));
    }
    for (job, count) in counted()? {
        let on_record =
            record.get(job).and_then(serde_json::Value::as_f64).with_context(|| format!("{RECORD}: {job}"))?;
        let ratio = count as f64 / on_record;
        say(&format!("{job}: {:.1} million instructions, {ratio:.3} of the record", count as f64 / 1e6));
        if ratio > MARGIN {
            bail!(
                "{job}: expected at most {MARGIN} times the {on_record} instructions on record, found {count}; make it faster again, or \
                 say why in a commit that renews {RECORD} (cargo xtask counts --renew)"
            );
        }
    }
    Ok(None)
}

/// The instructions of every job.
fn counted() -> Result<Vec<(&'static str, u64)>> {
    let folder = std::env::temp_dir().join(format!("ocsc-counts-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    write_images(&folder.join("train.npy"), 6, 64, 1)?;
    write_images(&folder.join("test.npy"), 2, 96, 2)?;
    let counts = JOBS.iter().map(|(job, words)| Ok((*job, instructions(&folder, words)?))).collect();
    std::fs::remove_dir_all(&folder)?;
    counts
}

fn instructions(folder: &Path, words: &str) -> Result<u64> {
    let out = Command::new("valgrind")
        .args(["--tool=callgrind", "--fair-sched=yes", "--callgrind-out-file=/dev/null"])
        .arg(program())
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()?;
    let text = String::from_utf8_lossy(&out.stderr);
    let line = text.lines().find(|line| line.contains("Collected :")).filter(|_| out.status.success());
    let count = line.and_then(|line| line.rsplit(' ').next()).and_then(|n| n.parse().ok());
    count.with_context(|| format!("valgrind ocsc {words}: expected a count of instructions, found\n{text}"))
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    target.join("debug/ocsc").canonicalize().unwrap_or(target)
}

fn compiler() -> Result<String> {
    let out = Command::new("rustc").arg("--version").current_dir(root()).output().context("rustc --version")?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Writes n square images of overlapping rectangles, without mean, as an array of f64.
fn write_images(path: &Path, n: usize, side: usize, seed: u64) -> Result<()> {
    let mut state = seed;
    let mut draw = |below: usize| {
        // The generator of Knuth's MMIX; its upper bits are good enough.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({n}, {side}, {side}), }}");
    // The whole header fills 128 bytes and ends in a newline.
    bytes.extend(118_u16.to_le_bytes());
    bytes.extend(format!("{header:<117}\n").bytes());
    for _ in 0..n {
        let mut image = vec![0.0; side * side];
        for _ in 0..60 {
            let (top, left, height, width) = (draw(side), draw(side), 1 + draw(side / 3), 1 + draw(side / 3));
            let value = draw(256) as f64 / 64.0;
            for row in image.chunks_exact_mut(side).skip(top).take(height) {
                row.iter_mut().skip(left).take(width).for_each(|v| *v = value);
            }
        }
        let mean = image.iter().sum::<f64>() / image.len() as f64;
        bytes.extend(image.iter().flat_map(|v| (v - mean).to_le_bytes()));
    }
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}
