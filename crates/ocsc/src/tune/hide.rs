//! Samples of which a few values are hidden, to be predicted.

use super::stream;
use crate::{Boundary, Code, Dictionary, Error, Real, Result, Sample};
use rand::seq::index::sample as draw;

/// A sample without some of its values.
pub struct Hidden<T> {
    /// What is left: the hidden values are not observed.
    pub sample: Sample<T>,
    /// Where the hidden values are, in the order of the sample's values.
    pub places: Vec<usize>,
    /// The hidden values.
    pub values: Vec<f64>,
}

impl<T: Real> Hidden<T> {
    /// Hides this share of the observed values, at least one; which, the seed and the sample's number decide.
    pub fn new(sample: &Sample<T>, share: f64, seed: u64, number: usize) -> Result<Self> {
        let is_observed = |i: &usize| sample.mask().is_none_or(|mask| mask[*i]);
        let observed: Vec<usize> = (0..sample.data().len()).filter(is_observed).collect();
        if observed.len() < 2 {
            return Err(Error::invalid("sample", "at least two observed values, one of them to hide", observed.len()));
        }
        let n = ((share * observed.len() as f64).round() as usize).clamp(1, observed.len() - 1);
        let mut rng = stream(seed, number);
        let mut places: Vec<usize> = draw(&mut rng, observed.len(), n).into_iter().map(|i| observed[i]).collect();
        places.sort_unstable();
        let mut mask = sample.mask().map_or_else(|| vec![true; sample.data().len()], <[bool]>::to_vec);
        places.iter().for_each(|place| mask[*place] = false);
        let values = places.iter().map(|place| sample.data()[*place].f64()).collect();
        let sample = Sample::masked(sample.shape(), sample.data().to_vec(), mask)?;
        Ok(Hidden { sample, places, values })
    }

    /// Returns the mean squared error of what a code predicts.
    pub fn squared_error(&self, code: &Code<T>, dictionary: &Dictionary<T>, boundary: Boundary) -> Result<f64> {
        let (_, estimate, _) = code.reconstruct_f64(dictionary, boundary)?;
        let square = |(place, value): (&usize, &f64)| (value - estimate[*place]).powi(2);
        Ok(self.places.iter().zip(&self.values).map(square).sum::<f64>() / self.places.len().max(1) as f64)
    }
}

/// Returns the variance of all hidden values; the smallest number above zero where they are all equal.
pub(super) fn variance<T>(hidden: &[Hidden<T>]) -> f64 {
    let values = || hidden.iter().flat_map(|hidden| &hidden.values);
    let n = values().count().max(1) as f64;
    let mean = values().sum::<f64>() / n;
    (values().map(|v| (v - mean).powi(2)).sum::<f64>() / n).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn a_share_of_the_observed_values_is_hidden() {
        let shape = Shape::image(20, 30);
        let data: Vec<f64> = (0..600).map(f64::from).collect();
        let mask: Vec<bool> = (0..600).map(|i| i % 3 > 0).collect();
        let sample = Sample::masked(shape, data, mask).unwrap();
        let hidden = Hidden::new(&sample, 0.05, 1, 0).unwrap();
        assert_eq!((hidden.places.len(), hidden.sample.n_observed()), (20, 380));
        for (place, value) in hidden.places.iter().zip(&hidden.values) {
            assert!(place % 3 > 0 && *value == *place as f64 && !hidden.sample.mask().unwrap()[*place]);
        }
        assert_eq!(hidden.places, Hidden::new(&sample, 0.05, 1, 0).unwrap().places);
        assert_ne!(hidden.places, Hidden::new(&sample, 0.05, 1, 1).unwrap().places);
        let lone = Sample::new(Shape::image(1, 1), vec![1.0]).unwrap();
        assert!(Hidden::new(&lone, 0.05, 1, 0).is_err());
    }
}
