//! Block coordinate descent on [`Lags`]: filter by filter, projected gradient steps on the exact objective.
//!
//! **Problem**, over the weighted statistics phi, psi of all codes so far:
//!
//! ```text
//! min over D   1/2 sum_kl <d_k, phi_kl * d_l> - sum_k <psi_k, d_k>       with ||d_k|| <= 1
//! ```
//!
//! **A sweep** visits k = 1..K in turn, with the newest filters all along:
//!
//! ```text
//! g_k = sum_l phi_kl * d_l - psi_k                             on the filter's support
//! d_k = project( d_k - g_k / L_k ),   g_k += phi_kk * (change of d_k)              STEPS times
//! ```
//!
//! **The step.** d -> phi_kk * d on the support is a symmetric matrix with entries phi_kk(s - s'). On a circle of
//! N >= 2m - 1 points per axis no two of these lags fall together, so the matrix is a diagonal block of the circulant
//! matrix of phi_kk, and its largest eigenvalue is at most the circulant's: L_k = max |.| over the N-point Fourier
//! transform of phi_kk. With it no step increases the objective.
//!
//! **Transposed pairs.** Only k <= l is stored. For l < k, phi_kl(tau) = phi_lk(-tau), and turning filter and output
//! around turns phi_kl * d_l into phi_lk * (d_l turned), so the same loop reads the same memory forwards.
//!
//! **Forgetting.** Before the samples of update t are absorbed the past is multiplied by (1 - 1/t)^(e - 1), e =
//! [`BlockDescentConfig::forgetting`]: in the mean over updates the past then has the weight (1 - 1/t)^e, and e = 1 is
//! the paper's plain average. All samples of a batch weigh the same.
//!
//! **Cost** K^2 m^4 (per channel, two axes) for a sweep; memory that of the statistics.

use super::{Update, Updated};
use crate::checkpoint::State;
use crate::config::{BlockDescentConfig, Boundary};
use crate::dictionary::project_unit_ball;
use crate::simd::dispatch;
use crate::statistics::{Lags, Multiply, Window};
use crate::{Code, Dictionary, Fourier, Real, Result, Sample, Scratch};
use num_complex::Complex;
use rayon::prelude::*;

/// Gradient steps per visit of a filter; all but the first cost one pair each.
const STEPS: usize = 2;
/// Filters per task; sums are made within tasks, then over tasks in order, so threads change nothing.
const FILTERS: usize = 32;

/// The update on lags.
pub struct BlockDescent<T: Real> {
    config: BlockDescentConfig,
    boundary: Boundary,
    plan: Option<Plan<T>>,
    /// Updates begun, and whether one has samples but was not made yet.
    updates: usize,
    open: bool,
    unused: usize,
}

/// Everything that depends on the filters' shape.
struct Plan<T: Real> {
    lags: Lags<T>,
    /// Padded filters, and the same turned around.
    padded: [Vec<T>; 2],
    /// One gradient per task, forward and turned around.
    sums: Vec<[Vec<T>; 2]>,
    /// The filter being moved, its gradient, and its last change.
    gradient: Vec<T>,
    change: Vec<T>,
    spectrum: Spectrum,
}

/// Work memory for L_k.
struct Spectrum {
    fourier: Fourier<f64>,
    scratch: Scratch<f64>,
    map: Vec<f64>,
    values: Vec<Complex<f64>>,
}

impl<T: Real> BlockDescent<T> {
    /// An update without statistics; codes must have been made with the same boundary.
    pub fn new(config: BlockDescentConfig, boundary: Boundary) -> Self {
        BlockDescent { config, boundary, plan: None, updates: 0, open: false, unused: 0 }
    }

    /// The statistics, if there are any yet.
    pub fn statistics(&self) -> Option<&Lags<T>> {
        self.plan.as_ref().map(|plan| &plan.lags)
    }

    /// How many filters the last update left alone because no code has used them.
    pub fn unused(&self) -> usize {
        self.unused
    }
}

impl Spectrum {
    fn new(filter: [usize; 3]) -> Self {
        let grid = filter.map(|n| smooth(2 * n - 1));
        let fourier = Fourier::new(grid);
        let values = vec![Complex::new(0.0, 0.0); fourier.n_freqs()];
        Spectrum { scratch: fourier.scratch(), map: vec![0.0; fourier.n_pixels()], values, fourier }
    }

