//! The coder of deconvolutional networks: spatial gradients, with continuation.
//!
//! **Splitting.** min 1/2 ||x - D z||^2 + c/2 ||z - w||^2 + beta ||w||_1, with a weight c that grows from stage to stage. A stage is
//!
//! ```text
//! w = S_{beta/c}(z)                                                    closed form, coefficient by coefficient
//! z = z - a g,   g = D^T (D z - x) + c (z - w),   a = g.g / (||D g||^2 + c g.g)       one gradient, exact line search
//! ```
//!
//! While c is small, z fits the sample freely; as c grows it is drawn to the sparse w. At the end z = w, and the objective
//! itself is descended by proximal gradient steps, the limit c = L of the scheme without splitting (ISTA), until the stopping
//! rule holds. The continuation is for cold starts; a code that is given is descended from at once.
//!
//! **Difference**: the published scheme solves for z by conjugate gradients in every stage; one step each is made here, and what
//! is left to do is done by the proximal steps.
//!
//! **Cost** of an iteration K P M for the gradient and as much for D g, which is dense; memory 2 K P.
//!
//! Reference: Zeiler, Krishnan, Taylor, Fergus, "Deconvolutional networks", CVPR 2010.

use super::convolution::Space;
use super::fista::Fista;
use super::prox::{clip, soft};
use super::{Coded, Coder};
use crate::coder::CoderConfig;
use crate::{Code, Dictionary, Real, Result, Sample};

/// The weight c doubles this many times, up to L; of fewer iterations at most half are spent so.
const STAGES: usize = 6;

/// Codes samples as deconvolutional networks do.
pub struct Deconvnet<T: Real> {
    /// Its plan and its proximal steps, without momentum.
    descent: Fista<T>,
}

impl<T: Real> Deconvnet<T> {
    /// Makes a coder for a dictionary; `tol` is that of the stopping rule. Of the settings only `stop` and `max_iters` matter.
    pub fn new(dictionary: &Dictionary<T>, beta: f64, tol: f64, config: CoderConfig) -> Result<Self> {
        Ok(Deconvnet { descent: Fista::new(dictionary, beta, tol, Space::Spatial, config)? })
    }

    /// The stages, from zero; returns their number.
    fn continuation(&mut self, sample: &Sample<T>) -> Result<usize> {
        let (beta, stages) = (self.descent.beta, STAGES.min(self.descent.config.max_iters / 2));
        let plan = self.descent.planned(sample)?;
        let pixels = sample.shape().pixels();
        let mut image = vec![T::zero(); sample.data().len()];
        let mut gradient = vec![T::zero(); plan.maps.len() / 2];
        for stage in 0..stages {
            let c = plan.convolution.lipschitz / 2.0_f64.powi((stages - stage) as i32);
            let (weight, threshold) = (T::of(c), T::of(beta / c));
            image.iter_mut().zip(sample.data()).zip(&plan.dz).for_each(|((r, x), e)| *r = *x - *e);
            // q = D^T (x - D z), and w = S(z) so that c (z - w) is z clipped
            let (convolution, maps) = (&mut plan.convolution, &plan.maps);
            let sums = convolution.correlate(&image, &mut gradient, |k, q, g, sums| {
                for ((g, q), z) in g.iter_mut().zip(q).zip(&maps[2 * k * pixels..]) {
                    *g = weight * clip(*z, threshold) - *q;
                    sums[0] += g.f64().powi(2);
                }
            });
            convolution.synthesise(&gradient, &mut image);
            let curvature = image.iter().map(|v| v.f64().powi(2)).sum::<f64>() + c * sums.sums[0];
            let step = T::of(if curvature > 0.0 { sums.sums[0] / curvature } else { 0.0 });
            for (z, g) in plan.maps.chunks_exact_mut(2 * pixels).zip(gradient.chunks_exact(pixels)) {
                z.iter_mut().zip(g).for_each(|(z, g)| *z -= step * *g);
            }
            plan.dz.iter_mut().zip(&image).for_each(|(e, d)| *e -= step * *d);
        }
        // z = w of the last stage, where c = L / 2
        let threshold = T::of(2.0 * beta / plan.convolution.lipschitz);
        for block in plan.maps.chunks_exact_mut(2 * pixels) {
            let (z, z_old) = block.split_at_mut(pixels);
            for (z, z_old) in z.iter_mut().zip(z_old) {
                *z = soft(*z, threshold);
                *z_old = *z;
            }
        }
        plan.restart();
        Ok(stages)
    }
}

impl<T: Real> Coder<T> for Deconvnet<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        self.descent.set_dictionary(dictionary);
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        let zero = Code::zero(self.descent.dictionary.n_filters(), sample.shape().spatial());
        self.descent.planned(sample)?.start(start.unwrap_or(&zero))?;
        if let Some(coded) = self.descent.zero(sample, start)? {
            return Ok(coded);
        }
        let is_cold = start.is_none_or(|code| code.nonzeros() == 0);
        let done = if is_cold { self.continuation(sample)? } else { 0 };
        self.descent.iterate(sample, done, false)
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        self.descent.beta_max(sample)
    }
}
