//! `ocsc demo`: the main job from end to end on built-in images, in under a minute.

use crate::args::Demo;
use crate::console::{self, Console, Interrupted, bytes, counted};
use crate::interrupt::UntilInterrupted;
use crate::live;
use crate::report::objective::objective_charts;
use crate::report::picture::dictionary_mosaic;
use crate::report::triplet::{HeldOut, triplets};
use crate::report::{Report, render};
use crate::run::folder::make_folder;
use crate::run::log::Log;
use crate::run::observer::Watch;
use crate::run::record::{peak_rss_bytes, read_records};
use crate::run::settings::obeyed;
use anyhow::{Context, Result, ensure};
use ocsc::comm::Solo;
use ocsc::dead_leaves::dead_leaves;
use ocsc::replace::write_file;
use ocsc::run::Run;
use ocsc::train::{Ended, Evaluation, Outcome, TEST_TOL, evaluate_by, refuse};
use ocsc::{Config, Sample, checkpoint};
use ocsc_live::{About, Camera, Live};

const TRAINING: u64 = 24;
const HELD_OUT: u64 = 4;
const SIDE: usize = 100;

pub(crate) fn run(args: &Demo, console: &Console) -> Result<()> {
    let live = live::open(&args.live, console)?;
    let done = run_watched(args, live.as_ref(), console);
    live::leave(live, done.is_ok(), console);
    done
}

/// The demonstration, before the eyes of a live page.
fn run_watched(args: &Demo, live: Option<&Live>, console: &Console) -> Result<()> {
    make_folder(&args.out)?;
    let config = Config { n_filters: args.filters, passes: args.passes, seed: args.seed, ..Config::paper() };
    console.say(format!(
        "making {} images of {SIDE}x{SIDE} (dead leaves), {HELD_OUT} of them held out",
        TRAINING + HELD_OUT
    ));
    let images = |range: std::ops::Range<u64>| range.map(|i| image(args.seed, i)).collect::<Result<Vec<_>>>();
    let prepared = |images: &[Sample<f64>]| images.iter().map(|i| prepared(i, &config)).collect::<Result<Vec<_>>>();
    let originals = images(TRAINING..TRAINING + HELD_OUT)?;
    let (samples, held_out) = (prepared(&images(0..TRAINING)?)?, prepared(&originals)?);

    let mut run = Run::new(config.clone()).test_every(Some(6)).start(&samples)?;
    console::catch_interrupts();
    let evaluate = |d| evaluate_by(&Solo, &config, d, &held_out, TEST_TOL, &UntilInterrupted, &mut refuse);
    let before = evaluate(run.learner().dictionary()).map_err(|error| match error {
        ocsc::Error::Stopped => Interrupted("interrupted before anything was learned".to_owned()).into(),
        error => anyhow::Error::from(error),
    })?;
    console.say(format!("learning {} of 11x11 in {}", counted(args.filters, "filter"), counted(args.passes, "pass")));
    let log = args.out.join("run.jsonl");
    let total = args.passes.saturating_mul(samples.len());
    let bar = console.progress("learning", total, 0);
    let camera = live.map(|live| -> Result<Camera<'_>> {
        let title = format!("Learning {} from dead leaves", counted(args.filters, "filter"));
        let about = About { title, rows: obeyed(&config)? };
        Ok(live.camera(about, 0, Some(total), Some(args.passes)).naming(|i| format!("image {}", i + 1)))
    });
    let mut watch = Watch::new(bar, Some(Log::open(&log, None)?), None).live(camera.transpose()?);
    let outcome = run.train(&samples, Some(&held_out), &mut watch)?;
    drop(watch);
    let learner = run.learner();
    let after = match &outcome.test {
        Some(test) => test.clone(),
        // Interrupted: the report covers what was learned so far, and four images are soon evaluated.
        None => ocsc::train::evaluate(&config, learner.dictionary(), &held_out, TEST_TOL, &mut refuse)?,
    };

    checkpoint::save(&args.out.join("model.safetensors"), learner, None)?;
    let mosaic = dictionary_mosaic(learner.dictionary());
    mosaic.save_png(&args.out.join("dictionary.png"))?;
    let summary = summary(&before, &after, &outcome, samples.len());
    let report = Report {
        title: "A dictionary learned from dead leaves".to_owned(),
        lead: format!(
            "{} of 11x11, learned online from {}, and tested on {} it has never seen. Every number below comes from this run.",
            counted(args.filters, "filter"),
            counted(outcome.progress.samples, "image"),
            counted(held_out.len(), "image")
        ),
        summary: summary.clone(),
        given: given(args),
        settings: obeyed(&config)?,
        dictionary_png: mosaic.png_bytes()?,
        charts: objective_charts(&read_records(&log)?, None),
        triplets: triplets(&config, learner.dictionary(), named(&held_out, originals, &config)?, after.psnr_peak)?,
        are_learned: false,
        restored: Vec::new(),
        sections: Vec::new(),
        command: command(args),
    };
    let page = args.out.join("report.html");
    let html = render(&report)?;
    write_file(&page, html).with_context(|| page.display().to_string())?;
    console.table(&summary)?;
    console.result(format!("\nopen {}", page.display()))?;
    let interrupted = || Interrupted("interrupted: the report covers what was learned so far".to_owned());
    ensure!(outcome.ended != Ended::Stopped, interrupted());
    Ok(())
}

