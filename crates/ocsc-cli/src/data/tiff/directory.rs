//! The directories of a TIFF file as they are written: tags with a type, a count and a value or the place of one.
//!
//! The decoder makes room for as many values as a tag claims before it reads them, so the claims are held against the file's
//! length here. It also hands red, green and blue over without the bands beside them, unless told that they are gray.

use super::DAMAGED;
use anyhow::{Context, Result, ensure};
use std::io::{Read, Seek, SeekFrom};
use tiff::tags::{PhotometricInterpretation, Tag};

/// How a file writes numbers, and where its first directory lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    big_endian: bool,
    /// Whether places take eight bytes, as in BigTIFF.
    large: bool,
    pub(crate) first: u64,
}

/// What a directory says of one tag.
struct Entry {
    tag: u64,
    kind: u64,
    count: u64,
    /// Where its value, or the place of it, is written.
    at: u64,
}

impl Layout {
    /// Reads the header.
    pub(crate) fn read(file: &mut (impl Read + Seek)) -> Result<Self> {
        let mut header = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.take(16).read_to_end(&mut header)?;
        let big_endian = header.starts_with(b"MM");
        let large = header.get(2..4).is_some_and(|version| version.contains(&43));
        let layout = Layout { big_endian, large, first: 0 };
        let pointer = if large { header.get(8..16) } else { header.get(4..8) };
        Ok(Layout { first: layout.number(pointer.context(DAMAGED)?), ..layout })
    }

    /// Where the header says where the first directory lies, and the bytes that say that it lies at `place`.
    pub(crate) fn pointer(&self, place: u64) -> (u64, Vec<u8>) {
        let mut bytes = if self.large { place.to_le_bytes().to_vec() } else { (place as u32).to_le_bytes().to_vec() };
        if self.big_endian {
            bytes.reverse();
        }
        (if self.large { 8 } else { 4 }, bytes)
    }

    /// Checks that no tag of the directory at `place` claims more values than a file of `len` bytes can hold.
    pub(crate) fn check(&self, file: &mut (impl Read + Seek), place: u64, len: u64) -> Result<()> {
        for Entry { tag, kind, count, .. } in self.entries(file, place)? {
            let size = match kind {
                1 | 2 | 6 | 7 => 1,
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                5 | 10 | 12 | 16..=18 => 8,
                _ => 0,
            };
            let fits = count.checked_mul(size).is_some_and(|bytes| bytes <= len);
            ensure!(fits, "tag {tag} claims {count} values, more than the file holds; {DAMAGED}");
        }
        Ok(())
    }

    /// Where the directory at `place` says what kind of pixels there are, and the bytes that call them gray.
    pub(crate) fn gray(&self, file: &mut (impl Read + Seek), place: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let wanted = u64::from(Tag::PhotometricInterpretation.to_u16());
        let entry = self.entries(file, place)?.into_iter().find(|entry| entry.tag == wanted);
        let gray = PhotometricInterpretation::BlackIsZero.to_u16();
        let bytes = if self.big_endian { gray.to_be_bytes() } else { gray.to_le_bytes() };
        Ok(entry.map(|entry| (entry.at, bytes.to_vec())))
    }

    /// The tags of the directory at `place`, as far as the file goes.
    fn entries(&self, file: &mut (impl Read + Seek), place: u64) -> Result<Vec<Entry>> {
        let (counter, entry) = if self.large { (8, 20) } else { (2, 12) };
        file.seek(SeekFrom::Start(place))?;
        let mut count = Vec::new();
        file.take(counter).read_to_end(&mut count)?;
        // No directory has more; the decoder stops there as well.
        let count = self.number(&count).min(u64::from(u16::MAX));
        let mut bytes = Vec::new();
        file.take(count * entry).read_to_end(&mut bytes)?;
        let half = if self.large { 12 } else { 8 };
        let read = |(i, bytes): (usize, &[u8])| Entry {
            tag: self.number(&bytes[..2]),
            kind: self.number(&bytes[2..4]),
            count: self.number(&bytes[4..half]),
            at: place.saturating_add(counter + i as u64 * entry + half as u64),
        };
        Ok(bytes.chunks_exact(entry as usize).enumerate().map(read).collect())
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let append = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) }
    }
}
