//! The method table: each method is a coder, an update with its statistics, and a schedule.

use crate::config::Boundary;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A row of the method table (see the crate's front page).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The fast one: active-set coder, lag statistics, block coordinate descent, online.
    #[default]
    Ocsc,
    /// The paper's: ADMM coder, {C^p, b^p} with Sherman-Morrison, ADMM update, online.
    OcscPaper,
    /// Spatial gradients with continuation, for codes and filters, batch (Zeiler et al. 2010).
    Deconvnet,
    /// ADMM with a direct K x K solve per frequency, batch (Bristow et al. 2013).
    Fcsc,
    /// ADMM with a masked data term and cached factors, batch (Heide et al. 2015).
    Ffcsc,
    /// ADMM with iterated Sherman-Morrison over the codes, batch (Wohlberg 2016).
    Cbpdn,
    /// ADMM with one dictionary per sample, averaged, batch (Sorel and Sroubek 2016).
    Consensus,
    /// FISTA in the spatial domain, K M x K M history, online (Degraux et al. 2017).
    Ocdl1,
    /// FISTA in the frequency domain, sparse history, online (Liu et al. 2017).
    Ocdl2,
    /// Sparse coding of patches, not convolutional, online (Algorithm 1; Mairal et al. 2010).
    Osc,
}

impl Method {
    /// All of them, in the order of the table.
    pub const ALL: [Method; 10] = [
        Method::Ocsc,
        Method::OcscPaper,
        Method::Deconvnet,
        Method::Fcsc,
        Method::Ffcsc,
        Method::Cbpdn,
        Method::Consensus,
        Method::Ocdl1,
        Method::Ocdl2,
        Method::Osc,
    ];

    /// The name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Method::Ocsc => "ocsc",
            Method::OcscPaper => "ocsc-paper",
            Method::Deconvnet => "deconvnet",
            Method::Fcsc => "fcsc",
            Method::Ffcsc => "ffcsc",
            Method::Cbpdn => "cbpdn",
            Method::Consensus => "consensus",
            Method::Ocdl1 => "ocdl1",
            Method::Ocdl2 => "ocdl2",
            Method::Osc => "osc",
        }
    }

    /// One line for a list of methods.
    pub fn description(self) -> &'static str {
        match self {
            Method::Ocsc => "The fast engine: active-set coder, lag statistics, any sample sizes, any channels",
            Method::OcscPaper => "Algorithms 2 and 3 of the paper: one sample size, any channels",
            Method::Deconvnet => "Batch: spatial gradients with continuation (Zeiler et al. 2010)",
            Method::Fcsc => "Batch: ADMM, direct K x K solves per frequency (Bristow et al. 2013)",
            Method::Ffcsc => "Batch: ADMM, cached factors, takes masks (Heide et al. 2015)",
            Method::Cbpdn => "Batch: ADMM, iterated Sherman-Morrison over the codes (Wohlberg 2016)",
            Method::Consensus => "Batch: ADMM, one dictionary per sample, averaged (Sorel and Sroubek 2016)",
            Method::Ocdl1 => "Online: spatial FISTA, K M x K M history (Degraux et al. 2017)",
            Method::Ocdl2 => "Online: FISTA in the frequency domain, sparse history (Liu et al. 2017)",
            Method::Osc => "Online sparse coding of patches, Algorithm 1: not convolutional (Mairal et al. 2010)",
        }
    }

    /// Whether all codes are kept and the dictionary is updated once per pass ([`crate::learner::Batch`]).
    pub fn is_batch(self) -> bool {
        use Method::*;
        matches!(self, Deconvnet | Fcsc | Ffcsc | Cbpdn | Consensus)
    }

    /// Whether samples may have unobserved values.
    pub fn takes_masks(self) -> bool {
        matches!(self, Method::Ocsc | Method::Ffcsc)
    }

    /// Whether samples may differ in size; otherwise the statistics hold one.
    pub fn takes_mixed_sizes(self) -> bool {
        use Method::*;
        matches!(self, Ocsc | Deconvnet | Ocdl1 | Osc)
    }

    /// Whether it learns with codes without negative values, and with weights of the filters; only the active-set coder does.
    pub fn takes_signs_and_weights(self) -> bool {
        self == Method::Ocsc
    }

    /// Whether samples may be continued in this way beyond their border.
    pub fn takes_boundary(self, boundary: Boundary) -> bool {
        self == Method::Ocsc || boundary == Boundary::Circular
    }
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
