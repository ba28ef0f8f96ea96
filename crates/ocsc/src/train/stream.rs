//! Learning from samples that come one after the other, without number: what [`super::train`] does for data sets.
//!
//! Samples are visited in the order of arrival, and none is held longer than its step. A checkpoint goes on with whatever
//! stream comes next.

use super::stopping::StopRule;
use super::test_set::TestSet;
use super::{Ended, Evaluation, Outcome, Progress, Schedule};
use super::{Observer, Snapshot};
use crate::comm::Solo;
use crate::learner::Learner;
use crate::text::counted;
use crate::{Error, Real, Result, Sample, Samples};
use cpu_time::ProcessTime;
use std::time::Instant;

/// Samples that come one after the other.
pub trait Stream<T: Real> {
    /// The next `n` samples, or as many as are left; none at the end of a pass. `Err` ends the run; `Ok(None)` stops it.
    fn take(&mut self, n: usize) -> Result<Option<Vec<Sample<T>>>>;

    /// Begins again, for another pass.
    fn rewind(&mut self) -> Result<()> {
        Err(Error::invalid("passes", "1, as the samples can be read once", "more"))
    }

    /// What to call the samples after the first `n` of a run, in messages.
    fn name(&self, n: usize) -> String {
        format!("after {}", counted(n, "sample"))
    }
}

/// A run on a stream.
struct Run<'a, T: Real> {
    learner: &'a mut dyn Learner<T>,
    tests: TestSet<'a, T>,
    schedule: &'a Schedule,
    progress: Progress,
    rule: StopRule<T>,
}

/// Learns from a stream, in so many passes, until it, the schedule or the observer ends. The place in a data set, if `progress` came from one, is left as it is.
pub fn train_stream<T: Real>(
    learner: &mut dyn Learner<T>,
    passes: usize,
    stream: &mut dyn Stream<T>,
    test: Option<&dyn Samples<T>>,
    schedule: &Schedule,
    progress: Progress,
    observer: &mut dyn Observer<T>,
) -> Result<Outcome> {
    let rule = StopRule::new(schedule.stop_tol, learner.dictionary());
    // Nobody could say later which sample of a test set was left out.
    let tests = TestSet::new(test, &Schedule { strict: true, ..schedule.clone() });
    let mut run = Run { learner, tests, schedule, progress, rule };
    let mut ended = run.passes(passes, stream, observer)?;
    let is_early = matches!(ended, Ended::Converged | Ended::TimeLimit);
    if is_early && run.tests.are_due_after_pass(run.progress.samples, true) {
        ended = match run.tests.run(run.learner, &run.progress, None, observer) {
            Err(Error::Stopped) => Ended::Stopped,
            test => test.map(|_| ended)?,
        };
    }
    let test = run.tests.at(run.progress.samples).cloned();
    let outcome = Outcome { ended, progress: run.progress, test };
    observer
        .end(&Snapshot { progress: &outcome.progress, learner: run.learner, test: outcome.test.as_ref() }, &outcome)?;
    Ok(outcome)
}

impl<T: Real> Run<'_, T> {
    fn passes(&mut self, passes: usize, stream: &mut dyn Stream<T>, observer: &mut dyn Observer<T>) -> Result<Ended> {
        for pass in 0..passes {
            if pass > 0 {
                stream.rewind()?;
            }
            let mut visited = 0;
            let mut batch = stream.take(self.learner.config().batch_size)?;
            while let Some(samples) = batch.as_ref().filter(|samples| !samples.is_empty()) {
                if let Some(ended) = self.step(visited, samples, stream, observer)? {
                    return Ok(ended);
                }
                visited += samples.len();
                batch = stream.take(self.learner.config().batch_size)?;
            }
            if batch.is_none() {
                return Ok(Ended::Stopped);
            }
            if let Some(ended) = self.end_of_pass(pass + 1 == passes, observer)? {
                return Ok(ended);
            }
        }
        Ok(Ended::Finished)
    }

    /// Learns from one batch, of which the first sample is number `visited` of its pass.
    fn step(
        &mut self,
        visited: usize,
        batch: &[Sample<T>],
        stream: &dyn Stream<T>,
        observer: &mut dyn Observer<T>,
    ) -> Result<Option<Ended>> {
        let (wall, cpu, before) = (Instant::now(), ProcessTime::now(), self.progress.samples);
        let visits: Vec<usize> = (visited..visited + batch.len()).collect();
        let named = |error| match error {
            Error::Invalid { what, expected, found } => {
                Error::Invalid { what: format!("{}: {what}", stream.name(before)), expected, found }
            }
            other => other,
        };
        for sample in batch {
            self.learner.dictionary().check_sample_shape(sample.shape()).map_err(named)?;
        }
        let step = match self.learner.learn(&visits, batch, &*observer.monitor()) {
            Err(Error::Stopped) => return Ok(Some(Ended::Stopped)),
            step => step.map_err(named)?,
        };
        self.progress.seconds += wall.elapsed().as_secs_f64();
        self.progress.cpu_seconds += cpu.elapsed().as_secs_f64();
        self.progress.step = step.step;
        self.progress.samples += batch.len();
        self.progress.reseeded += step.update.reseeded;
        self.rule.follow(&Solo, &visits, &step.own_codes)?;
        let (mut test, mut stop) = (None, false);
        if self.tests.are_due_after_step(before, self.progress.samples) {
            match self.tests.run(self.learner, &self.progress, Some(&step), observer) {
                Err(Error::Stopped) => stop = true,
                tested => test = tested?,
            }
        }
        stop |= observer.step(&self.moment(test.as_ref()), &step)?.is_break();
        let late = self.schedule.time_limit.is_some_and(|limit| self.progress.seconds >= limit.as_secs_f64());
        Ok(if stop { Some(Ended::Stopped) } else { late.then_some(Ended::TimeLimit) })
    }

    fn end_of_pass(&mut self, is_last: bool, observer: &mut dyn Observer<T>) -> Result<Option<Ended>> {
        let (wall, cpu) = (Instant::now(), ProcessTime::now());
        self.learner.end_of_pass()?;
        self.progress.seconds += wall.elapsed().as_secs_f64();
        self.progress.cpu_seconds += cpu.elapsed().as_secs_f64();
        let mut test = None;
        if self.tests.are_due_after_pass(self.progress.samples, is_last) {
            match self.tests.run(self.learner, &self.progress, None, observer) {
                Err(Error::Stopped) => return Ok(Some(Ended::Stopped)),
                tested => test = tested?,
            }
        }
        self.progress.pass += 1;
        if observer.pass(&self.moment(test.as_ref()))?.is_break() {
            return Ok(Some(Ended::Stopped));
        }
        Ok(self.rule.holds(self.learner.dictionary()).then_some(Ended::Converged))
    }

    fn moment<'b>(&'b self, test: Option<&'b Evaluation>) -> Snapshot<'b, T> {
        Snapshot { progress: &self.progress, learner: self.learner, test }
    }
}
