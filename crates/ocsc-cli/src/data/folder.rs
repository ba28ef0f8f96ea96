//! Folders of images or of recordings: which files count, and in which order.

use super::{audio, image};
use anyhow::{Context, Result, bail};
use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The images, or else the recordings, in `folder`, or also in all folders below it, in natural order: `2.png` comes before
/// `10.png`.
///
/// Hidden files and folders, and files of other kinds, are passed over.
pub(crate) fn data(folder: &Path, recursive: bool) -> Result<Vec<PathBuf>> {
    let found = files(folder, if recursive { usize::MAX } else { 1 })?;
    let of = |kind: fn(&Path) -> bool| found.iter().filter(|path| kind(path)).cloned().collect::<Vec<_>>();
    let (images, recordings) = (of(image::is_image), of(audio::is_audio));
    match (images.first(), recordings.first()) {
        (Some(image), Some(recording)) => bail!(
            "both images and recordings, such as {} and {}; expected one kind: move the others to a folder of their own",
            image.display(),
            recording.display()
        ),
        (None, None) => bail!(
            "no images in this folder{}, and no recordings; expected files ending in {}{}",
            if recursive { " and those below it" } else { "" },
            [image::EXTENSIONS, audio::EXTENSIONS].concat().join(", "),
            if recursive { "" } else { "; --recursive searches the folders below it, too" }
        ),
        (Some(_), None) => Ok(images),
        (None, Some(_)) => Ok(recordings),
    }
}

/// The files in `folder` and in folders below it, down to `depth` levels (1: none below), in natural order.
///
/// Hidden ones are passed over. Links are followed, but every folder is visited once: loops end, and nothing counts twice.
pub(crate) fn files(folder: &Path, depth: usize) -> Result<Vec<PathBuf>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    // Links wait until all real folders are visited, so that a file gets its real name whatever links lead to it.
    let (mut folders, mut links) = (vec![(folder.to_owned(), 1)], Vec::new());
    while let Some((folder, level)) = folders.pop().or_else(|| links.pop()) {
        let unreadable = || format!("the folder {} cannot be read", folder.display());
        if !seen.insert(std::fs::canonicalize(&folder).with_context(unreadable)?) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(unreadable)? {
            let entry = entry.with_context(unreadable)?;
            let (path, mut kind) = (entry.path(), entry.file_type()?);
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let link = kind.is_symlink();
            if link {
                // A link to nothing is no file.
                let Ok(target) = std::fs::metadata(&path) else { continue };
                kind = target.file_type();
            }
            match kind {
                _ if kind.is_file() => found.push(path),
                _ if !kind.is_dir() || level >= depth => {}
                _ if link => links.push((path, level + 1)),
                _ => folders.push((path, level + 1)),
            }
        }
        links.sort_by_cached_key(|(path, _)| Reverse(NaturalPath::new(path)));
    }
    // What all of them begin with need not be compared.
    found.sort_by_cached_key(|path| NaturalPath::new(path.strip_prefix(folder).unwrap_or(path)));
    Ok(found)
}

/// A path, ordered part by part in natural order.
#[derive(PartialEq, Eq)]
struct NaturalPath {
    /// The parts as text: of a set of many files, each is decoded once and compared often.
    parts: Vec<String>,
    path: PathBuf,
}

impl NaturalPath {
    fn new(path: &Path) -> Self {
        let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        NaturalPath { parts, path: path.to_owned() }
    }
}

impl Ord for NaturalPath {
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = self.parts.iter().zip(&other.parts).map(|(a, b)| natural(a, b));
        let first = parts.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        first.then(self.parts.len().cmp(&other.parts.len())).then_with(|| self.path.cmp(&other.path))
    }
}

impl PartialOrd for NaturalPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares names with runs of digits taken as numbers, and letters without regard to case.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (run_a, run_b) = (leading_digits(a), leading_digits(b));
        if !run_a.is_empty() && !run_b.is_empty() {
            // Without leading zeros the longer number is the larger, however many digits it has.
            let (x, y) = (run_a.trim_start_matches('0'), run_b.trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then_with(|| run_a.len().cmp(&run_b.len()));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[run_a.len()..], &b[run_b.len()..]);
            continue;
        }
        let (mut rest_a, mut rest_b) = (a.chars(), b.chars());
        match (rest_a.next(), rest_b.next()) {
            (Some(x), Some(y)) => {
                let order = x.to_lowercase().cmp(y.to_lowercase());
                if order != Ordering::Equal {
                    return order;
                }
            }
            (x, y) => return x.is_some().cmp(&y.is_some()),
        }
        (a, b) = (rest_a.as_str(), rest_b.as_str());
    }
}

fn leading_digits(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()]
}
