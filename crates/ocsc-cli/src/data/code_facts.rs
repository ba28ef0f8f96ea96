//! What a file of a code says besides its non-zeros: what it stands for, and what it was made with.
//!
//! | member | type, shape | what |
//! |---|---|---|
//! | `objective`, `gap`, `beta` | f64 | the objective, its relative duality gap, the weight of the l1 norm |
//! | `sample_shape` | i64, (1 + axes) | channels and spatial axes of the sample |
//! | `model` | text | the checksum of the dictionary, see `ocsc::Dictionary::checksum` |
//! | `source` | text | the sample as messages call it: its path, and its number where a file holds several |
//! | `preprocess` | text | what was done to the sample |
//! | `boundary` | text | what lies outside of it |
//! | `masked` | bool | whether parts of it were unobserved |
//! | `sha256` | text | the checksum of all of the above and of the non-zeros, by which `ocsc verify` finds later changes |
//!
//! Texts are what `numpy.load(path)["source"].item()` returns as `str`, without pickle.

use super::codes::integers;
use super::npy;
use super::npz::Npz;
use crate::memory::Limit;
use anyhow::{Result, ensure};
use ocsc::{Code, Real};
use sha2::{Digest, Sha256};

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
    pub(crate) preprocess: Option<String>,
    pub(crate) boundary: Option<String>,
    pub(crate) masked: Option<bool>,
}

impl Facts {
    fn numbers(&self) -> [(&'static str, Option<f64>); 3] {
        [("objective", self.objective), ("gap", self.gap), ("beta", self.beta)]
    }

    fn texts(&self) -> [(&'static str, Option<&String>); 4] {
        let (model, source) = (self.model.as_ref(), self.source.as_ref());
        let (preprocess, boundary) = (self.preprocess.as_ref(), self.boundary.as_ref());
        [("model", model), ("source", source), ("preprocess", preprocess), ("boundary", boundary)]
    }

    /// All that is known, as the members of an archive.
    pub(super) fn arrays(&self) -> Vec<(&'static str, Vec<u8>)> {
        let number = |(name, number): (_, Option<f64>)| {
            number.map(|number| (name, npy::encode("<f8", &[], &number.to_le_bytes())))
        };
        let mut arrays: Vec<_> = self.numbers().into_iter().filter_map(number).collect();
        arrays.extend(self.sample_shape.as_ref().map(|shape| {
            let bytes: Vec<u8> = shape.iter().flat_map(|n| (*n as i64).to_le_bytes()).collect();
            ("sample_shape", npy::encode("<i8", &[shape.len()], &bytes))
        }));
        let text = |(name, text): (_, Option<&String>)| text.map(|text| (name, npy::encode_text(text)));
        arrays.extend(self.texts().into_iter().filter_map(text));
        arrays.extend(self.masked.map(|masked| ("masked", npy::encode("|b1", &[], &[u8::from(masked)]))));
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
        let masked = number("masked")?.map(|flag| flag != 0.0);
        let sample_shape = match has("sample_shape") {
            true => {
                let shape = archive.array("sample_shape")?;
                let axes = shape.shape();
                ensure!(
                    matches!(axes, [2..=4]),
                    "`sample_shape` has shape {axes:?}; expected channels and 1 to 3 axes"
                );
                Some(integers("sample_shape", &shape, limit)?)
            }
            false => None,
        };
        let mut text = |name: &str| archive.text(name, LONGEST);
        let (model, source) = (text("model")?, text("source")?);
        let (preprocess, boundary) = (text("preprocess")?, text("boundary")?);
        Ok(Facts { objective, gap, beta, sample_shape, model, source, preprocess, boundary, masked })
    }

    /// Says in what a code was made otherwise than `wanted`; none if nothing differs that both say.
    pub(crate) fn difference(&self, wanted: &Facts) -> Option<String> {
        let with = |facts: &Facts| {
            let masked = facts.masked.map(|masked| if masked { "given" } else { "not given" }.to_owned());
            let beta = facts.beta.map(|beta| beta.to_string());
            let (model, preprocess, boundary) = (facts.model.clone(), facts.preprocess.clone(), facts.boundary.clone());
            [
                ("dictionary", model),
                ("beta", beta),
                ("preprocess", preprocess),
                ("boundary", boundary),
                ("mask", masked),
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
    pub(crate) fn checksum<T: Real>(&self, code: &Code<T>) -> String {
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
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
