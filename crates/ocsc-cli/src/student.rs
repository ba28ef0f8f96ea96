//! Welch's t-test, which says whether two methods differ by more than the luck of their seeds.
//!
//! **Question.** Of two sets of runs with means m_1, m_2, deviations s_1, s_2 and n_1, n_2 runs: how likely is a difference
//! of the means at least this large if there is none? With v_i = s_i^2 / n_i,
//!
//! ```text
//! t  = (m_1 - m_2) / sqrt(v_1 + v_2)
//! df = (v_1 + v_2)^2 / ( v_1^2 / (n_1 - 1) + v_2^2 / (n_2 - 1) )
//! ```
//!
//! and the answer is the probability that Student's t with df degrees of freedom is beyond +-t (B. L. Welch, Biometrika 34,
//! 1947). The paper only says "pairwise t-test". Welch's needs no equal deviations, which the methods do not have, and no
//! pairs of equal seeds; and it can be computed from printed means and deviations too.
//!
//! **Student's t** through x = sqrt(df) tan(a), under which its density becomes cos(a)^(df - 1): one integral over a finite
//! interval, done by the double-exponential rule, to which the root at the far end is no obstacle. The crate `statrs` would
//! bring 40 others for this one function.

use std::f64::consts::FRAC_PI_2;

/// Below this probability two means are said to differ: 95 % confidence.
const SIGNIFICANT: f64 = 0.05;
/// The rule's step and reach, which give 12 digits.
const STEP: f64 = 1.0 / 32.0;
const REACH: i32 = 112;

/// What is known of a set of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) n: usize,
    pub(crate) mean: f64,
    /// The sample's (divided by n - 1); 0 for a single run.
    pub(crate) deviation: f64,
}

impl Summary {
    /// Of finite values; none if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        (n > 0).then_some(Summary { n, mean, deviation: (squares / (n.max(2) - 1) as f64).sqrt() })
    }
}

/// Whether the means differ at 95 % confidence; single runs say nothing about it.
pub(crate) fn differ(a: Summary, b: Summary) -> bool {
    welch(a, b).is_some_and(|p| p < SIGNIFICANT)
}

/// The probability of a difference at least this large by luck; none unless both sets have at least two runs.
fn welch(a: Summary, b: Summary) -> Option<f64> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let [va, vb] = [a, b].map(|s| s.deviation.powi(2) / s.n as f64);
    let difference = (a.mean - b.mean).abs();
    if va + vb == 0.0 {
        return Some(if difference == 0.0 { 1.0 } else { 0.0 });
    }
    let df = (va + vb).powi(2) / (va.powi(2) / (a.n - 1) as f64 + vb.powi(2) / (b.n - 1) as f64);
    Some(beyond(difference / (va + vb).sqrt(), df))
}

/// The probability that Student's t with `df` degrees of freedom (at least 1) is beyond +-`t`.
fn beyond(t: f64, df: f64) -> f64 {
    let density = |a: f64| a.cos().max(0.0).powf(df - 1.0);
    let from = (t.abs() / df.sqrt()).atan();
    (integral(density, from, FRAC_PI_2) / integral(density, 0.0, FRAC_PI_2)).clamp(0.0, 1.0)
}

/// The double-exponential rule: a = middle + half tanh(pi/2 sinh u), with equal steps in u.
fn integral(f: impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0);
    let term = |i: i32| {
        let u = f64::from(i) * STEP;
        let inner = FRAC_PI_2 * u.sinh();
        f(middle + half * inner.tanh()) * FRAC_PI_2 * u.cosh() / inner.cosh().powi(2)
    };
    half * STEP * (-REACH..=REACH).map(term).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_student() {
        // t beyond which 5 % and 1 % lie, from printed tables.
        for (df, five, one) in [
            (1.0, 12.706, 63.657),
            (2.0, 4.303, 9.925),
            (4.0, 2.776, 4.604),
            (5.0, 2.571, 4.032),
            (8.0, 2.306, 3.355),
            (10.0, 2.228, 3.169),
            (30.0, 2.042, 2.750),
            (1e6, 1.960, 2.576),
        ] {
            assert!((beyond(five, df) - 0.05).abs() < 3e-5, "{df}: {}", beyond(five, df));
            assert!((beyond(one, df) - 0.01).abs() < 2e-5, "{df}: {}", beyond(one, df));
        }
    }

    #[test]
    fn closed_forms() {
        // One degree of freedom is Cauchy's distribution, and two have a closed form as well.
        for t in [0.0, 0.3, 1.0, 4.0, 50.0] {
            let cauchy = 1.0 - f64::atan(t) / FRAC_PI_2;
            assert!((beyond(t, 1.0) - cauchy).abs() < 1e-11, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((beyond(t, 2.0) - two).abs() < 1e-11, "{t}");
            let four = 1.0 - t * (6.0 + t * t) / (4.0 + t * t).powf(1.5);
            assert!((beyond(t, 4.0) - four).abs() < 1e-11, "{t}");
        }
        // Between whole numbers it lies between them.
        assert!(beyond(3.0, 2.0) > beyond(3.0, 1.5).min(beyond(3.0, 2.5)) && beyond(3.0, 1.5) > beyond(3.0, 2.0));
    }

    #[test]
    fn a_worked_example() {
        // Equal sizes and deviations: t = 1 / sqrt(2 * 2.5 / 5) = 1 with 8 degrees of freedom.
        let a = Summary::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let b = Summary::of(&[2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!((a.n, a.mean), (5, 3.0));
        assert!((a.deviation - 2.5f64.sqrt()).abs() < 1e-15);
        assert!((welch(a, b).unwrap() - 0.346_593_507_087_334).abs() < 1e-10, "{:?}", welch(a, b));
        assert!(!differ(a, b));
        // Unequal ones: v = 0.5 and 0.04, t = 4 / sqrt(0.54) = 5.443, df = 0.2916 / (0.0625 + 0.0016 / 9) = 4.652.
        let b = Summary { n: 10, mean: 7.0, deviation: 0.4f64.sqrt() };
        let p = welch(a, b).unwrap();
        assert!(beyond(5.4433105, 4.6524) > 0.0 && (p - beyond(5.4433105, 4.6524)).abs() < 1e-6, "{p}");
        assert!(differ(a, b) && differ(b, a));
    }

    #[test]
    fn few_runs_and_equal_runs() {
        let one = Summary::of(&[1.0]).unwrap();
        let two = Summary::of(&[5.0, 5.0, f64::NAN]).unwrap();
        assert_eq!((one.deviation, two.n, two.deviation), (0.0, 2, 0.0));
        assert_eq!(Summary::of(&[f64::INFINITY]), None);
        assert_eq!(welch(one, two), None);
        assert_eq!(welch(two, two), Some(1.0));
        assert_eq!(welch(two, Summary { mean: 5.1, ..two }), Some(0.0));
    }
}
