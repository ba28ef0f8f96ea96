//! Events: which filter fires where, how strongly, and how much of the sample that is.
//!
//! A code often writes one occurrence of a pattern as several neighbouring atoms of one filter: where it lies between two
//! positions, is a little longer than the filter, or is slightly different. An event is such a group, and stands where its
//! strongest atom stands, its peak.
//!
//! Groups are made greedily, filter by filter: the strongest atom that is in no group yet (of equal ones the first) is the peak
//! of a new one, which takes all atoms that are in no group yet and nearer to it than `min_distance` on every axis, whatever
//! their signs. So no two peaks of one filter are nearer than that, as with `distance` in `scipy.signal.find_peaks`. On the
//! circle, distances go around. Atoms of different filters are never merged.
//!
//! The cost is a sort of the atoms, and a search for the neighbours of each peak: with r the distance, (2 r)^(axes - 1) log n.

use crate::real::compiled;
use crate::text::counted;
use crate::{Boundary, Code, Dictionary, Error, Real, Result, Shape};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Says which place in the sample the position of an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Align {
    /// Of the filter's first corner.
    Start,
    /// Of the filter's largest magnitude over all channels, the first of several.
    #[default]
    Peak,
    /// Of the filter's centre of energy, the mean place of its values weighted by their squares, rounded.
    Centre,
}

impl fmt::Display for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Align::Start => "start",
            Align::Peak => "peak",
            Align::Centre => "centre",
        })
    }
}

impl FromStr for Align {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "start" => Ok(Align::Start),
            "peak" => Ok(Align::Peak),
            "centre" | "center" => Ok(Align::Centre),
            _ => Err(Error::invalid("align", "start, peak or centre", text)),
        }
    }
}

/// Says what counts as an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// The least magnitude of an event's amplitude. Weaker peaks are dropped, with what they merged.
    pub threshold: f64,
    /// Atoms of one filter that are nearer to a peak than this on every axis (depth, height, width) are merged with it; 1 merges
    /// none. Half a filter's length by default, rounded up.
    pub min_distance: Option<[usize; 3]>,
    /// Which place the position is.
    pub align: Align,
}

impl Options {
    /// Returns the distance within which atoms of filters of this shape are merged, on each axis.
    pub fn distance(&self, filter: Shape) -> [usize; 3] {
        self.min_distance.unwrap_or_else(|| filter.spatial().map(|n| n.div_ceil(2)))
    }

    fn check(&self) -> Result<()> {
        if !self.threshold.is_finite() || self.threshold < 0.0 {
            return Err(Error::invalid("threshold", "a number from 0 up", self.threshold));
        }
        match self.min_distance {
            Some(axes) if axes.contains(&0) => Err(Error::invalid("min_distance", "at least 1 on every axis", 0)),
            _ => Ok(()),
        }
    }
}

/// Holds one event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// k, below the number of filters.
    pub filter: u32,
    /// Where it is in the sample: (depth, height, width), as [`Align`] says. With the boundaries `zero` and `free` it may lie
    /// outside, by less than a filter's length; with `circular` it is wrapped around.
    pub position: [i64; 3],
    /// The coefficient of its strongest atom.
    pub amplitude: f64,
    /// ||D z_e||^2 / ||x||^2, where z_e has the atoms of this event alone and D z_e is taken on the pixels of the sample. The shares
    /// of all events need not add up to that of D z, since events overlap.
    pub energy: f64,
}

compiled! {
    /// Returns the events of a code, ordered by position, then filter.
    ///
    /// `sample_energy` is ||x||^2, of the sample that was coded; NaN where it is unknown, and then the shares are NaN.
    pub fn find<T>(
        code: &Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
        sample_energy: f64,
        options: &Options,
    ) -> Result<Vec<Event>> = events_of;
}

fn events_of<T: Real>(
    code: &Code<T>,
    dictionary: &Dictionary<T>,
    boundary: Boundary,
    sample_energy: f64,
    options: &Options,
) -> Result<Vec<Event>> {
    options.check()?;
    let space = Space::new(code, dictionary, boundary)?;
    let distance = options.distance(dictionary.shape());
    let mut canvas = Vec::new();
    let mut events = Vec::new();
    for atoms in code.atoms().chunk_by(|a, b| a.filter == b.filter) {
        let k = atoms[0].filter;
        let filter = dictionary.filter(k as usize);
        let points: Vec<Point> =
            atoms.iter().map(|atom| Point { at: space.coordinates(atom.position), value: atom.value.f64() }).collect();
        let offset = offset(filter, dictionary.shape(), options.align);
        for group in merge(&points, distance, space.circle) {
            let amplitude = points[group[0]].value;
            if amplitude.abs() < options.threshold {
                continue;
            }
            let position = space.wrapped(std::array::from_fn(|i| points[group[0]].at[i] - space.margin[i] + offset[i]));
            let energy = space.energy(filter, &points, &group, &mut canvas) / sample_energy;
            events.push(Event { filter: k, position, amplitude, energy });
        }
    }
    sort(&mut events);
    Ok(events)
}

