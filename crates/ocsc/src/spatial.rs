//! The residual of one sample as an image, and what the filters' gradients need of it, on the non-zeros of the code.
//!
//! ```text
//! r = x - sum_k D_k * z_k,            zero where nothing was observed
//! g_k(s) = - sum_p z_k(p) r(p + s)    the gradient of 1/2 ||r||^2 for filter k
//! ```
//!
//! Nothing but the sample and its atoms is held, whatever the number of filters. With the boundary `circular` what sticks out wraps
//! around; with `zero` the outside is data equal to zero, and with `free` it is not observed: both have a margin here.
//!
//! **Descent** visits the filters that the code uses in turn, each with the newest residual:
//!
//! ```text
//! d_k = project( d_k - (g_k + rest of the gradient) / L_k ),      r = r - (change of d_k) * z_k
//! ```
//!
//! where L_k bounds the curvature of filter k by the autocorrelation of its code: the largest row sum of its matrix.
//!
//! All sums are made in f64, in the order of the atoms. **Cost** M per atom and visit.

use crate::Boundary;
use crate::dictionary::project_unit_ball;
use crate::span::Span;
use crate::{Atom, Code, Dictionary, Real, Result, Sample, Shape};

/// Gradient steps per visit of a filter.
const STEPS: usize = 2;

/// The residual of a sample, with its margin.
pub(crate) struct Residual<'a, T: Real> {
    code: &'a Code<T>,
    filter: Shape,
    /// Channels, depth, height and width with the margin.
    axes: [usize; 4],
    values: Vec<f64>,
    /// Whether each value counts; none if all do.
    counts: Option<Vec<bool>>,
}

impl<'a, T: Real> Residual<'a, T> {
    /// Makes the residual of a sample with its code; they must fit the dictionary.
    pub(crate) fn new(
        sample: &Sample<T>,
        code: &'a Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
    ) -> Result<Self> {
        let (shape, filter) = (sample.shape(), dictionary.shape());
        check(sample, code, dictionary, boundary)?;
        let circular = boundary == Boundary::Circular;
        let margin = filter.spatial().map(|n| if circular { 0 } else { n - 1 });
        let [depth, height, width] = std::array::from_fn(|i| shape.spatial()[i] + 2 * margin[i]);
        let axes = [shape.channels, depth, height, width];
        let mut values = vec![0.0; axes.iter().product()];
        let is_whole = sample.mask().is_none() && boundary != Boundary::Free;
        let mut counts = (!is_whole).then(|| vec![boundary == Boundary::Zero; values.len()]);
        for row in 0..shape.len() / shape.width {
            let (c, z, y) = (row / (shape.depth * shape.height), row / shape.height % shape.depth, row % shape.height);
            let at = ((c * depth + z + margin[0]) * height + y + margin[1]) * width + margin[2];
            let from = row * shape.width;
            let line = &sample.data()[from..][..shape.width];
            for (i, x) in line.iter().enumerate() {
                let seen = sample.mask().is_none_or(|mask| mask[from + i]);
                values[at + i] = if seen { x.f64() } else { 0.0 };
                counts.iter_mut().for_each(|counts| counts[at + i] = seen);
            }
        }
        let mut residual = Residual { code, filter, axes, values, counts };
        for atoms in residual.used() {
            let taps: Vec<f64> = dictionary.filter(atoms[0].filter as usize).iter().map(|d| d.f64()).collect();
            residual.subtract(atoms, &taps);
        }
        Ok(residual)
    }

    /// Returns the atoms of the code, filter by filter, of those that it uses.
    pub(crate) fn used(&self) -> impl Iterator<Item = &'a [Atom<T>]> + use<'a, T> {
        self.code.atoms().chunk_by(|a, b| a.filter == b.filter)
    }

