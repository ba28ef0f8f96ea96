//! Which samples a call uses, and what of them: folders, patterns, lists, splits, crops, small samples.

use crate::common::{Bench, dictionary_bytes, picture, pictures, stack, write_npy};

/// Pictures `set/a/1.png` to `4.png` and `set/b/1.png` to `4.png`.
fn set() -> Bench {
    let bench = Bench::new();
    pictures(&bench, "set/a", 4, 1);
    pictures(&bench, "set/b", 4, 50);
    bench
}

#[test]
fn subfolders_patterns_and_lists_name_the_same_samples() {
    let bench = set();
    bench.write("all.txt", b"set/a\n# and\nset/b\n");
    let learned = |words: &[&str]| {
        let settings = ["--filters", "4", "--size", "5", "--out", "m.safetensors", "--json"];
        let ran = bench.run_words(&[&["learn"], words, &settings].concat()).ok();
        assert_eq!(ran.json()["samples"], 8, "{words:?}");
        bench.read("m.safetensors")
    };
    let whole = learned(&["set", "--recursive"]);
    for words in [&["set/a", "set/b"][..], &["set/**/*.png"], &["set/?/*.png"], &["@all.txt"]] {
        assert!(learned(words) == whole, "{words:?}");
    }
    bench.learn("set --out m.safetensors").refused(1, &["set: no images", "--recursive"]);
    bench.run_words(&["learn", "set/*.jpg", "--out", "m"]).refused(1, &["set/*.jpg", "no file matches"]);
    bench.write("bad.txt", b"set/a\nset/c\n");
    bench.learn("@bad.txt --out m.safetensors").refused(1, &["@bad.txt: line 2: set/c: cannot be read"]);
    bench.learn("@all.txt --out all.txt").refused(1, &["--out all.txt", "one of the data"]);
}

#[test]
fn a_fraction_is_held_out_and_tested_on() {
    let bench = set();
    let call = "set --recursive --test-fraction 0.25 --passes 2 --seed 3 --json";
    let ran = bench.learn(&format!("{call} --out m.safetensors")).ok();
    assert!(ran.stderr.contains("6 samples to learn from, 2 held out"), "{}", ran.stderr);
    let result = ran.json();
    assert_eq!((&result["samples"], &result["test"]["samples"]), (&12.into(), &2.into()));
    let same = bench.learn(&format!("{call} --out same.safetensors")).ok().json();
    assert_eq!(same["test"]["objective"], result["test"]["objective"]);
    assert!(bench.read("m.safetensors") == bench.read("same.safetensors"));
    // Learning from fewer is tested on the same samples.
    let fewer = bench.learn(&format!("{call} --subset 2 --out fewer.safetensors")).ok().json();
    assert_eq!((&fewer["samples"], &fewer["test"]["samples"]), (&4.into(), &2.into()));
    assert_eq!(fewer["test"]["psnr_peak"], result["test"]["psnr_peak"]);
    for other in ["--test set/a", "--test-list l.txt", "--split s.mat"] {
        bench.learn(&format!("{call} {other} --out x")).refused(2, &["cannot be used with", "--test-fraction"]);
    }
    for fraction in ["0", "1", "-0.1", "nan", "x"] {
        let option = format!("--test-fraction={fraction}");
        bench.run_words(&["learn", "set/a", "--out", "x", &option]).refused(2, &["between 0 and 1"]);
    }
}

#[test]
fn a_list_is_held_out() {
    let bench = set();
    bench.write("test.txt", b"a/1.png\nset/b/4.png\n");
    let call = "set --recursive --out m.safetensors --json";
    let held = bench.learn(&format!("{call} --test-list test.txt --test-every 3")).ok().json();
    assert_eq!((&held["samples"], &held["test"]["samples"]), (&6.into(), &2.into()));
    let learned = bench.read("m.safetensors");
    let rest = "set/a/2.png set/a/3.png set/a/4.png set/b/1.png set/b/2.png set/b/3.png";
    let named = bench.learn(&format!("{rest} --test set/a/1.png --test set/b/4.png --out m.safetensors --json")).ok();
    assert!(bench.read("m.safetensors") == learned);
    assert_eq!(named.json()["test"]["objective"], held["test"]["objective"]);
    bench.write("test.txt", b"a/1.png\na/9.png\n");
    let parts = ["--test-list test.txt", "line 2: a/9.png", "no sample"];
    bench.learn(&format!("{call} --test-list test.txt")).refused(1, &parts);
}

