//! Model files and checkpoints: round trips, resumed runs bit for bit, and files that are not what they should be.

use crate::common::sealed::{Parts, sealed};
use crate::common::*;
use ocsc::checkpoint::{Saved, load, save};
use ocsc::learner::Step;
use ocsc::monitor::Silent;
use ocsc::train::{Ended, Progress, TrainOptions, train};
use ocsc::train::{Observer, Snapshot};
use ocsc::{Config, Online, Real, Result, Sample, Shape};
use proptest::prelude::*;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

fn tiny<T: Real>() -> (Config, Vec<Sample<T>>) {
    let (samples, _) = planted::<T>(3, 10, 5, 0.05, 21);
    (Config { passes: 3, batch_size: 2, dtype: T::DTYPE, ..small_config(4, &[3, 3], 0.1) }, samples)
}

/// The same with channels.
fn tiny_colour<T: Real>(channels: usize, axes: [usize; 3], filter: &[usize]) -> (Config, Vec<Sample<T>>) {
    let corner = Shape::from_axes(channels, filter).unwrap();
    let samples = made_of(&filters(3, corner, 21), axes, 5, 22);
    (Config { filter_shape: filter.to_vec(), ..tiny::<T>().0 }, samples)
}

/// Writes a checkpoint at one step, and ends the run there if told to.
struct SaveAt<'a> {
    path: &'a Path,
    step: usize,
    stop: bool,
}

