//! Errors at the door: what was expected and what came, and never a panic.

use crate::common::*;
use ocsc::coder::{Admm, Coder};
use ocsc::monitor::Silent;
use ocsc::settings::{Boundary, CoderConfig, UpdateConfig};
use ocsc::statistics::Spectral;
use ocsc::train::{Progress, TrainOptions, evaluate, refuse, train};
use ocsc::update::{OcscPaper, Update};
use ocsc::{Atom, Code, Config, Dictionary, Online, Sample, Shape};

fn refused<T>(result: ocsc::Result<T>, expected: &str) {
    let message = result.err().expect("an error").to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn samples_must_be_finite_and_fill_their_shape() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut data = vec![0.0; 12];
        data[7] = bad;
        refused(Sample::new(Shape::image(3, 4), data), "row 1, column 3");
    }
    for shape in [Shape::image(0, 4), Shape::image(4, 0), Shape { channels: 0, ..Shape::image(2, 2) }] {
        refused(Sample::<f32>::new(shape, vec![]), "at least one value");
    }
    refused(Sample::new(Shape::image(3, 4), vec![0.0_f64; 11]), "12 values");
    let huge = Shape { channels: 1 << 20, depth: 1 << 20, height: 1 << 20, width: 1 << 20 };
    refused(Sample::new(huge, vec![0.0_f64; 16]), "16");
    let hollow = Shape { channels: 1, depth: usize::MAX, height: usize::MAX, width: 0 };
    refused(Sample::<f64>::new(hollow, vec![]), "at least one value");
    refused(Shape::from_axes(1, &[]), "one to three");
    refused(Shape::from_axes(1, &[1, 2, 3, 4]), "one to three");
}

#[test]
fn dictionaries_must_be_finite_and_feasible() {
    let shape = Shape::image(2, 2);
    refused(Dictionary::new(0, shape, 2, Vec::<f32>::new()), "at least one filter");
    refused(Dictionary::new(1, Shape::image(0, 2), 2, Vec::<f32>::new()), "at least one filter");
    refused(Dictionary::<f32>::random(0, shape, 2, 0), "at least one filter");
    refused(Dictionary::new(1, shape, 2, vec![0.0_f32; 5]), "4 values");
    refused(Dictionary::new(usize::MAX, shape, 2, vec![0.0_f32; 5]), "values for");
    refused(Dictionary::new(1, shape, 4, vec![0.0_f32; 4]), "1 to 3");
    refused(Dictionary::new(1, shape, 2, vec![0.0, f32::NAN, 0.0, 0.0]), "finite");
    refused(Dictionary::new(1, shape, 2, vec![0.0, f32::INFINITY, 0.0, 0.0]), "finite");
    refused(Dictionary::new(2, shape, 2, vec![0.1_f64, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.1]), "filter 1");
    refused(Dictionary::<f32>::random(1 << 40, Shape::image(1 << 20, 1 << 20), 2, 0), "use fewer or smaller filters");
    // Rounded on its way through a file: made feasible.
    let d = Dictionary::new(1, shape, 2, vec![0.500_001_f32; 4]).unwrap();
    assert!(d.norms()[0] <= 1.0);
}

#[test]
fn codes_must_lie_within_their_shape() {
    let atom = |filter, position, value| Atom { filter, position, value };
    refused(Code::new(2, [1, 2, 3], vec![atom(2, 0, 1.0)]), "filters below 2");
    refused(Code::new(2, [1, 2, 3], vec![atom(0, 6, 1.0)]), "positions below 6");
    refused(Code::new(2, [1, 2, 3], vec![atom(0, 0, f64::NAN)]), "finite");
    refused(Code::new(2, [1, 2, 3], vec![atom(1, 4, 1.0), atom(0, 4, 1.0), atom(1, 4, 2.0)]), "twice");
    refused(Code::<f64>::new(2, [1 << 30, 1 << 30, 1 << 30], vec![]), "2^32");
    let code = Code::new(2, [1, 4, 4], vec![atom(0, 0, 1.0)]).unwrap();
    refused(code.reconstruct(&filters(3, [1, 2, 2], 0), Boundary::Circular), "3 filters");
    refused(code.reconstruct(&filters(2, [1, 5, 2], 0), Boundary::Circular), "5x2");
    refused(code.reconstruct(&filters(2, [2, 2, 2], 0), Boundary::Circular), "2x2x2");
}

