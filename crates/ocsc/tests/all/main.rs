//! The library from outside. One binary, because every further one costs a minute of linking and monomorphisation.

mod common;

mod active_set;
mod block_descent;
mod bounded;
mod certificate;
mod checkpoint;
mod coder;
mod comm;
mod constraint;
mod errors;
mod events;
mod fast;
mod fourier;
mod history;
mod integrity;
mod joint;
mod lags;
mod mask;
mod methods;
mod metrics;
mod penalty;
mod preprocess;
mod recenter;
#[cfg(unix)]
mod replace;
mod reseed;
mod statistics;
mod stop;
mod train;
mod tune;
mod update;
