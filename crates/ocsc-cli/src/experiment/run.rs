//! Running an experiment: its cells one after the other, without those that are finished already.

use super::cell::{Cell, Outcome};
use super::estimate::{Plan, duration, plan};
use super::settings::{Kind, Settings};
use super::{convergence, restoring, search, solvers};
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
#[derive(Clone)]
pub(crate) struct Place<'a> {
    /// Its folder of runs.
    pub(crate) folder: PathBuf,
    /// The folder that its data are relative to.
    pub(crate) data: &'a Path,
    pub(crate) threads: Option<usize>,
    pub(crate) console: &'a Console,
}

/// Runs what is not yet there; an error says what failed or that it was interrupted, and what is done is kept. What it will take is
/// measured and said before, if that is wanted.
pub(crate) fn run(settings: &Settings, is_planned: bool, place: &Place<'_>) -> Result<()> {
    begin(settings, place)?;
    let chosen = search::run(settings, place)?;
    let cells = cells(&chosen, place)?;
    let plan = if is_planned { Some(plan(&cells, &chosen, place)?) } else { None };
    plan.iter().for_each(|plan| place.console.say(plan.words()));
    let run = |cell: Cell| ran(cell, &chosen, place);
    let limits = limits(&chosen)?;
    let look = |cell: Cell| match chosen.kind {
        Kind::Growth => cell.count_capacity(&place.folder, &limits, &chosen.sizes),
        _ => Ok(cell),
    };
    one_by_one(cells, place, plan, &Work { run: &run, look: &look }).map(drop)
}

/// What an experiment will take, without running it: its runs, and a search before them, if there is one.
pub(crate) fn planned(settings: &Settings, place: &Place<'_>) -> Result<(Plan, f64)> {
    begin(settings, place)?;
    let search = settings.search.as_ref().map_or(0.0, |search| search.seconds * search.candidates.len() as f64);
    Ok((plan(&cells(settings, place)?, settings, place)?, search))
}

fn begin(settings: &Settings, place: &Place<'_>) -> Result<()> {
    leave_soon_after_interrupts();
    make_folder(&place.folder)?;
    let path = place.folder.join("experiment.toml");
    let text = toml::to_string(settings).context("cannot write the settings as TOML")?;
    write_file(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// What is done with cells.
pub(super) struct Work<'a> {
    /// To one that is not there yet.
    pub(super) run: &'a dyn Fn(Cell) -> Result<Cell>,
    /// To every one, also if it was there.
    pub(super) look: &'a dyn Fn(Cell) -> Result<Cell>,
}

/// Runs the cells that are not there yet, in their order, and returns all.
pub(super) fn one_by_one(
    cells: Vec<Cell>,
    place: &Place<'_>,
    mut plan: Option<Plan>,
    work: &Work<'_>,
) -> Result<Vec<Cell>> {
    let (mut all, mut failed, mut incomplete, total) = (Vec::new(), Vec::new(), 0, cells.len());
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
                let left = plan.as_ref().and_then(|plan| plan.left(i)).map(duration);
                let left = left.map_or(String::new(), |left| format!(" (about {left} left for all)"));
                place.console.say(format!("{number} of {total}: {title}{left}"));
                plan.iter_mut().for_each(Plan::begin);
                let ran = match too_long(&cell, &all, &place.folder) {
                    Some(need) => with_outcome(cell, Outcome::OutOfTime { need }, &place.folder),
                    None => (work.run)(cell),
                };
                plan.iter_mut().for_each(|plan| plan.end(i));
                ran
            }
        };
        match ran.and_then(work.look) {
            Ok(cell) => {
                match cell.outcome {
                    Outcome::Done => incomplete += usize::from(cell.passed_over(&place.folder)),
                    Outcome::OutOfMemory { .. } => {
                        place.console.say(format!("  {title}: out of memory"));
                        full = Some(cell.clone());
                    }
                    Outcome::OutOfTime { need } => {
                        place.console.say(format!("  {title}: would take {}, which is too long", duration(need)));
                    }
                }
                all.push(cell);
            }
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
        [] => Ok(all),
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
        Kind::Curves | Kind::Complexity | Kind::Ablation => {
            let pictures = if cell.seed == settings.first_seed && cell.at.is_none() { settings.pictures } else { 0 };
            cell.learn(&place.folder, place.threads, pictures, place.console)
        }
        Kind::Restoring => {
            let cell = cell.learn_unmarked(&place.folder, place.threads, place.console)?;
            if cell.outcome != Outcome::Done {
                return cell.save(&place.folder).map(|()| cell);
            }
            let photos = settings.restoring.as_ref().context("restoring")?;
            restoring::measure(cell, photos, place.data, &place.folder, place.console)
        }
        Kind::Growth => {
            let cell = cell.learn(&place.folder, place.threads, 0, place.console)?;
            match cell.unfinished(&place.folder)? {
                Some(need) => with_outcome(cell, Outcome::OutOfTime { need }, &place.folder),
                None => Ok(cell),
            }
        }
        Kind::Solvers => solvers::run(cell, settings, &place.folder),
        Kind::Convergence => {
            let steps = settings.sweep.get("steps").map(Vec::as_slice).unwrap_or_default();
            convergence::run(cell, steps, &place.folder, place.console)
        }
    }
}

