//! Restoration of dead leaves, end to end.

use super::*;

use crate::dead_leaves::dead_leaves;
use crate::metrics::psnr;
use crate::monitor::{Monitor, Silent};
use crate::synthetic_signals::synthetic_signal;
use crate::{Shape, random};
use rand_distr::{Distribution, StandardNormal};

fn leaves(seed: u64, side: usize) -> Sample<f32> {
    dead_leaves(seed, side, side).unwrap().cast().unwrap()
}

fn noisy(clean: &Sample<f32>, sigma: f32, seed: u64) -> Sample<f32> {
    let mut rng = random::stream(seed, 0);
    let mut drawn = || -> f32 { StandardNormal.sample(&mut rng) };
    Sample::new(clean.shape(), clean.data().iter().map(|v| v + sigma * drawn()).collect()).unwrap()
}

/// Three channels that are much alike.
fn coloured(gray: &Sample<f32>) -> Sample<f32> {
    let data = [1.0, 0.8, 0.5].iter().flat_map(|f| gray.data().iter().map(move |v| f * v)).collect();
    Sample::new(Shape { channels: 3, ..gray.shape() }, data).unwrap()
}

/// Stripes of several directions, which a smooth surface through half of their values misses.
fn stripes(side: usize) -> Sample<f32> {
    let value = |i: usize| {
        let (y, x) = ((i / side) as f32, (i % side) as f32);
        let wave = if x > y { (1.1 * x + 0.3 * y).sin() } else { (0.9 * y - 0.5 * x).cos() };
        0.5 + 0.3 * wave
    };
    Sample::new(Shape::image(side, side), (0..side * side).map(value).collect()).unwrap()
}

fn masked(clean: &Sample<f32>, seed: u64) -> Sample<f32> {
    let seen = noisy(clean, 1.0, seed).data().iter().zip(clean.data()).map(|(a, b)| a > b).collect();
    Sample::masked(clean.shape(), clean.data().to_vec(), seen).unwrap()
}

#[test]
fn noise_is_estimated_from_the_image() {
    let clean = leaves(1, 96);
    for sigma in [0.05, 0.1, 0.2] {
        let found = noise_of(&noisy(&clean, sigma, 3));
        assert!((found / f64::from(sigma) - 1.0).abs() < 0.2, "{sigma} {found}");
    }
    assert_eq!(noise_of(&Sample::new(Shape::image(2, 2), vec![0.0; 4]).unwrap()), 0.0);
}

#[test]
fn a_sigma_on_another_scale_is_doubted_and_a_right_one_is_not() {
    let clean = leaves(1, 96);
    for scale in [1.0, 255.0, 65535.0] {
        for sigma in [0.02, 0.1, 0.4] {
            let image = noisy(&clean, sigma as f32, 3).map(|v| scale * v);
            let doubt = |given: f64| doubt_of_sigma(&image, given);
            for right in [0.3, 1.0, 3.0] {
                assert_eq!(doubt(right * scale * sigma), None, "{scale} {sigma} {right}");
            }
            assert!(matches!(doubt(255.0 * scale * sigma), Some(SigmaDoubt::BeyondRange { .. })));
            let Some(SigmaDoubt::FarBelow { estimate }) = doubt(scale * sigma / 255.0) else {
                panic!("{scale} {sigma}")
            };
            // Edges count a little.
            assert!((0.8..1.6).contains(&(estimate / scale / sigma)), "{estimate}");
        }
    }
    // Little noise makes much of it doubtful, unless flat areas may hide it.
    let quiet = noisy(&clean, 0.005, 3);
    assert!(matches!(doubt_of_sigma(&quiet, 0.4), Some(SigmaDoubt::FarAbove { .. })));
    let flat = |i: usize| if i < 48 * 96 { 0.0 } else { quiet.data()[i] };
    let flat = Sample::new(quiet.shape(), (0..96 * 96).map(flat).collect()).unwrap();
    assert_eq!(doubt_of_sigma(&flat, 0.4), None);
    // Fine texture looks like noise, so little noise is no reason for doubt.
    let texture = noisy(&clean, 0.1, 3);
    assert_eq!(doubt_of_sigma(&texture, 0.008), None);
    let constant = Sample::new(Shape::image(9, 9), vec![0.5; 81]).unwrap();
    assert_eq!([0.0, 0.1].map(|sigma| doubt_of_sigma(&constant, sigma)), [None; 2]);
    assert_eq!(doubt_of_sigma(&quiet, 0.0), None, "none is asked for");
}

