//! `code`, `reconstruct`, `evaluate`, `show` and `info`: their files and numbers, recomputed from the definitions.

use crate::common::{Bench, assert_close, code, judge, model, read_floats, stack};
use ndarray::Ix2;

#[test]
fn codes_objectives_gaps_and_reconstructions_are_what_they_claim() {
    let bench = Bench::with_model();
    let ran = bench.run("code m.safetensors test.npy --tol 0.003 --out codes --json").ok().json();
    let evaluated = bench.run("evaluate m.safetensors test.npy --tol 0.003 --json").ok().json();
    bench.run("reconstruct m.safetensors codes --out back").ok();
    let saved = model(&bench.path("m.safetensors"));
    let images = stack(2, 16, 16, 99).mapv(f64::from);
    let range =
        images.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v)) - images.iter().fold(f64::INFINITY, |m, v| m.min(*v));
    let (mut objective, mut data_term, mut l1, mut psnr, mut nonzeros) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (i, x) in images.outer_iter().enumerate() {
        let coded = code(&bench.path(&format!("codes/test-000{i}.npz")));
        assert_eq!(coded.position.dim(), (coded.filter.len(), 2));
        assert_eq!(coded.value.len(), coded.filter.len());
        assert!(coded.value.iter().all(|v| *v != 0.0));
        assert_eq!(coded.beta, 0.1);
        let judged = judge(&saved.dictionary, &x.to_owned(), &coded, 0.1);
        assert_close(judged.objective, coded.objective, 1e-5);
        assert!((judged.gap - coded.gap).abs() < 2e-5, "{} and {}", judged.gap, coded.gap);
        assert!(coded.gap <= 0.003);
        let back = read_floats(&bench.path(&format!("back/test-000{i}.npy"))).into_dimensionality::<Ix2>().unwrap();
        let largest = (&back - &judged.reconstruction).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        // Rounded to the model's precision, f32, and no further off.
        let size = judged.reconstruction.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!(largest < 1e-12 + 0.5 * f64::from(f32::EPSILON) * size, "{largest}");
        assert_eq!(image::image_dimensions(bench.path(&format!("back/test-000{i}.png"))).unwrap(), (16, 16));
        objective += coded.objective / 2.0;
        data_term += judged.data_term / 2.0;
        l1 += judged.l1 / 2.0;
        psnr += 5.0 * (range * range / (2.0 * judged.data_term / 256.0)).log10();
        nonzeros += coded.filter.len() as f64 / 2.0;
    }
    let mut fields: Vec<&String> = evaluated.as_object().unwrap().keys().collect();
    fields.sort();
    let wanted = ["data_term", "empty", "gap", "l1", "nonzeros", "nonzeros_share", "objective", "penalty", "psnr"];
    assert_eq!(fields[..9], wanted);
    assert_eq!(fields[9..], ["psnr_original", "psnr_original_peak", "psnr_peak", "samples", "seconds"]);
    let number = |name: &str| evaluated[name].as_f64().unwrap();
    assert_eq!(evaluated["samples"], 2);
    assert_close(number("objective"), objective, 1e-12);
    assert_close(ran["objective"].as_f64().unwrap(), objective, 1e-12);
    assert_close(number("data_term"), data_term, 1e-4);
    assert_close(number("l1"), l1, 1e-4);
    assert_close(number("psnr"), psnr, 1e-4);
    assert_close(number("psnr_peak"), range, 1e-6);
    assert_close(number("psnr_original"), psnr, 1e-4);
    assert_close(number("psnr_original_peak"), range, 1e-6);
    assert_eq!(number("nonzeros"), nonzeros);
    assert_eq!(evaluated["gap"], ran["gap"]);
    assert!(number("gap") <= 0.003 && number("seconds") > 0.0);
}

#[test]
fn in_double_precision_the_numbers_agree_to_round_off() {
    let bench = Bench::with_data(3);
    bench.learn("train.npy --beta 0.2 --dtype f64 --out m.safetensors").ok();
    bench.run("code m.safetensors test.npy --tol 1e-6 --dtype f32 --max-iters 20000 --out codes32").ok();
    let exact = bench.run("evaluate m.safetensors test.npy --tol 1e-8 --max-iters 20000 --json").ok().json();
    assert!(exact["gap"].as_f64().unwrap() <= 1e-8);
    let coarse = bench.run("evaluate m.safetensors test.npy --json").ok().json();
    let (best, found) = (exact["objective"].as_f64().unwrap(), coarse["objective"].as_f64().unwrap());
    assert!(found >= best * (1.0 - 1e-8) && found <= best * 1.003, "{best} {found}");
}

