//! `ocsc compare`: several methods, with several seeds, on one's own data.

use crate::args::{Args, Compare};
use crate::commands::report;
use crate::console::{self, Console};
use crate::experiment::check_methods;
use crate::experiment::run::{Place, run as run_experiment};
use crate::experiment::runs::Runs;
use crate::experiment::settings::{Data, Settings};
use crate::run::dataset::{self, ToLearn};
use crate::run::folder::make_folder;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use std::path::Path;

/// Options of `compare` that are not options of the runs, or that every run has another value of.
const OWN: [&str; 5] = ["methods", "seeds", "pictures", "out", "seed"];

pub(crate) fn run(args: &Compare, threads: Option<usize>, console: &Console) -> Result<()> {
    let out = args.learn.out.as_deref().context("--out: expected a folder")?;
    let folder = out.join("runs").join("compare");
    let mut files = Outputs::default();
    // What cannot be opened, the runs will tell.
    if let Ok(ToLearn { source, test, .. }) = dataset::for_learning(&args.learn, None, &Console::new(true)) {
        [Some(source), test].iter().flatten().for_each(|source| files.read("one of the data", source.files()));
    }
    make_folder(&folder)?;
    let settings = Settings {
        title: format!("{} compared", args.methods.join(", ")),
        methods: args.methods.clone(),
        seeds: args.seeds,
        first_seed: args.learn.model.seed(),
        pictures: args.pictures,
        data: vec![data(&given()?)],
        ..Settings::default()
    };
    check_methods(&settings)?;
    console::catch_interrupts();
    // Paths are the caller's own.
    let place = Place { folder: folder.clone(), data: Path::new(""), threads, console };
    let ran = run_experiment(&settings, false, &place);
    if console::interrupted() {
        return ran;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    report::page(
        &out.join("report.html"),
        &[Runs::of_folder(&folder)?],
        &format!("ocsc {}", words.join(" ")),
        &mut files,
        console,
    )?;
    ran
}

/// The command line, parsed without its meaning.
fn given() -> Result<ArgMatches> {
    let matches = Args::command().get_matches();
    matches.subcommand().map(|(_, given)| given.clone()).context("expected the command compare")
}

/// The words of the call that every run gets: the data, and every option that was given.
fn data(given: &ArgMatches) -> Data {
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    let (mut train, mut options) = (Vec::new(), Vec::new());
    let compare = Args::command();
    let arguments = compare.find_subcommand("compare").into_iter().flat_map(clap::Command::get_arguments);
    for argument in arguments.filter(|argument| !OWN.contains(&argument.get_id().as_str())) {
        let id = argument.get_id().as_str();
        if given.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values: Vec<String> = given.get_raw(id).into_iter().flatten().map(text).collect();
        match argument.get_long() {
            None => train.extend(values),
            Some(long) if argument.get_action().takes_values() => {
                options.extend(values.into_iter().flat_map(|value| [format!("--{long}"), value]));
            }
            Some(long) => options.push(format!("--{long}")),
        }
    }
    let what = format!("{} with {}", train.join(" "), options.join(" "));
    Data { what, train, words: options, ..Data::default() }
}
