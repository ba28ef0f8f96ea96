//! Checksums of model files, statistics that cannot be, and what a run learned from.

use crate::common::old::old_form;
use crate::common::sealed::Parts;
use crate::common::*;
use ocsc::checkpoint::{Saved, from_bytes, to_bytes};
use ocsc::fingerprint::{Fingerprint, SampleId, SampleList};
use ocsc::learner::{initial, learner};
use ocsc::monitor::Silent;
use ocsc::settings::Boundary;
use ocsc::train::{Progress, TrainOptions, train};
use ocsc::{Config, Learner, Method, Real, Result, Sample};
use rand::RngExt;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

fn config<T: Real>(method: Method, seed: u64) -> Config {
    let small = Config { method, n_filters: 2, filter_shape: vec![2, 2], beta: 0.1, seed, ..Config::default() };
    Config { passes: 2, dtype: T::DTYPE, ..small }
}

/// A checkpoint after a few samples.
fn checkpoint<T: Real>(config: &Config, samples: &[Sample<T>]) -> Vec<u8> {
    let start = initial::<T>(config, samples[0].shape().channels).unwrap();
    let mut run = learner(config.clone(), start).unwrap();
    let ended =
        train(run.as_mut(), &samples, None, &TrainOptions::default(), Progress::default(), &mut Silent).unwrap();
    to_bytes(run.as_ref(), Some(&Progress { pass: 1, visited: 1, ..ended.progress })).unwrap()
}

fn small<T: Real>(seed: u64) -> Vec<Sample<T>> {
    made_of(&filters::<f64>(2, [1, 2, 2], seed), [1, 4, 5], 2, seed + 1)
}

fn read<T: Real>(bytes: &[u8]) -> Result<Saved<T>> {
    from_bytes(bytes, Path::new("m.safetensors"))
}

fn resumed<T: Real>(bytes: &[u8]) -> Result<Box<dyn Learner<T>>> {
    Ok(read::<T>(bytes)?.resume()?.0)
}

