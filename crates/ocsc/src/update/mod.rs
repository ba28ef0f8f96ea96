//! Dictionary updates: given statistics, find the dictionary.
//!
//! Every update solves, over the unit balls and for the codes absorbed so far,
//!
//! ```text
//! min over D   sum_i 1/2 || x_i - sum_k D_k * Z_ik ||^2       with ||D_k||_2 <= 1
//! ```
//!
//! from statistics that it owns. Updates see samples and codes only to absorb them, and know nothing of coders.

mod admm;
mod aocdl;
mod base_filters;
mod batched;
mod block_descent;
mod cbpdn;
mod cholesky;
mod consensus;
mod deconvnet;
mod fcsc;
mod ffcsc;
mod fista;
mod forgetting;
mod ocdl1;
mod ocdl2;
mod ocsc_paper;
mod rank_one;
mod recenter;
mod reseed;
mod scsc;
mod settings;
mod sgd;
mod sweep;

pub use aocdl::Aocdl;
pub use block_descent::BlockDescent;
pub(crate) use block_descent::Share;
pub use cbpdn::Cbpdn;
pub use consensus::Consensus;
pub use deconvnet::Deconvnet;
pub use fcsc::Fcsc;
pub use ffcsc::Ffcsc;
pub use forgetting::Forgetting;
pub use ocdl1::Ocdl1;
pub use ocdl2::Ocdl2;
pub use ocsc_paper::OcscPaper;
pub(crate) use reseed::Patch;
pub use scsc::Scsc;
pub(crate) use settings::UpdatingConfig;
pub use settings::{BlockDescentConfig, UpdateConfig};
pub use sgd::Sgd;

use crate::state::State;
use crate::{Code, Dictionary, Real, Result, Sample};

/// A sample, its code, and the filters of the code.
pub type Absorbed<'a, T> = (&'a Sample<T>, &'a Code<T>, &'a Dictionary<T>);

/// Absorbs samples with their codes, and updates the dictionary.
pub trait Update<T: Real>: Send {
    /// Adds one sample with its code to the statistics.
    ///
    /// `dictionary` is the current one; the first call fixes the samples' shape where the statistics depend on it.
    fn absorb(&mut self, sample: &Sample<T>, code: &Code<T>, dictionary: &Dictionary<T>) -> Result<()>;

    /// Adds several samples with their codes, each with the filters that made it: the same as one after the other.
    fn absorb_all(&mut self, batch: &[Absorbed<'_, T>]) -> Result<()> {
        batch.iter().try_for_each(|(sample, code, dictionary)| self.absorb(sample, code, dictionary))
    }

    /// Forgets everything absorbed so far; what the next update starts from stays.
    fn forget(&mut self);

    /// Improves the dictionary for everything absorbed so far; it stays feasible.
    fn update(&mut self, dictionary: &mut Dictionary<T>) -> Updated;

    /// Returns all that a later [`Update::restore`] needs to go on bit for bit.
    fn state(&self) -> State<'_>;

    /// Takes over a saved state.
    fn restore(&mut self, state: &State<'_>, dictionary: &Dictionary<T>) -> Result<()>;
}

/// Tells what an update did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Updated {
    /// Iterations made.
    pub iterations: usize,
    /// Of an ADMM: the primal and dual residuals at the end, relative to the dictionary's norm.
    pub residuals: Option<(f64, f64)>,
    /// Of a descent: the norm of D - project(D - gradient / L) in the last sweep, relative to the dictionary's norm; zero
    /// at stationary points only.
    pub stationarity: Option<f64>,
    /// Filters that no code used, or that were shifted copies of others, and that were replaced by patches of the newest samples.
    pub reseeded: usize,
    /// Filters that were moved so that their energy is in the middle.
    pub recentered: usize,
}
