//! Correlations of the codes at lags shorter than the filter: all that the dictionary's objective needs to know.
//!
//! With filters of m taps per axis, for |tau| < m and 0 <= s < m on every axis,
//!
//! ```text
//! phi_kl(tau) = sum_i sum_p z_ik(p) z_il(p + tau)             the same for all channels
//! psi_k(s)    = sum_i sum_p x_i(p + s) z_ik(p)                for every channel
//! ```
//!
//! since two filters placed further apart do not overlap. Then, with (phi_kl * d_l)(s) = sum_s' phi_kl(s - s') d_l(s'),
//!
//! ```text
//! sum_i 1/2 || x_i - D z_i ||^2  =  1/2 sum_kl <d_k, phi_kl * d_l> - sum_k <psi_k, d_k> + 1/2 sum_i ||x_i||^2
//! ```
//!
//! exactly, whatever the samples' sizes and number. Statistics of different samples add.
//!
//! **Boundaries.** `circular`: p + tau wraps around, so on samples shorter than 2m - 1 two atoms meet at several lags, and
//! an atom meets itself. `zero`: positions run from -(m-1), and x is zero outside the sample. `free`: the outside is not
//! observed; it is filled with D z for the dictionary of that moment. At this dictionary the objective above then is the
//! one of the sample alone, and at any other one it lies above it, so what lowers it lowers both. Values that a mask hides
//! are filled in the same way, whatever the boundary; those that a weight W in (0, 1) or a robust loss lets count less become
//! W x + (1 - W) D z.
//!
//! **Storage.** Since phi_lk(-tau) = phi_kl(tau), only k <= l, the whole window of lags each: about K (K + 1) / 2 windows,
//! in blocks of LANES filters l as [`Window`] says. The first block of row k holds zeros for l < k. Numbers are kept in T:
//! a lag receives few terms per sample, and what is subject to long sums within a sample (psi, D z) is summed in f64.
//!
//! **Weight.** All of it may be multiplied by a number, which costs nothing: the numbers stay as they are and a common
//! weight changes, by which what is absorbed afterwards is divided. The weight is multiplied into the numbers when it
//! leaves [1/64, 64], so that they stay within a few bits of what they stand for.
//!
//! **Cost** of a sample: its pairs of atoms closer than m, and m^2 per atom.

use super::pairs::{Pairs, Products};
use super::{LANES, Window};
use crate::Boundary;
use crate::{Atom, Code, Dictionary, Error, Loss, Real, Result, Sample, Shape};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::{AddAssign, Range};

/// The number of products of neighbouring atoms that are collected before they are added, give or take the neighbours of one atom.
const PRODUCTS: usize = 1 << 14;

/// How far the weight may be from 1 before it is multiplied in, as a factor.
const FAR: f64 = 64.0;

/// phi, psi and the constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Lags<T> {
    n_filters: usize,
    filter: Shape,
    window: Window,
    /// The numbers below times this are the statistics.
    weight: f64,
    phi: Vec<T>,
    psi: Vec<T>,
    constant: f64,
}

/// What one sample adds to the statistics: its code, of which phi is made, psi of the filters that the code uses, and the
/// constant. It is far smaller than the statistics, and whoever adds the same ones in the same order gets the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Addend<'a, T: Real> {
    code: Cow<'a, Code<T>>,
    psi: Vec<T>,
    constant: f64,
}

impl<T: Real> Addend<'_, T> {
    /// What was told of another member's sample.
    pub(crate) fn new(code: Code<T>, psi: Vec<T>, constant: f64) -> Self {
        Addend { code: Cow::Owned(code), psi, constant }
    }

    /// The code.
    pub(crate) fn code(&self) -> &Code<T> {
        &self.code
    }

    /// psi of the filters that the code uses.
    pub(crate) fn psi(&self) -> &[T] {
        &self.psi
    }

    /// The constant.
    pub(crate) fn constant(&self) -> f64 {
        self.constant
    }

    /// psi, and where each filter's begins in an array of all filters'.
    pub(crate) fn psi_parts(&self, filter_len: usize) -> impl Iterator<Item = (usize, &[T])> {
        let starts = by_filter(&self.code).map(move |atoms| atoms[0].filter as usize * filter_len);
        starts.zip(self.psi.chunks_exact(filter_len))
    }
}