#[track_caller]
fn refused<T: Real>(bytes: &[u8], parts: &[&str]) {
    let message = resumed::<T>(bytes).err().expect("an error").to_string();
    for part in ["m.safetensors"].iter().chain(parts) {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_refused() {
    for method in [Method::Ocsc, Method::Fcsc] {
        let mut bytes = checkpoint::<f32>(&config::<f32>(method, 1), &small(1));
        assert!(resumed::<f32>(&bytes).is_ok());
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (at, around) = (bit / 8, String::from_utf8_lossy(&bytes[(bit / 8).saturating_sub(10)..bit / 8 + 1]));
            assert!(read::<f32>(&bytes).is_err(), "bit {} of byte {at}: {around}", bit % 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// One flipped bit in each of a thousand checkpoints, of all methods and both scalars.
#[test]
fn a_flipped_bit_of_a_thousand_checkpoints_is_refused() {
    fn one<T: Real>(method: Method, seed: u64) {
        let mut bytes = checkpoint::<T>(&config::<T>(method, seed), &small(seed));
        assert!(read::<T>(&bytes).unwrap().checksum.is_some());
        let bit = rng(seed).random_range(0..8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        let message = read::<T>(&bytes).expect_err("an error").to_string();
        assert!(message.contains("m.safetensors"), "{message}");
    }
    for seed in 0..1000 {
        let method = Method::ALL[seed as usize % Method::ALL.len()];
        if seed % 3 == 0 { one::<f64>(method, seed) } else { one::<f32>(method, seed) }
    }
}

#[test]
fn files_without_a_checksum_load_and_say_so() {
    let bytes = checkpoint::<f32>(&config::<f32>(Method::Ocsc, 2), &small(2));
    let (new, old) = (read::<f32>(&bytes).unwrap(), Parts::of(&bytes).unsealed());
    let saved = read::<f32>(&old).unwrap();
    assert!(saved.checksum.is_none() && new.checksum.is_some());
    assert_eq!(saved.dictionary, new.dictionary);
    assert_eq!(saved.dictionary_checksum, new.dictionary_checksum);
    // What goes on from it is sealed, and goes on alike.
    let again = |bytes: &[u8]| {
        let (run, progress) = read::<f32>(bytes).unwrap().resume().unwrap();
        to_bytes(run.as_ref(), Some(&progress)).unwrap()
    };
    assert!(again(&old) == bytes && again(&bytes) == bytes);
    // What is written by others, with a checksum of theirs, is read.
    let mut edited = Parts::of(&bytes);
    edited.edit("config", |config| config["beta"] = json!(0.2));
    assert_eq!(read::<f32>(&edited.sealed()).unwrap().config.beta, 0.2);
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    let message = read::<f32>(&changed).err().unwrap().to_string();
    assert!(message.contains("checksum") && message.contains("damaged or changed"), "{message}");
}

#[test]
fn dictionaries_are_known_by_their_numbers() {
    let single = initial::<f32>(&config::<f32>(Method::Ocsc, 3), 1).unwrap();
    let bytes = to_bytes(learner(config::<f32>(Method::Ocsc, 3), single.clone()).unwrap().as_ref(), None).unwrap();
    assert_eq!(read::<f32>(&bytes).unwrap().dictionary_checksum, single.checksum());
    assert_eq!(read::<f64>(&bytes).unwrap().dictionary_checksum, single.checksum());
    assert_eq!(read::<f64>(&bytes).unwrap().dictionary.checksum(), single.checksum());
    let double = initial::<f64>(&config::<f64>(Method::Ocsc, 3), 1).unwrap();
    let bytes = to_bytes(learner(config::<f64>(Method::Ocsc, 3), double.clone()).unwrap().as_ref(), None).unwrap();
    assert_eq!(read::<f32>(&bytes).unwrap().dictionary_checksum, double.checksum());
    assert_ne!(double.checksum(), single.checksum());
    assert_ne!(double.checksum(), initial::<f64>(&config::<f64>(Method::Ocsc, 4), 1).unwrap().checksum());
}

/// Sets number `i` of a tensor, given as its bytes.
fn set<const N: usize>(parts: &mut Parts, tensor: &str, i: usize, value: [u8; N]) {
    parts.tensor(tensor)[N * i..][..N].copy_from_slice(&value);
}

/// Every method in both scalars goes on from a checkpoint of the old form as from one of the new.
#[test]
fn checkpoints_of_the_old_form_go_on_bit_for_bit() {
    fn one<T: Real>(method: Method, samples: &[Sample<T>]) {
        let bytes = checkpoint::<T>(&config::<T>(method, 11), samples);
        let old = old_form(&bytes);
        assert!(Parts::of(&old).text("numbers").is_string() && Parts::of(&bytes).text("numbers").is_null());
        let new = bytes.clone();
        let resumed = |bytes: &[u8]| {
            let (mut run, progress) = read::<T>(bytes).unwrap().resume().unwrap();
            assert!(to_bytes(run.as_ref(), Some(&progress)).unwrap() == new, "{method}");
            train(run.as_mut(), &samples, None, &TrainOptions::default(), progress, &mut Silent).unwrap();
            run
        };
        assert_eq!(resumed(&old).dictionary(), resumed(&bytes).dictionary(), "{method}");
    }
    // Those that there were then.
    let is_newer = |method: &Method| matches!(method, Method::Sgd | Method::Aocdl | Method::Scsc);
    for method in Method::ALL.into_iter().filter(|method| !is_newer(method)) {
        one::<f32>(method, &small(11));
        one::<f64>(method, &small(11));
        if method.takes_masks() {
            let seen = |x: &Sample<f32>| (0..x.data().len()).map(|i| i % 3 != 1).collect();
            let masked = |x: Sample<f32>| Sample::masked(x.shape(), x.data().to_vec(), seen(&x)).unwrap();
            one::<f32>(method, &small(11).into_iter().map(masked).collect::<Vec<_>>());
        }
    }
}

/// A file that an earlier version wrote.
#[test]
fn a_checkpoint_of_an_earlier_version_loads() {
    let (run, progress) =
        read::<f32>(include_bytes!("../../../../fuzz/seeds/model/a.safetensors")).unwrap().resume().unwrap();
    let mut now = Parts::of(&to_bytes(run.as_ref(), Some(&progress)).unwrap());
    assert_eq!(now.tensor("state.constant"), f64::from_bits(1_073_963_008 << 32).to_le_bytes());
    assert_eq!(now.tensor("state.weight"), 1.0_f64.to_le_bytes());
    assert_eq!(now.tensor("state.updates"), [1_u64, 0].map(u64::to_le_bytes).as_flattened());
    assert_eq!(run.step(), 1);
}

/// Scalars of an old file that cannot be.
#[test]
fn old_scalars_that_cannot_be_are_refused() {
    let old = old_form(&checkpoint::<f32>(&config::<f32>(Method::Ocsc, 5), &small(5)));
    let numbers = |name: &str, value: serde_json::Value| {
        let mut parts = Parts::of(&old);
        parts.edit("numbers", |numbers| numbers[name] = value);
        parts.sealed()
    };
    refused::<f32>(&numbers("updates", json!([-1.0, 0.0])), &["updates", "whole numbers from 0 up"]);
    refused::<f32>(&numbers("updates", json!([1.5, 0.0])), &["updates", "whole numbers from 0 up"]);
    refused::<f32>(&numbers("updates", json!([1.0])), &["updates", "2 numbers"]);
    refused::<f32>(&numbers("seeded", json!([99.0, 0.0])), &["seeded", "at most the 4 updates"]);
    let sign = f64::to_bits(-3.0);
    refused::<f32>(&numbers("constant", json!([(sign >> 32) as f64, 0.0])), &["constant", "from 0 up"]);
    refused::<f32>(&numbers("more", json!([1.0])), &["statistics", "those of the method `ocsc`", "more"]);
}

#[test]
fn statistics_that_cannot_be_are_refused() {
    // Dense enough codes that every filter is in use.
    let config = Config { beta: 0.2, ..config::<f32>(Method::Ocsc, 5) };
    let noise = |seed| Sample::new(colour(1, [1, 8, 9]), normal(72, seed)).unwrap();
    let samples = [noise(1), noise(2)];
    let bytes = checkpoint::<f32>(&config, &samples);
    let changed = |tensor: &str, i: usize, value: f32| {
        let mut parts = Parts::of(&bytes);
        set(&mut parts, tensor, i, value.to_le_bytes());
        parts.sealed()
    };
    let phi: Vec<f32> =
        Parts::of(&bytes).tensor("state.phi").chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    // The energies are the largest entries; in either sign none may be beyond them.
    let largest = phi.iter().copied().fold(0.0, f32::max);
    assert!(largest > 0.0);
    let energy = phi.iter().position(|v| *v == largest).unwrap();
    refused::<f32>(&changed("state.phi", energy, -largest), &["phi", "no negative energy"]);
    refused::<f32>(&changed("state.phi", energy, 1e-9 * largest), &["saved `p", "energies"]);
    let other = phi.iter().position(|v| *v != 0.0 && *v < 0.5 * largest).unwrap();
    refused::<f32>(&changed("state.phi", other, 1.5 * largest), &["phi", "energies"]);
    refused::<f32>(&changed("state.phi", other, f32::NAN), &["phi", "finite"]);
    refused::<f32>(&changed("state.psi", 0, 1e6), &["psi", "energies"]);
    let mut parts = Parts::of(&bytes);
    set(&mut parts, "state.seeded", 0, 99_u64.to_le_bytes());
    refused::<f32>(&parts.sealed(), &["seeded", "at most the 4 updates"]);
    for (constant, said) in [(-3.0, "from 0 up"), (f64::NAN, "finite numbers"), (f64::INFINITY, "finite numbers")] {
        let mut parts = Parts::of(&bytes);
        set(&mut parts, "state.constant", 0, f64::to_le_bytes(constant));
        refused::<f32>(&parts.sealed(), &["constant", said]);
    }
    // The right bytes under the name of another type, and a type that no array has.
    for (tensor, dtype, said) in
        [("psi", "U32", "numbers in f32"), ("seeded", "F64", "numbers in u64"), ("psi", "I32", "I32")]
    {
        let mut parts = Parts::of(&bytes);
        parts.header[format!("state.{tensor}")]["dtype"] = json!(dtype);
        refused::<f32>(&parts.sealed(), &[tensor, said]);
    }
}

#[test]
fn states_of_other_methods_that_cannot_be_are_refused() {
    for (method, tensor, value, said) in [
        (Method::OcscPaper, "inverse_gram", -1e6, "positive definite"),
        (Method::OcscPaper, "inverse_gram", 1e6, "positive definite"),
        (Method::Ocdl1, "history", -1.0, "no negative energy"),
        (Method::Ocdl1, "lipschitz", -1.0, "from 0 up"),
        (Method::Ocdl2, "history", -1.0, "no negative energy"),
        (Method::Osc, "a", -1.0, "no negative energy"),
        (Method::Deconvnet, "lipschitz", -1.0, "from 0 up"),
    ] {
        let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(method, 6), &small(6)));
        set(&mut parts, &format!("state.{tensor}"), 0, f32::to_le_bytes(value));
        refused::<f32>(&parts.sealed(), &[tensor, said]);
    }
    let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::Aocdl, 6), &small(6)));
    set(&mut parts, "state.gram", 0, f32::to_le_bytes(1e6));
    refused::<f32>(&parts.sealed(), &["gram", "at any lag"]);
    let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::Sgd, 6), &small(6)));
    set(&mut parts, "state.step_size", 0, f32::to_le_bytes(-1.0));
    refused::<f32>(&parts.sealed(), &["step_size", "from 0 up"]);
    let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::Scsc, 6), &small(6)));
    set(&mut parts, "state.base_filters", 0, f32::to_le_bytes(7.0));
    refused::<f32>(&parts.sealed(), &["filter 0", "norm of at most 1"]);
    for rho in [0.0, -1.0, f64::NAN] {
        let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::OcscPaper, 6), &small(6)));
        set(&mut parts, "state.rho", 0, f64::to_le_bytes(rho));
        refused::<f32>(&parts.sealed(), &["rho"]);
    }
    let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::Fcsc, 6), &small(6)));
    set(&mut parts, "state.kept_masks", 0, [2]);
    refused::<f32>(&parts.sealed(), &["kept_masks", "zeros and ones"]);
    for (tensor, said) in [("kept_filters", "filters below 2"), ("kept_positions", "positions below 20")] {
        let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::Fcsc, 6), &small(6)));
        set(&mut parts, &format!("state.{tensor}"), 0, 70_000_u32.to_le_bytes());
        refused::<f32>(&parts.sealed(), &["code", said]);
    }
    let mut parts = Parts::of(&checkpoint::<f32>(&config::<f32>(Method::Fcsc, 6), &small(6)));
    set(&mut parts, "state.kept_atoms", 0, u64::MAX.to_le_bytes());
    refused::<f32>(&parts.sealed(), &["saved samples and codes"]);
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    let bytes = checkpoint::<f32>(&config::<f32>(Method::Ocsc, 7), &small(7));
    let edited = |name: &str, field: &str, value: serde_json::Value| {
        let mut parts = Parts::of(&bytes);
        parts.edit(name, |entry| entry[field] = value);
        parts.sealed()
    };
    refused::<f32>(&edited("config", "n_filters", json!(3)), &["n_filters", "expected 2", "found 3"]);
    refused::<f32>(&edited("config", "filter_shape", json!([2, 3])), &["filter_shape", "[2,2]", "[2,3]"]);
    refused::<f32>(&edited("config", "dtype", json!("f64")), &["dtype", "f32", "f64"]);
    refused::<f32>(&edited("progress", "visited", json!(3)), &["progress", "at most the 2 samples", "found 3"]);
    refused::<f32>(&edited("progress", "seconds", json!(-1.0)), &["progress", "from 0 up"]);
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Ocsc) {
        let changed = edited("config", "method", json!(method.name()));
        assert!(resumed::<f32>(&changed).is_err(), "the state of ocsc under the name of {method}");
    }
    let mut parts = Parts::of(&bytes);
    let end = parts.data.len();
    parts.header["state.more"] = json!({"dtype": "F32", "shape": [0], "data_offsets": [end, end]});
    refused::<f32>(&parts.sealed(), &["statistics", "those of the method `ocsc`", "more"]);
    // A file from elsewhere need not say how many filters it has.
    let mut parts = Parts::of(&bytes);
    *parts.text("config") = json!("{}");
    assert!(read::<f32>(&parts.sealed()).is_ok());
}

