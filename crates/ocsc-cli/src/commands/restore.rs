//! `ocsc denoise`, `inpaint`, `deblur`, `upscale` and `demosaic`: images in, better images of the same kind out. `denoise` also takes
//! signals.

use crate::args::{Deblur, Demosaic, Denoise, Inpaint, Restoring, Upscale};
use crate::console::{self, Console, Interrupted, Progress, counted, share, told};
use crate::data::picture::Style;
use crate::data::{Channel, Source, SourceOptions, wav, write};
use crate::exit::check_passed_over;
use crate::report::picture::{difference, image_gray};
use crate::report::{self, Report, Triplet};
use crate::run::folder::{make_folder, say_existing};
use crate::run::model;
use crate::run::outputs::Outputs;
use crate::run::reference::{Clean, Quality, References};
use anyhow::{Context, Result, bail, ensure};
use ocsc::monitor::Monitor;
use ocsc::restore::{self, Kernel, Noise, Options, SigmaDoubt};
use ocsc::{Sample, Samples, replace};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The scale on which noise in photos is told; their values go from 0 to 1.
const LEVELS: f64 = 255.0;
/// Restores one image, of which so many units of the command line make one of its own; also returns the sigma in the former.
type Restore<'a> = dyn Fn(&Sample<f32>, &Options, f64, &dyn Monitor) -> ocsc::Result<(Sample<f32>, Option<f64>)> + 'a;

/// `ocsc denoise`.
pub(crate) fn denoise(args: &Denoise, console: &Console) -> Result<()> {
    ensure!(
        args.sigma.is_none() || args.noise == Noise::Gaussian,
        "--sigma: expected none beside --noise poisson, which poisson:PHOTONS describes"
    );
    let one = |image: &Sample<f32>, options: &Options, unit: f64, monitor: &dyn Monitor| {
        let noise = if args.loss == "l1" { Noise::Impulse } else { args.noise };
        let sigma = match noise {
            Noise::Gaussian => Some(args.sigma.map_or_else(|| restore::noise_of(image), |sigma| sigma / unit)),
            _ => None,
        };
        let options = Options { noise, sigma, ..options.clone() };
        Ok((restore::denoise(image, &options, monitor)?, sigma.map(|sigma| sigma * unit)))
    };
    let reading = SourceOptions { whole_recordings: true, channel: Channel::All, ..SourceOptions::default() };
    run(&args.restoring, &reading, "denoising", 1, args.sigma, &one, console)
}

/// `ocsc inpaint`.
pub(crate) fn inpaint(args: &Inpaint, console: &Console) -> Result<()> {
    let reading =
        SourceOptions { mask: args.mask.clone(), nan_is_missing: args.nan_is_missing, ..SourceOptions::default() };
    let one = |image: &Sample<f32>, options: &Options, _: f64, monitor: &dyn Monitor| {
        Ok((restore::inpaint(image, options, monitor)?, None))
    };
    run(&args.restoring, &reading, "inpainting", 1, None, &one, console)
}

/// `ocsc deblur`.
pub(crate) fn deblur(args: &Deblur, console: &Console) -> Result<()> {
    let kernel = kernel(&args.kernel).with_context(|| format!("--kernel {}", args.kernel))?;
    let one = |image: &Sample<f32>, options: &Options, unit: f64, monitor: &dyn Monitor| {
        let sigma = args.sigma.map_or_else(|| restore::noise_of(image), |sigma| sigma / unit);
        let options = Options { sigma: Some(sigma), ..options.clone() };
        Ok((restore::deblur(image, &kernel, &options, monitor)?, Some(sigma * unit)))
    };
    run(&args.restoring, &SourceOptions::default(), "deblurring", 1, args.sigma, &one, console)
}

/// A Gaussian, or what a file holds.
fn kernel(text: &str) -> Result<Kernel> {
    if let Some(deviation) = text.strip_prefix("gaussian:") {
        let deviation = deviation.parse().context("expected a number of pixels after gaussian:")?;
        return Ok(Kernel::gaussian(deviation)?);
    }
    let source = Source::open(&[PathBuf::from(text)], &SourceOptions::default())?;
    ensure!(source.len() == 1, "expected one kernel, found {}", source.len());
    let sample: Sample<f32> = source.get(0)?;
    let shape = sample.shape();
    ensure!(shape.channels == 1 && shape.depth == 1, "expected a gray image, found {shape}");
    Ok(Kernel::new(shape.height, shape.width, sample.data())?)
}

