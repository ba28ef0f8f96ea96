//! `ocsc reconstruct --raw`: the frames of all codes in one file, as programs for video read them.
//!
//! Raw frames follow each other with nothing in between, in 8 bits: ffmpeg's `-pix_fmt gray` or `rgb24`. A name that ends in .y4m
//! gets headers besides (YUV4MPEG2), in gray. Black is 0 and white is 1, as frames and photos are read.

use super::{Back, inputs};
use crate::args::Reconstruct;
use crate::console::{self, Console, Interrupted, counted};
use crate::data::tiff::write::pages;
use crate::data::{Source, codes};
use anyhow::{Context, Result, bail, ensure};
use ocsc::replace::replace_file;
use ocsc::{Sample, Shape};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Frames per second that are said where the format asks for it and nothing tells.
const RATE: u32 = 25;
/// How far from 0 and 1 values may lie and still be those of frames that filters missed a little.
const BEYOND: f64 = 0.5;

/// Writes the frames of all codes, in the order of their names.
pub(super) fn run(
    args: &Reconstruct,
    back: &Back<'_>,
    source: Option<&Source>,
    paths: &[PathBuf],
    console: &Console,
) -> Result<()> {
    let steps = back.preprocess;
    ensure!(
        source.is_some() || steps.steps().is_empty(),
        "--raw: expected --original with the data that were coded, as {steps} cannot be undone without them"
    );
    inputs(args, source, paths).find("--out", &args.out)?;
    console::catch_interrupts();
    let is_y4m = args.out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("y4m"));
    let mut bar = console.progress("reconstructing", paths.len(), 0);
    let mut frames = Frames { is_y4m, shape: None, count: 0 };
    replace_file(&args.out, |file| {
        let mut file = BufWriter::new(file);
        for (done, path) in paths.iter().enumerate() {
            if console::interrupted() {
                let why = format!("interrupted after {done} of {}; nothing was written", counted(paths.len(), "code"));
                return Err(Interrupted(why).into());
            }
            let (code, rank) = codes::read_code::<f64>(path)?;
            let own = codes::read_filters(path, back.dictionary)?;
            let (sample, _) = back.sample(path, &code, own.as_ref().unwrap_or(back.dictionary), None)?;
            ensure!(rank > 1, "{}: expected frames for --raw, found a signal", path.display());
            frames.add(&sample, &mut file).with_context(|| path.display().to_string())?;
            bar.advance(1, "");
        }
        Ok(file.flush()?)
    })
    .with_context(|| format!("--out {}", args.out.display()))?;
    drop(bar);
    console.result(format!("{} in {}", counted(frames.count, "frame"), args.out.display()))
}

/// The frames of a file, while they are written.
struct Frames {
    is_y4m: bool,
    /// The shape of the first frame, once there is one.
    shape: Option<Shape>,
    count: usize,
}

impl Frames {
    /// Writes an image, or the slices of a volume.
    fn add(&mut self, sample: &Sample<f64>, to: &mut impl Write) -> Result<()> {
        let (low, high) = sample.extremes();
        ensure!(
            low >= -BEYOND && high <= 1.0 + BEYOND,
            "expected values from 0 (black) to 1 (white) for --raw, found {low:.3} to {high:.3}; --format npy or tiff holds them"
        );
        ensure!(
            matches!(sample.shape().channels, 1 | 3),
            "expected 1 or 3 channels for --raw, found {}",
            sample.shape()
        );
        for frame in pages(sample, false)? {
            let shape = frame.shape();
            match self.shape {
                Some(first) => ensure!(shape == first, "expected frames alike, found {first} and {shape}"),
                None => self.begin(shape, to)?,
            }
            if self.is_y4m {
                to.write_all(b"FRAME\n")?;
            }
            let level = |v: f32| (v * 255.0).round().clamp(0.0, 255.0) as u8;
            let place = |i: usize| i % shape.channels * shape.pixels() + i / shape.channels;
            let pixels: Vec<u8> = (0..shape.len()).map(|i| level(frame.data()[place(i)])).collect();
            to.write_all(&pixels)?;
            self.count += 1;
        }
        Ok(())
    }

    fn begin(&mut self, shape: Shape, to: &mut impl Write) -> Result<()> {
        self.shape = Some(shape);
        let Shape { channels, height, width, .. } = shape;
        if self.is_y4m && channels > 1 {
            bail!(
                "expected gray frames for a file ending in .y4m, found {channels} channels; another ending gets raw rgb24"
            );
        }
        if self.is_y4m {
            writeln!(to, "YUV4MPEG2 W{width} H{height} F{RATE}:1 Ip A1:1 Cmono")?;
        }
        Ok(())
    }
}