/// Long runs, all boundaries, masks and channels: what was learned honestly is never refused.
#[test]
fn statistics_of_real_runs_are_accepted() {
    fn one<T: Real>(boundary: Boundary, channels: usize, masked: bool, seed: u64) {
        let mut samples: Vec<Sample<T>> =
            made_of(&filters::<f64>(3, colour(channels, [1, 3, 3]), seed), [1, 9, 8], 4, seed + 1);
        if masked {
            for sample in &mut samples {
                let seen = (0..sample.data().len()).map(|i| i % 3 != 1).collect();
                *sample = Sample::masked(sample.shape(), sample.data().to_vec(), seen).unwrap();
            }
        }
        let mut config = Config { boundary, passes: 25, beta: 0.05, ..config::<T>(Method::Ocsc, seed) };
        (config.n_filters, config.filter_shape) = (9, vec![3, 3]);
        let bytes = checkpoint(&config, &samples);
        assert!(resumed::<T>(&bytes).is_ok(), "{boundary:?}: {}", resumed::<T>(&bytes).err().unwrap());
    }
    for (seed, boundary) in [Boundary::Circular, Boundary::Zero, Boundary::Free].into_iter().enumerate() {
        for masked in [false, true] {
            one::<f32>(boundary, 1, masked, 10 + seed as u64);
            one::<f64>(boundary, 2, masked, 20 + seed as u64);
        }
    }
}

