//! Hermitian positive definite systems of small size, for one frequency at a time.
//!
//! A = L L^H with rows of L in filter order (real parts, imaginary parts, padded with zeros): every step below is an inner product
//! of rows
//! or adds one row to another. The diagonal of L is real.

use crate::Real;
use crate::simd::{Kernel, dispatch};
use crate::statistics::{BLOCK, row_len};
use num_complex::Complex;

/// Numbers in a matrix of n rows.
pub(super) fn matrix_len(n: usize) -> usize {
    n.saturating_mul(row_len(n))
}

/// A <- A + y y^H on and below the diagonal; both in filter order.
pub(super) fn add_outer<T: Real>(a: &mut [T], y: &[T]) {
    dispatch(Outer { a, y });
}

/// A + rho I -> L, in place; only the lower triangle of A is read.
pub(super) fn factor<T: Real>(a: &mut [T], n: usize, rho: T) {
    dispatch(Factor { a, n, rho });
}

/// r <- (L L^H)^-1 r.
pub(super) fn solve<T: Real>(l: &[T], n: usize, r: &mut [T]) {
    dispatch(Solve { l, n, r });
}

struct Outer<'a, T> {
    a: &'a mut [T],
    y: &'a [T],
}

impl<T: Real> Kernel for Outer<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let half = self.y.len() / 2;
        let (y_re, y_im) = self.y.split_at(half);
        for (i, row) in self.a.chunks_exact_mut(2 * half).enumerate() {
            // A_ij += y_i conj(y_j), for whole blocks up to the diagonal
            let (a, b, blocks) = (y_re[i], y_im[i], i / BLOCK + 1);
            let (re, im) = row.split_at_mut(half);
            let y_blocks = y_re.as_chunks::<BLOCK>().0.iter().zip(y_im.as_chunks::<BLOCK>().0);
            let out = re.as_chunks_mut::<BLOCK>().0.iter_mut().zip(im.as_chunks_mut::<BLOCK>().0);
            for ((y_re, y_im), (re, im)) in y_blocks.zip(out).take(blocks) {
                for i in 0..BLOCK {
                    re[i] = a.fused::<FMA>(y_re[i], b.fused::<FMA>(y_im[i], re[i]));
                    im[i] = b.fused::<FMA>(y_re[i], (-a).fused::<FMA>(y_im[i], im[i]));
                }
            }
        }
    }
}

struct Factor<'a, T> {
    a: &'a mut [T],
    n: usize,
    rho: T,
}

impl<T: Real> Kernel for Factor<'_, T> {
    type Output = ();

    /// Row by row: L_ij = (A_ij - sum_k<j L_ik conj(L_jk)) / L_jj.
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let row = row_len(self.n);
        let half = row / 2;
        // A copy of the row at hand, of which only what is already L is not zero.
        let mut done = vec![T::zero(); row];
        for i in 0..self.n {
            let (before, rest) = self.a.split_at_mut(i * row);
            let (re, im) = rest[..row].split_at_mut(half);
            done.fill(T::zero());
            let mut pivot = re[i] + self.rho;
            for (j, l) in before.chunks_exact(row).enumerate() {
                let used = (j / BLOCK + 1) * BLOCK;
                let c = partial::<T, FMA>(l, &done, used);
                let inverse = T::one() / l[j];
                let entry = Complex::new((re[j] - c.re) * inverse, (im[j] - c.im) * inverse);
                (done[j], done[half + j]) = (entry.re, entry.im);
                pivot -= entry.norm_sqr();
            }
            // At least rho, as it is without rounding.
            done[i] = self.rho.at_least(pivot).root();
            re.copy_from_slice(&done[..half]);
            im.copy_from_slice(&done[half..]);
        }
    }
}

/// sum conj(a) b over the first `used` entries, a whole number of blocks.
#[inline(always)]
fn partial<T: Real, const FMA: bool>(a: &[T], b: &[T], used: usize) -> Complex<T> {
    let half = a.len() / 2;
    let (mut re, mut im) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
    let a_blocks = a[..used].as_chunks::<BLOCK>().0.iter().zip(a[half..][..used].as_chunks::<BLOCK>().0);
    let b_blocks = b[..used].as_chunks::<BLOCK>().0.iter().zip(b[half..][..used].as_chunks::<BLOCK>().0);
    for ((a_re, a_im), (b_re, b_im)) in a_blocks.zip(b_blocks) {
        for i in 0..BLOCK {
            re[i] = a_re[i].fused::<FMA>(b_re[i], a_im[i].fused::<FMA>(b_im[i], re[i]));
            im[i] = a_re[i].fused::<FMA>(b_im[i], (-a_im[i]).fused::<FMA>(b_re[i], im[i]));
        }
    }
    Complex::new(re.into_iter().sum(), im.into_iter().sum())
}

struct Solve<'a, T> {
    l: &'a [T],
    n: usize,
    r: &'a mut [T],
}

