//! Data on disk: samples in, codes and reconstructions out.
//!
//! [`Source`] opens what the command line names, joins it into one numbered list, and hands the library one sample at a
//! time. [`folder`], [`pattern`] and [`list`] find files. Each format has its file: [`mod@image`], [`jpeg`] and [`tiff`]
//! decode pictures, [`cifar`] batches of them, [`audio`] recordings ([`wav`], [`flac`]); [`npy`], [`npz`] and [`mat`] turn a header
//! that was checked against the file's length into an [`array::Array`]; [`axes`] says what its axes mean and [`stack`] cuts
//! it into samples. [`select`] and [`hold_out`] choose among the samples; [`resize`] and [`crop`] change what is seen of each,
//! [`channels`] brings gray pictures among colours to theirs, and [`mask`] says which values were observed. Decoders run
//! under [`guard`], and what they need is held against a limit before they run. [`raw`] reads frames from a pipe, which is no source: it has neither a length
//! nor a second pass. [`codes`] and [`mod@write`] are the way out. Nothing here prints; every message names the file, what was
//! expected and what was found.
//!
//! What is held in memory: paths and headers, never samples; of files, only the one sample asked for is read. The
//! exception are compressed arrays (`numpy.savez_compressed`, `.mat` of version 7), which are held whole, in the file's own
//! type.

pub(crate) mod array;
pub(crate) mod audio;
pub(crate) mod axes;
mod channels;
mod cifar;
mod code_facts;
pub(crate) mod codes;
mod crop;
mod failure;
mod file_names;
mod flac;
mod folder;
mod format;
mod guard;
mod hold_out;
mod identity;
mod image;
mod jpeg;
mod list;
mod mask;
mod mat;
mod npy;
mod npz;
mod pattern;
pub(crate) mod picture;
pub(crate) mod raw;
mod resample;
mod resize;
mod select;
mod stack;
#[cfg(test)]
mod tests;
pub(crate) mod tiff;
pub(crate) mod wav;
mod window;
pub(crate) mod write;

pub(crate) use audio::Channel;
pub(crate) use channels::{ChannelCounts, before as channels_before};
pub(crate) use code_facts::{Facts, problem, with_problem};
pub(crate) use mask::Masks;
pub(crate) use ocsc::Axes;
pub(crate) use resize::Resize;
pub(crate) use window::Window;

use crate::console::told;
use crate::memory::Limit;
use anyhow::{Context, Result, anyhow, bail, ensure};
use array::Array;
use axes::Convention;
use crop::Crop;
use format::{Content, Header, ReadOptions};
use guard::guarded;
use ocsc::text::extent;
use ocsc::{Config, Error, Real, Sample, Samples};
use stack::Stack;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tiff::Pages;
use tiff::write::InStack;

/// What the numbers and sizes of samples take that are held of each.
const BYTES_PER_SAMPLE: u64 = 24;

/// How to read the data.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceOptions {
    /// The meaning of the axes of arrays; of images only what the pages of a file are.
    pub(crate) axes: Option<Axes>,
    /// Whether the call does not name them, but the model that was learned so.
    pub(crate) axes_are_recorded: bool,
    /// Search folders to any depth.
    pub(crate) recursive: bool,
    /// Scale every sample.
    pub(crate) resize: Option<Resize>,
    /// Then keep a piece of it: one length for every axis, or one per axis.
    pub(crate) crop: Option<Vec<usize>>,
    /// Says where the pieces for learning are cut.
    pub(crate) seed: u64,
    /// Which channels of recordings.
    pub(crate) channel: Channel,
    /// Bring recordings to this rate, in Hz.
    pub(crate) rate: Option<u32>,
    /// Whether the call does not name it, but the model that was learned so.
    pub(crate) rate_is_recorded: bool,
    /// Values per second of arrays.
    pub(crate) sfreq: Option<f64>,
    /// Cut signals into windows.
    pub(crate) window: Option<Window>,
    /// Do not cut recordings, whatever their length.
    pub(crate) whole_recordings: bool,
    /// Masks of the samples: an image, an array, or a folder of images.
    pub(crate) mask: Option<PathBuf>,
    /// The masks are weights from 0 to 1: how much values count.
    pub(crate) mask_is_weights: bool,
    /// Weights of the coefficients of every sample's code in the penalty: an array of the code's shape.
    pub(crate) coefficient_weights: Option<PathBuf>,
    /// Take NaN as unobserved.
    pub(crate) nan_is_missing: bool,
    /// The data are masks themselves: truth values are welcome.
    pub(crate) is_mask: bool,
    /// What may be taken while a file is read.
    pub(crate) limit: Limit,
}

