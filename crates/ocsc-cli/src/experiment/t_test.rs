//! Student's paired t-test, which says whether two methods differ by more than the luck of their seeds.
//!
//! **Question.** Runs of two methods with the same seed begin with the same dictionary, visit the same samples and are tested on the
//! same ones, so they are compared with each other. Of the differences of n such pairs, with mean m and deviation s: how likely is
//! a mean at least this large if there is no difference? With
//!
//! ```text
//! t  = m / (s / sqrt(n))          df = n - 1
//! ```
//!
//! the answer is the probability that Student's t with df degrees of freedom is beyond +-t (Student, Biometrika 6, 1908). What all
//! methods owe to the luck of a seed cancels in the differences, and a test of two sets of runs without pairs would take it for noise.
//!
//! **Student's t** through x = sqrt(df) tan(a), under which its density becomes cos(a)^(df - 1): one integral over a finite
//! interval, done by the double-exponential rule, to which the root at the far end is no obstacle. The crate `statrs` would
//! bring 40 others for this one function.

use std::collections::BTreeMap;
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

    /// Of all seeds.
    pub(crate) fn of_seeds(values: &BySeed) -> Option<Summary> {
        Summary::of(&values.values().copied().collect::<Vec<_>>())
    }
}

/// Values by seed.
pub(crate) type BySeed = BTreeMap<u64, f64>;

/// Whether methods differ at 95 % confidence, by the runs whose seeds both have; none if these are fewer than two.
pub(crate) fn differ(a: &BySeed, b: &BySeed) -> Option<bool> {
    paired(a, b).map(|p| p < SIGNIFICANT)
}

/// The probability of a mean difference at least this large by luck; none unless there are at least two pairs.
pub(crate) fn paired(a: &BySeed, b: &BySeed) -> Option<f64> {
    let differences: Vec<f64> = a.iter().filter_map(|(seed, value)| Some(value - b.get(seed)?)).collect();
    let Summary { n, mean, deviation } = Summary::of(&differences).filter(|summary| summary.n > 1)?;
    if deviation == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some(beyond(mean / (deviation / (n as f64).sqrt()), (n - 1) as f64))
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

    fn by_seed(values: &[f64]) -> BySeed {
        (0..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn a_worked_example() {
        // Differences 1, 2, 3, 4: mean 2.5, deviation sqrt(5/3), t = 2.5 / sqrt(5/12) = 3.873 with 3 degrees of freedom.
        let a = by_seed(&[11.0, 22.0, 33.0, 44.0]);
        let b = by_seed(&[10.0, 20.0, 30.0, 40.0]);
        let t: f64 = 2.5 / (5.0f64 / 12.0).sqrt();
        // The closed form for 3 degrees of freedom.
        let x = t / 3f64.sqrt();
        let expected = 1.0 - (x.atan() + x / (1.0 + x * x)) / FRAC_PI_2;
        assert!((paired(&a, &b).unwrap() - expected).abs() < 1e-11, "{:?} {expected}", paired(&a, &b));
        assert!((expected - 0.0305).abs() < 1e-4, "{expected}");
        assert_eq!((differ(&a, &b), differ(&b, &a)), (Some(true), Some(true)));
        // Without the pairs, the luck of the seeds hides it.
        let shuffled = by_seed(&[30.0, 10.0, 40.0, 20.0]);
        assert_eq!(differ(&a, &shuffled), Some(false));
    }

    #[test]
    fn few_runs_and_equal_runs() {
        let one = Summary::of(&[1.0]).unwrap();
        let two = Summary::of(&[5.0, 5.0, f64::NAN]).unwrap();
        assert_eq!((one.deviation, two.n, two.deviation), (0.0, 2, 0.0));
        assert_eq!(Summary::of(&[f64::INFINITY]), None);
        assert_eq!(paired(&by_seed(&[1.0]), &by_seed(&[2.0])), None, "a single pair says nothing");
        assert_eq!(paired(&by_seed(&[1.0, 2.0]), &by_seed(&[2.0])), None);
        let apart: BySeed = [(7, 1.0), (8, 2.0)].into();
        assert_eq!(paired(&by_seed(&[1.0, 2.0]), &apart), None, "no seed is shared");
        assert_eq!(paired(&by_seed(&[5.0, 6.0]), &by_seed(&[5.0, 6.0])), Some(1.0));
        assert_eq!(paired(&by_seed(&[5.0, 6.0]), &by_seed(&[4.0, 5.0])), Some(0.0));
    }
}
