//! Holding samples back from learning, to test on them: a fraction, those in a list, or as a data set's authors split it.
//!
//! Every way returns the samples to learn from and those held out, each in the order of the data.

use super::select::HELD_OUT;
use super::{Part, Source, list, mat};
use crate::console::counted;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

impl Source {
    /// A fraction drawn at random, rounded, but at least one sample here and one there.
    pub(crate) fn hold_out_fraction(&self, fraction: f64, seed: u64) -> Result<(Source, Source)> {
        ensure!(self.len() > 1, "--test-fraction: expected at least 2 samples to split, found 1");
        let n = ((fraction * self.len() as f64).round() as usize).clamp(1, self.len() - 1);
        let held: HashSet<usize> = self.drawn(n, seed, HELD_OUT).into_iter().collect();
        Ok(self.split(|i| Some(held.contains(&i))))
    }

    /// The samples that a list names: as messages call them, relative to the list, or by the end of their path.
    pub(crate) fn hold_out_listed(&self, file: &Path) -> Result<(Source, Source)> {
        let mut names = Names::new(self);
        let mut held = HashSet::new();
        for line in list::read(file, self.options.limit)? {
            let found = names.find(&line.text, list::folder(file));
            held.extend(found.with_context(|| format!("line {}: {}", line.number, line.text))?);
        }
        let (learn, test) = self.split(|i| Some(held.contains(&self.number(i).unwrap_or(i))));
        ensure!(learn.len() > 0, "all {} are held out; expected some to learn from", counted(self.len(), "sample"));
        Ok((learn, test))
    }

    /// As `setid.mat` of Oxford Flowers says: the numbers of images, `image_00001.jpg` being 1, in three variables. The
    /// paper learns from `trnid` and `valid` (2040 images) and tests on `tstid` (6149).
    pub(crate) fn split_numbered(&self, file: &Path) -> Result<(Source, Source)> {
        let mut by_number: HashMap<u64, usize> = HashMap::new();
        for i in 0..self.len() {
            let Some(number) = self.find(i).and_then(|(part, _)| trailing_number(&part.name)) else { continue };
            if let Some(other) = by_number.insert(number, i) {
                bail!("{} and {} have the same number; expected one of each", self.name(other), self.name(i));
            }
        }
        let (mut held, limit) = (HashMap::new(), self.options.limit);
        for (variable, is_test) in [("trnid", false), ("valid", false), ("tstid", true)] {
            for number in mat::open(file, Some(variable), false, limit)?.values(limit)? {
                let image = by_number.get(&(number as u64)).filter(|_| number >= 1.0 && number.fract() == 0.0);
                let absent = || format!("{variable} names image {number}, which is not in the data");
                let image = *image.with_context(absent)?;
                let before = held.insert(image, is_test);
                ensure!(before.is_none_or(|b| b == is_test), "image {number} is both to learn from and to test on");
            }
        }
        let (learn, test) = self.split(|i| held.get(&i).copied());
        ensure!(learn.len() > 0 && test.len() > 0, "expected images to learn from and to test on, found none");
        Ok((learn, test))
    }

    /// Samples to learn from (false), to test on (true), and to leave out.
    fn split(&self, is_test: impl Fn(usize) -> Option<bool>) -> (Source, Source) {
        let those = |wanted| (0..self.len()).filter(|i| is_test(*i) == Some(wanted)).collect::<Vec<_>>();
        (self.only(&those(false)), self.only(&those(true)))
    }
}

/// The number that a file's name ends in.
fn trailing_number(name: &str) -> Option<u64> {
    let stem = Path::new(name).file_stem()?.to_str()?;
    stem[stem.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

/// Finds parts of a source by name.
struct Names<'a> {
    parts: &'a [Part],
    by_name: HashMap<&'a str, Vec<usize>>,
    by_last: HashMap<&'a str, Vec<usize>>,
    /// Filled when first needed: it asks the file system about every part.
    by_file: Option<HashMap<PathBuf, Vec<usize>>>,
}

impl<'a> Names<'a> {
    fn new(source: &'a Source) -> Self {
        let (mut by_name, mut by_last): (HashMap<_, Vec<usize>>, HashMap<_, Vec<usize>>) = Default::default();
        for (i, part) in source.parts.iter().enumerate() {
            by_name.entry(part.name.as_str()).or_default().push(i);
            by_last.entry(last(&part.name)).or_default().push(i);
        }
        Names { parts: &source.parts, by_name, by_last, by_file: None }
    }

    /// The numbers of the samples that a name means: `cat.jpg`, `train.npy[3]`, or `train.npy` for all of them.
    fn find(&mut self, name: &str, folder: &Path) -> Result<Vec<usize>> {
        let whole = |part: &Part| (part.first..part.first + part.len).collect::<Vec<_>>();
        let parts = self.parts;
        if let Some(found) = self.part(name, folder)? {
            return Ok(found.iter().flat_map(|i| whole(&parts[*i])).collect());
        }
        let numbered = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
        if let Some((name, i)) = numbered.and_then(|(name, i)| Some((name, i.parse::<usize>().ok()?))) {
            let found = self.part(name, folder)?.unwrap_or_default();
            let numbers: Vec<usize> = found.iter().filter_map(|part| whole(&parts[*part]).get(i).copied()).collect();
            if !numbers.is_empty() {
                return Ok(numbers);
            }
        }
        let example = parts.first().map_or("", |part| &part.name);
        bail!("no sample of the data is called so; the first is called {example}")
    }

    /// The parts with this name, several if the data name a file several times.
    fn part(&mut self, name: &str, folder: &Path) -> Result<Option<Vec<usize>>> {
        if let Some(found) = self.by_name.get(name) {
            return Ok(Some(found.clone()));
        }
        if let Ok(file) = std::fs::canonicalize(folder.join(name)) {
            let by_file = self.by_file.get_or_insert_with(|| {
                let mut by_file: HashMap<PathBuf, Vec<usize>> = HashMap::new();
                for (i, part) in self.parts.iter().enumerate() {
                    if let Ok(file) = std::fs::canonicalize(&part.name) {
                        by_file.entry(file).or_default().push(i);
                    }
                }
                by_file
            });
            if let Some(found) = by_file.get(&file) {
                return Ok(Some(found.clone()));
            }
        }
        let ending: Vec<usize> = self.by_last.get(last(name)).into_iter().flatten().copied().collect();
        let ending: Vec<usize> =
            ending.into_iter().filter(|i| Path::new(&self.parts[*i].name).ends_with(name)).collect();
        match ending[..] {
            [] => Ok(None),
            [sole] => Ok(Some(vec![sole])),
            [a, b, ..] => {
                bail!("means both {} and {}; expected more of the path", self.parts[a].name, self.parts[b].name)
            }
        }
    }
}

/// What follows the last slash.
fn last(name: &str) -> &str {
    name.rsplit(std::path::is_separator).next().unwrap_or(name)
}
