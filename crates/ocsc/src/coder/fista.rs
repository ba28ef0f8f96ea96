//! FISTA, in the spatial or the frequency domain: the coder of the online methods OCDL1 and OCDL2.
//!
//! **Iteration**, with L at least the largest eigenvalue of D^T D and S_t the soft threshold:
//!
//! ```text
//! y     = z + m (z - z_old),    m = (t - 1) / t_next,    t_next = (1 + sqrt(1 + 4 t^2)) / 2
//! z_new = S_{beta/L}( y + D^T (x - D y) / L )
//! ```
//!
//! **Adaptive restart**: the momentum m starts anew when it points uphill, (y - z_new).(z_new - z) > 0.
//!
//! D y follows from D z and D z_old, so an iteration is one D^T of an image and one D of a sparse code; x - D y is a dual point
//! too, and D^T of it is at hand, as in [`Admm`](super::Admm): the best one so far is offered to the certificate.
//!
//! **Cost** of an iteration K P log P in the frequency domain, K P M in the spatial one; memory 2 K P.
//!
//! References: Beck, Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems", SIAM J.
//! Imaging Sciences 2(1), 2009; O'Donoghue, Candes, "Adaptive restart for accelerated gradient schemes", Foundations of
//! Computational Mathematics 15(3), 2015.

use super::convolution::{Convolution, Space};
use super::dual::{Claim, Proven};
use super::prox::soft;
use super::stop::{Iterated, Stop};
use super::{Coded, Coder, Status, dual_value};
use crate::coder::{CoderConfig, StopRule};
use crate::setting::positive;
use crate::{Code, Dictionary, Error, Real, Result, Sample};

/// Codes samples by FISTA.
pub struct Fista<T: Real> {
    pub(super) beta: f64,
    pub(super) tol: f64,
    pub(super) config: CoderConfig,
    pub(super) dictionary: Dictionary<T>,
    space: Space,
    plan: Option<Descent<T>>,
}

/// The variables for samples of one shape.
pub(super) struct Descent<T: Real> {
    pub(super) convolution: Convolution<T>,
    /// z and z_old, (K, 2, P).
    pub(super) maps: Vec<T>,
    /// D z, D z_old and the residual at y, (C, P) each.
    pub(super) dz: Vec<T>,
    dz_old: Vec<T>,
    residual: Vec<T>,
    /// The residual at y with the largest dual value so far, (C, P), and that value.
    offered: Vec<T>,
    offered_value: f64,
    proven: Proven,
    /// t of the momentum, and m.
    t: f64,
    momentum: f64,
}

impl<T: Real> Fista<T> {
    /// Makes a coder for a dictionary; `tol` is that of the stopping rule. Of the settings only `stop` and `max_iters` matter.
    pub fn new(dictionary: &Dictionary<T>, beta: f64, tol: f64, space: Space, config: CoderConfig) -> Result<Self> {
        positive("beta", beta)?;
        positive("tol", tol)?;
        config.check_values()?;
        Ok(Fista { beta, tol, config, dictionary: dictionary.clone(), space, plan: None })
    }

    /// The variables for samples of this shape, planned anew when the shape changes.
    pub(super) fn planned(&mut self, sample: &Sample<T>) -> Result<&mut Descent<T>> {
        sample.check_whole()?;
        self.dictionary.check_sample_shape(sample.shape())?;
        self.plan.take_if(|plan| plan.convolution.shape != sample.shape());
        let (dictionary, space) = (&self.dictionary, self.space);
        Ok(self.plan.get_or_insert_with(|| {
            let image = vec![T::zero(); sample.shape().len()];
            Descent {
                convolution: Convolution::new(dictionary, sample.shape(), space),
                maps: vec![T::zero(); 2 * dictionary.n_filters() * sample.shape().pixels()],
                dz: image.clone(),
                dz_old: image.clone(),
                residual: image.clone(),
                offered: image,
                offered_value: f64::NEG_INFINITY,
                proven: Proven::default(),
                t: 1.0,
                momentum: 0.0,
            }
        }))
    }

