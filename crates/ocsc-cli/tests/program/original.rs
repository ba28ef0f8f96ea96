//! `--preprocess` and the way back from it: reconstructions and PSNR in the units of the files.

use crate::common::{Bench, assert_close, code, model, noise, picture, read_floats, write_npy};
use ndarray::{Array2, Array3, Ix1, Ix3};

/// Colour photos of two sizes in `photos`, and a model learned from them with these steps.
fn with_photos(steps: &str) -> Bench {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("photos")).unwrap();
    for (name, width, seed) in [("cat", 24, 1), ("dog", 31, 2)] {
        picture(width, 20, seed).save(bench.path(&format!("photos/{name}.png"))).unwrap();
    }
    bench.learn(&format!("photos --preprocess {steps} --beta 0.02 --passes 3 --out m.safetensors")).ok();
    bench
}

/// The pixels of a photo from 0 to 1, (3, H, W).
fn pixels(bench: &Bench, name: &str) -> Array3<f64> {
    let photo = image::open(bench.path(&format!("photos/{name}.png"))).unwrap().to_rgb8();
    let (width, height) = photo.dimensions();
    Array3::from_shape_fn((3, height as usize, width as usize), |(c, y, x)| {
        f64::from(photo.get_pixel(x as u32, y as u32)[c]) / 255.0
    })
}

fn decibels(peak: f64, errors: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = errors.len() as f64;
    10.0 * (peak * peak / (errors.map(|e| e * e).sum::<f64>() / n)).log10()
}

#[test]
fn colour_photos_come_back_from_the_lowpass_split() {
    let bench = with_photos("lowpass=3");
    assert_eq!(model(&bench.path("m.safetensors")).config["preprocess"], serde_json::json!(["lowpass=3"]));
    bench.run("code m.safetensors photos --tol 0.003 --out codes").ok();
    bench.run("reconstruct m.safetensors codes --out prepared").ok();
    bench.run("reconstruct m.safetensors codes --out back --original photos").ok();
    let evaluated = bench.run("evaluate m.safetensors photos --tol 0.003 --json").ok().json();
    let mut psnr = 0.0;
    for name in ["cat", "dog"] {
        let original = pixels(&bench, name);
        let read = |folder: &str| {
            let array = read_floats(&bench.path(&format!("{folder}/{name}.npy")));
            array.into_dimensionality::<Ix3>().unwrap()
        };
        let (back, prepared) = (read("back"), read("prepared"));
        // The smooth part, which holds the brightness, is in the one and not in the other.
        assert!(back.mean().unwrap() > 0.3 && prepared.mean().unwrap().abs() < 0.02);
        let found = decibels(1.0, (&back - &original).into_iter().collect::<Vec<_>>().into_iter());
        assert!(found > 20.0, "{found} dB");
        psnr += found / 2.0;
        let drawn = image::open(bench.path(&format!("back/{name}.png"))).unwrap().to_rgb8();
        for (x, y, pixel) in drawn.enumerate_pixels() {
            for c in 0..3 {
                let level = (back[[c, y as usize, x as usize]] * 255.0).round().clamp(0.0, 255.0);
                assert!((level - f64::from(pixel[c])).abs() <= 1.0);
            }
        }
    }
    assert_close(evaluated["psnr_original"].as_f64().unwrap(), psnr, 1e-4);
    assert_eq!(evaluated["psnr_original_peak"], 1.0);
    let table = bench.run("evaluate m.safetensors photos").ok().stdout;
    assert!(table.contains("peak 1.0000: the full scale before preprocessing"), "{table}");
}

#[test]
fn signals_come_back_from_whitening() {
    let bench = Bench::new();
    let mut next = noise(5);
    let mut signals = Array2::<f64>::zeros((3, 300));
    for mut signal in signals.outer_iter_mut() {
        for t in 1..signal.len() {
            signal[t] = 0.98 * signal[t - 1] + 10.0 * next();
        }
    }
    write_npy(&bench.path("lfp.npy"), &signals);
    bench.learn("lfp.npy --axes NW --preprocess whiten=2,scale --beta 0.1 --dtype f64 --out m.safetensors").ok();
    bench.run("code m.safetensors lfp.npy --axes NW --tol 1e-3 --out codes").ok();
    bench.run("reconstruct m.safetensors codes --out back --format npy --original lfp.npy --axes NW").ok();
    let evaluated = bench.run("evaluate m.safetensors lfp.npy --axes NW --tol 1e-3 --json").ok().json();
    let (low, high) = signals.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let mut psnr = 0.0;
    for (i, signal) in signals.outer_iter().enumerate() {
        let back = read_floats(&bench.path(&format!("back/lfp-000{i}.npy"))).into_dimensionality::<Ix1>().unwrap();
        psnr += decibels(high - low, (&back - &signal).into_iter().collect::<Vec<_>>().into_iter()) / 3.0;
    }
    assert_close(evaluated["psnr_original"].as_f64().unwrap(), psnr, 1e-9);
    assert_close(evaluated["psnr_original_peak"].as_f64().unwrap(), high - low, 1e-12);
}

