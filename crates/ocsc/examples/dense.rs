//! How long the active-set coder and ADMM take as beta falls and codes get dense: processor time on one thread.
//!
//! ```sh
//! cargo run --release -p ocsc --example dense -- MODEL.safetensors IMAGES.npy [TOL [RATIO...]]
//! ```
//!
//! Codes the first image of a float32 or float64 array (N, H, W). A ratio is a fraction of the largest beta.
#![allow(clippy::print_stdout, reason = "the program's purpose")]

use cpu_time::ProcessTime;
use ocsc::coder::{ActiveSet, Admm, Coded, Coder};
use ocsc::settings::{ActiveSetConfig, Boundary, CoderConfig};
use ocsc::{Sample, Shape, checkpoint};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, images, rest @ ..] = &args[..] else { return Err("expected MODEL IMAGES.npy [TOL [RATIO...]]".into()) };
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global()?;
    let dictionary = checkpoint::load::<f32>(Path::new(model))?.dictionary;
    let image = first_image(&std::fs::read(images)?).ok_or("expected a float32 or float64 array (N, H, W)")?;
    let numbers = rest.iter().map(|text| text.parse()).collect::<Result<Vec<f64>, _>>()?;
    let tol = numbers.first().copied().unwrap_or(0.01);
    let ratios = if numbers.len() > 1 { &numbers[1..] } else { &[0.1, 0.03, 0.01, 0.003, 0.001][..] };

    let active = ActiveSetConfig::default;
    let largest = ActiveSet::new(&dictionary, 1.0, tol, Boundary::Circular, active())?.beta_max(&image)?;
    println!("ratio   active set   non-zeros   gap       ADMM         gap       active set / ADMM");
    for ratio in ratios {
        let beta = ratio * largest;
        let mut fast = ActiveSet::new(&dictionary, beta, tol, Boundary::Circular, active())?;
        let config = CoderConfig { max_iters: 10_000, ..CoderConfig::default() };
        let mut slow = Admm::new(&dictionary, beta, tol, config)?;
        let (a, a_seconds) = timed(&mut fast, &image)?;
        let (b, b_seconds) = timed(&mut slow, &image)?;
        println!(
            "{ratio:<7} {a_seconds:8.3} s   {:9}   {:.1e}   {b_seconds:8.3} s   {:.1e}   {:.2}",
            a.code.nonzeros(),
            a.relative_gap(),
            b.relative_gap(),
            a_seconds / b_seconds
        );
    }
    Ok(())
}

/// A code and the processor time that it took.
fn timed(coder: &mut dyn Coder<f32>, image: &Sample<f32>) -> Result<(Coded<f32>, f64), Box<dyn Error>> {
    let clock = ProcessTime::now();
    let coded = coder.code(image, None)?;
    Ok((coded, clock.elapsed().as_secs_f64()))
}

/// The first image of a .npy file, version 1.
fn first_image(file: &[u8]) -> Option<Sample<f32>> {
    let length = u16::from_le_bytes(file.get(8..10)?.try_into().ok()?) as usize;
    let (header, data) = (std::str::from_utf8(file.get(10..10 + length)?).ok()?, &file[10 + length..]);
    let axes = header.split('(').nth(1)?.split(')').next()?;
    let axes: Vec<usize> = axes.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    let [_, height, width] = axes[..] else { return None };
    let single = header.contains("<f4");
    let value = |b: &[u8]| match single {
        true => b.try_into().map(f32::from_le_bytes).ok(),
        false => b.try_into().map(|b| f64::from_le_bytes(b) as f32).ok(),
    };
    let values = data.chunks_exact(if single { 4 } else { 8 }).take(height * width).map(value);
    Sample::new(Shape::image(height, width), values.collect::<Option<Vec<f32>>>()?).ok()
}
