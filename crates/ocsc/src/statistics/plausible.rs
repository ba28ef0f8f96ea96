//! What any statistics satisfy, whatever the samples: a saved state that does not was damaged or made up.
//!
//! Energies are sums of squares, so none is negative; and correlations are inner products, so none exceeds the product of the
//! two norms (Cauchy-Schwarz):
//!
//! ```text
//! phi_kk(0) >= 0,    |phi_kl(tau)| <= sqrt( phi_kk(0) phi_ll(0) ),    |psi_k(s)| <= sqrt( phi_kk(0) sum_i ||x_i||^2 )
//! ```

use super::Lags;
use crate::{Error, Real, Result};

/// The slack that the rounding of long sums is given: relative to the bound, and relative to the largest bound of all.
fn slack<T: Real>() -> [f64; 2] {
    let single = T::EPSILON > 1e-10;
    if single { [1e-2, 1e-6] } else { [1e-6, 1e-12] }
}

/// Refuses statistics that no samples and codes can have.
///
/// Not in parallel: models are also read in forked processes, where the global pool of threads is dead.
pub(crate) fn check_lags<T: Real>(lags: &Lags<T>) -> Result<()> {
    let energies: Vec<f64> = (0..lags.n_filters()).map(|k| lags.energy(k).f64()).collect();
    let norms = norms::<T>("phi", &energies)?;
    (0..norms.len()).try_for_each(|k| {
        (k..norms.len()).try_for_each(|l| norms.check("phi", [k, l], lags.pair(k, l).map(Real::f64)))
    })?;
    let (_, [constant, _]) = lags.parts();
    let sample = (2.0 * constant).sqrt();
    (0..norms.len()).try_for_each(|k| {
        let values = lags.unweighted_psi(k).iter().map(|v| v.f64());
        norms.check_against("psi", k, sample, values)
    })
}

/// Refuses a matrix (n, n) of inner products that no vectors have.
pub(crate) fn check_gram<T: Real>(name: &str, n: usize, gram: &[T]) -> Result<()> {
    let energies: Vec<f64> = (0..n).map(|i| gram[i * n + i].f64()).collect();
    let norms = norms::<T>(name, &energies)?;
    gram.chunks_exact(n.max(1)).enumerate().try_for_each(|(i, row)| {
        row.iter().enumerate().try_for_each(|(j, v)| norms.check(name, [i, j], std::iter::once(v.f64())))
    })
}

/// The norms of vectors with these energies.
pub(crate) fn norms<T: Real>(name: &str, energies: &[f64]) -> Result<Norms> {
    if let Some((k, energy)) = energies.iter().enumerate().find(|(_, energy)| energy.is_nan() || **energy < 0.0) {
        return Err(Error::invalid(format!("saved `{name}`"), format!("no negative energy of filter {k}"), energy));
    }
    let norms: Vec<f64> = energies.iter().map(|energy| energy.sqrt()).collect();
    let largest = norms.iter().copied().fold(0.0, f64::max);
    Ok(Norms { norms, largest, slack: slack::<T>() })
}

/// Norms of vectors, and the slack that their products are given.
pub(crate) struct Norms {
    norms: Vec<f64>,
    largest: f64,
    slack: [f64; 2],
}

impl Norms {
    /// Returns how many vectors there are.
    pub(crate) fn len(&self) -> usize {
        self.norms.len()
    }

    /// Refuses values that no inner product of vectors i and j can have.
    pub(crate) fn check(&self, name: &str, [i, j]: [usize; 2], values: impl Iterator<Item = f64>) -> Result<()> {
        self.bounded(name, &format!("{i} and {j}"), self.norms[i] * self.norms[j], self.largest, values)
    }

    /// Refuses values that no inner product of vector i and one of this norm can have.
    fn check_against(&self, name: &str, i: usize, norm: f64, values: impl Iterator<Item = f64>) -> Result<()> {
        self.bounded(name, &i.to_string(), self.norms[i] * norm, norm, values)
    }

    fn bounded(
        &self,
        name: &str,
        which: &str,
        bound: f64,
        other: f64,
        mut values: impl Iterator<Item = f64>,
    ) -> Result<()> {
        let [relative, absolute] = self.slack;
        let most = bound * (1.0 + relative) + absolute * self.largest * other;
        match values.find(|v| v.is_nan() || v.abs() > most) {
            Some(v) => {
                let expected = format!("at most {bound:e} of filters {which}, as their energies say");
                Err(Error::invalid(format!("saved `{name}`"), expected, format!("{v:e}")))
            }
            None => Ok(()),
        }
    }
}
