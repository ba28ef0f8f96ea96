//! Memory is counted before the start.

use crate::common::Bench;

#[test]
fn a_run_that_would_not_fit_is_refused_with_the_method_that_would() {
    let bench = Bench::with_data(4);
    let learn = |options: &str| bench.run(&format!("learn train.npy --size 5 --out m.safetensors {options}"));
    learn("--memory-limit 5MB").refused(1, &["the memory limit allows", "5.0 MB", "fewer or smaller filters"]);
    // 400 filters, 16 x 9 frequencies, a complex K x K matrix each: 184 MB, against 34 MB of lags.
    learn("--filters 400 --method ocsc-paper --memory-limit 100MB")
        .refused(1, &["100.0 MB", "the method `ocsc` would need"]);
    assert!(!bench.path("m.safetensors").exists());
    learn("--filters 4 --memory-limit 1GiB").ok();
    learn("--memory-limit much").refused(2, &["--memory-limit", "500MB"]);
    learn("--filters 3000000").refused(1, &["need", "free"]);
}
