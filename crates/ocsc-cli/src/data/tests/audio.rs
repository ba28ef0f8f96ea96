//! WAV and FLAC: every depth, channels, rates, windows and folders.

use super::*;
use crate::data::{Channel, Window};
use hound::{SampleFormat, WavSpec, WavWriter};

/// Writes the same frames (of whole numbers) as WAV.
pub(super) fn wav(path: &Path, channels: &[Vec<i32>], bits: u16, rate: u32) {
    let spec = WavSpec {
        channels: channels.len() as u16,
        sample_rate: rate,
        bits_per_sample: bits,
        sample_format: SampleFormat::Int,
    };
    let mut writer = WavWriter::create(path, spec).unwrap();
    for t in 0..channels[0].len() {
        channels.iter().for_each(|c| writer.write_sample(c[t]).unwrap());
    }
    writer.finalize().unwrap();
}

/// Waves that stay within `bits` bits.
pub(super) fn waves(channels: usize, len: usize, bits: u32) -> Vec<Vec<i32>> {
    let full = 2f64.powi(bits as i32 - 1) - 1.0;
    let wave = |c: usize, t: usize| ((t as f64 * 0.02 * (c + 1) as f64).sin() * full * 0.9) as i32;
    (0..channels).map(|c| (0..len).map(|t| wave(c, t)).collect()).collect()
}

fn with(channel: &str, rate: Option<u32>, window: &str) -> SourceOptions {
    let window: Option<Window> = (!window.is_empty()).then(|| window.parse().unwrap());
    SourceOptions { channel: channel.parse().unwrap(), rate, window, ..options("") }
}

fn open_with(path: &Path, options: &SourceOptions) -> Source {
    Source::open(&[path.to_owned()], options).unwrap()
}

#[test]
fn every_depth_at_full_precision() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    for bits in [8, 16, 24, 32] {
        let low = i32::MIN >> (32 - bits);
        let frames = vec![low, -1, 0, 1, -(low + 1)];
        wav(&path, std::slice::from_ref(&frames), bits, 8000);
        let sample = get(&open(&path, "").unwrap(), 0);
        assert_eq!(sample.shape(), shape(1, 1, 1, 5));
        let full = 2f64.powi(i32::from(bits) - 1);
        assert_eq!(sample.data(), frames.iter().map(|v| f64::from(*v) / full).collect::<Vec<_>>(), "{bits} bits");
        assert_eq!(sample.data()[0], -1.0);
    }
    let spec = WavSpec { channels: 1, sample_rate: 8000, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut writer = WavWriter::create(&path, spec).unwrap();
    [0.1f32, -1.5].iter().for_each(|v| writer.write_sample(*v).unwrap());
    writer.finalize().unwrap();
    assert_eq!(get(&open(&path, "").unwrap(), 0).data(), [f64::from(0.1f32), -1.5]);
    for bits in [8, 12, 16, 20, 24] {
        let frames = waves(2, 700, bits);
        let path = write(folder.path(), "a.flac", &super::flac::encode(&frames, bits, 8000, 0, true));
        let sample = get(&open_with(&path, &with("all", None, "")), 0);
        let full = 2f64.powi(bits as i32 - 1);
        let expected: Vec<f64> = frames.iter().flatten().map(|v| f64::from(*v) / full).collect();
        assert_eq!(sample.data(), expected, "{bits} bits");
    }
}

#[test]
fn channels() {
    let folder = tempfile::tempdir().unwrap();
    let frames = waves(3, 100, 16);
    let path = folder.path().join("a.wav");
    wav(&path, &frames, 16, 8000);
    let full = |v: i32| f64::from(v) / 32768.0;
    let mean = get(&open(&path, "").unwrap(), 0);
    let expected: Vec<f64> = (0..100).map(|t| frames.iter().map(|c| full(c[t])).sum::<f64>() / 3.0).collect();
    assert_eq!((mean.shape(), mean.data()), (shape(1, 1, 1, 100), &expected[..]));
    let second = get(&open_with(&path, &with("2", None, "")), 0);
    assert_eq!(second.data(), frames[1].iter().map(|v| full(*v)).collect::<Vec<_>>());
    let all = get(&open_with(&path, &with("all", None, "")), 0);
    assert_eq!(all.shape(), shape(3, 1, 1, 100));
    assert_eq!(&all.data()[100..200], second.data());
    let message =
        Samples::<f64>::get(&Source::open(&[path], &with("4", None, "")).unwrap(), 0).unwrap_err().to_string();
    assert_contains(&message, &["a.wav", "--channel 4", "3 channels"]);
    for bad in ["0", "left", "-1", ""] {
        assert_contains(&bad.parse::<Channel>().unwrap_err().to_string(), &["mean, all"]);
    }
}

