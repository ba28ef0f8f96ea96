//! Online convolutional sparse coding.
//!
//! # The problem
//!
//! Learn K small filters from a stream of samples, and represent each sample as a sum of the filters convolved with
//! sparse maps:
//!
//! ```text
//! min over D, {Z_i}   (1/N) sum_i  1/2 || x_i - sum_k D_k * Z_ik ||^2 + beta ||Z_i||_1     with ||D_k||_2 <= 1
//! ```
//!
//! following Wang, Yao, Kwok, Ni, "Scalable Online Convolutional Sparse Coding", IEEE TIP 27(10), 2018.
//!
//! # The data flow
//!
//! ```text
//! Samples -> preprocess -> coder -> Code -> statistics (absorb) -> update -> Dictionary -> coder ...
//! train -> observer (progress, log)         train -> checkpoint -> resume
//! ```
//!
//! A method is a [`coder`], an [`update`] with its [`statistics`], and a schedule, so it is one row of this table:
//!
//! | method | coder | statistics and update | schedule | cost of one pass / memory |
//! |---|---|---|---|---|
//! | [`Method::Ocsc`] (default) | [`coder::ActiveSet`] | [`statistics::Lags`], [`update::BlockDescent`] | [`Online`] | about 5 N K P M, and K^2 M^2 per update / K^2 (2m-1)^2 |
//! | [`Method::OcscPaper`] | [`coder::Admm`] | [`statistics::Spectral`], [`update::OcscPaper`] | [`Online`] | N K^2 P + N K P log P / K^2 P |
//! | [`Method::Deconvnet`] | [`coder::Deconvnet`] | [`update::Deconvnet`] | [`Batch`] | N K P M / samples and non-zeros |
//! | [`Method::Fcsc`] | [`coder::Admm`] | [`statistics::Codes`], [`update::Fcsc`] | [`Batch`] | N K^2 P + K^3 P / N K P |
//! | [`Method::Ffcsc`] | [`coder::Masked`] | [`statistics::Codes`], [`update::Ffcsc`] | [`Batch`] | min(N, K)^2 (N + K) P / N K P |
//! | [`Method::Cbpdn`] | [`coder::Admm`] | [`statistics::Codes`], [`update::Cbpdn`] | [`Batch`] | N^2 K P / N K P |
//! | [`Method::Consensus`] | [`coder::Admm`] | [`statistics::Codes`], [`update::Consensus`] | [`Batch`] | N K P / 2 N K P |
//! | [`Method::Ocdl1`] | [`coder::Fista`], spatial | [`update::Ocdl1`] | [`Online`] | N (K P M + K^2 M^2) / K^2 M^2 |
//! | [`Method::Ocdl2`] | [`coder::Fista`], frequency | [`update::Ocdl2`] | [`Online`] | N K^2 P / K^2 P, 2-3 times |
//! | [`Method::Sgd`] | [`coder::ActiveSet`] | [`update::Sgd`] | [`Online`] | as `ocsc`, and M per non-zero / the dictionary |
//! | [`Method::Aocdl`] | [`coder::ActiveSet`] | [`update::Aocdl`] | [`Online`] | as `ocsc`, and K M^2 per update / K (2m-1)^2 |
//! | [`Method::Scsc`] | [`coder::SampleFilters`] | [`statistics::Lags`], [`update::Scsc`] | [`Online`] | a few times `ocsc` / R^2 (2m-1)^2 |
//! | [`Method::Osc`] | lasso on patches | [`learner::Osc`] | online | N P K M / K^2 + K M, not convolutional |
//!
//! m is the filter's side, M its area, P the pixels, K the filters, R the base filters, N the samples; iterations are not counted. [`memory`]
//! states in advance what a method will hold. [`Learner`] is what they have in common, whatever the schedule. Several processes
//! learn one dictionary with [`Method::Ocsc`] as a team ([`comm`]).
//!
//! Read [`learner`], [`coder::Admm`], [`statistics::Spectral`], [`update::OcscPaper`] and [`train`] in this order, beside the
//! paper; [`notation`] maps its symbols to ours and says where we differ from the print. Then [`coder::ActiveSet`],
//! [`statistics::Lags`] and [`update::BlockDescent`] show how the same problem is solved on the non-zeros only.
//!
//! # Example
//!
//! ```
//! use ocsc::{Config, Online, Sample, Shape};
//!
//! // Gray images of 16x16: anything finite will do.
//! let image = |phase: f64| {
//!     let data = (0..256).map(|i| (phase + (i % 16) as f64).sin() + (phase * (i / 16) as f64).cos()).collect();
//!     Sample::new(Shape::image(16, 16), data)
//! };
//! let config = Config { n_filters: 4, filter_shape: vec![5, 5], beta: 0.5, ..Config::default() };
//! let mut learner = Online::<f64>::new(config, 1)?;
//! for t in 0..3 {
//!     let step = learner.partial_fit(&image(t as f64)?)?;
//!     assert!(step.gap() <= 0.01); // every code is certified
//! }
//! assert!(learner.dictionary().norms().iter().all(|norm| *norm <= 1.0));
//! # Ok::<(), ocsc::Error>(())
//! ```
//!
//! # Features
//!
//! `ndarray` converts samples and dictionaries to and from arrays of the crate of this name, without copies where possible.

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod array;
mod axes;
pub mod beta;
mod boundary;
pub mod checkpoint;
mod code;
pub mod coder;
pub mod comm;
mod conjugate_gradients;
pub mod constraint;
#[cfg(feature = "ndarray")]
mod conversions;
mod convolve;
pub mod dead_leaves;
mod dictionary;
mod digest;
mod dot;
mod error;
pub mod events;
pub mod file;
pub mod fingerprint;
mod fourier;
pub mod learner;
mod loss;
pub mod memory;
pub mod method;
pub mod metrics;
mod mixing;
pub mod monitor;
#[doc = include_str!("../NOTATION.md")]
pub mod notation {}
mod penalty;
pub mod preprocess;
mod random;
mod real;
pub mod replace;
pub mod restore;
pub mod run;
mod sample;
pub mod setting;
pub mod settings;
mod sharing;
pub mod simd;
mod span;
mod sparsity;
mod spatial;
mod state;
pub mod statistics;
pub mod synthetic_signals;
mod system;
pub mod text;
pub mod train;
pub mod tune;
pub mod update;
pub mod verify;

/// Reaches inside for benchmarks, and for tests that must be programs of their own: one that counts allocations, and those that
/// share the large helpers of `tests/all`. No part of the interface.
#[doc(hidden)]
pub mod testing {
    pub use crate::fourier::{Fourier, Scratch};
}

pub use axes::Axes;
pub use boundary::Boundary;
pub use code::{Atom, Code};
pub use dictionary::{Dictionary, FiltersLast, filters_last};
pub use error::{Error, Result};
pub(crate) use fourier::{Fourier, Scratch};
pub use learner::{Batch, Learner, Online};
pub use loss::Loss;
pub use method::Method;
pub use mixing::Mixing;
pub use penalty::Penalty;
pub use real::{Dtype, PerScalar, Real};
pub use sample::{Sample, Samples, Shape};
pub use settings::Config;
pub use sparsity::Sparsity;
pub use state::State;
