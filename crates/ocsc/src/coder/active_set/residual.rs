//! The residual from the atoms, and the certificate that it gives.
//!
//! The canvas holds r rounded to T. The dual point is made of this rounded r, and all that is said about it (x.r, r.r and the
//! largest correlation) is computed from it in f64; the primal objective comes from the residual before rounding. So no
//! rounding of the descent, the residual or the correlation kernel can falsify the gap.

use super::ActiveSet;
use super::bands::Bands;
use super::descend::Active;
use super::frame::{Frame, LANES};
use super::list::List;
use crate::config::Boundary;
use crate::{Real, Sample};
use rayon::prelude::*;

/// Sums over the pixels that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// 1/2 ||x - D z||^2.
    pub(super) data_term: f64,
    /// x.r and r.r of the rounded residual.
    pub(super) x_r: f64,
    pub(super) r_r: f64,
    /// max |r|.
    pub(super) peak: f64,
}

impl<T: Real> ActiveSet<T> {
    /// canvas <- x - D z, summed in f64, band by band.
    pub(super) fn rebuild(
        &self,
        frame: &Frame,
        bands: &Bands,
        sample: &Sample<T>,
        list: &List<T>,
        mut canvas: &mut [T],
    ) -> Sums {
        let mut parts = Vec::with_capacity(bands.len());
        for band in 0..bands.len() {
            let (mine, rest) = canvas.split_at_mut(bands.own(band).len());
            parts.push(mine);
            canvas = rest;
        }
        let sums: Vec<Sums> = parts
            .into_par_iter()
            .enumerate()
            .map(|(band, canvas)| {
                let mut exact = vec![0.0; canvas.len()];
                let start = bands.own(band).start;
                for (row, out) in exact.chunks_exact_mut(frame.stride).enumerate() {
                    if let Some(x) = frame.source(start / frame.stride + row, sample.data()) {
                        out[frame.first_column()..][..x.len()].iter_mut().zip(x).for_each(|(o, x)| *o = x.f64());
                    }
                }
                for near in bands.before(band).into_iter().chain([band]) {
                    list.band(bands, near).iter().for_each(|a| self.subtract(frame, a, start, &mut exact));
                }
                let rows = exact.chunks_exact_mut(frame.stride).zip(canvas.chunks_exact_mut(frame.stride));
                let numbered = rows.enumerate().map(|(row, (exact, out))| (start / frame.stride + row, exact, out));
                numbered.fold(Sums::default(), |sums, (row, exact, out)| {
                    finish_row(frame, row, frame.source(row, sample.data()), exact, out, sums)
                })
            })
            .collect();
        sums.iter().fold(Sums::default(), |a, b| Sums {
            data_term: a.data_term + b.data_term,
            x_r: a.x_r + b.x_r,
            r_r: a.r_r + b.r_r,
            peak: a.peak.max(b.peak),
        })
    }

    /// Subtracts those rows of an atom that lie on a part of the canvas; what wraps around stays behind the last column.
    fn subtract(&self, frame: &Frame, atom: &Active<T>, start: usize, part: &mut [f64]) {
        let (value, column) = (atom.value.f64(), atom.column as usize);
        if value == 0.0 {
            return;
        }
        let starts = frame.starts(atom.line as usize);
        for (row, taps) in self.rows(frame, atom.filter as usize) {
            let Some(at) = (starts[row] as usize).checked_sub(start).filter(|at| *at < part.len()) else { continue };
            let columns = &mut part[at + column..][..taps.len()];
            columns.iter_mut().zip(taps).for_each(|(c, tap)| *c -= value * tap.f64());
        }
    }

    /// The rows of a filter without their padding.
    pub(super) fn rows<'a>(&'a self, frame: &Frame, k: usize) -> impl Iterator<Item = (usize, &'a [T])> + use<'a, T> {
        let (rows, width) = (self.filters.rows(k), self.filters.width);
        let padded = width.next_multiple_of(LANES);
        rows.chunks_exact(padded).take(frame.filter_rows()).map(move |row| &row[..width]).enumerate()
    }

    /// max_k |d_k^T r| / w_k at one position, in f64.
    pub(super) fn exact_strength(&self, frame: &Frame, canvas: &[T], position: usize) -> f64 {
        let (line, column) = (position / frame.positions[2], position % frame.positions[2]);
        let starts = frame.starts(line);
        let strength = |k: usize| {
            let mut sum = 0.0;
            for (row, taps) in self.rows(frame, k) {
                let columns = &canvas[starts[row] as usize + column..][..taps.len()];
                sum += columns.iter().zip(taps).map(|(c, tap)| c.f64() * tap.f64()).sum::<f64>();
            }
            let sum = if self.config.nonnegative { sum } else { sum.abs() };
            sum / self.weights[k].f64()
        };
        (0..self.filters.n_filters).map(strength).fold(0.0, f64::max)
    }

    /// How far the correlation kernel may be off, in units of the weights: the classical bound n eps sum |d| |r|.
    pub(super) fn rounding(&self, frame: &Frame, peak: f64) -> f64 {
        let taps = (frame.filter_rows() * frame.filter.width) as f64;
        let norms = self.filters.energy.iter().zip(&self.weights);
        let longest = norms.map(|(energy, weight)| energy.sqrt() / weight.f64()).fold(0.0, f64::max);
        (taps + 2.0) * T::EPSILON * longest * taps.sqrt() * peak
    }
}

/// Brings one row into the canvas's form, rounds it, and adds it to the sums; `source` is the sample's row that lies there.
fn finish_row<T: Real>(
    frame: &Frame,
    row: usize,
    source: Option<&[T]>,
    exact: &mut [f64],
    out: &mut [T],
    mut sums: Sums,
) -> Sums {
    let (width, again) = (frame.sample.width, frame.filter.width - 1);
    let counted = match frame.boundary {
        Boundary::Circular => {
            for j in 0..again {
                exact[j] += exact[width + j];
            }
            exact.copy_within(..again, width);
            0..width
        }
        Boundary::Zero => 0..frame.positions[2] + again,
        Boundary::Free => {
            let counted = if source.is_some() { again..again + width } else { 0..0 };
            exact[..counted.start].fill(0.0);
            exact[counted.end..].fill(0.0);
            counted
        }
    };
    frame.hide(row * frame.stride, exact);
    out.iter_mut().zip(&*exact).for_each(|(o, e)| *o = T::of(*e));
    for x in counted {
        let rounded = out[x].f64();
        sums.data_term += 0.5 * exact[x] * exact[x];
        sums.r_r += rounded * rounded;
        sums.peak = sums.peak.max(rounded.abs());
    }
    if let Some(x) = source {
        let r = &out[frame.first_column()..][..x.len()];
        sums.x_r += x.iter().zip(r).map(|(x, r)| x.f64() * r.f64()).sum::<f64>();
    }
    sums
}
