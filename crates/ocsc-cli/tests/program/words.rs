//! Words of messages: every cause once, and no plural of one.

use crate::common::{Bench, Ran, pictures, write_npy};
use std::os::unix::fs::symlink;

/// That it failed, with a message that says nothing twice.
#[track_caller]
fn plainly(ran: Ran, part: &str) {
    let ran = ran.failed(1, &[part]);
    let message = ran.stderr.lines().find(|line| line.starts_with("error: ")).expect(&ran.stderr);
    let mut causes: Vec<&str> = message.split(": ").collect();
    causes.sort_unstable();
    assert!(causes.windows(2).all(|pair| pair[0] != pair[1]), "a cause is told twice: {message}");
    assert_eq!(message.matches("(os error").count().max(1), 1, "a cause is told twice: {message}");
    well_counted(&ran);
}

/// That no count is one of many, and no error of the system nameless.
#[track_caller]
fn well_counted(ran: &Ran) {
    let text = format!("{}\n{}", ran.stdout, ran.stderr);
    assert!(!text.contains("uncategorized"), "{text}");
    let plurals = ["samples", "codes", "passes", "channels", "filters", "reconstructions", "frames", "images", "files"];
    let words = text.lines().map(|line| line.split([' ', '(']).collect::<Vec<_>>()).collect::<Vec<_>>();
    for pair in words.iter().flat_map(|line| line.windows(2)) {
        let noun = pair[1].trim_end_matches([',', ';', ':', '.', ')']);
        assert!(pair[0] != "1" || !plurals.contains(&noun), "`1 {noun}` in {text}");
    }
}

#[test]
fn a_cause_is_told_once_wherever_it_comes_from() {
    let bench = Bench::with_model();
    pictures(&bench, "photos", 2, 1);
    bench.run("code m.safetensors train.npy --out codes").ok();
    // A link to itself: an error of the system that the standard library has no name for.
    symlink("loop.npz", bench.path("codes/loop.npz")).unwrap();
    symlink("loop.npy", bench.path("loop.npy")).unwrap();
    symlink("loop.png", bench.path("photos/loop.png")).unwrap();
    bench.write("missing.txt", b"photos/1.png\nno/such.png\n");
    std::fs::create_dir(bench.path("masks")).unwrap();
    pictures(&bench, "masks", 1, 9);
    let reconstruct = "reconstruct m.safetensors";
    for (call, part) in [
        ("evaluate m.safetensors no/such.png", "No such file"),
        ("evaluate m.safetensors loop.npy", "symbolic links"),
        ("evaluate m.safetensors @missing.txt", "line 2"),
        ("evaluate m.safetensors @none.txt", "No such file"),
        ("evaluate m.safetensors photos --mask masks --preprocess gray", "no mask for"),
        ("evaluate m.safetensors photos --mask none.png --preprocess gray", "No such file"),
        ("evaluate none.safetensors train.npy", "No such file"),
        ("code m.safetensors train.npy --out m.safetensors/codes", "m.safetensors"),
        ("verify m.safetensors train.npy codes", "codes/loop.npz"),
    ] {
        plainly(bench.run(call), part);
    }
    plainly(bench.run(&format!("{reconstruct} codes --out back")), "codes/loop.npz");
    std::fs::remove_file(bench.path("codes/loop.npz")).unwrap();
    // A folder where a file is to be written.
    for name in ["back/train-0000.npy", "pictures/train-0000.png", "again/train-0000.npz"] {
        std::fs::create_dir_all(bench.path(name)).unwrap();
    }
    plainly(bench.run(&format!("{reconstruct} codes --format npy --out back")), "back/train-0000.npy");
    plainly(bench.run(&format!("{reconstruct} codes --format png --out pictures")), "pictures/train-0000.png");
    plainly(bench.run("code m.safetensors train.npy --out again"), "again/train-0000.npz");
    plainly(bench.shell(&format!("ulimit -f 0; $OCSC {reconstruct} codes --format npy --out b")), "File too large");
    plainly(bench.shell(&format!("ulimit -f 0; $OCSC {reconstruct} codes --format png --out p")), "File too large");
    plainly(bench.shell("ulimit -f 0; $OCSC code m.safetensors train.npy --out c"), "File too large");
    bench.write("codes/train-0000.npz", &bench.read("codes/train-0000.npz")[..300]);
    plainly(bench.run(&format!("{reconstruct} codes --out back2")), "codes/train-0000.npz");
    bench.write("short.npz", &bench.read("codes/train-0001.npz")[..300]);
    plainly(bench.run("evaluate m.safetensors short.npz"), "short.npz");
}

#[test]
fn one_is_no_plural() {
    let bench = Bench::new();
    write_npy(&bench.path("one.npy"), &crate::common::stack(1, 16, 16, 3));
    pictures(&bench, "photo", 1, 4);
    let small = "--filters 1 --size 5 --threads 1 --beta 0.1";
    for call in [
        &format!("learn one.npy --out m.safetensors --checkpoint-every 1 {small}"),
        "info m.safetensors",
        "show m.safetensors --out d.png",
        "code m.safetensors one.npy --out codes",
        "code m.safetensors one.npy --out codes",
        "code m.safetensors one.npy --out codes --skip-existing",
        "verify m.safetensors one.npy codes",
        "reconstruct m.safetensors codes --out back",
        "reconstruct m.safetensors codes --out back --skip-existing",
        "evaluate m.safetensors one.npy",
    ] {
        well_counted(&bench.run(call).ok());
    }
    plainly(bench.run("learn one.npy --resume m.safetensors"), "found 1 of 1 pass made");
    plainly(bench.run("evaluate m.safetensors photo --preprocess none"), "expected 1 channel");
    bench.learn("one.npy --out half.safetensors --time-limit 1e-9 --beta 0.1 --passes 2").ok();
    plainly(bench.learn("one.npy --out half.safetensors"), "1 sample)");
    write_npy(&bench.path("two.npy"), &crate::common::stack(2, 16, 16, 3));
    plainly(bench.run("learn two.npy --resume half.safetensors"), "expected the 1 sample that it was learned from");
}
