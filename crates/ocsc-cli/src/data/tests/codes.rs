//! Codes: round trips, what others read, and what is refused.

use super::*;
use crate::data::Facts;
use crate::data::codes::{read_code, read_filters, read_mixing, write_code};
use crate::data::{npy, npz};
use ndarray::{Array0, Array1, Array2};
use ndarray_npy::NpzReader;
use ocsc::{Atom, Code, Dictionary, Mixing, Real, Shape};

fn code<T: Real>() -> Code<T> {
    let atom = |filter, position, value| Atom { filter, position, value: T::of(value) };
    Code::new(4, [1, 5, 6], vec![atom(0, 7, 0.5), atom(3, 29, -0.1), atom(0, 2, 1.25)]).unwrap()
}

#[test]
fn codes_survive_in_both_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    write_code(&path, &code::<f32>(), None, 2, &Facts { objective: Some(12.5), ..Facts::default() }).unwrap();
    assert_eq!(read_code::<f32>(&path).unwrap(), (code(), 2));
    write_code(&path, &code::<f64>(), None, 2, &Facts::default()).unwrap();
    assert_eq!(read_code::<f64>(&path).unwrap(), (code(), 2));
    assert_eq!(read_code::<f32>(&path).unwrap(), (code(), 2));
    let nothing = Code::<f64>::zero(4, [2, 5, 6]);
    write_code(&path, &nothing, None, 3, &Facts::default()).unwrap();
    assert_eq!(read_code::<f64>(&path).unwrap(), (nothing, 3));
    let message =
        write_code(&path, &Code::<f64>::zero(4, [2, 5, 6]), None, 2, &Facts::default()).unwrap_err().to_string();
    assert_contains(&message, &["x.npz", "(2, 5, 6)", "more than 2 axes"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

/// How a sample's own filters are made of the model's survives, and is refused where it does not fit.
#[test]
fn mixing_survives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    write_code(&path, &code::<f32>(), None, 2, &Facts::default()).unwrap();
    assert_eq!(read_mixing(&path).unwrap(), None);
    let mixing = Mixing::new(vec![3, 1], (0..8).map(f64::from).collect()).unwrap();
    write_code(&path, &code::<f32>(), Some(&mixing), 2, &Facts::default()).unwrap();
    assert_eq!(read_mixing(&path).unwrap(), Some(mixing));
    let filters = |n: usize| Dictionary::new(n, Shape::image(1, 2), 2, vec![0.01; 2 * n]).unwrap();
    let combined = read_filters(&path, &filters(4)).unwrap().unwrap();
    let taps: Vec<f64> = [1.0, 5.0, 9.0, 13.0].into_iter().flat_map(|sum| [sum * f64::from(0.01f32); 2]).collect();
    combined.data().iter().zip(taps).for_each(|(tap, wanted)| assert!((tap - wanted).abs() < 1e-8));
    let message = |n| format!("{:#}", read_filters(&path, &filters(n)).unwrap_err());
    assert_contains(&message(3), &["x.npz", "base", "below 3", "3"]);
    assert_contains(&message(5), &["x.npz", "mixing", "5 filters", "4 filters"]);
}

#[test]
fn ndarray_npy_reads_codes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    write_code(&path, &code::<f32>(), None, 2, &Facts { gap: Some(0.01), ..Facts::default() }).unwrap();
    let mut archive = NpzReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let filter: Array1<i32> = archive.by_name("filter").unwrap();
    let position: Array2<i32> = archive.by_name("position").unwrap();
    let value: Array1<f32> = archive.by_name("value").unwrap();
    let dense: Array1<i64> = archive.by_name("shape").unwrap();
    let gap: Array0<f64> = archive.by_name("gap").unwrap();
    assert_eq!(filter.to_vec(), [0, 0, 3]);
    assert_eq!(position.into_raw_vec_and_offset().0, [0, 2, 1, 1, 4, 5]);
    assert_eq!(value.to_vec(), [1.25, 0.5, -0.1]);
    assert_eq!(dense.to_vec(), [4, 5, 6]);
    assert_eq!(gap.into_scalar(), 0.01);
}

/// Writes the four arrays of a one-atom code, after `change` has had its way, and returns the message.
fn refuse(change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let ints = |v: &[i32]| v.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<_>>();
    let arrays = [
        ("filter", npy::encode("<i4", &[1], &ints(&[3]))),
        ("position", npy::encode("<i4", &[1, 2], &ints(&[4, 5]))),
        ("value", npy::encode("<f4", &[1], &1f32.to_le_bytes())),
        ("shape", npy::encode("<i4", &[3], &ints(&[4, 5, 6]))),
    ];
    let changed: Vec<_> = arrays.into_iter().filter_map(|(name, npy)| Some((name, change(name, npy)?))).collect();
    npz::write(std::fs::File::create(&path).unwrap(), changed.into_iter().map(Ok)).unwrap();
    match read_code::<f64>(&path) {
        Ok(_) => "accepted".into(),
        Err(e) => format!("{e:#}"),
    }
}

#[test]
fn damaged_codes_are_refused() {
    let ints = |shape: &[usize], v: &[i32]| {
        npy::encode("<i4", shape, &v.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<_>>())
    };
    let with = |which: &'static str, new: Vec<u8>| {
        refuse(move |name, old| Some(if name == which { new.clone() } else { old }))
    };
    assert_eq!(refuse(|_, npy| Some(npy)), "accepted");
    let missing = refuse(|name, npy| (name != "value").then_some(npy));
    assert_contains(&missing, &["x.npz", "`value`", "filter, position, shape"]);
    assert_contains(&with("filter", ints(&[1], &[4])), &["filter 4 at (4, 5)", "(4, 5, 6)"]);
    assert_contains(&with("filter", ints(&[1], &[-1])), &["`filter`", "negative"]);
    assert_contains(&with("filter", ints(&[], &[1])), &["`filter` has shape ()"]);
    assert_contains(&with("position", ints(&[1, 2], &[5, 0])), &["at (5, 0)"]);
    assert_contains(&with("position", ints(&[2, 1], &[5, 0])), &["`position` has shape (2, 1)", "(1, 2)"]);
    assert_contains(&with("shape", ints(&[1], &[4])), &["`shape` is (4,)"]);
    assert_contains(&with("shape", ints(&[3], &[4, i32::MAX, i32::MAX])), &["`shape`", "2^32"]);
    assert_contains(&with("shape", ints(&[3], &[4, 0, 6])), &["`shape`"]);
    assert_contains(&with("value", ints(&[1], &[1])), &["`value` holds integers"]);
    let nan = npy::encode("<f4", &[1], &f32::NAN.to_le_bytes());
    assert_contains(&with("value", nan), &["x.npz", "finite"]);
    let fractions = npy::encode("<f4", &[1], &3f32.to_le_bytes());
    assert_contains(&with("filter", fractions), &["`filter` holds fractions"]);
}
