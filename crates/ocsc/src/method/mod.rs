//! The method table: each method is a coder, an update with its statistics, and a schedule, and is one row here.
//!
//! Everything else reads the rows: names and texts in options and files, what a method takes, which settings it obeys, what it
//! learns with, and how much memory that holds. A new method is its files and a row of `methods!`.

mod account;

pub(crate) use account::Facts;
pub use account::Memory;

use crate::coder::{
    self, ActiveSet, Admm, Coder, CoderKind, CodingConfig, Fista, Joint, Masked, Omp, SampleFilters, Space,
};
use crate::real::PerScalar;
use crate::setting::{HasKind, Kind, Part};
use crate::update::{
    self, Aocdl, BlockDescent, Cbpdn, Consensus, Fcsc, Ffcsc, Ocdl1, Ocdl2, OcscPaper, Scsc, Sgd, Update,
    UpdatingConfig,
};
use crate::{Boundary, Dictionary, Error, Real, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is known of a method.
struct Row {
    name: &'static str,
    /// One line for a list of methods.
    text: &'static str,
    schedule: Schedule,
    /// Whether samples may have unobserved values.
    masks: bool,
    /// Whether samples may differ in size; otherwise the statistics hold one.
    mixed_sizes: bool,
    /// Whether samples may be continued otherwise than around the circle.
    boundaries: bool,
    /// The parts whose settings it obeys, besides those that every method does.
    obeys: &'static [Part],
    /// What it learns with; none for the one that is not convolutional.
    parts: Option<Parts>,
    /// How much memory that holds.
    account: fn(&Facts) -> Memory,
}

/// Says when a method forgets and when it updates the dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// After every batch, and the batch is forgotten ([`crate::learner::Online`]).
    Online,
    /// After every pass, and all samples and codes are kept ([`crate::learner::Batch`]).
    Batch,
    /// After every batch, on patches of the samples ([`crate::learner::Osc`]).
    Patches,
}

/// What a convolutional method learns with, for each scalar.
struct Parts {
    coder: CoderMakers,
    update: UpdateMakers,
}

type MakeCoder<T> = fn(&Dictionary<T>, &CodingConfig) -> Result<Box<dyn Coder<T>>>;
type MakeUpdate<T> = fn(&UpdatingConfig) -> Box<dyn Update<T>>;

/// Whoever makes a part compiles its kernels and FFTs, as parts are generic over the scalar. Made by the functions that rows
/// hold they are compiled once, with the library, and not again by every program that uses it.
struct CoderMakers {
    single: MakeCoder<f32>,
    double: MakeCoder<f64>,
}

struct UpdateMakers {
    single: MakeUpdate<f32>,
    double: MakeUpdate<f64>,
}

impl PerScalar for &CoderMakers {
    type Of<T: Real> = MakeCoder<T>;

    fn single(self) -> MakeCoder<f32> {
        self.single
    }

    fn double(self) -> MakeCoder<f64> {
        self.double
    }
}

impl PerScalar for &UpdateMakers {
    type Of<T: Real> = MakeUpdate<T>;

    fn single(self) -> MakeUpdate<f32> {
        self.single
    }

    fn double(self) -> MakeUpdate<f64> {
        self.double
    }
}

/// The parts of a method, made by these functions.
macro_rules! parts {
    ($coder:ident, $update:ident) => {
        Some(Parts {
            coder: CoderMakers { single: $coder::<f32>, double: $coder::<f64> },
            update: UpdateMakers { single: $update::<f32>, double: $update::<f64> },
        })
    };
}

/// Makes the enumeration of methods from their rows.
macro_rules! methods {
    ($($(#[$about:meta])* $method:ident = $name:literal { $($row:tt)* })*) => {
        /// Names a row of the method table (see the crate's front page).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$about])* #[serde(rename = $name)] $method,)*
        }

        impl Method {
            /// Lists all of them, in the order of the table.
            pub const ALL: [Method; [$(stringify!($method)),*].len()] = [$(Method::$method),*];

            fn row(self) -> &'static Row {
                match self {
                    $(Method::$method => {
                        static ROW: Row = Row { name: $name, $($row)* };
                        &ROW
                    })*
                }
            }
        }

        impl HasKind for Method {
            const KIND: Kind = Kind::Choice(&[$($name),*]);
        }
    };
}

