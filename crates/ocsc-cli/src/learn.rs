//! `ocsc learn`: learn a dictionary, or go on learning one.

use crate::args::{Every, Learn};
use crate::console::{self, Console, bytes};
use crate::data::{Source, list_named_by};
use crate::memory;
use crate::model::{Prepared, check_masked, preprocessing};
use crate::open;
use crate::stream;
use crate::watch::{Checkpoints, Log, Watch};
use anyhow::{Context, Error, Result, ensure};
use ocsc::config::Dtype;
use ocsc::memory::Survey;
use ocsc::start::{Init, Started, first_usable, start};
use ocsc::train::{Ended, Outcome, Progress, Schedule, train, visiting_order};
use ocsc::{Config, Dictionary, Learner, Real, Sample, Samples, Shape, checkpoint};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a run that did not ask for checkpoints gets one: nobody loses more than this to a power cut.
const CHECKPOINTS: Every = Every::Time(Duration::from_secs(600));

pub(crate) fn run(args: &Learn, console: &Console) -> Result<()> {
    spare_inputs(args)?;
    checkpoint::check_writable(out(args)?).context("--out")?;
    checkpoint::remove_leftovers(out(args)?);
    if stream::is_wanted(&args.data)? {
        let test = open::for_stream(args)?;
        return match dtype(args, 2)? {
            Dtype::F32 => stream::learn::<f32>(args, test.as_ref(), console),
            Dtype::F64 => stream::learn::<f64>(args, test.as_ref(), console),
        };
    }
    let (source, test) = open::for_learning(args, console)?;
    let dtype = dtype(args, source.rank())?;
    match dtype {
        Dtype::F32 => learn::<f32>(args, &source, test.as_ref(), console),
        Dtype::F64 => learn::<f64>(args, &source, test.as_ref(), console),
    }
}

/// What to compute in, for data with so many spatial axes.
fn dtype(args: &Learn, rank: usize) -> Result<Dtype> {
    match &args.resume {
        Some(path) => Ok(checkpoint::load::<f32>(path)?.config.dtype),
        None => Ok(args.model.config(rank, Default::default(), true)?.dtype),
    }
}

fn learn<T: Real>(args: &Learn, source: &Source, test: Option<&Source>, console: &Console) -> Result<()> {
    let (mut learner, progress) = match &args.resume {
        Some(path) => resumed::<T>(path, args)?,
        None => {
            let mut config =
                args.model.config(source.rank(), preprocessing(&args.model.preprocess, source)?, source.is_arrays())?;
            config.passes = args.passes.unwrap_or(config.passes);
            check_masked(&config.preprocess, source.is_masked())?;
            let order = visiting_order(source.len(), config.seed, 0);
            let samples = Prepared { source, preprocess: &config.preprocess.clone() };
            (started::<T>(args, config, &samples, &order, |i| source.reading(i), console)?, Progress::default())
        }
    };
    let out = out(args)?;
    let config = learner.config().clone();
    check_masked(&config.preprocess, source.is_masked())?;
    ensure!(
        config.method.takes_masks() || !source.is_masked(),
        "--mask, --nan-is-missing: expected a method that takes masks (ocsc, ffcsc), found {}",
        config.method
    );
    let samples = Prepared { source, preprocess: &config.preprocess };
    let test = test.map(|source| Prepared { source, preprocess: &config.preprocess });
    if config.passes > 0 {
        let survey = survey::<T>(source, &config, learner.dictionary(), args.data.strict)?;
        memory::ensure::<T>(&survey, &config, learner.dictionary(), args.memory_limit, console)?;
        test.as_ref().map_or(Ok(()), |test| check_test(test, learner.dictionary(), args.data.strict))?;
    }

    let log = args.log.as_ref().map(|path| Log::open(path, args.resume.as_ref().map(|_| &progress))).transpose()?;
    let total = config.passes.saturating_mul(source.len());
    let bar = console.progress("learning", total, progress.samples);
    let checkpoints = checkpoints(args, out);
    let mut watch = Watch::new(bar, log, Some(checkpoints));
    let schedule = Schedule {
        stop_tol: args.stop_tol,
        // A limit beyond what a duration holds is no limit.
        time_limit: args.time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()),
        test_every: args.test_every,
        strict: args.data.strict,
    };
    console::catch_interrupts()?;
    let test = test.as_ref().map(|test| test as &dyn Samples<T>);
    let trained = train(learner.as_mut(), &samples, test, &schedule, progress, &mut watch);
    let (last, reseeded) = (watch.last, watch.reseeded);
    drop(watch);
    let outcome = match trained {
        Ok(outcome) => outcome,
        Err(error) => return Err(rescued(error.into(), learner.as_ref(), last, out)),
    };
    finish(args, learner.as_ref(), &outcome, reseeded, console)
}

