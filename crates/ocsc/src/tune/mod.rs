//! Choosing beta, and the number and size of filters, by predicting hidden values.
//!
//! A few values H of every sample x are hidden. For a path of betas, from large to small,
//!
//! ```text
//! z(beta) = argmin over z   1/2 || x - D z ||^2 over what is not hidden  +  beta ||z||_1
//! error(beta) = sqrt( mean over H of (x - D z(beta))^2 )  /  standard deviation of x over H .
//! ```
//!
//! A large beta leaves structure out and a small one fits noise; both predict badly, so the error has a minimum. It needs no clean
//! data, does not depend on the scale of the data, and compares dictionaries of any number and size of filters. A prediction by the
//! mean has the error 1.
//!
//! Every code of the path starts from the one before. Of all betas whose error is within one standard error of the smallest, the
//! largest is recommended: the sparsest codes that predict about as well as the best. The standard error is over samples, which
//! differ in how hard they are; so it is generous where samples are few and unlike. The path ends where errors rise again, or where
//! codes have more non-zeros than half of the values: data without noise are predicted the better the denser the codes are. A
//! path without a minimum inside says so, [`PathEnd`].
//!
//! The dictionary is learned from what is not hidden, briefly, at a middle beta, and is the same for the whole path unless the
//! call wants it learned anew at every beta.
//!
//! Reference for the rule: Breiman, Friedman, Olshen, Stone, "Classification and Regression Trees", 1984, section 3.4.3.

mod hide;
mod pieces;

pub use hide::Hidden;

use crate::beta::{BetaMax, DEFAULT_RATIO};
use crate::learner::{Step, coder};
use crate::monitor::{Monitor, check_wanted};
use crate::real::compiled;
use crate::run::{Init, Run};
use crate::train::{Ended, Observer, Snapshot, name_samples};
use crate::{Boundary, Code, Config, Dictionary, Error, Method, Real, Result, Samples, Shape, random};
use rayon::prelude::*;
use serde::Serialize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// A path ends with more non-zeros than this share of the values.
const DENSE: f64 = 0.5;

/// Says how to tune.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tuning {
    /// The share of the values that is hidden.
    pub hidden: f64,
    /// The fractions of the largest useful beta to try, descending.
    pub ratios: Vec<f64>,
    /// The fraction that the dictionary is learned with.
    pub learned_at: f64,
    /// Whether the dictionary is learned anew at every beta.
    pub relearn: bool,
    /// How many samples, or pieces of large ones, to take; as many as make a quarter of a million values by default.
    pub samples: Option<usize>,
    /// Seeds the choice of samples, pieces and hidden values.
    pub seed: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        let ratios = (0..12).map(|i| 0.5 * 0.5_f64.powf(0.5 * f64::from(i))).map(rounded).collect();
        Tuning { hidden: 0.05, ratios, learned_at: DEFAULT_RATIO, relearn: false, samples: None, seed: 0 }
    }
}

/// Returns a number with two digits, as people type them.
fn rounded(number: f64) -> f64 {
    let digit = 10_f64.powf(number.log10().floor() - 1.0);
    // Through text, so that 0.35 is the number that is written so.
    format!("{:.6}", (number / digit).round() * digit).parse().unwrap_or(number)
}

/// The filters that samples are coded with.
pub enum Filters<T: Real> {
    /// They are learned, from this start.
    Learned(Init<T>),
    /// They are given, as those of a model.
    Given(Dictionary<T>),
}

/// What came of one beta.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// The fraction of the largest useful beta.
    pub ratio: f64,
    /// The beta.
    pub beta: f64,
    /// Non-zeros as a share of the values that are not hidden.
    pub nonzeros_share: f64,
    /// The root mean square of the errors of the hidden values, over their standard deviation.
    pub error: f64,
    /// Its standard error over samples; zero for a single one.
    pub standard_error: f64,
    /// The wall time of coding, and of learning where that is done anew.
    pub seconds: f64,
    /// The squared errors of the samples, relative to the variance of all hidden values.
    #[serde(rename = "squared_errors")]
    pub squares: Vec<f64>,
}

/// Says at which end of the path the errors have their minimum, if it is not inside. Then the rule finds no more than the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PathEnd {
    /// No beta predicts better, by more than chance, than the largest: larger ones may do as well, with sparser codes.
    Largest,
    /// The smallest predicts best, as with data that have hardly any noise: smaller ones predict better still, with denser codes.
    Smallest,
    /// The same, and the path ended since codes with smaller betas have more non-zeros than half of the values.
    Dense,
}

