//! `ocsc denoise` and `inpaint`: images in, better images of the same kind out.

use crate::args::{Denoise, Inpaint, Restoring};
use crate::console::{self, Console, Interrupted, counted};
use crate::data::picture::Style;
use crate::data::{Source, SourceOptions, write};
use crate::run::folder::{make_folder, say_existing};
use crate::run::model;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result, ensure};
use ocsc::metrics::{psnr, ssim};
use ocsc::monitor::Monitor;
use ocsc::restore::{self, Options};
use ocsc::{Sample, Samples, replace};
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The scale on which noise in photos is told; their values go from 0 to 1.
const LEVELS: f64 = 255.0;
/// The least side of images that the similarity is defined for.
const LEAST_SIDE: usize = 11;

/// Restores one image, of which so many units of the command line make one of its own; also returns the sigma in the former.
type Restore<'a> = dyn Fn(&Sample<f32>, &Options, f64, &dyn Monitor) -> ocsc::Result<(Sample<f32>, Option<f64>)> + 'a;

/// `ocsc denoise`.
pub(crate) fn denoise(args: &Denoise, console: &Console) -> Result<()> {
    let one = |image: &Sample<f32>, options: &Options, unit: f64, monitor: &dyn Monitor| {
        let sigma = args.sigma.map_or_else(|| restore::noise_of(image), |sigma| sigma / unit);
        let options = Options { sigma: Some(sigma), ..options.clone() };
        Ok((restore::denoise(image, &options, monitor)?, Some(sigma * unit)))
    };
    run(&args.restoring, &SourceOptions::default(), "denoising", &one, console)
}

/// `ocsc inpaint`.
pub(crate) fn inpaint(args: &Inpaint, console: &Console) -> Result<()> {
    let reading =
        SourceOptions { mask: args.mask.clone(), nan_is_missing: args.nan_is_missing, ..SourceOptions::default() };
    let one = |image: &Sample<f32>, options: &Options, _: f64, monitor: &dyn Monitor| {
        Ok((restore::inpaint(image, options, monitor)?, None))
    };
    run(&args.restoring, &reading, "inpainting", &one, console)
}

/// What is known of one result.
struct Restored {
    name: String,
    out: PathBuf,
    sigma: Option<f64>,
    /// PSNR of what was given and of the result, and the result's SSIM, where there is a reference.
    quality: Option<Quality>,
    seconds: f64,
}

#[derive(Clone, Copy)]
struct Quality {
    before: Option<f64>,
    psnr: f64,
    ssim: Option<f64>,
}

fn run(
    args: &Restoring,
    reading: &SourceOptions,
    what: &'static str,
    one: &Restore<'_>,
    console: &Console,
) -> Result<()> {
    let reading = SourceOptions { recursive: args.recursive, ..reading.clone() };
    let source = Source::open(&args.images, &reading)?;
    let references = References::open(args, &source)?;
    let dictionary = args.model.as_ref().map(|path| model::load::<f32>(path, console)).transpose()?;
    let dictionary = dictionary.map(|saved| saved.dictionary);
    let options = Options { learn_here: !args.no_learn_here, dictionary, seed: args.seed, ..Options::default() };
    let outputs = planned(args, &source, &references, console)?;
    make_folder(&args.out)?;
    replace::remove_leftovers_in(&args.out);
    console::catch_interrupts();
    let mut bar = console.progress(what, source.len(), 0);
    let monitor = bar.monitor();
    let mut all = Vec::new();
    for (i, (out, style)) in outputs.iter().enumerate() {
        let name = source.name(i);
        if args.skip_existing && out.try_exists().with_context(|| out.display().to_string())? {
            bar.advance(1, "");
            continue;
        }
        let image: Sample<f32> = source.get(i)?;
        let unit = if style.is_some() { LEVELS } else { 1.0 };
        let clock = Instant::now();
        let restored = one(&image, &options, unit, &*monitor);
        let (restored, sigma) = restored.map_err(|error| match error {
            ocsc::Error::Stopped => anyhow::Error::from(Interrupted(format!(
                "interrupted after {i} of {}; --skip-existing goes on from here",
                counted(source.len(), "image")
            ))),
            error => anyhow::Error::from(error).context(name.clone()),
        })?;
        let seconds = clock.elapsed().as_secs_f64();
        let restored = match style {
            Some(style) => {
                style.write(out, &restored)?;
                style.rounded(&restored)
            }
            None => {
                write::write_npy(out, &restored, 2)?;
                restored
            }
        };
        let quality = references.quality(i, &image, &restored).with_context(|| name.clone())?;
        bar.advance(1, "");
        all.push(Restored { name, out: out.clone(), sigma, quality, seconds });
    }
    drop(bar);
    report(args, &all, console)
}

