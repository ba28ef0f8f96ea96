//! How a run of the program begins: its settings and start, and what is said of both.

use crate::args::Learn;
use crate::console::{Console, told};
use crate::data::Source;
use crate::memory;
use crate::run::dataset;
use crate::run::given::Given;
use crate::run::model::preprocessing;
use crate::run::sparsity;
use anyhow::{Error, Result};
use ocsc::checkpoint::Saved;
use ocsc::run::{Init, Run, Started};
use ocsc::{Config, Dictionary, Real, settings};
use std::path::Path;

/// Returns the settings of a new run on a data set.
pub(crate) fn new_config(args: &Learn, source: &Source) -> Result<Config> {
    let preprocess = preprocessing(args.model.preprocess(), source)?;
    let mut config = args.model.config(source.rank(), preprocess, source.is_arrays())?;
    config.passes = args.model.passes().unwrap_or(config.passes);
    config.axes = args.data.reading.axes.clone();
    config.rate = args.data.reading.rate.map(u64::from);
    config.resize = args.data.reading.resize.map(|resize| resize.to_string());
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
        None => Run::new(config).init(start(&args.model.init, rank, console)?),
    };
    let run = run.test_every(args.test_every).test_seconds(args.test_seconds).test_subset(args.test_subset);
    let run = run.processor_time(args.processor_time);
    Ok(run.options(args.model.run().clone()).strict(args.data.strict))
}

/// Returns the dictionary that `--init` says to start from.
pub(crate) fn start<T: Real>(init: &str, rank: usize, console: &Console) -> Result<Init<T>> {
    Ok(match init {
        "random" => Init::Random,
        "patches" => Init::Patches,
        file => Init::Given(from_file(Path::new(file), rank, console)?),
    })
}

/// Returns whether `--init` names a file.
pub(crate) fn is_file(init: &str) -> bool {
    !matches!(init, "random" | "patches")
}

/// Says how the beta of a run was chosen.
pub(crate) fn say_beta<T: Real>(run: &Started<T>, console: &Console) {
    if let Some(beta) = run.beta() {
        sparsity::say_beta(beta.ratio, beta.beta(), beta.of.median, beta.of.samples, console);
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
    if let ocsc::Error::Rank { rank, of, cause: Some(cause), .. } = error {
        let message = told(&advised(*cause, reading));
        return ocsc::Error::Rank { rank, of, message, cause: None }.into();
    }
    match &error {
        ocsc::Error::TooSmall { index, .. } => {
            let reading = reading(*index).map_or(String::new(), |reading| format!(" ({reading})"));
            let advice = dataset::SKIP;
            anyhow::anyhow!("{error}{reading}; {advice}")
        }
        ocsc::Error::MixedSizes { .. } => anyhow::anyhow!("{error}; `--method ocsc` takes any"),
        ocsc::Error::Invalid { what, expected, found } => match settings::find(what) {
            Some(setting) => anyhow::anyhow!("--{}: expected {expected}, found {found}", setting.flag_name()),
            None => error.into(),
        },
        _ => error.into(),
    }
}

/// A dictionary from an array (K, C, axes...) or (K, axes...); filters of norm above 1 are scaled to 1.
fn from_file<T: Real>(path: &Path, rank: usize, console: &Console) -> Result<Dictionary<T>> {
    let given = Given::read(path, rank)?;
    if let Some(doubt) = &given.doubt {
        console.say(format!("warning: --init {}: {doubt}", path.display()));
    }
    let (dictionary, largest) = given.dictionary(rank)?;
    if largest > 1.0 + 1e-4 {
        console.say(format!("{}: filters of norm above 1 (largest {largest:.3}) scaled to 1", path.display()));
    }
    Ok(dictionary)
}
