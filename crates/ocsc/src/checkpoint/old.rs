//! The state of checkpoints that were written before arrays had types of their own.
//!
//! Such a file holds all arrays in the learner's scalar, and scalars as decimal numbers in the metadata `numbers`, by name:
//!
//! | old | now |
//! |---|---|
//! | number `constant`, `weight` | one f64 each, from the two halves of its bits |
//! | number `rho` | one f64 |
//! | other numbers: `seeded`, `updates`, `sample_shape`, `kept`, `kept_shapes`, `kept_atoms` | counts |
//! | array `kept_masks`, zeros and ones | flags |
//! | array `kept_codes`, (n, 5): the halves of the filter, those of the position, the value | `kept_filters`, `kept_positions` and `kept_values` |
//!
//! Nothing of this is written any more.

use crate::state::State;
use crate::{Error, Real, Result};
use std::collections::BTreeMap;

/// The scalars of an old file, by name.
pub(super) type Numbers = BTreeMap<String, Vec<f64>>;

/// Gives the arrays and scalars of an old file the types that they have now.
pub(super) fn upgraded<T: Real>(mut state: State<'static>, numbers: Numbers) -> Result<State<'static>> {
    for (name, values) in numbers {
        state = match name.as_str() {
            "constant" | "weight" => state.with_owned(&name, vec![joined(&name, &values)?]),
            "rho" => state.with_owned(&name, values),
            _ => state.with_owned(&name, whole(&name, &values, (1_u64 << f64::MANTISSA_DIGITS) as f64)?),
        };
    }
    if let Some(masks) = taken::<T>(&mut state, "kept_masks")? {
        let flags = whole("kept_masks", &masks, 1.0)?.into_iter().map(|flag| flag as u8);
        state = state.with_owned("kept_masks", flags.collect());
    }
    if let Some(atoms) = taken::<T>(&mut state, "kept_codes")? {
        let (atoms, []) = atoms.as_chunks::<5>() else {
            return Err(Error::invalid("saved `kept_codes`", "5 numbers for each atom", atoms.len()));
        };
        let index = |high: usize| -> Result<Vec<u32>> {
            let halves: Vec<f64> = atoms.iter().flat_map(|atom| [atom[high], atom[high + 1]]).collect();
            let halves = whole("kept_codes", &halves, f64::from(u16::MAX))?;
            Ok(halves.as_chunks().0.iter().map(|[high, low]| (high << 16 | low) as u32).collect())
        };
        state = state
            .with_owned("kept_filters", index(0)?)
            .with_owned("kept_positions", index(2)?)
            .with_owned("kept_values", atoms.iter().map(|atom| T::of(atom[4])).collect());
    }
    Ok(state)
}

/// Takes an array of the learner's scalar out of a state, if there is one of this name.
fn taken<T: Real>(state: &mut State<'static>, name: &str) -> Result<Option<Vec<f64>>> {
    if !state.has(name) {
        return Ok(None);
    }
    let values = state.array::<T>(name)?.iter().map(|v| v.f64()).collect();
    state.remove(name);
    Ok(Some(values))
}

/// Returns the number whose bits were saved in two halves of 32.
fn joined(name: &str, halves: &[f64]) -> Result<f64> {
    match whole(name, halves, f64::from(u32::MAX))?[..] {
        [high, low] => Ok(f64::from_bits(high << 32 | low)),
        _ => Err(Error::invalid(format!("saved `{name}`"), "2 numbers", halves.len())),
    }
}

/// Returns numbers that count something, none above `most`.
fn whole(name: &str, numbers: &[f64], most: f64) -> Result<Vec<u64>> {
    let is_whole = |n: &f64| (0.0..=most).contains(n) && n.fract() == 0.0;
    if let Some(n) = numbers.iter().find(|n| !is_whole(n)) {
        return Err(Error::invalid(format!("saved `{name}`"), format!("whole numbers from 0 up to {most}"), n));
    }
    Ok(numbers.iter().map(|n| *n as u64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(name: &str, values: &[f64]) -> Numbers {
        BTreeMap::from([(name.to_owned(), values.to_vec())])
    }

    fn refused(state: State<'static>, numbers: Numbers, part: &str) {
        let message = upgraded::<f32>(state, numbers).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn halves_become_the_numbers_that_they_were() {
        for number in [0.0, 0.1, 1.0 / 3.0, 5e-324, f64::MAX] {
            let bits = f64::to_bits(number);
            let halves = [(bits >> 32) as f64, f64::from(bits as u32)];
            let state = upgraded::<f32>(State::default(), numbers("constant", &halves)).unwrap();
            assert_eq!(state.number("constant").unwrap(), number);
        }
        let atom = [0.0, 99.0, 3.0, 65_535.0, -1.5_f32];
        let old = State::default().with_owned("kept_codes", atom.to_vec()).with_owned("kept_masks", vec![0.0_f32, 1.0]);
        let state = upgraded::<f32>(old, numbers("rho", &[0.37])).unwrap();
        assert_eq!(state.array::<u32>("kept_filters").unwrap(), [99]);
        assert_eq!(state.array::<u32>("kept_positions").unwrap(), [(3 << 16) + 65_535]);
        assert_eq!(state.array::<f32>("kept_values").unwrap(), [-1.5]);
        assert_eq!(state.array::<u8>("kept_masks").unwrap(), [0, 1]);
        assert_eq!(state.number("rho").unwrap(), 0.37);
        assert!(!state.has("kept_codes"));
    }

    #[test]
    fn what_counts_nothing_is_refused() {
        for updates in [[-1.0, 0.0], [1.5, 0.0], [f64::NAN, 0.0], [1e17, 0.0]] {
            refused(State::default(), numbers("updates", &updates), "whole numbers from 0 up");
        }
        refused(State::default(), numbers("weight", &[4294967296.0, 0.0]), "weight");
        refused(State::default(), numbers("weight", &[1.0]), "2 numbers");
        let array = |name: &str, values: &[f32]| State::default().with_owned(name, values.to_vec());
        refused(array("kept_masks", &[0.5]), Numbers::new(), "kept_masks");
        refused(array("kept_codes", &[0.5, 0.0, 0.0, 0.0, 1.0]), Numbers::new(), "whole numbers");
        refused(array("kept_codes", &[0.0, 65_536.0, 0.0, 0.0, 1.0]), Numbers::new(), "kept_codes");
        refused(array("kept_codes", &[0.0; 4]), Numbers::new(), "5 numbers");
        refused(array("kept_codes", &[0.0, 0.0, 0.0, 0.0, f32::NAN]), Numbers::new(), "finite");
    }
}
