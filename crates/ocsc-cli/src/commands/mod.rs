//! The commands, one file each. `learn`, `code` and `evaluate` can be run by several processes.

mod belonging;
pub mod code;
pub(crate) mod compare;
pub mod evaluate;
pub(crate) mod events;
pub(crate) mod info;
pub mod learn;
pub(crate) mod reconstruct;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod restore;
pub(crate) mod show;
pub(crate) mod tune;
pub(crate) mod verify;
pub(crate) mod view;
