//! What a filter may be: the one place that says so. Updates project through it, and so does every dictionary that a run
//! starts from, so that all dictionaries of a run are feasible.
//!
//! Every filter d, an array (channel, depth, height, width), lies in the unit ball, ||d|| <= 1. [`FilterConfig`] adds to that:
//!
//! | setting | d lies in | projection, before that on the ball |
//! |---|---|---|
//! | `scales` | a subspace: zero outside a centred box smaller than the array | zeros outside the box |
//! | `filters_nonnegative` | a cone: no value below 0 | zeros for negative values |
//! | `zero_mean` | a subspace: the mean over the box and all channels is 0 | subtract the mean, within the box |
//! | `rank1` | the cone of d = u v^T, u over channels, v over space or time, ||u||, ||v|| <= 1 | the first singular pair |
//!
//! **Exactness.** The projection on the intersection of a closed convex cone (a subspace is one) with the ball around its apex is
//! the projection on the cone, scaled to norm 1 where it is longer. Boxes and signs act value by value, so their cones intersect
//! value by value; boxes and means are one subspace together. A mean of zero without negative values leaves only d = 0, and is
//! refused.
//!
//! **Rank one** is no convex set, but the nearest matrix of rank one is the first singular pair, and scaling brings it into the
//! ball as before. ||u||, ||v|| <= 1 says no more than ||d|| <= 1, since only the product of the norms counts. A box binds v, and so
//! does `zero_mean`: every channel has mean zero then. Rows that are projected first have a first singular pair with such a v,
//! so both are exact too. With `filters_nonnegative` neither u nor v has negative values. The nearest such pair is hard to find
//! in general; here it is the first singular pair of the positive part, which is feasible. The update does not depend on it: it
//! moves u and v in turn (`update/rank_one.rs`), each by exact projections.
//!
//! **Fixed filters**, the first ones of a given dictionary, are what they are: nothing moves them, and nothing above binds them.
//! The others share the scales evenly, in order: with three scales the first third has the first.

use crate::dictionary::project_unit_ball;
use crate::setting::{Effect, HasKind, Kind, Part, settings};
use crate::text::counted;
use crate::{Dictionary, Error, Real, Result, Shape};
use serde::{Deserialize, Serialize};

/// Slack for filters that were rounded on their way through a file, as [`Dictionary::new`] gives to norms.
const SLACK: f64 = 1e-4;
/// A start of which the projection leaves less than this part of the norm is replaced: it would be scaled rounding errors.
const NOTHING: f64 = 1e-6;
/// Power iterations for a first singular pair, at most, and the change at which they end.
const ITERATIONS: usize = 2000;
const SETTLED: f64 = 1e-15;

settings! {
    /// Settings of what filters may be, see [`crate::constraint`].
    pub struct FilterConfig at "/filters" {
        /// Filters without negative values (method ocsc).
        nonnegative: bool = false, name("filters_nonnegative"), of(Part::Filters), effect(Effect::Fixed);
        /// Filters whose mean is zero, over their support and all channels (method ocsc).
        zero_mean: bool = false, of(Part::Filters), effect(Effect::Fixed);
        /// Sizes of the filters' supports, each one length for every axis or one for each: the learned filters share them
        /// evenly, in order, and are zero outside a centred box of their size; all have the whole array by default (method ocsc).
        scales: Scales = Scales::default(), of(Part::Filters), flag("size"), not_in_learn(), effect(Effect::Fixed);
        /// Filters that are a topography (channels) times a waveform (space or time), for samples with several channels (method
        /// ocsc).
        rank1: bool = false, of(Part::Filters), effect(Effect::Fixed);
        /// The first filters of the given initial dictionary that do not learn (method ocsc).
        fixed: usize = 0, name("fixed_filters"), of(Part::Filters), value_name("N"), effect(Effect::Fixed);
    }
}

impl FilterConfig {
    /// Refuses settings that contradict each other, whatever the filters are like.
    pub(crate) fn check_together(&self) -> Result<()> {
        if self.nonnegative && self.zero_mean {
            let expected =
                "filters that may have negative values, since only zeros have neither these nor another mean";
            return Err(Error::invalid("zero_mean", expected, "filters_nonnegative beside it"));
        }
        Ok(())
    }

