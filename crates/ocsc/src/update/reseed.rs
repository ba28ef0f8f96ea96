//! New filters for those that no code uses: the worst-explained patches of the newest samples.
//!
//! **When.** The energy of filter k's codes in the statistics, phi_kk(0), is compared with the mean over filters. A filter
//! is *due* if at least [`PATIENCE`] updates were made since its start or last seeding, and its energy is below
//! [`SHARE`] of what a mean filter gathered in that time, mean * (updates since) / (all updates), or with a constant
//! forgetting the mean times the weight of those updates. Fixed filters never are; copies of other filters may be too
//! (`recenter.rs`).
//!
//! **What.** With the residual r = x - D z of a sample, the energy of r is summed over every window of the filter's shape
//! (circular: also across the edges; otherwise within the sample). The windows of most energy, no two of one sample
//! overlapping, are candidates; a due filter becomes the residual in one of the [`FEW`] worst that are left, drawn at
//! random, made feasible and scaled to unit norm. Among all filters this one has the largest correlation with r there. Residuals are made
//! only if a filter was due before the samples of the update came.
//!
//! **Statistics.** All lags of the filter are set to zero, and so is psi_k: they described codes of the old filter. The
//! objective of the statistics then is exactly that of the codes without this filter's atoms.
//!
//! The draw depends on the seed and the number of the update alone, so a resumed run goes on bit for bit.

use crate::Boundary;
use crate::constraint::Constraint;
use crate::statistics::Lags;
use crate::update::Forgetting;
use crate::{Code, Dictionary, Real, Result, Sample, Shape, random};
use rand::RngExt;

/// Updates that a filter has to prove itself.
const PATIENCE: usize = 10;
/// A filter is unused below this share of the mean energy.
const SHARE: f64 = 1e-4;
/// A new filter is drawn among this many of the worst patches.
const FEW: usize = 4;

/// When filters were seeded, and patches for those that are due.
pub(super) struct Reseed {
    seed: u64,
    /// For every filter, the update that seeded it; 0 for the initial ones.
    seeded: Vec<usize>,
    patches: Vec<Patch>,
}

/// A window of a residual.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Patch {
    pub(crate) energy: f64,
    pub(crate) values: Vec<f64>,
}

impl Reseed {
    pub(super) fn new(seed: u64, n_filters: usize) -> Self {
        Reseed { seed, seeded: vec![0; n_filters], patches: Vec::new() }
    }

    /// For every filter, the update that seeded it.
    pub(super) fn seeded(&self) -> &[usize] {
        &self.seeded
    }

    /// The same, to be restored.
    pub(super) fn seeded_mut(&mut self) -> &mut [usize] {
        &mut self.seeded
    }

    /// The filters that no code uses at update `t`.
    pub(super) fn due<T: Real>(
        &self,
        lags: &Lags<T>,
        t: usize,
        forgetting: Forgetting,
        constraint: &Constraint,
    ) -> Vec<usize> {
        let energies: Vec<f64> = (0..self.seeded.len()).map(|k| lags.energy(k).f64()).collect();
        let mean = energies.iter().sum::<f64>() / energies.len() as f64;
        let is_due = |k: &usize| {
            let age = t.saturating_sub(self.seeded[*k]);
            let is_old = age >= PATIENCE && !constraint.is_fixed(*k);
            is_old && energies[*k] < SHARE * mean * forgetting.share(age, t)
        };
        (0..self.seeded.len()).filter(is_due).collect()
    }

    /// Keeps candidates until the next [`Reseed::replace`].
    pub(super) fn keep(&mut self, patches: Vec<Patch>) {
        self.patches.extend(patches);
    }

    /// Replaces the filters that are due at update `t`, as far as there are patches; returns how many.
    pub(super) fn replace<T: Real>(
        &mut self,
        t: usize,
        due: &[usize],
        constraint: &Constraint,
        lags: &mut Lags<T>,
        dictionary: &mut Dictionary<T>,
    ) -> usize {
        let mut patches = std::mem::take(&mut self.patches);
        if patches.is_empty() {
            return 0;
        }
        patches.sort_by(|a, b| b.energy.total_cmp(&a.energy));
        let mut rng = random::stream(self.seed, random::reseeding(t));
        let mut count = 0;
        let len = dictionary.shape().len();
        for &k in due {
            if patches.is_empty() {
                break;
            }
            let patch = patches.remove(rng.random_range(0..patches.len().min(FEW)));
            let filter = &mut dictionary.data_mut()[k * len..][..len];
            let old = filter.to_vec();
            filter.iter_mut().zip(&patch.values).for_each(|(d, v)| *d = T::of(v / patch.energy.sqrt()));
            if !constraint.start(k, filter) {
                // Nothing of the patch is feasible; the filter is still due at the next update.
                filter.copy_from_slice(&old);
                continue;
            }
            lags.forget(k);
            self.seeded[k] = t;
            count += 1;
        }
        count
    }
}

/// Returns the worst patches of a sample, for `due` filters.
pub(super) fn candidates<T: Real>(
    due: usize,
    sample: &Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
) -> Result<Vec<Patch>> {
    if due == 0 {
        return Ok(Vec::new());
    }
    let (shape, estimate, _) = code.reconstruct_f64(dictionary, boundary)?;
    let mut residual: Vec<f64> = sample.data().iter().zip(estimate).map(|(x, e)| x.f64() - e).collect();
    for (r, _) in residual.iter_mut().zip(sample.mask().into_iter().flatten()).filter(|(_, seen)| !**seen) {
        *r = 0.0;
    }
    let circular = boundary == Boundary::Circular;
    Ok(worst_patches(&residual, shape, dictionary.shape(), circular, due + FEW - 1))
}

