//! The data of a call, opened: which samples to learn from, to test on and to code.
//!
//! What is held out is held out of all of DATA. Of both sides, samples that are too small are then passed over where the
//! call says so; and of those to learn from, `--limit` and `--subset` choose. So runs that differ in these test on the
//! same samples.

use crate::args::{DataArgs, Evaluate, Learn, ModelArgs, Reading, Size, Tile};
use crate::console::{Console, counted, share};
use crate::data::{Channel, Source, SourceOptions, channels_before, fits};
use crate::memory::Limit;
use crate::ranks::{Ranks, Sizes};
use crate::run::given::Given;
use crate::run::tile;
use crate::threads;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use ocsc::checkpoint::Saved;
use ocsc::preprocess::Preprocess;
use ocsc::text::extent;
use ocsc::{Config, Shape};
use std::path::Path;

/// What to do about samples that are smaller than the filters.
pub(crate) const SKIP: &str = "--skip-small passes over such samples";

/// The data of a run.
pub(crate) struct ToLearn {
    /// The samples to learn from, or pieces of them.
    pub(crate) source: Source,
    /// The samples to test on.
    pub(crate) test: Option<Source>,
    /// The size of the pieces; none of whole samples.
    pub(crate) tile: Option<Size>,
}

/// The samples to learn from, and those to test on.
pub(crate) fn for_learning(args: &Learn, resumed: Option<&Saved<f32>>, console: &Console) -> Result<ToLearn> {
    let seed = resumed.map_or(args.model.seed(), |saved| saved.config.seed);
    let mut options = args.data.reading.options(seed);
    options.limit = Limit::new(args.model.run().memory_limit);
    let options = resumed.map_or(options.clone(), |saved| options.like_learned(&saved.config));
    let all = Source::open(&args.data.data, &options)?;
    let (mut source, mut test) = held_out(args, all, &options, args.split_seed.unwrap_or(seed))?;
    if args.test.test.is_empty()
        && let Some(test) = &test
    {
        console.say(format!("{} to learn from, {} held out", counted(source.len(), "sample"), test.len()));
    }
    if args.data.skip_small {
        let filter = match resumed {
            Some(saved) => saved.dictionary.shape().spatial(),
            None => filter_size(args, source.rank())?,
        };
        source = large_enough(&source, filter, console)?;
        test = test.map(|test| large_enough(&test, filter, console)).transpose().context("--test")?;
    }
    let source = chosen(source, &args.data, seed);
    let tile = tile::chosen(args, resumed, &source, || filter_size(args, source.rank()))?;
    if let (Some(Tile::Pieces(size)), None) = (&args.tile, resumed) {
        check_tile(size, source.rank(), filter_size(args, source.rank())?)?;
    }
    let source = match (&tile, args.crops_per_sample) {
        (None, None) => source,
        (tile, count) => source.in_pieces(tile.as_ref().map(Size::lengths), count).context("--tile")?,
    };
    if let (Some(tile), None, None) = (&tile, &args.tile, resumed) {
        say_tile(&source, tile, console);
    }
    Ok(ToLearn { source, test, tile })
}

/// Checks that pieces of a size that the call names are at least as large as the filters.
fn check_tile(size: &Size, rank: usize, filter: [usize; 3]) -> Result<()> {
    let lengths = filter[3 - rank..].to_vec();
    // Of other lengths than the data have axes, more is said where they are cut.
    let pieces = size.axes(rank).unwrap_or_else(|_| lengths.clone());
    ensure!(
        pieces.iter().zip(&lengths).all(|(piece, length)| piece >= length),
        "--tile {size}: expected pieces of at least the filters' size {}",
        extent(&filter)
    );
    Ok(())
}

/// Says what pieces samples are learned from in that the call says nothing of.
fn say_tile(source: &Source, tile: &Size, console: &Console) {
    let whole = source.whole().len();
    let are = if whole == 1 { "is" } else { "are" };
    let (samples, pieces) = (counted(whole, "sample"), counted(source.len(), "piece"));
    console.say(format!("{samples} {are} learned from in {pieces} of {tile} a pass; --tile whole for whole samples"));
}

/// The samples to tune with; those that are too small are passed over when they are read.
pub(crate) fn for_tuning(args: &DataArgs, model: &ModelArgs) -> Result<Source> {
    let mut options = args.reading.options(model.seed());
    options.limit = Limit::new(model.run().memory_limit);
    Ok(chosen(Source::open(&args.data, &options)?, args, model.seed()))
}

