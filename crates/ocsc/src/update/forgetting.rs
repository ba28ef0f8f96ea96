//! How statistics forget: what the past weighs when the samples of an update come.
//!
//! With the samples of update t the statistics become
//!
//! ```text
//! S_t = w_t S_(t-1) + (what update t brings)
//! w_t = (1 - 1/t)^(e - 1)       polynomial, e from 1 up: e = 1 is plain averaging, and the whole past fades ever more slowly
//! w_t = w                       constant, 0 < w < 1: an update that is n updates old weighs w^n, whatever t
//! ```
//!
//! The polynomial is for samples of one distribution, whose average converges. The constant is for streams that drift: it
//! remembers about 1 / (1 - w) updates for ever, so the dictionary follows as fast after a million samples as after a thousand,
//! and never comes to rest.
//!
//! The more samples an update has, the fewer updates there are, and the sooner the first ones should fade. By default e is
//! 3 + log2(samples per update), chosen on CIFAR-10 images that were held out of learning.
//!
//! In files, flags and Python the polynomial is its exponent, a number; the constant is the text `constant:0.99`, the default `auto`.

use crate::setting::{HasKind, Kind};
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// What precedes the weight in the text of a constant.
const CONSTANT: &str = "constant:";
/// The text of the default.
const AUTO: &str = "auto";

/// Says how much of the past each update keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Forgetting {
    /// Polynomial, with an exponent that follows the samples per update: 3 + log2 of them.
    Auto,
    /// The past weighs (1 - 1/t)^(e - 1) at update t; this is e, from 1 up.
    Polynomial(f64),
    /// The past weighs this at every update, between 0 and 1.
    Constant(f64),
}

/// The default's exponent for updates of one sample each.
const ALONE: f64 = 3.0;

impl Forgetting {
    /// Returns how updates of so many samples each forget.
    pub(crate) fn of_batches(self, batch_size: usize) -> Self {
        match self {
            Forgetting::Auto => Forgetting::Polynomial(ALONE + (batch_size.max(1) as f64).log2()),
            given => given,
        }
    }

    /// Returns what the statistics of the updates before are multiplied by when update `t` begins, t counting from 1.
    pub fn past(self, t: usize) -> f64 {
        match self {
            Forgetting::Auto => self.of_batches(1).past(t),
            Forgetting::Polynomial(exponent) => (1.0 - 1.0 / t as f64).powf(exponent - 1.0),
            Forgetting::Constant(weight) => weight,
        }
    }

    /// Returns what the mean over the updates before weighs in the mean at update `t`; the newest update has the rest.
    pub(crate) fn past_of_mean(self, t: usize) -> f64 {
        match self {
            _ if t <= 1 => 0.0,
            Forgetting::Auto => self.of_batches(1).past_of_mean(t),
            Forgetting::Polynomial(exponent) => (1.0 - 1.0 / t as f64).powf(exponent),
            Forgetting::Constant(weight) => weight,
        }
    }

    /// Returns about which part of the weight of `t` updates the newest `age` of them have: exactly with a constant, and with
    /// plain averaging.
    pub(crate) fn share(self, age: usize, t: usize) -> f64 {
        match self {
            Forgetting::Auto | Forgetting::Polynomial(_) => age as f64 / t as f64,
            Forgetting::Constant(weight) => (1.0 - weight.powf(age as f64)) / (1.0 - weight.powf(t as f64)),
        }
    }
}

impl From<f64> for Forgetting {
    fn from(exponent: f64) -> Self {
        Forgetting::Polynomial(exponent)
    }
}

impl HasKind for Forgetting {
    const KIND: Kind = Kind::NumberOrText;

    fn numbers(&self) -> &[f64] {
        match self {
            Forgetting::Polynomial(exponent) => std::slice::from_ref(exponent),
            // Its range is checked when it is made.
            Forgetting::Auto | Forgetting::Constant(_) => &[],
        }
    }
}

impl fmt::Display for Forgetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Forgetting::Auto => f.write_str(AUTO),
            Forgetting::Polynomial(exponent) => write!(f, "{exponent}"),
            Forgetting::Constant(weight) => write!(f, "{CONSTANT}{weight}"),
        }
    }
}

