//! Every setting of a run, declared once: its name, text, default and check, the part of a method that obeys it, and when a
//! change takes effect. The program's flags and the Python package's parameters are made from these declarations.
//!
//! [`Config`] holds what model files record; the settings of coders and updates are declared beside these, in
//! `coder/settings.rs` and `update/settings.rs`. [`RunConfig`] holds what belongs to one run.

use crate::coder::CodingConfig;
use crate::preprocess::Preprocess;
use crate::setting::{Check, Effect, Part, settings};
use crate::update::UpdatingConfig;
use crate::{Axes, Error, Loss, Method, Result};
use serde_json::Value;

pub use crate::boundary::Boundary;
pub use crate::coder::{ActiveSetConfig, CoderConfig, CoderKind, StopRule, Weights};
pub use crate::constraint::{FilterConfig, Scale, Scales};
pub use crate::real::Dtype;
pub use crate::setting;
pub use crate::setting::{Kind, Setting};
pub use crate::update::{BlockDescentConfig, Forgetting, UpdateConfig};

settings! {
    /// Holds the settings of learning and coding. `Config::default()` is the paper's experiment: K = 100, 11x11, beta = 1.
    pub struct Config at "" {
        /// The method.
        method: Method = Method::default(), effect(Effect::Fixed);
        /// Number of filters.
        n_filters: usize = 100, check(Check::AtLeastOne), flag("filters"), value_name("K"), effect(Effect::Fixed);
        /// Filter size: one length for every axis, or one for each.
        filter_shape: Vec<usize> = vec![11, 11], flag("size"), value_name("SIZE"), effect(Effect::Fixed);
        /// Weight of the l1 norm.
        beta: f64 = 1.0, check(Check::Positive), value_name("BETA"), in_code("beta"), effect(Effect::Both);
        /// Passes over the data; 0 leaves the initial dictionary as it is.
        passes: usize = 1, value_name("N");
        /// Samples coded between two updates of the dictionary.
        batch_size: usize = 1, check(Check::AtLeastOne), flag("batch"), value_name("B"), effect(Effect::Learning);
        /// Codes are this close to optimal: relative duality gap, or as `stop` says.
        tol: f64 = 0.01, check(Check::Positive), value_name("TOL"), in_code("tol"), effect(Effect::Both);
        /// What lies outside a sample: itself again (circular), zeros (zero), or nothing that counts (free); all methods but
        /// ocsc, sgd, aocdl and scsc take circular.
        boundary: Boundary = Boundary::Circular, effect(Effect::Coding);
        /// Seeds the initial dictionary and the visiting order.
        seed: u64 = 0, name("random_state"), flag("seed"), value_name("SEED");
        /// Precision that everything is computed in: f32 or f64.
        dtype: Dtype = Dtype::F32, value_name("DTYPE"), in_code("dtype"), effect(Effect::Coding);
        /// none, or steps such as lowpass=5,scale, each at most once: gray (first), mean, scale (by the standard deviation) or
        /// scale=NUMBER, lowpass=LAMBDA (minus the smooth part), whiten=ORDER (signals), lcn (local contrast), taper (last), per-channel (behind it: gray filters on
        /// every channel by itself).
        preprocess: Preprocess = Preprocess::default(), value_name("STEPS"), in_code("preprocess"), effect(Effect::Coding);
        /// What the axes of arrays mean: N samples, C channels, D depth or time, H height, W width.
        #[serde(skip_serializing_if = "Option::is_none")]
        axes: Option<Axes> = None, not_in_learn(), not_in_python();
        /// The rate that recordings were brought to, in Hz.
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<u64> = None, check(Check::AtLeastOne), not_in_learn(), not_in_python();
        /// The size that images were brought to.
        #[serde(skip_serializing_if = "Option::is_none")]
        resize: Option<String> = None, not_in_learn(), not_in_python();
    }
    groups {
        /// The settings of the ADMM coder, which `ocsc-paper` and most batch methods learn with, and of FISTA.
        coder: CoderConfig;
        /// The settings of the active-set coder, which codes new data.
        active_set: ActiveSetConfig;
        /// The settings of the dictionary updates of all methods but `ocsc` and `osc`.
        update: UpdateConfig;
        /// The settings of the dictionary update of `ocsc` and `scsc`; `aocdl` and `osc` take its forgetting and its sweeps.
        block_descent: BlockDescentConfig;
        /// What filters may be.
        filters: FilterConfig;
        /// The settings of the batch methods.
        batch: BatchConfig;
    }
}

