use super::super::correlate::With;
use super::*;
use crate::{Boundary, Dictionary, Shape};

/// Shapes of samples and filters, and numbers of filters.
fn cases() -> [(Shape, Shape, usize); 4] {
    [
        (Shape::image(13, 37), Shape::image(5, 7), 8),
        (Shape::image(20, 150), Shape::image(11, 11), 10),
        (Shape::image(1, 300), Shape::image(1, 64), 5),
        (Shape { channels: 2, depth: 3, height: 4, width: 9 }, Shape { channels: 2, depth: 2, height: 2, width: 3 }, 2),
    ]
}

/// sum q (u - zero), plainly.
fn twin(filters: &CoarseFilters, canvas: &CoarseCanvas, frame: &Frame, k: usize, line: usize, x: usize) -> f32 {
    let mut sum = 0;
    for row in 0..frame.filter_rows() {
        for j in 0..filters.quads {
            let at = k / GROUP * filters.per_group + (row * filters.quads + j) * GROUP + k % GROUP;
            let taps = filters.taps[at].to_le_bytes().map(|b| i32::from(b as i8));
            let levels = canvas.quads[frame.starts(line)[row] as usize + x + j * QUAD].to_le_bytes();
            let zero = i32::from(filters.sums.zero());
            sum += taps.iter().zip(levels).map(|(q, u)| q * (i32::from(u) - zero)).sum::<i32>();
        }
    }
    (sum as f32 * (filters.scale[k] * canvas.step) as f32).abs()
}

/// What this machine can do.
fn units() -> Vec<Sums> {
    let widest = match Sums::present() {
        None => return Vec::new(),
        Some(Sums::Wide512) => vec![Sums::Wide512, Sums::Narrow],
        Some(_) => vec![Sums::Narrow],
    };
    #[cfg(target_arch = "x86_64")]
    let has_avx_vnni = is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    let has_avx_vnni = false;
    widest.into_iter().chain(has_avx_vnni.then_some(Sums::Wide256)).collect()
}

/// A canvas of noise with a loud corner, and its largest value.
fn noise(frame: &Frame, loud: f32) -> (Vec<f32>, f64) {
    let n = frame.sample.len();
    let value = |i: usize| ((i * 7919) % 101) as f32 / 50.0 - 1.0;
    let x: Vec<f32> = (0..n).map(|i| if i < n / 10 { loud * value(i) } else { value(i) }).collect();
    let mut canvas = vec![0.0; frame.len()];
    frame.fill(&x, &mut canvas);
    let peak = canvas.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    (canvas, f64::from(peak))
}

#[test]
fn is_its_twin_exactly_and_close_to_the_exact_correlation() {
    for (shape, filter, n) in cases() {
        for (boundary, sums) in
            [Boundary::Circular, Boundary::Zero].into_iter().flat_map(|b| units().into_iter().map(move |s| (b, s)))
        {
            let d = Dictionary::<f32>::random(n, filter, 3, 5).unwrap();
            let filters = Filters::<f32>::new(&d);
            let frame = Frame::new(shape, filter, boundary).unwrap();
            let coarse = CoarseFilters::quantise(sums, frame.filter_rows(), &filters, &vec![0.5; n]);
            let (canvas, peak) = noise(&frame, 1.0);
            let quantised = CoarseCanvas::new(&coarse, &frame, &canvas, peak).unwrap();
            let (mut line, mut exact) = (Line::new(&frame), Line::new(&frame));
            let inverse: Vec<f32> = vec![2.0; n + 2];
            let blur = coarse.blur(&quantised, (filter.len() as f64 / 3.0).sqrt()) as f32;
            for number in 0..frame.n_lines() {
                let look = Look { frame: &frame, canvas: &quantised, ridge: None, signed: false, least: 0.0 };
                coarse.rank(&look, number, &mut line);
                let with =
                    With { filters: &filters, inverse_weights: &inverse, field: None, ridge: None, signed: false };
                exact.correlate(&frame, &with, &canvas, 0.0, number);
                for x in 0..frame.positions[2] {
                    let mut all: Vec<f32> = (0..n).map(|k| twin(&coarse, &quantised, &frame, k, number, x)).collect();
                    all.sort_by(|a, b| b.total_cmp(a));
                    // The last bits of a strength give way to the filter's number.
                    let cut = |s: f32| f32::from_bits(s.to_bits() & !coarse.numbers());
                    assert_eq!([line.first.strength[x], line.second.strength[x]], [cut(all[0]), cut(all[1])]);
                    for (ranked, place) in [(&line.first, 0), (&line.second, 1)] {
                        let filter = ranked.filter[x] as usize;
                        assert_eq!(cut(twin(&coarse, &quantised, &frame, filter, number, x)), cut(all[place]));
                    }
                    assert!(line.first.filter[x] != line.second.filter[x]);
                    assert!((line.first.strength[x] - exact.first.strength[x]).abs() < 1.5 * blur);
                }
            }
        }
    }
}

