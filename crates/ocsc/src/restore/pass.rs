//! One pass over an image: every patch of a lattice is coded, alone or with its likes, and the estimates are averaged.
//!
//! The lattice of positions with a stride and an offset of Simon and Elad ("Rethinking the CSC model for natural images", NeurIPS
//! 2019) splits convolutional coding into patches that do not overlap; all offsets together are all patches, averaged. Coding
//! similar patches with one support is the simultaneous sparse coding of Mairal, Bach, Ponce, Sapiro, Zisserman ("Non-local
//! sparse models for image restoration", ICCV 2009).
//!
//! Bands of rows are coded by as many threads as there are and summed in their order, so the number of threads has no influence.
//! Memory: the image, its sums and weights, and [`AT_ONCE`] bands.

use super::atoms::Atoms;
use super::frame::{Band, Frame};
use super::matching::Search;
use super::pursuit::{Group, Work};
use super::refit::Fit;
use crate::Result;
use crate::monitor::{Monitor, check_wanted};
use rayon::prelude::*;

/// Rows of the lattice in a band.
const BAND: usize = 16;
/// Bands that are held at once.
const AT_ONCE: usize = 16;

/// How an image is coded.
pub(super) struct Pass<'a> {
    pub(super) frame: Frame,
    pub(super) atoms: &'a Atoms,
    /// What is coded.
    pub(super) image: &'a [f32],
    /// What tells which patches are alike.
    pub(super) guide: &'a [f32],
    /// How much each value of the image counts once the supports are known; all the same if absent.
    pub(super) trust: Option<&'a [f32]>,
    /// The root mean square that residuals may have.
    pub(super) error: f32,
    /// The most filters of a patch.
    pub(super) most: usize,
    /// Whether what these leave stays, as far as it is more than residuals may have.
    pub(super) keeps_rest: bool,
    /// The distance of the lattice's positions.
    pub(super) stride: usize,
    /// How many patches are coded together.
    pub(super) members: usize,
    /// How far away they may be.
    pub(super) reach: usize,
}

impl Pass<'_> {
    /// Returns the average of all estimates, of the image's shape.
    pub(super) fn run(&self, monitor: &dyn Monitor) -> Result<Vec<f32>> {
        let rows = Frame::lattice(self.frame.n_rows(), self.stride);
        let columns = Frame::lattice(self.frame.n_columns(), self.stride);
        let mut all = Band::new(self.frame, 0..self.frame.image.height);
        let bands: Vec<&[usize]> = rows.chunks(BAND).collect();
        for some in bands.chunks(AT_ONCE) {
            let coded: Vec<Result<Band>> = some.par_iter().map(|rows| self.band(rows, &columns, monitor)).collect();
            for band in coded {
                band?.add_to(&mut all);
            }
        }
        Ok(all.means())
    }

    /// Codes the patches of some rows of the lattice.
    fn band(&self, rows: &[usize], columns: &[usize], monitor: &dyn Monitor) -> Result<Band> {
        let reach = if self.members > 1 { self.reach } else { 0 };
        let last = (rows[rows.len() - 1] + reach + self.frame.patch.height).min(self.frame.image.height);
        let mut band = Band::new(self.frame, rows[0].saturating_sub(reach)..last);
        let mut room = Room::new(self.frame);
        for y in rows {
            check_wanted(monitor)?;
            for x in columns {
                self.group([*y, *x], &mut room, &mut band);
            }
        }
        Ok(band)
    }

    /// Codes the patch at a place together with its likes.
    fn group(&self, place: [usize; 2], room: &mut Room, band: &mut Band) {
        let (frame, n, channels) = (self.frame, self.frame.patch.len(), self.frame.patch.channels);
        let Room { found, work, fit, patches, means, estimate, whole, weights } = room;
        if self.members > 1 {
            let (reach, members) = (self.reach, self.members);
            Search { frame, image: self.guide, place, reach, members, found, patch: estimate }.run();
        } else {
            found.clear();
            found.push((0.0, place));
        }
        patches.resize(found.len() * n, 0.0);
        means.resize(found.len() * channels, 0.0);
        for ((patch, means), (_, place)) in
            patches.chunks_exact_mut(n).zip(means.chunks_exact_mut(channels)).zip(&*found)
        {
            frame.cut(self.image, *place, patch);
            frame.level(patch, means);
        }
        let limit = self.error * self.error * patches.len() as f32;
        let group = Group { atoms: self.atoms, patches, limit, most: self.most };
        group.code(work);
        // Wiener's share: what is left is noise of the power `limit`, and something else.
        let kept = if self.keeps_rest && work.error > limit { 1.0 - limit / work.error } else { 0.0 };
        // Alone, a patch of few filters is often one of which all was taken for noise.
        let weight = if self.members > 1 { 1.0 / (1.0 + work.support.len() as f32) } else { 1.0 };
        for (q, (_, place)) in found.iter().enumerate() {
            match self.trust {
                None => {
                    group.reconstruct(work, q, estimate);
                    if kept > 0.0 {
                        let patch = &group.patches[q * n..][..n];
                        estimate.iter_mut().zip(patch).for_each(|(v, x)| *v += kept * (x - *v));
                    }
                    let means = &means[q * channels..][..channels];
                    for (channel, mean) in estimate.chunks_exact_mut(n / channels).zip(means) {
                        channel.iter_mut().for_each(|v| *v += mean);
                    }
                }
                Some(trust) => {
                    frame.cut(self.image, *place, whole);
                    frame.cut(trust, *place, weights);
                    fit.run(self.atoms, &work.support, whole, weights, estimate);
                }
            }
            band.add(*place, estimate, weight);
        }
    }
}

/// The memory of a band's work.
struct Room {
    found: Vec<(f32, [usize; 2])>,
    work: Work,
    fit: Fit,
    /// (member, value), without means.
    patches: Vec<f32>,
    /// (member, channel).
    means: Vec<f32>,
    estimate: Vec<f32>,
    whole: Vec<f32>,
    weights: Vec<f32>,
}

impl Room {
    fn new(frame: Frame) -> Self {
        let patch = || vec![0.0; frame.patch.len()];
        Room {
            found: Vec::new(),
            work: Work::default(),
            fit: Fit::default(),
            patches: Vec::new(),
            means: Vec::new(),
            estimate: patch(),
            whole: patch(),
            weights: patch(),
        }
    }
}
