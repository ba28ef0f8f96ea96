//! How much memory the methods hold while they learn, by their own account.

use crate::real::Dtype;
use crate::statistics::{Codes, Lags, Spectral, Window, n_freqs};
use crate::update::Aocdl;
use crate::{Atom, Shape};

/// Counts the bytes that a run holds besides the program itself and what reads samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// What is kept from one update to the next: statistics, and for batch methods samples, codes and their spectra.
    pub statistics: usize,
    /// The rest: the coder's and the update's variables, the samples at hand.
    pub working: usize,
}

impl Memory {
    /// Returns the sum of both.
    pub fn total(&self) -> usize {
        self.statistics.saturating_add(self.working)
    }
}

/// What the account of a method depends on.
pub(crate) struct Facts {
    /// The scalar.
    pub(crate) dtype: Dtype,
    /// The number of filters.
    pub(crate) n_filters: usize,
    /// The number of base filters that all samples share; 0 for none.
    pub(crate) base_filters: usize,
    /// The number of base filters of methods whose filters depend on the sample.
    pub(crate) n_base: usize,
    /// Their shape.
    pub(crate) filter: Shape,
    /// Samples coded between two updates.
    pub(crate) batch_size: usize,
    /// The number of samples.
    pub(crate) n_samples: usize,
    /// The shape of the largest.
    pub(crate) sample: Shape,
}

fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product, factor| product.saturating_mul(*factor))
}

fn sum(terms: &[usize]) -> usize {
    terms.iter().fold(0, |sum, term| sum.saturating_add(*term))
}

impl Facts {
    /// Returns the bytes of a number.
    fn scalar(&self) -> usize {
        match self.dtype {
            Dtype::F32 => size_of::<f32>(),
            Dtype::F64 => size_of::<f64>(),
        }
    }

    /// Returns what one array of all filters' maps takes; half spectra take a little more.
    fn maps(&self) -> usize {
        product(&[self.n_filters, n_freqs(self.sample), 2, self.scalar()])
    }

    /// Returns the same with channels.
    fn spectra(&self) -> usize {
        product(&[self.filter.channels, self.maps()])
    }

    /// Returns what the samples that a batch method keeps take, with their masks, and the non-zeros of their codes: as many as
    /// numbers, say.
    fn kept(&self) -> usize {
        product(&[self.n_samples, self.sample.len(), self.scalar() + 1 + 12])
    }

    /// Returns what a count of bytes for each scalar is for this one.
    fn bytes(&self, single: usize, double: usize) -> usize {
        match self.dtype {
            Dtype::F32 => single,
            Dtype::F64 => double,
        }
    }

    /// Returns what the codes of all samples take as spectra.
    fn codes(&self) -> usize {
        let (k, n) = (self.n_filters, self.n_samples);
        self.bytes(Codes::<f32>::bytes(k, self.sample, n), Codes::<f64>::bytes(k, self.sample, n))
    }

    fn lags(&self) -> usize {
        let (k, filter) = (self.n_filters, self.filter);
        self.bytes(Lags::<f32>::bytes(k, filter), Lags::<f64>::bytes(k, filter))
    }

    fn batch_with(&self, statistics: usize) -> Memory {
        let admm_coder = sum(&[product(&[2, self.maps()]), self.spectra()]);
        Memory {
            statistics: sum(&[statistics, self.kept()]),
            // Of the update: b, the sides of the systems, V and Theta; the maps that are transformed. Vectors that grow sample by
            // sample held up to a third more than is in them.
            working: sum(&[admm_coder, product(&[5, self.spectra()]), self.maps(), statistics / 3]),
        }
    }

    pub(super) fn ocsc(&self) -> Memory {
        Memory {
            statistics: self.lags(),
            // The sample, the residual, the residual in 8 bits, and the atoms and candidates, which are the more the denser the
            // code: photos at beta = 1 took 60 to 80 bytes in all.
            // The statistics of base filters are made in f64.
            working: sum(&[
                product(&[self.batch_size, self.sample.len(), 2 * self.scalar() + 72]),
                product(&[self.n_filters, self.base_filters, Window::new(self.filter).lags(), size_of::<f64>()]),
            ]),
        }
    }

    pub(super) fn sgd(&self) -> Memory {
        let filters = product(&[self.n_filters, self.filter.len()]);
        let residual = product(&[self.sample.len(), size_of::<f64>() + 1]);
        Memory {
            statistics: product(&[filters, self.scalar()]),
            // The gradient and that of a sample, and the residual.
            working: sum(&[self.ocsc().working, product(&[2, filters, size_of::<f64>()]), residual]),
        }
    }

