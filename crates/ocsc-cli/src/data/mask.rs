//! Masks: which values of a sample were observed.
//!
//! `--mask` names an image, an array or a folder of images, where everything but zero means observed; `--nan-is-missing`
//! takes the NaNs of arrays as unobserved. Masks are read as samples are, by a [`Source`] of their own, and laid on a sample
//! when it is read, before any preprocessing. `--data-weights` names the same with weights from 0 to 1: how much values count.

use super::{Part, Source, SourceOptions, has_ending, stem_of};
use crate::console::{counted, told};
use anyhow::{Context, Result, anyhow, bail, ensure};
use ocsc::{Real, Sample, Samples, Shape};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A sample of these values, where NaN stands for what was not observed, or is refused.
pub(crate) fn sample<S: Real, T: Real>(shape: Shape, values: Vec<S>, nan_is_missing: bool) -> Result<Sample<T>> {
    let any_nan = values.iter().any(|v| v.f64().is_nan());
    let seen = (any_nan && nan_is_missing).then(|| values.iter().map(|v| !v.f64().is_nan()).collect::<Vec<bool>>());
    if let Some(seen) = seen {
        return Ok(Sample::masked(shape, values, seen)?.cast()?);
    }
    let hint = if any_nan {
        "; with --nan-is-missing NaN is unobserved when models are learned and used, and is filled in by `inpaint`"
    } else {
        ""
    };
    Sample::new(shape, values).and_then(Sample::cast).map_err(|e| anyhow!("{e}{hint}"))
}

/// The masks of a source's samples.
#[derive(Debug)]
pub(crate) struct Masks {
    source: Box<Source>,
    /// One mask for all samples, and not one for each, in their order.
    one: bool,
    /// They are weights from 0 to 1.
    is_weights: bool,
}

impl Masks {
    /// Opens masks for `len` samples in `parts`; those of a folder are noted in the parts.
    pub(super) fn open(path: &Path, options: &SourceOptions, parts: &mut [Part], len: usize) -> Result<Self> {
        let options = SourceOptions {
            resize: None,
            crop: None,
            mask: None,
            coefficient_weights: None,
            nan_is_missing: false,
            is_mask: true,
            ..options.clone()
        };
        let source = Box::new(Source::open(&[path.to_owned()], &options)?);
        let lossy = |part: &&Part| part.content.is_image() && has_ending(&part.name, &["jpg", "jpeg"]);
        if let Some(part) = source.parts.iter().find(lossy) {
            bail!("{}: a JPEG's black is not exactly zero; save masks as PNG", part.name);
        }
        let (shown, masks) = (path.display(), source.len());
        if path.is_dir() {
            pair_by_stem(&source, parts).map_err(|e| anyhow!("{shown}: {}", told(&e)))?;
        } else {
            let fits = masks == 1 || masks == len;
            ensure!(fits, "{shown}: expected 1 mask, or one for each of {}, found {masks}", counted(len, "sample"));
        }
        Ok(Masks { source, one: masks == 1, is_weights: options.mask_is_weights })
    }

    /// Opens the mask of all frames of a stream.
    pub(crate) fn for_frames(path: &Path, options: &SourceOptions, size: [usize; 3]) -> Result<Self> {
        let masks = Masks::open(path, options, &mut [], 1)?;
        ensure!(masks.one, "{}: expected one mask for all frames, found {}", path.display(), masks.source.len());
        masks.fits(0, masks.source.size(0)?, size)?;
        Ok(masks)
    }

    /// The files that hold the masks.
    pub(crate) fn files(&self) -> &[PathBuf] {
        self.source.files()
    }

    /// The number of the mask for sample `index`, which lies in `part`.
    fn find(&self, index: usize, part: &Part) -> usize {
        part.mask.unwrap_or(if self.one { 0 } else { index })
    }

