//! Recordings, signals, cubes, volumes and video, through every command.

use crate::common::{Bench, model_shape, noise, pictures, read_floats, read_npy, write_npy};
use ndarray::{Array, Array1, Array2, Array3, Array4, ArrayD, Dimension, IxDyn};

/// Sines with some noise, in so many channels.
fn signal(channels: usize, len: usize) -> Array2<f32> {
    let mut next = noise(5);
    Array2::from_shape_fn((channels, len), |(c, t)| ((t as f64 * 0.3 * (c + 1) as f64).sin() + 0.1 * next()) as f32)
}

fn wav(bench: &Bench, name: &str, rate: u32, channels: &[&[f32]]) {
    let spec = hound::WavSpec {
        channels: channels.len() as u16,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(bench.path(name), spec).unwrap();
    for t in 0..channels[0].len() {
        channels.iter().for_each(|c| writer.write_sample((c[t] * 16000.0) as i16).unwrap());
    }
    writer.finalize().unwrap();
}

#[test]
fn recordings_in_windows() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("songs")).unwrap();
    let waves = signal(2, 4000);
    let [left, right] = [waves.row(0).to_vec(), waves.row(1).to_vec()];
    wav(&bench, "songs/b2.wav", 1000, &[&left, &right]);
    wav(&bench, "songs/b10.wav", 1000, &[&right]);
    let small = "--filters 3 --size 16 --beta 0.1 --threads 1";
    let learned = |words: &str| bench.run(&format!("learn {words} {small} --out m.safetensors --json")).ok().json();
    assert_eq!(learned("songs --tile whole")["samples"], 2, "shorter than the default window");
    assert_eq!(learned("songs --window 1s")["samples"], 8);
    assert_eq!(learned("songs --window 500")["samples"], 16);
    assert_eq!(learned("songs --window 1s --rate 500")["samples"], 8);
    assert_eq!(learned("songs --window 500 --rate 500")["samples"], 8);
    bench.run("code m.safetensors songs --window 500 --rate 500 --out codes").ok();
    let ran = bench.run("reconstruct m.safetensors codes --out back").ok();
    assert!(ran.stderr.contains("8 of 8 reconstructions are no picture (a signal"), "{}", ran.stderr);
    assert_eq!(read_floats(&bench.path("back/b2-0003.npy")).shape(), [500]);
    assert!(!bench.path("back/b2-0003.png").exists() && bench.path("back/b10-0000.npy").exists());
    bench.run("evaluate m.safetensors songs --window 500 --rate 500").ok();
    bench.run("show m.safetensors --out d.png").ok();
    learned("songs/b2.wav --channel all --window 500");
    assert_eq!(model_shape(&bench.path("m.safetensors")), [3, 2, 16]);
    bench
        .run(&format!("learn songs --strict --channel all {small} --out x"))
        .refused(1, &["b10.wav", "2 channels", "1"]);
    bench.run(&format!("learn songs --strict --channel 2 {small} --out y")).refused(1, &["b10.wav", "--channel 2"]);
    bench.run("learn songs --rate 0 --out x").refused(2, &["--rate", "Hz"]);
    bench.run("learn songs --window 0 --out x").refused(2, &["--window", "5s"]);
    bench.run("learn songs --channel front --out x").refused(2, &["--channel", "mean"]);
}

/// Filters learned at one rate mean nothing at another one.
#[test]
fn the_rate_and_the_size_of_learning_are_recorded_and_the_rate_is_repeated() {
    let bench = Bench::new();
    wav(&bench, "song.wav", 1000, &[&signal(1, 4000).row(0).to_vec()]);
    let small = "--filters 3 --size 16 --beta 0.1 --threads 1";
    bench.run(&format!("learn song.wav --window 500 --rate 500 {small} --out m.safetensors --time-limit 1e-9")).ok();
    bench.run("learn song.wav --window 500 --resume m.safetensors").ok();
    let repeated = bench.run("evaluate m.safetensors song.wav --window 500 --json").ok();
    let said = "rate 500 Hz, as the model was learned with; --rate says otherwise";
    assert!(repeated.stderr.contains(said), "{}", repeated.stderr);
    assert_eq!(repeated.json()["samples"], 4);
    let named = bench.run("evaluate m.safetensors song.wav --window 500 --rate 1000 --json").ok();
    assert!(!named.stderr.contains("rate"), "{}", named.stderr);
    assert_eq!(named.json()["samples"], 8);
    let listed = bench.run("events m.safetensors song.wav --window 500 --out events.csv").ok();
    assert!(listed.stderr.contains(said), "{}", listed.stderr);
    bench.run("code m.safetensors song.wav --window 500 --out codes").ok();
    bench.run("verify m.safetensors song.wav --window 500 codes").ok();
    let info = bench.run("info m.safetensors").ok().stdout;
    assert!(info.lines().any(|line| line.starts_with("rate ") && line.ends_with(" 500")), "{info}");
    // Small filters on large pictures are often meant.
    pictures(&bench, "photos", 2, 1);
    bench.run("learn photos --resize 10 --filters 3 --size 5 --beta 0.1 --out p.safetensors").ok();
    let ran = bench.run("evaluate p.safetensors photos").ok();
    assert!(ran.stderr.contains("learned with --resize 10, and these are taken as they are"), "{}", ran.stderr);
    let ran = bench.run("evaluate p.safetensors photos --resize 10").ok();
    assert!(!ran.stderr.contains("--resize"), "{}", ran.stderr);
    assert!(bench.run("info p.safetensors").ok().stdout.contains("resize"));
}