/// What a run on frames from standard input tests on.
pub(crate) fn for_stream(args: &Learn) -> Result<Option<Source>> {
    let test = &args.test;
    let splits = test.test_fraction.is_some() || test.test_list.is_some() || test.split.is_some();
    ensure!(!splits, "-: nothing can be held out of standard input; name other data with --test");
    let options = SourceOptions { mask: None, ..args.data.reading.options(args.model.seed()) };
    if test.test.is_empty() { Ok(None) } else { Source::open(&test.test, &options).context("--test").map(Some) }
}

/// The samples brought to one number of channels, before these steps: that of the filters if they are there already, else
/// that which most samples have. What differs is said.
pub(crate) fn alike(
    source: &Source,
    preprocess: &Preprocess,
    filters: Option<usize>,
    ranks: &Ranks,
    console: &Console,
) -> Result<Source> {
    // Of samples, also where they are learned from in pieces.
    let whole = source.whole();
    let counts = ranks.channels(&whole)?;
    let channels = filters.or(counts.majority()).and_then(|channels| channels_before(preprocess, channels));
    if ranks.is_first() {
        counts.words(channels, preprocess, |i| whole.name(i)).into_iter().for_each(|line| console.say(line));
    }
    Ok(source.clone().of_channels(channels))
}

/// The samples to code with a model of these settings.
pub(crate) fn for_coding(
    args: &DataArgs,
    config: &Config,
    filter: Shape,
    ranks: &Ranks,
    console: &Console,
) -> Result<(Source, Sizes)> {
    for_coding_those(args, Ok, config, filter, ranks, console)
}

/// Opens the samples to evaluate on: those that `learn` held out, or all.
pub(crate) fn for_evaluating(
    args: &Evaluate,
    config: &Config,
    filter: Shape,
    ranks: &Ranks,
    console: &Console,
) -> Result<(Source, Sizes)> {
    let seed = args.split_seed.unwrap_or(config.seed);
    let those =
        |all: Source| match split(&all, args.test_fraction, args.test_list.as_deref(), args.split.as_deref(), seed)? {
            Some((rest, held)) => {
                console.say(format!("{} of {} are held out", held.len(), counted(rest.len() + held.len(), "sample")));
                Ok(held)
            }
            None => Ok(all),
        };
    for_coding_those(&args.data, those, config, filter, ranks, console)
}

fn for_coding_those(
    args: &DataArgs,
    hold_out: impl Fn(Source) -> Result<Source>,
    config: &Config,
    filter: Shape,
    ranks: &Ranks,
    console: &Console,
) -> Result<(Source, Sizes)> {
    // Nothing is drawn but the subset.
    let seed = 0;
    let options = args.reading.options(seed).like_learned(config);
    let mut source = hold_out(Source::open(&args.data, &options)?)?;
    say_recorded(&options, config, &source, console);
    if args.skip_small {
        source = large_enough(&source, filter.spatial(), console)?;
    }
    let source = chosen(source, args, seed);
    ranks.check_same(&source)?;
    let source = alike(&source, &config.preprocess, Some(filter.channels), ranks, console)?;
    let sizes = sizes(ranks, &source, false)?;
    say_idle_crop(&args.reading, &source, &sizes, console);
    let (source, sizes) = without_small(source, sizes, filter.spatial(), args.strict);
    check_sizes(&source, &sizes, filter)?;
    Ok((source, sizes))
}

/// Says what of the reading is as the model was learned with, though the call does not say so, and what is not.
fn say_recorded(options: &SourceOptions, config: &Config, source: &Source, console: &Console) {
    if let Some(axes) = options.axes.as_ref().filter(|_| options.axes_are_recorded && source.has_axes()) {
        console.say(format!("axes {axes}, as the model was learned with; --axes says otherwise"));
    }
    if let Some(rate) = options.rate.filter(|_| options.rate_is_recorded && source.has_recordings()) {
        console.say(format!("rate {rate} Hz, as the model was learned with; --rate says otherwise"));
    }
    // Other than rates, sizes are often meant to differ: filters of small pictures code large ones too.
    if let Some(size) = config.resize.as_ref().filter(|_| options.resize.is_none() && source.rank() > 1) {
        console.say(format!(
            "the model was learned with --resize {size}, and these are taken as they are; --resize {size} scales them so"
        ));
    }
}

/// Returns the sizes of all samples; zeros for those that cannot be read, which are left for those who read them to report,
/// unless the call is strict.
pub(crate) fn sizes(ranks: &Ranks, source: &Source, strict: bool) -> Result<Sizes> {
    ranks.sizes(source, |size| if strict { size.map(Some) } else { Ok(size.ok()) })
}

