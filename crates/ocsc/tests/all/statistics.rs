//! {C^p, b^p} against direct sums and inverses, their drift over many steps, and Proposition `pr:reorder`.

use crate::common::*;
use faer::linalg::solvers::{DenseSolveCore, PartialPivLu};
use faer::{Mat, c64};
use num_complex::Complex;
use ocsc::statistics::Spectral;
use ocsc::testing::Fourier;
use ocsc::{Code, Real, Sample, Shape};
use proptest::prelude::*;

/// sum_i conj(z_i) z_i^T and sum_i x_i conj(z_i), (C, K), at every frequency, in double precision and by the definition.
struct Direct {
    fourier: Fourier<f64>,
    k: usize,
    gram: Vec<Mat<c64>>,
    cross: Vec<Vec<c64>>,
}

impl Direct {
    fn new(k: usize, axes: Shape) -> Self {
        let fourier = Fourier::new(axes.spatial());
        let freqs = fourier.n_freqs();
        let cross = vec![vec![c64::new(0.0, 0.0); axes.channels * k]; freqs];
        Direct { fourier, k, gram: vec![Mat::zeros(k, k); freqs], cross }
    }

    fn spectrum(&self, map: &[f64]) -> Vec<c64> {
        let mut spectrum = vec![c64::new(0.0, 0.0); self.fourier.n_freqs()];
        self.fourier.forward(map, &mut spectrum, &mut self.fourier.scratch());
        spectrum
    }

    fn absorb<T: Real>(&mut self, x: &Sample<T>, z: &Code<T>) {
        let spectra = |maps: Vec<f64>| -> Vec<Vec<c64>> {
            maps.chunks(self.fourier.n_pixels()).map(|map| self.spectrum(map)).collect()
        };
        let (x_f, z_f) = (spectra(widen(x.data())), spectra(widen(&z.to_dense().unwrap())));
        for freq in 0..self.gram.len() {
            for i in 0..self.k {
                for (channel, x) in x_f.iter().enumerate() {
                    self.cross[freq][channel * self.k + i] += x[freq] * z_f[i][freq].conj();
                }
                for j in 0..self.k {
                    self.gram[freq][(i, j)] += z_f[i][freq].conj() * z_f[j][freq];
                }
            }
        }
    }

    /// A + rho I.
    fn system(&self, freq: usize, rho: f64) -> Mat<c64> {
        Mat::from_fn(self.k, self.k, |i, j| self.gram[freq][(i, j)] + if i == j { rho } else { 0.0 })
    }

    /// The largest of ||(A + rho I) C - I|| (Frobenius) over all frequencies.
    fn residual<T: Real>(&self, statistics: &Spectral<T>) -> f64 {
        let residual = |freq: usize| {
            let c = matrix(self.k, &statistics.inverse_gram(freq));
            let product = self.system(freq, statistics.rho()) * c;
            let entry = |i: usize, j: usize| product[(i, j)] - if i == j { 1.0 } else { 0.0 };
            (0..self.k * self.k).map(|i| entry(i / self.k, i % self.k).norm_sqr()).sum::<f64>().sqrt()
        };
        (0..self.gram.len()).map(residual).fold(0.0, f64::max)
    }

    /// The largest relative error of C over all frequencies.
    fn error<T: Real>(&self, statistics: &Spectral<T>) -> f64 {
        let error = |freq: usize| {
            let inverse = PartialPivLu::new(self.system(freq, statistics.rho()).as_ref()).inverse();
            distance(&flat(&matrix(self.k, &statistics.inverse_gram(freq))), &flat(&inverse))
        };
        (0..self.gram.len()).map(error).fold(0.0, f64::max)
    }
}

fn matrix<T: Real>(k: usize, entries: &[Complex<T>]) -> Mat<c64> {
    Mat::from_fn(k, k, |i, j| c64::new(entries[i * k + j].re.f64(), entries[i * k + j].im.f64()))
}

