//! The runs that faults are injected into, and what must hold after each.

use super::{files, finished};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODEL: &str = "m.safetensors";
const LOG: &str = "run.jsonl";
/// Options that every run learns with.
const SMALL: &str = "--filters 3 --size 3 --beta 0.5 --threads 1";
const SAMPLES: usize = 12;

/// How a run with a fault ended.
#[derive(PartialEq)]
pub(super) enum Ended {
    Well,
    Refused,
    /// To its end, but without samples that could not be read, and it says so.
    PassedOver,
    /// The allocator ended it: what it held cannot be tidied up before the next run.
    OutOfMemory,
}

/// A run, what it starts from and what it gives.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) words: Vec<String>,
    /// The file that samples are read from, one by one.
    pub(super) data: &'static str,
    /// The files that are there before.
    before: BTreeMap<String, Vec<u8>>,
    /// The files that are there after a run without a fault.
    after: BTreeMap<String, Vec<u8>>,
    /// How to go on after a failure; none where the same call is made again.
    resume: Option<Vec<String>>,
}

/// Makes all scenarios by running them once.
pub(super) fn all(folder: &Path, program: &Path) -> Result<Vec<Scenario>> {
    let maker = Maker { place: folder.join("made"), program };
    let learn = format!("learn train.npy {SMALL}");
    let every = format!("{learn} --checkpoint-every 1 --log {LOG} --out {MODEL}");
    let resume = format!("learn train.npy --resume {MODEL} --log {LOG} --threads 1");
    let data = BTreeMap::from([("train.npy".to_owned(), array())]);
    let old = maker.after(&data, &[&format!("{learn} --seed 9 --log {LOG} --out {MODEL}")])?;
    let unfinished = maker.after(&data, &[&format!("{learn} --log {LOG} --out {MODEL} --time-limit 1e-9")])?;
    let model = maker.after(&data, &[&format!("{learn} --out {MODEL}")])?;
    let code = format!("code {MODEL} train.npy --out codes --threads 1");
    let coded = maker.after(&model, &[&code])?;
    let coded_before = maker.after(&model, &[&format!("{code} --beta 0.3")])?;
    let reconstruct = format!("reconstruct {MODEL} codes --out images --threads 1");
    let drawn_before = {
        let mut files = maker.after(&coded_before, &[&reconstruct])?;
        files.extend(coded.clone());
        files
    };
    Ok(vec![
        maker.scenario("learn", &data, &every, Some(&resume))?,
        maker.scenario("learn over a model", &old, &every, Some(&resume))?,
        maker.scenario("learn, one checkpoint", &data, &format!("{learn} --log {LOG} --out {MODEL}"), Some(&resume))?,
        maker.scenario("resume", &unfinished, &format!("{resume} --checkpoint-every 2"), Some(&resume))?,
        maker.scenario("code", &model, &code, Some(&format!("{code} --skip-existing")))?,
        maker.scenario("code over codes", &coded_before, &code, None)?,
        maker.scenario("reconstruct", &coded, &reconstruct, Some(&format!("{reconstruct} --skip-existing")))?,
        maker.scenario("reconstruct over images", &drawn_before, &reconstruct, None)?,
    ])
}

struct Maker<'a> {
    place: PathBuf,
    program: &'a Path,
}

impl Maker<'_> {
    /// The files after some calls.
    fn after(&self, before: &BTreeMap<String, Vec<u8>>, calls: &[&str]) -> Result<BTreeMap<String, Vec<u8>>> {
        put(&self.place, before)?;
        for call in calls {
            let ran = finished(Command::new(self.program).args(call.split_whitespace()), &self.place)?;
            ensure!(ran.code == Some(0), "{call}: {}", ran.stderr);
        }
        taken(&self.place)
    }

    fn scenario(
        &self,
        name: &'static str,
        before: &BTreeMap<String, Vec<u8>>,
        call: &str,
        resume: Option<&str>,
    ) -> Result<Scenario> {
        let words = |call: &str| call.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let after = self.after(before, &[call])?;
        Ok(Scenario {
            name,
            words: words(call),
            data: "train.npy",
            before: before.clone(),
            after,
            resume: resume.map(words),
        })
    }
}

impl Scenario {
    /// Fills a folder with what the run starts from, and nothing else.
    pub(super) fn prepare(&self, place: &Path) -> Result<()> {
        put(place, &self.before)
    }

    /// The size of the largest file that the run writes, among those it has left.
    pub(super) fn largest_output(&self, place: &Path) -> Result<u64> {
        let left = taken(place)?;
        let written = left.iter().filter(|(name, bytes)| self.before.get(*name) != Some(bytes));
        Ok(written.map(|(_, bytes)| bytes.len() as u64).max().unwrap_or(0))
    }

    /// Checks what a run with a fault left.
    pub(super) fn check(&self, place: &Path, program: &Path, ended: &Ended) -> Result<()> {
        let left = taken(place)?;
        if *ended != Ended::OutOfMemory {
            self.check_names(&left)?;
        }
        if *ended == Ended::Well {
            return self.check_done(&left).context("ended well");
        }
        for (name, bytes) in &left {
            self.check_whole(name, bytes)?;
        }
        if self.is_learning() {
            let Some(model) = left.get(MODEL) else { return Ok(()) };
            if !is_unfinished(model) {
                // The old model, or the new one, whose run failed at telling of it.
                let is_other = self.before.get(MODEL) == Some(model) || *ended == Ended::PassedOver;
                return if is_other { Ok(()) } else { self.check_model(&left) };
            }
        }
        let Some(resume) = &self.resume else { return Ok(()) };
        let ran = super::finished(Command::new(program).args(resume), place)?;
        ensure!(ran.code == Some(0), "to go on fails: {}", ran.stderr.trim());
        let left = taken(place)?;
        self.check_names(&left).and_then(|()| self.check_done(&left)).context("after going on")
    }

