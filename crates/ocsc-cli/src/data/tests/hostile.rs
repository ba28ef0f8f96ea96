//! Damaged files of every kind give messages: no panic, and no more memory than twice what their header declares, whatever
//! the bytes.
//!
//! The random tests take seconds; `OCSC_FUZZ_SECONDS=600 cargo test -p ocsc-cli hostile` runs each of them for ten minutes.
//! `OCSC_MUTATIONS=50000 cargo test -p ocsc-cli --lib damaged_at_random -- --nocapture` damages so many files and prints how
//! many.

use super::allocations::peak_of;
use super::mat::{file, matrix};
use super::specimens::{palette_png, specimens};
use super::*;
use crate::data::npy;
use crate::data::raw::{Frames, Pixels};
use crate::fuzzing::{self, LIMIT};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::time::Instant;

/// What tables and buffers take, whatever the file: the kernel of the resampler (1 MB), an inflater's window, Huffman tables.
const ALLOWANCE: u64 = (1 << 20) + (1 << 18);

/// Runs a property for so many cases, and again for as long as `OCSC_FUZZ_SECONDS` says.
fn fuzz<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value)) {
    let seconds = std::env::var("OCSC_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(0.0);
    let start = Instant::now();
    loop {
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let ran = TestRunner::new(config).run(&strategy, |value| {
            test(value);
            Ok(())
        });
        ran.unwrap_or_else(|failure| panic!("{failure}"));
        if start.elapsed().as_secs_f64() >= seconds {
            return;
        }
    }
}

/// Reads the file in every way; the answer does not matter, that there is one does, and that it takes little memory.
fn exercise(path: &Path) -> bool {
    let len = std::fs::metadata(path).unwrap().len();
    let (taken, peak) = peak_of(|| fuzzing::exercise(path));
    // Nothing is read that would take more than the limit.
    let most = (2 * taken.declared.max(len)).min(LIMIT as u64) + ALLOWANCE;
    let (shown, declared) = (path.display(), taken.declared);
    assert!(
        peak <= most,
        "{shown} of {len} bytes, which declares {declared}, took {peak} bytes, expected at most {most}"
    );
    taken.read
}

#[test]
fn truncated_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in specimens() {
        let whole = write(folder.path(), name, &bytes);
        assert!(exercise(&whole), "{name} is no valid specimen");
        let samples = |path: &Path| read_all(path, "").ok();
        let complete = samples(&whole);
        // Of a long file, the places where something may be cut in two: the header, and some of the rest.
        for len in (0..bytes.len()).filter(|len| bytes.len() < 1000 || *len < 200 || len % 23 == 0) {
            let path = write(folder.path(), name, &bytes[..len]);
            // What follows the last sample may be missing; a recording of unknown length is as long as it is, and so is a log.
            let harmless = || {
                complete.is_some() && samples(&path) == complete
                    || name == "piped.flac" && samples(&path).is_some_and(|s| s[0].data().len() == 256)
                    || name == "run.jsonl"
            };
            assert!(!exercise(&path) || harmless(), "{name} cut to {len} of {} bytes was read", bytes.len());
        }
    }
}

/// What the crate `png` did not foresee: a palette that is not made of whole colours.
#[test]
fn a_decoder_that_panics_makes_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read_all(&write(folder.path(), "a.png", &palette_png(&[255; 3])), "").unwrap()[0].data(), [1.0; 3]);
    for len in [4, 5, 7, 767] {
        let path = write(folder.path(), "a.png", &palette_png(&vec![255; len]));
        assert_contains(&refusal(&path, ""), &["a.png", "cannot be decoded", "did not foresee"]);
        // The header is whole.
        assert_eq!(open(&path, "").unwrap().size(0).unwrap(), [1, 1, 1]);
    }
    // A panic of our own is still one.
    assert!(std::panic::catch_unwind(|| panic!("as ever")).is_err());
}

#[test]
fn pictures_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let gif = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xf9\x04\0\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    for name in ["a.png", "a.jpg", "a.webp", "a.bmp", "a.pgm", "a.tif", "a.pam"] {
        for bytes in
            [&gif[..], b"plain text", b"<html><body>404</body></html>", b"\x89PNG", b"BM", b"P6", b"RIFF\0\0\0\0WEBP"]
        {
            let path = write(folder.path(), name, bytes);
            assert_contains(&refusal(&path, ""), &[name]);
            exercise(&path);
        }
    }
}

