//! `ocsc events`: samples to a table of when and where each filter fires.
//!
//! The data are coded as by `ocsc code`, or codes are read that it wrote (`codes.rs`), and `ocsc::events` makes events of the codes.
//! The windows of a recording are put together again: here are the bookkeeping for that and the table; what an event is, is said
//! there.

mod codes;

use super::code::{DEFAULT_TOL, how_it_goes};
use crate::args::{Events, Size};
use crate::console::{self, Console, Interrupted, counted, share};
use crate::data::Cut;
use crate::exit::check_passed_over;
use crate::ranks::Ranks;
use crate::run::dataset;
use crate::run::model::{self, Prepared, check_masked, precision_advice};
use crate::run::outputs::Outputs;
use crate::run::pipe;
use crate::run::sparsity;
use anyhow::{Context, Result, bail, ensure};
use ocsc::coder::Status;
use ocsc::events::{Event, Options, Window, find, stitch};
use ocsc::learner::coder;
use ocsc::settings::Dtype;
use ocsc::train::code_each;
use ocsc::{Real, Shape, Sparsity, replace};
use std::collections::BTreeMap;

/// `ocsc events`.
pub(crate) fn run(args: &Events, console: &Console) -> Result<()> {
    if let Some(files) = codes::named(&args.data.data)? {
        return codes::events(args, &files, console);
    }
    let saved = model::load::<f32>(&args.model, console)?;
    match args.coding.settings.apply(&saved.config, DEFAULT_TOL)?.dtype {
        Dtype::F32 => events::<f32>(args, console),
        Dtype::F64 => events::<f64>(args, console),
    }
}

fn events<T: Real>(args: &Events, console: &Console) -> Result<()> {
    let ranks = &Ranks::alone();
    let saved = ranks.load::<T>(&args.model)?;
    let dictionary = &saved.dictionary;
    let config = args.coding.settings.apply(&saved.config, DEFAULT_TOL)?;
    ensure!(
        !pipe::is_wanted(&args.data)?,
        "-: expected data whose number is known, found standard input; save the frames, e.g. ffmpeg -i film.mp4 \
         frames/%05d.png, and name the folder"
    );
    let options = options(args, dictionary.rank())?;
    let (source, sizes) = dataset::for_coding(&args.data, &config, dictionary.shape(), ranks, console)?;
    check_masked(&config.preprocess, source.is_masked())?;
    let mut files = Outputs::default();
    files.read("the model", [&args.model]);
    files.read("one of the data", source.files());
    files.write("--out", &args.out)?;
    replace::check_writable(&args.out)?;
    let samples = Prepared::new(&source, &config.preprocess).sized(&sizes);
    let config = sparsity::with_beta(&args.coding.settings, config.clone(), dictionary, &samples, ranks, console)?;
    let mut coder = coder(&config, dictionary, config.tol)?;
    let mut table = Table {
        is_per_channel: config.preprocess.is_per_channel(),
        ..Table::new(args, dictionary.rank(), dictionary.shape(), options)
    };
    let mut bar = console.progress("coding", source.len(), 0);
    console::catch_interrupts();
    let monitor = bar.monitor();
    let coded = code_each(coder.as_mut(), dictionary, &samples, &*monitor, |i, item| -> Result<()> {
        match item {
            Ok(item) => {
                let energy = item.sample.energy();
                let filters = item.coded.filters_or(dictionary);
                let found = find(&item.coded.code, filters, config.boundary, energy, &options)?;
                table.add(source.cut(i)?, energy, found)?;
                table.gap = table.gap.max(item.coded.relative_gap());
                table.unconverged += usize::from(item.coded.status != Status::Converged);
                table.sparsity.add(item.coded.code.nonzeros(), item.sample.n_observed());
                bar.advance(1, &how_it_goes(item.sample.n_observed(), &item.coded));
            }
            Err(error) if args.data.strict => bail!(error),
            Err(error) => {
                table.skipped.push(error.to_string());
                bar.note(&format!("skipped: {error}"));
                bar.advance(1, "");
            }
        }
        Ok(())
    });
    drop(bar);
    if let Err(error) = coded {
        return Err(match error.downcast_ref() {
            Some(ocsc::Error::Stopped) => {
                let done = table.sparsity.codes;
                let of = counted(source.len(), "sample");
                Interrupted(format!("interrupted after {done} of {of}; nothing was written")).into()
            }
            _ => error,
        });
    }
    if table.unconverged > 0 {
        let advice = precision_advice(config.dtype, "Raise --max-iters or --time-limit");
        let missed = share(table.unconverged, table.sparsity.codes, "code", ["did", "did"]);
        console.say(format!("{missed} not reach the tolerance {}. {advice}", config.tol));
    }
    sparsity::warn(&table.sparsity, config.beta, || None, console);
    table.write(Some(config.beta), console)
}