#[test]
fn a_taper_does_not_come_back_and_says_so() {
    let bench = with_photos("gray,lcn,taper");
    let evaluated = bench.run("evaluate m.safetensors photos --json").ok().json();
    assert!(evaluated["psnr_original"].is_null() && evaluated["psnr_original_peak"].is_null());
    assert!(evaluated["psnr"].as_f64().unwrap() > 0.0);
    let table = bench.run("evaluate m.safetensors photos").ok().stdout;
    assert!(table.contains("taper cannot be undone"), "{table}");
    bench.run("code m.safetensors photos --out codes").ok();
    let ran = bench.run("reconstruct m.safetensors codes --out back --original photos").ok();
    assert!(ran.stderr.contains("stays blended"), "{}", ran.stderr);
    // What was prepared without a taper has a way back, to the gray values.
    bench.run("code m.safetensors photos --out lcn --preprocess gray,lcn").ok();
    let ran = bench.run("reconstruct m.safetensors lcn --out gray --original photos --preprocess gray,lcn").ok();
    assert!(!ran.stderr.contains("blended"), "{}", ran.stderr);
    let back = read_floats(&bench.path("gray/cat.npy"));
    assert_eq!(back.shape(), [20, 24]);
    assert!((back.mean().unwrap() - pixels(&bench, "cat").mean().unwrap()).abs() < 0.05);
}

#[test]
fn originals_that_do_not_belong_to_the_codes_are_refused() {
    let bench = with_photos("mean");
    bench.run("code m.safetensors photos --out codes").ok();
    let with = |data: &str| bench.run(&format!("reconstruct m.safetensors codes --out back --original {data}"));
    with("photos/dog.png").refused(1, &["codes/cat.npz", "--original", "called cat", "dog"]);
    std::fs::create_dir_all(bench.path("other")).unwrap();
    for name in ["cat", "dog"] {
        std::fs::copy(bench.path("photos/dog.png"), bench.path(&format!("other/{name}.png"))).unwrap();
    }
    with("other").refused(1, &["codes/cat.npz", "other/cat.png", "20x31", "20x24"]);
    with("absent").refused(1, &["--original", "absent"]);
    bench.run("reconstruct m.safetensors codes --out back --axes NW").refused(2, &["--original"]);
    // A code of one photo needs the original of that one only, and any order will do.
    with("photos/dog.png photos/cat.png").ok();
}

#[test]
fn info_says_the_steps_in_words() {
    let bench = with_photos("gray,lowpass,scale=0.5");
    let ran = bench.run("info m.safetensors").ok();
    for part in ["gray,lowpass=5,scale=0.5", "low-pass part of lambda 5", "divided by 0.5"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    let json = bench.run("info m.safetensors --json").ok().json();
    assert_eq!(json["config"]["preprocess"], serde_json::json!(["gray", "lowpass=5", "scale=0.5"]));
    let help = bench.run("learn --help").ok().stdout;
    for step in ["gray", "mean", "scale", "lowpass", "whiten", "lcn", "taper"] {
        assert!(help.contains(step), "{help}");
    }
}

#[test]
fn gray_filters_on_every_channel_bring_colours_back() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("photos")).unwrap();
    for (name, width, seed) in [("cat", 24, 1), ("dog", 31, 2)] {
        picture(width, 20, seed).save(bench.path(&format!("photos/{name}.png"))).unwrap();
    }
    // A gray one among them: it has one channel.
    image::open(bench.path("photos/cat.png")).unwrap().to_luma8().save(bench.path("photos/gray.png")).unwrap();
    for joint in ["", " --joint"] {
        bench.learn(&format!("photos --per-channel{joint} --beta 0.1 --passes 3 --out m.safetensors --force")).ok();
        let saved = model(&bench.path("m.safetensors"));
        assert_eq!(saved.config["preprocess"], serde_json::json!(["lowpass=5", "scale", "per-channel"]));
        assert_eq!(saved.config["active_set"]["joint"], !joint.is_empty());
        assert_eq!(saved.dictionary.dim().1, 1, "gray filters");
        let _ = std::fs::remove_dir_all(bench.path("codes"));
        bench.run("code m.safetensors photos --tol 0.003 --out codes").ok();
        bench.run("verify m.safetensors photos codes").ok();
        bench.run("reconstruct m.safetensors codes --out back --original photos").ok();
        bench.run("reconstruct m.safetensors codes --out prepared").ok();
        let filters = saved.dictionary.dim();
        for (name, channels) in [("cat", 3), ("dog", 3), ("gray", 1)] {
            let code = code(&bench.path(&format!("codes/{name}.npz")));
            assert_eq!(code.shape[..2], [filters.0 as i64, channels], "filters, channels, height, width");
            assert_eq!((code.shape.len(), code.position.ncols()), (4, 3));
        }
        for name in ["cat", "dog"] {
            let original = pixels(&bench, name);
            let back = read_floats(&bench.path(&format!("back/{name}.npy"))).into_dimensionality::<Ix3>().unwrap();
            let found = decibels(1.0, (&back - &original).into_iter().collect::<Vec<_>>().into_iter());
            assert!(found > 25.0, "{name}: {found} dB");
            let prepared = read_floats(&bench.path(&format!("prepared/{name}.npy")));
            assert_eq!(prepared.shape(), original.shape());
            assert!(bench.path(&format!("back/{name}.png")).exists());
        }
        let evaluated = bench.run("evaluate m.safetensors photos --json").ok().json();
        assert!(evaluated["psnr_original"].as_f64().is_some_and(|psnr| psnr > 25.0), "{evaluated}");
    }
    bench.learn("photos --joint --beta 0.1 --out other.safetensors").refused(1, &["--joint", "the step per-channel"]);
    bench
        .learn("photos --per-channel --joint --penalty mcp:3 --beta 0.1 --out other.safetensors")
        .refused(1, &["--penalty", "its default beside joint channels"]);
}
