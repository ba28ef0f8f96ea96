//! Translates settings between Python and the library, and lists what there is to choose from.

use crate::error::exception;
use ocsc::preprocess::Preprocess;
use ocsc::settings::{self, configure};
use ocsc::{Axes, Config, Error, Method};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use serde_json::{Number, Value};

/// Returns the configuration in which the named settings have these values.
pub(crate) fn config(values: &Bound<'_, PyDict>) -> PyResult<Config> {
    let mut named = Vec::new();
    for (name, value) in values {
        let name: String = name.extract()?;
        let value = match value.cast::<PyString>() {
            Ok(steps) if name == "preprocess" => {
                let steps: Preprocess = steps.to_str()?.parse().map_err(exception)?;
                serde_json::to_value(steps).unwrap_or_default()
            }
            _ => json(&name, &value)?,
        };
        named.push((name, value));
    }
    configure(named.clone()).map_err(|error| exception(in_words(error, &named, values)))
}

/// Rewrites an error that quotes JSON in Python's words.
fn in_words(error: Error, named: &[(String, Value)], values: &Bound<'_, PyDict>) -> Error {
    let Error::Invalid { what, expected, found } = error else { return error };
    let text = |value: &Value| value.to_string();
    let same = named.iter().find(|(name, value)| *name == what && text(value) == found);
    let given = same.and_then(|(name, _)| values.get_item(name).ok().flatten()).and_then(|value| value.repr().ok());
    let found = given.map_or(found, |repr| repr.to_string());
    let setting = settings::find(&what);
    let expected = match (expected.as_str(), setting.map(settings::Setting::default)) {
        ("true or false", _) => "True or False".to_owned(),
        ("string or map", Some(Value::String(word))) => format!("a word such as '{word}'"),
        ("a sequence", Some(Value::Array(_))) if what == "preprocess" => {
            "'none', or steps such as 'mean,scale'".to_owned()
        }
        // The default is the one value that a method takes which does not obey the setting.
        (_, Some(default)) => {
            let rest = expected.strip_prefix(&text(&default)).filter(|rest| rest.starts_with(" with "));
            let repr = python(values.py(), &default).and_then(|default| default.repr());
            rest.zip(repr.ok()).map_or(expected.clone(), |(rest, repr)| format!("{repr}{rest}"))
        }
        _ => expected,
    };
    Error::Invalid { what, expected, found }
}

/// Returns a Python value as JSON; refuses what is neither a number, a word nor a list of either.
fn json(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_string()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || value.hasattr("tolist")? {
        let list = if value.hasattr("tolist")? { value.call_method0("tolist")? } else { value.clone() };
        // A numpy scalar becomes a number, not a list.
        if !(list.is_instance_of::<PyList>() || list.is_instance_of::<PyTuple>()) {
            return json(name, &list);
        }
        return list.try_iter()?.map(|item| json(name, &item?)).collect::<PyResult<_>>().map(Value::Array);
    }
    let number = match value.extract::<i64>() {
        Ok(whole) if !value.is_instance_of::<PyFloat>() => Some(Number::from(whole)),
        _ => match value.extract::<u64>() {
            Ok(whole) if !value.is_instance_of::<PyFloat>() => Some(Number::from(whole)),
            _ => value.extract::<f64>().ok().and_then(Number::from_f64),
        },
    };
    let wrong = || {
        let found = value.repr().map_or_else(|_| "something else".to_owned(), |r| r.to_string());
        match value.extract::<f64>() {
            Ok(_) => PyValueError::new_err(format!("{name}: expected a finite number, found {found}")),
            Err(_) => PyTypeError::new_err(format!(
                "{name}: expected a finite number, a word or a list of either, found {found}"
            )),
        }
    };
    number.map(Value::Number).ok_or_else(wrong)
}

/// Returns a JSON value as a Python value.
fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null | Value::Object(_) => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), _, _) => whole.into_pyobject(py)?.into_any(),
            (_, Some(whole), _) => whole.into_pyobject(py)?.into_any(),
            (_, _, fraction) => fraction.unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let items: PyResult<Vec<_>> = items.iter().map(|item| python(py, item)).collect();
            PyTuple::new(py, items?)?.into_any()
        }
    })
}

