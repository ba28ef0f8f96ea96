//! `ocsc reproduce`: the paper's experiments, one or all.

use crate::args::Reproduce;
use crate::commands::report;
use crate::console::{self, Console, told};
use crate::experiment::check_methods;
use crate::experiment::estimate::duration;
use crate::experiment::run::{Place, planned, run as run_experiment};
use crate::experiment::runs::Runs;
use crate::experiment::settings::{Kind, Settings, names};
use crate::run::folder::make_folder;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// Where data are looked for that the call does not name, and the variable that says otherwise.
const DATA: &str = "../shared/data";
const VARIABLE: &str = "OCSC_DATA";

pub(crate) fn run(args: &Reproduce, threads: Option<usize>, console: &Console) -> Result<()> {
    let all = args.name == "all";
    ensure!(!(all && args.settings.is_some()), "--settings: expected the name of one experiment, found all");
    let wanted: Vec<&str> = if all { names() } else { vec![args.name.as_str()] };
    let mut files = Outputs::default();
    files.read("the file of --settings", &args.settings);
    args.results.as_ref().map_or(Ok(()), |path| report::check_results(path, &mut files))?;
    make_folder(&args.out)?;
    console::catch_interrupts();
    let folders = folders(args);
    let (mut done, mut skipped, mut failed) = (Vec::new(), Vec::new(), None);
    let mut estimates = Vec::new();
    for name in wanted {
        let settings = changed(Settings::load(name, args.settings.as_deref())?, args);
        check_methods(&settings)?;
        let (settings, data) = match settings.found(&folders) {
            Ok(found) => found,
            // Of all, those are made whose data are there.
            Err(error) if all => {
                console.say(format!("{name}: {}", told(&error)));
                skipped.push((name.to_owned(), told(&error)));
                continue;
            }
            Err(error) => return Err(error.context(name.to_owned())),
        };
        console.say(format!("{name}: {}", settings.title));
        let folder = args.out.join("runs").join(if args.small { format!("{name}-small") } else { name.to_owned() });
        files.write("--out", &folder.join("experiment.toml"))?;
        let place = Place { folder: folder.clone(), data: &data, threads, console };
        if args.estimate {
            let (plan, search) = planned(&settings, &place).with_context(|| name.to_owned())?;
            let first =
                if search > 0.0 { format!("search for settings {}; ", duration(search)) } else { String::new() };
            estimates.push((name.to_owned(), format!("{first}{}", plan.words())));
            continue;
        }
        // What takes a minute needs no estimate.
        let ran = run_experiment(&settings, !args.small, &place);
        if console::interrupted() {
            return ran.with_context(|| name.to_owned());
        }
        done.push(Runs::of_folder(&folder)?);
        if let Err(error) = ran {
            failed = failed.or(Some(error.context(name.to_owned())));
        }
    }
    if args.estimate {
        return console.table(&estimates);
    }
    let words = if args.small { " --small" } else { "" };
    let command = format!("ocsc reproduce {}{words} --out {}", args.name, args.out.display());
    report::page(&args.out.join("report.html"), &done, &command, &mut files, console)?;
    if let Some(path) = &args.results {
        report::results(path, &done, &skipped, console)?;
    }
    failed.map_or(Ok(()), Err)
}

/// The folders that data are looked for in.
fn folders(args: &Reproduce) -> Vec<PathBuf> {
    match &args.data[..] {
        [] => vec![std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(DATA), PathBuf::from)],
        folders => folders.to_vec(),
    }
}

/// With what the call changes.
fn changed(settings: Settings, args: &Reproduce) -> Settings {
    let mut settings = if args.small { settings.made_small() } else { settings };
    settings.small = None;
    // Of all experiments, those of solvers keep theirs.
    if !args.methods.is_empty() && (args.name != "all" || settings.kind != Kind::Solvers) {
        settings.methods = args.methods.clone();
        if let Some(search) = &mut settings.search {
            search.candidates.retain(|method, _| args.methods.contains(method));
        }
    }
    if let Some(limit) = args.time_limit {
        settings.learn = format!("{} --time-limit {limit}", settings.learn);
    }
    settings.seeds = args.seeds.unwrap_or(settings.seeds);
    settings
}
