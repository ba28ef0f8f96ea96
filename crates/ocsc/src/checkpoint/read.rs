//! The bytes of a model file: as many as its header declares, read once it is known that memory holds them.

use crate::{Error, Result, file, system};
use safetensors::tensor::Metadata;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes before the header, which say how long it is.
const LENGTH: usize = 8;
/// The longest header that safetensors allow.
const MAX_HEADER: u64 = 100_000_000;
/// What an array of numpy begins with.
const NUMPY: &[u8] = b"\x93NUMPY";

/// Reads the bytes of a model file, or of a pipe that carries one.
///
/// Devices and folders are refused. Of a pipe no more is read than its header declares, and one byte to see that it ends.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let io = |e| Error::io(path, e);
    let wrong = |found: String| Error::file(path, "model file", "safetensors", found);
    let found = std::fs::metadata(path).map_err(io)?.file_type();
    if !(found.is_file() || file::kind(found) == "a pipe") {
        return Err(Error::file(path, "model file", "a file in the format safetensors", file::kind(found)));
    }
    let mut file = File::open(path).map_err(io)?;
    let len = found.is_file().then(|| file.metadata().map(|m| m.len())).transpose().map_err(io)?;
    let mut bytes = Vec::new();
    file.by_ref().take(LENGTH as u64).read_to_end(&mut bytes).map_err(io)?;
    let Some(header) = bytes.first_chunk().map(|n| u64::from_le_bytes(*n)) else {
        return Err(wrong(format!("{} bytes in all", bytes.len())));
    };
    if bytes.starts_with(NUMPY) {
        return Err(wrong("an array of numpy (.npy)".to_owned()));
    }
    let most = len.map_or(MAX_HEADER, |len| MAX_HEADER.min(len.saturating_sub(LENGTH as u64)));
    if header > most {
        return Err(wrong(format!("a claim of {header} bytes of header, where {most} are possible")));
    }
    // Names and shapes take a few times the text that they are read from.
    let fits = |need: u64| system::ensure_free("the contents of a model file", need).map_err(|e| e.in_path(path));
    fits(header.saturating_mul(8))?;
    file.by_ref().take(header).read_to_end(&mut bytes).map_err(io)?;
    let text = &bytes[LENGTH..];
    if text.len() as u64 != header {
        return Err(wrong(format!("{} of {header} bytes of header", text.len())));
    }
    let declared = serde_json::from_slice::<Metadata>(text).map_err(|e| wrong(e.to_string()))?.data_len() as u64;
    let there = len.map_or(declared, |len| len.saturating_sub(LENGTH as u64 + header));
    if declared != there {
        return Err(wrong(format!("{there} bytes of numbers where the header declares {declared}")));
    }
    // The bytes, and the numbers made of them, which may be twice as wide.
    fits(declared.saturating_mul(3))?;
    bytes.try_reserve_exact(declared as usize).map_err(|e| io(e.into()))?;
    file.by_ref().take(declared).read_to_end(&mut bytes).map_err(io)?;
    let read = bytes.len() as u64 - header - LENGTH as u64;
    let more = file.take(1).read_to_end(&mut Vec::new()).map_err(io)?;
    if read < declared || more > 0 {
        let found = if more > 0 { "more".to_owned() } else { read.to_string() };
        return Err(wrong(format!("{found} bytes of numbers where the header declares {declared}")));
    }
    Ok(bytes)
}