    /// Writes -g_k for the filter of these atoms: sum_p z_k(p) r(p + s).
    pub(crate) fn correlate(&self, atoms: &[Atom<T>], out: &mut [f64]) {
        out.fill(0.0);
        for a in atoms {
            let value = a.value.f64();
            self.rows(a.position as usize, |taps, line, first| {
                let (before, after) = out[taps..][..self.filter.width].split_at_mut(first.min(self.filter.width));
                let start = line + self.axes[3] - first;
                before.iter_mut().zip(&self.values[start..]).for_each(|(o, r)| *o += value * r);
                after.iter_mut().zip(&self.values[line..]).for_each(|(o, r)| *o += value * r);
            });
        }
    }

    /// r <- r - taps * z_k for the filter of these atoms, where something was observed.
    pub(crate) fn subtract(&mut self, atoms: &[Atom<T>], taps: &[f64]) {
        let mut values = std::mem::take(&mut self.values);
        for a in atoms {
            let value = a.value.f64();
            self.rows(a.position as usize, |at, line, first| {
                let (before, after) = taps[at..][..self.filter.width].split_at(first.min(self.filter.width));
                let start = line + self.axes[3] - first;
                for (start, taps) in [(start, before), (line, after)] {
                    let line = values[start..].iter_mut().zip(taps);
                    match &self.counts {
                        None => line.for_each(|(r, d)| *r -= value * d),
                        Some(counts) => {
                            let counted = line.zip(&counts[start..]).filter(|(_, counts)| **counts);
                            counted.for_each(|((r, d), _)| *r -= value * d);
                        }
                    }
                }
            });
        }
        self.values = values;
    }

    /// Calls `each` for every line of taps of a filter at a position, with where the taps and the line of the residual begin, and
    /// how many places of that line are left before it wraps around; these come first.
    fn rows(&self, position: usize, mut each: impl FnMut(usize, usize, usize)) {
        let [_, depth, height, width] = self.axes;
        let [_, rows, columns] = self.code.shape();
        let (pd, ph, pw) = (position / (rows * columns), position / columns % rows, position % columns);
        let f = self.filter;
        for row in 0..f.len() / f.width {
            let (c, z, y) = (row / (f.depth * f.height), row / f.height % f.depth, row % f.height);
            let line = ((c * depth + (pd + z) % depth) * height + (ph + y) % height) * width;
            each(row * f.width, line, width - pw);
        }
    }
}

/// Checks that sample, code and dictionary fit.
pub(crate) fn check<T: Real>(
    sample: &Sample<T>,
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
) -> Result<()> {
    dictionary.check_sample_shape(sample.shape())?;
    let filter = dictionary.shape().spatial();
    let margin = filter.map(|n| if boundary == Boundary::Circular { 0 } else { n - 1 });
    let positions: [usize; 3] = std::array::from_fn(|i| sample.shape().spatial()[i] + margin[i]);
    if code.n_filters() != dictionary.n_filters() || code.shape() != positions {
        let expected = format!("codes of {} filters at {positions:?} positions", dictionary.n_filters());
        let found = format!("{} filters at {:?} positions", code.n_filters(), code.shape());
        return Err(crate::Error::invalid("code", expected, found));
    }
    Ok(())
}

/// The autocorrelation of one filter's code at lags shorter than the filter: a window (2m - 1 per axis) in the order (depth,
/// height, width), lag 0 in its middle.
pub(crate) struct Autocorrelation {
    /// m - 1 per axis.
    reach: [usize; 3],
    axes: [usize; 3],
    circular: bool,
}

impl Autocorrelation {
    /// Plans autocorrelations of codes of this shape.
    pub(crate) fn new(filter: Shape, positions: [usize; 3], boundary: Boundary) -> Self {
        let circular = boundary == Boundary::Circular;
        Autocorrelation { reach: filter.spatial().map(|n| n - 1), axes: positions, circular }
    }

    /// Returns how many lags a window has.
    pub(crate) fn len(filter: Shape) -> usize {
        filter.spatial().iter().map(|n| 2 * n - 1).product()
    }

