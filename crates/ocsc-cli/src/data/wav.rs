//! WAV recordings: whole numbers of 8 to 32 bits, and 32-bit floats.
//!
//! The crate `hound` decodes. It believes the header, so what that claims is held against the file's length here.

use super::audio::Facts;
use anyhow::{Context, Result, ensure};
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use ocsc::file;
use ocsc::replace::write_file;
use std::io::{BufReader, Cursor, Seek};
use std::path::Path;

/// Reads the header.
pub(crate) fn open(path: &Path) -> Result<Facts> {
    let input = file::open(path)?;
    let available = input.metadata()?.len();
    ensure!(available > 0, "the file is empty; expected a WAV recording");
    let reader = WavReader::new(BufReader::new(input)).context("not a WAV recording that can be read")?;
    let (spec, frames) = (reader.spec(), reader.duration());
    let claimed = u64::from(reader.len()) * u64::from(spec.bits_per_sample.div_ceil(8));
    let data = available.saturating_sub(reader.into_inner().stream_position()?);
    ensure!(
        claimed <= data,
        "the header claims {claimed} bytes of samples, {data} are there: the file is truncated, or was written to a \
         pipe, where its length is unknown; convert it again, file to file"
    );
    Ok(Facts { channels: spec.channels.into(), rate: spec.sample_rate, frames: frames.into() })
}

/// `frames` frames from `from` on, channels interleaved, full scale at -1 and 1.
pub(crate) fn read(path: &Path, from: u64, frames: usize) -> Result<Vec<f64>> {
    let mut reader = WavReader::new(BufReader::new(file::open(path)?))?;
    let spec = reader.spec();
    reader.seek(u32::try_from(from)?)?;
    let numbers = frames.saturating_mul(spec.channels.into());
    let damaged = "the samples end early; the file is damaged";
    let mut values = Vec::new();
    values.try_reserve_exact(numbers)?;
    match spec.sample_format {
        SampleFormat::Float => {
            for value in reader.samples::<f32>().take(numbers) {
                values.push(f64::from(value.context(damaged)?));
            }
        }
        SampleFormat::Int => {
            let full = 2f64.powi(i32::from(spec.bits_per_sample) - 1);
            for value in reader.samples::<i32>().take(numbers) {
                values.push(f64::from(value.context(damaged)?) / full);
            }
        }
    }
    Ok(values)
}

/// Writes channels of one length as a recording of 32-bit floats.
pub(crate) fn write(path: &Path, channels: &[Vec<f32>], rate: u32) -> Result<()> {
    let spec = WavSpec {
        channels: u16::try_from(channels.len())?,
        sample_rate: rate,
        bits_per_sample: 32,
        sample_format: SampleFormat::Float,
    };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, spec)?;
    for t in 0..channels.first().map_or(0, Vec::len) {
        for channel in channels {
            writer.write_sample(channel[t])?;
        }
    }
    writer.finalize()?;
    write_file(path, bytes.into_inner()).with_context(|| path.display().to_string())
}
