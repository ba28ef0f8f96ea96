//! `ocsc reproduce`: the paper's experiments, one or all.

use crate::args::Reproduce;
use crate::commands::report;
use crate::console::{self, Console, told};
use crate::experiment::check_methods;
use crate::experiment::run::{Place, run as run_experiment};
use crate::experiment::runs::Runs;
use crate::experiment::settings::{Kind, Settings, names};
use crate::run::folder::make_folder;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result, ensure};

pub(crate) fn run(args: &Reproduce, threads: Option<usize>, console: &Console) -> Result<()> {
    let all = args.name == "all";
    ensure!(!(all && args.settings.is_some()), "--settings: expected the name of one experiment, found all");
    let wanted: Vec<&str> = if all { names() } else { vec![args.name.as_str()] };
    let mut files = Outputs::default();
    files.read("the file of --settings", &args.settings);
    args.results.as_ref().map_or(Ok(()), |path| report::check_results(path, &mut files))?;
    make_folder(&args.out)?;
    console::catch_interrupts();
    let (mut done, mut skipped, mut failed) = (Vec::new(), Vec::new(), None);
    for name in wanted {
        let settings = changed(Settings::load(name, args.settings.as_deref())?, args);
        check_methods(settings.kind, &settings.methods)?;
        let settings = match settings.found(&args.data) {
            Ok(settings) => settings,
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
        let place = Place { folder: folder.clone(), data: &args.data, threads, console };
        let ran = run_experiment(&settings, &place);
        if console::interrupted() {
            return ran.with_context(|| name.to_owned());
        }
        done.push(Runs::of_folder(&folder)?);
        if let Err(error) = ran {
            failed = failed.or(Some(error.context(name.to_owned())));
        }
    }
    let words = if args.small { " --small" } else { "" };
    let command = format!("ocsc reproduce {}{words} --out {}", args.name, args.out.display());
    report::page(&args.out.join("report.html"), &done, &command, &mut files, console)?;
    if let Some(path) = &args.results {
        report::results(path, &done, &skipped, console)?;
    }
    failed.map_or(Ok(()), Err)
}

/// With what the call changes.
fn changed(settings: Settings, args: &Reproduce) -> Settings {
    let mut settings = if args.small { settings.made_small() } else { settings };
    settings.small = None;
    // Of all experiments, those of solvers keep theirs.
    if !args.methods.is_empty() && (args.name != "all" || settings.kind != Kind::Solvers) {
        settings.methods = args.methods.clone();
    }
    settings.seeds = args.seeds.unwrap_or(settings.seeds);
    settings
}