/// Returns the value of a setting in `config`, as the constructor takes it; `None` for a setting of a run.
fn value<'py>(py: Python<'py>, setting: &settings::Setting, config: &Config) -> PyResult<Bound<'py, PyAny>> {
    match setting.name {
        // As it is written everywhere but in JSON.
        "preprocess" => Ok(config.preprocess.to_string().into_pyobject(py)?.into_any()),
        _ => python(py, &setting.value(config)),
    }
}

/// Returns the settings of `config` by name, as the constructor takes them.
pub(crate) fn named<'py>(py: Python<'py>, config: &Config) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    for setting in settings::all().filter(|setting| setting.is_recorded() && setting.is_in_python) {
        named.set_item(setting.name, value(py, setting, config)?)?;
    }
    Ok(named)
}

/// Checks the letters of axes, and returns them in capitals.
#[pyfunction(name = "axes")]
pub(crate) fn check_axes(text: &Bound<'_, PyAny>) -> PyResult<String> {
    let Ok(letters) = text.extract::<String>() else {
        return Err(PyTypeError::new_err(format!("axes: expected letters such as 'NHWC', found {}", text.repr()?)));
    };
    letters.parse::<Axes>().map(|axes| axes.to_string()).map_err(exception)
}

/// A setting as it was declared in the library.
#[pyclass(frozen, get_all, module = "ocsc._native")]
pub(crate) struct Setting {
    name: &'static str,
    /// What it does, without the last full stop.
    doc: &'static str,
    /// What its values are like: `switch`, `count`, `number` and so on.
    kind: &'static str,
    /// The words to choose from, if its kind is `choice`.
    choices: Vec<&'static str>,
    default: Py<PyAny>,
    /// The methods that obey it.
    methods: Vec<&'static str>,
    /// Whether model files hold it.
    is_recorded: bool,
    /// Whether the estimator has a parameter for it.
    is_parameter: bool,
    /// Whether coding heeds a change after learning.
    is_in_coding: bool,
    /// Whether learning heeds a change from the next step on.
    is_in_learning: bool,
    /// Whether learning cannot go on after a change.
    ends_learning: bool,
    /// The flag of the program's `learn`, without dashes.
    learn_flag: Option<String>,
    /// The flag of the program's `code` and `evaluate`, without dashes.
    code_flag: Option<&'static str>,
}

impl Setting {
    fn new(py: Python<'_>, declared: &settings::Setting) -> PyResult<Self> {
        let obeying = Method::ALL.into_iter().filter(|method| method.obeys(declared.part));
        Ok(Setting {
            name: declared.name,
            doc: declared.doc(),
            kind: declared.kind.name(),
            choices: declared.kind.choices().to_vec(),
            default: value(py, declared, &Config::default())?.unbind(),
            methods: obeying.map(Method::name).collect(),
            is_recorded: declared.is_recorded(),
            is_parameter: declared.is_in_python,
            is_in_coding: declared.effect.is_in_coding(),
            is_in_learning: declared.effect.is_in_learning(),
            ends_learning: declared.effect.ends_learning(),
            learn_flag: declared.is_in_learn.then(|| declared.flag_name()),
            code_flag: declared.code_flag,
        })
    }
}

/// Returns all settings, in the library's order.
#[pyfunction(name = "settings")]
pub(crate) fn list_settings(py: Python<'_>) -> PyResult<Vec<Setting>> {
    settings::all().map(|declared| Setting::new(py, declared)).collect()
}

/// Returns the name and the description of every method.
#[pyfunction]
pub(crate) fn methods() -> Vec<(&'static str, &'static str)> {
    Method::ALL.iter().map(|method| (method.name(), method.description())).collect()
}

/// Returns the methods that keep all samples and update once per pass.
#[pyfunction]
pub(crate) fn batch_methods() -> Vec<&'static str> {
    Method::ALL.iter().filter(|method| method.is_batch()).map(|method| method.name()).collect()
}

/// Returns the version of the package.
#[pyfunction]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