    /// Checks that the mask of a sample has its size, from the headers alone.
    pub(super) fn check(&self, index: usize, part: &Part, size: [usize; 3]) -> Result<()> {
        let mask = self.find(index, part);
        self.fits(mask, self.source.size(mask)?, size)
    }

    /// Lays its mask on a sample.
    pub(super) fn apply<T: Real>(&self, index: usize, part: &Part, sample: Sample<T>) -> Result<Sample<T>> {
        self.lay(self.find(index, part), sample)
    }

    /// Lays mask `number` on a sample.
    pub(crate) fn lay<T: Real>(&self, number: usize, sample: Sample<T>) -> Result<Sample<T>> {
        let mask: Sample<f64> = self.source.get(number).context(self.flag())?;
        let (shape, own) = (sample.shape(), mask.shape());
        self.fits(number, own.spatial(), shape.spatial())?;
        if self.is_weights {
            return self.weigh(number, &mask, sample);
        }
        let is_image = self.source.find(number).is_some_and(|(part, _)| part.content.is_image());
        let seen: Vec<bool> = if own.channels == shape.channels && !is_image {
            mask.data().iter().map(|v| *v != 0.0).collect()
        } else {
            let name = self.source.name(number);
            ensure!(
                own.channels == 1 || is_image,
                "--mask {name}: expected 1 channel or {}, found {}",
                shape.channels,
                own.channels
            );
            // A pixel of an image is zero if all its colours are.
            let pixel = |i: usize| mask.data().iter().skip(i).step_by(own.pixels()).any(|v| *v != 0.0);
            (0..own.pixels()).map(pixel).collect()
        };
        let (shape, data, missing) = sample.into_parts();
        let both = match missing {
            None => seen,
            Some(known) => known.into_iter().enumerate().map(|(i, known)| known && seen[i % seen.len()]).collect(),
        };
        Sample::masked(shape, data, both).with_context(|| format!("--mask {}", self.source.name(number)))
    }

    fn flag(&self) -> &'static str {
        if self.is_weights { "--data-weights" } else { "--mask" }
    }

    /// Gives a sample the weights that `mask` holds: one for every value, or one for every pixel.
    fn weigh<T: Real>(&self, number: usize, mask: &Sample<f64>, sample: Sample<T>) -> Result<Sample<T>> {
        let (own, name) = (mask.shape(), self.source.name(number));
        let (channels, wanted) = (own.channels, sample.shape().channels);
        ensure!(
            channels == 1 || channels == wanted,
            "--data-weights {name}: expected 1 channel or {wanted}, found {channels}"
        );
        let weights = mask.data().iter().map(|w| T::of(*w)).collect();
        sample.with_weights(weights).with_context(|| format!("--data-weights {name}"))
    }

    fn fits(&self, mask: usize, found: [usize; 3], expected: [usize; 3]) -> Result<()> {
        let show = |[depth, height, width]: [usize; 3]| Shape { channels: 1, depth, height, width }.to_string();
        ensure!(
            found == expected,
            "{} {}: expected {} as the sample has, found {}",
            self.flag(),
            self.source.name(mask),
            show(expected),
            show(found)
        );
        Ok(())
    }
}

/// Notes for every part the mask with its stem: `cat.png` masks `cat.jpg`.
fn pair_by_stem(masks: &Source, parts: &mut [Part]) -> Result<()> {
    let mut numbers = HashMap::new();
    for mask in masks.parts.iter() {
        if let Some(other) = numbers.insert(stem_of(Path::new(&mask.name)), mask.first) {
            bail!("{} and {} are masks of the same name; expected one", masks.name(other), mask.name);
        }
    }
    for part in parts {
        ensure!(part.len == 1, "{} holds {} samples; their masks must be an array as well", part.name, part.len);
        let found = numbers.get(&part.stem).copied();
        part.mask = Some(found.with_context(|| format!("no mask for {}; expected {}.png", part.name, part.stem))?);
    }
    Ok(())
}
