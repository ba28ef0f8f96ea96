//! `ocsc denoise`, `inpaint`, `deblur`, `upscale` and `demosaic`, from files to files.

use crate::common::{Bench, write_npy};
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, GenericImageView, ImageBuffer, ImageDecoder, ImageEncoder, ImageFormat, Luma, Rgb};
use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
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
        assert_eq!(image["psnr_peak"], 1.0, "{image}");
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
    // What is there cannot be the result of the call.
    bench
        .run("upscale 2 noisy --skip-existing --out out")
        .refused(1, &["--skip-existing: out/a.png", "80x96 pixels, found 40x48"]);
}

#[test]
fn a_sigma_on_another_scale_is_noticed_and_a_right_one_is_not() {
    let bench = Bench::new();
    photos(&bench);
    let values = |scale: f64| Array2::from_shape_fn((40, 48), |(y, x)| (scale * value(y as u32, x as u32, 0.1)) as f32);
    write_npy(&bench.path("unit.npy"), &values(1.0));
    write_npy(&bench.path("bytes.npy"), &values(255.0));
    let denoise = |words: &str| bench.run(&format!("denoise {words} --no-learn-here --out out"));
    for right in
        ["noisy --sigma 25", "noisy --sigma 10", "unit.npy --sigma 0.1", "bytes.npy --sigma 25", "clean --sigma 25"]
    {
        let said = denoise(right).ok().stderr;
        assert!(!said.contains("warning"), "{right}: {said}");
    }
    let arrays = "of arrays it is in their own units";
    denoise("unit.npy --sigma 25")
        .refused(1, &["unit.npy: --sigma: expected at most 1.0000", "from 0.0000 to 1.0000, found 25", arrays]);
    denoise("noisy/a.png --sigma 300")
        .refused(1, &["noisy/a.png: --sigma", "255.0000, found 300", "of photos it is on the scale"]);
    bench.run("deblur unit.npy --kernel gaussian:1 --sigma 25 --out out").refused(1, &["unit.npy: --sigma", arrays]);
    let said = denoise("bytes.npy --sigma 0.1").ok().stderr;
    assert!(
        said.contains("warning: bytes.npy: --sigma 0.1 is far below the noise that the values seem to have, 2"),
        "{said}"
    );
    assert!(said.contains(arrays) && said.contains("without --sigma it is estimated"), "{said}");
    // Of many photos, one mistake.
    let said = denoise("noisy --sigma 0.1").ok().stderr;
    assert_eq!(said.matches("far below the noise").count(), 1, "{said}");
    assert!(said.contains("warning: --sigma is doubtful for 2 of 2 images"), "{said}");
    let quiet = values(1.0).map(|v| 0.02 * v) + Array2::from_shape_fn((40, 48), |(y, _)| y as f32 / 40.0);
    write_npy(&bench.path("quiet.npy"), &quiet);
    let said = denoise("quiet.npy --sigma 0.1").ok().stderr;
    assert!(
        said.contains("warning: quiet.npy: --sigma 0.1 is far above the noise that the values seem to have, 0.00"),
        "{said}"
    );
}

#[test]
fn a_bad_photo_does_not_end_the_job() {
    let bench = Bench::new();
    photos(&bench);
    let whole = bench.read("noisy/a.png");
    bench.write("noisy/aa.png", &whole[..whole.len() / 2]);
    bench.write("noisy/ab.png", b"plain text");
    let ran = bench.run("denoise noisy --sigma 25 --json --out out").passed_over();
    for name in ["aa", "ab"] {
        assert_eq!(ran.stderr.matches(&format!("skipped: noisy/{name}.png: ")).count(), 1, "{}", ran.stderr);
    }
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((result["images"].as_array().unwrap().len(), result["skipped"].as_u64()), (2, Some(2)));
    assert_eq!(bench.names("out"), ["a.png", "b.tif"].map(str::to_owned).into());
    let well = bench.run("denoise noisy --sigma 25 --skip-bad --out out").ok();
    assert!(well.stdout.contains("2 images in out, 2 images skipped"), "{}", well.stdout);
    assert!(well.stderr.contains("2 of 4 results are in out already: replaced"), "{}", well.stderr);
    bench.run("denoise noisy --sigma 25 --strict --out strict").failed(1, &["error: noisy/aa.png: "]);
    assert_eq!(bench.names("strict"), ["a.png".to_owned()].into());
    // Somebody must be left.
    bench.run("denoise noisy/aa.png noisy/ab.png --out none").refused(1, &["none of 2 images", "noisy/aa.png"]);
    bench.run("denoise noisy/ab.png --out none").refused(1, &["error: noisy/ab.png: "]);
}

