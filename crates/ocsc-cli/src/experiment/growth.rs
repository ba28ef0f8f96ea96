//! More and more training images: PSNR, time and memory against their number, and where memory ends.

use super::NOT_RUN;
use super::cell::Outcome;
use super::curves::shown;
use super::estimate::duration;
use super::runs::{Run, Runs};
use crate::console::bytes;
use crate::experiment::t_test::Summary;
use crate::report::chart::{Chart, Series, Style};
use crate::report::objective::spans;
use crate::report::{Entry, Section, Table};
use std::collections::{BTreeMap, BTreeSet};

/// A figure of a run.
type Value = fn(&Run) -> Option<f64>;

pub(super) fn section(runs: &Runs) -> Section {
    let figures: [(&str, &str, Value); 3] = [
        ("Test PSNR", "PSNR (dB)", |run| run.last(|r| r.test_psnr)),
        ("Processor time", "processor time (s)", Run::cpu_seconds),
        ("Peak memory", "peak memory (MB)", |run| run.peak_memory().map(|bytes| bytes / 1e6)),
    ];
    let charts = figures.into_iter().map(|(title, y_label, value)| chart(runs, title, y_label, value));
    let charts = charts.filter(|chart| !chart.series.is_empty()).collect();
    let note = "A method runs out of memory where it would need more than it may take. What is needed is counted before a run \
                starts, and so is the number of images that would be too many: `any` where it does not depend on their number. It \
                runs out of time where it would learn for longer than it may, as the sizes before took. What more images would take \
                is not measured: time is that of the most images run, in proportion to their number, and memory the method's account."
        .to_owned();
    Section { notes: vec![note], charts, tables: vec![table(runs)], ..Section::default() }
}

fn chart(runs: &Runs, title: &str, y_label: &str, value: Value) -> Chart {
    let series: Vec<Series> = runs.methods().iter().map(|method| against_images(runs, method, value)).collect();
    let series: Vec<Series> = series.into_iter().filter(|s| !s.points.is_empty()).collect();
    let points = || series.iter().flat_map(|s| &s.points);
    let log_x = spans(points().map(|p| p.0), 10.0);
    let log_y = title != "Test PSNR" && spans(points().map(|p| p.1), 10.0);
    let x_label = "training images".to_owned();
    Chart { title: title.to_owned(), x_label, y_label: y_label.to_owned(), log_x, log_y, series }
}

/// The mean over the seeds at each number of images.
fn against_images(runs: &Runs, method: &str, value: Value) -> Series {
    let mut at: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for run in runs.done(method) {
        if let (Some((_, images)), Some(value)) = (&run.cell.at, value(run)) {
            at.entry(*images).or_default().push(value);
        }
    }
    let mut series = Series { name: method.to_owned(), style: Style::LineMarkers, points: vec![], band: vec![] };
    let several = at.values().all(|values| values.len() > 1);
    for (images, values) in at {
        let Some(Summary { mean, deviation, .. }) = Summary::of(&values) else { continue };
        series.points.push((images as f64, mean));
        if several {
            series.band.push((mean - deviation, mean + deviation));
        }
    }
    series
}