/// The windows of most energy, at most `count` and none without any, no two overlapping.
fn worst_patches(residual: &[f64], shape: Shape, filter: Shape, circular: bool, count: usize) -> Vec<Patch> {
    let (axes, sizes) = (shape.spatial(), filter.spatial());
    let mut map = vec![0.0; shape.pixels()];
    for plane in residual.chunks_exact(shape.pixels()) {
        map.iter_mut().zip(plane).for_each(|(m, r)| *m += r * r);
    }
    let mut positions = axes;
    for (axis, size) in sizes.into_iter().enumerate() {
        map = window_sums(&map, &mut positions, axis, size, circular);
    }
    let mut patches = Vec::new();
    while patches.len() < count {
        let Some((at, &energy)) = map.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0))) else {
            break;
        };
        if !(energy > 0.0 && energy.is_finite()) {
            break;
        }
        let place = coordinates(at, positions);
        let values = (0..filter.len()).map(|i| {
            let tap = coordinates(i % filter.pixels(), sizes);
            let [z, y, x] = std::array::from_fn(|a| (place[a] + tap[a]) % axes[a]);
            residual[((i / filter.pixels() * axes[0] + z) * axes[1] + y) * axes[2] + x]
        });
        patches.push(Patch { energy, values: values.collect() });
        for (i, energy) in map.iter_mut().enumerate() {
            let other = coordinates(i, positions);
            let overlaps = |a: usize| {
                let distance = other[a].abs_diff(place[a]);
                distance.min(if circular { axes[a] - distance } else { distance }) < sizes[a]
            };
            if (0..3).all(overlaps) {
                *energy = 0.0;
            }
        }
    }
    patches
}

/// Sums over `size` neighbours along one axis: from each place of a circle, or from each that leaves room.
fn window_sums(map: &[f64], axes: &mut [usize; 3], axis: usize, size: usize, circular: bool) -> Vec<f64> {
    let (n, stride) = (axes[axis], axes[axis + 1..].iter().product::<usize>());
    let count = if circular { n } else { n + 1 - size };
    let mut sums = Vec::with_capacity(map.len() / n * count);
    for part in map.chunks_exact(n * stride) {
        for (first, i) in (0..count).flat_map(|first| (0..stride).map(move |i| (first, i))) {
            sums.push((first..first + size).map(|at| part[at % n * stride + i]).sum());
        }
    }
    axes[axis] = count;
    sums
}

/// (depth, height, width) of a flat index.
fn coordinates(at: usize, axes: [usize; 3]) -> [usize; 3] {
    [at / (axes[1] * axes[2]), at / axes[2] % axes[1], at % axes[2]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against sums over every window, and the definition of overlap; each patch's values have its energy.
    #[test]
    fn worst_patches_are_the_worst_that_do_not_overlap() {
        let image = |channels, height, width| Shape { channels, depth: 1, height, width };
        let deep = |depth, height, width| Shape { channels: 1, depth, height, width };
        for (shape, filter) in [
            (image(1, 9, 11), image(1, 3, 2)),
            (image(2, 5, 7), image(2, 5, 3)),
            (deep(4, 5, 6), deep(2, 3, 2)),
            (image(1, 4, 4), image(1, 4, 4)),
            (image(1, 1, 30), image(1, 1, 7)),
        ] {
            for circular in [true, false] {
                let residual: Vec<f64> = (0..shape.len()).map(|i| (1.7 * (i * i + 1) as f64).sin()).collect();
                let axes = shape.spatial();
                let room = |a: usize| if circular { axes[a] } else { axes[a] + 1 - filter.spatial()[a] };
                let places: Vec<[usize; 3]> = (0..shape.pixels())
                    .map(|i| coordinates(i, axes))
                    .filter(|p| (0..3).all(|a| p[a] < room(a)))
                    .collect();
                let covered = |p: [usize; 3]| -> Vec<usize> {
                    let tap = |i| coordinates(i, filter.spatial());
                    let at = |t: [usize; 3]| std::array::from_fn::<_, 3, _>(|a| (p[a] + t[a]) % axes[a]);
                    (0..filter.pixels()).map(|i| at(tap(i))).map(|[z, y, x]| (z * axes[1] + y) * axes[2] + x).collect()
                };
                let energy = |p: [usize; 3]| -> f64 {
                    let planes = residual.chunks(shape.pixels());
                    planes.map(|plane| covered(p).iter().map(|i| plane[*i].powi(2)).sum::<f64>()).sum()
                };
                let mut left = places;
                let patches = worst_patches(&residual, shape, filter, circular, 5);
                for patch in &patches {
                    let best = left.iter().copied().max_by(|a, b| energy(*a).total_cmp(&energy(*b))).unwrap();
                    assert!((patch.energy - energy(best)).abs() < 1e-12 * patch.energy, "{shape} {filter} {circular}");
                    let sum: f64 = patch.values.iter().map(|v| v * v).sum();
                    assert!((patch.energy - sum).abs() < 1e-12 * sum);
                    left.retain(|p| !covered(*p).iter().any(|i| covered(best).contains(i)));
                }
                assert!(patches.len() == 5 || left.is_empty());
            }
        }
        assert!(worst_patches(&[0.0; 30], Shape::image(5, 6), Shape::image(2, 2), true, 3).is_empty());
    }
}
