//! The whole program from outside: real files in temporary folders, the real binary, and its answers recomputed.

#[path = "../common/mod.rs"]
mod common;

mod codes;
mod demo;
#[cfg(unix)]
mod disk;
mod experiments;
mod formats;
mod help;
#[cfg(unix)]
mod interrupt;
mod learn;
mod log;
mod masks;
mod memory;
mod original;
mod refuse_data;
mod refuse_models;
mod refuse_usage;
mod select;
mod signals;
mod skip;
#[cfg(unix)]
mod stream;
