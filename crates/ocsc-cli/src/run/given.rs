//! The dictionary that `--init` names: an array with one filter per sample, or a model.

use crate::data::{Axes, Source, SourceOptions};
use anyhow::{Context, Result, bail, ensure};
use ocsc::checkpoint;
use ocsc::{Dictionary, FiltersLast, Real, Sample, Samples, Shape, filters_last};
use std::path::Path;

/// The ending of models.
const MODEL: &str = "safetensors";

/// Filters in a file.
pub(crate) struct Given {
    n_filters: usize,
    pub(crate) shape: Shape,
    /// (K, C, spatial axes...)
    data: Vec<f64>,
    /// Says why the filters may be in another order than they were read in.
    pub(crate) doubt: Option<String>,
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
    let (n_filters, shape, data) = (dictionary.n_filters(), dictionary.shape(), dictionary.data().to_vec());
    Ok(Given { n_filters, shape, data, doubt: None })
}

fn of_array(path: &Path, rank: usize) -> Result<Given> {
    let open = |channels: &str| -> Result<Source> {
        let axes: Axes = format!("N{channels}{}", &"DHW"[3 - rank..]).parse()?;
        Source::open(&[path.to_owned()], &SourceOptions { axes: Some(axes), ..SourceOptions::default() })
    };
    let (source, has_channels) = match open("") {
        Ok(source) => (source, false),
        Err(_) => (open("C")?, true),
    };
    let first: Sample<f64> = source.get(0)?;
    let mut data = Vec::new();
    for k in 0..source.len() {
        let filter: Sample<f64> = source.get(k)?;
        data.extend_from_slice(filter.data());
    }
    let (n_filters, shape) = (source.len(), first.shape());
    let axes = [vec![n_filters], shape.axes(rank)].concat();
    let size = |axes: &[usize]| axes.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let call = filters_first(has_channels, rank);
    let doubt = match filters_last(n_filters, shape, rank, &data) {
        Some(FiltersLast::Norms) => bail!(
            "found one whose filters seem to be its last axis, as SPORCO has them: along the last axis all norms are 1, and along the first \
             they are not; save {call}, or filters of norm 1 if they do come first"
        ),
        Some(FiltersLast::Sides) if !has_channels => Some(format!(
            "read as {n_filters} filters of {}; if it is {} of {}, with filters last as SPORCO has them, save {call}",
            size(&axes[1..]),
            shape.width,
            size(&axes[..rank])
        )),
        _ => None,
    };
    Ok(Given { n_filters, shape, data, doubt })
}

/// The call of numpy that brings an array (spatial axes..., K) or (spatial axes..., C, K) into our order.
fn filters_first(has_channels: bool, rank: usize) -> String {
    if !has_channels {
        return "np.moveaxis(D, -1, 0)".to_owned();
    }
    let spatial: Vec<String> = (0..rank).map(|axis| axis.to_string()).collect();
    format!("D.transpose({}, {rank}, {})", rank + 1, spatial.join(", "))
}
