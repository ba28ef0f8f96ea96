//! Folders to any depth, patterns and lists.

use super::source::picture;
use super::*;

/// A folder with subfolders, hidden files, and files of other kinds.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for sub in ["a", "a/deep", "b 10", "b 2", ".hidden"] {
        std::fs::create_dir(folder.path().join(sub)).unwrap();
    }
    let names =
        ["top.png", "a/2.png", "a/10.png", "a/.no.png", "a/deep/1.png", "b 10/1.png", "b 2/1.png", ".hidden/1.png"];
    for (i, name) in names.iter().enumerate() {
        picture(folder.path(), name, i as u8);
    }
    write(folder.path(), "a/notes.txt", b"words");
    folder
}

fn recursive() -> SourceOptions {
    SourceOptions { recursive: true, ..options("") }
}

/// The names of all samples, within `root`.
fn names(root: &Path, source: &Source) -> Vec<String> {
    let within = |i| Path::new(&source.name(i)).strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    (0..source.len()).map(within).collect()
}

#[test]
fn folders_to_any_depth() {
    let folder = tree();
    let root = folder.path().to_owned();
    let source = Source::open(std::slice::from_ref(&root), &recursive()).unwrap();
    let expected = ["a/2.png", "a/10.png", "a/deep/1.png", "b 2/1.png", "b 10/1.png", "top.png"];
    assert_eq!(names(&root, &source), expected);
    let stems: Vec<_> = (0..source.len()).map(|i| source.file_stem(i)).collect();
    assert_eq!(stems, ["2", "10", "1", "1-2", "1-3", "top"]);
    assert_eq!(names(&root, &open(&root, "").unwrap()), ["top.png"]);
}

#[test]
fn a_folder_of_folders_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
    assert_contains(&refusal(folder.path(), ""), &["no images", "--recursive"]);
    let none = Source::open(&[folder.path().to_owned()], &recursive()).unwrap_err().to_string();
    assert_contains(&none, &["no images in this folder and those below it", "png"]);
}

#[cfg(unix)]
#[test]
fn links_neither_loop_nor_count_twice() {
    use std::os::unix::fs::symlink;
    let folder = tree();
    let root = folder.path().to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    picture(elsewhere.path(), "far.png", 9);
    // Loops at two places: without care, 2 to the power of 40 paths.
    symlink(&root, root.join("a/loop")).unwrap();
    symlink(&root, root.join("b 2/loop")).unwrap();
    symlink(root.join("b 2"), root.join("0")).unwrap();
    symlink(elsewhere.path(), root.join("z")).unwrap();
    symlink("nowhere.png", root.join("broken.png")).unwrap();
    let source = Source::open(std::slice::from_ref(&root), &recursive()).unwrap();
    let expected = ["a/2.png", "a/10.png", "a/deep/1.png", "b 2/1.png", "b 10/1.png", "top.png", "z/far.png"];
    assert_eq!(names(&root, &source), expected);
    assert_eq!(open(&root.join("**/1.png"), "").unwrap().len(), 3);
}

#[test]
fn patterns() {
    let folder = tree();
    let root = folder.path().to_owned();
    let found = |pattern: &str| names(&root, &open(&root.join(pattern), "").unwrap());
    assert_eq!(found("a/*.png"), ["a/2.png", "a/10.png"]);
    assert_eq!(found("**/1.png"), ["a/deep/1.png", "b 2/1.png", "b 10/1.png"]);
    assert_eq!(found("**/*.png").len(), 6);
    assert_eq!(found("?/[0-2].png"), ["a/2.png"]);
    assert_eq!(found("*/*.png"), ["a/2.png", "a/10.png", "b 2/1.png", "b 10/1.png"]);
    for (pattern, part) in [("*.jpg", "no file matches"), ("none/*.png", "no file matches"), ("[.png", "not a pattern")]
    {
        assert_contains(&refusal(&root.join(pattern), ""), &[pattern, part, "'photos/**/*.jpg'"]);
    }
    // What matches must be data.
    assert_contains(&refusal(&root.join("a/*"), ""), &["a/*", "a/notes.txt", ".txt are unknown"]);
    // A file that is called like a pattern is a file.
    picture(&root, "a/[2].png", 200);
    assert_eq!(found("a/[2].png"), ["a/[2].png"]);
    assert_eq!(get(&open(&root.join("a/[2].png"), "").unwrap(), 0).data(), [200.0 / 255.0; 4]);
}

#[test]
fn lists() {
    let folder = tree();
    let at = |name: &str| PathBuf::from(format!("@{}", folder.path().join(name).display()));
    write(
        folder.path(),
        "b 2/some.txt",
        "\u{feff}1.png\r\n\r\n# a comment\n  ../a/10.png  \n../b */1.png\n".as_bytes(),
    );
    let source = open(&at("b 2/some.txt"), "").unwrap();
    let levels: Vec<f64> = (0..source.len()).map(|i| get(&source, i).data()[0] * 255.0).collect();
    assert_eq!(levels, [6.0, 2.0, 6.0, 5.0]);
    write(folder.path(), "bad.txt", b"top.png\n\ngone.png\n");
    assert_contains(&refusal(&at("bad.txt"), ""), &["bad.txt: line 3: ", "gone.png", "cannot be read"]);
    write(folder.path(), "void.txt", b"# nothing\n");
    assert_contains(&refusal(&at("void.txt"), ""), &["void.txt", "the list is empty", "one path per line"]);
    assert_contains(&refusal(&at("none.txt"), ""), &["none.txt", "cannot be read", "one path per line"]);
    write(folder.path(), "bytes.txt", b"top.png\n\xff\xfe\n");
    assert_contains(&refusal(&at("bytes.txt"), ""), &["bytes.txt: line 2", "UTF-8"]);
}