#[test]
fn windows_of_long_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let frames = waves(2, 12_345, 16);
    let as_wav = folder.path().join("song.wav");
    wav(&as_wav, &frames, 16, 1000);
    let as_flac = write(folder.path(), "song.flac", &super::flac::encode(&frames, 16, 1000, 5000, true));
    let piped = write(folder.path(), "piped.flac", &super::flac::encode(&frames, 16, 1000, 0, false));
    for path in [&as_wav, &as_flac, &piped] {
        let source = open(path, "").unwrap();
        assert_eq!((source.len(), source.rank(), source.is_images()), (2, 1, Some(false)));
        assert_eq!((source.size(0).unwrap(), source.size(1).unwrap()), ([1, 1, 5000], [1, 1, 7345]));
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(source.name(1).ends_with(&format!("{name}[1]")));
        let whole = get(&open_with(path, &with("1", None, "1000s")), 0);
        assert_eq!(whole.data(), frames[0].iter().map(|v| f64::from(*v) / 32768.0).collect::<Vec<_>>());
        for window in ["0.7s", "100", "12345", "6000"] {
            let cut = open_with(path, &with("1", None, window));
            // Out of order, as learning reads them.
            let mut parts: Vec<_> = (0..cut.len()).rev().map(|i| get(&cut, i).into_data()).collect();
            parts.reverse();
            assert_eq!(parts.concat(), whole.data(), "{name} in windows of {window}");
        }
    }
}

#[test]
fn windows_of_a_resampled_recording_are_slices_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("song.wav");
    wav(&path, &waves(1, 4410, 16), 16, 44100);
    for rate in [16_000, 48_000, 44_099] {
        let whole = get(&open_with(&path, &with("mean", Some(rate), "9s")), 0);
        assert_eq!(whole.data().len(), (4410 * rate as usize).div_ceil(44100));
        let cut = open_with(&path, &with("mean", Some(rate), "333"));
        assert!(cut.len() > 3);
        let parts: Vec<f64> = (0..cut.len()).flat_map(|i| get(&cut, i).into_data()).collect();
        assert_eq!(parts.len(), whole.data().len());
        let far = parts.iter().zip(whole.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < 1e-12, "{rate}: {far}");
    }
    let same = get(&open_with(&path, &with("mean", Some(44_100), "9s")), 0);
    assert_eq!(same, get(&open_with(&path, &with("mean", None, "9s")), 0));
}

#[test]
fn folders_of_recordings() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["10.wav", "2.WAV", "1.flac"] {
        let frames = waves(1, 300, 16);
        let bytes = super::flac::encode(&frames, 16, 8000, 0, true);
        if name.ends_with("flac") {
            _ = write(folder.path(), name, &bytes)
        } else {
            wav(&folder.path().join(name), &frames, 16, 8000)
        }
    }
    write(folder.path(), "notes.txt", b"ignored");
    let source = open(folder.path(), "").unwrap();
    let stems: Vec<_> = (0..source.len()).map(|i| source.file_stem(i)).collect();
    assert_eq!((stems, source.is_images()), (vec!["1".into(), "2".into(), "10".into()], Some(false)));
    let image: ::image::DynamicImage = ::image::GrayImage::new(4, 4).into();
    image.save(folder.path().join("cover.png")).unwrap();
    let message = refusal(folder.path(), "");
    assert_contains(&message, &["both images and recordings", "cover.png", "1.flac", "folder of their own"]);
    let message =
        format!("{:#}", Source::open(&[folder.path().join("cover.png")], &with("1", None, "5s")).unwrap_err());
    assert_contains(&message, &["cover.png", "--window cuts signals"]);
}

#[test]
fn damaged_recordings_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let frames = waves(1, 3000, 16);
    let path = folder.path().join("a.wav");
    wav(&path, &frames, 16, 8000);
    let whole = std::fs::read(&path).unwrap();
    let message = refusal(&write(folder.path(), "cut.wav", &whole[..whole.len() - 100]), "");
    assert_contains(&message, &["cut.wav", "6000 bytes of samples", "5900 are there", "truncated"]);
    assert_contains(&refusal(&write(folder.path(), "text.wav", b"this is no sound"), ""), &["text.wav", "not a WAV"]);
    assert_contains(&refusal(&write(folder.path(), "void.flac", b""), ""), &["void.flac", "empty"]);
    let none = folder.path().join("none.wav");
    wav(&none, &[vec![]], 16, 8000);
    assert_contains(&refusal(&none, ""), &["none.wav", "the recording is empty"]);

    let whole = super::flac::encode(&frames, 16, 8000, 0, true);
    let message = refusal(&write(folder.path(), "cut.flac", &whole[..whole.len() * 2 / 3]), "");
    assert_contains(&message, &["cut.flac", "truncated or damaged"]);
    assert_contains(&refusal(&write(folder.path(), "text.flac", &[b'x'; 99]), ""), &["text.flac", "not a FLAC"]);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    assert_contains(&refusal(&write(folder.path(), "flipped.flac", &flipped), ""), &["flipped.flac", "damaged"]);
    // A length that is made up allocates nothing.
    let mut lying = whole;
    lying[21..26].copy_from_slice(&[0xff; 5]);
    let lying = write(folder.path(), "lying.flac", &lying);
    let huge = Source::open(&[lying], &with("mean", None, "100000s")).unwrap();
    assert_contains(&Samples::<f64>::get(&huge, 0).unwrap_err().to_string(), &["lying.flac"]);
}
