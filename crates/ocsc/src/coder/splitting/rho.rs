//! The penalty rho of the ADMM coders: where it starts, and how it is rebalanced.

use crate::{Real, Sample};

/// This many iterations are made between two looks at rho.
pub(in crate::coder) const BALANCE_EVERY: usize = 10;
/// Rebalancing moves rho by at most this factor at once, and not at all for smaller imbalances than the second.
const BALANCE_LIMITS: (f64, f64) = (10.0, 1.2);

/// Returns 50 beta / max|x|, which scales with the data, so that the number of iterations does not depend on their unit.
pub(in crate::coder) fn default_rho<T: Real>(sample: &Sample<T>, beta: f64) -> f64 {
    let peak = sample.data().iter().fold(0.0_f64, |m, v| m.max(v.f64().abs()));
    if peak > 0.0 { 50.0 * beta / peak } else { 1.0 }
}

/// Returns the factor on rho that brings the residuals together: the root of their ratio, within limits.
pub(in crate::coder) fn balance([primal, dual]: [f64; 2]) -> f64 {
    let (most, least) = BALANCE_LIMITS;
    let factor = (primal / dual).sqrt().clamp(1.0 / most, most);
    if factor.is_finite() && (factor > least || factor < 1.0 / least) { factor } else { 1.0 }
}
