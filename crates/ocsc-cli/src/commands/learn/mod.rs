//! `ocsc learn`: learn a dictionary, or go on learning one.

mod page;
mod stream;
mod warn;

use crate::args::{Every, Learn};
use crate::commands::evaluate::test_rows;
use crate::console::{self, Console, Interrupted, bytes, counted, told};
use crate::data::{Source, split_pick};
use crate::exit::{PassedOver, check_passed_over};
use crate::interrupt::say_at_once;
use crate::live;
use crate::ranks::Ranks;
use crate::run::begin::{advised, begin, is_file, new_config, say_beta, say_needs};
use crate::run::dataset::{self, ToLearn};
use crate::run::fingerprint;
use crate::run::lock::Lock;
use crate::run::log::{Log, Resumed};
use crate::run::model::{Prepared, check_masked, say_unsealed};
use crate::run::observer::{Checkpoints, Watch, words};
use crate::run::outputs::{Outputs, is_same};
use crate::run::pipe;
use anyhow::{Context, Error, Result, bail, ensure};
use ocsc::checkpoint::{Attached, Saved};
use ocsc::replace::{self, check_writable, remove_leftovers};
use ocsc::settings::Dtype;
use ocsc::train::{Ended, Evaluation, Outcome, Progress};
use ocsc::{Learner, Real, Samples, checkpoint};
use ocsc_live::Live;
use std::path::Path;
use std::time::Duration;

/// How often a run that did not ask for checkpoints gets one: nobody loses more than this to a power cut.
const CHECKPOINTS: Every = Every::Time(Duration::from_secs(600));

/// `ocsc learn`.
pub fn run(args: &Learn, ranks: &Ranks, console: &Console) -> Result<()> {
    // The parser gives up on this where other options conflict with --resume.
    ensure!(!args.other_data || args.resume.is_some(), "--other-data: expected --resume with it");
    if ranks.is_first() {
        say_at_once("interrupted before the first sample: nothing was learned");
    }
    let live = if ranks.is_first() { live::open(&args.live, console)? } else { None };
    let done = run_watched(args, ranks, live.as_ref(), console);
    live::leave(live, done.is_ok(), console);
    done
}

/// Learns, before the eyes of a live page.
fn run_watched(args: &Learn, ranks: &Ranks, live: Option<&Live>, console: &Console) -> Result<()> {
    let _locks = if ranks.is_first() { locked(args)? } else { Vec::new() };
    let resumed = args.resume.as_ref().map(|path| ranks.load::<f32>(path)).transpose()?;
    if let (Some(saved), Some(path)) = (&resumed, &args.resume) {
        say_unsealed(saved, path, console);
    }
    if pipe::is_wanted(&args.data)? {
        ensure!(!ranks.is_many(), "-: expected data that all ranks can read, found standard input");
        let test = dataset::for_stream(args)?;
        spare_inputs(args, test.iter())?;
        return match dtype(args, resumed.as_ref())? {
            Dtype::F32 => stream::learn::<f32>(args, test.as_ref(), live, console),
            Dtype::F64 => stream::learn::<f64>(args, test.as_ref(), live, console),
        };
    }
    let data = dataset::for_learning(args, resumed.as_ref(), console)?;
    let ToLearn { source, test, .. } = &data;
    if ranks.is_first() {
        spare_inputs(args, test.iter().chain([source]))?;
    }
    if let (Some(path), Some(test), true) = (&args.write_split, test, ranks.is_first()) {
        let names: String = (0..test.len()).map(|i| format!("{}\n", test.name(i))).collect();
        replace::write_file(path, names).with_context(|| format!("--write-split {}", path.display()))?;
    }
    ranks.check_same(source)?;
    test.as_ref().map_or(Ok(()), |test| ranks.check_same(test).context("--test"))?;
    match dtype(args, resumed.as_ref())? {
        Dtype::F32 => learn::<f32>(args, &data, ranks, live, console),
        Dtype::F64 => learn::<f64>(args, &data, ranks, live, console),
    }
}

