use super::super::filters::Filters;
use super::*;
use crate::random::stream;
use crate::{Dictionary, Shape};
use rand::RngExt;

/// What a sweep over a line of atoms leaves: their values, their largest step and the canvas.
type Swept = (Vec<f32>, f32, Vec<f32>);

/// Sweeps twice over a line of atoms; some are not zero, and every third has no energy.
fn swept(setting: &Setting<'_, f32>, canvas: &[f32], line: usize, run: impl Fn(Sweep<'_, f32>)) -> Swept {
    let (frame, mut canvas) = (setting.frame, canvas.to_vec());
    let atom = |column: usize| Active {
        filter: column as u32 % 2,
        line: line as u32,
        column: column as u32,
        band: 0,
        tile: 0,
        value: (column % 4) as f32 * 0.1,
        inverse_energy: [0.0, 0.9, 0.8][column % 3],
        weight: 0.05,
        border: frame.is_border(line * frame.positions[2] + column) || frame.hides(line, column),
    };
    let mut atoms: Vec<Active<f32>> = (0..frame.positions[2]).map(atom).collect();
    let order: Vec<u32> = (0..atoms.len() as u32).collect();
    let mut heat = [0.0];
    for _ in 0..2 {
        let (atoms, order, canvas, heat) = (&mut atoms[..], &order[..], &mut canvas[..], &mut heat[..]);
        run(Sweep { setting, atoms, order, canvas, base: 0, negligible: 1e-3, heat });
    }
    (atoms.iter().map(|a| a.value).collect(), heat[0], canvas)
}

/// The correlations of both filters on a line.
fn rescored(setting: &Setting<'_, f32>, canvas: &[f32], line: usize, run: impl Fn(Rescore<'_, f32>)) -> Vec<f32> {
    let (frame, filters) = (setting.frame, setting.filters);
    let columns = (0..frame.positions[2] as u32).flat_map(|column| [0, 1].map(|filter| Survivor { column, filter }));
    let survivors: Vec<Survivor> = columns.collect();
    let mut out = vec![0.0; survivors.len()];
    run(Rescore { frame, filters, canvas, line, survivors: &survivors, out: &mut out });
    out
}

fn assert_close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-4, "{what}: {a} {b}");
    }
}

/// Vectors against plain loops, on samples from the filter's width to several vectors, where atoms wrap around on both sides.
#[cfg(target_arch = "x86_64")]
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
                let data: Vec<f32> = (0..canvas.len()).map(|i| (i % 3) as f32 / 2.0).collect();
                let unit = [1.0; 2];
                for (weighted, nonnegative) in [(false, false), (false, true), (true, false)] {
                    let general = || General { weights: &unit[..], ridge: 0.2, data: Some(&data[..]) };
                    let general = weighted.then(general);
                    let setting = Setting { frame: &frame, filters: &filters, nonnegative, general };
                    // The last line wraps around to the first one.
                    for line in [0, frame.n_lines() - 1] {
                        let plain = swept(&setting, &canvas, line, |sweep| sweep.visit::<Plain<false>>());
                        let products = rescored(&setting, &canvas, line, |rescore| rescore.correlate::<Plain<false>>());
                        assert!(plain.1 > 0.0 && products.iter().any(|c| *c != 0.0));
                        for wide in [false, is_wide()] {
                            let what = format!("{width} {shape} {boundary:?} {line} {wide} {weighted} {nonnegative}");
                            let fast = swept(&setting, &canvas, line, |sweep| x86::sweep(sweep, wide));
                            assert_close(&plain.0, &fast.0, &what);
                            assert_close(&[plain.1], &[fast.1], &what);
                            assert_close(&plain.2, &fast.2, &what);
                            let fast = rescored(&setting, &canvas, line, |rescore| x86::rescore(rescore, wide));
                            assert_close(&products, &fast, &what);
                        }
                    }
                }
            }
        }
    }
}
