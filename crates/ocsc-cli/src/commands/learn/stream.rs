//! `ocsc learn -`: learning from frames of standard input.

use super::{check_resumable, checkpoints, finish, out, page, rescued};
use crate::args::Learn;
use crate::console::{self, Console, Interrupted};
use crate::data::Source;
use crate::ranks::Ranks;
use crate::run::begin::{advised, begin, say_beta};
use crate::run::log::{Log, Resumed};
use crate::run::model::{Prepared, preprocessing_of};
use crate::run::observer::Watch;
use crate::run::pipe::{FrameReader, FrameStream, is_masked};
use crate::run::{dataset, fingerprint, sparsity};
use anyhow::{Context, Result, anyhow, ensure};
use ocsc::checkpoint::Attached;
use ocsc::train::Begun;
use ocsc::{Real, Samples, checkpoint};
use ocsc_live::Live;
use std::path::PathBuf;

/// `ocsc learn -`.
pub(crate) fn learn<T: Real>(
    args: &Learn,
    test: Option<&Source>,
    live: Option<&Live>,
    console: &Console,
) -> Result<()> {
    let once = "standard input can be read once";
    ensure!(args.model.passes().is_none_or(|passes| passes == 1), "--passes: expected 1, as {once}");
    ensure!(args.model.run().stop_tol.is_none(), "--stop-tol compares passes, but {once}");
    let attached = Attached { data: Some(fingerprint::of_stream(args)), ..Attached::default() };
    let load = |path: &PathBuf| -> Result<_> {
        let saved = checkpoint::load::<T>(path)?;
        check_resumable(&saved, path).map(|()| saved)
    };
    let saved = args.resume.as_ref().map(load).transpose()?;
    let config = match &saved {
        Some(saved) => saved.config.clone(),
        None => {
            let steps = preprocessing_of(args.model.preprocess(), true, is_masked(&args.data))?;
            args.model.config(2, steps, false)?
        }
    };
    ensure!(!config.method.is_batch(), "--method {}: expected one that learns online, as {once}", config.method);
    let recorded = saved.as_ref().map(|saved| saved.attached.clone()).unwrap_or_default();
    let frames = FrameReader::<T>::start(&args.data, &config.preprocess)?;
    console::catch_interrupts();
    let mut frames = Begun::new(FrameStream { frames, console, raised: None }, config.batch_size)
        .map_err(|error| anyhow!("{error}"))?;
    if frames.first().is_empty() {
        return Err(Interrupted("stdin: interrupted before the first frame; nothing was written".to_owned()).into());
    }
    let run = begin(args, config.clone(), saved, 2, console)?.strict(true).start(&frames.first());
    let mut run = run.map_err(|error| advised(error, |_| None))?;
    say_beta(&run, console);
    if args.resume.is_some() {
        let (ranks, recorded, now) = (Ranks::alone(), recorded.data.as_ref(), attached.data.as_ref());
        let progress = fingerprint::go_on(args, &ranks, recorded, now, config.method, run.progress(), console)?;
        run.set_progress(progress);
    }
    let (channels, ranks) = (Some(run.learner().dictionary().shape().channels), &Ranks::alone());
    let test = test.map(|test| dataset::alike(test, &config.preprocess, channels, ranks, console)).transpose()?;
    let test_sizes = test.as_ref().map(|test| dataset::sizes(ranks, test, args.data.strict)).transpose();
    let test_sizes = test_sizes.context("--test")?.unwrap_or_default();
    let tests = test.as_ref().map(|test| Prepared::new(test, &config.preprocess).sized(&test_sizes));
    if let Some((tests, source)) = tests.as_ref().zip(test.as_ref()) {
        run.check_test(tests).map_err(|error| advised(error, |i| source.reading(i))).context("--test")?;
    }
    let begun = run.progress();
    let resumed = args.resume.as_ref().map(|_| Resumed::new(&begun, &recorded.notes));
    let log = args.log.as_ref().map(|path| Log::open(path, resumed)).transpose()?;
    let total = args.data.limit.map(|limit| begun.samples + limit);
    let bar = console.progress("learning", total, begun.samples);
    let out = out(args)?;
    let mut watch = Watch::new(bar, log, Some(checkpoints(args, out, &attached))).going_on(&begun, &recorded.notes);
    watch = watch.live(live.map(|live| page::camera(live, args, run.learner(), &begun, total)).transpose()?);
    let tests = tests.as_ref().map(|tests| tests as &dyn Samples<T>);
    let trained = run.train_stream(1, &mut frames, tests, &mut watch);
    let ended = watch.ended();
    match trained {
        Ok(outcome) => {
            sparsity::warn(&ended.sparsity, run.learner().config().beta, || None, console);
            let attached = Attached { notes: ended.notes, ..attached };
            finish(args, run.learner(), &outcome, ended.tested, &attached, console)
        }
        Err(error) => {
            let error = frames.rest.raised.unwrap_or_else(|| error.into());
            let attached = Attached { notes: ended.notes, ..attached };
            Err(rescued(error, run.learner(), ended.last.or(Some(begun)), out, &attached))
        }
    }
}
