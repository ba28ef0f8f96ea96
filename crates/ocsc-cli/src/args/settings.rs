//! The flags of settings, made from their declarations in the library.

use super::value::Sizes;
use crate::console::told;
use crate::data::numbers;
use crate::memory::Limit;
use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use ocsc::beta::DEFAULT_RATIO;
use ocsc::preprocess::{Preprocess, Step};
use ocsc::setting::{Check, Part};
use ocsc::settings::{self, Boundary, Dtype, Kind, RunConfig, Setting, Weights};
use ocsc::{Config, Error, Loss, Method, Penalty};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Values of settings by name.
type Values = BTreeMap<&'static str, Value>;

/// The settings of `learn`: what the command line says of them. The others have their defaults.
#[derive(Clone, Debug)]
pub(crate) struct ModelArgs {
    values: Values,
    /// `--init`: random, patches, or a file.
    pub(crate) init: String,
    /// Whether beta is to be the default fraction of the largest useful one, as nothing was said of it.
    beta_is_open: bool,
    /// Whether a preset says what the experiment is.
    pub(crate) is_preset: bool,
    /// The options that were typed, word by word.
    pub(crate) typed: Vec<String>,
}

/// The settings of `code` and `evaluate`, instead of the model's.
#[derive(Clone, Debug)]
pub(crate) struct CodeArgs {
    values: Values,
}

/// What the program says of a setting instead of its declaration, because a flag means more here than a value does.
const HELP: &[(&str, &str)] = &[
    (
        "filter_shape",
        "Filter size: 11 (on every axis), 11x11, 5x11x11; or several, 5,11,21 or 5x5,11x11, which the filters share evenly, in \
         arrays of the largest (method ocsc) [default: 11]",
    ),
    (
        "boundary",
        "What lies outside a sample [default: circular for arrays, for images with edge taper and for all methods but ocsc; free \
         for other images and for recordings]",
    ),
    (
        "preprocess",
        "auto (lowpass,scale for image files, none for arrays), paper (gray,lcn,taper for image files, none for arrays), none, or \
         steps such as lowpass=5,scale, each at most once: gray (first), mean, scale (by the standard deviation) or scale=NUMBER, \
         lowpass=LAMBDA (minus the smooth part), whiten=ORDER (signals), lcn (local contrast), taper, per-channel (last; see \
         --per-channel) [default: auto]",
    ),
    ("beta", "Weight of the l1 norm [default: as --beta-ratio says]"),
    (
        "beta_ratio",
        "Instead of --beta: this fraction of the smallest beta with all-zero codes, in the median over up to 64 samples, against \
         patches of the data. It does not depend on --seed and --init [default: 0.1]",
    ),
    (
        "random_state",
        "Seeds the initial dictionary, the visiting order, --crop, --subset and --test-fraction [default: 0]",
    ),
    ("passes", "Passes over the data; 0 writes a model of the initial dictionary [default: 1]"),
    ("adaptive_rho", "Keep the coder's penalty fixed instead of balancing its residuals"),
    (
        "reseed",
        "Leave filters that no code uses as they are, instead of trying the worst-explained patches (method ocsc)",
    ),
    (
        "stop_tol",
        "Stop when the relative changes of codes and dictionary over a pass are both below this (the paper: 1e-3). After \
         --resume the comparison begins anew, so such a run may end a pass later",
    ),
    ("time_limit", "Stop after so many seconds of learning, with a checkpoint"),
];

/// The settings that a resumed run may be given anew, although the checkpoint has them.
const AFTER_RESUME: &[&str] = &["passes"];

impl ModelArgs {
    /// Returns the seed.
    pub(crate) fn seed(&self) -> u64 {
        self.values.get("random_state").and_then(Value::as_u64).unwrap_or_default()
    }

    /// Returns the precision to learn in.
    pub(crate) fn dtype(&self) -> Result<Dtype> {
        let default = Config::default();
        Ok(match self.values.get("dtype") {
            Some(value) => settings::with_value(&default, "dtype", value)?.dtype,
            None => default.dtype,
        })
    }

