//! The checksum of a model file, in its metadata: `sha256`, 64 hexadecimal digits.
//!
//! It is the SHA-256 of the whole file (length, header, padding, tensors) with these digits replaced by zeros, so no bit of the
//! file is left out. A second entry, `checksum` = `sha256`, says that there is one. A file with one of the two entries was
//! damaged: no single flipped bit can make it look like a file from before there were checksums, which has neither.

use crate::digest::hex;
use crate::{Error, Result};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;

/// The entry that holds the digits.
pub(super) const DIGITS: &str = "sha256";
/// The entry that says that there are any, and its value.
pub(super) const MARK: (&str, &str) = ("checksum", "sha256");

const LEN: usize = 64;

/// What stands for the digits while they are computed.
pub(super) fn zeros() -> String {
    "0".repeat(LEN)
}

/// Replaces the zeros in a header by the checksum of the file that it begins.
pub(super) fn seal(header: &mut String, tensors: impl Iterator<Item = impl AsRef<[u8]>>) {
    let mut hash = Sha256::new();
    hash.update((header.len() as u64).to_le_bytes());
    hash.update(header.as_bytes());
    tensors.for_each(|tensor| hash.update(tensor.as_ref()));
    if let Some(at) = place(header.as_bytes()) {
        header.replace_range(at..at + LEN, &hex(&hash.finalize()));
    }
}

/// Checks a file against its checksum and returns it; none if the file was written before there were any.
pub(super) fn check(path: &Path, bytes: &[u8], metadata: &HashMap<String, String>) -> Result<Option<String>> {
    let damaged = |expected: &str, found: &str| {
        let expected = format!("{expected}; the file was damaged or changed after it was written");
        Err(Error::file(path, "checksum", expected, found))
    };
    let found = match (metadata.get(MARK.0).map(String::as_str), metadata.get(DIGITS)) {
        (None, None) => return Ok(None),
        (Some(kind), _) if kind != MARK.1 => return damaged(MARK.1, kind),
        (Some(_), None) => return damaged("the metadata `sha256`", "`checksum` alone"),
        (None, Some(_)) => return damaged("the metadata `checksum`", "`sha256` alone"),
        (Some(_), Some(found)) => found,
    };
    let Some(at) = place(bytes) else { return damaged("64 digits in the header", found) };
    let (before, rest) = bytes.split_at(at);
    let Some((digits, after)) = rest.split_at_checked(LEN) else { return damaged("64 digits", found) };
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(zeros());
    hash.update(after);
    let expected = hex(&hash.finalize());
    if digits != expected.as_bytes() || *found != expected {
        return damaged(&format!("{expected}, as the file's bytes give"), found);
    }
    Ok(Some(expected))
}

/// Where the digits begin. Text within other entries has its quotation marks escaped, so it cannot look like this.
fn place(bytes: &[u8]) -> Option<usize> {
    let key = format!("\"{DIGITS}\":\"");
    bytes.windows(key.len()).position(|window| window == key.as_bytes()).map(|at| at + key.len())
}
