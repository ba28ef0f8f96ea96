//! One axis of a chart: its range, its ticks and their labels; `chart.rs` above draws them.
//!
//! Ticks are the round numbers a person would pick (1, 2 or 5 times a power of ten), few enough that their labels do not
//! collide at the width of a phone.

/// Beyond this magnitude differences overflow; no objective or time gets there.
const LARGEST: f64 = 1e300;

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Where, in the units of the data.
    pub(crate) value: f64,
    /// What stands beside it.
    pub(crate) label: String,
}

/// A linear or logarithmic range with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    log: bool,
    /// The ends of the range, as powers of ten if `log`.
    lo: f64,
    hi: f64,
    /// From the smallest to the largest, all inside the range.
    pub(crate) ticks: Vec<Tick>,
}

impl Axis {
    /// True if this axis can show `value`: finite, and positive on a logarithmic axis.
    pub(crate) fn shows(log: bool, value: f64) -> bool {
        value.abs() < LARGEST && (!log || value > 1.0 / LARGEST)
    }

    /// The axis that shows `values`, with at most `max_ticks + 1` ticks (`max_ticks` at least 4); `None` if it can show
    /// none of them.
    pub(crate) fn fit(values: impl Iterator<Item = f64>, log: bool, max_ticks: usize) -> Option<Axis> {
        let (lo, hi) = values
            .filter(|&v| Axis::shows(log, v))
            .map(|v| if log { v.log10() } else { v })
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if lo > hi {
            return None;
        }
        let (lo, hi) = if log { padded_log(lo, hi) } else { padded(lo, hi) };
        let ticks = if log { log_ticks(lo, hi, max_ticks) } else { linear_ticks(lo, hi, max_ticks) };
        Some(Axis { log, lo, hi, ticks })
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let v = if self.log { value.log10() } else { value };
        (v - self.lo) / (self.hi - self.lo)
    }
}

/// A little air around the data, and zero for what starts near it, such as time.
fn padded(lo: f64, hi: f64) -> (f64, f64) {
    let size = lo.abs().max(hi.abs());
    if hi - lo <= 1e-9 * size || size == 0.0 {
        let half = if size > 0.0 { 0.05 * size } else { 0.5 };
        return (lo - half, hi + half);
    }
    let air = 0.04 * (hi - lo);
    (if lo >= 0.0 && lo < 0.15 * hi { 0.0 } else { lo - air }, hi + air)
}

/// The same for powers of ten.
fn padded_log(lo: f64, hi: f64) -> (f64, f64) {
    let air = if hi - lo <= 1e-9 { 0.15 } else { 0.04 * (hi - lo) };
    (lo - air, hi + air)
}

/// The finest round step that fits: 1, 2 or 5 times a power of ten.
fn linear_ticks(lo: f64, hi: f64, max_ticks: usize) -> Vec<Tick> {
    let finest = ((hi - lo) / (max_ticks + 1) as f64).log10().floor() as i32;
    let steps = (finest..=finest + 2).flat_map(|e| [1.0, 2.0, 5.0].map(|f| (f * 10f64.powi(e), e)));
    let range = |step: f64| ((lo / step - 1e-9).ceil(), (hi / step + 1e-9).floor());
    let fits = |&(step, _): &(f64, i32)| range(step).1 - range(step).0 <= max_ticks as f64;
    let (step, exponent) = steps.into_iter().find(fits).unwrap_or((hi - lo, finest + 1));
    let (first, last) = range(step);
    let scientific = lo.abs().max(hi.abs()) >= 1e7 || exponent < -5;
    (0..=(last - first).max(0.0) as usize)
        .map(|i| {
            let value = (first + i as f64) * step;
            Tick { value, label: label(value, exponent, scientific) }
        })
        .collect()
}

/// The richest of a few round sets that still fits; over less than a factor of two or three, plain linear ticks.
fn log_ticks(lo: f64, hi: f64, max_ticks: usize) -> Vec<Tick> {
    let (first, last) = (lo.floor() as i32, hi.ceil() as i32);
    let inside = |v: &(f64, i32)| (lo - 1e-9..=hi + 1e-9).contains(&v.0.log10());
    let powers: Vec<_> = (first..=last).map(|e| (10f64.powi(e), e)).filter(inside).collect();
    let stride = powers.len().div_ceil(max_ticks + 1).max(1);
    let sparse: Vec<_> = powers.into_iter().step_by(stride).collect();
    let with = |factors: &[f64]| -> Vec<_> {
        (first..=last).flat_map(|e| factors.iter().map(move |f| (f * 10f64.powi(e), e))).filter(inside).collect()
    };
    let best = [sparse, with(&[1.0, 3.0]), with(&[1.0, 2.0, 5.0])]
        .into_iter()
        .filter(|set| set.len() <= max_ticks + 1)
        .max_by_key(Vec::len)
        .unwrap_or_default();
    if best.len() < 3 {
        return linear_ticks(10f64.powf(lo), 10f64.powf(hi), max_ticks);
    }
    let scientific = best.iter().any(|(_, e)| !(-4..=5).contains(e));
    best.into_iter().map(|(value, e)| Tick { value, label: label(value, e, scientific) }).collect()
}

