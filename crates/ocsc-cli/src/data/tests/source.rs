//! Folders, several paths, limits, and names.

use super::*;
use crate::data::file_names::{Wish, assign, numbered};
use crate::data::folder::natural;
use crate::data::npy;
use ::image::{DynamicImage, ImageBuffer, Luma};
use std::collections::HashSet;

pub(super) fn picture(folder: &Path, name: &str, level: u8) {
    let image: DynamicImage = ImageBuffer::from_pixel(2, 2, Luma([level])).into();
    image.save(folder.join(name)).unwrap();
}

#[test]
fn folders_are_read_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    for (i, name) in ["10.png", "2.PNG", "1.png", ".hidden.png", "b2.png", "B10.png"].iter().enumerate() {
        picture(folder.path(), name, i as u8);
    }
    write(folder.path(), "notes.txt", b"ignored");
    std::fs::create_dir(folder.path().join("sub.png")).unwrap();
    let source = open(folder.path(), "").unwrap();
    let stems: Vec<_> = (0..source.len()).map(|i| source.file_stem(i)).collect();
    assert_eq!(stems, ["1", "2", "10", "b2", "B10"]);
    assert!(source.name(0).ends_with("1.png"));
    assert_eq!(get(&source, 1).data(), [1.0 / 255.0; 4]);
    assert_eq!(source.is_images(), Some(true));

    let long = format!("{}9", "1".repeat(40));
    assert!(natural("a9", &format!("a{long}")).is_lt() && natural("a", "a1").is_lt() && natural("é2", "é10").is_lt());
    assert!(natural("01", "1").is_gt() && natural("x", "x").is_eq());
}

#[test]
fn refusals_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "notes.txt", b"words");
    assert_contains(&refusal(folder.path(), ""), &["no images", "png, jpg, jpeg, tif"]);
    assert_contains(
        &refusal(&folder.path().join("notes.txt"), ""),
        &["notes.txt", ".txt", "npy, npz, mat, png", "wav"],
    );
    assert_contains(&refusal(&folder.path().join("gone.npy"), ""), &["gone.npy", "cannot be read", "No such file"]);
    assert_contains(&refusal(&folder.path().join("gone.mat:b"), ""), &["gone.mat:b", "cannot be read"]);
    assert!(Source::open(&[], &options("")).is_err());
}

#[test]
fn several_paths_concatenate_up_to_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    picture(folder.path(), "cat.png", 51);
    let array = write(folder.path(), "train.npy", &npy::encode("<f4", &[3, 1, 2], &counting(6)));
    let image = folder.path().join("cat.png");
    let paths = [array.clone(), image.clone(), array];
    let source = Source::open(&paths, &options("")).unwrap();
    assert_eq!((source.len(), source.is_images()), (7, None));
    assert_eq!(get(&source, 2).data(), [4.0, 5.0]);
    assert_eq!(get(&source, 3).data(), [0.2; 4]);
    assert_eq!(get(&source, 4).data(), [0.0, 1.0]);
    let stems: Vec<_> = (0..7).map(|i| source.file_stem(i)).collect();
    assert_eq!(stems[2..5], ["train-0002", "cat", "train-2-0000"]);
    assert!(Samples::<f64>::get(&source, 7).is_err());

    let limited = source.first(3);
    assert_eq!((limited.len(), limited.is_images()), (3, Some(false)));
    assert!(Samples::<f32>::get(&limited, 3).is_err());
    let single = source.first(1);
    assert_eq!((single.len(), single.file_stem(0), single.rank()), (1, "train-0000".into(), 2));
    assert_eq!(open(&image, "").unwrap().first(9).len(), 1);
}

#[test]
fn stems_are_unique_and_ordered() {
    let wish = |stem: &str, count| Wish { stem: stem.into(), count };
    let wishes = [
        wish("cat", 1),
        wish("cat", 1),
        wish("cat-2", 1),
        wish("Cat", 1),
        wish("t", 12_000),
        wish("t-00003", 1),
        wish("t-0003", 1),
        wish("t", 2),
        wish("t", 1),
    ];
    let stems = assign(&wishes);
    let mut seen = HashSet::new();
    for (wish, stem) in wishes.iter().zip(&stems) {
        let mut last = String::new();
        for i in 0..wish.count {
            let name = numbered(stem, i, wish.count);
            assert!(name > last, "{name} after {last}");
            assert!(seen.insert(name.to_lowercase()), "{name} twice");
            last = name;
        }
    }
    assert_eq!((stems[0].as_str(), stems[1].as_str(), stems[3].as_str()), ("cat", "cat-2", "Cat-3"));
    assert_eq!((stems[5].as_str(), stems[6].as_str()), ("t-00003-2", "t-0003"));
    assert_eq!(crate::data::file_names::clean("../a b/c.d"), "___a_b_c_d");
}
