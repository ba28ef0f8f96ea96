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
            .passed_over();
        assert!(ran.stderr.contains("unusable: 2 samples;"), "{}", ran.stderr);
        for part in BOTH {
            assert_eq!(ran.stderr.matches(part).count(), 1, "{}", ran.stderr);
        }
        assert!(ran.stdout.contains("2 unusable samples"), "{}", ran.stdout);
        let last = bench.log("run.jsonl").pop().unwrap();
        assert_eq!(["samples", "skipped", "unusable"].map(|name| last[name].as_u64()), [9, 6, 2].map(Some));
    }
    let ran = bench.learn("photos --beta-ratio 0.2 --batch 5 --json --test photos --out m.safetensors").passed_over();
    assert_eq!(ran.json()["skipped"], 2);
    assert_eq!(ran.json()["test"]["skipped"], 2);
    let tested = bench.learn("photos/1.png --test photos --out m.safetensors").passed_over();
    assert!(tested.stderr.contains("unusable: 2 test samples"), "{}", tested.stderr);
    let well = bench.learn("photos --beta 0.3 --skip-bad --test photos --json --out m.safetensors").ok();
    assert_eq!((well.json()["skipped"].as_u64(), well.json()["test"]["skipped"].as_u64()), (Some(2), Some(2)));
    bench.learn("photos --skip-bad --strict --out n.safetensors").refused(2, &["--strict", "--skip-bad"]);
    bench.learn("photos --strict --out n.safetensors").refused(1, &["photos/", ".png"]);
    bench.learn("photos/1.png --strict --test photos --out n.safetensors").refused(1, &["--test", "photos/4.png"]);
}

#[test]
fn a_bad_photo_counts_once_whatever_pieces_it_is_cut_to() {
    let bench = photos();
    let ran = bench.learn("photos --beta 0.3 --passes 2 --tile 8 --log run.jsonl --out m.safetensors").passed_over();
    assert!(ran.stderr.contains("unusable: 2 samples;"), "{}", ran.stderr);
    for part in BOTH {
        assert_eq!(ran.stderr.matches(part).count(), 1, "{}", ran.stderr);
    }
    // One of them has a header that tells its size, and so has pieces.
    assert!(bench.log("run.jsonl").pop().unwrap()["skipped"].as_u64() > Some(2 * 2));
}

#[test]
fn a_bad_photo_counts_once_in_a_run_that_was_resumed() {
    let bench = photos();
    bench.learn("photos --beta 0.3 --passes 1 --checkpoint-every 1 --out part.safetensors").passed_over();
    let on = bench.run("learn photos --resume part.safetensors --passes 3 --json --out on.safetensors").passed_over();
    assert_eq!(on.json()["skipped"], 2, "{}", on.stdout);
    assert!(on.stderr.contains("unusable: 2 samples;"), "{}", on.stderr);
}

#[test]
fn coding_and_evaluating_go_on_without_them() {
    let bench = photos();
    bench.learn("photos --beta 0.3 --out m.safetensors").passed_over();
    let ran = bench.run("code m.safetensors photos --out codes --json").passed_over();
    bench.run("code m.safetensors photos --out codes").passed_over();
    bench.run("code m.safetensors photos --skip-bad --out codes").ok();
    assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(3), Some(2)));
    assert!(bench.names("codes").iter().eq(["1.npz", "3.npz", "5.npz"]));
    let evaluated = bench.run("evaluate m.safetensors photos --json").passed_over();
    bench.run("evaluate m.safetensors photos").passed_over();
    bench.run("evaluate m.safetensors photos --skip-bad").ok();
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
    bench.learn("photos --beta 0.3 --out m.safetensors").passed_over();
    let bad = "photos/2.png photos/4.png";
    bench.learn(&format!("{bad} --out n.safetensors")).refused(1, &["none of 2 samples", "photos/"]);
    bench.run(&format!("code m.safetensors {bad} --out codes")).refused(1, &["none of 2 samples", "photos/2.png"]);
    bench.run(&format!("evaluate m.safetensors {bad}")).refused(1, &["none of 2 samples", "photos/2.png"]);
}