    /// Refuses what filters of this number and shape, with so many spatial axes, cannot be.
    pub(crate) fn check(&self, n_filters: usize, shape: Shape, rank: usize) -> Result<()> {
        self.check_together()?;
        if self.rank1 && shape.channels < 2 {
            let expected = "samples with several channels, over which a filter has a topography";
            return Err(Error::invalid("rank1", expected, counted(shape.channels, "channel")));
        }
        if self.fixed > n_filters {
            let expected = format!("at most the {}", counted(n_filters, "filter"));
            return Err(Error::invalid("fixed_filters", expected, self.fixed));
        }
        self.scales.check(n_filters - self.fixed, &shape.axes(rank))?;
        if self.zero_mean && self.fixed < n_filters {
            let boxes = self.scales.boxes(shape, rank);
            let values = |lengths: &[usize; 3]| lengths.iter().product::<usize>();
            // With rank one it is the waveform's mean that is zero.
            let channels = if self.rank1 { 1 } else { shape.channels };
            if boxes.iter().any(|lengths| channels * values(lengths) < 2) {
                let expected = "filters of at least two values, since one value with mean zero is zero";
                return Err(Error::invalid("zero_mean", expected, "a filter of one value"));
            }
        }
        Ok(())
    }

    /// Refuses fixed filters where the initial dictionary is not given.
    pub(crate) fn check_start(&self, is_given: bool) -> Result<()> {
        match self.fixed {
            0 => Ok(()),
            _ if is_given => Ok(()),
            fixed => {
                let expected = "0, or a given initial dictionary (init) whose first filters stay as they are";
                Err(Error::invalid("fixed_filters", expected, fixed))
            }
        }
    }
}

/// Lists the sizes of the filters' supports; none stands for the whole array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scales(pub Vec<Scale>);

/// The size of a support.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a list of sizes, each one length or one for each axis")]
#[non_exhaustive]
pub enum Scale {
    /// One length for every axis.
    Every(usize),
    /// One length for each axis.
    Each(Vec<usize>),
}

impl HasKind for Scales {
    const KIND: Kind = Kind::Sizes;
}

impl Scale {
    /// Returns its lengths along so many axes; none if it has another number of them.
    fn lengths(&self, rank: usize) -> Option<Vec<usize>> {
        match self {
            Scale::Every(length) => Some(vec![*length; rank]),
            Scale::Each(lengths) => Some(lengths.clone()).filter(|lengths| lengths.len() == rank),
        }
    }
}

impl Scales {
    /// Refuses what does not fit into arrays of these axes, and more sizes than there are filters to share them.
    fn check(&self, n_filters: usize, axes: &[usize]) -> Result<()> {
        for scale in &self.0 {
            let fits =
                |lengths: &Vec<usize>| lengths.iter().zip(axes).all(|(length, axis)| (1..=*axis).contains(length));
            if !scale.lengths(axes.len()).as_ref().is_some_and(fits) {
                let expected =
                    format!("lengths from 1 up to the filter's {axes:?}, one for every axis or one for each");
                let found = match scale {
                    Scale::Every(length) => length.to_string(),
                    Scale::Each(lengths) => format!("{lengths:?}"),
                };
                return Err(Error::invalid("scales", expected, found));
            }
        }
        if n_filters > 0 && self.0.len() > n_filters {
            let expected = format!("at most {n_filters}, one for each filter that learns");
            return Err(Error::invalid("scales", expected, self.0.len()));
        }
        Ok(())
    }

    /// Returns the boxes as (depth, height, width), at least one.
    fn boxes(&self, shape: Shape, rank: usize) -> Vec<[usize; 3]> {
        let whole = shape.spatial();
        let spatial = |scale: &Scale| {
            let lengths = scale.lengths(rank)?;
            Shape::from_axes(shape.channels, &lengths).ok().map(|shape| shape.spatial())
        };
        match self.0.is_empty() {
            true => vec![whole],
            false => self.0.iter().map(|scale| spatial(scale).unwrap_or(whole)).collect(),
        }
    }
}

/// Says what each filter of a dictionary may be.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    n_filters: usize,
    shape: Shape,
    fixed: usize,
    nonnegative: bool,
    zero_mean: bool,
    rank1: bool,
    /// For every scale, which positions (depth, height, width) its box has; none if all filters have the whole array.
    supports: Vec<Vec<bool>>,
}

impl Constraint {
    /// What these settings say of filters of this number and shape, with so many spatial axes; refuses what they cannot be.
    pub fn new(config: &FilterConfig, n_filters: usize, shape: Shape, rank: usize) -> Result<Self> {
        config.check(n_filters, shape, rank)?;
        let supports = match config.scales.0.is_empty() {
            true => Vec::new(),
            false => config.scales.boxes(shape, rank).into_iter().map(|lengths| support(shape, lengths)).collect(),
        };
        let FilterConfig { fixed, nonnegative, zero_mean, rank1, .. } = *config;
        Ok(Constraint { n_filters, shape, fixed, nonnegative, zero_mean, rank1, supports })
    }

