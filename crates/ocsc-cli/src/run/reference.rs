//! Clean images that results are compared with: `--reference`.

use crate::data::{Source, SourceOptions};
use anyhow::{Context, Result, ensure};
use ocsc::metrics::{psnr, ssim};
use ocsc::{Real, Sample, Samples, Shape};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The least side of images that the similarity is defined for.
const LEAST_SIDE: usize = 11;

/// How near an image is to a clean one: its PSNR before and after, and its similarity.
#[derive(Clone, Copy)]
pub(crate) struct Quality {
    pub(crate) before: Option<f64>,
    pub(crate) psnr: f64,
    /// The peak that both refer to.
    pub(crate) peak: f64,
    pub(crate) ssim: Option<f64>,
}

/// The clean images to compare with.
pub(crate) struct References {
    source: Option<Source>,
    /// The reference of each image.
    pairs: Vec<usize>,
}

impl References {
    /// Finds the reference of each image at `path`, if there is one.
    pub(crate) fn open(path: Option<&Path>, options: &SourceOptions, images: &Source) -> Result<Self> {
        let Some(path) = path else { return Ok(References { source: None, pairs: Vec::new() }) };
        let source = Source::open(&[path.to_owned()], options).context("--reference")?;
        if images.len() == 1 && source.len() == 1 {
            return Ok(References { source: Some(source), pairs: vec![0] });
        }
        let by_stem: HashMap<String, usize> = (0..source.len()).map(|i| (source.file_stem(i), i)).collect();
        let (own, theirs) = (Names::of(images), Names::of(&source));
        let pair = |i: usize| {
            let (stem, name) = (images.file_stem(i), images.own_name(i));
            let told = || format!("--reference {}: expected an image called {}, found none", path.display(), name.0);
            // Of the same file name; else by the place among those of one name; else of the same name with another ending.
            let same = theirs.whole(&name).filter(|_| own.whole(&name).is_some());
            same.or(by_stem.get(&stem).copied()).or(theirs.without_ending(&name)).with_context(told)
        };
        let pairs = (0..images.len()).map(pair).collect::<Result<Vec<_>>>()?;
        Ok(References { source: Some(source), pairs })
    }

    /// The files that are read.
    pub(crate) fn files(&self) -> &[PathBuf] {
        self.source.as_ref().map_or(&[], Source::files)
    }

    /// The clean image of number `index`, which must be of this shape.
    pub(crate) fn clean<T: Real>(&self, index: usize, shape: Shape) -> Result<Option<Clean<T>>> {
        let Some(source) = &self.source else { return Ok(None) };
        let sample: Sample<T> = source.get(self.pairs[index])?;
        ensure!(
            sample.shape() == shape,
            "--reference {}: expected {}, found {}",
            source.name(self.pairs[index]),
            shape,
            sample.shape()
        );
        let peak = match (source.picture(self.pairs[index]), sample.extremes()) {
            (None, (low, high)) if high > low => high - low,
            _ => 1.0,
        };
        Ok(Some(Clean { sample, peak }))
    }
}

/// The numbers of samples by the names of their files.
struct Names {
    whole: HashMap<(String, String), Vec<usize>>,
    without_ending: HashMap<String, Vec<usize>>,
}

impl Names {
    fn of(source: &Source) -> Self {
        let mut names = Names { whole: HashMap::new(), without_ending: HashMap::new() };
        for i in 0..source.len() {
            let name = source.own_name(i);
            names.without_ending.entry(name.0.clone()).or_default().push(i);
            names.whole.entry(name).or_default().push(i);
        }
        names
    }

    /// The only sample of this name and ending.
    fn whole(&self, name: &(String, String)) -> Option<usize> {
        self.whole.get(name).and_then(|found| only(found))
    }

    /// The only sample of this name, whatever its ending.
    fn without_ending(&self, name: &(String, String)) -> Option<usize> {
        self.without_ending.get(&name.0).and_then(|found| only(found))
    }
}

fn only(found: &[usize]) -> Option<usize> {
    match found {
        [only] => Some(*only),
        _ => None,
    }
}

/// A clean image, and the peak of its PSNR: that of photos, 1, or its range.
pub(crate) struct Clean<T> {
    pub(crate) sample: Sample<T>,
    pub(crate) peak: f64,
}

impl<T: Real> Clean<T> {
    /// How near a restored image is, and the image `before`, where there was one of the same shape.
    pub(crate) fn quality(&self, before: Option<&Sample<T>>, restored: &Sample<T>) -> Result<Quality> {
        let (clean, shape, peak) = (&self.sample, self.sample.shape(), self.peak);
        let is_large = shape.height >= LEAST_SIDE && shape.width >= LEAST_SIDE;
        let before = before.filter(|image| image.mask().is_none() && image.shape() == shape);
        let before = before.map(|image| psnr(clean, image, peak)).transpose()?;
        let ssim = if is_large { Some(ssim(clean, restored, peak)?) } else { None };
        Ok(Quality { before, psnr: psnr(clean, restored, peak)?, peak, ssim })
    }
}
