//! What samples are known by when a run is resumed: their names, relative to what the call named, and the bytes of their files.

use super::{Source, list, pattern, split_pick};
use std::path::{Path, PathBuf};

impl Source {
    /// The name and the bytes of the file of every sample. Names are relative to the folder, list or pattern among `given` that
    /// they come from, so that they stay the same where data are moved.
    pub(crate) fn identities(&self, given: &[PathBuf]) -> impl Iterator<Item = (String, u64)> {
        let roots: Vec<PathBuf> = given.iter().map(|path| root(path)).collect();
        // Of a file with many samples, once.
        let mut last: Option<(PathBuf, u64)> = None;
        (0..self.len()).map(move |index| {
            let file =
                self.find(index).map_or(PathBuf::new(), |(part, _)| split_pick(Path::new(&part.name)).0.to_owned());
            let bytes = match &last {
                Some((known, bytes)) if *known == file => *bytes,
                _ => std::fs::metadata(&file).map_or(0, |metadata| metadata.len()),
            };
            last = Some((file, bytes));
            (relative(&self.name(index), &roots), bytes)
        })
    }
}

/// The folder that the names behind a path of the call are relative to.
fn root(given: &Path) -> PathBuf {
    if let Some(list) = list::named_by(given) {
        return list::folder(&list).to_owned();
    }
    if pattern::is_pattern(given) {
        return given.components().take_while(|part| !pattern::is_pattern(Path::new(part))).collect();
    }
    if given.is_dir() { given.to_owned() } else { given.parent().unwrap_or(Path::new("")).to_owned() }
}

fn relative(name: &str, roots: &[PathBuf]) -> String {
    let rest = roots.iter().find_map(|root| Path::new(name).strip_prefix(root).ok());
    let rest = rest.filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(Path::new(name));
    rest.display().to_string()
}