fn list(names: &[&str], sizes: &[u32]) -> SampleList {
    let id = |(name, size): (&&str, &u32)| SampleId {
        name: (*name).to_owned(),
        bytes: 10 * u64::from(*size),
        size: [1, *size, *size],
    };
    SampleList::of(names.iter().zip(sizes).map(id))
}

fn print(options: &[(&str, &str)], samples: Option<SampleList>) -> Fingerprint {
    let options = options.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    Fingerprint { options, choices: BTreeMap::new(), samples }
}

#[test]
fn fingerprints_say_what_differs() {
    let set = || list(&["a.png", "b.png", "c.png"], &[100, 90, 80]);
    let old = print(&[("crop", "64")], Some(set()));
    assert_eq!(old.difference(&old), None);
    let says = |now: &Fingerprint, parts: &[&str]| {
        let said = old.difference(now).unwrap();
        parts.iter().for_each(|part| assert!(said.contains(part), "{said}"));
    };
    says(&print(&[], Some(set())), &["--crop was 64, now not given"]);
    says(&print(&[("crop", "32")], Some(set())), &["--crop was 64, now 32"]);
    says(&print(&[("crop", "64"), ("rate", "8000")], Some(set())), &["--rate was not given, now 8000"]);
    let options = [("crop", "64")];
    let now = |names: &[&str], sizes: &[u32]| print(&options, Some(list(names, sizes)));
    says(
        &now(&["a.png", "c.png", "b.png"], &[100, 80, 90]),
        &["sample 2 was b.png (90x90, 900 bytes), now c.png (80x80"],
    );
    says(&now(&["a.png", "b.png", "c.png"], &[100, 90, 81]), &["sample 3 was c.png (80x80", "now c.png (81x81"]);
    says(&now(&["a.png", "b.png"], &[100, 90]), &["expected the 3 samples", "found 2"]);
    // A size that could not be read, as from a failing disk, says nothing.
    let mut unread = now(&["a.png", "b.png", "c.png"], &[100, 90, 80]);
    unread.samples.iter_mut().for_each(|samples| samples.first[1].size = [0; 3]);
    assert_eq!(old.difference(&unread), None);
    assert!(!unread.has_other_samples(&old));
    says(&print(&options, None), &["learned from a set", "stream"]);
    assert_eq!(print(&options, None).difference(&print(&options, None)), None);
}

#[test]
fn fingerprints_of_many_samples_are_small_and_find_the_place() {
    let names: Vec<String> = (0..5000).map(|i| format!("{i:05}.png")).collect();
    let of = |odd: usize| {
        let id = |(i, name): (usize, &String)| {
            let name = name.clone();
            SampleId { name, bytes: if i == odd { 9999 } else { i as u64 }, size: [1, 9, 9] }
        };
        SampleList::of(names.iter().enumerate().map(id))
    };
    let (was, is) = (print(&[], Some(of(9999))), print(&[], Some(of(700))));
    assert!(serde_json::to_string(&was).unwrap().len() < 2000);
    let said = was.difference(&is).unwrap();
    assert!(said.contains("among samples 513 to 1024"), "{said}");
    let said = was.difference(&print(&[], Some(of(4999)))).unwrap();
    assert!(said.contains("among samples 4097 to 5000") && said.contains("the last was 04999.png"), "{said}");
    assert_eq!(was.difference(&print(&[], Some(of(9999)))), None);
}
