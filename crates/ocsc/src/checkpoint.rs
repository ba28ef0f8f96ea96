//! The model file: safetensors, with the dictionary and everything needed to use it on new data.
//!
//! | part | name | what |
//! |---|---|---|
//! | tensor | `dictionary` | (K, C, spatial axes...), f32 or f64 |
//! | metadata | `format` | `ocsc/1` |
//! | metadata | `config` | [`Config`] as JSON |
//!
//! A checkpoint is the same file with what is needed to go on bit for bit:
//!
//! | part | name | what |
//! |---|---|---|
//! | tensors | `state.NAME` | the statistics and the update's variables, flat |
//! | metadata | `numbers` | the update's scalars by name, as JSON |
//! | metadata | `progress` | [`Progress`]: where the run is, as JSON; with `config.seed` it is the whole random state |
//!
//! Files are written to a temporary sibling, flushed to disk and renamed, so that a kill or a full disk leaves the
//! previous file as it was.

use crate::train::Progress;
use crate::{Config, Dictionary, Error, Online, Real, Result, Shape};
use safetensors::tensor::{TensorView, View};
use safetensors::{Dtype, SafeTensors};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const FORMAT: &str = "ocsc/1";
const STATE: &str = "state.";

/// The saved variables of an update: flat arrays and scalars by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State<'a, T: Clone> {
    arrays: BTreeMap<String, Cow<'a, [T]>>,
    numbers: BTreeMap<String, Vec<f64>>,
}

impl<'a, T: Real> State<'a, T> {
    /// True if there is nothing to restore.
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.numbers.is_empty()
    }

    pub(crate) fn with_array(mut self, name: &str, array: &'a [T]) -> Self {
        self.arrays.insert(name.to_owned(), Cow::Borrowed(array));
        self
    }

    pub(crate) fn with_numbers(mut self, name: &str, numbers: &[f64]) -> Self {
        self.numbers.insert(name.to_owned(), numbers.to_vec());
        self
    }

    /// Exactly N scalars, none negative.
    pub(crate) fn numbers<const N: usize>(&self, name: &str) -> Result<[f64; N]> {
        let found = self.numbers.get(name).map_or(&[][..], |n| n);
        let wrong =
            || Error::invalid(format!("saved `{name}`"), format!("{N} finite numbers from 0 up"), format!("{found:?}"));
        let numbers: [f64; N] = found.try_into().map_err(|_| wrong())?;
        if numbers.iter().all(|n| n.is_finite() && *n >= 0.0) { Ok(numbers) } else { Err(wrong()) }
    }

    /// That an array is there with exactly this length.
    pub(crate) fn check_len(&self, name: &str, len: usize) -> Result<()> {
        match self.arrays.get(name) {
            Some(array) if array.len() == len => Ok(()),
            Some(array) => Err(Error::invalid(format!("saved `{name}`"), format!("{len} numbers"), array.len())),
            None => Err(Error::invalid(format!("saved `{name}`"), format!("{len} numbers"), "nothing")),
        }
    }

    /// Copies an array of exactly the target's length and of finite numbers.
    pub(crate) fn copy_array(&self, name: &str, target: &mut [T]) -> Result<()> {
        self.check_len(name, target.len())?;
        let array = &self.arrays[name];
        if let Some(v) = array.iter().find(|v| !v.is_finite()) {
            return Err(Error::invalid(format!("saved `{name}`"), "finite numbers", v));
        }
        target.copy_from_slice(array);
        Ok(())
    }
}

/// A model file's content.
#[derive(Clone, Debug)]
pub struct Saved<T: Real> {
    /// The settings it was learned with.
    pub config: Config,
    /// The dictionary.
    pub dictionary: Dictionary<T>,
    /// Where the run was, in a checkpoint.
    pub progress: Option<Progress>,
    state: State<'static, T>,
    /// The scalar of the statistics, if it is not `T`.
    other_scalar: Option<Dtype>,
    path: PathBuf,
}

impl<T: Real> Saved<T> {
    /// True if learning can go on from here.
    pub fn is_checkpoint(&self) -> bool {
        self.progress.is_some()
    }

    /// A learner that goes on where the checkpoint was written.
    pub fn resume(&self) -> Result<(Online<T>, Progress)> {
        let Some(progress) = self.progress else {
            let expected = "a checkpoint (written by an interrupted run, or with --checkpoint-every)";
            return Err(Error::file(&self.path, "model file", expected, "a finished model without statistics"));
        };
        if let Some(other) = self.other_scalar {
            let found = format!("{other:?}").to_lowercase();
            return Err(Error::file(&self.path, "checkpoint", format!("statistics in {}", T::NAME), found));
        }
        let mut learner = Online::with_dictionary(self.config.clone(), self.dictionary.clone())?;
        learner.restore(&self.state, progress.step).map_err(|e| e.in_file(&self.path))?;
        Ok((learner, progress))
    }
}