/// What came of all betas, for one number and size of filters.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Tuned {
    /// The number of filters.
    pub n_filters: usize,
    /// Their size.
    pub filter_shape: Vec<usize>,
    /// What the ratios are fractions of.
    pub beta_max: f64,
    /// How many samples, or pieces of large ones, were coded.
    pub samples: usize,
    /// How many values were hidden.
    pub hidden: usize,
    /// One for every beta, descending.
    pub points: Vec<Point>,
    /// The number of the recommended one.
    pub recommended: usize,
    /// At which end of the path the errors have their minimum; none if it is inside, or if a single beta was asked for.
    pub end_of_path: Option<PathEnd>,
    /// The wall time of learning, before the first beta.
    pub learning_seconds: f64,
}

impl Tuned {
    /// Returns the recommended point.
    pub fn recommendation(&self) -> &Point {
        &self.points[self.recommended]
    }

    /// Returns the point of the smallest error, of those with sparse codes if there are any.
    pub fn best(&self) -> &Point {
        &self.points[best(&self.points)]
    }
}

compiled! {
    /// Tries a path of betas on samples, which are preprocessed already: steps that mix values would otherwise tell of the hidden
    /// ones.
    ///
    /// `each` is told of every beta as it is done.
    pub fn tune<T>(
        config: &Config,
        filters: Filters<T>,
        samples: &dyn Samples<T>,
        tuning: &Tuning,
        monitor: &Arc<dyn Monitor>,
        each: &mut dyn FnMut(&Point),
    ) -> Result<Tuned> = try_betas;
}

fn try_betas<T: Real>(
    config: &Config,
    filters: Filters<T>,
    samples: &dyn Samples<T>,
    tuning: &Tuning,
    monitor: &Arc<dyn Monitor>,
    each: &mut dyn FnMut(&Point),
) -> Result<Tuned> {
    check(config, tuning)?;
    let mut config = config.clone();
    let rank = config.filter_shape.len();
    let filter = match &filters {
        Filters::Given(dictionary) | Filters::Learned(Init::Given(dictionary)) => {
            config.n_filters = dictionary.n_filters();
            config.filter_shape = dictionary.shape().axes(dictionary.rank());
            dictionary.shape()
        }
        Filters::Learned(_) => Shape::from_axes(channels(samples)?, &config.filter_shape)?,
    };
    let of = match &filters {
        Filters::Given(dictionary) => BetaMax::of_filters(&config, dictionary, samples, false)?,
        Filters::Learned(_) => BetaMax::of_patches(&config, filter, samples, false)?,
    };
    let pieces = pieces::cut(samples, filter, tuning, rank)?;
    // A piece does not go on at its other side.
    if pieces.are_cut && config.boundary == Boundary::Circular {
        config.boundary = Boundary::Free;
    }
    let hide = |(i, piece)| Hidden::new(&piece, tuning.hidden, tuning.seed, i);
    let hidden: Vec<Hidden<T>> = pieces.samples.into_iter().enumerate().map(hide).collect::<Result<_>>()?;
    let observed: Vec<_> = hidden.iter().map(|hidden| hidden.sample.clone()).collect();
    let clock = Instant::now();
    let mut path = Path { config, hidden: &hidden, median: of.median, monitor, codes: vec![None; hidden.len()] };
    let (mut dictionary, is_given) = match filters {
        Filters::Given(dictionary) => (dictionary, true),
        Filters::Learned(init) => (path.learn(init, tuning.learned_at, &observed)?, false),
    };
    let learning_seconds = clock.elapsed().as_secs_f64();
    let mut points: Vec<Point> = Vec::new();
    for &ratio in &tuning.ratios {
        let clock = Instant::now();
        if tuning.relearn && !is_given {
            dictionary = path.learn(Init::Given(dictionary), ratio, &observed)?;
        }
        let mut point = path.point(&dictionary, ratio)?;
        point.seconds = clock.elapsed().as_secs_f64();
        each(&point);
        points.push(point);
        if is_past_the_end(&points) {
            break;
        }
    }
    if points.iter().all(|point| point.nonzeros_share == 0.0) {
        let expected = "a beta of the path with codes that are not all zeros";
        return Err(Error::invalid("ratios", expected, format!("{:?}", tuning.ratios)));
    }
    let (recommended, end_of_path) = (recommend(&points), end_of(&points));
    let Config { n_filters, filter_shape, .. } = path.config;
    let n_hidden = hidden.iter().map(|hidden| hidden.places.len()).sum();
    Ok(Tuned {
        n_filters,
        filter_shape,
        beta_max: of.median,
        samples: hidden.len(),
        hidden: n_hidden,
        points,
        recommended,
        end_of_path,
        learning_seconds,
    })
}

