//! Coding sets of samples, a few at a time, and how well a dictionary represents them.

use super::name_samples;
use super::prefetch::{Prefetch, Visit};
use crate::coder::{Coded, Coder};
use crate::comm::wire::{Reader, put, put_count};
use crate::comm::{Comm, Shard, Solo, all_gather_results};
use crate::learner::coder;
use crate::metrics::{mse, psnr_of};
use crate::monitor::{Monitor, Silent, check_wanted};
use crate::real::compiled;
use crate::text::counted;
use crate::{Config, Dictionary, Error, Real, Result, Sample, Samples, Sparsity};
use serde::Serialize;
use std::time::Instant;

/// Test sets are coded to this relative gap.
pub const TEST_TOL: f64 = 0.003;

/// How well a dictionary represents a set of samples: means over those that could be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evaluation {
    /// How many.
    pub samples: usize,
    /// data_term + penalty.
    pub objective: f64,
    /// 1/2 ||x - D z||^2, or as the loss says.
    pub data_term: f64,
    /// ||z||_1, weighted where there are weights.
    pub l1: f64,
    /// What codes pay: beta times the l1 norm, or as the penalty says.
    pub penalty: f64,
    /// The worst relative duality gap.
    pub gap: f64,
    /// PSNR of the reconstructions, in the domain of the codes (after preprocessing).
    pub psnr: f64,
    /// The peak it was computed with: the range of all samples.
    pub psnr_peak: f64,
    /// Non-zeros per code.
    pub nonzeros: f64,
    /// The same as a share of the samples' observed values, over all samples.
    pub nonzeros_share: f64,
    /// How many codes are all zeros.
    pub empty: usize,
    /// Wall time of coding all of them.
    pub seconds: f64,
    /// Values per sample that a robust loss counts less than others; left out of JSON where there are none.
    #[serde(skip_serializing_if = "is_none_of_them")]
    pub outliers: f64,
    /// Samples that could not be read or do not fit the filters; left out of JSON where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: usize,
}

impl Evaluation {
    /// Returns how sparse the codes are.
    pub fn sparsity(&self) -> Sparsity {
        let nonzeros = self.nonzeros * self.samples as f64;
        let values = if nonzeros > 0.0 { nonzeros / self.nonzeros_share } else { 0.0 };
        Sparsity {
            codes: self.samples,
            empty: self.empty,
            nonzeros: nonzeros.round() as usize,
            values: values.round() as usize,
        }
    }
}

fn is_none_of_them(n: &f64) -> bool {
    *n == 0.0
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A sample with its code.
pub struct Item<T: Real> {
    /// The sample.
    pub sample: Sample<T>,
    /// Its code.
    pub coded: Coded<T>,
    /// Its share of the wall time of coding.
    pub seconds: f64,
}

/// A sample's code and what it stands for.
pub struct Represented<'a, T: Real> {
    /// The sample.
    pub sample: &'a Sample<T>,
    /// The code.
    pub coded: &'a Coded<T>,
    /// D z.
    pub reconstruction: &'a Sample<T>,
}

/// What [`evaluate`] calls for every sample, with its number.
pub type Each<'a, T> = dyn FnMut(usize, Result<Represented<'_, T>>) -> Result<()> + 'a;

/// Codes every sample to a relative gap of `tol` and averages.
///
/// `each` is called once for every sample, in order, with its code and reconstruction, for measures of the caller's own, or
/// with the reason why there is none; an error that it returns ends the evaluation. [`refuse`] ends it at the first bad
/// sample.
pub fn evaluate<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    tol: f64,
    each: &mut Each<'_, T>,
) -> Result<Evaluation> {
    evaluate_by(&Solo, config, dictionary, samples, tol, &Silent, each)
}

compiled! {
    /// The same by all members of a team: each codes a part, for which its `each` is called, and has the averages over all.
    /// They do not depend on the number of members, but for the time, which is the longest of any. If the monitor of any member
    /// ends it, it ends for all, with [`Error::Stopped`].
    pub fn evaluate_by<T>(
        comm: &dyn Comm,
        config: &Config,
        dictionary: &Dictionary<T>,
        samples: &dyn Samples<T>,
        tol: f64,
        monitor: &dyn Monitor,
        each: &mut Each<'_, T>,
    ) -> Result<Evaluation> = evaluate_together;
}

