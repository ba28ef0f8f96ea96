//! The observer of a run: progress display, run log, checkpoints, Ctrl-C.

use crate::args::Every;
use crate::console::{Progress as Bar, interrupted};
use crate::record::{Event, MAX_LINE, Record, peak_rss_bytes};
use ocsc::checkpoint::{Attached, Notes};
use ocsc::learner::Step;
use ocsc::monitor::Monitor;
use ocsc::replace::{check_writable, replace_file};
use ocsc::train::{Evaluation, Observer, Outcome, Progress, Snapshot};
use ocsc::{Error, Real, Result, checkpoint, file};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Watches `ocsc learn` and `ocsc demo`.
pub(crate) struct Watch {
    pub(crate) bar: Bar,
    pub(crate) log: Option<Log>,
    pub(crate) checkpoints: Option<Checkpoints>,
    /// Sums over the current pass: objective, gap, non-zeros, samples.
    pub(crate) pass: PassSums,
    /// The last evaluation, and after how many samples it was made.
    pub(crate) test: Option<(usize, Evaluation)>,
    /// Where the run was after its last step.
    pub(crate) last: Option<Progress>,
    /// Whether the current step is in the log already, without its evaluation.
    is_logged: bool,
}

/// A checkpoint is written before an evaluation if the last one is older than so many times what it took to write.
const WORTH: u32 = 20;

/// Where checkpoints are written, and when.
pub(crate) struct Checkpoints {
    path: PathBuf,
    every: Every,
    /// When the last one was written, how long that took, and after how many samples.
    last: Instant,
    took: Duration,
    samples: Option<usize>,
    attached: Attached,
}

impl Checkpoints {
    pub(crate) fn new(path: &Path, every: Every, attached: Attached) -> Self {
        let (path, last, took) = (path.to_owned(), Instant::now(), Duration::ZERO);
        Checkpoints { path, every, last, took, samples: None, attached }
    }

    /// After a step from `n` samples: whether it is time.
    fn due(&self, progress: &Progress, n: usize) -> bool {
        match self.every {
            Every::Samples(every) => progress.samples / every > (progress.samples - n) / every,
            Every::Time(time) => self.last.elapsed() >= time,
        }
    }

    /// Writes a checkpoint, after the lines of the log that it has.
    fn save<T: Real>(&mut self, run: &Snapshot<'_, T>, log: Option<&Log>) -> Result<()> {
        let begun = Instant::now();
        log.map_or(Ok(()), Log::flush)?;
        checkpoint::save_attaching(&self.path, run.learner, Some(run.progress), &self.attached)?;
        (self.last, self.took, self.samples) = (Instant::now(), begun.elapsed(), Some(run.progress.samples));
        Ok(())
    }
}

/// Means over the current pass, for the `pass` line of the log.
#[derive(Default)]
pub(crate) struct PassSums {
    objective: f64,
    nonzeros: f64,
    gap: f64,
    samples: usize,
    reseeded: usize,
}

impl Watch {
    pub(crate) fn new(bar: Bar, log: Option<Log>, checkpoints: Option<Checkpoints>) -> Self {
        Watch { bar, log, checkpoints, pass: PassSums::default(), test: None, last: None, is_logged: false }
    }

    /// What a checkpoint of a run that ends here must note: the step that could not be written to the log.
    pub(crate) fn notes(&self) -> Notes {
        let unwritten = self.log.as_ref().and_then(|log| log.unwritten.clone());
        unwritten.map(|line| (UNWRITTEN.to_owned(), line)).into_iter().collect()
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.write(record))
    }

    /// Keeps the evaluation that was just made, if one was.
    fn remember<T: Real>(&mut self, run: &Snapshot<'_, T>) {
        self.test = run.test.map(|test| (run.progress.samples, test.clone())).or(self.test.take());
    }
}

