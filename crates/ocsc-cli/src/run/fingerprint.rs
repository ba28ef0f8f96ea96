//! What `ocsc learn` learns from, recorded in checkpoints, and held against what a resumed run is given.

use crate::args::{Learn, Size};
use crate::console::{Console, counted, told};
use crate::data::{Channel, Source};
use crate::ranks::Ranks;
use anyhow::{Result, bail};
use clap::ValueEnum;
use ocsc::comm::broadcast;
use ocsc::fingerprint::{Fingerprint, SampleId, SampleList};
use ocsc::train::Progress;
use ocsc::{Config, Error, Method};
use std::collections::BTreeMap;
use std::path::Path;

/// The fingerprint of a set, whose samples, or pieces of this size, have these sizes. The axes and the rate are those of the call, or
/// else those of the model.
pub(crate) fn of_set(
    args: &Learn,
    config: &Config,
    source: &Source,
    tile: Option<&Size>,
    sizes: &[[u32; 3]],
) -> Fingerprint {
    let identities = source.identities(&args.data.data).zip(sizes);
    let samples = SampleList::of(identities.map(|((name, bytes), size)| SampleId { name, bytes, size: *size }));
    let mut options = options(args);
    options.extend(tile.map(|tile| ("tile".to_owned(), tile.to_string())));
    let axes = args.data.reading.axes.as_ref().or(config.axes.as_ref());
    options.extend(axes.map(|axes| ("axes".to_owned(), axes.to_string())));
    let rate = args.data.reading.rate.map(u64::from).or(config.rate);
    options.extend(rate.map(|rate| ("rate".to_owned(), rate.to_string())));
    Fingerprint { options, choices: choices(args), samples: Some(samples) }
}

/// The fingerprint of a stream: its samples have no names, and may be others.
pub(crate) fn of_stream(args: &Learn) -> Fingerprint {
    let mut options = options(args);
    options.extend(args.data.raw.map(|size| ("raw".to_owned(), format!("{}x{}", size.height, size.width))));
    let format = args.data.raw_format.to_possible_value();
    options.extend(format.map(|format| ("raw-format".to_owned(), format.get_name().to_owned())));
    Fingerprint { options, choices: BTreeMap::new(), samples: None }
}

/// The options that change what samples are.
fn options(args: &Learn) -> BTreeMap<String, String> {
    let reading = &args.data.reading;
    let channel = Some(reading.channel).filter(|channel| *channel != Channel::Mean);
    let given = [
        ("resize", reading.resize.map(|resize| resize.to_string())),
        ("crop", reading.crop.as_ref().map(ToString::to_string)),
        ("crops-per-sample", args.crops_per_sample.map(|n| n.to_string())),
        ("window", reading.window.map(|window| window.to_string())),
        ("channel", channel.map(|channel| channel.to_string())),
        ("sfreq", reading.sfreq.map(|sfreq| sfreq.to_string())),
        ("mask", reading.mask.as_deref().map(mask)),
        ("data-weights", reading.data_weights.as_deref().map(mask)),
        ("coefficient-weights", reading.coefficient_weights.as_deref().map(mask)),
        ("nan-is-missing", reading.nan_is_missing.then(String::new)),
    ];
    named(given)
}

/// The options that choose samples.
fn choices(args: &Learn) -> BTreeMap<String, String> {
    let (data, test) = (&args.data, &args.test);
    let file = |path: &Option<std::path::PathBuf>| path.as_deref().map(file_name);
    let given = [
        ("recursive", data.reading.recursive.then(String::new)),
        ("skip-small", data.skip_small.then(String::new)),
        ("limit", data.limit.map(|n| n.to_string())),
        ("subset", data.subset.map(|n| n.to_string())),
        ("test-fraction", test.test_fraction.map(|fraction| fraction.to_string())),
        ("test-list", file(&test.test_list)),
        ("split", file(&test.split)),
    ];
    named(given)
}

fn named<const N: usize>(given: [(&str, Option<String>); N]) -> BTreeMap<String, String> {
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().display().to_string()
}

/// What a mask, or a folder of masks, is known by.
fn mask(path: &Path) -> String {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let Ok(entries) = std::fs::read_dir(path) else { return format!("{} ({} bytes)", file_name(path), bytes(path)) };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let id = |file: &std::path::PathBuf| SampleId { name: file_name(file), bytes: bytes(file), size: [1; 3] };
    let list = SampleList::of(files.iter().map(id));
    format!("{} ({})", counted(list.count, "file"), &list.all[..8])
}

/// Refuses to go on from a checkpoint with other data, unless the call insists. Returns where to go on. Rank 0 decides.
pub(crate) fn go_on(
    args: &Learn,
    ranks: &Ranks,
    recorded: Option<&Fingerprint>,
    now: Option<&Fingerprint>,
    method: Method,
    progress: Progress,
    console: &Console,
) -> Result<Progress> {
    let decision = match now.filter(|_| ranks.is_first()) {
        Some(now) => compared(args, recorded, now, method, progress, console),
        None => Ok(false),
    };
    let decision = decision.map(|anew| vec![u8::from(anew)]).map_err(|e| Error::Source(told(&e)));
    let anew = broadcast(ranks.comm(), decision)? == [1];
    Ok(if anew { Progress { visited: 0, ..progress } } else { progress })
}

/// Whether the pass is to be begun anew, with other samples.
fn compared(
    args: &Learn,
    recorded: Option<&Fingerprint>,
    now: &Fingerprint,
    method: Method,
    progress: Progress,
    console: &Console,
) -> Result<bool> {
    let path = args.resume.as_deref().unwrap_or(Path::new("checkpoint")).display();
    let Some(recorded) = recorded else {
        console.say(format!(
            "{path}: does not say what it was learned from (written before checkpoints did, or elsewhere): whether these data \
             are the same is not checked"
        ));
        let differs = now.samples.as_ref().is_some_and(|now| now.count != progress.of);
        return Ok(args.other_data && differs && progress.visited > 0);
    };
    let Some(difference) = recorded.difference(now) else { return Ok(false) };
    if !args.other_data {
        bail!(
            "{path}: data set: {difference}; name the same data with the same options again, or go on with these by \
             --other-data"
        );
    }
    let is_set = now.samples.is_some();
    let others = recorded.has_other_samples(now);
    if method.is_batch() && others {
        bail!(
            "--other-data: expected a method that learns online, found {method}, which keeps its samples: {difference}"
        );
    }
    let anew = is_set && others && progress.visited > 0;
    let pass = if anew { "; its pass is begun anew" } else { "" };
    console.say(format!("{path}: goes on with other data: {difference}{pass}"));
    Ok(anew)
}
