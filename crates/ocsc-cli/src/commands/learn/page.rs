//! The pages of one run: `ocsc learn --report`, and what `--live` says of it.

use crate::args::{Learn, Size};
use crate::commands::evaluate::test_rows;
use crate::console::{Console, bytes, counted};
use crate::report::objective::objective_charts;
use crate::report::picture::{dictionary_mosaic, difference, image_gray, is_signal, range_of_difference};
use crate::report::{Report, Triplet, render};
use crate::run::dataset;
use crate::run::model::Prepared;
use crate::run::original::inside;
use crate::run::record::{peak_rss_bytes, read_records};
use crate::run::settings::obeyed;
use crate::run::sparsity::percent;
use anyhow::{Context, Result};
use ocsc::learner::coder;
use ocsc::metrics::psnr;
use ocsc::replace::write_file;
use ocsc::train::{Outcome, Progress, TEST_TOL};
use ocsc::{Learner, Real, Samples};
use ocsc_live::{About, Camera, Live};
use std::path::Path;

/// Samples that are shown.
const SHOWN: usize = 6;
/// The largest side of pictures.
const ON_PAGE: u32 = 800;
/// Differences are drawn up to this share of a sample's range.
const CONTRAST: f64 = 0.25;

/// What a run learned from and was tested on.
pub(super) struct Sets<'a> {
    /// The samples, whole.
    pub(super) samples: &'a Prepared<'a>,
    /// The size of the pieces that it learned from; none of whole samples.
    pub(super) tile: Option<&'a Size>,
    pub(super) tests: Option<&'a Prepared<'a>>,
}

/// Writes the page that is asked for.
pub(super) fn write<T: Real>(
    args: &Learn,
    log: &Path,
    learner: &dyn Learner<T>,
    outcome: &Outcome,
    sets: &Sets<'_>,
    console: &Console,
) -> Result<()> {
    let Some(path) = &args.report else { return Ok(()) };
    let (config, dictionary, progress) = (learner.config(), learner.dictionary(), &outcome.progress);
    let Sets { samples, tile, tests } = *sets;
    let shape = dictionary.shape();
    let pieces = tile.map_or(String::new(), |tile| format!(", in pieces of {tile}"));
    let held_out =
        tests.map_or(String::new(), |tests| format!(", tested on {}", counted(tests.source.len(), "sample")));
    let lead = format!(
        "{} filters of {shape}, learned from {} in {} by {}{pieces}{held_out}.",
        dictionary.n_filters(),
        counted(samples.source.len(), "sample"),
        counted(progress.pass, "pass"),
        config.method
    );
    let mut summary = vec![(
        "learning time".to_owned(),
        format!("{:.2} s ({:.2} s of processors)", progress.seconds, progress.cpu_seconds),
    )];
    summary.extend(outcome.test.iter().flat_map(test_rows));
    summary.extend(peak_rss_bytes().map(|peak| ("peak memory".to_owned(), bytes(peak))));
    let report = Report {
        title: "A dictionary".to_owned(),
        lead,
        summary,
        given: given(args),
        settings: obeyed(config)?,
        dictionary_png: dictionary_mosaic(dictionary).png_bytes()?,
        charts: objective_charts(&read_records(log)?, tile),
        triplets: triplets(learner, tests.unwrap_or(samples))?,
        are_learned: tests.is_none(),
        command: format!("ocsc {}", std::env::args().skip(1).collect::<Vec<_>>().join(" ")),
        ..Report::default()
    };
    write_file(path, render(&report)?).with_context(|| format!("--report {}", path.display()))?;
    console.say(format!("report: {}", path.display()));
    Ok(())
}

/// The data of the call, and the settings that it names.
fn given(args: &Learn) -> Vec<(String, String)> {
    let resumed = args.resume.as_ref().map(|path| format!("--resume {}", dataset::quoted(path)));
    let typed = args.model.typed.iter().map(|word| dataset::quoted(Path::new(word)));
    let words: Vec<String> = resumed.into_iter().chain(typed).collect();
    let settings = if words.is_empty() { "all by default".to_owned() } else { words.join(" ") };
    vec![("data".to_owned(), dataset::words(args)), ("settings".to_owned(), settings)]
}