/// Errors that say their cause themselves are not followed by it once more; and one sample is no samples.
#[test]
fn reasons_are_told_once() {
    let bench = Bench::new();
    bench.write("short.pgm", b"P5 9 9 junk");
    let ran =
        bench.learn("short.pgm --quiet --out n.safetensors").refused(1, &["none of 1 sample can", "short.pgm", "Pnm"]);
    assert_eq!(ran.stderr.matches("Non-ASCII").count(), 1, "{}", ran.stderr);
    for words in ["info no.safetensors", "report no.jsonl", "evaluate no.safetensors short.pgm"] {
        let ran = bench.run(words).refused(1, &["no."]);
        assert_eq!(ran.stderr.matches("os error").count(), 1, "{}", ran.stderr);
    }
}

/// The channels of most photos are those of the set, whichever comes first; a gray one is repeated over them.
#[test]
fn a_gray_photo_among_colours_does_not_decide() {
    let bench = Bench::new();
    pictures(&bench, "photos", 6, 1);
    image::DynamicImage::from(picture(20, 20, 9)).into_luma8().save(bench.path("photos/3.png")).unwrap();
    for seed in 0..6 {
        let ran =
            bench.learn(&format!("photos --preprocess lcn --beta 0.3 --seed {seed} --json --out m.safetensors")).ok();
        assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(6), Some(0)), "{seed}");
        let said = "1 of 6 samples is gray, photos/3.png first, and repeated over the 3 channels of the others";
        assert_eq!(ran.stderr.matches(said).count(), 1, "{}", ran.stderr);
    }
    let ran = bench.run("evaluate m.safetensors photos --json").ok();
    assert_eq!(ran.json()["samples"], 6);
    // Gray anyway: nothing differs, and nothing is said.
    let ran = bench.learn("photos --preprocess gray --beta 0.3 --out gray.safetensors").ok();
    assert!(!ran.stderr.contains("channels"), "{}", ran.stderr);
}

/// Few photos are learned from in pieces, but it is photos that are gray.
#[test]
fn gray_samples_are_counted_and_not_their_pieces() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("photos")).unwrap();
    for i in 1..=3 {
        let photo = image::DynamicImage::from(picture(300, 300, i));
        let photo = if i == 3 { photo.into_luma8().into() } else { photo };
        photo.save(bench.path(&format!("photos/{i}.png"))).unwrap();
    }
    let ran = bench.learn("photos --preprocess lcn --beta 1 --tile 100 --out m.safetensors").ok();
    assert!(ran.stderr.contains("1 of 3 samples is gray, photos/3.png first"), "{}", ran.stderr);
}

#[test]
fn colours_among_gray_photos_are_passed_over_with_a_word() {
    let bench = Bench::new();
    pictures(&bench, "photos", 4, 1);
    for i in [1, 2, 4] {
        let path = bench.path(&format!("photos/{i}.png"));
        image::open(&path).unwrap().into_luma8().save(&path).unwrap();
    }
    let ran = bench.learn("photos --preprocess lcn --beta 0.3 --json --out m.safetensors");
    assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(3), Some(1)));
    assert!(ran.stderr.contains("1 of 4 samples has 3 channels instead of 1, photos/3.png first"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--preprocess gray takes all of them"), "{}", ran.stderr);
    assert!(ran.stderr.contains("skipped: photos/3.png: sample: expected 1 channel"), "{}", ran.stderr);
}

#[test]
fn a_dropped_opacity_is_said() {
    let bench = Bench::new();
    pictures(&bench, "photos", 2, 1);
    let path = bench.path("photos/2.png");
    image::open(&path).unwrap().into_rgba8().save(&path).unwrap();
    let said = "1 of 2 samples has an alpha channel (opacity), photos/2.png first: it is dropped";
    let ran = bench.learn("photos --beta 0.3 --out m.safetensors").ok();
    assert_eq!(ran.stderr.matches(said).count(), 1, "{}", ran.stderr);
    assert!(bench.run("evaluate m.safetensors photos").ok().stderr.contains(said));
}
