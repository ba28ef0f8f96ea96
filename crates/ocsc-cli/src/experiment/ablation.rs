//! What comes from where: one method with this and that switched off, on the same data and with the same seeds.
//!
//! The first variant is what the others are compared with, seed by seed: the difference of the test objectives in per cent, with a
//! paired t-test, and how many times as long a pass takes.

use super::NOT_RUN;
use super::curves::{charts, grid_note, measured, peak_note, shown, split_note, subset_note};
use super::runs::{Run, Runs};
use super::t_test::{BySeed, Summary, differ, paired};
use crate::report::{Entry, Section, Table};
use anyhow::Result;

pub(super) fn section(runs: &Runs) -> Result<Section> {
    let notes = [split_note(runs), grid_note(runs), subset_note(runs), peak_note(runs)];
    Ok(Section {
        notes: notes.into_iter().flatten().collect(),
        charts: charts(runs),
        tables: vec![table(runs)],
        ..Section::default()
    })
}

fn table(runs: &Runs) -> Table {
    let objective = measured(runs, |run| run.last(|r| r.test_objective));
    let psnr = measured(runs, |run| run.last(|r| r.test_psnr));
    let time = measured(runs, seconds_per_sample);
    let nonzeros = measured(runs, |run| run.last(|r| r.nonzeros));
    let first = runs.methods().first().map_or("the first", String::as_str);
    let mut table = Table {
        title: "What comes from where".to_owned(),
        note: format!(
            "Mean and deviation over the seeds. Against {first}: the difference of the test objectives, seed by seed, in per cent of \
             {first}'s; a positive one is worse. p is that of a paired t-test over the seeds; bold where it is below 5 %. Time is \
             processor time of learning, per sample."
        ),
        ..Table::default()
    };
    table.head = ["variant", "what is different", "test objective"].map(str::to_owned).to_vec();
    table.head.extend([format!("against {first} (%)"), "p".to_owned(), "PSNR (dB)".to_owned()]);
    table.head.extend(["time per sample (ms)", "times as long", "non-zeros (training)", "runs"].map(str::to_owned));
    for (i, name) in runs.methods().iter().enumerate() {
        let text = |values: &BySeed, digits| {
            Summary::of_seeds(values).map_or_else(|| "-".to_owned(), |summary| shown(summary, digits))
        };
        let relative = differences(&objective[i], &objective[0], |a, b| 100.0 * (a - b) / b);
        let times = differences(&time[i], &time[0], |a, b| a / b);
        let is_first = i == 0;
        let against = |text: String| if is_first { "-".to_owned() } else { text };
        let p = paired(&objective[i], &objective[0]).filter(|_| !is_first);
        let is_sure = !is_first && differ(&objective[i], &objective[0]) == Some(true);
        let n = runs.done(name).count();
        table.rows.push(vec![
            Entry::plain(name),
            Entry::plain(what_differs(runs, name)),
            Entry::plain(text(&objective[i], 2)),
            Entry { text: against(text(&relative, 2)), best: is_sure },
            Entry::plain(p.map_or("-".to_owned(), |p| format!("{p:.3}"))),
            Entry::plain(text(&psnr[i], 2)),
            Entry::plain(text(&scaled(&time[i], 1000.0), 2)),
            Entry::plain(against(text(&times, 2))),
            Entry::plain(text(&nonzeros[i], 0)),
            Entry::plain(if n == 0 { NOT_RUN.to_owned() } else { n.to_string() }),
        ]);
    }
    table
}

/// The options of a variant, in words.
fn what_differs(runs: &Runs, name: &str) -> String {
    let first = runs.methods().first().map(String::as_str);
    let method = Some(runs.settings.method(name)).filter(|method| Some(*method) != first);
    let method = method.map(|method| format!("--method {method}"));
    let variant = runs.settings.variants.get(name).cloned().unwrap_or_default();
    let options = Some(variant.options.trim().to_owned()).filter(|options| !options.is_empty());
    let simd = Some(format!("OCSC_SIMD={}", variant.simd)).filter(|_| !variant.simd.is_empty());
    let parts: Vec<String> = [method, options, simd].into_iter().flatten().map(|part| format!("`{part}`")).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

/// Processor time of learning.
fn seconds_per_sample(run: &Run) -> Option<f64> {
    let last = run.records.last()?;
    (last.samples > 0).then(|| last.cpu_seconds / last.samples as f64)
}

/// What `of` makes of two values with the same seed.
fn differences(these: &BySeed, those: &BySeed, of: impl Fn(f64, f64) -> f64) -> BySeed {
    these.iter().filter_map(|(seed, value)| Some((*seed, of(*value, *those.get(seed)?)))).collect()
}

fn scaled(values: &BySeed, by: f64) -> BySeed {
    values.iter().map(|(seed, value)| (*seed, by * value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::cell::Cell;
    use crate::experiment::settings::Settings;
    use crate::run::record::tests::record;
    use crate::run::record::{Event, Record};

    #[test]
    fn variants_are_compared_with_the_first_seed_by_seed() {
        let text = "kind = 'ablation'\nmethods = ['ocsc', 'plain', 'other']\nseeds = 3\n[variants.plain]\nmethod = 'ocsc'\n\
                    options = '--forgetting 1'\n[variants.other]\nmethod = 'fcsc'\nsimd = 'portable'";
        let run = |method: &str, seed: u64, objective: f64, cpu: f64| Run {
            cell: Cell { method: method.to_owned(), seed, ..Cell::default() },
            records: vec![Record {
                test_objective: Some(objective),
                cpu_seconds: cpu,
                samples: 4,
                ..record(Event::End, 1, None)
            }],
            folder: "".into(),
        };
        let mut all = Vec::new();
        for (seed, base) in [(0, 100.0), (1, 200.0), (2, 400.0)] {
            all.push(run("ocsc", seed, base, 0.4));
            all.push(run("plain", seed, 1.02 * base, 0.8));
        }
        let runs = Runs { settings: Settings::parse(text).unwrap(), ..Runs::of_cells(all) };
        let table = table(&runs);
        let row = |i: usize| table.rows[i].iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>();
        assert_eq!(row(0)[3..5], ["-", "-"]);
        assert_eq!(row(1)[..2], ["plain", "`--forgetting 1`"]);
        assert_eq!((row(1)[3], row(1)[6], row(1)[7]), ("2.00 ± 0.00", "200.00 ± 0.00", "2.00 ± 0.00"));
        // Differences 2, 4, 8: t = 2.65 with 2 degrees of freedom.
        assert_eq!((row(1)[4], table.rows[1][3].best), ("0.118", false));
        assert_eq!((row(2)[1], row(2)[9]), ("`--method fcsc`, `OCSC_SIMD=portable`", "not run"));
    }
}
