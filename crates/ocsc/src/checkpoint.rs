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
//! | tensors | `state.NAME` | the learner's arrays: statistics, the update's variables, kept samples and codes, flat |
//! | metadata | `numbers` | the learner's scalars by name, as JSON |
//! | metadata | `progress` | [`Progress`]: where the run is, as JSON; with `config.seed` it is the whole random state |
//!
//! Files are written to a temporary sibling, flushed to disk and renamed, so that a kill or a full disk leaves the
//! previous file as it was.

use crate::learner::{Learner, learner};
use crate::train::Progress;
use crate::{Config, Dictionary, Error, Real, Result, Shape};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const FORMAT: &str = "ocsc/1";
const STATE: &str = "state.";

/// The saved variables of a learner: flat arrays and scalars by name.
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

    /// Whether there is an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    pub(crate) fn with_array(mut self, name: &str, array: &'a [T]) -> Self {
        self.arrays.insert(name.to_owned(), Cow::Borrowed(array));
        self
    }

    pub(crate) fn with_owned(mut self, name: &str, array: Vec<T>) -> Self {
        self.arrays.insert(name.to_owned(), Cow::Owned(array));
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

    /// Copies exactly as many whole numbers as the target holds.
    pub(crate) fn copy_counts(&self, name: &str, target: &mut [usize]) -> Result<()> {
        let found = self.numbers.get(name).map_or(&[][..], |n| n);
        if found.len() != target.len() || found.iter().any(|n| !(n.is_finite() && *n >= 0.0)) {
            let expected = format!("{} finite numbers from 0 up", target.len());
            return Err(Error::invalid(format!("saved `{name}`"), expected, format!("{found:?}")));
        }
        target.iter_mut().zip(found).for_each(|(t, n)| *t = *n as usize);
        Ok(())
    }

    /// Any number of whole numbers.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<usize>> {
        let mut counts = vec![0; self.numbers.get(name).map_or(0, Vec::len)];
        self.copy_counts(name, &mut counts)?;
        Ok(counts)
    }

    /// An array of any length and of finite numbers.
    pub(crate) fn array(&self, name: &str) -> Result<&[T]> {
        let Some(array) = self.arrays.get(name) else {
            return Err(Error::invalid(format!("saved `{name}`"), "an array", "nothing"));
        };
        match array.iter().find(|v| !v.is_finite()) {
            Some(v) => Err(Error::invalid(format!("saved `{name}`"), "finite numbers", v)),
            None => Ok(array),
        }
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
        target.copy_from_slice(self.array(name)?);
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
    pub fn resume(&self) -> Result<(Box<dyn Learner<T>>, Progress)> {
        self.resume_with(learner)
    }

    /// The same with a learner of the caller's making.
    pub fn resume_with(
        &self,
        learner: impl FnOnce(Config, Dictionary<T>) -> Result<Box<dyn Learner<T>>>,
    ) -> Result<(Box<dyn Learner<T>>, Progress)> {
        let Some(progress) = self.progress else {
            let expected = "a checkpoint (written by an interrupted run, or with --checkpoint-every)";
            return Err(Error::file(&self.path, "model file", expected, "a finished model without statistics"));
        };
        if let Some(other) = self.other_scalar {
            let found = format!("{other:?}").to_lowercase();
            return Err(Error::file(&self.path, "checkpoint", format!("statistics in {}", T::NAME), found));
        }
        let mut learner = learner(self.config.clone(), self.dictionary.clone())?;
        learner.restore(&self.state, progress.step).map_err(|e| e.in_file(&self.path))?;
        Ok((learner, progress))
    }
}

/// Writes a model file; with `progress`, a checkpoint.
pub fn save<T: Real>(path: &Path, learner: &dyn Learner<T>, progress: Option<&Progress>) -> Result<()> {
    let state = progress.map(|progress| (progress, learner.state()));
    replace_model(path, |file| encode(path, learner.config(), learner.dictionary(), state, file))
}

/// Writes a model file of what was learned so far, without a learner.
pub fn save_model<T: Real>(path: &Path, config: &Config, dictionary: &Dictionary<T>) -> Result<()> {
    replace_model(path, |file| encode(path, config, dictionary, None, file))
}

