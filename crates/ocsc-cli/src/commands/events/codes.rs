//! Events of codes that `ocsc code` wrote, which are not coded again.

use super::{Table, options};
use crate::args::Events;
use crate::console::{self, Console, Interrupted, counted};
use crate::data::{Cut, Facts, codes};
use crate::run::folder::code_files;
use crate::run::model;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result, bail, ensure};
use ocsc::checkpoint::Saved;
use ocsc::events::find;
use ocsc::preprocess::Preprocess;
use ocsc::replace;
use std::path::{Path, PathBuf};

/// Returns the codes of a folder, if the data that a call names are one.
pub(super) fn named(data: &[PathBuf]) -> Result<Option<Vec<PathBuf>>> {
    let [folder] = data else { return Ok(None) };
    if !folder.is_dir() {
        return Ok(None);
    }
    // A folder without archives holds data.
    let Ok(files) = code_files(folder) else { return Ok(None) };
    Ok(codes::is_code(&files[0]).then_some(files))
}

/// Writes the events of codes.
pub(super) fn events(args: &Events, files: &[PathBuf], console: &Console) -> Result<()> {
    if let Some(flag) = args.data.given().or(args.coding.settings.given()) {
        bail!("{flag}: expected none for codes, which are made already; name the data instead to code them otherwise");
    }
    let saved = model::load::<f64>(&args.model, console)?;
    let options = options(args, saved.dictionary.rank())?;
    let facts = files.iter().map(|file| codes::read_facts(file)).collect::<Result<Vec<_>>>()?;
    let preprocess: Preprocess = facts[0].preprocess.as_deref().unwrap_or("none").parse()?;
    for (file, facts) in files.iter().zip(&facts) {
        check(facts, &facts_of(&saved, &preprocess)).with_context(|| file.display().to_string())?;
    }
    let mut outputs = Outputs::default();
    outputs.read("the model", [&args.model]);
    outputs.read("one of the codes", files);
    outputs.write("--out", &args.out)?;
    replace::check_writable(&args.out)?;
    let cuts = cuts(files, &facts);
    let is_per_channel = preprocess.is_per_channel();
    let dictionary = &saved.dictionary;
    let mut table = Table { is_per_channel, ..Table::new(args, dictionary.rank(), dictionary.shape(), options) };
    console::catch_interrupts();
    let mut bar = console.progress("reading codes", files.len(), 0);
    for (done, (i, cut)) in cuts.into_iter().enumerate() {
        if console::interrupted() {
            let of = counted(files.len(), "code");
            return Err(Interrupted(format!("interrupted after {done} of {of}; nothing was written")).into());
        }
        let (file, energy) = (&files[i], facts[i].energy.unwrap_or(f64::NAN));
        let (code, _) = codes::read_code::<f64>(file)?;
        // As the coder had them.
        let filters = match codes::read_filters(file, dictionary)? {
            Some(own) => own,
            None if codes::is_single(file)? => dictionary.cast::<f32>().cast(),
            None => dictionary.clone(),
        };
        let found = find(&code, &filters, saved.config.boundary, energy, &options);
        table.add(cut, energy, found.with_context(|| file.display().to_string())?)?;
        table.gap = table.gap.max(facts[i].gap.unwrap_or(f64::NAN));
        bar.advance(1, "");
    }
    drop(bar);
    let betas = || facts.iter().map(|facts| facts.beta);
    let beta = betas().next().flatten().filter(|beta| betas().all(|other| other == Some(*beta)));
    table.write(beta, console)
}

/// What codes of a model that were prepared alike say.
fn facts_of(saved: &Saved<f64>, preprocess: &Preprocess) -> Facts {
    Facts {
        model: Some(saved.dictionary_checksum.clone()),
        preprocess: Some(preprocess.to_string()),
        boundary: Some(saved.config.boundary.to_string()),
        ..Facts::default()
    }
}

/// Refuses a code of another model, and one that does not say what events are shares of.
fn check(facts: &Facts, wanted: &Facts) -> Result<()> {
    let of_same_problem = Facts { problem: facts.problem.clone(), ..wanted.clone() };
    if let Some(difference) = facts.difference(&of_same_problem) {
        bail!(difference);
    }
    ensure!(
        facts.energy.is_some_and(|energy| energy >= 0.0),
        "expected the energy of the sample, of which the energies of events are shares, found none: the code is from before codes \
         had it. Code the data again, or name the data instead of the codes"
    );
    Ok(())
}

/// Where the samples of codes lie in what they were cut from, with the numbers of the codes, in the order of the data.
fn cuts(files: &[PathBuf], facts: &[Facts]) -> Vec<(usize, Cut)> {
    let name = |file: &Path, facts: &Facts| {
        let stem = || file.file_stem().unwrap_or_default().display().to_string();
        facts.whole.clone().or(facts.source.clone()).unwrap_or_else(stem)
    };
    let mut all: Vec<_> = (files.iter().zip(facts).enumerate())
        .map(|(i, (file, facts))| (facts.order.unwrap_or(i), name(file, facts), facts.place.unwrap_or_default(), i))
        .collect();
    all.sort();
    let mut cuts: Vec<(usize, Cut)> = Vec::with_capacity(all.len());
    let mut last = None;
    for (order, name, start, i) in all {
        let is_same = last.as_ref() == Some(&(order, name.clone()));
        let whole = cuts.last().map_or(0, |(_, cut)| cut.whole + usize::from(!is_same));
        last = Some((order, name.clone()));
        cuts.push((i, Cut { whole, name, start, rate: facts[i].rate.map(|rate| rate as u32) }));
    }
    cuts
}
