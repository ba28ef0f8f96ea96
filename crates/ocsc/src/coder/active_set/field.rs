//! Weights of single coefficients in the penalty: an array of the code's shape, by which the weights of the filters are
//! multiplied; and what the squares of an elastic net take off the correlations of the atoms that are not zero.

use super::descend::Active;
use super::frame::{Frame, LANES};
use crate::{Error, Real, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// One over the weight of every coefficient, (K, lines, columns padded to whole blocks); zero where it is infinite.
pub(super) struct Field<T> {
    inverse: Vec<T>,
    weights: Arc<[T]>,
    positions: usize,
    width: usize,
    padded: usize,
    /// The smallest weight.
    pub(super) lightest: f64,
}

impl<T: Real> Field<T> {
    /// Takes weights (filter, depth, height, width).
    pub(super) fn new(frame: &Frame, n_filters: usize, weights: &Arc<[T]>) -> Result<Self> {
        if weights.len() != n_filters * frame.n_positions() {
            let [depth, height, width] = frame.code;
            let shape = if depth > 1 { format!("{depth} x {height} x {width}") } else { format!("{height} x {width}") };
            let expected = format!("{n_filters} x {shape} numbers, the shape of the code");
            return Err(Error::invalid("weights of coefficients", expected, weights.len()));
        }
        Ok(Field::of(frame, weights.clone()))
    }

    fn of(frame: &Frame, weights: Arc<[T]>) -> Self {
        let (positions, width) = (frame.n_positions(), frame.positions[2]);
        let padded = width.next_multiple_of(LANES);
        let lines = weights.chunks_exact(positions).flat_map(|filter| filter.chunks(width));
        let mut inverse = vec![T::zero(); weights.len() / positions * frame.n_lines() * padded];
        for (out, line) in inverse.chunks_exact_mut(padded).zip(lines) {
            out.iter_mut().zip(line).for_each(|(o, w)| *o = T::of(1.0 / w.f64()));
        }
        let lightest = weights.iter().fold(f64::INFINITY, |m, w| m.min(w.f64()));
        Field { inverse, weights, positions, width, padded, lightest }
    }

    /// The same in f64.
    pub(super) fn wide(&self, frame: &Frame) -> Field<f64> {
        Field::of(frame, self.weights.iter().map(|w| w.f64()).collect())
    }

    /// The weight of a coefficient.
    pub(super) fn weight(&self, filter: usize, position: usize) -> f64 {
        self.weights[filter * self.positions + position].f64()
    }

    /// One over the weights of a filter on a line, from a column on.
    #[inline(always)]
    pub(super) fn inverse(&self, filter: usize, line: usize, column: usize) -> &[T] {
        &self.inverse[(filter * self.positions.div_ceil(self.width) + line) * self.padded + column..]
    }
}

/// mu z_j / w_j of the atoms that are not zero, by line and filter: an elastic net is the lasso with one more value for each
/// coefficient, zero in the sample and sqrt(mu) z_j in its reconstruction, so the correlation of j with the residual is
/// d_j^T r - mu z_j.
pub(super) struct Ridge {
    by_line: Vec<Vec<Pull>>,
    by_place: HashMap<(u32, u32), f64>,
    /// The largest of them.
    pub(super) peak: f64,
}

/// What is taken off one correlation, in units of its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pull {
    pub(super) filter: u32,
    pub(super) column: u32,
    pub(super) amount: f64,
}

impl Ridge {
    /// Takes the atoms that are not zero; `weight` is the one of an atom in the penalty.
    pub(super) fn new<'a, T: Real>(
        frame: &Frame,
        mu: f64,
        atoms: impl Iterator<Item = &'a Active<T>>,
        weight: impl Fn(&Active<T>) -> f64,
    ) -> Option<Self> {
        if mu == 0.0 {
            return None;
        }
        let (mut by_line, mut by_place, mut peak) = (vec![Vec::new(); frame.n_lines()], HashMap::new(), 0.0_f64);
        for a in atoms.filter(|a| a.value != T::zero()) {
            let pull = mu * a.value.f64();
            let amount = pull / weight(a);
            by_line[a.line as usize].push(Pull { filter: a.filter, column: a.column, amount });
            by_place.insert((a.filter, a.line * frame.positions[2] as u32 + a.column), pull);
            peak = peak.max(amount.abs());
        }
        by_line.iter_mut().for_each(|line| line.sort_unstable_by_key(|p| (p.filter, p.column)));
        Some(Ridge { by_line, by_place, peak })
    }

    /// What is taken off the correlations of a line, by filter.
    pub(super) fn line(&self, line: usize) -> &[Pull] {
        &self.by_line[line]
    }

    /// mu z of a coefficient.
    pub(super) fn pull(&self, filter: usize, position: usize) -> f64 {
        self.by_place.get(&(filter as u32, position as u32)).copied().unwrap_or(0.0)
    }
}

/// The pulls of one filter.
#[inline(always)]
pub(super) fn of_filter(pulls: &[Pull], filter: usize) -> &[Pull] {
    if pulls.is_empty() {
        return pulls;
    }
    let first = pulls.partition_point(|p| (p.filter as usize) < filter);
    let count = pulls[first..].partition_point(|p| p.filter as usize == filter);
    &pulls[first..][..count]
}

/// Takes what pulls off `strengths`, signed correlations in units of their weights at the columns from `x` on.
#[inline(always)]
pub(super) fn take_off<T: Real>(pulls: &[Pull], x: usize, strengths: &mut [T]) {
    for pull in pulls {
        let at = (pull.column as usize).wrapping_sub(x);
        if at < strengths.len() {
            strengths[at] -= T::of(pull.amount);
        }
    }
}