#[test]
fn settings_must_make_sense() {
    let good = small_config(3, &[3, 3], 0.5);
    assert!(Online::<f32>::new(good.clone(), 1).is_ok());
    let refuse = |change: &dyn Fn(&mut Config), expected: &str| {
        let mut config = good.clone();
        change(&mut config);
        refused(config.validate(), expected);
        refused(Online::<f32>::new(config.clone(), 1), expected);
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refuse(&|c| c.beta = bad, "beta");
        refuse(&|c| c.tol = bad, "tol");
        refuse(&|c| c.coder.rho = Some(bad), "rho: expected a finite number above 0");
        refuse(&|c| c.update.rho = Some(bad), "update_rho: expected");
        refuse(&|c| c.update.tol = bad, "update_tol: expected");
        refuse(&|c| c.block_descent.tol = bad, "sweep_tol: expected a finite number above 0, found");
    }
    for bad in [2.0, 0.99, 2.5, f64::NAN, f64::INFINITY] {
        refuse(&|c| c.coder.relaxation = bad, "relaxation");
    }
    refuse(&|c| c.n_filters = 0, "filters");
    refuse(&|c| c.batch_size = 0, "batch");
    refuse(&|c| c.coder.max_iters = 0, "max_iters");
    refuse(&|c| c.update.max_iters = 0, "update_iters");
    for bad in [vec![], vec![0], vec![3, 0], vec![1, 2, 3, 4]] {
        refuse(&|c| c.filter_shape = bad.clone(), "filter_shape");
    }
    let huge = Config { filter_shape: vec![1 << 40, 1 << 40], ..good.clone() };
    refused(Online::<f32>::new(huge, 1), "use fewer or smaller filters");
}

#[test]
fn a_coder_checks_its_settings_too() {
    let d = filters::<f32>(2, [1, 3, 3], 0);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(Admm::new(&d, bad, 0.1, CoderConfig::default()), "beta");
        refused(Admm::new(&d, 1.0, bad, CoderConfig::default()), "tol");
        refused(Admm::new(&d, 1.0, 0.1, CoderConfig { rho: Some(bad), ..CoderConfig::default() }), "rho");
        refused(evaluate(&small_config(2, &[3, 3], 1.0), &d, &vec![noise([1, 5, 5], 0)], bad, &mut refuse), "tol");
    }
    refused(Admm::new(&d, 1.0, 0.1, CoderConfig { relaxation: 2.0, ..CoderConfig::default() }), "relaxation");
}

#[test]
fn samples_and_codes_must_fit_the_dictionary() {
    let d = filters::<f32>(2, [1, 4, 3], 0);
    let mut coder = Admm::new(&d, 1.0, 0.1, CoderConfig::default()).unwrap();
    for axes in [[1, 3, 9], [1, 9, 2], [1, 1, 50]] {
        refused(coder.code(&noise(axes, 0), None), "4x3");
        refused(coder.beta_max(&noise(axes, 0)), "4x3");
    }
    let colour = Sample::new(Shape { channels: 3, ..Shape::image(8, 8) }, normal(192, 0)).unwrap();
    refused(coder.code(&colour, None), "1 channel");
    let start = Code::zero(3, [1, 8, 8]);
    refused(coder.code(&noise([1, 8, 8], 0), Some(&start)), "starting code");
    let start = Code::zero(2, [1, 8, 7]);
    refused(coder.code(&noise([1, 8, 8], 0), Some(&start)), "starting code");
    let colour_filters = Dictionary::<f32>::random(2, Shape { channels: 3, ..Shape::image(3, 3) }, 2, 0).unwrap();
    coder.set_dictionary(&colour_filters);
    assert!(coder.code(&colour, None).is_ok());
    refused(coder.code(&noise([1, 4, 3], 0), None), "3 channels");
    refused(coder.beta_max(&noise([1, 4, 3], 0)), "3 channels");
    let mut learner = Online::with_dictionary(small_config(2, &[3, 3], 1.0), colour_filters).unwrap();
    refused(learner.partial_fit(&noise([1, 8, 8], 0)), "3 channels");
    assert!(learner.partial_fit(&colour).is_ok());
    coder.set_dictionary(&d);
    assert!(coder.code(&noise([1, 4, 3], 0), None).is_ok(), "a sample of the filter's size");
}

