//! Every kernel on one thread, and the fraction of the machine's peak that it reaches, measured in the same run.
//!
//! ```text
//! cargo bench -p ocsc --bench kernels            (all, about two minutes)
//! cargo bench -p ocsc --bench kernels -- sweep   (those whose names contain a word)
//! ```
//!
//! The problem is that of the paper's small sets: one 100 x 100 sample, 100 filters of 11 x 11, f32. The table at the end
//! counts, per call, the multiply-adds that the mathematics asks for (a real FFT of n points as 5/4 n log2 n of them) or the bytes that have to move, whichever bounds the kernel, and divides by the time: the best of
//! the means that criterion asked for. Padding and repetition count as loss. `benchmarks/KERNELS.md` explains the rows.
#![allow(clippy::print_stdout, reason = "the program's purpose")]

use criterion::Criterion;
use ocsc::coder::{ActiveSet, Admm, Coder};
use ocsc::preprocess::local_contrast_normalise;
use ocsc::settings::{ActiveSetConfig, BlockDescentConfig, Boundary, CoderConfig, StopRule, UpdateConfig};
use ocsc::statistics::{Lags, Spectral};
use ocsc::testing::Fourier;
use ocsc::update::{BlockDescent, OcscPaper, Update};
use ocsc::{Code, Dictionary, Result, Sample, Shape};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::hint::black_box;
use std::time::{Duration, Instant};

const K: usize = 100;
const SIDE: usize = 100;
const TAPS: usize = 121;
const PIXELS: usize = SIDE * SIDE;

/// What bounds a kernel: multiply-adds, or bytes moved.
#[derive(Clone, Copy)]
enum Work {
    Fma(f64),
    Bytes(f64),
}

/// One line of the table.
struct Row {
    name: &'static str,
    seconds: f64,
    work: Work,
}

struct Bench {
    criterion: Criterion,
    rows: Vec<Row>,
}

impl Bench {
    /// Times `kernel`; `setup` is not timed.
    fn run<S, R>(
        &mut self,
        name: &'static str,
        work: Work,
        mut setup: impl FnMut() -> S,
        mut kernel: impl FnMut(S) -> R,
    ) {
        let mut best = f64::INFINITY;
        self.criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|n| {
                let mut total = Duration::ZERO;
                for _ in 0..n {
                    let input = setup();
                    let clock = Instant::now();
                    black_box(kernel(input));
                    total += clock.elapsed();
                }
                best = best.min(total.as_secs_f64() / n as f64);
                total
            });
        });
        if best.is_finite() {
            self.rows.push(Row { name, seconds: best, work });
        }
    }
}

