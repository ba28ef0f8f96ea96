//! `ocsc evaluate`: how well a model represents a set of samples.

use crate::args::Evaluate;
use crate::commands::code::how_it_goes;
use crate::console::{self, Console, Interrupted, counted};
use crate::data::SourceOptions;
use crate::exit::check_passed_over;
use crate::ranks::Ranks;
use crate::report::chart::quoted;
use crate::run::dataset;
use crate::run::model::{Prepared, check_masked, precision_advice, say_unsealed};
use crate::run::original::Fidelity;
use crate::run::outputs::Outputs;
use crate::run::pipe;
use crate::run::reference::{Quality, References};
use crate::run::sparsity;
use anyhow::{Context, Result, ensure};
use ocsc::beta::BetaMax;
use ocsc::comm::Shard;
use ocsc::metrics::psnr;
use ocsc::replace::write_file;
use ocsc::settings::Dtype;
use ocsc::train::{Evaluation, Represented, TEST_TOL, evaluate_by};
use ocsc::{Real, Samples};
use serde::Serialize;

/// The library's evaluation, in the domain of the codes, and the PSNR in that of the originals.
#[derive(Serialize)]
struct Evaluated {
    #[serde(flatten)]
    coded: Evaluation,
    /// None if nothing but a blended border would come back.
    psnr_original: Option<f64>,
    psnr_original_peak: Option<f64>,
    /// Of what came back and --reference, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    psnr_reference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssim_reference: Option<f64>,
    #[serde(skip)]
    original: String,
    /// Of a beta that does not suit the data.
    #[serde(skip)]
    beta: f64,
    #[serde(skip)]
    beta_max: Option<BetaMax>,
}

/// `ocsc evaluate`.
pub fn run(args: &Evaluate, ranks: &Ranks, console: &Console) -> Result<()> {
    let saved = ranks.load::<f32>(&args.model)?;
    say_unsealed(&saved, &args.model, console);
    let dtype = args.coding.settings.apply(&saved.config, TEST_TOL)?.dtype;
    let evaluated = match dtype {
        Dtype::F32 => evaluated::<f32>(args, ranks, console)?,
        Dtype::F64 => evaluated::<f64>(args, ranks, console)?,
    };
    let (gap, tol) = (evaluated.coded.gap, args.coding.settings.tol().unwrap_or(TEST_TOL));
    if gap > tol {
        let advice = precision_advice(dtype, "raise --max-iters");
        console.say(format!("the worst gap is {gap:.2e}, not the {tol:.0e} asked for; {advice}"));
    }
    sparsity::warn(&evaluated.coded.sparsity(), evaluated.beta, || evaluated.beta_max, console);
    let skipped = evaluated.coded.skipped;
    if args.coding.json {
        console.result(serde_json::to_string(&evaluated)?)?;
        return check_passed_over(skipped, "sample", args.data.skip_bad);
    }
    let mut table = vec![("samples".to_owned(), samples(&evaluated.coded))];
    table.extend(rows(&evaluated.coded));
    table.push(("original PSNR".to_owned(), evaluated.original));
    if let Some(psnr) = evaluated.psnr_reference {
        let ssim = evaluated.ssim_reference.map_or(String::new(), |ssim| format!(", SSIM {ssim:.4}"));
        table.push(("to --reference".to_owned(), format!("PSNR {psnr:.2} dB{ssim}")));
    }
    console.table(&table)?;
    check_passed_over(skipped, "sample", args.data.skip_bad)
}