#[test]
fn a_code_that_misses_its_tolerance_is_kept_and_named() {
    let bench = Bench::with_model();
    let ran = bench.run("code m.safetensors test.npy --max-iters 1 --tol 1e-9 --out codes").ok();
    assert!(ran.stderr.contains("2 of 2 codes did not reach"), "{}", ran.stderr);
    assert!(code(&bench.path("codes/test-0000.npz")).gap > 1e-9);
    let ran = bench.run("evaluate m.safetensors test.npy --max-iters 1 --tol 1e-9").ok();
    assert!(ran.stderr.contains("1e-9 asked for") && ran.stderr.contains("--max-iters"), "{}", ran.stderr);
    // More digits are advised where there are more.
    for (dtype, advised) in [("f32", true), ("f64", false)] {
        for command in ["evaluate m.safetensors test.npy", "code m.safetensors test.npy --out again"] {
            let ran = bench.run(&format!("{command} --max-iters 1 --tol 1e-9 --dtype {dtype}")).ok();
            assert!(ran.stderr.contains("--max-iters"), "{}", ran.stderr);
            assert_eq!(ran.stderr.contains("--dtype f64"), advised, "{}", ran.stderr);
        }
    }
}

#[test]
fn a_large_beta_gives_empty_codes_that_all_commands_take() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --beta 1000 --out codes").ok();
    let coded = code(&bench.path("codes/test-0000.npz"));
    assert_eq!((coded.filter.len(), coded.position.dim()), (0, (0, 2)));
    // Rounding is counted, even where there is no code.
    assert!(coded.gap < 1e-12, "{}", coded.gap);
    bench.run("reconstruct m.safetensors codes --out back").ok();
    assert!(read_floats(&bench.path("back/test-0001.npy")).iter().all(|v| *v == 0.0));
    let evaluated = bench.run("evaluate m.safetensors test.npy --beta 1000 --json").ok().json();
    assert_eq!(evaluated["nonzeros"], 0.0);
}

#[test]
fn any_size_can_be_coded_and_files_keep_their_names() {
    let bench = Bench::with_model();
    crate::common::pictures(&bench, "photos", 1, 7);
    crate::common::picture(31, 12, 8).save(bench.path("photos/wide cat.v2.png")).unwrap();
    let call = ["code", "m.safetensors", "photos", "--preprocess", "gray,lcn", "--out", "a/b/codes"];
    let ran = bench.run_words(&call).ok();
    assert!(ran.stdout.contains("2 in a/b/codes"), "{}", ran.stdout);
    assert_eq!(code(&bench.path("a/b/codes/wide cat.v2.npz")).shape, [4, 12, 31]);
    bench.run("reconstruct m.safetensors a/b/codes --out back --format png").ok();
    assert_eq!(image::image_dimensions(bench.path("back/wide cat.v2.png")).unwrap(), (31, 12));
    assert!(!bench.path("back/1.npy").exists());
}

#[test]
fn show_and_info() {
    let bench = Bench::with_model();
    let shown = bench.run("show m.safetensors --out d.png").ok();
    assert_eq!(shown.stdout, "");
    assert!(image::open(bench.path("d.png")).unwrap().width() > 10);
    let ran = bench.run("info m.safetensors").ok();
    for part in ["n_filters", "beta", "0.1", "checkpoint", "no", "largest norm"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    assert_eq!(ran.stderr, "");
    let json = bench.run("info m.safetensors --json").ok().json();
    assert_eq!((&json["n_filters"], &json["channels"]), (&4.into(), &1.into()));
    assert_eq!(json["filter_shape"], serde_json::json!([5, 5]));
    assert!(json["checkpoint"].is_null());
    assert_eq!(json["config"], model(&bench.path("m.safetensors")).config);
}

#[test]
fn single_filters_are_reconstructed_and_add_up() {
    let bench = Bench::with_data(4);
    bench.learn("train.npy --out m.safetensors --beta 0.1 --dtype f64").ok();
    bench.run("code m.safetensors test.npy --out codes").ok();
    bench.run("reconstruct m.safetensors codes --format npy --out whole").ok();
    bench.run("reconstruct m.safetensors codes --format npy --each-filter --out each").ok();
    bench.run("reconstruct m.safetensors codes --format npy --only 1,3 --out pair").ok();
    bench.run("reconstruct m.safetensors codes --format npy --only 1,3 --each-filter --out two").ok();
    assert_eq!((bench.names("each").len(), bench.names("pair").len(), bench.names("two").len()), (8, 2, 4));
    let read = |name: &str| read_floats(&bench.path(name));
    for sample in ["test-0000", "test-0001"] {
        let each: Vec<_> = (0..4).map(|k| read(&format!("each/{sample}-filter{k}.npy"))).collect();
        let close = |a: ndarray::ArrayD<f64>, b: ndarray::ArrayD<f64>| (&a - &b).iter().all(|d| d.abs() < 1e-12);
        assert!(close(&each[0] + &each[1] + &each[2] + &each[3], read(&format!("whole/{sample}.npy"))));
        assert!(close(&each[1] + &each[3], read(&format!("pair/{sample}.npy"))));
        assert!(close(each[3].clone(), read(&format!("two/{sample}-filter3.npy"))));
        assert!(each.iter().any(|part| part.iter().any(|v| v.abs() > 0.01)));
    }
    let refused = |words: &str, parts: &[&str]| {
        bench.run(&format!("reconstruct m.safetensors codes --out x {words}")).refused(1, parts);
        assert!(!bench.path("x").exists());
    };
    refused("--only 4", &["--only", "below 4", "4"]);
    refused("--each-filter --original test.npy", &["--original", "belongs to no filter"]);
}
