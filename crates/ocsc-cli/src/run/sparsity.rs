//! How sparse codes are, in words: as a share of the values, and whether another beta would do better.

use crate::args::CodeArgs;
use crate::console::{Console, share as part};
use crate::ranks::Ranks;
use anyhow::Result;
use ocsc::beta::{BetaMax, DEFAULT_RATIO};
use ocsc::comm::broadcast;
use ocsc::{Config, Dictionary, Real, Samples, Sparsity};

/// Returns the non-zeros of a typical code: `131.4 per sample (1.3 % of the values)`.
pub(crate) fn nonzeros(mean: f64, share: f64) -> String {
    format!("{mean:.1} per sample ({} of the values)", percent(share))
}

/// Returns a number with six digits, without a row of zeros before or behind them.
pub(crate) fn digits(number: f64) -> String {
    match number.abs() {
        size if (1e-4..1e7).contains(&size) => {
            let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
            rounded.to_string()
        }
        _ => format!("{number:.5e}"),
    }
}

/// Returns a share in percent, with two digits or more.
pub(crate) fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent >= 1.0 || percent == 0.0 => format!("{percent:.1} %"),
        percent if percent >= 0.1 => format!("{percent:.2} %"),
        percent => format!("{percent:.1e} %"),
    }
}

/// Returns whether codes are warned of, with a ratio to try that depends on the largest useful beta.
pub(crate) fn needs_beta_max(sparsity: &Sparsity) -> bool {
    sparsity.is_mostly_empty() || sparsity.is_dense()
}

/// Warns of codes that are mostly empty or hardly sparse. `beta_max` is asked for where it would tell why.
pub(crate) fn warn(sparsity: &Sparsity, beta: f64, beta_max: impl FnOnce() -> Option<BetaMax>, console: &Console) {
    if let Some(warning) = warning(sparsity, beta, beta_max, false) {
        console.say(warning);
    }
}

/// Warns as [`warn`] does of the codes of a run that began with random filters. `beta_max` is that of patches: where they would fire,
/// it is the filters that do not fit.
pub(crate) fn warn_of_random_start(
    sparsity: &Sparsity,
    beta: f64,
    beta_max: impl FnOnce() -> Option<BetaMax>,
    console: &Console,
) {
    if let Some(warning) = warning(sparsity, beta, beta_max, true) {
        console.say(warning);
    }
}

fn warning(
    sparsity: &Sparsity,
    beta: f64,
    beta_max: impl FnOnce() -> Option<BetaMax>,
    from_random: bool,
) -> Option<String> {
    let ratio = DEFAULT_RATIO;
    // Of the largest useful beta, if that is known.
    let used = |of: Option<BetaMax>| of.filter(|of| of.median > 0.0).map(|of| beta / of.median);
    if sparsity.is_mostly_empty() {
        let empty = part(sparsity.empty, sparsity.codes, "code", ["is", "are"]);
        return Some(match beta_max() {
            Some(BetaMax { median, .. }) if beta > median => {
                format!(
                    "warning: beta {} is above beta_max {} of a typical sample: {empty} all zeros; try --beta-ratio {ratio}",
                    digits(beta),
                    digits(median)
                )
            }
            Some(_) if from_random => format!(
                "warning: {empty} all zeros, as the filters are hardly other than the random ones they began as; try --init patches"
            ),
            of => format!(
                "warning: beta {} is large for these data: {empty} all zeros; try --beta-ratio {}, or a smaller one",
                digits(beta),
                smaller(used(of))
            ),
        });
    }
    let share = percent(sparsity.share());
    sparsity.is_dense().then(|| {
        format!(
            "warning: beta {} is small for these data: the codes have as many non-zeros as {share} of the values; try \
             --beta-ratio {}, or a larger one",
            digits(beta),
            larger(used(beta_max()))
        )
    })
}

/// How near two ratios are that are the same but for rounding.
const SAME: f64 = 0.01;

