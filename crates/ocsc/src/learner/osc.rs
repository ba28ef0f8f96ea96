//! Online sparse coding of patches (Algorithm 1): what the paper starts from. It is not convolutional.
//!
//! **Problem** (eq. `sc`), over the patches x_i of the samples as vectors, one at every place where a filter fits:
//!
//! ```text
//! min over D, {z_i}   (1/N) sum_i  1/2 || x_i - D z_i ||^2 + beta ||z_i||_1       with ||D(:,l)||_2 <= 1
//! ```
//!
//! **A step**, for the patches of the samples at hand:
//!
//! ```text
//! z_i = lasso of x_i, by coordinate descent                                            eq. `sc_code`
//! A = A + sum_i z_i z_i^T,   B = B + sum_i x_i z_i^T                                   eq. `upd_hist`, as sums
//! for every l:   D(:,l) = project( D(:,l) + (B(:,l) - D A(:,l)) / A(l,l) )             eq. `osc_dl`, by coordinate descent
//! ```
//!
//! **Forgetting.** Before step t the past is multiplied by (1 - 1/t)^(e - 1), e =
//! [`forgetting`](crate::settings::BlockDescentConfig::forgetting), as the reference advises (its Section 3.4); e = 1 is Algorithm
//! 1 as printed.
//!
//! **What is reported** of a sample is the code of the convolutional problem that averages its overlapping patches: every
//! z_i at its place, divided by the mean number of patches that cover a pixel. It is far from optimal there, and its gap is the
//! trivial one, its own objective.
//!
//! **Cost** of a sample P K M for the correlations, K per change of a coefficient; memory K^2 + K M.
//!
//! Reference: Mairal, Bach, Ponce, Sapiro, "Online learning for matrix factorization and sparse coding", JMLR 11, 2010.

use crate::Boundary;
use crate::coder::{Coded, Status, dual_value, relative};
use crate::dictionary::project_unit_ball;
use crate::dot::dot;
use crate::learner::{CodeSums, Core, Learner, Step, check_batch, initial};
use crate::metrics::Objective;
use crate::monitor::{Monitor, check_wanted};
use crate::state::State;
use crate::statistics::plausible::check_gram;
use crate::update::Updated;
use crate::{Atom, Code, Config, Dictionary, Real, Result, Sample};
use rayon::prelude::*;

/// Patches are coded in this many parts, whose sums are added in order, whatever the number of threads.
const PARTS: usize = 16;
/// Sweeps of a lasso, at most, and how many are made between two looks at its gap.
const SWEEPS: usize = 1000;
const LOOK_EVERY: usize = 5;

/// Learns by Algorithm 1.
pub struct Osc<T: Real> {
    core: Core<T>,
    history: PatchStatistics<T>,
}

/// A, (K, K), and B, (K, C M): one row per atom.
#[derive(Clone)]
struct PatchStatistics<T> {
    a: Vec<T>,
    b: Vec<T>,
}

/// What one part of the patches of a sample adds.
struct PatchSums<T> {
    history: PatchStatistics<T>,
    atoms: Vec<Atom<T>>,
}

/// Work memory of one lasso.
struct Lasso<T> {
    /// D^T D, (K, K).
    gram: Vec<T>,
    beta: T,
    tol: f64,
}

impl<T: Real> Osc<T> {
    /// Makes a learner with a random dictionary for samples with this number of channels.
    pub fn new(config: Config, channels: usize) -> Result<Self> {
        let dictionary = initial(&config, channels)?;
        Self::with_dictionary(config, dictionary)
    }