/// Encodes a photo with a colour profile and notes of the camera.
fn encode(photo: &DynamicImage, mut encoder: impl ImageEncoder, profile: Vec<u8>) {
    encoder.set_icc_profile(profile).unwrap();
    encoder.set_exif_metadata(b"MM\0*\0\0\0\x08\0\0\0\0\0\0".to_vec()).unwrap();
    photo.write_with_encoder(encoder).unwrap();
}

/// Profiles make colours what they are meant to be; what cannot be kept is said.
#[test]
fn colour_profiles_are_kept_and_what_is_dropped_is_said() {
    let bench = Bench::new();
    photos(&bench);
    std::fs::create_dir(bench.path("in")).unwrap();
    let profile = |colours: &[u8; 4]| [&[0; 16][..], colours, &[7; 108]].concat();
    let colour = image::open(bench.path("noisy/b.tif")).unwrap().to_rgb8();
    let put = |name: &str, photo: DynamicImage, colours: &[u8; 4]| {
        let mut bytes = Vec::new();
        match name.ends_with("jpg") {
            true => encode(&photo, JpegEncoder::new(&mut bytes), profile(colours)),
            false => encode(&photo, PngEncoder::new(&mut bytes), profile(colours)),
        }
        bench.write(&format!("in/{name}"), &bytes);
    };
    put("a.jpg", colour.clone().into(), b"RGB ");
    put("b.png", DynamicImage::from(colour.clone()).into_rgba8().into(), b"RGB ");
    put("c.jpg", colour.into(), b"CMYK");
    let ran = bench.run("denoise in --sigma 25 --out out").ok();
    let kept = |name: &str| {
        let reader = image::ImageReader::open(bench.path(&format!("out/{name}"))).unwrap();
        reader.into_decoder().unwrap().icc_profile().unwrap()
    };
    assert_eq!([kept("a.jpg"), kept("b.png")], [Some(profile(b"RGB ")), Some(profile(b"RGB "))]);
    assert_eq!(kept("c.jpg"), None, "of inks, which the result is not in");
    for said in [
        "1 of 3 images has an alpha channel (opacity), in/b.png first: it is not",
        "3 of 3 images have notes of the camera",
    ] {
        assert_eq!(ran.stderr.matches(said).count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn photos_that_differ_in_their_ending_keep_their_names() {
    let bench = Bench::new();
    photos(&bench);
    for folder in ["clean", "noisy"] {
        let gray = image::open(bench.path(&format!("{folder}/a.png"))).unwrap();
        gray.fliph().save_with_format(bench.path(&format!("{folder}/a.bmp")), ImageFormat::Bmp).unwrap();
    }
    let ran = bench.run("denoise noisy --sigma 25 --reference clean --json --out out").ok();
    assert_eq!(bench.names("out"), ["a.bmp", "a.png", "b.tif"].map(str::to_owned).into());
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    for image in result["images"].as_array().unwrap() {
        assert!(image["psnr_before"].as_f64().unwrap() > 18.0, "compared with its own reference: {image}");
    }
    bench.run("denoise clean noisy --sigma 25 --out both").ok();
    assert_eq!(
        bench.names("both"),
        ["a-2.bmp", "a-2.png", "a.bmp", "a.png", "b-2.tif", "b.tif"].map(str::to_owned).into()
    );
}

/// What could not be made replaces nothing, and nothing else is said.
#[test]
fn a_mask_of_another_size_replaces_nothing() {
    let bench = Bench::new();
    photos(&bench);
    let mask = |width, height| {
        let mask = ImageBuffer::from_fn(width, height, |x, y| Luma([if (x + y) % 3 == 0 { 0_u8 } else { 255 }]));
        DynamicImage::from(mask).save(bench.path("mask.png")).unwrap();
    };
    mask(48, 40);
    bench.run("inpaint clean/a.png --mask mask.png --out out").ok();
    mask(20, 20);
    let ran = bench.run("inpaint clean/a.png --mask mask.png --out out").refused(1, &["clean/a.png", "20x20"]);
    assert!(!ran.stderr.contains("replaced"), "{}", ran.stderr);
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
    bench.run("inpaint gaps.npy --nan-is-missing --axes WHC --out x").refused(1, &["gaps.npy", "--axes WHC"]);
    bench.run("inpaint gaps.npy --nan-is-missing --out arrays").ok();
    assert_eq!(bench.names("arrays"), ["gaps.npy".to_owned()].into());
}

#[test]
fn blurred_small_and_speckled_photos_and_mosaics_become_photos() {
    let bench = Bench::new();
    photos(&bench);
    let clean = image::open(bench.path("clean/a.png")).unwrap();
    clean.blur(1.2).save(bench.path("blurred.png")).unwrap();
    let figures = |command: &str| {
        let ran = bench.run(&format!("{command} --json")).ok();
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        let [was, is] = ["psnr_before", "psnr"].map(|name| result["images"][0][name].as_f64());
        (was, is.unwrap())
    };
    let reference = "--reference clean/a.png";
    let (was, is) = figures(&format!("deblur blurred.png --kernel gaussian:1.2 --sigma 1 {reference} --out sharp"));
    assert!(is > was.unwrap() + 1.0, "{was:?} {is}");
    let kernel: DynamicImage = ImageBuffer::from_fn(3, 1, |_, _| Luma([255_u8])).into();
    kernel.save(bench.path("kernel.png")).unwrap();
    bench.run("deblur blurred.png --kernel kernel.png --out by-file").ok();
    let small = clean.resize_exact(24, 20, image::imageops::FilterType::CatmullRom);
    small.save(bench.path("a.png")).unwrap();
    let (was, is) = figures(&format!("upscale 2 a.png {reference} --out large"));
    assert!(was.is_none() && is > 15.0, "{is}");
    assert_eq!(image::open(bench.path("large/a.png")).unwrap().dimensions(), (48, 40));
    let speckled = |x, y| match (7 * y + 11 * x) % 10 {
        0 => Luma([0]),
        5 => Luma([255]),
        _ => clean.to_luma8()[(x, y)],
    };
    let speckled: DynamicImage = ImageBuffer::from_fn(48, 40, speckled).into();
    speckled.save(bench.path("speckled.png")).unwrap();
    let (was, is) = figures(&format!("denoise speckled.png --loss l1 {reference} --report page.html --out clear"));
    assert!(is > was.unwrap() + 5.0, "{was:?} {is}");
    let page = String::from_utf8(bench.read("page.html")).unwrap();
    for words in ["before", "after", "PSNR", "Scale of the difference", "ocsc denoise speckled.png"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!bench.path("page-figures").exists());
    bench.run("denoise noisy/a.png --noise poisson --out photons").ok();
    bench.run("denoise noisy/a.png --noise poisson:30 --out photons-known").ok();
    let ran = bench.run("demosaic clean/a.png --pattern GRBG --out colour").ok();
    assert!(ran.stdout.contains("1 image in colour"), "{}", ran.stdout);
    assert_eq!(image::open(bench.path("colour/a.png")).unwrap().color(), image::ColorType::Rgb8);
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
    bench.run("deblur noisy --kernel gaussian:0 --out x").refused(1, &["--kernel gaussian:0", "above 0"]);
    bench.run("deblur noisy --kernel none.png --out x").refused(1, &["--kernel none.png"]);
    bench.run("deblur noisy/a.png --kernel clean/a.png --out x").refused(1, &["odd sides", "40x48"]);
    bench.run("upscale 9 noisy --out x").refused(2, &["FACTOR", "2..=4"]);
    bench.run("demosaic noisy/a.png --pattern RGB --out x").refused(2, &["--pattern", "RGGB"]);
    bench.run("demosaic noisy/b.tif --pattern RGGB --out x").refused(1, &["noisy/b.tif", "one channel"]);
    bench.run("denoise noisy --noise poisson:0 --out x").refused(2, &["--noise", "above 0"]);
    bench.run("denoise noisy --noise poisson --sigma 25 --out x").refused(1, &["--sigma", "poisson:PHOTONS"]);
    bench.run("denoise noisy/a.png --report noisy/a.png --out x").refused(1, &["--report noisy/a.png"]);
    write_npy(&bench.path("tiny.npy"), &Array2::from_elem((5, 5), 0.5_f32));
    bench.run("denoise tiny.npy --sigma 0.1 --out x").refused(1, &["tiny.npy", "8x8", "5x5"]);
}

/// Recordings come back as WAV of the same rate and channels, arrays of signals as arrays.
#[test]
fn signals_come_back_cleaner() {
    let bench = Bench::new();
    let clean = |t: u32| 0.5 * (f64::from(t) * 0.05).sin() * (f64::from(t) * 0.004).cos().signum();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let noise: Vec<f64> = (0..6000).map(|_| StandardNormal.sample(&mut rng)).collect();
    let noise = |i: u32| noise[i as usize];
    let spec = hound::WavSpec {
        channels: 2,
        sample_rate: 8000,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    for (folder, sigma) in [("clean", 0.0), ("noisy", 0.1)] {
        std::fs::create_dir(bench.path(folder)).unwrap();
        let mut writer = hound::WavWriter::create(bench.path(&format!("{folder}/a.wav")), spec).unwrap();
        for t in 0..3000 {
            for c in 0..2 {
                writer.write_sample((clean(t + 40 * c) + sigma * noise(2 * t + c)) as f32).unwrap();
            }
        }
        writer.finalize().unwrap();
        let line: Vec<f32> = (0..3000).map(|t| (clean(t) + sigma * noise(t)) as f32).collect();
        write_npy(&bench.path(&format!("{folder}/b.npy")), &ndarray::Array1::from(line));
    }
    for (name, made) in [("a.wav", "a.wav"), ("b.npy", "b.npy")] {
        let words = format!("denoise noisy/{name} --reference clean/{name} --json --out out");
        let result: Value = serde_json::from_str(&bench.run(&words).ok().stdout).unwrap();
        let image = &result["images"][0];
        let [was, is] = ["psnr_before", "psnr"].map(|name| image[name].as_f64().unwrap());
        assert!(is > was + 6.0, "{image}");
        assert!((image["sigma"].as_f64().unwrap() - 0.1).abs() < 0.02, "{image}");
        let peak = image["psnr_peak"].as_f64().unwrap();
        assert!((peak - 1.0).abs() < 0.01 && peak != 1.0, "the range of the clean one: {image}");
        let lines = bench.run(&words.replace(" --json", "")).ok().stdout;
        assert!(lines.contains(&format!(" (peak {peak:.4})")), "{lines}");
        assert!(image["ssim"].is_null() && bench.path(&format!("out/{made}")).exists());
    }
    let read = hound::WavReader::open(bench.path("out/a.wav")).unwrap();
    assert_eq!((read.spec().channels, read.spec().sample_rate, read.duration()), (2, 8000, 3000));
    assert_eq!(crate::common::read_npy::<f32>(&bench.path("out/b.npy")).shape(), [3000]);
    bench.run("denoise noisy/b.npy --report r.html --out x").failed(1, &["--report", "found a signal in noisy/b.npy"]);
    for command in ["upscale 2", "deblur --kernel gaussian:1", "inpaint --nan-is-missing"] {
        bench
            .run(&format!("{command} noisy/b.npy --out x"))
            .failed(1, &["noisy/b.npy", "an image", "a signal", "denoise"]);
    }
    write_npy(&bench.path("short.npy"), &ndarray::Array1::from_elem(50, 0.5_f32));
    bench.run("denoise short.npy --sigma 0.1 --out x").failed(1, &["short.npy", "signal", "at least 96 values", "50"]);
    write_npy(&bench.path("gap.npy"), &ndarray::Array1::from_elem(500, f32::NAN));
    bench.run("denoise gap.npy --out x").failed(1, &["gap.npy", "finite", "inpaint"]);
    assert!(bench.run("denoise noisy/b.npy --out x").ok().stdout.contains("1 signal in x"));
}
