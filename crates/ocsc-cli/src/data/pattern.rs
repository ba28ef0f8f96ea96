//! Patterns that the shell did not expand, such as `'photos/**/*.jpg'` in quotes.
//!
//! The crate `glob` decides what matches; the search is that of [`super::folder`], because the one in `glob` follows
//! links without looking for loops.

use super::folder;
use anyhow::{Context, Result, ensure};
use glob::{MatchOptions, Pattern};
use std::path::{Component, Path, PathBuf};

/// As in a shell: `*` stays within a folder and finds no hidden files.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Whether a path that does not exist is to be taken as a pattern.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.components().any(is_wild) && !path.exists()
}

/// The files that match, in natural order.
pub(crate) fn matches(path: &Path) -> Result<Vec<PathBuf>> {
    let example = "expected one such as 'photos/**/*.jpg'";
    // Up to the first part with a wildcard the path is plain.
    let plain: PathBuf = path.components().take_while(|part| !is_wild(*part)).collect();
    let rest: PathBuf = path.components().skip_while(|part| !is_wild(*part)).collect();
    let text = rest.to_str().with_context(|| format!("not a pattern in UTF-8; {example}"))?;
    let pattern = Pattern::new(text).with_context(|| format!("no such file, and not a pattern either; {example}"))?;
    let root = if plain.as_os_str().is_empty() { Path::new(".") } else { &plain };
    let depth = if text.contains("**") { usize::MAX } else { rest.components().count() };
    let mut found = Vec::new();
    for file in if root.is_dir() { folder::files(root, depth)? } else { Vec::new() } {
        let inside = file.strip_prefix(root).unwrap_or(&file);
        if pattern.matches_path_with(inside, OPTIONS) {
            found.push(plain.join(inside));
        }
    }
    ensure!(!found.is_empty(), "no such file, and no file matches it as a pattern; {example}");
    Ok(found)
}

fn is_wild(part: Component<'_>) -> bool {
    part.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}
