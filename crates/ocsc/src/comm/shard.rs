//! The samples of a set that fall to one member.

use super::{Comm, size, split};
use crate::{Real, Result, Sample, Samples};

/// Holds the samples of one member, of a set that is split by the samples' sizes.
pub struct Shard<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    indices: Vec<usize>,
}

impl<'a, T: Real> Shard<'a, T> {
    /// Takes what falls to this member.
    pub fn of(comm: &dyn Comm, samples: &'a dyn Samples<T>) -> Self {
        let sizes: Vec<usize> = (0..samples.len()).map(|i| size(samples, i)).collect();
        Shard { samples, indices: split(&sizes, comm.size()).swap_remove(comm.rank()) }
    }

    /// Takes the samples of these numbers.
    pub(crate) fn picked(samples: &'a dyn Samples<T>, indices: Vec<usize>) -> Self {
        Shard { samples, indices }
    }

    /// Returns the number in the whole set of this part's sample `index`.
    pub fn number(&self, index: usize) -> usize {
        self.indices[index]
    }
}

impl<T: Real> Samples<T> for Shard<'_, T> {
    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<Sample<T>> {
        self.samples.get(self.indices[index])
    }

    fn draw(&self, index: usize, pass: usize) -> Result<Sample<T>> {
        self.samples.draw(self.indices[index], pass)
    }

    fn name(&self, index: usize) -> String {
        self.samples.name(self.indices[index])
    }

    fn spatial(&self, index: usize) -> Option<[usize; 3]> {
        self.samples.spatial(self.indices[index])
    }
}
