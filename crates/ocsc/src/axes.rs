//! What the axes of an array mean, written in letters: NHW, CDHW, W. T is time: the W of signals, NCT, and the D of video, THW.

use crate::setting::{HasKind, Kind};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Every letter, in the order in which an image library would write them.
const LETTERS: &str = "NCDHW";

/// Says the meaning of each axis of an array, first to last: samples, channels, depth, height, width.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Axes(String);

impl TryFrom<String> for Axes {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for Axes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let letters = text.trim().to_ascii_uppercase();
        let letters = letters.replace('T', if letters.contains('W') { "D" } else { "W" });
        let help = "letters of N (samples), C (channels), D (depth), H (height), W (width), each at most once, \
                    in the order of the array's axes, e.g. NHW or NCHW; T (time) is W, or D where there is a W";
        let refuse = |why: String| Err(Error::invalid(format!("axes `{text}`"), help, why));
        for (i, letter) in letters.char_indices() {
            if !LETTERS.contains(letter) {
                return refuse(format!("`{letter}`, which is not an axis"));
            }
            if letters[..i].contains(letter) {
                return refuse(format!("`{letter}`, which occurs twice"));
            }
        }
        if letters.contains('W') { Ok(Axes(letters)) } else { refuse("no W".to_owned()) }
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Axes {
    /// Returns how many axes there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the place of `letter` among the array's axes.
    pub fn place(&self, letter: char) -> Option<usize> {
        self.0.find(letter)
    }

    /// Returns how many spatial axes a user of these axes sees: 3 with a depth, 2 with a height, else 1.
    pub fn rank(&self) -> usize {
        match (self.place('D'), self.place('H')) {
            (Some(_), _) => 3,
            (None, Some(_)) => 2,
            (None, None) => 1,
        }
    }

    /// Returns these axes for an array with `count` of them, which may be a single sample: then without N.
    pub fn of_array(&self, count: usize) -> Self {
        match self.place('N') {
            Some(_) if self.count() == count + 1 => Axes(self.0.replace('N', "")),
            _ => self.clone(),
        }
    }

    /// Returns these axes for a mask with `count` of them: one mask may stand for all channels, or for all samples, or for
    /// both.
    pub fn of_mask(&self, count: usize) -> Self {
        let without = |letters: &str| Axes(self.0.chars().filter(|letter| !letters.contains(*letter)).collect());
        let fitting = ["", "C", "N", "CN"].into_iter().map(without).find(|axes| axes.count() == count);
        fitting.unwrap_or_else(|| self.clone())
    }
}

impl HasKind for Option<Axes> {
    const KIND: Kind = Kind::OptionalText;
}
