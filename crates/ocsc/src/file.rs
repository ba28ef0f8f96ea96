//! Opening files of which nothing is known yet: what they are is looked at before they are opened, how long they are before
//! they are read.
//!
//! A name may lead to a device that never ends, to a pipe that nobody writes to, or to a folder. Readers that trust a length
//! open files through here.

use std::fs::{File, FileType};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Returns what messages call a thing that is not a regular file.
pub fn kind(found: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.is_fifo() {
            return "a pipe";
        }
        if found.is_socket() {
            return "a socket";
        }
        if found.is_char_device() || found.is_block_device() {
            return "a device";
        }
    }
    match found {
        _ if found.is_dir() => "a folder",
        _ if found.is_file() => "a file",
        _ => "something else",
    }
}

/// Opens a regular file, also through links, and refuses anything else by its kind.
pub fn open(path: &Path) -> Result<File> {
    // Before it is opened: opening a pipe waits for somebody to write to it.
    check(std::fs::metadata(path)?.file_type())?;
    let file = File::open(path)?;
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let len = file.metadata()?.len();
    if len > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("expected at most {most} bytes, found {len}")));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len as usize)?;
    // A file that grows meanwhile is read as far as it was asked for.
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a text in the same way.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "expected text in UTF-8, found other bytes"))
}

fn check(found: FileType) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, format!("expected a file, found {}", kind(found))))
}