    pub(super) fn aocdl(&self) -> Memory {
        let numbers = Aocdl::<f32>::history_len(self.n_filters, self.filter);
        let (history, wide) = (product(&[numbers, self.scalar()]), product(&[numbers, size_of::<f64>()]));
        let residuals = product(&[self.batch_size, self.sample.len(), self.scalar() + size_of::<f64>() + 1 + 12]);
        // Autocorrelations of every code at hand, of the size of the history.
        let working = [self.ocsc().working, product(&[self.batch_size.saturating_add(2), wide]), residuals];
        Memory { statistics: history, working: sum(&working) }
    }

    pub(super) fn scsc(&self) -> Memory {
        let (r, filter) = (self.n_base, self.filter);
        // The residual, autocorrelations of every filter's code and R maps at the positions of atoms, about as many as values.
        let residual = product(&[self.sample.len(), size_of::<f64>() + 1]);
        let windows = product(&[Aocdl::<f32>::history_len(self.n_filters, filter), size_of::<f64>()]);
        let atom = self.bytes(size_of::<Atom<f32>>(), size_of::<Atom<f64>>());
        let maps = product(&[self.batch_size, self.sample.pixels(), r, atom]) / 2;
        Memory {
            statistics: self.bytes(Lags::<f32>::bytes(r, filter), Lags::<f64>::bytes(r, filter)),
            working: sum(&[self.ocsc().working, residual, product(&[2, windows]), maps]),
        }
    }

    pub(super) fn ocsc_paper(&self) -> Memory {
        let (k, sample) = (self.n_filters, self.sample);
        Memory {
            statistics: self.bytes(Spectral::<f32>::bytes(k, sample), Spectral::<f64>::bytes(k, sample)),
            // The coder holds two arrays of all filters' maps, the statistics three and the update two.
            working: product(&[self.batch_size, sample.len(), 7 * k, self.scalar()]),
        }
    }

    pub(super) fn batch(&self) -> Memory {
        self.batch_with(self.codes())
    }

    pub(super) fn consensus(&self) -> Memory {
        let copies = product(&[self.n_samples, self.spectra()]);
        self.batch_with(sum(&[self.codes(), copies]))
    }

    pub(super) fn ffcsc(&self) -> Memory {
        // The factors of the smaller side, and the split data.
        let side = self.n_filters.min(self.n_samples);
        let factors = product(&[n_freqs(self.sample), side, side.next_multiple_of(8), 2, self.scalar()]);
        let split = product(&[self.n_samples, self.sample.len(), 5, self.scalar()]);
        self.batch_with(sum(&[self.codes(), factors, split]))
    }

    pub(super) fn deconvnet(&self) -> Memory {
        // Its codes are far from sparse: up to an eighth of all coefficients was seen. Learner, update and file hold them.
        let atom = self.bytes(size_of::<Atom<f32>>(), size_of::<Atom<f64>>());
        let codes = product(&[self.n_samples, self.n_filters, self.sample.pixels(), atom]) / 8;
        Memory {
            statistics: sum(&[self.kept(), codes]),
            working: sum(&[product(&[5, self.maps()]), self.kept(), product(&[2, codes])]),
        }
    }

    pub(super) fn ocdl1(&self) -> Memory {
        let side = product(&[self.n_filters, self.filter.pixels()]);
        Memory {
            statistics: product(&[side, side, self.scalar()]),
            working: sum(&[product(&[self.batch_size, 4, self.maps()]), self.lags()]),
        }
    }

    pub(super) fn ocdl2(&self) -> Memory {
        // A complex number and its column for every entry.
        let (k, entry) = (self.n_filters, 2 * self.scalar() + size_of::<u32>());
        Memory {
            statistics: sum(&[product(&[n_freqs(self.sample), k, k, entry]), self.spectra()]),
            working: sum(&[product(&[self.batch_size, 4, self.maps()]), product(&[5, self.spectra()])]),
        }
    }

    pub(super) fn osc(&self) -> Memory {
        let (k, filter) = (self.n_filters, self.filter.len());
        Memory {
            statistics: product(&[k, k + filter, self.scalar()]),
            working: product(&[self.batch_size, self.sample.pixels(), filter.saturating_add(40), self.scalar()]),
        }
    }
}
