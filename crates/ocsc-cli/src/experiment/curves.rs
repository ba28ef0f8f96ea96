//! Methods over several seeds: test objective and PSNR against time, what they ended at, their dictionaries and
//! reconstructions.

use super::NOT_RUN;
use super::runs::{Run, Runs};
use crate::chart::{Chart, Series, Style};
use crate::console::bytes;
use crate::picture::dictionary_mosaic;
use crate::record::{Event, Record, spans};
use crate::report::{Entry, Section, Table};
use crate::student::{Summary, differ};
use anyhow::Result;
use ocsc::checkpoint;
use std::collections::BTreeMap;

/// A run has arrived when it is so close to the lowest test objective of all.
const ARRIVED: f64 = 0.01;

/// A value of a record.
type Value = fn(&Record) -> Option<f64>;

const TRAINING: &str = "Training objective";

/// What may be shown, if a run has it: the title, the y axis and the value.
const FIGURES: [(&str, &str, Value); 3] = [
    ("Test objective", "objective (mean per sample)", |r| r.test_objective),
    ("Test PSNR", "PSNR (dB)", |r| r.test_psnr),
    (TRAINING, "objective (mean of a pass)", |r| r.objective.filter(|_| r.event == Event::Pass)),
];

pub(super) fn section(runs: &Runs) -> Result<Section> {
    let mut section = Section { charts: charts(runs), tables: vec![table(runs)], ..Section::default() };
    section.notes.extend(peak_note(runs));
    for method in runs.methods() {
        let Some(run) = runs.done(method).next() else { continue };
        let model = run.cell.file(&run.folder, ".safetensors");
        let plain = run.folder.join(format!("{method}.safetensors"));
        if let Some(path) = [model, plain].iter().find(|path| path.is_file()) {
            let saved = checkpoint::load::<f32>(path)?;
            section.mosaics.push((method.clone(), dictionary_mosaic(&saved.dictionary).png_bytes()?));
        }
        section.triplets.extend(run.cell.triplets(&run.folder)?);
    }
    Ok(section)
}

/// Each figure for which there are points, against processor time; the training objective only where nothing was tested.
fn charts(runs: &Runs) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for (title, y_label, value) in FIGURES {
        if title == TRAINING && !charts.is_empty() {
            continue;
        }
        let series: Vec<Series> = runs.methods().iter().map(|m| mean_curve(m, runs.done(m), value)).collect();
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
        for record in &run.records {
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
    series
}

/// One row per method: what its runs ended at, and what the paper printed.
fn table(runs: &Runs) -> Table {
    let summaries = |value: &dyn Fn(&Run) -> Option<f64>| -> Vec<Option<Summary>> {
        let of = |method: &String| Summary::of(&runs.done(method).filter_map(value).collect::<Vec<_>>());
        runs.methods().iter().map(of).collect()
    };
    let psnr = summaries(&|run| run.last(|r| r.test_psnr));
    let objective = summaries(&|run| run.last(|r| r.test_objective));
    let nonzeros = summaries(&|run| run.last(|r| r.nonzeros));
    let time = summaries(&Run::cpu_seconds);
    let memory = summaries(&Run::peak_memory);
    let lowest = objective.iter().flatten().map(|s| s.mean).fold(f64::INFINITY, f64::min);
    let arrival = summaries(&|run| arrival(run, lowest));
    let best_psnr = best(&psnr, |a, b| a > b);
    let best_objective = best(&objective, |a, b| a < b);

    let printed = runs.settings.printed("psnr");
    let mut table = Table {
        title: "What the runs ended at".to_owned(),
        note: format!(
            "Mean and deviation over the seeds. Bold: the highest PSNR and the lowest objective, and those that a pairwise \
             t-test (Welch's, 95 %) cannot tell from it. Arrived: the processor time until the test objective was within \
             {:.0} % of the lowest of all, of the runs that got there.",
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
        let n = runs.done(method).count();
        let text = |summary: &Option<Summary>, digits: usize| {
            Entry::plain(summary.map_or("-".to_owned(), |s| shown(s, digits)))
        };
        let mut row = vec![
            Entry::plain(method),
            Entry { best: best_psnr[i], ..text(&psnr[i], 2) },
            Entry { best: best_objective[i], ..text(&objective[i], 2) },
            Entry::plain(arrival[i].map_or("-".to_owned(), |s| {
                let of_all = if s.n < n { format!(" ({} of {n})", s.n) } else { String::new() };
                shown(s, 2) + &of_all
            })),
            text(&time[i], 2),
            Entry::plain(memory[i].map_or("-".to_owned(), |s| bytes(s.mean as usize))),
            text(&nonzeros[i], 0),
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
    run.records.iter().find(near).map(|record| record.cpu_seconds)
}

/// Which are best, or cannot be told from the best.
fn best(summaries: &[Option<Summary>], better: impl Fn(f64, f64) -> bool) -> Vec<bool> {
    let first = summaries.iter().flatten().copied().reduce(|a, b| if better(b.mean, a.mean) { b } else { a });
    let as_good =
        |s: &Summary| first.is_some_and(|first| s.mean == first.mean || (s.n > 1 && first.n > 1 && !differ(*s, first)));
    summaries.iter().map(|s| s.as_ref().is_some_and(as_good)).collect()
}

/// `28.61 ± 0.06`, or the mean alone of a single run.
pub(super) fn shown(summary: Summary, digits: usize) -> String {
    let Summary { n, mean, deviation } = summary;
    if n > 1 { format!("{mean:.digits$} ± {deviation:.digits$}") } else { format!("{mean:.digits$}") }
}

/// What PSNR means here.
fn peak_note(runs: &Runs) -> Option<String> {
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

    #[test]
    fn the_best_and_those_as_good() {
        let of = |values: &[f64]| Summary::of(values);
        let all = [of(&[28.6, 28.7, 28.5]), of(&[28.5, 28.9, 28.6]), of(&[27.0, 27.1, 27.2]), None];
        assert_eq!(best(&all, |a, b| a > b), [true, true, false, false]);
        assert_eq!(best(&all, |a, b| a < b), [false, false, true, false]);
        // Single runs cannot be as good without being equal.
        assert_eq!(best(&[of(&[1.0]), of(&[1.1]), of(&[1.1])], |a, b| a > b), [false, true, true]);
        assert_eq!(shown(all[0].unwrap(), 2), "28.60 ± 0.10");
        assert_eq!(shown(of(&[1.0]).unwrap(), 1), "1.0");
    }
}
