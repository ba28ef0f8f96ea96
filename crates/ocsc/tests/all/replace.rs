//! Files replaced as a whole.

use ocsc::replace::{check_writable, link_target, remove_leftovers, remove_leftovers_in, replace_file, write_file};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_that_cannot_be_filled_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let fails = |file: &mut std::fs::File| {
        file.write_all(b"half")?;
        Err(io::Error::other("no more"))
    };
    assert_eq!(replace_file(&path, fails).unwrap_err().to_string(), "no more");
    assert_eq!(names(folder.path()), [""; 0]);
    write_file(&path, b"old").unwrap();
    assert!(replace_file(&path, fails).is_err());
    assert_eq!((std::fs::read(&path).unwrap(), names(folder.path())), (b"old".to_vec(), vec!["f".to_owned()]));
}

#[test]
fn links_stay_and_their_targets_are_replaced_or_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("far")).unwrap();
    symlink("far/target", at("one")).unwrap();
    symlink("one", at("two")).unwrap();
    assert_eq!(link_target(&at("two")).unwrap(), at("far/target"));
    for content in [b"new", b"two"] {
        write_file(&at("two"), content).unwrap();
        assert_eq!(std::fs::read(at("far/target")).unwrap(), content);
    }
    assert!(at("one").is_symlink() && at("two").is_symlink());
    assert_eq!(names(&at("far")), ["target"]);
    symlink("none/target", at("astray")).unwrap();
    assert!(write_file(&at("astray"), b"").unwrap_err().to_string().contains("does not exist"));
    symlink("circle", at("circle")).unwrap();
    assert!(write_file(&at("circle"), b"").unwrap_err().to_string().contains("cannot be written"));
}

#[test]
fn modes_stay_and_read_only_files_do_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    write_file(&path, b"old").unwrap();
    for mode in [0o600, 0o640, 0o755] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        // Never more readable than the old file, not even while it is written.
        let checked = replace_file(&path, |file| {
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, mode);
            file.write_all(b"new")
        });
        checked.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    assert!(write_file(&path, b"other").unwrap_err().to_string().contains("read-only"));
    assert!(check_writable(&path).unwrap_err().to_string().contains("read-only"));
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn leftovers_are_removed_unless_somebody_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in [".f.ocsc-1", ".f.ocsc-2", ".g.ocsc-1", ".f.other", "f.ocsc-1"] {
        std::fs::write(at(name), b"").unwrap();
    }
    let live = std::fs::File::open(at(".f.ocsc-2")).unwrap();
    live.lock().unwrap();
    remove_leftovers(&at("f"));
    assert_eq!(names(folder.path()), [".f.ocsc-2", ".f.other", ".g.ocsc-1", "f.ocsc-1"]);
    // What is being written is alive.
    replace_file(&at("f"), |file| {
        remove_leftovers_in(folder.path());
        assert_eq!(names(folder.path()).len(), 4, "two temporary files and two others");
        file.write_all(b"new")
    })
    .unwrap();
    assert_eq!(names(folder.path()), [".f.ocsc-2", ".f.other", "f", "f.ocsc-1"]);
}
