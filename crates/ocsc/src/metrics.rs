//! Numbers that say how good a code, a reconstruction or a dictionary is. Everything is summed in `f64`.

use crate::Boundary;
use crate::preprocess::window::{Border, gaussian, local_mean};
use crate::{Code, Dictionary, Error, Real, Result, Sample};
use std::borrow::Borrow;

/// Holds the two terms of the problem 1/2 ||x - D z||^2 + beta ||z||_1 for one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Objective {
    /// 1/2 ||x - D z||^2.
    pub data_term: f64,
    /// ||z||_1, without beta.
    pub l1: f64,
}

impl Objective {
    /// Computes both terms of `code` as a code of `sample`; the data term is over observed values, and with a `zero` boundary
    /// over what sticks out, too.
    pub fn of<T: Real>(
        sample: &Sample<T>,
        code: &Code<T>,
        dictionary: &Dictionary<T>,
        boundary: Boundary,
    ) -> Result<Self> {
        let (shape, estimate, outside) = code.reconstruct_f64(dictionary, boundary)?;
        if shape != sample.shape() {
            return Err(Error::invalid("code", format!("a code of a sample of {}", sample.shape()), shape));
        }
        let inside: f64 =
            sample.data().iter().zip(estimate).zip(seen(sample)).map(|((x, e), s)| s * (x.f64() - e).powi(2)).sum();
        let outside = if boundary == Boundary::Zero { outside } else { 0.0 };
        Ok(Objective { data_term: 0.5 * (inside + outside), l1: code.l1() })
    }

    /// Returns 1/2 ||x - D z||^2 + beta ||z||_1.
    pub fn total(&self, beta: f64) -> f64 {
        self.data_term + beta * self.l1
    }
}

/// Returns the fraction of the K P coefficients that are not zero, 0 to 1.
pub fn sparsity<T: Real>(code: &Code<T>) -> f64 {
    let coefficients = code.n_filters() as f64 * code.shape().iter().map(|&n| n as f64).product::<f64>();
    if coefficients == 0.0 { 0.0 } else { code.nonzeros() as f64 / coefficients }
}

/// Returns the range max - min of all observed values of all samples: the peak with which the paper's PSNR numbers are
/// reproduced.
///
/// Takes samples or references to them, and refuses to answer for none. Zero if all values are equal.
pub fn range<T: Real>(samples: impl IntoIterator<Item: Borrow<Sample<T>>>) -> Result<f64> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for sample in samples {
        for v in sample.borrow().observed() {
            low = low.min(v.f64());
            high = high.max(v.f64());
        }
    }
    if low > high {
        return Err(Error::invalid("range", "at least one sample", "none"));
    }
    Ok(high - low)
}

/// Returns the mean squared error: the mean of (reference - estimate)^2 over all values that the reference observed.
pub fn mse<T: Real>(reference: &Sample<T>, estimate: &Sample<T>) -> Result<f64> {
    Ok(squared_error(reference, estimate)? / reference.n_observed() as f64)
}

/// Returns the peak signal-to-noise ratio 10 log10(peak^2 / mse), in decibels; infinite if the two are equal.
///
/// The peak is explicit because the number means nothing without it: 1 or 255 for images as stored, [`range`] for
/// contrast-normalised data as in the paper.
pub fn psnr<T: Real>(reference: &Sample<T>, estimate: &Sample<T>, peak: f64) -> Result<f64> {
    check_peak(peak)?;
    Ok(psnr_of(mse(reference, estimate)?, peak))
}

/// The PSNR of a mean squared error.
pub(crate) fn psnr_of(mse: f64, peak: f64) -> f64 {
    // Not as the logarithm of a quotient: peak^2 may overflow, and 0 / 0 lurks.
    if mse == 0.0 { f64::INFINITY } else { 20.0 * peak.log10() - 10.0 * mse.log10() }
}

