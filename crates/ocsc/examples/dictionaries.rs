//! Makes the filters that restoration starts from, of images from dead leaves and of signals from synthetic ones: `cargo xtask
//! dictionaries`, or into another folder than that of the library: `cargo run --release -p ocsc --example dictionaries -- FOLDER`.
//! `-- --colour FILE` makes filters of coloured dead leaves, which are not built in, as they are no better (docs/restoration.md).
//!
//! Each value becomes a whole number from -127 to 127, the largest of its filter being 127; filters are scaled to norm 1 when
//! they are read.

use ocsc::dead_leaves::{coloured_dead_leaves, dead_leaves};
use ocsc::restore::learn;
use ocsc::synthetic_signals::synthetic_signal;
use ocsc::{Result, Sample};
use std::path::{Path, PathBuf};

/// Codes may miss the images, whose values go from 0 to 1, by so much: the level of noise for which filters matter most.
const ERROR: f64 = 0.04;
/// The same for signals, whose variance is 1.
const ERROR_OF_SIGNALS: f64 = 0.1;
const ROUNDS: usize = 60;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, file] = &words[..]
        && flag == "--colour"
    {
        let images = cast((0..32).filter_map(|seed| coloured_dead_leaves(1000 + seed, 256, 256)))?;
        return Ok(std::fs::write(file, made(&images, 336, 8, ERROR)?)?);
    }
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/restore");
    let folder = words.first().map_or(built_in, PathBuf::from);
    let images = cast((0..32).filter_map(|seed| dead_leaves(1000 + seed, 256, 256)))?;
    std::fs::write(folder.join("gray8x8.i8"), made(&images, 256, 8, ERROR)?)?;
    let signals = cast((0..64).filter_map(|seed| synthetic_signal(1000 + seed, 16384)))?;
    Ok(std::fs::write(folder.join("signal96.i8"), made(&signals, 256, 96, ERROR_OF_SIGNALS)?)?)
}

fn cast(samples: impl Iterator<Item = Sample<f64>>) -> Result<Vec<Sample<f32>>> {
    samples.map(Sample::cast).collect()
}

/// Learns filters, and returns their bytes.
fn made(samples: &[Sample<f32>], n_filters: usize, side: usize, error: f64) -> Result<Vec<u8>> {
    let dictionary = learn(samples, n_filters, side, error, ROUNDS)?;
    let mut bytes = Vec::new();
    for filter in dictionary.data().chunks_exact(dictionary.shape().len()) {
        let largest = filter.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
        bytes.extend(filter.iter().map(|v| ((v / largest * 127.0).round() as i8).cast_unsigned()));
    }
    Ok(bytes)
}
