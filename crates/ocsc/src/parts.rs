//! The parts of a method, made for each scalar in this crate.
//!
//! Everything is generic over the scalar, so whoever makes a part compiles its kernels and FFTs. Made here, behind
//! `dyn`, they are compiled once, with the library, and not again by every program that uses it.

use crate::coder::{ActiveSet, Admm, Coder};
use crate::config::{CoderConfig, UpdateConfig};
use crate::learner::Learner;
use crate::update::{BlockDescent, Cbpdn, Consensus, Fcsc, Ocsc, Update};
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

macro_rules! parts {
    ($t:ident) => {
        impl Parts for $t {
            fn active_set(config: &Config, dictionary: &Dictionary<Self>, tol: f64) -> Result<Box<dyn Coder<Self>>> {
                let settings = config.active_set.clone();
                Ok(Box::new(ActiveSet::new(dictionary, config.beta, tol, config.boundary, settings)?))
            }

            fn learning_coder(config: &Config, dictionary: &Dictionary<Self>) -> Result<Box<dyn Coder<Self>>> {
                let (beta, tol) = (config.beta, config.tol);
                let coder = config.coder.clone();
                let batch = CoderConfig { max_iters: config.batch.code_iters, ..coder.clone() };
                Ok(match config.method {
                    Method::Ocsc => Self::active_set(config, dictionary, tol)?,
                    Method::OcscPaper => Box::new(Admm::new(dictionary, beta, tol, coder)?),
                    Method::Fcsc | Method::Cbpdn | Method::Consensus => {
                        Box::new(Admm::new(dictionary, beta, tol, batch)?)
                    }
                    other => return Err(Error::invalid("method", "one with a convolutional coder", other)),
                })
            }

            fn update(config: &Config) -> Result<Box<dyn Update<Self>>> {
                let update = config.update.clone();
                let batch = UpdateConfig { max_iters: config.batch.update_iters, ..update.clone() };
                Ok(match config.method {
                    Method::Ocsc => {
                        Box::new(BlockDescent::new(config.block_descent.clone(), config.boundary, config.seed))
                    }
                    Method::OcscPaper => Box::new(Ocsc::new(update)),
                    Method::Fcsc => Box::new(Fcsc::new(batch)),
                    Method::Cbpdn => Box::new(Cbpdn::new(batch)),
                    Method::Consensus => Box::new(Consensus::new(batch)),
                    other => return Err(Error::invalid("method", "one with a convolutional update", other)),
                })
            }

            fn osc(config: Config, _dictionary: Dictionary<Self>) -> Result<Box<dyn Learner<Self>>> {
                Err(Error::invalid("method", "another", config.method))
            }
        }
    };
}

parts!(f32);
parts!(f64);
