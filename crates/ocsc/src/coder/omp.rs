//! Convolutional orthogonal matching pursuit: codes with few non-zeros, greedily.
//!
//! **Problem**: min over z of 1/2 ||W^1/2 (x - D z)||^2 with at most N non-zeros, or the fewest non-zeros with an error of at most
//! sigma. It is not convex, and nothing is certified: the gap that is reported is the objective itself.
//!
//! **Algorithm.** The atom whose correlation with the residual is largest, relative to its norm, joins the support; then all values
//! are fitted anew by least squares. That repeats until the budget is spent or, without a budget, until no correlation exceeds
//! beta.
//!
//! - *Correlations* with all filters everywhere are kept. When a value changes by a, those of filter k at lag tau change by
//!   a G(k, l, tau), the lag Gram <d_k, d_l shifted by tau>, which is computed once per dictionary. Near the border of a `free`
//!   boundary, under masks and weights an atom is not what it is elsewhere: there they are correlated anew, with what changed.
//! - *Least squares* by Gauss and Seidel's method over the atoms whose correlation is not zero yet. An atom that joins moves its
//!   neighbours, these theirs, and so on until it has died away, so the work is local. The last fit is by conjugate gradients
//!   (`support.rs`).
//! - *The largest correlation* is kept per line, and looked for again in the lines that changed.
//!
//! **Cost**: a full correlation, then K (2m-1)^2 for every value that changes: some tens per non-zero. **Memory**: K P correlations
//! in f64, and K^2 (2m-1)^2 for the lag Gram.
//!
//! Pati, Rezaiifar, Krishnaprasad, "Orthogonal matching pursuit", 1993; Mallat and Zhang, "Matching pursuits with time-frequency
//! dictionaries", 1993, for the update of correlations.

use super::budget::{counted, energy};
use super::support::{Canvas, data_term, project};
use super::{ActiveSet, ActiveSetConfig, Budget, Coded, Coder, Status};
use crate::metrics::Objective;
use crate::monitor::{Monitor, Silent, check_wanted};
use crate::{Atom, Boundary, Code, Dictionary, Error, Real, Result, Sample, system};
use rayon::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

/// Correlations on the support count as zero below this fraction of the one that joined last.
const ACCURACY: f64 = 1e-8;
/// Steps of Gauss and Seidel's method per atom that joins, at most.
const MAX_STEPS: usize = 2000;
/// The search ends when the strongest correlation is below this fraction of the first: the sample is explained.
const NOTHING: f64 = 1e-10;

/// The greedy coder.
pub struct Omp<T: Real> {
    dictionary: Dictionary<T>,
    beta: f64,
    boundary: Boundary,
    config: ActiveSetConfig,
    /// G(k, l, tau), (K, K, lags), made when it is needed.
    gram: OnceLock<Vec<f64>>,
}

impl<T: Real> Omp<T> {
    /// A coder for a dictionary; settings as validated by [`crate::Config::validate`].
    pub fn new(dictionary: &Dictionary<T>, beta: f64, boundary: Boundary, config: ActiveSetConfig) -> Result<Self> {
        crate::setting::positive("beta", beta)?;
        Ok(Omp { dictionary: dictionary.clone(), beta, boundary, config, gram: OnceLock::new() })
    }

    fn pursue(&self, sample: &Sample<T>, monitor: &dyn Monitor) -> Result<Coded<T>> {
        self.dictionary.check_sample_shape(sample.shape())?;
        if sample.coefficient_weights().is_some() {
            return Err(Error::invalid("weights of coefficients", "none with the coder `omp`", "some"));
        }
        let mut pursuit = Pursuit::new(self, sample)?;
        let budget = self.config.budget();
        let scale = pursuit.strongest().map_or(0.0, |(strength, ..)| strength);
        let mut iterations = 0;
        while let Some((strength, filter, position)) = pursuit.strongest() {
            let squares = pursuit.squares;
            let done = match budget {
                None => strength <= self.beta,
                Some(Budget::Nonzeros(most)) => pursuit.atoms.len() >= most,
                Some(Budget::Error(sigma)) => squares <= sigma * sigma * counted(sample),
                Some(Budget::Explained(share)) => squares <= (1.0 - share) * energy(sample),
            };
            if done || strength <= NOTHING * scale || iterations >= pursuit.correlations.len() {
                break;
            }
            check_wanted(monitor)?;
            pursuit.join(filter, position);
            iterations += 1;
        }
        self.finish(sample, &pursuit, iterations)
    }

