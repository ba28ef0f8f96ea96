//! Files replaced as a whole: others see the old content or the new, whatever happens in between.
//!
//! The new content goes to a temporary sibling that has the old file's mode and owner. It is flushed to disk and renamed, and
//! then the folder is flushed, so that a power cut cannot undo the rename. A link stays one: the file that it leads to is
//! replaced. A file that nobody may write is refused, although its folder would allow the rename.
//!
//! Whoever writes a temporary file holds a lock on it. So those that killed programs left behind can be told from those that
//! are being written, and [`remove_leftovers`] spares the latter.

use crate::{Error, Result};
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

/// As many links as the kernel follows before it takes them for a loop.
const MOST_LINKS: usize = 40;

/// What the names of temporary files hold.
const MARK: &str = ".ocsc-";

/// The temporary files of this process.
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Replaces a file by what `fill` writes. If that fails, the old file stays as it was.
pub fn replace_file<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    replace_temporary(path, |temporary| fill(temporary.as_file_mut()))
}

/// Replaces a file as [`replace_file`] does, for writers that open files themselves: `fill` is given the name of an empty
/// temporary sibling.
pub fn replace_named<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    replace_temporary(path, |temporary| fill(temporary.path()))
}

fn replace_temporary<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut NamedTempFile<File>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let target = link_target(path).map_err(refused)?;
    let folder = open_folder(&target).map_err(refused)?;
    let mut temporary = Temporary::beside(&target)?;
    fill(&mut temporary.file)?;
    temporary.file.as_file().sync_all()?;
    temporary.rename(&target)?;
    folder.map_or(Ok(()), |folder| sync_folder(&folder))?;
    Ok(())
}

/// Replaces a file by these bytes.
pub fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    replace_file(path, |file| file.write_all(bytes.as_ref()))
}

/// Checks that [`replace_file`] could write here now: to be asked before hours of work, not after.
pub fn check_writable(path: &Path) -> Result<()> {
    let made = link_target(path).map_err(refused).and_then(|target| Temporary::beside(&target));
    made.map(drop).map_err(|e| Error::io(path, e))
}

/// Removes the temporary siblings of `path` that killed programs left behind.
pub fn remove_leftovers(path: &Path) {
    let path = link_target(path).unwrap_or(path.to_owned());
    let prefix = temporary_prefix(&path);
    remove_dead(folder_of(&path), |name| name.starts_with(prefix.as_encoded_bytes()));
}

/// Removes all temporary files that killed programs left behind in a folder.
pub fn remove_leftovers_in(folder: &Path) {
    remove_dead(folder, |name| name.starts_with(b".") && name.windows(MARK.len()).any(|part| part == MARK.as_bytes()));
}

fn remove_dead(folder: &Path, is_temporary: impl Fn(&[u8]) -> bool) {
    // What cannot be listed or removed does no harm.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !is_temporary(entry.file_name().as_encoded_bytes()) {
            continue;
        }
        let is_live = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_err());
        if !is_live {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Removes the temporary files of this process, and lets nobody make another one: for a process that ends here and now.
pub fn abandon() {
    let live = live();
    for path in live.iter() {
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(live);
}

/// Follows links to the file that they lead to, which need not exist yet.
pub fn link_target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => path = folder_of(&path).join(std::fs::read_link(&path)?),
            Ok(_) => return Ok(path),
            // A file in the place of a folder is told of where the folder is needed.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(path),
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("expected a file, found links that lead in a circle"))
}

/// Returns the folder that holds `path`.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Repeats what a signal interrupted.
pub fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// An empty file beside its target, gone when dropped.
struct Temporary {
    file: NamedTempFile<File>,
}

impl Temporary {
    fn beside(target: &Path) -> io::Result<Self> {
        let old = existing(target)?;
        let folder = folder_of(target);
        match std::fs::metadata(folder) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(refusal(ErrorKind::NotFound, format!("the folder {} does not exist", folder.display())));
            }
            Err(e) => return Err(refused(e)),
        }
        let prefix = temporary_prefix(target);
        let file = tempfile::Builder::new().prefix(&prefix).make_in(folder, |path| {
            let mut live = live();
            // As readable as the user's umask allows, but never more than the old file.
            let file = options(old.as_ref()).open(path)?;
            // Without locks on this file system a leftover cannot be told; it is then as good as none.
            let _ = file.try_lock();
            live.push(path.to_owned());
            Ok(file)
        });
        let file = file.map_err(refused)?;
        let temporary = Temporary { file };
        old.map_or(Ok(()), |old| take_after(temporary.file.as_file(), &old)).map_err(refused)?;
        Ok(temporary)
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        retried(|| std::fs::rename(self.file.path(), target))?;
        self.file.disable_cleanup(true);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let path = self.file.path();
        live().retain(|live| live != path);
    }
}

fn live() -> MutexGuard<'static, Vec<PathBuf>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Temporary siblings of `path` are called so: `.model.safetensors.ocsc-`.
fn temporary_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(MARK);
    prefix
}

/// The file that is to be replaced, if there is one: a plain file that this user may write.
fn existing(path: &Path) -> io::Result<Option<Metadata>> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(refused(e)),
    };
    // A rename would put a file in the place of a device.
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a folder" } else { "a device or a pipe" };
        return Err(refusal(ErrorKind::InvalidInput, format!("expected a file, found {found}")));
    }
    // Also for root, who may write anything: the mode says that somebody wants the file to stay.
    if metadata.permissions().readonly() {
        let why = "the file is read-only; `chmod u+w` allows to replace it";
        return Err(refusal(ErrorKind::PermissionDenied, why.to_owned()));
    }
    OpenOptions::new().write(true).open(path).map_err(refused)?;
    Ok(Some(metadata))
}

fn options(old: Option<&Metadata>) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
        options.mode(old.map_or(0o666, |old| old.mode() & 0o777));
    }
    #[cfg(not(unix))]
    let _ = old;
    options
}

/// Gives a file the owner and the mode of the one that it will replace.
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only root may give files away; others keep what they can.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
        if new.mode() == old.mode() {
            return Ok(());
        }
    }
    file.set_permissions(old.permissions())
}

/// Opens the folder of a file to flush it later; none where that is not done or not allowed.
fn open_folder(path: &Path) -> io::Result<Option<File>> {
    if !cfg!(unix) {
        return Ok(None);
    }
    match File::open(folder_of(path)) {
        Ok(folder) => Ok(Some(folder)),
        // One may write in a folder that one may not list; an absent one is told of later, by name.
        Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Flushes a folder to disk, if its file system can.
fn sync_folder(folder: &File) -> io::Result<()> {
    match folder.sync_all() {
        Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        other => other,
    }
}

/// The system's reason, said of the file that was to be written.
fn refused(e: io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("cannot be written: {e}"))
}

fn refusal(kind: ErrorKind, why: String) -> io::Error {
    io::Error::new(kind, format!("cannot be written: {why}"))
}
