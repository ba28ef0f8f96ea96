//! A signal at another rate: y(n) = sum_k x(k) h(n p / q - k), with h a sinc under a Kaiser window.
//!
//! Own code and not a crate: those that resample work on streams, with a delay and a state, and a window in the middle of
//! a recording would differ from the same stretch of the whole. The formula has no state, so that every window is the
//! slice of the resampled recording, to rounding errors.
//!
//! h passes 0.9 of the lower of the two Nyquist frequencies, and what would alias is at least 100 dB down: 64 zero
//! crossings on each side, beta = 10 (Kaiser's formulas; Oppenheim and Schafer, "Discrete-Time Signal Processing", 7.5).
//! Outside of the recording the signal is zero.
//!
//! The values n p / q have q different fractions, so there are q rows of values of h, and an output value is one product of such a row
//! with the input. Rows are made once and used by all windows, unless the rates have so little in common that there are too many.

use std::f64::consts::PI;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

const CROSSINGS: usize = 64;
const BETA: f64 = 10.06;
/// The middle of the transition from 0.9 to 1.
const CUTOFF: f64 = 0.95;
/// Points of the table between two crossings; in between it is interpolated, which is exact to 1e-7.
const POINTS: usize = 2048;

/// The most numbers that the rows may take: 16 MB.
const MOST: u64 = 1 << 21;
/// Sums that are added side by side.
const LANES: usize = 8;

/// The resampler that was asked for last: most files of a set have one rate, and its tables take longer to make than a header to read.
static LAST: Mutex<Option<(u32, u32, Arc<Resampler>)>> = Mutex::new(None);

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
    /// For each fraction i / q the values h(i / q - k), from k = -(reach) to reach + 1, made when they are first needed.
    rows: OnceLock<Vec<f64>>,
}

impl Resampler {
    /// A resampler that others may use too; both rates are at least 1.
    pub(crate) fn shared(from: u32, to: u32) -> Arc<Self> {
        let mut last = LAST.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, _, known)) = last.as_ref().filter(|(a, b, _)| (*a, *b) == (from, to)) {
            return known.clone();
        }
        let made = Arc::new(Resampler::new(from, to));
        *last = Some((from, to, made.clone()));
        made
    }

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
        let scale = (to as f64 / from as f64).min(1.0);
        Resampler { p: from / divisor, q: to / divisor, table, scale, rows: OnceLock::new() }
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
        let reach = self.reach();
        let length = 2 * reach + 2;
        if self.q.saturating_mul(length as u64) > MOST {
            return self.directly(input, start, range);
        }
        let rows = self.rows.get_or_init(|| self.all_rows());
        let output = |n: usize| {
            let at = n as u128 * u128::from(self.p);
            let (whole, phase) = (at / u128::from(self.q), (at % u128::from(self.q)) as usize);
            let row = &rows[phase * length..][..length];
            // The input value that the row begins at, which may lie before those at hand.
            let first = whole as i128 - i128::from(start) - reach as i128;
            let left_out = (-first).clamp(0, length as i128) as usize;
            let from = first.clamp(0, input.len() as i128) as usize;
            self.scale * dot(&row[left_out..], &input[from..])
        };
        range.map(output).collect()
    }

    /// How many input values lie within reach of an output value on each side, at most.
    fn reach(&self) -> usize {
        (CROSSINGS as f64 / self.scale).ceil() as usize + 1
    }

    fn all_rows(&self) -> Vec<f64> {
        let reach = self.reach() as i64;
        let row = |phase: u64| {
            let fraction = phase as f64 / self.q as f64;
            (-reach..=reach + 1).map(move |k| self.kernel((k as f64 - fraction).abs() * self.scale))
        };
        (0..self.q).flat_map(row).collect()
    }

    /// The same by the formula itself.
    pub(crate) fn directly(&self, input: &[f64], start: u64, range: Range<usize>) -> Vec<f64> {
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

/// The product of as many numbers as both have.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len().min(b.len());
    let ((a, rest_a), (b, rest_b)) = (a[..n].as_chunks::<LANES>(), b[..n].as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f64>()
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
