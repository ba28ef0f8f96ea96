//! `ocsc verify`: whether codes are worth what their files say, and whether a model file is whole.

use crate::args::Verify;
use crate::console::{self, Console, Interrupted, counted, share, told};
use crate::data::{Facts, Source, channels_before, codes, with_problem};
use crate::run::folder::code_files;
use crate::run::model::{Prepared, check_masked};
use crate::run::pairing::pair;
use anyhow::{Result, bail, ensure};
use ocsc::checkpoint::{self, Saved};
use ocsc::preprocess::Preprocess;
use ocsc::settings::{CoderKind, Dtype};
use ocsc::verify::{Problem, Verified};
use ocsc::{Code, Loss, Real, Sample, Samples};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is found out about one code.
#[derive(Default, Serialize)]
struct Finding {
    file: PathBuf,
    source: Option<String>,
    pass: bool,
    objective: Option<f64>,
    claimed_objective: Option<f64>,
    gap: Option<f64>,
    claimed_gap: Option<f64>,
    /// The reason why it fails.
    why: Option<String>,
}

/// `ocsc verify`.
pub(crate) fn run(args: &Verify, console: &Console) -> Result<()> {
    match &args.paths[..] {
        [] => model(args, console),
        [only] => bail!("{}: expected data and a folder of codes, or neither", only.display()),
        [data @ .., folder] => all_codes(args, data, folder, console),
    }
}

/// Checks a model file by itself.
fn model(args: &Verify, console: &Console) -> Result<()> {
    let saved = checkpoint::load::<f64>(&args.model)?;
    // Its statistics are checked by taking them over.
    let state = match (saved.is_checkpoint(), saved.config.dtype) {
        (false, _) => "none: a finished model",
        (true, Dtype::F32) => checkpoint::load::<f32>(&args.model)?.resume().map(|_| "possible")?,
        (true, Dtype::F64) => saved.resume().map(|_| "possible")?,
    };
    let largest = saved.dictionary.norms().into_iter().fold(0.0, f64::max);
    let model = args.model.display();
    ensure!(largest <= 1.0 + 1e-6, "{model}: expected filters of norm at most 1, found {largest}");
    if args.json {
        let result = serde_json::json!({
            "pass": true, "checksum": saved.checksum, "dictionary_checksum": saved.dictionary_checksum,
            "largest_norm": largest, "checkpoint": saved.is_checkpoint(),
        });
        return console.result(result.to_string());
    }
    let checksum = match &saved.checksum {
        Some(checksum) => format!("holds ({}...)", &checksum[..16]),
        None => "none: written before there were any, or elsewhere".to_owned(),
    };
    console.table(&[
        ("model".to_owned(), model.to_string()),
        ("checksum".to_owned(), checksum),
        ("largest norm".to_owned(), largest.to_string()),
        ("statistics".to_owned(), state.to_owned()),
        ("verified".to_owned(), "pass".to_owned()),
    ])
}

fn all_codes(args: &Verify, data: &[PathBuf], folder: &Path, console: &Console) -> Result<()> {
    let saved = crate::run::model::load::<f64>(&args.model, console)?;
    let channels = channels_before(&saved.config.preprocess, saved.dictionary.shape().channels);
    let source = Source::open(data, &args.reading.options(0).like_learned(&saved.config))?.of_channels(channels);
    let paths = code_files(folder)?;
    let facts = paths.iter().map(|path| codes::read_facts(path).unwrap_or_default()).collect::<Vec<_>>();
    let pairs = pair(&source, &paths, &facts)?;
    console::catch_interrupts();
    let mut bar = console.progress("verifying", paths.len(), 0);
    let mut findings = Vec::new();
    for ((path, facts), index) in paths.iter().zip(&facts).zip(pairs) {
        let checked = Checked { saved: &saved, args, source: &source, index, path, facts };
        let finding = checked.finding();
        bar.advance(1, finding.why.as_deref().unwrap_or("pass"));
        findings.push(finding);
        if console::interrupted() {
            let done = findings.len();
            return Err(Interrupted(format!("interrupted after {done} of {}", counted(paths.len(), "code"))).into());
        }
    }
    drop(bar);
    let failed = findings.iter().filter(|finding| !finding.pass).count();
    report(&findings, failed, args, console)?;
    ensure!(failed == 0, "{} not what the file says", share(failed, findings.len(), "code", ["is", "are"]));
    Ok(())
}

