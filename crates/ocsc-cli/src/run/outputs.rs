//! What a command reads and what it writes: no output may be one of its inputs, nor another output.
//!
//! Files are the same if they are one file on disk, whatever their names: `m` and `./m`, a link and what it leads to. An output
//! that does not exist yet is no input; two such outputs are the same if folder and name are.

use anyhow::{Context, Result, bail};
use ocsc::replace::{folder_of, link_target};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files of a command.
#[derive(Default)]
pub(crate) struct Outputs {
    /// What each input is, and its path.
    inputs: Vec<(&'static str, PathBuf)>,
    /// The inputs that were looked up, by identity; as long as no output exists, nobody needs them.
    known: HashMap<Identity, usize>,
    looked_up: usize,
    /// The outputs so far, by identity: option and path.
    written: HashMap<Identity, String>,
    /// Folders by the names that they were given.
    folders: HashMap<PathBuf, PathBuf>,
}

/// What tells files apart.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Identity {
    /// Device and number on it.
    #[cfg(unix)]
    Inode(u64, u64),
    Path(PathBuf),
}

impl Outputs {
    /// Adds files that the command reads; `what` says of one what it is: "one of the data".
    pub(crate) fn read<P: Into<PathBuf>>(&mut self, what: &'static str, files: impl IntoIterator<Item = P>) {
        self.inputs.extend(files.into_iter().map(|file| (what, file.into())));
    }

    /// Checks a file that the command will write, for the sake of `option`. Returns whether it is there already.
    pub(crate) fn write(&mut self, option: &str, path: &Path) -> Result<bool> {
        let existing = self.find(option, path)?;
        let named = format!("{option} {}", path.display());
        let target = link_target(path).with_context(|| format!("{named}: cannot be looked up"))?;
        let is_there = existing.is_some();
        let name = target.file_name().unwrap_or_default().to_owned();
        let identity = existing.unwrap_or_else(|| Identity::Path(self.folder(folder_of(&target)).join(name)));
        match self.written.entry(identity) {
            Entry::Occupied(other) => bail!("{named}: expected another file than that of {}", other.get()),
            Entry::Vacant(free) => drop(free.insert(named)),
        }
        Ok(is_there)
    }

    /// Checks that a file to be written is none that the command reads, and keeps nothing: for outputs without number.
    /// Returns the identity of the file that is there already.
    pub(crate) fn find(&mut self, option: &str, path: &Path) -> Result<Option<Identity>> {
        let named = || format!("{option} {}", path.display());
        let existing = link_target(path).and_then(|target| identity(&target));
        let existing = existing.with_context(|| format!("{}: cannot be looked up", named()))?;
        if let Some(identity) = &existing {
            self.look_up()?;
            if let Some(index) = self.known.get(identity) {
                let (what, input) = &self.inputs[*index];
                let input = input.display();
                bail!("{}: expected a file that this command does not read, found {what}: {input}", named());
            }
        }
        Ok(existing)
    }

    /// Looks up the inputs that were added since.
    fn look_up(&mut self) -> Result<()> {
        for (index, (_, input)) in self.inputs.iter().enumerate().skip(self.looked_up) {
            let identity = identity(input).with_context(|| format!("{}: cannot be looked up", input.display()))?;
            identity.map(|identity| self.known.entry(identity).or_insert(index));
        }
        self.looked_up = self.inputs.len();
        Ok(())
    }

    /// The real path of a folder, or, before it is made, the one that it will have.
    fn folder(&mut self, folder: &Path) -> &Path {
        self.folders.entry(folder.to_owned()).or_insert_with(|| {
            let real = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
            real.unwrap_or(folder.to_owned())
        })
    }
}

/// Whether two names mean one file that exists.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    a == b || matches!((identity(a), identity(b)), (Ok(Some(a)), Ok(Some(b))) if a == b)
}

/// The identity of an existing file; none if there is none.
fn identity(path: &Path) -> std::io::Result<Option<Identity>> {
    #[cfg(unix)]
    let found = {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).map(|metadata| Identity::Inode(metadata.dev(), metadata.ino()))
    };
    #[cfg(not(unix))]
    let found = std::fs::canonicalize(path).map(Identity::Path);
    match found {
        Ok(identity) => Ok(Some(identity)),
        // A file in the place of a folder is told of where the folder is needed.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e),
    }
}