/// A code's atoms, filter by filter.
fn by_filter<T: Real>(code: &Code<T>) -> impl Iterator<Item = &[Atom<T>]> {
    code.atoms().chunk_by(|a, b| a.filter == b.filter)
}

impl<T: Real> Lags<T> {
    /// Statistics of nothing, for so many filters of one shape.
    pub fn new(n_filters: usize, filter: Shape) -> Self {
        let window = Window::new(filter);
        let phi = vec![T::zero(); Self::phi_len(n_filters, filter)];
        let psi = vec![T::zero(); n_filters * filter.len()];
        Lags { n_filters, filter, window, weight: 1.0, phi, psi, constant: 0.0 }
    }

    /// Bytes that the statistics take.
    pub fn bytes(n_filters: usize, filter: Shape) -> usize {
        let phi = Self::phi_len(n_filters, filter);
        phi.saturating_add(n_filters.saturating_mul(filter.len())).saturating_mul(size_of::<T>())
    }

    /// The numbers of phi.
    pub(crate) fn phi_len(n_filters: usize, filter: Shape) -> usize {
        blocks_before(n_filters, n_filters).saturating_mul(Window::new(filter).block_len())
    }

    /// Returns the number of filters.
    pub fn n_filters(&self) -> usize {
        self.n_filters
    }

    /// Returns the filters' shape.
    pub fn filter_shape(&self) -> Shape {
        self.filter
    }

    /// phi_kl at the lag (depth, height, width), each shorter than the filter.
    pub fn lag(&self, k: usize, l: usize, lag: [isize; 3]) -> T {
        let (k, l, lag) = if k <= l { (k, l, lag) } else { (l, k, lag.map(|t| -t)) };
        T::of(self.weight * self.block(k, l / LANES)[self.window.at(lag) * LANES + l % LANES].f64())
    }

    /// psi_k, in the order of a filter.
    pub fn psi(&self, k: usize) -> Vec<T> {
        self.unweighted_psi(k).iter().map(|v| T::of(self.weight * v.f64())).collect()
    }

    /// psi_k / weight, as [`Lags::block`] is phi_kl / weight: the minimum over dictionaries does not depend on it.
    pub(crate) fn unweighted_psi(&self, k: usize) -> &[T] {
        &self.psi[k * self.filter.len()..][..self.filter.len()]
    }

    /// The same, to be changed.
    pub(crate) fn unweighted_psi_mut(&mut self, k: usize) -> &mut [T] {
        &mut self.psi[k * self.filter.len()..][..self.filter.len()]
    }

    /// phi_kk(0) / weight: the energy of filter k's codes.
    pub(crate) fn energy(&self, k: usize) -> T {
        self.block(k, k / LANES)[self.window.at([0; 3]) * LANES + k % LANES]
    }

    /// The geometry of a window of lags.
    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// phi_kl / weight for the LANES filters l of a block, not before that of k; zero for l < k.
    pub(crate) fn block(&self, k: usize, block: usize) -> &[T] {
        let len = self.window.block_len();
        &self.phi[(blocks_before(self.n_filters, k) + block - k / LANES) * len..][..len]
    }

    /// The same, to be set.
    pub(crate) fn block_mut(&mut self, k: usize, block: usize) -> &mut [T] {
        let len = self.window.block_len();
        &mut self.phi[(blocks_before(self.n_filters, k) + block - k / LANES) * len..][..len]
    }

    /// The window of phi_kl / weight, for k <= l, with lags as [`Window::at`] counts them.
    pub(crate) fn pair(&self, k: usize, l: usize) -> impl Iterator<Item = T> {
        self.block(k, l / LANES)[l % LANES..].iter().step_by(LANES).copied()
    }

    /// Sets the window of phi_kl / weight, for k < l.
    pub(crate) fn set_pair(&mut self, k: usize, l: usize, values: &[T]) {
        let len = self.window.block_len();
        let start = (blocks_before(self.n_filters, k) + l / LANES - k / LANES) * len;
        let lane = self.phi[start..][..len].iter_mut().skip(l % LANES).step_by(LANES);
        lane.zip(values).for_each(|(phi, v)| *phi = *v);
    }