/// Holds the events of a piece of a recording.
#[derive(Clone, Debug)]
pub struct Window {
    /// Where it begins in the recording: (depth, height, width).
    pub start: [i64; 3],
    /// ||x||^2 of the piece.
    pub energy: f64,
    /// What [`find`] found in it.
    pub events: Vec<Event>,
}

/// Returns the events of a recording that was coded in pieces: positions are those of the recording, energies are shares of the
/// recording's energy, and an event that both sides of a cut show is one, with the larger amplitude and the energies of both.
///
/// `distance` is that of [`Options::distance`].
pub fn stitch(windows: &[Window], distance: [usize; 3]) -> Vec<Event> {
    let total: f64 = windows.iter().map(|window| window.energy).sum();
    let mut all = Vec::new();
    for window in windows {
        // An empty sum is zero, and so is its share.
        let share = if total == 0.0 { 0.0 } else { window.energy / total };
        all.extend(window.events.iter().map(|event| Event {
            position: std::array::from_fn(|i| window.start[i] + event.position[i]),
            energy: event.energy * share,
            ..*event
        }));
    }
    all.sort_by(|a, b| a.filter.cmp(&b.filter).then(a.position.cmp(&b.position)));
    let mut events = Vec::new();
    for one in all.chunk_by(|a, b| a.filter == b.filter) {
        let points: Vec<Point> = one.iter().map(|e| Point { at: e.position, value: e.amplitude }).collect();
        for group in merge(&points, distance, None) {
            let energy = group.iter().map(|i| one[*i].energy).sum();
            events.push(Event { energy, ..one[group[0]] });
        }
    }
    sort(&mut events);
    events
}

fn sort(events: &mut [Event]) {
    events.sort_by(|a, b| a.position.cmp(&b.position).then(a.filter.cmp(&b.filter)));
}

/// An atom of one filter.
struct Point {
    at: [i64; 3],
    value: f64,
}

/// Returns the groups of points that are sorted by place, as their numbers, the peak first; `circle` has the lengths of the
/// axes if they close.
fn merge(points: &[Point], distance: [usize; 3], circle: Option<[i64; 3]>) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| points[*b].value.abs().total_cmp(&points[*a].value.abs()).then(a.cmp(b)));
    let ends = |axis: usize| {
        let places = points.iter().map(|point| point.at[axis]);
        (places.clone().min().unwrap_or(0), places.max().unwrap_or(0))
    };
    let ends = [ends(0), ends(1), ends(2)];
    let reach = |at: [i64; 3], axis: usize| {
        let far = i64::try_from(distance[axis].saturating_sub(1)).unwrap_or(i64::MAX);
        reach(at[axis], far, ends[axis], circle.map(|lengths| lengths[axis]))
    };
    let mut is_free = vec![true; points.len()];
    let mut groups = Vec::new();
    for peak in order {
        if !std::mem::take(&mut is_free[peak]) {
            continue;
        }
        let at = points[peak].at;
        let mut group = vec![peak];
        for z in reach(at, 0).into_iter().flatten() {
            for y in reach(at, 1).into_iter().flatten() {
                for xs in reach(at, 2) {
                    let first = points.partition_point(|point| point.at < [z, y, *xs.start()]);
                    let row = points[first..].iter().take_while(|point| point.at <= [z, y, *xs.end()]);
                    for i in (first..).take(row.count()).filter(|i| std::mem::take(&mut is_free[*i])) {
                        group.push(i);
                    }
                }
            }
        }
        groups.push(group);
    }
    groups
}

/// Returns the places within `far` of `at` and between the `ends`, on a line, or on a circle of this length, where they may be in two
/// pieces.
fn reach(at: i64, far: i64, ends: (i64, i64), circle: Option<i64>) -> [RangeInclusive<i64>; 2] {
    #[allow(clippy::reversed_empty_ranges, reason = "none")]
    let none = 1..=0;
    let (low, high) = (at.saturating_sub(far), at.saturating_add(far));
    match circle {
        Some(length) if high.saturating_sub(low) >= length - 1 => [ends.0..=ends.1, none],
        Some(length) if low < 0 => [ends.0..=high, low + length..=ends.1],
        Some(length) if high >= length => [ends.0..=high - length, low..=ends.1],
        _ => [low.max(ends.0)..=high.min(ends.1), none],
    }
}

/// Returns the place in a filter that positions point at, as (depth, height, width).
fn offset<T: Real>(filter: &[T], shape: Shape, align: Align) -> [i64; 3] {
    let place = |i: usize| {
        let pixel = i % shape.pixels();
        [pixel / (shape.height * shape.width), pixel / shape.width % shape.height, pixel % shape.width]
    };
    match align {
        Align::Start => [0; 3],
        Align::Peak => {
            let mut peak = 0;
            for (i, value) in filter.iter().enumerate() {
                if value.f64().abs() > filter[peak].f64().abs() {
                    peak = i;
                }
            }
            place(peak).map(|n| n as i64)
        }
        Align::Centre => {
            let energy: f64 = filter.iter().map(|v| v.f64() * v.f64()).sum();
            let mean = |axis: usize| {
                let sum: f64 = filter.iter().enumerate().map(|(i, v)| v.f64() * v.f64() * place(i)[axis] as f64).sum();
                sum / energy.max(f64::MIN_POSITIVE)
            };
            [0, 1, 2].map(|axis| mean(axis).round() as i64)
        }
    }
}

