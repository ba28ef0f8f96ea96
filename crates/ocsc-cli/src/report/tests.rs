//! Checks of the page, and a made-up run to look at: with `OCSC_GALLERY=FOLDER` set, it is written there.

use super::*;
use crate::report::objective::objective_charts;
use crate::report::picture::{dictionary_mosaic, difference, image_gray};
use crate::run::record::{Event, Record};
use ocsc::{Dictionary, Sample, Shape};
use std::f64::consts::{PI, TAU};

/// A fixed sequence that looks random, from 0 to 1.
fn noise(i: usize) -> f64 {
    let mut h = (i as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((h ^ (h >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

fn gabors(n: usize, side: usize) -> Dictionary<f32> {
    let mut data = vec![];
    for k in 0..n {
        let p = |j: usize| noise(k * 8 + j);
        let (angle, wave, phase, size) = (p(0) * PI, 2.5 + 8.0 * p(1) * p(1), p(2) * TAU, 1.0 + 2.6 * p(3));
        let (cx, cy) = (side as f64 * (0.35 + 0.3 * p(4)), side as f64 * (0.35 + 0.3 * p(5)));
        let filter: Vec<f64> = (0..side * side)
            .map(|i| {
                let (x, y) = ((i % side) as f64 - cx, (i / side) as f64 - cy);
                let along = x * angle.cos() + y * angle.sin();
                let across = y * angle.cos() - x * angle.sin();
                let bell = (-(along * along + 0.35 * across * across) / (2.0 * size * size)).exp();
                bell * (TAU * along / wave + phase).cos() + 0.015 * (noise(k * 997 + i) - 0.5)
            })
            .collect();
        let norm = filter.iter().map(|v| v * v).sum::<f64>().sqrt() * 1.0001;
        data.extend(filter.iter().map(|v| (v / norm) as f32));
    }
    Dictionary::new(n, Shape::image(side, side), 2, data).unwrap()
}

/// A scene of soft discs, and the same scene less sharp.
fn scene(seed: usize, side: usize, softness: f64) -> Sample<f32> {
    let value = |i: usize| {
        let (x, y) = ((i % side) as f64 / side as f64, (i / side) as f64 / side as f64);
        let disc = |j: usize| {
            let p = |n: usize| noise(seed * 100 + j * 4 + n);
            let distance = ((x - p(0)).powi(2) + (y - p(1)).powi(2)).sqrt() - 0.08 - 0.2 * p(2);
            (p(3) - 0.5) * 2.0 / (1.0 + (distance * side as f64 / softness).exp())
        };
        let texture = 0.12 * ((x * 60.0 + y * 25.0).sin() * (y * 40.0).cos()) * (1.6 - softness).max(0.0);
        ((0..9).map(disc).sum::<f64>() + texture) as f32
    };
    Sample::new(Shape::image(side, side), (0..side * side).map(value).collect()).unwrap()
}

fn run(steps: u64, passes: u64) -> Vec<Record> {
    let mut records = vec![];
    for step in 1..=steps {
        let t = step as f64 / steps as f64;
        let seconds = 0.043 * step as f64;
        let objective = 1028.0 + 620.0 * (-t * 40.0).exp() + 60.0 / (1.0 + 20.0 * t);
        let record = Record {
            event: Event::Step,
            pass: 1 + (step - 1) * passes / steps,
            step,
            samples: step,
            seconds,
            cpu_seconds: 1.8 * seconds,
            objective: Some(objective * (0.86 + 0.28 * noise(step as usize))),
            gap: Some(0.01),
            nonzeros: Some(2480.0),
            dictionary_change: Some(0.05 / step as f64),
            test_objective: None,
            test_psnr: None,
            psnr_peak: None,
            peak_rss_bytes: None,
            stationarity: None,
            reseeded: None,
            waiting_seconds: Some(0.1),
            skipped: Some(0),
            unusable: Some(0),
            nonzeros_share: Some(0.25),
            test_samples: None,
            test_seconds: None,
        };
        let end_of_pass = step % (steps / passes) == 0;
        if end_of_pass {
            records.push(Record { event: Event::Pass, test_objective: Some(objective + 6.0), ..record.clone() });
        }
        records.push(record);
    }
    records
}

fn triplet(i: usize, name: &str) -> Triplet {
    let (original, back) = (scene(i, 100, 0.9), scene(i, 100, 1.35));
    Triplet {
        name: name.into(),
        original_png: image_gray(&original, -1.0, 1.2).png_bytes().unwrap(),
        reconstruction_png: image_gray(&back, -1.0, 1.2).png_bytes().unwrap(),
        difference_png: difference(&original, &back, 0.3).unwrap().png_bytes().unwrap(),
        scale: Some(0.3),
        caption: format!("PSNR {:.2} dB · SSIM {:.3}", 28.0 + 4.0 * noise(i), 0.9 + 0.06 * noise(i + 50)),
    }
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn made_up_report() -> Report {
    Report {
        title: "100 filters from 10 fruit images".into(),
        lead: "One hundred 11×11 filters, learned in ten passes and 4.3 seconds on two threads. \
               Every code is certified to lie within 1 % of the optimum."
            .into(),
        summary: pairs(&[
            ("Test objective", "1028.5"),
            ("Test PSNR (peak 11.4)", "29.83 dB"),
            ("Worst duality gap", "0.29 %"),
            ("Non-zeros per image", "2 481 (0.25 %)"),
            ("Learning time", "4.3 s"),
            ("Processor time", "7.9 s"),
            ("Peak memory", "61 MB"),
            ("Samples seen", "100"),
        ]),
        given: pairs(&[("data", "fruit/ --test fruit-test/"), ("settings", "--filters 100 --size 11 --passes 10")]),
        settings: pairs(&[
            ("method", "ocsc"),
            ("filters", "100"),
            ("size", "11x11"),
            ("beta", "1.0"),
            ("passes", "10"),
            ("batch", "1"),
            ("tol", "0.01"),
            ("boundary", "circular"),
            ("init", "random"),
            ("seed", "0"),
            ("preprocess", "gray,lcn,taper"),
            ("dtype", "f32"),
        ]),
        dictionary_png: dictionary_mosaic(&gabors(100, 11)).png_bytes().unwrap(),
        charts: objective_charts(&run(1000, 10), None),
        triplets: ["apricot.png", "blood-orange-half.png", "lychee.png", "pear.png"]
            .iter()
            .enumerate()
            .map(|(i, name)| triplet(i, name))
            .collect(),
        are_learned: false,
        restored: vec![],
        sections: vec![],
        command: "ocsc learn fruit/ --test fruit-test/ --filters 100 --size 11 --passes 10 --out fruit.ocsc".into(),
    }
}

fn parse(html: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(html, options).unwrap()
}

#[test]
fn the_page_is_complete_well_formed_and_needs_nothing_else() {
    let html = render(&made_up_report()).unwrap();
    let page = parse(&html);
    let count = |tag: &str| page.descendants().filter(|n| n.tag_name().name() == tag).count();
    assert_eq!((count("h1"), count("svg"), count("img"), count("table")), (1, 2, 1 + 3 * 4, 2));
    for node in page.descendants().filter(|n| n.tag_name().name() == "img") {
        assert!(node.attribute("src").unwrap().starts_with("data:image/png;base64,"));
        assert!(!node.attribute("alt").unwrap().is_empty());
    }
    assert!(page.descendants().filter(|n| n.tag_name().name() == "th").all(|n| n.attribute("scope") == Some("row")));
    assert!(!html.contains("<script") && !html.contains("url(") && !html.contains("@import"));
    assert_eq!(
        html.matches("http").count(),
        html.matches("http://www.w3.org/").count() + html.matches("http-equiv").count()
    );
    assert!(html.len() < 1_000_000, "{}", html.len());
    if let Some(folder) = std::env::var_os("OCSC_GALLERY") {
        std::fs::write(std::path::Path::new(&folder).join("report.html"), html).unwrap();
    }
}

#[test]
fn text_cannot_become_markup() {
    let nasty = "</style><script>alert(\"1\")</script>&'";
    let report = Report {
        title: nasty.into(),
        lead: nasty.into(),
        summary: pairs(&[(nasty, nasty)]),
        given: pairs(&[(nasty, nasty)]),
        settings: pairs(&[(nasty, nasty)]),
        triplets: vec![Triplet { caption: nasty.into(), ..triplet(0, nasty) }],
        command: nasty.into(),
        ..made_up_report()
    };
    let html = render(&report).unwrap();
    assert!(!html.contains("<script"));
    let page = parse(&html);
    let title = page.descendants().find(|n| n.tag_name().name() == "h1").unwrap();
    assert_eq!(title.text(), Some(nasty));
    let alt = page.descendants().find(|n| n.attribute("class") == Some("small")).unwrap().attribute("alt").unwrap();
    assert_eq!(alt, format!("{nasty}: original"));
}

#[test]
fn empty_parts_are_left_out_and_bad_pictures_are_named() {
    let html = render(&Report { title: "Nothing yet".into(), ..Report::default() }).unwrap();
    let page = parse(&html);
    assert_eq!(page.descendants().filter(|n| n.tag_name().name() == "section").count(), 0);
    let mut report = made_up_report();
    report.triplets[1].difference_png = vec![1, 2, 3];
    let message = format!("{:#}", render(&report).unwrap_err());
    assert!(message.contains("blood-orange-half.png"), "{message}");
}

#[test]
fn a_page_begins_with_what_was_given_and_found_and_its_settings_are_folded() {
    let html = render(&made_up_report()).unwrap();
    let page = parse(&html);
    let place = |id: &str| page.descendants().find(|n| n.attribute("id") == Some(id)).unwrap().range().start;
    let given = page.descendants().find(|n| n.attribute("class") == Some("given")).unwrap();
    let words: Vec<&str> = given
        .descendants()
        .filter(|n| n.is_text())
        .filter_map(|n| n.text())
        .filter(|text| !text.trim().is_empty())
        .collect();
    assert_eq!(words[..2], ["data", "fruit/ --test fruit-test/"]);
    let places =
        [given.range().start, place("summary"), place("dictionary"), place("learning"), place("reconstructions")];
    assert!(places.is_sorted(), "{places:?}");
    let tables = page.descendants().filter(|n| n.attribute("class") == Some("settings"));
    let folded =
        |n: roxmltree::Node| n.ancestors().find(|a| a.tag_name().name() == "details").map(|a| a.has_attribute("open"));
    assert_eq!(tables.map(folded).collect::<Vec<_>>(), [Some(false)]);
}

#[test]
fn backticks_in_tables_are_code() {
    let table = Table {
        title: "Variants".into(),
        note: "Against `ocsc`.".into(),
        head: vec!["variant".into(), "`beta`".into()],
        rows: vec![
            vec![Entry::plain("`--method <b>`, `OCSC_SIMD=portable`"), Entry { text: "`1`".into(), best: true }],
            vec![Entry::plain("a`b"), Entry::plain("-")],
        ],
    };
    let section = Section { id: "s".into(), tables: vec![table], ..Section::default() };
    let html = render(&Report { title: "Codes".into(), sections: vec![section], ..Report::default() }).unwrap();
    let cell = "<th scope=\"row\"><code>--method &#60;b&#62;</code>, <code>OCSC_SIMD=portable</code></th>";
    let others =
        ["<strong><code>1</code></strong>", "<th scope=\"col\"><code>beta</code></th>", "Against <code>ocsc</code>."];
    for expected in [cell].iter().chain(&others).chain(&["<th scope=\"row\">a`b</th>"]) {
        assert!(html.contains(expected), "{expected} in {html}");
    }
    parse(&html);
}