fn report(findings: &[Finding], failed: usize, args: &Verify, console: &Console) -> Result<()> {
    let worst = findings.iter().filter_map(|finding| finding.gap).fold(0.0, f64::max);
    if args.json {
        let result = serde_json::json!({
            "pass": failed == 0, "samples": findings.len(), "failed": failed, "gap": worst, "files": findings,
        });
        return console.result(result.to_string());
    }
    let mut lines = Vec::new();
    for finding in findings {
        let file = finding.file.display();
        let number = |n: Option<f64>| n.map_or("none".to_owned(), |n| format!("{n:.6}"));
        let percent = |n: Option<f64>| n.map_or("none".to_owned(), |n| format!("{:.4} %", 100.0 * n));
        lines.push(match &finding.why {
            Some(why) => format!("FAIL  {file}: {why}"),
            None => format!(
                "pass  {file}: objective {} (file: {}), gap {} (file: {})",
                number(finding.objective),
                number(finding.claimed_objective),
                percent(finding.gap),
                percent(finding.claimed_gap)
            ),
        });
    }
    let passed = findings.len() - failed;
    lines.push(format!(
        "{}; worst gap {:.4} %",
        share(passed, findings.len(), "code", ["passes", "pass"]),
        100.0 * worst
    ));
    console.result(lines.join("\n"))
}

/// A code, what its file says, and the sample that it was made of.
struct Checked<'a> {
    saved: &'a Saved<f64>,
    args: &'a Verify,
    source: &'a Source,
    index: usize,
    path: &'a Path,
    facts: &'a Facts,
}

