//! Filters that stand where they should: energy in the middle, and no shifted copies of each other.
//!
//! The objective does not know where in its window a pattern is: a filter moved by tau with its codes moved by -tau explains the
//! same, until the pattern leaves the window. So a learner may end with several filters that are one pattern at several places,
//! each cut at another edge, and with patterns half outside. With
//! [`BlockDescentConfig::recenter`](super::BlockDescentConfig::recenter) two things are done about that, every [`EVERY`]
//! updates, before the sweep: at updates 15, 25, 35 and so on. Runs often end at a multiple of ten, and a filter that was just
//! replaced should have learned a little by then.
//!
//! **Copies.** Filters k and l are copies if their largest normalised cross-correlation over all shifts tau, of either sign,
//!
//! ```text
//! max over tau  | sum_s d_k(s) d_l(s - tau) | / ( ||d_k|| ||d_l|| )
//! ```
//!
//! is at least [`COPY`]. Then each explains 0.9^2 = 81 % of the other's energy: what the second adds is a fit to a little
//! jitter, for the price of a filter. The threshold was first 0.95, and was lowered after a look at one electrocardiogram (six
//! filters of 120 values from patches, beta ratio 0.5): uncentred, its five most similar pairs have 0.85 to 0.91, and with
//! 0.95 two centred pairs of 0.92 and 0.93 stayed. It was tried on no other data. The one whose codes have less energy is replaced by a badly explained patch, as filters
//! are that no code uses (`reseed.rs`), and its statistics are forgotten. A filter has [`EVERY`] updates since its last seeding
//! to become something else. A filter that learns gives way to a fixed one.
//!
//! **Centring.** With the energy's centre c = sum_s s |d(s)|^2 / ||d||^2, the filter moves by tau = round(middle - c), if that is
//! more than [`FAR`] of its length along some axis; what leaves the window is lost, and zeros come in. Fixed filters stay.
//!
//! **Statistics.** They follow a move: with d'(s) = d(s - tau) and z'(p) = z(p + tau),
//!
//! ```text
//! phi'_kl(t) = phi_kl(t - tau) for l != k,   phi'_kk = phi_kk,   psi'_k(s) = psi_k(s - tau)
//! ```
//!
//! as far as the window of lags was kept (`statistics/shift.rs`); what is not known of the new edge is zero until codes at the
//! new place bring it. That is why moves within [`FAR`] are not made: they cost a little knowledge for nothing. Forgetting the
//! filter instead would lose all of it, and leave what it explained to the others.
//!
//! All is decided by the dictionary before the sweep and by the number of the update, so that resumed runs go on bit for bit,
//! and the members of a team, who have the same dictionary then, decide alike.

use crate::constraint::Constraint;
use crate::statistics::{Lags, moved, moved_rows};
use crate::{Dictionary, Real, Shape};
use rayon::prelude::*;

/// Updates between two looks.
pub(super) const EVERY: usize = 10;
/// From this normalised cross-correlation on, filters are copies.
const COPY: f64 = 0.9;
/// Energy may be off the middle by this part of a filter's length.
const FAR: f64 = 1.0 / 16.0;

/// Returns whether update `t` looks at where filters stand.
pub(super) fn is_due(t: usize) -> bool {
    t > EVERY && t % EVERY == EVERY / 2
}

/// Returns the filters to be replaced because they are copies of others that stay, in ascending order. `energies` are those of
/// the filters' codes, `is_new` says which filters are too young to be judged.
pub(super) fn copies<T: Real>(
    dictionary: &Dictionary<T>,
    constraint: &Constraint,
    energies: &[f64],
    is_new: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let n = dictionary.n_filters();
    // Those that stay come first: fixed ones, then by energy; equals by number.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| {
        let rank = |k: usize| (!constraint.is_fixed(k), -energies[k], k);
        let ((a_learns, a_energy, a), (b_learns, b_energy, b)) = (rank(*a), rank(*b));
        a_learns.cmp(&b_learns).then(a_energy.total_cmp(&b_energy)).then(a.cmp(&b))
    });
    let mut kept: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for k in order {
        let may_go = !constraint.is_fixed(k) && !is_new(k);
        let is_copy = |l: &usize| similarity(dictionary.filter(k), dictionary.filter(*l), dictionary.shape()) >= COPY;
        match may_go && kept.par_iter().any(is_copy) {
            true => found.push(k),
            false => kept.push(k),
        }
    }
    found.sort_unstable();
    found
}

/// Returns the largest normalised cross-correlation of two filters over all shifts, of either sign; 0 for filters of zeros.
fn similarity<T: Real>(a: &[T], b: &[T], shape: Shape) -> f64 {
    let norm = |d: &[T]| d.iter().map(|v| v.f64().powi(2)).sum::<f64>().sqrt();
    let norms = norm(a) * norm(b);
    if norms <= 0.0 {
        return 0.0;
    }
    let reach = shape.spatial().map(|n| n as isize - 1);
    let shifts = (-reach[0]..=reach[0])
        .flat_map(|z| (-reach[1]..=reach[1]).flat_map(move |y| (-reach[2]..=reach[2]).map(move |x| [z, y, x])));
    shifts.map(|shift| product(a, b, shape, shift).abs()).fold(0.0, f64::max) / norms
}

