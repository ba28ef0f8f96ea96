//! Methods over several seeds: test objective and PSNR against time, what they ended at, their dictionaries and
//! reconstructions.

use super::NOT_RUN;
use super::run::SPLIT_SEED;
use super::runs::{Run, Runs};
use crate::console::bytes;
use crate::experiment::t_test::{BySeed, Summary, differ};
use crate::report::chart::{Chart, Series, Style};
use crate::report::objective::spans;
use crate::report::picture::dictionary_mosaic;
use crate::report::{Entry, Section, Table};
use crate::run::record::{Event, Record};
use crate::run::settings::obeyed;
use anyhow::Result;
use ocsc::checkpoint::{self, Saved};
use std::collections::BTreeMap;

/// A run has arrived when it is so close to the lowest test objective of its seed.
const ARRIVED: f64 = 0.01;

/// A value of a record.
type Value = fn(&Record) -> Option<f64>;

const TRAINING: &str = "Training objective";
/// The same for methods that report passes alone.
const PASSES: &str = "Training objective of passes";

/// What may be shown, if a run has it: the title, the y axis and the value. Those of a test are averaged on the grid of time that
/// runs were evaluated on, if there is one.
const FIGURES: [(&str, &str, Value); 4] = [
    ("Test objective", "objective (mean per test sample)", |r| r.test_objective),
    ("Test PSNR", "PSNR (dB)", |r| r.test_psnr),
    (TRAINING, "objective (mean per sample or piece learned from)", |r| r.objective.filter(|_| r.event == Event::Step)),
    (PASSES, "objective (mean per sample or piece of a pass)", |r| r.objective.filter(|_| r.event == Event::Pass)),
];

/// Steps are drawn as the means of at most so many groups.
const GROUPS: usize = 150;
/// From one point of a grid of time to the next that is drawn, time grows at least by this factor.
const GROWTH: f64 = 1.05;
/// The option that makes the grid.
const GRID: &str = "--test-seconds";

pub(super) fn section(runs: &Runs) -> Result<Section> {
    let mut section = Section { charts: charts(runs), tables: vec![table(runs)], ..Section::default() };
    let mut models = Vec::new();
    section.notes.extend(split_note(runs));
    section.notes.extend(grid_note(runs));
    section.notes.extend(subset_note(runs));
    section.notes.extend(peak_note(runs));
    let mut in_pieces = Vec::new();
    for method in runs.methods() {
        let Some(run) = runs.done(method).next() else { continue };
        let model = run.cell.file(&run.folder, ".safetensors");
        let plain = run.folder.join(format!("{method}.safetensors"));
        if let Some(path) = [model, plain].iter().find(|path| path.is_file()) {
            let saved = checkpoint::load::<f32>(path)?;
            section.mosaics.push((method.clone(), dictionary_mosaic(&saved.dictionary).png_bytes()?));
            models.push((method.as_str(), rows(&saved)?));
            in_pieces.extend(learns_in_pieces(run, saved.attached.samples).then(|| format!("`{method}`")));
        }
        section.triplets.extend(run.cell.triplets(&run.folder)?);
    }
    section.notes.extend(pieces_note(&in_pieces));
    section.settings = together(&models);
    Ok(section)
}

/// Whether a run learned from pieces: in some pass from more of them than there are `samples`, as its model says.
fn learns_in_pieces(run: &Run, samples: Option<usize>) -> bool {
    let more_than = |n: usize| run.records.iter().any(|r| r.event != Event::End && r.samples > r.pass * n as u64);
    samples.is_some_and(more_than)
}

/// What the figures of training mean where methods learned from pieces.
fn pieces_note(methods: &[String]) -> Option<String> {
    (!methods.is_empty()).then(|| {
        format!(
            "Learned from pieces of samples: {}. Their training objective and their non-zeros of training are means per piece, \
             which cannot be compared with those per whole sample; test figures are per whole sample for all methods.",
            methods.join(", ")
        )
    })
}

/// The settings of a model, and from how many samples it was learned.
fn rows(saved: &Saved<f32>) -> Result<Vec<(String, String)>> {
    let samples = saved.attached.samples.map(|samples| ("samples".to_owned(), samples.to_string()));
    Ok(samples.into_iter().chain(obeyed(&saved.config)?).collect())
}

