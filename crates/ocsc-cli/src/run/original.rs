//! The way back to the data as they were before preprocessing.
//!
//! Codes and dictionary know the prepared samples only. What preprocessing took out of a sample is found again by
//! repeating it on the original.

use crate::data::Facts;
use crate::data::tiff::write::InStack;
use crate::run::model::Prepared;
use crate::run::pairing::pair;
use anyhow::{Context, Result};
use ocsc::comm::{Comm, all_gather};
use ocsc::metrics::psnr;
use ocsc::{Real, Sample, Shape};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Pixels of image files are numbers from 0 to 1.
const FULL_SCALE: f64 = 1.0;

/// The data that were coded, by the names that their codes have.
pub(crate) struct Originals<'a> {
    samples: Prepared<'a>,
    /// The number of the sample that each code was made of.
    pairs: HashMap<PathBuf, usize>,
}

impl<'a> Originals<'a> {
    pub(crate) fn new(samples: Prepared<'a>, codes: &[PathBuf], facts: &[Facts]) -> Result<Self> {
        let pairs = pair(samples.source, codes, facts).context("--original")?;
        Ok(Originals { samples, pairs: codes.iter().cloned().zip(pairs).collect() })
    }

    /// The reconstruction from the code at `path` in the original domain, and the range from black to white in which
    /// to draw it beside its original.
    pub(crate) fn bring_back(&self, path: &Path, reconstruction: Sample<f64>) -> Result<(Sample<f64>, (f64, f64))> {
        let source = self.samples.source;
        let index = self.pairs.get(path).context("--original: expected one of the codes that were paired")?;
        let (original, undo) = self.samples.original(*index)?;
        let range = if source.is_images() == Some(true) { (0.0, FULL_SCALE) } else { original.extremes() };
        let back = undo.apply(reconstruction).with_context(|| source.name(*index))?;
        Ok((back, range))
    }
}

impl Originals<'_> {
    /// The name of the file of pages that the code at `path` was made of, and where its sample lies in it; none of other files.
    pub(crate) fn in_stack(&self, path: &Path) -> Result<Option<(String, InStack)>> {
        self.pairs.get(path).map_or(Ok(None), |index| self.samples.source.in_stack(*index))
    }
}

/// A sample without so much of its border in every plane; none if nothing is left.
pub(crate) fn inside(sample: &Sample<f64>, border: usize) -> ocsc::Result<Option<Sample<f64>>> {
    let shape = sample.shape();
    // A line has no rows to leave out.
    let rows = if shape.height == 1 { 0 } else { border };
    if border == 0 {
        return Ok(Some(sample.clone()));
    }
    if shape.width <= 2 * border || shape.height <= 2 * rows {
        return Ok(None);
    }
    let small = Shape { height: shape.height - 2 * rows, width: shape.width - 2 * border, ..shape };
    let lines = sample.data().chunks_exact(shape.width).enumerate();
    let kept = lines.filter(|(i, _)| (rows..shape.height - rows).contains(&(i % shape.height)));
    let data = kept.flat_map(|(_, line)| line[border..shape.width - border].iter().copied()).collect();
    Sample::new(small, data).map(Some)
}

/// The mean PSNR of reconstructions in the domain of the originals. The peak is the full scale of image files, and of
/// arrays, which have none, the range of all of them.
pub(crate) struct Fidelity<'a> {
    samples: &'a Prepared<'a>,
    /// The number of each sample, its PSNR with peak 1, and its smallest and largest value.
    measures: Vec<[f64; 4]>,
}

impl<'a> Fidelity<'a> {
    pub(crate) fn new(samples: &'a Prepared<'a>) -> Self {
        Fidelity { samples, measures: Vec::new() }
    }

    /// Brings the reconstruction of sample `index` back and compares, but for the border where a taper blended it. Returns what came
    /// back, and its PSNR with peak 1, where anything but border is left.
    pub(crate) fn add<T: Real>(
        &mut self,
        index: usize,
        reconstruction: &Sample<T>,
    ) -> ocsc::Result<(Sample<f64>, Option<f64>)> {
        let (original, undo) = self.samples.original(index)?;
        let back = undo.apply(reconstruction.clone().cast()?)?;
        let (low, high) = original.extremes();
        let border = self.samples.preprocess.blended_border();
        let psnr = match (inside(&original, border)?, inside(&back, border)?) {
            (Some(original), Some(back)) => Some(psnr(&original, &back, 1.0)?),
            _ => None,
        };
        self.measures.extend(psnr.map(|psnr| [index as f64, psnr, low, high]));
        Ok((back, psnr))
    }

    /// Adds what the others measured.
    pub(crate) fn all_gather(&mut self, comm: &dyn Comm) {
        let mine: Vec<u8> = self.measures.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let all = all_gather(comm, &mine).concat();
        let numbers = all.as_chunks().0.iter().map(|v| f64::from_le_bytes(*v)).collect::<Vec<_>>();
        self.measures = numbers.as_chunks().0.to_vec();
        self.measures.sort_by(|a, b| a[0].total_cmp(&b[0]));
    }

    /// The mean in decibels and its peak.
    pub(crate) fn psnr(&self) -> Option<(f64, f64)> {
        let images = self.samples.source.is_images() == Some(true);
        let low = self.measures.iter().map(|m| m[2]).fold(f64::INFINITY, f64::min);
        let high = self.measures.iter().map(|m| m[3]).fold(f64::NEG_INFINITY, f64::max);
        let peak = if images { FULL_SCALE } else { high - low };
        // As in the library's evaluation: samples that are all one constant have no range.
        let scale = if peak > 0.0 { peak } else { 1.0 };
        let sum: f64 = self.measures.iter().map(|m| m[1]).sum();
        (!self.measures.is_empty()).then(|| (sum / self.measures.len() as f64 + 20.0 * scale.log10(), peak))
    }
}

impl fmt::Display for Fidelity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = self.samples.source.is_images() == Some(true);
        let what = if images { "the full scale" } else { "the range of the samples" };
        match self.psnr() {
            Some((psnr, peak)) => write!(f, "{psnr:.2} dB (peak {peak:.4}: {what} before preprocessing)"),
            None => f.write_str("none: an edge taper cannot be undone, and nothing but border is left"),
        }
    }
}
