//! Lists: text files with one name per line.
//!
//! As data, `@list.txt` stands for the paths in it; `--test-list` names samples to hold out. Blank lines and lines that
//! start with `#` are passed over. A `.mat` file with a cell array `file_list`, as Stanford Dogs comes with, is a list too.

use super::mat;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A line that names something.
pub(crate) struct Line {
    /// Counted from 1, as editors do.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// The list that `@list.txt` names; none for other paths, and for a file that is really called so.
pub(crate) fn named_by(path: &Path) -> Option<PathBuf> {
    let list = path.to_str()?.strip_prefix('@')?;
    (!path.exists()).then(|| PathBuf::from(list))
}

/// The folder that the names in a list are relative to.
pub(crate) fn folder(list: &Path) -> &Path {
    list.parent().unwrap_or(Path::new(""))
}

/// The lines of a list, at least one.
pub(crate) fn read(list: &Path) -> Result<Vec<Line>> {
    if list.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mat")) {
        let texts = mat::texts(list, "file_list")?;
        return Ok(texts.into_iter().enumerate().map(|(i, text)| Line { number: i + 1, text }).collect());
    }
    let file = File::open(list).context("cannot be read (expected a text file with one path per line)")?;
    let mut lines = Vec::new();
    for (i, line) in BufReader::new(file).lines().enumerate() {
        let number = i + 1;
        let line = line.with_context(|| format!("line {number}: cannot be read (expected text in UTF-8)"))?;
        // Some editors mark the start of a text so.
        let text = line.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() && !text.starts_with('#') {
            lines.push(Line { number, text: text.to_owned() });
        }
    }
    ensure!(!lines.is_empty(), "the list is empty; expected one path per line");
    Ok(lines)
}
