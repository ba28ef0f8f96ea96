//! Data on disk: samples in, codes and reconstructions out.
//!
//! [`Source`] opens what the command line names, joins it into one numbered list, and hands the library one sample at a
//! time. Each format has its file: [`mod@image`] decodes pictures, [`cifar`] batches of them, [`audio`] recordings
//! ([`wav`], [`flac`]); [`npy`], [`npz`] and [`mat`] turn a header that was checked against the file's length into an
//! [`array::Array`]; [`axes`] says what its axes mean and [`stack`] cuts it into samples. [`mask`] says which values were
//! observed. [`raw`] reads frames from a pipe, which is no source: it has neither a length nor a second pass. [`codes`] and
//! [`mod@write`] are the way out. Nothing here prints; every message names the file, what was expected and what was found.
//!
//! What is held in memory: paths and headers, never samples; of files, only the one sample asked for is read. The
//! exception are compressed arrays (`numpy.savez_compressed`, `.mat` of version 7), which are held whole, in the file's own
//! type.

pub(crate) mod array;
pub(crate) mod audio;
pub(crate) mod axes;
mod cifar;
pub(crate) mod codes;
mod content;
mod flac;
mod folder;
mod image;
mod mask;
mod mat;
mod npy;
mod npz;
pub(crate) mod raw;
mod resample;
mod stack;
mod stems;
#[cfg(test)]
mod tests;
mod wav;
mod window;
pub(crate) mod write;

pub(crate) use audio::Channel;
pub(crate) use axes::Axes;
pub(crate) use mask::Masks;
pub(crate) use window::Window;

use anyhow::{Context, Result, anyhow, bail, ensure};
use array::Array;
use axes::Convention;
use content::Content;
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
    /// Which channels of recordings.
    pub(crate) channel: Channel,
    /// Bring recordings to this rate, in Hz.
    pub(crate) rate: Option<u32>,
    /// Cut signals into windows.
    pub(crate) window: Option<Window>,
    /// Masks of the samples: an image, an array, or a folder of images.
    pub(crate) mask: Option<PathBuf>,
    /// Take NaN as unobserved.
    pub(crate) nan_is_missing: bool,
    /// The data are masks themselves: truth values are welcome.
    pub(crate) is_mask: bool,
}

/// The samples of all data named in one call, in the order named.
#[derive(Debug)]
pub(crate) struct Source {
    parts: Vec<Part>,
    len: usize,
    masks: Option<Masks>,
    nan_is_missing: bool,
}

/// One file, or one array of a file, with one or more samples.
#[derive(Debug)]
struct Part {
    /// The number of its first sample in the source.
    first: usize,
    len: usize,
    /// What messages call it: the path, and the array where a file holds several.
    name: String,
    stem: String,
    content: Content,
    /// The number of the mask that has its name.
    mask: Option<usize>,
}

