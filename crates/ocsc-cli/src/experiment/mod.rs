//! Experiments: several methods on the same data, with several seeds, and what the paper printed about them.
//!
//! [`settings`] reads an experiment's TOML file. Every run of it is a [`cell`]: a call of `ocsc learn` in a process of its
//! own, so that its peak memory is its own and running out of it ends nobody else, with its log, model and pictures kept in a
//! folder of runs: [`child`] starts and ends it, [`oom`] knows whether it ran out of memory. [`solvers`] and [`convergence`] look inside methods, and run here.
//! [`search`] chooses settings before the runs, and [`estimate`] measures what these will take. [`section`] turns the runs of an
//! experiment into a part of a report, each kind in its file: [`curves`], [`growth`], [`complexity`], [`solvers`],
//! [`convergence`], [`ablation`] and [`restoring`]. The commands `reproduce`, `compare` and `report` are built from these.

mod ablation;
pub(crate) mod cell;
mod child;
mod complexity;
mod convergence;
mod curves;
pub(crate) mod estimate;
mod fit;
mod growth;
mod oom;
mod restoring;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod runs;
mod search;
pub(crate) mod settings;
mod solvers;
mod t_test;

use crate::report::Section;
use anyhow::{Context, Result};
use ocsc::Method;
use runs::Runs;
use settings::{Kind, Settings};
use std::collections::BTreeSet;

/// Checks that an experiment knows all of its methods: rows of the method table, variants of them, or solvers.
pub(crate) fn check_methods(settings: &Settings) -> Result<()> {
    let known = |name: &String| match settings.kind {
        Kind::Solvers => solvers::find(name).map(drop),
        _ => Ok(settings.method(name).parse::<Method>().map(drop)?),
    };
    settings.methods.iter().try_for_each(known).context("methods")
}

/// What is said of a method without runs.
const NOT_RUN: &str = "not run";

/// What the runs were made on.
fn machines(runs: &Runs) -> Option<String> {
    let known = runs.runs.iter().map(|run| run.cell.machine.as_str()).filter(|machine| !machine.is_empty());
    let all: Vec<&str> = known.collect::<BTreeSet<_>>().into_iter().collect();
    (!all.is_empty()).then(|| format!("Run on: {}.", all.join("; ")))
}

/// The runs of one experiment as a part of a report.
pub(crate) fn section(runs: &Runs) -> Result<Section> {
    let mut section = match runs.settings.kind {
        Kind::Curves => curves::section(runs)?,
        Kind::Growth => growth::section(runs),
        Kind::Complexity => complexity::section(runs),
        Kind::Solvers => solvers::section(runs),
        Kind::Convergence => convergence::section(runs),
        Kind::Ablation => ablation::section(runs)?,
        Kind::Restoring => restoring::section(runs)?,
    };
    section.tables.extend(search::table(runs));
    section.id = runs.name.clone();
    section.title = runs.settings.title.clone();
    let mut notes = runs.settings.notes();
    notes.extend(machines(runs));
    notes.append(&mut section.notes);
    section.notes = notes;
    Ok(section)
}
