//! The model file: safetensors, with the dictionary and everything needed to use it on new data.
//!
//! | part | name | what |
//! |---|---|---|
//! | tensor | `dictionary` | (K, C, spatial axes...), f32 or f64 |
//! | metadata | `format` | `ocsc/1` |
//! | metadata | `config` | [`Config`] as JSON |
//! | metadata | `samples` | how many samples it was learned from, a number as text; absent where that is not known, as of streams |
//! | metadata | `checksum`, `sha256` | see `checksum.rs`; a file written before there were checksums has neither |
//!
//! A checkpoint is the same file with what is needed to go on bit for bit:
//!
//! | part | name | what |
//! |---|---|---|
//! | tensors | `state.NAME` | the learner's arrays, flat: statistics, the update's variables, kept samples and codes. Each has its own type: the scalar of the run, f64 for sums that decide something, u32 for indices, u64 for counts, u8 for flags |
//! | metadata | `notes` | what the program that wrote the file wants to know again, as JSON; may be absent |
//! | metadata | `progress` | [`Progress`]: where the run is, as JSON; with `config.seed` it is the whole random state |
//! | metadata | `data` | [`Fingerprint`]: what the run learns from, as JSON, where it is known |
//!
//! Checkpoints from before arrays had types of their own are read too (`old.rs`). Files are replaced as a whole ([`crate::replace`]), so that a kill or a full disk leaves the previous file as it was.

mod checksum;
mod consistent;
mod old;
mod read;

pub use read::read;

use crate::array::Array;
use crate::fingerprint::Fingerprint;
use crate::learner::{Learner, learner};
use crate::real::compiled;
use crate::replace::replace_file;
use crate::state::State;
use crate::text::counted;
use crate::train::Progress;
use crate::{Config, Dictionary, Error, Real, Result, Shape};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const FORMAT: &str = "ocsc/1";
const STATE: &str = "state.";
/// The format allows no longer ones.
const LONGEST_HEADER: u64 = 100_000_000;

/// Holds texts by name that a program keeps in its model files.
pub type Notes = BTreeMap<String, String>;

/// Holds what a program keeps in its checkpoints besides the learner; of finished models, only `samples`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attached {
    /// How many samples the filters were learned from, where that is known.
    pub samples: Option<usize>,
    /// What the run learns from, where that is known.
    pub data: Option<Fingerprint>,
    /// What the program wants to know again.
    pub notes: Notes,
}

/// Holds a model file's content.
#[derive(Clone, Debug)]
pub struct Saved<T: Real> {
    /// The settings it was learned with.
    pub config: Config,
    /// The dictionary.
    pub dictionary: Dictionary<T>,
    /// Where the run was, in a checkpoint.
    pub progress: Option<Progress>,
    /// What the program that wrote the file attached.
    pub attached: Attached,
    /// The checksum of the file, which holds; none in a file written before there were checksums.
    pub checksum: Option<String>,
    /// [`Dictionary::checksum`] of the numbers in the file, whatever `T` is.
    pub dictionary_checksum: String,
    state: State<'static>,
    /// The scalar of the statistics, if it is not `T`.
    other_scalar: Option<Dtype>,
    path: PathBuf,
}

impl<T: Real> Saved<T> {
    /// Returns true if learning can go on from here.
    pub fn is_checkpoint(&self) -> bool {
        self.progress.is_some()
    }

    /// Refuses a finished model, and returns where the run of a checkpoint was.
    pub fn check_resumable(&self) -> Result<Progress> {
        self.progress.ok_or_else(|| {
            let expected = "a checkpoint, as runs write that are not finished";
            Error::file(&self.path, "model file", expected, "a finished model without statistics")
        })
    }

    /// Makes a learner that goes on where the checkpoint was written.
    pub fn resume(&self) -> Result<(Box<dyn Learner<T>>, Progress)> {
        self.resume_with(learner)
    }