/// One row for each setting; where models differ in it, with the values of all.
fn together(models: &[(&str, Vec<(String, String)>)]) -> Vec<(String, String)> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in models.iter().flat_map(|(_, rows)| rows) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let value = |rows: &[(String, String)], name: &String| {
        rows.iter().find(|row| row.0 == *name).map_or("-".to_owned(), |row| row.1.clone())
    };
    let row = |name: &String| {
        let values: Vec<String> = models.iter().map(|(_, rows)| value(rows, name)).collect();
        let all_same = values.iter().all(|value| *value == values[0]);
        let each = || models.iter().zip(&values).map(|((model, _), value)| format!("{model}: {value}"));
        let text = if all_same { values[0].clone() } else { each().collect::<Vec<_>>().join("; ") };
        (name.clone(), text)
    };
    names.into_iter().map(row).collect()
}

/// Each figure for which there are points, against processor time; the training objective of passes only where there is none of
/// steps.
pub(super) fn charts(runs: &Runs) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for (title, y_label, value) in FIGURES {
        if title == PASSES && charts.iter().any(|chart| chart.title == TRAINING) {
            continue;
        }
        let grid = grid(runs).filter(|_| title.starts_with("Test"));
        let curve = |method: &String| match grid {
            Some(grid) if runs.done(method).nth(1).is_some() => grid_curve(method, runs.done(method), value, grid),
            _ => mean_curve(method, runs.done(method), value),
        };
        let series: Vec<Series> = runs.methods().iter().map(curve).collect();
        let series: Vec<Series> = series.into_iter().filter(|s| !s.points.is_empty()).collect();
        let points = || series.iter().flat_map(|s| &s.points);
        if points().next().is_none() {
            continue;
        }
        let (log_x, log_y) = (spans(points().map(|p| p.0), 10.0), spans(points().map(|p| p.1), 20.0));
        let (title, x_label, y_label) = (title.to_owned(), "processor time (s)".to_owned(), y_label.to_owned());
        charts.push(Chart { title, x_label, y_label, log_x, log_y, series });
    }
    charts
}

/// The mean over the runs at equal numbers of samples, with the deviation as its band, up to where the first of them ended.
fn mean_curve<'a>(name: &str, runs: impl Iterator<Item = &'a Run> + Clone, value: Value) -> Series {
    let n = runs.clone().count();
    let mut at: BTreeMap<u64, BTreeMap<usize, (f64, f64)>> = BTreeMap::new();
    for (i, run) in runs.enumerate() {
        for record in run.looks() {
            if let Some(value) = value(record) {
                // The end of a run repeats its last evaluation.
                at.entry(record.samples).or_default().entry(i).or_insert((record.cpu_seconds, value));
            }
        }
    }
    let mut series = Series { name: name.to_owned(), style: Style::LineMarkers, points: vec![], band: vec![] };
    for of_runs in at.values().filter(|of_runs| of_runs.len() == n) {
        let times: Vec<f64> = of_runs.values().map(|v| v.0).collect();
        let values: Vec<f64> = of_runs.values().map(|v| v.1).collect();
        let (Some(time), Some(value)) = (Summary::of(&times), Summary::of(&values)) else { continue };
        series.points.push((time.mean, value.mean));
        if n > 1 {
            series.band.push((value.mean - value.deviation, value.mean + value.deviation));
        }
    }
    if series.points.len() > GROUPS {
        grouped(&mut series);
    }
    series
}

/// The mean over the runs of what they had reached by each point of a grid of time, with the deviation as its band, up to where
/// the first of them ended.
fn grid_curve<'a>(name: &str, runs: impl Iterator<Item = &'a Run>, value: Value, grid: f64) -> Series {
    let of_run = |run: &'a Run| run.looks().filter_map(|r| Some((r.cpu_seconds, value(r)?))).collect::<Vec<_>>();
    let runs: Vec<Vec<(f64, f64)>> = runs.map(of_run).filter(|points| !points.is_empty()).collect();
    let end = runs.iter().filter_map(|points| points.last()).map(|p| p.0).fold(f64::INFINITY, f64::min);
    let mut series = Series { name: name.to_owned(), style: Style::LineMarkers, points: vec![], band: vec![] };
    let mut time = grid;
    while !runs.is_empty() && time < end + grid {
        let reached = |points: &Vec<(f64, f64)>| points.iter().rev().find(|p| p.0 <= time).map(|p| p.1);
        let values: Vec<f64> = runs.iter().filter_map(reached).collect();
        if let Some(Summary { n, mean, deviation }) = Summary::of(&values).filter(|of| of.n == runs.len()) {
            series.points.push((time, mean));
            series.band.extend((n > 1).then_some((mean - deviation, mean + deviation)));
        }
        time = ((time * GROWTH / grid).ceil() * grid).max(time + grid);
    }
    series
}