/// Built-in image `index`.
fn image(seed: u64, index: u64) -> Result<Sample<f64>> {
    // Seeds far apart, so that runs with neighbouring seeds share no images.
    dead_leaves(seed.wrapping_mul(1_000_003).wrapping_add(index), SIDE, SIDE).context("no image")
}

/// An image preprocessed as photos are in the paper.
fn prepared(image: &Sample<f64>, config: &Config) -> Result<Sample<f32>> {
    let sample = config.preprocess.apply(image.clone())?;
    Ok(Sample::new(sample.shape(), sample.data().iter().map(|v| *v as f32).collect())?)
}

fn summary(before: &Evaluation, after: &Evaluation, outcome: &Outcome, n_samples: usize) -> Vec<(String, String)> {
    let coefficients = (SIDE * SIDE) as f64;
    let mut rows = vec![
        (
            "learned from".to_owned(),
            format!("{} of {n_samples} images in {:.1} s", outcome.progress.samples, outcome.progress.seconds),
        ),
        (
            "held-out objective".to_owned(),
            format!("{:.1} with the random start, {:.1} learned", before.objective, after.objective),
        ),
        (
            "held-out PSNR".to_owned(),
            format!(
                "{:.2} dB with the random start, {:.2} dB learned (peak {:.2}: the images' range)",
                before.psnr, after.psnr, after.psnr_peak
            ),
        ),
        (
            "non-zeros".to_owned(),
            format!("{:.0} per image, {:.1} % of its pixels", after.nonzeros, 100.0 * after.nonzeros / coefficients),
        ),
        ("certified".to_owned(), format!("every code within {:.2} % of its optimum", 100.0 * after.gap)),
    ];
    if let Some(peak) = peak_rss_bytes() {
        rows.push(("peak memory".to_owned(), bytes(peak)));
    }
    rows
}

fn named(images: &[Sample<f32>], originals: Vec<Sample<f64>>, config: &Config) -> Result<Vec<HeldOut<f32>>> {
    let named = |(i, (image, original)): (usize, (&Sample<f32>, Sample<f64>))| {
        let original = config.preprocess.original(original)?;
        let (_, undo) = config.preprocess.apply_undoable(original.clone())?;
        Ok(HeldOut { name: format!("Held-out image {}", i + 1), sample: image.clone(), original: (original, undo) })
    };
    images.iter().zip(originals).enumerate().map(named).collect()
}

/// What it learns from, and the options that there are.
fn given(args: &Demo) -> Vec<(String, String)> {
    let images = counted(TRAINING as usize + HELD_OUT as usize, "image");
    let data = format!("{images} of {SIDE}x{SIDE} (dead leaves), {HELD_OUT} of them held out");
    vec![("data".to_owned(), data), ("settings".to_owned(), options(args))]
}

fn options(args: &Demo) -> String {
    format!("--filters {} --passes {} --seed {}", args.filters, args.passes, args.seed)
}

fn command(args: &Demo) -> String {
    format!("ocsc demo {} --out {}", options(args), args.out.display())
}
