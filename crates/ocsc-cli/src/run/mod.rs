//! What the commands share: [`begin`] puts a run together, [`dataset`] opens data, [`given`] reads the dictionary of `--init`,
//! [`tile`] cuts few and large samples to pieces, [`pipe`] reads frames from standard input, [`model`] prepares samples as a
//! model wants them, [`observer`] watches a run with its [`log`] of [`record`]s, [`fingerprint`] compares a checkpoint's data with
//! the call's, and [`outputs`], [`lock`] and [`folder`] keep files from being lost.

pub(crate) mod begin;
pub(crate) mod dataset;
pub(crate) mod fingerprint;
pub(crate) mod folder;
mod given;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod observer;
pub(crate) mod original;
pub(crate) mod outputs;
pub(crate) mod pairing;
pub(crate) mod pipe;
pub(crate) mod record;
pub(crate) mod reference;
pub(crate) mod settings;
pub(crate) mod sparsity;
mod tile;
