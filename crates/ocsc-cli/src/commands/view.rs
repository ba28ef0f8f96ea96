//! `ocsc view`: a log, a model or codes on the live page, without any learning.

use crate::args::View;
use crate::commands::info::sentence;
use crate::console::{Console, counted};
use crate::data::codes;
use crate::interrupt::wait_for_it;
use crate::run::folder::code_files;
use crate::run::model;
use crate::run::outputs::Outputs;
use crate::run::record::{Event, Record, read_records};
use crate::run::settings::obeyed;
use anyhow::{Context, Result, bail, ensure};
use ocsc::checkpoint::Saved;
use ocsc::replace::write_file;
use ocsc_live::{CodeRow, Curve, Frame, Live, Now, SampleView, TestPoint, draw_filters, draw_sample};
use std::path::{Path, PathBuf};

/// The most codes that are put together again.
const SHOWN: usize = 4;
/// The most codes in the table.
const LISTED: usize = 500;

pub(crate) fn run(args: &View, console: &Console) -> Result<()> {
    let mut outputs = Outputs::default();
    outputs.read("one of the files", args.files.iter().filter(|path| path.is_file()));
    if let Some(out) = &args.out {
        let is_html = out.extension().is_some_and(|e| e.eq_ignore_ascii_case("html"));
        ensure!(is_html, "--out {}: expected a name ending in .html", out.display());
        outputs.write("--out", out)?;
    }
    let frame = frame(&args.files, console)?;
    if let Some(out) = &args.out {
        let page = ocsc_live::written(&frame).context("cannot make the page")?;
        write_file(out, page).with_context(|| format!("--out {}", out.display()))?;
        return console.result(format!("open {}", out.display()));
    }
    let live = Live::of_files(&args.listen(), frame).context("cannot serve the page")?;
    console.result(format!("open {} (until Ctrl-C)", live.url()))?;
    wait_for_it();
    live.close();
    Ok(())
}

/// What a file is.
enum Kind {
    Log,
    Codes,
    Model,
}

fn kind(path: &Path) -> Result<Kind> {
    std::fs::metadata(path).with_context(|| path.display().to_string())?;
    let ending = path.extension().map(|e| e.to_ascii_lowercase());
    Ok(match ending.as_ref().and_then(|e| e.to_str()) {
        _ if path.is_dir() => Kind::Codes,
        Some("jsonl") => Kind::Log,
        Some("npz") => Kind::Codes,
        _ => Kind::Model,
    })
}

/// Returns all that there is to see in these files.
fn frame(paths: &[PathBuf], console: &Console) -> Result<Frame> {
    let (mut log, mut code_paths, mut saved) = (None, Vec::new(), None);
    for path in paths {
        match kind(path)? {
            Kind::Log if log.is_none() => log = Some(path),
            Kind::Model if saved.is_none() => saved = Some((path, model::load::<f64>(path, console)?)),
            Kind::Codes if path.is_dir() => code_paths.extend(code_files(path)?),
            Kind::Codes => code_paths.push(path.clone()),
            Kind::Log => bail!("{}: expected one log; `ocsc report` makes a page of several", path.display()),
            Kind::Model => bail!("{}: expected one model, found a second one", path.display()),
        }
    }
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut frame = Frame::default();
    frame.about.title = names.join(", ");
    if let Some(path) = log {
        add_log(&mut frame, &read_records(path)?).with_context(|| path.display().to_string())?;
    }
    let codes = Codes::read(&code_paths, saved.as_ref().map(|(_, saved)| saved), console)?;
    if let Some((path, saved)) = &saved {
        frame.about.title = sentence(saved);
        frame.about.rows = vec![("file".to_owned(), path.display().to_string())];
        frame.about.rows.extend(obeyed(&saved.config)?);
        frame.filters = Some(draw_filters(&saved.dictionary, &codes.used));
    }
    Ok(Frame { codes: codes.rows, samples: codes.samples, used: codes.used, ..frame })
}

