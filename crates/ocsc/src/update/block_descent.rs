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
//! **Two halves.** Row k of the statistics holds phi_kl for l >= k. Filters from k on have not moved when k is visited, so
//! their part of g_k, row k times these filters, is computed for all k before the sweep. A filter that has moved adds
//! its part to all later gradients: phi_lk * d_k, where phi_lk(tau) = phi_kl(-tau), again from row k. So rows are read
//! once each way, and threads share whole blocks of rows: only the visits to the LANES filters of one block wait for
//! each other.
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
use crate::statistics::{LANES, Lags, Multiply};
use crate::{Code, Dictionary, Fourier, Real, Result, Sample, Scratch};
use num_complex::Complex;
use rayon::prelude::*;

/// Gradient steps per visit of a filter; all but the first cost one pair each.
const STEPS: usize = 2;
/// Filters per task that finds bounds.
const FILTERS: usize = 16;

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

/// Everything that depends on the filters' shape. Taps hold the filters of a block side by side, see
/// [`crate::statistics`].
struct Plan<T: Real> {
    lags: Lags<T>,
    /// Where each number of a filter is in taps, and in taps turned around.
    places: Vec<[usize; 2]>,
    /// Taps of all filters.
    filters: Vec<T>,
    /// For every k, sum over l >= k of phi_kl * d_l as the sweep began, still apart by lanes: K taps.
    pulled: Vec<T>,
    /// For every k, sum over visited l < k of phi_kl * d_l, turned around: taps.
    pushed: Vec<T>,
    /// The filters of the block being visited, each in all lanes, turned around.
    spread: Vec<T>,
    /// phi_kk * change, in the filter's lane.
    product: Vec<T>,
    /// L_k of all filters, and one work memory per task.
    bounds: Vec<f64>,
    spectra: Vec<Spectrum>,
    /// The gradient of the filter being moved, and its last change.
    gradient: Vec<T>,
    change: Vec<T>,
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
    fn bound<T: Real>(&mut self, lags: &Lags<T>, k: usize) -> f64 {
        let (window, block) = (lags.window(), lags.block(k, k / LANES));
        let [rz, ry, rx] = window.reach();
        let corner = [rz, ry, rx].map(|r| 2 * r as usize + 1);
        let rows = (-rz..=rz).flat_map(|z| (-ry..=ry).map(move |y| (z, y)));
        for ((z, y), out) in rows.zip(self.map.chunks_exact_mut(corner[2])) {
            let row = block[window.at([z, y, -rx]) * LANES + k % LANES..].iter().step_by(LANES);
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
        let zeros = |n: usize| vec![T::zero(); n];
        let (taps, blocks) = (lags.window().taps_len(), k.div_ceil(LANES));
        Plan {
            places: (0..shape.len()).map(|i| lags.window().tap(i)).collect(),
            filters: zeros(blocks * taps),
            pulled: zeros(k * taps),
            pushed: zeros(blocks * taps),
            spread: zeros(LANES * taps),
            product: zeros(taps),
            bounds: vec![0.0; k],
            spectra: (0..k.div_ceil(FILTERS)).map(|_| Spectrum::new(shape.spatial())).collect(),
            gradient: zeros(shape.len()),
            change: zeros(shape.len()),
            lags,
        }
    }

    /// Adopts the filters, and finds L_k for the statistics, which is zero for filters that no code uses.
    fn start(&mut self, dictionary: &Dictionary<T>) {
        for k in 0..dictionary.n_filters() {
            self.set_taps(k, dictionary.filter(k));
        }
        let lags = &self.lags;
        let zero = lags.window().at([0; 3]) * LANES;
        let tasks = self.bounds.par_chunks_mut(FILTERS).zip(&mut self.spectra).enumerate();
        tasks.for_each(|(task, (bounds, spectrum))| {
            for (i, bound) in bounds.iter_mut().enumerate() {
                let k = task * FILTERS + i;
                let used = lags.block(k, k / LANES)[zero + k % LANES] > T::zero();
                *bound = if used { spectrum.bound(lags, k) } else { 0.0 };
            }
        });
    }

    fn set_taps(&mut self, k: usize, filter: &[T]) {
        let window = self.lags.window();
        let taps = &mut self.filters[k / LANES * window.taps_len()..][..window.taps_len()];
        filter.iter().zip(&self.places).for_each(|(d, [at, _])| taps[at + k % LANES] = *d);
    }

    /// pulled <- sum over l >= k of phi_kl * d_l for all k.
    fn pull(&mut self) {
        let (lags, filters) = (&self.lags, &self.filters);
        let (window, len) = (lags.window(), lags.window().taps_len());
        self.pulled.par_chunks_exact_mut(len).enumerate().for_each(|(k, out)| {
            out.fill(T::zero());
            for (block, taps) in filters.chunks_exact(len).enumerate().skip(k / LANES) {
                dispatch(Multiply { geometry: window, phi: lags.block(k, block), taps, out });
            }
        });
    }

    /// Adds the part of the visited filters of a block to the gradients of all later blocks.
    fn push(&mut self, block: usize) {
        let (lags, spread) = (&self.lags, &self.spread);
        let (window, len) = (lags.window(), lags.window().taps_len());
        let later = &mut self.pushed[(block + 1) * len..];
        // Every output has its own sums, so their division among tasks changes nothing.
        let share = (later.len() / len).div_ceil(2 * rayon::current_num_threads()).max(1);
        later.par_chunks_mut(share * len).enumerate().for_each(|(task, outs)| {
            for (lane, taps) in spread.chunks_exact(len).enumerate() {
                for (i, out) in outs.chunks_exact_mut(len).enumerate() {
                    let phi = lags.block(block * LANES + lane, block + 1 + task * share + i);
                    dispatch(Multiply { geometry: window, phi, taps, out });
                }
            }
        });
    }

    /// Puts a filter, or its change, in all lanes, turned around, where filter k keeps it.
    fn spread(&mut self, k: usize, change: bool, filter: &[T]) {
        let window = self.lags.window();
        let spread = &mut self.spread[k % LANES * window.taps_len()..][..window.taps_len()];
        let values = if change { &self.change } else { filter };
        values.iter().zip(&self.places).for_each(|(d, [_, at])| spread[*at..][..LANES].fill(*d));
    }

    /// Adds the part of filter k, which was just visited, to the gradients of its own block.
    fn push_within(&mut self, k: usize) {
        let (window, len) = (self.lags.window(), self.lags.window().taps_len());
        let taps = &self.spread[k % LANES * len..][..len];
        let out = &mut self.pushed[k / LANES * len..][..len];
        dispatch(Multiply { geometry: window, phi: self.lags.block(k, k / LANES), taps, out });
    }

    /// gradient <- g_k.
    fn set_gradient(&mut self, k: usize) {
        let window = self.lags.window();
        let (len, psi) = (window.taps_len(), self.lags.unweighted_psi(k));
        let (pulled, pushed) = (&self.pulled[k * len..][..len], &self.pushed[k / LANES * len..][..len]);
        for (i, g) in self.gradient.iter_mut().enumerate() {
            let [forward, turned] = self.places[i];
            let sum: f64 = pulled[forward..][..LANES].iter().map(|v| v.f64()).sum();
            *g = T::of(sum + pushed[turned + k % LANES].f64() - psi[i].f64());
        }
    }

    /// gradient <- gradient + phi_kk * change. Turned around or not is the same for the symmetric phi_kk.
    fn move_gradient(&mut self, k: usize) {
        let (window, len) = (self.lags.window(), self.lags.window().taps_len());
        let taps = &self.spread[k % LANES * len..][..len];
        self.product.fill(T::zero());
        let out = &mut self.product[..];
        dispatch(Multiply { geometry: window, phi: self.lags.block(k, k / LANES), taps, out });
        for (g, [_, at]) in self.gradient.iter_mut().zip(&self.places) {
            *g += self.product[at + k % LANES];
        }
    }

    /// Visits filter k; returns the squared norms of its first step and of its whole move, or nothing if it is unused.
    fn visit(&mut self, k: usize, filter: &mut [T]) -> Option<[f64; 2]> {
        let bound = self.bounds[k];
        if bound <= 0.0 {
            return None;
        }
        self.set_gradient(k);
        let old = filter.to_vec();
        let mut first = 0.0;
        for step in 0..STEPS {
            if step > 0 {
                self.spread(k, true, filter);
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
        plan.start(dictionary);
        let len = dictionary.shape().len();
        for sweep in 1..=self.config.sweeps {
            let mut sums = [0.0; 2];
            self.unused = 0;
            plan.pull();
            plan.pushed.fill(T::zero());
            for (block, filters) in dictionary.data_mut().chunks_mut(LANES * len).enumerate() {
                for (lane, filter) in filters.chunks_exact_mut(len).enumerate() {
                    let k = block * LANES + lane;
                    match plan.visit(k, filter) {
                        Some(moved) => sums = [sums[0] + moved[0], sums[1] + moved[1]],
                        None => self.unused += 1,
                    }
                    plan.set_taps(k, filter);
                    plan.spread(k, false, filter);
                    plan.push_within(k);
                }
                plan.push(block);
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
