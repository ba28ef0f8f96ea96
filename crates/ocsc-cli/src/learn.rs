//! `ocsc learn`: learn a dictionary, or go on learning one.

use crate::args::{Every, Learn};
use crate::console::{self, Console, Interrupted, bytes};
use crate::crew::{Crew, Sizes};
use crate::data::{Source, list_named_by};
use crate::memory;
use crate::model::{Prepared, check_masked, preprocessing};
use crate::open;
use crate::stream;
use crate::watch::{Checkpoints, Log, Watch};
use anyhow::{Context, Error, Result, ensure};
use ocsc::checkpoint::Saved;
use ocsc::config::Dtype;
use ocsc::memory::Survey;
use ocsc::start::{Init, Started, first_usable, start};
use ocsc::train::{Ended, Outcome, Progress, Schedule, train, visiting_order};
use ocsc::{Config, Dictionary, Learner, Real, Sample, Samples, Shape, checkpoint};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a run that did not ask for checkpoints gets one: nobody loses more than this to a power cut.
const CHECKPOINTS: Every = Every::Time(Duration::from_secs(600));

/// `ocsc learn`.
pub fn run(args: &Learn, crew: &Crew, console: &Console) -> Result<()> {
    if crew.is_first() {
        spare_inputs(args)?;
        checkpoint::check_writable(out(args)?).context("--out")?;
        checkpoint::remove_leftovers(out(args)?);
    }
    let resumed = args.resume.as_ref().map(|path| crew.load::<f32>(path)).transpose()?;
    if stream::is_wanted(&args.data)? {
        ensure!(!crew.is_many(), "-: expected data that all ranks can read, found standard input");
        let test = open::for_stream(args)?;
        return match dtype(args, 2, resumed.as_ref())? {
            Dtype::F32 => stream::learn::<f32>(args, test.as_ref(), console),
            Dtype::F64 => stream::learn::<f64>(args, test.as_ref(), console),
        };
    }
    let (source, test) = open::for_learning(args, resumed.as_ref(), console)?;
    crew.check_same(&source)?;
    test.as_ref().map_or(Ok(()), |test| crew.check_same(test).context("--test"))?;
    match dtype(args, source.rank(), resumed.as_ref())? {
        Dtype::F32 => learn::<f32>(args, &source, test.as_ref(), crew, console),
        Dtype::F64 => learn::<f64>(args, &source, test.as_ref(), crew, console),
    }
}

/// What to compute in, for data with so many spatial axes.
fn dtype(args: &Learn, rank: usize, resumed: Option<&Saved<f32>>) -> Result<Dtype> {
    match resumed {
        Some(saved) => Ok(saved.config.dtype),
        None => Ok(args.model.config(rank, Default::default(), true)?.dtype),
    }
}

