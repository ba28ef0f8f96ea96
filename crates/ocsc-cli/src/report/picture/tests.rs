use super::mosaic::Layout;
use super::*;
use crate::report::letters::dots;
use ocsc::Dictionary;

/// Filters of `shape` whose values are given, scaled into the unit ball.
fn dictionary(shape: Shape, rank: usize, filters: &[Vec<f64>]) -> Dictionary<f64> {
    let norm = |f: &[f64]| f.iter().map(|v| v * v).sum::<f64>().sqrt().max(1.0) * 1.001;
    let data = filters.iter().flat_map(|f| f.iter().map(|v| v / norm(f)).collect::<Vec<_>>()).collect();
    Dictionary::new(filters.len(), shape, rank, data).unwrap()
}

fn rgb(picture: &Picture, x: usize, y: usize) -> [u8; 3] {
    let Rgba([r, g, b, a]) = *picture.pixels.get_pixel(x as u32, y as u32);
    assert_eq!(a, 255, "({x}, {y}) is opaque");
    [r, g, b]
}

#[test]
fn mosaic_of_gray_filters() {
    // The flat filter has the smaller variance and comes first, though it is the second of the dictionary.
    let d = dictionary(Shape::image(2, 2), 2, &[vec![-1.0, 1.0, 0.0, 0.5], vec![0.3; 4], vec![0.0; 4]]);
    let picture = dictionary_mosaic(&d);
    let layout = Layout::plan(3, Shape::image(2, 2));
    assert_eq!((layout.columns, layout.scale), (2, 16));
    assert_eq!(picture.size(), (32 * 2 + 8, 32 * 2 + 8));
    let zero = d.by_variance().iter().position(|&k| k == 2).unwrap();
    let (x, y) = layout.corner(zero);
    assert_eq!(rgb(&picture, x, y), [128; 3], "an all-zero filter is mid-gray");
    let (x, y) = layout.corner(2);
    assert_eq!((x, y), (0, 40));
    assert_eq!(rgb(&picture, x, y), [0; 3]);
    assert_eq!(rgb(&picture, x + 15, y + 15), [0; 3]);
    assert_eq!(rgb(&picture, x + 16, y), [255; 3]);
    assert_eq!(rgb(&picture, x, y + 16), [128; 3]);
    assert_eq!(rgb(&picture, x + 31, y + 31), [191; 3]);
    assert_eq!(picture.pixels.get_pixel(34, 0).0[3], 0, "the gap is transparent");
    assert_eq!(picture.pixels.get_pixel(60, 60).0[3], 0, "the empty place is transparent");
}

#[test]
fn numbers_stand_above_their_filters() {
    let d = dictionary(Shape::image(2, 2), 2, &[vec![-1.0, 1.0, 0.0, 0.5], vec![0.3; 4], vec![0.0; 4]]);
    let (picture, plain) = (numbered_mosaic(&d), dictionary_mosaic(&d));
    let (layout, bare) = (Layout::plan(3, Shape::image(2, 2)).numbered(), Layout::plan(3, Shape::image(2, 2)));
    for (i, k) in d.by_variance().into_iter().enumerate() {
        let ((x, y), (bare_x, bare_y)) = (layout.corner(i), bare.corner(i));
        assert_eq!(rgb(&picture, x + 20, y + 3), rgb(&plain, bare_x + 20, bare_y + 3));
        let digit = char::from_digit(k as u32, 10).unwrap();
        for (column, row) in dots(digit) {
            assert_eq!(rgb(&picture, x + 2 * column, y - 18 + 2 * row), [128; 3], "{digit}");
        }
        let inked = (0..18 * 12)
            .filter(|at| picture.pixels.get_pixel((x + at % 12) as u32, (y - 18 + at / 12) as u32).0[3] > 0);
        assert_eq!(inked.count(), 4 * dots(digit).count(), "nothing but the digit");
    }
}

