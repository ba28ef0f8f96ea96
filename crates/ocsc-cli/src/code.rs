//! `ocsc code` and `ocsc reconstruct`: samples to sparse codes and back.

use crate::args::{Code, Format, Reconstruct};
use crate::console::{self, Console};
use crate::crew::Crew;
use crate::data::{Source, codes, write};
use crate::model::{Prepared, check_masked, coding_config};
use crate::open;
use crate::original::Originals;
use crate::stream;
use anyhow::{Context, Result, bail, ensure};
use ocsc::coder::{Coded, Status};
use ocsc::config::Dtype;
use ocsc::learner::coder;
use ocsc::team::{Part, Team, gather};
use ocsc::train::code_each;
use ocsc::{Config, Real, Sample, Samples, checkpoint};
use std::path::PathBuf;

/// Codes are this close to optimal unless the call says otherwise.
const DEFAULT_TOL: f64 = 0.01;

/// `ocsc code`.
pub fn run(args: &Code, crew: &Crew, console: &Console) -> Result<()> {
    let saved = crew.load::<f32>(&args.model)?;
    match coding_config(&saved.config, &args.coding, DEFAULT_TOL).dtype {
        Dtype::F32 => code::<f32>(args, crew, console),
        Dtype::F64 => code::<f64>(args, crew, console),
    }
}

fn code<T: Real>(args: &Code, crew: &Crew, console: &Console) -> Result<()> {
    let saved = crew.load::<T>(&args.model)?;
    let config = coding_config(&saved.config, &args.coding, DEFAULT_TOL);
    let mut coder = coder(&config, &saved.dictionary, config.tol)?;
    if stream::is_wanted(&args.data)? {
        ensure!(!crew.is_many(), "-: expected data that all ranks can read, found standard input");
        return stream::code(args, &config, &saved.dictionary, coder.as_mut(), console);
    }
    let (source, sizes) = open::for_coding(&args.data, saved.dictionary.shape(), crew, console)?;
    check_masked(&config.preprocess, source.is_masked())?;
    let samples = Prepared::new(&source, &config.preprocess).sized(&sizes);
    let part = Part::<T>::of(crew.team(), &samples);
    make_folder(&args.out)?;
    let mut tally = Tally::new(args, &config, saved.dictionary.rank(), console.progress("coding", part.len(), 0));
    console::catch_interrupts()?;
    code_each(coder.as_mut(), &saved.dictionary, &part, |i, item| -> Result<()> {
        match item {
            Ok(item) => tally.add(&source.file_stem(part.number(i)), item.coded)?,
            Err(error) if args.data.strict => bail!(error),
            Err(error) => tally.skip(error.to_string()),
        }
        let done = i + 1;
        ensure!(!console::interrupted(), "interrupted after {done} of {} samples; their codes are kept", part.len());
        Ok(())
    })?;
    tally.gather(crew.team())?;
    tally.report(console)
}

/// Writes codes, and sums up what is reported of them.
pub(crate) struct Tally<'a> {
    args: &'a Code,
    config: &'a Config,
    rank: usize,
    bar: console::Progress,
    samples: usize,
    objective: f64,
    gap: f64,
    nonzeros: usize,
    unconverged: usize,
    /// Why samples were left out.
    skipped: Vec<String>,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(args: &'a Code, config: &'a Config, rank: usize, bar: console::Progress) -> Self {
        let (skipped, gap) = (Vec::new(), 0.0);
        Tally { args, config, rank, bar, samples: 0, objective: 0.0, gap, nonzeros: 0, unconverged: 0, skipped }
    }

    pub(crate) fn add<T: Real>(&mut self, stem: &str, coded: &Coded<T>) -> Result<()> {
        let extra = [("objective", coded.total()), ("gap", coded.relative_gap()), ("beta", self.config.beta)];
        codes::write_code(&self.args.out.join(format!("{stem}.npz")), &coded.code, self.rank, &extra)?;
        self.samples += 1;
        self.objective += coded.total();
        self.gap = self.gap.max(coded.relative_gap());
        self.nonzeros += coded.code.nonzeros();
        self.unconverged += usize::from(coded.status != Status::Converged);
        self.bar.advance(1, &format!("objective {:.1}  gap {:.2} %", coded.total(), 100.0 * coded.relative_gap()));
        Ok(())
    }

    /// A sample cannot be coded.
    fn skip(&mut self, why: String) {
        self.bar.note(&format!("skipped: {why}"));
        self.bar.advance(1, "");
        self.skipped.push(why);
    }

    /// Adds what the others did.
    fn gather(&mut self, team: &dyn Team) -> Result<()> {
        let numbers = [self.samples as f64, self.objective, self.gap, self.nonzeros as f64, self.unconverged as f64];
        let numbers = numbers.map(f64::to_le_bytes).concat();
        let all = gather(team, &[numbers, serde_json::to_vec(&self.skipped)?].concat());
        (self.samples, self.objective, self.gap, self.nonzeros, self.unconverged) = (0, 0.0, 0.0, 0, 0);
        self.skipped.clear();
        for bytes in all {
            let (numbers, skipped) = bytes.split_first_chunk::<40>().context("a message of another rank was cut")?;
            let mut numbers = numbers.as_chunks().0.iter().map(|n| f64::from_le_bytes(*n));
            let mut next = || numbers.next().unwrap_or_default();
            self.samples += next() as usize;
            self.objective += next();
            self.gap = self.gap.max(next());
            self.nonzeros += next() as usize;
            self.unconverged += next() as usize;
            self.skipped.extend(serde_json::from_slice::<Vec<String>>(skipped)?);
        }
        Ok(())
    }

    pub(crate) fn report(self, console: &Console) -> Result<()> {
        let Tally { args, config, bar, samples, gap, unconverged, skipped, .. } = self;
        drop(bar);
        if let (0, Some(first)) = (samples, skipped.first()) {
            bail!("none of {} samples could be coded; the first: {first}", skipped.len());
        }
        if unconverged > 0 {
            console.say(format!("{unconverged} of {samples} codes did not reach the tolerance {}; their files hold the gap they reached. Raise --max-iters or --time-limit, or use --dtype f64", config.tol));
        }
        let (objective, nonzeros) = (self.objective / samples as f64, self.nonzeros as f64 / samples as f64);
        if args.coding.json {
            let result = serde_json::json!({
                "samples": samples, "objective": objective, "gap": gap, "nonzeros": nonzeros, "skipped": skipped.len(),
            });
            return console.result(result.to_string());
        }
        let skips = if skipped.is_empty() { String::new() } else { format!(", {} samples skipped", skipped.len()) };
        console.table(&[
            ("codes".to_owned(), format!("{samples} in {}{skips}", args.out.display())),
            ("objective".to_owned(), format!("{objective:.3}")),
            ("worst gap".to_owned(), format!("{:.3} %", 100.0 * gap)),
            ("non-zeros".to_owned(), format!("{nonzeros:.1} per sample")),
        ])
    }
}