    fn method(&self) -> ocsc::Result<Method> {
        self.values.get("method").and_then(Value::as_str).map_or(Ok(Method::default()), str::parse)
    }

    /// Returns whether the method keeps its samples.
    pub(crate) fn is_batch(&self) -> bool {
        self.method().is_ok_and(|method| method.is_batch())
    }

    /// Returns the number of passes, if it was given.
    pub(crate) fn passes(&self) -> Option<usize> {
        self.values.get("passes").and_then(Value::as_u64).map(|n| n as usize)
    }

    /// Returns the steps of preprocessing as typed, or `auto`.
    pub(crate) fn preprocess(&self) -> &str {
        self.values.get("preprocess").and_then(Value::as_str).unwrap_or("auto")
    }

    /// Returns the filter size for data with so many spatial axes.
    pub(crate) fn filter_shape(&self, rank: usize) -> Result<Vec<usize>> {
        self.sizes()?.array(rank)
    }

    fn sizes(&self) -> Result<Sizes> {
        self.values.get("filter_shape").and_then(Value::as_str).unwrap_or("11").parse()
    }

    /// Returns the settings of the run.
    pub(crate) fn run(&self) -> RunConfig {
        let named = |name: &str| self.values.get(name);
        RunConfig {
            beta_ratio: named("beta_ratio").and_then(Value::as_f64).or(self.beta_is_open.then_some(DEFAULT_RATIO)),
            stop_tol: named("stop_tol").and_then(Value::as_f64),
            time_limit: named("time_limit").and_then(Value::as_f64),
            memory_limit: named("memory_limit").and_then(Value::as_u64).map(|n| n as usize),
        }
    }

    /// Returns the settings of the model, for data with so many spatial axes. `seamless` says that samples go on beyond their
    /// border, as arrays are trusted to.
    pub(crate) fn config(&self, rank: usize, preprocess: Preprocess, seamless: bool) -> Result<Config> {
        let mut values = self.values.clone();
        values.retain(|name, _| settings::find(name).is_some_and(Setting::is_recorded));
        let method = self.method()?;
        let tapered = preprocess.steps().contains(&Step::Taper);
        let circular = seamless || tapered || !method.takes_boundary(Boundary::Free);
        values.entry("boundary").or_insert_with(|| json!(if circular { Boundary::Circular } else { Boundary::Free }));
        values.insert("filter_shape", json!(self.filter_shape(rank)?));
        if let Some(scales) = self.sizes()?.scales(rank)? {
            values.insert("scales", json!(scales));
        }
        values.insert("preprocess", serde_json::to_value(preprocess)?);
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
        Ok(settings::configure(values).map_err(|error| with_flag(error, Setting::flag_name))?)
    }
}

impl CodeArgs {
    /// Returns the flag of a setting that was given, if any was.
    pub(crate) fn given(&self) -> Option<String> {
        let flag = |name: &&str| settings::find(name).and_then(|setting| setting.code_flag);
        self.values.keys().next().map(|name| format!("--{}", flag(name).unwrap_or(name)))
    }

    /// Returns the tolerance, if it was given.
    pub(crate) fn tol(&self) -> Option<f64> {
        self.values.get("tol").and_then(Value::as_f64)
    }

    /// Returns the fraction that beta is to be of the largest useful one, if it was given.
    pub(crate) fn beta_ratio(&self) -> Option<f64> {
        self.values.get("beta_ratio").and_then(Value::as_f64)
    }