fn with_outcome(cell: Cell, outcome: Outcome, folder: &Path) -> Result<Cell> {
    let cell = Cell { outcome, ..cell };
    cell.save(folder)?;
    Ok(cell)
}

/// What a cell would take that is not to be run: as many times what the last one of its kind took as it has more images, if that is
/// more than it may take.
fn too_long(cell: &Cell, before: &[Cell], folder: &Path) -> Option<f64> {
    let (axis, images) = cell.at.as_ref()?;
    let smaller = |other: &&Cell| other.method == cell.method && other.seed == cell.seed;
    let last = before.iter().rev().find(smaller)?;
    let (same, fewer) = last.at.as_ref()?;
    let took = match last.outcome {
        Outcome::OutOfTime { need } => need,
        Outcome::Done => last.clock(last.records(folder).ok()?.last()?),
        Outcome::OutOfMemory { .. } => return None,
    };
    let need = took * *images as f64 / (*fewer).max(1) as f64;
    (same == axis && axis == IMAGES && need > cell.time_limit()?).then_some(need)
}

impl Cell {
    /// What a run that ended at its time limit would have taken for all of its passes, as they went until then.
    fn unfinished(&self, folder: &Path) -> Result<Option<f64>> {
        let (Some(limit), Outcome::Done) = (self.time_limit(), &self.outcome) else { return Ok(None) };
        let Some(last) = self.records(folder)?.pop() else { return Ok(None) };
        let passes = self.option("--passes").map_or(Ok(1), str::parse::<u64>).context("--passes")?;
        let images = self.at.as_ref().map_or(0, |(_, images)| *images as u64);
        let (made, all) = (last.samples + last.skipped.unwrap_or(0), passes * images);
        let took = self.clock(&last);
        Ok((took >= limit && made < all).then(|| took * all as f64 / made.max(1) as f64))
    }

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
                let simd = settings.variants.get(method).map(|variant| variant.simd.clone());
                cells.push(Cell {
                    method: method.clone(),
                    seed,
                    at,
                    words: words(settings, place.data, method, seed, &further),
                    simd: simd.filter(|simd| !simd.is_empty()),
                    machine: machine(),
                    ..Cell::default()
                });
            }
        }
    }
    Ok(cells)
}

