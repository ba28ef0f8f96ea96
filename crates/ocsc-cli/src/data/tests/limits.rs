//! Small files that claim much: held against the memory limit before anything is decoded.

use super::allocations::peak_of;
use super::mat::{file, matrix};
use super::*;
use crate::data::codes::read_code;
use crate::data::{npy, npz};
use crate::memory::Limit;
use std::io::Write;

/// Refuses to read the file in a megabyte, and takes no more to find out.
#[track_caller]
fn refuse(path: &Path, parts: &[&str]) {
    let options = SourceOptions { limit: Limit::new(Some(1 << 20)), ..options("") };
    let read = || -> Result<Vec<Sample<f32>>> {
        let source = Source::open(&[path.to_owned()], &options)?;
        (0..source.len().min(3)).map(|i| Ok(Samples::<f32>::get(&source, i)?)).collect()
    };
    let (read, peak) = peak_of(read);
    let message = format!("{:#}", read.err().unwrap_or_else(|| panic!("{} was read", path.display())));
    assert_contains(
        &message,
        &[&[path.file_name().unwrap().to_str().unwrap(), "the memory limit allows"], parts].concat(),
    );
    assert!(peak < 1 << 20, "{} took {peak} bytes", path.display());
    // Its size is held against the limit as well: it is a bad sample from the start.
    if let Ok(source) = Source::open(&[path.to_owned()], &options) {
        assert_contains(&format!("{:#}", source.size(0).unwrap_err()), &["the memory limit allows"]);
    }
}

#[test]
fn pictures() {
    let folder = tempfile::tempdir().unwrap();
    let blank: ::image::GrayImage = ::image::ImageBuffer::new(3000, 2000);
    for name in ["a.png", "a.jpg", "a.webp", "a.bmp", "a.pgm", "a.tif"] {
        let path = folder.path().join(name);
        let picture = ::image::DynamicImage::from(blank.clone());
        if name == "a.webp" { picture.into_rgb8().into() } else { picture }.save(&path).unwrap();
        refuse(&path, &["2000x3000"]);
    }
    // A header and nothing else.
    let huge = write(folder.path(), "huge.ppm", b"P6 65000 65000 65535\n0123456789");
    refuse(&huge, &["65000x65000"]);
}

#[test]
fn arrays() {
    let folder = tempfile::tempdir().unwrap();
    // A hole of eight gigabytes, as a file system may hold in a few kilobytes.
    let mut hole = npy::encode("|u1", &[1, 65536, 131072], &[]);
    let path = write(folder.path(), "hole.npy", &hole);
    hole.clear();
    let file_of = |path: &Path| std::fs::OpenOptions::new().append(true).open(path).unwrap();
    let len = std::fs::metadata(&path).unwrap().len();
    file_of(&path).set_len(len + (8 << 30)).unwrap();
    refuse(&path, &["65536x131072"]);
    // More samples than could be counted in memory.
    let path = write(folder.path(), "many.npy", &npy::encode("|u1", &[1 << 40, 1, 1], &[]));
    let len = std::fs::metadata(&path).unwrap().len();
    file_of(&path).set_len(len + (1 << 40)).unwrap();
    let options = SourceOptions { limit: Limit::new(Some(1 << 20)), ..options("") };
    let message = format!("{:#}", Source::open(&[path], &options).unwrap_err());
    assert_contains(&message, &["many.npy", "lists of 1099511627776 samples", "the memory limit allows"]);
    // Zeros, of which a thousand take a byte.
    let zeros = npy::encode("|u1", &[2000, 3000], &vec![0; 6_000_000]);
    let path = folder.path().join("packed.npz");
    npz::write(std::fs::File::create(&path).unwrap(), [Ok(("a", zeros))]).unwrap();
    refuse(&path, &["unpacked"]);
    let path = write(
        folder.path(),
        "packed.mat",
        &file(false, true, &[matrix(false, "b", 9, &[2000, 3000], 2, &vec![0; 6_000_000])]),
    );
    refuse(&path, &["unpacked"]);
}