impl Source {
    /// Opens every path; `file.npz:NAME` and `file.mat:NAME` pick one array of several.
    pub(crate) fn open(paths: &[PathBuf], options: &SourceOptions) -> Result<Self> {
        ensure!(!paths.is_empty(), "no data named; expected {}", expected());
        ensure!(options.limit != Some(0), "a limit of 0 samples; expected at least 1");
        let mut source = Source { parts: Vec::new(), len: 0, masks: None, nan_is_missing: options.nan_is_missing };
        for path in paths {
            let is_pipe = path.as_os_str() == "-";
            ensure!(!is_pipe, "-: standard input can only be read by `learn` and `code`, alone and with --raw");
            source.add(path, options).map_err(|e| anyhow!("{}: {e:#}", path.display()))?;
        }
        if let Some(path) = &options.mask {
            source.masks = Some(Masks::open(path, options, &mut source.parts, source.len).context("--mask")?);
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

    /// Whether all samples are images (true) or signals and arrays (false); none if both occur.
    pub(crate) fn is_images(&self) -> Option<bool> {
        let first = self.parts.first().is_some_and(|part| part.content.is_image());
        self.parts.iter().all(|part| part.content.is_image() == first).then_some(first)
    }

    /// Whether parts of samples may be unobserved.
    pub(crate) fn is_masked(&self) -> bool {
        self.masks.is_some() || self.nan_is_missing
    }

    /// The most spatial axes that any sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        self.parts.iter().map(|part| part.content.rank()).max().unwrap_or(2)
    }

    /// Depth, height and width of sample `index`, which its mask must have as well; of files only headers are read.
    pub(crate) fn size(&self, index: usize) -> Result<[usize; 3]> {
        let Some((part, i)) = self.find(index) else { bail!("sample {index}: expected a number below {}", self.len) };
        let size = part.content.size(i).and_then(|size| {
            self.masks.as_ref().map_or(Ok(()), |masks| masks.check(index, part, size))?;
            Ok(size)
        });
        size.map_err(|e| anyhow!("{}: {e:#}", self.name(index)))
    }

    /// How the axes of sample `index` were understood, if there was a choice, for messages about its size.
    pub(crate) fn reading(&self, index: usize) -> Option<String> {
        match &self.find(index)?.0.content {
            Content::Array(stack) => Some(stack.reading()),
            _ => None,
        }
    }

    /// The part that holds sample `index`, and its number there.
    fn find(&self, index: usize) -> Option<(&Part, usize)> {
        let part = self.parts[..self.parts.partition_point(|p| p.first <= index)].last()?;
        Some((part, index - part.first)).filter(|(part, i)| *i < part.len)
    }

    fn add(&mut self, path: &Path, options: &SourceOptions) -> Result<()> {
        let (file, pick) = split_pick(path);
        let metadata = std::fs::metadata(file).with_context(|| format!("cannot be read (expected {})", expected()))?;
        if metadata.is_dir() {
            return folder::files(file)?.iter().try_for_each(|file| {
                self.add_file(file, options).with_context(|| file.file_name().unwrap_or_default().display().to_string())
            });
        }
        let extension = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (name, stem) = (path.display().to_string(), stem_of(file));
        match extension.as_str() {
            "npy" => {
                let stack = open_stack(npy::open(file)?, Convention::Numpy, options)?;
                self.push(name, stem, Content::Array(stack))
            }
            "npz" => {
                for (array, stack) in open_npz(file, pick, options)? {
                    let (name, stem) = match array {
                        Some(a) => (format!("{}:{a}", file.display()), format!("{stem}-{}", stems::clean(&a))),
                        None => (name.clone(), stem.clone()),
                    };
                    self.push(name, stem, Content::Array(stack))?;
                }
                Ok(())
            }
            "mat" => {
                let array = mat::open(file, pick, options.is_mask)?;
                self.push(name, stem, Content::Array(open_stack(array, Convention::Matlab, options)?))
            }
            _ => self.add_file(file, options),
        }
    }

    /// Adds a file of a kind that folders may hold, or a batch of images.
    fn add_file(&mut self, file: &Path, options: &SourceOptions) -> Result<()> {
        let content = match file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase().as_str() {
            _ if audio::is_audio(file) => {
                Content::Recording(audio::Recording::open(file, options.channel, options.rate, options.window)?)
            }
            _ if image::is_image(file) => Content::Image(file.to_owned()),
            "bin" => Content::Batch(cifar::Batch::open(file)?),
            "" => bail!("a file without an ending; expected {}", expected()),
            other => bail!("files ending in .{other} are unknown; expected {}", expected()),
        };
        let cut = options.window.is_some() && content.rank() > 1;
        ensure!(!cut, "--window cuts signals, and these are images");
        self.push(file.display().to_string(), stem_of(file), content)
    }

    fn push(&mut self, name: String, stem: String, content: Content) -> Result<()> {
        let len = content.len();
        self.parts.push(Part { first: self.len, len, name, stem, content, mask: None });
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
        let sample = part.content.get(i, self.nan_is_missing).and_then(|sample| match &self.masks {
            Some(masks) => masks.apply(index, part, sample),
            None => Ok(sample),
        });
        sample.map_err(|e| Error::Source(format!("{}: {e:#}", Source::name(self, index))))
    }

    fn name(&self, index: usize) -> String {
        Source::name(self, index)
    }
}

/// An array as samples, or as masks, whose axes may lack those of channels and samples.
fn open_stack(array: Array, convention: Convention, options: &SourceOptions) -> Result<Stack> {
    let rank = array.shape().len();
    let axes = match &options.axes {
        Some(axes) if options.is_mask => Some(axes.of_mask(rank)),
        axes => axes.clone(),
    };
    let stack = Stack::new(array, axes.as_ref(), convention, options.window)?;
    ensure!(
        options.is_mask || !stack.is_boolean(),
        "the array holds booleans (dtype `|b1`, or logical), as masks do; expected numbers: convert it with \
         `.astype('float32')` or `double(...)`"
    );
    Ok(stack)
}

/// The arrays of an archive, each with its name unless it is the only one or was picked.
fn open_npz(path: &Path, pick: Option<&str>, options: &SourceOptions) -> Result<Vec<(Option<String>, Stack)>> {
    let mut archive = npz::Npz::open(path)?;
    let names = archive.names();
    let shown = path.display();
    ensure!(!names.is_empty(), "the archive holds no arrays");
    let mut open = |name: &str| open_stack(archive.array(name)?, Convention::Numpy, options);
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

/// True if the file's name ends in one of these, in capitals or not.
fn has_ending(path: impl AsRef<Path>, endings: &[&str]) -> bool {
    path.as_ref().extension().is_some_and(|e| endings.iter().any(|known| e.eq_ignore_ascii_case(known)))
}

fn stem_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Everything that can be opened, for messages.
fn expected() -> String {
    let endings = [&["npy", "npz", "mat"], image::EXTENSIONS, &["bin"], audio::EXTENSIONS].concat();
    format!("a folder of images or recordings, or a file ending in {}", endings.join(", "))
}
