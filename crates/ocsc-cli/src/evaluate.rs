//! `ocsc evaluate`: how well a model represents a set of samples.

use crate::args::Evaluate;
use crate::console::Console;
use crate::data::Source;
use crate::model::{Prepared, coding_config};
use crate::original::Fidelity;
use anyhow::Result;
use ocsc::config::Dtype;
use ocsc::train::{Evaluation, TEST_TOL, evaluate_each};
use ocsc::{Real, checkpoint};
use serde::Serialize;

/// The library's evaluation, in the domain of the codes, and the PSNR in that of the originals.
#[derive(Serialize)]
struct Evaluated {
    #[serde(flatten)]
    coded: Evaluation,
    /// None if the preprocessing has no inverse.
    psnr_original: Option<f64>,
    psnr_original_peak: Option<f64>,
    #[serde(skip)]
    original: String,
}

pub(crate) fn run(args: &Evaluate, console: &Console) -> Result<()> {
    let saved = checkpoint::load::<f32>(&args.model)?;
    let evaluated = match coding_config(&saved.config, &args.coding, TEST_TOL).dtype {
        Dtype::F32 => evaluated::<f32>(args)?,
        Dtype::F64 => evaluated::<f64>(args)?,
    };
    let (gap, tol) = (evaluated.coded.gap, args.coding.tol.unwrap_or(TEST_TOL));
    if gap > tol {
        console.say(format!(
            "the worst gap is {gap:.2e}, not the {tol:.0e} asked for; raise --max-iters, or use --dtype f64"
        ));
    }
    if args.coding.json {
        return console.result(serde_json::to_string(&evaluated)?);
    }
    let mut table = vec![("samples".to_owned(), evaluated.coded.samples.to_string())];
    table.extend(rows(&evaluated.coded));
    table.push(("original PSNR".to_owned(), evaluated.original));
    console.table(&table)
}

fn evaluated<T: Real>(args: &Evaluate) -> Result<Evaluated> {
    let saved = checkpoint::load::<T>(&args.model)?;
    let config = coding_config(&saved.config, &args.coding, TEST_TOL);
    let source = Source::open(&args.data.data, &args.data.options())?;
    let samples = Prepared { source: &source, preprocess: &config.preprocess };
    let mut fidelity = Fidelity::new(&samples);
    let coded = evaluate_each(&config, &saved.dictionary, &samples, config.tol, |i, reconstruction| {
        fidelity.add(i, reconstruction)
    })?;
    let (psnr, original) = (fidelity.psnr(), fidelity.to_string());
    Ok(Evaluated { coded, psnr_original: psnr.map(|p| p.0), psnr_original_peak: psnr.map(|p| p.1), original })
}

/// An evaluation as rows of a table.
pub(crate) fn rows(evaluation: &Evaluation) -> Vec<(String, String)> {
    let e = evaluation;
    vec![
        ("objective".to_owned(), format!("{:.3} = {:.3} data term + beta {:.3} l1", e.objective, e.data_term, e.l1)),
        ("worst gap".to_owned(), format!("{:.3} %", 100.0 * e.gap)),
        (
            "PSNR".to_owned(),
            format!("{:.2} dB (peak {:.4}: the range of the samples after preprocessing)", e.psnr, e.psnr_peak),
        ),
        ("non-zeros".to_owned(), format!("{:.1} per sample", e.nonzeros)),
        ("coding time".to_owned(), format!("{:.3} s", e.seconds)),
    ]
}
