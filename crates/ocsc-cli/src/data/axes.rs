//! What the axes of an array mean: the option `--axes`, and what is assumed without it.
//!
//! The readers of `.npy`, `.npz` and `.mat` know shapes only; [`super::stack`] asks here which axis counts samples and
//! which are channels, depth, height and width.

use anyhow::{Result, bail, ensure};
use std::fmt;
use std::str::FromStr;

/// Every letter, in the order in which an image library would write them.
const LETTERS: &str = "NCDHW";

/// The meaning of each axis of an array, first to last: samples, channels, depth, height, width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axes(String);

/// Which side of the fence an array comes from: it decides the assumed order of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convention {
    /// The last axis is contiguous, samples come first: (N, H, W).
    Numpy,
    /// The first axis is contiguous, samples come last: (H, W, N).
    Matlab,
}

impl FromStr for Axes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let letters = text.trim().to_ascii_uppercase();
        let help = "expected letters of N (samples), C (channels), D (depth), H (height), W (width), each at most once, \
                    in the order of the array's axes, e.g. NHW or NCHW";
        for (i, letter) in letters.char_indices() {
            ensure!(LETTERS.contains(letter), "axes `{text}`: `{letter}` is not an axis; {help}");
            ensure!(!letters[..i].contains(letter), "axes `{text}`: `{letter}` occurs twice; {help}");
        }
        ensure!(letters.contains('W'), "axes `{text}`: W is missing; {help}");
        Ok(Axes(letters))
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Axes {
    /// What an array with `rank` axes is taken for unless `--axes` says otherwise.
    fn assumed(convention: Convention, rank: usize) -> Option<Self> {
        let letters = match (convention, rank) {
            (_, 1) => "W",
            (_, 2) => "HW",
            (Convention::Numpy, 3) => "NHW",
            (Convention::Matlab, 3) => "HWN",
            _ => return None,
        };
        Some(Axes(letters.to_owned()))
    }

    /// The axes of an array of shape `shape`: the given ones if they fit, else the assumed ones.
    pub(crate) fn choose(given: Option<&Axes>, convention: Convention, shape: &[usize]) -> Result<Self> {
        let shown = show_shape(shape);
        ensure!(!shape.is_empty(), "a single number, not an array; expected samples with at least one axis");
        if let Some(axes) = given {
            // MATLAB drops trailing axes of length 1, so there an array may have fewer axes than it was saved with.
            let fits = axes.0.len() == shape.len() || (convention == Convention::Matlab && axes.0.len() > shape.len());
            ensure!(
                fits,
                "an array of shape {shown} has {} axes, but --axes {axes} names {}; {}",
                shape.len(),
                axes.0.len(),
                fitting(convention, shape.len())
            );
            return Ok(axes.clone());
        }
        let (first, assumed) = match convention {
            Convention::Numpy => ("NCHW", "NHW"),
            Convention::Matlab => ("HWCN", "HWN"),
        };
        let fitting = fitting(convention, shape.len());
        match (Axes::assumed(convention, shape.len()), shape.len()) {
            (Some(axes), _) => Ok(axes),
            (None, 4) => bail!(
                "an array of shape {shown} needs --axes, e.g. {first}; assumed {assumed} has three axes; {fitting}"
            ),
            (None, 5) => bail!("an array of shape {shown} needs --axes; assumed {assumed} has three axes; {fitting}"),
            _ => bail!("an array of shape {shown} has more than the five axes N, C, D, H, W; reshape it"),
        }
    }

    /// Other readings of an array that was read as this, for messages.
    pub(crate) fn others(&self) -> String {
        let matlab = self.0.ends_with('N');
        let examples = examples(if matlab { Convention::Matlab } else { Convention::Numpy }, self.0.len());
        examples.iter().copied().filter(|axes| *axes != self.0).collect::<Vec<_>>().join(", ")
    }

    /// These axes for a mask with so many: one mask may stand for all channels, or for all samples, or for both.
    pub(crate) fn of_mask(&self, rank: usize) -> Self {
        let without = |letters: &str| Axes(self.0.chars().filter(|letter| !letters.contains(*letter)).collect());
        let fitting = ["", "C", "N", "CN"].into_iter().map(without).find(|axes| axes.0.len() == rank);
        fitting.unwrap_or_else(|| self.clone())
    }

    /// The place of `letter` among the array's axes.
    pub(crate) fn place(&self, letter: char) -> Option<usize> {
        self.0.find(letter)
    }

    /// How many spatial axes a user of these axes sees: 3 with a depth, 2 with a height, else 1.
    pub(crate) fn rank(&self) -> usize {
        match (self.place('D'), self.place('H')) {
            (Some(_), _) => 3,
            (None, Some(_)) => 2,
            (None, None) => 1,
        }
    }
}

/// What people mean by arrays of so many axes.
fn examples(convention: Convention, rank: usize) -> &'static [&'static str] {
    match (convention, rank) {
        (_, 1) => &["W"],
        (Convention::Numpy, 2) => &["HW", "NW", "CW"],
        (Convention::Numpy, 3) => &["NHW", "CHW", "HWC", "DHW", "NCW"],
        (Convention::Numpy, 4) => &["NCHW", "NHWC", "NDHW", "CDHW"],
        (Convention::Numpy, 5) => &["NCDHW", "NDHWC"],
        (Convention::Matlab, 2) => &["HW", "WN", "WC"],
        (Convention::Matlab, 3) => &["HWN", "HWC", "HWD", "WCN"],
        (Convention::Matlab, 4) => &["HWCN", "HWDN"],
        (Convention::Matlab, 5) => &["HWDCN"],
        _ => &[],
    }
}

/// The same as part of a sentence.
fn fitting(convention: Convention, rank: usize) -> String {
    match examples(convention, rank) {
        [] => "N, C, D, H, W are all there is".to_owned(),
        [sole] => format!("--axes {sole} would fit"),
        several => format!("any of --axes {} would fit", several.join(", ")),
    }
}

/// `(10, 100, 100)`, or `(7,)` as Python writes it.
pub(crate) fn show_shape(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
