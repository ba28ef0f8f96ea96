//! Times one iteration of the ADMM coder: `admm_iteration IMAGE.npy DICTIONARY.npy ITERATIONS`.
//!
//! The image is (H, W), the dictionary (K, h, w), both f32; prints one JSON object. `benchmarks/parts/admm.py` runs it
//! in turn with SPORCO's `ConvBPDN` on the same arrays.
#![expect(clippy::print_stdout, reason = "a program whose result is one line")]

use ndarray::{Array2, Array3};
use ndarray_npy::read_npy;
use ocsc::coder::{Admm, Coder};
use ocsc::settings::{CoderConfig, StopRule};
use ocsc::{Dictionary, Sample, Shape};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let [image, dictionary, iterations] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("usage: admm_iteration IMAGE.npy DICTIONARY.npy ITERATIONS".into());
    };
    let (image, filters): (Array2<f32>, Array3<f32>) = (read_npy(image)?, read_npy(dictionary)?);
    let ((height, width), (k, h, w)) = (image.dim(), filters.dim());
    let sample = Sample::new(Shape::image(height, width), image.into_iter().collect())?;
    let dictionary = Dictionary::new(k, Shape::image(h, w), 2, filters.into_iter().collect())?;
    let max_iters: usize = iterations.parse()?;
    let fixed = CoderConfig { rho: Some(10.0), adaptive_rho: false, ..CoderConfig::default() };
    let config = CoderConfig { stop: StopRule::Residuals, max_iters, ..fixed };
    // A tolerance that is never reached: all iterations are made.
    let mut coder = Admm::new(&dictionary, 1.0, 1e-30, config)?;
    coder.code(&sample, None)?;
    let clock = Instant::now();
    let coded = coder.code(&sample, None)?;
    let milliseconds = clock.elapsed().as_secs_f64() * 1e3 / max_iters as f64;
    println!("{{\"ms_per_iteration\": {milliseconds}, \"objective\": {}}}", coded.total());
    Ok(())
}