impl SourceOptions {
    /// With the axes and the rate that a model was learned with, unless the call names its own.
    pub(crate) fn like_learned(mut self, config: &Config) -> Self {
        if self.axes.is_none() && config.axes.is_some() {
            self.axes = config.axes.clone();
            self.axes_are_recorded = true;
        }
        let rate = config.rate.and_then(|rate| u32::try_from(rate).ok());
        if self.rate.is_none() && rate.is_some() {
            self.rate = rate;
            self.rate_is_recorded = true;
        }
        self
    }
}

/// The samples of all data named in one call, in the order named, or those chosen among them.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    parts: Arc<Vec<Part>>,
    /// The numbers of the samples in use, ascending; none if all are.
    chosen: Option<Vec<usize>>,
    /// What pieces the samples are learned from in; none if they are learned from once in a pass.
    pieces: Option<Pieces>,
    len: usize,
    resize: Option<Resize>,
    crop: Option<Crop>,
    seed: u64,
    masks: Option<Arc<Masks>>,
    coefficient_weights: Option<Arc<[f64]>>,
    /// The files behind all of it: of samples, of lists, of masks.
    files: Arc<Vec<PathBuf>>,
    options: ReadOptions,
    /// The channels that samples must have, or be brought to; as they are if none.
    channels: Option<usize>,
    /// The size of the filters, if smaller samples are to be taken for such that cannot be read.
    least: Option<[usize; 3]>,
}

/// The pieces of samples.
#[derive(Clone, Debug)]
struct Pieces {
    /// Which piece of its sample each one is.
    numbers: Arc<[u32]>,
    /// What is seen of the whole samples.
    whole: Option<Crop>,
}

/// Where a sample lies in what it was cut from: a window in its recording or signal, a crop in its image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    /// A number that the samples of one recording share, in the order of the source.
    pub(crate) whole: usize,
    /// What messages call the recording: `songs/a.wav`, `lfp.npy`, `epochs.npy[3]`.
    pub(crate) name: String,
    /// Where the sample begins: depth, height, width.
    pub(crate) start: [usize; 3],
    /// Values per second along W, where the file says so.
    pub(crate) rate: Option<u32>,
}

/// One file, or one array of a file, with one or more samples.
#[derive(Debug)]
struct Part {
    /// The number of its first sample in the source.
    first: usize,
    len: usize,
    /// What messages call it: the path, and the array where a file holds several.
    name: String,
    /// The name of its file without ending, and the same made unlike those of all other parts.
    own_stem: String,
    stem: String,
    content: Content,
    /// The number of the mask that has its name.
    mask: Option<usize>,
}

impl Source {
    /// Opens every path; `file.npz:NAME` and `file.mat:NAME` pick one array of several, `@list.txt` stands for the paths
    /// in a list.
    pub(crate) fn open(paths: &[PathBuf], options: &SourceOptions) -> Result<Self> {
        ensure!(!paths.is_empty(), "no data named; expected {}", expected());
        let mut opening = Opening { parts: Vec::new(), len: 0, files: Vec::new(), options };
        for path in paths {
            let is_pipe = path.as_os_str() == "-";
            ensure!(!is_pipe, "-: standard input can only be read by `learn` and `code`, alone and with --raw");
            guarded(|| opening.add_named(path)).map_err(|e| anyhow!("{}: {}", path.display(), told(&e)))?;
        }
        let Opening { mut parts, len, mut files, .. } = opening;
        let masks = match &options.mask {
            Some(path) => {
                let flag = if options.mask_is_weights { "--data-weights" } else { "--mask" };
                Some(Arc::new(Masks::open(path, options, &mut parts, len).context(flag)?))
            }
            None => None,
        };
        let coefficient_weights = match &options.coefficient_weights {
            Some(path) => {
                let weights = numbers(path, options.limit).with_context(|| path.display().to_string());
                files.push(split_pick(path).0.to_owned());
                Some(Arc::from(weights.context("--coefficient-weights")?.1))
            }
            None => None,
        };
        files.extend(masks.iter().flat_map(|masks| masks.files().to_vec()));
        let files = Arc::new(files);
        let wish = |part: &Part| file_names::Wish { stem: part.stem.clone(), count: part.len };
        let stems = file_names::assign(&parts.iter().map(wish).collect::<Vec<_>>());
        for (part, stem) in parts.iter_mut().zip(stems) {
            part.stem = stem;
        }
        let (resize, seed) = (options.resize, options.seed);
        let reading = ReadOptions { nan_is_missing: options.nan_is_missing, limit: options.limit };
        let (parts, chosen, crop) = (Arc::new(parts), None, None);
        let channels = None;
        let mut source = Source {
            parts,
            chosen,
            pieces: None,
            len,
            resize,
            crop,
            seed,
            masks,
            coefficient_weights,
            files,
            options: reading,
            channels,
            least: None,
        };
        ensure!(
            !(source.is_masked() && resize.is_some()),
            "--resize would mix observed and unobserved values; resize the data and their masks beforehand"
        );
        source.crop = options.crop.as_ref().map(|lengths| Crop::new(lengths, source.rank())).transpose()?;
        if let Some(signals) = source.parts.iter().find(|part| resize.is_some() && part.content.rank() == 1) {
            bail!("{}: --resize: expected images or volumes, found signals", signals.name);
        }
        Ok(source)
    }

