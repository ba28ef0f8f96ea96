//! What a command reads is never written over, under whatever name; nor are its own outputs by each other.

use crate::common::{Bench, pictures, stack, write_npy};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Every file below a folder with its content.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.path().display().to_string();
        if entry.path().is_dir() {
            found.extend(contents(&entry.path()));
        } else {
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// That every call is refused with these words and leaves all files as they were.
#[track_caller]
fn refuses(bench: &Bench, calls: &[(&str, &[&str])]) {
    for (call, parts) in calls {
        let before = contents(&bench.path(""));
        bench.run(call).refused(1, parts);
        assert!(contents(&bench.path("")) == before, "{call}");
    }
}

#[test]
fn learning_spares_its_data_however_they_are_named() {
    let bench = Bench::with_data(2);
    pictures(&bench, "photos", 3, 1);
    bench.write("list.txt", b"photos/1.png\nphotos/2.png\n");
    write_npy(&bench.path("D.npy"), &stack(4, 5, 5, 3));
    write_npy(&bench.path("k.npy"), &stack(1, 16, 16, 4));
    std::fs::hard_link(bench.path("photos/1.png"), bench.path("hard.png")).unwrap();
    symlink(bench.path("photos/2.png"), bench.path("soft")).unwrap();
    symlink(bench.path("photos"), bench.path("album")).unwrap();
    let small = "--filters 4 --size 5 --threads 1";
    let learn = |words: &str| format!("learn {words} {small}");
    let data = "one of the data";
    let calls = [
        ("photos --out photos/1.png", vec!["--out photos/1.png", data]),
        ("photos/*.png --out photos/3.png", vec!["--out photos/3.png", data]),
        ("@list.txt --out photos/2.png", vec!["--out photos/2.png", data]),
        ("@list.txt --out list.txt", vec!["--out list.txt", data]),
        ("photos --out hard.png", vec!["--out hard.png", data, "photos/1.png"]),
        ("photos --out soft", vec!["--out soft", data, "photos/2.png"]),
        ("album --out photos/1.png", vec!["--out photos/1.png", data, "album/1.png"]),
        ("photos --limit 1 --out photos/3.png", vec!["--out photos/3.png", data]),
        ("photos --log photos/2.png --out m", vec!["--log photos/2.png", data]),
        ("train.npy --test photos --log photos/2.png --out m", vec!["--log photos/2.png", data]),
        ("train.npy --init D.npy --out D.npy", vec!["--out D.npy", "the dictionary of --init"]),
        ("train.npy --mask k.npy --preprocess none --out k.npy", vec!["--out k.npy", "the mask"]),
        ("photos --test-list list.txt --log list.txt --out m", vec!["--log list.txt", "--test-list"]),
        ("train.npy --log ./m --out m", vec!["--log ./m", "another file", "--out m"]),
    ];
    for (words, parts) in &calls {
        refuses(&bench, &[(&learn(words), parts)]);
    }
}

#[test]
fn learning_spares_the_archive_and_the_checkpoint_it_reads() {
    let bench = Bench::with_data(4);
    bench.learn("train.npy --beta 0.1 --out m.safetensors --time-limit 1e-9").ok();
    bench.run("code m.safetensors train.npy --out codes").ok();
    std::fs::copy(bench.path("codes/train-0000.npz"), bench.path("z.npz")).unwrap();
    let calls: [(&str, &[&str]); 3] = [
        ("learn z.npz:value --axes W --size 1 --filters 1 --out z.npz", &["--out z.npz", "one of the data"]),
        ("learn train.npy --resume m.safetensors --log m.safetensors", &["--log m.safetensors", "another file"]),
        (
            "learn train.npy --resume m.safetensors --out n --log m.safetensors",
            &["--log m.safetensors", "the checkpoint of --resume"],
        ),
    ];
    refuses(&bench, &calls);
    // To go on in the same file is what everybody does, under any of its names.
    symlink("m.safetensors", bench.path("link")).unwrap();
    bench.run("learn train.npy --resume m.safetensors --out link").ok();
    assert!(bench.path("link").is_symlink());
}

#[test]
fn coding_and_reconstructing_spare_what_they_read() {
    let bench = Bench::with_model();
    pictures(&bench, "photos", 2, 1);
    bench.learn("photos --beta 0.1 --out p.safetensors").ok();
    bench.run("code p.safetensors photos --out codes").ok();
    std::fs::create_dir(bench.path("arrays")).unwrap();
    let mut archive = ndarray_npy::NpzWriter::new(std::fs::File::create(bench.path("arrays/square.npz")).unwrap());
    archive.add_array("x", &stack(1, 16, 16, 5)).unwrap();
    archive.finish().unwrap();
    std::fs::copy(bench.path("p.safetensors"), bench.path("codes/model")).unwrap();
    symlink("model", bench.path("codes/1.png")).unwrap();
    let calls: [(&str, &[&str]); 4] = [
        (
            "reconstruct p.safetensors codes --original photos --out photos",
            &["--out photos/1.png", "one of the originals"],
        ),
        ("reconstruct codes/model codes --out codes --format png", &["--out codes/1.png", "the model"]),
        ("code m.safetensors arrays/square.npz --out arrays", &["--out arrays/square.npz", "one of the data"]),
        ("show codes/1.png --out codes/1.png", &["--out codes/1.png", "the model"]),
    ];
    refuses(&bench, &calls);
}

#[test]
fn reports_spare_the_runs_they_read() {
    let bench = Bench::with_data(2);
    bench.learn("train.npy --beta 0.1 --log run.html --out m.safetensors").ok();
    std::fs::copy(bench.path("run.html"), bench.path("run.md")).unwrap();
    let calls: [(&str, &[&str]); 4] = [
        ("report run.html --out ./run.html", &["--out ./run.html", "the log of a run"]),
        ("report run.md --out r.html --results run.md", &["--results run.md", "the log of a run"]),
        ("report run.md --out r.html --results train.npy", &["--results train.npy", "ending in .md"]),
        ("reproduce fruit --settings run.md --results run.md --out r", &["--results run.md", "--settings"]),
    ];
    refuses(&bench, &calls);
}
