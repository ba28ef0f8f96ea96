//! The library from outside. One binary, because every further one costs a minute of linking and monomorphisation.

mod common;

mod active_set;
mod block_descent;
mod checkpoint;
mod coder;
mod errors;
mod fast;
mod fourier;
mod lags;
mod mask;
mod methods;
mod metrics;
mod preprocess;
mod reseed;
mod statistics;
mod team;
mod train;
mod update;
