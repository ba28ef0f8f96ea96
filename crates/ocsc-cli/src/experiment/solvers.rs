//! Solvers of one subproblem on the paper's synthetic data: objective against iterations and time.
//!
//! x, D and Z are Gaussian, and each D_k is projected on the unit ball. Two problems are posed: the dictionary's (eq.
//! `ocsc_dic`, the paper's figure), min over D of 1/2 ||x - D Z||^2 with Z fixed, and the code's, min over z of
//! 1/2 ||x - D z||^2 + beta ||z||_1 with D fixed. Every solver starts anew for every number of iterations, since all can be
//! told to stop after so many and none keeps a history. Its time is that of the solving alone.

use super::NOT_RUN;
use super::cell::Cell;
use super::runs::Runs;
use super::settings::Settings;
use crate::report::chart::{Chart, Series, Style};
use crate::report::objective::spans;
use crate::report::{Entry, Section, Table};
use anyhow::{Context, Result};
use cpu_time::ProcessTime;
use ocsc::learner::{Parts, parts};
use ocsc::metrics::Objective;
use ocsc::settings::{ActiveSetConfig, Boundary, CoderConfig, UpdateConfig};
use ocsc::{Code, Config, Dictionary, Method, Sample, Shape};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::path::Path;

/// The paper's.
const BETA: f64 = 1.0;
/// So small that only the number of iterations ends a solver.
const NEVER: f64 = 1e-12;
/// The active set's gap: it may end before its rounds do, since what it has then is the minimum to four digits.
const FOUR_DIGITS: f64 = 1e-4;
/// The paper's M.
const FILTER: usize = 11;

/// The random problem.
pub(super) struct Problem {
    sample: Sample<f32>,
    dictionary: Dictionary<f32>,
    code: Code<f32>,
}

/// The objective after so many iterations, and the processor seconds they took.
pub(super) type Solver = fn(&Problem, usize) -> Result<(f64, f64)>;

/// The solvers of this build, by the names that settings give them. A new one is a line here.
const SOLVERS: [(&str, Solver); 5] = [
    ("dictionary-admm", dictionary_admm),
    ("dictionary-fista", dictionary_fista),
    ("code-admm", code_admm),
    ("code-fista", code_fista),
    ("code-active-set", code_active_set),
];

/// The problems by the beginning of their solvers' names, and their titles.
const PROBLEMS: [(&str, &str); 2] = [("dictionary-", "Dictionary subproblem"), ("code-", "Code subproblem")];

pub(super) fn run(mut cell: Cell, settings: &Settings, folder: &Path) -> Result<Cell> {
    let solver = find(&cell.method)?;
    let size = |name: &str| settings.sweep.get(name).and_then(|values| values.first()).copied();
    let (k, side) = (size("filters").context("sweep.filters")?, size("side").context("sweep.side")?);
    let problem = Problem::random(k, side, cell.seed)?;
    for &iterations in settings.sweep.get("iterations").context("sweep.iterations")? {
        let (objective, seconds) = solver(&problem, iterations)?;
        for (name, x) in [("iterations", iterations as f64), ("seconds", seconds)] {
            cell.series.entry(name.to_owned()).or_default().push((x, objective));
        }
    }
    cell.save(folder)?;
    Ok(cell)
}

pub(super) fn find(name: &str) -> Result<Solver> {
    let found = SOLVERS.iter().find(|(known, _)| *known == name).map(|(_, solver)| *solver);
    found.with_context(|| format!("expected some of {}, found {name}", SOLVERS.map(|(known, _)| known).join(", ")))
}

impl Problem {
    fn random(n_filters: usize, side: usize, seed: u64) -> Result<Problem> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = |n: usize| (0..n).map(|_| StandardNormal.sample(&mut rng)).collect::<Vec<f32>>();
        let size = FILTER.min(side);
        let sample = Sample::new(Shape::image(side, side), normal(side * side))?;
        let mut filters = normal(n_filters * size * size);
        for filter in filters.chunks_mut(size * size) {
            let norm = filter.iter().map(|v| v * v).sum::<f32>().sqrt();
            filter.iter_mut().for_each(|v| *v /= norm.max(1.0));
        }
        let dictionary = Dictionary::new(n_filters, Shape::image(size, size), 2, filters)?;
        let code = Code::from_dense(n_filters, [1, side, side], &normal(n_filters * side * side));
        Ok(Problem { sample, dictionary, code })
    }
}

/// The paper's update (Algorithm 2).
fn dictionary_admm(problem: &Problem, iterations: usize) -> Result<(f64, f64)> {
    dictionary(problem, Method::OcscPaper, iterations)
}

/// The update of OCDL2.
fn dictionary_fista(problem: &Problem, iterations: usize) -> Result<(f64, f64)> {
    dictionary(problem, Method::Ocdl2, iterations)
}

