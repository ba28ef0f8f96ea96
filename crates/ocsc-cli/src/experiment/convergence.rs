//! The paper's theorem made visible: D_t tends to a stationary point of the averaged objective
//!
//! ```text
//! f(D) = 1/N sum_i  min over z of 1/2 || x_i - D z ||^2 + beta ||z||_1
//! ```
//!
//! At growing steps t all N samples are coded anew with D_t, nearly exactly; their codes give the gradient of f at D_t, since
//! that of the minimum over z is the one at the minimiser. One sweep of block descent on their statistics then measures how
//! far a projected gradient step would move D_t, relative to its norm: zero at stationary points only. The run's own log has
//! the same measure for the surrogate, whose codes are out of date (field `stationarity`).

use super::cell::Cell;
use super::fit::exponent;
use super::{NOT_RUN, runs::Runs};
use crate::console::{Console, Interrupted, interrupted};
use crate::interrupt::UntilInterrupted;
use crate::report::chart::{Chart, Series, Style};
use crate::report::{Entry, Section, Table};
use crate::run::begin;
use crate::run::dataset;
use crate::run::log::Log;
use crate::run::model::Prepared;
use crate::run::observer::Watch;
use anyhow::Result;
use ocsc::learner::{Step, coder, parts};
use ocsc::monitor::Monitor;
use ocsc::settings::BlockDescentConfig;
use ocsc::train::{Ended, Observer, Outcome, Snapshot, code_each};
use ocsc::{Config, Dictionary, Error, Method, Samples};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Samples are coded to this gap for the gradient.
const NEARLY_EXACT: f64 = 1e-4;
/// From one look to the next the number of steps grows by this factor, unless settings list the steps.
const GROWTH: f64 = 1.5;
/// What theory says of the rate: exponents of t, and where they are from.
const RATES: [(f64, &str); 2] = [
    // Lyu, JMLR 2024: the gap of the empirical loss, up to logarithms, of methods that minimise averaged surrogates.
    (-0.25, "t^-1/4, proven for related methods"),
    // The mean over t samples is this far from what they are drawn from.
    (-0.5, "t^-1/2, the noise of t samples"),
];

pub(super) fn run(mut cell: Cell, steps: &[usize], folder: &Path, console: &Console) -> Result<Cell> {
    let args = cell.parsed(&cell.file(folder, ".safetensors"))?;
    let source = dataset::for_learning(&args, None, console)?.source;
    let config = begin::new_config(&args, &source)?;
    let samples = Prepared::new(&source, &config.preprocess);
    let run = begin::begin::<f32>(&args, config.clone(), None, source.rank(), console)?;
    let mut run = run.start(&samples).map_err(|error| begin::advised(error, |i| source.reading(i)))?;
    let log = Log::open(&cell.file(folder, ".jsonl"), None)?;
    let bar = console.progress("learning", config.passes.saturating_mul(source.len()), 0);
    let watch = Watch::new(bar, Some(log), None);
    let mut look = Look { watch, samples: &samples, steps, next: 1.0, points: Vec::new() };
    let outcome = run.train(&samples, None, &mut look)?;
    if outcome.ended == Ended::Stopped || interrupted() {
        return Err(Interrupted(format!("{}: interrupted", cell.title())).into());
    }
    cell.series.insert("averaged".to_owned(), look.points);
    cell.save(folder)?;
    Ok(cell)
}

/// Measures the averaged objective's stationarity now and then, besides what [`Watch`] does.
struct Look<'a> {
    watch: Watch<'a>,
    samples: &'a dyn Samples<f32>,
    /// When to measure; empty for steps that grow by [`GROWTH`], of which `next` is the first that is left.
    steps: &'a [usize],
    next: f64,
    /// (step, stationarity).
    points: Vec<(f64, f64)>,
}

impl Observer<f32> for Look<'_> {
    fn step(&mut self, run: &Snapshot<'_, f32>, step: &Step<f32>) -> ocsc::Result<ControlFlow<()>> {
        let t = run.progress.step as f64;
        let is_due = if self.steps.is_empty() { t >= self.next } else { self.steps.contains(&run.progress.step) };
        if is_due {
            self.next = (t * GROWTH).max(t + 1.0);
            let measured = stationarity(run.learner.config(), run.learner.dictionary(), self.samples)?;
            self.points.extend(measured.map(|value| (t, value)));
        }
        self.watch.step(run, step)
    }

    fn pass(&mut self, run: &Snapshot<'_, f32>) -> ocsc::Result<ControlFlow<()>> {
        Observer::<f32>::pass(&mut self.watch, run)
    }

    fn skipped(&mut self, error: &Error) -> ocsc::Result<()> {
        Observer::<f32>::skipped(&mut self.watch, error)
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        Observer::<f32>::monitor(&self.watch)
    }

    fn end(&mut self, run: &Snapshot<'_, f32>, outcome: &Outcome) -> ocsc::Result<()> {
        self.watch.end(run, outcome)
    }
}