    /// The code of all zeros, if that is where the coder starts and nothing exceeds beta.
    pub(super) fn zero(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Option<Coded<T>>> {
        let (beta, tol, dictionary) = (self.beta, self.tol, self.dictionary.clone());
        let plan = self.planned(sample)?;
        if start.is_some_and(|code| code.nonzeros() > 0) || plan.convolution.max_correlation(sample.data()) > beta {
            return Ok(None);
        }
        let coded = plan.certified(sample, &dictionary, beta, tol, 0, Status::Converged)?;
        // What rounding hid may be beyond beta after all.
        Ok(Some(coded).filter(|coded| coded.relative_gap() <= tol))
    }

    /// Iterates from the code that `plan.maps` holds, which took so many iterations, until the rule holds; `accelerate`
    /// says whether there is momentum.
    pub(super) fn iterate(&mut self, sample: &Sample<T>, done: usize, accelerate: bool) -> Result<Coded<T>> {
        let (beta, tol, config, dictionary) = (self.beta, self.tol, self.config.clone(), self.dictionary.clone());
        let plan = self.planned(sample)?;
        // There are no residuals but the change of the code.
        let rule = if config.stop == StopRule::Residuals { StopRule::Change } else { config.stop };
        let mut stop = Stop::new(rule, tol);
        for iter in done + 1..=config.max_iters {
            let step = plan.step(sample, beta, accelerate);
            if stop.is_due(iter, &step) {
                let coded = plan.certified(sample, &dictionary, beta, tol, iter, Status::Converged)?;
                if stop.accepts(iter, &coded) {
                    return Ok(coded);
                }
            }
        }
        plan.certified(sample, &dictionary, beta, tol, config.max_iters, Status::MaxIters)
    }
}

impl<T: Real> Descent<T> {
    /// z = z_old = the code.
    pub(super) fn start(&mut self, code: &Code<T>) -> Result<()> {
        let pixels = self.convolution.shape.pixels();
        if code.n_filters() * pixels * 2 != self.maps.len() || code.shape() != self.convolution.shape.spatial() {
            let found = format!("{} filters on {:?}", code.n_filters(), code.shape());
            return Err(Error::invalid("the starting code", format!("one on {}", self.convolution.shape), found));
        }
        self.maps.fill(T::zero());
        for a in code.atoms() {
            let at = a.filter as usize * 2 * pixels + a.position as usize;
            (self.maps[at], self.maps[at + pixels]) = (a.value, a.value);
        }
        self.restart();
        self.offered_value = f64::NEG_INFINITY;
        self.proven.clear();
        Ok(())
    }

    /// D z of the maps at hand, and no momentum.
    pub(super) fn restart(&mut self) {
        self.convolution.synthesise(&self.maps, &mut self.dz);
        self.dz_old.copy_from_slice(&self.dz);
        (self.t, self.momentum) = (1.0, 0.0);
    }