impl Checked<'_> {
    fn finding(&self) -> Finding {
        let mut finding = Finding {
            file: self.path.to_owned(),
            source: Some(self.source.name(self.index)),
            claimed_objective: self.facts.objective,
            claimed_gap: self.facts.gap,
            ..Finding::default()
        };
        match self.check(&mut finding) {
            Ok(()) => finding.pass = true,
            Err(why) => finding.why = Some(told(&why)),
        }
        finding
    }

    /// Refuses a code that is not what its file says.
    fn check(&self, finding: &mut Finding) -> Result<()> {
        // Once more, for the reason if it cannot be read.
        codes::read_facts(self.path)?;
        let (code, _) = codes::read_code::<f64>(self.path)?;
        let (facts, saved) = (self.facts, self.saved);
        if let Some(model) = facts.model.as_ref().filter(|model| **model != saved.dictionary_checksum) {
            let short = |text: &str| text.chars().take(8).collect::<String>();
            bail!(
                "made with another dictionary ({}..., the model's is {}...)",
                short(model),
                short(&saved.dictionary_checksum)
            );
        }
        let boundary = saved.config.boundary.to_string();
        if let Some(other) = facts.boundary.as_ref().filter(|other| **other != boundary) {
            bail!("made with the boundary {other}, the model's is {boundary}");
        }
        if let Some(masked) = facts.masked.filter(|masked| *masked != self.source.is_masked()) {
            let with = |masked: bool| if masked { "with unobserved values" } else { "without a mask" };
            bail!("coded {}, and the data are named {}", with(masked), with(!masked));
        }
        let single = codes::is_single(self.path)?;
        let sample = if single { self.sample::<f32>()? } else { self.sample::<f64>()? };
        if let Some(claimed) = facts.energy {
            let energy = sample.energy();
            let same = (claimed - energy).abs() <= 1e-12 * energy;
            ensure!(same, "the energy of the sample is {energy}, the file says {claimed}");
        }
        let beta = facts.beta.filter(|beta| *beta > 0.0).unwrap_or(saved.config.beta);
        let config = with_problem(&saved.config, facts.problem.as_deref())?;
        let own = codes::read_filters(self.path, &saved.dictionary)?;
        let problem = Problem::new(&config, own.as_ref().unwrap_or(&saved.dictionary), beta);
        let mut found = problem.verify(&sample, &code)?;
        let wants = &config.active_set;
        if wants.coder == CoderKind::Omp {
            // It pays for the number of its atoms alone, and proves nothing.
            (found.objective, found.dual) = (found.data_term, 0.0);
        }
        (finding.objective, finding.gap) = (Some(found.objective), Some(found.gap()));
        // What a refitted code was proven by, and the smoothing of the modulus, are not in its file.
        let is_repeatable = !wants.refit && wants.loss != Loss::L1;
        let bound = |gap| match wants.penalty.is_convex() {
            true => Ok(problem.bound(&sample, &code, gap)?),
            false => Ok((found.dual, found.objective)),
        };
        // Of a concave penalty the coder may claim a larger gap than can be shown, never a smaller one.
        let is_tight = is_repeatable && wants.penalty.is_convex();
        finding.gap = Some(self.check_claims(&found, single, [is_tight, is_repeatable], bound)?);
        self.check_unchanged(&code)
    }

    /// The sample as the coder saw it: prepared as the code says, in the coder's scalar.
    fn sample<T: Real>(&self) -> Result<Sample<f64>> {
        let recorded = self.facts.preprocess.as_ref().map(|steps| steps.parse::<Preprocess>()).transpose()?;
        let given = self.args.preprocess.clone().or(recorded);
        let preprocess = given.as_ref().unwrap_or(&self.saved.config.preprocess);
        check_masked(preprocess, self.source.is_masked())?;
        let sample: Sample<T> = Prepared::new(self.source, preprocess).get(self.index)?;
        Ok(sample.cast()?)
    }

    /// Refuses claims that cannot be shown; returns the smallest gap that was.
    fn check_claims(
        &self,
        found: &Verified,
        single: bool,
        [is_tight, is_repeatable]: [bool; 2],
        bound: impl FnOnce(f64) -> Result<(f64, f64)>,
    ) -> Result<f64> {
        let (rounding, loose) = if single { (64.0 * f64::from(f32::EPSILON), 1e-3) } else { (1e-11, 1e-6) };
        if let Some(claimed) = self.facts.objective {
            // The residual is rounded relative to the sample.
            let slack = rounding * (found.objective + found.norm * (2.0 * found.data_term).sqrt());
            let same = (claimed - found.objective).abs() <= slack;
            ensure!(same, "the objective is {}, the file says {claimed}", found.objective);
        }
        let gap = found.gap();
        let Some(claimed) = self.facts.gap else { return Ok(gap) };
        ensure!(claimed.is_finite() && claimed >= 0.0, "the file says a gap of {claimed}");
        ensure!(!is_tight || claimed <= 1.05 * gap + loose, "the gap is {gap:.3e}, the file says {claimed:.3e}");
        let slack = rounding * (1.0 + found.norm * found.norm / found.objective.max(f64::MIN_POSITIVE));
        if claimed + slack >= gap {
            return Ok(gap);
        }
        let (dual, lowest) = bound(claimed)?;
        let (gap, proven) = (found.gap_to(dual), found.gap_to(lowest));
        ensure!(proven <= claimed + slack, "the minimum lies {proven:.3e} below, the file says {claimed:.3e} at most");
        ensure!(
            !is_repeatable || gap <= claimed + slack,
            "a gap of {gap:.3e} can be shown, the file says {claimed:.3e}"
        );
        Ok(gap)
    }

    /// Whether the file holds what was written to it, also where the numbers would pass.
    fn check_unchanged(&self, code: &Code<f64>) -> Result<()> {
        match codes::read_checksum(self.path)? {
            Some(written) => {
                let same = written == self.facts.checksum(code, codes::read_mixing(self.path)?.as_ref());
                ensure!(same, "the file was changed after it was written: its checksum does not hold");
                Ok(())
            }
            None => Ok(()),
        }
    }
}
