//! Reconstructions as pages of TIFF files and as frames of videos, read back by others.

use crate::common::{Bench, read_floats, stack, write_npy};
use std::io::Cursor;
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult};
use tiff::encoder::TiffEncoder;
use tiff::encoder::colortype::{Gray8, Gray16, Gray32Float};

/// Four pages of 18x20, values from 0 to 1.
fn values() -> Vec<Vec<f32>> {
    stack(4, 18, 20, 5)
        .outer_iter()
        .map(|page| page.iter().map(|v| (0.5 + 0.3 * v).clamp(0.0, 1.0)).collect())
        .collect()
}

/// Writes them as a file of so many bits.
fn write_pages(bench: &Bench, name: &str, bits: u8) {
    let mut bytes = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
    for page in values() {
        match bits {
            8 => encoder.write_image::<Gray8>(20, 18, &page.iter().map(|v| (v * 255.0) as u8).collect::<Vec<_>>()),
            16 => encoder.write_image::<Gray16>(20, 18, &page.iter().map(|v| (v * 65535.0) as u16).collect::<Vec<_>>()),
            _ => encoder.write_image::<Gray32Float>(20, 18, &page),
        }
        .unwrap();
    }
    bench.write(name, &bytes.into_inner());
}

/// The kind and the numbers of every page.
fn read_pages(bench: &Bench, name: &str) -> Vec<(ColorType, Vec<f64>)> {
    let mut decoder = Decoder::new(Cursor::new(bench.read(name))).unwrap();
    let mut pages = Vec::new();
    loop {
        let kind = decoder.colortype().unwrap();
        let numbers = match decoder.read_image().unwrap() {
            DecodingResult::U8(v) => v.into_iter().map(f64::from).collect(),
            DecodingResult::U16(v) => v.into_iter().map(f64::from).collect(),
            DecodingResult::F32(v) => v.into_iter().map(f64::from).collect(),
            other => panic!("{other:?}"),
        };
        pages.push((kind, numbers));
        if !decoder.more_images() {
            return pages;
        }
        decoder.next_image().unwrap();
    }
}

#[track_caller]
fn assert_near(found: &[f64], expected: impl ExactSizeIterator<Item = f64>, most: f64) {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() <= most, "{a} {b}"));
}

#[test]
fn stacks_come_back_with_their_name_pages_and_depth() {
    for (bits, white) in [(8, 255.0), (16, 65535.0), (32, 1.0)] {
        let bench = Bench::new();
        write_pages(&bench, "cells.tif", bits);
        bench.learn("cells.tif --out m.safetensors").ok();
        bench.run("code m.safetensors cells.tif --out codes").ok();
        let said = bench.run("reconstruct m.safetensors codes --original cells.tif --out back").ok().stdout;
        assert!(said.contains("4 reconstructions in back, 1 stack put together"), "{said}");
        let pages = read_pages(&bench, "back/cells.tif");
        assert_eq!(pages.len(), 4);
        for (i, (kind, numbers)) in pages.iter().enumerate() {
            assert_eq!(*kind, ColorType::Gray(bits));
            let exact = read_floats(&bench.path(&format!("back/cells-000{i}.npy")));
            let rounded = if bits == 32 { 1e-6 } else { 0.51 };
            let level = |v: &f64| if bits == 32 { *v } else { (v * white).clamp(0.0, white) };
            assert_near(numbers, exact.iter().map(level).collect::<Vec<_>>().into_iter(), rounded);
        }
        // As one volume, and nothing else.
        bench.run("learn cells.tif --axes DHW --filters 3 --size 3 --threads 1 --out v.safetensors").ok();
        bench.run("code v.safetensors cells.tif --out volume").ok();
        bench.run("reconstruct v.safetensors volume --original cells.tif --format tiff --out only").ok();
        assert_eq!(bench.names("only").into_iter().collect::<Vec<_>>(), ["cells.tif"]);
        let pages = read_pages(&bench, "only/cells.tif");
        assert!(pages.len() == 4 && pages.iter().all(|(kind, _)| *kind == ColorType::Gray(bits)));
    }
}

#[test]
fn a_stack_that_was_coded_in_part_is_not_made_up() {
    let bench = Bench::new();
    write_pages(&bench, "cells.tif", 8);
    bench.learn("cells.tif --out m.safetensors").ok();
    bench.run("code m.safetensors cells.tif --limit 3 --out codes").ok();
    let back = "reconstruct m.safetensors codes --original cells.tif";
    let ran = bench.run(&format!("{back} --out back")).ok();
    assert!(ran.stderr.contains("cells.tif: not written, as 3 of the 4 pages"), "{}", ran.stderr);
    assert!(!bench.path("back/cells.tif").exists() && bench.path("back/cells-0002.npy").exists());
    bench.run(&format!("{back} --format tiff --out no")).refused(1, &["cells.tif", "all 4 pages", "found 3"]);
    // Never over the original.
    bench.run("code m.safetensors cells.tif --out all").ok();
    bench.run("reconstruct m.safetensors all --original cells.tif --out .").refused(1, &["--out", "cells.tif"]);
    assert_eq!(read_pages(&bench, "cells.tif").len(), 4);
}

