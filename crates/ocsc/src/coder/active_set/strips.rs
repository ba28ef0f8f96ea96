//! Large images in strips, so that coding needs memory for the image, its non-zeros and one strip.
//!
//! A strip is a range of lines of positions with the rows of the canvas that their atoms reach. It is a lasso of its own: its sample is
//!
//! ```text
//! x' = x - (the atoms of all other lines)        on those rows
//! ```
//!
//! **Coding** is block coordinate descent: strip by strip from top to bottom, each by the rounds of `solve.rs`. A strip begins a few filter
//! heights above its own lines, so the atoms at the end of the strip before it are settled once more, now that they have neighbours.
//!
//! **The certificate** is the local one of `local.rs`, for the image as a whole. The dual point t(q) = s(q) r(q) is made strip by strip,
//! with the violations that the strips ended with. Strips see one filter height more than they answer for, so t is right on all rows that
//! correlations of their own lines need. Sums over rows and atoms add up, and the largest correlation of all scales t as a whole. If that
//! proves too little, all strips are coded once more, to a smaller tolerance.

use super::ActiveSet;
use super::frame::{Core, Frame};
use super::local::field;
use super::residual::Rebuilt;
use super::scan::{Candidate, Own};
use super::solve::Solve;
use super::worth::feasible;
use crate::coder::certificate::{Terms, Weight};
use crate::coder::{Coded, Status, Weights, relative};
use crate::metrics::Objective;
use crate::monitor::{Monitor, check_wanted};
use crate::{Atom, Boundary, Code, Loss, Penalty, Real, Result, Sample, Shape};
use std::ops::Range;

/// Images with more positions than this are coded in strips of about so many.
const LARGE: usize = 1 << 22;
const STRIP: usize = 1 << 20;
/// A strip begins so many filter heights above its own lines, and has at least so many times as many lines as that.
const OVERLAP: usize = 2;
const LEAST: usize = 6;
/// Strips are coded to this fraction of the tolerance, and to half of it if that is not enough, so often.
const MARGIN: f64 = 0.95;
const ATTEMPTS: usize = 5;

/// How an image is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    /// The lines of a strip, and how many of those before it are coded again.
    lines: usize,
    overlap: usize,
}

impl Cut {
    /// The cut of an image that is large enough for one.
    pub(super) fn of(sample: Shape, filter: Shape) -> Option<Self> {
        if sample.depth > 1 || sample.pixels() <= LARGE {
            return None;
        }
        let overlap = OVERLAP * filter.height;
        let lines = STRIP.div_ceil(sample.width).max(LEAST * overlap);
        (3 * lines <= sample.height).then_some(Cut { lines, overlap })
    }
}

/// An image while it is coded in strips.
struct Strips<'a, T: Real> {
    coder: &'a ActiveSet<T>,
    sample: &'a Sample<T>,
    /// Positions of the whole image: the code's shape.
    shape: [usize; 3],
    cut: Cut,
    /// The non-zeros of each line; positions are columns.
    atoms: Vec<Vec<Atom<T>>>,
    /// Where optimality was violated on each line when it was last looked at; positions are columns.
    violators: Vec<Vec<Candidate>>,
    /// Whether all lines have been coded before.
    is_warm: bool,
}

/// Lines from `first` on, which may lie beyond either end of an image whose lines wrap around.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lines {
    first: isize,
    count: usize,
}

impl<T: Real> ActiveSet<T> {
    /// How a sample is to be cut, if it is large and its problem the plain one.
    pub(super) fn cut(&self, sample: &Sample<T>) -> Option<Cut> {
        let config = &self.config;
        let is_plain = config.penalty == Penalty::L1
            && config.loss == Loss::L2
            && !matches!(config.weights, Weights::Inverse(_))
            && config.time_limit.is_none()
            && sample.mask().is_none()
            && sample.weights().is_none()
            && sample.coefficient_weights().is_none();
        Cut::of(sample.shape(), self.dictionary.shape()).filter(|_| is_plain)
    }

