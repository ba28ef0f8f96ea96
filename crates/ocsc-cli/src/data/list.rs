//! Lists: text files with one name per line.
//!
//! As data, `@list.txt` stands for the paths in it; `--test-list` names samples to hold out. Blank lines and lines that
//! start with `#` are passed over. A `.mat` file with a cell array `file_list`, as Stanford Dogs comes with, is a list too.

use super::mat;
use crate::memory::Limit;
use anyhow::{Context, Result, ensure};
use ocsc::file;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// More than ten million names take; a pipe may go on for ever.
const MAX_BYTES: u64 = 1 << 30;
/// After so many bytes the memory is looked at again.
const CHECK_EVERY: u64 = 1 << 20;
/// More than any path has.
const MAX_LINE: u64 = 1 << 16;

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

/// The lines of a list, at least one. It may come through a pipe.
pub(crate) fn read(list: &Path, limit: Limit) -> Result<Vec<Line>> {
    if list.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("mat")) {
        let texts = mat::texts(list, "file_list", limit)?;
        return Ok(texts.into_iter().enumerate().map(|(i, text)| Line { number: i + 1, text }).collect());
    }
    let expected = "expected a text file with one path per line";
    let kind = std::fs::metadata(list).with_context(|| format!("cannot be read ({expected})"))?.file_type();
    let found = file::kind(kind);
    ensure!(kind.is_file() || found == "a pipe", "{expected}, found {found}");
    let file = File::open(list).with_context(|| format!("cannot be read ({expected})"))?;
    let mut input = BufReader::new(file);
    let (mut lines, mut bytes, mut total) = (Vec::new(), Vec::new(), 0);
    for number in 1.. {
        bytes.clear();
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes);
        if read.with_context(|| format!("line {number}: cannot be read"))? == 0 {
            break;
        }
        ensure!((bytes.len() as u64) < MAX_LINE, "line {number}: longer than any path; {expected}");
        let before = total;
        total += bytes.len() as u64;
        ensure!(total <= MAX_BYTES, "line {number}: a list without an end; {expected}");
        let line = std::str::from_utf8(&bytes);
        let line = line.with_context(|| format!("line {number}: cannot be read (expected text in UTF-8)"))?;
        // Some editors mark the start of a text so.
        let text = line.trim_start_matches('\u{feff}').trim();
        if !text.is_empty() && !text.starts_with('#') {
            // Once in a while: the system is asked.
            if before / CHECK_EVERY != total / CHECK_EVERY {
                limit.ensure("the names of a list", total.saturating_mul(2))?;
            }
            lines.push(Line { number, text: text.to_owned() });
        }
    }
    ensure!(!lines.is_empty(), "the list is empty; expected one path per line");
    Ok(lines)
}
