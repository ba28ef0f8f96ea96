//! How much memory a run will need, and whether there is so much: to be said before it starts, instead of being killed later.

use crate::args::memory_size;
use crate::console::{Console, bytes};
use anyhow::{Result, bail};
use ocsc::memory::memory;
use ocsc::{Config, Dictionary, Method, Real, Shape};

/// What the samples are like.
#[derive(Clone)]
pub(crate) struct Survey {
    pub(crate) samples: usize,
    /// The shape, if all have the same.
    pub(crate) one_size: Option<Shape>,
    /// The numbers of the largest.
    pub(crate) largest: usize,
}

/// What the program takes by itself, with its queue of samples.
const PROGRAM: usize = 16_000_000;
/// What reading ahead takes for every number of a sample: colours and local means in double precision.
const READING: usize = 64;

/// Says what will be needed, and refuses what is not there, with the method that would do.
pub(crate) fn ensure<T: Real>(
    survey: &Survey,
    config: &Config,
    dictionary: &Dictionary<T>,
    limit: Option<usize>,
    console: &Console,
) -> Result<()> {
    let (need, statistics) = needs(survey, config, dictionary);
    let (n, filter) = (config.n_filters, dictionary.shape());
    let sizes = survey.one_size.map_or("various sizes".to_owned(), |shape| shape.to_string());
    console.say(format!(
        "{} samples of {sizes}, {n} filters of {filter}: needs about {}, of which the statistics take {}",
        survey.samples,
        bytes(need),
        bytes(statistics)
    ));
    let (there, whose) = match (limit, available()) {
        (Some(limit), _) => (limit, "--memory-limit allows"),
        (None, Some(free)) => (free, "the system has free"),
        (None, None) => return Ok(()),
    };
    if need <= there {
        return Ok(());
    }
    let other = Config { method: Method::Ocsc, ..config.clone() };
    let advice = match needs(survey, &other, dictionary).0 {
        less if config.method != Method::Ocsc && less <= there => {
            format!("`--method ocsc` would need {}", bytes(less))
        }
        _ if config.batch_size > 1 => "use fewer or smaller filters, or a smaller --batch".to_owned(),
        _ => "use fewer or smaller filters, or smaller samples".to_owned(),
    };
    let (need, there) = (bytes(need), bytes(there));
    bail!("{n} filters of {filter}{NEED}{need}{MORE_THAN}{there} that {whose}; {advice}")
}

/// Between what a refusal is made of; experiments know it by these.
const NEED: &str = " need ";
const MORE_THAN: &str = ", more than the ";

/// How much memory was refused, if this message is a refusal of [`ensure`].
pub(crate) fn refused(message: &str) -> Option<usize> {
    let (before, _) = message.split_once(MORE_THAN)?;
    memory_size(before.rsplit_once(NEED)?.1).ok()
}

/// That the system has so much memory to give, where it says.
pub(crate) fn ensure_free(what: &str, need: usize) -> Result<()> {
    match available().filter(|free| need > *free) {
        Some(free) => bail!("{what} need {}, {} are free: use fewer or smaller ones", bytes(need), bytes(free)),
        None => Ok(()),
    }
}

/// Bytes in all, and those of the statistics.
fn needs<T: Real>(survey: &Survey, config: &Config, dictionary: &Dictionary<T>) -> (usize, usize) {
    let filter = dictionary.shape();
    // Methods whose memory depends on the axes take one size only, so the largest sample is any of them.
    let width = survey.largest / filter.channels.max(1);
    let sample = survey.one_size.unwrap_or(Shape { channels: filter.channels, depth: 1, height: 1, width });
    let need = memory::<T>(config, survey.samples, sample, filter);
    let reading = survey.largest.saturating_mul(READING).saturating_add(PROGRAM);
    (need.total().saturating_add(reading), need.statistics)
}

/// The most samples like these that a method could learn from in so much memory; none if their number does not matter.
pub(crate) fn most_samples<T: Real>(
    survey: &Survey,
    config: &Config,
    dictionary: &Dictionary<T>,
    limit: usize,
) -> Option<usize> {
    let fits = |samples: usize| needs(&Survey { samples, ..survey.clone() }, config, dictionary).0 <= limit;
    let (mut fitting, mut too_many) = (0, 1 << 40);
    if fits(too_many) {
        return None;
    }
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        *(if fits(middle) { &mut fitting } else { &mut too_many }) = middle;
    }
    Some(fitting)
}

/// What the system could give, where it says.
pub(crate) fn available() -> Option<usize> {
    meminfo("MemAvailable:")
}

/// All that the system has, where it says.
pub(crate) fn total() -> Option<usize> {
    meminfo("MemTotal:")
}

fn meminfo(name: &str) -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_methods_take_as_many_samples_as_fit() {
        let survey = Survey { samples: 1, one_size: Some(Shape::image(32, 32)), largest: 1024 };
        let dictionary = Dictionary::<f32>::random(10, Shape::image(5, 5), 2, 0).unwrap();
        let of = |method| Config { method, n_filters: 10, ..Config::default() };
        let limit = 100_000_000;
        assert_eq!(most_samples(&survey, &of(Method::Ocsc), &dictionary, limit), None);
        assert_eq!(most_samples(&survey, &of(Method::Fcsc), &dictionary, 1), Some(0));
        let most = most_samples(&survey, &of(Method::Fcsc), &dictionary, limit).unwrap();
        let need = |samples| needs(&Survey { samples, ..survey.clone() }, &of(Method::Fcsc), &dictionary).0;
        assert!(most > 100 && need(most) <= limit && need(most + 1) > limit, "{most}");
    }

    #[test]
    fn a_refusal_is_known_by_its_message() {
        let survey = Survey { samples: 1, one_size: Some(Shape::image(500, 500)), largest: 250_000 };
        let config = Config { method: Method::OcscPaper, ..Config::default() };
        let dictionary = Dictionary::<f32>::random(100, Shape::image(11, 11), 2, 0).unwrap();
        let error = ensure(&survey, &config, &dictionary, Some(1_000_000), &Console::new(true)).unwrap_err();
        let (need, _) = needs(&survey, &config, &dictionary);
        let found = refused(&format!("error: {error:#}")).unwrap();
        assert!(found.abs_diff(need) <= need / 20, "{found} and {need}: {error:#}");
        assert_eq!(refused("error: train.npy: cannot be read"), None);
    }
}