/// `ocsc upscale`.
pub(crate) fn upscale(args: &Upscale, console: &Console) -> Result<()> {
    let factor = usize::from(args.factor);
    let one = |image: &Sample<f32>, options: &Options, _: f64, monitor: &dyn Monitor| {
        Ok((restore::upscale(image, factor, options, monitor)?, None))
    };
    run(&args.restoring, &SourceOptions::default(), "upscaling", factor, None, &one, console)
}

/// `ocsc demosaic`.
pub(crate) fn demosaic(args: &Demosaic, console: &Console) -> Result<()> {
    let one = |mosaic: &Sample<f32>, options: &Options, _: f64, monitor: &dyn Monitor| {
        Ok((restore::demosaic(mosaic, args.pattern, options, monitor)?, None))
    };
    run(&args.restoring, &SourceOptions::default(), "demosaicking", 1, None, &one, console)
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

/// Restores all images, by `one`, to pictures `factor` times as large. `sigma` is what the call says of their noise.
fn run(
    args: &Restoring,
    reading: &SourceOptions,
    what: &'static str,
    factor: usize,
    sigma: Option<f64>,
    one: &Restore<'_>,
    console: &Console,
) -> Result<()> {
    let reading = SourceOptions { axes: args.axes.clone(), recursive: args.recursive, ..reading.clone() };
    let source = Source::open(&args.images, &reading)?;
    let like = SourceOptions { mask: None, nan_is_missing: false, ..reading };
    let references = References::open(args.reference.as_deref(), &like, &source)?;
    let dictionary = args.model.as_ref().map(|path| model::load::<f32>(path, console)).transpose()?;
    let dictionary = dictionary.map(|saved| saved.dictionary);
    let options = Options { learn_here: !args.no_learn_here, dictionary, seed: args.seed, ..Options::default() };
    let mut files = Outputs::default();
    let outputs = planned(args, &source, &references, factor, &mut files, console)?;
    make_folder(&args.out)?;
    replace::remove_leftovers_in(&args.out);
    console::catch_interrupts();
    let mut bar = console.progress(what, source.len(), 0);
    let monitor = bar.monitor();
    let mut done = Done::default();
    for (i, planned) in outputs.into_iter().enumerate() {
        let is_there = |planned: &Planned| planned.out.try_exists().with_context(|| planned.out.display().to_string());
        let is_there = planned.as_ref().map_or(Ok(false), is_there)?;
        if args.skip_existing && is_there {
            bar.advance(1, "");
            continue;
        }
        let attempt = planned.and_then(|planned| Ok((source.get(i)?, planned)));
        let (image, planned): (Sample<f32>, Planned) = match attempt {
            Ok(attempt) => attempt,
            Err(error) => {
                done.pass_over(error, args, &mut bar)?;
                continue;
            }
        };
        let (name, Planned { out, style }) = (source.name(i), planned);
        let is_signal = image.shape().height == 1;
        ensure!(
            args.report.is_none() || !is_signal,
            "--report: expected images, which can be shown, found a signal in {name}"
        );
        let unit = if style.is_some() { LEVELS } else { 1.0 };
        match sigma.map_or(Ok(None), |sigma| doubted(&image, sigma, unit, source.recording(i).is_some())) {
            Ok(doubt) => done.doubt(doubt, &name, &mut bar),
            Err(error) => {
                done.pass_over(error.context(name), args, &mut bar)?;
                continue;
            }
        }
        let clock = Instant::now();
        let (restored, sigma) = match one(&image, &options, unit, &*monitor) {
            Ok(restored) => restored,
            Err(ocsc::Error::Stopped) => {
                let of = counted(source.len(), "image");
                let why = format!("interrupted after {i} of {of}; --skip-existing goes on from here");
                return Err(Interrupted(why).into());
            }
            Err(error) => {
                done.pass_over(anyhow::Error::from(error).context(name), args, &mut bar)?;
                continue;
            }
        };
        let seconds = clock.elapsed().as_secs_f64();
        let restored = match style.zip(source.picture(i)) {
            Some((style, like)) => {
                style.write(&out, &restored, like)?;
                style.rounded(&restored)
            }
            None => {
                match source.recording(i) {
                    Some((_, _, rate)) => write_recording(&out, &restored, rate)?,
                    None => write::write_npy(&out, &restored, if is_signal { 1 } else { 2 })?,
                }
                restored
            }
        };
        let clean = references.clean(i, restored.shape())?;
        let quality = clean.as_ref().map(|clean| clean.quality(Some(&image), &restored));
        let about = Restored { name, out, sigma, quality: quality.transpose()?, seconds };
        if args.report.is_some() {
            done.shown.push(pictures(&image, &restored, clean.as_ref(), &about)?);
        }
        bar.advance(1, "");
        done.n_signals += usize::from(is_signal);
        done.n_replaced += usize::from(is_there);
        done.all.push(about);
    }
    drop(bar);
    let Done { all, shown, n_signals, n_replaced, n_doubted, skipped } = done;
    say_existing("result", n_replaced, source.len(), &args.out, false, console);
    if let Some(first) = skipped.first().filter(|_| skipped.len() == source.len()) {
        match skipped.len() {
            1 => bail!("{first}"),
            n => bail!("none of {} could be restored; the first: {first}", counted(n, "image")),
        }
    }
    if let Some(path) = &args.report {
        let lead = format!("{what}: {}", counted(all.len(), "image"));
        let command = format!("ocsc {}", std::env::args().skip(1).collect::<Vec<_>>().join(" "));
        let page = Report { title: "Restored images".to_owned(), lead, restored: shown, command, ..Report::default() };
        report::write(path, &page, &mut files)?;
    }
    let kind = if n_signals > 0 && n_signals == all.len() { "signal" } else { "image" };
    if n_doubted > 1 {
        console.say(format!("warning: --sigma is doubtful for {n_doubted} of {}", counted(all.len(), kind)));
    }
    tell(args, &all, skipped.len(), kind, console)?;
    check_passed_over(skipped.len(), kind, args.skip_bad)
}

/// What was made of the images so far.
#[derive(Default)]
struct Done {
    all: Vec<Restored>,
    /// What a page shows of them.
    shown: Vec<Triplet>,
    n_signals: usize,
    n_replaced: usize,
    /// For how many of them sigma is doubtful.
    n_doubted: usize,
    /// Why images could not be used.
    skipped: Vec<String>,
}

impl Done {
    /// Warns of a doubtful sigma: once, since that of many images is often the same mistake.
    fn doubt(&mut self, doubt: Option<String>, name: &str, bar: &mut Progress) {
        let Some(doubt) = doubt else { return };
        if self.n_doubted == 0 {
            bar.note(&format!("warning: {name}: {doubt}"));
        }
        self.n_doubted += 1;
    }

    /// Goes on without an image that cannot be used; not if the call is strict, nor if the machine is to blame.
    fn pass_over(&mut self, error: anyhow::Error, args: &Restoring, bar: &mut Progress) -> Result<()> {
        let is_of_system = error.chain().any(|e| e.downcast_ref().is_some_and(ocsc::Error::is_system_failure));
        if args.strict || is_of_system {
            return Err(error);
        }
        let why = told(&error);
        bar.note(&format!("skipped: {why}"));
        bar.advance(1, "");
        self.skipped.push(why);
        Ok(())
    }
}

/// Refuses a sigma that cannot be that of an image's noise, and returns what is doubtful about one that hardly can. It is given in
/// units of the command line, so many of which make one of the image's own.
fn doubted(image: &Sample<f32>, sigma: f64, unit: f64, is_recording: bool) -> Result<Option<String>> {
    let scale = match (unit == LEVELS, is_recording) {
        (true, _) => "of photos it is on the scale of 0 to 255",
        (false, true) => "of recordings it is a share of full scale",
        (false, false) => "of arrays it is in their own units",
    };
    let doubt = match restore::doubt_of_sigma(image, sigma / unit) {
        Some(SigmaDoubt::BeyondRange { low, high }) => {
            let (low, high) = (low * unit, high * unit);
            let range = high - low;
            bail!(
                "--sigma: expected at most {range:.4}, since the values go from {low:.4} to {high:.4}, found {sigma}; {scale}"
            )
        }
        Some(SigmaDoubt::FarAbove { estimate }) => format!(
            "--sigma {sigma} is far above the noise that the values seem to have, {:.3}: details may be lost (noise that neighbours share \
             is underestimated)",
            estimate * unit
        ),
        Some(SigmaDoubt::FarBelow { estimate }) => format!(
            "--sigma {sigma} is far below the noise that the values seem to have, {:.3}: most of it may stay (fine texture counts as \
             noise too)",
            estimate * unit
        ),
        _ => return Ok(None),
    };
    Ok(Some(format!("{doubt}; {scale}, and without --sigma it is estimated")))
}

/// Writes a signal as a WAV file of 32-bit floats.
fn write_recording(path: &Path, signal: &Sample<f32>, rate: u32) -> Result<()> {
    let channels: Vec<Vec<f32>> = signal.data().chunks_exact(signal.shape().width).map(<[f32]>::to_vec).collect();
    wav::write(path, &channels, rate)
}

/// The largest side of pictures on a page.
const ON_PAGE: u32 = 1000;
/// Differences are drawn up to this share of the image's range.
const CONTRAST: f64 = 0.2;

/// Draws an image before and after, and the difference: to the clean one where there is one, else to what was given.
fn pictures(
    image: &Sample<f32>,
    restored: &Sample<f32>,
    clean: Option<&Clean<f32>>,
    about: &Restored,
) -> Result<Triplet> {
    let (low, high) = clean.map_or(restored, |clean| &clean.sample).extremes();
    let scale = CONTRAST * (high - low);
    let png = |sample: &Sample<f32>| image_gray(sample, low, high).at_most(ON_PAGE).png_bytes();
    let other = clean.map_or(image, |clean| &clean.sample);
    // Of an image of another size or colour there is no difference.
    let other = if other.shape() == restored.shape() { other } else { restored };
    let words = about.words().join(", ");
    Ok(Triplet {
        name: about.name.clone(),
        original_png: png(image)?,
        reconstruction_png: png(restored)?,
        difference_png: difference(other, restored, scale)?.at_most(ON_PAGE).png_bytes()?,
        scale: Some(scale),
        caption: words,
    })
}

/// The file to write, and how it is stored if it is a picture.
struct Planned {
    out: PathBuf,
    style: Option<Style>,
}

/// Returns what is to be written, in the order of the images; of those that cannot be read why not.
fn planned(
    args: &Restoring,
    source: &Source,
    references: &References,
    factor: usize,
    files: &mut Outputs,
    console: &Console,
) -> Result<Vec<Result<Planned>>> {
    files.read("one of the images", source.files());
    files.read("one of the references", references.files());
    files.read("the model", &args.model);
    if let Some(path) = &args.report {
        files.find("--report", path)?;
    }
    let styles: Vec<Result<Option<Style>>> =
        (0..source.len()).map(|i| source.picture(i).map(Style::of).transpose()).collect();
    say_dropped(source, &styles, console);
    let ending = |(i, style): (usize, &Result<Option<Style>>)| {
        let (picture, style) = (source.picture(i), style.as_ref().ok().copied().flatten());
        // The ending as it was, unless it tells of another format than the file has.
        let given = picture.and_then(Path::extension).and_then(|ending| ending.to_str());
        let fits = |ending: &&str| {
            style.is_some_and(|style| style.format.extensions_str().contains(&ending.to_ascii_lowercase().as_str()))
        };
        let array = if source.recording(i).is_some() { "wav" } else { "npy" };
        given.filter(fits).or(style.map(Style::ending)).unwrap_or(array).to_owned()
    };
    let endings: Vec<String> = styles.iter().enumerate().map(ending).collect();
    let names = source.file_names(&endings);
    let (mut planned, mut n_there) = (Vec::new(), 0);
    for ((i, style), name) in styles.into_iter().enumerate().zip(names) {
        let style = match style {
            Ok(style) => style,
            Err(why) => {
                planned.push(Err(why));
                continue;
            }
        };
        let out = args.out.join(name);
        let is_there = files.write("--out", &out)?;
        if is_there && args.skip_existing && style.is_some() {
            ensure_fits(source, i, factor, &out)?;
        }
        n_there += usize::from(is_there);
        planned.push(Ok(Planned { out, style }));
    }
    if args.skip_existing {
        say_existing("result", n_there, source.len(), &args.out, true, console);
    }
    Ok(planned)
}

/// Says what of the photos is not in the results.
fn say_dropped(source: &Source, styles: &[Result<Option<Style>>], console: &Console) {
    let has_alpha: fn(&Style) -> bool = |style| style.has_alpha;
    let has_exif: fn(&Style) -> bool = |style| style.has_exif;
    for (has, what, it_is) in [
        (has_alpha, "an alpha channel (opacity)", "it is"),
        (has_exif, "notes of the camera (EXIF: date, place, how it was held)", "they are"),
    ] {
        let with: Vec<usize> =
            (0..styles.len()).filter(|i| matches!(&styles[*i], Ok(Some(style)) if has(style))).collect();
        if let Some(first) = with.first() {
            let these = share(with.len(), styles.len(), "image", ["has", "have"]);
            console.say(format!("{these} {what}, {} first: {it_is} not in the result", source.name(*first)));
        }
    }
}

/// Refuses a picture that is there already and of another size than the result for image `index` would have.
fn ensure_fits(source: &Source, index: usize, factor: usize, out: &Path) -> Result<()> {
    let there = Source::open(&[out.to_owned()], &SourceOptions::default()).and_then(|there| there.size(0));
    // What cannot be read has no size to differ in.
    let (Ok([_, height, width]), Ok([_, high, wide])) = (source.size(index), there) else { return Ok(()) };
    let (height, width) = (height * factor, width * factor);
    ensure!(
        (height, width) == (high, wide),
        "--skip-existing: {}: expected the result for {}, of {height}x{width} pixels, found {high}x{wide}; restore all anew without \
         --skip-existing, or name another --out",
        out.display(),
        source.name(index)
    );
    Ok(())
}

impl Restored {
    /// What there is to tell, but for the name.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.sigma.map(|sigma| format!("sigma {sigma:.3}")));
        if let Some(quality) = self.quality {
            let before = quality.before.map_or(String::new(), |before| format!(" (was {before:.2})"));
            // That of photos is white.
            let peak = if quality.peak == 1.0 { String::new() } else { format!(" (peak {:.4})", quality.peak) };
            words.push(format!("PSNR {:.2} dB{before}{peak}", quality.psnr));
            words.extend(quality.ssim.map(|ssim| format!("SSIM {ssim:.4}")));
        }
        words.push(format!("{:.1} s", self.seconds));
        words
    }
}

