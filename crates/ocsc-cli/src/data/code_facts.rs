//! What a file of a code says besides its non-zeros: what it stands for, and what it was made with.
//!
//! | member | type, shape | what |
//! |---|---|---|
//! | `objective`, `gap`, `beta` | f64 | the objective, its relative duality gap, the weight of the l1 norm |
//! | `sample_shape` | i64, (1 + axes) | channels and spatial axes of the sample |
//! | `model` | text | the checksum of the dictionary, see `ocsc::Dictionary::checksum` |
//! | `source` | text | the sample as messages call it: its path, and its number where a file holds several |
//! | `recording`, `start` | text, f64 | of a window of a recording: its file name without ending, and where the window begins |
//! | `rate` | f64 | of a recording: values per second |
//! | `energy` | f64 | the sum of the squares of the sample's values, after preprocessing |
//! | `whole`, `place` | text, i64 (3) | what the sample was cut from, as messages call it, and where it begins there: depth, height, width |
//! | `order` | i64 | the number of that among all that the call coded |
//! | `preprocess` | text | what was done to the sample |
//! | `boundary` | text | what lies outside of it |
//! | `problem` | text | JSON of the penalty, loss, weights, coder and refit that are not the plain ones; absent if all are |
//! | `masked` | bool | whether parts of it were unobserved |
//! | `sha256` | text | the checksum of all of the above and of the non-zeros, by which `ocsc verify` finds later changes |
//!
//! Texts are what `numpy.load(path)["source"].item()` returns as `str`, without pickle.

use super::codes::integers;
use super::npy;
use super::npz::Npz;
use crate::memory::Limit;
use anyhow::{Context, Result, ensure};
use ocsc::{Code, Config, Mixing, Real, settings};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// No path is longer.
const LONGEST: usize = 1 << 16;

/// What a file says of its code.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) objective: Option<f64>,
    pub(crate) gap: Option<f64>,
    pub(crate) beta: Option<f64>,
    pub(crate) sample_shape: Option<Vec<usize>>,
    pub(crate) model: Option<String>,
    pub(crate) source: Option<String>,
    /// The recording that the sample is a window of, where it begins there, and values per second.
    pub(crate) recording: Option<String>,
    pub(crate) start: Option<f64>,
    pub(crate) rate: Option<f64>,
    pub(crate) preprocess: Option<String>,
    pub(crate) boundary: Option<String>,
    pub(crate) problem: Option<String>,
    pub(crate) masked: Option<bool>,
    /// ||x||^2.
    pub(crate) energy: Option<f64>,
    /// What the sample was cut from, where it begins there, and the number of that in the data.
    pub(crate) whole: Option<String>,
    pub(crate) place: Option<[usize; 3]>,
    pub(crate) order: Option<usize>,
}

/// The settings that make a problem another one than the plain one.
const PROBLEM: [&str; 5] = ["penalty", "loss", "weights", "coder", "refit"];

/// Returns what `problem` says of settings: those of [`PROBLEM`] that are not their defaults, or none.
pub(crate) fn problem(config: &Config) -> Option<String> {
    let all = PROBLEM.into_iter().filter_map(settings::find);
    let changed =
        all.map(|setting| (setting, setting.value(config))).filter(|(setting, value)| *value != setting.default());
    let changed: BTreeMap<&str, Value> = changed.map(|(setting, value)| (setting.name, value)).collect();
    (!changed.is_empty()).then(|| serde_json::to_string(&changed).unwrap_or_default())
}

/// Returns the settings with the problem that a code was made for.
pub(crate) fn with_problem(config: &Config, problem: Option<&str>) -> Result<Config> {
    let said: BTreeMap<String, Value> =
        serde_json::from_str(problem.unwrap_or("{}")).context("`problem`: expected JSON")?;
    let mut config = config.clone();
    for setting in PROBLEM.into_iter().filter_map(settings::find) {
        let value = said.get(setting.name).cloned().unwrap_or_else(|| setting.default());
        config = settings::with_value(&config, setting.name, &value)?;
    }
    Ok(config)
}