    /// Adds the autocorrelation of the atoms of one filter, in the order of their positions, to a window.
    pub(crate) fn add<T: Real>(&self, atoms: &[Atom<T>], window: &mut [f64]) {
        let place = |a: &Atom<T>| coordinates(a.position as usize, self.axes);
        let places: Vec<[usize; 3]> = atoms.iter().map(place).collect();
        // Atoms more lines apart than this, in the order of positions, do not meet, unless around the circle.
        let lines = |[z, y, _]: [usize; 3]| z * self.axes[1] + y;
        let far = if self.circular { usize::MAX } else { self.reach[0] * self.axes[1] + self.reach[1] };
        let mut first = 0;
        for (a, from) in atoms.iter().zip(&places) {
            while lines(*from) - lines(places[first]) > far {
                first += 1;
            }
            for (b, to) in atoms[first..].iter().zip(&places[first..]) {
                if lines(*to).saturating_sub(lines(*from)) > far {
                    break;
                }
                let product = a.value.f64() * b.value.f64();
                self.lags(*from, *to, |at| window[at] += product);
            }
        }
    }

    /// Calls `each` for every place of a window at which two atoms meet. On a short circle they meet at several lags.
    fn lags(&self, from: [usize; 3], to: [usize; 3], mut each: impl FnMut(usize)) {
        let mut along: [[usize; 4]; 3] = [[usize::MAX; 4]; 3];
        for (axis, along) in along.iter_mut().enumerate() {
            let (n, reach) = (self.axes[axis] as isize, self.reach[axis] as isize);
            let lag = to[axis] as isize - from[axis] as isize;
            let turns = if self.circular { [lag, lag - n, lag + n] } else { [lag, isize::MAX, isize::MAX] };
            let near = turns.into_iter().filter(|lag| (-reach..=reach).contains(lag));
            let mut any = false;
            for (slot, lag) in along.iter_mut().zip(near) {
                *slot = (lag + reach) as usize;
                any = true;
            }
            if !any {
                return;
            }
        }
        let [_, ry, rx] = self.reach;
        let listed = |axis: usize| along[axis].into_iter().take_while(|at| *at != usize::MAX);
        for z in listed(0) {
            for y in listed(1) {
                listed(2).for_each(|x| each((z * (2 * ry + 1) + y) * (2 * rx + 1) + x));
            }
        }
    }
}

/// out <- out + window * taps on the filter's support, in every channel: sum_s' window(s - s') taps(s').
pub(crate) fn add_product(window: &[f64], filter: Shape, taps: &[f64], out: &mut [f64]) {
    let (axes, pixels) = (filter.spatial(), filter.pixels());
    let [_, wy, wx] = axes.map(|n| 2 * n - 1);
    for (out, taps) in out.chunks_exact_mut(pixels).zip(taps.chunks_exact(pixels)) {
        for (row, line) in out.chunks_exact_mut(axes[2]).enumerate() {
            let (z, y) = (row / axes[1], row % axes[1]);
            for (other, taps) in taps.chunks_exact(axes[2]).enumerate() {
                let (dz, dy) = (z + axes[0] - 1 - other / axes[1], y + axes[1] - 1 - other % axes[1]);
                let lags = &window[(dz * wy + dy) * wx..][..wx];
                for (x, out) in line.iter_mut().enumerate() {
                    // The lag x - x' runs down as x' runs up.
                    let lags = lags[x..][..axes[2]].iter().rev();
                    *out += taps.iter().zip(lags).map(|(d, lag)| d * lag).sum::<f64>();
                }
            }
        }
    }
}

/// A bound on the curvature: the sum of |window|, which no row of its matrix exceeds.
pub(crate) fn curvature(window: &[f64]) -> f64 {
    window.iter().map(|v| v.abs()).sum()
}

