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
//! than the gap with these filters. Nothing is proven of the filters.
//!
//! **Cost** of a round: a warm start of the other coder, and M per non-zero and sweep.
//!
//! Reference: Wang, Yao, Kwok, Ni, "Online convolutional sparse coding with sample-dependent dictionary", ICML 2018. It makes
//! accelerated proximal gradient steps on W and z at the same time.

use super::{Coded, Coder};
use crate::Boundary;
use crate::span::Span;
use crate::spatial::{AtHand, Filters};
use crate::{Code, Dictionary, Real, Result, Sample};

/// Rounds, at most.
const ROUNDS: usize = 6;
/// Sweeps over the filters per round.
const SWEEPS: usize = 3;

/// The coder that finds filters and code of a sample.
pub struct SampleFilters<T: Real> {
    inner: Box<dyn Coder<T>>,
    dictionary: Dictionary<T>,
    span: Span,
    n_base: usize,
    boundary: Boundary,
    tol: f64,
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
        let (span, dictionary) = confined(dictionary, n_base);
        SampleFilters { inner, dictionary, span, n_base, boundary, tol }
    }

    /// Returns better filters for a code, from those it was made with.
    fn improve(&self, sample: &Sample<T>, code: &Code<T>, filters: &Dictionary<T>) -> Result<Dictionary<T>> {
        let mut at_hand = [AtHand::new(sample, code, filters, self.boundary)?];
        let taps = filters.data().iter().map(|d| d.f64()).collect();
        let mut moving = Filters { shape: filters.shape(), taps, history: None, span: Some(&self.span) };
        for _ in 0..SWEEPS {
            moving.sweep(&mut at_hand);
        }
        let mut improved = filters.clone();
        improved.data_mut().iter_mut().zip(moving.taps).for_each(|(d, new)| *d = T::of(new));
        improved.project();
        Ok(improved)
    }
}

/// The span of R filters of a dictionary, and all of them in it.
fn confined<T: Real>(dictionary: &Dictionary<T>, n_base: usize) -> (Span, Dictionary<T>) {
    let (span, mut inside) = (Span::of(dictionary, n_base), dictionary.clone());
    span.confine(&mut inside);
    (span, inside)
}

impl<T: Real> Coder<T> for SampleFilters<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        (self.span, self.dictionary) = confined(dictionary, self.n_base);
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        let mut filters = self.dictionary.clone();
        self.inner.set_dictionary(&filters);
        let mut coded = self.inner.code(sample, start)?;
        let mut iterations = coded.iterations;
        for _ in 0..ROUNDS {
            let improved = self.improve(sample, &coded.code, &filters)?;
            self.inner.set_dictionary(&improved);
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
        self.inner.set_dictionary(&self.dictionary);
        self.inner.beta_max(sample)
    }
}
