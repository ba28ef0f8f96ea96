//! Where a run's batches come from: a data set, visited in a new seeded order in every pass and read ahead, or a stream, in
//! the order of arrival.

use super::evaluate::none_left;
use super::prefetch::{Prefetch, Visit};
use super::stream::Stream;
use super::{Observer, Progress, name_samples, visiting_order};
use crate::comm::{Comm, size, split};
use crate::monitor::{Monitor, check_wanted};
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The usable samples of one step.
pub(super) struct Batch<T> {
    /// What the learner knows the samples by: their places in the batch where members share it, else their numbers.
    pub(super) ids: Vec<usize>,
    /// The numbers of the samples in the data set, or in their pass.
    pub(super) numbers: Vec<usize>,
    pub(super) samples: Vec<Sample<T>>,
    /// The names of samples that turned out to be unusable, each once in a run.
    pub(super) unusable: Vec<String>,
    /// How many visits of the data set the batch stands for, those to unusable samples and of other members included.
    pub(super) visits: usize,
    /// Whether the pass ends with it. A stream does not know.
    pub(super) ends_pass: bool,
}

/// What comes next.
pub(super) enum Next<T> {
    Batch(Batch<T>),
    /// The pass is over, and the learner is to be told if `tell`: it was not with the last batch.
    EndOfPass {
        tell: bool,
    },
    /// Whoever gives the samples wants to stop.
    Stop,
}

/// Gives a run its batches.
pub(super) trait Feed<T: Real> {
    /// Begins the pass that `progress` is in.
    fn begin_pass(&mut self, progress: &Progress) -> Result<()>;

    /// Returns the next batch of the pass, for filters of this dictionary's shape; `learned` samples were learned from before.
    fn next(
        &mut self,
        learned: usize,
        dictionary: &Dictionary<T>,
        monitor: &dyn Monitor,
        observer: &mut dyn Observer<T>,
    ) -> Result<Next<T>>;

    /// Adds the names of a batch's samples to an error about them; `learned` samples were learned from before it.
    fn name(&self, error: Error, numbers: &[usize], learned: usize) -> Error;

    /// Leaves the pass that was made.
    fn close_pass(&mut self, _progress: &mut Progress) {}

    /// Refuses a whole pass in which nothing could be learned, if the samples will be the same in the next.
    fn refuse_empty_pass(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns how long the run has waited for samples.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the processor time that reading has taken.
    fn reading(&self) -> Duration {
        Duration::ZERO
    }
}

/// The batches of a data set.
pub(super) struct SetFeed<'a, 'p, T: Real> {
    samples: &'a dyn Samples<T>,
    prefetch: &'p Prefetch<'a, T>,
    comm: Arc<dyn Comm>,
    seed: u64,
    batch_size: usize,
    strict: bool,
    /// Where the run was when it was begun or resumed.
    begun: Progress,
    /// The order of visits in the current pass, and how many of them were made.
    order: Vec<usize>,
    visited: usize,
    /// The names of the samples that turned out to be unusable, and why the first of them is. Pieces of a sample share its name.
    unusable: BTreeSet<String>,
    first_bad: Option<String>,
}

/// Returns all visits that fall to this member, from `begun` to the end of the last pass.
pub(super) fn visits<'a, T: Real>(
    samples: &'a dyn Samples<T>,
    config: &Config,
    comm: &Arc<dyn Comm>,
    begun: Progress,
) -> impl Iterator<Item = Visit> + Send + use<'a, T> {
    let (n, seed, size, comm) = (samples.len(), config.seed, config.batch_size.max(1), comm.clone());
    (begun.pass..config.passes).flat_map(move |pass| {
        let done = if pass == begun.pass { begun.visited } else { 0 };
        let order = visiting_order(n, seed, pass);
        let comm = comm.clone();
        let mine = (done..n).step_by(size).flat_map(move |at| share(&*comm, samples, &order[at..n.min(at + size)]));
        mine.map(move |(_, index)| Visit { index, pass: Some(pass) })
    })
}

/// Returns the samples of a batch that fall to this member, with their places in it.
fn share<T: Real>(comm: &dyn Comm, samples: &dyn Samples<T>, batch: &[usize]) -> Vec<(usize, usize)> {
    if comm.size() == 1 {
        return batch.iter().copied().enumerate().collect();
    }
    let sizes: Vec<usize> = batch.iter().map(|index| size(samples, *index)).collect();
    split(&sizes, comm.size()).swap_remove(comm.rank()).into_iter().map(|place| (place, batch[place])).collect()
}

impl<'a, 'p, T: Real> SetFeed<'a, 'p, T> {
    /// The batches of `samples`, whose [`visits`] are read ahead. A strict run stops at a sample that cannot be used.
    pub(super) fn new(
        samples: &'a dyn Samples<T>,
        prefetch: &'p Prefetch<'a, T>,
        config: &Config,
        comm: Arc<dyn Comm>,
        strict: bool,
        begun: Progress,
    ) -> Self {
        let (seed, batch_size) = (config.seed, config.batch_size);
        let (order, unusable, first_bad) = (Vec::new(), BTreeSet::new(), None);
        SetFeed { samples, prefetch, comm, seed, batch_size, strict, begun, order, visited: 0, unusable, first_bad }
    }