impl FromStr for Forgetting {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        if text == AUTO {
            return Ok(Forgetting::Auto);
        }
        let refused = || crate::Error::invalid("forgetting", EXPECTED, format!("`{text}`"));
        match text.strip_prefix(CONSTANT) {
            Some(weight) => match weight.parse::<f64>() {
                Ok(weight) if weight > 0.0 && weight < 1.0 => Ok(Forgetting::Constant(weight)),
                _ => Err(refused()),
            },
            None => match text.parse::<f64>() {
                Ok(exponent) if exponent.is_finite() => Ok(Forgetting::Polynomial(exponent)),
                _ => Err(refused()),
            },
        }
    }
}

/// What is accepted, in words.
const EXPECTED: &str = "auto, an exponent from 1 up, or constant:WEIGHT with a weight above 0 and below 1";

impl Serialize for Forgetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Forgetting::Polynomial(exponent) => serializer.serialize_f64(*exponent),
            Forgetting::Auto | Forgetting::Constant(_) => serializer.serialize_str(&self.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Forgetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;

        impl Visitor<'_> for Read {
            type Value = Forgetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_f64<E: de::Error>(self, exponent: f64) -> Result<Forgetting, E> {
                Ok(Forgetting::Polynomial(exponent))
            }

            fn visit_u64<E: de::Error>(self, exponent: u64) -> Result<Forgetting, E> {
                Ok(Forgetting::Polynomial(exponent as f64))
            }

            fn visit_i64<E: de::Error>(self, exponent: i64) -> Result<Forgetting, E> {
                Ok(Forgetting::Polynomial(exponent as f64))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Forgetting, E> {
                text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_stay_numbers_and_constants_are_texts() {
        for (value, expected) in [
            (json!(3.0), Forgetting::Polynomial(3.0)),
            (json!(3), Forgetting::Polynomial(3.0)),
            (json!("1.5"), Forgetting::Polynomial(1.5)),
            (json!("constant:0.99"), Forgetting::Constant(0.99)),
            (json!("auto"), Forgetting::Auto),
        ] {
            assert_eq!(serde_json::from_value::<Forgetting>(value).unwrap(), expected);
        }
        assert_eq!(serde_json::to_string(&Forgetting::Polynomial(3.0)).unwrap(), "3.0");
        assert_eq!(serde_json::to_string(&Forgetting::Constant(0.99)).unwrap(), "\"constant:0.99\"");
        for text in
            ["constant:1", "constant:0", "constant:-0.5", "constant:nan", "constant:", "constant", "often", "nan"]
        {
            let message = serde_json::from_value::<Forgetting>(json!(text)).unwrap_err().to_string();
            assert!(message.ends_with(EXPECTED), "{message}");
        }
        assert!(serde_json::from_value::<Forgetting>(json!([1.0])).is_err());
    }

    #[test]
    fn the_default_follows_the_samples_of_an_update() {
        assert_eq!(Forgetting::Auto.of_batches(1), Forgetting::Polynomial(3.0));
        assert_eq!(Forgetting::Auto.of_batches(16), Forgetting::Polynomial(7.0));
        assert_eq!(Forgetting::Polynomial(2.0).of_batches(16), Forgetting::Polynomial(2.0));
        for t in [1, 2, 50] {
            assert_eq!(Forgetting::Auto.past(t), Forgetting::Polynomial(3.0).past(t));
            assert_eq!(Forgetting::Auto.past_of_mean(t), Forgetting::Polynomial(3.0).past_of_mean(t));
        }
    }

    /// Both against the sums of the weights of all updates.
    #[test]
    fn shares_are_those_of_the_weights() {
        for forgetting in [Forgetting::Polynomial(1.0), Forgetting::Constant(0.9)] {
            for (age, t) in [(1, 1), (10, 40), (39, 40), (40, 40)] {
                let weight = |s: usize| (s + 1..=t).map(|u| forgetting.past(u)).product::<f64>();
                let (newest, all): (f64, f64) = ((t - age + 1..=t).map(weight).sum(), (1..=t).map(weight).sum());
                assert!((forgetting.share(age, t) - newest / all).abs() < 1e-12);
            }
        }
    }
}