    /// Makes a learner that starts from a given dictionary, which overrides the number and shape of filters in `config`.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>) -> Result<Self> {
        let core = Core::new(config, dictionary)?;
        Ok(Osc { history: PatchStatistics::new(&core.dictionary), core })
    }

    /// The patches' codes as one of the sample, after adding them to the history.
    fn absorb(&mut self, sample: &Sample<T>) -> Result<Coded<T>> {
        sample.check_whole()?;
        self.core.dictionary.check_sample_shape(sample.shape())?;
        let (d, shape, filter) = (&self.core.dictionary, sample.shape(), self.core.dictionary.shape());
        let lasso = Lasso::new(d, self.core.config.beta, self.core.config.tol);
        let places: [usize; 3] = std::array::from_fn(|i| shape.spatial()[i] - filter.spatial()[i] + 1);
        let patches: usize = places.iter().product();
        let cover = T::of((patches * filter.pixels()) as f64 / shape.pixels() as f64);
        let per_part = patches.div_ceil(PARTS);
        let parts: Vec<PatchSums<T>> = (0..PARTS)
            .into_par_iter()
            .map(|part| {
                let mut done = PatchSums { history: PatchStatistics::new(d), atoms: Vec::new() };
                let (mut x, mut z) = (vec![T::zero(); filter.len()], vec![T::zero(); d.n_filters()]);
                let (mut c, mut q) = (z.clone(), z.clone());
                for i in (part * per_part..patches).take(per_part) {
                    let place = [i / (places[1] * places[2]), i / places[2] % places[1], i % places[2]];
                    take_patch(sample, place, filter, &mut x);
                    for (k, c) in c.iter_mut().enumerate() {
                        *c = dot(d.filter(k), &x);
                    }
                    lasso.solve(&x, &c, &mut z, &mut q);
                    done.history.add(&x, &z);
                    let position = ((place[0] * shape.height + place[1]) * shape.width + place[2]) as u32;
                    let used = z.iter().enumerate().filter(|(_, z)| **z != T::zero());
                    done.atoms.extend(used.map(|(k, z)| Atom { filter: k as u32, position, value: *z / cover }));
                }
                done
            })
            .collect();
        let mut atoms = Vec::new();
        for part in parts {
            atoms.extend(part.atoms);
            self.history.merge(&part.history);
        }
        let code = Code::new(d.n_filters(), shape.spatial(), atoms)?;
        let objective = Objective::of(sample, &code, d, Boundary::Circular)?;
        let beta = self.core.config.beta;
        let (filters, penalty, gap) = (None, beta * objective.l1, objective.total(beta));
        let status = Status::MaxIters;
        Ok(Coded { code, filters, objective, penalty, beta, gap, moved: 0.0, outliers: 0, iterations: 1, status })
    }
}

/// The patch at a place, as a vector (channel, depth, height, width).
fn take_patch<T: Real>(sample: &Sample<T>, [z, y, x]: [usize; 3], filter: crate::Shape, patch: &mut [T]) {
    let shape = sample.shape();
    for (row, patch) in patch.chunks_exact_mut(filter.width).enumerate() {
        let (c, i, j) = (row / (filter.depth * filter.height), row / filter.height % filter.depth, row % filter.height);
        let start = ((c * shape.depth + z + i) * shape.height + y + j) * shape.width + x;
        patch.copy_from_slice(&sample.data()[start..][..filter.width]);
    }
}

impl<T: Real> PatchStatistics<T> {
    fn new(dictionary: &Dictionary<T>) -> Self {
        let k = dictionary.n_filters();
        PatchStatistics { a: vec![T::zero(); k * k], b: vec![T::zero(); dictionary.data().len()] }
    }

    /// A <- A + z z^T, B <- B + x z^T, for the non-zeros of z.
    fn add(&mut self, x: &[T], z: &[T]) {
        let rows = self.a.chunks_exact_mut(z.len()).zip(self.b.chunks_exact_mut(x.len()));
        for ((a, b), v) in rows.zip(z).filter(|(_, v)| **v != T::zero()) {
            a.iter_mut().zip(z).for_each(|(a, z)| *a += *v * *z);
            b.iter_mut().zip(x).for_each(|(b, x)| *b += *v * *x);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.a.iter_mut().zip(&other.a).for_each(|(a, o)| *a += *o);
        self.b.iter_mut().zip(&other.b).for_each(|(b, o)| *b += *o);
    }

    fn scale(&mut self, weight: f64) {
        self.a.iter_mut().chain(&mut self.b).for_each(|v| *v *= T::of(weight));
    }

    /// One sweep over the atoms; those that no code has used are left alone.
    fn sweep(&self, dictionary: &mut Dictionary<T>) {
        let (k, len) = (dictionary.n_filters(), dictionary.shape().len());
        let mut atom = vec![T::zero(); len];
        for l in 0..k {
            let a = &self.a[l * k..][..k];
            if a[l] <= T::zero() {
                continue;
            }
            atom.copy_from_slice(&self.b[l * len..][..len]);
            for (d, a) in dictionary.data().chunks_exact(len).zip(a).filter(|(_, a)| **a != T::zero()) {
                atom.iter_mut().zip(d).for_each(|(u, d)| *u -= *a * *d);
            }
            let d = &mut dictionary.data_mut()[l * len..][..len];
            d.iter_mut().zip(&atom).for_each(|(d, u)| *d += *u / a[l]);
            project_unit_ball(d);
        }
    }
}

impl<T: Real> Lasso<T> {
    fn new(d: &Dictionary<T>, beta: f64, tol: f64) -> Self {
        let k = d.n_filters();
        let entry = |i: usize| dot(d.filter(i / k), d.filter(i % k));
        Lasso { gram: (0..k * k).map(entry).collect(), beta: T::of(beta), tol }
    }