    /// Codes a large image.
    pub(super) fn solve_in_strips(
        &self,
        sample: &Sample<T>,
        start: Option<&Code<T>>,
        cut: Cut,
        monitor: &dyn Monitor,
    ) -> Result<Coded<T>> {
        let mut strips = Strips::new(self, sample, start, cut)?;
        let (mut iterations, mut tol) = (0, MARGIN * self.tol);
        for attempt in 1.. {
            iterations += strips.code_all(tol, monitor)?;
            let (objective, gap) = strips.certify(monitor)?;
            let converged = relative(gap, objective.data_term + self.beta * objective.l1) <= self.tol;
            if converged || attempt == ATTEMPTS {
                let status = if converged { Status::Converged } else { Status::MaxIters };
                return strips.finish(objective, gap, iterations, status);
            }
            tol /= 2.0;
        }
        unreachable!("the last attempt returns")
    }
}

impl<'a, T: Real> Strips<'a, T> {
    fn new(coder: &'a ActiveSet<T>, sample: &'a Sample<T>, start: Option<&Code<T>>, cut: Cut) -> Result<Self> {
        let whole = Frame::new(sample.shape(), coder.dictionary.shape(), coder.boundary)?;
        let mut atoms = vec![Vec::new(); whole.code[1]];
        if let Some(code) = start {
            coder.check_start(code, whole.code)?;
            for atom in code.atoms().iter().filter(|atom| !coder.config.nonnegative || atom.value > T::zero()) {
                let (line, column) = (atom.position as usize / whole.code[2], atom.position as usize % whole.code[2]);
                atoms[line].push(Atom { position: column as u32, ..*atom });
            }
        }
        let violators = vec![Vec::new(); whole.code[1]];
        Ok(Strips { coder, sample, shape: whole.code, cut, atoms, violators, is_warm: start.is_some() })
    }

    fn wraps(&self) -> bool {
        self.coder.boundary == Boundary::Circular
    }

    /// How many lines beyond its own atoms reach.
    fn reach(&self) -> usize {
        self.coder.dictionary.shape().height - 1
    }

    /// The strips' own lines.
    fn strips(&self) -> Vec<Range<usize>> {
        let n = (self.shape[1] / self.cut.lines).max(1);
        (0..n).map(|i| i * self.shape[1] / n..(i + 1) * self.shape[1] / n).collect()
    }

    /// Lines with so many more before and behind them, as far as there are any.
    fn widened(&self, lines: &Range<usize>, before: usize, behind: usize) -> Lines {
        let (mut first, mut end) = (lines.start as isize - before as isize, lines.end + behind);
        if !self.wraps() {
            first = first.max(0);
            end = end.min(self.shape[1]);
        }
        Lines { first, count: (end as isize - first) as usize }
    }

    /// The number of a line that may lie beyond an end, if there is such a line.
    fn line(&self, line: isize) -> Option<usize> {
        let height = self.shape[1] as isize;
        if self.wraps() {
            Some(line.rem_euclid(height) as usize)
        } else {
            usize::try_from(line).ok().filter(|l| *l < self.shape[1])
        }
    }

    /// Codes all strips; returns how many rounds that took.
    fn code_all(&mut self, tol: f64, monitor: &dyn Monitor) -> Result<usize> {
        let mut rounds = 0;
        let strips = self.strips();
        for (i, own) in strips.iter().enumerate() {
            // Where lines wrap around, the last strip meets the first.
            let is_last = i + 1 == strips.len();
            let before = if i > 0 { self.cut.overlap } else { 0 };
            let lines = self.widened(own, before, if is_last && self.wraps() { self.cut.overlap } else { 0 });
            rounds += self.code_strip(lines, tol, monitor)?;
        }
        self.is_warm = true;
        Ok(rounds)
    }

