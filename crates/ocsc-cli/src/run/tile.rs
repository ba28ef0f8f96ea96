//! Which pieces of samples a run learns from.
//!
//! A sample is one update of the filters in a pass, so one volume or one long recording would leave filters nearly as they began.
//! Where the call says nothing, few samples that are long beside the filters are learned from in pieces. The choice depends on
//! sizes alone, and so is the same on all ranks; a checkpoint records it, and a resumed run takes what was recorded.

use crate::args::{Learn, Size};
use crate::data::Source;
use anyhow::{Context, Result};
use ocsc::checkpoint::Saved;

/// Sets of fewer samples than this are learned from in pieces, and in no more than it takes to have as many: every piece costs a
/// reading of its sample.
const FEW: usize = 50;
/// The least length of a piece, in filters: borders, where filters find less than they fit, stay a small part of it.
const FILTERS: usize = 8;
/// Pieces of signals and images are at least this long.
const SHORTEST: usize = 64;

/// Returns the size of the pieces that the call names, that the checkpoint of a resumed run recorded, or that few and large
/// samples are cut to by default; none for whole samples. `filter` finds depth, height and width of the filters.
pub(crate) fn chosen(
    args: &Learn,
    resumed: Option<&Saved<f32>>,
    source: &Source,
    filter: impl FnOnce() -> Result<[usize; 3]>,
) -> Result<Option<Size>> {
    let is_cropped = args.data.reading.crop.is_some();
    match (&args.tile, resumed) {
        (Some(tile), _) => Ok(tile.size().cloned()),
        (None, Some(saved)) if !is_cropped => recorded(saved),
        (None, None) if is_open(args) && source.len() < FEW => Ok(by_default(source, filter()?)),
        _ => Ok(None),
    }
}

/// Returns whether the call leaves it to the program what samples are learned from in.
fn is_open(args: &Learn) -> bool {
    let reading = &args.data.reading;
    // Weights of coefficients are of whole samples.
    let says = reading.crop.is_some() || reading.window.is_some() || reading.coefficient_weights.is_some();
    !says && !args.model.is_preset && !args.model.is_batch() && args.model.passes() != Some(0)
}

/// Returns the size of pieces that a checkpoint recorded.
fn recorded(saved: &Saved<f32>) -> Result<Option<Size>> {
    let tile = saved.attached.data.as_ref().and_then(|data| data.options.get("tile"));
    tile.map(|tile| tile.parse().with_context(|| format!("the checkpoint's --tile {tile}"))).transpose()
}

/// Returns the size of pieces of samples that are long beside filters of this depth, height and width: cut along the axes where they
/// are longest, until there are enough of them.
fn by_default(source: &Source, filter: [usize; 3]) -> Option<Size> {
    let rank = source.rank();
    // What cannot be read is found out later.
    let sizes: Vec<[usize; 3]> = (0..source.len()).filter_map(|i| source.size(i).ok()).collect();
    let longest: [usize; 3] = std::array::from_fn(|axis| sizes.iter().map(|size| size[axis]).max().unwrap_or(1));
    let least = filter.map(|length| (FILTERS * length).max(if rank < 3 { SHORTEST } else { 1 }));
    let mut cuts = [1; 3];
    let piece = |cuts: [usize; 3]| -> [usize; 3] { std::array::from_fn(|axis| longest[axis].div_ceil(cuts[axis])) };
    let pieces = |piece: [usize; 3]| -> usize {
        sizes.iter().map(|size| (0..3).map(|axis| size[axis].div_ceil(piece[axis].max(1))).product::<usize>()).sum()
    };
    while pieces(piece(cuts)) < FEW {
        let may_be_cut = (3 - rank..3).filter(|axis| longest[*axis] >= (cuts[*axis] + 1) * least[*axis]);
        let Some(axis) = may_be_cut.max_by_key(|axis| piece(cuts)[*axis]) else { break };
        cuts[axis] += 1;
    }
    (cuts != [1; 3]).then(|| Size::of(piece(cuts)[3 - rank..].to_vec()))
}
