//! `.npy` and `.npz`: types, orders, axes, and an independent writer.

use super::*;
use crate::data::{npy, npz};
use ndarray::{Array2, Array3, ShapeBuilder, array};
use ndarray_npy::{NpzWriter, WritableElement, write_npy};

fn round_trip<A: WritableElement + Clone>(values: [A; 6]) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let plain = Array2::from_shape_vec((2, 3), values.to_vec()).unwrap();
    write_npy(&path, &plain).unwrap();
    let sample = get(&open(&path, "").unwrap(), 0);
    assert_eq!(sample.shape(), shape(1, 1, 2, 3));
    let mut turned = Array2::from_shape_vec((2, 3).f(), values.to_vec()).unwrap();
    turned.assign(&plain);
    write_npy(&path, &turned).unwrap();
    assert_eq!(get(&open(&path, "").unwrap(), 0), sample, "Fortran order");
    sample.into_data()
}

#[test]
fn npy_types_and_orders_agree_with_ndarray_npy() {
    assert_eq!(round_trip([0u8, 1, 2, 3, 4, 255]), [0.0, 1.0, 2.0, 3.0, 4.0, 255.0]);
    assert_eq!(round_trip([-3i8, 1, 2, 3, 4, 5])[0], -3.0);
    assert_eq!(round_trip([0i16, 1, 2, 3, 4, -300])[5], -300.0);
    assert_eq!(round_trip([0u16, 1, 2, 3, 4, 65535])[5], 65535.0);
    assert_eq!(round_trip([0i32, 1, 2, 3, 4, -70000])[5], -70000.0);
    assert_eq!(round_trip([0u32, 1, 2, 3, 4, u32::MAX])[5], f64::from(u32::MAX));
    assert_eq!(round_trip([0i64, 1, 2, 3, 4, -(1 << 40)])[5], -(2f64.powi(40)));
    assert_eq!(round_trip([0u64, 1, 2, 3, 4, 1 << 40])[5], 2f64.powi(40));
    assert_eq!(round_trip([0f32, 0.1, 2.0, 3.0, 4.0, 5.0])[1], f64::from(0.1f32));
    assert_eq!(round_trip([0f64, 0.1, 2.0, 3.0, 4.0, 5.0])[1], 0.1);
}

#[test]
fn big_endian_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    let path = write(folder.path(), "a.npy", &npy::encode(">f8", &[1, 2], &data));
    assert_eq!(get(&open(&path, "").unwrap(), 0).data(), [1.5, -2.0]);
}

#[test]
fn what_we_write_ndarray_npy_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.npy");
    let sample = Sample::new(shape(2, 1, 2, 3), (0..12).map(f64::from).collect()).unwrap();
    crate::data::write::write_npy(&path, &sample, 2).unwrap();
    let read: Array3<f64> = ndarray_npy::read_npy(&path).unwrap();
    assert_eq!(read.shape(), [2, 2, 3]);
    assert_eq!(read.into_raw_vec_and_offset().0, sample.data());
    let source = open(&path, "CHW").unwrap();
    assert_eq!(get(&source, 0), sample);
    let deep = Sample::new(shape(1, 2, 2, 3), sample.data().to_vec()).unwrap();
    let message = crate::data::write::write_npy(&path, &deep, 2).unwrap_err().to_string();
    assert_contains(&message, &["out.npy", "2 spatial axes"]);
}

#[test]
fn every_order_of_axes_gives_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    let lens = [('N', 2), ('C', 3), ('D', 2), ('H', 4), ('W', 5)];
    let value = |place: &dyn Fn(char) -> usize| lens.iter().fold(0, |v, (letter, len)| v * len + place(*letter)) as f32;
    for axes in ["NCDHW", "WHDCN", "HWDCN", "CNDWH", "NDHWC", "DNWCH"] {
        let dims: Vec<usize> = axes.chars().map(|c| lens.iter().find(|l| l.0 == c).unwrap().1).collect();
        let mut data = Vec::new();
        for flat in 0..dims.iter().product::<usize>() {
            let mut rest = flat;
            let mut places = [0; 5];
            for (place, len) in places.iter_mut().zip(&dims).rev() {
                *place = rest % len;
                rest /= len;
            }
            data.extend(value(&|letter| places[axes.find(letter).unwrap()]).to_le_bytes());
        }
        let path = write(folder.path(), "a.npy", &npy::encode("<f4", &dims, &data));
        let samples = read_all(&path, axes).unwrap();
        assert_eq!(samples.len(), 2);
        for (n, sample) in samples.iter().enumerate() {
            assert_eq!(sample.shape(), shape(3, 2, 4, 5));
            let expected: Vec<f64> = (0..120).map(|i| (n * 120 + i) as f64).collect();
            assert_eq!(sample.data(), expected, "{axes}");
        }
    }
}