/// The filters in f64 while they are descended on.
pub(crate) struct Filters<'a> {
    pub(crate) shape: Shape,
    pub(crate) taps: Vec<f64>,
    /// Windows A_k and vectors B_k of sum_k 1/2 <d_k, A_k * d_k> - <B_k, d_k>, which is added to the objective.
    pub(crate) history: Option<(&'a [f64], &'a [f64])>,
    /// What the filters stay in.
    pub(crate) span: Option<&'a Span>,
}

/// One sample at hand: its residual, and the autocorrelations of its code, (K, 2m - 1 per axis), zeros where it uses no filter.
pub(crate) struct AtHand<'a, T: Real> {
    residual: Residual<'a, T>,
    pub(crate) windows: Vec<f64>,
}

impl<'a, T: Real> AtHand<'a, T> {
    /// Prepares a sample with its code for descent from a dictionary.
    pub(crate) fn new(
        sample: &Sample<T>,
        code: &'a Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
    ) -> Result<Self> {
        let (shape, len) = (dictionary.shape(), Autocorrelation::len(dictionary.shape()));
        let residual = Residual::new(sample, code, dictionary, boundary)?;
        let plan = Autocorrelation::new(shape, code.shape(), boundary);
        let mut windows = vec![0.0; dictionary.n_filters() * len];
        for atoms in residual.used() {
            plan.add(atoms, &mut windows[atoms[0].filter as usize * len..][..len]);
        }
        Ok(AtHand { residual, windows })
    }
}

impl Filters<'_> {
    /// Visits every filter once; returns the sum over k of || d_k - project(d_k - g_k / L_k) ||^2.
    pub(crate) fn sweep<T: Real>(&mut self, at_hand: &mut [AtHand<'_, T>]) -> f64 {
        let (len, window) = (self.shape.len(), Autocorrelation::len(self.shape));
        let mut atoms: Vec<_> = at_hand.iter().map(|one| one.residual.used().peekable()).collect();
        let (mut gradient, mut part, mut old) = (vec![0.0; len], vec![0.0; len], vec![0.0; len]);
        let mut steps = 0.0;
        for (k, filter) in self.taps.chunks_exact_mut(len).enumerate() {
            let of_filter: Vec<_> =
                atoms.iter_mut().map(|used| used.next_if(|a| a[0].filter as usize == k).unwrap_or_default()).collect();
            let history = self.history.map(|(gram, cross)| (&gram[k * window..][..window], &cross[k * len..][..len]));
            let mut bound = history.map_or(0.0, |(gram, _)| curvature(gram));
            bound += at_hand.iter().map(|one| curvature(&one.windows[k * window..][..window])).sum::<f64>();
            if bound <= 0.0 || !bound.is_finite() {
                continue;
            }
            for step in 0..STEPS {
                gradient.fill(0.0);
                if let Some((gram, cross)) = history {
                    add_product(gram, self.shape, filter, &mut gradient);
                    gradient.iter_mut().zip(cross).for_each(|(g, b)| *g -= b);
                }
                for (one, atoms) in at_hand.iter().zip(&of_filter) {
                    one.residual.correlate(atoms, &mut part);
                    gradient.iter_mut().zip(&part).for_each(|(g, p)| *g -= p);
                }
                self.span.iter().for_each(|span| span.project(&mut gradient));
                old.copy_from_slice(filter);
                filter.iter_mut().zip(&gradient).for_each(|(d, g)| *d -= g / bound);
                project_unit_ball(filter);
                part.iter_mut().zip(&*filter).zip(&old).for_each(|((c, d), old)| *c = d - old);
                if step == 0 {
                    steps += part.iter().map(|c| c * c).sum::<f64>();
                }
                for (one, atoms) in at_hand.iter_mut().zip(&of_filter) {
                    one.residual.subtract(atoms, &part);
                }
            }
        }
        steps
    }
}

/// (depth, height, width) of a flat index.
fn coordinates(at: usize, axes: [usize; 3]) -> [usize; 3] {
    [at / (axes[1] * axes[2]), at / axes[2] % axes[1], at % axes[2]]
}