    /// out(x) <- out(x) + phi_kl(lag - x), x along the width: a line of the matrix of phi_kl.
    pub(crate) fn add_line(&self, k: usize, l: usize, lag: [isize; 3], out: &mut [T]) {
        let weight = T::of(self.weight);
        // phi_kl(lag - x) = phi_lk(x - lag)
        let (row, column, lag) = if k <= l { (k, l, lag) } else { (l, k, lag.map(|t| -t)) };
        let (block, first) = (&self.block(row, column / LANES)[column % LANES..], self.window.at(lag));
        for (x, out) in out.iter_mut().enumerate() {
            *out += weight * block[if k <= l { first - x } else { first + x } * LANES];
        }
    }

    /// phi and psi, then the constant and the weight, for checkpoints.
    pub(crate) fn parts(&self) -> ([&[T]; 2], [f64; 2]) {
        ([&self.phi, &self.psi], [self.constant, self.weight])
    }

    /// The arrays of the same, to be restored.
    pub(crate) fn arrays_mut(&mut self) -> [&mut [T]; 2] {
        [&mut self.phi, &mut self.psi]
    }

    /// Restores the constant and the weight.
    pub(crate) fn set_numbers(&mut self, [constant, weight]: [f64; 2]) -> Result<()> {
        if !(constant.is_finite() && constant >= 0.0 && (1.0 / FAR..=FAR).contains(&weight)) {
            let expected = format!("a finite number from 0 up, and one from {} to {FAR}", 1.0 / FAR);
            return Err(Error::invalid("saved constant and weight", expected, format!("{constant}, {weight}")));
        }
        (self.constant, self.weight) = (constant, weight);
        Ok(())
    }

    /// Checks that sample, code and dictionary fit; returns how far positions stick out before the sample.
    pub(crate) fn check(
        &self,
        sample: &Sample<T>,
        code: &Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
    ) -> Result<[usize; 3]> {
        let (s, f) = (sample.shape(), self.filter);
        dictionary.check_sample_shape(s)?;
        let margin = if boundary == Boundary::Circular { [0; 3] } else { f.spatial().map(|n| n - 1) };
        let positions: [usize; 3] = std::array::from_fn(|i| s.spatial()[i] + margin[i]);
        let ours = dictionary.shape() == f && dictionary.n_filters() == self.n_filters;
        if !ours || code.n_filters() != self.n_filters || code.shape() != positions {
            let expected = format!("codes of {} filters at {positions:?} positions", self.n_filters);
            let found = format!("{} filters at {:?} positions", code.n_filters(), code.shape());
            return Err(Error::invalid("lag statistics", expected, found));
        }
        Ok(margin)
    }

    /// Adds one sample with its code; `dictionary` fills what is not observed.
    pub fn absorb(
        &mut self,
        sample: &Sample<T>,
        code: &Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
    ) -> Result<()> {
        let addend = self.addend(sample, code, dictionary, boundary, Loss::L2)?;
        self.add(&addend, boundary)
    }