/// The norm of D - project(D - gradient / L) for the averaged objective, relative to D's.
fn stationarity(
    config: &Config,
    dictionary: &Dictionary<f32>,
    samples: &dyn Samples<f32>,
) -> ocsc::Result<Option<f64>> {
    let average =
        BlockDescentConfig { forgetting: 1.0.into(), reseed: false, tol: 0.0, ..BlockDescentConfig::default() };
    let average = Config { method: Method::Ocsc, block_descent: average, ..config.clone() };
    let mut descent = parts(&average, dictionary)?.update;
    let mut coder = coder(config, dictionary, NEARLY_EXACT)?;
    code_each(coder.as_mut(), dictionary, samples, &UntilInterrupted, |_, item| -> ocsc::Result<()> {
        let item = item?;
        descent.absorb(&item.sample, &item.coded.code, dictionary)
    })?;
    Ok(descent.update(&mut dictionary.clone()).stationarity)
}

pub(super) fn section(runs: &Runs) -> Section {
    let (mut series, mut averaged) = (Vec::new(), None);
    let mut table = Table {
        title: "How fast it falls".to_owned(),
        note: "The projected gradient step of the averaged objective, relative to the dictionary's norm, at the first and last \
               measured step, and the slopes of straight lines on logarithmic axes, through all points and through those of the \
               later half, from the square root of the last step on. The lines t^-1/4 and t^-1/2 have the slopes that theory speaks \
               of: -1/4 is proven, up to logarithms, for the average over the samples at hand and methods that minimise averaged surrogates as \
               this one does (Lyu, JMLR 2024); -1/2 is that of the difference between the mean over t samples and what they are drawn \
               from. The theorem itself gives no rate."
            .to_owned(),
        ..Table::default()
    };
    table.head = ["method", "first", "last", "steps", "slope", "slope of the later half"].map(str::to_owned).to_vec();
    for method in runs.methods() {
        let run = runs.done(method).next();
        let points = run.and_then(|run| run.cell.series.get("averaged").cloned()).unwrap_or_default();
        let text = |value: Option<String>| Entry::plain(value.unwrap_or_else(|| NOT_RUN.to_owned()));
        table.rows.push(vec![
            Entry::plain(method),
            text(points.first().map(|p| format!("{:.4}", p.1))),
            text(points.last().map(|p| format!("{:.4}", p.1))),
            text(points.last().map(|p| format!("{:.0}", p.0))),
            text(exponent(&points).map(|e| format!("{e:.2}"))),
            text(exponent(later(&points)).map(|e| format!("{e:.2}"))),
        ]);
        averaged = averaged.or(Some(points.clone()).filter(|points| !points.is_empty()));
        let logged = run.into_iter().flat_map(|run| &run.records);
        let logged: Vec<(f64, f64)> = logged.filter_map(|r| Some((r.step as f64, r.stationarity?))).collect();
        let line = |name: String, style, points| Series { name, style, points, band: vec![] };
        series.push(line(format!("{method}: surrogate, as logged"), Style::Dots, logged));
        series.push(line(format!("{method}: averaged objective"), Style::Line, points));
    }
    series.extend(averaged.iter().flat_map(|points| rates(points)));
    series.retain(|s| !s.points.is_empty());
    let chart = Chart {
        title: "Projected gradient".to_owned(),
        x_label: "step t".to_owned(),
        y_label: "projected gradient step / ||D||".to_owned(),
        log_x: true,
        log_y: true,
        series,
    };
    Section { charts: vec![chart], tables: vec![table], ..Section::default() }
}

/// The points from the square root of the last step on.
fn later(points: &[(f64, f64)]) -> &[(f64, f64)] {
    let from = points.last().map_or(0.0, |last| last.0.sqrt());
    &points[points.iter().take_while(|p| p.0 < from).count()..]
}

/// Lines of the slopes that theory speaks of, over the later half of the points and from their first.
fn rates(points: &[(f64, f64)]) -> Vec<Series> {
    let (Some(first), Some(last)) = (later(points).first(), points.last()) else { return Vec::new() };
    let line = |(power, name): (f64, &str)| Series {
        name: name.to_owned(),
        style: Style::Line,
        points: vec![*first, (last.0, first.1 * (last.0 / first.0).powf(power))],
        band: vec![],
    };
    RATES.map(line).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_theory_begin_where_the_later_half_does() {
        let points = [(1.0, 9.0), (9.0, 5.0), (10.0, 4.0), (40.0, 2.0), (100.0, 1.0)];
        assert_eq!(later(&points), &points[2..]);
        let [quarter, half] = &rates(&points)[..] else { panic!() };
        assert_eq!(quarter.points[0], (10.0, 4.0));
        assert!((quarter.points[1].1 - 4.0 * 10f64.powf(-0.25)).abs() < 1e-12, "{:?}", quarter.points);
        assert!((half.points[1].1 - 4.0 / 10f64.sqrt()).abs() < 1e-12, "{:?}", half.points);
        assert!(rates(&[]).is_empty() && later(&[]).is_empty());
    }
}