fn normal(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// A smooth random image after contrast normalisation: its codes are about as sparse as those of photographs.
fn image(seed: u64) -> Result<Sample<f32>> {
    let mut data = normal(PIXELS, seed);
    for _ in 0..3 {
        let old = data.clone();
        for (i, v) in data.iter_mut().enumerate() {
            let (y, x) = (i / SIDE, i % SIDE);
            let near = |dy: usize, dx: usize| old[(y + dy) % SIDE * SIDE + (x + dx) % SIDE];
            *v = (0..9).map(|j| near(j / 3, j % 3)).sum::<f32>() / 9.0;
        }
    }
    local_contrast_normalise(&Sample::new(Shape::image(SIDE, SIDE), data)?)
}

/// Pairs of atoms that meet within a filter's reach, on the circle, each once.
fn pairs(code: &Code<f32>) -> usize {
    let near = |a: usize, b: usize| {
        let distance = a.abs_diff(b);
        distance.min(SIDE - distance) < 11
    };
    let atoms: Vec<_> = code.atoms().iter().map(|a| (a.filter, a.position as usize)).collect();
    let meets = |a: usize, b: usize| near(a / SIDE, b / SIDE) && near(a % SIDE, b % SIDE);
    let later = |(k, p): (u32, usize)| atoms.iter().filter(move |(l, q)| *l >= k && meets(p, *q)).count();
    atoms.iter().map(|a| later(*a)).sum()
}

fn kernels(bench: &mut Bench) -> Result<()> {
    let x = image(1)?;
    let start = Dictionary::<f32>::random(K, Shape::image(11, 11), 2, 1)?;
    let active = |d: &Dictionary<f32>| ActiveSet::new(d, 1.0, 0.01, Boundary::Circular, ActiveSetConfig::default());

    // A dictionary that has seen a few samples, and the sample's code against it.
    let settings = BlockDescentConfig { tol: 0.0, ..BlockDescentConfig::default() };
    let mut update = BlockDescent::new(settings, Boundary::Circular, 0);
    let mut d = start.clone();
    for seed in 2..8 {
        let x = image(seed)?;
        let coded = active(&d)?.code(&x, None)?;
        update.absorb(&x, &coded.code, &d)?;
        update.update(&mut d);
    }
    let mut coder = active(&d)?;
    let code = coder.code(&x, None)?.code;

    let correlation = Work::Fma((K * PIXELS * TAPS) as f64);
    bench.run("full correlation", correlation, || (), |()| coder.beta_max(&x));
    bench.run("coding to 1 %", correlation, || (), |()| coder.code(&x, None));

    let rounds = 10;
    let config = CoderConfig {
        rho: Some(10.0),
        adaptive_rho: false,
        stop: StopRule::Residuals,
        max_iters: rounds,
        ..CoderConfig::default()
    };
    let mut admm = Admm::new(&d, 1.0, 1e-30, config)?;
    let transform = 1.25 * PIXELS as f64 * (PIXELS as f64).log2();
    let iterations = Work::Fma((rounds * K) as f64 * 2.0 * transform);
    bench.run("10 ADMM iterations", iterations, || (), |()| admm.code(&x, None));

    let mut lags = Lags::new(K, d.shape());
    // A line of 64 bytes comes and goes for every product.
    let products = Work::Bytes(128.0 * pairs(&code) as f64);
    bench.run("lags: absorb", products, || (), |()| lags.absorb(&x, &code, &d, Boundary::Circular));
    let sweep = Work::Fma((K * K * TAPS * TAPS) as f64);
    let moving = d.clone();
    bench.run("block descent: sweep", sweep, || moving.clone(), |mut d| update.update(&mut d));

    let bytes = Spectral::<f32>::bytes(K, x.shape()) as f64;
    let mut paper = OcscPaper::new(UpdateConfig { max_iters: 1, ..UpdateConfig::default() });
    bench.run("spectral: absorb", Work::Bytes(2.0 * bytes), || (), |()| paper.absorb(&x, &code, &d));
    let mut moving = d.clone();
    bench.run("spectral: iteration", Work::Bytes(bytes), || (), |()| paper.update(&mut moving));
    drop(paper);

    let fourier = Fourier::<f32>::new([1, SIDE, SIDE]);
    let (mut maps, corner) = (normal(K * PIXELS, 9), [1, SIDE, SIDE]);
    let mut spectra = vec![Default::default(); K * fourier.n_freqs()];
    let mut scratch = vec![fourier.scratch()];
    let transforms = Work::Fma(K as f64 * transform);
    bench.run(
        "Fourier: 100 forward",
        transforms,
        || (),
        |()| {
            fourier.forward_many(&maps, corner, &mut spectra, &mut scratch);
        },
    );
    let inputs = spectra.clone();
    bench.run(
        "Fourier: 100 inverse",
        transforms,
        || inputs.clone(),
        |mut spectra| {
            fourier.inverse_many(&mut spectra, corner, &mut maps, &mut scratch);
        },
    );

    // Mean and second moment under a separable Gaussian of 13 taps.
    let blurs = Work::Fma((2 * 2 * 13 * PIXELS) as f64);
    bench.run("contrast normalisation", blurs, || (), |()| local_contrast_normalise(&x));
    Ok(())
}

/// f32 multiply-adds per second of one thread, of independent sums in registers.
fn fma_rate() -> f64 {
    const ROUNDS: usize = 2_000_000;
    let lanes = if cfg!(target_arch = "x86_64") { fma_lanes() } else { 1 };
    let rate = |_| {
        let clock = Instant::now();
        black_box(multiply_add(black_box(ROUNDS)));
        (ROUNDS * 12 * lanes) as f64 / clock.elapsed().as_secs_f64()
    };
    (0..10).map(rate).fold(0.0, f64::max)
}

#[cfg(target_arch = "x86_64")]
mod peak {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(crate) fn wide(rounds: usize) -> f32 {
        let (a, b) = (_mm512_set1_ps(0.999), _mm512_set1_ps(0.001));
        let mut sums = [_mm512_set1_ps(0.5); 12];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, a, b);
            }
        }
        sums.into_iter().map(|sum| _mm512_reduce_add_ps(sum)).sum()
    }

    #[target_feature(enable = "avx,fma")]
    pub(crate) fn narrow(rounds: usize) -> f32 {
        let (a, b) = (_mm256_set1_ps(0.999), _mm256_set1_ps(0.001));
        let mut sums = [_mm256_set1_ps(0.5); 12];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, a, b);
            }
        }
        sums.into_iter().map(|sum| _mm256_cvtss_f32(sum)).sum()
    }
}

