//! The residual from the atoms, and the certificate that it gives.
//!
//! The canvas holds r rounded to T. The dual point is made of this rounded r, and all that is said about it (its products, and
//! its largest correlation, see `bound.rs`) is computed from it in f64; the primal objective comes from the residual before
//! rounding. So no rounding of the descent, the residual or the correlation kernel can falsify the gap.

use super::ActiveSet;
use super::descend::Active;
use super::frame::{Frame, LANES};
use super::list::List;
use super::tiling::Tiling;
use crate::Boundary;
use crate::coder::certificate::Terms;
use crate::{Real, Sample};
use rayon::prelude::*;

impl<T: Real> ActiveSet<T> {
    /// canvas <- x - D z, summed in f64, band by band.
    pub(super) fn rebuild(
        &self,
        frame: &Frame,
        tiling: &Tiling,
        sample: &Sample<T>,
        list: &List<T>,
        mut canvas: &mut [T],
    ) -> Terms {
        let mut parts = Vec::with_capacity(tiling.len());
        for band in 0..tiling.len() {
            let (mine, rest) = canvas.split_at_mut(tiling.own(band).len());
            parts.push(mine);
            canvas = rest;
        }
        let terms: Vec<Terms> = parts
            .into_par_iter()
            .enumerate()
            .map(|(band, canvas)| {
                let mut exact = vec![0.0; canvas.len()];
                let start = tiling.own(band).start;
                for (row, out) in exact.chunks_exact_mut(frame.stride).enumerate() {
                    if let Some(x) = frame.source(start / frame.stride + row, sample.data()) {
                        out[frame.first_column()..][..x.len()].iter_mut().zip(x).for_each(|(o, x)| *o = x.f64());
                    }
                }
                for near in tiling.before(band).into_iter().chain([band]) {
                    list.band(tiling, near).iter().for_each(|a| self.subtract(frame, a, start, &mut exact));
                }
                let rows = exact.chunks_exact_mut(frame.stride).zip(canvas.chunks_exact_mut(frame.stride));
                let numbered = rows.enumerate().map(|(row, (exact, out))| (start / frame.stride + row, exact, out));
                numbered.fold(Terms::default(), |terms, (row, exact, out)| {
                    finish_row(frame, row, frame.source(row, sample.data()), exact, out, terms)
                })
            })
            .collect();
        terms.iter().fold(Terms::default(), |all, part| all.merge(part))
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
}

/// Brings one row into the canvas's form, rounds it, and adds it to the terms; `source` is the sample's row that lies there.
fn finish_row<T: Real>(
    frame: &Frame,
    row: usize,
    source: Option<&[T]>,
    exact: &mut [f64],
    out: &mut [T],
    mut terms: Terms,
) -> Terms {
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
    for column in counted {
        let x = source.and_then(|row| row.get(column.wrapping_sub(frame.first_column()))).map_or(0.0, |x| x.f64());
        terms.add(x, x - exact[column], exact[column], out[column].f64());
    }
    terms
}
