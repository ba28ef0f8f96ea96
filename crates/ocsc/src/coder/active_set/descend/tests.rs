use super::super::filters::Filters;
use super::*;
use crate::random::stream;
use crate::{Dictionary, Shape};
use rand::RngExt;

/// What a line of atoms makes of a canvas: correlations, and the canvas after all were added.
fn worked<const FMA: bool>(setting: &Setting<'_, f32>, canvas: &[f32], line: usize) -> (Vec<f32>, Vec<f32>) {
    let (frame, mut canvas) = (setting.frame, canvas.to_vec());
    let taps = setting.filters.rows(1).as_chunks::<LANES>().0;
    let blocks = setting.filters.width.div_ceil(LANES);
    let mut products = Vec::new();
    for column in 0..frame.positions[2] {
        let place = Place::new(frame, line, column, 0);
        products.push(match blocks {
            1 => dot::<f32, FMA>(frame, &canvas, taps, &place, setting.wide),
            _ => long_dot::<f32, FMA>(frame, &canvas, taps, blocks, &place, setting.wide),
        });
        let border = frame.is_border(line * frame.positions[2] + column);
        let (filter, line, column) = (1, line as u32, column as u32);
        let (band, tile, value, inverse_energy, weight) = (0, 0, 0.0, 1.0, 1.0);
        let atom = Active { filter, line, column, band, tile, value, inverse_energy, weight, border };
        add::<f32, FMA>(setting, &mut canvas, taps, blocks, &atom, &place, 0.3);
    }
    (products, canvas)
}

/// Vectors against plain loops, on samples from the filter's width to several vectors, where atoms wrap around on both sides.
#[test]
fn vectors_do_what_plain_loops_do() {
    if Unit::present() == Unit::Portable {
        return;
    }
    for (seed, width) in [11, 12, 15, 16, 21, 40, 200].into_iter().enumerate() {
        let wider = [(1, 17), (3, 40), (1, 100)].into_iter().filter(|(_, filter_width)| *filter_width <= width);
        for (filter_height, filter_width) in [(5, 7), (11, 11), (1, 1)].into_iter().chain(wider) {
            for boundary in [Boundary::Circular, Boundary::Zero, Boundary::Free] {
                let shape = Shape::image(filter_height, filter_width);
                let frame = Frame::new(Shape::image(13, width), shape, boundary).unwrap();
                let filters = Filters::<f32>::new(&Dictionary::<f32>::random(2, shape, 2, seed as u64).unwrap());
                let mut rng = stream(seed as u64, 0);
                let sample: Vec<f32> = (0..13 * width).map(|_| rng.random_range(-1.0_f32..1.0)).collect();
                let mut canvas = vec![0.0; frame.len()];
                frame.fill(&sample, &mut canvas);
                // The last line wraps around to the first one.
                for line in [0, frame.n_lines() - 1] {
                    let setting =
                        |wide| Setting { frame: &frame, filters: &filters, nonnegative: false, wide, general: None };
                    let plain = worked::<false>(&setting(false), &canvas, line);
                    for wide in [false, is_wide()] {
                        let fast = worked::<true>(&setting(wide), &canvas, line);
                        for (a, b) in plain.0.iter().zip(&fast.0).chain(plain.1.iter().zip(&fast.1)) {
                            assert!((a - b).abs() < 1e-4, "{width} {shape} {boundary:?} {line} {wide}: {a} {b}");
                        }
                    }
                }
            }
        }
    }
}
