//! `ocsc evaluate`: how well a model represents a set of samples.

use crate::args::Evaluate;
use crate::console::Console;
use crate::data::Source;
use crate::model::{Prepared, check_masked, coding_config};
use crate::stream;
use anyhow::{Result, ensure};
use ocsc::config::Dtype;
use ocsc::train::{Evaluation, TEST_TOL, evaluate};
use ocsc::{Real, checkpoint};

pub(crate) fn run(args: &Evaluate, console: &Console) -> Result<()> {
    let saved = checkpoint::load::<f32>(&args.model)?;
    let evaluation = match coding_config(&saved.config, &args.coding, TEST_TOL).dtype {
        Dtype::F32 => evaluated::<f32>(args)?,
        Dtype::F64 => evaluated::<f64>(args)?,
    };
    let (gap, tol) = (evaluation.gap, args.coding.tol.unwrap_or(TEST_TOL));
    if gap > tol {
        console.say(format!(
            "the worst gap is {gap:.2e}, not the {tol:.0e} asked for; raise --max-iters, or use --dtype f64"
        ));
    }
    if args.coding.json {
        return console.result(serde_json::to_string(&evaluation)?);
    }
    console.table(&[vec![("samples".to_owned(), evaluation.samples.to_string())], rows(&evaluation)].concat())
}

fn evaluated<T: Real>(args: &Evaluate) -> Result<Evaluation> {
    let saved = checkpoint::load::<T>(&args.model)?;
    let config = coding_config(&saved.config, &args.coding, TEST_TOL);
    ensure!(
        !stream::is_wanted(&args.data)?,
        "-: evaluating takes the data twice, for their range and for their codes, and standard input can be read once; \
         save the frames, e.g. ffmpeg -i film.mp4 frames/%05d.png, and name the folder"
    );
    let source = Source::open(&args.data.data, &args.data.options())?;
    check_masked(&config.preprocess, source.is_masked())?;
    let samples = Prepared { source: &source, preprocess: &config.preprocess };
    Ok(evaluate(&config, &saved.dictionary, &samples, config.tol)?)
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
