//! The dictionary that `--init` names: an array with one filter per sample, or a model.

use crate::data::{Axes, Source, SourceOptions};
use anyhow::{Context, Result, ensure};
use ocsc::checkpoint;
use ocsc::{Dictionary, Real, Sample, Samples, Shape};
use std::path::Path;

/// The ending of models.
const MODEL: &str = "safetensors";

/// Filters in a file.
pub(crate) struct Given {
    n_filters: usize,
    pub(crate) shape: Shape,
    /// (K, C, spatial axes...)
    data: Vec<f64>,
}

impl Given {
    /// Reads filters of so many spatial axes.
    pub(crate) fn read(path: &Path, rank: usize) -> Result<Given> {
        let given = if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(MODEL)) {
            of_model(path, rank)
        } else {
            of_array(path, rank)
        };
        given.with_context(|| {
            format!(
                "--init {}: expected random, patches, a model, or an array (filters, {rank} axes) or (filters, channels, {rank} axes)",
                path.display()
            )
        })
    }

    /// The dictionary, and the largest norm of a filter before all norms were brought to at most 1.
    pub(crate) fn dictionary<T: Real>(&self, rank: usize) -> Result<(Dictionary<T>, f64)> {
        Ok(Dictionary::scaled(self.n_filters, self.shape, rank, &self.data)?)
    }
}

fn of_model(path: &Path, rank: usize) -> Result<Given> {
    let dictionary = checkpoint::load::<f64>(path)?.dictionary;
    let found = dictionary.rank();
    ensure!(found == rank, "expected filters with {rank} spatial axes, as the data have, found {found}");
    Ok(Given { n_filters: dictionary.n_filters(), shape: dictionary.shape(), data: dictionary.data().to_vec() })
}

fn of_array(path: &Path, rank: usize) -> Result<Given> {
    let open = |channels: &str| -> Result<Source> {
        let axes: Axes = format!("N{channels}{}", &"DHW"[3 - rank..]).parse()?;
        Source::open(&[path.to_owned()], &SourceOptions { axes: Some(axes), ..SourceOptions::default() })
    };
    let source = open("").or_else(|_| open("C"))?;
    let first: Sample<f64> = source.get(0)?;
    let mut data = Vec::new();
    for k in 0..source.len() {
        let filter: Sample<f64> = source.get(k)?;
        data.extend_from_slice(filter.data());
    }
    Ok(Given { n_filters: source.len(), shape: first.shape(), data })
}
