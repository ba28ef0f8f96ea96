//! What the page shows at one moment, as it is sent: plain numbers, and pictures as bytes in base64.

use crate::curve::TestPoint;
use serde::Serialize;

/// All that the page shows at one moment. Parts that are empty are left out of the page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Frame {
    /// What the page is about.
    pub about: About,
    /// Where the run is.
    pub now: Option<Now>,
    /// The training curve: samples, learning seconds, mean objective, worst gap.
    pub train: Vec<[f64; 4]>,
    /// The evaluations of the test set.
    pub test: Vec<TestPoint>,
    /// The filters.
    pub filters: Option<Filters>,
    /// The newest sample, or some of the codes of a folder.
    pub samples: Vec<SampleView>,
    /// Non-zeros of each filter in a code, a mean, of codes whose filters are not known.
    pub used: Vec<f64>,
    /// A table of codes.
    pub codes: Vec<CodeRow>,
    /// How the run ended.
    pub ended: Option<String>,
}

/// What the page is about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct About {
    /// The heading.
    pub title: String,
    /// Settings and data, (name, value).
    pub rows: Vec<(String, String)>,
}

/// Where a run is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Now {
    /// Finished passes, and how many there will be.
    pub pass: usize,
    /// All passes, where that is known.
    pub passes: Option<usize>,
    /// Samples learned from or passed over.
    pub samples: usize,
    /// How many there will be, where that is known.
    pub total: Option<usize>,
    /// Steps of the learner.
    pub step: usize,
    /// Learning time.
    pub seconds: f64,
    /// Samples per second of late.
    pub rate: Option<f64>,
    /// Seconds that are left at this rate.
    pub left: Option<f64>,
    /// Mean objective of the last step.
    pub objective: Option<f64>,
    /// Worst relative gap of the last step.
    pub gap: Option<f64>,
    /// Worst relative gap of the pass so far.
    pub worst_gap: Option<f64>,
    /// Mean non-zeros of a code in the last step, and as a share of the values.
    pub nonzeros: Option<f64>,
    /// The non-zeros as a share of the values.
    pub share: Option<f64>,
    /// Relative change of the filters in the last update.
    pub change: Option<f64>,
    /// Samples that could not be used, each counted once.
    pub skipped: usize,
    /// Memory that the process holds.
    pub memory: Option<u64>,
    /// The most it has held.
    pub peak_memory: Option<u64>,
}

/// Filters to draw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Filters {
    /// How many there are; those that are drawn may be fewer.
    pub of: usize,
    /// Channels, depth, height and width as drawn.
    pub shape: [usize; 4],
    /// What they are called: channels, size.
    pub size: String,
    /// Their numbers.
    pub number: Vec<usize>,
    /// Base64 of signed bytes, filter after filter, each in parts of its largest magnitude.
    pub values: String,
    /// The variance of each.
    pub variance: Vec<f64>,
    /// The norm of each.
    pub norm: Vec<f64>,
    /// Non-zeros of each in a sample, a mean; empty if nobody counted.
    pub used: Vec<f64>,
}

/// A sample beside its reconstruction and their difference.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SampleView {
    /// What it is called.
    pub name: String,
    /// What is drawn of it, such as `100x100`, or a part of a signal.
    pub part: String,
    /// Whether it is a line; else pixels.
    pub is_signal: bool,
    /// Bytes to a pixel: 1 or 3.
    pub channels: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// What black stands for.
    pub low: f64,
    /// What white stands for.
    pub high: f64,
    /// What full colour of a difference stands for.
    pub scale: f64,
    /// Base64 of bytes from `low` to `high`; none if only the code is known.
    pub original: Option<String>,
    /// The same of the reconstruction.
    pub reconstruction: String,
    /// Base64 of signed bytes, in parts of `scale`.
    pub difference: Option<String>,
    /// Non-zeros of its code.
    pub nonzeros: usize,
    /// Its relative gap.
    pub gap: Option<f64>,
    /// Its objective.
    pub objective: Option<f64>,
}

/// One code of a folder.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CodeRow {
    /// The file's name.
    pub name: String,
    /// Its non-zeros.
    pub nonzeros: usize,
    /// The sum of their magnitudes.
    pub l1: f64,
    /// The objective that the file records.
    pub objective: Option<f64>,
    /// The relative gap that the file records.
    pub gap: Option<f64>,
}
