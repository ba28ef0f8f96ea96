//! Failures of the machine while data are read, as against those of files.
//!
//! A broken disk, a network drive that is away, no memory, too many open files: the sample is not to blame, and a run that passed
//! over it would learn from less than it was given. So the reading is tried again, and then it fails for good.

use crate::console::told;
use ocsc::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

/// How long to wait before another attempt.
const PAUSES: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(800)];

/// Reads what messages call `name`; again, after a pause, if the machine failed.
pub(crate) fn patiently<R>(name: &str, read: impl Fn() -> anyhow::Result<R>) -> ocsc::Result<R> {
    let mut pauses = PAUSES.iter();
    loop {
        let error = match read() {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        match (of_system(&error), pauses.next()) {
            (None, _) => return Err(Error::Source(format!("{name}: {}", told(&error)))),
            (Some(source), None) => return Err(Error::io(Path::new(name), source)),
            (Some(_), Some(pause)) => std::thread::sleep(*pause),
        }
    }
}

/// The system's reason, if the machine failed.
pub(crate) fn of_system(error: &anyhow::Error) -> Option<io::Error> {
    let system = error.chain().find_map(|cause| {
        let own = cause.downcast_ref::<io::Error>();
        // Decoders that do not name it as their source.
        let decoded = || match cause.downcast_ref()? {
            image::ImageError::IoError(error) => Some(error),
            _ => None,
        };
        let tiff = || match cause.downcast_ref()? {
            tiff::TiffError::IoError(error) => Some(error),
            _ => None,
        };
        own.or_else(decoded).or_else(tiff)
    })?;
    // Errors of the system cannot be cloned, but made again from what they consist of.
    let again = system.raw_os_error().map_or_else(|| system.kind().into(), io::Error::from_raw_os_error);
    let failure = Error::io(Path::new(""), again);
    match failure.is_system_failure() {
        true => Some(match failure {
            Error::Io { source, .. } => source,
            _ => system.kind().into(),
        }),
        false => None,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::cell::Cell;

    const EINTR: i32 = 4;
    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;
    const ENOENT: i32 = 2;

    fn failing(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn the_machine_is_told_from_the_file_through_every_decoder() {
        let wrapped = |code: i32| -> [anyhow::Error; 5] {
            [
                failing(code).into(),
                anyhow::Error::from(failing(code)).context("cannot be opened any more"),
                image::ImageError::IoError(failing(code)).into(),
                anyhow::Error::from(tiff::TiffError::IoError(failing(code))).context("it is damaged"),
                zip::result::ZipError::Io(failing(code)).into(),
            ]
        };
        for code in [EIO, EINTR, ENOSPC] {
            for error in wrapped(code) {
                assert_eq!(of_system(&error).and_then(|e| e.raw_os_error()), Some(code), "{error:#}");
            }
        }
        for error in wrapped(ENOENT) {
            assert!(of_system(&error).is_none(), "{error:#}");
        }
        assert!(of_system(&anyhow::anyhow!("the header is damaged")).is_none());
    }

    #[test]
    fn a_failure_that_passes_is_nobodys_loss() {
        let attempts = Cell::new(0);
        let after = |n: usize, code: i32| {
            attempts.set(0);
            patiently("photos/3.png", || {
                attempts.set(attempts.get() + 1);
                if attempts.get() > n { Ok(7) } else { Err(failing(code)).context("cannot be read") }
            })
        };
        assert_eq!(after(2, EIO).unwrap(), 7);
        let error = after(usize::MAX, EIO).unwrap_err();
        assert!(error.is_system_failure() && error.to_string().starts_with("photos/3.png: "), "{error}");
        assert_eq!(attempts.get(), 1 + PAUSES.len());
        // What is the file's own fault is not tried again.
        assert!(!after(usize::MAX, ENOENT).unwrap_err().is_system_failure());
        assert_eq!(attempts.get(), 1);
    }
}
