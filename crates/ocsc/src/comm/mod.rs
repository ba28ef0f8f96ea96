//! Several processes that learn one dictionary together.
//!
//! Lag statistics add (see [`crate::statistics::Lags`]). So the members of a team code disjoint parts ([`split()`]) of each batch
//! against the same dictionary, their statistics are put together, and every member makes the same update:
//! [`crate::learner::Distributed`]. Sets to evaluate or to code are split in the same way, [`Shard`].
//!
//! [`Comm`] is all that this needs of a network; whoever has one implements it (crate `ocsc-mpi` does, on MPI). A process on
//! its own is a team too, [`Solo`].

pub(crate) mod exact;
pub(crate) mod reduction;
mod shard;
mod split;
pub(crate) mod wire;

pub use shard::Shard;
pub(crate) use split::size;
pub use split::split;

use crate::{Error, Result};

/// Connects processes that work together, each with a rank from 0. All of them make the same calls in the same order; a call
/// returns when all have made it. A member that cannot go on must see to it that the others do not wait for it.
pub trait Comm: Send + Sync {
    /// Returns which member this is.
    fn rank(&self) -> usize;

    /// Returns how many members there are.
    fn size(&self) -> usize;

    /// Gives everybody's bytes to everybody, one after the other in the order of ranks. `lengths` says how many each gives.
    fn all_gather(&self, mine: &[u8], lengths: &[usize]) -> Vec<u8>;

    /// Gives rank 0's bytes to everybody.
    fn broadcast(&self, bytes: &mut [u8]);

    /// Sums the values over members. They are whole numbers, which have the same sum in any order.
    fn all_reduce(&self, values: &mut [i64]);

    /// Returns how many members share this one's machine and its memory, itself included.
    fn neighbours(&self) -> usize {
        1
    }
}

/// Stands for a team of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo;

impl Comm for Solo {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_gather(&self, mine: &[u8], _lengths: &[usize]) -> Vec<u8> {
        mine.to_vec()
    }

    fn broadcast(&self, _bytes: &mut [u8]) {}

    fn all_reduce(&self, _values: &mut [i64]) {}
}

/// Gives everybody's bytes, of any lengths, in the order of ranks.
pub fn all_gather(comm: &dyn Comm, mine: &[u8]) -> Vec<Vec<u8>> {
    let lengths = comm.all_gather(&(mine.len() as u64).to_le_bytes(), &vec![8; comm.size()]);
    let lengths: Vec<usize> = lengths.as_chunks().0.iter().map(|n| u64::from_le_bytes(*n) as usize).collect();
    let all = comm.all_gather(mine, &lengths);
    let mut rest = &all[..];
    let mut next = |n: usize| {
        let (one, others) = rest.split_at(n.min(rest.len()));
        rest = others;
        one.to_vec()
    };
    lengths.into_iter().map(&mut next).collect()
}

/// Gives the same, unless a member failed or was stopped: then everybody fails, with the first one's rank and reason, or is
/// stopped. So nobody waits for one that has given up.
pub fn all_gather_results(comm: &dyn Comm, mine: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    if comm.size() == 1 {
        return mine.map(|bytes| vec![bytes]);
    }
    let (mut bytes, tag) = match mine {
        Ok(bytes) => (bytes, 0),
        Err(Error::Stopped) => (Vec::new(), 2),
        Err(error) => (error.to_string().into_bytes(), 1),
    };
    bytes.push(tag);
    let mut all = all_gather(comm, &bytes);
    let mut is_stopped = false;
    for (rank, bytes) in all.iter_mut().enumerate() {
        match bytes.pop() {
            Some(0) => {}
            Some(2) => is_stopped = true,
            _ => return Err(failed(comm, rank, bytes)),
        }
    }
    if is_stopped { Err(Error::Stopped) } else { Ok(all) }
}

/// The error of a member, for everybody.
pub(crate) fn failed(comm: &dyn Comm, rank: usize, message: &[u8]) -> Error {
    let message = String::from_utf8_lossy(message);
    if comm.size() == 1 {
        return Error::Source(message.into_owned());
    }
    Error::Rank { rank, of: comm.size(), message: message.into_owned(), cause: None }
}

/// Gives rank 0's bytes, of any length, to everybody; or its error.
pub fn broadcast(comm: &dyn Comm, mine: Result<Vec<u8>>) -> Result<Vec<u8>> {
    let is_root = comm.rank() == 0;
    let (mut bytes, cause) = match mine {
        Ok(bytes) => (bytes, None),
        Err(error) if comm.size() == 1 => return Err(error),
        Err(error) => (error.to_string().into_bytes(), Some(Box::new(error))),
    };
    let mut header = [0; 9];
    if is_root {
        header[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        header[8] = u8::from(cause.is_none());
    }
    comm.broadcast(&mut header);
    let [length @ .., ok] = header;
    bytes.resize(u64::from_le_bytes(length) as usize, 0);
    comm.broadcast(&mut bytes);
    if ok == 1 {
        return Ok(bytes);
    }
    Err(match failed(comm, 0, &bytes) {
        Error::Rank { rank, of, message, .. } => Error::Rank { rank, of, message, cause },
        other => other,
    })
}