    fn finish(&self, sample: &Sample<T>, pursuit: &Pursuit<'_, T>, iterations: usize) -> Result<Coded<T>> {
        let atom = |((filter, position), value): (&(u32, u32), &f64)| Atom {
            filter: *filter,
            position: *position,
            value: T::of(*value),
        };
        let atoms = pursuit.atoms.iter().map(atom).filter(|a| a.value != T::zero()).collect();
        let code = Code::new(self.dictionary.n_filters(), pursuit.positions, atoms)?;
        let code = match self.config.nonnegative {
            true => code,
            false => project(sample, &code, &self.dictionary, self.boundary)?,
        };
        let data_term = data_term(sample, &code, &self.dictionary, self.boundary, self.config.loss);
        let objective = Objective { data_term, l1: code.l1() };
        let (beta, status) = (self.beta, Status::Converged);
        // Nothing is proven: zero bounds the minimum.
        let (filters, penalty, gap, moved, outliers) = (None, 0.0, data_term, 0.0, 0);
        Ok(Coded { code, filters, objective, penalty, beta, gap, moved, outliers, iterations, status })
    }

    /// The lag Gram.
    fn gram(&self) -> &[f64] {
        self.gram.get_or_init(|| {
            let (n, f) = (self.dictionary.n_filters(), self.dictionary.shape());
            let [rz, ry, rx] = f.spatial().map(|m| m as isize - 1);
            let len = lags(f.spatial());
            let mut gram = vec![0.0; n * n * len];
            gram.par_chunks_exact_mut(len).enumerate().for_each(|(pair, out)| {
                let (a, b) = (self.dictionary.filter(pair / n), self.dictionary.filter(pair % n));
                let all = (-rz..=rz).flat_map(|z| (-ry..=ry).flat_map(move |y| (-rx..=rx).map(move |x| [z, y, x])));
                for (lag, out) in all.zip(out) {
                    *out = overlap(a, b, f.channels, f.spatial(), lag);
                }
            });
            gram
        })
    }
}

/// The lags of filters of these lengths.
fn lags(filter: [usize; 3]) -> usize {
    filter.iter().map(|m| 2 * m - 1).product()
}

/// sum_s a(s) b(s - lag): filter a at a place, b at `lag` from it.
fn overlap<T: Real>(a: &[T], b: &[T], channels: usize, axes: [usize; 3], lag: [isize; 3]) -> f64 {
    let range = |i: usize| lag[i].max(0) as usize..(axes[i] as isize + lag[i].min(0)) as usize;
    let (width, from) = (axes[2], range(2));
    let mut sum = 0.0;
    for c in 0..channels {
        for z in range(0) {
            for y in range(1) {
                let row = ((c * axes[0] + z) * axes[1] + y) * width;
                let other_z = (z as isize - lag[0]) as usize;
                let other_y = (y as isize - lag[1]) as usize;
                let other = ((c * axes[0] + other_z) * axes[1] + other_y) * width;
                let first = (from.start as isize - lag[2]) as usize;
                let (a, b) = (&a[row..][from.clone()], &b[other + first..][..from.len()]);
                sum += a.iter().zip(b).map(|(a, b)| a.f64() * b.f64()).sum::<f64>();
            }
        }
    }
    sum
}

impl<T: Real> Coder<T> for Omp<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        self.dictionary = dictionary.clone();
        self.gram = OnceLock::new();
    }

    fn code(&mut self, sample: &Sample<T>, _start: Option<&Code<T>>) -> Result<Coded<T>> {
        self.pursue(sample, &Silent)
    }

    fn code_all(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Vec<Coded<T>>> {
        samples.par_iter().map(|sample| self.pursue(sample, monitor).inspect(|_| monitor.coded())).collect()
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        let config = ActiveSetConfig { nonnegative: self.config.nonnegative, ..ActiveSetConfig::default() };
        ActiveSet::new(&self.dictionary, self.beta, 1.0, self.boundary, config)?.beta_max(sample)
    }
}

