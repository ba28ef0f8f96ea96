//! How long an experiment will take, before it is begun: each method is given a few samples, and what these took is multiplied.
//!
//! Learning is taken to cost the same for every sample, up to the run's time limit, and a test the same for every sample that is
//! coded. That is a guess: later passes of a method may be faster than its first steps, and a run may end before its last pass.

use super::cell::{Cell, PROBE};
use super::run::{Place, last_of_each, without};
use super::search;
use super::settings::{Kind, Settings};
use crate::args::Learn;
use crate::console::{Console, counted};
use crate::data::{Source, channels_before};
use crate::run::dataset::{self, ToLearn};
use crate::run::folder::make_folder;
use crate::run::model::Prepared;
use anyhow::{Context, Result};
use ocsc::checkpoint;
use ocsc::train::{TEST_TOL, evaluate, refuse};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// The folder of the runs that measure.
const FOLDER: &str = "probes";
/// How many samples a method is measured on, at most, and for how many seconds of learning.
const SAMPLES: usize = 3;
const SECONDS: f64 = 5.0;

/// What the cells of an experiment are expected to take, in seconds; none where nothing is known of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    cells: Vec<Option<f64>>,
    /// How many of them are done already.
    kept: usize,
    /// What went by since the first cell, and what was expected of the cells that are done.
    passed: f64,
    expected: f64,
    begun: Option<Instant>,
}

/// What a method takes for one sample, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    learning: f64,
    testing: f64,
}

/// Measures what the cells will take that are not there yet.
pub(super) fn plan(cells: &[Cell], settings: &Settings, place: &Place<'_>) -> Result<Plan> {
    let mut plan = Plan { cells: vec![None; cells.len()], ..Plan::default() };
    if settings.kind == Kind::Solvers {
        return Ok(plan);
    }
    let folder = place.folder.join(FOLDER);
    make_folder(&folder)?;
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    // Of sizes, the last is the largest.
    for (i, cell) in cells.iter().enumerate().rev() {
        if cell.kept(&place.folder).is_some() {
            plan.cells[i] = Some(0.0);
            plan.kept += 1;
            continue;
        }
        let args = cell.parsed(&place.folder)?;
        let data = dataset::for_learning(&args, None, &Console::new(true))?;
        let cost = match costs.get(cell.method.as_str()) {
            Some(cost) => *cost,
            None => match measure(cell, &data, &Place { folder: folder.clone(), ..*place })? {
                Some(cost) => *costs.entry(&cell.method).or_insert(cost),
                None => continue,
            },
        };
        plan.cells[i] = Some(expected(&args, &data, cost, settings.kind));
    }
    Ok(plan)
}

/// What learning from a sample and testing one takes; none if the method did not come so far.
fn measure(cell: &Cell, data: &ToLearn, place: &Place<'_>) -> Result<Option<Cost>> {
    let further = ["--limit", &SAMPLES.to_string(), "--passes", "1", "--time-limit", &SECONDS.to_string()];
    let plain = without(&without(&cell.words, search::LOOKS), search::SPLITS);
    let words = [plain, further.map(str::to_owned).to_vec()].concat();
    let probe = Cell { at: Some((PROBE.to_owned(), 0)), seed: 0, words: last_of_each(&words), ..cell.clone() };
    let probe = match probe.kept(&place.folder) {
        Some(kept) => kept,
        None => {
            place.console.say(format!("  measuring {}", cell.method));
            probe.learn(&place.folder, place.threads, 0, &Console::new(true))?
        }
    };
    let Some(last) = probe.records(&place.folder)?.pop().filter(|last| last.samples > 0) else { return Ok(None) };
    let learning = probe.clock(&last) / last.samples as f64;
    let model = probe.file(&place.folder, ".safetensors");
    let testing = data.test.as_ref().map(|test| testing(test, &model)).transpose()?;
    Ok(Some(Cost { learning, testing: testing.unwrap_or(0.0) }))
}

