//! A smooth guess of what was not observed.
//!
//! ```text
//! min over x   1/2 || W (x - y) ||^2 + mu/2 || L x ||^2         L the Laplacian, W = 1 where observed
//! ```
//!
//! by conjugate gradients, from averages over ever larger neighbourhoods ("push-pull"), which reach across holes of any size.

use crate::Result;
use crate::Shape;
use crate::conjugate_gradients::{Until, conjugate_gradients};
use crate::monitor::{Monitor, check_wanted};

/// mu: observed values are all but kept.
const SMOOTHNESS: f32 = 1e-3;
const ITERATIONS: usize = 60;

/// Returns the observed values of each channel, with the rest filled in.
pub(super) fn fill(shape: Shape, data: &[f32], seen: &[f32], monitor: &dyn Monitor) -> Result<Vec<f32>> {
    let mut filled = Vec::with_capacity(data.len());
    for (data, seen) in data.chunks_exact(shape.pixels()).zip(seen.chunks_exact(shape.pixels())) {
        check_wanted(monitor)?;
        filled.extend(plane(data, seen, shape.width));
    }
    Ok(filled)
}

fn plane(data: &[f32], seen: &[f32], width: usize) -> Vec<f32> {
    let mut x = pushed(data, seen, width);
    let matrix = |v: &[f32]| {
        let mut out = laplacian(&laplacian(v, width), width);
        out.iter_mut().zip(v.iter().zip(seen)).for_each(|(out, (v, w))| *out = SMOOTHNESS * *out + w * v);
        out
    };
    let residual = data.iter().zip(seen).zip(&matrix(&x)).map(|((y, w), ax)| w * y - ax).collect();
    conjugate_gradients(&mut x, residual, Until { accuracy: 0.0, iterations: ITERATIONS }, matrix);
    x.iter_mut().zip(data.iter().zip(seen)).filter(|(_, (_, w))| **w > 0.0).for_each(|(x, (y, _))| *x = *y);
    x
}

/// 4 v minus the four neighbours; beyond the border the nearest value is repeated, so that constants give zero.
fn laplacian(v: &[f32], width: usize) -> Vec<f32> {
    let height = v.len() / width;
    let mut out = vec![0.0; v.len()];
    for y in 0..height {
        let (row, above, below) =
            (&v[y * width..][..width], y.saturating_sub(1) * width, (y + 1).min(height - 1) * width);
        let (above, below) = (&v[above..][..width], &v[below..][..width]);
        for (x, out) in out[y * width..][..width].iter_mut().enumerate() {
            let sides = row[x.saturating_sub(1)] + row[(x + 1).min(width - 1)];
            *out = 4.0 * row[x] - sides - above[x] - below[x];
        }
    }
    out
}

/// Fills what is unknown with the average of a neighbourhood just large enough to know something.
fn pushed(data: &[f32], seen: &[f32], width: usize) -> Vec<f32> {
    let height = data.len() / width;
    if seen.iter().all(|w| *w > 0.0) || (height == 1 && width == 1) {
        return data.to_vec();
    }
    let (half_height, half_width) = (height.div_ceil(2), width.div_ceil(2));
    let (mut sums, mut counts) = (vec![0.0_f32; half_height * half_width], vec![0.0_f32; half_height * half_width]);
    for (i, (v, w)) in data.iter().zip(seen).enumerate() {
        let at = i / width / 2 * half_width + i % width / 2;
        sums[at] += v * w;
        counts[at] += w;
    }
    let coarse: Vec<f32> = sums.iter().zip(&counts).map(|(sum, n)| if *n > 0.0 { sum / n } else { 0.0 }).collect();
    let known: Vec<f32> = counts.iter().map(|n| f32::from(*n > 0.0)).collect();
    let coarse = pushed(&coarse, &known, half_width);
    let own = |i: usize| coarse[i / width / 2 * half_width + i % width / 2];
    data.iter().zip(seen).enumerate().map(|(i, (v, w))| if *w > 0.0 { *v } else { own(i) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Silent;

    #[test]
    fn a_ramp_is_continued_across_a_hole() {
        let (height, width) = (40, 50);
        let truth: Vec<f32> =
            (0..height * width).map(|i| 0.01 * (i % width) as f32 + 0.02 * (i / width) as f32).collect();
        let hidden = |i: usize| (12..24).contains(&(i / width)) && (20..30).contains(&(i % width));
        let seen: Vec<f32> = (0..truth.len()).map(|i| f32::from(!hidden(i))).collect();
        let data: Vec<f32> = truth.iter().zip(&seen).map(|(v, w)| v * w).collect();
        let filled = fill(Shape::image(height, width), &data, &seen, &Silent).unwrap();
        let worst = filled.iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 0.05, "{worst}");
    }
}
