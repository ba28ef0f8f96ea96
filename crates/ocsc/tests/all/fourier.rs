//! The planned transforms against a naive DFT, and the two ways to convolve against each other.

use crate::common::*;
use num_complex::Complex;
use ocsc::Real;
use ocsc::settings::Boundary;
use ocsc::testing::Fourier;
use proptest::prelude::*;
use std::f64::consts::TAU;

type C = Complex<f64>;

/// The half spectrum by the definition, in the plan's order (W/2+1, H, D).
fn naive_dft(map: &[f64], [d, h, w]: [usize; 3]) -> Vec<C> {
    let mut spectrum = Vec::new();
    for fw in 0..w / 2 + 1 {
        for fh in 0..h {
            for fd in 0..d {
                let mut sum = C::new(0.0, 0.0);
                for (p, v) in map.iter().enumerate() {
                    let (i, j, l) = (p / (h * w), p / w % h, p % w);
                    let turns = (fd * i) as f64 / d as f64 + (fh * j) as f64 / h as f64 + (fw * l) as f64 / w as f64;
                    sum += C::from_polar(*v, -TAU * turns);
                }
                spectrum.push(sum);
            }
        }
    }
    spectrum
}

fn flat<T: Real>(spectrum: &[Complex<T>]) -> Vec<f64> {
    spectrum.iter().flat_map(|c| [c.re.f64(), c.im.f64()]).collect()
}

fn zeros<T: Real>(len: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::zero(), T::zero()); len]
}

fn forward<T: Real>(fourier: &Fourier<T>, map: &[T]) -> Vec<Complex<T>> {
    let mut spectrum = zeros(fourier.n_freqs());
    fourier.forward(map, &mut spectrum, &mut fourier.scratch());
    spectrum
}

/// Puts a small map in the first corner of a large one of zeros.
fn pad<T: Real>(map: &[T], [_, ch, cw]: [usize; 3], [d, h, w]: [usize; 3]) -> Vec<T> {
    let mut full = vec![T::zero(); d * h * w];
    for (row, values) in map.chunks(cw).enumerate() {
        full[((row / ch) * h + row % ch) * w..][..cw].copy_from_slice(values);
    }
    full
}

/// The first corner of a map.
fn crop<T: Real>(map: &[T], [cd, ch, cw]: [usize; 3], [_, h, w]: [usize; 3]) -> Vec<T> {
    (0..cd * ch).flat_map(|row| &map[((row / ch) * h + row % ch) * w..][..cw]).copied().collect()
}

/// 1-D, 2-D and 3-D shapes, odd and even, with a corner that fits.
fn shapes() -> impl Strategy<Value = ([usize; 3], [usize; 3])> {
    let axes = prop_oneof![
        (Just(1_usize), Just(1_usize), 1..60_usize),
        (Just(1_usize), 1..14_usize, 1..14_usize),
        (1..7_usize, 1..7_usize, 1..7_usize),
    ];
    axes.prop_flat_map(|(d, h, w)| (Just([d, h, w]), (1..=d, 1..=h, 1..=w).prop_map(|(a, b, c)| [a, b, c])))
}

