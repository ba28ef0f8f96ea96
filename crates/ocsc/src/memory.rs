//! How much memory a run will hold, by the method's own account: to be said in advance, without planning anything, instead of
//! being killed later.

use crate::method::Facts;
use crate::text::{counted, size};
use crate::{Config, Error, Method, Real, Result, Shape};

pub use crate::method::Memory;
pub use crate::system::{available, held, peak, total};
pub use crate::system::{ensure_free, ensure_within};

/// Returns what learning holds, with `n_samples` samples of (at most) this shape and filters of this shape.
pub fn memory<T: Real>(config: &Config, n_samples: usize, sample: Shape, filter: Shape) -> Memory {
    let (n_filters, batch_size) = (config.n_filters, config.batch_size);
    let n_base = config.block_descent.n_base(n_filters);
    let base_filters = config.block_descent.base_filters;
    config.method.account(&Facts {
        dtype: T::DTYPE,
        n_filters,
        base_filters,
        n_base,
        filter,
        batch_size,
        n_samples,
        sample,
    })
}

/// Says what the samples of a run are like.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// How many there are.
    pub samples: usize,
    /// The shape, if all have the same.
    pub one_size: Option<Shape>,
    /// The numbers of the largest.
    pub largest: usize,
    /// Processes on this machine that learn from them together, each with memory of its own.
    pub processes: usize,
}

/// What a program takes by itself, with its queue of samples.
const PROGRAM: usize = 16_000_000;
/// What reading ahead takes for every number of a sample: colours and local means in double precision.
const READING: usize = 64;

impl Survey {
    /// Returns what learning from such samples takes in all, reading included, and the statistics' part of it.
    pub fn needs<T: Real>(&self, config: &Config, filter: Shape) -> (usize, usize) {
        // Methods whose memory depends on the axes take one size only, so the largest sample is any of them.
        let width = self.largest / filter.channels.max(1);
        let sample = self.one_size.unwrap_or(Shape { channels: filter.channels, depth: 1, height: 1, width });
        let processes = self.processes.max(1);
        // Each has a part of a batch, and the sum of the others' statistics beside its own.
        let part = Config { batch_size: config.batch_size.div_ceil(processes), ..config.clone() };
        let mut need = memory::<T>(&part, self.samples, sample, filter);
        if processes > 1 {
            need.working = need.working.saturating_add(2 * need.statistics);
        }
        let reading = self.largest.saturating_mul(READING).saturating_add(PROGRAM);
        (need.total().saturating_add(reading), need.statistics)
    }

    /// Returns the most samples like these that can be learned from within the limit; none if their number does not matter.
    pub fn most_samples<T: Real>(&self, config: &Config, filter: Shape, limit: usize) -> Option<usize> {
        let fits = |samples: usize| Survey { samples, ..*self }.needs::<T>(config, filter).0 <= limit;
        let (mut fitting, mut too_many) = (0, 1 << 40);
        if fits(too_many) {
            return None;
        }
        while too_many - fitting > 1 {
            let middle = fitting + (too_many - fitting) / 2;
            *(if fits(middle) { &mut fitting } else { &mut too_many }) = middle;
        }
        Some(fitting)
    }

    /// Refuses what needs more than the limit, or else than the system has free, with the method that would do.
    pub fn ensure<T: Real>(&self, config: &Config, filter: Shape, limit: Option<usize>) -> Result<()> {
        let (there, whose) = match (limit, available()) {
            (Some(limit), _) => (limit, "the memory limit allows"),
            (None, Some(free)) if self.processes > 1 => (free / self.processes, "the system has free for each process"),
            (None, Some(free)) => (free, "the system has free"),
            (None, None) => return Ok(()),
        };
        let need = self.needs::<T>(config, filter).0;
        if need <= there {
            return Ok(());
        }
        let other = Config { method: Method::Ocsc, ..config.clone() };
        let advice = match self.needs::<T>(&other, filter).0 {
            less if config.method != Method::Ocsc && less <= there => {
                format!("the method `ocsc` would need {}", size(less as u64))
            }
            _ if config.batch_size > 1 => "use fewer or smaller filters, or a smaller batch".to_owned(),
            _ => "use fewer or smaller filters, or smaller samples".to_owned(),
        };
        let what = format!("{} of {filter}", counted(config.n_filters, "filter"));
        Err(Error::Memory { what, needed: need as u64, available: there as u64, whose, advice: Some(advice) })
    }
}

/// Refuses samples of so many numbers whose reading alone needs more than the limit, or else than the system has free.
pub fn ensure_reading(numbers: usize, limit: Option<usize>) -> Result<()> {
    let need = (numbers as u64).saturating_mul(READING as u64);
    ensure_within(&format!("samples of {numbers} numbers, while they are read,"), need, limit)
}
