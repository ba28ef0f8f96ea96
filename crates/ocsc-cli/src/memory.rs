//! How much memory a run will need, and whether there is so much: said before it starts.

use crate::args::memory_size;
use crate::console::Console;
use anyhow::{Result, bail};
use ocsc::memory::{self, Survey, size};
use ocsc::{Config, Dictionary, Real};

pub(crate) use ocsc::memory::{available, total};

/// Says what will be needed, and refuses what is not there, with the method that would do.
pub(crate) fn ensure<T: Real>(
    survey: &Survey,
    config: &Config,
    dictionary: &Dictionary<T>,
    limit: Option<usize>,
    console: &Console,
) -> Result<()> {
    let filter = dictionary.shape();
    let (need, statistics) = survey.needs::<T>(config, filter);
    let sizes = survey.one_size.map_or("various sizes".to_owned(), |shape| shape.to_string());
    console.say(format!(
        "{} samples of {sizes}, {} filters of {filter}: needs about {}, of which the statistics take {}",
        survey.samples,
        config.n_filters,
        size(need),
        size(statistics)
    ));
    Ok(survey.ensure::<T>(config, filter, limit)?)
}

/// How much memory was refused, if this message is a refusal of [`ensure`].
pub(crate) fn refused(message: &str) -> Option<usize> {
    memory_size(memory::refused(message)?).ok()
}

/// That the system has so much memory to give, where it says.
pub(crate) fn ensure_free(what: &str, need: usize) -> Result<()> {
    match available().filter(|free| need > *free) {
        Some(free) => bail!("{what} need {}, {} are free: use fewer or smaller ones", size(need), size(free)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocsc::{Method, Shape};

    #[test]
    fn a_refusal_is_known_by_its_message() {
        let survey = Survey { samples: 1, one_size: Some(Shape::image(500, 500)), largest: 250_000, processes: 1 };
        let config = Config { method: Method::OcscPaper, ..Config::default() };
        let dictionary = Dictionary::<f32>::random(100, Shape::image(11, 11), 2, 0).unwrap();
        let error = ensure(&survey, &config, &dictionary, Some(1_000_000), &Console::new(true)).unwrap_err();
        let (need, _) = survey.needs::<f32>(&config, dictionary.shape());
        let found = refused(&format!("error: {error:#}")).unwrap();
        assert!(found.abs_diff(need) <= need / 20, "{found} and {need}: {error:#}");
        assert_eq!(refused("error: train.npy: cannot be read"), None);
    }
}