    /// Returns the model's settings with what the call changes; `default_tol` is the tolerance unless it was given.
    pub(crate) fn apply(&self, config: &Config, default_tol: f64) -> Result<Config> {
        let mut config = Config { tol: default_tol, ..config.clone() };
        config.active_set.time_limit = None;
        for (name, value) in &self.values {
            let value = match (*name, value.as_str()) {
                ("preprocess", Some(steps)) => serde_json::to_value(steps.parse::<Preprocess>()?)?,
                _ => value.clone(),
            };
            config = settings::with_value(&config, name, &value)?;
        }
        config.check_values()?;
        config.check_problem().map_err(|error| with_flag(error, |s| s.code_flag.unwrap_or(s.name).to_owned()))?;
        Ok(config)
    }
}

/// The word for what the paper does to photos, and not to arrays.
pub(crate) const PAPER: &str = "paper";

/// The presets that there are.
const PRESETS: [&str; 1] = [PAPER];

/// The settings of the paper's experiment as one would type them.
fn paper() -> impl Iterator<Item = (&'static str, Value)> {
    let config = Config::paper();
    let size = config.filter_shape.first().copied().unwrap_or_default().to_string();
    let named = |name: &'static str| (name, settings::find(name).map(|s| s.value(&config)).unwrap_or_default());
    let values = ["n_filters", "beta", "passes", "boundary"].map(named);
    values.into_iter().chain([("filter_shape", json!(size)), ("preprocess", json!(PAPER))])
}

/// The same complaint, about the flag.
fn with_flag(error: Error, flag: impl Fn(&Setting) -> String) -> Error {
    match error {
        Error::Invalid { what, expected, found } => {
            let what = settings::find(&what).map_or(what, |setting| format!("--{}", flag(setting)));
            Error::Invalid { what, expected, found }
        }
        other => other,
    }
}

/// The name of a flag's value in what was parsed.
fn id(flag: &str) -> String {
    flag.replace('-', "_")
}

fn learn_settings() -> impl Iterator<Item = &'static Setting> {
    settings::all().filter(|setting| setting.is_in_learn)
}

fn code_settings() -> impl Iterator<Item = (&'static Setting, &'static str)> {
    settings::all().filter_map(|setting| setting.code_flag.map(|flag| (setting, flag)))
}

/// The flag of a setting, without a default.
fn flag(setting: &Setting, name: String) -> Arg {
    let arg = Arg::new(id(&name)).long(name).help(setting.doc());
    match setting.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        _ => {
            // What is wrong with -1 is for the parser to say: it is no option.
            let is_number = !matches!(
                setting.kind,
                Kind::Lengths | Kind::Sizes | Kind::Choice(_) | Kind::Text | Kind::OptionalText
            );
            let arg = arg.value_parser(parser(setting)).allow_negative_numbers(is_number);
            setting.value_name.map_or(arg.clone(), |name| arg.value_name(name))
        }
    }
}

/// The flag of `learn`.
fn learn_flag(setting: &Setting) -> Arg {
    let mut arg = flag(setting, setting.flag_name());
    let inner = [
        Part::Every,
        Part::ActiveSet,
        Part::Sweeps,
        Part::SweepTolerance,
        Part::Lags,
        Part::Filters,
        Part::BaseFilters,
    ];
    let heading = match inner.contains(&setting.part) {
        true => "Model",
        false => "Inner workings of the methods other than ocsc",
    };
    if setting.is_recorded() || setting.name == "beta_ratio" {
        arg = arg.help_heading(heading);
        if !AFTER_RESUME.contains(&setting.name) {
            arg = arg.conflicts_with("resume");
        }
    }
    if setting.name == "beta_ratio" {
        arg = arg.conflicts_with("beta");
    }
    match HELP.iter().find(|(name, _)| *name == setting.name) {
        Some((_, help)) => arg.help(*help),
        None => match typed(&setting.default()) {
            Some(default) if setting.kind != Kind::Switch => {
                arg.help(format!("{} [default: {default}]", setting.doc()))
            }
            _ => arg,
        },
    }
}

/// A default as one would type it.
fn typed(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => number.as_f64().map(|number| number.to_string()),
        Value::String(word) => Some(word.clone()),
        _ => None,
    }
}

