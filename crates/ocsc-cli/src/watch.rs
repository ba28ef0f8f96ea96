//! The observer of a run: progress display, run log, checkpoints, Ctrl-C.

use crate::args::Every;
use crate::console::{Progress as Bar, interrupted};
use crate::record::{Event, Record, peak_rss_bytes};
use ocsc::checkpoint::replace_file;
use ocsc::learner::Step;
use ocsc::observe::{Moment, Observer};
use ocsc::train::{Evaluation, Outcome, Progress};
use ocsc::{Error, Real, Result, checkpoint};
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Watches `ocsc learn` and `ocsc demo`.
pub(crate) struct Watch {
    pub(crate) bar: Bar,
    pub(crate) log: Option<Log>,
    pub(crate) checkpoints: Option<Checkpoints>,
    /// Sums over the current pass: objective, gap, non-zeros, samples.
    pub(crate) pass: PassSums,
    pub(crate) test: Option<Evaluation>,
    /// Where the run was after its last step.
    pub(crate) last: Option<Progress>,
    /// Filters replaced so far.
    pub(crate) reseeded: usize,
}

/// Where checkpoints are written, and when.
pub(crate) struct Checkpoints {
    path: PathBuf,
    every: Every,
    last: Instant,
}

impl Checkpoints {
    pub(crate) fn new(path: &Path, every: Every) -> Self {
        Checkpoints { path: path.to_owned(), every, last: Instant::now() }
    }

    /// After a step from `n` samples: whether it is time.
    fn due(&self, progress: &Progress, n: usize) -> bool {
        match self.every {
            Every::Samples(every) => progress.samples / every > (progress.samples - n) / every,
            Every::Time(time) => self.last.elapsed() >= time,
        }
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
        Watch { bar, log, checkpoints, pass: PassSums::default(), test: None, last: None, reseeded: 0 }
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.write(record))
    }
}

impl<T: Real> Observer<T> for Watch {
    fn step(&mut self, run: &Moment<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.last = Some(*run.progress);
        let n = step.coded.len();
        self.pass.objective += step.objective() * n as f64;
        self.pass.nonzeros += step.nonzeros() * n as f64;
        self.pass.gap = self.pass.gap.max(step.gap());
        self.pass.samples += n;
        self.pass.reseeded += step.update.reseeded;
        self.reseeded += step.update.reseeded;
        self.test = run.test.cloned().or(self.test.take());
        let mut record = record(Event::Step, run);
        record.objective = Some(step.objective());
        record.gap = Some(step.gap());
        record.nonzeros = Some(step.nonzeros());
        record.dictionary_change = Some(step.dictionary_change);
        record.stationarity = step.update.stationarity;
        record.reseeded = Some(step.update.reseeded as u64);
        self.write(&record)?;
        let test = self.test.as_ref().map_or(String::new(), |t| format!("  test {:.1}", t.objective));
        self.bar.reach(
            run.progress.samples + run.progress.skipped,
            &format!("objective {:.1}  gap {:.2} %{test}", step.objective(), 100.0 * step.gap()),
        );
        if let Some(checkpoints) = self.checkpoints.as_mut().filter(|c| c.due(run.progress, n)) {
            checkpoint::save(&checkpoints.path, run.learner, Some(run.progress))?;
            checkpoints.last = Instant::now();
        }
        Ok(if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn pass(&mut self, run: &Moment<'_, T>) -> Result<ControlFlow<()>> {
        self.test = run.test.cloned().or(self.test.take());
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

    fn end(&mut self, run: &Moment<'_, T>, _outcome: &Outcome) -> Result<()> {
        self.write(&record(Event::End, run))
    }
}

fn record<T: Real>(event: Event, run: &Moment<'_, T>) -> Record {
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
}

impl Log {
    /// A new log, or, for a run resumed at `resumed`, the old one up to there.
    ///
    /// Dropped are the line that a kill cut short, the steps after the checkpoint, which will be made again, and the
    /// `end` of the interrupted run, which was none.
    pub(crate) fn open(path: &Path, resumed: Option<&Progress>) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let Some(progress) = resumed.filter(|_| path.exists()) else {
            return Ok(Log { path: path.to_owned(), file: File::create(path).map_err(io)? });
        };
        let text = std::fs::read_to_string(path).map_err(io)?;
        let kept: Result<String> = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n') && !line.trim().is_empty())
            .map(|line| serde_json::from_str::<Record>(line).map(|record| (line, record)))
            .filter(|line| !line.as_ref().is_ok_and(|(_, record)| is_undone(record, progress)))
            .map(|line| line.map(|(line, _)| line).map_err(|e| Error::file(path, "run log", "records of a run", e)))
            .collect();
        let kept = kept?;
        if kept.len() < text.len() {
            replace_file(path, |file| std::fs::write(file, &kept)).map_err(io)?;
        }
        let file = File::options().append(true).open(path).map_err(io)?;
        Ok(Log { path: path.to_owned(), file })
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        let line = serde_json::to_string(record).map_err(|e| Error::io(&self.path, e.into()))?;
        // One write per line, so that a kill cannot leave half of one behind a whole one.
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(|e| Error::io(&self.path, e))
    }
}

/// Whether a line tells of something that a run resumed at `progress` will do again.
fn is_undone(record: &Record, progress: &Progress) -> bool {
    record.event == Event::End
        || record.samples > progress.samples as u64
        // A checkpoint after the last step of a pass is written before the pass is closed.
        || (record.event == Event::Pass && record.pass > progress.pass as u64)
}