    fn step(&mut self, sample: &Sample<T>, beta: f64, accelerate: bool) -> Iterated {
        let (m, pixels) = (T::of(self.momentum), self.convolution.shape.pixels());
        let (mut x_r, mut r_r) = (0.0, 0.0);
        for (i, x) in sample.data().iter().enumerate() {
            let r = *x - (self.dz[i] + m * (self.dz[i] - self.dz_old[i]));
            self.residual[i] = r;
            x_r += x.f64() * r.f64();
            r_r += r.f64().powi(2);
        }
        let inverse = 1.0 / self.convolution.lipschitz;
        let (scale, threshold) = (T::of(inverse), T::of(beta * inverse));
        let sums = self.convolution.correlate(&self.residual, &mut self.maps, |_, q, block, sums| {
            let (z, z_old) = block.split_at_mut(pixels);
            for ((z, z_old), q) in z.iter_mut().zip(z_old).zip(q) {
                let y = *z + m * (*z - *z_old);
                let new = soft(y + *q * scale, threshold);
                // Most coefficients are zero and stay so.
                if new != T::zero() || y != T::zero() || *z != T::zero() {
                    let (step, new_) = ((new - *z).f64(), new.f64());
                    sums[0] += (y.f64() - new_) * step;
                    sums[1] += step * step;
                    sums[2] += new_ * new_;
                    sums[3] += new_.abs();
                }
                (*z_old, *z) = (*z, new);
            }
        });
        std::mem::swap(&mut self.dz, &mut self.dz_old);
        self.convolution.synthesise(&self.maps, &mut self.dz);
        let [uphill, change, norm, l1] = sums.sums;
        let next = 0.5 * (1.0 + (1.0 + 4.0 * self.t * self.t).sqrt());
        (self.t, self.momentum) = if !accelerate || uphill > 0.0 { (1.0, 0.0) } else { (next, (self.t - 1.0) / next) };
        let dual_value = dual_value(x_r, r_r, sums.correlation, beta);
        if dual_value > self.offered_value {
            self.offered_value = dual_value;
            self.offered.copy_from_slice(&self.residual);
        }
        let error: f64 = sample.data().iter().zip(&self.dz).map(|(x, e)| (x.f64() - e.f64()).powi(2)).sum();
        let change = if change == 0.0 { 0.0 } else { (change / norm.max(f64::MIN_POSITIVE)).sqrt() };
        Iterated {
            objective: 0.5 * error + beta * l1,
            dual_value,
            residuals: [change; 2],
            change,
            has_moved: change > 0.0,
        }
    }

    /// The code at hand with its certificate.
    pub(super) fn certified(
        &mut self,
        sample: &Sample<T>,
        dictionary: &Dictionary<T>,
        beta: f64,
        tol: f64,
        iterations: usize,
        status: Status,
    ) -> Result<Coded<T>> {
        let pixels = self.convolution.shape.pixels();
        let z: Vec<T> = self.maps.chunks_exact(2 * pixels).flat_map(|block| &block[..pixels]).copied().collect();
        let code = Code::from_dense(dictionary.n_filters(), sample.shape().spatial(), &z);
        // Numbers that overflowed are found here.
        let code = Code::new(code.n_filters(), code.shape(), code.atoms().to_vec())?;
        let claim = Claim { sample, dictionary, code, beta, tol, iterations, status };
        let is_offered = self.offered_value > f64::NEG_INFINITY;
        let offered = is_offered.then(|| self.offered.iter().map(|v| v.f64()).collect());
        self.proven.certify(claim, offered, |t, least| self.convolution.bound(t, least))
    }
}

impl<T: Real> Coder<T> for Fista<T> {
    fn set_dictionary(&mut self, dictionary: &Dictionary<T>) {
        let sizes = |d: &Dictionary<T>| (d.n_filters(), d.shape());
        if sizes(dictionary) != sizes(&self.dictionary) {
            self.plan = None;
        }
        self.dictionary = dictionary.clone();
        if let Some(plan) = &mut self.plan {
            plan.convolution.set_dictionary(dictionary);
        }
    }

    fn code(&mut self, sample: &Sample<T>, start: Option<&Code<T>>) -> Result<Coded<T>> {
        let zero = Code::zero(self.dictionary.n_filters(), sample.shape().spatial());
        self.planned(sample)?.start(start.unwrap_or(&zero))?;
        match self.zero(sample, start)? {
            Some(coded) => Ok(coded),
            None => self.iterate(sample, 0, true),
        }
    }

    fn beta_max(&mut self, sample: &Sample<T>) -> Result<f64> {
        let x: Vec<f64> = sample.data().iter().map(|v| v.f64()).collect();
        Ok(self.planned(sample)?.convolution.bound(&x, 0.0))
    }
}
