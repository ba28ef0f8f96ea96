//! The samples of a set that fall to one member.

use super::{Team, split};
use crate::{Real, Result, Sample, Samples};

/// The samples of one member, of a set that is split by the samples' sizes.
pub struct Part<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    indices: Vec<usize>,
}

impl<'a, T: Real> Part<'a, T> {
    /// What falls to this member.
    pub fn of(team: &dyn Team, samples: &'a dyn Samples<T>) -> Self {
        let sizes: Vec<usize> = (0..samples.len()).map(|i| samples.size(i)).collect();
        Part { samples, indices: split(&sizes, team.size()).swap_remove(team.rank()) }
    }

    /// The number in the whole set of this part's sample `index`.
    pub fn number(&self, index: usize) -> usize {
        self.indices[index]
    }
}

impl<T: Real> Samples<T> for Part<'_, T> {
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

    fn size(&self, index: usize) -> usize {
        self.samples.size(self.indices[index])
    }
}