#[test]
fn mosaic_of_colour_volume_and_multichannel_filters() {
    let colour = Shape { channels: 3, ..Shape::image(2, 1) };
    let picture = dictionary_mosaic(&dictionary(colour, 2, &[vec![1.0, 0.0, 0.0, -1.0, 0.0, 0.0]]));
    assert_eq!(rgb(&picture, 0, 0), [255, 128, 128]);
    assert_eq!(rgb(&picture, 0, 16), [128, 0, 128]);
    let decoded = image::load_from_memory(&picture.png_bytes().unwrap()).unwrap();
    assert_eq!(decoded.into_rgba8(), picture.pixels, "colour survives the file");

    for shape in [Shape { depth: 2, ..Shape::image(2, 2) }, Shape { channels: 2, ..Shape::image(2, 2) }] {
        let filter = vec![1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0];
        let picture = dictionary_mosaic(&dictionary(shape, 2, &[filter]));
        let layout = Layout::plan(1, shape);
        assert_eq!(rgb(&picture, 0, 0), [255; 3]);
        assert_eq!(rgb(&picture, layout.panel_pitch(), 0), [0; 3]);
        assert_eq!(picture.pixels.get_pixel(layout.panel.0 as u32, 0).0[3], 0, "slices are separated");
    }
}

#[test]
fn mosaic_of_signals_draws_lines() {
    let ramp: Vec<f64> = (0..32).map(|i| (i as f64 - 15.5) / 15.5).collect();
    let shape = Shape { channels: 1, depth: 1, height: 1, width: 32 };
    let picture = dictionary_mosaic(&dictionary(shape, 1, &[ramp]));
    let (width, height) = picture.size();
    assert_eq!((width, height), (256, 128));
    let mean_row = |x: u32| {
        let inked: Vec<u32> = (0..height).filter(|&y| picture.pixels.get_pixel(x, y).0[0] < 120).collect();
        assert!(!inked.is_empty(), "column {x} has ink");
        inked.iter().sum::<u32>() as f64 / inked.len() as f64
    };
    assert!(mean_row(8) > mean_row(128) && mean_row(128) > mean_row(247), "a rising ramp rises");
    assert!((mean_row(128) - 64.0).abs() < 3.0);
}

#[test]
fn mosaic_of_signals_of_several_channels_draws_a_line_each() {
    let shape = Shape { channels: 2, depth: 1, height: 1, width: 8 };
    let picture = dictionary_mosaic(&dictionary(shape, 1, &[[[0.5; 8], [-0.5; 8]].concat()]));
    assert_eq!(picture.size(), (256, 128), "one plot for both");
    // Blue above the rule, orange below, whose edges are softened: by which of red and blue prevails.
    let leaning = |y: u32| {
        let Rgba([r, _, b, _]) = *picture.pixels.get_pixel(100, y);
        i32::from(b) - i32::from(r)
    };
    assert!((0..64).any(|y| leaning(y) > 60) && (0..64).all(|y| leaning(y) > -10));
    assert!((64..128).any(|y| leaning(y) < -60) && (64..128).all(|y| leaning(y) < 10));
}

#[test]
fn mosaic_of_many_channels_is_in_false_colours() {
    // Only the last two of six channels are not zero: red, where they are.
    let shape = Shape { channels: 6, ..Shape::image(2, 1) };
    let filter = [[0.0; 8].as_slice(), &[0.4, 0.0, 0.4, 0.0]].concat();
    let picture = dictionary_mosaic(&dictionary(shape, 2, &[filter]));
    assert_eq!(rgb(&picture, 0, 0), [255, 128, 128]);
    assert_eq!(rgb(&picture, 0, 16), [128; 3]);
}

#[test]
fn legends_say_what_is_shown() {
    let legend = |channels: usize, depth: usize, height: usize| {
        legend(Shape { channels, depth, height, width: 9 }).unwrap_or_default()
    };
    assert_eq!(legend(1, 1, 9), "");
    assert_eq!(legend(1, 1, 1), "");
    assert_eq!(legend(2, 1, 1), "one line per channel: blue, orange");
    assert!(legend(7, 1, 1).ends_with("crimson, and again"));
    assert!(legend(2, 1, 9).contains("side by side"));
    assert_eq!(legend(3, 5, 9), "the three channels as red, green and blue; 5 slices from left to right");
    assert!(legend(4, 1, 9).ends_with("channels 1 to 2 as blue, 3 as green, 4 as red"));
    assert!(legend(16, 1, 9).ends_with("channels 1 to 6 as blue, 7 to 11 as green, 12 to 16 as red"));
    assert_eq!(legend(1, 3, 9), "3 slices from left to right");
}

