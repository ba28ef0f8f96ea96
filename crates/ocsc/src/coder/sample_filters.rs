//! Codes with filters that depend on the sample: any K filters in the span of R base filters.
//!
//! **Problem**, for one sample x and base filters B:
//!
//! ```text
//! min over W, z   1/2 || x - sum_k D_k * z_k ||^2 + beta ||z||_1,       D_k = sum_r B_r W(r,k),   ||D_k|| <= 1
//! ```
//!
//! It is not convex. From the filters of the dictionary, whose span is that of B (`span.rs`), two steps alternate: z for
//! these filters, by another coder, which starts from the last z; then sweeps of projected gradient steps on D_k within the span
//! (`spatial.rs`), on the non-zeros. Both lower the objective. It ends with codes, after [`ROUNDS`] rounds or when one has lowered the
//! objective by less than half the tolerance.
//!
//! **The certificate** is that of the code for the filters it is returned with ([`Coded::filters`]): no other code is better by more
//! than the gap with these filters. Nothing is proven of the filters. They are rounded from W ([`Mixing`]) before they are used, so
//! whoever has the dictionary and W has the very filters that the certificate is about.
//!
//! **Cost** of a round: a warm start of the other coder, and M per non-zero and sweep.
//!
//! Reference: Wang, Yao, Kwok, Ni, "Online convolutional sparse coding with sample-dependent dictionary", ICML 2018. It makes
//! accelerated proximal gradient steps on W and z at the same time.

use super::{Coded, Coder};
use crate::Boundary;
use crate::span::{Coordinates, Span};
use crate::spatial::{AtHand, Filters};
use crate::{Code, Dictionary, Mixing, Real, Result, Sample};

/// Rounds, at most.
const ROUNDS: usize = 6;
/// Sweeps over the filters per round.
const SWEEPS: usize = 3;

/// The filters of a sample, and how they are made of the dictionary's.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnFilters<T> {
    /// The filters.
    pub dictionary: Dictionary<T>,
    /// The combinations of the dictionary's filters that they are.
    pub mixing: Mixing,
}

/// The coder that finds filters and code of a sample.
pub struct SampleFilters<T: Real> {
    inner: Box<dyn Coder<T>>,
    start: Start<T>,
    n_base: usize,
    boundary: Boundary,
    tol: f64,
}

/// What depends on the dictionary alone.
struct Start<T: Real> {
    dictionary: Dictionary<T>,
    span: Span,
    coordinates: Coordinates,
    /// The filters that every sample starts from; none of a dictionary of zeros.
    filters: Option<OwnFilters<T>>,
}

impl<T: Real> Start<T> {
    fn new(dictionary: &Dictionary<T>, n_base: usize) -> Self {
        let span = Span::of(dictionary, n_base);
        let base: Vec<&[T]> = span.chosen().iter().map(|b| dictionary.filter(*b)).collect();
        let coordinates = Coordinates::new(dictionary.shape().len(), &base);
        let mut inside = dictionary.clone();
        span.confine(&mut inside);
        let mut start = Start { dictionary: dictionary.clone(), span, coordinates, filters: None };
        let taps: Vec<f64> = inside.data().iter().map(|d| d.f64()).collect();
        start.filters = start.own(&taps).ok();
        start
    }

    /// Returns filters in the span, (K, M), as they are made of the dictionary's.
    fn own(&self, taps: &[f64]) -> Result<OwnFilters<T>> {
        let filters = taps.chunks_exact(self.dictionary.shape().len());
        let weights = filters.flat_map(|filter| self.coordinates.of(filter)).collect();
        let mixing = Mixing::new(self.span.chosen().to_vec(), weights)?;
        Ok(OwnFilters { dictionary: mixing.filters(&self.dictionary)?, mixing })
    }
}

impl<T: Real> SampleFilters<T> {
    /// Makes a coder for filters of this rank from one for fixed filters.
    pub fn new(
        inner: Box<dyn Coder<T>>,
        dictionary: &Dictionary<T>,
        n_base: usize,
        tol: f64,
        boundary: Boundary,
    ) -> Self {
        SampleFilters { inner, start: Start::new(dictionary, n_base), n_base, boundary, tol }
    }

    /// Returns better filters for a code, from those it was made with.
    fn improve(&self, sample: &Sample<T>, code: &Code<T>, filters: &Dictionary<T>) -> Result<OwnFilters<T>> {
        let mut at_hand = [AtHand::new(sample, code, filters, self.boundary)?];
        let taps = filters.data().iter().map(|d| d.f64()).collect();
        let mut moving = Filters { shape: filters.shape(), taps, history: None, span: Some(&self.start.span) };
        for _ in 0..SWEEPS {
            moving.sweep(&mut at_hand);
        }
        self.start.own(&moving.taps)
    }
}

impl<T: Real> Coder<T> for SampleFilters<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        self.start = Start::new(dictionary, self.n_base);
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        let Some(mut filters) = self.start.filters.clone() else {
            // Zeros span nothing.
            self.inner.set_dictionary(&self.start.dictionary);
            return self.inner.code(sample, start);
        };
        self.inner.set_dictionary(&filters.dictionary);
        let mut coded = self.inner.code(sample, start)?;
        let mut iterations = coded.iterations;
        for _ in 0..ROUNDS {
            let improved = self.improve(sample, &coded.code, &filters.dictionary)?;
            self.inner.set_dictionary(&improved.dictionary);
            let next = self.inner.code(sample, Some(&coded.code))?;
            iterations += next.iterations;
            let (before, after) = (coded.total(), next.total());
            if after < before {
                (coded, filters) = (next, improved);
            }
            if after >= before * (1.0 - 0.5 * self.tol) {
                break;
            }
        }
        Ok(Coded { filters: Some(filters), iterations, ..coded })
    }

    /// For the filters that samples start from.
    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        self.inner.set_dictionary(self.start.filters.as_ref().map_or(&self.start.dictionary, |own| &own.dictionary));
        self.inner.beta_max(sample)
    }
}
