//! `ocsc events`: patterns that were put into signals, images and volumes are found where they were put.

use crate::common::npz::rewrite;
use crate::common::{Bench, noise, write_npy};
use ndarray::{Array1, Array2, Array3, ArrayD, IxDyn};
use std::collections::HashMap;

/// A pattern with its largest magnitude at its sixth value.
const CLICK: [f64; 16] = [0.0, 0.2, -0.4, 0.8, -1.2, 2.0, -1.6, 1.2, -0.9, 0.7, -0.5, 0.4, -0.3, 0.2, -0.1, 0.05];

/// A signal of so many values with the pattern at these places, each with its amplitude, and a little noise.
fn clicks(len: usize, places: &[(usize, f64)]) -> Vec<f32> {
    let norm = CLICK.iter().map(|v| v * v).sum::<f64>().sqrt();
    let mut next = noise(3);
    let mut signal: Vec<f64> = (0..len).map(|_| 0.002 * next()).collect();
    for (place, amplitude) in places {
        let room = signal.len() - place;
        signal[*place..].iter_mut().zip(&CLICK[..CLICK.len().min(room)]).for_each(|(s, c)| *s += amplitude * c / norm);
    }
    signal.iter().map(|v| *v as f32).collect()
}

/// A model of the pattern alone, in `m.safetensors`.
fn click_model(bench: &Bench, words: &str) {
    let norm = CLICK.iter().map(|v| v * v).sum::<f64>().sqrt();
    write_npy(&bench.path("d.npy"), &Array2::from_shape_fn((1, 16), |(_, t)| CLICK[t] / norm));
    write_npy(&bench.path("one.npy"), &Array1::from(clicks(64, &[(20, 1.0)])));
    let learn = "learn one.npy --axes W --init d.npy --passes 0 --filters 1 --size 16 --beta 0.01 --out m.safetensors";
    bench.run(&format!("{learn} {words}")).ok();
}

/// The rows of a table, by the names of its columns.
fn rows(bench: &Bench, name: &str, columns: &str) -> Vec<HashMap<String, String>> {
    let text = bench.text(name);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(columns));
    let names: Vec<&str> = columns.split(',').collect();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), names.len(), "{line}");
        names.iter().zip(fields).map(|(name, field)| (name.to_string(), field.to_owned())).collect()
    };
    lines.map(row).collect()
}

const SIGNAL: &str = "sample,filter,time,position,amplitude,energy";
const PLACES: &str = "sample,filter,time,z,y,x,amplitude,energy";

fn number(row: &HashMap<String, String>, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|e| panic!("{name}: {e}: {row:?}"))
}

fn column(rows: &[HashMap<String, String>], name: &str) -> Vec<f64> {
    rows.iter().map(|row| number(row, name)).collect()
}

#[test]
fn clicks_are_found_where_they_are_with_every_boundary() {
    let bench = Bench::new();
    let truth = [(50, 1.0), (150, -0.7), (300, 0.5)];
    write_npy(&bench.path("x.npy"), &Array1::from(clicks(400, &truth)));
    for boundary in ["circular", "zero", "free"] {
        click_model(&bench, &format!("--boundary {boundary} --dtype f64"));
        for (align, offset) in [("start", 0.0), ("peak", 5.0), ("centre", 6.0)] {
            let words =
                format!("events m.safetensors x.npy --axes W --align {align} --threshold 0.1 --out e.csv --json");
            let summary = bench.run(&words).ok().json();
            assert_eq!((&summary["events"], &summary["samples"]), (&3.into(), &1.into()), "{summary}");
            let found = rows(&bench, "e.csv", SIGNAL);
            assert_eq!(column(&found, "position"), [50.0, 150.0, 300.0].map(|p| p + offset), "{boundary} {align}");
            for (row, (_, amplitude)) in found.iter().zip(truth) {
                assert!((number(row, "amplitude") - amplitude).abs() < 0.03, "{row:?}");
                // Shares of 1 + 0.49 + 0.25.
                assert!((number(row, "energy") - amplitude * amplitude / 1.74).abs() < 0.03, "{row:?}");
                assert_eq!((row["sample"].as_str(), row["filter"].as_str(), row["time"].as_str()), ("x.npy", "0", ""));
            }
        }
    }
}

