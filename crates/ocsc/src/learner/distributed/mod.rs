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
//! **What travels.** Pairs of atoms change phi, psi has a number for every number of a filter. While the pairs of a batch are
//! fewer than half the numbers of phi, *the codes* travel, which are far smaller yet, and every member makes phi from all of
//! them in the order of the batch. Otherwise the members make phi of their own samples, and *the sum* travels: the work is
//! divided, for twice phi through the network. psi is always summed. All sums are exact (`comm/exact.rs`), and the choice
//! depends on the batch alone, so nothing depends on the number of members, not even the last bit.
//!
//! **Reproducible.** [`Online`](super::Online) adds sample by sample. With [`Distributed::reproducible`] every sample's code and
//! psi travel, and are added one by one in the order of the batch: then the bits are those of one process. It costs the bytes
//! of psi for every sample, and every member the work of absorbing all samples.
//!
//! At the end of a step rank 0's dictionary goes to everybody: processors of different kinds round differently in an
//! update, and would drift apart.

mod message;

use super::{CodeSums, Core, Learner, Step, check_values};
use crate::coder::{Coded, Coder};
use crate::comm::exact::Exact;
use crate::comm::reduction::{PARTS, Reduction, Rows};
use crate::comm::wire::{Reader, put};
use crate::comm::{Comm, failed};
use crate::monitor::{Monitor, Silent};
use crate::state::State;
use crate::statistics::{Addend, Lags};
use crate::update::{BlockDescent, Share, Update, Updated};
use crate::{Config, Dictionary, Error, Method, Real, Result, Sample};
use message::{FAILED, Header, Message, STOPPED, Told, WELL, Way};
use std::sync::Arc;

/// Learns one dictionary as a member of a team.
pub struct Distributed<T: Real> {
    core: Core<T>,
    coder: Box<dyn Coder<T>>,
    update: BlockDescent<T>,
    comm: Arc<dyn Comm>,
    reproducible: bool,
    /// For phi of this member's own samples; made when it is first needed.
    phi: Vec<i64>,
    reduction: Reduction,
}

/// What all members know after an exchange.
struct Exchanged<T: Real> {
    way: Way,
    /// All samples, in the order of the batch.
    told: Vec<Told<T>>,
    largest: [f64; 2],
}

impl<T: Real> Distributed<T> {
    /// Makes a member that starts from a given dictionary, which overrides the number and shape of filters in `config`. All
    /// members must be given the same.
    pub fn with_dictionary(config: Config, dictionary: Dictionary<T>, comm: Arc<dyn Comm>) -> Result<Self> {
        Self::check_method(config.method)?;
        let core = Core::new(config, dictionary)?;
        let config = &core.config;
        let coder = config.method.coder(&core.dictionary, &config.learning())?;
        let update = BlockDescent::new(config.updating().block_descent, config.boundary, config.seed);
        let update = update.loss(config.active_set.loss).constrained(config.filters.clone());
        Ok(Distributed {
            core,
            coder,
            update,
            comm,
            reproducible: false,
            phi: Vec::new(),
            reduction: Reduction::default(),
        })
    }

    /// Refuses a method whose statistics do not add over processes.
    pub(crate) fn check_method(method: Method) -> Result<()> {
        match method {
            Method::Ocsc => Ok(()),
            other => Err(Error::invalid("method", "ocsc, whose statistics add over processes", other)),
        }
    }

    /// Says whether the dictionary is to be that of one process, bit for bit.
    pub fn reproducible(self, reproducible: bool) -> Self {
        Distributed { reproducible, ..self }
    }

    /// Learns from this member's part of a batch, at these places in it; the others must do the same with theirs. Without
    /// any sample at all nothing happens.
    pub fn partial_fit(&mut self, places: &[usize], samples: &[Sample<T>]) -> Result<Step<T>> {
        self.fit(places, samples, &Silent)
    }

