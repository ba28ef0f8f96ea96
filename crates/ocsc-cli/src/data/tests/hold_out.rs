//! Splits into samples to learn from and samples to test on.

use super::mat::{element, file, matrix, words};
use super::select::{numbered, numbers};
use super::source::picture;
use super::*;

/// The stems of the samples to learn from, and of those held out.
fn stems((learn, test): &(Source, Source)) -> (Vec<String>, Vec<String>) {
    let stems = |source: &Source| (0..source.len()).map(|i| source.file_stem(i)).collect();
    (stems(learn), stems(test))
}

#[test]
fn fractions_are_seeded_and_cover_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let source = numbered(folder.path(), 20);
    let (learn, test) = source.hold_out_fraction(0.25, 1).unwrap();
    assert_eq!((learn.len(), test.len()), (15, 5));
    let mut all = [numbers(&learn), numbers(&test)].concat();
    all.sort();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    assert_eq!(numbers(&test), numbers(&source.hold_out_fraction(0.25, 1).unwrap().1));
    assert_ne!(numbers(&test), numbers(&source.hold_out_fraction(0.25, 2).unwrap().1));
    // Not the samples that --subset would draw.
    assert_ne!(numbers(&test), numbers(&source.subset(5, 1)));
    for (fraction, held) in [(0.001, 1), (0.999, 19), (0.1, 2)] {
        assert_eq!(source.hold_out_fraction(fraction, 0).unwrap().1.len(), held);
    }
    let message = source.first(1).hold_out_fraction(0.5, 0).unwrap_err().to_string();
    assert_contains(&message, &["--test-fraction", "at least 2 samples"]);
}

#[test]
fn lists_name_samples_in_three_ways() {
    let folder = tempfile::tempdir().unwrap();
    for sub in ["photos", "photos/x", "photos/y", "lists"] {
        std::fs::create_dir(folder.path().join(sub)).unwrap();
    }
    for name in ["x/1.png", "x/2.png", "y/2.png", "y/3.png", "y/4.png"] {
        picture(&folder.path().join("photos"), name, 1);
    }
    let options = SourceOptions { recursive: true, ..options("") };
    let source = Source::open(&[folder.path().join("photos")], &options).unwrap();
    let held = |text: &str| source.hold_out_listed(&write(&folder.path().join("lists"), "test.txt", text.as_bytes()));
    let whole = folder.path().join("photos/y/4.png");
    let split = held(&format!("# held out\n../photos/x/1.png\ny/2.png\n3.png\n{}\n", whole.display())).unwrap();
    assert_eq!(stems(&split), (vec!["2".into()], ["1", "2-2", "3", "4"].map(String::from).to_vec()));
    let message = |text: &str| format!("{:#}", held(text).unwrap_err());
    assert_contains(&message("3.png\n2.png\n"), &["line 2: 2.png", "x/2.png", "y/2.png", "more of the path"]);
    assert_contains(&message("3.png\n\n5.png\n"), &["line 3: 5.png", "no sample", "1.png"]);
    // The end of a name is not the end of a path.
    assert_contains(&message(".png\n"), &["no sample"]);
    assert_contains(&message("x/1.png\nx/2.png\ny/2.png\n3.png\n4.png"), &["all 5 samples", "to learn from"]);
    assert_contains(&message("# none\n"), &["the list is empty"]);
    assert!(source.hold_out_listed(&folder.path().join("none.txt")).is_err());
}

#[test]
fn lists_name_samples_of_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let source = numbered(folder.path(), 6);
    let held = |text: &str| source.hold_out_listed(&write(folder.path(), "test.txt", text.as_bytes()));
    assert_eq!(numbers(&held("a.npy[1]\na.npy[4]\n").unwrap().1), [1, 4]);
    assert_eq!(numbers(&held(&source.name(5)).unwrap().0), [0, 1, 2, 3, 4]);
    assert_contains(&format!("{:#}", held("a.npy[6]").unwrap_err()), &["line 1: a.npy[6]", "no sample"]);
    assert_contains(&format!("{:#}", held("a.npy").unwrap_err()), &["all 6 samples"]);
}