/// Writes the model and reports; an interrupted run leaves a checkpoint and fails.
pub(crate) fn finish<T: Real>(
    args: &Learn,
    learner: &dyn Learner<T>,
    outcome: &Outcome,
    reseeded: usize,
    console: &Console,
) -> Result<()> {
    let out = out(args)?;
    let unfinished = matches!(outcome.ended, Ended::Stopped | Ended::TimeLimit);
    let keep_state = unfinished || args.checkpoint_every.is_some();
    checkpoint::save(out, learner, keep_state.then_some(&outcome.progress))?;
    report(args, learner, outcome, reseeded, out, console)?;
    if unfinished {
        console.say(format!("to go on: ocsc learn {} --resume {}", open::words(args), out.display()));
    }
    ensure!(
        outcome.ended != Ended::Stopped,
        "interrupted after {} samples; {} is a checkpoint",
        outcome.progress.samples,
        out.display()
    );
    Ok(())
}

/// A run that fails, on a damaged image or a full disk, leaves a checkpoint of what it had learned.
pub(crate) fn rescued<T: Real>(error: Error, learner: &dyn Learner<T>, last: Option<Progress>, out: &Path) -> Error {
    match last.filter(|last| last.step == learner.step()) {
        Some(last) if checkpoint::save(out, learner, Some(&last)).is_ok() => {
            error.context(format!("stopped after {} samples; {} is a checkpoint", last.samples, out.display()))
        }
        _ => error,
    }
}

/// When the run writes checkpoints.
pub(crate) fn checkpoints(args: &Learn, out: &Path) -> Checkpoints {
    Checkpoints::new(out, args.checkpoint_every.unwrap_or(CHECKPOINTS))
}

/// The model file to write.
pub(crate) fn out(args: &Learn) -> Result<&Path> {
    args.out.as_deref().or(args.resume.as_deref()).context("--out: expected a model file to write")
}

/// That neither model nor log would be written over the data, or over each other.
fn spare_inputs(args: &Learn) -> Result<()> {
    let place = |path: &Path| std::fs::canonicalize(path).ok();
    let (out, log) = (Some(out(args)?), args.log.as_deref());
    let named = args.data.data.iter().chain(&args.test.test).map(|path| list_named_by(path).unwrap_or(path.clone()));
    let inputs: Vec<PathBuf> = named.chain(args.test.test_list.clone()).chain(args.test.split.clone()).collect();
    for (option, path) in [("--out", out), ("--log", log)].into_iter().filter_map(|(o, p)| Some((o, p?))) {
        let taken = inputs.iter().any(|input| place(input).is_some_and(|i| i.is_file() && Some(i) == place(path)));
        ensure!(!taken, "{option} {}: expected a new file, found one of the data", path.display());
    }
    ensure!(out != log, "--log {}: expected another file than the model's", log.unwrap_or(Path::new("")).display());
    Ok(())
}

/// A learner that goes on from a checkpoint.
fn resumed<T: Real>(path: &Path, args: &Learn) -> Result<(Box<dyn Learner<T>>, Progress)> {
    let mut saved = checkpoint::load::<T>(path)?;
    if let Some(passes) = args.passes {
        saved.config.passes = passes;
    }
    let (learner, progress) = saved.resume()?;
    let (made, wanted) = (progress.pass, learner.config().passes);
    ensure!(
        made < wanted,
        "{}: all {wanted} passes are made; to go on, ask for more with --passes, e.g. --passes {}",
        path.display(),
        made + 1
    );
    Ok((learner, progress))
}

/// A new learner, for samples that will be visited in this order. `reading` says how a sample's axes were understood.
pub(crate) fn started<T: Real>(
    args: &Learn,
    config: Config,
    samples: &dyn Samples<T>,
    order: &[usize],
    reading: impl Fn(usize) -> Option<String>,
    console: &Console,
) -> Result<Box<dyn Learner<T>>> {
    let (first, sample) = first_usable(samples, order, args.data.strict)?;
    let batch = &order[..config.batch_size.min(order.len())];
    let shape = Shape::from_axes(sample.shape().channels, &config.filter_shape)?;
    let rank = config.filter_shape.len();
    let name = samples.name(first);
    if !is_file(&args.model.init) {
        let fits = sample.shape().spatial().iter().zip(shape.spatial()).all(|(s, f)| *s >= f);
        let (found, advice) = (sample.shape(), open::SKIP);
        let reading = reading(first).map_or(String::new(), |reading| format!(": {reading}"));
        ensure!(fits, "{name}: expected at least the filters' size {shape} (--size), found {found}{reading}; {advice}");
        let need = config.n_filters.saturating_mul(shape.len()).saturating_mul(size_of::<T>());
        memory::ensure_free("the filters", need)?;
    }
    let init = match args.model.init.as_str() {
        "random" => Init::Random,
        "patches" => Init::Patches,
        file => Init::Given(from_file(Path::new(file), rank, console)?),
    };
    let (ratio, channels) = (args.model.beta_ratio, sample.shape().channels);
    let Started { learner, beta_max } = start(config, init, ratio, channels, samples, batch, args.data.strict)
        .map_err(|e| if ratio.is_some() { Error::from(e).context("--beta-ratio") } else { e.into() })?;
    if let (Some(ratio), Some(beta_max)) = (ratio, beta_max) {
        let these = if batch.len() > 1 { format!("{name} and {} more", batch.len() - 1) } else { name };
        let beta = learner.config().beta;
        console.say(format!("beta {beta} = {ratio} of {beta_max}, the smallest with all-zero codes, for {these}"));
    }
    Ok(learner)
}

