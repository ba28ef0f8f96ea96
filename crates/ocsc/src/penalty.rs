//! What codes pay: the one place to add a penalty.
//!
//! A coefficient z_j with the weight b_j (beta, times a weight of its filter, times one of its own) pays p(|z_j|):
//!
//! | name | p(a), a = \|z\| | slope p'(a) |
//! |---|---|---|
//! | `l1` | b a | b |
//! | `elastic:MU` | b a + MU a^2 / 2 | b, and MU a of the square |
//! | `log-sum:EPS` | b EPS log(1 + a / EPS) | b / (1 + a / EPS) |
//! | `mcp:GAMMA` | b a - a^2 / (2 GAMMA) up to a = GAMMA b, GAMMA b^2 / 2 beyond | max(0, b - a / GAMMA) |
//! | `lq:Q` | b^2 / Q ((1 + a / b)^Q - 1) | b (1 + a / b)^(Q - 1) |
//!
//! The last three are concave in a. All start with the slope b, so beta means the same for each of them: a coefficient that is
//! zero stays so while its filter's correlation with the residual is at most b. `lq` is shifted by b for that; with Q towards 0
//! it becomes `log-sum` with EPS = b.
//!
//! Log-sum: Candes, Wakin, Boyd, "Enhancing sparsity by reweighted l1 minimization", 2008. MCP: Zhang, "Nearly unbiased variable
//! selection under minimax concave penalty", 2010. The paper names log-sum in its future work.

use crate::setting::{HasKind, Kind};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Says what a code pays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Penalty {
    /// The l1 norm.
    #[default]
    L1,
    /// The l1 norm plus MU / 2 times the sum of squares.
    Elastic(f64),
    /// The logarithm of 1 + |z| / EPS.
    LogSum(f64),
    /// The minimax concave penalty, flat from GAMMA times the weight on.
    Mcp(f64),
    /// The power Q of the modulus, shifted.
    Lq(f64),
}

/// What is accepted, in words.
const FORMS: &str =
    "l1, elastic:MU (MU above 0), log-sum:EPS (EPS above 0), mcp:GAMMA (GAMMA above 1) or lq:Q (Q above 0 and below 1)";

impl Penalty {
    /// Returns whether the problem is convex, so that its minimum can be certified.
    pub fn is_convex(&self) -> bool {
        matches!(self, Penalty::L1 | Penalty::Elastic(_))
    }

    /// Returns the factor of the squares, mu; zero for all but the elastic net.
    pub fn ridge(&self) -> f64 {
        match self {
            Penalty::Elastic(mu) => *mu,
            _ => 0.0,
        }
    }

    /// Returns p(a) for the weight b, without the squares of the elastic net.
    pub fn value(&self, b: f64, a: f64) -> f64 {
        match *self {
            Penalty::L1 | Penalty::Elastic(_) => b * a,
            Penalty::LogSum(eps) => b * eps * (a / eps).ln_1p(),
            Penalty::Mcp(gamma) if a < gamma * b => b * a - 0.5 * a * a / gamma,
            Penalty::Mcp(gamma) => 0.5 * gamma * b * b,
            // (1 + u)^q - 1 without cancellation for small u
            Penalty::Lq(q) => b * b / q * (q * (a / b).ln_1p()).exp_m1(),
        }
    }

    /// Returns p'(a) for the weight b, without the squares of the elastic net: the weight of the l1 norm that majorises p there.
    pub fn slope(&self, b: f64, a: f64) -> f64 {
        match *self {
            Penalty::L1 | Penalty::Elastic(_) => b,
            Penalty::LogSum(eps) => b / (1.0 + a / eps),
            Penalty::Mcp(gamma) => (b - a / gamma).max(0.0),
            Penalty::Lq(q) => b * (1.0 + a / b).powf(q - 1.0),
        }
    }
}

impl FromStr for Penalty {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || Error::invalid("penalty", FORMS, format!("`{text}`"));
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, number.parse::<f64>().ok().filter(|n| n.is_finite())),
            None => (text, None),
        };
        match (name, number) {
            ("l1", None) if text == "l1" => Ok(Penalty::L1),
            ("elastic", Some(mu)) if mu > 0.0 => Ok(Penalty::Elastic(mu)),
            ("log-sum", Some(eps)) if eps > 0.0 => Ok(Penalty::LogSum(eps)),
            ("mcp", Some(gamma)) if gamma > 1.0 => Ok(Penalty::Mcp(gamma)),
            ("lq", Some(q)) if q > 0.0 && q < 1.0 => Ok(Penalty::Lq(q)),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Penalty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Penalty::L1 => f.write_str("l1"),
            Penalty::Elastic(mu) => write!(f, "elastic:{mu}"),
            Penalty::LogSum(eps) => write!(f, "log-sum:{eps}"),
            Penalty::Mcp(gamma) => write!(f, "mcp:{gamma}"),
            Penalty::Lq(q) => write!(f, "lq:{q}"),
        }
    }
}

impl TryFrom<String> for Penalty {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Penalty> for String {
    fn from(penalty: Penalty) -> String {
        penalty.to_string()
    }
}

impl HasKind for Penalty {
    const KIND: Kind = Kind::Text;
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Penalty; 5] =
        [Penalty::L1, Penalty::Elastic(0.3), Penalty::LogSum(0.2), Penalty::Mcp(2.5), Penalty::Lq(0.4)];

    #[test]
    fn the_slope_is_the_derivative_and_begins_at_the_weight() {
        for penalty in ALL {
            for b in [0.01, 0.7, 3.0] {
                assert_eq!(penalty.value(b, 0.0), 0.0, "{penalty}");
                assert!((penalty.slope(b, 0.0) - b).abs() < 1e-15 * b, "{penalty}");
                for a in [1e-3, 0.1, 0.9, 2.0, 30.0] {
                    let h = 1e-6 * a;
                    let difference = (penalty.value(b, a + h) - penalty.value(b, a - h)) / (2.0 * h);
                    let slope = penalty.slope(b, a);
                    assert!((difference - slope).abs() < 1e-6 * b, "{penalty} {b} {a}: {difference} {slope}");
                }
            }
        }
    }

    /// The tangent at any point lies above the penalty everywhere: what the reweighting loop relies on.
    #[test]
    fn tangents_majorise() {
        for penalty in ALL {
            for (at, to) in [(0.0, 1.0), (0.5, 0.1), (0.5, 7.0), (9.0, 0.0), (2.0, 2.5)] {
                let tangent = penalty.value(0.8, at) + penalty.slope(0.8, at) * (to - at);
                assert!(tangent >= penalty.value(0.8, to) - 1e-15, "{penalty} {at} {to}");
            }
        }
    }

    #[test]
    fn words_and_numbers() {
        for penalty in ALL {
            assert_eq!(penalty.to_string().parse::<Penalty>().unwrap(), penalty);
        }
        for wrong in
            ["", "l2", "l1:", "l1:1", "elastic", "elastic:0", "log-sum:-1", "mcp:1", "lq:1", "lq:nan", "mcp:inf"]
        {
            let error = wrong.parse::<Penalty>().unwrap_err().to_string();
            assert!(
                error.contains("expected l1, elastic:MU") && error.contains(&format!("found `{wrong}`")),
                "{error}"
            );
        }
    }
}
