//! The parts of a method, made for each scalar in this crate.
//!
//! Everything is generic over the scalar, so whoever makes a part compiles its kernels and FFTs. Made here, behind
//! `dyn`, they are compiled once, with the library, and not again by every program that uses it.

use crate::coder::{ActiveSet, Admm, Coder};
use crate::update::{BlockDescent, Ocsc, Update};
use crate::{Config, Dictionary, Real, Result};

/// Makes coders and updates for one scalar. Public only as a part of [`Real`].
pub trait Parts: Sized {
    /// The active-set coder, with this tolerance.
    fn active_set(config: &Config, dictionary: &Dictionary<Self>, tol: f64) -> Result<Box<dyn Coder<Self>>>
    where
        Self: Real;

    /// The ADMM coder.
    fn admm(config: &Config, dictionary: &Dictionary<Self>) -> Result<Box<dyn Coder<Self>>>
    where
        Self: Real;

    /// Block coordinate descent on lags.
    fn block_descent(config: &Config) -> Box<dyn Update<Self>>
    where
        Self: Real;

    /// The paper's update.
    fn ocsc(config: &Config) -> Box<dyn Update<Self>>
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

            fn admm(config: &Config, dictionary: &Dictionary<Self>) -> Result<Box<dyn Coder<Self>>> {
                Ok(Box::new(Admm::new(dictionary, config.beta, config.tol, config.coder.clone())?))
            }

            fn block_descent(config: &Config) -> Box<dyn Update<Self>> {
                Box::new(BlockDescent::new(config.block_descent.clone(), config.boundary, config.seed))
            }

            fn ocsc(config: &Config) -> Box<dyn Update<Self>> {
                Box::new(Ocsc::new(config.update.clone()))
            }
        }
    };
}

parts!(f32);
parts!(f64);