#[test]
fn mosaics_stay_near_square_and_bounded() {
    for (side, n) in [(11, 1), (11, 2), (11, 7), (11, 100), (11, 1000), (8, 5000), (64, 300), (3, 25)] {
        let layout = Layout::plan(n, Shape::image(side, side));
        let (w, h) = layout.canvas().dimensions();
        assert!(w.max(h) <= 3000 && w.max(h) >= 48, "{n} of {side}: {w}x{h}");
        if n > 2 {
            assert!((0.6..1.7).contains(&(w as f64 / h as f64)), "{n} of {side}: {w}x{h}");
        }
        let (x, y) = layout.corner(n - 1);
        assert!(x + layout.panel.0 <= w as usize && y + layout.panel.1 <= h as usize);
    }
    for shape in [Shape { depth: 48, ..Shape::image(9, 9) }, Shape { channels: 40, ..Shape::image(1, 64) }] {
        let (w, h) = Layout::plan(500, shape).canvas().dimensions();
        assert!(w > 0 && h > 0 && w.max(h) < 30_000, "{w}x{h}");
    }
}

#[test]
fn samples_from_black_to_white() {
    let sample = Sample::<f32>::new(Shape::image(1, 1), vec![0.0]).unwrap();
    assert_eq!(image_gray(&sample, 0.0, 0.0).size().0, MAX_PLOT as u32);
    let sample = Sample::<f32>::new(Shape::image(2, 2), vec![-1.0, 0.0, 1.0, 9.0]).unwrap();
    let picture = image_gray(&sample, -1.0, 1.0);
    assert_eq!([(0, 0), (1, 0), (0, 1), (1, 1)].map(|(x, y)| rgb(&picture, x, y)[0]), [0, 128, 255, 255]);
    let volume = Shape { channels: 3, depth: 3, height: 2, width: 1 };
    let data: Vec<f32> = (0..18).map(|i| if i == 2 { 1.0 } else { 0.0 }).collect();
    assert_eq!(rgb(&image_gray(&Sample::new(volume, data).unwrap(), 0.0, 1.0), 0, 0), [255, 0, 0], "the middle slice");
}

#[test]
fn differences_diverge_from_white() {
    let sample = |v: &[f64]| Sample::new(Shape::image(2, 2), v.to_vec()).unwrap();
    let picture = difference(&sample(&[1.0, 0.0, 3.0, 0.5]), &sample(&[1.0, 2.0, 1.0, 0.0]), 1.0).unwrap();
    assert_eq!(rgb(&picture, 0, 0), [247; 3]);
    assert_eq!(rgb(&picture, 1, 0), [33, 102, 172]);
    assert_eq!(rgb(&picture, 0, 1), [178, 24, 43]);
    assert_eq!(rgb(&picture, 1, 1), [239, 138, 98]);
    let other = Sample::new(Shape::image(4, 1), vec![0.0; 4]).unwrap();
    let message = difference(&sample(&[0.0; 4]), &other, 1.0).unwrap_err().to_string();
    assert!(message.contains("2x2") && message.contains("4x1"), "{message}");
}

#[test]
fn png_files_are_whole_and_failures_name_them() {
    let picture = dictionary_mosaic(&Dictionary::<f32>::random(5, Shape::image(3, 3), 2, 0).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.png");
    picture.save_png(&path).unwrap();
    assert_eq!(image::open(&path).unwrap().into_rgba8(), picture.pixels);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    let absent = folder.path().join("absent").join("d.png");
    assert!(picture.save_png(&absent).unwrap_err().to_string().contains("d.png"));
}
