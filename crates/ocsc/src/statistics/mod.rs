//! Statistics: what the dictionary update needs to know of all samples and codes so far.
//!
//! Statistics know codes and samples, but neither coders nor updates.

mod codes;
mod filter_order;
mod lags;
mod pairs;
pub(crate) mod plausible;
mod shift;
mod spectral;
mod two_blocks;
mod window;

pub use codes::Codes;
pub(crate) use filter_order::{BLOCK, Spectra, TILE, at, axpy, gather, inner, n_freqs, row_len};
pub use lags::{Addend, Lags};
pub(crate) use shift::{moved, moved_rows};
pub use spectral::Spectral;
pub(crate) use two_blocks::MultiplyTwo;
pub(crate) use window::{LANES, Multiply, WIDEST, Window};
