//! Arrays as the files hold them: raw bytes with a number type and a shape, turned into numbers on demand.
//!
//! The readers ([`super::npy`], [`super::npz`], [`super::mat`]) check a file's header against its length and make one
//! of these; [`super::stack`] cuts it into samples and [`super::codes`] reads codes from it. Keeping the file's own
//! type means that a set of 8-bit images takes one byte a pixel, and that bytes that lie in a plain file are not held at
//! all.

use crate::memory::Limit;
use anyhow::{Context, Result, anyhow, ensure};
use ocsc::file;
use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// At most so many bytes of a file are held at a time.
const CHUNK: usize = 1 << 20;
/// Gaps of up to so many bytes are read along rather than skipped: the disk reads whole pages anyway, and copying a page
/// takes as long as the two calls that skip it.
const GAP: usize = 4096;

/// A number type that files may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    /// One byte, 0 or 1; masks may be made of it, samples may not.
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl Dtype {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Dtype::Bool | Dtype::U8 | Dtype::I8 => 1,
            Dtype::U16 | Dtype::I16 => 2,
            Dtype::U32 | Dtype::I32 | Dtype::F32 => 4,
            Dtype::U64 | Dtype::I64 | Dtype::F64 => 8,
        }
    }

    /// False for floating point.
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self, Dtype::F32 | Dtype::F64)
    }

    /// The function that turns the bytes of one number into an `f64`.
    fn decoder(self, big_endian: bool) -> fn(&[u8]) -> f64 {
        // A slice of the wrong length cannot occur; NaN, which no sample accepts, stands for it.
        macro_rules! decoder {
            ($t:ty) => {
                if big_endian {
                    |b| b.try_into().map_or(f64::NAN, |b| <$t>::from_be_bytes(b) as f64)
                } else {
                    |b| b.try_into().map_or(f64::NAN, |b| <$t>::from_le_bytes(b) as f64)
                }
            };
        }
        match self {
            Dtype::Bool | Dtype::U8 => decoder!(u8),
            Dtype::I8 => decoder!(i8),
            Dtype::U16 => decoder!(u16),
            Dtype::I16 => decoder!(i16),
            Dtype::U32 => decoder!(u32),
            Dtype::I32 => decoder!(i32),
            Dtype::U64 => decoder!(u64),
            Dtype::I64 => decoder!(i64),
            Dtype::F32 => decoder!(f32),
            Dtype::F64 => decoder!(f64),
        }
    }
}

/// Where the numbers lie.
#[derive(Debug)]
pub(crate) enum Storage {
    /// In memory, from this byte on.
    Memory(Vec<u8>, usize),
    /// In a file, from this byte on; they are read when asked for.
    File(PathBuf, u64),
}

/// How the numbers are typed and arranged.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The type of every number.
    pub(crate) dtype: Dtype,
    /// The order of the bytes within a number.
    pub(crate) big_endian: bool,
    /// True if the first axis is contiguous, false if the last is.
    pub(crate) fortran: bool,
    /// The length of each axis; none for a single number.
    pub(crate) shape: Vec<usize>,
}

impl Layout {
    /// All numbers, and the bytes they take; refused where that does not fit a machine word.
    pub(crate) fn sizes(&self) -> Result<(usize, usize)> {
        let count = self.shape.iter().try_fold(1usize, |n, &len| n.checked_mul(len));
        let bytes = count.and_then(|n| n.checked_mul(self.dtype.size()));
        count.zip(bytes).with_context(|| {
            format!("the header claims an array of shape {}; the file is damaged", super::axes::show_shape(&self.shape))
        })
    }

    /// The distance, in numbers, between neighbours along each axis.
    fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.shape.len()];
        let mut next = 1;
        let order: Vec<usize> =
            if self.fortran { (0..self.shape.len()).collect() } else { (0..self.shape.len()).rev().collect() };
        for axis in order {
            strides[axis] = next;
            next *= self.shape[axis];
        }
        strides
    }
}

/// An array whose storage holds exactly as many bytes as its layout asks for.
#[derive(Debug)]
pub(crate) struct Array {
    layout: Layout,
    strides: Vec<usize>,
    storage: Storage,
}

impl Array {
    /// Joins a layout to `available` bytes of storage, which must be exactly what it needs.
    pub(crate) fn new(layout: Layout, storage: Storage, available: u64) -> Result<Self> {
        let (count, bytes) = layout.sizes()?;
        ensure!(
            bytes as u64 == available,
            "an array of shape {} needs {bytes} bytes of data, found {available}; {}",
            super::axes::show_shape(&layout.shape),
            if available < bytes as u64 { "the file is truncated, save it again" } else { "the file is damaged" }
        );
        // Without numbers there is nothing to stride over, and lengths of other axes may be absurd.
        let strides = if count == 0 { vec![0; layout.shape.len()] } else { layout.strides() };
        Ok(Array { layout, strides, storage })
    }

    /// The length of each axis.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// The distance, in numbers, between neighbours along each axis.
    pub(crate) fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The type of the numbers in the file.
    pub(crate) fn dtype(&self) -> Dtype {
        self.layout.dtype
    }

