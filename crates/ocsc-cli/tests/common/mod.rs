//! What the whole-program tests share: a temporary folder with small data, the program, and independent readers.

pub(crate) mod npz;

use assert_cmd::Command;
use ndarray::{Array2, Array3, Array4, ArrayD};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// Filters of 5x5, four of them: a run takes a blink.
pub(crate) const SMALL: [&str; 6] = ["--filters", "4", "--size", "5", "--threads", "1"];

/// A folder that is gone after the test.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

/// What a call left behind.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with `train.npy` and `test.npy`, (N, 16, 16).
    pub(crate) fn with_data(n: usize) -> Self {
        let bench = Bench::new();
        write_npy(&bench.path("train.npy"), &stack(n, 16, 16, 1));
        write_npy(&bench.path("test.npy"), &stack(2, 16, 16, 99));
        bench
    }

    /// The same with a model in `m.safetensors`, learned from it.
    pub(crate) fn with_model() -> Self {
        let bench = Bench::with_data(4);
        bench.learn("train.npy --out m.safetensors --beta 0.1").ok();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `ocsc` in the folder; words are separated by blanks.
    pub(crate) fn run(&self, words: &str) -> Ran {
        self.run_words(&words.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn run_words(&self, words: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_ocsc")).args(words).current_dir(self.folder.path()).output();
        Ran::new(words.join(" "), &output.unwrap())
    }

    /// `ocsc learn` with small settings.
    pub(crate) fn learn(&self, words: &str) -> Ran {
        self.run(&format!("learn {words} {}", SMALL.join(" ")))
    }

    /// Starts `ocsc learn` with small settings, all output into files.
    pub(crate) fn spawn(&self, words: &str) -> std::process::Child {
        self.spawn_words(&format!("learn {words} {}", SMALL.join(" ")))
    }

    /// Starts `ocsc`, all output into files.
    pub(crate) fn spawn_words(&self, words: &str) -> std::process::Child {
        let file = |name: &str| std::fs::File::create(self.path(name)).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ocsc"));
        command.args(words.split_whitespace()).current_dir(self.folder.path());
        command.stdout(file("spawned.stdout")).stderr(file("spawned.stderr")).spawn().unwrap()
    }

    /// A shell in the folder, for redirections; `$OCSC` is the program.
    pub(crate) fn shell(&self, script: &str) -> Ran {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).env("OCSC", env!("CARGO_BIN_EXE_ocsc")).current_dir(self.folder.path());
        Ran::new(script.to_owned(), &command.output().unwrap())
    }

    /// The names of what lies in a folder of this one.
    pub(crate) fn names(&self, folder: &str) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.path(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// The lines of a log that end in a newline.
    pub(crate) fn log(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
    }

    /// Waits until a log holds so many lines.
    pub(crate) fn wait_for_lines(&self, name: &str, lines: usize) {
        let start = Instant::now();
        while self.log(name).len() < lines {
            assert!(start.elapsed() < Duration::from_secs(60), "{name} has {} lines", self.log(name).len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Ran {
    pub(crate) fn new(words: String, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let ran = Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) };
        assert!(!ran.stderr.contains("panicked"), "{words}:\n{}", ran.stderr);
        ran
    }

    /// That it went well.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// That it did its work, but passed over samples.
    #[track_caller]
    pub(crate) fn passed_over(self) -> Self {
        assert_eq!(self.code, Some(3), "{}", self.stderr);
        assert!(self.stderr.contains("passed over as unusable: "), "{}", self.stderr);
        self
    }

    /// That it was refused with this exit code and nothing but a message that says all of `parts`.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        for part in parts {
            assert!(self.stderr.contains(part), "`{}` does not say `{part}`", self.stderr);
        }
        self
    }

    /// That it failed with this exit code and a message that says all of `parts`, though it had results.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, parts: &[&str]) -> Self {
        Ran { stdout: String::new(), ..self }.refused(code, parts)
    }

    /// Stdout as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.stdout))
    }
}

