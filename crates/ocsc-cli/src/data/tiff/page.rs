//! A TIFF file as its decoder is to see it: with one page first, and with all bands of its pixels.
//!
//! The decoder reads the first page of a file and hands red, green and blue over without the bands beside them. So two
//! places of the file are read otherwise than they are: the header says where the wanted page lies, and a page with more
//! bands says that it is gray, of which the decoder hands over every band.

use super::bands::Bands;
use super::directory::Layout;
use anyhow::Result;
use ocsc::file;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A file of which some bytes are replaced.
pub(crate) struct Page {
    file: File,
    at: u64,
    patches: Vec<(u64, Vec<u8>)>,
}

impl Page {
    /// Opens the page at `place`.
    pub(crate) fn open(path: &Path, place: u64, bands: &Bands) -> Result<Self> {
        let mut file = file::open(path)?;
        let len = file.metadata()?.len();
        let layout = Layout::read(&mut file)?;
        layout.check(&mut file, place, len)?;
        let mut patches = vec![layout.pointer(place)];
        if bands.beyond_colours {
            patches.extend(layout.gray(&mut file, place)?);
        }
        Ok(Page { file, at: 0, patches })
    }
}

impl Read for Page {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = self.file.read(buffer)?;
        for (from, bytes) in &self.patches {
            for (at, byte) in (*from..).zip(bytes) {
                let place = at.checked_sub(self.at).and_then(|place| usize::try_from(place).ok());
                if let Some(slot) = place.filter(|place| *place < read).and_then(|place| buffer.get_mut(place)) {
                    *slot = *byte;
                }
            }
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Page {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = place.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