methods! {
    /// The fast one: active-set coder, lag statistics, block coordinate descent, online.
    #[default]
    Ocsc = "ocsc" {
        text: "The fast engine: active-set coder, lag statistics, any sample sizes, any channels",
        schedule: Schedule::Online,
        masks: true,
        mixed_sizes: true,
        boundaries: true,
        obeys: &[Part::ActiveSet, Part::Sweeps, Part::SweepTolerance, Part::Lags, Part::Filters, Part::BaseFilters],
        parts: parts!(active_set, block_descent),
        account: Facts::ocsc,
    }
    /// The paper's: ADMM coder, {C^p, b^p} with Sherman-Morrison, ADMM update, online.
    OcscPaper = "ocsc-paper" {
        text: "Algorithms 2 and 3 of the paper: one sample size, any channels",
        schedule: Schedule::Online,
        masks: false,
        mixed_sizes: false,
        boundaries: false,
        obeys: &[
            Part::Iterations,
            Part::Stopping,
            Part::Admm,
            Part::UpdateIterations,
            Part::UpdateTolerance,
            Part::UpdateAdmm,
        ],
        parts: parts!(admm, ocsc_paper),
        account: Facts::ocsc_paper,
    }
    /// Spatial gradients with continuation, for codes and filters, batch (Zeiler et al. 2010).
    Deconvnet = "deconvnet" {
        text: "Batch: spatial gradients with continuation (Zeiler et al. 2010)",
        schedule: Schedule::Batch,
        masks: false,
        mixed_sizes: true,
        boundaries: false,
        obeys: &[Part::Stopping, Part::UpdateTolerance, Part::Batch],
        parts: parts!(deconvnet, deconvnet_update),
        account: Facts::deconvnet,
    }
    /// ADMM with a direct K x K solve per frequency, batch (Bristow et al. 2013).
    Fcsc = "fcsc" {
        text: "Batch: ADMM, direct K x K solves per frequency (Bristow et al. 2013)",
        schedule: Schedule::Batch,
        masks: false,
        mixed_sizes: false,
        boundaries: false,
        obeys: BATCH_ADMM,
        parts: parts!(admm, fcsc),
        account: Facts::batch,
    }
    /// ADMM with a masked data term and cached factors, batch (Heide et al. 2015).
    Ffcsc = "ffcsc" {
        text: "Batch: ADMM, cached factors, takes masks (Heide et al. 2015)",
        schedule: Schedule::Batch,
        masks: true,
        mixed_sizes: false,
        boundaries: false,
        obeys: BATCH_ADMM,
        parts: parts!(masked, ffcsc),
        account: Facts::ffcsc,
    }
    /// ADMM with iterated Sherman-Morrison over the codes, batch (Wohlberg 2016).
    Cbpdn = "cbpdn" {
        text: "Batch: ADMM, iterated Sherman-Morrison over the codes (Wohlberg 2016)",
        schedule: Schedule::Batch,
        masks: false,
        mixed_sizes: false,
        boundaries: false,
        obeys: BATCH_ADMM,
        parts: parts!(admm, cbpdn),
        account: Facts::batch,
    }
    /// ADMM with one dictionary per sample, averaged, batch (Sorel and Sroubek 2016).
    Consensus = "consensus" {
        text: "Batch: ADMM, one dictionary per sample, averaged (Sorel and Sroubek 2016)",
        schedule: Schedule::Batch,
        masks: false,
        mixed_sizes: false,
        boundaries: false,
        obeys: BATCH_ADMM,
        parts: parts!(admm, consensus),
        account: Facts::consensus,
    }
    /// FISTA in the spatial domain, K M x K M history, online (Degraux et al. 2017).
    Ocdl1 = "ocdl1" {
        text: "Online: spatial FISTA, K M x K M history (Degraux et al. 2017)",
        schedule: Schedule::Online,
        masks: false,
        mixed_sizes: true,
        boundaries: false,
        obeys: ONLINE_FISTA,
        parts: parts!(fista_spatial, ocdl1),
        account: Facts::ocdl1,
    }
    /// FISTA in the frequency domain, sparse history, online (Liu et al. 2017).
    Ocdl2 = "ocdl2" {
        text: "Online: FISTA in the frequency domain, sparse history (Liu et al. 2017)",
        schedule: Schedule::Online,
        masks: false,
        mixed_sizes: false,
        boundaries: false,
        obeys: ONLINE_FISTA,
        parts: parts!(fista_frequency, ocdl2),
        account: Facts::ocdl2,
    }
    /// Stochastic gradient steps, no history, online (Liu et al. 2018).
    Sgd = "sgd" {
        text: "Online: stochastic gradient steps, no history, any sample sizes (Liu et al. 2018)",
        schedule: Schedule::Online,
        masks: true,
        mixed_sizes: true,
        boundaries: true,
        obeys: &[Part::ActiveSet, Part::Steps],
        parts: parts!(active_set, sgd),
        account: Facts::sgd,
    }
    /// A history of one filter at a time, by components of samples, online (Veshki and Vorobyov 2023).
    Aocdl = "aocdl" {
        text: "Online: a history of single filters, K (2m-1)^2, any sample sizes (Veshki and Vorobyov 2023)",
        schedule: Schedule::Online,
        masks: true,
        mixed_sizes: true,
        boundaries: true,
        obeys: &[Part::ActiveSet, Part::Sweeps, Part::SweepTolerance],
        parts: parts!(active_set, aocdl),
        account: Facts::aocdl,
    }
    /// Filters that depend on the sample, made of base filters, online (Wang et al. 2018, ICML).
    Scsc = "scsc" {
        text: "Online: filters that depend on the sample, of R base filters, any sample sizes (Wang et al. 2018)",
        schedule: Schedule::Online,
        masks: true,
        mixed_sizes: true,
        boundaries: true,
        obeys: &[Part::ActiveSet, Part::Sweeps, Part::SweepTolerance, Part::Lags, Part::BaseFilters],
        parts: parts!(sample_filters, scsc),
        account: Facts::scsc,
    }
    /// Sparse coding of patches, not convolutional, online (Algorithm 1; Mairal et al. 2010).
    Osc = "osc" {
        text: "Online sparse coding of patches, Algorithm 1: not convolutional (Mairal et al. 2010)",
        schedule: Schedule::Patches,
        masks: false,
        mixed_sizes: true,
        boundaries: false,
        obeys: &[Part::Sweeps],
        parts: None,
        account: Facts::osc,
    }
}