impl<T: Real> Kernel for Solve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (row, r) = (row_len(self.n), self.r);
        let half = row / 2;
        // L y = r: row i knows y_j for j < i, and is zero beyond its diagonal.
        for (i, l) in self.l.chunks_exact(row).enumerate() {
            let (a, b) = (r[i], r[half + i]);
            (r[i], r[half + i]) = (T::zero(), T::zero());
            let c = product::<T, FMA>(l, r, (i / BLOCK + 1) * BLOCK);
            (r[i], r[half + i]) = ((a - c.re) / l[i], (b - c.im) / l[i]);
        }
        // L^H d = y: from the last row on, d_i is known and leaves the rows above.
        for (i, l) in self.l.chunks_exact(row).enumerate().rev() {
            let d = Complex::new(r[i] / l[i], r[half + i] / l[i]);
            subtract_conjugate::<T, FMA>(r, d, l, (i / BLOCK + 1) * BLOCK);
            (r[i], r[half + i]) = (d.re, d.im);
        }
    }
}

/// sum a b over the first `used` entries.
#[inline(always)]
fn product<T: Real, const FMA: bool>(a: &[T], b: &[T], used: usize) -> Complex<T> {
    let half = a.len() / 2;
    let (mut re, mut im) = ([T::zero(); BLOCK], [T::zero(); BLOCK]);
    let a_blocks = a[..used].as_chunks::<BLOCK>().0.iter().zip(a[half..][..used].as_chunks::<BLOCK>().0);
    let b_blocks = b[..used].as_chunks::<BLOCK>().0.iter().zip(b[half..][..used].as_chunks::<BLOCK>().0);
    for ((a_re, a_im), (b_re, b_im)) in a_blocks.zip(b_blocks) {
        for i in 0..BLOCK {
            re[i] = a_re[i].fused::<FMA>(b_re[i], (-a_im[i]).fused::<FMA>(b_im[i], re[i]));
            im[i] = a_re[i].fused::<FMA>(b_im[i], a_im[i].fused::<FMA>(b_re[i], im[i]));
        }
    }
    Complex::new(re.into_iter().sum(), im.into_iter().sum())
}

/// r <- r - d conj(l) over the first `used` entries.
#[inline(always)]
fn subtract_conjugate<T: Real, const FMA: bool>(r: &mut [T], d: Complex<T>, l: &[T], used: usize) {
    let half = l.len() / 2;
    let (re, im) = r.split_at_mut(half);
    let r_blocks = re[..used].as_chunks_mut::<BLOCK>().0.iter_mut().zip(im[..used].as_chunks_mut::<BLOCK>().0);
    let l_blocks = l[..used].as_chunks::<BLOCK>().0.iter().zip(l[half..][..used].as_chunks::<BLOCK>().0);
    for ((r_re, r_im), (l_re, l_im)) in r_blocks.zip(l_blocks) {
        for i in 0..BLOCK {
            r_re[i] = (-d.re).fused::<FMA>(l_re[i], (-d.im).fused::<FMA>(l_im[i], r_re[i]));
            r_im[i] = (-d.im).fused::<FMA>(l_re[i], d.re.fused::<FMA>(l_im[i], r_im[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type C = Complex<f64>;

    /// What solves, multiplied by the matrix, is the right side; as chosen for this machine and without fused operations.
    #[test]
    fn solves_the_system_that_was_factored() {
        let number = |i: usize| C::new((0.7 * (i + 1) as f64).sin(), (1.9 * (i + 1) as f64).cos());
        for (n, ranks, rho) in [(1, 0, 0.5), (1, 2, 1e-3), (7, 3, 0.1), (8, 1, 2.0), (9, 12, 1e-3), (19, 4, 0.3)] {
            let vector = |first: usize| {
                let mut row = vec![0.0; row_len(n)];
                (0..n).for_each(|i| (row[i], row[row_len(n) / 2 + i]) = (number(first + i).re, number(first + i).im));
                row
            };
            for fused in [true, false] {
                let mut a = vec![0.0; matrix_len(n)];
                for rank in 0..ranks {
                    let y = vector(100 * rank);
                    let outer = Outer { a: &mut a, y: &y };
                    if fused { dispatch(outer) } else { outer.run::<false>() }
                }
                let mut r = vector(7000);
                if fused {
                    factor(&mut a, n, rho);
                    solve(&a, n, &mut r);
                } else {
                    Factor { a: &mut a, n, rho }.run::<false>();
                    Solve { l: &a, n, r: &mut r }.run::<false>();
                }
                let d: Vec<C> = (0..n).map(|i| C::new(r[i], r[row_len(n) / 2 + i])).collect();
                for i in 0..n {
                    let term = |rank: usize, j: usize| number(100 * rank + i) * number(100 * rank + j).conj() * d[j];
                    let sum: C = (0..ranks).flat_map(|rank| (0..n).map(move |j| term(rank, j))).sum();
                    assert!((sum + d[i] * rho - number(7000 + i)).norm() < 1e-9, "n = {n}");
                }
            }
        }
    }
}