/// Writes a model file; with `progress`, a checkpoint.
pub fn save<T: Real>(path: &Path, learner: &Online<T>, progress: Option<&Progress>) -> Result<()> {
    let json = |value: serde_json::Result<String>| {
        value.map_err(|e| Error::file(path, "settings", "values that JSON can hold", e))
    };
    let dictionary = learner.dictionary();
    let shape = dictionary.shape();
    let mut axes = vec![dictionary.n_filters(), shape.channels];
    axes.extend(shape.axes(dictionary.rank()));
    let mut tensors = vec![("dictionary".to_owned(), Flat { data: dictionary.data(), shape: axes })];
    let mut metadata = HashMap::from([
        ("format".to_owned(), FORMAT.to_owned()),
        ("config".to_owned(), json(serde_json::to_string(learner.config()))?),
    ]);
    let state = learner.state();
    if let Some(progress) = progress {
        metadata.insert("progress".to_owned(), json(serde_json::to_string(progress))?);
        metadata.insert("numbers".to_owned(), json(serde_json::to_string(&state.numbers))?);
        for (name, data) in &state.arrays {
            tensors.push((format!("{STATE}{name}"), Flat { data, shape: vec![data.len()] }));
        }
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::NamedTempFile::new_in(folder).map_err(|e| Error::io(path, e))?;
    safetensors::serialize_to_file(tensors, Some(metadata), temporary.path())
        .map_err(|e| Error::io(path, std::io::Error::other(e)))?;
    // Opened anew: safetensors put another file in the place of the one that was created above.
    let file = File::options().read(true).write(true).open(temporary.path()).map_err(|e| Error::io(path, e))?;
    sort_header(&file).map_err(|e| Error::io(path, e))?;
    file.sync_all().map_err(|e| Error::io(path, e))?;
    temporary.persist(path).map_err(|e| Error::io(path, e.error))?;
    Ok(())
}

/// Sorts the header's entries, which come out of a hash map, so that the same model is the same bytes.
fn sort_header(mut file: &File) -> std::io::Result<()> {
    let mut len = [0; 8];
    file.rewind()?;
    file.read_exact(&mut len)?;
    let mut header = vec![0; u64::from_le_bytes(len) as usize];
    file.read_exact(&mut header)?;
    let entries: BTreeMap<String, BTreeMap<String, serde_json::Value>> = serde_json::from_slice(&header)?;
    let mut sorted = serde_json::to_vec(&entries)?;
    // The same entries in compact form: the rest is the padding that was there before.
    sorted.resize(header.len(), b' ');
    file.seek(SeekFrom::Start(len.len() as u64))?;
    file.write_all(&sorted)
}

/// Reads a model file, converting its numbers to `T`; only a checkpoint of the same scalar can be resumed.
pub fn load<T: Real>(path: &Path) -> Result<Saved<T>> {
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    let wrong = |what: &str, expected: &str, found: &dyn std::fmt::Display| Error::file(path, what, expected, found);
    let file = SafeTensors::deserialize(&bytes).map_err(|e| wrong("model file", "safetensors", &e))?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| wrong("model file", "safetensors", &e))?;
    let metadata = header.metadata().clone().unwrap_or_default();
    match metadata.get("format").map(String::as_str) {
        Some(FORMAT) => {}
        Some(other) => return Err(wrong("format", FORMAT, &other)),
        None => return Err(wrong("format", FORMAT, &"safetensors without the metadata of a model")),
    }
    let config = metadata.get("config").map_or("{}", |c| c);
    let config: Config = serde_json::from_str(config).map_err(|e| wrong("config", "the settings of a model", &e))?;
    config.validate().map_err(|e| e.in_file(path))?;

    let tensor = file.tensor("dictionary").map_err(|e| wrong("dictionary", "a tensor (K, C, spatial axes...)", &e))?;
    let [n_filters, channels, axes @ ..] = tensor.shape() else {
        let found = format!("{:?}", tensor.shape());
        return Err(wrong("dictionary", "a tensor (K, C, spatial axes...)", &found));
    };
    let shape = Shape::from_axes(*channels, axes).map_err(|e| e.in_file(path))?;
    let data = numbers(path, "dictionary", &tensor)?;
    let dictionary = Dictionary::new(*n_filters, shape, axes.len(), data).map_err(|e| e.in_file(path))?;

    let mut state = State::default();
    let mut other_scalar = None;
    for (name, tensor) in file.iter() {
        match name.strip_prefix(STATE) {
            Some(name) if tensor.dtype() == T::TENSOR => {
                state.arrays.insert(name.to_owned(), Cow::Owned(numbers(path, name, &tensor)?));
            }
            Some(_) => other_scalar = Some(tensor.dtype()),
            None => {}
        }
    }
    let progress = metadata.get("progress").map(|p| serde_json::from_str(p)).transpose();
    let progress = progress.map_err(|e| wrong("progress", "the position of a checkpoint", &e))?;
    if let Some(numbers) = metadata.get("numbers") {
        state.numbers = serde_json::from_str(numbers).map_err(|e| wrong("numbers", "scalars by name", &e))?;
    }
    Ok(Saved { config, dictionary, progress, state, other_scalar, path: path.to_owned() })
}

/// A tensor's numbers as `T`.
fn numbers<T: Real>(path: &Path, name: &str, tensor: &TensorView<'_>) -> Result<Vec<T>> {
    // Copied number by number: a file gives no alignment.
    let f32_at = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    let f64_at = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    match tensor.dtype() {
        Dtype::F32 => Ok(tensor.data().chunks_exact(4).map(|b| T::of(f64::from(f32_at(b)))).collect()),
        Dtype::F64 => Ok(tensor.data().chunks_exact(8).map(|b| T::of(f64_at(b))).collect()),
        other => Err(Error::file(path, name, "numbers in f32 or f64", format!("{other:?}"))),
    }
}

/// Borrowed numbers as a tensor.
struct Flat<'a, T> {
    data: &'a [T],
    shape: Vec<usize>,
}

impl<T: Real> View for Flat<'_, T> {
    fn dtype(&self) -> Dtype {
        T::TENSOR
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        if cfg!(target_endian = "little") {
            Cow::Borrowed(bytemuck::cast_slice(self.data))
        } else {
            let mut bytes: Vec<u8> = bytemuck::cast_slice(self.data).to_vec();
            bytes.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
            Cow::Owned(bytes)
        }
    }
    fn data_len(&self) -> usize {
        size_of_val(self.data)
    }
}