fn evaluate_together<T: Real>(
    comm: &dyn Comm,
    config: &Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    tol: f64,
    monitor: &dyn Monitor,
    each: &mut Each<'_, T>,
) -> Result<Evaluation> {
    if samples.is_empty() {
        return Err(Error::invalid("test set", "at least one sample", "none"));
    }
    let part = Shard::of(comm, samples);
    let mine = measure(config, dictionary, &part, tol, monitor, each).map(|measured| {
        let mut bytes = Vec::new();
        put(&mut bytes, &[measured.seconds, measured.low, measured.high]);
        put_count(&mut bytes, measured.samples.len());
        put(&mut bytes, &measured.samples);
        bytes.extend(measured.first_bad.unwrap_or_default().into_bytes());
        bytes
    });
    let (mut all, mut first_bad, mut longest) = (Vec::new(), None, 0.0_f64);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for bytes in all_gather_results(comm, mine)? {
        let mut from = Reader::new(&bytes);
        let [seconds, lowest, highest] = from.one()?;
        (longest, low, high) = (longest.max(seconds), low.min(lowest), high.max(highest));
        let n = from.count()?;
        all.extend(from.many::<Measures>(n)?);
        first_bad = first_bad.or(Some(String::from_utf8_lossy(from.rest()).into_owned()).filter(|why| !why.is_empty()));
    }
    let peak = if high > low { high - low } else { 0.0 };
    // In the order of the set, whoever coded them.
    all.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let mut sum = Evaluation { psnr_peak: peak, seconds: longest, samples: all.len(), ..Evaluation::default() };
    sum.skipped = samples.len() - all.len();
    if all.is_empty() {
        return Err(none_left(samples.len(), first_bad));
    }
    let scale = if peak > 0.0 { peak } else { 1.0 };
    let n = all.len() as f64;
    let mut values = 0.0;
    for [_, data_term, l1, penalty, objective, gap, nonzeros, outliers, mse, observed] in all {
        values += observed;
        sum.empty += usize::from(nonzeros == 0.0);
        sum.gap = sum.gap.max(gap);
        for (mean, value) in [
            (&mut sum.data_term, data_term),
            (&mut sum.l1, l1),
            (&mut sum.penalty, penalty),
            (&mut sum.objective, objective),
            (&mut sum.nonzeros, nonzeros),
            (&mut sum.outliers, outliers),
            (&mut sum.psnr, psnr_of(mse, scale)),
        ] {
            *mean += value;
        }
    }
    sum.nonzeros_share = sum.nonzeros / values.max(1.0);
    let Evaluation { data_term, l1, penalty, objective, nonzeros, outliers, psnr, .. } = &mut sum;
    for mean in [data_term, l1, penalty, objective, nonzeros, outliers, psnr] {
        *mean /= n;
    }
    Ok(sum)
}

/// A sample's number, data term, l1 norm, penalty, objective, relative gap, non-zeros, outliers, mean squared error and observed
/// values.
type Measures = [f64; 10];

/// What one member found out.
struct Measured {
    samples: Vec<Measures>,
    /// The reason why the first sample that could not be coded could not.
    first_bad: Option<String>,
    /// The wall time of coding.
    seconds: f64,
    /// The smallest and the largest value. With them the PSNR is known, so the set is read once.
    low: f64,
    high: f64,
}

/// Measures those that can be coded.
fn measure<T: Real>(
    config: &Config,
    dictionary: &Dictionary<T>,
    part: &Shard<'_, T>,
    tol: f64,
    monitor: &dyn Monitor,
    each: &mut Each<'_, T>,
) -> Result<Measured> {
    let mut coder = coder(config, dictionary, tol)?;
    let mut measured =
        Measured { samples: Vec::new(), first_bad: None, seconds: 0.0, low: f64::INFINITY, high: f64::NEG_INFINITY };
    code_each(coder.as_mut(), dictionary, part, monitor, |i, item| match item {
        Ok(Item { sample, coded, seconds }) => {
            measured.seconds += seconds;
            for v in sample.observed() {
                (measured.low, measured.high) = (measured.low.min(v.f64()), measured.high.max(v.f64()));
            }
            let reconstruction = &coded.code.reconstruct(coded.filters_or(dictionary), config.boundary)?;
            measured.samples.push([
                part.number(i) as f64,
                coded.objective.data_term,
                coded.objective.l1,
                coded.penalty,
                coded.total(),
                coded.relative_gap(),
                coded.code.nonzeros() as f64,
                coded.outliers as f64,
                mse(&sample, reconstruction)?,
                sample.n_observed() as f64,
            ]);
            each(part.number(i), Ok(Represented { sample: &sample, coded: &coded, reconstruction }))
        }
        Err(error) => {
            measured.first_bad.get_or_insert_with(|| error.to_string());
            each(part.number(i), Err(error))
        }
    })?;
    Ok(measured)
}