/// A level 5 file with a cell array of texts.
fn cells(compressed: bool, name: &str, texts: &[&str]) -> Vec<u8> {
    let mut body = element(false, 6, &words(false, &[1, 0]));
    body.extend(element(false, 5, &words(false, &[texts.len() as u32, 1])));
    body.extend(element(false, 1, name.as_bytes()));
    for text in texts {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        body.extend(matrix(false, "", 4, &[1, text.len() as u32], 4, &units));
    }
    file(false, compressed, &[element(false, 14, &body)])
}

#[test]
fn stanford_dogs_lists_are_read_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    for breed in ["n02085620-Chihuahua", "n02085782-Japanese_spaniel"] {
        std::fs::create_dir_all(folder.path().join("Images").join(breed)).unwrap();
    }
    let names = ["n02085620-Chihuahua/n02085620_5927.jpg", "n02085782-Japanese_spaniel/n02085782_2.jpg"];
    for name in [names[0], names[1], "n02085620-Chihuahua/n02085620_7.jpg"] {
        picture(&folder.path().join("Images"), name, 1);
    }
    let options = SourceOptions { recursive: true, ..options("") };
    let source = Source::open(&[folder.path().join("Images")], &options).unwrap();
    for compressed in [false, true] {
        let list = write(folder.path(), "test_list.mat", &cells(compressed, "file_list", &names));
        let split = source.hold_out_listed(&list).unwrap();
        assert_eq!(stems(&split).1, ["n02085620_5927", "n02085782_2"]);
    }
    let other = write(folder.path(), "other.mat", &cells(false, "files", &names));
    let message = format!("{:#}", source.hold_out_listed(&other).unwrap_err());
    assert_contains(&message, &["no cell array called `file_list`", "files (a cell array)"]);
    // Damaged in any place, it gives a message or names.
    for at in 128..cells(false, "file_list", &names).len() {
        let mut bytes = cells(false, "file_list", &names);
        bytes[at] ^= 0x5f;
        let _ = source.hold_out_listed(&write(folder.path(), "odd.mat", &bytes));
    }
}

/// `setid.mat` with these numbers.
fn setid(sets: [&[f64]; 3]) -> Vec<u8> {
    let variable = |name: &str, numbers: &[f64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        matrix(false, name, 6, &[1, numbers.len() as u32], 9, &bytes)
    };
    let [trnid, valid, tstid] = sets;
    file(false, true, &[variable("trnid", trnid), variable("valid", valid), variable("tstid", tstid)])
}

#[test]
fn oxford_flowers_are_split_as_in_the_paper() {
    let folder = tempfile::tempdir().unwrap();
    for i in 1..=7 {
        picture(folder.path(), &format!("image_{i:05}.png"), i);
    }
    let source = open(folder.path(), "").unwrap();
    let split = |sets| source.split_numbered(&write(folder.path(), "setid.mat", &setid(sets)));
    let found = split([&[6.0, 1.0], &[3.0], &[2.0, 7.0, 4.0]]).unwrap();
    let names = |numbers: &[usize]| numbers.iter().map(|i| format!("image_{i:05}")).collect::<Vec<_>>();
    // 5 is in no set.
    assert_eq!(stems(&found), (names(&[1, 3, 6]), names(&[2, 4, 7])));
    let message = |sets| format!("{:#}", split(sets).unwrap_err());
    assert_contains(&message([&[1.0], &[2.0], &[3.0, 8.0]]), &["tstid", "image 8", "not in the data"]);
    assert_contains(&message([&[1.5], &[2.0], &[3.0]]), &["trnid", "1.5"]);
    assert_contains(&message([&[0.0], &[2.0], &[3.0]]), &["image 0"]);
    assert_contains(&message([&[f64::NAN], &[2.0], &[3.0]]), &["trnid", "NaN"]);
    assert_contains(&message([&[1.0], &[2.0], &[1.0]]), &["image 1 is both"]);
    let bare = write(
        folder.path(),
        "bare.mat",
        &file(false, false, &[matrix(false, "trnid", 6, &[1, 1], 9, &1f64.to_le_bytes())]),
    );
    assert_contains(
        &format!("{:#}", source.split_numbered(&bare).unwrap_err()),
        &["no variable called `valid`", "trnid"],
    );
    picture(folder.path(), "copy_1.png", 1);
    let twice = open(folder.path(), "").unwrap().split_numbered(&bare).unwrap_err().to_string();
    assert_contains(&twice, &["copy_1.png", "image_00001.png", "the same number"]);
}
