//! Data on disk: samples in, codes and reconstructions out.
//!
//! [`Source`] opens what the command line names (image files, folders of images, `.npy`, `.npz`, `.mat`), joins it into
//! one numbered list, and hands the library one sample at a time. [`folder`], [`pattern`] and [`list`] find files. Each
//! format has its file: [`mod@image`] and [`pages`] decode pictures; [`npy`], [`npz`] and [`mat`] turn a header that was
//! checked against the file's length into an [`array::Array`]; [`axes`] says what its axes mean and [`stack`] cuts it
//! into samples. [`select`] and [`hold_out`] choose among the samples; [`resize`] and [`crop`] change what is seen of
//! each. [`codes`] and [`mod@write`] are the way out. Nothing here prints; every message names the file, what was expected
//! and what was found.
//!
//! What is held in memory: the paths of images, never their pixels; for arrays that lie in their file sample after
//! sample (`.npy` and `numpy.savez` archives as (N, H, W), uncompressed `.mat` as (H, W, N)) nothing; other arrays as
//! a whole, in the file's own type.

pub(crate) mod array;
pub(crate) mod axes;
pub(crate) mod codes;
mod crop;
mod folder;
mod hold_out;
mod image;
mod list;
mod mat;
mod npy;
mod npz;
mod pages;
mod pattern;
mod resize;
mod select;
mod stack;
mod stems;
#[cfg(test)]
mod tests;
pub(crate) mod write;

pub(crate) use axes::Axes;
pub(crate) use list::named_by as list_named_by;
pub(crate) use resize::Resize;

use anyhow::{Context, Result, anyhow, bail, ensure};
use axes::Convention;
use crop::Crop;
use ocsc::{Error, Real, Sample, Samples};
use pages::Pages;
use stack::Stack;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to read the data.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceOptions {
    /// The meaning of the axes of arrays; of images only whether the pages of a file are the depth of one sample.
    pub(crate) axes: Option<Axes>,
    /// Search folders to any depth.
    pub(crate) recursive: bool,
    /// Scale every sample.
    pub(crate) resize: Option<Resize>,
    /// Then keep a piece of it: one length for every axis, or one per axis.
    pub(crate) crop: Option<Vec<usize>>,
    /// Says where the pieces for learning are cut.
    pub(crate) seed: u64,
}

/// The samples of all data named in one call, in the order named, or those chosen among them.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    parts: Arc<Vec<Part>>,
    /// The numbers of the samples in use, ascending; none if all are.
    chosen: Option<Vec<usize>>,
    len: usize,
    resize: Option<Resize>,
    crop: Option<Crop>,
    seed: u64,
}

/// One image file, or one array, of one or more samples.
#[derive(Debug)]
struct Part {
    /// The number of its first sample in the source.
    first: usize,
    len: usize,
    /// What messages call it: the path, and the array where a file holds several.
    name: String,
    stem: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Image(PathBuf),
    Pages(Pages),
    Array(Stack),
}

impl Source {
    /// Opens every path; `file.npz:NAME` and `file.mat:NAME` pick one array of several, `@list.txt` stands for the paths
    /// in a list.
    pub(crate) fn open(paths: &[PathBuf], options: &SourceOptions) -> Result<Self> {
        ensure!(!paths.is_empty(), "no data named; expected {}", expected());
        let mut opening = Opening { parts: Vec::new(), len: 0, recursive: options.recursive };
        for path in paths {
            let opened = opening.add_named(path, options.axes.as_ref());
            opened.map_err(|e| anyhow!("{}: {e:#}", path.display()))?;
        }
        let Opening { mut parts, len, .. } = opening;
        let wish = |part: &Part| stems::Wish { stem: part.stem.clone(), count: part.len };
        let stems = stems::assign(&parts.iter().map(wish).collect::<Vec<_>>());
        for (part, stem) in parts.iter_mut().zip(stems) {
            part.stem = stem;
        }
        let (resize, seed) = (options.resize, options.seed);
        let mut source = Source { parts: Arc::new(parts), chosen: None, len, resize, crop: None, seed };
        source.crop = options.crop.as_ref().map(|lengths| Crop::new(lengths, source.rank())).transpose()?;
        if let Some(signals) = source.parts.iter().find(|part| resize.is_some() && part.rank() == 1) {
            bail!("{}: --resize: expected images or volumes, found signals", signals.name);
        }
        Ok(source)
    }

    /// How many samples there are, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What messages call sample `index`: `photos/cat.jpg`, `train.npy[3]`.
    pub(crate) fn name(&self, index: usize) -> String {
        self.find(index).map_or_else(|| format!("sample {index}"), |(part, i)| part.name(i))
    }

    /// A file name without ending for what is computed from sample `index`; no two samples share one.
    pub(crate) fn file_stem(&self, index: usize) -> String {
        let name = self.find(index).map(|(part, i)| stems::numbered(&part.stem, i, part.len));
        name.unwrap_or_else(|| format!("sample-{index}"))
    }