/// Returns sum over s of a(s) b(s - shift), rows at a time.
fn product<T: Real>(a: &[T], b: &[T], shape: Shape, [z, y, x]: [isize; 3]) -> f64 {
    let mut sum = 0.0;
    let (to, from) = (x.max(0) as usize, (-x).max(0) as usize);
    let width = shape.width - x.unsigned_abs();
    for (row, other) in moved_rows(shape, [z, y]) {
        let (a, b) = (&a[row * shape.width + to..][..width], &b[other * shape.width + from..][..width]);
        sum += a.iter().zip(b).map(|(a, b)| a.f64() * b.f64()).sum::<f64>();
    }
    sum
}

/// Moves the filters whose energy is off the middle, and their statistics; returns how many.
pub(super) fn center<T: Real>(lags: &mut Lags<T>, dictionary: &mut Dictionary<T>, constraint: &Constraint) -> usize {
    let (shape, len) = (dictionary.shape(), dictionary.shape().len());
    let mut count = 0;
    for k in 0..dictionary.n_filters() {
        let shift = shift(dictionary.filter(k), shape);
        if constraint.is_fixed(k) || shift == [0; 3] {
            continue;
        }
        let mut filter = moved(dictionary.filter(k), shape, shift);
        constraint.project(k, &mut filter);
        dictionary.data_mut()[k * len..][..len].copy_from_slice(&filter);
        lags.shift(k, shift);
        count += 1;
    }
    count
}

/// Returns by how much a filter is to be moved along (depth, height, width); zeros if it stands well enough.
fn shift<T: Real>(filter: &[T], shape: Shape) -> [isize; 3] {
    let axes = shape.spatial();
    let (mut energy, mut moments) = (0.0, [0.0; 3]);
    for (i, v) in filter.iter().enumerate() {
        let place = [i / (axes[1] * axes[2]) % axes[0], i / axes[2] % axes[1], i % axes[2]];
        let squared = v.f64().powi(2);
        energy += squared;
        moments.iter_mut().zip(place).for_each(|(m, at)| *m += squared * at as f64);
    }
    if energy <= 0.0 || !energy.is_finite() {
        return [0; 3];
    }
    let off: [f64; 3] = std::array::from_fn(|a| (axes[a] as f64 - 1.0) / 2.0 - moments[a] / energy);
    match (0..3).any(|a| off[a].abs() > (FAR * axes[a] as f64).max(0.5)) {
        true => off.map(|off| off.round() as isize),
        false => [0; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape { channels: 2, depth: 2, height: 3, width: 5 }
    }

    fn number(i: usize) -> f64 {
        (1.3 * (i * i + 1) as f64).sin()
    }

    /// The value at a place of a channel; zero outside.
    fn at(values: &[f64], c: usize, place: [isize; 3]) -> f64 {
        let (s, axes) = (shape(), shape().spatial());
        let inside = (0..3).all(|a| (0..axes[a] as isize).contains(&place[a]));
        let [z, y, x] = place.map(|p| p as usize);
        if inside { values[((c * s.depth + z) * s.height + y) * s.width + x] } else { 0.0 }
    }

    fn places() -> impl Iterator<Item = (usize, [isize; 3])> {
        (0..shape().len()).map(|i| {
            let s = shape();
            let place = [i / (s.height * s.width) % s.depth, i / s.width % s.height, i % s.width];
            (i / s.pixels(), place.map(|p| p as isize))
        })
    }

    #[test]
    fn moves_and_products_are_those_of_their_definitions() {
        let values: Vec<f64> = (0..shape().len()).map(number).collect();
        let others: Vec<f64> = (0..shape().len()).map(|i| number(i + 77)).collect();
        for shift in [[0, 0, 0], [1, 0, 0], [0, -2, 3], [-1, 1, -4], [1, 2, 4], [0, 0, 5], [2, 0, 0]] {
            let from = |p: [isize; 3]| std::array::from_fn(|a| p[a] - shift[a]);
            let expected: Vec<f64> = places().map(|(c, p)| at(&values, c, from(p))).collect();
            assert_eq!(moved(&values, shape(), shift), expected);
            if shift[2] < 5 {
                let sum: f64 = places().map(|(c, p)| at(&others, c, p) * at(&values, c, from(p))).sum();
                assert!((product(&others, &values, shape(), shift) - sum).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_moved_filter_is_a_copy_and_moves_back() {
        let line = Shape { channels: 1, depth: 1, height: 1, width: 31 };
        let bump = |middle: f64| -> Vec<f64> {
            (0..31).map(|i| (-(i as f64 - middle).powi(2) / 8.0).exp() * (i as f64 - middle)).collect()
        };
        let negative: Vec<f64> = bump(21.0).iter().map(|v| -2.0 * v).collect();
        assert!(similarity(&bump(9.0), &negative, line) > 0.999);
        let wide: Vec<f64> = (0..31).map(|i| (-(i as f64 - 15.0).powi(2) / 30.0).exp()).collect();
        assert!(similarity(&bump(9.0), &wide, line) < 0.9);
        assert_eq!(similarity(&bump(9.0), &[0.0; 31], line), 0.0);
        assert_eq!(shift(&bump(9.0), line), [0, 0, 6]);
        assert_eq!(shift(&bump(16.0), line), [0; 3], "one place off the middle is near enough");
        assert_eq!(shift(&[0.0; 31], line), [0; 3]);
        let back = moved(&bump(9.0), line, [0, 0, 6]);
        // All but the tail that was outside.
        assert!(back.iter().zip(bump(15.0)).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}
