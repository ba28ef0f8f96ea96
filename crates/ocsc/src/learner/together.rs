//! Online learning by a team: every member codes its part of a batch, and all make the same update.
//!
//! A step is that of [`Online`](super::Online) with `ocsc`, the method whose statistics do not depend on the samples' sizes:
//!
//! ```text
//! code my samples against D      ->  their shares of phi, psi and the constant
//! exchange                       ->  all shares, or their sum
//! absorb, update                 ->  the same D for everybody
//! ```
//!
//! **What travels.** phi follows from the codes, whose non-zeros are few; psi has a number for every number of a filter. So
//! either *the codes* travel, with psi summed by the network, and every member makes phi from all of them; or, when these
//! would be more bytes than twice the statistics (what a sum over the network moves), *the statistics* of the members' own
//! samples are summed.
//!
//! **Reproducible.** Sums of floating-point numbers depend on their order. With [`Together::reproducible`] every sample's
//! code and psi travel, and are added one by one in the order of the batch: then the dictionary is that of
//! [`Online`](super::Online), bit for bit, whatever the number of members. It costs the bytes of psi for every sample, and
//! every member the work of absorbing all samples.
//!
//! At the end of a step rank 0's dictionary goes to everybody: processors of different kinds round differently in an
//! update, and would drift apart.

use super::{CodeSums, Learner, Step, check_values, finite_or_old, settled};
use crate::checkpoint::State;
use crate::coder::{Coded, Coder};
use crate::statistics::{Addend, Lags};
use crate::team::wire::{Reader, put, put_count};
use crate::team::{Team, failed};
use crate::update::{BlockDescent, Patch, Share, Update, Updated};
use crate::{Code, Config, Dictionary, Error, Method, Real, Result, Sample};
use std::sync::Arc;

/// A member of a team that learns one dictionary.
pub struct Together<T: Real> {
    config: Config,
    dictionary: Dictionary<T>,
    coder: Box<dyn Coder<T>>,
    update: BlockDescent<T>,
    step: usize,
    team: Arc<dyn Team>,
    reproducible: bool,
    /// For the statistics of the members' own samples; made when they are first needed.
    sum: Option<Lags<T>>,
}

/// How phi and psi travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Both as sums.
    Sums,
    /// phi as codes, psi as a sum.
    Codes,
    /// As codes and psi of every sample.
    Each,
}

/// What everybody is told of a sample.
struct Told<T: Real> {
    /// Its place in the batch.
    place: usize,
    objective: f64,
    gap: f64,
    nonzeros: usize,
    /// Its part of the statistics' constant.
    constant: f64,
    patches: Vec<Patch>,
    code: Option<Code<T>>,
    psi: Vec<T>,
}

/// A message to the others, in three pieces of which the later ones may stay at home.
#[derive(Default)]
struct Message {
    facts: Vec<u8>,
    codes: Vec<u8>,
    psis: Vec<u8>,
}