/// Makes the means of neighbours of too many points.
fn grouped(series: &mut Series) {
    let size = series.points.len().div_ceil(GROUPS);
    let mean = |group: &[(f64, f64)]| {
        let sum = group.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
        (sum.0 / group.len() as f64, sum.1 / group.len() as f64)
    };
    series.points = series.points.chunks(size).map(mean).collect();
    series.band = series.band.chunks(size).map(mean).collect();
}

/// What was measured of every method, by seed.
pub(super) fn measured(runs: &Runs, value: impl Fn(&Run) -> Option<f64>) -> Vec<BySeed> {
    let of = |run: &Run| Some((run.cell.seed, value(run)?)).filter(|(_, value)| value.is_finite());
    runs.methods().iter().map(|method| runs.done(method).filter_map(of).collect()).collect()
}

/// One row per method: what its runs ended at, and what the paper printed.
fn table(runs: &Runs) -> Table {
    let psnr = measured(runs, |run| run.last(|r| r.test_psnr));
    let objective = measured(runs, |run| run.last(|r| r.test_objective));
    let nonzeros = measured(runs, |run| run.last(|r| r.nonzeros));
    let time = measured(runs, Run::cpu_seconds);
    let memory = measured(runs, Run::peak_memory);
    let mut lowest = BySeed::new();
    // On the samples that the curves are of.
    let reached = measured(runs, Run::last_look);
    for (seed, value) in reached.iter().flatten() {
        lowest.entry(*seed).and_modify(|low| *low = low.min(*value)).or_insert(*value);
    }
    let arrivals = measured(runs, |run| arrival(run, *lowest.get(&run.cell.seed)?));
    let count = |i: usize| runs.done(&runs.methods()[i]).count();
    // A method of which some runs never arrive is not the fastest.
    let all_arrived =
        arrivals.iter().enumerate().map(|(i, times)| Some(times.clone()).filter(|times| times.len() == count(i)));
    let all_arrived: Vec<BySeed> = all_arrived.map(Option::unwrap_or_default).collect();
    let alike = |best: Vec<bool>| best.into_iter().map(|best| best && runs.are_alike).collect::<Vec<_>>();
    let best_psnr = alike(best(&psnr, |a, b| a > b));
    let best_objective = alike(best(&objective, |a, b| a < b));
    let best_arrival = alike(best(&all_arrived, |a, b| a < b));
    let bold = match runs.are_alike {
        true => {
            "Bold: the highest PSNR, the lowest objective and the earliest arrival, and those that a paired t-test over the seeds \
             (95 %) cannot tell from it; without two seeds there is no test, and nothing is bold."
        }
        false => "Logs do not say whether their runs had the same data and the same beta, so nothing is bold.",
    };

    let printed = runs.settings.printed("psnr");
    let mut table = Table {
        title: "What the runs ended at".to_owned(),
        note: format!(
            "Mean and deviation over the seeds. {bold} Arrived: the processor time until the test objective was within {:.0} % of the lowest that any method ended \
             at with the same seed, of the runs that got there.",
            100.0 * ARRIVED
        ),
        ..Table::default()
    };
    let head = [
        "method",
        "PSNR (dB)",
        "test objective",
        "arrived (s)",
        "time in all (s)",
        "peak memory",
        "non-zeros (training)",
        "runs",
    ];
    table.head = head.map(str::to_owned).to_vec();
    table.head.extend(printed.map(|printed| format!("PSNR, the paper ({})", printed.place)));
    for (i, method) in runs.methods().iter().enumerate() {
        let n = count(i);
        let text =
            |values: &BySeed, digits: usize| Summary::of_seeds(values).map_or("-".to_owned(), |s| shown(s, digits));
        let of_all = match arrivals[i].len() {
            some if 0 < some && some < n => format!(" ({some} of {n})"),
            _ => String::new(),
        };
        let mut row = vec![
            Entry::plain(method),
            Entry { best: best_psnr[i], text: text(&psnr[i], 2) },
            Entry { best: best_objective[i], text: text(&objective[i], 2) },
            Entry { best: best_arrival[i], text: text(&arrivals[i], 2) + &of_all },
            Entry::plain(text(&time[i], 2)),
            Entry::plain(Summary::of_seeds(&memory[i]).map_or("-".to_owned(), |s| bytes(s.mean as u64))),
            Entry::plain(text(&nonzeros[i], 0)),
            Entry::plain(if n == 0 { NOT_RUN.to_owned() } else { n.to_string() }),
        ];
        row.extend(printed.map(|p| Entry::plain(p.values.get(method).cloned().unwrap_or("-".to_owned()))));
        table.rows.push(row);
    }
    table
}

