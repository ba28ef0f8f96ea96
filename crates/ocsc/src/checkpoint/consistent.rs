//! What the parts of a model file must say alike: the settings, the tensors and the place in the run.

use crate::text::counted;
use crate::train::Progress;
use crate::{Config, Error, Result, real};
use safetensors::Dtype;

/// Refuses settings that name another number or shape of filters than the dictionary has. Settings that name none, as files
/// from elsewhere may, agree with any.
pub(super) fn dictionary(config: &str, n_filters: usize, axes: &[usize]) -> Result<()> {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    let said = [("n_filters", serde_json::json!(n_filters)), ("filter_shape", serde_json::json!(axes))];
    for (name, expected) in said {
        if let Some(found) = config.get(name).filter(|found| **found != expected) {
            return Err(Error::invalid(
                format!("config: {name}"),
                format!("{expected}, as the tensor `dictionary` has"),
                found,
            ));
        }
    }
    Ok(())
}

/// Refuses a place that no run can be at, and statistics in another scalar than the settings say. None is given for files
/// without a checksum: they may have been written by programs that left that setting alone.
pub(super) fn checkpoint(progress: &Progress, config: &Config, scalar: Option<Dtype>) -> Result<()> {
    if progress.visited > progress.of {
        let expected = format!("at most the {} of the data set visited in a pass", counted(progress.of, "sample"));
        return Err(Error::invalid("progress", expected, progress.visited));
    }
    let times = [progress.seconds, progress.cpu_seconds, progress.waiting_seconds];
    if let Some(time) = times.iter().find(|time| !(time.is_finite() && **time >= 0.0)) {
        return Err(Error::invalid("progress", "times from 0 up", time));
    }
    let wanted = match config.dtype {
        real::Dtype::F32 => Dtype::F32,
        real::Dtype::F64 => Dtype::F64,
    };
    match scalar.filter(|scalar| *scalar != wanted) {
        Some(other) => {
            let expected = format!("statistics in {wanted:?}, as `dtype` says").to_lowercase();
            Err(Error::invalid("config: dtype", expected, format!("{other:?}").to_lowercase()))
        }
        None => Ok(()),
    }
}
