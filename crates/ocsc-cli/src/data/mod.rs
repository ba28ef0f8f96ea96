//! Data on disk: samples in, codes and reconstructions out.
//!
//! [`Source`] opens what the command line names (image files, folders of images, `.npy`, `.npz`, `.mat`), joins it into
//! one numbered list, and hands the library one sample at a time. Each format has its file: [`mod@image`] decodes
//! pictures; [`npy`], [`npz`] and [`mat`] turn a header that was checked against the file's length into an
//! [`array::Array`]; [`axes`] says what its axes mean and [`stack`] cuts it into samples. [`codes`] and [`write`] are
//! the way out. Nothing here prints; every message names the file, what was expected and what was found.
//!
//! What is held in memory: the paths of images, never their pixels; for arrays that lie in their file sample after
//! sample (`.npy` and `numpy.savez` archives as (N, H, W), uncompressed `.mat` as (H, W, N)) nothing; other arrays as
//! a whole, in the file's own type.

pub(crate) mod array;
pub(crate) mod axes;
pub(crate) mod codes;
mod folder;
mod image;
mod mat;
mod npy;
mod npz;
mod stack;
mod stems;
#[cfg(test)]
mod tests;
pub(crate) mod write;

pub(crate) use axes::Axes;

use anyhow::{Context, Result, anyhow, bail, ensure};
use axes::Convention;
use ocsc::{Error, Real, Sample, Samples};
use stack::Stack;
use std::path::{Path, PathBuf};

/// How to read the data.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceOptions {
    /// The meaning of the axes of arrays; images have no use for it.
    pub(crate) axes: Option<Axes>,
    /// Take the first so many samples only.
    pub(crate) limit: Option<usize>,
}

/// The samples of all data named in one call, in the order named.
#[derive(Debug)]
pub(crate) struct Source {
    parts: Vec<Part>,
    len: usize,
}

/// One image file, or one array of one or more samples.
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
    Array(Stack),
}

impl Source {
    /// Opens every path; `file.npz:NAME` and `file.mat:NAME` pick one array of several.
    pub(crate) fn open(paths: &[PathBuf], options: &SourceOptions) -> Result<Self> {
        ensure!(!paths.is_empty(), "no data named; expected {}", expected());
        ensure!(options.limit != Some(0), "a limit of 0 samples; expected at least 1");
        let mut source = Source { parts: Vec::new(), len: 0 };
        for path in paths {
            let opened = source.add(path, options.axes.as_ref());
            opened.map_err(|e| anyhow!("{}: {e:#}", path.display()))?;
        }
        let wish = |part: &Part| stems::Wish { stem: part.stem.clone(), count: part.len };
        let stems = stems::assign(&source.parts.iter().map(wish).collect::<Vec<_>>());
        for (part, stem) in source.parts.iter_mut().zip(stems) {
            part.stem = stem;
        }
        source.len = source.len.min(options.limit.unwrap_or(usize::MAX));
        source.parts.retain(|part| part.first < source.len);
        Ok(source)
    }

    /// How many samples there are, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What messages call sample `index`: `photos/cat.jpg`, `train.npy[3]`.
    pub(crate) fn name(&self, index: usize) -> String {
        match self.find(index) {
            Some((part, _)) if part.len == 1 => part.name.clone(),
            Some((part, i)) => format!("{}[{i}]", part.name),
            None => format!("sample {index}"),
        }
    }

    /// A file name without ending for what is computed from sample `index`; no two samples share one.
    pub(crate) fn file_stem(&self, index: usize) -> String {
        let name = self.find(index).map(|(part, i)| stems::numbered(&part.stem, i, part.len));
        name.unwrap_or_else(|| format!("sample-{index}"))
    }

    /// Whether all samples come from image files (true) or from arrays (false); none if both occur.
    pub(crate) fn is_images(&self) -> Option<bool> {
        let is_image = |part: &Part| matches!(part.content, Content::Image(_));
        let first = self.parts.first().is_some_and(is_image);
        self.parts.iter().all(|part| is_image(part) == first).then_some(first)
    }

    /// The most spatial axes that any sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        let rank = |part: &Part| match &part.content {
            Content::Image(_) => 2,
            Content::Array(stack) => stack.rank(),
        };
        self.parts.iter().map(rank).max().unwrap_or(2)
    }

    /// Depth, height and width of sample `index`; of an image only the header is read.
    pub(crate) fn size(&self, index: usize) -> Result<[usize; 3]> {
        match self.find(index) {
            Some((Part { content: Content::Image(path), .. }, _)) => {
                image::size(path).map_err(|e| anyhow!("{}: {e:#}", self.name(index)))
            }
            Some((Part { content: Content::Array(stack), .. }, _)) => Ok(stack.size()),
            None => bail!("sample {index}: expected a number below {}", self.len),
        }
    }

    /// The part that holds sample `index`, and its number there.
    fn find(&self, index: usize) -> Option<(&Part, usize)> {
        let part = self.parts[..self.parts.partition_point(|p| p.first <= index)].last()?;
        Some((part, index - part.first)).filter(|(part, i)| *i < part.len)
    }

    fn add(&mut self, path: &Path, axes: Option<&Axes>) -> Result<()> {
        let (file, pick) = split_pick(path);
        let metadata = std::fs::metadata(file).with_context(|| format!("cannot be read (expected {})", expected()))?;
        if metadata.is_dir() {
            for image in folder::images(file)? {
                self.push_image(image);
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
                self.push_image(file.to_owned());
                Ok(())
            }
            "" => bail!("a file without an ending; expected {}", expected()),
            other => bail!("files ending in .{other} are unknown; expected {}", expected()),
        }
    }

    fn push_image(&mut self, path: PathBuf) {
        let (name, stem) = (path.display().to_string(), stem_of(&path));
        self.parts.push(Part { first: self.len, len: 1, name, stem, content: Content::Image(path) });
        self.len += 1;
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
        let Some((part, i)) = self.find(index).filter(|_| index < self.len) else {
            return Err(Error::Source(format!("sample {index}: expected a number below {}", self.len)));
        };
        let sample = match &part.content {
            Content::Image(path) => image::read(path),
            Content::Array(stack) => stack.get(i),
        };
        sample.map_err(|e| Error::Source(format!("{}: {e:#}", Source::name(self, index))))
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
