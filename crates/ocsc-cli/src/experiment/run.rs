//! Running an experiment: its cells one after the other, without those that are finished already.

use super::cell::{Cell, Outcome};
use super::settings::{Kind, Settings};
use super::{convergence, solvers};
use crate::args::memory_size;
use crate::console::{Console, Interrupted, counted, interrupted, told};
use crate::exit::PassedOver;
use crate::interrupt::end_now;
use crate::memory;
use crate::run::dataset;
use crate::run::folder::make_folder;
use anyhow::{Context, Result, bail};
use ocsc::Method;
use ocsc::replace::write_file;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

/// What is said of an interrupt.
const GOES_ON: &str = "interrupted: the same command goes on from here";
/// How long an interrupted experiment may take to end in order.
const PATIENCE: Duration = Duration::from_millis(1000);
/// How often the watch looks up.
const LOOK: Duration = Duration::from_millis(20);

/// Where an experiment is run.
pub(crate) struct Place<'a> {
    /// Its folder of runs.
    pub(crate) folder: PathBuf,
    /// The folder that its data are relative to.
    pub(crate) data: &'a Path,
    pub(crate) threads: Option<usize>,
    pub(crate) console: &'a Console,
}

/// Runs what is not yet there; an error says what failed or that it was interrupted, and what is done is kept.
pub(crate) fn run(settings: &Settings, place: &Place<'_>) -> Result<()> {
    leave_soon_after_interrupts();
    make_folder(&place.folder)?;
    let path = place.folder.join("experiment.toml");
    let text = toml::to_string(settings).context("cannot write the settings as TOML")?;
    write_file(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let cells = cells(settings, place)?;
    let (mut failed, mut incomplete, total) = (Vec::new(), 0, cells.len());
    let mut full: Option<Cell> = None;
    for (i, cell) in cells.into_iter().enumerate() {
        if interrupted() {
            return Err(Interrupted(GOES_ON.to_owned()).into());
        }
        let (number, title) = (i + 1, cell.title());
        if full.as_ref().is_some_and(|full| cell.is_beyond(full)) {
            continue;
        }
        let ran = match cell.kept(&place.folder) {
            Some(kept) => Ok(kept),
            None => {
                place.console.say(format!("{number} of {total}: {title}"));
                ran(cell, settings, place)
            }
        };
        let ran = match settings.kind {
            Kind::Growth => ran.and_then(|cell| cell.count_capacity(&place.folder, &limits(settings)?)),
            _ => ran,
        };
        match ran {
            Ok(cell) if cell.outcome != Outcome::Done => {
                place.console.say(format!("  {title}: out of memory"));
                full = Some(cell);
            }
            Ok(cell) => incomplete += usize::from(cell.passed_over(&place.folder)),
            Err(_) if interrupted() => return Err(Interrupted(GOES_ON.to_owned()).into()),
            Err(error) => {
                place.console.say(format!("  failed: {}", told(&error)));
                failed.push(told(&error));
            }
        }
    }
    match &failed[..] {
        [] if incomplete > 0 => {
            let runs = counted(incomplete, "run");
            Err(PassedOver(format!(
                "{runs} of {total} passed over unusable samples; so the exit code is 3 (with --skip-bad 0)"
            ))
            .into())
        }
        [] => Ok(()),
        [first, ..] => {
            bail!("{} of {} failed, the others are kept; the first: {first}", failed.len(), counted(total, "run"))
        }
    }
}

/// Solvers, measurements and pictures are made in this process and may not look up for long. Nothing of a cell is kept before it
/// is finished, so that there is nothing to wait for; children are ended by the system.
fn leave_soon_after_interrupts() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // Without it, an interrupt is heard later.
        let _ = std::thread::Builder::new().spawn(|| {
            while !interrupted() {
                std::thread::sleep(LOOK);
            }
            std::thread::sleep(PATIENCE);
            Console::new(false).error(&anyhow::Error::new(Interrupted(GOES_ON.to_owned())));
            end_now();
        });
    });
}

fn ran(cell: Cell, settings: &Settings, place: &Place<'_>) -> Result<Cell> {
    match settings.kind {
        Kind::Curves | Kind::Growth | Kind::Complexity => {
            let pictures = if cell.seed == settings.first_seed && cell.at.is_none() { settings.pictures } else { 0 };
            cell.learn(&place.folder, place.threads, pictures, place.console)
        }
        Kind::Solvers => solvers::run(cell, settings, &place.folder),
        Kind::Convergence => convergence::run(cell, &place.folder, place.console),
    }
}

impl Cell {
    /// Whether its run left out samples, and nobody said that this is well.
    fn passed_over(&self, folder: &Path) -> bool {
        let records = self.records(folder).unwrap_or_default();
        let skipped = records.last().and_then(|record| record.skipped).unwrap_or(0);
        skipped > 0 && !self.words.iter().any(|word| word == "--skip-bad")
    }

    /// Whether it needs even more memory than one of the same kind that had too little.
    fn is_beyond(&self, full: &Cell) -> bool {
        let larger = match (&self.at, &full.at) {
            (Some((axis, value)), Some((same, too_many))) => axis == same && value >= too_many,
            _ => false,
        };
        larger && self.method == full.method && full.outcome != Outcome::Done
    }
}

/// All runs of an experiment, seed by seed, so that one that is cut short has all methods.
fn cells(settings: &Settings, place: &Place<'_>) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    let variants = variants(settings, place)?;
    for seed in settings.all_seeds() {
        for method in &settings.methods {
            for (at, further) in variants.clone() {
                cells.push(Cell {
                    method: method.clone(),
                    seed,
                    at,
                    words: words(settings, place.data, method, seed, &further),
                    ..Cell::default()
                });
            }
        }
    }
    Ok(cells)
}

