//! Choosing beta: as a fraction, by default, by a preset, by `tune`; and warnings where it does not suit the data.

use crate::common::{Bench, model, noise, stack, write_npy};

fn beta(bench: &Bench, words: &str) -> f64 {
    bench.learn(&format!("train.npy --out m.safetensors {words}")).ok();
    model(&bench.path("m.safetensors")).config["beta"].as_f64().unwrap()
}

#[test]
fn beta_is_a_fraction_of_what_typical_samples_allow() {
    let bench = Bench::with_data(5);
    let ran = bench.learn("train.npy --beta-ratio 0.25 --passes 0 --out m.safetensors").ok();
    assert!(ran.stderr.contains(" = 0.25 of ") && ran.stderr.contains("the median of 5 samples"), "{}", ran.stderr);
    let quarter = beta(&bench, "--beta-ratio 0.25 --passes 0");
    // Neither the seed nor the start nor the method matters.
    for words in ["--seed 3", "--init patches", "--seed 8 --method ocsc-paper", "--batch 3"] {
        assert_eq!(beta(&bench, &format!("--beta-ratio 0.25 --passes 0 {words}")), quarter, "{words}");
    }
    let default = beta(&bench, "--passes 0");
    assert!((default / quarter - 0.4).abs() < 1e-12, "{default} {quarter}");
    assert_eq!(beta(&bench, "--passes 0 --preset paper"), 1.0);
    assert_eq!(beta(&bench, "--passes 0 --preset paper --beta-ratio 0.25"), quarter);
    assert_eq!(beta(&bench, "--passes 0 --preset paper --beta 0.5"), 0.5);
    let both = bench.learn("train.npy --out m.safetensors --beta 1 --beta-ratio 0.1");
    assert!(both.code != Some(0) && both.stderr.contains("cannot be used with"), "{}", both.stderr);
}

#[test]
fn a_preset_is_the_papers_experiment() {
    let bench = Bench::with_data(2);
    write_npy(&bench.path("large.npy"), &stack(1, 24, 24, 1));
    bench.run("learn large.npy --preset paper --out m.safetensors").ok();
    let config = model(&bench.path("m.safetensors")).config;
    assert_eq!(
        (&config["n_filters"], &config["filter_shape"]),
        (&serde_json::json!(100), &serde_json::json!([11, 11]))
    );
    assert_eq!((&config["beta"], &config["boundary"]), (&serde_json::json!(1.0), &serde_json::json!("circular")));
}

#[test]
fn data_of_any_scale_learn_something() {
    let bench = Bench::new();
    let mut shares = Vec::new();
    for scale in [1e-12, 1.0, 65535.0] {
        write_npy(&bench.path("train.npy"), &(stack(4, 16, 16, 1) * scale));
        let ran = bench.learn("train.npy --out m.safetensors --passes 2").ok();
        assert!(!ran.stderr.contains("all zeros; try"), "{scale}: {}", ran.stderr);
        let found = bench.run("evaluate m.safetensors train.npy --json").ok().json();
        let share = found["nonzeros_share"].as_f64().unwrap();
        assert!(share > 0.0 && found["empty"] == 0, "{scale}: {found}");
        shares.push(share);
    }
    assert!(shares.iter().all(|share| (share / shares[0] - 1.0).abs() < 0.02), "{shares:?}");
}

#[test]
fn a_beta_that_does_not_suit_the_data_is_warned_of() {
    let bench = Bench::new();
    write_npy(&bench.path("train.npy"), &(stack(4, 16, 16, 1) * 1e-12));
    let ran = bench.learn("train.npy --out m.safetensors --beta 1").ok();
    assert!(ran.stderr.contains("beta 1 is above beta_max"), "{}", ran.stderr);
    assert!(ran.stderr.contains("4 of 4 codes are all zeros; try --beta-ratio 0.1"), "{}", ran.stderr);
    for command in ["evaluate m.safetensors train.npy", "code m.safetensors train.npy --out codes"] {
        let ran = bench.run(command).ok();
        assert!(
            ran.stderr.contains("is above beta_max") && ran.stderr.contains("try --beta-ratio 0.1"),
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.contains("0.0 per sample (0.0 % of the values)"), "{}", ran.stdout);
        let ran = bench.run(&format!("{command} --beta-ratio 0.5")).ok();
        assert!(!ran.stderr.contains("warning") && ran.stderr.contains(" = 0.5 of "), "{}", ran.stderr);
        let ran = bench.run(&format!("{command} --beta-ratio 0.0001")).ok();
        assert!(ran.stderr.contains("is small for these data"), "{}", ran.stderr);
    }
}

