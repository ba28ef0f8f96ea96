//! What a run learns from, in a few lines that do not grow with the data: so that a resumed run can tell whether it is given
//! the same samples, and if not, say what differs.
//!
//! A sample is known by its name relative to the folder that was named and the bytes of its file; the first ones and the last
//! also by their size, where it could be read both times. Not by the time of its file or the folder's own path: data that were
//! moved, copied or downloaded again are the same. Nor by content: that would read everything, and files that change keep
//! their length to the byte rarely.

use crate::digest::hex;
use crate::text::counted;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// This many samples from the first on are known by name.
const NAMED: usize = 8;
/// Digits of the checksums of parts of a list.
const DIGITS: usize = 16;

/// Says what a run learns from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The options that change what samples are, by name.
    pub options: BTreeMap<String, String>,
    /// The options that choose among samples, by name. They are told and not compared: the samples are.
    pub choices: BTreeMap<String, String>,
    /// The samples; none of a stream, which has neither names nor an end.
    pub samples: Option<SampleList>,
}

/// Describes a list of samples, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleList {
    /// How many there are.
    pub count: usize,
    /// The first ones, and the last.
    pub first: Vec<SampleId>,
    /// The last one.
    pub last: Option<SampleId>,
    /// The first digits of the SHA-256 of the first 1, 2, 4, 8 ... samples: they tell where two lists part.
    pub parts: Vec<String>,
    /// The SHA-256 of all.
    pub all: String,
}

/// Says what a sample is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleId {
    /// Its name, relative to the folder that was named.
    pub name: String,
    /// The length of its file in bytes.
    pub bytes: u64,
    /// Depth, height and width; zeros if it cannot be read.
    pub size: [u32; 3],
}

impl fmt::Display for SampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [depth, height, width] = self.size;
        match (depth, height) {
            (0, _) => write!(f, "{} (unreadable, {} bytes)", self.name, self.bytes),
            (1, 1) => write!(f, "{} ({width} values, {} bytes)", self.name, self.bytes),
            (1, _) => write!(f, "{} ({height}x{width}, {} bytes)", self.name, self.bytes),
            _ => write!(f, "{} ({depth}x{height}x{width}, {} bytes)", self.name, self.bytes),
        }
    }
}

impl SampleId {
    /// Returns whether these are the same, as far as it is known: a size that a failing disk hid says nothing.
    fn is_like(&self, other: &Self) -> bool {
        let unknown = self.size == [0; 3] || other.size == [0; 3];
        self.name == other.name && self.bytes == other.bytes && (unknown || self.size == other.size)
    }
}

impl SampleList {
    /// Makes the list of these samples; of each, no more than its part of the checksum is kept.
    pub fn of(samples: impl Iterator<Item = SampleId>) -> Self {
        let mut list = SampleList::default();
        let mut hash = Sha256::new();
        for sample in samples {
            hash.update((sample.name.len() as u64).to_le_bytes());
            hash.update(sample.name.as_bytes());
            hash.update(sample.bytes.to_le_bytes());
            list.count += 1;
            if list.count.is_power_of_two() {
                list.parts.push(hex(&hash.clone().finalize())[..DIGITS].to_owned());
            }
            if list.first.len() < NAMED {
                list.first.push(sample.clone());
            }
            list.last = Some(sample);
        }
        list.all = hex(&hash.finalize());
        list
    }

    /// Says where another list differs first.
    fn difference(&self, now: &Self) -> Option<String> {
        let mut named = self.first.iter().zip(&now.first).enumerate();
        if let Some((i, (was, is))) = named.find(|(_, (was, is))| !was.is_like(is)) {
            return Some(format!("sample {} was {was}, now {is}", i + 1));
        }
        if self.count == now.count && self.all == now.all {
            return None;
        }
        let shared = self.parts.iter().zip(&now.parts).take_while(|(was, is)| was == is).count();
        let (same, next) = (1_usize << shared.saturating_sub(1), 1_usize << shared);
        let end = self.count.min(now.count);
        if self.count != now.count && shared == self.parts.len().min(now.parts.len()) {
            let first = if same == 1 { "first sample is".to_owned() } else { format!("first {same} samples are") };
            return Some(format!("the {first} the same, and not all of the others"));
        }
        let last = match (&self.last, &now.last) {
            (Some(was), Some(is)) if !was.is_like(is) => format!("; the last was {was}, now {is}"),
            _ => String::new(),
        };
        let end = end.min(next);
        Some(format!("among samples {} to {end} a name, a size or the order differs{last}", same + 1))
    }
}

impl Fingerprint {
    /// Says what differs in what a run is given now; none if it can go on as if it had not been interrupted.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let mut found = changed(&self.options, &now.options);
        let samples = match (&self.samples, &now.samples) {
            (Some(was), Some(is)) => was.difference(is),
            (Some(was), None) => {
                Some(format!("it was learned from a set of {}, and these are a stream", counted(was.count, "sample")))
            }
            (None, Some(is)) => {
                Some(format!("it was learned from a stream, and these are a set of {}", counted(is.count, "sample")))
            }
            (None, None) => None,
        };
        if let Some(samples) = samples {
            if let (Some(was), Some(is)) = (&self.samples, &now.samples)
                && was.count != is.count
            {
                let was = counted(was.count, "sample");
                found.push(format!("expected the {was} that it was learned from, found {}", is.count));
            }
            found.extend(changed(&self.choices, &now.choices));
            found.push(samples);
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Returns whether the samples differ, in whatever way.
    pub fn has_other_samples(&self, now: &Self) -> bool {
        match (&self.samples, &now.samples) {
            (Some(was), Some(is)) => was.difference(is).is_some(),
            (was, is) => was.is_some() != is.is_some(),
        }
    }
}

/// The options that changed, one by one.
fn changed(was: &BTreeMap<String, String>, is: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let value = |options: &BTreeMap<String, String>, name: &String| options.get(name).cloned();
    let show =
        |value: Option<String>| value.map_or("not given".to_owned(), |v| if v.is_empty() { "given".into() } else { v });
    let differing = names.into_iter().filter(|name| value(was, name) != value(is, name));
    differing.map(|name| format!("--{name} was {}, now {}", show(value(was, name)), show(value(is, name)))).collect()
}
