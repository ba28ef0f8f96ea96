//! Events of codes, against their definition written out.

use crate::common::{colour, filters, relative, sparse_code};
use ocsc::events::{Align, Event, Options, Window, find, stitch};
use ocsc::{Atom, Boundary, Code, Dictionary, Real, Shape};

const BOUNDARIES: [Boundary; 3] = [Boundary::Circular, Boundary::Zero, Boundary::Free];

/// (depth, height, width) of a flat index.
fn place(at: usize, [_, h, w]: [usize; 3]) -> [i64; 3] {
    [at / (h * w), at / w % h, at % w].map(|n| n as i64)
}

/// The definition: again and again the strongest atom that is left, with all that are near it.
fn twin<T: Real>(
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
    sample_energy: f64,
    options: &Options,
) -> Vec<Event> {
    let (shape, f) = (code.shape(), dictionary.shape());
    let distance = options.min_distance.unwrap_or(f.spatial().map(|n| n.div_ceil(2)));
    let is_near = |a: &Atom<T>, b: &Atom<T>| {
        let (p, q) = (place(a.position as usize, shape), place(b.position as usize, shape));
        (0..3).all(|i| {
            let apart = (p[i] - q[i]).unsigned_abs() as usize;
            let apart = if boundary == Boundary::Circular { apart.min(shape[i] - apart) } else { apart };
            apart < distance[i]
        })
    };
    let mut left = code.atoms().to_vec();
    let mut events = Vec::new();
    while !left.is_empty() {
        let strength = |a: &Atom<T>| a.value.f64().abs();
        let most = left.iter().map(strength).fold(0.0, f64::max);
        let peak = *left.iter().find(|a| strength(a) == most).unwrap();
        let (group, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|a| a.filter == peak.filter && is_near(a, &peak));
        left = rest;
        if most < options.threshold {
            continue;
        }
        let alone = Code::new(code.n_filters(), shape, group).unwrap();
        let part = alone.reconstruct(dictionary, boundary).unwrap();
        let energy = part.data().iter().map(|v| v.f64().powi(2)).sum::<f64>() / sample_energy;
        let filter = dictionary.filter(peak.filter as usize);
        let squares: Vec<f64> = filter.iter().map(|v| v.f64().powi(2)).collect();
        let at = |i: usize| place(i % f.pixels(), f.spatial());
        let offset = match options.align {
            Align::Start => [0; 3],
            Align::Peak => {
                let most = squares.iter().copied().fold(0.0, f64::max);
                at(squares.iter().position(|s| *s == most).unwrap())
            }
            _ => [0, 1, 2].map(|axis| {
                let total: f64 = squares.iter().sum();
                let mean: f64 = squares.iter().enumerate().map(|(i, s)| s * at(i)[axis] as f64).sum::<f64>() / total;
                mean.round() as i64
            }),
        };
        let corner = place(peak.position as usize, shape);
        let position = std::array::from_fn(|i| match boundary {
            Boundary::Circular => (corner[i] + offset[i]) % shape[i] as i64,
            _ => corner[i] - (f.spatial()[i] as i64 - 1) + offset[i],
        });
        events.push(Event { filter: peak.filter, position, amplitude: peak.value.f64(), energy });
    }
    events.sort_by_key(|e| (e.position, e.filter));
    events
}

#[track_caller]
fn check<T: Real>(code: &Code<T>, dictionary: &Dictionary<T>, boundary: Boundary, options: &Options, tolerance: f64) {
    let found = find(code, dictionary, boundary, 7.5, options).unwrap();
    let expected = twin(code, dictionary, boundary, 7.5, options);
    assert_eq!(found.len(), expected.len(), "{boundary} {options:?}");
    for (a, b) in found.iter().zip(&expected) {
        assert_eq!((a.filter, a.position, a.amplitude), (b.filter, b.position, b.amplitude), "{boundary} {options:?}");
        assert!(relative(a.energy, b.energy) < tolerance, "{boundary} {options:?}: {} {}", a.energy, b.energy);
    }
}

#[test]
fn events_are_their_definition_in_every_dimension() {
    let shapes: [(usize, [usize; 3], [usize; 3]); 5] = [
        (1, [1, 1, 9], [1, 1, 60]),
        (3, [1, 1, 4], [1, 1, 4]),
        (1, [1, 5, 4], [1, 17, 12]),
        (2, [2, 3, 3], [5, 6, 7]),
        (1, [1, 1, 1], [1, 4, 9]),
    ];
    for (i, (channels, filter, sample)) in shapes.into_iter().enumerate() {
        let dictionary = filters::<f64>(3, colour(channels, filter), i as u64);
        for boundary in BOUNDARIES {
            let axes: [usize; 3] = std::array::from_fn(|a| match boundary {
                Boundary::Circular => sample[a],
                _ => sample[a] + filter[a] - 1,
            });
            for density in [0.0, 0.05, 0.4] {
                let code = sparse_code::<f64>(3, axes, density, 31 + i as u64);
                for min_distance in [None, Some([1, 1, 1]), Some([2, 3, 5]), Some([40, 40, 400])] {
                    for (align, threshold) in [(Align::Start, 0.0), (Align::Peak, 0.8), (Align::Centre, 1.2)] {
                        check(&code, &dictionary, boundary, &Options { threshold, min_distance, align }, 1e-10);
                    }
                }
            }
        }
    }
}