    fn fit(&mut self, places: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        let coded = self.code(samples, monitor);
        let mine = coded.as_ref().map_or(&[][..], |coded| coded);
        let shares = self.shares(samples, mine);
        let message = match (&coded, &shares) {
            (Ok(coded), Ok(shares)) => Ok(Message::of(places, samples, coded, shares, self.core.dictionary.shape())),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let exchanged = self.exchange(message)?;
        let shares = shares?;
        let mut totals = CodeSums::default();
        exchanged.told.iter().for_each(|told| totals.add(told.objective, told.gap, told.nonzeros, told.values));
        if totals.count == 0 {
            let nothing = Updated::default();
            return Ok(Step {
                step: self.core.step,
                own_codes: Vec::new(),
                totals,
                dictionary_change: 0.0,
                update: nothing,
            });
        }
        self.absorb(exchanged, &shares, monitor)?;
        drop(shares);
        let updated = self.core.update(|dictionary| {
            let updated = self.update.update(dictionary);
            self.comm.broadcast(bytemuck::cast_slice_mut(dictionary.data_mut()));
            updated
        })?;
        self.coder.set_dictionary(&self.core.dictionary);
        Ok(self.core.count_step(coded?, totals, updated))
    }

    fn code(&mut self, samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Vec<Coded<T>>> {
        check_values(samples)?;
        samples.iter().try_for_each(|sample| self.core.dictionary.check_sample_shape(sample.shape()))?;
        if samples.is_empty() { Ok(Vec::new()) } else { self.coder.code_all(samples, monitor) }
    }

    /// Returns what this member's samples bring.
    fn shares<'a>(&mut self, samples: &[Sample<T>], coded: &'a [Coded<T>]) -> Result<Vec<Share<'a, T>>> {
        self.update.open(&self.core.dictionary);
        samples.iter().zip(coded).map(|(x, coded)| self.update.share(x, &coded.code, &self.core.dictionary)).collect()
    }

    /// Tells the others, and is told of all samples; fails if anybody did, and stops if anybody was stopped.
    fn exchange(&self, mine: Result<Message, &Error>) -> Result<Exchanged<T>> {
        let (ok, mine) = match mine {
            Ok(message) => (WELL, message),
            Err(Error::Stopped) => (STOPPED, Message::default()),
            Err(error) => (FAILED, Message { facts: error.to_string().into_bytes(), ..Message::default() }),
        };
        let comm = &*self.comm;
        let mut header = Vec::new();
        let [facts, codes, psis] = [&mine.facts, &mine.codes, &mine.psis].map(|piece| piece.len() as u64);
        put(&mut header, &[ok, facts, codes, psis, mine.pairs as u64]);
        put(&mut header, &mine.largest);
        let headers = comm.all_gather(&header, &vec![header.len(); comm.size()]);
        let mut from = Reader::new(&headers);
        let headers = (0..comm.size()).map(|_| Ok((from.one()?, from.one()?)));
        let headers: Vec<Header> = headers.collect::<Result<_>>()?;
        let is_well = headers.iter().all(|([ok, ..], _)| *ok == WELL);
        let pairs: u64 = headers.iter().map(|([.., pairs], _)| pairs).sum();
        let way = if is_well { self.way(pairs as usize) } else { Way::Sums };
        let length = |([_, facts, codes, psis, _], _): &Header| match way {
            Way::Sums => *facts as usize,
            Way::Codes => (facts + codes) as usize,
            Way::Each => (facts + codes + psis) as usize,
        };
        let lengths: Vec<usize> = headers.iter().map(length).collect();
        let all = comm.all_gather(&mine.pieces(way), &lengths);
        let mut start = 0;
        let mut told = Vec::new();
        let mut largest = [0.0; 2];
        for (rank, ((header, magnitudes), length)) in headers.iter().zip(lengths).enumerate() {
            let message = all.get(start..start + length).unwrap_or_default();
            start += length;
            if header[0] == FAILED {
                return Err(failed(comm, rank, message));
            }
            if is_well {
                told.extend(Message::read(way, message)?);
            }
            largest = std::array::from_fn(|i| magnitudes[i].max(largest[i]));
        }
        if !is_well {
            return Err(Error::Stopped);
        }
        if comm.size() > 1 {
            told.sort_by_key(|told| told.place);
        }
        Ok(Exchanged { way, told, largest })
    }