    /// What one sample with its code would add; `loss` says what differences cost.
    pub fn addend<'a>(
        &self,
        sample: &Sample<T>,
        code: &'a Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
        loss: Loss,
    ) -> Result<Addend<'a, T>> {
        let margin = self.check(sample, code, dictionary, boundary)?;
        let (f, positions) = (self.filter, code.shape());
        let values = filled(sample, code, dictionary, boundary, loss)?;
        let canvas = Canvas::new(&values, sample.shape(), code, dictionary, boundary, margin);
        let used: Vec<&[Atom<T>]> = by_filter(code).collect();
        let mut psi = vec![T::zero(); used.len() * f.len()];
        psi.par_chunks_exact_mut(f.len()).zip(used).for_each(|(psi, atoms)| {
            canvas.set_patches(atoms, positions, f, psi);
        });
        Ok(Addend { code: Cow::Borrowed(code), psi, constant: 0.5 * canvas.energy(&values, boundary) })
    }

    /// Adds what a sample brings.
    pub fn add(&mut self, addend: &Addend<'_, T>, boundary: Boundary) -> Result<()> {
        self.add_all(std::slice::from_ref(addend), boundary)
    }

    /// Adds what several samples bring, with the bits of adding one after the other.
    pub(crate) fn add_all(&mut self, addends: &[Addend<'_, T>], boundary: Boundary) -> Result<()> {
        let len = self.filter.len();
        for addend in addends {
            let used = by_filter(&addend.code).count();
            if addend.psi.len() != used * len {
                let expected = format!("{len} numbers for each of {used} filters");
                return Err(Error::invalid("addend to lag statistics", expected, addend.psi.len()));
            }
        }
        let codes: Vec<&Code<T>> = addends.iter().map(Addend::code).collect();
        self.add_pairs(&codes, boundary)?;
        let scale = 1.0 / self.weight;
        for addend in addends {
            self.constant += scale * addend.constant;
            for (start, more) in addend.psi_parts(len) {
                let psi = &mut self.psi[start..][..len];
                psi.iter_mut().zip(more).for_each(|(p, m)| *p += T::of(scale * m.f64()));
            }
        }
        Ok(())
    }

    /// Adds psi of all filters, and the constant.
    pub(crate) fn add_linear(&mut self, psi: impl Iterator<Item = f64>, constant: f64) {
        let scale = 1.0 / self.weight;
        self.constant += scale * constant;
        self.psi.iter_mut().zip(psi).for_each(|(p, m)| *p += T::of(scale * m));
    }

    /// Adds phi.
    pub(crate) fn add_phi(&mut self, phi: &[i64], value: impl Fn(i64) -> f64 + Sync) {
        let scale = 1.0 / self.weight;
        let add = |(p, m): (&mut T, &i64)| *p += T::of(scale * value(*m));
        self.phi.par_iter_mut().zip(phi).with_min_len(1 << 16).for_each(add);
    }

    /// Adds the pairs of the codes' atoms to phi.
    pub(crate) fn add_pairs(&mut self, codes: &[&Code<T>], boundary: Boundary) -> Result<()> {
        let pairs = codes.par_iter().map(|code| self.pairs(code, boundary)).collect::<Result<Vec<_>>>()?;
        let (scale, mut phi) = (1.0 / self.weight, std::mem::take(&mut self.phi));
        self.sum_pairs(&pairs, 0..self.n_filters, &mut phi, |product| T::of(scale * product));
        self.phi = phi;
        Ok(())
    }

    /// The pairs of a code's atoms.
    pub(crate) fn pairs<'a>(&self, code: &'a Code<T>, boundary: Boundary) -> Result<Pairs<'a, T>> {
        if code.n_filters() != self.n_filters {
            let expected = format!("codes of {} filters", self.n_filters);
            return Err(Error::invalid("lag statistics", expected, code.n_filters()));
        }
        Ok(Pairs::new(code, boundary == Boundary::Circular, &self.window))
    }

    /// An array like phi in about so many parts, each the rows of some filters.
    pub(crate) fn row_groups<'a, N>(&self, phi: &'a mut [N], groups: usize) -> Vec<(Range<usize>, &'a mut [N])> {
        let (n, len) = (self.n_filters, self.window.block_len());
        let (mut rest, mut first, mut parts) = (phi, 0, Vec::new());
        let most = blocks_before(n, n).div_ceil(groups.max(1));
        while first < n {
            let blocks = |last: usize| blocks_before(n, last) - blocks_before(n, first);
            let last =
                (first + 1..=n).take_while(|last| *last == first + 1 || blocks(*last) <= most).last().unwrap_or(n);
            let (rows, later) = rest.split_at_mut(blocks(last) * len);
            parts.push((first..last, rows));
            (rest, first) = (later, last);
        }
        parts
    }

    /// Adds those whose first filter is one of `filters` to the rows of these in an array like phi, of any kind of number.
    pub(crate) fn sum_pairs<N: AddAssign + Copy + Default + Send>(
        &self,
        pairs: &[Pairs<'_, T>],
        filters: Range<usize>,
        rows: &mut [N],
        number: impl Fn(f64) -> N + Sync,
    ) {
        let mut rest = rows;
        let mut tasks = Vec::with_capacity(filters.len());
        for k in filters {
            let blocks = self.n_filters.div_ceil(LANES) - k / LANES;
            let (row, later) = rest.split_at_mut(blocks * self.window.block_len());
            rest = later;
            tasks.push((k, row));
        }
        // Every filter's sums belong to one task, so threads change nothing.
        tasks.into_par_iter().for_each_init(Products::new, |products, (k, row)| {
            for (pairs, a) in pairs.iter().flat_map(|pairs| pairs.atoms_of(k).iter().map(move |a| (pairs, a))) {
                pairs.add_neighbours(a, &self.window, &number, products);
                if products.len() >= PRODUCTS {
                    products.add_to(row);
                }
            }
            products.add_to(row);
        });
    }

    /// Multiplies everything absorbed so far.
    pub fn scale(&mut self, weight: f64) {
        self.weight *= weight;
        if (1.0 / FAR..=FAR).contains(&self.weight) {
            return;
        }
        let scale = T::of(self.weight);
        self.phi.par_chunks_mut(1 << 16).for_each(|part| part.iter_mut().for_each(|v| *v *= scale));
        self.psi.iter_mut().for_each(|v| *v *= scale);
        self.constant *= self.weight;
        self.weight = 1.0;
    }

    /// Sets everything that filter k takes part in to zero: statistics of the same codes without its atoms.
    pub(crate) fn forget(&mut self, k: usize) {
        let (len, lane) = (self.window.block_len(), k % LANES);
        for l in 0..k {
            let start = (blocks_before(self.n_filters, l) + k / LANES - l / LANES) * len;
            self.phi[start..][..len].iter_mut().skip(lane).step_by(LANES).for_each(|v| *v = T::zero());
        }
        let [start, end] = [k, k + 1].map(|k| blocks_before(self.n_filters, k) * len);
        self.phi[start..end].fill(T::zero());
        self.psi[k * self.filter.len()..][..self.filter.len()].fill(T::zero());
    }

    /// Adds what others absorbed.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.n_filters != other.n_filters || self.filter != other.filter {
            let expected = format!("{} filters of {}", self.n_filters, self.filter);
            return Err(Error::invalid("lag statistics", expected, format!("{} of {}", other.n_filters, other.filter)));
        }
        let ratio = other.weight / self.weight;
        let scale = T::of(ratio);
        self.phi.iter_mut().zip(&other.phi).for_each(|(a, b)| *a += *b * scale);
        self.psi.iter_mut().zip(&other.psi).for_each(|(a, b)| *a += *b * scale);
        self.constant += other.constant * ratio;
        Ok(())
    }

    /// sum_i 1/2 ||x_i - D z_i||^2 for any dictionary of the same shape, in f64.
    pub fn objective(&self, dictionary: &Dictionary<T>) -> f64 {
        let rows: Vec<f64> = (0..self.n_filters)
            .into_par_iter()
            .map(|k| {
                let d = dictionary.filter(k);
                let mut window = Vec::with_capacity(self.window.lags());
                let mut quadratic = |l: usize| {
                    window.clear();
                    window.extend(self.pair(k, l));
                    self.window.quadratic(&window, d, dictionary.filter(l))
                };
                let others: f64 = (k + 1..self.n_filters).map(&mut quadratic).sum();
                let linear: f64 = self.unweighted_psi(k).iter().zip(d).map(|(p, d)| p.f64() * d.f64()).sum();
                0.5 * quadratic(k) + others - linear
            })
            .collect();
        self.weight * (rows.iter().sum::<f64>() + self.constant)
    }
}

