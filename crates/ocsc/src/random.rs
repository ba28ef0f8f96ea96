//! Every random stream of a run. All are drawn from one seed, and no two overlap.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The stream of the initial dictionary.
pub(crate) const INITIAL: u64 = 0;
/// The stream of the places that an initial dictionary takes its patches from.
pub(crate) const PATCHES: u64 = u64::MAX;

/// The stream of samples that are spread over a set.
pub(crate) const SPREAD: u64 = u64::MAX - 1;
/// The stream of values that are hidden.
pub(crate) const HIDDEN: u64 = u64::MAX - 2;

/// Returns the stream of a pass's visiting order.
pub(crate) fn visits(pass: usize) -> u64 {
    1 + pass as u64
}

/// Returns the stream that draws new filters at an update.
pub(crate) fn reseeding(update: usize) -> u64 {
    1 << 63 | update as u64
}

/// Returns a stream of the seed.
pub(crate) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}