    fn code_strip(&mut self, lines: Lines, tol: f64, monitor: &dyn Monitor) -> Result<usize> {
        let core = Core { lines: 0..lines.count, rows: 0..usize::MAX };
        let (frame, sample) = self.part(lines, core)?;
        let start = self.code(lines)?;
        let mut solve = Solve::within(self.coder, &sample, frame, Some(&start))?;
        // A few lines of atoms say nothing of how large violations are elsewhere.
        solve.started &= self.is_warm;
        let (coded, violators) = solve.run(tol, monitor, monitor.now())?;
        let width = self.shape[2];
        let renewed: Vec<usize> = (0..lines.count).filter_map(|i| self.line(lines.first + i as isize)).collect();
        for line in &renewed {
            self.atoms[*line].clear();
            self.violators[*line].clear();
        }
        for atom in coded.code.atoms() {
            let (line, column) = (atom.position as usize / width, atom.position as usize % width);
            if let Some(line) = self.line(lines.first + line as isize) {
                self.atoms[line].push(Atom { position: column as u32, ..*atom });
            }
        }
        // Only these make the residual smaller.
        for at in violators.into_iter().filter(|at| at.strength > 1.0) {
            let (line, column) = (at.position as usize / width, at.position as usize % width);
            if let Some(line) = self.line(lines.first + line as isize) {
                self.violators[line].push(Candidate { position: column as u32, ..at });
            }
        }
        for line in renewed {
            self.atoms[line].shrink_to_fit();
            self.violators[line].shrink_to_fit();
        }
        Ok(coded.iterations)
    }

    /// The atoms of some lines as a code of their own.
    fn code(&self, lines: Lines) -> Result<Code<T>> {
        let width = self.shape[2];
        let mut atoms = Vec::new();
        for i in 0..lines.count {
            let here = self.line(lines.first + i as isize).map_or(&[][..], |line| &self.atoms[line]);
            atoms.extend(here.iter().map(|atom| Atom { position: (i * width) as u32 + atom.position, ..*atom }));
        }
        Code::new(self.coder.filters.n_filters, [1, lines.count, width], atoms)
    }

    /// The frame of some lines, and what their atoms have to explain: the sample less all other atoms.
    fn part(&self, lines: Lines, core: Core) -> Result<(Frame, Sample<T>)> {
        let (whole, filter, boundary) = (self.sample.shape(), self.coder.dictionary.shape(), self.coder.boundary);
        let reach = self.reach();
        // Rows of the canvas, of which the sample's begin after a frame of zeros.
        let (first, height) = (lines.first, lines.count + reach);
        let frame_height = if self.wraps() { 0 } else { reach as isize };
        let rows = (first - frame_height).max(0)..(first - frame_height + height as isize).min(whole.height as isize);
        let side = filter.width - 1;
        let (sample, margin, above) = match boundary {
            // The whole canvas counts, and other atoms lie on its frame too.
            Boundary::Zero => (Shape { height, width: whole.width + 2 * side, ..whole }, [0; 3], 0),
            Boundary::Circular => (Shape { height, ..whole }, [0; 3], 0),
            Boundary::Free => {
                let above = (rows.start + frame_height - first) as usize;
                (Shape { height: rows.len(), ..whole }, [0, above, side], above)
            }
        };
        let mut values = vec![0.0_f64; sample.len()];
        let left = if boundary == Boundary::Zero { side } else { 0 };
        let rows_of_part = values.chunks_exact_mut(sample.width).enumerate();
        for (row, out) in rows_of_part {
            let (channel, y) = (row / sample.height, row % sample.height);
            let source = first - frame_height + (y + above) as isize;
            let source = if self.wraps() { source.rem_euclid(whole.height as isize) } else { source };
            if let Some(source) = usize::try_from(source).ok().filter(|source| *source < whole.height) {
                let x = &self.sample.data()[(channel * whole.height + source) * whole.width..][..whole.width];
                out[left..][..whole.width].iter_mut().zip(x).for_each(|(o, x)| *o = x.f64());
            }
        }
        let others = (1..=reach as isize).flat_map(|i| [first - i, first + lines.count as isize - 1 + i]);
        for (line, atoms) in others.filter_map(|line| Some((line, &self.atoms[self.line(line)?]))) {
            for atom in atoms {
                self.subtract(atom, (line - first - above as isize, margin[2] as isize), sample, &mut values);
            }
        }
        let data = values.into_iter().map(T::of).collect();
        let code = [1, lines.count, self.shape[2]];
        Ok((Frame::strip(sample, filter, boundary, margin, code, core)?, Sample::new(sample, data)?))
    }

