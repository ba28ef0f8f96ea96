//! Gaussian windows, and weighted local means of an image under them.
//!
//! An n x n Gaussian is the outer product of two Gaussians of length n, and so is its normalised version; so a local
//! mean costs 2 n products a pixel instead of n^2. The neighbours are the contrast normalisation and the edge taper,
//! which choose how the image continues beyond its border, and the structural similarity, which discards the border. The
//! low-pass split continues its signals here too.

/// `length` (odd) values proportional to exp(-t^2 / (2 sigma^2)), t from -(length-1)/2, scaled to the sum 1.
pub(crate) fn gaussian(length: usize, sigma: f64) -> Vec<f64> {
    let radius = (length / 2) as f64;
    let values: Vec<f64> = (0..length).map(|i| (-(i as f64 - radius).powi(2) / (2.0 * sigma * sigma)).exp()).collect();
    let sum: f64 = values.iter().sum();
    values.into_iter().map(|v| v / sum).collect()
}

/// How a line of n values continues on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Border {
    /// `c b | a b c | b a`: reflected about the outermost values, which are not repeated; period 2 (n - 1).
    Mirror,
    /// `b a | a b c | c b`: reflected with the outermost values repeated; period 2 n.
    Symmetric,
    /// `b c | a b c | a b`: period n.
    Circular,
}

impl Border {
    /// The index in 0..n that position `i` repeats. Reduces modulo the period first, so that a line may be shorter than
    /// the window that looks beyond it, down to a single value.
    pub(crate) fn index(self, i: isize, n: usize) -> usize {
        let period = match self {
            Border::Mirror => 2 * (n - 1).max(1),
            Border::Symmetric => 2 * n,
            Border::Circular => n,
        };
        let i = i.rem_euclid(period as isize) as usize;
        match self {
            // On a line of one value the period above is 2 instead of 0, and both positions are that value.
            Border::Mirror if n == 1 => 0,
            Border::Mirror if i >= n => period - i,
            Border::Symmetric if i >= n => period - 1 - i,
            _ => i,
        }
    }
}

/// The mean of a (height, width) `plane` around every pixel, weighted by the outer product of `taps` (odd length,
/// symmetric) with itself: along rows first, then along columns.
pub(crate) fn local_mean(plane: &[f64], width: usize, taps: &[f64], border: Border) -> Vec<f64> {
    let mut means = RowMeans::new(plane.len() / width, width, taps, border);
    let mut out = vec![0.0; plane.len()];
    for (y, row) in out.chunks_mut(width).enumerate() {
        means.row(y, |y, x| plane[y * width + x], row);
    }
    out
}

/// The same, row by row from the first to the last, with memory for as many rows as there are taps. Rows of the plane may
/// change once the mean of their own row was made.
pub(crate) struct RowMeans<'a> {
    height: usize,
    taps: &'a [f64],
    border: Border,
    /// The plane's columns, continued on both sides, and a row of them.
    columns: Vec<usize>,
    line: Vec<f64>,
    /// Means along the row of this number; the first rows of a circle are needed again at its end.
    recent: Vec<(Option<usize>, Vec<f64>)>,
    first: Vec<(Option<usize>, Vec<f64>)>,
}

impl<'a> RowMeans<'a> {
    pub(crate) fn new(height: usize, width: usize, taps: &'a [f64], border: Border) -> Self {
        let radius = (taps.len() / 2) as isize;
        let columns: Vec<usize> = (-radius..width as isize + radius).map(|x| border.index(x, width)).collect();
        let rows = |n: usize| vec![(None, vec![0.0; width]); n];
        let again = if matches!(border, Border::Circular) { taps.len() } else { 0 };
        RowMeans {
            height,
            taps,
            border,
            line: vec![0.0; columns.len()],
            columns,
            recent: rows(taps.len()),
            first: rows(again.min(height)),
        }
    }

    /// The mean around every pixel of row `y`; `plane` gives a value of the plane by its row and column.
    pub(crate) fn row(&mut self, y: usize, plane: impl Fn(usize, usize) -> f64, out: &mut [f64]) {
        out.fill(0.0);
        let radius = (self.taps.len() / 2) as isize;
        for (t, tap) in self.taps.iter().enumerate() {
            let from = self.border.index((y + t) as isize - radius, self.height);
            let slots = self.recent.len();
            let (number, along) = match self.first.get_mut(from) {
                Some(kept) => kept,
                None => &mut self.recent[from % slots],
            };
            if *number != Some(from) {
                self.line.iter_mut().zip(&self.columns).for_each(|(value, x)| *value = plane(from, *x));
                along.fill(0.0);
                for (t, tap) in self.taps.iter().enumerate() {
                    axpy(along, *tap, &self.line[t..t + out.len()]);
                }
                *number = Some(from);
            }
            axpy(out, *tap, along);
        }
    }
}

/// y += a x.
fn axpy(y: &mut [f64], a: f64, x: &[f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The index of position `i`, found by walking: reflect or wrap until inside.
    fn walked(border: Border, mut i: isize, n: isize) -> isize {
        while !(0..n).contains(&i) {
            i = match border {
                Border::Mirror if n == 1 => 0,
                Border::Mirror if i < 0 => -i,
                Border::Mirror => 2 * (n - 1) - i,
                Border::Symmetric if i < 0 => -1 - i,
                Border::Symmetric => 2 * n - 1 - i,
                Border::Circular if i < 0 => i + n,
                Border::Circular => i - n,
            };
        }
        i
    }

    /// The definition: a two-dimensional window, normalised as a whole.
    fn naive(plane: &[f64], width: usize, length: usize, sigma: f64, border: Border) -> Vec<f64> {
        let (h, w, r) = ((plane.len() / width) as isize, width as isize, (length / 2) as isize);
        let weight = |i: isize, j: isize| (-((i * i + j * j) as f64) / (2.0 * sigma * sigma)).exp();
        let mut means = Vec::new();
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            let (mut sum, mut weights) = (0.0, 0.0);
            for (i, j) in (-r..=r).flat_map(|i| (-r..=r).map(move |j| (i, j))) {
                let from = walked(border, y + i, h) * w + walked(border, x + j, w);
                sum += weight(i, j) * plane[from as usize];
                weights += weight(i, j);
            }
            means.push(sum / weights);
        }
        means
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn separable_equals_two_dimensional(
            (height, width) in (1usize..24, 1usize..24),
            values in prop::collection::vec(-1.0..1.0f64, 24 * 24),
            (length, sigma) in prop::sample::select(vec![(13, 3.0 * 1.591), (11, 11.0 / 3.0), (11, 1.5), (1, 1.0)]),
            border in prop::sample::select(vec![Border::Mirror, Border::Symmetric, Border::Circular]),
        ) {
            let plane = &values[..height * width];
            let fast = local_mean(plane, width, &gaussian(length, sigma), border);
            for (a, b) in fast.iter().zip(naive(plane, width, length, sigma, border)) {
                prop_assert!((a - b).abs() <= 1e-14, "{a} {b}");
            }
        }
    }
}
