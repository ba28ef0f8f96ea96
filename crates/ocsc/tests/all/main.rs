//! The library from outside. One binary, because every further one costs a minute of linking and monomorphisation.

mod common;

mod active_set;
mod block_descent;
mod bounded;
mod certificate;
mod checkpoint;
mod coder;
mod comm;
mod errors;
mod fast;
mod fourier;
mod integrity;
mod lags;
mod mask;
mod methods;
mod metrics;
mod preprocess;
#[cfg(unix)]
mod replace;
mod reseed;
mod statistics;
mod stop;
mod train;
mod update;