/// Whether `--init` names a file.
fn is_file(init: &str) -> bool {
    !matches!(init, "random" | "patches")
}

/// A dictionary from an array (K, C, axes...) or (K, axes...); filters of norm above 1 are scaled to 1.
fn from_file<T: Real>(path: &Path, rank: usize, console: &Console) -> Result<Dictionary<T>> {
    let source = open::for_init(path, rank)?;
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

/// Whether all samples fit the filters and the method, and how large they are: to be said before, not after an hour.
/// Those that cannot be read are left for the run to report, unless it is to be strict.
fn survey<T: Real>(source: &Source, config: &Config, dictionary: &Dictionary<T>, strict: bool) -> Result<Survey> {
    let filter = dictionary.shape();
    let mut first: Option<(Shape, String)> = None;
    let mut survey = Survey { samples: source.len(), one_size: None, largest: 0 };
    let mut one_size = true;
    for i in 0..source.len() {
        let [depth, height, width] = match source.size(i) {
            Ok(size) => size,
            Err(error) if strict => return Err(error),
            Err(_) => continue,
        };
        let shape = Shape { channels: filter.channels, depth, height, width };
        open::check_size(source, i, filter)?;
        survey.largest = survey.largest.max(shape.len());
        let (expected, name) = first.get_or_insert_with(|| (shape, source.name(i)));
        ensure!(
            shape == *expected || config.method.takes_mixed_sizes(),
            "{}: expected {expected} as {name} has, found {shape}: the statistics of `{}` hold one sample size; \
             `--method ocsc` takes any",
            source.name(i),
            config.method
        );
        one_size &= shape == *expected;
    }
    survey.one_size = first.map(|(shape, _)| shape).filter(|_| one_size);
    Ok(survey)
}

/// That every test sample can be coded: else the first pass would be lost on the last one.
pub(crate) fn check_test<T: Real>(test: &Prepared<'_>, dictionary: &Dictionary<T>, strict: bool) -> Result<()> {
    for i in 0..test.source.len() {
        open::check_size(test.source, i, dictionary.shape()).context("--test")?;
        if strict {
            test.source.size(i).context("--test")?;
        }
    }
    let all: Vec<usize> = (0..test.source.len()).collect();
    let (i, first) = first_usable::<T>(test, &all, strict).context("--test")?;
    dictionary.check_sample_shape(first.shape()).with_context(|| format!("--test {}", test.source.name(i)))
}

fn report<T: Real>(
    args: &Learn,
    learner: &dyn Learner<T>,
    outcome: &Outcome,
    reseeded: usize,
    out: &Path,
    console: &Console,
) -> Result<()> {
    let (progress, config) = (&outcome.progress, learner.config());
    let ended = match outcome.ended {
        Ended::Finished => "all passes made",
        Ended::Converged => "converged",
        Ended::TimeLimit => "time limit",
        Ended::Stopped => "interrupted",
    };
    if args.json {
        let result = serde_json::json!({
            "model": out, "ended": ended, "samples": progress.samples, "steps": progress.step, "passes": progress.pass,
            "seconds": progress.seconds, "cpu_seconds": progress.cpu_seconds, "beta": config.beta, "test": outcome.test,
            "peak_rss_bytes": crate::record::peak_rss_bytes(), "reseeded": reseeded, "skipped": progress.skipped,
            "waiting_seconds": progress.waiting_seconds,
        });
        return console.result(result.to_string());
    }
    let mut rows = vec![
        ("model".to_owned(), out.display().to_string()),
        ("ended".to_owned(), ended.to_owned()),
        (
            "samples".to_owned(),
            format!("{} in {} {}", progress.samples, progress.pass, if progress.pass == 1 { "pass" } else { "passes" }),
        ),
        (
            "learning time".to_owned(),
            format!("{:.2} s ({:.2} s of processors)", progress.seconds, progress.cpu_seconds),
        ),
    ];
    let total = progress.seconds + progress.waiting_seconds;
    if total > 0.0 {
        let share = 100.0 * progress.waiting_seconds / total;
        rows.push(("waiting for data".to_owned(), format!("{:.2} s, {share:.1} % of both", progress.waiting_seconds)));
    }
    if progress.skipped > 0 {
        let n = progress.skipped;
        rows.push((
            "skipped".to_owned(),
            format!("{n} {} to unusable samples", if n == 1 { "visit" } else { "visits" }),
        ));
    }
    if reseeded > 0 {
        rows.push(("unused filters".to_owned(), format!("{reseeded} replaced by the worst-explained patches")));
    }
    if let Some(test) = &outcome.test {
        rows.extend(crate::evaluate::rows(test));
    }
    if let Some(peak) = crate::record::peak_rss_bytes() {
        rows.push(("peak memory".to_owned(), bytes(peak as usize)));
    }
    console.table(&rows)
}
