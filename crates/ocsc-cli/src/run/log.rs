//! The run log: one JSON record a line, whole at every moment, and taken back to a checkpoint where a run is resumed.

use crate::run::record::{Event, MAX_LINE, Record};
use ocsc::checkpoint::Notes;
use ocsc::replace::{check_writable, replace_file};
use ocsc::train::Progress;
use ocsc::{Error, Result, file};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The run log, a line at a time.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    /// Whether its lines can be written anew: not those of a pipe.
    pub(crate) is_file: bool,
    /// Where the last line begins, and its length.
    last: (u64, usize),
    /// The line of a step that could not be written.
    pub(crate) unwritten: Option<String>,
}

/// What the note with a log's missing line is called.
pub(crate) const UNWRITTEN: &str = "unwritten log";

/// Where a resumed run was, and the line that is missing in its log.
pub(crate) struct Resumed<'a> {
    pub(crate) progress: &'a Progress,
    pub(crate) unwritten: Option<&'a str>,
}

impl<'a> Resumed<'a> {
    pub(crate) fn new(progress: &'a Progress, notes: &'a Notes) -> Self {
        Resumed { progress, unwritten: notes.get(UNWRITTEN).map(String::as_str) }
    }

    /// Takes out of a log what the run will do again, and puts in the line that is missing. A line at a time: logs of long runs
    /// may be larger than the memory.
    fn take_back(&self, path: &Path) -> Result<()> {
        let all_stays = self.kept(path, |_| Ok(()))? && self.unwritten.is_none();
        if all_stays {
            return Ok(());
        }
        // Errors of the system come without the file's name, ours with it.
        let kept = replace_file(path, |file| -> Result<(), Failure> {
            let mut file = BufWriter::new(file);
            self.kept(path, |line| file.write_all(line).map_err(|e| Error::io(path, e)))?;
            file.write_all(self.unwritten.unwrap_or_default().as_bytes())?;
            Ok(file.flush()?)
        });
        kept.map_err(|failure| match failure {
            Failure::Io(e) => Error::io(path, e),
            Failure::Told(error) => error,
        })
    }

    /// Hands over the lines of a log that the run goes on from. Returns whether these are all.
    fn kept(&self, path: &Path, mut keep: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let io = |e| Error::io(path, e);
        let mut reader = BufReader::new(file::open(path).map_err(io)?);
        let (mut line, mut is_all) = (Vec::new(), true);
        for number in 1.. {
            line.clear();
            if reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(io)? == 0 {
                break;
            }
            let wrong = |found: &dyn Display| {
                Error::file(path, format!("run log, line {number}"), "one JSON record of a run", found)
            };
            if line.len() as u64 >= MAX_LINE {
                return Err(wrong(&"a longer line"));
            }
            let is_cut = !line.ends_with(b"\n");
            if is_cut || line.trim_ascii().is_empty() {
                is_all = false;
                continue;
            }
            let record = serde_json::from_slice(&line).map_err(|e| wrong(&e))?;
            match is_undone(&record, self.progress) {
                true => is_all = false,
                false => keep(&line)?,
            }
        }
        Ok(is_all)
    }
}

/// Says why a log could not be written anew.
enum Failure {
    Io(std::io::Error),
    Told(Error),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Io(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Told(error)
    }
}

impl Log {
    /// A new log, or, for a run resumed at `resumed`, the old one up to there.
    ///
    /// Dropped are the line that a kill cut short, the steps after the checkpoint, which will be made again, and the
    /// `end` of the interrupted run, which was none.
    pub(crate) fn open(path: &Path, resumed: Option<Resumed<'_>>) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let is_there = path.try_exists().map_err(io)?;
        // Pipes and devices keep nothing, and may never end.
        let is_old_file = is_there && std::fs::metadata(path).map_err(io)?.is_file();
        if is_old_file {
            check_writable(path)?;
        }
        let file = match resumed.filter(|_| is_old_file) {
            None => File::create(path).map_err(io)?,
            Some(resumed) => {
                resumed.take_back(path)?;
                File::options().write(true).open(path).map_err(io)?
            }
        };
        let is_file = file.metadata().map_err(io)?.is_file();
        Ok(Log { path: path.to_owned(), file, is_file, last: (0, 0), unwritten: None })
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
        let end = if self.is_file { self.file.seek(SeekFrom::End(0)) } else { Ok(0) };
        let end = end.map_err(|e| Error::io(&self.path, e))?;
        self.put(end, 0, record)
    }

    /// Writes the last line anew, in one write over the old one, so that a kill leaves the old or the new.
    pub(crate) fn amend(&mut self, record: &Record) -> Result<()> {
        let (start, length) = self.last;
        self.file.seek(SeekFrom::Start(start)).map_err(|e| Error::io(&self.path, e))?;
        self.put(start, length, record)
    }

    /// Writes a line of at least this length, which begins at `start`, where the file is.
    fn put(&mut self, start: u64, length: usize, record: &Record) -> Result<()> {
        let line = serde_json::to_string(record).map_err(|e| Error::io(&self.path, e.into()))?;
        let line = format!("{line:0$}\n", length.saturating_sub(1));
        self.last = (start, line.len());
        // One write per line, so that a kill cannot leave half of one behind a whole one.
        self.file.write_all(line.as_bytes()).map_err(|e| {
            // Passes and ends are told again by the run that goes on; steps that a checkpoint has are not made again.
            self.unwritten = Some(line).filter(|_| record.event == Event::Step);
            if self.is_file {
                // Half a line over a whole one would be neither; it is noted, so it can go.
                let _ = self.file.set_len(start);
            }
            Error::io(&self.path, e)
        })
    }

    /// Flushes it to disk: after a power cut no checkpoint may be ahead of its log.
    pub(crate) fn flush(&self) -> Result<()> {
        match self.file.sync_data() {
            // A pipe or a device has no disk.
            Err(e) if e.kind() == ErrorKind::InvalidInput => Ok(()),
            other => other.map_err(|e| Error::io(&self.path, e)),
        }
    }
}

/// Whether a line tells of something that a run resumed at `progress` will do again.
fn is_undone(record: &Record, progress: &Progress) -> bool {
    record.event == Event::End
        || record.samples > progress.samples as u64
        // A checkpoint after the last step of a pass is written before the pass is closed.
        || (record.event == Event::Pass && record.pass > progress.pass as u64)
}