#[test]
fn long_arrays_in_windows_and_shapes_that_were_misread() {
    let bench = Bench::new();
    write_npy(&bench.path("lfp.npy"), &signal(1, 5000));
    let small = "--filters 3 --size 16 --beta 0.1 --threads 1 --out m.safetensors";
    let ran = bench.run(&format!("learn lfp.npy --axes CW --window 1000 {small} --json")).ok();
    assert_eq!(ran.json()["samples"], 5);
    let parts = ["lfp.npy", "(1, 5000)", "read as HW", "NW, CW"];
    bench.run(&format!("learn lfp.npy {small}")).refused(1, &parts);
    bench.run(&format!("learn lfp.npy --window 1000 {small}")).refused(1, &parts[..3]);
    bench
        .run(&format!("learn lfp.npy --axes CW --window 5s {small}"))
        .refused(1, &["lfp.npy", "--window 2048", "--sfreq"]);
    // As the times of events are.
    let ran = bench.run(&format!("learn lfp.npy --axes CW --window 5s --sfreq 200 {small} --json")).ok();
    assert_eq!(ran.json()["samples"], 5);
    let ran = bench.run("evaluate m.safetensors lfp.npy --axes CW --window 2.5s --sfreq 200 --json").ok();
    assert_eq!(ran.json()["samples"], 10);
    bench.run("events m.safetensors lfp.npy --axes CW --window 5s --sfreq 200 --out e.csv").ok();
    // Colours last, taken for a hundred narrow images.
    write_npy(&bench.path("hwc.npy"), &Array3::<f32>::ones((40, 40, 3)));
    bench.run(&format!("learn hwc.npy --size 5 {}", &small[21..])).refused(1, &["(40, 40, 3)", "read as NHW", "HWC"]);
}

/// Learns, codes, reconstructs and evaluates with every boundary, in the shapes that the design promises.
#[track_caller]
fn end_to_end(bench: &Bench, axes: &str, size: &str, dictionary: &[usize], sample: &[usize]) {
    for boundary in ["circular", "zero", "free"] {
        let learn = format!("learn x.npy --axes {axes} --size {size} --boundary {boundary}");
        bench.run(&format!("{learn} --filters 3 --beta 0.05 --threads 1 --out m.safetensors")).ok();
        assert_eq!(model_shape(&bench.path("m.safetensors")), dictionary, "{axes}");
        let _ = std::fs::remove_dir_all(bench.path("codes"));
        let _ = std::fs::remove_dir_all(bench.path("back"));
        bench.run(&format!("code m.safetensors x.npy --axes {axes} --tol 0.001 --out codes")).ok();
        bench.run("reconstruct m.safetensors codes --out back").ok();
        let evaluated = bench.run(&format!("evaluate m.safetensors x.npy --axes {axes} --json")).ok().json();
        assert!(evaluated["gap"].as_f64().unwrap() <= 0.003, "{axes} {boundary}");
        let name = if axes.contains('N') { "back/x-0000.npy" } else { "back/x.npy" };
        let back = read_floats(&bench.path(name));
        assert_eq!(back.shape(), sample, "{axes} {boundary}");
        let data: ArrayD<f32> = read_npy(&bench.path("x.npy"));
        let first = if axes.contains('N') { data.index_axis(ndarray::Axis(0), 0).into_owned() } else { data };
        let error = (&back - &first.mapv(f64::from)).mapv(|v| v * v).sum();
        let energy = first.mapv(|v| f64::from(v * v)).sum();
        assert!(error < 0.9 * energy, "{axes} {boundary}: {error} of {energy}");
        bench.run("show m.safetensors --out d.png").ok();
        bench.run("info m.safetensors").ok();
    }
}

fn data(bench: &Bench, dims: &[usize]) {
    let mut next = noise(9);
    let value = |place: IxDyn| {
        let wave: f64 = place.slice().iter().enumerate().map(|(a, i)| (a + 1) as f64 * 0.4 * *i as f64).sum();
        (wave.sin() + 0.1 * next()) as f32
    };
    write_npy(&bench.path("x.npy"), &Array::from_shape_fn(IxDyn(dims), value));
}