#[test]
fn denoising_gains_decibels_in_gray_and_colour_and_learning_helps() {
    let gray = leaves(5, 96);
    for clean in [gray.clone(), coloured(&gray)] {
        let noisy = noisy(&clean, 0.1, 7);
        let before = psnr(&clean, &noisy, 1.0).unwrap();
        let options = Options { sigma: Some(0.1), ..Options::default() };
        let learned = psnr(&clean, &denoise(&noisy, &options, &Silent).unwrap(), 1.0).unwrap();
        let fixed = denoise(&noisy, &Options { learn_here: false, ..options }, &Silent).unwrap();
        let fixed = psnr(&clean, &fixed, 1.0).unwrap();
        assert!(fixed > before + 3.0 && learned > before + 3.5, "{before} {fixed} {learned}");
    }
}

#[test]
fn denoising_takes_no_more_than_noise_away() {
    // So fine that no few filters make it.
    let clean = noisy(&leaves(5, 64), 0.2, 1);
    let signal = synthetic_signal(2, 3000).unwrap().cast::<f32>().unwrap();
    for clean in [clean.clone(), coloured(&clean), signal] {
        for sigma in [1e-4, 2e-3, 2e-2] {
            let noisy = noisy(&clean, sigma, 7);
            let options = Options { sigma: Some(f64::from(sigma)), ..Options::default() };
            let restored = denoise(&noisy, &options, &Silent).unwrap();
            let taken = crate::metrics::mse(&noisy, &restored).unwrap().sqrt();
            assert!(taken <= 1.1 * f64::from(sigma), "{:?} {sigma}: {taken}", clean.shape());
            let [before, after] = [&noisy, &restored].map(|x| psnr(&clean, x, 1.0).unwrap());
            assert!(after > before - 0.3, "{:?} {sigma}: {before} {after}", clean.shape());
        }
    }
}

#[test]
fn inpainting_keeps_what_was_observed_and_beats_the_smooth_guess() {
    let gray = stripes(64);
    for clean in [gray.clone(), coloured(&gray)] {
        let masked = masked(&clean, 2);
        let result = inpaint(&masked, &Options::default(), &Silent).unwrap();
        let seen = masked.mask().unwrap();
        for (seen, (found, expected)) in seen.iter().zip(result.data().iter().zip(clean.data())) {
            assert!(!seen || found == expected);
        }
        let weights: Vec<f32> = seen.iter().map(|seen| f32::from(u8::from(*seen))).collect();
        let smooth = fill::fill(clean.shape(), masked.data(), &weights, &Silent).unwrap();
        let smooth = psnr(&clean, &Sample::new(clean.shape(), smooth).unwrap(), 1.0).unwrap();
        let found = psnr(&clean, &result, 1.0).unwrap();
        assert!(found > smooth + 3.0, "{smooth} {found}");
    }
}

/// Blurs or shrinks every channel.
fn observed(clean: &Sample<f32>, observation: &dyn observe::Observation, shape: Shape) -> Sample<f32> {
    let planes = clean.data().chunks_exact(clean.shape().pixels());
    Sample::new(shape, planes.flat_map(|plane| observation.observe(plane)).collect()).unwrap()
}

#[test]
fn deblurring_gains_decibels_and_gives_back_what_was_observed() {
    let gray = leaves(5, 72);
    let kernel = Kernel::gaussian(1.5).unwrap();
    for clean in [gray.clone(), coloured(&gray)] {
        let shape = clean.shape();
        let blur = observe::Blur { kernel: &kernel, size: [shape.height, shape.width] };
        let blurred = noisy(&observed(&clean, &blur, shape), 0.004, 3);
        let options = Options { sigma: Some(0.004), ..Options::default() };
        let sharp = deblur(&blurred, &kernel, &options, &Silent).unwrap();
        let [before, after] = [&blurred, &sharp].map(|image| psnr(&clean, image, 1.0).unwrap());
        assert!(after > before + 2.0, "{before} {after}");
        let again = psnr(&blurred, &observed(&sharp, &blur, shape), 1.0).unwrap();
        assert!(again > 40.0, "{again}");
    }
}