fn flat(matrix: &Mat<c64>) -> Vec<f64> {
    let entries = (0..matrix.nrows()).flat_map(|i| (0..matrix.ncols()).map(move |j| matrix[(i, j)]));
    entries.flat_map(|c| [c.re, c.im]).collect()
}

fn problems() -> impl Strategy<Value = (Shape, usize, u64)> {
    let sizes = prop_oneof![
        (Just(1_usize), Just(1_usize), 2..30_usize),
        (Just(1_usize), 2..7_usize, 2..7_usize),
        (2..4_usize, 2..4_usize, 2..5_usize),
    ];
    let problem = |((d, h, w), channels, k, seed)| (colour(channels, [d, h, w]), k, seed);
    (sizes, 1..4_usize, 1..20_usize, 0..10_000_u64).prop_map(problem)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn sherman_morrison_is_the_inverse(
        (axes, k, seed) in problems(), steps in 0..12_u64, rho in 0.1..100.0_f64, density in 0.0..1.0_f64,
    ) {
        let mut direct = Direct::new(k, axes);
        let mut statistics = Spectral::<f64>::new(k, axes, rho);
        let mut single = Spectral::<f32>::new(k, axes, rho);
        for i in 0..steps {
            let (x, z) = (noise(axes, seed + 100 * i), sparse_code(k, axes.spatial(), density, seed + 100 * i + 1));
            statistics.absorb(&x, &z).unwrap();
            direct.absorb(&x, &z);
            let z = sparse_code(k, axes.spatial(), density, seed + 100 * i + 1);
            single.absorb(&noise(axes, seed + 100 * i), &z).unwrap();
        }
        prop_assert_eq!(statistics.rho(), rho);
        prop_assert!(direct.error(&statistics) < 1e-10, "{:e}", direct.error(&statistics));
        prop_assert!(direct.error(&single) < 1e-3, "{:e}", direct.error(&single));
        for (freq, expected) in direct.cross.iter().enumerate() {
            let close = |a: c64, b: c64| (a - b).norm() < 1e-11 * (1.0 + b.norm());
            prop_assert!(statistics.cross(freq).iter().zip(expected).all(|(a, b)| close(*a, *b)));
            let c = statistics.inverse_gram(freq);
            prop_assert!((0..k * k).all(|i| c[i] == c[(i % k) * k + i / k].conj()), "Hermitian");
        }
    }

    /// Proposition `pr:reorder`: 1/2P sum_p ( d^H A d - 2 Re d^H b ) is the data term less 1/2 sum_i ||x_i||^2.
    #[test]
    fn the_reordered_objective_is_the_direct_one((axes, k, seed) in problems(), steps in 1..6_u64) {
        let corner = axes.spatial().map(|n| n.div_ceil(2));
        let d = filters::<f64>(k, colour(axes.channels, corner), seed);
        let rho = 3.0;
        let mut statistics = Spectral::<f64>::new(k, axes, rho);
        let (mut objective, mut constant) = (0.0, 0.0);
        for i in 0..steps {
            let x = noise::<f64>(axes, seed + 100 * i);
            let z = sparse_code(k, axes.spatial(), 0.2, seed + 100 * i + 1);
            statistics.absorb(&x, &z).unwrap();
            let r = Matrix::new(&d, axes).residual(x.data(), &z.to_dense().unwrap());
            objective += 0.5 * dot(&r, &r);
            constant += 0.5 * dot(x.data(), x.data());
        }
        let fourier = Fourier::<f64>::new(axes.spatial());
        let freqs = fourier.n_freqs();
        let mut d_f = vec![c64::new(0.0, 0.0); k * axes.channels * freqs];
        for (taps, d_f) in d.data().chunks(corner.iter().product()).zip(d_f.chunks_mut(freqs)) {
            fourier.forward_padded(taps, corner, d_f, &mut fourier.scratch());
        }
        let mut reordered = 0.0;
        for freq in 0..freqs {
            let inverse = PartialPivLu::new(matrix(k, &statistics.inverse_gram(freq)).as_ref()).inverse();
            let cross = statistics.cross(freq);
            let mut value = 0.0;
            for (channel, b) in cross.chunks(k).enumerate() {
                let d: Vec<c64> = (0..k).map(|i| d_f[(i * axes.channels + channel) * freqs + freq]).collect();
                for i in 0..k {
                    value -= 2.0 * (d[i].conj() * b[i]).re;
                    for j in 0..k {
                        let a = inverse[(i, j)] - if i == j { rho } else { 0.0 };
                        value += (d[i].conj() * a * d[j]).re;
                    }
                }
            }
            reordered += fourier.weight(freq) as f64 * value / (2 * fourier.n_pixels()) as f64;
        }
        prop_assert!(relative(reordered + constant, objective) < 1e-9, "{} {}", reordered + constant, objective);
    }
}

