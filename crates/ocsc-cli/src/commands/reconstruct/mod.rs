//! `ocsc reconstruct`: codes back to samples.

mod frames;
mod stacks;

use super::belonging::Belonging;
use crate::args::{Format, Reconstruct};
use crate::console::{self, Console, Interrupted, counted, share};
use crate::data::tiff::write as tiff;
use crate::data::{Facts, Source, channels_before, codes, wav, write};
use crate::run::folder::{code_files, make_folder, say_existing};
use crate::run::model::{self, Prepared};
use crate::run::original::Originals;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result, bail, ensure};
use ocsc::preprocess::Preprocess;
use ocsc::settings::{Boundary, Dtype};
use ocsc::{Code, Dictionary, Sample, replace};
use stacks::Stacks;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// `ocsc reconstruct`.
pub(crate) fn run(args: &Reconstruct, console: &Console) -> Result<()> {
    // In f64, whatever the codes were computed in: this is the way out.
    let saved = model::load::<f64>(&args.model, console)?;
    let source = match &args.original[..] {
        [] => None,
        data => {
            let options = args.reading.options(0).like_learned(&saved.config);
            Some(Source::open(data, &options).context("--original")?)
        }
    };
    check_filters(args, saved.dictionary.n_filters())?;
    let paths = code_files(&args.codes)?;
    if !args.raw {
        spare_inputs(args, source.as_ref(), &paths, &saved.dictionary, console)?;
    }
    // All of it before anything is written.
    let belonging = Belonging { saved: &saved, args, source: source.as_ref() };
    let (facts, preprocess) = belonging.check(&paths, console)?;
    let preprocess = &preprocess;
    let channels = channels_before(preprocess, saved.dictionary.shape().channels);
    let source = source.map(|source| source.of_channels(channels));
    let originals = match &source {
        Some(source) => Some(Originals::new(Prepared::new(source, preprocess), &paths, &facts)?),
        None => None,
    };
    let (dictionary, boundary) = (&saved.dictionary, saved.config.boundary);
    let back = Back { args, dictionary, boundary, preprocess, originals };
    if args.raw {
        return frames::run(args, &back, source.as_ref(), &paths, console);
    }
    let mut recordings = Recordings::new(args, &facts);
    recordings.spare(source.as_ref(), &paths, dictionary.n_filters())?;
    let mut stacks = Stacks::new(args, back.originals.as_ref(), &paths, console)?;
    stacks.spare(args, source.as_ref(), &paths)?;
    make_folder(&args.out)?;
    replace::remove_leftovers_in(&args.out);
    console::catch_interrupts();
    let no_pictures = back.write_all(&paths, saved.config.dtype, &mut recordings, &mut stacks, console)?;
    if no_pictures > 0 {
        console.say(format!(
            "{} no picture (a signal, a volume, or of other than 1 or 3 channels): .npy only",
            share(no_pictures, paths.len(), "reconstruction", ["is", "are"])
        ));
    }
    if back.originals.is_some() && !preprocess.has_inverse() {
        console.say("an edge taper cannot be undone: the border of the reconstructions stays blended");
    }
    let put_together = [(recordings.left.len(), "recording"), (stacks.written, "stack")];
    let put_together = put_together.iter().filter(|(n, _)| *n > 0);
    let put_together: String = put_together.map(|(n, what)| format!(", {} put together", counted(*n, what))).collect();
    console.result(format!("{} in {}{put_together}", counted(paths.len(), "reconstruction"), args.out.display()))
}

/// The way back from codes to samples.
struct Back<'a> {
    args: &'a Reconstruct,
    dictionary: &'a Dictionary<f64>,
    boundary: Boundary,
    preprocess: &'a Preprocess,
    originals: Option<Originals<'a>>,
}