#[test]
fn claims_beyond_the_file_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for dims in [vec![400_000_000, 1000], vec![usize::MAX, usize::MAX], vec![0, usize::MAX, usize::MAX], vec![9; 40]] {
        let path = write(folder.path(), "a.npy", &npy::encode("<f8", &dims, &[0; 64]));
        assert_contains(&refusal(&path, ""), &["a.npy"]);
    }
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend([255; 4]);
    assert_contains(&refusal(&write(folder.path(), "a.npy", &long), ""), &["header of 4294967295 bytes"]);
    let nested = [&b"\x93NUMPY\x01\x00\xff\xef"[..], &[b'('; 0xefff]].concat();
    assert!(read_all(&write(folder.path(), "a.npy", &nested), "").is_err());
    for (dims, numbers) in
        [(vec![i32::MAX as u32; 3], vec![0; 8]), (vec![2, u32::MAX], vec![0; 8]), (vec![1; 40], vec![0])]
    {
        for compressed in [false, true] {
            let b = matrix(false, "b", 6, &dims, 9, &numbers);
            let path = write(folder.path(), "a.mat", &file(false, compressed, &[b]));
            assert_contains(&refusal(&path, ""), &["a.mat"]);
        }
    }
}

/// Damages bytes: flips a bit, sets a byte or a word, cuts, repeats or removes a stretch.
fn damage(bytes: &mut Vec<u8>, kind: u8, place: Index, value: u64) {
    if bytes.is_empty() {
        return;
    }
    let at = place.index(bytes.len());
    let words = [0, 1, u32::MAX, i32::MAX as u32, i32::MIN as u32, 0xffff, 0x8000_0001, value as u32];
    let stretch = at..(at + value as usize % 64).min(bytes.len());
    match kind % 7 {
        0 | 1 => bytes[at] ^= 1 << (value % 8),
        2 => bytes[at] = value as u8,
        3 => {
            let word = words[value as usize % words.len()];
            let word = if value & 256 == 0 { word.to_le_bytes() } else { word.to_be_bytes() };
            bytes.iter_mut().skip(at).zip(word).for_each(|(b, w)| *b = w);
        }
        4 => bytes.truncate(at),
        5 => {
            let again = bytes[stretch].to_vec();
            bytes.splice(at..at, again);
        }
        _ => drop(bytes.drain(stretch)),
    }
}

/// How many files to damage.
fn mutations() -> u32 {
    std::env::var("OCSC_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(2500)
}

#[test]
#[expect(clippy::print_stdout, reason = "the count is asked for")]
fn damaged_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let specimens = specimens();
    let edits = prop::collection::vec((any::<u8>(), any::<Index>(), any::<u64>()), 1..6);
    let (count, refused) = (Cell::new(0), Cell::new(0));
    fuzz(mutations(), (any::<Index>(), edits), |(which, edits)| {
        let (name, whole) = &specimens[which.index(specimens.len())];
        let mut bytes = whole.clone();
        edits.into_iter().for_each(|(kind, place, value)| damage(&mut bytes, kind, place, value));
        let read = exercise(&write(folder.path(), name, &bytes));
        count.set(count.get() + 1);
        refused.set(refused.get() + usize::from(!read));
    });
    let (count, refused, kinds) = (count.get(), refused.get(), specimens.len());
    println!("{count} mutations of {kinds} files, {refused} refused: no panic, memory at most 2x the declared size");
}

#[test]
fn any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[(){}\\[\\]:, '\"<f8descrtuFTalse0-9]{0,80}";
    fuzz(150, (prop::collection::vec(any::<u8>(), 0..300), text), |(bytes, text)| {
        let header = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
        let after = |start: &[u8]| [start, &bytes].concat();
        for (name, bytes) in [
            ("a.npy", &header),
            ("b.npy", &bytes),
            ("a.npz", &bytes),
            ("a.mat", &after(&file(false, false, &[]))),
            ("b.mat", &bytes),
            ("a.bin", &bytes.repeat(11)),
            ("a.wav", &after(b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00")),
            ("b.wav", &bytes),
            ("a.flac", &after(b"fLaC\x80\x00\x00\x22\x10\x00\x10\x00")),
            ("b.flac", &bytes),
        ] {
            exercise(&write(folder.path(), name, bytes));
        }
        for pixels in [Pixels::Gray, Pixels::Gray16le, Pixels::Grayf32le, Pixels::Rgb24, Pixels::Rgb48le] {
            let mut frames = Frames::new(&bytes[..], 3, 2, pixels, true);
            let mut whole = 0;
            while let Ok(Some(frame)) = frames.next_frame() {
                assert_eq!(frame.shape().pixels(), 6);
                whole += 1;
            }
            assert!(whole <= bytes.len() / frames.bytes() && frames.left_over < frames.bytes());
        }
    });
}
