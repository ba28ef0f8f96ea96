//! FLAC recordings, decoded by the crate `symphonia` from the frame that holds the first value wanted.
//!
//! The decoder sees the file without its tags, pictures and seek table ([`Bare`]): a search over the frames finds any place
//! in a dozen steps, and what it does not see cannot mislead it or make it allocate. It passes over damaged frames in
//! silence; here they are found by the gap they leave.

use super::audio::Facts;
use anyhow::{Context, Result, anyhow, bail, ensure};
use ocsc::file;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::formats::{FormatReader, SeekMode, SeekTo};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::units::Timestamp;
use symphonia::default::codecs::FlacDecoder;
use symphonia::default::formats::FlacReader;

/// `fLaC`, the header of the stream description, and its 34 bytes.
const HEAD: usize = 4 + 4 + 34;

/// Reads the stream description; where that does not tell the length, as after a pipe, the frames are counted.
pub(crate) fn open(path: &Path) -> Result<Facts> {
    let bare = Bare::open(path)?;
    // 16 bits each of block sizes, 24 each of frame sizes; then 20 of rate, 3 of channels, 5 of depth, 36 of length.
    let facts = bare.head[18..26].iter().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    let (rate, channels) = ((facts >> 44) as u32, (facts >> 41 & 7) as usize + 1);
    let mut frames = facts & ((1 << 36) - 1);
    if frames == 0 {
        let mut reader = reader(bare)?;
        while let Some(packet) = next_packet(&mut reader)? {
            frames = frames.saturating_add(packet.dur.get());
        }
    }
    Ok(Facts { channels, rate, frames })
}

/// `frames` frames from `from` on, channels interleaved, full scale at -1 and 1.
pub(crate) fn read(path: &Path, facts: &Facts, from: u64, frames: usize) -> Result<Vec<f64>> {
    let mut reader = reader(Bare::open(path)?)?;
    let track = reader.tracks().first().context("no audio track; the file is damaged")?;
    let parameters = track.codec_params.as_ref().and_then(|p| p.audio()).context("no audio; the file is damaged")?;
    let mut decoder = FlacDecoder::try_new(parameters, &AudioDecoderOptions::default()).map_err(damaged)?;
    let track_id = track.id;
    if from > 0 {
        let to = SeekTo::Timestamp { ts: Timestamp::new(i64::try_from(from)?), track_id };
        reader.seek(SeekMode::Accurate, to).map_err(damaged)?;
    }
    let (mut values, mut block) = (Vec::new(), Vec::new());
    values.try_reserve_exact(frames.saturating_mul(facts.channels))?;
    let (mut at, end) = (from, from.saturating_add(frames as u64));
    while at < end {
        let early = || anyhow!("the samples end at {at} of {}; the file is truncated or damaged", facts.frames);
        let packet = next_packet(&mut reader)?.with_context(early)?;
        let start = u64::try_from(packet.pts.get()).unwrap_or(u64::MAX);
        let buffer = decoder.decode(&packet).map_err(damaged)?;
        let (channels, len) = (buffer.num_planes(), buffer.frames() as u64);
        ensure!(channels == facts.channels, "{} channels become {channels}; the file is damaged", facts.channels);
        ensure!(start <= at, "samples {at} to {start} cannot be decoded; the file is damaged");
        ensure!(at < start.saturating_add(len), "samples before {at} come twice; the file is damaged");
        block.clear();
        buffer.copy_to_vec_interleaved::<f64>(&mut block);
        let take = (at - start) as usize * channels..(end - start).min(len) as usize * channels;
        values.extend_from_slice(block.get(take).unwrap_or_default());
        at = start.saturating_add(len);
    }
    Ok(values)
}

fn reader(bare: Bare) -> Result<FlacReader<'static>> {
    let stream = MediaSourceStream::new(Box::new(bare), Default::default());
    FlacReader::try_new(stream, Default::default()).map_err(damaged)
}

/// The next packet, or none at the end of the file.
fn next_packet(reader: &mut FlacReader<'static>) -> Result<Option<symphonia::core::packet::Packet>> {
    use symphonia::core::errors::Error;
    match reader.next_packet() {
        Err(Error::IoError(e)) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        packet => packet.map_err(damaged),
    }
}

fn damaged(error: symphonia::core::errors::Error) -> anyhow::Error {
    anyhow!("cannot be decoded as FLAC: {error}; the file is damaged")
}

/// A FLAC file without anything between the stream description and the frames.
struct Bare {
    head: [u8; HEAD],
    file: File,
    /// Where the frames start in the file, and how long the file without the rest is.
    frames: u64,
    len: u64,
    position: u64,
}

impl Bare {
    fn open(path: &Path) -> Result<Self> {
        let mut file = file::open(path)?;
        let available = file.metadata()?.len();
        ensure!(available > 0, "the file is empty; expected a FLAC recording");
        let mut head = [0; HEAD];
        file.read_exact(&mut head).context("not a FLAC recording, or a truncated one")?;
        if !(head.starts_with(b"fLaC") && head[4] & 0x7f == 0 && head[5..8] == [0, 0, 34]) {
            bail!("not a FLAC recording: it does not start with fLaC and the description of the stream");
        }
        let (mut last, mut frames) = (head[4] & 0x80 != 0, HEAD as u64);
        while !last {
            let mut block = [0; 4];
            file.seek(SeekFrom::Start(frames))?;
            file.read_exact(&mut block).context("the file is truncated")?;
            let [kind, length @ ..] = block;
            last = kind & 0x80 != 0;
            frames += 4 + length.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
            ensure!(frames <= available, "a block of tags reaches past the end of the file, which is truncated");
        }
        head[4] = 0x80;
        file.seek(SeekFrom::Start(frames))?;
        Ok(Bare { head, file, frames, len: available - frames + HEAD as u64, position: 0 })
    }
}

impl Read for Bare {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = match self.head.get(self.position as usize..).filter(|rest| !rest.is_empty()) {
            Some(mut rest) => rest.read(into)?,
            None => self.file.read(into)?,
        };
        self.position += n as u64;
        Ok(n)
    }
}

impl Seek for Bare {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
        };
        let position = position.ok_or(io::ErrorKind::InvalidInput)?;
        self.file.seek(SeekFrom::Start(self.frames.saturating_add(position.saturating_sub(HEAD as u64))))?;
        self.position = position;
        Ok(position)
    }
}

impl MediaSource for Bare {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.len)
    }
}