compiled! {
    /// Hides a share of the values of all samples, codes the others with the beta of the settings, and returns the error of the
    /// hidden ones, as [`Point::error`]. It compares models of any beta on equal samples.
    pub fn heldout<T>(
        config: &Config,
        dictionary: &Dictionary<T>,
        samples: &dyn Samples<T>,
        share: f64,
        seed: u64,
        monitor: &Arc<dyn Monitor>,
    ) -> Result<f64> = error_of_hidden;
}

fn error_of_hidden<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    share: f64,
    seed: u64,
    monitor: &Arc<dyn Monitor>,
) -> Result<f64> {
    check_share(share)?;
    if samples.is_empty() {
        return Err(Error::invalid("data set", "at least one sample", "none"));
    }
    let hide = |i: usize| {
        let sample = samples.get(i)?;
        dictionary.check_sample_shape(sample.shape())?;
        Hidden::new(&sample, share, seed, i)
    };
    let named = |i: usize| hide(i).map_err(|error| name_samples(error, samples, &[i]));
    let hidden: Vec<Hidden<T>> = (0..samples.len()).map(named).collect::<Result<_>>()?;
    let codes = vec![None; hidden.len()];
    let mut path = Path { config: config.clone(), hidden: &hidden, median: 1.0, monitor, codes };
    Ok(path.point(dictionary, config.beta)?.error)
}

/// Returns the number of the recommended one of several tries, which hid the same values: of those whose best error is within one
/// standard error of the best of all, sample by sample, the one with the fewest values in its filters.
pub fn recommend_filters(tries: &[Tuned]) -> usize {
    let bests: Vec<Point> = tries.iter().map(|tuned| tuned.best().clone()).collect();
    let size = |i: &usize| tries[*i].n_filters * tries[*i].filter_shape.iter().product::<usize>();
    let best = best(&bests);
    (0..bests.len()).filter(|i| is_within(&bests[*i], &bests[best])).min_by_key(size).unwrap_or(0)
}

/// Refuses what cannot be tuned.
fn check(config: &Config, tuning: &Tuning) -> Result<()> {
    config.validate()?;
    if config.method != Method::Ocsc {
        return Err(Error::invalid("method", "ocsc, which takes samples with hidden values", config.method));
    }
    check_share(tuning.hidden)?;
    let descends = tuning.ratios.windows(2).all(|pair| pair[0] > pair[1]);
    if tuning.ratios.is_empty() || !descends || tuning.ratios.iter().any(|r| !(*r > 0.0 && r.is_finite())) {
        return Err(Error::invalid("ratios", "numbers above 0, descending", format!("{:?}", tuning.ratios)));
    }
    crate::setting::positive("learned_at", tuning.learned_at)
}

/// Refuses to hide nothing, or all.
fn check_share(share: f64) -> Result<()> {
    if share > 0.0 && share < 1.0 {
        return Ok(());
    }
    Err(Error::invalid("hidden", "a share of the values between 0 and 1", share))
}

/// Returns the channels of the first sample that can be read.
fn channels<T: Real>(samples: &dyn Samples<T>) -> Result<usize> {
    let mut first_error = None;
    for i in 0..samples.len() {
        match samples.get(i) {
            Ok(sample) => return Ok(sample.shape().channels),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| Error::invalid("data set", "at least one sample", "none")))
}

/// The samples on their way along the path.
struct Path<'a, T: Real> {
    config: Config,
    hidden: &'a [Hidden<T>],
    median: f64,
    monitor: &'a Arc<dyn Monitor>,
    /// The codes at the last beta.
    codes: Vec<Option<Code<T>>>,
}

