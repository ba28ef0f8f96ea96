//! Small symmetric systems, row after row.

/// Replaces the lower triangle of a positive definite matrix by its factor L. A pivot that rounding has made too small is raised.
pub(super) fn factor(matrix: &mut [f32], size: usize) {
    for i in 0..size {
        for j in 0..=i {
            let (upper, lower) = (&matrix[j * size..][..j], &matrix[i * size..][..j]);
            let value = matrix[i * size + j] - upper.iter().zip(lower).map(|(a, b)| a * b).sum::<f32>();
            matrix[i * size + j] = if i == j { value.max(1e-9).sqrt() } else { value / matrix[j * size + j] };
        }
    }
}

/// Solves L L^T x = b in place.
pub(super) fn solve(factor: &[f32], b: &mut [f32]) {
    let size = b.len();
    for i in 0..size {
        let known = factor[i * size..][..i].iter().zip(&*b).map(|(l, x)| l * x).sum::<f32>();
        b[i] = (b[i] - known) / factor[i * size + i];
    }
    for i in (0..size).rev() {
        let known = (i + 1..size).map(|j| factor[j * size + i] * b[j]).sum::<f32>();
        b[i] = (b[i] - known) / factor[i * size + i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_solves_the_system() {
        let size = 7;
        let root: Vec<f32> = (0..size * size).map(|i| (i as f32 * 0.77).sin()).collect();
        let entry = |i: usize, j: usize| {
            (0..size).map(|k| root[i * size + k] * root[j * size + k]).sum::<f32>() + if i == j { 0.1 } else { 0.0 }
        };
        let mut matrix: Vec<f32> = (0..size * size).map(|i| entry(i / size, i % size)).collect();
        let x: Vec<f32> = (0..size).map(|i| i as f32 - 2.5).collect();
        let mut b: Vec<f32> = (0..size).map(|i| (0..size).map(|j| entry(i, j) * x[j]).sum()).collect();
        factor(&mut matrix, size);
        solve(&matrix, &mut b);
        for (found, x) in b.iter().zip(x) {
            assert!((found - x).abs() < 1e-3, "{found} {x}");
        }
    }
}