#[test]
fn windows_of_a_recording_are_stitched() {
    let bench = Bench::new();
    click_model(&bench, "--boundary free");
    // Windows of 100 values: clicks lie within them, over a cut, and just after one.
    let truth = [(30, 1.0), (193, 0.8), (301, 0.6), (420, 0.9)];
    let signal = clicks(500, &truth);
    std::fs::create_dir(bench.path("songs")).unwrap();
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 1000,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    let mut writer = hound::WavWriter::create(bench.path("songs/a, b.wav"), spec).unwrap();
    signal.iter().for_each(|v| writer.write_sample(*v).unwrap());
    writer.finalize().unwrap();
    std::fs::copy(bench.path("songs/a, b.wav"), bench.path("songs/c.wav")).unwrap();
    let events = "events m.safetensors songs --threshold 0.2 --beta 0.01";
    bench.run(&format!("{events} --window 100 --out e.csv")).ok();
    let text = bench.text("e.csv");
    assert_eq!(text.lines().filter(|line| line.starts_with("\"songs/a, b.wav\",0,0.")).count(), 4, "{text}");
    let of_c = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("songs/c.wav"));
        lines.map(|line| line.split(',').skip(2).map(|n| n.parse().unwrap()).collect()).collect::<Vec<Vec<f64>>>()
    };
    let found = of_c(&text);
    let places: Vec<f64> = found.iter().map(|row| row[1]).collect();
    assert_eq!(places, truth.map(|(place, _)| place as f64 + 5.0), "{text}");
    for (row, (place, amplitude)) in found.iter().zip(truth) {
        assert!((row[0] - (place as f64 + 5.0) / 1000.0).abs() < 1e-12, "seconds");
        assert!((row[2] - amplitude).abs() < 0.05, "{row:?}");
        assert!((row[3] - amplitude * amplitude / 2.81).abs() < 0.03, "a share of the whole recording: {row:?}");
    }
    // As in one piece.
    bench.run(&format!("{events} --out whole.csv")).ok();
    for (a, b) in of_c(&bench.text("whole.csv")).iter().zip(&found) {
        assert_eq!(a[1], b[1]);
        assert!((a[2] - b[2]).abs() < 0.05 && (a[3] - b[3]).abs() < 0.03);
    }
    bench.run(&format!("{events} --sfreq 5 --out x.csv")).refused(1, &["songs/a, b.wav", "--sfreq", "1000"]);
    // The same of arrays, whose rate the call says; T is time.
    let three = Array2::from_shape_fn((3, 500), |(_, t)| signal[t]);
    write_npy(&bench.path("x.npy"), &three);
    bench.run("events m.safetensors x.npy --axes NT --window 100 --sfreq 250 --threshold 0.2 --out n.csv").ok();
    let found = rows(&bench, "n.csv", SIGNAL);
    assert_eq!(found.len(), 12);
    assert_eq!(column(&found[4..8], "position"), truth.map(|(place, _)| place as f64 + 5.0));
    assert_eq!(column(&found[4..8], "time"), truth.map(|(place, _)| (place as f64 + 5.0) / 250.0));
    assert_eq!(found[4]["sample"], "x.npy[1]");
    // Without merging, an event over a cut is still one where both sides agree on its place.
    bench.run("events m.safetensors x.npy --axes NT --window 100 --min-distance 1 --out all.csv").ok();
    assert!(rows(&bench, "all.csv", SIGNAL).len() >= 12);
}

