//! The splitting z = u of the ADMM coders [`Admm`](super::Admm) and [`Masked`](super::Masked): its variables for samples of
//! one shape, and its steps. The mathematics is in `admm.rs`.

mod gram;
mod rho;

pub(super) use rho::{BALANCE_EVERY, balance, default_rho};

use super::dual::{Claim, Exact, Proven};
use super::prox::{LANES, ProxSums, clip, prox, soft};
use super::stop::Iterated;
use super::{Coded, Status, dual_value, residual};
use crate::convolve::{Canvas, Taps};
use crate::fourier::{Fourier, Scratch, conjugate_product};
use crate::{Atom, Code, Dictionary, Error, Real, Result, Sample, Shape};
use gram::Gram;
use num_complex::Complex;
use rayon::prelude::*;

/// Filters are handled in this many groups whose sums are added in order, whatever the number of threads.
const GROUPS: usize = 16;
/// D u is computed from its non-zeros while non-zeros times filter taps is below this many times K P; beyond,
/// transforms are cheaper. Measured at 100x100, K = 100, 11x11.
const SPARSE_LIMIT: usize = 25;

/// Work memory. Axes: K maps of `stride` numbers, C channels, spectra of `n_freqs`.
pub(super) struct Splitting<T: Real> {
    pub(super) shape: Shape,
    dictionary: Dictionary<T>,
    fourier: Fourier<T>,
    /// P rounded up to whole blocks; the numbers beyond P stay zero.
    stride: usize,
    /// Spectra of the padded filters, (K, C, n_freqs).
    d_f: Vec<Complex<T>>,
    taps: Taps<T>,
    /// D D^T at every frequency.
    gram: Gram<T>,
    /// v = u + y, (K, stride).
    v: Vec<T>,
    /// Spectra of the images x, D u, D v, g and D D^T g, (C, n_freqs) each.
    x_f: Vec<Complex<T>>,
    du_f: Vec<Complex<T>>,
    dv_f: Vec<Complex<T>>,
    g_f: Vec<Complex<T>>,
    dg_f: Vec<Complex<T>>,
    /// One image, (C, P).
    image: Vec<T>,
    /// For transforms of filters and images, a part each.
    scratch: Vec<Scratch<T>>,
    /// Non-zeros of u.
    nonzeros: usize,
    /// g of the dual point rho g with the largest dual value since [`Splitting::start`], its rho and that value.
    offered_f: Vec<Complex<T>>,
    offered_rho: f64,
    offered_value: f64,
    proven: Proven,
    groups: Vec<Group<T>>,
}

/// What one group of filters works with.
struct Group<T: Real> {
    scratch: Scratch<T>,
    /// One map, usually D_k^T g, (stride).
    q: Vec<T>,
    /// Its spectrum, (n_freqs).
    q_f: Vec<Complex<T>>,
    /// Positions of the non-zeros of u_k.
    support: Vec<u32>,
    /// The group's part of D u, when it is computed from non-zeros.
    canvas: Canvas<T>,
    /// The same when it is computed by transforms, (C, n_freqs).
    sum_f: Vec<Complex<T>>,
    sums: ProxSums,
}

/// The root of a / b, where zero over zero is zero.
fn ratio(a: f64, b: f64) -> f64 {
    if a == 0.0 { 0.0 } else { (a / b.max(f64::MIN_POSITIVE)).sqrt() }
}

