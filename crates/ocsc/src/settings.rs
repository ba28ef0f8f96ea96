//! Every setting under one plain name, with its default and its description: the program's options and the Python package's
//! parameters are made of this table, so that neither can drift from [`Config`].

use crate::{Config, Error, Result};
use serde_json::Value;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Where it stands in [`Config`], as a JSON pointer; none for settings of a run, which model files do not hold.
    path: Option<&'static str>,
    /// What it does.
    pub doc: &'static str,
}

impl Setting {
    const fn of(name: &'static str, path: &'static str, doc: &'static str) -> Self {
        Setting { name, path: Some(path), doc }
    }

    const fn run(name: &'static str, doc: &'static str) -> Self {
        Setting { name, path: None, doc }
    }

    /// The value in `config`; null for settings of a run.
    pub fn value(&self, config: &Config) -> Value {
        let all = serde_json::to_value(config).unwrap_or_default();
        self.path.and_then(|path| all.pointer(path).cloned()).unwrap_or_default()
    }

    /// Whether it is a part of [`Config`].
    pub fn is_recorded(&self) -> bool {
        self.path.is_some()
    }
}

/// `method`.
pub const METHOD: Setting = Setting::of(
    "method",
    "/method",
    "The method: ocsc, ocsc-paper, deconvnet, fcsc, ffcsc, cbpdn, consensus, ocdl1, ocdl2 or osc",
);
/// `n_filters`.
pub const N_FILTERS: Setting = Setting::of("n_filters", "/n_filters", "Number of filters");
/// `filter_shape`.
pub const FILTER_SHAPE: Setting =
    Setting::of("filter_shape", "/filter_shape", "Filter size: one length for every axis, or one for each");
/// `beta`.
pub const BETA: Setting = Setting::of("beta", "/beta", "Weight of the l1 norm");
/// `beta_ratio`.
pub const BETA_RATIO: Setting = Setting::run(
    "beta_ratio",
    "Instead of beta: this fraction of the smallest beta with all-zero codes, for the first batch visited",
);
/// `passes`.
pub const PASSES: Setting =
    Setting::of("passes", "/passes", "Passes over the data; 0 leaves the initial dictionary as it is");
/// `batch_size`.
pub const BATCH_SIZE: Setting =
    Setting::of("batch_size", "/batch_size", "Samples coded between two updates of the dictionary");
/// `tol`.
pub const TOL: Setting =
    Setting::of("tol", "/tol", "Codes are this close to optimal: relative duality gap, or as `stop` says");
/// `boundary`.
pub const BOUNDARY: Setting = Setting::of(
    "boundary",
    "/boundary",
    "What lies outside a sample: itself again (circular), zeros (zero), or nothing that counts (free); all methods but \
     ocsc take circular",
);
/// `init`.
pub const INIT: Setting = Setting::run(
    "init",
    "Initial dictionary: random, patches (of the data), or an array of shape (K, C, axes...) or (K, axes...)",
);
/// `random_state`.
pub const RANDOM_STATE: Setting =
    Setting::of("random_state", "/seed", "Seeds the initial dictionary and the visiting order");
/// `dtype`.
pub const DTYPE: Setting = Setting::of("dtype", "/dtype", "Precision that everything is computed in: f32 or f64");
/// `preprocess`.
pub const PREPROCESS: Setting = Setting::of(
    "preprocess",
    "/preprocess",
    "none, or steps such as lowpass=5,scale, each at most once: gray (first), mean, scale (by the standard deviation) or \
     scale=NUMBER, lowpass=LAMBDA (minus the smooth part), whiten=ORDER (signals), lcn (local contrast), taper (last)",
);
/// `axes`.
pub const AXES: Setting =
    Setting::run("axes", "What the axes of arrays mean: N samples, C channels, D depth or time, H height, W width");
/// `non_negative`.
pub const NON_NEGATIVE: Setting =
    Setting::of("non_negative", "/active_set/nonnegative", "Codes without negative values (method ocsc)");
