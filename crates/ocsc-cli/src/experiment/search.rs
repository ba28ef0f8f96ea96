//! The settings of every method, chosen by one rule before an experiment's runs.
//!
//! Each method has a few candidates, which `experiments/*.toml` lists. A candidate is options of `ocsc learn`. It learns from the
//! training samples without some that are held out; the candidates of a method share a budget of processor time, which is the same
//! for all methods. The lowest objective on what was held out wins, and the first of equals. The test set is not looked at.
//! The runs are kept in the folder `search` of the experiment, so that reports show what was tried.

use super::cell::{CANDIDATE, Cell, Outcome};
use super::run::{Place, SPLIT_SEED, Work, arguments, last_of_each, one_by_one, without};
use super::runs::{Run, Runs};
use super::settings::{Data, Search, Settings};
use crate::console::Console;
use crate::report::{Entry, Table};
use crate::run::dataset;
use crate::run::folder::make_folder;
use anyhow::{Context, Result};
use ocsc::replace::write_file;
use std::path::{Path, PathBuf};

/// Its runs are in a folder of this name in the experiment's.
pub(super) const FOLDER: &str = "search";
/// Options that split the data, and those that say when a test set is evaluated.
pub(super) const SPLITS: &[&str] = &["--test", "--test-fraction", "--test-list", "--split", SPLIT_SEED];
pub(super) const LOOKS: &[&str] = &["--test-every", "--test-seconds", "--test-subset"];

/// Runs the candidates that were not run yet, and returns the settings with what was chosen.
pub(super) fn run(settings: &Settings, place: &Place<'_>) -> Result<Settings> {
    let Some(search) = &settings.search else { return Ok(settings.clone()) };
    let folder = place.folder.join(FOLDER);
    make_folder(&folder)?;
    let inner = Place { folder: folder.clone(), ..*place };
    let cells = cells(settings, search, &inner)?;
    place.console.say(format!(
        "searching settings: {} candidates, {} s of one processor for each method",
        cells.len(),
        search.seconds
    ));
    let learn = |cell: Cell| cell.learn(&folder, None, 0, place.console);
    let ran = one_by_one(cells, &inner, None, &Work { run: &learn, look: &Ok })?;
    let mut chosen = settings.clone();
    for (method, candidates) in &search.candidates {
        let tried = ran.iter().filter(|cell| cell.method == *method).map(|cell| held_out_objective(cell, &folder));
        let Some(best) = lowest(&tried.collect::<Result<Vec<_>>>()?) else { continue };
        let options = chosen.per_method.entry(method.clone()).or_default();
        *options = format!("{options} {}", candidates[best]).trim().to_owned();
        let words = if candidates[best].is_empty() { "its defaults" } else { &candidates[best] };
        place.console.say(format!("{method}: chosen {words}"));
    }
    Ok(chosen)
}

/// The number of the lowest objective, the first of equals; none if there is no number at all.
fn lowest(objectives: &[Option<f64>]) -> Option<usize> {
    let known = objectives.iter().enumerate().filter_map(|(i, value)| Some((i, value.filter(|v| v.is_finite())?)));
    known.reduce(|a, b| if b.1 < a.1 { b } else { a }).map(|(i, _)| i)
}

fn held_out_objective(cell: &Cell, folder: &Path) -> Result<Option<f64>> {
    let records = cell.records(folder)?;
    let last = records.iter().rev().find_map(|record| record.test_objective);
    Ok(last.filter(|_| cell.outcome == Outcome::Done))
}

/// All candidates of all methods.
fn cells(settings: &Settings, search: &Search, place: &Place<'_>) -> Result<Vec<Cell>> {
    let data = match settings.data.first() {
        Some(data) => training(data, settings, place)?,
        None => Vec::new(),
    };
    let mut cells = Vec::new();
    for method in settings.methods.iter().filter(|method| search.candidates.contains_key(*method)) {
        let candidates = &search.candidates[method];
        let budget = [
            ("--test-fraction", search.hold_out.to_string()),
            (SPLIT_SEED, settings.first_seed.to_string()),
            ("--time-limit", (search.seconds / candidates.len() as f64).to_string()),
            // So that its learning time is its processor time.
            ("--threads", "1".to_owned()),
        ];
        for (i, candidate) in candidates.iter().enumerate() {
            let own = arguments(settings, method, settings.first_seed, &[]);
            let further = search.learn.split_whitespace().chain(candidate.split_whitespace()).map(str::to_owned);
            let words = data.iter().cloned().chain(without(&own, LOOKS)).chain(further);
            let budget = budget.iter().flat_map(|(name, value)| [(*name).to_owned(), value.clone()]);
            cells.push(Cell {
                method: method.clone(),
                seed: settings.first_seed,
                at: Some((CANDIDATE.to_owned(), i)),
                words: last_of_each(&words.chain(budget).collect::<Vec<_>>()),
                ..Cell::default()
            });
        }
    }
    Ok(cells)
}