    /// How many samples there are, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Every file that was opened, also those without a chosen sample.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What messages call sample `index`: `photos/cat.jpg`, `train.npy[3]`.
    pub(crate) fn name(&self, index: usize) -> String {
        self.find(index).map_or_else(|| format!("sample {index}"), |(part, i)| part.name(i))
    }

    /// A file name without ending for what is computed from sample `index`; no two samples share one.
    pub(crate) fn file_stem(&self, index: usize) -> String {
        let name = self.find(index).map(|(part, i)| file_names::numbered(&part.stem, i, part.len));
        name.unwrap_or_else(|| format!("sample-{index}"))
    }

    /// The name and the ending of the file of sample `index`, with its number where the file holds several: other samples may share
    /// them.
    pub(crate) fn own_name(&self, index: usize) -> (String, String) {
        let Some((part, i)) = self.find(index) else { return (self.file_stem(index), String::new()) };
        let ending = split_pick(Path::new(&part.name)).0.extension().unwrap_or_default();
        (file_names::numbered(&part.own_stem, i, part.len), ending.to_string_lossy().to_ascii_lowercase())
    }

    /// File names for what is computed from the samples, of these endings, one for each: as [`Source::file_stem`], but only names of
    /// one ending must differ, so that `a.jpg` and `a.png` stay what they are.
    pub(crate) fn file_names(&self, endings: &[String]) -> Vec<String> {
        let parts: Vec<Option<(&Part, usize)>> = (0..endings.len()).map(|index| self.find(index)).collect();
        let mut by_ending: BTreeMap<String, BTreeMap<usize, file_names::Wish>> = BTreeMap::new();
        for (part, ending) in parts.iter().zip(endings).filter_map(|(place, ending)| Some((place.as_ref()?.0, ending)))
        {
            let wish = || file_names::Wish { stem: part.own_stem.clone(), count: part.len };
            by_ending.entry(ending.to_ascii_lowercase()).or_default().entry(part.first).or_insert_with(wish);
        }
        let mut stems = HashMap::new();
        for (ending, wishes) in by_ending {
            let (firsts, wishes): (Vec<usize>, Vec<_>) = wishes.into_iter().unzip();
            let granted = file_names::assign(&wishes);
            stems.extend(firsts.into_iter().zip(granted).map(|(first, stem)| ((first, ending.clone()), stem)));
        }
        let name = |(place, ending): (&Option<(&Part, usize)>, &String)| {
            let granted = place.and_then(|(part, i)| {
                let stem = stems.get(&(part.first, ending.to_ascii_lowercase()))?;
                Some(file_names::numbered(stem, i, part.len))
            });
            format!("{}.{ending}", granted.unwrap_or_default())
        };
        parts.iter().zip(endings).map(name).collect()
    }

