//! The `.npy` format: a short Python dictionary (type, order, shape), then the numbers.
//!
//! Own code rather than `ndarray-npy`, whose reader panics on a header that claims more than the machine holds and
//! reads one type, whole arrays at a time; here the header is checked against the file's length first, and the numbers
//! stay on disk until asked for. [`super::npz`] holds several of these in one file.

use super::array::{Array, Dtype, Layout, Storage};
use anyhow::{Context, Result, bail, ensure};
use ocsc::file;
use std::io::Read;
use std::path::Path;

/// No real header comes near this; numpy itself refuses to trust headers past 10,000 bytes.
pub(crate) const MAX_HEADER: u64 = 1 << 16;
const MAGIC: &[u8] = b"\x93NUMPY";

/// Opens a `.npy` file, leaving its numbers on disk.
pub(crate) fn open(path: &Path) -> Result<Array> {
    let mut file = file::open(path)?;
    let len = file.metadata()?.len();
    let mut start = Vec::new();
    file.by_ref().take(MAX_HEADER).read_to_end(&mut start)?;
    let (layout, data) = header(&start)?;
    Array::new(layout, Storage::File(path.to_owned(), data as u64), len.saturating_sub(data as u64))
}

/// Reads the header from the first bytes of a file: the layout, and where the numbers start.
pub(crate) fn header(start: &[u8]) -> Result<(Layout, usize)> {
    let (text, data) = preamble(start)?;
    let layout = Dictionary { rest: text }.layout()?;
    layout.sizes()?;
    Ok((layout, data))
}

/// The text of the header, and where the data start.
fn preamble(start: &[u8]) -> Result<(&str, usize)> {
    ensure!(!start.is_empty(), "the file is empty; expected a .npy array");
    ensure!(start.starts_with(MAGIC), "not a .npy array: it does not start with \\x93NUMPY");
    let truncated = "the header is truncated; save the file again";
    let (from, len) = match start.get(6).context(truncated)? {
        1 => (10, start.get(8..10).map(|b| u64::from(b[0]) | u64::from(b[1]) << 8)),
        2 | 3 => (12, start.get(8..12).map(|b| b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))),
        version => bail!("version {version} of .npy is unknown; expected 1, 2 or 3"),
    };
    let len = len.context(truncated)?;
    ensure!(len < MAX_HEADER - 12, "a header of {len} bytes; expected fewer than {MAX_HEADER}: the file is damaged");
    let data = from + len as usize;
    let text = std::str::from_utf8(start.get(from..data).context(truncated)?).context("the header is not text")?;
    Ok((text, data))
}

/// The bytes of a `.npy` file that holds one text, as numpy's `<U` does.
pub(crate) fn encode_text(text: &str) -> Vec<u8> {
    // numpy knows no text of no characters; zeros at the end do not count.
    let characters: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let len = (characters.len() / 4).max(1);
    let padded = [characters, vec![0; if text.is_empty() { 4 } else { 0 }]].concat();
    encode(&format!("<U{len}"), &[], &padded)
}

/// The one text in the bytes of a `.npy` file.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<String> {
    let (text, data) = preamble(bytes)?;
    ensure!(text.contains("'descr': '<U"), "expected one text, found other data");
    let characters = bytes.get(data..).unwrap_or_default();
    let decoded = characters.chunks(4).map(|c| {
        let number = c.iter().rev().fold(0, |n, byte| n << 8 | u32::from(*byte));
        char::from_u32(number).context("the text is damaged")
    });
    let decoded = decoded.collect::<Result<String>>()?;
    Ok(decoded.trim_end_matches('\0').to_owned())
}

/// A cursor over the text of a header, `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
struct Dictionary<'a> {
    rest: &'a str,
}

impl<'a> Dictionary<'a> {
    fn layout(mut self) -> Result<Layout> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.accept("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" => descr = Some(self.dtype()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => bail!("the header has an unknown key `{key}`"),
            }
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        let (dtype, big_endian) = descr.context("the header has no `descr`")?;
        let fortran = fortran.context("the header has no `fortran_order`")?;
        Ok(Layout { dtype, big_endian, fortran, shape: shape.context("the header has no `shape`")? })
    }

    fn accept(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        let found: String = self.rest.trim().chars().take(20).collect();
        ensure!(self.accept(token), "the header is damaged: expected `{token}`, found `{found}`");
        Ok(())
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.accept("\"") { '"' } else { '\'' };
        if quote == '\'' {
            self.expect("'")?;
        }
        let (string, rest) = self.rest.split_once(quote).context("the header is damaged: a string does not end")?;
        self.rest = rest;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False").map(|()| false)
    }

    fn shape(&mut self) -> Result<Vec<usize>> {
        let mut shape = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            self.rest = self.rest.trim_start();
            let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = self.rest.split_at(digits);
            shape.push(number.parse().with_context(|| format!("the header is damaged: a length of `{number}`"))?);
            // Python 2 wrote long integers as `10L`.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(shape)
    }

    fn dtype(&mut self) -> Result<(Dtype, bool)> {
        let accepted = "expected integers or 4- or 8-byte floats; convert with `.astype('float32')`";
        ensure!(!self.accept("[") && !self.accept("("), "the array has records of several fields; {accepted}");
        let descr = self.string()?;
        let (big_endian, code) = match (descr.strip_prefix('>'), descr.strip_prefix('=')) {
            (Some(code), _) => (true, code),
            (_, Some(code)) => (cfg!(target_endian = "big"), code),
            _ => (false, descr.trim_start_matches(['<', '|'])),
        };
        let dtype = match code {
            "b1" => Dtype::Bool,
            "u1" => Dtype::U8,
            "i1" => Dtype::I8,
            "u2" => Dtype::U16,
            "i2" => Dtype::I16,
            "u4" => Dtype::U32,
            "i4" => Dtype::I32,
            "u8" => Dtype::U64,
            "i8" => Dtype::I64,
            "f4" => Dtype::F32,
            "f8" => Dtype::F64,
            _ => {
                let what = match code.chars().next() {
                    Some('c') => "complex numbers",
                    Some('S' | 'U' | 'a') => "text",
                    Some('O') => "Python objects",
                    Some('M' | 'm') => "dates or times",
                    Some('f') => "floats of another size",
                    _ => "an unknown type",
                };
                bail!("the array holds {what} (dtype `{descr}`); {accepted}")
            }
        };
        Ok((dtype, big_endian))
    }
}

/// The bytes of a `.npy` file with the last axis innermost; `descr` is numpy's name of the type of `data`.
pub(crate) fn encode(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let mut bytes = begin(descr, shape, data.len());
    bytes.extend_from_slice(data);
    bytes
}

/// The beginning of a `.npy` file, with room for so many bytes of data.
pub(super) fn begin(descr: &str, shape: &[usize], room: usize) -> Vec<u8> {
    let shape = super::axes::show_shape(shape);
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The format asks for data that start at a multiple of 64, after a line end.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    // At most three dozen digits and names: far below the 65,535 that two bytes can say.
    let len = text.len() as u16;
    let mut bytes = Vec::with_capacity(10 + text.len() + room);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
