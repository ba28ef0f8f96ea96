//! How a run of the program begins: its settings and start, and what is said of both.

use crate::args::Learn;
use crate::console::Console;
use crate::data::Source;
use crate::memory;
use crate::run::dataset;
use crate::run::model::preprocessing;
use anyhow::{Error, Result};
use ocsc::checkpoint::Saved;
use ocsc::run::{Init, Run, Started};
use ocsc::{Config, Dictionary, Real, Sample, Samples};
use std::path::Path;

/// Returns the settings of a new run on a data set.
pub(crate) fn new_config(args: &Learn, source: &Source) -> Result<Config> {
    let preprocess = preprocessing(args.model.preprocess(), source)?;
    let mut config = args.model.config(source.rank(), preprocess, source.is_arrays())?;
    config.passes = args.model.passes().unwrap_or(config.passes);
    config.axes = args.data.reading.axes.clone();
    Ok(config)
}

/// Returns the run that the call asks for, on samples with so many spatial axes: from a checkpoint, or a new one.
pub(crate) fn begin<T: Real>(
    args: &Learn,
    config: Config,
    saved: Option<Saved<T>>,
    rank: usize,
    console: &Console,
) -> Result<Run<T>> {
    let run = match saved {
        Some(saved) => Run::resume(saved),
        None => Run::new(config).init(match args.model.init.as_str() {
            "random" => Init::Random,
            "patches" => Init::Patches,
            file => Init::Given(from_file(Path::new(file), rank, console)?),
        }),
    };
    Ok(run.options(args.model.run().clone()).test_every(args.test_every).strict(args.data.strict))
}

/// Says how the beta of a run was chosen.
pub(crate) fn say_beta<T: Real>(run: &Started<T>, console: &Console) {
    let config = run.learner().config();
    if let Some(beta) = run.beta() {
        let these = match beta.samples {
            1 => beta.first.clone(),
            more => format!("{} and {} more", beta.first, more - 1),
        };
        let (ratio, largest) = (beta.ratio, beta.largest);
        console
            .say(format!("beta {} = {ratio} of {largest}, the smallest with all-zero codes, for {these}", config.beta));
    }
}

/// Says what a run that is about to learn from a set needs.
pub(crate) fn say_needs<T: Real>(run: &Started<T>, console: &Console) {
    if let Some(survey) = run.survey() {
        let learner = run.learner();
        memory::say::<T>(survey, learner.config(), learner.dictionary().shape(), console);
    }
}

/// Adds what to do to the refusal of samples; `reading` says how the axes of one were understood.
pub(crate) fn advised(error: ocsc::Error, reading: impl Fn(usize) -> Option<String>) -> Error {
    match &error {
        ocsc::Error::TooSmall { index, .. } => {
            let reading = reading(*index).map_or(String::new(), |reading| format!(" ({reading})"));
            let advice = dataset::SKIP;
            anyhow::anyhow!("{error}{reading}; {advice}")
        }
        ocsc::Error::MixedSizes { .. } => anyhow::anyhow!("{error}; `--method ocsc` takes any"),
        ocsc::Error::Invalid { what, expected, found } if what == "beta_ratio" => {
            anyhow::anyhow!("--beta-ratio: expected {expected}, found {found}")
        }
        _ => error.into(),
    }
}

/// A dictionary from an array (K, C, axes...) or (K, axes...); filters of norm above 1 are scaled to 1.
fn from_file<T: Real>(path: &Path, rank: usize, console: &Console) -> Result<Dictionary<T>> {
    let source = dataset::for_init(path, rank)?;
    let first: Sample<f64> = source.get(0)?;
    let mut data = Vec::new();
    for k in 0..source.len() {
        let filter: Sample<f64> = source.get(k)?;
        data.extend_from_slice(filter.data());
    }
    let (dictionary, largest) = Dictionary::scaled(source.len(), first.shape(), rank, &data)?;
    if largest > 1.0 + 1e-4 {
        console.say(format!("{}: filters of norm above 1 (largest {largest:.3}) scaled to 1", path.display()));
    }
    Ok(dictionary)
}
