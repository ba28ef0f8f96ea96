//! Projected gradient steps on a quadratic function of the dictionary, with momentum (FISTA) or without.
//!
//! ```text
//! min over D   1/2 <d, A d> - <b, d>       with ||D_k||_2 <= 1
//! y = d + m (d - d_old),      d_new = project( y - (A y - b) / L )
//! ```
//!
//! A y follows from A d and A d_old, so an iteration multiplies by A once. **The step** 1/L is found by backtracking: L grows
//! until <s, A s> <= L ||s||^2 for the step s = d_new - y, which A d_new tells. **Momentum** starts anew when it points
//! uphill. **It ends** when ||d_new - y|| is small relative to ||D||: at stationary points it is zero.
//!
//! Reference: Beck, Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems", SIAM J.
//! Imaging Sciences 2(1), 2009.

use super::Updated;
use crate::update::UpdateConfig;
use crate::{Dictionary, Real};

/// A symmetric positive semidefinite matrix on dictionaries.
pub(super) trait Quadratic<T: Real> {
    /// out <- A d, both (K, C, M).
    fn multiply(&mut self, d: &[T], out: &mut [T]);
}

/// Rounding may make a step look steeper than it is by this much.
const SLACK: f64 = 1e-3;

/// Minimises from the dictionary on; L is the bound that the last update ended with, or zero.
pub(super) fn minimise<T: Real>(
    a: &mut impl Quadratic<T>,
    b: &[T],
    dictionary: &mut Dictionary<T>,
    lipschitz: &mut T,
    config: &UpdateConfig,
    accelerate: bool,
) -> Updated {
    let mut updated = Updated::default();
    let n = b.len();
    let (mut d, mut old) = (dictionary.data().to_vec(), dictionary.data().to_vec());
    let mut ad = vec![T::zero(); n];
    a.multiply(&d, &mut ad);
    let mut ad_old = ad.clone();
    let (mut y, mut ay, mut a_new) = (d.clone(), ad.clone(), vec![T::zero(); n]);
    let (mut t, mut m) = (1.0_f64, 0.0_f64);
    // The curvature along D is a first guess.
    *lipschitz = lipschitz.at_least(T::of(dot(&d, &ad) / dot(&d, &d).max(f64::MIN_POSITIVE)));
    for iter in 1..=config.max_iters {
        for i in 0..n {
            y[i] = d[i] + T::of(m) * (d[i] - old[i]);
            ay[i] = ad[i] + T::of(m) * (ad[i] - ad_old[i]);
        }
        // Enough doublings for any numbers.
        let mut length = 0.0;
        for _ in 0..200 {
            if *lipschitz <= T::zero() {
                return Updated { iterations: iter, stationarity: Some(0.0), ..updated };
            }
            let scale = T::one() / *lipschitz;
            for (i, new) in dictionary.data_mut().iter_mut().enumerate() {
                *new = y[i] - (ay[i] - b[i]) * scale;
            }
            dictionary.project();
            let new = dictionary.data();
            a.multiply(new, &mut a_new);
            let step = |i: usize| new[i].f64() - y[i].f64();
            length = (0..n).map(|i| step(i).powi(2)).sum();
            let curvature: f64 = (0..n).map(|i| step(i) * (a_new[i].f64() - ay[i].f64())).sum();
            // Also when they are not numbers, since then no step would do.
            if curvature <= (1.0 + SLACK) * lipschitz.f64() * length || curvature.is_nan() {
                break;
            }
            *lipschitz = T::of((1.1 * curvature / length).max(1.2 * lipschitz.f64()));
        }
        let new = dictionary.data();
        let uphill: f64 = (0..n).map(|i| (y[i].f64() - new[i].f64()) * (new[i].f64() - d[i].f64())).sum();
        std::mem::swap(&mut old, &mut d);
        d.copy_from_slice(new);
        std::mem::swap(&mut ad_old, &mut ad);
        ad.copy_from_slice(&a_new);
        let next = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
        (t, m) = if !accelerate || uphill > 0.0 { (1.0, 0.0) } else { (next, (t - 1.0) / next) };
        let stationarity = (length / dot(&d, &d).max(f64::MIN_POSITIVE)).sqrt();
        updated = Updated { iterations: iter, stationarity: Some(stationarity), ..updated };
        if stationarity <= config.tol {
            break;
        }
    }
    updated
}

fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.f64() * b.f64()).sum()
}
