//! The `.npz` format: a zip archive of `.npy` files, as `numpy.savez` and `numpy.savez_compressed` write it.
//!
//! Stored members stay on disk like a `.npy` file; deflated ones are inflated into memory. [`super::codes`] reads and
//! writes codes through this.

use super::array::{Array, Storage};
use super::npy;
use crate::memory::Limit;
use anyhow::{Context, Result, ensure};
use ocsc::file;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Deflate cannot expand a byte into more than this, so an archive that claims more is lying.
pub(crate) const MAX_INFLATION: u64 = 1032;

/// An open archive.
pub(crate) struct Npz<'a> {
    path: &'a Path,
    file_len: u64,
    zip: ZipArchive<BufReader<File>>,
    limit: Limit,
}

impl<'a> Npz<'a> {
    /// Opens the archive and reads its directory. What is inflated must fit the limit.
    pub(crate) fn open(path: &'a Path, limit: Limit) -> Result<Self> {
        let file = file::open(path)?;
        let file_len = file.metadata()?.len();
        ensure!(file_len > 0, "the file is empty; expected a .npz archive of arrays");
        let zip = ZipArchive::new(BufReader::new(file)).context("not a .npz archive, or a truncated one")?;
        Ok(Npz { path, file_len, zip, limit })
    }

    /// The names of all members, in order, without the ending `.npy`.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.zip.file_names().map(|name| name.strip_suffix(".npy").unwrap_or(name).to_owned()).collect();
        names.sort();
        names
    }

    /// Reads the array called `name`.
    pub(crate) fn array(&mut self, name: &str) -> Result<Array> {
        let index = self.zip.index_for_name(&format!("{name}.npy")).or_else(|| self.zip.index_for_name(name));
        let mut member = self.zip.by_index(index.with_context(|| format!("no array called `{name}`"))?)?;
        let (packed, size) = (member.compressed_size(), member.size());
        ensure!(
            packed <= self.file_len && size / MAX_INFLATION <= packed,
            "claims {size} bytes from {packed} in a file of {}; the archive is damaged",
            self.file_len
        );
        if member.compression() == CompressionMethod::Stored {
            let mut start = Vec::new();
            member.by_ref().take(npy::MAX_HEADER).read_to_end(&mut start)?;
            let (layout, data) = npy::header(&start)?;
            let at = member.data_start().saturating_add(data as u64);
            let len = size.saturating_sub(data as u64);
            ensure!(at.saturating_add(len) <= self.file_len, "reaches past the end of the file, which is truncated");
            return Array::new(layout, Storage::File(self.path.to_owned(), at), len);
        }
        self.limit.ensure("the numbers, unpacked,", size)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(usize::try_from(size)?)?;
        let unpacked = "cannot be unpacked; the archive is damaged";
        member.by_ref().take(size).read_to_end(&mut bytes).context(unpacked)?;
        // One byte more: whether there is one, and whether the checksum is right, is told at the end.
        let more = member.read(&mut [0]).context(unpacked)?;
        ensure!(more == 0, "unpacks to more than the {size} bytes that it claims; the archive is damaged");
        let (layout, data) = npy::header(&bytes)?;
        let len = (bytes.len() - data) as u64;
        Array::new(layout, Storage::Memory(bytes, data), len)
    }
}

impl Npz<'_> {
    /// Reads the text called `name`, of at most so many characters; none if there is no such member.
    pub(crate) fn text(&mut self, name: &str, most: usize) -> Result<Option<String>> {
        let Some(index) = self.zip.index_for_name(&format!("{name}.npy")) else { return Ok(None) };
        let member = self.zip.by_index(index)?;
        let limit = npy::MAX_HEADER + 4 * most as u64;
        ensure!(member.size() <= limit, "`{name}` has {} bytes; expected a short text", member.size());
        let mut bytes = Vec::new();
        member.take(limit).read_to_end(&mut bytes).context("cannot be unpacked; the archive is damaged")?;
        npy::decode_text(&bytes).with_context(|| format!("`{name}`")).map(Some)
    }
}

/// Writes arrays, each given by its name and the bytes of a `.npy` file, as a deflated archive.
///
/// Deflated, because the sorted filters and positions of a code shrink to a fraction; numpy reads both.
///
/// The arrays are taken one by one, so that one is in memory at a time where they are made as they are taken.
pub(crate) fn write<'a>(
    out: impl Write + Seek,
    arrays: impl IntoIterator<Item = Result<(&'a str, Vec<u8>)>>,
) -> Result<()> {
    let mut zip = ZipWriter::new(out);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for array in arrays {
        let (name, npy) = array?;
        zip.start_file(format!("{name}.npy"), options.large_file(npy.len() >= u32::MAX as usize))?;
        zip.write_all(&npy)?;
    }
    zip.finish()?.flush()?;
    Ok(())
}