impl Message {
    fn of<T: Real>(places: &[usize], coded: &[Coded<T>], shares: &[Share<'_, T>]) -> Self {
        let mut message = Message::default();
        put_count(&mut message.facts, shares.len());
        for ((place, coded), Share { addend, patches }) in places.iter().zip(coded).zip(shares) {
            let facts = &mut message.facts;
            put(facts, &[*place as u64, coded.code.nonzeros() as u64, patches.len() as u64]);
            put(facts, &[coded.total(), coded.relative_gap(), addend.constant()]);
            patches.iter().for_each(|patch| patch.write(facts));
            coded.code.write(&mut message.codes);
            put_count(&mut message.psis, addend.psi().len());
            put(&mut message.psis, addend.psi());
        }
        message
    }

    /// The pieces that travel.
    fn pieces(&self, way: Way) -> Vec<u8> {
        match way {
            Way::Sums => self.facts.clone(),
            Way::Codes => [&self.facts[..], &self.codes].concat(),
            Way::Each => [&self.facts[..], &self.codes, &self.psis].concat(),
        }
    }

    fn read<T: Real>(way: Way, bytes: &[u8]) -> Result<Vec<Told<T>>> {
        let mut from = Reader::new(bytes);
        let mut all = Vec::new();
        for _ in 0..from.count()? {
            let [place, nonzeros, patches] = from.one::<[u64; 3]>()?.map(|n| n as usize);
            let [objective, gap, constant] = from.one()?;
            let patches = (0..patches).map(|_| Patch::read(&mut from)).collect::<Result<_>>()?;
            all.push(Told { place, objective, gap, nonzeros, constant, patches, code: None, psi: Vec::new() });
        }
        for told in all.iter_mut().filter(|_| way != Way::Sums) {
            told.code = Some(Code::read(&mut from)?);
        }
        for told in all.iter_mut().filter(|_| way == Way::Each) {
            let n = from.count()?;
            told.psi = from.many(n)?;
        }
        Ok(all)
    }
}

impl<T: Real> Together<T> {
    /// A member that starts from a given dictionary, which overrides the number and shape of filters in `config`. All members
    /// must be given the same.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>, team: Arc<dyn Team>) -> Result<Self> {
        let config = settled(config, &dictionary)?;
        if config.method != Method::Ocsc {
            let expected = "ocsc, whose statistics add over processes";
            return Err(Error::invalid("method", expected, config.method));
        }
        let coder = T::learning_coder(&config, &dictionary)?;
        let update = BlockDescent::new(config.block_descent.clone(), config.boundary, config.seed);
        Ok(Together { config, dictionary, coder, update, step: 0, team, reproducible: false, sum: None })
    }

    /// Whether the dictionary is to be the same bit for bit whatever the number of members.
    pub fn reproducible(self, reproducible: bool) -> Self {
        Together { reproducible, ..self }
    }

    /// Learns from this member's part of a batch, at these places in it; the others must do the same with theirs. Without
    /// any sample at all nothing happens.
    pub fn partial_fit(&mut self, places: &[usize], samples: &[Sample<T>]) -> Result<Step<T>> {
        let coded = self.code(samples);
        let mine = coded.as_ref().map_or(&[][..], |coded| coded);
        let shares = self.shares(samples, mine);
        let message = match (&coded, &shares) {
            (Ok(coded), Ok(shares)) => Ok(Message::of(places, coded, shares)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let (way, told) = self.exchange(message)?;
        let shares = shares?;
        let mut codes = CodeSums::default();
        told.iter().for_each(|told| codes.add(told.objective, told.gap, told.nonzeros));
        if codes.count == 0 {
            let nothing = Updated::default();
            return Ok(Step { step: self.step, coded: Vec::new(), codes, dictionary_change: 0.0, update: nothing });
        }
        self.absorb(way, told, &shares)?;
        drop(shares);
        let old = self.dictionary.clone();
        let update = self.update.update(&mut self.dictionary);
        self.team.broadcast(bytemuck::cast_slice_mut(self.dictionary.data_mut()));
        finite_or_old(&mut self.dictionary, &old)?;
        self.coder.set_dictionary(&self.dictionary);
        self.step += 1;
        let dictionary_change = self.dictionary.relative_change(&old);
        Ok(Step { step: self.step, coded: coded?, codes, dictionary_change, update })
    }

    fn code(&mut self, samples: &[Sample<T>]) -> Result<Vec<Coded<T>>> {
        check_values(samples)?;
        samples.iter().try_for_each(|sample| self.dictionary.check_sample_shape(sample.shape()))?;
        if samples.is_empty() { Ok(Vec::new()) } else { self.coder.code_all(samples) }
    }

    /// What this member's samples bring.
    fn shares<'a>(&mut self, samples: &[Sample<T>], coded: &'a [Coded<T>]) -> Result<Vec<Share<'a, T>>> {
        self.update.open(&self.dictionary);
        samples.iter().zip(coded).map(|(x, coded)| self.update.share(x, &coded.code, &self.dictionary)).collect()
    }

