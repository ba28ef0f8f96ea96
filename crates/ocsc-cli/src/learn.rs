//! `ocsc learn`: learn a dictionary, or go on learning one.

use crate::args::Learn;
use crate::console::{self, Console, bytes};
use crate::data::{Axes, Source, SourceOptions};
use crate::model::{Prepared, preprocessing};
use crate::watch::{Log, Watch};
use anyhow::{Context, Error, Result, bail, ensure};
use ocsc::config::Dtype;
use ocsc::learner::coder;
use ocsc::statistics::{Lags, Spectral};
use ocsc::train::{Ended, Outcome, Progress, Schedule, train, visiting_order};
use ocsc::{Config, Dictionary, Method, Online, Real, Sample, Samples, Shape, checkpoint};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) fn run(args: &Learn, console: &Console) -> Result<()> {
    spare_inputs(args)?;
    checkpoint::check_writable(out(args)?).context("--out")?;
    let source = Source::open(&args.data.data, &args.data.options())?;
    let options = SourceOptions { limit: None, ..args.data.options() };
    let test = if args.test.is_empty() { None } else { Some(Source::open(&args.test, &options).context("--test")?) };
    let dtype = match &args.resume {
        Some(path) => checkpoint::load::<f32>(path)?.config.dtype,
        None => args.model.config(source.rank(), Default::default())?.dtype,
    };
    match dtype {
        Dtype::F32 => learn::<f32>(args, &source, test.as_ref(), console),
        Dtype::F64 => learn::<f64>(args, &source, test.as_ref(), console),
    }
}