    /// Where sample `index` lies in what it was cut from; of files only headers are read.
    pub(crate) fn cut(&self, index: usize) -> Result<Cut> {
        let (_, part, i) = self.place(index).with_context(|| self.beyond(index))?;
        let (whole, wholes, first) = part.content.cut(i);
        let name = if wholes == 1 { part.name.clone() } else { format!("{}[{whole}]", part.name) };
        let mut start = [0, 0, first];
        if let Some(crop) = self.crop {
            let full = part.content.header(i)?.shape.spatial();
            let full = self.resize.map_or(Ok(full), |resize| resize.size(full))?;
            let before = crop.before(full);
            start = std::array::from_fn(|axis| start[axis] + before[axis]);
        }
        Ok(Cut { whole: part.first + whole, name, start, rate: part.content.rate() })
    }

    /// A file name without ending for the recording that sample `index` is a window of, where that begins, and its rate; none of
    /// what is no recording.
    pub(crate) fn recording(&self, index: usize) -> Option<(String, usize, u32)> {
        let (part, i) = self.find(index)?;
        let rate = part.content.rate()?;
        Some((part.stem.clone(), part.content.cut(i).2, rate))
    }

    /// The file of sample `index`, if it is a picture and the only one in its file.
    pub(crate) fn picture(&self, index: usize) -> Option<&Path> {
        let (part, _) = self.find(index)?;
        (part.len == 1 && matches!(part.content, Content::Image(_) | Content::Pages(_))).then(|| Path::new(&part.name))
    }

    /// A file name for the pages that sample `index` was read from, and where it lies among them; none of what has no pages.
    pub(crate) fn in_stack(&self, index: usize) -> Result<Option<(String, InStack)>> {
        let Some((part, i)) = self.find(index) else { return Ok(None) };
        let Content::Pages(pages) = &part.content else { return Ok(None) };
        let ending = Path::new(&part.name).extension().unwrap_or_default().to_string_lossy();
        let place = pages.in_stack(i).with_context(|| part.name.clone())?;
        Ok(Some((format!("{}.{ending}", part.stem), place)))
    }

    /// Whether all samples are images (true) or signals and arrays (false); none if both occur.
    pub(crate) fn is_images(&self) -> Option<bool> {
        let first = self.find(0).is_some_and(|(part, _)| part.content.is_image());
        self.used().all(|part| part.content.is_image() == first).then_some(first)
    }

    /// Whether all samples are arrays, as others prepared them.
    pub(crate) fn is_arrays(&self) -> bool {
        self.used().all(|part| matches!(part.content, Content::Array(_)))
    }

    /// Whether there are files whose reading depends on what their axes mean.
    pub(crate) fn has_axes(&self) -> bool {
        self.used().any(|part| matches!(part.content, Content::Array(_) | Content::Pages(_)))
    }

    /// Whether there are recordings, whose reading depends on the rate.
    pub(crate) fn has_recordings(&self) -> bool {
        self.used().any(|part| matches!(part.content, Content::Recording(_)))
    }

    /// Whether parts of samples may be unobserved.
    pub(crate) fn is_masked(&self) -> bool {
        self.masks.is_some() || self.options.nan_is_missing
    }

    /// The most spatial axes that any sample has: 1 for signals, 2 for images, 3 for volumes.
    pub(crate) fn rank(&self) -> usize {
        self.used().map(|part| part.content.rank()).max().unwrap_or(2)
    }

    /// Depth, height and width of sample `index`, which its mask must have as well; of files only headers are read.
    pub(crate) fn size(&self, index: usize) -> Result<[usize; 3]> {
        let (number, part, i) = self.place(index).with_context(|| self.beyond(index))?;
        let size = part.content.header(i).and_then(|Header { shape, .. }| {
            let (size, what) = (shape.spatial(), format!("samples of {shape}"));
            self.options.ensure_room(&what, 0, shape.len() as u64)?;
            self.masks.as_ref().map_or(Ok(()), |masks| masks.check(number, part, size))?;
            self.resize.map_or(Ok(size), |resize| resize.size(size))
        });
        let size = size.map(|size| self.crop.map_or(size, |crop| crop.size(size)));
        let size = size.and_then(|size| self.ensure_least(size).map(|()| size));
        size.map_err(|e| anyhow!("{}: {}", part.name(i), told(&e)))
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
        self.place(index).map(|(_, part, i)| (part, i))
    }

