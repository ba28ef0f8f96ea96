//! The report of a run, or of many: one HTML page that holds its pictures and charts and needs no network, scripts or other
//! files.
//!
//! The caller fills a [`Report`] with text, PNG bytes from `picture.rs` and charts from `chart.rs`, and for every experiment
//! of several runs a [`Section`]; [`write()`] puts the page on disk, with its figures and tables as files of their own beside
//! it. The page itself is `templates/report.html` with its style in `report.css`. The template is askama's, so the page reads as HTML and every
//! value in it is escaped by default; it is also well-formed XML, which the tests use.

pub(crate) mod chart;
mod letters;
mod markup;
pub(crate) mod objective;
pub(crate) mod picture;
mod section;
#[cfg(test)]
mod tests;
pub(crate) mod triplet;

pub(crate) use section::{Entry, Section, Table};

use crate::report::chart::Chart;
use crate::run::outputs::Outputs;
use anyhow::{Context, Result};
use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine};
use ocsc::replace::write_file;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Pictures narrower than this are magnified with hard pixels rather than blurred.
const SMALL: u32 = 200;

/// A held-out sample beside what its code gives back.
#[derive(Clone, Debug)]
pub(crate) struct Triplet {
    /// What to call the sample, such as its file name.
    pub(crate) name: String,
    /// PNG of the sample.
    pub(crate) original_png: Vec<u8>,
    /// PNG of its reconstruction.
    pub(crate) reconstruction_png: Vec<u8>,
    /// PNG of the original minus the reconstruction, as `picture::difference` draws it.
    pub(crate) difference_png: Vec<u8>,
    /// The difference that is drawn in full colour, where that is known.
    pub(crate) scale: Option<f64>,
    /// A few figures, such as PSNR and SSIM.
    pub(crate) caption: String,
}

/// What the pictures of a triplet are called.
const CODED: [&str; 3] = ["original", "reconstruction", "difference"];
const RESTORED: [&str; 3] = ["before", "after", "difference"];

/// All that the page shows. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The heading.
    pub(crate) title: String,
    /// One sentence under it: what was learned from what, and how it went.
    pub(crate) lead: String,
    /// The results, (name, value with its unit).
    pub(crate) summary: Vec<(String, String)>,
    /// The data and the options that were given, (what, as typed).
    pub(crate) given: Vec<(String, String)>,
    /// All settings of the run, (name, value); they are folded.
    pub(crate) settings: Vec<(String, String)>,
    /// PNG of the dictionary, as `picture::dictionary_mosaic` draws it.
    pub(crate) dictionary_png: Vec<u8>,
    /// Charts of the run, as `record::objective_charts` makes them.
    pub(crate) charts: Vec<Chart>,
    /// Samples beside what their codes give back.
    pub(crate) triplets: Vec<Triplet>,
    /// Whether the run learned from these samples; else they were held out.
    pub(crate) are_learned: bool,
    /// Images before and after they were restored.
    pub(crate) restored: Vec<Triplet>,
    /// One per experiment.
    pub(crate) sections: Vec<Section>,
    /// The command that made the run.
    pub(crate) command: String,
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    version: &'static str,
    report: &'a Report,
    dictionary: Option<Embedded>,
    /// (title, SVG).
    charts: Vec<(&'a str, String)>,
    triplets: Vec<Views<'a>>,
    restored: Vec<Views<'a>>,
    sections: Vec<Part<'a>>,
}