/// A sample while it is coded.
struct Pursuit<'a, T: Real> {
    coder: &'a Omp<T>,
    canvas: Canvas,
    positions: [usize; 3],
    /// W (x - D z) on the canvas; kept up to date where atoms differ from place to place.
    residual: Option<Vec<f64>>,
    /// d_k^T W r, (K, positions).
    correlations: Vec<f64>,
    /// The strongest of every line of every filter, and where: (strength, column).
    best: Vec<(f64, usize)>,
    /// One over the norms of the filters, or of all atoms where they differ from place to place.
    inverse_norms: Vec<f64>,
    /// The values of the support by filter and position, and the support by position.
    atoms: BTreeMap<(u32, u32), f64>,
    by_position: BTreeMap<u32, Vec<u32>>,
    /// ||W^1/2 (x - D z)||^2.
    squares: f64,
}

impl<'a, T: Real> Pursuit<'a, T> {
    fn new(coder: &'a Omp<T>, sample: &Sample<T>) -> Result<Self> {
        let dictionary = &coder.dictionary;
        let (s, f) = (sample.shape().spatial(), dictionary.shape().spatial());
        let circular = coder.boundary == Boundary::Circular;
        let positions: [usize; 3] = std::array::from_fn(|i| if circular { s[i] } else { s[i] + f[i] - 1 });
        let (n, area) = (dictionary.n_filters(), positions.iter().product::<usize>());
        let lag_numbers = (n * n).saturating_mul(lags(f));
        system::ensure_free("the coder `omp`", 8 * (n.saturating_mul(area).saturating_add(lag_numbers)) as u64)?;
        let canvas = Canvas::new(sample, dictionary, coder.boundary);
        // Where every value counts fully an atom is the same everywhere, unless it meets itself around a small circle.
        let is_large = !circular || (0..3).all(|i| s[i] == 1 && f[i] == 1 || s[i] >= 2 * f[i] - 1);
        let is_uniform = is_large && canvas.weights.iter().all(|w| *w == 1.0);
        let residual: Vec<f64> = canvas.values.iter().zip(&canvas.weights).map(|(x, w)| w * x).collect();
        let squares = canvas.values.iter().zip(&residual).map(|(x, r)| x * r).sum();
        let inverse = |energy: f64| if energy > 0.0 { 1.0 / energy.sqrt() } else { 0.0 };
        let mut pursuit = Pursuit {
            coder,
            positions,
            correlations: vec![0.0; n * area],
            best: vec![(0.0, 0); n * positions[0] * positions[1]],
            inverse_norms: dictionary.norms().iter().map(|norm| inverse(norm * norm)).collect(),
            atoms: BTreeMap::new(),
            by_position: BTreeMap::new(),
            squares,
            residual: None,
            canvas,
        };
        let width = positions[2];
        let mut correlations = std::mem::take(&mut pursuit.correlations);
        correlations.par_chunks_exact_mut(width).enumerate().for_each(|(line, out)| {
            for (x, out) in out.iter_mut().enumerate() {
                *out = pursuit.correlation(&residual, line * width / area, line * width % area + x);
            }
        });
        pursuit.correlations = correlations;
        if !is_uniform {
            pursuit.residual = Some(residual);
            let energy = |i: usize| {
                let mut sum = 0.0;
                pursuit.canvas.each_tap(dictionary, i / area, i % area, |cell, tap| {
                    sum += pursuit.canvas.weights[cell] * tap * tap;
                });
                inverse(sum)
            };
            pursuit.inverse_norms = (0..n * area).into_par_iter().map(energy).collect();
        }
        (0..pursuit.best.len()).for_each(|line| pursuit.look_at(line));
        Ok(pursuit)
    }

    /// d_k^T of an image at a position.
    fn correlation(&self, image: &[f64], filter: usize, position: usize) -> f64 {
        let mut sum = 0.0;
        self.canvas.each_tap(&self.coder.dictionary, filter, position, |cell, tap| sum += tap * image[cell]);
        sum
    }

    fn area(&self) -> usize {
        self.positions.iter().product()
    }

    /// Finds the strongest of a line of a filter.
    fn look_at(&mut self, line: usize) {
        let width = self.positions[2];
        let first = line * width;
        let of_filter = self.inverse_norms[first / self.area()];
        let mut best = (0.0, 0);
        for (x, c) in self.correlations[first..][..width].iter().enumerate() {
            let norm = if self.residual.is_none() { of_filter } else { self.inverse_norms[first + x] };
            let strength = norm * if self.coder.config.nonnegative { *c } else { c.abs() };
            if strength > best.0 {
                best = (strength, x);
            }
        }
        self.best[line] = best;
    }

