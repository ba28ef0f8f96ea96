//! `ocsc learn`: learn a dictionary, or go on learning one.

use crate::args::{Every, Learn};
use crate::console::{self, Console, Interrupted, bytes, counted};
use crate::data::{Source, split_pick};
use crate::exit::check_passed_over;
use crate::fingerprint;
use crate::lock::Lock;
use crate::memory;
use crate::model::{Prepared, check_masked, preprocessing, say_unsealed};
use crate::open;
use crate::outputs::{Outputs, is_same};
use crate::ranks::{Ranks, Sizes};
use crate::stream;
use crate::watch::{Checkpoints, Log, Resumed, Watch};
use anyhow::{Context, Error, Result, bail, ensure};
use ocsc::checkpoint::{Attached, Saved};
use ocsc::memory::Survey;
use ocsc::replace::{check_writable, remove_leftovers};
use ocsc::run::{Init, Started, first_usable, start};
use ocsc::settings::Dtype;
use ocsc::train::{Ended, Evaluation, Outcome, Progress, Schedule, train, visiting_order};
use ocsc::{Config, Dictionary, Learner, Real, Sample, Samples, Shape, checkpoint};
use std::path::Path;
use std::time::Duration;

/// How often a run that did not ask for checkpoints gets one: nobody loses more than this to a power cut.
const CHECKPOINTS: Every = Every::Time(Duration::from_secs(600));

/// `ocsc learn`.
pub fn run(args: &Learn, ranks: &Ranks, console: &Console) -> Result<()> {
    // The parser gives up on this where other options conflict with --resume.
    ensure!(!args.other_data || args.resume.is_some(), "--other-data: expected --resume with it");
    let _locks = if ranks.is_first() { locked(args)? } else { Vec::new() };
    let resumed = args.resume.as_ref().map(|path| ranks.load::<f32>(path)).transpose()?;
    if let (Some(saved), Some(path)) = (&resumed, &args.resume) {
        say_unsealed(saved, path, console);
    }
    if stream::is_wanted(&args.data)? {
        ensure!(!ranks.is_many(), "-: expected data that all ranks can read, found standard input");
        let test = open::for_stream(args)?;
        spare_inputs(args, test.iter())?;
        return match dtype(args, 2, resumed.as_ref())? {
            Dtype::F32 => stream::learn::<f32>(args, test.as_ref(), console),
            Dtype::F64 => stream::learn::<f64>(args, test.as_ref(), console),
        };
    }
    let (source, test) = open::for_learning(args, resumed.as_ref(), console)?;
    if ranks.is_first() {
        spare_inputs(args, test.iter().chain([&source]))?;
    }
    ranks.check_same(&source)?;
    test.as_ref().map_or(Ok(()), |test| ranks.check_same(test).context("--test"))?;
    match dtype(args, source.rank(), resumed.as_ref())? {
        Dtype::F32 => learn::<f32>(args, &source, test.as_ref(), ranks, console),
        Dtype::F64 => learn::<f64>(args, &source, test.as_ref(), ranks, console),
    }
}

/// What to compute in, for data with so many spatial axes.
fn dtype(args: &Learn, rank: usize, resumed: Option<&Saved<f32>>) -> Result<Dtype> {
    match resumed {
        Some(saved) => Ok(saved.config.dtype),
        None => Ok(args.model.config(rank, Default::default(), true)?.dtype),
    }
}

