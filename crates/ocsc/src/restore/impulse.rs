//! Images without values that are far off: salt and pepper, dead pixels, dust.
//!
//! The data term is the modulus, which a few values may miss by as much as they like: what a value that is far off was does not
//! matter. So the values that may be far off are taken as unobserved, and [`inpaint()`] fills them in: first all that differ much from
//! the median of their neighbourhood, of which texture has many, and then only those that differ from what was filled in.

use super::{Options, inpaint};
use crate::monitor::Monitor;
use crate::{Result, Sample};
use rayon::prelude::*;

/// Neighbourhoods reach this far in all directions.
const REACH: usize = 2;
/// As large a share of the values at both ends of the image's range is salt and pepper.
const MANY: f64 = 0.005;
/// Values that differ from the median by more than the first share of the range may be far off; they are if they differ by more than the
/// second one from what was filled in. Of salt and pepper, which are at the ends of the range, and of others.
const AT_ENDS: [f32; 2] = [0.02, 0.06];
const ANYWHERE: [f32; 2] = [0.12, 0.12];
/// Of how many values that are neither the smallest nor the largest of the image a median is taken, if there are so many.
const FEW: usize = 3;

/// Returns an image with the values that are far off replaced; others are kept.
pub(super) fn denoise(image: &Sample<f32>, options: &Options, monitor: &dyn Monitor) -> Result<Sample<f32>> {
    let (low, high) = image.extremes();
    let (low, high) = (low as f32, high as f32);
    let range = high - low;
    let medians = medians(image, low, high);
    let share = |end: f32| image.data().iter().filter(|v| **v == end).count() as f64 / image.data().len() as f64;
    let ends_only = share(low) >= MANY && share(high) >= MANY;
    let [suspect, far] = if ends_only { AT_ENDS } else { ANYWHERE };
    let is_innocent = |v: f32| ends_only && v > low && v < high;
    let near = |other: &[f32], share: f32| {
        let pairs = image.data().iter().zip(other);
        pairs.map(|(v, other)| is_innocent(*v) || (v - other).abs() <= share * range).collect::<Vec<bool>>()
    };
    let masked = |seen: Vec<bool>| Sample::masked(image.shape(), image.data().to_vec(), seen);
    let seen = near(&medians, suspect);
    if seen.iter().all(|seen| *seen) {
        return Ok(image.clone());
    }
    let filled = inpaint::inpaint(&masked(seen)?, options, monitor)?;
    inpaint::inpaint(&masked(near(filled.data(), far))?, options, monitor)
}

/// The median of every value's neighbourhood in its channel, of what is not at the end of the image's range where that is more than
/// a few values.
fn medians(image: &Sample<f32>, low: f32, high: f32) -> Vec<f32> {
    let shape = image.shape();
    let (height, width) = (shape.height, shape.width);
    let mut out = vec![0.0; shape.len()];
    out.par_chunks_exact_mut(width).enumerate().for_each(|(line, out)| {
        let (plane, y) = (line / height * shape.pixels(), line % height);
        let (mut all, mut between) = (Vec::new(), Vec::new());
        for (x, out) in out.iter_mut().enumerate() {
            all.clear();
            for v in y.saturating_sub(REACH)..(y + REACH + 1).min(height) {
                let row = &image.data()[plane + v * width..][..width];
                all.extend_from_slice(&row[x.saturating_sub(REACH)..(x + REACH + 1).min(width)]);
            }
            between.clear();
            between.extend(all.iter().copied().filter(|v| *v > low && *v < high));
            let of = if between.len() >= FEW { &mut between } else { &mut all };
            let middle = of.len() / 2;
            *out = *of.select_nth_unstable_by(middle, f32::total_cmp).1;
        }
    });
    out
}