fn evaluated<T: Real>(args: &Evaluate, ranks: &Ranks, console: &Console) -> Result<Evaluated> {
    let saved = ranks.load::<T>(&args.model)?;
    let config = args.coding.settings.apply(&saved.config, TEST_TOL)?;
    ensure!(
        !pipe::is_wanted(&args.data)?,
        "-: expected data whose number is known, found standard input, which `learn` and `code` can read; \
         save the frames, e.g. ffmpeg -i film.mp4 frames/%05d.png, and name the folder"
    );
    let (source, sizes) = dataset::for_evaluating(args, &config, saved.dictionary.shape(), ranks, console)?;
    check_masked(&config.preprocess, source.is_masked())?;
    let preprocess = config.preprocess.clone();
    let samples = Prepared::new(&source, &preprocess).sized(&sizes);
    let config = sparsity::with_beta(&args.coding.settings, config, &saved.dictionary, &samples, ranks, console)?;
    let of = Shard::<T>::of(ranks.comm(), &samples).len();
    let mut bar = console.progress("evaluating", of, 0);
    let monitor = bar.monitor();
    let mut fidelity = Fidelity::new(&samples);
    let reading = &args.data.reading;
    let axes = reading.axes.clone();
    let (recursive, rate) = (reading.recursive, reading.rate);
    let like = SourceOptions { axes, recursive, rate, ..SourceOptions::default() }.like_learned(&saved.config);
    let references = References::open(args.reference.as_deref(), &like, &source)?;
    ensure!(
        !ranks.is_many() || (args.csv.is_none() && args.reference.is_none()),
        "--csv, --reference: expected one process, found several"
    );
    if let Some(path) = &args.csv {
        let mut files = Outputs::default();
        files.read("one of the data", source.files());
        files.read("one of the references", references.files());
        files.read("the model", [&args.model]);
        files.write("--csv", path)?;
    }
    let mut rows = Vec::new();
    let mut failed = None;
    let mut done = 0;
    console::catch_interrupts();
    let mut each = |i: usize, item: ocsc::Result<Represented<'_, T>>| {
        match item {
            Ok(item) => {
                let (back, psnr) = fidelity.add(i, item.reconstruction)?;
                let quality = references.clean::<f64>(i, back.shape());
                let quality = quality.and_then(|clean| clean.map(|c| c.quality(None, &back)).transpose());
                match quality {
                    // Memory does not grow with samples that nobody asks about.
                    Ok(None) if args.csv.is_none() => {}
                    Ok(quality) => rows.push(Row { quality, ..Row::new(source.name(i), &item, psnr)? }),
                    // The library's errors have no room for it.
                    Err(error) => {
                        failed = Some(error);
                        return Err(ocsc::Error::Stopped);
                    }
                }
                done += 1;
                bar.advance(1, &how_it_goes(item.sample.n_observed(), item.coded));
            }
            Err(error) if args.data.strict => return Err(error),
            Err(error) => {
                bar.note(&format!("skipped: {error}"));
                bar.advance(1, "");
            }
        }
        Ok(())
    };
    let coded = evaluate_by(ranks.comm(), &config, &saved.dictionary, &samples, config.tol, &*monitor, &mut each);
    if let Some(error) = failed {
        return Err(error);
    }
    let coded = coded.map_err(|error| match error {
        ocsc::Error::Stopped => {
            Interrupted(format!("interrupted after {done} of {}; nothing was written", counted(of, "sample"))).into()
        }
        error => anyhow::Error::from(error),
    })?;
    fidelity.all_gather(ranks.comm());
    let (psnr, original) = (fidelity.psnr(), fidelity.to_string());
    let beta_max = || BetaMax::of_filters(&config, &saved.dictionary, &samples, false).ok();
    let is_asked = ranks.is_first() && sparsity::needs_beta_max(&coded.sparsity());
    let (psnr_original, psnr_original_peak) = (psnr.map(|p| p.0), psnr.map(|p| p.1));
    let (beta, beta_max) = (config.beta, if is_asked { beta_max() } else { None });
    if let Some(path) = &args.csv {
        let scale = |peak: Option<f64>| 20.0 * peak.filter(|peak| *peak > 0.0).unwrap_or(1.0).log10();
        let head =
            "sample,objective,data_term,gap,psnr,psnr_original,psnr_reference,ssim_reference,nonzeros,nonzeros_share\n";
        let lines = rows.iter().map(|row| row.line(scale(Some(coded.psnr_peak)), scale(psnr_original_peak)));
        let text = head.to_owned() + &lines.collect::<String>();
        write_file(path, text).with_context(|| format!("--csv {}", path.display()))?;
    }
    let mean = |of: &dyn Fn(&Quality) -> Option<f64>| {
        let known: Vec<f64> = rows.iter().filter_map(|row| row.quality.as_ref().and_then(of)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let (psnr_reference, ssim_reference) = (mean(&|q| Some(q.psnr)), mean(&|q| q.ssim));
    Ok(Evaluated { coded, psnr_original, psnr_original_peak, psnr_reference, ssim_reference, original, beta, beta_max })
}

/// What is known of one sample.
struct Row {
    name: String,
    objective: f64,
    data_term: f64,
    gap: f64,
    /// With peak 1, after and before preprocessing.
    psnr: f64,
    psnr_original: Option<f64>,
    quality: Option<Quality>,
    nonzeros: usize,
    share: f64,
}

impl Row {
    fn new<T: Real>(name: String, item: &Represented<'_, T>, psnr_original: Option<f64>) -> ocsc::Result<Self> {
        let (coded, nonzeros) = (item.coded, item.coded.code.nonzeros());
        Ok(Row {
            name,
            objective: coded.total(),
            data_term: coded.objective.data_term,
            gap: coded.relative_gap(),
            psnr: psnr(item.sample, item.reconstruction, 1.0)?,
            psnr_original,
            quality: None,
            nonzeros,
            share: nonzeros as f64 / item.sample.n_observed().max(1) as f64,
        })
    }

    /// As comma-separated values, with what the peaks add to the PSNRs.
    fn line(&self, peak: f64, original_peak: f64) -> String {
        let some = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let fields = [
            quoted(&self.name),
            self.objective.to_string(),
            self.data_term.to_string(),
            self.gap.to_string(),
            (self.psnr + peak).to_string(),
            some(self.psnr_original.map(|psnr| psnr + original_peak)),
            some(self.quality.map(|q| q.psnr)),
            some(self.quality.and_then(|q| q.ssim)),
            self.nonzeros.to_string(),
            self.share.to_string(),
        ];
        fields.join(",") + "\n"
    }
}

/// How many samples an evaluation is of.
fn samples(evaluation: &Evaluation) -> String {
    match evaluation.skipped {
        0 => evaluation.samples.to_string(),
        skipped => format!("{}, {skipped} skipped", evaluation.samples),
    }
}

/// The evaluation of a run's test samples as rows of a table about the run.
pub(crate) fn test_rows(evaluation: &Evaluation) -> Vec<(String, String)> {
    let all = [("samples".to_owned(), samples(evaluation))].into_iter().chain(rows(evaluation));
    all.map(|(name, value)| (format!("test {name}"), value)).collect()
}

/// An evaluation as rows of a table.
fn rows(evaluation: &Evaluation) -> Vec<(String, String)> {
    let e = evaluation;
    let mut rows = vec![
        (
            "objective".to_owned(),
            format!(
                "{:.3} per sample = {:.3} data term + {:.3} penalty (l1 norm {:.3})",
                e.objective, e.data_term, e.penalty, e.l1
            ),
        ),
        ("worst gap".to_owned(), format!("{:.3} %", 100.0 * e.gap)),
        (
            "PSNR".to_owned(),
            format!("{:.2} dB (peak {:.4}: the range of the samples after preprocessing)", e.psnr, e.psnr_peak),
        ),
        ("non-zeros".to_owned(), sparsity::nonzeros(e.nonzeros, e.nonzeros_share)),
        ("coding time".to_owned(), format!("{:.3} s", e.seconds)),
    ];
    if e.outliers > 0.0 {
        rows.push(("outliers".to_owned(), format!("{:.1} values per sample count less than the others", e.outliers)));
    }
    rows
}