settings! {
    /// Says how much of a pass of a batch method goes into codes and how much into the dictionary, see
    /// [`crate::learner::Batch`].
    pub struct BatchConfig at "/batch" {
        /// Batch methods: the coder's iterations per sample and pass, at most.
        code_iters: usize = 10, name("pass_code_iters"), of(Part::Batch), check(Check::AtLeastOne), value_name("N");
        /// Batch methods: the update's iterations per pass, at most.
        update_iters: usize = 5, name("pass_update_iters"), of(Part::Batch), check(Check::AtLeastOne), value_name("N");
    }
}

settings! {
    /// Holds the settings of one run, which model files do not hold.
    pub struct RunConfig at "run" {
        /// Instead of beta: this fraction of the smallest beta with all-zero codes, in the median over up to 64 samples.
        beta_ratio: Option<f64> = None, check(Check::Positive), value_name("RATIO"), in_code("beta-ratio");
        /// Stop when the relative changes of codes and dictionary over a pass are both below this (the paper: 1e-3).
        stop_tol: Option<f64> = None, check(Check::Positive), value_name("TOL");
        /// Stop after so many seconds of learning.
        time_limit: Option<f64> = None, check(Check::Positive), value_name("SECONDS");
        /// Refuse to start if more memory than this would be needed, e.g. 500MB or 32GB; what is free by default.
        memory_limit: Option<usize> = None, value_name("BYTES");
    }
}

/// Returns all settings, in the order in which they are best explained.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    // The settings of a run stand beside those of the model that they belong to.
    let groups =
        [ActiveSetConfig::SETTINGS, BlockDescentConfig::SETTINGS, FilterConfig::SETTINGS, CoderConfig::SETTINGS];
    let groups = groups.into_iter().chain([UpdateConfig::SETTINGS, BatchConfig::SETTINGS, RunConfig::SETTINGS]);
    Config::SETTINGS.iter().chain(groups.flatten())
}

/// Returns the setting of this name, if there is one.
pub fn find(name: &str) -> Option<&'static Setting> {
    all().find(|setting| setting.name == name)
}

impl Config {
    /// Returns the settings of the paper's experiment on photos: gray, contrast-normalised and tapered, circular, 100 filters of
    /// 11x11, beta = 1, one pass. They are said one by one, whatever the defaults are or become.
    pub fn paper() -> Self {
        Config {
            n_filters: 100,
            filter_shape: vec![11, 11],
            beta: 1.0,
            passes: 1,
            boundary: Boundary::Circular,
            preprocess: Preprocess::paper(),
            ..Config::default()
        }
    }

    /// Refuses what the mathematics cannot take and what the method would not obey, once, at the door.
    pub fn validate(&self) -> Result<()> {
        self.validate_values()?;
        let config = serde_json::to_value(self).unwrap_or_default();
        let value =
            |setting: &Setting| setting.path().and_then(|path| config.pointer(path)).cloned().unwrap_or_default();
        let ignored = all().filter(|s| s.is_recorded() && !self.method.obeys(s.part));
        for setting in ignored {
            let found = value(setting);
            if found != setting.default() {
                let obeying: Vec<&str> =
                    Method::ALL.into_iter().filter(|m| m.obeys(setting.part)).map(Method::name).collect();
                let expected = format!(
                    "{} with the method `{}`, which does not obey it ({} would)",
                    setting.default(),
                    self.method,
                    obeying.join(", ")
                );
                return Err(Error::invalid(setting.name, expected, found));
            }
        }
        // Others with the same coder have updates that know squares alone.
        if self.active_set.loss != Loss::L2 && self.method != Method::Ocsc {
            let expected = format!("l2 with the method `{}`, whose update knows no other (ocsc does)", self.method);
            return Err(Error::invalid("loss", expected, self.active_set.loss));
        }
        Ok(())
    }

    /// Returns the settings with the defaults of those that the method does not obey. Earlier versions recorded such settings;
    /// learning goes on without them as it did with them.
    pub(crate) fn obeyed(&self) -> Self {
        let mut config = serde_json::to_value(self).unwrap_or_default();
        for setting in all().filter(|s| !self.method.obeys(s.part)) {
            setting.path().into_iter().for_each(|path| put(&mut config, path, &setting.default()));
        }
        serde_json::from_value(config).unwrap_or_else(|_| self.clone())
    }

    /// Refuses what the mathematics cannot take. Model files are held against this alone: earlier versions wrote settings that
    /// their method had not obeyed, and such a dictionary codes new data as any other.
    pub(crate) fn validate_values(&self) -> Result<()> {
        self.check_values()?;
        self.check_problem()?;
        self.filters.check_together()?;
        if self.block_descent.base_filters > 0
            && (self.filters != FilterConfig::default() || self.block_descent.recenter)
        {
            let expected =
                "0 beside constraints on filters and recentring, which combinations of base filters do not keep";
            return Err(Error::invalid("base_filters", expected, self.block_descent.base_filters));
        }
        if !self.method.takes_boundary(self.boundary) {
            let expected = format!("circular for the method `{}`", self.method);
            return Err(Error::invalid("boundary", expected, format!("{:?}", self.boundary)));
        }
        if !(1..=3).contains(&self.filter_shape.len()) || self.filter_shape.contains(&0) {
            let found = format!("{:?}", self.filter_shape);
            return Err(Error::invalid("filter_shape", "one to three lengths of at least 1", found));
        }
        self.block_descent.check_base_filters(self.n_filters)
    }