impl<T: Real> Path<'_, T> {
    /// Learns filters from what is not hidden.
    fn learn(&self, init: Init<T>, ratio: f64, observed: &[crate::Sample<T>]) -> Result<Dictionary<T>> {
        let config = Config { beta: ratio * self.median, ..self.config.clone() };
        let mut run = Run::new(config).init(init).start(&observed)?;
        let outcome = run.train(&observed, None, &mut Watched(self.monitor.clone()))?;
        if outcome.ended == Ended::Stopped {
            return Err(Error::Stopped);
        }
        Ok(run.learner().dictionary().clone())
    }

    /// Codes all samples at one beta, from their codes at the one before, and predicts what is hidden.
    fn point(&mut self, dictionary: &Dictionary<T>, ratio: f64) -> Result<Point> {
        let config = Config { beta: ratio * self.median, ..self.config.clone() };
        let monitor = self.monitor;
        let code = |(hidden, start): (&Hidden<T>, &Option<Code<T>>)| {
            check_wanted(&**monitor)?;
            let coded = coder(&config, dictionary, config.tol)?.code(&hidden.sample, start.as_ref())?;
            let error = hidden.squared_error(&coded.code, coded.filters_or(dictionary), config.boundary)?;
            monitor.coded();
            Ok((coded.code, error))
        };
        let coded: Vec<(Code<T>, f64)> = self.hidden.par_iter().zip(&self.codes).map(code).collect::<Result<_>>()?;
        let variance = hide::variance(self.hidden);
        let nonzeros: usize = coded.iter().map(|(code, _)| code.nonzeros()).sum();
        let values: usize = self.hidden.iter().map(|hidden| hidden.sample.n_observed()).sum();
        let squares: Vec<f64> = coded.iter().map(|(_, error)| error / variance).collect();
        let error = mean(&squares).sqrt();
        self.codes = coded.into_iter().map(|(code, _)| Some(code)).collect();
        Ok(Point {
            ratio,
            beta: config.beta,
            nonzeros_share: nonzeros as f64 / values.max(1) as f64,
            error,
            // d sqrt(q) = dq / (2 sqrt(q)): of the error, not of its square.
            standard_error: standard_error(&squares) / (2.0 * error.max(f64::MIN_POSITIVE)),
            seconds: 0.0,
            squares,
        })
    }
}

/// Lets a monitor end the learning.
struct Watched(Arc<dyn Monitor>);