/// An archive whose member goes on after the length that its directory claims, or has another checksum.
#[test]
fn members_of_archives_are_what_they_claim() {
    let folder = tempfile::tempdir().unwrap();
    let array = npy::encode("<f4", &[2, 2, 3], &counting(12));
    let path = folder.path().join("a.npz");
    npz::write(std::fs::File::create(&path).unwrap(), [Ok(("a", array.clone()))]).unwrap();
    let whole = std::fs::read(&path).unwrap();
    // The entry of the directory: its signature, then checksum and length after 16 and 24 bytes.
    let entry = whole.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
    let mut short = whole.clone();
    short[entry + 24..][..4].copy_from_slice(&(array.len() as u32 - 4).to_le_bytes());
    assert_contains(&refusal(&write(folder.path(), "short.npz", &short), ""), &["short.npz", "the archive is damaged"]);
    let mut other = whole.clone();
    other[entry + 16] ^= 1;
    assert_contains(&refusal(&write(folder.path(), "other.npz", &other), ""), &["other.npz", "the archive is damaged"]);
}

#[test]
fn recordings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.wav");
    super::audio::wav(&path, &super::audio::waves(1, 200_000, 16), 16, 100_000);
    refuse(&path, &["windows of 200000 values"]);
    // A stream that claims 2^36 - 1 values at one a second, in windows of five.
    let mut bytes = super::flac::encode(&super::audio::waves(1, 300, 16), 16, 8000, 20, true);
    bytes[18..26].copy_from_slice(&((1_u64 << 44) | (15 << 36) | ((1 << 36) - 1)).to_be_bytes());
    let path = write(folder.path(), "long.flac", &bytes);
    let options = SourceOptions { limit: Limit::new(Some(1 << 20)), ..options("") };
    let message = format!("{:#}", Source::open(&[path], &options).unwrap_err());
    assert_contains(&message, &["long.flac", "lists of", "the memory limit allows"]);
}

/// Two atoms may lie in a code of billions of positions; reading it takes nothing.
#[test]
fn codes_are_read_in_what_their_atoms_take() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.npz");
    let words = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let arrays = [
        ("filter", npy::encode("<i8", &[2], &words(&[0, 3]))),
        ("position", npy::encode("<i8", &[2, 2], &words(&[0, 0, 65534, 65534]))),
        ("value", npy::encode("<f4", &[2], &counting(2))),
        ("shape", npy::encode("<i8", &[3], &words(&[4, 65535, 65535]))),
    ];
    let mut file = std::fs::File::create(&path).unwrap();
    npz::write(&mut file, arrays.into_iter().map(Ok)).unwrap();
    file.flush().unwrap();
    let (read, peak) = peak_of(|| read_code::<f32>(&path).unwrap());
    assert_eq!((read.0.nonzeros(), read.0.shape()), (2, [1, 65535, 65535]));
    assert!(peak < 1 << 20, "{peak} bytes");
}

/// Devices, pipes and folders under the names of files.
#[test]
#[cfg(unix)]
fn only_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["png", "npy", "npz", "mat", "wav", "flac", "tif", "bin", "jpg"] {
        let path = folder.path().join(format!("zero.{ending}"));
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_contains(&refusal(&path, ""), &["zero.", "expected a folder of images", "found a device"]);
    }
    let list = folder.path().join("list.txt");
    std::os::unix::fs::symlink("/dev/zero", &list).unwrap();
    let named = PathBuf::from(format!("@{}", list.display()));
    assert_contains(&refusal(&named, ""), &["list.txt", "one path per line", "found a device"]);
    let endless = write(folder.path(), "line.txt", &[b'a'; 70_000]);
    let named = PathBuf::from(format!("@{}", endless.display()));
    assert_contains(&refusal(&named, ""), &["line.txt", "line 1", "longer than any path"]);
}