/// `value` to the digit of 10^`exponent`.
fn label(value: f64, exponent: i32, scientific: bool) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let text = if scientific {
        let leading = (value.abs().log10() + 1e-9).floor() as i32;
        let digits = (leading - exponent).max(0) as usize;
        let (mantissa, power) = split_exponent(&format!("{value:.digits$e}"));
        let power: String = power.chars().map(superscript).collect();
        if mantissa == "1" { format!("10{power}") } else { format!("{mantissa}×10{power}") }
    } else {
        let digits = (-exponent).max(0) as usize;
        grouped(&format!("{value:.digits$}"))
    };
    text.replace('-', "−")
}

fn split_exponent(text: &str) -> (String, String) {
    match text.split_once('e') {
        Some((mantissa, power)) => (mantissa.into(), power.into()),
        None => (text.into(), "0".into()),
    }
}

fn superscript(c: char) -> char {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    c.to_digit(10).map_or('⁻', |d| DIGITS[d as usize])
}

/// Thin spaces between groups of three digits, from five digits on.
fn grouped(text: &str) -> String {
    let whole = text.split('.').next().unwrap_or(text);
    let digits = whole.trim_start_matches('-').len();
    if digits < 5 {
        return text.into();
    }
    let sign = whole.len() - digits;
    let mut out = String::with_capacity(text.len() + 4);
    for (i, c) in text.chars().enumerate() {
        if i > sign && i < whole.len() && (whole.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(values: &[f64], log: bool) -> Vec<String> {
        let axis = Axis::fit(values.iter().copied(), log, 5).unwrap();
        axis.ticks.into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_the_round_numbers_a_person_would_pick() {
        assert_eq!(labels(&[0.0, 9.8], false), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&[1043.0, 1187.0], false), ["1050", "1100", "1150"]);
        assert_eq!(labels(&[-0.31, 0.4], false), ["−0.2", "0.0", "0.2", "0.4"].map(|l| l.replace("0.0", "0")));
        assert_eq!(labels(&[0.0, 70_000.0], false)[1], "20\u{202f}000");
        assert_eq!(labels(&[0.0, 3e9], false), ["0", "10⁹", "2×10⁹", "3×10⁹"]);
        assert_eq!(labels(&[0.01, 1000.0], true), ["0.01", "0.1", "1", "10", "100", "1000"]);
        assert_eq!(labels(&[1e-9, 1e9], true), ["10⁻⁹", "10⁻⁵", "10⁻¹", "10³", "10⁷"]);
        assert_eq!(labels(&[2.0, 60.0], true), ["2", "5", "10", "20", "50"]);
        assert_eq!(labels(&[1000.0, 1400.0], true), ["1000", "1100", "1200", "1300", "1400"]);
    }

    #[test]
    fn one_value_or_none() {
        assert_eq!(Axis::fit([].into_iter(), false, 5), None);
        assert_eq!(Axis::fit([f64::NAN, f64::INFINITY].into_iter(), false, 5), None);
        assert_eq!(Axis::fit([0.0, -1.0].into_iter(), true, 5), None);
        for (value, log) in [(0.0, false), (7.0, false), (-3e-12, false), (7.0, true)] {
            let axis = Axis::fit([value].into_iter(), log, 5).unwrap();
            assert!((axis.position(value) - 0.5).abs() < 0.01, "{value}");
            assert!(axis.ticks.len() >= 2, "{value}: {:?}", axis.ticks);
        }
    }

    proptest! {
        #[test]
        fn ticks_are_few_ordered_inside_and_distinct(
            a in -1e9f64..1e9, size in -12f64..9.0, log in any::<bool>(), max in 4usize..9
        ) {
            let a = if log { a.abs() + 1e-6 } else { a };
            let values = [a, a + 10f64.powf(size)];
            let axis = Axis::fit(values.into_iter(), log, max).unwrap();
            prop_assert!((2..=max + 1).contains(&axis.ticks.len()), "{:?}", axis.ticks);
            for v in values {
                prop_assert!((0.0..=1.0).contains(&axis.position(v)));
            }
            for pair in axis.ticks.windows(2) {
                prop_assert!(pair[0].value < pair[1].value);
                prop_assert!(pair[0].label != pair[1].label, "{:?}", axis.ticks);
            }
            for tick in &axis.ticks {
                prop_assert!((-1e-6..=1.0 + 1e-6).contains(&axis.position(tick.value)), "{tick:?}");
            }
        }
    }
}
