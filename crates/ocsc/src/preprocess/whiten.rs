//! Whitening of signals by linear prediction: what the past does not tell.
//!
//! Recordings (field potentials, ECG, audio) have spectra that fall by orders of magnitude, so a least-squares fit sees
//! their slow waves only. Prediction levels the spectrum. With the predictor a of order p,
//!
//! ```text
//! e_t = x_t - sum_{k=1..p} a_k x_{t-k}            and back:   x_t = e_t + sum_k a_k x_{t-k}
//! ```
//!
//! a is Burg's (1975): order by order, the reflection coefficient
//!
//! ```text
//! k_m = 2 sum_t f_t b_{t-1} / sum_t (f_t^2 + b_{t-1}^2)
//! ```
//!
//! minimises the error of predicting forwards (f) and backwards (b), and a' = (a - k_m reversed(a), k_m). Always
//! |k_m| <= 1, so the way back is stable. The power of the error falls by 1 - k_m^2 with every order.
//!
//! The first p values have a shorter past. Value t < p is predicted with order t, and multiplied by the root of the powers
//! of the errors of order p and t, so that it weighs no more than the others: e is then sqrt(P_p) L^-1 x, where L L^T is
//! the covariance of the autoregressive process, and as white at the beginning as later.
//!
//! White errors in e come back with at most 1 / prod_m (1 - k_m^2) of their power. A signal that can be predicted
//! perfectly, as a sine can, would not come back at all; so prediction ends where that factor reaches 1 / [`LEAST`].

use super::level;
use super::undo::{Kept, Undo};
use crate::{Error, Result, Sample};

/// The power of the error relative to the signal's, at least: 100 dB.
const LEAST: f64 = 1e-10;

/// The predictors of all orders up to p.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Predictors {
    /// The coefficients of order m, nearest past first: m of them.
    orders: Vec<Vec<f64>>,
    /// The powers P_m / P_0 of their errors.
    powers: Vec<f64>,
}

/// Leaves the prediction error of each channel. The mean is taken out first: prediction cannot tell it from a slow wave.
pub(super) fn apply(sample: Sample<f64>, order: usize, mut undo: Option<&mut Undo>) -> Result<Sample<f64>> {
    let shape = sample.shape();
    if shape.depth * shape.height > 1 {
        let expected = "signals, with one spatial axis (for images there are `lowpass` and `lcn`)";
        return Err(Error::invalid("the step `whiten`", expected, shape));
    }
    let mut data = level::subtract_mean(sample, undo.as_deref_mut())?.into_data();
    let mut kept = Vec::with_capacity(shape.channels);
    for channel in data.chunks_mut(shape.width) {
        let predictors = burg(channel, order);
        // From the end, so that the past is still the signal.
        for t in (0..channel.len()).rev() {
            let (past, now) = channel.split_at_mut(t);
            now[0] = predictors.gain(t) * (now[0] - predictors.predict(past));
        }
        kept.push(predictors);
    }
    if let Some(undo) = undo {
        undo.keep(Kept::Predict(kept));
    }
    Sample::new(shape, data)
}

/// The way back, from the beginning.
pub(super) fn synthesise(channel: &mut [f64], predictors: &Predictors) {
    for t in 0..channel.len() {
        let (past, now) = channel.split_at_mut(t);
        now[0] = now[0] / predictors.gain(t) + predictors.predict(past);
    }
}

impl Predictors {
    /// Returns the predictor for a value with `past` values before it.
    fn order(&self, past: usize) -> usize {
        past.min(self.orders.len() - 1)
    }

    /// sum_k a_k x_{t-k}.
    fn predict(&self, past: &[f64]) -> f64 {
        let coefficients = &self.orders[self.order(past.len())];
        coefficients.iter().zip(past.iter().rev()).map(|(a, x)| a * x).sum()
    }

    /// sqrt(P_p / P_t) for t < p, then 1.
    fn gain(&self, past: usize) -> f64 {
        (self.powers[self.powers.len() - 1] / self.powers[self.order(past)]).sqrt()
    }
}

/// Burg's predictors of a signal without mean; of lower order where it is too short or too easy to predict.
fn burg(signal: &[f64], order: usize) -> Predictors {
    let mut found = Predictors { orders: vec![Vec::new()], powers: vec![1.0] };
    let largest = signal.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    if largest == 0.0 {
        return found;
    }
    let mut coefficients = Vec::new();
    let mut power = 1.0;
    let mut forward: Vec<f64> = signal.iter().map(|x| x / largest).collect();
    let mut backward = forward.clone();
    for m in 1..=order.min(signal.len() - 1) {
        let (mut product, mut squares) = (0.0, 0.0);
        for (f, b) in forward[m..].iter().zip(&backward[m - 1..]) {
            product += f * b;
            squares += f * f + b * b;
        }
        if squares == 0.0 {
            break;
        }
        let limit = (1.0 - LEAST / power).max(0.0).sqrt();
        let k = (2.0 * product / squares).clamp(-limit, limit);
        for t in (m..signal.len()).rev() {
            let (f, b) = (forward[t], backward[t - 1]);
            (forward[t], backward[t]) = (f - k * b, b - k * f);
        }
        let reversed: Vec<f64> = coefficients.iter().rev().map(|a| k * a).collect();
        coefficients.iter_mut().zip(reversed).for_each(|(a, r)| *a -= r);
        coefficients.push(k);
        power *= 1.0 - k * k;
        found.orders.push(coefficients.clone());
        found.powers.push(power);
        if k.abs() == limit {
            break;
        }
    }
    found
}
