//! Raw frames from anything that can be read.

use super::*;
use crate::data::raw::{Frames, Pixels};
use std::io::Read;

fn frames(bytes: &[u8], pixels: Pixels) -> Frames<&[u8]> {
    Frames::new(bytes, 1, 2, pixels, false)
}

#[test]
fn every_format() {
    let next = |bytes: &[u8], pixels| frames(bytes, pixels).next_frame().unwrap().unwrap();
    assert_eq!(next(&[51, 255], Pixels::Gray).data(), [0.2, 1.0]);
    assert_eq!(next(&[1, 0, 255, 255], Pixels::Gray16le).data(), [1.0 / 65535.0, 1.0]);
    let floats: Vec<u8> = [0.1f32, -3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(next(&floats, Pixels::Grayf32le).data(), [f64::from(0.1f32), -3.0]);
    let colour = next(&[51, 102, 153, 0, 255, 51], Pixels::Rgb24);
    assert_eq!((colour.shape(), colour.data()), (shape(3, 1, 1, 2), &[0.2, 0.0, 0.4, 1.0, 0.6, 0.2][..]));
    let deep = next(&[0, 0, 255, 255, 0, 0, 255, 255, 0, 0, 0, 0], Pixels::Rgb48le);
    assert_eq!(deep.data(), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn frames_end_and_a_part_of_one_is_counted() {
    let mut whole = frames(&[1, 2, 3, 4], Pixels::Gray);
    assert_eq!(whole.next_frame().unwrap().unwrap().data()[0], 1.0 / 255.0);
    assert!(whole.next_frame().unwrap().is_some() && whole.next_frame().unwrap().is_none());
    assert_eq!((whole.left_over, whole.bytes()), (0, 2));
    let mut cut = frames(&[1, 2, 3], Pixels::Gray);
    assert!(cut.next_frame().unwrap().is_some() && cut.next_frame().unwrap().is_none());
    assert_eq!(cut.left_over, 1);
    // Bytes that trickle in.
    struct Slow(u8);
    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            into[0] = self.0;
            Ok(usize::from(self.0 <= 5))
        }
    }
    let mut slow = Frames::new(Slow(0), 1, 2, Pixels::Gray, false);
    assert_eq!(slow.next_frame().unwrap().unwrap().data(), [1.0 / 255.0, 2.0 / 255.0]);
    assert!(slow.next_frame().unwrap().is_some() && slow.next_frame().unwrap().is_none());
    assert_eq!(slow.left_over, 1);
    // A size beyond all memory is no reason to reserve it.
    let mut huge = Frames::new(&[1u8, 2][..], usize::MAX, usize::MAX, Pixels::Rgb48le, false);
    assert!(huge.next_frame().unwrap().is_none());
}

#[test]
fn floats_that_are_none() {
    let bytes: Vec<u8> = [1.0, f32::NAN].iter().flat_map(|v| v.to_le_bytes()).collect();
    let message = frames(&bytes, Pixels::Grayf32le).next_frame().unwrap_err().to_string();
    assert_contains(&message, &["finite", "column 1", "--nan-is-missing"]);
    let mut missing = Frames::new(&bytes[..], 1, 2, Pixels::Grayf32le, true);
    assert_eq!(missing.next_frame().unwrap().unwrap().mask(), Some(&[true, false][..]));
}