fn learn<T: Real>(
    args: &Learn,
    source: &Source,
    test: Option<&Source>,
    ranks: &Ranks,
    console: &Console,
) -> Result<()> {
    let alike;
    let (mut learner, mut progress, recorded) = match &args.resume {
        Some(path) => {
            let (learner, progress, recorded) = resumed::<T>(path, args, ranks)?;
            let channels = Some(learner.dictionary().shape().channels);
            alike = open::alike(source, &learner.config().preprocess, channels, ranks, console)?;
            (learner, progress, recorded)
        }
        None => {
            let mut config = args.model.config(
                source.rank(),
                preprocessing(args.model.preprocess(), source)?,
                source.is_arrays(),
            )?;
            config.passes = args.model.passes().unwrap_or(config.passes);
            config.axes = args.data.reading.axes.clone();
            check_masked(&config.preprocess, source.is_masked())?;
            let filters = open::channels_of_init(args, source.rank())?;
            alike = open::alike(source, &config.preprocess, filters, ranks, console)?;
            let source = &alike;
            let order = visiting_order(source.len(), config.seed, 0);
            let preprocess = config.preprocess.clone();
            let samples = Prepared::new(source, &preprocess);
            let start = || {
                // Before the first sample is read: its header says what that takes.
                ensure_reading(source, args)?;
                started::<T>(args, config, &samples, &order, |i| source.reading(i), console)
            };
            (ranks.started(start)?, Progress::default(), Attached::default())
        }
    };
    let out = out(args)?;
    let config = learner.config().clone();
    let channels = Some(learner.dictionary().shape().channels);
    let test = test.map(|test| open::alike(test, &config.preprocess, channels, ranks, console)).transpose();
    let (source, test) = (&alike, test.context("--test")?);
    let test = test.as_ref();
    check_masked(&config.preprocess, source.is_masked())?;
    ensure!(
        config.method.takes_masks() || !source.is_masked(),
        "--mask, --nan-is-missing: expected a method that takes masks (ocsc, ffcsc), found {}",
        config.method
    );
    let (mut sizes, mut test_sizes) = (Vec::new(), Vec::new());
    let mut attached = Attached::default();
    if config.passes > 0 {
        let survey;
        (sizes, survey) = survey_by::<T>(ranks, source, &config, learner.dictionary(), args.data.strict)?;
        attached.data = ranks.is_first().then(|| fingerprint::of_set(args, &config, source, &sizes));
        if args.resume.is_some() {
            let (recorded, data) = (recorded.data.as_ref(), attached.data.as_ref());
            progress = fingerprint::go_on(args, ranks, recorded, data, config.method, progress, console)?;
        }
        memory::ensure::<T>(&survey, &config, learner.dictionary(), args.model.run().memory_limit, console)?;
        if let Some(test) = test {
            test_sizes = check_test::<T>(ranks, test, &config, learner.dictionary(), args.data.strict)?;
        }
    }
    let samples = Prepared::new(source, &config.preprocess).sized(&sizes);
    let test = test.map(|source| Prepared::new(source, &config.preprocess).sized(&test_sizes));

    let log = args.log.as_ref().filter(|_| ranks.is_first());
    let resumed = args.resume.as_ref().map(|_| Resumed::new(&progress, &recorded.notes));
    let log = log.map(|path| Log::open(path, resumed)).transpose()?;
    let total = config.passes.saturating_mul(source.len());
    let bar = console.progress("learning", total, progress.samples);
    let mut watch = Watch::new(bar, log, ranks.is_first().then(|| checkpoints(args, out, &attached)));
    let schedule = Schedule {
        stop_tol: args.model.run().stop_tol,
        // A limit beyond what a duration holds is no limit.
        time_limit: args.model.run().time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()),
        test_every: args.test_every,
        strict: args.data.strict,
    };
    console::catch_interrupts();
    let test = test.as_ref().map(|test| test as &dyn Samples<T>);
    let trained = train(learner.as_mut(), &samples, test, &schedule, progress, &mut watch);
    let (last, tested, notes) = (watch.last, watch.test.take(), watch.notes());
    drop(watch);
    let outcome = match trained {
        Ok(outcome) => outcome,
        Err(error) if ranks.is_first() => {
            return Err(rescued(error.into(), learner.as_ref(), last, out, &Attached { notes, ..attached }));
        }
        Err(error) => return Err(error.into()),
    };
    if ranks.is_first() {
        finish(args, learner.as_ref(), &outcome, tested, &attached, console)?;
    }
    Ok(())
}