#[test]
fn the_papers_statistics_take_one_size() {
    let mut learner = Online::<f32>::new(small_config(2, &[3, 3], 0.5), 1).unwrap();
    refused(learner.partial_fit_batch(&[]), "at least one sample");
    learner.partial_fit(&noise([1, 8, 9], 0)).unwrap();
    let before = learner.dictionary().clone();
    refused(learner.partial_fit(&noise([1, 9, 8], 0)), "samples of 8x9");
    assert_eq!((learner.step(), learner.dictionary()), (1, &before));
    learner.partial_fit(&noise([1, 8, 9], 1)).unwrap();

    let mixed = vec![noise::<f32>([1, 8, 9], 0), noise([1, 8, 9], 1), noise([1, 9, 9], 2)];
    let mut learner = Online::<f32>::new(small_config(2, &[3, 3], 0.5), 1).unwrap();
    let result = train(&mut learner, &mixed, None, &TrainOptions::default(), Progress::default(), &mut Silent);
    refused(result, "sample ");
    let mut statistics = Spectral::<f32>::new(2, Shape::image(4, 4), 1.0);
    refused(statistics.absorb(&noise([1, 4, 4], 0), &Code::zero(3, [1, 4, 4])), "2 filters");
    refused(statistics.absorb(&noise([1, 4, 4], 0), &Code::zero(2, [1, 4, 5])), "4x4");
    refused(statistics.absorb(&noise(colour(2, [1, 4, 4]), 0), &Code::zero(2, [1, 4, 4])), "2 channels of 4x4");
    assert_eq!(Spectral::<f32>::bytes(usize::MAX, Shape::image(1 << 40, 1 << 40)), usize::MAX);
    // 12 frequencies; a triangle of two rows of a block each, and one row per channel, both complex.
    assert_eq!(Spectral::<f32>::bytes(2, colour(3, [1, 4, 4])), 12 * 2 * (2 * 8 + 3 * 8) * 4);
}

#[test]
fn the_papers_method_takes_no_masks() {
    let (d, code) = (filters::<f32>(2, [1, 3, 3], 0), Code::zero(2, [1, 5, 5]));
    let (shape, data, _) = noise::<f32>([1, 5, 5], 0).into_parts();
    let masked = Sample::masked(shape, data, (0..25).map(|i| i % 3 > 0).collect()).unwrap();
    let mut coder = Admm::new(&d, 1.0, 0.1, CoderConfig::default()).unwrap();
    refused(coder.code(&masked, None), "masks: expected the methods `ocsc` or `ffcsc`");
    refused(coder.beta_max(&masked), "found a mask");
    refused(OcscPaper::new(UpdateConfig::default()).absorb(&masked, &code, &d), "found a mask");
    refused(Spectral::new(2, shape, 1.0).absorb(&masked, &code), "found a mask");
    refused(Online::with_dictionary(small_config(2, &[3, 3], 1.0), d).unwrap().partial_fit(&masked), "found a mask");
}

#[test]
fn data_sets_must_not_be_empty() {
    let config = small_config(2, &[3, 3], 0.5);
    let mut learner = Online::<f32>::new(config.clone(), 1).unwrap();
    let (none, some) = (vec![], vec![noise::<f32>([1, 8, 8], 0)]);
    let run = |learner: &mut Online<f32>, data: &Vec<_>, test: &Vec<_>| {
        train(learner, data, Some(test), &TrainOptions::default(), Progress::default(), &mut Silent)
    };
    refused(run(&mut learner, &none, &some), "data set");
    refused(run(&mut learner, &some, &none), "test set");
    refused(evaluate(&config, learner.dictionary(), &none, 0.1, &mut refuse), "test set");
    let small = vec![noise::<f32>([1, 2, 8], 0)];
    refused(run(&mut learner, &small, &some), "sample 0");
    refused(evaluate(&config, learner.dictionary(), &small, 0.1, &mut refuse), "sample 0");
}

/// Magnitudes that single precision cannot square: an error or finite numbers, no hang and no silent NaN.
#[test]
fn extreme_magnitudes_are_survived() {
    for exponent in [-38, -30, -20, -10, 10, 20, 30, 38] {
        let unit = 10.0_f64.powi(exponent);
        let x = noise::<f32>([1, 8, 8], 0).map(|v| (unit * v).clamp(-3e38, 3e38));
        let mut config = small_config(2, &[3, 3], 0.1 * unit);
        config.coder.max_iters = 200;
        config.update = UpdateConfig::default();
        let mut learner = Online::<f32>::new(config, 1).unwrap();
        for _ in 0..2 {
            match learner.partial_fit(&x) {
                Ok(_) if exponent > 12 => panic!("1e{exponent}"),
                Ok(step) => {
                    assert!(step.objective().is_finite(), "1e{exponent}");
                    assert!((0.0..=1.0).contains(&step.gap()), "1e{exponent}: {}", step.gap());
                    assert!(learner.dictionary().data().iter().all(|v| v.is_finite()), "1e{exponent}");
                }
                Err(error) if exponent > 12 => {
                    assert!(error.to_string().contains("values up to 1e12 in f32"), "{error}")
                }
                Err(error) => assert!(error.to_string().contains("finite"), "{error}"),
            }
        }
    }
}
