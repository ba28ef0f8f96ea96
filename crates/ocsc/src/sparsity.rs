//! How sparse codes are: whether their beta suits the data.

/// Counts how sparse codes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sparsity {
    /// How many codes there are.
    pub codes: usize,
    /// Codes that are all zeros.
    pub empty: usize,
    /// Their non-zeros.
    pub nonzeros: usize,
    /// The observed values of their samples.
    pub values: usize,
}

impl Sparsity {
    /// Counts a code of so many non-zeros, of a sample of so many observed values.
    pub fn add(&mut self, nonzeros: usize, values: usize) {
        self.codes += 1;
        self.empty += usize::from(nonzeros == 0);
        self.nonzeros += nonzeros;
        self.values += values;
    }

    /// Returns the non-zeros as a share of the values.
    pub fn share(&self) -> f64 {
        self.nonzeros as f64 / self.values.max(1) as f64
    }

    /// Returns whether most codes are all zeros, as with a beta that is too large for the data.
    pub fn is_mostly_empty(&self) -> bool {
        2 * self.empty > self.codes
    }

    /// Returns whether there are more non-zeros than half of the values, as with a beta that is too small for the data: such codes
    /// are long to compute, and say little that the values do not.
    pub fn is_dense(&self) -> bool {
        self.nonzeros > self.values / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted() {
        let mut sparsity = Sparsity::default();
        assert!(!sparsity.is_mostly_empty() && !sparsity.is_dense());
        sparsity.add(0, 100);
        assert!(sparsity.is_mostly_empty() && !sparsity.is_dense());
        sparsity.add(101, 100);
        assert!(!sparsity.is_mostly_empty() && sparsity.is_dense());
        assert_eq!(sparsity.share(), 0.505);
    }
}