#[test]
fn cells_in_images_and_volumes() {
    let bench = Bench::new();
    let blob = |z: f64, y: f64, x: f64| (-(z * z + y * y + x * x) / 3.0).exp();
    let truth = [[9.0, 7.0], [30.0, 12.0], [18.0, 33.0]];
    let image = Array3::from_shape_fn((2, 40, 42), |(n, y, x)| {
        truth.iter().map(|[cy, cx]| blob(0.0, y as f64 - cy - n as f64, x as f64 - cx)).sum::<f64>() as f32
    });
    write_npy(&bench.path("x.npy"), &image);
    let filter = Array3::from_shape_fn((1, 7, 7), |(_, y, x)| 0.25 * blob(0.0, y as f64 - 3.0, x as f64 - 3.0));
    write_npy(&bench.path("d.npy"), &filter);
    let learn = "learn x.npy --init d.npy --passes 0 --filters 1 --beta 0.01 --boundary free --out m.safetensors";
    bench.run(&format!("{learn} --axes NHW --size 7")).ok();
    bench.run("events m.safetensors x.npy --threshold 0.5 --min-distance 5x5 --out e.csv").ok();
    let found = rows(&bench, "e.csv", PLACES);
    assert_eq!(found.len(), 6);
    for n in [0.0, 1.0] {
        let part = &found[3 * n as usize..][..3];
        assert_eq!((column(part, "y"), column(part, "x")), (vec![9.0 + n, 18.0 + n, 30.0 + n], vec![7.0, 33.0, 12.0]));
        assert!(part.iter().all(|row| row["z"] == "0" && row["time"].is_empty()));
    }
    // Of a piece, the places are those of the whole.
    bench.run("events m.safetensors x.npy --threshold 0.5 --crop 30 --out crop.csv").ok();
    let part = rows(&bench, "crop.csv", PLACES);
    let places: Vec<(f64, f64)> = part.iter().map(|row| (number(row, "y"), number(row, "x"))).collect();
    assert!(places.contains(&(9.0, 7.0)) && places.contains(&(18.0, 33.0)), "{places:?}");
    bench.run("events m.safetensors x.npy --sfreq 30 --out x.csv").refused(1, &["--sfreq", "images"]);
    bench
        .run("events m.safetensors x.npy --min-distance 2x2x2 --out x.csv")
        .refused(1, &["--min-distance", "2 lengths"]);

    let volume: ArrayD<f32> = ArrayD::from_shape_fn(IxDyn(&[12, 14, 16]), |at| {
        let [z, y, x] = [0, 1, 2].map(|axis| at[axis] as f64);
        (blob(z - 4.0, y - 5.0, x - 6.0) + blob(z - 8.0, y - 9.0, x - 11.0)) as f32
    });
    write_npy(&bench.path("v.npy"), &volume);
    let filter: ArrayD<f64> = ArrayD::from_shape_fn(IxDyn(&[1, 5, 5, 5]), |at| {
        let [z, y, x] = [1, 2, 3].map(|axis| at[axis] as f64 - 2.0);
        0.3 * blob(z, y, x)
    });
    write_npy(&bench.path("d3.npy"), &filter);
    let learn = "learn v.npy --axes THW --init d3.npy --size 5 --passes 0 --filters 1 --beta 0.01 --boundary free";
    bench.run(&format!("{learn} --out v.safetensors")).ok();
    bench.run("events v.safetensors v.npy --threshold 1 --sfreq 4 --out v.csv").ok();
    let found = rows(&bench, "v.csv", PLACES);
    let places: Vec<[f64; 3]> = found.iter().map(|row| ["z", "y", "x"].map(|name| number(row, name))).collect();
    assert_eq!(places, [[4.0, 5.0, 6.0], [8.0, 9.0, 11.0]]);
    assert_eq!(column(&found, "time"), [1.0, 2.0]);
}

/// Of codes that are on disk comes the same table as of the data, byte for byte.
#[test]
fn codes_give_the_table_of_their_data() {
    let bench = Bench::new();
    let signal = clicks(500, &[(30, 1.0), (193, 0.8), (301, 0.6), (420, 0.9)]);
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 1000,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    std::fs::create_dir(bench.path("songs")).unwrap();
    for name in ["songs/a, b.wav", "songs/c.wav", "z.wav"] {
        let mut writer = hound::WavWriter::create(bench.path(name), spec).unwrap();
        signal.iter().for_each(|v| writer.write_sample(*v).unwrap());
        writer.finalize().unwrap();
    }
    write_npy(&bench.path("x.npy"), &Array2::from_shape_fn((3, 500), |(_, t)| signal[t]));
    write_npy(
        &bench.path("two.npy"),
        &Array3::from_shape_fn((2, 2, 500), |(n, c, t)| signal[(t + 7 * n + 3 * c) % 500]),
    );
    let same = |learned: &str, data: &str, coding: &str, events: &str| {
        click_model(&bench, learned);
        std::fs::remove_dir_all(bench.path("codes")).ok();
        bench.run(&format!("code m.safetensors {data} {coding} --out codes")).ok();
        let of_data = bench.run(&format!("events m.safetensors {data} {coding} {events} --out data.csv --json")).ok();
        let of_codes = bench.run(&format!("events m.safetensors codes {events} --out codes.csv --json")).ok();
        assert!(bench.text("data.csv").lines().count() > 1, "{data}");
        assert_eq!(bench.text("data.csv"), bench.text("codes.csv"), "{learned} {data} {coding} {events}");
        let (of_data, of_codes) = (of_data.json(), of_codes.json());
        for name in ["samples", "events", "filters", "gap", "beta"] {
            assert_eq!(of_data[name], of_codes[name], "{name}");
        }
    };
    // The order of the data is not that of the codes' names.
    same("--boundary free", "z.wav songs", "--window 100 --beta 0.01", "--threshold 0.2");
    same("--boundary zero --dtype f64", "z.wav songs", "--rate 500", "--align centre");
    same("--boundary free --dtype f64", "songs", "--window 100 --crop 60 --dtype f32", "--min-distance 1");
    same("", "x.npy", "--axes NT --window 100 --preprocess mean", "--sfreq 250");
    same("--preprocess per-channel", "two.npy", "--axes NCT", "--sfreq 250");

    let image = Array3::from_shape_fn((2, 20, 24), |(n, y, x)| ((y * (x + n)) as f32 * 0.1).sin());
    write_npy(&bench.path("i.npy"), &image);
    for method in ["", "--method scsc --base-filters 2"] {
        let learn = "learn i.npy --filters 3 --size 5 --beta 0.2 --out i.safetensors";
        bench.run(&format!("{learn} {method}")).ok();
        bench.run("code i.safetensors i.npy --out images").ok();
        bench.run("events i.safetensors i.npy --out data.csv").ok();
        bench.run("events i.safetensors images --out codes.csv").ok();
        assert_eq!(bench.text("data.csv"), bench.text("codes.csv"), "{method}");
    }
}