/// Blocks in the rows before k, of n: a row begins with the block of its own filter.
fn blocks_before(n: usize, k: usize) -> usize {
    let (blocks, rows, rest) = (n.div_ceil(LANES), k / LANES, k % LANES);
    let whole = LANES.saturating_mul(rows).saturating_mul(2 * blocks + 1 - rows) / 2;
    whole.saturating_add(rest * (blocks - rows))
}

/// The sample's values where they count fully, D z where they do not count, and W x + (1 - W) D z in between: the squares of the
/// difference to this majorise the weighted ones, and touch them at this dictionary.
fn filled<'a, T: Real>(
    sample: &'a Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
    loss: Loss,
) -> Result<Cow<'a, [T]>> {
    if sample.mask().is_none() && sample.weights().is_none() && loss == Loss::L2 {
        return Ok(Cow::Borrowed(sample.data()));
    }
    let estimate = code.reconstruct(dictionary, boundary)?;
    let pairs = || sample.data().iter().zip(estimate.data());
    let seen = |i: usize| sample.mask().is_none_or(|mask| mask[i]);
    let observed = || pairs().enumerate().filter(|(i, _)| seen(*i)).map(|(_, (x, e))| (x.f64() - e.f64()).abs());
    // The difference that counts fully where the modulus has no unit of its own: the mean one.
    let unit = if loss == Loss::L1 { observed().sum::<f64>() / sample.n_observed() as f64 } else { 1.0 };
    let weight = |i: usize, r: f64| {
        let given = sample.weights().map_or(1.0, |weights| weights[i].f64());
        given * if loss == Loss::L1 && unit == 0.0 { 1.0 } else { loss.weight(r, unit) }
    };
    let fill = |(i, (x, e)): (usize, (&T, &T))| {
        if !seen(i) {
            return *e;
        }
        match weight(i, x.f64() - e.f64()) {
            1.0 => *x,
            w => T::of(w * x.f64() + (1.0 - w) * e.f64()),
        }
    };
    Ok(Cow::Owned(pairs().enumerate().map(fill).collect()))
}