#[test]
fn upscaling_beats_cubic_interpolation_and_gives_back_the_small_image() {
    let clean = leaves(6, 72);
    for factor in [2, 3] {
        let side = 72 / factor;
        let shrink = observe::Shrink::new([side, side], factor);
        let small = observed(&clean, &shrink, Shape::image(side, side));
        let large = upscale(&small, factor, &Options::default(), &Silent).unwrap();
        assert_eq!(large.shape(), clean.shape());
        let cubic = Sample::new(clean.shape(), upscale::enlarged(&small, clean.shape(), factor)).unwrap();
        let [before, after] = [&cubic, &large].map(|image| psnr(&clean, image, 1.0).unwrap());
        assert!(after > before + 0.5, "{before} {after}");
        assert!(psnr(&small, &observed(&large, &shrink, small.shape()), 1.0).unwrap() > 40.0);
    }
    let refused = |factor| upscale(&clean, factor, &Options::default(), &Silent).unwrap_err().to_string();
    assert!(refused(1).contains("2 to 4") && refused(5).contains("found 5"));
}

#[test]
fn demosaicking_keeps_what_was_observed_and_finds_the_rest() {
    let (clean, side) = (coloured(&leaves(7, 64)), 64);
    for name in ["RGGB", "BGGR", "GRBG", "GBRG"] {
        let pattern: Pattern = name.parse().unwrap();
        assert_eq!(pattern.to_string(), name);
        let colour = |i: usize| match name.as_bytes()[i / side % 2 * 2 + i % side % 2] {
            b'R' => 0,
            b'G' => 1,
            _ => 2,
        };
        let seen = |i: usize| clean.data()[colour(i) * side * side + i];
        let mosaic = Sample::new(Shape::image(side, side), (0..side * side).map(seen).collect()).unwrap();
        let result = demosaic(&mosaic, pattern, &Options::default(), &Silent).unwrap();
        assert!((0..side * side).all(|i| result.data()[colour(i) * side * side + i] == seen(i)));
        let found = psnr(&clean, &result, 1.0).unwrap();
        assert!(found > 30.0, "{name} {found}");
    }
    assert!("RGBG".parse::<Pattern>().unwrap_err().to_string().contains("RGGB, BGGR"));
    assert!(demosaic(&clean, "RGGB".parse().unwrap(), &Options::default(), &Silent).is_err());
}

#[test]
fn photons_and_impulses_are_noise_of_their_own() {
    let clean = leaves(11, 80);
    let mut rng = random::stream(5, 0);
    let photons = 30.0;
    let mut count = |v: &f32| match f64::from(*v) * photons {
        mean if mean > 0.0 => (rand_distr::Poisson::new(mean).unwrap().sample(&mut rng) / photons) as f32,
        _ => 0.0,
    };
    let counted = Sample::new(clean.shape(), clean.data().iter().map(&mut count).collect()).unwrap();
    let before = psnr(&clean, &counted, 1.0).unwrap();
    for photons in [Some(photons), None] {
        let options = Options { noise: Noise::Poisson(photons), ..Options::default() };
        let after = psnr(&clean, &denoise(&counted, &options, &Silent).unwrap(), 1.0).unwrap();
        assert!(after > before + 3.0, "{photons:?} {before} {after}");
    }
    let refused =
        |image: &Sample<f32>, noise| denoise(image, &Options { noise, ..Options::default() }, &Silent).is_err();
    assert!(refused(&clean.map(|v| -v), Noise::Poisson(None)) && refused(&clean, Noise::Poisson(Some(0.0))));
    // Salt and pepper: a fifth of the values is 0 or 1, the others are exact.
    let drawn = noisy(&clean.map(|_| 0.0), 1.0, 13);
    let speckled = |(v, d): (&f32, &f32)| {
        if *d > 1.28 {
            1.0
        } else if *d < -1.28 {
            0.0
        } else {
            *v
        }
    };
    let speckled = clean.data().iter().zip(drawn.data()).map(speckled).collect();
    let speckled = Sample::new(clean.shape(), speckled).unwrap();
    let options = Options { noise: Noise::Impulse, ..Options::default() };
    let result = denoise(&speckled, &options, &Silent).unwrap();
    let [before, after] = [&speckled, &result].map(|image| psnr(&clean, image, 1.0).unwrap());
    assert!(after > before + 10.0, "{before} {after}");
}

