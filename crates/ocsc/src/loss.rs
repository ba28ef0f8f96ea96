//! What a difference between a sample and its reconstruction costs: the data term, sum_i W_i rho(r_i) with r = x - D z.
//!
//! | name | rho(r) | the influence psi = rho' |
//! |---|---|---|
//! | `l2` | r^2 / 2 | r |
//! | `huber:DELTA` | r^2 / 2 up to \|r\| = DELTA, DELTA \|r\| - DELTA^2 / 2 beyond | r, at most DELTA |
//! | `l1` | \|r\| | the sign of r |
//!
//! The last two bound what one value can do: salt and pepper, artefacts. Both are a least squares problem with an explicit
//! outlier o_i that pays for itself (the Huber function is the Moreau envelope of the modulus):
//!
//! ```text
//! rho(r) = min over o of   (r - o)^2 / (2 h) + c |o|         o = what r exceeds h c by
//! ```
//!
//! with h = 1, c = DELTA for Huber. For `l1`, c = 1 and h is a smoothing that the coder makes as small as its tolerance asks
//! for: the modulus itself is h = 0, from which the smooth function differs by h / 2 at most.
//!
//! Huber, "Robust estimation of a location parameter", 1964.

use crate::setting::{HasKind, Kind};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names a data term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Loss {
    /// Half the squares.
    #[default]
    L2,
    /// Half the squares of small differences, the modulus of those beyond DELTA.
    Huber(f64),
    /// The modulus.
    L1,
}

impl Loss {
    /// Returns rho(r).
    pub fn value(&self, r: f64) -> f64 {
        let a = r.abs();
        match *self {
            Loss::L2 => 0.5 * r * r,
            Loss::Huber(delta) if a <= delta => 0.5 * r * r,
            Loss::Huber(delta) => delta * (a - 0.5 * delta),
            Loss::L1 => a,
        }
    }

    /// Returns the weight psi(r) / r by which a value counts beside one that fits: 1, and less for outliers. For `l1`, whose
    /// weight has no such unit, `unit` is the difference that counts fully.
    pub fn weight(&self, r: f64, unit: f64) -> f64 {
        match *self {
            Loss::L2 => 1.0,
            Loss::Huber(delta) => delta / r.abs().max(delta),
            Loss::L1 => unit / r.abs().max(unit),
        }
    }

    /// Returns psi(r), what a value pulls with.
    pub fn influence(&self, r: f64) -> f64 {
        match *self {
            Loss::L2 => r,
            Loss::Huber(delta) => r.clamp(-delta, delta),
            Loss::L1 if r == 0.0 => 0.0,
            Loss::L1 => r.signum(),
        }
    }
}

impl FromStr for Loss {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let delta = text.strip_prefix("huber:").and_then(|delta| delta.parse::<f64>().ok());
        match (text, delta) {
            ("l2", _) => Ok(Loss::L2),
            ("l1", _) => Ok(Loss::L1),
            (_, Some(delta)) if delta > 0.0 && delta.is_finite() => Ok(Loss::Huber(delta)),
            _ => Err(Error::invalid("loss", "l2, l1 or huber:DELTA (DELTA above 0)", format!("`{text}`"))),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::L2 => f.write_str("l2"),
            Loss::Huber(delta) => write!(f, "huber:{delta}"),
            Loss::L1 => f.write_str("l1"),
        }
    }
}

impl TryFrom<String> for Loss {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Loss> for String {
    fn from(loss: Loss) -> String {
        loss.to_string()
    }
}

impl HasKind for Loss {
    const KIND: Kind = Kind::Text;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_influence_is_the_derivative_and_the_weight_its_share() {
        for loss in [Loss::L2, Loss::Huber(0.5), Loss::L1] {
            for r in [-3.0, -0.5001, -0.2, 0.1, 0.4999, 2.0] {
                let h = 1e-7;
                let difference = (loss.value(r + h) - loss.value(r - h)) / (2.0 * h);
                assert!((difference - loss.influence(r)).abs() < 1e-6, "{loss} {r}");
                if loss != Loss::L1 {
                    assert!((loss.weight(r, 1.0) * r - loss.influence(r)).abs() < 1e-15, "{loss} {r}");
                }
            }
        }
    }

    #[test]
    fn words_and_numbers() {
        for loss in [Loss::L2, Loss::Huber(0.25), Loss::L1] {
            assert_eq!(loss.to_string().parse::<Loss>().unwrap(), loss);
        }
        for wrong in ["", "huber", "huber:", "huber:0", "huber:-1", "huber:inf", "l3"] {
            let error = wrong.parse::<Loss>().unwrap_err().to_string();
            assert!(error.contains("expected l2, l1 or huber:DELTA"), "{error}");
        }
    }
}
