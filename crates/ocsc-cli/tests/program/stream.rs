//! Raw frames from standard input.

use crate::common::{Bench, code, dictionary_bytes, model};

/// Frames of 16x16, one byte a pixel, in `frames.raw`, and the same as an array of levels in [0, 1].
fn frames(n: usize) -> Bench {
    let bench = Bench::new();
    let images = crate::common::stack(n, 16, 16, 3).mapv(|v| (128.0 + 80.0 * v) as u8);
    bench.write("frames.raw", images.as_slice().unwrap());
    crate::common::write_npy(&bench.path("frames.npy"), &images.mapv(|v| f64::from(v) / 255.0));
    crate::common::write_npy(&bench.path("test.npy"), &crate::common::stack(2, 16, 16, 9));
    bench
}

const SMALL: &str = "--raw 16x16 --filters 4 --size 5 --beta 0.1 --threads 1 --out m.safetensors";

#[test]
fn frames_are_learned_in_the_order_of_arrival() {
    let bench = frames(7);
    let call = format!("$OCSC learn - {SMALL} --preprocess none --log run.jsonl --test test.npy --json");
    let ran = bench.shell(&format!("cat frames.raw | {call}")).ok();
    let result = ran.json();
    assert_eq!((&result["samples"], &result["steps"], &result["passes"]), (&7.into(), &7.into(), &1.into()));
    assert!(result["test"]["objective"].as_f64().unwrap() > 0.0);
    assert!(ran.stderr.contains("learning 1  objective") && !ran.stderr.contains("left over"), "{}", ran.stderr);
    let lines = bench.log("run.jsonl");
    super::log::check(&lines);
    assert_eq!(lines.len(), 9);
    let whole = dictionary_bytes(&bench.path("m.safetensors"));
    // In another order, or with fewer frames, the dictionary is another; with the same, the same.
    bench.shell(&format!("{call} < frames.raw")).ok();
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == whole);
    let ran = bench.shell(&format!("{call} --limit 5 < frames.raw")).ok();
    assert_eq!(ran.json()["samples"], 5);
    assert!(dictionary_bytes(&bench.path("m.safetensors")) != whole);
    let ran = bench.shell(&format!("{call} --batch 3 < frames.raw")).ok();
    assert_eq!((&ran.json()["samples"], &ran.json()["steps"]), (&7.into(), &3.into()));
    bench.shell(&format!("$OCSC learn - {SMALL} --init patches < frames.raw")).ok();
    let config = model(&bench.path("m.safetensors")).config;
    assert_eq!(config["preprocess"], serde_json::json!(["lowpass=5", "scale"]), "frames are images");
}

#[test]
fn a_checkpoint_goes_on_with_the_next_stream() {
    let bench = frames(6);
    let learn = format!("$OCSC learn - {SMALL} --preprocess none");
    bench.shell(&format!("{learn} < frames.raw")).ok();
    let whole = dictionary_bytes(&bench.path("m.safetensors"));
    bench.shell(&format!("head -c 1024 frames.raw | {learn} --checkpoint-every 100")).ok();
    let ran = bench.shell("tail -c +1025 frames.raw | $OCSC learn - --raw 16x16 --resume m.safetensors --json").ok();
    assert_eq!(ran.json()["samples"], 6);
    assert!(dictionary_bytes(&bench.path("m.safetensors")) == whole);
    // A time limit leaves a checkpoint as well.
    let ran = bench.shell(&format!("{learn} --time-limit 1e-9 < frames.raw")).ok();
    assert!(ran.stdout.contains("time limit") && ran.stderr.contains("--resume m.safetensors"), "{}", ran.stderr);
    let ran = bench.shell("$OCSC learn - --raw 16x16 --resume m.safetensors --json < frames.raw").ok();
    assert_eq!(ran.json()["samples"], 7);
}

