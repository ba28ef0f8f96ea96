//! The method table: each method is a coder, an update with its statistics, and a schedule.

use serde::{Deserialize, Serialize};

/// A row of the method table (see the crate's front page).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The fast one: active-set coder, lag statistics, block coordinate descent, online.
    #[default]
    Ocsc,
    /// The paper's: ADMM coder, {C^p, b^p} with Sherman-Morrison, ADMM update, online.
    OcscPaper,
}