fn learn<T: Real>(args: &Learn, source: &Source, test: Option<&Source>, crew: &Crew, console: &Console) -> Result<()> {
    let (mut learner, progress) = match &args.resume {
        Some(path) => resumed::<T>(path, args, crew)?,
        None => {
            let mut config =
                args.model.config(source.rank(), preprocessing(&args.model.preprocess, source)?, source.is_arrays())?;
            config.passes = args.passes.unwrap_or(config.passes);
            check_masked(&config.preprocess, source.is_masked())?;
            let order = visiting_order(source.len(), config.seed, 0);
            let preprocess = config.preprocess.clone();
            let samples = Prepared::new(source, &preprocess);
            let start = || started::<T>(args, config, &samples, &order, |i| source.reading(i), console);
            (crew.started(start)?, Progress::default())
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
    let (mut sizes, mut test_sizes) = (Vec::new(), Vec::new());
    if config.passes > 0 {
        let survey;
        (sizes, survey) = survey_by::<T>(crew, source, &config, learner.dictionary(), args.data.strict)?;
        memory::ensure::<T>(&survey, &config, learner.dictionary(), args.memory_limit, console)?;
        if let Some(test) = test {
            test_sizes = check_test::<T>(crew, test, &config, learner.dictionary(), args.data.strict)?;
        }
    }
    let samples = Prepared::new(source, &config.preprocess).sized(&sizes);
    let test = test.map(|source| Prepared::new(source, &config.preprocess).sized(&test_sizes));

    let log = args.log.as_ref().filter(|_| crew.is_first());
    let log = log.map(|path| Log::open(path, args.resume.as_ref().map(|_| &progress))).transpose()?;
    let total = config.passes.saturating_mul(source.len());
    let bar = console.progress("learning", total, progress.samples);
    let mut watch = Watch::new(bar, log, crew.is_first().then(|| checkpoints(args, out)));
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
        Err(error) if crew.is_first() => return Err(rescued(error.into(), learner.as_ref(), last, out)),
        Err(error) => return Err(error.into()),
    };
    if crew.is_first() {
        finish(args, learner.as_ref(), &outcome, reseeded, console)?;
    }
    Ok(())
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
    if outcome.ended == Ended::Stopped {
        let samples = outcome.progress.samples;
        return Err(
            Interrupted(format!("interrupted after {samples} samples; {} is a checkpoint", out.display())).into()
        );
    }
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
fn resumed<T: Real>(path: &Path, args: &Learn, crew: &Crew) -> Result<(Box<dyn Learner<T>>, Progress)> {
    let mut saved = crew.load::<T>(path)?;
    if let Some(passes) = args.passes {
        saved.config.passes = passes;
    }
    let (learner, progress) = saved.resume_with(|config, dictionary| crew.member(config, dictionary))?;
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
pub(crate) fn survey<T: Real>(source: &Source, config: &Config, dictionary: &Dictionary<T>) -> Result<Survey> {
    Ok(survey_by(&Crew::alone(), source, config, dictionary, false)?.1)
}

/// The same by all members, each of which looks at some; with the sizes of all samples.
fn survey_by<T: Real>(
    crew: &Crew,
    source: &Source,
    config: &Config,
    dictionary: &Dictionary<T>,
    strict: bool,
) -> Result<(Sizes, Survey)> {
    let filter = dictionary.shape();
    let sizes = open::sizes(crew, source, filter, strict)?;
    let mut first: Option<(Shape, usize)> = None;
    let processes = crew.team().neighbours();
    let mut survey = Survey { samples: source.len(), one_size: None, largest: 0, processes };
    let mut one_size = true;
    for (i, size) in sizes.iter().enumerate().filter(|(_, size)| **size != [0; 3]) {
        let [depth, height, width] = size.map(|n| n as usize);
        let shape = Shape { channels: filter.channels, depth, height, width };
        survey.largest = survey.largest.max(shape.len());
        let (expected, with) = *first.get_or_insert((shape, i));
        ensure!(
            shape == expected || config.method.takes_mixed_sizes(),
            "{}: expected {expected} as {} has, found {shape}: the statistics of `{}` hold one sample size; \
             `--method ocsc` takes any",
            source.name(i),
            source.name(with),
            config.method
        );
        one_size &= shape == expected;
    }
    survey.one_size = first.map(|(shape, _)| shape).filter(|_| one_size);
    Ok((sizes, survey))
}

/// That every test sample can be coded: else the first pass would be lost on the last one. Returns their sizes.
pub(crate) fn check_test<T: Real>(
    crew: &Crew,
    test: &Source,
    config: &Config,
    dictionary: &Dictionary<T>,
    strict: bool,
) -> Result<Sizes> {
    let sizes = open::sizes(crew, test, dictionary.shape(), strict).context("--test")?;
    let all: Vec<usize> = (0..test.len()).collect();
    let samples = Prepared::new(test, &config.preprocess);
    if crew.is_first() {
        let (i, first) = first_usable::<T>(&samples, &all, strict).context("--test")?;
        dictionary.check_sample_shape(first.shape()).with_context(|| format!("--test {}", test.name(i)))?;
    }
    Ok(sizes)
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
