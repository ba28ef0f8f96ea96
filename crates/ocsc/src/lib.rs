//! Online convolutional sparse coding.
mod code;
pub mod coder;
pub mod config;
mod convolve;
mod dictionary;
mod error;
mod fourier;
mod method;
pub mod metrics;
pub mod preprocess;
mod real;
mod sample;
mod simd;

pub use code::{Atom, Code};
pub use config::Config;
pub use dictionary::Dictionary;
pub use error::{Error, Result};
pub use fourier::{Fourier, Scratch};
pub use method::Method;
pub use real::Real;
pub use sample::{Sample, Samples, Shape};
