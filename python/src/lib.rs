//! The native half of the Python package `ocsc`: what `python/ocsc` calls, and nothing that users see.
//!
//! | file | what |
//! |---|---|
//! | `host.rs` | work on a pool of threads while the calling thread listens to Python: signals, callbacks, iterators |
//! | `error.rs` | errors as Python exceptions |
//! | `array.rs` | numpy arrays as samples, and back |
//! | `source.rs` | Python objects as sources of samples |
//! | `values.rs` | settings by name, and their declarations |
//! | `run.rs` | one run of a learner, in f32 or f64 |
//! | `learner.rs` | the class `Learner` |
//! | `coding.rs` | codes, reconstructions, evaluations for given filters |
//! | `events.rs` | events of codes |
//! | `measure.rs` | preprocessing and metrics |
//! | `restore.rs` | images without noise and gaps |
//! | `tune.rs` | choosing beta |
//! | `files.rs` | files that are written on Python's side |

mod array;
mod coding;
mod error;
mod events;
mod files;
mod host;
mod learner;
mod live;
mod measure;
mod restore;
mod run;
mod source;
mod tune;
mod values;

/// The module that the Python half imports.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::array::filters_last;
    #[pymodule_export]
    use crate::coding::{beta_max, code, evaluate, own_filters, path, reconstruct};
    #[pymodule_export]
    use crate::events::{events, stitch_events};
    #[pymodule_export]
    use crate::files::{free_memory, replace_file};
    #[pymodule_export]
    use crate::learner::{Learner, load, loads};
    #[pymodule_export]
    use crate::live::LivePage;
    #[pymodule_export]
    use crate::measure::{mse, prepare, psnr, ssim, undo};
    #[pymodule_export]
    use crate::restore::{deblur, demosaic, denoise, doubt_of_sigma, inpaint, noise_of, upscale};
    #[pymodule_export]
    use crate::tune::{default_ratio, heldout, tune};
    #[pymodule_export]
    use crate::values::{Setting, batch_methods, check_axes, list_settings, methods, version};
}