/// Any update: absorbing the one code belongs to the statistics and is not charged to the solver.
fn dictionary(problem: &Problem, method: Method, iterations: usize) -> Result<(f64, f64)> {
    let update = UpdateConfig { max_iters: iterations, tol: NEVER, ..UpdateConfig::default() };
    let Parts { mut update, .. } = parts(&Config { method, update, ..Config::default() }, &problem.dictionary)?;
    update.absorb(&problem.sample, &problem.code, &problem.dictionary)?;
    let mut dictionary = problem.dictionary.clone();
    let clock = ProcessTime::now();
    update.update(&mut dictionary);
    let seconds = clock.elapsed().as_secs_f64();
    let objective = Objective::of(&problem.sample, &problem.code, &dictionary, Boundary::Circular)?;
    Ok((objective.data_term, seconds))
}

fn code_admm(problem: &Problem, iterations: usize) -> Result<(f64, f64)> {
    let coder = CoderConfig { max_iters: iterations, ..CoderConfig::default() };
    coded(problem, Config { method: Method::OcscPaper, tol: NEVER, coder, ..Config::default() })
}

fn code_fista(problem: &Problem, iterations: usize) -> Result<(f64, f64)> {
    let coder = CoderConfig { max_iters: iterations, ..CoderConfig::default() };
    coded(problem, Config { method: Method::Ocdl2, tol: NEVER, coder, ..Config::default() })
}

/// One of its iterations is a round: a full correlation and the descent that follows.
fn code_active_set(problem: &Problem, iterations: usize) -> Result<(f64, f64)> {
    let active_set = ActiveSetConfig { max_rounds: iterations, ..ActiveSetConfig::default() };
    coded(problem, Config { method: Method::Ocsc, tol: FOUR_DIGITS, active_set, ..Config::default() })
}

/// The coder of a method.
fn coded(problem: &Problem, config: Config) -> Result<(f64, f64)> {
    let Parts { mut coder, .. } = parts(&Config { beta: BETA, ..config }, &problem.dictionary)?;
    let clock = ProcessTime::now();
    let coded = coder.code(&problem.sample, None)?;
    Ok((coded.total(), clock.elapsed().as_secs_f64()))
}

pub(super) fn section(runs: &Runs) -> Section {
    let mut section = Section::default();
    for (prefix, title) in PROBLEMS {
        for (against, x_label) in [("iterations", "iterations"), ("seconds", "processor time (s)")] {
            let series: Vec<Series> = runs
                .methods()
                .iter()
                .filter(|method| method.starts_with(prefix))
                .filter_map(|method| Some((method, runs.done(method).next()?.cell.series.get(against)?)))
                .map(|(method, points)| Series {
                    name: method.clone(),
                    style: Style::LineMarkers,
                    points: points.clone(),
                    band: vec![],
                })
                .collect();
            if !series.is_empty() {
                let log_y = spans(series.iter().flat_map(|s| &s.points).map(|p| p.1), 20.0);
                section.charts.push(Chart {
                    title: format!("{title}, objective against {against}"),
                    x_label: x_label.to_owned(),
                    y_label: "objective".to_owned(),
                    log_x: true,
                    log_y,
                    series,
                });
            }
        }
    }
    section.tables.push(table(runs));
    section
}

/// The objective after few, some and all iterations, and the time of all.
fn table(runs: &Runs) -> Table {
    let iterations = runs.settings.sweep.get("iterations").cloned().unwrap_or_default();
    let columns: Vec<usize> = [0, iterations.len() / 2, iterations.len().saturating_sub(1)]
        .into_iter()
        .filter_map(|i| iterations.get(i).copied())
        .collect();
    let mut table = Table { title: "Objective after so many iterations".to_owned(), ..Table::default() };
    table.head = vec!["solver".to_owned()];
    table.head.extend(columns.iter().map(|n| format!("after {n}")));
    table.head.push("processor time of the last (s)".to_owned());
    for method in runs.methods() {
        let mut row = vec![Entry::plain(method)];
        let series = |name: &str| runs.done(method).next().and_then(|run| run.cell.series.get(name).cloned());
        let points = series("iterations").unwrap_or_default();
        let value = |n: &usize| points.iter().find(|p| p.0 == *n as f64).map(|p| format!("{:.2}", p.1));
        row.extend(columns.iter().map(|n| Entry::plain(value(n).unwrap_or(NOT_RUN.to_owned()))));
        let last = series("seconds").and_then(|points| points.last().copied());
        row.push(Entry::plain(last.map_or("-".to_owned(), |p| format!("{:.3}", p.0))));
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_solver_goes_down() {
        let problem = Problem::random(4, 14, 3).unwrap();
        for (name, solver) in SOLVERS {
            let (first, _) = solver(&problem, 1).unwrap();
            let (last, seconds) = solver(&problem, 60).unwrap();
            assert!(last <= first && last.is_finite() && seconds >= 0.0, "{name}: {first} {last}");
        }
        assert!(SOLVERS.iter().all(|(name, _)| PROBLEMS.iter().any(|(prefix, _)| name.starts_with(prefix))));
    }
}