/// Writes the model and reports; an interrupted run leaves a checkpoint and fails.
pub(crate) fn finish<T: Real>(
    args: &Learn,
    learner: &dyn Learner<T>,
    outcome: &Outcome,
    tested: Option<(usize, Evaluation)>,
    attached: &Attached,
    console: &Console,
) -> Result<()> {
    let out = out(args)?;
    let unfinished = matches!(outcome.ended, Ended::Stopped | Ended::TimeLimit);
    let keep_state = unfinished || args.checkpoint_every.is_some();
    checkpoint::save_attaching(out, learner, keep_state.then_some(&outcome.progress), attached)?;
    report(args, learner, outcome, tested, out, console)?;
    let progress = &outcome.progress;
    // Then nothing is left to learn: what was stopped is the evaluation.
    let is_learned = progress.of > 0 && progress.visited == progress.of && progress.pass + 1 == learner.config().passes;
    if unfinished {
        let what = if is_learned { "to evaluate the model" } else { "to go on" };
        console.say(format!("{what}: ocsc learn {} --resume {}", open::words(args), out.display()));
    }
    if outcome.ended == Ended::Stopped {
        let samples = counted(progress.samples, "sample");
        let when = if is_learned { "during the evaluation, " } else { "" };
        return Err(Interrupted(format!("interrupted {when}after {samples}; {} is a checkpoint", out.display())).into());
    }
    let tests = outcome.test.as_ref().map_or(0, |test| test.skipped);
    check_passed_over(progress.skipped, "visit", &args.data)?;
    check_passed_over(tests, "test sample", &args.data)
}

/// A run that fails, on a damaged image or a full disk, leaves a checkpoint of what it had learned.
pub(crate) fn rescued<T: Real>(
    error: Error,
    learner: &dyn Learner<T>,
    last: Option<Progress>,
    out: &Path,
    attached: &Attached,
) -> Error {
    match last.filter(|last| last.step == learner.step()) {
        Some(last) if checkpoint::save_attaching(out, learner, Some(&last), attached).is_ok() => {
            let samples = counted(last.samples, "sample");
            error.context(format!("stopped after {samples}; {} is a checkpoint", out.display()))
        }
        _ => error,
    }
}

/// When the run writes checkpoints.
pub(crate) fn checkpoints(args: &Learn, out: &Path, attached: &Attached) -> Checkpoints {
    Checkpoints::new(out, args.checkpoint_every.unwrap_or(CHECKPOINTS), attached.clone())
}

/// The model file to write.
pub(crate) fn out(args: &Learn) -> Result<&Path> {
    args.out.as_deref().or(args.resume.as_deref()).context("--out: expected a model file to write")
}

/// Takes model and log for this run, and looks whether they can be written: to be told before hours of work, not after.
fn locked(args: &Learn) -> Result<Vec<Lock>> {
    let (out, log) = (out(args)?, args.log.as_deref());
    spare_inputs(args, [])?;
    check_writable(out).context("--out")?;
    let mut locks = vec![Lock::take("--out", out)?];
    remove_leftovers(out);
    if let Some(log) = log {
        locks.push(Lock::take("--log", log)?);
        remove_leftovers(log);
    }
    spare_unfinished(args, out)?;
    Ok(locks)
}

/// Checks that no checkpoint of another run would be replaced, unless the call says so.
fn spare_unfinished(args: &Learn, out: &Path) -> Result<()> {
    if args.force || args.resume.as_deref().is_some_and(|resumed| is_same(resumed, out)) {
        return Ok(());
    }
    match checkpoint::peek(out) {
        Ok(Some((progress, config))) if progress.pass < config.passes => bail!(
            "--out {0}: expected a new file or a finished model, found the checkpoint of an unfinished run ({1} of {2}, \
             {3}); go on with it by --resume {0}, or replace it with --force",
            out.display(),
            progress.pass,
            counted(config.passes, "pass"),
            counted(progress.samples, "sample")
        ),
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("--out {}: cannot be read", out.display()))
        }
        _ => Ok(()),
    }
}

/// Checks that neither model nor log would be written over what the run reads, or over each other.
fn spare_inputs<'a>(args: &Learn, sources: impl IntoIterator<Item = &'a Source>) -> Result<()> {
    let (out, test) = (out(args)?, &args.test);
    let mut files = Outputs::default();
    sources.into_iter().for_each(|source| files.read("one of the data", source.files()));
    files.read("the mask", args.data.reading.mask.iter().map(|mask| split_pick(mask).0));
    let init = Some(&args.model.init).filter(|init| is_file(init));
    files.read("the dictionary of --init", init.map(|init| split_pick(Path::new(init)).0));
    files.read("the list of --test-list", &test.test_list);
    files.read("the file of --split", &test.split);
    files.read("the checkpoint of --resume", args.resume.as_ref().filter(|resumed| !is_same(resumed, out)));
    files.write("--out", out)?;
    args.log.as_ref().map_or(Ok(()), |log| files.write("--log", log).map(drop))
}