const BATCH_ADMM: &[Part] = &[Part::Stopping, Part::Admm, Part::UpdateTolerance, Part::UpdateAdmm, Part::Batch];
const ONLINE_FISTA: &[Part] = &[Part::Iterations, Part::Stopping, Part::UpdateIterations, Part::UpdateTolerance];

fn active_set<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    if to.active_set.coder == CoderKind::Omp {
        return Ok(Box::new(Omp::new(dictionary, to.beta, to.boundary, to.active_set.clone())?));
    }
    if to.active_set.joint {
        return Ok(Box::new(Joint::new(dictionary, to.beta, to.tol, to.boundary, to.active_set.clone())?));
    }
    Ok(Box::new(ActiveSet::new(dictionary, to.beta, to.tol, to.boundary, to.active_set.clone())?))
}

fn admm<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    Ok(Box::new(Admm::new(dictionary, to.beta, to.tol, to.coder.clone())?))
}

fn masked<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    Ok(Box::new(Masked::new(dictionary, to.beta, to.tol, to.coder.clone())?))
}

fn deconvnet<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    Ok(Box::new(coder::Deconvnet::new(dictionary, to.beta, to.tol, to.coder.clone())?))
}

fn fista_spatial<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    Ok(Box::new(Fista::new(dictionary, to.beta, to.tol, Space::Spatial, to.coder.clone())?))
}

fn fista_frequency<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    Ok(Box::new(Fista::new(dictionary, to.beta, to.tol, Space::Frequency, to.coder.clone())?))
}

