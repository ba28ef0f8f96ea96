//! What proves a code: its duality gap, bounded so that no rounding makes it too small.
//!
//! For every image t that is zero where nothing was observed and has |d_k^T t| <= w_k for all filters at all positions,
//!
//! ```text
//! P(z) - min P  <=  P(z) - ( x.t - 1/2 ||t||^2 )  =  1/2 ||r - t||^2 + ( sum_k w_k ||z_k||_1 - (D z).t ),     r = x - D z
//! ```
//!
//! The right side is what is computed, in f64. Unlike the left one it has no large terms that cancel: an offset of the data
//! is large in P(z) and in x.t, but not in r - t. What f64 may have rounded away is added ([`Terms::gap`]), by the classical
//! bound: a sum of n products is off by at most n eps times the sum of their magnitudes.
//!
//! A coder offers an image and the scale s that makes it feasible, t = s times the image.

/// Sums over the values that count, of x, of the residual r = x - D z and of an image t.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    /// ||r - t||^2 and (r - t).t.
    apart: f64,
    cross: f64,
    /// ||t||^2, ||r||^2 and ||x||^2.
    pub(super) t_t: f64,
    pub(super) r_r: f64,
    x_x: f64,
    /// (D z).t.
    estimate_t: f64,
    /// max |t|.
    pub(super) peak: f64,
    /// How many values were summed.
    count: usize,
}

/// What the bound on rounding needs to know of a code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// sum_k w_k ||z_k||_1: what the code pays.
    pub(super) penalty: f64,
    /// At least sum_k ||d_k|| ||z_k||_1.
    pub(super) mass: f64,
    pub(super) nonzeros: usize,
    /// Taps of a filter, over all channels.
    pub(super) taps: usize,
}

impl Terms {
    /// Adds one value; `estimate` is (D z) there.
    #[inline(always)]
    pub(super) fn add(&mut self, x: f64, estimate: f64, r: f64, t: f64) {
        let apart = r - t;
        self.apart += apart * apart;
        self.cross += apart * t;
        self.t_t += t * t;
        self.r_r += r * r;
        self.x_x += x * x;
        self.estimate_t += estimate * t;
        self.peak = self.peak.max(t.abs());
        self.count += 1;
    }

    /// Adds a value that is zero in the sample and `estimate` in its reconstruction, as an elastic net has one per coefficient.
    /// The dual point is the residual there, without rounding; filters do not see it.
    pub(super) fn add_square(&mut self, estimate: f64) {
        let peak = self.peak;
        self.add(0.0, estimate, -estimate, -estimate);
        self.peak = peak;
    }

    /// The sums over two parts.
    pub(super) fn merge(&self, other: &Terms) -> Terms {
        Terms {
            apart: self.apart + other.apart,
            cross: self.cross + other.cross,
            t_t: self.t_t + other.t_t,
            r_r: self.r_r + other.r_r,
            x_x: self.x_x + other.x_x,
            estimate_t: self.estimate_t + other.estimate_t,
            peak: self.peak.max(other.peak),
            count: self.count + other.count,
        }
    }

    /// P(z).
    pub(super) fn objective(&self, code: &Weight) -> f64 {
        0.5 * self.r_r + code.penalty
    }

    /// A bound on P(z) - min P from the dual point s t, which must be feasible; at most P(z), which s = 0 proves.
    pub(super) fn gap(&self, s: f64, code: &Weight) -> f64 {
        // r - s t = (r - t) + (1 - s) t
        let rest = 1.0 - s;
        let distance = 0.5 * self.apart + rest * self.cross + 0.5 * rest * rest * self.t_t;
        let gap = distance.max(0.0) + (code.penalty - s * self.estimate_t) + self.rounding(s, code);
        let objective = self.objective(code);
        // Also if it is no number.
        if gap < objective { gap.max(0.0) } else { objective }
    }

    /// The bound on min P that a gap proves, rounded down.
    pub(super) fn lower_bound(&self, gap: f64, code: &Weight) -> f64 {
        let objective = self.objective(code);
        objective - gap - self.unit(code) * objective
    }

    /// A bound on P(z) - min P from a bound on min P, rounded up.
    pub(super) fn gap_above(&self, lower: f64, code: &Weight) -> f64 {
        let objective = self.objective(code);
        (objective - lower + self.unit(code) * objective).max(0.0)
    }

    /// How far a sum over all values or over all atoms may be off, relative to the sum of the magnitudes.
    fn unit(&self, code: &Weight) -> f64 {
        f64::EPSILON * (self.count + code.nonzeros + code.taps) as f64
    }

    /// How far the sums of [`Terms::gap`] may be off. Without a code there is nothing but the distance, whose error is
    /// relative and smaller than that of the objective that it is held against.
    fn rounding(&self, s: f64, code: &Weight) -> f64 {
        if code.nonzeros == 0 {
            return 0.0;
        }
        let (x, t) = (self.x_x.sqrt(), self.t_t.sqrt());
        let apart = self.apart.sqrt() + (1.0 - s) * t;
        // An atom meets no more of t than lies under a filter.
        let window = t.min((code.taps as f64).sqrt() * self.peak);
        self.unit(code) * (code.penalty + (x + code.mass) * apart + s * (code.mass * window + x * t))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An offset of 1e8 leaves nothing of a gap of 1e-3 in P(z) - D(t), and all of it here.
    #[test]
    fn offsets_cost_no_digits() {
        let (offset, estimate, s) = (1e8, [0.5, -0.5, 0.25, -0.25], 1.0 - 1e-12);
        let mut terms = Terms::default();
        for (i, e) in estimate.into_iter().enumerate() {
            let x = offset + i as f64;
            terms.add(x, e, x - e, x - e);
        }
        let r: Vec<f64> = estimate.iter().enumerate().map(|(i, e)| offset + i as f64 - e).collect();
        let code = Weight { penalty: 0.75, mass: 1.5, nonzeros: 2, taps: 2 };
        let r_r: f64 = r.iter().map(|r| r * r).sum();
        let estimate_r: f64 = estimate.iter().zip(&r).map(|(e, r)| e * r).sum();
        let expected = 0.5 * (1.0 - s) * (1.0 - s) * r_r + 0.75 - s * estimate_r;
        let gap = terms.gap(s, &code);
        assert!(gap >= expected && gap < expected + 1e-12 * terms.objective(&code), "{gap} {expected}");
    }

    #[test]
    fn nothing_is_promised_of_what_is_no_number() {
        let mut terms = Terms::default();
        terms.add(1.0, f64::NAN, 1.0, 1.0);
        let code = Weight { penalty: 2.0, mass: 2.0, nonzeros: 1, taps: 1 };
        assert_eq!(terms.gap(0.5, &code), 2.5);
    }
}