/// Reads what was typed, as JSON.
fn parser(setting: &Setting) -> ValueParser {
    let (check, name) = (setting.check, setting.name);
    match setting.kind {
        Kind::Choice(_) if name == "method" => {
            let value = |method: Method| PossibleValue::new(method.name()).help(method.description());
            PossibleValuesParser::new(Method::ALL.map(value)).map(Value::from).into()
        }
        Kind::Choice(words) => PossibleValuesParser::new(words).map(Value::from).into(),
        Kind::Count => ValueParser::new(move |text: &str| count(text, check)),
        Kind::Number | Kind::OptionalNumber => ValueParser::new(move |text: &str| number(text, check)),
        Kind::OptionalCount => ValueParser::new(move |text: &str| count(text, check)),
        Kind::OptionalNumbers => ValueParser::new(weights),
        Kind::OptionalBytes => ValueParser::new(|text: &str| super::value::memory(text).map(|n| json!(n))),
        Kind::NumberOrText => ValueParser::new(move |text: &str| number_or_text(text, name)),
        Kind::Lengths => ValueParser::new(|text: &str| text.parse::<Sizes>().map(|sizes| json!(sizes.to_string()))),
        _ if name == "preprocess" => ValueParser::new(|text: &str| match text {
            "auto" | PAPER => Ok(json!(text)),
            steps => steps.parse::<Preprocess>().map(|_| json!(steps)),
        }),
        _ if name == "penalty" => ValueParser::new(|text: &str| text.parse::<Penalty>().map(|_| json!(text))),
        _ if name == "loss" => ValueParser::new(|text: &str| text.parse::<Loss>().map(|_| json!(text))),
        _ => ValueParser::new(|text: &str| Ok::<Value, Error>(json!(text))),
    }
}

/// Reads weights of filters: a file of numbers, or the words of a rule.
fn weights(text: &str) -> Result<Value> {
    if text.starts_with("inverse:") {
        return Ok(text.parse::<Weights>().map(|_| json!(text))?);
    }
    let (shape, numbers) = numbers(Path::new(text), Limit::default()).map_err(|e| anyhow::anyhow!("{}", told(&e)))?;
    anyhow::ensure!(
        shape.iter().filter(|n| **n != 1).count() <= 1,
        "expected one number per filter, found an array of shape {shape:?}; an array of the code's shape is for \
         --coefficient-weights"
    );
    Ok(json!(numbers))
}

fn count(text: &str, check: Check) -> Result<Value> {
    match text.parse::<u64>() {
        Ok(count) if check.accepts(count as f64) => Ok(json!(count)),
        _ if check == Check::AtLeastOne => anyhow::bail!("expected a whole number of at least 1"),
        _ => anyhow::bail!("expected a whole number from 0 up"),
    }
}

fn number(text: &str, check: Check) -> Result<Value> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && check.accepts(number) => Ok(json!(number)),
        _ => anyhow::bail!("expected {}", check.words()),
    }
}

/// A number where the text is one; what the setting accepts is for the library to say.
fn number_or_text(text: &str, name: &str) -> Result<Value> {
    let value = text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
    match settings::with_value(&Config::default(), name, &value).and_then(|config| config.check_values()) {
        Ok(()) => Ok(value),
        Err(Error::Invalid { expected, .. }) => anyhow::bail!("expected {expected}"),
        Err(error) => Err(error.into()),
    }
}

/// Takes what was parsed for these flags.
fn taken<'a>(matches: &ArgMatches, flags: impl Iterator<Item = (&'a Setting, String)>) -> Values
where
    'static: 'a,
{
    let mut values = Values::new();
    for (setting, name) in flags {
        let id = id(&name);
        if setting.kind == Kind::Switch {
            // A switch that is on by default is switched off by its flag.
            if matches.get_flag(&id) {
                values.insert(setting.name, json!(setting.default() == json!(false)));
            }
        } else if let Some(value) = matches.get_one::<Value>(&id) {
            values.insert(setting.name, value.clone());
        }
    }
    values
}