    /// The unit ball alone.
    pub(crate) fn ball(n_filters: usize, shape: Shape) -> Self {
        let supports = Vec::new();
        Constraint { n_filters, shape, fixed: 0, nonnegative: false, zero_mean: false, rank1: false, supports }
    }

    /// Returns whether filter k stays as it is.
    pub fn is_fixed(&self, k: usize) -> bool {
        k < self.fixed
    }

    /// Returns whether filters are a topography times a waveform.
    pub(crate) fn is_rank_one(&self) -> bool {
        self.rank1
    }

    /// Returns the numbers of a waveform.
    pub(crate) fn pixels(&self) -> usize {
        self.shape.pixels()
    }

    /// Returns whether the unit ball is all there is.
    fn is_ball(&self) -> bool {
        !(self.nonnegative || self.zero_mean || self.rank1) && self.supports.is_empty()
    }

    /// Returns the positions that filter k may use; none if it may use all.
    fn support(&self, k: usize) -> Option<&[bool]> {
        let (k, learned) = (k.saturating_sub(self.fixed), self.n_filters.saturating_sub(self.fixed).max(1));
        self.supports.get(k * self.supports.len() / learned).map(Vec::as_slice)
    }

    /// Projects filter k: (channel, depth, height, width). A fixed one stays as it is.
    pub fn project<T: Real>(&self, k: usize, filter: &mut [T]) {
        if self.is_fixed(k) {
            return;
        }
        if !self.is_ball() {
            self.project_on_cone(k, filter);
        }
        project_unit_ball(filter);
    }

    fn project_on_cone<T: Real>(&self, k: usize, filter: &mut [T]) {
        if !self.rank1 {
            return self.project_values(k, filter);
        }
        filter.chunks_exact_mut(self.shape.pixels()).for_each(|channel| self.project_values(k, channel));
        let matrix: Vec<f64> = filter.iter().map(|v| v.f64()).collect();
        let (topography, waveform) = first_pair(&matrix, self.shape.pixels());
        set_product(filter, &topography, &waveform);
    }

    /// Projects the waveform of filter k, (depth, height, width), on its part of the cone.
    pub(crate) fn project_waveform(&self, k: usize, waveform: &mut [f64]) {
        self.project_values(k, waveform);
    }

    /// Projects a topography on its part of the cone.
    pub(crate) fn project_topography(&self, topography: &mut [f64]) {
        if self.nonnegative {
            topography.iter_mut().for_each(|u| *u = u.max(0.0));
        }
    }

    /// Projects whole channels on the box, the sign and the mean of filter k.
    fn project_values<T: Real>(&self, k: usize, values: &mut [T]) {
        self.clip(k, values);
        if self.zero_mean {
            let count = (0..values.len()).filter(|i| self.is_inside(k, *i)).count().max(1);
            let mean = values.iter().map(|v| v.f64()).sum::<f64>() / count as f64;
            for (_, v) in values.iter_mut().enumerate().filter(|(i, _)| self.is_inside(k, *i)) {
                *v = T::of(v.f64() - mean);
            }
        }
    }

    /// Sets what is outside the box of filter k, or has the wrong sign, to zero.
    fn clip<T: Real>(&self, k: usize, values: &mut [T]) {
        for (i, v) in values.iter_mut().enumerate() {
            if !self.is_inside(k, i) || self.nonnegative && *v < T::zero() {
                *v = T::zero();
            }
        }
    }

    /// Returns whether number `i` of filter k is in its box.
    fn is_inside(&self, k: usize, i: usize) -> bool {
        self.support(k).is_none_or(|support| support[i % self.shape.pixels()])
    }

    /// Returns whether a filter may be filter k, up to what a file may have rounded.
    pub fn allows<T: Real>(&self, k: usize, filter: &[T]) -> bool {
        if self.is_fixed(k) || self.is_ball() && norm(filter) <= 1.0 {
            return true;
        }
        let mut nearest = filter.to_vec();
        self.project(k, &mut nearest);
        let away: f64 = filter.iter().zip(&nearest).map(|(a, b)| (a.f64() - b.f64()).powi(2)).sum();
        away.sqrt() <= SLACK * norm(filter)
    }

