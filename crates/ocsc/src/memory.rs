//! How much memory a run will hold, by the method's own account: to be said in advance, without planning anything, instead of
//! being killed later.

use crate::statistics::{Codes, Lags, Spectral, n_freqs};
use crate::{Atom, Config, Error, Method, Real, Result, Shape};

/// Bytes that a run holds besides the program itself and what reads samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What is kept from one update to the next: statistics, and for batch methods samples, codes and their spectra.
    pub statistics: usize,
    /// The rest: the coder's and the update's variables, the samples at hand.
    pub working: usize,
}

impl Memory {
    /// Both.
    pub fn total(&self) -> usize {
        self.statistics.saturating_add(self.working)
    }
}

/// What learning holds, with so many samples of (at most) this shape and filters of this shape.
pub fn memory<T: Real>(config: &Config, n_samples: usize, sample: Shape, filter: Shape) -> Memory {
    let (k, n, channels, scalar) = (config.n_filters, n_samples, filter.channels, size_of::<T>());
    let product = |factors: &[usize]| factors.iter().fold(1_usize, |p, f| p.saturating_mul(*f));
    let sum = |terms: &[usize]| terms.iter().fold(0_usize, |s, t| s.saturating_add(*t));
    // One array of all filters' maps, and the same with channels; half spectra take a little more.
    let maps = product(&[k, n_freqs(sample), 2, scalar]);
    let spectra = product(&[channels, maps]);
    // Samples that a batch method keeps, with their masks, and the non-zeros of their codes: as many as numbers, say.
    let kept = product(&[n, sample.len(), scalar + 1 + 12]);
    let codes = || Codes::<T>::bytes(k, sample, n);
    let admm_coder = sum(&[product(&[2, maps]), spectra]);
    let batch = |statistics: usize| Memory {
        statistics: sum(&[statistics, kept]),
        // Of the update: b, the sides of the systems, V and Theta; the maps that are transformed. Vectors that grow sample by
        // sample held up to a third more than is in them.
        working: sum(&[admm_coder, product(&[5, spectra]), maps, statistics / 3]),
    };
    match config.method {
        // The sample, the residual, the residual in 8 bits, and the atoms and candidates, which are the more the denser the
        // code: photos at beta = 1 took 60 to 80 bytes in all.
        Method::Ocsc => Memory {
            statistics: Lags::<T>::bytes(k, filter),
            working: product(&[config.batch_size, sample.len(), 2 * scalar + 72]),
        },
        // The coder holds two arrays of all filters' maps, the statistics three and the update two.
        Method::OcscPaper => Memory {
            statistics: Spectral::<T>::bytes(k, sample),
            working: product(&[config.batch_size, sample.len(), 7 * k, scalar]),
        },
        Method::Fcsc | Method::Cbpdn => batch(codes()),
        // The copies.
        Method::Consensus => batch(sum(&[codes(), product(&[n, spectra])])),
        // The factors of the smaller side, and the split data.
        Method::Ffcsc => {
            let side = k.min(n);
            let factors = product(&[n_freqs(sample), side, side.next_multiple_of(8), 2, scalar]);
            batch(sum(&[codes(), factors, product(&[n, sample.len(), 5, scalar])]))
        }
        // Its codes are far from sparse: up to an eighth of all coefficients was seen. Learner, update and file hold them.
        Method::Deconvnet => {
            let codes = product(&[n, k, sample.pixels(), size_of::<Atom<T>>()]) / 8;
            Memory { statistics: sum(&[kept, codes]), working: sum(&[product(&[5, maps]), kept, product(&[2, codes])]) }
        }
        Method::Ocdl1 => Memory {
            statistics: product(&[k, filter.pixels(), k, filter.pixels(), scalar]),
            working: sum(&[product(&[config.batch_size, 4, maps]), Lags::<T>::bytes(k, filter)]),
        },
        // A complex number and its column for every entry.
        Method::Ocdl2 => Memory {
            statistics: sum(&[product(&[n_freqs(sample), k, k, 2 * scalar + size_of::<u32>()]), spectra]),
            working: sum(&[product(&[config.batch_size, 4, maps]), product(&[5, spectra])]),
        },
        Method::Osc => Memory {
            statistics: product(&[k, k + filter.len(), scalar]),
            working: product(&[config.batch_size, sample.pixels(), filter.len().saturating_add(40), scalar]),
        },
    }
}

/// What the samples of a run are like.
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
    /// What learning from such samples takes in all, reading included, and the statistics' part of it.
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

    /// The most samples like these that can be learned from in so much memory; none if their number does not matter.
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
                format!("the method `ocsc` would need {}", size(less))
            }
            _ if config.batch_size > 1 => "use fewer or smaller filters, or a smaller batch".to_owned(),
            _ => "use fewer or smaller filters, or smaller samples".to_owned(),
        };
        let (n, need, there) = (config.n_filters, size(need), size(there));
        Err(Error::Memory(format!("{n} filters of {filter} need {need}, more than the {there} that {whose}; {advice}")))
    }
}

/// Needs up to this are not held against what is free: asking the system would take longer than most reads.
const SMALL: u64 = 16 << 20;

/// Refuses what needs more bytes than the system has free, where it says.
pub fn ensure_free(what: &str, need: u64) -> Result<()> {
    if need <= SMALL {
        return Ok(());
    }
    ensure_within(what, need, None)
}

/// Refuses what needs more bytes than the limit, or else than the system has free, where it says.
pub fn ensure_within(what: &str, need: u64, limit: Option<usize>) -> Result<()> {
    let (there, whose) = match (limit, available()) {
        (Some(limit), _) => (limit, "the memory limit allows"),
        (None, Some(free)) => (free, "the system has free"),
        (None, None) => return Ok(()),
    };
    if need <= there as u64 {
        return Ok(());
    }
    let (need, there) = (size(usize::try_from(need).unwrap_or(usize::MAX)), size(there));
    Err(Error::Memory(format!("{what} need {need}, more than the {there} that {whose}")))
}

/// Refuses samples of so many numbers whose reading alone needs more than the limit, or else than the system has free.
pub fn ensure_reading(numbers: usize, limit: Option<usize>) -> Result<()> {
    let need = (numbers as u64).saturating_mul(READING as u64);
    ensure_within(&format!("samples of {numbers} numbers, while they are read,"), need, limit)
}

/// What the system could give, where it says.
pub fn available() -> Option<usize> {
    meminfo("MemAvailable:")
}

/// All that the system has, where it says.
pub fn total() -> Option<usize> {
    meminfo("MemTotal:")
}

fn meminfo(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
}

/// 1234567 bytes as `1.2 MB`.
pub fn size(bytes: usize) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}