/// The words that name the training samples alone. Where they are what a split leaves, a list of their names is written.
fn training(data: &Data, settings: &Settings, place: &Place<'_>) -> Result<Vec<String>> {
    let words = data.words(place.data);
    let plain = without(&words, SPLITS);
    if without(&words, &SPLITS[..1]) == plain {
        return Ok(plain);
    }
    let cell = Cell { words: [words, arguments(settings, &settings.methods[0], 0, &[])].concat(), ..Cell::default() };
    let source = dataset::for_learning(&*cell.parsed(&place.folder)?, None, &Console::new(true))?.source;
    let names = (0..source.len()).map(|i| std::path::absolute(source.name(i)));
    let names: Vec<PathBuf> = names.collect::<std::io::Result<_>>().context("the names of the training samples")?;
    let path = place.folder.join("train.txt");
    let text: String = names.iter().map(|name| format!("{}\n", name.display())).collect();
    write_file(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let options = plain.into_iter().skip_while(|word| !word.starts_with("--"));
    Ok([format!("@{}", path.display())].into_iter().chain(options).collect())
}

/// What was tried and what was chosen; none if nothing was searched.
pub(super) fn table(runs: &Runs) -> Option<Table> {
    let search = runs.settings.search.as_ref().filter(|_| !runs.tried.is_empty())?;
    let mut table = Table {
        title: "What was tried".to_owned(),
        note: format!(
            "The settings of every method were chosen before the runs, by one rule: each candidate learned from the training samples \
             without {:.0} % of them, and was evaluated on these; bold is chosen, the lowest objective. The candidates of a method \
             share {} s of one processor. Options of all candidates: `{}`.",
            100.0 * search.hold_out,
            search.seconds,
            search.learn
        ),
        ..Table::default()
    };
    table.head = ["method", "candidate", "held-out objective", "learning time (s)", "samples learned from"]
        .map(str::to_owned)
        .to_vec();
    for (method, candidates) in ordered(runs, search) {
        let of = |i: usize| {
            runs.tried.iter().find(|run| run.cell.method == *method && run.cell.at.as_ref().is_some_and(|at| at.1 == i))
        };
        let objective = |i: usize| of(i).filter(|run| run.cell.outcome == Outcome::Done)?.last(|r| r.test_objective);
        let best = lowest(&(0..candidates.len()).map(objective).collect::<Vec<_>>());
        for (i, candidate) in candidates.iter().enumerate() {
            let entry = |text: Option<String>| Entry { text: text.unwrap_or("-".to_owned()), best: best == Some(i) };
            let text = if candidate.is_empty() { "as it is".to_owned() } else { format!("`{candidate}`") };
            let last = of(i).and_then(|run| run.records.last());
            table.rows.push(vec![
                Entry::plain(method),
                entry(Some(text)),
                entry(objective(i).map(|value| format!("{value:.2}"))),
                entry(of(i).and_then(|run| Some(format!("{:.2}", run.cell.clock(run.records.last()?))))),
                entry(last.map(|record| record.samples.to_string())),
            ]);
        }
    }
    Some(table)
}

/// The methods that had candidates, as the experiment lists them.
fn ordered<'a>(runs: &'a Runs, search: &'a Search) -> impl Iterator<Item = (&'a String, &'a Vec<String>)> {
    runs.settings.methods.iter().filter_map(|method| search.candidates.get_key_value(method))
}

/// The runs of the search of the experiment in this folder.
pub(super) fn tried(folder: &Path) -> Result<Vec<Run>> {
    let folder = folder.join(FOLDER);
    if folder.is_dir() { super::runs::runs_of(&folder) } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_is_chosen_and_the_first_of_equals() {
        assert_eq!(lowest(&[Some(3.0), None, Some(2.0), Some(f64::NAN), Some(2.0)]), Some(2));
        assert_eq!(lowest(&[None, Some(f64::INFINITY)]), None);
    }

    #[test]
    fn candidates_see_no_test_samples_and_have_one_budget() {
        let text = "methods = ['ocsc', 'fcsc']\nseeds = 1\nfirst_seed = 3\nlearn = '--tol 0.01 --test-seconds 1'\n\
                    [per_method]\nfcsc = '--passes 4'\n[search]\nseconds = 12\nhold_out = 0.25\nlearn = '--passes 900'\n\
                    [search.candidates]\nocsc = ['', '--tol 0.1', '--learn-tol 0.2']\nfcsc = ['--rho 3']\n\
                    [[data]]\ntrain = ['a.npy']\ntest = ['b.npy']\noptions = '--resize 9'";
        let settings = Settings::parse(text).unwrap();
        let place = Place { folder: "f".into(), data: Path::new("d"), threads: None, console: &Console::new(true) };
        let cells = cells(&settings, settings.search.as_ref().unwrap(), &place).unwrap();
        let words: Vec<String> = cells.iter().map(|cell| cell.words.join(" ")).collect();
        let end = "--test-fraction 0.25 --split-seed 3";
        assert_eq!(words.len(), 4);
        let first = "d/a.npy --resize 9 --tol 0.01 --method ocsc --seed 3 --passes 900";
        assert_eq!(words[0], format!("{first} {end} --time-limit 4 --threads 1"));
        assert_eq!(words[1], words[0].replace("--tol 0.01 ", "").replace("900", "900 --tol 0.1"));
        assert_eq!(
            words[3],
            format!(
                "d/a.npy --resize 9 --tol 0.01 --method fcsc --seed 3 --passes 900 --rho 3 {end} --time-limit 12 --threads 1"
            )
        );
    }
}
