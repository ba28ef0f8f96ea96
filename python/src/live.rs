//! The live page of `verbose="live"`, served for as long as the process lives.

use ocsc::train::{Ended, Outcome};
use ocsc::{Config, Shape};
use ocsc_live::{About, Camera, Listen, Live};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// A page, and whether its stop button was pressed.
pub(crate) struct Page {
    live: Live,
    stop: Arc<AtomicBool>,
}

/// A page that Python holds on to.
#[pyclass(frozen, module = "ocsc._native")]
pub(crate) struct LivePage(pub(crate) Arc<Page>);

#[pymethods]
impl LivePage {
    /// Serves a page on 127.0.0.1, on a port that is free.
    #[new]
    fn open() -> PyResult<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let pressed = stop.clone();
        let live = Live::of_run(&Listen::default(), move || pressed.store(true, SeqCst));
        let live = live.map_err(|error| PyOSError::new_err(format!("verbose='live': {error}")))?;
        Ok(LivePage(Arc::new(Page { live, stop })))
    }

    /// The address to open.
    #[getter]
    fn url(&self) -> &str {
        self.0.live.url()
    }
}

impl Page {
    /// Returns what takes pictures of a run of filters of this shape; `samples` are those of a pass, where that is known.
    pub(crate) fn camera<'a>(&self, config: &Config, shape: Shape, begun: usize, samples: Option<usize>) -> Camera<'a> {
        self.stop.store(false, SeqCst);
        let n = ocsc::text::counted(config.n_filters, "filter");
        let mut rows = Vec::new();
        if let Ok(serde_json::Value::Object(settings)) = serde_json::to_value(config) {
            rows.extend(settings.into_iter().map(|(name, value)| match value {
                serde_json::Value::String(text) => (name, text),
                other => (name, other.to_string()),
            }));
        }
        let about = About { title: format!("Learning {n} of {shape}"), rows };
        let total = samples.map(|samples| samples.saturating_mul(config.passes));
        let camera = self.live.camera(about, begun, total, samples.map(|_| config.passes));
        camera.naming(|i| format!("X[{i}]"))
    }

    /// Returns whether the stop button was pressed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst)
    }
}

/// Says why a run ended.
pub(crate) fn words(outcome: &Outcome) -> &'static str {
    match outcome.ended {
        Ended::Finished => "all passes made",
        Ended::Converged => "converged",
        Ended::TimeLimit => "time limit",
        Ended::Stopped => "stopped",
    }
}