/// `weights`.
pub const WEIGHTS: Setting = Setting::of(
    "weights",
    "/active_set/weights",
    "One weight per filter on its l1 norm; 1 each by default (method ocsc)",
);
/// `max_rounds`.
pub const MAX_ROUNDS: Setting = Setting::of(
    "max_rounds",
    "/active_set/max_rounds",
    "Rounds of the active-set coder per sample, at most; the gap says how far its code got",
);
/// `forgetting`.
pub const FORGETTING: Setting = Setting::of(
    "forgetting",
    "/block_descent/forgetting",
    "The past weighs (1 - 1/t)^this at update t (methods ocsc and osc); 1 is plain averaging",
);
/// `sweeps`.
pub const SWEEPS: Setting = Setting::of(
    "sweeps",
    "/block_descent/sweeps",
    "Sweeps of block descent per update, at most (methods ocsc and osc)",
);
/// `sweep_tol`.
pub const SWEEP_TOL: Setting = Setting::of(
    "sweep_tol",
    "/block_descent/tol",
    "End the sweeps of an update when the relative norm of the projected gradient is at most this (method ocsc)",
);
/// `reseed`.
pub const RESEED: Setting = Setting::of(
    "reseed",
    "/block_descent/reseed",
    "Try the worst-explained patches in the place of filters that no code uses (method ocsc)",
);
/// `stop`.
pub const STOP: Setting = Setting::of(
    "stop",
    "/coder/stop",
    "The coder's stopping rule: duality gap (gap), relative ADMM residuals (residuals), or the paper's relative change of Z \
     (change); methods other than ocsc, here and below",
);
/// `max_iters`.
pub const MAX_ITERS: Setting = Setting::of("max_iters", "/coder/max_iters", "The coder's iterations, at most");
/// `rho`.
pub const RHO: Setting = Setting::of("rho", "/coder/rho", "The coder's penalty; 50 beta / max|x| by default");
/// `adaptive_rho`.
pub const ADAPTIVE_RHO: Setting = Setting::of(
    "adaptive_rho",
    "/coder/adaptive_rho",
    "Balance the coder's residuals by its penalty, instead of keeping it fixed",
);
/// `relaxation`.
pub const RELAXATION: Setting =
    Setting::of("relaxation", "/coder/relaxation", "The coder's over-relaxation, from 1 (the paper's) up to 2");
/// `update_rho`.
pub const UPDATE_RHO: Setting =
    Setting::of("update_rho", "/update/rho", "The update's penalty; 4 ||Z||^2 / K of the first code by default");
/// `update_iters`.
pub const UPDATE_ITERS: Setting = Setting::of("update_iters", "/update/max_iters", "The update's iterations, at most");
/// `update_tol`.
pub const UPDATE_TOL: Setting =
    Setting::of("update_tol", "/update/tol", "The update's tolerance on its relative residuals");
/// `update_reset`.
pub const UPDATE_RESET: Setting = Setting::of(
    "update_reset",
    "/update/reset",
    "Start the update's variables from zero at every sample, as the paper prints it",
);
/// `pass_code_iters`.
pub const PASS_CODE_ITERS: Setting = Setting::of(
    "pass_code_iters",
    "/batch/code_iters",
    "Batch methods: the coder's iterations per sample and pass, at most",
);
/// `pass_update_iters`.
pub const PASS_UPDATE_ITERS: Setting =
    Setting::of("pass_update_iters", "/batch/update_iters", "Batch methods: the update's iterations per pass, at most");
/// `stop_tol`.
pub const STOP_TOL: Setting = Setting::run(
    "stop_tol",
    "Stop when the relative changes of codes and dictionary over a pass are both below this (the paper: 1e-3)",
);
/// `time_limit`.
pub const TIME_LIMIT: Setting = Setting::run("time_limit", "Stop after so many seconds of learning");
/// `memory_limit`.
pub const MEMORY_LIMIT: Setting = Setting::run(
    "memory_limit",
    "Refuse to start if more memory than this would be needed, e.g. 500MB or 32GB; what is free by default",
);
/// `threads`.
pub const THREADS: Setting = Setting::run("threads", "Threads to compute with; all cores by default");