    /// Takes an atom off those values that it reaches; `top` is the row that its first one lies on, its columns lie so far to the left.
    fn subtract(&self, atom: &Atom<T>, (top, left): (isize, isize), shape: Shape, values: &mut [f64]) {
        let filter = self.coder.dictionary.shape();
        let taps = self.coder.dictionary.filter(atom.filter as usize);
        for (row, taps) in taps.chunks_exact(filter.width).enumerate() {
            let (channel, y) = (row / filter.height, top + (row % filter.height) as isize);
            let Some(y) = usize::try_from(y).ok().filter(|y| *y < shape.height) else { continue };
            let out = &mut values[(channel * shape.height + y) * shape.width..][..shape.width];
            for (j, tap) in taps.iter().enumerate() {
                let column = atom.position as isize + j as isize - left;
                let column = if self.wraps() { column.rem_euclid(shape.width as isize) } else { column };
                if let Some(out) = usize::try_from(column).ok().and_then(|column| out.get_mut(column)) {
                    *out -= atom.value.f64() * tap.f64();
                }
            }
        }
    }

    /// The objective of the code, and a bound on how far it is from the optimum.
    fn certify(&self, monitor: &dyn Monitor) -> Result<(Objective, f64)> {
        let coder = self.coder;
        let (weight, l1) = self.weight();
        let mut terms = Terms::default();
        let mut strongest = 0.0_f64;
        for own in self.strips() {
            check_wanted(monitor)?;
            let (part, bound) = self.certify_strip(&own)?;
            terms = terms.merge(&part);
            strongest = strongest.max(bound);
        }
        let objective = Objective { data_term: 0.5 * terms.r_r, l1: l1 / coder.beta };
        Ok((objective, terms.gap(feasible(strongest), &weight)))
    }

    /// What a strip adds to the certificate: the sums over its rows, and the largest correlation of its lines.
    fn certify_strip(&self, own: &Range<usize>) -> Result<(Terms, f64)> {
        let (coder, reach) = (self.coder, self.reach());
        let lines = self.widened(own, reach, reach);
        let first = (own.start as isize - lines.first) as usize;
        let is_last = own.end == self.shape[1];
        // The last rows of a canvas that does not wrap around belong to the last strip.
        let rows = first..if is_last && !self.wraps() { usize::MAX } else { first + own.len() };
        let (frame, sample) = self.part(lines, Core { lines: first..first + own.len(), rows })?;
        let start = self.code(lines)?;
        let mut solve = Solve::within(coder, &sample, frame, Some(&start))?;
        let violators = self.violators_of(lines);
        let field = field(&solve.frame, &violators);
        let Rebuilt { terms, size, .. } = solve.rebuild_with(&field);
        let nothing = Own { field: None, ridge: None };
        let report = solve.report(1.0, &nothing, size.peak);
        let scan = coder.correlate_exact(&solve.frame, &solve.canvas, &nothing, report, size.peak);
        let bound = coder.bound(&solve.frame, &solve.canvas, &nothing, &scan, report, size.peak);
        Ok((terms, bound + self.seam(&start, &sample, size.peak)))
    }