    /// z <- argmin 1/2 ||x - D z||^2 + beta ||z||_1 from zero, to a relative gap of tol; c = D^T x, q = D^T (x - D z).
    fn solve(&self, x: &[T], c: &[T], z: &mut [T], q: &mut [T]) {
        let k = z.len();
        z.fill(T::zero());
        q.copy_from_slice(c);
        let x_x: f64 = x.iter().map(|x| x.f64().powi(2)).sum();
        for sweep in 1..=SWEEPS {
            let mut change = T::zero();
            for l in 0..k {
                let norm = self.gram[l * k + l];
                let v = q[l] + norm * z[l];
                // Most are zero and stay so.
                if z[l] == T::zero() && v.abs() <= self.beta {
                    continue;
                }
                let new = if v > self.beta {
                    (v - self.beta) / norm
                } else if v < -self.beta {
                    (v + self.beta) / norm
                } else {
                    T::zero()
                };
                let step = new - z[l];
                if step != T::zero() {
                    q.iter_mut().zip(&self.gram[l * k..][..k]).for_each(|(q, g)| *q -= step * *g);
                    z[l] = new;
                    change = change.at_least(step.abs());
                }
            }
            if change == T::zero() || sweep % LOOK_EVERY == 0 && self.gap(x_x, c, z, q) <= self.tol {
                break;
            }
        }
    }

    /// The relative duality gap, from x.x - c.z = x.r and ||r||^2 = x.r - z.q.
    fn gap(&self, x_x: f64, c: &[T], z: &[T], q: &[T]) -> f64 {
        let with_z = |a: &[T]| a.iter().zip(z).map(|(a, z)| a.f64() * z.f64()).sum::<f64>();
        let x_r = x_x - with_z(c);
        let r_r = (x_r - with_z(q)).max(0.0);
        let l1: f64 = z.iter().map(|z| z.f64().abs()).sum();
        let objective = 0.5 * r_r + self.beta.f64() * l1;
        let top = q.iter().fold(0.0, |m: f64, q| m.max(q.f64().abs()));
        relative(objective - dual_value(x_r, r_r, top, self.beta.f64()), objective)
    }
}

impl<T: Real> Learner<T> for Osc<T> {
    fn learn(&mut self, _visits: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        check_batch(samples)?;
        // Before any of them is absorbed.
        for sample in samples {
            sample.check_whole()?;
            self.core.dictionary.check_sample_shape(sample.shape())?;
        }
        let before = self.history.clone();
        let config = &self.core.config;
        let forgetting = config.block_descent.forgetting.of_batches(config.batch_size);
        self.history.scale(forgetting.past(self.core.step + 1));
        let absorb = |sample| {
            check_wanted(monitor)?;
            self.absorb(sample).inspect(|_| monitor.coded())
        };
        let coded = samples.iter().map(absorb).collect::<Result<Vec<_>>>();
        let coded = coded.inspect_err(|_| self.history = before)?;
        let sweeps = self.core.config.block_descent.sweeps;
        let updated = self.core.update(|dictionary| {
            (0..sweeps).for_each(|_| self.history.sweep(dictionary));
            Updated { iterations: sweeps, ..Updated::default() }
        })?;
        let totals = CodeSums::of(samples, &coded);
        Ok(self.core.count_step(coded, totals, updated))
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        Ok(None)
    }

    fn core(&self) -> &Core<T> {
        &self.core
    }

    fn state(&self) -> State<'_> {
        State::default().with("a", &self.history.a).with("b", &self.history.b)
    }

    fn restore(&mut self, state: &State<'_>, step: usize) -> Result<()> {
        state.copy_array("a", &mut self.history.a)?;
        state.copy_array("b", &mut self.history.b)?;
        check_gram("a", self.core.dictionary.n_filters(), &self.history.a)?;
        self.core.step = step;
        Ok(())
    }
}