#[test]
fn crops_are_drawn_anew_in_every_pass_and_resume_at_the_same_bytes() {
    let bench = set();
    let data = "set --recursive --resize 18 --crop 12 --subset 4 --test-fraction 0.25";
    let settings = "--checkpoint-every 4 --seed 5 --quiet";
    let whole = bench.learn(&format!("{data} --passes 3 {settings} --json --out whole.safetensors")).ok().json();
    assert_eq!(whole["samples"], 12);
    bench.learn(&format!("{data} --passes 1 {settings} --out parts.safetensors")).ok();
    bench.run(&format!("learn {data} --resume parts.safetensors --passes 3")).ok();
    let [whole, parts] = ["whole", "parts"].map(|name| bench.path(&format!("{name}.safetensors")));
    assert!(dictionary_bytes(&whole) == dictionary_bytes(&parts));
    let other = format!("{data} --passes 3 --checkpoint-every 4 --seed 6 --out other.safetensors");
    bench.learn(&other).ok();
    assert!(dictionary_bytes(&whole) != dictionary_bytes(&bench.path("other.safetensors")));
    // A crop of the whole changes nothing, in every pass.
    bench.learn("set/a --passes 2 --out a.safetensors").ok();
    bench.learn("set/a --passes 2 --crop 20 --out b.safetensors").ok();
    assert!(bench.read("a.safetensors") == bench.read("b.safetensors"));
}

#[test]
fn an_unfinished_run_says_how_to_go_on() {
    let bench = set();
    let data = "set --recursive --crop 16x18 --limit 5 --skip-small --test-fraction 0.25";
    let ran = bench.learn(&format!("{data} --time-limit 1e-9 --out m.safetensors")).ok();
    let hint = ran.stderr.lines().find_map(|line| line.strip_prefix("to go on: ocsc ")).expect(&ran.stderr).to_owned();
    for option in ["--recursive", "--crop 16x18", "--limit 5", "--skip-small", "--test-fraction 0.25", "--resume"] {
        assert!(hint.contains(option), "{hint}");
    }
    // Without the options there are other samples.
    bench.run("learn set --recursive --resume m.safetensors").refused(1, &["the 5 samples", "found 8"]);
    assert_eq!(bench.run(&format!("{hint} --json")).ok().json()["samples"], 5);
}

#[test]
fn coding_cuts_the_middle_and_draws_subsets() {
    let bench = Bench::with_model();
    let images = stack(2, 16, 16, 99);
    write_npy(&bench.path("middle.npy"), &images.slice(ndarray::s![.., 3..13, 4..12]));
    let objective = |words: &str| {
        let result = bench.run(&format!("evaluate m.safetensors {words} --json")).ok().json();
        (result["samples"].clone(), result["objective"].clone())
    };
    assert_eq!(objective("test.npy --crop 10x8"), objective("middle.npy"));
    bench.run("code m.safetensors test.npy --crop 10x8 --out codes").ok();
    assert_eq!(crate::common::code(&bench.path("codes/test-0001.npz")).shape, [4, 10, 8]);
    assert_eq!(objective("train.npy --subset 2").0, 2);
    assert_eq!(objective("train.npy --subset 2"), objective("train.npy --subset 2"));
    assert_eq!(objective("train.npy --subset 9"), objective("train.npy"));
    bench.run("evaluate m.safetensors test.npy --crop 2x2x2").refused(1, &["--crop", "expected 2 lengths", "found 3"]);
    bench.run("evaluate m.safetensors test.npy --crop 0").refused(2, &["--crop", "at least 1"]);
    bench.run("evaluate m.safetensors test.npy --resize 0").refused(2, &["--resize", "480x640"]);
    bench.run("evaluate m.safetensors test.npy --crop 4").refused(1, &["test.npy[0]", "5x5", "4x4", "--skip-small"]);
}

#[test]
fn a_crop_that_cuts_nothing_is_said() {
    let bench = Bench::with_model();
    let said = "--crop 500 cuts nothing: the largest sample is of 16x16";
    for command in
        ["learn train.npy --size 5 --filters 4 --beta 0.1 --out n.safetensors", "evaluate m.safetensors train.npy"]
    {
        let ran = bench.run(&format!("{command} --crop 500")).ok();
        assert_eq!(ran.stderr.matches(said).count(), 1, "{}", ran.stderr);
        for crop in ["16", "12", "500x12"] {
            let ran = bench.run(&format!("{command} --crop {crop}")).ok();
            assert!(!ran.stderr.contains("cuts nothing"), "{}", ran.stderr);
        }
    }
}

