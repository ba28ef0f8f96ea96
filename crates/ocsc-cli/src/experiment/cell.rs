//! One run of an experiment, and its files: `NAME.jsonl` (the log), `NAME.safetensors` (the model), pictures, and `NAME.json`,
//! which says what was run and how it ended. The last is written when the run is over: a cell that has it is kept.

use super::child::{self, Ended};
use crate::args::{Args, Command, Learn};
use crate::console::{Console, Interrupted};
use crate::data::channels_before;
use crate::ranks::Ranks;
use crate::report::Triplet;
use crate::report::triplet::{HeldOut, triplets};
use crate::run::begin;
use crate::run::dataset::{self, ToLearn};
use crate::run::model::Prepared;
use crate::run::outputs::Outputs;
use crate::run::record::{Record, read_records};
use anyhow::{Context, Result, bail};
use clap::{CommandFactory, Parser};
use ocsc::Samples;
use ocsc::checkpoint;
use ocsc::memory::Survey;
use ocsc::replace::write_file;
use ocsc::run::Run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Axes whose values are numbers of cells, not amounts.
const NUMBERED: [&str; 2] = [CANDIDATE, PROBE];
pub(super) const CANDIDATE: &str = "candidate";
pub(super) const PROBE: &str = "probe";

const TIME_LIMIT: &str = "--time-limit";
const PROCESSOR_TIME: &str = "--processor-time";
const TEST_SECONDS: &str = "--test-seconds";

/// More than the record of a run or one of its pictures takes.
const MAX_BYTES: u64 = 1 << 28;

/// What is run, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Cell {
    pub(crate) method: String,
    pub(crate) seed: u64,
    /// What was varied besides, and its value: `images`, 20.
    pub(crate) at: Option<(String, usize)>,
    /// The words of `ocsc learn` but for its outputs. A cell is run again when they have changed.
    pub(crate) words: Vec<String>,
    /// What `OCSC_SIMD` is set to, if it is.
    pub(crate) simd: Option<String>,
    /// What it was run on.
    pub(crate) machine: String,
    pub(crate) outcome: Outcome,
    /// Samples that are shown, (name, caption).
    pub(crate) shown: Vec<(String, String)>,
    /// The scales of their differences; runs from before there were any have none.
    #[serde(default)]
    pub(super) scales: Vec<f64>,
    /// How many samples the method could learn from in so many bytes; none where their number does not matter.
    pub(crate) capacity: Vec<(usize, Option<usize>)>,
    /// How many bytes learning from so many samples takes.
    pub(crate) needs: Vec<(usize, usize)>,
    /// Values against something else than a run's log has, by name.
    pub(crate) series: BTreeMap<String, Vec<(f64, f64)>>,
}

/// How a cell ended. One that failed for another reason, or was interrupted, is not marked as finished, and is tried again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    #[default]
    Done,
    /// It would need so many bytes, where that was known before it began.
    OutOfMemory { need: Option<usize> },
    /// It would take so many seconds of learning, as the ones before it grew, and may take fewer.
    OutOfTime { need: f64 },
}

impl Cell {
    /// What its files are called by.
    fn stem(&self) -> String {
        let at = self.at.as_ref().map_or(String::new(), |(axis, value)| format!("-{axis}{value}"));
        format!("{}{at}-seed{}", self.method, self.seed)
    }

    pub(crate) fn file(&self, folder: &Path, ending: &str) -> PathBuf {
        folder.join(format!("{}{ending}", self.stem()))
    }

    /// What messages call it.
    pub(crate) fn title(&self) -> String {
        match &self.at {
            Some((axis, value)) if NUMBERED.contains(&axis.as_str()) => format!("{}, {axis} {value}", self.method),
            Some((axis, value)) => format!("{}, {value} {axis}, seed {}", self.method, self.seed),
            None => format!("{}, seed {}", self.method, self.seed),
        }
    }