    /// How far the correlations of t may be apart that two strips see: what they make of the same row is summed in another order, and
    /// rounded after that.
    fn seam(&self, code: &Code<T>, sample: &Sample<T>, peak: f64) -> f64 {
        let filters = &self.coder.filters;
        let taps = self.coder.dictionary.shape().len() as f64;
        let mass: f64 =
            code.atoms().iter().map(|a| a.value.f64().abs() * filters.energy[a.filter as usize].sqrt()).sum();
        let largest = sample.data().iter().fold(0.0_f64, |m, x| m.max(x.f64().abs()));
        let sums = 4.0 * f64::EPSILON * (code.nonzeros() + 2) as f64 * (largest + mass);
        let norms = filters.energy.iter().zip(&self.coder.exact_weights);
        let longest = norms.map(|(energy, weight)| energy.sqrt() / weight).fold(0.0, f64::max);
        longest * taps.sqrt() * (sums + 4.0 * T::EPSILON * peak)
    }

    /// The violators of some lines, at positions of the strip.
    fn violators_of(&self, lines: Lines) -> Vec<Candidate> {
        let width = self.shape[2];
        let of_line = |i: usize| {
            let here = self.line(lines.first + i as isize).map_or(&[][..], |line| &self.violators[line]);
            here.iter().map(move |at| Candidate { position: (i * width) as u32 + at.position, ..*at })
        };
        (0..lines.count).flat_map(of_line).collect()
    }

    /// What the code pays, and what the bound on rounding needs to know of it; and its weighted l1 norm.
    fn weight(&self) -> (Weight, f64) {
        let (weights, filters) = (&self.coder.exact_weights, &self.coder.filters);
        let longest = filters.energy.iter().fold(0.0_f64, |m, e| m.max(e.sqrt()));
        let (mut penalty, mut mass, mut nonzeros) = (0.0, 0.0, 0);
        for atom in self.atoms.iter().flatten() {
            penalty += weights[atom.filter as usize] * atom.value.f64().abs();
            mass += atom.value.f64().abs();
            nonzeros += 1;
        }
        let taps = self.coder.dictionary.shape().len();
        (Weight { penalty, mass: mass * longest, nonzeros, taps }, penalty)
    }

