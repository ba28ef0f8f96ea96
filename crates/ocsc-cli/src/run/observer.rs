//! The observer of a run: progress display, lines of the log, checkpoints, the live page, Ctrl-C.

use crate::args::Every;
use crate::console::{Progress as Bar, interrupted};
use crate::run::log::{Log, UNWRITTEN};
use crate::run::record::{Event, Record, peak_rss_bytes};
use ocsc::checkpoint::{Attached, Notes};
use ocsc::learner::Step;
use ocsc::monitor::Monitor;
use ocsc::train::{Ended, Evaluation, Learned, Observer, Outcome, Progress, Snapshot};
use ocsc::{Error, Real, Result, Sparsity, checkpoint};
use ocsc_live::Camera;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Watches `ocsc learn` and `ocsc demo`.
pub(crate) struct Watch<'a> {
    pub(crate) bar: Bar,
    pub(crate) log: Option<Log>,
    pub(crate) checkpoints: Option<Checkpoints>,
    /// Takes pictures for the live page.
    live: Option<Camera<'a>>,
    /// Sums over the current pass; none if a part of it is not known.
    pass: Option<PassSums>,
    /// How sparse the codes of the current pass are, and those of the last one.
    sparsity: [Sparsity; 2],
    /// The last evaluation, and after how many samples it was made.
    pub(crate) test: Option<(usize, Evaluation)>,
    /// Where the run was after its last step.
    pub(crate) last: Option<Progress>,
    /// Whether the current step is in the log already, without its evaluation.
    is_logged: bool,
    /// Whether it is in the sums over the pass already.
    is_counted: bool,
}

/// What the observer of a run leaves.
pub(crate) struct EndedWatch {
    /// Where the run was after its last step.
    pub(crate) last: Option<Progress>,
    /// The last evaluation, and after how many samples it was made.
    pub(crate) tested: Option<(usize, Evaluation)>,
    /// How sparse the codes of the last pass are, also of one that was not finished.
    pub(crate) sparsity: Sparsity,
    /// What a checkpoint of a run that ends here must note: the sums over its pass, and the step that could not be written to the log.
    pub(crate) notes: Notes,
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

    /// Writes a checkpoint with these notes, after the lines of the log that it has.
    fn save<T: Real>(&mut self, run: &Snapshot<'_, T>, log: Option<&Log>, notes: Notes) -> Result<()> {
        let begun = Instant::now();
        log.map_or(Ok(()), Log::flush)?;
        let attached = Attached { notes, ..self.attached.clone() };
        checkpoint::save_attaching(&self.path, run.learner, Some(run.progress), &attached)?;
        (self.last, self.took, self.samples) = (Instant::now(), begun.elapsed(), Some(run.progress.samples));
        Ok(())
    }
}

/// What the note with the sums over an unfinished pass is called.
const PASS: &str = "pass sums";

/// Sums over the current pass, for the means in the `pass` line of the log.
#[derive(Default, Serialize, Deserialize)]
struct PassSums {
    objective: f64,
    nonzeros: f64,
    gap: f64,
    samples: usize,
    values: usize,
    reseeded: usize,
}

impl PassSums {
    fn add<T: Real>(&mut self, step: &Step<T>) {
        let n = step.totals.count;
        self.objective += step.objective() * n as f64;
        self.nonzeros += step.nonzeros() * n as f64;
        self.gap = self.gap.max(step.gap());
        self.samples += n;
        self.values += step.totals.values;
        self.reseeded += step.update.reseeded;
    }
}

/// Says why a run ended.
pub(crate) fn words(ended: Ended) -> &'static str {
    match ended {
        Ended::Finished => "all passes made",
        Ended::Converged => "converged",
        Ended::TimeLimit => "time limit",
        Ended::Stopped => "interrupted",
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(bar: Bar, log: Option<Log>, checkpoints: Option<Checkpoints>) -> Self {
        let (pass, sparsity) = (Some(PassSums::default()), [Sparsity::default(); 2]);
        let (is_logged, is_counted) = (false, false);
        Watch { bar, log, checkpoints, live: None, pass, sparsity, test: None, last: None, is_logged, is_counted }
    }

    /// Goes on with a pass where a checkpoint left it, with the sums that its notes hold; checkpoints from before have none.
    pub(crate) fn going_on(self, progress: &Progress, notes: &Notes) -> Self {
        match progress.visited {
            0 => self,
            _ => Watch { pass: notes.get(PASS).and_then(|note| serde_json::from_str(note).ok()), ..self },
        }
    }

    /// Shows the run on a live page.
    pub(crate) fn live(self, live: Option<Camera<'a>>) -> Self {
        Watch { live, ..self }
    }

    /// Takes the progress display away, and returns what is left of the run.
    pub(crate) fn ended(mut self) -> EndedWatch {
        let unwritten = self.log.as_ref().and_then(|log| log.unwritten.clone());
        let mut notes = self.notes();
        notes.extend(unwritten.map(|line| (UNWRITTEN.to_owned(), line)));
        let [current, before] = self.sparsity;
        let sparsity = if current.codes > 0 { current } else { before };
        EndedWatch { last: self.last, tested: self.test.take(), sparsity, notes }
    }

    /// What a checkpoint must note for the run to go on with its pass.
    fn notes(&self) -> Notes {
        let begun = self.pass.as_ref().filter(|pass| pass.samples > 0);
        let note = begun.and_then(|pass| serde_json::to_string(pass).ok());
        note.map(|note| (PASS.to_owned(), note)).into_iter().collect()
    }

    fn write(&mut self, record: &Record) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.write(record))
    }

    /// Keeps the evaluation that was just made, if one was.
    fn remember<T: Real>(&mut self, run: &Snapshot<'_, T>) {
        self.test = run.test.map(|test| (run.progress.samples, test.clone())).or(self.test.take());
    }
}

