//! Statistics of codes that were moved: what a filter's lags become when the filter moves within its window.
//!
//! With z'_k(p) = z_k(p + tau), the codes of a filter that was moved by tau,
//!
//! ```text
//! phi'_kl(t) = phi_kl(t - tau) for l != k,   phi'_kk = phi_kk,   psi'_k(s) = psi_k(s - tau)
//! ```
//!
//! Lags and places from outside the window were never kept; zero stands for them. No number exceeds what it was, so the
//! statistics stay plausible (`plausible.rs`).

use super::Lags;
use crate::{Real, Shape};

impl<T: Real> Lags<T> {
    /// Makes the statistics those of filter k and its codes moved by (depth, height, width).
    pub(crate) fn shift(&mut self, k: usize, by: [isize; 3]) {
        let window = self.window().clone();
        let reach = window.reach();
        let axes: Vec<[isize; 3]> = (-reach[0]..=reach[0])
            .flat_map(|z| (-reach[1]..=reach[1]).flat_map(move |y| (-reach[2]..=reach[2]).map(move |x| [z, y, x])))
            .collect();
        for l in (0..self.n_filters()).filter(|l| *l != k) {
            // phi_lk(t) = phi_kl(-t)
            let (row, column, by) = if k < l { (k, l, by) } else { (l, k, by.map(|t| -t)) };
            let old: Vec<T> = self.pair(row, column).collect();
            let mut new = vec![T::zero(); old.len()];
            for lag in &axes {
                let from: [isize; 3] = std::array::from_fn(|a| lag[a] - by[a]);
                if (0..3).all(|a| from[a].abs() <= reach[a]) {
                    new[window.at(*lag)] = old[window.at(from)];
                }
            }
            self.set_pair(row, column, &new);
        }
        let psi = moved(self.unweighted_psi(k), self.filter_shape(), by);
        self.unweighted_psi_mut(k).copy_from_slice(&psi);
    }
}

/// Returns the rows (channel, depth, height) of a filter that a move by (z, y) fills, each with the row that goes there.
pub(crate) fn moved_rows(shape: Shape, [z, y]: [isize; 2]) -> impl Iterator<Item = (usize, usize)> {
    let inside = |n: usize, i: usize, by: isize| i.checked_add_signed(-by).filter(|from| *from < n);
    let rows = shape.channels * shape.depth * shape.height;
    (0..rows).filter_map(move |row| {
        let (c, i, j) = (row / (shape.depth * shape.height), row / shape.height % shape.depth, row % shape.height);
        let (i, j) = (inside(shape.depth, i, z)?, inside(shape.height, j, y)?);
        Some((row, (c * shape.depth + i) * shape.height + j))
    })
}

/// Returns an array like a filter, moved: what leaves it is lost, and zeros come in.
pub(crate) fn moved<T: Real>(values: &[T], shape: Shape, [z, y, x]: [isize; 3]) -> Vec<T> {
    let mut out = vec![T::zero(); values.len()];
    if x.unsigned_abs() >= shape.width {
        return out;
    }
    let (to, from) = (x.max(0) as usize, (-x).max(0) as usize);
    let width = shape.width - x.unsigned_abs();
    for (row, other) in moved_rows(shape, [z, y]) {
        let source = &values[other * shape.width + from..][..width];
        out[row * shape.width + to..][..width].copy_from_slice(source);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Atom, Boundary, Code, Dictionary, Sample};

    /// Against statistics of codes that were moved themselves, where both windows know them.
    #[test]
    fn shifted_statistics_are_those_of_moved_codes() {
        let (filter, shape) =
            (Shape { channels: 2, ..Shape::image(3, 4) }, Shape { channels: 2, ..Shape::image(9, 10) });
        let number = |i: usize| (1.7 * (i * i + 1) as f64).sin();
        let dictionary = Dictionary::<f64>::random(10, filter, 2, 1).unwrap();
        let sample = Sample::new(shape, (0..shape.len()).map(number).collect()).unwrap();
        let code = |moves: &dyn Fn(usize) -> [isize; 2]| {
            let atoms = (0..200).map(|i| {
                let (k, [y, x]) = (i % 10, [i / 10 * 7 % 9, i * 3 % 10]);
                let [dy, dx] = moves(k);
                // z'(p) = z(p + tau): an atom at q goes to q - tau.
                let [y, x] = [(y as isize - dy).rem_euclid(9), (x as isize - dx).rem_euclid(10)];
                Atom { filter: k as u32, position: (y * 10 + x) as u32, value: number(i) }
            });
            let mut sums: std::collections::BTreeMap<(u32, u32), f64> = Default::default();
            atoms.for_each(|a| *sums.entry((a.filter, a.position)).or_default() += a.value);
            let atoms = sums.into_iter().map(|((filter, position), value)| Atom { filter, position, value }).collect();
            Code::new(10, [1, 9, 10], atoms).unwrap()
        };
        for (k, by) in [(0, [0, 1, -2]), (4, [0, -1, 1]), (9, [0, 2, 3]), (8, [0, 0, 0])] {
            let absorbed = |code: &Code<f64>| {
                let mut lags = Lags::new(10, filter);
                lags.absorb(&sample, code, &dictionary, Boundary::Circular).unwrap();
                lags
            };
            let mut shifted = absorbed(&code(&|_| [0, 0]));
            shifted.shift(k, by);
            let expected = absorbed(&code(&|l| if l == k { [by[1], by[2]] } else { [0, 0] }));
            for (a, b) in (0..10).flat_map(|a| (0..10).map(move |b| (a, b))) {
                for lag in (-2..=2).flat_map(|y| (-3..=3).map(move |x| [0_isize, y, x])) {
                    let sign = isize::from(a == k) - isize::from(b == k);
                    let from: [isize; 3] = std::array::from_fn(|i| lag[i] - sign * by[i]);
                    let known = from[1].abs() <= 2 && from[2].abs() <= 3;
                    let wanted = if known { expected.lag(a, b, lag) } else { 0.0 };
                    assert!((shifted.lag(a, b, lag) - wanted).abs() < 1e-12, "{k} {by:?} {a} {b} {lag:?}");
                }
            }
            for (i, (found, wanted)) in shifted.psi(k).iter().zip(expected.psi(k)).enumerate() {
                let [y, x] = [(i / 4 % 3) as isize - by[1], (i % 4) as isize - by[2]];
                let wanted = if (0..3).contains(&y) && (0..4).contains(&x) { wanted } else { 0.0 };
                assert!((found - wanted).abs() < 1e-12, "{k} {by:?} psi {i}");
            }
        }
    }
}