impl Back<'_> {
    /// Returns what a code of these filters stands for, or one filter of it, as before preprocessing where the originals are known; and
    /// the range to draw it in.
    fn sample(
        &self,
        path: &Path,
        code: &Code<f64>,
        filters: &Dictionary<f64>,
        part: Option<usize>,
    ) -> Result<(Sample<f64>, (f64, f64))> {
        let here = || path.display().to_string();
        let code = chosen(code, part, self.args).with_context(here)?;
        let sample = code.reconstruct(filters, self.boundary).with_context(here)?;
        match &self.originals {
            Some(originals) => originals.bring_back(path, sample).with_context(here),
            None => {
                let range = sample.extremes();
                Ok((self.preprocess.with_channels(sample, self.dictionary.rank()), range))
            }
        }
    }

    /// Writes what all codes stand for, and returns how many are no pictures.
    fn write_all(
        &self,
        paths: &[PathBuf],
        dtype: Dtype,
        recordings: &mut Recordings<'_>,
        stacks: &mut Stacks,
        console: &Console,
    ) -> Result<usize> {
        let (args, dictionary) = (self.args, self.dictionary);
        let n_filters = dictionary.n_filters();
        let parts = parts(args, n_filters);
        let mut bar = console.progress("reconstructing", paths.len(), 0);
        let mut no_pictures = 0;
        for (done, path) in paths.iter().enumerate() {
            if console::interrupted() {
                let why = format!(
                    "interrupted after {done} of {}; --skip-existing goes on from here",
                    counted(paths.len(), "code")
                );
                return Err(Interrupted(why).into());
            }
            let (code, rank) = codes::read_code::<f64>(path)?;
            let own = codes::read_filters(path, dictionary)?;
            let filters = own.as_ref().unwrap_or(dictionary);
            // The first axis of codes of single channels is the channel.
            let (rank, channels) = match self.preprocess.is_per_channel() {
                true => (rank.saturating_sub(1), code.shape()[2 - dictionary.rank().min(2)]),
                false => (rank, dictionary.shape().channels),
            };
            let is_paged = rank > 1 || args.format != Format::Tiff;
            ensure!(is_paged, "{}: --format tiff: expected images or volumes, found a signal", path.display());
            let mut is_picture = true;
            for part in &parts {
                let results = Results::of(args, path, *part, n_filters, [rank, channels]).beside(stacks.has(done));
                is_picture &= results.png.is_some();
                let is_put = recordings.is_there(done, *part, n_filters)? && stacks.is_there(done)?;
                if args.skip_existing && is_put && results.are_there()? {
                    continue;
                }
                let (sample, range) = self.sample(path, &code, filters, *part)?;
                results.write(&sample, rank, range, dtype)?;
                recordings.add(done, *part, &sample)?;
                stacks.add(done, &sample)?;
            }
            recordings.finish(done, n_filters)?;
            no_pictures += usize::from(args.format == Format::Both && !is_picture);
            bar.advance(1, "");
        }
        Ok(no_pictures)
    }
}

/// The files that the call reads.
fn inputs(args: &Reconstruct, originals: Option<&Source>, codes: &[PathBuf]) -> Outputs {
    let mut files = Outputs::default();
    files.read("the model", [&args.model]);
    files.read("one of the originals", originals.into_iter().flat_map(Source::files));
    files.read("one of the codes", codes);
    files
}

/// Checks that no reconstruction would be written over what the call reads.
fn spare_inputs(
    args: &Reconstruct,
    originals: Option<&Source>,
    codes: &[PathBuf],
    dictionary: &Dictionary<f64>,
    console: &Console,
) -> Result<()> {
    let mut files = inputs(args, originals, codes);
    let mut n_there = 0;
    for code in codes {
        // Whether there will be a picture is not known before the code is read.
        let mut any = false;
        for part in parts(args, dictionary.n_filters()) {
            let results = Results::of(args, code, part, dictionary.n_filters(), [2, dictionary.shape().channels]);
            for path in [results.npy, results.png, results.tiff].iter().flatten() {
                any |= files.write("--out", path)?;
            }
        }
        n_there += usize::from(any);
    }
    say_existing("reconstruction", n_there, codes.len(), &args.out, args.skip_existing, console);
    Ok(())
}