    /// A block of numbers: `lens[a]` of them along axis a, `strides[a]` apart, from number `first` on, the last axis
    /// innermost.
    ///
    /// They are visited in the order of the file, whatever that of the axes. From a file on disk only the runs of bytes
    /// that hold them are read, through a buffer of fixed size: an array larger than memory costs no memory in any
    /// order. Plain reads and not a mapped file, which would raise SIGBUS if another program shortened it. The worst
    /// order, every byte of a 32x32 colour image in a run of its own, takes 3.5 ms an image, the best 0.1 ms.
    pub(crate) fn all_gather(&self, first: usize, lens: &[usize], strides: &[usize], limit: Limit) -> Result<Vec<f64>> {
        let count = lens.iter().fold(1_usize, |product, len| product.saturating_mul(*len));
        limit.ensure(&format!("{count} numbers at once"), (count as u64).saturating_mul(size_of::<f64>() as u64))?;
        let mut values = Vec::new();
        let room = values.try_reserve_exact(count);
        room.map_err(|_| anyhow!("{count} numbers at once are more than the memory holds; cut them into samples"))?;
        values.resize(count, 0.0);
        let size = self.layout.dtype.size();
        let decode = self.layout.dtype.decoder(self.layout.big_endian);
        let mut walk = Walk::new(first, lens, strides);
        let run = walk.run(GAP / size);
        let mut reader = Reader::new(&self.storage);
        for _ in 0..count {
            let bytes = reader.bytes(walk.offset * size, size, || (run - walk.within(run)) * size)?;
            if let Some(value) = values.get_mut(walk.index) {
                *value = decode(bytes);
            }
            walk.step();
        }
        Ok(values)
    }

    /// All numbers with the last axis innermost.
    pub(crate) fn values(&self, limit: Limit) -> Result<Vec<f64>> {
        self.all_gather(0, self.shape(), &self.strides, limit)
    }
}

/// A way through a block of numbers in the order of the file.
struct Walk {
    /// Where it is: in the file, and in the result, whose last axis is innermost.
    offset: usize,
    index: usize,
    /// The axes, innermost in the file first.
    axes: Vec<Axis>,
}

struct Axis {
    place: usize,
    len: usize,
    stride: usize,
    result_stride: usize,
}

impl Walk {
    fn new(first: usize, lens: &[usize], strides: &[usize]) -> Self {
        let mut result_stride = 1;
        let mut axes = Vec::new();
        for (&len, &stride) in lens.iter().zip(strides).rev() {
            axes.push(Axis { place: 0, len, stride, result_stride });
            result_stride *= len;
        }
        axes.sort_by_key(|axis| axis.stride);
        Walk { offset: first, index: 0, axes }
    }

    /// The length of the runs without gaps above `gap`, all in numbers.
    fn run(&self, gap: usize) -> usize {
        let mut run = 1;
        for axis in self.axes.iter().filter(|axis| axis.len > 1) {
            if axis.stride > run + gap {
                break;
            }
            run += (axis.len - 1) * axis.stride;
        }
        run
    }

    /// The place within the current run of length `run`.
    fn within(&self, run: usize) -> usize {
        self.axes.iter().filter(|axis| axis.stride < run).map(|axis| axis.place * axis.stride).sum()
    }

    fn step(&mut self) {
        for axis in &mut self.axes {
            axis.place += 1;
            self.offset += axis.stride;
            self.index += axis.result_stride;
            if axis.place < axis.len {
                return;
            }
            self.offset -= axis.len * axis.stride;
            self.index -= axis.len * axis.result_stride;
            axis.place = 0;
        }
    }
}

/// The bytes of an array, a part of them at a time.
struct Reader<'a> {
    storage: &'a Storage,
    file: Option<File>,
    /// The bytes from `start` on.
    part: Cow<'a, [u8]>,
    start: usize,
}

impl<'a> Reader<'a> {
    fn new(storage: &'a Storage) -> Self {
        let part = match storage {
            Storage::Memory(bytes, offset) => bytes.get(*offset..).unwrap_or_default(),
            Storage::File(..) => &[],
        };
        Reader { storage, file: None, part: Cow::Borrowed(part), start: 0 }
    }

    /// `len` bytes from byte `at` on. Of a file, the `rest` of the run is read ahead.
    fn bytes(&mut self, at: usize, len: usize, rest: impl FnOnce() -> usize) -> Result<&[u8]> {
        let held = |start: usize, part: &[u8]| at >= start && at + len <= start + part.len();
        if let Storage::File(path, offset) = self.storage
            && !held(self.start, &self.part)
        {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(file::open(path).context("cannot be opened any more")?),
            };
            file.seek(SeekFrom::Start(offset + at as u64))?;
            let part = self.part.to_mut();
            part.resize(rest().clamp(len, CHUNK), 0);
            file.read_exact(part).map_err(|e| match e.kind() {
                ErrorKind::UnexpectedEof => anyhow!("the file has become shorter since it was opened"),
                _ => e.into(),
            })?;
            self.start = at;
        }
        let slice = at.checked_sub(self.start).and_then(|from| self.part.get(from..)?.get(..len));
        slice.context("the array is shorter than its header says")
    }
}
