//! What several tests share.

pub(crate) mod exact;
pub(crate) mod lags;
pub(crate) mod old;
pub(crate) mod sealed;

use std::path::{Path, PathBuf};

/// The folder of reference data: `OCSC_DATA` if set, else `../shared/data` beside the workspace. Where there is none,
/// says so on stderr, and the test that asked should return.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen to be skipped")]
pub(crate) fn data_dir() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dir = std::env::var_os("OCSC_DATA").map_or_else(beside, PathBuf::from);
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("skipped: ../shared/data is absent (set OCSC_DATA)");
    None
}

use ocsc::settings::{Boundary, CoderConfig, StopRule};
use ocsc::{Atom, Code, Config, Dictionary, Method, Real, Sample, Shape};
use proptest::test_runner::RngSeed;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Independent standard normal numbers.
pub(crate) fn normal<T: Real>(len: usize, seed: u64) -> Vec<T> {
    let mut rng = rng(seed);
    (0..len)
        .map(|_| {
            let v: f64 = StandardNormal.sample(&mut rng);
            T::of(v)
        })
        .collect()
}

/// A shape, or the spatial axes of one with a single channel.
pub(crate) trait Axes {
    fn shape(self) -> Shape;
}

impl Axes for Shape {
    fn shape(self) -> Shape {
        self
    }
}

impl Axes for [usize; 3] {
    fn shape(self) -> Shape {
        colour(1, self)
    }
}

/// A shape of so many channels.
pub(crate) fn colour(channels: usize, [depth, height, width]: [usize; 3]) -> Shape {
    Shape { channels, depth, height, width }
}

/// A sample of standard normal numbers.
pub(crate) fn noise<T: Real>(axes: impl Axes, seed: u64) -> Sample<T> {
    let shape = axes.shape();
    Sample::new(shape, normal(shape.len(), seed)).unwrap()
}

/// Random filters of unit norm.
pub(crate) fn filters<T: Real>(k: usize, axes: impl Axes, seed: u64) -> Dictionary<T> {
    Dictionary::random(k, axes.shape(), 3, seed).unwrap()
}

/// A code of which about `density` of the coefficients are not zero, with magnitudes around 1.
pub(crate) fn sparse_code<T: Real>(k: usize, axes: [usize; 3], density: f64, seed: u64) -> Code<T> {
    let mut rng = rng(seed);
    let mut atoms = Vec::new();
    for filter in 0..k as u32 {
        for position in 0..axes.iter().product::<usize>() as u32 {
            if rng.random_bool(density) {
                let value: f64 = rng.random_range(0.5..1.5) * if rng.random_bool(0.5) { 1.0 } else { -1.0 };
                atoms.push(Atom { filter, position, value: T::of(value) });
            }
        }
    }
    Code::new(k, axes, atoms).unwrap()
}

pub(crate) fn widen<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.f64()).collect()
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// max |a - b| relative to max |b|.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(f64::MIN_POSITIVE, |m, b| m.max(b.abs()));
    a.iter().zip(b).fold(0.0, |m: f64, (a, b)| if (a - b).is_nan() { f64::NAN } else { m.max((a - b).abs()) }) / scale
}

/// |a - b| relative to |b|.
pub(crate) fn relative(a: f64, b: f64) -> f64 {
    (a - b).abs() / b.abs().max(f64::MIN_POSITIVE)
}

/// D as an explicit matrix: column k P + p is filter k with its first corner at p, wrapping around; rows (channel, pixel).
pub(crate) struct Matrix {
    pub columns: Vec<Vec<f64>>,
    pub rows: usize,
}

impl Matrix {
    pub(crate) fn new<T: Real>(dictionary: &Dictionary<T>, axes: impl Axes) -> Self {
        let [d, h, w] = axes.shape().spatial();
        let Shape { channels, depth: fd, height: fh, width: fw } = dictionary.shape();
        let rows = channels * d * h * w;
        let mut columns = Vec::new();
        for k in 0..dictionary.n_filters() {
            for p in 0..d * h * w {
                let (pd, ph, pw) = (p / (h * w), p / w % h, p % w);
                let mut column = vec![0.0; rows];
                for (c, i) in (0..channels).flat_map(|c| (0..fd).map(move |i| (c, i))) {
                    for j in 0..fh {
                        for l in 0..fw {
                            let at = ((c * d + (pd + i) % d) * h + (ph + j) % h) * w + (pw + l) % w;
                            column[at] += dictionary.filter(k)[((c * fd + i) * fh + j) * fw + l].f64();
                        }
                    }
                }
                columns.push(column);
            }
        }
        Matrix { columns, rows }
    }