/// Checks that the filters asked for are there, and that what stays of a sample can be told apart.
fn check_filters(args: &Reconstruct, n_filters: usize) -> Result<()> {
    if let Some(wrong) = args.only.iter().find(|k| **k >= n_filters) {
        bail!("--only: expected numbers of filters below {n_filters}, found {wrong}");
    }
    let parts = !args.only.is_empty() || args.each_filter;
    ensure!(
        !parts || args.original.is_empty(),
        "--original: expected none beside --only and --each-filter: what preprocessing took out belongs to no filter"
    );
    Ok(())
}

/// The reconstructions of a code: of all filters that are asked for (none), or of each of them alone.
fn parts(args: &Reconstruct, n_filters: usize) -> Vec<Option<usize>> {
    match (args.each_filter, args.only.is_empty()) {
        (false, _) => vec![None],
        (true, true) => (0..n_filters).map(Some).collect(),
        (true, false) => args.only.iter().copied().map(Some).collect(),
    }
}

/// What of a code is reconstructed.
fn chosen(code: &Code<f64>, part: Option<usize>, args: &Reconstruct) -> Result<Code<f64>> {
    let is_wanted = |k: usize| match part {
        Some(part) => k == part,
        None => args.only.is_empty() || args.only.contains(&k),
    };
    let atoms = code.atoms().iter().copied().filter(|atom| is_wanted(atom.filter as usize)).collect();
    Ok(Code::new(code.n_filters(), code.shape(), atoms)?)
}

/// The windows of recordings, put together again: one WAV of each, or of each filter's part.
struct Recordings<'a> {
    args: &'a Reconstruct,
    /// Of every code.
    facts: &'a [Facts],
    /// Codes of every recording that are not yet done.
    left: HashMap<&'a str, usize>,
    /// By recording and part: (channel, time).
    sounds: HashMap<(&'a str, Option<usize>), Vec<Vec<f32>>>,
}

impl<'a> Recordings<'a> {
    fn new(args: &'a Reconstruct, facts: &'a [Facts]) -> Self {
        let mut left = HashMap::new();
        for recording in facts.iter().filter_map(|facts| facts.recording.as_deref()) {
            *left.entry(recording).or_default() += 1;
        }
        Recordings { args, facts, left, sounds: HashMap::new() }
    }

    /// Checks that no recording would be written over what the call reads.
    fn spare(&self, originals: Option<&Source>, codes: &[PathBuf], n_filters: usize) -> Result<()> {
        let mut files = inputs(self.args, originals, codes);
        let sources = self.facts.iter().filter_map(|facts| facts.source.as_ref());
        // As messages call it: its path, and its number.
        files.read("what was coded", sources.map(|source| source.split_once('[').map_or(source.as_str(), |s| s.0)));
        if !self.args.format.holds_values() {
            return Ok(());
        }
        for name in self.left.keys() {
            for part in parts(self.args, n_filters) {
                files.write("--out", &self.path(name, part, n_filters))?;
            }
        }
        Ok(())
    }