    /// The number of sample `index` among all that were opened, the part that holds it, and its number there.
    fn place(&self, index: usize) -> Option<(usize, &Part, usize)> {
        let number = self.number(index)?;
        let part = self.parts[..self.parts.partition_point(|p| p.first <= number)].last()?;
        Some((number, part, number - part.first)).filter(|(_, part, i)| *i < part.len)
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
        let Some((number, part, i)) = self.place(index) else { return Err(Error::Source(self.beyond(index))) };
        failure::patiently(&part.name(i), || {
            let sample = self.with_channels(part, part.content.get(i, self.options)?)?;
            let sample = match &self.masks {
                Some(masks) => masks.apply(number, part, sample)?,
                None => sample,
            };
            let sample = match &self.resize {
                Some(resize) => resize.apply(sample)?,
                None => sample,
            };
            let sample = match &self.crop {
                Some(crop) => cut(crop, sample)?,
                None => sample,
            };
            self.ensure_least(sample.shape().spatial())?;
            match &self.coefficient_weights {
                Some(weights) => Ok(sample.with_coefficient_weights(weights.iter().map(|w| T::of(*w)).collect())?),
                None => Ok(sample),
            }
        })
    }

    /// The same samples, of which those that are smaller than a filter on some axis cannot be read.
    pub(crate) fn refusing_smaller(self, filter: [usize; 3]) -> Source {
        Source { least: Some(filter), ..self }
    }

    fn ensure_least(&self, size: [usize; 3]) -> Result<()> {
        let Some(least) = self.least.filter(|least| !fits(size, *least)) else { return Ok(()) };
        let (least, size) = (extent(&least), extent(&size));
        bail!("expected at least the filters' size {least} on every axis, found {size}")
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
}

/// The parts of a source, while they are opened.
struct Opening<'a> {
    parts: Vec<Part>,
    len: usize,
    files: Vec<PathBuf>,
    options: &'a SourceOptions,
}

