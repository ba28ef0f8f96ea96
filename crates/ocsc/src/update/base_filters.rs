//! Filters of one rank: K filters made of R base filters, with the same weights for all samples.
//!
//! **Problem**, over the statistics phi, psi of K filters as [`super::BlockDescent`] has them:
//!
//! ```text
//! min over B, W   1/2 sum_kl <d_k, phi_kl * d_l> - sum_k <psi_k, d_k>,      d_k = sum_r B_r W(r,k),   ||d_k|| <= 1
//! ```
//!
//! It is quadratic in W for fixed B and in B for fixed W, and a round makes one sweep over each:
//!
//! ```text
//! W:  d_k = project( d_k - P g_k / L_k )        k = 1..K, P the projection on the span of B: the sweep of free filters with P in it
//! B:  one sweep over R filters with the statistics  sum_kl W(r,k) W(s,l) phi_kl,  sum_k W(r,k) psi_k;   then d_k = project( B w_k )
//! ```
//!
//! Since d_k alone matters, B for the second step is an orthonormal basis of the span, halved: W is twice the coordinates, and
//! ||B_r|| <= 1 does not bind. The sweeps lower the objective; the last projection may raise it a little where the step on B made
//! filters longer than 1.
//!
//! Nothing is kept from one update to the next: the filters know their span (`span.rs`).
//!
//! **Cost** beyond the sweep: K^2 R (2m - 1)^2 for the statistics of B, K R windows in f64 for a moment.

use super::sweep::{Sweep, Swept};
use crate::constraint::Constraint;
use crate::dictionary::project_unit_ball;
use crate::span::Span;
use crate::statistics::{LANES, Lags};
use crate::{Dictionary, Real};
use rayon::prelude::*;

/// Base filters have this norm before their sweep.
const NORM: f64 = 0.5;

/// Makes one round.
pub(super) fn round<T: Real>(n: usize, lags: &Lags<T>, sweep: &mut Sweep<T>, dictionary: &mut Dictionary<T>) -> Swept {
    let span = Span::of(dictionary, n);
    let swept = sweep.run(lags, dictionary, Some(&span));
    let n = span.basis().count();
    let data: Vec<T> = span.basis().flatten().map(|v| T::of(NORM * v)).collect();
    let Ok(mut base) = Dictionary::new(n, dictionary.shape(), dictionary.rank(), data) else { return swept };
    // (K, R)
    let coordinate = |filter: &[T], q: &[f64]| filter.iter().zip(q).map(|(d, q)| d.f64() * q).sum::<f64>() / NORM;
    let len = dictionary.shape().len();
    let filters = dictionary.data().chunks_exact(len);
    let weights: Vec<f64> = filters.flat_map(|filter| span.basis().map(|q| coordinate(filter, q))).collect();
    let combined = combine(lags, &weights, n);
    let mut base_sweep = Sweep::new(&combined, Constraint::ball(n, dictionary.shape()));
    base_sweep.set_bounds(&combined);
    base_sweep.run(&combined, &mut base, None);
    for (filter, weights) in dictionary.data_mut().chunks_exact_mut(len).zip(weights.chunks_exact(n)) {
        let mut taps = vec![0.0; len];
        for (base, weight) in base.data().chunks_exact(len).zip(weights) {
            taps.iter_mut().zip(base).for_each(|(t, b)| *t += weight * b.f64());
        }
        project_unit_ball(&mut taps);
        filter.iter_mut().zip(taps).for_each(|(f, t)| *f = T::of(t));
    }
    dictionary.project();
    swept
}

/// Returns sum_kl W(r,k) W(s,l) phi_kl and sum_k W(r,k) psi_k, up to the common weight of the statistics; `weights` are (K, R).
fn combine<T: Real>(lags: &Lags<T>, weights: &[f64], n: usize) -> Lags<T> {
    let (k_all, window) = (lags.n_filters(), lags.window().lags());
    // half_ks = sum_l W(s,l) phi_kl, (K, R, lags)
    let half: Vec<Vec<f64>> = (0..k_all)
        .into_par_iter()
        .map(|k| {
            let (mut half, mut pair) = (vec![0.0; n * window], Vec::with_capacity(window));
            for l in 0..k_all {
                pair.clear();
                pair.extend(lags.pair(k.min(l), k.max(l)).map(Real::f64));
                // phi_kl(tau) = phi_lk(-tau)
                if l < k {
                    pair.reverse();
                }
                for (half, weight) in half.chunks_exact_mut(window).zip(&weights[l * n..][..n]) {
                    half.iter_mut().zip(&pair).for_each(|(h, p)| *h += weight * p);
                }
            }
            half
        })
        .collect();
    let mut combined = Lags::new(n, lags.filter_shape());
    let mut sum = vec![0.0; window];
    for (r, s) in (0..n).flat_map(|r| (r..n).map(move |s| (r, s))) {
        sum.fill(0.0);
        for (k, half) in half.iter().enumerate() {
            let weight = weights[k * n + r];
            sum.iter_mut().zip(&half[s * window..][..window]).for_each(|(sum, h)| *sum += weight * h);
        }
        let block = combined.block_mut(r, s / LANES)[s % LANES..].iter_mut().step_by(LANES);
        block.zip(&sum).for_each(|(out, v)| *out = T::of(*v));
    }
    let len = lags.filter_shape().len();
    let [_, psi] = combined.arrays_mut();
    for (r, psi) in psi.chunks_exact_mut(len).enumerate() {
        let mut sum = vec![0.0; len];
        for k in 0..k_all {
            let weight = weights[k * n + r];
            sum.iter_mut().zip(lags.unweighted_psi(k)).for_each(|(sum, p)| *sum += weight * p.f64());
        }
        psi.iter_mut().zip(sum).for_each(|(p, v)| *p = T::of(v));
    }
    combined
}
