//! `ocsc code` and `ocsc reconstruct`: samples to sparse codes and back.

use crate::args::{Code, Format, Reconstruct};
use crate::console::{self, Console};
use crate::data::{Source, SourceOptions, codes, write};
use crate::model::{Prepared, coding_config};
use crate::original::Originals;
use anyhow::{Context, Result, ensure};
use ocsc::coder::Status;
use ocsc::config::Dtype;
use ocsc::learner::coder;
use ocsc::train::code_each;
use ocsc::{Real, Sample, checkpoint};
use std::path::PathBuf;

/// Codes are this close to optimal unless the call says otherwise.
const DEFAULT_TOL: f64 = 0.01;

pub(crate) fn run(args: &Code, console: &Console) -> Result<()> {
    let saved = checkpoint::load::<f32>(&args.model)?;
    match coding_config(&saved.config, &args.coding, DEFAULT_TOL).dtype {
        Dtype::F32 => code::<f32>(args, console),
        Dtype::F64 => code::<f64>(args, console),
    }
}

fn code<T: Real>(args: &Code, console: &Console) -> Result<()> {
    let saved = checkpoint::load::<T>(&args.model)?;
    let config = coding_config(&saved.config, &args.coding, DEFAULT_TOL);
    let source = Source::open(&args.data.data, &args.data.options())?;
    let samples = Prepared { source: &source, preprocess: &config.preprocess };
    make_folder(&args.out)?;
    let mut coder = coder(&config, &saved.dictionary, config.tol)?;
    let mut bar = console.progress("coding", source.len(), 0);
    console::catch_interrupts()?;
    let (mut objective, mut gap, mut nonzeros, mut unconverged) = (0.0, 0.0_f64, 0, 0);
    code_each(coder.as_mut(), &saved.dictionary, &samples, |i, _, coded, _| -> Result<()> {
        let extra = [("objective", coded.total()), ("gap", coded.relative_gap()), ("beta", config.beta)];
        let path = args.out.join(format!("{}.npz", source.file_stem(i)));
        codes::write_code(&path, &coded.code, saved.dictionary.rank(), &extra)?;
        objective += coded.total() / source.len() as f64;
        gap = gap.max(coded.relative_gap());
        nonzeros += coded.code.nonzeros();
        unconverged += usize::from(coded.status != Status::Converged);
        bar.advance(1, &format!("objective {:.1}  gap {:.2} %", coded.total(), 100.0 * coded.relative_gap()));
        let done = i + 1;
        ensure!(!console::interrupted(), "interrupted after {done} of {} samples; their codes are kept", source.len());
        Ok(())
    })?;
    drop(bar);
    if unconverged > 0 {
        console.say(format!("{unconverged} of {} codes did not reach the tolerance {}; their files hold the gap they reached. Raise --max-iters or --time-limit, or use --dtype f64", source.len(), config.tol));
    }
    let nonzeros = nonzeros as f64 / source.len() as f64;
    if args.coding.json {
        let result =
            serde_json::json!({"samples": source.len(), "objective": objective, "gap": gap, "nonzeros": nonzeros});
        return console.result(result.to_string());
    }
    console.table(&[
        ("codes".to_owned(), format!("{} in {}", source.len(), args.out.display())),
        ("objective".to_owned(), format!("{objective:.3}")),
        ("worst gap".to_owned(), format!("{:.3} %", 100.0 * gap)),
        ("non-zeros".to_owned(), format!("{nonzeros:.1} per sample")),
    ])
}

pub(crate) fn reconstruct(args: &Reconstruct, console: &Console) -> Result<()> {
    // In f64, whatever the codes were computed in: this is the way out.
    let saved = checkpoint::load::<f64>(&args.model)?;
    let (dictionary, boundary) = (saved.dictionary, saved.config.boundary);
    let preprocess = args.preprocess.as_ref().unwrap_or(&saved.config.preprocess);
    let options = SourceOptions { axes: args.axes.clone(), limit: None };
    let source = match &args.original[..] {
        [] => None,
        data => Some(Source::open(data, &options).context("--original")?),
    };
    let originals = source.as_ref().map(|source| Originals::new(Prepared { source, preprocess }));
    let entries = std::fs::read_dir(&args.codes)
        .with_context(|| format!("{}: expected a folder of codes", args.codes.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path: PathBuf = entry?.path();
        if path.extension().is_some_and(|e| e == "npz") {
            paths.push(path);
        }
    }
    paths.sort();
    ensure!(!paths.is_empty(), "{}: expected codes ending in .npz, found none", args.codes.display());
    make_folder(&args.out)?;
    let mut bar = console.progress("reconstructing", paths.len(), 0);
    for path in &paths {
        let (code, rank) = codes::read_code::<f64>(path)?;
        let here = || path.display().to_string();
        let sample = code.reconstruct(&dictionary, boundary).with_context(here)?;
        let stem = path.file_stem().unwrap_or_default();
        let (sample, range) = match &originals {
            Some(originals) => originals.bring_back(&stem.to_string_lossy(), sample).with_context(here)?,
            None => {
                let range = extremes(&sample);
                (sample, range)
            }
        };
        if args.format != Format::Png {
            write::write_npy(&args.out.join(stem).with_added_extension("npy"), &sample, rank)?;
        }
        if args.format != Format::Npy {
            // A constant, as an empty code gives, is drawn in the middle of the gray values.
            let (low, high) = match range {
                (low, high) if low < high => (low, high),
                (value, _) => (value - 1.0, value + 1.0),
            };
            write::write_png(&args.out.join(stem).with_added_extension("png"), &sample, low, high)?;
        }
        bar.advance(1, "");
    }
    drop(bar);
    if originals.is_some() && !preprocess.has_inverse() {
        console.say("an edge taper cannot be undone: the border of the reconstructions stays blended");
    }
    console.result(format!("{} reconstructions in {}", paths.len(), args.out.display()))
}

/// The smallest and the largest value.
pub(crate) fn extremes<T: Real>(sample: &Sample<T>) -> (f64, f64) {
    let fold = |(low, high): (f64, f64), v: &T| (low.min(v.f64()), high.max(v.f64()));
    sample.data().iter().fold((f64::INFINITY, f64::NEG_INFINITY), fold)
}

pub(crate) fn make_folder(path: &PathBuf) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("{}: cannot make this folder", path.display()))
}