    /// The recording of a code, unless no sounds are asked for.
    fn name(&self, code: usize) -> Option<&'a str> {
        self.facts[code].recording.as_deref().filter(|_| self.args.format.holds_values())
    }

    fn path(&self, name: &str, part: Option<usize>, n_filters: usize) -> PathBuf {
        self.args.out.join(with_filter(name.as_ref(), part, n_filters)).with_added_extension("wav")
    }

    /// Whether the recording of a code needs not be made.
    fn is_there(&self, code: usize, part: Option<usize>, n_filters: usize) -> Result<bool> {
        let Some(name) = self.name(code) else { return Ok(true) };
        let path = self.path(name, part, n_filters);
        path.try_exists().with_context(|| path.display().to_string())
    }

    /// Puts a window in its place.
    fn add(&mut self, code: usize, part: Option<usize>, window: &Sample<f64>) -> Result<()> {
        let (Some(name), Some(start)) = (self.name(code), self.facts[code].start) else { return Ok(()) };
        let (shape, start) = (window.shape(), start as usize);
        let sound = self.sounds.entry((name, part)).or_insert_with(|| vec![Vec::new(); shape.channels]);
        for (channel, window) in sound.iter_mut().zip(window.data().chunks_exact(shape.width)) {
            if channel.len() < start + shape.width {
                channel.resize(start + shape.width, 0.0);
            }
            channel[start..][..shape.width].iter_mut().zip(window).for_each(|(to, from)| *to = *from as f32);
        }
        Ok(())
    }

    /// Writes what is whole once a code was done.
    fn finish(&mut self, code: usize, n_filters: usize) -> Result<()> {
        let (Some(name), Some(rate)) = (self.name(code), self.facts[code].rate) else { return Ok(()) };
        let Some(left) = self.left.get_mut(name) else { return Ok(()) };
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        let parts: Vec<_> = self.sounds.keys().copied().filter(|(recording, _)| *recording == name).collect();
        for key in parts {
            let path = self.path(name, key.1, n_filters);
            if let Some(sound) = self.sounds.remove(&key) {
                wav::write(&path, &sound, rate as u32)?;
            }
        }
        Ok(())
    }
}

/// A file name, of one filter's part or of the whole.
fn with_filter(stem: &OsStr, part: Option<usize>, n_filters: usize) -> OsString {
    let mut name = stem.to_owned();
    if let Some(k) = part {
        let width = n_filters.saturating_sub(1).to_string().len();
        name.push(format!("-filter{k:0width$}"));
    }
    name
}

/// The files of one reconstruction.
struct Results {
    npy: Option<PathBuf>,
    /// Unless pictures alone were asked for, what is none is left to its array.
    png: Option<PathBuf>,
    tiff: Option<PathBuf>,
}

impl Results {
    /// Of the code in a file, or of one filter's part of it, whose samples have so many spatial axes and channels.
    fn of(
        args: &Reconstruct,
        code: &Path,
        part: Option<usize>,
        n_filters: usize,
        [rank, channels]: [usize; 2],
    ) -> Self {
        let name = with_filter(code.file_stem().unwrap_or_default(), part, n_filters);
        let path = |ending: &str| args.out.join(&name).with_added_extension(ending);
        let is_picture = rank == 2 && matches!(channels, 1 | 3);
        let png = args.format == Format::Png || (args.format == Format::Both && is_picture);
        let npy = args.format.holds_values().then(|| path("npy"));
        let tiff = (args.format == Format::Tiff).then(|| path("tif"));
        Results { npy, png: png.then(|| path("png")), tiff }
    }

    /// Leaves out the file of pages where they go to a stack.
    fn beside(self, in_stack: bool) -> Self {
        Results { tiff: self.tiff.filter(|_| !in_stack), ..self }
    }

    /// Arrays have the precision of the model.
    fn write(&self, sample: &Sample<f64>, rank: usize, range: (f64, f64), dtype: Dtype) -> Result<()> {
        match (&self.npy, dtype) {
            (Some(npy), Dtype::F32) => write::write_npy(npy, &sample.clone().cast::<f32>()?, rank)?,
            (Some(npy), Dtype::F64) => write::write_npy(npy, sample, rank)?,
            (None, _) => {}
        }
        if let Some(path) = &self.tiff {
            let pages = tiff::pages(sample, false).with_context(|| path.display().to_string())?;
            tiff::write(path, &pages.iter().collect::<Vec<_>>(), tiff::Depth::Float)?;
        }
        if let Some(png) = &self.png {
            // A constant, as an empty code gives, is drawn in the middle of the gray values.
            let (low, high) = match range {
                (low, high) if low < high => (low, high),
                (value, _) => (value - 1.0, value + 1.0),
            };
            write::write_png(png, sample, low, high)?;
        }
        Ok(())
    }

    fn are_there(&self) -> Result<bool> {
        for path in [&self.npy, &self.png, &self.tiff].into_iter().flatten() {
            if !path.try_exists().with_context(|| path.display().to_string())? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