/// The time until the test objective was near the lowest; none if it never was.
fn arrival(run: &Run, lowest: f64) -> Option<f64> {
    let near = |record: &&Record| record.test_objective.is_some_and(|value| value <= lowest * (1.0 + ARRIVED));
    run.looks().find(near).map(|record| record.cpu_seconds)
}

/// Which are best, or cannot be told from the best by a test; none where no test can be made.
pub(super) fn best(methods: &[BySeed], better: impl Fn(f64, f64) -> bool) -> Vec<bool> {
    let means = methods.iter().map(|values| Summary::of_seeds(values).map(|s| s.mean));
    let first = means.enumerate().filter_map(|(i, mean)| Some((i, mean?)));
    let first = first.reduce(|a, b| if better(b.1, a.1) { b } else { a }).map(|(i, _)| i);
    let verdict = |i: usize| first.filter(|first| *first != i).and_then(|first| differ(&methods[i], &methods[first]));
    let is_tested = (0..methods.len()).any(|i| verdict(i).is_some());
    (0..methods.len()).map(|i| if Some(i) == first { is_tested } else { verdict(i) == Some(false) }).collect()
}

/// `28.61 ± 0.06`, or the mean alone of a single run.
pub(super) fn shown(summary: Summary, digits: usize) -> String {
    let Summary { n, mean, deviation } = summary;
    if n > 1 { format!("{mean:.digits$} ± {deviation:.digits$}") } else { format!("{mean:.digits$}") }
}

/// Which samples were held out, where they were drawn.
pub(super) fn split_note(runs: &Runs) -> Option<String> {
    let seed = runs.runs.iter().find_map(|run| run.cell.option(SPLIT_SEED))?;
    Some(format!(
        "All runs, whatever their seed, are tested on the same samples: those that `{SPLIT_SEED} {seed}` holds out."
    ))
}

/// The grid of time that all runs were evaluated on, in seconds.
fn grid(runs: &Runs) -> Option<f64> {
    let mut grids = runs.runs.iter().map(|run| run.cell.option(GRID)?.parse::<f64>().ok());
    let first = grids.next()??;
    grids.all(|grid| grid == Some(first)).then_some(first)
}

/// When runs were evaluated.
pub(super) fn grid_note(runs: &Runs) -> Option<String> {
    let seconds = grid(runs)?;
    Some(format!(
        "All runs were evaluated whenever another {seconds} s of learning had passed, as soon as the update that was under way \
         was done, and not again before the dictionary had changed. Evaluation is not charged."
    ))
}

/// What runs were evaluated on until their end.
pub(super) fn subset_note(runs: &Runs) -> Option<String> {
    let subset = runs.runs.iter().find_map(|run| run.cell.option("--test-subset"))?;
    Some(format!(
        "Curves and arrivals are of {subset} test samples, drawn at random and the same for all runs; what runs ended at is of all."
    ))
}