/// Returns a ratio to try that is larger than the one used: the default, or twice as much.
fn larger(used: Option<f64>) -> String {
    match used.filter(|used| *used >= DEFAULT_RATIO * (1.0 - SAME)) {
        // With a ratio of 1 all codes are zeros.
        Some(used) => two_digits((2.0 * used).min(0.5 + 0.5 * used)),
        None => DEFAULT_RATIO.to_string(),
    }
}

/// Returns a ratio to try that is smaller than the one used: the default, or half as much.
fn smaller(used: Option<f64>) -> String {
    match used.filter(|used| *used <= DEFAULT_RATIO * (1.0 + SAME)) {
        Some(used) => two_digits(0.5 * used),
        None => DEFAULT_RATIO.to_string(),
    }
}

fn two_digits(number: f64) -> String {
    digits(format!("{number:.1e}").parse().unwrap_or(number))
}

/// Returns the settings with the beta that the call asks for as a fraction of the largest useful one for its samples; the first
/// of several processes chooses.
pub(crate) fn with_beta<T: Real>(
    args: &CodeArgs,
    config: Config,
    dictionary: &Dictionary<T>,
    samples: &dyn Samples<T>,
    ranks: &Ranks,
    console: &Console,
) -> Result<Config> {
    let Some(ratio) = args.beta_ratio() else { return Ok(config) };
    let numbers = match ranks.is_first() {
        true => BetaMax::of_filters(&config, dictionary, samples, false)
            .map(|of| [of.median, of.samples as f64].iter().flat_map(|n| n.to_le_bytes()).collect()),
        false => Ok(Vec::new()),
    };
    let numbers = broadcast(ranks.comm(), numbers)?;
    let number = |i: usize| numbers[8 * i..].first_chunk().map_or(0.0, |n| f64::from_le_bytes(*n));
    let (median, samples) = (number(0), number(1) as usize);
    let config = Config { beta: ratio * median, ..config };
    config.check_values()?;
    say_beta(ratio, config.beta, median, samples, console);
    Ok(config)
}

/// Says how beta was chosen.
pub(crate) fn say_beta(ratio: f64, beta: f64, median: f64, samples: usize, console: &Console) {
    let these = if samples == 1 { "of 1 sample".to_owned() } else { format!("the median of {samples} samples") };
    console.say(format!(
        "beta {} = {ratio} of {}, the smallest beta with all-zero codes ({these}); a larger beta than that leaves most codes all \
         zeros",
        digits(beta),
        digits(median)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(nonzeros(131.4, 0.0131), "131.4 per sample (1.3 % of the values)");
        assert_eq!([percent(0.0), percent(0.0025), percent(0.5)], ["0.0 %", "0.25 %", "50.0 %"]);
        assert_eq!(percent(3e-6), "3.0e-4 %");
        assert_eq!([digits(0.1 + 0.2), digits(6.123456e-12), digits(12345.678)], ["0.3", "6.12346e-12", "12345.7"]);
    }

    #[test]
    fn warnings() {
        let sparse = |empty, nonzeros| Sparsity { codes: 10, empty, nonzeros, values: 1000 };
        assert_eq!(warning(&sparse(5, 20), 1.0, || None, true), None);
        let empty = warning(&sparse(9, 20), 1.0, || None, false).unwrap();
        assert!(empty.contains("9 of 10 codes are all zeros") && empty.contains("try --beta-ratio 0.1"), "{empty}");
        let dense = warning(&sparse(0, 620), 0.01, || None, true).unwrap();
        assert!(dense.contains("62.0 % of the values") && dense.contains("--beta-ratio 0.1,"), "{dense}");
        // Nobody is advised to try what was tried.
        assert_eq!(
            [0.05, 0.0999999, 0.1, 0.13, 0.9].map(|used| larger(Some(used))),
            ["0.1", "0.2", "0.2", "0.26", "0.95"]
        );
        assert_eq!([0.3, 0.1000001, 0.1, 0.013].map(|used| smaller(Some(used))), ["0.1", "0.05", "0.05", "0.0065"]);
    }
}