/// What is varied, and the options that do it.
type Variant = (Option<(String, usize)>, Vec<String>);

/// What is varied within a method and a seed.
fn variants(settings: &Settings, place: &Place<'_>) -> Result<Vec<Variant>> {
    let axis = |name: &str| settings.sweep.get(name).map(Vec::as_slice).unwrap_or_default();
    let option = |name: &str, value: usize| [format!("--{name}"), value.to_string()];
    match settings.kind {
        Kind::Growth => {
            let limit = limits(settings)?.into_iter().min();
            let limit = limit.map_or(Vec::new(), |limit| vec!["--memory-limit".to_owned(), limit.to_string()]);
            let size = |&n: &usize| {
                let words = option("subset", n).into_iter().chain(limit.clone());
                (Some(("images".to_owned(), n)), words.collect())
            };
            let there = images(settings, place)?;
            Ok(settings.sizes.iter().filter(|n| **n <= there).map(size).collect())
        }
        Kind::Complexity => {
            let axes = [("images", "limit"), ("filters", "filters"), ("side", "crop")];
            let middle = |name: &str| axis(name).get(axis(name).len() / 2).copied();
            let mut variants = Vec::new();
            for (varied, _) in axes {
                for &value in axis(varied) {
                    let words = axes.iter().flat_map(|(name, option)| {
                        let value = if *name == varied { Some(value) } else { middle(name) };
                        value.map(|value| [format!("--{option}"), value.to_string()])
                    });
                    variants.push((Some((varied.to_owned(), value)), words.flatten().collect()));
                }
            }
            Ok(variants)
        }
        Kind::Curves | Kind::Solvers | Kind::Convergence => Ok(vec![(None, Vec::new())]),
    }
}

/// How many images there are to learn from.
fn images(settings: &Settings, place: &Place<'_>) -> Result<usize> {
    let method = Method::default().to_string();
    let words = words(settings, place.data, &method, settings.first_seed, &[]);
    let cell = Cell { method, words, ..Cell::default() };
    let source = dataset::for_learning(&*cell.parsed(&place.folder)?, None, &Console::new(true))?.source;
    Ok(source.len())
}

/// The memory that runs may take, the least of these: that of the paper's machine, and of this.
fn limits(settings: &Settings) -> Result<Vec<usize>> {
    let Some(limit) = &settings.memory_limit else { return Ok(Vec::new()) };
    let paper = memory_size(limit).context("memory_limit")?;
    Ok([paper].into_iter().chain(memory::total().map(rounded)).collect())
}

/// Down to two digits, so that a cell is not run again because the system takes a little more or less.
fn rounded(total: usize) -> usize {
    let unit = 10usize.pow(total.max(10).ilog10() - 1);
    total / unit * unit
}

/// The option that decides what `--test-fraction` holds out.
pub(super) const SPLIT_SEED: &str = "--split-seed";

fn words(settings: &Settings, data: &Path, method: &str, seed: u64, further: &[String]) -> Vec<String> {
    let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut words = settings.data.first().map_or(Vec::new(), |place| place.words(data));
    words.extend(split(&settings.learn));
    words.extend(settings.per_method.get(method).map_or(Vec::new(), |text| split(text)));
    words.extend_from_slice(further);
    // One test set for all: otherwise the deviation over the seeds is that of the split.
    if words.iter().any(|word| word == "--test-fraction") && !words.iter().any(|word| word == SPLIT_SEED) {
        words.extend([SPLIT_SEED.to_owned(), settings.first_seed.to_string()]);
    }
    words.extend(["--method".to_owned(), method.to_owned(), "--seed".to_owned(), seed.to_string()]);
    last_of_each(&words)
}

/// Without options that are given again further on; `--test` may name several sets.
fn last_of_each(words: &[String]) -> Vec<String> {
    let is_option = |word: &String| word.starts_with("--");
    let groups: Vec<&[String]> = words.chunk_by(|_, next| !is_option(next)).collect();
    let again = |i: usize| {
        let [name, ..] = groups[i] else { return false };
        is_option(name) && name != "--test" && groups[i + 1..].iter().any(|later| later.first() == Some(name))
    };
    (0..groups.len()).filter(|i| !again(*i)).flat_map(|i| groups[i].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_options_win() {
        let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let words = split("a.npy b.npy --test c --test d --resize 500 --strict --crop 9 --resize 64 --strict");
        assert_eq!(last_of_each(&words), split("a.npy b.npy --test c --test d --crop 9 --resize 64 --strict"));
        assert_eq!(last_of_each(&[]), [""; 0]);
    }

    #[test]
    fn all_seeds_have_one_split() {
        let words_of = |learn: &str, seed| {
            let settings = Settings { learn: learn.to_owned(), first_seed: 4, ..Settings::default() };
            words(&settings, Path::new(""), "ocsc", seed, &[]).join(" ")
        };
        for seed in [4, 5] {
            let given = format!("--test-fraction 0.2 --split-seed 9 --method ocsc --seed {seed}");
            assert_eq!(words_of("--test-fraction 0.2 --split-seed 9", seed), given);
            let fixed = format!("--test-fraction 0.2 --split-seed 4 --method ocsc --seed {seed}");
            assert_eq!(words_of("--test-fraction 0.2", seed), fixed);
            assert_eq!(words_of("--test t.npy", seed), format!("--test t.npy --method ocsc --seed {seed}"));
        }
    }

    #[test]
    fn memory_is_rounded_down() {
        assert_eq!(rounded(21_987_654_321), 21_000_000_000);
        assert_eq!(rounded(99), 99);
        assert_eq!(rounded(3), 3);
    }
}
