//! Makes the filters that restoration starts from, from dead leaves: `cargo xtask dictionaries`, or into another file than that
//! of the library: `cargo run --release -p ocsc --example dictionaries -- FILE`.
//!
//! Each value becomes a whole number from -127 to 127, the largest of its filter being 127; filters are scaled to norm 1 when
//! they are read.

use ocsc::dead_leaves::dead_leaves;
use ocsc::restore::learn;
use std::path::{Path, PathBuf};

/// Codes may miss the images, whose values go from 0 to 1, by so much: the level of noise for which filters matter most.
const ERROR: f64 = 0.04;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let images = (0..32).filter_map(|seed| dead_leaves(1000 + seed, 256, 256)).map(|image| image.cast::<f32>());
    let images = images.collect::<ocsc::Result<Vec<_>>>()?;
    let dictionary = learn(&images, 256, 8, ERROR, 60)?;
    let mut bytes = Vec::new();
    for filter in dictionary.data().chunks_exact(64) {
        let largest = filter.iter().fold(0.0_f32, |largest, v| largest.max(v.abs()));
        bytes.extend(filter.iter().map(|v| ((v / largest * 127.0).round() as i8).cast_unsigned()));
    }
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/restore/gray8x8.i8");
    let out = std::env::args_os().nth(1).map_or(built_in, PathBuf::from);
    Ok(std::fs::write(out, bytes)?)
}
