//! `ocsc learn`: what it writes, and its settings.

use crate::common::{Bench, assert_close, dictionary_bytes, model, noise, write_npy};
use ndarray::{Array3, Array4, Axis};

#[test]
fn the_model_file_is_what_the_design_says() {
    let bench = Bench::with_data(4);
    bench.run("learn train.npy --out m.safetensors --filters 4 --size 5x7 --beta 0.1 --seed 3").ok();
    let saved = model(&bench.path("m.safetensors"));
    assert_eq!(saved.dictionary.dim(), (4, 1, 5, 7));
    assert_eq!(saved.dtype, safetensors::Dtype::F32);
    assert_eq!(saved.format, "ocsc/1");
    assert_eq!(saved.tensors, ["dictionary"]);
    let config = &saved.config;
    assert_eq!((&config["beta"], &config["seed"]), (&0.1.into(), &3.into()));
    assert_eq!(config["filter_shape"], serde_json::json!([5, 7]));
    assert_eq!((&config["method"], &config["boundary"]), (&"ocsc".into(), &"circular".into()));
    for filter in saved.dictionary.outer_iter() {
        let norm = filter.iter().map(|v| v * v).sum::<f64>().sqrt();
        assert!(norm <= 1.0 && norm > 0.0, "{norm}");
    }
}

