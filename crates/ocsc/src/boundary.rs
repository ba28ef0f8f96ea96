//! What lies outside a sample.

use crate::setting::{HasKind, Kind};
use serde::{Deserialize, Serialize};

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

impl HasKind for Boundary {
    const KIND: Kind = Kind::Choice(&["circular", "zero", "free"]);
}