impl<T: Real> Observer<T> for SaveAt<'_> {
    fn step(&mut self, run: &Snapshot<'_, T>, step: &Step<T>) -> Result<ControlFlow<()>> {
        if step.step == self.step {
            save(self.path, run.learner, Some(run.progress))?;
            if self.stop {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn resumed_run_is_the_uninterrupted_one<T: Real>((mut config, samples): (Config, Vec<Sample<T>>), reset: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    config.update.reset = reset;
    let channels = samples[0].shape().channels;
    let mut whole = Online::<T>::new(config.clone(), channels).unwrap();
    let schedule = TrainOptions::default();
    let outcome = train(&mut whole, &samples, None, &schedule, Progress::default(), &mut Silent).unwrap();
    assert_eq!((outcome.ended, outcome.progress.step), (Ended::Finished, 9));
    // Within a pass, at the end of a pass, at the end of the run.
    for step in [1, 3, 5, 6, 9] {
        for stop in [true, false] {
            let mut learner = Online::<T>::new(config.clone(), channels).unwrap();
            let mut observer = SaveAt { path: &path, step, stop };
            train(&mut learner, &samples, None, &schedule, Progress::default(), &mut observer).unwrap();
            let saved = load::<T>(&path).unwrap();
            assert!(saved.is_checkpoint());
            assert_eq!(saved.config, config);
            let (mut learner, progress) = saved.resume().unwrap();
            assert_eq!((learner.step(), progress.step), (step, step));
            assert_eq!(learner.dictionary(), &saved.dictionary);
            let resumed = train(learner.as_mut(), &samples, None, &schedule, progress, &mut Silent).unwrap();
            assert_eq!(learner.dictionary(), whole.dictionary(), "from step {step}");
            assert_eq!((resumed.progress.step, resumed.progress.samples), (9, outcome.progress.samples));
            assert!(resumed.progress.seconds >= progress.seconds);
        }
    }
}

#[test]
fn resumed_runs_are_the_uninterrupted_ones_bit_for_bit() {
    resumed_run_is_the_uninterrupted_one(tiny::<f32>(), false);
    resumed_run_is_the_uninterrupted_one(tiny::<f64>(), false);
    resumed_run_is_the_uninterrupted_one(tiny::<f32>(), true);
    resumed_run_is_the_uninterrupted_one(tiny_colour::<f32>(3, [1, 10, 9], &[3, 3]), false);
    resumed_run_is_the_uninterrupted_one(tiny_colour::<f64>(2, [1, 1, 60], &[7]), false);
    resumed_run_is_the_uninterrupted_one(tiny_colour::<f32>(2, [4, 6, 5], &[2, 3, 3]), true);
}

#[test]
fn model_files_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    for axes in [&[7][..], &[3, 5], &[2, 3, 4]] {
        let learner = Online::<f32>::new(Config { beta: 0.37, seed: 9, ..small_config(4, axes, 0.1) }, 1).unwrap();
        save(&path, &learner, None).unwrap();
        let saved = load::<f32>(&path).unwrap();
        assert_eq!((&saved.config, &saved.dictionary), (learner.config(), learner.dictionary()));
        assert_eq!(saved.dictionary.rank(), axes.len());
        assert!(!saved.is_checkpoint());
        // The same numbers in double precision.
        let wide = load::<f64>(&path).unwrap();
        assert!(distance(wide.dictionary.data(), &widen(learner.dictionary().data())) < 1e-7);
        // The same bytes a second time.
        let bytes = std::fs::read(&path).unwrap();
        save(&path, &learner, None).unwrap();
        assert_eq!(bytes, std::fs::read(&path).unwrap());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_finished_model_cannot_be_resumed_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    save(&path, &Online::<f32>::new(tiny::<f32>().0, 1).unwrap(), None).unwrap();
    let message = load::<f32>(&path).unwrap().resume().err().unwrap().to_string();
    assert!(message.contains("finished model") && message.contains("model.safetensors"), "{message}");
}

/// A checkpoint of a few steps.
fn checkpoint<T: Real>(path: &Path) {
    let (config, samples) = tiny::<T>();
    let mut learner = Online::<T>::new(config, 1).unwrap();
    let mut observer = SaveAt { path, step: 2, stop: true };
    train(&mut learner, &samples, None, &TrainOptions::default(), Progress::default(), &mut observer).unwrap();
}

#[test]
fn a_checkpoint_resumes_in_its_own_scalar_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    checkpoint::<f64>(&path);
    let saved = load::<f32>(&path).unwrap();
    let message = saved.resume().err().unwrap().to_string();
    assert!(message.contains("f32") && message.contains("f64"), "{message}");
    assert!(load::<f64>(&path).unwrap().resume().is_ok());
}

/// Reads and resumes; only panics and endless loops can fail here.
fn try_everything(path: &Path) -> bool {
    let single = load::<f32>(path).and_then(|saved: Saved<f32>| saved.resume());
    let double = load::<f64>(path).and_then(|saved: Saved<f64>| saved.resume());
    single.is_ok() || double.is_ok()
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let (config, _) = tiny::<f32>();
    let learner = Online::<f32>::new(Config { n_filters: 1, ..config }, 1).unwrap();
    save(&path, &learner, Some(&Progress::default())).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let cut = folder.path().join("cut.safetensors");
    for len in 0..bytes.len() {
        std::fs::write(&cut, &bytes[..len]).unwrap();
        let message = load::<f32>(&cut).err().unwrap().to_string();
        assert!(message.contains("cut.safetensors"), "{message}");
    }
}

/// Writes a file with a dictionary tensor of any type and shape, and any metadata.
fn write(path: &Path, dtype: Dtype, shape: &[usize], bytes: &[u8], metadata: &[(&str, &str)]) {
    let tensor = TensorView::new(dtype, shape.to_vec(), bytes).unwrap();
    let metadata: HashMap<String, String> = metadata.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    safetensors::serialize_to_file([("dictionary", tensor)], Some(metadata), path).unwrap();
}

#[test]
fn files_with_wrong_parts_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.safetensors");
    let good = [("format", "ocsc/1"), ("config", "{}")];
    let bytes: Vec<u8> = [0.5_f32; 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    write(&path, Dtype::F32, &[2, 1, 2], &bytes, &good);
    assert!(load::<f32>(&path).is_ok());
    let refused = |expected: &str| {
        let message = load::<f32>(&path).err().unwrap().to_string();
        assert!(message.contains("odd.safetensors") && message.contains(expected), "{message}");
    };
    write(&path, Dtype::F32, &[2, 1, 2], &bytes, &[("format", "ocsc/2"), ("config", "{}")]);
    refused("ocsc/2");
    write(&path, Dtype::F32, &[2, 1, 2], &bytes, &[("config", "{}")]);
    refused("metadata");
    for config in ["", "7", "{\"beta\": \"one\"}", "{\"no such setting\": 1}", "{\"beta\": -1}", "{\"beta\": 1e999}"] {
        write(&path, Dtype::F32, &[2, 1, 2], &bytes, &[("format", "ocsc/1"), ("config", config)]);
        refused("");
    }
    write(&path, Dtype::I32, &[2, 1, 2], &bytes, &good);
    refused("f32 or f64");
    write(&path, Dtype::F16, &[4, 1, 2], &bytes, &good);
    refused("f32 or f64");
    for shape in [&[4][..], &[2, 2], &[1, 1, 1, 1, 1, 4]] {
        write(&path, Dtype::F32, shape, &bytes, &good);
        refused("");
    }
    for shape in [[0, 1, 2, 2], [1, 0, 2, 2], [1, 0, 1 << 40, 1 << 40], [1 << 40, 0, 1 << 40, 1 << 40], [1, 1, 1, 0]] {
        write(&path, Dtype::F32, &shape, &[], &good);
        refused("");
    }
    for value in [f32::NAN, f32::INFINITY, 2.0, 1e30] {
        write(&path, Dtype::F32, &[1, 1, 1], &value.to_le_bytes(), &good);
        refused("");
    }
    std::fs::write(&path, "not safetensors at all").unwrap();
    refused("safetensors");
    // A header that claims more than there is.
    std::fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
    refused("safetensors");
    let header = r#"{"dictionary":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}}"#;
    let mut huge = (header.len() as u64).to_le_bytes().to_vec();
    huge.extend(header.bytes().chain([0; 4]));
    std::fs::write(&path, huge).unwrap();
    refused("safetensors");
    assert!(load::<f32>(&folder.path().join("absent")).err().unwrap().to_string().contains("absent"));
}

#[test]
fn a_checkpoint_with_a_made_up_sample_shape_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    checkpoint::<f32>(&path);
    let bytes = std::fs::read(&path).unwrap();
    for shape in [[1, 1, u64::MAX, 10], [1, 1, 1 << 40, 1 << 40], [1, 1, 10, 99], [2, 1, 10, 10], [1, 1, 0, 10]] {
        let mut parts = Parts::of(&bytes);
        let tensor = parts.tensor("state.sample_shape");
        assert_eq!(tensor, [1_u64, 1, 10, 10].map(u64::to_le_bytes).as_flattened());
        tensor.copy_from_slice(shape.map(u64::to_le_bytes).as_flattened());
        std::fs::write(&path, parts.sealed()).unwrap();
        let message = load::<f32>(&path).unwrap().resume().err().unwrap().to_string();
        assert!(message.contains("checkpoint.safetensors"), "{message}");
    }
}

#[test]
fn hostile_headers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.safetensors");
    let write = |header: &[u8], data: &[u8]| {
        std::fs::write(&path, [&(header.len() as u64).to_le_bytes(), header, data].concat()).unwrap();
    };
    let refused = |what: &str| {
        let message = load::<f32>(&path).expect_err(what).to_string();
        assert!(message.contains("hostile.safetensors"), "{what}: {message}");
    };
    let good = r#""__metadata__":{"format":"ocsc/1","config":"{}"}"#;
    let tensor = |shape: &str, end: &str| {
        format!(r#"{{{good},"dictionary":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}}}"#)
    };
    write(tensor("[2,1,2]", "16").as_bytes(), &[0; 16]);
    assert!(load::<f32>(&path).is_ok(), "the form that is varied below");
    for shape in [
        "[9007199254740993,1,2]",
        "[18446744073709551615,2,2]",
        "[2,1,-2]",
        "[2,1,2.5]",
        "[2,1,1e30]",
        "7",
        "null",
        "[]",
    ] {
        write(tensor(shape, "16").as_bytes(), &[0; 16]);
        refused(shape);
    }
    for end in ["15", "17", "-1", "18446744073709551615", "0", "null"] {
        write(tensor("[2,1,2]", end).as_bytes(), &[0; 16]);
        refused(end);
    }
    write(b"{\"__metadata__\":{\"format\":\"ocsc/1\xff\xfe\"}}", &[]);
    refused("a header that is no UTF-8");
    write("[".repeat(100_000).as_bytes(), &[]);
    refused("a deep header");
    for format in ["ocsc/0", "ocsc/2", "ocsc/1.0", "OCSC/1", "", "ocsc/99999999999999999999"] {
        write(tensor("[2,1,2]", "16").replace("ocsc/1", format).as_bytes(), &[0; 16]);
        refused(format);
    }
    for (key, value) in [
        ("config", r#"{\"n_filters\": 18446744073709551616}"#),
        ("config", r#"{\"filter_shape\": \"large\"}"#),
        ("config", r#"{\"preprocess\": [\"taper\", \"gray\"]}"#),
        ("config", r#"{\"method\": \"magic\"}"#),
        ("progress", r#"{\"pass\": -1}"#),
        ("progress", "[]"),
        (
            "progress",
            r#"{\"pass\":0,\"visited\":0,\"of\":0,\"step\":1e99,\"samples\":0,\"seconds\":0,\"cpu_seconds\":0}"#,
        ),
        ("numbers", r#"{\"lag\": \"one\"}"#),
    ] {
        let metadata = format!(r#""__metadata__":{{"format":"ocsc/1","{key}":"{value}"}}"#);
        write(tensor("[2,1,2]", "16").replace(good, &metadata).as_bytes(), &[0; 16]);
        refused(value);
    }
}

/// Runs a property for so many cases, and again for as long as `OCSC_FUZZ_SECONDS` says.
fn fuzz<S: Strategy>(n: u32, strategy: S, test: impl Fn(S::Value)) {
    let seconds = std::env::var("OCSC_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(0.0);
    let start = std::time::Instant::now();
    loop {
        let ran = proptest::test_runner::TestRunner::new(cases(n)).run(&strategy, |value| {
            test(value);
            Ok(())
        });
        ran.unwrap_or_else(|failure| panic!("{failure}"));
        if start.elapsed().as_secs_f64() >= seconds {
            return;
        }
    }
}

/// Most damages to the header are errors, those to the numbers may pass; none may panic. Digits and bits are changed as well
/// as whole bytes, so that headers stay readable and lie.
#[test]
fn damaged_bytes_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    checkpoint::<f32>(&path);
    let single = std::fs::read(&path).unwrap();
    checkpoint::<f64>(&path);
    let double = std::fs::read(&path).unwrap();
    let edits = prop::collection::vec((0.0..1.0_f64, any::<bool>(), 0..4_u8, any::<u8>()), 1..5);
    fuzz(512, (edits, any::<bool>()), |(edits, is_double)| {
        let mut bytes = if is_double { double.clone() } else { single.clone() };
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (place, in_header, kind, value) in edits {
            let len = if in_header { header.min(bytes.len()) } else { bytes.len() };
            let at = (place * len as f64) as usize;
            match kind {
                0 => bytes[at] = value,
                1 => bytes[at] ^= 1 << (value % 8),
                2 => {
                    if let Some(digit) = bytes[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                        *digit = b'0' + value % 10;
                    }
                }
                _ => bytes.truncate(at.max(1)),
            }
        }
        let path = folder.path().join("damaged.safetensors");
        // With a checksum that holds: else it would be all that is tested.
        std::fs::write(&path, sealed(bytes)).unwrap();
        try_everything(&path);
    });
}
