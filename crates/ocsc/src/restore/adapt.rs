//! Going on learning from the image at hand: the filters that describe its patches with the fewest coefficients.
//!
//! ```text
//! min over D   sum_p 1/2 || x_p - D c_p ||^2     with ||d_k|| = 1, for the codes c_p of random patches
//! ```
//!
//! In every round, random patches are coded by orthogonal matching pursuit up to the noise, A = sum c c^T and B = sum c x^T are
//! gathered, and each filter in turn is set to its best value with the others fixed (block coordinate descent, as in Mairal,
//! Bach, Ponce, Sapiro, "Online learning for matrix factorization and sparse coding", JMLR 11, 2010). Filters that nothing uses,
//! and copies of others, give way to patches that were coded badly.

use super::atoms::{Atoms, normalise};
use super::frame::Frame;
use super::pursuit::{Group, Work};
use crate::monitor::{Monitor, check_wanted};
use crate::{Result, random};
use rand::RngExt;
use rayon::prelude::*;

/// Patches that one thread codes at a time.
const CHUNK: usize = 256;
/// Rounds of block coordinate descent for one set of codes.
const SWEEPS: usize = 3;
/// The most filters of a patch of an image that is restored.
pub(super) const MOST: usize = 24;
/// Filters with a larger inner product are copies of each other.
const COPY: f32 = 0.99;
/// Of the patches that were coded worst, every such one may become a filter: neighbours are much alike.
const SPREAD: usize = 4;

/// How to learn.
pub(super) struct Adapt {
    /// The root mean square that residuals may have.
    pub(super) error: f32,
    pub(super) rounds: usize,
    /// The most filters of a patch.
    pub(super) most: usize,
    /// Patches in a round.
    pub(super) patches: usize,
    pub(super) seed: u64,
    /// The first round's number, so that calls that follow each other see other patches.
    pub(super) first: usize,
}

/// The code of one patch.
struct Coded {
    patch: Vec<f32>,
    code: Vec<(usize, f32)>,
    error: f32,
}

impl Adapt {
    /// Improves the filters for the patches of `images`.
    pub(super) fn run(&self, atoms: &mut Atoms, images: &[(Frame, &[f32])], monitor: &dyn Monitor) -> Result<()> {
        for round in self.first..self.first + self.rounds {
            let coded = self.code(atoms, images, round, monitor)?;
            let unused = update(atoms, &coded);
            replace(atoms, &coded, &unused);
            atoms.prepare();
        }
        Ok(())
    }

    /// Codes random patches.
    fn code(
        &self,
        atoms: &Atoms,
        images: &[(Frame, &[f32])],
        round: usize,
        monitor: &dyn Monitor,
    ) -> Result<Vec<Coded>> {
        let mut rng = random::stream(self.seed, random::visits(round));
        let places: Vec<(usize, [usize; 2])> = (0..self.patches)
            .map(|_| {
                let image = rng.random_range(0..images.len());
                let frame = images[image].0;
                (image, [rng.random_range(0..frame.n_rows()), rng.random_range(0..frame.n_columns())])
            })
            .collect();
        let n = atoms.shape.len();
        let limit = self.error * self.error * n as f32;
        let some = |places: &[(usize, [usize; 2])]| {
            check_wanted(monitor)?;
            let (mut work, mut means) = (Work::default(), vec![0.0; atoms.shape.channels]);
            let one = |(image, place): &(usize, [usize; 2])| {
                let (frame, data) = images[*image];
                let mut patch = vec![0.0; n];
                frame.cut(data, *place, &mut patch);
                frame.level(&mut patch, &mut means);
                Group { atoms, patches: &patch, limit, most: self.most }.code(&mut work);
                let code = work.support.iter().copied().zip(work.coefficients.iter().copied()).collect();
                Coded { patch, code, error: work.error }
            };
            Ok(places.iter().map(one).collect())
        };
        let coded: Vec<Result<Vec<Coded>>> = places.par_chunks(CHUNK).map(some).collect();
        Ok(coded.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// Sets each filter to its best value, and returns those that no patch uses.
fn update(atoms: &mut Atoms, coded: &[Coded]) -> Vec<usize> {
    let (n, k) = (atoms.shape.len(), atoms.len());
    let (mut a, mut b) = (vec![0.0_f32; k * k], vec![0.0_f32; k * n]);
    for Coded { patch, code, .. } in coded {
        for (i, c) in code {
            b[i * n..][..n].iter_mut().zip(patch).for_each(|(b, x)| *b += c * x);
            code.iter().for_each(|(j, other)| a[i * k + j] += c * other);
        }
    }
    let mut gradient = vec![0.0_f32; n];
    for _ in 0..SWEEPS {
        for i in (0..k).filter(|i| a[i * k + i] > 0.0) {
            gradient.copy_from_slice(&b[i * n..][..n]);
            for (filter, a) in atoms.filters.chunks_exact(n).zip(&a[i * k..][..k]).filter(|(_, a)| **a != 0.0) {
                gradient.iter_mut().zip(filter).for_each(|(g, d)| *g -= a * d);
            }
            let own = a[i * k + i];
            let mut filter: Vec<f32> = atoms.filter(i).iter().zip(&gradient).map(|(d, g)| d + g / own).collect();
            if normalise(&mut filter, atoms.shape.pixels()) {
                atoms.filters[i * n..][..n].copy_from_slice(&filter);
            }
        }
    }
    (0..k).filter(|i| a[i * k + i] <= 0.0).collect()
}

/// Puts patches that were coded badly in the place of filters that are unused or copies of earlier ones.
fn replace(atoms: &mut Atoms, coded: &[Coded], unused: &[usize]) {
    let (n, k) = (atoms.shape.len(), atoms.len());
    atoms.prepare();
    let is_copy = |i: usize| (0..i).any(|j| atoms.gram[i * k + j].abs() > COPY);
    let free: Vec<usize> = (0..k).filter(|i| unused.contains(i) || is_copy(*i)).collect();
    let mut worst: Vec<usize> = (0..coded.len()).collect();
    worst.sort_by(|i, j| coded[*j].error.total_cmp(&coded[*i].error).then(i.cmp(j)));
    for (i, p) in free.into_iter().zip(worst.into_iter().step_by(SPREAD)) {
        let mut filter = coded[p].patch.clone();
        if normalise(&mut filter, atoms.shape.pixels()) {
            atoms.filters[i * n..][..n].copy_from_slice(&filter);
        }
    }
}