/// A learner that goes on from a checkpoint, where it was, and what was attached to it.
fn resumed<T: Real>(path: &Path, args: &Learn, ranks: &Ranks) -> Result<(Box<dyn Learner<T>>, Progress, Attached)> {
    let mut saved = ranks.load::<T>(path)?;
    if let Some(passes) = args.model.passes() {
        saved.config.passes = passes;
    }
    let (learner, progress) = saved.resume_with(|config, dictionary| ranks.member(config, dictionary))?;
    let (made, wanted) = (progress.pass, learner.config().passes);
    ensure!(
        made < wanted,
        "{}: expected passes left to make, found {made} of {} made; to go on, ask for more with --passes, e.g. --passes {}",
        path.display(),
        counted(wanted, "pass"),
        made + 1
    );
    Ok((learner, progress, saved.attached))
}

/// Refuses samples that could not even be read in the memory that the run may take.
fn ensure_reading(source: &Source, args: &Learn) -> Result<()> {
    let sizes = (0..source.len()).filter_map(|i| source.size(i).ok().zip(source.seen(i)));
    let numbers = |(size, channels): ([usize; 3], usize)| size.iter().fold(channels, |n, axis| n.saturating_mul(*axis));
    let largest = sizes.map(|(size, seen)| numbers((size, seen.channels))).max().unwrap_or(0);
    Ok(ocsc::memory::ensure_reading(largest, args.model.run().memory_limit)?)
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
    let (ratio, channels) = (args.model.run().beta_ratio, sample.shape().channels);
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
    Ok(survey_by(&Ranks::alone(), source, config, dictionary, false)?.1)
}

/// The same by all members, each of which looks at some; with the sizes of all samples.
fn survey_by<T: Real>(
    ranks: &Ranks,
    source: &Source,
    config: &Config,
    dictionary: &Dictionary<T>,
    strict: bool,
) -> Result<(Sizes, Survey)> {
    let filter = dictionary.shape();
    let sizes = open::sizes(ranks, source, filter, strict)?;
    let mut first: Option<(Shape, usize)> = None;
    let processes = ranks.comm().neighbours();
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
    ranks: &Ranks,
    test: &Source,
    config: &Config,
    dictionary: &Dictionary<T>,
    strict: bool,
) -> Result<Sizes> {
    let sizes = open::sizes(ranks, test, dictionary.shape(), strict).context("--test")?;
    let all: Vec<usize> = (0..test.len()).collect();
    let samples = Prepared::new(test, &config.preprocess);
    if ranks.is_first() {
        let (i, first) = first_usable::<T>(&samples, &all, strict).context("--test")?;
        dictionary.check_sample_shape(first.shape()).with_context(|| format!("--test {}", test.name(i)))?;
    }
    Ok(sizes)
}

fn report<T: Real>(
    args: &Learn,
    learner: &dyn Learner<T>,
    outcome: &Outcome,
    tested: Option<(usize, Evaluation)>,
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
            "peak_rss_bytes": crate::record::peak_rss_bytes(), "reseeded": progress.reseeded, "skipped": progress.skipped,
            "waiting_seconds": progress.waiting_seconds,
        });
        return console.result(result.to_string());
    }
    let mut rows = vec![
        ("model".to_owned(), out.display().to_string()),
        ("ended".to_owned(), ended.to_owned()),
        ("samples".to_owned(), format!("{} in {}", progress.samples, counted(progress.pass, "pass"))),
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
        rows.push(("skipped".to_owned(), format!("{} to unusable samples", counted(n, "visit"))));
    }
    if progress.reseeded > 0 {
        let replaced = format!("{} replaced by the worst-explained patches", progress.reseeded);
        rows.push(("unused filters".to_owned(), replaced));
    }
    match (&outcome.test, tested) {
        (Some(test), _) => rows.extend(crate::evaluate::rows(test)),
        (None, Some((samples, test))) => {
            let last = format!("objective {:.3} after {}", test.objective, counted(samples, "sample"));
            rows.push(("last test".to_owned(), last));
        }
        (None, None) => {}
    }
    if let Some(peak) = crate::record::peak_rss_bytes() {
        rows.push(("peak memory".to_owned(), bytes(peak)));
    }
    console.table(&rows)
}
