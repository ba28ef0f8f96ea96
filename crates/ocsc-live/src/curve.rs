//! Curves of any length in a bounded number of points.

use serde::Serialize;

/// A curve never has more points than this.
const MOST: usize = 512;

/// An evaluation of the test set: samples, learning seconds, mean objective, mean PSNR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TestPoint(pub f64, pub f64, pub f64, pub Option<f64>);

/// The training curve. A point stands for one step at first; whenever there are too many points, neighbours become one.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Samples, seconds, objective, gap.
    points: Vec<[f64; 4]>,
    /// Steps of a point are two to this power.
    halvings: u32,
    /// The steps that do not make a point yet: their sum of objectives, worst gap and number.
    open: (f64, f64, u64),
    /// Samples and seconds after the last step.
    last: (f64, f64),
}

impl Curve {
    /// Adds a step: samples and learning seconds after it, its mean objective and worst gap. Values that are not finite are left
    /// out.
    pub fn push(&mut self, samples: usize, seconds: f64, objective: f64, gap: f64) {
        if !(objective.is_finite() && seconds.is_finite()) {
            return;
        }
        self.last = (samples as f64, seconds);
        let (sum, worst, count) = self.open;
        self.open = (sum + objective, worst.max(gap), count + 1);
        if self.open.2 < 1 << self.halvings {
            return;
        }
        self.points.extend(self.open_point());
        self.open = Default::default();
        if self.points.len() >= MOST {
            self.points = self.points.chunks(2).map(merged).collect();
            self.halvings += 1;
        }
    }

    /// Returns the points, the last of which may stand for fewer steps.
    pub fn points(&self) -> Vec<[f64; 4]> {
        self.points.iter().copied().chain(self.open_point()).collect()
    }

    /// Returns the point of the steps that do not make a whole one.
    fn open_point(&self) -> Option<[f64; 4]> {
        let (sum, worst, count) = self.open;
        (count > 0).then(|| [self.last.0, self.last.1, sum / count as f64, worst])
    }
}

/// Returns one point for a pair: where the later one is, the mean objective and the worst gap.
fn merged(pair: &[[f64; 4]]) -> [f64; 4] {
    match pair {
        [a, b] => [b[0], b[1], (a[2] + b[2]) / 2.0, a[3].max(b[3])],
        _ => pair[0],
    }
}

/// Drops every second evaluation but the last once there are too many.
pub(crate) fn thin(tests: &mut Vec<TestPoint>) {
    if tests.len() >= MOST {
        let last = tests.len() - 1;
        let mut i = 0;
        tests.retain(|_| {
            i += 1;
            i % 2 == 0 || i - 1 == last
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_few_points_that_keep_its_mean_and_worst_gap() {
        let mut curve = Curve::default();
        let steps = 100_000;
        for i in 1..=steps {
            curve.push(i, i as f64, i as f64, if i == 777 { 0.5 } else { 0.1 });
        }
        let points = curve.points();
        assert!((MOST / 2..=MOST).contains(&points.len()), "{}", points.len());
        assert_eq!(points.last().unwrap()[0], steps as f64);
        assert!(points.is_sorted_by(|a, b| a[0] < b[0] && a[2] < b[2]));
        assert_eq!(points.iter().map(|p| p[3]).fold(0.0, f64::max), 0.5);
        curve.push(1, 1.0, f64::NAN, 0.0);
        assert_eq!(curve.points(), points, "a step without an objective is left out");
    }

    #[test]
    fn tests_are_thinned_and_the_last_one_stays() {
        let mut tests = Vec::new();
        for i in 0..5000 {
            tests.push(TestPoint(i as f64, 0.0, 1.0, None));
            thin(&mut tests);
            assert!(tests.len() < MOST);
            assert_eq!(tests.last().unwrap().0, i as f64);
        }
    }
}