/// The options of [`ModelArgs`] that were typed, word by word.
fn typed_words(matches: &ArgMatches) -> Vec<String> {
    let others = [("preset", false), ("init", false), ("per-channel", true)];
    let others = others.into_iter().map(|(flag, is_switch)| (flag.to_owned(), is_switch));
    let settings = learn_settings().map(|setting| (setting.flag_name(), setting.kind == Kind::Switch));
    let mut words = Vec::new();
    for (flag, is_switch) in others.chain(settings) {
        let id = id(&flag);
        if matches.value_source(&id) == Some(ValueSource::CommandLine) {
            words.push(format!("--{flag}"));
            let values = matches.get_raw(&id).filter(|_| !is_switch);
            words.extend(values.into_iter().flatten().map(|value| value.to_string_lossy().into_owned()));
        }
    }
    words
}

impl Args for ModelArgs {
    fn augment_args(command: Command) -> Command {
        let init = Arg::new("init").long("init").value_name("INIT").help_heading("Model").conflicts_with("resume").help(
            "Initial dictionary: random, patches (of the data), a model, or a .npy file of shape (K, C, axes...) or (K, axes...) [default: \
             random]",
        );
        let preset =
            Arg::new("preset").long("preset").value_name("NAME").help_heading("Model").conflicts_with("resume");
        let preset = preset.value_parser(PossibleValuesParser::new(PRESETS)).help(
            "paper: the paper's experiment as a whole, gray,lcn,taper for photos, circular, 100 filters of 11x11, beta 1, one \
             pass; other options beside it count instead",
        );
        let per_channel = Arg::new("per_channel").long("per-channel").help_heading("Model").action(ArgAction::SetTrue);
        let per_channel = per_channel.conflicts_with_all(["resume", "preset"]).help(
            "Gray filters on every channel by itself: the step per-channel after those of --preprocess, which by default keep the \
             colours of photos then (lowpass,scale). The first axis of codes is the channel",
        );
        command.args(learn_settings().map(learn_flag)).args([init, preset, per_channel])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ModelArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = taken(matches, learn_settings().map(|setting| (setting, setting.flag_name())));
        // A resumed run has the beta that it began with.
        let is_new = matches.get_one::<PathBuf>("resume").is_none();
        let says_beta = values.contains_key("beta") || values.contains_key("beta_ratio");
        let preset = matches.get_one::<String>("preset").is_some();
        if preset {
            for (name, value) in paper() {
                values.entry(name).or_insert(value);
            }
        }
        if matches.get_flag("per_channel") {
            let steps = match values.get("preprocess").and_then(Value::as_str).unwrap_or("auto") {
                "none" => "per-channel".to_owned(),
                steps if steps.ends_with("per-channel") => steps.to_owned(),
                steps => format!("{steps},per-channel"),
            };
            values.insert("preprocess", json!(steps));
        }
        let beta_is_open = is_new && !says_beta && !preset;
        let init = matches.get_one::<String>("init").map_or("random", |init| init).to_owned();
        Ok(ModelArgs { values, init, beta_is_open, is_preset: preset, typed: typed_words(matches) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for CodeArgs {
    fn augment_args(command: Command) -> Command {
        let model = |(setting, name): (&'static Setting, &str)| {
            let default = match setting.name {
                "tol" => "0.01 for code, 0.003 for evaluate",
                "sample_time_limit" | "beta_ratio" => "none",
                _ => "the model's",
            };
            let arg = flag(setting, name.to_owned()).help(format!("{} [default: {default}]", setting.doc()));
            if setting.name == "beta_ratio" { arg.conflicts_with("beta") } else { arg }
        };
        command.args(code_settings().map(model))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CodeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(CodeArgs { values: taken(matches, code_settings().map(|(setting, flag)| (setting, flag.to_owned()))) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
