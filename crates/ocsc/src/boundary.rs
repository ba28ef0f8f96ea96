//! What lies outside a sample.

use crate::setting::{HasKind, Kind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What lies outside a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Boundary {
    /// The sample itself again: filters wrap around, as in the paper.
    #[default]
    Circular,
    /// Zeros, which are data: filters may stick out and are penalised for what they put there.
    Zero,
    /// Nothing: filters may stick out, and what they put there does not count.
    Free,
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Boundary::Circular => "circular",
            Boundary::Zero => "zero",
            Boundary::Free => "free",
        })
    }
}

impl HasKind for Boundary {
    const KIND: Kind = Kind::Choice(&["circular", "zero", "free"]);
}
