//! The MATLAB level 5 `.mat` format: named variables, each an element of tagged sub-elements, deflated or not.
//!
//! Own code rather than the crate `matfile`, which inflates without a bound, multiplies dimensions without a check and
//! passes over what it cannot read, so that a message could not name it. This reads the header of every variable, then
//! the one that is wanted: an uncompressed one stays on disk, a compressed one is inflated into memory. Numbers are
//! column-major, so (H, W, N) holds sample after sample.
//!
//! Layout (MathWorks, "MAT-File Format"): 128 bytes of header that end in the version and `IM` or `MI`; then elements
//! of an 8-byte tag (type, length) and data padded to 8 bytes. A matrix has sub-elements flags, dimensions, name, real
//! part. An element of up to 4 bytes may be packed into its own tag.

use super::array::{Array, Dtype, Layout, Storage};
use super::axes::show_shape;
use super::npz::MAX_INFLATION;
use crate::memory::Limit;
use anyhow::{Context, Result, anyhow, bail, ensure};
use flate2::read::ZlibDecoder;
use ocsc::file;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const HEADER: usize = 128;
const MI_MATRIX: u32 = 14;
const MI_COMPRESSED: u32 = 15;
/// Flags, 32 dimensions and a name of 500 letters fit; MATLAB's longest name has 63.
const VARIABLE_HEADER: u64 = 1024;
/// More axes than any array of samples; MATLAB sets no limit.
const MAX_RANK: usize = 32;

/// Opens the variable called `pick`; without it the sole usable one, or the one called `b` as the paper's authors do.
/// Logical variables are for masks, and preferred there. What is inflated must fit the limit.
pub(crate) fn open(path: &Path, pick: Option<&str>, is_mask: bool, limit: Limit) -> Result<Array> {
    let mut file = file::open(path)?;
    let big_endian = check_header(&mut file)?;
    let variables = scan(&mut file, big_endian)?;
    let listing = || variables.iter().map(Variable::describe).collect::<Vec<_>>().join(", ");
    let shown = path.display();
    let is_logical = |v: &&Variable| v.kind == Ok(Dtype::Bool);
    let prefer_logical = is_mask && variables.iter().any(|v| is_logical(&v));
    let usable: Vec<&Variable> =
        variables.iter().filter(|v| v.kind.is_ok() && is_logical(v) == prefer_logical).collect();
    let variable = match (pick, &usable[..]) {
        (Some(name), _) => {
            let found = variables.iter().find(|v| v.name == name);
            found.with_context(|| format!("no variable called `{name}`; the file holds {}", listing()))?
        }
        (None, [sole]) => sole,
        (None, []) if variables.is_empty() => bail!("the file holds no variables; expected a numeric array"),
        (None, []) => bail!("no variable is a dense array of real numbers; the file holds {}", listing()),
        (None, several) => several
            .iter()
            .find(|v| v.name == "b")
            .with_context(|| format!("the file holds several arrays: {}; pick one as `{shown}:NAME`", listing()))?,
    };
    variable.load(path, &mut file, big_endian, limit).with_context(|| format!("variable `{}`", variable.name))
}

/// The texts in the cell array called `name`.
pub(crate) fn texts(path: &Path, name: &str, limit: Limit) -> Result<Vec<String>> {
    let mut file = file::open(path)?;
    let big_endian = check_header(&mut file)?;
    let variables = scan(&mut file, big_endian)?;
    let listing = || variables.iter().map(Variable::describe).collect::<Vec<_>>().join(", ");
    let variable = variables.iter().find(|v| v.name == name && v.cells);
    let variable = variable.with_context(|| format!("no cell array called `{name}`; the file holds {}", listing()))?;
    let (bytes, from) = variable.bytes(&mut file, limit).with_context(|| format!("variable `{name}`"))?;
    let mut cursor = Cursor { bytes: &bytes, at: from, big_endian };
    let mut texts = Vec::new();
    while cursor.at < bytes.len() {
        let tag = cursor.tag()?;
        let cell = Cursor { bytes: cursor.take(tag.len as usize)?, at: 0, big_endian };
        let text = if tag.kind == MI_MATRIX { text(cell) } else { Err(anyhow!("not a cell")) };
        texts.push(text.with_context(|| format!("variable `{name}`, cell {}", texts.len() + 1))?);
    }
    Ok(texts)
}

/// The text in a cell.
fn text(mut cell: Cursor<'_>) -> Result<String> {
    let flags = cell.element()?;
    ensure!(cell.u32_of(flags) & 0xff == 4, "expected text, found something else");
    let (_dimensions, _name) = (cell.element()?, cell.element()?);
    let tag = cell.tag()?;
    let bytes = cell.take(tag.len as usize)?;
    Ok(match tag.kind {
        1 | 2 | 16 => String::from_utf8_lossy(bytes).into_owned(),
        4 | 17 => {
            let unit = |b: &[u8]| {
                if cell.big_endian { u16::from_be_bytes([b[0], b[1]]) } else { u16::from_le_bytes([b[0], b[1]]) }
            };
            String::from_utf16_lossy(&bytes.chunks_exact(2).map(unit).collect::<Vec<_>>())
        }
        other => bail!("text of the unknown type {other}"),
    })
}