fn learn<T: Real>(args: &Learn, source: &Source, test: Option<&Source>, console: &Console) -> Result<()> {
    let (mut learner, progress) = match &args.resume {
        Some(path) => resumed::<T>(path, args)?,
        None => (started::<T>(args, source, console)?, Progress::default()),
    };
    let out = out(args)?;
    let config = learner.config().clone();
    let samples = Prepared { source, preprocess: &config.preprocess };
    let test = test.map(|source| Prepared { source, preprocess: &config.preprocess });
    if config.passes > 0 {
        check_sizes::<T>(source, &config, learner.dictionary(), console)?;
        test.as_ref().map_or(Ok(()), |test| check_test(test, learner.dictionary()))?;
    }

    let log = args.log.as_ref().map(|path| Log::open(path, args.resume.as_ref().map(|_| &progress))).transpose()?;
    let total = config.passes.saturating_mul(source.len());
    let bar = console.progress("learning", total, progress.samples);
    let mut watch = Watch::new(bar, log, args.checkpoint_every.map(|every| (out.to_owned(), every)));
    let schedule = Schedule {
        stop_tol: args.stop_tol,
        // A limit beyond what a duration holds is no limit.
        time_limit: args.time_limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()),
        test_every: args.test_every,
    };
    console::catch_interrupts()?;
    let test = test.as_ref().map(|test| test as &dyn Samples<T>);
    let trained = train(&mut learner, &samples, test, &schedule, progress, &mut watch);
    let (last, reseeded) = (watch.last, watch.reseeded);
    drop(watch);
    let outcome = match trained {
        Ok(outcome) => outcome,
        Err(error) => return Err(rescued(error.into(), &learner, last, out)),
    };

    let unfinished = matches!(outcome.ended, Ended::Stopped | Ended::TimeLimit);
    let keep_state = unfinished || args.checkpoint_every.is_some();
    checkpoint::save(out, &learner, keep_state.then_some(&outcome.progress))?;
    report(args, &learner, &outcome, reseeded, out, console)?;
    if unfinished {
        console.say(format!("to go on: ocsc learn {} --resume {}", quoted(&args.data.data), out.display()));
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
fn rescued<T: Real>(error: Error, learner: &Online<T>, last: Option<Progress>, out: &Path) -> Error {
    match last.filter(|last| last.step == learner.step()) {
        Some(last) if checkpoint::save(out, learner, Some(&last)).is_ok() => {
            error.context(format!("stopped after {} samples; {} is a checkpoint", last.samples, out.display()))
        }
        _ => error,
    }
}

/// The model file to write.
fn out(args: &Learn) -> Result<&Path> {
    args.out.as_deref().or(args.resume.as_deref()).context("--out: expected a model file to write")
}

/// That neither model nor log would be written over the data, or over each other.
fn spare_inputs(args: &Learn) -> Result<()> {
    let place = |path: &Path| std::fs::canonicalize(path).ok();
    let (out, log) = (Some(out(args)?), args.log.as_deref());
    let inputs = || args.data.data.iter().chain(&args.test).map(PathBuf::as_path);
    for (option, path) in [("--out", out), ("--log", log)].into_iter().filter_map(|(o, p)| Some((o, p?))) {
        let taken = inputs().any(|input| place(input).is_some_and(|i| i.is_file() && Some(i) == place(path)));
        ensure!(!taken, "{option} {}: expected a new file, found one of the data", path.display());
    }
    ensure!(out != log, "--log {}: expected another file than the model's", log.unwrap_or(Path::new("")).display());
    Ok(())
}

/// A learner that goes on from a checkpoint.
fn resumed<T: Real>(path: &Path, args: &Learn) -> Result<(Online<T>, Progress)> {
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

/// A new learner.
fn started<T: Real>(args: &Learn, source: &Source, console: &Console) -> Result<Online<T>> {
    let mut config = args.model.config(source.rank(), preprocessing(&args.model.preprocess, source)?)?;
    config.passes = args.passes.unwrap_or(config.passes);
    let samples = Prepared { source, preprocess: &config.preprocess.clone() };
    let order = visiting_order(source.len(), config.seed, 0);
    let first = order[0];
    let sample: Sample<T> = samples.get(first)?;
    let shape = Shape::from_axes(sample.shape().channels, &config.filter_shape)?;
    let rank = config.filter_shape.len();
    let name = source.name(first);
    if !is_file(&args.model.init) {
        let fits = sample.shape().spatial().iter().zip(shape.spatial()).all(|(s, f)| *s >= f);
        ensure!(fits, "{name}: expected at least the filters' size {shape} (--size), found {}", sample.shape());
        let need = config.n_filters.saturating_mul(shape.len()).saturating_mul(size_of::<T>());
        ensure_memory("the filters", need)?;
    }
    let dictionary = match args.model.init.as_str() {
        "random" => Dictionary::random(config.n_filters, shape, rank, config.seed)?,
        "patches" => Dictionary::from_patches(config.n_filters, shape, rank, &samples, config.seed)?,
        file => from_file(Path::new(file), rank, console)?,
    };
    if let Some(ratio) = args.model.beta_ratio {
        let mut coder = coder(&config, &dictionary, config.tol)?;
        let (batch, mut beta_max) = (&order[..config.batch_size.min(order.len())], 0.0_f64);
        for &i in batch {
            beta_max = beta_max.max(coder.beta_max(&samples.get(i)?)?);
        }
        ensure!(beta_max > 0.0, "{name}: samples of zeros in the first batch; --beta-ratio needs others");
        config.beta = ratio * beta_max;
        let these = if batch.len() > 1 { format!("{name} and {} more", batch.len() - 1) } else { name };
        console.say(format!(
            "beta {} = {ratio} of {beta_max}, the smallest with all-zero codes, for {these}",
            config.beta
        ));
    }
    Ok(Online::with_dictionary(config, dictionary)?)
}

/// Whether `--init` names a file.
fn is_file(init: &str) -> bool {
    !matches!(init, "random" | "patches")
}

/// A dictionary from an array (K, C, axes...) or (K, axes...); filters of norm above 1 are scaled to 1.
fn from_file<T: Real>(path: &Path, rank: usize, console: &Console) -> Result<Dictionary<T>> {
    let axes = |channels: &str| -> Result<SourceOptions> {
        let axes: Axes = format!("N{channels}{}", &"DHW"[3 - rank..]).parse()?;
        Ok(SourceOptions { axes: Some(axes), limit: None })
    };
    let paths = [path.to_owned()];
    let source = Source::open(&paths, &axes("")?).or_else(|_| Source::open(&paths, &axes("C")?)).with_context(|| {
        format!("--init {}: expected random, patches, or an array (filters, {rank} axes) or (filters, channels, {rank} axes)", path.display())
    })?;
    let first: Sample<f64> = source.get(0)?;
    let (mut data, mut largest) = (Vec::new(), 0.0_f64);
    for k in 0..source.len() {
        let filter: Sample<f64> = source.get(k)?;
        let norm = filter.data().iter().map(|v| v * v).sum::<f64>().sqrt();
        largest = largest.max(norm);
        data.extend(filter.data().iter().map(|v| T::of(v / norm.max(1.0))));
    }
    if largest > 1.0 + 1e-4 {
        console.say(format!("{}: filters of norm above 1 (largest {largest:.3}) scaled to 1", path.display()));
    }
    Ok(Dictionary::new(source.len(), first.shape(), rank, data)?)
}

/// Whether all samples fit the filters and the method, and how much memory it will take: to be said before, not
/// after an hour.
fn check_sizes<T: Real>(source: &Source, config: &Config, dictionary: &Dictionary<T>, console: &Console) -> Result<()> {
    let samples = Prepared { source, preprocess: &config.preprocess };
    let first: Sample<T> = samples.get(0)?;
    let filter = dictionary.shape();
    let expected = source.size(0)?;
    let (mut one_size, mut largest) = (true, 0);
    for i in 0..source.len() {
        let [depth, height, width] = source.size(i)?;
        largest = largest.max(filter.channels * depth * height * width);
        let shape = Shape { channels: filter.channels, depth, height, width };
        dictionary.check_sample_shape(shape).with_context(|| source.name(i))?;
        one_size &= [depth, height, width] == expected;
        let [_, h0, w0] = expected;
        ensure!(
            one_size || config.method != Method::OcscPaper,
            "{}: expected {h0}x{w0} as {} has, found {height}x{width}: the statistics of `ocsc-paper` hold one sample \
             size; `--method ocsc` takes any",
            source.name(i),
            source.name(0)
        );
    }
    let statistics = match config.method {
        Method::Ocsc => Lags::<T>::bytes(config.n_filters, filter),
        Method::OcscPaper => Spectral::<T>::bytes(config.n_filters, first.shape()),
    };
    let working = config.batch_size.saturating_mul(largest).saturating_mul(per_number::<T>(config));
    let need = statistics.saturating_add(working).saturating_add(PROGRAM);
    console.say(format!(
        "{} samples of {}, {} filters of {}: needs about {}, of which the statistics take {}",
        source.len(),
        if one_size { first.shape().to_string() } else { "various sizes".to_owned() },
        config.n_filters,
        dictionary.shape(),
        bytes(need),
        bytes(statistics)
    ));
    ensure_memory("the statistics of so many filters, and a batch of samples of that size", need)
}

/// What the program takes by itself.
const PROGRAM: usize = 12_000_000;

/// Bytes of work memory for every number of a sample. The active set holds the sample, the residual, the residual in 8 bits,
/// and the atoms and candidates, which are the more the denser the code: photos at beta = 1 took 60 to 80 bytes in all.
/// The paper's coder holds two arrays of all filters' maps, its statistics three and its update two.
fn per_number<T: Real>(config: &Config) -> usize {
    match config.method {
        Method::Ocsc => 2 * size_of::<T>() + 72,
        Method::OcscPaper => 7 * size_of::<T>() * config.n_filters,
    }
}

/// That every test sample can be coded: else the first pass would be lost on the last one.
fn check_test<T: Real>(test: &Prepared<'_>, dictionary: &Dictionary<T>) -> Result<()> {
    for i in 0..test.source.len() {
        let [depth, height, width] = test.source.size(i).context("--test")?;
        let shape = Shape { depth, height, width, ..dictionary.shape() };
        dictionary.check_sample_shape(shape).with_context(|| format!("--test {}", test.source.name(i)))?;
    }
    let first: Sample<T> = test.get(0).context("--test")?;
    dictionary.check_sample_shape(first.shape()).with_context(|| format!("--test {}", test.source.name(0)))
}

/// That the system has so much memory to give, where it says.
fn ensure_memory(what: &str, need: usize) -> Result<()> {
    match available_memory().filter(|free| need > *free) {
        Some(free) => bail!("{what} need {}, {} are free: use fewer or smaller ones", bytes(need), bytes(free)),
        None => Ok(()),
    }
}

/// What the system could give, where it says.
fn available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
}

fn report<T: Real>(
    args: &Learn,
    learner: &Online<T>,
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
            "peak_rss_bytes": crate::record::peak_rss_bytes(), "reseeded": reseeded,
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

fn quoted(paths: &[PathBuf]) -> String {
    let quote = |path: &PathBuf| {
        let text = path.display().to_string();
        if text.contains(char::is_whitespace) { format!("'{text}'") } else { text }
    };
    paths.iter().map(quote).collect::<Vec<_>>().join(" ")
}
