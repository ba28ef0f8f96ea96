//! A small FLAC encoder, to have files to read: verbatim frames, or the difference predictor with Rice codes.

/// Bits, the first one in the highest place.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    free: u32,
}

impl Bits {
    fn put(&mut self, value: u64, bits: u32) {
        for i in (0..bits).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            *self.bytes.last_mut().unwrap() |= ((value >> i & 1) as u8) << self.free;
        }
    }
}

fn crc(bytes: &[u8], polynomial: u32, width: u32) -> u32 {
    let (top, all) = (1 << (width - 1), (1u64 << width) as u32 - 1);
    bytes.iter().fold(0, |crc, &byte| {
        let start = crc ^ (u32::from(byte) << (width - 8));
        (0..8).fold(start, |c, _| if c & top != 0 { (c << 1 ^ polynomial) & all } else { c << 1 & all })
    })
}

/// Channels of equal length; `tags` bytes of padding between description and frames. An unknown length is written as 0.
pub(super) fn encode(channels: &[Vec<i32>], bits: u32, rate: u32, tags: usize, known_length: bool) -> Vec<u8> {
    const BLOCK: usize = 256;
    let total = channels[0].len();
    let mut head = Bits::default();
    head.put(BLOCK as u64, 16);
    head.put(BLOCK as u64, 16);
    head.put(0, 48);
    head.put(rate.into(), 20);
    head.put(channels.len() as u64 - 1, 3);
    head.put(u64::from(bits) - 1, 5);
    head.put(if known_length { total as u64 } else { 0 }, 36);
    let mut file = [b"fLaC\x00\x00\x00\x22", &head.bytes[..], &[0; 16]].concat();
    file.extend([0x81, (tags >> 16) as u8, (tags >> 8) as u8, tags as u8]);
    file.extend(vec![0; tags]);
    for (number, from) in (0..total).step_by(BLOCK).enumerate() {
        let block: Vec<&[i32]> = channels.iter().map(|c| &c[from..total.min(from + BLOCK)]).collect();
        file.extend(frame(&block, bits, number as u64));
    }
    file
}

fn frame(channels: &[&[i32]], bits: u32, number: u64) -> Vec<u8> {
    let mut out = Bits::default();
    out.put(0xfff8, 16);
    out.put(0b0111 << 4, 8);
    out.put(channels.len() as u64 - 1, 4);
    out.put(0, 4);
    match number {
        0..0x80 => out.put(number, 8),
        _ => out.put((0xc0 | number >> 6) << 8 | 0x80 | (number & 0x3f), 16),
    }
    out.put(channels[0].len() as u64 - 1, 16);
    let check = crc(&out.bytes, 0x07, 8);
    out.put(check.into(), 8);
    let mask = (1u64 << bits) - 1;
    for (c, samples) in channels.iter().enumerate() {
        if c % 2 == 0 || samples.len() < 2 {
            out.put(0b0000_0010, 8);
            samples.iter().for_each(|&v| out.put(v as u64 & mask, bits));
            continue;
        }
        // Differences, with 4 bits each below the unary part.
        out.put(0b0001_0010, 8);
        out.put(samples[0] as u64 & mask, bits);
        out.put(4, 10);
        for pair in samples.windows(2) {
            let difference = i64::from(pair[1]) - i64::from(pair[0]);
            let folded = (difference << 1 ^ difference >> 63) as u64;
            (0..folded >> 4).for_each(|_| out.put(0, 1));
            out.put(1, 1);
            out.put(folded & 15, 4);
        }
    }
    let check = crc(&out.bytes, 0x8005, 16);
    out.free = 0;
    out.put(check.into(), 16);
    out.bytes
}
