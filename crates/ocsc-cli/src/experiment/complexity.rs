//! How time and memory grow with N, K and P: measured, with the exponents of powers fitted to them, beside the paper's.

use super::NOT_RUN;
use super::fit::exponent;
use super::runs::{Run, Runs};
use super::settings::Printed;
use crate::report::chart::{Chart, Series, Style};
use crate::report::objective::spans;
use crate::report::{Entry, Section, Table};

/// A size that is varied.
#[derive(Clone, Copy)]
struct Axis {
    /// Its name in settings and runs.
    name: &'static str,
    label: &'static str,
    /// The paper's.
    letter: char,
    /// From its value to x: P is the square of the side.
    x: fn(f64) -> f64,
}

/// A figure of a run.
type Value = fn(&Run) -> Option<f64>;

const AXES: [Axis; 3] = [
    Axis { name: "images", label: "images N", letter: 'N', x: |n| n },
    Axis { name: "filters", label: "filters K", letter: 'K', x: |k| k },
    Axis { name: "side", label: "pixels P", letter: 'P', x: |side| side * side },
];

pub(super) fn section(runs: &Runs) -> Section {
    let mut charts = Vec::new();
    for axis in AXES {
        let figures: [(&str, &str, Value); 2] = [
            ("Time", "processor time of a pass (s)", Run::cpu_seconds),
            ("Memory", "peak memory (MB)", |run| run.peak_memory().map(|bytes| bytes / 1e6)),
        ];
        for (title, y_label, value) in figures {
            let line = |method: &String| Series {
                name: method.clone(),
                style: Style::LineMarkers,
                points: points(runs, method, axis, value),
                band: vec![],
            };
            let series: Vec<Series> = runs.methods().iter().map(line).filter(|s| !s.points.is_empty()).collect();
            if series.is_empty() {
                continue;
            }
            let log_y = spans(series.iter().flat_map(|s| &s.points).map(|p| p.1), 3.0);
            let (title, x_label, y_label) =
                (format!("{title} against {}", axis.name), axis.label.to_owned(), y_label.to_owned());
            charts.push(Chart { title, x_label, y_label, log_x: true, log_y, series });
        }
    }
    Section { charts, tables: vec![table(runs)], ..Section::default() }
}

fn points(runs: &Runs, method: &str, axis: Axis, value: impl Fn(&Run) -> Option<f64>) -> Vec<(f64, f64)> {
    let varied = |run: &Run| run.cell.at.as_ref().filter(|(name, _)| name == axis.name).map(|(_, value)| *value);
    runs.done(method).filter_map(|run| Some(((axis.x)(varied(run)? as f64), value(run)?))).collect()
}

/// The exponents, `N^1.0 K^1.9 P^1.0`, beside the paper's formulas.
fn table(runs: &Runs) -> Table {
    let [time, memory] = ["time", "memory"].map(|name| runs.settings.printed(name));
    // Every process holds so much before it has learned anything.
    let least = runs.runs.iter().filter_map(Run::peak_memory).fold(f64::INFINITY, f64::min);
    let mut table = Table {
        title: "Exponents".to_owned(),
        note: "Slopes of straight lines through the measured points on logarithmic axes, with the other two sizes fixed; memory \
               is that above the smallest run's, so that the program itself does not count. Constants and lower powers flatten \
               the slopes at sizes as small as these."
            .to_owned(),
        ..Table::default()
    };
    let head = ["method", "time of a pass, measured", "the paper", "memory, measured", "the paper"];
    table.head = head.map(str::to_owned).to_vec();
    for method in runs.methods() {
        let powers = |value: &dyn Fn(&Run) -> Option<f64>| {
            let power = |axis: Axis| {
                let exponent = exponent(&points(runs, method, axis, value))?;
                Some(format!("{}^{exponent:.1}", axis.letter).replace("^-0.0", "^0.0"))
            };
            let powers: Vec<String> = AXES.into_iter().filter_map(power).collect();
            if powers.is_empty() { NOT_RUN.to_owned() } else { powers.join(" ") }
        };
        let printed =
            |p: Option<&Printed>| Entry::plain(p.and_then(|p| p.values.get(method).cloned()).unwrap_or("-".to_owned()));
        table.rows.push(vec![
            Entry::plain(method),
            Entry::plain(powers(&Run::cpu_seconds)),
            printed(time),
            Entry::plain(powers(&|run| run.peak_memory().map(|bytes| bytes - least).filter(|above| *above > 0.0))),
            printed(memory),
        ]);
    }
    table
}
