//! What learned dictionaries are worth in use: photos denoised and filled in with each, at an equal number of filters.
//!
//! The photos are gray and were not learned from. White noise is added, or a share of the pixels is hidden, the same for all
//! dictionaries. [`ocsc::restore`] restores them without adapting the filters to the photo, so that what differs is the
//! dictionary alone.

use super::NOT_RUN;
use super::cell::Cell;
use super::curves::{best, measured, shown};
use super::runs::{Run, Runs};
use super::settings::Restoring;
use super::t_test::{BySeed, Summary};
use crate::console::{Console, Interrupted, interrupted};
use crate::data::{Source, SourceOptions};
use crate::interrupt::UntilInterrupted;
use crate::report::picture::dictionary_mosaic;
use crate::report::{Entry, Section, Table};
use crate::run::model::Prepared;
use anyhow::{Context, Result};
use ocsc::metrics::psnr;
use ocsc::preprocess::Preprocess;
use ocsc::restore::{Options, denoise, inpaint};
use ocsc::{Error, Sample, Samples, checkpoint};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::path::{Path, PathBuf};

/// The names of the series that are measured, (photo, PSNR).
const NOISY: &str = "noisy";
const DENOISED: &str = "denoised";
const INPAINTED: &str = "inpainted";
/// Photos go from 0 to 1; the standard deviation of noise is told on the scale of 0 to 255.
const PEAK: f64 = 1.0;
const LEVELS: f64 = 255.0;

/// Restores all photos with the dictionary that the cell learned.
pub(super) fn measure(
    mut cell: Cell,
    settings: &Restoring,
    data: &Path,
    folder: &Path,
    console: &Console,
) -> Result<Cell> {
    let saved = checkpoint::load::<f32>(&cell.file(folder, ".safetensors"))?;
    let photos = photos(settings, data)?;
    let gray: Preprocess = "gray".parse()?;
    let photos = Prepared::new(&photos, &gray);
    console.say(format!("  restoring {} photos with its filters", Samples::<f32>::len(&photos)));
    let options = Options { learn_here: false, dictionary: Some(saved.dictionary), ..Options::default() };
    for i in 0..Samples::<f32>::len(&photos) {
        let clean: Sample<f32> = photos.get(i)?;
        let (noisy, sigma) = noisy(&clean, settings.sigma, i as u64)?;
        let denoised = denoise(&noisy, &Options { sigma: Some(sigma), ..options.clone() }, &UntilInterrupted);
        let denoised = denoised.map_err(|error| stopped(error, &cell))?;
        let hidden = hidden(&clean, settings.hidden, i as u64)?;
        let inpainted = inpaint(&hidden, &options, &UntilInterrupted).map_err(|error| stopped(error, &cell))?;
        for (name, image) in [(NOISY, &noisy), (DENOISED, &denoised), (INPAINTED, &inpainted)] {
            let value = psnr(&clean, image, PEAK)?;
            cell.series.entry(name.to_owned()).or_default().push((i as f64, value));
        }
    }
    cell.save(folder)?;
    Ok(cell)
}

/// The photos, all of one size.
fn photos(settings: &Restoring, data: &Path) -> Result<Source> {
    let paths: Vec<PathBuf> = settings.photos.iter().map(|name| data.join(name)).collect();
    let side = settings.side.to_string();
    let options = SourceOptions {
        resize: Some(side.parse().context("side")?),
        crop: Some(vec![settings.side]),
        ..SourceOptions::default()
    };
    Source::open(&paths, &options).context("photos")
}

/// An interrupt says which cell it met.
fn stopped(error: Error, cell: &Cell) -> anyhow::Error {
    match error {
        Error::Stopped if interrupted() => Interrupted(format!("{}: interrupted", cell.title())).into(),
        other => other.into(),
    }
}

/// The photo with white noise, and its standard deviation in the photo's units.
fn noisy(clean: &Sample<f32>, sigma: f64, seed: u64) -> Result<(Sample<f32>, f64)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let deviation = sigma / LEVELS;
    let noise = |value: &f32| {
        let normal: f32 = StandardNormal.sample(&mut rng);
        value + deviation as f32 * normal
    };
    Ok((Sample::new(clean.shape(), clean.data().iter().map(noise).collect())?, deviation))
}