/// Checks the first 128 bytes, and returns the order of bytes.
fn check_header(file: &mut File) -> Result<bool> {
    let mut start = Vec::new();
    file.by_ref().take(HEADER as u64).read_to_end(&mut start)?;
    ensure!(!start.is_empty(), "the file is empty; expected a MATLAB level 5 .mat file");
    let resave = "save it again with save('file.mat', '-v7', 'b') (with the names of your file and variable)";
    if start.starts_with(b"MATLAB 7.3") || start.starts_with(b"\x89HDF\r\n") {
        bail!("a .mat file of version 7.3 (HDF5); expected level 5: {resave}");
    }
    if start.starts_with(b"# Created by Octave") || start.starts_with(b"Octave-1") {
        bail!("a file in Octave's own format; expected MATLAB level 5: {resave}");
    }
    match start.get(HEADER - 2..HEADER) {
        Some(b"IM") => Ok(false),
        Some(b"MI") => Ok(true),
        Some(_) => bail!("not a MATLAB level 5 .mat file (level 4, or another kind of file); {resave}"),
        None => bail!("only {} bytes; expected a MATLAB level 5 .mat file: the file is truncated", start.len()),
    }
}

/// A variable as its header describes it.
struct Variable {
    name: String,
    shape: Vec<usize>,
    /// The numbers' type, or why the variable is of no use.
    kind: Result<Dtype, String>,
    /// Where the matrix's bytes start: in the file, or after the tag of what the compressed element inflates to.
    at: u64,
    /// The length of the compressed element; none for a plain one.
    packed: Option<u64>,
    /// Where, within the matrix, the numbers or cells lie.
    data: (u64, u64),
    /// Whether it is a cell array.
    cells: bool,
}

/// Reads the headers of all named variables.
fn scan(file: &mut File, big_endian: bool) -> Result<Vec<Variable>> {
    let len = file.metadata()?.len();
    let mut variables = Vec::new();
    let mut at = HEADER as u64;
    while at < len {
        file.seek(SeekFrom::Start(at))?;
        let mut start = Vec::new();
        file.by_ref().take(8).read_to_end(&mut start)?;
        let tag = Cursor { bytes: &start, at: 0, big_endian }.tag().context("the file is truncated")?;
        let payload = at + 8;
        let truncated = format!("an element of {} bytes at byte {at}, but only {len} in all; truncated", tag.len);
        ensure!(tag.len <= len - payload.min(len), truncated);
        let packed = (tag.kind == MI_COMPRESSED).then_some(tag.len);
        if packed.is_some() || tag.kind == MI_MATRIX {
            let mut header = Vec::new();
            let element = file.by_ref().take(tag.len);
            let mut inner_len = tag.len;
            if packed.is_some() {
                ZlibDecoder::new(element)
                    .take(8 + VARIABLE_HEADER)
                    .read_to_end(&mut header)
                    .with_context(|| format!("the element at byte {at} cannot be unpacked; the file is damaged"))?;
                let inner = Cursor { bytes: &header, at: 0, big_endian }.tag().context("a truncated element")?;
                ensure!(inner.kind == MI_MATRIX, "an element of type {} within a compressed one", inner.kind);
                header.drain(..8);
                inner_len = inner.len;
            } else {
                element.take(VARIABLE_HEADER).read_to_end(&mut header)?;
            }
            let variable = variable(Cursor { bytes: &header, at: 0, big_endian }, inner_len, payload, packed)
                .with_context(|| format!("the variable at byte {at} is damaged"))?;
            // Unnamed matrices are MATLAB's own (the workspace of function handles).
            variables.extend(variable.filter(|v| !v.name.is_empty()));
        }
        // Only compressed elements follow each other without padding.
        at = payload + if packed.is_some() { tag.len } else { tag.len.next_multiple_of(8) };
    }
    Ok(variables)
}

/// Reads the header of one matrix of `len` bytes; none if it is empty, as MATLAB writes for absent cells.
fn variable(mut cursor: Cursor<'_>, len: u64, at: u64, packed: Option<u64>) -> Result<Option<Variable>> {
    if len == 0 {
        return Ok(None);
    }
    let flags = cursor.element()?;
    ensure!(flags.len() == 8, "its flags take {} bytes, not 8", flags.len());
    let flags = cursor.u32_of(flags);
    let class = flags & 0xff;
    // Opaque objects (tables, strings) have no dimensions; only their names are of interest.
    let dimensions: &[u8] = if class == 17 { &[] } else { cursor.element()? };
    let shape = dimensions.chunks_exact(4).map(|b| cursor.u32_of(b) as usize).collect::<Vec<_>>();
    ensure!(shape.len() <= MAX_RANK, "{} dimensions, at most {MAX_RANK} are read", shape.len());
    ensure!(shape.iter().all(|&n| i32::try_from(n).is_ok()), "a negative length in {}", show_shape(&shape));
    let name = String::from_utf8_lossy(cursor.element()?).into_owned();
    let data = (cursor.at as u64, len.saturating_sub(cursor.at as u64));
    let mut variable = Variable { name, shape, kind: Err("an object".into()), at, packed, data, cells: class == 1 };
    variable.kind = match class {
        1 => Err("a cell array".into()),
        2 => Err("a struct".into()),
        4 => Err("text".into()),
        5 => Err("sparse; use full(...)".into()),
        6..=15 if flags & 0x0800 != 0 => Err("complex; use real(...) or abs(...)".into()),
        6..=15 => {
            let tag = cursor.tag()?;
            variable.data = (cursor.at as u64, tag.len);
            ensure!(variable.data.0.saturating_add(tag.len) <= len, "its numbers reach past its end");
            let dtype = numeric(tag.kind).with_context(|| format!("numbers of the unknown type {}", tag.kind))?;
            Ok(if flags & 0x0200 != 0 && dtype == Dtype::U8 { Dtype::Bool } else { dtype })
        }
        _ => Err("an object".into()),
    };
    Ok(Some(variable))
}