fn block_descent<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    let update = BlockDescent::new(to.block_descent.clone(), to.boundary, to.seed);
    Box::new(update.loss(to.loss).constrained(to.filters.clone()))
}

fn ocsc_paper<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(OcscPaper::new(to.update.clone()))
}

fn deconvnet_update<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(update::Deconvnet::new(to.update.clone()))
}

fn fcsc<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Fcsc::new(to.update.clone()))
}

fn ffcsc<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Ffcsc::new(to.update.clone()))
}

fn cbpdn<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Cbpdn::new(to.update.clone()))
}

fn consensus<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Consensus::new(to.update.clone()))
}

fn ocdl1<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Ocdl1::new(to.update.clone()))
}

fn ocdl2<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Ocdl2::new(to.update.clone()))
}

fn sgd<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Sgd::new(to.update.clone(), to.boundary))
}

fn aocdl<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Aocdl::new(to.block_descent.clone(), to.boundary))
}

fn sample_filters<T: Real>(dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
    let inner = active_set(dictionary, to)?;
    Ok(Box::new(SampleFilters::new(inner, dictionary, to.n_base, to.tol, to.boundary)))
}

fn scsc<T: Real>(to: &UpdatingConfig) -> Box<dyn Update<T>> {
    Box::new(Scsc::new(to.block_descent.clone(), to.boundary, to.seed))
}

impl Method {
    /// Returns the name in options and files.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns one line for a list of methods.
    pub fn description(self) -> &'static str {
        self.row().text
    }

    /// Returns when it forgets and when it updates the dictionary.
    pub fn schedule(self) -> Schedule {
        self.row().schedule
    }

    /// Returns whether all codes are kept and the dictionary is updated once per pass ([`crate::learner::Batch`]).
    pub fn is_batch(self) -> bool {
        self.schedule() == Schedule::Batch
    }

    /// Returns whether samples may have unobserved values.
    pub fn takes_masks(self) -> bool {
        self.row().masks
    }

    /// Returns whether samples may differ in size; otherwise the statistics hold one.
    pub fn takes_mixed_sizes(self) -> bool {
        self.row().mixed_sizes
    }

    /// Returns whether samples may be continued in this way beyond their border.
    pub fn takes_boundary(self, boundary: Boundary) -> bool {
        self.row().boundaries || boundary == Boundary::Circular
    }

    /// Returns whether it obeys the settings of this part.
    pub fn obeys(self, part: Part) -> bool {
        part == Part::Every || self.row().obeys.contains(&part)
    }

    /// Makes the coder that it learns with.
    pub(crate) fn coder<T: Real>(self, dictionary: &Dictionary<T>, to: &CodingConfig) -> Result<Box<dyn Coder<T>>> {
        T::pick(&self.parts()?.coder)(dictionary, to)
    }

    /// Makes its update.
    pub(crate) fn update<T: Real>(self, to: &UpdatingConfig) -> Result<Box<dyn Update<T>>> {
        Ok(T::pick(&self.parts()?.update)(to))
    }

    fn parts(self) -> Result<&'static Parts> {
        self.row().parts.as_ref().ok_or_else(|| Error::invalid("method", "a convolutional one", self))
    }

    /// Returns how much memory learning holds.
    pub(crate) fn account(self, facts: &Facts) -> Memory {
        (self.row().account)(facts)
    }
}

/// Makes the coder for new data. All methods but one solve the same problem, for which one coder is the fastest; the filters of `scsc`
/// depend on the sample.
pub(crate) fn fastest_coder<T: Real>(
    method: Method,
    dictionary: &Dictionary<T>,
    to: &CodingConfig,
) -> Result<Box<dyn Coder<T>>> {
    let method = if method == Method::Scsc { method } else { Method::Ocsc };
    method.coder(dictionary, to)
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let names = || Method::ALL.map(Method::name).join(", ");
        Method::ALL
            .into_iter()
            .find(|method| method.name() == name)
            .ok_or_else(|| Error::invalid("method", format!("one of {}", names()), name))
    }
}
