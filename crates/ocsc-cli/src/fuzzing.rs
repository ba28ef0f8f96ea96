//! Every reader on one file, for tests and fuzzers: the answer does not matter, that there is one does.
//!
//! Not part of the program: compiled for tests, and with the feature `fuzzing` for the targets in the folder `fuzz`.

use crate::data::codes::{read_code, read_facts, read_mixing};
use crate::data::{Source, SourceOptions};
use crate::memory::Limit;
use crate::run::record::read_records;
use ocsc::{Axes, Samples, checkpoint};
use std::path::Path;

/// What a reader may take in all, whatever a header claims.
pub const LIMIT: usize = 64 << 20;

/// How a file was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Whether any reader took it.
    pub read: bool,
    /// The bytes of the largest sample that its header declares, in double precision.
    pub declared: u64,
}

/// Reads a file in every way that its name allows.
pub fn exercise(path: &Path) -> Taken {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    match ending.as_str() {
        "safetensors" => Taken { read: model(path), declared: 0 },
        "jsonl" => Taken { read: read_records(path).is_ok(), declared: 0 },
        "txt" => Taken { read: Source::open(&[at(path)], &options("")).is_ok(), declared: 0 },
        _ => {
            let mut taken = samples(path);
            taken.read |= ending == "npz" && read_code::<f32>(path).is_ok();
            if ending == "npz" {
                let _ = (read_facts(path), read_mixing(path));
            }
            taken
        }
    }
}

/// The same with a file of this name and these bytes, as fuzzers make them.
pub fn exercise_bytes(name: &str, bytes: &[u8]) {
    thread_local! {
        static FOLDER: Option<tempfile::TempDir> = tempfile::tempdir().ok();
    }
    FOLDER.with(|folder| {
        let path = folder.as_ref().map(|folder| folder.path().join(name)).unwrap_or_default();
        if std::fs::write(&path, bytes).is_ok() {
            exercise(&path);
        }
    });
}

/// `@list.txt`.
fn at(path: &Path) -> std::path::PathBuf {
    format!("@{}", path.display()).into()
}

fn options(axes: &str) -> SourceOptions {
    let axes: Option<Axes> = axes.parse().ok();
    SourceOptions { axes, limit: Limit::new(Some(LIMIT)), ..SourceOptions::default() }
}

fn model(path: &Path) -> bool {
    // Both scalars, and going on from a checkpoint.
    let single = checkpoint::load::<f32>(path).map(|saved| saved.resume().is_ok());
    let double = checkpoint::load::<f64>(path).map(|saved| saved.resume().is_ok());
    single.is_ok() && double.is_ok()
}

fn samples(path: &Path) -> Taken {
    let mut taken = Taken::default();
    let mut read = |options: &SourceOptions| {
        let Ok(source) = Source::open(&[path.to_owned()], options) else { return false };
        let last = source.len() - 1;
        for i in [0, last] {
            let _ = source.size(i);
            taken.declared = taken.declared.max(source.declared(i));
        }
        let all = [0, last].map(|i| {
            // In a statement of its own, so that the sample is gone before the next is read.
            let single = Samples::<f32>::get(&source, i).is_ok();
            single & Samples::<f64>::get(&source, i).is_ok()
        });
        all == [true; 2]
    };
    let (window, rate) = ("3".parse().ok(), Some(6000));
    let ways = [
        options(""),
        options("NCHW"),
        options("CHW"),
        options("DHW"),
        SourceOptions { is_mask: true, nan_is_missing: true, ..options("") },
        SourceOptions { window, ..options("NW") },
        SourceOptions { rate, window: "50".parse().ok(), channel: crate::data::Channel::All, ..options("") },
        SourceOptions { mask: Some(path.to_owned()), ..options("") },
    ];
    // Each is tried, whatever came of the others.
    let read = ways.map(|options| read(&options)).contains(&true);
    Taken { read, ..taken }
}