#[test]
fn codes_that_do_not_belong_or_do_not_say_enough_are_refused() {
    let bench = Bench::new();
    click_model(&bench, "");
    bench.run("code m.safetensors one.npy --axes W --out codes").ok();
    let events = "events m.safetensors codes --out e.csv";
    bench.run(events).ok();
    bench.run(&format!("{events} --beta 1")).refused(1, &["--beta", "expected none for codes", "name the data"]);
    bench.run(&format!("{events} --window 20")).refused(1, &["--window", "expected none for codes"]);
    bench.run("events m.safetensors codes --out codes/one.npz").refused(1, &["--out", "one of the codes"]);
    bench.run("learn one.npy --axes W --filters 1 --size 16 --beta 0.01 --out other.safetensors").ok();
    bench.run("events other.safetensors codes --out x.csv").refused(1, &["codes/one.npz", "dictionary"]);
    let code = bench.path("codes/one.npz");
    rewrite(&code, |members| members.get_mut("energy").unwrap().data[7] ^= 1);
    let ran = bench.run("verify m.safetensors one.npy --axes W codes");
    assert!(ran.stdout.contains("the energy of the sample is"), "{}", ran.stdout);
    rewrite(&code, |members| drop(members.remove("energy")));
    bench
        .run("events m.safetensors codes --out x.csv")
        .refused(1, &["codes/one.npz", "expected the energy of the sample", "Code the data again, or name the data"]);
    assert!(!bench.path("x.csv").exists());
}

#[test]
fn the_table_is_written_as_a_whole_and_over_no_input() {
    let bench = Bench::new();
    click_model(&bench, "");
    bench.run("events m.safetensors one.npy --out m.safetensors").refused(1, &["--out", "the model"]);
    bench.run("events m.safetensors one.npy --out one.npy").refused(1, &["--out", "one of the data"]);
    bench.run("events m.safetensors one.npy").refused(2, &["--out"]);
    bench.run("events m.safetensors one.npy --threshold nan --out e.csv").refused(2, &["--threshold", "from 0 up"]);
    bench.run("events m.safetensors one.npy --align middle --out e.csv").refused(2, &["start, peak or centre"]);
    bench.run("events m.safetensors - --raw 4x4 --out e.csv").refused(1, &["-:", "standard input"]);
    bench.run("events m.safetensors one.npy --out no/e.csv").refused(1, &["no/e.csv"]);
    bench.run("events m.safetensors one.npy --beta 0.01 --out e.csv").ok();
    let first = bench.read("e.csv");
    bench.run("events m.safetensors one.npy --beta 0.01 --threads 1 --out e.csv").ok();
    assert_eq!(first, bench.read("e.csv"), "the same again");
    // A sample that cannot be read is passed over.
    std::fs::create_dir(bench.path("songs")).unwrap();
    bench.write("songs/bad.wav", b"RIFF");
    bench.run("events m.safetensors songs --out none.csv").refused(1, &["none of 1 sample", "bad.wav"]);
    bench.run("events m.safetensors songs --strict --out none.csv").refused(1, &["bad.wav"]);
    assert!(!bench.path("none.csv").exists());
}
