//! Conjugate gradients for systems A x = b with a symmetric, positive semidefinite A that is only known by what it does to vectors
//! (Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952).

use crate::Real;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// The norm of the residual, as a fraction of the first.
    pub(crate) accuracy: f64,
    pub(crate) iterations: usize,
}

/// Improves x, of which `residual` is b - A x.
pub(crate) fn conjugate_gradients<T: Real>(
    x: &mut [T],
    mut residual: Vec<T>,
    until: Until,
    matrix: impl Fn(&[T]) -> Vec<T>,
) {
    let product = |a: &[T], b: &[T]| a.iter().zip(b).map(|(a, b)| a.f64() * b.f64()).sum::<f64>();
    let mut direction = residual.clone();
    let mut square = product(&residual, &residual);
    let enough = until.accuracy * until.accuracy * square;
    for _ in 0..until.iterations {
        if square <= enough || square <= 0.0 {
            break;
        }
        let image = matrix(&direction);
        let curvature = product(&direction, &image);
        if curvature <= 0.0 || !curvature.is_finite() {
            break;
        }
        let step = T::of(square / curvature);
        x.iter_mut().zip(&direction).for_each(|(x, d)| *x += step * *d);
        residual.iter_mut().zip(&image).for_each(|(r, image)| *r -= step * *image);
        let next = product(&residual, &residual);
        let ratio = T::of(next / square);
        direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = *r + ratio * *d);
        square = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_of_n_unknowns_is_solved_in_n_steps() {
        let rows = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 2.0]];
        let matrix =
            |v: &[f64]| rows.iter().map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect::<Vec<f64>>();
        let b = [1.0, -2.0, 3.0];
        let mut x = vec![0.0; 3];
        conjugate_gradients(&mut x, b.to_vec(), Until { accuracy: 0.0, iterations: 3 }, matrix);
        assert!(matrix(&x).iter().zip(b).all(|(found, wanted)| (found - wanted).abs() < 1e-12), "{x:?}");
        let before = x.clone();
        conjugate_gradients(&mut x, vec![0.0; 3], Until { accuracy: 0.0, iterations: 3 }, matrix);
        assert_eq!(x, before, "nothing is left to do");
    }
}
