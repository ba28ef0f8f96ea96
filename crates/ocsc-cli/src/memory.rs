//! How much memory a run will need, and whether there is so much: said before it starts.

use crate::console::{Console, counted};
use anyhow::{Context, Result};
use ocsc::memory::{self, Survey};
use ocsc::text::size;
use ocsc::{Config, Error, Real, Shape};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

pub(crate) use ocsc::memory::{available, total};

/// Says what learning will need.
pub(crate) fn say<T: Real>(survey: &Survey, config: &Config, filter: Shape, console: &Console) {
    let (need, statistics) = survey.needs::<T>(config, filter);
    let sizes = survey.one_size.map_or("various sizes".to_owned(), |shape| shape.to_string());
    console.say(format!(
        "{} of {sizes}, {} of {filter}: needs about {}, of which the statistics take {}",
        counted(survey.samples, "sample"),
        counted(config.n_filters, "filter"),
        size(need as u64),
        size(statistics as u64)
    ));
}

/// What a process that an experiment started says when there is too little memory for it: a small file, whose name it is given
/// in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// The bytes that it would need, where they were counted.
    pub(crate) need: Option<usize>,
}

impl Refusal {
    const NAME: &'static str = "OCSC_REFUSAL";

    /// Has the command say so in this file, which is not there yet.
    pub(crate) fn expect_at(path: &Path, command: &mut Command) -> Result<()> {
        if path.try_exists()? {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        command.env(Self::NAME, path);
        Ok(())
    }

    /// What was said, if anything; the file is removed.
    pub(crate) fn take(path: &Path) -> Option<Refusal> {
        let text = std::fs::read_to_string(path).ok()?;
        // What cannot be removed now is removed before the next run.
        let _ = std::fs::remove_file(path);
        serde_json::from_str(&text).ok()
    }

    /// Says why this process failed, if it was for want of memory and someone wants to know.
    pub(crate) fn tell(error: &anyhow::Error) {
        let Some((path, refusal)) = std::env::var_os(Self::NAME).zip(Refusal::of(error)) else { return };
        let text = serde_json::to_string(&refusal).unwrap_or_default();
        // Unheard, it is a failure like others.
        let _ = std::fs::write(path, text);
    }

    fn of(error: &anyhow::Error) -> Option<Refusal> {
        error.chain().find_map(|cause| match cause.downcast_ref::<Error>() {
            Some(Error::Memory { needed, .. }) => Some(Refusal { need: usize::try_from(*needed).ok() }),
            _ => None,
        })
    }
}

/// What reading a file may take: what the call allows, or else what the system has free.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit(Option<usize>);

impl Limit {
    /// The limit that the call names, if it does.
    pub(crate) fn new(bytes: Option<usize>) -> Self {
        Limit(bytes)
    }

    /// Refuses what a header asks for if it is more.
    pub(crate) fn ensure(self, what: &str, need: u64) -> ocsc::Result<()> {
        match self.0 {
            Some(_) => memory::ensure_within(what, need, self.0),
            None => memory::ensure_free(what, need),
        }
    }

    /// Bytes, for decoders that are to keep an account of their own.
    pub(crate) fn bytes(self) -> u64 {
        self.0.or_else(available).map_or(u64::MAX, |bytes| bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocsc::Method;

    #[test]
    fn a_refusal_says_how_much_is_needed() {
        let survey = Survey { samples: 1, one_size: Some(Shape::image(500, 500)), largest: 250_000, processes: 1 };
        let config = Config { method: Method::OcscPaper, ..Config::default() };
        let filter = Shape::image(11, 11);
        let error = anyhow::Error::from(survey.ensure::<f32>(&config, filter, Some(1_000_000)).unwrap_err());
        let (need, _) = survey.needs::<f32>(&config, filter);
        assert!(error.to_string().contains("more than the 1.0 MB that the memory limit allows"), "{error:#}");
        assert_eq!(Refusal::of(&error.context("train.npy")), Some(Refusal { need: Some(need) }));
        assert_eq!(Refusal::of(&anyhow::anyhow!("100 filters need 9 GB, more than the 8 GB that are free")), None);
    }
}
