//! A signal at another rate: y(n) = sum_k x(k) h(n p / q - k), with h a sinc under a Kaiser window.
//!
//! Own code and not a crate: those that resample work on streams, with a delay and a state, and a window in the middle of
//! a recording would differ from the same stretch of the whole. The formula has no state, so that every window is the
//! slice of the resampled recording, to rounding errors.
//!
//! h passes 0.9 of the lower of the two Nyquist frequencies, and what would alias is at least 100 dB down: 64 zero
//! crossings on each side, beta = 10 (Kaiser's formulas; Oppenheim and Schafer, "Discrete-Time Signal Processing", 7.5).
//! Outside of the recording the signal is zero.

use std::f64::consts::PI;
use std::ops::Range;

const CROSSINGS: usize = 64;
const BETA: f64 = 10.06;
/// The middle of the transition from 0.9 to 1.
const CUTOFF: f64 = 0.95;
/// Points of the table between two crossings; in between it is interpolated, which is exact to 1e-7.
const POINTS: usize = 2048;

/// From one rate to another.
#[derive(Debug)]
pub(crate) struct Resampler {
    /// The step of one output value in input values is p / q.
    p: u64,
    q: u64,
    /// h(u) at u = i / POINTS, for the lower of the two rates.
    table: Vec<f64>,
    /// The lower rate over the input's.
    scale: f64,
}

impl Resampler {
    /// Both rates are at least 1.
    pub(crate) fn new(from: u32, to: u32) -> Self {
        let (from, to) = (u64::from(from.max(1)), u64::from(to.max(1)));
        let divisor = gcd(from, to);
        let value = |i: usize| {
            let u = i as f64 / POINTS as f64;
            let x = PI * CUTOFF * u;
            let sinc = if i == 0 { 1.0 } else { x.sin() / x };
            let edge = (u / CROSSINGS as f64).min(1.0);
            // Without the small step at the window's edge, where rounding would decide on which side a value falls.
            CUTOFF * sinc * (bessel(BETA * (1.0 - edge * edge).sqrt()) - 1.0) / (bessel(BETA) - 1.0)
        };
        let table = (0..=CROSSINGS * POINTS).map(value).collect();
        Resampler { p: from / divisor, q: to / divisor, table, scale: (to as f64 / from as f64).min(1.0) }
    }

    /// How many output values stand for so many input values.
    pub(crate) fn output_len(&self, input: u64) -> u64 {
        u64::try_from((u128::from(input) * u128::from(self.q)).div_ceil(u128::from(self.p))).unwrap_or(u64::MAX)
    }

    /// The input values that output values `range` depend on, of `total`.
    pub(crate) fn needs(&self, range: &Range<usize>, total: u64) -> Range<u64> {
        let reach = (CROSSINGS as f64 / self.scale).ceil() as u64 + 1;
        let (first, last) = (self.place(range.start).0, self.place(range.end).0);
        first.saturating_sub(reach).min(total)..last.saturating_add(reach).min(total)
    }

    /// Output values `range`, from the input values that they need, of which the first is number `start`.
    pub(crate) fn resample(&self, input: &[f64], start: u64, range: Range<usize>) -> Vec<f64> {
        let reach = CROSSINGS as f64 / self.scale;
        let output = |n: usize| {
            let (whole, fraction) = self.place(n);
            // The centre, counted from the first input value at hand; before it where the recording is cut there.
            let centre = (whole as f64 - start as f64) + fraction;
            let from = (centre - reach).ceil().max(0.0) as usize;
            let taps = input.iter().enumerate().skip(from).take((2.0 * reach) as usize + 2);
            self.scale * taps.map(|(k, x)| x * self.kernel((k as f64 - centre).abs() * self.scale)).sum::<f64>()
        };
        range.map(output).collect()
    }

    /// Where output value `n` lies among the input values: the whole part, and the rest.
    fn place(&self, n: usize) -> (u64, f64) {
        let at = n as u128 * u128::from(self.p);
        let q = u128::from(self.q);
        (u64::try_from(at / q).unwrap_or(u64::MAX), (at % q) as f64 / self.q as f64)
    }

    fn kernel(&self, u: f64) -> f64 {
        let at = u * POINTS as f64;
        let i = at as usize;
        match self.table.get(i..).unwrap_or_default() {
            [a, b, ..] => a + (b - a) * (at - i as f64),
            _ => 0.0,
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// I_0, the modified Bessel function, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 {
        term *= (x / (2.0 * k)) * (x / (2.0 * k));
        sum += term;
        k += 1.0;
    }
    sum
}
