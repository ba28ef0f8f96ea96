//! The live page of a run: filters, curves and samples while they change, in a browser.
//!
//! Learning never waits for whoever looks. The observer of a run has a [`Camera`], which notes a few numbers of every step. If
//! somebody looks, and at most about twice a second, it leaves a picture of the run in a slot, where the latest wins. A thread of
//! its own, the `server`, takes it from there, draws it and sends it to every client that has room; who is slow misses pictures.
//! The next picture waits for a hundred times as long as the last one took, so that all of it takes about a hundredth of one
//! processor.
//!
//! The page is one text with its style and script in it (`page.rs` and the folder `page`). Nothing is read from disk for it.
//! [`written`] gives the same page with its numbers in it, as a file.
//!
//! `guard.rs` says who is let in: on a loopback address everybody who names it in the address bar, and elsewhere who has the token.
//! Only the two buttons take anything but GET, and always with the token.

// What opens a page stays in place without the server, and says that there is none.
#![cfg_attr(not(feature = "server"), allow(dead_code, reason = "the server alone uses it"))]

mod board;
mod camera;
mod curve;
mod draw;
mod frame;
mod guard;
mod listen;
mod live;
mod page;
#[cfg(feature = "server")]
mod server;

pub use camera::Camera;
pub use curve::{Curve, TestPoint};
pub use draw::{draw_filters, draw_sample};
pub use frame::{About, CodeRow, Filters, Frame, Now, SampleView};
pub use listen::{Listen, Port};
pub use live::Live;
pub use page::written;

/// Says why there can be no live page.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub(crate) String);