    fn finish(self, objective: Objective, gap: f64, iterations: usize, status: Status) -> Result<Coded<T>> {
        let width = self.shape[2];
        let mut atoms = Vec::with_capacity(self.atoms.iter().map(Vec::len).sum());
        for (line, here) in self.atoms.into_iter().enumerate() {
            atoms.extend(here.into_iter().map(|a| Atom { position: (line * width) as u32 + a.position, ..a }));
        }
        Ok(Coded {
            code: Code::new(self.coder.filters.n_filters, self.shape, atoms)?,
            filters: None,
            objective,
            penalty: self.coder.beta * objective.l1,
            beta: self.coder.beta,
            gap,
            moved: 0.0,
            outliers: 0,
            iterations,
            status,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dictionary;
    use crate::coder::{ActiveSetConfig, Coder};
    use crate::monitor::Silent;
    use crate::random::stream;
    use rand::RngExt;

    const BETA: f64 = 0.4;

    /// Filters and an image with some structure, rounded to T.
    fn problem<T: Real>(seed: u64) -> (Dictionary<T>, Sample<T>) {
        let channels = 1 + seed as usize % 2;
        let filter = Shape { channels, ..Shape::image(4, 5) };
        let shape = Shape { channels, ..Shape::image(61 + seed as usize % 5, 23) };
        let wide = Dictionary::<f64>::random(4, filter, 2, seed).unwrap();
        let inner = |v: &f64| T::of(0.999 * v);
        let d = Dictionary::new(4, filter, 2, wide.data().iter().map(inner).collect::<Vec<T>>()).unwrap();
        let mut rng = stream(seed, 0);
        let values = (0..shape.len()).map(|_| T::of(f64::from(rng.random_range(-1.0_f32..1.0)))).collect();
        (d, Sample::new(shape, values).unwrap())
    }

    fn checked<T: Real>(seed: u64, boundary: Boundary, tol: f64, nonnegative: bool) {
        let (d, x) = problem::<T>(seed);
        let config = ActiveSetConfig {
            nonnegative,
            weights: if seed.is_multiple_of(3) { Weights::PerFilter(vec![1.0, 0.8, 1.3, 1.1]) } else { Weights::Equal },
            ..ActiveSetConfig::default()
        };
        let cut = Cut { lines: 10 + seed as usize % 7, overlap: 6 };
        let coder = ActiveSet::new(&d, BETA, tol, boundary, config.clone()).unwrap();
        let coded = coder.solve_in_strips(&x, None, cut, &Silent).unwrap();
        assert_eq!(coded.status, Status::Converged, "{seed} {boundary:?}");
        assert!(coded.relative_gap() <= tol);
        // The same objective by the frame of the whole image.
        let mut whole = Solve::new(&coder, &x, Some(&coded.code)).unwrap();
        let rebuilt = whole.rebuild();
        let worth = whole.worth(rebuilt);
        assert!((worth.objective - coded.total()).abs() <= 1e-9 * worth.objective, "{seed} {boundary:?}");
        // The minimum, in f64.
        let wide = |values: &[T]| values.iter().map(|v| v.f64()).collect::<Vec<f64>>();
        let d = Dictionary::new(4, d.shape(), 2, wide(d.data())).unwrap();
        let x64 = Sample::new(x.shape(), wide(x.data())).unwrap();
        let mut finer = ActiveSet::new(&d, BETA, 1e-9, boundary, config).unwrap();
        let minimum = finer.code(&x64, None).unwrap().total();
        assert!(coded.gap >= coded.total() - minimum - 1e-7 * minimum, "{seed} {boundary:?}: {} {minimum}", coded.gap);
        // From where it ended it has little to do.
        let again = coder.solve_in_strips(&x, Some(&coded.code), cut, &Silent).unwrap();
        assert!(again.iterations <= coded.iterations && again.total() <= coded.total() * (1.0 + 1e-9), "{seed}");
    }

    #[test]
    fn codes_of_strips_are_certified_as_a_whole() {
        for seed in 0..12 {
            for boundary in [Boundary::Circular, Boundary::Zero, Boundary::Free] {
                let tol = [0.05, 0.01, 1e-3][seed as usize % 3];
                checked::<f32>(seed, boundary, tol, seed >= 9);
                checked::<f64>(seed, boundary, tol, seed >= 9);
            }
        }
    }

    /// The certificate knows nothing of how a code was found: that of a poor one must still hold.
    #[test]
    fn a_poor_code_has_a_large_gap() {
        for (seed, boundary) in [(1, Boundary::Circular), (2, Boundary::Zero), (3, Boundary::Free)] {
            let (d, x) = problem::<f64>(seed);
            let coder = ActiveSet::new(&d, BETA, 1e-6, boundary, ActiveSetConfig::default()).unwrap();
            let best = coder.solve(&x, None, &Silent).unwrap();
            let change = |a: &Atom<f64>| Atom { value: 1.1 * a.value, ..*a };
            let poor = Code::new(4, best.code.shape(), best.code.atoms().iter().map(change).collect()).unwrap();
            let strips = Strips::new(&coder, &x, Some(&poor), Cut { lines: 13, overlap: 6 }).unwrap();
            let (objective, gap) = strips.certify(&Silent).unwrap();
            let above = objective.data_term + BETA * objective.l1 - best.total();
            assert!(above > 1e-3 * best.total() && gap >= above - 1e-5 * best.total(), "{boundary:?}: {gap} {above}");
            // With the violations known it is not much larger; without them the residual is scaled as a whole.
            assert!(gap < best.total(), "{boundary:?}: {gap}");
        }
    }

    #[test]
    fn large_plain_images_are_cut() {
        let cut = Cut::of(Shape::image(3000, 4000), Shape::image(11, 11)).unwrap();
        assert!(cut.lines * 4000 >= STRIP && cut.lines < 300);
        assert_eq!(Cut::of(Shape::image(1000, 1000), Shape::image(11, 11)), None);
        assert_eq!(Cut::of(Shape::image(1, 10_000_000), Shape::image(1, 64)), None);
        assert_eq!(Cut::of(Shape { depth: 3, ..Shape::image(3000, 4000) }, Shape::image(11, 11)), None);
    }
}
