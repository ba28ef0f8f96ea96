//! What members of a team tell each other in a step.

use crate::coder::Coded;
use crate::comm::wire::{Reader, put, put_code, put_count};
use crate::update::{Patch, Share};
use crate::{Code, Real, Result, Sample, Shape};

/// How phi and psi travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Both as sums.
    Sums,
    /// phi as codes, psi as a sum.
    Codes,
    /// As codes and psi of every sample.
    Each,
}

/// What everybody is told of a sample.
pub(super) struct Told<T: Real> {
    /// Its place in the batch.
    pub(super) place: usize,
    pub(super) objective: f64,
    pub(super) gap: f64,
    pub(super) nonzeros: usize,
    /// Observed values of the sample.
    pub(super) values: usize,
    /// Its part of the statistics' constant.
    pub(super) constant: f64,
    pub(super) patches: Vec<Patch>,
    pub(super) code: Option<Code<T>>,
    pub(super) psi: Vec<T>,
}

/// A message to the others, in three pieces of which the later ones may stay at home.
#[derive(Default)]
pub(super) struct Message {
    pub(super) facts: Vec<u8>,
    pub(super) codes: Vec<u8>,
    pub(super) psis: Vec<u8>,
    /// About how many pairs of atoms are closer than a filter.
    pub(super) pairs: usize,
    /// The largest magnitudes of psi and of coefficients.
    pub(super) largest: [f64; 2],
}

/// Whether a sender can go on.
pub(super) const FAILED: u64 = 0;
pub(super) const WELL: u64 = 1;
pub(super) const STOPPED: u64 = 2;

/// What goes ahead of it: whether its sender can go on, the lengths of the pieces, the pairs, and the largest magnitudes.
pub(super) type Header = ([u64; 5], [f64; 2]);

impl Message {
    pub(super) fn of<T: Real>(
        places: &[usize],
        samples: &[Sample<T>],
        coded: &[Coded<T>],
        shares: &[Share<'_, T>],
        filter: Shape,
    ) -> Self {
        let mut message = Message::default();
        let near: usize = filter.spatial().iter().map(|m| 2 * m - 1).product();
        put_count(&mut message.facts, shares.len());
        let each = places.iter().zip(samples).zip(coded).zip(shares);
        for (((place, sample), coded), Share { addend, patches }) in each {
            let facts = &mut message.facts;
            let counts = [*place, coded.code.nonzeros(), sample.n_observed(), patches.len()];
            put(facts, &counts.map(|n| n as u64));
            put(facts, &[coded.total(), coded.relative_gap(), addend.constant()]);
            patches.iter().for_each(|patch| put_patch(facts, patch));
            put_code(&mut message.codes, &coded.code);
            put_count(&mut message.psis, addend.psi().len());
            put(&mut message.psis, addend.psi());
            let largest = |values: &mut dyn Iterator<Item = f64>| values.map(f64::abs).fold(0.0, f64::max);
            let psi = largest(&mut addend.psi().iter().map(|v| v.f64()));
            let z = largest(&mut coded.code.atoms().iter().map(|a| a.value.f64()));
            message.largest = [message.largest[0].max(psi), message.largest[1].max(z)];
            let (atoms, positions) = (coded.code.nonzeros(), coded.code.shape().iter().product::<usize>());
            message.pairs += (atoms * atoms / 2).saturating_mul(near) / positions.max(1);
        }
        message
    }

    /// The pieces that travel.
    pub(super) fn pieces(&self, way: Way) -> Vec<u8> {
        match way {
            Way::Sums => self.facts.clone(),
            Way::Codes => [&self.facts[..], &self.codes].concat(),
            Way::Each => [&self.facts[..], &self.codes, &self.psis].concat(),
        }
    }

    pub(super) fn read<T: Real>(way: Way, bytes: &[u8]) -> Result<Vec<Told<T>>> {
        let mut from = Reader::new(bytes);
        let mut all = Vec::new();
        for _ in 0..from.count()? {
            let [place, nonzeros, values, patches] = from.one::<[u64; 4]>()?.map(|n| n as usize);
            let [objective, gap, constant] = from.one()?;
            let patches = (0..patches).map(|_| patch(&mut from)).collect::<Result<_>>()?;
            all.push(Told { place, objective, gap, nonzeros, values, constant, patches, code: None, psi: Vec::new() });
        }
        for told in all.iter_mut().filter(|_| way != Way::Sums) {
            told.code = Some(from.code()?);
        }
        for told in all.iter_mut().filter(|_| way == Way::Each) {
            let n = from.count()?;
            told.psi = from.many(n)?;
        }
        Ok(all)
    }
}

/// Writes a patch.
fn put_patch(bytes: &mut Vec<u8>, patch: &Patch) {
    put(bytes, &[patch.energy]);
    put_count(bytes, patch.values.len());
    put(bytes, &patch.values);
}

/// Reads what [`put_patch`] wrote.
fn patch(from: &mut Reader<'_>) -> Result<Patch> {
    let (energy, n) = (from.one()?, from.count()?);
    Ok(Patch { energy, values: from.many(n)? })
}
