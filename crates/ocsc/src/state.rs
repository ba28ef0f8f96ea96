//! What a learner needs to go on bit for bit, on its way to and from a file.

use crate::array::{Array, Element};
use crate::{Error, Real, Result, Shape};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Holds the saved variables of a learner: flat arrays by name, each of its own type.
///
/// Statistics are arrays of the learner's scalar, sums that decide something are f64, indices u32 and counts u64.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State<'a> {
    arrays: BTreeMap<String, Array<'a>>,
}

impl<'a> State<'a> {
    /// Returns true if there is nothing to restore.
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty()
    }

    /// Returns whether there is an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    /// Returns the arrays with their names, in the order of these.
    pub(crate) fn into_arrays(self) -> impl Iterator<Item = (String, Array<'a>)> {
        self.arrays.into_iter()
    }

    /// Adds an array.
    pub(crate) fn insert(&mut self, name: &str, array: Array<'a>) {
        self.arrays.insert(name.to_owned(), array);
    }

    /// Takes an array out.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Array<'a>> {
        self.arrays.remove(name)
    }

    /// Adds an array that stays where it is.
    pub(crate) fn with<E: Element>(mut self, name: &str, values: &'a [E]) -> Self {
        self.insert(name, E::array(Cow::Borrowed(values)));
        self
    }

    /// Adds an array that was made to be saved.
    pub(crate) fn with_owned<E: Element>(mut self, name: &str, values: Vec<E>) -> Self {
        self.insert(name, E::array(Cow::Owned(values)));
        self
    }

    /// Adds counts.
    pub(crate) fn with_counts(self, name: &str, counts: impl IntoIterator<Item = usize>) -> Self {
        self.with_owned(name, counts.into_iter().map(|n| n as u64).collect())
    }

    /// Adds shapes of samples.
    pub(crate) fn with_shapes(self, name: &str, shapes: impl IntoIterator<Item = Shape>) -> Self {
        let axes = |Shape { channels, depth, height, width }| [channels, depth, height, width];
        self.with_counts(name, shapes.into_iter().flat_map(axes))
    }

    /// Refuses a state with other parts than a learner of this method has.
    pub(crate) fn check_names(&self, learner: &State<'_>, method: impl std::fmt::Display) -> Result<()> {
        let names = |state: &State<'_>| state.arrays.keys().cloned().collect::<Vec<_>>().join(", ");
        let found = names(self);
        let expected = names(learner);
        if found == expected {
            return Ok(());
        }
        Err(Error::invalid("statistics", format!("those of the method `{method}`: {expected}"), found))
    }

    /// Returns an array of any length and of finite numbers.
    pub(crate) fn array<E: Element>(&self, name: &str) -> Result<&[E]> {
        let expected = E::array(Cow::Borrowed(&[])).dtype();
        let wrong = |expected: String, found: String| Err(Error::invalid(format!("saved `{name}`"), expected, found));
        let Some(array) = self.arrays.get(name) else {
            return wrong(format!("an array of {expected:?}").to_lowercase(), "nothing".to_owned());
        };
        let Some(values) = E::values(array) else {
            let found = format!("{:?}", array.dtype()).to_lowercase();
            return wrong(format!("numbers in {expected:?}").to_lowercase(), found);
        };
        match array.not_finite() {
            Some(v) => wrong("finite numbers".to_owned(), v.to_string()),
            None => Ok(values),
        }
    }

    /// Checks that an array is there with exactly this length.
    pub(crate) fn check_len(&self, name: &str, len: usize) -> Result<()> {
        let found = match self.arrays.get(name) {
            Some(array) if array.len() == len => return Ok(()),
            Some(array) => array.len().to_string(),
            None => "nothing".to_owned(),
        };
        Err(Error::invalid(format!("saved `{name}`"), format!("{len} numbers"), found))
    }

    /// Copies an array of exactly the target's length and of finite numbers.
    pub(crate) fn copy_array<E: Element>(&self, name: &str, target: &mut [E]) -> Result<()> {
        self.check_len(name, target.len())?;
        target.copy_from_slice(self.array(name)?);
        Ok(())
    }

    /// Returns one number, finite and from 0 up.
    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        let mut number = [0.0];
        self.copy_array(name, &mut number)?;
        not_negative(name, number[0])
    }

    /// Returns the saved bound on an update's curvature, from 0 up.
    pub(crate) fn step_bound<T: Real>(&self) -> Result<T> {
        let mut bound = [T::zero()];
        self.copy_array("lipschitz", &mut bound)?;
        not_negative("lipschitz", bound[0].f64())?;
        Ok(bound[0])
    }

    /// Returns any number of counts.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<usize>> {
        let count = |n: &u64| {
            let wrong = |_| Error::invalid(format!("saved `{name}`"), "counts that this machine can hold", n);
            usize::try_from(*n).map_err(wrong)
        };
        self.array(name)?.iter().map(count).collect()
    }

    /// Copies exactly as many counts as the target holds.
    pub(crate) fn copy_counts(&self, name: &str, target: &mut [usize]) -> Result<()> {
        self.check_len(name, target.len())?;
        target.copy_from_slice(&self.counts(name)?);
        Ok(())
    }

    /// Returns the shapes that [`State::with_shapes`] saved; their numbers of values can be counted.
    pub(crate) fn shapes(&self, name: &str) -> Result<Vec<Shape>> {
        let counts = self.counts(name)?;
        let (all, rest) = counts.as_chunks::<4>();
        let is_sane = |axes: &[usize; 4]| {
            let len = axes.iter().try_fold(1_usize, |len, axis| len.checked_mul(*axis));
            len.is_some_and(|len| (1..=isize::MAX as usize).contains(&len))
        };
        if !(rest.is_empty() && all.iter().all(is_sane)) {
            let expected = "4 lengths from 1 up for each sample, as memory can hold them";
            return Err(Error::invalid(format!("saved `{name}`"), expected, format!("{counts:?}")));
        }
        Ok(all.iter().map(|&[channels, depth, height, width]| Shape { channels, depth, height, width }).collect())
    }

    /// Returns the one shape of this name.
    pub(crate) fn shape(&self, name: &str) -> Result<Shape> {
        self.check_len(name, 4)?;
        Ok(self.shapes(name)?[0])
    }
}

/// Refuses a saved number below 0.
fn not_negative(name: &str, number: f64) -> Result<f64> {
    if number >= 0.0 {
        Ok(number)
    } else {
        Err(Error::invalid(format!("saved `{name}`"), "a number from 0 up", number))
    }
}
