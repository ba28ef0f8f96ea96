//! A team of MPI processes: each call is one collective operation of MPI.

use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Root};
use ocsc::comm::Comm;
use std::sync::Mutex;
use std::time::Instant;

/// MPI counts in 32 bits; longer messages go in pieces of so many bytes.
const LONGEST: usize = 1 << 30;

/// All processes that `mpirun` started.
pub(crate) struct MpiComm {
    world: SimpleCommunicator,
    rank: usize,
    size: usize,
    neighbours: usize,
    traffic: Mutex<Traffic>,
}

/// What went through the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes that this process was given by others; of sums, what a ring would bring.
    pub(crate) bytes: usize,
    /// Collective operations.
    pub(crate) calls: usize,
    /// Time in them, waiting for others included.
    pub(crate) seconds: f64,
}

// SAFETY: MPI was initialised with `Threading::Serialized` or more, and every use of the communicator is within a lock of
// `traffic`, so that no two threads are in MPI at the same time.
#[expect(unsafe_code, reason = "a communicator is a pointer, which is used within a lock")]
unsafe impl Send for MpiComm {}
// SAFETY: see above.
#[expect(unsafe_code, reason = "the same")]
unsafe impl Sync for MpiComm {}

impl MpiComm {
    pub(crate) fn new(universe: &Universe) -> Self {
        let world = universe.world();
        let neighbours = world.split_shared(world.rank()).size() as usize;
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        MpiComm { world, rank, size, neighbours, traffic: Mutex::default() }
    }

    /// What went through the network so far.
    pub(crate) fn traffic(&self) -> Traffic {
        *self.traffic.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Ends all processes at once. For one that cannot go on while the others wait for it.
    pub(crate) fn abort(&self) -> ! {
        self.world.abort(1)
    }

    /// One operation, counted.
    fn counted<R>(&self, bytes: usize, operation: impl FnOnce(&SimpleCommunicator) -> R) -> R {
        let mut traffic = self.traffic.lock().unwrap_or_else(|e| e.into_inner());
        let clock = Instant::now();
        let result = operation(&self.world);
        traffic.bytes += bytes;
        traffic.calls += 1;
        traffic.seconds += clock.elapsed().as_secs_f64();
        result
    }
}

impl Comm for MpiComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_gather(&self, mine: &[u8], lengths: &[usize]) -> Vec<u8> {
        let total = lengths.iter().sum::<usize>();
        let bytes = total - mine.len();
        if total <= LONGEST {
            let mut all = vec![0; total];
            if total == 0 {
                return all;
            }
            let counts: Vec<i32> = lengths.iter().map(|n| *n as i32).collect();
            if lengths.iter().all(|n| *n == mine.len()) {
                self.counted(bytes, |world| world.all_gather_into(mine, &mut all[..]));
            } else {
                let starts: Vec<i32> = counts.iter().scan(0, |end, n| Some(std::mem::replace(end, *end + n))).collect();
                let mut parts = PartitionMut::new(&mut all[..], counts, starts);
                self.counted(bytes, |world| world.all_gather_varcount_into(mine, &mut parts));
            }
            return all;
        }
        // Too long for one operation: everybody in turn, in pieces.
        let mut all = Vec::with_capacity(total);
        for (rank, length) in lengths.iter().enumerate() {
            let mut message = if rank == self.rank() { mine.to_vec() } else { vec![0; *length] };
            for part in message.chunks_mut(LONGEST) {
                let bytes = if rank == self.rank() { 0 } else { part.len() };
                self.counted(bytes, |world| world.process_at_rank(rank as i32).broadcast_into(part));
            }
            all.extend(message);
        }
        all
    }

    fn broadcast(&self, bytes: &mut [u8]) {
        let given = |part: &[u8]| if self.rank() == 0 { 0 } else { part.len() };
        for part in bytes.chunks_mut(LONGEST) {
            self.counted(given(part), |world| world.process_at_rank(0).broadcast_into(part));
        }
    }

    fn all_reduce(&self, values: &mut [i64]) {
        for part in values.chunks_mut(LONGEST / size_of::<i64>()) {
            let mine = part.to_vec();
            // A ring moves almost twice what is summed through every process.
            let bytes = 2 * size_of_val(part) * (self.size() - 1) / self.size();
            self.counted(bytes, |world| world.all_reduce_into(&mine[..], part, SystemOperation::sum()));
        }
    }

    fn neighbours(&self) -> usize {
        self.neighbours
    }
}
