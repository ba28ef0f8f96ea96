//! What every command that uses a model shares: samples preprocessed as the model wants them, and its settings
//! adapted to the call.

use crate::args::PAPER;
use crate::console::Console;
use crate::data::Source;
use anyhow::{Result, bail, ensure};
use ocsc::checkpoint::Saved;
use ocsc::preprocess::{Preprocess, Step, Undo};
use ocsc::settings::Dtype;
use ocsc::{Error, Real, Sample, Samples, Shape, checkpoint};
use std::path::Path;

/// Reads a model file, and says so if nothing tells whether it is as it was written.
pub(crate) fn load<T: Real>(path: &Path, console: &Console) -> Result<Saved<T>> {
    let saved = checkpoint::load(path)?;
    say_unsealed(&saved, path, console);
    Ok(saved)
}

/// Says that a model has no checksum.
pub(crate) fn say_unsealed<T: Real>(saved: &Saved<T>, path: &Path, console: &Console) {
    if saved.checksum.is_none() {
        let path = path.display();
        console.say(format!(
            "{path}: no checksum (written before there were any, or elsewhere): damage would go unnoticed"
        ));
    }
}

/// A source whose samples are preprocessed when they are read.
pub(crate) struct Prepared<'a> {
    pub(crate) source: &'a Source,
    pub(crate) preprocess: &'a Preprocess,
    /// Depth, height and width of all samples, zeros where unknown; empty where nobody needs them.
    sizes: &'a [[u32; 3]],
}

impl<T: Real> Samples<T> for Prepared<'_> {
    fn len(&self) -> usize {
        self.source.len()
    }

    fn get(&self, index: usize) -> ocsc::Result<Sample<T>> {
        self.prepare(index, self.source.get(index)?)
    }

    fn draw(&self, index: usize, pass: usize) -> ocsc::Result<Sample<T>> {
        self.prepare(index, self.source.draw(index, pass)?)
    }

    fn name(&self, index: usize) -> String {
        self.source.name(index)
    }

    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        let size = self.sizes.get(index).filter(|size| **size != [0; 3])?;
        let [depth, height, width] = size.map(|n| n as usize);
        if !self.preprocess.is_per_channel() {
            return Some([depth, height, width]);
        }
        let channels = self.source.seen(index)?.channels;
        Some(self.preprocess.shape(Shape { channels, depth, height, width }).spatial())
    }
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(source: &'a Source, preprocess: &'a Preprocess) -> Self {
        Prepared { source, preprocess, sizes: &[] }
    }

    /// Of these sizes.
    pub(crate) fn sized(self, sizes: &'a [[u32; 3]]) -> Self {
        Prepared { sizes, ..self }
    }
}

impl Prepared<'_> {
    /// In f64 up to the end: contrast normalisation divides by small numbers.
    fn prepare<T: Real>(&self, index: usize, sample: Sample<f64>) -> ocsc::Result<Sample<T>> {
        let prepared = self.preprocess.apply(sample).and_then(Sample::cast);
        prepared.map_err(|e| self.named(index, e))
    }

    /// Sample `index` before preprocessing, or its gray values if that is as far as its reconstruction comes back, and the
    /// way back.
    pub(crate) fn original(&self, index: usize) -> ocsc::Result<(Sample<f64>, Undo)> {
        let original = self.preprocess.original(self.source.get(index)?).map_err(|e| self.named(index, e))?;
        let (_, undo) = self.preprocess.apply_undoable(original.clone()).map_err(|e| self.named(index, e))?;
        Ok((original, undo))
    }

    fn named(&self, index: usize, error: Error) -> Error {
        Error::Source(format!("{}: {error}", self.source.name(index)))
    }
}

/// `auto` and `paper` depend on where the samples come from.
pub(crate) fn preprocessing(text: &str, source: &Source) -> Result<Preprocess> {
    match source.is_images() {
        Some(is_images) => preprocessing_of(text, is_images, source.is_masked()),
        None if !text.starts_with("auto") && text != PAPER => Ok(text.parse()?),
        None => bail!("images and arrays in one call: say what to do with them, e.g. --preprocess gray,lcn,taper"),
    }
}

/// The steps, with `auto` and `paper` for images, or for arrays and signals, of which parts may be unobserved.
pub(crate) fn preprocessing_of(text: &str, is_images: bool, is_masked: bool) -> Result<Preprocess> {
    match text {
        "auto" if is_images => Ok(Preprocess::images()),
        // A taper would mix observed values with others.
        PAPER if is_images && is_masked => Ok("gray,lcn".parse()?),
        PAPER if is_images => Ok(Preprocess::paper()),
        "auto" | PAPER => Ok(Preprocess::default()),
        "auto,per-channel" if is_images => Ok(format!("{},per-channel", Preprocess::images()).parse()?),
        "auto,per-channel" => Ok(Preprocess::new(vec![Step::PerChannel])?),
        steps => Ok(steps.parse()?),
    }
}

/// Checks that no step would mix observed values with unobserved ones.
pub(crate) fn check_masked(preprocess: &Preprocess, is_masked: bool) -> Result<()> {
    let mixes = !preprocess.steps().iter().all(|step| step.takes_masks());
    ensure!(
        !(is_masked && mixes),
        "--preprocess {preprocess} would mix observed and unobserved values; with --mask or --nan-is-missing expected \
         --preprocess without whiten and taper, and a model that was learned so"
    );
    Ok(())
}

/// Returns the advice for codes that miss their tolerance: `more`, and more digits where there are any to have.
pub(crate) fn precision_advice(dtype: Dtype, more: &str) -> String {
    match dtype {
        Dtype::F32 => format!("{more}, or use --dtype f64"),
        Dtype::F64 => more.to_owned(),
    }
}
