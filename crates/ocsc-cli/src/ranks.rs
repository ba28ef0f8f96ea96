//! Who runs a command: one process, or several that share the work, as those of `ocsc-mpi` do.
//!
//! Every member opens the same data and reads of it what falls to it. Rank 0 alone reads and writes models, writes the log
//! and the checkpoints, and talks.

use crate::console::{counted, told};
use crate::data::{ChannelCounts, Source};
use anyhow::Result;
use ocsc::checkpoint::{Saved, from_bytes, read};
use ocsc::comm::{Comm, Solo, all_gather, all_gather_results, broadcast};
use ocsc::run::Run;
use ocsc::{Error, Real};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

/// Depth, height and width of samples, in little memory.
pub(crate) type Sizes = Vec<[u32; 3]>;

/// The processes that run a command.
pub struct Ranks {
    comm: Arc<dyn Comm>,
    /// Whether it is a team that learns, even if it has one member.
    is_team: bool,
    reproducible: bool,
}

impl Ranks {
    /// This process and no other.
    pub fn alone() -> Self {
        Ranks { comm: Arc::new(Solo), is_team: false, reproducible: false }
    }

    /// This process and others, who learn the same whatever their number, and if they are to be `reproducible`, what one
    /// process learns alone.
    pub fn of(comm: Arc<dyn Comm>, reproducible: bool) -> Self {
        Ranks { comm, is_team: true, reproducible }
    }

    /// The processes.
    pub(crate) fn comm(&self) -> &dyn Comm {
        &*self.comm
    }

    /// Whether there are others.
    pub(crate) fn is_many(&self) -> bool {
        self.comm.size() > 1
    }

    /// Whether this is the one that reads and writes models.
    pub(crate) fn is_first(&self) -> bool {
        self.comm.rank() == 0
    }

    /// Reads a model file.
    pub(crate) fn load<T: Real>(&self, path: &Path) -> ocsc::Result<Saved<T>> {
        let bytes = match self.is_first() {
            true => read(path),
            false => Ok(Vec::new()),
        };
        from_bytes(&broadcast(&*self.comm, bytes)?, path)
    }

    /// Has a run be made by all of them.
    pub(crate) fn run<T: Real>(&self, run: Run<T>) -> Run<T> {
        if self.is_team { run.comm(self.comm.clone(), self.reproducible) } else { run }
    }

    /// Checks that all see the same samples: else a sample's number would mean something else to each.
    pub(crate) fn check_same(&self, source: &Source) -> Result<()> {
        if !self.is_many() {
            return Ok(());
        }
        let mut hash = DefaultHasher::new();
        (0..source.len()).for_each(|i| source.file_stem(i).hash(&mut hash));
        let mine = [source.len() as u64, hash.finish()].map(u64::to_le_bytes).concat();
        let all = all_gather(&*self.comm, &mine);
        let count = |bytes: &[u8]| bytes.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
        if let Some(rank) = all.iter().position(|bytes| *bytes != all[0]) {
            let (first, other) = (count(&all[0]), count(&all[rank]));
            let what = if first == other { "other names" } else { "another number of samples" };
            let message = format!(
                "expected the {} that rank 0 sees, found {other} ({what}); all ranks must see the same data under the same paths",
                counted(first as usize, "sample")
            );
            return Err(Error::Rank { rank, of: all.len(), message, cause: None }.into());
        }
        Ok(())
    }

    /// How many samples have which channels, each looked up by one member.
    pub(crate) fn channels(&self, source: &Source) -> Result<ChannelCounts> {
        let mut mine = ChannelCounts::default();
        source.read_headers(self.comm.rank()..source.len(), self.comm.size());
        for i in (self.comm.rank()..source.len()).step_by(self.comm.size()) {
            source.seen(i).into_iter().for_each(|seen| mine.add(i, seen));
        }
        if !self.is_many() {
            return Ok(mine);
        }
        let mut all = ChannelCounts::default();
        for bytes in all_gather(&*self.comm, &serde_json::to_vec(&mine)?) {
            all.merge(serde_json::from_slice(&bytes)?);
        }
        Ok(all)
    }

    /// Returns the sizes of all samples, each looked up by one member; zeros where `known` returns none. It may refuse what it
    /// is given.
    pub(crate) fn sizes(
        &self,
        source: &Source,
        known: impl Fn(Result<[usize; 3]>) -> Result<Option<[usize; 3]>>,
    ) -> Result<Sizes> {
        let members = self.comm.size();
        let mine = (self.comm.rank()..source.len()).step_by(members).map(|i| {
            let size = known(source.size(i))?.unwrap_or_default();
            Ok(size.map(|n| u32::try_from(n).unwrap_or(u32::MAX)))
        });
        let mine = mine.collect::<Result<Sizes>>();
        if !self.is_many() {
            return mine;
        }
        let bytes = |sizes: Sizes| sizes.into_flattened().into_iter().flat_map(u32::to_le_bytes).collect();
        let mine = mine.map(bytes).map_err(|e| Error::Source(told(&e)));
        let mut sizes = vec![[0; 3]; source.len()];
        for (rank, bytes) in all_gather_results(&*self.comm, mine)?.iter().enumerate() {
            let theirs = bytes.as_chunks::<4>().0.as_chunks::<3>().0;
            let places = sizes.iter_mut().skip(rank).step_by(members);
            places.zip(theirs).for_each(|(size, their)| *size = their.map(u32::from_le_bytes));
        }
        Ok(sizes)
    }
}
