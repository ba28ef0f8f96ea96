//! Choosing beta by the data: what its fractions are fractions of, and whether codes came out too sparse or too dense.
//!
//! The code of a sample x is all zeros from beta = beta_max(x, D) = max |D^T x| on. That number is a scale of the data, but three
//! things spoil it as one: it depends on the dictionary, which is random at the start of a run; it is a maximum, so one artefact
//! decides it; and it was taken of the samples that happened to be visited first. So here
//!
//! ```text
//! beta = ratio * median over samples i of max |P^T x_i|,        P = patches of the samples, scaled to unit norm
//! ```
//!
//! over up to 64 samples, which are spread over the set. Which samples and which patches does not depend on the run's seed: runs
//! that differ in seed, start or method have the same beta, and their objectives can be compared. For a finished model the
//! filters themselves take the place of P.
//!
//! Data that are multiplied by c have c times the beta and the same codes, multiplied by c.

use crate::coder::Weights;
use crate::learner::coder;
use crate::real::compiled;
use crate::train::name_samples;
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples, Shape, random};
use rand::RngExt;

/// The fraction that programs take where neither beta nor a fraction was given.
pub const DEFAULT_RATIO: f64 = 0.1;
/// At most so many samples are looked at.
const MOST: usize = 64;
/// At least so many patches are taken, however few filters will be learned: a single one may be a patch of silence.
const PATCHES: usize = 64;
/// Samples are kept in memory between two looks at them up to so many numbers in all; further ones are read twice.
const KEPT: usize = 1 << 24;
/// The seed of the choice of samples and patches, which is the same for all runs.
const SEED: u64 = 0;

/// Holds the smallest beta with all-zero codes, for a typical sample.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BetaMax {
    /// The median over samples. A larger beta leaves most codes empty.
    pub median: f64,
    /// How many samples it is the median of.
    pub samples: usize,
}

impl BetaMax {
    /// Finds it for a run that is about to learn filters of this shape: with patches of the samples in their place.
    ///
    /// Samples that cannot be read, do not fit or are all zeros are passed over; the first two are errors if the run is `strict`.
    pub fn of_patches<T: Real>(
        config: &Config,
        filter: Shape,
        samples: &dyn Samples<T>,
        strict: bool,
    ) -> Result<BetaMax> {
        of_seeded_patches(config, filter, samples, strict, SEED)
    }

    /// Finds it for the filters of a model.
    pub fn of_filters<T: Real>(
        config: &Config,
        dictionary: &Dictionary<T>,
        samples: &dyn Samples<T>,
        strict: bool,
    ) -> Result<BetaMax> {
        of_filters(config, dictionary, samples, strict)
    }
}

compiled! {
    fn of_seeded_patches<T>(
        config: &Config,
        filter: Shape,
        samples: &dyn Samples<T>,
        strict: bool,
        seed: u64,
    ) -> Result<BetaMax> = median_of_patches;
}

fn median_of_patches<T: Real>(
    config: &Config,
    filter: Shape,
    samples: &dyn Samples<T>,
    strict: bool,
    seed: u64,
) -> Result<BetaMax> {
    let chosen = Chosen::new(samples, filter, strict, seed)?;
    let n_patches = config.n_filters.max(PATCHES);
    let patches = Dictionary::from_patches(n_patches, filter, config.filter_shape.len(), &chosen, seed)?;
    // Weights belong to filters that are learned, not to patches.
    let mut config = config.clone();
    config.active_set.weights = Weights::Equal;
    chosen.median(&config, &patches, Sample::without_coefficient_weights)
}

compiled! {
    fn of_filters<T>(
        config: &Config,
        dictionary: &Dictionary<T>,
        samples: &dyn Samples<T>,
        strict: bool,
    ) -> Result<BetaMax> = median_of_filters;
}