#[test]
fn axes_are_assumed_or_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let array = |dims: &[usize]| {
        let n = dims.iter().product();
        write(folder.path(), "train.npy", &npy::encode("<f4", dims, &counting(n)))
    };
    assert_eq!(read_all(&array(&[7]), "").unwrap()[0].shape(), shape(1, 1, 1, 7));
    assert_eq!(open(&array(&[7]), "").unwrap().rank(), 1);
    assert_eq!(read_all(&array(&[2, 3]), "").unwrap()[0].shape(), shape(1, 1, 2, 3));
    assert_eq!(read_all(&array(&[2, 3, 4]), "").unwrap().len(), 2);
    let depth = open(&array(&[2, 3, 4]), "DHW").unwrap();
    assert_eq!((depth.len(), depth.rank(), depth.name(0).ends_with("train.npy")), (1, 3, true));
    let message = refusal(&array(&[10, 3, 4, 5]), "");
    assert_contains(&message, &["train.npy: an array of shape (10, 3, 4, 5) needs --axes, e.g. NCHW; assumed NHW"]);
    assert_contains(&message, &["NHWC, NDHW, CDHW would fit"]);
    let given = ["(2, 3)", "2 axes", "--axes NHW names 3", "--axes HW, NW, CW would fit"];
    assert_contains(&refusal(&array(&[2, 3]), "NHW"), &given);
    assert_contains(&refusal(&array(&[2; 5]), ""), &["(2, 2, 2, 2, 2)", "needs --axes", "NCDHW"]);
    let reading = open(&array(&[2, 3, 4]), "").unwrap().reading(0).unwrap();
    assert_contains(&reading, &["(2, 3, 4)", "read as NHW", "CHW, HWC, DHW, NCW"]);
    assert_contains(&refusal(&array(&[2; 6]), ""), &["five axes"]);
    assert_contains(&refusal(&array(&[]), ""), &["a single number"]);
    assert_contains(&refusal(&array(&[3, 0, 4]), ""), &["(3, 0, 4)", "empty"]);
    assert_eq!("nchw".parse::<crate::data::Axes>().unwrap().to_string(), "NCHW");
    for (text, why) in [("NHX", "`X`, which is not an axis"), ("NHWH", "twice"), ("NH", "no W"), ("", "no W")] {
        let message = text.parse::<crate::data::Axes>().unwrap_err().to_string();
        assert_contains(&message, &[why, "NCHW"]);
    }
}

#[test]
fn refused_types_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (descr, what) in
        [("<c16", "complex"), ("|b1", "booleans"), ("<U3", "text"), ("|O", "objects"), ("<f2", "another size")]
    {
        let shape = [1, if descr == "|b1" { 16 } else { 1 }];
        let path = write(folder.path(), "a.npy", &npy::encode(descr, &shape, &[0; 16]));
        assert_contains(&refusal(&path, ""), &["a.npy", what, descr, "astype"]);
    }
    let records = npy::encode("x", &[1], &[0; 16]);
    let text = String::from_utf8_lossy(&records[10..]).replace("'x'", "[('a', '<f4')]");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    assert_contains(&refusal(&write(folder.path(), "a.npy", &bytes), ""), &["records"]);
    let nan = npy::encode("<f4", &[1, 2], &[0u32.to_le_bytes(), f32::NAN.to_bits().to_le_bytes()].concat());
    assert_contains(&refusal(&write(folder.path(), "a.npy", &nan), ""), &["a.npy", "finite", "column 1"]);
    // Finite in f64, infinite once rounded to f32.
    let large = write(folder.path(), "b.npy", &npy::encode("<f8", &[1, 1], &1e300f64.to_le_bytes()));
    assert!(Samples::<f32>::get(&open(&large, "").unwrap(), 0).unwrap_err().to_string().contains("b.npy"));
}

#[test]
fn npz_gives_its_arrays_in_name_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pair.npz");
    let mut stored = NpzWriter::new(std::fs::File::create(&path).unwrap());
    stored.add_array("z", &array![[3.0f32, 4.0]]).unwrap();
    stored.add_array("a", &array![[[1u8, 2]], [[5, 6]]]).unwrap();
    stored.finish().unwrap();
    let source = open(&path, "").unwrap();
    let values: Vec<_> = (0..source.len()).map(|i| get(&source, i).into_data()).collect();
    assert_eq!(values, [[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]]);
    assert!(source.name(1).ends_with("pair.npz:a[1]") && source.name(2).ends_with("pair.npz:z"));
    assert_eq!((source.file_stem(1), source.file_stem(2)), ("pair-a-0001".into(), "pair-z".into()));
    let picked = open(&folder.path().join("pair.npz:z"), "").unwrap();
    assert_eq!(get(&picked, 0).data(), [3.0, 4.0]);
    assert_contains(&refusal(&folder.path().join("pair.npz:q"), ""), &["`q`", "a, z"]);
}

#[test]
fn npz_says_which_arrays_it_cannot_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.npz");
    let arrays = [
        ("x", npy::encode("<f4", &[1, 2], &counting(2))),
        ("gap", npy::encode("<f8", &[], &[0; 8])),
        ("words", npy::encode("<U1", &[1], &[0; 4])),
    ];
    npz::write(std::fs::File::create(&path).unwrap(), arrays.into_iter().map(Ok)).unwrap();
    let message = refusal(&path, "");
    assert_contains(&message, &["gap, words, x", "`gap`: a single number", "`words`", "text", "mixed.npz:NAME"]);
    assert!(!message.contains("`x`"));
    assert_eq!(get(&open(&folder.path().join("mixed.npz:x"), "").unwrap(), 0).data(), [0.0, 1.0]);
}
