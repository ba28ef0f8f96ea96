//! Sums that do not depend on their order: of whole numbers, in units so small that nothing is lost.
//!
//! Floating-point sums differ in their last bits by the order of their terms. A coder that stops at a tolerance takes one
//! step more or less for the sake of one bit, so after a few steps runs with different numbers of members would have
//! dictionaries that differ by as much as the tolerance allows.

/// Counts in whole numbers of a unit, in which a given number of terms of at most a given magnitude can be summed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exact {
    unit: f64,
}

impl Exact {
    /// The unit is a power of two, about 2^62 / `terms` times smaller than `largest`.
    pub(crate) fn new(largest: f64, terms: usize) -> Self {
        let bits = |x: f64| if x > 0.0 { x.log2().ceil() as i32 + 1 } else { 0 };
        let exponent = bits(largest) + bits(terms as f64) - 62;
        Exact { unit: 2_f64.powi(exponent.clamp(-1000, 1000)) }
    }

    /// The number of units, rounded.
    pub(crate) fn units(self, value: f64) -> i64 {
        (value / self.unit).round() as i64
    }

    /// Returns the value of a number of units.
    pub(crate) fn value(self, units: i64) -> f64 {
        units as f64 * self.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_any_order_are_the_same_and_right() {
        let values: Vec<f64> = (0..1000).map(|i| (1.7 * (i * i) as f64).sin() * 10_f64.powi(i % 9 - 4)).collect();
        let exact = Exact::new(1e4, values.len());
        let sum = |order: &mut dyn Iterator<Item = &f64>| order.map(|v| exact.units(*v)).sum::<i64>();
        let forward = sum(&mut values.iter());
        assert_eq!(forward, sum(&mut values.iter().rev()));
        let (float, magnitude): (f64, f64) = (values.iter().sum(), values.iter().map(|v| v.abs()).sum());
        assert!((exact.value(forward) - float).abs() < 1e-13 * magnitude, "{float}");
        // The largest terms just fit.
        for (largest, terms) in [(1e300, 3), (1e-200, 1 << 20), (0.0, 0), (1.0, 1)] {
            let exact = Exact::new(largest, terms);
            let units = exact.units(largest);
            assert!(units.checked_mul(terms.max(1) as i64).is_some(), "{largest:e} {terms}");
            assert!((exact.value(units) - largest).abs() <= 1e-12 * largest);
        }
    }
}