/// Returns the files to write, and how those that are pictures are stored.
fn planned(
    args: &Restoring,
    source: &Source,
    references: &References,
    console: &Console,
) -> Result<Vec<(PathBuf, Option<Style>)>> {
    let mut files = Outputs::default();
    files.read("one of the images", source.files());
    files.read("one of the references", references.source.iter().flat_map(|source| source.files()));
    files.read("the model", &args.model);
    let (mut planned, mut n_there) = (Vec::new(), 0);
    for i in 0..source.len() {
        let picture = source.picture(i);
        let style = picture.map(Style::of).transpose()?;
        // The ending as it was, unless it tells of another format than the file has.
        let given = picture.and_then(Path::extension).and_then(|ending| ending.to_str());
        let fits = |ending: &&str| {
            style.is_some_and(|style| style.format.extensions_str().contains(&ending.to_ascii_lowercase().as_str()))
        };
        let ending = given.filter(fits).or(style.map(Style::ending)).unwrap_or("npy");
        let out = args.out.join(source.file_stem(i)).with_added_extension(ending);
        n_there += usize::from(files.write("--out", &out)?);
        planned.push((out, style));
    }
    say_existing("result", n_there, source.len(), &args.out, args.skip_existing, console);
    Ok(planned)
}

/// The clean images to compare with.
struct References {
    source: Option<Source>,
    /// The reference of each image.
    pairs: Vec<usize>,
}

impl References {
    fn open(args: &Restoring, images: &Source) -> Result<Self> {
        let Some(path) = &args.reference else { return Ok(References { source: None, pairs: Vec::new() }) };
        let options = SourceOptions { recursive: args.recursive, ..SourceOptions::default() };
        let source = Source::open(std::slice::from_ref(path), &options).context("--reference")?;
        if images.len() == 1 && source.len() == 1 {
            return Ok(References { source: Some(source), pairs: vec![0] });
        }
        let by_stem: HashMap<String, usize> = (0..source.len()).map(|i| (source.file_stem(i), i)).collect();
        let pair = |i: usize| {
            let stem = images.file_stem(i);
            let told = || format!("--reference {}: expected an image called {stem}, found none", path.display());
            by_stem.get(&stem).copied().with_context(told)
        };
        let pairs = (0..images.len()).map(pair).collect::<Result<Vec<_>>>()?;
        Ok(References { source: Some(source), pairs })
    }

    /// How near image `index` and its restoration are to the reference, with the peak of photos, 1, or the reference's range.
    fn quality(&self, index: usize, image: &Sample<f32>, restored: &Sample<f32>) -> Result<Option<Quality>> {
        let Some(source) = &self.source else { return Ok(None) };
        let clean: Sample<f32> = source.get(self.pairs[index])?;
        ensure!(
            clean.shape() == restored.shape(),
            "--reference {}: expected {}, found {}",
            source.name(self.pairs[index]),
            restored.shape(),
            clean.shape()
        );
        let peak = match (source.picture(self.pairs[index]), clean.extremes()) {
            (None, (low, high)) if high > low => high - low,
            _ => 1.0,
        };
        let shape = clean.shape();
        let is_large = shape.height >= LEAST_SIDE && shape.width >= LEAST_SIDE;
        let before = if image.mask().is_none() { Some(psnr(&clean, image, peak)?) } else { None };
        let ssim = if is_large { Some(ssim(&clean, restored, peak)?) } else { None };
        Ok(Some(Quality { before, psnr: psnr(&clean, restored, peak)?, ssim }))
    }
}

/// Prints one line per image where there is something to tell, and the mean.
fn report(args: &Restoring, all: &[Restored], console: &Console) -> Result<()> {
    let mean = |of: &dyn Fn(&Quality) -> Option<f64>| {
        let known: Vec<f64> = all.iter().filter_map(|r| r.quality.as_ref().and_then(of)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let (mean_psnr, mean_ssim) = (mean(&|q| Some(q.psnr)), mean(&|q| q.ssim));
    let seconds: f64 = all.iter().map(|r| r.seconds).sum();
    if args.json {
        let image = |r: &Restored| {
            json!({
                "name": r.name, "out": r.out, "sigma": r.sigma, "psnr_before": r.quality.and_then(|q| q.before),
                "psnr": r.quality.map(|q| q.psnr), "ssim": r.quality.and_then(|q| q.ssim), "seconds": r.seconds,
            })
        };
        let images: Vec<_> = all.iter().map(image).collect();
        let result = json!({ "images": images, "psnr": mean_psnr, "ssim": mean_ssim, "seconds": seconds });
        return console.result(result.to_string());
    }
    for r in all {
        let mut words = vec![r.name.clone()];
        words.extend(r.sigma.map(|sigma| format!("sigma {sigma:.3}")));
        if let Some(quality) = r.quality {
            let before = quality.before.map_or(String::new(), |before| format!(" (was {before:.2})"));
            words.push(format!("PSNR {:.2} dB{before}", quality.psnr));
            words.extend(quality.ssim.map(|ssim| format!("SSIM {ssim:.4}")));
        }
        words.push(format!("{:.1} s", r.seconds));
        console.result(words.join("  "))?;
    }
    if let (Some(psnr), true) = (mean_psnr, all.len() > 1) {
        let ssim = mean_ssim.map_or(String::new(), |ssim| format!("  SSIM {ssim:.4}"));
        console.result(format!("mean  PSNR {psnr:.2} dB{ssim}"))?;
    }
    console.result(format!("{} in {}", counted(all.len(), "image"), args.out.display()))
}
