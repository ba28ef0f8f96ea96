//! The pages of TIFF files, put together again.

use super::inputs;
use crate::args::{Format, Reconstruct};
use crate::console::Console;
use crate::data::Source;
use crate::data::tiff::write::{InStack, pages, write};
use crate::run::original::Originals;
use anyhow::{Context, Result, ensure};
use ocsc::Sample;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The stacks that codes of pages come back as: of the name, the pages and the depth of the original.
pub(super) struct Stacks {
    /// The file that the pages of every code go to, and where they lie in it.
    places: Vec<Option<(PathBuf, InStack)>>,
    /// The pages that are made, by number, of files that are not whole yet.
    made: HashMap<PathBuf, BTreeMap<usize, Sample<f32>>>,
    /// How many files are whole.
    pub(super) written: usize,
}

impl Stacks {
    /// Finds the stacks among the originals of codes. Of stacks that were coded in part none is made, or with --format tiff, which
    /// writes nothing else, they are refused.
    pub(super) fn new(
        args: &Reconstruct,
        originals: Option<&Originals<'_>>,
        codes: &[PathBuf],
        console: &Console,
    ) -> Result<Self> {
        let wanted = originals.filter(|_| matches!(args.format, Format::Both | Format::Tiff));
        let mut places = Vec::new();
        let mut coded: BTreeMap<PathBuf, (usize, usize)> = BTreeMap::new();
        for code in codes {
            let found = wanted.map(|originals| originals.in_stack(code)).transpose()?.flatten();
            let place = found.filter(|(_, place)| place.pages > 1 || args.format == Format::Tiff);
            let place = place.map(|(name, place)| (args.out.join(name), place));
            if let Some((path, place)) = &place {
                coded.entry(path.clone()).or_insert((0, place.samples)).0 += 1;
            }
            places.push(place);
        }
        for (path, (found, all)) in coded.iter().filter(|(_, (found, all))| found < all) {
            let path = path.display();
            ensure!(
                args.format != Format::Tiff,
                "{path}: expected codes of all {all} pages of the original, found {found}; --format npy takes some of them"
            );
            console.say(format!("{path}: not written, as {found} of the {all} pages of the original were coded"));
        }
        let is_whole = |path: &Path| coded.get(path).is_some_and(|(found, all)| found >= all);
        places.iter_mut().for_each(|place| *place = place.take().filter(|(path, _)| is_whole(path)));
        Ok(Stacks { places, made: HashMap::new(), written: 0 })
    }

    /// Checks that no stack would be written over what the call reads.
    pub(super) fn spare(&self, args: &Reconstruct, originals: Option<&Source>, codes: &[PathBuf]) -> Result<()> {
        let mut files = inputs(args, originals, codes);
        self.places.iter().flatten().try_for_each(|(path, _)| files.find("--out", path).map(drop))
    }

    /// Whether the pages of a code go to a stack.
    pub(super) fn has(&self, code: usize) -> bool {
        self.places[code].is_some()
    }

    /// Whether the stack of a code needs not be made.
    pub(super) fn is_there(&self, code: usize) -> Result<bool> {
        let Some((path, _)) = &self.places[code] else { return Ok(true) };
        // What was begun is finished.
        let exists = path.try_exists().with_context(|| path.display().to_string())?;
        Ok(exists && !self.made.contains_key(path))
    }

    /// Puts the pages of a code in their places, and writes the stack once it is whole.
    pub(super) fn add(&mut self, code: usize, sample: &Sample<f64>) -> Result<()> {
        let Some((path, place)) = &self.places[code] else { return Ok(()) };
        let made = self.made.entry(path.clone()).or_default();
        for (i, page) in pages(sample, place.by_channel)?.into_iter().enumerate() {
            made.insert(place.page + i, page);
        }
        if made.len() < place.pages {
            return Ok(());
        }
        if let Some(made) = self.made.remove(path) {
            write(path, &made.values().collect::<Vec<_>>(), place.depth)?;
            self.written += 1;
        }
        Ok(())
    }
}
