//! What filters may be: flags, model files, refusals.

use crate::common::{Bench, model, noise, write_npy};
use ndarray::{Array3, Array4, Axis};
use serde_json::json;

#[test]
fn several_sizes_share_the_filters() {
    let bench = Bench::with_data(4);
    bench.run("learn train.npy --out m.safetensors --filters 6 --size 3,5x4,7 --beta 0.1 --seed 3").ok();
    let saved = model(&bench.path("m.safetensors"));
    assert_eq!(saved.dictionary.dim(), (6, 1, 7, 7));
    assert_eq!(saved.config["filters"]["scales"], json!([[3, 3], [5, 4], [7, 7]]));
    for ((k, _, y, x), v) in saved.dictionary.indexed_iter() {
        let inside = match k / 2 {
            0 => (2..5).contains(&y) && (2..5).contains(&x),
            1 => (1..6).contains(&y) && (1..5).contains(&x),
            _ => true,
        };
        assert!(inside || *v == 0.0, "{k} {y} {x}");
    }
    bench.run("evaluate m.safetensors test.npy").ok();
    bench.learn("train.npy --out m2.safetensors --size 0,5").refused(2, &["--size"]);
}

#[test]
fn signs_means_and_factors_are_recorded_and_hold() {
    let bench = Bench::new();
    let mut next = noise(4);
    write_npy(&bench.path("colour.npy"), &Array4::<f32>::from_shape_simple_fn((6, 3, 12, 12), || next() as f32));
    let learned = |flags: &str| {
        let call = "learn colour.npy --axes NCHW --out m.safetensors --force --filters 4 --size 5 --beta 0.2";
        bench.run(&format!("{call} {flags}")).ok();
        model(&bench.path("m.safetensors"))
    };
    let saved = learned("--filters-nonnegative");
    assert_eq!(saved.config["filters"]["nonnegative"], true);
    assert!(saved.dictionary.iter().all(|v| *v >= 0.0));
    let saved = learned("--zero-mean --recenter --forgetting constant:0.99");
    assert_eq!(saved.config["filters"]["zero_mean"], true);
    assert_eq!(saved.config["block_descent"]["recenter"], true);
    assert_eq!(saved.config["block_descent"]["forgetting"], "constant:0.99");
    assert!(saved.dictionary.outer_iter().all(|filter| filter.sum().abs() < 1e-5));
    let saved = learned("--rank1");
    assert_eq!(saved.config["filters"]["rank1"], true);
    for filter in saved.dictionary.outer_iter() {
        // All 2 x 2 determinants of two channels vanish.
        let flat = filter.to_shape((3, 25)).unwrap();
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let worst = (0..24).map(|i| (flat[(a, i)] * flat[(b, i + 1)] - flat[(a, i + 1)] * flat[(b, i)]).abs());
            assert!(worst.fold(0.0, f64::max) < 1e-6);
        }
    }
}

#[test]
fn fixed_filters_are_those_of_the_file() {
    let bench = Bench::with_data(4);
    let mut next = noise(8);
    let given = Array3::<f64>::from_shape_simple_fn((3, 5, 5), &mut next).mapv(|v| v / 8.0);
    write_npy(&bench.path("d.npy"), &given);
    let call = "learn train.npy --init d.npy --dtype f64 --beta 0.05 --force --out m.safetensors";
    bench.run(&format!("{call} --fixed-filters 2")).ok();
    let saved = model(&bench.path("m.safetensors"));
    assert_eq!(saved.config["filters"]["fixed"], 2);
    for k in 0..3 {
        let same = (0..25).all(|i| saved.dictionary[(k, 0, i / 5, i % 5)] == given[(k, i / 5, i % 5)]);
        assert_eq!(same, k < 2, "filter {k}");
    }
    bench
        .run(&format!("{call} --fixed-filters 4"))
        .refused(1, &["--fixed-filters: expected at most the 3 filters, found 4"]);
}

#[test]
fn filters_that_come_last_are_noticed() {
    let bench = Bench::with_data(4);
    let mut next = noise(8);
    let mut last = Array3::<f64>::from_shape_simple_fn((5, 5, 7), &mut next);
    for mut filter in last.axis_iter_mut(Axis(2)) {
        let norm = filter.iter().map(|v| v * v).sum::<f64>().sqrt();
        filter.mapv_inplace(|v| v / norm);
    }
    let first = last.view().permuted_axes([2, 0, 1]).as_standard_layout().into_owned();
    write_npy(&bench.path("last.npy"), &last);
    write_npy(&bench.path("first.npy"), &first);
    write_npy(&bench.path("loose.npy"), &last.mapv(|v| 0.5 * v));
    let learn =
        |init: &str| bench.run(&format!("learn train.npy --init {init} --beta 0.1 --force --out m.safetensors"));
    learn("last.npy")
        .refused(1, &["--init last.npy", "as SPORCO has them", "norms are 1", "save np.moveaxis(D, -1, 0)"]);
    assert!(!learn("first.npy").ok().stderr.contains("SPORCO"));
    // Nothing but the sides tells: they are taken as they are, with a word.
    let said = learn("loose.npy").ok().stderr;
    let word = "warning: --init loose.npy: read as 5 filters of 5x7; if it is 7 of 5x5, with filters last as SPORCO has them, save np.moveaxis";
    assert_eq!(said.matches(word).count(), 1, "{said}");
    let colour = Array4::from_shape_fn((5, 5, 3, 7), |(y, x, _, k)| last[(y, x, k)] / 3_f64.sqrt());
    write_npy(&bench.path("colour.npy"), &colour);
    learn("colour.npy").refused(1, &["--init colour.npy", "as SPORCO has them", "save D.transpose(3, 2, 0, 1)"]);
}

#[test]
fn refusals_name_the_flag() {
    let bench = Bench::with_data(2);
    let learn = |flags: &str| bench.run(&format!("learn train.npy --out m --filters 4 --size 5 {flags}"));
    learn("--zero-mean --filters-nonnegative").refused(1, &["--zero-mean: expected filters that may have negative"]);
    learn("--rank1").refused(1, &["--rank1: expected samples with several channels", "found 1 channel"]);
    learn("--fixed-filters 1").refused(1, &["--fixed-filters: expected 0, or a given initial dictionary"]);
    learn("--zero-mean --method fcsc").refused(1, &["--zero-mean", "ocsc would"]);
    bench
        .run("learn train.npy --out m --filters 2 --size 3,5,7")
        .refused(1, &["--size: expected at most 2", "found 3"]);
    for forgetting in ["constant:1", "constant:0", "constant:x", "0.5", "often", "nan"] {
        let words = format!("--forgetting={forgetting}");
        learn(&words).refused(2, &["--forgetting"]);
    }
    assert!(!bench.path("m").exists());
}
