//! The flags of settings, made from their declarations in the library.

use super::value::Size;
use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use ocsc::preprocess::{Preprocess, Step};
use ocsc::setting::{Check, Part};
use ocsc::settings::{self, Boundary, Kind, RunConfig, Setting};
use ocsc::{Config, Error, Method};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Values of settings by name.
type Values = BTreeMap<&'static str, Value>;

/// The settings of `learn`: what the command line says of them. The others have their defaults.
#[derive(Clone, Debug)]
pub(crate) struct ModelArgs {
    values: Values,
    /// `--init`: random, patches, or a file.
    pub(crate) init: String,
}

/// The settings of `code` and `evaluate`, instead of the model's.
#[derive(Clone, Debug)]
pub(crate) struct CodeArgs {
    values: Values,
}

/// What the program says of a setting instead of its declaration, because a flag means more here than a value does.
const HELP: &[(&str, &str)] = &[
    ("filter_shape", "Filter size: 11 (on every axis), 11x11, 5x11x11 [default: 11]"),
    (
        "boundary",
        "What lies outside a sample [default: circular for arrays, for images with edge taper and for all methods but ocsc; free \
         for other images and for recordings]",
    ),
    (
        "preprocess",
        "auto (gray,lcn,taper for image files, none for arrays), none, or steps such as lowpass=5,scale, each at most once: gray \
         (first), mean, scale (by the standard deviation) or scale=NUMBER, lowpass=LAMBDA (minus the smooth part), whiten=ORDER \
         (signals), lcn (local contrast), taper (last) [default: auto]",
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
        let typed = self.values.get("filter_shape").and_then(Value::as_str).unwrap_or("11");
        typed.parse::<Size>()?.axes(rank)
    }

    /// Returns the settings of the run.
    pub(crate) fn run(&self) -> RunConfig {
        let named = |name: &str| self.values.get(name);
        RunConfig {
            beta_ratio: named("beta_ratio").and_then(Value::as_f64),
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
        let method: Method = values.get("method").and_then(Value::as_str).map_or(Ok(Method::default()), str::parse)?;
        let tapered = preprocess.steps().contains(&Step::Taper);
        let circular = seamless || tapered || !method.takes_boundary(Boundary::Free);
        values.entry("boundary").or_insert_with(|| json!(if circular { Boundary::Circular } else { Boundary::Free }));
        values.insert("filter_shape", json!(self.filter_shape(rank)?));
        values.insert("preprocess", serde_json::to_value(preprocess)?);
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value));
        Ok(settings::configure(values).map_err(|error| with_flag(error, Setting::flag_name))?)
    }
}

impl CodeArgs {
    /// Returns the tolerance, if it was given.
    pub(crate) fn tol(&self) -> Option<f64> {
        self.values.get("tol").and_then(Value::as_f64)
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
        Ok(config)
    }
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
            let arg = arg.value_parser(parser(setting));
            setting.value_name.map_or(arg.clone(), |name| arg.value_name(name))
        }
    }
}

/// The flag of `learn`.
fn learn_flag(setting: &Setting) -> Arg {
    let mut arg = flag(setting, setting.flag_name());
    let inner = [Part::Every, Part::ActiveSet, Part::Sweeps, Part::Lags];
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
        Kind::OptionalBytes => ValueParser::new(|text: &str| super::value::memory(text).map(|n| json!(n))),
        Kind::Lengths => ValueParser::new(|text: &str| text.parse::<Size>().map(|size| json!(size.to_string()))),
        _ if name == "preprocess" => ValueParser::new(|text: &str| match text {
            "auto" => Ok(json!(text)),
            steps => steps.parse::<Preprocess>().map(|_| json!(steps)),
        }),
        _ => ValueParser::new(|text: &str| Ok::<Value, Error>(json!(text))),
    }
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

impl Args for ModelArgs {
    fn augment_args(command: Command) -> Command {
        let init = Arg::new("init").long("init").value_name("INIT").help_heading("Model").conflicts_with("resume").help(
            "Initial dictionary: random, patches (of the data), or a .npy file of shape (K, C, axes...) or (K, axes...) [default: \
             random]",
        );
        command.args(learn_settings().map(learn_flag)).arg(init)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ModelArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = taken(matches, learn_settings().map(|setting| (setting, setting.flag_name())));
        let init = matches.get_one::<String>("init").map_or("random", |init| init).to_owned();
        Ok(ModelArgs { values, init })
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
                "sample_time_limit" => "none",
                _ => "the model's",
            };
            flag(setting, name.to_owned()).help(format!("{} [default: {default}]", setting.doc()))
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