    /// Makes a learner as [`Saved::resume`] does, from one of the caller's making.
    pub fn resume_with(
        &self,
        learner: impl FnOnce(Config, Dictionary<T>) -> Result<Box<dyn Learner<T>>>,
    ) -> Result<(Box<dyn Learner<T>>, Progress)> {
        let progress = self.check_resumable()?;
        if let Some(other) = self.other_scalar {
            let found = format!("{other:?}").to_lowercase();
            return Err(Error::file(&self.path, "checkpoint", format!("statistics in {}", T::NAME), found));
        }
        if progress.step > 0 && self.state.is_empty() {
            let found = format!("{} and none", counted(progress.step, "step"));
            return Err(Error::file(&self.path, "checkpoint", "statistics", found));
        }
        let mut learner = learner(self.config.obeyed(), self.dictionary.clone())?;
        learner.restore(&self.state, progress.step).map_err(|e| e.in_file(&self.path))?;
        // Batch methods, whose state is made anew, count what they keep themselves.
        if !self.config.method.is_batch() {
            self.state.check_names(&learner.state(), self.config.method).map_err(|e| e.in_file(&self.path))?;
        }
        Ok((learner, progress))
    }
}

/// Writes a model file; with `progress`, a checkpoint.
pub fn save<T: Real>(path: &Path, learner: &dyn Learner<T>, progress: Option<&Progress>) -> Result<()> {
    save_attaching(path, learner, progress, &Attached::default())
}

/// Writes a model file as [`save`] does, with what the caller attaches, which [`Saved`] gives back.
pub fn save_attaching<T: Real>(
    path: &Path,
    learner: &dyn Learner<T>,
    progress: Option<&Progress>,
    attached: &Attached,
) -> Result<()> {
    let state = progress.map(|progress| (progress, learner.state(), attached));
    replace_model(path, |file| encode(path, learner.config(), learner.dictionary(), attached.samples, state, file))
}

/// Writes a model file of what was learned so far, without a learner, from so many samples if that is known.
pub fn save_model<T: Real>(
    path: &Path,
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: Option<usize>,
) -> Result<()> {
    replace_model(path, |file| encode(path, config, dictionary, samples, None, file))
}