/// Signals of one channel and of several, with the sigma given and estimated, with other filters and without learning.
#[test]
fn signals_lose_their_noise() {
    let clean: Sample<f32> = synthetic_signal(7, 4000).unwrap().cast().unwrap();
    let given = noisy(&clean, 0.2, 3);
    let error = |a: &Sample<f32>, b: &Sample<f32>| {
        assert_eq!(a.shape(), b.shape());
        (a.data().iter().zip(b.data()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / a.data().len() as f64)
            .sqrt()
    };
    let before = error(&clean, &given);
    assert!((noise_of(&given) - 0.2).abs() < 0.03, "{}", noise_of(&given));
    let ways = [
        Options { sigma: Some(0.2), ..Options::default() },
        Options::default(),
        Options { learn_here: false, ..Options::default() },
        Options {
            dictionary: Some(learn(std::slice::from_ref(&clean), 40, 24, 0.1, 3).unwrap()),
            ..Options::default()
        },
    ];
    let learned = ways[3].dictionary.as_ref().unwrap();
    assert_eq!((learned.shape().width, learned.shape().pixels(), learned.rank()), (24, 24, 1));
    for options in &ways {
        let after = error(&clean, &denoise(&given, options, &Silent).unwrap());
        assert!(after < 0.65 * before, "{before} {after} {options:?}");
    }
    let two = |sample: &Sample<f32>| {
        let shape = Shape { channels: 2, ..sample.shape() };
        Sample::new(shape, [sample.data(), &sample.map(|v| 1.0 - 0.5 * v).into_data()].concat()).unwrap()
    };
    let after = error(&two(&clean), &denoise(&noisy(&two(&clean), 0.2, 4), &ways[0], &Silent).unwrap());
    assert!(after < 0.6 * before, "{before} {after}");
    let short = Sample::new(Shape { width: 50, ..clean.shape() }, clean.data()[..50].to_vec()).unwrap();
    assert!(denoise(&short, &ways[0], &Silent).unwrap_err().to_string().contains("96"));
}

#[test]
fn one_thread_gives_what_many_give() {
    let signal = noisy(&synthetic_signal(1, 2000).unwrap().cast().unwrap(), 0.1, 1);
    for given in [noisy(&leaves(8, 64), 0.1, 1), signal] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| denoise(&given, &Options::default(), &Silent).unwrap())
        };
        assert_eq!(with(1), with(3));
    }
}

#[test]
fn what_cannot_be_restored_is_refused_and_what_needs_nothing_is_kept() {
    let clean = leaves(9, 32);
    let masked = masked(&clean, 1);
    assert!(denoise(&masked, &Options::default(), &Silent).unwrap_err().to_string().contains("inpaint"));
    let sigma = |sigma| Options { sigma: Some(sigma), ..Options::default() };
    assert!(denoise(&clean, &sigma(-1.0), &Silent).unwrap_err().to_string().contains("found -1"));
    assert_eq!(denoise(&clean, &sigma(0.0), &Silent).unwrap(), clean);
    assert_eq!(inpaint(&clean, &Options::default(), &Silent).unwrap(), clean);
    let small = leaves(9, 7);
    assert!(denoise(&small, &sigma(0.1), &Silent).unwrap_err().to_string().contains("8x8"));
    let flat = Sample::new(Shape::image(20, 20), vec![0.5; 400]).unwrap();
    assert_eq!(denoise(&flat, &Options::default(), &Silent).unwrap(), flat);
}

#[test]
fn a_monitor_ends_the_work() {
    struct Never;
    impl Monitor for Never {
        fn keep_going(&self) -> bool {
            false
        }
    }
    let image = leaves(3, 32);
    let stopped = |result: Result<Sample<f32>>| matches!(result, Err(Error::Stopped));
    assert!(stopped(denoise(&image, &Options { sigma: Some(0.1), ..Options::default() }, &Never)));
    assert!(stopped(inpaint(&masked(&image, 1), &Options::default(), &Never)));
}

#[test]
fn signals_are_denoised_and_nothing_else() {
    let signal: Sample<f32> = synthetic_signal(1, 200).unwrap().cast().unwrap();
    let options = Options::default();
    let kernel = Kernel::gaussian(1.0).unwrap();
    let refused = [
        inpaint(&signal, &options, &Silent),
        deblur(&signal, &kernel, &options, &Silent),
        upscale(&signal, 2, &options, &Silent),
        demosaic(&signal, "RGGB".parse().unwrap(), &options, &Silent),
    ];
    for result in refused {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("an image") && message.contains("a signal of 200 values"), "{message}");
    }
}