/// The places of a code and of its sample.
struct Space {
    /// The lengths of the code's axes.
    code: [usize; 3],
    /// Those of the sample's.
    sample: [i64; 3],
    /// How far before its position the first corner of a filter lies.
    margin: [i64; 3],
    /// The lengths of the axes, if they close.
    circle: Option<[i64; 3]>,
    filter: Shape,
}

impl Space {
    fn new<T: Real>(code: &Code<T>, dictionary: &Dictionary<T>, boundary: Boundary) -> Result<Self> {
        if code.n_filters() != dictionary.n_filters() {
            let expected = format!("{}, as the dictionary has", counted(dictionary.n_filters(), "filter"));
            return Err(Error::invalid("code", expected, code.n_filters()));
        }
        let filter = dictionary.shape();
        let is_circular = boundary == Boundary::Circular;
        let margin = if is_circular { [0; 3] } else { filter.spatial().map(|n| n - 1) };
        let size: [usize; 3] = std::array::from_fn(|i| code.shape()[i].saturating_sub(margin[i]));
        let [depth, height, width] = size;
        dictionary.check_sample_shape(Shape { channels: filter.channels, depth, height, width })?;
        let sample = size.map(|n| n as i64);
        let circle = is_circular.then_some(sample);
        Ok(Space { code: code.shape(), sample, margin: margin.map(|n| n as i64), circle, filter })
    }

    fn coordinates(&self, position: u32) -> [i64; 3] {
        let (p, [_, h, w]) = (position as usize, self.code);
        [p / (h * w), p / w % h, p % w].map(|n| n as i64)
    }

    fn wrapped(&self, at: [i64; 3]) -> [i64; 3] {
        if self.circle.is_some() { std::array::from_fn(|i| at[i].rem_euclid(self.sample[i])) } else { at }
    }

    /// Returns ||D z||^2 on the pixels of the sample, for the code z of one filter that has the points of a group.
    fn energy<T: Real>(&self, filter: &[T], points: &[Point], group: &[usize], canvas: &mut Vec<f64>) -> f64 {
        let lengths = self.filter.spatial().map(|n| n as i64);
        let peak = points[group[0]].at;
        let corner: [i64; 3] = std::array::from_fn(|i| peak[i] - self.margin[i]);
        let is_inside =
            self.circle.is_some() || (0..3).all(|i| corner[i] >= 0 && corner[i] + lengths[i] <= self.sample[i]);
        if let ([_], true) = (group, is_inside) {
            return points[group[0]].value.powi(2) * filter.iter().map(|v| v.f64() * v.f64()).sum::<f64>();
        }
        // From the peak, the short way round.
        let steps = |i: &usize| -> [i64; 3] {
            std::array::from_fn(|axis| {
                let (step, n) = (points[*i].at[axis] - peak[axis], self.sample[axis]);
                if self.circle.is_some() { (step + n / 2).rem_euclid(n) - n / 2 } else { step }
            })
        };
        let low: [i64; 3] = std::array::from_fn(|a| group.iter().map(|i| steps(i)[a]).min().unwrap_or(0));
        let high: [i64; 3] = std::array::from_fn(|a| group.iter().map(|i| steps(i)[a]).max().unwrap_or(0));
        // A box that holds all of them; on the circle at most all of it.
        let room: [i64; 3] = std::array::from_fn(|a| {
            let room = high[a] - low[a] + lengths[a];
            if self.circle.is_some() { room.min(self.sample[a]) } else { room }
        });
        let [depth, height, width] = room.map(|n| n as usize);
        canvas.clear();
        canvas.resize(self.filter.channels * depth * height * width, 0.0);
        for i in group {
            let [z0, y0, x0]: [usize; 3] = std::array::from_fn(|a| (steps(i)[a] - low[a]) as usize);
            for (row, taps) in filter.chunks(self.filter.width).enumerate() {
                let (plane, y) = (row / self.filter.height, row % self.filter.height);
                let (c, z) = (plane / self.filter.depth, plane % self.filter.depth);
                let line = ((c * depth + (z0 + z) % depth) * height + (y0 + y) % height) * width;
                for (x, tap) in taps.iter().enumerate() {
                    canvas[line + (x0 + x) % width] += points[*i].value * tap.f64();
                }
            }
        }
        if self.circle.is_some() {
            return canvas.iter().map(|v| v * v).sum();
        }
        let inside = |axis: usize, at: usize| (0..self.sample[axis]).contains(&(corner[axis] + low[axis] + at as i64));
        let mut energy = 0.0;
        for (line, values) in canvas.chunks(width).enumerate() {
            if inside(0, line / height % depth) && inside(1, line % height) {
                energy += (0..width).filter(|x| inside(2, *x)).map(|x| values[x].powi(2)).sum::<f64>();
            }
        }
        energy
    }
}
