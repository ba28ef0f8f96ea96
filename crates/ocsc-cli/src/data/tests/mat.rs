//! `.mat` level 5: both byte orders, compressed or not, and a choice of variables.

use super::*;
use std::io::Write;

/// Bytes of `u32`s in either order.
pub(super) fn words(big: bool, words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| if big { w.to_be_bytes() } else { w.to_le_bytes() }).collect()
}

pub(super) fn element(big: bool, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = words(big, &[kind, data.len() as u32]);
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A variable with its class and flags, and numbers of type `kind`.
pub(super) fn matrix(big: bool, name: &str, flags: u32, dims: &[u32], kind: u32, numbers: &[u8]) -> Vec<u8> {
    let mut body = element(big, 6, &words(big, &[flags, 0]));
    body.extend(element(big, 5, &words(big, dims)));
    if name.len() <= 4 && !name.is_empty() {
        // Short names are packed into their tag, as MATLAB does.
        body.extend(words(big, &[(name.len() as u32) << 16 | 1]));
        let mut padded = name.as_bytes().to_vec();
        padded.resize(4, 0);
        body.extend(padded);
    } else {
        body.extend(element(big, 1, name.as_bytes()));
    }
    body.extend(element(big, kind, numbers));
    element(big, 14, &body)
}

pub(super) fn file(big: bool, compressed: bool, variables: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"MATLAB 5.0 MAT-file, a test".to_vec();
    bytes.resize(124, b' ');
    bytes.extend(if big { [1, 0, b'M', b'I'] } else { [0, 1, b'I', b'M'] });
    for variable in variables {
        if compressed {
            let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            packer.write_all(variable).unwrap();
            let packed = packer.finish().unwrap();
            bytes.extend(words(big, &[15, packed.len() as u32]));
            bytes.extend(packed);
        } else {
            bytes.extend(variable);
        }
    }
    bytes
}

/// 0, 1, 2, ... as doubles.
fn doubles(big: bool, n: u32) -> Vec<u8> {
    (0..n).map(f64::from).flat_map(|v| if big { v.to_be_bytes() } else { v.to_le_bytes() }).collect()
}

#[test]
fn byte_orders_and_compression() {
    let folder = tempfile::tempdir().unwrap();
    for (big, compressed) in [(false, false), (false, true), (true, false), (true, true)] {
        let b = matrix(big, "b", 6, &[2, 3, 2], 9, &doubles(big, 12));
        let path = write(folder.path(), "train.mat", &file(big, compressed, &[b]));
        let samples = read_all(&path, "").unwrap();
        assert_eq!(samples.len(), 2);
        // Column-major: element (h, w, n) is number h + 2 w + 6 n.
        assert_eq!(samples[0].shape(), shape(1, 1, 2, 3));
        assert_eq!(samples[0].data(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        assert_eq!(samples[1].data(), [6.0, 8.0, 10.0, 7.0, 9.0, 11.0]);
        assert_eq!(read_all(&path, "HNW").unwrap()[1].data(), [2.0, 8.0, 3.0, 9.0]);
        let source = open(&path, "").unwrap();
        assert!(source.name(1).ends_with("train.mat[1]"));
        assert_eq!(source.file_stem(1), "train-0001");
    }
}

#[test]
fn doubles_stored_as_bytes_and_dropped_axes() {
    let folder = tempfile::tempdir().unwrap();
    // MATLAB stores doubles with small whole values as bytes.
    let b = matrix(false, "images", 6, &[2, 2], 2, &[1, 2, 3, 250]);
    let path = write(folder.path(), "a.mat", &file(false, true, &[b]));
    assert_eq!(read_all(&path, "").unwrap()[0].data(), [1.0, 3.0, 2.0, 250.0]);
    // Saved as (2, 2, 1): the last axis is gone, and HWN still means one sample.
    assert_eq!(read_all(&path, "HWN").unwrap().len(), 1);
    assert_contains(&refusal(&path, "W"), &["(2, 2)", "names 1"]);
}

#[test]
fn a_variable_is_chosen_or_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = |name: &str, value: u8| matrix(false, name, 9, &[1, 1], 2, &[value]);
    let text = matrix(false, "note", 4, &[1, 1], 4, &[65, 0]);
    let complex = matrix(false, "wave", 6 | 0x800, &[1, 1], 9, &[0; 8]);
    let logical = matrix(false, "mask", 9 | 0x200, &[1, 1], 2, &[1]);
    let unnamed = matrix(false, "", 9, &[1, 4], 2, &[1; 4]);
    let mat = |variables: &[Vec<u8>]| write(folder.path(), "v.mat", &file(false, true, variables));
    let value = |path: &Path| read_all(path, "").unwrap()[0].data()[0];

    let sole = mat(&[text.clone(), numbers("only", 7), complex.clone(), unnamed]);
    assert_eq!(value(&sole), 7.0);
    assert_eq!(value(&mat(&[numbers("a", 1), numbers("b", 2)])), 2.0);
    let several = mat(&[numbers("a", 1), numbers("long_name", 3), text.clone(), logical.clone()]);
    let message = refusal(&several, "");
    let listed = ["several", "a (1, 1)", "long_name (1, 1)", "note (text)", "mask (logical)", "v.mat:NAME"];
    assert_contains(&message, &listed);
    assert_eq!(value(&folder.path().join("v.mat:long_name")), 3.0);
    assert_contains(&refusal(&folder.path().join("v.mat:nope"), ""), &["no variable called `nope`", "long_name"]);
    assert_contains(&refusal(&folder.path().join("v.mat:mask"), ""), &["mask", "logical", "double("]);
    assert_contains(&refusal(&mat(&[text, complex]), ""), &["no variable is", "wave (complex", "note (text)"]);
    assert_contains(&refusal(&mat(&[]), ""), &["no variables"]);
}

#[test]
fn other_kinds_of_mat_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let mut hdf = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".to_vec();
    hdf.resize(600, b' ');
    assert_contains(&refusal(&write(folder.path(), "h.mat", &hdf), ""), &["h.mat", "7.3", "save(", "-v7"]);
    let octave = write(folder.path(), "o.mat", b"# Created by Octave 9.2\n# name: b\n");
    assert_contains(&refusal(&octave, ""), &["Octave", "-v7"]);
    assert_contains(&refusal(&write(folder.path(), "x.mat", &[7; 300]), ""), &["not a MATLAB level 5"]);
}
