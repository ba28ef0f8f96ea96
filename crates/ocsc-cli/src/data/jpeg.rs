//! Whether a JPEG file is whole, and what size its frame claims.
//!
//! The decoder paints what is missing gray and says nothing, as browsers do. A file that was cut short lacks the marker that
//! ends an image, so its markers are followed here up to that one. What comes after it is no matter: previews, second
//! images, and whatever else cameras append.

use anyhow::{Result, ensure};
use std::io::{BufRead, ErrorKind};

const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;

/// Checks that the image which starts here has its end.
pub(crate) fn ensure_whole(input: impl BufRead) -> Result<()> {
    let mut markers = Markers { input };
    let mut scans = 0;
    let whole = loop {
        match markers.next()? {
            None => break false,
            Some(EOI) => break true,
            Some(marker) => {
                scans += usize::from(marker == SOS);
                if has_segment(marker) && !markers.skip_segment()? {
                    break false;
                }
            }
        }
    };
    ensure!(
        whole,
        "the file is truncated: its image has no end{}",
        if scans > 0 { "" } else { ", and not even a start" }
    );
    Ok(())
}

/// Returns the height and width that the frame's header claims, if there is one.
pub(crate) fn size(input: impl BufRead) -> Result<Option<[usize; 2]>> {
    let mut markers = Markers { input };
    while let Some(marker) = markers.next()? {
        match marker {
            EOI | SOS => return Ok(None),
            // Tables of Huffman codes, arithmetic ones and a reserved marker lie among the kinds of frames.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let mut frame = [0; 7];
                for byte in &mut frame {
                    let Some(found) = markers.byte()? else { return Ok(None) };
                    *byte = found;
                }
                // Two bytes of length and one of precision come first.
                return Ok(Some([3, 5].map(|at| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]])))));
            }
            _ if has_segment(marker) && !markers.skip_segment()? => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}

/// Whether a length and as many bytes follow a marker.
fn has_segment(marker: u8) -> bool {
    // TEM, RST0 to RST7 and SOI stand alone.
    !matches!(marker, 0x01 | 0xd0..=0xd8)
}

struct Markers<R> {
    input: R,
}

impl<R: BufRead> Markers<R> {
    /// Returns the next marker, passing over pixels and whatever else lies before it; none at the end of the file.
    fn next(&mut self) -> Result<Option<u8>> {
        loop {
            if !self.skip_to(0xff)? {
                return Ok(None);
            }
            // A marker may be preceded by any number of 0xff; 0xff 0 is a byte of the pixels.
            loop {
                match self.byte()? {
                    None => return Ok(None),
                    Some(0xff) => {}
                    Some(0) => break,
                    marker => return Ok(marker),
                }
            }
        }
    }

    /// Passes over a segment; false if the file ends within it.
    fn skip_segment(&mut self) -> Result<bool> {
        let (Some(high), Some(low)) = (self.byte()?, self.byte()?) else { return Ok(false) };
        let mut left = usize::from(u16::from_be_bytes([high, low])).saturating_sub(2);
        while left > 0 {
            let there = self.fill()?.len().min(left);
            if there == 0 {
                return Ok(false);
            }
            self.input.consume(there);
            left -= there;
        }
        Ok(true)
    }

    /// Passes over everything up to and with this byte; false if there is none.
    fn skip_to(&mut self, wanted: u8) -> Result<bool> {
        loop {
            let there = self.fill()?;
            let (len, place) = (there.len(), there.iter().position(|byte| *byte == wanted));
            self.input.consume(place.map_or(len, |place| place + 1));
            if len == 0 || place.is_some() {
                return Ok(len > 0);
            }
        }
    }

    fn byte(&mut self) -> Result<Option<u8>> {
        let byte = self.fill()?.first().copied();
        self.input.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    fn fill(&mut self) -> Result<&[u8]> {
        while let Err(e) = self.input.fill_buf() {
            if e.kind() != ErrorKind::Interrupted {
                return Err(e.into());
            }
        }
        Ok(self.input.fill_buf()?)
    }
}