/// Says of a crop that is larger than all samples that it leaves them as they are.
pub(crate) fn say_idle_crop(reading: &Reading, source: &Source, sizes: &Sizes, console: &Console) {
    let Some(crop) = &reading.crop else { return };
    let rank = source.rank();
    // A sample that was cut has the length of the crop on some axis.
    let Ok(lengths) = crop.axes(rank) else { return };
    let is_whole = |size: &&[u32; 3]| size[3 - rank..].iter().zip(&lengths).all(|(n, length)| (*n as usize) < *length);
    let known: Vec<&[u32; 3]> = sizes.iter().filter(|size| **size != [0; 3]).collect();
    let largest = known.iter().max_by_key(|size| size.iter().map(|n| u64::from(*n)).product::<u64>());
    if let Some(largest) = largest.filter(|_| known.iter().all(is_whole)) {
        let largest = extent(&largest.map(|n| n as usize));
        console.say(format!("--crop {crop} cuts nothing: the largest sample is of {largest}"));
    }
}

/// Takes samples that are smaller than the filters for such that cannot be read, unless all are, or the call is strict: those are
/// refused at once.
pub(crate) fn without_small(source: Source, sizes: Sizes, filter: [usize; 3], strict: bool) -> (Source, Sizes) {
    let is_known = |size: &[u32; 3]| *size != [0; 3];
    let is_small = |size: &[u32; 3]| is_known(size) && !fits(size.map(|n| n as usize), filter);
    let some_fit = sizes.iter().any(|size| is_known(size) && !is_small(size));
    if strict || !some_fit || !sizes.iter().any(is_small) {
        return (source, sizes);
    }
    let sizes = sizes.into_iter().map(|size| if is_small(&size) { [0; 3] } else { size }).collect();
    (source.refusing_smaller(filter), sizes)
}

/// Checks that all samples whose sizes are known are at least as large as the filters.
fn check_sizes(source: &Source, sizes: &Sizes, filter: Shape) -> Result<()> {
    let known = sizes.iter().enumerate().filter(|(_, size)| **size != [0; 3]);
    for (i, size) in known {
        let size = size.map(|n| n as usize);
        let (expected, found) = (extent(&filter.spatial()), extent(&size));
        let reading = source.reading(i).map_or(String::new(), |reading| format!(" ({reading})"));
        ensure!(
            fits(size, filter.spatial()),
            "{}{reading}: expected at least the filters' size {expected} on every axis, found {found}; {SKIP}",
            source.name(i)
        );
    }
    Ok(())
}

/// The channels of the dictionary that a new run starts from, if a file holds it.
pub(crate) fn channels_of_init(args: &Learn, rank: usize) -> Result<Option<usize>> {
    channels_of_start(&args.model.init, rank)
}

/// The same of what `--init` says.
pub(crate) fn channels_of_start(init: &str, rank: usize) -> Result<Option<usize>> {
    match init {
        "random" | "patches" => Ok(None),
        file => Ok(Some(Given::read(Path::new(file), rank)?.shape.channels)),
    }
}

/// DATA and the options that choose its samples, as they must be given again to go on.
pub(crate) fn words(args: &Learn) -> String {
    let (data, test) = (&args.data, &args.test);
    let mut words: Vec<String> = data.data.iter().map(|path| quoted(path)).collect();
    let mut option = |name: &str, value: Option<String>| words.extend(value.map(|value| format!("{name} {value}")));
    option("--axes", data.reading.axes.as_ref().map(ToString::to_string));
    option("--resize", data.reading.resize.map(|resize| resize.to_string()));
    option("--crop", data.reading.crop.as_ref().map(ToString::to_string));
    option("--crops-per-sample", args.crops_per_sample.map(|n| n.to_string()));
    option("--tile", args.tile.as_ref().map(ToString::to_string));
    option("--window", data.reading.window.map(|window| window.to_string()));
    option("--channel", Some(data.reading.channel).filter(|c| *c != Channel::Mean).map(|channel| channel.to_string()));
    option("--rate", data.reading.rate.map(|rate| rate.to_string()));
    option("--sfreq", data.reading.sfreq.map(|sfreq| sfreq.to_string()));
    option("--mask", data.reading.mask.as_deref().map(quoted));
    option("--data-weights", data.reading.data_weights.as_deref().map(quoted));
    option("--coefficient-weights", data.reading.coefficient_weights.as_deref().map(quoted));
    option("--raw", data.raw.map(|size| format!("{}x{}", size.height, size.width)));
    option(
        "--raw-format",
        data.raw.and(data.raw_format.to_possible_value()).map(|format| format.get_name().to_owned()),
    );
    option("--limit", data.limit.map(|n| n.to_string()));
    option("--subset", data.subset.map(|n| n.to_string()));
    for path in &test.test {
        option("--test", Some(quoted(path)));
    }
    option("--test-fraction", test.test_fraction.map(|fraction| fraction.to_string()));
    option("--split-seed", args.split_seed.map(|seed| seed.to_string()));
    option("--test-list", test.test_list.as_deref().map(quoted));
    option("--split", test.split.as_deref().map(quoted));
    words.extend(data.reading.recursive.then(|| "--recursive".to_owned()));
    words.extend(data.reading.nan_is_missing.then(|| "--nan-is-missing".to_owned()));
    words.extend(data.skip_small.then(|| "--skip-small".to_owned()));
    words.extend(data.strict.then(|| "--strict".to_owned()));
    words.extend(data.skip_bad.then(|| "--skip-bad".to_owned()));
    words.join(" ")
}

