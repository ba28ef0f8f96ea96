//! Samples that cannot be used are reported with their path, left out and counted; `--strict` makes them fatal.

use crate::common::{Bench, picture, pictures};

/// Five photos, of which the second is cut short and the fourth is text.
fn photos() -> Bench {
    let bench = Bench::new();
    pictures(&bench, "photos", 5, 1);
    let whole = bench.read("photos/2.png");
    bench.write("photos/2.png", &whole[..whole.len() / 2]);
    bench.write("photos/4.png", b"plain text");
    bench
}

const BOTH: [&str; 2] = ["skipped: photos/2.png: ", "skipped: photos/4.png: "];

#[test]
fn learning_goes_on_without_them() {
    let bench = photos();
    for init in ["random", "patches"] {
        let ran = bench
            .learn(&format!("photos --beta 0.3 --passes 3 --init {init} --log run.jsonl --out m.safetensors"))
            .ok();
        for part in BOTH {
            assert_eq!(ran.stderr.matches(part).count(), 1, "{}", ran.stderr);
        }
        assert!(ran.stdout.contains("6 visits to unusable samples"), "{}", ran.stdout);
        let last = bench.log("run.jsonl").pop().unwrap();
        assert_eq!((last["samples"].as_u64(), last["skipped"].as_u64()), (Some(9), Some(6)));
    }
    let ran = bench.learn("photos --beta-ratio 0.2 --batch 5 --json --test photos --out m.safetensors").ok();
    assert_eq!(ran.json()["skipped"], 2);
    assert_eq!(ran.json()["test"]["skipped"], 2);
    bench.learn("photos --strict --out n.safetensors").refused(1, &["photos/", ".png"]);
    bench.learn("photos/1.png --strict --test photos --out n.safetensors").refused(1, &["--test", "photos/4.png"]);
}

#[test]
fn coding_and_evaluating_go_on_without_them() {
    let bench = photos();
    bench.learn("photos --beta 0.3 --out m.safetensors").ok();
    let ran = bench.run("code m.safetensors photos --out codes --json").ok();
    assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(3), Some(2)));
    let mut names: Vec<_> = std::fs::read_dir(bench.path("codes")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["1.npz", "3.npz", "5.npz"]);
    let evaluated = bench.run("evaluate m.safetensors photos --json").ok();
    assert_eq!((evaluated.json()["samples"].as_u64(), evaluated.json()["skipped"].as_u64()), (Some(3), Some(2)));
    for part in BOTH {
        assert!(ran.stderr.contains(part) && evaluated.stderr.contains(part));
    }
    let good = bench.run("evaluate m.safetensors photos/1.png photos/3.png photos/5.png --json").ok().json();
    for number in ["objective", "l1", "psnr", "psnr_peak", "nonzeros", "gap"] {
        assert_eq!(good[number], evaluated.json()[number], "{number}");
    }
    bench.run("code m.safetensors photos --out none --strict").refused(1, &["photos/2.png"]);
    bench.run("evaluate m.safetensors photos --strict").refused(1, &["photos/2.png"]);
}

#[test]
fn somebody_must_be_left() {
    let bench = photos();
    bench.learn("photos --beta 0.3 --out m.safetensors").ok();
    let bad = "photos/2.png photos/4.png";
    bench.learn(&format!("{bad} --out n.safetensors")).refused(1, &["none of 2 samples", "photos/"]);
    bench.run(&format!("code m.safetensors {bad} --out codes")).refused(1, &["none of 2 samples", "photos/2.png"]);
    bench.run(&format!("evaluate m.safetensors {bad}")).refused(1, &["none of 2 samples", "photos/2.png"]);
}

/// A photo of another kind among the others does not fit the filters.
#[test]
fn other_channels_are_left_out() {
    let bench = Bench::new();
    pictures(&bench, "photos", 4, 1);
    image::DynamicImage::from(picture(20, 20, 9)).into_luma8().save(bench.path("photos/3.png")).unwrap();
    let ran = bench.learn("photos --preprocess lcn --beta 0.3 --out m.safetensors").ok();
    assert!(ran.stderr.contains("skipped: photos/3.png: sample: expected 3 channels"), "{}", ran.stderr);
}
