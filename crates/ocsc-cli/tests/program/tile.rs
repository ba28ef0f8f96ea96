//! Few and large samples, which are learned from in pieces unless the call says otherwise.

use crate::common::{Bench, dictionary_bytes, noise, picture, stack, write_npy};
use ndarray::Array1;
use serde_json::{Value, json};

const SMALL: &str = "--filters 3 --size 16 --threads 1";

/// `signal.npy`: 3000 values of noise with an event now and then.
fn long(bench: &Bench) {
    let mut next = noise(3);
    let event = |t: usize| if t % 400 < 16 { 3.0 * ((t % 400) as f64 / 3.0).sin() } else { 0.0 };
    let signal = Array1::from_shape_fn(3000, |t| (event(t) + 0.1 * next()) as f32);
    write_npy(&bench.path("signal.npy"), &signal);
}

fn learn(bench: &Bench, words: &str) -> (Value, String) {
    let ran = bench.run(&format!("learn signal.npy --axes T {SMALL} --json {words}")).ok();
    (ran.json(), ran.stderr)
}

#[test]
fn one_long_signal_is_learned_from_in_pieces() {
    let bench = Bench::new();
    long(&bench);
    let (learned, said) = learn(&bench, "--out m.safetensors");
    assert_eq!(learned["samples"], 23);
    let line = "1 sample is learned from in 23 pieces of 131 a pass; --tile whole for whole samples";
    assert!(said.contains(line) && !said.contains("updates in all"), "{said}");
    // Its objectives are per piece, those of the test per whole signal.
    learn(&bench, "--test signal.npy --report page.html --out tested.safetensors");
    let page = bench.text("page.html");
    for words in ["Training objective per piece of 131", "Test objective per whole sample", "in pieces of 131"] {
        assert!(page.contains(words), "{words}");
    }
    // As if it had been said, and as many samples as there are.
    let (same, said) = learn(&bench, "--tile 131 --out same.safetensors");
    assert!(!said.contains("learned from in"), "{said}");
    assert_eq!(bench.read("m.safetensors"), bench.read("same.safetensors"));
    assert_eq!(bench.run("info m.safetensors --json").ok().json()["samples"], 1);
    // Beta is that of the whole signal, whatever is cut of it.
    let (whole, said) = learn(&bench, "--tile whole --out whole.safetensors");
    assert_eq!((&whole["samples"], &whole["beta"]), (&json!(1), &same["beta"]));
    assert!(said.contains("1 update in all") && !said.contains("learned from in"), "{said}");
    assert_ne!(dictionary_bytes(&bench.path("m.safetensors")), dictionary_bytes(&bench.path("whole.safetensors")));
}

#[test]
fn a_resumed_run_takes_the_recorded_pieces() {
    let bench = Bench::new();
    long(&bench);
    learn(&bench, "--passes 2 --out once.safetensors");
    learn(&bench, "--passes 1 --checkpoint-every 7 --out half.safetensors");
    let go_on = |words: &str| bench.run(&format!("learn signal.npy --resume half.safetensors --passes 2 {words}"));
    for other in ["64", "whole"] {
        go_on(&format!("--axes T --tile {other} --out x")).refused(1, &["--tile was 131, now"]);
    }
    go_on("--axes T --threads 1 --out on.safetensors").ok();
    assert_eq!(dictionary_bytes(&bench.path("on.safetensors")), dictionary_bytes(&bench.path("once.safetensors")));
    // What was whole stays whole.
    learn(&bench, "--tile whole --passes 1 --checkpoint-every 1 --out half.safetensors");
    let said = go_on("--axes T --json --out on.safetensors").ok();
    assert_eq!(said.json()["samples"], 2);
}

#[test]
fn images_of_few_filter_lengths_and_what_says_otherwise_stay_whole() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("photos")).unwrap();
    (0..3).for_each(|i| picture(100, 100, i).save(bench.path(&format!("photos/{i}.png"))).unwrap());
    let samples =
        |words: &str| bench.run(&format!("learn {words} --threads 1 --json --out x")).ok().json()["samples"].clone();
    assert_eq!(samples("photos --filters 2 --size 11"), 3, "as the paper's images");
    write_npy(&bench.path("wide.npy"), &stack(2, 30, 200, 1));
    let wide = "wide.npy --filters 2 --size 5";
    // On one axis only: 3 pieces of 30x67 each.
    assert_eq!(samples(wide), 6);
    for words in ["--preset paper", "--method ffcsc", "--crop 20", "--tile whole"] {
        assert_eq!(samples(&format!("{wide} {words}")), 2, "{words}");
    }
    write_npy(&bench.path("many.npy"), &stack(50, 8, 130, 1));
    assert_eq!(samples("many.npy --filters 2 --size 5"), 50);
    bench.run("learn wide.npy --tile wide --out x").refused(2, &["--tile", "whole"]);
    bench.run("learn wide.npy --tile 64 --crop 20 --out x").refused(2, &["--crop"]);
}

#[test]
fn volumes_are_cut_where_they_are_long() {
    let bench = Bench::new();
    write_npy(&bench.path("volume.npy"), &stack(12, 50, 60, 7));
    let ran = bench.run("learn volume.npy --axes DHW --filters 2 --size 3 --threads 1 --json --out m.safetensors").ok();
    assert!(ran.stderr.contains("1 sample is learned from in 4 pieces of 12x25x30 a pass"), "{}", ran.stderr);
    assert_eq!(ran.json()["samples"], 4);
}

#[test]
fn there_are_no_more_pieces_than_it_takes() {
    let bench = Bench::new();
    write_npy(&bench.path("large.npy"), &stack(2, 700, 900, 1));
    let ran = bench.run("learn large.npy --filters 2 --size 5 --threads 1 --json --out m.safetensors").ok();
    // Pieces of 64x64 would be 308.
    assert!(ran.stderr.contains("2 samples are learned from in 60 pieces of 140x150 a pass"), "{}", ran.stderr);
}
