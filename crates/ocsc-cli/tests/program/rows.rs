//! Rows of the method table that keep little or no history: `sgd`, `aocdl`, `scsc`, and base filters with `ocsc`.

use crate::common::{Bench, dictionary_bytes};

const FLAGS: [&str; 5] = [
    "--method sgd",
    "--method sgd --step-size 0.2 --step-delay 3",
    "--method aocdl --sweeps 2",
    "--method scsc --base-filters 2",
    "--base-filters 2",
];

/// Each learns, is evaluated, and goes on after its checkpoint as if nothing had been.
#[test]
fn they_learn_and_resume() {
    for flags in FLAGS {
        let bench = Bench::with_data(4);
        let settings = format!("--filters 4 --size 5 --beta 0.1 {flags}");
        bench.run(&format!("learn train.npy --passes 2 --out whole.safetensors {settings}")).ok();
        bench.run(&format!("learn train.npy --passes 0 --out start.safetensors {settings}")).ok();
        let objective = |model: &str| {
            let evaluated = bench.run(&format!("evaluate {model}.safetensors train.npy --json")).ok().json();
            evaluated["objective"].as_f64().unwrap()
        };
        assert!(objective("whole") < objective("start"), "{flags}");
        let limited = format!("learn train.npy --passes 2 --time-limit 1e-9 --out part.safetensors {settings}");
        bench.run(&limited).ok();
        bench.run("learn train.npy --resume part.safetensors").ok();
        let bytes = |model: &str| dictionary_bytes(&bench.path(&format!("{model}.safetensors")));
        assert!(bytes("whole") == bytes("part"), "{flags}");
    }
}

#[test]
fn what_they_do_not_obey_is_refused() {
    let bench = Bench::with_data(4);
    bench.learn("train.npy --method sgd --sweeps 2 --out m.safetensors").refused(1, &["sweeps", "sgd"]);
    bench.learn("train.npy --step-size 0.2 --out m.safetensors").refused(1, &["--step-size", "sgd would"]);
    bench.learn("train.npy --base-filters 500 --out m.safetensors").refused(1, &["--base-filters", "at most"]);
    bench.learn("train.npy --method scsc --beta 0.1 --out m.safetensors").ok();
    bench.run("code m.safetensors test.npy --out codes").failed(1, &["m.safetensors", "scsc", "evaluate"]);
}
