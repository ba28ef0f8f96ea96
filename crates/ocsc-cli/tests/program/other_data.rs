//! `--resume` with other data than the checkpoint was learned from.

use crate::common::{Bench, dictionary_bytes, picture, stack, write_npy};

/// Photos of two sizes, and a checkpoint in the middle of its second pass.
fn interrupted(options: &str) -> Bench {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("photos")).unwrap();
    for (name, width) in [("a", 20), ("b", 22), ("c", 20), ("d", 24)] {
        picture(width, 20, width.into()).save(bench.path(&format!("photos/{name}.png"))).unwrap();
    }
    let run = format!("photos --beta 0.3 --preprocess gray,mean --passes 3 {options}");
    bench.learn(&format!("{run} --out whole.safetensors")).ok();
    bench.learn(&format!("{run} --time-limit 1e-9 --out m.safetensors")).ok();
    bench
}

fn resume(bench: &Bench, words: &str) -> crate::common::Ran {
    bench.run(&format!("learn {words} --resume m.safetensors --threads 1"))
}

#[test]
fn other_names_sizes_and_orders_are_refused_and_named() {
    let bench = interrupted("");
    let before = bench.read("m.safetensors");
    let refused = |words: &str, parts: &[&str]| {
        resume(&bench, words).refused(1, &[&["m.safetensors", "--other-data"], parts].concat());
        assert!(before == bench.read("m.safetensors"));
    };
    refused("photos --limit 3", &["expected the 4 samples", "found 3", "--limit was not given, now 3"]);
    refused("photos/b.png photos/a.png photos/c.png photos/d.png", &["sample 1 was a.png (20x20", "now b.png (20x22"]);
    bench.shell("mv photos/c.png photos/c2.png");
    refused("photos", &["sample 3 was c.png", "now c2.png"]);
    bench.shell("mv photos/c2.png photos/c.png; cp photos/c.png keep.png; cp photos/d.png photos/c.png");
    refused("photos", &["sample 3 was c.png (20x20", "now c.png (20x24"]);
    bench.shell("cp keep.png photos/c.png; mkdir elsewhere; mv photos elsewhere/");
    // Moved, they are the same.
    resume(&bench, "elsewhere/photos").ok();
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == dictionary_bytes(&bench.path("whole.safetensors")));
}

#[test]
fn other_reading_options_are_refused_and_named() {
    let bench = interrupted("--crop 16");
    for (options, said) in [
        ("", "--crop was 16, now not given"),
        ("--crop 18", "--crop was 16, now 18"),
        ("--crop 16 --resize 30", "--resize was not given, now 30"),
        ("--crop 16 --axes NCHW", "--axes was not given, now NCHW"),
        ("--crop 16 --nan-is-missing", "--nan-is-missing was not given, now given"),
    ] {
        resume(&bench, &format!("photos {options}")).refused(1, &[said, "--other-data"]);
    }
    resume(&bench, "photos --crop 16").ok();
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == dictionary_bytes(&bench.path("whole.safetensors")));
}

#[test]
fn the_call_may_insist_on_other_data() {
    let bench = interrupted("");
    let ran = resume(&bench, "photos/a.png photos/d.png --other-data").ok();
    for part in ["other data", "expected the 4 samples", "begun anew"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    // Three passes over two of them, and the sample before.
    assert!(ran.stdout.contains("7 in 3 passes"), "{}", ran.stdout);
    bench.run("learn photos --out x --other-data").refused(2, &["--resume"]);
    bench.learn("photos --out x --other-data").refused(1, &["--other-data", "--resume"]);
}

#[test]
fn batch_methods_keep_their_samples() {
    let bench = Bench::with_data(4);
    bench.learn("train.npy --method fcsc --beta 0.1 --passes 3 --time-limit 1e-9 --out m.safetensors").ok();
    write_npy(&bench.path("train2.npy"), &stack(4, 16, 16, 7));
    resume(&bench, "train2.npy").refused(1, &["sample 1 was train.npy[0]", "now train2.npy[0]"]);
    resume(&bench, "train2.npy --other-data").refused(1, &["--other-data", "fcsc", "keeps its samples"]);
    resume(&bench, "train.npy").ok();
}

#[test]
fn checkpoints_from_before_go_on_and_it_is_said() {
    let bench = interrupted("");
    let mut old = crate::common::unsealed(&bench.read("m.safetensors"));
    let key = b"\"data\":";
    let at = old.windows(key.len()).position(|w| w == key).unwrap();
    old[at + 1..at + 5].copy_from_slice(b"none");
    bench.write("m.safetensors", &old);
    let ran = resume(&bench, "photos").ok();
    assert!(ran.stderr.contains("does not say what it was learned from"), "{}", ran.stderr);
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == dictionary_bytes(&bench.path("whole.safetensors")));
}

#[test]
#[cfg(unix)]
fn streams_are_known_by_their_options() {
    let bench = Bench::with_data(3);
    let frames: Vec<u8> = (0..5 * 256).map(|i: u32| (i * i % 251) as u8).collect();
    bench.write("frames.raw", &frames);
    let learn = "$OCSC learn - --raw 16x16 --filters 4 --size 5 --beta 0.1 --checkpoint-every 1 --out m.safetensors";
    assert_eq!(bench.shell(&format!("{learn} < frames.raw")).code, Some(0));
    let resume = |options: &str| bench.shell(&format!("$OCSC learn - {options} --resume m.safetensors < frames.raw"));
    resume("--raw 8x32").refused(1, &["--raw was 16x16, now 8x32", "--other-data"]);
    resume("--raw 16x16 --nan-is-missing").refused(1, &["--nan-is-missing"]);
    resume("--raw 16x16 --checkpoint-every 1").ok();
    let ran = bench.run("learn train.npy --resume m.safetensors --passes 3");
    ran.refused(1, &["learned from a stream", "--other-data"]);
}
