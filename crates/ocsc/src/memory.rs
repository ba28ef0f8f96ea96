//! How much memory a run will hold, by the method's own account: to be said in advance, without planning anything.

use crate::statistics::{Codes, Lags, Spectral, n_freqs};
use crate::{Atom, Config, Method, Real, Shape};

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
