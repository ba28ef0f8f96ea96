//! The whole program from outside: real files in temporary folders, the real binary, and its answers recomputed.

#[path = "../common/mod.rs"]
mod common;

mod beta;
#[cfg(target_os = "linux")]
mod children;
mod codes;
mod demo;
#[cfg(unix)]
mod disk;
mod events;
mod everyday;
#[cfg(unix)]
mod existing;
mod experiments;
mod filters;
mod formats;
#[cfg(unix)]
mod guard;
mod help;
mod hostile;
mod integrity;
#[cfg(unix)]
mod interrupt;
mod learn;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(unix)]
mod live;
#[cfg(unix)]
mod live_browser;
#[cfg(unix)]
mod lock;
mod log;
mod masks;
mod memory;
mod original;
mod other_data;
mod pages;
mod penalty;
mod refuse_data;
mod refuse_models;
mod refuse_usage;
#[cfg(unix)]
mod replace;
mod restore;
mod rows;
mod rust_page;
mod select;
mod signals;
mod skip;
#[cfg(unix)]
mod stream;
mod tile;
mod verify;
#[cfg(unix)]
mod words;
