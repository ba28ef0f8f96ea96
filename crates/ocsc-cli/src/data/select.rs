//! Choosing among the samples of a source: the first, some at random, or those that are large enough.

use super::{Crop, Pieces, Source, fits};
use anyhow::Result;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The streams of random numbers here; the library uses 0, those from 1 up that count passes, and the last.
const SUBSET: u64 = u64::MAX - 1;
pub(super) const HELD_OUT: u64 = u64::MAX - 2;

impl Source {
    /// The samples with these numbers, which ascend.
    pub(crate) fn only(&self, numbers: &[usize]) -> Source {
        let chosen: Vec<usize> = numbers.iter().filter_map(|i| self.number(*i)).collect();
        Source { len: chosen.len(), chosen: Some(chosen), ..self.clone() }
    }

    /// Every sample so often: in pieces of its own of this size, as many as would cover it, or `count` of them.
    pub(crate) fn in_pieces(&self, size: Option<&[usize]>, count: Option<usize>) -> Result<Source> {
        let mut source = self.clone();
        if let Some(size) = size {
            source.crop = Some(Crop::new(size, self.rank())?);
        }
        let whole = Source { crop: None, ..self.clone() };
        let (mut chosen, mut pieces) = (Vec::new(), Vec::new());
        if count.is_none() {
            self.read_headers(0..self.len(), 1);
        }
        for i in 0..self.len() {
            // What cannot be read is found out later.
            let covering = || whole.size(i).ok().zip(source.crop).map_or(1, |(size, crop)| crop.pieces(size));
            let n = count.unwrap_or_else(covering);
            chosen.extend(std::iter::repeat_n(self.number(i).unwrap_or(i), n));
            pieces.extend(0..n as u32);
        }
        let pieces = Pieces { numbers: pieces.into(), whole: self.crop };
        Ok(Source { len: chosen.len(), chosen: Some(chosen), pieces: Some(pieces), ..source })
    }

    /// Returns the samples that these are pieces of, or the same samples.
    pub(crate) fn whole(&self) -> Source {
        let Some(Pieces { numbers, whole }) = &self.pieces else { return self.clone() };
        let first: Vec<usize> = (0..self.len()).filter(|i| numbers.get(*i) == Some(&0)).collect();
        Source { crop: *whole, pieces: None, ..self.only(&first) }
    }

    /// The first `n` samples, or all.
    pub(crate) fn first(&self, n: usize) -> Source {
        self.only(&(0..self.len().min(n)).collect::<Vec<_>>())
    }

    /// `n` samples drawn at random, in the order they had, or all.
    pub(crate) fn subset(&self, n: usize, seed: u64) -> Source {
        self.only(&self.drawn(n, seed, SUBSET))
    }

    /// The numbers of `n` samples drawn at random, ascending.
    pub(super) fn drawn(&self, n: usize, seed: u64, stream: u64) -> Vec<usize> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let mut numbers: Vec<usize> = (0..self.len()).collect();
        let (drawn, _) = numbers.partial_shuffle(&mut rng, n);
        drawn.sort_unstable();
        drawn.to_vec()
    }

    /// The samples that are at least as large as a filter on every axis, or cannot be read, which is found out later; and
    /// the number of the first one that is not.
    pub(crate) fn at_least(&self, filter: [usize; 3]) -> (Source, Option<usize>) {
        let (mut fitting, mut small) = (Vec::new(), None);
        self.read_headers(0..self.len(), 1);
        for i in 0..self.len() {
            if self.size(i).map_or(true, |size| fits(size, filter)) {
                fitting.push(i);
            } else {
                small = small.or(Some(i));
            }
        }
        (self.only(&fitting), small)
    }
}