#[test]
fn volumes_and_cubes_are_pages_of_floats() {
    let bench = Bench::new();
    write_npy(&bench.path("x.npy"), &stack(5, 14, 15, 2));
    for axes in ["DHW", "CHW"] {
        let out = format!("--size 3 --filters 3 --threads 1 --out {axes}.safetensors");
        bench.run(&format!("learn x.npy --axes {axes} {out}")).ok();
        bench.run(&format!("code {axes}.safetensors x.npy --axes {axes} --out codes-{axes}")).ok();
        for format in ["npy", "tiff"] {
            bench.run(&format!("reconstruct {axes}.safetensors codes-{axes} --format {format} --out {axes}")).ok();
        }
        let exact = read_floats(&bench.path(&format!("{axes}/x.npy")));
        let pages = read_pages(&bench, &format!("{axes}/x.tif"));
        assert!(pages.len() == 5 && pages.iter().all(|(kind, _)| *kind == ColorType::Gray(32)));
        for (page, exact) in pages.iter().zip(exact.outer_iter()) {
            assert_near(&page.1, exact.iter().copied().collect::<Vec<_>>().into_iter(), 1e-6);
        }
    }
    write_npy(&bench.path("line.npy"), &ndarray::Array1::from_shape_fn(64, |t| (t as f32 * 0.3).sin()));
    bench.run("learn line.npy --axes T --filters 2 --size 5 --out line.safetensors").ok();
    bench.run("code line.safetensors line.npy --out lines").ok();
    bench.run("reconstruct line.safetensors lines --format tiff --out no").refused(1, &["--format tiff", "a signal"]);
}

#[test]
fn frames_come_back_as_one_video() {
    let bench = Bench::new();
    write_pages(&bench, "film.tif", 8);
    bench.learn("film.tif --out m.safetensors").ok();
    bench.run("code m.safetensors film.tif --out codes").ok();
    let back = "reconstruct m.safetensors codes --original film.tif";
    bench.run(&format!("{back} --format npy --out exact")).ok();
    let said = bench.run(&format!("{back} --raw --out film.gray")).ok().stdout;
    assert!(said.contains("4 frames in film.gray"), "{said}");
    let raw = bench.read("film.gray");
    assert_eq!(raw.len(), 4 * 18 * 20);
    for (i, frame) in raw.chunks_exact(18 * 20).enumerate() {
        let exact = read_floats(&bench.path(&format!("exact/film-000{i}.npy")));
        let frame: Vec<f64> = frame.iter().map(|v| f64::from(*v)).collect();
        assert_near(&frame, exact.iter().map(|v| (v * 255.0).clamp(0.0, 255.0)).collect::<Vec<_>>().into_iter(), 0.51);
    }
    bench.run(&format!("{back} --raw --out film.y4m")).ok();
    let video = bench.read("film.y4m");
    let header = b"YUV4MPEG2 W20 H18 F25:1 Ip A1:1 Cmono\n";
    let (start, frames) = video.split_at(header.len());
    assert_eq!(start, header);
    for (frame, expected) in frames.chunks_exact(6 + 18 * 20).zip(raw.chunks_exact(18 * 20)) {
        assert_eq!((&frame[..6], &frame[6..]), (&b"FRAME\n"[..], expected));
    }
    bench.run("reconstruct m.safetensors codes --raw --out x").refused(1, &["--raw", "--original"]);
    bench.run(&format!("{back} --raw --out film.tif")).refused(1, &["--out film.tif", "originals"]);
    bench.run(&format!("{back} --raw --format npy --out x")).refused(2, &["--format"]);
    // Arrays in other units, and colours in a gray video.
    write_npy(&bench.path("far.npy"), &stack(2, 16, 16, 3).mapv(|v| 100.0 * v));
    bench.learn("far.npy --beta-ratio 0.02 --passes 3 --out far.safetensors").ok();
    bench.run("code far.safetensors far.npy --out far").ok();
    bench.run("reconstruct far.safetensors far --raw --out x").refused(1, &["0 (black) to 1 (white)", "far-0000.npz"]);
    crate::common::pictures(&bench, "photos", 2, 1);
    bench.learn("photos --out colour.safetensors").ok();
    bench.run("code colour.safetensors photos --out colours").ok();
    let back = "reconstruct colour.safetensors colours --original photos --raw";
    bench.run(&format!("{back} --out x.y4m")).refused(1, &["gray frames", "3 channels"]);
    bench.run(&format!("{back} --out x.rgb")).ok();
    assert_eq!(bench.read("x.rgb").len(), 2 * 3 * 400);
    assert!(!bench.path("x.y4m").exists() && !bench.path("x").exists());
}