    /// Whether all samples come from image files (true) or from arrays (false); none if both occur.
    pub(crate) fn is_images(&self) -> Option<bool> {
        let is_image = |part: &Part| matches!(part.content, Content::Image(_) | Content::Pages(_));
        let first = self.find(0).is_some_and(|(part, _)| is_image(part));
        self.used().all(|part| is_image(part) == first).then_some(first)
    }

    /// The most spatial axes that any sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        self.used().map(Part::rank).max().unwrap_or(2)
    }

    /// Depth, height and width of sample `index`; of an image only the header is read.
    pub(crate) fn size(&self, index: usize) -> Result<[usize; 3]> {
        let (part, i) = self.find(index).with_context(|| self.beyond(index))?;
        let size = part.size().and_then(|size| self.resize.map_or(Ok(size), |resize| resize.size(size)));
        let size = size.map_err(|e| anyhow!("{}: {e:#}", part.name(i)))?;
        Ok(self.crop.map_or(size, |crop| crop.size(size)))
    }

    /// The part that holds sample `index`, and its number there.
    fn find(&self, index: usize) -> Option<(&Part, usize)> {
        let number = self.number(index)?;
        let part = self.parts[..self.parts.partition_point(|p| p.first <= number)].last()?;
        Some((part, number - part.first)).filter(|(part, i)| *i < part.len)
    }

    /// The number of sample `index` among all that were opened.
    fn number(&self, index: usize) -> Option<usize> {
        match &self.chosen {
            Some(chosen) => chosen.get(index).copied(),
            None => Some(index).filter(|i| *i < self.len),
        }
    }

    /// The parts that hold a sample in use.
    fn used(&self) -> impl Iterator<Item = &Part> {
        let holds_chosen = |part: &&Part| match &self.chosen {
            Some(chosen) => {
                chosen.get(chosen.partition_point(|n| *n < part.first)).is_some_and(|n| *n < part.first + part.len)
            }
            None => true,
        };
        self.parts.iter().filter(holds_chosen)
    }

    /// Sample `index`, resized and then cut.
    fn read<T: Real>(
        &self,
        index: usize,
        cut: impl Fn(&Crop, Sample<T>) -> Result<Sample<T>>,
    ) -> ocsc::Result<Sample<T>> {
        let Some((part, i)) = self.find(index) else { return Err(Error::Source(self.beyond(index))) };
        let sample = match &part.content {
            Content::Image(path) => image::read(path),
            Content::Pages(pages) => pages.get(i),
            Content::Array(stack) => stack.get(i),
        };
        let resized = sample.and_then(|sample| match &self.resize {
            Some(resize) => resize.apply(sample),
            None => Ok(sample),
        });
        let cropped = resized.and_then(|sample| match &self.crop {
            Some(crop) => cut(crop, sample),
            None => Ok(sample),
        });
        cropped.map_err(|e| Error::Source(format!("{}: {e:#}", part.name(i))))
    }

    fn beyond(&self, index: usize) -> String {
        format!("sample {index}: expected a number below {}", self.len)
    }
}

impl Part {
    /// What messages call its sample `i`.
    fn name(&self, i: usize) -> String {
        if self.len == 1 { self.name.clone() } else { format!("{}[{i}]", self.name) }
    }

    /// How many spatial axes its samples have.
    fn rank(&self) -> usize {
        match &self.content {
            Content::Image(_) => 2,
            Content::Pages(pages) => pages.rank(),
            Content::Array(stack) => stack.rank(),
        }
    }

    /// Depth, height and width of its samples.
    fn size(&self) -> Result<[usize; 3]> {
        match &self.content {
            Content::Image(path) => image::size(path),
            Content::Pages(pages) => Ok(pages.size()),
            Content::Array(stack) => Ok(stack.size()),
        }
    }
}

/// The parts of a source, while they are opened.
struct Opening {
    parts: Vec<Part>,
    len: usize,
    recursive: bool,
}

impl Opening {
    /// Adds what a path, a pattern or a list stands for.
    fn add_named(&mut self, path: &Path, axes: Option<&Axes>) -> Result<()> {
        if let Some(file) = list::named_by(path) {
            for line in list::read(&file)? {
                let path = list::folder(&file).join(&line.text);
                let added = self.add_matching(&path, axes);
                added.map_err(|e| anyhow!("line {}: {}: {e:#}", line.number, path.display()))?;
            }
            return Ok(());
        }
        self.add_matching(path, axes)
    }