    /// Refuses settings of codes that contradict each other.
    pub fn check_problem(&self) -> Result<()> {
        if self.active_set.joint && !self.preprocess.is_per_channel() {
            let expected =
                "false, or the step per-channel at the end of preprocess, which takes each channel by itself";
            return Err(Error::invalid("joint", expected, format!("preprocess {}", self.preprocess)));
        }
        self.active_set.check_problem(self.n_filters)
    }

    /// Returns the settings of the coder that the method learns with.
    pub(crate) fn learning(&self) -> CodingConfig {
        let mut coding = self.coding(self.active_set.learn_tol.unwrap_or(self.tol));
        // Statistics are of codes that the penalty made.
        coding.active_set.refit = false;
        if self.method.is_batch() {
            coding.coder.max_iters = self.batch.code_iters;
        }
        coding
    }

    /// Returns the settings of a coder for new data, to this tolerance.
    pub(crate) fn coding(&self, tol: f64) -> CodingConfig {
        CodingConfig {
            beta: self.beta,
            tol,
            boundary: self.boundary,
            coder: self.coder.clone(),
            active_set: self.active_set.clone(),
            n_base: self.block_descent.n_base(self.n_filters),
        }
    }

    /// Returns the settings of the method's update.
    pub(crate) fn updating(&self) -> UpdatingConfig {
        let mut update = self.update.clone();
        if self.method.is_batch() {
            update.max_iters = self.batch.update_iters;
        }
        let mut block_descent = self.block_descent.clone();
        block_descent.forgetting = block_descent.forgetting.of_batches(self.batch_size);
        let (filters, loss) = (self.filters.clone(), self.active_set.loss);
        UpdatingConfig { boundary: self.boundary, loss, seed: self.seed, update, block_descent, filters }
    }
}

/// Returns the configuration in which the named settings have these values and all others their defaults.
pub fn configure(values: impl IntoIterator<Item = (String, Value)>) -> Result<Config> {
    let default = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut whole = default.clone();
    for (name, value) in values {
        let path = find(&name).and_then(Setting::path);
        let Some(path) = path else {
            let names: Vec<&str> = all().filter(|s| s.is_recorded()).map(|s| s.name).collect();
            return Err(Error::invalid("setting", format!("one of {}", names.join(", ")), name));
        };
        // Alone first, so that a value of a wrong type is refused by its name.
        let mut alone = default.clone();
        for place in [&mut alone, &mut whole] {
            put(place, path, &value);
        }
        if let Err(error) = serde_json::from_value::<Config>(alone) {
            return Err(refused(&name, &value, &error.to_string()));
        }
    }
    let config: Config =
        serde_json::from_value(whole).map_err(|e| Error::invalid("settings", "values of their types", e))?;
    config.validate()?;
    Ok(config)
}

/// Returns the configuration with another value of the named setting.
pub fn with_value(config: &Config, name: &str, value: &Value) -> Result<Config> {
    let mut all = serde_json::to_value(config).unwrap_or_default();
    if let Some(path) = find(name).and_then(Setting::path) {
        put(&mut all, path, value);
    }
    serde_json::from_value(all).map_err(|e| refused(name, value, &e.to_string()))
}

/// Puts a value at the end of a pointer whose parents are there.
fn put(all: &mut Value, path: &str, value: &Value) {
    let Some((parent, name)) = path.rsplit_once('/') else { return };
    if let Some(Value::Object(parent)) = all.pointer_mut(parent) {
        parent.insert(name.to_owned(), value.clone());
    }
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
        let mut named: Vec<&str> = all().filter_map(Setting::path).collect();
        // None by default, and left out then.
        found.extend(["/axes", "/rate", "/resize"].map(str::to_owned));
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
            ("beta".to_owned(), json!(2)),
        ])
        .unwrap();
        assert_eq!((config.n_filters, config.beta, config.block_descent.tol), (7, 2.0, 0.5));
        assert_eq!(find("sweep_tol").unwrap().value(&config), json!(0.5));
        assert_eq!(find("filter_shape").unwrap().default(), json!([11, 11]));
        assert_eq!(find("stop_tol").unwrap().value(&config), Value::Null);
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
        assert!(refusal("colour", json!(1)).contains("one of method, n_filters, "));
    }
}
