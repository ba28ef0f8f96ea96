//! The patches of an image that look most like a given one.

use super::frame::Frame;
use crate::Real;
use crate::simd::{Kernel, dispatch};

/// Values that are compared at once.
const LANES: usize = 8;
/// Rows of a patch after which a candidate is given up if it is too far already.
const ROWS: usize = 4;

/// Finds the patches nearest to the one at `place` in squared distance, among those that begin at most `reach` rows and columns
/// away: at most `members`, the nearest first, which is the patch itself.
pub(super) struct Search<'a> {
    pub(super) frame: Frame,
    pub(super) image: &'a [f32],
    pub(super) place: [usize; 2],
    pub(super) reach: usize,
    pub(super) members: usize,
    /// Distances and places, the nearest first.
    pub(super) found: &'a mut Vec<(f32, [usize; 2])>,
    /// Room for one patch.
    pub(super) patch: &'a mut [f32],
}

impl Search<'_> {
    pub(super) fn run(self) {
        dispatch(self);
    }
}

impl Kernel for Search<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Search { frame, image, place, reach, members, found, patch } = self;
        found.clear();
        frame.cut(image, place, patch);
        let range = |at: usize, n: usize| at.saturating_sub(reach)..(at + reach + 1).min(n);
        for y in range(place[0], frame.n_rows()) {
            for x in range(place[1], frame.n_columns()) {
                let bound = if found.len() < members { f32::INFINITY } else { found[members - 1].0 };
                // The patch itself comes first whatever else is equal to it.
                let distance = if [y, x] == place { -1.0 } else { distance::<FMA>(frame, image, [y, x], patch, bound) };
                if distance < bound {
                    found.truncate(members - 1);
                    let at = found.iter().rposition(|(d, _)| *d <= distance).map_or(0, |i| i + 1);
                    found.insert(at, (distance, [y, x]));
                }
            }
        }
    }
}

/// The squared distance of the patch at a place, or of a part of it that is `bound` or more.
#[inline(always)]
fn distance<const FMA: bool>(frame: Frame, image: &[f32], [y, x]: [usize; 2], patch: &[f32], bound: f32) -> f32 {
    let ([w, h], width, pixels) = (frame.lines(), frame.image.width, frame.image.pixels());
    let mut sums = [0.0_f32; LANES];
    let mut sum = 0.0;
    let mut total = 0.0;
    for (i, row) in patch.chunks_exact(w).enumerate() {
        let other = &image[i / h * pixels + (y + i % h) * width + x..][..w];
        let (a, a_rest) = row.as_chunks::<LANES>();
        let (b, b_rest) = other.as_chunks::<LANES>();
        for (a, b) in a.iter().zip(b) {
            for j in 0..LANES {
                let d = a[j] - b[j];
                sums[j] = d.fused::<FMA>(d, sums[j]);
            }
        }
        sum += a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
        if (i + 1).is_multiple_of(ROWS) {
            total = sum + sums.iter().sum::<f32>();
            if total >= bound {
                return total;
            }
        }
    }
    if (patch.len() / w).is_multiple_of(ROWS) { total } else { sum + sums.iter().sum::<f32>() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn the_nearest_patches_are_those_of_a_full_search() {
        let image = Shape { channels: 2, depth: 1, height: 20, width: 23 };
        let data: Vec<f32> = (0..image.len()).map(|i| (i as f32 * 0.713).sin() + (i as f32 * 0.011).cos()).collect();
        for side in [3, 8, 9] {
            let patch = Shape { channels: 2, depth: 1, height: side, width: side };
            let frame = Frame::new(image, patch).unwrap();
            let (place, reach, members) = ([4, 6], 5, 7);
            let (mut found, mut room) = (Vec::new(), vec![0.0; patch.len()]);
            Search { frame, image: &data, place, reach, members, found: &mut found, patch: &mut room }.run();
            let cut = |place| {
                let mut cut = vec![0.0; patch.len()];
                frame.cut(&data, place, &mut cut);
                cut
            };
            let (own, mut all) = (cut(place), Vec::new());
            for y in 0..frame.n_rows().min(10) {
                for x in 1..frame.n_columns().min(12) {
                    let other = cut([y, x]);
                    all.push((own.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum::<f32>(), [y, x]));
                }
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let places = |list: &[(f32, [usize; 2])]| list.iter().take(members).map(|f| f.1).collect::<Vec<_>>();
            assert_eq!(places(&found), places(&all), "side {side}");
        }
    }
}