impl<T: Real> Splitting<T> {
    /// Returns the variables for samples of this shape, planned anew when the shape changes.
    pub(super) fn planned<'a>(
        plan: &'a mut Option<Self>,
        dictionary: &Dictionary<T>,
        sample: &Sample<T>,
    ) -> Result<&'a mut Self> {
        dictionary.check_sample_shape(sample.shape())?;
        plan.take_if(|plan| plan.shape != sample.shape());
        Ok(plan.get_or_insert_with(|| Splitting::new(dictionary, sample.shape())))
    }

    pub(super) fn new(dictionary: &Dictionary<T>, shape: Shape) -> Self {
        let fourier = Fourier::new(shape.spatial());
        let (k, freqs, pixels) = (dictionary.n_filters(), fourier.n_freqs(), fourier.n_pixels());
        let channels = shape.channels;
        let stride = pixels.next_multiple_of(LANES);
        let zero = Complex::new(T::zero(), T::zero());
        let groups = (0..k.div_ceil(k.div_ceil(GROUPS))).map(|_| Group {
            scratch: fourier.scratch(),
            q: vec![T::zero(); stride],
            q_f: vec![zero; freqs],
            support: Vec::with_capacity(pixels),
            canvas: Canvas::new(shape, dictionary.shape()),
            sum_f: vec![zero; channels * freqs],
            sums: ProxSums::default(),
        });
        let mut new = Splitting {
            shape,
            dictionary: dictionary.clone(),
            stride,
            d_f: vec![zero; k * channels * freqs],
            taps: Taps::new(dictionary),
            gram: Gram::new(channels, freqs),
            v: vec![T::zero(); k * stride],
            x_f: vec![zero; channels * freqs],
            du_f: vec![zero; channels * freqs],
            dv_f: vec![zero; channels * freqs],
            g_f: vec![zero; channels * freqs],
            dg_f: vec![zero; channels * freqs],
            image: vec![T::zero(); shape.len()],
            scratch: (0..k.min(GROUPS)).map(|_| fourier.scratch()).collect(),
            nonzeros: 0,
            offered_f: vec![zero; channels * freqs],
            offered_rho: 0.0,
            offered_value: f64::NEG_INFINITY,
            proven: Proven::default(),
            groups: groups.collect(),
            fourier,
        };
        new.set_dictionary(dictionary);
        new
    }

    /// Adopts a dictionary of the planned number and shape of filters.
    pub(super) fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        let corner = dictionary.shape().spatial();
        self.fourier.forward_many(dictionary.data(), corner, &mut self.d_f, &mut self.scratch);
        self.gram.set(&self.d_f);
        self.taps = Taps::new(dictionary);
        self.dictionary = dictionary.clone();
    }

    /// Calls `f(group, v_k, d_k, k)` for every filter, groups in parallel, filters of a group in order.
    fn each_filter(
        groups: &mut [Group<T>],
        v: &mut [T],
        d_f: &[Complex<T>],
        f: impl Fn(&mut Group<T>, &mut [T], &[Complex<T>], usize) + Sync,
    ) {
        let (stride, spectra) = (groups[0].q.len(), groups[0].sum_f.len());
        let per_group = (v.len() / stride).div_ceil(groups.len());
        let chunks = v.par_chunks_mut(per_group * stride).zip(d_f.par_chunks(per_group * spectra));
        groups.par_iter_mut().zip(chunks).enumerate().for_each(|(i, (group, (v, d_f)))| {
            for (j, (v, d)) in v.chunks_exact_mut(stride).zip(d_f.chunks_exact(spectra)).enumerate() {
                f(group, v, d, i * per_group + j);
            }
        });
    }

    /// Starts from u = `start` and the dual that its residual suggests: rho y = clip(D^T (x - D u), beta), which is the
    /// optimal dual when u is optimal. Returns max |D^T (x - D u)|.
    pub(super) fn start(&mut self, sample: &Sample<T>, start: Option<&Code<T>>, beta: f64, rho: f64) -> Result<f64> {
        self.fourier.forward_many(sample.data(), self.shape.spatial(), &mut self.x_f, &mut self.scratch);
        let zero = Code::zero(self.dictionary.n_filters(), self.shape.spatial());
        let code = start.unwrap_or(&zero);
        if code.n_filters() != zero.n_filters() || code.shape() != zero.shape() {
            let describe = |c: &Code<T>| format!("{} filters on {:?}", c.n_filters(), c.shape());
            return Err(Error::invalid("the starting code", describe(&zero), describe(code)));
        }
        let threshold = T::of(beta / rho);
        let residual: Vec<f64> = residual(sample, code, &self.dictionary)?;
        self.set_image(&residual);
        let (pixels, scale) = (self.fourier.n_pixels(), 1.0 / rho);
        let (fourier, g_f) = (&self.fourier, &self.g_f);
        self.groups.iter_mut().for_each(Group::clear);
        Self::each_filter(&mut self.groups, &mut self.v, &self.d_f, |group, v, d, _| {
            group.correlate(fourier, d, g_f);
            group.note_correlation();
            for (v, q) in v[..pixels].iter_mut().zip(&group.q) {
                *v = clip(*q * T::of(scale), threshold);
            }
        });
        let correlation = self.correlation();
        for a in code.atoms() {
            let sign = if a.value > T::zero() { threshold } else { -threshold };
            self.v[a.filter as usize * self.stride + a.position as usize] = a.value + sign;
        }
        self.transform_v();
        self.nonzeros = code.nonzeros();
        self.forget_offered();
        self.proven.clear();
        for ((du, x), r) in self.du_f.iter_mut().zip(&self.x_f).zip(&self.g_f) {
            *du = x - r.scale(T::of(pixels as f64));
        }
        Ok(correlation)
    }

    /// g_f <- the spectra of an image, divided by P so that inverse transforms need no scaling.
    fn set_image(&mut self, image: &[f64]) {
        self.image.iter_mut().zip(image).for_each(|(i, v)| *i = T::of(*v));
        self.fourier.forward_many(&self.image, self.shape.spatial(), &mut self.g_f, &mut self.scratch);
        let scale = T::of(1.0 / self.fourier.n_pixels() as f64);
        self.g_f.iter_mut().for_each(|g| *g = g.scale(scale));
    }

    /// D v, from scratch: K forward transforms.
    fn transform_v(&mut self) {
        let fourier = &self.fourier;
        self.groups.iter_mut().for_each(Group::clear);
        Self::each_filter(&mut self.groups, &mut self.v, &self.d_f, |group, v, d, _| {
            group.q.copy_from_slice(v);
            group.add_transformed(fourier, d);
        });
        sum_spectra(&self.groups, &mut self.dv_f);
    }

    /// Makes one iteration: v, D u and D v step on. The code that it tells of is u.
    pub(super) fn iterate(&mut self, beta: f64, rho: f64, relaxation: f64) -> Iterated {
        let pixels = self.fourier.n_pixels();
        let (rho_t, scale) = (T::of(rho), T::of(1.0 / pixels as f64));
        // g = (G + rho I)^-1 (x - D w) with D w = 2 D u - D v, over P for the unscaled inverse transforms below;
        // x - D z = rho g is the dual point.
        for (((g, x), du), dv) in self.g_f.iter_mut().zip(&self.x_f).zip(&self.du_f).zip(&self.dv_f) {
            *g = x - (du + du - dv);
        }
        self.gram.factor(rho_t);
        self.gram.solve(&mut self.g_f, scale);
        let (mut x_g, mut g_g) = (0.0, 0.0);
        for (i, (x, g)) in self.x_f.iter().zip(&self.g_f).enumerate() {
            let weight = self.fourier.weight(i % self.fourier.n_freqs()) as f64;
            // Products in f64: those of tiny numbers would vanish in f32.
            x_g += weight * (x.re.f64() * g.re.f64() + x.im.f64() * g.im.f64());
            g_g += weight * (g.re.f64().powi(2) + g.im.f64().powi(2));
        }
        // D v <- D v + a (D u - D v + D D^T g)
        self.gram.multiply(&self.g_f, scale, &mut self.dg_f);
        for ((dv, du), dg) in self.dv_f.iter_mut().zip(&self.du_f).zip(&self.dg_f) {
            *dv += (du - *dv + dg).scale(T::of(relaxation));
        }

        let (threshold, relaxation) = (T::of(beta / rho), T::of(relaxation));
        let taps = self.dictionary.shape().len();
        let sparse = self.nonzeros * taps <= SPARSE_LIMIT * self.v.len();
        let (fourier, g_f, filters) = (&self.fourier, &self.g_f, &self.taps);
        self.groups.iter_mut().for_each(Group::clear);
        Self::each_filter(&mut self.groups, &mut self.v, &self.d_f, |group, v, d, k| {
            group.correlate(fourier, d, g_f);
            let sums = prox(v, &group.q, threshold, relaxation, &mut group.support);
            group.sums.add(&sums);
            if sparse {
                group.canvas.add(filters, k, &group.support, |p| soft(v[p], threshold));
            } else {
                group.q.iter_mut().zip(&*v).for_each(|(q, v)| *q = soft(*v, threshold));
                group.add_transformed(fourier, d);
            }
        });
        if sparse {
            self.image.fill(T::zero());
            self.groups.iter().for_each(|group| group.canvas.fold_into(&mut self.image));
            self.fourier.forward_many(&self.image, self.shape.spatial(), &mut self.du_f, &mut self.scratch);
        } else {
            sum_spectra(&self.groups, &mut self.du_f);
        }

        let mut sums = ProxSums::default();
        self.groups.iter().for_each(|group| sums.add(&group.sums));
        self.nonzeros = sums.nonzeros;
        let p = pixels as f64;
        let dual_value = dual_value(rho * x_g, rho * rho * g_g * p, rho * sums.correlation, beta);
        if dual_value > self.offered_value {
            (self.offered_rho, self.offered_value) = (rho, dual_value);
            self.offered_f.copy_from_slice(&self.g_f);
        }
        Iterated {
            objective: 0.5 * self.residual_norm() + beta * sums.l1,
            dual_value,
            // ||z - u|| relative to the larger of ||z|| and ||u||, and ||rho (u - u_old)|| relative to ||rho y||
            residuals: [ratio(sums.primal, sums.z.max(sums.u)), ratio(sums.change, sums.y)],
            change: ratio(sums.change, sums.u),
            has_moved: sums.nonzeros > 0,
        }
    }

    /// ||x - D u||^2.
    fn residual_norm(&self) -> f64 {
        let norm = |i: usize| {
            let r = self.x_f[i] - self.du_f[i];
            r.re.f64().powi(2) + r.im.f64().powi(2)
        };
        let weight = |i: usize| self.fourier.weight(i % self.fourier.n_freqs()) as f64;
        let sum: f64 = (0..self.x_f.len()).map(|i| weight(i) * norm(i)).sum();
        sum / self.fourier.n_pixels() as f64
    }

    /// Keeps u and the unscaled dual rho y when rho changes: y <- y rho / new, so v and D v change with it.
    pub(super) fn rescale_dual(&mut self, beta: f64, rho: f64, new: f64) {
        if new == rho {
            return;
        }
        let (threshold, factor) = (T::of(beta / rho), T::of(rho / new));
        self.v.par_chunks_mut(self.stride).for_each(|map| {
            for v in map {
                let y = clip(*v, threshold);
                *v = *v - y + y * factor;
            }
        });
        for (dv, du) in self.dv_f.iter_mut().zip(&self.du_f) {
            *dv = du + (*dv - du).scale(factor);
        }
    }

    /// Forgets the dual points of earlier iterations, whose values were those of another image.
    pub(super) fn forget_offered(&mut self) {
        self.offered_value = f64::NEG_INFINITY;
    }

    /// The best dual point of the iterations, rho g, (C, P), if there is one.
    fn offered(&mut self) -> Option<Vec<f64>> {
        if self.offered_value == f64::NEG_INFINITY {
            return None;
        }
        // g_f holds g over P, as the unscaled inverse wants it; `inverse_many` scales.
        let scale = T::of(self.fourier.n_pixels() as f64);
        self.dg_f.iter_mut().zip(&self.offered_f).for_each(|(out, g)| *out = g.scale(scale));
        self.fourier.inverse_many(&mut self.dg_f, self.shape.spatial(), &mut self.image, &mut self.scratch);
        Some(self.image.iter().map(|g| self.offered_rho * g.f64()).collect())
    }

    /// The sparse code u with its certificate, all recomputed from the code.
    pub(super) fn certified(
        &mut self,
        sample: &Sample<T>,
        beta: f64,
        tol: f64,
        rho: f64,
        iterations: usize,
        status: Status,
    ) -> Result<Coded<T>> {
        let threshold = T::of(beta / rho);
        let mut atoms = Vec::with_capacity(self.nonzeros);
        for (k, map) in self.v.chunks_exact(self.stride).enumerate() {
            for (p, v) in map.iter().enumerate() {
                let value = soft(*v, threshold);
                if value != T::zero() {
                    atoms.push(Atom { filter: k as u32, position: p as u32, value });
                }
            }
        }
        let code = Code::new(self.dictionary.n_filters(), self.shape.spatial(), atoms)?;
        let (dictionary, offered) = (self.dictionary.clone(), self.offered());
        let mut proven = std::mem::take(&mut self.proven);
        let claim = Claim { sample, dictionary: &dictionary, code, beta, tol, iterations, status };
        let coded = proven.certify(claim, offered, |t, least| self.bound(t, least));
        self.proven = proven;
        coded
    }

    /// Replaces the sample by an image (C, P).
    pub(super) fn set_target(&mut self, image: &[T]) {
        self.fourier.forward_many(image, self.shape.spatial(), &mut self.x_f, &mut self.scratch);
    }

    /// D z of the last iteration, (C, P): x - rho g.
    pub(super) fn estimate(&mut self, rho: f64, image: &mut [T]) {
        let scale = T::of(rho * self.fourier.n_pixels() as f64);
        for ((out, x), g) in self.dg_f.iter_mut().zip(&self.x_f).zip(&self.g_f) {
            *out = x - g.scale(scale);
        }
        self.fourier.inverse_many(&mut self.dg_f, self.shape.spatial(), image, &mut self.scratch);
    }

    /// An upper bound on max |D^T t| of an image, which no rounding falsifies, or `least` if that is larger.
    pub(super) fn bound(&mut self, t: &[f64], least: f64) -> f64 {
        self.set_image(t);
        let (fourier, g_f, pixels) = (&self.fourier, &self.g_f, self.fourier.n_pixels());
        let exact = Exact::new(&self.dictionary, self.shape, t);
        let error = exact.transform_error();
        self.groups.iter_mut().for_each(Group::clear);
        Self::each_filter(&mut self.groups, &mut self.v, &self.d_f, |group, _, d, k| {
            group.correlate(fourier, d, g_f);
            let known = group.sums.correlation.max(least);
            group.sums.correlation = exact.strongest(k, &group.q[..pixels], error, known);
        });
        self.correlation()
    }

    /// The largest correlation that the groups noted.
    fn correlation(&self) -> f64 {
        self.groups.iter().fold(0.0, |m, group| m.max(group.sums.correlation))
    }
}