/// The call that goes on with the run from the model file `out`: with the same data, and the options that no checkpoint records.
pub(crate) fn call_to_go_on(args: &Learn, out: &Path) -> String {
    let run = args.model.run();
    let mut call = format!("ocsc learn {} --resume {}", words(args), quoted(out));
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            call.push_str(&format!(" {name} {value}"));
        }
    };
    option("--log", args.log.as_deref().map(quoted));
    option("--report", args.report.as_deref().map(quoted));
    option("--write-split", args.write_split.as_deref().map(quoted));
    option("--test-every", args.test_every.map(|n| n.to_string()));
    option("--checkpoint-every", args.checkpoint_every.map(|every| every.to_string()));
    option("--stop-tol", run.stop_tol.map(|tol| tol.to_string()));
    option("--memory-limit", run.memory_limit.map(|bytes| bytes.to_string()));
    option("--threads", threads::asked().map(|n| n.to_string()));
    call
}

/// Splits what the call holds out, or opens what it tests on.
fn held_out(args: &Learn, all: Source, options: &SourceOptions, seed: u64) -> Result<(Source, Option<Source>)> {
    let test = &args.test;
    if let Some((source, held)) =
        split(&all, test.test_fraction, test.test_list.as_deref(), test.split.as_deref(), seed)?
    {
        return Ok((source, Some(held)));
    }
    if test.test.is_empty() {
        return Ok((all, None));
    }
    // Masks belong to the samples to learn from.
    let options = SourceOptions { mask: None, ..options.clone() };
    Ok((all, Some(Source::open(&test.test, &options).context("--test")?)))
}

/// Splits samples into those to learn from and those held out, if a call says so.
fn split(
    all: &Source,
    fraction: Option<f64>,
    list: Option<&Path>,
    file: Option<&Path>,
    seed: u64,
) -> Result<Option<(Source, Source)>> {
    Ok(match (fraction, list, file) {
        (Some(fraction), _, _) => Some(all.hold_out_fraction(fraction, seed)?),
        (_, Some(list), _) => {
            Some(all.hold_out_listed(list).with_context(|| format!("--test-list {}", list.display()))?)
        }
        (_, _, Some(file)) => Some(all.split_numbered(file).with_context(|| format!("--split {}", file.display()))?),
        (None, None, None) => None,
    })
}

/// Depth, height and width of the filters that a new run will learn.
pub(crate) fn filter_size(args: &Learn, rank: usize) -> Result<[usize; 3]> {
    match args.model.init.as_str() {
        "random" | "patches" => Ok(Shape::from_axes(1, &args.model.filter_shape(rank)?)?.spatial()),
        file => Ok(Given::read(Path::new(file), rank)?.shape.spatial()),
    }
}

/// The samples that are large enough, and a word about the others.
fn large_enough(source: &Source, filter: [usize; 3], console: &Console) -> Result<Source> {
    let (fitting, small) = source.at_least(filter);
    if let Some(small) = small {
        let [depth, height, width] = filter;
        let (filter, name) = (Shape { channels: 1, depth, height, width }, source.name(small));
        ensure!(fitting.len() > 0, "{name}: expected samples of at least the filters' size {filter}, found none");
        let these = share(source.len() - fitting.len(), source.len(), "sample", ["is", "are"]);
        console.say(format!("{these} smaller than the filters ({filter}) and passed over, {name} first"));
    }
    Ok(fitting)
}

/// The samples that `--limit` and `--subset` leave.
fn chosen(source: Source, args: &DataArgs, seed: u64) -> Source {
    let source = args.limit.map_or(source.clone(), |n| source.first(n));
    args.subset.map_or(source.clone(), |n| source.subset(n, seed))
}

pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
