//! Whether codes belong to the model and to the data that they are to be turned back with.

use crate::args::Reconstruct;
use crate::console::{Console, counted, share};
use crate::data::{Facts, Source, codes};
use anyhow::{Context, Result, bail, ensure};
use ocsc::checkpoint::Saved;
use ocsc::preprocess::Preprocess;
use std::path::{Path, PathBuf};

/// What codes are held against.
pub(crate) struct Belonging<'a> {
    pub(crate) saved: &'a Saved<f64>,
    pub(crate) args: &'a Reconstruct,
    pub(crate) source: Option<&'a Source>,
}

impl Belonging<'_> {
    /// Refuses codes that would not come back as what they were made of. Returns what their files say, and the preprocessing
    /// to undo.
    pub(crate) fn check(&self, paths: &[PathBuf], console: &Console) -> Result<(Vec<Facts>, Preprocess)> {
        let facts = paths.iter().map(|path| codes::read_facts(path)).collect::<Result<Vec<_>>>()?;
        let unknown = facts.iter().filter(|facts| facts.model.is_none()).count();
        if unknown > 0 {
            console.say(format!(
                "{} not say which model made it (written before codes did, or elsewhere): whether it was this one is not \
                 checked",
                share(unknown, paths.len(), "code", ["does", "do"])
            ));
        }
        let preprocess = self.preprocess(&facts[0])?;
        for (path, facts) in paths.iter().zip(&facts) {
            self.check_model(facts, path, console).with_context(|| path.display().to_string())?;
            self.check_data(facts, &preprocess).with_context(|| path.display().to_string())?;
        }
        Ok((facts, preprocess))
    }

    /// The preprocessing that the call names, or the codes, or the model.
    fn preprocess(&self, first: &Facts) -> Result<Preprocess> {
        match (&self.args.preprocess, &first.preprocess) {
            (Some(given), _) => Ok(given.clone()),
            (None, Some(recorded)) => Ok(recorded.parse()?),
            (None, None) => Ok(self.saved.config.preprocess.clone()),
        }
    }

    fn check_model(&self, facts: &Facts, path: &Path, console: &Console) -> Result<()> {
        let (saved, model) = (self.saved, self.args.model.display());
        let filters = saved.dictionary.shape();
        if let Some([channels, ..]) = facts.sample_shape.as_deref() {
            ensure!(
                *channels == filters.channels,
                "expected a sample of {}, as {model} has, found {channels}",
                counted(filters.channels, "channel")
            );
        }
        if let Some(found) = facts.boundary.as_ref().filter(|b| **b != saved.config.boundary.to_string()) {
            bail!("expected codes of the boundary {} of {model}, found {found}", saved.config.boundary);
        }
        let Some(found) = facts.model.as_ref().filter(|found| **found != saved.dictionary_checksum) else {
            return Ok(());
        };
        // Where sizes differ, they say more than checksums.
        codes::read_code::<f64>(path)?.0.reconstruct(&saved.dictionary, saved.config.boundary)?;
        if self.args.any_model {
            console.say(format!("{}: made with another dictionary than that of {model}", path.display()));
            return Ok(());
        }
        let short = |checksum: &str| checksum.chars().take(8).collect::<String>();
        bail!(
            "expected codes made with the dictionary of {model} ({}...), found another one's ({}...); reconstruct with the \
             model that coded them, or insist with --any-model",
            short(&saved.dictionary_checksum),
            short(found)
        )
    }

    /// With the originals at hand: whether they are prepared as they were.
    fn check_data(&self, facts: &Facts, preprocess: &Preprocess) -> Result<()> {
        let Some(source) = self.source else { return Ok(()) };
        match facts.masked {
            Some(true) if !source.is_masked() => bail!(
                "coded with unobserved values: expected --mask (or --nan-is-missing) as for `ocsc code`, found none; what was \
                 taken out of the originals would come back wrong"
            ),
            Some(false) if source.is_masked() => {
                bail!("coded without a mask: expected neither --mask nor --nan-is-missing")
            }
            _ => {}
        }
        let used = preprocess.to_string();
        if let Some(found) = facts.preprocess.as_ref().filter(|found| **found != used) {
            bail!("expected codes of samples prepared by --preprocess {used}, found {found}");
        }
        Ok(())
    }
}
