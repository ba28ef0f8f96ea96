//! Penalties, losses, weights and budgets as flags of `learn`, `code` and `evaluate`; their codes pass `verify`.

use crate::common::{Bench, model, stack, write_npy};
use ndarray::{Array1, Array2, Array3};

/// Options of `code` that change the problem.
const PROBLEMS: [&str; 12] = [
    "--penalty elastic:0.2",
    "--penalty log-sum:0.1",
    "--penalty mcp:2.5",
    "--penalty lq:0.5",
    "--loss huber:0.1",
    "--weights w.npy",
    "--weights inverse:0.1",
    "--nonzeros 20",
    "--error 0.2",
    "--explained 0.6",
    "--coder omp --nonzeros 12",
    "--refit",
];

#[test]
fn codes_of_every_problem_pass_verify() {
    let bench = Bench::with_model();
    let filters = model(&bench.path("m.safetensors")).dictionary.shape()[0];
    write_npy(&bench.path("w.npy"), &Array1::from_shape_fn(filters, |k| 0.5 + k as f64 / filters as f64));
    for options in PROBLEMS {
        for dtype in ["f32", "f64"] {
            let json =
                bench.run(&format!("code m.safetensors test.npy {options} --dtype {dtype} --out codes --json")).ok();
            assert!(json.json()["nonzeros"].as_f64().unwrap() > 0.0, "{options}");
            let ran = bench.run("verify m.safetensors test.npy codes");
            assert_eq!(ran.code, Some(0), "{options} {dtype}: {}{}", ran.stdout, ran.stderr);
            bench.run("reconstruct m.safetensors codes --out back").ok();
            for folder in ["codes", "back"] {
                std::fs::remove_dir_all(bench.path(folder)).unwrap();
            }
        }
        let json = bench.run(&format!("evaluate m.safetensors test.npy {options} --json")).ok().json();
        let number = |name: &str| json[name].as_f64().unwrap();
        assert!((number("objective") - number("data_term") - number("penalty")).abs() < 1e-9 * number("objective"));
    }
}

/// Such samples are certified by a dual point that is scaled locally; their files hold less than the residual alone can show.
#[test]
fn codes_of_long_signals_pass_verify() {
    let bench = Bench::new();
    // Bumps of a few widths, at places and of heights that repeat only after a long time.
    let bump = |x: usize, i: usize| {
        let (centre, width) = (97.3 * i as f64, 2.0 + (i * 7 % 11) as f64);
        let height = 1.0 + (i * 31 % 17) as f64;
        height * (-((x as f64 - centre) / width).powi(2)).exp()
    };
    let near = |x: usize| (x / 97).saturating_sub(1)..=(x / 97) + 2;
    let value = |x: usize| near(x).map(|i| bump(x, i)).sum::<f64>() + 0.3 * ((x * x % 7919) as f64 / 7919.0 - 0.5);
    write_npy(&bench.path("long.npy"), &Array2::from_shape_fn((1, 6000), |(_, x)| value(x)));
    let words = "--axes NW --filters 6 --size 16 --init patches --boundary zero --beta 0.2";
    bench.run(&format!("learn long.npy {words} --tile whole --passes 2 --out long.safetensors")).ok();
    for dtype in ["f32", "f64"] {
        bench.run(&format!("code long.safetensors long.npy --dtype {dtype} --tol 0.003 --out codes")).ok();
        let found = bench.run("verify long.safetensors long.npy codes --json").ok().json();
        let file = &found["files"][0];
        let (gap, claimed) = (file["gap"].as_f64().unwrap(), file["claimed_gap"].as_f64().unwrap());
        assert!(claimed > 0.0 && claimed <= 0.003 && gap <= claimed * 1.001 + 1e-4, "{dtype}: {found}");
        std::fs::remove_dir_all(bench.path("codes")).unwrap();
    }
}

#[test]
fn a_changed_code_of_another_problem_fails_verify() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --penalty log-sum:0.1 --out a").ok();
    bench.run("code m.safetensors test.npy --out b").ok();
    // Codes that are there were made for another problem.
    bench.run("code m.safetensors test.npy --skip-existing --out a").refused(1, &["problem", "log-sum:0.1"]);
    bench.run("code m.safetensors test.npy --skip-existing --penalty log-sum:0.1 --out a").ok();
    bench.run("code m.safetensors test.npy --skip-existing --refit --out b").refused(1, &["problem", "plain"]);
}