impl<T: Real> Observer<T> for Watched {
    fn step(&mut self, _run: &Snapshot<'_, T>, _step: &Step<T>) -> Result<ControlFlow<()>> {
        Ok(if self.0.keep_going() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        self.0.clone()
    }
}

/// Returns whether smaller betas need no look: the last two errors are above the smallest by more than a standard error and rise,
/// or codes are not sparse any more.
fn is_past_the_end(points: &[Point]) -> bool {
    let [.., last] = points else { return false };
    let is_worse = |point: &Point| !is_within(point, &points[best(points)]);
    let rises = matches!(points, [.., before, last] if last.error > before.error && is_worse(before) && is_worse(last));
    last.nonzeros_share > DENSE || rises
}

/// Returns the number of the largest beta whose error is within one standard error of the best.
fn recommend(points: &[Point]) -> usize {
    let best = best(points);
    (0..points.len()).find(|i| is_within(&points[*i], &points[best])).unwrap_or(0)
}

/// Returns the end of the path at which the errors have their minimum.
fn end_of(points: &[Point]) -> Option<PathEnd> {
    let last = points.last()?;
    let is_dense = last.nonzeros_share > DENSE;
    if recommend(points) == 0 {
        return (points.len() > 1 || is_dense).then_some(PathEnd::Largest);
    }
    let best = &points[best(points)];
    // A dense one is not the best, but tells whether errors still fell.
    let falls_to_the_last = last.error <= best.error;
    let end = if is_dense { PathEnd::Dense } else { PathEnd::Smallest };
    falls_to_the_last.then_some(end)
}

/// Returns whether an error is within one standard error of the best one: that of their difference, sample by sample, since some
/// samples are harder to predict than others at any beta.
fn is_within(point: &Point, best: &Point) -> bool {
    let differences: Vec<f64> = point.squares.iter().zip(&best.squares).map(|(a, b)| a - b).collect();
    mean(&differences) <= standard_error(&differences)
}

/// Returns the number of the smallest error, of those with sparse codes if there are any.
fn best(points: &[Point]) -> usize {
    let by_error = |a: &usize, b: &usize| points[*a].error.total_cmp(&points[*b].error);
    let sparse = (0..points.len()).filter(|i| points[*i].nonzeros_share <= DENSE).min_by(by_error);
    sparse.or_else(|| (0..points.len()).min_by(by_error)).unwrap_or(0)
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// Returns the standard error of the mean; zero for a single number.
fn standard_error(numbers: &[f64]) -> f64 {
    let (n, mean) = (numbers.len() as f64, mean(numbers));
    let squares: f64 = numbers.iter().map(|v| (v - mean).powi(2)).sum();
    if numbers.len() < 2 { 0.0 } else { (squares / (n - 1.0) / n).sqrt() }
}

/// Returns a stream of random numbers of its own for each sample.
fn stream(seed: u64, index: usize) -> rand_chacha::ChaCha8Rng {
    // An odd number, so that no two samples share a stream.
    random::stream(seed.wrapping_add((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)), random::HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ratio: f64, squares: [f64; 3]) -> Point {
        let (nonzeros_share, seconds, squares) = (0.1, 0.0, squares.to_vec());
        let (error, standard_error) = (mean(&squares).sqrt(), standard_error(&squares));
        Point { ratio, beta: ratio, nonzeros_share, error, standard_error, seconds, squares }
    }

    #[test]
    fn the_largest_beta_within_a_standard_error_of_the_best() {
        // The first is worse for every sample, the second for one and better for another; that samples differ does not count.
        let points = [
            point(0.4, [1.3, 2.3, 9.3]),
            point(0.2, [1.2, 1.9, 9.05]),
            point(0.1, [1.0, 2.0, 9.0]),
            point(0.05, [1.1, 2.1, 9.1]),
        ];
        assert_eq!(recommend(&points), 1);
        assert_eq!(recommend(&points[..1]), 0);
        let mut dense = points.clone();
        dense[2].nonzeros_share = 0.7;
        assert_eq!(best(&dense), 1, "codes that are not sparse are not recommended");
        assert_eq!(standard_error(&[1.0, 3.0]), 1.0);
        assert_eq!(standard_error(&[1.0]), 0.0);
    }

    #[test]
    fn a_minimum_at_an_end_of_the_path_is_told_from_one_inside() {
        let inside = [point(0.4, [2.0, 3.0, 4.0]), point(0.2, [1.0, 2.0, 3.0]), point(0.1, [1.3, 2.3, 3.3])];
        assert_eq!(end_of(&inside), None);
        assert_eq!(end_of(&inside[..2]), Some(PathEnd::Smallest));
        assert_eq!(end_of(&inside[1..]), Some(PathEnd::Largest));
        assert_eq!(end_of(&inside[..1]), None, "one beta is no path");
        // The first is worse, but not by more than samples differ.
        let alike = [point(0.4, [1.0, 3.0, 2.1]), point(0.2, [1.5, 2.0, 2.0])];
        assert_eq!(end_of(&alike), Some(PathEnd::Largest));
        let mut dense = inside[..2].to_vec();
        dense.push(point(0.1, [0.5, 1.5, 2.5]));
        dense[2].nonzeros_share = 0.7;
        assert_eq!(end_of(&dense), Some(PathEnd::Dense));
        dense[2].error = 9.0;
        assert_eq!(end_of(&dense), None, "errors rise before codes are dense");
        assert_eq!(end_of(&dense[2..]), Some(PathEnd::Largest), "only larger ones have sparse codes");
    }

    #[test]
    fn the_path_ends_after_the_minimum_and_where_codes_are_dense() {
        let mut points = vec![point(0.4, [2.0, 3.0, 4.0]), point(0.2, [1.0, 2.0, 3.0])];
        assert!(!is_past_the_end(&points));
        points.push(point(0.1, [1.3, 2.3, 3.3]));
        assert!(!is_past_the_end(&points));
        points.push(point(0.05, [1.5, 2.5, 3.5]));
        assert!(is_past_the_end(&points));
        points.truncate(1);
        points[0].nonzeros_share = 0.6;
        assert!(is_past_the_end(&points));
    }

    #[test]
    fn ratios_are_as_people_write_them() {
        let ratios = Tuning::default().ratios;
        assert_eq!(ratios[..4], [0.5, 0.35, 0.25, 0.18]);
        assert!(ratios.windows(2).all(|pair| pair[0] > pair[1]) && ratios.len() == 12);
    }
}
