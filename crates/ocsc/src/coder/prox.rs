//! The pointwise half of an ADMM iteration: relaxation, soft threshold, dual step, and the sums that stopping needs.

use crate::Real;
use crate::simd::{Kernel, dispatch};

/// Maps are padded to whole blocks of this many numbers.
pub(super) const LANES: usize = 16;

/// ProxSums over coefficients, after one iteration.
#[derive(Clone, Copy, Default)]
pub(super) struct ProxSums {
    /// ||z - u||^2.
    pub(super) primal: f64,
    /// ||u - u_old||^2.
    pub(super) change: f64,
    /// ||z||^2, ||u||^2, ||y||^2.
    pub(super) z: f64,
    pub(super) u: f64,
    pub(super) y: f64,
    /// ||u||_1.
    pub(super) l1: f64,
    /// max |D^T g|.
    pub(super) correlation: f64,
    pub(super) nonzeros: usize,
}

impl ProxSums {
    pub(super) fn add(&mut self, other: &ProxSums) {
        self.primal += other.primal;
        self.change += other.change;
        self.z += other.z;
        self.u += other.u;
        self.y += other.y;
        self.l1 += other.l1;
        self.correlation = self.correlation.max(other.correlation);
        self.nonzeros += other.nonzeros;
    }
}

/// v clipped to [-t, t]: the dual part y of v; the soft threshold is S_t(v) = v - clip(v).
#[inline(always)]
pub(in crate::coder) fn clip<T: Real>(v: T, t: T) -> T {
    let v = if v > t { t } else { v };
    if v < -t { -t } else { v }
}

/// S_t(v).
#[inline(always)]
pub(in crate::coder) fn soft<T: Real>(v: T, t: T) -> T {
    v - clip(v, t)
}

/// v <- v + a (z - u) with z = 2 u - v + q and u = S(v), for one map v and q = D_k^T g of whole blocks; `support`
/// receives the positions where the new u is not zero.
pub(super) fn prox<T: Real>(v: &mut [T], q: &[T], threshold: T, relaxation: T, support: &mut Vec<u32>) -> ProxSums {
    support.clear();
    dispatch(Prox { v, q, threshold, relaxation, support })
}

struct Prox<'a, T> {
    v: &'a mut [T],
    q: &'a [T],
    threshold: T,
    relaxation: T,
    support: &'a mut Vec<u32>,
}

impl<T: Real> Kernel for Prox<'_, T> {
    type Output = ProxSums;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> ProxSums {
        let zero = [T::zero(); LANES];
        let (mut primal, mut change, mut l1, mut top) = (zero, zero, zero, zero);
        let (mut z_norm, mut u_norm, mut y_norm) = (zero, zero, zero);
        let t = self.threshold;
        let (v_blocks, _) = self.v.as_chunks_mut::<LANES>();
        let (q_blocks, _) = self.q.as_chunks::<LANES>();
        for (v, q) in v_blocks.iter_mut().zip(q_blocks) {
            for i in 0..LANES {
                let u_old = soft(v[i], t);
                let z = u_old + u_old - v[i] + q[i];
                let new = self.relaxation.fused::<FMA>(z - u_old, v[i]);
                let y = clip(new, t);
                let u = new - y;
                v[i] = new;
                primal[i] = (z - u).fused::<FMA>(z - u, primal[i]);
                change[i] = (u - u_old).fused::<FMA>(u - u_old, change[i]);
                z_norm[i] = z.fused::<FMA>(z, z_norm[i]);
                u_norm[i] = u.fused::<FMA>(u, u_norm[i]);
                y_norm[i] = y.fused::<FMA>(y, y_norm[i]);
                l1[i] += u.abs();
                top[i] = top[i].at_least(q[i].abs());
            }
        }
        // A second look at the map, which is in the cache: a branch per block in the loop above would stall it.
        for (block, v) in v_blocks.iter().enumerate() {
            if v.iter().fold(false, |any, v| any | (v.abs() > t)) {
                let nonzero = (0..LANES).filter(|&i| soft(v[i], t) != T::zero());
                self.support.extend(nonzero.map(|i| (block * LANES + i) as u32));
            }
        }
        let total = |lanes: [T; LANES]| lanes.iter().map(|v| v.f64()).sum();
        ProxSums {
            primal: total(primal),
            change: total(change),
            z: total(z_norm),
            u: total(u_norm),
            y: total(y_norm),
            l1: total(l1),
            correlation: top.iter().fold(0.0, |m, v| m.max(v.f64())),
            nonzeros: self.support.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectorised loop, as chosen for this machine and without fused operations, against one number at a time.
    #[test]
    fn prox_is_the_plain_loop() {
        for blocks in [0, 1, 2, 5] {
            let number = |i: usize, step: f64| 2.0 * (step * (i + 1) as f64).sin();
            let v: Vec<f64> = (0..blocks * LANES).map(|i| number(i, 1.7)).collect();
            let q: Vec<f64> = (0..v.len()).map(|i| number(i, 2.3)).collect();
            let (t, a) = (0.8, 1.8);
            let (mut plain, mut expected, mut support) = (v.clone(), ProxSums::default(), Vec::new());
            for i in 0..v.len() {
                let shrink = |v: f64| v.signum() * (v.abs() - t).max(0.0);
                let (u_old, y_old) = (shrink(v[i]), v[i] - shrink(v[i]));
                let z = u_old - y_old + q[i];
                let h = a * z + (1.0 - a) * u_old;
                let u = shrink(h + y_old);
                let y = y_old + h - u;
                plain[i] = u + y;
                expected.primal += (z - u).powi(2);
                expected.change += (u - u_old).powi(2);
                expected.z += z * z;
                expected.u += u * u;
                expected.y += y * y;
                expected.l1 += u.abs();
                expected.correlation = expected.correlation.max(q[i].abs());
                if u != 0.0 {
                    support.push(i as u32);
                }
            }
            for fused in [true, false] {
                let (mut fast, mut found) = (v.clone(), vec![7]);
                let sums = if fused {
                    prox(&mut fast, &q, t, a, &mut found)
                } else {
                    found.clear();
                    Prox { v: &mut fast, q: &q, threshold: t, relaxation: a, support: &mut found }.run::<false>()
                };
                assert_eq!(found, support);
                assert_eq!((sums.nonzeros, sums.correlation), (support.len(), expected.correlation));
                assert!(fast.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-14));
                let pairs = [
                    (sums.primal, expected.primal),
                    (sums.change, expected.change),
                    (sums.z, expected.z),
                    (sums.u, expected.u),
                    (sums.y, expected.y),
                    (sums.l1, expected.l1),
                ];
                assert!(pairs.iter().all(|(a, b)| (a - b).abs() <= 1e-13 * b.abs()), "{pairs:?}");
            }
        }
    }
}