impl Watch<'_> {
    /// Adds a step to the sums over its pass.
    fn count<T: Real>(&mut self, step: &Step<T>) {
        if let Some(pass) = &mut self.pass {
            pass.add(step);
        }
    }

    /// Writes a checkpoint now.
    fn save<T: Real>(&mut self, run: &Snapshot<'_, T>) -> Result<()> {
        let notes = self.notes();
        self.checkpoints.as_mut().map_or(Ok(()), |checkpoints| checkpoints.save(run, self.log.as_ref(), notes))
    }

    /// Waits if the page says so, with a checkpoint of what there is.
    fn pause<T: Real>(&mut self, run: &Snapshot<'_, T>) -> Result<()> {
        if !self.live.as_ref().is_some_and(Camera::is_pause_wanted) {
            return Ok(());
        }
        if self.checkpoints.as_ref().is_some_and(|c| c.samples != Some(run.progress.samples)) {
            self.save(run)?;
        }
        self.bar.note("paused by the live page");
        if let Some(live) = &self.live {
            live.hold(|| !interrupted());
        }
        self.bar.note("going on");
        Ok(())
    }
}

impl<T: Real> Observer<T> for Watch<'_> {
    fn learned(&mut self, learned: &Learned<'_, T>) {
        if let Some(live) = &mut self.live {
            live.learned(learned);
        }
    }

    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        self.last = Some(*run.progress);
        let n = step.totals.count;
        if !std::mem::take(&mut self.is_counted) {
            self.count(step);
        }
        let values = step.totals.values / n.max(1);
        step.own_codes.iter().for_each(|coded| self.sparsity[0].add(coded.code.nonzeros(), values));
        self.remember(run);
        let record = of_step(run, step);
        match self.log.as_mut() {
            Some(log) if self.is_logged => log.amend(&record)?,
            Some(log) => log.write(&record)?,
            None => {}
        }
        self.is_logged = false;
        let test = self
            .test
            .as_ref()
            .map_or(String::new(), |(_, t)| format!("  test objective {:.1} per sample", t.objective));
        self.bar.reach(
            run.progress.samples + run.progress.skipped,
            &format!("objective {:.4} per value  gap {:.2} %{test}", step.objective_per_value(), 100.0 * step.gap()),
        );
        let is_due = |c: &Checkpoints| c.due(run.progress, n) && c.samples != Some(run.progress.samples);
        if self.checkpoints.as_ref().is_some_and(is_due) {
            self.save(run)?;
        }
        if let Some(live) = &mut self.live {
            live.step(run, step);
        }
        self.pause(run)?;
        Ok(if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Saves the run: an evaluation may take longer than all before it. The step that it belongs to must be in the log by then,
    /// since a run that is resumed from here does not make it again.
    fn before_test(&mut self, run: &Snapshot<'_, T>, step: Option<&Step<T>>) -> Result<()> {
        self.last = Some(*run.progress);
        let n = step.map_or(0, |step| step.totals.count);
        if let Some(step) = step {
            self.count(step);
            self.is_counted = true;
        }
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
        self.save(run)
    }

    fn testing(&mut self, done: usize, of: usize) {
        self.bar.testing(done, of);
        if let Some(live) = &self.live {
            live.testing(done, of);
        }
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        self.bar.monitor()
    }

    fn notice(&mut self, message: &str) {
        self.bar.note(message);
    }

    fn pass(&mut self, run: &Snapshot<'_, T>) -> Result<ControlFlow<()>> {
        self.remember(run);
        let sums = self.pass.replace(PassSums::default());
        self.sparsity = [Sparsity::default(), self.sparsity[0]];
        let mut record = record(Event::Pass, run);
        if let Some(sums) = sums.filter(|sums| sums.samples > 0) {
            record.objective = Some(sums.objective / sums.samples as f64);
            record.nonzeros = Some(sums.nonzeros / sums.samples as f64);
            record.gap = Some(sums.gap);
            record.nonzeros_share = Some(sums.nonzeros / sums.values.max(1) as f64);
            record.reseeded = Some(sums.reseeded as u64);
        }
        self.write(&record)?;
        if let Some(live) = &mut self.live {
            live.pass(run);
        }
        Ok(if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn skipped(&mut self, error: &Error) -> Result<()> {
        self.bar.note(&format!("skipped: {error}"));
        Ok(())
    }

    fn end(&mut self, run: &Snapshot<'_, T>, outcome: &Outcome) -> Result<()> {
        self.remember(run);
        if let Some(live) = &mut self.live {
            live.end(run, words(outcome.ended));
        }
        self.write(&record(Event::End, run))
    }
}

/// The log's line of a step.
fn of_step<T: Real>(run: &Snapshot<'_, T>, step: &Step<T>) -> Record {
    Record {
        objective: Some(step.objective()),
        gap: Some(step.gap()),
        nonzeros: Some(step.nonzeros()),
        nonzeros_share: Some(step.totals.nonzeros / step.totals.values.max(1) as f64),
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
        unusable: Some(run.progress.unusable as u64),
        nonzeros_share: None,
        test_samples: run.test.map(|t| t.samples as u64),
        test_seconds: run.test.map(|t| t.seconds),
    }
}
