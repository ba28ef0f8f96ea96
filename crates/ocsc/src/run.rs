//! How a run starts: the first sample that can be read, the initial dictionary, and beta as a part of the largest useful one.

use crate::learner::{Learner, coder, learner};
use crate::text::counted;
use crate::train::name_samples;
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples, Shape};

/// The dictionary that a run starts from.
#[derive(Clone, Debug)]
pub enum Init<T> {
    /// Gaussian filters.
    Random,
    /// Patches of the samples.
    Patches,
    /// A given dictionary, which overrides the number and shape of filters in the settings.
    Given(Dictionary<T>),
}

/// A new run.
pub struct Started<T: Real> {
    /// It has learned nothing yet.
    pub learner: Box<dyn Learner<T>>,
    /// The smallest beta with all-zero codes for the first batch, if beta was to be a part of it.
    pub beta_max: Option<f64>,
}

/// A learner for samples of so many channels, of which those with the numbers in `batch` will be visited first.
///
/// With `beta_ratio`, beta becomes this part of the smallest one with all-zero codes for them. Samples that cannot be read
/// are passed over, unless the run is to be strict.
pub fn start<T: Real>(
    mut config: Config,
    init: Init<T>,
    beta_ratio: Option<f64>,
    channels: usize,
    samples: &dyn Samples<T>,
    batch: &[usize],
    strict: bool,
) -> Result<Started<T>> {
    config.validate()?;
    let (k, rank, seed) = (config.n_filters, config.filter_shape.len(), config.seed);
    let shape = Shape::from_axes(channels, &config.filter_shape)?;
    let dictionary = match init {
        Init::Random => Dictionary::random(k, shape, rank, seed)?,
        Init::Patches => Dictionary::from_patches(k, shape, rank, samples, seed)?,
        Init::Given(dictionary) => dictionary,
    };
    let Some(ratio) = beta_ratio else {
        return Ok(Started { learner: learner(config, dictionary)?, beta_max: None });
    };
    crate::setting::positive("beta_ratio", ratio)?;
    let mut coder = coder(&config, &dictionary, config.tol)?;
    let mut beta_max = 0.0_f64;
    for &i in batch {
        match samples.draw(i, 0) {
            Ok(sample) => {
                dictionary.check_sample_shape(sample.shape())?;
                beta_max = beta_max.max(coder.beta_max(&sample)?);
            }
            Err(error) if strict || error.is_system_failure() => return Err(error),
            Err(_) => {}
        }
    }
    if beta_max <= 0.0 {
        let first = batch.first().map_or_else(String::new, |i| samples.name(*i));
        return Err(Error::invalid(first, "a first batch with a beta to take the ratio of", "samples of zeros"));
    }
    config.beta = ratio * beta_max;
    Ok(Started { learner: learner(config, dictionary)?, beta_max: Some(beta_max) })
}

/// The first sample in the order of visits that can be read, with its number.
pub fn first_usable<T: Real>(samples: &dyn Samples<T>, order: &[usize], strict: bool) -> Result<(usize, Sample<T>)> {
    let mut first_error = None;
    for &i in order {
        match samples.get(i).map_err(|error| name_samples(error, samples, &[i])) {
            Ok(sample) => return Ok((i, sample)),
            Err(error) if strict || error.is_system_failure() => return Err(error),
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    let why = first_error.map_or_else(String::new, |e| e.to_string());
    Err(Error::Source(format!("none of {} can be read; the first: {why}", counted(order.len(), "sample"))))
}
