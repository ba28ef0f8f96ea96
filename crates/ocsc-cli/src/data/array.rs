//! Arrays as the files hold them: raw bytes with a number type and a shape, turned into numbers on demand.
//!
//! The readers ([`super::npy`], [`super::npz`], [`super::mat`]) check a file's header against its length and make one
//! of these; [`super::stack`] cuts it into samples and [`super::codes`] reads codes from it. Keeping the file's own
//! type means that a set of 8-bit images takes one byte a pixel, and that bytes that lie in a plain file need not be
//! held at all.

use anyhow::{Context, Result, ensure};
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// A number type that files may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
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
            Dtype::U8 | Dtype::I8 => 1,
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
            Dtype::U8 => decoder!(u8),
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

    /// True if the numbers are not held in memory.
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self.storage, Storage::File(..))
    }

    /// Reads the whole array into memory, for those who need it out of order.
    pub(crate) fn load(&mut self) -> Result<()> {
        let (count, _) = self.layout.sizes()?;
        let bytes = self.bytes(0, count)?.into_owned();
        self.storage = Storage::Memory(bytes, 0);
        Ok(())
    }

    /// The bytes of `count` numbers from number `first` on, in the order of the file.
    fn bytes(&self, first: usize, count: usize) -> Result<Cow<'_, [u8]>> {
        let size = self.layout.dtype.size();
        let (from, len) = (first * size, count * size);
        match &self.storage {
            Storage::Memory(bytes, offset) => {
                let slice = bytes.get(offset + from..).and_then(|rest| rest.get(..len));
                slice.map(Cow::Borrowed).context("the array is shorter than its header says")
            }
            Storage::File(path, offset) => {
                let mut file = File::open(path).context("cannot be opened any more")?;
                file.seek(SeekFrom::Start(offset + from as u64))?;
                let mut bytes = Vec::new();
                file.take(len as u64).read_to_end(&mut bytes)?;
                ensure!(bytes.len() == len, "the file has become shorter since it was opened");
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// The numbers `first + o` for every offset `o`, all of them below `span`.
    pub(crate) fn gather(&self, first: usize, span: usize, offsets: impl Iterator<Item = usize>) -> Result<Vec<f64>> {
        let bytes = self.bytes(first, span)?;
        let (size, decode) = (self.layout.dtype.size(), self.layout.dtype.decoder(self.layout.big_endian));
        Ok(offsets.map(|o| decode(bytes.get(o * size..(o + 1) * size).unwrap_or(&[]))).collect())
    }

    /// All numbers with the last axis innermost.
    pub(crate) fn values(&self) -> Result<Vec<f64>> {
        let (count, _) = self.layout.sizes()?;
        let offset = |mut index: usize| {
            let mut offset = 0;
            for (len, stride) in self.shape().iter().zip(&self.strides).rev() {
                offset += index % len * stride;
                index /= len;
            }
            offset
        };
        self.gather(0, count, (0..count).map(offset))
    }
}
