//! The report of a run: one HTML page that holds its pictures and charts and needs no network, scripts or other files.
//!
//! The caller fills a [`Report`] with text, PNG bytes from `picture.rs` and charts from `chart.rs`; the page itself is
//! `templates/report.html` with its style in `report.css`. The template is askama's, so the page reads as HTML and every
//! value in it is escaped by default; it is also well-formed XML, which the tests use.

#[cfg(test)]
mod tests;

use crate::chart::Chart;
use anyhow::{Context, Result};
use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine};

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
    /// A few figures, such as PSNR and SSIM.
    pub(crate) caption: String,
}

/// All that the page shows. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The heading.
    pub(crate) title: String,
    /// One sentence under it: what was learned from what, and how it went.
    pub(crate) lead: String,
    /// The results, (name, value with its unit).
    pub(crate) summary: Vec<(String, String)>,
    /// The options of the run, (name, value).
    pub(crate) settings: Vec<(String, String)>,
    /// PNG of the dictionary, as `picture::dictionary_mosaic` draws it.
    pub(crate) dictionary_png: Vec<u8>,
    /// Charts of the run, as `record::objective_charts` makes them.
    pub(crate) charts: Vec<Chart>,
    /// Held-out samples.
    pub(crate) triplets: Vec<Triplet>,
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
}

struct Views<'a> {
    name: &'a str,
    caption: &'a str,
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
        let reader = image::ImageReader::with_format(std::io::Cursor::new(png), image::ImageFormat::Png);
        let (width, height) = reader.into_dimensions().context("expected the bytes of a PNG picture")?;
        let uri = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png));
        Ok(Embedded { uri, width, height, small: width < SMALL })
    }
}

impl<'a> Views<'a> {
    fn new(triplet: &'a Triplet) -> Result<Views<'a>> {
        let embed = |png: &[u8]| Embedded::new(png).with_context(|| format!("cannot show {}", triplet.name));
        let views = [
            ("original", embed(&triplet.original_png)?),
            ("reconstruction", embed(&triplet.reconstruction_png)?),
            ("difference", embed(&triplet.difference_png)?),
        ];
        Ok(Views { name: &triplet.name, caption: &triplet.caption, views })
    }
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
        charts: report.charts.iter().map(|chart| (chart.title.as_str(), chart.to_svg())).collect(),
        triplets: report.triplets.iter().map(Views::new).collect::<Result<_>>()?,
    };
    page.render().context("cannot render the report")
}
