//! The filter update of deconvolutional networks: projected gradient steps in the spatial domain.
//!
//! ```text
//! min over D   sum_i 1/2 || x_i - sum_k D_k * Z_ik ||^2       with ||D_k||_2 <= 1
//! D = project( D - g / L ),     g_k(s) = - sum_i sum_p r_i(p + s) z_ik(p),     r_i = x_i - D z_i
//! ```
//!
//! No matrix is formed: every product A D is made of the codes themselves, their non-zeros only. L is found by backtracking
//! (`fista.rs`, without momentum).
//!
//! **Cost** of an iteration 2 C M per non-zero, once for D z and once for the correlation; memory that of samples and codes.
//! (The paper counts N K^2 P^2 M for a pass over dense codes.)
//!
//! Reference: Zeiler, Krishnan, Taylor, Fergus, "Deconvolutional networks", CVPR 2010.

use super::fista::{Quadratic, minimise};
use super::{Update, Updated};
use crate::Boundary;
use crate::state::State;
use crate::update::UpdateConfig;
use crate::{Code, Dictionary, Real, Result, Sample, Shape};
use rayon::prelude::*;

/// Updates the dictionary as deconvolutional networks do.
pub struct Deconvnet<T: Real> {
    config: UpdateConfig,
    pairs: Pairs<T>,
    /// The values of the samples, in their order.
    samples: Vec<Vec<T>>,
    lipschitz: T,
}

/// All codes, for filters like `pattern`, whose own values do not matter.
struct Pairs<T> {
    codes: Vec<Code<T>>,
    pattern: Option<Dictionary<T>>,
}

impl<T: Real> Deconvnet<T> {
    /// Makes an update without samples.
    pub fn new(config: UpdateConfig) -> Self {
        let pairs = Pairs { codes: Vec::new(), pattern: None };
        Deconvnet { config, pairs, samples: Vec::new(), lipschitz: T::zero() }
    }
}

impl<T: Real> Pairs<T> {
    /// out_k(s) = sum_i sum_p image_i(p + s) z_ik(p), where `image` makes an image (C, P) of each code; summed in f64 in the
    /// order of the samples.
    fn correlate(&self, filter: Shape, image: impl Fn(usize) -> Vec<f64> + Sync, out: &mut [T]) {
        let parts: Vec<Vec<f64>> = (0..self.codes.len())
            .into_par_iter()
            .map(|i| {
                let (code, image) = (&self.codes[i], image(i));
                let [depth, height, width] = code.shape();
                let mut sums = vec![0.0; out.len()];
                for a in code.atoms() {
                    let (p, value) = (a.position as usize, a.value.f64());
                    let place = [p / (height * width), p / width % height, p % width];
                    let target = &mut sums[a.filter as usize * filter.len()..][..filter.len()];
                    for (row, target) in target.chunks_exact_mut(filter.width).enumerate() {
                        let (c, z, y) = (
                            row / (filter.depth * filter.height),
                            (place[0] + row / filter.height % filter.depth) % depth,
                            (place[1] + row % filter.height) % height,
                        );
                        let line = &image[((c * depth + z) * height + y) * width..][..width];
                        // A filter is no wider than the sample, so it wraps at most once.
                        let (wrapped, straight) = (&line[..place[2]], &line[place[2]..]);
                        for (t, v) in target.iter_mut().zip(straight.iter().chain(wrapped)) {
                            *t += value * v;
                        }
                    }
                }
                sums
            })
            .collect();
        for (i, out) in out.iter_mut().enumerate() {
            *out = T::of(parts.iter().map(|part| part[i]).sum());
        }
    }
}

impl<T: Real> Quadratic<T> for Pairs<T> {
    fn multiply(&mut self, d: &[T], out: &mut [T]) {
        let Some(mut pattern) = self.pattern.take() else { return };
        pattern.data_mut().copy_from_slice(d);
        // Codes were checked when they were absorbed; one that does not fit would count as nothing.
        let image = |i: usize| {
            let estimate = self.codes[i].reconstruct_f64(&pattern, Boundary::Circular);
            estimate.map_or_else(|_| Vec::new(), |(_, estimate, _)| estimate)
        };
        self.correlate(pattern.shape(), image, out);
        self.pattern = Some(pattern);
    }
}

impl<T: Real> Update<T> for Deconvnet<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        sample.check_whole()?;
        // That they fit.
        crate::metrics::Objective::of(sample, code, dictionary, Boundary::Circular)?;
        self.pairs.pattern.get_or_insert_with(|| dictionary.clone());
        self.pairs.codes.push(code.clone());
        self.samples.push(sample.data().to_vec());
        Ok(())
    }

    fn forget(&mut self) {
        self.pairs.codes.clear();
        self.samples.clear();
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        if self.samples.is_empty() {
            return Updated::default();
        }
        let mut b = vec![T::zero(); dictionary.data().len()];
        let image = |i: usize| self.samples[i].iter().map(|v| v.f64()).collect();
        self.pairs.correlate(dictionary.shape(), image, &mut b);
        minimise(&mut self.pairs, &b, dictionary, &mut self.lipschitz, &self.config, false)
    }

    fn state(&self) -> State<'_> {
        State::default().with_owned("lipschitz", vec![self.lipschitz])
    }

    fn restore(&mut self, state: &State<'_>, _dictionary: &Dictionary<T>) -> Result<()> {
        self.lipschitz = state.step_bound()?;
        Ok(())
    }
}