    /// The strongest atom that is not on the support: its correlation relative to its norm, its filter and its position.
    fn strongest(&self) -> Option<(f64, u32, u32)> {
        let lines = self.best.iter().enumerate().filter(|(_, (strength, _))| *strength > 0.0);
        let (line, (strength, x)) = lines.max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0)))?;
        let (at, area) = (line * self.positions[2] + x, self.area());
        Some((*strength, (at / area) as u32, (at % area) as u32))
    }

    /// Lets an atom join, and fits all values anew.
    fn join(&mut self, filter: u32, position: u32) {
        if self.atoms.insert((filter, position), 0.0).is_none() {
            self.by_position.entry(position).or_default().push(filter);
        }
        let index = |(k, p): (u32, u32), area: usize| k as usize * area + p as usize;
        let area = self.area();
        let small = ACCURACY * self.correlations[index((filter, position), area)].abs();
        // The correlations of the support while it is fitted; the others follow when it is done.
        let mut moved: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let mut pull: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let mut waiting = VecDeque::from([(filter, position)]);
        for _ in 0..MAX_STEPS {
            let Some(atom) = waiting.pop_front() else { break };
            let c = self.correlations[index(atom, area)] + pull.get(&atom).copied().unwrap_or(0.0);
            let energy = self.pair(atom, atom);
            if energy <= 0.0 || c.abs() <= small {
                continue;
            }
            let value = self.atoms.get(&atom).copied().unwrap_or(0.0);
            let mut change = c / energy;
            if self.coder.config.nonnegative {
                change = change.max(-value);
            }
            if change == 0.0 {
                continue;
            }
            self.atoms.insert(atom, value + change);
            self.squares -= 2.0 * change * c - change * change * energy;
            *moved.entry(atom).or_default() += change;
            for near in self.neighbours(atom) {
                let g = self.pair(atom, near);
                if g != 0.0 {
                    *pull.entry(near).or_default() -= change * g;
                    if !waiting.contains(&near) && near != atom {
                        waiting.push_back(near);
                    }
                }
            }
        }
        self.squares = self.squares.max(0.0);
        self.spread(&moved);
    }

    /// The atoms of the support that overlap with one.
    fn neighbours(&self, (_, position): (u32, u32)) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for line in self.lines_around(position) {
            for (first, last) in self.columns_around(position) {
                let near = self.by_position.range((line + first) as u32..(line + last) as u32);
                found.extend(near.flat_map(|(p, filters)| filters.iter().map(|k| (*k, *p))));
            }
        }
        found
    }

    /// <d_a, W d_b> of two atoms.
    fn pair(&self, a: (u32, u32), b: (u32, u32)) -> f64 {
        if self.residual.is_none() {
            return self.lag(a.1, b.1).map_or(0.0, |lag| self.gram_at(a.0 as usize, b.0 as usize, lag));
        }
        let mut image: BTreeMap<usize, f64> = BTreeMap::new();
        let d = &self.coder.dictionary;
        self.canvas.each_tap(d, a.0 as usize, a.1 as usize, |cell, tap| *image.entry(cell).or_default() += tap);
        let mut sum = 0.0;
        self.canvas.each_tap(d, b.0 as usize, b.1 as usize, |cell, tap| {
            sum += tap * self.canvas.weights[cell] * image.get(&cell).copied().unwrap_or(0.0);
        });
        sum
    }

    /// How far position b lies from a, if the filters there overlap.
    fn lag(&self, a: u32, b: u32) -> Option<[isize; 3]> {
        let (a, b) = (self.coordinates(a), self.coordinates(b));
        let reach = self.coder.dictionary.shape().spatial().map(|m| m as isize - 1);
        let mut lag = [0; 3];
        for i in 0..3 {
            let n = self.positions[i] as isize;
            lag[i] = b[i] as isize - a[i] as isize;
            if self.coder.boundary == Boundary::Circular {
                lag[i] = (lag[i] + n / 2).rem_euclid(n) - n / 2;
            }
            if lag[i].abs() > reach[i] {
                return None;
            }
        }
        Some(lag)
    }

    fn gram_at(&self, k: usize, l: usize, lag: [isize; 3]) -> f64 {
        let (n, m) = (self.coder.dictionary.n_filters(), self.coder.dictionary.shape().spatial());
        let at: [usize; 3] = std::array::from_fn(|i| (lag[i] + m[i] as isize - 1) as usize);
        let flat = (at[0] * (2 * m[1] - 1) + at[1]) * (2 * m[2] - 1) + at[2];
        self.coder.gram()[(k * n + l) * lags(m) + flat]
    }

    fn coordinates(&self, position: u32) -> [usize; 3] {
        let ([_, height, width], p) = (self.positions, position as usize);
        [p / (height * width), p / width % height, p % width]
    }

    /// The first positions of the lines in which filters overlap with one at a position.
    fn lines_around(&self, position: u32) -> Vec<usize> {
        let [z, y, _] = self.coordinates(position);
        let [depth, height, width] = self.positions;
        let reach = self.coder.dictionary.shape().spatial().map(|m| m - 1);
        let around = |at: usize, reach: usize, n: usize| -> Vec<usize> {
            match self.coder.boundary == Boundary::Circular {
                true if 2 * reach + 1 >= n => (0..n).collect(),
                true => (0..=2 * reach).map(|i| (at + n + i - reach) % n).collect(),
                false => (at.saturating_sub(reach)..(at + reach + 1).min(n)).collect(),
            }
        };
        let rows = around(y, reach[1], height);
        around(z, reach[0], depth).iter().flat_map(|z| rows.iter().map(move |y| (z * height + y) * width)).collect()
    }

    /// The stretches of columns in which filters overlap with one at a position.
    fn columns_around(&self, position: u32) -> Vec<(usize, usize)> {
        let ([_, _, x], n) = (self.coordinates(position), self.positions[2]);
        let reach = self.coder.dictionary.shape().width - 1;
        match self.coder.boundary == Boundary::Circular {
            true if 2 * reach + 1 >= n => vec![(0, n)],
            true if x < reach => vec![(0, x + reach + 1), (n + x - reach, n)],
            true if x + reach >= n => vec![(0, x + reach + 1 - n), (x - reach, n)],
            _ => vec![(x.saturating_sub(reach), (x + reach + 1).min(n))],
        }
    }

    /// Brings the correlations in line with values that have changed.
    fn spread(&mut self, moved: &BTreeMap<(u32, u32), f64>) {
        let (n, width) = (self.coder.dictionary.n_filters(), self.positions[2]);
        if let Some(residual) = &mut self.residual {
            for ((k, p), change) in moved {
                let (canvas, d) = (&self.canvas, &self.coder.dictionary);
                canvas.each_tap(d, *k as usize, *p as usize, |cell, tap| {
                    residual[cell] -= change * canvas.weights[cell] * tap;
                });
            }
        }
        let mut lines: Vec<usize> = moved.keys().flat_map(|(_, p)| self.lines_around(*p)).collect();
        lines.sort_unstable();
        lines.dedup();
        let area = self.area();
        let mut correlations = std::mem::take(&mut self.correlations);
        correlations.par_chunks_exact_mut(area).enumerate().for_each(|(k, map)| {
            for (&(l, p), change) in moved {
                for line in self.lines_around(p) {
                    for (first, last) in self.columns_around(p) {
                        self.update(k, (l, p, *change), line + first..line + last, map);
                    }
                }
            }
        });
        // What was fitted is not asked again, however its correlation is rounded.
        moved.keys().for_each(|(k, p)| correlations[*k as usize * area + *p as usize] = 0.0);
        self.correlations = correlations;
        let per_filter = area / width;
        (0..n).for_each(|k| lines.iter().for_each(|line| self.look_at(k * per_filter + line / width)));
    }

    /// Updates the correlations of filter k in a stretch of a line that an atom touches.
    fn update(&self, k: usize, (l, p, change): (u32, u32, f64), stretch: std::ops::Range<usize>, map: &mut [f64]) {
        for at in stretch {
            map[at] = match &self.residual {
                Some(residual) => self.correlation(residual, k, at),
                None => match self.lag(p, at as u32) {
                    // <d_k at `at`, d_l at p>: d_l lies at minus this lag from d_k.
                    Some(lag) => map[at] - change * self.gram_at(k, l as usize, lag.map(|t| -t)),
                    None => map[at],
                },
            };
        }
    }
}