    /// Makes a start of filter k of an array of norm 1: its projection on the cone, or that of its negative if nothing is left,
    /// with norm 1 again. Returns false, and leaves the array as it is, if nothing is left of either.
    pub(crate) fn start<T: Real>(&self, k: usize, filter: &mut [T]) -> bool {
        if self.is_ball() {
            project_unit_ball(filter);
            return true;
        }
        let least = NOTHING * norm(filter);
        for sign in [1.0, -1.0] {
            let mut start: Vec<T> = filter.iter().map(|v| T::of(sign * v.f64())).collect();
            self.project_on_cone(k, &mut start);
            let left = norm(&start);
            if left > least {
                filter.iter_mut().zip(start).for_each(|(d, v)| *d = T::of(v.f64() / left));
                project_unit_ball(filter);
                return true;
            }
        }
        false
    }

    /// Makes a dictionary that a run starts from feasible. Filters that are feasible stay as they are; others are projected and
    /// get norm 1. Where nothing is left of one, the Gaussian filter of the seed takes its place.
    pub(crate) fn begin<T: Real>(&self, dictionary: &mut Dictionary<T>, seed: u64) -> Result<()> {
        if self.is_ball() {
            return Ok(());
        }
        let len = self.shape.len();
        let mut gaussian = None;
        for k in self.fixed..self.n_filters {
            let mut filter = dictionary.filter(k).to_vec();
            if self.allows(k, &filter) {
                // What can be exact, is.
                self.clip(k, &mut filter);
            } else if !self.start(k, &mut filter) {
                let others = match gaussian.take() {
                    Some(others) => others,
                    None => Dictionary::random(self.n_filters, self.shape, dictionary.rank(), seed)?,
                };
                filter.copy_from_slice(others.filter(k));
                gaussian = Some(others);
                if !self.start(k, &mut filter) {
                    filter.fill(T::zero());
                }
            }
            dictionary.data_mut()[k * len..][..len].copy_from_slice(&filter);
        }
        Ok(())
    }
}

/// Returns the positions (depth, height, width) of a centred box of these lengths.
fn support(shape: Shape, lengths: [usize; 3]) -> Vec<bool> {
    let axes = shape.spatial();
    let is_inside = |i: usize| {
        let place = [i / (axes[1] * axes[2]), i / axes[2] % axes[1], i % axes[2]];
        (0..3).all(|a| {
            let first = (axes[a] - lengths[a].min(axes[a])) / 2;
            (first..first + lengths[a]).contains(&place[a])
        })
    };
    (0..shape.pixels()).map(is_inside).collect()
}

fn norm<T: Real>(values: &[T]) -> f64 {
    values.iter().map(|v| v.f64() * v.f64()).sum::<f64>().sqrt()
}

/// filter <- u v^T.
pub(crate) fn set_product<T: Real>(filter: &mut [T], topography: &[f64], waveform: &[f64]) {
    for (channel, u) in filter.chunks_exact_mut(waveform.len()).zip(topography) {
        channel.iter_mut().zip(waveform).for_each(|(d, v)| *d = T::of(u * v));
    }
}

/// Returns the first singular pair of a matrix with rows of `width` numbers: u of norm 1, and v of the singular value's norm, by
/// power iterations from the longest row. If no number is negative, none of theirs is.
pub(crate) fn first_pair(matrix: &[f64], width: usize) -> (Vec<f64>, Vec<f64>) {
    let longest = matrix.chunks_exact(width).max_by(|a, b| norm(a).total_cmp(&norm(b))).unwrap_or_default();
    let mut v = longest.to_vec();
    let mut u = vec![0.0; matrix.len() / width.max(1)];
    let mut value = norm(&v);
    for _ in 0..ITERATIONS {
        for (u, row) in u.iter_mut().zip(matrix.chunks_exact(width)) {
            *u = row.iter().zip(&v).map(|(m, v)| m * v).sum();
        }
        let length = norm(&u);
        if length <= 0.0 || !length.is_finite() {
            break;
        }
        u.iter_mut().for_each(|u| *u /= length);
        let mut next = vec![0.0; width];
        for (u, row) in u.iter().zip(matrix.chunks_exact(width)) {
            next.iter_mut().zip(row).for_each(|(v, m)| *v += u * m);
        }
        let moved: f64 = next.iter().zip(&v).map(|(a, b)| (a - b).powi(2)).sum();
        v = next;
        value = norm(&v);
        if moved.sqrt() <= SETTLED * value {
            break;
        }
    }
    if value <= 0.0 {
        u.fill(0.0);
    }
    (u, v)
}
