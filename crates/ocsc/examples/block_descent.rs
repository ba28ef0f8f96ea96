//! Times absorbing a sample and one sweep of block descent: K = 100, 11 x 11, 2,500 non-zeros on 100 x 100, f32.
#![allow(clippy::print_stdout, reason = "the program's purpose")]

use ocsc::settings::{BlockDescentConfig, Boundary};
use ocsc::update::{BlockDescent, Update};
use ocsc::{Atom, Code, Dictionary, Result, Sample, Shape};
use std::time::Instant;

fn main() -> Result<()> {
    let mut d = Dictionary::<f32>::random(100, Shape::image(11, 11), 2, 1)?;
    let mut update = BlockDescent::new(BlockDescentConfig::default(), Boundary::Circular, 0);
    let (mut best, mut state) = ([f64::INFINITY; 2], 1_u64);
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for _ in 0..100 {
        let x = (0..10_000).map(|_| next() as f32 / (1_u64 << 31) as f32 - 0.5).collect();
        let mut atoms: Vec<_> = (0..2500)
            .map(|_| Atom { filter: next() % 100, position: next() % 10_000, value: (next() % 7) as f32 - 3.5 })
            .collect();
        atoms.sort_by_key(|a| (a.filter, a.position));
        atoms.dedup_by_key(|a| (a.filter, a.position));
        let (x, z) = (Sample::new(Shape::image(100, 100), x)?, Code::new(100, [1, 100, 100], atoms)?);
        let start = Instant::now();
        update.absorb(&x, &z, &d)?;
        best[0] = best[0].min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        update.update(&mut d);
        best[1] = best[1].min(start.elapsed().as_secs_f64());
    }
    if let Some(lags) = update.statistics() {
        println!("objective {}", lags.objective(&d));
    }
    println!("absorb {:.2} ms, sweep {:.2} ms", 1e3 * best[0], 1e3 * best[1]);
    Ok(())
}