pub(crate) fn reconstruct(args: &Reconstruct, console: &Console) -> Result<()> {
    // In f64, whatever the codes were computed in: this is the way out.
    let saved = checkpoint::load::<f64>(&args.model)?;
    let (dictionary, boundary) = (saved.dictionary, saved.config.boundary);
    let preprocess = args.preprocess.as_ref().unwrap_or(&saved.config.preprocess);
    let source = match &args.original[..] {
        [] => None,
        data => Some(Source::open(data, &args.reading.options(0)).context("--original")?),
    };
    let originals = source.as_ref().map(|source| Originals::new(Prepared::new(source, preprocess)));
    let entries = std::fs::read_dir(&args.codes)
        .with_context(|| format!("{}: expected a folder of codes", args.codes.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path: PathBuf = entry?.path();
        if path.extension().is_some_and(|e| e == "npz") {
            paths.push(path);
        }
    }
    paths.sort();
    ensure!(!paths.is_empty(), "{}: expected codes ending in .npz, found none", args.codes.display());
    make_folder(&args.out)?;
    let mut bar = console.progress("reconstructing", paths.len(), 0);
    let mut no_pictures = 0;
    for path in &paths {
        let (code, rank) = codes::read_code::<f64>(path)?;
        let here = || path.display().to_string();
        let sample = code.reconstruct(&dictionary, boundary).with_context(here)?;
        let stem = path.file_stem().unwrap_or_default();
        let (sample, range) = match &originals {
            Some(originals) => originals.bring_back(&stem.to_string_lossy(), sample).with_context(here)?,
            None => {
                let range = extremes(&sample);
                (sample, range)
            }
        };
        if args.format != Format::Png {
            write::write_npy(&args.out.join(stem).with_added_extension("npy"), &sample, rank)?;
        }
        // Unless pictures alone were asked for, what is none is left to its array.
        let is_picture = rank == 2 && matches!(sample.shape().channels, 1 | 3);
        no_pictures += usize::from(args.format == Format::Both && !is_picture);
        if args.format == Format::Png || (args.format == Format::Both && is_picture) {
            // A constant, as an empty code gives, is drawn in the middle of the gray values.
            let (low, high) = match range {
                (low, high) if low < high => (low, high),
                (value, _) => (value - 1.0, value + 1.0),
            };
            write::write_png(&args.out.join(stem).with_added_extension("png"), &sample, low, high)?;
        }
        bar.advance(1, "");
    }
    drop(bar);
    if no_pictures > 0 {
        console.say(format!("{no_pictures} are signals, volumes or of other than 1 or 3 channels: .npy only"));
    }
    if originals.is_some() && !preprocess.has_inverse() {
        console.say("an edge taper cannot be undone: the border of the reconstructions stays blended");
    }
    console.result(format!("{} reconstructions in {}", paths.len(), args.out.display()))
}

/// The smallest and the largest value.
pub(crate) fn extremes<T: Real>(sample: &Sample<T>) -> (f64, f64) {
    let fold = |(low, high): (f64, f64), v: &T| (low.min(v.f64()), high.max(v.f64()));
    sample.data().iter().fold((f64::INFINITY, f64::NEG_INFINITY), fold)
}

pub(crate) fn make_folder(path: &PathBuf) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("{}: cannot make this folder", path.display()))
}