/// Writes a model file with [`replace_file`].
fn replace_model(path: &Path, encode: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut write = None;
    let written = replace_file(path, |file| {
        let mut file = BufWriter::new(file);
        match encode(&mut file) {
            Err(Error::Io { source, .. }) => return Err(source),
            Err(error) => {
                // The temporary file is given up by any error; this one is told instead of it.
                write = Some(error);
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            Ok(()) => {}
        }
        file.flush()
    });
    written.map_err(|e| write.unwrap_or_else(|| Error::io(path, e)))
}

/// Makes a model file in memory; with `progress`, a checkpoint.
pub fn to_bytes<T: Real>(learner: &dyn Learner<T>, progress: Option<&Progress>) -> Result<Vec<u8>> {
    to_bytes_attaching(learner, progress, &Attached::default())
}

/// Makes a model file in memory as [`to_bytes`] does, with what the caller attaches.
pub fn to_bytes_attaching<T: Real>(
    learner: &dyn Learner<T>,
    progress: Option<&Progress>,
    attached: &Attached,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let state = progress.map(|progress| (progress, learner.state(), attached));
    let (config, dictionary) = (learner.config(), learner.dictionary());
    encode(Path::new("model"), config, dictionary, attached.samples, state, &mut bytes)?;
    Ok(bytes)
}

compiled! {
    /// Writes the content of a model file, or with a state that of a checkpoint; `path` is for messages.
    fn encode<T>(
        path: &Path,
        config: &Config,
        dictionary: &Dictionary<T>,
        samples: Option<usize>,
        state: Option<(&Progress, State<'_>, &Attached)>,
        to: &mut dyn Write,
    ) -> Result<()> = write_model;
}

fn write_model<T: Real>(
    path: &Path,
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: Option<usize>,
    state: Option<(&Progress, State<'_>, &Attached)>,
    to: &mut dyn Write,
) -> Result<()> {
    let json = |value: serde_json::Result<String>| {
        value.map_err(|e| Error::file(path, "settings", "values that JSON can hold", e))
    };
    let shape = dictionary.shape();
    let mut axes = vec![dictionary.n_filters(), shape.channels];
    axes.extend(shape.axes(dictionary.rank()));
    let mut tensors = vec![("dictionary".to_owned(), axes, T::array(dictionary.data().into()))];
    let mut metadata =
        BTreeMap::from([("format", FORMAT.to_owned()), ("config", json(serde_json::to_string(config))?)]);
    metadata.insert(checksum::MARK.0, checksum::MARK.1.to_owned());
    metadata.insert(checksum::DIGITS, checksum::zeros());
    metadata.extend(samples.map(|samples| ("samples", samples.to_string())));
    if let Some((progress, state, attached)) = state {
        metadata.insert("progress", json(serde_json::to_string(progress))?);
        if let Some(data) = &attached.data {
            metadata.insert("data", json(serde_json::to_string(data))?);
        }
        if !attached.notes.is_empty() {
            metadata.insert("notes", json(serde_json::to_string(&attached.notes))?);
        }
        let states = state.into_arrays().map(|(name, array)| (format!("{STATE}{name}"), vec![array.len()], array));
        tensors.extend(states);
        // Wide numbers first, so that all are aligned.
        tensors.sort_by_key(|(_, _, array)| Reverse(array.dtype().bitsize()));
    }
    // A state that went wrong must not replace the last good one.
    for (name, _, array) in &tensors {
        if let Some(v) = array.not_finite() {
            return Err(Error::file(path, name, "finite numbers to save; the file is left as it was", v));
        }
    }
    let mut header = json(header(&metadata, &tensors))?;
    checksum::seal(&mut header, tensors.iter().map(|(_, _, array)| array.bytes()));
    let mut write = |bytes: &[u8]| to.write_all(bytes).map_err(|e| Error::io(path, e));
    write(&(header.len() as u64).to_le_bytes())?;
    write(header.as_bytes())?;
    tensors.iter().try_for_each(|(_, _, array)| write(&array.bytes()))
}

/// The header of a safetensors file with these tensors, one after the other.
///
/// Written here because the crate's own writer orders the metadata at random, and equal runs are to give equal files.
fn header(
    metadata: &BTreeMap<&str, String>,
    tensors: &[(String, Vec<usize>, Array<'_>)],
) -> serde_json::Result<String> {
    let mut text = format!("{{\"__metadata__\":{}", serde_json::to_string(metadata)?);
    let mut end = 0;
    for (name, shape, array) in tensors {
        let start = end;
        end += array.bytes().len();
        let entry = serde_json::json!({"dtype": array.dtype(), "shape": shape, "data_offsets": [start, end]});
        text.push_str(&format!(",{}:{entry}", serde_json::to_string(name)?));
    }
    text.push('}');
    // The format aligns the numbers to eight bytes.
    let padding = text.len().next_multiple_of(8) - text.len();
    text.push_str(&" ".repeat(padding));
    Ok(text)
}

/// Reads a model file, converting its numbers to `T`; only a checkpoint of the same scalar can be resumed.
pub fn load<T: Real>(path: &Path) -> Result<Saved<T>> {
    from_bytes(&read(path)?, path)
}

/// Returns where the run of a checkpoint was, and its settings; none for files of any other kind. Only the header is read.
pub fn peek(path: &Path) -> std::io::Result<Option<(Progress, Config)>> {
    let mut file = std::fs::File::open(path)?;
    let mut length = Vec::new();
    Read::by_ref(&mut file).take(8).read_to_end(&mut length)?;
    let Ok(length) = length.try_into().map(u64::from_le_bytes) else { return Ok(None) };
    let mut header = Vec::new();
    if length <= LONGEST_HEADER {
        file.take(length).read_to_end(&mut header)?;
    }
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap_or_default();
    let metadata = |name: &str| header["__metadata__"][name].as_str().unwrap_or_default();
    let found = (serde_json::from_str(metadata("progress")), serde_json::from_str(metadata("config")));
    Ok(if let (Ok(progress), Ok(config)) = found { Some((progress, config)) } else { None })
}

compiled! {
    /// Reads the content of a model file; `path` is what messages call it.
    pub fn from_bytes<T>(bytes: &[u8], path: &Path) -> Result<Saved<T>> = read_model;
}

fn read_model<T: Real>(bytes: &[u8], path: &Path) -> Result<Saved<T>> {
    let wrong = |what: &str, expected: &str, found: &dyn std::fmt::Display| Error::file(path, what, expected, found);
    let file = SafeTensors::deserialize(bytes).map_err(|e| wrong("model file", "safetensors", &e))?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| wrong("model file", "safetensors", &e))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let checksum = checksum::check(path, bytes, &metadata)?;
    match metadata.get("format").map(String::as_str) {
        Some(FORMAT) => {}
        Some(other) => return Err(wrong("format", FORMAT, &other)),
        None => return Err(wrong("format", FORMAT, &"safetensors without the metadata of a model")),
    }
    let text = metadata.get("config").map_or("{}", |c| c);
    let config: Config = serde_json::from_str(text).map_err(|e| wrong("config", "the settings of a model", &e))?;
    config.validate_values().map_err(|e| e.in_file(path))?;

    let tensor = file.tensor("dictionary").map_err(|e| wrong("dictionary", "a tensor (K, C, spatial axes...)", &e))?;
    let [n_filters, channels, axes @ ..] = tensor.shape() else {
        let found = format!("{:?}", tensor.shape());
        return Err(wrong("dictionary", "a tensor (K, C, spatial axes...)", &found));
    };
    let shape = Shape::from_axes(*channels, axes).map_err(|e| e.in_file(path))?;
    consistent::dictionary(text, *n_filters, axes).map_err(|e| e.in_file(path))?;
    let data = numbers(path, "dictionary", &tensor)?;
    let dictionary = Dictionary::new(*n_filters, shape, axes.len(), data).map_err(|e| e.in_file(path))?;
    let stored = Dictionary::<f64>::new(*n_filters, shape, axes.len(), numbers(path, "dictionary", &tensor)?);
    let dictionary_checksum = stored.map_err(|e| e.in_file(path))?.checksum();

    let progress = metadata.get("progress").map(|p| serde_json::from_str(p)).transpose();
    let progress = progress.map_err(|e| wrong("progress", "the position of a checkpoint", &e))?;
    let numbers = metadata.get("numbers").map(|n| serde_json::from_str(n)).transpose();
    let numbers = numbers.map_err(|e| wrong("numbers", "scalars by name", &e))?;
    let scalar = scalar(&file);
    let other_scalar = scalar.filter(|scalar| *scalar != T::TENSOR);
    let state = if other_scalar.is_some() { State::default() } else { state::<T>(&file, numbers, path)? };
    let notes = metadata.get("notes").map_or(Ok(Notes::new()), |notes| serde_json::from_str(notes));
    let notes = notes.map_err(|e| wrong("notes", "texts by name", &e))?;
    let data = metadata.get("data").map(|d| serde_json::from_str(d)).transpose();
    let data = data.map_err(|e| wrong("data", "what a run learned from", &e))?;
    let samples = metadata.get("samples").map(|samples| samples.parse()).transpose();
    let samples = samples.map_err(|e| wrong("samples", "the number of samples that were learned from", &e))?;
    if let Some(progress) = &progress {
        let scalar = scalar.filter(|_| checksum.is_some());
        consistent::checkpoint(progress, &config, scalar).map_err(|e| e.in_file(path))?;
    }
    let path = path.to_owned();
    let attached = Attached { samples, data, notes };
    Ok(Saved { config, dictionary, progress, attached, checksum, dictionary_checksum, state, other_scalar, path })
}

/// Returns the scalar of a file's statistics. Runs in f64 hold no f32; those in f32 hold it in some array, and f64 in others.
fn scalar(file: &SafeTensors<'_>) -> Option<Dtype> {
    let is_there = |dtype: &Dtype| file.iter().any(|(name, t)| name.starts_with(STATE) && t.dtype() == *dtype);
    [Dtype::F32, Dtype::F64].into_iter().find(is_there)
}

/// Reads the saved variables of a learner; `numbers` are the scalars of an old file.
fn state<T: Real>(file: &SafeTensors<'_>, numbers: Option<old::Numbers>, path: &Path) -> Result<State<'static>> {
    let mut state = State::default();
    for (name, tensor) in file.iter() {
        let Some(name) = name.strip_prefix(STATE) else { continue };
        let Some(array) = Array::read(tensor.dtype(), tensor.data()) else {
            let found = format!("{:?}", tensor.dtype());
            return Err(Error::file(path, name, "numbers in f32, f64, u8, u32 or u64", found));
        };
        state.insert(name, array);
    }
    match numbers {
        Some(numbers) => old::upgraded::<T>(state, numbers).map_err(|e| e.in_file(path)),
        None => Ok(state),
    }
}

/// Returns a tensor's numbers as `T`.
fn numbers<T: Real>(path: &Path, name: &str, tensor: &TensorView<'_>) -> Result<Vec<T>> {
    match Array::read(tensor.dtype(), tensor.data()) {
        Some(Array::F32(values)) => Ok(values.iter().map(|v| T::of(f64::from(*v))).collect()),
        Some(Array::F64(values)) => Ok(values.iter().map(|v| T::of(*v)).collect()),
        _ => Err(Error::file(path, name, "numbers in f32 or f64", format!("{:?}", tensor.dtype()))),
    }
}
