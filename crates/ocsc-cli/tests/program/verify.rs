//! `ocsc verify`: honest codes pass, and what was changed does not; its figures are those of the definitions.

use crate::common::npz::rewrite;
use crate::common::{Bench, assert_close, code, judge, model, pictures, read_npy, stack, write_npy};
use ndarray::{Array2, Ix3};

#[test]
fn figures_are_those_of_the_definitions() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    let json = bench.run("verify m.safetensors test.npy codes --json").ok().json();
    assert_eq!((&json["pass"], &json["samples"], &json["failed"]), (&true.into(), &2.into(), &0.into()));
    let dictionary = model(&bench.path("m.safetensors")).dictionary;
    let images = read_npy::<f32>(&bench.path("test.npy")).into_dimensionality::<Ix3>().unwrap();
    for (i, file) in json["files"].as_array().unwrap().iter().enumerate() {
        let code = code(&bench.path(&format!("codes/test-000{i}.npz")));
        let judged = judge(&dictionary, &images.index_axis(ndarray::Axis(0), i).mapv(f64::from), &code, 0.1);
        assert_close(file["objective"].as_f64().unwrap(), judged.objective, 1e-12);
        assert!((file["gap"].as_f64().unwrap() - judged.gap).abs() < 1e-12);
        assert_eq!(file["claimed_gap"], code.gap);
        assert_eq!(file["source"], format!("test.npy[{i}]"));
    }
    let ran = bench.run("verify m.safetensors test.npy codes").ok();
    assert!(
        ran.stdout.contains("pass  codes/test-0000.npz") && ran.stdout.contains("2 of 2 codes pass"),
        "{}",
        ran.stdout
    );
}

/// Boundaries, channels, signs, scalars, masks, signals and volumes.
#[test]
fn codes_of_every_kind_pass() {
    let bench = Bench::new();
    pictures(&bench, "photos", 2, 3);
    write_npy(&bench.path("mask.npy"), &Array2::from_shape_fn((20, 20), |(y, x)| (y * x) % 3 != 1));
    write_npy(&bench.path("signals.npy"), &stack(3, 1, 60, 4).into_shape_with_order((3, 60)).unwrap());
    write_npy(&bench.path("volume.npy"), &stack(6, 9, 8, 5));
    for (data, reading, options) in [
        ("photos", "", "--preprocess gray,lcn,taper"),
        ("photos", "", "--preprocess lowpass=3 --boundary free --nonnegative"),
        ("photos", "", "--preprocess gray,mean --boundary zero --dtype f64"),
        ("photos", "--mask mask.npy", "--preprocess gray,mean --boundary free"),
        ("photos", "--mask mask.npy", "--preprocess mean --boundary zero --dtype f64"),
        ("photos", "--mask mask.npy", "--preprocess gray --boundary circular"),
        ("photos", "--crop 16", "--preprocess gray --method ocsc-paper"),
        ("signals.npy", "--axes NW", "--boundary free --dtype f64"),
        ("signals.npy", "--axes CW", "--boundary zero"),
        ("volume.npy", "--axes DHW", "--size 3 --boundary free"),
    ] {
        let size = if options.contains("--size") { "" } else { "--size 5" };
        let learn =
            format!("learn {data} {reading} {options} --filters 4 {size} --beta 0.05 --threads 2 --out m.safetensors");
        bench.run(&learn).ok();
        for tol in ["0.01", "1e-4"] {
            std::fs::remove_dir_all(bench.path("codes")).ok();
            bench.run(&format!("code m.safetensors {data} {reading} --tol {tol} --out codes")).ok();
            let ran = bench.run(&format!("verify m.safetensors {data} {reading} codes"));
            assert_eq!(ran.code, Some(0), "{data} {reading} {options} --tol {tol}: {}{}", ran.stdout, ran.stderr);
        }
    }
}

/// Changes the last bytes of a member, the numbers of a one-dimensional or single value.
fn change(bench: &Bench, member: &str, number: impl Fn(f64) -> f64) {
    rewrite(&bench.path("codes/test-0001.npz"), |members| {
        let data = &mut members.get_mut(member).unwrap().data;
        if member == "value" {
            let old = f32::from_le_bytes(data[..4].try_into().unwrap());
            data[..4].copy_from_slice(&(number(old.into()) as f32).to_le_bytes());
        } else {
            let old = f64::from_le_bytes(data[..8].try_into().unwrap());
            data[..8].copy_from_slice(&number(old).to_le_bytes());
        }
    });
}

/// A claim below what can be shown is refuted; one above it is no false claim.
#[test]
fn too_small_a_gap_of_a_concave_penalty_fails() {
    let bench = Bench::with_model();
    for penalty in ["log-sum:0.1", "mcp:3", "lq:0.5"] {
        bench.run(&format!("code m.safetensors test.npy --penalty {penalty} --out codes")).ok();
        bench.run("verify m.safetensors test.npy codes").ok();
        change(&bench, "gap", |gap| gap / 100.0);
        let ran = bench.run("verify m.safetensors test.npy codes");
        assert!(ran.stdout.contains("FAIL  codes/test-0001.npz: a gap of"), "{penalty}: {}", ran.stdout);
        ran.failed(1, &["1 of 2 codes is not what the file says"]);
    }
}