/// What coding a test sample takes.
fn testing(test: &Source, model: &Path) -> Result<f64> {
    let saved = checkpoint::load::<f32>(model).context("a run that measures")?;
    let preprocess = &saved.config.preprocess;
    let few = test.first(SAMPLES).of_channels(channels_before(preprocess, saved.dictionary.shape().channels));
    let prepared = Prepared::new(&few, preprocess);
    let tested = evaluate(&saved.config, &saved.dictionary, &prepared, TEST_TOL, &mut refuse)?;
    Ok(tested.seconds / tested.samples as f64)
}

/// What a run will take, tests included.
fn expected(args: &Learn, data: &ToLearn, cost: Cost, kind: Kind) -> f64 {
    let passes = args.model.passes().unwrap_or(1);
    let visits = passes as f64 * data.source.len() as f64;
    let limit = args.model.run().time_limit.unwrap_or(f64::INFINITY);
    let learning = (visits * cost.learning).min(limit);
    let made = learning / cost.learning.max(f64::MIN_POSITIVE);
    let tests = data.test.as_ref().map_or(0.0, |test| {
        let whole = test.len() as f64;
        let each = args.test_subset.map_or(whole, |n| (n as f64).min(whole));
        // As often as the dictionary changes, at most.
        let updates = if args.model.is_batch() { made / data.source.len().max(1) as f64 } else { made };
        let looks = match (args.test_seconds, args.test_every) {
            (Some(seconds), _) => (learning / seconds).min(updates),
            (None, Some(every)) => made / every as f64,
            (None, None) => made / data.source.len().max(1) as f64,
        };
        (looks * each + whole) * cost.testing
    });
    // The samples are coded anew about so often as time doubles.
    let looks =
        if kind == Kind::Convergence { made.max(2.0).log2() * data.source.len() as f64 * cost.learning } else { 0.0 };
    learning + tests + looks
}

impl Plan {
    /// What all cells will take, and of how many nothing is known.
    pub(crate) fn total(&self) -> (f64, usize) {
        let known = self.cells.iter().flatten().sum();
        (known, self.cells.iter().filter(|cell| cell.is_none()).count())
    }

    /// Is told that a cell begins.
    pub(super) fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// Is told that the cell of this number is done.
    pub(super) fn end(&mut self, number: usize) {
        if let (Some(begun), Some(Some(expected))) = (self.begun.take(), self.cells.get(number)) {
            self.passed += begun.elapsed().as_secs_f64();
            self.expected += expected;
        }
    }

    /// What is left from this cell on, as the ones before it went; none if nothing is known.
    pub(super) fn left(&self, number: usize) -> Option<f64> {
        let left: f64 = self.cells.iter().skip(number).copied().collect::<Option<Vec<f64>>>()?.iter().sum();
        let pace = if self.expected > 0.0 { self.passed / self.expected } else { 1.0 };
        Some(left * pace)
    }

    /// Says it in words.
    pub(crate) fn words(&self) -> String {
        let (seconds, unknown) = self.total();
        let mut words = format!("{}, about {}", counted(self.cells.len(), "run"), duration(seconds));
        if self.kept > 0 {
            words += &format!(" ({} of them done already)", self.kept);
        }
        if unknown > 0 {
            words += &format!(", and {} of which nothing is known", counted(unknown, "run"));
        }
        words
    }
}

/// `40 s`, `12 min` or `3.5 h`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_the_pace() {
        let mut plan = Plan { cells: vec![Some(2.0), Some(0.0), Some(10.0), Some(20.0)], kept: 1, ..Plan::default() };
        assert_eq!((plan.total(), plan.left(0), plan.left(4)), ((32.0, 0), Some(32.0), Some(0.0)));
        assert_eq!(plan.words(), "4 runs, about 32 s (1 of them done already)");
        // The first took three times as long as expected.
        (plan.passed, plan.expected) = (6.0, 2.0);
        assert_eq!(plan.left(2), Some(90.0));
        plan.cells[3] = None;
        assert_eq!((plan.left(2), plan.total()), (None, (12.0, 1)));
        assert!(plan.words().ends_with("and 1 run of which nothing is known"), "{}", plan.words());
    }

    #[test]
    fn durations_are_short() {
        assert_eq!([0.4, 99.0, 100.0, 5999.0, 7200.0].map(duration), ["0 s", "99 s", "2 min", "100 min", "2.0 h"]);
    }
}