/// A section with its drawings made.
struct Part<'a> {
    section: &'a Section,
    charts: Vec<(&'a str, String)>,
    /// (caption, picture).
    mosaics: Vec<(&'a str, Embedded)>,
    triplets: Vec<Views<'a>>,
}

impl<'a> Part<'a> {
    fn new(section: &'a Section) -> Result<Part<'a>> {
        let embed = |(caption, png): &'a (String, Vec<u8>)| {
            let picture = Embedded::new(png).with_context(|| format!("cannot show {caption}"))?;
            Ok((caption.as_str(), picture))
        };
        Ok(Part {
            section,
            charts: drawn(&section.charts),
            mosaics: section.mosaics.iter().map(embed).collect::<Result<_>>()?,
            triplets: views(&section.triplets, CODED)?,
        })
    }
}

struct Views<'a> {
    name: &'a str,
    caption: &'a str,
    /// The ends of the scale of differences.
    scale: Option<[String; 2]>,
    /// (what it is, picture).
    views: [(&'static str, Embedded); 3],
}

/// A picture inside the page; its size keeps the layout still while the page loads.
struct Embedded {
    uri: String,
    width: u32,
    height: u32,
    small: bool,
}

impl Embedded {
    fn new(png: &[u8]) -> Result<Embedded> {
        // Width and height begin the first chunk, which follows 8 bytes of signature and 8 of its own length and name.
        let number = |at: usize| Some(u32::from_be_bytes(*png.get(at..)?.first_chunk()?));
        let size = number(16).zip(number(20)).filter(|_| png.starts_with(b"\x89PNG"));
        let (width, height) = size.context("expected the bytes of a PNG picture")?;
        let uri = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
        Ok(Embedded { uri, width, height, small: width < SMALL })
    }
}

impl<'a> Views<'a> {
    fn new(triplet: &'a Triplet, [original, reconstruction, difference]: [&'static str; 3]) -> Result<Views<'a>> {
        let embed = |png: &[u8]| Embedded::new(png).with_context(|| format!("cannot show {}", triplet.name));
        let views = [
            (original, embed(&triplet.original_png)?),
            (reconstruction, embed(&triplet.reconstruction_png)?),
            (difference, embed(&triplet.difference_png)?),
        ];
        let scale = triplet.scale.map(|scale| [format!("−{scale:.3}"), format!("+{scale:.3}")]);
        Ok(Views { name: &triplet.name, caption: &triplet.caption, scale, views })
    }
}

fn views<'a>(triplets: &'a [Triplet], names: [&'static str; 3]) -> Result<Vec<Views<'a>>> {
    triplets.iter().map(|triplet| Views::new(triplet, names)).collect()
}

/// The page as HTML.
pub(crate) fn render(report: &Report) -> Result<String> {
    let dictionary = match report.dictionary_png.as_slice() {
        [] => None,
        png => Some(Embedded::new(png).context("cannot show the dictionary")?),
    };
    let page = Page {
        version: env!("CARGO_PKG_VERSION"),
        report,
        dictionary,
        charts: drawn(&report.charts),
        triplets: views(&report.triplets, CODED)?,
        restored: views(&report.restored, RESTORED)?,
        sections: report.sections.iter().map(Part::new).collect::<Result<_>>()?,
    };
    page.render().context("cannot render the report")
}

/// Writes the page, and beside it a folder of the same name, with every figure as SVG and CSV and every table as CSV.
/// None of them may be one of the command's other `files`. Returns the folder.
pub(crate) fn write(path: &Path, report: &Report, files: &mut Outputs) -> Result<PathBuf> {
    let name = path.file_stem().unwrap_or_default().display();
    let folder = path.with_file_name(format!("{name}-figures"));
    let mut texts = Vec::new();
    for section in &report.sections {
        let file = |title: &str, ending: &str| folder.join(format!("{}-{}.{ending}", section.id, slug(title)));
        for chart in section.charts.iter().filter(|chart| chart.has_points()) {
            texts.push((file(&chart.title, "svg"), chart.to_svg_file()));
            texts.push((file(&chart.title, "csv"), chart.to_csv()));
        }
        for table in &section.tables {
            texts.push((file(&format!("table {}", table.title), "csv"), table.to_csv()));
        }
    }
    texts.push((path.to_owned(), render(report)?));
    // Figures of equal titles share a file; the last one stays.
    for path in texts.iter().map(|(path, _)| path).collect::<BTreeSet<_>>() {
        files.write("--out", path)?;
    }
    if texts.len() > 1 {
        std::fs::create_dir_all(&folder).with_context(|| format!("{}: cannot make this folder", folder.display()))?;
    }
    for (path, text) in texts {
        write_file(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(folder)
}

/// Words as a part of a file name: `Test objective` as `test-objective`.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn drawn(charts: &[Chart]) -> Vec<(&str, String)> {
    charts.iter().filter(|chart| chart.has_points()).map(|chart| (chart.title.as_str(), chart.to_svg())).collect()
}