    fn add_matching(&mut self, path: &Path, axes: Option<&Axes>) -> Result<()> {
        if !pattern::is_pattern(split_pick(path).0) {
            return self.add(path, axes);
        }
        for file in pattern::matches(path)? {
            self.add(&file, axes).map_err(|e| anyhow!("{}: {e:#}", file.display()))?;
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, axes: Option<&Axes>) -> Result<()> {
        let (file, pick) = split_pick(path);
        let metadata = std::fs::metadata(file).with_context(|| format!("cannot be read (expected {})", expected()))?;
        if metadata.is_dir() {
            for image in folder::images(file, self.recursive)? {
                self.push_image(&image, axes).map_err(|e| anyhow!("{}: {e:#}", image.display()))?;
            }
            return Ok(());
        }
        let extension = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let stem = stem_of(file);
        match extension.as_str() {
            "npy" => {
                let stack = Stack::new(npy::open(file)?, axes, Convention::Numpy)?;
                self.push(path.display().to_string(), stem, stack.len(), Content::Array(stack))
            }
            "npz" => {
                for (array, stack) in open_npz(file, pick, axes)? {
                    let (name, stem) = match array {
                        Some(a) => (format!("{}:{a}", file.display()), format!("{stem}-{}", stems::clean(&a))),
                        None => (path.display().to_string(), stem.clone()),
                    };
                    self.push(name, stem, stack.len(), Content::Array(stack))?;
                }
                Ok(())
            }
            "mat" => {
                let stack = Stack::new(mat::open(file, pick)?, axes, Convention::Matlab)?;
                self.push(path.display().to_string(), stem, stack.len(), Content::Array(stack))
            }
            _ if image::is_image(file) => {
                ensure!(metadata.len() > 0, "the file is empty; expected an image");
                self.push_image(file, axes)
            }
            "" => bail!("a file without an ending; expected {}", expected()),
            other => bail!("files ending in .{other} are unknown; expected {}", expected()),
        }
    }

    fn push_image(&mut self, path: &Path, axes: Option<&Axes>) -> Result<()> {
        let (name, stem) = (path.display().to_string(), stem_of(path));
        // Only TIFF has pages, and its name nearly always says so: other files are not opened before their turn.
        let ending = path.extension().unwrap_or_default();
        if (ending.eq_ignore_ascii_case("tif") || ending.eq_ignore_ascii_case("tiff")) && pages::is_tiff(path)? {
            let pages = Pages::open(path, axes.is_some_and(|axes| axes.place('D').is_some()))?;
            return self.push(name, stem, pages.len(), Content::Pages(pages));
        }
        self.push(name, stem, 1, Content::Image(path.to_owned()))
    }

    fn push(&mut self, name: String, stem: String, len: usize, content: Content) -> Result<()> {
        self.parts.push(Part { first: self.len, len, name, stem, content });
        self.len = self.len.checked_add(len).context("more samples than can be counted")?;
        Ok(())
    }
}

impl<T: Real> Samples<T> for Source {
    fn len(&self) -> usize {
        Source::len(self)
    }

    fn get(&self, index: usize) -> ocsc::Result<Sample<T>> {
        self.read(index, Crop::middle)
    }

    fn draw(&self, index: usize, pass: usize) -> ocsc::Result<Sample<T>> {
        let number = self.number(index).unwrap_or(index);
        self.read(index, |crop, sample| crop.anywhere(sample, self.seed, number, pass))
    }

    fn name(&self, index: usize) -> String {
        Source::name(self, index)
    }
}

/// The arrays of an archive, each with its name unless it is the only one or was picked.
fn open_npz(path: &Path, pick: Option<&str>, axes: Option<&Axes>) -> Result<Vec<(Option<String>, Stack)>> {
    let mut archive = npz::Npz::open(path)?;
    let names = archive.names();
    let shown = path.display();
    ensure!(!names.is_empty(), "the archive holds no arrays");
    let mut open = |name: &str| Stack::new(archive.array(name)?, axes, Convention::Numpy);
    if let Some(name) = pick {
        ensure!(names.iter().any(|n| n == name), "no array called `{name}`; the archive holds {}", names.join(", "));
        return Ok(vec![(None, open(name).with_context(|| format!("array `{name}`"))?)]);
    }
    if let [sole] = &names[..] {
        return Ok(vec![(None, open(sole).with_context(|| format!("array `{sole}`"))?)]);
    }
    let (mut stacks, mut refused) = (Vec::new(), Vec::new());
    for name in &names {
        match open(name) {
            Ok(stack) => stacks.push((Some(name.clone()), stack)),
            Err(e) => refused.push(format!("`{name}`: {e:#}")),
        }
    }
    ensure!(
        refused.is_empty(),
        "of the arrays {} some cannot be samples ({}); pick one as `{shown}:NAME`",
        names.join(", "),
        refused.join("; ")
    );
    Ok(stacks)
}

/// Splits `file.mat:NAME`; a file that exists under the whole name is taken as it is.
fn split_pick(path: &Path) -> (&Path, Option<&str>) {
    let split = path.to_str().filter(|_| !path.exists()).and_then(|text| {
        let (file, name) = text.rsplit_once(':')?;
        let archive = Path::new(file).extension().is_some_and(|e| e == "npz" || e == "mat");
        (archive && !name.is_empty()).then_some((Path::new(file), Some(name)))
    });
    split.unwrap_or((path, None))
}

fn stem_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Everything that can be opened, for messages.
fn expected() -> String {
    format!("a folder of images, or a file ending in npy, npz, mat, {}", image::EXTENSIONS.join(", "))
}