#[test]
fn what_was_changed_fails() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    let whole = bench.read("codes/test-0001.npz");
    let fails = |member: &str, number: &dyn Fn(f64) -> f64, with_checksum: bool, parts: &[&str]| {
        bench.write("codes/test-0001.npz", &whole);
        change(&bench, member, number);
        if !with_checksum {
            rewrite(&bench.path("codes/test-0001.npz"), |members| drop(members.remove("sha256")));
        }
        let ran = bench.run("verify m.safetensors test.npy codes");
        assert!(ran.stdout.contains("pass  codes/test-0000.npz"), "{}", ran.stdout);
        let line = ran.stdout.lines().find(|line| line.starts_with("FAIL  codes/test-0001.npz"));
        let line = line.unwrap_or_else(|| panic!("a changed {member} passes: {}", ran.stdout)).to_owned();
        parts.iter().for_each(|part| assert!(line.contains(part), "{line}"));
        ran.failed(1, &["1 of 2 codes is not what the file says"]);
    };
    // With the checksum of the file, and, as codes from before have none, without.
    for with_checksum in [true, false] {
        fails("gap", &|gap| gap / 100.0, with_checksum, &["the file says"]);
        fails("gap", &|_| 0.0, with_checksum, &["the file says 0"]);
        fails("gap", &|_| 0.5, with_checksum, &["gap", "the file says 5.000e-1"]);
        fails("gap", &|_| f64::NAN, with_checksum, &["gap"]);
        fails("objective", &|objective| 0.999 * objective, with_checksum, &["objective"]);
        fails("value", &|value| value + 0.1, with_checksum, &[]);
        fails("value", &|value| -value, with_checksum, &["objective"]);
        fails("beta", &|beta| 1.01 * beta, with_checksum, &["objective"]);
    }
    // So small a change that no figure shows it.
    fails("value", &|value| value * (1.0 + 1e-6), true, &["changed after it was written"]);
    let json = bench.run("verify m.safetensors test.npy codes --json").json();
    assert_eq!((&json["pass"], &json["failed"]), (&false.into(), &1.into()));
}

#[test]
fn codes_of_another_model_or_other_data_fail() {
    let bench = Bench::with_model();
    bench.run("code m.safetensors test.npy --out codes").ok();
    bench.learn("train.npy --out other.safetensors --beta 0.1 --seed 5").ok();
    let ran = bench.run("verify other.safetensors test.npy codes");
    assert!(ran.stdout.contains("another dictionary"), "{}", ran.stdout);
    ran.failed(1, &["2 of 2 codes"]);
    // Codes that do not say so fail by their figures.
    for i in 0..2 {
        rewrite(&bench.path(&format!("codes/test-000{i}.npz")), |members| {
            members.retain(|name, _| {
                ["filter", "position", "value", "shape", "objective", "gap", "beta"].contains(&name.as_str())
            });
        });
    }
    bench.run("verify m.safetensors test.npy codes").ok();
    let ran = bench.run("verify other.safetensors test.npy codes");
    assert!(ran.stdout.contains("the objective is"), "{}", ran.stdout);
    ran.failed(1, &["2 of 2 codes"]);
    write_npy(&bench.path("test.npy"), &stack(2, 16, 16, 98));
    bench.run("verify m.safetensors test.npy codes").failed(1, &["2 of 2 codes"]);
    bench.run("verify m.safetensors test.npy").refused(1, &["test.npy", "expected data and a folder of codes"]);
    bench.run("verify m.safetensors test.npy nowhere").refused(1, &["nowhere", "expected a folder of codes"]);
}

#[test]
fn models_and_checkpoints_are_checked_by_themselves() {
    let bench = Bench::with_model();
    let ran = bench.run("verify m.safetensors").ok();
    for part in ["holds", "a finished model", "pass"] {
        assert!(ran.stdout.contains(part), "{}", ran.stdout);
    }
    for dtype in ["f32", "f64"] {
        bench.learn(&format!("train.npy --beta 0.1 --dtype {dtype} --checkpoint-every 1 --out c.safetensors")).ok();
        let json = bench.run("verify c.safetensors --json").ok().json();
        assert_eq!((&json["pass"], &json["checkpoint"]), (&true.into(), &true.into()));
    }
    let mut bytes = crate::common::unsealed(&bench.read("c.safetensors"));
    // Without a checksum a wrong number is found by what it would mean: the energies of phi, in f64.
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let phi = header["state.phi"]["data_offsets"].as_array().unwrap();
    let [from, to] = [0, 1].map(|i| end + phi[i].as_u64().unwrap() as usize);
    for number in bytes[from..to].chunks_mut(8) {
        let value = f64::from_le_bytes((&*number).try_into().unwrap());
        number.copy_from_slice(&(-value).to_le_bytes());
    }
    bench.write("c.safetensors", &bytes);
    bench.run("verify c.safetensors").refused(1, &["c.safetensors", "phi", "no negative energy"]);
}
