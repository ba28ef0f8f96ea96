//! One run at a time on a file: a lock that the kernel gives back when its holder ends, however it ends.
//!
//! The lock is on a hidden sibling, `.model.safetensors.lock`, because the file itself is another one after every
//! replacement. It holds the number of the process. Its holder removes it at the end, while it still has the lock; so whoever
//! gets a lock must look whether the name still stands for the file that was locked, and try again if not. One that a killed
//! process left behind is locked by nobody, and taken over.

use anyhow::{Context, Result, anyhow, bail};
use ocsc::replace::{folder_of, link_target, retried};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a process that was just started is asked for its number, and how long it is waited for between.
const PATIENCE: (usize, Duration) = (20, Duration::from_millis(10));

/// The right to write a file, given back when dropped.
pub(crate) struct Lock {
    /// None where the file system has no locks.
    held: Option<(File, PathBuf)>,
}

impl Lock {
    /// Takes the lock of `path`, which `option` names, or says who has it.
    pub(crate) fn take(option: &str, path: &Path) -> Result<Lock> {
        let named = || format!("{option} {}", path.display());
        let target = link_target(path).with_context(named)?;
        // A device or a pipe takes what several write.
        if std::fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
            return Ok(Lock { held: None });
        }
        let place = beside(&target);
        loop {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&place);
            let mut file = file.map_err(|e| anyhow!("{}: cannot be written: {e}", named()))?;
            match retried(|| try_lock(&file)).with_context(named)? {
                Locked::Ours => {}
                Locked::Others => bail!(
                    "{}: expected a file that nobody else is writing, found {} at work on it; wait for it, or name another file",
                    named(),
                    holder(&mut file)
                ),
                Locked::Unsupported => {
                    let _ = std::fs::remove_file(&place);
                    return Ok(Lock { held: None });
                }
            }
            if is_still(&file, &place) {
                let mut lock = Lock { held: Some((file, place)) };
                lock.sign().map_err(|e| anyhow!("{}: cannot be locked: {e}", named()))?;
                return Ok(lock);
            }
        }
    }

    /// Writes who holds it.
    fn sign(&mut self) -> std::io::Result<()> {
        let Some((file, _)) = &mut self.held else { return Ok(()) };
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        file.set_len(0)?;
        file.write_all(format!("{} {}\n", std::process::id(), host.trim()).as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((_, place)) = &self.held {
            let _ = std::fs::remove_file(place);
        }
    }
}

/// How an attempt ended.
enum Locked {
    Ours,
    Others,
    Unsupported,
}

fn try_lock(file: &File) -> std::io::Result<Locked> {
    match file.try_lock() {
        Ok(()) => Ok(Locked::Ours),
        Err(TryLockError::WouldBlock) => Ok(Locked::Others),
        Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => Ok(Locked::Unsupported),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".lock");
    folder_of(path).join(name)
}

/// Whether `place` is the name of this file.
fn is_still(file: &File, place: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let (ours, named) = (file.metadata().map(number), std::fs::metadata(place).map(number));
        matches!((ours, named), (Ok(ours), Ok(named)) if ours == named)
    }
    // Elsewhere an open file cannot be removed.
    #[cfg(not(unix))]
    {
        let _ = (file, place);
        true
    }
}

/// What messages call the holder: `process 1234 (on node7)`.
fn holder(file: &mut File) -> String {
    let (times, pause) = PATIENCE;
    for _ in 0..times {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        if let (Ok(_), Some((id, host))) = (read, text.strip_suffix('\n').and_then(|text| text.split_once(' '))) {
            let place = if host.is_empty() { String::new() } else { format!(" (on {host})") };
            return format!("process {id}{place}");
        }
        std::thread::sleep(pause);
    }
    "another process".to_owned()
}
