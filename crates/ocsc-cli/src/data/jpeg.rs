//! Whether a JPEG file is whole, and what size its frame claims.
//!
//! The decoder paints what is missing gray and says nothing, as browsers do. A file that was cut short lacks the marker that
//! ends an image, so its markers are followed here up to that one. What comes after it is no matter: previews, second
//! images, and whatever else cameras append.
//!
//! The decoder also makes every table of Huffman codes ready to decode with before it tells the size, which takes as long as all
//! the rest. Where only the header is wanted, it gets one without these tables.

use anyhow::{Result, ensure};
use std::io::{BufRead, ErrorKind};

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const DHT: u8 = 0xc4;

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

/// Returns the header of a JPEG whose file starts so, up to its first scan and without tables of Huffman codes. None if the start
/// does not hold all of the header, or if there is anything in it that the decoder might stumble on.
pub(crate) fn without_tables(start: &[u8]) -> Option<Vec<u8>> {
    let mut rest = start.strip_prefix(&[0xff, SOI])?;
    let mut header = vec![0xff, SOI];
    loop {
        let [0xff, marker, high, low, ..] = *rest else { return None };
        if marker == 0xff || !has_segment(marker) {
            return None;
        }
        let (segment, next) = rest.split_at_checked(2 + usize::from(u16::from_be_bytes([high, low])))?;
        match marker {
            DHT if are_tables(segment.get(4..)?) => {}
            DHT | EOI => return None,
            _ => header.extend_from_slice(segment),
        }
        if marker == SOS {
            return Some(header);
        }
        rest = next;
    }
}

/// Whether these are tables of Huffman codes as they should be: of each its kind and place, the number of codes of 1 to 16 bits,
/// and the symbols that they stand for.
fn are_tables(mut bytes: &[u8]) -> bool {
    while let Some((table, rest)) = bytes.split_at_checked(17) {
        let (kind, lengths) = (table[0], &table[1..]);
        let total: usize = lengths.iter().map(|count| usize::from(*count)).sum();
        // Codes of one length follow one another; none consists of ones only.
        let mut code = 0_u32;
        let is_tree = (1..).zip(lengths).all(|(bits, count)| {
            code = 2 * code + u32::from(*count);
            code < 1 << bits
        });
        let Some((symbols, next)) = rest.split_at_checked(total) else { return false };
        // A symbol of the first kind is a number of bits.
        let is_known =
            matches!(kind, 0x00..=0x03 if symbols.iter().all(|bits| *bits < 12)) || matches!(kind, 0x10..=0x13);
        if !is_known || !is_tree || total > 256 {
            return false;
        }
        bytes = next;
    }
    bytes.is_empty()
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
