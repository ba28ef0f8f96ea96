//! Online convolutional sparse coding.
mod code;
mod dictionary;
mod error;
pub mod metrics;
pub mod preprocess;
mod real;
mod sample;

pub use code::{Atom, Code};
pub use dictionary::Dictionary;
pub use error::{Error, Result};
pub use real::Real;
pub use sample::{Sample, Samples, Shape};
