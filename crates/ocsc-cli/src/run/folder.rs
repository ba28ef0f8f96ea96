//! Folders of results: made, listed, and what is in them already.

use crate::console::{Console, share};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Makes a folder, unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("{}: cannot make this folder", path.display()))
}

/// Says what happens to results that are in a folder already.
pub(crate) fn say_existing(what: &str, n: usize, all: usize, out: &Path, skip: bool, console: &Console) {
    if n == 0 {
        return;
    }
    let (these, out) = (share(n, all, what, ["is", "are"]), out.display());
    console.say(match skip {
        true => format!("{these} in {out} already: not made again"),
        false => format!("{these} in {out} already: replaced (--skip-existing keeps what is there)"),
    });
}

/// Returns the codes in a folder, in the order of their names; at least one.
pub(crate) fn code_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("{}: expected a folder of codes", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "npz") {
            paths.push(path);
        }
    }
    paths.sort();
    ensure!(!paths.is_empty(), "{}: expected codes ending in .npz, found none", folder.display());
    Ok(paths)
}
