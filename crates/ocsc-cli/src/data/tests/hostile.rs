//! Damaged files of every kind give messages: no panic, no huge allocation, whatever the bytes.
//!
//! The random tests take seconds; `OCSC_FUZZ_SECONDS=600 cargo test -p ocsc-cli hostile` runs each of them for ten minutes.

use super::mat::{file, matrix};
use super::*;
use crate::data::codes::{read_code, write_code};
use crate::data::raw::{Frames, Pixels};
use crate::data::{npy, npz};
use ocsc::{Atom, Code};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Remembers the largest allocation of each thread.
struct Watched;

// SAFETY: hands every call on to the system's allocator unchanged; the record is a plain thread-local number.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(size));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

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

/// A small valid file of every format: its name and bytes.
fn specimens() -> Vec<(&'static str, Vec<u8>)> {
    let array = npy::encode("<f4", &[2, 2, 3], &counting(12));
    let mut packed = std::io::Cursor::new(Vec::new());
    npz::write(&mut packed, &[("a", array.clone()), ("b", array.clone())]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("s.npz");
    let mut writer = ndarray_npy::NpzWriter::new(std::fs::File::create(&stored).unwrap());
    writer.add_array("a", &ndarray::array![[1.0f32, 2.0]]).unwrap();
    writer.finish().unwrap();
    let code_path = folder.path().join("c.npz");
    let code = Code::new(2, [1, 3, 3], vec![Atom { filter: 1, position: 4, value: 0.5f32 }]).unwrap();
    write_code(&code_path, &code, 2, &[("gap", 0.1)]).unwrap();
    let b = |big| matrix(big, "b", 7, &[2, 3, 2], 7, &counting(12));
    let note = matrix(false, "note", 4, &[1, 1], 4, &[65, 0]);
    let mut picture = std::io::Cursor::new(Vec::new());
    let levels: ::image::GrayImage = ::image::ImageBuffer::from_fn(9, 9, |x, y| ::image::Luma([(x * y) as u8]));
    ::image::DynamicImage::from(levels).write_to(&mut picture, ::image::ImageFormat::Tiff).unwrap();
    let wave = folder.path().join("a.wav");
    super::audio::wav(&wave, &super::audio::waves(2, 90, 16), 16, 8000);
    let flac = |known| super::flac::encode(&super::audio::waves(2, 300, 16), 16, 8000, 20, known);
    vec![
        ("a.npy", array),
        ("b.npy", npy::encode("|b1", &[2, 3], &[0, 1, 1, 0, 1, 0])),
        ("packed.npz", packed.into_inner()),
        ("stored.npz", std::fs::read(stored).unwrap()),
        ("code.npz", std::fs::read(code_path).unwrap()),
        ("plain.mat", file(false, false, &[note.clone(), b(false)])),
        ("packed.mat", file(false, true, &[note, b(false)])),
        ("big.mat", file(true, false, &[b(true)])),
        ("a.tif", picture.into_inner()),
        ("a.bin", [&[3][..], &[77; 3072]].concat()),
        ("a.wav", std::fs::read(wave).unwrap()),
        ("known.flac", flac(true)),
        ("piped.flac", flac(false)),
    ]
}

/// Reads the file in every way; the answer does not matter, that there is one does, and that it takes little memory.
fn exercise(path: &Path) -> bool {
    let first = |options: &SourceOptions| {
        let source = Source::open(&[path.to_owned()], options).ok()?;
        Samples::<f32>::get(&source, source.len() - 1).ok();
        Samples::<f32>::get(&source, 0).ok()
    };
    LARGEST.set(0);
    let read = read_all(path, "").is_ok();
    let _ = read_all(path, "NCHW");
    let is_mask = first(&SourceOptions { is_mask: true, nan_is_missing: true, ..options("") }).is_some();
    let _ = first(&SourceOptions { window: Some("3".parse().unwrap()), ..options("NW") });
    let all = "all".parse().unwrap();
    let _ =
        first(&SourceOptions { rate: Some(6000), window: Some("50".parse().unwrap()), channel: all, ..options("") });
    let _ = first(&SourceOptions { mask: Some(path.to_owned()), ..options("") });
    let code = path.extension().is_some_and(|e| e == "npz") && read_code::<f32>(path).is_ok();
    // Decoders of images may take up to 512 MB, see `image.rs`.
    let most = if path.extension().is_some_and(|e| e == "tif") { 600 << 20 } else { 8 << 20 };
    assert!(LARGEST.get() < most, "{} allocated {} bytes at once", path.display(), LARGEST.get());
    read || code || is_mask
}

#[test]
fn truncated_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in specimens() {
        assert!(exercise(&write(folder.path(), name, &bytes)), "{name} is no valid specimen");
        // Of a long file, the places where something may be cut in two: the header, and some of the rest.
        for len in (0..bytes.len()).filter(|len| bytes.len() < 1000 || *len < 200 || len % 23 == 0) {
            let path = write(folder.path(), name, &bytes[..len]);
            let read = exercise(&path);
            // A .mat without variables after the cut, or a picture whose last bytes are padding, may still be whole; a
            // recording of unknown length is as long as it is.
            let harmless = name == "a.tif"
                || (name.ends_with(".mat") && read_all(&path, "").is_ok_and(|s| s.len() == 2))
                || (name == "piped.flac" && read_all(&path, "").is_ok_and(|s| s[0].data().len() == 256));
            assert!(!read || harmless, "{name} cut to {len} of {} bytes was read", bytes.len());
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

#[test]
fn damaged_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let specimens = specimens();
    let edits = prop::collection::vec((any::<u8>(), any::<Index>(), any::<u64>()), 1..6);
    fuzz(1500, (any::<Index>(), edits), |(which, edits)| {
        let (name, whole) = &specimens[which.index(specimens.len())];
        let mut bytes = whole.clone();
        edits.into_iter().for_each(|(kind, place, value)| damage(&mut bytes, kind, place, value));
        exercise(&write(folder.path(), name, &bytes));
    });
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