/// Returns what takes pictures of a run for its live page, which is told settings and data.
pub(super) fn camera<'a, T: Real>(
    live: &Live,
    args: &Learn,
    learner: &dyn Learner<T>,
    begun: &Progress,
    total: Option<usize>,
) -> Result<Camera<'a>> {
    let (config, dictionary) = (learner.config(), learner.dictionary());
    let title = format!("Learning {} of {}", counted(dictionary.n_filters(), "filter"), dictionary.shape());
    let mut rows = vec![("data".to_owned(), dataset::words(args))];
    rows.push(("model".to_owned(), super::out(args)?.display().to_string()));
    rows.extend(obeyed(config)?);
    Ok(live.camera(About { title, rows }, begun.samples, total, total.map(|_| config.passes)))
}

/// Codes the first samples and draws them beside what comes back, both as before preprocessing.
fn triplets<T: Real>(learner: &dyn Learner<T>, samples: &Prepared<'_>) -> Result<Vec<Triplet>> {
    let (config, dictionary) = (learner.config(), learner.dictionary());
    let mut coder = coder(config, dictionary, TEST_TOL)?;
    let border = config.preprocess.blended_border();
    let mut triplets = Vec::new();
    for i in 0..samples.source.len().min(SHOWN) {
        // What cannot be read was told while learning.
        let Ok(sample) = Samples::<T>::get(samples, i) else { continue };
        let coded = coder.code(&sample, None)?;
        let filters = coded.filters_or(dictionary);
        let (original, undo) = samples.original(i)?;
        let back = undo.apply(coded.code.reconstruct(filters, config.boundary)?.cast::<f64>()?)?;
        let (low, high) = original.extremes();
        let scale = CONTRAST * (high - low);
        let peak = if samples.source.is_images() == Some(true) { 1.0 } else { high - low };
        let fidelity = match (inside(&original, border)?, inside(&back, border)?) {
            (Some(a), Some(b)) if peak > 0.0 => format!("PSNR {:.2} dB (peak {peak:.3}), ", psnr(&a, &b, peak)?),
            _ => String::new(),
        };
        let nonzeros = coded.code.nonzeros();
        triplets.push(Triplet {
            name: samples.source.name(i),
            original_png: image_gray(&original, low, high).at_most(ON_PAGE).png_bytes()?,
            reconstruction_png: image_gray(&back, low, high).at_most(ON_PAGE).png_bytes()?,
            difference_png: difference(&original, &back, scale)?.at_most(ON_PAGE).png_bytes()?,
            scale: Some(scale).filter(|_| !is_signal(original.shape())),
            caption: format!(
                "{fidelity}{nonzeros} non-zeros ({} of the values), gap {:.2}\u{a0}%{}",
                percent(nonzeros as f64 / sample.n_observed().max(1) as f64),
                100.0 * coded.relative_gap(),
                range_of_difference(original.shape(), scale)
            ),
        });
    }
    Ok(triplets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser;

    /// The line about settings, of a call with these words.
    fn settings(words: &[&str]) -> String {
        let Command::Learn(args) = Args::parse_from([&["ocsc", "learn", "photos"], words].concat()).command else {
            panic!("expected the options of learn")
        };
        given(&args).into_iter().find(|(name, _)| name == "settings").unwrap().1
    }

    #[test]
    fn a_page_tells_the_settings_that_were_typed_and_no_others() {
        assert_eq!(settings(&["--out", "m", "--tile", "64"]), "all by default");
        let typed = ["--per-channel", "--out", "m", "--size", "5,11x11", "--init", "my filters.npy", "--no-reseed"];
        assert_eq!(settings(&typed), "--init 'my filters.npy' --per-channel --size 5,11x11 --no-reseed");
        assert_eq!(settings(&["--resume", "m", "--passes", "3"]), "--resume m --passes 3");
    }
}
