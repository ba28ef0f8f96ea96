//! The first samples, some at random, those that are large enough.

use super::*;
use crate::data::npy;

/// A source of `n` samples of 2x3 numbered by their first value.
pub(super) fn numbered(folder: &Path, n: usize) -> Source {
    open(&write(folder, "a.npy", &npy::encode("<f4", &[n, 2, 3], &counting(6 * n))), "").unwrap()
}

/// The numbers of the samples in use.
pub(super) fn numbers(source: &Source) -> Vec<usize> {
    (0..source.len()).map(|i| get(source, i).data()[0] as usize / 6).collect()
}

#[test]
fn subsets_are_seeded_and_keep_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let source = numbered(folder.path(), 50);
    let subset = source.subset(8, 3);
    assert_eq!(subset.len(), 8);
    assert!(numbers(&subset).is_sorted_by(|a, b| a < b));
    assert_eq!(numbers(&subset), numbers(&source.subset(8, 3)));
    assert_ne!(numbers(&subset), numbers(&source.subset(8, 4)));
    assert_eq!(subset.name(2), source.name(numbers(&subset)[2]));
    assert_eq!(subset.file_stem(2), source.file_stem(numbers(&subset)[2]));
    assert_eq!(numbers(&source.subset(99, 0)), (0..50).collect::<Vec<_>>());
    assert_eq!(numbers(&source.first(3)), [0, 1, 2]);
    // Of the subset only.
    assert_eq!(numbers(&subset.first(2)), numbers(&subset)[..2]);
    assert!(Samples::<f64>::get(&subset, 8).is_err() && subset.size(8).is_err());
    // Every sample has its chance.
    let mut seen = [0; 50];
    (0..1000).for_each(|seed| numbers(&source.subset(5, seed)).iter().for_each(|i| seen[*i] += 1));
    assert!(seen.iter().all(|n| (60..150).contains(n)), "{seen:?}");
}

#[test]
fn small_samples() {
    let folder = tempfile::tempdir().unwrap();
    for (name, h, w) in [("a", 5, 5), ("b", 4, 9), ("c", 9, 9), ("d", 9, 4)] {
        write(folder.path(), &format!("{name}.npy"), &npy::encode("<f4", &[h, w], &counting(h * w)));
    }
    let source = open(&folder.path().join("*.npy"), "").unwrap();
    let (fitting, small) = source.at_least([1, 5, 5]);
    assert_eq!((fitting.len(), small), (2, Some(1)));
    assert_eq!((fitting.file_stem(0), fitting.file_stem(1)), ("a".into(), "c".into()));
    assert_eq!((source.at_least([1, 4, 4]).0.len(), source.at_least([1, 4, 4]).1), (4, None));
    assert_eq!(source.at_least([2, 1, 1]).0.len(), 0);
}
