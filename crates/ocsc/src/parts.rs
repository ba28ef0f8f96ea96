//! The parts of a method, made for each scalar in this crate.
//!
//! Everything is generic over the scalar, so whoever makes a part compiles its kernels and FFTs. Made here, behind
//! `dyn`, they are compiled once, with the library, and not again by every program that uses it.

use crate::coder::{self, ActiveSet, Admm, Coder, Fista, Masked, Space};
use crate::config::{CoderConfig, UpdateConfig};
use crate::learner::Learner;
use crate::osc::Osc;
use crate::update::{self, BlockDescent, Cbpdn, Consensus, Fcsc, Ffcsc, Ocdl1, Ocdl2, Ocsc, Update};
use crate::{Config, Dictionary, Error, Method, Real, Result};

/// Makes coders, updates and learners for one scalar. Public only as a part of [`Real`].
pub trait Parts: Sized {
    /// The active-set coder, with this tolerance.
    fn active_set(config: &Config, dictionary: &Dictionary<Self>, tol: f64) -> Result<Box<dyn Coder<Self>>>
    where
        Self: Real;

    /// The coder that the method learns with.
    fn learning_coder(config: &Config, dictionary: &Dictionary<Self>) -> Result<Box<dyn Coder<Self>>>
    where
        Self: Real;

    /// The method's update.
    fn update(config: &Config) -> Result<Box<dyn Update<Self>>>
    where
        Self: Real;

    /// Algorithm 1, on patches.
    fn osc(config: Config, dictionary: Dictionary<Self>) -> Result<Box<dyn Learner<Self>>>
    where
        Self: Real;
}

/// Algorithm 1 has a learner of its own.
fn not_convolutional() -> Error {
    Error::invalid("method", "a convolutional one", Method::Osc)
}

macro_rules! parts {
    ($t:ident) => {
        impl Parts for $t {
            fn active_set(config: &Config, dictionary: &Dictionary<Self>, tol: f64) -> Result<Box<dyn Coder<Self>>> {
                let settings = config.active_set.clone();
                Ok(Box::new(ActiveSet::new(dictionary, config.beta, tol, config.boundary, settings)?))
            }

            fn learning_coder(config: &Config, dictionary: &Dictionary<Self>) -> Result<Box<dyn Coder<Self>>> {
                let (beta, tol) = (config.beta, config.tol);
                let online = config.coder.clone();
                let batch = CoderConfig { max_iters: config.batch.code_iters, ..online.clone() };
                Ok(match config.method {
                    Method::Ocsc => Self::active_set(config, dictionary, tol)?,
                    Method::OcscPaper => Box::new(Admm::new(dictionary, beta, tol, online)?),
                    Method::Fcsc | Method::Cbpdn | Method::Consensus => {
                        Box::new(Admm::new(dictionary, beta, tol, batch)?)
                    }
                    Method::Ffcsc => Box::new(Masked::new(dictionary, beta, tol, batch)?),
                    Method::Deconvnet => Box::new(coder::Deconvnet::new(dictionary, beta, tol, batch)?),
                    Method::Ocdl1 => Box::new(Fista::new(dictionary, beta, tol, Space::Spatial, online)?),
                    Method::Ocdl2 => Box::new(Fista::new(dictionary, beta, tol, Space::Frequency, online)?),
                    Method::Osc => return Err(not_convolutional()),
                })
            }

            fn update(config: &Config) -> Result<Box<dyn Update<Self>>> {
                let online = config.update.clone();
                let batch = UpdateConfig { max_iters: config.batch.update_iters, ..online.clone() };
                Ok(match config.method {
                    Method::Ocsc => {
                        Box::new(BlockDescent::new(config.block_descent.clone(), config.boundary, config.seed))
                    }
                    Method::OcscPaper => Box::new(Ocsc::new(online)),
                    Method::Fcsc => Box::new(Fcsc::new(batch)),
                    Method::Cbpdn => Box::new(Cbpdn::new(batch)),
                    Method::Consensus => Box::new(Consensus::new(batch)),
                    Method::Ffcsc => Box::new(Ffcsc::new(batch)),
                    Method::Deconvnet => Box::new(update::Deconvnet::new(batch)),
                    Method::Ocdl1 => Box::new(Ocdl1::new(online)),
                    Method::Ocdl2 => Box::new(Ocdl2::new(online)),
                    Method::Osc => return Err(not_convolutional()),
                })
            }

            fn osc(config: Config, dictionary: Dictionary<Self>) -> Result<Box<dyn Learner<Self>>> {
                Ok(Box::new(Osc::with_dictionary(config, dictionary)?))
            }
        }
    };
}

parts!(f32);
parts!(f64);
