//! The curves of a run: objectives against learning time, read from its log.

use super::chart::{Chart, Series, Style};
use crate::args::Size;
use crate::run::record::{Event, Record};

/// Steps on each side of the smoothed training objective are at most the number of steps divided by this.
const SMOOTHING: usize = 24;

/// Training and test objective against learning time: the charts of the report, without those that have no points. A run that learns
/// from pieces of this size is tested on whole samples, so the charts say what their values are the means over.
pub(crate) fn objective_charts(records: &[Record], tile: Option<&Size>) -> Vec<Chart> {
    let train = training_points(records);
    let smooth = Series { name: "moving mean".into(), style: Style::Line, points: smoothed(&train), band: vec![] };
    let dots = Series { name: "each step".into(), style: Style::Dots, points: train, band: vec![] };
    let test = points(records.iter(), |r| r.test_objective);
    let test = Series { name: "held-out samples".into(), style: Style::LineMarkers, points: test, band: vec![] };
    let (piece, whole) = match tile {
        Some(tile) => (format!("piece of {tile}"), "whole sample".to_owned()),
        None => ("sample".to_owned(), "sample".to_owned()),
    };
    [("Training objective", piece, vec![dots, smooth]), ("Test objective", whole, vec![test])]
        .into_iter()
        .filter(|(_, _, series)| !series[0].points.is_empty())
        .map(|(title, of, series)| {
            let all = &series[0].points;
            Chart {
                title: format!("{title} per {of}"),
                x_label: "learning time (s)".into(),
                y_label: format!("objective (mean per {of})"),
                log_x: spans(all.iter().map(|p| p.0), 100.0),
                log_y: spans(all.iter().map(|p| p.1), 20.0),
                series,
            }
        })
        .collect()
}

/// Objectives of the steps, or of the passes if the method reports only those.
fn training_points(records: &[Record]) -> Vec<(f64, f64)> {
    let of = |event| points(records.iter().filter(move |r| r.event == event), |r| r.objective);
    let steps = of(Event::Step);
    if steps.is_empty() { of(Event::Pass) } else { steps }
}

fn points<'a>(records: impl Iterator<Item = &'a Record>, value: impl Fn(&Record) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = records.filter_map(|r| value(r).map(|v| (r.seconds, v))).collect();
    // The end of a run repeats the evaluation of its last pass.
    out.dedup();
    out.retain(|p| p.0.is_finite() && p.1.is_finite());
    out
}

/// Means over a window. It shrinks towards the beginning, where the objective falls fast, and loses its later half at the
/// end, where it is flat and a shrinking window would end on the noise of one sample.
fn smoothed(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let n = points.len();
    let widest = (n / SMOOTHING).max(1);
    let mut sums = vec![0.0];
    for p in points {
        sums.push(sums[sums.len() - 1] + p.1);
    }
    (0..n)
        .map(|i| {
            let half = widest.min(i);
            let (from, to) = (i - half, (i + half + 1).min(n));
            (points[i].0, (sums[to] - sums[from]) / (to - from) as f64)
        })
        .collect()
}

/// True if positive values cover at least this factor, so that a logarithmic axis shows more.
pub(crate) fn spans(values: impl Iterator<Item = f64>, factor: f64) -> bool {
    let (lo, hi) = values.fold((f64::INFINITY, 0.0f64), |(lo, hi), v| (lo.min(v), hi.max(v)));
    lo > 0.0 && hi >= factor * lo
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::record::tests::record;

    #[test]
    fn charts_of_a_run() {
        let mut records: Vec<_> = (1..=500).map(|i| record(Event::Step, i, Some(1000.0 - i as f64))).collect();
        records.push(Record { test_objective: Some(900.0), ..record(Event::Pass, 500, Some(750.0)) });
        records.push(Record { event: Event::End, ..records[500].clone() });
        let charts = objective_charts(&records, None);
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].series[0].points.len(), 500);
        assert!(charts[0].log_x && !charts[0].log_y);
        let smooth = &charts[0].series[1].points;
        for (raw, smooth) in charts[0].series[0].points.iter().zip(smooth).take(480) {
            assert!((raw.1 - smooth.1).abs() < 1e-9, "a centred mean leaves a straight line alone");
        }
        assert_eq!(smooth[499], (50.0, 510.0), "the last mean is over the 21 last steps");
        assert_eq!(charts[1].series[0].points, [(50.0, 900.0)], "the end repeats the last pass and is not drawn twice");
        assert!(objective_charts(&[], None).is_empty());
        let passes = [record(Event::Pass, 10, Some(5.0))];
        assert_eq!(objective_charts(&passes, None)[0].series[0].points, [(1.0, 5.0)]);
    }

    #[test]
    fn charts_say_what_their_values_are_per() {
        let records = [Record { test_objective: Some(900.0), ..record(Event::Step, 1, Some(20.0)) }];
        let words = |tile: Option<&Size>| {
            let charts = objective_charts(&records, tile);
            charts.into_iter().map(|chart| [chart.title, chart.y_label]).collect::<Vec<_>>().concat()
        };
        let of_pieces = [
            "Training objective per piece of 64x48",
            "objective (mean per piece of 64x48)",
            "Test objective per whole sample",
            "objective (mean per whole sample)",
        ];
        assert_eq!(words(Some(&Size::of(vec![64, 48]))), of_pieces);
        let whole = words(None);
        assert_eq!(
            (whole[0].as_str(), whole[2].as_str()),
            ("Training objective per sample", "Test objective per sample")
        );
    }
}