/// Writes a model file with [`replace_file`].
fn replace_model(path: &Path, encode: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut write = None;
    let written = replace_file(path, |temporary| {
        let mut file = BufWriter::new(File::create(temporary)?);
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

/// A model file in memory; with `progress`, a checkpoint.
pub fn to_bytes<T: Real>(learner: &dyn Learner<T>, progress: Option<&Progress>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let state = progress.map(|progress| (progress, learner.state()));
    encode(Path::new("model"), learner.config(), learner.dictionary(), state, &mut bytes)?;
    Ok(bytes)
}

/// Writes the content of a model file, or with a state that of a checkpoint; `path` is for messages.
fn encode<T: Real>(
    path: &Path,
    config: &Config,
    dictionary: &Dictionary<T>,
    state: Option<(&Progress, State<'_, T>)>,
    to: &mut dyn Write,
) -> Result<()> {
    let json = |value: serde_json::Result<String>| {
        value.map_err(|e| Error::file(path, "settings", "values that JSON can hold", e))
    };
    let shape = dictionary.shape();
    let mut axes = vec![dictionary.n_filters(), shape.channels];
    axes.extend(shape.axes(dictionary.rank()));
    let mut tensors = vec![("dictionary".to_owned(), axes, dictionary.data())];
    let mut metadata =
        BTreeMap::from([("format", FORMAT.to_owned()), ("config", json(serde_json::to_string(config))?)]);
    if let Some((progress, state)) = &state {
        metadata.insert("progress", json(serde_json::to_string(progress))?);
        metadata.insert("numbers", json(serde_json::to_string(&state.numbers))?);
        for (name, data) in &state.arrays {
            tensors.push((format!("{STATE}{name}"), vec![data.len()], data));
        }
    }
    // A state that went wrong must not replace the last good one.
    for (name, _, data) in &tensors {
        if let Some(v) = data.iter().find(|v| !v.is_finite()) {
            return Err(Error::file(path, name, "finite numbers to save; the file is left as it was", v));
        }
    }
    let header = json(header(&metadata, &tensors))?;
    let mut write = |bytes: &[u8]| to.write_all(bytes).map_err(|e| Error::io(path, e));
    write(&(header.len() as u64).to_le_bytes())?;
    write(header.as_bytes())?;
    tensors.iter().try_for_each(|(_, _, data)| write(&little_endian(data)))
}

/// The header of a safetensors file with these tensors, one after the other.
///
/// Written here because the crate's own writer orders the metadata at random, and equal runs are to give equal files.
fn header<T: Real>(
    metadata: &BTreeMap<&str, String>,
    tensors: &[(String, Vec<usize>, &[T])],
) -> serde_json::Result<String> {
    let mut text = format!("{{\"__metadata__\":{}", serde_json::to_string(metadata)?);
    let mut end = 0;
    for (name, shape, data) in tensors {
        let start = end;
        end += size_of_val(*data);
        let entry = serde_json::json!({"dtype": T::TENSOR, "shape": shape, "data_offsets": [start, end]});
        text.push_str(&format!(",{}:{entry}", serde_json::to_string(name)?));
    }
    text.push('}');
    // The format aligns the numbers to eight bytes.
    let padding = text.len().next_multiple_of(8) - text.len();
    text.push_str(&" ".repeat(padding));
    Ok(text)
}

/// Writes a file so that others see the old content or the new, whatever happens in between: `fill` is given an empty
/// temporary sibling, which is then flushed to disk and renamed to `path`.
pub fn replace_file<E: From<std::io::Error>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let temporary = temporary_sibling(path)?;
    fill(temporary.path())?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// That [`replace_file`] could write here now: to be asked before hours of work, not after.
pub fn check_writable(path: &Path) -> Result<()> {
    temporary_sibling(path).map(drop).map_err(|e| Error::io(path, e))
}

/// Temporary siblings of `path` are called so: `.model.safetensors.ocsc-`.
fn temporary_prefix(path: &Path) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".ocsc-");
    prefix
}

/// Removes the temporary siblings of `path` that killed runs left behind. To be called by the one run that writes there.
pub fn remove_leftovers(path: &Path) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = temporary_prefix(path);
    let prefix = prefix.as_encoded_bytes();
    // What cannot be listed or removed does no harm.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// An empty file beside `path` under a name of its own, gone when dropped.
fn temporary_sibling(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    use std::io::{Error, ErrorKind};
    let refuse = |kind, why: String| Err(Error::new(kind, format!("cannot be written: {why}")));
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A rename would put a file in the place of a device.
    if path.exists() && !path.is_file() {
        let found = if path.is_dir() { "a folder" } else { "a device or a pipe" };
        return refuse(ErrorKind::InvalidInput, format!("expected a file, found {found}"));
    }
    if !folder.exists() {
        return refuse(ErrorKind::NotFound, format!("the folder {} does not exist", folder.display()));
    }
    let prefix = temporary_prefix(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    // Temporary files are private by default; results are to be as readable as the user's umask allows.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // The kind says why; the name of the temporary file would only confuse.
    builder.tempfile_in(folder).or_else(|e| refuse(e.kind(), e.kind().to_string()))
}

/// Reads a model file, converting its numbers to `T`; only a checkpoint of the same scalar can be resumed.
pub fn load<T: Real>(path: &Path) -> Result<Saved<T>> {
    from_bytes(&std::fs::read(path).map_err(|e| Error::io(path, e))?, path)
}

/// The content of a model file; `path` is what messages call it.
pub fn from_bytes<T: Real>(bytes: &[u8], path: &Path) -> Result<Saved<T>> {
    let wrong = |what: &str, expected: &str, found: &dyn std::fmt::Display| Error::file(path, what, expected, found);
    let file = SafeTensors::deserialize(bytes).map_err(|e| wrong("model file", "safetensors", &e))?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| wrong("model file", "safetensors", &e))?;
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

/// The numbers as a file holds them.
fn little_endian<T: Real>(data: &[T]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(data))
    } else {
        let mut bytes = Vec::with_capacity(size_of_val(data));
        data.iter().for_each(|v| v.write_le(&mut bytes));
        Cow::Owned(bytes)
    }
}