impl<T: Real> Observer<T> for Watch {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.last = Some(*run.progress);
        let n = step.totals.count;
        self.pass.objective += step.objective() * n as f64;
        self.pass.nonzeros += step.nonzeros() * n as f64;
        self.pass.gap = self.pass.gap.max(step.gap());
        self.pass.samples += n;
        self.pass.reseeded += step.update.reseeded;
        self.remember(run);
        let record = of_step(run, step);
        match self.log.as_mut() {
            Some(log) if self.is_logged => log.amend(&record)?,
            Some(log) => log.write(&record)?,
            None => {}
        }
        self.is_logged = false;
        let test = self.test.as_ref().map_or(String::new(), |(_, t)| format!("  test {:.1}", t.objective));
        self.bar.reach(
            run.progress.samples + run.progress.skipped,
            &format!("objective {:.4} per value  gap {:.2} %{test}", step.objective_per_value(), 100.0 * step.gap()),
        );
        let is_due = |c: &&mut Checkpoints| c.due(run.progress, n) && c.samples != Some(run.progress.samples);
        if let Some(checkpoints) = self.checkpoints.as_mut().filter(is_due) {
            checkpoints.save(run, self.log.as_ref())?;
        }
        Ok(if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Saves the run: an evaluation may take longer than all before it. The step that it belongs to must be in the log by then,
    /// since a run that is resumed from here does not make it again.
    fn before_test(&mut self, run: &Snapshot<'_, T>, step: Option<&Step<T>>) -> Result<()> {
        self.last = Some(*run.progress);
        let n = step.map_or(0, |step| step.totals.count);
        let is_due = |c: &Checkpoints| {
            c.samples != Some(run.progress.samples)
                && (c.due(run.progress, n) || c.last.elapsed() >= WORTH * c.took || c.samples.is_none())
        };
        if !self.checkpoints.as_ref().is_some_and(is_due) {
            return Ok(());
        }
        if let (Some(step), Some(log)) = (step, self.log.as_mut().filter(|log| log.is_file)) {
            log.write(&of_step(run, step))?;
            self.is_logged = true;
        }
        self.checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.save(run, self.log.as_ref()))
    }

    fn testing(&mut self, done: usize, of: usize) {
        self.bar.testing(done, of);
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        self.bar.monitor()
    }

    fn notice(&mut self, message: &str) {
        self.bar.note(message);
    }

    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.remember(run);
        let sums = std::mem::take(&mut self.pass);
        let mut record = record(Event::Pass, run);
        if sums.samples > 0 {
            record.objective = Some(sums.objective / sums.samples as f64);
            record.nonzeros = Some(sums.nonzeros / sums.samples as f64);
            record.gap = Some(sums.gap);
            record.reseeded = Some(sums.reseeded as u64);
        }
        self.write(&record)?;
        Ok(if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn skipped(&mut self, error: &Error) -> Result<()> {
        self.bar.note(&format!("skipped: {error}"));
        Ok(())
    }

    fn end(&mut self, run: &Snapshot<'_, T>, _outcome: &Outcome) -> Result<()> {
        self.remember(run);
        self.write(&record(Event::End, run))
    }
}

/// The log's line of a step.
fn of_step<T: Real>(run: &Snapshot<'_, T>, step: &Step<T>) -> Record {
    Record {
        objective: Some(step.objective()),
        gap: Some(step.gap()),
        nonzeros: Some(step.nonzeros()),
        dictionary_change: Some(step.dictionary_change),
        stationarity: step.update.stationarity,
        reseeded: Some(step.update.reseeded as u64),
        ..record(Event::Step, run)
    }
}

fn record<T: Real>(event: Event, run: &Snapshot<'_, T>) -> Record {
    Record {
        event,
        // A step belongs to the pass it is in, the other events to the last finished one; both count from 1.
        pass: (run.progress.pass + usize::from(event == Event::Step)) as u64,
        step: run.progress.step as u64,
        samples: run.progress.samples as u64,
        seconds: run.progress.seconds,
        cpu_seconds: run.progress.cpu_seconds,
        objective: None,
        gap: None,
        nonzeros: None,
        dictionary_change: None,
        test_objective: run.test.map(|t| t.objective),
        test_psnr: run.test.map(|t| t.psnr),
        psnr_peak: run.test.map(|t| t.psnr_peak),
        peak_rss_bytes: peak_rss_bytes(),
        stationarity: None,
        reseeded: None,
        waiting_seconds: Some(run.progress.waiting_seconds),
        skipped: Some(run.progress.skipped as u64),
    }
}

/// The run log, a line at a time.
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    /// Whether its lines can be written anew: not those of a pipe.
    is_file: bool,
    /// Where the last line begins, and its length.
    last: (u64, usize),
    /// The line of a step that could not be written.
    unwritten: Option<String>,
}

/// What the note with a log's missing line is called.
const UNWRITTEN: &str = "unwritten log";

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

/// Why a log could not be written anew.
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

    fn write(&mut self, record: &Record) -> Result<()> {
        let end = if self.is_file { self.file.seek(SeekFrom::End(0)) } else { Ok(0) };
        let end = end.map_err(|e| Error::io(&self.path, e))?;
        self.put(end, 0, record)
    }

    /// Writes the last line anew, in one write over the old one, so that a kill leaves the old or the new.
    fn amend(&mut self, record: &Record) -> Result<()> {
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
    fn flush(&self) -> Result<()> {
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