#[test]
fn small_samples_are_refused_or_passed_over() {
    let bench = Bench::new();
    pictures(&bench, "photos", 3, 1);
    picture(4, 30, 9).save(bench.path("photos/2.png")).unwrap();
    let small = ["photos/2.png", "5x5", "30x4", "--skip-small"];
    bench.learn("photos --strict --out m.safetensors").refused(1, &small);
    bench.learn("photos/2.png --out m.safetensors").refused(1, &small);
    assert!(!bench.path("m.safetensors").exists());
    // One small icon is one bad sample, as a damaged file is.
    let skipped = "skipped: photos/2.png: expected at least the filters' size 5x5 on every axis, found 30x4";
    for start in ["random", "patches"] {
        let ran = bench.learn(&format!("photos --init {start} --passes 2 --json --out m.safetensors")).passed_over();
        assert_eq!(ran.stderr.matches(skipped).count(), 1, "{}", ran.stderr);
        assert_eq!(ran.json()["skipped"], 1, "{}", ran.stdout);
    }
    let ran = bench.learn("photos --skip-small --out m.safetensors --json").ok();
    let said = "1 of 3 samples is smaller than the filters (5x5) and passed over, photos/2.png first";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(ran.json()["samples"], 2);
    // The limit counts those that are left.
    assert_eq!(bench.learn("photos --skip-small --limit 2 --out m.safetensors --json").ok().json()["samples"], 2);
    bench
        .learn("photos/1.png --test photos --strict --out m.safetensors")
        .refused(1, &["--test", "photos/2.png", "--skip-small"]);
    let tested = bench.learn("photos/1.png --test photos --out m.safetensors --json").passed_over();
    assert_eq!(tested.json()["test"]["skipped"], 1);
    let tested = bench.learn("photos/1.png --test photos --skip-small --out m.safetensors --json").ok();
    assert_eq!(tested.json()["test"]["samples"], 2);
    for command in ["evaluate m.safetensors photos", "code m.safetensors photos --out codes"] {
        bench.run(&format!("{command} --strict")).refused(1, &small);
        assert!(!bench.path("codes").exists());
        let ran = bench.run(&format!("{command} --json")).passed_over();
        assert!(ran.stderr.contains(skipped), "{}", ran.stderr);
        assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(2), Some(1)));
        let ran = bench.run(&format!("{command} --skip-small --json")).ok();
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert_eq!(ran.json()["samples"], 2);
    }
    bench.learn("photos/2.png --skip-small --out x").refused(1, &["photos/2.png", "5x5", "found none"]);
    // Filters from a file have a size of their own.
    write_npy(&bench.path("large.npy"), &stack(3, 20, 4, 1));
    let ran = bench.learn("photos --preprocess gray --skip-small --init large.npy --json --out m.safetensors").ok();
    assert_eq!(ran.json()["samples"], 3);
}

#[test]
fn a_stack_of_pages_is_images_or_a_volume() {
    let bench = Bench::new();
    let images = stack(6, 12, 12, 1);
    let mut encoder = tiff::encoder::TiffEncoder::new(std::fs::File::create(bench.path("stack.tif")).unwrap()).unwrap();
    for page in images.outer_iter() {
        let values: Vec<f32> = page.iter().copied().collect();
        encoder.write_image::<tiff::encoder::colortype::Gray32Float>(12, 12, &values).unwrap();
    }
    drop(encoder);
    write_npy(&bench.path("stack.npy"), &images);
    let learned = |words: &str| {
        let settings = "--filters 3 --size 3 --beta 0.1 --preprocess none --boundary circular --out m.safetensors";
        bench.run(&format!("learn {words} {settings}")).ok();
        bench.read("m.safetensors")
    };
    assert!(learned("stack.tif") == learned("stack.npy"));
    assert!(learned("stack.tif --axes DHW") == learned("stack.npy --axes DHW"));
    bench.run("code m.safetensors stack.tif --axes DHW --out codes").ok();
    assert_eq!(crate::common::code(&bench.path("codes/stack.npz")).shape, [3, 6, 12, 12]);
}