/// Pseudo-random numbers in [-1, 1), the same everywhere.
pub(crate) fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Images (N, H, W): smooth waves with some noise.
pub(crate) fn stack(n: usize, height: usize, width: usize, seed: u64) -> Array3<f32> {
    let mut next = noise(seed);
    let mut images = Array3::zeros((n, height, width));
    for mut image in images.outer_iter_mut() {
        let (a, b, c) = (next() * 1.5, next() * 1.5, next() * 3.0);
        for ((y, x), v) in image.indexed_iter_mut() {
            *v = ((a * y as f64 + b * x as f64 + c).sin() + 0.2 * next()) as f32;
        }
    }
    images
}

pub(crate) fn write_npy<S: ndarray::Data<Elem = A>, A: ndarray_npy::WritableElement, D: ndarray::Dimension>(
    path: &Path,
    array: &ndarray::ArrayBase<S, D>,
) {
    ndarray_npy::write_npy(path, array).unwrap();
}

pub(crate) fn read_npy<A: ndarray_npy::ReadableElement>(path: &Path) -> ArrayD<A> {
    ndarray_npy::read_npy(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// An array of floats of either precision.
pub(crate) fn read_floats(path: &Path) -> ArrayD<f64> {
    ndarray_npy::read_npy(path).unwrap_or_else(|_| read_npy::<f32>(path).mapv(f64::from))
}

/// 8-bit pixels of a colour image.
pub(crate) fn picture(width: u32, height: u32, seed: u64) -> image::RgbImage {
    let mut next = noise(seed);
    let (a, b) = (next() * 1.5, next() * 1.5);
    image::RgbImage::from_fn(width, height, |x, y| {
        let wave = (a * f64::from(y) + b * f64::from(x)).sin();
        image::Rgb([0, 1, 2].map(|c| (128.0 + 80.0 * wave + 30.0 * next() + f64::from(c)) as u8))
    })
}

/// A folder of PNGs, `1.png` to `n.png`.
pub(crate) fn pictures(bench: &Bench, folder: &str, n: usize, seed: u64) {
    std::fs::create_dir_all(bench.path(folder)).unwrap();
    for i in 1..=n {
        picture(20, 20, seed + i as u64).save(bench.path(&format!("{folder}/{i}.png"))).unwrap();
    }
}

/// A model file as an independent reader sees it: the dictionary (K, 1, h, w), the metadata, the names of all tensors.
pub(crate) struct Model {
    pub(crate) dictionary: Array4<f64>,
    pub(crate) dtype: safetensors::Dtype,
    pub(crate) format: String,
    pub(crate) config: Value,
    pub(crate) tensors: Vec<String>,
}

pub(crate) fn model(path: &Path) -> Model {
    let bytes = std::fs::read(path).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor("dictionary").unwrap();
    let data: Vec<f64> = match tensor.dtype() {
        safetensors::Dtype::F32 => {
            tensor.data().chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
        }
        _ => tensor.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
    };
    let shape: [usize; 4] = tensor.shape().try_into().unwrap();
    let metadata = header.metadata().clone().unwrap();
    Model {
        dictionary: Array4::from_shape_vec(shape, data).unwrap(),
        dtype: tensor.dtype(),
        format: metadata["format"].clone(),
        config: serde_json::from_str(&metadata["config"]).unwrap(),
        tensors: file.names().into_iter().map(str::to_owned).collect(),
    }
}

/// A model file as it was written before there were checksums.
pub(crate) fn unsealed(bytes: &[u8]) -> Vec<u8> {
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let metadata = header["__metadata__"].as_object_mut().unwrap();
    assert!(metadata.remove("sha256").is_some() && metadata.remove("checksum").is_some());
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes[end..]].concat()
}

/// The shape of the tensor `dictionary`, with any number of axes.
pub(crate) fn model_shape(path: &Path) -> Vec<usize> {
    let bytes = std::fs::read(path).unwrap();
    safetensors::SafeTensors::deserialize(&bytes).unwrap().tensor("dictionary").unwrap().shape().to_vec()
}

/// The bytes of the tensor `dictionary`: equal if and only if two dictionaries are, bit for bit.
pub(crate) fn dictionary_bytes(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    safetensors::SafeTensors::deserialize(&bytes).unwrap().tensor("dictionary").unwrap().data().to_vec()
}

/// A code as an independent reader sees it.
pub(crate) struct Code {
    pub(crate) filter: Vec<i32>,
    pub(crate) position: Array2<i32>,
    pub(crate) value: Vec<f32>,
    pub(crate) shape: Vec<i64>,
    pub(crate) objective: f64,
    pub(crate) gap: f64,
    pub(crate) beta: f64,
}

pub(crate) fn code(path: &Path) -> Code {
    use ndarray::{Ix0, Ix1, Ix2, OwnedRepr};
    let mut npz = ndarray_npy::NpzReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut scalar = |name| npz.by_name::<OwnedRepr<f64>, Ix0>(name).unwrap().into_scalar();
    let (objective, gap, beta) = (scalar("objective"), scalar("gap"), scalar("beta"));
    Code {
        filter: npz.by_name::<OwnedRepr<i32>, Ix1>("filter").unwrap().to_vec(),
        position: npz.by_name::<OwnedRepr<i32>, Ix2>("position").unwrap(),
        value: npz.by_name::<OwnedRepr<f32>, Ix1>("value").unwrap().to_vec(),
        shape: npz.by_name::<OwnedRepr<i64>, Ix1>("shape").unwrap().to_vec(),
        objective,
        gap,
        beta,
    }
}

/// What the judge finds.
pub(crate) struct Judged {
    pub(crate) data_term: f64,
    pub(crate) l1: f64,
    pub(crate) objective: f64,
    /// Relative to the objective.
    pub(crate) gap: f64,
    pub(crate) reconstruction: Array2<f64>,
}

/// Recomputes everything from the definitions: filters wrap around, s = min(1, beta / max |D^T r|).
pub(crate) fn judge(dictionary: &Array4<f64>, x: &Array2<f64>, code: &Code, beta: f64) -> Judged {
    let (h, w) = x.dim();
    let (k, _, fh, fw) = dictionary.dim();
    assert_eq!(code.shape, [k as i64, h as i64, w as i64]);
    let mut reconstruction = Array2::zeros((h, w));
    for (i, (&filter, &value)) in code.filter.iter().zip(&code.value).enumerate() {
        let (py, px) = (code.position[[i, 0]] as usize, code.position[[i, 1]] as usize);
        for dy in 0..fh {
            for dx in 0..fw {
                let d = dictionary[[filter as usize, 0, dy, dx]];
                reconstruction[[(py + dy) % h, (px + dx) % w]] += d * f64::from(value);
            }
        }
    }
    let r = x - &reconstruction;
    let mut largest = 0.0_f64;
    for ((filter, y), x) in (0..k).flat_map(|f| (0..h).map(move |y| (f, y))).flat_map(|p| (0..w).map(move |x| (p, x))) {
        let mut c = 0.0;
        for dy in 0..fh {
            for dx in 0..fw {
                c += dictionary[[filter, 0, dy, dx]] * r[[(y + dy) % h, (x + dx) % w]];
            }
        }
        largest = largest.max(c.abs());
    }
    let data_term = 0.5 * r.iter().map(|v| v * v).sum::<f64>();
    let l1 = code.value.iter().map(|v| f64::from(v.abs())).sum::<f64>();
    let s = if largest > beta { beta / largest } else { 1.0 };
    let dual = s * (x * &r).sum() - s * s * data_term;
    let objective = data_term + beta * l1;
    Judged { data_term, l1, objective, gap: (objective - dual) / objective, reconstruction }
}

#[track_caller]
pub(crate) fn assert_close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * a.abs().max(b.abs()), "{a} and {b} differ by more than {relative}");
}
