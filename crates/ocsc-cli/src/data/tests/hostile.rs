//! Damaged files of every kind give messages: no panic, no huge allocation, whatever the bytes.

use super::mat::{file, matrix};
use super::*;
use crate::data::codes::{read_code, write_code};
use crate::data::{npy, npz};
use ocsc::{Atom, Code};
use proptest::prelude::*;

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
    vec![
        ("a.npy", array),
        ("packed.npz", packed.into_inner()),
        ("stored.npz", std::fs::read(stored).unwrap()),
        ("code.npz", std::fs::read(code_path).unwrap()),
        ("plain.mat", file(false, false, &[note.clone(), b(false)])),
        ("packed.mat", file(false, true, &[note, b(false)])),
        ("big.mat", file(true, false, &[b(true)])),
        ("a.tif", picture.into_inner()),
    ]
}

/// Reads the file in every way; the answer does not matter, that there is one does.
fn exercise(path: &Path) -> bool {
    let read = read_all(path, "").is_ok();
    let _ = read_all(path, "NCHW");
    let code = path.extension().is_some_and(|e| e == "npz") && read_code::<f32>(path).is_ok();
    read || code
}

#[test]
fn truncated_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in specimens() {
        assert!(exercise(&write(folder.path(), name, &bytes)), "{name} is no valid specimen");
        for len in 0..bytes.len() {
            let path = write(folder.path(), name, &bytes[..len]);
            let read = exercise(&path);
            // A .mat without variables after the cut, or a picture whose last bytes are padding, may still be whole.
            let harmless =
                name == "a.tif" || (name.ends_with(".mat") && read_all(&path, "").is_ok_and(|s| s.len() == 2));
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let folder = tempfile::tempdir().unwrap();
        for (name, mut bytes) in specimens() {
            for (place, value) in &flips {
                let at = place.index(bytes.len());
                bytes[at] = *value;
            }
            exercise(&write(folder.path(), name, &bytes));
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[(){}\\[\\]:, '\"<f8descrtuFTalse0-9]{0,80}") {
        let folder = tempfile::tempdir().unwrap();
        let header = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
        let mat = [&file(false, false, &[])[..], &bytes].concat();
        for (name, bytes) in [("a.npy", &header), ("b.npy", &bytes), ("a.npz", &bytes), ("a.mat", &mat), ("b.mat", &bytes)] {
            exercise(&write(folder.path(), name, bytes));
        }
    }
}