/// The photo with this share of its pixels hidden.
fn hidden(clean: &Sample<f32>, share: f64, seed: u64) -> Result<Sample<f32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let observed: Vec<bool> = clean.data().iter().map(|_| rng.random_bool(1.0 - share)).collect();
    Ok(Sample::masked(clean.shape(), clean.data().to_vec(), observed)?)
}

pub(super) fn section(runs: &Runs) -> Result<Section> {
    let mut section = Section { tables: vec![table(runs)], ..Section::default() };
    for method in runs.methods() {
        let Some(run) = runs.done(method).next() else { continue };
        let saved = checkpoint::load::<f32>(&run.cell.file(&run.folder, ".safetensors"))?;
        section.mosaics.push((method.clone(), dictionary_mosaic(&saved.dictionary).png_bytes()?));
    }
    Ok(section)
}

fn table(runs: &Runs) -> Table {
    let [noisy, denoised, inpainted] =
        [NOISY, DENOISED, INPAINTED].map(|name| measured(runs, |run| mean_of(run, name)));
    let given = noisy
        .iter()
        .find_map(Summary::of_seeds)
        .map_or(String::new(), |noisy| format!(" The noisy photos have {:.2} dB.", noisy.mean));
    let settings = runs.settings.restoring.clone().unwrap_or_default();
    let mut table = Table {
        title: "Dictionaries in use".to_owned(),
        note: format!(
            "PSNR in dB with the peak of 8-bit photos, 255: the mean over the photos, and mean and deviation over the seeds that learned. \
             Denoising takes out white noise of standard deviation {}, inpainting fills in {:.0} % of the pixels; noise and hidden \
             pixels are the same for all. Bold: the highest, and those that a paired t-test over the seeds (95 %) cannot tell from \
             it.{given}",
            settings.sigma,
            100.0 * settings.hidden
        ),
        ..Table::default()
    };
    table.head = ["method", "denoising", "inpainting", "learning time (s)", "runs"].map(str::to_owned).to_vec();
    let [best_denoised, best_inpainted] = [&denoised, &inpainted].map(|values| best(values, |a, b| a > b));
    let time = measured(runs, Run::cpu_seconds);
    for (i, method) in runs.methods().iter().enumerate() {
        let text = |values: &BySeed| Summary::of_seeds(values).map_or("-".to_owned(), |s| shown(s, 2));
        let n = runs.done(method).count();
        table.rows.push(vec![
            Entry::plain(method),
            Entry { text: text(&denoised[i]), best: best_denoised[i] },
            Entry { text: text(&inpainted[i]), best: best_inpainted[i] },
            Entry::plain(text(&time[i])),
            Entry::plain(if n == 0 { NOT_RUN.to_owned() } else { n.to_string() }),
        ]);
    }
    table
}

/// The mean over the photos.
fn mean_of(run: &Run, name: &str) -> Option<f64> {
    let values: Vec<f64> = run.cell.series.get(name)?.iter().map(|point| point.1).collect();
    Summary::of(&values).map(|summary| summary.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocsc::Shape;

    #[test]
    fn noise_and_hidden_pixels_are_as_told_and_the_same_for_all() {
        let clean = Sample::<f32>::new(Shape::image(64, 64), vec![0.5; 64 * 64]).unwrap();
        let (one, deviation) = noisy(&clean, 25.0, 3).unwrap();
        assert!((deviation - 25.0 / 255.0).abs() < 1e-12);
        let expected = -20.0 * deviation.log10();
        assert!((psnr(&clean, &one, PEAK).unwrap() - expected).abs() < 0.2, "{expected}");
        assert_eq!(one.data(), noisy(&clean, 25.0, 3).unwrap().0.data());
        assert_ne!(one.data(), noisy(&clean, 25.0, 4).unwrap().0.data());
        let share = hidden(&clean, 0.25, 3).unwrap().n_observed() as f64 / 4096.0;
        assert!((share - 0.75).abs() < 0.03, "{share}");
    }
}
