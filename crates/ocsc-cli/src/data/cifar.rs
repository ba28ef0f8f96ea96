//! CIFAR batches: records of label bytes and 3 x 32 x 32 levels, nothing else.
//!
//! CIFAR-10 has one label byte (records of 3073 bytes), CIFAR-100 two (3074). Only a multiple of 9,446,402 bytes could be
//! both, which no official file is. The labels are checked, since nothing else tells a batch from another `.bin` file.

use anyhow::{Context, Result, bail, ensure};
use ocsc::{Real, Sample, Shape, file};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What one record shows.
pub(crate) const SHAPE: Shape = Shape { channels: 3, depth: 1, height: 32, width: 32 };
const LEVELS: u64 = 3072;

/// A file of records.
#[derive(Debug)]
pub(crate) struct Batch {
    path: PathBuf,
    len: usize,
    /// The largest value of each label byte.
    labels: &'static [u8],
}

impl Batch {
    /// Tells the two kinds apart by the file's length.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = file::open(path)?.metadata()?.len();
        ensure!(bytes > 0, "the file is empty; expected a CIFAR batch");
        let (ten, hundred) = (LEVELS + 1, LEVELS + 2);
        let (record, labels): (u64, &[u8]) = match (bytes % ten, bytes % hundred) {
            (0, 0) => bail!("{bytes} bytes fit CIFAR-10 and CIFAR-100 alike; split the file"),
            (0, _) => (ten, &[9]),
            (_, 0) => (hundred, &[19, 99]),
            _ => bail!(
                "{bytes} bytes; expected a multiple of {ten} (CIFAR-10) or {hundred} (CIFAR-100): the file is no CIFAR \
                 batch in binary form, or truncated"
            ),
        };
        Ok(Batch { path: path.to_owned(), len: usize::try_from(bytes / record)?, labels })
    }

    /// The number of images, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Image `index`, with values in [0, 1].
    pub(crate) fn get<T: Real>(&self, index: usize) -> Result<Sample<T>> {
        let mut record = vec![0; self.labels.len() + SHAPE.len()];
        let mut file = file::open(&self.path).context("cannot be opened any more")?;
        file.seek(SeekFrom::Start(index as u64 * record.len() as u64))?;
        file.read_exact(&mut record).context("the file has become shorter since it was opened")?;
        let (labels, levels) = record.split_at(self.labels.len());
        for (label, most) in labels.iter().zip(self.labels) {
            ensure!(label <= most, "label {label}; expected 0 to {most}: the file is no CIFAR batch in binary form");
        }
        Ok(Sample::new(SHAPE, levels.iter().map(|&v| T::of(f64::from(v) / 255.0)).collect())?)
    }
}