impl<T: Real> Group<T> {
    fn clear(&mut self) {
        self.sums = ProxSums::default();
        self.canvas.clear();
        self.sum_f.fill(Complex::new(T::zero(), T::zero()));
    }

    /// q <- D_k^T g, where g_f holds the spectra of g over P.
    fn correlate(&mut self, fourier: &Fourier<T>, d: &[Complex<T>], g_f: &[Complex<T>]) {
        conjugate_product(&mut self.q_f, d, g_f);
        let pixels = fourier.n_pixels();
        fourier.inverse_unscaled(&mut self.q_f, fourier.shape(), &mut self.q[..pixels], &mut self.scratch);
    }

    /// Notes max |q|, infinite where a number overflowed: then the certificate promises nothing rather than too much.
    fn note_correlation(&mut self) {
        let top = self.q.iter().fold(T::zero(), |m, q| m.at_least(q.abs())).f64();
        let top = if self.q.iter().all(|q| q.is_finite()) { top } else { f64::INFINITY };
        self.sums.correlation = self.sums.correlation.max(top);
    }

    /// Adds D_k q to the group's sum, by a forward transform.
    fn add_transformed(&mut self, fourier: &Fourier<T>, d: &[Complex<T>]) {
        fourier.forward(&self.q[..fourier.n_pixels()], &mut self.q_f, &mut self.scratch);
        for (sum, d) in self.sum_f.chunks_exact_mut(self.q_f.len()).zip(d.chunks_exact(self.q_f.len())) {
            sum.iter_mut().zip(&self.q_f).zip(d).for_each(|((sum, q), d)| *sum += d * q);
        }
    }
}

/// Adds the groups' spectra in their order.
fn sum_spectra<T: Real>(groups: &[Group<T>], total: &mut [Complex<T>]) {
    total.fill(Complex::new(T::zero(), T::zero()));
    for group in groups {
        total.iter_mut().zip(&group.sum_f).for_each(|(t, s)| *t += s);
    }
}
