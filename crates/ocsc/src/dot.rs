//! The inner product of two real vectors.

use crate::Real;
use crate::simd::{Kernel, dispatch};

/// Numbers that are multiplied at once.
const LANES: usize = 16;

/// a.b
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    dispatch(Dot { a, b })
}

struct Dot<'a, T> {
    a: &'a [T],
    b: &'a [T],
}

impl<T: Real> Kernel for Dot<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> T {
        let mut sums = [T::zero(); LANES];
        let (a, a_rest) = self.a.as_chunks::<LANES>();
        let (b, b_rest) = self.b.as_chunks::<LANES>();
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                sums[i] = a[i].fused::<FMA>(b[i], sums[i]);
            }
        }
        sums.into_iter().sum::<T>() + a_rest.iter().zip(b_rest).map(|(a, b)| *a * *b).sum::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As chosen for this machine and without fused operations, at lengths around whole blocks.
    #[test]
    fn dot_is_the_plain_sum() {
        for n in [0, 1, 15, 16, 17, 40] {
            let [a, b] = [0.7, 1.9].map(|f| (0..n).map(|i| (f * (i + 1) as f64).sin()).collect::<Vec<_>>());
            let expected: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert!((dot(&a, &b) - expected).abs() < 1e-13);
            assert!((Dot { a: &a, b: &b }.run::<false>() - expected).abs() < 1e-13);
        }
    }
}