/// All settings, in the order in which they are best explained.
pub const ALL: [Setting; 36] = [
    N_FILTERS,
    FILTER_SHAPE,
    BETA,
    BETA_RATIO,
    METHOD,
    PASSES,
    BATCH_SIZE,
    TOL,
    BOUNDARY,
    INIT,
    RANDOM_STATE,
    THREADS,
    DTYPE,
    AXES,
    PREPROCESS,
    NON_NEGATIVE,
    WEIGHTS,
    MAX_ROUNDS,
    FORGETTING,
    SWEEPS,
    SWEEP_TOL,
    RESEED,
    STOP,
    MAX_ITERS,
    RHO,
    ADAPTIVE_RHO,
    RELAXATION,
    UPDATE_RHO,
    UPDATE_ITERS,
    UPDATE_TOL,
    UPDATE_RESET,
    PASS_CODE_ITERS,
    PASS_UPDATE_ITERS,
    STOP_TOL,
    TIME_LIMIT,
    MEMORY_LIMIT,
];

/// The configuration in which the named settings have these values and all others their defaults.
pub fn configure(values: impl IntoIterator<Item = (String, Value)>) -> Result<Config> {
    let default = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut all = default.clone();
    for (name, value) in values {
        let path = ALL.iter().find(|setting| setting.name == name).and_then(|setting| setting.path);
        let Some(path) = path else {
            let names: Vec<&str> = ALL.iter().filter(|s| s.is_recorded()).map(|s| s.name).collect();
            return Err(Error::invalid("setting", format!("one of {}", names.join(", ")), name));
        };
        // Alone first, so that a value of a wrong type is refused by its name.
        let mut alone = default.clone();
        for place in [&mut alone, &mut all] {
            if let Some(place) = place.pointer_mut(path) {
                *place = value.clone();
            }
        }
        if let Err(error) = serde_json::from_value::<Config>(alone) {
            return Err(refused(&name, &value, &error.to_string()));
        }
    }
    let config: Config =
        serde_json::from_value(all).map_err(|e| Error::invalid("settings", "values of their types", e))?;
    config.validate()?;
    Ok(config)
}

/// serde says `invalid type: string "a", expected usize`; what matters of it is what it expected.
fn refused(name: &str, value: &Value, message: &str) -> Error {
    let expected = match message.rsplit_once("expected ") {
        Some((_, "usize" | "u64")) => "a whole number from 0 up",
        Some((_, "f64")) => "a number",
        Some((_, "a boolean")) => "true or false",
        Some((_, expected)) => expected,
        None => message,
    };
    Error::invalid(name, expected, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_number_of_the_configuration_has_a_name() {
        fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => fields.iter().for_each(|(k, v)| leaves(v, &format!("{path}/{k}"), found)),
                _ => found.push(path.to_owned()),
            }
        }
        let mut found = Vec::new();
        leaves(&serde_json::to_value(Config::default()).unwrap(), "", &mut found);
        let mut named: Vec<&str> = ALL.iter().filter_map(|s| s.path).collect();
        // A limit per sample makes codes depend on the machine: the program has it for `code` alone.
        named.push("/active_set/time_limit");
        found.sort();
        named.sort();
        assert_eq!(found, named);
    }

    #[test]
    fn values_by_name() {
        let config = configure([
            ("n_filters".to_owned(), json!(7)),
            ("filter_shape".to_owned(), json!([3, 5])),
            ("sweep_tol".to_owned(), json!(0.5)),
            ("method".to_owned(), json!("ocsc-paper")),
            ("beta".to_owned(), json!(2)),
        ])
        .unwrap();
        assert_eq!((config.n_filters, config.beta, config.block_descent.tol), (7, 2.0, 0.5));
        assert_eq!(SWEEP_TOL.value(&config), json!(0.5));
        assert_eq!(FILTER_SHAPE.value(&Config::default()), json!([11, 11]));
        assert_eq!(THREADS.value(&config), Value::Null);
    }

    #[test]
    fn refusals_name_the_setting() {
        let refusal = |name: &str, value: Value| configure([(name.to_owned(), value)]).unwrap_err().to_string();
        assert_eq!(refusal("n_filters", json!("many")), "n_filters: expected a whole number from 0 up, found \"many\"");
        assert_eq!(refusal("n_filters", json!(2.5)), "n_filters: expected a whole number from 0 up, found 2.5");
        assert!(
            refusal("boundary", json!("open")).starts_with("boundary: expected "),
            "{}",
            refusal("boundary", json!("open"))
        );
        assert!(refusal("beta", json!(-1.0)).contains("above 0"));
        assert!(refusal("colour", json!(1)).contains("one of n_filters, "));
    }
}