#[test]
fn every_kind_of_array_end_to_end() {
    let bench = Bench::new();
    data(&bench, &[64]);
    end_to_end(&bench, "W", "7", &[3, 1, 7], &[64]);
    data(&bench, &[4, 64]);
    end_to_end(&bench, "CW", "7", &[3, 4, 7], &[4, 64]);
    data(&bench, &[2, 4, 48]);
    end_to_end(&bench, "NCW", "7", &[3, 4, 7], &[4, 48]);
    data(&bench, &[5, 14, 15]);
    end_to_end(&bench, "CHW", "5", &[3, 5, 5, 5], &[5, 14, 15]);
    end_to_end(&bench, "DHW", "3x5x5", &[3, 1, 3, 5, 5], &[5, 14, 15]);
    data(&bench, &[2, 6, 10, 9]);
    end_to_end(&bench, "NDHW", "3x5x4", &[3, 1, 3, 5, 4], &[6, 10, 9]);
    data(&bench, &[2, 5, 9, 8]);
    end_to_end(&bench, "CDHW", "3", &[3, 2, 3, 3, 3], &[2, 5, 9, 8]);
}

#[test]
fn pictures_alone_can_be_insisted_on() {
    let bench = Bench::new();
    write_npy(
        &bench.path("x.npy"),
        &Array4::<f32>::from_shape_fn((1, 5, 9, 9), |(_, c, y, x)| (c * y + x) as f32 * 0.1),
    );
    bench.run("learn x.npy --axes NCHW --filters 2 --size 3 --out m.safetensors").ok();
    bench.run("code m.safetensors x.npy --axes NCHW --out codes").ok();
    let ran = bench.run("reconstruct m.safetensors codes --out back --format png");
    ran.refused(1, &["x.png", "5 channels", "no picture"]);
    write_npy(&bench.path("line.npy"), &Array1::<f32>::from_shape_fn(64, |t| (t as f32 * 0.3).sin()));
    bench.run("learn line.npy --filters 2 --size 3 --init m.safetensors --out x").refused(1, &["--init"]);
}

#[test]
fn cifar_batches_are_images() {
    let bench = Bench::new();
    let mut next = noise(3);
    let record = || std::iter::once(7).chain((0..3072).map(|_| (next() * 100.0 + 128.0) as u8)).collect::<Vec<u8>>();
    bench.write("batch.bin", &std::iter::repeat_with(record).take(3).flatten().collect::<Vec<_>>());
    let ran = bench.learn("batch.bin --out m.safetensors --json").ok();
    assert_eq!(ran.json()["samples"], 3);
    let config = crate::common::model(&bench.path("m.safetensors")).config;
    assert_eq!(config["preprocess"], serde_json::json!(["lowpass=5", "scale"]));
    bench.run("code m.safetensors batch.bin --limit 2 --out codes").ok();
    assert!(bench.path("codes/batch-0001.npz").exists() && !bench.path("codes/batch-0002.npz").exists());
    bench.write("cut.bin", &bench.read("batch.bin")[1..]);
    bench.learn("cut.bin --out x").refused(1, &["cut.bin", "9218 bytes", "3073"]);
}

#[test]
fn recordings_come_back_as_recordings() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("songs")).unwrap();
    let spec =
        hound::WavSpec { channels: 2, sample_rate: 800, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
    for (name, n) in [("a", 2100_usize), ("b", 900)] {
        let mut wav = hound::WavWriter::create(bench.path(&format!("songs/{name}.wav")), spec).unwrap();
        for t in 0..n {
            let wave = (0.3 * t as f64).sin() * (8000.0 + 4000.0 * (0.01 * t as f64).cos());
            wav.write_sample(wave as i16).unwrap();
            wav.write_sample((-0.5 * wave) as i16).unwrap();
        }
        wav.finalize().unwrap();
    }
    bench.run("learn songs --channel all --window 1s --size 21 --filters 3 --beta-ratio 0.02 --passes 4 --out m").ok();
    bench.run("code m songs --channel all --window 1s --out codes").ok();
    let said = bench.run("reconstruct m codes --original songs --channel all --window 1s --out back").ok().stdout;
    assert!(said.contains("2 recordings put together"), "{said}");
    for (name, n) in [("a", 2100), ("b", 900)] {
        let read = |path: String| hound::WavReader::open(bench.path(&path)).unwrap();
        let (mut original, mut back) = (read(format!("songs/{name}.wav")), read(format!("back/{name}.wav")));
        assert_eq!((back.duration(), back.spec().sample_rate, back.spec().channels), (n, 800, 2));
        let values: Vec<f64> = original.samples::<i16>().map(|v| f64::from(v.unwrap()) / 32768.0).collect();
        let made: Vec<f64> = back.samples::<f32>().map(|v| f64::from(v.unwrap())).collect();
        let energy: f64 = values.iter().map(|v| v * v).sum();
        let missed: f64 = values.iter().zip(&made).map(|(a, b)| (a - b).powi(2)).sum();
        assert!(missed < 0.1 * energy, "{missed} {energy}");
    }
    bench.run("reconstruct m codes --each-filter --format npy --out parts").ok();
    for name in ["a-filter0.wav", "a-filter2.wav", "b-filter1.wav"] {
        assert!(bench.path(&format!("parts/{name}")).exists(), "{name}");
    }
    bench.run("reconstruct m codes --out songs").refused(1, &["--out songs/", ".wav", "what was coded"]);
}
