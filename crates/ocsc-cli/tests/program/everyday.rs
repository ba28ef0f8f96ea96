//! What a working day asks for: the same split again, one row per sample, a page of a run, one sentence about a model.

use crate::common::{Bench, dictionary_bytes, model, picture, read_npy};
use serde_json::json;

/// Six colour photos of 36x30.
fn photos(bench: &Bench) {
    std::fs::create_dir_all(bench.path("photos")).unwrap();
    for i in 0..6 {
        picture(36, 30, i).save(bench.path(&format!("photos/p{i}.png"))).unwrap();
    }
}

#[test]
fn photos_keep_their_colours_unless_the_paper_is_asked_for() {
    let bench = Bench::new();
    photos(&bench);
    bench.learn("photos --out colour.safetensors").ok();
    let colour = model(&bench.path("colour.safetensors"));
    assert_eq!(colour.config["preprocess"], json!(["lowpass=5", "scale"]));
    assert_eq!(colour.config["boundary"], "free");
    bench.learn("photos --preset paper --out paper.safetensors").ok();
    let paper = model(&bench.path("paper.safetensors"));
    assert_eq!(
        (&paper.config["preprocess"], &paper.config["boundary"]),
        (&json!(["gray", "lcn", "taper"]), &json!("circular"))
    );
    // Without the blended border, in the units of the photos.
    let said = bench.run("evaluate paper.safetensors photos --json").ok().json();
    assert!(said["psnr_original"].as_f64().unwrap() > 10.0 && said["psnr_original_peak"] == 1.0, "{said}");
}

#[test]
fn what_learn_held_out_is_evaluated_again() {
    let bench = Bench::new();
    photos(&bench);
    let split = "--test-fraction 0.34 --seed 3";
    let learned = bench.learn(&format!("photos {split} --write-split held.txt --json --out m.safetensors")).ok().json();
    let held = bench.text("held.txt");
    assert_eq!(held.lines().count(), 2, "{held}");
    assert!(held.lines().all(|name| name.starts_with("photos/p")), "{held}");
    // The model's seed is the split's.
    for options in ["--test-fraction 0.34", "--test-list held.txt", "--test-fraction 0.34 --split-seed 3"] {
        let said = bench.run(&format!("evaluate m.safetensors photos {options} --json")).ok().json();
        assert_eq!((&said["samples"], &said["objective"]), (&json!(2), &learned["test"]["objective"]), "{options}");
    }
    bench.run("evaluate m.safetensors photos --test-fraction 0.3 --test-list held.txt").refused(2, &["--test-list"]);
    bench.learn("photos --write-split x.txt --out y").refused(2, &["--write-split"]);
    bench
        .learn(&format!("photos {split} --write-split photos/p0.png --out y"))
        .refused(1, &["--write-split", "photos/p0.png"]);
}

#[test]
fn evaluate_writes_a_row_per_sample_and_compares_with_clean_samples() {
    let bench = Bench::new();
    photos(&bench);
    bench.learn("photos --passes 2 --out m.safetensors").ok();
    let said = bench.run("evaluate m.safetensors photos --reference photos --csv rows.csv --json").ok().json();
    let text = bench.text("rows.csv");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 7);
    let mean = |column: &str| {
        let i = rows[0].iter().position(|name| *name == column).unwrap();
        rows[1..].iter().map(|row| row[i].parse::<f64>().unwrap()).sum::<f64>() / 6.0
    };
    for column in ["objective", "data_term", "psnr", "psnr_original", "psnr_reference", "ssim_reference", "nonzeros"] {
        let (found, expected) = (mean(column), said[column].as_f64().unwrap());
        assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{column} {found} {expected}");
    }
    // The samples themselves are the clean ones.
    assert!((mean("psnr_reference") - mean("psnr_original")).abs() < 1e-9);
    assert!(rows[1][0].ends_with("photos/p0.png"), "{:?}", rows[1]);
    let table = bench.run("evaluate m.safetensors photos --reference photos").ok().stdout;
    assert!(table.contains("to --reference") && table.contains("SSIM"), "{table}");
    bench.run("evaluate m.safetensors photos --csv photos/p1.png").refused(1, &["--csv", "photos/p1.png"]);
    bench.run("evaluate m.safetensors photos/p1.png --reference m.safetensors").refused(1, &["--reference"]);
}

#[test]
fn a_run_has_a_page_and_a_model_a_sentence() {
    let bench = Bench::new();
    photos(&bench);
    bench.learn("photos --test-fraction 0.34 --passes 2 --report page.html --out m.safetensors").ok();
    let page = bench.text("page.html");
    for words in [
        "Training objective per sample",
        "Test objective per sample",
        "<dd>photos --test-fraction 0.34</dd>",
        "Scale of the difference",
        "test PSNR",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let (top, rest) = page.split_once("<details>").unwrap();
    assert!(top.contains("--passes 2") && !top.contains("forgetting"), "the settings that were typed, and no others");
    assert!(rest.split_once("</details>").unwrap().0.contains("forgetting"));
    assert_eq!(page.matches("alt=\"photos/p").count(), 6, "three pictures of each of two held-out photos");
    let said = bench.run("info m.safetensors").ok().stdout;
    let first = said.lines().next().unwrap();
    assert!(first.starts_with("4 colour 5x5 filters learned from 4 samples in 2 passes by ocsc"), "{first}");
    assert!(!said.contains("update.rho"), "{said}");
    assert_eq!(bench.run("info m.safetensors --json").ok().json()["samples"], 4);
}

#[test]
fn arrays_have_the_precision_of_the_model() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    bench.run("reconstruct m.safetensors codes --format npy --out back").ok();
    let name = bench.names("back").into_iter().next().unwrap();
    read_npy::<f32>(&bench.path(&format!("back/{name}")));
}

#[test]
fn large_samples_are_learned_from_in_pieces() {
    let bench = Bench::with_data(2);
    let few = bench.learn("train.npy --out few.safetensors").ok();
    assert!(few.stderr.contains("2 updates in all") && few.stderr.contains("--tile"), "{}", few.stderr);
    // Samples of 16x16 take 2 x 3 pieces of 8x6 each.
    let tiled = bench.learn("train.npy --tile 8x6 --passes 2 --json --log a.jsonl --out tiled.safetensors").ok();
    assert_eq!(tiled.json()["samples"], 24);
    assert!(!tiled.stderr.contains("updates in all"), "{}", tiled.stderr);
    let pieces: Vec<f64> = bench.log("a.jsonl").iter().filter_map(|line| line["objective"].as_f64()).collect();
    assert!(pieces.windows(2).any(|pair| pair[0] != pair[1]));
    let cropped = bench.learn("train.npy --crop 8 --crops-per-sample 5 --json --out cropped.safetensors").ok();
    assert_eq!(cropped.json()["samples"], 10);
    bench.learn("train.npy --crops-per-sample 5 --out x").refused(2, &["--crop"]);
    bench.learn("train.npy --tile 4x4x4 --out x").refused(1, &["--tile", "2 lengths"]);
    // What is stopped goes on in the same pieces.
    bench.learn("train.npy --tile 8x6 --passes 1 --checkpoint-every 12 --out half.safetensors").ok();
    bench.run("learn train.npy --tile 6x8 --resume half.safetensors --passes 2").refused(1, &["--tile was 8x6"]);
    bench.run("learn train.npy --resume half.safetensors --passes 2 --threads 1").ok();
    assert_eq!(dictionary_bytes(&bench.path("half.safetensors")), dictionary_bytes(&bench.path("tiled.safetensors")));
}
