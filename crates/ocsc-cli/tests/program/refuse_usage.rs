//! Bad options: exit code 2 from the parser, 1 where the data decide; always a message that says what was expected.

use crate::common::{Bench, write_npy};

#[test]
fn options_out_of_range() {
    let bench = Bench::with_data(2);
    let number = "expected a finite number above 0";
    for (option, expected) in [
        ("--beta=0", number),
        ("--beta=-1", number),
        ("--beta=nan", number),
        ("--beta=inf", number),
        ("--beta=abc", number),
        ("--beta-ratio=0", number),
        ("--tol=0", number),
        ("--tol=-0.1", number),
        ("--time-limit=0", number),
        ("--stop-tol=0", number),
        ("--sweep-tol=0", number),
        ("--rho=0", number),
        ("--filters=0", "at least 1"),
        ("--filters=-3", "at least 1"),
        ("--filters=many", "at least 1"),
        ("--batch=0", "at least 1"),
        ("--limit=0", "at least 1"),
        ("--test-every=0", "at least 1"),
        ("--test-seconds=0", "above 0"),
        ("--test-subset=0", "at least 1"),
        ("--checkpoint-every=0", "500, or of minutes"),
        ("--max-iters=0", "at least 1"),
        ("--size=0", "at least 1"),
        ("--size=0x5", "at least 1"),
        ("--size=5xx5", "11x11"),
        ("--size=", "11x11"),
        ("--size=5x5x5x5", "one to three lengths"),
        ("--size=-5", "11x11"),
        ("--relaxation=2", "from 1 up to, not including, 2"),
        ("--relaxation=0.5", "from 1 up to, not including, 2"),
        ("--method=magic", "ocsc-paper"),
        ("--boundary=square", "circular"),
        ("--dtype=f16", "f32"),
        ("--axes=NHQ", "not an axis"),
        ("--axes=HHW", "twice"),
        ("--seed=-1", "--seed"),
        ("--passes=-1", "--passes"),
        ("--threads=0", "from 1 to 1024"),
        ("--threads=100000", "from 1 to 1024"),
        ("--test-every=2", "--test <DATA>"),
        ("--test-seconds=2", "--test <DATA>"),
        ("--test-subset=2", "--test <DATA>"),
        ("--wat", "--wat"),
    ] {
        let name = option.split('=').next().unwrap();
        bench.run_words(&["learn", "train.npy", "--out", "m", option]).refused(2, &[name, expected]);
    }
    assert!(!bench.path("m").exists());
}

#[test]
fn options_that_contradict_or_lack_each_other() {
    let bench = Bench::with_data(2);
    bench.run("learn train.npy --out m --beta 1 --beta-ratio 0.1").refused(2, &["--beta", "--beta-ratio"]);
    bench.run("learn --out m").refused(2, &["DATA"]);
    bench.run("learn train.npy").refused(2, &["--out"]);
    bench.run("code m train.npy").refused(2, &["--out"]);
    bench.run("code m").refused(2, &["DATA"]);
    bench.run("evaluate").refused(2, &["MODEL"]);
    bench.run("show m").refused(2, &["--out"]);
    bench.run("reconstruct m").refused(2, &["CODES"]);
}

#[test]
fn options_that_do_not_fit_the_data() {
    let bench = Bench::with_data(2);
    let learn = |words: &str| bench.run(&format!("learn train.npy --out m --filters 4 {words}"));
    learn("--size 5x5x5").refused(1, &["--size", "2 spatial axes", "found 3"]);
    learn("--size 17").refused(1, &["train.npy[", "17x17", "16x16"]);
    learn("--size 17 --init patches").refused(1, &["train.npy[", "17x17", "16x16"]);
    learn("--size 3000000000x3000000000").refused(1, &["train.npy[", "16x16"]);
    learn("--axes NCHW").refused(1, &["train.npy", "(2, 16, 16)", "--axes NCHW"]);
    learn("--preprocess blur").refused(2, &["gray, mean, scale, lowpass, whiten, lcn, taper", "blur"]);
    learn("--preprocess lcn,gray").refused(2, &["gray first and taper last"]);
    learn("--preprocess lowpass=0").refused(2, &["lowpass", "above 0"]);
    learn("--preprocess whiten").refused(1, &["train.npy", "`whiten`", "signals", "16x16"]);
    learn("--filters 10000000").refused(2, &["--filters"]);
    let many = bench.run("learn train.npy --out m --filters 10000000 --size 5");
    many.refused(1, &["the system has free"]);
    bench.run("learn train.npy --out m --filters 4 --size 5 --passes 18446744073709551615 --time-limit 1e-9").ok();
}

#[test]
fn nonnegative_codes_with_a_method_that_does_not_learn_so() {
    let bench = Bench::with_data(2);
    let learn = "learn train.npy --out m --filters 4 --size 5 --nonnegative";
    for method in ["ocsc-paper", "fcsc", "ffcsc", "cbpdn", "consensus", "deconvnet", "ocdl1", "ocdl2", "osc"] {
        let told = ["--nonnegative: expected false", "does not obey it (ocsc, sgd, aocdl, scsc would)", method];
        bench.run(&format!("{learn} --method {method}")).refused(1, &told);
        assert!(!bench.path("m").exists());
    }
    bench.run(learn).ok();
}

/// The reason is said, and no way around it that leads nowhere.
#[test]
fn refusals_blame_what_is_wrong() {
    let bench = Bench::with_data(2);
    let ran = bench.learn("train.npy --seed -1 --out m").refused(2, &["--seed", "a whole number from 0 up"]);
    assert!(!ran.stderr.contains("-- -1"), "{}", ran.stderr);
    let ran = bench.learn("train.npy --beta -0.5 --out m").refused(2, &["--beta", "above 0"]);
    assert!(!ran.stderr.contains("-- -0.5"), "{}", ran.stderr);
    let ran = bench.learn("train.npy --tile 4 --out m").refused(1, &["--tile 4", "the filters' size 5x5"]);
    assert!(!ran.stderr.contains("--axes"), "{}", ran.stderr);
    write_npy(&bench.path("zeros.npy"), &ndarray::Array3::<f32>::zeros((3, 16, 16)));
    bench.learn("zeros.npy --out m").refused(1, &["expected samples that are not all zeros", "zeros.npy[0] first"]);
}