    /// The value of an option among its words.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.words.iter().skip_while(|word| *word != name).nth(1).map(String::as_str)
    }

    /// The finished cell, if it was run with these words, or with another time limit and would have ended the same.
    pub(crate) fn kept(&self, folder: &Path) -> Option<Cell> {
        let kept = read(&self.file(folder, ".json")).ok()?;
        (self.is_same(&kept) || self.is_within(&kept, folder)).then_some(kept)
    }

    /// Whether the other differs in its time limit alone, and neither limit is what ended it.
    fn is_within(&self, other: &Cell, folder: &Path) -> bool {
        let [limit, before] = [self, other].map(|cell| cell.time_limit().unwrap_or(f64::INFINITY));
        self.words_but_time().eq(other.words_but_time())
            && self.simd == other.simd
            && match other.outcome {
                Outcome::OutOfMemory { .. } => true,
                Outcome::OutOfTime { need } => need > limit,
                Outcome::Done => {
                    let records = other.records(folder).unwrap_or_default();
                    records.last().is_some_and(|last| last.seconds.max(last.cpu_seconds) < limit.min(before))
                }
            }
    }

    /// The seconds of learning after which its run ends.
    pub(super) fn time_limit(&self) -> Option<f64> {
        self.option(TIME_LIMIT)?.parse().ok()
    }

    /// The learning time of a record that its limit is compared with.
    pub(super) fn clock(&self, record: &Record) -> f64 {
        if self.has(PROCESSOR_TIME) { record.cpu_seconds } else { record.seconds }
    }

    fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    /// Its words but for those that only say when the time is up.
    fn words_but_time(&self) -> impl Iterator<Item = &[String]> {
        let is_grid = self.has(TEST_SECONDS);
        let is_of_time = move |name: &str| name == TIME_LIMIT || name == PROCESSOR_TIME && !is_grid;
        self.words.chunk_by(|_, next| !next.starts_with("--")).filter(move |group| !is_of_time(&group[0]))
    }

    /// Whether the other is of the same run.
    fn is_same(&self, other: &Cell) -> bool {
        other.words == self.words && other.simd == self.simd
    }

    /// Marks it as finished.
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        self.write(&self.file(folder, ".json"))
    }

    fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        write_file(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The records of its log; none if it has none.
    pub(crate) fn records(&self, folder: &Path) -> Result<Vec<Record>> {
        let log = self.file(folder, ".jsonl");
        if log.exists() { read_records(&log) } else { Ok(Vec::new()) }
    }

    /// Learns, draws `pictures` test samples, and marks the cell as finished.
    pub(crate) fn learn(
        self,
        folder: &Path,
        threads: Option<usize>,
        pictures: usize,
        console: &Console,
    ) -> Result<Cell> {
        let mut cell = self.learn_unmarked(folder, threads, console)?;
        if cell.outcome == Outcome::Done && pictures > 0 {
            cell.draw(folder, pictures)?;
        }
        cell.save(folder)?;
        Ok(cell)
    }

    /// Runs `ocsc learn` in a process of its own, or goes on with a run that was cut short.
    pub(super) fn learn_unmarked(mut self, folder: &Path, threads: Option<usize>, console: &Console) -> Result<Cell> {
        let [log, model, begun] = [".jsonl", ".safetensors", ".begun"].map(|ending| self.file(folder, ending));
        let is_resumed = self.is_begun(&begun, &model);
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = std::process::Command::new(program);
        command.arg("learn");
        if is_resumed {
            console.say(format!("  {}: going on from its checkpoint", self.title()));
            command.args(self.words_to_resume()).arg("--resume").arg(&model);
        } else {
            [&log, &model].into_iter().try_for_each(|file| remove(file))?;
            self.write(&begun)?;
            command.args(&self.words).arg("--out").arg(&model).arg("--force");
        }
        command.arg("--log").arg(&log);
        if let Some(n) = threads.filter(|_| self.option("--threads").is_none()) {
            command.arg("--threads").arg(n.to_string());
        }
        command.envs(self.simd.iter().map(|simd| ("OCSC_SIMD", simd)));
        self.outcome = match child::run(command, &self.file(folder, ".refusal"), console)? {
            Ended::Done => Outcome::Done,
            Ended::OutOfMemory { need } => Outcome::OutOfMemory { need },
            Ended::Interrupted => return Err(Interrupted(format!("{}: interrupted", self.title())).into()),
            Ended::Failed(why) => {
                // What cannot go on is begun anew the next time.
                remove(&begun)?;
                bail!("{}: {why}", self.title())
            }
        };
        remove(&begun)?;
        Ok(self)
    }

    /// Whether the same run was begun before and left a checkpoint.
    fn is_begun(&self, begun: &Path, model: &Path) -> bool {
        let unfinished = || matches!(checkpoint::peek(model), Ok(Some((at, config))) if at.pass < config.passes);
        read(begun).is_ok_and(|begun| self.is_same(&begun)) && unfinished()
    }

    /// The words that go with `--resume`: those that say what a checkpoint knows are left out.
    fn words_to_resume(&self) -> Vec<String> {
        let program = Args::command();
        let learn = program.find_subcommand("learn");
        let is_known = |name: &str| {
            let found = learn.and_then(|learn| {
                let arg = learn.get_arguments().find(|arg| arg.get_long() == name.strip_prefix("--"))?;
                Some(learn.get_arg_conflicts_with(arg).iter().any(|other| other.get_id() == "resume"))
            });
            found.unwrap_or(false)
        };
        let groups = self.words.chunk_by(|_, next| !next.starts_with("--"));
        groups.filter(|group| !is_known(&group[0])).flatten().cloned().collect()
    }

    /// Finds out the capacity for each of the limits, and the need of each of these numbers of samples, also of a cell that was kept:
    /// the account may be another one by now.
    pub(super) fn count_capacity(mut self, folder: &Path, limits: &[usize], amounts: &[usize]) -> Result<Cell> {
        let args = self.parsed(&self.file(folder, ".safetensors"))?;
        let source = dataset::for_learning(&args, None, &Console::new(true))?.source;
        let config = begin::new_config(&args, &source)?;
        let sizes = dataset::sizes(&Ranks::alone(), &source, false)?;
        let samples = Prepared::new(&source, &config.preprocess).sized(&sizes);
        // Not to be refused for what this machine has free: what is asked is what others would need.
        let run = Run::<f32>::new(config.clone()).memory_limit(usize::MAX).start(&samples)?;
        let filter = run.learner().dictionary().shape();
        let survey = run.survey().context("no sample whose size is known")?;
        let most = |limit: &usize| (*limit, survey.most_samples::<f32>(&config, filter, *limit));
        let capacity: Vec<_> = limits.iter().map(most).collect();
        let need = |&samples: &usize| (samples, Survey { samples, ..*survey }.needs::<f32>(&config, filter).0);
        let needs: Vec<_> = amounts.iter().map(need).collect();
        if (&capacity, &needs) != (&self.capacity, &self.needs) {
            (self.capacity, self.needs) = (capacity, needs);
            self.save(folder)?;
        }
        Ok(self)
    }

    /// The call as `ocsc learn` reads it.
    pub(crate) fn parsed(&self, model: &Path) -> Result<Box<Learn>> {
        let words = ["ocsc", "learn"].into_iter().map(str::to_owned).chain(self.words.clone());
        let out = ["--out".to_owned(), model.display().to_string()];
        match Args::try_parse_from(words.chain(out)).map(|args| args.command) {
            Ok(Command::Learn(learn)) => Ok(learn),
            Ok(_) => bail!("expected options of `ocsc learn`"),
            Err(error) => bail!("{}: {}", self.title(), error.to_string().trim_end()),
        }
    }

    /// Draws the first test samples, their reconstructions and differences.
    fn draw(&mut self, folder: &Path, pictures: usize) -> Result<()> {
        let model = self.file(folder, ".safetensors");
        let ToLearn { source, test, .. } = dataset::for_learning(&*self.parsed(&model)?, None, &Console::new(true))?;
        let Some(test) = test else { return Ok(()) };
        let mut files = Outputs::default();
        files.read("one of the data", source.files().iter().chain(test.files()));
        let saved = checkpoint::load::<f32>(&model)?;
        let test = test.of_channels(channels_before(&saved.config.preprocess, saved.dictionary.shape().channels));
        let prepared = Prepared::new(&test, &saved.config.preprocess);
        let sample = |i: usize| -> Result<HeldOut<f32>> {
            let (name, original) = (file_name(&test.name(i)), prepared.original(i)?);
            Ok(HeldOut { name, sample: Samples::<f32>::get(&prepared, i)?, original })
        };
        let samples: Vec<HeldOut<f32>> = (0..test.len().min(pictures)).map(sample).collect::<Result<_>>()?;
        let peak = self.records(folder)?.iter().rev().find_map(|record| record.psnr_peak).unwrap_or(1.0);
        for (i, triplet) in triplets(&saved.config, &saved.dictionary, samples, peak)?.into_iter().enumerate() {
            for (name, png) in views(&triplet) {
                let path = self.file(folder, &format!("-{i}-{name}.png"));
                files.write("--out", &path)?;
                write_file(&path, png).with_context(|| format!("cannot write {}", path.display()))?;
            }
            self.scales.extend(triplet.scale);
            self.shown.push((triplet.name, triplet.caption));
        }
        Ok(())
    }

    /// The samples it shows.
    pub(crate) fn triplets(&self, folder: &Path) -> Result<Vec<Triplet>> {
        let read = |i: usize, name: &str| {
            let path = self.file(folder, &format!("-{i}-{name}.png"));
            ocsc::file::read(&path, MAX_BYTES).with_context(|| format!("cannot read {}", path.display()))
        };
        let triplet = |(i, (name, caption)): (usize, &(String, String))| {
            Ok(Triplet {
                name: format!("{}: {name}", self.method),
                scale: self.scales.get(i).copied(),
                caption: caption.clone(),
                original_png: read(i, "original")?,
                reconstruction_png: read(i, "reconstruction")?,
                difference_png: read(i, "difference")?,
            })
        };
        self.shown.iter().enumerate().map(triplet).collect()
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The cell of a `NAME.json`.
pub(crate) fn read(path: &Path) -> Result<Cell> {
    let text = ocsc::file::read_text(path, MAX_BYTES).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}: expected the record of a run", path.display()))
}

fn views(triplet: &Triplet) -> [(&'static str, &[u8]); 3] {
    let Triplet { original_png, reconstruction_png, difference_png, .. } = triplet;
    [("original", original_png), ("reconstruction", reconstruction_png), ("difference", difference_png)]
}

/// The last part of a path.
fn file_name(name: &str) -> String {
    Path::new(name).file_name().map_or(name.to_owned(), |file| file.to_string_lossy().into_owned())
}