/// What to compute in, for data with so many spatial axes.
fn dtype(args: &Learn, resumed: Option<&Saved<f32>>) -> Result<Dtype> {
    match resumed {
        Some(saved) => Ok(saved.config.dtype),
        None => args.model.dtype(),
    }
}

fn learn<T: Real>(args: &Learn, data: &ToLearn, ranks: &Ranks, live: Option<&Live>, console: &Console) -> Result<()> {
    let ToLearn { source, test, tile } = data;
    let saved = args.resume.as_ref().map(|path| resumable::<T>(path, args, ranks)).transpose()?;
    let config = match &saved {
        Some(saved) => saved.config.clone(),
        None => new_config(args, source)?,
    };
    check_masked(&config.preprocess, source.is_masked())?;
    ensure!(
        config.method.takes_masks() || !source.is_masked(),
        "--mask, --nan-is-missing: expected a method that takes masks (ocsc, ffcsc), found {}",
        config.method
    );
    let channels = match &saved {
        Some(saved) => Some(saved.dictionary.shape().channels),
        None => dataset::channels_of_init(args, source.rank())?,
    };
    let source = &dataset::alike(source, &config.preprocess, channels, ranks, console)?;
    let whole = &source.whole();
    if saved.is_none() && ranks.is_first() {
        // Before the first sample is read: its header says what that takes.
        ensure_reading(whole, args)?;
    }
    let learns = config.passes > 0;
    let filter = match &saved {
        Some(saved) => saved.dictionary.shape().spatial(),
        None => dataset::filter_size(args, source.rank())?,
    };
    let sizes = if learns { dataset::sizes(ranks, source, args.data.strict)? } else { Vec::new() };
    dataset::say_idle_crop(&args.data.reading, source, &sizes, console);
    let (source, sizes) = &dataset::without_small(source.clone(), sizes, filter, args.data.strict);
    let whole = &source.whole();
    let data = (learns && ranks.is_first()).then(|| fingerprint::of_set(args, &config, source, tile.as_ref(), sizes));
    let attached = Attached { samples: learns.then(|| whole.len()), data, ..Attached::default() };
    let recorded = saved.as_ref().map(|saved| saved.attached.clone()).unwrap_or_default();
    let samples = Prepared::new(source, &config.preprocess).sized(sizes);
    let whole = Prepared::new(whole, &config.preprocess);
    let run = ranks.run(begin(args, config.clone(), saved, source.rank(), console)?);
    let mut run = run.start_in_pieces(&samples, &whole).map_err(|error| advised(error, |i| source.reading(i)))?;
    say_beta(&run, console);
    say_needs(&run, console);
    if args.resume.is_some() {
        let (recorded, data) = (recorded.data.as_ref(), attached.data.as_ref());
        let progress = fingerprint::go_on(args, ranks, recorded, data, config.method, run.progress(), console)?;
        run.set_progress(progress);
    }
    let channels = Some(run.learner().dictionary().shape().channels);
    let test = test.as_ref().map(|test| dataset::alike(test, &config.preprocess, channels, ranks, console)).transpose();
    let test = test.context("--test")?;
    let test_sizes = match &test {
        Some(test) if learns => dataset::sizes(ranks, test, args.data.strict).context("--test")?,
        _ => Vec::new(),
    };
    let small = test.map(|test| dataset::without_small(test, test_sizes, filter, args.data.strict));
    let (test, test_sizes) = small.map_or((None, Vec::new()), |(test, sizes)| (Some(test), sizes));
    let tests = test.as_ref().map(|test| Prepared::new(test, &config.preprocess).sized(&test_sizes));
    if let Some((tests, source)) = tests.as_ref().zip(test.as_ref()).filter(|_| learns) {
        run.check_test(tests).map_err(|error| advised(error, |i| source.reading(i))).context("--test")?;
    }
    // The page draws the log's curves; without one, it is kept for as long as the run takes.
    let kept = match (&args.log, &args.report) {
        (None, Some(_)) if ranks.is_first() => {
            Some(tempfile::NamedTempFile::new().context("--report: a log for its curves")?)
        }
        _ => None,
    };
    if learns && ranks.is_first() {
        warn::of_few_updates(args, tile.is_some(), run.learner().config(), source.len(), console);
    }
    let log = args.log.as_deref().or(kept.as_ref().map(|log| log.path())).filter(|_| ranks.is_first());
    let log_path = log.map(Path::to_owned);
    let progress = run.progress();
    let resumed = args.resume.as_ref().map(|_| Resumed::new(&progress, &recorded.notes));
    let log = log.map(|path| Log::open(path, resumed)).transpose()?;
    let total = run.learner().config().passes.saturating_mul(source.len());
    let bar = console.progress("learning", total, progress.samples);
    let out = out(args)?;
    let mut watch = Watch::new(bar, log, ranks.is_first().then(|| checkpoints(args, out, &attached)));
    let camera = live.map(|live| page::camera(live, args, run.learner(), &progress, Some(total))).transpose()?;
    watch = watch.going_on(&progress, &recorded.notes).live(camera.map(|camera| camera.naming(|i| source.name(i))));
    console::catch_interrupts();
    let trained = run.train(&samples, tests.as_ref().map(|tests| tests as &dyn Samples<T>), &mut watch);
    let ended = watch.ended();
    if ranks.is_first() && trained.is_ok() {
        warn::of_sparsity(args, tile.is_some(), run.learner(), &ended.sparsity, &whole, console);
    }
    match trained {
        Ok(outcome) if ranks.is_first() => {
            let attached = Attached { notes: ended.notes, ..attached };
            let finished = finish(args, run.learner(), &outcome, ended.tested, &attached, console);
            let sets = page::Sets { samples: &whole, tile: tile.as_ref(), tests: tests.as_ref() };
            let page =
                log_path.as_ref().map_or(Ok(()), |log| page::write(args, log, run.learner(), &outcome, &sets, console));
            both(finished, page, console)
        }
        Ok(_) => Ok(()),
        Err(error) if ranks.is_first() => {
            let attached = Attached { notes: ended.notes, ..attached };
            Err(rescued(error.into(), run.learner(), ended.last, out, &attached))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns how a run ended whose model and whose page are two results, and tells what went wrong with the other.
fn both(model: Result<()>, page: Result<()>, console: &Console) -> Result<()> {
    match (model, page) {
        (model, Ok(())) => model,
        (Ok(()), page) => page,
        (Err(passed_over), page) if passed_over.is::<PassedOver>() => {
            console.say(told(&passed_over));
            page
        }
        (model, Err(page)) => {
            console.error(&page);
            model
        }
    }
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
        console.say(format!("{what}: {}", dataset::call_to_go_on(args, out)));
    }
    if outcome.ended == Ended::Stopped {
        let samples = counted(progress.samples, "sample");
        let when = if is_learned { "during the evaluation, " } else { "" };
        return Err(Interrupted(format!("interrupted {when}after {samples}; {} is a checkpoint", out.display())).into());
    }
    let tests = outcome.test.as_ref().map_or(0, |test| test.skipped);
    check_passed_over(n_unusable(progress), "sample", args.data.skip_bad)?;
    check_passed_over(tests, "test sample", args.data.skip_bad)
}

/// Returns how many samples could not be used. Checkpoints from before these were counted know only that there were some.
fn n_unusable(progress: &Progress) -> usize {
    progress.unusable.max(usize::from(progress.skipped > 0))
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

/// Takes model and log for this run, and looks whether they and the page can be written: to be told before hours of work, not after.
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
    for (option, file) in [("--report", &args.report), ("--write-split", &args.write_split)] {
        file.as_ref().map_or(Ok(()), |file| check_writable(file).context(option))?;
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
    let reading = &args.data.reading;
    for (what, file) in [
        ("the mask", &reading.mask),
        ("the data weights", &reading.data_weights),
        ("the weights of coefficients", &reading.coefficient_weights),
    ] {
        files.read(what, file.iter().map(|file| split_pick(file).0));
    }
    let init = Some(&args.model.init).filter(|init| is_file(init));
    files.read("the dictionary of --init", init.map(|init| split_pick(Path::new(init)).0));
    files.read("the list of --test-list", &test.test_list);
    files.read("the file of --split", &test.split);
    files.read("the checkpoint of --resume", args.resume.as_ref().filter(|resumed| !is_same(resumed, out)));
    files.write("--out", out)?;
    for (option, file) in [("--log", &args.log), ("--write-split", &args.write_split), ("--report", &args.report)] {
        file.as_ref().map_or(Ok(()), |file| files.write(option, file).map(drop))?;
    }
    Ok(())
}

/// Returns a checkpoint that has passes left to make.
fn resumable<T: Real>(path: &Path, args: &Learn, ranks: &Ranks) -> Result<Saved<T>> {
    let mut saved = ranks.load::<T>(path)?;
    if let Some(passes) = args.model.passes() {
        saved.config.passes = passes;
    }
    let (made, wanted) = (saved.progress.map_or(0, |progress| progress.pass), saved.config.passes);
    check_resumable(&saved, path)?;
    ensure!(
        made < wanted,
        "{}: expected passes left to make, found {made} of {} made; to go on, ask for more with --passes, e.g. --passes {}",
        path.display(),
        counted(wanted, "pass"),
        made + 1
    );
    Ok(saved)
}

/// Refuses a finished model, and says what would have made it a checkpoint.
pub(crate) fn check_resumable<T: Real>(saved: &Saved<T>, path: &Path) -> Result<()> {
    ensure!(
        saved.progress.is_some(),
        "{}: expected a checkpoint, as runs write that are not finished, found a finished model without statistics; a run with \
         --checkpoint-every keeps them",
        path.display()
    );
    Ok(())
}

/// Refuses samples that could not even be read in the memory that the run may take.
fn ensure_reading(source: &Source, args: &Learn) -> Result<()> {
    let sizes = (0..source.len()).filter_map(|i| source.size(i).ok().zip(source.seen(i)));
    let numbers = |(size, channels): ([usize; 3], usize)| size.iter().fold(channels, |n, axis| n.saturating_mul(*axis));
    let largest = sizes.map(|(size, seen)| numbers((size, seen.channels))).max().unwrap_or(0);
    Ok(ocsc::memory::ensure_reading(largest, args.model.run().memory_limit)?)
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
    let ended = words(outcome.ended);
    if args.json {
        let result = serde_json::json!({
            "model": out, "ended": ended, "samples": progress.samples, "steps": progress.step, "passes": progress.pass,
            "seconds": progress.seconds, "cpu_seconds": progress.cpu_seconds, "beta": config.beta, "test": outcome.test,
            "peak_rss_bytes": crate::run::record::peak_rss_bytes(), "reseeded": progress.reseeded, "skipped": n_unusable(progress),
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
        rows.push(("skipped".to_owned(), counted(n_unusable(progress), "unusable sample")));
    }
    if progress.reseeded > 0 {
        let replaced = format!("{} replaced by the worst-explained patches", progress.reseeded);
        rows.push(("unused filters".to_owned(), replaced));
    }
    match (&outcome.test, tested) {
        (Some(test), _) => rows.extend(test_rows(test)),
        (None, Some((samples, test))) => {
            let last = format!("objective {:.3} per sample, after {}", test.objective, counted(samples, "sample"));
            rows.push(("last test".to_owned(), last));
        }
        (None, None) => {}
    }
    if let Some(peak) = crate::run::record::peak_rss_bytes() {
        rows.push(("peak memory".to_owned(), bytes(peak)));
    }
    console.table(&rows)
}
