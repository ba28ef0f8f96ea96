//! What the axes of an array mean: the option `--axes`, and what is assumed without it.
//!
//! The readers of `.npy`, `.npz` and `.mat` know shapes only; [`super::stack`] asks here which axis counts samples and
//! which are channels, depth, height and width.

use anyhow::{Result, bail, ensure};
use ocsc::Axes;

/// Which side of the fence an array comes from: it decides the assumed order of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convention {
    /// The last axis is contiguous, samples come first: (N, H, W).
    Numpy,
    /// The first axis is contiguous, samples come last: (H, W, N).
    Matlab,
}

/// What an array with so many axes is taken for unless `--axes` says otherwise.
fn assumed(convention: Convention, count: usize) -> Option<&'static str> {
    match (convention, count) {
        (_, 1) => Some("W"),
        (_, 2) => Some("HW"),
        (Convention::Numpy, 3) => Some("NHW"),
        (Convention::Matlab, 3) => Some("HWN"),
        _ => None,
    }
}

/// The axes of an array of shape `shape`: the given ones if they fit, else the assumed ones.
pub(super) fn choose(given: Option<&Axes>, convention: Convention, shape: &[usize]) -> Result<Axes> {
    let shown = show_shape(shape);
    ensure!(!shape.is_empty(), "a single number, not an array; expected samples with at least one axis");
    let fitting = fitting(convention, shape.len());
    if let Some(axes) = given {
        let (count, here) = (axes.count(), shape.len());
        // MATLAB drops trailing axes of length 1, so there an array may have fewer axes than it was saved with.
        let fits = count == here || (convention == Convention::Matlab && count > here);
        ensure!(fits, "an array of shape {shown} has {here} axes, but --axes {axes} names {count}; {fitting}");
        return Ok(axes.clone());
    }
    let (first, three) = match convention {
        Convention::Numpy => ("NCHW", "NHW"),
        Convention::Matlab => ("HWCN", "HWN"),
    };
    match (assumed(convention, shape.len()), shape.len()) {
        (Some(axes), _) => Ok(axes.parse()?),
        (None, 4) => {
            bail!("an array of shape {shown} needs --axes, e.g. {first}; assumed {three} has three axes; {fitting}")
        }
        (None, 5) => bail!("an array of shape {shown} needs --axes; assumed {three} has three axes; {fitting}"),
        _ => bail!("an array of shape {shown} has more than the five axes N, C, D, H, W; reshape it"),
    }
}

/// Other readings of an array that was read as this, for messages.
pub(super) fn others(axes: &Axes) -> String {
    let read = axes.to_string();
    let convention = if read.ends_with('N') { Convention::Matlab } else { Convention::Numpy };
    examples(convention, axes.count()).iter().copied().filter(|other| *other != read).collect::<Vec<_>>().join(", ")
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
