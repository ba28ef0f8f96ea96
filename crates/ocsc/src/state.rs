//! What a learner needs to go on bit for bit, on its way to and from a file.

use crate::{Error, Real, Result};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The saved variables of a learner: flat arrays and scalars by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State<'a, T: Clone> {
    pub(crate) arrays: BTreeMap<String, Cow<'a, [T]>>,
    pub(crate) numbers: BTreeMap<String, Vec<f64>>,
}

impl<'a, T: Real> State<'a, T> {
    /// True if there is nothing to restore.
    pub fn is_empty(&self) -> bool {
        self.arrays.is_empty() && self.numbers.is_empty()
    }

    /// Whether there is an array of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    pub(crate) fn with_array(mut self, name: &str, array: &'a [T]) -> Self {
        self.arrays.insert(name.to_owned(), Cow::Borrowed(array));
        self
    }

    pub(crate) fn with_owned(mut self, name: &str, array: Vec<T>) -> Self {
        self.arrays.insert(name.to_owned(), Cow::Owned(array));
        self
    }

    pub(crate) fn with_numbers(mut self, name: &str, numbers: &[f64]) -> Self {
        self.numbers.insert(name.to_owned(), numbers.to_vec());
        self
    }

    /// Refuses a state with other parts than a learner of this method has.
    pub(crate) fn check_names(&self, learner: &State<'_, T>, method: impl std::fmt::Display) -> Result<()> {
        let names = |state: &State<'_, T>| -> Vec<String> {
            state.arrays.keys().chain(state.numbers.keys()).cloned().collect()
        };
        let (found, expected) = (names(self), names(learner));
        if found == expected {
            return Ok(());
        }
        let expected = format!("those of the method `{method}`: {}", expected.join(", "));
        Err(Error::invalid("statistics", expected, found.join(", ")))
    }

    /// Exactly N scalars, none negative.
    pub(crate) fn numbers<const N: usize>(&self, name: &str) -> Result<[f64; N]> {
        let found = self.numbers.get(name).map_or(&[][..], |n| n);
        let wrong =
            || Error::invalid(format!("saved `{name}`"), format!("{N} finite numbers from 0 up"), format!("{found:?}"));
        let numbers: [f64; N] = found.try_into().map_err(|_| wrong())?;
        if numbers.iter().all(|n| n.is_finite() && *n >= 0.0) { Ok(numbers) } else { Err(wrong()) }
    }

    /// Copies exactly as many whole numbers as the target holds.
    pub(crate) fn copy_counts(&self, name: &str, target: &mut [usize]) -> Result<()> {
        let found = self.numbers.get(name).map_or(&[][..], |n| n);
        if found.len() != target.len() || found.iter().any(|n| !is_count(*n)) {
            let expected = format!("{} whole numbers from 0 up", target.len());
            return Err(Error::invalid(format!("saved `{name}`"), expected, format!("{found:?}")));
        }
        target.iter_mut().zip(found).for_each(|(t, n)| *t = *n as usize);
        Ok(())
    }

    /// Any number of whole numbers.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<usize>> {
        let mut counts = vec![0; self.numbers.get(name).map_or(0, Vec::len)];
        self.copy_counts(name, &mut counts)?;
        Ok(counts)
    }

    /// An array of any length and of finite numbers.
    pub(crate) fn array(&self, name: &str) -> Result<&[T]> {
        let Some(array) = self.arrays.get(name) else {
            return Err(Error::invalid(format!("saved `{name}`"), "an array", "nothing"));
        };
        match array.iter().find(|v| !v.is_finite()) {
            Some(v) => Err(Error::invalid(format!("saved `{name}`"), "finite numbers", v)),
            None => Ok(array),
        }
    }

    /// Checks that an array is there with exactly this length.
    pub(crate) fn check_len(&self, name: &str, len: usize) -> Result<()> {
        match self.arrays.get(name) {
            Some(array) if array.len() == len => Ok(()),
            Some(array) => Err(Error::invalid(format!("saved `{name}`"), format!("{len} numbers"), array.len())),
            None => Err(Error::invalid(format!("saved `{name}`"), format!("{len} numbers"), "nothing")),
        }
    }

    /// The saved bound on an update's curvature, from 0 up.
    pub(crate) fn step_bound(&self) -> Result<T> {
        let mut bound = [T::zero()];
        self.copy_array("lipschitz", &mut bound)?;
        if bound[0] < T::zero() {
            return Err(Error::invalid("saved `lipschitz`", "a number from 0 up", bound[0]));
        }
        Ok(bound[0])
    }

    /// Copies an array of exactly the target's length and of finite numbers.
    pub(crate) fn copy_array(&self, name: &str, target: &mut [T]) -> Result<()> {
        self.check_len(name, target.len())?;
        target.copy_from_slice(self.array(name)?);
        Ok(())
    }
}

/// Whether a number counts something, exactly.
fn is_count(number: f64) -> bool {
    (0.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0
}
