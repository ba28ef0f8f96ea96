//! `cargo xtask gallery`: learns from every kind of signal in the shared data, draws the filters, and writes
//! `docs/gallery.md` with the commands and what they gave.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// One picture of the gallery.
struct Entry {
    name: &'static str,
    title: &'static str,
    what: &'static str,
    /// Relative to the shared data.
    data: &'static str,
    /// What the result is evaluated on, if not what was learned from.
    test: Option<&'static str>,
    /// How the data are read, for `learn` and `evaluate`.
    reading: &'static str,
    learn: &'static str,
}

const ENTRIES: [Entry; 7] = [
    Entry {
        name: "colour",
        title: "Colour photographs",
        what: "30 photos of flowers at their own sizes, a piece of 128 x 128 from each in every pass; tested on the middle of \
               10 others. Filters span the three colours; what is smooth was split off before.",
        data: "flower/train",
        test: Some("flower/test"),
        reading: "--crop 128",
        learn: "--preprocess lowpass,scale --filters 64 --size 9 --beta-ratio 0.15 --passes 6",
    },
    Entry {
        name: "gray",
        title: "Gray photographs, as in the paper",
        what: "The same photos, gray and contrast-normalised.",
        data: "flower/train",
        test: Some("flower/test"),
        reading: "--crop 128",
        learn: "--preset paper --passes 6",
    },
    Entry {
        name: "ecg",
        title: "An electrocardiogram",
        what: "100 s at 360 Hz, cut into windows of 10 s. Each filter is half a second long.",
        data: "signals/ecg_360hz.npy",
        test: None,
        reading: "--axes W --window 3600",
        learn: "--preprocess lowpass=2000,scale --boundary free --filters 12 --size 180 --beta-ratio 0.1 --passes 20",
    },
    Entry {
        name: "lfp",
        title: "A local field potential",
        what: "200,000 values from the striatum, in windows of 5,000.",
        data: "signals/lfp_striatum.npy",
        test: None,
        reading: "--axes CW --window 5000",
        learn: "--preprocess mean,scale --boundary free --filters 12 --size 128 --beta-ratio 0.1 --passes 3",
    },
    Entry {
        name: "piano",
        title: "Piano notes",
        what: "Seven notes, one file each, brought to 8 kHz. Each filter is 64 ms of sound.",
        data: "audio/[CEG][345].wav",
        test: None,
        reading: "--rate 8000 --window 1s",
        learn: "--preprocess scale --filters 14 --size 512 --beta-ratio 0.1 --init patches --passes 4",
    },
    Entry {
        name: "cube",
        title: "A hyperspectral cube",
        what: "Samson, 16 bands of 95 x 95: filters span all bands. Three groups of bands are shown as red, green and blue.",
        data: "hyperspectral/samson_16bands.npy",
        test: None,
        reading: "--axes CHW",
        learn: "--preprocess mean,scale --boundary free --filters 25 --size 7 --beta-ratio 0.05 --init patches --passes 40",
    },
    Entry {
        name: "video",
        title: "Video",
        what: "48 frames of 144 x 176: filters of 5 frames, 9 x 9 each. A strip of five frames is a filter.",
        data: "video/carphone_gray.npy",
        test: None,
        reading: "--axes DHW --crop 24x64x64",
        learn: "--preprocess lowpass,scale --boundary free --filters 16 --size 5x9x9 --beta-ratio 0.15 --init patches --passes 40",
    },
];

/// Learns, draws and writes the page; with names, only those pictures, and no page.
pub(crate) fn run(only: &[String]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = crate::data();
    ensure!(data.exists(), "the gallery needs the shared data; {} is absent (set OCSC_DATA)", data.display());
    crate::step("release build", crate::cargo(&["build", "--release"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
    let (program, pictures) = (target.join("release/ocsc"), root.join("docs/gallery"));
    std::fs::create_dir_all(&pictures)?;
    let folder = std::env::temp_dir().join(format!("ocsc-gallery-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut page = String::from(PREFACE);
    for entry in ENTRIES.iter().filter(|entry| only.is_empty() || only.iter().any(|name| name == entry.name)) {
        crate::say(&format!("== {}", entry.title));
        let model = folder.join(format!("{}.safetensors", entry.name));
        let call = |words: &[&str], json: bool| -> Result<Value> {
            let output = Command::new(&program).args(words).arg("--quiet").current_dir(&data).output()?;
            ensure!(output.status.success(), "{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
            if json { Ok(serde_json::from_slice(&output.stdout)?) } else { Ok(Value::Null) }
        };
        let path = model.to_str().context("a temporary folder whose name is text")?;
        let split = |text: &'static str| text.split_whitespace();
        let learn: Vec<&str> =
            ["learn", entry.data].into_iter().chain(split(entry.reading)).chain(split(entry.learn)).collect();
        let learned = call(&[&learn[..], &["--out", path, "--json"]].concat(), true)?;
        let test = entry.test.unwrap_or(entry.data);
        let evaluate: Vec<&str> =
            ["evaluate", path, test].into_iter().chain(split(entry.reading)).chain(["--json"]).collect();
        let evaluated = call(&evaluate, true)?;
        let picture = pictures.join(format!("{}.png", entry.name));
        call(&["show", path, "--out", picture.to_str().context("a folder whose name is text")?], false)?;
        section(&mut page, entry, &learned, &evaluated)?;
    }
    std::fs::remove_dir_all(&folder)?;
    if only.is_empty() {
        std::fs::write(root.join("docs/gallery.md"), page)?;
    }
    Ok(())
}

const PREFACE: &str = "# Filters from every kind of signal

Filters learned from every kind of signal in the shared data, by the commands shown, on two cores. This page and its pictures
are written by `cargo xtask gallery`. PSNR is given where the codes live, after preprocessing, and where the data came from,
each with its peak; samples are tested with the gap of `ocsc evaluate`, 0.3 %.
";

fn section(page: &mut String, entry: &Entry, learned: &Value, evaluated: &Value) -> Result<()> {
    let number = |value: &Value, name: &str| -> Result<f64> {
        value[name].as_f64().with_context(|| format!("{}: no {name} in {value}", entry.name))
    };
    let (e, name) = (evaluated, entry.name);
    writeln!(page, "\n## {}\n\n{}\n", entry.title, entry.what.split_whitespace().collect::<Vec<_>>().join(" "))?;
    writeln!(page, "```sh\nocsc learn {} {} {} --out model.safetensors", entry.data, entry.reading, entry.learn)?;
    let test = entry.test.unwrap_or(entry.data);
    writeln!(
        page,
        "ocsc evaluate model.safetensors {test} {}\nocsc show model.safetensors --out {name}.png\n```\n",
        entry.reading
    )?;
    writeln!(page, "![{}](gallery/{name}.png)\n", entry.title)?;
    let Some(samples) = learned["samples"].as_u64() else { bail!("{name}: no samples in {learned}") };
    write!(
        page,
        "Learned from {samples} samples in {:.1} s, at most {:.0} MB. ",
        number(learned, "seconds")?,
        number(learned, "peak_rss_bytes")? / 1e6
    )?;
    write!(page, "PSNR {:.1} dB (peak {:.3}) after preprocessing", number(e, "psnr")?, number(e, "psnr_peak")?)?;
    if let Some(psnr) = e["psnr_original"].as_f64() {
        write!(page, ", {psnr:.1} dB (peak {:.3}) in the original domain", number(e, "psnr_original_peak")?)?;
    }
    writeln!(page, ", with {:.0} non-zeros per sample.", number(e, "nonzeros")?)?;
    Ok(())
}