    /// Returns how phi and psi travel if the batch has this many pairs.
    fn way(&self, pairs: usize) -> Way {
        let phi = Lags::<T>::phi_len(self.core.config.n_filters, self.core.dictionary.shape());
        match self.reproducible {
            true => Way::Each,
            false if pairs <= phi / 2 => Way::Codes,
            false => Way::Sums,
        }
    }

    /// Puts everybody's samples into the statistics.
    fn absorb(&mut self, exchanged: Exchanged<T>, mine: &[Share<'_, T>], monitor: &dyn Monitor) -> Result<()> {
        let Exchanged { way, told, largest: [largest_psi, largest_z] } = exchanged;
        let (boundary, filter, comm) = (self.core.config.boundary, self.core.dictionary.shape(), &*self.comm);
        let (samples, constant) = (told.len(), told.iter().map(|told| told.constant).sum());
        let nonzeros: usize = told.iter().map(|told| told.nonzeros).sum();
        for Told { patches, code, psi, constant, .. } in told {
            self.update.take(patches, |lags| match (way, code) {
                (Way::Each, Some(code)) => lags.add(&Addend::new(code, psi, constant), boundary),
                (_, Some(code)) => lags.add_pairs(&[&code], boundary),
                (_, None) => Ok(()),
            })?;
        }
        if way == Way::Each {
            return Ok(());
        }
        let exact = Exact::new(largest_psi, samples);
        let mut psi = vec![0; self.core.config.n_filters * filter.len()];
        for (start, part) in mine.iter().flat_map(|share| share.addend.psi_parts(filter.len())) {
            psi[start..].iter_mut().zip(part).for_each(|(sum, v)| *sum += exact.units(v.f64()));
        }
        comm.all_reduce(&mut psi);
        self.update.take(Vec::new(), |lags| {
            lags.add_linear(psi.iter().map(|units| exact.value(*units)), constant);
            Ok(())
        })?;
        if way == Way::Codes {
            return Ok(());
        }
        // An atom has one partner of a filter at a lag.
        let exact = Exact::new(largest_z * largest_z, nonzeros);
        let (phi, reduction) = (&mut self.phi, &mut self.reduction);
        self.update.take(Vec::new(), |lags| {
            phi.clear();
            phi.resize(Lags::<T>::phi_len(lags.n_filters(), filter), 0);
            let pairs = mine.iter().map(|share| lags.pairs(share.addend.code(), boundary));
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            let make = |(filters, rows): Rows<'_>| {
                lags.sum_pairs(&pairs, filters, rows, |product| exact.units(product));
            };
            reduction.run(comm, lags.row_groups(phi, PARTS), monitor, make);
            lags.add_phi(phi, |units| exact.value(units));
            Ok(())
        })
    }
}

impl<T: Real> Learner<T> for Distributed<T> {
    fn learn(&mut self, places: &[usize], samples: &[Sample<T>], monitor: &dyn Monitor) -> Result<Step<T>> {
        self.fit(places, samples, monitor)
    }

    fn end_of_pass(&mut self) -> Result<Option<(f64, Updated)>> {
        Ok(None)
    }

    fn core(&self) -> &Core<T> {
        &self.core
    }

    fn state(&self) -> State<'_> {
        self.update.state()
    }

    fn restore(&mut self, state: &State<'_>, step: usize) -> Result<()> {
        self.update.restore(state, &self.core.dictionary)?;
        self.core.step = step;
        Ok(())
    }

    fn comm(&self) -> Arc<dyn Comm> {
        self.comm.clone()
    }

    fn give_up(&mut self, error: Error) -> Error {
        // Whoever fails together says the same.
        self.exchange(Err(&error)).err().unwrap_or(error)
    }
}