#[test]
fn tune_recommends_and_draws() {
    let bench = Bench::new();
    write_npy(&bench.path("train.npy"), &stack(6, 24, 24, 1));
    let words = "tune train.npy --filters 4 --size 5 --ratios 0.4,0.2,0.1,0.05";
    let ran = bench.run(&format!("{words} --out tune.png")).ok();
    assert!(ran.stdout.contains("recommended: learn ") && ran.stdout.contains("<- recommended"), "{}", ran.stdout);
    // What was measured, and no more: filters that were learned at one ratio, and coded with at all.
    let recommended = |words: &str| {
        let stdout = bench.run(words).ok().stdout;
        let line = stdout.lines().find_map(|line| line.strip_prefix("recommended: ")).expect(&stdout).to_owned();
        (line, stdout.contains("--relearn learns them anew"))
    };
    let (line, is_limited) = recommended("tune train.npy --filters 4 --size 5 --ratios 0.2 --beta-ratio 0.3");
    assert!(line.starts_with("learn with --beta-ratio 0.3, then code with --beta ") && is_limited, "{line}");
    let (line, is_limited) = recommended("tune train.npy --filters 4 --size 5 --ratios 0.2,0.1 --relearn");
    assert!(line.starts_with("learn and code with --beta-ratio 0.") && !is_limited, "{line}");
    assert!(bench.read("tune.png").starts_with(b"\x89PNG"));
    bench.run(&format!("{words} --out tune.svg")).ok();
    let svg = String::from_utf8(bench.read("tune.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("recommended: ratio"));
    let found = bench.run(&format!("{words} --try-filters 2,4 --try-size 3,5 --json")).ok().json();
    assert_eq!(found["tries"].as_array().unwrap().len(), 4);
    let ratio = found["ratio"].as_f64().unwrap();
    assert!((found["beta"].as_f64().unwrap() / found["beta_max"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-9);
    bench.run("learn train.npy --filters 4 --size 5 --out m.safetensors").ok();
    bench.run("tune train.npy --model m.safetensors --json").ok();
    assert!(recommended("tune train.npy --model m.safetensors").0.starts_with("code with --beta "));
    for (wrong, expected) in [
        ("tune train.npy --model m.safetensors --try-filters 2", "expected filters to be learned"),
        ("tune train.npy --filters 4 --size 5 --out tune.pdf", "ends in .png or .svg"),
        ("tune train.npy --out train.npy", ".png or .svg"),
        ("tune train.npy --filters 4 --size 5 --method fcsc", "expected ocsc"),
    ] {
        let ran = bench.run(wrong);
        assert!(ran.code != Some(0) && ran.stderr.contains(expected), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn tune_says_that_the_best_beta_is_the_end_of_its_path() {
    let bench = Bench::new();
    let wave = |i: usize, y: usize, x: usize| ((0.2 + 0.1 * i as f32) * y as f32).sin() * (0.3 * x as f32).cos();
    let clean = ndarray::Array3::from_shape_fn((6, 24, 24), |(i, y, x)| wave(i, y, x));
    let mut next = noise(5);
    write_npy(&bench.path("clean.npy"), &clean);
    write_npy(&bench.path("noisy.npy"), &clean.mapv(|v| v + 0.5 * next() as f32));
    let words = "--filters 4 --size 5 --passes 3";
    let told = |call: &str| {
        let found = bench.run(&format!("tune {call} {words} --json")).ok().json()["end_of_path"].clone();
        (found, bench.run(&format!("tune {call} {words}")).ok().stdout)
    };
    let (end, said) = told("clean.npy --ratios 0.4,0.2,0.1");
    assert_eq!(end, "smallest", "{said}");
    for part in ["best beta is the end of the path", "up to ratio 0.1", "hardly any noise", "smaller --ratios"] {
        assert!(said.contains(part), "{said}");
    }
    let (end, said) = told("noisy.npy --ratios 0.04,0.02");
    assert_eq!(end, "largest", "{said}");
    assert!(said.contains("than 0.04, the largest that was tried") && said.contains("larger --ratios"), "{said}");
    let (end, said) = told("noisy.npy --ratios 0.4");
    assert!(end.is_null() && !said.contains("end of the path"), "one ratio is no path: {said}");
}

#[test]
fn empty_codes_of_random_filters_are_not_blamed_on_beta() {
    let bench = Bench::new();
    let wave = |t: usize| if t % 500 < 256 { ((t % 500) as f32 / 6.0).sin() } else { 0.0 };
    write_npy(&bench.path("sines.npy"), &ndarray::Array1::from_shape_fn(8000, wave));
    let learn = |words: &str| {
        let call = format!("learn sines.npy --axes T --size 256 --filters 2 --threads 1 --out {words}");
        bench.run(&call).ok().stderr
    };
    let said = learn("a --beta-ratio 0.4");
    assert!(said.contains("warning: 3 of 3 codes are all zeros") && said.contains("try --init patches"), "{said}");
    let said = learn("b --beta-ratio 0.4 --init patches");
    assert!(!said.contains("warning"), "the cure works: {said}");
    let said = learn("c --beta 1e6");
    assert!(said.contains("is above beta_max") && said.contains("try --beta-ratio"), "{said}");
}