/// Absorbs codes of which `density` is not zero, times `scale`. `distinct` of them return in turn, each time changed by
/// about 1 %, as in many passes over a few samples: then A has nearly the rank of their number and C keeps
/// eigenvalues of 1 / rho. Returns the residual and the relative error of C.
fn drift<T: Real>(k: usize, rho: f64, scale: f64, steps: u64, distinct: u64) -> (f64, f64) {
    let axes = [1, 6, 6];
    let mut direct = Direct::new(k, axes.shape());
    let mut statistics = Spectral::<T>::new(k, axes.shape(), rho);
    for step in 0..steps {
        let z = sparse_code::<f64>(k, axes, 0.03, step % distinct).to_dense().unwrap();
        let change: Vec<f64> = normal(z.len(), 9000 + step);
        let scaled: Vec<T> = z.iter().zip(change).map(|(z, c)| T::of(scale * z * (1.0 + 0.01 * c))).collect();
        let (x, z) = (noise::<T>(axes, 5000 + step), Code::from_dense(k, axes, &scaled));
        statistics.absorb(&x, &z).unwrap();
        direct.absorb(&x, &z);
    }
    (direct.residual(&statistics), direct.error(&statistics))
}

#[test]
fn drift_is_round_off_in_double_precision() {
    for (rho, scale, distinct, most) in [(10.0, 1.0, 1000, 1e-13), (10.0, 1.0, 5, 1e-11), (1.0, 10.0, 5, 1e-8)] {
        let (residual, error) = drift::<f64>(12, rho, scale, 1000, distinct);
        assert!(residual < most, "{residual:e}");
        assert!(error < 1e-10, "{error:e}");
    }
}

/// What single precision keeps after 1,000 steps. The residual ||(A + rho I) C - I|| is the relative error of a
/// dictionary step; it grows with the condition number max A / rho. Measured at K = 12, 6 x 6 (rounding the exact
/// inverse to f32 alone gives the numbers in parentheses):
///
/// | rho | codes | max A / rho | residual |
/// |---|---|---|---|
/// | 10 | 1,000 different, around 1 | 1e2 | 3e-6 |
/// | 10 | 5 in turn, around 1 | 7e2 | 4e-4 (2e-5) |
/// | 1 | 1,000 different, around 10 | 1e5 | 1e-5: A has full rank, C no large eigenvalue |
/// | 1 | 5 in turn, around 10 | 7e5 | 0.3 (2e-3): useless |
///
/// The last row is what samples of 8-bit range bring at the default penalty: such data need f64 or a larger rho.
#[test]
fn drift_is_small_in_single_precision_while_the_condition_number_is() {
    for (rho, scale, distinct, most) in [(10.0, 1.0, 1000, 2e-5), (1.0, 10.0, 1000, 1e-4), (10.0, 1.0, 5, 4e-3)] {
        let (residual, error) = drift::<f32>(12, rho, scale, 1000, distinct);
        assert!(residual < most, "{residual:e}");
        assert!(error < 1e-4, "{error:e}");
    }
}
