//! The paper's stopping rule: the relative changes of Z and of D are both below a tolerance.
//!
//! Both are taken over a whole pass; that of Z is averaged over a few fixed samples, whose sparse codes are kept, so that
//! memory does not grow with the number of samples.

use crate::coder::Coded;
use crate::comm::wire::{Reader, put_code, put_count};
use crate::comm::{Comm, all_gather};
use crate::{Code, Dictionary, Real, Result};
use std::collections::BTreeMap;

/// The codes of so many samples are followed, the first ones of the source.
const FOLLOWED: usize = 16;

/// The paper's stopping rule, over whole passes.
pub(super) struct Stopping<T: Real> {
    tol: Option<f64>,
    dictionary: Dictionary<T>,
    codes: BTreeMap<usize, Code<T>>,
    /// Relative changes of the followed codes since the last pass.
    changes: Vec<f64>,
}

impl<T: Real> Stopping<T> {
    pub(super) fn new(tol: Option<f64>, dictionary: &Dictionary<T>) -> Self {
        Stopping { tol, dictionary: dictionary.clone(), codes: BTreeMap::new(), changes: Vec::new() }
    }

    /// Looks at the codes of a step, also at those of the other members: next time a sample may be another one's.
    pub(super) fn follow(&mut self, comm: &dyn Comm, visited: &[usize], coded: &[Coded<T>]) -> Result<()> {
        if self.tol.is_none() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for (&i, coded) in visited.iter().zip(coded).filter(|(i, _)| **i < FOLLOWED) {
            put_count(&mut bytes, i);
            put_code(&mut bytes, &coded.code);
        }
        let mut codes = BTreeMap::new();
        for bytes in all_gather(comm, &bytes) {
            let mut from = Reader::new(&bytes);
            while !from.is_empty() {
                codes.insert(from.count()?, from.code()?);
            }
        }
        for (i, code) in codes {
            if let Some(old) = self.codes.get(&i) {
                self.changes.push(code.relative_change(old));
            }
            self.codes.insert(i, code);
        }
        Ok(())
    }

    /// At the end of a pass: whether both changes are small.
    pub(super) fn holds(&mut self, dictionary: &Dictionary<T>) -> bool {
        let Some(tol) = self.tol else { return false };
        let changes = std::mem::take(&mut self.changes);
        let z = changes.iter().sum::<f64>() / changes.len() as f64;
        let d = dictionary.relative_change(&self.dictionary);
        self.dictionary = dictionary.clone();
        !changes.is_empty() && z < tol && d < tol
    }
}