/// The sample where filters can see it, so that no patch wraps or sticks out: (channel, depth, height, width), positions
/// plus filter minus one on each axis.
struct Canvas {
    axes: [usize; 3],
    values: Vec<f64>,
}

impl Canvas {
    fn new<T: Real>(
        values: &[T],
        s: Shape,
        code: &Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
        margin: [usize; 3],
    ) -> Self {
        let (f, positions) = (dictionary.shape(), code.shape());
        let axes: [usize; 3] = std::array::from_fn(|i| positions[i] + f.spatial()[i] - 1);
        let mut canvas = Canvas { axes, values: vec![0.0; s.channels * axes.iter().product::<usize>()] };
        if boundary == Boundary::Free {
            for a in code.atoms() {
                let (taps, value) = (dictionary.filter(a.filter as usize), a.value.f64());
                for (row, taps) in taps.chunks_exact(f.width).enumerate() {
                    let start = canvas.patch_row(a.position as usize, positions, f, row);
                    let out = &mut canvas.values[start..][..f.width];
                    out.iter_mut().zip(taps).for_each(|(o, t)| *o += value * t.f64());
                }
            }
        }
        // Circular samples are repeated behind their end; others are written inside their frame.
        let repeat = boundary == Boundary::Circular;
        let lengths = if repeat { axes } else { s.spatial() };
        for c in 0..s.channels {
            for z in 0..lengths[0] {
                for y in 0..lengths[1] {
                    let from = ((c * s.depth + z % s.depth) * s.height + y % s.height) * s.width;
                    let to = ((c * axes[0] + z + margin[0]) * axes[1] + y + margin[1]) * axes[2] + margin[2];
                    for x in 0..lengths[2] {
                        canvas.values[to + x] = values[from + if repeat { x % s.width } else { x }].f64();
                    }
                }
            }
        }
        canvas
    }

    /// Where row `row` (channel, depth, height) of a filter at a position starts.
    fn patch_row(&self, position: usize, positions: [usize; 3], f: Shape, row: usize) -> usize {
        let [_, height, width] = positions;
        let (c, dz, dy) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
        let (z, y, x) = (position / (height * width), position / width % height, position % width);
        ((c * self.axes[0] + z + dz) * self.axes[1] + y + dy) * self.axes[2] + x
    }

    /// ||x||^2 over everything that counts, each pixel once.
    fn energy<T: Real>(&self, values: &[T], boundary: Boundary) -> f64 {
        match boundary {
            Boundary::Free => self.values.iter().map(|v| v * v).sum(),
            Boundary::Circular | Boundary::Zero => values.iter().map(|v| v.f64() * v.f64()).sum(),
        }
    }

    /// psi_k <- the sum over the filter's atoms of z times the patch there.
    fn set_patches<T: Real>(&self, atoms: &[Atom<T>], positions: [usize; 3], f: Shape, psi: &mut [T]) {
        let mut sum = vec![0.0; f.len()];
        for a in atoms {
            let value = a.value.f64();
            for (row, sums) in sum.chunks_exact_mut(f.width).enumerate() {
                let start = self.patch_row(a.position as usize, positions, f, row);
                sums.iter_mut().zip(&self.values[start..][..f.width]).for_each(|(s, x)| *s += value * x);
            }
        }
        psi.iter_mut().zip(sum).for_each(|(p, s)| *p = T::of(s));
    }
}
