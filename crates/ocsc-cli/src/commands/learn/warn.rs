//! What a run is warned of: too few updates before it, and codes of the wrong sparsity after it.

use crate::args::Learn;
use crate::console::{Console, counted};
use crate::run::sparsity;
use ocsc::beta::BetaMax;
use ocsc::{Config, Learner, Real, Samples, Sparsity};

/// Filters of fewer updates than this are hardly other than those at the start.
const FEW_UPDATES: usize = 20;

/// Says how a run can make more updates that makes too few of them.
pub(super) fn of_few_updates(args: &Learn, in_pieces: bool, config: &Config, n_samples: usize, console: &Console) {
    let updates = n_samples.div_ceil(config.batch_size.max(1)).saturating_mul(config.passes);
    if updates >= FEW_UPDATES || config.method.is_batch() || args.resume.is_some() {
        return;
    }
    let tile =
        if !in_pieces && args.data.reading.crop.is_none() { "--tile SIZE (pieces of large samples) or " } else { "" };
    console.say(format!(
        "{} in all, of which filters learn little: {tile}more --passes give more",
        counted(updates, "update")
    ));
}

/// Warns of codes of the last pass that are mostly empty or hardly sparse; `whole` are the samples, not pieces of them.
pub(super) fn of_sparsity<T: Real>(
    args: &Learn,
    in_pieces: bool,
    learner: &dyn Learner<T>,
    codes: &Sparsity,
    whole: &dyn Samples<T>,
    console: &Console,
) {
    // Where nothing happens, pieces have no code, and that is right.
    if in_pieces && codes.is_mostly_empty() && codes.empty < codes.codes {
        return;
    }
    let (config, filter) = (learner.config(), learner.dictionary().shape());
    let beta_max = || BetaMax::of_patches::<T>(config, filter, whole, false).ok();
    if args.resume.is_none() && args.model.init == "random" {
        sparsity::warn_of_random_start(codes, config.beta, beta_max, console);
    } else {
        sparsity::warn(codes, config.beta, beta_max, console);
    }
}