    /// Takes note of a sample that cannot be used, unless that ends the run. Returns its name if it was not counted before.
    fn pass_over(&mut self, index: usize, error: Error, observer: &mut dyn Observer<T>) -> Result<Option<String>> {
        let error = name_samples(error, self.samples, &[index]);
        if self.strict || error.is_system_failure() {
            return Err(error);
        }
        self.first_bad.get_or_insert_with(|| error.to_string());
        let name = self.samples.name(index);
        if !self.unusable.insert(name.clone()) {
            return Ok(None);
        }
        observer.skipped(&error)?;
        Ok((!self.was_counted(&name)).then_some(name))
    }

    /// Returns whether a bad sample of this name was visited, and so counted, before the run was resumed.
    fn was_counted(&self, name: &str) -> bool {
        let Progress { pass, visited, unusable, .. } = self.begun;
        let is_named = |index: &usize| self.samples.name(*index) == name;
        let first_pass = || visiting_order(self.samples.len(), self.seed, 0);
        // The first pass visits every sample.
        unusable > 0 && (pass > 0 || first_pass().iter().take(visited).any(is_named))
    }
}

impl<T: Real> Feed<T> for SetFeed<'_, '_, T> {
    fn begin_pass(&mut self, progress: &Progress) -> Result<()> {
        self.order = visiting_order(self.samples.len(), self.seed, progress.pass);
        self.visited = progress.visited;
        Ok(())
    }

    fn next(
        &mut self,
        _learned: usize,
        dictionary: &Dictionary<T>,
        monitor: &dyn Monitor,
        observer: &mut dyn Observer<T>,
    ) -> Result<Next<T>> {
        let visits = self.batch_size.min(self.order.len() - self.visited);
        if visits == 0 {
            return Ok(Next::EndOfPass { tell: false });
        }
        let mine = share(&*self.comm, self.samples, &self.order[self.visited..][..visits]);
        self.visited += visits;
        let ends_pass = self.visited == self.order.len();
        let (mut ids, mut numbers) = (Vec::new(), Vec::new());
        let (mut samples, mut unusable) = (Vec::with_capacity(mine.len()), Vec::new());
        let prefetch = self.prefetch;
        for ((place, _), (Visit { index, .. }, sample)) in mine.iter().zip(std::iter::from_fn(|| prefetch.next())) {
            check_wanted(monitor)?;
            match sample.and_then(|sample| dictionary.check_sample_shape(sample.shape()).map(|()| sample)) {
                Ok(sample) => {
                    ids.push(if self.comm.size() > 1 { *place } else { index });
                    numbers.push(index);
                    samples.push(sample);
                }
                Err(error) => unusable.extend(self.pass_over(index, error, observer)?),
            }
        }
        Ok(Next::Batch(Batch { ids, numbers, samples, unusable, visits, ends_pass }))
    }

    fn name(&self, error: Error, numbers: &[usize], _learned: usize) -> Error {
        // Members share a batch: which of its samples is at fault is not known.
        if self.comm.size() > 1 { error } else { name_samples(error, self.samples, numbers) }
    }

    fn close_pass(&mut self, progress: &mut Progress) {
        progress.visited = 0;
    }

    fn refuse_empty_pass(&mut self) -> Result<()> {
        Err(none_left(self.order.len(), self.first_bad.take()))
    }

    fn waited(&self) -> Duration {
        self.prefetch.waited()
    }

    fn reading(&self) -> Duration {
        self.prefetch.reading()
    }
}

/// The batches of a stream.
pub(super) struct StreamFeed<'a, T: Real> {
    stream: &'a mut dyn Stream<T>,
    batch_size: usize,
    /// How many samples of the current pass were given; none before the first pass.
    given: Option<usize>,
}

impl<'a, T: Real> StreamFeed<'a, T> {
    /// The batches of `stream`.
    pub(super) fn new(stream: &'a mut dyn Stream<T>, batch_size: usize) -> Self {
        StreamFeed { stream, batch_size, given: None }
    }
}

impl<T: Real> Feed<T> for StreamFeed<'_, T> {
    fn begin_pass(&mut self, _progress: &Progress) -> Result<()> {
        if self.given.is_some() {
            self.stream.rewind()?;
        }
        self.given = Some(0);
        Ok(())
    }

    fn next(
        &mut self,
        learned: usize,
        dictionary: &Dictionary<T>,
        _monitor: &dyn Monitor,
        _observer: &mut dyn Observer<T>,
    ) -> Result<Next<T>> {
        let Some(samples) = self.stream.take(self.batch_size)? else { return Ok(Next::Stop) };
        if samples.is_empty() {
            return Ok(Next::EndOfPass { tell: true });
        }
        // Nobody could say later which sample was left out: one that does not fit ends the run.
        let fit = samples.iter().try_for_each(|sample| dictionary.check_sample_shape(sample.shape()));
        fit.map_err(|error| self.name(error, &[], learned))?;
        let first = self.given.unwrap_or(0);
        let numbers: Vec<usize> = (first..first + samples.len()).collect();
        self.given = Some(first + samples.len());
        let (ids, unusable) = (numbers.clone(), Vec::new());
        Ok(Next::Batch(Batch { ids, numbers, samples, unusable, visits: 0, ends_pass: false }))
    }

    fn name(&self, error: Error, _numbers: &[usize], learned: usize) -> Error {
        match error {
            Error::Invalid { what, expected, found } => {
                Error::Invalid { what: format!("{}: {what}", self.stream.name(learned)), expected, found }
            }
            other => other,
        }
    }
}