#[test]
fn results_on_stdout_and_messages_on_stderr() {
    let bench = Bench::with_data(4);
    let call = "train.npy --test test.npy --beta 0.1 --out m.safetensors";
    let ran = bench.learn(call).ok();
    for part in ["m.safetensors", "all passes made", "4 in 1 pass\n", "PSNR", "peak"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    // The figures of the test say that they are.
    let begins = |name: &str| ran.stdout.lines().any(|line| line.starts_with(name));
    for name in ["samples", "objective", "worst gap", "PSNR", "non-zeros", "coding time"] {
        assert!(begins(&format!("test {name} ")) && (name == "samples" || !begins(name)), "{name} in {}", ran.stdout);
    }
    assert!(!bench.learn("train.npy --beta 0.1 --out m.safetensors").ok().stdout.contains("test"));
    assert!(ran.stderr.contains("learning 4/4") && !ran.stdout.contains("learning 4/4"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\r') && !ran.stderr.contains('\x1b'), "a bar where there is no terminal");
    let quiet = bench.learn(&format!("{call} --quiet")).ok();
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("all passes made"));
    let json = bench.learn(&format!("{call} --quiet --json")).ok();
    assert_eq!(json.stderr, "");
    let result = json.json();
    assert_eq!((&result["samples"], &result["steps"], &result["passes"]), (&4.into(), &4.into(), &1.into()));
    assert_eq!(result["model"], "m.safetensors");
    let evaluated = bench.run("evaluate m.safetensors test.npy --json").ok().json();
    assert_eq!(result["test"]["objective"], evaluated["objective"]);
    assert_eq!(result["test"]["psnr_peak"], evaluated["psnr_peak"]);
}

#[test]
fn a_dictionary_from_elsewhere_is_wrapped_and_scaled() {
    let bench = Bench::with_data(2);
    let mut next = noise(8);
    let mut given = Array3::<f64>::from_shape_simple_fn((3, 4, 5), &mut next);
    for (k, mut filter) in given.outer_iter_mut().enumerate() {
        let norm = filter.iter().map(|v| v * v).sum::<f64>().sqrt();
        // Norms 0.5, 1.5 and 2.5.
        filter.mapv_inplace(|v| v / norm * (k as f64 + 0.5));
    }
    write_npy(&bench.path("three.npy"), &given);
    write_npy(&bench.path("four.npy"), &given.clone().insert_axis(Axis(1)));
    let mut wanted: Array4<f64> = given.insert_axis(Axis(1));
    wanted.index_axis_mut(Axis(0), 1).mapv_inplace(|v| v / 1.5);
    wanted.index_axis_mut(Axis(0), 2).mapv_inplace(|v| v / 2.5);
    for file in ["three.npy", "four.npy"] {
        let ran = bench.run(&format!("learn train.npy --passes 0 --init {file} --dtype f64 --out m.safetensors")).ok();
        assert!(ran.stderr.contains(file) && ran.stderr.contains("2.500"), "{}", ran.stderr);
        let saved = model(&bench.path("m.safetensors"));
        assert_eq!(saved.dtype, safetensors::Dtype::F64);
        assert_eq!(saved.dictionary.dim(), (3, 1, 4, 5));
        assert_eq!(saved.config["n_filters"], 3);
        saved.dictionary.iter().zip(&wanted).for_each(|(a, b)| assert_close(*a, *b, 1e-12));
        bench.run("evaluate m.safetensors test.npy").ok();
    }
}

#[test]
fn a_model_is_an_initial_dictionary() {
    let bench = Bench::with_data(2);
    bench.run("learn train.npy --filters 4 --size 5 --beta 0.1 --out old.safetensors").ok();
    bench.run("learn train.npy --passes 0 --beta 0.2 --init old.safetensors --out new.safetensors").ok();
    let [old, new] = ["old", "new"].map(|name| model(&bench.path(&format!("{name}.safetensors"))));
    assert_eq!((new.config["beta"].as_f64(), new.dictionary.dim()), (Some(0.2), (4, 1, 5, 5)));
    old.dictionary.iter().zip(&new.dictionary).for_each(|(a, b)| assert_close(*a, *b, 1e-6));
    // Filters of images are none for signals, and what is no model is refused by its name.
    let call = "learn train.npy --axes NCW --init old.safetensors --out w.safetensors";
    bench.run(call).refused(1, &["--init old.safetensors", "1 spatial axes", "found 2"]);
    std::fs::write(bench.path("bad.safetensors"), "nothing").unwrap();
    bench.run("learn train.npy --init bad.safetensors --out w.safetensors").refused(1, &["bad.safetensors"]);
}

#[test]
fn patches_are_pieces_of_the_data() {
    let bench = Bench::with_data(2);
    bench.learn("train.npy --passes 0 --init patches --dtype f64 --out m.safetensors").ok();
    let saved = model(&bench.path("m.safetensors"));
    let images = crate::common::stack(2, 16, 16, 1).mapv(f64::from);
    for filter in saved.dictionary.index_axis(Axis(1), 0).outer_iter() {
        let found = images.windows((1, 5, 5)).into_iter().any(|patch| {
            let norm = patch.iter().map(|v| v * v).sum::<f64>().sqrt();
            patch.iter().zip(filter.iter()).all(|(p, f)| (p / norm - f).abs() < 1e-12)
        });
        assert!(found);
    }
}

#[test]
fn a_seed_decides_every_bit_and_threads_decide_none() {
    let bench = Bench::with_data(4);
    let learned = |words: &str| {
        let call = "learn train.npy --filters 4 --size 5 --beta 0.1 --passes 2 --batch 2 --out m.safetensors";
        bench.run(&format!("{call} {words}")).ok();
        bench.read("m.safetensors")
    };
    let one = learned("--threads 1 --seed 7");
    assert!(one == learned("--threads 1 --seed 7"));
    assert!(one == learned("--threads 2 --seed 7"));
    assert!(one == learned("--threads 5 --seed 7"));
    assert!(one != learned("--threads 1 --seed 8"));
}

#[test]
fn passes_seen_in_one_run_or_in_two() {
    let bench = Bench::with_data(5);
    let settings = "--beta 0.1 --checkpoint-every 5 --seed 2";
    bench.learn(&format!("train.npy --passes 3 {settings} --out whole.safetensors")).ok();
    bench.learn(&format!("train.npy --passes 1 {settings} --out parts.safetensors")).ok();
    bench.run("learn train.npy --resume parts.safetensors --passes 3").ok();
    let [whole, parts] = ["whole", "parts"].map(|name| bench.path(&format!("{name}.safetensors")));
    assert!(dictionary_bytes(&whole) == dictionary_bytes(&parts));
}

#[test]
fn a_tolerance_ends_learning_early() {
    let bench = Bench::with_data(2);
    let ran = bench.learn("train.npy --passes 50 --stop-tol 0.5 --beta 0.1 --json --out m.safetensors").ok().json();
    assert_eq!(ran["ended"], "converged");
    assert!(ran["passes"].as_u64().unwrap() < 50);
}