    fn is_learning(&self) -> bool {
        self.words[0] == "learn"
    }

    /// Nothing is there but what was there before or is to be there after.
    fn check_names(&self, left: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        for name in left.keys() {
            ensure!(self.before.contains_key(name) || self.after.contains_key(name), "{name} was left behind");
        }
        for name in self.before.keys() {
            ensure!(left.contains_key(name), "{name} is gone");
        }
        Ok(())
    }

    /// Every file is the old one or the new one, or of a run in between: a checkpoint, or a log of whole lines.
    fn check_whole(&self, name: &str, bytes: &Vec<u8>) -> Result<()> {
        let is_known = [&self.before, &self.after].iter().any(|files| files.get(name) == Some(bytes));
        match name {
            _ if is_known => Ok(()),
            MODEL if self.is_learning() => dictionary(bytes).map(drop).context(MODEL),
            LOG if self.is_learning() => {
                // A line that was cut is the last one, and without its end.
                let whole = bytes.split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n"));
                whole.map(serde_json::from_slice::<Value>).collect::<Result<Vec<_>, _>>().context(LOG)?;
                Ok(())
            }
            _ if name.starts_with('.') => Ok(()),
            _ => bail!("{name} is neither the old file nor the new one"),
        }
    }

    /// All results are there, and right.
    fn check_done(&self, left: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        if self.is_learning() {
            self.check_model(left)?;
            return check_log(left.get(LOG).context("no log")?);
        }
        for (name, bytes) in &self.after {
            ensure!(left.get(name) == Some(bytes), "{name} is not what a run without faults gives");
        }
        Ok(())
    }

    fn check_model(&self, left: &BTreeMap<String, Vec<u8>>) -> Result<()> {
        let found = dictionary(left.get(MODEL).context("no model")?)?;
        ensure!(found == dictionary(&self.after[MODEL])?, "another dictionary than a run without faults gives");
        Ok(())
    }
}

/// Every step once, one pass and one end.
fn check_log(bytes: &[u8]) -> Result<()> {
    let lines: Vec<Value> =
        bytes.split_inclusive(|b| *b == b'\n').map(serde_json::from_slice).collect::<Result<_, _>>().context(LOG)?;
    let steps: Vec<u64> =
        lines.iter().filter(|line| line["event"] == "step").filter_map(|line| line["step"].as_u64()).collect();
    ensure!(steps.iter().copied().eq(1..=SAMPLES as u64), "{LOG} has the steps {steps:?}");
    for event in ["pass", "end"] {
        let n = lines.iter().filter(|line| line["event"] == event).count();
        ensure!(n == 1, "{LOG} has {n} lines of event {event}");
    }
    Ok(())
}

/// The header of a model, and the numbers after it, which must all be there.
fn header(model: &[u8]) -> Result<(Value, &[u8])> {
    let (length, rest) = model.split_first_chunk().context("no header")?;
    let (header, numbers) = rest.split_at_checked(u64::from_le_bytes(*length) as usize).context("a cut header")?;
    let header: Value = serde_json::from_slice(header)?;
    let tensors = header.as_object().into_iter().flatten().filter(|(name, _)| *name != "__metadata__");
    let end = tensors.filter_map(|(_, tensor)| tensor["data_offsets"][1].as_u64()).max();
    ensure!(end == Some(numbers.len() as u64), "expected {end:?} bytes of numbers, found {}", numbers.len());
    Ok((header, numbers))
}

/// The bytes of the dictionary in a model file.
fn dictionary(model: &[u8]) -> Result<Vec<u8>> {
    let (header, numbers) = header(model)?;
    let at = |i: usize| header["dictionary"]["data_offsets"][i].as_u64().map(|n| n as usize).context("no dictionary");
    Ok(numbers.get(at(0)?..at(1)?).context("a cut dictionary")?.to_vec())
}

/// Whether a model is a checkpoint with passes to make.
fn is_unfinished(model: &[u8]) -> bool {
    let Ok((header, _)) = header(model) else { return false };
    let metadata = |name: &str| header["__metadata__"][name].as_str().unwrap_or_default().to_owned();
    let progress: Value = serde_json::from_str(&metadata("progress")).unwrap_or_default();
    let config: Value = serde_json::from_str(&metadata("config")).unwrap_or_default();
    progress["pass"].as_u64().is_some_and(|pass| pass < config["passes"].as_u64().unwrap_or(0))
}

/// Fills a folder with these files and no others.
fn put(place: &Path, wanted: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    std::fs::create_dir_all(place)?;
    for (name, bytes) in wanted {
        let path = place.join(name);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// The files of a folder with their contents.
fn taken(place: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    files(place)?.into_iter().map(|(name, path)| Ok((name, std::fs::read(path)?))).collect()
}

/// The bytes of a `.npy` file: samples of 10x10 values that look random.
fn array() -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({SAMPLES}, 10, 10), }}");
    let header = format!("{header:117}\n");
    let mut bytes = [b"\x93NUMPY\x01\x00".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    let mut state = 1_u32;
    for _ in 0..SAMPLES * 100 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend_from_slice(&(state as f32 / u32::MAX as f32 - 0.5).to_le_bytes());
    }
    bytes
}
