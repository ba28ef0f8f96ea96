//! When a coder that iterates to a tolerance looks at its code, and when that ends it.

use super::{Coded, StopRule, relative};
use crate::Real;

/// The stopping rule of one sample, with what it has seen so far.
pub(super) struct Stop {
    rule: StopRule,
    tol: f64,
    best_dual: f64,
    look_again_at: usize,
}

/// What an iteration tells the rule.
pub(super) struct Iterated {
    /// The objective of the code.
    pub(super) objective: f64,
    /// A lower bound on the minimum.
    pub(super) dual_value: f64,
    /// The relative primal and dual residuals.
    pub(super) residuals: [f64; 2],
    /// The relative change of the code.
    pub(super) change: f64,
    /// Whether a small change says anything: the code may stay at zero for the first iterations, which is no sign that it
    /// should.
    pub(super) has_moved: bool,
}

impl Stop {
    pub(super) fn new(rule: StopRule, tol: f64) -> Self {
        Stop { rule, tol, best_dual: f64::NEG_INFINITY, look_again_at: 0 }
    }

    /// Returns whether the code of this iteration is to be certified.
    pub(super) fn is_due(&mut self, iter: usize, step: &Iterated) -> bool {
        self.best_dual = self.best_dual.max(step.dual_value);
        let gap = relative(step.objective - self.best_dual, step.objective);
        match self.rule {
            StopRule::Gap => iter >= self.look_again_at && gap <= self.tol,
            StopRule::Residuals => step.residuals.iter().all(|residual| *residual <= self.tol),
            StopRule::Change => step.change <= self.tol && (step.has_moved || gap <= self.tol),
        }
    }

    /// Returns whether a certified code ends the iterations; if it does not, the next look is put off a little.
    pub(super) fn accepts<T: Real>(&mut self, iter: usize, coded: &Coded<T>) -> bool {
        self.look_again_at = iter + (iter / 20).max(2);
        self.rule != StopRule::Gap || coded.relative_gap() <= self.tol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iterated(objective: f64, dual_value: f64) -> Iterated {
        Iterated { objective, dual_value, residuals: [1.0, 1.0], change: 1.0, has_moved: true }
    }

    #[test]
    fn the_gap_is_that_to_the_best_dual_value() {
        let mut stop = Stop::new(StopRule::Gap, 0.1);
        assert!(!stop.is_due(1, &iterated(2.0, 0.95)));
        assert!(stop.is_due(2, &iterated(1.0, 0.5)));
        assert!(!stop.is_due(3, &iterated(1.1, 0.5)));
    }

    #[test]
    fn the_other_rules_look_at_what_they_are_named_after() {
        let far = || iterated(2.0, 0.0);
        let mut stop = Stop::new(StopRule::Residuals, 0.1);
        assert!(!stop.is_due(1, &Iterated { residuals: [0.05, 0.2], ..far() }));
        assert!(stop.is_due(2, &Iterated { residuals: [0.05, 0.1], ..far() }));
        let mut stop = Stop::new(StopRule::Change, 0.1);
        assert!(!stop.is_due(1, &Iterated { change: 0.0, has_moved: false, ..far() }));
        assert!(stop.is_due(2, &Iterated { change: 0.05, ..far() }));
        assert!(stop.is_due(3, &Iterated { change: 0.0, has_moved: false, ..iterated(1.0, 1.0) }));
    }
}
