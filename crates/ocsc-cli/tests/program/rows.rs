//! Rows of the method table that keep little or no history: `sgd`, `aocdl`, `scsc`, and base filters with `ocsc`.

use crate::common::npz::{Member, rewrite};
use crate::common::{Bench, assert_close, code, dictionary_bytes, judge, model, read_floats, stack};
use ndarray::{Array4, Axis, Ix1, Ix2, OwnedRepr};
use std::path::Path;

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
}

/// Codes of filters of the sample's own say how these are made of the model's, and are worth what they claim with them: the
/// reconstruction is the sample without what is left over.
#[test]
fn codes_of_filters_of_the_samples_own_come_back() {
    let bench = Bench::with_data(4);
    bench.learn("train.npy --method scsc --base-filters 2 --beta 0.1 --out m.safetensors").ok();
    bench.run("code m.safetensors test.npy --tol 0.003 --out codes").ok();
    bench.run("reconstruct m.safetensors codes --format npy --out back").ok();
    let evaluated = bench.run("evaluate m.safetensors test.npy --tol 0.003 --json").ok().json();
    let base = model(&bench.path("m.safetensors")).dictionary;
    let mut objective = 0.0;
    for (i, x) in stack(2, 16, 16, 99).mapv(f64::from).outer_iter().enumerate() {
        let path = bench.path(&format!("codes/test-000{i}.npz"));
        let own = own_filters(&path, &base);
        assert!((&own - &base).iter().any(|d| d.abs() > 0.01), "the model's filters");
        let coded = code(&path);
        let judged = judge(&own, &x.to_owned(), &coded, 0.1);
        assert_close(judged.objective, coded.objective, 1e-5);
        assert!((judged.gap - coded.gap).abs() < 2e-5, "{} and {}", judged.gap, coded.gap);
        let back = read_floats(&bench.path(&format!("back/test-000{i}.npy"))).into_dimensionality::<Ix2>().unwrap();
        assert!((&back - &judged.reconstruction).iter().all(|d| d.abs() < 1e-6));
        let left = (&x - &back).iter().map(|r| 0.5 * r * r).sum::<f64>();
        assert_close(left, judged.data_term, 1e-5);
        objective += coded.objective / 2.0;
    }
    assert_close(evaluated["objective"].as_f64().unwrap(), objective, 1e-12);
    let ran = bench.run("events m.safetensors test.npy --out e.csv --json").ok().json();
    assert!(ran["events"].as_u64().unwrap() > 0);
}

/// (K, 1, h, w): sum_r mixing(k, r) D_base(r), rounded to f32.
fn own_filters(path: &Path, base: &Array4<f64>) -> Array4<f64> {
    let mut npz = ndarray_npy::NpzReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let of_model = npz.by_name::<OwnedRepr<i64>, Ix1>("base").unwrap();
    let mixing = npz.by_name::<OwnedRepr<f64>, Ix2>("mixing").unwrap();
    assert_eq!(mixing.dim(), (base.dim().0, of_model.len()));
    let mut own = Array4::zeros(base.raw_dim());
    for ((k, r), weight) in mixing.indexed_iter() {
        own.index_axis_mut(Axis(0), k).scaled_add(*weight, &base.index_axis(Axis(0), of_model[r] as usize));
    }
    own.mapv(|v: f64| f64::from(v as f32))
}

/// In every precision and with every boundary; and what was changed is refused, with and without the checksum of the file.
#[test]
fn codes_of_filters_of_the_samples_own_are_verified() {
    for options in ["--boundary free --dtype f64", "--boundary zero", "--nonnegative"] {
        let bench = Bench::with_data(4);
        let learn = format!("train.npy --method scsc --base-filters 2 --beta 0.1 {options} --out m.safetensors");
        bench.learn(&learn).ok();
        for dtype in ["f32", "f64"] {
            bench.run(&format!("code m.safetensors test.npy --dtype {dtype} --tol 1e-3 --out codes")).ok();
            let ran = bench.run("verify m.safetensors test.npy codes");
            assert_eq!(ran.code, Some(0), "{options} {dtype}: {}{}", ran.stdout, ran.stderr);
        }
    }
    let bench = Bench::with_data(4);
    bench.learn("train.npy --method scsc --base-filters 2 --beta 0.1 --out m.safetensors").ok();
    bench.run("code m.safetensors test.npy --out codes").ok();
    bench.run("verify m.safetensors test.npy codes").ok();
    let whole = bench.read("codes/test-0001.npz");
    type Members = std::collections::BTreeMap<String, Member>;
    let fails = |change: &dyn Fn(&mut Members), parts: &[&str]| {
        bench.write("codes/test-0001.npz", &whole);
        rewrite(&bench.path("codes/test-0001.npz"), |members| change(members));
        let ran = bench.run("verify m.safetensors test.npy codes");
        let line = ran.stdout.lines().find(|line| line.starts_with("FAIL  codes/test-0001.npz")).unwrap_or("none");
        parts.iter().for_each(|part| assert!(line.contains(part), "{line}"));
        ran.failed(1, &["1 of 2 codes is not what the file says"]);
    };
    let weigh = |members: &mut Members, factor: f64| {
        for number in members.get_mut("mixing").unwrap().data.chunks_exact_mut(8) {
            let weight = f64::from_le_bytes((&*number).try_into().unwrap());
            number.copy_from_slice(&(factor * weight).to_le_bytes());
        }
    };
    let unsealed = |members: &mut Members| drop(members.remove("sha256"));
    fails(&|members| weigh(members, 0.99), &["objective"]);
    fails(&|members| weigh(members, 1.0 - 1e-12), &["changed after it was written"]);
    for change in [&|members: &mut Members| weigh(members, 0.99), &|members: &mut Members| {
        members.get_mut("base").unwrap().data.rotate_left(8);
    }] as [&dyn Fn(&mut Members); 2]
    {
        fails(&|members| (change(members), unsealed(members)).1, &["objective"]);
    }
    fails(&|members| drop(members.remove("mixing")), &["objective"]);
    fails(&|members| members.get_mut("base").unwrap().data[0] = 77, &["base", "below 4", "77"]);
    fails(&|members| members.get_mut("mixing").unwrap().data[7] = 0x7f, &[]);
}