/// The bytes of numbers as numpy's `<i8`.
fn integer_bytes(numbers: &[usize]) -> Vec<u8> {
    numbers.iter().flat_map(|n| (*n as i64).to_le_bytes()).collect()
}

impl Facts {
    fn numbers(&self) -> [(&'static str, Option<f64>); 5] {
        let (start, rate) = (("start", self.start), ("rate", self.rate));
        [("objective", self.objective), ("gap", self.gap), ("beta", self.beta), start, rate]
    }

    fn texts(&self) -> [(&'static str, Option<&String>); 5] {
        let (model, source, recording) = (self.model.as_ref(), self.source.as_ref(), self.recording.as_ref());
        let (preprocess, boundary) = (self.preprocess.as_ref(), self.boundary.as_ref());
        let recording = ("recording", recording);
        [("model", model), ("source", source), recording, ("preprocess", preprocess), ("boundary", boundary)]
    }

    /// All that is known, as the members of an archive.
    pub(super) fn arrays(&self) -> Vec<(&'static str, Vec<u8>)> {
        let number = |(name, number): (_, Option<f64>)| {
            number.map(|number| (name, npy::encode("<f8", &[], &number.to_le_bytes())))
        };
        let mut arrays: Vec<_> = self.numbers().into_iter().filter_map(number).collect();
        arrays.extend(
            self.sample_shape
                .as_ref()
                .map(|shape| ("sample_shape", npy::encode("<i8", &[shape.len()], &integer_bytes(shape)))),
        );
        let text = |(name, text): (_, Option<&String>)| text.map(|text| (name, npy::encode_text(text)));
        arrays.extend(self.texts().into_iter().filter_map(text));
        arrays.extend(text(("problem", self.problem.as_ref())));
        arrays.extend(self.masked.map(|masked| ("masked", npy::encode("|b1", &[], &[u8::from(masked)]))));
        arrays.extend(number(("energy", self.energy)));
        arrays.extend(text(("whole", self.whole.as_ref())));
        arrays.extend(self.place.map(|place| ("place", npy::encode("<i8", &[3], &integer_bytes(&place)))));
        arrays.extend(self.order.map(|order| ("order", npy::encode("<i8", &[], &integer_bytes(&[order])))));
        arrays
    }

    /// What an archive says.
    pub(super) fn read(archive: &mut Npz<'_>) -> Result<Self> {
        let limit = Limit::default();
        let names = archive.names();
        let has = |name: &str| names.iter().any(|n| n == name);
        let mut number = |name: &str| -> Result<Option<f64>> {
            if !has(name) {
                return Ok(None);
            }
            let array = archive.array(name)?;
            ensure!(array.shape().iter().all(|n| *n == 1), "`{name}` has many values; expected one");
            Ok(array.values(limit)?.first().copied())
        };
        let (objective, gap, beta) = (number("objective")?, number("gap")?, number("beta")?);
        let (start, rate) = (number("start")?, number("rate")?);
        let masked = number("masked")?.map(|flag| flag != 0.0);
        let energy = number("energy")?;
        let mut whole_numbers =
            |name: &str, lengths: RangeInclusive<usize>, what: &str| -> Result<Option<Vec<usize>>> {
                if !has(name) {
                    return Ok(None);
                }
                let array = archive.array(name)?;
                let found = array.shape();
                let n = found.iter().product::<usize>();
                ensure!(found.len() <= 1 && lengths.contains(&n), "`{name}` has shape {found:?}; expected {what}");
                integers(name, &array, limit).map(Some)
            };
        let sample_shape = whole_numbers("sample_shape", 2..=4, "channels and 1 to 3 axes")?;
        let place = whole_numbers("place", 3..=3, "3 numbers")?;
        let place = place.and_then(|place| <[usize; 3]>::try_from(place).ok());
        let order = whole_numbers("order", 1..=1, "one number")?.and_then(|order| order.first().copied());
        let mut text = |name: &str| archive.text(name, LONGEST);
        let (model, source, recording) = (text("model")?, text("source")?, text("recording")?);
        let (preprocess, boundary, problem) = (text("preprocess")?, text("boundary")?, text("problem")?);
        let whole = text("whole")?;
        Ok(Facts {
            objective,
            gap,
            beta,
            sample_shape,
            model,
            source,
            recording,
            start,
            rate,
            preprocess,
            boundary,
            problem,
            masked,
            energy,
            whole,
            place,
            order,
        })
    }

    /// Says in what a code was made otherwise than `wanted`; none if nothing differs that both say.
    pub(crate) fn difference(&self, wanted: &Facts) -> Option<String> {
        let with = |facts: &Facts| {
            let problem = facts.problem.clone().unwrap_or_else(|| "plain".to_owned());
            let masked = facts.masked.map(|masked| if masked { "given" } else { "not given" }.to_owned());
            let beta = facts.beta.map(|beta| beta.to_string());
            let rate = facts.rate.map(|rate| rate.to_string());
            let numbers = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>();
            let size = facts.sample_shape.as_ref().map(|shape| numbers(shape).join("x"));
            let place = facts.place.map(|place| numbers(&place).join(","));
            let (model, preprocess, boundary) = (facts.model.clone(), facts.preprocess.clone(), facts.boundary.clone());
            [
                ("dictionary", model),
                ("beta", beta),
                ("preprocess", preprocess),
                ("boundary", boundary),
                ("mask", masked),
                ("problem", Some(problem)),
                ("source", facts.source.clone()),
                ("rate", rate),
                ("place", place),
                ("sample_shape", size),
            ]
        };
        let differing = with(wanted).into_iter().zip(with(self)).find_map(|((name, wanted), (_, found))| {
            wanted.zip(found).filter(|(wanted, found)| wanted != found).map(|(wanted, found)| (name, wanted, found))
        });
        // Of checksums the first digits do.
        let short = |name: &str, value: String| match name {
            "dictionary" => value.chars().take(8).chain("...".chars()).collect(),
            _ => value,
        };
        differing.map(|(name, wanted, found)| {
            format!("expected a code with {name} {}, found {}", short(name, wanted), short(name, found))
        })
    }

    /// The checksum of a code and of what is said of it, whatever wrote the file.
    pub(crate) fn checksum<T: Real>(&self, code: &Code<T>, mixing: Option<&Mixing>) -> String {
        let mut hash = Sha256::new();
        let mut words = |values: &[u64]| values.iter().for_each(|v| hash.update(v.to_le_bytes()));
        words(&[code.n_filters() as u64, code.nonzeros() as u64]);
        words(&code.shape().map(|n| n as u64));
        for atom in code.atoms() {
            words(&[u64::from(atom.filter), u64::from(atom.position), atom.value.f64().to_bits()]);
        }
        self.numbers().iter().for_each(|(_, n)| words(&[u64::from(n.is_some()), n.unwrap_or(0.0).to_bits()]));
        words(&[self.masked.map_or(2, u64::from)]);
        let shape: Vec<u64> = self.sample_shape.iter().flatten().map(|n| *n as u64).collect();
        words(&[shape.len() as u64]);
        words(&shape);
        for (_, text) in self.texts() {
            let text = text.map_or("", |text| text);
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        }
        // What follows is left out where it is absent, so that earlier files keep their checksums.
        self.problem.iter().for_each(|problem| hash.update(problem.as_bytes()));
        if let Some(mixing) = mixing {
            mixing.base().iter().for_each(|b| hash.update((*b as u64).to_le_bytes()));
            mixing.weights().iter().for_each(|w| hash.update(w.to_le_bytes()));
        }
        if let Some(energy) = self.energy {
            hash.update(energy.to_le_bytes());
        }
        self.whole.iter().for_each(|whole| hash.update(whole.as_bytes()));
        for n in self.place.iter().flatten().chain(&self.order) {
            hash.update((*n as u64).to_le_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