fn check_transforms<T: Real>(axes: [usize; 3], corner: [usize; 3], seed: u64, tol: f64) {
    let fourier = Fourier::<T>::new(axes);
    assert_eq!(fourier.shape(), axes);
    assert_eq!(fourier.n_freqs(), axes[0] * axes[1] * (axes[2] / 2 + 1));
    let map: Vec<T> = normal(fourier.n_pixels(), seed);
    let small: Vec<T> = normal(corner.iter().product(), seed + 1);
    let map_f = forward(&fourier, &map);
    assert!(distance(&flat(&map_f), &flat(&naive_dft(&widen(&map), axes))) < tol, "forward");

    // One scratch for all that follows: what a transform leaves in it must not reach the next one.
    let mut scratch = fourier.scratch();
    let mut out = vec![T::zero(); map.len()];
    fourier.inverse(&mut map_f.clone(), &mut out, &mut scratch);
    assert!(distance(&widen(&out), &widen(&map)) < tol, "inverse of forward");

    let mut small_f = zeros(fourier.n_freqs());
    fourier.forward_padded(&small, corner, &mut small_f, &mut scratch);
    let padded_f = forward(&fourier, &pad(&small, corner, axes));
    assert!(distance(&flat(&small_f), &flat(&padded_f)) < tol, "padded");

    let mut cropped = vec![T::zero(); small.len()];
    fourier.inverse_cropped(&mut map_f.clone(), corner, &mut cropped, &mut scratch);
    assert!(distance(&widen(&cropped), &widen(&crop(&out, corner, axes))) < tol, "cropped");
    let mut unscaled = vec![T::zero(); small.len()];
    fourier.inverse_unscaled(&mut map_f.clone(), corner, &mut unscaled, &mut scratch);
    let scaled: Vec<f64> = unscaled.iter().map(|v| v.f64() / fourier.n_pixels() as f64).collect();
    assert!(distance(&scaled, &widen(&cropped)) < tol, "unscaled");

    let mut again = zeros(fourier.n_freqs());
    fourier.forward(&map, &mut again, &mut scratch);
    assert_eq!(again, map_f, "a used scratch changes nothing");
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn transforms_are_the_naive_ones((axes, corner) in shapes(), seed in 0..1000_u64) {
        check_transforms::<f64>(axes, corner, seed, 1e-11);
        check_transforms::<f32>(axes, corner, seed, 1e-5);
    }

    #[test]
    fn parseval_holds_on_the_half_spectrum((axes, _) in shapes(), seed in 0..1000_u64) {
        let fourier = Fourier::<f64>::new(axes);
        let (a, b): (Vec<f64>, Vec<f64>) = (normal(fourier.n_pixels(), seed), normal(fourier.n_pixels(), seed + 1));
        let (a_f, b_f) = (forward(&fourier, &a), forward(&fourier, &b));
        let scale = (dot(&a, &a) * dot(&b, &b)).sqrt();
        prop_assert!((fourier.dot(&a_f, &b_f) - dot(&a, &b)).abs() < 1e-12 * scale);
        prop_assert!(relative(fourier.dot(&a_f, &a_f), dot(&a, &a)) < 1e-12);
        let weights: usize = (0..fourier.n_freqs()).map(|i| fourier.weight(i)).sum();
        prop_assert_eq!(weights, fourier.n_pixels());
    }

    #[test]
    fn many_maps_are_the_maps_one_by_one(
        (axes, corner) in shapes(), maps in 0..9_usize, parts in 1..5_usize, seed in 0..1000_u64,
    ) {
        let fourier = Fourier::<f64>::new(axes);
        let (len, freqs) = (corner.iter().product::<usize>(), fourier.n_freqs());
        let data: Vec<f64> = normal(maps * len, seed);
        let mut scratch: Vec<_> = (0..parts).map(|_| fourier.scratch()).collect();
        let mut together = zeros(maps * freqs);
        fourier.forward_many(&data, corner, &mut together, &mut scratch);
        let mut alone = zeros(maps * freqs);
        for (map, spectrum) in data.chunks(len).zip(alone.chunks_mut(freqs)) {
            fourier.forward_padded(map, corner, spectrum, &mut scratch[0]);
        }
        prop_assert_eq!(&together, &alone);
        let mut back = vec![0.0; maps * len];
        fourier.inverse_many(&mut together, corner, &mut back, &mut scratch);
        prop_assert!(maps == 0 || distance(&back, &data) < 1e-12);
    }

    #[test]
    fn sparse_reconstruction_is_the_product_of_spectra(
        (axes, corner) in shapes(), k in 1..5_usize, density in 0.0..0.6_f64, seed in 0..1000_u64,
    ) {
        let (d, z) = (filters::<f64>(k, corner, seed), sparse_code::<f64>(k, axes, density, seed + 1));
        let fourier = Fourier::<f64>::new(axes);
        let mut scratch = fourier.scratch();
        let mut product = zeros(fourier.n_freqs());
        let mut d_f = product.clone();
        for (k, map) in z.to_dense().unwrap().chunks(fourier.n_pixels()).enumerate() {
            fourier.forward_padded(d.filter(k), corner, &mut d_f, &mut scratch);
            for ((p, d), z) in product.iter_mut().zip(&d_f).zip(forward(&fourier, map)) {
                *p += d * z;
            }
        }
        let mut estimate = vec![0.0; fourier.n_pixels()];
        fourier.inverse(&mut product, &mut estimate, &mut scratch);
        let direct = z.reconstruct(&d, Boundary::Circular).unwrap();
        let error = direct.data().iter().zip(&estimate).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
        prop_assert!(error < 1e-12 * (1.0 + z.l1()));
        let explicit = Matrix::new(&d, axes).times(&z.to_dense().unwrap());
        let error = direct.data().iter().zip(&explicit).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
        prop_assert!(error < 1e-12 * (1.0 + z.l1()));
    }

    #[test]
    fn correlation_is_the_adjoint_of_convolution(
        (axes, corner) in shapes(), k in 1..5_usize, seed in 0..1000_u64,
    ) {
        let (d, z) = (filters::<f64>(k, corner, seed), sparse_code::<f64>(k, axes, 0.3, seed + 1));
        let r = noise::<f64>(axes, seed + 2);
        let fourier = Fourier::<f64>::new(axes);
        let (mut scratch, mut d_f) = (fourier.scratch(), zeros(fourier.n_freqs()));
        let r_f = forward(&fourier, r.data());
        let mut adjoint = Vec::new();
        for k in 0..k {
            fourier.forward_padded(d.filter(k), corner, &mut d_f, &mut scratch);
            let mut q_f: Vec<C> = d_f.iter().zip(&r_f).map(|(d, r)| d.conj() * r).collect();
            let mut q = vec![0.0; fourier.n_pixels()];
            fourier.inverse(&mut q_f, &mut q, &mut scratch);
            adjoint.extend(q);
        }
        let left = dot(z.reconstruct(&d, Boundary::Circular).unwrap().data(), r.data());
        let right = dot(&z.to_dense().unwrap(), &adjoint);
        prop_assert!((left - right).abs() < 1e-11 * (1.0 + z.l1()), "{} {}", left, right);
    }
}