/// The most images each method took, what they gave, and where its memory ended.
fn table(runs: &Runs) -> Table {
    let printed = runs.settings.printed("images");
    let mut table = Table { title: "The most images".to_owned(), ..Table::default() };
    let head = [
        "method",
        "most images run",
        "PSNR (dB)",
        "test objective",
        "processor time (s)",
        "peak memory",
        "out of memory at",
        "out of time at",
    ];
    table.head = head.map(str::to_owned).to_vec();
    let all = runs.settings.sizes.last().copied().unwrap_or(0);
    table.head.push(format!("{all} images would take"));
    let limits: BTreeSet<usize> =
        runs.runs.iter().flat_map(|run| &run.cell.capacity).map(|(limit, _)| *limit).collect();
    table.head.extend(limits.iter().map(|limit| format!("would fit in {}", bytes(*limit as u64))));
    table.head.extend(printed.map(|printed| format!("most images, the paper ({})", printed.place)));
    for method in runs.methods() {
        let images = |run: &Run| run.cell.at.as_ref().map_or(0, |(_, images)| *images);
        let most = runs.done(method).map(images).max();
        let largest: Vec<&Run> = runs.done(method).filter(|run| Some(images(run)) == most).collect();
        let mean = |value: Value| Summary::of(&largest.iter().filter_map(|run| value(run)).collect::<Vec<_>>());
        let text = |summary: Option<Summary>| summary.map_or("-".to_owned(), |s| shown(s, 2));
        let mut row = vec![
            Entry::plain(method),
            Entry::plain(most.map_or_else(|| NOT_RUN.to_owned(), |n| n.to_string())),
            Entry::plain(text(mean(|run| run.last(|r| r.test_psnr)))),
            Entry::plain(text(mean(|run| run.last(|r| r.test_objective)))),
            Entry::plain(text(mean(Run::cpu_seconds))),
            Entry::plain(mean(Run::peak_memory).map_or("-".to_owned(), |s| bytes(s.mean as u64))),
            Entry::plain(out_of_memory(runs, method)),
            Entry::plain(out_of_time(runs, method)),
            Entry::plain(all_would_take(runs, method, all, most.zip(mean(Run::cpu_seconds)))),
        ];
        row.extend(limits.iter().map(|limit| {
            let cells = runs.runs.iter().map(|run| &run.cell).filter(|cell| cell.method == *method);
            let found = cells.flat_map(|cell| &cell.capacity).find(|(of, _)| of == limit);
            let most = |images: Option<usize>| images.map_or("any".to_owned(), |n| n.to_string());
            Entry::plain(found.map_or("-".to_owned(), |(_, images)| most(*images)))
        }));
        row.extend(printed.map(|p| Entry::plain(p.values.get(method).cloned().unwrap_or("-".to_owned()))));
        table.rows.push(row);
    }
    table
}

/// The fewest images that were too many, and what they would take.
fn out_of_memory(runs: &Runs, method: &str) -> String {
    let full = runs.runs.iter().filter(|run| run.cell.method == method).find_map(|run| match run.cell.outcome {
        Outcome::OutOfMemory { need } => Some((run.cell.at.as_ref().map_or(0, |(_, n)| *n), need)),
        Outcome::Done | Outcome::OutOfTime { .. } => None,
    });
    match full {
        Some((images, Some(need))) => format!("{images} (needs {})", bytes(need as u64)),
        Some((images, None)) => format!("{images} (ended by the system)"),
        None => "-".to_owned(),
    }
}

/// The fewest images that would have taken too long, and how long.
fn out_of_time(runs: &Runs, method: &str) -> String {
    let late = runs.runs.iter().filter(|run| run.cell.method == method).find_map(|run| match run.cell.outcome {
        Outcome::OutOfTime { need } => Some((run.cell.at.as_ref().map_or(0, |(_, n)| *n), need)),
        Outcome::Done | Outcome::OutOfMemory { .. } => None,
    });
    late.map_or("-".to_owned(), |(images, need)| format!("{images} (would take {})", duration(need)))
}

/// What learning from this many images would take beyond those that were run: processor time in proportion, memory by account.
fn all_would_take(runs: &Runs, method: &str, all: usize, measured: Option<(usize, Summary)>) -> String {
    if measured.is_some_and(|(most, _)| most >= all) {
        return "was run".to_owned();
    }
    let time = measured.map(|(most, time)| duration(time.mean * all as f64 / most.max(1) as f64));
    let needs = runs.runs.iter().filter(|run| run.cell.method == method).flat_map(|run| &run.cell.needs);
    let memory = needs.filter(|(n, _)| *n == all).map(|(_, need)| bytes(*need as u64)).next();
    let parts: Vec<String> = [time, memory].into_iter().flatten().collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::cell::Cell;

    #[test]
    fn what_was_not_run_is_told_from_what_was() {
        let cell = |images: usize, outcome| Cell {
            method: "m".to_owned(),
            at: Some(("images".to_owned(), images)),
            outcome,
            needs: vec![(10, 1000), (80, 5_000_000)],
            ..Cell::default()
        };
        let run = |cell| Run { cell, records: Vec::new(), folder: "".into() };
        let late = run(cell(40, Outcome::OutOfTime { need: 7200.0 }));
        let runs = Runs::of_cells(vec![run(cell(10, Outcome::Done)), late]);
        assert_eq!(out_of_time(&runs, "m"), "40 (would take 2.0 h)");
        assert_eq!(out_of_memory(&runs, "m"), "-");
        let measured = Summary::of(&[30.0]).map(|time| (10, time));
        assert_eq!(all_would_take(&runs, "m", 80, measured), "4 min, 5.0 MB");
        assert_eq!(all_would_take(&runs, "m", 10, measured), "was run");
        assert_eq!((all_would_take(&runs, "n", 80, None), out_of_time(&runs, "n")), ("-".to_owned(), "-".to_owned()));
    }
}