fn median_of_filters<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    strict: bool,
) -> Result<BetaMax> {
    Chosen::new(samples, dictionary.shape(), strict, SEED)?.median(config, dictionary, |sample| sample)
}

/// The samples that are looked at.
struct Chosen<'a, T: Real> {
    samples: &'a dyn Samples<T>,
    /// Their numbers, and the samples themselves as far as they are kept.
    items: Vec<(usize, Option<Sample<T>>)>,
}

impl<'a, T: Real> Chosen<'a, T> {
    /// Chooses samples, one from each of up to 64 equal parts of the set, and reads them.
    fn new(samples: &'a dyn Samples<T>, filter: Shape, strict: bool, seed: u64) -> Result<Self> {
        let mut items = Vec::new();
        let mut room = KEPT;
        let mut first_error = None;
        for i in spread(samples.len(), MOST, seed) {
            let read = samples.get(i).and_then(|sample| check_shape(&sample, filter).map(|()| sample));
            match read.map_err(|error| name_samples(error, samples, &[i])) {
                Ok(sample) => {
                    let numbers = sample.data().len();
                    let is_kept = numbers <= room;
                    room -= if is_kept { numbers } else { 0 };
                    items.push((i, is_kept.then_some(sample)));
                }
                Err(error) if strict || error.is_system_failure() => return Err(error),
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        match first_error {
            Some(error) if items.is_empty() => Err(error),
            _ => Ok(Chosen { samples, items }),
        }
    }

    /// Returns the median of max |D^T x| over those that are not all zeros.
    fn median(
        &self,
        config: &Config,
        dictionary: &Dictionary<T>,
        prepare: impl Fn(Sample<T>) -> Sample<T>,
    ) -> Result<BetaMax> {
        let mut coder = coder(config, dictionary, config.tol)?;
        let mut all = Vec::new();
        for i in 0..self.items.len() {
            let beta_max = coder.beta_max(&prepare(self.get(i)?))?;
            all.extend((beta_max > 0.0).then_some(beta_max));
        }
        match median(&mut all) {
            Some(median) => Ok(BetaMax { median, samples: all.len() }),
            None => {
                let first =
                    self.items.first().map_or(String::new(), |(i, _)| format!(", {} first", self.samples.name(*i)));
                let found = format!("samples of zeros{first}");
                Err(Error::invalid("beta_ratio", "samples that are not all zeros", found))
            }
        }
    }
}

impl<T: Real> Samples<T> for Chosen<'_, T> {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn get(&self, index: usize) -> Result<Sample<T>> {
        match &self.items[index] {
            (_, Some(sample)) => Ok(sample.clone()),
            (i, None) => self.samples.get(*i),
        }
    }

    fn name(&self, index: usize) -> String {
        self.samples.name(self.items[index].0)
    }
}

/// Refuses a sample of other channels than the filters', or of a smaller size.
fn check_shape<T: Real>(sample: &Sample<T>, filter: Shape) -> Result<()> {
    let shape = sample.shape();
    let is_large = shape.spatial().iter().zip(filter.spatial()).all(|(s, f)| *s >= f);
    if shape.channels == filter.channels && is_large {
        return Ok(());
    }
    Err(Error::invalid("sample", format!("the channels and at least the size of the filters, {filter}"), shape))
}

/// Returns up to `most` numbers below `len`, ascending, one from each of as many equal parts.
pub(crate) fn spread(len: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut rng = random::stream(seed, random::SPREAD);
    let n = len.min(most);
    (0..n)
        .map(|part| {
            let (from, to) = (
                (part as u128 * len as u128 / n as u128) as usize,
                ((part as u128 + 1) * len as u128 / n as u128) as usize,
            );
            rng.random_range(from..to.max(from + 1))
        })
        .collect()
}