    /// Tells the others, and is told of all samples, in the order of the batch; fails if anybody did.
    fn exchange(&self, mine: Result<Message, &Error>) -> Result<(Way, Vec<Told<T>>)> {
        let (ok, mine) = match mine {
            Ok(message) => (1, message),
            Err(error) => (0, Message { facts: error.to_string().into_bytes(), ..Message::default() }),
        };
        let team = &*self.team;
        let header = [ok, mine.facts.len() as u64, mine.codes.len() as u64, mine.psis.len() as u64];
        let headers = team.gather(bytemuck::bytes_of(&header), &vec![size_of_val(&header); team.size()]);
        let headers: Vec<[u64; 4]> = Reader::new(&headers).many(team.size())?;
        let is_well = headers.iter().all(|[ok, ..]| *ok == 1);
        let codes: u64 = headers.iter().map(|[_, _, codes, _]| codes).sum();
        let way = if is_well { self.way(codes as usize) } else { Way::Sums };
        let lengths: Vec<usize> = headers
            .iter()
            .map(|[_, facts, codes, psis]| match way {
                Way::Sums => *facts as usize,
                Way::Codes => (facts + codes) as usize,
                Way::Each => (facts + codes + psis) as usize,
            })
            .collect();
        let all = team.gather(&mine.pieces(way), &lengths);
        let (mut start, mut told) = (0, Vec::new());
        for (rank, (header, length)) in headers.iter().zip(lengths).enumerate() {
            let message = all.get(start..start + length).unwrap_or_default();
            start += length;
            if header[0] == 0 {
                return Err(failed(team, rank, message));
            }
            if is_well {
                told.extend(Message::read(way, message)?);
            }
        }
        if team.size() > 1 {
            told.sort_by_key(|told| told.place);
        }
        Ok((way, told))
    }

    /// How phi and psi travel if the codes of all samples are so many bytes.
    fn way(&self, codes: usize) -> Way {
        let sums = 2 * Lags::<T>::bytes(self.config.n_filters, self.dictionary.shape());
        match self.reproducible {
            true => Way::Each,
            false if codes <= sums => Way::Codes,
            false => Way::Sums,
        }
    }

    /// Puts everybody's samples into the statistics.
    fn absorb(&mut self, way: Way, told: Vec<Told<T>>, mine: &[Share<'_, T>]) -> Result<()> {
        let (boundary, filter, team) = (self.config.boundary, self.dictionary.shape(), &*self.team);
        let constant = told.iter().map(|told| told.constant).sum();
        for Told { patches, code, psi, constant, .. } in told {
            self.update.take(patches, |lags| match (way, code) {
                (Way::Each, Some(code)) => lags.add(&Addend::new(code, psi, constant), boundary),
                (_, Some(code)) => lags.add_pairs(&code, boundary),
                (_, None) => Ok(()),
            })?;
        }
        if way == Way::Each {
            return Ok(());
        }
        let mut psi = vec![T::zero(); self.config.n_filters * filter.len()];
        mine.iter().for_each(|share| share.addend.add_psi(filter.len(), &mut psi));
        T::sum_over(team, &mut psi);
        if way == Way::Sums {
            let sum = self.sum.get_or_insert_with(|| Lags::new(self.config.n_filters, filter));
            sum.clear();
            mine.iter().try_for_each(|share| sum.add_pairs(share.addend.code(), boundary))?;
            T::sum_over(team, sum.arrays_mut()[0]);
            self.update.take(Vec::new(), |lags| lags.merge(sum))?;
        }
        self.update.take(Vec::new(), |lags| {
            lags.add_linear(&psi, constant);
            Ok(())
        })
    }
}

impl<T: Real> Learner<T> for Together<T> {
    fn learn(&mut self, places: &[usize], samples: &[Sample<T>]) -> Result<Step<T>> {
        self.partial_fit(places, samples)
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        Ok(None)
    }

    fn dictionary(&self) -> &Dictionary<T> {
        &self.dictionary
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn step(&self) -> usize {
        self.step
    }

    fn state(&self) -> State<'_, T> {
        self.update.state()
    }

    fn restore(&mut self, state: &State<'_, T>, step: usize) -> Result<()> {
        self.update.restore(state, &self.dictionary)?;
        self.step = step;
        Ok(())
    }

    fn team(&self) -> Arc<dyn Team> {
        self.team.clone()
    }

    fn give_up(&mut self, error: Error) -> Error {
        // Whoever fails together says the same.
        self.exchange(Err(&error)).err().unwrap_or(error)
    }
}
