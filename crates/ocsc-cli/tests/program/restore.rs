//! `ocsc denoise` and `inpaint`, from files to files.

use crate::common::{Bench, write_npy};
use image::{DynamicImage, GenericImageView, ImageBuffer, ImageFormat, Luma, Rgb};
use ndarray::Array2;
use serde_json::Value;

/// Stripes that turn, in [0, 1].
fn stripes(y: u32, x: u32) -> f64 {
    let (y, x) = (f64::from(y), f64::from(x));
    let wave = if x > y { (0.7 * x + 0.1 * y).sin() } else { (0.5 * y).cos() };
    0.5 + 0.3 * wave.signum()
}

/// Numbers that look like noise, of standard deviation 1.
fn noise(i: u32) -> f64 {
    let uniform = |i: u32| {
        f64::from(i.wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519) >> 8) / f64::from(1 << 24)
    };
    (uniform(4 * i) + uniform(4 * i + 1) + uniform(4 * i + 2) + uniform(4 * i + 3) - 2.0) * 3.0_f64.sqrt()
}

fn value(y: u32, x: u32, sigma: f64) -> f64 {
    (stripes(y, x) + sigma * noise(y * 48 + x)).clamp(0.0, 1.0)
}

/// Writes clean/a.png and noisy/a.png, gray with 8 bits, and the same of b.tif, colour with 16 bits.
fn photos(bench: &Bench) {
    for (folder, sigma) in [("clean", 0.0), ("noisy", 0.1)] {
        std::fs::create_dir(bench.path(folder)).unwrap();
        let gray = |x, y| Luma([(value(y, x, sigma) * 255.0).round() as u8]);
        let gray: DynamicImage = ImageBuffer::from_fn(48, 40, gray).into();
        gray.save_with_format(bench.path(&format!("{folder}/a.png")), ImageFormat::Png).unwrap();
        let colour = |x, y| Rgb([1.0, 0.8, 0.5].map(|f| (f * value(y, x, sigma) * 65535.0).round() as u16));
        let colour: DynamicImage = ImageBuffer::from_fn(40, 36, colour).into();
        colour.save_with_format(bench.path(&format!("{folder}/b.tif")), ImageFormat::Tiff).unwrap();
    }
}

#[test]
fn photos_come_back_cleaner_with_their_name_size_depth_and_colour() {
    let bench = Bench::new();
    photos(&bench);
    let before = bench.read("noisy/a.png");
    let ran = bench.run("denoise noisy --sigma 25 --reference clean --json --out out").ok();
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    for image in result["images"].as_array().unwrap() {
        let [was, is] = ["psnr_before", "psnr"].map(|name| image[name].as_f64().unwrap());
        assert!(is > was + 3.0, "{image}");
        assert!(image["ssim"].as_f64().unwrap() > 0.5 && image["sigma"] == 25.0, "{image}");
    }
    assert_eq!(bench.names("out"), ["a.png", "b.tif"].map(str::to_owned).into());
    let open = |name: &str| image::open(bench.path(name)).unwrap();
    for name in ["a.png", "b.tif"] {
        let [given, made] = ["noisy", "out"].map(|folder| open(&format!("{folder}/{name}")));
        assert_eq!((given.dimensions(), given.color()), (made.dimensions(), made.color()));
    }
    assert_eq!(bench.read("noisy/a.png"), before);
    let lines = bench.run("denoise noisy/a.png --reference clean/a.png --out one").ok().stdout;
    assert!(lines.contains("sigma 2") && lines.contains("PSNR") && lines.contains("1 image in one"), "{lines}");
    let again = bench.run("denoise noisy --sigma 25 --skip-existing --out out").ok();
    assert!(again.stderr.contains("not made again") && again.stdout.contains("0 images"), "{}", again.stderr);
}

#[test]
fn what_is_missing_is_filled_in_and_the_rest_kept() {
    let bench = Bench::new();
    photos(&bench);
    let seen = |y: u32, x: u32| noise(7 * (y * 48 + x) + 5) > 0.0;
    let mask: DynamicImage = ImageBuffer::from_fn(48, 40, |x, y| Luma([if seen(y, x) { 255_u8 } else { 0 }])).into();
    mask.save(bench.path("mask.png")).unwrap();
    let ran = bench.run("inpaint clean/a.png --mask mask.png --reference clean/a.png --json --out out").ok();
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(result["psnr"].as_f64().unwrap() > 18.0, "{result}");
    let [given, made] = ["clean/a.png", "out/a.png"].map(|name| image::open(bench.path(name)).unwrap().to_luma8());
    for (x, y, pixel) in made.enumerate_pixels() {
        assert!(!seen(y, x) || given.get_pixel(x, y) == pixel, "{y} {x}");
    }
    let gap = |(y, x): (usize, usize)| if (y + x) % 5 == 0 { f32::NAN } else { stripes(y as u32, x as u32) as f32 };
    write_npy(&bench.path("gaps.npy"), &Array2::from_shape_fn((30, 30), gap));
    bench.run("inpaint gaps.npy --axes HW --out x").refused(2, &["--axes"]);
    bench.run("inpaint gaps.npy --nan-is-missing --out arrays").ok();
    assert_eq!(bench.names("arrays"), ["gaps.npy".to_owned()].into());
}

#[test]
fn restoration_refuses_what_it_cannot_do() {
    let bench = Bench::with_model();
    photos(&bench);
    bench.run("denoise noisy --out noisy").refused(1, &["--out noisy/a.png", "one of the images"]);
    bench.run("denoise noisy --sigma=-3 --out x").refused(2, &["--sigma", "at least 0"]);
    bench.run("inpaint noisy --out x").refused(2, &["--mask"]);
    bench.run("denoise noisy --reference clean/a.png --out x").refused(1, &["--reference clean/a.png", "called b"]);
    bench.run("denoise noisy/a.png --reference clean/b.tif --out x").refused(1, &["clean/b.tif", "40x48", "36x40"]);
    bench.run("denoise noisy/a.png --model m.safetensors --out with-model").ok();
    write_npy(&bench.path("tiny.npy"), &Array2::from_elem((5, 5), 0.5_f32));
    bench.run("denoise tiny.npy --sigma 0.1 --out x").refused(1, &["tiny.npy", "8x8", "5x5"]);
}
