//! Statistics: what the dictionary update needs to know of all samples and codes so far.
//!
//! Statistics know codes and samples, but neither coders nor updates.

mod lags;
mod spectral;
mod window;

pub use lags::Lags;
pub use spectral::Spectral;
pub(crate) use spectral::at;
pub(crate) use window::{LANES, Multiply, Window};
