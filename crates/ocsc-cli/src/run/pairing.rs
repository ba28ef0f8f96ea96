//! Which sample a code was made of: by the path that the code recorded, never by the order of the data.

use crate::data::{Facts, Source};
use anyhow::{Context, Result, bail};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The number of the sample that each code was made of.
///
/// The sample of the recorded name comes first. Where there is none, as after a folder was moved, it is the sample whose path
/// has the longest end in common with the recorded one, at least the file's name, among those that no other code names. Codes
/// that recorded nothing are paired by their own name, if only one sample can mean it.
pub(crate) fn pair(source: &Source, codes: &[PathBuf], facts: &[Facts]) -> Result<Vec<usize>> {
    let names: Vec<String> = (0..source.len()).map(|i| source.name(i)).collect();
    let by_name: HashMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
    let by_stem: HashMap<String, usize> = (0..source.len()).map(|i| (source.file_stem(i), i)).collect();
    let exact = |facts: &Facts| facts.source.as_ref().and_then(|name| by_name.get(name.as_str()).copied());
    let taken: HashSet<usize> = facts.iter().filter_map(exact).collect();
    let mut by_end: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, name) in names.iter().enumerate().filter(|(i, _)| !taken.contains(i)) {
        by_end.entry(last(name)).or_default().push(i);
    }
    let pairs = codes.iter().zip(facts).map(|(code, facts)| {
        let stem = code.file_stem().unwrap_or_default().to_string_lossy();
        let by_stem = || {
            by_stem.get(&*stem).copied().with_context(|| {
                let (first, last) = (source.file_stem(0), source.file_stem(source.len() - 1));
                let recorded = facts.source.as_ref().map_or(String::new(), |source| format!(" (made of {source})"));
                format!("expected a sample called {stem}{recorded}, found {} from {first} to {last}", source.len())
            })
        };
        let found = match (&facts.source, exact(facts)) {
            (_, Some(index)) => Ok(index),
            (Some(recorded), None) => match nearest(recorded, &names, by_end.get(last(recorded))) {
                Ok(Some(index)) => Ok(index),
                Ok(None) => by_stem().and_then(|index| alone(index, &names)),
                Err(error) => Err(error),
            },
            (None, None) => by_stem().and_then(|index| alone(index, &names)),
        };
        found.with_context(|| code.display().to_string())
    });
    pairs.collect()
}

/// The sample whose path has the longest end in common with a recorded one.
fn nearest(recorded: &str, names: &[String], candidates: Option<&Vec<usize>>) -> Result<Option<usize>> {
    let Some(candidates) = candidates else { return Ok(None) };
    let shared = |index: usize| {
        let (a, b) = (Path::new(recorded).components().rev(), Path::new(&names[index]).components().rev());
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let longest = candidates.iter().map(|i| shared(*i)).max().unwrap_or(0);
    let mut best = candidates.iter().filter(|i| shared(**i) == longest);
    match (best.next(), best.next()) {
        (Some(one), None) => Ok(Some(*one)),
        (Some(one), Some(other)) => bail!(
            "made of {recorded}, which may be {} or {}; name the data as for `ocsc code`",
            names[*one],
            names[*other]
        ),
        _ => Ok(None),
    }
}

/// Refuses a sample that shares its file's stem with another: which one gets the plain name depends on their order.
fn alone(index: usize, names: &[String]) -> Result<usize> {
    let stem = |name: &str| {
        let (file, number) = name.rsplit_once('[').unwrap_or((name, ""));
        (Path::new(file).file_stem().map(|stem| stem.to_ascii_lowercase()), number.to_owned())
    };
    let mine = stem(&names[index]);
    match names.iter().enumerate().find(|(i, name)| *i != index && stem(name) == mine) {
        Some((_, other)) => bail!(
            "expected one sample of this name, found {} and {other}, and the code does not say which it was made of; code the \
             data again",
            names[index]
        ),
        None => Ok(index),
    }
}

/// The last component of a path.
fn last(name: &str) -> &str {
    name.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(name)
}