#[test]
fn ctrl_c_is_heard_while_no_frames_arrive() {
    let bench = frames(2);
    let script = format!(
        "mkfifo pipe; (cat frames.raw; exec sleep 20) > pipe 2>/dev/null &
         $OCSC learn - {SMALL} --log run.jsonl < pipe & pid=$!
         while [ \"$(cat run.jsonl 2>/dev/null | wc -l)\" -lt 2 ]; do sleep 0.05; done
         kill -INT $pid; wait $pid"
    );
    let start = std::time::Instant::now();
    bench.shell(&script).failed(130, &["interrupted after 2 samples", "m.safetensors is a checkpoint"]);
    assert!(start.elapsed().as_secs() < 15);
    bench.shell("$OCSC learn - --raw 16x16 --resume m.safetensors < frames.raw").ok();
}

#[test]
fn a_part_of_a_frame_is_reported_and_dropped() {
    let bench = frames(3);
    let ran = bench.shell(&format!("head -c 700 frames.raw | $OCSC learn - {SMALL}")).ok();
    assert!(ran.stderr.contains("after 2 frames of 256 bytes, 188 bytes"), "{}", ran.stderr);
    let learn = |input: &str, words: &str| bench.shell(&format!("{input} | $OCSC learn - {words}"));
    learn("printf abc", SMALL).refused(1, &["stdin", "256 bytes", "found 3 bytes"]);
    learn("printf ''", SMALL).refused(1, &["stdin", "found 0 bytes"]);
    let rgb = learn("cat frames.raw", &format!("{SMALL} --raw-format rgb48le --preprocess none"));
    rgb.refused(1, &["stdin", "1536 bytes", "found 768 bytes"]);
}

#[test]
fn frames_are_coded_one_file_each() {
    let bench = frames(3);
    bench.shell(&format!("$OCSC learn - {SMALL} --preprocess none < frames.raw")).ok();
    let ran = bench.shell("$OCSC code m.safetensors - --raw 16x16 --out codes --json < frames.raw").ok();
    bench.run("code m.safetensors frames.npy --out same").ok();
    assert_eq!(ran.json()["samples"], 3);
    for i in 0..3 {
        let streamed = code(&bench.path(&format!("codes/frame-00000{i}.npz")));
        let from_file = code(&bench.path(&format!("same/frames-000{i}.npz")));
        assert_eq!((streamed.value, streamed.objective), (from_file.value, from_file.objective));
    }
    let ran = bench.shell("$OCSC code m.safetensors - --raw 16x16 --limit 2 --out two --json < frames.raw").ok();
    assert_eq!(ran.json()["samples"], 2);
}

#[test]
fn what_a_stream_cannot_do() {
    let bench = frames(2);
    let learn = |words: &str| bench.shell(&format!("$OCSC learn {words} --filters 4 --size 5 --out x < frames.raw"));
    learn("-").refused(1, &["--raw HEIGHTxWIDTH", "ffmpeg"]);
    learn("- --raw 16").refused(2, &["--raw", "480x640"]);
    learn("- --raw 16x16 --raw-format yuv420p").refused(2, &["--raw-format", "gray16le"]);
    learn("- frames.npy --raw 16x16").refused(1, &["cannot be joined"]);
    learn("frames.npy --raw 16x16").refused(1, &["--raw", "standard input"]);
    learn("- --raw 16x16 --passes 2").refused(1, &["--passes", "read once"]);
    learn("- --raw 16x16 --stop-tol 0.1").refused(1, &["--stop-tol", "read once"]);
    learn("frames.npy --test -").refused(1, &["--test", "standard input"]);
    learn("- --raw 4x64").refused(1, &["5x5", "4x64"]);
    bench.run("learn frames.npy --filters 4 --size 5 --beta 0.1 --out m.safetensors").ok();
    let ran = bench.shell("$OCSC evaluate m.safetensors - --raw 16x16 < frames.raw");
    ran.refused(1, &["found standard input", "frames/%05d.png"]);
    crate::common::write_npy(&bench.path("mask.npy"), &ndarray::Array2::from_elem((16, 16), 1u8));
    learn("- --raw 16x16 --mask mask.npy").ok();
    crate::common::write_npy(&bench.path("mask.npy"), &ndarray::Array2::from_elem((8, 16), 1u8));
    learn("- --raw 16x16 --mask mask.npy").refused(1, &["--mask mask.npy", "16x16", "8x16"]);
}