/// The processor, as the system names it, how many of its threads there are, and this program.
fn machine() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = known.lines().find_map(|line| line.strip_prefix("model name")?.trim_start().strip_prefix(':'));
    let processor = name.map_or(std::env::consts::ARCH, str::trim);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{processor}, {}, ocsc {}", counted(threads, "thread"), env!("CARGO_PKG_VERSION"))
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
                (Some((IMAGES.to_owned(), n)), words.collect())
            };
            let there = images(settings, place)?;
            Ok(settings.sizes.iter().filter(|n| **n <= there).map(size).collect())
        }
        Kind::Complexity => {
            let axes = [(IMAGES, "limit"), ("filters", "filters"), ("side", "crop")];
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
        Kind::Curves | Kind::Solvers | Kind::Convergence | Kind::Ablation | Kind::Restoring => {
            Ok(vec![(None, Vec::new())])
        }
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

/// What is varied where it is the number of training images.
const IMAGES: &str = "images";

/// The option that decides what `--test-fraction` holds out.
pub(super) const SPLIT_SEED: &str = "--split-seed";

fn words(settings: &Settings, data: &Path, method: &str, seed: u64, further: &[String]) -> Vec<String> {
    let mut words = settings.data.first().map_or(Vec::new(), |place| place.words(data));
    words.extend(arguments(settings, method, seed, further));
    // One test set for all: otherwise the deviation over the seeds is that of the split.
    if words.iter().any(|word| word == "--test-fraction") && !words.iter().any(|word| word == SPLIT_SEED) {
        words.extend([SPLIT_SEED.to_owned(), settings.first_seed.to_string()]);
    }
    last_of_each(&words)
}

/// The words that say how a method learns, and not from what.
pub(super) fn arguments(settings: &Settings, name: &str, seed: u64, further: &[String]) -> Vec<String> {
    let variant = settings.variants.get(name).map(|variant| &variant.options);
    let texts = [Some(&settings.learn), settings.per_method.get(name), variant];
    let mut words: Vec<String> =
        texts.into_iter().flatten().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect();
    words.extend_from_slice(further);
    words.extend(["--method", settings.method(name), "--seed", &seed.to_string()].map(str::to_owned));
    words
}

/// Without these options and their values.
pub(super) fn without(words: &[String], names: &[&str]) -> Vec<String> {
    let groups = words.chunk_by(|_, next| !next.starts_with("--"));
    groups.filter(|group| !names.contains(&group[0].as_str())).flatten().cloned().collect()
}

/// Without options that are given again further on; `--test` may name several sets.
pub(super) fn last_of_each(words: &[String]) -> Vec<String> {
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
    use crate::run::record::tests::record;
    use crate::run::record::{Event, Record};

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
            let fixed = format!("--test-fraction 0.2 --method ocsc --seed {seed} --split-seed 4");
            assert_eq!(words_of("--test-fraction 0.2", seed), fixed);
            assert_eq!(words_of("--test t.npy", seed), format!("--test t.npy --method ocsc --seed {seed}"));
        }
    }

    #[test]
    fn a_name_may_stand_for_a_method_with_other_options() {
        let text = "methods = ['ocsc', 'slow']\nseeds = 1\nlearn = '--tol 0.1 --filters 3'\n[variants.slow]\n\
                    method = 'ocsc'\noptions = '--tol 0.5'\nsimd = 'portable'";
        let settings = Settings::parse(text).unwrap();
        let place = Place { folder: "f".into(), data: Path::new(""), threads: None, console: &Console::new(true) };
        let cells = cells(&settings, &place).unwrap();
        let [plain, slow] = &cells[..] else { panic!("{cells:?}") };
        assert_eq!(plain.words.join(" "), "--tol 0.1 --filters 3 --method ocsc --seed 0");
        assert_eq!(slow.words.join(" "), "--filters 3 --tol 0.5 --method ocsc --seed 0");
        assert_eq!((plain.simd.as_deref(), slow.simd.as_deref()), (None, Some("portable")));
    }

    #[test]
    fn what_would_take_too_long_is_known_from_the_sizes_before() {
        let folder = tempfile::tempdir().unwrap();
        let cell = |images, limit: &str, passes: &str| Cell {
            method: "m".into(),
            at: Some((IMAGES.to_owned(), images)),
            words: ["--time-limit", limit, "--passes", passes].map(str::to_owned).to_vec(),
            ..Cell::default()
        };
        let record = Record { seconds: 10.0, samples: 20, ..record(Event::End, 1, None) };
        let line = serde_json::to_string(&Record { skipped: None, ..record }).unwrap() + "\n";
        let first = cell(10, "40", "2");
        std::fs::write(first.file(folder.path(), ".jsonl"), line).unwrap();
        assert_eq!(first.unfinished(folder.path()).unwrap(), None);
        assert_eq!(cell(10, "9", "2").unfinished(folder.path()).unwrap(), None, "the limit came with the last sample");
        assert_eq!(cell(10, "9", "6").unfinished(folder.path()).unwrap(), Some(30.0));
        let before = [first];
        assert_eq!(too_long(&cell(40, "40", "2"), &before, folder.path()), None);
        assert_eq!(too_long(&cell(50, "40", "2"), &before, folder.path()), Some(50.0));
        let long = Cell { outcome: Outcome::OutOfTime { need: 50.0 }, ..cell(50, "40", "2") };
        assert_eq!(too_long(&cell(100, "40", "2"), &[long], folder.path()), Some(100.0));
        assert_eq!(too_long(&cell(50, "40", "2"), &[], folder.path()), None);
    }

    #[test]
    fn memory_is_rounded_down() {
        assert_eq!(rounded(21_987_654_321), 21_000_000_000);
        assert_eq!(rounded(99), 99);
        assert_eq!(rounded(3), 3);
    }
}
