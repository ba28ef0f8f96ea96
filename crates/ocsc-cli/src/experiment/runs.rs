//! The runs of an experiment, read back from disk: what reports are made of.

use super::cell::{Cell, Outcome, read};
use super::search;
use super::settings::{Settings, names};
use crate::run::record::{Record, read_records};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// The finished runs of one experiment.
pub(crate) struct Runs {
    /// What files of the report are called by.
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) runs: Vec<Run>,
    /// Whether all had the same data and problem, so that they can be compared. Logs alone do not say.
    pub(crate) are_alike: bool,
    /// The runs of the search that chose their settings.
    pub(super) tried: Vec<Run>,
}

/// One of them.
pub(crate) struct Run {
    pub(crate) cell: Cell,
    pub(crate) records: Vec<Record>,
    /// The folder with its files.
    pub(crate) folder: PathBuf,
}

impl Runs {
    /// What the paths hold: folders of `reproduce` and `compare`, and logs of `learn`, which together make one experiment.
    pub(crate) fn open(paths: &[PathBuf]) -> Result<Vec<Runs>> {
        let (mut all, mut logs) = (Vec::new(), Vec::new());
        for path in paths {
            if !path.is_dir() {
                logs.push(path.clone());
                continue;
            }
            let folders = experiments(path)?;
            if folders.is_empty() {
                logs.extend(sorted(path)?.into_iter().filter(|file| has_ending(file, "jsonl")));
            }
            for folder in folders {
                all.push(Runs::of_folder(&folder)?);
            }
        }
        if !logs.is_empty() {
            all.push(Runs::of_logs(&logs)?);
        }
        ensure!(!all.is_empty(), "no runs found; expected logs (RUN.jsonl), or folders of `reproduce` or `compare`");
        Ok(all)
    }

    /// A folder with `experiment.toml`.
    pub(crate) fn of_folder(folder: &Path) -> Result<Runs> {
        let settings = Settings::load("", Some(&folder.join("experiment.toml")))?;
        let mut runs = runs_of(folder)?;
        // As the settings name them, and numbers by value.
        let place = |run: &Run| settings.methods.iter().position(|method| *method == run.cell.method);
        runs.sort_by_key(|run| (place(run), run.cell.method.clone(), run.cell.at.clone(), run.cell.seed));
        Ok(Runs { name: name_of(folder), settings, runs, are_alike: true, tried: search::tried(folder)? })
    }

    /// Logs of `ocsc learn`; `NAME-seed3.jsonl` is a run of NAME with seed 3.
    fn of_logs(logs: &[PathBuf]) -> Result<Runs> {
        let mut runs = Vec::new();
        for log in logs {
            let stem = name_of(log);
            let (method, seed) = match stem.rsplit_once("-seed") {
                Some((method, seed)) if seed.parse::<u64>().is_ok() => (method.to_owned(), seed.parse().unwrap_or(0)),
                _ => (stem.clone(), 0),
            };
            let cell = Cell { method, seed, ..Cell::default() };
            let folder = log.parent().unwrap_or(Path::new("")).to_owned();
            runs.push(Run { cell, records: read_records(log)?, folder });
        }
        let mut methods: Vec<String> = runs.iter().map(|run| run.cell.method.clone()).collect();
        methods.dedup();
        let title = if logs.len() == 1 { "One run".to_owned() } else { format!("{} runs", logs.len()) };
        let settings = Settings { title, methods, seeds: 1, ..Settings::default() };
        Ok(Runs { name: "runs".to_owned(), settings, runs, are_alike: false, tried: Vec::new() })
    }

    /// Runs without a folder.
    #[cfg(test)]
    pub(super) fn of_cells(runs: Vec<Run>) -> Runs {
        let (name, settings) = (String::new(), Settings::default());
        Runs { name, settings, runs, are_alike: true, tried: Vec::new() }
    }

    /// The files that it was read from: the settings, and all that belongs to its runs.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let mut folders: Vec<&Path> = self.runs.iter().map(|run| run.folder.as_path()).collect();
        folders.dedup();
        // Of logs that were named one by one, the folder holds other files as well.
        let is_experiment = |folder: &&Path| folder.join("experiment.toml").is_file();
        let all = folders.into_iter().filter(is_experiment).map(sorted).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().flatten().filter(|path| path.is_file()).collect())
    }

    /// The methods, as the settings name them.
    pub(crate) fn methods(&self) -> &[String] {
        &self.settings.methods
    }

    /// The runs of a method that came to their end.
    pub(crate) fn done<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Run> + Clone + 'a {
        self.runs.iter().filter(move |run| run.cell.method == method && run.cell.outcome == Outcome::Done)
    }
}

impl Run {
    /// The last value that the log has.
    pub(crate) fn last(&self, value: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        self.records.iter().rev().find_map(value)
    }

    /// The records that curves are of: of a run whose test set is evaluated as a whole only at the end, not the end.
    pub(crate) fn looks(&self) -> impl Iterator<Item = &Record> {
        let samples = self.records.iter().find(|r| r.test_objective.is_some()).and_then(|r| r.test_samples);
        self.records.iter().filter(move |r| r.test_objective.is_none() || r.test_samples == samples)
    }

    /// The last test objective of a curve.
    pub(crate) fn last_look(&self) -> Option<f64> {
        self.looks().filter_map(|record| record.test_objective).last()
    }

    /// Processor time of learning.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        self.records.last().map(|record| record.cpu_seconds)
    }

    /// The most memory that the process held.
    pub(crate) fn peak_memory(&self) -> Option<f64> {
        self.last(|record| record.peak_rss_bytes.map(|bytes| bytes as f64))
    }
}

/// The finished runs in a folder.
pub(super) fn runs_of(folder: &Path) -> Result<Vec<Run>> {
    let cells = sorted(folder)?.into_iter().filter(|file| has_ending(file, "json"));
    let run = |file: PathBuf| {
        let cell = read(&file)?;
        Ok(Run { records: cell.records(folder)?, cell, folder: folder.to_owned() })
    };
    cells.map(run).collect()
}

/// The folder itself, or those in it or in its `runs`, that hold an experiment.
fn experiments(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_one = |folder: &PathBuf| folder.join("experiment.toml").is_file();
    if is_one(&folder.to_owned()) {
        return Ok(vec![folder.to_owned()]);
    }
    let inner = folder.join("runs");
    let all = sorted(if inner.is_dir() { &inner } else { folder })?;
    let mut found: Vec<PathBuf> = all.into_iter().filter(is_one).collect();
    // In the paper's order; others before them.
    let place =
        |folder: &PathBuf| names().iter().position(|known| *known == name_of(folder).trim_end_matches("-small"));
    found.sort_by_key(place);
    Ok(found)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    Ok(paths)
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