/// What PSNR means here.
pub(super) fn peak_note(runs: &Runs) -> Option<String> {
    let peak = runs.runs.iter().find_map(|run| run.last(|r| r.psnr_peak))?;
    Some(format!(
        "The peak of the PSNR is {peak:.4}, the range (largest minus smallest value) of the test set after preprocessing. The \
         paper prints 255, which belongs to 8-bit images; its numbers are reproduced with the range of the contrast-normalised \
         data, on which it works."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::cell::Cell;
    use crate::run::record::tests::record;

    #[test]
    fn the_best_and_those_as_good() {
        let of = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<BySeed>();
        let all = [of(&[28.6, 28.7, 28.5]), of(&[28.5, 28.9, 28.3]), of(&[27.0, 27.1, 27.2]), of(&[])];
        assert_eq!(best(&all, |a, b| a > b), [true, true, false, false]);
        assert_eq!(best(&all, |a, b| a < b), [false, false, true, false]);
        // Seeds that all methods find hard do not hide a difference that every seed shows.
        let hard = [of(&[20.0, 28.0, 36.0]), of(&[19.9, 27.9, 35.89])];
        assert_eq!(best(&hard, |a, b| a > b), [true, false]);
        assert_eq!(shown(Summary::of_seeds(&all[0]).unwrap(), 2), "28.60 ± 0.10");
        assert_eq!(shown(Summary::of_seeds(&of(&[1.0])).unwrap(), 1), "1.0");
    }

    /// A run that was evaluated at these times, and at its end on more samples.
    fn run(seed: u64, looks: &[(f64, f64)], end: f64) -> Run {
        let look = |&(seconds, objective): &(f64, f64)| Record {
            cpu_seconds: seconds,
            test_objective: Some(objective),
            test_samples: Some(2),
            ..record(Event::Step, 1, None)
        };
        let mut records: Vec<Record> = looks.iter().map(look).collect();
        let last = Record { test_objective: Some(end), test_samples: Some(9), ..records[records.len() - 1].clone() };
        records.push(Record { event: Event::End, ..last });
        Run { cell: Cell { seed, ..Cell::default() }, records, folder: "".into() }
    }

    #[test]
    fn curves_and_arrivals_are_of_the_subset_and_on_the_grid() {
        let one = run(0, &[(0.9, 80.0), (2.1, 60.0), (3.5, 50.0)], 10.0);
        let two = run(1, &[(1.5, 70.0), (2.5, 64.0)], 11.0);
        assert_eq!(one.last_look(), Some(50.0));
        assert_eq!((arrival(&one, 50.0), arrival(&one, 60.0), arrival(&one, 40.0)), (Some(3.5), Some(2.1), None));
        // At 1 s only one of them had been evaluated; at 2 s they had reached 80 and 70.
        let curve = grid_curve("a", [&one, &two].into_iter(), |r| r.test_objective, 1.0);
        assert_eq!(curve.points, [(2.0, 75.0), (3.0, 62.0)]);
        let deviation = 5.0 * 2f64.sqrt();
        assert!((curve.band[0].1 - curve.points[0].1 - deviation).abs() < 1e-12, "{:?}", curve.band);
        assert!(grid_curve("a", [].into_iter(), |r| r.test_objective, 1.0).points.is_empty());
    }

    #[test]
    fn nothing_is_best_without_a_test() {
        let of = |values: &[f64]| (0..).zip(values.iter().copied()).collect::<BySeed>();
        assert_eq!(best(&[of(&[1.0]), of(&[1.1]), of(&[1.1])], |a, b| a > b), [false; 3], "single runs");
        assert_eq!(best(&[of(&[1.0, 2.0])], |a, b| a > b), [false], "nobody to compare with");
        assert_eq!(best(&[of(&[1.0, 2.0]), of(&[9.0])], |a, b| a > b), [false; 2], "the best has a single run");
        assert_eq!(best(&[of(&[1.0, 2.1]), of(&[0.0]), of(&[0.5, 1.0])], |a, b| a > b), [true, false, true]);
        assert_eq!(best(&[], |a, b| a > b), [false; 0]);
    }

    #[test]
    fn methods_that_learn_from_pieces_are_named() {
        let after = |event: Event, pass: u64, samples: u64| Record { pass, samples, ..record(event, 1, None) };
        let run = |records: Vec<Record>| Run { cell: Cell::default(), records, folder: "".into() };
        let whole = run(vec![after(Event::Pass, 1, 4), after(Event::Step, 2, 5), after(Event::End, 1, 5)]);
        let pieces = run(vec![after(Event::Step, 1, 5)]);
        assert!(!learns_in_pieces(&whole, Some(4)) && learns_in_pieces(&pieces, Some(4)));
        assert!(!learns_in_pieces(&pieces, None), "without a model nobody knows");
        assert_eq!(pieces_note(&[]), None);
        assert!(
            pieces_note(&["`a`".to_owned(), "`b`".to_owned()])
                .unwrap()
                .starts_with("Learned from pieces of samples: `a`, `b`.")
        );
    }
}
