//! Codes of a given size or accuracy: beta is found by following the solution as beta falls.
//!
//! ```text
//! --error SIGMA         the largest beta with || W^1/2 (x - D z) || <= SIGMA sqrt(values that count)
//! --explained FRACTION  the largest beta with 1 - ||W^1/2 (x - D z)||^2 / ||W^1/2 x||^2 >= FRACTION
//! --nonzeros N          the smallest beta with at most N non-zeros
//! ```
//!
//! Beta falls from the smallest one with an all-zero code by [`FALL`] at a time, each code starting from the last one, until the
//! budget is crossed; then the interval is halved, in logarithms, until it is [`FINE`]. Every code on the way is certified. The
//! number of non-zeros need not be monotone in beta, so the beta of a budget of non-zeros is the last one before it was first
//! exceeded.

use super::{ActiveSet, ActiveSetConfig, Coded, Coder, CodingConfig, Joint};
use crate::monitor::{Monitor, check_wanted};
use crate::real::compiled;
use crate::{Code, Dictionary, Error, Real, Result, Sample};

/// Beta falls by this factor.
const FALL: f64 = 0.6;
/// The search ends when the interval of beta is this narrow, as a quotient.
const FINE: f64 = 1.02;
/// It is given up below this fraction of the largest beta.
const LEAST: f64 = 1e-6;

/// Says how large or how accurate a code is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Budget {
    /// The root mean square of the differences, at most.
    Error(f64),
    /// The share of the energy that the code explains, at least.
    Explained(f64),
    /// Non-zeros, at most.
    Nonzeros(usize),
}

impl Budget {
    /// Returns whether a code of `sample` is as accurate as wanted, or larger than wanted.
    fn is_crossed<T: Real>(&self, sample: &Sample<T>, coded: &Coded<T>) -> bool {
        let squares = 2.0 * coded.objective.data_term;
        match *self {
            Budget::Error(sigma) => squares <= sigma * sigma * counted(sample),
            Budget::Explained(fraction) => squares <= (1.0 - fraction) * energy(sample),
            Budget::Nonzeros(most) => coded.code.nonzeros() > most,
        }
    }
}

/// How many values count.
pub(super) fn counted<T: Real>(sample: &Sample<T>) -> f64 {
    match sample.weights() {
        Some(weights) => weights.iter().map(|w| w.f64()).sum(),
        None => sample.n_observed() as f64,
    }
}

/// ||W^1/2 x||^2.
pub(super) fn energy<T: Real>(sample: &Sample<T>) -> f64 {
    let weight = |i: usize| sample.weights().map_or(1.0, |weights| weights[i].f64());
    sample.data().iter().enumerate().map(|(i, x)| weight(i) * x.f64().powi(2)).sum()
}

impl<T: Real> ActiveSet<T> {
    /// Codes a sample within a budget; the code says which beta that took.
    pub(super) fn within(&self, budget: Budget, sample: &Sample<T>, monitor: &dyn Monitor) -> Result<Coded<T>> {
        let mut largest = self.clone_at(self.beta())?;
        let largest = largest.beta_max(sample)?;
        if largest <= 0.0 {
            return self.coded(sample, None, monitor);
        }
        let at = |beta: f64, start: Option<&Code<T>>| self.clone_at(beta)?.coded(sample, start, monitor);
        // Beyond the largest beta, where the code is zero.
        let mut above = at(largest * (1.0 + 1e-6), None)?;
        if budget.is_crossed(sample, &above) {
            return Ok(above);
        }
        let mut below = loop {
            check_wanted(monitor)?;
            let beta = FALL * above.beta;
            if beta < LEAST * largest {
                return match budget {
                    Budget::Nonzeros(_) => Ok(above),
                    _ => Err(out_of_reach(budget, sample, &above)),
                };
            }
            let next = at(beta, Some(&above.code))?;
            if budget.is_crossed(sample, &next) {
                break next;
            }
            above = next;
        };
        while above.beta > FINE * below.beta {
            check_wanted(monitor)?;
            let middle = at((above.beta * below.beta).sqrt(), Some(&above.code))?;
            match budget.is_crossed(sample, &middle) {
                true => below = middle,
                false => above = middle,
            }
        }
        Ok(if matches!(budget, Budget::Nonzeros(_)) { above } else { below })
    }
}

compiled! {
    /// Codes a sample for every beta, in the order given, each code starting from the one before; from large to small this costs
    /// little more than the smallest alone.
    pub(crate) fn path<T>(
        dictionary: &Dictionary<T>,
        to: &CodingConfig,
        sample: &Sample<T>,
        betas: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<Vec<Coded<T>>> = follow;
}

fn follow<T: Real>(
    dictionary: &Dictionary<T>,
    to: &CodingConfig,
    sample: &Sample<T>,
    betas: &[f64],
    monitor: &dyn Monitor,
) -> Result<Vec<Coded<T>>> {
    let plain = ActiveSetConfig { refit: false, ..to.active_set.clone() };
    let (tol, boundary) = (to.tol, to.boundary);
    let mut codes: Vec<Coded<T>> = Vec::with_capacity(betas.len());
    for beta in betas {
        let start = codes.last().map(|last| &last.code);
        let coded = match plain.joint {
            true => Joint::new(dictionary, *beta, tol, boundary, plain.clone())?.solve(sample, start, monitor),
            false => ActiveSet::new(dictionary, *beta, tol, boundary, plain.clone())?
                .clone_at(*beta)?
                .coded(sample, start, monitor),
        };
        codes.push(coded?);
    }
    if to.active_set.refit {
        let coder = |beta: f64| ActiveSet::new(dictionary, beta, tol, boundary, to.active_set.clone());
        codes = codes.into_iter().map(|coded| coder(coded.beta)?.refitted(sample, coded)).collect::<Result<_>>()?;
    }
    Ok(codes)
}

/// No beta is small enough.
fn out_of_reach<T: Real>(budget: Budget, sample: &Sample<T>, last: &Coded<T>) -> Error {
    let squares = 2.0 * last.objective.data_term;
    let found = format!("at beta {:.3e}", last.beta);
    match budget {
        Budget::Explained(fraction) => {
            let share = 1.0 - squares / energy(sample);
            Error::invalid(
                "explained",
                format!("a share that these filters reach, not {fraction}"),
                format!("{share:.6} {found}"),
            )
        }
        _ => {
            let error = (squares / counted(sample)).sqrt();
            let wanted = format!("{budget:?}").to_lowercase();
            Error::invalid(
                "error",
                format!("one that these filters reach, not {wanted}"),
                format!("{error:.3e} {found}"),
            )
        }
    }
}