/// Prints one line per image where there is something to tell, and the mean.
fn tell(args: &Restoring, all: &[Restored], skipped: usize, kind: &str, console: &Console) -> Result<()> {
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
                "psnr": r.quality.map(|q| q.psnr), "psnr_peak": r.quality.map(|q| q.peak), "ssim": r.quality.and_then(|q| q.ssim), "seconds": r.seconds,
            })
        };
        let images: Vec<_> = all.iter().map(image).collect();
        let result =
            json!({ "images": images, "psnr": mean_psnr, "ssim": mean_ssim, "seconds": seconds, "skipped": skipped });
        return console.result(result.to_string());
    }
    for r in all {
        let words: Vec<String> = [r.name.clone()].into_iter().chain(r.words()).collect();
        console.result(words.join("  "))?;
    }
    if let (Some(psnr), true) = (mean_psnr, all.len() > 1) {
        let ssim = mean_ssim.map_or(String::new(), |ssim| format!("  SSIM {ssim:.4}"));
        console.result(format!("mean  PSNR {psnr:.2} dB{ssim}"))?;
    }
    let skips = if skipped == 0 { String::new() } else { format!(", {} skipped", counted(skipped, kind)) };
    console.result(format!("{} in {}{skips}", counted(all.len(), kind), args.out.display()))
}