/// Returns the structural similarity (Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment", IEEE TIP 13(4), 2004): the
/// mean over positions of
///
///   (2 m_a m_b + C1) (2 c_ab + C2) / ((m_a^2 + m_b^2 + C1) (v_a + v_b + C2)),   C1 = (0.01 peak)^2, C2 = (0.03 peak)^2,
///
/// where m, v and c are means, variances and covariance under an 11 x 11 Gaussian of sigma 1.5 (normalised by its sum,
/// not by sample counts). Only positions whose window lies within the image count, as in the paper and in
/// scikit-image, so an image smaller than the window on either axis is refused. The mean is taken over channels and
/// depth slices too. It is 1 for equal samples and never more. Windows need whole samples, so masks are refused.
pub fn ssim<T: Real>(a: &Sample<T>, b: &Sample<T>, peak: f64) -> Result<f64> {
    const WINDOW: usize = 11;
    check_peak(peak)?;
    check_shapes(a, b)?;
    if a.mask().is_some() || b.mask().is_some() {
        return Err(Error::invalid("ssim", "samples without a mask", "a mask"));
    }
    // The quotient multiplies four values, which must not overflow.
    let largest = a.data().iter().chain(b.data()).map(|v| v.f64().abs()).fold(0.0, f64::max) / peak;
    if largest > 1e75 {
        return Err(Error::invalid("ssim", "values of at most 1e75 peaks", format!("{largest:e} peaks")));
    }
    let shape = a.shape();
    if shape.height < WINDOW || shape.width < WINDOW {
        return Err(Error::invalid("ssim", format!("images of at least {WINDOW}x{WINDOW}"), shape));
    }
    let window = gaussian(WINDOW, 1.5);
    let area = shape.height * shape.width;
    let mut sum = 0.0;
    for (a, b) in a.data().chunks(area).zip(b.data().chunks(area)) {
        sum += similarity_sum(&scaled(a, peak), &scaled(b, peak), shape.width, &window);
    }
    let positions = (shape.height - WINDOW + 1) * (shape.width - WINDOW + 1) * shape.channels * shape.depth;
    Ok(sum / positions as f64)
}

/// The sum of the similarity over the positions of one plane whose window lies within it; both in units of the peak.
fn similarity_sum(a: &[f64], b: &[f64], width: usize, window: &[f64]) -> f64 {
    const C1: f64 = 0.01 * 0.01;
    const C2: f64 = 0.03 * 0.03;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<_>>();
    // Any border will do: positions that see it are left out below.
    let mean = |plane: &[f64]| local_mean(plane, width, window, Border::Circular);
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (square_a, square_b, cross) = (mean(&product(a, a)), mean(&product(b, b)), mean(&product(a, b)));
    let (height, radius) = (a.len() / width, window.len() / 2);
    let mut sum = 0.0;
    for y in radius..height - radius {
        for i in y * width + radius..(y + 1) * width - radius {
            let (ma, mb) = (mean_a[i], mean_b[i]);
            // Differences of rounded numbers may break v >= 0 and |c| <= sqrt(v_a v_b), by which the quotient is at
            // most 1.
            let (va, vb) = ((square_a[i] - ma * ma).max(0.0), (square_b[i] - mb * mb).max(0.0));
            let bound = (va * vb).sqrt();
            let c = (cross[i] - ma * mb).max(-bound).min(bound);
            sum += (2.0 * ma * mb + C1) * (2.0 * c + C2) / ((ma * ma + mb * mb + C1) * (va + vb + C2));
        }
    }
    sum
}

fn scaled<T: Real>(values: &[T], peak: f64) -> Vec<f64> {
    values.iter().map(|v| v.f64() / peak).collect()
}

/// ||a - b||^2 over what a observed.
fn squared_error<T: Real>(a: &Sample<T>, b: &Sample<T>) -> Result<f64> {
    check_shapes(a, b)?;
    Ok(a.data().iter().zip(b.data()).zip(seen(a)).map(|((a, b), s)| s * (a.f64() - b.f64()).powi(2)).sum())
}

/// 1 for every observed value, 0 for others.
fn seen<T: Real>(sample: &Sample<T>) -> impl Iterator<Item = f64> + '_ {
    (0..sample.data().len()).map(|i| sample.mask().map_or(1.0, |mask| f64::from(u8::from(mask[i]))))
}

fn check_shapes<T: Real>(reference: &Sample<T>, estimate: &Sample<T>) -> Result<()> {
    if reference.shape() == estimate.shape() {
        Ok(())
    } else {
        Err(Error::invalid("samples to compare", reference.shape(), estimate.shape()))
    }
}

fn check_peak(peak: f64) -> Result<()> {
    if peak > 0.0 && peak.is_finite() { Ok(()) } else { Err(Error::invalid("peak", "a positive finite number", peak)) }
}