    /// L for a window of phi_kk. Starting the window at lag 0 or at -(m - 1) changes phases only.
    fn bound<T: Real>(&mut self, window: &Window, phi: &[T]) -> f64 {
        let [rz, ry, rx] = window.reach();
        let corner = [rz, ry, rx].map(|r| 2 * r as usize + 1);
        let rows = (-rz..=rz).flat_map(|z| (-ry..=ry).map(move |y| (z, y)));
        for ((z, y), out) in rows.zip(self.map.chunks_exact_mut(corner[2])) {
            let row = &phi[window.at([z, y, -rx])..][..corner[2]];
            out.iter_mut().zip(row).for_each(|(o, v)| *o = v.f64());
        }
        let map = &self.map[..corner.iter().product()];
        self.fourier.forward_padded(map, corner, &mut self.values, &mut self.scratch);
        self.values.iter().map(|v| v.norm_sqr()).fold(0.0, f64::max).sqrt()
    }
}

/// The smallest number from `n` on without prime factors above 5, for the transform's sake.
fn smooth(n: usize) -> usize {
    let reduce = |mut m: usize, p: usize| {
        while m.is_multiple_of(p) {
            m /= p;
        }
        m
    };
    (n..).find(|&m| [2, 3, 5].into_iter().fold(m, reduce) == 1).unwrap_or(n)
}

impl<T: Real> Plan<T> {
    fn new(dictionary: &Dictionary<T>) -> Self {
        let (k, shape) = (dictionary.n_filters(), dictionary.shape());
        let lags = Lags::new(k, shape);
        let window = lags.window();
        let zeros = |n: usize| vec![T::zero(); n];
        Plan {
            padded: std::array::from_fn(|_| zeros(k * window.padded_len())),
            sums: (0..k.div_ceil(FILTERS)).map(|_| std::array::from_fn(|_| zeros(window.out_len()))).collect(),
            gradient: zeros(shape.len()),
            change: zeros(shape.len()),
            spectrum: Spectrum::new(shape.spatial()),
            lags,
        }
    }

    fn set_padded(&mut self, k: usize, filter: &[T]) {
        let window = self.lags.window();
        let len = window.padded_len();
        for (padded, flipped) in self.padded.iter_mut().zip([false, true]) {
            window.pad(filter, flipped, &mut padded[k * len..][..len]);
        }
    }

    /// gradient <- g_k.
    fn set_gradient(&mut self, k: usize) {
        let (lags, padded) = (&self.lags, &self.padded);
        let (window, n) = (lags.window(), lags.n_filters());
        let len = window.padded_len();
        self.sums.par_iter_mut().enumerate().for_each(|(task, sums)| {
            sums.iter_mut().for_each(|sum| sum.fill(T::zero()));
            for l in task * FILTERS..((task + 1) * FILTERS).min(n) {
                let flipped = usize::from(l < k);
                let phi = if l < k { lags.pair(l, k) } else { lags.pair(k, l) };
                let taps = &padded[flipped][l * len..][..len];
                dispatch(Multiply { geometry: window, phi, taps, out: &mut sums[flipped] });
            }
        });
        let (width, psi) = (lags.filter_shape().width, lags.unweighted_psi(k));
        for (i, g) in self.gradient.iter_mut().enumerate() {
            let [forward, flipped] = [false, true].map(|turned| window.out_at(i / width, i % width, turned));
            let sum: f64 = self.sums.iter().map(|[a, b]| a[forward].f64() + b[flipped].f64()).sum();
            *g = T::of(sum - psi[i].f64());
        }
    }

    /// gradient <- gradient + phi_kk * change; the padded filter k serves as work memory.
    fn move_gradient(&mut self, k: usize) {
        let window = self.lags.window();
        let len = window.padded_len();
        let padded = &mut self.padded[0][k * len..][..len];
        window.pad(&self.change, false, padded);
        let sum = &mut self.sums[0][0];
        sum.fill(T::zero());
        dispatch(Multiply { geometry: window, phi: self.lags.pair(k, k), taps: padded, out: sum });
        let width = self.lags.filter_shape().width;
        for (i, g) in self.gradient.iter_mut().enumerate() {
            *g += sum[window.out_at(i / width, i % width, false)];
        }
    }