#[test]
fn events_of_single_precision() {
    let dictionary = filters::<f32>(2, [1, 4, 5], 3);
    let code = sparse_code::<f32>(2, [1, 14, 16], 0.2, 4);
    for boundary in BOUNDARIES {
        check(&code, &dictionary, boundary, &Options::default(), 1e-4);
    }
}

/// A filter that begins with zeros, rises and falls slowly: first corner, peak and centre differ.
fn spike() -> Dictionary<f64> {
    let taps: Vec<f64> = vec![0.0, 0.0, -4.0, 3.0, 2.0, 2.0];
    let norm = taps.iter().map(|v| v * v).sum::<f64>().sqrt();
    let shape = Shape { channels: 1, depth: 1, height: 1, width: 6 };
    Dictionary::new(1, shape, 1, taps.iter().map(|v| v / norm).collect()).unwrap()
}

#[test]
fn positions_are_those_of_the_sample_whatever_the_boundary() {
    let dictionary = spike();
    for boundary in BOUNDARIES {
        let margin = if boundary == Boundary::Circular { 0 } else { 5 };
        // The filter's first corner lies on pixel 20 of 30.
        let atoms = vec![Atom { filter: 0, position: 20 + margin, value: 2.0 }];
        let code = Code::new(1, [1, 1, 30 + margin as usize], atoms).unwrap();
        for (align, expected) in [(Align::Start, 20), (Align::Peak, 22), (Align::Centre, 23)] {
            let options = Options { align, ..Options::default() };
            let found = find(&code, &dictionary, boundary, 8.0, &options).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].position, [0, 0, expected], "{boundary} {align}");
            assert!(relative(found[0].energy, 0.5) < 1e-12, "two squared is half of eight");
            assert_eq!(align.to_string().parse::<Align>().unwrap(), align);
        }
    }
    // Over the end of a circle the peak comes round; on a line it lies outside.
    let at_end =
        |position, length| Code::new(1, [1, 1, length], vec![Atom { filter: 0, position, value: 1.0 }]).unwrap();
    let position = |code: &Code<f64>, boundary| find(code, &dictionary, boundary, 1.0, &Options::default()).unwrap()[0];
    assert_eq!(position(&at_end(29, 30), Boundary::Circular).position, [0, 0, 1]);
    assert_eq!(position(&at_end(34, 35), Boundary::Free).position, [0, 0, 31]);
    assert_eq!(position(&at_end(0, 35), Boundary::Free).position, [0, 0, -3]);
    // Of what sticks out only the last value, 2 of the norm's square root of 33, lies in the sample.
    assert!(relative(position(&at_end(0, 35), Boundary::Free).energy, 4.0 / 33.0) < 1e-12);
}

#[test]
fn pieces_of_a_recording_are_stitched() {
    let dictionary = spike();
    let code = |atoms: &[(u32, f64)]| {
        let atoms = atoms.iter().map(|(position, value)| Atom { filter: 0, position: *position, value: *value });
        Code::new(1, [1, 1, 25], atoms.collect()).unwrap()
    };
    let options = Options::default();
    let window = |start, energy, atoms: &[(u32, f64)]| Window {
        start: [0, 0, start],
        energy,
        events: find(&code(atoms), &dictionary, Boundary::Free, energy, &options).unwrap(),
    };
    // Windows of 20. One event lies over the cut: its corner is 18 in the first and -2 in the second.
    let windows = [window(0, 6.0, &[(9, 1.0), (23, 2.0)]), window(20, 4.0, &[(3, 1.9), (15, 1.0)])];
    assert_eq!(windows[0].events[1].position[2] + windows[0].start[2], 20);
    assert_eq!(windows[1].events[0].position[2] + windows[1].start[2], 20);
    let all = stitch(&windows, options.distance(dictionary.shape()));
    let places: Vec<(i64, f64)> = all.iter().map(|e| (e.position[2], e.amplitude)).collect();
    assert_eq!(places, [(6, 1.0), (20, 2.0), (32, 1.0)]);
    assert!(relative(all[0].energy, 0.1) < 1e-12, "of the whole recording's energy");
    // The first window shows two values of the filter (0, 0), the second four: 33 of 33.
    assert!(relative(all[1].energy, 1.9 * 1.9 / 10.0) < 1e-12);
    // Without merging both stay.
    assert_eq!(stitch(&windows, [1, 1, 1]).len(), 3, "they stand on one place");
    assert!(stitch(&[], [1, 1, 1]).is_empty());
}

#[test]
fn what_cannot_be_an_event_is_refused() {
    let dictionary = spike();
    let code = Code::<f64>::zero(1, [1, 1, 30]);
    let refused = |code: &Code<f64>, options: &Options| {
        find(code, &dictionary, Boundary::Circular, 1.0, options).unwrap_err().to_string()
    };
    let told = refused(&code, &Options { threshold: -1.0, ..Options::default() });
    assert_eq!(told, "threshold: expected a number from 0 up, found -1");
    let told = refused(&code, &Options { min_distance: Some([1, 0, 1]), ..Options::default() });
    assert_eq!(told, "min_distance: expected at least 1 on every axis, found 0");
    let told = refused(&Code::zero(2, [1, 1, 30]), &Options::default());
    assert_eq!(told, "code: expected 1 filter, as the dictionary has, found 2");
    assert!(refused(&Code::zero(1, [1, 1, 5]), &Options::default()).contains("at least the filter's size"));
    assert_eq!(
        "middle".parse::<Align>().unwrap_err().to_string(),
        "align: expected start, peak or centre, found middle"
    );
}