#[cfg(target_arch = "x86_64")]
fn fma_lanes() -> usize {
    match (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("fma")) {
        (true, _) => 16,
        (false, true) => 8,
        _ => 1,
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "calls of functions for vector units that were detected")]
fn multiply_add(rounds: usize) -> f32 {
    match fma_lanes() {
        // SAFETY: the features were detected.
        16 => unsafe { peak::wide(rounds) },
        // SAFETY: the features were detected.
        8 => unsafe { peak::narrow(rounds) },
        _ => plain_multiply_add(rounds),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn fma_lanes() -> usize {
    1
}

#[cfg(not(target_arch = "x86_64"))]
fn multiply_add(rounds: usize) -> f32 {
    plain_multiply_add(rounds)
}

fn plain_multiply_add(rounds: usize) -> f32 {
    let mut sums = [0.5_f32; 12];
    for _ in 0..rounds {
        sums.iter_mut().for_each(|sum| *sum = *sum * 0.999 + 0.001);
    }
    sums.iter().sum()
}

/// Bytes per second that one thread reads from memory.
fn read_rate() -> f64 {
    let data = vec![1_u64; 1 << 25];
    let rate = |_| {
        let clock = Instant::now();
        black_box(data.iter().fold(0_u64, |sum, v| sum.wrapping_add(*v)));
        size_of_val(&data[..]) as f64 / clock.elapsed().as_secs_f64()
    };
    (0..5).map(rate).fold(0.0, f64::max)
}

/// The rate of two threads at once.
fn of_two(rate: fn() -> f64) -> f64 {
    std::thread::scope(|scope| {
        let threads = [scope.spawn(rate), scope.spawn(rate)];
        threads.into_iter().map(|thread| thread.join().unwrap_or(0.0)).sum()
    })
}

fn main() -> Result<()> {
    let criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let mut bench = Bench { criterion, rows: Vec::new() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    pool.map_err(|e| ocsc::Error::invalid("thread pool", "one thread", e))?;
    kernels(&mut bench)?;
    bench.criterion.final_summary();

    let (fma, bytes) = (fma_rate(), read_rate());
    println!("peak, one thread:  {:6.1} G f32 multiply-adds/s, {:5.1} GB/s read", fma / 1e9, bytes / 1e9);
    println!(
        "peak, two threads: {:6.1} G f32 multiply-adds/s, {:5.1} GB/s read\n",
        of_two(fma_rate) / 1e9,
        of_two(read_rate) / 1e9
    );
    println!("| kernel (one thread) | ms | work per call | rate | of peak |\n|---|---|---|---|---|");
    for Row { name, seconds, work } in &bench.rows {
        let (amount, unit, peak) = match work {
            Work::Fma(n) => (n, "G FMA/s", fma),
            Work::Bytes(n) => (n, "GB/s", bytes),
        };
        let (size, rate) = (if unit == "GB/s" { "MB" } else { "M FMA" }, amount / seconds);
        let work = format!("{:.1} {size}", amount / 1e6);
        println!(
            "| {name} | {:.3} | {work} | {:.1} {unit} | {:.0} % |",
            1e3 * seconds,
            rate / 1e9,
            100.0 * rate / peak
        );
    }
    if let Some(row) = bench.rows.iter().find(|row| row.name == "coding to 1 %") {
        let unit = (K * PIXELS * TAPS) as f64 / fma;
        println!(
            "\ncoding to 1 % takes {:.1} full correlations at peak ({:.2} ms each)",
            row.seconds / unit,
            1e3 * unit
        );
    }
    Ok(())
}
