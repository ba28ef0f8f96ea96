//! Round trips, hostile files, and the shared data where they are present.

mod allocations;
mod arrays;
mod audio;
mod channels;
mod cifar;
mod codes;
mod find;
mod flac;
mod formats;
mod hold_out;
mod hostile;
mod images;
mod jpeg;
mod limits;
mod masks;
mod mat;
mod raw;
mod resample;
mod resize;
mod select;
mod shared;
mod source;
mod specimens;
mod tiff;

use super::{Source, SourceOptions};
use anyhow::Result;
use ocsc::{Sample, Samples, Shape};
use std::path::{Path, PathBuf};

fn options(axes: &str) -> SourceOptions {
    let axes = (!axes.is_empty()).then(|| axes.parse().unwrap());
    SourceOptions { axes, ..SourceOptions::default() }
}

fn open(path: &Path, axes: &str) -> Result<Source> {
    Source::open(&[path.to_owned()], &options(axes))
}

fn get(source: &Source, index: usize) -> Sample<f64> {
    Samples::<f64>::get(source, index).unwrap()
}

/// Opens a file and reads every sample, as a program would: the shape and values of each, or the first message.
fn read_all(path: &Path, axes: &str) -> Result<Vec<Sample<f64>>> {
    let source = open(path, axes)?;
    (0..source.len()).map(|i| Ok(Samples::<f64>::get(&source, i)?)).collect()
}

/// The message with which a file is refused.
fn refusal(path: &Path, axes: &str) -> String {
    match read_all(path, axes) {
        Ok(samples) => panic!("{} was read as {} samples", path.display(), samples.len()),
        Err(e) => format!("{e:#}"),
    }
}

fn assert_contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Little-endian bytes of 0, 1, 2, ... as `f32`.
fn counting(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

fn shape(channels: usize, depth: usize, height: usize, width: usize) -> Shape {
    Shape { channels, depth, height, width }
}