/// Adds the curves of a log, and where it ends.
fn add_log(frame: &mut Frame, records: &[Record]) -> Result<()> {
    let last = records.last().context("expected records of a run, found none")?;
    // Batch methods may report passes alone.
    let has_steps = records.iter().any(|record| record.event == Event::Step && record.objective.is_some());
    let counted = if has_steps { Event::Step } else { Event::Pass };
    let mut curve = Curve::default();
    for record in records.iter().filter(|record| record.event == counted) {
        if let Some(objective) = record.objective {
            curve.push(record.samples as usize, record.seconds, objective, record.gap.unwrap_or(0.0));
        }
    }
    frame.train = curve.points();
    for record in records {
        let (at, objective) = (record.samples as f64, record.test_objective.filter(|objective| objective.is_finite()));
        if let Some(objective) = objective.filter(|_| frame.test.last().is_none_or(|test| test.0 != at)) {
            frame.test.push(TestPoint(at, record.seconds, objective, record.test_psnr));
        }
    }
    let newest = |value: fn(&Record) -> Option<f64>| records.iter().rev().find_map(value);
    let seconds = last.seconds + last.waiting_seconds.unwrap_or(0.0);
    frame.now = Some(Now {
        pass: last.pass as usize,
        samples: last.samples as usize,
        step: last.step as usize,
        seconds: last.seconds,
        rate: (seconds > 0.0).then(|| last.samples as f64 / seconds),
        objective: newest(|r| r.objective.filter(|_| r.event == Event::Step)).or(newest(|r| r.objective)),
        gap: newest(|r| r.gap),
        worst_gap: newest(|r| r.gap.filter(|_| r.event == Event::Pass)).or(newest(|r| r.gap)),
        nonzeros: newest(|r| r.nonzeros),
        share: newest(|r| r.nonzeros_share),
        change: newest(|r| r.dictionary_change),
        skipped: last.unusable.or(last.skipped).unwrap_or(0) as usize,
        peak_memory: last.peak_rss_bytes,
        ..Now::default()
    });
    let is_whole = last.event == Event::End;
    frame.ended = Some(if is_whole { "the run is over" } else { "the log has no end" }.to_owned());
    Ok(())
}

/// What is shown of codes.
#[derive(Default)]
struct Codes {
    rows: Vec<CodeRow>,
    samples: Vec<SampleView>,
    /// Non-zeros of each filter in a code, a mean.
    used: Vec<f64>,
}

impl Codes {
    /// Reads codes, and puts the first of them together with the filters of their model, if it is known.
    fn read(paths: &[PathBuf], saved: Option<&Saved<f64>>, console: &Console) -> Result<Codes> {
        let mut all = Codes::default();
        for path in paths {
            let here = || path.display().to_string();
            let ((code, _), facts) = (codes::read_code::<f64>(path)?, codes::read_facts(path)?);
            let n = code.n_filters();
            if all.used.is_empty() {
                all.used = vec![0.0; n];
            }
            ensure!(n == all.used.len(), "{}: expected a code of {} filters, found {n}", here(), all.used.len());
            code.atoms().iter().for_each(|atom| all.used[atom.filter as usize] += 1.0 / paths.len() as f64);
            let name = path.file_stem().unwrap_or_default().display().to_string();
            if let Some(saved) = saved {
                let made_by = facts.model.as_ref().filter(|made_by| **made_by != saved.dictionary_checksum);
                ensure!(made_by.is_none(), "{}: expected a code of this model, found one of another", here());
                if all.samples.len() < SHOWN {
                    let own = codes::read_filters(path, &saved.dictionary)?;
                    let filters = own.as_ref().unwrap_or(&saved.dictionary);
                    let back = code.reconstruct(filters, saved.config.boundary).with_context(here)?;
                    let view = draw_sample(name.clone(), None, &back);
                    let (gap, objective) = (facts.gap, facts.objective);
                    all.samples.push(SampleView { nonzeros: code.nonzeros(), gap, objective, ..view });
                }
            }
            if all.rows.len() < LISTED {
                let (nonzeros, l1) = (code.nonzeros(), code.l1());
                all.rows.push(CodeRow { name, nonzeros, l1, objective: facts.objective, gap: facts.gap });
            }
        }
        if paths.len() > LISTED {
            console.say(format!("{}: the page lists the first {LISTED}", counted(paths.len(), "code")));
        }
        Ok(all)
    }
}