    /// D z.
    pub(crate) fn times(&self, z: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rows];
        for (column, z) in self.columns.iter().zip(z) {
            out.iter_mut().zip(column).for_each(|(o, c)| *o += c * z);
        }
        out
    }

    /// D^T r.
    pub(crate) fn transposed(&self, r: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|c| dot(c, r)).collect()
    }

    /// x - D z.
    pub(crate) fn residual(&self, x: &[f64], z: &[f64]) -> Vec<f64> {
        x.iter().zip(self.times(z)).map(|(x, e)| x - e).collect()
    }

    /// 1/2 ||x - D z||^2 + beta ||z||_1.
    pub(crate) fn objective(&self, x: &[f64], z: &[f64], beta: f64) -> f64 {
        let r = self.residual(x, z);
        0.5 * dot(&r, &r) + beta * z.iter().map(|z| z.abs()).sum::<f64>()
    }

    /// The duality gap of z, from the textbook: s r is dual feasible for s = min(1, beta / max |D^T r|).
    pub(crate) fn gap(&self, x: &[f64], z: &[f64], beta: f64) -> f64 {
        let r = self.residual(x, z);
        let top = self.transposed(&r).iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        let s = f64::min(1.0, beta / top);
        self.objective(x, z, beta) - (s * dot(x, &r) - 0.5 * s * s * dot(&r, &r))
    }

    /// The minimum of the objective by plain cyclic coordinate descent, run until a sweep changes nothing and the gap
    /// proves it.
    pub(crate) fn minimum(&self, x: &[f64], beta: f64) -> f64 {
        let norms: Vec<f64> = self.columns.iter().map(|c| dot(c, c)).collect();
        let mut z = vec![0.0; self.columns.len()];
        let mut r = x.to_vec();
        let mut before = z.clone();
        for sweep in 0..200_000 {
            for (j, column) in self.columns.iter().enumerate() {
                let c = dot(column, &r) + norms[j] * z[j];
                // A column that nobody observes stays at zero.
                let new = if norms[j] > 0.0 { soft(c, beta) / norms[j] } else { 0.0 };
                if new != z[j] {
                    let step = new - z[j];
                    r.iter_mut().zip(column).for_each(|(r, c)| *r -= step * c);
                    z[j] = new;
                }
            }
            if sweep % 50 == 49 {
                if self.gap(x, &z, beta) <= 1e-11 * self.objective(x, &z, beta) {
                    return self.objective(x, &z, beta);
                }
                // Where it crawls, it crawls along a line: goes on along it for as long as that pays.
                for factor in [3.0, 10.0, 100.0] {
                    let far: Vec<f64> = z.iter().zip(&before).map(|(z, before)| z + factor * (z - before)).collect();
                    if self.objective(x, &far, beta) >= self.objective(x, &z, beta) {
                        break;
                    }
                    r = self.residual(x, &far);
                    (before, z) = (z, far);
                }
                before.clone_from(&z);
            }
        }
        // Filters that are nearly the same make it crawl. What it reached bounds the minimum from above, to within its gap.
        let (gap, objective) = (self.gap(x, &z, beta), self.objective(x, &z, beta));
        assert!(gap <= 1e-6 * objective, "coordinate descent did not converge: gap {gap:e} of {objective:e}");
        objective
    }
}

/// S_t(v).
pub(crate) fn soft(v: f64, t: f64) -> f64 {
    v.signum() * (v.abs() - t).max(0.0)
}

/// Coder settings that run `n` plain iterations with a fixed penalty.
pub(crate) fn fixed(rho: f64, relaxation: f64, n: usize) -> CoderConfig {
    let plain = CoderConfig { adaptive_rho: false, stop: StopRule::Change, max_iters: n, ..CoderConfig::default() };
    CoderConfig { rho: Some(rho), relaxation, ..plain }
}

/// Runs `f` on a pool of `n` threads.
pub(crate) fn with_threads<R: Send>(n: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(f)
}

/// So many random cases, without files that remember failures: a failure prints its input.
/// The same cases in every run, unless PROPTEST_RNG_SEED asks for others.
pub(crate) fn cases(n: u32) -> proptest::test_runner::Config {
    let default = proptest::test_runner::Config::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(n.into()),
        given => given,
    };
    proptest::test_runner::Config { cases: n, failure_persistence: None, rng_seed, ..default }
}

/// Settings of a small learning problem for the paper's method; `fast.rs` runs the other.
pub(crate) fn small_config(k: usize, filter: &[usize], beta: f64) -> Config {
    let method = Method::OcscPaper;
    Config { method, n_filters: k, filter_shape: filter.to_vec(), beta, seed: 3, ..Config::default() }
}

/// Samples made of sparse codes of random 3 x 3 filters, and these filters in the middle of 5 x 5, so that a learner of 5 x 5
/// filters may find them at any shift.
pub(crate) fn planted<T: Real>(
    k: usize,
    size: usize,
    n: u64,
    noise_level: f64,
    seed: u64,
) -> (Vec<Sample<T>>, Dictionary<T>) {
    let small = filters::<f64>(k, [1, 3, 3], seed);
    let mut data = vec![T::zero(); k * 25];
    for (i, v) in small.data().iter().enumerate() {
        data[i / 9 * 25 + (i / 3 % 3 + 1) * 5 + i % 3 + 1] = T::of(*v);
    }
    let sample = |i: u64| {
        let clean = sparse_code::<f64>(k, [1, size, size], 0.012, seed + 1000 + i)
            .reconstruct(&small, Boundary::Circular)
            .unwrap();
        let noise: Vec<f64> = normal(size * size, seed + 2000 + i);
        let data = clean.data().iter().zip(noise).map(|(v, n)| T::of(v + noise_level * n)).collect();
        Sample::new(clean.shape(), data).unwrap()
    };
    ((0..n).map(sample).collect(), Dictionary::new(k, Shape::image(5, 5), 2, data).unwrap())
}

/// Samples made of sparse codes of given filters.
pub(crate) fn made_of<T: Real>(truth: &Dictionary<f64>, axes: [usize; 3], n: u64, seed: u64) -> Vec<Sample<T>> {
    let sample = |i: u64| {
        let code = sparse_code::<f64>(truth.n_filters(), axes, 0.02, seed + i);
        code.reconstruct(truth, Boundary::Circular).unwrap().cast().unwrap()
    };
    (0..n).map(sample).collect()
}
