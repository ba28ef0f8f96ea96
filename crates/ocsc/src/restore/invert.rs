//! From what was observed of an image to the image: by turns, a guess is coded and brought in line with what was observed.
//!
//! ```text
//! min over x, v   1/(2 sigma^2) || A x - y ||^2 + 1/(2 t^2) || x - v ||^2 + "patches of v are sums of few filters"
//! ```
//!
//! for a t that falls from step to step: where the guess is still poor, only strong structure is believed (half-quadratic splitting:
//! Geman, Yang 1995; with a denoiser in the place of a prior: Venkatakrishnan, Bouman, Wohlberg 2013). The filters learn from the
//! guess.

use super::adapt::Adapt;
use super::frame::Frame;
use super::pass::Pass;
use super::{Options, adapt, start};
use crate::Result;
use crate::Shape;
use crate::monitor::Monitor;

/// What to invert, and how.
pub(super) struct Inversion<'a> {
    /// Brings a guess in line with what was observed, for a t.
    pub(super) consistent: &'a dyn Fn(Vec<f32>, f32) -> Result<Vec<f32>>,
    /// Of the image to find.
    pub(super) shape: Shape,
    /// t of each step: the root mean square that residuals of groups may have.
    pub(super) steps: &'a [f32],
    /// How much each value of the guess counts once the supports are known; all the same if absent.
    pub(super) trust: Option<&'a [f32]>,
    /// The most filters of a group: more would follow errors of the guess.
    pub(super) most: usize,
    /// How many patches are coded together.
    pub(super) members: usize,
}

/// Patches that are learned from in a step.
const PATCHES: usize = 8_000;
const STRIDE: usize = 4;
const REACH: usize = 10;

impl Inversion<'_> {
    /// Improves a guess.
    pub(super) fn run(&self, mut guess: Vec<f32>, options: &Options, monitor: &dyn Monitor) -> Result<Vec<f32>> {
        let mut atoms = start::start(self.shape, options.dictionary.as_ref())?;
        let frame = Frame::new(self.shape, atoms.shape)?;
        for (step, error) in self.steps.iter().copied().enumerate().filter(|(_, error)| *error > 0.0) {
            if options.learn_here {
                let adapt =
                    Adapt { error, rounds: 1, most: adapt::MOST, patches: PATCHES, seed: options.seed, first: step };
                adapt.run(&mut atoms, &[(frame, &guess)], monitor)?;
            }
            let pass = Pass {
                frame,
                atoms: &atoms,
                image: &guess,
                guide: &guess,
                trust: self.trust,
                error,
                most: self.most,
                keeps_rest: false,
                stride: STRIDE,
                members: self.members,
                reach: REACH,
            };
            guess = (self.consistent)(pass.run(monitor)?, error)?;
        }
        Ok(guess)
    }
}