/// What counts as an event of filters with so many spatial axes.
fn options(args: &Events, rank: usize) -> Result<Options> {
    let lengths = |size: &Size| -> Result<[usize; 3]> {
        let mut axes = [1; 3];
        match size.lengths() {
            [length] => axes[3 - rank..].fill(*length),
            lengths if lengths.len() == rank => axes[3 - rank..].copy_from_slice(lengths),
            lengths => bail!(
                "--min-distance: expected {rank} lengths, as the filters have {rank} spatial axes, found {}",
                lengths.len()
            ),
        }
        Ok(axes)
    };
    ensure!(
        args.data.reading.sfreq.is_none() || rank != 2,
        "--sfreq: expected signals or video, which have a time, found a model of images"
    );
    let min_distance = args.min_distance.as_ref().map(lengths).transpose()?;
    Ok(Options { threshold: args.threshold, min_distance, align: args.align })
}

/// The events so far, and what is reported of them.
struct Table<'a> {
    args: &'a Events,
    rank: usize,
    is_per_channel: bool,
    filter: Shape,
    options: Options,
    /// By recording: what it is called, its rate, its windows.
    recordings: BTreeMap<usize, (Cut, Vec<Window>)>,
    sparsity: Sparsity,
    gap: f64,
    unconverged: usize,
    /// The reasons why samples were left out.
    skipped: Vec<String>,
}

impl<'a> Table<'a> {
    fn new(args: &'a Events, rank: usize, filter: Shape, options: Options) -> Self {
        let (recordings, sparsity) = (BTreeMap::new(), Sparsity::default());
        let (is_per_channel, gap, unconverged, skipped) = (false, 0.0, 0, Vec::new());
        Table { args, rank, is_per_channel, filter, options, recordings, sparsity, gap, unconverged, skipped }
    }

    /// Adds the events of a sample of this energy, a piece of a recording.
    fn add(&mut self, cut: Cut, energy: f64, events: Vec<Event>) -> Result<()> {
        if let (Some(rate), Some(sfreq)) = (cut.rate, self.args.data.reading.sfreq) {
            bail!("{}: --sfreq: expected none, as the recording has {rate} values per second, found {sfreq}", cut.name);
        }
        let window = Window { start: cut.start.map(|n| n as i64), energy, events };
        self.recordings.entry(cut.whole).or_insert_with(|| (cut, Vec::new())).1.push(window);
        Ok(())
    }

    /// Values per second along the axis of time.
    fn rate(&self, cut: &Cut) -> Option<f64> {
        cut.rate.map(f64::from).or(self.args.data.reading.sfreq)
    }

    /// Writes the table, and says what is in it; `beta` is that of all codes, if they have one in common.
    fn write(self, beta: Option<f64>, console: &Console) -> Result<()> {
        let (args, samples) = (self.args, self.recordings.len());
        if let (0, Some(first)) = (samples, self.skipped.first()) {
            bail!("none of {} could be coded; the first: {first}", counted(self.skipped.len(), "sample"));
        }
        let is_line = self.rank == 1 && !self.is_per_channel;
        let places = if is_line { "position" } else { "z,y,x" };
        let mut text = format!("sample,filter,time,{places},amplitude,energy\n");
        let (mut total, mut used) = (0, std::collections::BTreeSet::new());
        for (cut, windows) in self.recordings.values() {
            let name = quoted(&cut.name);
            let rate = self.rate(cut);
            for event in stitch(windows, self.options.distance(self.filter)) {
                text.push_str(&line(&name, &event, self.rank, is_line, rate));
                total += 1;
                used.insert(event.filter);
            }
        }
        replace::write_file(&args.out, text).with_context(|| args.out.display().to_string())?;
        if args.coding.json {
            let result = serde_json::json!({
                "samples": samples, "events": total, "filters": used.len(), "beta": beta, "gap": self.gap,
                "skipped": self.skipped.len(),
            });
            console.result(result.to_string())?;
            return check_passed_over(self.skipped.len(), "sample", args.data.skip_bad);
        }
        let skips = match self.skipped.len() {
            0 => String::new(),
            skipped => format!(", {} skipped", counted(skipped, "sample")),
        };
        console.table(&[
            ("events".to_owned(), format!("{total} in {}", args.out.display())),
            ("samples".to_owned(), format!("{samples}{skips}")),
            ("filters".to_owned(), format!("{} that fire", used.len())),
            ("worst gap".to_owned(), format!("{:.3} %", 100.0 * self.gap)),
        ])?;
        check_passed_over(self.skipped.len(), "sample", args.data.skip_bad)
    }
}

/// One row of the table, of filters with so many spatial axes. Only events on a line have one place.
fn line(name: &str, event: &Event, rank: usize, is_line: bool, rate: Option<f64>) -> String {
    let [z, y, x] = event.position;
    let at = match rank {
        1 => Some(x),
        2 => None,
        _ => Some(z),
    };
    let places = if is_line { x.to_string() } else { format!("{z},{y},{x}") };
    let time = at.zip(rate).map_or(String::new(), |(at, rate)| (at as f64 / rate).to_string());
    // A sample of zeros has no shares.
    let energy = if event.energy.is_finite() { event.energy.to_string() } else { String::new() };
    format!("{name},{},{time},{places},{},{energy}\n", event.filter, event.amplitude)
}

/// A field of a table, in quotes if it would be taken for several.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