    /// Visits filter k; returns the squared norms of its first step and of its whole move, or nothing if it is unused.
    fn visit(&mut self, k: usize, filter: &mut [T]) -> Option<[f64; 2]> {
        let phi = self.lags.pair(k, k);
        if phi[self.lags.window().at([0; 3])] <= T::zero() {
            return None;
        }
        let bound = self.spectrum.bound(self.lags.window(), phi);
        self.set_gradient(k);
        let old = filter.to_vec();
        let mut first = 0.0;
        for step in 0..STEPS {
            if step > 0 {
                self.move_gradient(k);
            }
            self.change.copy_from_slice(filter);
            filter.iter_mut().zip(&self.gradient).for_each(|(d, g)| *d = T::of(d.f64() - g.f64() / bound));
            project_unit_ball(filter);
            self.change.iter_mut().zip(&*filter).for_each(|(c, d)| *c = *d - *c);
            if step == 0 {
                first = self.change.iter().map(|c| c.f64().powi(2)).sum();
            }
        }
        self.set_padded(k, filter);
        Some([first, old.iter().zip(filter).map(|(a, b)| (a.f64() - b.f64()).powi(2)).sum()])
    }
}

impl<T: Real> Update<T> for BlockDescent<T> {
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()> {
        let plan = self.plan.get_or_insert_with(|| Plan::new(dictionary));
        // Before the past is touched.
        plan.lags.check(sample, code, dictionary, self.boundary)?;
        if !self.open {
            self.updates += 1;
            self.open = true;
            let exponent = self.config.forgetting - 1.0;
            if self.updates > 1 && exponent != 0.0 {
                plan.lags.scale((1.0 - 1.0 / self.updates as f64).powf(exponent));
            }
        }
        plan.lags.absorb(sample, code, dictionary, self.boundary)
    }

    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated {
        let mut updated = Updated::default();
        let Some(plan) = &mut self.plan else { return updated };
        self.open = false;
        let len = dictionary.shape().len();
        for (k, filter) in dictionary.data().chunks_exact(len).enumerate() {
            plan.set_padded(k, filter);
        }
        for sweep in 1..=self.config.sweeps {
            let mut sums = [0.0; 2];
            self.unused = 0;
            for (k, filter) in dictionary.data_mut().chunks_exact_mut(len).enumerate() {
                match plan.visit(k, filter) {
                    Some(moved) => sums = [sums[0] + moved[0], sums[1] + moved[1]],
                    None => self.unused += 1,
                }
            }
            let norm = dictionary.data().iter().map(|d| d.f64().powi(2)).sum::<f64>().max(f64::MIN_POSITIVE);
            let [step, change] = sums.map(|sum: f64| (sum / norm).sqrt());
            updated = Updated { iterations: sweep, residuals: (step, change) };
        }
        updated
    }

    fn state(&self) -> State<'_, T> {
        let Some(plan) = &self.plan else { return State::default() };
        let ([phi, psi], numbers) = plan.lags.parts();
        // In two halves: scalars are saved as decimal numbers, which whole numbers survive bit for bit.
        let [constant, weight] = numbers.map(f64::to_bits).map(|bits| [(bits >> 32) as f64, (bits as u32).into()]);
        State::default()
            .with_array("phi", phi)
            .with_array("psi", psi)
            .with_numbers("constant", &constant)
            .with_numbers("weight", &weight)
            .with_numbers("updates", &[self.updates as f64, f64::from(u8::from(self.open))])
    }

    fn restore(&mut self, state: &State<'_, T>, dictionary: &Dictionary<T>) -> Result<()> {
        if state.is_empty() {
            return Ok(());
        }
        let mut plan = Plan::new(dictionary);
        let [phi, psi] = plan.lags.arrays_mut();
        state.copy_array("phi", phi)?;
        state.copy_array("psi", psi)?;
        let joined = |[high, low]: [f64; 2]| f64::from_bits((high as u64) << 32 | low as u64);
        plan.lags.set_numbers([joined(state.numbers("constant")?), joined(state.numbers("weight")?)])?;
        let [updates, open] = state.numbers("updates")?;
        (self.updates, self.open) = (updates as usize, open > 0.0);
        self.plan = Some(plan);
        Ok(())
    }
}