/// Returns the median of numbers, which are sorted; none of none.
pub(crate) fn median(numbers: &mut [f64]) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().checked_sub(1)? / 2, numbers.len() / 2);
    Some(0.5 * (numbers[low] + numbers[high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread() {
        assert_eq!(spread(3, 64, 1), [0, 1, 2]);
        assert!(spread(0, 64, 1).is_empty());
        for seed in 0..4 {
            let chosen = spread(1000, 64, seed);
            assert_eq!(chosen.len(), 64);
            assert!(chosen.iter().enumerate().all(|(part, i)| (part * 1000 / 64..(part + 1) * 1000 / 64).contains(i)));
        }
        assert_ne!(spread(1000, 64, 0), spread(1000, 64, 1));
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0]), Some(3.0));
        assert_eq!(median(&mut [9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [9.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    /// A made-up signal in windows: events of two shapes on noise.
    fn windows(seed: u64) -> Vec<Sample<f64>> {
        let mut rng = random::stream(seed, 7);
        let mut noise = || (0..6).map(|_| rng.random_range(-1.0..1.0)).sum::<f64>() / 6.0;
        let one = |w: usize| {
            let event = |t: usize| ((t % 150) as f64 / 8.0).sin() * (-((t % 150) as f64) / 20.0).exp();
            let data = (0..1000).map(|t| 4.0 * event(t + 37 * w) + 0.5 * noise()).collect();
            Sample::new(Shape { channels: 1, depth: 1, height: 1, width: 1000 }, data).unwrap()
        };
        let mut one = one;
        (0..40).map(&mut one).collect()
    }

    fn betas(samples: &[Sample<f64>], config: &Config, filter: Shape) -> Vec<f64> {
        let one = |seed| of_seeded_patches(config, filter, &samples, true, seed).unwrap().median;
        (0..8).map(one).collect()
    }

    fn relative_spread(betas: &[f64]) -> f64 {
        let (low, high) = betas.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), b| (l.min(*b), h.max(*b)));
        high / low - 1.0
    }

    #[test]
    fn other_patches_and_other_samples_give_the_same_beta_within_a_tenth() {
        let config = Config { n_filters: 12, filter_shape: vec![64], ..Config::default() };
        let filter = Shape { channels: 1, depth: 1, height: 1, width: 64 };
        let samples = windows(3);
        let clean = betas(&samples, &config, filter);
        assert!(relative_spread(&clean) < 0.1, "{clean:?}");
        // One window with an artefact a thousand times as large changes little, and does not decide.
        let mut spoiled = samples.clone();
        spoiled[11] = samples[11].map(|v| 1000.0 * v);
        let with_artefact = betas(&spoiled, &config, filter);
        assert!(relative_spread(&[&clean[..], &with_artefact].concat()) < 0.1, "{clean:?} {with_artefact:?}");
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "says what is skipped")]
    fn other_patches_of_a_recording_give_the_same_beta_within_a_tenth() {
        let folder = std::env::var_os("OCSC_DATA").map_or("../../../shared/data".into(), std::path::PathBuf::from);
        let Ok(bytes) = std::fs::read(folder.join("signals/lfp_striatum.npy")) else {
            return eprintln!("skipped: no signals/lfp_striatum.npy in {}", folder.display());
        };
        let values: Vec<f64> = bytes[128..].as_chunks().0.iter().map(|v| f64::from(f32::from_le_bytes(*v))).collect();
        let filter = Shape { channels: 1, depth: 1, height: 1, width: 128 };
        let whole = |width| Shape { width, ..filter };
        let samples = values.chunks(5000).map(|window| {
            let mean = window.iter().sum::<f64>() / window.len() as f64;
            Sample::new(whole(window.len()), window.iter().map(|v| v - mean).collect()).unwrap()
        });
        let samples: Vec<Sample<f64>> = samples.collect();
        let config = Config { n_filters: 12, filter_shape: vec![128], ..Config::default() };
        let betas = betas(&samples, &config, filter);
        assert!(relative_spread(&betas) < 0.1, "{betas:?}");
    }
}
