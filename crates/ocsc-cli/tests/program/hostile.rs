//! Files that claim much, never end, or make a decoder panic: one clear line, and the rest of the data is used.

use crate::common::{Bench, picture, pictures, write_npy};
use ndarray::{Array3, array};

/// A PNG of 86 bytes with a palette of two colours and a third of another, on which the decoder panics.
const PANIC: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\
    \x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x03\x00\x00\x00\x28\xcb4\xbb\
    \x00\x00\x00\x07PLTE\xff\xff\xff\xff\xff\xff\xff\xbbQQ\x86\
    \x00\x00\x00\x0aIDATx\xdac\x60\x00\x00\x00\x02\x00\x01\xe5\x27\xde\xfc\
    \x00\x00\x00\x00IEND\xaeB\x60\x82";

#[test]
fn a_decoder_that_panics_makes_a_bad_sample_wherever_it_is_called() {
    let bench = Bench::with_model();
    pictures(&bench, "photos", 3, 1);
    bench.write("f.png", PANIC);
    let words = &["f.png", "cannot be decoded", "did not foresee"];
    let learn = |words: &str| bench.run(&format!("learn {words} --filters 2 --size 1 --out n.safetensors"));
    learn("f.png").refused(1, words);
    picture(1, 1, 1).save(bench.path("dot.png")).unwrap();
    learn("dot.png --preprocess none --test f.png").refused(1, &[words, &["--test"][..]].concat());
    learn("dot.png --mask f.png --preprocess gray").refused(1, &[words, &["--mask"][..]].concat());
    bench.run("evaluate m.safetensors f.png").refused(1, &["f.png"]);
    bench.run("info f.png").refused(1, &["f.png"]);
    // Among others it is passed over.
    bench.write("photos/9.png", PANIC);
    let ran = learn("photos --preprocess none --beta 0.3 --json");
    assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(3), Some(1)), "{}", ran.stderr);
    assert!(ran.stderr.contains("skipped: photos/9.png: cannot be decoded"), "{}", ran.stderr);
}

#[test]
fn a_photo_that_was_cut_short_is_passed_over() {
    let bench = Bench::new();
    pictures(&bench, "photos", 3, 1);
    picture(64, 64, 9).save(bench.path("photos/4.jpg")).unwrap();
    let whole = bench.read("photos/4.jpg");
    bench.write("photos/4.jpg", &whole[..whole.len() / 2]);
    let ran = bench.learn("photos --beta 0.3 --json --out m.safetensors");
    assert!(ran.stderr.contains("skipped: photos/4.jpg: the file is truncated"), "{}", ran.stderr);
    assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(3), Some(1)));
}

#[test]
fn a_small_file_of_many_pixels_is_held_against_the_limit() {
    let bench = Bench::new();
    image::GrayImage::new(3000, 2000).save(bench.path("big.png")).unwrap();
    assert!(bench.read("big.png").len() < 50_000);
    let limit = "--memory-limit 50MB --beta 0.3";
    bench
        .learn(&format!("big.png {limit} --out m.safetensors"))
        .refused(1, &["big.png", "2000x3000", "50.0 MB that the memory limit allows"]);
    // Where there is room to decode it but not to learn from it, that is said before.
    let ran = bench.learn("big.png --memory-limit 200MB --out m.safetensors");
    ran.refused(1, &["samples of 6000000 numbers", "the memory limit allows"]);
    assert!(!bench.path("m.safetensors").exists());
    // It does not keep the others from being learned from.
    pictures(&bench, "photos", 3, 1);
    std::fs::rename(bench.path("big.png"), bench.path("photos/big.png")).unwrap();
    let ran = bench.learn(&format!("photos {limit} --json --out m.safetensors"));
    assert_eq!((ran.json()["samples"].as_u64(), ran.json()["skipped"].as_u64()), (Some(3), Some(1)), "{}", ran.stderr);
}

/// Two atoms in a code that claims four maps of 65535 x 65535.
#[test]
fn codes_of_huge_shapes_are_refused() {
    let bench = Bench::new();
    // With 64 channels the reconstruction takes terabytes.
    write_npy(&bench.path("many.npy"), &Array3::<f32>::from_shape_fn((64, 8, 8), |(c, h, w)| (c * h * w % 7) as f32));
    bench.learn("many.npy --axes CHW --passes 0 --out m.safetensors").ok();
    std::fs::create_dir(bench.path("codes")).unwrap();
    let mut code = ndarray_npy::NpzWriter::new(std::fs::File::create(bench.path("codes/a.npz")).unwrap());
    code.add_array("filter", &array![0_i32, 3]).unwrap();
    code.add_array("position", &array![[0_i32, 0], [65534, 65534]]).unwrap();
    code.add_array("value", &array![1.0_f32, 2.0]).unwrap();
    code.add_array("shape", &array![4_i64, 65535, 65535]).unwrap();
    code.finish().unwrap();
    let ran = bench.run("reconstruct m.safetensors codes --out back");
    ran.refused(1, &["codes/a.npz", "65535x65535", "need", "the system has free"]);
}

#[test]
#[cfg(unix)]
fn devices_are_refused_and_pipes_are_read_as_far_as_they_declare() {
    let bench = Bench::with_model();
    for command in ["info BAD", "show BAD --out d.png", "evaluate BAD test.npy", "learn train.npy --resume BAD"] {
        bench.run(&command.replace("BAD", "/dev/zero")).refused(1, &["/dev/zero", "found a device"]);
    }
    let piped = bench.shell("cat m.safetensors | $OCSC info /dev/stdin").ok();
    assert_eq!(piped.stdout.replace("/dev/stdin", "m.safetensors"), bench.run("info m.safetensors").ok().stdout);
    bench.shell("yes | $OCSC info /dev/stdin").refused(1, &["/dev/stdin", "bytes of header"]);
    bench.shell("cat m.safetensors /dev/zero | $OCSC info /dev/stdin").refused(1, &["/dev/stdin", "more bytes"]);
    bench.shell("ln -s /dev/zero zero.jsonl; $OCSC report zero.jsonl").refused(1, &["zero.jsonl", "found a device"]);
    let ran = bench.shell("$OCSC reproduce fruit --settings /dev/zero --out r");
    ran.refused(1, &["/dev/zero", "found a device"]);
    bench.run("learn @/dev/zero --out n.safetensors").refused(1, &["/dev/zero", "found a device"]);
    // A list may come through a pipe, but it must end in lines.
    bench.shell("echo $PWD/train.npy | $OCSC learn @/dev/stdin --passes 0 --out n.safetensors").ok();
    bench.shell("cat /dev/zero | $OCSC learn @/dev/stdin --out n.safetensors").refused(1, &["longer than any path"]);
}
