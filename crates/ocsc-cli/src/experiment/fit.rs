//! Powers that measured values grow by.

/// The slope of the least-squares line through (log x, log y); none for fewer than two different positive points.
pub(super) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> =
        points.iter().filter(|p| p.0 > 0.0 && p.1 > 0.0).map(|p| (p.0.ln(), p.1.ln())).collect();
    let n = logs.len() as f64;
    let (x, y) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let spread: f64 = logs.iter().map(|p| (p.0 - x).powi(2)).sum();
    let slope = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
    (spread > 0.0).then_some(slope).filter(|slope| slope.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_found() {
        let points: Vec<(f64, f64)> = [1.0, 3.0, 10.0, 50.0].map(|x: f64| (x, 7.0 * x.powf(1.7))).to_vec();
        assert!((exponent(&points).unwrap() - 1.7).abs() < 1e-12);
        assert_eq!(exponent(&[(2.0, 3.0)]), None);
        assert_eq!(exponent(&[(2.0, 3.0), (2.0, 4.0), (0.0, 1.0), (5.0, -1.0)]), None);
        assert_eq!(exponent(&[]), None);
    }
}