#[test]
fn budgets_are_kept() {
    let bench = Bench::with_model();
    let json = bench.run("evaluate m.safetensors test.npy --nonzeros 15 --json").ok().json();
    assert!((8.0..=15.0).contains(&json["nonzeros"].as_f64().unwrap()), "{json}");
    let few = bench.run("evaluate m.safetensors test.npy --coder omp --nonzeros 15 --json").ok().json();
    assert_eq!(few["nonzeros"], 15.0);
    assert!(few["psnr"].as_f64().unwrap() > json["psnr"].as_f64().unwrap());
    let refit = bench.run("evaluate m.safetensors test.npy --nonzeros 15 --refit --json").ok().json();
    assert!(refit["psnr"].as_f64().unwrap() > json["psnr"].as_f64().unwrap());
}

#[test]
fn learning_records_its_problem_and_code_repeats_it() {
    let bench = Bench::with_data(4);
    let learn = "learn train.npy --filters 4 --size 5 --beta 0.1 --threads 1 --out m.safetensors";
    bench.run(&format!("{learn} --penalty log-sum:0.2 --loss huber:0.5")).ok();
    let info = bench.run("info m.safetensors").ok().stdout;
    assert!(info.contains("log-sum:0.2") && info.contains("huber:0.5"), "{info}");
    bench.run("code m.safetensors train.npy --out codes").ok();
    bench.run("verify m.safetensors train.npy codes").ok();
    bench.run(&format!("{learn} --force --method ocsc-paper --penalty mcp:2")).refused(1, &["penalty", "ocsc-paper"]);
}

#[test]
fn weights_of_values_and_coefficients_are_read_from_files() {
    let bench = Bench::with_model();
    let (height, width) = (16, 16);
    write_npy(&bench.path("x.npy"), &stack(2, height, width, 3));
    write_npy(&bench.path("half.npy"), &Array2::<f64>::from_elem((height, width), 0.5));
    write_npy(&bench.path("ones.npy"), &Array2::<f64>::from_elem((height, width), 1.0));
    let objective = |options: &str| {
        let json =
            bench.run(&format!("evaluate m.safetensors x.npy --tol 1e-6 --dtype f64 --json {options}")).ok().json();
        json["objective"].as_f64().unwrap()
    };
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5 * b, "{a} {b}");
    close(objective("--data-weights ones.npy"), objective(""));
    // 1/2 of the data term at half the beta is half the problem.
    close(objective("--data-weights half.npy --beta 0.05"), 0.5 * objective("--beta 0.1"));
    let filters = model(&bench.path("m.safetensors")).dictionary.shape()[0];
    write_npy(&bench.path("twos.npy"), &Array3::<f64>::from_elem((filters, height, width), 2.0));
    close(objective("--coefficient-weights twos.npy --beta 0.05"), objective("--beta 0.1"));
    bench.run("code m.safetensors x.npy --coefficient-weights twos.npy --data-weights half.npy --out codes").ok();
    bench.run("verify m.safetensors x.npy --coefficient-weights twos.npy --data-weights half.npy codes").ok();
    bench.run("learn x.npy --data-weights half.npy --filters 3 --size 5 --beta 0.1 --out n.safetensors").ok();
}

#[test]
fn what_cannot_be_is_refused_with_a_sentence() {
    let bench = Bench::with_model();
    write_npy(&bench.path("w.npy"), &Array1::<f64>::from_elem(3, 1.0));
    write_npy(&bench.path("far.npy"), &Array2::<f64>::from_elem((16, 16), 7.0));
    for (options, code, words) in [
        ("--penalty l2", 2, "expected l1, elastic:MU"),
        ("--penalty mcp:0.5", 2, "GAMMA above 1"),
        ("--loss huber:-1", 2, "DELTA above 0"),
        ("--weights w.npy", 1, "one for each of"),
        ("--weights nowhere.npy", 2, "nowhere.npy"),
        ("--weights inverse:x", 2, "EPS above 0"),
        ("--nonzeros 0", 2, "at least 1"),
        ("--explained 1", 2, "not including, 1"),
        ("--error 0.1 --nonzeros 5", 1, "one budget"),
        ("--coder omp --penalty mcp:2", 1, "omp"),
        ("--data-weights far.npy", 1, "from 0 to 1"),
        ("--coefficient-weights far.npy", 1, "the shape of the code"),
    ] {
        let ran = bench.run(&format!("code m.safetensors test.npy {options} --strict --out codes"));
        assert_eq!(ran.code, Some(code), "{options}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{options}: {}", ran.stderr);
    }
}