impl Opening<'_> {
    /// Adds what a path, a pattern or a list stands for.
    fn add_named(&mut self, path: &Path) -> Result<()> {
        if let Some(file) = list::named_by(path) {
            self.files.push(file.clone());
            for line in list::read(&file, self.options.limit)? {
                let path = list::folder(&file).join(&line.text);
                let added = self.add_matching(&path);
                added.map_err(|e| anyhow!("line {}: {}: {}", line.number, path.display(), told(&e)))?;
            }
            return Ok(());
        }
        self.add_matching(path)
    }

    fn add_matching(&mut self, path: &Path) -> Result<()> {
        if !pattern::is_pattern(split_pick(path).0) {
            return self.add(path);
        }
        for file in pattern::matches(path)? {
            self.add(&file).map_err(|e| anyhow!("{}: {}", file.display(), told(&e)))?;
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let options = self.options;
        let (file, pick) = split_pick(path);
        let metadata = std::fs::metadata(file).with_context(|| format!("cannot be read (expected {})", expected()))?;
        let kind = metadata.file_type();
        ensure!(kind.is_file() || kind.is_dir(), "expected {}, found {}", expected(), ocsc::file::kind(kind));
        if metadata.is_dir() {
            return folder::data(file, self.options.recursive)?.iter().try_for_each(|file| {
                self.add_file(file).with_context(|| file.file_name().unwrap_or_default().display().to_string())
            });
        }
        let extension = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (name, stem) = (path.display().to_string(), stem_of(file));
        if matches!(extension.as_str(), "npy" | "npz" | "mat") {
            self.files.push(file.to_owned());
        }
        match extension.as_str() {
            "npy" => {
                let stack = open_stack(npy::open(file)?, Convention::Numpy, options)?;
                self.push(name, stem, Content::Array(stack))
            }
            "npz" => {
                for (array, stack) in open_npz(file, pick, options)? {
                    let (name, stem) = match array {
                        Some(a) => (format!("{}:{a}", file.display()), format!("{stem}-{}", file_names::clean(&a))),
                        None => (name.clone(), stem.clone()),
                    };
                    self.push(name, stem, Content::Array(stack))?;
                }
                Ok(())
            }
            "mat" => {
                let array = mat::open(file, pick, options.is_mask, options.limit)?;
                self.push(name, stem, Content::Array(open_stack(array, Convention::Matlab, options)?))
            }
            _ => self.add_file(file),
        }
    }

    /// Adds a file of a kind that folders may hold, or a batch of images.
    fn add_file(&mut self, file: &Path) -> Result<()> {
        let options = self.options;
        self.files.push(file.to_owned());
        let content = match file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase().as_str() {
            _ if audio::is_audio(file) => {
                let whole = options.whole_recordings.then_some(Window::Values(usize::MAX));
                let open = || audio::Recording::open(file, options.channel, options.rate, whole.or(options.window));
                guarded(open).map_or_else(|e| damaged(false, e), |recording| Ok(Content::Recording(recording)))?
            }
            // Only TIFF has pages, and its name nearly always says so: other files are not opened before their turn.
            "tif" | "tiff" if tiff::is_tiff(file).unwrap_or(false) => match guarded(|| Pages::open(file)) {
                Ok(pages) => Content::Pages(pages.with_axes(options.axes.as_ref())?),
                Err(e) => damaged(true, e)?,
            },
            _ if image::is_image(file) => Content::Image(image::Picture::new(file)),
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
        self.parts.push(Part { first: self.len, len, name, own_stem: stem.clone(), stem, content, mask: None });
        self.len = self.len.checked_add(len).context("more samples than can be counted")?;
        // A header may claim any number of samples, and lists of them are made.
        if len > 1 {
            let need = (self.len as u64).saturating_mul(BYTES_PER_SAMPLE);
            self.options.limit.ensure(&format!("lists of {} samples", self.len), need)?;
        }
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
        let piece =
            self.pieces.as_ref().and_then(|pieces| pieces.numbers.get(index)).map_or(0, |piece| *piece as usize);
        self.read(index, |crop, sample| crop.anywhere(sample, self.seed, number, pass, piece))
    }

    fn name(&self, index: usize) -> String {
        Source::name(self, index)
    }
}

/// Whether a sample of this depth, height and width is at least as large as a filter on every axis.
pub(crate) fn fits(sample: [usize; 3], filter: [usize; 3]) -> bool {
    sample.iter().zip(filter).all(|(s, f)| *s >= f)
}

/// A picture (true) or recording that cannot be read; not if the machine is to blame, and the file may be whole.
fn damaged(is_image: bool, error: anyhow::Error) -> Result<Content> {
    match failure::of_system(&error) {
        Some(_) => Err(error),
        None => Ok(Content::Damaged(is_image, told(&error))),
    }
}

/// The shape and the numbers of an array in a file.
pub(crate) fn numbers(path: &Path, limit: Limit) -> Result<(Vec<usize>, Vec<f64>)> {
    guarded(|| {
        let (file, pick) = split_pick(path);
        let array = match file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase().as_str() {
            "npy" => npy::open(file)?,
            "npz" => {
                let mut archive = npz::Npz::open(file, limit)?;
                let names = archive.names();
                let only = names.first().filter(|_| names.len() == 1).map(String::as_str);
                let name = pick.or(only);
                archive
                    .array(name.with_context(|| format!("holds {}; name one, as file.npz:NAME", names.join(", ")))?)?
            }
            "mat" => mat::open(file, pick, false, limit)?,
            _ => bail!("expected an array: .npy, .npz or .mat"),
        };
        Ok((array.shape().to_vec(), array.values(limit)?))
    })
}

/// An array as samples, or as masks, whose axes may lack those of channels and samples.
fn open_stack(array: Array, convention: Convention, options: &SourceOptions) -> Result<Stack> {
    let rank = array.shape().len();
    let axes = match &options.axes {
        Some(axes) if options.is_mask => Some(axes.of_mask(rank)),
        Some(axes) if options.axes_are_recorded => Some(axes.of_array(rank)),
        axes => axes.clone(),
    };
    let stack = Stack::new(array, axes.as_ref(), convention, options.window, options.sfreq)?;
    ensure!(
        options.is_mask || !stack.is_boolean(),
        "the array holds booleans (dtype `|b1`, or logical), as masks do; expected numbers: convert it with \
         `.astype('float32')` or `double(...)`"
    );
    Ok(stack)
}

/// The arrays of an archive, each with its name unless it is the only one or was picked.
fn open_npz(path: &Path, pick: Option<&str>, options: &SourceOptions) -> Result<Vec<(Option<String>, Stack)>> {
    let mut archive = npz::Npz::open(path, options.limit)?;
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
            Err(e) => refused.push(format!("`{name}`: {}", told(&e))),
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
pub(crate) fn split_pick(path: &Path) -> (&Path, Option<&str>) {
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