/// Strengths beyond single precision would be no numbers with a filter's number in their bits.
#[test]
fn ranks_of_strengths_beyond_single_precision_are_still_those_of_filters() {
    let (shape, filter, n) = (Shape::image(13, 37), Shape::image(5, 7), 8);
    let filters = Filters::<f32>::new(&Dictionary::<f32>::random(n, filter, 2, 5).unwrap());
    let frame = Frame::new(shape, filter, Boundary::Circular).unwrap();
    let (canvas, peak) = noise(&frame, 1.0);
    for sums in units() {
        let coarse = CoarseFilters::quantise(sums, frame.filter_rows(), &filters, &vec![1e-60; n]);
        let quantised = CoarseCanvas::new(&coarse, &frame, &canvas, peak).unwrap();
        let look = Look { frame: &frame, canvas: &quantised, ridge: None, signed: false, least: 0.0 };
        let mut line = Line::new(&frame);
        coarse.rank(&look, 3, &mut line);
        for x in 0..frame.positions[2] {
            assert!(line.first.strength[x].is_finite() && line.first.strength[x] > 1.0);
            assert!((line.first.filter[x] as usize) < n && line.first.filter[x] != line.second.filter[x]);
        }
    }
}

#[test]
fn screening_never_loses_a_correlation_above_the_bar() {
    for ((shape, filter, n), loud) in cases().into_iter().flat_map(|case| [1.0, 30.0].map(|loud| (case, loud))) {
        for sums in units() {
            let d = Dictionary::<f32>::random(n, filter, 3, 6).unwrap();
            let filters = Filters::<f32>::new(&d);
            let frame = Frame::new(shape, filter, Boundary::Free).unwrap();
            let coarse = CoarseFilters::quantise(sums, frame.filter_rows(), &filters, &vec![0.5; n]);
            let (canvas, peak) = noise(&frame, loud);
            let quantised = CoarseCanvas::new(&coarse, &frame, &canvas, peak).unwrap();
            let hidden = Hidden::new(&coarse, &canvas, &quantised);
            let mut survivors = Survivors::new(&frame, n);
            let (mut above, mut kept) = (0, 0);
            for least in [0.5, 1.0, 3.0] {
                let look = Look { frame: &frame, canvas: &quantised, ridge: None, signed: false, least };
                for number in 0..frame.n_lines() {
                    coarse.screen(&look, &hidden, number, &mut survivors);
                    kept += survivors.found.len();
                    for (k, x) in (0..n).flat_map(|k| (0..frame.positions[2]).map(move |x| (k, x))) {
                        let rows = (0..frame.filter_rows()).flat_map(|row| {
                            let taps = &filters.rows(k)[row * filter.width.next_multiple_of(LANES)..][..filter.width];
                            let columns = &canvas[frame.starts(number)[row] as usize + x..][..filter.width];
                            columns.iter().zip(taps).map(|(c, d)| f64::from(*c) * f64::from(*d))
                        });
                        let strength = rows.sum::<f64>().abs() / 0.5;
                        let survives = survivors.found.contains(&Survivor { column: x as u32, filter: k as u32 });
                        above += usize::from(strength > least);
                        assert!(survives || strength <= least, "{k} at {x} of line {number}: {strength} above {least}");
                    }
                }
            }
            let all = 3 * n * frame.n_positions();
            assert!(above > 0 && (kept < all || loud > 1.0), "{above} above, {kept} of {all} kept");
        }
    }
}

#[test]
fn sums_of_16_bits_stay_within_them_on_the_loudest_residual() {
    // A constant residual and a constant filter: the largest sum that there is.
    let (shape, filter) = (Shape::image(40, 40), Shape::image(24, 24));
    let value = 1.0 / 24.0;
    let d = Dictionary::<f32>::new(1, filter, 2, vec![value; filter.len()]).unwrap();
    let (filters, frame) = (Filters::<f32>::new(&d), Frame::new(shape, filter, Boundary::Circular).unwrap());
    for sums in units() {
        let coarse = CoarseFilters::quantise(sums, frame.filter_rows(), &filters, &[1.0]);
        let canvas = vec![3.0_f32; frame.len()];
        let quantised = CoarseCanvas::new(&coarse, &frame, &canvas, 3.0).unwrap();
        let mut line = Line::new(&frame);
        let look = Look { frame: &frame, canvas: &quantised, ridge: None, signed: false, least: 0.0 };
        coarse.rank(&look, 0, &mut line);
        assert!((line.first.strength[5] - 72.0).abs() < 8.0, "{sums:?}: {}", line.first.strength[5]);
    }
}