/// The number types of the format.
fn numeric(kind: u32) -> Option<Dtype> {
    Some(match kind {
        1 => Dtype::I8,
        2 => Dtype::U8,
        3 => Dtype::I16,
        4 => Dtype::U16,
        5 => Dtype::I32,
        6 => Dtype::U32,
        7 => Dtype::F32,
        9 => Dtype::F64,
        12 => Dtype::I64,
        13 => Dtype::U64,
        _ => return None,
    })
}

impl Variable {
    /// `b (100, 100, 10)`, or `s (a struct)`.
    fn describe(&self) -> String {
        match &self.kind {
            Ok(Dtype::Bool) => format!("{} (logical)", self.name),
            Ok(_) => format!("{} {}", self.name, show_shape(&self.shape)),
            Err(why) => format!("{} ({why})", self.name),
        }
    }

    fn load(&self, path: &Path, file: &mut File, big_endian: bool, limit: Limit) -> Result<Array> {
        let dtype = match &self.kind {
            Ok(dtype) => *dtype,
            Err(why) => bail!("expected a dense array of real numbers, found {why}"),
        };
        let layout = Layout { dtype, big_endian, fortran: true, shape: self.shape.clone() };
        let (from, len) = self.data;
        if self.packed.is_none() {
            return Array::new(layout, Storage::File(path.to_owned(), self.at + from), len);
        }
        let (bytes, from) = self.bytes(file, limit)?;
        Array::new(layout, Storage::Memory(bytes, from), len)
    }

    /// Bytes that end with the numbers or cells, and where these start; what is compressed is inflated.
    fn bytes(&self, file: &mut File, limit: Limit) -> Result<(Vec<u8>, usize)> {
        let (from, len) = self.data;
        let mut bytes = Vec::new();
        let Some(packed) = self.packed else {
            limit.ensure("the variable", len)?;
            bytes.try_reserve_exact(usize::try_from(len)?)?;
            file.seek(SeekFrom::Start(self.at + from))?;
            file.take(len).read_to_end(&mut bytes)?;
            ensure!(bytes.len() as u64 == len, "ends after {} of {len} bytes; truncated", bytes.len());
            return Ok((bytes, 0));
        };
        ensure!(len / MAX_INFLATION <= packed, "claims {len} bytes from {packed}; the file is damaged");
        file.seek(SeekFrom::Start(self.at))?;
        let needed = 8 + from + len;
        limit.ensure("the variable, unpacked,", needed)?;
        bytes.try_reserve_exact(usize::try_from(needed)?)?;
        ZlibDecoder::new(file.take(packed))
            .take(needed)
            .read_to_end(&mut bytes)
            .context("cannot be unpacked; the file is damaged or truncated")?;
        ensure!(bytes.len() as u64 == needed, "unpacks to {} bytes instead of {needed}; truncated", bytes.len());
        Ok((bytes, (8 + from) as usize))
    }
}

/// The type and length of an element.
struct Tag {
    kind: u32,
    len: u64,
    packed: bool,
}

/// A place within the bytes of a matrix.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let slice = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        self.at += len;
        slice.context("it ends early, or its name is too long")
    }

    /// The number in the first four bytes.
    fn u32_of(&self, bytes: &[u8]) -> u32 {
        let bytes = bytes.first_chunk().copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Reads a tag and stops at the element's data.
    fn tag(&mut self) -> Result<Tag> {
        let word = self.take(4)?;
        let kind = self.u32_of(word);
        if kind >> 16 != 0 {
            let (kind, len) = (kind & 0xffff, kind >> 16);
            ensure!(len <= 4, "a packed element of {len} bytes, at most 4 fit");
            return Ok(Tag { kind, len: u64::from(len), packed: true });
        }
        let word = self.take(4)?;
        Ok(Tag { kind, len: u64::from(self.u32_of(word)), packed: false })
    }

    /// Reads a whole element and the padding after it.
    fn element(&mut self) -> Result<&'a [u8]> {
        let tag = self.tag()?;
        let room = if tag.packed { 4 } else { (tag.len as usize).next_multiple_of(8) };
        let slice = self.take(room)?;
        Ok(&slice[..tag.len as usize])
    }
}