/// For [`evaluate`]: a bad sample is an error.
pub fn refuse<T: Real>(_index: usize, item: Result<Represented<'_, T>>) -> Result<()> {
    item.map(drop)
}

/// Says that nothing is left to work on.
pub(super) fn none_left(of: usize, first: Option<String>) -> Error {
    Error::Source(format!("none of {} could be used; the first: {}", counted(of, "sample"), first.unwrap_or_default()))
}

/// The most samples, and the most numbers in them, that are coded at the same time.
const TOGETHER: usize = 16;
const TOGETHER_NUMBERS: usize = 1 << 20;

/// Codes all samples, a few at a time, and calls `each` for every one in their order, with its code or with the reason why it
/// could not be read or does not fit; the error names it.
///
/// Ends with [`Error::Stopped`] when the monitor wants no more, and with the error of a machine that cannot read any more
/// ([`Error::is_system_failure`]), which is no fault of the sample.
pub fn code_each<T: Real, E: From<Error>>(
    coder: &mut dyn Coder<T>,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    monitor: &dyn Monitor,
    mut each: impl FnMut(usize, Result<Item<T>>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut refused = None;
    let ended = code_while(coder, dictionary, samples, monitor, &mut |i, item| {
        refused = each(i, item).err();
        refused.is_none()
    });
    refused.map_or(Ok(()), Err)?;
    Ok(ended?)
}

/// Is told of a sample and says whether to go on.
type While<'a, T> = dyn FnMut(usize, Result<Item<T>>) -> bool + 'a;

compiled! {
    /// [`code_each`], until `each` wants no more.
    fn code_while<T>(
        coder: &mut dyn Coder<T>,
        dictionary: &Dictionary<T>,
        samples: &dyn Samples<T>,
        monitor: &dyn Monitor,
        each: &mut While<'_, T>,
    ) -> Result<()> = code_in_groups;
}

fn code_in_groups<T: Real>(
    coder: &mut dyn Coder<T>,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    monitor: &dyn Monitor,
    each: &mut While<'_, T>,
) -> Result<()> {
    let fits = |sample: Sample<T>| dictionary.check_sample_shape(sample.shape()).map(|()| sample);
    Prefetch::run(samples, visits(samples), |prefetch| {
        loop {
            let (mut group, mut numbers, mut indices) = (Vec::new(), 0, Vec::new());
            let mut bad = None;
            while group.len() < TOGETHER && numbers < TOGETHER_NUMBERS && bad.is_none() {
                check_wanted(monitor)?;
                let Some((visit, sample)) = prefetch.next() else { break };
                match sample.and_then(fits) {
                    Ok(sample) => {
                        numbers += sample.data().len();
                        group.push(sample);
                        indices.push(visit.index);
                    }
                    Err(error) if error.is_system_failure() => return Err(error),
                    Err(error) => bad = Some((visit.index, name_samples(error, samples, &[visit.index]))),
                }
            }
            if group.is_empty() && bad.is_none() {
                return Ok(());
            }
            let clock = Instant::now();
            let coded = coder.code_all(&group, monitor).map_err(|e| name_samples(e, samples, &indices))?;
            let seconds = clock.elapsed().as_secs_f64() / group.len().max(1) as f64;
            for ((i, sample), coded) in indices.into_iter().zip(group).zip(coded) {
                if !each(i, Ok(Item { sample, coded, seconds })) {
                    return Ok(());
                }
            }
            if let Some((i, error)) = bad
                && !each(i, Err(error))
            {
                return Ok(());
            }
        }
    })
}

fn visits<T: Real>(samples: &dyn Samples<T>) -> impl Iterator<Item = Visit> + Send + use<T> {
    (0..samples.len()).map(|index| Visit { index, pass: None })
}
